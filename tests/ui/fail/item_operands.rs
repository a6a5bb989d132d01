//! Operands of a named kernel that are missing, surplus, or of a wrong type.

use gemm_runtime::{Buffer, Device, Matrix, sgemm_kernel};

sgemm_kernel! {
    struct Layer;
    epilogue: |acc, bias[n], residual[m, n], slope| acc * slope + bias + residual
}
sgemm_kernel! { struct Plain; block: 8x8 }

fn launch(device: &Device, bias: &Buffer, matrix: &Matrix, c: &mut Matrix) {
    let _ = Layer::launch(device, matrix, matrix, c);
    let _ = Layer::launch(device, matrix, matrix, c, LayerOperands { bias, slope: 0.5 });
    let _ = LayerOperands { bias, residual: matrix, slope: 0.5, scale: bias };
    let _ = LayerOperands { bias: matrix, residual: bias, slope: 0.5 };
    let _ = LayerOperands { bias, residual: matrix, slope: 1 };
    let _ = LayerOperands { bias, residual: *matrix, slope: 0.5 };
    let _ = LayerOperands { bias: &[1.0_f32], residual: matrix, slope: 0.5 };
    let _ = Plain::launch(device, matrix, matrix, c, 0.5);
    let _ = PlainOperands {};
}

fn main() {}
