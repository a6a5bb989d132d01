//! Helpers that run example programs, for the tests of several packages.

use std::path::PathBuf;
use std::process::{Command, Output};

/// Returns a command for an example program, which `cargo test` builds.
pub fn program(name: &str) -> Command {
    let mut path: PathBuf = std::env::current_exe().expect("the test has a path");
    path.pop();
    path.pop();
    path.extend(["examples", name]);
    path.set_extension(std::env::consts::EXE_EXTENSION);
    assert!(path.exists(), "{} is not built: cargo build --examples", path.display());
    let mut command = Command::new(path);
    // Without a GPU and a terminal width, the output is the same on every machine.
    command.env("CUDA_VISIBLE_DEVICES", "").env_remove("COLUMNS");
    command
}

/// Runs a program. The words of `line` are its arguments.
pub fn run(name: &str, line: &str) -> Output {
    let words = line.split_whitespace();
    program(name).args(words).output().expect("a program that can be started")
}

/// Converts the output of a program to text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
