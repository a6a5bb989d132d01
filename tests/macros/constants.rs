//! Constants of macro calls against what their specs generate at run time.

use gemm_dsl::artifact::Artifact;
use gemm_dsl::plan::{ReducePlan, SgemmPlan};
use gemm_dsl::{Plan, SpecErrors};
use gemm_runtime::{Device, ReduceKernel, SgemmKernel, reduce_kernel, sgemm_kernel};
use gemm_tests_constants::{gemms, reductions};

/// Asserts that the constants equal the generated artifacts: contracts, steps and texts.
fn same<P: Plan>(constants: Vec<(&'static str, Artifact)>) -> Result<(), SpecErrors> {
    assert!(constants.len() > 15);
    for (line, constant) in constants {
        let generated = line.parse::<P>()?.artifact()?;
        assert_eq!(constant.sources, generated.sources, "`{line}`");
        assert_eq!(constant, generated, "`{line}`");
    }
    Ok(())
}

#[test]
fn a_macro_contains_what_its_line_generates() -> Result<(), SpecErrors> {
    same::<ReducePlan>(reductions())?;
    same::<SgemmPlan>(gemms())
}

sgemm_kernel! {
    /// Named kernel.
    struct Named;
    tile: 64x64x8, thread: 8x8, float4
}

static SUM: ReduceKernel = reduce_kernel!(launch: passes, float4);
const UNITS: usize = SUM.sources().len();
const LAST: &str = match SUM.sources() {
    [.., last] => match last {
        std::borrow::Cow::Borrowed(last) => last,
        std::borrow::Cow::Owned(_) => "",
    },
    [] => "",
};

/// Sources are constants, of a kernel and of a named kernel.
#[test]
fn sources_can_be_read_in_constants() {
    assert_eq!(UNITS, 3);
    assert!(LAST.contains("reduce_sum_256_float4_passes_of_partials("), "{LAST}");
    assert_eq!(SUM.source(), SUM.sources()[0]);
    const NAMED: &[std::borrow::Cow<'static, str>] = Named::sources();
    assert_eq!(NAMED, Named::KERNEL.sources());
    assert_eq!(NAMED.len(), 2);
}

/// The kernels of a macro and of its text share a program, whichever of them a device sees first.
#[test]
fn a_kernel_of_a_macro_and_of_a_text_are_one() -> Result<(), gemm_runtime::Error> {
    const GEMM: SgemmKernel = sgemm_kernel!(tile: 16x16x8, thread: 4x4);
    let text = SgemmKernel::new(GEMM.spec_line().parse()?)?;
    for text_first in [false, true] {
        let device = Device::simulator();
        let kernels = if text_first { [&text, &GEMM] } else { [&GEMM, &text] };
        for kernel in kernels {
            assert_eq!(kernel.run(&device, &[1.0, 2.0], &[3.0, 4.0], (1, 1, 2))?, [11.0]);
        }
        assert!(std::sync::Arc::ptr_eq(&GEMM.prepare(&device)?, &text.prepare(&device)?));
    }
    Ok(())
}
