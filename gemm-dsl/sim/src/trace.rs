//! What happened in some blocks of a launch, event by event: what a page shows of a kernel is what is recorded here.

mod detail;
use super::cost::{self, SECTOR};
use super::counters::Site;
use super::observe::Request;
use crate::cost::pattern::{Kind, Pattern, Price};
use crate::counters::traffic::{sectors_of, words_of};
use crate::mask::{WARP, lanes_of};
use gemm_dsl::ir::Space;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

pub use detail::{Boxed, Detail, Did, Operand};

/// What happened in a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trace {
    /// Its `blockIdx`.
    pub block: (u32, u32, u32),
    /// How lanes accessed memory, each way once, in the order in which they came.
    pub patterns: Vec<Pattern>,
    /// Where loops were: the numbers of their variables and the values, from the outside in, each combination once. The first
    /// is that of no loop.
    pub rounds: Vec<Vec<(usize, i64)>>,
    /// What its warps did, in the order in which they took turns. That order is the warps' own only between what each
    /// of them did itself.
    pub events: Vec<Event>,
    /// What was done that is no access of a warp to memory: shuffles, barriers in shared memory and what counts there, matrix
    /// instructions. In the same order.
    pub details: Vec<Detail>,
}

/// An access to memory among what happened.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Accessed<'t> {
    /// The event.
    pub event: &'t Event,
    /// The number of its pattern: an index into [`Trace::patterns`].
    pub number: u32,
    /// How its lanes accessed the buffer.
    pub pattern: &'t Pattern,
    /// The element of the buffer at which the first active lane did.
    pub first: u32,
    /// What was written: for each active lane the words.
    pub words: &'t [u32],
}

impl Trace {
    /// The accesses to memory, in order.
    pub fn accesses(&self) -> impl Iterator<Item = Accessed<'_>> {
        self.events.iter().filter_map(|event| match &event.what {
            What::Statement | What::Refused => None,
            What::Access { pattern: number, first, words } => Some(Accessed {
                event,
                number: *number,
                pattern: &self.patterns[*number as usize],
                first: *first,
                words,
            }),
        })
    }
}

/// Something that a warp did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The warp, by its number in the block.
    pub warp: u32,
    /// The number of the statement ([`Kernel::statements`](gemm_dsl::ir::Kernel::statements)).
    pub stmt: u32,
    /// Instructions that the warp had executed before, and multiply-adds among them.
    pub executed: [u64; 2],
    /// Where the loops around the statement were, for the first lane: an index into [`Trace::rounds`].
    pub rounds: u32,
    /// What it did.
    pub what: What,
}

/// What a warp did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It came to a statement that synchronises, or that starts what others do for it: a barrier, a fence, a commit, a wait, the
    /// copy of a box, a matrix instruction.
    Statement,
    /// It accessed global or shared memory.
    Access {
        /// An index into [`Trace::patterns`].
        pattern: u32,
        /// The element of the buffer at which its first active lane did.
        first: u32,
        /// What it wrote, but by an atomic: for each active lane the words that it wrote.
        words: Vec<u32>,
    },
    /// It would have accessed memory that some lane may not: nothing was done, and the launch ends. The fault has the access
    /// ([`Fault::refused`](crate::Fault::refused)).
    Refused,
}

/// The blocks that are watched, and what was seen of them.
#[derive(Debug, Default)]
pub(super) struct Watched {
    blocks: Vec<u32>,
    seen: Mutex<BTreeMap<u32, Trace>>,
}

impl Watched {
    /// Of blocks by their numbers.
    pub(super) fn new(blocks: &[u32]) -> Self {
        Self { blocks: blocks.to_vec(), seen: Mutex::default() }
    }

    /// Whether any are.
    pub(super) fn any(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// What was seen, in the order of the blocks.
    pub(super) fn seen(self) -> Vec<Trace> {
        self.seen.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
    }
}

/// Takes down what happens in a block, or in those of a cluster.
pub(super) struct Recorder<'l> {
    watched: &'l Watched,
    sites: &'l [Site],
    /// Warps of a block.
    warps: u32,
    /// By the number of the block in the cluster, those that are watched.
    pages: Vec<Option<Page>>,
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
struct Page {
    number: u32,
    trace: Trace,
    patterns: HashMap<Pattern, u32>,
    rounds: HashMap<Vec<(usize, i64)>, u32>,
}

impl<'l> Recorder<'l> {
    /// Of clusters of so many blocks, each of so many warps.
    pub(super) fn new(watched: &'l Watched, sites: &'l [Site], warps: u32, blocks: u32) -> Self {
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
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// The blocks of a cluster begin, with these numbers and `blockIdx`; `first` says whether they run in their first order.
    pub(super) fn begin(
        &mut self,
        blocks: impl Iterator<Item = (u32, (u32, u32, u32))>,
        first: bool,
    ) {
        self.close();
        for (page, (number, block)) in self.pages.iter_mut().zip(blocks) {
            *page = (first && self.watched.blocks.contains(&number)).then(|| Page {
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
    pub(super) fn come(
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
    pub(super) fn executed(&mut self, site: u32) {
        let cost = &self.sites[site as usize].cost;
        let [instructions, fma] = &mut self.executed[self.warp as usize];
        *instructions += cost.instructions();
        *fma += cost.fma();
    }

    /// The warp comes to a statement that synchronises or starts something.
    pub(super) fn statement(&mut self) {
        self.note(self.warp, |_| What::Statement);
    }

    /// The warp accesses memory.
    pub(super) fn access(&mut self, request: &Request<'_>) {
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
                let words = words_of(request, &mut words);
                let cost = cost::wavefronts(words, request.bytes(), request.kind.writes());
                let word = request.region.base + start * size / 4;
                (word % cost::BANKS as u32, Price::Shared(cost))
            }
            _ => {
                let mut sectors = [0; WARP];
                let cost = cost::sectors(sectors_of(request, &mut sectors));
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
            What::Access { pattern: number, first: start, words: Vec::new() }
        });
    }

    /// The warp would access memory, and may not.
    pub(super) fn refused(&mut self) {
        self.note(self.warp, |_| What::Refused);
    }

    /// The access that was last seen wrote these words.
    pub(super) fn wrote(&mut self, written: impl Iterator<Item = u32>) {
        let rank = (self.warp / self.warps) as usize;
        if let Some(page) = self.pages.get_mut(rank).and_then(Option::as_mut)
            && let Some(Event { what: What::Access { words, .. }, .. }) =
                page.trace.events.last_mut()
        {
            words.extend(written);
        }
    }

    /// The warp does something that is no access to memory, to the block with this number in the cluster.
    pub(super) fn did(&mut self, to: u32, did: Did) {
        let Some(page) = &mut self.pages[to as usize] else { return };
        let (rounds, event) = (page.number_of(&self.rounds), page.trace.events.len());
        let (rank, warp, stmt) = (self.warp / self.warps, self.warp % self.warps, self.stmt);
        page.trace.details.push(Detail { event, rank, warp, stmt, rounds, did });
    }

    fn note(&mut self, warp: u32, what: impl FnOnce(&mut Page) -> What) {
        let Some(page) = &mut self.pages[(warp / self.warps) as usize] else { return };
        let rounds = page.number_of(&self.rounds);
        let what = what(page);
        let (warp, stmt, executed) = (warp % self.warps, self.stmt, self.before);
        page.trace.events.push(Event { warp, stmt, executed, rounds, what });
    }
}

impl Page {
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
