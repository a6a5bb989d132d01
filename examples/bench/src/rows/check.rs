//! Check of results against `f64`. If there are many results, a random sample is checked.

use super::input::Tile;
use super::launch::poison;
use super::problem::{Fold, ReductionProblem};
use fastrand::Rng;
use gemm_dsl::ir::Elem;
use gemm_dsl::plan::ReducePlan;
use gemm_dsl::spec::ReduceSpec;
use gemm_oracle::UNIT;
use gemm_oracle::depth::Depth;
use gemm_oracle::fold::{Finish, Folded, Kind, Number, folded, selected};
use rayon::prelude::*;

/// Limit on the number of elements that are reduced to check a sample of results.
const DRAWN_ELEMENTS: usize = 1 << 22;

/// Limit on the number of results in a sample.
const DRAWN: usize = 256;

/// Maximum length of a reduction for which the reference is computed element by element.
///
/// Longer reductions have a reference only for sums, extrema and indices.
pub const ONE_BY_ONE: usize = 1 << 24;

/// Results of a problem, with everything needed to check them.
#[derive(Clone, Copy, Debug)]
pub struct Results<'r> {
    pub problem: &'r ReductionProblem,
    pub spec: &'r ReduceSpec,
    pub tiles: &'r [Tile],
    /// Segment offsets; `None` for other problems.
    pub offsets: Option<&'r [u32]>,
    /// Bits of all results, for each output.
    pub bits: &'r [Vec<u64>],
}

impl Results<'_> {
    /// Checks the results, and returns the number that was compared with the reference.
    ///
    /// All results are compared if `everything` is true or if the problem is small. For every
    /// result, the check also verifies that it was written.
    ///
    /// # Errors
    /// Returns the fault of the first wrong result.
    pub fn check(&self, everything: bool, seed: u64) -> Result<usize, String> {
        let plan = self.spec.plan().map_err(|faults| faults.to_string())?;
        let elems = self.spec.results();
        for (bits, (name, elem)) in self.bits.iter().zip(&elems) {
            if let Some(at) = bits.iter().position(|bits| *bits == poison(*elem)) {
                return Err(format!("{name} {at} was not written"));
            }
        }
        let results = self.bits.first().map_or(0, Vec::len);
        let all = everything || self.problem.len() <= DRAWN_ELEMENTS && results <= DRAWN;
        let at = if all { (0..results).collect() } else { self.drawn(results, seed) };
        let judged = at.par_iter().map(|&at| self.judge(&plan, &elems, at));
        judged.collect::<Result<(), String>>()?;
        Ok(at.len())
    }

    /// Draws a random sample of results, which includes the first and the last.
    fn drawn(&self, results: usize, seed: u64) -> Vec<usize> {
        let mut random = Rng::with_seed(seed);
        let mut elements = 0;
        let mut drawn = Vec::new();
        let ends = [0, results.saturating_sub(1)];
        for n in 0..DRAWN {
            let at = ends.get(n).copied().unwrap_or_else(|| random.usize(..results.max(1)));
            elements += self.len(at);
            if n >= ends.len() && elements > DRAWN_ELEMENTS {
                break;
            }
            drawn.push(at);
        }
        drawn.sort_unstable();
        drawn.dedup();
        drawn
    }

    /// Returns the number of elements of a result.
    fn len(&self, result: usize) -> usize {
        match self.offsets {
            Some(offsets) => (offsets[result + 1] - offsets[result]) as usize,
            None => self.problem.size().1,
        }
    }

    fn judge(
        &self,
        plan: &ReducePlan,
        elems: &[(&'static str, Elem)],
        at: usize,
    ) -> Result<(), String> {
        let len = self.len(at);
        let kind = Kind::of(self.spec).ok_or("a user-defined fold has no reference")?;
        let kept = self.problem.fold.kept();
        let (result, rank) = (at / kept, at % kept);
        let parts = if len > ONE_BY_ONE && kept == 1 {
            vec![self.of_many(plan, kind, len)?]
        } else {
            let (_, length, inner) = self.problem.size();
            let first = match self.offsets {
                Some(offsets) => offsets[result] as usize,
                None => result / inner * length * inner + result % inner,
            };
            let values = (0..len).map(|k| self.value(first + k * inner));
            let values = values.collect::<Vec<_>>();
            match kept {
                1 => folded(kind, plan, &values),
                _ => selected(kind, plan, &values, kept).iter().map(|all| all[rank]).collect(),
            }
        };
        let finish: Option<Finish> = (self.problem.fold == Fold::Norm).then_some(root);
        for (output, (name, elem)) in elems.iter().enumerate() {
            let part = parts.get(output).ok_or_else(|| format!("{name} has no reference"))?;
            let part = std::slice::from_ref(part);
            let judged =
                Folded::judge_finished(part, finish, len as u64, self.bits[output][at], *elem);
            judged.map_err(|wrong| format!("{name} {at}: {wrong}"))?;
        }
        Ok(())
    }

    /// Returns the mapped element. The map is computed in the arithmetic of the accumulator's type.
    fn value(&self, at: usize) -> Number {
        let number = |tile: &Tile| tile.number(at).cast(self.spec.acc_elem());
        let float = |tile: &Tile| number(tile).float() as f32;
        match (self.problem.fold, self.tiles) {
            (Fold::Norm, [x, ..]) => Number::Float((float(x) * float(x)).into()),
            (Fold::Dot, [x, y, ..]) => Number::Float((float(x) * float(y)).into()),
            (_, [x, ..]) => number(x),
            (_, []) => Number::Int(0),
        }
    }

    /// Computes the bounds of a reduction that is too long for a reference element by element.
    ///
    /// The elements are periodic, so only one period is reduced.
    fn of_many(&self, plan: &ReducePlan, kind: Kind, len: usize) -> Result<Folded, String> {
        let period = self.tiles.first().map_or(1, Tile::period);
        let acc = self.spec.acc_elem();
        let tile = || (0..period.min(len)).into_par_iter();
        let whole = (len / period) as f64;
        match kind {
            Kind::Argmax | Kind::Max => {
                let greatest = tile().map(|at| (self.value(at).float(), at));
                let first = |a: (f64, usize), b: (f64, usize)| {
                    let same = a.0 == b.0 && a.1 <= b.1;
                    if a.0 > b.0 || same { a } else { b }
                };
                let (value, at) = greatest.reduce(|| (f64::NEG_INFINITY, usize::MAX), first);
                Ok(Folded::Exactly(match kind {
                    Kind::Argmax => Number::Int(at as i128),
                    _ => Number::Float(value),
                }))
            }
            Kind::Sum if !acc.is_float() => {
                let sum = |to: usize| -> i128 {
                    let whole = |at| match self.value(at) {
                        Number::Int(n) => n,
                        Number::Float(x) => x as i128,
                    };
                    (0..to).into_par_iter().map(whole).sum()
                };
                let total = sum(period) * (len / period) as i128 + sum(len % period);
                Ok(Folded::Exactly(Number::Int(total).cast(acc)))
            }
            Kind::Sum | Kind::Compensated => {
                let [sum, size] = self.sums(period);
                let [rest, rest_size] = self.sums(len % period);
                let (value, size) = (sum * whole + rest, size * whole + rest_size);
                let unit = if acc == Elem::F64 { f64::EPSILON / 2.0 } else { UNIT };
                let gamma = |n: f64| n * unit / (1.0 - n * unit);
                let d = Depth::of(plan, len as u64).additions() as f64;
                let error = match kind {
                    Kind::Sum => gamma(d) * size,
                    _ => unit * value.abs() + 1.01 * gamma(2.0 * d) * gamma(d) * size,
                };
                // Bounds of the few `f64` roundings here, and of the roundings in the lower halves
                // of the sums.
                let upper = 8.0 * f64::EPSILON * ((sum * whole).abs() + rest.abs());
                let own = upper + len as f64 * f64::EPSILON * f64::EPSILON * size;
                Ok(Folded::Between(value - error - own, value + error + own))
            }
            other => Err(format!("there is no reference for {other:?} of {len} elements")),
        }
    }

    /// Returns the sum of the first values, and the sum of their magnitudes.
    fn sums(&self, len: usize) -> [f64; 2] {
        let chunk = |n: usize| {
            let values = (n * CHUNK..len.min((n + 1) * CHUNK)).map(|at| self.value(at).float());
            values.fold([Twice::default(); 2], |[sum, size], x| [sum.plus(x), size.plus(x.abs())])
        };
        let chunks = (0..len.div_ceil(CHUNK)).into_par_iter().map(chunk);
        let all = |a: [Twice; 2], b: [Twice; 2]| [0, 1].map(|n| a[n].plus(b[n].0).plus(b[n].1));
        chunks.reduce(Default::default, all).map(|Twice(upper, lower)| upper + lower)
    }
}

/// Values that one host thread adds.
const CHUNK: usize = 1 << 16;

/// Sum with its accumulated rounding errors (Knuth's two-sum).
#[derive(Clone, Copy, Default)]
struct Twice(f64, f64);

impl Twice {
    fn plus(self, x: f64) -> Self {
        let sum = self.0 + x;
        let added = sum - self.0;
        Self(sum, self.1 + ((self.0 - (sum - added)) + (x - added)))
    }
}

/// Square root, as the `finish` of a norm.
fn root(values: &[Number], _: u64) -> Number {
    let sum = values.first().map_or(0.0, Number::float);
    Number::Float((sum as f32).sqrt().into())
}

#[cfg(test)]
mod tests {
    use super::super::launch::{Inputs, KernelChoice, ReductionLaunch};
    use super::super::problem::Along;
    use super::super::segments::Lengths;
    use super::*;
    use clap::ValueEnum;
    use gemm_runtime::Device;
    use gemm_runtime::spec::DataType;

    fn problem(shape: &[usize], along: Along, fold: Fold) -> ReductionProblem {
        ReductionProblem { shape: shape.to_vec(), along, fold, element: DataType::F32, how: None }
    }

    /// Launches a problem, lets the caller change the results, and checks the changed results.
    fn checked(
        problem: &ReductionProblem,
        everything: bool,
        change: impl FnOnce(&mut [Vec<u64>]),
    ) -> Result<usize, String> {
        let device = Device::simulator();
        let offsets = match problem.along {
            Along::Segments(lengths, mean) => {
                Some(lengths.offsets(3, problem.len() as u32, mean as u32))
            }
            _ => None,
        };
        let chosen = KernelChoice::new(problem).expect("a kernel");
        let inputs =
            Inputs::new(None, problem.element, problem.len(), problem.inputs(), 7).expect("arrays");
        let mut launch = ReductionLaunch::new(&device, &chosen, problem.size(), offsets.as_deref())
            .expect("outputs");
        launch.run(&inputs).expect("a launch");
        let mut bits = launch.results().expect("results");
        change(&mut bits);
        let (tiles, offsets) = (&inputs.tiles[..], offsets.as_deref());
        Results { problem, spec: &chosen.spec, tiles, offsets, bits: &bits }.check(everything, 5)
    }

    #[test]
    fn a_selection_is_right_and_an_exchange_is_not() {
        for (shape, along) in [(&[5, 300][..], Along::Axis(1)), (&[2000], Along::Whole)] {
            let problem = problem(shape, along, Fold::Topk);
            let results = problem.results(None);
            assert_eq!(checked(&problem, true, |_| {}), Ok(results), "{problem}");
            let exchanged = |bits: &mut [Vec<u64>]| bits[1].swap(3, 4);
            let wrong = checked(&problem, true, exchanged).expect_err("two wrong indices");
            assert!(wrong.contains("index 3"), "{problem}: {wrong}");
        }
    }

    #[test]
    fn every_fold_is_right_and_a_change_is_not() {
        for fold in Fold::OF_ROWS {
            for axis in 0..3 {
                let problem = problem(&[3, 40, 9], Along::Axis(axis), fold);
                let results = problem.results(None);
                assert_eq!(checked(&problem, true, |_| {}), Ok(results), "{problem}");
                let last = |bits: &mut [Vec<u64>]| {
                    let last = bits.last_mut().and_then(|bits| bits.last_mut());
                    // A float is changed by more than any bound, an index by one.
                    *last.expect("a result") ^= if fold == Fold::Argmax { 1 } else { 1 << 20 };
                };
                let wrong = checked(&problem, true, last).expect_err("a wrong result");
                assert!(wrong.contains(&(results - 1).to_string()), "{problem}: {wrong}");
            }
        }
    }

    #[test]
    fn segments_and_whole_arrays_are_right_and_a_change_is_not() {
        for along in Lengths::ALL
            .map(|lengths| Along::Segments(lengths, 30))
            .into_iter()
            .chain([Along::Whole])
        {
            let problem = problem(&[3000], along, Fold::Sum);
            checked(&problem, true, |_| {}).expect("right");
            checked(&problem, true, |bits| bits[0][0] ^= 1 << 20).expect_err("a wrong result");
        }
        for element in [DataType::F16, DataType::Bf16, DataType::I8, DataType::I32, DataType::F64] {
            let problem = ReductionProblem { element, ..problem(&[3000], Along::Whole, Fold::Sum) };
            checked(&problem, true, |_| {}).expect("right");
            let bit = if element == DataType::F64 { 1 << 50 } else { 1 << 20 };
            checked(&problem, true, |bits| bits[0][0] ^= bit).expect_err("a wrong result");
        }
    }

    #[test]
    fn unwritten_outputs_are_found_outside_the_sample() {
        let problem = problem(&[3000, 5], Along::Axis(1), Fold::Sum);
        let drawn = checked(&problem, false, |_| {}).expect("right");
        assert!((2..=DRAWN).contains(&drawn), "{drawn}");
        for at in [1, 1234] {
            let wrong = checked(&problem, false, |bits| bits[0][at] = poison(Elem::F32));
            assert_eq!(wrong, Err(format!("output {at} was not written")));
        }
    }

    #[test]
    fn the_reference_of_long_arrays_is_that_of_others() {
        let folds = Fold::value_variants().iter().filter(|fold| fold.kept() == 1);
        let cases = folds.map(|fold| (*fold, DataType::F32));
        let cases = cases.chain([(Fold::Sum, DataType::I32), (Fold::Sum, DataType::F64)]);
        for (fold, element) in cases {
            let problem = ReductionProblem { element, ..problem(&[2500], Along::Whole, fold) };
            let chosen = KernelChoice::new(&problem).expect("a kernel");
            // The length is two periods and part of a third.
            let tiles = [1, 2].map(|seed| Tile::new(element, seed, 1000));
            let results = Results {
                problem: &problem,
                spec: &chosen.spec,
                tiles: &tiles,
                offsets: None,
                bits: &[],
            };
            let (plan, kind) = (chosen.spec.plan().expect("sound"), Kind::of(&chosen.spec));
            let kind = kind.expect("an operator");
            let values: Vec<Number> = (0..2500).map(|at| results.value(at)).collect();
            let one_by_one = folded(kind, &plan, &values)[0];
            match (results.of_many(&plan, kind, 2500), one_by_one) {
                (Ok(Folded::Between(low, high)), Folded::Between(a, b)) => {
                    let (middle, width) = ((a + b) / 2.0, b - a);
                    assert!(low < middle && middle < high, "{problem}: {low} {middle} {high}");
                    assert!(high - low < 3.0 * width, "{problem}: {low} to {high}, not {a} to {b}");
                }
                (Ok(exact), other) => assert_eq!(exact, other, "{problem}"),
                (Err(_), _) => {
                    assert!(matches!(fold, Fold::MeanVar | Fold::Logsumexp), "{problem}")
                }
            }
        }
    }
}
