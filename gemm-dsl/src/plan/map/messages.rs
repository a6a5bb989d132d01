//! Messages for invalid specs of elementwise kernels.

use crate::error::{SpecError, counted};
use crate::expr::NodeSpan;
use crate::ir::Elem;
use crate::target::arch::{BLOCK_THREADS, WARP};

pub(crate) fn no_expression() -> SpecError {
    SpecError::at_value(
        &["map"],
        "there is no expression; begin with one, such as `|x[m, n], bias[n]| relu(x + bias)`"
            .to_owned(),
    )
}

pub(crate) fn wrong_block(block: u32) -> SpecError {
    let remedy = match block {
        0 => "use 256".to_owned(),
        BLOCK_THREADS.. => format!("use {BLOCK_THREADS} or less"),
        block => format!("use {}", block.next_multiple_of(WARP)),
    };
    SpecError::at_value(
        &["block"],
        format!(
            "`block: {block}`: a block has a multiple of {WARP} threads, from {WARP} to \
             {BLOCK_THREADS}; {remedy}"
        ),
    )
}

pub(crate) fn too_many_items(items: u32, bytes: u64, most: u64) -> SpecError {
    let held = u64::from(items) * bytes;
    SpecError::at_value(
        &["items"],
        format!(
            "`items: {items}`: a thread would hold {items} items of {bytes} bytes = {held} bytes \
             in registers, more than {most}; use `items: {}`",
            (most / bytes).max(1)
        ),
    )
}

pub(crate) fn result_types(stated: usize, count: usize) -> SpecError {
    SpecError::at_value(
        &["map"],
        format!(
            "`->` states {}, and the expression has {}; state a type for each result, or leave \
             `->` out",
            counted(stated as u64, "type"),
            counted(count as u64, "result")
        ),
    )
}

pub(crate) fn row_result_without_fold(elem: Elem) -> SpecError {
    SpecError::at_value(
        &["map"],
        format!(
            "`-> {elem}[m]` is one value for each row, and the expression folds no row; fold one, \
             as in `sum(x)`, or leave `[m]` out"
        ),
    )
}

pub(crate) fn varying_row_result(at: NodeSpan, elem: Elem) -> SpecError {
    SpecError::at_tokens(
        "map",
        at,
        format!(
            "this value may differ between the columns of a row, and `{elem}[m]` is one value for \
             each row; fold it, as in `sum(x)`, or leave `[m]` out"
        ),
    )
}

pub(crate) fn no_columns() -> SpecError {
    SpecError::at_value(
        &["map"],
        "no operand or result has the index `[m, n]`, so a row has no number of columns; add an \
         operand such as `x[m, n]`"
            .to_owned(),
    )
}

pub(crate) fn operand_of_u64(at: NodeSpan, name: &str) -> SpecError {
    SpecError::at_tokens(
        "map",
        at,
        format!("`{name}` is a u64, and expressions compute signed 64-bit integers; use i64"),
    )
}

pub(crate) fn result_of_u64() -> SpecError {
    SpecError::at_value(
        &["map", "type"],
        "a result is a u64, and expressions compute signed 64-bit integers; use i64".to_owned(),
    )
}

pub(crate) fn narrow_number(at: NodeSpan, name: &str, elem: Elem) -> SpecError {
    let wide = if elem.is_float() { Elem::F32 } else { Elem::I32 };
    SpecError::at_tokens(
        "map",
        at,
        format!(
            "`{name}` is a number, and a number is an f32, f64, i32, u32 or i64, not {elem}; write \
             `{name}: {wide}`"
        ),
    )
}

pub(crate) fn name_of_result(at: NodeSpan, name: &str) -> SpecError {
    SpecError::at_tokens(
        "map",
        at,
        format!("`{name}` is the name of a result; use another name, such as `{name}_value`"),
    )
}
