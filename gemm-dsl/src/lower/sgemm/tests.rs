//! Tests of the generated text: its header, its strides, and the extents that a launch passes.

use crate::Plan;
use crate::cuda::source;
use crate::ir::Extent;
use crate::spec::SgemmSpec;

/// Generates the texts of all kernels of a spec.
fn texts(line: &str) -> Vec<String> {
    let spec: SgemmSpec = line.parse().expect("a sound line");
    let program = spec.plan().and_then(|plan| plan.program()).expect("a sound spec");
    program.kernels().iter().map(source).collect()
}

/// The caller implements half of BLAS's rule for alpha = 0, so every source mentions the rule.
#[test]
fn the_text_of_a_scaled_product_says_which_k_it_is_given() {
    let rule = "// If alpha is 0, the caller passes K = 0, so that A and B are not read.\n";
    let depth = "// DEPTH is the full extent along K";
    for tile in ["block: 8x8", "tile: 16x16x8, thread: 4x4, float4, bounds: aligned"] {
        for (keys, says) in [
            ("unroll: 2", [false, false]),
            ("scaled", [true, false]),
            ("scaled, epilogue: |acc| acc * f32(n)", [true, false]),
            ("scaled, epilogue: |acc| acc * f32(k)", [true, true]),
            ("epilogue: |acc| acc * f32(k)", [false, false]),
        ] {
            for text in texts(&format!("{tile}, {keys}")) {
                assert_eq!([rule, depth].map(|line| text.contains(line)), says, "{text}");
                assert_eq!(text.contains("int DEPTH"), says[1], "{text}");
            }
        }
    }
}

/// Epilogue vectors along one axis are shared by all GEMMs of a batch, so they have no batch
/// stride.
#[test]
fn vectors_of_a_batch_have_no_stride() {
    for tile in ["block: 8x8", "tile: 16x16x8, thread: 4x4, float4"] {
        let epilogue = "epilogue: |acc, bias[n], scale[m], r[m, n]| acc * scale + bias + r";
        for text in texts(&format!("{tile}, batch: strided, {epilogue}")) {
            for name in ["stride_a", "stride_b", "stride_c", "stride_r"] {
                assert!(text.contains(&format!("size_t {name}")), "no {name} in\n{text}");
            }
            assert_eq!(text.matches("size_t stride_").count(), 4, "{text}");
            assert!(
                text.contains("// Strided batch: GEMM p of BATCH has its matrices at "),
                "{text}"
            );
        }
        for text in texts(&format!("{tile}, {epilogue}")) {
            assert!(!text.contains("batch") && !text.contains("stride_"), "{text}");
        }
    }
}

/// Value that a launch on a GPU with 132 SMs passes for an extent.
fn given(line: &str, [m, n, k]: [u64; 3], extent: Extent) -> u64 {
    let spec: SgemmSpec = line.parse().unwrap_or_else(|error| panic!("`{line}`: {error}"));
    let program = spec.plan().and_then(|plan| plan.program()).expect("a sound spec");
    let extents = [(Extent::M, m), (Extent::N, n), (Extent::K, k), (Extent::SMS, 132)];
    let values = program.bind(&extents, &[]).expect("numbers of 64 bits");
    let launch = program.launches(&values).expect("numbers of 64 bits")[0];
    let found = launch.extents.iter().find(|(of, _)| *of == extent);
    let (_, value) = found.unwrap_or_else(|| panic!("`{line}` has no {extent}"));
    values.eval(value).expect("a number of 64 bits")
}

/// Square root of K / 8, rounded down to a power of two; at least 1.
fn most_sharing(k: u64) -> u64 {
    let root = (k / 8).isqrt().max(1);
    1 << root.ilog2()
}

/// Values of K around those at which the number of blocks doubles.
fn depths() -> impl Iterator<Item = u64> {
    let steps = (0..14).flat_map(|log| [-1_i64, 0, 1].map(|by| (8 << (2 * log)) + by));
    steps.filter(|k| *k < 1 << 31).map(|k| k as u64).chain([0, (1 << 31) - 1])
}

#[test]
fn auto_ranges_fill_the_device_as_far_as_it_pays_to_add() {
    for blocks in 1..=4 {
        let line = format!("tile: 64x64x16, thread: 8x8, split_k: auto, blocks_per_sm: {blocks}");
        for k in depths() {
            // One tile, three, one for each block, and more.
            for (m, tiles) in [(64, 1), (192, 3), (64 * 132, 132), (64 * 1000, 1000)] {
                let fill = (132 * blocks / tiles).max(1);
                let ranges = given(&line, [m, 64, k], Extent::PARTITIONS);
                assert_eq!(ranges, fill.min(most_sharing(k)), "`{line}` at {m}x64x{k}");
            }
        }
    }
}

#[test]
fn stream_k_has_no_more_blocks_than_it_pays_to_add() {
    let line = "tile: 64x64x16, thread: 8x8, stream_k, blocks_per_sm: 2";
    for k in depths() {
        for (m, tiles) in [(64, 1), (192, 3), (64 * 132, 132), (64 * 1000, 1000)] {
            let of_tile = k.div_ceil(16).max(1).min(most_sharing(k));
            let blocks = given(line, [m, 64, k], Extent::BLOCKS);
            assert_eq!(blocks, (132 * 2).min(tiles * of_tile), "`{line}` at {m}x64x{k}");
        }
    }
}
