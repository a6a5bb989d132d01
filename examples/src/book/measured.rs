//! How long the stages took on a device, from a file: what a page says was measured, was measured.

use super::units::DEVICE;
use crate::show::percent;
use serde::Serialize;
use std::fmt;

/// What `examples/peers/times.py` has written: first the device, then the names of the columns.
const FILE: &str = include_str!("../../../tests/profiler/times.csv");

/// The times of a stage, with what bounds them.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// The device, its driver and clocks, and the day.
    pub device: &'static str,
    /// What is computed in a second, of which the rates below are.
    pub unit: RateUnit,
    /// From the smallest to the largest.
    pub points: Vec<Point>,
}

/// What is computed in a second: floating-point operations of a product, bytes of what is folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum RateUnit {
    /// 10^12 floating-point operations.
    #[serde(rename = "TFLOP/s")]
    Teraflops,
    /// 10^12 bytes.
    #[serde(rename = "TB/s")]
    Terabytes,
}

impl fmt::Display for RateUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Teraflops => "TFLOP/s",
            Self::Terabytes => "TB/s",
        })
    }
}

/// A time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Rows, columns and terms of a product, or the elements that are reduced.
    pub n: u64,
    /// The median of the launches.
    pub milliseconds: f64,
    /// Floating-point operations for each byte of the operands.
    pub intensity: f64,
    /// What was computed in a second.
    pub rate: f64,
    /// The most that arithmetic and memory allow; none where the operands stay in the L2 cache and no arithmetic bounds it.
    pub roof: Option<f64>,
}

impl Point {
    /// The share of the most.
    pub fn share(&self) -> Option<f64> {
        self.roof.map(|roof| self.rate / roof)
    }

    /// The rate, the roof and the share, as they are written.
    pub fn written(&self) -> [String; 3] {
        let roof = self.roof.map_or("none".to_owned(), rate);
        [rate(self.rate), roof, self.share().map_or(String::new(), percent)]
    }
}

/// The times of a stage by its ladder and its name, as in `22_fastest`: sizes and milliseconds.
pub fn times(ladder: &str, stem: &str) -> Vec<(u64, f64)> {
    let stem = stem.trim_start_matches('0');
    // The file says 0_interleaved.
    let stem = if stem.starts_with('_') { format!("0{stem}") } else { stem.to_owned() };
    let mut times: Vec<(u64, f64)> = Vec::new();
    for line in FILE.lines().skip(2) {
        let mut columns = line.split(',');
        if columns.next() == Some(ladder) && columns.next() == Some(&*stem) {
            let size = columns.next().and_then(|n| n.parse().ok());
            let time = columns.next().and_then(|ms| ms.parse().ok());
            // A program of several launches has its time beside each.
            if let (Some(size), Some(time)) = (size, time)
                && !times.iter().any(|(known, _)| *known == size)
            {
                times.push((size, time));
            }
        }
    }
    times
}

/// So much in a second, to three digits.
pub(super) fn rate(value: f64) -> String {
    let digits = [100.0, 10.0].iter().filter(|least| value < **least).count();
    format!("{value:.digits$}")
}

fn device() -> &'static str {
    let first = FILE.lines().next().unwrap_or_default().trim_start_matches("# ");
    first.split("; ").next().unwrap_or_default()
}

/// The times of a product whose arithmetic allows so many floating-point operations in a second.
pub(super) fn product(times: &[(u64, f64)], most: f64) -> Option<Measured> {
    let point = |&(n, milliseconds): &(u64, f64)| {
        let extent = n as f64;
        let (flops, bytes) = (2.0 * extent.powi(3), 12.0 * extent * extent);
        let intensity = flops / bytes;
        let from_memory =
            if bytes > DEVICE.l2_capacity { DEVICE.peak.memory * intensity } else { f64::INFINITY };
        let rate = flops / milliseconds / 1e9;
        Point { n, milliseconds, intensity, rate, roof: Some(most.min(from_memory) / 1e12) }
    };
    some(RateUnit::Teraflops, times.iter().map(point).collect())
}

/// The times of a reduction of `f32`.
pub(super) fn reduction(times: &[(u64, f64)]) -> Option<Measured> {
    let point = |&(n, milliseconds): &(u64, f64)| {
        let bytes = 4.0 * n as f64;
        let roof = (bytes > DEVICE.l2_capacity).then_some(DEVICE.peak.memory / 1e12);
        Point { n, milliseconds, intensity: 0.25, rate: bytes / milliseconds / 1e9, roof }
    };
    some(RateUnit::Terabytes, times.iter().map(point).collect())
}

fn some(unit: RateUnit, points: Vec<Point>) -> Option<Measured> {
    (!points.is_empty()).then(|| Measured { device: device(), unit, points })
}

/// The picture: logarithmic along both sides.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
/// Powers of ten at its edges: of operations for each byte, and of what is computed in a second.
const ACROSS: [f64; 2] = [-1.0, 4.0];
const UP: [f64; 2] = [-2.0, 3.0];

impl Measured {
    /// Where a point is in the picture, in pixels.
    fn place(intensity: f64, rate: f64) -> [i64; 2] {
        let along = |value: f64, [least, most]: [f64; 2], length: f64| {
            ((value.log10() - least) / (most - least) * length).round() as i64
        };
        [along(intensity, ACROSS, WIDTH), HEIGHT as i64 - along(rate, UP, HEIGHT)]
    }

    /// Width and height of the picture.
    pub fn pixels(&self) -> [i64; 2] {
        [WIDTH as i64, HEIGHT as i64]
    }

    /// Where the points are, those that were measured.
    pub fn filled(&self) -> Vec<[i64; 2]> {
        self.points.iter().map(|point| Self::place(point.intensity, point.rate)).collect()
    }

    /// And what bounds them.
    pub fn hollow(&self) -> Vec<[i64; 2]> {
        let roof = |point: &Point| Some(Self::place(point.intensity, point.roof?));
        self.points.iter().filter_map(roof).collect()
    }

    /// Lines at powers of ten across, and up: where they are, and what they are called.
    pub fn grid(&self) -> [Vec<(i64, String)>; 2] {
        let powers =
            |[least, most]: [f64; 2]| (least as i32..=most as i32).map(|of| 10f64.powi(of));
        let across = powers(ACROSS).map(|at| (Self::place(at, 1.0)[0], format!("{at}")));
        let up = powers(UP).map(|at| (Self::place(1.0, at)[1], format!("{at}")));
        [across.collect(), up.collect()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gemm_dsl::stages;

    #[test]
    fn products_are_measured_at_five_sizes() {
        assert!(device().starts_with("NVIDIA H200, driver "), "{}", device());
        for stage in stages::sgemm() {
            let times = times("sgemm", &format!("{:02}_{}", stage.index, stage.name));
            let sizes: Vec<u64> = times.iter().map(|(n, _)| *n).collect();
            assert_eq!(sizes, [512, 1024, 2048, 4096, 8192], "{}", stage.name);
        }
        assert_eq!(times("reduce", "00_interleaved_divergent").len(), 3);
        assert_eq!(times("reduce", "11_none"), []);
    }

    #[test]
    fn rates_are_work_over_time() {
        let of = product(&[(1000, 1.0)], 67e12).expect("a time");
        assert_eq!((of.points[0].rate, of.points[0].roof), (2.0, Some(67.0)));
        assert_eq!(of.points[0].share(), Some(2.0 / 67.0));
        // So few terms that 4.8 TB/s allow less than the arithmetic does: none, as operands are square.
        let folded = reduction(&[(1 << 20, 0.01), (1 << 28, 0.25)]).expect("times");
        assert_eq!(folded.points.iter().map(|p| p.roof).collect::<Vec<_>>(), [None, Some(4.8)]);
        assert_eq!(folded.filled()[0][0], folded.filled()[1][0]);
    }
}
