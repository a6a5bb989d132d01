//! Snapshots in the top-level folder `snapshots/`. The snapshots are of every stage of both
//! ladders, of stages as published kernels have them, of reductions of segments and of runs, and of
//! GEMMs with an epilogue or in batches. For each spec there are the CUDA source, simulator
//! counters, and the resource report of the pinned compiler. The pages that document the DSL are
//! also compared.
//!
//! `cargo bless` updates them.

mod counters;
mod directory;
mod docs;
mod lint;
mod resources;
mod text;

use gemm_dsl::stages::pinned;
use libtest_mimic::{Arguments, Trial};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("snapshots")
}

/// Compares with the snapshot of that name in a spec's folder.
fn compare(of: &str, name: &str, text: &str) {
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(folder().join(of));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

fn main() -> ExitCode {
    let mut specs = pinned::all().unwrap_or_else(|faults| panic!("{faults}"));
    specs.extend(pinned::untimed().unwrap_or_else(|faults| panic!("{faults}")));
    let mut trials = vec![directory::trial(&specs), lint::own_trial()];
    for (number, spec) in specs.iter().enumerate() {
        trials.extend(text::trials(spec));
        trials.extend(lint::trials(spec));
        trials.push(counters::trial(spec));
        trials.extend(resources::trials(number, spec));
    }
    trials.extend(docs::trials());
    run(trials)
}

fn run(trials: Vec<Trial>) -> ExitCode {
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
