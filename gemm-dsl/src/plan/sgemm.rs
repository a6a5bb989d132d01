//! Plan of a GEMM.
//!
//! A GEMM spec is valid if all of the following hold:
//!
//! * **Numbers.** Every dimension is at least 1. So are `coarsen`, `unroll` (at most 1024),
//!   `products`, `partials`, `adjacent`, `spread`, `raster`, `slices`, `split_k` (at most 65,535),
//!   `cluster` and `blocks_per_sm`; `stages` is at least 2. A name is a CUDA C++ identifier of at
//!   most 128 characters, with at least one letter or digit.
//! * **No key without effect.** `fragment`, `transpose`, `pad_a`, `pad_b`, `swizzle`, `prefetch`,
//!   `b_in_parts`, `double_buffer`, `stages`, `spread`, `warp`, `arith`, `order`, `stream_k`,
//!   `products`, `adjacent` and `fold_tiles` need `tile`. `block`, `lanes` and `coarsen` exclude
//!   it. Without `tile`, `coarsen` and `partials` exclude `thread`, `lanes: k`, `float4`, `slices`
//!   and `split_k`. `products` needs `batch`. `transpose` needs a K-major matrix, so it excludes
//!   `layout: tn`. `fragment` needs a thread tile with more than one element. `order` needs a
//!   thread tile with more than one row and more than one column. `spread` needs `stages`.
//!   `fold_tiles` needs `partials`. `float4` needs at least one access that it can widen.
//!   `adjacent` excludes `float4`, `stages`, `convert: matrix` and `mma: wgmma`. `b_in_parts` needs
//!   `fragment: strided` and a thread tile with one row, and excludes `warp`. `stage_c` needs
//!   `tile` and excludes any `arith` except `f32`.
//! * **Tensor cores.** Any `arith` except `f32` excludes `thread`, `fragment`, `order` and
//!   `partials`. Without `mma: wgmma`, `arith` needs a `warp` that is a multiple of 16x8, and must
//!   not be `f16x3`. The tile's K is a multiple of the instruction's K (8 for `tf32`, else 16)
//!   times `slices`. `promote` is a multiple of the instruction's K, and divides the part of the
//!   tile's K that one slice computes. `promote`, `ldmatrix`, `mma` and `convert` need `arith`.
//!   `ldmatrix` also needs a K-major tile whose rows are aligned to 16 bytes. `convert: matrix`
//!   excludes `transpose` and `ldmatrix`, and its padding is a multiple of 16 bytes.
//! * **Warpgroups.** `mma: wgmma` needs `arith`, which follows from the types of A and B unless
//!   they are `f32`. Elements of 8 bits need `layout: nt`. The tile's M is a multiple of 64, its N
//!   a multiple of 8, both at most 256. A row of the tile's K occupies 32, 64 or 128 bytes in the
//!   input format. A given `warp` has 16 rows and a multiple of 8 columns that divides N. `unroll`,
//!   `transpose`, `pad_a`, `pad_b`, `swizzle`, `ldmatrix`, `convert`, `prefetch`, `double_buffer`,
//!   `spread`, `slices`, `products` and `stream_k` are excluded. `stages` and `producer` need
//!   `copy: tma`; `persistent` and `cluster` need `producer`. A `cluster` has at most 8 blocks, no
//!   split-K, and a tile whose N is a multiple of 8 times the number of its blocks. If the
//!   instruction reads a row-major B itself, the columns of a warp, and of a block of a cluster,
//!   are multiples of 16.
//! * **Swizzling.** `swizzle` needs a K-major tile without padding, whose K must be a power of two
//!   and at least 8.
//! * **Names.** No `epilogue` operand is called `a` or `b`, which are matrices, or has the name of
//!   the matrix for a further value (`c2`, `c3`, `c4`). With `scaled`, none is called `alpha` or
//!   `beta`.
//! * **Batches.** An `epilogue` operand with the index `batch` needs the key `batch`.
//! * **Pairs of columns.** An `epilogue` with `next` or `pair` needs both columns of a pair in one
//!   thread. On CUDA cores, this needs `tile` or `thread`, an even number of columns in `thread`,
//!   and excludes `fragment: strided`. Without a `pair` as its first value, it excludes `scaled`.
//! * **One pipeline.** At most one of `prefetch`, `b_in_parts`, `double_buffer` and `stages` is
//!   given. `stages` already unrolls the k steps of a tile, so it excludes `unroll`.
//! * **One way to share K.** `stream_k` divides the K iterations of all tiles among blocks, so it
//!   excludes `split_k`.
//! * **Division.** The thread tile divides the block tile. A warp tile divides the block tile and
//!   is 32 thread tiles. `fragment: split` needs thread tiles in multiples of 4, and `split_n` only
//!   their columns. `slices` divides the tile's K; the quotient is a thread's number of k steps per
//!   tile. `partials` divides this number and `unroll`. Under `stages`, the number of steps is even
//!   and greater than `spread`. With tensor cores it may be odd, and is at least `spread`.
//! * **Vectors.** Under `float4`, the contiguous extent of a tile that is read by vectors must be a
//!   multiple of a vector's elements (4 of `f32`). This extent is K for a row-major A and N for a
//!   row-major B. It is M for a column-major A and K for a column-major B. `adjacent` divides these
//!   extents. Every other access falls back to a single element if the layout does not allow 16
//!   bytes. Warpgroups access C and the epilogue operands 16 bytes at a time.
//! * **Resources.** A block has at most 1024 threads. They include those of all `products` and
//!   `slices`, and all 32 lanes of each warp under `lanes: k`. It has at most 227 KiB of shared
//!   memory. An SM holds at most 32 blocks, 2048 threads, 228 KiB of shared memory (1 KiB per block
//!   is reserved) and 65,536 registers. `blocks_per_sm` blocks must fit on an SM, under `stage_c`
//!   with their staged accumulators. A thread has at most 255 registers.
//! * **Registers.** The accumulators of a thread must fit beside its fragments and its share of a
//!   prefetched tile. Fragments count twice under `stages`. With tensor cores, the fragments are
//!   the splits of B and of one row of A, and partial accumulators count as well. Without `tile`,
//!   the fragments of all `unroll` steps count. The accumulators must also fit beside the
//!   epilogue's reads. An `[n]` operand takes one register for each column, or only for the columns
//!   of one store if accumulators are staged in shared memory. An `[m]` operand takes one register,
//!   as does a `[batch]` operand, and C or an `[m, n]` operand one for each element of a store. A
//!   thread of a warpgroup needs three parts: its accumulators, the larger of its partial
//!   accumulators and its epilogue's reads, and a few registers for addresses. Under `producer`, it
//!   also gets the registers that the producer warpgroup releases.
//! * **Indices.** `coarsen` times a block's columns, and `raster` times a block's rows of C, are at
//!   most 2^30. A launch also checks that `raster` times the number of tiles along N is less than
//!   2^31. It checks that M, N and K are below 2^31 minus the tiles by which indices may exceed
//!   them. If an extent is too large, the error states its maximum.
//!
//! No other spec is rejected once its values have been parsed. A copy is predicated if its accesses
//! do not divide evenly among the threads. The threads of a block need not be a multiple of 32.

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
mod splits;
mod wgmma;

pub use direct::{DirectPlan, ReadPlan};
pub use epilogue::{EpiloguePlan, Guards};
pub use mma::MmaPlan;
pub use operand::{Axis, Edge, Fill, GROUP, OperandPlan, Pointers, Walk};
pub use pipeline::{Pipeline, Ragged};
pub(crate) use registers::{Registers, even_registers, launch_registers};
pub(crate) use shared_memory::SharedBytes;
pub use simt::naive::NaivePlan;
pub use simt::tiled::{TiledPlan, WarpTile};
pub use splits::SplitsPlan;
pub(crate) use wgmma::WARPGROUP;
pub use wgmma::WgmmaPlan;

use super::{Decided, Faults, Passed, decided, facts};
use crate::error::SpecErrors;
use crate::expr::FoldOp;
use crate::ir::Variant;
use crate::spec::{Batch, Bounds, Epilogue, GemmLayout, GemmTypes, SgemmSpec, Sharing};
use crate::target::arch::GRID_BLOCKS;
use check::TileGeometry;
use std::ops::Range;

/// Maximum extent of a block in elements. The limit keeps indices inside a block far below 2^31.
pub(crate) const MAX_EXTENT: u64 = 1 << 30;

/// Maximum number of split-K partitions: the limit of a grid along y.
pub(crate) const MAX_SPLIT: u32 = GRID_BLOCKS[1];

/// Plan of a valid GEMM spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SgemmPlan {
    spec: SgemmSpec,
    variant: Variant,
    kind: KernelKind,
}

/// Kind of a GEMM kernel, with its geometry.
#[expect(clippy::large_enum_variant, reason = "a plan is built once and seldom copied")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelKind {
    /// Threads read their operands from global memory and compute their elements of C one at a
    /// time.
    Naive(NaivePlan),
    /// Threads read their operands from global memory and compute all their elements of C at once.
    Direct(DirectPlan),
    /// Blocks stage their operands in shared memory.
    Tiled(TiledPlan),
    /// Warpgroups multiply operands, or their splits, in shared memory.
    Wgmma(WgmmaPlan),
}

impl KernelKind {
    /// Returns the warpgroup geometry of a WGMMA kernel.
    pub(crate) fn wgmma(&self) -> Option<&WgmmaPlan> {
        match self {
            Self::Wgmma(wgmma) => Some(wgmma),
            Self::Naive(_) | Self::Direct(_) | Self::Tiled(_) => None,
        }
    }
}

impl SgemmSpec {
    /// Resolves the spec into a plan.
    ///
    /// # Errors
    /// Returns all faults of the spec.
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
            KernelKind::Wgmma(wgmma) => wgmma.epilogue().store_width() > 1,
            KernelKind::Direct(direct) => direct.has_vectors(),
            KernelKind::Tiled(tiled) => tiled.has_global_vectors(),
        };
        let variant = if vectors { Variant::Vector } else { Variant::Only };
        Ok(SgemmPlan { spec: self.clone(), variant, kind })
    }
}

impl SgemmPlan {
    pub fn spec(&self) -> &SgemmSpec {
        &self.spec
    }

    pub fn kernel_name(&self) -> String {
        match self.variant {
            // The guarded variant is the fallback of the kernel without guards, and derives its
            // name from that kernel's.
            Variant::Guarded => self.spec.clone().bounds(Bounds::Aligned).kernel_name(),
            _ => self.spec.kernel_name(),
        }
    }

    pub fn kind(&self) -> &KernelKind {
        &self.kind
    }

    /// Element types of the matrices and the accumulators.
    pub fn types(&self) -> GemmTypes {
        self.spec.types()
    }

    /// Splits of A and B that a launch before the GEMM computes, if the kernel reads them.
    pub fn splits(&self) -> Option<SplitsPlan> {
        match &self.kind {
            KernelKind::Naive(_) | KernelKind::Direct(_) => None,
            KernelKind::Tiled(tiled) => tiled.splits(),
            KernelKind::Wgmma(wgmma) => Some(wgmma.splits()).filter(|of| !of.are_matrices()),
        }
    }

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

    /// Blocks per cluster; at least 1.
    pub fn cluster(&self) -> u32 {
        self.spec.cluster
    }

    /// K extent that a block processes at once. Split-K partitions are multiples of it. A kernel
    /// without guards also requires that K is a multiple of it.
    pub fn k_step(&self) -> u32 {
        match &self.kind {
            KernelKind::Naive(_) => 1,
            KernelKind::Direct(direct) => direct.round(),
            KernelKind::Tiled(tiled) => tiled.bk(),
            KernelKind::Wgmma(wgmma) => wgmma.bk(),
        }
    }

    /// Bytes of shared memory per block.
    pub fn shared_bytes(&self) -> u64 {
        match &self.kind {
            KernelKind::Naive(_) => 0,
            KernelKind::Direct(direct) => direct.shared_bytes(),
            KernelKind::Tiled(tiled) => tiled.shared_bytes(),
            KernelKind::Wgmma(wgmma) => wgmma.shared_bytes(),
        }
    }

    /// Plan for storing the accumulators in C; `None` if threads compute one element at a time.
    pub(crate) fn epilogue_plan(&self) -> Option<EpiloguePlan> {
        match &self.kind {
            KernelKind::Naive(_) => None,
            KernelKind::Direct(direct) => Some(direct.epilogue()),
            KernelKind::Tiled(tiled) => Some(tiled.epilogue()),
            KernelKind::Wgmma(tensor) => Some(tensor.epilogue()),
        }
    }

    /// Unroll factor of the loop over K: at least 1, and a multiple of
    /// [`partials`](Self::partials). `None` leaves the choice to the loop.
    pub fn unroll(&self) -> Option<u32> {
        self.spec.unroll
    }

    /// Independent partial accumulators of one element of C; at least 1.
    pub fn partials(&self) -> u32 {
        self.spec.partials
    }

    /// Returns true if the partial accumulators of an element are added after every K tile.
    pub fn folds_tiles(&self) -> bool {
        self.spec.fold_tiles
    }

    /// Distribution of K among blocks.
    pub(crate) fn sharing(&self) -> Sharing {
        self.spec.sharing()
    }

    /// Returns the split-K partitions of `k` under `split_k: n`, in the order in which their
    /// results are added.
    ///
    /// Each partition consists of whole K tiles (or rounds), except that the last one may end in a
    /// shorter tile. There are at most n partitions, and none is empty. Without the key there is
    /// one partition. Returns `None` if the number of partitions depends on the extents of C, as
    /// for `split_k: auto` and `stream_k`.
    ///
    /// ```
    /// use gemm_dsl::plan::SgemmPlan;
    ///
    /// let plan: SgemmPlan = "tile: 16x16x8, thread: 2x2, split_k: 3".parse()?;
    /// assert_eq!(plan.partitions(50), Some(vec![0..24, 24..48, 48..50]));
    /// # Ok::<(), gemm_dsl::SpecErrors>(())
    /// ```
    pub fn partitions(&self, k: u64) -> Option<Vec<Range<u64>>> {
        let most = match self.sharing() {
            Sharing::Whole => 1,
            Sharing::Partitions(most) => u64::from(most),
            Sharing::AutoPartitions | Sharing::Stream => return None,
        };
        let step = u64::from(self.k_step());
        let of_range = k.div_ceil(step).div_ceil(most) * step;
        let ends = |begin: u64| (begin < k).then(|| begin..k.min(begin + of_range));
        let starts = std::iter::successors(Some(0), |begin: &u64| begin.checked_add(of_range));
        Some(starts.map_while(ends).collect())
    }

    /// Tile rows that are visited as one group; at least 1.
    pub fn raster(&self) -> Option<u32> {
        self.spec.raster
    }

    /// Blocks that must fit on an SM at once; at least 1.
    pub fn blocks_per_sm(&self) -> u32 {
        self.spec.resident_blocks()
    }

    /// Minimum number of resident blocks per SM that the compiler is given. It is always set for a
    /// kernel whose warpgroups exchange registers, because that fixes the register count at launch.
    pub(crate) fn least_resident(&self) -> Option<u32> {
        let moves_registers = self.kind.wgmma().is_some_and(|wgmma| wgmma.registers().is_some());
        self.spec.blocks_per_sm.or(moves_registers.then_some(1))
    }

    /// Returns true if the kernel accepts any shape.
    pub fn guarded(&self) -> bool {
        self.spec.bounds == Bounds::Guarded
    }

    /// Epilogue expression that is applied to each accumulator; `None` stores accumulators
    /// unchanged.
    pub fn epilogue(&self) -> Option<&Epilogue> {
        self.spec.epilogue.as_ref()
    }

    /// Operators of the epilogue's folds over the rows of C.
    pub(crate) fn row_folds(&self) -> Vec<FoldOp> {
        let folds = self.epilogue().map(|epilogue| epilogue.row_results().folds);
        folds.into_iter().flatten().map(|fold| fold.op).collect()
    }

    /// Layouts of A and B.
    pub fn layout(&self) -> GemmLayout {
        self.spec.layout
    }

    /// Batch addressing; `None` for a single GEMM.
    pub fn batch(&self) -> Option<Batch> {
        self.spec.batch
    }

    /// Returns true for a persistent kernel: as many blocks as can be resident loop over all tiles
    /// of C.
    pub fn persistent(&self) -> bool {
        self.spec.persistent
    }

    /// GEMMs of a batch that one block computes; at least 1.
    pub fn products(&self) -> u32 {
        self.spec.products
    }

    /// Returns true if the kernel takes the row strides of its operands.
    pub fn pitched(&self) -> bool {
        self.spec.pitched
    }

    /// Width of the accesses to global memory.
    pub fn variant(&self) -> Variant {
        self.variant
    }

    /// Returns the plan of the same computation with guards at the edges and 4-byte accesses to
    /// global memory, for any shape. `None` if the kernel already has guards, reads splits, or is
    /// not [`KernelKind::Tiled`].
    pub fn guarded_variant(&self) -> Option<SgemmPlan> {
        let spec = self.spec.clone().bounds(Bounds::Guarded);
        let tiled = matches!(self.kind, KernelKind::Tiled(tiled) if tiled.splits().is_none());
        (tiled && !self.guarded()).then(|| self.other(spec, Variant::Guarded))
    }

    /// Returns the plan of the same computation with 4-byte accesses to global memory, for operands
    /// that are not aligned to 16 bytes. `None` if the kernel has no wider accesses, or if its spec
    /// promises aligned shapes.
    pub fn scalar_variant(&self) -> Option<SgemmPlan> {
        let applies = self.guarded() && self.variant == Variant::Vector;
        applies.then(|| self.other(self.spec.clone(), Variant::Scalar))
    }

    /// Plans the same GEMM in `f32`, with a kernel that accepts operands at any address. This GEMM
    /// is the fallback for values that the splits cannot represent.
    ///
    /// # Errors
    /// Returns the faults of the fallback's spec, which is fixed: an error means a bug in this
    /// function.
    pub(crate) fn in_f32(&self) -> Result<SgemmPlan, SpecErrors> {
        self.spec.in_f32().plan()
    }

    /// Plans another variant of this kernel, which must be of a kind that has variants.
    fn other(&self, spec: SgemmSpec, variant: Variant) -> Self {
        let tile = || spec.tile.unwrap_or_else(|| unreachable!("plan: this kind has a tile"));
        let kind = match &self.kind {
            KernelKind::Naive(_) => {
                unreachable!("plan: a naive kernel has neither vectors nor tiles")
            }
            KernelKind::Wgmma(_) => KernelKind::Wgmma(WgmmaPlan::new(&spec, tile(), variant)),
            KernelKind::Direct(_) => KernelKind::Direct(DirectPlan::new(&spec, variant)),
            KernelKind::Tiled(_) => KernelKind::Tiled(TiledPlan::new(&spec, tile(), variant)),
        };
        Self { spec, variant, kind }
    }
}
