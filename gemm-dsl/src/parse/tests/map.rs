//! Specs of `map_kernel!`: canonical texts, and the messages of faults.

use super::Faulty;

/// Canonical texts: each is printed as it is read.
pub(super) const CANONICAL: &[&str] = &[
    "|x[m, n]| relu(x)",
    "|x[m, n]: bf16, v[n], w[m]: f16, s: f64| -> bf16 f32(s) * x * v * w",
    "|x[m, n]| { let t = x * x; (t, exp(t)) }, block: 128, items: 2",
    "|x[m, n]| -> (f32, i32) (x, if x > 0.0 { 1 } else { 0 }), name: sign",
    "|x[m, n]| (x + 1.0) * x, type: f64",
    "|| row * n + col, type: i64",
    "|x[m, n]| -> (f32, f32[m]) { let s = sum(x); (x / s, s) }",
    "|x[m, n]: bf16| -> f32[m] max(abs(x)), block: 64",
];

/// Other texts, each with its canonical text.
pub(super) const WRITTEN: &[(&str, &str)] = &[
    ("map: |x[m,n]| x", "|x[m, n]| x"),
    ("name: a, block: 128, map: |x[m, n]| (x)", "|x[m, n]| x, name: a, block: 128"),
    ("|x[m, n]| -> (f32) { (x) }, type: f32,", "|x[m, n]| -> f32 x"),
    ("<|x[m, n]| (x, x,)>", "|x[m, n]| (x, x)"),
    ("|x[m, n]| -> f32[m, n] x - (sum(x))", "|x[m, n]| -> f32 x - sum(x)"),
];

pub(super) const SPECS: &[Faulty] = &[
    (
        "|x[m, n]| -> f32[m] x - sum(x)",
        &[(
            "x - sum(x)",
            "this value may differ between the columns of a row, and `f32[m]` is one value for \
             each row; fold it, as in `sum(x)`, or leave `[m]` out",
        )],
    ),
    (
        "|x[m, n]| -> f32[n] sum(x)",
        &[(
            "[n]",
            "a result has an element at each row and column, as `f32` or `f32[m, n]`, or one for \
             each row, as `f32[m]`",
        )],
    ),
    (
        "block: 128",
        &[(
            "",
            "there is no expression; begin with one, such as `|x[m, n], bias[n]| relu(x + bias)`",
        )],
    ),
    (
        "|x[m, n]| x, map: |y[m, n]| y",
        &[("map", "`map` is given twice, first as `map: |x[m, n]| x`; leave one out")],
    ),
    ("|x[n, m]| x", &[("x[n, m]", "an operand is one of `x`, `x[n]`, `x[m]`, `x[m, n]`")]),
    (
        "|x[m, n]: half| x",
        &[(
            "half",
            "expected an element type, found `half`; write `f32`, `f64`, `f16`, `bf16`, `i8`, \
             `u8`, `i32`, `u32` or `i64`",
        )],
    ),
    (
        "|x[m, n]: u64| f32(x)",
        &[(
            "x[m, n]: u64",
            "`x` is a u64, and expressions compute signed 64-bit integers; use i64",
        )],
    ),
    (
        "|x[m, n], s: f16| x * s",
        &[(
            "s: f16",
            "`s` is a number, and a number is an f32, f64, i32, u32 or i64, not f16; write \
             `s: f32`",
        )],
    ),
    (
        "|x[m, n]| -> (f32, f32) x",
        &[(
            "|x[m, n]| -> (f32, f32) x",
            "`->` states 2 types, and the expression has 1 result; state a type for each result, \
             or leave `->` out",
        )],
    ),
    (
        "|x[m, n]| (x, col)",
        &[("col", "a result must be an f32, but this is an integer; write `f32(col)`")],
    ),
    (
        "|x[m, n]| -> i32 x",
        &[(
            "x",
            "a result must be an integer, but this is an f32; state its type, as in `|…| -> f32 …`",
        )],
    ),
    (
        "|x[m, n], y[m, n]| x",
        &[("y[m, n]", "`y` is never read; read it, or write `_y` to ignore it")],
    ),
    (
        "|output_1[m, n]| (output_1, output_1)",
        &[(
            "output_1[m, n]",
            "`output_1` is the name of a result; use another name, such as `output_1_value`",
        )],
    ),
    (
        "|x[m, n]| (x, x, x, x, x)",
        &[("x", "`map` returns at most 4 values; leave out this one and the rest")],
    ),
    (
        "|x[m, n]| x, block: 100",
        &[("100", "`block: 100`: a block has a multiple of 32 threads, from 32 to 1024; use 128")],
    ),
    (
        "|x[m, n], y[m, n]| x + y, items: 40",
        &[(
            "40",
            "`items: 40`: a thread would hold 40 items of 48 bytes = 1920 bytes in registers, more \
             than 512; use `items: 10`",
        )],
    ),
    (
        "|x[m, n]| x, tile: 8x8x8",
        &[(
            "tile",
            "unknown key `tile`: it belongs to `sgemm_kernel!`, not to `map_kernel!`; leave it out",
        )],
    ),
];
