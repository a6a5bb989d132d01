//! Interleavings: a machine that executes one step of one agent at a time, in any order that
//! barriers permit.

use super::program::{ARRAYS, Action, Item, LEN, Place, Program, is_global};
use crate::mask::{WARP, lanes_of, turns};
use crate::observe::AccessKind;
use gemm_dsl::ir::{MemoryOrder, Scope};

/// Event of a step: accesses of some lanes of a warp, or synchronisation.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) block: u32,
    pub(super) what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Access {
        warp: u32,
        lanes: u32,
        place: Place,
        kind: AccessKind,
        reversed: bool,
    },
    Block,
    Warp {
        warp: u32,
    },
    Arrive {
        warp: u32,
        id: u32,
    },
    Complete {
        id: u32,
        warps: Vec<u32>,
    },
    /// Memory order of an atomic; follows its access.
    Atomic {
        warp: u32,
        lanes: u32,
        place: Place,
        order: MemoryOrder,
        scope: Scope,
        /// Lanes that wrote.
        wrote: u32,
        reversed: bool,
    },
    Fence {
        warp: u32,
        lanes: u32,
        scope: Scope,
    },
    Commit {
        warp: u32,
        lanes: u32,
    },
    Wait {
        warp: u32,
        lanes: u32,
        pending: u32,
    },
}

/// Lanes of a warp that execute its statements together.
#[derive(Clone, Debug)]
pub(super) struct Agent {
    pub(super) block: u32,
    pub(super) warp: u32,
    lanes: u32,
    /// Index of the next statement, or the number of statements.
    next: usize,
    /// True if the agent waits at a named barrier.
    waits: bool,
}

/// Granularity at which lanes of a warp execute together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grain {
    /// Each lane is its own agent; only warp barriers join them.
    Threads,
    /// A whole warp is one agent, as in the simulator.
    Warps,
}

/// Remaining statements of each agent, and the state of memory.
#[derive(Clone)]
pub(super) struct Machine<'p> {
    program: &'p Program,
    pub(super) agents: Vec<Agent>,
    /// Per block and named barrier: number of arrived warps, and the warps that wait.
    named: Vec<[(u32, Vec<u32>); 2]>,
    /// Elements of each block's arrays. Global arrays are those of block 0.
    memory: Vec<[[u32; LEN as usize]; ARRAYS.len()]>,
    /// Old value found by the last atomic, per block, warp and lane.
    found: Vec<Vec<[u32; WARP]>>,
    /// True if lanes execute an atomic from the last to the first.
    pub(super) reversed: bool,
}

impl<'p> Machine<'p> {
    pub(super) fn new(program: &'p Program, grain: Grain) -> Self {
        let mut agents = Vec::new();
        for (block, warps) in (0..).zip(&program.lanes) {
            for (warp, &lanes) in (0..).zip(warps) {
                let agent = |lanes| Agent { block, warp, lanes, next: 0, waits: false };
                match grain {
                    Grain::Threads => agents.extend(lanes_of(lanes).map(|l| agent(1 << l))),
                    Grain::Warps => agents.push(agent(lanes)),
                }
            }
        }
        let blocks = program.blocks.len();
        let mut machine = Self {
            program,
            agents,
            named: vec![Default::default(); blocks],
            memory: vec![Default::default(); blocks],
            found: vec![vec![[0; WARP]; program.warps() as usize]; blocks],
            reversed: false,
        };
        (0..machine.agents.len()).for_each(|i| machine.advance(i, 0));
        machine
    }

    /// Moves an agent to its next statement at or after `from`.
    fn advance(&mut self, i: usize, from: usize) {
        let Agent { block, warp, lanes: own, .. } = self.agents[i];
        let items = &self.program.blocks[block as usize];
        let mine = |item: &Item| match item {
            Item::Act { lanes, .. } => item.concerns(warp) && lanes & own != 0,
            _ => item.concerns(warp),
        };
        let next = items[from..].iter().position(mine);
        self.agents[i].next = next.map_or(items.len(), |n| from + n);
    }

    /// Current statement of an agent, or None if it is done.
    pub(super) fn item(&self, i: usize) -> Option<Item> {
        let agent = &self.agents[i];
        self.program.blocks[agent.block as usize].get(agent.next).copied()
    }

    pub(super) fn is_done(&self) -> bool {
        (0..self.agents.len()).all(|i| self.item(i).is_none())
    }

    /// True if an agent waits at a named barrier.
    pub(super) fn waits(&self, i: usize) -> bool {
        self.agents[i].waits
    }

    /// Agents that execute the current statement together with this one.
    fn group(&self, i: usize) -> Vec<usize> {
        let (of, item) = (&self.agents[i], self.item(i));
        let together = |a: &Agent| match item {
            Some(Item::Block) => a.block == of.block,
            Some(Item::Warp { .. } | Item::Named { .. }) => {
                (a.block, a.warp) == (of.block, of.warp)
            }
            _ => false,
        };
        (0..self.agents.len()).filter(|&j| j == i || together(&self.agents[j])).collect()
    }

    /// Agents that can make a step; of a group that steps together, the first.
    pub(super) fn ready(&self) -> Vec<usize> {
        let ready = |&i: &usize| {
            let group = self.group(i);
            let here = |&j: &usize| self.agents[j].next == self.agents[i].next && !self.waits(j);
            self.item(i).is_some() && group[0] == i && group.iter().all(here)
        };
        (0..self.agents.len()).filter(ready).collect()
    }

    /// Executes the step of an agent, and of all agents that step with it. Returns its events,
    /// possibly none.
    pub(super) fn step(&mut self, i: usize) -> Vec<Event> {
        let Some(item) = self.item(i) else { return Vec::new() };
        let Agent { block, warp, lanes: own, next, .. } = self.agents[i];
        for j in self.group(i) {
            self.advance(j, next + 1);
        }
        let events = match item {
            Item::Act { lanes, guarded, action, .. } => {
                let found = &self.found[block as usize][warp as usize];
                let acts = |l: usize| !guarded || found[l] > 0;
                let lanes = lanes_of(lanes & own).filter(|&l| acts(l)).fold(0, |m, l| m | 1 << l);
                if lanes == 0 { Vec::new() } else { self.act(block, warp, lanes, action) }
            }
            Item::Block => vec![What::Block],
            Item::Warp { warp } => vec![What::Warp { warp }],
            Item::Named { warp, id, wait } => self.arrive(block, warp, id, wait),
        };
        events.into_iter().map(|what| Event { block, what }).collect()
    }

    fn arrive(&mut self, block: u32, warp: u32, id: u32, wait: bool) -> Vec<What> {
        let (arrived, waiting) = &mut self.named[block as usize][id as usize - 1];
        *arrived += 1;
        waiting.extend(wait.then_some(warp));
        let mut events = vec![What::Arrive { warp, id }];
        let complete = *arrived >= self.program.named[id as usize - 1];
        let mut released = Vec::new();
        if complete {
            *arrived = 0;
            released = std::mem::take(waiting);
            events.push(What::Complete { id, warps: released.clone() });
        }
        for agent in self.agents.iter_mut().filter(|a| a.block == block) {
            agent.waits |= wait && agent.warp == warp;
            agent.waits &= !released.contains(&agent.warp);
        }
        events
    }

    fn act(&mut self, block: u32, warp: u32, lanes: u32, action: Action) -> Vec<What> {
        let reversed = self.reversed;
        let access = |place, kind| What::Access { warp, lanes, place, kind, reversed };
        match action {
            Action::Read(place) => vec![access(place, AccessKind::Read)],
            Action::Write(place) => {
                for lane in lanes_of(lanes) {
                    self.elements(block, place, lane).fill(1);
                }
                vec![access(place, AccessKind::Write)]
            }
            Action::Atomic(place, order, scope) | Action::Swap(place, order, scope) => {
                let (swaps, mut wrote) = (matches!(action, Action::Swap(..)), 0);
                for lane in turns(lanes, reversed) {
                    let element = &mut self.elements(block, place, lane)[0];
                    let old = *element;
                    if !swaps || old == 0 {
                        *element += 1;
                        wrote |= 1 << lane;
                    }
                    self.found[block as usize][warp as usize][lane] = old;
                }
                let atomic = What::Atomic { warp, lanes, place, order, scope, wrote, reversed };
                vec![access(place, AccessKind::Atomic(scope)), atomic]
            }
            Action::Copy { target, source } => {
                for lane in lanes_of(lanes) {
                    let values = self.elements(block, source, lane).to_vec();
                    self.elements(block, target, lane).copy_from_slice(&values);
                }
                vec![access(source, AccessKind::CopyRead), access(target, AccessKind::CopyWrite)]
            }
            Action::Commit => vec![What::Commit { warp, lanes }],
            Action::Wait(pending) => vec![What::Wait { warp, lanes, pending }],
            Action::Fence(_, scope) => vec![What::Fence { warp, lanes, scope }],
        }
    }

    fn elements(&mut self, block: u32, place: Place, lane: usize) -> &mut [u32] {
        let first = place.element(lane as u32) as usize;
        let owner = if is_global(place.array) { 0 } else { block as usize };
        &mut self.memory[owner][place.array][first..first + place.width() as usize]
    }
}
