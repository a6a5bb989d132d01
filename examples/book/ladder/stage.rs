//! What the stages of both ladders have in common.

use gemm_bench::cli::Failure;
use gemm_runtime::Error;

/// Launches of a stage that are timed on a GPU.
pub const ROUNDS: usize = 20;

/// How a stage fared.
pub enum StageOutcome<T> {
    /// It ran; whether its result is right is another matter.
    Done(T),
    /// This device lacks what it needs.
    Unable(String),
    /// It failed, which is a fault of the kernel or the generator.
    Failed(String),
}

impl<T> StageOutcome<T> {
    /// Sorts the errors of a stage.
    ///
    /// # Errors
    /// What would befall every stage.
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

    /// What it gave, if it ran.
    pub fn done(&self) -> Option<&T> {
        match self {
            Self::Done(done) => Some(done),
            Self::Unable(_) | Self::Failed(_) => None,
        }
    }

    /// Whether the result is right, as far as there is an answer.
    pub fn ok(&self, right: impl FnOnce(&T) -> bool) -> Option<bool> {
        match self {
            Self::Done(done) => Some(right(done)),
            Self::Unable(_) => None,
            Self::Failed(_) => Some(false),
        }
    }

    /// Why it did not run.
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Done(_) => None,
            Self::Unable(message) | Self::Failed(message) => Some(message),
        }
    }
}

/// A mark for the first column of a table.
pub fn mark(ok: Option<bool>) -> &'static str {
    match ok {
        Some(true) => "✓",
        Some(false) => "✗",
        None => "–",
    }
}

/// How many times faster a stage is than the one before.
pub fn speed_up(before: Option<f64>, now: Option<f64>) -> String {
    match (before, now) {
        (Some(before), Some(now)) if now > 0.0 => format!("×{:.2}", before / now),
        _ => String::new(),
    }
}
