//! What a kernel asks of each unit of a multiprocessor.

pub use super::unit_name::UnitName;
use gemm_runtime::{Compiled, Counters};
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
    pub name: UnitName,
    /// Its cycles on one multiprocessor.
    pub cycles: f64,
    /// Those that the counts of the text would take.
    pub by_text: f64,
    /// Whether its cycles are by the text too, as its count as compiled is not known.
    pub is_by_text: bool,
    /// What it does in a cycle.
    pub rate: &'static str,
}

/// The units that a kernel asks something of, those that it asks most first: by its counts as compiled where these are known, and
/// by those of its text, which the compiler needs not all of. `bits` are those of what tensor cores multiply, `bytes` those of all
/// operands, each once.
pub fn asked(
    c: &Counters,
    compiled: Option<&Compiled>,
    bits: Option<u32>,
    bytes: usize,
) -> Vec<Unit> {
    let unit = |name, [by_text, cycles]: [f64; 2], rate| {
        let is_counted = matches!(name, UnitName::Shared | UnitName::L2);
        let is_by_text = match compiled {
            None => is_counted || name == UnitName::Issue,
            Some(known) => name == UnitName::Issue && known.instructions.is_none(),
        };
        Unit { name, cycles, by_text, is_by_text, rate }
    };
    let boxes = c.bulk_bytes as f64 / SECTOR_BYTES as f64;
    let text = [c.instructions, c.shared_wavefronts, c.global_sectors].map(|count| count as f64);
    let [instructions, wavefronts, sectors] = match compiled {
        None => text,
        Some(known) => [
            known.instructions.map_or(text[0], |count| count as f64),
            (known.shared_load_wavefronts + known.shared_store_wavefronts) as f64,
            (known.global_load_sectors + known.global_store_sectors) as f64,
        ],
    };
    let sectors = [text[2] + boxes, sectors + boxes];
    let mut units = vec![
        unit(UnitName::Issue, [text[0], instructions].map(|of| of / ISSUED), "4 of a warp a cycle"),
        unit(
            UnitName::Shared,
            [text[1], wavefronts].map(|of| of / WAVEFRONTS),
            "1 wavefront a cycle",
        ),
        unit(UnitName::L2, sectors.map(|of| of / SECTORS), "2 sectors a cycle, none cached nearer"),
        unit(
            UnitName::Memory,
            [bytes as f64 / MEMORY_BYTES; 2],
            "16 bytes a cycle, each element once",
        ),
    ];
    let of_format = MATRIX_FLOPS.into_iter().find(|(of, ..)| Some(*of) == bits);
    units.extend(of_format.map(|(_, of_cycle, rate)| {
        unit(UnitName::TensorCores, [c.mma_flops as f64 / of_cycle; 2], rate)
    }));
    units.sort_by(|a, b| b.cycles.total_cmp(&a.cycles));
    units
}

/// Wavefronts of shared memory that conflicts take, and all of them: as compiled where that is known.
pub fn conflicts(c: &Counters, compiled: Option<&Compiled>) -> [u64; 2] {
    match compiled {
        None => [c.shared_bank_conflicts, c.shared_wavefronts],
        Some(known) => [
            known.shared_load_conflicts + known.shared_store_conflicts,
            known.shared_load_wavefronts + known.shared_store_wavefronts,
        ],
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn by_text(text: &Counters, compiled: Option<&Compiled>) -> Vec<(UnitName, f64)> {
        let units = asked(text, compiled, Some(16), 16);
        units.iter().filter(|of| of.is_by_text).map(|of| (of.name, of.cycles)).collect()
    }

    /// Of a kernel with arrays in local memory instructions are not known, and wavefronts and sectors are.
    #[test]
    fn what_is_by_the_text_for_want_of_others_says_so() {
        let mut text = Counters::default();
        (text.instructions, text.shared_wavefronts, text.global_sectors) = (4000, 100, 20);
        let mut known = Compiled::default();
        (known.instructions, known.shared_load_wavefronts) = (None, 50);
        assert_eq!(by_text(&text, Some(&known)), [(UnitName::Issue, 1000.0)]);
        known.instructions = Some(1);
        assert_eq!(by_text(&text, Some(&known)), []);
        let names: Vec<UnitName> = by_text(&text, None).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, [UnitName::Issue, UnitName::Shared, UnitName::L2]);
    }
}
