//! Geometry of a kernel whose warpgroups multiply splits of A and B in shared memory.

pub(super) mod check;

use super::epilogue::{EpiloguePlan, exchanged_groups};
use super::{Decided, Passed, decided, facts};
use crate::ir::{Elem, TensorSwizzle, Variant, Wgmma};
use crate::plan::sgemm::epilogue_staging::BlockSize;
use crate::plan::sgemm::mma::promoted;
use crate::plan::sgemm::pipeline::Pipeline;
use crate::plan::sgemm::registers::{
    Registers, even_registers, launch_registers, setmaxnreg_registers,
};
use crate::plan::sgemm::shared_memory::SharedBytes;
use crate::plan::sgemm::splits::SplitsPlan;
use crate::spec::{Arith, Copies, Factor, Rect, SgemmSpec, Tile};
use crate::target::Format;
use crate::target::arch::WARP;

pub(crate) const WARPGROUP: u32 = Wgmma::WARPS * WARP;

/// Registers of a thread in addition to its accumulators: addresses, descriptors, counters.
const BESIDE_SUMS: u32 = 28;

/// Additional registers of a thread that applies scale factors of rows and columns.
const SCALING: u32 = 4;

/// Adjacent columns of C of a lane after the exchange of accumulators.
const EXCHANGED: u32 = 4;

/// Registers that a producer thread keeps.
const OF_PRODUCER: u32 = 32;

/// Maximum number of registers that a consumer thread requests. The compiler does not use more.
const MOST_ASKED: u32 = 240;

facts! {
    /// Geometry of a kernel whose warpgroups multiply splits of A and B in shared memory. An
    /// earlier launch rounds the operands to the instruction's format, or splits each value into
    /// several.
    WgmmaPlan {
        /// Rows of C per block tile.
        bm: u32,
        /// Columns of C per block tile.
        bn: u32,
        /// K extent of a block tile.
        bk: u32,
        /// Columns of an instruction: columns of C per warpgroup, or rows if A and B are swapped.
        columns: u32,
        /// True if the 64 rows of an instruction are columns of C, and its columns are rows of C.
        swap_ab: bool,
        /// Rows of A, and columns of B, in a row of shared memory, if this operand is MN-major;
        /// else 0.
        slabs: [u32; 2],
        /// Splits that the instructions multiply.
        splits: SplitsPlan,
        /// Unit that copies tiles to shared memory: all threads, or TMA.
        copies: Copies,
        /// Number of pipeline stages: buffers for tiles in use or in flight.
        stages: u32,
        /// True if a warpgroup only issues tile loads (warp specialization).
        producer: bool,
        /// Bytes of shared memory, excluding accumulators staged for the epilogue.
        shared: u64,
        /// Registers of a thread for its epilogue operands.
        operands: u32,
        epilogue: EpiloguePlan,
    } decided {
        /// Extent of K that is summed in a fresh accumulator before it is added to the main one.
        /// `None` sums all of K in the main accumulator.
        promote: Option<u32>,
        /// Registers of a producer thread and of a consumer thread. `None` if all threads have the
        /// same number.
        registers: Option<[u32; 2]>,
    }
}

/// Geometry of a spec before the last checks.
pub(super) struct WgmmaDraft(WgmmaPlan);

impl WgmmaDraft {
    /// Computes the geometry. The keys that its arithmetic depends on must be valid.
    pub(super) fn new(spec: &SgemmSpec, tile: Tile) -> Self {
        Self(WgmmaPlan::new(spec, tile, Variant::Vector))
    }

    /// Returns the geometry for the checks to read.
    pub(super) fn look(&self) -> &WgmmaPlan {
        &self.0
    }

    pub(super) fn plan(self, _: &Passed) -> WgmmaPlan {
        self.0
    }
}

impl WgmmaPlan {
    /// Returns true if sums that overflow are recomputed in `f32`, from A and B. Scaled splits are
    /// small, so their sums do not overflow.
    pub(crate) fn recomputes(&self) -> bool {
        self.arith().is_emulation() && !self.arith().is_scaled()
    }

    /// Plans a variant of a valid spec. [`WgmmaDraft`] also calls it before the last checks.
    pub(super) fn new(spec: &SgemmSpec, tile: Tile, variant: Variant) -> Self {
        let (Some(splits), Some(warp)) = (SplitsPlan::from_spec(spec, tile), spec.warp_tile())
        else {
            unreachable!("check: a tile of warpgroups has a format and a warp tile")
        };
        let columns = if spec.swap_ab { warp.m } else { warp.n };
        // After the exchange a lane has four adjacent columns, which are a vector of 4-byte
        // elements.
        let is_vector = u32::from(spec.types().c.vector_lanes()) == EXCHANGED;
        let stores_vectors = spec.float4 && variant == Variant::Vector && !spec.swap_ab;
        let groups = if stores_vectors { exchanged_groups(spec, columns) } else { 0 };
        let vectors = stores_vectors && is_vector && groups == 0;
        let thread = thread(columns, spec.swap_ab, vectors);
        let multiplying = multiplying([tile.m, tile.n], columns, spec.swap_ab);
        let threads = multiplying + if spec.producer { WARPGROUP } else { 0 };
        let promote = promoted(spec, tile.k);
        let shared = SharedBytes::of_spec(spec, tile).total();
        let block = BlockSize { threads: multiplying, shared };
        let epilogue = EpiloguePlan::new(spec, thread, Pipeline::Single, vectors, block);
        let epilogue = epilogue.exchanging_outputs(groups);
        let operands = Registers::of_operands(spec, thread, Some(&epilogue));
        let mut plan = Self {
            bm: tile.m,
            bn: tile.n,
            bk: tile.k,
            columns,
            swap_ab: spec.swap_ab,
            slabs: slabs(spec, columns),
            splits,
            copies: spec.copy,
            stages: spec.stages.unwrap_or(1),
            producer: spec.producer,
            shared: u64::try_from(shared).unwrap_or(u64::MAX),
            operands: u32::try_from(operands).unwrap_or(u32::MAX),
            epilogue,
            promote,
            registers: decided(None, "an even share suffices, or no larger one is available"),
        };
        let even = even_registers(threads.into(), spec.resident_blocks());
        // Undoing the scale factors spills with fewer than 16 additional registers. More than 16 do
        // not help.
        // So does an epilogue beside fresh accumulators, in kernels that read the matrices.
        let is_full = spec.arith.is_scaled() || (splits.are_matrices() && plan.promote().is_some());
        let wished = plan.registers_of_thread() + if is_full { 16 } else { 0 };
        if spec.producer && wished > even {
            // Only registers that were allocated at launch can be redistributed: `setmaxnreg.inc`
            // waits until other warps have released enough.
            let all = launch_registers(threads, spec.resident_blocks()) * threads;
            let left = all.saturating_sub(OF_PRODUCER * WARPGROUP) / multiplying.max(1);
            let of_thread = setmaxnreg_registers(left).min(MOST_ASKED);
            if of_thread > even {
                plan.registers = decided(
                    Some([OF_PRODUCER, of_thread]),
                    "setmaxnreg moves registers from the producer to the consumers",
                );
            }
        }
        plan
    }

    /// Number of threads that multiply and hold accumulators of a block.
    pub fn epilogue_threads(&self) -> u32 {
        multiplying([self.bm, self.bn], self.columns, self.swap_ab)
    }

    pub fn threads(&self) -> u32 {
        self.epilogue_threads() + if self.producer { WARPGROUP } else { 0 }
    }

    /// Returns true if the warpgroups of a block have different rows of C.
    pub(crate) fn has_row_groups(&self) -> bool {
        !self.swap_ab && self.bm > Wgmma::ROWS
    }

    /// Returns true if pairs of lanes exchange accumulators, so that each has vectors of them.
    pub fn has_vectors(&self) -> bool {
        self.epilogue.width() > 1
    }

    /// Rows of C per thread.
    pub fn tm(&self) -> u32 {
        self.thread().m
    }

    /// Columns of C per thread.
    pub fn tn(&self) -> u32 {
        self.thread().n
    }

    fn thread(&self) -> Rect {
        thread(self.columns, self.swap_ab, self.has_vectors())
    }

    pub fn arith(&self) -> Arith {
        self.splits.arith()
    }

    /// Input format of the instructions; that of A, if the formats of A and B differ.
    pub fn format(&self) -> Format {
        self.splits.format()
    }

    /// Element type of the splits, or of A.
    pub fn elem(&self) -> Elem {
        self.splits.elem()
    }

    /// Element type of a tile in shared memory.
    pub fn factor(&self, factor: Factor) -> Elem {
        Elem::from_format(self.splits.formats()[factor.index()])
    }

    /// Returns true if the instructions of a K tile are started before those of the previous tile
    /// are complete. It needs a second stage, and accumulators that are not promoted. Kernels on
    /// splits wait for each tile.
    pub(crate) fn multiplies_ahead(&self) -> bool {
        let one_chain = self.splits.are_matrices() && self.promote().is_none();
        one_chain && self.producer && self.stages > 1
    }

    /// Returns true if rows of A, or columns of B, are adjacent in memory.
    pub fn is_mn_major(&self, factor: Factor) -> bool {
        self.slabs[factor.index()] > 0
    }

    /// Swizzle of an operand's rows in shared memory.
    pub fn swizzle(&self, factor: Factor) -> TensorSwizzle {
        let of_row = match self.slabs[factor.index()] {
            0 => self.bk,
            slab => slab,
        };
        let bytes = of_row * self.elem().size();
        let fits = |swizzle: &TensorSwizzle| swizzle.bytes() == Some(bytes);
        let found = TensorSwizzle::ALL.into_iter().find(fits);
        found.unwrap_or_else(|| unreachable!("of_tile: a row has the bytes of a swizzle"))
    }

    /// Registers of a thread. They are its accumulators, the larger of its partial accumulators and
    /// its epilogue operands, and a fixed number for addresses and counters.
    pub fn registers_of_thread(&self) -> u32 {
        let sums = self.columns / 2;
        let beside = BESIDE_SUMS + if self.arith().is_scaled() { SCALING } else { 0 };
        sums.saturating_add(self.fresh().max(self.operands)).saturating_add(beside)
    }

    /// Registers that hold partial accumulators.
    pub fn fresh(&self) -> u32 {
        if self.promote().is_some() { self.columns / 2 } else { 0 }
    }

    /// Bytes of shared memory per block: both operands in all stages, mbarriers, and accumulators
    /// staged for the epilogue.
    pub fn shared_bytes(&self) -> u64 {
        self.epilogue.shared_bytes(self.shared, self.epilogue_threads(), self.tn())
    }
}

/// Returns the rows of A, and the columns of B, in a row of shared memory, or 0 for a K-major
/// operand. An instruction has `columns` columns, which are whole slabs.
fn slabs(spec: &SgemmSpec, columns: u32) -> [u32; 2] {
    let transposes = [spec.layout.transposes_a(), !spec.layout.transposes_b()];
    let extents = match spec.swap_ab {
        false => [Wgmma::ROWS, part_of_b(spec, columns)],
        true => [columns, Wgmma::ROWS],
    };
    [0, 1].map(|nth| match spec.reads_matrices() && transposes[nth] {
        false => 0,
        true => slab(extents[nth]).unwrap_or(LEAST_SLAB),
    })
}

/// Returns the columns of B that a copy or an instruction has at least: those of a warpgroup, or of
/// a block's part in a cluster.
fn part_of_b(spec: &SgemmSpec, columns: u32) -> u32 {
    match (spec.tile, spec.cluster) {
        (Some(tile), 2..) => gcd(columns, tile.n / spec.cluster),
        _ => columns,
    }
}

/// Greatest common divisor.
fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Minimum rows of A, or columns of B, in a row of shared memory: 32 bytes of 16-bit elements.
const LEAST_SLAB: u32 = 16;

/// Returns the largest row of shared memory that divides an extent of 16-bit elements.
fn slab(extent: u32) -> Option<u32> {
    [64, 32, LEAST_SLAB].into_iter().find(|slab| extent.is_multiple_of(*slab))
}

/// Returns the number of consumer threads of a tile of `rows` x `cols`, if an instruction has
/// `columns` columns.
fn multiplying([rows, cols]: [u32; 2], columns: u32, swap_ab: bool) -> u32 {
    let [rows, cols] = if swap_ab { [cols, rows] } else { [rows, cols] };
    rows / Wgmma::ROWS * (cols / columns) * WARPGROUP
}

/// Returns the rows and columns of C per thread, for an instruction with `columns` columns. It
/// assigns two of its rows to a thread. If pairs of lanes exchange accumulators, a thread holds
/// twice as many columns of one row instead.
fn thread(columns: u32, swap_ab: bool, vectors: bool) -> Rect {
    match (swap_ab, vectors) {
        (true, _) => Rect::new(columns / 4, 2),
        (false, true) => Rect::new(1, columns / 2),
        (false, false) => Rect::new(2, columns / 4),
    }
}
