//! Kernels that fold over rows: random folds over operands of all kinds, types and layouts, and
//! well-known expressions.

use gemm_dsl::ir::Variant;
use gemm_oracle::random::Random;
use gemm_runtime::generic::Kernel;
use gemm_runtime::{
    ByName, Device, Error, InPlace, M, MN, Map, MapSpec, MatrixRef, N, map_kernel, row_kernel,
};
use gemm_tests::map::Case;
use libtest_mimic::Trial;

/// Folds have the bits of the stated order, nothing else is written, and all kernels run.
fn folds_are_exact() {
    let device = Device::simulator();
    let mut ran = Vec::new();
    for seed in gemm_cases::seeds(500) {
        let case = Case::random_rows(&mut Random::new(seed));
        let (found, variants) =
            case.run(&device).unwrap_or_else(|error| panic!("{error}: {}", case.spec));
        case.judge(&found).unwrap_or_else(|error| panic!("{error}: {case:?}"));
        ran.extend(variants);
    }
    assert!([Variant::Vector, Variant::Scalar].iter().all(|variant| ran.contains(variant)));
}

const SOFTMAX: Map<(MN,)> = row_kernel!(|x[m, n]| {
    let top = max(x);
    let e = exp(x - top);
    e / sum(e)
});

const EXP: Map<(MN, M)> = map_kernel!(|x[m, n], top[m]| exp(x - top));
const DIVIDED: Map<(MN, M)> = map_kernel!(|x[m, n], s[m]| x / s);

/// Random elements.
fn elements(len: usize, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    (0..len).map(|_| (random.bits() % 4096) as f32 / 256.0 - 8.0).collect()
}

/// Sum of the values of a row by the threads of some blocks, for four elements of an item.
fn sum(values: &[f32], [blocks, team]: [usize; 2]) -> f32 {
    let mut threads = vec![-0.0_f32; blocks * team];
    for (column, value) in values.iter().enumerate() {
        threads[column / 4 % (blocks * team)] += value;
    }
    let of_block = |block: &[f32]| {
        let warps = block.chunks(32).map(|warp| {
            let mut lanes = warp.to_vec();
            for step in [16, 8, 4, 2, 1] {
                lanes = (0..32).map(|lane| lanes[lane] + lanes[lane ^ step]).collect();
            }
            lanes[0]
        });
        warps.reduce(|a, b| a + b).expect("a warp")
    };
    threads.chunks(team).map(of_block).reduce(|a, b| a + b).expect("a block")
}

/// A softmax has the bits of two elementwise kernels and folds in the stated order, at the ends of
/// all classes of rows, and in place.
fn softmax_is_exact() -> Result<(), Error> {
    let device = Device::simulator();
    let short = [1, 2, 3, 4, 5, 127, 1023, 1024, 1025, 1028, 2048, 2049, 4096, 4100];
    let long = [8191, 8192, 8193, 16384, 16385, 32768, 32769, 32772, 65536, 65540];
    for n in short.into_iter().chain(long) {
        let m = 2;
        let (blocks, team) = match n {
            ..=1024 => (1, 32),
            1025..=2048 => (1, 64),
            2049..=4096 => (1, 128),
            4097..=8192 => (1, 256),
            8193..=16384 => (1, 512),
            16385..=32768 => (1, 1024),
            32769..=65536 => (4, 512),
            _ => (8, 512),
        };
        let host = elements(m * n, n as u64);
        let tops = host.chunks(n).map(|row| row.iter().copied().fold(f32::NEG_INFINITY, f32::max));
        let tops = device.upload(&tops.collect::<Vec<_>>())?;
        let x = device.upload_matrix(&host, m, n)?;
        let (mut y, mut e) = (device.alloc_matrix(m, n)?, device.alloc_matrix(m, n)?);
        EXP.launch(&device, (&x, &tops), &mut e)?;
        let sums: Vec<f32> =
            device.download(&e)?.chunks(n).map(|row| sum(row, [blocks, team])).collect();
        DIVIDED.launch(&device, (&e, &device.upload(&sums)?), &mut y)?;
        let expected = device.download(&y)?;
        SOFTMAX.launch(&device, &x, &mut y)?;
        assert_eq!(device.download(&y)?, expected, "{n}");
        let mut x = x;
        SOFTMAX.launch(&device, InPlace::first(), &mut x)?;
        assert_eq!(device.download(&x)?, expected, "{n} in place");
        // The scalar variant has the same bits.
        let mut padded = vec![0.0; 1 + m * (n + 1)];
        for (row, values) in host.chunks(n).enumerate() {
            padded[1 + row * (n + 1)..][..n].copy_from_slice(values);
        }
        let padded = device.upload(&padded)?;
        let part = padded.slice(1..1 + m * (n + 1))?;
        SOFTMAX.launch(&device, &MatrixRef::pitched(&part, m, n, n + 1)?, &mut y)?;
        assert_eq!(device.download(&y)?, expected, "{n} scalar");
    }
    Ok(())
}

/// Expressions from the libraries for neural networks, by name, against `f64`.
fn well_known_rows() -> Result<(), Error> {
    let device = Device::simulator();
    let (m, n) = (3, 40);
    let host = elements(m * n, 7);
    let rows: Vec<Vec<f64>> =
        host.chunks(n).map(|row| row.iter().map(|x| f64::from(*x)).collect()).collect();
    let x = device.upload_matrix(&host, m, n)?;
    let near = |found: &[f32], expected: &[f64]| {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            let error = (f64::from(*found) - expected).abs();
            assert!(error <= 4e-6 * expected.abs().max(1.0), "{found} for {expected}");
        }
    };
    let lse = |row: &Vec<f64>| row.iter().map(|x| x.exp()).sum::<f64>().ln();

    let line = "|x[m, n]| { let top = max(x); x - top - log(sum(exp(x - top))) }";
    let mut y = device.alloc_matrix(m, n)?;
    by_name(line)?.call(&device).operand("x", &x).result("output", &mut y).launch()?;
    let expected = rows.iter().flat_map(|row| row.iter().map(|x| x - lse(row)));
    near(&device.download(&y)?, &expected.collect::<Vec<_>>());

    let line = "|logits[m, n], target[m]: i32| -> f32[m] { let top = max(logits); \
                log(sum(exp(logits - top))) + top \
                - sum(if col == target { logits } else { 0.0 }) }";
    let targets = [3, 0, 39];
    let (target, mut loss) = (device.upload_of(&targets)?, device.alloc(m)?);
    let kernel = by_name(line)?;
    let call = kernel.call(&device).operand("logits", &x).operand("target", &target);
    call.result("output", &mut loss).launch()?;
    let expected = rows.iter().zip(targets).map(|(row, t)| lse(row) - row[t as usize]);
    near(&device.download(&loss)?, &expected.collect::<Vec<_>>());

    const RMS: Map<(MN, MN, N), (MN, MN)> = row_kernel!(|x[m, n], residual[m, n], gamma[n]| {
        let h = x + residual;
        (h * rsqrt(sum(h * h) / f32(n) + 1e-6) * gamma, h)
    });
    let (gamma, mut h) = (device.upload(&[0.5; 40])?, device.alloc_matrix(m, n)?);
    RMS.launch(&device, (&x, &x, &gamma), (&mut y, &mut h))?;
    let expected = rows.iter().flat_map(|row| {
        let mean = row.iter().map(|x| 4.0 * x * x).sum::<f64>() / n as f64;
        row.iter().map(move |x| x / (mean + 1e-6).sqrt())
    });
    near(&device.download(&y)?, &expected.collect::<Vec<_>>());
    Ok(())
}

fn by_name(line: &str) -> Result<Kernel<MapSpec, ByName>, Error> {
    Kernel::<MapSpec, ByName>::new(line.parse()?)
}

const LSE: Map<(MN,), M> = row_kernel!(|x[m, n]| -> f32[m] log(sum(exp(x))));
const MEAN: Map<(MN,), (MN, M)> =
    row_kernel!(|x[m, n]| -> (f32, f32[m]) { let mean = sum(x) / f32(n); (x - mean, mean) });

/// Rows without columns have the folds of nothing, and without rows nothing is launched.
fn empty_rows() -> Result<(), Error> {
    let device = Device::simulator();
    let x = device.alloc_matrix(3, 0)?;
    let mut lse = device.upload(&[1.0; 4])?;
    LSE.launch(&device, &x, &mut lse)?;
    let low = f32::NEG_INFINITY;
    assert_eq!(device.download(&lse)?, [low, low, low, 1.0]);
    LSE.launch(&device, &device.alloc_matrix(0, 3)?, &mut lse)?;
    assert_eq!(device.download(&lse)?, [low, low, low, 1.0]);
    Ok(())
}

/// A vector for a result `[m]` must have an element for each row, and is not in place.
fn results_of_rows_are_checked() -> Result<(), Error> {
    let device = Device::simulator();
    let x = device.upload_matrix(&elements(12, 1), 3, 4)?;
    let (mut y, mut short) = (device.alloc_matrix(3, 4)?, device.alloc(2)?);
    let found = MEAN.launch(&device, &x, (&mut y, &mut short));
    let Err(Error::WrongExtent { argument, has: 2, need }) = found else { panic!("{found:?}") };
    assert_eq!(argument, "output_1");
    assert!(need.contains("m = 3 are needed, one for each row"), "{need}");

    let kernel = by_name("|x[m, n]| -> f32[m] max(x)")?;
    let call = kernel.call(&device).operand("x", &x);
    let found = call.result("output", &mut y).launch();
    assert!(matches!(found, Err(Error::WrongOperand { operand, .. }) if operand == "output[m]"));
    let found = kernel.call(&device).operand("x", InPlace::first()).result("output", &mut short);
    let found = found.launch();
    assert!(found.is_err(), "{found:?}");

    let spec = || "|x[m, n]| -> (f32, f64[m]) (x, f64(sum(x)))".parse();
    let found = <Map<(MN,)>>::new(spec()?);
    let Err(Error::KernelType { needed, .. }) = found else { panic!("{found:?}") };
    assert_eq!(needed, "Map<(MN,), (MN, M<f64>)>");
    Ok(())
}

pub fn trials() -> Vec<Trial> {
    simulated![
        folds_are_exact,
        softmax_is_exact,
        well_known_rows,
        empty_rows,
        results_of_rows_are_checked,
    ]
}
