//! Recorder of the events of some blocks.

use super::{Action, Detail, Event, EventKind, Trace};
use crate::cost::pattern::{Kind, Pattern, Price};
use crate::cost::{self, SECTOR};
use crate::counters::Site;
use crate::mask::{WARP, lanes_of};
use crate::observe::Request;
use gemm_dsl::ir::Space;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

/// The blocks that are watched, and what was seen of them.
#[derive(Debug, Default)]
pub(crate) struct WatchedBlocks {
    blocks: Vec<u32>,
    seen: Mutex<BTreeMap<u32, Trace>>,
}

impl WatchedBlocks {
    /// Of blocks by their numbers.
    pub(crate) fn new(blocks: &[u32]) -> Self {
        Self { blocks: blocks.to_vec(), seen: Mutex::default() }
    }

    /// Whether any are.
    pub(crate) fn any(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// What was seen, in the order of the blocks.
    pub(crate) fn seen(self) -> Vec<Trace> {
        self.seen.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
    }
}

/// Takes down what happens in a block, or in those of a cluster.
pub(crate) struct Recorder<'l> {
    watched: &'l WatchedBlocks,
    sites: &'l [Site],
    /// Warps of a block.
    warps: u32,
    /// By the number of the block in the cluster, those that are watched.
    pages: Vec<Option<BlockTrace>>,
    /// The warp that runs, and the statement that it is in, with what it had executed before and where loops are.
    warp: u32,
    stmt: u32,
    before: [u64; 2],
    rounds: Vec<(usize, i64)>,
    /// By warp, what it has executed.
    executed: Vec<[u64; 2]>,
    /// Whether a block of this cluster is watched.
    is_on: bool,
}

/// What has happened in a block so far.
struct BlockTrace {
    number: u32,
    trace: Trace,
    patterns: HashMap<Pattern, u32>,
    rounds: HashMap<Vec<(usize, i64)>, u32>,
}

impl<'l> Recorder<'l> {
    /// Of clusters of so many blocks, each of so many warps.
    pub(crate) fn new(
        watched: &'l WatchedBlocks,
        sites: &'l [Site],
        warps: u32,
        blocks: u32,
    ) -> Self {
        Self {
            watched,
            sites,
            warps,
            pages: (0..blocks).map(|_| None).collect(),
            warp: 0,
            stmt: 0,
            before: [0; 2],
            rounds: Vec::new(),
            executed: Vec::new(),
            is_on: false,
        }
    }

    /// Whether somebody looks at what happens now.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// The blocks of a cluster begin, with these numbers and `blockIdx`; `first` says whether they run in their first order.
    pub(crate) fn begin(
        &mut self,
        blocks: impl Iterator<Item = (u32, (u32, u32, u32))>,
        first: bool,
    ) {
        self.close();
        for (page, (number, block)) in self.pages.iter_mut().zip(blocks) {
            *page = (first && self.watched.blocks.contains(&number)).then(|| BlockTrace {
                number,
                trace: Trace { block, rounds: vec![Vec::new()], ..Trace::default() },
                patterns: HashMap::new(),
                rounds: HashMap::from([(Vec::new(), 0)]),
            });
        }
        self.executed = vec![[0; 2]; self.pages.len() * self.warps as usize];
        self.is_on = self.pages.iter().any(Option::is_some);
    }

    /// Hands on what was seen. Of a block that was run again that stands.
    fn close(&mut self) {
        for page in self.pages.iter_mut().filter_map(Option::take) {
            let mut seen = self.watched.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.insert(page.number, page.trace);
        }
    }

    /// A warp comes to a statement, with the values of the variables of the loops around it.
    pub(crate) fn reach(
        &mut self,
        warp: u32,
        stmt: u32,
        rounds: impl Iterator<Item = (usize, i64)>,
    ) {
        (self.warp, self.stmt) = (warp, stmt);
        self.before = self.executed[warp as usize];
        self.rounds.clear();
        self.rounds.extend(rounds);
    }

    /// The warp executes a site.
    pub(crate) fn executed(&mut self, site: u32) {
        let cost = &self.sites[site as usize].cost;
        let [instructions, fma] = &mut self.executed[self.warp as usize];
        *instructions += cost.instructions();
        *fma += cost.fma();
    }

    /// The warp comes to a statement that synchronises or starts something.
    pub(crate) fn statement(&mut self) {
        self.note(self.warp, |_| EventKind::Statement);
    }

    /// The warp accesses memory.
    pub(crate) fn access(&mut self, request: &Request<'_>) {
        if request.region.space == Space::Register {
            return;
        }
        let mut first = [0; WARP];
        for &(offset, lanes) in request.groups.as_slice() {
            lanes_of(lanes).for_each(|lane| first[lane] = offset);
        }
        let start = first[request.mask.trailing_zeros() as usize % WARP];
        let distance = |lane: usize| first[lane].wrapping_sub(start) as i32;
        let lanes =
            std::array::from_fn(|lane| (request.mask >> lane & 1 == 1).then(|| distance(lane)));
        let size = request.region.elem.size();
        let (skew, cost) = match request.region.space {
            Space::Shared => {
                let mut words = [(0, 0); WARP];
                let words = request.words(&mut words);
                let cost = cost::wavefronts(words, request.bytes(), request.kind.writes());
                let word = request.region.base + start * size / 4;
                (word % cost::BANKS as u32, Price::Shared(cost))
            }
            _ => {
                let mut sectors = [0; WARP];
                let cost = cost::sectors(request.sectors(&mut sectors));
                ((request.region.byte(start) % SECTOR) as u32, Price::Sectors(cost))
            }
        };
        let (buffer, bytes) = (request.buffer, request.bytes());
        let kind = Kind::from(request.kind);
        let pattern = Pattern { buffer, kind, lanes, bytes, skew, cost };
        self.note(request.warp, |page| {
            let next = page.patterns.len() as u32;
            let number = *page.patterns.entry(pattern).or_insert_with_key(|pattern| {
                page.trace.patterns.push(pattern.clone());
                next
            });
            EventKind::Access { pattern: number, first: start, words: Vec::new() }
        });
    }

    /// The warp would access memory, and may not.
    pub(crate) fn refused(&mut self) {
        self.note(self.warp, |_| EventKind::Refused);
    }

    /// The access that was last seen wrote these words.
    pub(crate) fn wrote(&mut self, written: impl Iterator<Item = u32>) {
        let rank = (self.warp / self.warps) as usize;
        if let Some(page) = self.pages.get_mut(rank).and_then(Option::as_mut)
            && let Some(Event { what: EventKind::Access { words, .. }, .. }) =
                page.trace.events.last_mut()
        {
            words.extend(written);
        }
    }

    /// The warp does something that is no access to memory, to the block with this number in the cluster.
    pub(crate) fn did(&mut self, to: u32, did: Action) {
        let Some(page) = &mut self.pages[to as usize] else { return };
        let (rounds, event) = (page.number_of(&self.rounds), page.trace.events.len());
        let (rank, warp, stmt) = (self.warp / self.warps, self.warp % self.warps, self.stmt);
        page.trace.details.push(Detail { event, rank, warp, stmt, rounds, did });
    }

    fn note(&mut self, warp: u32, what: impl FnOnce(&mut BlockTrace) -> EventKind) {
        let Some(page) = &mut self.pages[(warp / self.warps) as usize] else { return };
        let rounds = page.number_of(&self.rounds);
        let what = what(page);
        let (warp, stmt, executed) = (warp % self.warps, self.stmt, self.before);
        page.trace.events.push(Event { warp, stmt, executed, rounds, what });
    }
}

impl BlockTrace {
    /// The number of where loops are.
    fn number_of(&mut self, rounds: &Vec<(usize, i64)>) -> u32 {
        if let Some(known) = self.rounds.get(rounds) {
            return *known;
        }
        self.trace.rounds.push(rounds.clone());
        let number = self.rounds.len() as u32;
        self.rounds.insert(rounds.clone(), number);
        number
    }
}

/// A block that has a fault is not followed by another one.
impl Drop for Recorder<'_> {
    fn drop(&mut self) {
        self.close();
    }
}
