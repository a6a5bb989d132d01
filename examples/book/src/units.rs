//! Load of each unit of an SM.

pub use super::unit_name::UnitName;
use gemm_dsl::target::arch;
use gemm_perf::{DeviceModel, H200, Work};
use gemm_runtime::sim::{Counters, SassCounters};
use serde::Serialize;

/// Device whose SMs are modelled.
pub const DEVICE: DeviceModel = H200;

/// Warp instructions that an SM issues per cycle, and shared-memory wavefronts that it processes
/// per cycle.
pub(super) const ISSUED: f64 = arch::SCHEDULERS as f64;
const WAVEFRONTS: f64 = 1.0;

pub(super) const SECTOR_BYTES: u64 = arch::SECTOR_BYTES as u64;

/// FLOPs of an SM's tensor cores per cycle, for operands of `bits` bits. 32-bit operands have half
/// the rate of 16-bit ones.
fn matrix_flops(bits: u32) -> f64 {
    DEVICE.peak.wgmma_flops * 16.0 / f64::from(bits)
}

/// Load of a unit, in cycles of one SM.
#[derive(Clone, Debug, Serialize)]
pub struct Unit {
    pub name: UnitName,
    pub cycles: f64,
    /// Cycles according to the source counts.
    pub from_source: f64,
    /// True if `cycles` is also computed from source counts, because the compiled counts are
    /// unknown.
    pub is_from_source: bool,
    /// Description of the throughput per cycle.
    pub rate: String,
}

/// Returns the load of each unit, busiest first. The load is computed from source counts and, if
/// known, from counts of the compiled kernel, which may have fewer operations. `bits` is the width
/// of tensor-core operands, `bytes` the minimum memory traffic.
pub fn load(
    c: &Counters,
    compiled: Option<&SassCounters>,
    bits: Option<u32>,
    bytes: u64,
) -> Vec<Unit> {
    let unit = |name, [from_source, cycles]: [f64; 2], rate| {
        let is_counted = matches!(name, UnitName::Shared | UnitName::L2);
        let is_from_source = match compiled {
            None => is_counted || name == UnitName::Issue,
            Some(known) => match name {
                UnitName::Issue => known.instructions.is_none(),
                UnitName::Shared => has_unknown_writes(c),
                _ => false,
            },
        };
        Unit { name, cycles, from_source, is_from_source, rate }
    };
    let text = Work::from(c);
    let counted = compiled.map_or(text, |compiled| Work::compiled(c, compiled));
    let of = |name| [&text, &counted].map(|work| cycles_of(name, work, bytes as f64));
    let (sectors, from_memory) = (sectors_of_cycle(), DEVICE.memory_of_cycle());
    // The cost of reads of shared memory by `wgmma` does not depend on addresses, and the profiler
    // does not count these reads.
    let unread = if c.wgmma > 0 { ", without reads of matrix instructions" } else { "" };
    let rates = [
        (UnitName::Issue, format!("{ISSUED} warp instructions per cycle")),
        (UnitName::Shared, format!("{WAVEFRONTS} wavefront per cycle{unread}")),
        (UnitName::L2, format!("{sectors} sectors per cycle, without L1 hits")),
        (UnitName::Memory, format!("{from_memory:.1} bytes per cycle, each element once")),
    ];
    let mut units: Vec<Unit> =
        rates.into_iter().map(|(name, rate)| unit(name, of(name), rate)).collect();
    units.extend(bits.map(|bits| {
        let of_cycle = matrix_flops(bits);
        let rate = format!("{of_cycle} FLOPs per cycle");
        let longer = f64::from(bits) / 16.0;
        unit(UnitName::TensorCores, of(UnitName::TensorCores).map(|n| longer * n), rate)
    }));
    units.sort_by(|a, b| b.cycles.total_cmp(&a.cycles));
    units
}

fn sectors_of_cycle() -> f64 {
    DEVICE.peak.l2_bytes / SECTOR_BYTES as f64
}

/// Cycles that a unit needs for the work and for `bytes` of memory traffic. For tensor cores,
/// 16-bit operands are assumed.
pub(super) fn cycles_of(name: UnitName, work: &Work, bytes: f64) -> f64 {
    match name {
        UnitName::Issue => work.instructions / ISSUED,
        UnitName::Shared => work.shared_wavefronts / WAVEFRONTS,
        UnitName::L2 => work.sectors / sectors_of_cycle(),
        UnitName::Memory => bytes / DEVICE.memory_of_cycle(),
        UnitName::TensorCores => (work.mma_flops + work.wgmma_flops) / matrix_flops(16),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Wavefronts {
    /// Wavefronts caused by bank conflicts.
    pub conflicts: u64,
    pub all: u64,
    /// True for source counts, which are used if the compiled counts are unknown.
    pub is_from_source: bool,
}

/// Returns the wavefronts of shared memory, as compiled if known, otherwise from source.
pub fn wavefronts(c: &Counters, compiled: Option<&SassCounters>) -> Wavefronts {
    match compiled.filter(|_| !has_unknown_writes(c)) {
        None => Wavefronts {
            conflicts: c.shared_bank_conflicts,
            all: c.shared_wavefronts,
            is_from_source: true,
        },
        Some(known) => Wavefronts {
            conflicts: known.shared_load_conflicts + known.shared_store_conflicts,
            all: known.shared_load_wavefronts + known.shared_store_wavefronts,
            is_from_source: false,
        },
    }
}

/// Returns true if asynchronous copies write shared memory. The model of the compiled kernel does
/// not count the wavefronts of these writes.
fn has_unknown_writes(c: &Counters) -> bool {
    c.copies > 0
}

/// Cycles of an SM to issue the multiply-adds alone.
pub fn issuing_fmas(c: &Counters) -> f64 {
    c.fma as f64 / ISSUED
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_source(text: &Counters, compiled: Option<&SassCounters>) -> Vec<(UnitName, f64)> {
        let units = load(text, compiled, Some(16), 16);
        units.iter().filter(|of| of.is_from_source).map(|of| (of.name, of.cycles)).collect()
    }

    /// For a kernel with arrays in local memory, the compiled instructions are unknown. Wavefronts
    /// and sectors are known.
    #[test]
    fn unknown_compiled_counters_fall_back_to_the_source() {
        let mut text = Counters::default();
        (text.instructions, text.shared_wavefronts, text.global_sectors) = (4000, 100, 20);
        let mut known = SassCounters::default();
        (known.instructions, known.shared_load_wavefronts) = (None, 50);
        assert_eq!(from_source(&text, Some(&known)), [(UnitName::Issue, 1000.0)]);
        known.instructions = Some(1);
        assert_eq!(from_source(&text, Some(&known)), []);
        let names: Vec<UnitName> =
            from_source(&text, None).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, [UnitName::Issue, UnitName::Shared, UnitName::L2]);
    }

    /// 989.4 TFLOP/s with bf16 operands on 132 SMs at 1.83 GHz are 4096 FLOPs per SM and cycle
    /// (data sheet of H200). TF32 operands have half the rate, 8-bit operands twice the rate.
    #[test]
    fn rate_of_tensor_cores_depends_on_the_operands() {
        let mut text = Counters::default();
        (text.wgmma, text.mma_flops) = (100, 4096 * 100);
        for (bits, cycles) in [(8, 50.0), (16, 100.0), (32, 200.0)] {
            let units = load(&text, None, Some(bits), 0);
            let unit = units.iter().find(|unit| unit.name == UnitName::TensorCores);
            let unit = unit.expect("the load of tensor cores");
            assert_eq!((unit.cycles, unit.from_source), (cycles, cycles));
            assert_eq!(unit.rate, format!("{} FLOPs per cycle", 4096 * 16 / bits));
        }
    }
}
