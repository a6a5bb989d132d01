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

pub(crate) fn fold_of_integer(key: &'static str, at: NodeSpan, op: FoldOp) -> SpecError {
    let message =
        format!("`{key}` folds floats, but this is an integer; write `{}(f32(…))`", op.name());
    SpecError::at_tokens(key, at, message)
}

/// Reports the fold of a value that depends on a fold.
pub(crate) fn fold_of_fold(key: &'static str, at: NodeSpan, op: FoldOp) -> SpecError {
    let message = format!(
        "`{}` folds a value that depends on another fold, which is known only after the GEMM; \
         fold C with `row_kernel!` instead",
        op.name()
    );
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn fold_in_if(key: &'static str, at: NodeSpan, op: FoldOp) -> SpecError {
    let name = op.name();
    let message = format!(
        "`{name}` folds all columns of a row, so it cannot depend on an `if`; define it before, as \
         in `let s = {name}(…);`, or fold the `if` itself"
    );
    SpecError::at_tokens(key, at, message)
}

/// Reports a name with a value for each element beside a fold. `at` is the name.
pub(crate) fn fold_in_element(key: &'static str, at: NodeSpan, name: &str) -> SpecError {
    let message = format!(
        "`{name}` differs between elements, and the folds of this value are known only after the \
         GEMM; outside of folds, the value may read numbers, `m`, `n` and `k`. To compute elements \
         from folds, pass C to `row_kernel!`"
    );
    SpecError::at_tokens(key, at, message)
}

/// Reports a fold as the value of C.
pub(crate) fn fold_first(key: &'static str, at: NodeSpan) -> SpecError {
    let message = "the first value is stored in C and needs one for each element, but this is a \
                   fold of each row; write a tuple such as `(acc, sum(acc * acc))`. A minimum or \
                   maximum of two values is `max(a, b)`";
    SpecError::at_tokens(key, at, message.to_owned())
}

pub(crate) fn many_folds(key: &'static str, at: NodeSpan, most: usize) -> SpecError {
    let message = format!(
        "`{key}` has at most {most} different folds, each of which takes a register; fold C with \
         `row_kernel!` for more"
    );
    SpecError::at_tokens(key, at, message)
}
