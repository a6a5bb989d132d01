//! The programs as a user runs them: what they print, and their exit codes.

mod explain;
mod grid;
mod ladder;
mod rows;
mod scale;

use explain::explain;
use gemm_dsl::expr::Function;
use std::path::PathBuf;
use std::process::{Command, Output};

/// The program of that name, which `cargo test` builds beside the tests.
fn program(name: &str) -> Command {
    let mut path: PathBuf = std::env::current_exe().expect("the test has a path");
    path.pop();
    path.pop();
    path.extend(["examples", name]);
    path.set_extension(std::env::consts::EXE_EXTENSION);
    assert!(path.exists(), "{} is not built: cargo build --examples", path.display());
    let mut command = Command::new(path);
    // No network, no GPU, no terminal: the same everywhere.
    command.env("CUDA_VISIBLE_DEVICES", "").env_remove("COLUMNS");
    command
}

fn run(name: &str, line: &str) -> Output {
    let words = line.split_whitespace();
    program(name).args(words).output().expect("a program that can be started")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The message of a run that could not do its work.
fn refusal(line: &str) -> String {
    let output = run("ladder", line);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{line}: {message}");
    assert!(output.stdout.is_empty(), "{line}: {}", text(&output.stdout));
    message
}

#[test]
fn a_bad_option_is_refused_before_anything_is_printed() {
    for arch in ["70", "999", "sm_7", "x"] {
        let output = explain(&["block: 64", "--arch", arch]);
        assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true), "{arch}");
        let message = text(&output.stderr);
        assert!(message.contains("Known are 75, 80"), "{message}");
    }
    for line in ["--size 1k", "--size -1"] {
        let output = run("tune", line);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("2^20+7"), "{}", text(&output.stderr));
    }
    for line in ["--size 0", "--family reduce --size 64,0", "--batch 0"] {
        let message = text(&run("tune", line).stderr);
        assert!(message.contains("nothing to time") && !message.contains("GPU"), "{message}");
    }
}

#[test]
fn a_search_that_memory_cannot_hold_is_refused_before_the_gpu() {
    for line in ["--size 2^40", "--size 64 --batch 2^50", "--family reduce --size 2^60"] {
        let message = text(&run("tune", line).stderr);
        assert!(message.contains("memory") && !message.contains("GPU"), "{line}: {message}");
    }
}

#[test]
fn remedies_are_for_the_command_line() {
    let mut messages = vec![refusal("reduce --device cuda")];
    messages.extend(["tune", "launch_overhead", "grid"].map(|name| text(&run(name, "").stderr)));
    for message in &messages {
        assert!(!message.contains("Device::"), "{message}");
    }
    assert!(messages[0].contains("--device simulator"), "{}", messages[0]);
}

#[test]
fn the_bounds_of_the_functions_hold_for_a_sample() {
    let output = run("ulp", "");
    let table = text(&output.stdout);
    assert!(output.status.success(), "{table}{}", text(&output.stderr));
    for row in Function::ALL.iter().map(|function| function.info()) {
        let lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let of_row = lines.filter(|words| words.contains(&row.name)).collect::<Vec<_>>();
        let bound = row.bound.map(|bound| format!("{:.2}", bound.ulp));
        assert_eq!(of_row.len(), usize::from(bound.is_some()), "{}: {table}", row.name);
        let said = bound.iter().all(|bound| of_row[0].contains(&bound.as_str()));
        assert!(said, "{}: {table}", row.name);
    }
}

#[test]
fn the_quickstart_runs() {
    let output = run("quickstart", "");
    // Where there is a driver but no visible GPU, it runs on the simulator just the same.
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("every element of C is 32"));
}

#[test]
fn measurements_without_a_gpu_say_what_they_need() {
    for name in ["tune", "launch_overhead", "grid"] {
        let output = run(name, "");
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(text(&output.stderr).contains("GPU"), "{name}: {}", text(&output.stderr));
    }
}
