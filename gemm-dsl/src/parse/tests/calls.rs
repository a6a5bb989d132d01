//! Tests of the results of a macro call with a faulty spec.

use super::super::{reduce, sgemm};

/// Returns the operands of a call, as the epilogue declares them.
fn operands(text: &str) -> Option<Vec<String>> {
    let call = sgemm(text.parse().expect("tokens"), false);
    let operands = call.operands?;
    Some(operands.iter().map(|(operand, _)| operand.to_string()).collect())
}

#[test]
fn operands_are_told_in_spite_of_other_faults() {
    const EPILOGUE: &str = "epilogue: |acc, bias[n], c[m, n], r[m, n]|";
    for body in
        ["acc + bias + c + r", "acc + bais", "acc +", "{ let t = acc; }", "bias > r", "acc as f64"]
    {
        for more in ["", "tile: 7", "tille: 8x8x8, foo", "block: 96x96", "float4: 4", "blok: 8x8"] {
            let text = format!("{EPILOGUE} {body}, {more}");
            assert_eq!(
                operands(&text).expect("they are written"),
                ["bias[n]", "r[m, n]"],
                "{text}"
            );
            let text = format!("{more}, scaled, {EPILOGUE} {body}");
            let all = operands(&text).expect("they are written");
            assert_eq!(all, ["alpha", "beta", "bias[n]", "r[m, n]"], "{text}");
        }
    }
    // A name that is not allowed is still a name.
    let wrong = "epilogue: |row, f32, acc[m], r[m, n]| acc";
    assert_eq!(operands(wrong).expect("they are written"), ["f32", "acc[m]", "r[m, n]"]);
    for none in ["", "tile: 7", "scaled, epilogue: |acc, alpha| acc * alpha", "epilogue: |a| b"] {
        let factors = none.starts_with("scaled");
        let expected: &[&str] = if factors { &["alpha", "beta", "alpha"] } else { &[] };
        assert_eq!(operands(none).expect("there are none"), expected, "{none}");
    }
}

#[test]
fn faulty_epilogues_give_unknown_operands() {
    for text in [
        "epilogue",
        "epilogue:",
        "epilogue: acc",
        "epilogue: |acc, bias[k]| acc + bias",
        "epilogue: |acc, bias[n], bias[n]| acc + bias",
        "epilogue: |acc: f32, bias[n]| acc + bias",
        "epilogue: |bias[n], acc| acc + bias",
        "epilogue: |acc",
        "epilog: |acc, bias[n]| acc + bias",
        "scaled: 2",
        "scalled",
    ] {
        assert_eq!(operands(text), None, "{text}");
    }
}

#[test]
fn a_second_epilogue_changes_nothing() {
    let twice = "epilogue: |acc, x| acc * x, epilogue: |acc, y[n]| acc * y";
    assert_eq!(operands(twice).expect("the first one"), ["x"]);
}

/// Returns the element types of a call's inputs and results; `_` where a fault hides them.
fn types(text: &str) -> [String; 2] {
    let call = reduce(text.parse().expect("tokens"));
    [call.inputs, call.results].map(|elems| match elems {
        None => "_".to_owned(),
        Some(elems) => elems.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
    })
}

#[test]
fn the_types_of_a_reduction_are_told_in_spite_of_other_faults() {
    for (text, inputs, results) in [
        ("", "f32", "f32"),
        ("type: f16", "f16", "f32"),
        ("type: bf16, result: bf16", "bf16", "bf16"),
        ("type: i8, acc: i64", "i8", "i64"),
        ("op: argmax, type: f64, index: u64", "f64", "u64"),
        ("op: any, type: i32", "i32", "u8"),
        ("op: mean_var, result: f16", "f32", "f16 f16"),
        ("op: mean_var, finish: |mean, var| sqrt(var)", "f32", "f32"),
        ("type: u8, map: |x, y, z| x + y + z", "u8 u8 u8", "u32"),
        ("fold: |a, b| max(a, b), identity: 0, type: i64", "i64", "i64"),
        // Faulty expressions with valid parameters.
        ("map: |x, y| x * z, type: f64", "f64 f64", "f64"),
        ("op: mean_var, finish: |mean, var| mean +", "f32", "f32"),
        ("fold: |a, b| a +, identity: 0.0", "f32", "f32"),
        // Combinations that the plan rejects.
        ("type: f64, acc: i32", "f64", "i32"),
        ("op: argmin, result: f32", "f32", "u32"),
    ] {
        for more in ["", "block: 7", "blok: 64, foo", "over: row", "group: 3, pitched: 4"] {
            for text in [format!("{text}, {more}"), format!("{more}, {text}")] {
                let text = text.trim_matches([' ', ',']);
                assert_eq!(types(text), [inputs, results], "{text}");
            }
        }
    }
}

#[test]
fn faulty_types_give_unknown_types() {
    for (text, inputs, results) in [
        ("type: f33", "_", "_"),
        ("tpye: f64", "_", "_"),
        ("op: sun, type: f64", "f64", "_"),
        ("acc: f31", "f32", "_"),
        ("resullt: f16", "f32", "_"),
        ("index: u16, op: argmax", "f32", "_"),
        ("map: x * x, type: i32", "_", "i32"),
        ("map: |x[n], y| x + y", "_", "f32"),
        ("finish: s / 2.0", "_", "_"),
        ("fold: max", "f32", "_"),
    ] {
        assert_eq!(types(text), [inputs, results], "{text}");
    }
}
