//! What a table is fitted to: for each shape how much slower each line is than the best.

use super::condition::Feature;
use super::lines::canonical;
use super::times::{CUBLAS, Time, Times};
use crate::grid::report::BEHIND;
use crate::grid::shapes::Shape;
use gemm_dsl::kernel_table::{SgemmProblem, Target};
use gemm_dsl::spec::{Layout, SgemmSpec};
use std::collections::{BTreeSet, HashMap};

/// What was not timed at a shape counts as so many times slower than the best, so that no row has it for that shape
/// where anything else is known.
pub const UNKNOWN: f64 = 4.0;

/// The shapes of one layout, and what is known of the lines that are for it.
#[derive(Clone, Debug)]
pub struct Group {
    /// The layout.
    pub layout: Layout,
    /// The lines.
    pub lines: Vec<String>,
    /// The shapes.
    pub shapes: Vec<Shape>,
    /// The time of the best line of each shape, in microseconds.
    pub best: Vec<f64>,
    /// For each shape the logarithm of the time of each line over that of the best.
    pub slower: Vec<Vec<f64>>,
    /// What a tree counts in its place: a line that is behind cuBLAS counts twice for as much as it is.
    pub cost: Vec<Vec<f64>>,
    /// For each quantity its value at each shape.
    pub values: Vec<Vec<f64>>,
}

/// All that a table is fitted to.
#[derive(Clone, Debug)]
pub struct Samples {
    /// The GPU.
    pub target: Target,
    /// The quantities that conditions may cut.
    pub features: Vec<Feature>,
    /// The groups that have shapes.
    pub groups: Vec<Group>,
    /// What stands in the place of a line and is none that a row can have, as one of another version of the DSL.
    pub unknown: BTreeSet<String>,
}

impl Samples {
    /// Those of times. Shapes of which no line has a time are left out.
    pub fn new(all: &Times) -> Self {
        let target = all.head.target();
        let mut tiles = BTreeSet::new();
        let (mut groups, mut unknown) = (Vec::new(), BTreeSet::new());
        for &layout in Layout::ALL {
            let mut texts: HashMap<&str, Option<String>> = HashMap::new();
            let mut of = |shape: &Shape| {
                let mut of_shape: Vec<(String, f64)> = Vec::new();
                for (line, time) in all.of(shape).iter().filter(|(line, _)| line != CUBLAS) {
                    let text = texts.entry(line).or_insert_with(|| canonical(line, layout));
                    match (text, time.us()) {
                        (Some(text), Some(us)) => of_shape.push((text.clone(), us)),
                        (Some(_), None) => {}
                        (None, _) => _ = unknown.insert(line.clone()),
                    }
                }
                of_shape
            };
            let shapes = all.shapes().iter().copied().filter(|shape| shape.layout == layout);
            let mut known: Vec<_> = shapes.map(|shape| (shape, of(&shape))).collect();
            known.retain(|(_, times)| !times.is_empty());
            if known.is_empty() {
                continue;
            }
            let lines = known.iter().flat_map(|(_, times)| times.iter().map(|(line, _)| line));
            let lines: Vec<String> = lines.cloned().collect::<BTreeSet<_>>().into_iter().collect();
            let tile = |line: &String| {
                let plan = line.parse::<SgemmSpec>().ok()?.plan().ok()?;
                Some(plan.block_tile())
            };
            tiles.extend(lines.iter().filter_map(tile));
            let mut group = Group {
                layout,
                shapes: known.iter().map(|(shape, _)| *shape).collect(),
                best: Vec::new(),
                slower: Vec::new(),
                cost: Vec::new(),
                values: Vec::new(),
                lines,
            };
            for (shape, times) in &known {
                let best = times.iter().map(|(_, us)| *us).fold(f64::INFINITY, f64::min);
                let slower = |line: &String| {
                    let us = times.iter().find(|(known, _)| known == line).map(|(_, us)| *us);
                    us.map_or(UNKNOWN, |us| us / best).ln()
                };
                let cublas = all.get(shape, CUBLAS).and_then(Time::us);
                // By how much more than the best line one is behind cuBLAS.
                let behind = |slower: f64| {
                    let behind =
                        |us: f64| cublas.map_or(0.0, |theirs| (us * BEHIND / theirs).ln().max(0.0));
                    behind(best * slower.exp()) - behind(best)
                };
                let slower: Vec<f64> = group.lines.iter().map(slower).collect();
                group.cost.push(slower.iter().map(|slower| slower + behind(*slower)).collect());
                group.slower.push(slower);
                group.best.push(best);
            }
            groups.push(group);
        }
        let features = Feature::all(tiles);
        for group in &mut groups {
            let value = |feature: &Feature| {
                let problem = |shape: &Shape| SgemmProblem { shape: shape.of_table(), target };
                group.shapes.iter().map(|shape| feature.value(&problem(shape))).collect()
            };
            group.values = features.iter().map(value).collect();
        }
        Self { target, features, groups, unknown }
    }

    /// How many shapes there are.
    pub fn count(&self) -> usize {
        self.groups.iter().map(|group| group.shapes.len()).sum()
    }

    /// The same without one shape of a group, which has others.
    #[must_use]
    pub fn without(&self, group: usize, shape: usize) -> Self {
        let mut samples = self.clone();
        let of = &mut samples.groups[group];
        of.shapes.remove(shape);
        of.best.remove(shape);
        of.slower.remove(shape);
        of.cost.remove(shape);
        of.values.iter_mut().for_each(|values| _ = values.remove(shape));
        samples
    }
}
