//! Folds over rows: their parts, and messages where a scope has none.

use super::faults::faults;
use crate::expr::{
    Closure, ELEMENTWISE, EPILOGUE, FINISH, FOLD, Float, IDENTITY, MAP, REDUCE_TABLE, RowPartKind,
    Type, Typing, ValueType,
};

fn split(text: &str, values: &[ValueType], result: Type) -> (Vec<String>, Vec<String>) {
    let closure = Closure::parse(&ELEMENTWISE, text).unwrap_or_else(|e| panic!("{text}: {e}"));
    assert_eq!(closure.to_string(), text);
    let values = values.to_vec();
    let typing = Typing { float: Float::F32, values, result, more: vec![result; 3] };
    assert!(closure.check(&typing).is_empty(), "{text}: {:?}", closure.check(&typing));
    let rows = closure.rows(&typing);
    let parts = rows.parts.iter().map(|part| {
        assert!(part.closure.check(&part.typing).is_empty(), "{}", part.closure);
        let (name, pass, value) = (&part.name, part.pass, part.closure.body());
        match &part.kind {
            RowPartKind::Fold { op, kept: None } => {
                format!("{pass}: {name} = {}({value})", op.name())
            }
            RowPartKind::Fold { op, kept: Some(kept) } => {
                format!("{pass}: {name} = {}({value}) keeps {kept}", op.name())
            }
            RowPartKind::Value => format!("{pass}: {name} = {value}"),
        }
    });
    let results = rows.results.iter().map(|result| {
        assert!(result.closure.check(&result.typing).is_empty(), "{}", result.closure);
        format!("{}{}", result.closure.body(), if result.varies { "" } else { " of the row" })
    });
    (parts.collect(), results.collect())
}

#[track_caller]
fn parts(text: &str, parts: &[&str], results: &[&str]) {
    let found = split(text, &[ValueType::Float(Float::F32)], Type::F32);
    assert_eq!(found.0, parts, "{text}");
    assert_eq!(found.1, results, "{text}");
}

#[test]
fn folds_become_parts_in_order() {
    parts(
        "|x[m, n]| { let top = max(x); let s = sum(exp(x - top)); exp(x - top) / s }",
        &["0: top = max(x)", "1: s = sum(exp(x - top)) keeps kept"],
        &["kept / s"],
    );
    parts(
        "|x[m, n]| { let top = max(x); let e = exp(x - top); e / sum(e) }",
        &["0: top = max(x)", "1: row_sum = sum({ let e = exp(x - top); e }) keeps e"],
        &["e / row_sum"],
    );
    parts(
        "|x[m, n]| { let mean = sum(x) / f32(n); let d = x - mean; (d * rsqrt(sum(d * d) / \
         f32(n) + 1e-5), mean) }",
        &[
            "0: row_sum = sum(x)",
            "1: mean = row_sum / f32(n)",
            "1: row_sum_2 = sum({ let d = x - mean; d * d })",
            "2: row_value = rsqrt(row_sum_2 / f32(n) + 1e-5)",
        ],
        &["{ let d = x - mean; d * row_value }", "mean of the row"],
    );
    parts(
        "|x[m, n]| x - max(x - sum(x)) + max(x - sum(x))",
        &["0: row_sum = sum(x)", "1: row_max = max(x - row_sum)"],
        &["x - row_max + row_max"],
    );
    parts("|x[m, n], w[m]| sum(x) * w", &["0: row_sum = sum(x)"], &["row_sum * w of the row"]);
}

#[test]
fn folds_may_stand_in_branches() {
    parts(
        "|x[m, n]| if x > 0.0 { let t = x * 2.0; x / sum(t) } else { let t = 3.0; t / prod(x) }",
        &["0: row_sum = sum({ let t = x * 2.0; t })", "0: row_prod = prod(x)"],
        &["if x > 0.0 { x / row_sum } else { let t = 3.0; t / row_prod }"],
    );
    // The same name is defined twice, so the fold has another name.
    parts(
        "|x[m, n]| { let a = if x > 0.0 { let s = 1.0; s } else { x }; let s = sum(a); a - s }",
        &["0: row_sum = sum({ let a = if x > 0.0 { let s = 1.0; s } else { x }; a })"],
        &["{ let a = if x > 0.0 { let s = 1.0; s } else { x }; let s = row_sum; a - s }"],
    );
}

#[test]
fn integers_keep_their_ranges() {
    let byte = ValueType::Int { least: -128, most: 127 };
    let (parts, _) = split("|x[m, n]| sum(x) + max(x) * min(col)", &[byte], Type::Int);
    assert_eq!(parts.len(), 3);
    let text = "|x[m, n]| sum(x * x)";
    let closure = Closure::parse(&ELEMENTWISE, text).expect("sound");
    let long = ValueType::Int { least: -(1 << 40), most: 1 << 40 };
    let typing = Typing { values: vec![long], result: Type::Int, ..Typing::F32 };
    let found = closure.check(&typing);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].message().contains("may overflow 64 bits"), "{found:?}");
}

/// Scopes without rows name the macro that has them.
#[test]
fn other_scopes_have_no_folds() {
    let scopes = [
        (&MAP, "|x| x / sum(x)", "sum(x)"),
        (&FOLD, "|a, b| a + prod(b)", "prod(b)"),
        (&FINISH, "|s| s / sum(s)", "sum(s)"),
        (&IDENTITY, "sum(1.0)", "sum(1.0)"),
    ];
    for (scope, text, at) in scopes {
        let found = faults(scope, text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert_eq!(found[0].0, at);
        assert!(found[0].1.contains("use `row_kernel!`"), "{found:?}");
    }
    let found = faults(&REDUCE_TABLE, "sum(len) > 3");
    assert!(found[0].1.contains("`sum` is not a function"), "{found:?}");
}

/// An epilogue folds rows only for results of rows.
#[test]
fn results_of_rows_read_elements_only_inside_folds() {
    let sound = [
        "|acc| (acc, sum(acc * acc))",
        "|acc, bias[n], eps| { let y = acc + bias; let s = sum(y); (y, s + eps, -y, max(y) / s) }",
        "|acc, c[m, n]| (acc, sqrt(sum(if c > 0.0 { c } else { acc })) * f32(m + n + k))",
        "|acc| (acc, if sum(acc) > 0.0 { 1.0 } else { 2.0 })",
    ];
    for text in &sound[..3] {
        let closure = Closure::parse(&EPILOGUE, text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(closure.to_string(), *text);
    }
    let cases = [
        ("|acc| acc / sum(acc)", "acc", "outside of folds, the value may read numbers"),
        ("|acc, b2[n]| (acc, sum(acc) + b2)", "b2", "`b2` differs between elements"),
        ("|acc| (acc, sum(acc) * f32(row))", "row", "`row_kernel!`"),
        ("|acc| { let t = 2.0 * acc; (t, t - max(t)) }", "t", "`t` differs between elements"),
        ("|acc| sum(acc)", "sum(acc)", "the first value is stored in C"),
        ("|acc| (acc, sum(acc - max(acc)))", "acc - max(acc)", "depends on another fold"),
        ("|acc| (acc, sum(f32(col) + sum(acc)))", "f32(col) + sum(acc)", "another fold"),
        (sound[3], "sum(acc)", "cannot depend on an `if`"),
        ("|acc| (acc, f32(sum(col)))", "col", "folds floats"),
    ];
    for (text, at, says) in cases {
        let found = faults(&EPILOGUE, text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert_eq!(found[0].0, at, "{text}: {found:?}");
        assert!(found[0].1.contains(says), "{text}: {found:?}");
    }
    let sums: Vec<String> = (1..10).map(|n| format!("sum(acc + {n}.0)")).collect();
    let found = faults(&EPILOGUE, &format!("|acc| (acc, {})", sums.join(" + ")));
    assert!(found[0].1.contains("at most 8 different folds"), "{found:?}");
}
