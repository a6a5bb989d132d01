//! Refinement of a tree. Each cut is moved to the threshold with the lowest cost for the given
//! subtrees (tree alternating optimization: Carreira-Perpiñán and Tavallali, 2018).

use super::{Tree, TreeLimits, least, sums};
use crate::tune::table::condition::Test;
use crate::tune::table::samples::FitSamples;

const PASSES: usize = 8;

/// Minimum gain. Smaller differences are rounding errors of sums in different orders.
const ROUNDING: f64 = 1e-9;

/// Moves the cuts and chooses the specs of the leaves again. The cost never increases.
pub(super) fn refined(samples: &FitSamples, tree: Tree, limits: &TreeLimits) -> Tree {
    let mut tree = tree;
    for _ in 0..PASSES {
        let all = (0..samples.shapes.len()).collect();
        let moved = pass(samples, tree.clone(), all, limits);
        if moved == tree {
            break;
        }
        tree = moved;
    }
    tree
}

/// Refines the tree for the given shapes, from the root down.
fn pass(samples: &FitSamples, tree: Tree, shapes: Vec<usize>, limits: &TreeLimits) -> Tree {
    let Tree::Cut { test, passes, fails } = tree else {
        return Tree::Leaf { line: least(&sums(samples, &shapes)).0, shapes };
    };
    let costs = [&passes, &fails].map(|side| -> Vec<f64> {
        (0..samples.shapes.len()).map(|shape| cost(samples, side, shape)).collect()
    });
    let test = moved(samples, test, &costs, &shapes, limits);
    let (to_passes, to_fails): (Vec<usize>, Vec<usize>) =
        shapes.iter().partition(|shape| holds(samples, &test, **shape));
    let side = |tree: Tree, shapes| pass(samples, tree, shapes, limits);
    match (to_passes.is_empty(), to_fails.is_empty()) {
        // A side without shapes is dropped.
        (true, _) => side(*fails, to_fails),
        (_, true) => side(*passes, to_passes),
        _ => {
            let (passes, fails) = (side(*passes, to_passes), side(*fails, to_fails));
            Tree::Cut { test, passes: Box::new(passes), fails: Box::new(fails) }
        }
    }
}

fn holds(samples: &FitSamples, test: &Test, shape: usize) -> bool {
    let values =
        samples.features.iter().zip(&samples.values).find(|(feature, _)| **feature == test.feature);
    values.is_some_and(|(_, values)| values[shape] <= test.most)
}

/// Returns the cost of a shape in a tree.
fn cost(samples: &FitSamples, tree: &Tree, shape: usize) -> f64 {
    match tree {
        Tree::Leaf { line, .. } => samples.cost[shape][*line],
        Tree::Cut { test, passes, fails } => {
            let side = if holds(samples, test, shape) { passes } else { fails };
            cost(samples, side, shape)
        }
    }
}

/// Returns the test with the lowest cost, given the cost of each shape on both sides. The current
/// test is kept unless another test is better.
fn moved(
    samples: &FitSamples,
    test: Test,
    [passes, fails]: &[Vec<f64>; 2],
    shapes: &[usize],
    limits: &TreeLimits,
) -> Test {
    let cost = |shape: &usize| match holds(samples, &test, *shape) {
        true => passes[*shape],
        false => fails[*shape],
    };
    let (mut least, mut best) = (shapes.iter().map(cost).sum::<f64>() - ROUNDING, test);
    for (feature, values) in samples.features.iter().zip(&samples.values) {
        let mut order = shapes.to_vec();
        order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
        let mut cost: f64 = order.iter().map(|shape| fails[*shape]).sum();
        for (at, pair) in order.windows(2).enumerate() {
            cost += passes[pair[0]] - fails[pair[0]];
            let [below, above] = [pair[0], pair[1]].map(|shape| values[shape]);
            let is_between = below < above;
            let smaller = (at + 1).min(order.len() - at - 1);
            if is_between && smaller >= limits.shapes && cost < least {
                least = cost - ROUNDING;
                best = Test { feature: *feature, most: feature.between(below, above) };
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::GemmShape;
    use crate::tune::table::condition::Feature;
    use gemm_dsl::spec::GemmLayout;
    use gemm_dsl::tables::Target;
    use gemm_oracle::product::Size;
    use std::collections::BTreeSet;

    fn leaf(line: usize) -> Box<Tree> {
        Box::new(Tree::Leaf { line, shapes: Vec::new() })
    }

    /// The best spec changes at k = 32; m is irrelevant.
    fn samples() -> FitSamples {
        let ks = [4, 8, 16, 32, 64, 128, 256, 512];
        let shape = |k| GemmShape { size: Size::new(5, 5, k), layout: GemmLayout::Nn };
        let cost: Vec<Vec<f64>> =
            ks.iter().map(|&k| if k <= 32 { vec![0.0, 0.5] } else { vec![0.5, 0.0] }).collect();
        FitSamples {
            target: Target::H200,
            features: vec![Feature::M, Feature::K],
            unknown: BTreeSet::new(),
            best: vec![1.0; ks.len()],
            lines: vec!["one".to_owned(), "other".to_owned()],
            shapes: ks.map(shape).to_vec(),
            slower: cost.clone(),
            cost,
            values: vec![vec![5.0; ks.len()], ks.map(|k| k as f64).to_vec()],
        }
    }

    #[test]
    fn a_cut_is_moved_to_where_it_costs_least() {
        let limits = TreeLimits::of_rows(4);
        for most in [4.0, 8.0, 128.0, 256.0] {
            let test = Test { feature: Feature::K, most };
            let tree = Tree::Cut { test, passes: leaf(0), fails: leaf(1) };
            let refined = refined(&samples(), tree, &limits);
            let Tree::Cut { test, passes, fails } = refined else { panic!("{refined:?}") };
            assert_eq!(test, Test { feature: Feature::K, most: 50.0 });
            assert_eq!(*passes, Tree::Leaf { line: 0, shapes: vec![0, 1, 2, 3] });
            assert_eq!(*fails, Tree::Leaf { line: 1, shapes: vec![4, 5, 6, 7] });
        }
    }

    #[test]
    fn a_side_to_which_nothing_comes_is_left_out() {
        let test = Test { feature: Feature::M, most: 9.0 };
        let below = Test { feature: Feature::K, most: 32.0 };
        let cut = Tree::Cut { test: below, passes: leaf(0), fails: leaf(1) };
        let tree = Tree::Cut { test, passes: Box::new(cut), fails: leaf(1) };
        assert_eq!(refined(&samples(), tree, &TreeLimits::of_rows(4)).leaves(), 2);
    }
}
