//! Tables that are printed and read back.

use super::super::super::MAX_FAULTS;
use super::*;
use proptest::prelude::*;
use proptest::sample::{Index, select};

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
