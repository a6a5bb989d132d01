//! Tests of tables of GEMMs.

mod messages;
mod printed;
mod reachable;

use super::super::sgemm_table;
use super::{Faulty, messages, tokens, told};
use crate::spec::{Accuracy, Arith, Instruction, Rect, SgemmSpec, Tile};
use crate::tables::{KernelTable, SgemmProblem, SgemmShape, Target};
use proc_macro2::TokenStream;

type Table = KernelTable<SgemmSpec>;

fn table(text: &str) -> Table {
    super::table(text)
}

fn faults(text: &str) -> Vec<(String, String)> {
    told(text.parse::<Table>())
}

/// Parses the table of a macro call, or returns the messages of its faults.
fn read(tokens: TokenStream) -> Result<Table, Vec<String>> {
    messages(sgemm_table(tokens, false).table)
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

/// A rule may emulate `f32` as its table permits: each class includes the previous ones, and the
/// message names the class that is needed.
#[test]
fn rows_emulate_as_far_as_their_table_grants() {
    let bounds = |arith: Arith| arith.error_bound(1000) < 2.0 * Arith::F32.error_bound(1000);
    for class in Accuracy::ALL {
        for arith in Arith::ALL.iter().filter(|arith| !arith.takes_elements()) {
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
