//! Races by definition: events form a graph, and two conflicting accesses race if no path orders
//! them.
//!
//! An event is ordered after another one if a chain of edges leads to it. Edges lead
//!
//! * from a thread's event to its next one. A copy is issued after the thread's earlier events, and
//!   precedes only the wait of this thread that covers its group;
//! * from each arrival at a barrier to its completion, and from there to each thread that waits for
//!   it;
//! * from a release to an acquire. The release is a releasing atomic, or a fence followed by an
//!   atomic of its thread. The acquire is an acquiring atomic, or a fence after an atomic of its
//!   thread. The later atomic must read the value of the earlier one, directly or through a chain
//!   of atomics. Consecutive atomics of the chain must be in each other's scope, and so must its
//!   two ends.
//!
//! There are no clocks here: the graph is kept, and each access is compared with all earlier ones.

use super::graph::{Access, Graph, Node, Pair, Thread, mutual};
use super::interleave::{Event, What};
use super::program::{Place, Program};
use crate::mask::{WARP, lanes_of, turns};
use crate::observe::AccessKind;
use gemm_dsl::ir::{MemoryOrder, Scope};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
struct Doer {
    last: Option<usize>,
    fences: Vec<(usize, Scope)>,
    atomics: Vec<usize>,
    /// Copies, each with the number of its group.
    copies: Vec<(u32, usize)>,
    closed: u32,
}

/// Events so far, and the state of all threads.
#[derive(Clone)]
pub(super) struct Definition {
    graph: Graph,
    /// Threads that execute any statement.
    doers: BTreeMap<Thread, Doer>,
    /// Arrivals by block and named barrier.
    named: BTreeMap<(u32, u32), Vec<usize>>,
    /// True if the program has atomics. Without them a fence publishes nothing.
    synchronising: bool,
}

/// Threads of a warp's lanes.
fn threads(block: u32, warp: u32, lanes: u32) -> impl Iterator<Item = Thread> {
    lanes_of(lanes).map(move |l| (block, warp * WARP as u32 + l as u32))
}

impl Definition {
    pub(super) fn new(program: &Program) -> Self {
        let warps = (0..).zip(&program.lanes).flat_map(|(b, warps)| {
            (0..).zip(warps).flat_map(move |(warp, &lanes)| threads(b, warp, lanes))
        });
        let doers = warps.map(|thread| (thread, Doer::default())).collect();
        let synchronising = program.has_atomics();
        Self { graph: Graph::default(), doers, named: BTreeMap::new(), synchronising }
    }

    fn doer(&mut self, thread: Thread) -> &mut Doer {
        self.doers.get_mut(&thread).expect("who acts is known")
    }

    fn last(&self, thread: Thread) -> Option<usize> {
        self.doers[&thread].last
    }

    /// Threads of a warp that execute any statement.
    fn acting(&self, block: u32, warp: u32) -> Vec<Thread> {
        threads(block, warp, u32::MAX).filter(|t| self.doers.contains_key(t)).collect()
    }

    /// Adds an event. Returns the races of its accesses with earlier ones.
    pub(super) fn happen(&mut self, event: &Event) -> Vec<Pair> {
        let block = event.block;
        match &event.what {
            &What::Access { warp, lanes, place, kind, reversed } => {
                let first = self.graph.0.len();
                let races = turns(lanes, reversed).flat_map(|lane| {
                    let thread = (block, warp * WARP as u32 + lane as u32);
                    self.access(thread, place.element(lane as u32), place, kind, first)
                });
                return races.collect();
            }
            What::Block => {
                let all = self.doers.keys().copied().filter(|t| t.0 == block).collect();
                self.meet(all);
            }
            &What::Warp { warp } => self.meet(self.acting(block, warp)),
            &What::Arrive { warp, id } => {
                for thread in self.acting(block, warp) {
                    self.tell(thread);
                    let last = self.last(thread);
                    self.named.entry((block, id)).or_default().extend(last);
                }
            }
            What::Complete { id, warps } => {
                let arrived = self.named.remove(&(block, *id)).unwrap_or_default();
                let node = self.graph.add((block, 0), &arrived, None);
                let waited = warps.iter().flat_map(|&warp| self.acting(block, warp));
                for thread in waited.collect::<Vec<_>>() {
                    // The thread's own last event is among the arrivals.
                    self.doer(thread).last = Some(node);
                }
            }
            &What::Atomic { warp, lanes, order, scope, wrote, reversed, .. } => {
                for lane in turns(lanes, reversed) {
                    let thread = (block, warp * WARP as u32 + lane as u32);
                    self.atomic(thread, order, scope, wrote >> lane & 1 == 1);
                }
            }
            &What::Fence { warp, lanes, scope } => {
                threads(block, warp, lanes).for_each(|thread| self.fence(thread, scope));
            }
            &What::Commit { warp, lanes } => {
                threads(block, warp, lanes).for_each(|thread| self.close(thread));
            }
            &What::Wait { warp, lanes, pending } => {
                threads(block, warp, lanes).for_each(|thread| self.wait(thread, pending));
            }
        }
        Vec::new()
    }

    fn meet(&mut self, threads: Vec<Thread>) {
        let arrived: Vec<usize> = threads.iter().filter_map(|&t| self.last(t)).collect();
        let Some(&any) = threads.first() else { return };
        let node = self.graph.add(any, &arrived, None);
        for thread in threads {
            self.tell(thread);
            self.doer(thread).last = Some(node);
        }
    }

    fn close(&mut self, thread: Thread) {
        self.doer(thread).closed += 1;
        let doer = &self.doers[&thread];
        for (_, node) in doer.copies.iter().filter(|(group, _)| *group == doer.closed) {
            self.graph.0[*node].access.iter_mut().for_each(|access| access.fresh = true);
        }
    }

    /// Marks the thread's copies as published to other threads.
    fn tell(&mut self, thread: Thread) {
        for (_, node) in &self.doers[&thread].copies {
            self.graph.0[*node].access.iter_mut().for_each(|access| access.fresh = false);
        }
    }

    fn wait(&mut self, thread: Thread, pending: u32) {
        let doer = &self.doers[&thread];
        let over = |&&(group, _): &&(u32, usize)| group + pending <= doer.closed;
        let copies = doer.copies.iter().filter(over).map(|&(_, node)| node);
        let over: Vec<usize> = copies.chain(doer.last).collect();
        for &node in &over {
            self.graph.0[node].access.iter_mut().for_each(|access| access.awaited = true);
        }
        let node = self.graph.add(thread, &over, None);
        self.doer(thread).last = Some(node);
    }

    fn fence(&mut self, thread: Thread, scope: Scope) {
        let doer = &self.doers[&thread];
        let found = doer.atomics.iter().flat_map(|&atomic| self.left_for(atomic, scope));
        let after: Vec<usize> = found.chain(doer.last).collect();
        let node = self.graph.add(thread, &after, None);
        if self.synchronising {
            self.tell(thread);
        }
        let doer = self.doer(thread);
        doer.last = Some(node);
        doer.fences.push((node, scope));
    }

    /// Adds an access of a thread, starting at element `first`, in a step whose first node is
    /// `step`.
    fn access(
        &mut self,
        thread: Thread,
        first: u32,
        place: Place,
        kind: AccessKind,
        step: usize,
    ) -> Vec<Pair> {
        let access = Access {
            kind,
            array: place.array,
            first,
            width: place.width(),
            wrote: matches!(kind, AccessKind::Write | AccessKind::CopyWrite),
            releases: None,
            awaited: false,
            fresh: false,
        };
        let last: Vec<usize> = self.last(thread).into_iter().collect();
        let node = self.graph.add(thread, &last, Some(access));
        let races = self.graph.races(node, &access, step);
        let doer = self.doer(thread);
        if access.by_copy() {
            doer.copies.push((doer.closed + 1, node));
            return races;
        }
        doer.last = Some(node);
        if matches!(kind, AccessKind::Atomic(_)) {
            doer.atomics.push(node);
        }
        races
    }

    /// Applies the memory order of an atomic that is the thread's last access.
    fn atomic(&mut self, thread: Thread, order: MemoryOrder, scope: Scope, wrote: bool) {
        let Some(node) = self.last(thread) else { return };
        let mut end = node;
        if matches!(order, MemoryOrder::Acquire | MemoryOrder::AcqRel) {
            let mut after = self.left_for(node, scope);
            after.push(node);
            end = self.graph.add(thread, &after, None);
            self.doer(thread).last = Some(end);
        }
        // A release includes everything that the same atomic acquired.
        let releases = wrote && matches!(order, MemoryOrder::Release | MemoryOrder::AcqRel);
        if releases {
            self.tell(thread);
        }
        if let Some(access) = &mut self.graph.0[node].access {
            (access.wrote, access.releases) = (wrote, releases.then_some(end));
        }
    }

    /// Nodes that are ordered before the thread of this atomic at the given scope. If the atomic
    /// acquires, the order applies after it, otherwise at a later fence.
    fn left_for(&self, atomic: usize, scope: Scope) -> Vec<usize> {
        let (mut left, mut reader) = (Vec::new(), atomic);
        let to = (self.graph.0[atomic].thread.0, scope);
        while let Some(writer) = self.graph.read_from(reader) {
            if !self.graph.in_scope(writer, reader) {
                break;
            }
            let Node {
                thread,
                access: Some(Access { kind: AccessKind::Atomic(of), releases, .. }),
                ..
            } = self.graph.0[writer]
            else {
                break;
            };
            left.extend(releases.filter(|_| mutual((thread.0, of), to)));
            let fences = self.doers[&thread].fences.iter();
            let fences = fences.filter(|&&(f, of)| f < writer && mutual((thread.0, of), to));
            left.extend(fences.map(|&(fence, _)| fence));
            reader = writer;
        }
        left
    }
}
