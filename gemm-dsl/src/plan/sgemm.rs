//! The plan of a matrix product.
//!
//! A matrix product is sound when
//!
//! * **Numbers.** Every dimension of a size is at least 1, as are `coarsen`, `unroll` (at most
//!   1024), `products`, `partials`, `spread`, `raster`, `cluster`, `slices`, `split_k` (at most
//!   65,535) and `blocks_per_sm`; `stages` is at least 2. A name, if given, is an identifier of
//!   CUDA C++ with a letter or a digit.
//! * **Every key acts.** Without `tile` there is no `fragment`, `transpose`, `pad_a`, `pad_b`,
//!   `swizzle`, `prefetch`, `double_buffer`, `stages`, `spread`, `warp`, `arith`, `order`, `stream_k`
//!   and `products`; with it no `block`, `lanes` and `coarsen`. Without it, where `thread`,
//!   `lanes: k`, `float4`, `slices` or `split_k` is given, there is no
//!   `coarsen` and `partials`. `products` needs `batch`. `transpose`
//!   needs a matrix that lies along K, so it does not go with `layout: tn`. `fragment` needs a thread
//!   with more than one element, `order` one with more than one row and column, `spread` needs
//!   `stages`, and `float4` some access that it can widen.
//! * **Tensor cores.** Under `arith`, but for `f32`, there is no `thread`, `fragment`, `order` and `partials`; and, but under
//!   `mma: wgmma`, a `warp`, a multiple of 16x8, and no `f16x3`. The tile's K is a multiple of an instruction's terms, 16 or of `tf32` 8, times `slices`.
//!   `promote` is a multiple of these terms, and divides the terms of a slice in a tile. Only there are `promote` and
//!   `ldmatrix`, which needs a tile that lies along K and whose rows begin on 16 bytes.
//! * **Warpgroups.** `mma: wgmma` needs `arith`. The tile's M is a multiple of 64, its N one of 8, both at most 256, and
//!   its K a row of 32, 64 or 128 bytes. A `warp`, if there is one, has 16 rows and a multiple of 8 columns that divides N.
//!   There is no `unroll`, `transpose`, `pad_a`, `pad_b`, `swizzle`, `ldmatrix`, `prefetch`, `double_buffer`, `spread`, `slices`,
//!   `products` and `stream_k`; `stages` and `producer` need `copy: tma`, and `persistent` needs
//!   `producer`. So does `cluster`: at most 8 blocks, no ranges of K, and a tile whose N is a multiple of 8 for each of them.
//! * **Exchanges.** `swizzle` needs a tile that lies along K, without padding and with a K that is a power of two, 8 at
//!   least.
//! * **Names.** No operand of an `epilogue` is called `a` or `b`, which are matrices, nor beside `scaled`
//!   `alpha` or `beta`.
//! * **One pipeline.** At most one of `prefetch`, `double_buffer` and `stages` is given; `stages`
//!   unrolls the k steps of a tile itself, so beside it `unroll` has nothing to act on.
//! * **One way to share.** `stream_k` shares the terms of all tiles, so `split_k` does not go with it.
//! * **Division.** The thread tile divides the block tile. A warp tile divides the block tile and
//!   is 32 thread tiles. `fragment: split` needs thread tiles in multiples of 4. `slices`
//!   divide the tile's K: the quotient is the steps of a thread in a tile. `partials` divides these
//!   and `unroll`. Under `stages` they are even in number and more than `spread`; under `arith` they are as many as that
//!   at least, and of any number.
//! * **Vectors.** Under `float4` the tile's K is a multiple of 4 where A is read from global
//!   memory by vectors, and its N where B is; of a matrix that lies column by column its M and its K.
//!   Elsewhere an access that the layout does not allow
//!   to be 16 bytes wide is 4 bytes wide. Warpgroups access C by 16 bytes, and what is read beside it.
//! * **Resources.** A block, with all its `products` and `slices`, and 32 threads for each of its warps under
//!   `lanes: k`, has at most 1024 threads and 227 KiB of shared
//!   memory. A multiprocessor has room for `blocks_per_sm` blocks: at most 32, 2048 threads, 228 KiB of
//!   shared memory (1 KiB a block is reserved) and 65536 registers, of which a thread has at most
//!   255: its sums fit beside its fragments (twice under `stages`, of tensor cores those of B and of a row of A with all their planes and sums that are not
//!   added yet, without `tile` those of all `unroll` steps) and its share of a prefetched tile,
//!   and beside what its epilogue reads, which are a register for each of its columns and `[n]` operand
//!   (where its sums wait in shared memory, for each of a store), one for an `[m]` operand, and one for
//!   each element of a store and `[m, n]` operand, or C.
//!   Of a warpgroup a thread's sums, as many again where these are added to others (or what its epilogue reads, if that
//!   is more), and a few for addresses; under `producer` what the threads that only copy give back.
//! * **Indices.** `coarsen` times a block's columns, and `raster` times its rows of C, are at most 2^30.
//!   How wide C may be under a large `raster` is checked at the launch: `raster` times the tiles
//!   along N is less than 2^31.
//!
//! Nothing else is refused of a spec whose values could be read. A copy with fewer accesses than threads, or a number of them that does
//! not divide among the threads, is predicated; a block need not be a multiple of a warp.

mod check;
mod decisions;
mod direct;
mod epilogue;
mod epilogue_staging;
mod mma;
mod occupancy;
mod operand;
mod pipeline;
mod registers;
mod shared_memory;
pub(crate) mod simt;
mod wgmma;

pub use direct::{DirectPlan, ReadPlan};
pub use epilogue::{EpiloguePlan, Guards};
pub use mma::MmaPlan;
pub use operand::{Axis, Edge, Fill, GROUP, OperandPlan, Pointers, Walk};
pub use pipeline::{Pipeline, Ragged};
pub(crate) use registers::{Registers, even_registers};
pub(crate) use shared_memory::SharedSum;
pub use simt::naive::NaivePlan;
pub use simt::tiled::{TiledPlan, WarpTile};
pub(crate) use wgmma::WARPGROUP;
pub use wgmma::WgmmaPlan;

use super::{Decided, Faults, Passed, decided, facts};
use crate::error::SpecErrors;
use crate::ir::Variant;
use crate::spec::{Batch, Bounds, Epilogue, GemmLayout, GemmTypes, SgemmSpec, Sharing};
use crate::target::arch::GRID_BLOCKS;
use check::TileGeometry;
use std::ops::Range;

/// Indices inside a block stay far from 2^31.
pub(crate) const MAX_EXTENT: u64 = 1 << 30;

/// The most ranges of K: a grid has no more blocks along y.
pub(crate) const MAX_SPLIT: u32 = GRID_BLOCKS[1];

/// A sound matrix product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SgemmPlan {
    spec: SgemmSpec,
    variant: Variant,
    kind: KernelKind,
}

/// Four kinds of kernels.
#[expect(clippy::large_enum_variant, reason = "a plan is made once and seldom copied")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelKind {
    /// Every thread reads its operands from global memory, for one element of C after the other.
    Naive(NaivePlan),
    /// Every thread reads its operands from global memory, for all elements of C that it holds.
    Direct(DirectPlan),
    /// The operands of a block are staged in shared memory.
    Tiled(TiledPlan),
    /// Warpgroups multiply planes of the operands in shared memory.
    Wgmma(WgmmaPlan),
}

impl KernelKind {
    /// The geometry of warpgroups, if they multiply.
    pub(crate) fn wgmma(&self) -> Option<&WgmmaPlan> {
        match self {
            Self::Wgmma(wgmma) => Some(wgmma),
            Self::Naive(_) | Self::Direct(_) | Self::Tiled(_) => None,
        }
    }
}

impl SgemmSpec {
    /// Resolves the spec.
    ///
    /// # Errors
    /// All of the spec's faults.
    pub fn plan(&self) -> Result<SgemmPlan, SpecErrors> {
        let mut faults = Faults::default();
        let draft = check::check(self, &mut faults);
        let passed = faults.finish()?;
        let kind = match draft {
            Some(TileGeometry::Tiled(draft)) => KernelKind::Tiled(draft.plan(&passed)),
            Some(TileGeometry::Wgmma(draft)) => KernelKind::Wgmma(draft.plan(&passed)),
            None if self.is_direct() => KernelKind::Direct(DirectPlan::new(self, Variant::Vector)),
            None => KernelKind::Naive(NaivePlan::new(self)),
        };
        let vectors = match &kind {
            KernelKind::Naive(_) => false,
            KernelKind::Wgmma(wgmma) => wgmma.has_vectors(),
            KernelKind::Direct(direct) => direct.has_vectors(),
            KernelKind::Tiled(tiled) => tiled.has_global_vectors(),
        };
        let variant = if vectors { Variant::Vector } else { Variant::Only };
        Ok(SgemmPlan { spec: self.clone(), variant, kind })
    }
}

impl SgemmPlan {
    /// The spec that was resolved.
    pub fn spec(&self) -> &SgemmSpec {
        &self.spec
    }

    /// The name of the kernel.
    pub fn kernel_name(&self) -> String {
        match self.variant {
            // It stands in for the kernel without guards.
            Variant::Guarded => self.spec.clone().bounds(Bounds::Aligned).kernel_name(),
            _ => self.spec.kernel_name(),
        }
    }

    /// The geometry.
    pub fn kind(&self) -> &KernelKind {
        &self.kind
    }

    /// Element types of the matrices and sums.
    pub fn types(&self) -> GemmTypes {
        self.spec.types()
    }

    /// Threads of a block.
    pub fn threads(&self) -> u32 {
        match &self.kind {
            KernelKind::Naive(naive) => naive.threads(),
            KernelKind::Direct(direct) => direct.threads(),
            KernelKind::Tiled(tiled) => tiled.threads(),
            KernelKind::Wgmma(wgmma) => wgmma.threads(),
        }
    }

    /// Rows and columns of C that one block computes.
    pub fn block_tile(&self) -> (u32, u32) {
        match &self.kind {
            KernelKind::Naive(naive) => (naive.rows(), naive.cols() * naive.coarsen()),
            KernelKind::Direct(d) => (d.rows() * d.tm(), d.cols() * d.tn()),
            KernelKind::Tiled(tiled) => (tiled.bm(), tiled.bn()),
            KernelKind::Wgmma(tensor) => (tensor.bm(), tensor.bn()),
        }
    }

    /// Rows and columns of C that the blocks of a cluster compute.
    pub(crate) fn cluster_tile(&self) -> (u32, u32) {
        let (rows, cols) = self.block_tile();
        (rows * self.cluster(), cols)
    }

    /// Blocks of a cluster; at least 1.
    pub fn cluster(&self) -> u32 {
        self.spec.cluster
    }

    /// Terms of K that a block takes at once: ranges of K are made of as many, and without guards K is a multiple.
    pub fn depth(&self) -> u32 {
        match &self.kind {
            KernelKind::Naive(_) => 1,
            KernelKind::Direct(direct) => direct.round(),
            KernelKind::Tiled(tiled) => tiled.bk(),
            KernelKind::Wgmma(wgmma) => wgmma.bk(),
        }
    }

    /// Bytes of shared memory of a block.
    pub fn shared_bytes(&self) -> u64 {
        match &self.kind {
            KernelKind::Naive(_) => 0,
            KernelKind::Direct(direct) => direct.shared_bytes(),
            KernelKind::Tiled(tiled) => tiled.shared_bytes(),
            KernelKind::Wgmma(wgmma) => wgmma.shared_bytes(),
        }
    }

    /// How the sums of a thread that holds several get into C.
    pub(crate) fn epilogue_plan(&self) -> Option<EpiloguePlan> {
        match &self.kind {
            KernelKind::Naive(_) => None,
            KernelKind::Direct(direct) => Some(direct.epilogue()),
            KernelKind::Tiled(tiled) => Some(tiled.epilogue()),
            KernelKind::Wgmma(tensor) => Some(tensor.epilogue()),
        }
    }

    /// The unroll factor of the loop over K, at least 1 and a multiple of
    /// [`partials`](Self::partials); `None` leaves it to the loop.
    pub fn unroll(&self) -> Option<u32> {
        self.spec.unroll
    }

    /// Independent partial sums of one element of C; at least 1.
    pub fn partials(&self) -> u32 {
        self.spec.partials
    }

    /// Whose terms a block sums.
    pub(crate) fn sharing(&self) -> Sharing {
        self.spec.sharing()
    }

    /// The ranges of `k` terms that blocks sum apart under `split_k: n`, in the order in which their sums are added: whole
    /// tiles along K, or rounds, so many that there are n ranges at most and none is empty. One of all terms where the key is
    /// not given. None where how many there are depends on the extents of C, as of `split_k: auto` and `stream_k`.
    ///
    /// ```
    /// use gemm_dsl::plan::SgemmPlan;
    ///
    /// let plan: SgemmPlan = "tile: 16x16x8, thread: 2x2, split_k: 3".parse()?;
    /// assert_eq!(plan.ranges(50), Some(vec![0..24, 24..48, 48..50]));
    /// # Ok::<(), gemm_dsl::SpecErrors>(())
    /// ```
    pub fn ranges(&self, k: u64) -> Option<Vec<Range<u64>>> {
        let most = match self.sharing() {
            Sharing::Whole => 1,
            Sharing::Ranges(most) => u64::from(most),
            Sharing::AutoRanges | Sharing::Stream => return None,
        };
        let depth = u64::from(self.depth());
        let of_range = k.div_ceil(depth).div_ceil(most) * depth;
        let ends = |begin: u64| (begin < k).then(|| begin..k.min(begin + of_range));
        let starts = std::iter::successors(Some(0), |begin: &u64| begin.checked_add(of_range));
        Some(starts.map_while(ends).collect())
    }

    /// Tile rows that are visited together; at least 1.
    pub fn raster(&self) -> Option<u32> {
        self.spec.raster
    }

    /// Blocks that shall fit on a multiprocessor at once; at least 1.
    pub fn blocks_per_sm(&self) -> u32 {
        self.spec.blocks_per_sm
    }

    /// Whether the kernel accepts any shape.
    pub fn guarded(&self) -> bool {
        self.spec.bounds == Bounds::Guarded
    }

    /// What is stored where the product has a sum; the sum itself where there is none.
    pub fn epilogue(&self) -> Option<&Epilogue> {
        self.spec.epilogue.as_ref()
    }

    /// How A and B lie in memory.
    pub fn layout(&self) -> GemmLayout {
        self.spec.layout
    }

    /// Where the matrices of a batch lie; `None` for one product.
    pub fn batch(&self) -> Option<Batch> {
        self.spec.batch
    }

    /// Whether as many blocks as fit go through all tiles of C.
    pub fn persistent(&self) -> bool {
        self.spec.persistent
    }

    /// Products of a batch that a block computes; at least 1.
    pub fn products(&self) -> u32 {
        self.spec.products
    }

    /// Whether the kernel takes the row strides of its operands.
    pub fn pitched(&self) -> bool {
        self.spec.pitched
    }

    /// How wide the accesses to global memory are.
    pub fn variant(&self) -> Variant {
        self.variant
    }

    /// The same computation with guards at the edges and 4-byte accesses to global memory: it takes
    /// any shape. `None` where the kernel has guards, and where it takes a K of 0 without.
    pub fn guarded_variant(&self) -> Option<SgemmPlan> {
        let spec = self.spec.clone().bounds(Bounds::Guarded);
        let tiled = matches!(self.kind, KernelKind::Tiled(_));
        (tiled && !self.guarded()).then(|| self.other(spec, Variant::Guarded))
    }

    /// The same computation for operands that are not aligned to 16 bytes: global memory is
    /// accessed 4 bytes at a time. `None` where nothing would change, and where the shape is
    /// promised to be aligned.
    pub fn scalar_variant(&self) -> Option<SgemmPlan> {
        let applies = self.guarded() && self.variant == Variant::Vector;
        applies.then(|| self.other(self.spec.clone(), Variant::Scalar))
    }

    /// The same product in `f32`, by a kernel that takes any addresses: for numbers that tensor cores cannot be given.
    ///
    /// # Errors
    /// Faults of a line that is the same for all: a mistake of this function.
    pub(crate) fn in_f32(&self) -> Result<SgemmPlan, SpecErrors> {
        self.spec.in_f32().plan()
    }

    /// Another variant of a kernel that has some.
    fn other(&self, spec: SgemmSpec, variant: Variant) -> Self {
        let tile = || spec.tile.unwrap_or_else(|| unreachable!("plan: this kind has a tile"));
        let kind = match &self.kind {
            KernelKind::Naive(_) => unreachable!("plan: a naive kernel has no vectors, no tiles"),
            KernelKind::Wgmma(_) => KernelKind::Wgmma(WgmmaPlan::new(&spec, tile(), variant)),
            KernelKind::Direct(_) => KernelKind::Direct(DirectPlan::new(&spec, variant)),
            KernelKind::Tiled(_) => KernelKind::Tiled(TiledPlan::new(&spec, tile(), variant)),
        };
        Self { spec, variant, kind }
    }
}
