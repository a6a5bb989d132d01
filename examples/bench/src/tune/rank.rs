//! Ranking of the timed specs, for each size.

use crate::tune::space::Point;
use crate::tune::target::SpecTime;
use gemm_runtime::compile::Resources;

/// Spec that was compiled, checked and timed.
#[derive(Clone, Debug)]
pub struct RankedSpec<S> {
    pub spec: S,
    pub point: Point,
    /// Resources of the compiled kernel.
    pub resources: Resources,
    /// Quick times, one for each size.
    pub quick: Vec<SpecTime>,
}

/// All specs that a search has timed so far.
#[derive(Debug)]
pub struct Ranking<S>(Vec<RankedSpec<S>>);

impl<S> Default for Ranking<S> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<S> Ranking<S> {
    pub fn push(&mut self, found: RankedSpec<S>) {
        self.0.push(found);
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns at most `most` specs with the highest rates at a size, best first.
    pub fn best(&self, size: usize, most: usize) -> Vec<&RankedSpec<S>> {
        let rate = |found: &RankedSpec<S>| found.quick.get(size).map_or(0.0, |timed| timed.rate);
        let mut all: Vec<&RankedSpec<S>> = self.0.iter().collect();
        all.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
        all.truncate(most);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::space::Space;

    #[test]
    fn each_size_has_its_own_best() {
        let space = Space::parse(&["stages: 2 | 3"]).expect("a space");
        let mut ranking = Ranking::default();
        for (point, rates) in space.all().zip([[1.0, 9.0], [2.0, 8.0]]) {
            ranking.push(RankedSpec {
                spec: space.line(&point),
                point,
                resources: Resources::default(),
                quick: rates
                    .map(|rate| SpecTime { time: 1.0 / rate, rate, ratio: f64::NAN })
                    .to_vec(),
            });
        }
        assert_eq!(ranking.best(0, 1)[0].spec, "stages: 3");
        assert_eq!(ranking.best(1, 5)[0].spec, "stages: 2");
        assert_eq!(ranking.count(), 2);
    }
}
