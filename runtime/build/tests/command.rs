//! Command `gemm-archive`. Tests that need NVRTC are ignored without it.

use common::{Outcome, Prerequisite, ensure};
use libtest_mimic::{Arguments, Failed, Trial};
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

#[path = "../../tests/common/mod.rs"]
mod common;

fn main() -> ExitCode {
    let nvrtc = Prerequisite::nvrtc();
    let needs_nvrtc = |name: &str, test| nvrtc.trial(name, test);
    let trials = vec![
        needs_nvrtc("an_archive_is_written_and_listed", written),
        Trial::test("faults_are_reported_with_exit_code_2", faults),
        Trial::test("help_names_every_option", help),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Exit code, standard output and standard error of the command in a folder.
fn run(folder: &Path, words: &[&str]) -> Result<(Option<i32>, String, String), Failed> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gemm-archive"));
    let output = command.current_dir(folder).args(words).output()?;
    let [out, error] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok((output.status.code(), out, error))
}

fn written() -> Outcome {
    let dir = tempfile::tempdir()?;
    let specs = "// Kernels of the server\nreduce_kernel!(op: max)\nsgemm_kernel!(tile: 8x8x8)\n";
    fs::write(dir.path().join("specs"), specs)?;
    let words = ["build", "--arch", "sm_80,sm_90", "--specs", "specs", "-o", "k.gemm"];
    let (code, out, error) = run(dir.path(), &words)?;
    ensure(code == Some(0) && error.is_empty(), || format!("{code:?}: {error}"))?;
    ensure(out.starts_with("k.gemm: "), || out)?;
    let (code, out, error) = run(dir.path(), &["list", "k.gemm"])?;
    ensure(code == Some(0) && error.is_empty(), || format!("{code:?}: {error}"))?;
    for arch in ["sm_80", "sm_90"] {
        for spec in ["reduce_kernel!(op: max)", "sgemm_kernel!(tile: 8x8x8)"] {
            let is_line = |line: &&str| line.starts_with(arch) && line.ends_with(spec);
            ensure(out.lines().any(|line| is_line(&line)), || {
                format!("no {arch} {spec} in {out}")
            })?;
        }
    }
    let table = ["build", "--arch", "sm_90", "--table", "sgemm", "--shapes", "64x64x64", "--sms"];
    let rest = ["132", "--epilogue", "|acc| relu(acc)", "--layouts", "nt", "-o", "t.gemm"];
    let (code, _, error) = run(dir.path(), &[&table[..], &rest].concat())?;
    ensure(code == Some(0), || error)?;
    let (_, out, _) = run(dir.path(), &["list", "t.gemm"])?;
    let is_of_call = |line: &str| line.ends_with("relu(acc))") && line.contains("layout: nt");
    ensure(!out.is_empty() && out.lines().all(is_of_call), || out)?;
    let (code, _, error) =
        run(dir.path(), &[&table[..], &["132", "--padded", "-o", "p"]].concat())?;
    ensure(code == Some(0), || error)?;
    let (_, out, _) = run(dir.path(), &["list", "p"])?;
    ensure(out.lines().all(|line| line.contains("pitched")), || out.clone())?;
    for layout in ["nt", "tn", "tt"] {
        ensure(out.contains(&format!("layout: {layout}")), || format!("no {layout} in\n{out}"))?;
    }
    Ok(())
}

fn faults() -> Outcome {
    let dir = tempfile::tempdir()?;
    fs::write(dir.path().join("faulty"), "sgemm_kernel!(tile: 8x8x8, thread: 3x3)")?;
    fs::write(dir.path().join("text"), "tile: \"8x8x8")?;
    fs::write(dir.path().join("line"), "tile: 8x8x8")?;
    let build = |words: &[&'static str]| {
        let all = [&["build", "--arch", "sm_90", "-o", "out"], words].concat();
        (all, words.join(" "))
    };
    let table = |words: &[&'static str]| build(&[&["--table", "sgemm"], words].concat());
    for ((words, label), part) in [
        (build(&["--specs", "faulty"]), "error: faulty: sgemm_kernel!("),
        (build(&["--specs", "text"]), "error: text: "),
        (build(&["--specs", "line"]), "error: line has no calls of `sgemm_kernel!`"),
        (build(&["--specs", "nowhere"]), "error: nowhere: No such file"),
        (build(&["--arch", "90"]), "error: `90` is not an architecture"),
        (build(&["--scaled"]), "--table"),
        (table(&["--sms", "1"]), "--shapes"),
        (table(&["--shapes", "64x64", "--sms", "1"]), "error: --shapes: `64x64` is not a shape"),
        (table(&["--layouts", "no"]), "error: --layouts: "),
        (table(&["--epilogue", "|acc| foo"]), "error: --epilogue: "),
        ((vec!["list", "faulty"], "list".to_owned()), "the archive `faulty` cannot be used"),
    ] {
        let (code, out, error) = run(dir.path(), &words)?;
        ensure(code == Some(2), || format!("{label}: {code:?} {out} {error}"))?;
        ensure(error.contains(part), || format!("{label}: no {part:?} in\n{error}"))?;
    }
    ensure(!dir.path().join("out").exists(), || "an archive was written".to_owned())
}

fn help() -> Outcome {
    let (code, out, _) = run(Path::new("."), &["build", "--help"])?;
    ensure(code == Some(0), || out.clone())?;
    let options = ["arch", "output", "specs", "table", "shapes", "sms", "layouts", "padded"];
    for option in options.iter().chain(&["scaled", "batch", "accuracy", "epilogue", "splits"]) {
        ensure(out.contains(&format!("--{option}")), || format!("no {option} in\n{out}"))?;
    }
    Ok(())
}
