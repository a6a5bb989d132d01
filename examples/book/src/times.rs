//! How long the stages took on a device, from a file: what a page says was measured, was measured.

use super::units::{self, DEVICE, UnitName};
use gemm_bench::family::Family;
use gemm_bench::table::percent;
use gemm_dsl::spec::{Along, ReduceSpec, SgemmSpec};
use gemm_dsl::stages;
use gemm_perf::csv::{self, ProgramTime};
use gemm_perf::{LaunchLoad, Reads, Work};
use serde::Serialize;
use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

/// What `examples/bench/peers/times.py` has written: first the device, then the names of the columns.
const FILE: &str = include_str!("../../../tests/data/profiler/times.csv");

/// The times of a stage, with what bounds them.
#[derive(Clone, Debug, Serialize)]
pub struct StageTimes {
    /// The device, its driver and clocks, and the day.
    pub device: &'static str,
    /// What is computed in a second, of which the rates below are.
    pub unit: RateUnit,
    /// From the smallest to the largest.
    pub points: Vec<TimePoint>,
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
pub struct TimePoint {
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
    /// The cycles that each unit of one multiprocessor would need for what was launched, in the order of [`UnitName::ALL`].
    pub asked: [f64; UnitName::ALL.len()],
}

impl TimePoint {
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

/// All programs that were timed.
fn programs() -> &'static [ProgramTime] {
    static PROGRAMS: OnceLock<Vec<ProgramTime>> = OnceLock::new();
    PROGRAMS.get_or_init(|| csv::programs(FILE).unwrap_or_default())
}

/// The cycles that each unit of one multiprocessor would need for all launches, in the order of [`UnitName::ALL`]; so many
/// bytes are read beside what the file has.
fn unit_cycles(timed: &ProgramTime, beside: f64) -> [f64; UnitName::ALL.len()] {
    let mut work = Work::default();
    timed.launches.iter().for_each(|launch| work += launch.work);
    let bytes = timed.launches.iter().map(|launch| bytes(&launch.reads)).sum::<f64>() + beside;
    UnitName::ALL.map(|name| units::cycles_of(name, &work, bytes))
}

/// The bytes of what a launch reads and writes, each once.
fn bytes(reads: &Reads) -> f64 {
    let [rows, columns] = reads.tiles;
    let [strip_a, strip_b] = reads.strips;
    rows * strip_a + columns * strip_b + reads.once
}

/// The cycles that the multiply-adds of all launches take at least, on one multiprocessor.
fn arithmetic_cycles(timed: &ProgramTime) -> f64 {
    let of = |launch: &LaunchLoad| {
        let lanes = launch.work.fma / units::ISSUED;
        lanes.max(units::cycles_of(UnitName::TensorCores, &launch.work, 0.0))
    };
    timed.launches.iter().map(of).sum()
}

/// The time of a line at a size, and what the compiler made of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpecTimes {
    pub(super) n: u64,
    pub(super) milliseconds: f64,
    /// Registers of a thread of the launch that asks for most.
    pub(super) registers: u32,
}

/// All times of a line, of the stages and of what a search has tried.
pub(super) fn of_line(family: Family, line: &str) -> &'static [SpecTimes] {
    static KNOWN: OnceLock<HashMap<String, Vec<SpecTimes>>> = OnceLock::new();
    let normal = |family, line: &str| Some(format!("{family:?} {}", normal(family, line)?));
    let known = KNOWN.get_or_init(|| {
        let stage = |index: u32, name: &str| format!("{index}_{name}");
        let stages: HashMap<(&str, String), String> = stages::reduce()
            .iter()
            .map(|of| (("reduce", stage(of.index, of.name)), of.spec.to_string()))
            .chain(
                stages::sgemm()
                    .iter()
                    .map(|of| (("sgemm", stage(of.index, of.name)), of.spec.to_string())),
            )
            .collect();
        let mut known: HashMap<String, Vec<SpecTimes>> = HashMap::new();
        for ProgramTime { set, name, n, milliseconds, launches } in programs() {
            let family = if set == "reduce" { Family::Reduce } else { Family::Sgemm };
            let line = stages.get(&(set.as_str(), name.clone())).unwrap_or(name);
            let registers = launches.iter().map(|launch| launch.registers).max().unwrap_or(0);
            let (n, milliseconds) = (*n, *milliseconds);
            let Some(line) = normal(family, line) else { continue };
            let all = known.entry(line).or_default();
            match all.iter_mut().find(|of| of.n == n) {
                Some(of) => of.registers = of.registers.max(registers),
                None => all.push(SpecTimes { n, milliseconds, registers }),
            }
        }
        known
    });
    normal(family, line).and_then(|line| known.get(&line)).map_or(&[], Vec::as_slice)
}

/// A line as its spec is written; nothing of what is none.
pub(super) fn normal(family: Family, line: &str) -> Option<String> {
    Some(match family {
        Family::Reduce => line.parse::<ReduceSpec>().ok()?.to_string(),
        Family::Sgemm => line.parse::<SgemmSpec>().ok()?.to_string(),
    })
}

/// The times of a stage by its ladder and its name, as in `22_fastest`, from the smallest size to the largest.
pub fn times(ladder: &str, stem: &str) -> Vec<ProgramTime> {
    let stem = stem.trim_start_matches('0');
    // The file says 0_interleaved.
    let stem = if stem.starts_with('_') { format!("0{stem}") } else { stem.to_owned() };
    let is_it = |program: &&ProgramTime| program.set == ladder && program.name == stem;
    programs().iter().filter(is_it).cloned().collect()
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

/// The matrices of the extents of C that a product reads beside A and B: operands of its epilogue, and C itself.
pub(super) fn matrices_beside(spec: &SgemmSpec) -> usize {
    let operands = spec.operands();
    let matrices = operands.iter().filter(|operand| operand.along == Along::Mn).count();
    matrices + usize::from(spec.reads_c())
}

/// The times of a product that reads so many matrices of the extents of C beside A and B.
pub(super) fn product(times: &[ProgramTime], beside: usize) -> Option<StageTimes> {
    let point = |timed: &ProgramTime| {
        let extent = timed.n as f64;
        let beside = 4.0 * extent * extent * beside as f64;
        let (flops, bytes) = (2.0 * extent.powi(3), 12.0 * extent * extent + beside);
        let intensity = flops / bytes;
        let from_memory =
            if bytes > DEVICE.l2_capacity { DEVICE.peak.memory * intensity } else { f64::INFINITY };
        // What the epilogue does for each element counts for less where there are more terms.
        let most = flops / arithmetic_cycles(timed) * f64::from(DEVICE.sms) * DEVICE.hertz();
        TimePoint {
            n: timed.n,
            milliseconds: timed.milliseconds,
            intensity,
            rate: flops / timed.milliseconds / 1e9,
            roof: Some(most.min(from_memory) / 1e12),
            asked: unit_cycles(timed, beside),
        }
    };
    some(RateUnit::Teraflops, times.iter().map(point).collect())
}

/// The times of a reduction of `f32`.
pub(super) fn reduction(times: &[ProgramTime]) -> Option<StageTimes> {
    let point = |timed: &ProgramTime| {
        let bytes = 4.0 * timed.n as f64;
        let roof = (bytes > DEVICE.l2_capacity).then_some(DEVICE.peak.memory / 1e12);
        TimePoint {
            n: timed.n,
            milliseconds: timed.milliseconds,
            intensity: 0.25,
            rate: bytes / timed.milliseconds / 1e9,
            roof,
            asked: unit_cycles(timed, 0.0),
        }
    };
    some(RateUnit::Terabytes, times.iter().map(point).collect())
}

fn some(unit: RateUnit, points: Vec<TimePoint>) -> Option<StageTimes> {
    (!points.is_empty()).then(|| StageTimes { device: device(), unit, points })
}

/// The picture: logarithmic along both sides.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
/// Powers of ten at its edges: of operations for each byte, and of what is computed in a second.
const ACROSS: [f64; 2] = [-1.0, 4.0];
const UP: [f64; 2] = [-2.0, 3.0];

impl StageTimes {
    /// Multiply-adds of a product, or the elements that are folded, at a point.
    pub fn work(&self, point: &TimePoint) -> f64 {
        match self.unit {
            RateUnit::Teraflops => (point.n as f64).powi(3),
            RateUnit::Terabytes => point.n as f64,
        }
    }

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
        let roof = |point: &TimePoint| Some(Self::place(point.intensity, point.roof?));
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

    #[test]
    fn products_are_measured_at_five_sizes() {
        assert!(device().starts_with("NVIDIA H200, driver "), "{}", device());
        for stage in stages::sgemm() {
            let times = times("sgemm", &format!("{:02}_{}", stage.index, stage.name));
            let sizes: Vec<u64> = times.iter().map(|timed| timed.n).collect();
            assert_eq!(sizes, [512, 1024, 2048, 4096, 8192], "{}", stage.name);
        }
        assert_eq!(times("reduce", "00_interleaved_divergent").len(), 3);
        assert!(times("reduce", "11_none").is_empty());
        let launches = |stem| times("sgemm", stem).iter().map(|of| of.launches.len()).collect();
        let launches: [Vec<usize>; 2] = ["22_fastest", "41_wgmma_bf16x6"].map(launches);
        assert_eq!(launches, [vec![1; 5], vec![3; 5]]);
    }

    fn timed(n: u64, milliseconds: f64, fma: f64) -> ProgramTime {
        let work = Work { fma, ..Work::default() };
        let launches = vec![LaunchLoad { work, ..LaunchLoad::default() }];
        let (set, name) = (String::new(), String::new());
        ProgramTime { set, name, n, milliseconds, launches }
    }

    #[test]
    fn rates_are_work_over_time() {
        let fma = 1e9 / 32.0;
        let of = product(&[timed(1000, 1.0, fma)], 0).expect("a time");
        let most = 256.0 * 132.0 * 1.98e9 / 1e12;
        let point = of.points[0];
        assert_eq!(point.rate, 2.0);
        assert!((point.roof.expect("a roof") / most - 1.0).abs() < 1e-9, "{point:?}");
        assert!((point.share().expect("a share") * most / 2.0 - 1.0).abs() < 1e-9, "{point:?}");
        // Beside them a matrix of the extents of C.
        assert_eq!(
            product(&[timed(1000, 1.0, fma)], 1).expect("a time").points[0].intensity,
            125.0
        );
        let folded = reduction(&[timed(1 << 20, 0.01, 0.0), timed(1 << 28, 0.25, 0.0)]);
        let folded = folded.expect("times");
        assert_eq!(folded.points.iter().map(|p| p.roof).collect::<Vec<_>>(), [None, Some(4.8)]);
        assert_eq!(folded.filled()[0][0], folded.filled()[1][0]);
    }

    /// What a kernel does for each element of C weighs less at a larger size: the roof is that of the size.
    #[test]
    fn the_roof_is_that_of_the_size() {
        let of = product(&times("sgemm", "28_epilogue_gelu_residual"), 1).expect("times");
        let roofs: Vec<f64> = of.points.iter().filter_map(|point| point.roof).collect();
        assert!(roofs.windows(2).all(|pair| pair[0] < pair[1]), "{roofs:?}");
        assert!(roofs[4] > 66.0 && roofs[4] < 66.9, "{roofs:?}");
    }

    /// No unit would need longer than it took, whatever caches answer.
    #[test]
    fn no_unit_needs_longer_than_was_measured() {
        let mut count = 0;
        let products = stages::sgemm().into_iter().map(|stage| {
            let beside = matrices_beside(&stage.spec);
            product(&times("sgemm", &format!("{:02}_{}", stage.index, stage.name)), beside)
        });
        let reductions = stages::reduce().into_iter().map(|stage| {
            reduction(&times("reduce", &format!("{:02}_{}", stage.index, stage.name)))
        });
        for measured in products.chain(reductions).flatten() {
            for point in &measured.points {
                let most = point.milliseconds / 1e3 * DEVICE.hertz() * f64::from(DEVICE.sms);
                for (name, cycles) in UnitName::ALL.iter().zip(point.asked) {
                    // Operands that stay in the L2 cache are not asked of memory.
                    let bytes = point.rate * point.milliseconds * 1e9 / point.intensity;
                    let stay = *name == UnitName::Memory && bytes < 2.0 * DEVICE.l2_capacity;
                    assert!(stay || cycles <= most, "{name}: {cycles} of {most}, {point:?}");
                    count += 1;
                }
            }
        }
        assert!(count > 1000, "{count}");
    }

    /// A line is known however it is written, and at every size at which it was measured.
    #[test]
    fn lines_have_their_times() {
        let stage = stages::sgemm().into_iter().find(|of| of.index == 22).expect("a stage");
        let times: Vec<u64> =
            of_line(Family::Sgemm, &stage.spec.to_string()).iter().map(|of| of.n).collect();
        assert!([512, 4096, 8192].iter().all(|n| times.contains(n)), "{times:?}");
        assert!(of_line(Family::Sgemm, "tile: 7x7x7").is_empty());
        assert!(of_line(Family::Sgemm, "no spec").is_empty());
    }
}
