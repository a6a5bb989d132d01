//! Picture of a timeline: rows of marks over the instructions executed by the warp.

use super::rounds::Rounds;
use crate::pipeline::event::{ActionAt, TileArrays, WarpAction};
use gemm_dsl::ir::Kernel;
use gemm_runtime::sim::watch::Event;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;

/// Width of all pieces together, and width of the gap between two pieces, in pixels.
const WIDTH: u64 = 920;
const GAP: u64 = 12;
/// Maximum number of rounds of a loop that is drawn in full. A longer loop is drawn by its second,
/// third and last round.
const FEW: usize = 4;

/// Part of the run of a warp.
#[derive(Clone, Debug, Serialize)]
pub struct Piece {
    pub name: String,
    /// Range of the warp's instruction count.
    pub instructions: Range<u64>,
    /// Left edge in the picture.
    pub x: u64,
    pub width: u64,
    /// Number of actions in each row, and number of multiply-adds.
    pub counts: Vec<(String, u64)>,
    #[serde(skip)]
    events: Range<usize>,
}

#[derive(Clone, Debug, Serialize)]
pub struct PipelineRow {
    pub name: String,
    pub marks: Vec<Mark>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Mark {
    /// Left edge in the picture.
    pub x: u64,
    pub width: u64,
    /// Class in the style sheet.
    pub class: &'static str,
}

impl PipelineRow {
    /// Returns SVG outlines of the marks, one path for each class. Writes are in the upper half of
    /// the row, reads in the lower half.
    pub fn outlines(&self, y: u64) -> Vec<(&'static str, String)> {
        let mut outlines: BTreeMap<&'static str, String> = BTreeMap::new();
        for Mark { x, width, class } in &self.marks {
            let (from, height) = match *class {
                "write" => (y + 2, 6),
                "read" => (y + 9, 6),
                _ => (y + 2, 13),
            };
            let outline = outlines.entry(class).or_default();
            *outline += &format!("M{x} {from}h{width}v{height}h-{width}z");
        }
        outlines.into_iter().collect()
    }
}

impl Piece {
    /// Describes the actions of the piece.
    pub fn text(&self) -> String {
        let of = |(name, count): &(String, u64)| format!("{name}: {count}");
        self.counts.iter().map(of).collect::<Vec<_>>().join(", ")
    }
}

/// Returns the drawn pieces, and the number of rounds left out.
pub(super) fn pieces(
    kernel: &Kernel,
    events: &[&Event],
    acts: &[ActionAt],
    rounds: Option<&Rounds>,
) -> (Vec<Piece>, usize) {
    let end = events.len();
    let mut parts: Vec<(String, Range<usize>)> = Vec::new();
    let mut left_out = 0;
    match rounds {
        None => parts.push(("the whole run".to_owned(), 0..end)),
        Some(rounds) => {
            let all = rounds.events();
            let name = &kernel.vars[rounds.var].name;
            let count = rounds.of_events.len();
            parts.push(("before the loop".to_owned(), 0..all.start));
            for (number, (value, of)) in rounds.of_events.iter().enumerate() {
                let is_last = number + 1 == count;
                if count > FEW && !(1..3).contains(&number) && !is_last {
                    left_out += 1;
                    continue;
                }
                // The events of a nested loop need not be contiguous.
                let end = rounds.of_events.get(number + 1).map_or(of.end, |(_, next)| next.start);
                let last =
                    if is_last { ", the last, up to the last recorded instruction" } else { "" };
                parts.push((format!("{name} = {value}{last}"), of.start..end));
            }
            parts.push(("after the loop".to_owned(), all.end..end));
        }
    }
    let at = |event: usize| match events.get(event) {
        Some(event) => event.executed[0],
        None => events.last().map_or(0, |event| event.executed[0] + 1),
    };
    parts.retain(|(_, of)| at(of.end) > at(of.start));
    let total: u64 = parts.iter().map(|(_, of)| at(of.end) - at(of.start)).sum::<u64>().max(1);
    let mut x = 0;
    let piece = |(name, of): (String, Range<usize>)| {
        let instructions = at(of.start)..at(of.end);
        let width = ((instructions.end - instructions.start) * WIDTH / total).max(2);
        let mut piece = Piece { name, instructions, x, width, counts: Vec::new(), events: of };
        x += width + GAP;
        piece.counts = counts(events, acts, &piece);
        piece
    };
    (parts.into_iter().map(piece).collect(), left_out)
}

/// Counts the actions in a piece.
fn counts(events: &[&Event], acts: &[ActionAt], piece: &Piece) -> Vec<(String, u64)> {
    let mut counts: BTreeMap<u32, (String, u64)> = BTreeMap::new();
    for act in seen(acts).filter(|act| piece.events.contains(&act.event)) {
        let row = RowKey::new(act.act, None);
        counts.entry(row.place).or_insert((row.name, 0)).1 += 1;
    }
    let fma = |at: usize| events.get(at).or(events.last()).map_or(0, |event| event.executed[1]);
    let multiplied = fma(piece.events.end) - fma(piece.events.start);
    if multiplied > 0 {
        counts.insert(MULTIPLY, ("multiply-adds".to_owned(), multiplied));
    }
    counts.into_values().collect()
}

/// Returns the drawn actions: all except announcements of expected bytes.
fn seen(acts: &[ActionAt]) -> impl Iterator<Item = &ActionAt> {
    acts.iter().filter(|act| !matches!(act.act, WarpAction::Expect(_)))
}

/// Position of the row of multiply-adds.
const MULTIPLY: u32 = 20;

/// Row of the picture that an action belongs to.
struct RowKey {
    /// Position of the row from the top.
    place: u32,
    name: String,
    class: &'static str,
}

impl RowKey {
    /// Returns the row of an action. `slot` is `Some` if each slot has its own row.
    fn new(act: WarpAction, slot: Option<u64>) -> Self {
        let (place, name, class) = match act {
            WarpAction::Load => (0, "loads from global memory", "load"),
            WarpAction::Copy => (1, "asynchronous copies", "load"),
            WarpAction::Box | WarpAction::Expect(_) => (2, "tile requests", "load"),
            WarpAction::Commit => (3, "commits", "tick"),
            WarpAction::Wait(_) => (4, "waits for copies", "wait"),
            WarpAction::Await(_) => (5, "waits at mbarriers", "wait"),
            WarpAction::Barrier => (6, "barriers", "wait"),
            WarpAction::Write => (7, "stores to shared memory", "write"),
            WarpAction::Arrive => (7, "stores to shared memory", "write"),
            WarpAction::Read => (8, "loads from shared memory", "read"),
            WarpAction::Matrix => (MULTIPLY + 1, "matrix instructions", "work"),
            WarpAction::Sums => (MULTIPLY + 2, "waits for accumulators", "wait"),
            WarpAction::Store => (MULTIPLY + 3, "stores to global memory", "store"),
        };
        match (slot, class) {
            (Some(slot), "write" | "read") => {
                Self { place: 9 + slot as u32, name: format!("slot {slot}"), class }
            }
            _ => Self { place, name: name.to_owned(), class },
        }
    }
}

/// Returns the rows from top to bottom, with the marks of all pieces.
pub(super) fn rows(ring: &TileArrays, acts: &[ActionAt], pieces: &[Piece]) -> Vec<PipelineRow> {
    let mut rows: BTreeMap<u32, PipelineRow> = BTreeMap::new();
    // The picture has space for ten slots.
    let is_told_apart = ring.slots > 1 && ring.slots <= 10;
    // Slots that occur only in omitted rounds have rows too.
    for act in acts.iter().filter(|_| is_told_apart) {
        let row = RowKey::new(act.act, act.slot);
        if act.slot.is_some() {
            rows.entry(row.place).or_insert(PipelineRow { name: row.name, marks: Vec::new() });
        }
    }
    let mut mark = |place: u32, name: String, mark: Mark| {
        let row = rows.entry(place).or_insert(PipelineRow { name, marks: Vec::new() });
        match row.marks.iter_mut().rev().find(|other| other.class == mark.class) {
            // Marks that touch are merged.
            Some(last) if mark.x <= last.x + last.width && mark.x >= last.x => {
                last.width = last.width.max(mark.x + mark.width - last.x);
            }
            _ => row.marks.push(mark),
        }
    };
    for piece in pieces {
        let length = (piece.instructions.end - piece.instructions.start).max(1);
        let x =
            |executed: u64| piece.x + (executed - piece.instructions.start) * piece.width / length;
        for act in seen(acts).filter(|act| piece.events.contains(&act.event)) {
            let row = RowKey::new(act.act, act.slot.filter(|_| is_told_apart));
            let (start, end) = (x(act.executed[0]), x(act.executed[0] + 1));
            let width = (end - start).max(1);
            mark(row.place, row.name, Mark { x: start, width, class: row.class });
        }
        // Multiply-adds between two consecutive actions get one mark.
        for (now, next) in acts.iter().zip(acts.get(1..).unwrap_or_default()) {
            if next.executed[1] > now.executed[1] && piece.events.contains(&now.event) {
                let end = next.executed[0].min(piece.instructions.end);
                let (start, end) = (x(now.executed[0]), x(end));
                let width = (end - start).max(1);
                mark(MULTIPLY, "multiply-adds".to_owned(), Mark { x: start, width, class: "work" });
            }
        }
    }
    rows.into_values().collect()
}
