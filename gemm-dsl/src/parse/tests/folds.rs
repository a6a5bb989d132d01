//! Messages about the operators and types of a reduction: each names a valid alternative.

use super::Faulty;

pub(super) const SPECS: &[Faulty] = &[
    (
        "map: |output| output",
        &[(
            "output",
            "`output` is the name of a result; use another name for the array, such as `output_in`",
        )],
    ),
    (
        "op: mean_var, map: |x, var| x + var",
        &[(
            "var",
            "`var` is the name of a result; use another name for the array, such as `var_in`",
        )],
    ),
    (
        "over: segments, map: |offsets| offsets * 2.0",
        &[(
            "offsets",
            "`offsets` is the name of the array of segment offsets; use another name for the \
             array, such as `offsets_in`",
        )],
    ),
    (
        "type: u8, acc: i32, op: max, compensated",
        &[(
            "compensated",
            "`compensated` has no effect: only the rounding of sums is compensated; leave \
             `compensated` out",
        )],
    ),
    (
        "type: u32, acc: i32",
        &[(
            "i32",
            "`acc: i32` cannot hold every `u32`; convert the elements with a `map`, or use `acc: \
             u32`, `acc: i64`, `acc: u64`, `acc: f32` or `acc: f64`",
        )],
    ),
    (
        "op: logsumexp, type: i8",
        &[(
            "logsumexp",
            "`op` computes with floating-point numbers, and these elements are folded in `i32`; \
             add `acc: f32`",
        )],
    ),
    (
        "op: logsumexp, acc: f64",
        &[(
            "logsumexp",
            "`op: logsumexp` folds in `f32`, the type in which it computes exponentials; use `acc: \
             f32`",
        )],
    ),
    (
        "op: logsumexp, type: f64",
        &[(
            "logsumexp",
            "`op: logsumexp` folds in `f32`, the type in which it computes exponentials; use `acc: \
             f32` with a `map` such as `|x| f32(x)`",
        )],
    ),
    (
        "op: argmax, result: u64",
        &[(
            "result",
            "`result` has no effect: the result of `op` is an index or a boolean; leave \
             `result` out",
        )],
    ),
    (
        "type: i32, fold: |a, b| max(a, b), identity: 3000000000",
        &[(
            "3000000000",
            "the identity 3000000000 is out of range for `i32`, which holds -2147483648 to \
             2147483647; use a number in this range",
        )],
    ),
    (
        "over: columns, group: 1, coarsen: 65",
        &[(
            "65",
            "1 items · 65 = 65 elements are more than the 64 that a thread holds in its registers \
             at once; use `coarsen: 64` or less",
        )],
    ),
    (
        "over: columns, block: 64, coarsen: 64, op: mean_var, blocks: 2",
        &[(
            "64",
            "a block needs 64 threads · 64 columns · 12 bytes + 16 for the block's ticket = 49168 \
             bytes of shared memory, and has at most 49152; use a smaller block, or fewer columns \
             per thread",
        )],
    ),
    (
        "over: columns, block: 128, coarsen: 64, op: mean_var",
        &[(
            "128",
            "a block needs 128 threads · 64 columns · 12 bytes = 98304 bytes of shared memory, and \
             has at most 49152; use a smaller block, or fewer columns per thread",
        )],
    ),
    (
        "over: rows, group: 256, blocks: 65536",
        &[("65536", "`blocks: 65536`: a grid has at most 65535 blocks along y; use 65535 or less")],
    ),
    (
        "over: segments, launch: once",
        &[(
            "launch",
            "`launch` has no effect: one block folds a result unless `blocks` or `run` is given; \
             leave `launch` out",
        )],
    ),
    (
        "type: i32, map: |x| f32(x) * 0.5",
        &[("f32(x) * 0.5", "`map` must return an integer, but this is an f32; use `acc: f32`")],
    ),
    (
        "type: f64, acc: i64, map: |x| x",
        &[("x", "`map` must return an integer, but this is an f64; use `acc: f64`")],
    ),
    (
        "type: i32, finish: |s, len| f32(s) / f32(len)",
        &[(
            "f32(s) / f32(len)",
            "`finish` must return an integer, but this is an f32; use `result: f32`",
        )],
    ),
    (
        "type: i32, finish: |s, len| f64(s) / f64(len)",
        &[(
            "f64(s) / f64(len)",
            "`finish` must return an integer, but this is an f64; use `result: f64`",
        )],
    ),
    (
        "type: i32, fold: |a, b| max(a, b), identity: 0.0",
        &[(
            "0.0",
            "`identity` must be an integer, but this is an f32; write a whole number, or use \
             `acc: f32`",
        )],
    ),
    (
        "fold: |a, b| a + b, identity: true",
        &[(
            "true",
            "`true` is not a known name; `identity` takes a number, such as `0.0`, or `0` for \
             integers",
        )],
    ),
    (
        "fold: |a, b| max(a, b), identity: f32::NEG_INFINITY",
        &[("::", "paths with `::` are not supported; write minus infinity as `-1.0 / 0.0`")],
    ),
    (
        "acc: i32",
        &[(
            "i32",
            "`acc: i32` cannot hold every `f32`; add a `map` that returns integers, such as `|x| \
             if x > 0.0 { 1 } else { 0 }`, or use `acc: f32` or `acc: f64`",
        )],
    ),
];

/// Specs that follow the remedies above, and specs at the limits.
pub(super) const SOUND: &[&str] = &[
    "map: |output_in| output_in",
    "map: |mean| mean",
    "map: |offsets| offsets",
    "type: u8, acc: i64",
    "type: u32, acc: i64",
    "type: u8, acc: i32",
    "op: logsumexp, type: i8, acc: f32",
    "op: logsumexp, type: f64, acc: f32, map: |x| f32(x)",
    "op: argmax, index: u64",
    "type: i32, fold: |a, b| max(a, b), identity: -2147483648",
    "over: columns, group: 1, coarsen: 64",
    "over: columns, block: 64, coarsen: 64, op: mean_var",
    "over: rows, group: 256, blocks: 65535",
    "type: i32, acc: f32, map: |x| f32(x) * 0.5",
    "type: f64, acc: f64, map: |x| x",
    "type: i32, result: f32, finish: |s, len| f32(s) / f32(len)",
    "type: i32, result: f64, finish: |s, len| f64(s) / f64(len)",
    "type: i32, fold: |a, b| max(a, b), identity: 0",
    "type: i32, acc: f32, fold: |a, b| max(a, b), identity: 0.0",
    "fold: |a, b| a + b, identity: 0.0",
    "fold: |a, b| max(a, b), identity: -1.0 / 0.0",
    "acc: i32, map: |x| if x > 0.0 { 1 } else { 0 }",
    "acc: f64",
];
