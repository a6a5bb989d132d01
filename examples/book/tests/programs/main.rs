//! Tests of the programs as run by a user: output and exit codes.

mod explain;
mod ladder;
#[path = "../../../tests/programs/mod.rs"]
mod programs;

use explain::explain;
use programs::{program, run, text};

/// Message of a run that exits with code 2.
fn refusal(line: &str) -> String {
    let output = run("ladder", line);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{line}: {message}");
    assert!(output.stdout.is_empty(), "{line}: {}", text(&output.stdout));
    message
}

#[test]
fn a_bad_architecture_is_refused_before_anything_is_printed() {
    for arch in ["70", "999", "sm_7", "x"] {
        let output = explain(&["block: 64", "--arch", arch]);
        assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true), "{arch}");
        let message = text(&output.stderr);
        assert!(message.contains("Known are 75, 80"), "{message}");
    }
}

#[test]
fn remedies_are_for_the_command_line() {
    let message = refusal("reduce --device cuda");
    assert!(!message.contains("Device::"), "{message}");
    assert!(message.contains("--device simulator"), "{message}");
}
