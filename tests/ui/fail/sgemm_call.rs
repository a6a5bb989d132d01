//! Epilogues of `sgemm` calls: faulty expressions, and operands that are missing or wrong.

use gemm_runtime::{Buffer, ByName, Device, Epilogue, M, MN, Matrix, N, epilogue, sgemm};

const BIAS: Epilogue<(N,)> = epilogue!(|acc, bias[n]| acc + bias);
const LAYER: Epilogue<(N, MN, f32)> =
    epilogue!(|acc, bias[n], residual[m, n], slope| slope * (acc + bias) + residual);

const _: Epilogue = epilogue!();
const _: Epilogue = epilogue!(max(acc, 0.0));
const _: Epilogue = epilogue!(|acc| rleu(acc) + ac);
const _: Epilogue = epilogue!(|acc| acc, float4);
const _: Epilogue<(N,)> = epilogue!(|acc, a[n]| acc + a);
const _: Epilogue<(N,)> = epilogue!(|acc, bias[n]| bias + "one");
const _: Epilogue = epilogue!(|acc, bias[n]| acc + bias);
const _: Epilogue<(M,)> = epilogue!(|acc, bias[n]| acc + bias);
const _: Epilogue<ByName> = epilogue! {
    |acc, x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12|
        acc + x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7 + x8 + x9 + x10 + x11 + x12
};

fn given(device: &Device, bias: &Buffer, x: &Matrix, y: &mut Matrix) {
    let _ = sgemm(x, x, y).epilogue(BIAS).run(device);
    let _ = sgemm(x, x, y).epilogue(BIAS).choice(device);
    let _ = sgemm(x, x, y).epilogue(BIAS).operands(x);
    let _ = sgemm(x, x, y).epilogue(BIAS).operands((bias, 0.5));
    let _ = sgemm(x, x, y).epilogue(BIAS).operand("bias", bias);
    let _ = sgemm(x, x, y).epilogue(LAYER).operands((x, bias, 0.5));
    let _ = sgemm(x, x, y).epilogue(LAYER).operands((bias, x));
    let _ = sgemm(x, x, y).epilogue(LAYER).operands(bias);
    let _ = sgemm(x, x, y).operands(bias);
}

#[deny(unused_must_use)]
fn not_launched(bias: &Buffer, x: &Matrix, y: &mut Matrix) {
    sgemm(x, x, y).epilogue(BIAS).operands(bias);
}

fn main() {}
