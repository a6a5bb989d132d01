//! Launches of GEMMs with epilogue operands by name.

use gemm_dsl::spec::Along;
use gemm_oracle::beside::Beside;
use gemm_runtime::bounds::{AsMatrixMutOf, AsMatrixOf, InputOf, Named};
use gemm_runtime::generic::{Call, Typed};
use gemm_runtime::{ByName, Device, Error, LaunchReport, MatrixRef, Sgemm, SgemmSpec};

/// Launches a GEMM on views with epilogue operands. Each operand is given as a vector of its
/// elements, and a matrix also as its view.
///
/// # Errors
/// Returns the error of the launch.
pub fn launch<V: InputOf<f32>>(
    on: (&Sgemm<ByName>, &Device),
    beside: &Beside,
    operands: (&[V], &[Option<MatrixRef<'_>>]),
    (a, b): (&impl AsMatrixOf<f32>, &impl AsMatrixOf<f32>),
    c: &mut impl AsMatrixMutOf<f32>,
) -> Result<LaunchReport, Error> {
    given(on, beside, operands).launch(a, b, c)
}

/// Call with the epilogue operands that the kernel reads.
pub fn given<'c, V: InputOf<f32>>(
    (kernel, device): (&'c Sgemm<ByName>, &'c Device),
    beside: &Beside,
    (vectors, matrices): (&'c [V], &'c [Option<MatrixRef<'c>>]),
) -> Call<'c, SgemmSpec, Typed<f32, f32, f32, ByName>, Named<'c>> {
    let mut call = kernel.call(device);
    for ((operand, values), (vector, matrix)) in
        beside.operands.iter().zip(vectors.iter().zip(matrices))
    {
        let name = &*operand.name;
        call = match (operand.along, matrix) {
            (Along::Nothing, _) => call.operand(name, values[0]),
            (_, Some(matrix)) => call.operand(name, matrix),
            (_, None) => call.operand(name, vector),
        };
    }
    call
}
