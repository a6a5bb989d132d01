//! The spec of a matrix product.

use super::table::{ActsOn, derived_name, given_name, spec, words};
use super::{Block, Epilogue, Rect, Tile};

words! {
    /// The axis of C along which consecutive threads run.
    Lanes {
        /// Along columns: accesses to B and C coalesce.
        N = "n",
        /// Along rows.
        M = "m",
    }
}

words! {
    /// Which elements of C a thread owns.
    Fragment {
        /// Adjacent ones.
        Blocked = "blocked",
        /// One block width apart (inside a warp tile: one warp width).
        Strided = "strided",
        /// On both axes vectors of four; from one vector to the next, four elements for each thread
        /// along that axis (inside a warp tile: for each lane).
        Split = "split",
    }
}

words! {
    /// The order in which the multiply-adds of one fragment are issued.
    Order {
        /// Row by row.
        Row = "row",
        /// Column by column.
        Column = "column",
        /// Row by row, every other row backwards.
        RowSerpentine = "row_serpentine",
        /// Column by column, every other column backwards.
        ColumnSerpentine = "column_serpentine",
    }
}

words! {
    /// How A and B lie in memory, a letter for each: `n` row by row, `t` column by column, which is the
    /// transpose row by row.
    Layout {
        /// Memory holds A, M x K, and B, K x N.
        Nn = "nn",
        /// A, and the transpose of B, N x K.
        Nt = "nt",
        /// The transpose of A, K x M, and B.
        Tn = "tn",
        /// The transposes of both.
        Tt = "tt",
    }
}

impl Layout {
    /// Whether A lies column by column: its neighbours along M, not along K.
    pub fn transposes_a(self) -> bool {
        matches!(self, Layout::Tn | Layout::Tt)
    }

    /// Whether B lies column by column: its neighbours along K, not along N.
    pub fn transposes_b(self) -> bool {
        matches!(self, Layout::Nt | Layout::Tt)
    }
}

words! {
    /// Which shapes a kernel accepts.
    Bounds {
        /// Any: what lies outside changes no result and is not written.
        Guarded = "guarded",
        /// Only multiples of the tile, or without one of what a block computes; checked at the launch.
        Aligned = "aligned",
    }
}

words! {
    /// Where the matrices of a batch of products lie.
    Batch {
        /// Each of A, B and C a fixed distance behind the one before it, which for A and B may be 0.
        Strided = "strided",
        /// Each wherever its pointer says: A, B and C are lists of as many matrices as there are products.
        Pointers = "pointers",
    }
}

/// Products that stage tiles of A and B in shared memory.
const TILE: ActsOn<SgemmSpec> = ActsOn {
    includes: |spec| spec.tile.is_some(),
    key: "tile",
    because: "without `tile` nothing is staged in shared memory",
    remedy: "add a tile such as `tile: 64x64x8`, or leave it out",
};

/// Products that stage nothing.
const fn naive(remedy: &'static str) -> ActsOn<SgemmSpec> {
    ActsOn {
        includes: |spec| spec.tile.is_none(),
        key: "tile",
        because: "it shapes a kernel without `tile`",
        remedy,
    }
}

spec! {
    /// A matrix product C\[M,N\] = A\[M,K\]·B\[K,N\] in `f32`. C lies row by row, A and B as
    /// [`layout`](field@SgemmSpec::layout) says.
    ///
    /// Without a [`tile`](field@SgemmSpec::tile) every thread reads its operands from global memory.
    SgemmSpec for "sgemm_kernel" {
        /// How A and B lie in memory.
        layout(Layout): Layout = Layout::Nn, "{}";
        /// Threads of a block that stages nothing in shared memory; 16x16 if neither this nor a
        /// tile is given.
        block(Block): Option<Block> = None, "",
            on naive("the threads of a tiled kernel follow from `tile` and `thread`; leave it out");
        /// The axis along which consecutive threads of such a block run.
        lanes(Lanes): Lanes = Lanes::N, "lanes_{}",
            on naive("leave it out");
        /// Adjacent elements of a row of C that a thread computes one after the other.
        coarsen(u32): u32 = 1, "coarsen{}",
            least 1 "a thread computes at least one element",
            on naive("use `thread: 1x4` for four elements of a row");
        /// The unroll factor of the loop over K, in place of the loop's own.
        unroll(u32): Option<u32> = None, "unroll{}",
            least 1 "a round of the loop does at least one step";
        /// Independent partial sums of one element of C.
        partials(u32): u32 = 1, "partials{}",
            least 1 "an element needs at least one sum";
        /// The block tile, staged in shared memory.
        tile(Tile): Option<Tile> = None, "";
        /// The elements of C that one thread keeps in registers.
        thread(Rect): Rect = Rect::new(1, 1), "{}", on TILE;
        /// Which elements of the tile are a thread's.
        fragment(Fragment): Fragment = Fragment::Blocked, "{}", on TILE;
        /// Whether 16 bytes are moved at once wherever the layout allows.
        float4(bool): bool = false, "float4", on TILE;
        /// Whether a matrix that lies along K, A under `nn` and `nt` or B under `nt` and `tt`, is
        /// transposed on its way to shared memory. The other one lies there as it should.
        transpose(bool): bool = false, "transpose", on TILE;
        /// Extra elements at the end of each shared row of A.
        pad_a(u32): u32 = 0, "pad_a{}", on TILE;
        /// Extra elements at the end of each shared row of B.
        pad_b(u32): u32 = 0, "pad_b{}", on TILE;
        /// Whether the next tile is loaded into registers while this one is used.
        prefetch(bool): bool = false, "prefetch", on TILE;
        /// Whether two shared buffers alternate, with one barrier a tile.
        double_buffer(bool): bool = false, "double_buffer", on TILE;
        /// The depth of a ring of asynchronous copies: `cp.async`, sm_80 and later.
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
        /// The order of the multiply-adds of a fragment.
        order(Order): Order = Order::Row, "{}", on TILE;
        /// Blocks that shall fit on a multiprocessor at once: `__launch_bounds__(threads, n)`.
        blocks_per_sm(u32): u32 = 1, "blocks_per_sm{}",
            least 1 "at least one block must fit";
        /// The ranges of K, multiples of the tile's, that blocks of their own sum: what they leave is added in the
        /// order of the ranges by the last of them, which then stores. Fewer where K has fewer tiles.
        split_k(u32): u32 = 1, "split{}",
            least 1 "K is at least one range",
            on TILE;
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
            (None, None, block) => {
                let block = block.unwrap_or(Self::DEFAULT_BLOCK);
                derived_name(format!("sgemm_naive_{block}"), self)
            }
        }
    }

    /// Whether each element of C is one sum, in ascending K by one accumulator. All such products of the same matrices
    /// give the same bits, whatever their tiles are.
    pub fn is_invariant(&self) -> bool {
        self.splits_sums().is_none()
    }

    /// The key by which it is not [invariant](Self::is_invariant).
    pub(crate) fn splits_sums(&self) -> Option<&'static str> {
        let splits = [("partials", self.partials > 1), ("split_k", self.split_k > 1)];
        splits.into_iter().find_map(|(key, splits)| splits.then_some(key))
    }

    /// The threads of a block where neither a block nor a tile is given.
    pub const DEFAULT_BLOCK: Block = Block::new(16, 16);
}
