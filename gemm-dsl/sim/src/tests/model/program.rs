//! Tiny programs: statements of a few threads of a few warps on a few words.

use crate::mask::{WARP, lanes_of};
use gemm_dsl::ir::{MemoryOrder, Scope};
use std::collections::BTreeMap;
use std::fmt;

/// Arrays of a program, by number: two in shared memory and two in global memory.
pub(super) const ARRAYS: [&str; 4] = ["s", "t", "g", "h"];
/// Elements of each array: one vector.
pub(super) const LEN: u32 = 4;

/// True if an array belongs to the launch, false if each block has its own.
pub(super) fn is_global(array: usize) -> bool {
    array >= 2
}

/// Elements that the lanes of a statement access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) array: usize,
    pub(super) first: u32,
    /// Distance between the elements of neighbouring lanes.
    pub(super) stride: u32,
    /// True if each lane accesses the whole array as a vector.
    pub(super) vector: bool,
}

impl Place {
    /// First element that a lane accesses.
    pub(super) fn element(&self, lane: u32) -> u32 {
        if self.vector { 0 } else { (self.first + self.stride * lane) % LEN }
    }

    pub(super) fn width(&self) -> u32 {
        if self.vector { LEN } else { 1 }
    }
}

/// Operation of some lanes of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Read(Place),
    Write(Place),
    /// Atomic addition of 1.
    Atomic(Place, MemoryOrder, Scope),
    /// Compare-and-swap of 0 to 1.
    Swap(Place, MemoryOrder, Scope),
    Copy {
        target: Place,
        source: Place,
    },
    Commit,
    Wait(u32),
    Fence(MemoryOrder, Scope),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// Some lanes of a warp act. If `guarded`, only lanes whose last atomic found a word that
    /// another thread had written.
    Act { warp: u32, lanes: u32, guarded: bool, action: Action },
    /// Block barrier.
    Block,
    /// Warp barrier.
    Warp { warp: u32 },
    /// A warp arrives at a named barrier, and waits there or goes on.
    Named { warp: u32, id: u32, wait: bool },
}

impl Item {
    /// True if the statement involves this warp.
    pub(super) fn concerns(&self, of: u32) -> bool {
        match *self {
            Item::Block => true,
            Item::Act { warp, .. } | Item::Warp { warp } | Item::Named { warp, .. } => warp == of,
        }
    }
}

/// Tiny program. Each warp executes its statements in the order they have in the block's list.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// Acting lanes of each warp, per block. All blocks have the same number of warps.
    pub(super) lanes: Vec<Vec<u32>>,
    pub(super) blocks: Vec<Vec<Item>>,
    /// Number of warps that the named barriers 1 and 2 expect.
    pub(super) named: [u32; 2],
}

impl Program {
    pub(super) fn warps(&self) -> u32 {
        self.lanes[0].len() as u32
    }

    pub(super) fn threads(&self) -> u32 {
        self.warps() * WARP as u32
    }

    fn actions(&self) -> impl Iterator<Item = Action> {
        let items = self.blocks.iter().flatten();
        items.filter_map(|item| match item {
            Item::Act { action, .. } => Some(*action),
            _ => None,
        })
    }

    /// True if an atomic uses an array that `of` accepts.
    fn has_atomics_on(&self, of: impl Fn(usize) -> bool) -> bool {
        let on = |a| match a {
            Action::Atomic(place, ..) | Action::Swap(place, ..) => of(place.array),
            _ => false,
        };
        self.actions().any(on)
    }

    pub(super) fn has_atomics(&self) -> bool {
        self.has_atomics_on(|_| true)
    }

    /// True if the program has inter-block synchronisation.
    pub(super) fn communicates(&self) -> bool {
        self.has_atomics_on(is_global)
    }

    /// Number of atomics by block, warp and lane, for threads that execute any.
    fn asking(&self) -> BTreeMap<(usize, u32, usize), usize> {
        let mut asking = BTreeMap::new();
        for (block, items) in self.blocks.iter().enumerate() {
            for item in items {
                if let Item::Act { warp, lanes, action, .. } = *item
                    && matches!(action, Action::Atomic(..) | Action::Swap(..))
                {
                    lanes_of(lanes).for_each(|l| *asking.entry((block, warp, l)).or_insert(0) += 1);
                }
            }
        }
        asking
    }

    /// True if the simulator reaches every possible order of the atomics. Other statements have the
    /// same effect and the same races whenever they run.
    ///
    /// This holds if there are no named barriers, which connect atomics of several warps, and one
    /// of these is true:
    ///
    /// * all atomics belong to one thread; or
    /// * two warps execute one atomic each: reversed turns or block orders swap them; or
    /// * one warp executes two atomics and another warp of its block one. The single atomic comes
    ///   first or last, or between the two in the interleaved turns.
    pub(super) fn is_in_reach(&self) -> bool {
        let asking = self.asking();
        let most = if self.communicates() { 2 } else { 3 };
        if self.blocks.iter().flatten().any(|item| matches!(item, Item::Named { .. })) {
            return !self.has_atomics();
        }
        match asking.keys().collect::<Vec<_>>()[..] {
            [] | [_] => true,
            [a, b] => (a.0, a.1) != (b.0, b.1) && asking.values().sum::<usize>() <= most,
            _ => false,
        }
    }

    /// True if each warp uses one of the named barriers more than once. The warps that meet may
    /// then depend on the interleaving.
    pub(super) fn meets_anew(&self) -> bool {
        self.blocks.iter().any(|items| {
            (1..=2).any(|of| {
                let named = |item: &&Item| matches!(item, Item::Named { id, .. } if *id == of);
                items.iter().filter(named).count() as u32 > self.named[of as usize - 1]
            })
        })
    }

    /// All programs with one statement less, starting with the removal of the last ones.
    pub(super) fn smaller(&self) -> Vec<Program> {
        let sizes = self.blocks.iter().map(Vec::len).enumerate();
        let all = sizes.flat_map(|(block, len)| (0..len).rev().map(move |item| (block, item)));
        let without = all.map(|(block, item)| {
            let mut smaller = self.clone();
            smaller.blocks[block].remove(item);
            smaller
        });
        without.collect()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = ARRAYS[self.array];
        match (self.vector, self.stride) {
            (true, _) => write!(f, "{name}[0..{LEN}]"),
            (_, 0) => write!(f, "{name}[{}]", self.first),
            (_, stride) => write!(f, "{name}[({} + {stride} * lane) % {LEN}]", self.first),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Read(place) => write!(f, "read {place}"),
            Action::Write(place) => write!(f, "write {place}"),
            Action::Atomic(place, order, scope) => write!(f, "atomic {place} {order:?} {scope:?}"),
            Action::Swap(place, order, scope) => write!(f, "swap {place} {order:?} {scope:?}"),
            Action::Copy { target, source } => write!(f, "copy {target} from {source}"),
            Action::Commit => f.write_str("commit"),
            Action::Wait(pending) => write!(f, "wait for all but {pending}"),
            Action::Fence(order, scope) => write!(f, "fence {order:?} {scope:?}"),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} warps; named barriers of {:?} warps", self.warps(), self.named)?;
        for (block, (items, lanes)) in self.blocks.iter().zip(&self.lanes).enumerate() {
            let lanes: Vec<Vec<_>> = lanes.iter().map(|&l| lanes_of(l).collect()).collect();
            writeln!(f, "block {block}: lanes {lanes:?}")?;
            for item in items {
                match item {
                    Item::Act { warp, lanes, guarded, action } => {
                        let lanes: Vec<_> = lanes_of(*lanes).collect();
                        let guard = if *guarded { "if found: " } else { "" };
                        writeln!(f, "    warp {warp} lanes {lanes:?}: {guard}{action}")?;
                    }
                    Item::Block => writeln!(f, "    barrier of the block")?,
                    Item::Warp { warp } => writeln!(f, "    warp {warp}: barrier of the warp")?,
                    Item::Named { warp, id, wait } => {
                        let what = if *wait { "waits" } else { "arrives" };
                        writeln!(f, "    warp {warp}: {what} at barrier {id}")?;
                    }
                }
            }
        }
        Ok(())
    }
}
