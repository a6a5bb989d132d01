//! Checks of GEMMs that multiply staged tiles on CUDA cores. GEMMs on tensor cores share the checks
//! of the pipelines.

mod messages;

use crate::plan::Faults;
use crate::plan::sgemm::operand::{Axis, shared_axes};
use crate::spec::{Arith, Fragment, GemmLayout, Order, Rect, SgemmSpec, Tile};
use crate::target::arch::WARP;

pub(crate) fn acts_on_layout(spec: &SgemmSpec, faults: &mut Faults) {
    let acts = !spec.transpose || spec.layout != GemmLayout::Tn;
    faults.require(acts, messages::transpose_of_nothing);
}

/// Checks that rows of swizzled K-major tiles have no padding and a power-of-two length.
pub(crate) fn swizzle_of_rows(spec: &SgemmSpec, tile: Tile, faults: &mut Faults) {
    if !spec.swizzle {
        return;
    }
    let along_k = shared_axes(spec).map(|axis| axis == Axis::K);
    if along_k == [false; 2] {
        return faults.0.push(messages::swizzle_of_nothing());
    }
    for (key, pad, along_k) in
        [("pad_a", spec.pad_a, along_k[0]), ("pad_b", spec.pad_b, along_k[1])]
    {
        faults.require(!along_k || pad == 0, || messages::swizzle_beside_padding(key));
    }
    if faults.sound(&["tile"]) {
        let types = spec.types();
        let lanes = [types.a, types.b].map(|elem| u32::from(elem.vector_lanes()));
        let least = lanes.into_iter().fold(8, u32::max);
        let whole = tile.k.is_power_of_two() && tile.k >= least;
        faults.require(whole, || messages::swizzle_of_row(tile.k, least));
    }
}

pub(crate) fn acts_on_thread(spec: &SgemmSpec, faults: &mut Faults) {
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
        Fragment::SplitN => {
            faults.require(thread.n.is_multiple_of(4), || messages::split_columns(thread))
        }
    }
}

pub(crate) fn thread_divides(spec: &SgemmSpec, tile: Tile, faults: &mut Faults) {
    let thread = spec.thread;
    if faults.sound(&["tile", "thread"]) {
        faults.require(tile.m.is_multiple_of(thread.m) && tile.n.is_multiple_of(thread.n), || {
            messages::thread_does_not_divide(tile, thread)
        });
    }
}

pub(crate) fn warp_divides(spec: &SgemmSpec, tile: Tile, faults: &mut Faults) {
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

/// Returns the warp tile of 32 thread tiles that is closest to a square and divides the block tile,
/// if there is one.
fn warp_of_32(thread: Rect, tile: Option<Tile>) -> Option<(u64, u64)> {
    let divides = |(m, n): (u64, u64), tile: Tile| {
        u64::from(tile.m).is_multiple_of(m) && u64::from(tile.n).is_multiple_of(n)
    };
    [(8, 4), (4, 8), (16, 2), (2, 16), (32, 1), (1, 32)]
        .map(|(rows, cols)| (u64::from(thread.m) * rows, u64::from(thread.n) * cols))
        .into_iter()
        .find(|&size| tile.is_none_or(|tile| divides(size, tile)))
}

pub(crate) fn steps_of_tile(spec: &SgemmSpec, tile: Tile, faults: &mut Faults) {
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
        // No even number follows the largest K, but such a tile exceeds shared memory anyway.
        if spec.arith == Arith::F32
            && let Some(even) =
                steps.checked_add(steps % 2).and_then(|even| even.checked_mul(slices))
            && faults.sound(&["stages", "tile"])
        {
            faults.require(tile.k == even, || messages::stages_on_odd_tile(tile.k, even, slices));
        }
        if faults.sound(&["spread", "tile", "arith"]) {
            // On CUDA cores, no copies are issued in a tile's last step, which waits for the next
            // tile.
            let waits = u32::from(spec.arith == Arith::F32);
            let most = steps.saturating_sub(waits);
            faults.require(spec.spread <= most || steps == waits, || {
                messages::spread_beyond_tile(spec, steps, most)
            });
        }
    }
    if faults.sound(&["partials", "tile"]) {
        faults.require(steps.is_multiple_of(spec.partials), || {
            messages::partials_of_tile(spec, steps)
        });
    }
}
