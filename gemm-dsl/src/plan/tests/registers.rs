//! Tests of the register estimate.

use super::{message, product};

#[test]
fn registers_are_shared_by_whole_warps() {
    // 897 threads are 29 warps, which have 64 registers per thread. Without rounding to warps there
    // would be 72.
    let text = message(product("tile: 312x161x1, thread: 8x7"));
    let needed = "8 · 7 = 56 registers for its accumulators + 15 for fragments = 71";
    let limit = "65536 registers shared by 897 threads · 1 block leave 64 per thread";
    assert!(text.contains(needed) && text.contains(limit), "{text}");
    assert!(product("tile: 312x161x1, thread: 8x7").is_err());
    // The same number of warps, with a register count that fits.
    assert!(product("tile: 312x115x1, thread: 8x5").is_ok());
}

#[test]
fn fragments_take_registers_twice_under_stages() {
    // 24 warps have 80 registers per thread: 64 accumulators, and 16 for one pair of fragments.
    assert!(product("tile: 192x256x8, thread: 8x8").is_ok());
    let text = message(product("tile: 192x256x8, thread: 8x8, stages: 2"));
    let needed = "8 · 8 = 64 registers for its accumulators + 32 for fragments = 96";
    assert!(text.contains(needed) && text.contains("leave 80 per thread"), "{text}");
}

/// Spec of stage 22 with an epilogue that reads `count` vectors along the columns of C.
fn with_vectors(function: &str, count: usize) -> String {
    let names: Vec<String> = (0..count).map(|n| format!("v{n}")).collect();
    let operands: String = names.iter().map(|name| format!(", {name}[n]")).collect();
    format!(
        "tile: 128x256x16, thread: 8x16, fragment: split, float4, transpose, pad_a: 4, stages: 5, \
         spread: 10, warp: 32x128, raster: 8, order: column_serpentine, \
         epilogue: |acc{operands}| {function}(acc + {})",
        names.join(" + ")
    )
}

/// 128 accumulators leave 127 registers. In an unrolled epilogue, a thread keeps 16 elements of
/// each vector. With staged accumulators, a vector is read for each store.
#[test]
fn operands_take_the_registers_that_hold_them() {
    for (function, most) in [("relu", 7), ("gelu", 31)] {
        if let Err(errors) = product(&with_vectors(function, most)) {
            panic!("{function} with {most}: {errors}");
        }
        let text = message(product(&with_vectors(function, most + 1)));
        let needed = "128 registers for its accumulators + 128 for operands of the epilogue = 256";
        assert!(text.contains(needed), "{text}");
    }
}

/// Partial accumulators of slices, and the sums of all split-K partitions, need at most as many
/// bytes as their registers. They therefore always fit in shared memory.
#[test]
fn sums_that_fit_registers_can_be_handed_over() {
    use crate::target::arch::LARGEST;
    let mut most = 0;
    for warps in 1..=32 {
        let available = LARGEST.registers_per_thread(warps);
        for m in 1..=available {
            // Greatest n for which m · n accumulators fit beside m + n fragments.
            let n = available.saturating_sub(m) / (m + 1);
            // Accumulators of all threads: every slice except the first hands its accumulators
            // over, and split-K combines the accumulators of one slice.
            most = most.max(u64::from(m * n) * 32 * warps * 4);
        }
    }
    // The flag for the last ticket and up to 16 bytes of padding come before them.
    assert!(most > 200_000 && most + 2 * 16 <= LARGEST.shared_per_block, "{most}");
    assert!(product("block: 1x1, thread: 15x15, slices: 256").is_ok());
    assert!(product("block: 1x1, thread: 15x15, slices: 256, split_k: 2").is_ok());
    let text = message(product("block: 1x1, thread: 15x16, slices: 256"));
    assert!(text.contains("; use a smaller thread tile or fewer threads\n"), "{text}");
}

#[test]
fn steps_under_way_take_registers() {
    assert!(product("thread: 4x4, float4, unroll: 7").is_ok());
    let text = message(product("thread: 4x4, float4, unroll: 8"));
    let needed = "4 · 4 = 16 registers for its accumulators + 256 for fragments = 272";
    assert!(text.contains(needed) && text.contains("; use a smaller `unroll`\n"), "{text}");
}
