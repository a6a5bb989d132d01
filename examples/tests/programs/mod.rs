//! Programs as a user runs them, for the tests of each package.

use std::path::PathBuf;
use std::process::{Command, Output};

/// The program of that name, which `cargo test` builds beside the tests.
pub fn program(name: &str) -> Command {
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

/// A run of that program, with the words of a line.
pub fn run(name: &str, line: &str) -> Output {
    let words = line.split_whitespace();
    program(name).args(words).output().expect("a program that can be started")
}

/// The output of a program as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
