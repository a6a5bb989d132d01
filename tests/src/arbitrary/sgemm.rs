//! Random matrix products.

use super::repaired;
use gemm_dsl::spec::{Block, Bounds, Fragment, Lanes, Order, Rect, SgemmSpec, Tile};
use proptest::prelude::*;
use proptest::sample::select;

/// Any sound product whose block has at most `threads` threads; every field varies but the name.
pub fn sgemm(threads: u32) -> impl Strategy<Value = SgemmSpec> {
    let shape = prop_oneof![1 => naive().boxed(), 5 => tiled().boxed()];
    let sums = (proptest::option::of(1..=8u32), select(vec![1, 1, 1, 2, 3, 4]));
    let launch = (proptest::option::of(1..=4u32), 1..=2u32);
    let operands = (select(Bounds::ALL), any::<bool>());
    let spec = (shape, sums, launch, operands).prop_map(
        |(mut spec, (unroll, partials), (raster, blocks), (bounds, pitched))| {
            spec.unroll = unroll;
            spec.raster = raster;
            spec.partials(partials).blocks_per_sm(blocks).bounds(bounds).pitched(pitched)
        },
    );
    spec.prop_filter_map("the spec cannot be repaired", move |spec| {
        let spec = repaired(spec, |spec| spec.plan().map(drop), reset)?;
        let plan = spec.plan().ok()?;
        (plan.threads() <= threads).then_some(spec)
    })
}

fn naive() -> impl Strategy<Value = SgemmSpec> {
    let block = (1..=24u32, 1..=24u32);
    (block, select(Lanes::ALL), 1..=4u32).prop_map(|((rows, cols), lanes, coarsen)| {
        SgemmSpec::default().block(Block::new(rows, cols)).lanes(lanes).coarsen(coarsen)
    })
}

/// Threads or lanes along each axis, and how many warps of them.
#[derive(Clone, Copy, Debug)]
struct Grid {
    m: u32,
    n: u32,
    warps: Option<(u32, u32)>,
}

fn grid() -> impl Strategy<Value = Grid> {
    let threads = (1..=20u32, 1..=20u32).prop_map(|(m, n)| Grid { m, n, warps: None });
    let even = (0..=4u32, 0..=4u32).prop_map(|(m, n)| Grid { m: 1 << m, n: 1 << n, warps: None });
    let warps = (0..=5u32, 1..=2u32, 1..=2u32).prop_map(|(m, wm, wn)| Grid {
        m: 1 << m,
        n: 32 >> m,
        warps: Some((wm, wn)),
    });
    prop_oneof![1 => threads, 2 => even, 2 => warps]
}

/// How the next tile comes in.
#[derive(Clone, Copy, Debug)]
enum Pipeline {
    None,
    Prefetch,
    DoubleBuffer,
    Stages { stages: u32, spread: u32 },
}

fn pipeline() -> impl Strategy<Value = Pipeline> {
    let stages =
        (2..=5u32, 1..=8u32).prop_map(|(stages, spread)| Pipeline::Stages { stages, spread });
    let others = select(vec![Pipeline::None, Pipeline::Prefetch, Pipeline::DoubleBuffer]);
    prop_oneof![2 => others, 1 => stages]
}

fn tiled() -> impl Strategy<Value = SgemmSpec> {
    let extent = || select(vec![1, 2, 3, 4, 4, 4, 5, 8, 8]);
    let k = select(vec![1, 2, 3, 4, 5, 8, 8, 12, 16, 16, 20, 32]);
    let pad = || select(vec![0, 0, 0, 1, 2, 4, 4, 8]);
    let layout = (select(Fragment::ALL), any::<bool>(), any::<bool>(), pad(), pad());
    let geometry = (grid(), extent(), extent(), k);
    (geometry, layout, pipeline(), select(Order::ALL)).prop_map(
        |((grid, tm, tn, k), (fragment, float4, transpose, pad_a, pad_b), pipeline, order)| {
            let (wm, wn) = grid.warps.unwrap_or((1, 1));
            let mut spec = SgemmSpec::default()
                .tile(Tile::new(tm * grid.m * wm, tn * grid.n * wn, k))
                .thread(Rect::new(tm, tn))
                .fragment(fragment)
                .float4(float4)
                .transpose(transpose)
                .pad_a(pad_a)
                .pad_b(pad_b)
                .order(order);
            if grid.warps.is_some() {
                spec = spec.warp(Rect::new(tm * grid.m, tn * grid.n));
            }
            match pipeline {
                Pipeline::None => spec,
                Pipeline::Prefetch => spec.prefetch(true),
                Pipeline::DoubleBuffer => spec.double_buffer(true),
                Pipeline::Stages { stages, spread } => spec.stages(stages).spread(spread),
            }
        },
    )
}

/// The spec with one key at its default, or at a value that suits every spec.
fn reset(mut spec: SgemmSpec, key: &str) -> SgemmSpec {
    match key {
        "unroll" => spec.unroll = None,
        "raster" => spec.raster = None,
        "stages" => spec.stages = None,
        "warp" => spec.warp = None,
        "tile" => spec.tile = spec.tile.map(|t| Tile::new(t.m, t.n.next_multiple_of(4), 4)),
        "thread" => spec.thread = Rect::new(1, 1),
        "partials" => spec.partials = 1,
        "coarsen" => spec.coarsen = 1,
        "fragment" => spec.fragment = Fragment::Blocked,
        "float4" => spec.float4 = false,
        "transpose" => spec.transpose = false,
        "pad_a" => spec.pad_a = 0,
        "pad_b" => spec.pad_b = 0,
        "prefetch" => spec.prefetch = false,
        "double_buffer" => spec.double_buffer = false,
        "spread" => spec.spread = 1,
        "order" => spec.order = Order::Row,
        "blocks_per_sm" => spec.blocks_per_sm = 1,
        _ => {}
    }
    spec
}
