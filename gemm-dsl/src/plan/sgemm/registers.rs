//! Register estimate of a thread, shared by the plan, the checks and the messages.

use super::epilogue::EpiloguePlan;
use crate::spec::{Along, Pairs, Rect, SgemmSpec};
use crate::target::arch::{LARGEST, WARP};

/// Estimated registers of a thread. The compiler needs a few more.
#[derive(Clone, Copy)]
pub(crate) struct Registers {
    pub thread: Rect,
    pub partials: u32,
    /// True if the partial sums of a K tile are added to an accumulator of their own.
    pub folds_tiles: bool,
    pub fragments: u128,
    /// Elements of the next tile on their way to shared memory.
    pub staged: u128,
    /// Operands of the epilogue. They are live while the accumulators are stored, when fragments
    /// and tiles no longer are.
    pub operands: u128,
    pub threads: u64,
    pub blocks_per_sm: u32,
}

impl Registers {
    pub fn sums(&self) -> u128 {
        let of_element = u128::from(self.partials) + u128::from(self.folds_tiles);
        u128::from(self.thread.area()) * of_element
    }

    pub fn needed(&self) -> u128 {
        self.sums() + (self.fragments + self.staged).max(self.operands)
    }

    /// Returns the number of registers for the operands that the epilogue reads and keeps. Without
    /// an epilogue plan, elements are stored one at a time.
    pub fn of_operands(spec: &SgemmSpec, thread: Rect, epilogue: Option<&EpiloguePlan>) -> u128 {
        let columns = if spec.pairs() == Pairs::None { 1 } else { 2 };
        let width = epilogue.map_or(1, EpiloguePlan::width).max(columns);
        let cols = match epilogue {
            // A thread with several rows reads the operands of its columns once, before it loops
            // over its rows.
            Some(epilogue) if epilogue.staged_rows() == 0 && thread.m > 1 => thread.n,
            // The thread reads the operands again for each store.
            _ => width,
        };
        let of = |along| match along {
            Along::Nothing => 0,
            Along::N | Along::BatchN => cols.into(),
            Along::M | Along::BatchM | Along::Batch => 1,
            Along::Mn | Along::Pairs => width.into(),
        };
        let given = spec.operands();
        let read = given.iter().filter(|operand| !operand.is_output());
        let given: u128 = read.map(|operand| of(operand.along)).sum();
        given + if spec.reads_c() { of(Along::Mn) } else { 0 }
    }

    /// Registers available to a thread. They are allocated to whole warps.
    pub fn available(&self) -> u32 {
        even_registers(self.threads, self.blocks_per_sm)
    }

    pub fn fit(&self) -> bool {
        self.needed() <= self.available().into()
    }
}

/// Rounds a number of registers down to one that `setmaxnreg` takes.
pub(super) fn setmaxnreg_registers(registers: u32) -> u32 {
    registers / 8 * 8
}

/// Registers per thread if an SM holds `blocks_per_sm` blocks of `threads` threads. They are
/// allocated to whole warps.
pub(crate) fn even_registers(threads: u64, blocks_per_sm: u32) -> u32 {
    let warps = threads.div_ceil(WARP.into());
    LARGEST.registers_per_thread(warps * u64::from(blocks_per_sm))
}

/// Registers per thread that a launch allocates for `setmaxnreg` to move.
pub(crate) fn launch_registers(threads: u32, blocks_per_sm: u32) -> u32 {
    setmaxnreg_registers(even_registers(threads.into(), blocks_per_sm))
}
