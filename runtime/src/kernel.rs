//! The kernel values that the macros make.

mod reduce;
mod sgemm;

pub use reduce::ReduceKernel;
pub use sgemm::SgemmKernel;

use crate::device::Device;
use crate::error::Result;
use crate::program::Prepared;
use gemm_dsl::cuda;
use gemm_dsl::spec::Spec;
use std::borrow::Cow;
use std::sync::Arc;

/// What every kernel value is: its spec and its text. What a device makes of it lives there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Text {
    /// The canonical line of the spec.
    line: Cow<'static, str>,
    /// The CUDA C of the preferred variant.
    source: Cow<'static, str>,
}

impl Text {
    const fn from_macro(line: &'static str, source: &'static str) -> Self {
        Self { line: Cow::Borrowed(line), source: Cow::Borrowed(source) }
    }

    fn new<S: Spec>(spec: &S) -> Result<Self> {
        let program = spec.program()?;
        Ok(Self {
            line: Cow::Owned(spec.to_string()),
            source: Cow::Owned(cuda::source(program.preferred())),
        })
    }

    fn prepare<S: Spec>(&self, device: &Device) -> Result<Arc<Prepared>> {
        device.programs().get::<S>(&self.line)
    }
}
