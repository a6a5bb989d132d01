//! Folds of an epilogue over the rows of C.
//!
//! **Order.** A thread folds its columns of a row in ascending order, and stores the value as a
//! *part* of the row. A later kernel folds the parts of each row ([`super::row_results`]). The
//! number of a part depends only on its columns, and no two blocks store the same part, so the bits
//! do not depend on which block is first.
//!
//! The vector variant on tensor cores exchanges columns between the lanes of a pair. A thread then
//! has the columns of two parts, and stores both. All variants of a kernel thus have the same
//! parts.

use super::accumulator_tile::AccumulatorTile;
use super::elements::{Adjacent, Elements};
use super::fold_parts::{FoldParts, columns_of_part, parts_of_thread};
use super::problem::GemmProblem;
use crate::expr::FoldOp;
use crate::ir::{Change, Expr, For, KernelBuilder, Unroll, Var};
use crate::lower::folds::{combined, identity};
use crate::plan::SgemmPlan;

/// Folds of an epilogue in a GEMM kernel.
pub(crate) struct RowFolds<'p> {
    plan: &'p SgemmPlan,
    problem: &'p GemmProblem,
    ops: Vec<FoldOp>,
    all: FoldParts,
    of_thread: usize,
}

/// Values of a thread for one row: for each fold, those of its parts.
pub(crate) struct RowValues(Vec<Vec<Var>>);

impl<'p> RowFolds<'p> {
    /// Folds of the plan's epilogue, if it has some.
    pub(crate) fn new(plan: &'p SgemmPlan, problem: &'p GemmProblem) -> Option<Self> {
        let all = problem.folds?;
        let of_thread = parts_of_thread(plan) as usize;
        Some(Self { plan, problem, ops: plan.row_folds(), all, of_thread })
    }

    /// Declares the values of a row, without elements.
    pub(crate) fn start(&self, b: &mut KernelBuilder) -> RowValues {
        let elem = self.plan.types().value();
        let values = self.ops.iter().enumerate().map(|(nth, op)| {
            let names = (0..self.of_thread).map(|part| match self.of_thread {
                1 => format!("fold_{}", nth + 1),
                _ => format!("fold_{}_{part}", nth + 1),
            });
            names.map(|name| b.mut_(&name, identity(*op, elem))).collect()
        });
        RowValues(values.collect())
    }

    /// Resets the values for the next row.
    pub(crate) fn reset(&self, b: &mut KernelBuilder, values: &RowValues) {
        for (op, vars) in self.ops.iter().zip(&values.0) {
            vars.iter().for_each(|var| b.assign(*var, identity(*op, self.plan.types().value())));
        }
    }

    /// Folds the arguments of one element. `j` is its index among adjacent elements, the first of
    /// which begins a quad of columns if lanes have exchanged columns.
    pub(crate) fn add(
        &self,
        b: &mut KernelBuilder,
        values: &RowValues,
        j: usize,
        arguments: impl IntoIterator<Item = Expr>,
    ) {
        let part = j / 2 % self.of_thread;
        for ((op, vars), argument) in self.ops.iter().zip(&values.0).zip(arguments) {
            b.assign(vars[part], combined(*op, vars[part].into(), argument));
        }
    }

    /// Stores the parts of a row of a tile.
    pub(crate) fn leave(
        &self,
        b: &mut KernelBuilder,
        block: &AccumulatorTile<'_>,
        row: &Expr,
        values: &RowValues,
    ) {
        let part = self.part_of(block.origin.col.into(), &block.cols);
        self.leave_at(b, part, row, values);
        if self.problem.shares_folds {
            self.fill(b, block, row);
        }
    }

    /// Stores the values of a row as the thread's parts, the first of which is `part`.
    pub(crate) fn leave_at(
        &self,
        b: &mut KernelBuilder,
        part: Expr,
        row: &Expr,
        values: &RowValues,
    ) {
        let part = Expr::from(b.let_("fold_part", part));
        let row = self.row(row);
        for (nth, vars) in values.0.iter().enumerate() {
            for (of_thread, var) in vars.iter().enumerate() {
                let part = match of_thread {
                    0 => part.clone(),
                    n => part.clone() + n as i32,
                };
                b.store(self.all.at(nth, row.clone(), part), *var);
            }
        }
    }

    /// Number of a row of C among those of the batch.
    fn row(&self, row: &Expr) -> Expr {
        match self.problem.product {
            None => row.clone(),
            Some(product) => {
                let first = Expr::from(product).wide() * Expr::from(self.problem.m).wide();
                first + row.clone().wide()
            }
        }
    }

    /// Number of the thread's first part. Threads of a row of a warp alternate, unless each has
    /// adjacent columns.
    fn part_of(&self, origin: Expr, cols: &Elements) -> Expr {
        let col = origin + cols.first;
        let part = match cols.adjacent {
            Adjacent::All => col / cols.name,
            Adjacent::One | Adjacent::Of(_) => {
                let span = Expr::from(cols.threads) * cols.name;
                let in_span = col.clone() % span.clone();
                let nth = match cols.adjacent {
                    Adjacent::Of(run) => in_span / run,
                    Adjacent::All | Adjacent::One => in_span,
                };
                col / span * cols.threads + nth
            }
        };
        match self.of_thread {
            1 => part,
            parts => part * parts as i32,
        }
    }

    /// Stores the parts after those of the last tile, which another kernel of the program has.
    fn fill(&self, b: &mut KernelBuilder, block: &AccumulatorTile<'_>, row: &Expr) {
        let (_, of_tile) = self.plan.block_tile();
        let threads = of_tile / columns_of_part(self.plan);
        let elem = self.plan.types().value();
        b.comment("The last tile also stores the parts that only another kernel of the GEMM has.");
        let is_last = (block.origin.col + block.bn.clone()).ge(self.problem.n);
        b.if_(is_last, |b| {
            let first = self.part_of(block.origin.col.into(), &block.cols);
            let rest = For::below(first + threads as i32, self.all.parts);
            let rest = rest.change(Change::Add((threads as i32).into())).unroll(Unroll::By(1));
            let row = self.row(row);
            b.loop_("part", rest, |b, part| {
                for of_thread in 0..self.of_thread {
                    let part = Expr::from(part) + of_thread as i32;
                    b.if_(part.clone().lt(self.all.parts), |b| {
                        for (nth, op) in self.ops.iter().enumerate() {
                            let none = identity(*op, elem);
                            b.store(self.all.at(nth, row.clone(), part.clone()), none);
                        }
                    });
                }
            });
        });
    }
}
