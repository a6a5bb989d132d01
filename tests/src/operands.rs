//! Launches of GEMMs with epilogue operands by name.

use gemm_dsl::spec::Along;
use gemm_oracle::beside::Beside;
use gemm_runtime::bounds::{AsMatrixMutOf, AsMatrixOf, InputOf};
use gemm_runtime::{ByName, Device, Error, LaunchReport, MatrixRef, Sgemm};

/// Launches a GEMM on views with epilogue operands. Each operand is given as a vector of its
/// elements, and a matrix also as its view.
///
/// # Errors
/// Returns the error of the launch.
pub fn launch<V: InputOf<f32>>(
    (kernel, device): (&Sgemm<ByName>, &Device),
    beside: &Beside,
    (vectors, matrices): (&[V], &[Option<MatrixRef<'_>>]),
    (a, b): (&impl AsMatrixOf<f32>, &impl AsMatrixOf<f32>),
    c: &mut impl AsMatrixMutOf<f32>,
) -> Result<LaunchReport, Error> {
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
    call.launch(a, b, c)
}
