//! Messages about the values in a spec of `sgemm_kernel!`: the text, and the tokens and the message
//! of each fault.

use super::Faulty;

pub(super) const SPECS: &[Faulty] = &[
    (
        "transpose_b, trans_a",
        &[
            (
                "transpose_b",
                "unknown key `transpose_b`; write `layout: nt` for a column-major B, and pass the \
                 view `b.t()`",
            ),
            (
                "trans_a",
                "unknown key `trans_a`; write `layout: tn` for a column-major A, and pass the view \
                 `a.t()`",
            ),
        ],
    ),
    (
        "type: f16",
        &[(
            "type",
            "unknown key `type`; the matrices of a GEMM have elements of type `f32`; to multiply \
             on tensor cores, write `arith`, as in `arith: bf16`",
        )],
    ),
    (
        "alpha: 0.5",
        &[("alpha", "unknown key `alpha`; write `scaled`: a call then passes alpha and beta")],
    ),
    (
        "bias, activation: gelu",
        &[
            (
                "bias",
                "unknown key `bias`; write an epilogue, such as `epilogue: |acc, bias[n]| \
                 relu(acc + bias)`",
            ),
            (
                "activation",
                "unknown key `activation`; write an epilogue, such as `epilogue: |acc, bias[n]| \
                 relu(acc + bias)`",
            ),
        ],
    ),
    ("batched", &[("batched", "unknown key `batched`; did you mean `batch`?")]),
    (
        "struct Layer; tile: 8x8x8",
        &[(
            "struct",
            "unknown key `struct`; only the macro declares a type, with `struct Name;` before the \
             first key",
        )],
    ),
    (
        "tile: +128x128x8",
        &[("+128x128x8", "`tile` takes a size MxNxK such as `128x128x8`, not `+128x128x8`")],
    ),
    (
        "tile:: 128x128x8, thread: 8x8",
        &[(":", "one `:` is enough after `tile`; leave this one out")],
    ),
    (
        "tile: : 128x128x8, thread: 8x8",
        &[(":", "one `:` is enough after `tile`; leave this one out")],
    ),
    (
        "tile: -8x8x8",
        &[("-8x8x8", "`tile: -8x8x8` is negative; use positive numbers, as in `128x128x8`")],
    ),
    (
        "tile: - 8x8x8",
        &[("- 8x8x8", "`tile: -8x8x8` is negative; use positive numbers, as in `128x128x8`")],
    ),
    ("tile: 'a", &[("'a", "`tile` takes a size MxNxK such as `128x128x8`, not `'a`")]),
    ("tile: 'a'", &[("'a'", "`tile` takes a size MxNxK such as `128x128x8`, not `'a'`")]),
    (
        "tile: 0x80x128x8",
        &[(
            "0x80x128x8",
            "`tile: 0x80x128x8` starts with `0x` like a hexadecimal number; write a size \
             MxNxK such as `128x128x8` in decimal",
        )],
    ),
    (
        "tile: 0x8",
        &[(
            "0x8",
            "`tile: 0x8` starts with `0x` like a hexadecimal number; write a size MxNxK such as \
             `128x128x8` in decimal",
        )],
    ),
    (
        "tile: 64x64x8, thread: 4x4, double-buffer",
        &[("double-buffer", "unknown key `double-buffer`; did you mean `double_buffer`?")],
    ),
    (
        "tile: 64x64x8, thread: 4x4, double buffer, pad-a: 4",
        &[
            ("double buffer", "unknown key `double buffer`; did you mean `double_buffer`?"),
            ("pad-a", "unknown key `pad-a`; did you mean `pad_a`?"),
        ],
    ),
    (
        "tile: 64x64x8, thread: 4x4, double",
        &[("double", "unknown key `double`; did you mean `double_buffer`?")],
    ),
    (
        "foo, bar: 4",
        &[
            ("foo", "unknown key `foo`; the keys of `sgemm_kernel!` are {keys}"),
            ("bar", "unknown key `bar`"),
        ],
    ),
    (
        "tile: 128x",
        &[(
            "128x",
            "`tile: 128x`: a number is missing next to an `x`; write a size MxNxK such as \
             `128x128x8`",
        )],
    ),
    (
        "tile: 0x8x8",
        &[("0x8x8", "`tile: 0x8x8` has a dimension of 0; every dimension must be at least 1")],
    ),
    (
        "tile: 8X8",
        &[(
            "8X8",
            "`tile: 8X8` has 2 dimensions, and MxNxK has 3; write a size such as `128x128x8`",
        )],
    ),
    ("tile: 1_0X8x8", &[("1_0X8x8", "`tile: 1_0X8x8` has an uppercase `X`; write `10x8x8`")]),
    (
        "tile: 8X8X0",
        &[("8X8X0", "`tile: 8X8X0` has a dimension of 0; every dimension must be at least 1")],
    ),
    (
        "tile: 1_0x8",
        &[(
            "1_0x8",
            "`tile: 1_0x8` has 2 dimensions, and MxNxK has 3; write a size such as `128x128x8`",
        )],
    ),
    (
        "tile: 8 x 8",
        &[(
            "8 x 8",
            "`tile: 8 x 8` has 2 dimensions, and MxNxK has 3; write a size such as `128x128x8`",
        )],
    ),
    (
        "tile: 8 x 8 x 0",
        &[(
            "8 x 8 x 0",
            "`tile: 8 x 8 x 0` has a dimension of 0; every dimension must be at least 1",
        )],
    ),
    ("tile: 8X8X8", &[("8X8X8", "`tile: 8X8X8` has an uppercase `X`; write `8x8x8`")]),
    (
        "tile: 1.5x2x3",
        &[(
            "1.5x2x3",
            "`tile: 1.5x2x3`: `1.5` is a fraction; use whole numbers, as in `128x128x8`",
        )],
    ),
    (
        "tile: 8x8",
        &[(
            "8x8",
            "`tile: 8x8` has 2 dimensions, and MxNxK has 3; write a size such as `128x128x8`",
        )],
    ),
    (
        "tile: 8x8x8x8",
        &[(
            "8x8x8x8",
            "`tile: 8x8x8x8` has 4 dimensions, and MxNxK has 3; write a size such as `128x128x8`",
        )],
    ),
    ("tile: 1_0x8x8", &[("1_0x8x8", "`tile: 1_0x8x8` has `_` within a number; write `10x8x8`")]),
    (
        "tile: 8x8x5000000000",
        &[(
            "8x8x5000000000",
            "`tile: 8x8x5000000000`: `5000000000` is too large; use at most 4294967295",
        )],
    ),
    (
        "tile: 8 x 8 x 8",
        &[("8 x 8 x 8", "`tile: 8 x 8 x 8` has spaces within a size; write `8x8x8`")],
    ),
    ("tile: 8 x8x8", &[("8 x8x8", "`tile: 8 x8x8` has spaces within a size; write `8x8x8`")]),
    (
        "tile: 8",
        &[("8", "`tile: 8` has 1 dimension, and MxNxK has 3; write a size such as `128x128x8`")],
    ),
    (
        "tile: 8xx8",
        &[(
            "8xx8",
            "`tile: 8xx8`: a number is missing next to an `x`; write a size MxNxK such as \
             `128x128x8`",
        )],
    ),
    (
        "tile: 8x8xe",
        &[(
            "8x8xe",
            "`tile: 8x8xe`: `e` is not a plain decimal number; use only the digits 0 to 9, as in \
             `128x128x8`",
        )],
    ),
    ("tile: big", &[("big", "`tile` takes a size MxNxK such as `128x128x8`, not `big`")]),
    (
        "thread: 0x8, tile: 8x8x8",
        &[("0x8", "`thread: 0x8` has a dimension of 0; every dimension must be at least 1")],
    ),
    (
        "items: 4",
        &[(
            "items",
            "unknown key `items`: it belongs to `reduce_kernel!`, not to `sgemm_kernel!`; leave \
             it out",
        )],
    ),
    ("aligned", &[("aligned", "unknown key `aligned`; did you mean `bounds: aligned`?")]),
    ("strided", &[("strided", "unknown key `strided`; did you mean `fragment: strided`?")]),
    ("m", &[("m", "unknown key `m`; the keys of `sgemm_kernel!` are {keys}")]),
    (
        "fragment: stride",
        &[(
            "stride",
            "`fragment` takes one of `blocked`, `strided`, `split`, `split_n`, not `stride`; did \
             you mean `strided`?",
        )],
    ),
    (
        "tile: 1e5x2x2",
        &[(
            "1e5x2x2",
            "`tile: 1e5x2x2`: `1e5` is not a plain decimal number; use only the digits 0 to 9, as \
             in `128x128x8`",
        )],
    ),
    (
        "tile: 32x32x32, prefetch, stages: 2, transpoze, pad_a: x",
        &[
            (
                "stages",
                "`stages` and `prefetch` are two pipelines, and a kernel has one; leave one of \
                 them out",
            ),
            ("transpoze", "unknown key `transpoze`; did you mean `transpose`?"),
            ("x", "`pad_a` takes a whole number, not `x`"),
        ],
    ),
];
