//! Shared code of the test targets: references, operands and random specs.

pub mod arbitrary;
pub mod batch;
mod element_type;
pub mod fold;
pub mod ladder;
pub mod map;
pub mod nvrtc;
pub mod operands;
pub mod pairs;
pub mod prepared;
pub mod product;
pub mod reduction;
pub mod results;
pub mod row_folds;

use gemm_runtime::Device;

/// Returns the simulator of this thread. It keeps the kernels of earlier launches, so a test that
/// repeats a spec does not generate them again.
pub fn simulator() -> Device {
    thread_local!(static SIMULATOR: Device = Device::simulator());
    SIMULATOR.with(Device::clone)
}

/// Bits of each value, for comparisons that distinguish zeros and NaNs.
pub fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}
