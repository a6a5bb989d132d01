//! GEMMs on tensor cores: bits, accuracy, and values the split cannot represent.

use gemm_dsl::spec::{Arith, SgemmSpec};
use gemm_dsl::target::Format;
use gemm_oracle::product::Size;
use gemm_oracle::random::{Hard, Random, values};
use gemm_runtime::{Device, Error, MatrixMut, MatrixRef, Sgemm};
use gemm_tests::arbitrary;
use gemm_tests::product::{Placement, Problem, accepted};
use gemm_tests::simulator;
use libtest_mimic::Trial;
use proptest::prelude::*;

/// Checks that C has the bits that its arithmetic defines. The payload of a NaN is ignored, because
/// it depends on the machine.
fn bits(spec: &SgemmSpec, problem: &Problem, placement: Placement) -> Result<(), String> {
    let (c, variant) = problem.multiply(&simulator(), spec, placement)?;
    for (at, (value, expected)) in c.iter().zip(problem.ascending(spec)).enumerate() {
        if value.to_bits() != expected.to_bits() && !(value.is_nan() && expected.is_nan()) {
            let (size, n) = (problem.size, problem.size.n);
            let at = format!("C[{}][{}]", at / n, at % n);
            return Err(format!(
                "`{spec}` ({variant}) at {size}: {at} is {value:?}, not {expected:?}"
            ));
        }
    }
    Ok(())
}

/// Random numbers. A few of them are special: infinities, NaN, the largest, tiny and subnormal
/// numbers.
fn with_special(seed: u64, len: usize) -> Vec<f32> {
    let mut random = Random::new(seed);
    let ordinary = values(!seed, len);
    let special = [
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MAX,
        -3.4e38,
        1e-34,
        f32::MIN_POSITIVE,
        1e-45,
        7.7e-34,
        0.0,
        -0.0,
        65504.0,
        65520.0,
    ];
    let one = |value: f32| {
        let bits = random.bits();
        if bits.is_multiple_of(61) { special[(bits >> 8) as usize % special.len()] } else { value }
    };
    ordinary.into_iter().map(one).collect()
}

fn placements(spec: &SgemmSpec, size: Size) -> [Placement; 2] {
    let moved = Placement { offsets: [1, 2, 3], padding: [1, 0, 2] };
    let rows = Placement::aligned_rows(spec.layout, size);
    [rows, if spec.bounds == gemm_dsl::spec::Bounds::Guarded { moved } else { rows }]
}

proptest! {
    #![proptest_config(gemm_cases::cases(100))]

    /// Any spec at any size computes the defined bits, for ordinary numbers, special numbers, and
    /// values that the split cannot represent.
    fn tensor_cores_match_the_reference(
        spec in arbitrary::on_tensor_cores(256),
        (m, n, k) in (0..40usize, 0..40usize, 0..90usize),
        seed in any::<u64>(),
    ) {
        let size = accepted(&spec, Size::new(m, n, k));
        let Size { m, n, k } = size;
        let special = Problem::of(size, with_special(seed, m * k), with_special(seed ^ 5, k * n));
        let hard = Hard::ALL[seed as usize % Hard::ALL.len()];
        for problem in [Problem::new(size, seed), Problem::hard(size, seed, hard), special] {
            for placement in placements(&spec, size) {
                bits(&spec, &problem, placement).map_err(TestCaseError::fail)?;
            }
        }
    }
}

/// Tile, pipeline, layout and the place of conversion do not affect the bits if the same number of
/// K elements is summed before each promotion to f32.
fn bits_depend_only_on_promotion() {
    let tiles = [
        "tile: 32x32x32, warp: 16x16",
        "tile: 64x32x64, warp: 32x16, double_buffer, float4, pad_a: 4, layout: nt",
        "tile: 32x64x32, warp: 32x32, stages: 3, float4, pad_b: 8, layout: tn",
        "tile: 48x48x96, warp: 16x24, prefetch, layout: tt, transpose",
        "tile: 32x96x32, warp: 16x48, stages: 2, float4, swizzle, convert: matrix, layout: tt",
        "tile: 64x32x96, warp: 32x16, double_buffer, pad_a: 8, pad_b: 16, convert: matrix",
    ];
    for arith in ["bf16", "f16", "tf32", "bf16x6", "bf16x9", "tf32x3"] {
        for promote in ["", ", promote: 16", ", promote: 32"] {
            let size = Size::new(37, 41, 103);
            let (a, b) = (with_special(3, 37 * 103), with_special(4, 103 * 41));
            let problem = Problem::of(size, a, b);
            let mut first: Option<Vec<u32>> = None;
            for tile in tiles {
                let line = format!("{tile}, arith: {arith}{promote}");
                let spec: SgemmSpec = line.parse().unwrap_or_else(|e| panic!("{line}: {e}"));
                let placement = Placement::aligned_rows(spec.layout, size);
                let c = problem.multiply(&simulator(), &spec, placement);
                let (c, _) = c.unwrap_or_else(|error| panic!("{error}"));
                let bits: Vec<u32> = c.iter().map(|c| c.to_bits()).collect();
                assert!(*first.get_or_insert_with(|| bits.clone()) == bits, "{line}");
            }
        }
    }
}

/// The same holds for `wgmma`, with all kinds of copies and stores. The f32 fallback handles values
/// that the split cannot represent.
fn bits_of_wgmma_depend_only_on_promotion() {
    let tiles = [
        "tile: 64x32x{128}",
        "tile: 128x48x{64}, warp: 16x24, copy: tma, layout: tt",
        "tile: 64x64x{128}, copy: tma, stages: 3, layout: nt, raster: 2",
        "tile: 128x16x{128}, copy: tma, stages: 2, producer, layout: tn",
        "tile: 64x24x{64}, copy: tma, producer, stages: 4, persistent",
        "tile: 64x16x{128}, copy: tma, producer, stages: 2, cluster: 2",
        "tile: 64x32x{64}, copy: tma, producer, stages: 3, persistent, cluster: 4, raster: 2",
    ];
    let size = Size::new(70, 61, 147);
    let ordinary = Problem::new(size, 3);
    let mut hard = ordinary.clone();
    hard.a[147] = f32::INFINITY;
    hard.b[3] = 1e-42;
    let ariths = Arith::ALL.iter().filter(|arith| arith.format().is_some()).enumerate();
    for (turn, arith) in ariths {
        for problem in [&ordinary, &Problem::of(size, hard.a.clone(), hard.b.clone())] {
            let mut first: Option<Vec<u32>> = None;
            // By default, every second tile is compared with the first one.
            let is_tested = |nth: usize| nth == 0 || gemm_cases::is_in_turn(nth, 2, turn);
            for (_, tile) in tiles.iter().enumerate().filter(|(nth, _)| is_tested(*nth)) {
                let terms = if arith.format() == Some(Format::Tf32) { 4 } else { 2 };
                let tile = tile.replace("{128}", &(128 / terms).to_string());
                let tile = tile.replace("{64}", &(64 / terms).to_string());
                let promote = if arith.is_emulation() { ", promote: 16" } else { "" };
                let line = format!("{tile}, arith: {arith}, mma: wgmma{promote}");
                let spec: SgemmSpec = line.parse().unwrap_or_else(|e| panic!("{line}: {e}"));
                let c = problem.multiply(&simulator(), &spec, Placement::default());
                let (c, _) = c.unwrap_or_else(|error| panic!("{error}"));
                let bits: Vec<u32> = c.iter().map(|c| c.to_bits()).collect();
                assert!(*first.get_or_insert_with(|| bits.clone()) == bits, "{line}");
            }
        }
    }
}

/// A value that the splits of converted matrices cannot represent is found in every tile of A and
/// B. All blocks that multiply the value find it, and no others.
fn flags_of_all_tiles_are_read() {
    let cases = [
        ("tile: 48x48x32, warp: 16x24", Size::new(89, 90, 70)),
        ("tile: 16x16x16, warp: 16x16, stages: 2, layout: tn", Size::new(18, 17, 2200)),
    ];
    for ((tile, size), arith) in cases.into_iter().zip(["bf16x6", "tf32x3"]) {
        let spec = |keys: &str| -> SgemmSpec {
            let line = format!("{tile}, arith: {arith}{keys}");
            line.parse().unwrap_or_else(|faults| panic!("{line}: {faults}"))
        };
        let [by_lanes, by_flags] = [spec(""), spec(", convert: matrix")];
        let multiply = |spec: &SgemmSpec, problem: &Problem| -> Vec<u32> {
            let placement = Placement::aligned_rows(spec.layout, size);
            let c = problem.multiply(&simulator(), spec, placement);
            let (c, _) = c.unwrap_or_else(|error| panic!("`{spec}`: {error}"));
            c.iter().map(|c| c.to_bits()).collect()
        };
        let ordinary = Problem::new(size, 5);
        let without = multiply(&by_flags, &ordinary);
        assert!(without == multiply(&by_lanes, &ordinary), "`{by_flags}`");
        for (of_b, last) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut problem = ordinary.clone();
            let Size { m, n, k } = size;
            // Last element along M or N, and the first or the last along K.
            let term = if last { k - 1 } else { 0 };
            let lost = if of_b {
                &mut problem.b[term * n + n - 1]
            } else {
                &mut problem.a[(m - 1) * k + term]
            };
            *lost = 1e-40;
            let found = multiply(&by_flags, &problem);
            assert!(found == multiply(&by_lanes, &problem), "`{by_flags}`, {of_b}, {last}");
            // Sums in f32 have other bits than sums on tensor cores.
            let recomputed = |at: &usize| {
                let (row, col) = (at / n, at % n);
                if of_b { col == n - 1 } else { row == m - 1 }
            };
            let differs = |at: &usize| found[*at] != without[*at];
            let (inside, outside): (Vec<_>, Vec<_>) = (0..m * n).partition(recomputed);
            assert!(inside.iter().filter(|at| differs(at)).count() > inside.len() / 2);
            assert!(!outside.iter().any(differs));
        }
    }
}

/// If an extent is 0, matrices without elements are not split.
fn splits_are_computed_of_existing_elements() {
    for arith in Arith::ALL.iter().filter(|arith| arith.format().is_some()) {
        for (m, n, k) in [(0, 5, 3), (5, 0, 3), (5, 3, 0), (0, 0, 3), (70, 0, 70), (0, 70, 70)] {
            let terms = if arith.format() == Some(Format::Tf32) { 32 } else { 64 };
            let by_warpgroups =
                format!("tile: 64x8x{terms}, arith: {arith}, mma: wgmma, copy: tma");
            let by_warps = format!("tile: 32x8x16, warp: 16x8, arith: {arith}, convert: matrix");
            let by_warps = (!arith.is_scaled()).then_some(by_warps);
            for line in by_warps.into_iter().chain([by_warpgroups]) {
                let spec: SgemmSpec = line.parse().expect("a line");
                let problem = Problem::new(Size::new(m, n, k), 1);
                bits(&spec, &problem, Placement::default())
                    .unwrap_or_else(|error| panic!("{error}"));
                let made = splits_made(&spec, (m, n, k)).unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(made, 0, "`{spec}` at {m}x{n}x{k}");
            }
        }
        let spec = format!("tile: 64x8x32, arith: {arith}, mma: wgmma").parse().expect("a line");
        assert_eq!(splits_made(&spec, (65, 3, 2)).ok(), Some(3 + 3 * u64::from(arith.is_scaled())));
    }
}

/// With K = 0, persistent blocks neither wait for tiles nor load any, and C is zero.
fn sums_of_no_terms_are_zero_whatever_shares_them() {
    let mut shared = 0;
    for keys in ["", "float4", "stages: 2", "stages: 3", "stages: 4, spread: 2", "double_buffer"] {
        for shares in ["", "split_k: 2", "stream_k"] {
            let line = format!("tile: 16x16x16, warp: 16x16, arith: bf16, {keys}, {shares}");
            let line = line.replace(", ,", ",");
            let line = line.trim_end_matches([' ', ',']);
            let Ok(spec) = line.parse::<SgemmSpec>() else { continue };
            // More tiles than SMs.
            let problem = Problem::new(Size::new(192, 190, 0), 1);
            let c = problem.multiply(&simulator(), &spec, Placement::default());
            let (c, _) = c.unwrap_or_else(|error| panic!("`{line}`: {error}"));
            assert!(c.iter().all(|c| c.to_bits() == 0), "`{line}`");
            shared += usize::from(spec.stream_k);
        }
    }
    assert!(shared >= 5, "{shared} pipelines whose blocks go from tile to tile");
}

/// Number of blocks that split operands or compute their scales.
fn splits_made(spec: &SgemmSpec, (m, n, k): (usize, usize, usize)) -> Result<u64, Error> {
    let device = Device::simulator();
    let (a, b) = (device.upload(&vec![1.0; m * k])?, device.upload(&vec![1.0; k * n])?);
    let mut c = device.alloc(m * n)?;
    let (a, b) = (MatrixRef::new(&a, m, k)?, MatrixRef::new(&b, k, n)?);
    let kernel = Sgemm::<()>::new(spec.clone())?;
    let launched = kernel.call(&device).launch(&a, &b, &mut MatrixMut::new(&mut c, m, n)?)?;
    let makes = |kernel: &str| kernel.ends_with("_splits") || kernel.ends_with("_row_max");
    let steps = launched.steps().filter(|step| makes(step.kernel()));
    Ok(steps.map(|step| u64::from(step.grid()[0])).sum())
}

/// Numbers at the limits of the formats are split. Components of the largest numbers may round to
/// infinity, and remainders of the smallest underflow. The error of each product is still within
/// the bound.
fn numbers_at_the_ends_of_formats_are_multiplied() {
    let mut numbers: Vec<u32> = Vec::new();
    for ulps in [0x8, 0x400, 0x1000, 0x2000, 0x8000, 0x1_0000, 0x2_0000] {
        let below = 0x7f80_0000 - ulps;
        numbers.extend([below - 1, below, below + 1]);
    }
    for exponent in 1..48_u32 {
        let first = exponent << 23;
        numbers.extend([first, first | 1, first | 0x1001, first | 0x7f_ffff]);
    }
    let a: Vec<f32> = numbers.iter().map(|bits| f32::from_bits(*bits)).collect();
    let b = [1.0, -1.0, 0.75, 1.000_122];
    for (nth, arith) in Arith::ALL.iter().filter(|arith| arith.is_emulation()).enumerate() {
        let sync = format!("tile: 16x8x16, warp: 16x8, arith: {arith}");
        let wgmma = format!("tile: 64x8x32, arith: {arith}, mma: wgmma");
        // A thinned run tests other numbers with each kind of instruction and arithmetic.
        let stride = if gemm_cases::is_thinned() { 3 } else { 1 };
        for (kind, line) in [sync, wgmma].into_iter().enumerate() {
            let turn = (nth + kind) % stride;
            if arith.is_scaled() && !line.contains("wgmma") {
                continue;
            }
            let spec: SgemmSpec = line.parse().expect("a line");
            // A has a single row, so that no other number triggers the f32 fallback.
            for a in a.iter().skip(turn).step_by(stride) {
                let problem = Problem::of(Size::new(1, b.len(), 1), vec![*a], b.to_vec());
                let found = problem.multiply(&simulator(), &spec, Placement::default());
                let (c, _) = found.unwrap_or_else(|error| panic!("{error}"));
                for (c, b) in c.iter().zip(b) {
                    let exact = f64::from(*a) * f64::from(b);
                    let bound = arith.error_bound(1) * exact.abs() + 2f64.powi(-149);
                    let overflows = exact.abs() >= f64::from(f32::MAX) && c.is_infinite();
                    let fits = overflows || (f64::from(*c) - exact).abs() <= bound;
                    assert!(fits, "{line}: {a:e} ({:#x}) · {b} = {c:e}", a.to_bits());
                }
            }
        }
    }
}

/// The error of FP32 emulation is within its bound at every K.
fn emulations_keep_their_bounds() {
    for arith in Arith::ALL.iter().filter(|arith| arith.is_emulation()) {
        for k in [1, 2, 3, 16, 17, 100, 1000] {
            let by_warps = format!("tile: 32x32x32, warp: 16x16, arith: {arith}");
            let by_warpgroups = format!("tile: 64x32x32, arith: {arith}, mma: wgmma");
            let line = if arith.is_scaled() { by_warpgroups } else { by_warps };
            let spec: SgemmSpec = line.parse().expect("a line");
            let problem = Problem::new(Size::new(33, 31, k), k as u64);
            let (c, _) = problem
                .multiply(&simulator(), &spec, Placement::default())
                .unwrap_or_else(|error| panic!("{error}"));
            problem
                .check(&simulator(), &spec, Placement::default(), &c)
                .unwrap_or_else(|error| panic!("{arith} at {k}: {error}"));
        }
    }
}

/// With scaled rows and columns, the error is within the bound for any exponent of their largest
/// element. The exponents reach from the smallest that can be scaled to the largest finite one. The
/// largest elements may be multiplied by zeros, while the other elements are 2^16 times smaller.
fn scaled_lines_keep_their_bound_at_every_exponent() {
    let spec: SgemmSpec = "tile: 64x8x64, arith: f16x3, mma: wgmma".parse().expect("a line");
    let mut random = Random::new(31);
    let mut seen = [0; 3];
    for _ in 0..200 {
        let mut below = |n: usize| (random.bits() % n as u64) as usize;
        let size @ Size { m, n, k } = Size::new(3, 4, 3);
        // A row or column has its largest number at `place`, a zero where the other matrix has its
        // largest number, and a smaller number.
        let mut line = |place: usize| {
            let greatest = [-113, -113, -64, -1, 60, 127, 127][below(7)];
            let smaller = [0, 3, 15, 16, 16][below(5)];
            let mut value = |exponent: i32| {
                let mantissa = 1.0 + below(1 << 22) as f64 / 8_388_608.0;
                let sign = if below(2) == 0 { 1.0 } else { -1.0 };
                (sign * mantissa * 2f64.powi(exponent)) as f32
            };
            let mut line = [0.0; 3];
            line[place] = value(greatest);
            line[2] = value(greatest - smaller);
            line
        };
        let rows: Vec<_> = (0..m).map(|_| line(0)).collect();
        let cols: Vec<_> = (0..n).map(|_| line(1)).collect();
        let b = (0..k * n).map(|i| cols[i % n][i / n]).collect();
        let problem = Problem::of(size, rows.concat(), b);
        let (c, _) = problem
            .multiply(&simulator(), &spec, Placement::default())
            .unwrap_or_else(|error| panic!("{error}"));
        for (at, c) in c.iter().enumerate() {
            let (row, col) = (rows[at / n], cols[at % n]);
            let sum = f64::from(row[2]) * f64::from(col[2]);
            let bound = Arith::F16x3.error_bound(1) * sum.abs() + 2f64.powi(-150);
            let is_infinite = c.is_infinite() && sum.abs() > f64::from(f32::MAX);
            let fits = is_infinite || (f64::from(*c) - sum).abs() <= bound;
            assert!(fits, "{c:e} for {sum:e}: {row:?} x {col:?}");
            seen[match sum.abs() {
                great if great > f64::from(f32::MAX) => 0,
                tiny if tiny < f64::from(f32::MIN_POSITIVE) => 1,
                _ => 2,
            }] += 1;
        }
    }
    assert!(seen.iter().all(|times| *times > 100), "{seen:?}");
}

pub fn trials() -> Vec<Trial> {
    simulated![
        tensor_cores_match_the_reference,
        bits_depend_only_on_promotion,
        bits_of_wgmma_depend_only_on_promotion,
        flags_of_all_tiles_are_read,
        splits_are_computed_of_existing_elements,
        sums_of_no_terms_are_zero_whatever_shares_them,
        numbers_at_the_ends_of_formats_are_multiplied,
        emulations_keep_their_bounds,
        scaled_lines_keep_their_bound_at_every_exponent,
    ]
}
