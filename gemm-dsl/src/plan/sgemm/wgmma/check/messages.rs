//! Error messages for GEMMs with `mma: wgmma`.

use crate::error::SpecError;
use crate::plan::WgmmaPlan;
use crate::spec::{Arith, Rect, Tile};

pub(crate) fn beside_wgmma(key: &'static str, because: &str) -> SpecError {
    SpecError::at_key(
        &[key, "mma"],
        format!("`{key}` has no effect: {because}, under `mma: wgmma`; leave it out"),
    )
}

pub(crate) fn stages_without_boxes() -> SpecError {
    SpecError::at_key(
        &["stages", "copy"],
        "`stages` has no effect: all threads copy a tile, and then all multiply it; add `copy: \
         tma`, or leave it out"
            .into(),
    )
}

pub(crate) fn rows_of_tile(tile: Tile, of: u32, most: u32) -> SpecError {
    let better = tile.m.min(most).next_multiple_of(of);
    SpecError::at_value(
        &["tile", "mma"],
        format!(
            "`tile: {tile}` has {} rows, and each warpgroup computes {of}: {} mod {of} = {}, and \
             at most {most} are copied at once; use M = {better}",
            tile.m,
            tile.m,
            tile.m % of,
        ),
    )
}

pub(crate) fn columns_of_tile(tile: Tile, most: u32) -> SpecError {
    let better = tile.n.min(most).next_multiple_of(8);
    SpecError::at_value(
        &["tile", "mma"],
        format!(
            "`tile: {tile}` has {} columns, and `mma: wgmma` computes a multiple of 8, at most \
             {most}: {} mod 8 = {}; use N = {better}",
            tile.n,
            tile.n,
            tile.n % 8,
        ),
    )
}

/// `better` is a valid warp tile.
pub(crate) fn warp_of_warpgroup(warp: Rect, better: Rect) -> SpecError {
    SpecError::at_value(
        &["warp", "tile", "mma"],
        format!(
            "`warp: {warp}`: under `mma: wgmma` a warp has {} rows of C and a multiple of 8 \
             columns that divides the columns of the tile; use `warp: {better}`, or leave it out",
            better.m,
        ),
    )
}

/// `rows` are the valid K extents of a tile, in elements.
pub(crate) fn row_of_tile(arith: Arith, tile: Tile, rows: &[u32]) -> SpecError {
    let rows: Vec<String> = rows.iter().map(u32::to_string).collect();
    SpecError::at_value(
        &["tile", "arith", "mma"],
        format!(
            "`tile: {tile}` has K = {}, and `mma: wgmma` reads rows of 32, 64 or 128 bytes, which \
             are {} elements of `arith: {arith}`; use one of these",
            tile.k,
            rows.join(", "),
        ),
    )
}

pub(crate) fn parts_of_cluster(blocks: u32, tile: Tile, most: u32) -> SpecError {
    SpecError::at_value(
        &["cluster", "tile"],
        format!(
            "`cluster: {blocks}`: each of its blocks, at most {most}, loads a part of the {} \
             columns of `tile: {tile}`, a multiple of 8; use 2 to {most} blocks, and an N that is \
             a multiple of 8 for each",
            tile.n,
        ),
    )
}

pub(crate) fn ranges_of_cluster() -> SpecError {
    SpecError::at_key(
        &["cluster", "split_k"],
        "`cluster` and `split_k` contradict each other: split-K partitions of \
         clusters are not supported; leave one of them out"
            .into(),
    )
}

pub(crate) fn threads(tile: Tile, plan: &WgmmaPlan) -> SpecError {
    SpecError::at_value(
        &["warp", "tile", "producer"],
        format!(
            "`tile: {tile}` in warpgroup tiles of 64x{} is {} threads{}, and a block has at most \
             1024; use a wider `warp`",
            plan.columns(),
            plan.threads(),
            if plan.producer() { " with those of `producer`" } else { "" },
        ),
    )
}

pub(crate) fn registers(plan: &WgmmaPlan, available: u32, blocks: u32) -> SpecError {
    let sums = plan.columns() / 2;
    let (fresh, operands) = (plan.fresh(), plan.operands());
    let more = match fresh.max(operands) {
        0 => String::new(),
        more if operands > fresh => format!(" + {more} for operands of the epilogue"),
        more => format!(" + {more} for partial accumulators"),
    };
    let needed = plan.registers_of_thread();
    let beside = needed - sums - fresh.max(operands);
    let guilty = if blocks > 1 { "blocks_per_sm" } else { "tile" };
    let remedy = if blocks > 1 { "use fewer blocks" } else { "use a smaller N" };
    let keys = [guilty, "tile", "warp", "arith", "promote", "producer"];
    let keys: Vec<&'static str> = keys
        .iter()
        .enumerate()
        .filter(|(i, key)| *i == 0 || **key != guilty)
        .map(|(_, k)| *k)
        .collect();
    SpecError::at_value(
        &keys,
        format!(
            "a thread needs 64 · {} / 128 = {sums} registers for its accumulators{more} + \
             {beside} others = {needed}, and {} threads · {blocks} {} leave it {available}; \
             {remedy}",
            plan.columns(),
            plan.threads(),
            if blocks == 1 { "block" } else { "blocks" },
        ),
    )
}
