//! What a launch is charged with, when it is known how often each piece of code was executed.

use super::super::counters::{Executions, Profile};
use super::cost::{SassClass, SassCost};
use super::counts::{CountId, Counts, Parts};
use crate::counters::quantity::SassCounters;

/// Instructions that are executed together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Charge {
    /// How often.
    pub(super) count: CountId,
    /// The statement that needs them, if one does.
    pub(super) stmt: Option<u32>,
    pub(super) cost: SassCost,
}

/// The instructions of a kernel.
#[derive(Debug)]
pub(crate) struct Charges {
    pub(super) counts: Counts,
    pub(super) all: Vec<Charge>,
    /// Whether all instructions are among them.
    pub(super) is_whole: bool,
}

/// The instructions of a statement, executed by warps.
#[derive(Clone, Debug, Default)]
struct ExecutedInstructions {
    of: [Parts; SassClass::COUNT],
    /// Multiply-adds of all lanes.
    ffma_lanes: Parts,
}

impl ExecutedInstructions {
    fn add(
        &mut self,
        counts: &Counts,
        Charge { count, cost, .. }: Charge,
        executions: &Executions,
    ) {
        let warps = counts.warps(count, executions);
        self.of[SassClass::Other as usize] += warps * cost.others;
        self.of[cost.class as usize] += warps * cost.count;
        if cost.class == SassClass::Ffma {
            self.ffma_lanes += counts.lanes(count, executions) * cost.count;
        }
    }

    /// As they are counted, but for what accesses cost; without the sum of all unless all are known.
    fn counted(&self, is_whole: bool) -> SassCounters {
        let class = |class: SassClass| self.of[class as usize].rounded();
        SassCounters {
            instructions: is_whole.then(|| self.of.iter().copied().sum::<Parts>().rounded()),
            thread_ffma: self.ffma_lanes.rounded(),
            ffma: class(SassClass::Ffma),
            hmma: class(SassClass::Hmma),
            hgmma: class(SassClass::Hgmma),
            barriers: class(SassClass::Barrier),
            shuffles: class(SassClass::Shuffle),
            global_loads: class(SassClass::GlobalLoad),
            global_stores: class(SassClass::GlobalStore),
            shared_loads: class(SassClass::SharedLoad),
            matrix_loads: class(SassClass::MatrixLoad),
            shared_stores: class(SassClass::SharedStore),
            copies: class(SassClass::Copy),
            box_copies: class(SassClass::BoxCopy),
            atomics: class(SassClass::Atomic),
            ..SassCounters::default()
        }
    }
}

impl Charges {
    /// Adds what was executed to the traffic that the profile has.
    pub(crate) fn charge(&self, profile: &mut Profile) {
        let Some(executions) = profile.executions.take() else { return };
        let mut statements =
            vec![ExecutedInstructions::default(); profile.compiled_statements.len()];
        // What is no statement's.
        let mut kernel = ExecutedInstructions::default();
        for charge in &self.all {
            let of = charge.stmt.map_or(&mut kernel, |stmt| &mut statements[stmt as usize]);
            of.add(&self.counts, *charge, &executions);
        }
        let mut total = kernel.counted(self.is_whole);
        for (statement, executed) in profile.compiled_statements.iter_mut().zip(&statements) {
            *statement += executed.counted(self.is_whole);
            total += *statement;
        }
        profile.compiled = Some(total);
    }
}
