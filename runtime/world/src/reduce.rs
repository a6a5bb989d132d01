//! Collective reductions of distributed matrices and arrays.

use super::partials::PartialBuffers;
use super::{Distribution, Rank, Sharded};
use crate::channel::held;
use crate::collective::CollectiveContext;
use crate::partition::MatrixInput;
use crate::rank::OnRank;
use crate::reduction_plan::{CachedReduction, PartialsPlan, ReductionPlan};
use crate::{Error, Result};
use gemm_dsl::ir::{Elem, Extent};
use gemm_dsl::spec::{Over, ReduceSpec};
use gemm_dsl::target::element::Element;
use gemm_runtime::bounds::{Elements, InputsFor, ResultsFor};
use gemm_runtime::internal::load;
use gemm_runtime::internal::{AnyInput, AnyOutput};
use gemm_runtime::internal::{ReduceArrays, fold, fold_partials, fold_shard, reduce as sealed};
use gemm_runtime::{Number, ReduceKernel};
use std::sync::Arc;

/// Valid inputs for the input types `T` of a collective reduction: a reference to a [`Sharded`], or
/// a tuple of two to four such references with the same distribution, with the kernel's numbers
/// after them. All ranks must pass the same numbers.
pub trait ShardedFor<T>: InputsFor<T> {
    #[doc(hidden)]
    fn distributions(&self) -> Vec<&Distribution>;
}

impl<T: Element> ShardedFor<T> for &Sharded<T> {
    fn distributions(&self) -> Vec<&Distribution> {
        vec![self.distribution()]
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl ShardedFor<Number<$number>> for $number {
            fn distributions(&self) -> Vec<&Distribution> {
                Vec::new()
            }
        }
    )*};
}
numbers!(f32, f64, i32, u32, i64);

macro_rules! tuples {
    ($($($of:ident $input:ident $at:tt)*;)*) => {
        $(
            impl<$($of, $input: ShardedFor<$of>),*> ShardedFor<($($of,)*)> for ($($input,)*) {
                fn distributions(&self) -> Vec<&Distribution> {
                    let mut all = Vec::new();
                    $(all.extend(self.$at.distributions());)*
                    all
                }
            }
        )*
    };
}
tuples! {
    S A 0 T B 1;
    S A 0 T B 1 U C 2;
    S A 0 T B 1 U C 2 V D 3;
    S A 0 T B 1 U C 2 V D 3 W E 4;
    S A 0 T B 1 U C 2 V D 3 W E 4 X F 5;
    S A 0 T B 1 U C 2 V D 3 W E 4 X F 5 Y G 6;
    S A 0 T B 1 U C 2 V D 3 W E 4 X F 5 Y G 6 Z H 7;
}

/// Reduction on all ranks, created by [`OnRank::on`].
///
/// A rank that has all elements of a result folds them as a single device does. The elements of a
/// result may also be spread over ranks, as for a distributed array or for rows with distributed
/// columns. The kernel then needs the key [`run`](gemm_dsl::spec::ReduceSpec): each rank folds its
/// runs of `run` elements, and each run leaves one partial result. Every rank with a part of a
/// result receives the partial results of all runs of this result. The result therefore has the
/// same bits as on one device, for any distribution of the runs.
///
/// ```
/// use gemm_world::{OnRank, Distribution, World};
/// use gemm_runtime::{Device, ReduceKernel, reduce_kernel};
///
/// const SUM: ReduceKernel = reduce_kernel!(op: sum, block: 32, run: 64);
/// const LARGEST: ReduceKernel<f32, u32> = reduce_kernel!(op: argmax, over: rows);
///
/// let x: Vec<f32> = (0..1000).map(|i| 1.0 / (1 + i) as f32).collect();
/// // An array is a matrix of one row, here distributed by columns, cut at multiples of a run.
/// let distribution: Distribution = "1x1000 cols/64".parse()?;
/// let sums = World::simulated(3)?.run(|rank| {
///     let x = rank.upload(&distribution, &x)?;
///     SUM.on(rank).run(&x)
/// })?;
/// assert_eq!(sums, [SUM.run(&Device::simulator(), &x)?; 3]);
///
/// // Each rank has whole rows, so nothing is exchanged.
/// let largest = World::simulated(2)?.run(|rank| {
///     let rows = rank.upload(&Distribution::rows(4, 250), &x)?;
///     let mut largest = rank.device().alloc_of(2)?;
///     LARGEST.on(rank).launch(&rows, &mut largest)?;
///     Ok(rank.device().download(&largest)?)
/// })?;
/// assert_eq!(largest, [[0, 0], [0, 0]]);
/// # Ok::<(), gemm_world::Error>(())
/// ```
#[must_use = "nothing is computed before `launch`"]
pub struct ShardedReduce<'a, T, R> {
    kernel: &'a ReduceKernel<T, R>,
    rank: &'a mut Rank,
    extents: Option<[usize; 3]>,
}

impl<T, R> OnRank for ReduceKernel<T, R> {
    type Call<'a>
        = ShardedReduce<'a, T, R>
    where
        Self: 'a;

    fn on<'a>(&'a self, rank: &'a mut Rank) -> Self::Call<'a> {
        ShardedReduce { kernel: self, rank, extents: None }
    }
}

impl<T, R: Elements> ShardedReduce<'_, T, R> {
    /// Returns the single result of an `over: all` kernel, on every rank.
    ///
    /// # Errors
    /// Returns the errors of [`launch`](Self::launch), and
    /// [`Error::WrongOver`](gemm_runtime::Error::WrongOver) for any other kernel.
    pub fn run<I: ShardedFor<T>>(self, inputs: I) -> Result<R> {
        let spec: ReduceSpec = self.kernel.spec_line().parse()?;
        if spec.over != Over::All {
            return Err(Error::Device(gemm_runtime::Error::WrongOver {
                over: spec.over,
                found: "a matrix for a single result".to_owned(),
                remedy: "Call `launch`, with arrays for the results",
            }));
        }
        let device = self.rank.device().clone();
        let mut results = R::alloc(&device, 1)?;
        let mut borrowed = R::outputs(&mut results);
        let mut erased: Vec<_> = borrowed.iter_mut().map(|one| AnyOutput(&mut **one)).collect();
        let channel = Arc::clone(&self.rank.channel);
        self.fold(&inputs, &mut erased)?;
        drop(erased);
        drop(borrowed);
        let result = R::first(&R::download(&device, &results)?);
        // If a rank was lost, the device's work may have ended early, without a valid result.
        held(&*channel, "folding")?;
        result.ok_or_else(|| Error::internal("a result is missing".to_owned()))
    }
}

impl<T, R> ShardedReduce<'_, T, R> {
    /// Sets the extents `[outer, middle, inner]` of an array, for an `over: middle` kernel. The
    /// array can be distributed as one of two matrices:
    ///
    /// * A matrix of outer·middle rows of inner elements. Its rows must be cut at multiples of
    ///   `middle`. Its columns may be cut anywhere.
    /// * A matrix of outer rows of middle·inner elements. Its rows may be cut anywhere. Its columns
    ///   must be cut at multiples of `inner`, between runs of the middle axis.
    ///
    /// If `middle` is 1, both are the same matrix, and the rules of the first form apply. If
    /// `middle` is 0, only the second form is valid.
    ///
    /// ```
    /// use gemm_world::{OnRank, Distribution, World};
    /// use gemm_runtime::{Device, MatrixRef, ReduceKernel, reduce_kernel};
    ///
    /// const SUM: ReduceKernel = reduce_kernel!(over: middle, block: 32, group: 4, run: 8);
    ///
    /// // Two matrices of 24 rows and 5 columns. Each rank has 8 rows of both.
    /// let [outer, middle, inner] = [2, 24, 5];
    /// let x: Vec<f32> = (0..outer * middle * inner).map(|i| 1.0 / (1 + i) as f32).collect();
    /// let distribution: Distribution = "2x120 cols/40".parse()?;
    /// let sums = World::simulated(3)?.run(|rank| {
    ///     let x = rank.upload(&distribution, &x)?;
    ///     let mut sums = rank.device().alloc(outer * inner)?;
    ///     SUM.on(rank).extents([outer, middle, inner]).launch(&x, &mut sums)?;
    ///     Ok(rank.device().download(&sums)?)
    /// })?;
    ///
    /// let device = Device::simulator();
    /// let (x, mut whole) = (device.upload(&x)?, device.alloc(outer * inner)?);
    /// SUM.launch(&device, &MatrixRef::batch(&x, outer, middle, inner)?, &mut whole)?;
    /// assert_eq!(sums, vec![device.download(&whole)?; 3]);
    /// # Ok::<(), gemm_world::Error>(())
    /// ```
    pub fn extents(mut self, extents: [usize; 3]) -> Self {
        self.extents = Some(extents);
        self
    }

    /// Folds inputs with equal distributions into arrays on this rank's device. A rank's results
    /// belong to:
    ///
    /// * the rows of which it has a part, for `over: rows`,
    /// * the columns of which it has a part, for `over: columns`,
    /// * the columns of each matrix of which it has a part, for `over: middle`,
    /// * the whole array, for `over: all`.
    ///
    /// # Errors
    /// * [`WorldError::Mismatch`](super::WorldError::Mismatch) on every rank if ranks disagree on
    ///   the kernel or the distribution.
    /// * [`WorldError::Unrun`](super::WorldError::Unrun) if the elements of a result are spread
    ///   over ranks, but the kernel has no `run`.
    /// * [`WorldError::CutRun`](super::WorldError::CutRun) if a rank's part ends within a run.
    /// * [`WorldError::Impossible`](super::WorldError::Impossible) for an `over: segments` kernel,
    ///   for inputs with different distributions, or for array elements that are not contiguous on
    ///   a rank.
    /// * [`WorldError::Impossible`](super::WorldError::Impossible) for [`extents`](Self::extents)
    ///   that do not match the distributed matrix or its cuts.
    /// * [`WorldError::RankLost`](super::WorldError::RankLost) if another rank fails.
    /// * The errors of [`ReduceKernel::launch`].
    pub fn launch<I, O>(self, inputs: I, mut results: O) -> Result<()>
    where
        I: ShardedFor<T>,
        O: ResultsFor<R>,
    {
        self.fold(&inputs, &mut sealed::Writes::arrays(&mut results))
    }

    fn fold<I: ShardedFor<T>>(self, inputs: &I, results: &mut [AnyOutput<'_>]) -> Result<()> {
        let Self { kernel, rank, extents } = self;
        let (line, distributions) = (kernel.spec_line(), inputs.distributions());
        let collective = rank.collective("folding");
        let known = rank.folds.take(|known| known.is(line, &distributions, extents));
        let known = known.map_or_else(|| CachedReduction::parse(line, &distributions, extents), Ok);
        let mut known = collective.telling(known)?;
        let given = sealed::Reads::arrays(inputs);
        let numbers = sealed::Reads::numbers(inputs);
        let names = known.spec.numbers().into_iter().map(|(name, _)| name.to_owned());
        let names: Vec<String> = names.collect();
        let named = names.iter().zip(&numbers).map(|(name, (_, bits))| (name.as_str(), *bits));
        let named: Vec<(&str, u64)> = named.collect();
        let given = GivenInputs { arrays: &given, numbers: &numbers, named: &named };
        // If the plan is cached, the rank folds its runs while the ranks compare their calls.
        let early = known.cut.as_ref().map(|cut| cut.runs(rank, line, &given)).transpose();
        let early = collective.telling(early)?.flatten();
        let text = if named.is_empty() { String::new() } else { format!("{named:?}") };
        let mut said = vec![("the reduction", known.text.as_str())];
        said.extend(Some(("the numbers", text.as_str())).filter(|_| !named.is_empty()));
        let is_loaded = collective.agree_on(&said, known.is_loaded)?;
        let cut = known.agreed(rank.ranks())?;
        if cut.partials.is_none() {
            // Each rank has all elements of its results, so no rank waits for this one.
            cut.whole(rank, kernel, &given, results)?;
        } else {
            let partials = match early {
                None => collective.telling(cut.runs(rank, line, &given))?,
                early => early,
            };
            let folded =
                cut.gathered(rank, &collective, is_loaded, (line, &named), partials, results);
            collective.telling(folded)?;
        }
        known.is_loaded = true;
        rank.folds.keep(known);
        Ok(())
    }
}

/// Arguments of a collective reduction on one rank.
struct GivenInputs<'g, 'a> {
    arrays: &'g [AnyInput<'a>],
    /// Types and bits of the numbers.
    numbers: &'g [(Elem, u64)],
    /// Names and bits of the numbers.
    named: &'g [(&'g str, u64)],
}

impl ReductionPlan {
    /// Folds the results whose elements are all on this rank.
    fn whole<T, R>(
        &self,
        rank: &Rank,
        kernel: &ReduceKernel<T, R>,
        given: &GivenInputs<'_, '_>,
        results: &mut [AnyOutput<'_>],
    ) -> Result<()> {
        if self.partition.of_ranks[rank.number()].is_idle() {
            return Ok(());
        }
        let device = rank.device();
        let parts = self.parts(given.arrays);
        let inputs = &arrays(&parts, given.arrays);
        let numbers = given.numbers;
        let given = ReduceArrays { inputs, numbers, segments: None, outputs: results };
        fold(device, &kernel.prepare(device)?, given)?;
        Ok(())
    }

    /// Folds this rank's runs into partials, if the elements of results are spread over ranks.
    fn runs(
        &self,
        rank: &mut Rank,
        line: &str,
        given: &GivenInputs<'_, '_>,
    ) -> Result<Option<PartialBuffers>> {
        let Some(PartialsPlan { elems, has, needed }) = &self.partials else { return Ok(None) };
        let (number, device) = (rank.number(), rank.device().clone());
        let (own, mine, all) = (&self.partition.of_ranks[number], &has[number], &needed[number]);
        let mut partials =
            PartialBuffers::reuse_or_alloc(rank.partials.take(), &device, elems, [mine, all])?;
        if !mine.is_empty() {
            let (first, total) = (own.folded.start as u64, self.partition.total as u64);
            let parts = self.parts(given.arrays);
            fold_shard(
                &device,
                line,
                (&arrays(&parts, given.arrays), given.named),
                &mut partials.outputs(),
                first,
                total,
            )?;
        }
        Ok(Some(partials))
    }

    /// Exchanges partials, and folds the partials of this rank's results.
    fn gathered(
        &self,
        rank: &mut Rank,
        collective: &CollectiveContext,
        is_loaded: bool,
        (line, numbers): (&str, &[(&str, u64)]),
        partials: Option<PartialBuffers>,
        results: &mut [AnyOutput<'_>],
    ) -> Result<()> {
        let (Some(partials), Some(PartialsPlan { elems, has, needed })) =
            (partials, &self.partials)
        else {
            return Err(Error::internal("the owners of the partials are unknown".to_owned()));
        };
        let device = rank.device().clone();
        if !is_loaded {
            // Kernels are loaded before the exchange, since loading could block it.
            load(&device, &*device.programs().of_partials(line)?)?;
            rank.links.all_ready(collective)?;
        }
        let (own, total) = (&self.partition.of_ranks[rank.number()], self.partition.total as u64);
        let (outer, inner) = (own.outer.len() as u64, own.inner.len() as u64);
        let extents = [(Extent::OUTER, outer), (Extent::LENGTH, total), (Extent::INNER, inner)];
        for (nth, part) in partials.parts().enumerate() {
            let collective = rank.collective("gathering partials");
            let is_last = nth + 1 == elems.len();
            // Folds after the last component has arrived.
            let mut then = || {
                if is_last && !own.is_idle() {
                    let inputs = (&*partials.inputs(), numbers);
                    fold_partials(&device, line, inputs, results, extents)?;
                }
                Ok(())
            };
            part.exchange(&device, &rank.links, &collective, [has, needed], &mut then)?;
        }
        rank.partials = Some(partials);
        Ok(())
    }

    /// Returns the inputs as batches of matrices, for `over: middle`. Empty for other reductions.
    fn parts<'i>(&self, given: &[AnyInput<'i>]) -> Vec<MatrixInput<'i>> {
        let part = |matrices| given.iter().map(move |of| MatrixInput { of: *of, matrices });
        self.partition.matrices.into_iter().flat_map(part).collect()
    }
}

/// Returns the arrays to fold: the batches of matrices, if any, else the inputs.
fn arrays<'p>(parts: &'p [MatrixInput<'_>], given: &[AnyInput<'p>]) -> Vec<AnyInput<'p>> {
    match parts.is_empty() {
        true => given.to_vec(),
        false => parts.iter().map(|part| AnyInput(part)).collect(),
    }
}
