//! Runs of the example programs, for the tests of each package.

use std::path::PathBuf;
use std::process::{Command, Output};

/// Returns a command for a program that `cargo test` builds beside the tests.
pub fn program(name: &str) -> Command {
    let mut path: PathBuf = std::env::current_exe().expect("the test has a path");
    path.pop();
    path.pop();
    path.extend(["examples", name]);
    path.set_extension(std::env::consts::EXE_EXTENSION);
    assert!(path.exists(), "{} is not built: cargo build --examples", path.display());
    let mut command = Command::new(path);
    // No GPU and no terminal width: the same output everywhere.
    command.env("CUDA_VISIBLE_DEVICES", "").env_remove("COLUMNS");
    command
}

/// Runs a program with the words of a line as arguments.
pub fn run(name: &str, line: &str) -> Output {
    let words = line.split_whitespace();
    program(name).args(words).output().expect("a program that can be started")
}

/// Converts the output of a program to text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
