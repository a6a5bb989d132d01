//! Prerequisites of tests that not every machine has.

#![allow(dead_code, reason = "each test target uses a part")]

use gemm_runtime::{Device, compile};
use libtest_mimic::{Failed, Trial};
use std::env;
use std::fmt::Display;

pub type Outcome = Result<(), Failed>;

/// Prerequisite of a test.
pub struct Prerequisite {
    /// Reason why it is missing.
    missing: Option<String>,
    /// True if the environment requires it.
    is_required: bool,
}

impl Prerequisite {
    /// NVRTC. With `GEMM_REQUIRE_NVRTC=1` its absence is a failure.
    pub fn nvrtc() -> Self {
        Self::found(compile::nvrtc_version(), "GEMM_REQUIRE_NVRTC")
    }

    /// A GPU, and NVRTC. With `GEMM_REQUIRE_GPU=1` its absence is a failure.
    pub fn gpu() -> Self {
        Self::found(Device::cuda(0).and_then(|_| compile::nvrtc_version()), "GEMM_REQUIRE_GPU")
    }

    fn found<T, E: Display>(found: Result<T, E>, variable: &str) -> Self {
        Self {
            missing: found.err().map(|error| error.to_string()),
            is_required: env::var_os(variable).is_some_and(|value| value == "1"),
        }
    }

    /// Creates a test. If the prerequisite is missing, the test fails if the environment requires
    /// the prerequisite, and is ignored otherwise.
    pub fn trial(&self, name: &str, test: fn() -> Outcome) -> Trial {
        match self.missing.clone() {
            None => Trial::test(name, test),
            Some(reason) if self.is_required => Trial::test(name, || Err(reason.into())),
            Some(reason) => {
                let fault = reason.split(". ").next().unwrap_or_default();
                Trial::test(name, test).with_kind(fault).with_ignored_flag(true)
            }
        }
    }
}

pub fn ensure(holds: bool, message: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(message().into()) }
}
