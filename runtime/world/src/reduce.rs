//! Reductions of matrices that are dealt out.

use super::partials::PartialBuffers;
use super::{Distribution, Rank, Sharded};
use crate::channel::held;
use crate::collective::CollectiveContext;
use crate::partition::MatrixInput;
use crate::rank::OnRank;
use crate::reduction_plan::{CachedReduction, PartialsPlan, ReductionPlan};
use crate::{Error, Result};
use gemm_dsl::ir::Extent;
use gemm_dsl::spec::{Over, ReduceSpec};
use gemm_dsl::target::element::Element;
use gemm_runtime::ReduceKernel;
use gemm_runtime::internal::load;
use gemm_runtime::internal::{AnyInput, AnyOutput};
use gemm_runtime::internal::{ReduceArrays, fold, fold_partials, fold_shard, reduce as sealed};
use gemm_runtime::{Elements, InputsFor, ResultsFor};
use std::sync::Arc;

/// What may be given for the inputs `T` of a reduction on all ranks: a reference to a [`Sharded`], or a tuple of two to four
/// of them, which are dealt out alike.
pub trait ShardedFor<T>: InputsFor<T> {
    #[doc(hidden)]
    fn distributions(&self) -> Vec<&Distribution>;
}

impl<T: Element> ShardedFor<T> for &Sharded<T> {
    fn distributions(&self) -> Vec<&Distribution> {
        vec![self.distribution()]
    }
}

macro_rules! tuples {
    ($(($($at:tt)*) $ty:ty, $of:ty;)*) => {
        $(
            impl<T: Element> ShardedFor<$ty> for $of {
                fn distributions(&self) -> Vec<&Distribution> {
                    vec![$(self.$at.distribution()),*]
                }
            }
        )*
    };
}
tuples! {
    (0 1) (T, T), (&Sharded<T>, &Sharded<T>);
    (0 1 2) (T, T, T), (&Sharded<T>, &Sharded<T>, &Sharded<T>);
    (0 1 2 3) (T, T, T, T), (&Sharded<T>, &Sharded<T>, &Sharded<T>, &Sharded<T>);
}

/// A reduction on all ranks, made by [`OnRank::on`].
///
/// Where a rank has all elements of a result it folds them as one device does. Where it has some, as of an array that is dealt
/// out or of rows whose columns are, the kernel folds [runs](gemm_dsl::spec::ReduceSpec): each rank those that it has, which
/// leave a partial each, and whoever has a part of a result is sent the partials of all its runs. So the bits are those of one
/// device, whoever has which runs.
///
/// ```
/// use gemm_world::{OnRank, Distribution, World};
/// use gemm_runtime::{Device, ReduceKernel, reduce_kernel};
///
/// const SUM: ReduceKernel = reduce_kernel!(op: sum, block: 32, run: 64);
/// const LARGEST: ReduceKernel<f32, u32> = reduce_kernel!(op: argmax, over: rows);
///
/// let x: Vec<f32> = (0..1000).map(|i| 1.0 / (1 + i) as f32).collect();
/// // An array is a matrix of one row, cut between runs.
/// let distribution: Distribution = "1x1000 cols/64".parse()?;
/// let sums = World::simulated(3)?.run(|rank| {
///     let x = rank.upload(&distribution, &x)?;
///     SUM.on(rank).run(&x)
/// })?;
/// assert_eq!(sums, [SUM.run(&Device::simulator(), &x)?; 3]);
///
/// // Whole rows stay where they are, and so do their results.
/// let largest = World::simulated(2)?.run(|rank| {
///     let rows = rank.upload(&Distribution::rows(4, 250), &x)?;
///     let mut largest = rank.device().alloc_of(2)?;
///     LARGEST.on(rank).launch(&rows, &mut largest)?;
///     Ok(rank.device().download(&largest)?)
/// })?;
/// assert_eq!(largest, [[0, 0], [0, 0]]);
/// # Ok::<(), gemm_world::Error>(())
/// ```
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
    /// The one result of a kernel `over: all`, at every rank.
    ///
    /// # Errors
    /// Those of [`launch`](Self::launch); [`Error::WrongOver`](gemm_runtime::Error::WrongOver) of another kernel.
    pub fn run<I: ShardedFor<T>>(self, inputs: I) -> Result<R> {
        let spec: ReduceSpec = self.kernel.spec_line().parse()?;
        if spec.over != Over::All {
            return Err(Error::Device(gemm_runtime::Error::WrongOver {
                over: spec.over,
                found: "a matrix of which one result is wanted".to_owned(),
                remedy: "Call `launch`, with arrays for the results",
            }));
        }
        let device = self.rank.device().clone();
        let results = (0..R::COUNT).map(|_| device.alloc_of::<R::One>(1));
        let mut results = results.collect::<gemm_runtime::Result<Vec<_>>>()?;
        let mut borrowed: Vec<_> = results.iter_mut().collect();
        let mut erased: Vec<_> = borrowed.iter_mut().map(|one| AnyOutput(one)).collect();
        let channel = Arc::clone(&self.rank.channel);
        self.fold(&inputs, &mut erased)?;
        let arrays = results.iter().map(|one| device.download(one));
        let arrays = arrays.collect::<gemm_runtime::Result<Vec<_>>>()?;
        // What the results are of may have ended with the loss of a rank.
        held(&*channel, "folding")?;
        let result = R::vecs(arrays).and_then(|vecs| R::first(&vecs));
        result.ok_or_else(|| Error::internal("a result is missing".to_owned()))
    }
}

impl<T, R> ShardedReduce<'_, T, R> {
    /// The reduction of an array of `[outer, middle, inner]` elements, for a kernel `over: middle`. It is dealt out as a matrix: one
    /// of outer·middle rows of inner elements, which is cut between matrices, at multiples of `middle`, and anywhere along the
    /// inner axis; or one of outer rows of middle·inner elements, which is cut anywhere along the outer axis, and along the middle
    /// one at multiples of `inner`, there between runs. Where `middle` is 1 these are the same matrix, and it is the first one;
    /// where it is 0 it is the second one.
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
    #[must_use]
    pub fn extents(mut self, extents: [usize; 3]) -> Self {
        self.extents = Some(extents);
        self
    }

    /// Folds matrices that are dealt out alike into arrays of this rank's device. The results of a rank are those of the rows
    /// that it has a part of, where rows are folded, of the columns, where these are, of the columns of each matrix, where
    /// those of several are, and the one of a whole array.
    ///
    /// # Errors
    /// * [`WorldError::Mismatch`](super::WorldError::Mismatch) on every rank where they are at odds over the kernel or the layout.
    /// * [`WorldError::Unrun`](super::WorldError::Unrun) where ranks have parts of what becomes one result, and the kernel has no `run`.
    /// * [`WorldError::CutRun`](super::WorldError::CutRun) where such a part ends within a run.
    /// * [`WorldError::Impossible`](super::WorldError::Impossible) for inputs that are dealt out in several ways, for a kernel `over: segments`, for elements of an
    ///   array that do not follow one another on a rank, and for [`extents`](Self::extents) of which the matrix that is dealt out
    ///   is none, or that it cuts otherwise.
    /// * [`WorldError::RankLost`](super::WorldError::RankLost), and those of [`ReduceKernel::launch`].
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
        // A rank that knows what it has folds it while it asks whether the others are at the same.
        let early = known.cut.as_ref().map(|cut| cut.runs(rank, line, &given)).transpose();
        let early = collective.telling(early)?.flatten();
        let is_loaded = collective.agree_on(&[("the reduction", &known.text)], known.is_loaded)?;
        let cut = known.agreed(rank.ranks())?;
        if cut.partials.is_none() {
            // Each rank has all that it folds, so that nobody waits for it.
            cut.whole(rank, kernel, &given, results)?;
        } else {
            let partials = match early {
                None => collective.telling(cut.runs(rank, line, &given))?,
                early => early,
            };
            let folded = cut.gathered(rank, &collective, is_loaded, line, partials, results);
            collective.telling(folded)?;
        }
        known.is_loaded = true;
        rank.folds.keep(known);
        Ok(())
    }
}

impl ReductionPlan {
    /// Folds what this rank has all of.
    fn whole<T, R>(
        &self,
        rank: &Rank,
        kernel: &ReduceKernel<T, R>,
        given: &[AnyInput<'_>],
        results: &mut [AnyOutput<'_>],
    ) -> Result<()> {
        if self.partition.of_ranks[rank.number()].is_idle() {
            return Ok(());
        }
        let device = rank.device();
        let parts = self.parts(given);
        let inputs = &arrays(&parts, given);
        fold(
            device,
            &kernel.prepare(device)?,
            ReduceArrays { inputs, segments: None, outputs: results },
        )?;
        Ok(())
    }

    /// Folds the runs that this rank has into partials, where ranks have parts of what becomes one result.
    fn runs(
        &self,
        rank: &mut Rank,
        line: &str,
        given: &[AnyInput<'_>],
    ) -> Result<Option<PartialBuffers>> {
        let Some(PartialsPlan { elems, has, needed }) = &self.partials else { return Ok(None) };
        let (number, device) = (rank.number(), rank.device().clone());
        let (own, mine, all) = (&self.partition.of_ranks[number], &has[number], &needed[number]);
        let mut partials =
            PartialBuffers::reuse_or_alloc(rank.partials.take(), &device, elems, [mine, all])?;
        if !mine.is_empty() {
            let (first, total) = (own.folded.start as u64, self.partition.total as u64);
            let parts = self.parts(given);
            fold_shard(
                &device,
                line,
                &arrays(&parts, given),
                &mut partials.outputs(),
                first,
                total,
            )?;
        }
        Ok(Some(partials))
    }

    /// Gathers partials, and folds those of this rank's results.
    fn gathered(
        &self,
        rank: &mut Rank,
        collective: &CollectiveContext,
        is_loaded: bool,
        line: &str,
        partials: Option<PartialBuffers>,
        results: &mut [AnyOutput<'_>],
    ) -> Result<()> {
        let (Some(partials), Some(PartialsPlan { elems, has, needed })) =
            (partials, &self.partials)
        else {
            return Err(Error::internal("nobody knows who has what".to_owned()));
        };
        let device = rank.device().clone();
        if !is_loaded {
            // Nothing is loaded while partials are under way.
            load(&device, &*device.programs().of_partials(line)?)?;
            rank.links.all_ready(collective)?;
        }
        let (own, total) = (&self.partition.of_ranks[rank.number()], self.partition.total as u64);
        let (outer, inner) = (own.outer.len() as u64, own.inner.len() as u64);
        let extents = [(Extent::OUTER, outer), (Extent::LENGTH, total), (Extent::INNER, inner)];
        for (nth, part) in partials.parts().enumerate() {
            let collective = rank.collective("gathering partials");
            let is_last = nth + 1 == elems.len();
            // When those of all parts are there.
            let mut then = || {
                if is_last && !own.is_idle() {
                    fold_partials(&device, line, &partials.inputs(), results, extents)?;
                }
                Ok(())
            };
            part.exchange(&device, &rank.links, &collective, [has, needed], &mut then)?;
        }
        rank.partials = Some(partials);
        Ok(())
    }

    /// The inputs as matrices, where their columns are folded.
    fn parts<'i>(&self, given: &[AnyInput<'i>]) -> Vec<MatrixInput<'i>> {
        let part = |matrices| given.iter().map(move |of| MatrixInput { of: *of, matrices });
        self.partition.matrices.into_iter().flat_map(part).collect()
    }
}

/// What is folded: the inputs as they are given, or as matrices where they are such.
fn arrays<'p>(parts: &'p [MatrixInput<'_>], given: &[AnyInput<'p>]) -> Vec<AnyInput<'p>> {
    match parts.is_empty() {
        true => given.to_vec(),
        false => parts.iter().map(|part| AnyInput(part)).collect(),
    }
}
