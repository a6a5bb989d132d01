//! Launches for the analysis of edges: at the ragged shape, at the ragged shape with full K tiles,
//! and with all tiles full.

use super::SIZE;
use crate::edges::requests;
use crate::edges::requests::{EdgeRequests, Guard, LaunchPair};
use crate::observation::{Observation, SampleShape, Spec};
use crate::ownership::GlobalMatrix;
use gemm_bench::cli::Failure;
use gemm_oracle::product::Size;
use gemm_runtime::Error;
use gemm_runtime::sim::watch::Trace;
use std::collections::BTreeSet;

/// Names of the arrays of the three matrices.
const NAMES: [&str; 3] = ["A", "B", "C"];
/// Limit on the simulated instructions of a repeated launch.
const INSTRUCTIONS: u64 = 1 << 36;

/// Launch with the traces of all its blocks.
pub(super) struct EdgeLaunch {
    pub(super) looked: Observation,
    pub(super) others: Vec<Trace>,
    placed: [Option<GlobalMatrix>; 3],
}

/// Repetition of a launch in which each element holds its own number.
struct NumberedLaunch {
    matrices: [Option<GlobalMatrix>; 3],
    traces: Vec<Trace>,
}

/// Behaviour at edges: accesses of each block along M and N, zeros of the first block along K, and
/// guards of statements.
#[derive(Default)]
pub(super) struct Edge {
    pub(super) blocks: Vec<EdgeRequests>,
    pub(super) along_k: [Option<u64>; 2],
    pub(super) guards: BTreeSet<(u32, Guard)>,
}

impl EdgeLaunch {
    /// Launches the spec at a ragged shape.
    pub(super) fn ragged(spec: &Spec, size: Size) -> Result<Self, Failure> {
        Ok(Self::new(spec.look_at_all(SampleShape::Size(size))?))
    }

    /// Launches the spec at another shape, without detection of races.
    fn unchecked(spec: &Spec, size: Size) -> Result<Self, Failure> {
        Ok(Self::new(spec.look_at_all_unchecked(SampleShape::Size(size))?))
    }

    fn new((looked, others): (Observation, Vec<Trace>)) -> Self {
        let placed = NAMES.map(|name| GlobalMatrix::placed(&looked, name));
        Self { looked, others, placed }
    }

    pub(super) fn traces(&self) -> impl Iterator<Item = &Trace> {
        std::iter::once(&self.looked.trace).chain(&self.others)
    }

    /// Runs the launch again and traces the first `blocks` blocks.
    fn numbered(&self, blocks: usize) -> Result<NumberedLaunch, Failure> {
        let kernel = &self.looked.kernel;
        let scalars = self.looked.arguments.scalars(kernel);
        let (numbered, numbers) = self.looked.arguments.numbered();
        let matrices = NAMES.map(|name| GlobalMatrix::new(kernel, name, &scalars, &numbers));
        let blocks: Vec<u32> = (0..blocks as u32).collect();
        let replay = numbered.retrace(kernel, &blocks, INSTRUCTIONS).map_err(Error::from)?;
        replay.ran.map_err(Error::from)?;
        Ok(NumberedLaunch { matrices, traces: replay.traces })
    }

    /// Number of zeros in the TMA boxes of a block.
    fn boxes(&self, trace: &Trace) -> ([Option<u64>; 2], BTreeSet<u32>) {
        let kernel = &self.looked.kernel;
        requests::boxes(kernel, &self.looked.arguments.scalars(kernel), trace)
    }
}

/// Analyses the edges of a GEMM from its launch at the ragged shape. `tile` is the tile of a
/// cluster, `depth` the extent of a K tile. Returns `None` if a launch on full tiles selects
/// another kernel or grid.
pub(super) fn edge(
    spec: &Spec,
    ragged: &EdgeLaunch,
    tile: [usize; 2],
    depth: usize,
) -> Result<Option<Edge>, Failure> {
    let k = SIZE.k.next_multiple_of(depth);
    let flat =
        if k == SIZE.k { None } else { Some(EdgeLaunch::unchecked(spec, Size { k, ..SIZE })?) };
    let flat = flat.as_ref().unwrap_or(ragged);
    let [m, n] = [(SIZE.m, tile[0]), (SIZE.n, tile[1])].map(|(n, of)| n.next_multiple_of(of));
    let whole = EdgeLaunch::unchecked(spec, Size { m, n, k })?;
    let of = |launch: &EdgeLaunch| {
        let kernel = &launch.looked.kernel;
        (kernel.name.clone(), kernel.variant, launch.looked.grid)
    };
    if of(flat) != of(&whole) || of(flat) != of(ragged) {
        return Ok(None);
    }
    let [rows, columns, terms] = [SIZE.m, SIZE.n, k].map(|extent| extent as u64);
    let inside = [[rows, terms], [terms, columns], [rows, columns]];
    let (mut blocks, mut guards) = requests::asked(&LaunchPair {
        here: (&flat.placed, flat.traces().collect()),
        whole: (&whole.placed, whole.traces().collect()),
        inside,
    });
    let count = blocks.len();
    let (here, all) = (flat.numbered(count)?, whole.numbered(count)?);
    let beside = |of: &NumberedLaunch| {
        let here = (&of.matrices, of.traces.iter().collect());
        let whole = (&all.matrices, all.traces.iter().collect());
        requests::zeros(&flat.looked.kernel, &LaunchPair { here, whole, inside })
    };
    let (mut zeros, mut zeroing, _) = beside(&here);
    for (zeros, trace) in zeros.iter_mut().zip(flat.traces()) {
        let (of_boxes, statements) = flat.boxes(trace);
        *zeros = [0, 1].map(|side| zeros[side] + of_boxes[side].unwrap_or(0));
        zeroing.extend(statements);
    }
    for (seen, zeros) in blocks.iter_mut().zip(&zeros) {
        seen.zeros = *zeros;
    }
    let mut along_k = [None; 2];
    if k != SIZE.k {
        let (first, statements, is_known) = beside(&ragged.numbered(1)?);
        let (of_boxes, others) = ragged.boxes(&ragged.looked.trace);
        let (first, flat) = (first.first().copied().unwrap_or_default(), zeros.first());
        let flat = flat.copied().unwrap_or_default();
        along_k = [0, 1].map(|side| {
            let all = first[side] + of_boxes[side].unwrap_or(0);
            (is_known[side] || of_boxes[side].is_some()).then(|| all.saturating_sub(flat[side]))
        });
        zeroing.extend(statements.into_iter().chain(others));
    }
    guards.extend(zeroing.into_iter().map(|stmt| (stmt, Guard::Zeros)));
    Ok(Some(Edge { blocks, along_k, guards }))
}
