//! The tiles that go through the ring of slots, one after the other: who asks for them, what comes, who waits for which phase of
//! which barrier, who reads and who gives the slot back. Order and not time: what is said of a tile comes one behind the other, and
//! of two tiles what their barriers say.

use super::warps;
use gemm_dsl::ir::Kernel;
use gemm_runtime::watch::{Boxed, Detail, Did, Kind, Trace, What};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The tiles that are shown: the first.
pub const SHOWN: usize = 12;

/// What went through the ring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tiles {
    /// The slots.
    pub slots: u64,
    /// The declarations of barriers.
    pub barriers: Vec<Barriers>,
    /// The tiles, in the order in which they are asked for.
    pub turns: Vec<Turn>,
}

/// Barriers of one declaration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Barriers {
    /// Their name.
    pub name: String,
    /// What they are for.
    pub meaning: String,
    /// How many there are.
    pub count: u64,
    /// The arrivals that each phase takes.
    pub arrivals: u32,
    /// The bytes that each phase takes, the least and the most.
    pub bytes: [u64; 2],
    /// The phases of all that were completed in the block.
    pub phases: u64,
    /// The warps that arrive.
    pub arriving: String,
    /// The warps that wait.
    pub waiting: String,
}

/// A tile on its way through a slot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Turn {
    /// The slot.
    pub slot: u64,
    /// The phase of the slot's barrier in which it comes.
    pub phase: u32,
    /// The barrier; none where threads store the tile themselves.
    pub barrier: String,
    /// Who asks, or stores.
    pub asked_by: BTreeSet<(u32, u32)>,
    /// What it had to wait for: the turn whose slot was given back.
    pub after: Option<usize>,
    /// The barrier at which it did, and the phase.
    pub waited_at: Option<(String, i64)>,
    /// The bytes that the barrier was told to expect.
    pub expected: u64,
    /// Those that came.
    pub come: u64,
    /// The boxes.
    pub boxes: Vec<String>,
    /// Whether the phase was completed.
    pub is_complete: bool,
    /// Who waited for it.
    pub waited_by: BTreeSet<(u32, u32)>,
    /// Matrix instructions that read it, of one warp of each warpgroup.
    pub instructions: u64,
    /// Who gave the slot back, with how many arrivals.
    pub given_by: BTreeSet<(u32, u32)>,
    /// The arrivals.
    pub given: u32,
    /// The barrier at which they did, and the phase.
    pub given_at: Option<(String, u32)>,
}

/// What is in a slot while a tile is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Slot {
    /// Nothing that is still needed.
    Empty,
    /// A tile that may be on its way, or have come.
    Asked(usize),
    /// The one that is read.
    Read(usize),
}

impl Tiles {
    /// What the slots hold at most while a turn is read: all earlier ones have been given back, and whoever asks has asked for all
    /// that the barriers let it.
    pub fn while_read(&self, turn: &usize) -> Vec<Slot> {
        let turn = *turn;
        let of = |slot: u64| {
            let own = self.turns.iter().enumerate().skip(turn);
            let mut own = own.filter(|(_, of)| of.slot == slot);
            match own.next() {
                Some((number, _)) if number == turn => Slot::Read(number),
                Some((number, of)) if of.after.is_none_or(|after| after < turn) => {
                    Slot::Asked(number)
                }
                _ => Slot::Empty,
            }
        };
        (0..self.slots).map(of).collect()
    }

    /// The turns that are shown.
    pub fn shown(&self) -> &[Turn] {
        &self.turns[..self.turns.len().min(SHOWN)]
    }
}

impl Barriers {
    /// What a phase takes, in words.
    pub fn takes(&self) -> String {
        let arrivals = match self.arrivals {
            1 => "1 arrival".to_owned(),
            n => format!("{n} arrivals"),
        };
        match self.bytes {
            [0, 0] => arrivals,
            [least, most] if least == most => format!("{arrivals} and {least} bytes"),
            [least, most] => format!("{arrivals} and {least} to {most} bytes"),
        }
    }
}

impl Turn {
    /// Who asked, and after what.
    pub fn asks(&self) -> String {
        if self.barrier.is_empty() {
            let before =
                self.after.map_or(String::new(), |_| "a barrier of the block; ".to_owned());
            return format!("{before}{} store", warps(&self.asked_by));
        }
        let waits = match (&self.waited_at, self.after) {
            (Some((barrier, -1)), _) => format!("{barrier}: the slot is empty from the start; "),
            (Some((barrier, phase)), _) => format!("waits for phase {phase} of {barrier}; "),
            (None, Some(after)) => format!("has read turn {after}; "),
            (None, None) => String::new(),
        };
        let (by, barrier, phase) = (warps(&self.asked_by), &self.barrier, self.phase);
        let expected = self.expected;
        format!("{by}: {waits}has phase {phase} of {barrier} expect {expected} bytes")
    }

    /// What came.
    pub fn comes(&self) -> String {
        if self.barrier.is_empty() {
            return format!("{} bytes stored; a fence, and a barrier of the block", self.come);
        }
        let over = if self.is_complete { "complete" } else { "never complete" };
        format!("{}: {} bytes, phase {} {over}", self.boxes.join(", "), self.come, self.phase)
    }

    /// Who waited for it and read it.
    pub fn reads(&self) -> String {
        if self.barrier.is_empty() {
            return format!(
                "{}: {} matrix instructions",
                warps(&self.waited_by),
                self.instructions
            );
        }
        let waits =
            format!("{} wait for phase {} of {}", warps(&self.waited_by), self.phase, self.barrier);
        match self.instructions {
            0 => waits,
            n => format!("{waits}; {n} matrix instructions"),
        }
    }

    /// Who gave the slot back.
    pub fn gives(&self) -> String {
        match &self.given_at {
            Some((barrier, phase)) => {
                let by = warps(&self.given_by);
                format!("{} arrivals of {by}: phase {phase} of {barrier}", self.given)
            }
            None => "a barrier of the block".to_owned(),
        }
    }
}

/// What is known of a barrier of the block.
struct Known {
    /// The number of the declaration, and which of it.
    declaration: usize,
    index: u64,
    name: String,
    arrivals: u32,
    phase: u32,
}

/// What goes through the ring of a kernel that has boxes copied.
pub(super) fn of(kernel: &Kernel, trace: &Trace) -> Option<Tiles> {
    let mut known: Vec<Known> = Vec::new();
    for (declaration, barriers) in kernel.mbarriers.iter().enumerate() {
        let count = u64::try_from(kernel.eval_const(&barriers.count).ok()?).ok()?;
        known.extend((0..count).map(|index| Known {
            declaration,
            index,
            name: format!("{}[{index}]", barriers.name),
            arrivals: 0,
            phase: 0,
        }));
    }
    let boxed = |detail: &Detail| match &detail.did {
        Did::Boxed(boxed) => Some(boxed.barrier as usize),
        _ => None,
    };
    let full = known.get(trace.details.iter().find_map(boxed)?)?.declaration;
    let slots = known.iter().filter(|of| of.declaration == full).count() as u64;
    let mut turns: Vec<Turn> = Vec::new();
    // The turn of a slot and a phase, and what each warp has waited for last: a turn, or that a slot was given back.
    let mut numbers: BTreeMap<(u64, u32), usize> = BTreeMap::new();
    let mut reads: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    let mut freed: BTreeMap<(u32, u32), (usize, i64)> = BTreeMap::new();
    let mut seen: Vec<Seen> = kernel.mbarriers.iter().map(|_| Seen::default()).collect();
    for detail in &trace.details {
        let warp = (detail.rank, detail.warp);
        let (barrier, is_box) = match &detail.did {
            Did::Made { barrier, arrivals } => {
                known.get_mut(*barrier as usize)?.arrivals = *arrivals;
                continue;
            }
            Did::Multiplied { .. } if detail.warp % 4 == 0 => {
                if let Some(turn) = reads.get(&warp).and_then(|turn| turns.get_mut(*turn)) {
                    turn.instructions += 1;
                }
                continue;
            }
            Did::Boxed(boxed) => (boxed.barrier, true),
            Did::Arrived { barrier, .. }
            | Did::Completed { barrier, .. }
            | Did::Waited { barrier, .. } => (*barrier, false),
            _ => continue,
        };
        let at = known.get_mut(barrier as usize)?;
        let seen = seen.get_mut(at.declaration)?;
        let is_full = at.declaration == full;
        let asks = is_box || matches!(&detail.did, Did::Arrived { .. });
        if is_full && asks && !numbers.contains_key(&(at.index, at.phase)) {
            numbers.insert((at.index, at.phase), turns.len());
            let (slot, phase, barrier) = (at.index, at.phase, at.name.clone());
            turns.push(Turn { slot, phase, barrier, ..Turn::default() });
        }
        let turn = numbers.get(&(at.index, at.phase)).copied();
        let of_turn = turn.and_then(|turn| turns.get_mut(turn));
        match &detail.did {
            Did::Boxed(boxed) => {
                let turn = of_turn?;
                turn.come += boxed.bytes;
                turn.boxes.push(text(kernel, boxed, detail.rank));
            }
            Did::Arrived { bytes, .. } if is_full => {
                seen.arriving.insert(warp);
                let turn = of_turn?;
                turn.asked_by.insert(warp);
                turn.expected += bytes;
                seen.bytes.insert(*bytes);
                match freed.remove(&warp) {
                    Some((barrier, phase)) => {
                        let of = known.get(barrier)?;
                        let given = u32::try_from(phase).ok();
                        let before = given.and_then(|phase| numbers.get(&(of.index, phase)));
                        turn.after = before.copied();
                        turn.waited_at = Some((of.name.clone(), phase));
                    }
                    // Who asks has read what was there itself.
                    None => turn.after = reads.get(&warp).copied(),
                }
            }
            Did::Arrived { .. } => {
                seen.arriving.insert(warp);
                let turn = of_turn?;
                turn.given_by.insert(warp);
                turn.given += 1;
                turn.given_at = Some((at.name.clone(), at.phase));
            }
            Did::Completed { .. } => {
                seen.phases += 1;
                at.phase += 1;
                if let Some(turn) = of_turn.filter(|_| is_full) {
                    turn.is_complete = true;
                }
            }
            Did::Waited { phase, .. } => {
                seen.waiting.insert(warp);
                if is_full {
                    let phase = u32::try_from(*phase).ok()?;
                    let number = *numbers.get(&(at.index, phase))?;
                    turns.get_mut(number)?.waited_by.insert(warp);
                    reads.insert(warp, number);
                } else {
                    freed.insert(warp, (barrier as usize, *phase));
                }
            }
            _ => {}
        }
    }
    let barriers = seen.into_iter().enumerate().filter_map(|(number, seen)| {
        let declared = kernel.mbarriers.get(number)?;
        let mut own = known.iter().filter(|of| of.declaration == number);
        let bytes = [seen.bytes.first(), seen.bytes.last()].map(|of| of.copied().unwrap_or(0));
        Some(Barriers {
            name: declared.name.clone(),
            meaning: declared.meaning.clone(),
            arrivals: own.next()?.arrivals,
            count: 1 + own.count() as u64,
            bytes,
            phases: seen.phases,
            arriving: warps(&seen.arriving),
            waiting: warps(&seen.waiting),
        })
    });
    Some(Tiles { slots, barriers: barriers.collect(), turns })
}

/// The tiles of a kernel whose threads store them, into the one slot that there is: what is stored up to the next matrix
/// instructions is a tile.
pub(super) fn stored(kernel: &Kernel, trace: &Trace) -> Option<Tiles> {
    let multiplied = |detail: &&Detail| matches!(detail.did, Did::Multiplied { .. });
    let mut read: BTreeSet<usize> = BTreeSet::new();
    for detail in trace.details.iter().filter(multiplied) {
        if let Did::Multiplied { a, b, .. } = &detail.did {
            read.extend([a.buffer, b.buffer]);
        }
    }
    let mut details = trace.details.iter().filter(multiplied).peekable();
    let mut turns: Vec<Turn> = Vec::new();
    for (number, event) in trace.events.iter().enumerate() {
        while let Some(detail) = details.next_if(|detail| detail.event <= number) {
            let turn = turns.last_mut()?;
            turn.waited_by.insert((detail.rank, detail.warp));
            turn.instructions += u64::from(detail.warp.is_multiple_of(4));
        }
        let What::Access { pattern, .. } = &event.what else { continue };
        let pattern = &trace.patterns[*pattern as usize];
        if pattern.kind != Kind::Store || !read.contains(&pattern.buffer) {
            continue;
        }
        if turns.last().is_none_or(|turn| turn.instructions > 0) {
            let (after, phase) = (turns.len().checked_sub(1), turns.len() as u32);
            turns.push(Turn { after, phase, is_complete: true, ..Turn::default() });
        }
        let bytes = pattern.lanes.iter().flatten().count() as u64 * u64::from(pattern.bytes);
        let turn = turns.last_mut()?;
        turn.asked_by.insert((0, event.warp));
        turn.come += bytes;
        turn.expected += bytes;
    }
    let is_one_slot = kernel.mbarriers.is_empty() && !turns.is_empty();
    is_one_slot.then_some(Tiles { slots: 1, barriers: Vec::new(), turns })
}

/// What was seen at the barriers of a declaration.
#[derive(Default)]
struct Seen {
    bytes: BTreeSet<u64>,
    phases: u64,
    arriving: BTreeSet<(u32, u32)>,
    waiting: BTreeSet<(u32, u32)>,
}

/// A box, as the text would have it, and which block of the cluster brings it if not the own one.
fn text(kernel: &Kernel, boxed: &Boxed, rank: u32) -> String {
    let along = boxed.at.iter().zip(&boxed.tile).map(|(from, extent)| match extent {
        1 => format!("[{from}]"),
        n => format!("[{from}–{}]", from + *n as i64 - 1),
    });
    let by = if rank == 0 { String::new() } else { format!(" from block {rank} of the cluster") };
    format!("{}{}{by}", kernel.buffers[boxed.from].name, along.collect::<String>())
}
