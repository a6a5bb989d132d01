//! Tests of the results of generated kernels, and of the detection of faults, with one subject per
//! module.
//!
//! The name of a test on the simulator begins with its module. The name of a test on the first CUDA
//! GPU begins with `gpu::`. Its results are compared with f64 and must have the simulator's bits.
//! The binary needs neither cargo nor the sources, so it can be copied to a machine with a GPU.
//! `kernels gpu::` runs the tests that need a GPU. With `GEMM_REQUIRE_GPU=1` a missing GPU is a
//! failure.

/// Creates tests on the simulator from functions that panic on failure. The names begin with the
/// module.
macro_rules! simulated {
    ($($test:ident),* $(,)?) => {
        vec![$(crate::simulated(concat!(module_path!(), "::", stringify!($test)), $test)),*]
    };
}

mod accuracy;
mod arith;
mod batch;
mod capture;
mod clusters;
mod counters;
mod direct;
mod elements;
mod epilogue;
mod inter_block_sync;
mod map;
mod matrix_views;
mod planted_faults;
mod pointer_lists;
mod prepared;
mod profiler;
mod races;
mod range;
mod reduce;
mod scan;
mod sgemm;
mod sgemm_call;
mod split_k;
mod streams;
mod tensor_core;
mod typed;
mod views;
mod warp_specialised;

use gemm_needs::Need;
use gemm_runtime::Device;
use libtest_mimic::{Arguments, Failed, Trial};
use std::fmt::Display;
use std::process::{ExitCode, Termination};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

fn main() -> ExitCode {
    let trials = [
        accuracy::trials(),
        arith::trials(),
        batch::trials(),
        capture::trials(),
        clusters::trials(),
        counters::trials(),
        direct::trials(),
        elements::trials(),
        epilogue::trials(),
        inter_block_sync::trials(),
        map::trials(),
        matrix_views::trials(),
        range::trials(),
        pointer_lists::trials(),
        prepared::trials(),
        profiler::trials(),
        races::trials(),
        reduce::trials(),
        scan::trials(),
        sgemm::trials(),
        sgemm_call::trials(),
        split_k::trials(),
        streams::trials(),
        tensor_core::trials(),
        typed::trials(),
        views::trials(),
        warp_specialised::trials(),
    ];
    let trials = trials.into_iter().flatten().collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Returns the GPU that all tests share, so that each kernel is compiled once.
fn gpu() -> Result<Device, Failed> {
    static GPU: OnceLock<Result<Device, String>> = OnceLock::new();
    let device = GPU.get_or_init(|| {
        let _alone = alone();
        Device::cuda(0).map_err(|error| error.to_string())
    });
    device.clone().map_err(Failed::from)
}

/// Returns a lock for the capture of a stream and for the creation of a stream. The creation may
/// synchronise the whole context, which the driver refuses during a capture.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the GPU with a stream that no other test uses.
fn own_gpu() -> Result<Device, Failed> {
    let _alone = alone();
    Ok(Device::cuda(0)?)
}

/// Creates a test on the simulator, named by the path of its function in this binary.
fn simulated<T: Termination + 'static>(path: &str, test: fn() -> T) -> Trial {
    let name = path.split_once("::").map_or(path, |(_, name)| name);
    Trial::test(name, move || match test().report() {
        ExitCode::SUCCESS => Ok(()),
        _ => Err("the test returned an error".into()),
    })
}

/// Creates a test that receives the shared GPU.
fn trial(name: String, test: impl FnOnce(&Device) -> Result<(), Failed> + Send + 'static) -> Trial {
    on_gpu(name, move || test(&gpu()?))
}

/// Creates a test that needs a GPU and opens it.
fn on_gpu(name: impl Display, test: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Trial {
    Need::Gpu.trial(format!("gpu::{name}"), test)
}

/// Fails unless the GPU has the simulator's bits.
fn same_bits(what: &str, gpu: &[f32], simulator: &[f32]) -> Result<(), Failed> {
    equal_bits(what, ("on the GPU", gpu), ("on the simulator", simulator))
}

/// Fails unless both arrays have the same bits. Each array has a description for the message.
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
