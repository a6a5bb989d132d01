//! Counts of a GEMM that is too large to simulate, extrapolated by the runtime from small shapes.

use super::LaunchCounts;
use gemm_dsl::spec::SgemmSpec;
use gemm_oracle::product::Size;
use gemm_runtime::internal::gemm_loads;
use gemm_runtime::{Error, SgemmShape};

/// Counts the launches of a GEMM on `sms` SMs, without their registers. Of a spec with `batch`, the
/// launches have the GEMMs of one block.
///
/// # Errors
/// Returns the errors of the simulator.
pub fn product(spec: &SgemmSpec, size: Size, sms: u32) -> Result<Vec<LaunchCounts>, Error> {
    let plan = spec.plan()?;
    let batch = if plan.guarded() { 1 } else { u64::from(plan.products()) };
    let shape = SgemmShape::from((size.m, size.n, size.k)).layout(spec.layout).batch(batch);
    gemm_loads(spec, &shape, sms)
}
