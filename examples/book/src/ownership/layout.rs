//! Layout of a tile in shared memory, with padding, transposition and swizzle, from a recorded run.

use super::{MOST, SHOWN};
use crate::ownership::formula::Formula;
use crate::ownership::moves::{MatrixMoves, Position};
use crate::ownership::rectangles::{Area, areas};
use crate::wgmma::extents;
use gemm_dsl::ir::Kernel;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Tile in shared memory, which occupies one slot of its array.
#[derive(Clone, Debug, Serialize)]
pub struct SharedTile {
    pub name: String,
    /// Number of the slot, and the number of slots.
    pub slot: [u64; 2],
    /// Rows of the slot, and words of a row including padding.
    pub extents: [u64; 2],
    /// Words of the slot that hold no element.
    pub unused: u64,
    /// Offset in words of each element within the slot.
    pub placement: Formula,
    /// Areas that each warp writes.
    pub warps: Vec<Area>,
    /// Areas that each lane of the first warp writes.
    pub threads: Vec<Area>,
    /// Areas that each lane of the first warp reads.
    pub read: Vec<Area>,
    /// Row and column in the slot, by element.
    #[serde(skip)]
    pub(super) places: BTreeMap<Position, Position>,
}

impl SharedTile {
    /// Describes the array for the caption of the picture.
    pub fn words(&self) -> String {
        let [rows, columns] = self.extents;
        let slot = match self.slot {
            [_, 1] => String::new(),
            [slot, slots] => format!(", slot {slot} of {slots}, counted from 0"),
        };
        let unused = match self.unused {
            0 => String::new(),
            1 => ", of which 1 word is unused".to_owned(),
            words => format!(", of which {words} words are unused"),
        };
        format!("{} has {rows} rows of {columns} words{slot}{unused}", self.name)
    }

    /// Returns the layout if each element has exactly one position and all positions are in one
    /// slot. With `is_shuffled` the lanes that read an element are unknown.
    pub(super) fn from_moves(
        kernel: &Kernel,
        moved: &MatrixMoves,
        elements: &BTreeSet<Position>,
        is_shuffled: bool,
    ) -> Option<Self> {
        let placement = |place: &Position| {
            let mut all = moved.placement.get(place)?.iter();
            all.next().filter(|_| all.next().is_none()).map(|at| (*place, *at))
        };
        let placement: BTreeMap<Position, (usize, u64)> =
            elements.iter().map(placement).collect::<Option<_>>()?;
        let (buffer, _) = *placement.values().next()?;
        let dims = extents(kernel, buffer)?;
        let [.., rows, pitch] = dims[..] else { return None };
        let words = (rows * pitch).max(1);
        let slot = placement.values().next()?.1 / words;
        let is_one = placement.values().all(|(of, at)| *of == buffer && at / words == slot);
        if !is_one || rows.max(pitch) > MOST {
            return None;
        }
        let place = |at: u64| (at % words / pitch.max(1), at % words % pitch.max(1));
        let places: BTreeMap<Position, Position> =
            placement.iter().map(|(element, (_, at))| (*element, place(*at))).collect();
        let written_by = |number: &dyn Fn(u32) -> u32| {
            let of = |(element, place): (&Position, &Position)| {
                Some((*place, number(*moved.owned.get(element)?.first()?)))
            };
            places.iter().filter_map(of).collect::<BTreeMap<Position, u32>>()
        };
        let mut threads = written_by(&|thread| thread);
        threads.retain(|_, thread| *thread < SHOWN);
        let read_by = |thread: u32| {
            let is_read = |element: &Position| {
                moved.readers.get(element).is_some_and(|all| all.contains_key(&thread))
            };
            let own = places.iter().filter(|(element, _)| is_read(element));
            areas(&own.map(|(_, place)| (*place, thread)).collect())
        };
        let (top, left) = (elements.first()?.0, elements.iter().map(|(_, column)| *column).min()?);
        let right = elements.iter().map(|(_, column)| *column).max()?;
        let in_order = (top..=elements.last()?.0)
            .flat_map(|row| (left..=right).map(move |column| (row, column)))
            .map(|element| Some((placement.get(&element)?.1 % words) as i64));
        Some(Self {
            name: kernel.buffers[buffer].name.clone(),
            slot: [slot, dims.iter().product::<u64>() / words],
            extents: [rows, pitch],
            unused: words - places.values().collect::<BTreeSet<_>>().len() as u64,
            placement: Formula::fit(in_order.collect(), (right - left + 1) as usize),
            warps: areas(&written_by(&|thread| thread / 32)),
            threads: areas(&threads),
            read: (0..SHOWN).filter(|_| !is_shuffled).flat_map(read_by).collect(),
            places,
        })
    }
}
