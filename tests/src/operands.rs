//! Operands of products, given by name.

use gemm_dsl::spec::Along;
use gemm_oracle::beside::Beside;
use gemm_runtime::{
    AsMatrix, AsMatrixMut, ByName, Device, Error, Input, LaunchReport, MatrixRef, Sgemm,
};

/// Launches a product on views, with what lies beside: of each operand its elements as a vector, of those
/// that are a matrix its view.
///
/// # Errors
/// Those of the launch.
pub fn launch<V: Input<Element = f32>>(
    (kernel, device): (&Sgemm<ByName>, &Device),
    beside: &Beside,
    (vectors, matrices): (&[V], &[Option<MatrixRef<'_>>]),
    (a, b): (&impl AsMatrix<Element = f32>, &impl AsMatrix<Element = f32>),
    c: &mut impl AsMatrixMut<Element = f32>,
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
