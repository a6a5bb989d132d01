//! Tests that decisions determine the generated source, and that their reasons are true.

use super::super::{Edge, Fill, KernelKind, SgemmPlan, TiledPlan};
use crate::spec::SgemmSpec;
use crate::{Plan, cuda};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use std::collections::HashMap;

fn plan(line: &str) -> SgemmPlan {
    let spec: SgemmSpec = line.parse().unwrap_or_else(|e| panic!("{line}: {e}"));
    spec.plan().unwrap_or_else(|e| panic!("{line}: {e}"))
}

fn tiled(line: &str) -> TiledPlan {
    match plan(line).kind() {
        KernelKind::Tiled(tiled) => *tiled,
        KernelKind::Naive(_) | KernelKind::Direct(_) | KernelKind::Wgmma(_) => {
            panic!("{line} stages nothing")
        }
    }
}

/// Reason of the decision with this name.
fn reason(line: &str, name: &str) -> &'static str {
    let decisions = plan(line).decisions();
    let found = decisions.iter().find(|decision| decision.name == name);
    found.unwrap_or_else(|| panic!("{line} decides no `{name}`")).reason
}

/// Specs in which every key has only a few values, so that many specs are equivalent.
fn specs() -> impl Strategy<Value = SgemmSpec> {
    let tile = select(vec![
        "",
        "block: 16x16",
        "block: 8x32",
        "block: 8x2, thread: 4x4",
        "block: 8x2, thread: 2x4",
        "block: 4x2, lanes: k",
        "tile: 32x32x8, thread: 4x4",
        "tile: 32x32x8, thread: 4x4",
        "tile: 64x32x8, thread: 4x4",
        "tile: 32x32x8, thread: 1x4, fragment: strided",
    ]);
    let keys = vec![
        "name: foo",
        "lanes: m",
        "slices: 2",
        "split_k: 2",
        "float4",
        "coarsen: 2",
        "unroll: 2",
        "unroll: 4",
        "partials: 2",
        "partials: 2, fold_tiles",
        "adjacent: 2",
        "adjacent: 4",
        "fragment: split",
        "fragment: split_n",
        "fragment: strided",
        "float4",
        "transpose",
        "layout: nt",
        "layout: tn",
        "layout: tt",
        "pad_a: 4",
        "pad_a: 1",
        "pad_b: 4",
        "prefetch",
        "b_in_parts",
        "stage_c",
        "double_buffer",
        "stages: 2",
        "stages: 3",
        "spread: 2",
        "warp: 16x32",
        "warp: 32x16",
        "raster: 2",
        "raster: 4",
        "order: column",
        "order: row_serpentine",
        "blocks_per_sm: 2",
        "bounds: aligned",
        "bounds: guarded",
        "pitched",
        "scaled",
        "batch: strided",
        "batch: pointers",
        "epilogue: |acc, b[n]| relu(acc + b)",
        "epilogue: |acc, r[m, n], c[m, n]| relu(acc) + r + c",
        "epilogue: |acc| relu(acc)",
        "epilogue: |acc| acc * next(acc)",
        "epilogue: |acc, b[n]| pair(next(acc) + b, acc)",
        "epilogue: |acc| acc * 2.0",
        "epilogue: |x| x * 2.0",
    ];
    (tile, subsequence(keys, 0..5)).prop_filter_map("sound", |(tile, keys)| {
        let parts: Vec<&str> = [tile].into_iter().chain(keys).filter(|p| !p.is_empty()).collect();
        let spec: SgemmSpec = parts.join(", ").parse().ok()?;
        spec.plan().is_ok().then_some(spec)
    })
}

/// Source of a kernel without its name and its head comment.
fn text(kernel: &crate::ir::VerifiedKernel) -> String {
    let source = cuda::source(kernel);
    let (_, code) = source.split_once("\n\n").expect("a head");
    code.replace(&kernel.name, "k")
}

/// Plans with equal decisions generate equal sources.
#[test]
fn equal_decisions_give_equal_sources() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let mut seen: HashMap<_, (String, SgemmSpec)> = HashMap::new();
    let mut repeated = 0;
    let cases = gemm_cases::scaled(1500);
    for _ in 0..cases {
        let spec = specs().new_tree(&mut runner).expect("sound specs").current();
        let plan = spec.plan().expect("a sound spec");
        let program = spec.plan().and_then(|plan| plan.program()).expect("a sound spec");
        // In the order of the program's kernels.
        let variants = [plan.scalar_variant(), plan.guarded_variant()].into_iter().flatten();
        let plans: Vec<SgemmPlan> = [plan.clone()].into_iter().chain(variants).collect();
        assert_eq!(plans.len(), program.kernels().len(), "{spec}");
        for (plan, kernel) in plans.iter().zip(program.kernels()) {
            assert_eq!(plan.variant(), kernel.variant);
            let text = text(kernel);
            let (known, other) =
                seen.entry(plan.decisions()).or_insert_with(|| (text.clone(), spec.clone()));
            assert_eq!(*known, text, "the same is said of `{spec}` and `{other}`");
            repeated += usize::from(*other != spec);
        }
    }
    assert!(
        seen.len() > cases / 4 && repeated > cases / 75,
        "{} lists, {repeated} of them twice",
        seen.len()
    );
}

/// The reasons of operand decisions agree with the plan.
#[test]
fn a_reason_speaks_of_what_is_so() {
    for (line, of_pointers, edge) in [
        ("", "each access is clamped to the edge of C separately", Edge::Last),
        ("bounds: aligned", "as with guards, where each access is clamped separately", Edge::Exact),
        ("transpose", "groups have a fixed stride", Edge::Last),
        ("transpose, bounds: aligned", "groups have a fixed stride", Edge::Exact),
        ("tile: 64x64x12", "linear accesses have no common stride", Edge::Last),
    ] {
        let tile = if line.contains("tile") { "" } else { "tile: 64x64x8, " };
        let line = format!("{tile}thread: 4x4, stages: 3, {line}");
        assert_eq!(reason(&line, "copy pointers of A"), of_pointers, "{line}");
        assert_eq!(reason(&line, "copy pointers of B"), "accesses have a fixed stride", "{line}");
        assert_eq!(tiled(&line).a().edge(), edge, "{line}");
    }
}

/// Access widths are stated in bytes, and linear copies state their total.
#[test]
fn access_widths_are_stated_in_bytes() {
    let value = |line: &str, name: &str| {
        let decisions = plan(line).decisions();
        let found = decisions.iter().find(|decision| decision.name == name);
        found.unwrap_or_else(|| panic!("{line} decides no `{name}`")).value.clone()
    };
    let narrow = "tile: 64x64x8, thread: 4x4";
    let wide = "tile: 64x64x8, thread: 4x4, float4";
    for (line, name, said) in [
        (narrow, "copy accesses of B", "2 per thread, 4-byte loads, 4-byte stores"),
        (wide, "copy accesses of B", "1 per thread, 16-byte loads, 16-byte stores"),
        (
            "tile: 64x64x8, thread: 4x4, adjacent: 2",
            "copy accesses of B",
            "1 run of 2 per thread, \
             4-byte loads, 4-byte stores",
        ),
        (narrow, "fragment loads of B", "4 bytes"),
        (wide, "fragment loads of B", "16 bytes"),
        (narrow, "stores to C", "4 bytes"),
        ("tile: 64x64x12, thread: 4x4", "copies of A", "linear, 768 accesses"),
        ("tile: 40x40x12, thread: 4x4", "copies of A", "linear, 480 accesses, the last guarded"),
    ] {
        assert_eq!(value(line, name), said, "{line}: {name}");
    }
}

proptest! {
    #![proptest_config(gemm_cases::cases(1000))]

    /// A fill that leaves accumulators unchanged relies on the fill of the other operand.
    #[test]
    fn fills_fit_one_another(spec in specs()) {
        let plan = spec.plan().map_err(|error| TestCaseError::fail(error.to_string()))?;
        let KernelKind::Tiled(tiled) = plan.kind() else { return Ok(()) };
        let (a, b) = (tiled.a(), tiled.b());
        for (this, other) in [(a, b), (b, a)] {
            let expected = match this.fill.why {
                "its product with +0 is -0, which changes no sum" => Some(Fill::PlusZero),
                "its product with -0 is -0, which changes no sum" => Some(Fill::MinusZero),
                _ => None,
            };
            if let Some(expected) = expected {
                prop_assert_eq!(other.fill(), expected, "`{}`", spec);
                prop_assert!(this.fill() != expected, "`{}`", spec);
            }
            let guarded = plan.guarded();
            prop_assert_eq!(this.fill.why == "K is a multiple of the \
                tile's K", !guarded, "`{}`", spec);
            prop_assert_eq!(this.edge() == Edge::Exact, !guarded, "`{}`", spec);
        }
    }
}
