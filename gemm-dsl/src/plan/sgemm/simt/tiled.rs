//! Geometry of a kernel that stages its operands in shared memory.

use crate::ir::{Elem, Variant};
use crate::plan::Faults;
use crate::plan::sgemm::epilogue::EpiloguePlan;
use crate::plan::sgemm::epilogue_staging::{self, BlockSize};
use crate::plan::sgemm::mma::MmaPlan;
use crate::plan::sgemm::operand::{Axis, OperandFacts, OperandPlan, copied_axes, shared_axes};
use crate::plan::sgemm::pipeline::{Pipeline, Ragged};
use crate::plan::sgemm::shared_memory::SharedBytes;
use crate::plan::sgemm::splits::SplitsPlan;
use crate::plan::sgemm::{Decided, Passed, decided, facts};
use crate::spec::{Arith, Bounds, Factor, Fragment, Order, Rect, SgemmSpec, Tile};

facts! {
    /// Part of the block tile that one warp computes. Its lanes form a grid, in which row r and
    /// column c have lane r · `lanes_n` + c.
    WarpTile {
        m: u32,
        n: u32,
        /// Number of rows of this grid of lanes.
        lanes_m: u32,
        /// Number of columns of this grid of lanes; `lanes_m · lanes_n` is 32.
        lanes_n: u32,
        /// Number of warps along the rows of the block tile.
        warps_m: u32,
        /// Number of warps along the columns of the block tile.
        warps_n: u32,
    }
}

impl WarpTile {
    fn new(tile: Tile, warp: Rect, thread: Rect) -> Self {
        Self {
            m: warp.m,
            n: warp.n,
            lanes_m: warp.m / thread.m,
            lanes_n: warp.n / thread.n,
            warps_m: tile.m / warp.m,
            warps_n: tile.n / warp.n,
        }
    }
}

facts! {
    /// Geometry of a kernel that stages its operands in shared memory.
    TiledPlan {
        /// Rows of C per block tile.
        bm: u32,
        /// Columns of C per block tile.
        bn: u32,
        /// K extent of a block tile.
        bk: u32,
        /// Rows of C per thread; a divisor of `bm` and of a warp tile's rows.
        tm: u32,
        /// Columns of C per thread; a divisor of `bn` and of a warp tile's columns.
        tn: u32,
        /// Number of GEMMs of a batch per block, each with its own threads and tiles.
        products: u32,
        /// Number of thread groups that take the steps of K in turn (sliced-K).
        slices: u32,
        /// Bytes of shared memory, excluding accumulators staged for the epilogue.
        shared: u64,
        /// Number of threads along the rows of the block tile.
        threads_m: u32,
        /// Number of threads along the columns of the block tile.
        threads_n: u32,
        /// Warp tile; if there is none, threads are numbered row by row over the block tile.
        warp: Option<WarpTile>,
        /// Plan of the tensor-core instructions; it requires a warp tile.
        mma: Option<MmaPlan>,
        /// Splits of A and B that an earlier launch computes, and whose tiles are staged.
        splits: Option<SplitsPlan>,
        /// Assignment of elements to threads on CUDA cores. It covers the warp tile or, if there is
        /// none, the block tile. Under [`Fragment::Split`], `tm` and `tn` are multiples of 4; under
        /// [`Fragment::SplitN`], `tn` is.
        fragment: Fragment,
        /// Order of the multiply-adds of a fragment.
        order: Order,
        pipeline: Pipeline,
        a: OperandPlan,
        b: OperandPlan,
        epilogue: EpiloguePlan,
    } decided {
        /// Position of the K tile that may be shorter than the others.
        ragged: Ragged,
        /// True if the thread index is declared `unsigned int`, which tells the compiler that it is
        /// not negative.
        unsigned_tid: bool,
        /// True if asynchronous copies pass shared addresses as 32-bit words.
        narrow_addresses: bool,
    }
}

/// Draft geometry, which the last checks read. It becomes the plan if they pass.
pub(crate) struct TiledDraft(TiledPlan);

impl TiledDraft {
    /// Builds the geometry. The keys that its arithmetic depends on must be valid; others may be
    /// invalid.
    pub(in crate::plan::sgemm) fn new(spec: &SgemmSpec, tile: Tile) -> Self {
        Self(TiledPlan::new(spec, tile, Variant::Vector))
    }

    pub(crate) fn operands(&self) -> [OperandPlan; 2] {
        [self.0.a, self.0.b]
    }

    pub(crate) fn mma(&self) -> Option<MmaPlan> {
        self.0.mma
    }

    pub(crate) fn epilogue(&self) -> &EpiloguePlan {
        &self.0.epilogue
    }

    pub(crate) fn has_global_vectors(&self) -> bool {
        self.0.has_global_vectors()
    }

    /// Checks that the accumulators fit in shared memory, if they are staged.
    pub(in crate::plan::sgemm) fn check_staging(&self, spec: &SgemmSpec, faults: &mut Faults) {
        let Self(plan) = self;
        let block = BlockSize { threads: plan.epilogue_threads(), shared: plan.shared.into() };
        let staged = [plan.epilogue.staged_rows(), plan.tn];
        epilogue_staging::check(spec, staged, block, faults);
    }

    pub(crate) fn plan(self, _: &Passed) -> TiledPlan {
        self.0
    }
}

impl TiledPlan {
    /// Plans a variant of a valid spec. [`TiledDraft`] also calls it before the last checks.
    pub(crate) fn new(spec: &SgemmSpec, tile: Tile, variant: Variant) -> Self {
        let pipeline = Pipeline::from_spec(spec, variant);
        let asynchronous = matches!(pipeline, Pipeline::Async { .. });
        let global_vectors = spec.float4 && matches!(variant, Variant::Only | Variant::Vector);
        let mma = spec.arith != Arith::F32;
        let types = spec.types();
        let splits = SplitsPlan::from_spec(spec, tile);
        // After the exchange, a lane has a vector of accumulators.
        let exchanges = global_vectors && splits.is_some() && types.c.size() == types.acc.size();
        let thread = if exchanges { spec.exchanged_tile() } else { spec.thread_tile() };
        let [threads_m, threads_n] = [tile.m / thread.m, tile.n / thread.n];
        let copied = |factor| splits.map_or(types.factor(factor), |splits| splits.elem());
        // A vector has adjacent elements of one run.
        let adjacent = |own: u32, elem: Elem, runs: &[Fragment]| {
            let lanes = elem.vector_lanes().into();
            let run = if runs.contains(&spec.fragment) { Fragment::RUN } else { own };
            let is_whole = run.is_multiple_of(lanes) && own.is_multiple_of(lanes);
            !mma && spec.fragment != Fragment::Strided && is_whole
        };
        let (of_rows, of_cols) = ([Fragment::Split], [Fragment::Split, Fragment::SplitN]);
        let given = |factor, free, contiguous, shared, extent, own, pad| OperandFacts {
            elem: copied(factor),
            free,
            contiguous,
            shared,
            extent,
            depth: tile.k,
            pad,
            swizzle: spec.swizzle,
            threads: threads_m * threads_n * spec.slices,
            shared_vectors: spec.float4,
            global_vectors: global_vectors || splits.is_some(),
            by_vectors: match factor {
                Factor::A => adjacent(own, types.a, &of_rows),
                Factor::B => adjacent(own, types.b, &of_cols),
            },
            asynchronous,
            pitched: spec.pitched && splits.is_none(),
            adjacent: spec.adjacent,
            mma,
            splits: splits.map(|splits| splits.count()),
        };
        let [a_lies, b_lies] = copied_axes(spec);
        let [a_shared, b_shared] = shared_axes(spec);
        let a = given(Factor::A, Axis::M, a_lies, a_shared, tile.m, thread.m, spec.pad_a);
        let of_part = tile.n / spec.parts_of_b();
        let b = given(Factor::B, Axis::N, b_lies, b_shared, of_part, thread.n, spec.pad_b);
        let ragged = ragged_tile(spec, [a, b]);
        let (a, b) = (OperandPlan::new(a, ragged.value), OperandPlan::new(b, ragged.value));
        let products = spec.products;
        let shared = SharedBytes::of_spec(spec, tile).total();
        let block = BlockSize { threads: threads_m * threads_n * products, shared };
        let stores_vectors = exchanges || global_vectors && adjacent(thread.n, types.c, &of_cols);
        let epilogue = EpiloguePlan::new(spec, thread, pipeline, stores_vectors, block);
        Self {
            bm: tile.m,
            bn: tile.n,
            bk: tile.k,
            tm: thread.m,
            tn: thread.n,
            products,
            slices: spec.slices,
            shared: u64::try_from(shared).unwrap_or(u64::MAX),
            threads_m,
            threads_n,
            warp: spec.warp.map(|warp| WarpTile::new(tile, warp, thread)),
            mma: MmaPlan::from_spec(spec, [a, b], exchanges),
            splits,
            fragment: spec.fragment,
            order: spec.order,
            pipeline,
            ragged,
            a,
            b,
            epilogue,
            unsigned_tid: match pipeline {
                Pipeline::DoubleBuffer if spec.float4 && !global_vectors => {
                    decided(true, "an int spills on sm_90 with a warp tile")
                }
                Pipeline::DoubleBuffer if spec.float4 => {
                    decided(false, "an unsigned int costs a tenth of the speed")
                }
                Pipeline::Async { .. } => decided(true, "saves one instruction in the main loop"),
                Pipeline::DoubleBuffer
                | Pipeline::Single
                | Pipeline::Parts { .. }
                | Pipeline::Prefetch => {
                    decided(false, "an unsigned int costs up to 7 % of the speed")
                }
            },
            narrow_addresses: match [a, b].map(|operand| operand.contiguous() == operand.shared()) {
                _ if !matches!(pipeline, Pipeline::Async { .. }) => {
                    decided(false, "the kernel has no asynchronous copies")
                }
                [false, false] => decided(true, "both copies compute one address per element"),
                _ => decided(false, "a constant offset from a pointer costs no instruction"),
            },
        }
    }

    /// Number of threads that hold the final accumulators of one GEMM's block tile; a multiple of
    /// 32 if there is a warp tile.
    pub fn threads_of_slice(&self) -> u32 {
        self.threads_m * self.threads_n
    }

    /// Number of threads that compute one GEMM's block tile.
    pub fn threads_of_product(&self) -> u32 {
        self.threads_of_slice() * self.slices
    }

    /// Number of threads of a block that hold final accumulators.
    pub fn epilogue_threads(&self) -> u32 {
        self.threads_of_slice() * self.products
    }

    /// Threads per block, at most 1024.
    pub fn threads(&self) -> u32 {
        self.threads_of_product() * self.products
    }

    /// Parts in which the tile of B is staged; 1 if it is staged as a whole.
    pub fn parts_of_b(&self) -> u32 {
        match self.pipeline {
            Pipeline::Parts { parts } => parts,
            _ => 1,
        }
    }

    pub fn buffers(&self) -> u32 {
        self.pipeline.buffers()
    }

    /// Bytes of shared memory per block: the tiles of A and B in all buffers, communication arrays,
    /// and accumulators staged for the epilogue.
    pub fn shared_bytes(&self) -> u64 {
        self.epilogue.shared_bytes(self.shared, self.epilogue_threads(), self.tn)
    }

    /// Elements per access to A, B and C. Splits of A and B are aligned in any case.
    pub fn widths(&self) -> [u32; 3] {
        let of = |operand: &OperandPlan| if self.splits.is_some() { 1 } else { operand.width() };
        [of(&self.a), of(&self.b), self.epilogue.width()]
    }

    /// Returns true if any access to A, B or C is 16 bytes wide.
    pub fn has_global_vectors(&self) -> bool {
        self.widths().iter().any(|width| *width > 1)
    }
}

/// Numbers of threads along M and along N of a block tile.
fn threads_of_tile(spec: &SgemmSpec, tile: Tile) -> [u32; 2] {
    let thread = spec.thread_tile();
    [tile.m / thread.m, tile.n / thread.n]
}

/// Number of threads of a block, as in [`TiledPlan::threads`], for a spec that may exceed the
/// limit.
pub(in crate::plan::sgemm) fn threads(spec: &SgemmSpec, tile: Tile) -> u64 {
    let [rows, cols] = threads_of_tile(spec, tile).map(u64::from);
    (rows * cols).saturating_mul(spec.slices.into()).saturating_mul(spec.products.into())
}

/// Chooses the position of the K tile that may be shorter than the others.
fn ragged_tile(spec: &SgemmSpec, operands: [OperandFacts; 2]) -> Decided<Ragged> {
    let [OperandFacts { global_vectors, .. }, _] = operands;
    let straddles = |vectors: bool| {
        let of = |given: OperandFacts| OperandFacts { global_vectors: vectors, ..given };
        operands.into_iter().any(|given| of(given).vectors_straddle_k())
    };
    // Slices and partial accumulators take elements of K by their position in the tile.
    let splits = spec.slices > 1 || spec.partials > 1;
    match spec.bounds {
        _ if spec.converts_matrices() => {
            decided(Ragged::Nowhere, "the splits are padded to whole tiles")
        }
        Bounds::Aligned => decided(Ragged::Nowhere, "K is a multiple of the tile's K"),
        Bounds::Guarded if spec.arith != Arith::F32 => {
            decided(Ragged::Last, "tensor-core steps must start at multiples of their K")
        }
        Bounds::Guarded if spec.b_in_parts => {
            decided(Ragged::Last, "the main loop loads every tile")
        }
        Bounds::Guarded if straddles(global_vectors) => {
            decided(Ragged::Last, "the other tiles of strided rows then start on 16 bytes")
        }
        Bounds::Guarded if splits && straddles(spec.float4) => {
            decided(Ragged::Last, "K is then split as in the vector variant")
        }
        Bounds::Guarded => decided(Ragged::First, "the main loop then checks no element along K"),
    }
}
