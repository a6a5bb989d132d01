//! What matrix instructions of four warps read, and how it came there: tiles in shared memory under their swizzle, the slots of the
//! ring and the phases of the barriers that hand them on, and which warpgroup multiplies what.

mod contradiction;
pub mod swizzle;

pub use contradiction::Contradiction;
use gemm_dsl::ir::Kernel;
use gemm_runtime::watch::Trace;
use serde::Serialize;

/// What was seen of a kernel with matrix instructions of four warps.
#[derive(Clone, Debug, Serialize)]
pub struct WgmmaTiles {
    /// How tiles lie in shared memory: each way once.
    pub swizzles: Vec<swizzle::SwizzledTile>,
    /// The tiles that went through the ring, or through the one slot that threads fill.
    pub ring: Option<multistage::Tiles>,
    /// Which warpgroup multiplies what.
    pub held: Vec<fragments::Fragment>,
}

/// What was seen of the first block; none of a kernel without such instructions.
///
/// # Errors
/// What was seen and is not all so.
pub(super) fn tiles(kernel: &Kernel, trace: &Trace) -> Result<Option<WgmmaTiles>, Contradiction> {
    let swizzles = swizzle::all(kernel, trace)?;
    if swizzles.is_empty() {
        return Ok(None);
    }
    let (ring, held) = (multistage::tiles(kernel, trace)?, fragments::all(kernel, trace)?);
    Ok(Some(WgmmaTiles { swizzles, ring, held }))
}

/// The extents of an array as it lies; none of one that has no order.
pub(super) fn extents(kernel: &Kernel, buffer: usize) -> Option<Vec<u64>> {
    let dims = kernel.buffers.get(buffer)?.physical_dims()?;
    dims.iter().map(|dim| u64::try_from(kernel.eval_const(dim).ok()?).ok()).collect()
}

/// Numbers as ranges: `0–3, 8`.
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

/// Warps, by the number of their block in the cluster and their own, in words.
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
