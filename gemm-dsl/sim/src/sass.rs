//! Counters as compiled: what the hardware counts of a kernel, predicted beside what the text says.
//!
//! The text says one thing, machine code does another: the compiler computes once what is the same, outside of a loop what does not
//! change in it, adds constants to addresses for nothing, makes one load of neighbours, unrolls loops, executes short branches under
//! a predicate. What it surely does is done here, once for each kernel, to the lowered code:
//!
//! ```text
//! lowered code ──walk──► values (each once, with its place and its cost) ──needed──► charges ──× executions──► SassCounters
//!                 │                                                                                   ▲
//!                 └─ loads, stores ──merge──► fates of the accesses ──× observed addresses── traffic ─┘
//! ```
//!
//! `walk` goes through branches and `unroll` through loops, `statement`, `expr` and `integer` make values of what stands there,
//! `memory` addresses and `accesses`; `values` knows which are the same (`operation`) and where they are computed, `polynomial` which
//! addresses differ by a constant. Then, each behind the one before: what nobody needs is left out (`values`), neighbours are loaded
//! together (`merge`), and it is decided what is predicated (`branch`). `cost` is the table of instructions, `counts` says how often
//! each piece of code is executed, in the simulator's own numbers, and `charge` makes figures of both. `traffic` prices the accesses
//! that are left, where they were seen to go.
//!
//! Invariants:
//! * It knows no kernel and no stage: every rule is one of the compiler's, and every number one of `cost`.
//! * It changes nothing that the text's counters say, and costs nothing where nobody asks.
//! * What it cannot know it does not give: the instructions of a kernel that keeps arrays in local memory.
//!
//! What registers the compiler has, which values it moves between them, what it schedules where and how often a wait is repeated
//! is not modelled. `tests/data/profiler` holds the model against what the profiler counts on an H200.

mod accesses;
mod branch;
mod charge;
mod cost;
mod counts;
mod expr;
mod integer;
mod memory;
mod merge;
mod operation;
mod polynomial;
mod slot_values;
mod statement;
mod unroll;
mod values;
mod walk;

use super::launch::Launch;
use crate::counters::access_fate::AccessFate;
use crate::lower::code::{Code, Op, Slot, WgmmaSyncOp};
use accesses::Accesses;
use branch::Branches;
use charge::Charge;
pub(super) use charge::Charges;
use cost::SassCost;
use counts::Counts;
use merge::merge;
use polynomial::ValueId;
use slot_values::SlotValues;
use std::collections::HashMap;
use values::Values;

/// Compiles a kernel in outline, lowered for a launch: what becomes of each access of the code, and what it is charged with.
pub(super) fn analyse(launch: &Launch<'_>, code: &Code<'_>) -> (Vec<AccessFate>, Charges) {
    let CompiledKernel { values, roots, accesses, branches, mut counts, spent, is_whole } =
        Compiler::new(launch, code).build();
    let values = values.needed(roots);
    let (values, accesses) = merge(launch, values, accesses);
    let spent = branches.predicate(&values, &mut counts, spent);
    let all = values.charges().chain(spent).collect();
    (accesses.fates(code.accesses), Charges { counts, all, is_whole })
}

/// What stands in a kernel, before anything is left out or merged.
struct CompiledKernel {
    values: Values,
    /// Those that statements need.
    roots: Vec<ValueId>,
    accesses: Accesses,
    branches: Branches,
    counts: Counts,
    /// Instructions that are no value's.
    spent: Vec<Charge>,
    is_whole: bool,
}

/// The state of a compilation.
struct Compiler<'c, 'k> {
    launch: &'c Launch<'k>,
    code: &'c Code<'k>,
    values: Values,
    counts: Counts,
    scope: Scope,
    accesses: Accesses,
    branches: Branches,
    /// What statements need.
    roots: Vec<ValueId>,
    /// Instructions that are no value's, and no store's.
    spent: Vec<Charge>,
    /// Whether all is known of it.
    is_whole: bool,
    /// Whether warps of a block part with registers that others take.
    has_roles: bool,
}

/// What is known where the text has come to.
#[derive(Default)]
struct Scope {
    slots: SlotValues,
    /// The variables of the functions being applied.
    applied: Vec<HashMap<Slot, ValueId>>,
    /// The number of the piece of straight code.
    piece: u32,
    /// Whether it is evaluated under a condition.
    guarded: bool,
    /// Whether nothing was loaded from shared memory since the last asynchronous copy.
    copied: bool,
}

impl<'c, 'k> Compiler<'c, 'k> {
    fn new(launch: &'c Launch<'k>, code: &'c Code<'k>) -> Self {
        let mut counts = Counts::default();
        let whole = counts.add(code.instrs.first().map_or(0, |instr| instr.site), None, 1);
        let limits =
            |op: &Op| matches!(op, Op::WgmmaSync(op) if matches!(**op, WgmmaSyncOp::Limit(_)));
        Self {
            launch,
            code,
            values: Values::new(whole),
            counts,
            scope: Scope::default(),
            accesses: Accesses::default(),
            branches: Branches::default(),
            roots: Vec::new(),
            spent: Vec::new(),
            is_whole: true,
            has_roles: code.instrs.iter().any(|instr| limits(&instr.op)),
        }
    }

    /// Goes through the whole code.
    fn build(mut self) -> CompiledKernel {
        if !self.code.instrs.is_empty() {
            self.walk(0..self.code.instrs.len());
            self.values.stmt = None;
            // `LDC` of the stack pointer, `ULDC` of how global memory is accessed, and `EXIT`.
            let whole = self.values.count();
            self.spend(whole, SassCost::others(3));
        }
        let Self { values, counts, accesses, branches, mut roots, mut spent, is_whole, .. } = self;
        roots.extend(accesses.standing().map(|store| store.value));
        roots.extend(branches.all.iter().map(|branch| branch.cond));
        spent.extend(accesses.standing().map(|store| store.charge));
        CompiledKernel { values, roots, accesses, branches, counts, spent, is_whole }
    }
}
