//! The tables of reductions that ship: how each is computed, by its shape. They are written by hand, from
//! measurements of `f32` on an H200; `cargo run --release -p gemm-bench --example rows` times what they choose beside
//! others. What takes more arithmetic for each element, mean and variance and the sum of exponentials, has rows of
//! its own. Of other elements the vectors have as many bytes, and so other lengths.
//!
//! The tables are over extents alone, so that results have the same bits on every device.

#[cfg(test)]
mod tests;

use crate::error::SpecErrors;
use crate::ir::VECTOR_BYTES;
use crate::spec::{Op, Over, ReduceSpec, Table};
use crate::tables::KernelTable;

/// A row: which problems it is for, and how it computes them.
struct How {
    /// The most elements along `len`, where there is a limit that vectors may pass.
    longest: Option<u32>,
    /// The rest of its condition, without what vectors need; empty where there is none.
    when: &'static str,
    /// The extent that is a multiple of a vector's elements.
    whole: Option<&'static str>,
    /// The line, with `items` as of elements of 4 bytes.
    line: &'static str,
    /// Whether 16 bytes are loaded at once.
    float4: bool,
}

/// A row that loads vectors along an extent.
const fn vectors(when: &'static str, along: &'static str, line: &'static str) -> How {
    How { longest: None, when, whole: Some(along), line, float4: true }
}

/// A row that loads vectors of results of few elements.
const fn short(longest: u32, line: &'static str) -> How {
    How { longest: Some(longest), when: "", whole: Some("len"), line, float4: true }
}

/// A row that loads vectors, and what is left behind them.
const fn long(when: &'static str, line: &'static str) -> How {
    How { longest: None, when, whole: None, line, float4: true }
}

/// A row that loads elements.
const fn plain(when: &'static str, line: &'static str) -> How {
    How { longest: None, when, whole: None, line, float4: false }
}

/// Rows of (outer, len).
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

/// The same where the arithmetic counts.
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

/// Columns of (len, inner).
const COLUMNS: &[How] = &[
    vectors("inner >= 65536", "inner", "group: 1, items: 4"),
    plain("len <= 128", "group: 8, items: 8"),
    vectors("inner >= 2048", "inner", "group: 8, items: 8, blocks: 8, launch: once"),
    plain("inner >= 512", "group: 8, items: 8, blocks: 16, launch: once"),
    vectors("len >= 65536", "inner", "group: 16, items: 8, blocks: 132, launch: once"),
    plain("inner >= 32", "group: 8, items: 8, blocks: 132, launch: once"),
    plain("", "group: 32, items: 8, blocks: 132, launch: once"),
];

/// The same where the arithmetic counts.
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

/// Columns of the matrices of (outer, len, inner).
const MIDDLE: &[How] = &[
    plain("inner <= 8", "group: 64, items: 4"),
    plain("inner <= 64", "group: 16, items: 8"),
    vectors("outer * inner >= 65536 && len <= 16", "inner", "group: 1, items: 8"),
    vectors("outer * inner >= 65536", "inner", "group: 8, items: 8"),
    plain("outer * inner >= 65536 && inner >= 512", "group: 8, items: 8, coarsen: 4"),
    plain("outer * inner <= 8192 && len >= 1024", "group: 8, items: 8, blocks: 16, launch: once"),
    plain("", "group: 8, items: 8"),
];

/// The same where the arithmetic counts.
const HEAVY_MIDDLE: &[How] = &[
    plain("inner <= 8", "group: 64, items: 4"),
    plain("inner <= 64", "group: 16, items: 8"),
    plain("outer * inner >= 65536 && inner >= 512", "group: 8, items: 8, coarsen: 2"),
    plain("outer * inner <= 8192 && len >= 1024", "group: 8, items: 8, blocks: 16, launch: once"),
    plain("", "group: 8, items: 8"),
];

/// Whole arrays.
const ALL: &[How] = &[
    long("len <= 4096", "block: 512, items: 2, shuffle, blocks: 1"),
    long("len <= 16384", "block: 1024, items: 4, shuffle, blocks: 1"),
    long("len <= 262144", "block: 256, items: 4, shuffle, blocks: 64, launch: once"),
    long("len <= 67108864", "block: 512, items: 4, shuffle, blocks: 396, launch: once"),
    long("", "block: 1024, items: 8, shuffle, blocks: 132, launch: once"),
];

/// The same where the arithmetic counts.
const HEAVY_ALL: &[How] = &[
    long("len <= 4096", "block: 1024, items: 1, shuffle, blocks: 1"),
    long("len <= 16384", "block: 1024, items: 4, shuffle, blocks: 1"),
    long("len <= 67108864", "block: 512, items: 4, shuffle, blocks: 396, launch: once"),
    long("", "block: 1024, items: 8, shuffle, blocks: 132, launch: once"),
];

/// Segments, whose lengths are not known.
const SEGMENTS: &[How] = &[
    plain("len >= 8192 * outer", "block: 512, group: 512, shuffle, items: 16"),
    plain("len >= 512 * outer", "block: 128, group: 128, shuffle, items: 16"),
    plain("len >= 96 * outer", "group: 32, items: 4, shuffle"),
    plain("len >= 24 * outer", "group: 8, items: 4, shuffle"),
    plain("", "group: 4, items: 2, shuffle"),
];

/// The most elements that a thread of these kernels holds at once.
const MOST_HELD: u32 = 32;

impl How {
    /// The condition, for vectors of so many elements.
    fn condition(&self, vector: u32) -> String {
        let longest = self.longest.map(|longest| format!("len <= {longest}"));
        let when = (!self.when.is_empty()).then(|| self.when.to_owned());
        let whole = self.whole.map(|extent| format!("{extent} % {vector} == 0"));
        let parts: Vec<String> = [longest, when, whole].into_iter().flatten().collect();
        if parts.is_empty() { "else".to_owned() } else { parts.join(" && ") }
    }
}

/// The table for what a spec says is computed; of how, it says nothing that counts.
///
/// # Errors
/// All of the spec's faults.
pub fn tuned(what: &ReduceSpec) -> Result<KernelTable<ReduceSpec>, SpecErrors> {
    let heavy = matches!(what.operator(), Some(Op::MeanVar | Op::Logsumexp));
    let rows = match (what.over, heavy) {
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
    // What is wrong with it is told once, and not of each row.
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

/// What a spec computes, in the way of a row, which is written for elements of 4 bytes.
fn row(what: &ReduceSpec, how: &str, vector: u32, float4: bool) -> Result<ReduceSpec, SpecErrors> {
    let how: ReduceSpec = format!("over: {}, {how}", what.over).parse()?;
    let mut spec = ReduceSpec { float4, ..how.computing(what) };
    if spec.float4 {
        spec.items = spec.items.min((MOST_HELD / vector).max(1));
        // Of bytes a thread has so many columns that they fill the shared memory.
        let columns = matches!(spec.over, Over::Columns | Over::Middle);
        if columns && vector > 8 {
            spec.block = 128;
            spec.group = spec.group.map(|group| group.min(8));
        }
        // What is more than a number may not fit even so.
        while columns && spec.block > 32 && is_too_large(&spec) {
            spec.block /= 2;
            spec.group = spec.group.map(|group| group.min(spec.block / 16));
        }
    }
    Ok(spec)
}

/// Whether nothing is wrong but that its block has more columns than fit into shared memory.
fn is_too_large(spec: &ReduceSpec) -> bool {
    spec.plan().is_err_and(|faults| faults.iter().all(|fault| fault.key() == Some("block")))
}
