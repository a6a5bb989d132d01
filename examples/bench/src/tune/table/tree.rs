//! Decision tree over features of a GEMM. It is grown greedily: the cut with the largest gain is
//! applied repeatedly, until the limit of rules is reached. The best of many randomized trees is
//! chosen.
//!
//! The gain is the decrease of regret. Regret is the logarithm of the chosen spec's time divided by
//! the best time, summed over shapes. A wrong choice is thus weighted by its cost. Later cuts may
//! make an earlier cut suboptimal. Such a cut is moved. If this removes rules, the tree is grown
//! again.

use super::condition::Test;
use super::samples::FitSamples;
use rayon::prelude::*;

mod refine;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TreeLimits {
    /// Maximum number of leaves, which become the rules of the table.
    pub rows: usize,
    /// Minimum number of shapes in a leaf.
    pub shapes: usize,
    /// Number of trees. The tree with the lowest cost is chosen. Greedy cuts may be suboptimal, so
    /// all trees except the first prefer some features at random.
    pub trials: u64,
    /// Ratio of the times of two leaves' specs below which the leaves are merged. It is a geometric
    /// mean over the shapes.
    pub same: f64,
}

impl TreeLimits {
    /// Returns the default limits with this number of rules.
    pub fn of_rows(rows: usize) -> Self {
        Self { rows, shapes: 3, trials: 200, same: 1.02 }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// Leaf with one spec for all its shapes.
    Leaf {
        /// Index into [`FitSamples::lines`].
        line: usize,
        /// Indices of the shapes that reach the leaf.
        shapes: Vec<usize>,
    },
    Cut {
        test: Test,
        /// Subtree for GEMMs that pass the test.
        passes: Box<Tree>,
        fails: Box<Tree>,
    },
}

impl Tree {
    /// Returns the number of leaves.
    pub fn leaves(&self) -> usize {
        match self {
            Self::Leaf { .. } => 1,
            Self::Cut { passes, fails, .. } => passes.leaves() + fails.leaves(),
        }
    }
}

/// Node of a growing tree: a leaf until it is cut.
struct Open {
    /// Shapes that reach the leaf, and its spec.
    shapes: Vec<usize>,
    line: usize,
    /// Cut with the largest gain.
    cut: Option<Cut>,
    /// Test of the applied cut, and the two nodes that it created.
    children: Option<(Test, [usize; 2])>,
}

struct Cut {
    gain: f64,
    test: Test,
    sides: [Vec<usize>; 2],
}

/// Number of alternations between refining and growing.
const TURNS: usize = 3;

/// Maximum relative bonus on the gain of a preferred feature.
const PREFERENCE: f64 = 1.0;

/// Grows the tree of a non-empty set of samples.
pub fn grow(samples: &FitSamples, limits: &TreeLimits) -> Tree {
    let trials = (0..limits.trials).into_par_iter().map(|trial| {
        let preference = if trial == 0 { 0.0 } else { PREFERENCE };
        let random = fastrand::Rng::with_seed(trial);
        let tree = Growth { samples, limits, preference, random }.tree();
        (cost(samples, &tree), tree)
    });
    let trees: Vec<(f64, Tree)> = trials.collect();
    // Of equally good trees, the first is chosen.
    let best = trees.into_iter().reduce(|best, next| if next.0 < best.0 { next } else { best });
    best.map_or_else(|| Tree::Leaf { line: 0, shapes: Vec::new() }, |(_, tree)| tree)
}

/// Returns the cost of all shapes.
fn cost(samples: &FitSamples, tree: &Tree) -> f64 {
    match tree {
        Tree::Leaf { line, shapes } => shapes.iter().map(|n| samples.cost[*n][*line]).sum(),
        Tree::Cut { passes, fails, .. } => cost(samples, passes) + cost(samples, fails),
    }
}

/// State of one growing tree.
struct Growth<'s> {
    samples: &'s FitSamples,
    limits: &'s TreeLimits,
    preference: f64,
    random: fastrand::Rng,
}

impl Growth<'_> {
    fn tree(mut self) -> Tree {
        let shapes: Vec<usize> = (0..self.samples.shapes.len()).collect();
        let mut tree = Tree::Leaf { line: least(&sums(self.samples, &shapes)).0, shapes };
        for _ in 0..TURNS {
            tree = self.grown(tree);
            let refined = refine::refined(self.samples, tree, self.limits);
            tree = merged(self.samples, refined, self.limits);
        }
        tree
    }

    /// Adds cuts until no cut has a gain or the limit of rules is reached.
    fn grown(&mut self, grown: Tree) -> Tree {
        let mut rows = grown.leaves();
        let mut nodes: Vec<Open> = Vec::new();
        let root = self.opened(grown, &mut nodes);
        while rows < self.limits.rows {
            let cuts = nodes.iter().enumerate();
            let gains = cuts.filter_map(|(number, node)| Some((number, node.cut.as_ref()?.gain)));
            let Some((next, _)) = gains.max_by(|a, b| a.1.total_cmp(&b.1)) else { break };
            let Some(Cut { test, sides, .. }) = nodes[next].cut.take() else { break };
            nodes[next].children = Some((test, [nodes.len(), nodes.len() + 1]));
            nodes.extend(sides.map(|shapes| self.open(shapes)));
            rows += 1;
        }
        tree(&nodes, root)
    }

    /// Creates a leaf for some shapes.
    fn open(&mut self, shapes: Vec<usize>) -> Open {
        let (line, _) = least(&sums(self.samples, &shapes));
        let weight = |_: &Vec<f64>| 1.0 + self.preference * self.random.f64();
        let weights: Vec<f64> = self.samples.values.iter().map(weight).collect();
        let cut = best_cut(self.samples, &shapes, line, &weights, self.limits);
        Open { shapes, line, cut, children: None }
    }

    /// Adds the nodes of a tree and returns the index of its root.
    fn opened(&mut self, tree: Tree, nodes: &mut Vec<Open>) -> usize {
        let node = match tree {
            Tree::Leaf { shapes, .. } => self.open(shapes),
            Tree::Cut { test, passes, fails } => {
                let sides = [passes, fails].map(|side| self.opened(*side, nodes));
                Open { shapes: Vec::new(), line: 0, cut: None, children: Some((test, sides)) }
            }
        };
        nodes.push(node);
        nodes.len() - 1
    }
}

fn tree(nodes: &[Open], root: usize) -> Tree {
    match &nodes[root].children {
        None => Tree::Leaf { line: nodes[root].line, shapes: nodes[root].shapes.clone() },
        Some((test, [passes, fails])) => Tree::Cut {
            test: *test,
            passes: Box::new(tree(nodes, *passes)),
            fails: Box::new(tree(nodes, *fails)),
        },
    }
}

/// Returns the total cost of each spec over some shapes.
fn sums(samples: &FitSamples, shapes: &[usize]) -> Vec<f64> {
    let mut sums = vec![0.0; samples.lines.len()];
    for &shape in shapes {
        add(&mut sums, &samples.cost[shape]);
    }
    sums
}

fn add(sums: &mut [f64], costs: &[f64]) {
    for (sum, cost) in sums.iter_mut().zip(costs) {
        *sum += cost;
    }
}

/// Returns the spec with the lowest cost, and that cost.
fn least(sums: &[f64]) -> (usize, f64) {
    let all = sums.iter().copied().enumerate();
    all.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0))
}

/// Returns the cut with the largest gain.
///
/// Both sides must have enough shapes. On one side, another spec must be better by more than
/// [`TreeLimits::same`].
fn best_cut(
    samples: &FitSamples,
    shapes: &[usize],
    line: usize,
    weights: &[f64],
    limits: &TreeLimits,
) -> Option<Cut> {
    /// Upper bound on the difference between two sums of the same costs in different orders.
    const ROUNDING: f64 = 1e-9;
    let total = sums(samples, shapes);
    let same = limits.same.ln();
    let mut best: Option<(f64, &Vec<f64>, Test)> = None;
    let quantities = samples.features.iter().zip(&samples.values).zip(weights);
    for ((feature, values), weight) in quantities {
        let mut order = shapes.to_vec();
        order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
        let mut low = vec![0.0; total.len()];
        for (at, pair) in order.windows(2).enumerate() {
            add(&mut low, &samples.cost[pair[0]]);
            let [below, above] = [pair[0], pair[1]].map(|shape| values[shape]);
            let sizes = [at + 1, order.len() - at - 1];
            let is_between = below < above;
            if !is_between || sizes.iter().any(|size| *size < limits.shapes) {
                continue;
            }
            let high: Vec<f64> = total.iter().zip(&low).map(|(total, low)| total - low).collect();
            let gains = [low[line] - least(&low).1, high[line] - least(&high).1];
            let differs = gains.iter().zip(sizes).any(|(gain, size)| *gain > same * size as f64);
            let gain = weight * (gains[0] + gains[1]);
            if differs && best.as_ref().is_none_or(|(most, ..)| gain > most + ROUNDING) {
                let most = feature.between(below, above);
                best = Some((gain, values, Test { feature: *feature, most }));
            }
        }
    }
    let (gain, values, test) = best?;
    let (passes, fails) = shapes.iter().partition(|shape| values[**shape] <= test.most);
    Some(Cut { gain, test, sides: [passes, fails] })
}

/// Merges the two leaves of a cut if one spec is about as good for all their shapes.
fn merged(samples: &FitSamples, tree: Tree, limits: &TreeLimits) -> Tree {
    let Tree::Cut { test, passes, fails } = tree else { return tree };
    let (passes, fails) = (merged(samples, *passes, limits), merged(samples, *fails, limits));
    if let (Tree::Leaf { line: a, shapes: of_a }, Tree::Leaf { line: b, shapes: of_b }) =
        (&passes, &fails)
    {
        let (sums_a, sums_b) = (sums(samples, of_a), sums(samples, of_b));
        let same = |sums: &[f64], own: usize, line: usize, shapes: &[usize]| {
            sums[line] - sums[own] <= limits.same.ln() * shapes.len() as f64
        };
        let is_as_good =
            |line: &usize| same(&sums_a, *a, *line, of_a) && same(&sums_b, *b, *line, of_b);
        let both = |line: &usize| sums_a[*line] + sums_b[*line];
        let lines = (0..samples.lines.len()).filter(is_as_good);
        if let Some(line) = lines.min_by(|x, y| both(x).total_cmp(&both(y))) {
            return Tree::Leaf { line, shapes: [&of_a[..], of_b].concat() };
        }
    }
    Tree::Cut { test, passes: Box::new(passes), fails: Box::new(fails) }
}
