//! What the texts of the DSL cannot say, and what holds for every plan.

use super::Shape;
use crate::ir::{MAX_SHARED_BYTES, MAX_THREADS};
use crate::spec::{Block, Bounds, Fragment, Order, Rect, ReduceSpec, SgemmSpec, Tile};
use proptest::prelude::*;
use proptest::sample::select;

fn message<P: std::fmt::Debug>(plan: Result<P, crate::SpecErrors>) -> String {
    plan.map_or_else(|errors| errors.to_string(), |plan| format!("{plan:?}"))
}

#[test]
fn a_name_must_be_free() {
    let named = |name: &str| message(ReduceSpec::default().name(name).plan());
    assert_eq!(
        named("a b"),
        "`name: a b` is no CUDA C++ identifier: only ASCII letters, digits and `_`, and no digit \
         first"
    );
    assert!(named("").contains("no CUDA C++ identifier"));
    assert!(named("9lives").contains("no CUDA C++ identifier"));
    assert!(named("__device").contains("two underscores"));
    assert!(named("while").contains("already has a meaning"));
    assert!(named("my_sum").contains("my_sum"));
}

#[test]
fn dimensions_of_zero_are_refused_without_follow_up() {
    let zero = |key: &str, size: &str| {
        format!("`{key}: {size}` has a dimension of 0; every dimension must be at least 1")
    };
    let base = SgemmSpec::default();
    let tiled = base.clone().tile(Tile::new(32, 32, 32));
    assert_eq!(message(base.clone().tile(Tile::new(0, 8, 8)).plan()), zero("tile", "0x8x8"));
    assert_eq!(message(base.block(Block::new(16, 0)).plan()), zero("block", "16x0"));
    assert_eq!(message(tiled.clone().thread(Rect::new(0, 1)).plan()), zero("thread", "0x1"));
    assert_eq!(message(tiled.warp(Rect::new(1, 0)).plan()), zero("warp", "1x0"));
}

/// Specs from sizes that often go together.
fn plausible() -> impl Strategy<Value = SgemmSpec> {
    let tile = (select(vec![8, 16, 30, 32, 64, 128]), select(vec![16, 30, 32, 64, 128]));
    let tile = (tile, select(vec![4, 6, 8, 16, 32])).prop_map(|((m, n), k)| Tile::new(m, n, k));
    let thread = (select(vec![1, 2, 4, 8]), select(vec![1, 3, 4, 8]));
    let thread = thread.prop_map(|(m, n)| Rect::new(m, n));
    let warp =
        proptest::option::of(select(vec![Rect::new(32, 16), Rect::new(64, 32), Rect::new(32, 64)]));
    let pads = (select(vec![0, 0, 1, 4]), select(vec![0, 0, 1, 4]));
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let words = (select(Fragment::ALL), select(Order::ALL), select(Bounds::ALL));
    (tile, thread, warp, pads, flags, words, 0..6u32).prop_map(
        |(tile, thread, warp, pads, (float4, transpose, prefetch, pitched), words, stages)| {
            let mut spec = SgemmSpec::default()
                .tile(tile)
                .thread(thread)
                .pad_a(pads.0)
                .pad_b(pads.1)
                .float4(float4)
                .transpose(transpose)
                .pitched(pitched)
                .fragment(words.0)
                .order(words.1)
                .bounds(words.2);
            spec.warp = warp;
            match stages {
                0 | 1 => spec.prefetch(prefetch),
                2 => spec.double_buffer(true),
                stages => spec.stages(stages).spread(if prefetch { 4 } else { 1 }),
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_plan_keeps_its_promises(spec in plausible()) {
        let Ok(plan) = spec.plan() else { return Ok(()) };
        let Shape::Tiled(tiled) = plan.shape() else {
            return Err(TestCaseError::fail("a tile makes a tiled plan"));
        };
        prop_assert!(tiled.threads() <= MAX_THREADS);
        prop_assert!(tiled.shared_bytes() <= MAX_SHARED_BYTES);
        prop_assert_eq!(tiled.threads() * tiled.tm() * tiled.tn(), tiled.bm() * tiled.bn());
        if let Some(warp) = tiled.warp() {
            prop_assert_eq!(warp.lanes_m() * warp.lanes_n(), 32);
            prop_assert_eq!(warp.warps_m() * warp.warps_n() * 32, tiled.threads());
        }
        let moved = |accesses: u32, width: u32| accesses * width * tiled.threads();
        prop_assert!(moved(tiled.a_accesses(), tiled.a_width()) >= tiled.bm() * tiled.bk());
        prop_assert!(moved(tiled.b_accesses(), tiled.b_width()) >= tiled.bk() * tiled.bn());
        // A vector never straddles a row.
        prop_assert!(!tiled.a_global_vector() || tiled.bk() % 4 == 0);
        prop_assert!(!tiled.b_global_vector() || tiled.bn() % 4 == 0);
        prop_assert!(!tiled.c_vector() || tiled.bn() % 4 == 0);
        prop_assert!(!tiled.a_frag_vector() || tiled.a_shared().1 % 4 == 0);
        prop_assert!(!tiled.b_frag_vector() || tiled.b_shared().1 % 4 == 0);
        if let Some(scalar) = plan.scalar_variant() {
            prop_assert!(!scalar.has_global_vectors());
            prop_assert_eq!(scalar.threads(), plan.threads());
        }
    }

    #[test]
    fn a_sound_product_has_a_program(spec in plausible()) {
        use crate::spec::Spec;
        if spec.plan().is_ok() {
            let program = spec.program().map(drop);
            prop_assert!(program.is_ok(), "{}: {:?}", spec, program);
        }
    }
}
