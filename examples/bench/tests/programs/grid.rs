//! `grid`, and the tables of `tune`.

use super::{run, text};
use gemm_runtime::{KernelTable, SgemmSpec};
use serde_json::json;
use std::path::Path;

/// Returns the message of a run that failed without printing a result.
fn refusal(name: &str, line: &str) -> String {
    let output = run(name, line);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{line}: {message}");
    assert!(output.stdout.is_empty(), "{line}: {}", text(&output.stdout));
    message
}

#[test]
fn invalid_options_are_rejected_before_the_gpu_opens() {
    for (line, reason) in [
        ("--m 0", "nothing to measure"),
        ("--layout nx", "The layouts are nn, nt, tn, tt"),
        ("--only 4x5", "as in 4096x4x512"),
        ("--m 2^40 --n 2^40", "memory"),
        ("--random 3 --plot a.svg", "cannot be used with"),
        ("--plot a.pdf", ".svg or .png"),
        ("--json no-such-directory/a.json", "no-such-directory/a.json"),
        ("--table no-such-file.rs", "--table no-such-file.rs"),
    ] {
        let message = refusal("grid", line);
        assert!(message.contains(reason) && !message.contains("GPU"), "{line}: {message}");
    }
    for (line, reason) in [
        ("--limit 3", "--table"),
        ("--m 4", "Add --table"),
        ("--table no-such-directory/a.rs", "no-such-directory/a.rs"),
    ] {
        let message = refusal("tune", line);
        assert!(message.contains(reason) && !message.contains("GPU"), "{line}: {message}");
    }
}

/// Writes a file of times. The first spec is the fastest for small K, the second elsewhere.
fn times(path: &Path) {
    let mut lines = vec![json!({ "device": "it", "arch": 90, "sms": 132 }).to_string()];
    for m in [16, 64, 100, 1024, 3000] {
        for k in [32, 64, 2000, 4096] {
            for (line, us) in [("tile: 8x8x8", k), ("tile: 16x16x8", 400), ("cuBLAS", 800)] {
                let time = json!({ "m": m, "n": 40, "k": k, "layout": "nn", "line": line,
                    "us": f64::from(us) });
                lines.push(time.to_string());
            }
        }
    }
    std::fs::write(path, lines.join("\n") + "\n").expect("written");
}

#[test]
fn a_table_is_made_of_times_without_a_gpu() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (kept, out) = (dir.path().join("times"), dir.path().join("table.rs"));
    times(&kept);
    let line = format!("--table {} --times {}", out.display(), kept.display());
    for more in ["", " --limit 0"] {
        let output = run("tune", &format!("{line}{more}"));
        let shown = text(&output.stdout);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(text(&output.stderr).contains("nothing was measured"), more.is_empty());
        for part in [
            "2 rules of 2 specs, from the times of 2 specs at 20 shapes on it",
            "at these shapes: 0.0 % in the geometric mean, at most 0.0 %",
            "at 20 drawn shapes, by cross-validated tables: 0.0 %",
            "cuBLAS time over that of the table: ",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        let source = std::fs::read_to_string(&out).expect("a table");
        assert!(source.starts_with("//! 2 rules of 2 specs"), "{source}");
        let rows = source.split_once("sgemm_table! {").expect("a macro").1;
        let rows = rows.trim_end().strip_suffix("};").expect("its end");
        let table: KernelTable<SgemmSpec> = rows.parse().expect(rows);
        assert_eq!(table.to_string(), "k <= 256 => tile: 8x8x8;\nelse => tile: 16x16x8");
    }
    std::fs::write(&kept, "{}\n").expect("written");
    assert!(refusal("tune", &line).contains("line 1: missing field"));
}
