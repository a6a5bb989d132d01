//! Ownership of elements: the threads that copy, read and store the elements of a tile of A, B and
//! C.
//!
//! Elements are identified by number. The kernel runs again on arrays in which the value of each
//! element is its number. It moves the values unchanged, so that a word of shared memory identifies
//! its element.

mod boxes;
mod drawing;
mod formula;
mod layout;
pub(crate) mod moves;
mod rectangles;
pub(crate) mod reduction;
mod reuse;
mod threads;

pub use formula::Formula;
pub use layout::SharedTile;
pub use rectangles::{Area, Rect};
pub use reduction::ReducedElements;
pub use reuse::ReuseGroup;
pub use threads::Threads;

use super::pipeline::rounds;
use crate::observation::Observation;
pub use boxes::TileRole;
use gemm_bench::cli::Failure;
use gemm_dsl::ir::{Kernel, Stmt};
use gemm_runtime::sim::watch::{Event, Trace};
pub(super) use moves::GlobalMatrix;
use moves::MatrixMoves;
use rectangles::areas;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Names of the arrays of the three matrices.
const NAMES: [&str; 3] = ["A", "B", "C"];
/// Number of threads whose elements are shown: the lanes of the first warp.
pub(super) const SHOWN: u32 = 32;
/// Maximum number of groups listed for a tile.
const LISTED: usize = 8;
/// Maximum extent of a drawn tile, in elements.
const MOST: u64 = 1024;

/// Tiles of the recorded block.
#[derive(Clone, Debug, Serialize)]
pub struct Ownership {
    /// Tiles of A, B and C that threads move element by element, or that TMA boxes copy to shared
    /// memory.
    pub tiles: Vec<OwnedTile>,
    /// True if threads copy elements of A or B to shared memory. Otherwise elements of A and B have
    /// no owner.
    pub is_copied: bool,
}

impl Ownership {
    /// Names of the tiles as a list.
    pub fn names(&self) -> String {
        self.tiles.iter().map(|tile| &*tile.name).collect::<Vec<_>>().join(", ")
    }

    /// True if the layout in shared memory is known for a tile.
    pub fn has_held(&self) -> bool {
        self.tiles.iter().any(|tile| tile.held.is_some())
    }

    /// True if the readers of a tile's elements are known.
    pub fn has_groups(&self) -> bool {
        self.tiles.iter().any(|tile| !tile.groups.is_empty())
    }

    /// Describes the arrays in shared memory.
    pub fn held_words(&self) -> String {
        let held = self.tiles.iter().filter_map(|tile| tile.held.as_ref().map(SharedTile::words));
        held.collect::<Vec<_>>().join("; ")
    }
}

/// Tile of a matrix with the owners of its elements.
#[derive(Clone, Debug, Serialize)]
pub struct OwnedTile {
    pub name: String,
    /// First row and first column.
    pub origin: [u64; 2],
    /// Number of rows and columns.
    pub extents: [u64; 2],
    /// Action of the owners of an element: copied, read or stored.
    pub moved: &'static str,
    /// Minimum and maximum number of owners of an element.
    pub owners: [u64; 2],
    /// Minimum and maximum number of reads of an element. If elements are copied to shared memory,
    /// these are reads from there.
    pub reads: [u64; 2],
    /// Areas owned by each warp.
    pub warps: Vec<Area>,
    /// Areas owned by each lane of the first warp.
    pub threads: Vec<Area>,
    /// Areas read by each lane of the first warp.
    pub read: Vec<Area>,
    /// Layout in shared memory, if threads copy the tile there.
    pub held: Option<SharedTile>,
    /// Groups of elements with the same readers and number of reads.
    pub groups: Vec<ReuseGroup>,
    /// First owner of each element, as its thread number. `None` if no thread copies or stores
    /// elements.
    pub owner: Option<Formula>,
    /// Index of each element's group in `groups`.
    pub group: Option<Formula>,
    /// Producers and consumers of the tile, if boxes copy it.
    pub role: Option<TileRole>,
}

impl OwnedTile {
    /// Describes the action and the number of owners of an element.
    pub fn owned(&self) -> String {
        if let Some(role) = &self.role {
            return role.brought();
        }
        match self.owners {
            [0, 0] => self.moved.to_owned(),
            [1, 1] => format!("{} by one thread", self.moved),
            [least, most] if least == most => format!("{} by {least} threads", self.moved),
            [least, most] => format!("{} by {least} to {most} threads", self.moved),
        }
    }

    /// Describes the number of reads of an element.
    pub fn read_often(&self) -> String {
        if let Some(role) = &self.role {
            return role.readers();
        }
        match self.reads {
            [0, 0] => String::new(),
            [1, 1] => "once".to_owned(),
            [least, most] if least == most => format!("{least} times"),
            [least, most] => format!("{least} to {most} times"),
        }
    }

    /// First groups, which the table lists.
    pub fn listed(&self) -> &[ReuseGroup] {
        &self.groups[..self.groups.len().min(LISTED)]
    }

    /// Sentence about the groups that the table does not list.
    pub fn unlisted(&self) -> String {
        let Some(others) = self.groups.get(LISTED..).filter(|others| !others.is_empty()) else {
            return String::new();
        };
        let like = |of: &ReuseGroup| (of.count, of.reads, of.readers.as_ref().map(Threads::count));
        let are_alike = self.groups.iter().all(|of| like(of) == like(&self.groups[0]));
        let (count, name) = (others.len(), &self.name);
        let alike = match are_alike {
            true => ", each with the same number of elements, threads and reads",
            false => "",
        };
        format!("{count} more groups of elements of {name} are omitted{alike}.")
    }

    /// Describes the elements that the first thread copies, reads or stores.
    pub fn of_thread_0(&self) -> String {
        let count = |rects: &[Rect]| rects.iter().map(|r| r.width * r.height).sum::<u64>();
        let of_first = |areas: &[Area]| {
            areas.iter().find(|area| area.owner == 0).map_or(0, |area| count(&area.rects))
        };
        let owned = of_first(&self.threads);
        let verb = if self.name == NAMES[2] { "stores" } else { "copies" };
        let parts = [(verb, owned), ("reads", of_first(&self.read))].into_iter();
        let parts = parts.filter(|(_, n)| *n > 0).map(|(verb, n)| format!("{verb} {n}"));
        parts.collect::<Vec<_>>().join(", ")
    }
}

/// Run of a GEMM in which the value of each element is its number.
pub(super) struct NumberedRun {
    /// Matrices A, B and C.
    pub(super) matrices: [Option<GlobalMatrix>; 3],
    /// Trace of the recorded block.
    pub(super) trace: Trace,
}

/// Runs a GEMM on numbered elements. `None` for other kernels.
pub(super) fn named(looked: &Observation) -> Result<Option<NumberedRun>, Failure> {
    let kernel = &looked.kernel;
    let scalars = looked.arguments.scalars(kernel);
    let (numbered, numbers) = looked.arguments.numbered();
    let matrices = NAMES.map(|name| GlobalMatrix::new(kernel, name, &scalars, &numbers));
    if matrices[2].is_none() {
        return Ok(None);
    }
    Ok(looked.again(&numbered)?.map(|trace| NumberedRun { matrices, trace }))
}

/// Returns the tiles of a GEMM from a run on numbered elements and a run on regular operands.
/// `None` if no tile is known.
pub(super) fn ownership(kernel: &Kernel, named: &NumberedRun, ran: &Trace) -> Option<Ownership> {
    let trace = &named.trace;
    let of_first: Vec<&Event> = trace.events.iter().filter(|event| event.warp == 0).collect();
    let steady = rounds::main_loop(kernel, trace, &of_first).and_then(|rounds| {
        let (value, _) = rounds.of_events.get(1).or(rounds.of_events.first())?;
        Some((rounds.var, *value))
    });
    let moved = moves::moves(kernel, trace, &named.matrices, steady);
    let is_shuffled = kernel.statements().iter().any(|s| matches!(s, Stmt::LoadMatrix(_)));
    let tiles = NAMES.iter().zip(&moved);
    let tiles = tiles.filter_map(|(name, moved)| tile(kernel, name, moved, is_shuffled));
    let mut tiles: Vec<OwnedTile> = tiles.collect();
    for tile in boxes::tiles(kernel, ran) {
        if tiles.iter().all(|other| other.name != tile.name) {
            tiles.push(tile);
        }
    }
    tiles.sort_by(|a, b| a.name.cmp(&b.name));
    let is_copied = moved.iter().any(|moved| !moved.placement.is_empty());
    (!tiles.is_empty()).then_some(Ownership { tiles, is_copied })
}

/// Bounding box: first row and column, then the extents.
fn bounds(places: &BTreeSet<(u64, u64)>) -> Option<([u64; 2], [u64; 2])> {
    let (top, bottom) = (places.first()?.0, places.last()?.0);
    let columns = || places.iter().map(|(_, column)| *column);
    let (left, right) = (columns().min()?, columns().max()?);
    Some(([top, left], [bottom - top + 1, right - left + 1]))
}

fn is_small(extents: [u64; 2]) -> bool {
    extents.iter().all(|extent| *extent <= MOST)
}

/// Builds the tile of a matrix from its moved elements.
fn tile(kernel: &Kernel, name: &str, moved: &MatrixMoves, is_shuffled: bool) -> Option<OwnedTile> {
    // If elements are copied, the tile contains those of one round of the loop. If they are read
    // directly, it contains all elements, or those of one round if all are too many.
    let all_read = || moved.readers.keys().copied().collect::<BTreeSet<_>>();
    let places = match (moved.steady.is_empty(), moved.owned.is_empty()) {
        (false, false) => moved.steady.clone(),
        (true, false) => moved.owned.keys().copied().collect(),
        (false, true) if !bounds(&all_read()).is_some_and(|(_, extents)| is_small(extents)) => {
            moved.steady.clone()
        }
        (_, true) => all_read(),
    };
    let (origin, extents) = bounds(&places).filter(|(_, extents)| is_small(*extents))?;
    let [top, left] = origin;
    let span = |counts: &mut dyn Iterator<Item = u64>| {
        counts.fold(None, |all: Option<[u64; 2]>, n| {
            Some(all.map_or([n; 2], |[a, b]| [a.min(n), b.max(n)]))
        })
    };
    let owners = |place: &(u64, u64)| moved.owned.get(place);
    let at = |place: &(u64, u64)| (place.0 - top, place.1 - left);
    let owned_by = |number: &dyn Fn(u32) -> u32| -> BTreeMap<(u64, u64), u32> {
        let first = |place| Some((at(place), number(*owners(place)?.first()?)));
        places.iter().filter_map(first).collect()
    };
    let of_threads = owned_by(&|thread| thread);
    let readers = |place: &(u64, u64)| moved.readers.get(place);
    // Several threads read an element, so the areas are computed for each thread.
    let read_by = |thread: u32| {
        let is_read =
            |place: &&(u64, u64)| readers(place).is_some_and(|all| all.contains_key(&thread));
        areas(&places.iter().filter(is_read).map(|place| (at(place), thread)).collect())
    };
    let read = (0..SHOWN).filter(|_| !is_shuffled).flat_map(read_by).collect();
    let held = SharedTile::from_moves(kernel, moved, &places, is_shuffled);
    let (groups, group) = match name == NAMES[2] {
        true => Default::default(),
        false => reuse::groups(moved, &places, held.as_ref(), is_shuffled),
    };
    let law = |number: &dyn Fn(&(u64, u64)) -> Option<i64>| {
        let [rows, columns] = extents;
        let places = (top..top + rows)
            .flat_map(|row| (left..left + columns).map(move |column| (row, column)));
        Formula::fit(places.map(|place| number(&place)).collect(), columns as usize)
    };
    let is_stored = name == NAMES[2];
    let of_threads = of_threads.into_iter().filter(|(_, thread)| *thread < SHOWN).collect();
    Some(OwnedTile {
        name: name.to_owned(),
        origin,
        extents,
        moved: match (is_stored, moved.owned.is_empty()) {
            (true, _) => "stored",
            (false, false) => "copied to shared memory",
            (false, true) => "read from global memory",
        },
        owners: span(
            &mut places.iter().map(|place| owners(place).map_or(0, |all| all.len() as u64)),
        )?,
        reads: span(
            &mut places.iter().map(|place| readers(place).map_or(0, |all| all.values().sum())),
        )?,
        warps: areas(&owned_by(&|thread| thread / 32)),
        threads: areas(&of_threads),
        read,
        held,
        owner: (!moved.owned.is_empty()).then(|| {
            law(&|place| {
                Some(i64::from(*owners(place).filter(|_| places.contains(place))?.first()?))
            })
        }),
        group: (!groups.is_empty()).then(|| law(&|place| group.get(place).map(|n| *n as i64))),
        groups,
        role: None,
    })
}

#[cfg(test)]
mod tests;
