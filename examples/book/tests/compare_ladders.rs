//! Tests of the scripts that compare two builds. Stub programs print the output of a ladder.
#![cfg(unix)]

use gemm_dsl::spec::Over;
use gemm_dsl::stages;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Creates a stub for the program `ladder`. It prints these lines for `sgemm`, and nothing
/// otherwise.
fn stub(dir: &Path, name: &str, lines: &[&str]) -> PathBuf {
    let path = dir.join(name);
    let lines: String = lines.iter().map(|line| format!("echo '{line}'\n")).collect();
    let script = format!("#!/bin/sh\n[ \"$1\" = sgemm ] || exit 0\n{lines}");
    fs::write(&path, script).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permitted");
    path
}

fn line(stage: &str, time: f64, vs_cublas: &str, ok: bool) -> String {
    let kernel = format!(r#""ladder":"sgemm","index":3,"stage":"{stage}","spec":"","device":"it""#);
    let sizes = r#""n":64,"m":64,"k":64"#;
    let result = format!(r#""result":1.5,"reference":1.5,"rel_err":0.0,"max_err":0.0,"ok":{ok}"#);
    let rates = format!(r#""gb_s":1.0,"gflops":{},"vs_cublas":{vs_cublas}"#, 1.0 / time);
    format!(r#"{{{kernel},{sizes},{result},"time_ms":{time},{rates},"counters":null}}"#)
}

/// Runs a script and returns its exit code and output.
fn run(script: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/peers").join(script);
    let output = Command::new("bash").arg(script).args(arguments).output().expect("bash");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout) + &text(output.stderr))
}

/// Compares two programs and returns the exit code and the table.
fn compare(old: &Path, new: &Path, more: &[&str]) -> (Option<i32>, String) {
    let path = |path: &Path| path.display().to_string();
    let (old, new) = (path(old), path(new));
    run("compare_ladders.sh", &[&[&*old, &*new, "--rounds", "3"], more].concat())
}

/// Words in the row of a stage.
fn row<'t>(table: &'t str, stage: &str) -> Vec<&'t str> {
    let row = table.lines().find(|line| line.split_whitespace().nth(2) == Some(stage));
    row.unwrap_or_else(|| panic!("{stage}: {table}")).split_whitespace().collect()
}

#[test]
fn stages_are_compared_by_name_and_size() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let all = |rows: &[String]| rows.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
    let old = [
        line("even", 0.5, "0.9", true),
        line("slower", 0.5, "null", true),
        // This stage is slower, but cuBLAS in the same run is slower by the same factor.
        line("clocks", 0.5, "1.0", true),
        line("gone", 0.5, "1.0", true),
        line("wrong", 0.5, "1.0", true),
    ];
    let new = [
        line("even", 0.5, "0.9", true),
        line("slower", 0.625, "null", true),
        line("clocks", 0.625, "1.0", true),
        line("wrong", 0.25, "2.0", false),
    ];
    let (old, new) =
        (stub(dir.path(), "old", &[&all(&old)]), stub(dir.path(), "new", &[&all(&new)]));
    let (code, table) = compare(&old, &new, &["--sizes", "64"]);
    assert_eq!(code, Some(1), "{table}");
    assert_eq!(row(&table, "even")[3..7], ["64", "2.0", "2.0", "1.000"]);
    assert!(!row(&table, "even").contains(&"<--"));
    assert_eq!(row(&table, "slower")[4..7], ["2.0", "1.6", "0.800"]);
    assert_eq!(row(&table, "slower")[11..], ["<--", "slower"]);
    assert_eq!(row(&table, "clocks")[6..], ["0.800", "0.800", "…", "0.800", "1.000"]);
    assert!(table.contains("<-- missing in new"), "{table}");
    assert!(row(&table, "wrong").ends_with(&["<--", "wrong"]), "{table}");
    assert!(table.contains("4 stages timed"), "{table}");

    let (code, table) = compare(&old, &old, &["--sizes", "64,64"]);
    assert_eq!(code, Some(0), "{table}");
    assert_eq!(compare(&old, &dir.path().join("none"), &[]).0, Some(2));
    assert_eq!(compare(&old, &new, &["--sizes"]).0, Some(2));
}

#[test]
fn a_script_says_what_it_takes() {
    for script in ["compare_ladders.sh", "macro_cost.sh"] {
        for arguments in [&[][..], &["--no-such-option"], &["no/such/path"]] {
            let (code, said) = run(script, arguments);
            assert_eq!(code, Some(2), "{script} {arguments:?}: {said}");
            assert!(said.contains(&format!("\n  {script} ")), "{said}");
        }
    }
}

#[test]
fn a_ladder_has_the_counters_of_its_own() {
    let mut ladder = std::env::current_exe().expect("the test has a path");
    ladder.pop();
    ladder.pop();
    ladder.extend(["examples", "ladder"]);
    let options = ["--device", "simulator", "--sizes", "17", "--lengths", "100", "--rounds", "1"];
    let (code, table) = compare(&ladder, &ladder, &options);
    assert_eq!(code, Some(0), "{table}");
    let whole = stages::reduce().into_iter().filter(|stage| stage.spec.over == Over::All);
    let stages = whole.count() + stages::sgemm().len();
    let compared = format!("0 stages timed, {stages} compared by their counters, 0 to look at");
    assert!(table.contains(&compared), "{table}");
}
