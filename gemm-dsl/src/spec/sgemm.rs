//! The spec of a matrix product.

mod acts;
mod operands;
mod words;

pub(crate) use words::Sharing;
pub use words::{Batch, Bounds, Copies, Fragment, GemmLayout, Instruction, Lanes, Order, SplitK};

use super::table::{Table, derived_name, given_name, spec};
use super::{Arith, Block, Epilogue, Rect, Tile};
use crate::ir::{Mma, Wgmma};
use acts::{BOXES, MATRIX, PRODUCER, TILE, WARPGROUPS, naive};

spec! {
    /// A matrix product C\[M,N\] = A\[M,K\]·B\[K,N\] in `f32`. C lies row by row, A and B as
    /// [`layout`](field@SgemmSpec::layout) says.
    ///
    /// Without a [`tile`](field@SgemmSpec::tile) every thread reads its operands from global memory: for one
    /// element of C after the other, or, where one of `thread`, `lanes: k`, `float4`, `slices` and `split_k` is
    /// given, for all elements that it keeps at once.
    SgemmSpec for "sgemm_kernel" {
        /// How A and B lie in memory.
        layout(GemmLayout): GemmLayout = GemmLayout::Nn, "{}";
        /// Threads of a block that stages nothing in shared memory, or under `lanes: k` its warps; 16x16, or
        /// 8x1 warps, if neither this nor a tile is given.
        block(Block): Option<Block> = None, "",
            on naive("the threads of a tiled kernel follow from `tile` and `thread`; leave it out");
        /// The axis along which consecutive threads of such a block run. Along K the lanes of a warp are added by a
        /// tree: each takes the sum of the lane s above, for s = 16, 8, 4, 2, 1.
        lanes(Lanes): Lanes = Lanes::N, "lanes_{}",
            on naive("leave it out");
        /// Adjacent elements of a row of C that a thread computes one after the other.
        coarsen(u32): u32 = 1, "coarsen{}",
            least 1 "a thread computes at least one element",
            on naive("in a tile `thread` says how many elements a thread computes; leave it out");
        /// The unroll factor of the loop over K, in place of the loop's own. Where threads keep tiles of C and
        /// nothing is staged, the steps whose loads are all under way before the first is multiplied.
        unroll(u32): Option<u32> = None, "unroll{}",
            least 1 "a round of the loop does at least one step";
        /// Independent partial sums of one element of C.
        partials(u32): u32 = 1, "partials{}",
            least 1 "an element needs at least one sum";
        /// The block tile, staged in shared memory.
        tile(Tile): Option<Tile> = None, "";
        /// The elements of C that one thread keeps in registers.
        thread(Rect): Rect = Rect::new(1, 1), "{}";
        /// Which elements of the tile are a thread's.
        fragment(Fragment): Fragment = Fragment::Blocked, "{}", on TILE;
        /// Whether 16 bytes are moved at once wherever the layout allows.
        float4(bool): bool = false, "float4";
        /// Whether a matrix that lies along K, A under `nn` and `nt` or B under `nt` and `tt`, is
        /// transposed on its way to shared memory. The other one lies there as it should.
        transpose(bool): bool = false, "transpose", on TILE;
        /// Extra elements at the end of each shared row of A.
        pad_a(u32): u32 = 0, "pad_a{}", on TILE;
        /// Extra elements at the end of each shared row of B.
        pad_b(u32): u32 = 0, "pad_b{}", on TILE;
        /// Whether tiles that lie along K have their rows' vectors of four exchanged, each row in another way, in place of
        /// padding: elements of one k, and vectors that `ldmatrix` reads, then lie on different banks.
        swizzle(bool): bool = false, "swizzle", on TILE;
        /// Whether the next tile is loaded into registers while this one is used.
        prefetch(bool): bool = false, "prefetch", on TILE;
        /// Whether two shared buffers alternate, with one barrier a tile.
        double_buffer(bool): bool = false, "double_buffer", on TILE;
        /// The depth of a ring of asynchronous copies: `cp.async`, sm_80 and later, or those of `copy: tma`.
        stages(u32): Option<u32> = None, "stages{}",
            least 2 "a pipeline fills one buffer while another is used",
            on TILE;
        /// The steps of the k loop over which a stage's copies are issued.
        spread(u32): u32 = 1, "spread{}",
            least 1 "copies are issued in at least one step",
            on TILE;
        /// The rectangle of the block tile that one warp computes.
        warp(Rect): Option<Rect> = None, "warp{}", on TILE;
        /// Tile rows that are visited together, for reuse in the L2 cache.
        raster(u32): Option<u32> = None, "raster{}",
            least 1 "a group has at least one tile row";
        /// What the products of a sum are computed in.
        arith(Arith): Arith = Arith::F32, "{}", on TILE;
        /// Terms of K that tensor cores sum from zero on, before an IEEE addition adds what they have to the sum: a
        /// multiple of what one of their instructions takes, 16, or 8 of `tf32`. Without it, where `arith` stands for
        /// `f32`, that of one instruction, or under `mma: wgmma` the tile's K; else all of K.
        promote(u32): Option<u32> = None, "promote{}",
            on MATRIX;
        /// Whether tiles that lie along K are read by `ldmatrix`, in whose words the lanes of a warp read for one
        /// another.
        ldmatrix(bool): bool = false, "ldmatrix", on MATRIX;
        /// Which instruction asks tensor cores. `wgmma` reads planes of A and B that are made before the
        /// product: each number rounded to what is multiplied, or taken apart into several, along K.
        mma(Instruction): Instruction = Instruction::Sync, "{}", on MATRIX;
        /// Who copies these planes to shared memory.
        copy(Copies): Copies = Copies::Threads, "{}", on WARPGROUPS;
        /// Whether four warps of a block do nothing but ask for tiles, and the others nothing but multiply.
        producer(bool): bool = false, "producer", on BOXES;
        /// Whether as many blocks as `blocks_per_sm` says for each multiprocessor of the device, of each range of K, go
        /// through all tiles of C: the first tiles of K of the next one come while the sums of one are stored.
        persistent(bool): bool = false, "persistent", on PRODUCER;
        /// Blocks of a cluster, whose tiles of C lie below one another: each brings a part of the columns of B that they
        /// share to all of them.
        cluster(u32): u32 = 1, "cluster{}",
            least 1 "a block is a cluster by itself",
            on PRODUCER;
        /// The order of the multiply-adds of a fragment.
        order(Order): Order = Order::Row, "{}", on TILE;
        /// Blocks that shall fit on a multiprocessor at once: `__launch_bounds__(threads, n)`.
        blocks_per_sm(u32): u32 = 1, "blocks_per_sm{}",
            least 1 "at least one block must fit";
        /// Groups of a block's threads that take alternate steps of K. Their sums are added in the order of the groups,
        /// in shared memory.
        slices(u32): u32 = 1, "slices{}",
            least 1 "a block is at least one group";
        /// The ranges of K, multiples of the tile's or, without one, of what a block takes at once, that blocks of their
        /// own sum: what they leave is added in the order of the ranges by the last of them, which then stores. Fewer
        /// where K is too short for so many. `auto`: as many as make `blocks_per_sm` blocks for each multiprocessor of
        /// the device, but no more than the root of an eighth of K, rounded down to a power of two.
        split_k(impl Into<SplitK>): SplitK = SplitK::Ranges(1), "split_{}",
            least 1 "K is at least one range";
        /// Whether as many blocks as `blocks_per_sm` says for each multiprocessor of the device share all tiles of C
        /// evenly: each does as many whole ones as the others, and of those that are left as many steps along K.
        /// Where there are fewer tiles than blocks, no more blocks for each than `split_k: auto` has ranges at most.
        /// What those that share a tile have is added in its order.
        stream_k(bool): bool = false, "stream", on TILE;
        /// Which shapes the kernel accepts.
        bounds(Bounds): Bounds = Bounds::Guarded, "{}";
        /// Whether rows may lie further apart than they are long: the kernel takes lda, ldb, ldc.
        pitched(bool): bool = false, "pitched";
        /// Whether a launch computes many products of one size, and where their matrices lie.
        batch(Batch): Option<Batch> = None, "batch_{}", what;
        /// Products of a batch that a block computes, each by threads of its own: one that is small is no
        /// work for a whole block.
        products(u32): u32 = 1, "products{}",
            least 1 "a block computes at least one product",
            on TILE;
        /// Whether the product is that of BLAS, alpha·A·B + beta·C: it takes alpha and beta.
        scaled(bool): bool = false, "scaled", what(Inputs);
        /// What is stored where the product has a sum, as an expression of it and of operands.
        epilogue(Epilogue): Option<Epilogue> = None, "epilogue_{}", what(Inputs);
    }
}

impl SgemmSpec {
    /// The kernel's name: the user's behind `sgemm_`, or one derived from the spec such as
    /// `sgemm_128x128x8_8x8_double_buffer`.
    pub fn kernel_name(&self) -> String {
        match (&self.name, self.tile, self.block) {
            (Some(name), _, _) => given_name("sgemm_", name),
            (None, Some(tile), _) => derived_name(format!("sgemm_{tile}"), self),
            (None, None, _) => {
                let kind = if self.is_direct() { "direct" } else { "naive" };
                derived_name(format!("sgemm_{kind}_{}", self.block_or_default()), self)
            }
        }
    }

    /// Whether each element of C is one sum, in ascending K by one accumulator. All such products of the same matrices
    /// give the same bits, whatever their tiles are.
    pub fn is_invariant(&self) -> bool {
        self.splits_sums().is_none()
    }

    /// The key by which the sums of a product depend on its extents M and N, so that a part of it that is computed by itself has
    /// other bits than in the whole; none where they do not.
    pub fn depends_on_size(&self) -> Option<&'static str> {
        match self.sharing() {
            Sharing::Stream => Some("stream_k"),
            Sharing::AutoRanges => Some("split_k: auto"),
            Sharing::Whole | Sharing::Ranges(_) => None,
        }
    }

    /// Whether it computes A·B in `f32` and nothing beside: no factors, no epilogue, one product.
    pub fn is_plain(&self) -> bool {
        Self::default().computing(self) == Self::default()
    }

    /// Whether one number of A or B that its planes do not hold changes how all sums are made, not its own alone: they are
    /// then those [in `f32`](Self::in_f32).
    pub fn loses_as_a_whole(&self) -> bool {
        self.arith.is_emulation() && self.is_wgmma()
    }

    /// The spec of a kernel in `f32` that computes the same and takes matrices as this one does, at any address: where tensor
    /// cores stand for `f32`, and cannot be given some number, it has the last word.
    pub fn in_f32(&self) -> Self {
        let spec = Self::default()
            .tile(Tile::new(128, 128, 16))
            .thread(Rect::new(8, 8))
            .warp(Rect::new(32, 64))
            .fragment(Fragment::Split)
            .transpose(self.layout != GemmLayout::Tn)
            .pad_a(if self.layout.transposes_a() { 0 } else { 4 })
            .pad_b(if self.layout.transposes_b() { 4 } else { 0 })
            .stages(3)
            .layout(self.layout)
            .pitched(self.pitched);
        spec.computing(self)
    }

    /// The key by which it is not [invariant](Self::is_invariant).
    pub(crate) fn splits_sums(&self) -> Option<&'static str> {
        let splits = [
            ("arith", self.arith != Arith::F32),
            ("lanes", self.lanes == Lanes::K),
            ("partials", self.partials > 1),
            ("slices", self.slices > 1),
            ("split_k", self.split_k != SplitK::Ranges(1)),
            ("stream_k", self.stream_k),
        ];
        splits.into_iter().find_map(|(key, splits)| splits.then_some(key))
    }

    /// Terms of K that a thread multiplies at once: one, or what a matrix instruction takes.
    pub(crate) fn terms_of_step(&self) -> u32 {
        self.arith.format().map_or(1, |format| format.terms() as u32)
    }

    /// Steps that a thread multiplies of a tile whose K its slices divide.
    pub(crate) fn steps(&self, tile: Tile) -> u32 {
        tile.k / self.terms_of_step() / self.slices.max(1)
    }

    /// The elements of C that one thread keeps in registers: under `arith` a lane has its share of the matrices that
    /// its warp multiplies.
    pub(crate) fn thread_tile(&self) -> Rect {
        match (self.arith, self.warp_tile()) {
            (Arith::F32, _) | (_, None) => self.thread,
            (_, Some(warp)) => Rect::new(warp.m / Mma::LANES_M, warp.n / Mma::LANES_N),
        }
    }

    /// The rectangle of the block tile that one warp computes. Under `mma: wgmma` it is by default as wide as the block
    /// tile.
    pub(crate) fn warp_tile(&self) -> Option<Rect> {
        let of_warpgroup = |tile: Tile| Rect::new(Self::ROWS_OF_WARP, tile.n);
        self.warp.or_else(|| self.tile.filter(|_| self.is_wgmma()).map(of_warpgroup))
    }

    /// The rows of C of a warp whose instructions are of four warps.
    pub(crate) const ROWS_OF_WARP: u32 = Wgmma::ROWS / Wgmma::WARPS;

    /// Whether four warps together ask tensor cores, which read A and B in shared memory.
    pub fn is_wgmma(&self) -> bool {
        self.arith != Arith::F32 && self.mma == Instruction::Wgmma
    }

    /// Whose terms a block sums, of `split_k` and `stream_k`.
    pub(crate) fn sharing(&self) -> Sharing {
        match (self.stream_k, self.split_k) {
            (true, _) => Sharing::Stream,
            (false, SplitK::Auto) => Sharing::AutoRanges,
            (false, SplitK::Ranges(0..=1)) => Sharing::Whole,
            (false, SplitK::Ranges(most)) => Sharing::Ranges(most),
        }
    }

    /// The key by which a thread without a tile holds all its sums at once, if there is one.
    pub(crate) fn direct_by(&self) -> Option<&'static str> {
        let keys = [
            ("thread", self.thread != Rect::new(1, 1)),
            ("lanes", self.lanes == Lanes::K),
            ("float4", self.float4),
            ("slices", self.slices > 1),
            ("split_k", self.split_k != SplitK::Ranges(1)),
        ];
        let given = keys.into_iter().find_map(|(key, given)| given.then_some(key));
        given.filter(|_| self.tile.is_none())
    }

    /// Whether a thread reads from global memory, and holds all its sums at once.
    pub(crate) fn is_direct(&self) -> bool {
        self.direct_by().is_some()
    }

    /// The threads, or warps, of a block that stages nothing.
    pub(crate) fn block_or_default(&self) -> Block {
        self.block.unwrap_or(match self.lanes {
            Lanes::N | Lanes::M => Self::DEFAULT_BLOCK,
            Lanes::K => Self::DEFAULT_WARPS,
        })
    }

    /// The threads of a block where neither a block nor a tile is given.
    pub const DEFAULT_BLOCK: Block = Block::new(16, 16);

    /// The warps of such a block under `lanes: k`.
    pub const DEFAULT_WARPS: Block = Block::new(8, 1);
}
