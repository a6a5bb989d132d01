//! Snapshots in the top-level folder `snapshots/`. They cover every stage of both ladders,
//! reductions of segments and of runs, and GEMMs with an epilogue or in batches. Each has its CUDA
//! text, simulator counters, and resource report of the pinned compiler. The pages that teach the
//! DSL are compared too.
//!
//! `cargo bless` updates them.

mod counters;
mod directory;
mod docs;
mod resources;
mod text;

use gemm_dsl::ir::{Variant, VerifiedKernel};
use gemm_dsl::spec::{ReduceSpec, SgemmSpec};
use gemm_dsl::stages;
use gemm_dsl::{Family, Plan, cuda};
use gemm_tests::stem;
use libtest_mimic::{Arguments, Trial};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Stage of either ladder, or another kernel.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Folder of its ladder, or `segments`, `runs`, `epilogue` or `batch`.
    ladder: &'static str,
    /// Start of its file names, for example `04_unroll_last_warp`.
    stem: String,
    /// Spec as text of the DSL.
    line: String,
    /// Preferred kernel, then its fallback, then kernels of other launches of a GEMM or of runs,
    /// and of shards.
    kernels: Vec<VerifiedKernel>,
}

impl Stage {
    fn new(ladder: &'static str, stem: String, spec: &impl Family) -> Self {
        let program = spec.plan().and_then(|plan| plan.program()).expect("a sound stage");
        let others = program.launched().filter(|other| {
            // The passes of a reduction differ only in their loads.
            ladder != "reduce" && program.variants().all(|kernel| kernel.name != other.name)
        });
        let kernels = program.variants().chain(others).cloned().collect();
        Self { ladder, stem, line: spec.to_string(), kernels }
    }

    /// Suffix of a kernel's snapshot after the stem.
    fn suffix(kernel: &VerifiedKernel) -> &'static str {
        match kernel.variant {
            Variant::Scalar if kernel.name.ends_with("_of_shard") => ".shard.scalar",
            Variant::Scalar => ".scalar",
            _ if kernel.name.ends_with("_of_shard") => ".shard",
            _ if kernel.name.ends_with("_of_partials") => ".partials",
            _ if kernel.name.ends_with("_greatest") => ".greatest",
            _ if kernel.name.ends_with("_planes") => ".planes",
            _ if kernel.name.ends_with("_f32") => ".f32",
            _ => "",
        }
    }

    fn sources(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.kernels.iter().map(|kernel| (Self::suffix(kernel), cuda::source(kernel)))
    }
}

fn catalogue() -> Vec<Stage> {
    fn all<S: Family>(
        ladder: &'static str,
        stages: Vec<stages::Stage<S>>,
    ) -> impl Iterator<Item = Stage> {
        stages.into_iter().map(move |stage| {
            let stem = stem(&stage);
            Stage::new(ladder, stem, &stage.spec)
        })
    }
    let ladders = all("reduce", stages::reduce()).chain(all("sgemm", stages::sgemm()));
    ladders.chain(reductions()).chain(products()).collect()
}

/// A reduction of segments: groups reduce short ones and blocks long ones, and the bits depend on
/// the limit. A reduction of runs, with the kernel for runs of a shard.
fn reductions() -> impl Iterator<Item = Stage> {
    let spec =
        |line: &str| -> ReduceSpec { line.parse().unwrap_or_else(|error| panic!("{error}")) };
    let groups = spec("over: segments, block: 128, group: 8, items: 4, shuffle");
    let argmax = spec("op: argmax, block: 128, items: 2, shuffle, float4, run: 2048");
    let mut runs = Stage::new("runs", "argmax".to_owned(), &argmax);
    let shard =
        argmax.plan().and_then(|plan| plan.program_of_shard()).expect("its blocks fold runs");
    runs.kernels.extend(shard.variants().cloned());
    [Stage::new("segments", "groups".to_owned(), &groups), runs].into_iter()
}

/// GEMMs: a small one whose expression uses most features, the fastest stage with a library
/// function, a batch with several GEMMs per block, and one on lists.
fn products() -> impl Iterator<Item = Stage> {
    let small = "tile: 32x32x8, thread: 4x4, float4, epilogue: |acc| { let t = 0.5 * acc; \
                 if row == col { fma(t, t, f32(m * n)) } else { max(t, -1.0) } }";
    let mut stages = stages::sgemm().into_iter();
    let fastest = stages.find(|stage| stage.name == "fastest").expect("a stage of this name").spec;
    let fastest = format!("{fastest}, epilogue: |acc| gelu(acc)");
    let several = "tile: 16x16x16, thread: 4x4, float4, pad_a: 1, batch: strided, products: 4";
    let pointers = "tile: 32x32x16, thread: 4x4, float4, stages: 3, pitched, batch: pointers, \
                    epilogue: |acc, c[m, n], bias[n]| relu(acc + bias) + c";
    let others = [
        ("epilogue", "small", small),
        ("epilogue", "fastest_gelu", &fastest),
        ("batch", "several_a_block", several),
        ("batch", "pointers", pointers),
    ];
    let others = others.map(|(folder, stem, line)| {
        let spec: SgemmSpec = line.parse().unwrap_or_else(|error| panic!("{error}"));
        Stage::new(folder, stem.to_owned(), &spec)
    });
    others.into_iter()
}

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
