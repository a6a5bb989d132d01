//! Items shared by both ladders.

use gemm_bench::cli::Failure;
use gemm_runtime::Error;

/// Number of timed rounds of a stage on a GPU. A round may launch a short kernel several times.
pub const ROUNDS: usize = 20;

pub enum StageOutcome<T> {
    /// The stage ran. Its result may still be wrong.
    Done(T),
    /// The device lacks a feature that the stage needs.
    Unable(String),
    /// The stage failed, because of a fault in the kernel or in the generator.
    Failed(String),
}

impl<T> StageOutcome<T> {
    /// Turns errors of a single stage into an outcome.
    ///
    /// # Errors
    /// Returns errors that would affect every stage.
    pub fn from(result: Result<T, Error>) -> Result<Self, Failure> {
        match result {
            Ok(done) => Ok(Self::Done(done)),
            Err(error @ (Error::Architecture { .. } | Error::SharedMemory { .. })) => {
                Ok(Self::Unable(error.to_string()))
            }
            Err(
                error @ (Error::Simulator(_)
                | Error::Compile { .. }
                | Error::Driver { .. }
                | Error::Unmet { .. }
                | Error::Internal(_)),
            ) => Ok(Self::Failed(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the result if the stage ran.
    pub fn done(&self) -> Option<&T> {
        match self {
            Self::Done(done) => Some(done),
            Self::Unable(_) | Self::Failed(_) => None,
        }
    }

    /// Returns true if the stage ran and its result is right. Returns `None` if the device cannot
    /// run the stage.
    pub fn ok(&self, right: impl FnOnce(&T) -> bool) -> Option<bool> {
        match self {
            Self::Done(done) => Some(right(done)),
            Self::Unable(_) => None,
            Self::Failed(_) => Some(false),
        }
    }

    /// Reason for a stage that did not run.
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Done(_) => None,
            Self::Unable(message) | Self::Failed(message) => Some(message),
        }
    }
}

/// Mark for the first column of a table.
pub fn mark(ok: Option<bool>) -> &'static str {
    match ok {
        Some(true) => "✓",
        Some(false) => "✗",
        None => "–",
    }
}

/// Formats the speedup over the previous stage.
pub fn speed_up(before: Option<f64>, now: Option<f64>) -> String {
    match (before, now) {
        (Some(before), Some(now)) if now > 0.0 => format!("×{:.2}", before / now),
        _ => String::new(),
    }
}
