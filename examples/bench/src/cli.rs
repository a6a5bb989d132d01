//! Command lines of the programs: choice of the device, parsers of numbers, failures and exit
//! codes.

use crate::npy::NpyError;
use crate::plot::PlotError;
use clap::ValueEnum;
use gemm_runtime::error::SpecErrors;
use gemm_runtime::{Device, Error};
use gemm_world::WorldError;
use serde::Serialize;
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::num::IntErrorKind;
use std::path::Path;
use std::process::ExitCode;

/// Device that runs the kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DeviceChoice {
    /// First CUDA GPU, or the simulator if there is none
    #[default]
    Auto,
    /// Simulator
    Simulator,
    /// First CUDA GPU
    Cuda,
}

impl DeviceChoice {
    /// Opens the device.
    ///
    /// # Errors
    /// Returns the errors of [`Device::auto`] and [`Device::cuda`].
    pub fn open(self) -> Result<Device, Failure> {
        Ok(match self {
            Self::Auto => Device::auto()?,
            Self::Simulator => Device::simulator(),
            Self::Cuda => Device::cuda(0)?,
        })
    }
}

/// Opens the first GPU, for a program that cannot run on the simulator.
///
/// # Errors
/// Returns [`Failure::Missing`] if no GPU can be used.
pub fn open_gpu() -> Result<Device, Failure> {
    Device::cuda(0).map_err(|error| {
        let text = match reworded(&error) {
            Some((what, remedy)) => format!("{what}. {remedy}"),
            None => error.to_string(),
        };
        Failure::Missing(format!("this measurement needs a GPU: {text}"))
    })
}

/// Rewords a runtime error whose remedy is a function call. Returns the fault, and the remedy on a
/// command line.
fn reworded(error: &Error) -> Option<(String, &'static str)> {
    Some(match error {
        Error::DriverMissing { reason } => (
            format!("no usable NVIDIA driver: {reason}"),
            "Install a driver of release 525 or later",
        ),
        Error::NoGpu => (
            "the NVIDIA driver reports no GPU".to_owned(),
            "Check `nvidia-smi` and CUDA_VISIBLE_DEVICES",
        ),
        Error::OutOfMemory { bytes, device } => (
            format!("out of memory on {device}: {bytes} bytes requested"),
            "Choose a smaller problem",
        ),
        _ => return None,
    })
}

fn message(error: &Error) -> String {
    match (reworded(error), error) {
        (None, error) => error.to_string(),
        (Some((what, remedy)), Error::OutOfMemory { .. }) => format!("{what}. {remedy}"),
        (Some((what, remedy)), _) => {
            format!("{what}. {remedy}, or run on the simulator: --device simulator")
        }
    }
}

/// Parses a length, which may be a power of two plus a summand: `1000`, `2^20`, `2^24+7`.
///
/// # Errors
/// Returns a message that names the fault and the accepted notation.
pub fn count(text: &str) -> Result<usize, String> {
    let number = |part: &str| -> Result<usize, String> {
        part.parse().map_err(|error: std::num::ParseIntError| match error.kind() {
            IntErrorKind::PosOverflow => format!("`{text}` is too large"),
            _ if part.strip_prefix('-').is_some_and(|rest| rest.parse::<f64>().is_ok()) => {
                format!("`{text}` is negative. Give a length such as 1000 or 2^20+7")
            }
            IntErrorKind::Empty if text != part => {
                format!("`{text}` lacks a number. Write it as in 1000, 2^20 or 2^20+7")
            }
            _ => format!("`{part}` is not a whole number. Write it as in 1000, 2^20 or 2^20+7"),
        })
    };
    let Some((base, exponent)) = text.split_once('^') else {
        return number(text);
    };
    let (exponent, rest) = exponent.split_once('+').unwrap_or((exponent, "0"));
    let (base, exponent, rest) = (number(base)?, number(exponent)?, number(rest)?);
    let power = u32::try_from(exponent).ok().and_then(|exponent| base.checked_pow(exponent));
    let sum = power.and_then(|power| power.checked_add(rest));
    sum.ok_or_else(|| format!("`{text}` is too large"))
}

/// Parses a time limit in seconds.
///
/// # Errors
/// Returns a message if the text is not a whole number.
pub fn seconds(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is not a whole number of seconds. Give one such as 300"))
}

/// Parses a positive count, in the notation of [`count`].
///
/// # Errors
/// Returns the errors of [`count`], and a message if the number is 0.
pub fn some(text: &str) -> Result<usize, String> {
    match count(text)? {
        0 => Err("it must be at least 1".to_owned()),
        number => Ok(number),
    }
}

/// Returns the device's name in reports: `simulator`, or the GPU's name.
pub fn device_label(device: &Device) -> String {
    if device.is_simulator() { "simulator".to_owned() } else { device.name().to_owned() }
}

/// Reason why a program could not do its work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// An option is wrong, or contradicts another option or the data.
    #[error("{0}")]
    Usage(String),
    /// An input file cannot be used.
    #[error(transparent)]
    Input(#[from] NpyError),
    /// The runtime failed on a device or a kernel.
    #[error("{}", message(.0))]
    Runtime(#[from] Error),
    /// The ranks could not connect, or could not continue.
    #[error(transparent)]
    World(#[from] WorldError),
    /// A spec is invalid. The value contains all its faults.
    #[error(transparent)]
    Spec(#[from] SpecErrors),
    /// A plot could not be written.
    #[error(transparent)]
    Plot(#[from] PlotError),
    /// The standard output or another file could not be written.
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
    /// A page of the book could not be laid out.
    #[error("cannot lay out a page: {0}")]
    Page(Box<dyn std::error::Error + Send + Sync>),
    /// The machine lacks something that the program needs.
    #[error("{0}")]
    Missing(String),
}

impl From<gemm_world::Error> for Failure {
    fn from(error: gemm_world::Error) -> Self {
        match error {
            gemm_world::Error::Device(error) => Self::Runtime(error),
            gemm_world::Error::World(error) => Self::World(error),
            other => Self::Missing(other.to_string()),
        }
    }
}

/// Outcome of a program that checked its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every result is correct.
    Right,
    /// At least one result is wrong.
    Wrong,
}

/// Returns exit code 0 if every result is correct, 1 if a result is wrong, and 2 if the work
/// failed. Prints the message of a failure.
///
/// A closed output pipe is not a failure.
pub fn exit(outcome: Result<Outcome, Failure>) -> ExitCode {
    match outcome {
        Ok(Outcome::Right) => ExitCode::SUCCESS,
        Ok(Outcome::Wrong) => ExitCode::from(1),
        Err(Failure::Output(error)) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(Failure::Spec(faults) | Failure::Runtime(Error::Spec(faults))) => {
            faults.iter().for_each(|fault| print_error(fault));
            ExitCode::from(2)
        }
        Err(failure) => {
            print_error(&failure);
            ExitCode::from(2)
        }
    }
}

/// Prints an error. A failed write is ignored, because the exit code also reports the error.
fn print_error(of: &dyn Display) {
    _ = writeln!(io::stderr(), "error: {of}");
}

/// Returns the given seed, or a random one below 2^32.
pub fn seed_or_new(given: Option<u64>) -> u64 {
    given.unwrap_or_else(|| fastrand::u64(..1 << 32))
}

/// Checks that a file can be written. Called before a measurement, whose results would otherwise be
/// lost.
///
/// Creates the file if it does not exist. An existing file is not changed.
///
/// # Errors
/// Returns [`Failure::Output`] if the file cannot be opened for writing.
pub fn writable(path: &Path) -> Result<(), Failure> {
    let opened = OpenOptions::new().write(true).create(true).truncate(false).open(path);
    opened.map(drop).map_err(|error| named(path, &error))
}

/// Writes a value to a file as one indented JSON object.
///
/// # Errors
/// Returns [`Failure::Output`], which names the file.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let written = File::create(path).and_then(|file| {
        let mut file = BufWriter::new(file);
        serde_json::to_writer_pretty(&mut file, value)?;
        writeln!(file)?;
        file.flush()
    });
    written.map_err(|error| named(path, &error))
}

/// Adds the file's name to an I/O error.
pub fn named(path: &Path, error: &io::Error) -> Failure {
    Failure::Output(io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_may_be_powers() {
        let cases = [("1000", 1000), ("0", 0), ("2^24+7", (1 << 24) + 7), ("3^2", 9)];
        for (text, value) in cases {
            assert_eq!(count(text), Ok(value));
        }
    }

    #[test]
    fn invalid_lengths_are_reported() {
        for (text, reason) in [
            ("18446744073709551616", "too large"),
            ("2^64", "too large"),
            ("2^99999999999", "too large"),
            ("-1", "negative"),
            ("1e6", "`1e6` is not a whole number"),
            ("1_000", "2^20+7"),
            ("1k", "`1k` is not a whole number"),
            ("2^x", "`x` is not a whole number"),
            ("2^", "`2^` lacks a number. Write it as in 1000, 2^20"),
            ("^2", "`^2` lacks a number"),
            ("2^3+", "`2^3+` lacks a number"),
            ("", "not a whole number"),
        ] {
            let message = count(text).expect_err(text);
            assert!(message.contains(reason), "{message}");
        }
    }

    #[test]
    fn remedies_are_those_of_a_command_line() {
        let missing = Error::DriverMissing { reason: "no library".to_owned() };
        let full = Error::OutOfMemory { bytes: 7, device: "it".to_owned() };
        for (error, remedy) in [
            (missing, "--device simulator"),
            (Error::NoGpu, "--device simulator"),
            (full, "smaller problem"),
        ] {
            let message = Failure::from(error).to_string();
            assert!(message.contains(remedy) && !message.contains("Device::"), "{message}");
        }
    }
}
