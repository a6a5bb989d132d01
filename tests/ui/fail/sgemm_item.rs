//! Faulty items: wrong tokens before the spec, and operands that cannot be fields.

use gemm_runtime::{Device, Matrix, sgemm_kernel};

sgemm_kernel! { pub Layer; block: 8x8 }
sgemm_kernel! { struct; block: 8x8 }
sgemm_kernel! { struct Braces { block: 8x8 } }
sgemm_kernel! { struct Comma, block: 8x8 }
sgemm_kernel! { struct End }
sgemm_kernel! { pub enum Kind; block: 8x8 }
sgemm_kernel! { struct Generic<T>; block: 8x8 }
sgemm_kernel! { struct Fields; epilogue: |acc, self[n], _[m], crate| acc + self + crate }
sgemm_kernel! {
    struct Many;
    scaled,
    epilogue: |acc, x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10[n]|
        acc + x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7 + x8 + x9 + x10
}

// A faulty spec is one error: the type and its operands still exist.
sgemm_kernel! {
    /// A layer.
    pub struct Layer;
    tile: 64x64x8, thread: 3x3, epilogue: |acc, bias[n]| rleu(acc + bias)
}

fn layer(device: &Device, bias: &Matrix, c: &mut Matrix) -> gemm_runtime::error::Result<()> {
    Layer::launch(device, bias, bias, c, LayerOperands { bias: bias.buffer() })?;
    Layer::KERNEL.call(device).operands((bias.buffer(),)).launch(bias, bias, c)?;
    Ok(())
}

fn main() {}
