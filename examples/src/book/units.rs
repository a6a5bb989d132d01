//! What a kernel's text asks of each unit of a multiprocessor.

use gemm_runtime::Counters;
use serde::Serialize;

/// What a large GPU does in a cycle of one of its multiprocessors: warp instructions issued,
/// wavefronts of shared memory, sectors from the L2 cache, and bytes from memory.
const ISSUED: f64 = 4.0;
const WAVEFRONTS: f64 = 1.0;
const SECTORS: f64 = 2.0;
const MEMORY_BYTES: f64 = 16.0;

/// Bytes of a sector.
pub(super) const SECTOR_BYTES: u64 = 32;

/// And the multiplications and additions of its tensor cores, by bits of what they multiply.
const MATRIX_FLOPS: [(u32, f64, &str); 2] =
    [(16, 4096.0, "4096 FLOPs a cycle"), (32, 2048.0, "2048 FLOPs a cycle")];

/// A unit, and how long it would take for what it is asked.
#[derive(Clone, Debug, Serialize)]
pub struct Unit {
    /// The unit.
    pub name: &'static str,
    /// Its cycles on one multiprocessor.
    pub cycles: f64,
    /// What it does in a cycle.
    pub rate: &'static str,
}

/// The units that a text asks something of, those that it asks most first. These are counts of the text, and no limits of a GPU: the
/// compiler merges loads of neighbouring elements and drops instructions, and caches answer some of the accesses. `bits` are
/// those of what tensor cores multiply, `bytes` those of all operands, each once.
pub fn asked(c: &Counters, bits: Option<u32>, bytes: usize) -> Vec<Unit> {
    let sectors = c.global_sectors as f64 + c.bulk_bytes as f64 / SECTOR_BYTES as f64;
    let unit = |name, cycles, rate| Unit { name, cycles, rate };
    let mut units = vec![
        unit("instruction issue", c.instructions as f64 / ISSUED, "4 of a warp a cycle"),
        unit("shared memory", c.shared_wavefronts as f64 / WAVEFRONTS, "1 wavefront a cycle"),
        unit("L2 cache", sectors / SECTORS, "2 sectors a cycle, none cached nearer"),
        unit("memory", bytes as f64 / MEMORY_BYTES, "16 bytes a cycle, each element once"),
    ];
    let of_format = MATRIX_FLOPS.into_iter().find(|(of, ..)| Some(*of) == bits);
    units.extend(
        of_format
            .map(|(_, of_cycle, rate)| unit("tensor cores", c.mma_flops as f64 / of_cycle, rate)),
    );
    units.sort_by(|a, b| b.cycles.total_cmp(&a.cycles));
    units
}

/// The cycles that multiply-adds of lanes and of tensor cores take at least, on one multiprocessor.
pub fn arithmetic(c: &Counters, bits: Option<u32>) -> f64 {
    let of_format = MATRIX_FLOPS.into_iter().find(|(of, ..)| Some(*of) == bits);
    let tensor = of_format.map_or(0.0, |(_, of_cycle, _)| c.mma_flops as f64 / of_cycle);
    issuing_fmas(c).max(tensor)
}

/// The cycles in which the multiply-adds alone would be issued.
pub fn issuing_fmas(c: &Counters) -> f64 {
    c.fma as f64 / ISSUED
}
