//! Error messages for GEMMs with `mma: wgmma`.

use crate::error::SpecError;
use crate::ir::Wgmma;
use crate::plan::WgmmaPlan;
use crate::spec::{Arith, GemmLayout, Rect, SgemmSpec, Tile};
use crate::target::arch::{LARGEST, THREAD_REGISTERS};

pub(crate) fn beside_wgmma(key: &'static str, because: &str) -> SpecError {
    SpecError::at_key(
        &[key, "mma"],
        format!("`{key}` has no effect under `mma: wgmma`: {because}; leave `{key}` out"),
    )
}

pub(crate) fn stages_without_boxes() -> SpecError {
    SpecError::at_key(
        &["stages", "copy"],
        "`stages` has no effect: all threads copy a tile, and then all multiply it; add `copy: \
         tma`, or leave `stages` out"
            .into(),
    )
}

/// `key` excludes `swap_ab`.
pub(crate) fn swapped(key: &'static str, because: &str) -> SpecError {
    SpecError::at_key(
        &[key, "swap_ab"],
        format!("`{key}` and `swap_ab` exclude each other: {because}; leave one of them out"),
    )
}

/// Names of the tile's extents along the rows and along the columns of an instruction.
fn axes(spec: &SgemmSpec) -> [(&'static str, &'static str); 2] {
    let (rows, columns) = (("M", "rows"), ("N", "columns"));
    if spec.swap_ab { [columns, rows] } else { [rows, columns] }
}

/// Keys that such messages are about.
fn keys(spec: &SgemmSpec) -> &'static [&'static str] {
    if spec.swap_ab { &["tile", "mma", "swap_ab"] } else { &["tile", "mma"] }
}

pub(crate) fn rows_of_tile(spec: &SgemmSpec, tile: Tile, most: u32) -> SpecError {
    let ([(axis, unit), _], of) = (axes(spec), Wgmma::ROWS);
    let rows = if spec.swap_ab { tile.n } else { tile.m };
    let message = if rows > most {
        format!(
            "`tile: {tile}`: {axis} = {rows} is above {most}, the most {unit} of a tile under \
             `mma: wgmma`; use {axis} = {most}"
        )
    } else {
        format!(
            "`tile: {tile}` has {axis} = {rows}, and a warpgroup computes {of} {unit}: {rows} mod \
             {of} = {}; use {axis} = {}",
            rows % of,
            rows.next_multiple_of(of),
        )
    };
    SpecError::at_value(keys(spec), message)
}

pub(crate) fn columns_of_tile(spec: &SgemmSpec, tile: Tile, most: u32) -> SpecError {
    let [_, (axis, unit)] = axes(spec);
    let columns = if spec.swap_ab { tile.m } else { tile.n };
    let message = if columns > most {
        format!(
            "`tile: {tile}`: {axis} = {columns} is above {most}, the most {unit} of one `wgmma` \
             instruction; use {axis} = {most}"
        )
    } else {
        format!(
            "`tile: {tile}` has {axis} = {columns}, and a `wgmma` instruction computes a multiple \
             of 8 {unit}: {columns} mod 8 = {}; use {axis} = {}",
            columns % 8,
            columns.next_multiple_of(8),
        )
    };
    SpecError::at_value(keys(spec), message)
}

pub(crate) fn columns_of_integers(spec: &SgemmSpec, columns: u32) -> SpecError {
    let key = if spec.warp.is_some() { "warp" } else { "tile" };
    SpecError::at_value(
        &[key, "tile", "a", "mma"],
        format!(
            "a `wgmma` instruction on integers computes 8 or 24 columns, or a multiple of 16 up to \
             256, and a warpgroup has {columns}: {columns} mod 16 = {}; use {} columns",
            columns % 16,
            columns.next_multiple_of(16).min(256),
        ),
    )
}

/// `part` is the number of columns that one copy or instruction must divide, and `of` their unit.
pub(crate) fn columns_of_slab(spec: &SgemmSpec, part: u32, of: u32) -> SpecError {
    if spec.swap_ab {
        return SpecError::at_value(
            &["tile", "layout", "swap_ab"],
            format!(
                "under `layout: {}` and `swap_ab`, `mma: wgmma` reads A in rows of at least {of} \
                 elements, and {part} rows of A are read at once: {part} mod {of} = {}; use a \
                 higher tile, or `layout: {}`",
                spec.layout,
                part % of,
                if spec.layout.transposes_b() { GemmLayout::Nt } else { GemmLayout::Nn },
            ),
        );
    }
    let (keys, remedy): (&[_], _) = match spec.warp {
        Some(_) => (&["warp", "tile", "cluster", "layout"], "a wider `warp`"),
        None if spec.cluster > 1 => (&["cluster", "tile", "layout"], "a smaller cluster"),
        None => (&["tile", "layout"], "a wider tile"),
    };
    SpecError::at_value(
        keys,
        format!(
            "under `layout: {}`, `mma: wgmma` reads B in rows of at least {of} columns, and {part} \
             columns are read at once: {part} mod {of} = {}; use {remedy}, or `layout: {}`",
            spec.layout,
            part % of,
            if spec.layout.transposes_a() { GemmLayout::Tt } else { GemmLayout::Nt },
        ),
    )
}

/// `better` is a valid warp tile.
pub(crate) fn warp_of_warpgroup(warp: Rect, better: Rect) -> SpecError {
    SpecError::at_value(
        &["warp", "tile", "mma"],
        format!(
            "`warp: {warp}`: under `mma: wgmma`, a warp tile has {} rows, and its columns are a \
             multiple of 8 that divides the tile's N = {}; use `warp: {better}`, or leave `warp` \
             out",
            better.m, better.n,
        ),
    )
}

/// `rows` are the valid K extents of a tile, in elements.
pub(crate) fn row_of_tile(arith: Arith, tile: Tile, rows: &[u32]) -> SpecError {
    let rows: Vec<String> = rows.iter().map(u32::to_string).collect();
    SpecError::at_value(
        &["tile", "arith", "mma"],
        format!(
            "`tile: {tile}` has K = {}, and `mma: wgmma` reads rows of 32, 64 or 128 bytes; with \
             `arith: {arith}`, use one of {} as K",
            tile.k,
            rows.join(", "),
        ),
    )
}

pub(crate) fn blocks_of_cluster(blocks: u32, most: u32) -> SpecError {
    SpecError::at_value(
        &["cluster", "tile"],
        format!("`cluster: {blocks}`: a cluster has at most {most} blocks; use 2 to {most}"),
    )
}

pub(crate) fn parts_of_cluster(blocks: u32, tile: Tile) -> SpecError {
    let of_all = 8 * blocks;
    SpecError::at_value(
        &["cluster", "tile"],
        format!(
            "`cluster: {blocks}`: each of the {blocks} blocks loads an equal part of the {} \
             columns of `tile: {tile}`, and the part must be a multiple of 8: {} mod (8 · \
             {blocks}) = {}; use a multiple of {of_all} as N, or another `cluster`",
            tile.n,
            tile.n,
            tile.n % of_all,
        ),
    )
}

pub(crate) fn ranges_of_cluster() -> SpecError {
    SpecError::at_key(
        &["cluster", "split_k"],
        "`cluster` and `split_k` cannot be combined: no kernel has both clusters and split-K; \
         leave one of them out"
            .into(),
    )
}

pub(crate) fn threads(tile: Tile, plan: &WgmmaPlan) -> SpecError {
    SpecError::at_value(
        &["warp", "tile", "producer"],
        format!(
            "`tile: {tile}` in warpgroup tiles of 64x{} needs {} threads{}, and a block has at \
             most 1024; use a wider `warp`",
            plan.columns(),
            plan.threads(),
            if plan.producer() { ", 128 of them for `producer`" } else { "" },
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
    let (guilty, remedy) = match blocks > 1 {
        true => ("blocks_per_sm", "use a smaller `blocks_per_sm`"),
        false => ("tile", "use a `tile` with fewer columns, or a narrower `warp` if given"),
    };
    let limit = match plan.registers() {
        Some(_) => format!("`setmaxnreg` gives a consumer thread {available}"),
        None if available == THREAD_REGISTERS => format!("a thread has at most {available}"),
        None => format!(
            "{} registers shared by {} threads · {blocks} {} leave {available} per thread",
            LARGEST.registers,
            plan.threads(),
            if blocks == 1 { "block" } else { "blocks" },
        ),
    };
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
            "a thread needs 64·{} elements / 128 threads = {sums} registers for its \
             accumulators{more} + {beside} others = {needed}, and {limit}; {remedy}",
            plan.columns(),
        ),
    )
}
