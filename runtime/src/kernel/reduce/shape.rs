//! Shapes of a reduction's inputs and results. An input has the axes outer, length and inner,
//! without the axes that `over` lacks.

use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::launch::BoundArray;
use crate::operand::LocatedOperand;
use crate::shape::Shape;
use gemm_dsl::error::counted;
use gemm_dsl::ir::Extent;
use gemm_dsl::ir::contract::ArrayAxis;
use gemm_dsl::spec::{Over, newer_word};
use smallvec::{SmallVec, smallvec};

/// Axes of an input, outermost first.
pub(super) type Axes = SmallVec<[(Extent, ArrayAxis); 3]>;

/// Extents of a reduction.
pub(super) type Extents = SmallVec<[(Extent, u64); 3]>;

/// Axes of an input, with its name in messages.
pub(super) struct NamedAxes<'n> {
    pub(super) name: &'n str,
    pub(super) axes: Axes,
}

impl NamedAxes<'_> {
    /// Value of an extent, or 1 if the input has no such axis.
    pub(super) fn extent(&self, extent: Extent) -> u64 {
        let found = self.axes.iter().find(|(of, _)| *of == extent);
        found.map_or(1, |(_, axis)| axis.extent)
    }

    /// Axes of the input without the names of their extents.
    pub(super) fn layout(&self) -> SmallVec<[ArrayAxis; 3]> {
        self.axes.iter().map(|(_, axis)| *axis).collect()
    }
}

/// Axes of an input that the key `over` has.
pub(super) fn axes<'n, B: Backend>(
    over: Over,
    argument: &'n str,
    input: &LocatedOperand<'_, B>,
) -> Result<NamedAxes<'n>> {
    Ok(NamedAxes { name: argument, axes: axes_over(over, argument, input)? })
}

fn axes_over<B: Backend>(
    over: Over,
    argument: &str,
    input: &LocatedOperand<'_, B>,
) -> Result<Axes> {
    let (_, given) = input.array(argument)?;
    let axis = |extent, stride| ArrayAxis { extent: extent as u64, stride: stride as u64 };
    if matches!(over, Over::All | Over::Segments) {
        let len = match input.shape {
            None => given,
            Some(shape) if shape.is_packed() => shape.count() as u64,
            Some(shape) => {
                let remedy = "Copy it to a contiguous buffer first";
                return Err(padded(argument, &shape, remedy));
            }
        };
        return Ok(smallvec![(Extent::LENGTH, ArrayAxis { extent: len, stride: 1 })]);
    }
    let shape = input.shape.ok_or_else(|| no_shape(over, argument, given))?;
    let (rows, cols) = (axis(shape.rows, shape.row_stride), axis(shape.cols, shape.col_stride));
    let (count, distance) = one_stride(argument, &shape)?;
    Ok(match over {
        Over::Rows => {
            smallvec![(Extent::OUTER, all_rows(argument, &shape)?), (Extent::LENGTH, cols)]
        }
        Over::Columns if count != 1 => return Err(several(argument, &shape)),
        Over::Columns => smallvec![(Extent::LENGTH, rows), (Extent::INNER, cols)],
        Over::Middle | Over::All | Over::Segments => {
            let matrices = axis(count, distance);
            smallvec![(Extent::OUTER, matrices), (Extent::LENGTH, rows), (Extent::INNER, cols)]
        }
        over => newer_word(over),
    })
}

/// Number and distance of the matrices of a batch, which must have one stride.
fn one_stride(argument: &str, shape: &Shape) -> Result<(usize, usize)> {
    shape.batch().merged().ok_or_else(|| Error::WrongOperand {
        operand: argument.to_owned(),
        needed: "a batch of matrices with one stride",
        found: format!(
            "a batch of {} matrices with strides of {} elements",
            shape.batch().extents_in_words(),
            shape.batch().strides_in_words()
        ),
        remedy: "Copy it to a packed batch, or launch once for each index of the first axis",
    })
}

/// Axis of the rows of all matrices of a batch.
fn all_rows(argument: &str, shape: &Shape) -> Result<ArrayAxis> {
    let Shape { rows, row_stride, .. } = *shape;
    let (count, distance) = one_stride(argument, shape)?;
    let too_many = || Error::TooLarge {
        what: format!("`{argument}` has {count}·{rows} rows"),
        limit: usize::MAX as u64,
        remedy: "Use a smaller batch",
    };
    let extent = count.checked_mul(rows).ok_or_else(too_many)? as u64;
    // The row stride if a matrix has several rows, otherwise the distance between matrices.
    let stride = if rows > 1 { row_stride } else { distance };
    if shape.count() > 0 && count > 1 && rows > 1 {
        let step = distance as i128 - (rows as i128 - 1) * row_stride as i128;
        if step != row_stride as i128 {
            return Err(Error::UnevenRows { argument: argument.to_owned(), row_stride, step });
        }
    }
    Ok(ArrayAxis { extent, stride: stride as u64 })
}

/// Checks that two inputs have equal extents.
pub(super) fn same(first: &NamedAxes<'_>, other: &NamedAxes<'_>) -> Result<()> {
    for ((extent, of_first), (_, of_other)) in first.axes.iter().zip(&other.axes) {
        if of_first.extent != of_other.extent {
            // Extents are shapes and lengths of arrays, so they fit in a `usize`.
            let named = |name: &str, axis: &ArrayAxis| (name.to_owned(), axis.extent as usize);
            let (first, other) = (named(first.name, of_first), named(other.name, of_other));
            return Err(Error::Extents { extent: *extent, first, other });
        }
    }
    Ok(())
}

/// Extents of the results: all extents except the length, which is folded. For segments, this is
/// the length of the array. The elements of a selection are the last axis.
pub(super) fn of_results(extents: &[(Extent, u64)], topk: Option<u32>) -> Extents {
    let of_results = extents.iter().filter(|(extent, _)| *extent != Extent::LENGTH);
    of_results.copied().chain(topk.map(|k| (Extent::TOPK, k.into()))).collect()
}

/// Checks that an array has the capacity for the results, which are packed. `extents` are the
/// extents of the results, outermost first.
pub(super) fn room<'n, B: Backend>(
    over: Over,
    argument: &'n str,
    results: &'n LocatedOperand<'_, B>,
    extents: &[(Extent, u64)],
) -> Result<BoundArray<'n, B>> {
    let (_, has) = results.array(argument)?;
    // A view limits the capacity, even if its array is longer.
    let has = results.shape.map_or(has, |shape| shape.count() as u64);
    let wrong = |need| Error::WrongExtent { argument: argument.to_owned(), has, need };
    let needed = count(argument, extents)?;
    if let Some(shape) = results.shape {
        let fits = match extents {
            [(_, matrices), (_, columns)] => {
                let rows = (shape.rows as u64).saturating_mul(shape.batch().count() as u64);
                (rows, shape.cols as u64) == (*matrices, *columns)
            }
            _ => true,
        };
        if !fits {
            let (names, values) = product(extents, " x ");
            let Shape { rows, cols, .. } = shape;
            return Err(wrong(format!("its shape {rows} x {cols} is not {names} = {values}")));
        }
        // The strides of a single element do not matter.
        if needed > 1 && !shape.is_packed() {
            let remedy = "Pass a contiguous buffer, such as one from `device.alloc_of(len)?`";
            return Err(padded(argument, &shape, remedy));
        }
    }
    if has < needed {
        return Err(wrong(match extents {
            [] => "the value needs 1".to_owned(),
            _ => {
                let (names, values) = product(extents, "·");
                let total = if extents.len() > 1 { format!(" = {needed}") } else { String::new() };
                let each = match over {
                    Over::All => "array",
                    Over::Rows => "row",
                    Over::Columns => "column",
                    Over::Middle => "column of each matrix",
                    Over::Segments => "segment",
                    over => newer_word(over),
                };
                let count = match extents.last() {
                    Some((Extent::TOPK, k)) => k.to_string(),
                    _ => "one".to_owned(),
                };
                format!("{names} = {values}{total} are needed, {count} for each {each}")
            }
        }));
    }
    let mut axes = SmallVec::<[ArrayAxis; 2]>::new();
    for (_, extent) in extents.iter().rev() {
        let stride = axes.last().map_or(1, |axis| axis.extent * axis.stride);
        axes.push(ArrayAxis { extent: *extent, stride });
    }
    axes.reverse();
    if axes.is_empty() {
        axes.push(ArrayAxis { extent: 1, stride: 1 });
    }
    Ok(BoundArray::array(argument, results.place.clone(), &axes))
}

/// Number of results, checked for overflow.
pub(super) fn count(argument: &str, extents: &[(Extent, u64)]) -> Result<u64> {
    let total = extents.iter().try_fold(1_u64, |total, (_, extent)| total.checked_mul(*extent));
    total.filter(|&n| usize::try_from(n).is_ok()).ok_or_else(|| {
        let (names, values) = product(extents, "·");
        Error::TooLarge {
            what: format!("`{argument}` would have {names} = {values} elements"),
            limit: usize::MAX as u64,
            remedy: "Use smaller extents",
        }
    })
}

/// Names and values of extents, joined by a multiplication sign.
fn product(extents: &[(Extent, u64)], times: &str) -> (String, String) {
    let names: Vec<&str> = extents.iter().map(|(extent, _)| extent.0).collect();
    let values: Vec<String> = extents.iter().map(|(_, value)| value.to_string()).collect();
    (names.join(times), values.join(times))
}

fn padded(argument: &str, shape: &Shape, remedy: &'static str) -> Error {
    let (Shape { rows, cols, row_stride, col_stride, .. }, batch) = (*shape, shape.batch());
    let one = Shape { batch: None, ..*shape };
    let layout = if one.is_packed() {
        let distances = batch.strides_in_words();
        format!("its matrices of {rows}x{cols} start every {distances} elements")
    } else {
        format!(
            "its rows of {cols} have a row stride of {row_stride} elements and a column stride of \
             {col_stride}"
        )
    };
    let [cols, row_stride, col_stride] = [cols, row_stride, col_stride].map(|n| n as u64);
    Error::Padded { argument: argument.to_owned(), cols, row_stride, col_stride, layout, remedy }
}

fn no_shape(over: Over, argument: &str, len: u64) -> Error {
    let (needed, remedy) = match over {
        Over::Middle => (
            "a batch of matrices, whose columns are folded",
            "Pass a view, such as `MatrixRef::batch(&elements, outer, len, inner)`",
        ),
        Over::Columns => (
            "a matrix, whose columns are folded",
            "Pass a view, such as `MatrixRef::new(&elements, len, inner)`",
        ),
        Over::Rows | Over::All | Over::Segments => (
            "a matrix, whose rows are folded",
            "Pass a view, such as `MatrixRef::new(&elements, outer, len)`",
        ),
        over => newer_word(over),
    };
    let found = format!("a vector of {}", counted(len, "element"));
    Error::WrongOperand { operand: argument.to_owned(), needed, found, remedy }
}

fn several(argument: &str, shape: &Shape) -> Error {
    let (count, Shape { rows, cols, .. }) = (shape.batch().count(), *shape);
    Error::WrongOperand {
        operand: argument.to_owned(),
        needed: "one matrix, whose columns are folded",
        found: format!("a batch of {count} matrices of {rows}x{cols}"),
        remedy: "Fold the columns of each matrix with an `over: middle` kernel",
    }
}
