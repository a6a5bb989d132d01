//! Epilogue: visits a thread's accumulators with their rows and columns, and stores C. Only this
//! builder stores C in kernels whose threads hold tiles of C. `naive` stores the value of
//! [`EpilogueExpression`] itself.

use super::accumulators::Accumulators;
use super::intra_block_reduction::SlicePartials;
use super::loops::{guarded, over};
use super::quads;
use super::row_folds::RowValues;
use super::split_k::SplitKWorkspace;
use crate::ir::{Access, BufferId, BufferLayout, Change, Const, Expr, For, KernelBuilder, Unroll};
use crate::lower::sgemm::common::accumulator_tile::{AccumulatorTile, TileParts};
use crate::lower::sgemm::common::epilogue_args::{ArgLine, ElementOfC, EpilogueArgs, LoadedArgs};
use crate::lower::sgemm::common::epilogue_expression::{EpilogueExpression, OutputMatrix};
use crate::plan::Guards;

/// Code that corrects the accumulators of a block.
pub(crate) type Correction<'c> = &'c dyn Fn(&mut KernelBuilder, &Accumulators);

/// Accumulators of a block's threads, with the partial accumulators of the other slices.
pub(crate) struct BlockSums<'c> {
    pub acc: Accumulators,
    pub others: Option<SlicePartials>,
    /// Emits corrections of the accumulators, after those of other slices have been added.
    pub correct: Option<Correction<'c>>,
}

/// Adds the partial accumulators of the other slices, and corrects the sums. Then stores the tile
/// in C, or leaves it for another block to combine.
pub(crate) fn finish_block(
    b: &mut KernelBuilder,
    block: &AccumulatorTile<'_>,
    parts: Option<TileParts>,
    split: Option<&SplitKWorkspace>,
    sums: BlockSums<'_>,
    finish: &EpilogueExpression<'_>,
) {
    let BlockSums { acc, others, correct } = sums;
    let complete = |b: &mut KernelBuilder| {
        if let Some(others) = &others {
            others.add(b, block, &acc);
        }
        if let Some(correct) = correct {
            correct(b, &acc);
        }
    };
    match split.zip(parts) {
        None => block.by_epilogue_threads(b, |b| {
            complete(b);
            store(b, block, &acc, finish);
        }),
        Some((split, parts)) => {
            if others.is_some() || correct.is_some() {
                block.by_epilogue_threads(b, complete);
            }
            split.gather(b, block, &parts, acc, |b, all| store(b, block, all, finish));
        }
    }
}

/// Stores all elements of the tile that exist in C.
pub(crate) fn store(
    b: &mut KernelBuilder,
    block: &AccumulatorTile<'_>,
    acc: &Accumulators,
    finish: &EpilogueExpression<'_>,
) {
    match block.origin.nth.zip(block.problem.batch) {
        None => tile(b, block, acc, finish),
        Some((nth, batch)) => {
            b.if_(Expr::from(nth).lt(batch.count), |b| tile(b, block, acc, finish));
        }
    }
}

/// Stores the elements of one GEMM, which must exist in the batch.
fn tile(
    b: &mut KernelBuilder,
    block: &AccumulatorTile<'_>,
    acc: &Accumulators,
    finish: &EpilogueExpression<'_>,
) {
    let plan = block.epilogue;
    if plan.staged_rows() > 0 {
        return looped(b, block, acc, finish);
    }
    let does = finish.verb();
    match plan.guards() {
        Guards::None => {
            b.comment(format!("Epilogue: {does} the outputs."));
            outputs(b, block, acc, finish, false);
        }
        Guards::Inline => {
            b.comment(format!("Epilogue: {does} the outputs that are in range."));
            outputs(b, block, acc, finish, true);
        }
        Guards::Hoisted => {
            b.comment(format!(
                "Epilogue: {does} the outputs that are in range. A tile wholly inside C needs no \
                 bounds checks."
            ));
            let (p, origin) = (&block.problem, &block.origin);
            let inside = (origin.row + block.bm.clone())
                .le(p.end_of_rows())
                .and((origin.col + block.bn.clone()).le(p.n));
            b.if_else(
                inside,
                |b| outputs(b, block, acc, finish, false),
                |b| outputs(b, block, acc, finish, true),
            );
        }
    }
}

/// State for the stores of a thread.
struct Outputs<'a> {
    block: &'a AccumulatorTile<'a>,
    finish: &'a EpilogueExpression<'a>,
    guards: bool,
}

/// Row of C, with the epilogue operands loaded so far.
struct OutputRow<'r> {
    row: Expr,
    operands: EpilogueArgs,
    /// Values of the folds over the row.
    folds: Option<&'r RowValues>,
}

/// Accumulators of adjacent outputs: the index of the first one among the thread's columns, its
/// column in C, and all values.
struct OutputSums {
    n: Expr,
    col: Expr,
    each: Vec<Expr>,
    /// All values as one vector, if they are available as a vector.
    whole: Option<Expr>,
}

fn outputs(
    b: &mut KernelBuilder,
    block: &AccumulatorTile<'_>,
    acc: &Accumulators,
    finish: &EpilogueExpression<'_>,
    guards: bool,
) {
    if block.epilogue.groups() > 0 {
        return quads::outputs(b, block, acc, finish, guards);
    }
    let p = &block.problem;
    let operands = finish.operands.items(b);
    let operands = match block.rows.count {
        // A thread with a single row reads the operands of a column only once anyway.
        1 => operands,
        _ => operands.columns(b, block.cols.name.into(), |b, arrays| {
            columns(b, block, arrays, guards);
        }),
    };
    let outputs = Outputs { block, finish, guards };
    over(b, "m", block.rows.name.into(), block.rows.count, |b, m| {
        let row = b.let_("row", block.origin.row + block.rows.element(m.clone()));
        guarded(b, guards, Expr::from(row).lt(p.end_of_rows()), |b| {
            let operands = operands.row(b, &row.into());
            let values = finish.folds.as_ref().map(|folds| folds.start(b));
            let row = OutputRow { row: row.into(), operands, folds: values.as_ref() };
            let width = block.epilogue.width();
            if width > 1 {
                let vectors = block.cols.name / width as i32;
                over(b, "v", vectors, block.cols.count / width, |b, v| {
                    let col = b
                        .let_("col", block.origin.col + block.cols.vector(v.clone(), width as i32));
                    let n = v * width as i32;
                    let each = (0..width as i32).map(|j| acc.value(&m, &(n.clone() + j))).collect();
                    let whole = Some(acc.vector(&m, &n, width as i32));
                    outputs.vector(b, &row, &OutputSums { n, col: col.into(), each, whole });
                });
            } else {
                let (span, count) = (finish.span as i32, block.cols.count / finish.span as u32);
                let (name, bound): (_, Expr) = match span {
                    1 => ("n", block.cols.name.into()),
                    _ => ("pair", block.cols.name / span),
                };
                over(b, name, bound, count, |b, i| {
                    let n = if span == 1 { i } else { i * span };
                    let col = b.let_("col", block.origin.col + block.cols.element(n.clone()));
                    // N is even, so both columns of a pair are in range, or none.
                    guarded(b, guards, Expr::from(col).lt(p.n), |b| {
                        let each = (0..span).map(|j| acc.value(&m, &(n.clone() + j))).collect();
                        let sums = OutputSums { n, col: col.into(), each, whole: None };
                        outputs.one(b, &row, 0, &sums);
                    });
                });
            }
            if let Some((folds, values)) = finish.folds.as_ref().zip(row.folds) {
                folds.leave(b, block, &row.row, values);
            }
        });
    });
}

/// Stores the tile in a loop that is not unrolled, for a long epilogue. Registers cannot be indexed
/// at run time, so rows of accumulators are staged in shared memory.
fn looped(
    b: &mut KernelBuilder,
    block: &AccumulatorTile<'_>,
    acc: &Accumulators,
    finish: &EpilogueExpression<'_>,
) {
    let (plan, count) = (block.epilogue, block.epilogue.staged_rows());
    let is_whole = count == block.rows.count;
    let meaning = "rows of a thread staged at once";
    let rows: Expr = match is_whole {
        true => block.rows.name.into(),
        false => b.constant("WAITING", count as i32, meaning).into(),
    };
    let meaning = "accumulators of a thread staged at once";
    let all = b.constant("SUMS", rows.clone() * block.cols.name, meaning);
    let dims = [all.into(), block.epilogue_threads.clone()];
    let meaning = "staged accumulators; each thread reads only its own";
    let sums = b.shared("sums", block.plan.types().acc, dims, BufferLayout::row_major(2), meaning);
    let operands = finish.operands.items(b);
    let sums = StagedSums { block, finish, operands, sums, all };
    let in_range = if plan.guards() == Guards::None { "" } else { " that are in range" };
    let staged = match is_whole {
        true => "all accumulators are staged",
        false => "WAITING rows of a thread are staged at a time",
    };
    b.comment(format!(
        "Epilogue: {} the outputs{in_range}, in a loop over accumulators in shared memory; \
         {staged}. The loop's code is small. Accumulators are staged as scalars: a vector store \
         needs four adjacent registers, which slows the main loop down.",
        finish.verb()
    ));
    if is_whole {
        sums.stage(b, acc, &0.into(), rows, count);
        return sums.finish(b, &0.into());
    }
    let parts = For::below(0, block.rows.name / rows.clone()).unroll(Unroll::By(1));
    b.loop_("part", parts, |b, part| {
        // The loop that selects the rows is unrolled, since registers cannot be indexed.
        let (others, parts) = (block.rows.name / rows.clone(), block.rows.count / count);
        over(b, "other", others, parts, |b, other| {
            b.if_(other.clone().equals(part), |b| {
                sums.stage(b, acc, &(other * rows.clone()), rows.clone(), count);
            });
        });
        sums.finish(b, &(part * rows.clone()));
    });
}

/// Accumulators of a thread in shared memory.
struct StagedSums<'s> {
    block: &'s AccumulatorTile<'s>,
    finish: &'s EpilogueExpression<'s>,
    /// Operands of the epilogue; those of each GEMM of a batch are loaded.
    operands: EpilogueArgs,
    sums: BufferId,
    /// Number of accumulators of a thread that are staged at once.
    all: Const,
}

impl StagedSums<'_> {
    fn at(&self, i: Expr) -> Access {
        Access::new(self.sums, [i, self.block.epilogue_thread.clone()])
    }

    /// Stores the accumulators of `rows` rows, the first of which is row `first` of the thread.
    fn stage(
        &self,
        b: &mut KernelBuilder,
        acc: &Accumulators,
        first: &Expr,
        rows: Expr,
        count: u32,
    ) {
        let cols = &self.block.cols;
        over(b, "m", rows, count, |b, m| {
            over(b, "n", cols.name.into(), cols.count, |b, n| {
                let sum = acc.value(&(first.clone() + m.clone()), &n);
                b.store(self.at(m.clone() * cols.name + n), sum);
            });
        });
    }

    /// Stores the outputs of the staged accumulators. `first` is their first row in the thread.
    fn finish(&self, b: &mut KernelBuilder, first: &Expr) {
        let Self { block, finish, all, .. } = self;
        let (p, plan) = (&block.problem, block.epilogue);
        let (width, guards) = (plan.width(), plan.guards() != Guards::None);
        let outputs = Outputs { block, finish, guards };
        let step = (width as i32).max(finish.span as i32);
        let each = For::below(0, *all).change(Change::Add(step.into())).unroll(Unroll::By(1));
        let values = finish.folds.as_ref().map(|folds| folds.start(b));
        let folds = finish.folds.as_ref().zip(values.as_ref());
        b.loop_("i", each, |b, i| {
            let m = b.let_("m", first.clone() + Expr::from(i) / block.cols.name);
            let row = b.let_("row", block.origin.row + block.rows.element(m.into()));
            let n = Expr::from(i) % block.cols.name;
            let col = match width {
                1 => block.cols.element(n.clone()),
                _ => block.cols.vector(n.clone() / width as i32, width as i32),
            };
            let col = Expr::from(b.let_("col", block.origin.col + col));
            let of_row = Expr::from(row).lt(p.end_of_rows());
            if let Some((folds, values)) = folds {
                b.if_(n.clone().equals(0), |b| folds.reset(b, values));
            }
            // A vector store checks its columns itself.
            let inside = match width {
                1 => of_row.clone().and(col.clone().lt(p.n)),
                _ => of_row.clone(),
            };
            let is_last = (n.clone() + step).equals(block.cols.name);
            guarded(b, guards, inside, |b| {
                let operands = self.operands.row(b, &row.into());
                let row = OutputRow { row: row.into(), operands, folds: values.as_ref() };
                let each = (0..step).map(|j| {
                    let name = if step > 1 { format!("sum_{j}") } else { "sum".to_owned() };
                    b.let_(&name, self.at(Expr::from(i) + j).load()).into()
                });
                let sums = OutputSums { n, col, each: each.collect(), whole: None };
                match width {
                    1 => outputs.one(b, &row, 0, &sums),
                    _ => outputs.vector(b, &row, &sums),
                }
            });
            if let Some((folds, values)) = folds {
                let ends = if guards { is_last.and(of_row) } else { is_last };
                b.if_(ends, |b| folds.leave(b, block, &row.into(), values));
            }
        });
    }
}

/// Loads the operands of those columns of the thread that exist.
fn columns(
    b: &mut KernelBuilder,
    block: &AccumulatorTile<'_>,
    arrays: &[(ArgLine, BufferId)],
    guards: bool,
) {
    let (p, plan) = (&block.problem, block.epilogue);
    let width = plan.width();
    let wide = width > 1 && !(plan.straddles() && guards);
    let (name, bound, count) = match wide {
        true => ("v", block.cols.name / width as i32, block.cols.count / width),
        false => ("n", block.cols.name.into(), block.cols.count),
    };
    over(b, name, bound, count, |b, i| {
        let (first, at) = match wide {
            true => (i.clone() * width as i32, block.cols.vector(i, width as i32)),
            false => (i.clone(), block.cols.element(i)),
        };
        let col = b.let_("loaded_col", block.origin.col + at);
        guarded(b, guards, Expr::from(col).lt(p.n), |b| {
            for (memory, kept) in arrays {
                let from = memory.at(col);
                let to = Access::new(*kept, [first.clone()]);
                match wide {
                    true => b.store(to.vector(), from.vector().load()),
                    false => b.store(to, from.load()),
                }
            }
        });
    });
}

impl Outputs<'_> {
    /// Stores output `j` of `sums`, or the outputs of the pair of columns that begins there.
    fn one(&self, b: &mut KernelBuilder, row: &OutputRow<'_>, j: usize, sums: &OutputSums) {
        let span = self.finish.span;
        let held = (j..j + span).map(|at| {
            let [n, col] = [&sums.n, &sums.col].map(|first| first.clone() + at as i32);
            let operands = match at {
                at if at == j => row.operands.clone(),
                _ => row.operands.in_odd_column(),
            };
            operands.rest(b, ElementOfC { row: &row.row, col: &col }, n, false)
        });
        let held: Vec<LoadedArgs> = held.collect();
        let col = sums.col.clone() + j as i32;
        let at = ElementOfC { row: &row.row, col: &col };
        let held = |nth, column: usize| held[column].value(nth, 0);
        let mut values = self.finish.values(&sums.each[j..j + span], at, held).into_iter();
        for output in self.finish.outputs() {
            for (nth, value) in values.by_ref().take(output.count).enumerate() {
                let col = self.column(output, &col) + nth as i32;
                b.store(output.matrix.at(row.row.clone(), col), value);
            }
        }
        if let Some((folds, kept)) = self.finish.folds.as_ref().zip(row.folds) {
            folds.add(b, kept, j, values);
        }
    }

    /// Stores a vector of adjacent elements of a row, in each output.
    fn whole(&self, b: &mut KernelBuilder, row: &OutputRow<'_>, sums: &OutputSums) {
        let held = row.operands.rest(
            b,
            ElementOfC { row: &row.row, col: &sums.col },
            sums.n.clone(),
            true,
        );
        let outputs = self.finish.outputs();
        if let Some(whole) = sums.whole.as_ref().filter(|_| self.finish.is_identity()) {
            for output in outputs {
                let to = output.matrix.at(row.row.clone(), sums.col.clone());
                b.store(to.vector(), whole.clone());
            }
            return;
        }
        let mut stored = vec![Vec::new(); outputs.len()];
        let mut arguments = Vec::new();
        let span = self.finish.span;
        for (j, sums_of_columns) in (0..).step_by(span).zip(sums.each.chunks(span)) {
            let col = sums.col.clone() + j as i32;
            let at = ElementOfC { row: &row.row, col: &col };
            let held = |nth, column| held.value(nth, j + column);
            let mut values = self.finish.values(sums_of_columns, at, held).into_iter();
            for (output, stored) in outputs.iter().zip(&mut stored) {
                stored.extend(values.by_ref().take(output.count));
            }
            arguments.push((j, values));
        }
        if let Some((folds, kept)) = self.finish.folds.as_ref().zip(row.folds) {
            for (j, arguments) in arguments {
                folds.add(b, kept, j, arguments);
            }
        }
        for (output, values) in outputs.iter().zip(stored) {
            let at = |col| output.matrix.at(row.row.clone(), col);
            let col = self.column(output, &sums.col);
            if values.len() == sums.each.len() {
                b.store(at(col).vector(), Expr::Pack(values));
                continue;
            }
            for (nth, value) in values.into_iter().enumerate() {
                b.store(at(col.clone() + nth as i32), value);
            }
        }
    }

    /// Column of an output, given the first column of A·B whose values it takes.
    fn column(&self, output: &OutputMatrix, col: &Expr) -> Expr {
        match output.count {
            count if count == self.finish.span => col.clone(),
            _ => col.clone() / 2,
        }
    }

    /// Stores the existing outputs of a vector.
    fn vector(&self, b: &mut KernelBuilder, row: &OutputRow<'_>, sums: &OutputSums) {
        let (p, col) = (&self.block.problem, &sums.col);
        if !self.block.epilogue.straddles() || !self.guards {
            // N is a multiple of a vector's elements, so a vector is either inside C or outside C
            // as a whole.
            let inside = col.clone().lt(p.n);
            return guarded(b, self.guards, inside, |b| self.whole(b, row, sums));
        }
        b.if_else(
            (col.clone() + (sums.each.len() as i32 - 1)).lt(p.n),
            |b| self.whole(b, row, sums),
            |b| {
                for j in (0..sums.each.len()).step_by(self.finish.span) {
                    b.if_((col.clone() + j as i32).lt(p.n), |b| self.one(b, row, j, sums));
                }
            },
        );
    }
}
