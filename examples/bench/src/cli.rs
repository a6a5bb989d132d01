//! Command lines: the device, failures and exit codes.

use crate::npy::NpyError;
use crate::plot::PlotError;
use clap::ValueEnum;
use gemm_runtime::{Device, Error, SpecErrors};
use gemm_world::WorldError;
use serde::Serialize;
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::num::IntErrorKind;
use std::path::Path;
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
    pub fn open(self) -> Result<Device, Failure> {
        Ok(match self {
            Self::Auto => Device::auto()?,
            Self::Simulator => Device::simulator(),
            Self::Cuda => Device::cuda(0)?,
        })
    }
}

/// The first GPU, for a program that only measures.
///
/// # Errors
/// [`Failure::Missing`] where there is none that can be used.
pub fn open_gpu() -> Result<Device, Failure> {
    Device::cuda(0).map_err(|error| {
        let text = match reworded(&error) {
            Some((what, remedy)) => format!("{what}. {remedy}"),
            None => error.to_string(),
        };
        Failure::Missing(format!("this measurement needs a GPU: {text}"))
    })
}

/// The errors of the runtime whose remedy is a call of a function, in the words of a command line:
/// what is wrong, and what to do about it.
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
            format!("out of memory on {device}: {bytes} bytes were asked for"),
            "Ask for a smaller problem",
        ),
        _ => return None,
    })
}

/// The message of an error of the runtime.
fn message(error: &Error) -> String {
    match (reworded(error), error) {
        (None, error) => error.to_string(),
        (Some((what, remedy)), Error::OutOfMemory { .. }) => format!("{what}. {remedy}"),
        (Some((what, remedy)), _) => {
            format!("{what}. {remedy}, or run on the simulator: --device simulator")
        }
    }
}

/// A length, also as a power of two with or without a summand: `1000`, `2^20`, `2^24+7`.
///
/// # Errors
/// Says what is wrong, and what is understood.
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
            _ => format!("`{part}` is no whole number. Write it as in 1000, 2^20 or 2^20+7"),
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

/// Seconds of a limit.
///
/// # Errors
/// Says what is understood.
pub fn seconds(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is no whole number of seconds. Give one such as 300"))
}

/// A number of what there has to be some of, written like a length.
///
/// # Errors
/// Those of [`count`], and that it is 0.
pub fn some(text: &str) -> Result<usize, String> {
    match count(text)? {
        0 => Err("it has to be at least 1".to_owned()),
        number => Ok(number),
    }
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
    #[error("{}", message(.0))]
    Runtime(#[from] Error),
    /// Ranks that could not go on.
    #[error(transparent)]
    World(#[from] WorldError),
    /// A spec, with all its faults.
    #[error(transparent)]
    Spec(#[from] SpecErrors),
    /// A picture.
    #[error(transparent)]
    Plot(#[from] PlotError),
    /// The standard output or another file.
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
    /// A page.
    #[error("cannot lay out a page: {0}")]
    Page(Box<dyn std::error::Error + Send + Sync>),
    /// What a program needs and this machine lacks.
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
            faults.iter().for_each(|fault| complain(fault));
            ExitCode::from(2)
        }
        Err(failure) => {
            complain(&failure);
            ExitCode::from(2)
        }
    }
}

/// Tells what is wrong; where nobody can be told the code has to do.
fn complain(of: &dyn Display) {
    _ = writeln!(io::stderr(), "error: {of}");
}

/// A seed: the one given, or a new one.
pub fn seed_or_new(given: Option<u64>) -> u64 {
    given.unwrap_or_else(|| fastrand::u64(..1 << 32))
}

/// Asks whether a file can be written, before a measurement that would be lost. Of one that is there nothing
/// changes.
///
/// # Errors
/// [`Failure::Output`] where it cannot.
pub fn writable(path: &Path) -> Result<(), Failure> {
    let opened = OpenOptions::new().write(true).create(true).truncate(false).open(path);
    opened.map(drop).map_err(|error| named(path, &error))
}

/// Writes something into a file, as one JSON object.
///
/// # Errors
/// [`Failure::Output`], which names the file.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let written = File::create(path).and_then(|file| {
        let mut file = BufWriter::new(file);
        serde_json::to_writer_pretty(&mut file, value)?;
        writeln!(file)?;
        file.flush()
    });
    written.map_err(|error| named(path, &error))
}

/// An error of a file, with its name.
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
    fn what_is_no_length_is_named() {
        for (text, reason) in [
            ("18446744073709551616", "too large"),
            ("2^64", "too large"),
            ("2^99999999999", "too large"),
            ("-1", "negative"),
            ("1e6", "`1e6` is no whole number"),
            ("1_000", "2^20+7"),
            ("1k", "`1k` is no whole number"),
            ("2^x", "`x` is no whole number"),
            ("2^", "`2^` lacks a number. Write it as in 1000, 2^20"),
            ("^2", "`^2` lacks a number"),
            ("2^3+", "`2^3+` lacks a number"),
            ("", "no whole number"),
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
