//! Output and exit codes of the programs.

mod grid;
#[path = "../../../tests/programs/mod.rs"]
mod programs;
mod rows;
mod scale;

use gemm_dsl::expr::Function;
use programs::{program, run, text};

#[test]
fn a_bad_size_is_refused_before_anything_is_printed() {
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
    for name in ["tune", "launch_overhead", "grid"] {
        let message = text(&run(name, "").stderr);
        assert!(!message.contains("Device::"), "{message}");
    }
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
fn measurements_without_a_gpu_say_what_they_need() {
    for name in ["tune", "launch_overhead", "grid"] {
        let output = run(name, "");
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(text(&output.stderr).contains("GPU"), "{name}: {}", text(&output.stderr));
    }
}
