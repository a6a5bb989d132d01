//! FP32 emulation at both ends of the range of `f32`, judged by exact sums: products and partial
//! sums that overflow, and products that underflow.

use crate::{same_bits, trial};
use gemm_dsl::spec::{Arith, SgemmSpec};
use gemm_dsl::target::Format;
use gemm_oracle::beside::plain;
use gemm_oracle::exact::ExactSum;
use gemm_oracle::product::Size;
use gemm_oracle::random::Random;
use gemm_runtime::{Device, Error, MatrixMut, MatrixRef, Sgemm};
use gemm_tests::prepared::compare;
use gemm_tests::product::{Placement, Problem, accepted};
use gemm_tests::simulator;
use libtest_mimic::{Failed, Trial};

/// Specs of warps, and of warpgroups, with a K tile of 128 bytes as `{k}`. The last ones share K.
const BY_WARPS: [&str; 8] = [
    "tile: 32x32x32, warp: 16x16",
    "tile: 64x32x32, warp: 32x16, stages: 2, promote: 32, scaled",
    "tile: 32x16x16, warp: 16x16, epilogue: |acc, bias[n], c[m, n]| 0.5 * c - acc + bias",
    "tile: 32x16x32, warp: 16x16, double_buffer, slices: 2",
    "tile: 32x32x16, warp: 16x16, split_k: 3, scaled",
    "tile: 32x16x32, warp: 16x16, slices: 2, stream_k, pitched",
    "tile: 32x32x32, warp: 16x16, stages: 2, convert: matrix, layout: tn, scaled",
    "tile: 32x16x64, warp: 16x16, slices: 2, split_k: 2, convert: matrix, swizzle",
];
const BY_WARPGROUPS: [&str; 7] = [
    "tile: 64x32x{k}",
    "tile: 128x16x{k}, copy: tma, stages: 2, producer, scaled",
    "tile: 64x16x{k}, copy: tma, stages: 2, producer, persistent, layout: tn, float4, pitched",
    "tile: 64x8x{k}, copy: tma, layout: tt, epilogue: |acc, bias[n], c[m, n]| 0.5 * c - acc + bias",
    "tile: 64x16x{k}, copy: tma, stages: 2, producer, persistent, cluster: 2, promote: 16",
    "tile: 64x24x{k}, split_k: 2, layout: nt",
    "tile: 64x16x{k}, copy: tma, stages: 2, producer, split_k: 3, scaled",
];

/// Sum of |products| from which some order of additions may overflow.
const ENDS_AT: f64 = f32::MAX as f64;

/// GEMMs in which some values leave the range of `f32`, and in which none does.
#[derive(Default)]
struct Seen {
    infinite: usize,
    /// Finite sums that overflow in some order of additions.
    back_in_range: usize,
    in_range: usize,
    /// Largest error beyond the relative bound, in units of 2^-149 for each element of K.
    underflow: f64,
}

fn specs() -> Vec<SgemmSpec> {
    let emulations = || Arith::ALL.iter().filter(|arith| arith.is_emulation());
    let mut specs = Vec::new();
    for arith in emulations() {
        let k = if arith.format() == Some(Format::Tf32) { "32" } else { "64" };
        let groups = BY_WARPGROUPS.iter();
        let groups = groups.map(|line| format!("{}, mma: wgmma", line.replace("{k}", k)));
        let warps = BY_WARPS.iter().map(|line| (*line).to_owned());
        let lines = warps.filter(|_| !arith.is_scaled()).chain(groups);
        specs.extend(lines.map(|line| {
            let line = format!("{line}, arith: {arith}");
            line.parse::<SgemmSpec>().unwrap_or_else(|faults| panic!("{line}: {faults}"))
        }));
    }
    specs
}

/// True if blocks share K, and each sums its own part.
fn has_parts(spec: &SgemmSpec) -> bool {
    spec.depends_on_size().is_some() || spec.split_k != SgemmSpec::default().split_k
}

/// Numbers with all digits, around 2^exponent. Zeros and signs are drawn in a way that is the same
/// for the whole matrix.
fn numbers(random: &mut Random, exponent: i32, len: usize) -> Vec<f32> {
    let way = random.bits() % 4;
    let one = |nth: usize| {
        let bits = random.bits();
        if bits.is_multiple_of(7) {
            return 0.0;
        }
        let spread = (bits >> 8) % 3;
        let exponent = (exponent + spread as i32 + 127).clamp(1, 253) as u32;
        let magnitude = exponent << 23 | (bits >> 16) as u32 & 0x7f_ffff;
        let negative = match way {
            0 => false,
            1 => nth % 32 < 16,
            _ => bits >> 63 == 1,
        };
        f32::from_bits(magnitude | u32::from(negative) << 31)
    };
    (0..len).map(one).collect()
}

/// Operands whose sums are close to 2^ends, on either side.
fn close_to(size: Size, ends: i32, random: &mut Random) -> Problem {
    let Size { m, n, k } = size;
    // Splits represent all numbers of these magnitudes.
    let (least, most) = ((ends - 110).max(-100), (ends + 100).min(110));
    let of_a = least + (random.bits() % (most - least) as u64) as i32;
    let beside = (random.bits() % 6) as i32 - 3 - k.ilog2() as i32 / 2;
    let of_b = (ends - of_a + beside).min(120);
    let a = numbers(random, of_a, m * k);
    let b = numbers(random, of_b, k * n);
    Problem::of(size, a, b)
}

/// Judges sums by exact arithmetic. A finite sum is within the error bound. An infinite sum is
/// either beyond the range, or the result of `f32` multiply-adds.
fn judge(spec: &SgemmSpec, problem: &Problem, sums: &[f32], seen: &mut Seen) -> Result<(), String> {
    let Size { n, k, .. } = problem.size;
    for (at, &sum) in sums.iter().enumerate() {
        let (row, col) = (at / n, at % n);
        let term = |p: usize| (problem.a[row * k + p], problem.b[p * n + col]);
        let exact = ExactSum::of((0..k).map(term));
        let magnitude = ExactSum::of((0..k).map(|p| (term(p).0.abs(), term(p).1.abs()))).value();
        let relative = spec.arith.error_bound(k as u64) * magnitude;
        let bound = relative + spec.arith.underflow_bound(k as u64);
        let (value, f32) =
            (exact.value(), (0..k).map(term).fold(0.0, |sum, (a, b)| f32::mul_add(a, b, sum)));
        let of_one_sign = value.abs() == magnitude;
        let right = if sum.is_finite() {
            exact.error(sum) <= bound
        } else if magnitude + bound < ENDS_AT {
            false
        } else if of_one_sign {
            sum == value.signum() as f32 * f32::INFINITY && value.abs() + bound >= ENDS_AT
        } else {
            let is_beyond =
                value.abs() + bound >= ENDS_AT && f64::from(sum) == value.signum() * f64::INFINITY;
            is_beyond || has_parts(spec) || sum.to_bits() == f32.to_bits()
        };
        if !right {
            return Err(format!(
                "`{spec}` at {}: C[{row}][{col}] is {sum:e}, not {value:e}, of |A||B| \
                 {magnitude:e}; in f32 {f32:e}",
                problem.size
            ));
        }
        if sum.is_finite() {
            let beyond = (exact.error(sum) - relative) / (k as f64 * f64::from(f32::from_bits(1)));
            seen.underflow = seen.underflow.max(beyond);
        }
        match (sum.is_finite(), magnitude > ENDS_AT) {
            (false, _) => seen.infinite += 1,
            (true, true) => seen.back_in_range += 1,
            (true, false) => seen.in_range += 1,
        }
    }
    Ok(())
}

/// Multiplies operands whose sums are close to 2^ends, judges the sums, and compares epilogues,
/// prepared splits and batches with them. Returns the results.
fn run(device: &Device, spec: &SgemmSpec, ends: i32, seen: &mut Seen) -> Result<Vec<f32>, Failed> {
    let text = spec.to_string();
    let seed = text.bytes().fold(gemm_cases::fixed_seed(), |seed, byte| {
        seed.wrapping_mul(31).wrapping_add(byte.into())
    });
    let mut random = Random::new(seed);
    let sums_of = plain(spec).unwrap_or_else(|| spec.clone());
    let mut results = Vec::new();
    for case in 0..gemm_cases::scaled(8) {
        let mut below = |most: usize| (random.bits() % most as u64) as usize;
        // A single product, far out of range: so are products of remainders.
        let (k, beyond) = match case {
            0 => (1, if ends > 0 { 30 } else { 0 }),
            _ => ([1, 2, 5, 17, 40, 70, 130][below(7)], 0),
        };
        let size = accepted(spec, Size::new(1 + below(70), 1 + below(20), k));
        let problem = close_to(size, ends + beyond, &mut random);
        let placement = Placement::aligned_rows(spec.layout, size);
        let (sums, _) = problem.multiply(device, &sums_of, placement)?;
        judge(spec, &problem, &sums, seen)?;
        if sums_of != *spec {
            let (c, _) = problem.multiply(device, spec, placement)?;
            problem.check_epilogue(spec, &sums, &c)?;
            results.extend(c);
        }
        if case == 0 && spec.is_wgmma() {
            compare(device, &sums_of, &problem, 0)?;
        }
        if case == 1 && !spec.pitched {
            in_a_batch(device, &sums_of, &problem, &sums)?;
        }
        results.extend(sums);
    }
    Ok(results)
}

/// A batch of three GEMMs has the bits of each: the problem, the problem with −A, and the problem
/// again.
fn in_a_batch(
    device: &Device,
    spec: &SgemmSpec,
    problem: &Problem,
    sums: &[f32],
) -> Result<(), Failed> {
    let spec = spec.clone().batch(gemm_dsl::spec::Batch::Strided);
    if spec.plan().is_err() || has_parts(&spec) {
        return Ok(());
    }
    let of_batch = || -> Result<Vec<f32>, Error> {
        let kernel = Sgemm::<()>::new(spec.clone())?;
        let [a, b] = problem.stored_inputs(spec.layout);
        let negated = a.values.iter().map(|a| -a);
        let all = a.values.iter().copied().chain(negated).chain(a.values.iter().copied());
        let on_a = device.upload(&all.collect::<Vec<f32>>())?;
        let on_b = device.upload(&b.values)?;
        let in_a = a.view(MatrixRef::batch(&on_a, 3, a.lines, a.line)?);
        let in_b = b.view(MatrixRef::new(&on_b, b.lines, b.line)?);
        let mut c = device.alloc(3 * sums.len())?;
        let Size { m, n, .. } = problem.size;
        let mut out = MatrixMut::batch(&mut c, 3, m, n)?;
        kernel.call(device).launch(&in_a, &in_b, &mut out)?;
        device.download(&c)
    };
    let found = of_batch()?;
    let signed = |sign: f32| sums.iter().map(move |sum| sign * sum);
    let expected = signed(1.0).chain(signed(-1.0)).chain(signed(1.0));
    for (nth, (found, expected)) in found.iter().zip(expected).enumerate() {
        // The sign of a zero does not follow that of A.
        if *found != expected && !(found.is_nan() && expected.is_nan()) {
            return Err(format!("`{spec}`: element {nth} is {found:e}, not {expected:e}").into());
        }
    }
    Ok(())
}

/// Exponents of sums: the end of the range, and the subnormal numbers.
const ENDS: [(&str, i32); 2] = [("overflow", 127), ("underflow", -132)];

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (name, ends) in ENDS {
        trials.push(Trial::test(format!("range::{name}"), move || {
            let mut seen = Seen::default();
            // By default, each end of the range is tested with every second spec.
            let is_tested = |nth: usize| gemm_cases::is_in_turn(nth, 2, usize::from(ends > 0));
            for (_, spec) in specs().into_iter().enumerate().filter(|(nth, _)| is_tested(*nth)) {
                run(&simulator(), &spec, ends, &mut seen)?;
            }
            let Seen { infinite, back_in_range, in_range, underflow } = seen;
            let seen = [infinite, back_in_range, in_range];
            // Tensor cores lose more than the half that a rounding loses.
            let is_enough = match ends > 0 {
                true => seen.iter().all(|times| *times > 50),
                false => in_range > 50 && underflow > 1.0,
            };
            if !is_enough {
                return Err(format!("{seen:?} sums, {underflow}").into());
            }
            Ok(())
        }));
        trials.push(trial(format!("range::{name}"), move |gpu| {
            for spec in specs() {
                let on = |device: &Device| run(device, &spec, ends, &mut Seen::default());
                let what = format!("`{spec}`, {name}");
                same_bits(&what, &on(gpu)?, &on(&simulator())?)?;
            }
            Ok(())
        }));
    }
    trials
}
