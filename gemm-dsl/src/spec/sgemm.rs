mod acts;
mod operands;
mod words;

pub(crate) use words::Sharing;
pub use words::{
    Batch, Bounds, Convert, Copies, Fragment, GemmLayout, Instruction, Lanes, MatrixType, Order,
    SplitK,
};

use super::table::{Table, derived_name, given_name, spec};
use super::{Arith, Block, Epilogue, Rect, Tile};
use crate::ir::{Mma, Wgmma};
use acts::{
    CUDA_CORES, PARTIAL_SUMS, PRODUCER, SCALAR_COPIES, STRIDED_ROW, TENSOR_CORES, TILE, TMA_COPIES,
    WARPGROUPS, untiled,
};

spec! {
    /// GEMM C\[M,N\] = A\[M,K\]·B\[K,N\]. C is row-major;
    /// [`layout`](field@SgemmSpec::layout) gives the layouts of A and B.
    ///
    /// Without a [`tile`](field@SgemmSpec::tile), every thread reads its operands from global
    /// memory and computes one element of C after the other. If `thread`, `lanes: k`, `float4`,
    /// `slices` or `split_k` is given, the thread computes all its elements at once.
    SgemmSpec for "sgemm_kernel", functions "sgemm_" {
        /// Element type of A, in `gemm_kernel!`.
        a(MatrixType): MatrixType = MatrixType::F32, "a_{}", what;
        /// Element type of B, in `gemm_kernel!`. It is the type of A; `e4m3` and `e5m2` may be
        /// mixed, and so may `i8` and `u8`.
        b(MatrixType): MatrixType = MatrixType::F32, "b_{}", what;
        /// Element type of C, in `gemm_kernel!`. Sums are rounded to it, to nearest with ties to
        /// even.
        c(MatrixType): MatrixType = MatrixType::F32, "c_{}", what;
        /// Layouts of A and B, one letter for each: `n` for row-major and `t` for column-major. C
        /// is row-major.
        layout(GemmLayout): GemmLayout = GemmLayout::Nn, "{}";
        /// Shape of a block in a kernel without `tile`, in threads, or in warps under `lanes: k`.
        /// Without the key: 16x16 threads or 8x1 warps.
        block(Block): Option<Block> = None, "",
            on untiled("with `tile`, the block follows from `tile` and `thread` or `warp`");
        /// Axis along which consecutive threads of a kernel without `tile` are arranged. Under `k`,
        /// each lane of a warp sums a part of K. A tree then combines the sums: for s = 16, 8, 4,
        /// 2, 1, lane i adds the sum of lane i + s. Use `k` for matrix-vector shapes.
        lanes(Lanes): Lanes = Lanes::N, "lanes_{}",
            on untiled("it arranges the threads of kernels without `tile`");
        /// Number of adjacent elements in a row of C that a thread computes one after the other.
        /// Only for kernels without `tile`.
        coarsen(u32): u32 = 1, "coarsen{}",
            least 1 "a thread computes at least one element",
            on untiled("with `tile`, `thread` sets the elements of a thread");
        /// Unroll factor of the loop over K. In a kernel without `tile` that has `thread`,
        /// `lanes: k`, `float4`, `slices` or `split_k`, the loads of this many steps are issued
        /// before the first multiply. Their values occupy registers.
        unroll(u32): Option<u32> = None, "unroll{}",
            least 1 "an iteration of the loop does at least one step";
        /// Number of independent partial sums of an element of C. More of them shorten the chain of
        /// dependent multiply-adds, cost registers, and change the order of summation.
        partials(u32): u32 = 1, "partials{}",
            least 1 "an element needs at least one sum";
        /// Adds the partial sums of an element to its accumulator after every K tile, instead of
        /// once after all of K. It changes the order of summation, and costs an addition per tile
        /// and partial sum, and a register for the accumulator.
        fold_tiles(bool): bool = false, "fold_tiles", on PARTIAL_SUMS;
        /// Block tile, staged in shared memory: MxN elements of C, computed in steps of K.
        tile(Tile): Option<Tile> = None, "";
        /// Thread tile: the elements of C that one thread keeps in registers. A larger tile reuses
        /// each loaded operand more often and costs registers.
        thread(Rect): Rect = Rect::new(1, 1), "{}";
        /// Assignment of the tile's elements to threads. It determines the bank conflicts, and
        /// which accesses can be vectors.
        fragment(Fragment): Fragment = Fragment::Blocked, "{}", on TILE;
        /// Accesses memory in vectors of 16 bytes, such as a `float4`, wherever the layout allows.
        float4(bool): bool = false, "float4";
        /// Number of adjacent elements of a tile that one thread copies, by scalar loads and
        /// stores. By default, consecutive threads copy consecutive elements, so that accesses
        /// coalesce. Larger numbers reproduce kernels whose threads copy runs of elements without
        /// `float4`.
        adjacent(u32): u32 = 1, "adjacent{}",
            least 1 "a thread copies at least one element at a time",
            on SCALAR_COPIES;
        /// Stores K-major operands (A under `nn` and `nt`, B under `nt` and `tt`) transposed in
        /// shared memory. Other operands already have the layout that threads read. It does not
        /// transpose the matrices A and B: the key `layout` does.
        transpose(bool): bool = false, "transpose", on TILE;
        /// Padding at the end of each shared-memory row of A, in elements. It avoids bank conflicts
        /// and costs shared memory.
        pad_a(u32): u32 = 0, "pad_a{}", on TILE;
        /// Padding at the end of each shared-memory row of B, in elements. It avoids bank conflicts
        /// and costs shared memory.
        pad_b(u32): u32 = 0, "pad_b{}", on TILE;
        /// XOR-swizzles K-major tiles in shared memory instead of padding them, to avoid bank
        /// conflicts. It costs no shared memory.
        swizzle(bool): bool = false, "swizzle", on TILE;
        /// Loads the next tile into registers while the current one is multiplied. It hides the
        /// latency of global memory and costs registers.
        prefetch(bool): bool = false, "prefetch", on TILE;
        /// Stages the tile of B in as many parts as a thread has columns. Each part is loaded and
        /// multiplied before the next one is loaded. It divides the shared memory of B by the
        /// number of parts, and costs two barriers per part.
        b_in_parts(bool): bool = false, "b_in_parts", on STRIDED_ROW;
        /// Alternates two shared-memory buffers, with one barrier per tile. It doubles the shared
        /// memory of the tiles.
        double_buffer(bool): bool = false, "double_buffer", on TILE;
        /// Number of pipeline stages: shared-memory buffers that asynchronous copies fill in turn,
        /// by `cp.async` (sm_80 and later) or, under `copy: tma`, by TMA. More stages hide more
        /// latency. Each stage occupies shared memory for a tile of A and a tile of B.
        stages(u32): Option<u32> = None, "stages{}",
            least 2 "a pipeline fills one buffer while another is used",
            on TILE;
        /// Number of K steps over which the copies of a stage are issued. The default issues all in
        /// the first step.
        spread(u32): u32 = 1, "spread{}",
            least 1 "copies are issued in at least one step",
            on TILE;
        /// Warp tile: the rectangle of the block tile that one warp computes. Required by `arith`
        /// with `mma: sync`.
        warp(Rect): Option<Rect> = None, "warp{}", on TILE;
        /// Block rasterisation: consecutive blocks cover groups of this many tile rows, for reuse
        /// in the L2 cache.
        raster(u32): Option<u32> = None, "raster{}",
            least 1 "a group has at least one tile row";
        /// Arithmetic of the multiplications. All arithmetics except `f32` use tensor cores (sm_80
        /// and later). With `mma: wgmma`, it follows from the types of A and B, unless they are
        /// `f32`.
        arith(Arith): Arith = Arith::F32, "{}", on TILE, follows SgemmSpec::take_arith_of_types;
        /// Length of K that tensor cores sum in a fresh accumulator. An IEEE addition then adds
        /// this accumulator to the main one. The length is a multiple of one instruction's K: 16, 8
        /// for `tf32`, or 32 for 8-bit elements. Default for FP32 emulation: one instruction's K,
        /// or the tile's K under `mma: wgmma`. Default for other arithmetic: all of K. Smaller
        /// values are more accurate and cost more additions.
        promote(u32): Option<u32> = None, "promote{}",
            on TENSOR_CORES;
        /// Reads K-major tiles with `ldmatrix`: one instruction loads fragments for all lanes of a
        /// warp.
        ldmatrix(bool): bool = false, "ldmatrix", on TENSOR_CORES;
        /// Tensor core instruction. `wgmma` reads matrices of 16-bit elements themselves, in any
        /// layout, and matrices of 8-bit elements under `layout: nt`. Of matrices of `f32` it reads
        /// converted copies, which a launch before the GEMM writes. The copies are K-major, and
        /// rounded or split according to `arith`.
        mma(Instruction): Instruction = Instruction::Sync, "{}", on TENSOR_CORES;
        /// Place where A and B are converted to the format of `arith`, or split. It does not change
        /// the results. `mma: wgmma` always converts whole matrices.
        convert(Convert): Convert = Convert::Fragment, "convert_{}", on TENSOR_CORES;
        /// Unit that copies the converted A and B to shared memory.
        copy(Copies): Copies = Copies::Threads, "{}", on WARPGROUPS;
        /// Warp specialisation: four producer warps of a block only issue copies, and the other
        /// warps only multiply.
        producer(bool): bool = false, "producer", on TMA_COPIES;
        /// Persistent kernel: for each split-K partition, `blocks_per_sm` × SMs blocks loop over
        /// all output tiles. The first loads of the next tile overlap with the epilogue of the
        /// current tile.
        persistent(bool): bool = false, "persistent", on PRODUCER;
        /// Number of blocks in a cluster. Their tiles are adjacent along M, so they need the same
        /// columns of B. Each block loads a part of these columns and multicasts it to the cluster.
        cluster(u32): u32 = 1, "cluster{}",
            least 1 "a block is a cluster by itself",
            on PRODUCER;
        /// Swaps A and B in the instruction: its 64 rows are columns of C, and its columns are rows
        /// of C. The block tile then has a multiple of 8 rows, and of 64 columns. Use it if C has
        /// few rows. It does not change the results.
        swap_ab(bool): bool = false, "swap_ab", on WARPGROUPS;
        /// Stages accumulators in shared memory before C is stored. A vector store needs four
        /// adjacent registers, which can slow the main loop down. Staged accumulators are stored as
        /// scalars and occupy shared memory. Long epilogues are staged without the key.
        stage_c(bool): bool = false, "stage_c", on CUDA_CORES;
        /// Issue order of the multiply-adds of a fragment. It affects register reuse, but not the
        /// results.
        order(Order): Order = Order::Row, "{}", on TILE;
        /// Minimum number of resident blocks per SM: `__launch_bounds__(threads, n)`. It limits the
        /// registers of a thread to its share of an SM with n blocks. Without the key, the compiler
        /// chooses.
        blocks_per_sm(u32): Option<u32> = None, "blocks_per_sm{}",
            least 1 "at least one block must fit";
        /// Sliced-K: number of thread groups of a block that take the steps of K in turn. Their
        /// accumulators are added in shared memory, in the order of the groups. Use sliced-K for a
        /// small C and a large K.
        slices(u32): u32 = 1, "slices{}",
            least 1 "a block has at least one group";
        /// Split-K: maximum number of partitions of K, each summed by separate blocks. The block
        /// that finishes a tile last adds the partial sums in the order of the partitions, and
        /// stores C. A partition is a multiple of the tile's K, or of a block's K step in a kernel
        /// without `tile`. A short K therefore has fewer partitions. Under `auto`, there are just
        /// enough partitions to fill the device with `blocks_per_sm` blocks per SM. Their limit is
        /// sqrt(K / 8), rounded down to a power of two. Use split-K if C has too few tiles to fill
        /// the device.
        split_k(impl Into<SplitK>): SplitK = SplitK::Partitions(1), "split_{}",
            least 1 "K has at least one partition";
        /// Stream-K: `blocks_per_sm` × SMs blocks share the work evenly. Each block first computes
        /// the same number of whole tiles, then an equal number of K steps of the remaining tiles.
        /// If there are fewer tiles than blocks, the number of blocks per tile is at most the
        /// number of partitions of `split_k: auto`. Partial sums of a tile are added in ascending
        /// K.
        stream_k(bool): bool = false, "stream", on TILE;
        /// Shapes that the kernel accepts.
        bounds(Bounds): Bounds = Bounds::Guarded, "{}";
        /// Accepts padding between rows: the kernel takes the leading dimensions lda, ldb and ldc.
        pitched(bool): bool = false, "pitched";
        /// Computes a batch of GEMMs per launch. Strides or pointers give the locations of matrices
        /// of one size; groups of rows have a matrix B each.
        batch(Batch): Option<Batch> = None, "batch_{}", what;
        /// Number of GEMMs of a batch that one block computes, each with separate threads. Use this
        /// key for GEMMs that are too small to occupy a block.
        products(u32): u32 = 1, "products{}",
            least 1 "a block computes at least one GEMM",
            on TILE;
        /// Computes alpha·A·B + beta·C, as in BLAS. The kernel takes alpha and beta, and reads C.
        scaled(bool): bool = false, "scaled", what(Inputs);
        /// Expression of the accumulator and of operands. The kernel stores its value in C. It
        /// replaces a separate elementwise kernel, which would read and write C again.
        epilogue(Epilogue): Option<Epilogue> = None, "epilogue_{}", what(Inputs);
    }
}

impl SgemmSpec {
    /// Returns the kernel's name: `sgemm_` with the user's name, or a name derived from the spec
    /// such as `sgemm_128x128x8_8x8_double_buffer`. If a matrix is not `f32`, it begins with
    /// `gemm_`.
    pub fn kernel_name(&self) -> String {
        let prefix = self.types().name_prefix();
        match (&self.name, self.tile, self.block) {
            (Some(name), _, _) => given_name(prefix, name),
            (None, Some(tile), _) => derived_name(format!("{prefix}{tile}"), self),
            (None, None, _) => {
                let kind = if self.is_direct() { "direct" } else { "naive" };
                derived_name(format!("{prefix}{kind}_{}", self.block_or_default()), self)
            }
        }
    }

    /// Returns the minimum number of resident blocks per SM.
    pub fn resident_blocks(&self) -> u32 {
        self.blocks_per_sm.unwrap_or(1)
    }

    /// Returns true if each element of C is one sum, accumulated in ascending K, and the epilogue
    /// does not fold rows. All such GEMMs of the same matrices give the same bits, whatever their
    /// tiles.
    pub fn is_invariant(&self) -> bool {
        self.splits_sums().is_none()
    }

    /// Returns the key that makes the order of summation depend on M and N, if there is one. A
    /// submatrix of C then has other bits if it is computed by a GEMM of its own.
    pub fn depends_on_size(&self) -> Option<&'static str> {
        match self.sharing() {
            Sharing::Stream => Some("stream_k"),
            Sharing::AutoPartitions => Some("split_k: auto"),
            Sharing::Whole | Sharing::Partitions(_) => None,
        }
    }

    /// Returns true for plain A·B in `f32`: no `scaled`, no epilogue, no batch.
    pub fn is_plain(&self) -> bool {
        Self::default().computing(self) == Self::default()
    }

    /// Returns true if one unrepresentable element of A or B makes the kernel
    /// [in `f32`](Self::in_f32) recompute all of C. Otherwise only the sums that contain the
    /// element are recomputed.
    pub fn falls_back_as_a_whole(&self) -> bool {
        self.arith.is_emulation() && self.is_wgmma()
    }

    /// Returns the spec of the `f32` fallback: a GEMM that computes the same from the same
    /// matrices, at any address. FP32 emulation falls back on it if the splits cannot represent
    /// some element.
    pub fn in_f32(&self) -> Self {
        let spec = Self::default()
            .tile(Tile::new(128, 128, 16))
            .thread(Rect::new(8, 8))
            .warp(Rect::new(32, 64))
            .fragment(Fragment::Split)
            .transpose(self.layout != GemmLayout::Tn)
            .pad_a(if self.layout.transposes_a() { 0 } else { 4 })
            .pad_b(if self.layout.transposes_b() { 4 } else { 0 })
            .layout(self.layout)
            .pitched(self.pitched);
        // Asynchronous copies of single elements need elements of four bytes.
        let spec = match self.types().a.size() {
            4.. => spec.stages(3),
            _ => spec.double_buffer(true),
        };
        spec.computing(self)
    }

    /// Returns the first key that makes the GEMM not [invariant](Self::is_invariant), if any. Every
    /// key is listed, so that a new key does not compile before it is in one of the two groups.
    pub(crate) fn splits_sums(&self) -> Option<&'static str> {
        #[rustfmt::skip]
        let Self {
            arith, lanes, partials, slices, split_k, stream_k,
            // These keys leave each element one sum in ascending K.
            name: _, a: _, b: _, c: _, layout: _, block: _, coarsen: _, unroll: _, tile: _,
            thread: _, fragment: _, float4: _, transpose: _, pad_a: _, pad_b: _, swizzle: _,
            prefetch: _, double_buffer: _, stages: _, spread: _, warp: _, raster: _, order: _,
            blocks_per_sm: _, bounds: _, pitched: _, batch: _, products: _, scaled: _, epilogue,
            adjacent: _, b_in_parts: _, stage_c: _,
            // `fold_tiles` needs `partials`, the other keys need `arith`.
            fold_tiles: _,
            promote: _, ldmatrix: _, mma: _, convert: _, copy: _, producer: _, persistent: _,
            cluster: _, swap_ab: _,
        } = self;
        let splits = [
            ("arith", *arith != Arith::F32),
            ("lanes", *lanes == Lanes::K),
            ("partials", *partials > 1),
            ("slices", *slices > 1),
            ("split_k", *split_k != SplitK::Partitions(1)),
            ("stream_k", *stream_k),
            // The parts of a row are those of the tile.
            ("epilogue", epilogue.as_ref().is_some_and(Epilogue::folds_rows)),
        ];
        splits.into_iter().find_map(|(key, splits)| splits.then_some(key))
    }

    /// Returns the number of parts in which the tile of B is staged.
    pub(crate) fn parts_of_b(&self) -> u32 {
        if self.b_in_parts { self.thread.n.max(1) } else { 1 }
    }

    /// Returns the K of one step of a thread: 1, or the K of a matrix instruction.
    pub(crate) fn k_per_step(&self) -> u32 {
        self.formats().map_or(1, |[format, _]| format.terms() as u32)
    }

    /// Returns the number of steps of a thread in a tile. The tile's K must be divisible by the
    /// slices.
    pub(crate) fn steps(&self, tile: Tile) -> u32 {
        tile.k / self.k_per_step() / self.slices.max(1)
    }

    /// Returns the elements of C that one thread keeps in registers. On tensor cores, these are a
    /// lane's share of its warp's instructions.
    pub(crate) fn thread_tile(&self) -> Rect {
        match (self.arith, self.warp_tile()) {
            (Arith::F32, _) | (_, None) => self.thread,
            (_, Some(warp)) if self.swap_ab => {
                Rect::new(warp.m / Mma::LANES_N, warp.n / Mma::LANES_M)
            }
            (_, Some(warp)) => Rect::new(warp.m / Mma::LANES_M, warp.n / Mma::LANES_N),
        }
    }

    /// Returns a lane's elements of C if pairs of lanes exchange the accumulators of `mma.sync`:
    /// one row of each instruction instead of two, and twice as many columns.
    pub(crate) fn exchanged_tile(&self) -> Rect {
        let Rect { m, n } = self.thread_tile();
        Rect::new(m / 2, n * 2)
    }

    /// Returns the part of the block tile that one warp computes. Under `mma: wgmma`, it is by
    /// default as wide as the block tile, or as high under `swap_ab`.
    pub(crate) fn warp_tile(&self) -> Option<Rect> {
        let of_warpgroup = |tile: Tile| match self.swap_ab {
            false => Rect::new(Self::ROWS_OF_WARP, tile.n),
            true => Rect::new(tile.m, Self::ROWS_OF_WARP),
        };
        self.warp.or_else(|| self.tile.filter(|_| self.is_wgmma()).map(of_warpgroup))
    }

    /// Rows of C per warp of a warpgroup, or columns under `swap_ab`.
    pub(crate) const ROWS_OF_WARP: u32 = Wgmma::ROWS / Wgmma::WARPS;

    /// Returns true if tensor cores read A and B from shared memory, with the instruction `wgmma`.
    pub fn is_wgmma(&self) -> bool {
        self.arith != Arith::F32 && self.mma == Instruction::Wgmma
    }

    /// Returns true if a launch before the GEMM converts A and B, or splits them, and the GEMM
    /// reads the results.
    pub fn converts_matrices(&self) -> bool {
        self.arith != Arith::F32
            && (self.mma == Instruction::Wgmma || self.convert == Convert::Matrix)
            && !self.reads_matrices()
    }

    /// Returns true if `wgmma` reads A and B themselves, because their elements have the format of
    /// `arith`.
    pub fn reads_matrices(&self) -> bool {
        self.is_wgmma() && Arith::of_types(self.a, self.b) == Some(self.arith)
    }

    /// Returns the distribution of K among blocks according to `split_k` and `stream_k`.
    pub(crate) fn sharing(&self) -> Sharing {
        match (self.stream_k, self.split_k) {
            (true, _) => Sharing::Stream,
            (false, SplitK::Auto) => Sharing::AutoPartitions,
            (false, SplitK::Partitions(0..=1)) => Sharing::Whole,
            (false, SplitK::Partitions(most)) => Sharing::Partitions(most),
        }
    }

    /// Returns the first key that makes the threads of a kernel without a tile compute all their
    /// elements at once, if any.
    pub(crate) fn direct_by(&self) -> Option<&'static str> {
        let keys = [
            ("thread", self.thread != Rect::new(1, 1)),
            ("lanes", self.lanes == Lanes::K),
            ("float4", self.float4),
            ("slices", self.slices > 1),
            ("split_k", self.split_k != SplitK::Partitions(1)),
        ];
        let given = keys.into_iter().find_map(|(key, given)| given.then_some(key));
        given.filter(|_| self.tile.is_none())
    }

    /// Returns true if threads read operands from global memory and compute all their elements at
    /// once.
    pub(crate) fn is_direct(&self) -> bool {
        self.direct_by().is_some()
    }

    /// Returns the shape of a block without `tile`, in threads, or in warps under `lanes: k`.
    pub(crate) fn block_or_default(&self) -> Block {
        self.block.unwrap_or(match self.lanes {
            Lanes::N | Lanes::M => Self::DEFAULT_BLOCK,
            Lanes::K => Self::DEFAULT_WARPS,
        })
    }

    /// Threads of a block if neither `block` nor `tile` is given.
    pub const DEFAULT_BLOCK: Block = Block::new(16, 16);

    /// Warps of a block under `lanes: k` if neither `block` nor `tile` is given.
    pub const DEFAULT_WARPS: Block = Block::new(8, 1);
}
