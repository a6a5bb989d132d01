//! The tiles that go through the ring of slots, one after the other: who asks for them, what comes, who waits for which phase of
//! which barrier, who reads and who gives the slot back. Order and not time: what is said of a tile comes one behind the other, and
//! of two tiles what their barriers say.

mod barriers;
mod single;

use super::{Contradiction, warps};
use barriers::Multistage;
use gemm_dsl::ir::Kernel;
use gemm_runtime::watch::Trace;
use serde::Serialize;
use std::collections::BTreeSet;

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
pub enum SlotState {
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
    pub fn while_read(&self, turn: &usize) -> Vec<SlotState> {
        let turn = *turn;
        let of = |slot: u64| {
            let own = self.turns.iter().enumerate().skip(turn);
            let mut own = own.filter(|(_, of)| of.slot == slot);
            match own.next() {
                Some((number, _)) if number == turn => SlotState::Read(number),
                Some((number, of)) if of.after.is_none_or(|after| after < turn) => {
                    SlotState::Asked(number)
                }
                _ => SlotState::Empty,
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

/// What went through the ring of a kernel that has boxes copied, or through the one slot that threads fill; none of a kernel that does
/// neither.
pub(super) fn tiles(kernel: &Kernel, trace: &Trace) -> Result<Option<Tiles>, Contradiction> {
    match Multistage::new(kernel, trace)? {
        Some(mut ring) => {
            for detail in &trace.details {
                ring.follow(kernel, detail)?;
            }
            Ok(Some(ring.tiles(kernel)))
        }
        None => single::tiles(kernel, trace),
    }
}
