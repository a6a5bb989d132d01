//! Counts of a GEMM that is too large to simulate, extrapolated by the runtime from small shapes.

use super::LaunchCounts;
use gemm_dsl::Plan;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The strips of A and B contain all components of the split of an element, in the bytes of
    /// their format.
    #[test]
    fn strips_have_the_bytes_of_their_format() {
        let bytes = |arith: &str| {
            let line = format!("tile: 64x128x32, mma: wgmma, arith: {arith}");
            let plan: SgemmPlan = line.parse().expect("a sound spec");
            let mut launch =
                LaunchLoad { blocks: 4.0, threads: plan.threads(), ..LaunchLoad::default() };
            of_product(&mut launch, &plan, Size { m: 128, n: 256, k: 96 });
            launch.reads.strips.map(|strip| strip / 96.0)
        };
        assert_eq!(bytes("bf16"), [64.0 * 2.0, 128.0 * 2.0]);
        assert_eq!(bytes("tf32"), [64.0 * 4.0, 128.0 * 4.0]);
        assert_eq!(bytes("tf32x3"), [64.0 * 8.0, 128.0 * 8.0]);
        assert_eq!(bytes("bf16x6"), [64.0 * 6.0, 128.0 * 6.0]);
    }
}
