//! The geometry of a kernel that stages its operands in shared memory.

use super::facts;
use crate::spec::{Fragment, Order, SgemmSpec, Tile};

/// How the tiles of the K loop come in while others are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipeline {
    /// They do not: load, barrier, compute, barrier.
    Single,
    /// The next tile waits in registers; one shared buffer.
    Prefetch,
    /// The next tile waits in registers, then goes to the other of two shared buffers.
    DoubleBuffer,
    /// Asynchronous copies fill a ring of shared buffers.
    Async {
        /// Buffers of the ring; at least 2.
        stages: u32,
        /// Steps of the k loop over which the copies of a tile are issued; from 1 to the tile's K.
        spread: u32,
    },
}

facts! {
    /// The rectangle of the block tile that one warp computes.
    WarpTile {
        /// Rows.
        m: u32,
        /// Columns.
        n: u32,
        /// Lanes along the rows; lane = row · `lanes_n` + column.
        lanes_m: u32,
        /// Lanes along the columns; `lanes_m · lanes_n` is 32.
        lanes_n: u32,
        /// Warps of the block along the rows.
        warps_m: u32,
        /// Warps of the block along the columns.
        warps_n: u32,
    }
}

facts! {
    /// The geometry of a kernel that stages its operands in shared memory.
    ///
    /// A's shared tile has `bm` rows of `bk + pad_a` elements, or transposed `bk` rows of
    /// `bm + pad_a`; B's has `bk` rows of `bn + pad_b`.
    TiledPlan {
        /// Rows of C in a block tile.
        bm: u32,
        /// Columns of C in a block tile.
        bn: u32,
        /// Terms of a sum in a block tile.
        bk: u32,
        /// Rows of C of a thread; divides `bm`, and a warp tile's rows.
        tm: u32,
        /// Columns of C of a thread; divides `bn`, and a warp tile's columns.
        tn: u32,
        /// Threads along the rows of the block tile.
        threads_m: u32,
        /// Threads along the columns of the block tile.
        threads_n: u32,
        /// The warp tile; without one threads are numbered row by row over the block tile.
        warp: Option<WarpTile>,
        /// Which elements of its warp tile, or block tile, are a thread's. Under [`Fragment::Split`],
        /// `tm` and `tn` are multiples of 4.
        fragment: Fragment,
        /// The order of the multiply-adds of a fragment.
        order: Order,
        /// Whether A's shared tile is stored K-major.
        transpose: bool,
        /// Extra elements at the end of each shared row of A.
        pad_a: u32,
        /// Extra elements at the end of each shared row of B.
        pad_b: u32,
        /// How tiles come in.
        pipeline: Pipeline,
        /// Whether 16 bytes are moved at once in shared memory where the layout allows.
        shared_vectors: bool,
        /// Whether 16 bytes are moved at once in global memory where the layout allows.
        global_vectors: bool,
    }
}

impl TiledPlan {
    /// The geometry of a spec that passed every check.
    pub(super) fn new(spec: &SgemmSpec, tile: Tile) -> Self {
        let thread = spec.thread;
        Self {
            bm: tile.m,
            bn: tile.n,
            bk: tile.k,
            tm: thread.m,
            tn: thread.n,
            threads_m: tile.m / thread.m,
            threads_n: tile.n / thread.n,
            warp: spec.warp.map(|warp| WarpTile {
                m: warp.m,
                n: warp.n,
                lanes_m: warp.m / thread.m,
                lanes_n: warp.n / thread.n,
                warps_m: tile.m / warp.m,
                warps_n: tile.n / warp.n,
            }),
            fragment: spec.fragment,
            order: spec.order,
            transpose: spec.transpose,
            pad_a: spec.pad_a,
            pad_b: spec.pad_b,
            pipeline: match (spec.stages, spec.double_buffer, spec.prefetch) {
                (Some(stages), _, _) => Pipeline::Async { stages, spread: spec.spread },
                (None, true, _) => Pipeline::DoubleBuffer,
                (None, false, true) => Pipeline::Prefetch,
                (None, false, false) => Pipeline::Single,
            },
            shared_vectors: spec.float4,
            global_vectors: spec.float4,
        }
    }

    /// The same geometry with 4-byte accesses to global memory.
    pub(super) fn with_scalar_global(self) -> Self {
        Self { global_vectors: false, ..self }
    }

    /// Threads of a block, at most 1024; a multiple of 32 if there is a warp tile.
    pub fn threads(&self) -> u32 {
        self.threads_m * self.threads_n
    }

    /// Shared buffers of each operand.
    pub fn buffers(&self) -> u32 {
        match self.pipeline {
            Pipeline::Single | Pipeline::Prefetch => 1,
            Pipeline::DoubleBuffer => 2,
            Pipeline::Async { stages, .. } => stages,
        }
    }

    /// Rows of A's shared tile and the elements of each, padding included.
    pub fn a_shared(&self) -> (u32, u32) {
        if self.transpose {
            (self.bk, self.bm + self.pad_a)
        } else {
            (self.bm, self.bk + self.pad_a)
        }
    }

    /// Rows of B's shared tile and the elements of each, padding included.
    pub fn b_shared(&self) -> (u32, u32) {
        (self.bk, self.bn + self.pad_b)
    }

    /// Bytes of shared memory of a block, both operands and all buffers; each operand's array
    /// starts on 16 bytes.
    pub fn shared_bytes(&self) -> u64 {
        let bytes = |(rows, row): (u32, u32)| {
            4 * u64::from(self.buffers()) * u64::from(rows) * u64::from(row)
        };
        bytes(self.a_shared()).next_multiple_of(16) + bytes(self.b_shared())
    }

    /// Whether tiles come in by asynchronous copies.
    fn is_async(&self) -> bool {
        matches!(self.pipeline, Pipeline::Async { .. })
    }

    fn a_shared_rows_aligned(&self) -> bool {
        self.a_shared().1.is_multiple_of(4)
    }

    fn b_shared_rows_aligned(&self) -> bool {
        self.b_shared().1.is_multiple_of(4)
    }

    /// Whether A is read from global memory 16 bytes at a time, along K. An asynchronous copy is
    /// as wide at its target: where that is transposed or misaligned it moves 4 bytes.
    pub fn a_global_vector(&self) -> bool {
        self.global_vectors && (!self.is_async() || self.a_stores_along_rows())
    }

    /// Whether A is written to shared memory 16 bytes at a time.
    pub fn a_shared_store_vector(&self) -> bool {
        self.a_global_vector() && self.a_stores_along_rows()
    }

    fn a_stores_along_rows(&self) -> bool {
        !self.transpose && self.a_shared_rows_aligned()
    }

    /// Whether a thread reads its fragment of A from shared memory 16 bytes at a time, along M.
    pub fn a_frag_vector(&self) -> bool {
        self.shared_vectors
            && self.transpose
            && self.a_shared_rows_aligned()
            && self.vectors_along(self.tm)
    }

    /// Whether B is read from global memory 16 bytes at a time, along N. An asynchronous copy to
    /// misaligned rows moves 4 bytes.
    pub fn b_global_vector(&self) -> bool {
        self.global_vectors && (!self.is_async() || self.b_shared_rows_aligned())
    }

    /// Whether B is written to shared memory 16 bytes at a time.
    pub fn b_shared_store_vector(&self) -> bool {
        self.b_global_vector() && self.b_shared_rows_aligned()
    }

    /// Whether a thread reads its fragment of B from shared memory 16 bytes at a time, along N.
    pub fn b_frag_vector(&self) -> bool {
        self.shared_vectors && self.b_shared_rows_aligned() && self.vectors_along(self.tn)
    }

    /// Whether a thread writes C 16 bytes at a time, along N.
    pub fn c_vector(&self) -> bool {
        self.global_vectors && self.vectors_along(self.tn)
    }

    /// Whether the elements of a thread along an axis are aligned vectors of four.
    fn vectors_along(&self, extent: u32) -> bool {
        self.fragment != Fragment::Strided && extent.is_multiple_of(4)
    }

    /// Elements of one access to A in global memory: 4 or 1.
    pub fn a_width(&self) -> u32 {
        if self.a_global_vector() { 4 } else { 1 }
    }

    /// Elements of one access to B in global memory: 4 or 1.
    pub fn b_width(&self) -> u32 {
        if self.b_global_vector() { 4 } else { 1 }
    }

    /// Accesses of one thread that bring in its share of a tile of A, the last maybe idle.
    pub fn a_accesses(&self) -> u32 {
        (self.bm * self.bk / self.a_width()).div_ceil(self.threads())
    }

    /// Accesses of one thread that bring in its share of a tile of B, the last maybe idle.
    pub fn b_accesses(&self) -> u32 {
        (self.bk * self.bn / self.b_width()).div_ceil(self.threads())
    }
}
