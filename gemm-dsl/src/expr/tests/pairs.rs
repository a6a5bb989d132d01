//! Pairs of columns: the names of each column, and messages about them.

use super::faults::faults;
use crate::expr::{Closure, EPILOGUE};

/// Checks the text of an expression with names for each column, and the inputs of its values.
#[track_caller]
fn columns(text: &str, in_columns: &str, inputs: &[(Option<&str>, usize)]) {
    let closure = Closure::parse(&EPILOGUE, text).unwrap_or_else(|e| panic!("{text}: {e}"));
    assert_eq!(closure.to_string(), text);
    assert_eq!(closure.columns().closure.to_string(), in_columns);
    assert_eq!(closure.row_results().inputs().collect::<Vec<_>>(), inputs, "{text}");
}

#[test]
fn each_column_has_names_of_its_own() {
    columns("|acc| acc * next(acc)", "|acc, next_acc| acc * next_acc", &[(None, 0), (None, 1)]);
    columns("|acc| next(acc)", "|_next_, next_acc| next_acc", &[(None, 0), (None, 1)]);
    let operands = [(None, 0), (Some("bias"), 0), (Some("s"), 0), (None, 1), (Some("bias"), 1)];
    columns(
        "|acc, bias[n], s[m]| { let t = s * acc + bias; t * sigmoid(t) * next(t) }",
        "|acc, bias[n], s[m], next_acc, next_bias[n]| { let t = s * acc + bias; let next_t = s * \
         next_acc + next_bias; t * sigmoid(t) * next_t }",
        &operands,
    );
    columns(
        "|acc, next_x| pair(f32(col) + next_x, next(f32(col) * acc))",
        "|_xnext_, next_x, xnext_acc| (f32(col) + next_x, f32(col + 1) * xnext_acc)",
        &[(None, 0), (Some("next_x"), 0), (None, 1)],
    );
    columns(
        "|acc| (next(if acc > 0.0 { let u = acc; u } else { 0.0 }), if acc > 0.0 { let u = -acc; u \
         } else { 1.0 })",
        "|acc, next_acc| (if next_acc > 0.0 { let next_u = next_acc; next_u } else { 0.0 }, if acc \
         > 0.0 { let u = -acc; u } else { 1.0 })",
        &[(None, 0), (None, 1)],
    );
    // Names of values are no functions.
    columns(
        "|acc, next, pair| pair(next * acc, pair + next(acc))",
        "|acc, next, pair, next_acc| (next * acc, pair + next_acc)",
        &[(None, 0), (Some("next"), 0), (Some("pair"), 0), (None, 1)],
    );
}

#[track_caller]
fn fault(text: &str, token: &str, part: &str) {
    let found = faults(&EPILOGUE, text);
    let fits = |(at, message): &(String, String)| at == token && message.contains(part);
    assert!(found.len() == 1 && found.iter().all(fits), "{text}\n{found:#?}");
}

#[test]
fn faulty_pairs_are_reported() {
    fault(
        "|acc| next(acc, 1.0)",
        "next(acc, 1.0)",
        "`next` has 2 operands, and it takes one: `next(x)` reads `x`",
    );
    fault(
        "|acc| pair(acc)",
        "pair(acc)",
        "`pair` has 1 operand, and it takes two: `pair(x, y)` has a value",
    );
    fault(
        "|acc| 2.0 * pair(acc, acc)",
        "pair(acc, acc)",
        "it is not an operand; write `pair(x, y)`",
    );
    fault("|acc| { let t = pair(acc, acc); t }", "pair(acc, acc)", "at the end of the closure");
    fault("|acc| pair(next(acc), next(next(acc)))", "next(acc)", "a pair has no third column");
    fault("|acc| { let t = next(acc); pair(t, next(t)) }", "t", "a pair has no third column");
    fault("|acc, s[m]| acc * next(s)", "next(s)", "`s` is the same in both columns of a pair");
    fault("|acc| acc * next(f32(row))", "next(f32(row))", "`f32(row)` is the same in both columns");
    fault("|acc| (acc, next(sum(acc)))", "next(sum(acc))", "as in `sum(next(acc))`");
    fault(
        "|acc| (acc, pair(sum(acc), 0.0))",
        "pair(sum(acc), 0.0)",
        "as in `(pair(x, y), sum(x + y))`",
    );
    fault("|acc, c[m, n]| acc * next(c)", "c[m, n]", "C has n / 2 columns; store both columns");
    fault("|acc| pair(acc, 1)", "1", "`epilogue` must return");
    fault("|acc| pair(acc > next(acc), acc)", "acc > next(acc)", "`epilogue` must return");
    assert_eq!(faults(&EPILOGUE, "|acc, c[m, n]| (pair(c, next(c)), acc, sum(next(acc)))"), []);
}
