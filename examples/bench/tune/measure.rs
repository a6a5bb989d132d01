//! Times of candidate specs over shapes.

use gemm_bench::cli::{Failure, Outcome};
use gemm_bench::epilogue::{as_small, first_launch};
use gemm_bench::gpu::{Blas, Gpu, Timer, Work, captured, failed};
use gemm_bench::grid::arena::Arena;
use gemm_bench::grid::repeats;
use gemm_bench::progress;
use gemm_bench::shapes::GemmShape;
use gemm_bench::tune::table::model::{HOPELESS, Model};
use gemm_bench::tune::table::options::Task;
use gemm_bench::tune::table::times::{CUBLAS, Head, Time, TimesFile};
use gemm_runtime::spec::{Arith, GemmLayout};
use gemm_runtime::{Device, Error, SgemmKernel, SgemmSpec};
use rayon::prelude::*;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::{Duration, Instant};

/// Limits beyond which a spec is timed only once: the ratio to the best time, and microseconds
/// above the best time.
const SLOW: f64 = 2.0;
const SLOW_US: f64 = 10.0;

/// Candidate spec with its kernels and its model.
struct MeasuredSpec {
    text: String,
    /// Spec and kernel for each layout, in the order of [`GemmLayout::ALL`].
    kernels: Vec<(SgemmSpec, SgemmKernel)>,
    model: Model,
}

impl MeasuredSpec {
    fn new(spec: &SgemmSpec) -> Result<Self, Error> {
        let kernel = |layout: &GemmLayout| {
            let spec = spec.clone().for_matrices(*layout, false);
            Ok((spec.clone(), SgemmKernel::new(spec)?))
        };
        Ok(Self {
            text: spec.to_string(),
            kernels: GemmLayout::ALL.iter().map(kernel).collect::<Result<_, Error>>()?,
            model: Model::new(spec)
                .ok_or_else(|| Error::Internal(format!("no plan of `{spec}`")))?,
        })
    }

    fn kernel(&self, shape: GemmShape) -> &(SgemmSpec, SgemmKernel) {
        &self.kernels[shape.of_table().lies() as usize]
    }
}

/// Candidate of a measurement: a spec, given by its index, or cuBLAS.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Candidate {
    Line(usize),
    Cublas,
}

/// Tools and candidates of a measurement.
struct TableBench<'d> {
    gpu: Gpu<'d>,
    timer: Timer<'d>,
    blas: Option<Blas>,
    arena: Arena<'d>,
    lines: Vec<MeasuredSpec>,
    random: fastrand::Rng,
    wrong: BTreeSet<String>,
    /// Reason why each failed spec was refused, with the first shape at which it failed.
    refused: BTreeMap<String, String>,
}

/// Measures the unknown times of a task until its time limit. The outcome is [`Outcome::Wrong`] if
/// a spec computed a wrong result.
///
/// # Errors
/// Returns an error that would affect every spec.
pub fn run(task: &Task, device: &Device, seed: u64) -> Result<(TimesFile, Outcome), Failure> {
    let (start, limit) = (Instant::now(), Duration::from_secs(task.limit));
    let gpu = Gpu::new(device);
    let gpu = gpu.ok_or_else(|| Failure::Missing("specs are timed on a GPU".to_owned()))?;
    let gpu = gpu.without_events();
    let blas = Blas::for_graphs(gpu).map_err(|missing| eprintln!("note: {missing}")).ok();
    let (arch, sms) = (gpu.arch.number(), gpu.multiprocessors);
    let head = Head { device: device.name().to_owned(), arch, sms };
    let mut times = match &task.times {
        Some(path) => TimesFile::go_on(path, head)?,
        None => TimesFile::new(head),
    };
    let lines: Result<Vec<MeasuredSpec>, Error> =
        task.lines.iter().map(MeasuredSpec::new).collect();
    let lines = lines?;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut work: Vec<(GemmShape, Vec<Candidate>)> = Vec::new();
    for shape in &task.shapes {
        let mut who = pending(*shape, &lines, blas.is_some(), &times);
        random.shuffle(&mut who);
        if !who.is_empty() && work.iter().all(|(known, _)| known != shape) {
            work.push((*shape, who));
        }
    }
    // After a shuffle, the shapes that the time limit leaves out are spread evenly over all shapes.
    random.shuffle(&mut work);
    if work.is_empty() || task.limit == 0 {
        eprintln!("nothing is left to measure");
        return Ok((times, Outcome::Right));
    }
    compile(device, &lines, &work, start, limit);
    let shapes: Vec<GemmShape> = work.iter().map(|(shape, _)| *shape).collect();
    let mut bench = TableBench {
        timer: Timer::new(gpu)?,
        blas,
        arena: Arena::new(gpu, &shapes, seed)?,
        gpu,
        lines,
        random,
        wrong: BTreeSet::new(),
        refused: BTreeMap::new(),
    };
    let bar = progress::bar(work.len());
    let mut done = 0;
    for (shape, who) in &work {
        if start.elapsed() > limit {
            break;
        }
        bar.set_message(shape.to_string());
        bench.measure(*shape, who, &mut times)?;
        done += 1;
        bar.inc(1);
    }
    bar.finish_and_clear();
    eprintln!(
        "{done} of {} shapes measured in {:.0} s (seed {seed})",
        work.len(),
        start.elapsed().as_secs_f64()
    );
    for (line, reason) in &bench.refused {
        eprintln!("refused: `{line}` {reason}");
    }
    for line in &bench.wrong {
        eprintln!("wrong: {line}");
    }
    let outcome = if bench.wrong.is_empty() { Outcome::Right } else { Outcome::Wrong };
    Ok((times, outcome))
}

/// Returns the candidates at a shape that are not yet measured and that the model does not exclude
/// as too slow.
fn pending(
    shape: GemmShape,
    lines: &[MeasuredSpec],
    has_blas: bool,
    times: &TimesFile,
) -> Vec<Candidate> {
    let sms = times.head.sms;
    let cycles = |line: &MeasuredSpec| line.model.cycles(shape.size, sms);
    let least = lines.iter().map(cycles).fold(f64::INFINITY, f64::min);
    let pending = lines.iter().enumerate().filter(|(_, line)| {
        times.get(&shape, &line.text).is_none() && cycles(line) <= HOPELESS * least
    });
    let mut who: Vec<Candidate> = pending.map(|(number, _)| Candidate::Line(number)).collect();
    if has_blas && times.get(&shape, CUBLAS).is_none() && !who.is_empty() {
        who.push(Candidate::Cublas);
    }
    who
}

/// Compiles the kernels of the work in parallel. Failures are ignored here, because they occur
/// again at the launch.
fn compile(
    device: &Device,
    lines: &[MeasuredSpec],
    work: &[(GemmShape, Vec<Candidate>)],
    start: Instant,
    limit: Duration,
) {
    // The key is the spec, and small extents that select the same variant.
    let mut kernels: HashSet<(usize, GemmShape)> = HashSet::new();
    for (shape, who) in work {
        kernels.extend(who.iter().filter_map(|who| match who {
            Candidate::Line(number) => {
                let small = as_small(&lines[*number].kernel(*shape).0, shape.size);
                small.ok().map(|size| (*number, GemmShape { size, ..*shape }))
            }
            Candidate::Cublas => None,
        }));
    }
    let bar = progress::bar(kernels.len());
    bar.set_message("kernels compiled");
    kernels.par_iter().for_each(|(number, shape)| {
        if start.elapsed() < limit {
            _ = first_launch(device, &lines[*number].kernel(*shape).0, shape.size);
        }
        bar.inc(1);
    });
    bar.finish_and_clear();
    let lines: HashSet<usize> = kernels.iter().map(|(number, _)| *number).collect();
    let seconds = start.elapsed().as_secs_f64();
    eprintln!("the kernels of {} specs compiled in {seconds:.0} s", lines.len());
}

impl TableBench<'_> {
    /// Checks candidates at a shape, launches each once, and times those that are not too slow.
    fn measure(
        &mut self,
        shape: GemmShape,
        who: &[Candidate],
        times: &mut TimesFile,
    ) -> Result<(), Failure> {
        self.arena.expect(shape)?;
        let mut sound = Vec::new();
        for &who in who {
            match self.check(shape, who) {
                Ok(None) => sound.push(who),
                Ok(Some(error)) if who == Candidate::Cublas => {
                    eprintln!("note: cuBLAS has an error of {error:.1e} at {shape}");
                }
                Ok(Some(error)) => {
                    let text = self.name(who);
                    self.wrong.insert(format!("{shape}, off by {error:.1e}: {text}"));
                    times.add(shape, &text, Time::Refused)?;
                }
                Err(error @ (Error::Driver { .. } | Error::Internal(_))) => {
                    return Err(error.into());
                }
                Err(error) => {
                    let text = self.name(who);
                    times.add(shape, &text, Time::Refused)?;
                    self.refused.entry(text).or_insert_with(|| format!("at {shape}: {error}"));
                }
            }
        }
        let singles = self.once(shape, &sound)?;
        let known = times.at_shape(&shape).iter().filter_map(|(_, time)| time.us());
        let best = singles.iter().copied().chain(known).fold(f64::INFINITY, f64::min);
        let mut fast = Vec::new();
        for (who, us) in sound.into_iter().zip(singles) {
            if us > SLOW * best + SLOW_US && who != Candidate::Cublas {
                times.add(shape, &self.name(who), Time::SlowUs(us))?;
            } else {
                fast.push(who);
            }
        }
        self.random.shuffle(&mut fast);
        for (who, us) in fast.iter().zip(self.replayed(shape, &fast, best)?) {
            times.add(shape, &self.name(*who), Time::Us(us))?;
        }
        Ok(())
    }

    fn name(&self, who: Candidate) -> String {
        match who {
            Candidate::Line(number) => self.lines[number].text.clone(),
            Candidate::Cublas => CUBLAS.to_owned(),
        }
    }

    /// Returns the error of the result, if the result is wrong.
    fn check(&mut self, shape: GemmShape, who: Candidate) -> Result<Option<f64>, Error> {
        let Self { arena, lines, blas, .. } = self;
        let arith = match who {
            Candidate::Line(number) => lines[number].kernel(shape).0.arith,
            Candidate::Cublas => Arith::F32,
        };
        let launch = |arena: &mut Arena<'_>| launch(arena, lines, blas.as_ref(), shape, who);
        let (error, ok) = arena.check(shape, arith, launch)?;
        Ok((!ok).then_some(error))
    }

    /// Returns the microseconds of one launch of each candidate.
    fn once(&mut self, shape: GemmShape, all: &[Candidate]) -> Result<Vec<f64>, Error> {
        let Self { arena, lines, blas, timer, .. } = self;
        let arena = RefCell::new(arena);
        let launch = |who: Candidate| {
            let (arena, lines, blas) = (&arena, &*lines, blas.as_ref());
            move || launch(&mut arena.borrow_mut(), lines, blas, shape, who)
        };
        let mut launches: Vec<_> = all.iter().map(|who| launch(*who)).collect();
        let mut work: Vec<&mut Work<'_>> = Vec::new();
        for one in &mut launches {
            work.push(one);
        }
        Ok(timer.once(&mut work)?.into_iter().map(|ms| ms * 1e3).collect())
    }

    /// Returns the microseconds of a launch of each candidate, from graphs of back-to-back launches
    /// that are replayed in turns.
    fn replayed(
        &mut self,
        shape: GemmShape,
        all: &[Candidate],
        best: f64,
    ) -> Result<Vec<f64>, Error> {
        let pace = repeats::search(best);
        let Self { arena, lines, blas, timer, gpu, .. } = self;
        let mut graphs = Vec::new();
        for &who in all {
            let mut work = || launch(arena, lines, blas.as_ref(), shape, who);
            graphs.push(captured(*gpu, &mut work, pace.launches)?);
        }
        let mut replays: Vec<_> = graphs
            .iter()
            .map(|graph| || graph.launch().map_err(failed("launching a graph")))
            .collect();
        let mut work: Vec<&mut Work<'_>> = Vec::new();
        for replay in &mut replays {
            work.push(replay);
        }
        let times = timer.medians(pace.replays, &mut work)?;
        // The graphs are destroyed when this function returns.
        gpu.device.synchronize()?;
        Ok(times.into_iter().map(|ms| ms * 1e3 / pace.launches as f64).collect())
    }
}

/// Enqueues a spec or cuBLAS.
fn launch(
    arena: &mut Arena<'_>,
    lines: &[MeasuredSpec],
    blas: Option<&Blas>,
    shape: GemmShape,
    who: Candidate,
) -> Result<(), Error> {
    match (who, blas) {
        (Candidate::Line(number), _) => {
            arena.launch(&lines[number].kernel(shape).1, shape).map(drop)
        }
        (Candidate::Cublas, Some(blas)) => arena.blas(blas, shape),
        (Candidate::Cublas, None) => Err(Error::Internal("cuBLAS is not available".to_owned())),
    }
}
