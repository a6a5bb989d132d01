//! Who owns what: which threads bring the elements of a tile of A and of B, which ones read them, and which one stores each
//! element of C.
//!
//! Elements are told by number: the kernel is run once more on arrays whose elements are their own numbers, which it moves
//! unchanged, so that a word of shared memory names the element that lies there.

mod area;
mod drawing;
pub(super) mod folded;
pub(super) mod moved;
mod role;

pub use area::{Area, Rect};
pub use folded::Folded;

use super::gather::Looked;
use super::pipeline::rounds;
use crate::cli::Failure;
use area::areas;
use gemm_dsl::ir::{Kernel, Stmt};
use gemm_runtime::watch::{Event, Trace};
pub(super) use moved::Matrix;
use moved::Moved;
pub use role::Role;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The matrices, by the names of their arrays.
const NAMES: [&str; 3] = ["A", "B", "C"];
/// Threads of which the elements are told apart: the lanes of the first warp.
pub(super) const SHOWN: u32 = 32;
/// The largest tile that is drawn, in elements along either side.
const MOST: u64 = 1024;

/// The tiles of the watched block.
#[derive(Clone, Debug, Serialize)]
pub struct Owners {
    /// Those of A, of B and of C, as far as threads move their elements one by one, or boxes bring them.
    pub tiles: Vec<Tile>,
}

/// A tile of a matrix.
#[derive(Clone, Debug, Serialize)]
pub struct Tile {
    /// Of which.
    pub name: &'static str,
    /// The first row and the first column.
    pub origin: [u64; 2],
    /// Rows and columns.
    pub extents: [u64; 2],
    /// What its owners do with it.
    pub moved: &'static str,
    /// How many threads do that with an element: the least and the most.
    pub owners: [u64; 2],
    /// How often an element is read by a thread, from shared memory if it is copied there: the least and the most.
    pub reads: [u64; 2],
    /// What the warps own.
    pub warps: Vec<Area>,
    /// What the first threads own.
    pub threads: Vec<Area>,
    /// What these read.
    pub read: Vec<Area>,
    /// Who brings it and who reads it, where no thread moves its elements one by one.
    pub role: Option<Role>,
}

impl Tile {
    /// What is done with an element, and by how many.
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

    /// How often an element is read.
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

    /// What the first thread has to do with it.
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

/// A product that has run on elements that are their own numbers.
pub(super) struct Named {
    /// A, B and C.
    pub(super) matrices: [Option<Matrix>; 3],
    /// What was seen of the watched block.
    pub(super) trace: Trace,
}

/// Runs a product on elements that are their own numbers; none of another kernel.
pub(super) fn named(looked: &Looked) -> Result<Option<Named>, Failure> {
    let kernel = &looked.kernel;
    let scalars = looked.arguments.scalars(kernel);
    let (numbered, numbers) = looked.arguments.numbered();
    let matrices = NAMES.map(|name| Matrix::of(kernel, name, &scalars, &numbers));
    if matrices[2].is_none() {
        return Ok(None);
    }
    Ok(looked.again(&numbered)?.map(|trace| Named { matrices, trace }))
}

/// The tiles of a product, with what was seen when it ran on operands of its own; none if nothing of them is known.
pub(super) fn of(kernel: &Kernel, named: &Named, ran: &Trace) -> Option<Owners> {
    let trace = &named.trace;
    let of_first: Vec<&Event> = trace.events.iter().filter(|event| event.warp == 0).collect();
    let steady = rounds::of(trace, &of_first).and_then(|rounds| {
        let (value, _) = rounds.of_events.get(1).or(rounds.of_events.first())?;
        Some((rounds.var, *value))
    });
    let moved = moved::of(kernel, trace, &named.matrices, steady);
    let is_shuffled = kernel.statements().iter().any(|s| matches!(s, Stmt::LoadMatrix(_)));
    let tiles = NAMES.iter().zip(&moved).filter_map(|(name, moved)| tile(name, moved, is_shuffled));
    let mut tiles: Vec<Tile> = tiles.collect();
    for tile in role::tiles(kernel, ran) {
        if tiles.iter().all(|other| other.name != tile.name) {
            tiles.push(tile);
        }
    }
    tiles.sort_by_key(|tile| tile.name);
    (!tiles.is_empty()).then_some(Owners { tiles })
}

/// The first row and column, and how many rows and columns there are.
fn bounds(places: &BTreeSet<(u64, u64)>) -> Option<([u64; 2], [u64; 2])> {
    let (top, bottom) = (places.first()?.0, places.last()?.0);
    let columns = || places.iter().map(|(_, column)| *column);
    let (left, right) = (columns().min()?, columns().max()?);
    Some(([top, left], [bottom - top + 1, right - left + 1]))
}

fn is_small((_, extents): ([u64; 2], [u64; 2])) -> bool {
    extents.iter().all(|extent| *extent <= MOST)
}

/// The tile that a matrix's elements make up.
fn tile(name: &'static str, moved: &Moved, is_shuffled: bool) -> Option<Tile> {
    // Of what is copied the elements of one round; of what is read at once all, or if they are many those of a round.
    let all_read = || moved.reads.keys().copied().collect::<BTreeSet<_>>();
    let places = match (moved.steady.is_empty(), moved.owned.is_empty()) {
        (false, false) => moved.steady.clone(),
        (true, false) => moved.owned.keys().copied().collect(),
        (false, true) if !bounds(&all_read()).is_some_and(is_small) => moved.steady.clone(),
        (_, true) => all_read(),
    };
    let (origin, extents) = bounds(&places).filter(|bounds| is_small(*bounds))?;
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
    // Several threads read an element, so each has areas of its own.
    let read_by = |(thread, read): (&u32, &BTreeSet<(u64, u64)>)| {
        let own = places.intersection(read).map(|place| (at(place), *thread)).collect();
        areas(&own)
    };
    let read = moved.read.iter().filter(|_| !is_shuffled).flat_map(read_by).collect();
    let is_stored = name == NAMES[2];
    let of_threads = of_threads.into_iter().filter(|(_, thread)| *thread < SHOWN).collect();
    Some(Tile {
        name,
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
        reads: span(&mut places.iter().map(|place| moved.reads.get(place).copied().unwrap_or(0)))?,
        warps: areas(&owned_by(&|thread| thread / 32)),
        threads: areas(&of_threads),
        read,
        role: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::gather::Spec;
    use crate::family::Family;

    fn owners(family: Family, line: &str) -> Option<Owners> {
        let spec = Spec::parse(family, line).expect("a spec");
        let looked = spec.look(spec.at().expect("a shape")).expect("a launch");
        of(&looked.kernel, &named(&looked).expect("the same launch")?, &looked.trace)
    }

    /// Stage 22: 16 x 16 threads of 8 x 16 sums, in vectors of four; lanes of a warp are 4 x 8.
    #[test]
    fn a_thread_owns_what_the_layout_of_warps_and_lanes_says() {
        let line = "tile: 128x256x16, thread: 8x16, fragment: split, float4, transpose, pad_a: 4, stages: 5, spread: 10, warp: 32x128";
        let owners = owners(Family::Sgemm, line).expect("a product");
        let [a, b, c] = &owners.tiles[..] else { panic!("three tiles") };
        assert_eq!((a.extents, b.extents, c.extents), ([128, 16], [16, 256], [128, 256]));
        // An element of A is used in 256 / 16 columns of threads, one of B in 128 / 8 rows.
        assert_eq!((a.owners, a.reads, b.owners, b.reads), ([1; 2], [16; 2], [1; 2], [16; 2]));
        assert_eq!((c.owners, c.reads), ([1; 2], [0; 2]));
        let rect = |x, y, width, height| Rect { x, y, width, height };
        let warp: Vec<Rect> = c.warps.iter().map(|area| area.rects[0]).collect();
        let tile = |warp: u64| rect(warp % 2 * 128, warp / 2 * 32, 128, 32);
        assert_eq!(warp, (0..8).map(tile).collect::<Vec<_>>());
        let fours = [0, 16].iter().flat_map(|y| [0, 32, 64, 96].map(|x| rect(x, *y, 4, 4)));
        assert_eq!(c.threads[0].rects, fours.collect::<Vec<_>>());
        // It reads the rows and the columns of what it stores.
        assert_eq!(a.read[0].rects, [rect(0, 0, 16, 4), rect(0, 16, 16, 4)]);
        assert_eq!(b.read[0].rects, [0, 32, 64, 96].map(|x| rect(x, 0, 4, 16)));
        // So do all lanes: the next one stores, and reads, the columns behind.
        let columns = |areas: &[Area]| areas.iter().map(|area| area.rects[0].x).collect::<Vec<_>>();
        assert_eq!((c.threads.len(), a.read.len(), b.read.len()), (32, 32, 32));
        assert_eq!(columns(&b.read), columns(&c.threads));
        assert_eq!(
            (a.of_thread_0(), c.of_thread_0()),
            ("copies 8, reads 128".into(), "stores 128".into())
        );
    }

    /// Stage 5: a thread for each element, warps along the rows.
    #[test]
    fn a_thread_of_one_sum_reads_a_row_and_a_column() {
        let owners = owners(Family::Sgemm, "tile: 32x32x32").expect("a product");
        let [a, b, _] = &owners.tiles[..] else { panic!("three tiles") };
        let rect = |x, y, width, height| Rect { x, y, width, height };
        assert_eq!(
            (&a.read[0].rects[..], &b.read[0].rects[..]),
            (&[rect(0, 0, 32, 1)][..], &[rect(0, 0, 1, 32)][..])
        );
        assert_eq!((a.reads, b.reads, a.warps.len()), ([32; 2], [32; 2], 32));
    }

    /// What is not copied is read where it is; boxes are brought.
    #[test]
    fn kernels_without_copies_by_threads_have_the_other_tiles() {
        let naive = owners(Family::Sgemm, "block: 16x16").expect("a product");
        let moved: Vec<_> = naive.tiles.iter().map(|tile| (tile.moved, tile.reads)).collect();
        let read = ("read from global memory", [16; 2]);
        assert_eq!(moved, [read, read, ("stored", [0; 2])]);
        let boxes = "tile: 128x128x64, float4, stages: 4, arith: bf16, mma: wgmma, copy: tma";
        let names =
            owners(Family::Sgemm, boxes).map(|all| all.tiles.iter().map(|t| t.name).collect());
        assert_eq!(names, Some(NAMES.to_vec()));
        assert!(owners(Family::Reduce, "items: 2").is_none());
    }
}
