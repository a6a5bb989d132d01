//! What can be wrong with a reduction.

use super::SpecError;
use crate::plan::MAX_BLOCK_ELEMENTS;

pub(crate) fn block_zero() -> SpecError {
    SpecError::at_value(
        &["block"],
        "`block: 0`: a block needs threads; use a power of two from 32 to 1024, such as 256".into(),
    )
}

pub(crate) fn block_small(block: u32) -> SpecError {
    SpecError::at_value(
        &["block"],
        format!("`block: {block}` is less than one warp of 32 threads; use 32 or more"),
    )
}

pub(crate) fn block_large(block: u32) -> SpecError {
    SpecError::at_value(
        &["block"],
        format!(
            "`block: {block}` is more than the 1024 threads a block may have; use 1024 or less"
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
