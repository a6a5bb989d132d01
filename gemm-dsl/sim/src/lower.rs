//! Lowering of statements from the structured body to linear code.

mod asynchronous;
pub(crate) mod code;
mod control;
mod enclosing_loops;
mod expr;
mod function;
mod loop_state;
mod memory;
mod uniform;
pub(crate) mod uniformity;

use super::counters::{IrClass, IrCost, Site};
use super::launch::Launch;
use super::region::slots_of;
use crate::lower::code::expr::{Lane, Lazy, Uniform};
use crate::lower::code::{AsyncCopy, Code, Instr, LoopState, Op, Slots, StoredValue, Update};
use enclosing_loops::EnclosingLoops;
use gemm_dsl::ir::{
    Access, Atomic, AtomicOp, BufferId, BufferLayout, Expr, Guard, Loop, Space, Stmt, Ty, Var,
};
use std::collections::HashMap;
use std::ptr;
use std::sync::Arc;

pub(super) fn lower<'k>(launch: &Launch<'k>) -> Code<'k> {
    let kernel = launch.kernel;
    let varying = uniformity::varying(kernel);
    let mut slots = Slots { lanes: launch.first_variable, ..Slots::default() };
    let take = |count: &mut u32, n| {
        *count += n;
        *count - n
    };
    let pointers = kernel.buffers.iter();
    let pointers = pointers
        .zip(&launch.regions)
        .map(|(buffer, region)| match buffer.layout {
            BufferLayout::Pointer { into } => {
                let count = region.dims.iter().product::<u64>() as u32;
                Some((take(&mut slots.wides, count), count, into))
            }
            _ => None,
        })
        .collect();
    let arrays = slots;
    let places = kernel.vars.iter().zip(&varying);
    let places = places.map(|(var, varying)| match var.ty {
        Ty::Bool | Ty::I32 | Ty::U64 if !varying => take(&mut slots.uniforms, 1),
        Ty::Bool => take(&mut slots.preds, 1),
        Ty::Vector(_) => take(&mut slots.lanes, 4),
        Ty::Scalar(elem) if elem.size() == 8 => take(&mut slots.wides, 1),
        Ty::Scalar(_) => take(&mut slots.lanes, 1),
    });
    let places = places.collect();
    let statements = kernel.statements();
    let mut lowering = Lowering {
        launch,
        pointers,
        chosen: vec![None; kernel.buffers.len()],
        varying,
        places,
        statics: vec![None; kernel.vars.len()],
        inside: false,
        numbers: statements.iter().zip(0..).map(|(stmt, n)| (ptr::from_ref(*stmt), n)).collect(),
        stmt: 0,
        cost: IrCost::default(),
        wasted: 0,
        sums: asynchronous::sums(kernel),
        nested: 0,
        loop_states: HashMap::new(),
        enclosing: EnclosingLoops::new(launch.watched.any()),
        code: Code {
            kernel,
            instrs: Vec::new(),
            sites: Vec::new(),
            stmts: statements,
            accesses: 0,
            slots,
            arrays,
            rounds: vec![Vec::new()],
            loops: Vec::new(),
            functions: Vec::new(),
            loaded: vec![false; kernel.buffers.len()],
            stored: vec![false; kernel.buffers.len()],
            atomics: vec![false; kernel.buffers.len()],
            fates: None,
        },
    };
    lowering.functions();
    lowering.block(&kernel.body);
    lowering.code
}

struct Lowering<'l, 'k> {
    launch: &'l Launch<'k>,
    /// For each buffer of pointers: the first slot, the number of pointers, and the buffer at which
    /// they point.
    pointers: Vec<Option<(u32, u32, BufferId)>>,
    /// For each buffer that is an array of a list: the index of the array.
    chosen: Vec<Option<Expr>>,
    varying: Vec<bool>,
    /// Slot of each variable, among the slots of its kind.
    places: Vec<u32>,
    /// Variables that have a static value at this point: variables of loops that are being
    /// unrolled, and immutable variables computed from these and from constants.
    statics: Vec<Option<i64>>,
    /// True while a device function is lowered. Variables then belong to this function.
    inside: bool,
    /// Number of each statement, in the order of the source.
    numbers: HashMap<*const Stmt, u32>,
    stmt: u32,
    /// Cost so far of the site that is being lowered.
    cost: IrCost,
    /// Wasted work of unrolling: iterations without an instruction, and instructions that were
    /// discarded.
    wasted: usize,
    /// For each buffer: true if its elements are accumulators of warpgroups.
    sums: Vec<bool>,
    /// Nesting depth of loops in the lowered code.
    nested: usize,
    /// State of a warp in each loop that has been lowered.
    loop_states: HashMap<*const Loop, Arc<LoopState>>,
    enclosing: EnclosingLoops,
    code: Code<'k>,
}

impl<'k> Lowering<'_, 'k> {
    fn block(&mut self, block: &'k [Stmt]) {
        for stmt in block {
            let Some(number) = self.numbers.get(&ptr::from_ref(stmt)) else {
                unreachable!("Kernel::statements: it has all that are lowered")
            };
            self.stmt = *number;
            self.touched(stmt);
            self.stmt(stmt);
        }
    }

    /// Ends the current site and returns its number.
    fn site(&mut self) -> u32 {
        let stmt = (!self.inside).then_some(self.stmt);
        self.code.sites.push(Site { cost: std::mem::take(&mut self.cost), stmt });
        self.code.sites.len() as u32 - 1
    }

    /// Lowers an operand that is evaluated conditionally.
    fn lazily<T>(&mut self, lower: impl FnOnce(&mut Self) -> T) -> Lazy<T> {
        let outer = std::mem::take(&mut self.cost);
        let value = lower(self);
        let site = self.site();
        self.cost = outer;
        Lazy { site, value }
    }

    fn here(&self) -> u32 {
        self.code.instrs.len() as u32
    }

    /// Appends an instruction and returns its position.
    fn emit(&mut self, op: Op) -> u32 {
        let site = self.site();
        let stmt = self.stmt;
        let rounds = self.enclosing.number(&mut self.code.rounds);
        self.code.instrs.push(Instr { op, site, stmt, rounds });
        self.here() - 1
    }

    /// Slots of the variables that are part of a warp's state while it iterates a loop.
    fn loop_state(&mut self, l: &Loop) -> Arc<LoopState> {
        if let Some(loop_state) = self.loop_states.get(&ptr::from_ref(l)) {
            return Arc::clone(loop_state);
        }
        let kernel = self.launch.kernel;
        let mut loop_state = LoopState::default();
        let matters = loop_state::in_loop(kernel.vars.len(), l);
        for (var, _) in matters.into_iter().enumerate().filter(|(_, matters)| *matters) {
            let place = self.places[var];
            match kernel.vars[var].ty {
                Ty::Bool | Ty::I32 | Ty::U64 if !self.varying[var] => {
                    loop_state.uniforms.push(place)
                }
                Ty::Bool => loop_state.preds.push(place),
                Ty::Vector(_) => loop_state.lanes.extend(place..place + 4),
                Ty::Scalar(elem) if elem.size() == 8 => loop_state.wides.push(place),
                Ty::Scalar(_) => loop_state.lanes.push(place),
            }
        }
        let loop_state = Arc::new(loop_state);
        self.loop_states.insert(l, Arc::clone(&loop_state));
        loop_state
    }

    /// Sets the target of the jump at `at` to the next instruction.
    fn land(&mut self, at: u32) {
        let here = self.here();
        match &mut self.code.instrs[at as usize].op {
            Op::Unless(_, target)
            | Op::Jump(target)
            | Op::If(_, target)
            | Op::Else(target)
            | Op::Test(_, target) => *target = here,
            op => unreachable!("{op:?} goes nowhere else"),
        }
    }

    fn stmt(&mut self, stmt: &'k Stmt) {
        match stmt {
            Stmt::Let { var, value } => {
                // A variable with a static value is a constant and needs no slot.
                let fixed = if var.ty.is_index() { self.fixed(value) } else { None };
                self.statics[var.id] = fixed;
                if fixed.is_none() {
                    self.set(*var, value);
                }
            }
            Stmt::Mut { var, value } | Stmt::Assign { var, value } => {
                self.set(*var, value);
            }
            Stmt::Registers { buffer, zeroed } => self.registers(*buffer, *zeroed),
            Stmt::Choose { buffer, nth } => {
                self.chosen[buffer.id] = Some(nth.clone());
                let list = self.launch.kernel.memory_of(*buffer).id as u32;
                let nth = self.index(nth);
                self.emit(Op::Choose(Box::new((list, nth))));
            }
            Stmt::Point { pointer, at } => {
                let (pointer, _) = self.pointer(pointer.buffer, &pointer.index);
                let place = self.memory(at);
                self.emit(Op::Point(Box::new((pointer, place))));
            }
            Stmt::Advance { pointer, by } => {
                let (pointer, _) = self.pointer(pointer.buffer, &pointer.index);
                self.cost.add(IrClass::Integer);
                let by = self.index(by);
                self.emit(Op::Advance(Box::new((pointer, by))));
            }
            Stmt::Store { target, value } => self.store(target, value),
            Stmt::StoreRemote { block, target, value, barrier } => {
                self.store_remote(block, target, value, barrier.as_ref());
            }
            Stmt::If { cond, then, otherwise } => self.branch(cond, then, otherwise),
            Stmt::For(l) => self.repeat(l),
            Stmt::Section(section) => self.block(&section.body),
            Stmt::Barrier(scope) => {
                self.cost.add(IrClass::Sync);
                self.emit(Op::Barrier(*scope));
            }
            Stmt::NamedBarrier { id, threads, wait } => {
                self.cost.add(IrClass::Sync);
                let (barrier, threads, wait) = (*id, *threads, *wait);
                self.emit(Op::Named { barrier, threads, wait });
            }
            Stmt::Fence { order: _, scope } => {
                self.cost.add(IrClass::Sync);
                self.emit(Op::Fence(*scope));
            }
            Stmt::Atomic(atomic) => self.atomic(atomic),
            Stmt::CopyAsync { target, source, guard } => {
                self.async_copy(target, source, guard.as_ref());
            }
            Stmt::LoadMatrix(load) => {
                let (count, transposed) = (load.count, load.transposed);
                let (to, from) = (self.fragment(&load.to), self.load(&load.from));
                let load = code::LoadMatrix { count, transposed, to, from };
                self.emit(Op::LoadMatrix(Box::new(load)));
            }
            Stmt::Mma(mma) => {
                let [d, a, b] = [&mma.d, &mma.a, &mma.b].map(|first| self.fragment(first));
                self.cost.add(IrClass::Mma);
                self.emit(Op::Mma(Box::new(code::Mma { format: mma.format, d, a, b })));
            }
            Stmt::Mbarrier(_)
            | Stmt::ProxyFence(_)
            | Stmt::TensorCopy(_)
            | Stmt::Wgmma(_)
            | Stmt::WgmmaSync(_)
            | Stmt::RegisterLimit(_) => self.asynchronous(stmt),
            Stmt::CopyCommit => {
                self.cost.add(IrClass::Sync);
                self.emit(Op::Commit);
            }
            Stmt::CopyWait { pending } => self.copy_wait(pending),
            Stmt::Comment(_) => {}
        }
    }

    /// Declares a register array, or an array of pointers.
    fn registers(&mut self, buffer: BufferId, zeroed: bool) {
        if let Some((first, count, _)) = self.pointers[buffer.id] {
            self.emit(Op::Unset { first, count });
        } else {
            let region = &self.launch.regions[buffer.id];
            let (first, count) = (region.base, region.len as u32 * slots_of(region.elem));
            self.emit(if zeroed { Op::Zero { first, count } } else { Op::Forget { first, count } });
        }
    }

    fn store(&mut self, target: &Access, value: &Expr) {
        let value = self.value(target.ty(), value);
        let place = self.memory(target);
        if place.space != Space::Register {
            let shared = place.space == Space::Shared;
            self.cost.add(if shared { IrClass::SharedStore } else { IrClass::GlobalStore });
            self.code.stored[place.region as usize] = true;
            self.emit(Op::Store(Box::new((place, value))));
            return;
        }
        let op = match (self.element(&place), value) {
            (Some(slot), StoredValue::Lane(value)) => set_lane(slot, value),
            (Some(slot), StoredValue::Wide(value)) => Op::SetElement(slot, value),
            (Some(slot), StoredValue::Vector(value)) => Op::SetVector(slot, value),
            (None, value) => Op::StoreRegister(Box::new((place, value))),
        };
        self.emit(op);
    }

    fn async_copy(&mut self, target: &Access, source: &Access, guard: Option<&Guard>) {
        let guard = guard.map(|g| (self.pred(&g.cond), g.or_zero));
        let (target_place, source_place) = (self.memory(target), self.memory(source));
        self.code.stored[target.buffer.id] = true;
        self.code.loaded[source_place.region as usize] = true;
        self.cost.add(IrClass::Copy);
        self.emit(Op::AsyncCopy(Box::new(AsyncCopy {
            target: target_place,
            source: source_place,
            guard,
        })));
    }

    fn copy_wait(&mut self, pending: &Expr) {
        let Ok(pending) = self.launch.kernel.eval_const(pending) else {
            unreachable!("verified: the groups in flight are a constant");
        };
        self.cost.add(IrClass::Sync);
        // The number of groups in flight always fits in 32 bits.
        self.emit(Op::Wait(u32::try_from(pending).unwrap_or(u32::MAX)));
    }

    /// Lowers a value that is stored as a given type.
    fn value(&mut self, ty: Ty, value: &Expr) -> StoredValue {
        match ty {
            Ty::Vector(_) => StoredValue::Vector(self.vector(value)),
            Ty::Scalar(elem) if elem.size() == 8 => StoredValue::Wide(self.wide(value)),
            _ => StoredValue::Lane(self.lane(value)),
        }
    }

    fn atomic(&mut self, atomic: &Atomic) {
        let Atomic { old, op, target, value, order, scope } = atomic;
        let ty = target.ty();
        let update = match op {
            AtomicOp::Load => Update::Load,
            AtomicOp::Add => Update::Add,
            AtomicOp::Min => Update::Min,
            AtomicOp::Max => Update::Max,
            AtomicOp::Exchange => Update::Exchange,
            AtomicOp::CompareExchange { expected } => {
                Update::CompareExchange(self.value(ty, expected))
            }
        };
        let value = self.value(ty, value);
        let target = self.memory(target);
        let shared = target.space == Space::Shared;
        self.cost.add(if shared { IrClass::SharedStore } else { IrClass::GlobalStore });
        let region = target.region as usize;
        (self.code.loaded[region], self.code.stored[region]) = (true, true);
        self.code.atomics[region] = true;
        let old = old.map(|var| self.places[var.id]);
        let (order, scope) = (*order, *scope);
        self.emit(Op::Atomic(Box::new(code::Atomic { update, target, value, order, scope, old })));
    }

    fn set(&mut self, var: Var, value: &Expr) {
        let place = self.places[var.id];
        let op = match var.ty {
            Ty::Bool | Ty::I32 | Ty::U64 if !self.varying[var.id] => {
                Op::SetUniform(place, self.uniform(value))
            }
            Ty::Bool => Op::SetPred(place, self.pred(value)),
            Ty::Vector(_) => Op::SetVector(place, self.vector(value)),
            Ty::Scalar(elem) if elem.size() == 8 => Op::SetWide(place, self.wide(value)),
            Ty::Scalar(_) => set_lane(place, self.lane(value)),
        };
        self.emit(op);
    }

    /// Returns the value of an expression if it is static. This adds no cost and no sites.
    fn fixed(&mut self, expr: &Expr) -> Option<i64> {
        if uniformity::differs(expr, &self.varying) {
            return None;
        }
        let (cost, sites) = (self.cost, self.code.sites.len());
        let value = self.uniform(expr);
        self.code.sites.truncate(sites);
        self.cost = cost;
        match value {
            Uniform::Static(value) => Some(value),
            _ => None,
        }
    }
}

/// Builds the assignment of a lane variable. A multiply-add of variables and elements has its own
/// instruction, because most run time is spent in it.
fn set_lane(target: u32, value: Lane) -> Op {
    let slot = |lane: &Lane| match lane {
        Lane::Slot(slot) | Lane::Element(slot) => Some(*slot),
        _ => None,
    };
    if let Lane::Fma(operands) = &value
        && let [Some(a), Some(b), Some(c)] = operands.each_ref().map(slot)
    {
        return Op::Fma { target, operands: [a, b, c] };
    }
    Op::SetLane(target, value)
}
