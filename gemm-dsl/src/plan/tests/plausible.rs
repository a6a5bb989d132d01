//! Random specs that often have a plan.

use crate::ir::Elem;
use crate::spec::{
    Arith, Convert, Copies, Datum, Fragment, Instruction, KeyKind, MatrixType, Rect, SgemmSpec,
    Spec, Table, Tile,
};
use proptest::prelude::*;
use proptest::sample::select;

/// Keys that must fit each other, so they are generated together.
const GEOMETRY: [&str; 15] = [
    "tile",
    "thread",
    "warp",
    "pad_a",
    "pad_b",
    "prefetch",
    "double_buffer",
    "stages",
    "spread",
    "arith",
    "promote",
    "mma",
    "copy",
    "producer",
    "persistent",
];

/// Keys that exclude tensor cores.
const OF_THREADS: [&str; 3] = ["fragment", "order", "partials"];

/// Keys that exclude `mma: wgmma`.
const OF_LANES: [&str; 8] =
    ["transpose", "swizzle", "ldmatrix", "convert", "unroll", "slices", "products", "stream_k"];

/// Keys that exclude `convert: matrix`.
const OF_F32_TILES: [&str; 2] = ["transpose", "ldmatrix"];

/// Replaces types that do not occur together.
fn with_types(spec: &mut SgemmSpec) {
    if spec.a == MatrixType::I32 || (spec.arith.format().is_some() && !spec.reads_matrices()) {
        spec.reset("a");
    }
    if Arith::of_types(spec.a, spec.b).is_none() {
        spec.b = spec.a;
    }
    let types = spec.types();
    let has_conversion = match types.acc {
        Elem::F64 => types.c.is_float() && types.c.computes(),
        Elem::U32 => types.c.size() == 4,
        _ => types.c.is_float(),
    };
    if !has_conversion {
        spec.c = if types.acc.is_float() { MatrixType::F32 } else { MatrixType::I32 };
    }
}

/// Generates a geometry. For every other key that acts on a tile, it generates any flag or word, or
/// rarely a small number. This includes keys that are added to the table later.
pub(super) fn plausible() -> impl Strategy<Value = SgemmSpec> {
    let tiled = SgemmSpec::default().tile(Tile::new(8, 8, 8));
    let mut data = Vec::new();
    for key in SgemmSpec::KEYS.iter().filter(|key| !GEOMETRY.contains(&key.name)) {
        let (often, datum) = match key.kind {
            _ if key.acts_on.as_ref().is_some_and(|on| !(on.includes)(&tiled)) => continue,
            KeyKind::Flag => (0.5, Just(Datum::Flag).boxed()),
            KeyKind::Word(words) => {
                (0.7, select(words).prop_map(|word| Datum::Word(word.into())).boxed())
            }
            KeyKind::Number => (0.1, (2..5u32).prop_map(Datum::Number).boxed()),
            KeyKind::NumberOr(word) => {
                let number = (2..5u32).prop_map(Datum::Number);
                (0.1, prop_oneof![number, Just(Datum::Word(word.into()))].boxed())
            }
            // Names and expressions change no decision, and sizes belong to the geometry.
            KeyKind::Name | KeyKind::Size { .. } | KeyKind::Closure(_) => continue,
        };
        let datum = proptest::option::weighted(often, datum);
        data.push(datum.prop_map(|datum| datum.map(|datum| (key.name, datum))).boxed());
    }
    let shapes =
        prop_oneof![3 => geometry().boxed(), 1 => matrices().boxed(), 1 => warpgroups().boxed()];
    (shapes, data, proptest::bool::weighted(0.9)).prop_map(|(mut spec, data, has_types)| {
        for (key, datum) in data.into_iter().flatten() {
            assert!(spec.set(key, &datum), "{key}");
        }
        if has_types {
            with_types(&mut spec);
        }
        if spec.arith != Arith::F32 {
            OF_THREADS.iter().for_each(|key| spec.reset(key));
        }
        if spec.convert == Convert::Matrix && !spec.is_wgmma() {
            OF_F32_TILES.iter().for_each(|key| spec.reset(key));
        }
        if spec.float4 || spec.stages.is_some() || spec.converts_matrices() {
            spec.reset("adjacent");
        }
        if spec.fragment != Fragment::Strided || spec.thread.m > 1 {
            spec.reset("b_in_parts");
        }
        if spec.partials == 1 {
            spec.reset("fold_tiles");
        }
        if spec.is_wgmma() {
            OF_LANES.iter().for_each(|key| spec.reset(key));
        }
        spec
    })
}

/// Sizes that often fit together, with padding and a pipeline.
fn geometry() -> impl Strategy<Value = SgemmSpec> {
    let tile = (select(vec![8, 16, 30, 32, 64, 128]), select(vec![16, 30, 32, 64, 128]));
    let tile = (tile, select(vec![4, 6, 8, 16, 32])).prop_map(|((m, n), k)| Tile::new(m, n, k));
    let thread = (select(vec![1, 2, 4, 8]), select(vec![1, 3, 4, 8]));
    let thread = thread.prop_map(|(m, n)| Rect::new(m, n));
    let warp =
        proptest::option::of(select(vec![Rect::new(32, 16), Rect::new(64, 32), Rect::new(32, 64)]));
    let pads = (select(vec![0, 0, 1, 4]), select(vec![0, 0, 1, 4]));
    (tile, thread, warp, pads, any::<bool>(), 0..6u32).prop_map(
        |(tile, thread, warp, pads, ahead, stages)| {
            let spec = SgemmSpec::default().tile(tile).thread(thread).pad_a(pads.0).pad_b(pads.1);
            piped(SgemmSpec { warp, ..spec }, ahead, stages)
        },
    )
}

/// Sizes for tensor cores with `mma.sync`.
fn matrices() -> impl Strategy<Value = SgemmSpec> {
    let by_lanes = Arith::ALL.iter().filter(|arith| arith.format().is_some() && !arith.is_scaled());
    let arith = select(by_lanes.copied().collect::<Vec<_>>());
    let warp =
        select(vec![Rect::new(16, 8), Rect::new(16, 32), Rect::new(32, 16), Rect::new(64, 32)]);
    let of_block = (1..=2u32, 1..=2u32, select(vec![16, 32, 64]));
    let promote = proptest::option::weighted(0.3, select(vec![8, 16, 32]));
    let pads = (select(vec![0, 0, 4]), select(vec![0, 0, 8]));
    (arith, warp, of_block, promote, pads, any::<bool>(), 0..6u32).prop_map(
        |(arith, warp, (m, n, k), promote, pads, ahead, stages)| {
            let tile = Tile::new(warp.m * m, warp.n * n, k);
            let spec = SgemmSpec::default().tile(tile).warp(warp).arith(arith);
            let spec = SgemmSpec { promote, ..spec }.pad_a(pads.0).pad_b(pads.1);
            piped(spec, ahead, stages)
        },
    )
}

/// Sizes for warpgroups.
fn warpgroups() -> impl Strategy<Value = SgemmSpec> {
    let arith = select(
        Arith::ALL.iter().copied().filter(|arith| arith.format().is_some()).collect::<Vec<_>>(),
    );
    let tile = (1..=4u32, select(vec![8, 64, 96, 128, 256]), select(vec![16, 32, 64]));
    let roles = (any::<bool>(), any::<bool>(), any::<bool>(), 0..5u32);
    let promote = proptest::option::weighted(0.3, select(vec![8, 16, 32]));
    (arith, tile, any::<bool>(), roles, promote).prop_map(
        |(arith, (m, n, k), halved, (boxes, producer, persistent, stages), promote)| {
            let tile = Tile::new(64 * m, n, k);
            let spec = SgemmSpec::default().tile(tile).arith(arith).mma(Instruction::Wgmma);
            let warp = halved.then_some(Rect::new(16, n / 2));
            let spec = SgemmSpec { promote, warp, ..spec };
            match (boxes, producer) {
                (false, _) => spec,
                (true, producer) => SgemmSpec {
                    copy: Copies::Tma,
                    producer,
                    persistent: producer && persistent,
                    stages: (stages > 1).then_some(stages),
                    ..spec
                },
            }
        },
    )
}

/// Adds one of the pipelines.
fn piped(spec: SgemmSpec, ahead: bool, stages: u32) -> SgemmSpec {
    match stages {
        0 | 1 => spec.prefetch(ahead),
        2 => spec.double_buffer(true),
        stages => spec.stages(stages).spread(if ahead { 4 } else { 1 }),
    }
}
