//! Layers of a candle model that run kernels of gemm-runtime, compared with candle's own.
//!
//! `cargo run --release` runs on the CPU, with the kernels on the simulator; `cargo run --release
//! --features cuda` runs on a GPU.

mod ops;

use candle_core::{DType, Device, Result, Tensor};
use ops::{LinearGelu, LinearSoftmax};

/// Greatest difference of two tensors, relative to the greatest magnitude.
fn difference(found: &Tensor, right: &Tensor) -> Result<f64> {
    let most =
        |of: Tensor| of.abs()?.flatten_all()?.max(0)?.to_dtype(DType::F64)?.to_scalar::<f64>();
    let right = right.to_device(found.device())?;
    Ok(most((found - &right)?)? / most(right)?)
}

/// Compares both operations with candle's results on the CPU, for a layout of x.
fn compare(x: &Tensor, w: &Tensor, bias: &Tensor, what: &str) -> Result<()> {
    let on_cpu = |of: &Tensor| of.to_device(&Device::Cpu);
    let logits = on_cpu(x)?.contiguous()?.matmul(&on_cpu(w)?.t()?.contiguous()?)?;

    let right = logits.broadcast_add(&on_cpu(bias)?)?.gelu_erf()?;
    let found = x.apply_op3_no_bwd(w, bias, &LinearGelu::default())?;
    let gelu = difference(&found, &right)?;

    let e = logits.broadcast_sub(&logits.max_keepdim(1)?)?.exp()?;
    let right = e.broadcast_div(&e.sum_keepdim(1)?)?;
    let found = x.apply_op2_no_bwd(w, &LinearSoftmax::default())?;
    let softmax = difference(&found, &right)?;
    println!("{what}: difference of gelu {gelu:.1e}, of softmax {softmax:.1e}");
    if gelu > 1e-5 || softmax > 1e-5 {
        candle_core::bail!("the results are wrong");
    }
    Ok(())
}

fn main() -> Result<()> {
    let device = Device::cuda_if_available(0)?;
    let is_gpu = device.is_cuda();
    let (m, n, k) = if is_gpu { (1000, 3072, 768) } else { (30, 24, 18) };
    let random = |rows, cols| Tensor::randn(0_f32, 1.0, (rows, cols), &device);
    // Weights of this size keep the logits near 1, and their rounding errors near those of x.
    let (x, w) = (random(m, k)?, (random(n, k)? / (k as f64).sqrt())?);
    let bias = Tensor::randn(0_f32, 1.0, n, &device)?;
    compare(&x, &w, &bias, "row-major")?;
    compare(&random(k, m)?.t()?, &w, &bias, "transposed")?;
    compare(&random(m + 4, k + 8)?.narrow(0, 3, m)?.narrow(1, 4, k)?, &w, &bias, "a part")?;
    if is_gpu {
        let (layer, start) = (LinearGelu::default(), std::time::Instant::now);
        let time = |run: &dyn Fn() -> Result<Tensor>| -> Result<f64> {
            for _ in 0..3 {
                run()?;
            }
            device.synchronize()?;
            let start = start();
            for _ in 0..50 {
                run()?;
            }
            device.synchronize()?;
            Ok(start.elapsed().as_secs_f64() / 50.0 * 1e6)
        };
        let fused = time(&|| x.apply_op3_no_bwd(&w, &bias, &layer))?;
        let candle = time(&|| x.matmul(&w.t()?)?.broadcast_add(&bias)?.gelu_erf())?;
        println!("linear + bias + gelu of {m}x{n}x{k}: {fused:.1} µs, candle's own {candle:.1} µs");
    }
    Ok(())
}
