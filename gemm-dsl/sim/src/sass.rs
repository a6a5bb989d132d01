//! Prediction of hardware counters: counts of the machine code, in addition to those of the CUDA
//! source.
//!
//! Machine code differs from the source. The compiler shares common subexpressions, hoists loop
//! invariants, folds constants into addresses, merges adjacent loads, unrolls loops and predicates
//! short branches. This module applies the transformations that are certain, once per kernel, to
//! the lowered code:
//!
//! ```text
//! lowered code ──walk──► values ──needed──► charges ──× executions──► SassCounters
//!                 │                                                         ▲
//!                 └─ loads, stores ──merge──► fates ──× addresses── traffic ┘
//! ```
//!
//! Each value exists once, with its place and its cost. The addresses are the observed ones.
//!
//! `walk` visits branches, and `unroll` visits loops. `statement`, `expr` and `integer` create
//! values, `memory` creates addresses, and `accesses` records loads and stores. `values` finds
//! common values (identified by their `operation`) and the place at which each is computed.
//! `polynomial` finds addresses that differ by a constant. Three passes follow in this order:
//! `values` removes dead values, `merge` merges adjacent loads, and `branch` predicates branches.
//! `cost` is the table of instruction costs, `counts` contains the executions of each piece of
//! code, and `charge` multiplies the two. `traffic` prices the remaining accesses at their observed
//! addresses.
//!
//! # Invariants
//! * The module has no code for particular kernels: every rule is a rule of the compiler, and every
//!   number is in `cost`.
//! * It never changes the counters of the CUDA source, and does nothing unless requested.
//! * Counts that are unknown are omitted, for example the instructions of a kernel with arrays in
//!   local memory.
//!
//! Register allocation, register moves, scheduling and repeated waits are not modelled.
//! `tests/data/profiler` compares the model with the profiler's counts on an H200.

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

/// Analyses a lowered kernel. Returns the fate of each access, and the predicted instructions.
pub(super) fn analyse(launch: &Launch<'_>, code: &Code<'_>) -> (Vec<AccessFate>, Charges) {
    let CompiledKernel { values, roots, accesses, branches, mut counts, spent, is_whole } =
        Compiler::new(launch, code).build();
    let values = values.needed(roots);
    let (values, accesses) = merge(launch, values, accesses);
    let spent = branches.predicate(&values, &mut counts, spent);
    let all = values.charges().chain(spent).collect();
    (accesses.fates(code.accesses), Charges { counts, all, is_whole })
}

/// State of a kernel's analysis before dead values are removed and loads are merged.
struct CompiledKernel {
    values: Values,
    /// Values that statements use. They are the roots of dead-value removal.
    roots: Vec<ValueId>,
    accesses: Accesses,
    branches: Branches,
    counts: Counts,
    /// Instructions that do not compute a value.
    spent: Vec<Charge>,
    is_whole: bool,
}

struct Compiler<'c, 'k> {
    launch: &'c Launch<'k>,
    code: &'c Code<'k>,
    values: Values,
    counts: Counts,
    scope: Scope,
    accesses: Accesses,
    branches: Branches,
    roots: Vec<ValueId>,
    /// Instructions that neither compute nor store a value.
    spent: Vec<Charge>,
    /// False if the number of some instructions is unknown.
    is_whole: bool,
    /// True if warps of a block exchange registers (`setmaxnreg`).
    has_roles: bool,
}

/// State of the analysis at the current position of the code.
#[derive(Default)]
struct Scope {
    slots: SlotValues,
    /// Variables of the functions that are being called.
    applied: Vec<HashMap<Slot, ValueId>>,
    /// Number of the current straight-line piece of code.
    piece: u32,
    /// True during the analysis of code that runs only under a condition.
    guarded: bool,
    /// True if there was no load from shared memory since the last asynchronous copy.
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

    fn build(mut self) -> CompiledKernel {
        if !self.code.instrs.is_empty() {
            self.walk(0..self.code.instrs.len());
            self.values.stmt = None;
            // `LDC` of the stack pointer, `ULDC` of the global memory descriptor, and `EXIT`.
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
