//! Event graph, and its accesses that no path orders.

use super::program::is_global;
use crate::observe::AccessKind;
use gemm_dsl::ir::Scope;

/// Set of graph nodes, one bit each.
type Set = u128;
/// Block, and number of the thread in the block.
pub(super) type Thread = (u32, u32);

/// Access of a thread to consecutive elements of an array.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) kind: AccessKind,
    pub(super) array: usize,
    pub(super) first: u32,
    pub(super) width: u32,
    /// True if it wrote. False for a compare-and-swap that failed.
    pub(super) wrote: bool,
    /// Node that a releasing atomic publishes to its acquirers.
    pub(super) releases: Option<usize>,
    /// For a copy: true if the thread has waited for it.
    pub(super) awaited: bool,
    /// For a copy: true if the thread has closed its group and published nothing since.
    pub(super) fresh: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) thread: Thread,
    pub(super) access: Option<Access>,
    /// All nodes from which a path leads here.
    pub(super) before: Set,
}

/// Two racing accesses to one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) array: usize,
    pub(super) element: u32,
    pub(super) thread: Thread,
    pub(super) writes: bool,
    pub(super) earlier: Thread,
    pub(super) wrote: bool,
    pub(super) by_copy: bool,
    /// True if the later access reads a word that a copy is still writing. False for a copy that
    /// another thread has only just committed, since the read cannot be ordered after its issue.
    pub(super) in_flight: bool,
}

/// Nodes of all events so far.
#[derive(Clone, Default)]
pub(super) struct Graph(pub(super) Vec<Node>);

/// True if each agent is in the scope of the other.
pub(super) fn mutual((a, of_a): (u32, Scope), (b, of_b): (u32, Scope)) -> bool {
    a == b || (of_a, of_b) == (Scope::Device, Scope::Device)
}

impl Access {
    fn covers(&self, array: usize, element: u32) -> bool {
        self.array == array && (self.first..self.first + self.width).contains(&element)
    }

    pub(super) fn by_copy(&self) -> bool {
        matches!(self.kind, AccessKind::CopyRead | AccessKind::CopyWrite)
    }
}

impl Graph {
    /// Adds a node that is ordered after the given nodes.
    pub(super) fn add(&mut self, thread: Thread, after: &[usize], access: Option<Access>) -> usize {
        let before = after.iter().fold(0, |set, &a| set | self.0[a].before | 1 << a);
        self.0.push(Node { thread, access, before });
        assert!(self.0.len() < Set::BITS as usize, "a tiny program makes few events");
        self.0.len() - 1
    }

    /// Last write to an atomic's element before that atomic.
    pub(super) fn read_from(&self, atomic: usize) -> Option<usize> {
        let Access { array, first, .. } = self.0[atomic].access?;
        let wrote = |&node: &usize| {
            let wrote = self.0[node].access.is_some_and(|a| a.wrote && a.covers(array, first));
            wrote && self.is_one_memory(atomic, node, array)
        };
        (0..atomic).rev().find(wrote)
    }

    /// True if an array is the same memory for the threads of both nodes.
    fn is_one_memory(&self, a: usize, b: usize, array: usize) -> bool {
        is_global(array) || self.0[a].thread.0 == self.0[b].thread.0
    }

    /// True if both nodes are atomics in each other's scope.
    pub(super) fn in_scope(&self, a: usize, b: usize) -> bool {
        let scope = |node: usize| match self.0[node].access?.kind {
            AccessKind::Atomic(scope) => Some((self.0[node].thread.0, scope)),
            _ => None,
        };
        scope(a).zip(scope(b)).is_some_and(|(a, b)| mutual(a, b))
    }

    pub(super) fn races(&self, node: usize, access: &Access, step: usize) -> Vec<Pair> {
        let mut races = Vec::new();
        for (earlier, other) in self.0[..node].iter().enumerate() {
            let Some(past) = other.access else { continue };
            let conflict = past.kind.writes() || access.kind.writes();
            let ordered = self.0[node].before >> earlier & 1 == 1;
            if !conflict || ordered || self.in_scope(earlier, node) {
                continue;
            }
            let elements = access.first..access.first + access.width;
            let shared = elements.filter(|&e| past.covers(access.array, e));
            let shared = shared.filter(|_| self.is_one_memory(node, earlier, access.array));
            for element in shared {
                let has_come_after = !past.fresh || other.thread == self.0[node].thread;
                let pair = Pair {
                    array: access.array,
                    element,
                    thread: self.0[node].thread,
                    writes: access.kind.writes(),
                    earlier: other.thread,
                    wrote: past.kind.writes(),
                    by_copy: past.by_copy(),
                    in_flight: past.kind == AccessKind::CopyWrite
                        && !past.awaited
                        && has_come_after
                        && !access.kind.writes(),
                };
                races.push(pair);
                if earlier >= step {
                    // Two lanes of one statement have no order, so that the race counts in both
                    // directions.
                    races.push(Pair { thread: pair.earlier, earlier: pair.thread, ..pair });
                }
            }
        }
        races
    }
}
