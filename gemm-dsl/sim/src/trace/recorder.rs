//! Recorder of the events of selected blocks.

use super::{Action, Detail, Event, EventKind, Trace};
use crate::cost::pattern::{Kind, Pattern, Price};
use crate::cost::{self, SECTOR};
use crate::counters::Site;
use crate::mask::{WARP, lanes_of};
use crate::observe::Request;
use gemm_dsl::ir::Space;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

/// Selected blocks and their traces.
#[derive(Debug, Default)]
pub(crate) struct WatchedBlocks {
    blocks: Vec<u32>,
    seen: Mutex<BTreeMap<u32, Trace>>,
}

impl WatchedBlocks {
    /// Selects blocks by their linear numbers.
    pub(crate) fn new(blocks: &[u32]) -> Self {
        Self { blocks: blocks.to_vec(), seen: Mutex::default() }
    }

    pub(crate) fn any(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// Returns the traces in ascending order of the blocks.
    pub(crate) fn seen(self) -> Vec<Trace> {
        self.seen.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
    }
}

/// Records the events of a block, or of the blocks of a cluster.
pub(crate) struct Recorder<'l> {
    watched: &'l WatchedBlocks,
    sites: &'l [Site],
    warps: u32,
    /// Traces of the recorded blocks that are running, by cluster rank.
    pages: Vec<Option<BlockTrace>>,
    /// Number of the running warp, its statement, its counts before the statement, and its loop
    /// iteration.
    warp: u32,
    stmt: u32,
    before: [u64; 2],
    rounds: Vec<(usize, i64)>,
    /// Number of executed instructions and multiply-adds, for each warp.
    executed: Vec<[u64; 2]>,
    /// True if a block of this cluster is recorded.
    is_on: bool,
}

/// Trace of a running block.
struct BlockTrace {
    number: u32,
    trace: Trace,
    /// Numbers of the patterns with a digest.
    patterns: HashMap<u64, Vec<u32>>,
    /// Latest pattern of each statement. The statement's next pattern is mostly the same.
    latest: HashMap<u32, u32>,
    rounds: HashMap<Vec<(usize, i64)>, u32>,
    /// Number of the recorder's loop iteration, once it is known.
    round: Option<u32>,
}

impl<'l> Recorder<'l> {
    /// Creates a recorder for clusters of `blocks` blocks with `warps` warps each.
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

    /// Returns true if a block of the running cluster is recorded.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Starts the blocks of a cluster, which have these numbers and `blockIdx`. `first` is true in
    /// the first block order.
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
                latest: HashMap::new(),
                rounds: HashMap::from([(Vec::new(), 0)]),
                round: None,
            });
        }
        self.executed = vec![[0; 2]; self.pages.len() * self.warps as usize];
        self.is_on = self.pages.iter().any(Option::is_some);
    }

    /// Stores the traces of the running blocks. Blocks that run again are not recorded, so the
    /// first trace is kept.
    fn close(&mut self) {
        for page in self.pages.iter_mut().filter_map(Option::take) {
            let mut seen = self.watched.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.insert(page.number, page.trace);
        }
    }

    /// Records that a warp reaches a statement, with the values of the enclosing loop variables.
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
        self.pages.iter_mut().flatten().for_each(|page| page.round = None);
    }

    /// Counts a site that the warp executes.
    pub(crate) fn executed(&mut self, site: u32) {
        let cost = &self.sites[site as usize].cost;
        let [instructions, fma] = &mut self.executed[self.warp as usize];
        *instructions += cost.instructions();
        *fma += cost.fma();
    }

    /// Records a statement that synchronises or starts asynchronous work.
    pub(crate) fn statement(&mut self) {
        self.note(self.warp, |_| EventKind::Statement);
    }

    /// Records an access to global or shared memory.
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
        let stmt = self.stmt;
        self.note(request.warp, |page| {
            let pattern = page.pattern(stmt, pattern);
            EventKind::Access { pattern, first: start, words: Vec::new() }
        });
    }

    /// Records an access that was refused.
    pub(crate) fn refused(&mut self) {
        self.note(self.warp, |_| EventKind::Refused);
    }

    /// Adds the words that were written to the last recorded access.
    pub(crate) fn wrote(&mut self, written: impl Iterator<Item = u32>) {
        let rank = (self.warp / self.warps) as usize;
        if let Some(page) = self.pages.get_mut(rank).and_then(Option::as_mut)
            && let Some(Event { what: EventKind::Access { words, .. }, .. }) =
                page.trace.events.last_mut()
        {
            words.extend(written);
        }
    }

    /// Records an action other than an access, on the block with this cluster rank.
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
    /// Returns the number of a loop iteration, which is added if it is new.
    fn number_of(&mut self, rounds: &Vec<(usize, i64)>) -> u32 {
        let is_same = |number: &u32| self.trace.rounds[*number as usize] == *rounds;
        let latest = self.trace.events.last().map(|event| event.rounds).filter(is_same);
        let known = self.round.or(latest).or_else(|| self.rounds.get(rounds).copied());
        if let Some(known) = known {
            self.round = Some(known);
            return known;
        }
        self.trace.rounds.push(rounds.clone());
        let number = self.rounds.len() as u32;
        self.rounds.insert(rounds.clone(), number);
        self.round = Some(number);
        number
    }

    /// Returns the number of a statement's pattern, which is added if it is new.
    fn pattern(&mut self, stmt: u32, pattern: Pattern) -> u32 {
        let all = &mut self.trace.patterns;
        let is_same = |number: &u32| all[*number as usize] == pattern;
        if let Some(number) = self.latest.get(&stmt).copied().filter(is_same) {
            return number;
        }
        let alike = self.patterns.entry(digest(&pattern)).or_default();
        let number = alike.iter().copied().find(is_same).unwrap_or_else(|| {
            let next = all.len() as u32;
            alike.push(next);
            all.push(pattern);
            next
        });
        self.latest.insert(stmt, number);
        number
    }
}

/// Digest of a pattern's start and lanes, which differ most between patterns. It is computed faster
/// than a hash of the whole pattern.
fn digest(pattern: &Pattern) -> u64 {
    let lanes = pattern.lanes.iter().map(|lane| lane.map_or(u64::MAX, |at| at as u64));
    let numbers = [pattern.buffer as u64, pattern.skew.into()].into_iter().chain(lanes);
    numbers.fold(0, |digest, number| (digest.rotate_left(5) ^ number).wrapping_mul(DIGEST_FACTOR))
}

/// Odd factor with well mixed bits.
const DIGEST_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Stores the traces of the last cluster, because no further block starts after a fault.
impl Drop for Recorder<'_> {
    fn drop(&mut self) {
        self.close();
    }
}
