//! A decision tree: the one cut that gains most is made until no more rows may be had. Of many that are grown so, with
//! some chance, the best is taken.
//!
//! What a cut gains is regret: the logarithm of the time of the line that is chosen over that of the best, summed over
//! shapes. So what counts is what a wrong choice costs, not whether it is wrong. A cut that was best when it was made need
//! not be when others have been made below it: it is moved then, and what rows that leaves are grown again.

use super::condition::Test;
use super::samples::FitSamples;
use rayon::prelude::*;

mod refine;

/// What a tree may grow to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TreeLimits {
    /// Rows of the table: leaves of the tree.
    pub rows: usize,
    /// Shapes of a leaf, at least.
    pub shapes: usize,
    /// How many trees are grown, of which the one that costs least is taken: which cut is best now need not be best in
    /// the end, so that all but the first prefer some at random.
    pub trials: u64,
    /// Leaves whose lines differ by less become one: a ratio of times, the geometric mean over the shapes of each.
    pub same: f64,
}

impl TreeLimits {
    /// So many rows.
    pub fn of_rows(rows: usize) -> Self {
        Self { rows, shapes: 3, trials: 200, same: 1.02 }
    }
}

/// A tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// A line for all that comes here.
    Leaf {
        /// The number of the line.
        line: usize,
        /// The shapes that come here.
        shapes: Vec<usize>,
    },
    /// Two trees.
    Cut {
        /// Which of them a product goes to.
        test: Test,
        /// That of products that pass.
        passes: Box<Tree>,
        /// That of the others.
        fails: Box<Tree>,
    },
}

impl Tree {
    /// How many leaves there are.
    pub fn leaves(&self) -> usize {
        match self {
            Self::Leaf { .. } => 1,
            Self::Cut { passes, fails, .. } => passes.leaves() + fails.leaves(),
        }
    }
}

/// A leaf, until it is cut.
struct Open {
    /// What comes to the leaf, and the line for it.
    shapes: Vec<usize>,
    line: usize,
    /// The cut that gains most.
    cut: Option<Cut>,
    /// The leaves that it has been cut into.
    children: Option<(Test, [usize; 2])>,
}

struct Cut {
    gain: f64,
    test: Test,
    sides: [Vec<usize>; 2],
}

/// How often what has been grown is refined and grown again.
const TURNS: usize = 3;

/// For how much more at most the gain of a cut counts that is preferred.
const PREFERENCE: f64 = 1.0;

/// The tree of samples, of which there is one at least.
pub fn grow(samples: &FitSamples, limits: &TreeLimits) -> Tree {
    let trials = (0..limits.trials).into_par_iter().map(|trial| {
        let preference = if trial == 0 { 0.0 } else { PREFERENCE };
        let random = fastrand::Rng::with_seed(trial);
        let tree = Growth { samples, limits, preference, random }.tree();
        (cost(samples, &tree), tree)
    });
    let trees: Vec<(f64, Tree)> = trials.collect();
    // Of equally good ones the first.
    let best = trees.into_iter().reduce(|best, next| if next.0 < best.0 { next } else { best });
    best.map_or_else(|| Tree::Leaf { line: 0, shapes: Vec::new() }, |(_, tree)| tree)
}

/// What all shapes cost.
fn cost(samples: &FitSamples, tree: &Tree) -> f64 {
    match tree {
        Tree::Leaf { line, shapes } => shapes.iter().map(|n| samples.cost[*n][*line]).sum(),
        Tree::Cut { passes, fails, .. } => cost(samples, passes) + cost(samples, fails),
    }
}

/// A tree that is grown.
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

    /// A tree with as many cuts more as rows are left and gain something.
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

    /// A leaf for some shapes.
    fn open(&mut self, shapes: Vec<usize>) -> Open {
        let (line, _) = least(&sums(self.samples, &shapes));
        let weight = |_: &Vec<f64>| 1.0 + self.preference * self.random.f64();
        let weights: Vec<f64> = self.samples.values.iter().map(weight).collect();
        let cut = best_cut(self.samples, &shapes, line, &weights, self.limits);
        Open { shapes, line, cut, children: None }
    }

    /// The number of the node that a tree becomes.
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

/// The regret of each line over some shapes.
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

/// The line with the least regret, and that.
fn least(sums: &[f64]) -> (usize, f64) {
    let all = sums.iter().copied().enumerate();
    all.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0))
}

/// The cut that gains most, of those whose sides are large enough and on one of which another line is better by more
/// than counts as the same.
fn best_cut(
    samples: &FitSamples,
    shapes: &[usize],
    line: usize,
    weights: &[f64],
    limits: &TreeLimits,
) -> Option<Cut> {
    /// Sums of the same regrets in another order differ by less.
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

/// The tree in which two leaves of a cut are one, where one line is as good as both of theirs.
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
