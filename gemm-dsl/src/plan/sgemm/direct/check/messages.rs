//! Error messages for kernels whose threads compute tiles of C without staging operands.

use crate::error::SpecError;
use crate::spec::{GemmLayout, Lanes, Rect, SgemmSpec};
use crate::target::arch::{BLOCK_THREADS, WARP};

/// Rejects `coarsen` or `partials`, which act only on kernels whose threads compute one element at
/// a time.
pub(crate) fn beside_tiles_of_threads(key: &'static str, by: &'static str) -> SpecError {
    let remedy = match key {
        "coarsen" => "use `thread: 1x4` for four elements of a row",
        _ => "use more `slices`, or leave `partials` out",
    };
    SpecError::at_key(
        &[key, by],
        format!(
            "`{key}` has no effect: it applies to threads that compute one element at a time, \
             and with `{by}` a thread computes all its elements at once; {remedy}"
        ),
    )
}

pub(crate) fn block_threads(spec: &SgemmSpec, threads: u64) -> SpecError {
    let block = spec.block_or_default();
    let most = u64::from(BLOCK_THREADS);
    let of_slice = threads / u64::from(spec.slices).max(1);
    let lanes = match spec.lanes {
        Lanes::K => format!(" warps · {WARP}"),
        Lanes::N | Lanes::M => String::new(),
    };
    let slices = match spec.slices {
        1 => String::new(),
        slices => format!(" · {slices} slices"),
    };
    let (guilty, remedy) = match spec.slices > 1 && of_slice <= most {
        true => ("slices", format!("use `slices: {}` or less", most / of_slice.max(1))),
        false => {
            let example = if spec.lanes == Lanes::K { "8x1" } else { "32x32" };
            ("block", format!("use a smaller block such as `block: {example}`"))
        }
    };
    SpecError::at_value(
        &[guilty, "block", "lanes", "slices"],
        format!(
            "`block: {block}` is {} · {}{lanes}{slices} = {threads} threads, and a block has at \
             most {BLOCK_THREADS}; {remedy}",
            block.rows, block.cols,
        ),
    )
}

pub(crate) fn float4_without_access(layout: GemmLayout, thread: Rect) -> SpecError {
    SpecError::at_key(
        &["float4", "thread", "layout"],
        format!(
            "`float4` has no effect: under `layout: {layout}` neither matrix is K-major, and \
             `thread: {thread}` has no four adjacent rows or columns; use a multiple of 4 such as \
             `thread: 4x4`, or leave `float4` out"
        ),
    )
}
