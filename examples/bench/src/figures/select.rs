//! Selection of a value from the JSON output of a program.
//!
//! A selector is `[FOLD] [LIST] KEY=VALUE …: FIELD [* FACTOR]`, for example
//! `rows shape=128x4096x4095 op=sum: read_gb_s`. It takes a field of the objects whose keys have
//! the values. The objects are those of the output, or the items of a list in it. Without a fold,
//! exactly one object must match; the folds are `least`, `most`, `mean` (geometric) and `count`.

use crate::grid::report::geometric_mean;
use serde_json::Value;

/// Function that folds several values into one.
type ValueFold = fn(&[f64]) -> Option<f64>;

/// Folds with their names.
const FOLDS: [(&str, ValueFold); 4] = [
    ("least", |values| values.iter().copied().min_by(f64::total_cmp)),
    ("most", |values| values.iter().copied().max_by(f64::total_cmp)),
    ("mean", geometric_mean),
    ("count", |values| Some(values.len() as f64)),
];

/// Returns the value that a selector takes from the objects of an output.
///
/// # Errors
/// Returns a message for a faulty selector or a wrong number of values.
pub fn select(selector: &str, output: &[Value]) -> Result<f64, String> {
    let fault = |reason: String| Err(format!("`{selector}`: {reason}"));
    let Some((objects, field)) = selector.rsplit_once(": ") else {
        return fault("there is no field. Write it after a colon".to_owned());
    };
    let (field, factor) = field.split_once(" * ").unwrap_or((field, "1"));
    let Ok(factor) = factor.parse::<f64>() else {
        return fault(format!("`{factor}` is not a number"));
    };
    let mut words = objects.split(' ').filter(|word| !word.is_empty()).peekable();
    let fold = words.next_if(|word| FOLDS.iter().any(|(name, _)| name == word));
    let list = words.next_if(|word| !word.contains('='));
    let mut filters = Vec::new();
    for word in words {
        match word.split_once('=') {
            Some(filter) => filters.push(filter),
            None => return fault(format!("`{word}` is not a key and a value")),
        }
    }
    let items: Vec<&Value> = match list {
        None => output.iter().collect(),
        Some(list) => {
            output.iter().filter_map(|object| object.get(list)?.as_array()).flatten().collect()
        }
    };
    let matches = |object: &&&Value| {
        filters.iter().all(|(key, value)| object.get(key).map(text).as_deref() == Some(value))
    };
    let found = items.iter().filter(matches);
    let found = found.filter_map(|object| object.get(field)?.as_f64());
    let found: Vec<f64> = found.map(|value| value * factor).collect();
    let value = match (FOLDS.iter().find(|(name, _)| Some(*name) == fold), &found[..]) {
        (None, [value]) => Some(*value),
        (None, values) => return fault(format!("{} values match, not one", values.len())),
        (Some((_, fold)), values) => fold(values),
    };
    value.map_or_else(|| fault("no value matches".to_owned()), Ok)
}

/// Text of a value in a selector: extents are joined by `x`, blanks are underscores.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.replace(' ', "_"),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join("x"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_selector_takes_a_value() {
        let lines = [
            json!({"stage": "naive", "n": 512, "gflops": 4000.0, "time_ms": 0.5}),
            json!({"stage": "naive", "n": 1024, "gflops": 16000.0, "time_ms": null}),
        ];
        let of = |selector| select(selector, &lines);
        assert_eq!(of("stage=naive n=512: gflops * 0.001"), Ok(4.0));
        assert_eq!(of("least stage=naive: gflops"), Ok(4000.0));
        assert_eq!(of("most: gflops"), Ok(16_000.0));
        assert_eq!(of("mean: gflops").map(f64::round), Ok(8000.0));
        assert_eq!(of("count: time_ms"), Ok(1.0));
        let report = [json!({"means": [{"of": "m or n <= 64", "shape": [8, 4096], "ratio": 1.5}]})];
        assert_eq!(select("means of=m_or_n_<=_64 shape=8x4096: ratio", &report), Ok(1.5));
    }

    #[test]
    fn a_selection_is_never_ambiguous() {
        let lines = [json!({"n": 1, "us": 2.0}), json!({"n": 2, "us": 3.0})];
        for (selector, reason) in [
            (": us", "2 values match, not one"),
            ("n=3: us", "0 values match"),
            ("n=1: ms", "0 values match"),
            ("rows n=1: us", "0 values match"),
            ("least n=3: us", "no value matches"),
            ("n=1", "there is no field"),
            ("n=1 us", "there is no field"),
            ("least rows of n=1: us", "`of` is not a key and a value"),
            ("n=1: us * much", "`much` is not a number"),
        ] {
            let error = select(selector, &lines).expect_err(selector);
            assert!(error.contains(reason), "{error}");
        }
    }
}
