//! `rows`.

use super::{program, run, text};
use serde_json::Value;
use std::process::Output;

/// Runs `rows` on the simulator.
fn rows(line: &str) -> Output {
    run("rows", &format!("{line} --device simulator"))
}

/// Returns the message of a run that failed without printing a result.
fn refusal(line: &str) -> String {
    let output = rows(line);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{line}: {message}");
    assert!(output.stdout.is_empty(), "{line}: {}", text(&output.stdout));
    message
}

#[test]
fn every_small_problem_is_right() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("rows.json");
    let output = rows(&format!("--seed 3 --json {}", path.display()));
    let table = text(&output.stdout);
    assert!(output.status.success(), "{table}{}", text(&output.stderr));
    let json = std::fs::read_to_string(&path).expect("a file");
    let report: Value = serde_json::from_str(&json).expect("one object");
    assert_eq!((&report["device"], &report["seed"]), (&Value::from("simulator"), &Value::from(3)));
    assert!(report["read_gb_s"].is_null() && report["peers"] == Value::Array(Vec::new()));
    let all = report["rows"].as_array().expect("rows");
    assert_eq!(table.matches('✓').count(), all.len());
    for row in all {
        assert_eq!(
            (&row["ok"], &row["error"], &row["time_us"]),
            (&true.into(), &Value::Null, &Value::Null)
        );
        assert!(row["checked"].as_u64() > Some(0), "{row}");
    }
    for (table, op) in [("whole", "compensated"), ("rows", "mean_var"), ("segments", "sum")] {
        let found = all.iter().any(|row| row["table"] == table && row["op"] == op);
        assert!(found, "{table}: {op}");
    }
}

#[test]
fn chosen_rules_are_shown() {
    let output = rows("--only rows --shape 4096x8 --op sum,argmax");
    let table = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(table.matches('✓').count(), 2, "{table}");
    assert!(table.contains("len <= 8 && len % 4 == 0") && table.contains("group: 1"), "{table}");
    assert!(table.contains("2^") || table.contains("4096x8"), "{table}");
    assert!(!table.contains("µs"), "nothing is timed: {table}");
}

#[test]
fn tables_are_as_wide_as_the_terminal() {
    for columns in ["80", "100", "160"] {
        let mut rows = program("rows");
        rows.env("COLUMNS", columns).args([
            "--device",
            "simulator",
            "--only",
            "rows",
            "--op",
            "sum",
        ]);
        let table = text(&rows.output().expect("a program that can be started").stdout);
        // The first line is the title.
        let widths = table.lines().skip(1).map(|line| line.chars().count());
        assert!(widths.max() <= columns.parse().ok(), "{columns}:\n{table}");
        assert!(table.contains(" rule ") && table.contains("inner <="), "{columns}:\n{table}");
    }
}

#[test]
fn invalid_options_are_rejected_before_measuring() {
    let message = refusal("--only segments --op dot");
    assert!(message.contains("leave nothing to measure") && message.contains("2^14"), "{message}");
    assert!(refusal("--peers torch --only segments").contains("Use a GPU"));
    assert!(refusal("--plot a.svg").contains("nothing is timed on the simulator"));
    assert!(refusal("--json no-such-directory/a.json").contains("no-such-directory/a.json"));
    assert!(refusal("--shape 3x3").contains("--shape 1024,4096"));
    assert!(refusal("--shape 3x").contains("not a whole number"));
    assert_eq!(run("rows", "--no-such-option").status.code(), Some(2));
    let message = text(&run("rows", "--device cuda").stderr);
    assert!(message.contains("--device simulator") && !message.contains("Device::"), "{message}");
}

#[cfg(target_os = "linux")]
#[test]
fn unwritable_files_are_reported() {
    let output = rows("--only segments --json /dev/full");
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    assert!(message.contains("cannot write: /dev/full"), "{message}");
}
