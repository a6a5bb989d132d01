//! Error messages for GEMMs that multiply staged tiles on CUDA cores.

use crate::error::SpecError;
use crate::plan::messages::{of_both, remainders};
use crate::spec::{Fragment, Order, Rect, SgemmSpec, Tile};

pub(crate) fn fragment_of_one(fragment: Fragment) -> SpecError {
    SpecError::at_key(
        &["fragment", "thread"],
        format!(
            "`fragment: {fragment}` has no effect: a thread computes one element; use a larger \
             `thread` such as `thread: 4x4`, or leave `fragment` out"
        ),
    )
}

pub(crate) fn transpose_of_nothing() -> SpecError {
    SpecError::at_key(
        &["transpose", "layout"],
        "`transpose` has no effect: under `layout: tn` A is already contiguous along M, and B \
         along N; leave it out"
            .into(),
    )
}

pub(crate) fn swizzle_of_nothing() -> SpecError {
    SpecError::at_key(
        &["swizzle", "layout", "transpose"],
        "`swizzle` has no effect: it permutes the vectors of K-major tiles, and with this \
         `layout` and `transpose` no tile is K-major; leave it out"
            .into(),
    )
}

pub(crate) fn swizzle_beside_padding(key: &'static str) -> SpecError {
    SpecError::at_key(
        &[key, "swizzle"],
        format!(
            "`{key}` and `swizzle` are two ways to spread the rows of one tile over the banks; \
             leave one of them out"
        ),
    )
}

/// `least` is the least K.
pub(crate) fn swizzle_of_row(k: u32, least: u32) -> SpecError {
    let next = u64::from(k.max(least)).next_power_of_two();
    SpecError::at_value(
        &["tile", "swizzle"],
        format!(
            "`swizzle` permutes a row's 16-byte vectors; K must be a power of two, at least \
             {least}, but K = {k}; use K = {next}"
        ),
    )
}

pub(crate) fn order_of_one_line(order: Order, thread: Rect) -> SpecError {
    SpecError::at_key(
        &["order", "thread"],
        format!(
            "`order: {order}` has no effect: the elements of `thread: {thread}` form one row or \
             column, which every order visits in the same way; use a `thread` with more rows and \
             columns, or leave `order` out"
        ),
    )
}

pub(crate) fn spread_without_stages() -> SpecError {
    SpecError::at_key(
        &["spread", "stages"],
        "`spread` has no effect: it spreads the asynchronous copies of `stages`; add `stages: 3`, \
         or leave `spread` out"
            .into(),
    )
}

pub(crate) fn thread_does_not_divide(tile: Tile, thread: Rect) -> SpecError {
    SpecError::at_value(
        &["thread", "tile"],
        format!(
            "`thread: {thread}` does not divide `tile: {tile}`: {}; use divisors of {} for \
             `thread`",
            remainders([("rows", tile.m, thread.m), ("columns", tile.n, thread.n)]),
            of_both(tile.m, tile.n),
        ),
    )
}

pub(crate) fn warp_does_not_divide(tile: Tile, warp: Rect) -> SpecError {
    SpecError::at_value(
        &["warp", "tile"],
        format!(
            "`warp: {warp}` does not divide `tile: {tile}`: {}; use divisors of {} for `warp`",
            remainders([("rows", tile.m, warp.m), ("columns", tile.n, warp.n)]),
            of_both(tile.m, tile.n),
        ),
    )
}

pub(crate) fn thread_does_not_divide_warp(warp: Rect, thread: Rect) -> SpecError {
    SpecError::at_value(
        &["warp", "thread", "arith"],
        format!(
            "`thread: {thread}` does not divide `warp: {warp}`: {}; use multiples of {} for \
             `warp`",
            remainders([("rows", warp.m, thread.m), ("columns", warp.n, thread.n)]),
            of_both(thread.m, thread.n),
        ),
    )
}

/// `better` is a valid warp tile, if there is one.
pub(crate) fn warp_lanes(warp: Rect, thread: Rect, better: Option<(u64, u64)>) -> SpecError {
    let (m, n) = (warp.m / thread.m, warp.n / thread.n);
    let lanes = u64::from(m) * u64::from(n);
    let remedy = match better {
        Some((m, n)) => format!("use a warp tile of 32 thread tiles, such as `warp: {m}x{n}`"),
        None => "no arrangement of 32 such thread tiles divides the block tile; leave `warp` out, \
                 or change `thread`"
            .to_owned(),
    };
    SpecError::at_value(
        &["warp", "thread", "arith"],
        format!(
            "`warp: {warp}` with `thread: {thread}` is ({}/{}) · ({}/{}) = {m} · {n} = {lanes} \
             lanes, and a warp has 32; {remedy}",
            warp.m, thread.m, warp.n, thread.n,
        ),
    )
}

pub(crate) fn split_thread(thread: Rect) -> SpecError {
    SpecError::at_value(
        &["fragment", "thread"],
        format!(
            "`fragment: split` divides the rows and columns of `thread: {thread}` into vectors of \
             four: {}; use multiples of 4 such as `thread: 8x8`, or another `fragment`",
            remainders([("rows", thread.m, 4), ("columns", thread.n, 4)]),
        ),
    )
}

pub(crate) fn split_columns(thread: Rect) -> SpecError {
    SpecError::at_value(
        &["fragment", "thread"],
        format!(
            "`fragment: split_n` divides the columns of `thread: {thread}` into vectors of four: \
             {} mod 4 = {}; use a multiple of 4 such as `thread: 8x8`, or another `fragment`",
            thread.n,
            thread.n % 4,
        ),
    )
}

pub(crate) fn spread_beyond_tile(spec: &SgemmSpec, steps: u32, most: u32) -> SpecError {
    let (spread, part) = (spec.spread, part_of_k(spec));
    let last = if most < steps { ", and the last waits instead of copying" } else { "" };
    SpecError::at_value(
        &["spread", "tile"],
        format!(
            "`spread: {spread}`: a {part} has only {steps} steps along K{last}; use {most} or less"
        ),
    )
}

/// Returns the part of a tile whose steps along K one thread takes.
fn part_of_k(spec: &SgemmSpec) -> &'static str {
    if spec.slices > 1 { "slice" } else { "tile" }
}

pub(crate) fn stages_on_odd_tile(k: u32, even: u32, slices: u32) -> SpecError {
    let steps = match slices {
        1 => "steps".to_owned(),
        _ => format!("steps for each of {slices} slices"),
    };
    SpecError::at_value(
        &["tile", "stages", "slices"],
        format!(
            "`stages` alternates between two fragments from one step along K to the next, and a \
             tile with K = {k} has an odd number of {steps}; use K = {even}"
        ),
    )
}

pub(crate) fn slices_of_tile(slices: u32, k: u32) -> SpecError {
    SpecError::at_value(
        &["slices", "tile"],
        format!(
            "`slices: {slices}` does not divide the {k} steps along K of a tile: {k} mod {slices} \
             = {}; use a divisor of {k}",
            k % slices.max(1),
        ),
    )
}

pub(crate) fn unroll_with_stages() -> SpecError {
    SpecError::at_key(
        &["unroll", "stages"],
        "`unroll` has no effect: `stages` unrolls the steps along K of a tile, which alternate \
         between two fragments; leave `unroll` out"
            .to_owned(),
    )
}

pub(crate) fn partials_of_tile(spec: &SgemmSpec, steps: u32) -> SpecError {
    let (partials, part) = (spec.partials, part_of_k(spec));
    SpecError::at_value(
        &["partials", "tile"],
        format!(
            "`partials: {partials}` does not divide the {steps} steps along K of a {part}: {steps} \
             mod {partials} = {}; use a divisor of {steps}",
            steps % partials.max(1),
        ),
    )
}
