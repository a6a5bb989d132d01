//! Views of a kernel that distinguish kernels with equal counts.

use super::{access, pipeline};
use crate::observation::{Observation, Spec};
use crate::raster;
use gemm_bench::cli::Failure;
use gemm_dsl::cuda;
use serde::Serialize;
use serde_json::Value;

/// Comparable views of a kernel.
pub(super) struct Views {
    /// Source with a neutral kernel name and without the leading comment.
    pub(super) text: String,
    /// Views, each with the part of the page that shows it.
    parts: Vec<(&'static str, Value)>,
}

impl Views {
    /// Computes the views of a launch.
    ///
    /// # Errors
    /// Returns the error of the launch for the block order, or of the conversion to JSON.
    pub(super) fn new(spec: &Spec, looked: &Observation) -> Result<Self, Failure> {
        let listing = cuda::listing(&looked.kernel);
        // Line numbers are dropped, because the same access may be on another line in the other
        // kernel.
        let accesses: Vec<_> = access::all(&looked.kernel, &listing.lines, &looked.trace)
            .into_iter()
            .map(|access| (access.space, access.grid))
            .collect();
        let parts = [
            ("pipeline", value(&pipeline::all(&looked.kernel, &looked.trace))?),
            ("accesses", value(&accesses)?),
            ("order", value(&raster::block_order(spec)?.ok())?),
        ];
        Ok(Self { text: text(&listing.text, &looked.kernel.name), parts: parts.into() })
    }

    /// Returns true if two kernels differ at most in their names.
    pub(super) fn is_same_kernel(&self, other: &Self) -> bool {
        self.text == other.text
    }

    /// Returns the parts of a page that differ between two kernels.
    pub(super) fn differing(&self, other: &Self) -> Vec<&'static str> {
        let both = self.parts.iter().zip(&other.parts);
        both.filter(|((_, own), (_, others))| own != others).map(|((part, _), _)| *part).collect()
    }
}

fn value(of: &impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(of).map_err(|error| Failure::Output(error.into()))
}

/// Removes the leading comment, which contains the spec, and replaces the name of the kernel.
pub(super) fn text(whole: &str, name: &str) -> String {
    let lines = whole.lines().skip_while(|line| line.starts_with("//") || line.is_empty());
    lines.map(|line| line.replace(name, "kernel") + "\n").collect()
}
