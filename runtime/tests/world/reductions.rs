//! Reductions have the bits of one device.

use crate::draw;
use fastrand::Rng;
use gemm_runtime::half::f16;
use gemm_runtime::world::{Cut, Layout, Split, World, WorldError};
use gemm_runtime::{Device, Error, ReduceKernel};

/// What is folded, and the run.
const LINES: [(&str, usize); 6] = [
    ("block: 32, run: 32", 32),
    ("block: 32, items: 2, run: 128", 128),
    ("block: 64, shuffle, items: 2, run: 384", 384),
    ("block: 32, float4, run: 128", 128),
    ("block: 32, launch: once, run: 64", 64),
    ("block: 32, shuffle, float4, launch: once, run: 256", 256),
];

/// A cut of an extent between runs.
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
        let len = draw::extent(&mut rng, 12 * run);
        let x = draw::numbers(&mut rng, len);
        let expected = kernel.run(&Device::simulator(), &x).expect("one device");
        let layout =
            Layout { rows: 1, cols: len, split: Split::Cols(cut(&mut rng, len, run, ranks)) };
        let found = World::simulated(ranks).expect("a world").run(|rank| {
            let x = rank.upload(&layout, &x)?;
            kernel.on(rank).run(&x)
        });
        let found = found.unwrap_or_else(|error| panic!("{line}, {layout}: {error}"));
        let bits: Vec<u32> = found.iter().map(|x| x.to_bits()).collect();
        assert_eq!(bits, vec![expected.to_bits(); ranks], "{line}, {layout}");
    }
}

#[test]
fn two_results_and_indices_have_the_bits_of_one_device() {
    let mut rng = Rng::with_seed(5);
    for round in 0..60 {
        let (line, run) = LINES[round % 3];
        let ranks = rng.usize(1..6);
        let len = draw::extent(&mut rng, 9 * run);
        let x: Vec<f32> = (0..len).map(|_| rng.i32(-4..4) as f32 / 4.0).collect();
        let layout =
            Layout { rows: 1, cols: len, split: Split::Cols(cut(&mut rng, len, run, ranks)) };
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
            let x = rank.upload(&layout, &x)?;
            let halves = rank.upload(&layout, &halves)?;
            let moments = moments.on(rank).run(&x)?;
            let arg = arg.on(rank).run(&halves);
            Ok((moments, arg.ok()))
        });
        for ((found_mean, found_var), found_first) in found.expect("they can be folded") {
            let bits = |(a, b): (f32, f32)| (a.to_bits(), b.to_bits());
            assert_eq!(bits((found_mean, found_var)), bits((mean, var)), "{layout}");
            // Of no elements there is no index, on one device and on many.
            assert_eq!(found_first, first.as_ref().ok().copied(), "{layout}");
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
        let folded = draw::extent(&mut rng, 6 * run);
        let kept = draw::extent(&mut rng, 20);
        let (rows, cols) = if by_rows { (kept, folded) } else { (folded, kept) };
        let down = *rng.choice(&[1, 2, ranks]).expect("some");
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
        let layout = Layout { rows, cols, split };
        let x = draw::numbers(&mut rng, rows * cols);
        let device = Device::simulator();
        let size = if by_rows { (rows, cols, 1) } else { (1, rows, cols) };
        let expected = kernel.run_over(&device, &x, size).expect("one device");
        let found = World::simulated(ranks).expect("a world").run(|rank| {
            let x = rank.upload(&layout, &x)?;
            let own = if by_rows { x.block().rows.clone() } else { x.block().cols.clone() };
            let mut out = rank.device().alloc(own.len())?;
            kernel.on(rank).launch(&x, &mut out)?;
            Ok((own, rank.device().download(&out)?))
        });
        for (own, found) in
            found.unwrap_or_else(|error| panic!("{over}, {line}, {layout}: {error}"))
        {
            let bits = |all: &[f32]| all.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&found), bits(&expected[own]), "{over}, {line}, {layout}");
        }
    }
}

#[test]
fn what_has_no_runs_and_what_is_cut_within_one_is_told() {
    let fold = |line: &str, layout: &str| {
        let kernel = <ReduceKernel>::new(line.parse().expect("a line")).expect("a kernel");
        let layout: Layout = layout.parse().expect("a layout");
        let x = vec![1.0; layout.rows * layout.cols];
        let outcome = World::simulated(2).expect("a world").run(|rank| {
            let x = rank.upload(&layout, &x)?;
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
    assert!(matches!(error, Error::WrongOver { .. }), "{error}");
}
