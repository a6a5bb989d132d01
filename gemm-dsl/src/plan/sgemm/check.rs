//! What a matrix product must satisfy; the list stands in the documentation of the parent module.

mod messages;
pub(super) mod resources;

use super::MAX_SPLIT;
use super::{Axis, direct, mma, wgmma};
use crate::plan::sgemm::simt::tiled::{Draft, shared};
use crate::plan::sgemm::wgmma::TensorDraft;
use crate::plan::{Faults, check_name};
use crate::spec::{Arith, Epilogue, Fragment, Layout, Order, Rect, SgemmSpec, Split, Tile};
use crate::target::arch::{BLOCK_THREADS, WARP};

/// A longer body serves nobody and keeps the compiler busy for minutes.
const MAX_UNROLL: u32 = 1024;

/// The geometry of a spec with a tile, of which the checks have found nothing wrong.
#[expect(clippy::large_enum_variant, reason = "it is made once")]
pub(super) enum Geometry {
    /// Threads multiply what they have staged.
    Tiled(Draft),
    /// Warpgroups multiply planes.
    Tensor(TensorDraft),
}

/// All faults of a spec. The order matters: a check is left out where an earlier fault is about a
/// key that its arithmetic rests on. Gives the geometry that the last checks read: there is one of every
/// spec with a tile and without a fault.
pub(super) fn check(spec: &SgemmSpec, faults: &mut Faults) -> Option<Geometry> {
    check_name(spec.name.as_deref(), faults);
    faults.check_minimums(spec);
    operands_have_names(spec, faults);
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
        return wgmma::check::geometry(spec, tile, faults).map(Geometry::Tensor);
    }
    products_of_batch(spec, faults);
    // Pushed after the check of the threads: both rest on the tile, and neither hides the other.
    let mut too_much_shared = None;
    if let Some(tile) = spec.tile {
        acts_on_layout(spec, faults);
        swizzle_of_rows(spec, tile, faults);
        acts_on_thread(spec, faults);
        mma::check::of_tile(spec, tile, faults);
        thread_divides(spec, tile, faults);
        warp_divides(spec, tile, faults);
        steps_of_tile(spec, tile, faults);
        too_much_shared = resources::shared_memory(spec, tile, faults);
    }
    partials_and_unroll(spec, faults);
    // A tile that is too large for shared memory may be so for arithmetic.
    let shared_fits = too_much_shared.is_none();
    let draft = shared_fits.then(|| resources::geometry(spec, faults)).flatten();
    resources::threads(spec, shared_fits, draft.as_ref(), faults);
    faults.0.extend(too_much_shared);
    resources::extents(spec, faults);
    if let (Some(tile), Some(draft)) = (spec.tile, &draft) {
        resources::vectors(spec, tile, draft, faults);
        mma::check::loads(spec, draft, faults);
    }
    draft.map(Geometry::Tiled)
}

/// A launch names what it is given: no operand is called as a matrix, or as a factor of `scaled`.
fn operands_have_names(spec: &SgemmSpec, faults: &mut Faults) {
    for (param, _) in spec.epilogue.iter().flat_map(Epilogue::named) {
        match param.name.as_str() {
            "a" | "b" => faults.0.push(messages::name_of_matrix(param)),
            name if spec.scaled && SgemmSpec::FACTORS.contains(&name) => {
                faults.0.push(messages::name_of_factor(param));
            }
            _ => {}
        }
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
        Split::Ranges(ranges) => faults.require(ranges <= MAX_SPLIT, || {
            messages::above("split_k", ranges, MAX_SPLIT, "a grid has no more blocks along y")
        }),
        Split::Auto => {}
    }
    let once = !spec.stream_k || spec.split_k == Split::Ranges(1);
    faults.require(once, messages::shared_twice);
}

fn products_of_batch(spec: &SgemmSpec, faults: &mut Faults) {
    if !faults.sound(&["products"]) {
        return;
    }
    if spec.products > BLOCK_THREADS {
        let because = "each takes a thread of the block at least";
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

fn acts_on_layout(spec: &SgemmSpec, faults: &mut Faults) {
    let acts = !spec.transpose || spec.layout != Layout::Tn;
    faults.require(acts, messages::transpose_of_nothing);
}

/// Rows along K whose vectors are exchanged have as many as a power of two, and no padding.
fn swizzle_of_rows(spec: &SgemmSpec, tile: Tile, faults: &mut Faults) {
    if !spec.swizzle {
        return;
    }
    let along_k = shared(spec).map(|axis| axis == Axis::K);
    if along_k == [false; 2] {
        return faults.0.push(messages::swizzle_of_nothing());
    }
    for (key, pad, along_k) in
        [("pad_a", spec.pad_a, along_k[0]), ("pad_b", spec.pad_b, along_k[1])]
    {
        faults.require(!along_k || pad == 0, || messages::swizzle_beside_padding(key));
    }
    if faults.sound(&["tile"]) {
        let whole = tile.k.is_power_of_two() && tile.k >= 8;
        faults.require(whole, || messages::swizzle_of_row(tile.k));
    }
}

fn acts_on_thread(spec: &SgemmSpec, faults: &mut Faults) {
    let thread = spec.thread;
    if spec.arith != Arith::F32 {
        return;
    }
    if spec.order != Order::Row {
        faults.require(thread.m > 1 && thread.n > 1, || {
            messages::order_of_one_line(spec.order, thread)
        });
    }
    match spec.fragment {
        Fragment::Blocked => {}
        fragment if thread.area() == 1 => faults.0.push(messages::fragment_of_one(fragment)),
        Fragment::Strided => {}
        Fragment::Split => faults
            .require(thread.m.is_multiple_of(4) && thread.n.is_multiple_of(4), || {
                messages::split_thread(thread)
            }),
    }
}

fn thread_divides(spec: &SgemmSpec, tile: Tile, faults: &mut Faults) {
    let thread = spec.thread;
    if faults.sound(&["tile", "thread"]) {
        faults.require(tile.m.is_multiple_of(thread.m) && tile.n.is_multiple_of(thread.n), || {
            messages::thread_does_not_divide(tile, thread)
        });
    }
}

fn warp_divides(spec: &SgemmSpec, tile: Tile, faults: &mut Faults) {
    let Some(warp) = spec.warp else { return };
    if !faults.sound(&["warp"]) {
        return;
    }
    let thread = spec.thread_tile();
    let sound_tile = faults.sound(&["tile"]).then_some(tile);
    if thread.area() > 0 && faults.sound(&["thread"]) {
        if !warp.m.is_multiple_of(thread.m) || !warp.n.is_multiple_of(thread.n) {
            faults.0.push(messages::thread_does_not_divide_warp(warp, thread));
        } else {
            let lanes = u64::from(warp.m / thread.m) * u64::from(warp.n / thread.n);
            faults.require(lanes == u64::from(WARP), || {
                messages::warp_lanes(warp, thread, warp_of_32(thread, sound_tile))
            });
        }
    }
    if faults.sound(&["tile", "warp"]) {
        faults.require(tile.m.is_multiple_of(warp.m) && tile.n.is_multiple_of(warp.n), || {
            messages::warp_does_not_divide(tile, warp)
        });
    }
}

/// The warp tile nearest to a square of 32 thread tiles, if one divides the block tile.
fn warp_of_32(thread: Rect, tile: Option<Tile>) -> Option<(u64, u64)> {
    let divides = |(m, n): (u64, u64), tile: Tile| {
        u64::from(tile.m).is_multiple_of(m) && u64::from(tile.n).is_multiple_of(n)
    };
    [(8, 4), (4, 8), (16, 2), (2, 16), (32, 1), (1, 32)]
        .map(|(rows, cols)| (u64::from(thread.m) * rows, u64::from(thread.n) * cols))
        .into_iter()
        .find(|&size| tile.is_none_or(|tile| divides(size, tile)))
}

fn steps_of_tile(spec: &SgemmSpec, tile: Tile, faults: &mut Faults) {
    if !faults.sound(&["slices", "tile"]) {
        return;
    }
    if !tile.k.is_multiple_of(spec.slices) {
        return faults.0.push(messages::slices_of_tile(spec.slices, tile.k));
    }
    let (steps, slices) = (spec.steps(tile), spec.slices);
    if spec.stages.is_none() {
        if faults.sound(&["spread"]) {
            faults.require(spec.spread == 1, messages::spread_without_stages);
        }
    } else {
        if faults.sound(&["unroll"]) {
            faults.require(spec.unroll.is_none(), messages::unroll_with_stages);
        }
        // The largest K has no even neighbour above it, and no place in shared memory either.
        if spec.arith == Arith::F32
            && let Some(even) =
                steps.checked_add(steps % 2).and_then(|even| even.checked_mul(slices))
            && faults.sound(&["stages", "tile"])
        {
            faults.require(tile.k == even, || messages::stages_on_odd_tile(tile.k, even, slices));
        }
        if faults.sound(&["spread", "tile", "arith"]) {
            // The last step of multiply-adds waits for the next tile.
            let waits = u32::from(spec.arith == Arith::F32);
            let most = steps.saturating_sub(waits);
            faults.require(spec.spread <= most || steps == waits, || {
                messages::spread_beyond_tile(spec.spread, steps, most)
            });
        }
    }
    if faults.sound(&["partials", "tile"]) {
        faults.require(steps.is_multiple_of(spec.partials), || {
            messages::partials_of_tile(spec.partials, steps)
        });
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
