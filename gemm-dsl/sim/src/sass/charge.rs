//! Machine counters of a launch, computed from instruction costs and execution counts.

use super::super::counters::{Executions, Profile};
use super::cost::{SassClass, SassCost};
use super::counts::{CountId, Counts, Parts};
use crate::counters::quantity::SassCounters;

/// Instructions that are executed together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Charge {
    pub(super) count: CountId,
    /// Statement that needs the instructions, if any.
    pub(super) stmt: Option<u32>,
    pub(super) cost: SassCost,
}

#[derive(Debug)]
pub(crate) struct Charges {
    pub(super) counts: Counts,
    pub(super) all: Vec<Charge>,
    /// True if all instruction counts are known.
    pub(super) is_whole: bool,
}

/// Executed instructions of a statement, per warp.
#[derive(Clone, Debug, Default)]
struct ExecutedInstructions {
    of: [Parts; SassClass::COUNT],
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

    /// Converts to counters, without traffic. The total is omitted if some instruction count is
    /// unknown.
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
    /// Adds the executed instructions to a profile that already contains the traffic.
    pub(crate) fn charge(&self, profile: &mut Profile) {
        let Some(executions) = profile.executions.take() else { return };
        let mut statements =
            vec![ExecutedInstructions::default(); profile.compiled_statements.len()];
        // Instructions that do not belong to a statement.
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
