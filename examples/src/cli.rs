//! Command lines: the device, failures and exit codes.

use crate::npy::NpyError;
use crate::plot::PlotError;
use clap::ValueEnum;
use gemm_runtime::{Device, Error, SpecErrors};
use std::io::{self, ErrorKind};
use std::process::ExitCode;

/// Where kernels run, as said on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DeviceChoice {
    /// The first CUDA GPU, or the simulator where there is none.
    #[default]
    Auto,
    /// The simulator.
    Simulator,
    /// The first CUDA GPU.
    Cuda,
}

impl DeviceChoice {
    /// Makes the device.
    ///
    /// # Errors
    /// Those of [`Device::auto`] and [`Device::cuda`].
    pub fn open(self) -> Result<Device, Error> {
        match self {
            Self::Auto => Device::auto(),
            Self::Simulator => Ok(Device::simulator()),
            Self::Cuda => Device::cuda(0),
        }
    }
}

/// The first GPU, for a program that only measures.
///
/// # Errors
/// [`Failure::Missing`] where there is none that can be used.
pub fn open_gpu() -> Result<Device, Failure> {
    Device::cuda(0)
        .map_err(|error| Failure::Missing(format!("this measurement needs a GPU: {error}")))
}

/// The device as reports name it: `simulator`, or the GPU's name.
pub fn device_label(device: &Device) -> String {
    if device.is_simulator() { "simulator".to_owned() } else { device.name().to_owned() }
}

/// Why a program could not do its work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// Options that contradict each other or the data.
    #[error("{0}")]
    Usage(String),
    /// An input file.
    #[error(transparent)]
    Input(#[from] NpyError),
    /// A device or a kernel.
    #[error(transparent)]
    Runtime(#[from] Error),
    /// A spec, with all its faults.
    #[error(transparent)]
    Spec(#[from] SpecErrors),
    /// A picture.
    #[error(transparent)]
    Plot(#[from] PlotError),
    /// The standard output or another file.
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
    /// What a program needs and this machine lacks.
    #[error("{0}")]
    Missing(String),
}

/// What a program did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every result is right.
    Right,
    /// Some result is wrong.
    Wrong,
}

/// Ends a program: code 0 where every result is right, 1 where one is wrong, and 2, with a message,
/// where the work could not be done. A reader that has seen enough of the output is no failure.
pub fn exit(outcome: Result<Outcome, Failure>) -> ExitCode {
    match outcome {
        Ok(Outcome::Right) => ExitCode::SUCCESS,
        Ok(Outcome::Wrong) => ExitCode::from(1),
        Err(Failure::Output(error)) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(Failure::Spec(faults) | Failure::Runtime(Error::Spec(faults))) => {
            for fault in faults.iter() {
                eprintln!("error: {fault}");
            }
            ExitCode::from(2)
        }
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(2)
        }
    }
}

/// A seed: the one given, or a new one.
pub fn seed_or_new(given: Option<u64>) -> u64 {
    given.unwrap_or_else(|| fastrand::u64(..1 << 32))
}
