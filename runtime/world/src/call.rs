//! Products of matrices that are dealt out.

use super::Distribution;
use super::kernels::Kernels;
use super::{Estimate, Rank, ScheduleChoice, Sharded, Strategy, VerifiedSchedule};
use crate::Result;
use crate::execution::{Multiplies, ProductPart, ShardedProduct, follow};
use crate::rank::OnRank;
use crate::selection::{CachedProduct, CallOptions, ProductRequest, Selection};
use gemm_dsl::spec::GemmLayout;
use gemm_dsl::tables::SgemmShape;
use gemm_runtime::LaunchReport;
use gemm_runtime::{ByName, Named, Operands, OperandsFor};
use gemm_runtime::{Sgemm, SgemmTable};
use std::borrow::Cow;
use std::sync::Arc;

/// A call of a kernel or of a table on all ranks, made by [`OnRank::on`].
///
/// Each rank computes those elements of C that it has, with all their terms; what it lacks of A and B comes from other ranks
/// while it multiplies what is there. So the bits of C do not depend on how many ranks there are, or on how the matrices
/// are dealt out.
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
pub struct ShardedCall<'a, E = (), O = ()> {
    what: What<'a, E>,
    rank: &'a mut Rank,
    given: O,
    strategy: Option<Strategy>,
    lies: Option<GemmLayout>,
}

/// What is called.
pub(crate) enum What<'a, E> {
    Kernel(&'a Sgemm<E>),
    Table(&'a SgemmTable<E>),
}

/// What a product on all ranks did.
#[derive(Debug)]
#[non_exhaustive]
pub struct ShardedLaunch {
    /// The line of the kernel: the same on all ranks, and for all parts.
    pub line: String,
    /// What each rank was to do.
    pub schedule: Arc<VerifiedSchedule>,
    /// What else it might have been, with what was predicted of each; none where the caller has said which way.
    pub chosen: Option<Arc<ScheduleChoice>>,
    /// What was predicted of it, on the machine of the world, in the arithmetic of the kernel.
    pub estimate: Estimate,
    /// The launches of this rank, in order, one for each part of what it has of C.
    pub launches: Vec<LaunchReport>,
}

/// A and B are stored as the kernel's `layout` says: of `nt` the transpose of B is dealt out, N x K.
impl<E: Operands> OnRank for Sgemm<E> {
    type Call<'a>
        = ShardedCall<'a, E, E::Unset<'a>>
    where
        Self: 'a;

    fn on<'a>(&'a self, rank: &'a mut Rank) -> Self::Call<'a> {
        ShardedCall::new(What::Kernel(self), rank)
    }
}

/// The row is the one for the product as a whole, as packed matrices have it: the same for all parts of it, and for any number
/// of ranks. A and B are stored row by row, M x K and K x N, where [`ShardedCall::layout`] says nothing else.
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
    /// What is called, on which rank, and what the caller has said of it.
    pub(crate) fn parts(self) -> (What<'a, E>, &'a mut Rank, CallOptions) {
        (self.what, self.rank, CallOptions { lies: self.lies, strategy: self.strategy })
    }
}

impl<'a, E> ShardedCall<'a, E> {
    /// The call with a tuple of all operands of the kernel, in its order. An array is the part for what this rank has of C:
    /// of `bias[n]` an element for each of its columns, of `scale[m]` for each of its rows, of `residual[m, n]` a matrix of its
    /// extents. Numbers are the same on all ranks.
    pub fn operands<O: OperandsFor<E>>(self, operands: O) -> ShardedCall<'a, E, O> {
        let Self { what, rank, strategy, lies, .. } = self;
        ShardedCall { what, rank, given: operands, strategy, lies }
    }
}

impl<'a> ShardedCall<'a, ByName, Named<'a>> {
    /// The call with an operand of the kernel: a number, or a reference to this rank's part of an array, as of
    /// [`operands`](ShardedCall::operands).
    #[must_use]
    pub fn operand(mut self, name: &str, given: impl gemm_runtime::AnyOperand + 'a) -> Self {
        self.given.push(name, given);
        self
    }
}

impl<E: Operands, O: OperandsFor<E>> ShardedCall<'_, E, O> {
    /// The call where what ranks lack comes to them in this way, not in the one that is predicted to be the fastest. Rows of A
    /// and columns of B that are scaled as wholes, those of `f16x3` under `mma: wgmma`, always come before anything is
    /// multiplied, where a rank has parts of them.
    #[must_use]
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = Some(strategy);
        self
    }

    /// The call where A and B are stored so, `nt` as A, M x K, and the transpose of B, N x K. A row of a table takes them however
    /// they are stored; the line of a kernel says itself how, and another layout is an error.
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
    ///     let launch = GEMM.on(rank).layout(spec::GemmLayout::Nt).launch(&a, &transpose_of_b, &mut c)?;
    ///     assert!(rank.gather(&c, 0)?.is_none_or(|c| c == vec![18.0; m * n]));
    ///     Ok(launch.line)
    /// })?;
    /// assert_eq!(lines, ["layout: nt, tile: 16x16x8, thread: 4x4"; 3]);
    /// # Ok::<(), gemm_world::Error>(())
    /// ```
    #[must_use]
    pub fn layout(mut self, layout: GemmLayout) -> Self {
        self.lies = Some(layout);
        self
    }

    /// Multiplies: C = A·B, or what the kernel's epilogue makes of its sums. On GPUs the call returns before the work is
    /// done; later work of the device comes after it.
    ///
    /// The matrices are given as they are stored and dealt out. Under `layout: nt` and `tt` that of B is its transpose, N x K, and
    /// under `tn` and `tt` that of A is its transpose, K x M: a B whose columns are dealt out is then one of rows,
    /// `Distribution::rows(n, k)`. C lies row by row. The schedule is that of A and B themselves; its blocks are parts of these.
    ///
    /// Between the rows of what a rank multiplies other elements may lie, as where it has some columns of a matrix that lies
    /// there as a whole. A kernel that is not `pitched` is then made so, if that does not change how it sums: the terms of
    /// one that shares them out (`lanes: k`, `partials`, `slices`) are dealt out otherwise.
    ///
    /// # Errors
    /// * [`WorldError::Mismatch`] on every rank where they are at odds over the kernel, the layouts, the way, the numbers among the
    ///   operands, the memory or the machine.
    /// * [`WorldError::Schedule`] where the layouts are not those of one product on so many ranks, or no way fits in memory.
    /// * [`WorldError::Impossible`] for a kernel that takes A and B otherwise than [`layout`](Self::layout) says.
    /// * [`WorldError::Divided`] for a kernel whose bits depend on how a product is divided, and [`WorldError::Unpitched`] for one
    ///   whose bits depend on whether it is `pitched`, and would have to be on some rank.
    /// * [`WorldError::RankLost`]; what a launch of a part fails with, which other ranks are told.
    pub fn launch(self, a: &Sharded, b: &Sharded, c: &mut Sharded) -> Result<ShardedLaunch> {
        let Self { what, rank, given, strategy, lies } = self;
        for (name, of) in [("a", a), ("b", b), ("c", &*c)] {
            rank.check_device(name, of.matrix().buffer().device())?;
        }
        let collective = rank.collective("multiplying");
        let distributions = [a.distribution(), b.distribution(), c.distribution()];
        let said = CallOptions { lies, strategy };
        let product = match &what {
            What::Kernel(kernel) => {
                let line = kernel.spec_line();
                known(rank, &ProductRequest { line, is_made_for: false, distributions, said })
            }
            What::Table(table) => row(table, rank, distributions, lies).and_then(|line| {
                let (line, is_made_for) = (line.as_str(), true);
                known(rank, &ProductRequest { line, is_made_for, distributions, said })
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
            [("the product", product.as_str()), ("what a product is chosen by", &chosen_by)];
        let is_ready = known.is_loaded && known.has_staging(&rank.staging, rank.number());
        let all_are_ready = collective.agree_on(&agreed, is_ready)?;
        let Selection { schedule, chosen, estimate, asks_late } = known.selection(rank.ranks())?;
        let mut work = || -> Result<_> {
            let kernels = Kernels::new(rank, &collective, &known, a, b, c, asks_late)?;
            let is_ready = all_are_ready && !kernels.are_others();
            let mut parts = ProductParts { kernels, given: &given, launches: Vec::new() };
            let product =
                ShardedProduct { schedule: &schedule, transposition: known.transposition, a, b, c };
            follow(rank, &collective, product, &mut parts, is_ready)?;
            let lines = parts.kernels.lines();
            rank.splits = parts.kernels.into_splits();
            Ok((parts.launches, lines))
        };
        let made = work();
        let (launches, lines) = collective.telling(made)?;
        let line = known.line.clone();
        known.is_loaded = true;
        known.kernels = lines.or(known.kernels);
        rank.products.keep(known);
        Ok(ShardedLaunch { line, schedule, chosen, estimate, launches })
    }
}

/// The parts of a product, as this rank computes them.
struct ProductParts<'k, E, O> {
    kernels: Kernels<'k, E>,
    given: &'k O,
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

/// What is known of a product: of the one before that was asked for so, or anew.
fn known(rank: &mut Rank, asked: &ProductRequest<'_>) -> Result<CachedProduct> {
    let known = rank.products.take(|known| known.is(asked));
    known.map_or_else(|| CachedProduct::new(asked, &rank.machine, rank.memory), Ok)
}

/// The line of the row of a table for the product of matrices that are stored so: the same on all ranks, and for all parts.
fn row<E>(
    table: &SgemmTable<E>,
    rank: &Rank,
    [a, _, c]: [&Distribution; 3],
    lies: Option<GemmLayout>,
) -> Result<String> {
    let lies = lies.unwrap_or(GemmLayout::Nn);
    let k = if lies.transposes_a() { a.rows } else { a.cols };
    let shape = SgemmShape::from((c.rows, c.cols, k)).layout(lies);
    Ok(table.choice(shape, rank.device())?.line.to_string())
}
