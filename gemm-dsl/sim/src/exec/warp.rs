//! Execution of one warp until it must wait or yields.

use super::machine::{Machine, Registers};
use crate::error::FaultKind;
use crate::exec::budget::Budget;
use crate::exec::livelock::LivelockDetector;
use crate::exec::mbarrier::AwaitedPhase;
use crate::lower::code::expr::Pred;
use crate::lower::code::{Code, Op};
use crate::mask::WARP;
use crate::observe::{BoxedTrap, Observer, Sync, trap};
use gemm_dsl::ir::Scope;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Warp of a cluster, with its registers and position. It is a coroutine. [`Warp::run`] returns at
/// a statement if other warps may have to run first. The next call continues after the statement.
pub(crate) struct Warp {
    pub(crate) number: u32,
    pub(crate) regs: Registers,
    pc: usize,
    mask: u32,
    frames: Vec<BranchFrame>,
    /// Number of atomics since the last yield.
    atomics: u32,
    /// Number of completed budget strides.
    strides: u32,
    livelock: LivelockDetector,
    /// Last statement that read memory, for livelock detection.
    asked: Option<u32>,
    /// True if the previous instruction is a wait that is not over.
    waits: bool,
}

/// Number of atomics after which a warp yields, because it may be polling.
const TURN: u32 = 64;
/// Number of budget strides after which a warp is checked for livelock.
const PATIENCE: u32 = 8;

/// State of an `if` or loop that the warp is in.
#[derive(Hash)]
struct BranchFrame {
    /// Mask of the lanes that are active after the `if` or loop.
    after: u32,
    /// Mask of the lanes that wait for the other branch.
    waiting: u32,
    /// Start of the `then` branch, if the `else` branch runs first.
    then: usize,
}

/// Reason why [`Warp::run`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Wait at a barrier of the block, in the statement with this number.
    Barrier(u32),
    /// Wait at a barrier of the cluster, in the statement with this number.
    Cluster(u32),
    /// Wait at a named barrier.
    Named {
        barrier: u32,
        threads: u32,
        wait: bool,
        stmt: u32,
    },
    /// Wait for a phase of an mbarrier.
    Phase {
        awaited: AwaitedPhase,
        stmt: u32,
    },
    /// Polling loop that cannot end without an event, in the statement with this number.
    Polling(u32),
    /// Yield after an atomic or after an iteration of a loop.
    Turn,
    /// The instruction limit of the launch is spent.
    Spent,
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

    /// Runs until the warp must wait, yields or exits.
    pub(crate) fn run(&mut self, machine: &mut Machine<'_>) -> Result<Progress, BoxedTrap> {
        machine.turn_to(self.number);
        machine.asked = self.asked;
        let mut steps = 0;
        let reached = self.run_on(machine, &mut steps)?;
        self.asked = machine.asked;
        Ok(if machine.budget.charge(steps) { reached } else { Progress::Spent })
    }

    /// Executes the pending wait again. Returns the reason if the warp must still wait.
    fn resume_wait(&mut self, machine: &mut Machine<'_>) -> Result<Option<Progress>, BoxedTrap> {
        let before = machine.code.instrs.get(self.pc.wrapping_sub(1));
        if let Some((instr, Op::Mbarrier(barrier))) = before.map(|i| (i, &i.op)) {
            let stmt = instr.stmt;
            if machine.recorder().is_some() {
                machine.reach(instr, &self.regs, self.mask, true);
            }
            machine.stmt = stmt;
            if let Some(awaited) = machine.mbarrier(barrier, &self.regs, self.mask)? {
                return Ok(Some(Progress::Phase { awaited, stmt }));
            }
        }
        self.waits = false;
        Ok(None)
    }

    fn run_on(
        &mut self,
        machine: &mut Machine<'_>,
        steps: &mut u64,
    ) -> Result<Progress, BoxedTrap> {
        let code = machine.code;
        if self.waits
            && let Some(progress) = self.resume_wait(machine)?
        {
            return Ok(progress);
        }
        while let Some(instr) = code.instrs.get(self.pc) {
            *steps += 1;
            if machine.recorder().is_some() {
                machine.reach(instr, &self.regs, self.mask, false);
            }
            machine.executes(instr.site, self.mask);
            machine.stmt = instr.stmt;
            self.pc += 1;
            let (regs, mask) = (&mut self.regs, self.mask);
            match &instr.op {
                Op::Fma { target, operands } => {
                    machine.multiply_add(*target, *operands, regs, mask)?;
                }
                Op::SetUniform(slot, uniform) => {
                    regs.uniforms[*slot as usize] = machine.uniform(uniform, regs, mask)?;
                }
                Op::SetLane(slot, lane) => machine.set_lane(*slot, lane, regs, mask)?,
                Op::SetWide(slot, wide) => machine.set_wide(*slot, wide, regs, mask)?,
                Op::SetPred(slot, pred) => machine.set_pred(*slot, pred, regs, mask)?,
                Op::SetVector(slot, vector) => machine.set_vector(*slot, vector, regs, mask)?,
                Op::SetElement(slot, wide) => machine.set_element(*slot, wide, regs, mask)?,
                Op::Forget { first, count } => regs.forget(*first..first + count, mask),
                Op::Zero { first, count } => regs.zero(*first..first + count, mask),
                Op::Unset { first, count } => regs.unset(*first..first + count, mask),
                Op::Point(point) => machine.point(&point.0, &point.1, regs, mask)?,
                Op::Advance(advance) => machine.advance(&advance.0, &advance.1, regs, mask)?,
                Op::StoreRegister(store) => {
                    machine.store_register(&store.0, &store.1, regs, mask)?;
                }
                Op::Store(store) => machine.store(&store.0, &store.1, regs, mask)?,
                Op::StoreRemote(store) => {
                    let completed = machine.mbarriers.completed;
                    machine.store_remote(store, regs, mask)?;
                    machine.meetings += machine.mbarriers.completed - completed;
                }
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
                Op::If(cond, other) => self.enter_if(machine, cond, *other)?,
                Op::Else(end) => self.enter_else(*end),
                Op::Loop => self.frames.push(BranchFrame { after: mask, waiting: 0, then: 0 }),
                Op::Test(test, end) => self.test(machine, test, *end)?,
                Op::End => self.end(),
                Op::Choose(chosen) => machine.chosen(chosen.0, &chosen.1, regs, mask)?,
                Op::Fence(scope) => {
                    let (warp, scope) = (self.number, *scope);
                    machine.observers.sync(Sync::Fence { warp, mask, scope });
                }
                Op::AsyncCopy(copy) => machine.async_copy(copy, regs, mask)?,
                Op::LoadMatrix(load) => machine.load_matrix(load, regs, mask)?,
                Op::Mma(mma) => machine.multiply(mma, regs, mask)?,
                Op::TensorCopy(copy) => {
                    let completed = machine.mbarriers.completed;
                    machine.tensor_copy(copy, regs, mask)?;
                    machine.meetings += machine.mbarriers.completed - completed;
                }
                Op::ProxyFence(fence) => machine.proxy_fence(*fence, mask),
                Op::Wgmma(wgmma) => machine.wgmma(wgmma, regs, mask)?,
                Op::WgmmaSync(op) => machine.wgmma_sync(op, regs, mask)?,
                Op::UseAccumulators { array, declared } => {
                    machine.use_accumulators(*array, *declared, regs, mask)?;
                }
                Op::Commit => {
                    machine.observers.sync(Sync::Commit { warp: self.number, mask });
                }
                Op::Wait(pending) => {
                    let (warp, pending) = (self.number, *pending);
                    machine.observers.sync(Sync::Wait { warp, mask, pending });
                }
                Op::Barrier(_) | Op::Named { .. } | Op::Atomic(_) | Op::Mbarrier(_) => {
                    if let Some(progress) = self.meet(machine, &instr.op)? {
                        return Ok(progress);
                    }
                }
            }
        }
        if let Some(other) = machine.warpgroups.leave(self.number) {
            let other = Some(code.text(other));
            return Err(trap(0, FaultKind::WarpgroupApart { other }));
        }
        Ok(Progress::Exit)
    }

    /// Enters an `if`. Lanes of the other branch wait.
    #[inline]
    fn enter_if(
        &mut self,
        machine: &mut Machine<'_>,
        cond: &Pred,
        other: u32,
    ) -> Result<(), BoxedTrap> {
        let mask = self.mask;
        let holds = machine.pred(cond, &self.regs, mask)?;
        let waiting = mask & !holds;
        machine.observers.traffic.diverged(machine.stmt, holds != 0 && waiting != 0);
        if machine.reversed && holds != 0 && waiting != 0 {
            self.frames.push(BranchFrame { after: mask, waiting: holds, then: self.pc });
            self.mask = waiting;
            // Skips the `Else`, which is executed only after the first branch.
            self.pc = other as usize + 1;
            return Ok(());
        }
        self.frames.push(BranchFrame { after: mask, waiting, then: 0 });
        self.mask = holds;
        if holds == 0 {
            self.pc = other as usize;
        }
        Ok(())
    }

    /// Activates the lanes that wait for the other branch.
    #[inline]
    fn enter_else(&mut self, end: u32) {
        let waiting = self.frames.last_mut().map_or(0, |f| std::mem::take(&mut f.waiting));
        self.mask = waiting;
        if waiting == 0 {
            self.pc = end as usize;
        }
    }

    /// Deactivates the lanes in which the loop test is false.
    #[inline]
    fn test(&mut self, machine: &mut Machine<'_>, test: &Pred, end: u32) -> Result<(), BoxedTrap> {
        let mask = self.mask;
        let holds = machine.pred(test, &self.regs, mask)?;
        machine.observers.traffic.diverged(machine.stmt, holds != 0 && holds != mask);
        self.mask = holds;
        if holds == 0 {
            self.pc = end as usize;
        }
        Ok(())
    }

    /// Ends an `if` or loop. If lanes wait for the other branch, starts that branch instead.
    #[inline]
    fn end(&mut self) {
        if let Some(frame) = self.frames.last_mut()
            && frame.waiting != 0
        {
            self.mask = std::mem::take(&mut frame.waiting);
            self.pc = frame.then;
        } else if let Some(frame) = self.frames.pop() {
            self.mask = frame.after;
        }
    }

    /// Executes a synchronising instruction. Returns the reason if the warp must wait or yields.
    fn meet(&mut self, machine: &mut Machine<'_>, op: &Op) -> Result<Option<Progress>, BoxedTrap> {
        let (mask, stmt) = (self.mask, machine.stmt);
        let absent = (machine.existing & !mask).count_ones();
        match op {
            Op::Barrier(scope) => {
                let scope = *scope;
                if absent > 0 {
                    let kind = FaultKind::DivergentBarrier { scope, absent };
                    return Err(trap(mask.trailing_zeros(), kind));
                }
                match scope {
                    Scope::Block => return Ok(Some(Progress::Barrier(stmt))),
                    Scope::Cluster => return Ok(Some(Progress::Cluster(stmt))),
                    Scope::Warp => machine.observers.sync(Sync::Warp(self.number)),
                    Scope::Device => unreachable!("verified: the device has no barrier"),
                }
            }
            Op::Named { barrier, threads, wait } => {
                let (barrier, threads, wait) = (*barrier, *threads, *wait);
                if absent > 0 {
                    let kind = FaultKind::DivergentNamedBarrier { barrier, absent };
                    return Err(trap(mask.trailing_zeros(), kind));
                }
                return Ok(Some(Progress::Named { barrier, threads, wait, stmt }));
            }
            Op::Atomic(atomic) => {
                machine.atomic(atomic, &mut self.regs, mask)?;
                self.atomics += 1;
                if self.atomics == TURN {
                    self.atomics = 0;
                    machine.compares_writes = true;
                    return Ok(Some(self.hand_over(machine, stmt)));
                }
                if machine.hands_over() {
                    return Ok(Some(Progress::Turn));
                }
            }
            Op::Mbarrier(barrier) => {
                let completed = machine.mbarriers.completed;
                if let Some(awaited) = machine.mbarrier(barrier, &self.regs, mask)? {
                    self.waits = true;
                    return Ok(Some(Progress::Phase { awaited, stmt }));
                }
                machine.meetings += machine.mbarriers.completed - completed;
            }
            _ => unreachable!("{op:?} meets nobody"),
        }
        Ok(None)
    }

    /// Yields after a budget stride, because the warp may be polling with plain loads.
    #[cold]
    fn stride(&mut self, machine: &mut Machine<'_>, stmt: u32) -> Progress {
        self.strides += 1;
        if self.strides <= PATIENCE {
            return Progress::Turn;
        }
        machine.compares_writes = true;
        self.hand_over(machine, stmt)
    }

    /// Yields in this statement. If the warp polls in vain, it resumes only after an event.
    #[cold]
    fn hand_over(&mut self, machine: &mut Machine<'_>, stmt: u32) -> Progress {
        if !self.livelock.is_quiet(machine.events()) {
            // The next poll may read another location.
            machine.asked = None;
            return Progress::Turn;
        }
        let (code, mut livelock) = (machine.code, self.livelock);
        let livelocked_at = livelock.again(self.brief(code), || self.state(code));
        self.livelock = livelock;
        // Reports the load with which the warp polls, not a statement after it.
        if livelocked_at {
            Progress::Polling(machine.asked.unwrap_or(stmt))
        } else {
            Progress::Turn
        }
    }

    /// Next statement of the warp.
    pub(crate) fn stmt(&self, code: &Code<'_>) -> u32 {
        code.instrs.get(self.pc).map_or(0, |instr| instr.stmt)
    }

    /// First active lane; 0 if there is none.
    pub(crate) fn lane(&self) -> u32 {
        self.mask.trailing_zeros() % WARP as u32
    }

    /// Brief hash of the state: position, active lanes and uniform variables. These usually differ
    /// between states.
    pub(crate) fn brief(&self, code: &Code<'_>) -> u64 {
        let mut state = DefaultHasher::new();
        (self.pc, self.mask).hash(&mut state);
        let uniforms = code.loop_state(self.pc).map_or(&[][..], |loop_state| &loop_state.uniforms);
        uniforms.iter().for_each(|&slot| self.regs.uniforms[slot as usize].hash(&mut state));
        state.finish()
    }

    /// Hash of the rest of the state. Outside of all loops, a warp never returns to an earlier
    /// state.
    pub(crate) fn state(&self, code: &Code<'_>) -> u64 {
        let mut state = DefaultHasher::new();
        self.frames.hash(&mut state);
        let Some(loop_state) = code.loop_state(self.pc) else { return state.finish() };
        let (regs, arrays) = (&self.regs, &code.arrays);
        for slot in (0..arrays.lanes).chain(loop_state.lanes.iter().copied()) {
            (&regs.lanes[slot as usize].0, regs.ready[slot as usize]).hash(&mut state);
        }
        for slot in (0..arrays.wides).chain(loop_state.wides.iter().copied()) {
            regs.wides[slot as usize].hash(&mut state);
        }
        loop_state.preds.iter().for_each(|&slot| regs.preds[slot as usize].hash(&mut state));
        state.finish()
    }
}
