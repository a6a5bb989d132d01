//! Registers that a thread needs. The plan, the checks and the messages read these.

use super::epilogue::EpiloguePlan;
use crate::spec::{Along, Rect, SgemmSpec};
use crate::target::arch::{LARGEST, WARP};

/// The registers of a thread that hold its part of the computation. The compiler needs a few more.
#[derive(Clone, Copy)]
pub(crate) struct Registers {
    pub thread: Rect,
    pub partials: u32,
    pub fragments: u128,
    /// Elements of the next tile on their way to shared memory.
    pub staged: u128,
    /// What is read beside the sums when those are stored: fragments and tiles are gone by then.
    pub operands: u128,
    pub threads: u64,
    pub blocks_per_sm: u32,
}

impl Registers {
    pub fn sums(&self) -> u128 {
        u128::from(self.thread.area()) * u128::from(self.partials)
    }

    pub fn needed(&self) -> u128 {
        self.sums() + (self.fragments + self.staged).max(self.operands)
    }

    /// What a product's epilogue reads and keeps; without a plan for it one element at a time is stored.
    pub fn of_operands(spec: &SgemmSpec, thread: Rect, epilogue: Option<&EpiloguePlan>) -> u128 {
        let width = epilogue.map_or(1, EpiloguePlan::width);
        let cols = match epilogue {
            // What belongs to the columns of a thread is read before it goes through its rows, if there are several.
            Some(epilogue) if epilogue.staged_rows() == 0 && thread.m > 1 => thread.n,
            // It is read for each store.
            _ => width,
        };
        let of = |along| match along {
            Along::Nothing => 0,
            Along::N => cols.into(),
            Along::M => 1,
            Along::Mn => width.into(),
        };
        let given: u128 = spec.operands().iter().map(|operand| of(operand.along)).sum();
        given + if spec.reads_c() { of(Along::Mn) } else { 0 }
    }

    /// How many a thread may have.
    pub fn available(&self) -> u32 {
        even_registers(self.threads, self.blocks_per_sm)
    }

    pub fn fit(&self) -> bool {
        self.needed() <= self.available().into()
    }
}

/// The registers of each thread where a multiprocessor holds so many blocks of so many threads: they
/// are handed out to whole warps.
pub(crate) fn even_registers(threads: u64, blocks_per_sm: u32) -> u32 {
    let warps = threads.div_ceil(WARP.into());
    LARGEST.registers_per_thread(warps * u64::from(blocks_per_sm))
}
