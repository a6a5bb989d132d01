//! Operands of `wgmma` instructions in shared memory. Pictures show swizzled tiles, the slots of
//! the ring with the phases of their barriers, and the operands of each warpgroup.

mod contradiction;
pub mod swizzle;

pub use contradiction::Contradiction;
use gemm_dsl::ir::Kernel;
use gemm_runtime::sim::watch::Trace;
use serde::Serialize;

/// Operands and tiles of a `wgmma` kernel.
#[derive(Clone, Debug, Serialize)]
pub struct WgmmaTiles {
    /// Distinct layouts of tiles in shared memory.
    pub swizzles: Vec<swizzle::SwizzledTile>,
    /// Tiles that were in the slots of the ring, or in the single slot that threads fill.
    pub ring: Option<multistage::Tiles>,
    pub held: Vec<fragments::Fragment>,
}

/// Returns the tiles of the first block, or `None` for a kernel without `wgmma` instructions.
///
/// # Errors
/// Returns a [`Contradiction`] if recorded events contradict each other.
pub(super) fn tiles(kernel: &Kernel, trace: &Trace) -> Result<Option<WgmmaTiles>, Contradiction> {
    let swizzles = swizzle::all(kernel, trace)?;
    if swizzles.is_empty() {
        return Ok(None);
    }
    let (ring, held) = (multistage::tiles(kernel, trace)?, fragments::all(kernel, trace)?);
    Ok(Some(WgmmaTiles { swizzles, ring, held }))
}

/// Physical extents of an array, or `None` if its layout has no order of dimensions.
pub(super) fn extents(kernel: &Kernel, buffer: usize) -> Option<Vec<u64>> {
    let dims = kernel.buffers.get(buffer)?.physical_dims()?;
    dims.iter().map(|dim| u64::try_from(kernel.eval_const(dim).ok()?).ok()).collect()
}

/// Formats numbers as ranges: `0–3, 8`.
pub(super) fn ranges(numbers: impl IntoIterator<Item = u32>) -> String {
    let mut runs: Vec<[u32; 2]> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some([_, last]) if *last + 1 == number => *last = number,
            _ => runs.push([number; 2]),
        }
    }
    let run = |[from, to]: &[u32; 2]| match from == to {
        true => from.to_string(),
        false => format!("{from}–{to}"),
    };
    runs.iter().map(run).collect::<Vec<_>>().join(", ")
}

/// Describes warps. Each is given by the rank of its block in the cluster and its number in the
/// block.
pub(super) fn warps<'w>(all: impl IntoIterator<Item = &'w (u32, u32)>) -> String {
    let all: Vec<(u32, u32)> = all.into_iter().copied().collect();
    let mut ranks: Vec<u32> = all.iter().map(|(rank, _)| *rank).collect();
    ranks.dedup();
    let of = |rank: &u32| {
        let own: Vec<u32> =
            all.iter().filter(|(of, _)| of == rank).map(|(_, warp)| *warp).collect();
        let word = if own.len() == 1 { "warp" } else { "warps" };
        let block =
            if *rank == 0 { String::new() } else { format!(" of block {rank} of the cluster") };
        format!("{word} {}{block}", ranges(own))
    };
    ranks.iter().map(of).collect::<Vec<_>>().join(", ")
}

pub mod fragments;
pub mod multistage;
#[cfg(test)]
mod tests;
