//! Messages of the faults of a table, with the tokens that they mark.

use super::{Faulty, faults, read, tokens};

const NO_ELSE: &str =
    "a table needs a rule for problems that match no condition; add `else => …` at the end";
const TWO_SUMS: &str = "`partials: 2` computes several partial sums per element, but rules of an \
                        `invariant` table compute one sum, in ascending K; leave `partials` or \
                        `invariant` out";
const BY_LANES: &str = "`lanes: k` computes several partial sums per element, but rules of an \
                        `invariant` table compute one sum, in ascending K; leave `lanes` or \
                        `invariant` out";
const BY_SLICES: &str = "`slices: 2` computes several partial sums per element, but rules of an \
                         `invariant` table compute one sum, in ascending K; leave `slices` or \
                         `invariant` out";
const BY_PARTS: &str = "the epilogue folds the rows of C in parts that depend on the tile, but all \
                        rules of an `invariant` table give the same bits; leave the fold or \
                        `invariant` out, or fold C with `row_kernel!`";
const LATE: &str = "`invariant` applies to all rules; move it before the first one";
const TWICE: &str = "`invariant` is given already; leave this one out";
const LATE_CLASS: &str = "`accuracy` applies to all rules; move it before the first one";
const CLASS_TWICE: &str = "`accuracy` is given already; leave this one out";
const BY_ARITH: &str = "`arith: bf16x6` computes several partial sums per element, but rules of an \
                        `invariant` table compute one sum, in ascending K; leave `arith` or \
                        `invariant` out";
const NEEDS_BOUND: &str = "`arith: bf16x6` rounds differently from `f32`, so the result would \
                           depend on the rule that is chosen; add `accuracy: bound;` before the \
                           rules, or leave `arith` out";
const NEEDS_NORM: &str = "`arith: f16x3` rounds differently from `f32`, so the result would depend \
                          on the rule that is chosen; add `accuracy: norm;` before the rules, or \
                          leave `arith` out";
const ROUNDED: &str = "`arith: bf16` rounds A and B, so the result would depend on the rule that \
                       is chosen; no table allows this: leave `arith` out, or use a separate \
                       kernel";
/// Message about an argument of `waves`, in place of `TILE` and the argument.
const TILE: &str = "`waves` takes a tile, as in `waves(128x256)`, but found `ARGUMENT`; rows and \
                    columns must be from 1 to 4294967295";

const ALWAYS: &str = "this condition is always true, so later rules are never reached; write \
                      `else` instead, as the last rule";
const NEVER: &str = "this condition is never true; leave the rule out";
const NONE_LEFT: &str = "this rule is never reached: earlier rules match all of its problems; \
                         leave this rule out, or move it up";

const TABLES: &[Faulty] = &[
    ("m <= 8 => ; m <= 4 => ; else =>", &[("m <= 4", NONE_LEFT)]),
    (
        "m <= 8 || n <= 8 => ; n == 8 && aligned => ; 8 > m => ; else =>",
        &[("n == 8 && aligned", NONE_LEFT), ("8 > m", NONE_LEFT)],
    ),
    ("m < 8 => ; m >= 8 => ; else =>", &[("else", NONE_LEFT)]),
    ("aligned => ; !aligned => ; m > 5 => ; else =>", &[("m > 5", NONE_LEFT), ("else", NONE_LEFT)]),
    ("m >= 0 => ; else =>", &[("m >= 0", ALWAYS), ("else", NONE_LEFT)]),
    ("m < 9 => ; nn || !nn =>", &[("nn || !nn", ALWAYS)]),
    (
        "m > 9 && m < 5 => ; sms == 0 => ; 2147483647 < k => ; nn && nt => ; else =>",
        &[
            ("m > 9 && m < 5", NEVER),
            ("sms == 0", NEVER),
            ("2147483647 < k", NEVER),
            ("nn && nt", NEVER),
        ],
    ),
    (
        "waves(8x8) > 1.0 && m > 4 => ; m > 4 && !(waves(8x8) > 1.0) => ; m == 7 => ; m != 4 && m \
         < 4 || m == 4 => ; else =>",
        &[("m == 7", NONE_LEFT), ("else", NONE_LEFT)],
    ),
    ("", &[("", NO_ELSE)]),
    ("invariant", &[("invariant", NO_ELSE)]),
    ("accuracy: bound; invariant; accuracy: bound; else =>", &[("accuracy: bound", CLASS_TWICE)]),
    ("m < 2 => ; accuracy: norm; else =>", &[("accuracy: norm", LATE_CLASS)]),
    (
        "accuracy: exact; m < 2 => tile: 64x64x16, warp: 32x32, arith: bf16x6; else =>",
        &[("exact", "`accuracy` is one of `ieee`, `bound`, `norm`, not `exact`")],
    ),
    ("accuracy: ; else =>", &[("accuracy:", "`accuracy` is one of `ieee`, `bound`, `norm`")]),
    (
        "accuracy: bound, m < 2 => ; else =>",
        &[(",", "expected `;` after `accuracy: bound`, found `,`")],
    ),
    ("accuracy: bound else =>", &[("else", "expected `;` after `accuracy: bound`, found `else`")]),
    (
        "accuracy: bound, norm; else =>",
        &[("bound, norm", "`accuracy` is one of `ieee`, `bound`, `norm`, not `bound, norm`")],
    ),
    ("m < 2 => tile: 64x64x16, warp: 32x32, arith: bf16x6; else =>", &[("bf16x6", NEEDS_BOUND)]),
    (
        "accuracy: ieee; m < 2 => tile: 64x64x16, warp: 32x32, arith: bf16x6; else =>",
        &[("bf16x6", NEEDS_BOUND)],
    ),
    (
        "accuracy: bound; m < 2 => tile: 64x64x32, arith: f16x3, mma: wgmma; else =>",
        &[("f16x3", NEEDS_NORM)],
    ),
    (
        "accuracy: norm; m < 2 => tile: 64x64x16, warp: 32x32, arith: bf16; else =>",
        &[("bf16", ROUNDED)],
    ),
    (
        "invariant; accuracy: bound; m < 2 => tile: 64x64x16, warp: 32x32, arith: bf16x6; else =>",
        &[("bf16x6", BY_ARITH)],
    ),
    ("invariant; invariant; else =>", &[("invariant", TWICE)]),
    ("m < 2 => ; invariant; else =>", &[("invariant", LATE)]),
    (
        "m < 2 => ; invariant; else => unroll: 2, partials: 2",
        &[("invariant", LATE), ("2", TWO_SUMS)],
    ),
    ("invariant; m < 2 => unroll: 2, partials: 2; else =>", &[("2", TWO_SUMS)]),
    ("invariant; m < 2 => thread: 1x4, float4; n < 2 => lanes: k; else =>", &[("k", BY_LANES)]),
    ("invariant; m < 2 => thread: 1x4, slices: 2; else =>", &[("2", BY_SLICES)]),
    ("invariant; else => epilogue: |acc| (acc, sum(acc))", &[("|acc| (acc, sum(acc))", BY_PARTS)]),
    // Another fault of the rule comes first.
    (
        "invariant; else => unroll: 3, partials: 2",
        &[(
            "3",
            "`unroll: 3` is not a multiple of `partials: 2`, and an iteration of the unrolled loop \
             adds to each partial sum equally often: 3 mod 2 = 1; use a multiple of 2",
        )],
    ),
    (
        "else => batch: strided; else =>",
        &[
            (
                "else =>",
                "a rule after `else` is never reached; move `else` to the end, or leave the rule \
                 out",
            ),
            (
                "else =>",
                "all rules of a table compute the same function, but `batch` here differs from the \
                 first rule; use one value in all rules",
            ),
        ],
    ),
    (
        "waves(64) > 1.0 => ; waves(64x0) > 1.0 => ; waves(m) > 1.0 => ; waves() > 1.0 => ; \
         waves(1x2x3) > 1.0 =>; else =>",
        &[
            ("64", "TILE64"),
            ("64x0", "TILE64x0"),
            ("m", "TILEm"),
            (")", "TILE)"),
            ("1x2x3", "TILE1x2x3"),
        ],
    ),
    (
        "waves(64x64) > 2 => ; m > 1.0 => ; 1.5 > 1.0 => ; sin(1.0) > 0.0 => ; wave(8x8) > 1.0 => \
         ; else =>",
        &[
            (
                "2",
                "`>` combines an f64 and the integer `2`, and there is no implicit conversion; \
                 write `2.0`",
            ),
            (
                "m",
                "`>` combines an f64 and the integer `m`, and there is no implicit conversion; \
                 write `f64(m)`",
            ),
            (
                "1.5 > 1.0",
                "this condition is always true, so later rules are never reached; write `else` \
                 instead, as the last rule",
            ),
            ("sin", "`sin` is not a function; did you mean `min(a, b)`?"),
            ("wave", "`wave` is not a function; did you mean `waves(128x256)`?"),
        ],
    ),
    (
        "{ let m = 4; m > 3 } => ; { let aligned = 4; aligned > 3 } => ; \
         { let waves = 4; waves > 3 } => ; else =>",
        &[
            ("m", "`m` is reserved; use another name, such as `m_value`"),
            ("aligned", "`aligned` is reserved; use another name, such as `aligned_value`"),
            ("waves", "`waves` is a function; use another name, such as `waves_value`"),
        ],
    ),
];

#[test]
fn every_fault_of_a_table_has_its_message_and_token() {
    for (text, expected) in TABLES {
        let message = |of: &str| match of.strip_prefix("TILE") {
            Some(argument) => TILE.replace("ARGUMENT", argument),
            None => of.to_owned(),
        };
        let expected: Vec<_> =
            expected.iter().map(|(at, of)| ((*at).to_owned(), message(of))).collect();
        assert_eq!(faults(text), expected, "{text}");
        let messages: Vec<String> = expected.into_iter().map(|(_, message)| message).collect();
        assert_eq!(read(tokens(text)), Err(messages), "{text}");
    }
    // `invariant` belongs to the header of tables of GEMMs, not to conditions.
    assert_eq!(
        faults("invariant => ; else =>")[0].1,
        "`invariant` is not a known name; the known names are `m`, `n`, `k`, `batch`, `sms`, \
         `arch`, `nn`, `nt`, `tn`, `tt`, `padded`, `aligned`"
    );
}
