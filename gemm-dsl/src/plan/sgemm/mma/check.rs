//! Checks of GEMMs on tensor cores.

mod messages;

use super::MmaPlan;
use crate::ir::Elem;
use crate::ir::Mma;
use crate::plan::Faults;
use crate::spec::{Arith, Fragment, Order, Rect, SgemmSpec, Tile};

/// Rows and columns of one instruction's output.
const INSTRUCTION: Rect = Rect::new(Mma::ROWS as u32, Mma::COLS as u32);

/// Rejects keys that choose a thread's elements, because the tensor-core instruction fixes them.
pub(crate) fn acting(spec: &SgemmSpec, faults: &mut Faults) {
    if spec.arith == Arith::F32 {
        return;
    }
    let given = [
        (
            "thread",
            spec.thread != Rect::new(1, 1),
            "the warp tile determines the elements of a lane",
        ),
        (
            "fragment",
            spec.fragment != Fragment::Blocked,
            "the instruction determines the elements of a lane",
        ),
        ("order", spec.order != Order::Row, "there are no multiply-adds to order"),
        ("partials", spec.partials > 1, "`promote` sets the K extent of a partial sum instead"),
    ];
    for (key, is_given, because) in given {
        if is_given && faults.sound(&[key]) {
            faults.0.push(messages::beside_tensor_cores(key, spec.arith, because));
        }
    }
}

/// Rejects keys that choose how matrices in `f32` are copied and read, if converted matrices are
/// copied instead.
pub(crate) fn acting_on_converted(spec: &SgemmSpec, faults: &mut Faults) {
    if !spec.converts_matrices() || spec.is_wgmma() {
        return;
    }
    let given = [
        ("transpose", spec.transpose, "converted matrices are always K-major"),
        ("ldmatrix", spec.ldmatrix, "tiles of converted matrices are always read by `ldmatrix`"),
    ];
    for (key, is_given, because) in given {
        if is_given && faults.sound(&[key]) {
            faults.0.push(messages::beside_converted(key, because));
        }
    }
    let Some(format) = spec.arith.format() else { return };
    let lanes = Elem::from_format(format).vector_lanes().into();
    for (key, pad) in [("pad_a", spec.pad_a), ("pad_b", spec.pad_b)] {
        if faults.sound(&[key]) {
            let whole = pad.is_multiple_of(lanes);
            faults.require(whole, || messages::padding_of_vectors(key, pad, lanes));
        }
    }
}

/// Checks the warp tile against the block tile and the instruction's tile.
pub(crate) fn of_tile(spec: &SgemmSpec, tile: Tile, faults: &mut Faults) {
    if spec.arith == Arith::F32 {
        return;
    }
    // A fault of these keys already concerns `mma: wgmma`, which needs no warp tile.
    if !faults.sound(&["copy", "producer", "persistent", "cluster"]) {
        return;
    }
    if spec.arith.is_scaled() {
        return faults.0.push(messages::scaled_by_lanes(spec.arith));
    }
    let Some(warp) = spec.warp else {
        return faults.0.push(messages::without_warp(spec.arith, warp_of(tile)));
    };
    if faults.sound(&["warp"]) {
        let whole = is_multiple(warp, INSTRUCTION);
        faults.require(whole, || messages::warp_of_instructions(warp, INSTRUCTION));
    }
    steps(spec, tile, faults);
}

/// Rejects `ldmatrix` if neither tile can be read by it.
pub(crate) fn loads(spec: &SgemmSpec, mma: Option<MmaPlan>, faults: &mut Faults) {
    let reads = mma.is_some_and(|plan| plan.loads_a() || plan.loads_b());
    faults.require(!spec.ldmatrix || reads, messages::ldmatrix_of_nothing);
}

fn is_multiple(whole: Rect, of: Rect) -> bool {
    whole.m.is_multiple_of(of.m) && whole.n.is_multiple_of(of.n)
}

/// Suggests a warp tile that divides the block tile.
fn warp_of(tile: Tile) -> Option<Rect> {
    let sides = [(64, 32), (32, 64), (32, 32), (32, 16), (16, 32), (16, 16), (16, 8)];
    let mut rects = sides.into_iter().map(|(m, n)| Rect::new(m, n));
    rects.find(|warp| is_multiple(Rect::new(tile.m, tile.n), *warp))
}

/// Checks that the K of a tile divides evenly into instructions, slices and intervals of `promote`.
pub(crate) fn steps(spec: &SgemmSpec, tile: Tile, faults: &mut Faults) {
    let terms = spec.k_per_step();
    if !faults.sound(&["tile", "slices"]) {
        return;
    }
    let of_all = u64::from(terms) * u64::from(spec.slices);
    if tile.k.is_multiple_of(terms) && !(tile.k / terms).is_multiple_of(spec.slices) {
        return faults.0.push(messages::slices_of_steps(spec, tile, tile.k / terms));
    }
    if !u64::from(tile.k).is_multiple_of(of_all) {
        return faults.0.push(messages::steps_of_tile(spec, tile, of_all));
    }
    let Some(promote) = spec.promote.filter(|_| faults.sound(&["promote"])) else { return };
    let own = tile.k / spec.slices;
    if promote == 0 || !promote.is_multiple_of(terms) {
        faults.0.push(messages::promote_of_instructions(promote, spec.arith, terms));
    } else if !own.is_multiple_of(promote) {
        faults.0.push(messages::promote_of_tile(promote, own));
    }
}
