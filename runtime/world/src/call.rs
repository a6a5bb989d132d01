//! GEMM calls on distributed matrices.

use super::Distribution;
use super::kernels::Kernels;
use super::{Estimate, Rank, ScheduleChoice, Sharded, Strategy, VerifiedSchedule};
use crate::Result;
use crate::execution::{Multiplies, ProductPart, ShardedProduct, follow};
use crate::rank::OnRank;
use crate::selection::{CachedGemm, CallOptions, ProductRequest, Selection};
use gemm_dsl::spec::GemmLayout;
use gemm_dsl::tables::SgemmShape;
use gemm_runtime::ByName;
use gemm_runtime::LaunchReport;
use gemm_runtime::bounds::{Named, Operands, OperandsFor};
use gemm_runtime::{Sgemm, SgemmTable};
use std::borrow::Cow;
use std::sync::Arc;

/// Call of a kernel or of a table on all ranks, created by [`OnRank::on`].
///
/// Each rank computes the elements of C that it keeps, over all of K. Missing parts of A and B
/// arrive from other ranks while the rank multiplies the parts that it already has. The bits of C
/// therefore do not depend on the number of ranks or on the distributions of the matrices.
///
/// ```
/// use gemm_world::{Distribution, OnRank, World};
/// use gemm_runtime::{SgemmKernel, sgemm_kernel};
///
/// const GEMM: SgemmKernel = sgemm_kernel!(tile: 16x16x8, thread: 2x2);
///
/// let (m, n, k) = (20, 24, 9);
/// let product = World::simulated(3)?.run(|rank| {
///     let a = rank.upload(&Distribution::rows(m, k), &vec![1.0; m * k])?;
///     let b = rank.upload(&Distribution::cols(k, n), &vec![2.0; k * n])?;
///     let mut c = rank.alloc(&Distribution::cols(m, n))?;
///     GEMM.on(rank).launch(&a, &b, &mut c)?;
///     rank.gather(&c, 0)
/// })?;
/// assert_eq!(product[0], Some(vec![18.0; m * n]));
/// # Ok::<(), gemm_world::Error>(())
/// ```
#[must_use = "nothing is computed before `launch`"]
pub struct ShardedCall<'a, E = (), O = ()> {
    what: What<'a, E>,
    rank: &'a mut Rank,
    given: O,
    strategy: Option<Strategy>,
    lies: Option<GemmLayout>,
}

pub(crate) enum What<'a, E> {
    Kernel(&'a Sgemm<E>),
    Table(&'a SgemmTable<E>),
}

/// Report of a GEMM on all ranks.
#[derive(Debug)]
#[non_exhaustive]
pub struct ShardedLaunch {
    /// Spec of the kernel: the same on all ranks and for all parts.
    pub line: String,
    /// Exchanges and multiplications of all ranks.
    pub schedule: Arc<VerifiedSchedule>,
    /// Candidate strategies, each with its predicted time. `None` if the caller chose the
    /// [strategy](ShardedCall::strategy).
    pub chosen: Option<Arc<ScheduleChoice>>,
    /// Predicted time of the schedule on the machine model of the world, in the kernel's
    /// arithmetic.
    pub estimate: Estimate,
    /// Launches of this rank in order, one for each part of its share of C.
    pub launches: Vec<LaunchReport>,
}

/// A and B are stored in the kernel's `layout`. Under `nt`, for example, the distributed matrix is
/// the transpose of B, N x K.
impl<E: Operands<A = f32, B = f32, C = f32>> OnRank for Sgemm<E> {
    type Call<'a>
        = ShardedCall<'a, E, E::Unset<'a>>
    where
        Self: 'a;

    fn on<'a>(&'a self, rank: &'a mut Rank) -> Self::Call<'a> {
        ShardedCall::new(What::Kernel(self), rank)
    }
}

/// The rule is chosen for the whole GEMM with packed matrices. All parts use this rule, for any
/// number of ranks. A and B are row-major, M x K and K x N, unless [`ShardedCall::layout`] sets
/// another layout.
impl<E: Operands> OnRank for SgemmTable<E> {
    type Call<'a>
        = ShardedCall<'a, E, E::Unset<'a>>
    where
        Self: 'a;

    fn on<'a>(&'a self, rank: &'a mut Rank) -> Self::Call<'a> {
        ShardedCall::new(What::Table(self), rank)
    }
}

impl<'a, E: Operands> ShardedCall<'a, E, E::Unset<'a>> {
    fn new(what: What<'a, E>, rank: &'a mut Rank) -> Self {
        Self { what, rank, given: E::Unset::default(), strategy: None, lies: None }
    }
}

impl<'a, E, O> ShardedCall<'a, E, O> {
    /// Splits the call into callee, rank and options.
    pub(crate) fn parts(self) -> (What<'a, E>, &'a mut Rank, CallOptions) {
        (self.what, self.rank, CallOptions { lies: self.lies, strategy: self.strategy })
    }
}

impl<'a, E> ShardedCall<'a, E> {
    /// Sets all epilogue operands of the kernel as a tuple, in the kernel's order. Pass each
    /// array's part for this rank's share of C: `bias[n]` has an element for each column of the
    /// share, `scale[m]` an element for each row, and `residual[m, n]` the extents of the share.
    /// Scalars must be the same on all ranks.
    pub fn operands<O: OperandsFor<E>>(self, operands: O) -> ShardedCall<'a, E, O> {
        let Self { what, rank, strategy, lies, .. } = self;
        ShardedCall { what, rank, given: operands, strategy, lies }
    }
}

impl<'a> ShardedCall<'a, ByName, Named<'a>> {
    /// Sets one epilogue operand by name: a scalar, or a reference to this rank's part of an array,
    /// as for [`operands`](ShardedCall::operands).
    pub fn operand(
        mut self,
        name: &str,
        given: impl gemm_runtime::bounds::AnyOperand + 'a,
    ) -> Self {
        self.given.push(name, given);
        self
    }
}

impl<E: Operands, O: OperandsFor<E>> ShardedCall<'_, E, O> {
    /// Sets the strategy by which missing parts of A and B reach the ranks. The default is the
    /// strategy with the shortest predicted time. `f16x3` under `mma: wgmma` scales whole rows of A
    /// and whole columns of B. A rank that has only parts of such rows or columns receives the rest
    /// before it multiplies anything, under any strategy.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = Some(strategy);
        self
    }

    /// Sets the layout in which A and B are stored. `nt`, for example, stands for A as M x K and
    /// the transpose of B as N x K. A rule of a table accepts any layout. For a kernel, only the
    /// layout of its spec is valid.
    ///
    /// ```
    /// use gemm_runtime::spec;
    /// use gemm_world::{Distribution, OnRank, World};
    /// use gemm_runtime::{SgemmTable, sgemm_table};
    ///
    /// const GEMM: SgemmTable = sgemm_table! {
    ///     nt && m >= 16 => tile: 16x16x8, thread: 4x4;
    ///     else => tile: 16x16x8, thread: 2x2;
    /// };
    ///
    /// let (m, n, k) = (20, 24, 9);
    /// let lines = World::simulated(3)?.run(|rank| {
    ///     let a = rank.upload(&Distribution::rows(m, k), &vec![1.0; m * k])?;
    ///     let transpose_of_b = rank.upload(&Distribution::rows(n, k), &vec![2.0; n * k])?;
    ///     let mut c = rank.alloc(&Distribution::cols(m, n))?;
    ///     let layout = spec::GemmLayout::Nt;
    ///     let launch = GEMM.on(rank).layout(layout).launch(&a, &transpose_of_b, &mut c)?;
    ///     assert!(rank.gather(&c, 0)?.is_none_or(|c| c == vec![18.0; m * n]));
    ///     Ok(launch.line)
    /// })?;
    /// assert_eq!(lines, ["layout: nt, tile: 16x16x8, thread: 4x4"; 3]);
    /// # Ok::<(), gemm_world::Error>(())
    /// ```
    pub fn layout(mut self, layout: GemmLayout) -> Self {
        self.lies = Some(layout);
        self
    }

    /// Computes C = A·B, or the kernel's epilogue of it. On GPUs the call returns before the work
    /// is complete; later work of the device is ordered after this work.
    ///
    /// Pass each matrix as it is stored and distributed. Under `layout: nt` and `tt`, pass the
    /// transpose of B, N x K. Under `tn` and `tt`, pass the transpose of A, K x M. If the columns
    /// of B are distributed, for example, pass a transpose whose rows are distributed:
    /// `Distribution::rows(n, k)`. C is row-major. The schedule describes A and B themselves, not
    /// their transposes.
    ///
    /// The rows that a rank multiplies may have gaps between them: a rank may multiply some columns
    /// of a matrix that it stores as a whole. A kernel without `pitched` is then compiled with
    /// `pitched`. For kernels with `lanes: k`, `partials` or `slices`, `pitched` would change the
    /// order of summation. Such a kernel returns
    /// [`WorldError::Unpitched`](super::WorldError::Unpitched) instead.
    ///
    /// # Errors
    /// * [`WorldError::Mismatch`](super::WorldError::Mismatch) on every rank if ranks disagree on
    ///   the kernel, the layouts, the strategy, the scalar operands, the memory limit or the
    ///   machine model.
    /// * [`WorldError::Schedule`](super::WorldError::Schedule) if the distributions do not belong
    ///   to one GEMM on this number of ranks, or if no strategy fits in memory.
    /// * [`WorldError::Impossible`](super::WorldError::Impossible) if the kernel's layout differs
    ///   from [`layout`](Self::layout).
    /// * [`WorldError::Divided`](super::WorldError::Divided) if the kernel's bits depend on the
    ///   division of the GEMM among ranks.
    /// * [`WorldError::Unpitched`](super::WorldError::Unpitched) if the kernel's bits depend on
    ///   `pitched`, and some rank needs it `pitched`.
    /// * [`WorldError::RankLost`](super::WorldError::RankLost) if another rank fails.
    /// * Any error of a launch of a part. The other ranks then return
    ///   [`WorldError::RankLost`](super::WorldError::RankLost).
    pub fn launch(self, a: &Sharded, b: &Sharded, c: &mut Sharded) -> Result<ShardedLaunch> {
        let Self { what, rank, mut given, strategy, lies } = self;
        for (name, of) in [("a", a), ("b", b), ("c", &*c)] {
            rank.check_device(name, of.matrix().buffer().device())?;
        }
        let collective = rank.collective("multiplying");
        let distributions = [a.distribution(), b.distribution(), c.distribution()];
        let said = CallOptions { lies, strategy };
        let product = match &what {
            What::Kernel(kernel) => {
                let line = kernel.spec_line();
                known(rank, &ProductRequest { line, is_from_table: false, distributions, said })
            }
            What::Table(table) => row(table, rank, distributions, lies).and_then(|line| {
                let (line, is_from_table) = (line.as_str(), true);
                known(rank, &ProductRequest { line, is_from_table, distributions, said })
            }),
        };
        let mut known = collective.telling(product)?;
        let numbers =
            collective.telling(given.give_all(&known.spec.operands()))?.numbers().to_vec();
        let bits: Vec<u32> = numbers.iter().map(|number| number.to_bits()).collect();
        let [product, chosen_by] = &known.texts;
        let chosen_by = match numbers.is_empty() {
            true => Cow::Borrowed(chosen_by),
            false => Cow::Owned(format!("{numbers:?} {bits:?} {chosen_by}")),
        };
        let agreed =
            [("the GEMM", product.as_str()), ("the values that determine the kernel", &chosen_by)];
        let is_ready = known.is_loaded && known.has_staging(&rank.staging, rank.number());
        let all_are_ready = collective.agree_on(&agreed, is_ready)?;
        let Selection { schedule, chosen, estimate, asks_late } = known.selection(rank.ranks())?;
        let mut work = || -> Result<_> {
            let kernels = Kernels::new(rank, &collective, &known, a, b, c, asks_late)?;
            let is_ready = all_are_ready && !kernels.are_others();
            let mut parts = ProductParts { kernels, given: &mut given, launches: Vec::new() };
            let product =
                ShardedProduct { schedule: &schedule, transposition: known.transposition, a, b, c };
            follow(rank, &collective, product, &mut parts, is_ready)?;
            let programs = parts.kernels.programs();
            rank.splits = parts.kernels.into_splits();
            Ok((parts.launches, programs))
        };
        let made = work();
        let (launches, programs) = collective.telling(made)?;
        let line = known.line.clone();
        known.is_loaded = true;
        known.kernels = programs.or(known.kernels);
        rank.products.keep(known);
        Ok(ShardedLaunch { line, schedule, chosen, estimate, launches })
    }
}

/// The parts of a GEMM that this rank multiplies, with the kernels for them.
struct ProductParts<'k, E, O> {
    kernels: Kernels<'k, E>,
    given: &'k mut O,
    launches: Vec<LaunchReport>,
}

impl<E: Operands, O: OperandsFor<E>> Multiplies for ProductParts<'_, E, O> {
    fn ready(&mut self, part: &ProductPart<'_>) -> Result<()> {
        self.kernels.ready(part)
    }

    fn asks(&self) -> bool {
        self.kernels.asks()
    }

    fn ask(&mut self) -> Result<()> {
        self.kernels.ask()
    }

    fn multiply(&mut self, part: ProductPart<'_>) -> Result<()> {
        self.launches.push(self.kernels.launch(part, self.given)?);
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.kernels.end()
    }
}

/// Returns the cached plan of an equal request, or plans the GEMM anew.
fn known(rank: &mut Rank, asked: &ProductRequest<'_>) -> Result<CachedGemm> {
    let known = rank.products.take(|known| known.is(asked));
    known.map_or_else(|| CachedGemm::new(asked, &rank.machine, rank.memory), Ok)
}

/// Returns the spec of the table's rule for this GEMM and layout. The rule is the same on all ranks
/// and for all parts.
fn row<E>(
    table: &SgemmTable<E>,
    rank: &Rank,
    [a, _, c]: [&Distribution; 3],
    lies: Option<GemmLayout>,
) -> Result<String> {
    let lies = lies.unwrap_or(GemmLayout::Nn);
    let k = if lies.transposes_a() { a.rows } else { a.cols };
    let shape = SgemmShape::from((c.rows, c.cols, k)).layout(lies);
    Ok(table.choice(shape, rank.device())?.spec.to_string())
}
