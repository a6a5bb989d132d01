//! `sgemm` with an epilogue on a GPU, with the rules of its own tables.

use crate::{equal_bits, same_bits, trial};
use gemm_dsl::spec::{Accuracy, Arith, SgemmSpec};
use gemm_oracle::beside::Beside;
use gemm_oracle::epilogue::stored;
use gemm_oracle::product::Size;
use gemm_oracle::random::values;
use gemm_runtime::{Device, Epilogue, MN, N, Sgemm, epilogue, sgemm};
use libtest_mimic::{Failed, Trial};

const LAYER: Epilogue<(N, MN, f32)> =
    epilogue!(|acc, bias[n], c[m, n], rest[m, n], slope| gelu(acc + bias) + slope * (rest - c));

/// Shapes of rules that compute directly, in partitions of K, in stream-K and in large tiles, and
/// of rules on tensor cores.
const SIZES: [(usize, usize, usize); 8] = [
    (1, 33, 70),
    (64, 64, 512),
    (100, 35, 41),
    (512, 512, 512),
    (129, 257, 4096),
    (1000, 1030, 333),
    (1024, 2048, 512),
    (2048, 1536, 1024),
];

pub fn trials() -> Vec<Trial> {
    let cases = SIZES.iter().enumerate().flat_map(|(n, size)| {
        Accuracy::ALL.iter().map(move |accuracy| {
            let name = format!("sgemm_call::epilogue_{n}_{accuracy}");
            trial(name, move |gpu| stores_the_expression(gpu, *size, *accuracy))
        })
    });
    cases.collect()
}

/// The result has the bits of the kernel with the epilogue written by hand, and of the expression
/// of the sums of the kernel without it. Arithmetic in `f32` also has the simulator's bits.
fn stores_the_expression(
    gpu: &Device,
    (m, n, k): (usize, usize, usize),
    accuracy: Accuracy,
) -> Result<(), Failed> {
    let size = Size { m, n, k };
    let [a, w, c, rest] =
        [m * k, n * k, m * n, m * n].map(|count| values((count + m) as u64, count));
    let bias = values(5, n);
    let beside = |spec: &SgemmSpec| Beside {
        operands: spec
            .operands()
            .into_iter()
            .zip([bias.clone(), rest.clone(), vec![0.25]])
            .collect(),
        c: Some(c.clone()),
    };
    let on = |device: &Device| -> Result<_, Failed> {
        let x = device.upload_matrix(&a, m, k)?;
        let weights = device.upload_matrix(&w, n, k)?;
        let (bias, rest) = (device.upload(&bias)?, device.upload_matrix(&rest, m, n)?);
        Ok((x, weights, bias, rest, device.upload_matrix(&c, m, n)?))
    };
    let (x, weights, bias, rest, mut y) = on(gpu)?;
    let operands = (&bias, &rest, 0.25);
    let w = weights.t();
    let call = sgemm(&x, &w, &mut y).accuracy(accuracy);
    let call = call.epilogue(LAYER).operands(operands);
    let spec = call.spec(gpu)?;
    call.run(gpu)?;
    let found = gpu.download(&y)?;
    let title = format!("`{spec}` at {size}");

    let by_hand = Sgemm::<(N, MN, f32)>::new(spec.clone())?;
    let mut again = gpu.upload_matrix(&c, m, n)?;
    by_hand.call(gpu).operands(operands).launch(&x, &w, &mut again)?;
    let of_hand = gpu.download(&again)?;
    equal_bits(&title, ("by sgemm", &found), ("by the kernel", &of_hand))?;

    let mut plain = spec.clone();
    plain.epilogue = None;
    let mut sums = gpu.alloc_matrix(m, n)?;
    Sgemm::<()>::new(plain)?.call(gpu).launch(&x, &w, &mut sums)?;
    let sums: Vec<_> = gpu.download(&sums)?.into_iter().enumerate().collect();
    let expected = stored(&spec, &sums, size, &beside(&spec)).map_err(|e| e.to_string())?;
    equal_bits(&title, ("found", &found), ("by the oracle", &expected))?;

    if spec.arith != Arith::F32 {
        let prepared = gpu.prepare(spec.arith, &w)?;
        let mut again = gpu.upload_matrix(&c, m, n)?;
        let call = sgemm(&x, &prepared, &mut again).accuracy(accuracy);
        call.epilogue(LAYER).operands(operands).run(gpu)?;
        let of_splits = gpu.download(&again)?;
        return equal_bits(&title, ("found", &found), ("with prepared splits", &of_splits));
    }
    if m * n * k > 1 << 24 || spec.depends_on_size().is_some() {
        return Ok(());
    }
    let device = Device::simulator();
    let (x, weights, bias, rest, mut y) = on(&device)?;
    let call = by_hand.call(&device).operands((&bias, &rest, 0.25));
    call.launch(&x, &weights.t(), &mut y)?;
    same_bits(&title, &found, &device.download(&y)?)
}
