//! Tiles of a kernel with a single slot that threads fill.

use super::super::{Contradiction, warps};
use super::{Tiles, Turn};
use gemm_dsl::ir::Kernel;
use gemm_runtime::sim::watch::{Action, Detail, EventKind, Kind, Trace};
use std::collections::BTreeSet;

/// Returns the tiles that threads store between matrix instructions. Returns `None` for a kernel
/// that stores no tiles or uses mbarriers.
pub(super) fn tiles(kernel: &Kernel, trace: &Trace) -> Result<Option<Tiles>, Contradiction> {
    let read = operands(trace);
    let mut multiplied = trace.details.iter().filter(is_multiplied).peekable();
    let mut turns: Vec<Turn> = Vec::new();
    for (number, event) in trace.events.iter().enumerate() {
        while let Some(detail) = multiplied.next_if(|detail| detail.event <= number) {
            multiply(&mut turns, detail)?;
        }
        let EventKind::Access { pattern, .. } = &event.what else { continue };
        let pattern = &trace.patterns[*pattern as usize];
        if pattern.kind == Kind::Store && read.contains(&pattern.buffer) {
            let lanes = pattern.lanes.iter().flatten().count() as u64;
            store(&mut turns, event.warp, lanes * u64::from(pattern.bytes));
        }
    }
    let is_one_slot = kernel.mbarriers.is_empty() && !turns.is_empty();
    Ok(is_one_slot.then_some(Tiles { slots: 1, barriers: Vec::new(), turns }))
}

fn is_multiplied(detail: &&Detail) -> bool {
    matches!(detail.did, Action::Multiplied { .. })
}

/// Buffers read by matrix instructions.
fn operands(trace: &Trace) -> BTreeSet<usize> {
    let of = |detail: &Detail| match &detail.did {
        Action::Multiplied { a, b, .. } => [Some(a.buffer), Some(b.buffer)],
        _ => [None, None],
    };
    trace.details.iter().flat_map(of).flatten().collect()
}

/// Records a matrix instruction, which reads the last tile.
fn multiply(turns: &mut [Turn], detail: &Detail) -> Result<(), Contradiction> {
    let warp = (detail.rank, detail.warp);
    let nothing = || Contradiction::NothingStored { by: warps(&[warp]) };
    let turn = turns.last_mut().ok_or_else(nothing)?;
    turn.waited_by.insert(warp);
    turn.instructions += u64::from(detail.warp.is_multiple_of(4));
    Ok(())
}

/// Records a store of a warp. A store after a read starts the next tile.
fn store(turns: &mut Vec<Turn>, warp: u32, bytes: u64) {
    let number = turns.len();
    if turns.last().is_none_or(|turn| turn.instructions > 0) {
        let (after, phase) = (number.checked_sub(1), number as u32);
        turns.push(Turn { after, phase, is_complete: true, ..Turn::default() });
    }
    if let Some(turn) = turns.last_mut() {
        turn.asked_by.insert((0, warp));
        turn.come += bytes;
        turn.expected += bytes;
    }
}
