//! Tables of reductions that ship with the crate. They choose the spec by the shape.
//!
//! They are written by hand from measurements with `f32` on an H200.
//! `cargo run --release -p gemm-bench --example rows` times the chosen specs and others. `mean_var`
//! and `logsumexp` need more arithmetic per element and have rules of their own. The rules of
//! `topk` were chosen by the number of merges, without measurements. For other element types, a
//! vector also has 16 bytes, but another number of elements.
//!
//! Conditions read only extents, so results have the same bits on every device.

#[cfg(test)]
mod tests;

use crate::error::SpecErrors;
use crate::ir::VECTOR_BYTES;
use crate::spec::{Op, Over, ReduceSpec, Table};
use crate::tables::KernelTable;

/// Rule of a shipped table, before it is adapted to an element type.
struct How {
    /// Maximum number of elements along `len`. The rule is dropped if this is less than a vector.
    longest: Option<u32>,
    /// Rest of the condition, without the requirements of vector loads; may be empty.
    when: &'static str,
    /// Extent that must be a multiple of the number of elements of a vector.
    whole: Option<&'static str>,
    /// Spec, whose `items` is the value for elements of 4 bytes.
    line: &'static str,
    /// True if the kernel loads 16 bytes at once.
    float4: bool,
}

/// Rule for vector loads along the given extent.
const fn vectors(when: &'static str, along: &'static str, line: &'static str) -> How {
    How { longest: None, when, whole: Some(along), line, float4: true }
}

/// Rule for vector loads, for results with few elements.
const fn short(longest: u32, line: &'static str) -> How {
    How { longest: Some(longest), when: "", whole: Some("len"), line, float4: true }
}

/// Rule for vector loads, followed by loads of the remaining elements.
const fn long(when: &'static str, line: &'static str) -> How {
    How { longest: None, when, whole: None, line, float4: true }
}

/// Rule for loads of single elements.
const fn plain(when: &'static str, line: &'static str) -> How {
    How { longest: None, when, whole: None, line, float4: false }
}

/// Rules for rows of (outer, len).
const ROWS: &[How] = &[
    short(8, "block: 128, group: 1, items: 2"),
    vectors("len <= 32", "len", "block: 128, group: 2, items: 4"),
    vectors("len <= 256", "len", "block: 128, group: 8, items: 4"),
    vectors("outer >= 512 && len <= 2048", "len", "block: 128, group: 32, items: 4"),
    vectors(
        "outer < 512 && len >= 32768",
        "len",
        "group: 256, shuffle, items: 4, blocks: 64, launch: once",
    ),
    vectors("len <= 1024", "len", "group: 256, shuffle"),
    vectors("", "len", "group: 256, shuffle, items: 4"),
    plain("len <= 4", "block: 128, group: 1, items: 4"),
    plain("len <= 32", "block: 128, group: 8, items: 4"),
    plain("len <= 1024", "block: 128, group: 32, items: 8"),
    plain("outer < 512 && len >= 32768", "group: 256, shuffle, items: 8, blocks: 64, launch: once"),
    plain("", "group: 256, shuffle, items: 8"),
];

/// Rules for rows, for operators with more arithmetic.
const HEAVY_ROWS: &[How] = &[
    short(8, "block: 128, group: 1, items: 2"),
    vectors("len <= 32", "len", "block: 128, group: 2, items: 4"),
    vectors("len <= 256", "len", "block: 128, group: 4, items: 4"),
    vectors("outer >= 512 && len <= 2048", "len", "block: 128, group: 16, items: 4"),
    vectors(
        "outer < 512 && len >= 32768",
        "len",
        "block: 512, group: 512, shuffle, items: 4, blocks: 4, launch: once",
    ),
    vectors("", "len", "group: 32, items: 8"),
    plain("len <= 4", "block: 128, group: 1, items: 4"),
    plain("len <= 32", "block: 128, group: 8, items: 4"),
    plain(
        "outer < 512 && len >= 32768",
        "group: 256, shuffle, items: 16, blocks: 64, launch: once",
    ),
    plain("", "block: 128, group: 16, items: 16"),
];

/// Rules for columns of (len, inner).
const COLUMNS: &[How] = &[
    vectors("inner >= 65536", "inner", "group: 1, items: 4"),
    plain("len <= 128", "group: 8, items: 8"),
    vectors("inner >= 2048", "inner", "group: 8, items: 8, blocks: 8, launch: once"),
    plain("inner >= 512", "group: 8, items: 8, blocks: 16, launch: once"),
    vectors("len >= 65536", "inner", "group: 16, items: 8, blocks: 132, launch: once"),
    plain("inner >= 32", "group: 8, items: 8, blocks: 132, launch: once"),
    plain("", "group: 32, items: 8, blocks: 132, launch: once"),
];

/// Rules for columns, for operators with more arithmetic.
const HEAVY_COLUMNS: &[How] = &[
    plain("inner >= 65536 && len <= 16", "block: 128, group: 1, items: 8, coarsen: 2"),
    vectors("inner >= 65536", "inner", "block: 512, group: 1, items: 4"),
    plain("len <= 128", "group: 8, items: 8"),
    vectors("inner >= 2048", "inner", "group: 8, items: 8, blocks: 8, launch: once"),
    plain("inner >= 512", "group: 8, items: 8, blocks: 16, launch: once"),
    vectors("len >= 65536", "inner", "group: 16, items: 8, blocks: 132, launch: once"),
    plain("inner >= 32", "group: 8, items: 8, blocks: 132, launch: once"),
    plain("", "group: 32, items: 8, blocks: 132, launch: once"),
];

/// Rules for the columns of the matrices in (outer, len, inner).
const MIDDLE: &[How] = &[
    plain("inner <= 8", "group: 64, items: 4"),
    plain("inner <= 64", "group: 16, items: 8"),
    vectors("outer * inner >= 65536 && len <= 16", "inner", "group: 1, items: 8"),
    vectors("outer * inner >= 65536", "inner", "group: 8, items: 8"),
    plain("outer * inner >= 65536 && inner >= 512", "group: 8, items: 8, coarsen: 4"),
    plain("outer * inner <= 8192 && len >= 1024", "group: 8, items: 8, blocks: 16, launch: once"),
    plain("", "group: 8, items: 8"),
];

/// Rules for the columns of the matrices, for operators with more arithmetic.
const HEAVY_MIDDLE: &[How] = &[
    plain("inner <= 8", "group: 64, items: 4"),
    plain("inner <= 64", "group: 16, items: 8"),
    plain("outer * inner >= 65536 && inner >= 512", "group: 8, items: 8, coarsen: 2"),
    plain("outer * inner <= 8192 && len >= 1024", "group: 8, items: 8, blocks: 16, launch: once"),
    plain("", "group: 8, items: 8"),
];

/// Rules for whole arrays.
const ALL: &[How] = &[
    long("len <= 4096", "block: 512, items: 2, shuffle, blocks: 1"),
    long("len <= 16384", "block: 1024, items: 4, shuffle, blocks: 1"),
    long("len <= 262144", "block: 256, items: 4, shuffle, blocks: 64, launch: once"),
    long("len <= 67108864", "block: 512, items: 4, shuffle, blocks: 396, launch: once"),
    long("", "block: 1024, items: 8, shuffle, blocks: 132, launch: once"),
];

/// Rules for whole arrays, for operators with more arithmetic.
const HEAVY_ALL: &[How] = &[
    long("len <= 4096", "block: 1024, items: 1, shuffle, blocks: 1"),
    long("len <= 16384", "block: 1024, items: 4, shuffle, blocks: 1"),
    long("len <= 67108864", "block: 512, items: 4, shuffle, blocks: 396, launch: once"),
    long("", "block: 1024, items: 8, shuffle, blocks: 132, launch: once"),
];

/// Rules for segments, whose lengths are unknown at launch.
const SEGMENTS: &[How] = &[
    plain("len >= 8192 * outer", "block: 512, group: 512, shuffle, items: 16"),
    plain("len >= 512 * outer", "block: 128, group: 128, shuffle, items: 16"),
    plain("len >= 96 * outer", "group: 32, items: 4, shuffle"),
    plain("len >= 24 * outer", "group: 8, items: 4, shuffle"),
    plain("", "group: 4, items: 2, shuffle"),
];

/// Rules for `topk` of rows.
const TOPK_ROWS: &[How] = &[
    vectors("outer < 512 && len >= 65536", "len", "group: 256, items: 4, blocks: 16"),
    vectors("outer >= 512 && len <= 8192", "len", "block: 128, group: 32, items: 4"),
    vectors("", "len", "group: 256, items: 4"),
    plain("outer < 512 && len >= 65536", "group: 256, items: 4, blocks: 16"),
    plain("outer >= 512 && len <= 8192", "block: 128, group: 32, items: 4"),
    plain("", "group: 256, items: 4"),
];

/// Rules for `topk` of whole arrays.
const TOPK_ALL: &[How] = &[
    long("len <= 16384", "block: 256, items: 2, blocks: 1"),
    long("len <= 1048576", "block: 256, items: 4, blocks: 64"),
    long("", "block: 256, items: 4, blocks: 264"),
];

/// Maximum number of elements that a thread of these kernels holds at once.
const MOST_HELD: u32 = 32;

impl How {
    /// Returns the condition, for vectors with this number of elements.
    fn condition(&self, vector: u32) -> String {
        let longest = self.longest.map(|longest| format!("len <= {longest}"));
        let when = (!self.when.is_empty()).then(|| self.when.to_owned());
        let whole = self.whole.map(|extent| format!("{extent} % {vector} == 0"));
        let parts: Vec<String> = [longest, when, whole].into_iter().flatten().collect();
        if parts.is_empty() { "else".to_owned() } else { parts.join(" && ") }
    }
}

/// Returns the shipped table for the reduction that a spec computes. Keys of the spec that do not
/// affect the result are ignored.
///
/// # Errors
/// Returns every fault of the spec.
pub fn tuned(what: &ReduceSpec) -> Result<KernelTable<ReduceSpec>, SpecErrors> {
    let heavy = matches!(what.operator(), Some(Op::MeanVar | Op::Logsumexp));
    let rows = match (what.over, heavy) {
        (Over::All, _) if what.topk.is_some() => TOPK_ALL,
        (Over::Rows, _) if what.topk.is_some() => TOPK_ROWS,
        (Over::All, false) => ALL,
        (Over::All, true) => HEAVY_ALL,
        (Over::Segments, _) => SEGMENTS,
        (Over::Rows, false) => ROWS,
        (Over::Rows, true) => HEAVY_ROWS,
        (Over::Columns, false) => COLUMNS,
        (Over::Columns, true) => HEAVY_COLUMNS,
        (Over::Middle, false) => MIDDLE,
        (Over::Middle, true) => HEAVY_MIDDLE,
    };
    let vector = VECTOR_BYTES / what.element.elem().size();
    // Reports faults of the reduction itself once, not for each rule.
    row(what, "", vector, false)?.plan()?;
    let mut lines = Vec::with_capacity(rows.len());
    for how in rows {
        // A vector of bytes has more elements than the shortest rows.
        if how.longest.is_some_and(|longest| longest < vector) {
            continue;
        }
        let spec = row(what, how.line, vector, how.float4)?;
        lines.push(format!("{} => {spec}", how.condition(vector)));
    }
    lines.join(";\n").parse()
}

/// Returns a spec that computes `what` in the way of a rule, which is written for elements of 4
/// bytes.
fn row(what: &ReduceSpec, how: &str, vector: u32, float4: bool) -> Result<ReduceSpec, SpecErrors> {
    let how: ReduceSpec = format!("over: {}, {how}", what.over).parse()?;
    let mut spec = ReduceSpec { float4, ..how.computing(what) };
    // With fewer registers and more resident blocks, segments are 11 % faster, but all other
    // reductions up to 18 % slower.
    let by_compiler = what.over == Over::Segments || what.topk.is_some();
    spec.blocks_per_sm = (!by_compiler).then_some(1);
    if spec.float4 {
        spec.items = spec.items.min((MOST_HELD / vector).max(1));
        // With byte elements, a thread folds so many columns that the accumulators would exceed
        // shared memory.
        let columns = matches!(spec.over, Over::Columns | Over::Middle);
        if columns && vector > 8 {
            spec.block = 128;
            spec.group = spec.group.map(|group| group.min(8));
        }
        // Accumulators with several parts may still be too large.
        while columns && spec.block > 32 && is_too_large(&spec) {
            spec.block /= 2;
            spec.group = spec.group.map(|group| group.min(spec.block / 16));
        }
    }
    Ok(spec)
}

/// Returns true if the only fault is that the block's accumulators exceed shared memory.
fn is_too_large(spec: &ReduceSpec) -> bool {
    spec.plan().is_err_and(|faults| faults.iter().all(|fault| fault.key() == Some("block")))
}
