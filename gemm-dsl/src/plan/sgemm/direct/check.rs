//! Checks of kernels whose threads compute tiles of C without staging operands in shared memory.

pub(in crate::plan::sgemm) mod messages;

use super::{DirectPlan, lanes_of_sum, shared, step};
use crate::ir::Variant;
use crate::plan::Faults;
use crate::plan::sgemm::occupancy;
use crate::plan::sgemm::registers::Registers;
use crate::plan::sgemm::shared_memory::blocks_by_shared;
use crate::spec::SgemmSpec;

/// Rejects `coarsen` and `partials` in a kernel whose threads compute tiles of C.
pub(crate) fn acting(spec: &SgemmSpec, faults: &mut Faults) {
    let Some(by) = spec.direct_by() else { return };
    for (key, given) in [("coarsen", spec.coarsen > 1), ("partials", spec.partials > 1)] {
        if given && faults.sound(&[key]) {
            faults.0.push(messages::beside_tiles_of_threads(key, by));
        }
    }
}

pub(crate) fn threads(spec: &SgemmSpec) -> u64 {
    let block = spec.block_or_default();
    let of_slice = u64::from(block.rows) * u64::from(block.cols);
    let lanes = u64::from(lanes_of_sum(spec.lanes));
    of_slice.saturating_mul(lanes).saturating_mul(spec.slices.into())
}

/// Checks registers, shared memory and vectors. The block's thread count must be valid.
pub(crate) fn resources(spec: &SgemmSpec, threads: u64, faults: &mut Faults) {
    if !faults.sound(&["block", "thread", "slices", "unroll", "blocks_per_sm", "split_k"]) {
        return;
    }
    let bare = registers(spec, threads, 0);
    if !bare.fit() {
        return faults.0.push(occupancy::messages::registers(guilty(spec, &bare), &bare));
    }
    let (bytes, blocks) = (shared(spec), spec.resident_blocks());
    // One block always fits in shared memory. It needs at most the bytes of its threads'
    // accumulators and two paddings to 16 bytes. Its accumulators and fragments fit in registers,
    // and the fragments take at least as many bytes as the paddings.
    let most = blocks_by_shared(bytes);
    faults.require(u128::from(blocks) <= most, || {
        occupancy::messages::resident_shared(blocks, bytes, most)
    });
    let draft = DirectPlan::new(spec, Variant::Vector);
    let whole = registers(
        spec,
        threads,
        Registers::of_operands(spec, spec.thread, Some(&draft.epilogue())),
    );
    faults.require(whole.fit(), || occupancy::messages::registers("epilogue", &whole));
    faults.require(!spec.float4 || draft.has_vectors(), || {
        messages::float4_without_access(spec.layout, spec.thread)
    });
}

/// Registers of a thread: its accumulators and all loads in flight.
fn registers(spec: &SgemmSpec, threads: u64, operands: u128) -> Registers {
    let thread = spec.thread;
    let lines = u128::from(thread.m) + u128::from(thread.n);
    Registers {
        thread,
        partials: 1,
        folds_tiles: false,
        fragments: lines * u128::from(step(spec)) * u128::from(spec.unroll.unwrap_or(1)),
        staged: 0,
        operands,
        threads,
        blocks_per_sm: spec.resident_blocks(),
    }
}

/// Returns the key whose change would make the registers fit.
fn guilty(spec: &SgemmSpec, sum: &Registers) -> &'static str {
    let of_step = sum.fragments / u128::from(spec.unroll.unwrap_or(1));
    if (Registers { blocks_per_sm: 1, ..*sum }).fit() {
        "blocks_per_sm"
    } else if (Registers { fragments: of_step, ..*sum }).fit() {
        "unroll"
    } else {
        "thread"
    }
}
