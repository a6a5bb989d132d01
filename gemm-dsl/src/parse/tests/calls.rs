//! What a macro call tells of a spec that is faulty.

use super::super::sgemm;

/// The operands of a call, as an epilogue names them.
fn operands(text: &str) -> Option<Vec<String>> {
    let call = sgemm(text.parse().expect("tokens"));
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
    // A name that will not do is a name.
    let wrong = "epilogue: |row, f32, acc[m], r[m, n]| acc";
    assert_eq!(operands(wrong).expect("they are written"), ["f32", "acc[m]", "r[m, n]"]);
    for none in ["", "tile: 7", "scaled, epilogue: |acc, alpha| acc * alpha", "epilogue: |a| b"] {
        let factors = none.starts_with("scaled");
        let expected: &[&str] = if factors { &["alpha", "beta", "alpha"] } else { &[] };
        assert_eq!(operands(none).expect("there are none"), expected, "{none}");
    }
}

#[test]
fn what_hides_the_operands_is_no_list_of_none() {
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
