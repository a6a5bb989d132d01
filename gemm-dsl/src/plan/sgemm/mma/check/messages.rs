//! Error messages for GEMMs on tensor cores.

use crate::error::SpecError;
use crate::plan::messages::remainders;
use crate::spec::{Arith, Rect, SgemmSpec, Tile};

pub(crate) fn beside_tensor_cores(key: &'static str, arith: Arith, because: &str) -> SpecError {
    SpecError::at_key(
        &[key, "arith"],
        format!("`{key}` has no effect under `arith: {arith}`: {because}; leave `{key}` out"),
    )
}

pub(crate) fn beside_converted(key: &'static str, because: &str) -> SpecError {
    SpecError::at_key(
        &[key, "convert"],
        format!("`{key}` has no effect under `convert: matrix`: {because}; leave `{key}` out"),
    )
}

pub(crate) fn padding_of_vectors(key: &'static str, pad: u32, of: u32) -> SpecError {
    let next = u64::from(pad).next_multiple_of(of.into());
    SpecError::at_value(
        &[key, "convert", "arith"],
        format!(
            "`{key}: {pad}`: `ldmatrix` needs rows aligned to 16 bytes = {of} elements: {pad} mod \
             {of} = {}; use {next}",
            pad % of.max(1),
        ),
    )
}

pub(crate) fn scaled_by_lanes(arith: Arith) -> SpecError {
    SpecError::at_value(
        &["arith", "mma"],
        format!(
            "`arith: {arith}` scales rows and columns by their greatest magnitudes, which are \
             known only if A and B are split before the GEMM; add `mma: wgmma`, or use `arith: \
             bf16x6`"
        ),
    )
}

pub(crate) fn ldmatrix_of_nothing() -> SpecError {
    SpecError::at_key(
        &["ldmatrix", "layout", "transpose", "pad_a", "pad_b"],
        "`ldmatrix` has no effect: it reads 16-byte-aligned rows of K-major tiles, and with this \
         `layout`, `transpose` and padding no tile has such rows; leave it out"
            .into(),
    )
}

/// `better` is a valid warp tile, if there is one.
pub(crate) fn without_warp(arith: Arith, better: Option<Rect>) -> SpecError {
    let remedy = match better {
        Some(warp) => format!("add a warp tile such as `warp: {warp}`"),
        None => "use a tile whose M is a multiple of 16 and whose N is a multiple of 8, and add \
                 `warp: 16x8`"
            .to_owned(),
    };
    SpecError::at_value(
        &["arith", "warp", "tile", "mma"],
        format!(
            "`arith: {arith}` needs `warp`: tensor cores compute the tile of a whole warp; {remedy}"
        ),
    )
}

pub(crate) fn warp_of_instructions(warp: Rect, of: Rect) -> SpecError {
    let next = |side: u32, of: u32| u64::from(side).next_multiple_of(of.into());
    SpecError::at_value(
        &["warp", "arith"],
        format!(
            "`warp: {warp}` is not a multiple of the {of} tile of a matrix instruction: {}; use \
             `warp: {}x{}`",
            remainders([("rows", warp.m, of.m), ("columns", warp.n, of.n)]),
            next(warp.m, of.m),
            next(warp.n, of.n),
        ),
    )
}

pub(crate) fn steps_of_tile(spec: &SgemmSpec, tile: Tile, of_all: u64) -> SpecError {
    let terms = spec.k_per_step();
    let slices = match spec.slices {
        1 => String::new(),
        slices => format!(", {slices} slices multiply {of_all}"),
    };
    SpecError::at_value(
        &["tile", "arith", "slices"],
        format!(
            "`arith: {}` multiplies {terms} elements of K at once{slices}, and `tile: {tile}` has \
             K = {}: {} mod {of_all} = {}; use a multiple of {of_all} as K",
            spec.arith,
            tile.k,
            tile.k,
            u64::from(tile.k) % of_all.max(1),
        ),
    )
}

/// Reports that the number of steps of a tile is not a multiple of `slices`.
pub(crate) fn slices_of_steps(spec: &SgemmSpec, tile: Tile, steps: u32) -> SpecError {
    let (slices, terms) = (spec.slices, spec.k_per_step());
    SpecError::at_value(
        &["slices", "tile", "arith"],
        format!(
            "`slices: {slices}` distributes the steps of a tile, and `tile: {tile}` has {} / \
             {terms} = {steps} steps of `arith: {}`: {steps} mod {slices} = {}; use a divisor of \
             {steps}",
            tile.k,
            spec.arith,
            steps % slices,
        ),
    )
}

pub(crate) fn promote_of_instructions(promote: u32, arith: Arith, terms: u32) -> SpecError {
    if promote == 0 {
        let message = format!(
            "`promote: 0`: a partial sum covers at least one instruction; use a multiple of \
             {terms}, the K of one instruction under `arith: {arith}`"
        );
        return SpecError::at_value(&["promote", "arith"], message);
    }
    SpecError::at_value(
        &["promote", "arith"],
        format!(
            "`promote: {promote}` is not a multiple of {terms}, the K of one instruction under \
             `arith: {arith}`: {promote} mod {terms} = {}; use a multiple of {terms}",
            promote % terms.max(1),
        ),
    )
}

pub(crate) fn promote_of_tile(promote: u32, own: u32) -> SpecError {
    SpecError::at_value(
        &["promote", "tile", "slices"],
        format!(
            "`promote: {promote}` does not divide {own}, the part of the tile's K that a warp \
             accumulates: {own} mod {promote} = {}; use a divisor of {own}",
            own % promote.max(1),
        ),
    )
}
