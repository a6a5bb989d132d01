//! The stages of a ladder under the roofs of memory, the L2 cache and shared memory, in one picture: what was measured, and
//! what bounds it.

use super::units::{DEVICE, UnitName};
use crate::times::{RateUnit, StageTimes, TimePoint, rate};
use gemm_bench::change::number;

/// The places that bytes are asked of: a panel each.
const LEVELS: [UnitName; 3] = [UnitName::Memory, UnitName::L2, UnitName::Shared];
/// Bytes of a wavefront of shared memory, one of which it serves in a cycle.
const WAVEFRONT_BYTES: f64 = 128.0;
/// A panel, the room to its left and that below it, in pixels.
const SIDE: [i64; 2] = [290, 290];
const LEFT: i64 = 48;
const BELOW: i64 = 44;
/// The extents of a digit, where numbers must not lie on one another.
const DIGIT: [i64; 2] = [7, 11];

/// A stage that was measured.
pub(super) struct Stage<'r> {
    pub(super) index: u32,
    pub(super) title: &'r str,
    pub(super) measured: &'r StageTimes,
    pub(super) point: &'r TimePoint,
}

/// The picture of a ladder.
pub(super) struct Roofline {
    /// The device, its driver and clocks, and the day.
    pub(super) device: &'static str,
    /// What is computed in a second.
    pub(super) unit: RateUnit,
    pub(super) panels: Vec<Panel>,
    /// The same in numbers, stage by stage.
    pub(super) rows: Vec<RooflineRow>,
    /// Stages that were not measured.
    pub(super) absent: Vec<String>,
    /// Whether tensor cores multiply in one of them.
    pub(super) has_tensor: bool,
}

/// The stages over what they ask of one place.
pub(super) struct Panel {
    pub(super) level: UnitName,
    /// Where it begins.
    pub(super) x: i64,
    /// Lines at powers of ten across, and up: where they are, and what they are called.
    pub(super) grid: [Vec<(i64, String)>; 2],
    /// The roof that the place allows.
    pub(super) slope: String,
    /// Those that arithmetic allows: where they are, and what they are called.
    pub(super) flat: Vec<(i64, &'static str)>,
    pub(super) dots: Vec<Dot>,
}

/// A stage in a panel.
pub(super) struct Dot {
    pub(super) title: String,
    /// What was measured.
    pub(super) at: [i64; 2],
    /// How high what bounds it is.
    pub(super) bound: i64,
    /// Its number, and where that stands, if there is room.
    pub(super) label: Option<(i64, i64, u32)>,
}

/// A stage in numbers.
pub(super) struct RooflineRow {
    pub(super) title: String,
    pub(super) rate: String,
    /// At each place: what is computed for each byte, and the most that allows; none where none is asked for.
    pub(super) levels: Vec<Option<[String; 2]>>,
}

/// Powers of ten at the edges, of one axis.
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

    /// Where the logarithm of a value is, in pixels.
    fn place(self, log: f64, length: i64) -> i64 {
        let share = (log - f64::from(self.least)) / f64::from(self.most - self.least);
        (share * length as f64).round() as i64
    }

    fn powers(self) -> impl Iterator<Item = (f64, String)> {
        (self.least..=self.most).map(|of| (f64::from(of), format!("{}", 10f64.powi(of))))
    }
}

/// What a place gives in a cycle to one multiprocessor, in bytes.
fn bytes_of_cycle(level: UnitName) -> f64 {
    match level {
        UnitName::Memory => DEVICE.memory_of_cycle(),
        UnitName::L2 => DEVICE.peak.l2_bytes,
        _ => WAVEFRONT_BYTES,
    }
}

/// What all of them are given in a second, in 10^12 bytes.
fn bandwidth(level: UnitName) -> f64 {
    bytes_of_cycle(level) * per_second()
}

/// The cycles of all multiprocessors in a second, in 10^12.
fn per_second() -> f64 {
    f64::from(DEVICE.sms) * DEVICE.hertz() / 1e12
}

/// What is computed for each byte that a place is asked for, and the most that allows; none where it is asked for none, and of
/// memory where the operands stay in the L2 cache.
pub(super) fn under(point: &TimePoint, level: UnitName) -> Option<[f64; 2]> {
    let of_level = UnitName::ALL.iter().zip(point.asked).find(|(name, _)| **name == level);
    let bytes = of_level.map_or(0.0, |(_, cycles)| cycles) * bytes_of_cycle(level);
    let stays = level == UnitName::Memory && bytes <= DEVICE.l2_capacity;
    let work = point.rate * point.milliseconds * 1e9;
    let intensity = work / bytes;
    let bound = point.roof.unwrap_or(f64::INFINITY).min(intensity * bandwidth(level));
    (bytes > 0.0 && !stays).then_some([intensity, bound])
}

/// The most that arithmetic allows, of products.
fn arithmetic(unit: RateUnit) -> Vec<(f64, &'static str)> {
    /// Multiplications and additions of 32 lanes of each of four schedulers.
    const FMA: f64 = 256.0;
    match unit {
        RateUnit::Terabytes => Vec::new(),
        RateUnit::Teraflops => vec![
            (FMA * per_second(), "multiply-adds of lanes"),
            (DEVICE.peak.wgmma_flops * per_second(), "tensor cores, 16 bits"),
        ],
    }
}

/// The picture of the stages that were measured; none if there is none.
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
        device: measured.device,
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
        .zip(point.asked)
        .any(|(name, cycles)| *name == UnitName::TensorCores && cycles > 0.0)
}

/// The line of all rates that a bandwidth allows, from the left or the bottom of a panel to its right or the highest roof above.
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

/// Puts numbers beside their points, to the right, to the left or above, and leaves out those that would lie on others, on points
/// or beyond the panel.
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
    /// The extents of the picture, what stands to the left of it and below among them.
    pub(super) fn pixels(&self) -> [i64; 2] {
        [self.panels.len() as i64 * (SIDE[0] + LEFT) + 10, SIDE[1] + BELOW + 10]
    }

    /// The extents of a panel.
    pub(super) fn side(&self) -> [i64; 2] {
        SIDE
    }

    /// What is computed, of which there is so much for each byte.
    pub(super) fn work(&self) -> &'static str {
        match self.unit {
            RateUnit::Teraflops => "floating-point operations",
            RateUnit::Terabytes => "bytes of what is folded",
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

    /// What was measured is nowhere above what bounds it, and both are where the numbers of the rows say.
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
                    // Up is less.
                    assert!(dot.bound <= dot.at[1] && dot.bound >= 0, "{}", dot.title);
                    assert!((panel.x..=panel.x + SIDE[0]).contains(&dot.at[0]), "{}", dot.title);
                }
            }
            assert_eq!(picture.has_tensor, ladder == "sgemm");
        }
    }

    /// Where nothing else bounds it the bound of a stage lies on the line of its place.
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
        // All reductions ask L2 for what memory gives, which is slower.
        let point = measured[0].2.points.last().expect("a size");
        let [_, bound] = under(point, UnitName::L2).expect("sectors");
        assert!((bound - 4.8).abs() < 0.2, "{bound}");
        let dot = &panel.dots[0];
        let line = y1 + (y2 - y1) * (dot.at[0] as f64 - x1) / (x2 - x1);
        assert!(line <= dot.bound as f64 + 1.0, "{line} {}", dot.bound);
    }

    /// Of memory there is none to speak of where all stays in the cache.
    #[test]
    fn memory_bounds_what_does_not_stay_in_the_cache() {
        let measured = measured("sgemm");
        let small = stages_at(&measured, 512);
        assert!(small.iter().all(|stage| under(stage.point, UnitName::Memory).is_none()));
        let large = stages_at(&measured, 4096);
        assert!(large.iter().all(|stage| under(stage.point, UnitName::Memory).is_some()));
    }

    /// Numbers lie neither on one another nor beyond the panel; most stages have theirs.
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
