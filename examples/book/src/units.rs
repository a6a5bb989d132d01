//! What a kernel asks of each unit of a multiprocessor.

pub use super::unit_name::UnitName;
use gemm_dsl::target::arch;
use gemm_perf::{DeviceModel, H200, Work};
use gemm_runtime::{Counters, SassCounters};
use serde::Serialize;

/// The device of whose multiprocessors the units are.
pub const DEVICE: DeviceModel = H200;

/// Instructions of warps that a multiprocessor issues in a cycle, and wavefronts of shared memory.
pub(super) const ISSUED: f64 = arch::SCHEDULERS as f64;
const WAVEFRONTS: f64 = 1.0;

/// Bytes of a sector.
pub(super) const SECTOR_BYTES: u64 = arch::SECTOR_BYTES as u64;

/// Multiplications and additions of its tensor cores in a cycle, of numbers of so many bits: of 32, half as many as of 16.
fn matrix_flops(bits: u32) -> f64 {
    DEVICE.peak.wgmma_flops * 16.0 / f64::from(bits)
}

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
    pub rate: String,
}

/// The units that a kernel asks something of, those that it asks most first: by its counts as compiled where these are known, and
/// by those of its text, which the compiler needs not all of. `bits` are those of what tensor cores multiply, `bytes` those that
/// are moved at least.
pub fn asked(
    c: &Counters,
    compiled: Option<&SassCounters>,
    bits: Option<u32>,
    bytes: u64,
) -> Vec<Unit> {
    let unit = |name, [by_text, cycles]: [f64; 2], rate| {
        let is_counted = matches!(name, UnitName::Shared | UnitName::L2);
        let is_by_text = match compiled {
            None => is_counted || name == UnitName::Issue,
            Some(known) => match name {
                UnitName::Issue => known.instructions.is_none(),
                UnitName::Shared => has_unknown_writes(c),
                _ => false,
            },
        };
        Unit { name, cycles, by_text, is_by_text, rate }
    };
    let text = Work::from(c);
    let counted = compiled.map_or(text, |compiled| Work::compiled(c, compiled));
    let of = |name| [&text, &counted].map(|work| cycles_of(name, work, bytes as f64));
    let (sectors, from_memory) = (sectors_of_cycle(), DEVICE.memory_of_cycle());
    // That depends on no address, and no profiler tells it.
    let unread = if c.wgmma > 0 { ", without what matrix instructions read" } else { "" };
    let rates = [
        (UnitName::Issue, format!("{ISSUED} of a warp a cycle")),
        (UnitName::Shared, format!("{WAVEFRONTS} wavefront a cycle{unread}")),
        (UnitName::L2, format!("{sectors} sectors a cycle, none cached nearer")),
        (UnitName::Memory, format!("{from_memory:.1} bytes a cycle, each element once")),
    ];
    let mut units: Vec<Unit> =
        rates.into_iter().map(|(name, rate)| unit(name, of(name), rate)).collect();
    units.extend(bits.map(|bits| {
        let of_cycle = matrix_flops(bits);
        let rate = format!("{of_cycle} FLOPs a cycle");
        let longer = f64::from(bits) / 16.0;
        unit(UnitName::TensorCores, of(UnitName::TensorCores).map(|n| longer * n), rate)
    }));
    units.sort_by(|a, b| b.cycles.total_cmp(&a.cycles));
    units
}

fn sectors_of_cycle() -> f64 {
    DEVICE.peak.l2_bytes / SECTOR_BYTES as f64
}

/// The cycles that a unit would need for work, beside which so many bytes come from memory; of tensor cores as if all numbers had
/// 16 bits.
pub(super) fn cycles_of(name: UnitName, work: &Work, bytes: f64) -> f64 {
    match name {
        UnitName::Issue => work.instructions / ISSUED,
        UnitName::Shared => work.shared_wavefronts / WAVEFRONTS,
        UnitName::L2 => work.sectors / sectors_of_cycle(),
        UnitName::Memory => bytes / DEVICE.memory_of_cycle(),
        UnitName::TensorCores => (work.mma_flops + work.wgmma_flops) / matrix_flops(16),
    }
}

/// Wavefronts of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Wavefronts {
    /// Those that bank conflicts take.
    pub conflicts: u64,
    /// All of them.
    pub all: u64,
    /// Whether that is by the text, as the count as compiled is not known.
    pub is_by_text: bool,
}

/// Wavefronts of shared memory: as compiled where that is known.
pub fn wavefronts(c: &Counters, compiled: Option<&SassCounters>) -> Wavefronts {
    match compiled.filter(|_| !has_unknown_writes(c)) {
        None => Wavefronts {
            conflicts: c.shared_bank_conflicts,
            all: c.shared_wavefronts,
            is_by_text: true,
        },
        Some(known) => Wavefronts {
            conflicts: known.shared_load_conflicts + known.shared_store_conflicts,
            all: known.shared_load_wavefronts + known.shared_store_wavefronts,
            is_by_text: false,
        },
    }
}

/// Whether asynchronous copies write shared memory: that is told by the text alone, with all other accesses.
fn has_unknown_writes(c: &Counters) -> bool {
    c.copies > 0
}

/// The cycles in which the multiply-adds alone would be issued.
pub fn issuing_fmas(c: &Counters) -> f64 {
    c.fma as f64 / ISSUED
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_text(text: &Counters, compiled: Option<&SassCounters>) -> Vec<(UnitName, f64)> {
        let units = asked(text, compiled, Some(16), 16);
        units.iter().filter(|of| of.is_by_text).map(|of| (of.name, of.cycles)).collect()
    }

    /// Of a kernel with arrays in local memory instructions are not known, and wavefronts and sectors are.
    #[test]
    fn what_is_by_the_text_for_want_of_others_says_so() {
        let mut text = Counters::default();
        (text.instructions, text.shared_wavefronts, text.global_sectors) = (4000, 100, 20);
        let mut known = SassCounters::default();
        (known.instructions, known.shared_load_wavefronts) = (None, 50);
        assert_eq!(by_text(&text, Some(&known)), [(UnitName::Issue, 1000.0)]);
        known.instructions = Some(1);
        assert_eq!(by_text(&text, Some(&known)), []);
        let names: Vec<UnitName> = by_text(&text, None).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, [UnitName::Issue, UnitName::Shared, UnitName::L2]);
    }
}
