//! Part of a reduction's array on each rank, as a range along each axis.

use super::error::impossible;
use super::{Block, Distribution, WorldError};
use crate::{Error, Result};
use gemm_dsl::spec::{Over, ReduceSpec, newer_word};
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

/// Ranges of a rank: along the result axis before the folded axis, along the folded axis, and along
/// the result axis after the folded axis.
pub(crate) struct AxisRanges {
    pub(crate) outer: Range<usize>,
    pub(crate) folded: Range<usize>,
    pub(crate) inner: Range<usize>,
}

impl AxisRanges {
    /// Returns true if the rank has no part of any result.
    pub(crate) fn is_idle(&self) -> bool {
        self.outer.is_empty() || self.inner.is_empty()
    }

    /// Returns the block of this rank's runs in the matrix of all partials.
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

/// Arrangement of an array with three axes, a batch of matrices, in the distributed matrix.
#[derive(Clone, Copy)]
pub(crate) enum Matrices {
    /// Matrices stacked vertically, each with this many rows.
    Below(usize),
    /// One matrix in each row of the distributed matrix: the rows of the matrix follow one another,
    /// each with this many elements.
    InRows(usize),
}

/// Computes the ranges of each rank. `extents` are the extents of an array with three axes.
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
                    "the distribution `{distribution}` has {}·{cols} elements",
                    distribution.rows
                ),
                limit: usize::MAX as u64,
                remedy: "Use smaller extents",
            })
        })?,
        Over::Rows => cols,
        Over::Columns => distribution.rows,
        Over::Middle | Over::Segments => extents.map_or(0, |[_, middle, _]| middle),
        over => newer_word(over),
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
                    "the elements of a rank must be contiguous. Give each rank whole rows, or a \
                     part of a single row",
                ));
            }
        })
    };
    let of_ranks = shards.into_iter().map(of_rank).collect::<Result<Vec<AxisRanges>>>()?;
    Ok(Partition { of_ranks, total, matrices })
}

/// Determines the arrangement of the matrices whose columns are folded, for `over: middle`. Returns
/// `None` for other reductions.
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
                format!("a reduction `over: middle` of a {}x{} matrix", has.0, has.1),
                "it folds an array of three extents. Set them by `extents([outer, middle, inner])`",
            ));
        }
        Some([outer, middle, inner]) => {
            return Err(impossible(
                format!("a reduction `over: {over}` of an array of {outer}x{middle}x{inner}"),
                "only an `over: middle` kernel takes three extents",
            ));
        }
        None if over == Over::Segments => {
            return Err(impossible(
                "a reduction `over: segments` on ranks".to_owned(),
                "only an array or a matrix can be distributed. Use a kernel over all elements, \
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
        // For stacked matrices of 0 rows, the number of matrices would be undefined.
        0 => format!(
            "if the middle extent is 0, distribute a matrix of outer rows without elements, \
             {in_rows}"
        ),
        _ => format!(
            "distribute a matrix of outer·middle rows of inner elements, {below}, or of outer rows \
             of middle·inner elements, {in_rows}"
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
                    "its rows must be cut between matrices, at multiples of {unit}. To cut the \
                     matrices, distribute outer rows of middle·inner elements"
                ),
            ),
            Matrices::InRows(_) => impossible(
                what,
                &format!(
                    "its columns must be cut along the middle axis, at multiples of {unit}. To cut \
                     the inner axis, distribute outer·middle rows"
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
    /// Returns true if no result has elements on several ranks.
    pub(crate) fn are_whole(&self) -> bool {
        let is_whole = |has: &AxisRanges| has.is_idle() || has.folded == (0..self.total);
        // If the results have no elements, every rank has all elements.
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

/// View of a rank's shard as the batch of matrices that it contains.
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
                let batch = Batch::new(count, height * row_stride);
                Shape { rows: height, batch: Some(batch), ..part }
            }
            Matrices::InRows(width) => {
                let batch = Batch::new(rows, row_stride);
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
