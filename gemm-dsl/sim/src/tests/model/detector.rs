//! Race detector that receives the events of an interleaving.

use super::graph::Pair;
use super::interleave::{Event, What};
use super::program::{ARRAYS, LEN};
use crate::error::FaultKind;
use crate::launch::Launch;
use crate::lower::code::Code;
use crate::mask::WARP;
use crate::observe::groups::LaneGroups;
use crate::observe::{AtomicRequest, Observer, Request, Sync, Trap};
use crate::race::access_history::AccessHistory;
use crate::race::detector::{InterBlock, Race};
use crate::race::grid::{GridConflict, GridRace};
use crate::race::model::COPIES;
use std::cell::RefCell;
use std::rc::Rc;

/// Detector for accesses of different blocks.
pub(super) enum Blocks<'l> {
    /// Blocks run one after the other on one detector.
    Isolated(&'l GridRace),
    Speaking(Rc<RefCell<AccessHistory>>),
}

pub(super) struct Detector<'l> {
    launch: &'l Launch<'l>,
    blocks: Blocks<'l>,
    races: Vec<Race<'l>>,
    /// Current block of an isolated detector.
    at: u32,
}

impl<'l> Detector<'l> {
    pub(super) fn new(launch: &'l Launch<'l>, code: &'l Code<'l>, blocks: Blocks<'l>) -> Self {
        let race = |between| Race::new(launch, code, between);
        let races = match &blocks {
            Blocks::Isolated(grid) => vec![race(InterBlock::Isolated(grid))],
            Blocks::Speaking(words) => {
                let speaking = |_| race(InterBlock::Synchronising(Rc::clone(words)));
                (0..launch.blocks()).map(speaking).collect()
            }
        };
        Self { launch, blocks, races, at: 0 }
    }

    pub(super) fn begin(&mut self) {
        if let Blocks::Speaking(words) = &self.blocks {
            words.borrow_mut().clear();
        }
        self.at = 0;
        (0..).zip(&mut self.races).for_each(|(block, race)| race.begin(block));
    }

    /// Processes an event. Returns the race that the detector reports, if any.
    pub(super) fn happen(&mut self, event: &Event) -> Option<Pair> {
        let race = match &self.blocks {
            Blocks::Speaking(_) => &mut self.races[event.block as usize],
            Blocks::Isolated(_) => {
                if self.at != event.block {
                    self.at = event.block;
                    self.races[0].begin(event.block);
                }
                &mut self.races[0]
            }
        };
        let sync = match &event.what {
            &What::Access { warp, lanes, place, kind, reversed } => {
                let elements = std::array::from_fn(|lane| place.element(lane as u32));
                let request = Request {
                    kind,
                    buffer: place.array,
                    region: &self.launch.regions[place.array],
                    warp,
                    mask: lanes,
                    groups: &LaneGroups::new(&elements, lanes),
                    width: place.width(),
                    stmt: 0,
                    access: 0,
                    reversed,
                };
                let stop = race.access(&request).err()?;
                return Some(pair(&stop, event.block, warp));
            }
            &What::Atomic { warp, lanes, place, order, scope, wrote, reversed } => {
                let elements = &std::array::from_fn(|lane| place.element(lane as u32));
                let (buffer, mask) = (place.array, lanes);
                let atomics =
                    AtomicRequest { warp, mask, wrote, buffer, elements, order, scope, reversed };
                race.sync(Sync::Atomic(&atomics));
                return None;
            }
            What::Block => Sync::Block(0),
            &What::Warp { warp } => Sync::Warp(warp),
            &What::Arrive { warp, id } => Sync::Arrive { barrier: id, warp },
            What::Complete { id, warps } => Sync::Complete { barrier: *id, warps },
            &What::Fence { warp, lanes, scope } => Sync::Fence { warp, mask: lanes, scope },
            &What::Commit { warp, lanes } => Sync::Commit { warp, mask: lanes },
            &What::Wait { warp, lanes, pending } => Sync::Wait { warp, mask: lanes, pending },
        };
        race.sync(sync);
        None
    }
}

/// Grid-wide detector for the arrays that a program writes.
pub(super) fn grid_race(launch: &Launch<'_>, code: &Code<'_>) -> GridRace {
    let regions = launch.regions.iter().enumerate();
    let watched = regions.map(|(i, region)| {
        let memory = region.memory.as_ref().filter(|_| code.stored[i])?;
        Some((memory.len(), code.loaded[i]))
    });
    GridRace::new(watched, 1)
}

/// Race reported by a warp that stops.
fn pair(stop: &Trap, block: u32, warp: u32) -> Pair {
    race((block, warp * WARP as u32 + stop.lane), &stop.kind)
        .unwrap_or_else(|| panic!("the detector reports races: {:?}", stop.kind))
}

/// Race reported by a thread, or None for another fault.
pub(super) fn race(thread: (u32, u32), kind: &FaultKind) -> Option<Pair> {
    let (place, writes, earlier, in_flight) = match kind {
        FaultKind::Race { place, writes, earlier } => (place, *writes, earlier, false),
        FaultKind::CopyNotAwaited { place, earlier } => (place, false, earlier, true),
        _ => return None,
    };
    Some(Pair {
        array: ARRAYS.iter().position(|&name| name == place.buffer)?,
        element: u32::try_from(place.index[0]).ok().filter(|&i| i < LEN)?,
        thread,
        writes,
        earlier: (earlier.block.0, earlier.thread.0),
        wrote: earlier.wrote,
        by_copy: earlier.by_copy(),
        in_flight,
    })
}

/// Race reported between two blocks.
pub(super) fn between(conflict: &GridConflict) -> Pair {
    let [lower, higher] = [&conflict.lower, &conflict.higher].map(|t| (t.block, t.thread));
    Pair {
        array: conflict.buffer,
        element: conflict.element as u32,
        thread: higher,
        writes: conflict.higher_writes,
        earlier: lower,
        wrote: conflict.lower_writes,
        by_copy: conflict.lower.on == COPIES,
        in_flight: false,
    }
}
