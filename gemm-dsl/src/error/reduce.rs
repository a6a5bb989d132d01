//! What can be wrong with a reduction.

use super::SpecError;
use crate::arch::{BLOCK_THREADS, WARP};
use crate::plan::MAX_BLOCK_ELEMENTS;

pub(crate) fn block_zero() -> SpecError {
    SpecError::at_value(
        &["block"],
        format!(
            "`block: 0`: a block needs threads; use a power of two from {WARP} to {BLOCK_THREADS}, \
             such as 256"
        ),
    )
}

pub(crate) fn block_small(block: u32) -> SpecError {
    SpecError::at_value(
        &["block"],
        format!("`block: {block}` is less than one warp of {WARP} threads; use {WARP} or more"),
    )
}

pub(crate) fn block_large(block: u32) -> SpecError {
    SpecError::at_value(
        &["block"],
        format!(
            "`block: {block}` is more than the {BLOCK_THREADS} threads a block may have; use \
             {BLOCK_THREADS} or less"
        ),
    )
}

pub(crate) fn block_not_power_of_two(block: u32) -> SpecError {
    let below = 1u32 << block.max(1).ilog2();
    let above = u64::from(below) * 2;
    SpecError::at_value(
        &["block"],
        format!(
            "`block: {block}` is not a power of two: the tree halves the block at every step; \
             use {below} or {above}"
        ),
    )
}

pub(crate) fn too_many_elements(block: u32, items: u32, vector: u32) -> SpecError {
    let width = if vector == 1 { "" } else { " · 4" };
    let elements = u128::from(block) * u128::from(items) * u128::from(vector);
    let most = MAX_BLOCK_ELEMENTS / (u128::from(block.max(1)) * u128::from(vector));
    SpecError::at_value(
        &["items", "block", "float4"],
        format!(
            "a block of {block} · {items} items{width} = {elements} elements is more than \
             2^30 = {MAX_BLOCK_ELEMENTS}; use `items: {most}` or less"
        ),
    )
}

pub(crate) fn last_warp_without_tree(block: u32) -> SpecError {
    SpecError::at_value(
        &["unroll_last_warp", "block"],
        format!(
            "`unroll_last_warp` starts where the last warp folds 64 values, and `block: {block}` \
             has only {block}; use `block: 64` or more, or leave the flag out"
        ),
    )
}

pub(crate) fn last_warp_and_shuffle() -> SpecError {
    SpecError::at_value(
        &["unroll_last_warp", "shuffle"],
        "`unroll_last_warp` and `shuffle` contradict each other: both replace the last steps of \
         the tree; leave one of them out"
            .into(),
    )
}

pub(crate) fn last_warp_of_divergent_tree() -> SpecError {
    SpecError::at_value(
        &["unroll_last_warp", "tree"],
        "`unroll_last_warp` needs the last 32 active threads in one warp, and \
         `tree: interleaved_divergent` spreads them over all warps; use `tree: interleaved` or \
         `tree: sequential`"
            .into(),
    )
}
