//! Counters as compiled: what the hardware counts of a kernel, predicted beside what the text says.
//!
//! The text says one thing, machine code does another: the compiler computes once what is the same, outside of a loop what does not
//! change in it, adds constants to addresses for nothing, makes one load of neighbours, unrolls loops, executes short branches under
//! a predicate. What it surely does is done here, once for each kernel, to the lowered code:
//!
//! ```text
//! lowered code ──walk──► values (each once, with its place and its cost) ──needed──► charges ──× executions──► Compiled
//!                 │                                                                                   ▲
//!                 └─ loads, stores ──merge──► roles of the accesses ──× observed addresses── traffic ─┘
//! ```
//!
//! `walk` goes through branches and loops, `statement` and `expr` make values of what stands there, `memory` addresses and accesses;
//! `values` knows which are the same and where they are computed, `form` which addresses differ by a constant; `branch` decides what
//! is predicated, `cost` is the table of instructions, `counts` says how often each piece of code is executed, in the simulator's
//! own numbers; `traffic` prices the accesses that are left, where they were seen to go.
//!
//! Invariants:
//! * It knows no kernel and no stage: every rule is one of the compiler's, and every number one of `cost`.
//! * It changes nothing that the text's counters say, and costs nothing where nobody asks.
//! * What it cannot know it does not give: the instructions of a kernel that keeps arrays in local memory.
//!
//! What registers the compiler has, which values it moves between them, what it schedules where and how often a wait is repeated
//! is not modelled. `tests/profiler` holds the model against what the profiler counts on an H200.

mod branch;
mod cost;
mod counts;
mod expr;
mod form;
mod memory;
mod quantity;
mod slots;
mod statement;
mod traffic;
mod values;
mod walk;

use super::code::{Code, Op, SumsOp};
use super::counters::Profile;
use super::launch::Launch;
use branch::Branch;
use cost::{Class, Cost};
use counts::{CountId, Counts, PARTS};
use form::{Form, Id};
pub(super) use memory::Role;
use memory::{Load, Stored};
pub use quantity::{Compiled, Quantity};
use slots::{Slot, Slots};
use std::collections::{HashMap, HashSet};
use values::Values;

/// What the compiler makes of a kernel, lowered for a launch.
#[derive(Debug)]
pub(super) struct Analysis {
    /// For each access of the code.
    pub(super) roles: Vec<Role>,
    counts: Counts,
    /// What is executed how often, and the statement that needs it.
    charges: Vec<(CountId, Option<u32>, Cost)>,
    /// Whether all instructions are among them.
    is_whole: bool,
}

/// Compiles a kernel in outline.
pub(super) fn analyse(launch: &Launch<'_>, code: &Code<'_>) -> Analysis {
    let mut counts = Counts::default();
    let whole = counts.add(code.instrs.first().map_or(0, |instr| instr.site), None, 1);
    let mut compiler = Compiler {
        launch,
        code,
        values: Values::new(whole),
        counts,
        slots: Slots::default(),
        applied: Vec::new(),
        roots: Vec::new(),
        spent: Vec::new(),
        branches: Vec::new(),
        branches_of_loops: Vec::new(),
        loads: Vec::new(),
        claimed: vec![None; code.accesses as usize],
        stores: HashMap::new(),
        stored: Vec::new(),
        stored_by: Vec::new(),
        dead: HashSet::new(),
        own_writes: HashMap::new(),
        addresses: Vec::new(),
        epochs: HashMap::new(),
        meetings: 0,
        piece: 1,
        copied: false,
        guarded: false,
        equal: HashMap::new(),
        is_whole: true,
        has_roles: code
            .instrs
            .iter()
            .any(|instr| matches!(&instr.op, Op::Sums(op) if matches!(**op, SumsOp::Limit(_)))),
    };
    if !code.instrs.is_empty() {
        compiler.walk(0..code.instrs.len());
        compiler.values.stmt = None;
        // `LDC` of the stack pointer, `ULDC` of how global memory is accessed, and `EXIT`.
        compiler.spend(whole, Cost::others(3));
    }
    let mut roots = std::mem::take(&mut compiler.roots);
    let is_there = |at: &usize| compiler.spent[*at].2 != Cost::FREE;
    roots
        .extend(compiler.stored.iter().filter(|(at, ..)| is_there(at)).map(|(_, value, _)| *value));
    compiler.values.need(roots);
    let conditions: Vec<Id> = compiler.branches.iter().map(|branch| branch.cond).collect();
    compiler.values.need(conditions);
    for (at, access) in std::mem::take(&mut compiler.stored_by) {
        let role = if compiler.dead.contains(&at) { Role::Gone } else { Role::Own };
        compiler.claim(access, role);
    }
    compiler.merge();
    compiler.decide();
    let values = compiler.values.all.iter().filter(|v| v.needed && v.cost != Cost::FREE);
    let charges = values.map(|value| (value.count, value.stmt, value.cost));
    let charges = charges.chain(compiler.spent.iter().copied()).collect();
    let roles = compiler.claimed.iter().map(|role| role.unwrap_or(Role::Own)).collect();
    Analysis { roles, counts: compiler.counts, charges, is_whole: compiler.is_whole }
}

/// The state of a compilation.
struct Compiler<'c, 'k> {
    launch: &'c Launch<'k>,
    code: &'c Code<'k>,
    values: Values,
    counts: Counts,
    slots: Slots,
    /// The variables of the functions being applied.
    applied: Vec<HashMap<Slot, Id>>,
    /// What statements need.
    roots: Vec<Id>,
    /// Instructions that are no value's.
    spent: Vec<(CountId, Option<u32>, Cost)>,
    branches: Vec<Branch>,
    /// What has loops in it.
    branches_of_loops: Vec<CountId>,
    loads: Vec<Load>,
    /// What becomes of each access of the code, as far as that is known.
    claimed: Vec<Option<Role>>,
    /// Stores that may yet be overwritten, by buffer, address and the constant behind it.
    stores: HashMap<(u32, Id, i64), Stored>,
    /// What is stored, each with its place among the instructions and where it is stored to.
    stored: Vec<(usize, Id, (u32, Id, i64))>,
    /// The access of each of them.
    stored_by: Vec<(usize, u32)>,
    /// Those that nobody sees.
    dead: HashSet<usize>,
    /// How often each address was stored through.
    own_writes: HashMap<(u32, Id), u32>,
    /// The addresses computed last, of their buffers.
    addresses: Vec<(u32, Form, Id)>,
    /// How often each buffer was written.
    epochs: HashMap<u32, u32>,
    /// How often threads have met.
    meetings: u32,
    /// The number of the piece of straight code.
    piece: u32,
    /// Whether nothing was loaded from shared memory since the last asynchronous copy.
    copied: bool,
    /// Comparisons for equality but for a constant, and what they compare.
    equal: HashMap<Id, (Id, Id)>,
    /// Whether what is compiled is evaluated under a condition.
    guarded: bool,
    /// Whether all is known of it.
    is_whole: bool,
    /// Whether warps of a block part with registers that others take.
    has_roles: bool,
}

impl Analysis {
    /// Adds what was executed to the traffic that the profile has.
    pub(super) fn charge(&self, profile: &mut Profile) {
        let Some(executions) = profile.executions.take() else { return };
        let executions = &executions;
        let mut statements = vec![[0u64; 16]; profile.compiled_statements.len() + 1];
        for (count, stmt, cost) in &self.charges {
            let warps = self.counts.warps(*count, executions);
            let at = stmt.map_or(statements.len() - 1, |stmt| stmt as usize);
            let of = &mut statements[at];
            of[Class::Other as usize] += warps * u64::from(cost.others);
            of[cost.class as usize] += warps * u64::from(cost.count);
            if cost.class == Class::Ffma {
                of[15] += self.counts.lanes(*count, executions) * u64::from(cost.count);
            }
        }
        let mut total = Compiled::default();
        for (at, of) in statements.iter().enumerate() {
            let rounded = |parts: u64| (parts + PARTS / 2) / PARTS;
            let class = |class: Class| rounded(of[class as usize]);
            let own = Compiled {
                instructions: self.is_whole.then(|| rounded(of[..15].iter().sum())),
                thread_ffma: rounded(of[15]),
                ffma: class(Class::Ffma),
                hmma: class(Class::Hmma),
                hgmma: class(Class::Hgmma),
                barriers: class(Class::Barrier),
                shuffles: class(Class::Shuffle),
                global_loads: class(Class::GlobalLoad),
                global_stores: class(Class::GlobalStore),
                shared_loads: class(Class::SharedLoad),
                matrix_loads: class(Class::MatrixLoad),
                shared_stores: class(Class::SharedStore),
                copies: class(Class::Copy),
                box_copies: class(Class::BoxCopy),
                atomics: class(Class::Atomic),
                ..Compiled::default()
            };
            match profile.compiled_statements.get_mut(at) {
                Some(statement) => {
                    *statement += own;
                    total += *statement;
                }
                None => total += own,
            }
        }
        profile.compiled = Some(total);
    }
}
