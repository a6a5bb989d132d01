//! The geometry of a kernel whose warpgroups multiply planes of A and B in shared memory.

pub(super) mod check;

use super::epilogue::EpiloguePlan;
use super::{Decided, Passed, decided, facts};
use crate::ir::{Elem, TensorSwizzle, Variant, Wgmma};
use crate::plan::sgemm::epilogue_staging::BlockSize;
use crate::plan::sgemm::mma::promoted;
use crate::plan::sgemm::pipeline::Pipeline;
use crate::plan::sgemm::registers::{Registers, even_registers};
use crate::plan::sgemm::shared_memory::SharedSum;
use crate::spec::{Arith, Copies, Rect, SgemmSpec, Tile};
use crate::target::Format;
use crate::target::arch::WARP;

/// Threads of a warpgroup.
pub(crate) const WARPGROUP: u32 = Wgmma::WARPS * WARP;

/// Registers that a thread needs beside sums: addresses, descriptors, counts.
const BESIDE_SUMS: u32 = 28;

/// And where it scales sums back.
const SCALING: u32 = 4;

/// Registers of a thread that only asks for tiles.
const OF_PRODUCER: u32 = 32;

/// The most that one that multiplies asks for: beyond that the compiler uses no more.
const MOST_ASKED: u32 = 240;

facts! {
    /// The geometry of a kernel whose warpgroups multiply planes of A and B in shared memory: numbers rounded to what is
    /// multiplied, or taken apart into several, which a launch before has made.
    WgmmaPlan {
        /// Rows of C in a block tile: 64 for each warpgroup along them.
        bm: u32,
        /// Columns of C in a block tile.
        bn: u32,
        /// Terms of a sum in a block tile.
        bk: u32,
        /// Columns of C that a warpgroup computes.
        columns: u32,
        /// What products are computed in.
        arith: Arith,
        /// What the instructions multiply.
        format: Format,
        /// Who copies tiles to shared memory.
        copies: Copies,
        /// Tiles in shared memory, in use or on their way.
        stages: u32,
        /// Whether a warpgroup does nothing but ask for tiles.
        producer: bool,
        /// Bytes of shared memory, but for sums that wait for the epilogue.
        shared: u64,
        /// Registers of a thread for what its epilogue reads.
        operands: u32,
        /// How the sums get into C.
        epilogue: EpiloguePlan,
    } decided {
        /// The terms that are summed from zero on before they are added to the sums; `None` for all.
        promote: Option<u32>,
        /// The registers of a thread that asks for tiles and of one that multiplies, where they are not shared evenly.
        registers: Option<[u32; 2]>,
    }
}

/// The geometry of a spec whose last checks are still to come.
pub(super) struct WgmmaDraft(WgmmaPlan);

impl WgmmaDraft {
    /// Of a spec whose keys are sound, as far as the arithmetic rests on them.
    pub(super) fn new(spec: &SgemmSpec, tile: Tile) -> Self {
        Self(WgmmaPlan::new(spec, tile, Variant::Vector))
    }

    /// The geometry, to be looked at.
    pub(super) fn look(&self) -> &WgmmaPlan {
        &self.0
    }

    pub(super) fn plan(self, _: &Passed) -> WgmmaPlan {
        self.0
    }
}

impl WgmmaPlan {
    /// A variant of a spec that passed every check, and its [`WgmmaDraft`] before.
    pub(super) fn new(spec: &SgemmSpec, tile: Tile, variant: Variant) -> Self {
        let (Some(format), Some(warp)) = (spec.arith.format(), spec.warp_tile()) else {
            unreachable!("check: a tile of warpgroups has a format and a warp tile")
        };
        let columns = warp.n;
        let vectors = spec.float4 && variant == Variant::Vector;
        let thread = thread(columns, vectors);
        let multiplying = multiplying([tile.m, tile.n], columns);
        let threads = multiplying + if spec.producer { WARPGROUP } else { 0 };
        let promote = promoted(spec, tile.k);
        let shared = SharedSum::of_spec(spec, tile).total();
        let block = BlockSize { threads: multiplying, shared: shared.next_multiple_of(16) };
        let epilogue = EpiloguePlan::new(spec, thread, Pipeline::Single, vectors, block);
        let operands = Registers::of_operands(spec, thread, Some(&epilogue));
        let mut plan = Self {
            bm: tile.m,
            bn: tile.n,
            bk: tile.k,
            columns,
            arith: spec.arith,
            format,
            copies: spec.copy,
            stages: spec.stages.unwrap_or(1),
            producer: spec.producer,
            shared: u64::try_from(shared).unwrap_or(u64::MAX),
            operands: u32::try_from(operands).unwrap_or(u32::MAX),
            epilogue,
            promote,
            registers: decided(None, "all threads have as many"),
        };
        let even = even_registers(threads.into(), spec.blocks_per_sm);
        // Scaling back spills in less than this, and asks for no more where there is more.
        let wished = plan.registers_of_thread() + if spec.arith.is_scaled() { 16 } else { 0 };
        if spec.producer && wished > even {
            // What the block is given when it starts, for who asks for more waits until others have given as much back.
            let all = even / 8 * 8 * threads;
            let left = all.saturating_sub(OF_PRODUCER * WARPGROUP) / multiplying.max(1) / 8 * 8;
            let of_thread = left.min(MOST_ASKED);
            if of_thread > even {
                plan.registers =
                    decided(Some([OF_PRODUCER, of_thread]), "who asks for tiles needs few of them");
            }
        }
        plan
    }

    /// Threads that multiply, and hold the sums of a block.
    pub fn epilogue_threads(&self) -> u32 {
        multiplying([self.bm, self.bn], self.columns)
    }

    /// Threads of a block.
    pub fn threads(&self) -> u32 {
        self.epilogue_threads() + if self.producer { WARPGROUP } else { 0 }
    }

    /// Whether C is accessed by 16 bytes: pairs of lanes have then exchanged sums.
    pub fn has_vectors(&self) -> bool {
        self.epilogue.width() > 1
    }

    /// Rows of C of a thread.
    pub fn tm(&self) -> u32 {
        thread(self.columns, self.has_vectors()).m
    }

    /// Columns of C of a thread.
    pub fn tn(&self) -> u32 {
        thread(self.columns, self.has_vectors()).n
    }

    /// What the elements of planes are.
    pub fn elem(&self) -> Elem {
        Elem::from_format(self.format)
    }

    /// How a row of a tile lies in shared memory.
    pub fn swizzle(&self) -> TensorSwizzle {
        let bytes = self.bk * self.elem().size();
        let fits = |swizzle: &TensorSwizzle| swizzle.bytes() == Some(bytes);
        let found = TensorSwizzle::ALL.into_iter().find(fits);
        found.unwrap_or_else(|| unreachable!("of_tile: a row has the bytes of a swizzle"))
    }

    /// Registers of a thread that hold its sums, those that are not added yet or later what its epilogue reads, and what
    /// it needs beside.
    pub fn registers_of_thread(&self) -> u32 {
        let sums = self.columns / 2;
        let beside = BESIDE_SUMS + if self.arith.is_scaled() { SCALING } else { 0 };
        sums.saturating_add(self.fresh().max(self.operands)).saturating_add(beside)
    }

    /// Those that hold sums that are not added yet.
    pub fn fresh(&self) -> u32 {
        if self.promote().is_some() { self.columns / 2 } else { 0 }
    }

    /// Bytes of shared memory of a block: both operands in all stages, barriers, and sums that wait.
    pub fn shared_bytes(&self) -> u64 {
        self.epilogue.shared_bytes(self.shared, self.epilogue_threads(), self.tn())
    }
}

/// Threads that multiply a tile of so many rows and columns, where a warpgroup has these columns.
fn multiplying([rows, cols]: [u32; 2], columns: u32) -> u32 {
    rows / Wgmma::ROWS * (cols / columns) * WARPGROUP
}

/// Rows and columns of C of a thread, of a warpgroup with so many columns: those of which instructions give it the sums,
/// or, where pairs of lanes have exchanged sums, twice as many of one row.
fn thread(columns: u32, vectors: bool) -> Rect {
    if vectors { Rect::new(1, columns / 2) } else { Rect::new(2, columns / 4) }
}
