//! Snapshots of every stage of both ladders, in the top-level folder `snapshots/`: the CUDA text,
//! the simulator's counters, and the resource report of the pinned compiler; and the pages that
//! teach the DSL.
//!
//! `cargo bless` writes them anew.

mod counters;
mod directory;
mod docs;
mod resources;
mod text;

use gemm_dsl::cuda;
use gemm_dsl::ir::{Variant, VerifiedKernel};
use gemm_dsl::stages;
use gemm_tests::stem;
use libtest_mimic::{Arguments, Trial};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A stage of either ladder.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The folder of its ladder.
    ladder: &'static str,
    /// `04_unroll_last_warp`: what its files start with.
    stem: String,
    /// Its spec as a line of the DSL.
    line: String,
    /// The preferred kernel, then the fallback.
    kernels: Vec<VerifiedKernel>,
}

impl Stage {
    /// What a snapshot of one of its kernels is called beside the stem.
    fn suffix(kernel: &VerifiedKernel) -> &'static str {
        if kernel.variant == Variant::Scalar { ".scalar" } else { "" }
    }

    fn sources(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.kernels.iter().map(|kernel| (Self::suffix(kernel), cuda::source(kernel)))
    }
}

fn catalogue() -> Vec<Stage> {
    fn all<S: gemm_dsl::Family>(
        ladder: &'static str,
        stages: Vec<stages::Stage<S>>,
    ) -> impl Iterator<Item = Stage> {
        stages.into_iter().map(move |stage| {
            let program = stage.spec.program().expect("a sound stage");
            let kernels = program.variants().cloned().collect();
            Stage { ladder, stem: stem(&stage), line: stage.spec.to_string(), kernels }
        })
    }
    all("reduce", stages::reduce()).chain(all("sgemm", stages::sgemm())).collect()
}

/// The top-level folder of the snapshots.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("snapshots")
}

/// Compares with the snapshot of that name in a ladder's folder.
fn compare(ladder: &str, name: &str, text: &str) {
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(folder().join(ladder));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

fn main() -> ExitCode {
    let stages = catalogue();
    let mut trials = vec![directory::trial(&stages)];
    for stage in &stages {
        trials.extend(text::trials(stage));
        trials.push(counters::trial(stage));
        trials.extend(resources::trials(stage));
    }
    trials.extend(docs::trials());
    run(trials)
}

fn run(trials: Vec<Trial>) -> ExitCode {
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
