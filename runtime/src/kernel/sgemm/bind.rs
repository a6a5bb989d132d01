//! Binding of matrices and operands to a GEMM's arrays, with checks of their sizes.

use crate::backend::{Backend, Place};
use crate::error::{Error, Result};
use crate::kernel_arg::Address;
use crate::launch::BoundArray;
use crate::operand::LocatedOperand;
use crate::shape::Shape;
use gemm_dsl::ir::{Elem, Extent, VECTOR_BYTES};
use gemm_dsl::spec::{Along, EpilogueArg, GemmLayout};
use gemm_dsl::tables::{SgemmShape, StridedItems, lines_take_vectors};

/// Extent with its name in messages.
#[derive(Clone, Copy)]
pub(super) struct NamedExtent {
    name: &'static str,
    pub(super) value: u64,
}

impl NamedExtent {
    pub(super) fn new(name: &'static str, value: u64) -> Self {
        Self { name, value }
    }
}

/// Number of pairs of columns.
pub(super) fn halved(columns: NamedExtent) -> NamedExtent {
    NamedExtent { name: "n / 2", value: columns.value / 2 }
}

/// Shape for the choice of a rule: the extents (m, n, k), layouts and alignment. `elems` are the
/// element types of the matrices.
pub(super) fn shape_of<B: Backend>(
    matrices: [&LocatedOperand<'_, B>; 3],
    elems: [Elem; 3],
    size: (usize, usize, usize),
) -> SgemmShape {
    let shape = |matrix: &LocatedOperand<'_, B>| match matrix.shape {
        Some(shape) => shape,
        None => unreachable!("Call::launch: a table is called with views"),
    };
    let shapes = matrices.map(shape);
    // A packed matrix of one column is both row-major and column-major. As column-major it is one
    // contiguous line.
    let is_column = |shape: &Shape| shape.rows > 1 && shape.cols == 1 && shape.row_stride == 1;
    let layout = GemmLayout::from_columns(
        [shapes[0], shapes[1]].map(|s| s.is_column_major() || is_column(&s)),
    );
    let of = SgemmShape::from(size)
        .batch(shapes[2].batch().count() as u64)
        .layout(layout)
        .padded(shapes.iter().any(Shape::is_padded));
    let by_column = [layout.transposes_a(), layout.transposes_b(), false];
    let places = matrices.map(|matrix| &matrix.place);
    let lines = shapes.iter().zip(by_column).map(|(s, by_column)| match by_column {
        true => s.transposed(),
        false => *s,
    });
    let mut places = places.into_iter().zip(lines).zip(elems);
    of.aligned(places.all(|((place, lines), elem)| is_aligned(place, elem, &lines)))
}

/// Returns true if every row of a matrix starts on a 16-byte boundary, in each matrix of a batch or
/// a list.
fn is_aligned<B: Backend>(place: &Place<'_, B>, elem: Elem, shape: &Shape) -> bool {
    let on_16_bytes = |address: u64| address.is_multiple_of(VECTOR_BYTES.into());
    let (lines, pitch) = (shape.rows as u64, shape.row_stride as u64);
    match place {
        Place::One { address, .. } => {
            on_16_bytes(address.bytes())
                && shape.batch().array_axes().into_iter().all(|axis| {
                    lines_take_vectors(
                        elem,
                        StridedItems { count: lines, stride: pitch },
                        StridedItems { count: axis.extent, stride: axis.stride },
                    )
                })
        }
        Place::List(list) => {
            list.stretches.iter().all(|stretch| on_16_bytes(stretch.address))
                && lines_take_vectors(
                    elem,
                    StridedItems { count: lines, stride: pitch },
                    StridedItems { count: 1, stride: 0 },
                )
        }
    }
}

/// Checks the transpose of a matrix operand against the transpose of a column-major C. Errors name
/// the extents and strides of the caller's matrices.
fn fits_transposed(
    operand: &EpilogueArg,
    shape: &Shape,
    rows: NamedExtent,
    cols: NamedExtent,
) -> Result<()> {
    if (shape.rows as u64, shape.cols as u64) != (rows.value, cols.value) {
        return Err(wrong_shape(&operand.name, (shape.cols, shape.rows), cols, rows));
    }
    if !shape.is_row_major() && shape.count() > 0 {
        let operand = operand.name.to_string();
        return Err(Error::OperandLayout { operand, row_stride: shape.col_stride });
    }
    Ok(())
}

/// Number of elements of a matrix, checked for overflow.
pub(super) fn elements(argument: &str, rows: NamedExtent, cols: NamedExtent) -> Result<u64> {
    let NamedExtent { name: row_name, value: rows } = rows;
    let NamedExtent { name: col_name, value: cols } = cols;
    rows.checked_mul(cols).filter(|&n| usize::try_from(n).is_ok()).ok_or_else(|| Error::TooLarge {
        what: format!("`{argument}` would have {row_name}·{col_name} = {rows}·{cols} elements"),
        limit: usize::MAX as u64,
        remedy: "Check the order of the extents: (m, n, k)",
    })
}

pub(super) fn check_exact(
    argument: &str,
    has: usize,
    rows: NamedExtent,
    cols: NamedExtent,
) -> Result<()> {
    let needed = elements(argument, rows, cols)?;
    if has as u64 == needed {
        return Ok(());
    }
    Err(wrong_extent(argument, has as u64, rows, cols, needed))
}

fn wrong_extent(
    argument: &str,
    has: u64,
    rows: NamedExtent,
    cols: NamedExtent,
    needed: u64,
) -> Error {
    let names = format!("{}·{}", rows.name, cols.name);
    let need = format!("{names} = {}·{} = {needed} are needed", rows.value, cols.value);
    Error::WrongExtent { argument: argument.to_owned(), has, need }
}

/// Error for a matrix that does not have these rows and columns.
pub(super) fn wrong_shape(
    argument: &str,
    (has_rows, has_cols): (usize, usize),
    rows: NamedExtent,
    cols: NamedExtent,
) -> Error {
    let [of_rows, of_cols] = [has_rows, has_cols].map(|extent| extent as u64);
    // All other matrices are row-major, so a transpose of them would not fit either.
    let is_transposed =
        (of_cols, of_rows) == (rows.value, cols.value) && matches!(argument, "a" | "b");
    let remedy = match is_transposed {
        true => format!(": pass `{argument}.t()`. The key `layout` does not transpose a view"),
        false => String::new(),
    };
    Error::WrongExtent {
        argument: argument.to_owned(),
        has: of_rows.saturating_mul(of_cols),
        need: format!(
            "its shape {has_rows} x {has_cols} is not {} x {} = {} x {}{remedy}",
            rows.name, cols.name, rows.value, cols.value
        ),
    }
}

/// Checks that an operand contains the matrix in the layout that the program reads. With `fits`,
/// also checks that the operand has the shape of the matrix.
pub(super) fn bind<'n, B: Backend>(
    argument: &'n str,
    operand: &'n LocatedOperand<'_, B>,
    rows: NamedExtent,
    cols: NamedExtent,
    by_column: bool,
    fits: bool,
) -> Result<BoundArray<'n, B>> {
    let needed = elements(argument, rows, cols)?;
    let has = match &operand.place {
        Place::One { len, .. } => *len,
        Place::List(_) => 0,
    };
    let shape = match operand.shape {
        Some(shape)
            if fits && (shape.rows as u64, shape.cols as u64) != (rows.value, cols.value) =>
        {
            return Err(wrong_shape(argument, (shape.rows, shape.cols), rows, cols));
        }
        Some(shape) => shape,
        None if has < needed => {
            return Err(wrong_extent(argument, has, rows, cols, needed));
        }
        None => {
            // The caller passed these extents as `usize`.
            let (rows, cols) = (rows.value as usize, cols.value as usize);
            if by_column {
                Shape::packed(cols, rows).transposed()
            } else {
                Shape::packed(rows, cols)
            }
        }
    };
    Ok(BoundArray::matrix(argument, operand.place.clone(), shape))
}

/// Extents of C as a kernel computes it, named as the extents of the caller's C.
#[derive(Clone, Copy)]
pub(super) struct ExtentsOfC {
    pub(super) rows: NamedExtent,
    pub(super) cols: NamedExtent,
    /// True if the rows are the columns of the caller's C.
    pub(super) is_transposed: bool,
    /// True if groups of rows share C.
    pub(super) has_groups: bool,
}

/// Checks that GEMMs of a batch do not share a matrix that they write.
fn one_for_each<B: Backend>(
    argument: &str,
    array: &LocatedOperand<'_, B>,
    products: Option<usize>,
) -> Result<()> {
    let is_single = array.shape.is_some_and(|shape| shape.batch.is_none());
    match products.filter(|products| is_single && *products != 1) {
        None => Ok(()),
        Some(products) => {
            let (first, other) = ((argument.to_owned(), 1), ("c".to_owned(), products));
            Err(Error::Extents { extent: Extent::BATCH, first, other })
        }
    }
}

/// Checks that an epilogue operand has all elements that the kernel reads or writes.
pub(super) fn bind_beside<'n, B: Backend>(
    operand: &'n EpilogueArg,
    array: &'n LocatedOperand<'_, B>,
    of_c: ExtentsOfC,
    products: Option<usize>,
    fits: bool,
) -> Result<BoundArray<'n, B>> {
    let ExtentsOfC { rows, cols, is_transposed, has_groups } = of_c;
    let of_batch = || NamedExtent::new("batch", products.unwrap_or(1) as u64);
    let (NamedExtent { name, value: needed }, each) = match operand.along {
        Along::Nothing => unreachable!("SgemmSpec::operands: an array has an axis"),
        Along::Mn | Along::Pairs => {
            if let Some(shape) = array.shape.filter(|_| is_transposed && fits) {
                fits_transposed(operand, &shape, rows, cols)?;
            }
            if operand.is_output() && !has_groups {
                one_for_each(&operand.name, array, products)?;
            }
            let cols = if operand.along == Along::Pairs { halved(cols) } else { cols };
            return bind(&operand.name, array, rows, cols, false, fits);
        }
        Along::BatchN => return bind(&operand.name, array, of_batch(), cols, false, fits),
        Along::BatchM => return bind(&operand.name, array, of_batch(), rows, false, fits),
        Along::Batch => (of_batch(), "matrix"),
        Along::M if operand.is_row_result() => {
            let count = products.unwrap_or(1) as u64;
            let needed = elements(&operand.name, of_batch(), rows)?;
            (
                NamedExtent {
                    name: if count == 1 { rows.name } else { "batch·m" }, value: needed
                },
                "row",
            )
        }
        // All GEMMs of a batch share the vector.
        Along::N => (cols, if is_transposed { "row" } else { "column" }),
        Along::M => (rows, if is_transposed { "column" } else { "row" }),
    };
    let (_, has) = array.array(&operand.name)?;
    if has < needed {
        return Err(Error::WrongExtent {
            argument: operand.name.to_string(),
            has,
            need: format!("{name} = {needed} are needed, one for each {each} of C"),
        });
    }
    Ok(BoundArray::vector(&operand.name, array.place.clone(), needed))
}
