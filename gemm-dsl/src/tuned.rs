//! The tables of reductions that ship: how each is computed fastest, by its shape. Measured on an H200 on `f32`;
//! what takes more arithmetic for each element, mean and variance and the sum of exponentials, has rows of its
//! own. Of other elements the vectors have as many bytes, and so other lengths.
//!
//! The tables are over extents alone, so that results have the same bits on every device.

#[cfg(test)]
mod tests;

use crate::error::SpecErrors;
use crate::ir::VECTOR_BYTES;
use crate::kernel_table::KernelTable;
use crate::spec::{Op, Over, ReduceSpec};

/// A row: where it is chosen, without a condition everywhere else, and how it is computed.
type How = (&'static str, &'static str);

/// Rows of (outer, len).
const ROWS: &[How] = &[
    ("len <= 8 && len % 4 == 0", "block: 128, group: 1, items: 2, float4"),
    ("len <= 32 && len % 4 == 0", "block: 128, group: 2, items: 4, float4"),
    ("len <= 256 && len % 4 == 0", "block: 128, group: 8, items: 4, float4"),
    ("outer >= 512 && len <= 2048 && len % 4 == 0", "block: 128, group: 32, items: 4, float4"),
    (
        "outer < 512 && len >= 32768 && len % 4 == 0",
        "group: 256, shuffle, items: 4, float4, blocks: 64, launch: once",
    ),
    ("len <= 1024 && len % 4 == 0", "group: 256, shuffle, float4"),
    ("len % 4 == 0", "group: 256, shuffle, items: 4, float4"),
    ("len <= 4", "block: 128, group: 1, items: 4"),
    ("len <= 32", "block: 128, group: 8, items: 4"),
    ("len <= 1024", "block: 128, group: 32, items: 8"),
    ("outer < 512 && len >= 32768", "group: 256, shuffle, items: 8, blocks: 64, launch: once"),
    ("", "group: 256, shuffle, items: 8"),
];

/// The same where the arithmetic counts.
const HEAVY_ROWS: &[How] = &[
    ("len <= 8 && len % 4 == 0", "block: 128, group: 1, items: 2, float4"),
    ("len <= 32 && len % 4 == 0", "block: 128, group: 2, items: 4, float4"),
    ("len <= 256 && len % 4 == 0", "block: 128, group: 4, items: 4, float4"),
    ("outer >= 512 && len <= 2048 && len % 4 == 0", "block: 128, group: 16, items: 4, float4"),
    (
        "outer < 512 && len >= 32768 && len % 4 == 0",
        "block: 512, group: 512, shuffle, items: 4, float4, blocks: 4, launch: once",
    ),
    ("len % 4 == 0", "group: 32, items: 8, float4"),
    ("len <= 4", "block: 128, group: 1, items: 4"),
    ("len <= 32", "block: 128, group: 8, items: 4"),
    ("outer < 512 && len >= 32768", "group: 256, shuffle, items: 16, blocks: 64, launch: once"),
    ("", "block: 128, group: 16, items: 8"),
];

/// Columns of (len, inner).
const COLUMNS: &[How] = &[
    ("inner >= 65536 && inner % 4 == 0", "group: 1, items: 2, float4"),
    ("len <= 128", "group: 8, items: 8"),
    ("inner >= 2048 && inner % 4 == 0", "group: 8, items: 8, float4, blocks: 8, launch: once"),
    ("inner >= 512", "group: 8, items: 8, blocks: 16, launch: once"),
    ("inner % 4 == 0 && len >= 65536", "group: 32, items: 8, float4, blocks: 132, launch: once"),
    ("inner >= 32", "group: 8, items: 8, blocks: 132, launch: once"),
    ("", "group: 32, items: 8, blocks: 132, launch: once"),
];

/// The same where the arithmetic counts.
const HEAVY_COLUMNS: &[How] = &[
    ("inner >= 65536 && len <= 16", "group: 1, items: 8"),
    ("inner >= 65536 && inner % 4 == 0", "block: 512, group: 1, items: 4, float4"),
    ("len <= 128", "group: 8, items: 8"),
    ("inner >= 2048 && inner % 4 == 0", "group: 8, items: 8, float4, blocks: 8, launch: once"),
    ("inner >= 512", "group: 8, items: 8, blocks: 16, launch: once"),
    ("inner % 4 == 0 && len >= 65536", "group: 16, items: 8, float4, blocks: 132, launch: once"),
    ("inner >= 32", "group: 8, items: 8, blocks: 132, launch: once"),
    ("", "group: 32, items: 8, blocks: 132, launch: once"),
];

/// Columns of the matrices of (outer, len, inner).
const MIDDLE: &[How] = &[
    ("inner <= 8", "group: 64, items: 4"),
    ("inner <= 64", "group: 16, items: 8"),
    ("outer * inner >= 65536 && inner % 4 == 0 && len <= 16", "group: 1, items: 8, float4"),
    ("outer * inner >= 65536 && inner % 4 == 0", "group: 8, items: 8, float4"),
    ("outer * inner >= 65536 && inner >= 512", "group: 8, items: 8, coarsen: 4"),
    ("outer * inner <= 8192 && len >= 1024", "group: 8, items: 8, blocks: 16, launch: once"),
    ("", "group: 8, items: 8"),
];

/// The same where the arithmetic counts.
const HEAVY_MIDDLE: &[How] = &[
    ("inner <= 8", "group: 64, items: 4"),
    ("inner <= 64", "group: 16, items: 8"),
    ("outer * inner >= 65536 && inner >= 512", "group: 8, items: 8, coarsen: 2"),
    ("outer * inner <= 8192 && len >= 1024", "group: 8, items: 8, blocks: 16, launch: once"),
    ("", "group: 8, items: 8"),
];

/// Whole arrays.
const ALL: &[How] = &[
    ("len <= 16384", "block: 1024, items: 4, shuffle, float4, blocks: 1"),
    ("len <= 67108864", "block: 512, items: 4, shuffle, float4, blocks: 396, launch: once"),
    ("", "block: 1024, items: 8, shuffle, float4, blocks: 132, launch: once"),
];

/// Segments, whose lengths are not known.
const SEGMENTS: &[How] = &[
    ("len >= 8192 * outer", "block: 512, group: 512, shuffle, items: 8"),
    ("len >= 512 * outer", "group: 256, shuffle, items: 8"),
    ("len >= 96 * outer", "group: 32, items: 4, shuffle"),
    ("len >= 24 * outer", "group: 8, items: 4, shuffle"),
    ("", "group: 4, items: 2, shuffle"),
];

/// The most elements that a thread of these kernels holds at once.
const MOST_HELD: u32 = 32;

/// The table for what a spec says is computed; of how, it says nothing that counts.
///
/// # Errors
/// All of the spec's faults.
pub fn tuned(what: &ReduceSpec) -> Result<KernelTable<ReduceSpec>, SpecErrors> {
    let heavy = matches!(what.operator(), Some(Op::MeanVar | Op::Logsumexp));
    let rows = match (what.over, heavy) {
        (Over::All, _) => ALL,
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
    row(what, "", vector)?.plan()?;
    let mut lines = Vec::with_capacity(rows.len());
    for (when, how) in rows {
        // A vector of bytes has more elements than the shortest rows.
        if vector > 8 && when.starts_with("len <= 8 &&") {
            continue;
        }
        let when = if when.is_empty() { "else" } else { when };
        let spec = row(what, how, vector)?;
        lines.push(format!("{} => {spec}", when.replace("% 4", &format!("% {vector}"))));
    }
    lines.join(";\n").parse()
}

/// What a spec computes, in the way of a row, which is written for elements of 4 bytes.
fn row(what: &ReduceSpec, how: &str, vector: u32) -> Result<ReduceSpec, SpecErrors> {
    let how: ReduceSpec = format!("over: {}, {how}", what.over).parse()?;
    let mut spec = ReduceSpec {
        op: what.op,
        fold: what.fold.clone(),
        identity: what.identity.clone(),
        map: what.map.clone(),
        finish: what.finish.clone(),
        element: what.element,
        acc: what.acc,
        result: what.result,
        index: what.index,
        compensated: what.compensated,
        pitched: what.pitched,
        ..how
    };
    if spec.float4 {
        spec.items = spec.items.min((MOST_HELD / vector).max(1));
        // Of bytes a thread has so many columns that they fill the shared memory.
        let columns = matches!(spec.over, Over::Columns | Over::Middle);
        if columns && vector > 8 {
            spec.block = 128;
            spec.group = spec.group.map(|group| group.min(8));
        }
        // What is more than a number may not fit even so.
        while columns && spec.block > 32 && spec.plan().is_err() {
            spec.block /= 2;
            spec.group = spec.group.map(|group| group.min(spec.block / 16));
        }
    }
    Ok(spec)
}
