//! Roofline of a ladder: measured rates under the bandwidth of memory, L2 cache and shared memory.

use super::units::{DEVICE, UnitName};
use crate::times::{RateUnit, StageTimes, TimePoint, rate};
use gemm_bench::change::number;

/// Memory levels, each with its own panel.
const LEVELS: [UnitName; 3] = [UnitName::Memory, UnitName::L2, UnitName::Shared];
/// Bytes of a wavefront of shared memory. An SM processes one wavefront per cycle.
const WAVEFRONT_BYTES: f64 = 128.0;
/// Width and height of a panel, and the margins to its left and below it, in pixels.
const SIDE: [i64; 2] = [290, 290];
const LEFT: i64 = 48;
const BELOW: i64 = 44;
/// Width and height of a digit in pixels, with which overlapping labels are avoided.
const DIGIT: [i64; 2] = [7, 11];

pub(super) struct Stage<'r> {
    pub(super) index: u32,
    pub(super) title: &'r str,
    pub(super) measured: &'r StageTimes,
    pub(super) point: &'r TimePoint,
}

pub(super) struct Roofline {
    /// Device, driver, clocks and date of the measurement.
    pub(super) device: String,
    pub(super) unit: RateUnit,
    pub(super) panels: Vec<Panel>,
    /// Values of the picture, by stage.
    pub(super) rows: Vec<RooflineRow>,
    /// Titles of the stages without a measurement.
    pub(super) absent: Vec<String>,
    /// True if a stage uses tensor cores.
    pub(super) has_tensor: bool,
}

/// Stages by their arithmetic intensity at one memory level.
pub(super) struct Panel {
    pub(super) level: UnitName,
    /// Left edge of the panel, in pixels.
    pub(super) x: i64,
    /// Grid lines at powers of ten, along x and y, with their labels.
    pub(super) grid: [Vec<(i64, String)>; 2],
    /// SVG path of the bandwidth roof.
    pub(super) slope: String,
    /// Arithmetic roofs, each with its height and label.
    pub(super) flat: Vec<(i64, &'static str)>,
    pub(super) dots: Vec<Dot>,
}

/// Stage in a panel, with its bound.
pub(super) struct Dot {
    pub(super) title: String,
    /// Position of the measured rate.
    pub(super) at: [i64; 2],
    /// Height of its bound, in pixels.
    pub(super) bound: i64,
    /// Position and number of its label, if the label fits.
    pub(super) label: Option<(i64, i64, u32)>,
}

/// Values of a stage, for the table below the picture.
pub(super) struct RooflineRow {
    pub(super) title: String,
    pub(super) rate: String,
    /// Intensity and bound at each level, or `None` for a level without traffic.
    pub(super) levels: Vec<Option<[String; 2]>>,
}

/// Range of an axis as powers of ten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Axis {
    least: i32,
    most: i32,
}

impl Axis {
    fn around(values: impl Iterator<Item = f64>) -> Option<Self> {
        let logs: Vec<f64> = values.map(f64::log10).collect();
        let least = logs.iter().copied().fold(f64::INFINITY, f64::min);
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let is_some = least.is_finite() && most.is_finite();
        is_some.then(|| Self {
            least: least.floor() as i32,
            most: (most.ceil() as i32).max(least.floor() as i32 + 1),
        })
    }

    /// Position of a logarithm in pixels.
    fn place(self, log: f64, length: i64) -> i64 {
        let share = (log - f64::from(self.least)) / f64::from(self.most - self.least);
        (share * length as f64).round() as i64
    }

    fn powers(self) -> impl Iterator<Item = (f64, String)> {
        (self.least..=self.most).map(|of| (f64::from(of), format!("{}", 10f64.powi(of))))
    }
}

/// Bandwidth of a level for one SM, in bytes per cycle.
fn bytes_of_cycle(level: UnitName) -> f64 {
    match level {
        UnitName::Memory => DEVICE.memory_of_cycle(),
        UnitName::L2 => DEVICE.peak.l2_bytes,
        _ => WAVEFRONT_BYTES,
    }
}

/// Bandwidth of a level for all SMs, in 10^12 bytes/s.
fn bandwidth(level: UnitName) -> f64 {
    bytes_of_cycle(level) * per_second()
}

/// Cycles of all SMs per second, in 10^12.
fn per_second() -> f64 {
    f64::from(DEVICE.sms) * DEVICE.hertz() / 1e12
}

/// Returns the arithmetic intensity at a level, and the bound of the rate. Returns `None` for a
/// level without traffic, and for memory if the operands stay in the L2 cache.
pub(super) fn under(point: &TimePoint, level: UnitName) -> Option<[f64; 2]> {
    let of_level = UnitName::ALL.iter().zip(point.load).find(|(name, _)| **name == level);
    let bytes = of_level.map_or(0.0, |(_, cycles)| cycles) * bytes_of_cycle(level);
    let stays = level == UnitName::Memory && bytes <= DEVICE.l2_capacity;
    let work = point.rate * point.milliseconds * 1e9;
    let intensity = work / bytes;
    let bound = point.roof.unwrap_or(f64::INFINITY).min(intensity * bandwidth(level));
    (bytes > 0.0 && !stays).then_some([intensity, bound])
}

/// Arithmetic roofs of GEMMs, in 10^12 FLOP/s.
fn arithmetic(unit: RateUnit) -> Vec<(f64, &'static str)> {
    /// FLOPs of an SM per cycle: four schedulers, 32 lanes each, two FLOPs per lane.
    const FMA: f64 = 256.0;
    match unit {
        RateUnit::Terabytes => Vec::new(),
        RateUnit::Teraflops => vec![
            (FMA * per_second(), "multiply-adds on CUDA cores"),
            (DEVICE.peak.wgmma_flops * per_second(), "tensor cores, 16 bits"),
        ],
    }
}

/// Builds the roofline of the measured stages, or `None` without any.
pub(super) fn roofline(stages: &[Stage<'_>], absent: Vec<String>) -> Option<Roofline> {
    let measured = stages.first()?.measured;
    let flat = arithmetic(measured.unit);
    let all: Vec<Vec<Option<[f64; 2]>>> =
        stages.iter().map(|stage| LEVELS.map(|level| under(stage.point, level)).to_vec()).collect();
    let of_all = || all.iter().flatten().flatten();
    let across = Axis::around(of_all().map(|[intensity, _]| *intensity))?;
    let bounds = of_all().map(|[_, bound]| *bound);
    let rates = stages.iter().map(|stage| stage.point.rate);
    let up = Axis::around(bounds.chain(rates).chain(flat.iter().map(|(most, _)| *most)))?;
    let panel = |(number, level): (usize, UnitName)| {
        let x = number as i64 * (SIDE[0] + LEFT);
        let place = |intensity: f64| x + across.place(intensity.log10(), SIDE[0]);
        let height = |rate: f64| SIDE[1] - up.place(rate.log10(), SIDE[1]);
        let mut dots: Vec<Dot> = stages
            .iter()
            .zip(&all)
            .filter_map(|(stage, levels)| {
                let [intensity, bound] = levels[number]?;
                let title =
                    format!("{}: {} {}", stage.title, rate(stage.point.rate), measured.unit);
                let at = [place(intensity), height(stage.point.rate)];
                Some(Dot {
                    title,
                    at,
                    bound: height(bound),
                    label: Some((at[0] + 7, at[1] + 4, stage.index)),
                })
            })
            .collect();
        thin(&mut dots, [x, x + SIDE[0]]);
        Panel {
            level,
            x,
            grid: [
                across.powers().map(|(log, text)| (x + across.place(log, SIDE[0]), text)).collect(),
                up.powers().map(|(log, text)| (SIDE[1] - up.place(log, SIDE[1]), text)).collect(),
            ],
            slope: slope(bandwidth(level), [across, up], &flat, x),
            flat: flat.iter().map(|(most, name)| (height(*most), *name)).collect(),
            dots,
        }
    };
    let rows = stages.iter().zip(&all).map(|(stage, levels)| RooflineRow {
        title: stage.title.to_owned(),
        rate: rate(stage.point.rate),
        levels: levels
            .iter()
            .map(|of| of.map(|[intensity, bound]| [number(intensity), rate(bound)]))
            .collect(),
    });
    Some(Roofline {
        device: measured.device.clone(),
        unit: measured.unit,
        panels: LEVELS.into_iter().enumerate().map(panel).collect(),
        rows: rows.collect(),
        absent,
        has_tensor: stages.iter().any(|stage| uses_tensor_cores(stage.point)),
    })
}

fn uses_tensor_cores(point: &TimePoint) -> bool {
    UnitName::ALL
        .iter()
        .zip(point.load)
        .any(|(name, cycles)| *name == UnitName::TensorCores && cycles > 0.0)
}

/// SVG path of the bandwidth roof. It starts at the left or bottom edge of the panel and ends at
/// the right edge or at the highest arithmetic roof.
fn slope(bandwidth: f64, [across, up]: [Axis; 2], flat: &[(f64, &str)], x: i64) -> String {
    let rise = bandwidth.log10();
    let top = flat.iter().map(|(most, _)| most.log10()).fold(f64::NEG_INFINITY, f64::max);
    let top = if top.is_finite() { top } else { f64::from(up.most) };
    let from = f64::from(across.least).max(f64::from(up.least) - rise);
    let to = f64::from(across.most).min(top - rise);
    let point =
        |log: f64| (x + across.place(log, SIDE[0]), SIDE[1] - up.place(log + rise, SIDE[1]));
    let ((x1, y1), (x2, y2)) = (point(from), point(to));
    format!("M{x1} {y1}L{x2} {y2}")
}

/// Places labels to the right of their points, to the left, above or below. Labels that would
/// overlap others, cover points or leave the panel are dropped.
fn thin(dots: &mut [Dot], [left, right]: [i64; 2]) {
    let points: Vec<[i64; 2]> = dots.iter().map(|dot| dot.at).collect();
    let mut taken: Vec<[i64; 3]> = Vec::new();
    for dot in dots {
        let Some((.., number)) = dot.label else { continue };
        let wide = DIGIT[0] * number.to_string().len() as i64;
        let [x, y] = dot.at;
        let places =
            [[x + 7, y + 4], [x - 7 - wide, y + 4], [x - wide / 2, y - 7], [x - wide / 2, y + 15]];
        let is_free = |[x, y]: [i64; 2]| {
            let (end, near) = (x + wide, |at: i64| (at - y).abs() < DIGIT[1]);
            let on_number = |[from, to, at]: &[i64; 3]| near(*at) && x < *to && *from < end;
            let on_point = |at: &[i64; 2]| near(at[1] + 4) && x < at[0] + 5 && at[0] - 5 < end;
            let others = points.iter().filter(|at| **at != dot.at);
            x >= left
                && end <= right
                && !taken.iter().any(on_number)
                && !others.into_iter().any(on_point)
        };
        dot.label = places.into_iter().find(|place| is_free(*place)).map(|[x, y]| {
            taken.push([x, x + wide, y]);
            (x, y, number)
        });
    }
}

impl Roofline {
    /// Width and height of the picture, margins included.
    pub(super) fn pixels(&self) -> [i64; 2] {
        [self.panels.len() as i64 * (SIDE[0] + LEFT) + 10, SIDE[1] + BELOW + 10]
    }

    /// Width and height of a panel.
    pub(super) fn side(&self) -> [i64; 2] {
        SIDE
    }

    /// Unit of the work that is divided by bytes.
    pub(super) fn work(&self) -> &'static str {
        match self.unit {
            RateUnit::Teraflops => "floating-point operations",
            RateUnit::Terabytes => "reduced bytes",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::times::{product, reduction, times};
    use gemm_dsl::stages;

    type Measurement = (u32, String, StageTimes);

    fn measured(ladder: &str) -> Vec<Measurement> {
        let of = |index: u32, name: &str| {
            let times = times(ladder, &format!("{index:02}_{name}"));
            let of = if ladder == "sgemm" { product(&times, 0) } else { reduction(&times) };
            Some((index, name.to_owned(), of?))
        };
        let sgemm = stages::sgemm();
        let reduce = stages::reduce();
        match ladder {
            "sgemm" => sgemm.iter().filter_map(|stage| of(stage.index, stage.name)).collect(),
            _ => reduce.iter().filter_map(|stage| of(stage.index, stage.name)).collect(),
        }
    }

    fn stages_at(measured: &[Measurement], n: u64) -> Vec<Stage<'_>> {
        let mut stages = Vec::new();
        for (index, title, measured) in measured {
            let point = measured.points.iter().find(|point| point.n == n).expect("the size");
            stages.push(Stage { index: *index, title, measured, point });
        }
        stages
    }

    /// Measured rates are below their bounds, and the dots agree with the rows.
    #[test]
    fn stages_are_under_their_roofs() {
        for (ladder, n) in [("sgemm", 4096), ("sgemm", 8192), ("reduce", 1 << 28)] {
            let measured = measured(ladder);
            let stages = stages_at(&measured, n);
            let picture = roofline(&stages, Vec::new()).expect("times");
            assert_eq!(picture.rows.len(), measured.len());
            for stage in &stages {
                for level in LEVELS {
                    let Some([intensity, bound]) = under(stage.point, level) else { continue };
                    assert!(stage.point.rate <= bound, "{} {level}: {bound}", stage.title);
                    assert!(bound <= intensity * bandwidth(level) * 1.000_001);
                }
            }
            for panel in &picture.panels {
                let asking =
                    stages.iter().filter(|stage| under(stage.point, panel.level).is_some());
                assert_eq!(panel.dots.len(), asking.count(), "{ladder} {}", panel.level);
                for dot in &panel.dots {
                    // Pixel coordinates grow downwards.
                    assert!(dot.bound <= dot.at[1] && dot.bound >= 0, "{}", dot.title);
                    assert!((panel.x..=panel.x + SIDE[0]).contains(&dot.at[0]), "{}", dot.title);
                }
            }
            assert_eq!(picture.has_tensor, ladder == "sgemm");
        }
    }

    /// If only the bandwidth limits a stage, its bound is on the bandwidth roof.
    #[test]
    fn bounds_lie_on_the_line() {
        let measured = measured("reduce");
        let picture = roofline(&stages_at(&measured, 1 << 28), Vec::new()).expect("times");
        let panel = &picture.panels[1];
        assert_eq!(panel.level, UnitName::L2);
        let numbers: Vec<f64> = panel.slope[1..]
            .split(['L', ' '])
            .map(|number| number.parse().expect("a number"))
            .collect();
        let [x1, y1, x2, y2] = numbers[..] else { panic!("a line: {}", panel.slope) };
        // For reductions, the traffic to L2 equals that of memory, which is slower.
        let point = measured[0].2.points.last().expect("a size");
        let [_, bound] = under(point, UnitName::L2).expect("sectors");
        assert!((bound - 4.8).abs() < 0.2, "{bound}");
        let dot = &panel.dots[0];
        let line = y1 + (y2 - y1) * (dot.at[0] as f64 - x1) / (x2 - x1);
        assert!(line <= dot.bound as f64 + 1.0, "{line} {}", dot.bound);
    }

    /// There is no memory bound if all operands stay in the cache.
    #[test]
    fn memory_bounds_what_does_not_stay_in_the_cache() {
        let measured = measured("sgemm");
        let small = stages_at(&measured, 512);
        assert!(small.iter().all(|stage| under(stage.point, UnitName::Memory).is_none()));
        let large = stages_at(&measured, 4096);
        assert!(large.iter().all(|stage| under(stage.point, UnitName::Memory).is_some()));
    }

    /// Labels neither overlap nor leave the panel, and most stages have one.
    #[test]
    fn numbers_can_be_read() {
        let measured = measured("sgemm");
        let picture = roofline(&stages_at(&measured, 4096), Vec::new()).expect("times");
        for panel in &picture.panels {
            let labels: Vec<_> = panel.dots.iter().filter_map(|dot| dot.label).collect();
            let wide = |number: u32| DIGIT[0] * number.to_string().len() as i64;
            for (at, (x, y, number)) in labels.iter().enumerate() {
                assert!(x + wide(*number) <= panel.x + SIDE[0]);
                for (other_x, other_y, other) in &labels[..at] {
                    let apart = x + wide(*number) <= *other_x
                        || other_x + wide(*other) <= *x
                        || (y - other_y).abs() >= DIGIT[1];
                    assert!(apart, "{number} lies on {other}");
                }
            }
        }
        assert!(picture.panels[1].dots.iter().filter(|dot| dot.label.is_some()).count() > 10);
    }
}
