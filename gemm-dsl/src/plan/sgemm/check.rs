//! Checks of a GEMM spec. The documentation of the module `plan::sgemm` lists them.

mod groups;
pub(super) mod messages;
mod pairs;
pub(super) mod resources;
mod types;

use super::simt::tiled::TiledDraft;
use super::wgmma::WgmmaDraft;
use super::{MAX_SPLIT, direct, mma, simt, wgmma};
use crate::plan::{Faults, check_name};
use crate::spec::{Epilogue, SgemmSpec, SplitK};
use crate::target::arch::BLOCK_THREADS;

/// Maximum unroll factor. A longer loop body takes minutes to compile, and is not faster.
const MAX_UNROLL: u32 = 1024;

/// Draft geometry of a spec with a tile. The last checks read it.
#[expect(clippy::large_enum_variant, reason = "it is built once")]
pub(super) enum TileGeometry {
    /// Threads or `mma` instructions multiply the staged tiles.
    Tiled(TiledDraft),
    /// Warpgroups multiply the staged tiles.
    Wgmma(WgmmaDraft),
}

/// Collects all faults of a spec.
///
/// The order matters: a check is skipped if its arithmetic depends on a key that an earlier fault
/// concerns. Returns the geometry that the last checks read. It exists for every valid spec with a
/// tile.
pub(super) fn check(spec: &SgemmSpec, faults: &mut Faults) -> Option<TileGeometry> {
    check_name(spec.name.as_deref(), faults);
    faults.check_minimums(spec);
    operands_have_names(spec, faults);
    operands_of_batch(spec, faults);
    pairs::check(spec, faults);
    groups::check(spec, faults);
    types::check(spec, faults);
    unroll_is_short(spec, faults);
    split_is_a_grid(spec, faults);
    one_pipeline(spec, faults);
    faults.check_acting(spec);
    direct::check::acting(spec, faults);
    mma::check::acting(spec, faults);
    if let Some(tile) = spec.tile.filter(|_| spec.is_wgmma()) {
        wgmma::check::acting(spec, faults);
        wgmma::check::of_tile(spec, tile, faults);
        resources::extents(spec, faults);
        return wgmma::check::geometry(spec, tile, faults).map(TileGeometry::Wgmma);
    }
    mma::check::acting_on_converted(spec, faults);
    products_of_batch(spec, faults);
    // Reported after the check of the threads. Both checks depend on the tile, and both faults are
    // reported.
    let mut too_much_shared = None;
    if let Some(tile) = spec.tile {
        simt::check::acts_on_layout(spec, faults);
        simt::check::swizzle_of_rows(spec, tile, faults);
        simt::check::acts_on_thread(spec, faults);
        mma::check::of_tile(spec, tile, faults);
        simt::check::thread_divides(spec, tile, faults);
        simt::check::warp_divides(spec, tile, faults);
        simt::check::steps_of_tile(spec, tile, faults);
        too_much_shared = resources::shared_memory(spec, tile, faults);
    }
    partials_and_unroll(spec, faults);
    // If a tile exceeds shared memory, the arithmetic of its geometry may overflow.
    let shared_fits = too_much_shared.is_none();
    let draft = shared_fits.then(|| resources::geometry(spec, faults)).flatten();
    resources::threads(spec, shared_fits, draft.as_ref(), faults);
    faults.0.extend(too_much_shared);
    resources::extents(spec, faults);
    if let (Some(tile), Some(draft)) = (spec.tile, &draft) {
        types::copies(spec, draft.operands(), faults);
        resources::runs(spec, tile, draft, faults);
        mma::check::loads(spec, draft.mma(), faults);
    }
    draft.map(TileGeometry::Tiled)
}

/// Rejects epilogue operands with the name of a matrix, or of a factor of `scaled`, because a
/// launch identifies its arguments by name. The matrices for further values have names, too.
fn operands_have_names(spec: &SgemmSpec, faults: &mut Faults) {
    let outputs: Vec<_> = spec.epilogue.iter().flat_map(Epilogue::outputs).collect();
    for (param, _) in spec.epilogue.iter().flat_map(Epilogue::named) {
        match param.name.as_str() {
            name if outputs.iter().any(|(output, _)| output == name) => {
                faults.0.push(messages::name_of_output(param));
            }
            "a" | "b" => faults.0.push(messages::name_of_matrix(param)),
            name if spec.scaled && SgemmSpec::FACTORS.contains(&name) => {
                faults.0.push(messages::name_of_factor(param));
            }
            _ => {}
        }
    }
}

/// Rejects epilogue operands that only a batch has.
fn operands_of_batch(spec: &SgemmSpec, faults: &mut Faults) {
    if let (None, Some(param)) = (spec.batch, spec.operand_of_batch()) {
        faults.0.push(messages::operand_of_batch(param));
    }
}

fn unroll_is_short(spec: &SgemmSpec, faults: &mut Faults) {
    if let Some(unroll) = spec.unroll {
        faults.require(unroll <= MAX_UNROLL, || {
            messages::above(
                "unroll",
                unroll,
                MAX_UNROLL,
                "the loop body would be too long to compile",
            )
        });
    }
}

fn split_is_a_grid(spec: &SgemmSpec, faults: &mut Faults) {
    match spec.split_k {
        SplitK::Partitions(count) => faults.require(count <= MAX_SPLIT, || {
            messages::above("split_k", count, MAX_SPLIT, "a grid has no more blocks along y")
        }),
        SplitK::Auto => {}
    }
    let once = !spec.stream_k || spec.split_k == SplitK::Partitions(1);
    faults.require(once, messages::shared_twice);
}

fn products_of_batch(spec: &SgemmSpec, faults: &mut Faults) {
    if !faults.sound(&["products"]) {
        return;
    }
    if spec.products > BLOCK_THREADS {
        let because = "each needs at least one thread of the block";
        faults.0.push(messages::above("products", spec.products, BLOCK_THREADS, because));
    } else if spec.products > 1 {
        faults.require(spec.batch.is_some(), messages::products_of_one);
    }
}

fn one_pipeline(spec: &SgemmSpec, faults: &mut Faults) {
    let given = [
        ("prefetch", spec.prefetch),
        ("double_buffer", spec.double_buffer),
        ("stages", spec.stages.is_some()),
    ];
    let mut given = given.into_iter().filter_map(|(key, on)| on.then_some(key));
    if let Some(first) = given.next() {
        faults.0.extend(given.map(|key| messages::two_pipelines(key, first)));
    }
}

fn partials_and_unroll(spec: &SgemmSpec, faults: &mut Faults) {
    if let Some(unroll) = spec.unroll
        && faults.sound(&["partials", "unroll"])
    {
        faults.require(unroll.is_multiple_of(spec.partials), || {
            messages::partials_of_unroll(spec.partials, unroll)
        });
    }
}
