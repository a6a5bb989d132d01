//! Samples for the fit of a table: the slowdown of each spec against the best spec, for each shape.

use super::condition::Feature;
use super::lines::{class, of_row};
use super::times::{CUBLAS, Time, TimesFile};
use crate::grid::report::BEHIND;
use crate::shapes::GemmShape;
use gemm_dsl::spec::{Accuracy, SgemmSpec};
use gemm_dsl::tables::{SgemmProblem, Target};
use std::collections::{BTreeSet, HashMap};

/// Slowdown that is assumed for a spec without a time at a shape. The spec is then chosen only if
/// no other time is known.
pub const UNKNOWN: f64 = 4.0;

/// Minimum side of a tile for which the number of tiles is a feature.
const LEAST_TILE: u32 = 64;

/// Samples of all shapes, as input of the fit.
#[derive(Clone, Debug)]
pub struct FitSamples {
    pub target: Target,
    pub features: Vec<Feature>,
    pub lines: Vec<String>,
    /// Shapes with at least one time.
    pub shapes: Vec<GemmShape>,
    /// Time of the best spec at each shape, in microseconds.
    pub best: Vec<f64>,
    /// Logarithm of each spec's time divided by the best time, for each shape.
    pub slower: Vec<Vec<f64>>,
    /// Cost that a tree minimizes: the slowdown, plus the excess over cuBLAS if the spec is slower
    /// than cuBLAS.
    pub cost: Vec<Vec<f64>>,
    /// Values of each feature at each shape.
    pub values: Vec<Vec<f64>>,
    /// Texts in the file that are not specs of a rule, such as specs of another version of the DSL.
    pub unknown: BTreeSet<String>,
}

impl FitSamples {
    /// Collects the times of specs within an accuracy class. Shapes without a time are left out.
    pub fn new(all: &TimesFile, granted: Accuracy) -> Self {
        let target = all.head.target();
        let mut unknown = BTreeSet::new();
        let mut texts: HashMap<&str, Option<(String, Accuracy)>> = HashMap::new();
        let mut known: Vec<(GemmShape, HashMap<String, f64>)> = Vec::new();
        for shape in all.shapes() {
            let mut of_shape = HashMap::new();
            for (line, time) in all.at_shape(shape).iter().filter(|(line, _)| line != CUBLAS) {
                let text = texts.entry(line).or_insert_with(|| {
                    let spec = of_row(line)?;
                    Some((spec.to_string(), class(&spec)))
                });
                match (text, time.us()) {
                    (Some((text, class)), Some(us)) if *class <= granted => {
                        _ = of_shape.insert(text.clone(), us);
                    }
                    (Some(_), _) => {}
                    (None, _) => _ = unknown.insert(line.clone()),
                }
            }
            if !of_shape.is_empty() {
                known.push((*shape, of_shape));
            }
        }
        let lines: BTreeSet<&String> = known.iter().flat_map(|(_, times)| times.keys()).collect();
        let lines: Vec<String> = lines.into_iter().cloned().collect();
        // The number of small tiles is nearly proportional to the size of C: it is not a feature.
        let tile = |line: &String| {
            let (m, n) = line.parse::<SgemmSpec>().ok()?.plan().ok()?.block_tile();
            (m.min(n) >= LEAST_TILE).then_some((m, n))
        };
        let tiles: BTreeSet<(u32, u32)> = lines.iter().filter_map(tile).collect();
        let (mut bests, mut all_slower, mut all_costs) = (Vec::new(), Vec::new(), Vec::new());
        for (shape, times) in &known {
            let best = times.values().copied().fold(f64::INFINITY, f64::min);
            let slower = |line: &String| times.get(line).map_or(UNKNOWN, |us| us / best).ln();
            let cublas = all.get(shape, CUBLAS).and_then(Time::us);
            // Excess over cuBLAS, minus the excess of the best spec.
            let behind = |slower: f64| {
                let behind =
                    |us: f64| cublas.map_or(0.0, |theirs| (us * BEHIND / theirs).ln().max(0.0));
                behind(best * slower.exp()) - behind(best)
            };
            let slower: Vec<f64> = lines.iter().map(slower).collect();
            all_costs.push(slower.iter().map(|slower| slower + behind(*slower)).collect());
            all_slower.push(slower);
            bests.push(best);
        }
        let shapes: Vec<GemmShape> = known.into_iter().map(|(shape, _)| shape).collect();
        let features = Feature::all(tiles);
        let value = |feature: &Feature| {
            let problem = |shape: &GemmShape| SgemmProblem { shape: shape.of_table(), target };
            shapes.iter().map(|shape| feature.value(&problem(shape))).collect()
        };
        let values = features.iter().map(value).collect();
        let (best, slower, cost) = (bests, all_slower, all_costs);
        Self { target, features, lines, shapes, best, slower, cost, values, unknown }
    }

    /// Keeps the samples of some shapes only.
    #[must_use]
    pub fn only(&self, is_in: impl Fn(&GemmShape) -> bool) -> Self {
        let kept: Vec<usize> = (0..self.shapes.len()).filter(|n| is_in(&self.shapes[*n])).collect();
        let of = |values: &Vec<Vec<f64>>| kept.iter().map(|n| values[*n].clone()).collect();
        let of_feature = |values: &Vec<f64>| kept.iter().map(|n| values[*n]).collect();
        Self {
            target: self.target,
            features: self.features.clone(),
            lines: self.lines.clone(),
            shapes: kept.iter().map(|n| self.shapes[*n]).collect(),
            best: of_feature(&self.best),
            slower: of(&self.slower),
            cost: of(&self.cost),
            values: self.values.iter().map(of_feature).collect(),
            unknown: self.unknown.clone(),
        }
    }
}
