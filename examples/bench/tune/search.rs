//! Search in three phases: times of random specs, times of the neighbours of the best specs, and
//! thorough times of the best specs.

use crate::finals::finals;
use crate::limits::SearchLimits;
use gemm_bench::cli::{Failure, Outcome};
use gemm_bench::progress;
use gemm_bench::tune::rank::{RankedSpec, Ranking};
use gemm_bench::tune::space::{Point, Space};
use gemm_bench::tune::target::{SpecTime, Target};
use gemm_runtime::Error;
use gemm_runtime::compile::Resources;
use indicatif::ProgressBar;
use rayon::prelude::*;
use std::collections::HashSet;

/// Shares of the time limit at which the phase of random specs ends, and at which the phase of
/// neighbours ends.
const RANDOM_SHARE: f64 = 0.4;
const SEARCH_SHARE: f64 = 0.8;

/// Rounds of a quick measurement.
const QUICK_ROUNDS: usize = 5;

/// Number of best specs at each size whose neighbours are tried.
const PARENTS: usize = 4;

/// Draws without a new valid spec after which the space counts as exhausted.
const DRAWS: usize = 20_000;

/// Numbers of specs that were not ranked, by reason.
#[derive(Default)]
struct DropCounts {
    /// Kernels with values on the stack, as after register spilling.
    on_stack: usize,
    refused: usize,
    wrong: Vec<String>,
}

/// Searches a space, beginning with the given points, and prints the best specs at each size.
///
/// The outcome is [`Outcome::Wrong`] if a spec computed a wrong result, which is a fault of the
/// generator.
///
/// # Errors
/// Returns an error that affects all specs, or an error of the output.
pub fn run<T: Target>(
    target: &mut T,
    space: &Space,
    first: Vec<Point>,
    limits: &SearchLimits,
    json: bool,
) -> Result<Outcome, Failure>
where
    T::Spec: Send + Sync,
{
    let mut ranking = Ranking::default();
    let mut dropped = DropCounts::default();
    let mut draws = Draws::new(limits.seed, first);
    let bar = progress::spinner();
    let some = 2 * rayon::current_num_threads();
    let is_over = |ranking: &Ranking<T::Spec>| {
        limits.passed(SEARCH_SHARE) || limits.sample.is_some_and(|most| ranking.count() >= most)
    };
    while !is_over(&ranking) {
        // After a ranking by the model, the search needs no random specs. It continues with the
        // neighbours of the first specs.
        let around = limits.sample.is_none() && (limits.passed(RANDOM_SHARE) || draws.was_told());
        let sizes = target.sizes().len();
        let spec = |line: &str| target.spec(line);
        let specs = draws.next(space, spec, &ranking, sizes, some, around);
        if specs.is_empty() {
            break;
        }
        let compile = target.compiler();
        let compiled: Vec<_> =
            specs.into_par_iter().map(|(point, spec)| (compile(&spec), point, spec)).collect();
        drop(compile);
        for (resources, point, spec) in compiled {
            rank(target, resources, point, spec, &mut ranking, &mut dropped)?;
            note(&bar, &ranking, &dropped);
            if is_over(&ranking) {
                break;
            }
        }
    }
    bar.finish_and_clear();
    eprintln!(
        "{} specs timed, {} with a stack frame, {} refused, {} wrong, in {:.0} s",
        ranking.count(),
        dropped.on_stack,
        dropped.refused,
        dropped.wrong.len(),
        limits.start.elapsed().as_secs_f64()
    );
    for size in 0..target.sizes().len() {
        dropped.wrong.extend(finals(target, size, &ranking, limits, json)?);
    }
    for line in &dropped.wrong {
        eprintln!("wrong: {line}");
    }
    Ok(if dropped.wrong.is_empty() { Outcome::Right } else { Outcome::Wrong })
}

fn note<S>(bar: &ProgressBar, ranking: &Ranking<S>, dropped: &DropCounts) {
    let best = ranking.best(0, 1);
    let best = best.first().and_then(|found| found.quick.first());
    let best = best.map_or(String::new(), |t| format!(", best {:.0} ({:.3})", t.rate, t.ratio));
    let gone = dropped.on_stack + dropped.refused;
    bar.set_message(format!("{} timed, {gone} dropped{best}", ranking.count()));
}

/// Checks and times a compiled spec.
fn rank<T: Target>(
    target: &mut T,
    resources: Result<Resources, Error>,
    point: Point,
    spec: T::Spec,
    ranking: &mut Ranking<T::Spec>,
    dropped: &mut DropCounts,
) -> Result<(), Failure> {
    let resources = match resources {
        Ok(resources) if resources.stack > 0 => {
            dropped.on_stack += 1;
            return Ok(());
        }
        Ok(resources) => resources,
        Err(
            error @ (Error::NvrtcMissing { .. }
            | Error::NvrtcUnsuitable { .. }
            | Error::OutOfMemory { .. }),
        ) => return Err(error.into()),
        Err(_) => {
            dropped.refused += 1;
            return Ok(());
        }
    };
    match measure(target, &spec) {
        Ok(Some(quick)) => ranking.push(RankedSpec { spec, point, resources, quick }),
        Ok(None) => dropped.wrong.push(spec.to_string()),
        // The spec accepts only aligned extents, and its tile does not divide a size.
        Err(Failure::Runtime(Error::Unmet { .. })) => dropped.refused += 1,
        Err(failure) => {
            // A fault may have corrupted the whole context.
            eprintln!("this spec failed: {spec}");
            return Err(failure);
        }
    }
    Ok(())
}

/// Returns the quick times of a spec, if its result is correct.
fn measure<T: Target>(target: &mut T, spec: &T::Spec) -> Result<Option<Vec<SpecTime>>, Failure> {
    let (_, ok) = target.check(None, spec)?;
    if !ok {
        return Ok(None);
    }
    let sizes = 0..target.sizes().len();
    let times: Result<_, _> = sizes.map(|size| target.time(size, spec, QUICK_ROUNDS)).collect();
    times.map(Some)
}

/// Source of the specs to try.
struct Draws {
    random: fastrand::Rng,
    /// Given points, in reverse order.
    first: Vec<Point>,
    told: bool,
    points: HashSet<Point>,
    /// Specs drawn so far. Different points may be the same spec.
    lines: HashSet<String>,
}

impl Draws {
    fn new(seed: u64, mut first: Vec<Point>) -> Self {
        first.reverse();
        Self {
            random: fastrand::Rng::with_seed(seed),
            told: !first.is_empty(),
            first,
            points: HashSet::new(),
            lines: HashSet::new(),
        }
    }

    /// Returns true if there were given points and all of them were drawn.
    fn was_told(&self) -> bool {
        self.told && self.first.is_empty()
    }

    /// Returns at most `most` new valid specs.
    ///
    /// Given points are first. Neighbours of the best specs follow if `around` is true and there
    /// are any, otherwise random points.
    fn next<S: gemm_runtime::spec::Spec>(
        &mut self,
        space: &Space,
        spec: impl Fn(&str) -> Option<S>,
        ranking: &Ranking<S>,
        sizes: usize,
        most: usize,
        around: bool,
    ) -> Vec<(Point, S)> {
        let mut found = Vec::new();
        while found.len() < most
            && let Some(point) = self.first.pop()
        {
            found.extend(self.take(space, &spec, point));
        }
        if around {
            let parents = (0..sizes).flat_map(|size| ranking.best(size, PARENTS));
            let neighbours: Vec<Point> =
                parents.flat_map(|parent| space.neighbours(&parent.point)).collect();
            for point in neighbours {
                if found.len() < most {
                    found.extend(self.take(space, &spec, point));
                }
            }
        }
        for _ in 0..DRAWS {
            if found.len() >= most {
                break;
            }
            let point = space.random(&mut self.random);
            found.extend(self.take(space, &spec, point));
        }
        found
    }

    /// Returns the spec of a point, if the spec is new and valid.
    fn take<S: gemm_runtime::spec::Spec>(
        &mut self,
        space: &Space,
        spec: impl Fn(&str) -> Option<S>,
        point: Point,
    ) -> Option<(Point, S)> {
        if !self.points.insert(point.clone()) {
            return None;
        }
        let spec = spec(&space.line(&point))?;
        self.lines.insert(spec.to_string()).then_some((point, spec))
    }
}
