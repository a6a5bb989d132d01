//! Kernels without staging whose threads compute one element at a time.

use crate::ir::{Access, Change, Const, Expr, For, Geometry, KernelBuilder, Special, Unroll, Var};
use crate::lower::literal::zero_of;
use crate::lower::sgemm::common::accumulators::{fma, partial_sums};
use crate::lower::sgemm::common::epilogue_args::ElementOfC;
use crate::lower::sgemm::common::epilogue_expression::EpilogueExpression;
use crate::lower::sgemm::common::problem::GemmProblem;
use crate::lower::sgemm::common::row_folds::RowValues;
use crate::lower::sgemm::common::schedule::{self, TileExtents};
use crate::plan::{NaivePlan, SgemmPlan};

pub(crate) fn body(
    b: &mut KernelBuilder,
    plan: &SgemmPlan,
    shape: &NaivePlan,
    problem: GemmProblem,
) {
    let rows = b.constant("ROWS", shape.rows() as i32, "threads per block along M");
    let cols = b.constant("COLS", shape.cols() as i32, "threads per block along N");
    let coarsen = (shape.coarsen() > 1)
        .then(|| b.constant("COARSEN", shape.coarsen() as i32, "adjacent outputs per thread"));
    b.launch_bounds(rows * cols);
    let (block, thread_row, thread_col) = match shape.by_rows() {
        false => ((shape.cols(), shape.rows()), Special::ThreadY, Special::ThreadX),
        true => ((shape.rows(), shape.cols()), Special::ThreadX, Special::ThreadY),
    };
    let grid = schedule::grid(plan, &problem);
    b.geometry(Geometry { block, grid, blocks_per_sm: plan.least_resident() });

    let width = match coarsen {
        Some(coarsen) => cols * coarsen,
        None => cols.into(),
    };
    let origin = schedule::origin(
        b,
        plan,
        &problem,
        TileExtents { rows: rows.into(), cols: width },
        None,
        None,
    );
    let problem = &problem.for_product(b, origin.batch);
    let finish = &EpilogueExpression::declare(b, plan, problem);

    b.comment(match shape.by_rows() {
        false => "Consecutive threads compute consecutive columns of C.",
        true => "Consecutive threads compute consecutive rows of C.",
    });
    let thread_row = b.let_("thread_row", thread_row);
    let thread_col = b.let_("thread_col", thread_col);
    let row = b.let_("row", origin.row + thread_row);
    match coarsen {
        None => {
            let col = b.let_("col", origin.col + thread_col);
            let values = finish.folds.as_ref().map(|folds| folds.start(b));
            output(b, plan, problem, finish, [row, col], values.as_ref());
            leave(b, plan, problem, finish, row, col.into(), values.as_ref());
        }
        Some(coarsen) => {
            let first = b.let_("first_col", origin.col + thread_col * coarsen);
            let values = finish.folds.as_ref().map(|folds| folds.start(b));
            b.comment("Outputs of this thread, one complete dot product after the other.");
            b.loop_("j", For::below(0, coarsen).unroll(Unroll::By(1)), |b, j| {
                let col = b.let_("col", first + j);
                output(b, plan, problem, finish, [row, col], values.as_ref());
            });
            let part = Expr::from(first) / coarsen;
            leave(b, plan, problem, finish, row, part, values.as_ref());
        }
    }
}

/// Stores the thread's part of the folds over its row, if the row exists.
fn leave(
    b: &mut KernelBuilder,
    plan: &SgemmPlan,
    problem: &GemmProblem,
    finish: &EpilogueExpression<'_>,
    row: Var,
    part: Expr,
    values: Option<&RowValues>,
) {
    let Some((folds, values)) = finish.folds.as_ref().zip(values) else { return };
    let store = |b: &mut KernelBuilder| folds.leave_at(b, part, &row.into(), values);
    match plan.guarded() {
        true => b.if_(Expr::from(row).lt(problem.m), store),
        false => store(b),
    }
}

/// Emits the computation of one element of C, if the element exists.
fn output(
    b: &mut KernelBuilder,
    plan: &SgemmPlan,
    problem: &GemmProblem,
    finish: &EpilogueExpression<'_>,
    [row, col]: [Var; 2],
    folded: Option<&RowValues>,
) {
    let write = |b: &mut KernelBuilder| {
        let sum = dot_product(b, plan, problem, row, col);
        let at = ElementOfC { row: &row.into(), col: &col.into() };
        let held = finish.operands.rest(b, at, 0.into(), false);
        let mut values = finish.values(&[sum], at, |nth, _| held.value(nth, 0)).into_iter();
        for (output, value) in finish.outputs().iter().zip(values.by_ref()) {
            b.store(output.matrix.at(row, col), value);
        }
        if let Some((folds, folded)) = finish.folds.as_ref().zip(folded) {
            folds.add(b, folded, 0, values);
        }
    };
    if plan.guarded() {
        let inside = Expr::from(row).lt(problem.m).and(Expr::from(col).lt(problem.n));
        b.if_(inside, write);
    } else {
        write(b);
    }
}

/// Emits the dot product of a row of A and a column of B.
fn dot_product(
    b: &mut KernelBuilder,
    plan: &SgemmPlan,
    problem: &GemmProblem,
    row: Var,
    col: Var,
) -> Expr {
    let product = |at: Expr, acc: Expr| {
        let (from_a, from_b) = (problem.a().at(row, at.clone()), problem.b().at(at, col));
        fma(from_a.load(), from_b.load(), acc)
    };
    let elem = plan.types().acc;
    let partials = plan.partials() as i32;
    let unroll = plan.unroll().map_or(partials, |u| u as i32);
    if unroll == 1 {
        let acc = b.mut_("acc", zero_of(elem, 0.0));
        b.loop_("k", For::below(0, problem.k), |b, i| {
            b.assign(acc, product(i.into(), acc.into()));
        });
        return acc.into();
    }

    let unroll = b.constant("UNROLL", unroll, "unroll factor of the K loop");
    let whole = b.let_("whole", problem.k / unroll * unroll);
    if partials == 1 {
        let acc = b.mut_("acc", zero_of(elem, 0.0));
        let add = |b: &mut KernelBuilder, at: Expr| b.assign(acc, product(at, acc.into()));
        in_groups(b, whole.into(), unroll, |b, at, _| add(b, at));
        b.comment("Remainder of K.");
        b.loop_("k", For::below(whole, problem.k).unroll(Unroll::By(1)), |b, i| {
            add(b, i.into());
        });
        return acc.into();
    }

    let count = partial_sums(b, plan.partials());
    let acc = b.zeroed_registers("acc", elem, [count.into()], "");
    let at = |p: Expr| Access::new(acc, [p]);
    in_groups(b, whole.into(), unroll, |b, i, u| {
        let p = u % count;
        b.store(at(p.clone()), product(i, at(p).load()));
    });
    b.comment("Remainder of K.");
    b.unrolled("u", unroll, |b, u| {
        let p = u % count;
        b.if_((whole + u).lt(problem.k), |b| {
            b.store(at(p.clone()), product(whole + u, at(p).load()));
        });
    });
    (1..partials).fold(at(0.into()).load(), |sum, p| sum + at(p.into()).load())
}

/// Emits the k steps below `whole` in groups of `unroll`. `body` receives k and its index in the
/// group.
fn in_groups(
    b: &mut KernelBuilder,
    whole: Expr,
    unroll: Const,
    body: impl FnOnce(&mut KernelBuilder, Expr, Var),
) {
    b.loop_("k", For::below(0, whole).change(Change::Add(unroll.into())), |b, i| {
        b.unrolled("u", unroll, |b, u| body(b, i + u, u));
    });
}
