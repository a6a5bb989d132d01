//! What the test targets share: references, operands, random specs, and the report of what a
//! machine lacks.
//!
//! Tests that need NVRTC or a GPU are built on [`needs`]: where it is missing they show as ignored,
//! with the reason, never as passed.

pub mod arbitrary;
pub mod batch;
pub mod fold;
pub mod ladder;
pub mod needs;
pub mod nvrtc;
pub mod operands;
pub mod prepared;
pub mod product;
pub mod reduction;

use gemm_dsl::stages::Stage;

/// `04_unroll_last_warp`: what the files of a stage start with.
pub fn stem<S>(stage: &Stage<S>) -> String {
    format!("{:02}_{}", stage.index, stage.name)
}

/// The bits of each value, for comparisons that tell zeros and NaNs apart.
pub fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}
