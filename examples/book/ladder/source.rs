//! Printing of a stage's CUDA C.

use crate::{reduce, sgemm};
use gemm_bench::cli::{Failure, Outcome};
use gemm_bench::ladder::options::Jobs;
use gemm_dsl::stages::Stage;
use gemm_runtime::generic::Kernel;
use gemm_runtime::{ByName, ReduceSpec, SgemmKernel};
use std::io::Write;

/// Prints the source of the stage with this number, name or snapshot name.
pub fn print(wanted: &str, jobs: &Jobs) -> Result<Outcome, Failure> {
    let reductions = jobs.reduce.as_ref().map(reduce::catalogue).unwrap_or_default();
    let products = jobs.sgemm.as_ref().map(sgemm::stages).unwrap_or_default();
    let mut sources = Vec::new();
    for stage in reductions.iter().filter(|stage| is(stage, wanted)) {
        let kernel = Kernel::<ReduceSpec, ByName>::new(stage.spec.clone())?;
        sources
            .push((format!("reduce {} {}", stage.index, stage.name), kernel.source().to_owned()));
    }
    for stage in products.iter().filter(|stage| is(stage, wanted)) {
        let kernel = SgemmKernel::new(stage.spec.clone())?;
        sources.push((format!("sgemm {} {}", stage.index, stage.name), kernel.source().to_owned()));
    }
    let ladders: Vec<&str> =
        sources.iter().filter_map(|(name, _)| name.split(' ').next()).collect();
    if sources.is_empty() {
        let names = |stage: (u32, &str)| format!("{} {}", stage.0, stage.1);
        let all = reductions.iter().map(|s| (s.index, s.name)).map(names);
        let all: Vec<String> =
            all.chain(products.iter().map(|s| (s.index, s.name)).map(names)).collect();
        return Err(Failure::Usage(format!(
            "--source {wanted}: no stage has this name. The stages are: {}",
            all.join(", ")
        )));
    }
    if ladders.contains(&"reduce") && ladders.contains(&"sgemm") {
        return Err(Failure::Usage(format!(
            "--source {wanted}: both ladders have a stage of this name. Name the ladder: `ladder \
             reduce` or `ladder sgemm`"
        )));
    }
    let mut out = std::io::stdout().lock();
    for (_, source) in sources {
        write!(out, "{source}")?;
    }
    Ok(Outcome::Right)
}

fn is<S>(stage: &Stage<S>, wanted: &str) -> bool {
    stage.name == wanted || stage.stem() == wanted || wanted.parse() == Ok(stage.index)
}
