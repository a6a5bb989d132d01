//! Reference semantics of a program of moves in plain Rust, with its memory costs by definition.

use super::{ARRAYS, Active, Index, Random, Step, THREADS, Through};
use crate::Counters;
use gemm_dsl::ir::{Elem, Space};
use std::collections::BTreeSet;

/// Costs of one memory: requests, bytes read and written, and either global sectors or shared
/// wavefronts with their conflicts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Charge {
    requests: u64,
    read: u64,
    written: u64,
    transfers: u64,
    conflicts: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cost {
    global: Charge,
    shared: Charge,
}

/// Costs that the simulator counted.
pub(super) fn cost(c: &Counters) -> Cost {
    Cost {
        global: Charge {
            requests: c.global_requests,
            read: c.global_load_bytes,
            written: c.global_store_bytes,
            transfers: c.global_sectors,
            conflicts: 0,
        },
        shared: Charge {
            requests: c.shared_requests,
            read: c.shared_load_bytes,
            written: c.shared_store_bytes,
            transfers: c.shared_wavefronts,
            conflicts: c.shared_bank_conflicts,
        },
    }
}

/// Arrays of a program during its execution.
pub(super) struct Plain {
    pub(super) elem: Elem,
    /// Elements of global arrays with one guard vector at each end, of shared arrays, and of
    /// register arrays thread by thread.
    arrays: Vec<Vec<u64>>,
    pub(super) cost: Cost,
}

impl Plain {
    pub(super) fn new(elem: Elem, random: &mut Random) -> Self {
        let lanes = usize::from(elem.vector_lanes());
        let arrays = ARRAYS.map(|(space, len)| {
            let len = match space {
                Space::Global => len + 2,
                Space::Shared => len,
                Space::Register => len * THREADS,
            };
            (0..len * lanes).map(|_| random.next() >> (64 - 8 * elem.size())).collect()
        });
        Self { elem, arrays: arrays.into(), cost: Cost::default() }
    }

    fn lanes(&self) -> usize {
        self.elem.vector_lanes().into()
    }

    /// Allocations of the global arrays, guard vectors included.
    pub(super) fn allocations(&self) -> impl Iterator<Item = &Vec<u64>> {
        let arrays = self.arrays.iter().zip(ARRAYS);
        arrays.filter(|(_, (space, _))| *space == Space::Global).map(|(array, _)| array)
    }

    /// Position of a thread's element in its array.
    fn at(&self, array: usize, index: usize, thread: usize) -> usize {
        match ARRAYS[array] {
            (Space::Global, _) => index + self.lanes(),
            (Space::Shared, _) => index,
            (Space::Register, len) => thread * len * self.lanes() + index,
        }
    }

    pub(super) fn step(&mut self, number: usize, step: &Step) {
        let Step { from, to, ref read, ref written, vector, through, active, .. } = *step;
        let unit = if vector { self.lanes() } else { 1 };
        let zeros = matches!(through, Through::Copy { zeros: true });
        // All threads execute a copy; some have nothing to copy.
        let present = if matches!(through, Through::Copy { .. }) { Active::ALL } else { active };
        let writing = if zeros { Active::ALL } else { active };
        // Indices that differ between lanes are loaded from a table in global memory.
        for (which, index) in [read, written].into_iter().enumerate() {
            if matches!(index, Index::Lanes(_)) {
                let place = |t| ((2 * number + which) * THREADS + t) * 4;
                self.charge(Space::Global, false, 4, present, place);
            }
        }
        self.access(from, false, read, vector, active);
        self.access(to, true, written, vector, writing);
        for thread in (0..THREADS).filter(|&t| writing.has(t)) {
            let at = self.at(from, read.of(thread), thread);
            let mut value = match active.has(thread) {
                true => self.arrays[from][at..at + unit].to_vec(),
                false => vec![0; unit],
            };
            if let Through::Packed(by) = through {
                value.rotate_left(by);
            }
            let at = self.at(to, written.of(thread), thread);
            self.arrays[to][at..at + unit].copy_from_slice(&value);
        }
    }

    fn access(&mut self, array: usize, writes: bool, index: &Index, vector: bool, active: Active) {
        let size = self.elem.size() as usize;
        let lanes = self.lanes();
        let before =
            |(space, len): &(Space, usize)| if *space == Space::Shared { 16 * len } else { 0 };
        let base: usize = match ARRAYS[array].0 {
            // A view starts after the first vector of its allocation.
            Space::Global => size * lanes,
            Space::Shared => ARRAYS[..array].iter().map(before).sum(),
            Space::Register => return,
        };
        let bytes = if vector { 16 } else { size };
        self.charge(ARRAYS[array].0, writes, bytes, active, |t| base + size * index.of(t));
    }

    /// Charges the accesses of all warps. `place` is the first byte that a thread accesses.
    fn charge(
        &mut self,
        space: Space,
        writes: bool,
        bytes: usize,
        active: Active,
        place: impl Fn(usize) -> usize,
    ) {
        let charge =
            if space == Space::Global { &mut self.cost.global } else { &mut self.cost.shared };
        for warp in (0..THREADS).step_by(32) {
            let lanes: Vec<usize> =
                (warp..THREADS.min(warp + 32)).filter(|&t| active.has(t)).collect();
            if lanes.is_empty() {
                continue;
            }
            charge.requests += 1;
            *(if writes { &mut charge.written } else { &mut charge.read }) +=
                (lanes.len() * bytes) as u64;
            if space == Space::Global {
                let sectors = lanes.iter().map(|&t| place(t) / 32);
                charge.transfers += sectors.collect::<BTreeSet<_>>().len() as u64;
                continue;
            }
            // Lanes read in pairs if every lane reads the same place as its partner, unless the
            // partner is inactive.
            let pairs = |apart: usize| {
                let partner = |t: &usize| lanes.contains(&(t ^ apart));
                lanes.iter().filter(|t| partner(t)).all(|&t| place(t) == place(t ^ apart))
            };
            let of_phase = match bytes {
                16 if writes || !(pairs(1) || pairs(2)) => 8,
                16 | 8 => 16,
                _ => 32,
            };
            for phase in lanes.chunk_by(|a, b| a / of_phase == b / of_phase) {
                let words =
                    phase.iter().flat_map(|&t| place(t) / 4..(place(t) + bytes).div_ceil(4));
                let words: BTreeSet<usize> = words.collect();
                let on = |bank| words.iter().filter(|&word| word % 32 == bank).count() as u64;
                let wavefronts = (0..32).map(on).max().unwrap_or_default();
                charge.transfers += wavefronts;
                charge.conflicts += wavefronts - 1;
            }
        }
    }
}
