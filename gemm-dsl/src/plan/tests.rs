//! Tests of plan messages that no spec text can produce, and of invariants of every plan.

mod decisions;
mod plausible;
mod reductions;
mod registers;
mod shared;

use super::{Edge, KernelKind, ReducePlan, SgemmPlan};
use crate::Plan;
use crate::ir::Elem::F32;
use crate::ir::Variant;
use crate::ir::contract::{
    ArrayAxis, ArrayPlace, BoundArray, Contract, ContractError, Need, Region,
};
use crate::spec::{Block, Rect, ReduceSpec, SgemmSpec, Tile};
use crate::target::arch::{BLOCK_THREADS, LARGEST};
use plausible::plausible;
use proptest::prelude::*;
use proptest::sample::select;

fn message<P: std::fmt::Debug>(plan: Result<P, crate::SpecErrors>) -> String {
    plan.map_or_else(|errors| errors.to_string(), |plan| format!("{plan:?}"))
}

#[test]
fn a_name_is_an_identifier() {
    let named = |name: &str| message(ReduceSpec::default().name(name).plan());
    assert_eq!(
        named("a b"),
        "`name: a b` is not a CUDA C++ identifier: use only ASCII letters, digits and `_`, and no \
         digit first"
    );
    assert!(named("").contains("not a CUDA C++ identifier"));
    assert!(named("9lives").contains("not a CUDA C++ identifier"));
    assert!(named("_").contains("has no letter"));
    let letters = |count| "x".repeat(count);
    assert!(named(&letters(129)).contains("has 129 characters; use at most 128"));
    assert!(named(&letters(30_000)).len() < 300);
    for name in ["__device", "while", "my_sum", &letters(128)] {
        assert!(ReduceSpec::default().name(name).plan().is_ok(), "{name}");
    }
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

proptest! {
    #![proptest_config(gemm_cases::cases(2000))]

    #[test]
    fn a_plan_keeps_its_promises(spec in plausible()) {
        let Ok(plan) = spec.plan() else { return Ok(()) };
        prop_assert!(plan.threads() <= BLOCK_THREADS);
        prop_assert!(plan.shared_bytes() <= LARGEST.shared_per_block);
        let tiled = match plan.kind() {
            KernelKind::Tiled(tiled) => tiled,
            KernelKind::Wgmma(tensor) => {
                let elements = tensor.epilogue_threads() * tensor.tm() * tensor.tn();
                prop_assert_eq!(elements, tensor.bm() * tensor.bn());
                // A block that requests more registers than it was launched with deadlocks.
                let [few, many] = tensor.registers().unwrap_or([0; 2]);
                let others = (tensor.threads() - tensor.epilogue_threads()) * few;
                let warps = u64::from(tensor.threads() / 32 * plan.blocks_per_sm());
                let even = LARGEST.registers_per_thread(warps) / 8 * 8;
                prop_assert!(others + tensor.epilogue_threads() * many <= even * tensor.threads());
                // An uneven distribution gives consumers more registers than an even one, and gives
                // the producer fewer.
                prop_assert!(tensor.registers().is_none() || few < even && even < many);
                return Ok(());
            }
            KernelKind::Naive(_) | KernelKind::Direct(_) => {
                return Err(TestCaseError::fail("a tile makes a tiled plan"));
            }
        };
        let threads = tiled.threads_of_product();
        prop_assert_eq!(tiled.threads(), threads * tiled.products());
        let of_slice = tiled.threads_of_slice();
        prop_assert_eq!(threads, of_slice * tiled.slices());
        prop_assert_eq!(of_slice * tiled.tm() * tiled.tn(), tiled.bm() * tiled.bn());
        if let Some(warp) = tiled.warp() {
            prop_assert_eq!(warp.lanes_m() * warp.lanes_n(), 32);
            prop_assert_eq!(warp.warps_m() * warp.warps_n() * 32, of_slice);
        }
        for operand in [tiled.a(), tiled.b()] {
            let elements = operand.extent() * operand.depth();
            prop_assert!(operand.runs() * operand.run() * threads >= elements);
            prop_assert!((operand.runs() - 1) * operand.run() * threads < elements);
            prop_assert!(operand.run().is_multiple_of(operand.width()));
            // A run never straddles a row.
            prop_assert!(operand.line().is_multiple_of(operand.run()));
            let (_, row) = operand.shared_tile();
            prop_assert!(row.is_multiple_of(operand.store_width()));
            // Splits are copied without guards.
            let whole = plan.splits().is_none() || operand.edge() == Edge::Exact;
            prop_assert!(whole && (plan.splits().is_none() || operand.width() > 1));
            prop_assert!(row.is_multiple_of(operand.fragment_width()));
            prop_assert!(operand.store_width() <= operand.width());
        }
        prop_assert!(tiled.bn().is_multiple_of(tiled.epilogue().width()));
        prop_assert_eq!(plan.variant() == Variant::Vector, tiled.has_global_vectors());
        if let Some(scalar) = plan.scalar_variant() {
            let KernelKind::Tiled(narrow) = scalar.kind() else {
                return Err(TestCaseError::fail("a variant has the same shape"));
            };
            prop_assert!(!narrow.has_global_vectors());
            prop_assert_eq!(narrow.threads(), tiled.threads());
        }
    }

    #[test]
    fn a_sound_product_has_a_program(spec in plausible()) {
        if let Ok(plan) = spec.plan() {
            takes_what_it_says(&plan).map_err(TestCaseError::fail)?;
        }
    }
}

/// Plans with equal decisions are equal.
#[test]
fn equal_decisions_give_equal_plans() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    use std::collections::HashMap;

    let mut runner = TestRunner::deterministic();
    let random = std::iter::repeat_with(|| plausible().new_tree(&mut runner));
    let random = random
        .take(gemm_cases::scaled(8000))
        .filter_map(|tree| tree.ok().map(|tree| tree.current()));
    let stages = crate::stages::sgemm().into_iter().map(|stage| stage.spec);
    let plans = random.chain(stages).filter_map(|spec| spec.plan().ok());
    let mut seen = HashMap::new();
    for plan in plans.flat_map(|plan| [plan.scalar_variant(), Some(plan)]).flatten() {
        let decisions = plan.decisions();
        for (i, decision) in decisions.iter().enumerate() {
            assert!(!decision.value.is_empty(), "{decision:?}");
            assert!(decisions[..i].iter().all(|other| other.name != decision.name), "{decision:?}");
        }
        let shape = *seen.entry(decisions).or_insert(*plan.kind());
        assert_eq!(shape, *plan.kind(), "{}", plan.spec());
    }
    assert!(seen.len() > gemm_cases::scaled(500), "{}", seen.len());
}

/// Checks that all kernels of a plan have the threads and the shared memory that it states.
fn takes_what_it_says(plan: &SgemmPlan) -> Result<(), String> {
    let spec = plan.spec();
    let program = spec
        .plan()
        .and_then(|plan| plan.program())
        .map_err(|error| format!("`{spec}`: {error}"))?;
    let shared = plan.shared_bytes();
    for (nth, kernel) in program.variants().enumerate() {
        let takes = (kernel.geometry.threads(), kernel.shared_bytes());
        // The variant for unaligned matrices of small elements has no asynchronous copies, and two
        // buffers in place of the stages.
        let less = nth > 0 && takes.0 == plan.threads() && takes.1 < shared;
        if takes != (plan.threads(), shared) && !less {
            return Err(format!("`{spec}` takes {takes:?}, not {:?}", (plan.threads(), shared)));
        }
    }
    Ok(())
}

#[test]
fn every_stage_takes_what_its_plan_says() {
    for stage in crate::stages::sgemm() {
        let plan = stage.spec.plan().expect("a stage has a plan");
        takes_what_it_says(&plan).unwrap_or_else(|error| panic!("{error}"));
    }
}

fn product(line: &str) -> Result<SgemmPlan, crate::SpecErrors> {
    line.parse::<SgemmPlan>()
}

#[test]
fn no_remedy_is_a_single_stage() {
    // One buffer fits and two do not; three fit and four do not.
    let text = message(product("tile: 128x128x128, thread: 8x8, stages: 2"));
    assert!(text.contains("(227 KiB); use a smaller tile\n"), "{text}");
    let text = message(product("tile: 128x128x64, thread: 8x8, stages: 4"));
    assert!(text.contains("; use `stages: 3` or less, or a smaller tile\n"), "{text}");
    assert!(product("tile: 128x128x64, thread: 8x8, stages: 3").is_ok());
}

#[test]
fn the_system_reserves_shared_memory_for_each_block() {
    // 3 · (76800 + 1024) bytes fill the whole SM; without the reserved 1024, 3 · 77824 bytes would
    // fit.
    assert!(product("tile: 128x128x75, thread: 8x8, blocks_per_sm: 3").is_ok());
    let text = message(product("tile: 128x128x76, thread: 8x8, blocks_per_sm: 3"));
    let expected = "needs 3 · (77824 + 1024 reserved by CUDA) = 236544 bytes of shared memory, and \
                    an SM has at most 233472 (228 KiB); use 2 or less";
    assert!(text.contains(expected), "{text}");
}

/// Keys that choose how tiles in `f32` are staged and read have no effect on converted matrices.
#[test]
fn converted_matrices_are_staged_in_one_way() {
    let line = "tile: 64x64x32, warp: 32x32, arith: bf16";
    let converted = format!("{line}, convert: matrix");
    assert!(product(&format!("{converted}, float4, swizzle")).is_ok());
    for (keys, said) in [
        (
            "transpose",
            "has no effect under `convert: matrix`: converted matrices are always K-major",
        ),
        (
            "ldmatrix",
            "has no effect under `convert: matrix`: tiles of converted matrices are always read by",
        ),
        ("pad_a: 12", "= 8 elements: 12 mod 8 = 4; use 16"),
        ("pad_b: 1", "= 8 elements: 1 mod 8 = 1; use 8"),
    ] {
        let text = message(product(&format!("{converted}, {keys}")));
        assert!(text.contains(said), "{text}");
        assert!(product(&format!("{line}, {}", keys.replace("pad_b: 1", "pad_b: 4"))).is_ok());
    }
    let text = message(product("tile: 64x64x32, arith: bf16, mma: wgmma, convert: matrix"));
    let said = "`convert` has no effect under `mma: wgmma`: whole matrices are converted";
    assert!(text.contains(said), "{text}");
    assert!(message(product("tile: 64x64x32, convert: matrix")).contains("no tensor core"));
}

#[test]
fn indices_inside_a_block_are_bounded() {
    for key in ["coarsen", "raster"] {
        assert!(product(&format!("block: 16x16, {key}: 67108864")).is_ok());
        let text = message(product(&format!("block: 16x16, {key}: 67108865")));
        let limit = "more than 2^30 = 1073741824; use 67108864 or less";
        assert!(text.contains("= 1073741840 ") && text.contains(limit), "{text}");
    }
}

#[test]
fn a_block_of_a_reduction_takes_in_at_most_2_to_the_30_elements() {
    let plan = |line: &str| line.parse::<ReducePlan>();
    for (block, vectors, most) in [(64, "", 16_777_216), (512, ", float4", 524_288)] {
        let line = |items| format!("block: {block}, items: {items}{vectors}");
        assert!(plan(&line(most)).is_ok(), "{}", line(most));
        let text = message(plan(&line(most + 1)));
        assert!(text.contains(&format!("use `items: {most}` or less")), "{text}");
    }
}

#[test]
fn the_largest_odd_tile_is_too_large_and_no_more() {
    let errors =
        product("tile: 128x128x4294967295, thread: 8x8, stages: 3").expect_err("too large");
    assert_eq!(errors.iter().count(), 1, "{errors}");
    assert!(errors.to_string().contains("bytes of shared memory"), "{errors}");
}

/// Loops over K may pass K by a few tiles, and the contract keeps their indices inside an `int`.
#[test]
fn extents_leave_room_for_the_loops_that_pass_them() {
    for (line, ahead) in [
        ("tile: 16x16x8, thread: 4x4", 2),
        ("tile: 16x16x8, thread: 4x4, double_buffer", 2),
        ("tile: 32x32x8, thread: 4x4, stages: 2", 3),
        ("tile: 32x32x8, thread: 4x4, stages: 5", 6),
    ] {
        let spec: SgemmSpec = line.parse().expect("a sound line");
        let program = spec.plan().and_then(|plan| plan.program()).expect("a sound spec");
        let kernel = program.preferred();
        let most = i32::MAX as u64 - 8 * ahead;
        let bound = |k| bound(kernel.contract(), [1, 1, k]);
        assert_eq!(bound(most), Ok(()), "{line}");
        let unmet = bound(most + 1).expect_err(line);
        assert_eq!((unmet.need, unmet.value), (Need::AtMost(most), i128::from(most) + 1), "{line}");
    }
}

/// Binds packed operands of sufficient length with these extents.
fn bound(contract: &Contract, extents: [u64; 3]) -> Result<(), ContractError> {
    let elem = F32;
    let place = ArrayPlace::One(Region { address: 0, len: u64::MAX });
    let array = |name| BoundArray { name, elem, place, axes: None };
    contract.bind_in_order(&["A", "B", "C"].map(array), &extents).map(drop)
}

/// A wrong row stride is rejected, except for K = 0, where A is not read.
#[test]
fn unused_arrays_may_have_any_stride() {
    let program =
        SgemmSpec::default().plan().and_then(|plan| plan.program()).expect("a sound spec");
    let bound = |k: u64| {
        let axes = [ArrayAxis { extent: 2, stride: 7 }, ArrayAxis { extent: 7, stride: 1 }];
        let place = ArrayPlace::One(Region { address: 0, len: 14 });
        let array = |name, axes| BoundArray { name, elem: F32, place, axes };
        let arrays = [array("A", Some(&axes[..])), array("B", None), array("C", None)];
        program.preferred().contract().bind_in_order(&arrays, &[2, 2, k]).map(drop)
    };
    assert_eq!((bound(0), bound(7)), (Ok(()), Ok(())));
    let unmet = bound(3).expect_err("rows lie 7 apart");
    assert_eq!((unmet.need, unmet.value), (Need::Exactly(3), 7));
}

proptest! {
    #![proptest_config(gemm_cases::cases(256))]

    /// The widest C that a contract allows has a group of tile rows that an `int` can count. If no
    /// other limit is stricter, the next wider C exceeds this limit.
    #[test]
    fn a_group_of_tile_rows_is_counted_in_an_int(
        line in select(vec!["block: 1x32", "block: 16x16, coarsen: \
            2", "tile: 16x64x8, thread: \
            4x4"]),
        (power, below) in (0..=26u32, 0.0..1.0f64),
    ) {
        let most = 1u32 << power;
        let raster = (most - (f64::from(most / 2) * below) as u32).max(1);
        let spec = line.parse::<SgemmSpec>().expect("a sound line").raster(raster);
        let plan = spec.plan().expect("a sound spec");
        let program = plan.program().expect("verified kernels");
        let (_, width) = plan.block_tile();
        let contract = program.preferred().contract();
        let widest = match bound(contract, [1, u64::MAX >> 33, 1]) {
            Err(ContractError { need: Need::AtMost(most), .. }) => most,
            other => return Err(TestCaseError::fail(format!("`{spec}`: {other:?}"))),
        };
        prop_assert_eq!(bound(contract, [1, widest, 1]), Ok(()));
        let counted = |n: u64| n.div_ceil(width.into()) * u64::from(raster);
        prop_assert!(counted(widest) <= i32::MAX as u64, "`{spec}` to {widest}");
        let passes = widest + 1 + u64::from(width) > i32::MAX as u64;
        prop_assert!(passes || counted(widest + 1) > i32::MAX as u64, "`{spec}` to {widest}");
    }
}
