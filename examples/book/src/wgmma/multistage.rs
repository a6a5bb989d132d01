//! Tiles in the slots of a ring: requests, arriving bytes, waits for phases of barriers, reads, and
//! releases. The picture shows order, not time. Events of one tile are sequential, and only
//! barriers order events of two tiles.

mod barriers;
mod single;

use super::{Contradiction, warps};
use barriers::Multistage;
use gemm_dsl::ir::Kernel;
use gemm_runtime::sim::watch::Trace;
use serde::Serialize;
use std::collections::BTreeSet;

/// Maximum number of shown tiles.
pub const SHOWN: usize = 12;

/// Tiles that were in the ring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tiles {
    pub slots: u64,
    pub barriers: Vec<Barriers>,
    /// Tiles in the order of their requests.
    pub turns: Vec<Turn>,
}

/// Barriers of one declaration, with the events recorded at them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Barriers {
    pub name: String,
    /// Purpose of the barriers, from the declaration.
    pub meaning: String,
    pub count: u64,
    /// Arrivals that complete a phase.
    pub arrivals: u32,
    /// Minimum and maximum number of bytes expected by a phase.
    pub bytes: [u64; 2],
    /// Number of phases completed in the block, over all barriers of the declaration.
    pub phases: u64,
    pub arriving: String,
    pub waiting: String,
}

/// Use of a slot by one tile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Turn {
    pub slot: u64,
    /// Phase of the slot's barrier for this tile.
    pub phase: u32,
    /// Barrier of the slot. Empty if threads store the tile.
    pub barrier: String,
    /// Warps that request or store the tile.
    pub asked_by: BTreeSet<(u32, u32)>,
    /// Earlier turn of the slot, whose release the requesting warp waited for.
    pub after: Option<usize>,
    /// Barrier and phase of the wait for the release.
    pub waited_at: Option<(String, i64)>,
    /// Bytes that the barrier expects.
    pub expected: u64,
    /// Bytes that arrived in the slot.
    pub come: u64,
    /// TMA boxes of the tile.
    pub boxes: Vec<String>,
    /// True if the phase completed.
    pub is_complete: bool,
    /// Warps that waited for the tile.
    pub waited_by: BTreeSet<(u32, u32)>,
    /// Number of matrix instructions that read the tile, counted for one warp of each warpgroup.
    pub instructions: u64,
    /// Warps that released the slot.
    pub given_by: BTreeSet<(u32, u32)>,
    /// Number of arrivals that released the slot.
    pub given: u32,
    /// Barrier and phase of the release.
    pub given_at: Option<(String, u32)>,
}

/// State of a slot while a tile is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum SlotState {
    /// The slot has no tile that is still needed.
    Empty,
    /// Requested tile, in flight or complete.
    Asked(usize),
    /// Tile that is being read.
    Read(usize),
}

impl Tiles {
    /// Returns the state of each slot while a turn is read. All earlier turns are released, and the
    /// producers have requested as many tiles as the barriers allow.
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

    /// Turns in the picture, at most [`SHOWN`].
    pub fn shown(&self) -> &[Turn] {
        &self.turns[..self.turns.len().min(SHOWN)]
    }
}

impl Barriers {
    /// Describes the arrivals and bytes of a phase.
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
    /// Describes the request and the wait before it.
    pub fn asks(&self) -> String {
        if self.barrier.is_empty() {
            let before = self.after.map_or(String::new(), |_| "after a block barrier, ".to_owned());
            return format!("{before}{} store", warps(&self.asked_by));
        }
        let waits = match (&self.waited_at, self.after) {
            (Some((barrier, -1)), _) => format!("{barrier}: the slot is empty from the start; "),
            (Some((barrier, phase)), _) => format!("waits for phase {phase} of {barrier}; "),
            (None, Some(after)) => format!("has read tile {after}; "),
            (None, None) => String::new(),
        };
        let (by, barrier, phase) = (warps(&self.asked_by), &self.barrier, self.phase);
        let expected = self.expected;
        format!("{by}: {waits}announces {expected} bytes for phase {phase} of {barrier}")
    }

    /// Describes the arriving boxes and bytes.
    pub fn comes(&self) -> String {
        if self.barrier.is_empty() {
            return format!("{} bytes stored, then a fence and a block barrier", self.come);
        }
        let over = if self.is_complete { "complete" } else { "never complete" };
        format!("{}: {} bytes, phase {} {over}", self.boxes.join(", "), self.come, self.phase)
    }

    /// Describes the waits and the reads.
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

    /// Describes the release of the slot.
    pub fn gives(&self) -> String {
        match &self.given_at {
            Some((barrier, phase)) => {
                let by = warps(&self.given_by);
                format!("{} arrivals of {by}: phase {phase} of {barrier}", self.given)
            }
            None => "a block barrier".to_owned(),
        }
    }
}

/// Returns the tiles of the ring that TMA fills, or of the single slot that threads fill. Returns
/// `None` for a kernel that has neither.
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
