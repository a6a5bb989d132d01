//! Kernels of the ladders are compiled by each release of NVRTC from their contract's release on,
//! and rejected by earlier ones. `.ci/long` runs this test with old releases. By default, one of
//! eight kernels is tested, because other tests compile the same kernels with the newest release.

use gemm_dsl::Plan as _;
use gemm_dsl::cuda;
use gemm_dsl::ir::VerifiedKernel;
use gemm_dsl::stages;
use gemm_needs::Need;
use gemm_runtime::Error;
use gemm_runtime::compile::{self, Arch, Options};
use libtest_mimic::{Failed, Trial};
use rayon::prelude::*;

/// Minimum number of kernels that every tested release compiles, unless only one of [`TURNS`] is
/// tested.
const LEAST: usize = 60;
const TURNS: usize = 8;

pub fn trial() -> Trial {
    Need::Nvrtc.trial("releases::kernels_are_compiled_from_their_release_on", compiles)
}

fn kernels() -> Result<Vec<VerifiedKernel>, Failed> {
    let mut kernels = Vec::new();
    for stage in stages::reduce() {
        kernels.extend(stage.spec.plan()?.program()?.kernels().iter().cloned());
    }
    for stage in stages::sgemm() {
        kernels.extend(stage.spec.plan()?.program()?.kernels().iter().cloned());
    }
    Ok(kernels)
}

fn compiles() -> Result<(), Failed> {
    let (major, minor, _) = compile::nvrtc_version()?;
    let version = (major, minor);
    let kernels = kernels()?.into_iter().enumerate();
    let kernels = kernels.filter(|(nth, _)| gemm_cases::is_in_turn(*nth, TURNS, 0));
    let kernels: Vec<VerifiedKernel> = kernels.map(|(_, kernel)| kernel).collect();
    let least = if gemm_cases::is_thinned() { LEAST / TURNS } else { LEAST };
    let compiled = kernels.into_par_iter().map(|kernel| {
        let contract = kernel.contract();
        let arch = Arch::sm(contract.min_arch);
        let arch = if contract.is_specific { arch.specific() } else { arch };
        let source = cuda::source(&kernel);
        let found = compile::compile(&kernel.name, &source, arch, &Options::default());
        match (found, contract.min_release <= version) {
            (Ok(_), true) => Ok(1),
            (Err(Error::Compile { .. } | Error::NvrtcUnsuitable { .. }), false) => Ok(0),
            (Ok(_), false) => Err(format!(
                "{}: NVRTC {version:?} compiles it, but its contract needs {:?}",
                kernel.name, contract.min_release
            )),
            (Err(error), _) => Err(format!("{} for {arch}: {error}", kernel.name)),
        }
    });
    let count: usize = compiled.collect::<Result<Vec<_>, String>>()?.into_iter().sum();
    if count < least { Err(format!("only {count} kernels are compiled").into()) } else { Ok(()) }
}
