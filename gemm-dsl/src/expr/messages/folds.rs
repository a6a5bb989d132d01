//! Messages about folds over rows.

use crate::error::SpecError;
use crate::expr::tree::{FoldOp, NodeSpan};
use crate::expr::{ExprScope, Type, Typing};

/// Reports a fold in a scope without rows.
pub(crate) fn no_folds(scope: &ExprScope, at: NodeSpan, op: FoldOp) -> SpecError {
    let (key, name) = (scope.key, op.name());
    let rows = "`row_kernel!` or `reduce_kernel!`";
    let message = match op.is_function() {
        true => format!(
            "`{name}` takes 2 operands, not 1: `{name}(a, b)`; to fold the rows, use {rows}"
        ),
        false => format!(
            "`{name}` folds a row, and `{key}` computes one element; to fold the rows, use {rows}"
        ),
    };
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn fold_arity(key: &'static str, at: NodeSpan, op: FoldOp, given: usize) -> SpecError {
    let name = op.name();
    let sign = if op == FoldOp::Prod { "*" } else { "+" };
    let several = if given == 0 { "" } else { &format!("; of several values, `a {sign} b`") };
    let message = format!("`{name}` folds one value over a row, not {given}: `{name}(x)`{several}");
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn fold_of_boolean(
    key: &'static str,
    at: NodeSpan,
    op: FoldOp,
    suggestion: &str,
) -> SpecError {
    let name = op.name();
    let message = format!("`{name}` folds numbers, but this is a boolean; write `{suggestion}`");
    SpecError::at_tokens(key, at, message)
}

/// Reports a fold of integers that may exceed 64 bits.
pub(crate) fn fold_overflow(
    key: &'static str,
    at: NodeSpan,
    op: FoldOp,
    typing: &Typing,
) -> SpecError {
    let name = op.name();
    let float = typing.float.name();
    let limit = match (op, typing.result) {
        (FoldOp::Prod, _) => format!("fold floats, as in `{name}({float}(x))`"),
        (_, Type::Int) => format!("limit its value, as in `{name}(clamp(x, -1000, 1000))`"),
        _ => format!("fold floats, as in `{name}({float}(x))`"),
    };
    let message = format!("the `{name}` of 2^31 integers may overflow 64 bits; {limit}");
    SpecError::at_tokens(key, at, message)
}
