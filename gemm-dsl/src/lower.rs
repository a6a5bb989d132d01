//! Lowering: a plan becomes a program. Constructive, by one builder per axis of a spec; nothing is
//! rewritten afterwards.

mod reduce;

pub use reduce::reduce;

/// Placeholder until the lowering of products is merged.
pub fn sgemm(plan: &crate::plan::SgemmPlan) -> Result<crate::ir::Program, crate::ir::IrError> {
    Err(crate::ir::IrError {
        kernel: plan.kernel_name(),
        rule: "products are not lowered yet".into(),
    })
}
