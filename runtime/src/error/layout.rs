//! Messages on layouts, on lists of matrices and on offsets.

use gemm_dsl::error::counted;
use std::fmt;

pub(super) fn interleaved(f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(
        "the parts of a matrix in a `cudarc` slice must be one after the other in memory, because \
         views of slices are consecutive elements: borrow one `part` after the other, or hold the \
         matrix in a `Matrix`",
    )
}

pub(super) fn list(argument: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(
        f,
        "`{argument}` is a list of matrices, but one array is needed: pass one view, which may be \
         a batch"
    )
}

pub(super) fn unlisted(list: &str, other: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(
        f,
        "`{list}` is a list of matrices, but `{other}` is not: pass a list for `{other}` too, \
         which may repeat one view for all GEMMs"
    )
}

pub(super) fn unlike(
    nth: &usize,
    what: &str,
    found: &usize,
    expected: &usize,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write!(
        f,
        "{what} is {found} in matrix {nth} of the list, but {expected} in matrix 0: all matrices \
         of a list must have the same shape and layout"
    )
}

pub(super) fn scattered(
    argument: &str,
    row_stride: &usize,
    col_stride: &usize,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write!(
        f,
        "`{argument}` is neither row-major nor column-major: its row stride is {row_stride} \
         elements, its column stride {col_stride}. Copy it to a packed matrix first"
    )
}

pub(super) fn folds_of_columns(epilogue: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(
        f,
        "C is column-major, and the epilogue `{epilogue}` folds its rows: the GEMM would compute \
         the transpose of C, whose rows are the columns. Pass a row-major C"
    )
}

pub(super) fn pairs_of_rows(epilogue: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(
        f,
        "C is column-major, and the epilogue `{epilogue}` computes pairs of columns: the GEMM \
         would compute the transpose of C, where they are pairs of rows. Pass a row-major C"
    )
}

pub(super) fn odd_columns(
    argument: &str,
    columns: &usize,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let columns = counted(*columns as u64, "column");
    write!(
        f,
        "`{argument}` has {columns}, and the epilogue computes pairs of columns, which need an \
         even number: pad `{argument}` and C to an even number"
    )
}

pub(super) fn short_pitch(pitch: &usize, cols: &usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let row = counted(*cols as u64, "element");
    write!(f, "a row stride of {pitch} is less than the {row} of a row: use at least {cols}")
}

pub(super) fn several_rows(rows: &usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let rows = counted(*rows as u64, "row");
    write!(f, "a matrix of {rows} has no single row to repeat: select one row with `part`")
}

pub(super) fn backwards(
    index: &usize,
    offset: &u64,
    before: &u64,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write!(
        f,
        "the offsets of segments must ascend: offset {index} is {offset}, but the one before it is \
         {before}. Segment i begins at offset i and ends before offset i + 1"
    )
}

pub(super) fn operand_layout(
    operand: &str,
    row_stride: &usize,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write!(
        f,
        "C is column-major, but neighbours in a column of `{operand}` are {row_stride} elements \
         apart. A matrix operand has the layout of C: copy `{operand}` to a column-major matrix, \
         or use a row-major C"
    )
}

pub(super) fn uneven_rows(
    argument: &str,
    row_stride: &usize,
    step: &i128,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write!(
        f,
        "the rows of `{argument}` have no common stride: it is {row_stride} elements within a \
         matrix, but {step} from the last row of a matrix to the first row of the next. Launch \
         once for each matrix, or copy the matrices to a packed batch"
    )
}
