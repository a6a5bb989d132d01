//! Messages about pairs of columns.

use crate::error::{SpecError, clip, counted};
use crate::expr::tree::{ClosureParam, NodeSpan};

/// Reports a wrong number of operands of `next` or `pair`.
pub(crate) fn pair_arity(key: &'static str, at: NodeSpan, name: &str, given: usize) -> SpecError {
    let form = match name {
        "next" => "it takes one: `next(x)` reads `x` in the odd column of a pair",
        _ => {
            "it takes two: `pair(x, y)` has a value for the even column and one for the odd column"
        }
    };
    let given = counted(given as u64, "operand");
    SpecError::at_tokens(key, at, format!("`{name}` has {given}, and {form}"))
}

/// Reports a `pair` that is not a value of the closure.
pub(crate) fn pair_inside(key: &'static str, at: NodeSpan) -> SpecError {
    let message = "`pair` has two values, so it is not an operand; write `pair(x, y)` at the end \
                   of the closure, or as a value of the tuple there, and the rest inside of it, as \
                   in `pair(2.0 * x, 2.0 * y)`";
    SpecError::at_tokens(key, at, message.to_owned())
}

/// Reports an odd column inside of another `next`.
pub(crate) fn next_of_next(key: &'static str, at: NodeSpan) -> SpecError {
    let message = "this reads the odd column already, and a pair has no third column; leave out \
                   one of the two `next`";
    SpecError::at_tokens(key, at, message.to_owned())
}

/// Reports a value that is the same in both columns.
pub(crate) fn next_of_constant(key: &'static str, at: NodeSpan, of: &str) -> SpecError {
    let message =
        format!("`{}` is the same in both columns of a pair; write it without `next`", clip(of));
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn next_of_fold(key: &'static str, at: NodeSpan) -> SpecError {
    let message = "a fold has one value for a row, which is the same in both columns of a pair; \
                   write it without `next`, or read the odd column inside of the fold, as in \
                   `sum(next(acc))`";
    SpecError::at_tokens(key, at, message.to_owned())
}

pub(crate) fn pair_of_fold(key: &'static str, at: NodeSpan) -> SpecError {
    let message = "`pair` is stored in two columns, and a fold has one value for a row; write the \
                   folds as values of a tuple, as in `(pair(x, y), sum(x + y))`";
    SpecError::at_tokens(key, at, message.to_owned())
}

/// Reports C before the launch as an operand of an epilogue that stores one value for each pair.
pub(crate) fn output_of_pairs(key: &'static str, param: &ClosureParam) -> SpecError {
    let message = format!(
        "`{param}` has a value for each of n columns, and the first value stores one for each pair \
         of columns, so C has n / 2 columns; store both columns with `pair(x, y)`, or pass the \
         previous values as another operand"
    );
    SpecError::at_tokens(key, param.at, message)
}
