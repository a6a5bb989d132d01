//! Launches on the first CUDA GPU: right against f64, and the simulator's bits.
//!
//! The binary needs neither cargo nor the sources, so it can be carried to the machine that has the
//! GPU. With `GEMM_REQUIRE_GPU=1` a missing GPU is a failure.

mod accuracy;
mod batch;
mod capture;
mod elements;
mod epilogue;
mod reduce;
mod reduce_any;
mod reduce_large;
mod reduce_tickets;
mod sgemm;
mod speaking;
mod streams;
mod tensor_core;
mod warp_specialised;

use gemm_runtime::Device;
use gemm_tests::needs::Need;
use libtest_mimic::{Arguments, Failed, Trial};
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

fn main() -> ExitCode {
    let trials = elements::trials()
        .into_iter()
        .chain(accuracy::trials())
        .chain(batch::trials())
        .chain(capture::trials())
        .chain(epilogue::trials())
        .chain(reduce::trials())
        .chain(reduce_any::trials())
        .chain(reduce_large::trials())
        .chain(reduce_tickets::trials())
        .chain(sgemm::trials())
        .chain(speaking::trials())
        .chain(streams::trials())
        .chain(tensor_core::trials())
        .chain(warp_specialised::trials())
        .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// The GPU, the same for all trials, so that each kernel is compiled once.
fn gpu() -> Result<Device, Failed> {
    static GPU: OnceLock<Result<Device, String>> = OnceLock::new();
    let device = GPU.get_or_init(|| {
        let _alone = alone();
        Device::cuda(0).map_err(|error| error.to_string())
    });
    device.clone().map_err(Failed::from)
}

/// Held while a stream is captured, and while one is made: that may wait for the whole context, which the
/// driver refuses during a capture.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The GPU, on a stream that no other trial uses.
fn own_gpu() -> Result<Device, Failed> {
    let _alone = alone();
    Ok(Device::cuda(0)?)
}

/// A test that gets the GPU.
fn trial(name: String, test: impl FnOnce(&Device) -> Result<(), Failed> + Send + 'static) -> Trial {
    Need::Gpu.trial(name, move || test(&gpu()?))
}

/// Fails unless the simulator's bits were found on the GPU.
fn same_bits(what: &str, gpu: &[f32], simulator: &[f32]) -> Result<(), Failed> {
    equal_bits(what, ("on the GPU", gpu), ("on the simulator", simulator))
}

/// Fails unless both have the same bits; each comes with the words for it.
fn equal_bits(
    what: &str,
    (here, found): (&str, &[f32]),
    (there, expected): (&str, &[f32]),
) -> Result<(), Failed> {
    let differs = |(f, e): (&f32, &f32)| f.to_bits() != e.to_bits();
    match found.iter().zip(expected).position(differs) {
        None if found.len() == expected.len() => Ok(()),
        None => Err(format!("{what}: {} values, not {}", found.len(), expected.len()).into()),
        Some(at) => {
            Err(format!("{what}: value {at} is {} {here}, {} {there}", found[at], expected[at])
                .into())
        }
    }
}
