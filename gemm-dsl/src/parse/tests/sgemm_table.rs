//! Tests of tables of GEMMs: parsing, and the messages of faults.

use super::super::{MAX_FAULTS, sgemm_table};
use super::{Faulty, messages, tokens, told};
use crate::expr::random::Random;
use crate::spec::{Accuracy, Arith, Instruction, Rect, SgemmSpec, Tile};
use crate::tables::{KernelTable, SgemmProblem, SgemmShape, Target};
use proc_macro2::TokenStream;
use proptest::prelude::*;
use proptest::sample::{Index, select};

type Table = KernelTable<SgemmSpec>;

fn table(text: &str) -> Table {
    super::table(text)
}

fn faults(text: &str) -> Vec<(String, String)> {
    told(text.parse::<Table>())
}

/// Parses the table of a macro call, or returns the messages of its faults.
fn read(tokens: TokenStream) -> Result<Table, Vec<String>> {
    messages(sgemm_table(tokens).table)
}

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

/// Rules that only just can be reached are accepted.
#[test]
fn rows_for_what_is_left_are_rows() {
    for text in [
        "m <= 8 => ; m <= 9 => ; else =>",
        "m <= 8 && n <= 8 => ; m <= 8 => ; n <= 8 => ; m > 9 => ; m == 9 && aligned => ; else =>",
        "waves(8x8) > 1.0 => ; waves(8x8) <= 1.0 => ; else =>",
        "m % 4 == 0 => ; m % 4 != 0 => ; else =>",
        "m != 4 => ; m == 4 => unroll: 2; else =>",
        "nn => ; nt => ; tn => ; else =>",
        "nn => ; nt => ; tn => ; tt => ; else =>",
    ] {
        // Nothing is left for these rules: no other integer and no other layout.
        let expected = usize::from(text.starts_with("m != 4") || text.contains("tt"));
        assert_eq!(faults(text).len(), expected, "{text}");
    }
}

/// Reachability is also known for a long table.
#[test]
fn a_long_table_has_no_row_to_which_nothing_comes() {
    let many: String = (1..60).map(|i| format!("m <= {i} && k <= {} => ;", 100 - i)).collect();
    let only = "nt && k > 200 => tile: 64x30x16, thread: 4x2, float4";
    assert_eq!(faults(&format!("{many} {only}; else =>")), []);
    let dead = faults(&format!("{many} {only}; nt && k > 300 => ; else =>"));
    assert!(matches!(dead.as_slice(), [(at, _)] if at == "nt && k > 300"), "{dead:?}");
    // An unreachable rule is checked nevertheless.
    let told = faults("m < 2 => ; m < 1 => tile: 8x8x8, thread: 3x3; else =>");
    assert_eq!(told.len(), 2, "{told:?}");
}

/// A rule is reported as unreachable only if no problem chooses it.
#[test]
fn no_problem_comes_to_a_row_that_is_told() {
    let atoms = [
        "m <= 3",
        "m == 2",
        "m != 1",
        "n > 2",
        "3 >= n",
        "aligned",
        "m % 2 == 0",
        "waves(1x1) > 0.01",
    ];
    let mut random = Random(5);
    let (mut told, mut rest) = (0, 0);
    for _ in 0..gemm_cases::scaled(3_000) {
        let mut pick = |n: usize| random.bits() as usize % n;
        let mut conditions = Vec::new();
        for _ in 0..1 + pick(4) {
            let mut when = atoms[pick(atoms.len())].to_owned();
            for _ in 0..pick(3) {
                let not = ["", "!"][pick(2)];
                let sign = ["&&", "||"][pick(2)];
                when = format!("({when}) {sign} {not}({})", atoms[pick(atoms.len())]);
            }
            conditions.push(when);
        }
        let rows: Vec<String> = conditions.iter().map(|when| format!("{when} => ;\n")).collect();
        let faults = faults(&format!("{}else =>", rows.concat()));
        if faults.iter().any(|(_, message)| message.starts_with("rule ")) {
            continue;
        }
        let dead: Vec<&String> = faults.iter().map(|(at, _)| at).collect();
        // Tests each condition alone, if some problem reaches it.
        let alone: Vec<Table> = conditions
            .iter()
            .filter_map(|when| format!("{when} => ; else => unroll: 2").parse().ok())
            .collect();
        if alone.len() < conditions.len() {
            continue;
        }
        let mut comes = vec![false; conditions.len() + 1];
        for n in 0..98 {
            let shape = SgemmShape::from((n % 7, n / 7 % 7, 4)).aligned(n >= 49);
            let problem = SgemmProblem { shape, target: Target::H200 };
            let holds = |table: &Table| table.choose(&problem) == Ok(0);
            comes[alone.iter().position(holds).unwrap_or(conditions.len())] = true;
        }
        for (n, when) in conditions.iter().map(String::as_str).chain(["else"]).enumerate() {
            let is_told = dead.iter().any(|at| *at == when);
            assert!(!is_told || !comes[n], "{when}: {rows:?}");
            told += usize::from(is_told);
            rest += usize::from(!is_told);
        }
    }
    assert!(told.min(rest) > gemm_cases::scaled(300), "{told} {rest}");
}

#[test]
fn rows_differ_in_how_and_by_what_lies_where() {
    for (key, other) in
        [("batch", "batch: pointers"), ("scaled", "scaled"), ("epilogue", "epilogue: |acc| -acc")]
    {
        let told = faults(&format!("m < 2 => ; m < 3 => {other}; else => unroll: 2"));
        let message = format!("all rules of a table compute the same function, but `{key}` here");
        assert!(
            matches!(told.as_slice(), [(at, of)] if at == other && of.starts_with(&message)),
            "{told:?}"
        );
    }
    table("m % 16 == 0 => bounds: aligned; m < 4 => name: mine; else => tile: 8x8x8, partials: 2");
}

/// A rule has a kernel for each layout of the problems that reach it.
#[test]
fn rows_are_for_matrices_however_they_lie() {
    let of = table(
        "nn && padded => unroll: 2; tt || padded => unroll: 3; m < 9 && !nn => ; else => unroll: 4",
    );
    let kernels = |row: usize| -> Vec<String> {
        of.rules()[row].kernels().map(|plan| plan.spec().to_string()).collect()
    };
    assert_eq!(kernels(0), ["unroll: 2, pitched"]);
    let [nt, tn] = ["nt", "tn"].map(|layout| format!("layout: {layout}, unroll: 3, pitched"));
    let tt = ["layout: tt, unroll: 3", "layout: tt, unroll: 3, pitched"].map(str::to_owned);
    assert_eq!(kernels(1), [&[nt, tn], &tt[..]].concat());
    assert_eq!(kernels(2), ["layout: nt", "layout: tn"]);
    assert_eq!(kernels(3), ["unroll: 4", "layout: nt, unroll: 4", "layout: tn, unroll: 4"]);
    for (key, value, asked) in
        [("layout", "layout: nt", "`nn`, `nt`, `tn` or `tt`"), ("pitched", "pitched", "`padded`")]
    {
        let told = faults(&format!("m < 2 => {value}; else =>"));
        let message = format!(
            "`{key}` follows from the matrices of a problem: each rule has kernels for all \
             layouts; leave `{key}` out, and test {asked} in the condition to restrict the rule"
        );
        assert_eq!(told, [(key.to_owned(), message)]);
    }
}

/// A fault in only some layouts is reported if problems with these layouts reach the rule.
#[test]
fn a_row_is_sound_for_all_that_comes_to_it() {
    let line = "tile: 64x30x16, thread: 4x2, float4";
    let told = faults(&format!("m < 2 => {line}; else =>"));
    assert!(matches!(told.as_slice(), [(_, of)] if of.starts_with("`float4` moves 4")), "{told:?}");
    let told = faults(&format!("nt || tt => {line}; else =>"));
    assert!(told.is_empty(), "{told:?}");
    let told = faults(&format!("m < 2 && !nn || tt => {line}; else =>"));
    assert!(
        matches!(told.as_slice(), [(_, of)] if of.starts_with("where `tn`: `float4` moves 4")),
        "{told:?}"
    );
}

#[test]
fn invariant_is_printed_and_read_back() {
    let of = table("invariant;; m <= 8 => unroll: 2,; else =>");
    assert!(of.is_invariant());
    assert_eq!(of.to_string(), "invariant;\nm <= 8 => unroll: 2;\nelse => ");
    assert_eq!(table(&of.to_string()), of);
    assert_eq!(read(tokens("invariant; m<=8=>unroll:2;else=>")), Ok(of.clone()));
    let plain = table("m <= 8 => unroll: 2; else =>");
    assert!(!plain.is_invariant() && plain != of);
}

/// A rule may emulate `f32` as its table permits: each class includes the previous ones, and the
/// message names the class that is needed.
#[test]
fn rows_emulate_as_far_as_their_table_grants() {
    let bounds = |arith: Arith| arith.error_bound(1000) < 2.0 * Arith::F32.error_bound(1000);
    for class in Accuracy::ALL {
        for arith in Arith::ALL {
            let line = SgemmSpec::default().tile(Tile::new(64, 64, 32));
            let line = match arith {
                Arith::F32 => line.thread(Rect::new(8, 8)),
                _ => line.arith(*arith).mma(Instruction::Wgmma),
            };
            let text = format!("accuracy: {class};\nm <= 8 => {line};\nelse => ");
            let granted = arith.accuracy().is_some_and(|needed| needed <= *class);
            match text.parse::<Table>() {
                Ok(of) => {
                    assert!(granted && bounds(*arith), "{text}");
                    assert_eq!((of.accuracy(), of.to_string()), (*class, text));
                }
                Err(faults) => assert!(!granted && faults.iter().count() == 1, "{text}: {faults}"),
            }
        }
    }
    assert_eq!(table("else =>").accuracy(), Accuracy::Ieee);
}

const CONDITIONS: &[&str] = &[
    "m <= 8 || n <= 8",
    "aligned && !padded && waves(128x256) >= 2.0",
    "nt && k % 4 == 0 && arch >= 90",
    "{ let tiles = waves(64x64); tiles - floor(tiles) > 0.5 }",
    "if tt { f64(m) / f64(n) > 1.5 } else { batch > sms }",
    "abs(0.001 - waves(1x1)) <= max(1.0, waves(4294967295x1))",
];

const LINES: &[&str] =
    &["", "tile: 64x64x16, thread: 8x8, float4", "unroll: 4", "block: 8x32, lanes: m"];

const PIECES: &[&str] = &[
    "invariant;",
    "accuracy: bound;",
    "accuracy:",
    "arith: bf16x6",
    "invariant",
    ";",
    "=>",
    "waves(",
    "waves(64x64)",
    ")",
    "64x64",
    "0x1",
    "2.0",
    "nn",
    "aligned",
    "&&",
    "!",
    "else",
    "m",
    "f64(m)",
    "1.5",
    "1e999",
    "partials: 2",
    "floor(",
    "-",
    "/ 0",
    "/ 0.0",
    "% sms",
    "{",
    "}",
    ",",
];

proptest! {
    #![proptest_config(gemm_cases::cases(1_000))]

    #[test]
    fn a_table_prints_and_reads_back(
        invariant: bool,
        class in proptest::option::of(select(Accuracy::ALL)),
        conditions in
            proptest::sample::subsequence(CONDITIONS, 0..=CONDITIONS.len()).prop_shuffle(),
        lines in proptest::collection::vec(select(LINES), CONDITIONS.len() + 1),
    ) {
        let mut word = if invariant { "invariant;\n" } else { "" }.to_owned();
        word.extend(class.map(|class| format!("accuracy: {class};\n")));
        let rows = conditions.iter().zip(&lines).map(|(when, line)| format!("{when} => {line};\n"));
        let text = format!("{word}{}else => {}", rows.collect::<String>(), lines[CONDITIONS.len()]);
        let read_back = table(&text);
        prop_assert_eq!(read_back.to_string(), text.clone());
        prop_assert_eq!(read(tokens(&text)), Ok(read_back));
    }

    #[test]
    fn a_table_with_pieces_put_in_or_taken_out_is_held(
        conditions in proptest::collection::vec(select(CONDITIONS), 0..4),
        line in select(LINES),
        changes in proptest::collection::vec((any::<Index>(), 0..6usize, any::<Index>()), 1..6),
        extents in any::<[u32; 3]>(),
    ) {
        let rows = conditions.iter().map(|when| format!("{when} => {line};"));
        let rows: String = rows.collect();
        let mut text: Vec<char> = format!("{rows}else => {line}").chars().collect();
        for (at, taken, piece) in changes {
            let at = at.index(text.len() + 1);
            let until = text.len().min(at + taken);
            text.splice(at..until, piece.get(PIECES).chars());
        }
        let text: String = text.into_iter().collect();
        match text.parse::<Table>() {
            Ok(read_back) => {
                let printed = read_back.to_string();
                prop_assert_eq!(printed.parse::<Table>(), Ok(read_back.clone()), "{}", printed);
                let [m, n, k] = extents.map(|extent| (extent / 2) as usize);
                let shape = SgemmShape::from((m, n, k));
                let row = read_back.choose(&SgemmProblem { shape, target: Target::H200 });
                prop_assert!(row.is_ok_and(|row| row < read_back.rules().len()), "{}", text);
            }
            Err(faults) => {
                prop_assert!((1..=MAX_FAULTS + 1).contains(&faults.iter().count()));
                prop_assert!(faults.iter().all(|fault| !fault.message().is_empty()));
            }
        }
    }
}
