//! Checks of epilogues that are computed once for each pair of columns.

use crate::error::SpecError;
use crate::plan::Faults;
use crate::spec::{Arith, Fragment, Pairs, Rect, SgemmSpec};

/// Rejects kernels whose threads do not have both columns of a pair, and keys that need a C of n
/// columns.
pub(super) fn check(spec: &SgemmSpec, faults: &mut Faults) {
    if spec.pairs() == Pairs::None {
        return;
    }
    if spec.scaled && spec.pairs() == Pairs::One {
        faults.0.push(scaled());
    }
    // On tensor cores, a thread has adjacent pairs of columns.
    if spec.arith != Arith::F32 {
        return;
    }
    if spec.tile.is_none() && !spec.is_direct() {
        faults.0.push(one_column());
    } else if spec.fragment == Fragment::Strided {
        faults.0.push(strided());
    } else if faults.sound(&["thread"]) {
        faults.require(spec.thread.n.is_multiple_of(2), || odd_columns(spec.thread));
    }
}

fn scaled() -> SpecError {
    SpecError::at_key(
        &["scaled", "epilogue"],
        "`scaled` adds beta·C to each of the n columns of A·B, but this epilogue stores one value \
         for each pair of columns, so C has n / 2 columns; pass the factor as an operand, as in \
         `epilogue: |acc, factor| factor * acc * next(acc)`, or store both columns with `pair`. A \
         call of `sgemm` that sets `alpha` or `beta` is `scaled`"
            .into(),
    )
}

fn one_column() -> SpecError {
    SpecError::at_value(
        &["epilogue", "thread"],
        "`next` and `pair` need both columns of a pair in one thread, and a thread of this kernel \
         computes one element at a time; add a thread tile, such as `thread: 1x2`, or a tile, such \
         as `tile: 64x64x8, thread: 4x4`"
            .into(),
    )
}

fn strided() -> SpecError {
    SpecError::at_value(
        &["fragment", "epilogue"],
        format!(
            "`next` and `pair` need both columns of a pair in one thread, and the columns of a \
             thread are not adjacent under `fragment: {}`; leave `fragment` out, or use `fragment: \
             {}`",
            Fragment::Strided,
            Fragment::Split
        ),
    )
}

fn odd_columns(thread: Rect) -> SpecError {
    let Rect { m, n } = thread;
    SpecError::at_value(
        &["thread", "epilogue"],
        format!(
            "`thread: {m}x{n}`: `next` and `pair` need both columns of a pair in one thread, and \
             {n} is odd; use an even number of columns, such as `thread: {m}x{}`",
            u64::from(n) + 1
        ),
    )
}
