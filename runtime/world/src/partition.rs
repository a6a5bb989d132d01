//! Ranges of a reduction's axes on each rank.

use super::error::impossible;
use super::{Block, Distribution, WorldError};
use crate::{Error, Result};
use gemm_dsl::spec::{Over, ReduceSpec};
use gemm_runtime::internal::Gpu;
use gemm_runtime::internal::LocatedOperand;
use gemm_runtime::internal::On;
use gemm_runtime::internal::Simulator;
use gemm_runtime::internal::{AnyInput, Readable};
use gemm_runtime::internal::{Batch, Shape};
use std::ops::Range;

pub(crate) struct Partition {
    pub(crate) of_ranks: Vec<AxisRanges>,
    /// Number of elements folded into a result.
    pub(crate) total: usize,
    /// Arrangement of the matrices whose columns are folded (`over: middle`).
    pub(crate) matrices: Option<Matrices>,
}

/// Ranges of a rank: the result axis before the folded axis, the folded axis, and the result axis
/// after it.
pub(crate) struct AxisRanges {
    pub(crate) outer: Range<usize>,
    pub(crate) folded: Range<usize>,
    pub(crate) inner: Range<usize>,
}

impl AxisRanges {
    /// Returns true if the rank has a part of no result.
    pub(crate) fn is_idle(&self) -> bool {
        self.outer.is_empty() || self.inner.is_empty()
    }

    /// Returns the block of the matrix of all partials that holds the given runs of this rank.
    pub(crate) fn partials(&self, over: Over, runs: Range<usize>) -> Block {
        match over {
            Over::Columns => Block::new(runs, self.inner.clone()),
            _ => {
                let width = self.inner.len();
                Block::new(self.outer.clone(), runs.start * width..runs.end * width)
            }
        }
    }
}

/// Arrangement of a three-axis array in the distributed matrix.
#[derive(Clone, Copy)]
pub(crate) enum Matrices {
    /// Matrices below each other, with this many rows each.
    Below(usize),
    /// One matrix per row, its own rows of this many elements one after another.
    InRows(usize),
}

/// Computes the ranges of each rank. `extents` are those of a three-axis array.
pub(crate) fn partition(
    spec: &ReduceSpec,
    distribution: &Distribution,
    extents: Option<[usize; 3]>,
    ranks: usize,
) -> Result<Partition> {
    let shards = distribution.shards(ranks).map_err(WorldError::Distribution)?;
    let cols = distribution.cols;
    let matrices = matrices(spec.over, distribution, extents)?;
    let total = match spec.over {
        Over::All => distribution.rows.checked_mul(cols).ok_or_else(|| {
            Error::Device(gemm_runtime::Error::TooLarge {
                what: format!(
                    "the layout `{distribution}` is of {}·{cols} elements",
                    distribution.rows
                ),
                limit: usize::MAX as u64,
                remedy: "Use smaller extents",
            })
        })?,
        Over::Rows => cols,
        Over::Columns => distribution.rows,
        Over::Middle | Over::Segments => extents.map_or(0, |[_, middle, _]| middle),
    };
    let of_rank = |block: Block| {
        let Block { rows, cols: own } = block;
        let all = |folded| AxisRanges { outer: 0..1, folded, inner: 0..1 };
        if let Some(matrices) = matrices {
            return of_matrices(distribution, matrices, total, [rows, own]);
        }
        Ok(match spec.over {
            Over::Rows => AxisRanges { outer: rows, folded: own, inner: 0..1 },
            Over::Columns => AxisRanges { outer: 0..1, folded: rows, inner: own },
            _ if rows.is_empty() || own.is_empty() => all(0..0),
            _ if own.len() == cols => all(rows.start * cols..rows.end * cols),
            _ if rows.len() == 1 => {
                let before = rows.start * cols;
                all(before + own.start..before + own.end)
            }
            _ => {
                return Err(impossible(
                    format!("a fold of all elements of `{distribution}`"),
                    "the elements of a rank are contiguous only if it has whole rows, or a part \
                     of one",
                ));
            }
        })
    };
    let of_ranks = shards.into_iter().map(of_rank).collect::<Result<Vec<AxisRanges>>>()?;
    Ok(Partition { of_ranks, total, matrices })
}

/// Determines the arrangement of the matrices whose columns are folded. `None` for other
/// reductions.
fn matrices(
    over: Over,
    distribution: &Distribution,
    extents: Option<[usize; 3]>,
) -> Result<Option<Matrices>> {
    let (has, is_middle) = ((distribution.rows, distribution.cols), over == Over::Middle);
    let [outer, middle, inner] = match extents {
        Some(extents) if is_middle => extents,
        None if is_middle => {
            return Err(impossible(
                format!("a reduction `over: middle` of a matrix, {}x{}", has.0, has.1),
                "it folds an array of three extents: say which by `extents([outer, middle, \
                 inner])`",
            ));
        }
        Some([outer, middle, inner]) => {
            return Err(impossible(
                format!("a reduction `over: {over}` of an array of {outer}x{middle}x{inner}"),
                "three extents are for a kernel `over: middle`",
            ));
        }
        None if over == Over::Segments => {
            return Err(impossible(
                "a reduction `over: segments` on ranks".to_owned(),
                "only an array or a matrix can be distributed: use a kernel over all elements, \
                 rows, columns or the middle axis",
            ));
        }
        None => return Ok(None),
    };
    let below = outer.checked_mul(middle).map(|rows| (rows, inner));
    let in_rows = middle.checked_mul(inner).map(|cols| (outer, cols));
    if below == Some(has) && middle > 0 {
        return Ok(Some(Matrices::Below(middle)));
    }
    if in_rows == Some(has) {
        return Ok(Some(Matrices::InRows(inner)));
    }
    let written = |extents: Option<(usize, usize)>| {
        extents.map_or("too many".to_owned(), |(rows, cols)| format!("{rows}x{cols}"))
    };
    let (below, in_rows) = (written(below), written(in_rows));
    let need = match middle {
        // With 0 rows per matrix, the number of matrices is undefined.
        0 => format!(
            "with a middle extent of 0 it is a matrix of outer rows without elements, {in_rows}"
        ),
        _ => format!(
            "it is a matrix of outer·middle rows of inner elements, {below}, or of outer rows of \
             middle·inner, {in_rows}"
        ),
    };
    let what =
        format!("an array of {outer}x{middle}x{inner} that is distributed as `{distribution}`");
    Err(impossible(what, &need))
}

/// Converts a rank's block of the distributed matrix to ranges of the three axes.
fn of_matrices(
    distribution: &Distribution,
    matrices: Matrices,
    middle: usize,
    [rows, cols]: [Range<usize>; 2],
) -> Result<AxisRanges> {
    let (unit, cut) = match matrices {
        Matrices::Below(height) => (height, &rows),
        Matrices::InRows(width) => (width, &cols),
    };
    // An extent of 0 has no cuts.
    let at = |at: usize| at.checked_div(unit).unwrap_or(0);
    let is_cut = [cut.start, cut.end].iter().any(|end| at(*end) * unit != *end);
    if is_cut && !(rows.is_empty() || cols.is_empty()) {
        let what = format!(
            "an array that is distributed as `{distribution}`, where a rank has {}..{}",
            cut.start, cut.end
        );
        return Err(match matrices {
            Matrices::Below(_) => impossible(
                what,
                &format!(
                    "its rows are cut between matrices, at multiples of {unit}: to cut these, \
                     distribute it as outer rows of middle·inner elements"
                ),
            ),
            Matrices::InRows(_) => impossible(
                what,
                &format!(
                    "its columns are cut along the middle axis, at multiples of {unit}: to cut \
                     the inner one, distribute it as outer·middle rows"
                ),
            ),
        });
    }
    let whole = at(cut.start)..at(cut.end);
    Ok(match matrices {
        Matrices::Below(_) => AxisRanges { outer: whole, folded: 0..middle, inner: cols },
        Matrices::InRows(0) => AxisRanges { outer: rows, folded: 0..middle, inner: 0..0 },
        Matrices::InRows(width) => AxisRanges { outer: rows, folded: whole, inner: 0..width },
    })
}

impl Partition {
    /// Returns true if every rank has whole results or none.
    pub(crate) fn are_whole(&self) -> bool {
        let is_whole = |has: &AxisRanges| has.is_idle() || has.folded == (0..self.total);
        // Without elements, every rank has all of them.
        self.total == 0 || self.of_ranks.iter().all(is_whole)
    }

    /// Checks that the kernel folds runs, and that no run is divided between ranks.
    pub(crate) fn check(&self, line: &str, spec: &ReduceSpec) -> Result<(), WorldError> {
        let Some(run) = spec.run else {
            return Err(WorldError::Unrun { line: line.to_owned() });
        };
        for (rank, has) in self.of_ranks.iter().enumerate() {
            if has.is_idle() || has.folded.is_empty() {
                continue;
            }
            let Range { start, end } = has.folded;
            let is_cut = |at: usize| at != self.total && !at.is_multiple_of(run as usize);
            if let Some(at) = [start, end].into_iter().find(|at| is_cut(*at)) {
                return Err(WorldError::CutRun { rank, at, run: run as usize });
            }
        }
        Ok(())
    }
}

/// A rank's shard, viewed as the batch of matrices it contains.
pub(crate) struct MatrixInput<'a> {
    pub(crate) of: AnyInput<'a>,
    pub(crate) matrices: Matrices,
}

impl MatrixInput<'_> {
    fn shape(&self, part: Shape) -> Shape {
        let Shape { rows, cols, row_stride, .. } = part;
        match self.matrices {
            Matrices::Below(height) => {
                let count = rows.checked_div(height).unwrap_or(0);
                let batch = Batch { count, distance: height * row_stride };
                Shape { rows: height, batch: Some(batch), ..part }
            }
            Matrices::InRows(width) => {
                let batch = Batch { count: rows, distance: row_stride };
                let rows = cols.checked_div(width).unwrap_or(0);
                Shape { rows, cols: width, row_stride: width, batch: Some(batch), ..part }
            }
        }
    }
}

impl Readable for MatrixInput<'_> {
    fn on_gpu<'a>(
        &'a self,
        on: On<'a, Gpu>,
        argument: &str,
    ) -> gemm_runtime::error::Result<LocatedOperand<'a, Gpu>> {
        let mut found = self.of.0.on_gpu(on, argument)?;
        found.shape = found.shape.map(|shape| self.shape(shape));
        Ok(found)
    }

    fn on_simulator<'a>(
        &'a self,
        on: On<'a, Simulator>,
        argument: &str,
    ) -> gemm_runtime::error::Result<LocatedOperand<'a, Simulator>> {
        let mut found = self.of.0.on_simulator(on, argument)?;
        found.shape = found.shape.map(|shape| self.shape(shape));
        Ok(found)
    }
}
