//! Distributed reductions return the same bits as one device.

use crate::sampling;
use fastrand::Rng;
use gemm_runtime::half::f16;
use gemm_runtime::{Device, MatrixRef, Number, ReduceKernel, reduce_kernel};
use gemm_world::{Cut, Distribution, Error, OnRank, Split, World, WorldError};

/// Specs with their run lengths.
const LINES: [(&str, usize); 6] = [
    ("block: 32, run: 32", 32),
    ("block: 32, items: 2, run: 128", 128),
    ("block: 64, shuffle, items: 2, run: 384", 384),
    ("block: 32, float4, run: 128", 128),
    ("block: 32, launch: once, run: 64", 64),
    ("block: 32, shuffle, float4, launch: once, run: 256", 256),
];

/// Random cut of an extent between runs.
fn cut(rng: &mut Rng, extent: usize, run: usize, parts: usize) -> Cut {
    if rng.bool() {
        return Cut::Even(run * rng.usize(1..4));
    }
    let runs = extent / run;
    let mut ends: Vec<usize> = (1..parts).map(|_| rng.usize(0..=runs) * run).collect();
    ends.push(extent);
    ends.sort_unstable();
    let starts = std::iter::once(0).chain(ends.iter().copied());
    Cut::Lengths(starts.zip(&ends).map(|(start, end)| end - start).collect())
}

#[test]
fn sums_of_arrays_have_the_bits_of_one_device() {
    let mut rng = Rng::with_seed(41);
    for round in 0..120 {
        let (line, run) = LINES[round % LINES.len()];
        let op = *rng.choice(&["sum", "prod", "max", "min"]).expect("some");
        let extra = *rng
            .choice(&["", ", map: |x| x * f32(i) + f32(len)", ", finish: |s, count| s / count"])
            .expect("some");
        let compensated = if op == "sum" && rng.u32(0..3) == 0 { ", compensated" } else { "" };
        let line = format!("op: {op}, {line}{extra}{compensated}");
        let spec = line.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        let kernel = <ReduceKernel>::new(spec).unwrap_or_else(|error| panic!("{line}: {error}"));
        let ranks = *rng.choice(&[1, 2, 3, 4, 7, 8]).expect("some");
        let len = sampling::extent(&mut rng, 12 * run);
        let x = sampling::numbers(&mut rng, len);
        let expected = kernel.run(&Device::simulator(), &x).expect("one device");
        let distribution =
            Distribution { rows: 1, cols: len, split: Split::Cols(cut(&mut rng, len, run, ranks)) };
        let found = World::simulated(ranks).expect("a world").run(|rank| {
            let x = rank.upload(&distribution, &x)?;
            kernel.on(rank).run(&x)
        });
        let found = found.unwrap_or_else(|error| panic!("{line}, {distribution}: {error}"));
        let bits: Vec<u32> = found.iter().map(|x| x.to_bits()).collect();
        assert_eq!(bits, vec![expected.to_bits(); ranks], "{line}, {distribution}");
    }
}

/// The ranks reuse the memory of partials only for equal numbers of partials.
#[test]
fn all_ranks_pass_the_same_numbers() {
    let kernel: ReduceKernel<(f32, Number<f32>, Number<f32>), f32> = reduce_kernel!(
        block: 32, run: 64, map: |x, mu: f32| (x - mu) * (x - mu), finish: |s, scale: f32| s * scale
    );
    let x: Vec<f32> = (0..1000).map(|i| 1.0 / (1 + i) as f32).collect();
    let expected = kernel.run(&Device::simulator(), (&x, 0.25, 3.0)).expect("one device");
    let distribution: Distribution = "1x1000 cols/64".parse().expect("a distribution");
    let sums = World::simulated(3).expect("a world").run(|rank| {
        let x = rank.upload(&distribution, &x)?;
        kernel.on(rank).run((&x, 0.25, 3.0))
    });
    assert_eq!(sums.expect("the same numbers"), [expected; 3]);
    let sums = World::simulated(2).expect("a world").run(|rank| {
        let x = rank.upload(&distribution, &x)?;
        let mu = rank.number() as f32;
        kernel.on(rank).run((&x, mu, 3.0))
    });
    let error = sums.expect_err("another number");
    assert!(error.to_string().contains("the numbers"), "{error}");
}

#[test]
fn reductions_of_other_lengths_follow_each_other() {
    let line = "op: sum, block: 32, run: 32";
    let kernel = <ReduceKernel>::new(line.parse().expect("a spec")).expect("a kernel");
    let mut rng = Rng::with_seed(43);
    let inputs = [64, 640, 640, 96, 1280].map(|len| sampling::numbers(&mut rng, len));
    let found = World::simulated(2).expect("a world").run(|rank| {
        let mut sums = Vec::new();
        for x in &inputs {
            // In the fourth call, rank 0 has one of three runs, as in the first call.
            let cut = Cut::Lengths(vec![x.len() / 64 * 32, x.len() - x.len() / 64 * 32]);
            let split = Split::Cols(cut);
            let distribution = Distribution { rows: 1, cols: x.len(), split };
            let x = rank.upload(&distribution, x)?;
            sums.push(kernel.on(rank).run(&x)?.to_bits());
        }
        Ok(sums)
    });
    let expected = inputs.map(|x| kernel.run(&Device::simulator(), &x).expect("a sum").to_bits());
    assert_eq!(found.expect("sums"), vec![expected.to_vec(); 2]);
}

#[test]
fn two_results_and_indices_have_the_bits_of_one_device() {
    let mut rng = Rng::with_seed(5);
    for round in 0..60 {
        let (line, run) = LINES[round % 3];
        let ranks = rng.usize(1..6);
        let len = sampling::extent(&mut rng, 9 * run);
        let x: Vec<f32> = (0..len).map(|_| rng.i32(-4..4) as f32 / 4.0).collect();
        let distribution =
            Distribution { rows: 1, cols: len, split: Split::Cols(cut(&mut rng, len, run, ranks)) };
        let moments = ReduceKernel::<f32, (f32, f32)>::new(
            format!("op: mean_var, {line}").parse().expect("a line"),
        );
        let moments = moments.expect("a kernel");
        let arg = ReduceKernel::<f16, u64>::new(
            format!("op: argmin, type: f16, index: u64, {line}").parse().expect("a line"),
        );
        let arg = arg.expect("a kernel");
        let halves: Vec<f16> = x.iter().map(|x| f16::from_f32(*x)).collect();
        let device = Device::simulator();
        let (mean, var) = moments.run(&device, &x).expect("one device");
        let first = arg.run(&device, &halves);
        let found = World::simulated(ranks).expect("a world").run(|rank| {
            let x = rank.upload(&distribution, &x)?;
            let halves = rank.upload(&distribution, &halves)?;
            let moments = moments.on(rank).run(&x)?;
            let arg = arg.on(rank).run(&halves);
            Ok((moments, arg.ok()))
        });
        for ((found_mean, found_var), found_first) in found.expect("they can be folded") {
            let bits = |(a, b): (f32, f32)| (a.to_bits(), b.to_bits());
            assert_eq!(bits((found_mean, found_var)), bits((mean, var)), "{distribution}");
            // An empty array has no index of a maximum, on any number of devices.
            assert_eq!(found_first, first.as_ref().ok().copied(), "{distribution}");
        }
    }
}

#[test]
fn rows_and_columns_have_the_bits_of_one_device() {
    let mut rng = Rng::with_seed(6);
    for _ in 0..120 {
        let by_rows = rng.bool();
        let (over, line, run) = match (by_rows, rng.bool()) {
            (true, true) => ("rows", "group: 32, block: 32, items: 2, run: 64", 64),
            (true, false) => ("rows", "group: 64, block: 64, shuffle, run: 128", 128),
            (false, true) => ("columns", "block: 64, group: 8, run: 16", 16),
            (false, false) => ("columns", "block: 64, group: 4, coarsen: 2, run: 8", 8),
        };
        let kernel = <ReduceKernel>::new(
            format!("over: {over}, {line}")
                .parse()
                .unwrap_or_else(|error| panic!("{line}: {error}")),
        );
        let kernel = kernel.expect("a kernel");
        let ranks: usize = *rng.choice(&[1, 2, 3, 4, 6, 8]).expect("some");
        let folded = sampling::extent(&mut rng, 6 * run);
        let kept = sampling::extent(&mut rng, 20);
        let (rows, cols) = if by_rows { (kept, folded) } else { (folded, kept) };
        let down: usize = *rng.choice(&[1, 1, 2, ranks]).expect("some");
        let down = if ranks.is_multiple_of(down) { down } else { 1 };
        let along = |rng: &mut Rng, is_folded: bool, extent: usize, parts: usize| match is_folded {
            true => cut(rng, extent, run, parts),
            false => Cut::EVEN,
        };
        let split = match rng.u32(0..4) {
            0 => Split::Whole,
            1 => Split::Rows(along(&mut rng, !by_rows, rows, ranks)),
            2 => Split::Cols(along(&mut rng, by_rows, cols, ranks)),
            _ => Split::Grid {
                ranks: [down, ranks / down],
                cuts: [
                    along(&mut rng, !by_rows, rows, down),
                    along(&mut rng, by_rows, cols, ranks / down),
                ],
                patch: [*rng.choice(&[1, down]).expect("some"), 1],
                down: rng.bool(),
            },
        };
        let distribution = Distribution { rows, cols, split };
        let x = sampling::numbers(&mut rng, rows * cols);
        let device = Device::simulator();
        let size = if by_rows { (rows, cols, 1) } else { (1, rows, cols) };
        let expected = kernel.run_over(&device, &x, size).expect("one device");
        let found = World::simulated(ranks).expect("a world").run(|rank| {
            let x = rank.upload(&distribution, &x)?;
            let own = if by_rows { x.block().rows.clone() } else { x.block().cols.clone() };
            let mut out = rank.device().alloc(own.len())?;
            kernel.on(rank).launch(&x, &mut out)?;
            Ok((own, rank.device().download(&out)?))
        });
        for (own, found) in
            found.unwrap_or_else(|error| panic!("{over}, {line}, {distribution}: {error}"))
        {
            let bits = |all: &[f32]| all.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&found), bits(&expected[own]), "{over}, {line}, {distribution}");
        }
    }
}

#[test]
fn missing_and_cut_runs_are_reported() {
    let fold = |line: &str, distribution: &str| {
        let kernel = <ReduceKernel>::new(line.parse().expect("a line")).expect("a kernel");
        let distribution: Distribution = distribution.parse().expect("a layout");
        let x = vec![1.0; distribution.rows * distribution.cols];
        let outcome = World::simulated(2).expect("a world").run(|rank| {
            let x = rank.upload(&distribution, &x)?;
            kernel.on(rank).run(&x)
        });
        outcome.expect_err("it cannot be folded")
    };
    let error = fold("op: sum", "1x1000 cols");
    assert!(matches!(error, Error::World(WorldError::Unrun { .. })), "{error}");
    let error = fold("op: sum, block: 32, run: 64", "1x1000 cols/100");
    assert!(
        matches!(error, Error::World(WorldError::CutRun { rank: 0, at: 500, run: 64 })),
        "{error}"
    );
    let error = fold("op: sum, block: 32, run: 64", "4x100 cols");
    assert!(matches!(error, Error::World(WorldError::Impossible { .. })), "{error}");
    let error = fold("op: sum, block: 32, run: 64, over: rows, group: 32", "4x100 cols");
    assert!(matches!(error, Error::Device(gemm_runtime::Error::WrongOver { .. })), "{error}");
}

/// Three-axis arrays, distributed along any axis or along two.
#[test]
fn the_middle_of_arrays_has_the_bits_of_one_device() {
    let mut rng = Rng::with_seed(8);
    let mut shared = 0;
    for round in 0..160 {
        let (line, run) = [
            ("block: 64, group: 8, run: 16", 16),
            ("block: 64, group: 4, coarsen: 2, run: 8", 8),
            ("op: mean_var, block: 32, group: 4, run: 8", 8),
        ][round % 3];
        let ranks: usize = *rng.choice(&[1, 2, 3, 4, 6, 8]).expect("some");
        let [outer, inner] = [5, 12].map(|most| sampling::extent(&mut rng, most));
        let middle = sampling::extent(&mut rng, 8 * run);
        let x = sampling::numbers(&mut rng, outer * middle * inner);
        let down: usize = *rng.choice(&[1, 1, 2, ranks]).expect("some");
        let down = if ranks.is_multiple_of(down) { down } else { 1 };
        let times = |cut: Cut, unit: usize| match cut {
            Cut::Even(every) => Cut::Even((every * unit).max(1)),
            Cut::Lengths(all) => Cut::Lengths(all.iter().map(|length| length * unit).collect()),
        };
        let grid =
            |cuts| Split::Grid { ranks: [down, ranks / down], patch: [1, 1], down: false, cuts };
        // With a middle extent of 1, both matrices are the same.
        let below = middle == 1 || middle > 0 && rng.bool();
        let distribution = if below {
            let rows = times(cut(&mut rng, outer, 1, down), middle);
            let split = grid([rows, cut(&mut rng, inner, 1, ranks / down)]);
            Distribution { rows: outer * middle, cols: inner, split }
        } else {
            let cols = times(cut(&mut rng, middle, run, ranks / down), inner);
            let split = grid([cut(&mut rng, outer, 1, down), cols]);
            Distribution { rows: outer, cols: middle * inner, split }
        };
        let what = format!("{line}, {outer}x{middle}x{inner}, {distribution}");
        let two = line.contains("mean_var");
        let device = Device::simulator();
        let of_one = {
            let x = device.upload(&x).expect("room");
            let x = MatrixRef::batch(&x, outer, middle, inner).expect("a batch");
            let [mut one, mut other] = [0; 2].map(|_| device.alloc(outer * inner).expect("room"));
            if two {
                moments(line).launch(&device, &x, (&mut one, &mut other)).expect("one device");
            } else {
                sum(line).launch(&device, &x, &mut one).expect("one device");
            }
            [one, other].map(|of| device.download(&of).expect("it comes back"))
        };
        let found = World::simulated(ranks).expect("a world").run(|rank| {
            let x = rank.upload(&distribution, &x)?;
            let (rows, cols) = (x.block().rows.clone(), x.block().cols.clone());
            let own = match below {
                true => (rows.start / middle..rows.end / middle, cols),
                false => (rows, 0..inner),
            };
            let len = own.0.len() * own.1.len();
            let mut one = rank.device().alloc(len)?;
            let mut other = rank.device().alloc(len)?;
            let extents = [outer, middle, inner];
            if two {
                moments(line).on(rank).extents(extents).launch(&x, (&mut one, &mut other))?;
            } else {
                sum(line).on(rank).extents(extents).launch(&x, &mut one)?;
            }
            Ok((own, [rank.device().download(&one)?, rank.device().download(&other)?]))
        });
        let found = found.unwrap_or_else(|error| panic!("{what}: {error}"));
        for ((rows, cols), found) in found {
            for (found, whole) in found.iter().zip(&of_one).take(1 + usize::from(two)) {
                let expected =
                    rows.clone().flat_map(|row| cols.clone().map(move |col| row * inner + col));
                let expected: Vec<u32> = expected.map(|at| whole[at].to_bits()).collect();
                let found: Vec<u32> = found.iter().map(|x| x.to_bits()).collect();
                assert_eq!(found, expected, "{what}");
            }
        }
        shared += usize::from(!below && ranks > down && outer * inner > 0 && middle > run);
    }
    assert!(shared > 20, "{shared} arrays were cut along the middle axis");
}

fn sum(line: &str) -> ReduceKernel {
    ReduceKernel::new(format!("over: middle, {line}").parse().expect("a line")).expect("a kernel")
}

fn moments(line: &str) -> ReduceKernel<f32, (f32, f32)> {
    ReduceKernel::new(format!("over: middle, {line}").parse().expect("a line")).expect("a kernel")
}

#[test]
fn differently_distributed_arrays_are_reported() {
    let fold = |line: &str, extents: Option<[usize; 3]>, distribution: &str| {
        let kernel = <ReduceKernel>::new(line.parse().expect("a line")).expect("a kernel");
        let distribution: Distribution = distribution.parse().expect("a layout");
        let outcome = World::simulated(2).expect("a world").run(|rank| {
            let x =
                rank.upload(&distribution, &vec![1.0; distribution.rows * distribution.cols])?;
            let mut results = rank.device().alloc(1000)?;
            let call = kernel.on(rank);
            let call = if let Some(extents) = extents { call.extents(extents) } else { call };
            let error = call.launch(&x, &mut results).expect_err("it cannot be folded");
            rank.barrier()?;
            Ok(error)
        });
        let errors = outcome.expect("the world goes on");
        assert_eq!(errors[0].to_string(), errors[1].to_string());
        errors.into_iter().next().expect("there are two")
    };
    const MIDDLE: &str = "over: middle, block: 32, group: 4, run: 8";
    let of = Some([3, 20, 5]);
    for (line, extents, distribution, need) in [
        (MIDDLE, None, "60x5 rows", "extents([outer, middle, inner])"),
        ("over: rows, group: 32", of, "60x5 rows", "an `over: middle` kernel"),
        (MIDDLE, of, "5x60 rows", "60x5, or of outer rows of middle·inner elements, 3x100"),
        (MIDDLE, of, "60x5 rows[30,30]", "at multiples of 20"),
        (MIDDLE, of, "3x100 cols[38,62]", "at multiples of 5"),
    ] {
        let error = fold(line, extents, distribution).to_string();
        assert!(error.contains(need), "{error}");
    }
    let error = fold(MIDDLE, of, "3x100 cols[30,70]");
    assert!(
        matches!(error, Error::World(WorldError::CutRun { rank: 0, at: 6, run: 8 })),
        "{error}"
    );
    let error = fold("over: middle, block: 32, group: 4", of, "3x100 cols[40,60]");
    assert!(matches!(error, Error::World(WorldError::Unrun { .. })), "{error}");
}

/// If there are no rows to fold, any distribution of the columns is valid: no kernel needs `run`,
/// and no run is cut.
#[test]
fn empty_reductions_accept_any_distribution() {
    for (line, distribution, results) in [
        ("over: rows, group: 32, block: 32", Distribution::cols(0, 50), 0),
        ("over: rows, group: 32, block: 32, run: 64", Distribution::cols(0, 50), 0),
        ("over: columns, block: 64, group: 8", Distribution::rows(50, 0), 0),
        ("over: columns, block: 64, group: 8, run: 16", Distribution::rows(50, 0), 0),
        // Without elements to fold, the results are those of an empty fold.
        ("over: rows, group: 32, block: 32", Distribution::rows(6, 0), 2),
        ("over: columns, block: 64, group: 8", Distribution::cols(0, 6), 2),
    ] {
        let kernel = <ReduceKernel>::new(line.parse().expect("a line")).expect("a kernel");
        let found = World::simulated(3).expect("a world").run(|rank| {
            let x = rank.alloc(&distribution)?;
            let mut folded = rank.device().upload(&vec![f32::NAN; results])?;
            kernel.on(rank).launch(&x, &mut folded)?;
            Ok(rank.device().download(&folded)?)
        });
        let found = found.unwrap_or_else(|error| panic!("{line}, {distribution}: {error}"));
        assert_eq!(found, vec![vec![0.0; results]; 3], "{line}, {distribution}");
    }
}

/// With a middle extent of 0, the results are those of an empty fold. Their number is outer·inner.
#[test]
fn a_middle_axis_of_nothing() {
    let line = "op: prod, over: middle, block: 64, group: 4, coarsen: 2, run: 8";
    let kernel = <ReduceKernel>::new(line.parse().expect("a line")).expect("a kernel");
    let fold = |distribution: Distribution, results: usize| {
        World::simulated(3).expect("a world").run(|rank| {
            let x = rank.alloc(&distribution)?;
            let mut folded = rank.device().upload(&vec![f32::NAN; results])?;
            kernel.on(rank).extents([3, 0, 7]).launch(&x, &mut folded)?;
            Ok(rank.device().download(&folded)?)
        })
    };
    // Without columns nothing is cut.
    let found = World::simulated(2).expect("a world").run(|rank| {
        let x = rank.alloc(&"8x0 rows[3,5]".parse().expect("a layout"))?;
        let mut folded = rank.device().alloc(0)?;
        kernel.on(rank).extents([2, 4, 0]).launch(&x, &mut folded)
    });
    found.expect("there is nothing to be cut");
    assert_eq!(fold(Distribution::rows(3, 0), 7).expect("a row each"), vec![vec![1.0; 7]; 3]);
    let error = fold(Distribution::whole(0, 7), 21).expect_err("how many matrices?").to_string();
    assert!(error.contains("outer rows without elements, 3x0"), "{error}");
}
