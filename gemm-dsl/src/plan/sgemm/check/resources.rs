//! Checks of the resources that a GEMM uses in a block and on an SM.

use super::super::MAX_EXTENT;
use crate::error::SpecError;
use crate::plan::Faults;
use crate::plan::residency::{resident_blocks, resident_threads};
use crate::plan::sgemm::direct;
use crate::plan::sgemm::occupancy::{messages, resident_shared};
use crate::plan::sgemm::registers::Registers;
use crate::plan::sgemm::shared_memory::SharedBytes;
use crate::plan::sgemm::simt::tiled::{self, TiledDraft};
use crate::spec::{Arith, SgemmSpec, Tile};
use crate::target::arch::{BLOCK_THREADS, LARGEST};

/// Keys that determine the amount of shared memory.
const SHARED_KEYS: [&str; 11] = [
    "tile",
    "transpose",
    "pad_a",
    "pad_b",
    "double_buffer",
    "stages",
    "layout",
    "products",
    "slices",
    "convert",
    "b_in_parts",
];

/// Checks a block's shared memory against its limit. The fault names the key to change.
pub(super) fn shared_memory(spec: &SgemmSpec, tile: Tile, faults: &Faults) -> Option<SpecError> {
    if !faults.sound(&SHARED_KEYS) {
        return None;
    }
    let sum = SharedBytes::of_spec(spec, tile);
    if sum.fits() {
        return None;
    }
    let bare = spec.clone().pad_a(0).pad_b(0);
    let single = SharedBytes { buffers: 1, ..sum };
    let of_product = SharedBytes::of_spec(&spec.clone().products(1), tile);
    let whole = SharedBytes::of_spec(&spec.clone().slices(1), tile);
    let (guilty, remedy) = if of_product.fits() {
        let most = u128::from(LARGEST.shared_per_block) / of_product.total();
        ("products", format!("use `products: {most}` or less, or a smaller tile"))
    } else if whole.fits() {
        ("slices", "leave `slices` out, or use a smaller tile".to_owned())
    } else if SharedBytes::of_spec(&bare, tile).fits() {
        let guilty = if spec.pad_a >= spec.pad_b { "pad_a" } else { "pad_b" };
        (guilty, "use less padding".to_owned())
    } else if spec.stages.is_some() {
        let most = u128::from(LARGEST.shared_per_block) / single.total().max(1);
        if most >= 2 {
            ("stages", format!("use `stages: {most}` or less, or a smaller tile"))
        } else {
            ("tile", "use a smaller tile".to_owned())
        }
    } else if spec.double_buffer && single.fits() {
        ("double_buffer", "leave `double_buffer` out, or use a smaller tile".to_owned())
    } else {
        ("tile", "use a smaller tile".to_owned())
    };
    let mut keys = vec![guilty];
    keys.extend(SHARED_KEYS.into_iter().filter(|key| *key != guilty));
    Some(messages::shared_memory(spec, &keys, &sum, &remedy))
}

/// Returns true if no fault concerns a key that the geometry depends on.
fn has_geometry(faults: &Faults) -> bool {
    faults.sound(&SHARED_KEYS)
        && faults.sound(&["thread", "warp", "fragment", "prefetch", "arith", "promote"])
}

/// Builds the geometry if every key it depends on is valid.
pub(super) fn geometry(spec: &SgemmSpec, faults: &Faults) -> Option<TiledDraft> {
    let tile = spec.tile.filter(|_| has_geometry(faults))?;
    Some(TiledDraft::new(spec, tile))
}

/// Checks that the vectors and runs of copies divide the lines of the tiles.
pub(super) fn runs(spec: &SgemmSpec, tile: Tile, draft: &TiledDraft, faults: &mut Faults) {
    if !has_geometry(faults) {
        return;
    }
    let [a, b] = draft.operands();
    if spec.adjacent > 1 && faults.sound(&["adjacent", "float4"]) {
        for operand in [a, b] {
            let whole = operand.line().is_multiple_of(spec.adjacent);
            faults.require(whole, || messages::adjacent_of_line(spec.adjacent, &operand, tile));
        }
    }
    if !spec.float4 {
        return;
    }
    for operand in [a, b].iter().filter(|operand| operand.width() > 1) {
        let whole = operand.line().is_multiple_of(operand.width());
        faults.require(whole, || messages::float4_width(operand, tile));
    }
    let acts = draft.has_global_vectors() || a.fragment_width() > 1 || b.fragment_width() > 1;
    faults.require(acts, || messages::float4_without_access(tile));
}

/// Checks the threads of a block. If the block's shared memory is within its limit, also checks the
/// blocks per SM and the registers.
pub(super) fn threads(
    spec: &SgemmSpec,
    shared_fits: bool,
    draft: Option<&TiledDraft>,
    faults: &mut Faults,
) {
    resident_blocks(spec.resident_blocks(), faults);
    let rests_on: &[&str] = match spec.tile {
        Some(_) => &["tile", "thread", "warp", "arith", "mma", "copy", "products", "slices"],
        None => &["block", "slices"],
    };
    if !faults.sound(rests_on) {
        return;
    }
    let threads = match spec.tile {
        Some(tile) => tiled::threads(spec, tile),
        None => direct::check::threads(spec),
    };
    if threads > BLOCK_THREADS.into() {
        faults.0.push(match spec.tile {
            Some(tile) => messages::tile_threads(tile, spec),
            None => direct::check::messages::block_threads(spec, threads),
        });
        return;
    }
    resident_threads(spec.resident_blocks(), threads, faults);
    if let Some(tile) = spec.tile
        && shared_fits
        && faults.sound(&SHARED_KEYS)
    {
        resident_shared(spec, &SharedBytes::of_spec(spec, tile), faults);
    }
    if spec.is_direct() {
        return direct::check::resources(spec, threads, faults);
    }
    // If the tile exceeds shared memory, the registers of its prefetched elements are not reported
    // as a second fault.
    if shared_fits && faults.sound(&["blocks_per_sm", "partials", "thread"]) {
        registers(spec, threads, draft, faults);
        if let Some(draft) = draft {
            draft.check_staging(spec, faults);
        }
    }
}

/// Checks that a thread's accumulators, fragments and prefetched elements fit in registers
/// together. The compiler needs a few more registers, so spills remain possible.
fn registers(spec: &SgemmSpec, threads: u64, draft: Option<&TiledDraft>, faults: &mut Faults) {
    let thread = spec.thread_tile();
    // Fragments are double-buffered under asynchronous copies.
    let copies = if spec.stages.is_some() { 2 } else { 1 };
    let staged = match draft {
        Some(draft) if spec.prefetch || spec.double_buffer => {
            draft.operands().iter().map(|operand| u128::from(operand.staged())).sum()
        }
        _ => 0,
    };
    let operands = Registers::of_operands(spec, thread, draft.map(TiledDraft::epilogue));
    let sum = |partials, blocks_per_sm| Registers {
        thread,
        partials,
        folds_tiles: spec.fold_tiles && partials > 1,
        fragments: match draft.and_then(TiledDraft::mma) {
            Some(mma) => mma.registers().into(),
            None => (u128::from(thread.m) + u128::from(thread.n)) * copies,
        },
        staged,
        operands,
        threads,
        blocks_per_sm,
    };
    let bare = Registers { operands: 0, ..sum(spec.partials, spec.resident_blocks()) };
    let guilty = if bare.fit() {
        "epilogue"
    } else if sum(spec.partials, 1).fit() {
        "blocks_per_sm"
    } else if sum(1, spec.resident_blocks()).fit() {
        "partials"
    } else if spec.arith != Arith::F32 {
        "warp"
    } else {
        "thread"
    };
    let whole = sum(spec.partials, spec.resident_blocks());
    let reported = if bare.fit() { &whole } else { &bare };
    faults.require(whole.fit(), || messages::registers(guilty, reported));
}

pub(super) fn extents(spec: &SgemmSpec, faults: &mut Faults) {
    let block = spec.block_or_default();
    let (rows, cols) = match spec.tile {
        Some(tile) => (tile.m, tile.n),
        None => (block.rows.saturating_mul(spec.thread.m), block.cols),
    };
    if spec.tile.is_none() {
        faults.require(u64::from(spec.coarsen) * u64::from(cols) <= MAX_EXTENT, || {
            messages::too_wide("coarsen", spec.coarsen, cols, "columns")
        });
    }
    if let Some(raster) = spec.raster
        && faults.sound(&["tile"])
    {
        faults.require(u64::from(raster) * u64::from(rows) <= MAX_EXTENT, || {
            messages::too_wide("raster", raster, rows, "rows")
        });
    }
}
