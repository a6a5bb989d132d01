//! Snapshots of the CUDA source of a stage's kernels.

use crate::compare;
use gemm_dsl::stages::pinned::PinnedSpec;
use libtest_mimic::Trial;

/// Pinned sources of scalar variants, one for each kind of GEMM and reduction. Other scalar
/// variants differ from their vector variants in the same way.
const SCALAR: [&str; 7] = [
    "map/norm.scalar",
    "reduce/09_columns.scalar",
    "runs/argmax.shard.scalar",
    "sgemm/11_float4.scalar",
    "sgemm/22_fastest.scalar",
    "sgemm/36_mma_bf16x6.scalar",
    "sgemm/41_wgmma_bf16x6.scalar",
];

/// True if the source of a stage's kernel is pinned, given the suffix of its snapshot.
pub fn is_pinned(stage: &PinnedSpec, suffix: &str) -> bool {
    let name = format!("{}/{}{suffix}", stage.folder, stage.stem);
    !suffix.ends_with(".scalar") || SCALAR.contains(&&*name)
}

pub fn trials(stage: &PinnedSpec) -> Vec<Trial> {
    let trial = |(suffix, source): (&str, String)| {
        let (folder, name) = (stage.folder, format!("{}{suffix}", stage.stem));
        Trial::test(format!("text::{folder}::{name}"), move || {
            compare(folder, &name, &source);
            Ok(())
        })
    };
    stage.sources().filter(|(suffix, _)| is_pinned(stage, suffix)).map(trial).collect()
}
