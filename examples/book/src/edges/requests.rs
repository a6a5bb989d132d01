//! Accesses of blocks at edges, found by comparison with a launch on full tiles, block by block.
//!
//! The analysis does not depend on how a kernel treats edges. Accesses that occur only with full
//! tiles were skipped or redirected at the edge.

use crate::ownership::GlobalMatrix;
use crate::ownership::moves::elements;
use gemm_dsl::ir::{Kernel, Scalars, Space};
use gemm_runtime::sim::watch::{AccessEvent, Action, BoxCopy, Kind, Trace};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Padding value of A. Its product with a zero of B leaves an accumulator unchanged.
const NEGATIVE_ZERO: u32 = 1 << 31;

/// Accesses of a tile at an edge, in elements. All counts are 0 for a full tile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct EdgeRequests {
    /// Elements of A, B and C that lanes would access in a full tile, but skip here.
    pub off: [u64; 3],
    /// Elements of A and B that lanes would access in a full tile, but clamp here to other
    /// elements.
    pub moved: [u64; 2],
    /// Elements of A and B that are filled with zeros in shared memory.
    pub zeros: [u64; 2],
}

/// Guard of a line of the source at edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Guard {
    /// Lanes beyond the edge skip their access.
    Off,
    /// Lanes beyond the edge access another element.
    Moved,
    /// Zeros are written for elements beyond the edge.
    Zeros,
}

/// Accesses of a block to the matrices, by statement.
#[derive(Default)]
struct BlockRequests {
    /// Number of elements, and number of elements beyond the edges, by statement and matrix.
    all: BTreeMap<(u32, usize), [u64; 2]>,
}

impl BlockRequests {
    /// Counts the accesses of a trace. `inside` are the extents of the matrices.
    fn from_trace(
        trace: &Trace,
        matrices: &[Option<GlobalMatrix>; 3],
        inside: &[[u64; 2]; 3],
    ) -> Self {
        let mut all: BTreeMap<(u32, usize), [u64; 2]> = BTreeMap::new();
        for access in trace.accesses() {
            let is_it = |matrix: &&Option<GlobalMatrix>| {
                matrix.as_ref().is_some_and(|matrix| matrix.buffer == access.pattern.buffer)
            };
            let Some(number) = matrices.iter().position(|matrix| is_it(&matrix)) else { continue };
            let reads = matches!(access.pattern.kind, Kind::Load | Kind::CopyRead);
            let Some(matrix) = matrices[number].as_ref().filter(|_| reads == (number < 2)) else {
                continue;
            };
            let asked = all.entry((access.event.stmt, number)).or_default();
            for (_, element) in elements(&access) {
                let (row, column) = matrix.place(element);
                let is_beyond = row >= inside[number][0] || column >= inside[number][1];
                asked[0] += 1;
                asked[1] += u64::from(is_beyond);
            }
        }
        Self { all }
    }

    /// Number of accessed elements of a matrix, and number of them beyond the edges.
    fn of_matrix(&self, number: usize) -> [u64; 2] {
        let own = self.all.iter().filter(|((_, of), _)| *of == number);
        own.fold([0; 2], |[all, beyond], (_, [n, more])| [all + n, beyond + more])
    }
}

/// Launch at the edges and launch on full tiles, each with the matrices and the traces of all
/// blocks.
pub(super) struct LaunchPair<'t> {
    pub(super) here: (&'t [Option<GlobalMatrix>; 3], Vec<&'t Trace>),
    pub(super) whole: (&'t [Option<GlobalMatrix>; 3], Vec<&'t Trace>),
    /// Extents of the matrices at the edges.
    pub(super) inside: [[u64; 2]; 3],
}

/// Accesses at the edges by block, and guards by statement.
pub(super) type EdgeFindings = (Vec<EdgeRequests>, BTreeSet<(u32, Guard)>);

/// Returns the accesses of each block at the edges, except for zeros.
pub(super) fn asked(beside: &LaunchPair<'_>) -> EdgeFindings {
    let mut statements = BTreeSet::new();
    let blocks = beside.here.1.iter().zip(&beside.whole.1).map(|(here, whole)| {
        let here = BlockRequests::from_trace(here, beside.here.0, &beside.inside);
        let whole = BlockRequests::from_trace(whole, beside.whole.0, &beside.inside);
        for (key, [all, beyond]) in &whole.all {
            let off = all.saturating_sub(here.all.get(key).map_or(0, |[all, _]| *all));
            statements.extend((off > 0).then_some((key.0, Guard::Off)));
            statements.extend((*beyond > off && key.1 < 2).then_some((key.0, Guard::Moved)));
        }
        let mut seen = EdgeRequests::default();
        for matrix in 0..3 {
            let ([all, beyond], [asked, _]) = (whole.of_matrix(matrix), here.of_matrix(matrix));
            seen.off[matrix] = all.saturating_sub(asked);
            if let Some(moved) = seen.moved.get_mut(matrix) {
                *moved = beyond.saturating_sub(seen.off[matrix]);
            }
        }
        seen
    });
    (blocks.collect(), statements)
}

/// Words written to shared memory in a launch on numbered elements. For each buffer, the counts of
/// words that name an element of A or of B, and of zeros with their statements.
#[derive(Default)]
struct NumberedWords {
    named: BTreeMap<usize, [u64; 2]>,
    zeros: BTreeMap<usize, u64>,
    statements: BTreeSet<(usize, u32)>,
}

impl NumberedWords {
    fn from_trace(kernel: &Kernel, trace: &Trace, matrices: &[Option<GlobalMatrix>; 3]) -> Self {
        let mut written = Self::default();
        let to_shared = |access: &AccessEvent<'_>| {
            let is_written = matches!(access.pattern.kind, Kind::Store | Kind::CopyWrite);
            is_written && kernel.buffers[access.pattern.buffer].space == Space::Shared
        };
        for access in trace.accesses().filter(to_shared) {
            let buffer = access.pattern.buffer;
            for word in access.words {
                let names = |matrix: &Option<GlobalMatrix>| {
                    matrix.as_ref().is_some_and(|matrix| matrix.named((*word).into()).is_some())
                };
                if let Some(of) = matrices[..2].iter().position(names) {
                    written.named.entry(buffer).or_default()[of] += 1;
                } else if *word == 0 || *word == NEGATIVE_ZERO {
                    *written.zeros.entry(buffer).or_default() += 1;
                    written.statements.insert((buffer, access.event.stmt));
                }
            }
        }
        written
    }
}

/// Counts the zeros that each block writes to shared memory for elements of A and of B, with their
/// statements. The third result is true for a matrix whose zeros can be attributed. They can if, on
/// full tiles, the buffer holds elements of one matrix and no zeros.
pub(super) fn zeros(
    kernel: &Kernel,
    beside: &LaunchPair<'_>,
) -> (Vec<[u64; 2]>, BTreeSet<u32>, [bool; 2]) {
    let written =
        |(matrices, traces): &(&[Option<GlobalMatrix>; 3], Vec<&Trace>)| -> Vec<NumberedWords> {
            traces.iter().map(|trace| NumberedWords::from_trace(kernel, trace, matrices)).collect()
        };
    let whole = written(&beside.whole);
    let side = |buffer: usize| {
        let zeros = whole.iter().any(|of| of.zeros.contains_key(&buffer));
        let sum = |at: usize| -> u64 {
            whole.iter().filter_map(|of| of.named.get(&buffer)).map(|of| of[at]).sum()
        };
        match [sum(0), sum(1)] {
            [of_a, 0] if of_a > 0 && !zeros => Some(0),
            [0, of_b] if of_b > 0 && !zeros => Some(1),
            _ => None,
        }
    };
    let buffers = whole.iter().flat_map(|of| of.named.keys());
    let sides: BTreeSet<usize> = buffers.filter_map(|buffer| side(*buffer)).collect();
    let mut statements = BTreeSet::new();
    let mut of_blocks = Vec::new();
    for block in written(&beside.here) {
        let mut zeros = [0; 2];
        for (buffer, count) in &block.zeros {
            let Some(side) = side(*buffer) else { continue };
            zeros[side] += count;
            let own = block.statements.iter().filter(|(of, _)| of == buffer);
            statements.extend(own.map(|(_, stmt)| *stmt));
        }
        of_blocks.push(zeros);
    }
    (of_blocks, statements, [0, 1].map(|side| sides.contains(&side)))
}

/// Counts the elements of TMA boxes of A and of B that are out of bounds. The hardware fills them
/// with zeros. The count is `None` for a matrix without boxes. The second result is the set of
/// statements that copy such boxes.
pub(super) fn boxes(
    kernel: &Kernel,
    scalars: &Scalars,
    trace: &Trace,
) -> ([Option<u64>; 2], BTreeSet<u32>) {
    let (mut zeros, mut statements) = ([None; 2], BTreeSet::new());
    for detail in &trace.details {
        let Action::BoxCopy(boxed) = &detail.did else { continue };
        let side = ["A", "B"].iter().position(|of| kernel.buffers[boxed.to].name.starts_with(of));
        let (Some(side), Some(beyond)) = (side, beyond(kernel, scalars, boxed)) else { continue };
        *zeros[side].get_or_insert(0) += beyond;
        statements.extend((beyond > 0).then_some(detail.stmt));
    }
    (zeros, statements)
}

/// Number of elements of a box that are out of bounds.
fn beyond(kernel: &Kernel, scalars: &Scalars, boxed: &BoxCopy) -> Option<u64> {
    let dims = &kernel.buffers[boxed.from].dims;
    let extents: Option<Vec<i64>> =
        dims.iter().map(|dim| i64::try_from(kernel.eval(dim, scalars).ok()?).ok()).collect();
    let inside =
        extents?.into_iter().zip(&boxed.at).zip(&boxed.tile).map(|((extent, at), tile)| {
            ((at + *tile as i64).min(extent) - (*at).max(0)).max(0) as u64
        });
    let all: u64 = boxed.tile.iter().product();
    Some(all - inside.product::<u64>().min(all))
}

impl EdgeRequests {
    /// Adds the accesses of another block of the same tile.
    pub(super) fn add(&mut self, other: &Self) {
        let add = |own: &mut [u64], other: &[u64]| {
            own.iter_mut().zip(other).for_each(|(own, other)| *own += other);
        };
        add(&mut self.off, &other.off);
        add(&mut self.moved, &other.moved);
        add(&mut self.zeros, &other.zeros);
    }

    /// Guards that occur at the edges of the tile.
    pub fn guards(&self) -> Vec<Guard> {
        let is_some = |counts: &[u64]| counts.iter().any(|count| *count > 0);
        let guards = [
            (is_some(&self.off), Guard::Off),
            (is_some(&self.moved), Guard::Moved),
            (is_some(&self.zeros), Guard::Zeros),
        ];
        guards.into_iter().filter(|(is, _)| *is).map(|(_, guard)| guard).collect()
    }

    /// Counts of A, B and C in words. Empty for a matrix without any.
    pub fn texts(&self) -> [String; 3] {
        [0, 1, 2].map(|number| self.text(number))
    }

    fn text(&self, number: usize) -> String {
        let some = |count: u64, what: &str| (count > 0).then(|| format!("{count} {what}"));
        let moved = self.moved.get(number).copied().unwrap_or(0);
        let zeros = self.zeros.get(number).copied().unwrap_or(0);
        let parts =
            [some(self.off[number], "skipped"), some(moved, "clamped"), some(zeros, "zero-filled")];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

impl Guard {
    /// Letter drawn in a tile.
    pub fn letter(self) -> char {
        match self {
            Self::Off => 'l',
            Self::Moved => 'r',
            Self::Zeros => '0',
        }
    }

    /// SVG path of the hatching, in a square of 8 x 8.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Off => "M-1 1L1 -1M-1 9L9 -1M7 9L9 7",
            Self::Moved => "M4 1v6",
            Self::Zeros => "M1 4h6",
        }
    }

    /// Description of the guard of a line.
    pub fn text(self) -> &'static str {
        match self {
            Self::Off => "accesses are skipped",
            Self::Moved => "accesses are clamped to other elements",
            Self::Zeros => "zeros are written",
        }
    }
}
