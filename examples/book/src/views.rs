//! What pages show of a kernel beside its counts, so that two kernels that count the same can be told apart.

use super::{access, pipeline};
use crate::observation::{Observation, Spec};
use crate::raster;
use gemm_bench::cli::Failure;
use gemm_dsl::cuda;
use serde::Serialize;
use serde_json::Value;

/// What is shown of a kernel.
pub(super) struct Views {
    /// Its text, without the line that it was made of and under a name that all have.
    pub(super) text: String,
    /// By the part of the page that shows it.
    parts: Vec<(&'static str, Value)>,
}

impl Views {
    /// Of a launch.
    ///
    /// # Errors
    /// Those of launches that tell the order of blocks, and of what no JSON can say.
    pub(super) fn new(spec: &Spec, looked: &Observation) -> Result<Self, Failure> {
        let listing = cuda::listing(&looked.kernel);
        // The picture of an access in another kernel has another line beside it.
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

    /// Whether two kernels are one but for their names.
    pub(super) fn is_same_kernel(&self, other: &Self) -> bool {
        self.text == other.text
    }

    /// The parts of a page that show something else of another kernel.
    pub(super) fn differing(&self, other: &Self) -> Vec<&'static str> {
        let both = self.parts.iter().zip(&other.parts);
        both.filter(|((_, own), (_, others))| own != others).map(|((part, _), _)| *part).collect()
    }
}

fn value(of: &impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(of).map_err(|error| Failure::Output(error.into()))
}

/// A text without the comment above it, which has the line, and without the name of the kernel.
pub(super) fn text(whole: &str, name: &str) -> String {
    let lines = whole.lines().skip_while(|line| line.starts_with("//") || line.is_empty());
    lines.map(|line| line.replace(name, "kernel") + "\n").collect()
}
