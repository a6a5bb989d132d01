//! Conditions of a table's rules: features of a GEMM, and thresholds on them.

use gemm_dsl::spec::{GemmLayout, SgemmSpec};
use gemm_dsl::tables::{SgemmProblem, TableFamily};
use std::fmt;

/// Quantity that a condition compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Feature {
    M,
    N,
    K,
    Shorter,
    Longer,
    /// Number of elements of C.
    Area,
    /// 1 if rows begin at multiples of 16 bytes, else 0.
    Aligned,
    /// 1 if the matrices have this layout, else 0.
    Lies(GemmLayout),
    /// 1 if A is K-major, else 0.
    AlongA,
    /// 1 if B is K-major, else 0.
    AlongB,
    /// Number of tiles with these rows and columns, divided by the number of SMs.
    Waves(u32, u32),
}

impl Feature {
    /// Returns all features, including one for each tile. The fit chooses the first of equally good
    /// features.
    pub fn all(tiles: impl IntoIterator<Item = (u32, u32)>) -> Vec<Self> {
        let plain =
            [Self::M, Self::N, Self::K, Self::Shorter, Self::Longer, Self::Area, Self::Aligned];
        let lie = [Self::AlongA, Self::AlongB].into_iter();
        let lie = lie.chain(GemmLayout::ALL.iter().map(|layout| Self::Lies(*layout)));
        let waves = tiles.into_iter().map(|(m, n)| Self::Waves(m, n));
        plain.into_iter().chain(lie).chain(waves).collect()
    }

    /// Returns the feature's value for a GEMM, computed as in conditions of a table.
    pub fn value(self, problem: &SgemmProblem) -> f64 {
        let shape = &problem.shape;
        let [m, n, k] = [shape.m, shape.n, shape.k].map(|extent| extent as f64);
        let truth = |is: bool| f64::from(u8::from(is));
        match self {
            Self::M => m,
            Self::N => n,
            Self::K => k,
            Self::Shorter => m.min(n),
            Self::Longer => m.max(n),
            Self::Area => m * n,
            Self::Aligned => truth(shape.is_aligned()),
            Self::Lies(layout) => truth(shape.lies() == layout),
            Self::AlongA => truth(!shape.lies().transposes_a()),
            Self::AlongB => truth(shape.lies().transposes_b()),
            Self::Waves(m, n) => SgemmSpec::waves(problem, (m, n)).unwrap_or(f64::NAN),
        }
    }

    /// Returns the conditions for 1 and for 0, if the feature has only these two values.
    fn answers(self) -> Option<[String; 2]> {
        let lies = |layouts: [&str; 2]| format!("({} || {})", layouts[0], layouts[1]);
        match self {
            Self::Aligned | Self::Lies(_) => Some([self.to_string(), format!("!{self}")]),
            Self::AlongA => Some([lies(["nn", "nt"]), lies(["tn", "tt"])]),
            Self::AlongB => Some([lies(["nt", "tt"]), lies(["nn", "tn"])]),
            _ => None,
        }
    }

    fn is_integer(self) -> bool {
        !matches!(self, Self::Waves(..))
    }

    /// Returns a number that is at least `low` and less than `high`. It is close to their geometric
    /// mean and has few digits.
    pub fn between(self, low: f64, high: f64) -> f64 {
        let mean = (low * high).sqrt();
        let fits = |number: &f64| (low..high).contains(number);
        let mut round = Vec::new();
        if self.is_integer() {
            round.push(mean.log2().round().exp2());
        }
        for digits in 0..17 {
            let number = format!("{mean:.digits$e}").parse().unwrap_or(mean);
            if !self.is_integer() || f64::fract(number) == 0.0 {
                round.push(number);
            }
        }
        round.into_iter().find(fits).unwrap_or(low)
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::M => f.write_str("m"),
            Self::N => f.write_str("n"),
            Self::K => f.write_str("k"),
            Self::Shorter => f.write_str("min(m, n)"),
            Self::Longer => f.write_str("max(m, n)"),
            Self::Area => f.write_str("m * n"),
            Self::Aligned => f.write_str("aligned"),
            Self::Lies(layout) => layout.fmt(f),
            Self::AlongA => f.write_str("A K-major"),
            Self::AlongB => f.write_str("B K-major"),
            Self::Waves(m, n) => write!(f, "waves({m}x{n})"),
        }
    }
}

/// Test that a feature is at most a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Test {
    pub feature: Feature,
    pub most: f64,
}

/// Range of one feature, with an exclusive lower bound, an inclusive upper bound, or both.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    feature: Feature,
    above: Option<f64>,
    most: Option<f64>,
}

/// Conjunction of ranges, with at most one range for each feature.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Condition(Vec<Range>);

impl Condition {
    /// Adds a test with its outcome. If a feature gets two bounds on the same side, the stricter
    /// one is kept.
    #[must_use]
    pub fn and(&self, test: Test, passes: bool) -> Self {
        let mut ranges = self.0.clone();
        let Test { feature, most: number } = test;
        let (above, most) = if passes { (None, Some(number)) } else { (Some(number), None) };
        match ranges.iter_mut().find(|range| range.feature == feature) {
            None => ranges.push(Range { feature, above, most }),
            Some(range) => {
                let stricter = |own: Option<f64>, other: Option<f64>, pick: fn(f64, f64) -> f64| {
                    own.zip(other).map(|(own, other)| pick(own, other)).or(own).or(other)
                };
                range.above = stricter(range.above, above, f64::max);
                range.most = stricter(range.most, most, f64::min);
            }
        }
        Self(ranges)
    }

    /// Returns the text in the grammar of tables.
    pub fn text(&self) -> String {
        let parts = self.parts();
        match &parts[..] {
            [] => "else".to_owned(),
            // A single part needs no parentheses.
            [part] => match part.strip_prefix('(').and_then(|part| part.strip_suffix(')')) {
                Some(bare) => bare.to_owned(),
                None => part.clone(),
            },
            parts => parts.join(" && "),
        }
    }

    /// Returns the text of each part.
    pub fn parts(&self) -> Vec<String> {
        let mut parts = Vec::new();
        for Range { feature, above, most } in &self.0 {
            let number = |number: f64| match feature.is_integer() {
                true => format!("{number:.0}"),
                false => format!("{number:?}"),
            };
            if let Some([yes, no]) = feature.answers() {
                parts.extend(above.map(|_| yes));
                parts.extend(most.map(|_| no));
                continue;
            }
            parts.extend(above.map(|above| format!("{feature} > {}", number(above))));
            parts.extend(most.map(|most| format!("{feature} <= {}", number(most))));
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gemm_dsl::tables::{KernelTable, SgemmShape, Target};

    #[test]
    fn numbers_between_two_are_round() {
        let between = |low, high| Feature::M.between(low, high);
        assert_eq!(
            [between(4.0, 16.0), between(64.0, 256.0), between(1.0, 4.0)],
            [8.0, 128.0, 2.0]
        );
        assert_eq!(
            [between(117.0, 121.0), between(5.0, 6.0), between(1.0, 2.0)],
            [120.0, 5.0, 1.0]
        );
        assert_eq!(Feature::Area.between(4.19e6, 1.6e7), 8_388_608.0);
        let waves = Feature::Waves(64, 64);
        assert_eq!([waves.between(1.0, 2.0), waves.between(0.5, 4.5)], [1.0, 2.0]);
        for (low, high) in [(0.991, 0.992), (1.0 / 132.0, 2.0 / 132.0), (33.1, 33.100_01)] {
            let cut = waves.between(low, high);
            assert!((low..high).contains(&cut), "{low} {high}: {cut}");
        }
    }

    #[test]
    fn the_stricter_of_two_tests_is_left() {
        let test = |feature, most| Test { feature, most };
        let m = Condition::default().and(test(Feature::M, 64.0), true);
        let both = m.and(test(Feature::Waves(8, 16), 1.5), false).and(test(Feature::M, 8.0), true);
        assert_eq!(both.parts(), ["m <= 8", "waves(8x16) > 1.5"]);
        let within = m.and(test(Feature::M, 4.0), false).and(test(Feature::M, 2.0), false);
        assert_eq!(within.parts(), ["m > 4", "m <= 64"]);
        let aligned = Condition::default().and(test(Feature::Aligned, 0.0), false);
        assert_eq!(aligned.parts(), ["aligned"]);
        let along = Condition::default().and(test(Feature::AlongA, 0.0), false);
        assert_eq!(along.text(), "nn || nt");
        let both = along.and(test(Feature::Lies(GemmLayout::Nt), 0.0), true);
        assert_eq!(both.text(), "(nn || nt) && !nt");
        assert_eq!(Condition::default().text(), "else");
    }

    /// Tables compute the same features: a threshold between two values separates their shapes.
    #[test]
    fn quantities_are_those_of_the_grammar() {
        let problem = |m, n, k, layout| SgemmProblem {
            shape: SgemmShape::from((m, n, k)).layout(layout),
            target: Target { arch: 90, sms: 132 },
        };
        let low = problem(12, 40, 64, GemmLayout::Nt);
        let high = problem(1000, 3999, 4095, GemmLayout::Tn);
        for feature in Feature::all([(64, 128), (16, 16)]) {
            let (a, b) = (feature.value(&low), feature.value(&high));
            let most = if a == b { a } else { feature.between(a.min(b), a.max(b)) };
            for passes in [false, true] {
                let when = Condition::default().and(Test { feature, most }, passes);
                let text = format!("{} => ; else => unroll: 2", when.text());
                let table: KernelTable<SgemmSpec> = text.parse().expect(&text);
                for problem in [&low, &high] {
                    let holds = (feature.value(problem) <= most) == passes;
                    assert_eq!(table.choose(problem), Ok(usize::from(!holds)), "{text}");
                }
            }
        }
    }
}
