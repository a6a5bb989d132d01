//! Rough lower bound of a kernel's time, with which slow candidates are skipped before a launch.

use gemm_dsl::parse;
use gemm_dsl::plan::KernelKind;
use gemm_dsl::spec::SgemmSpec;
use gemm_oracle::product::Size;
use gemm_perf::{DeviceModel, H200};

/// Model of a spec. It is created once for a spec and evaluated for each shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Rows and columns of a block's tile of C.
    tile: (u64, u64),
    /// Maximum number of multiply-adds of a single block per cycle.
    of_block: f64,
    /// Maximum number of multiply-adds of an SM per cycle.
    peak: f64,
    /// Launch overhead in cycles, of all launches of the spec.
    launching: f64,
    ranges: Ranges,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Ranges {
    Number(u64),
    /// Enough partitions to keep all SMs busy.
    Fitting,
}

/// Device whose rates are used. Other devices have roughly the same proportions.
const DEVICE: DeviceModel = H200;
/// Multiply-adds of an SM per cycle if every operand is read from a cache.
const UNSTAGED: f64 = 24.0;
/// Multiply-adds of an SM per cycle if a thread reads an operand once for several elements.
const HELD: f64 = 64.0;
/// Number of launches of a GEMM on split operands. The first launch splits the operands, the last
/// checks that the splits represent all numbers.
const OF_PLANES: u32 = 3;

/// Ratio to the best spec at and above which a candidate is skipped.
pub const HOPELESS: f64 = 4.0;

impl Model {
    /// Creates the model of a valid spec.
    pub fn new(spec: &SgemmSpec) -> Option<Self> {
        let plan = spec.plan().ok()?;
        let (rows, cols) = plan.block_tile();
        let peak = match (plan.kind(), spec.arith.products().len()) {
            (KernelKind::Naive(_), _) => UNSTAGED,
            (KernelKind::Direct(_), _) => HELD,
            (KernelKind::Tiled(_) | KernelKind::Wgmma(_), 0) => DEVICE.peak.fma,
            // A multiply-add is two operations.
            (KernelKind::Tiled(_) | KernelKind::Wgmma(_), products) => {
                DEVICE.peak.wgmma_flops / 2.0 / products as f64
            }
        };
        // A block with few threads cannot keep all FMA units of an SM busy.
        let alone = match spec.arith.products() {
            [] => f64::from(plan.threads()),
            _ => peak,
        };
        Some(Self {
            tile: (u64::from(rows), u64::from(cols)),
            of_block: peak.min(alone),
            peak,
            launching: launching(if plan.splits().is_some() { OF_PLANES } else { 1 }),
            ranges: ranges(&spec.to_string()),
        })
    }

    /// Returns the cycles on `sms` SMs.
    pub fn cycles(&self, size: Size, sms: u32) -> f64 {
        let [m, n, k] = [size.m, size.n, size.k].map(|extent| extent as u64);
        let tiles = (m.div_ceil(self.tile.0) * n.div_ceil(self.tile.1)) as f64;
        let sms = f64::from(sms.max(1));
        let ranges = match self.ranges {
            Ranges::Number(ranges) => ranges.min(k).max(1) as f64,
            Ranges::Fitting => (sms / tiles).max(1.0),
        };
        let work = (self.tile.0 * self.tile.1) as f64 * k as f64 / ranges;
        let on_one = match self.ranges {
            Ranges::Number(_) => (tiles * ranges / sms).ceil(),
            Ranges::Fitting => tiles * ranges / sms,
        };
        // The SM limits the blocks together, and the threads of a block limit each block.
        let computed = (on_one * work / self.peak).max(work / self.of_block);
        // Bytes that one SM reads per cycle.
        let rate = match size.bytes() < DEVICE.l2_capacity {
            true => DEVICE.peak.l2_bytes,
            false => DEVICE.memory_of_cycle(),
        };
        computed.max(size.bytes() / (rate * f64::from(DEVICE.sms))) + self.launching
    }
}

/// Returns the cycles of several launches of one program.
fn launching(launches: u32) -> f64 {
    let further = f64::from(launches - 1) * DEVICE.calibration.next_launch;
    (DEVICE.calibration.launch + further) * DEVICE.clock_mhz
}

/// Reads the partitions of K from the keys of a spec.
fn ranges(line: &str) -> Ranges {
    let entries = parse::entries(line).unwrap_or_default();
    let mut ranges = 1;
    for entry in entries.concat() {
        let (key, value) = entry.split_once(':').unwrap_or((entry, ""));
        match (key.trim(), value.trim().parse::<u64>()) {
            ("split_k", Ok(number)) => ranges = number,
            ("split_k", Err(_)) | ("stream_k", _) => return Ranges::Fitting,
            _ => {}
        }
    }
    Ranges::Number(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles(line: &str, [m, n, k]: [usize; 3]) -> f64 {
        let spec: SgemmSpec = line.parse().expect(line);
        Model::new(&spec).expect("sound").cycles(Size { m, n, k }, 132)
    }

    #[test]
    fn unsuitable_specs_have_long_estimates() {
        let (large, small) = ("tile: 128x128x16, thread: 8x8", "tile: 16x16x16, thread: 1x1");
        let whole = [4096, 4096, 4096];
        let best = 4096.0_f64.powi(3) / 132.0 / DEVICE.peak.fma;
        assert!(cycles(large, whole) >= best && cycles(large, whole) < 1.1 * best + launching(1));
        assert!(cycles("", whole) > HOPELESS * cycles(large, whole));
        let thin = [4096, 4, 512];
        assert!(cycles(large, thin) > HOPELESS * cycles(small, thin));
        // The kernel must at least read the matrices, which have 537 MB.
        let read = [4096, 4, 32_768];
        assert!(cycles("tile: 16x4x32, thread: 1x1", read) > 200_000.0);
        let split = format!("{large}, split_k: 16");
        let few = [64, 64, 32_768];
        assert!(cycles(large, few) > HOPELESS * cycles(&split, few));
        // No candidate is hopeless if launch overhead dominates.
        assert!(cycles(large, [1, 1, 64]) < HOPELESS * cycles("", [1, 1, 64]));
    }

    #[test]
    fn ranges_are_read_from_the_line() {
        assert_eq!(ranges("tile: 8x8x8, split_k: 4"), Ranges::Number(4));
        assert_eq!(ranges("tile: 8x8x8"), Ranges::Number(1));
        assert_eq!(ranges("tile: 8x8x8, split_k: auto"), Ranges::Fitting);
        assert_eq!(ranges("tile: 8x8x8, stream_k"), Ranges::Fitting);
    }
}
