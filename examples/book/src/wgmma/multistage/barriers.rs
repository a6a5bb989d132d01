//! Ring of slots reconstructed from the events at its barriers.

use super::super::{Contradiction, warps};
use super::{Barriers, Tiles, Turn};
use gemm_dsl::ir::Kernel;
use gemm_runtime::sim::watch::{Action, BoxCopy, Detail, Trace};
use std::collections::{BTreeMap, BTreeSet};

/// Rank of the block in the cluster, and number of the warp in the block.
type Warp = (u32, u32);

/// State of the ring after the events so far.
pub(super) struct Multistage {
    barriers: Vec<Barrier>,
    /// Recorded events, indexed by declaration.
    seen: Vec<BarrierRecord>,
    /// Declaration of the barriers that boxes signal, one for each slot.
    full: usize,
    turns: Vec<Turn>,
    /// Turn of each slot and phase.
    numbers: BTreeMap<(u64, u32), usize>,
    /// Last turn for which each warp waited.
    reads: BTreeMap<Warp, usize>,
    /// Barrier and phase of each warp's last wait for a released slot.
    freed: BTreeMap<Warp, (usize, i64)>,
}

struct Barrier {
    /// Index of the declaration, and index within it.
    declaration: usize,
    index: u64,
    name: String,
    arrivals: u32,
    phase: u32,
}

/// Recorded events at the barriers of one declaration.
#[derive(Clone, Default)]
struct BarrierRecord {
    bytes: BTreeSet<u64>,
    phases: u64,
    arriving: BTreeSet<Warp>,
    waiting: BTreeSet<Warp>,
}

impl Multistage {
    /// Returns the initial ring of a kernel, or `None` if no box is copied.
    pub(super) fn new(kernel: &Kernel, trace: &Trace) -> Result<Option<Self>, Contradiction> {
        let mut barriers = Vec::new();
        for (declaration, declared) in kernel.mbarriers.iter().enumerate() {
            let count = kernel.eval_const(&declared.count).ok().and_then(|n| u64::try_from(n).ok());
            let no_count = || Contradiction::NoCount { declaration: declared.name.clone() };
            barriers.extend((0..count.ok_or_else(no_count)?).map(|index| Barrier {
                declaration,
                index,
                name: format!("{}[{index}]", declared.name),
                arrivals: 0,
                phase: 0,
            }));
        }
        let boxed = |detail: &Detail| match &detail.did {
            Action::BoxCopy(boxed) => Some(boxed.barrier),
            _ => None,
        };
        let Some(first) = trace.details.iter().find_map(boxed) else { return Ok(None) };
        let mut ring = Self {
            barriers,
            seen: vec![BarrierRecord::default(); kernel.mbarriers.len()],
            full: 0,
            turns: Vec::new(),
            numbers: BTreeMap::new(),
            reads: BTreeMap::new(),
            freed: BTreeMap::new(),
        };
        ring.full = ring.barrier(first)?.declaration;
        Ok(Some(ring))
    }

    /// Advances the state by one event.
    pub(super) fn follow(&mut self, kernel: &Kernel, detail: &Detail) -> Result<(), Contradiction> {
        let warp = (detail.rank, detail.warp);
        match &detail.did {
            Action::Made { barrier, arrivals } => self.make(*barrier, *arrivals),
            Action::BoxCopy(boxed) => self.bring(boxed, text(kernel, boxed, detail.rank), kernel),
            Action::Arrived { barrier, bytes } if self.is_full(*barrier)? => {
                self.expect(warp, *barrier, *bytes)
            }
            Action::Arrived { barrier, .. } => self.give(warp, *barrier),
            Action::Completed { barrier, phase } => self.complete(*barrier, *phase),
            Action::Waited { barrier, phase } if self.is_full(*barrier)? => {
                self.wait_for_tile(warp, *barrier, *phase)
            }
            Action::Waited { barrier, phase } => self.wait_for_slot(warp, *barrier, *phase),
            Action::Multiplied { .. } => {
                self.multiply(warp);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Records the initialisation of a barrier.
    fn make(&mut self, barrier: u32, arrivals: u32) -> Result<(), Contradiction> {
        self.barrier_mut(barrier)?.arrivals = arrivals;
        Ok(())
    }

    /// Records a box that signals a barrier.
    fn bring(
        &mut self,
        boxed: &BoxCopy,
        text: String,
        kernel: &Kernel,
    ) -> Result<(), Contradiction> {
        if !self.is_full(boxed.barrier)? {
            let barrier = self.barrier(boxed.barrier)?.name.clone();
            let full = kernel.mbarriers[self.full].name.clone();
            return Err(Contradiction::OtherBarrier { barrier, full });
        }
        let turn = self.asked(boxed.barrier)?;
        turn.come += boxed.bytes;
        turn.boxes.push(text);
        Ok(())
    }

    /// Records an arrival with expected bytes: the request of a tile.
    fn expect(&mut self, warp: Warp, barrier: u32, bytes: u64) -> Result<(), Contradiction> {
        let seen = self.seen_at(barrier)?;
        seen.arriving.insert(warp);
        seen.bytes.insert(bytes);
        let (after, waited_at) = self.waited_before(warp);
        let turn = self.asked(barrier)?;
        turn.asked_by.insert(warp);
        turn.expected += bytes;
        (turn.after, turn.waited_at) = (after, waited_at);
        Ok(())
    }

    /// Returns the turn for whose release the requesting warp waited, with the barrier and phase of
    /// the wait. If the warp did not wait, returns the turn that it read last.
    fn waited_before(&mut self, warp: Warp) -> (Option<usize>, Option<(String, i64)>) {
        let Some((barrier, phase)) = self.freed.remove(&warp) else {
            return (self.reads.get(&warp).copied(), None);
        };
        let Barrier { index, name, .. } = &self.barriers[barrier];
        let given = u32::try_from(phase).ok();
        let after = given.and_then(|phase| self.numbers.get(&(*index, phase)).copied());
        (after, Some((name.clone(), phase)))
    }

    /// Records an arrival at a barrier that no box signals: the release of a slot.
    fn give(&mut self, warp: Warp, barrier: u32) -> Result<(), Contradiction> {
        self.seen_at(barrier)?.arriving.insert(warp);
        let Barrier { index: slot, phase, name, .. } = self.barrier(barrier)?;
        let (slot, phase, at) = (*slot, *phase, (name.clone(), *phase));
        let nothing = || Contradiction::NothingGiven { by: warps(&[warp]), slot, phase };
        let number = *self.numbers.get(&(slot, phase)).ok_or_else(nothing)?;
        let turn = &mut self.turns[number];
        turn.given_by.insert(warp);
        turn.given += 1;
        turn.given_at = Some(at);
        Ok(())
    }

    fn complete(&mut self, barrier: u32, completed: u32) -> Result<(), Contradiction> {
        self.seen_at(barrier)?.phases += 1;
        let is_full = self.is_full(barrier)?;
        let Barrier { index, phase, name, .. } = self.barrier_mut(barrier)?;
        if *phase != completed {
            let (barrier, phase) = (name.clone(), *phase);
            return Err(Contradiction::OtherPhase { barrier, phase, completed });
        }
        let key = (*index, *phase);
        *phase += 1;
        if let Some(number) = self.numbers.get(&key).filter(|_| is_full) {
            self.turns[*number].is_complete = true;
        }
        Ok(())
    }

    /// Records the end of a wait for a tile.
    fn wait_for_tile(&mut self, warp: Warp, barrier: u32, phase: i64) -> Result<(), Contradiction> {
        self.seen_at(barrier)?.waiting.insert(warp);
        let Barrier { index, name, .. } = self.barrier(barrier)?;
        let number = u32::try_from(phase).ok();
        let number = number.and_then(|phase| self.numbers.get(&(*index, phase)).copied());
        let nothing = || {
            let (by, barrier) = (warps(&[warp]), name.clone());
            Contradiction::NothingAwaited { by, barrier, phase }
        };
        let number = number.ok_or_else(nothing)?;
        self.turns[number].waited_by.insert(warp);
        self.reads.insert(warp, number);
        Ok(())
    }

    /// Records the end of a wait for a released slot.
    fn wait_for_slot(&mut self, warp: Warp, barrier: u32, phase: i64) -> Result<(), Contradiction> {
        self.seen_at(barrier)?.waiting.insert(warp);
        self.freed.insert(warp, (barrier as usize, phase));
        Ok(())
    }

    /// Counts a matrix instruction of a warpgroup's first warp. The instruction reads the tile for
    /// which the warp waited last.
    fn multiply(&mut self, warp: Warp) {
        if let Some(number) = self.reads.get(&warp).filter(|_| warp.1.is_multiple_of(4)) {
            self.turns[*number].instructions += 1;
        }
    }

    /// Turn of the current phase of a slot's barrier. The first request creates it.
    fn asked(&mut self, barrier: u32) -> Result<&mut Turn, Contradiction> {
        let Barrier { index: slot, phase, name, .. } = self.barrier(barrier)?;
        let (slot, phase, barrier) = (*slot, *phase, name.clone());
        let next = self.turns.len();
        let number = *self.numbers.entry((slot, phase)).or_insert(next);
        if number == next {
            self.turns.push(Turn { slot, phase, barrier, ..Turn::default() });
        }
        Ok(&mut self.turns[number])
    }

    fn barrier(&self, number: u32) -> Result<&Barrier, Contradiction> {
        let none = Contradiction::NoBarrier { barrier: number, barriers: self.barriers.len() };
        self.barriers.get(number as usize).ok_or(none)
    }

    fn barrier_mut(&mut self, number: u32) -> Result<&mut Barrier, Contradiction> {
        let none = Contradiction::NoBarrier { barrier: number, barriers: self.barriers.len() };
        self.barriers.get_mut(number as usize).ok_or(none)
    }

    /// Returns true for a barrier that boxes signal.
    fn is_full(&self, barrier: u32) -> Result<bool, Contradiction> {
        Ok(self.barrier(barrier)?.declaration == self.full)
    }

    fn seen_at(&mut self, barrier: u32) -> Result<&mut BarrierRecord, Contradiction> {
        let declaration = self.barrier(barrier)?.declaration;
        Ok(&mut self.seen[declaration])
    }

    /// Returns the tiles recorded so far.
    pub(super) fn tiles(self, kernel: &Kernel) -> Tiles {
        let of = |declaration: usize| {
            self.barriers.iter().filter(move |barrier| barrier.declaration == declaration)
        };
        let declared = kernel.mbarriers.iter().zip(&self.seen).enumerate();
        let barriers = declared.filter_map(|(number, (declared, seen))| {
            let bytes = [seen.bytes.first(), seen.bytes.last()].map(|of| of.copied().unwrap_or(0));
            Some(Barriers {
                name: declared.name.clone(),
                meaning: declared.meaning.clone(),
                // Declarations without barriers are skipped.
                arrivals: of(number).next()?.arrivals,
                count: of(number).count() as u64,
                bytes,
                phases: seen.phases,
                arriving: warps(&seen.arriving),
                waiting: warps(&seen.waiting),
            })
        });
        let (slots, barriers) = (of(self.full).count() as u64, barriers.collect());
        Tiles { slots, barriers, turns: self.turns }
    }
}

/// Describes a box by its index ranges. If another block of the cluster copies it, names this
/// block.
fn text(kernel: &Kernel, boxed: &BoxCopy, rank: u32) -> String {
    let along = boxed.at.iter().zip(&boxed.tile).map(|(from, extent)| match extent {
        1 => format!("[{from}]"),
        n => format!("[{from}–{}]", from + *n as i64 - 1),
    });
    let by = if rank == 0 { String::new() } else { format!(" from block {rank} of the cluster") };
    format!("{}{}{by}", kernel.buffers[boxed.from].name, along.collect::<String>())
}
