//! Launches on the first CUDA GPU: right against f64, and the simulator's bits.
//!
//! The binary needs neither cargo nor the sources, so it can be carried to the machine that has the
//! GPU. With `GEMM_REQUIRE_GPU=1` a missing GPU is a failure.

mod batch;
mod elements;
mod epilogue;
mod reduce;
mod sgemm;
mod speaking;

use gemm_runtime::Device;
use gemm_tests::needs::Need;
use libtest_mimic::{Arguments, Failed, Trial};
use std::process::ExitCode;
use std::sync::OnceLock;

fn main() -> ExitCode {
    let trials = elements::trials()
        .into_iter()
        .chain(batch::trials())
        .chain(epilogue::trials())
        .chain(reduce::trials())
        .chain(sgemm::trials())
        .chain(speaking::trials())
        .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// The GPU, the same for all trials, so that each kernel is compiled once.
fn gpu() -> Result<Device, Failed> {
    static GPU: OnceLock<Result<Device, String>> = OnceLock::new();
    let device = GPU.get_or_init(|| Device::cuda(0).map_err(|error| error.to_string()));
    device.clone().map_err(Failed::from)
}

/// A test that gets the GPU.
fn trial(name: String, test: impl FnOnce(&Device) -> Result<(), Failed> + Send + 'static) -> Trial {
    Need::Gpu.trial(name, move || test(&gpu()?))
}

/// Fails unless both have the same bits.
fn same_bits(what: &str, gpu: &[f32], simulator: &[f32]) -> Result<(), Failed> {
    let differs = |(g, s): (&f32, &f32)| g.to_bits() != s.to_bits();
    match gpu.iter().zip(simulator).position(differs) {
        None if gpu.len() == simulator.len() => Ok(()),
        None => Err(format!("{what}: {} values, not {}", gpu.len(), simulator.len()).into()),
        Some(at) => Err(format!(
            "{what}: value {at} is {} on the GPU, {} on the simulator",
            gpu[at], simulator[at]
        )
        .into()),
    }
}
