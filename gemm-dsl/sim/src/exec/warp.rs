//! Execution of one warp, to where it must wait or lets others go on.

use super::lanes::{Lanes, blend, fma};
use super::machine::{Machine, Registers};
use super::memory::Quad;
use crate::error::FaultKind;
use crate::exec::budget::Budget;
use crate::exec::livelock::LivelockDetector;
use crate::exec::mbarrier::AwaitedPhase;
use crate::lower::code::{AsyncCopy, Code, NOWHERE, Op};
use crate::mask::WARP;
use crate::observe::{BoxedTrap, Observer, Sync, trap};
use gemm_dsl::ir::Scope;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A warp, by its number among those of the cluster: its registers and where it is. It runs as a coroutine: [`Warp::run`] returns at every
/// statement that others may have to come before, and goes on behind it when called again.
pub(crate) struct Warp {
    pub(crate) number: u32,
    pub(crate) regs: Registers,
    pc: usize,
    mask: u32,
    frames: Vec<BranchFrame>,
    /// Atomics since the warp has let others run.
    atomics: u32,
    /// Strides of the budget that it has run.
    strides: u32,
    livelock: LivelockDetector,
    /// The statement that has read memory last, since it may be waiting.
    asked: Option<u32>,
    /// Whether the instruction before this place is a wait that has not ended.
    waits: bool,
}

/// Behind so many atomics a warp lets others run, for which it may wait.
const TURN: u32 = 64;
/// After so many strides of the budget a warp may be going round for ever.
const PATIENCE: u32 = 8;

/// An `if` or loop that some lanes are in.
#[derive(Hash)]
struct BranchFrame {
    /// The lanes to go on with after it.
    after: u32,
    /// The lanes that wait for the other branch.
    waiting: u32,
    /// Where that one begins, if it is the first of the two.
    then: usize,
}

/// Where a warp has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// A barrier of the block, in the statement of this number.
    Barrier(u32),
    /// A barrier of the cluster, in the statement of this number.
    Cluster(u32),
    /// A barrier with a name, in the statement of this number.
    Named { barrier: u32, threads: u32, wait: bool, stmt: u32 },
    /// A wait for a phase of a barrier in shared memory, in the statement of this number.
    Phase { awaited: AwaitedPhase, stmt: u32 },
    /// The statement of this number, of a loop that will not end before something happens.
    Polling(u32),
    /// An atomic or the end of a round, behind which others are to have their turn.
    Turn,
    /// The launch has executed as many instructions as it may.
    Spent,
    /// The end of the kernel.
    Exit,
}

impl Warp {
    pub(crate) fn new(number: u32, regs: Registers) -> Self {
        Self {
            number,
            regs,
            pc: 0,
            mask: 0,
            frames: Vec::new(),
            atomics: 0,
            strides: 0,
            livelock: LivelockDetector::default(),
            asked: None,
            waits: false,
        }
    }

    /// Goes to the start of the kernel.
    pub(crate) fn restart(&mut self, machine: &mut Machine<'_>) {
        machine.turn_to(self.number);
        let in_block = self.number % machine.launch.warps();
        self.regs.reset(machine.launch, in_block * WARP as u32);
        self.pc = 0;
        self.mask = machine.existing;
        self.frames.clear();
        (self.atomics, self.strides, self.livelock, self.asked) =
            (0, 0, LivelockDetector::default(), None);
        self.waits = false;
    }

    /// Runs to where it must wait or lets others go on, or to the end.
    pub(crate) fn run(&mut self, machine: &mut Machine<'_>) -> Result<Progress, BoxedTrap> {
        machine.turn_to(self.number);
        machine.asked = self.asked;
        let mut steps = 0;
        let reached = self.run_on(machine, &mut steps)?;
        self.asked = machine.asked;
        Ok(if machine.budget.charge(steps) { reached } else { Progress::Spent })
    }

    fn run_on(
        &mut self,
        machine: &mut Machine<'_>,
        steps: &mut u64,
    ) -> Result<Progress, BoxedTrap> {
        let code = machine.code;
        if self.waits {
            let before = code.instrs.get(self.pc.wrapping_sub(1));
            if let Some((instr, Op::Mbarrier(barrier))) = before.map(|i| (i, &i.op)) {
                let stmt = instr.stmt;
                if machine.recorder().is_some() {
                    machine.come(instr, &self.regs, self.mask, true);
                }
                machine.stmt = stmt;
                if let Some(awaited) = machine.mbarrier(barrier, &self.regs, self.mask)? {
                    return Ok(Progress::Phase { awaited, stmt });
                }
            }
            self.waits = false;
        }
        while let Some(instr) = code.instrs.get(self.pc) {
            *steps += 1;
            if machine.recorder().is_some() {
                machine.come(instr, &self.regs, self.mask, false);
            }
            machine.executes(instr.site, self.mask);
            machine.stmt = instr.stmt;
            self.pc += 1;
            let (regs, mask) = (&mut self.regs, self.mask);
            match &instr.op {
                Op::Fma { target, operands } => {
                    let [a, b, c] = operands.map(|slot| slot as usize);
                    let ready = regs.ready[a] & regs.ready[b] & regs.ready[c];
                    if mask & !ready != 0 {
                        for &slot in operands {
                            machine.ready(slot, regs, mask)?;
                        }
                    }
                    let (x, y, z) = (&regs.lanes[a], &regs.lanes[b], &regs.lanes[c]);
                    let value = fma(machine.arch, x, y, z);
                    set(regs, *target, &value, mask);
                }
                Op::SetUniform(slot, uniform) => {
                    let value = machine.uniform(uniform, regs, mask)?;
                    regs.uniforms[*slot as usize] = value;
                }
                Op::SetLane(slot, lane) => {
                    let mut buffer = Lanes::ZERO;
                    let value = *machine.lane(lane, regs, mask, &mut buffer)?;
                    set(regs, *slot, &value, mask);
                }
                Op::SetWide(slot, wide) => {
                    let mut value = [0; WARP];
                    machine.wide(wide, regs, mask, &mut value)?;
                    blend(&mut regs.wides[*slot as usize], &value, mask);
                }
                Op::SetPred(slot, pred) => {
                    let holds = machine.pred(pred, regs, mask)?;
                    let variable = &mut regs.preds[*slot as usize];
                    *variable = *variable & !mask | holds;
                }
                Op::SetVector(slot, vector) => {
                    let mut values = Quad::default();
                    machine.vector(vector, regs, mask, &mut values)?;
                    for (slot, value) in (*slot..).zip(&values) {
                        set(regs, slot, value, mask);
                    }
                }
                Op::SetElement(slot, wide) => {
                    let mut value = [0; WARP];
                    machine.wide(wide, regs, mask, &mut value)?;
                    set(regs, *slot, &Lanes(value.map(|v| v as u32)), mask);
                    set(regs, *slot + 1, &Lanes(value.map(|v| (v >> 32) as u32)), mask);
                }
                Op::Forget { first, count } => {
                    for slot in *first..first + count {
                        regs.ready[slot as usize] &= !mask;
                    }
                }
                Op::Zero { first, count } => {
                    for slot in *first..first + count {
                        set(regs, slot, &Lanes::ZERO, mask);
                    }
                }
                Op::Unset { first, count } => {
                    for slot in *first..first + count {
                        blend(&mut regs.wides[slot as usize], &[NOWHERE; WARP], mask);
                    }
                }
                Op::Point(point) => machine.point(&point.0, &point.1, regs, mask)?,
                Op::Advance(advance) => machine.advance(&advance.0, &advance.1, regs, mask)?,
                Op::StoreRegister(store) => {
                    machine.store_register(&store.0, &store.1, regs, mask)?;
                }
                Op::Store(store) => machine.store(&store.0, &store.1, regs, mask)?,
                Op::Unless(cond, target) => {
                    if machine.uniform(cond, regs, mask)? == 0 {
                        self.pc = *target as usize;
                    }
                }
                Op::Jump(target) => {
                    self.pc = *target as usize;
                    if *steps >= Budget::STRIDE {
                        if !machine.budget.charge(std::mem::take(steps)) {
                            return Ok(Progress::Spent);
                        }
                        return Ok(self.stride(machine, instr.stmt));
                    }
                }
                Op::If(cond, other) => {
                    let holds = machine.pred(cond, regs, mask)?;
                    let waiting = mask & !holds;
                    machine.observers.traffic.diverged(instr.stmt, holds != 0 && waiting != 0);
                    if machine.reversed && holds != 0 && waiting != 0 {
                        self.frames.push(BranchFrame {
                            after: mask,
                            waiting: holds,
                            then: self.pc,
                        });
                        self.mask = waiting;
                        // Behind the `Else`, which is for those that come from the first branch.
                        self.pc = *other as usize + 1;
                        continue;
                    }
                    self.frames.push(BranchFrame { after: mask, waiting, then: 0 });
                    self.mask = holds;
                    if holds == 0 {
                        self.pc = *other as usize;
                    }
                }
                Op::Else(end) => {
                    let waiting =
                        self.frames.last_mut().map_or(0, |f| std::mem::take(&mut f.waiting));
                    self.mask = waiting;
                    if waiting == 0 {
                        self.pc = *end as usize;
                    }
                }
                Op::Loop => self.frames.push(BranchFrame { after: mask, waiting: 0, then: 0 }),
                Op::Test(test, end) => {
                    let holds = machine.pred(test, regs, mask)?;
                    machine.observers.traffic.diverged(instr.stmt, holds != 0 && holds != mask);
                    self.mask = holds;
                    if holds == 0 {
                        self.pc = *end as usize;
                    }
                }
                Op::End => {
                    if let Some(frame) = self.frames.last_mut()
                        && frame.waiting != 0
                    {
                        self.mask = std::mem::take(&mut frame.waiting);
                        self.pc = frame.then;
                    } else if let Some(frame) = self.frames.pop() {
                        self.mask = frame.after;
                    }
                }
                Op::Choose(chosen) => {
                    let (list, nth) = &**chosen;
                    machine.chosen(*list, nth, regs, mask)?;
                }
                Op::Assume(cond) => {
                    let broken = mask & !machine.pred(cond, regs, mask)?;
                    if broken != 0 {
                        return Err(trap(broken.trailing_zeros(), FaultKind::BrokenAssumption));
                    }
                }
                Op::Barrier(scope) => {
                    let absent = (machine.existing & !mask).count_ones();
                    if absent > 0 {
                        let scope = *scope;
                        let kind = FaultKind::DivergentBarrier { scope, absent };
                        return Err(trap(mask.trailing_zeros(), kind));
                    }
                    match scope {
                        Scope::Block => return Ok(Progress::Barrier(instr.stmt)),
                        Scope::Cluster => return Ok(Progress::Cluster(instr.stmt)),
                        Scope::Warp => machine.observers.sync(Sync::Warp(self.number)),
                        Scope::Device => unreachable!("verified: the device has no barrier"),
                    }
                }
                Op::Named { barrier, threads, wait } => {
                    let absent = (machine.existing & !mask).count_ones();
                    if absent > 0 {
                        let kind = FaultKind::DivergentNamedBarrier { barrier: *barrier, absent };
                        return Err(trap(mask.trailing_zeros(), kind));
                    }
                    let (barrier, threads, wait) = (*barrier, *threads, *wait);
                    return Ok(Progress::Named { barrier, threads, wait, stmt: instr.stmt });
                }
                Op::Fence(scope) => {
                    let (warp, scope) = (self.number, *scope);
                    machine.observers.sync(Sync::Fence { warp, mask, scope });
                }
                Op::Atomic(atomic) => {
                    machine.atomic(atomic, regs, mask)?;
                    self.atomics += 1;
                    if self.atomics == TURN {
                        self.atomics = 0;
                        machine.careful = true;
                        return Ok(self.hand_over(machine, instr.stmt));
                    }
                    if machine.hands_over() {
                        return Ok(Progress::Turn);
                    }
                }
                Op::AsyncCopy(copy) => {
                    let AsyncCopy { target, source, guard } = &**copy;
                    let (valid, written) = match guard {
                        Some((guard, or_zero)) => {
                            let valid = machine.pred(guard, regs, mask)?;
                            (valid, if *or_zero { mask } else { valid })
                        }
                        None => (mask, mask),
                    };
                    if written != 0 {
                        machine.copy(target, source, valid, regs, written)?;
                    }
                }
                Op::LoadMatrix(load) => machine.load_matrix(load, regs, mask)?,
                Op::Mma(mma) => machine.multiply(mma, regs, mask)?,
                Op::Mbarrier(barrier) => {
                    let completed = machine.mbarriers.completed;
                    if let Some(awaited) = machine.mbarrier(barrier, regs, mask)? {
                        self.waits = true;
                        return Ok(Progress::Phase { awaited, stmt: instr.stmt });
                    }
                    machine.meetings += machine.mbarriers.completed - completed;
                }
                Op::TensorCopy(copy) => {
                    let completed = machine.mbarriers.completed;
                    machine.tensor_copy(copy, regs, mask)?;
                    machine.meetings += machine.mbarriers.completed - completed;
                }
                Op::ProxyFence(fence) => machine.proxy_fence(*fence, mask),
                Op::Wgmma(wgmma) => machine.wgmma(wgmma, regs, mask)?,
                Op::WgmmaSync(op) => machine.wgmma_sync(op, regs, mask)?,
                Op::UseAccumulators { array, declared } => {
                    machine.touch(*array, *declared, regs, mask)?
                }
                Op::Commit => {
                    let warp = self.number;
                    machine.observers.sync(Sync::Commit { warp, mask });
                }
                Op::Wait(pending) => machine.observers.sync(Sync::Wait {
                    warp: self.number,
                    mask,
                    pending: *pending,
                }),
            }
        }
        if let Some(other) = machine.warpgroups.leave(self.number) {
            let other = Some(code.text(other));
            return Err(trap(0, FaultKind::WarpgroupApart { other }));
        }
        Ok(Progress::Exit)
    }

    /// Lets others run after a stride of the budget, for which the warp may wait by loads alone.
    #[cold]
    fn stride(&mut self, machine: &mut Machine<'_>, stmt: u32) -> Progress {
        self.strides += 1;
        if self.strides <= PATIENCE {
            return Progress::Turn;
        }
        machine.careful = true;
        self.hand_over(machine, stmt)
    }

    /// Lets others run, in this statement: until something happens, if the warp goes round in vain.
    #[cold]
    fn hand_over(&mut self, machine: &mut Machine<'_>, stmt: u32) -> Progress {
        if !self.livelock.is_quiet(machine.events()) {
            // Whatever it has asked before, it may ask for something else now.
            machine.asked = None;
            return Progress::Turn;
        }
        let (code, mut livelock) = (machine.code, self.livelock);
        let in_vain = livelock.again(self.brief(code), || self.state(code));
        self.livelock = livelock;
        // It waits by what it asks, not by what it does between two questions.
        if in_vain { Progress::Polling(machine.asked.unwrap_or(stmt)) } else { Progress::Turn }
    }

    /// The statement that comes next.
    pub(crate) fn stmt(&self, code: &Code<'_>) -> u32 {
        code.instrs.get(self.pc).map_or(0, |instr| instr.stmt)
    }

    /// The first of the lanes that go on.
    pub(crate) fn lane(&self) -> u32 {
        self.mask.trailing_zeros() % WARP as u32
    }

    /// Where the warp is, and what all its threads share: most often that tells states apart.
    pub(crate) fn brief(&self, code: &Code<'_>) -> u64 {
        let mut state = DefaultHasher::new();
        (self.pc, self.mask).hash(&mut state);
        let uniforms = code.state(self.pc).map_or(&[][..], |held| &held.uniforms);
        uniforms.iter().for_each(|&slot| self.regs.uniforms[slot as usize].hash(&mut state));
        state.finish()
    }

    /// What else tells the states of the warp apart. Outside of all loops it does not come back to any.
    pub(crate) fn state(&self, code: &Code<'_>) -> u64 {
        let mut state = DefaultHasher::new();
        self.frames.hash(&mut state);
        let Some(held) = code.state(self.pc) else { return state.finish() };
        let (regs, arrays) = (&self.regs, &code.arrays);
        for slot in (0..arrays.lanes).chain(held.lanes.iter().copied()) {
            (&regs.lanes[slot as usize].0, regs.ready[slot as usize]).hash(&mut state);
        }
        for slot in (0..arrays.wides).chain(held.wides.iter().copied()) {
            regs.wides[slot as usize].hash(&mut state);
        }
        held.preds.iter().for_each(|&slot| regs.preds[slot as usize].hash(&mut state));
        state.finish()
    }
}

/// Sets a lane slot in the active lanes.
#[inline]
fn set(regs: &mut Registers, slot: u32, value: &Lanes, mask: u32) {
    blend(&mut regs.lanes[slot as usize].0, &value.0, mask);
    regs.ready[slot as usize] |= mask;
}
