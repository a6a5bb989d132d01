//! Tests of tables: parsing, messages of faults, and hostile texts.

use super::super::table::MAX_RULES;
use super::super::{MAX_FAULTS, ReduceTableTokens, reduce_table};
use super::{Faulty, messages, tokens, told};
use crate::ir::Elem;
use crate::spec::ReduceSpec;
use crate::syntax::MAX_TEXT;
use crate::tables::KernelTable;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use proptest::prelude::*;
use proptest::sample::{Index, select};

type Table = KernelTable<ReduceSpec>;

fn table(text: &str) -> Table {
    super::table(text)
}

fn faults(text: &str) -> Vec<(String, String)> {
    told(text.parse::<Table>())
}

/// Parses the table of a macro call, or returns the messages of its faults.
fn read(tokens: TokenStream) -> Result<Table, Vec<String>> {
    messages(reduce_table(tokens).table)
}

const NO_ELSE: &str =
    "a table needs a rule for problems that match no condition; add `else => …` at the end";
const BEHIND: &str =
    "a rule after `else` is never reached; move `else` to the end, or leave the rule out";
const NO_CONDITION: &str = "a rule begins with its condition, such as `len <= 64`, or with `else`";
const ALWAYS: &str = "this condition is always true, so later rules are never reached; write \
                      `else` instead, as the last rule";
const NEVER: &str = "this condition is never true; leave the rule out";
const NO_OP: &str = "`op` takes one of `sum`, `prod`, `max`, `min`, `argmax`, `argmin`, `any`, \
                     `all`, `mean_var`, `logsumexp`, not `mx`; did you mean `max`?";
const OTHER_OP: &str = "all rules of a table compute the same function, but `op` here differs from \
                        the first rule; use one value in all rules";

/// Each fault is at its own token, and none follows from another.
const TABLES: &[Faulty] = &[
    ("", &[("", NO_ELSE)]),
    (";;", &[(";", NO_ELSE)]),
    ("len <= 4 => items: 4", &[("4", NO_ELSE)]),
    ("len <= 4 => items: 4;", &[(";", NO_ELSE)]),
    (
        "len <= 4 items: 4; else =>",
        &[(
            "len <= 4 items: 4",
            "a rule is a condition, `=>` and a spec, such as `len <= 64 => over: rows, group: 4`; \
             `len<=4 items:4` has no `=>`",
        )],
    ),
    (
        "len <= 4 => items: 4; else items: 8",
        &[(
            "else items: 8",
            "a rule is a condition, `=>` and a spec, such as `len <= 64 => over: rows, group: 4`; \
             `else items:8` has no `=>`",
        )],
    ),
    (
        "len <= 4 => items: 4; len ==> items: 8",
        &[
            (
                "len ==> items: 8",
                "a rule is a condition, `=>` and a spec, such as `len <= 64 => over: rows, group: \
                 4`; `len==>items:8` has no `=>`",
            ),
            ("8", NO_ELSE),
        ],
    ),
    ("=> op: max; else => op: max", &[("=>", NO_CONDITION)]),
    ("len <= 4 => op: max; => op: max", &[("=>", NO_CONDITION)]),
    ("else => op: max; len <= 4 => op: max", &[("len <= 4 => op: max", BEHIND)]),
    ("else => op: max; else => op: max;", &[("else => op: max", BEHIND)]),
    (
        "len <= 4 => ; len <= 8 => ; (len <= 4) => ; else =>",
        &[(
            "(len <= 4)",
            "rule 1 has the same condition, so this rule is never reached; leave one of the two \
             rules out",
        )],
    ),
    // Rules are counted as they are written.
    (
        "len < 2; ; len <= 4 => ; len <= 4 => ; else =>",
        &[
            (
                "len < 2",
                "a rule is a condition, `=>` and a spec, such as `len <= 64 => over: rows, group: \
                 4`; `len<2` has no `=>`",
            ),
            (
                "len <= 4",
                "rule 2 has the same condition, so this rule is never reached; leave one of the \
                 two rules out",
            ),
        ],
    ),
    ("1 < 2 => ; else =>", &[("1 < 2", ALWAYS)]),
    (
        "len < 9 => ; if 1 == 1 { 2 > 1 } else { 1 > 2 } =>",
        &[("if 1 == 1 { 2 > 1 } else { 1 > 2 }", ALWAYS)],
    ),
    ("!(1 < 2) => ; else =>", &[("!(1 < 2)", NEVER)]),
    (
        "{ let t = 3; t % 2 == 0 } => ; len > 1 => items: 2",
        &[("{ let t = 3; t % 2 == 0 }", NEVER), ("2", NO_ELSE)],
    ),
    // Faults of conditions.
    (
        "len => ; n < 4 => ; len <= 1.5 => ; sqrt(len) < 3 => ; len = 4 => ; |x| x < 4 => ; len < \
         => ; else =>",
        &[
            (
                "len",
                "a condition must be a boolean, but this is an integer; compare it, as in `x > \
                 0`",
            ),
            ("n", "`n` is not a known name; the known names are `outer`, `len`, `inner`"),
            ("1.5", "`1.5`: a condition uses only integers; write a whole number"),
            (
                "sqrt",
                "`sqrt` is not a function; the known functions are `min`, `max`, `abs`, `clamp`, \
                 `sign`",
            ),
            ("=", "`=` is only for `let`; to compare, write `==`"),
            ("|", "a condition takes no parameters; write the expression alone, as in `len <= 64`"),
            ("<", "expected an operand after `<`, found the end of the expression"),
        ],
    ),
    // A faulty condition does not count as `else`, and its rule is still checked.
    (
        "len <= 4 && => items: 0",
        &[
            ("&", "expected an operand after `&&`, found the end of the expression"),
            ("0", "`items: 0`: a thread folds at least one item; use 1 or more"),
            ("0", NO_ELSE),
        ],
    ),
    // Rules that compute another result.
    (
        "len < 9 => op: max; len < 99 => op: min, block: 64; else => op: max",
        &[("op: min, block: 64", OTHER_OP)],
    ),
    ("len < 9 => op: max; else =>", &[("else =>", OTHER_OP)]),
    // A fault of a whole rule is at its spec, before the differences from the first rule.
    (
        "len < 9 => op: max; else => op: min, group: 1",
        &[(
            "group",
            "`group` has no effect: all threads fold one result; compute several results with \
             `over: rows`, or leave `group` out",
        )],
    ),
    // A first rule that could not be parsed is not compared with the others.
    (
        "len < 9 => op: mx, over: rows; len < 99 => op: max, over: rows; else => op: max, over: \
         rows",
        &[("mx", NO_OP)],
    ),
    ("len < 9 => op: max, over: rows; else => op: mx, over: rows", &[("mx", NO_OP)]),
    (
        "len < 9 => op: max, compensated; else => op: max",
        &[(
            "compensated",
            "`compensated` has no effect: only the rounding of sums is compensated; leave \
             `compensated` out",
        )],
    ),
    (
        "len < 9 => blok: 64; else => op: sum",
        &[("blok", "unknown key `blok`; did you mean `block`?")],
    ),
];

#[test]
fn every_fault_of_a_table_has_its_message_and_token() {
    for (text, expected) in TABLES {
        let expected: Vec<(String, String)> =
            expected.iter().map(|(at, of)| ((*at).to_owned(), (*of).to_owned())).collect();
        assert_eq!(faults(text), expected, "{text}");
        let messages: Vec<String> = expected.into_iter().map(|(_, message)| message).collect();
        assert_eq!(read(tokens(text)), Err(messages), "{text}");
    }
}

#[test]
fn rows_that_compute_different_things_name_the_key() {
    let lines = [
        ("op", "op: max", "op: min"),
        ("fold", "fold: |a, b| a + b, identity: 0.0", "fold: |a, b| b + a, identity: 0.0"),
        ("identity", "fold: |a, b| a + b, identity: 0.0", "fold: |a, b| a + b, identity: 1.0"),
        ("map", "map: |x| x * x", "map: |x| x"),
        ("finish", "finish: |s| s", "finish: |s| -s"),
        ("type", "type: f32", "type: f64"),
        ("acc", "type: i8", "type: i8, acc: i64"),
        ("result", "op: logsumexp", "op: logsumexp, result: f16"),
        ("index", "op: argmax", "op: argmax, index: u64"),
        ("compensated", "op: sum", "op: sum, compensated"),
        ("over", "over: rows", "over: columns"),
        ("pitched", "over: rows", "over: rows, pitched"),
    ];
    for (key, one, other) in lines {
        for (one, other) in [(one, other), (other, one)] {
            let found =
                faults(&format!("len < 4 => {one}; len < 5 => {one}, block: 64; else => {other}"));
            let message =
                format!("all rules of a table compute the same function, but `{key}` here");
            assert!(
                matches!(found.as_slice(), [(_, told)] if told.starts_with(&message)),
                "{one} | {other}: {found:?}"
            );
        }
    }
    // All other keys may differ.
    table(
        "len < 4 => over: rows, block: 64; len < 5 => over: rows, group: 8, items: 2, float4, \
         name: mine; len < 6 => over: rows, result: f32; else => over: rows, blocks: 8, launch: \
         once, group: 256, acc: f32, index: u32",
    );
}

#[test]
fn semicolons_comments_and_brackets() {
    let plain = "len <= 4 => op: sum, map: |x| { let t = x; t * t };\nelse => map: |x| \
        { let t = x; t * t }, items: 4";
    let plain = table(plain);
    for same in [
        "len<=4=>map:|x|{let t=x;t*t};else=>map:|x|{let t=x;t*t},items:4",
        ";; len <= 4 => map: |x| { let t = x; t * t }, ;;; else => items: 4, map: |x| \
         { let t = x; t * t },;;",
        "/* a; table */ len <= 4 // => 5;\n => <map: |x| { let t = x; /* ; */ t * t }>;\n\n else \
         => map: |x| { let t = x; t * t }, items: 4 // the rest",
        "((len <= 4)) => map: |x| { let t = x; t * t }; else => map: |x| { let t = x; t * t }, \
         items: 4",
    ] {
        assert_eq!(read(tokens(same)).as_ref(), Ok(&table(same)), "{same}");
        assert_eq!(table(same), plain, "{same}");
    }
    assert_eq!(
        plain.to_string(),
        "len <= 4 => map: |x| { let t = x; t * t };\nelse => map: |x| { let t = x; t * t }, items: \
         4"
    );
}

#[test]
fn conditions_have_every_operator_and_the_arrow_is_none_of_them() {
    let conditions = [
        "len <= 4",
        "len >= 4",
        "len == 4",
        "len != 4",
        "len < 4",
        "len > 4",
        "!(len == 4)",
        "len >= 4 && outer <= 3 || inner == 2",
        "(len + 1) * 2 - outer / 3 % 4 > -inner",
        "min(len, 2) <= max(outer, 1) && abs(len - outer) >= clamp(inner, 1, 9)",
        "if len >= 4 { outer <= 2 } else { inner == 1 }",
        "{ let t = len % 4; let u = t == 0; u && t <= len }",
    ];
    for when in conditions {
        let text = format!("{when}=>items: 2; else => items: 2");
        let read_back = table(&text);
        let printed = read_back.rules()[0].when.as_ref().map(ToString::to_string);
        assert_eq!(printed.as_deref(), Some(when));
        assert_eq!(read(tokens(&text)), Ok(read_back));
    }
    // Punctuation characters with a space between them are not one operator.
    assert_eq!(faults("len < => ; else =>")[0].0, "<");
    assert_eq!(faults("len ! => ; else =>")[0].0, "!");
}

#[test]
fn none_delimited_conditions_are_transparent() {
    let group =
        |text: &str| TokenStream::from(TokenTree::from(Group::new(Delimiter::None, tokens(text))));
    for when in ["len <= 4 || outer > 2", "if len > 4 { outer > 2 } else { outer > 3 }"] {
        let mut all = group(when);
        all.extend(tokens("=> items: 2; else => items: 4"));
        assert_eq!(read(all), Ok(table(&format!("{when} => items: 2; else => items: 4"))));
    }
    let mut all = tokens("len * 2 <=");
    all.extend(group("outer + 1"));
    all.extend(tokens("=> items: 2; else => items: 4"));
    assert_eq!(read(all), Ok(table("len * 2 <= (outer + 1) => items: 2; else => items: 4")));
}

#[test]
fn the_types_are_those_of_a_row_that_could_be_read() {
    let types = |text: &str| {
        let ReduceTableTokens { inputs, results, .. } = reduce_table(tokens(text));
        inputs.zip(results)
    };
    let (f16, u64) = (vec![Elem::F16], vec![Elem::U64]);
    let argmax = "op: argmax, type: f16, index: u64";
    for text in [
        format!("else => {argmax}"),
        format!("len < 4 => {argmax}, block: 7; len < 5 => {argmax}"),
        format!("len < 4 => op: argmax, tpye: f16, index: u64; else => {argmax}"),
        format!("len < 4 => op: argmax, type: f15, index: u64; else => {argmax}, block: 7"),
    ] {
        assert_eq!(types(&text), Some((f16.clone(), u64.clone())), "{text}");
    }
    assert_eq!(types("len < 4 => tpye: f16; else => type: f15"), None);
    assert_eq!(types("len < 4; else type: f16"), None);
    assert_eq!(
        types("else => map: |x, y| x * y, op: mean_var, type: f64"),
        Some((vec![Elem::F64; 2], vec![Elem::F64; 2]))
    );
}

#[test]
fn large_tables_are_read_or_refused() {
    let rows = |count: usize, line: &str| -> String {
        (0..count).map(|n| format!("len < {} => {line};", n + 1)).collect::<String>()
    };
    let most = format!("{}else => items: 2;", rows(MAX_RULES - 1, "items: 2"));
    assert_eq!(table(&most).rules().len(), MAX_RULES);
    let text = format!("{} else => items: 2; len < 9 => block: 7", rows(MAX_RULES, "items: 2"));
    let one_more = [("else => items: 2".to_owned(), "a table has at most 256 rules".to_owned())];
    assert_eq!(faults(&text), one_more);
    // Empty rules do not count.
    assert_eq!(table(&format!("{}{most}", ";".repeat(9_000))).rules().len(), MAX_RULES);

    // A macro's table is parsed again as text, and so is the canonical text of a table without
    // spaces.
    let sum = format!("map: |x| x{}", " + x".repeat(60));
    let long = format!("{}else => {sum}", rows(MAX_RULES - 1, &sum));
    let told = read(tokens(&long)).expect_err("a long table");
    let bytes = long.replace(';', ";\n").len() + ";\n".len();
    let message =
        format!("the printed table has {bytes} bytes, which is too long; use at most {MAX_TEXT}");
    assert_eq!(told, std::slice::from_ref(&message));
    let dense = long.replace([' ', '\n'], "").replace("len<", "len <");
    assert!(dense.len() < MAX_TEXT);
    assert_eq!(faults(&dense), [(String::new(), message)]);

    // Further faults are counted.
    for row in
        ["len < 4;", "=>;", "len => ;", "len < 4 => block: 7;", "len < 4 => foo: 7, items: 0;"]
    {
        let found = faults(&row.repeat(60_000 / row.len()));
        assert_eq!(found.len(), MAX_FAULTS + 1, "{row}");
        assert!(found[MAX_FAULTS].1.contains(" more faults are not listed"), "{row}");
    }
}

/// Specs of the same work, computed in different ways.
const HOWS: &[&str] = &[
    "map: |x| { let t = x; t * t }, over: rows",
    "map: |x| { let t = x; t * t }, over: rows, group: 8",
    "map: |x| { let t = x; t * t }, over: rows, group: 256, shuffle, blocks: 64, launch: once",
    "name: mine, map: |x| { let t = x; t * t }, over: rows",
];

const CONDITIONS: &[&str] = &[
    "len <= 4",
    "len % 4 == 0 && outer >= 512",
    "{ let t = outer * len; t <= 65536 || inner != 1 }",
    "if len > outer { len >= 32 } else { !(outer == 1) }",
    "min(len, outer) - 1 < abs(len - 3 * outer) / 2",
    "clamp(len, 1, 16) == len",
];

const PIECES: &[&str] = &[
    ";",
    "=>",
    "=",
    ">",
    "<",
    "<=",
    "==",
    "else",
    "else =>",
    "len",
    "outer",
    "{",
    "}",
    "(",
    ")",
    "|",
    "let t = len;",
    "if",
    "op: max",
    "over",
    ",",
    ":",
    "/*",
    "//",
    "\n",
    "é",
    "\"",
    "'",
    "1 <",
    "1.5",
    "&&",
    "||",
    "!",
    "/ 0",
    "% len",
    "9223372036854775807",
    "99999999999999999999",
    "* outer * len",
    "items: 0",
    "block: 7",
    "\u{0}",
    "r#",
    "",
    " ",
    "-",
];

/// The text is rejected with messages of bounded length, or has the same meaning as its canonical
/// text.
fn is_held(text: &str) -> Result<(), TestCaseError> {
    match text.parse::<Table>() {
        Ok(read) => {
            let printed = read.to_string();
            prop_assert_eq!(printed.parse::<Table>(), Ok(read.clone()), "{}", printed);
            for n in [0, 1, 4, 1 << 48] {
                prop_assert!(read.choose(&(n, n, n)).is_ok_and(|row| row < read.rules().len()));
            }
        }
        Err(faults) => {
            prop_assert!((1..=MAX_FAULTS + 1).contains(&faults.iter().count()));
            prop_assert!(faults.iter().all(|fault| !fault.message().is_empty()));
            prop_assert!(faults.to_string().len() <= 32 * 1024);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(gemm_cases::cases(2_000))]

    #[test]
    fn a_table_prints_and_reads_back(
        conditions in
            proptest::sample::subsequence(CONDITIONS, 0..=CONDITIONS.len()).prop_shuffle(),
        hows in proptest::collection::vec(select(HOWS), CONDITIONS.len() + 1),
    ) {
        let line = |how: &str| how.parse::<ReduceSpec>().expect("a line").to_string();
        let rows = conditions.iter().zip(&hows);
        let rows = rows.map(|(when, how)| format!("{when} => {};\n", line(how)));
        let text = format!("{}else => {}", rows.collect::<String>(), line(hows[CONDITIONS.len()]));
        let read_back = table(&text);
        prop_assert_eq!(read_back.to_string(), text.clone());
        prop_assert_eq!(read(tokens(&text)), Ok(read_back));
    }

    #[test]
    fn a_table_with_pieces_put_in_or_taken_out_is_held(
        conditions in proptest::collection::vec(select(CONDITIONS), 0..4),
        how in select(HOWS),
        changes in proptest::collection::vec((any::<Index>(), 0..6usize, any::<Index>()), 1..6),
    ) {
        let rows = conditions.iter().map(|when| format!("{when} => {how};"));
        let rows: String = rows.collect();
        let mut text: Vec<char> = format!("{rows}else => {how}").chars().collect();
        for (at, taken, piece) in changes {
            let at = at.index(text.len() + 1);
            let until = text.len().min(at + taken);
            text.splice(at..until, piece.get(PIECES).chars());
        }
        let text: String = text.into_iter().collect();
        is_held(&text)?;
        // If the compiler produces the same tokens, the messages are the same.
        let differs = ["///", "//!", "/*", "'", "\"", "#"].iter().any(|sign| text.contains(sign));
        if !differs && let Ok(tokens) = text.parse::<TokenStream>() {
            let messages: Vec<String> = faults(&text).into_iter().map(|(_, told)| told).collect();
            prop_assert_eq!(read(tokens).err().unwrap_or_default(), messages, "{}", text);
        }
    }

    #[test]
    fn no_pieces_make_the_grammar_panic(picks in proptest::collection::vec(any::<Index>(), 0..24)) {
        is_held(&picks.iter().map(|pick| *pick.get(PIECES)).collect::<String>())?;
        is_held(&picks.iter().map(|pick| format!("{} ", pick.get(PIECES))).collect::<String>())?;
    }
}
