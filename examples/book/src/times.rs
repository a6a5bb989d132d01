//! Measured times of the stages on a device, from a file.

use super::units::{self, DEVICE, UnitName};
use gemm_bench::family::Family;
use gemm_bench::figures::{self, Figure, Taken};
use gemm_bench::table::percent;
use gemm_dsl::spec::{Along, ReduceSpec, SgemmSpec};
use gemm_dsl::stages;
use gemm_perf::csv::{self, ProgramTime};
use gemm_perf::{LaunchLoad, Reads, Work};
use serde::Serialize;
use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

/// Output of `examples/bench/peers/times.py`: a line with the device, a line with column names,
/// then rows.
const FILE: &str = include_str!("../../../tests/data/profiler/times.csv");

/// Measured times of a stage with their bounds.
#[derive(Clone, Debug, Serialize)]
pub struct StageTimes {
    /// Device, driver, clocks and date of the measurement. If the text has changed since, also the
    /// commit of the change.
    pub device: String,
    /// Commit that changed the text since the measurement, if any.
    pub before: Option<&'static str>,
    pub unit: RateUnit,
    /// Measurements from the smallest size to the largest.
    pub points: Vec<TimePoint>,
}

/// Unit of rates: floating-point operations of a GEMM, or bytes read by a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum RateUnit {
    /// 10^12 floating-point operations per second.
    #[serde(rename = "TFLOP/s")]
    Teraflops,
    /// 10^12 bytes read per second.
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

/// Measured time at one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TimePoint {
    /// Extent m = n = k of a GEMM, or the number of reduced elements.
    pub n: u64,
    /// Median time of the launches.
    pub milliseconds: f64,
    /// Arithmetic intensity: floating-point operations per byte of the operands.
    pub intensity: f64,
    /// Achieved rate, in the unit of the stage.
    pub rate: f64,
    /// Upper bound of the rate from arithmetic and memory. `None` if the operands stay in the L2
    /// cache and there is no arithmetic bound.
    pub roof: Option<f64>,
    /// Cycles that each unit of one SM needs for all launches, in the order of [`UnitName::ALL`].
    pub load: [f64; UnitName::ALL.len()],
}

impl TimePoint {
    /// Rate divided by the roof.
    pub fn share(&self) -> Option<f64> {
        self.roof.map(|roof| self.rate / roof)
    }

    /// Formats the rate, the roof and their ratio.
    pub fn written(&self) -> [String; 3] {
        let roof = self.roof.map_or("none".to_owned(), rate);
        [rate(self.rate), roof, self.share().map_or(String::new(), percent)]
    }
}

/// All timed programs of the file.
fn programs() -> &'static [ProgramTime] {
    static PROGRAMS: OnceLock<Vec<ProgramTime>> = OnceLock::new();
    PROGRAMS.get_or_init(|| csv::programs(FILE).unwrap_or_default())
}

/// Returns the cycles that each unit of one SM needs for all launches, in the order of
/// [`UnitName::ALL`]. `beside` is the number of read bytes that the file omits.
fn unit_cycles(timed: &ProgramTime, beside: f64) -> [f64; UnitName::ALL.len()] {
    let mut work = Work::default();
    timed.launches.iter().for_each(|launch| work += launch.work);
    let bytes = timed.launches.iter().map(|launch| bytes(&launch.reads)).sum::<f64>() + beside;
    UnitName::ALL.map(|name| units::cycles_of(name, &work, bytes))
}

/// Minimum traffic of a launch in bytes, with each operand transferred once.
fn bytes(reads: &Reads) -> f64 {
    let [rows, columns] = reads.tiles;
    let [strip_a, strip_b] = reads.strips;
    rows * strip_a + columns * strip_b + reads.once
}

/// Minimum cycles of one SM for the multiply-adds of all launches.
fn arithmetic_cycles(timed: &ProgramTime) -> f64 {
    let of = |launch: &LaunchLoad| {
        let lanes = launch.work.fma / units::ISSUED;
        lanes.max(units::cycles_of(UnitName::TensorCores, &launch.work, 0.0))
    };
    timed.launches.iter().map(of).sum()
}

/// Time of a spec at one size, and the registers of its kernels.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpecTimes {
    pub(super) n: u64,
    pub(super) milliseconds: f64,
    /// Registers per thread: the maximum over the launches.
    pub(super) registers: u32,
    /// Commit that changed the text since the measurement, if any.
    pub(super) before: Option<&'static str>,
}

/// All times of a spec, from stages and from tuning spaces.
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
            let before = figure(set, name).and_then(|figure| figure.taken.before.as_deref());
            let Some(line) = normal(family, line) else { continue };
            let all = known.entry(line).or_default();
            match all.iter_mut().find(|of| of.n == n) {
                Some(of) => of.registers = of.registers.max(registers),
                None => all.push(SpecTimes { n, milliseconds, registers, before }),
            }
        }
        known
    });
    normal(family, line).and_then(|line| known.get(&line)).map_or(&[], Vec::as_slice)
}

/// Canonical text of a spec, or `None` if it is invalid.
pub(super) fn normal(family: Family, line: &str) -> Option<String> {
    Some(match family {
        Family::Reduce => line.parse::<ReduceSpec>().ok()?.to_string(),
        Family::Sgemm => line.parse::<SgemmSpec>().ok()?.to_string(),
    })
}

/// Times of a stage by its ladder and stem, such as `22_fastest`, from the smallest size to the
/// largest.
pub fn times(ladder: &str, stem: &str) -> Vec<ProgramTime> {
    let stem = stem.trim_start_matches('0');
    // In the file, `00_interleaved_divergent` is named `0_interleaved_divergent`.
    let stem = if stem.starts_with('_') { format!("0{stem}") } else { stem.to_owned() };
    let is_it = |program: &&ProgramTime| program.set == ladder && program.name == stem;
    programs().iter().filter(is_it).cloned().collect()
}

/// Formats a rate with three digits.
pub(super) fn rate(value: f64) -> String {
    let digits = [100.0, 10.0].iter().filter(|least| value < **least).count();
    format!("{value:.digits$}")
}

/// Figure of a program's times.
fn figure(set: &str, name: &str) -> Option<&'static Figure> {
    figures::times::figure(figures::recorded().ok()?, set, name)
}

/// Describes a measurement.
fn measurement(taken: &Taken) -> String {
    let Taken { device, driver, date, before, .. } = taken;
    let driver = driver.as_ref().map_or(String::new(), |driver| format!(", driver {driver}"));
    let before =
        before.as_ref().map_or(String::new(), |of| format!(", kernels older than commit {of}"));
    format!("{device}{driver}, clocks unlocked, {date}{before}")
}

/// Number of matrices with the shape of C that a GEMM reads: operands of the epilogue, and C
/// itself.
pub(super) fn extra_matrices(spec: &SgemmSpec) -> usize {
    let operands = spec.operands();
    let matrices = operands.iter().filter(|operand| operand.along == Along::Mn).count();
    matrices + usize::from(spec.reads_c())
}

/// Times of a GEMM that reads `beside` matrices with the shape of C in addition to A and B.
pub(super) fn product(times: &[ProgramTime], beside: usize) -> Option<StageTimes> {
    let point = |timed: &ProgramTime| {
        let extent = timed.n as f64;
        let beside = 4.0 * extent * extent * beside as f64;
        let (flops, bytes) = (2.0 * extent.powi(3), 12.0 * extent * extent + beside);
        let intensity = flops / bytes;
        let from_memory =
            if bytes > DEVICE.l2_capacity { DEVICE.peak.memory * intensity } else { f64::INFINITY };
        // The roof depends on the size, because the share of the epilogue decreases with K.
        let most = flops / arithmetic_cycles(timed) * f64::from(DEVICE.sms) * DEVICE.hertz();
        TimePoint {
            n: timed.n,
            milliseconds: timed.milliseconds,
            intensity,
            rate: flops / timed.milliseconds / 1e9,
            roof: Some(most.min(from_memory) / 1e12),
            load: unit_cycles(timed, beside),
        }
    };
    some(times, RateUnit::Teraflops, times.iter().map(point).collect())
}

/// Times of a reduction of f32.
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
            load: unit_cycles(timed, 0.0),
        }
    };
    some(times, RateUnit::Terabytes, times.iter().map(point).collect())
}

fn some(times: &[ProgramTime], unit: RateUnit, points: Vec<TimePoint>) -> Option<StageTimes> {
    let first = times.first()?;
    let figure = figure(&first.set, &first.name);
    let device = figure
        .map_or("a device that was not recorded".to_owned(), |figure| measurement(&figure.taken));
    let before = figure.and_then(|figure| figure.taken.before.as_deref());
    Some(StageTimes { device, before, unit, points })
}

/// Size of the log-log picture in pixels.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
/// Powers of ten at the edges: arithmetic intensity, and rate.
const ACROSS: [f64; 2] = [-1.0, 4.0];
const UP: [f64; 2] = [-2.0, 3.0];

impl StageTimes {
    /// Multiply-adds of a GEMM, or the number of reduced elements.
    pub fn work(&self, point: &TimePoint) -> f64 {
        match self.unit {
            RateUnit::Teraflops => (point.n as f64).powi(3),
            RateUnit::Terabytes => point.n as f64,
        }
    }

    /// Position of a point in pixels.
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

    /// Positions of the measured rates.
    pub fn filled(&self) -> Vec<[i64; 2]> {
        self.points.iter().map(|point| Self::place(point.intensity, point.rate)).collect()
    }

    /// Positions of the roofs, for points that have one.
    pub fn hollow(&self) -> Vec<[i64; 2]> {
        let roof = |point: &TimePoint| Some(Self::place(point.intensity, point.roof?));
        self.points.iter().filter_map(roof).collect()
    }

    /// Grid lines at powers of ten, along x and y, with their labels.
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
        for stage in stages::sgemm() {
            let times = times("sgemm", &stage.stem());
            let device = product(&times, 0).expect("times").device;
            assert!(device.starts_with("NVIDIA H"), "{}: {device}", stage.name);
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
        // The GEMM reads one additional matrix of the shape of C.
        assert_eq!(
            product(&[timed(1000, 1.0, fma)], 1).expect("a time").points[0].intensity,
            125.0
        );
        let folded = reduction(&[timed(1 << 20, 0.01, 0.0), timed(1 << 28, 0.25, 0.0)]);
        let folded = folded.expect("times");
        assert_eq!(folded.points.iter().map(|p| p.roof).collect::<Vec<_>>(), [None, Some(4.8)]);
        assert_eq!(folded.filled()[0][0], folded.filled()[1][0]);
    }

    /// The roof depends on the size, because the share of work per element of C decreases with K.
    #[test]
    fn the_roof_is_that_of_the_size() {
        let of = product(&times("sgemm", "28_epilogue_gelu_residual"), 1).expect("times");
        let roofs: Vec<f64> = of.points.iter().filter_map(|point| point.roof).collect();
        assert!(roofs.windows(2).all(|pair| pair[0] < pair[1]), "{roofs:?}");
        assert!(roofs[4] > 66.0 && roofs[4] < 66.9, "{roofs:?}");
    }

    #[test]
    fn times_of_an_older_source_are_marked() {
        let recorded = figure("sgemm", "22_fastest").expect("a figure");
        assert_eq!(recorded.id, "times/sgemm/22_fastest");
        let before = Some("0123abcd".to_owned());
        let marked = measurement(&Taken { before, ..recorded.taken.clone() });
        assert!(marked.ends_with(", kernels older than commit 0123abcd"), "{marked}");
        let spec = figure("large", "tile: 128x128x8, thread: 8x8").map(|figure| &*figure.id);
        assert_eq!(spec, Some("times/large"));
        assert!(figure("huge", "tile: 128x128x8, thread: 8x8").is_none());
    }

    /// No unit needs longer than the measured time, even if the caches serve no requests.
    #[test]
    fn no_unit_needs_longer_than_was_measured() {
        let mut count = 0;
        let products = stages::sgemm().into_iter().map(|stage| {
            let beside = extra_matrices(&stage.spec);
            product(&times("sgemm", &stage.stem()), beside)
        });
        let reductions =
            stages::reduce().into_iter().map(|stage| reduction(&times("reduce", &stage.stem())));
        for measured in products.chain(reductions).flatten() {
            for point in &measured.points {
                let most = point.milliseconds / 1e3 * DEVICE.hertz() * f64::from(DEVICE.sms);
                for (name, cycles) in UnitName::ALL.iter().zip(point.load) {
                    // Operands that stay in the L2 cache are not requested from memory.
                    let bytes = point.rate * point.milliseconds * 1e9 / point.intensity;
                    let stay = *name == UnitName::Memory && bytes < 2.0 * DEVICE.l2_capacity;
                    assert!(stay || cycles <= most, "{name}: {cycles} of {most}, {point:?}");
                    count += 1;
                }
            }
        }
        assert!(count > 1000, "{count}");
    }

    /// The times of a spec are found for any spelling of the spec, at every measured size.
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
