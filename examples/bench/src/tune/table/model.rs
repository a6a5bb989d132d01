//! How long a kernel takes at least, roughly: to leave out those that are far from the best before any is launched.

use gemm_dsl::parse;
use gemm_dsl::plan::KernelKind;
use gemm_dsl::spec::SgemmSpec;
use gemm_oracle::product::Size;
use gemm_perf::{DeviceModel, H200};

/// What a line is by the model: made once for a line, asked for each shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Rows and columns of C that a block computes.
    tile: (u64, u64),
    /// The same of a block alone.
    of_block: f64,
    /// Multiply-adds of a multiprocessor in a cycle, at best.
    peak: f64,
    /// Cycles of all launches.
    launching: f64,
    ranges: Ranges,
}

/// Into how many parts K is cut.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ranges {
    Number(u64),
    /// As many as keep all multiprocessors busy.
    Fitting,
}

/// The device whose rates these are. Those of others are in about the same proportion.
const DEVICE: DeviceModel = H200;
/// Multiply-adds of a multiprocessor in a cycle where every operand comes from a cache.
const UNSTAGED: f64 = 24.0;
/// The same where a thread reads an operand once for several elements.
const HELD: f64 = 64.0;
/// Launches where one before the product makes planes, and one behind it looks whether they hold all numbers.
const OF_PLANES: u32 = 3;

/// A line is left out where it takes so many times as long as the best one.
pub const HOPELESS: f64 = 4.0;

impl Model {
    /// That of a sound spec.
    pub fn new(spec: &SgemmSpec) -> Option<Self> {
        let plan = spec.plan().ok()?;
        let (rows, cols) = plan.block_tile();
        let is_tensor = matches!(plan.kind(), KernelKind::Wgmma(_));
        let peak = match (plan.kind(), spec.arith.products().len()) {
            (KernelKind::Naive(_), _) => UNSTAGED,
            (KernelKind::Direct(_), _) => HELD,
            (KernelKind::Tiled(_) | KernelKind::Wgmma(_), 0) => DEVICE.peak.fma,
            // Two operations are a multiply-add.
            (KernelKind::Tiled(_) | KernelKind::Wgmma(_), products) => {
                DEVICE.peak.wgmma_flops / 2.0 / products as f64
            }
        };
        // A block of few threads cannot keep all multiply-adds of a multiprocessor busy.
        let alone = match spec.arith.products() {
            [] => f64::from(plan.threads()),
            _ => peak,
        };
        Some(Self {
            tile: (u64::from(rows), u64::from(cols)),
            of_block: peak.min(alone),
            peak,
            launching: launching(if is_tensor { OF_PLANES } else { 1 }),
            ranges: ranges(&spec.to_string()),
        })
    }

    /// Cycles, on so many multiprocessors.
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
        // A multiprocessor has its blocks to do, and each block cannot go faster than its threads.
        let computed = (on_one * work / self.peak).max(work / self.of_block);
        // Bytes that all multiprocessors read in a cycle.
        let rate = match size.bytes() < DEVICE.l2_capacity {
            true => DEVICE.peak.l2_bytes,
            false => DEVICE.memory_of_cycle(),
        };
        computed.max(size.bytes() / (rate * f64::from(DEVICE.sms))) + self.launching
    }
}

/// Cycles of so many launches of one program.
fn launching(launches: u32) -> f64 {
    let further = f64::from(launches - 1) * DEVICE.calibration.next_launch;
    (DEVICE.calibration.launch + further) * DEVICE.clock_mhz
}

/// What the keys of a line say of K.
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
    fn what_fits_badly_takes_long() {
        let (large, small) = ("tile: 128x128x16, thread: 8x8", "tile: 16x16x16, thread: 1x1");
        let whole = [4096, 4096, 4096];
        let best = 4096.0_f64.powi(3) / 132.0 / DEVICE.peak.fma;
        assert!(cycles(large, whole) >= best && cycles(large, whole) < 1.1 * best + launching(1));
        assert!(cycles("", whole) > HOPELESS * cycles(large, whole));
        let thin = [4096, 4, 512];
        assert!(cycles(large, thin) > HOPELESS * cycles(small, thin));
        // Whatever the tile, the matrices are read: 537 MB.
        let read = [4096, 4, 32_768];
        assert!(cycles("tile: 16x4x32, thread: 1x1", read) > 200_000.0);
        let split = format!("{large}, split_k: 16");
        let few = [64, 64, 32_768];
        assert!(cycles(large, few) > HOPELESS * cycles(&split, few));
        // No line is hopeless where a launch is all there is.
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
