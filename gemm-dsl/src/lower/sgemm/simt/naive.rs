//! Kernels that stage nothing, and whose threads have one sum after the other.

use super::fragment::partial_sums;
use crate::ir::{
    Access, Change, Const, Elem, Expr, For, Geometry, Intrinsic, KernelBuilder, Special, Unroll,
    Var,
};
use crate::lower::sgemm::shared::epilogue_expression::Finish;
use crate::lower::sgemm::shared::problem::Problem;
use crate::lower::sgemm::shared::schedule;
use crate::plan::{NaivePlan, SgemmPlan};

pub(crate) fn body(k: &mut KernelBuilder, plan: &SgemmPlan, shape: &NaivePlan, problem: Problem) {
    let rows = k.constant("ROWS", shape.rows() as i32, "threads of a block along the rows of C");
    let cols = k.constant("COLS", shape.cols() as i32, "threads of a block along its columns");
    let coarsen = (shape.coarsen() > 1)
        .then(|| k.constant("COARSEN", shape.coarsen() as i32, "adjacent outputs of a thread"));
    k.launch_bounds(rows * cols);
    let (block, thread_row, thread_col) = match shape.by_rows() {
        false => ((shape.cols(), shape.rows()), Special::ThreadY, Special::ThreadX),
        true => ((shape.rows(), shape.cols()), Special::ThreadX, Special::ThreadY),
    };
    let grid = schedule::grid(plan, &problem);
    k.geometry(Geometry { block, grid, blocks_per_sm: plan.blocks_per_sm() });

    let width = match coarsen {
        Some(coarsen) => cols * coarsen,
        None => cols.into(),
    };
    let origin = schedule::origin(k, plan, &problem, (rows.into(), width), None, None);
    let problem = &problem.of(k, origin.batch);
    let finish = &Finish::declare(k, plan, problem);

    k.comment(match shape.by_rows() {
        false => "Consecutive threads compute consecutive columns of C.",
        true => "Consecutive threads compute consecutive rows of C.",
    });
    let thread_row = k.let_("thread_row", thread_row);
    let thread_col = k.let_("thread_col", thread_col);
    let row = k.let_("row", origin.row + thread_row);
    match coarsen {
        None => {
            let col = k.let_("col", origin.col + thread_col);
            output(k, plan, problem, finish, (row, col));
        }
        Some(coarsen) => {
            let first = k.let_("first_col", origin.col + thread_col * coarsen);
            k.comment("The outputs of a thread, one whole sum after the other.");
            k.loop_("j", For::below(0, coarsen).unroll(Unroll::By(1)), |k, j| {
                let col = k.let_("col", first + j);
                output(k, plan, problem, finish, (row, col));
            });
        }
    }
}

/// One element of C, if it exists.
fn output(
    k: &mut KernelBuilder,
    plan: &SgemmPlan,
    problem: &Problem,
    finish: &Finish<'_>,
    (row, col): (Var, Var),
) {
    let write = |k: &mut KernelBuilder| {
        let sum = dot_product(k, plan, problem, row, col);
        let at = (&row.into(), &col.into());
        let held = finish.operands.rest(k, at, 0.into(), false);
        let value = finish.value(sum, at, (&held, 0));
        k.store(problem.c().at(row, col), value);
    };
    if plan.guarded() {
        let inside = Expr::from(row).lt(problem.m).and(Expr::from(col).lt(problem.n));
        k.if_(inside, write);
    } else {
        write(k);
    }
}

/// The product of a row of A and a column of B.
fn dot_product(
    k: &mut KernelBuilder,
    plan: &SgemmPlan,
    problem: &Problem,
    row: Var,
    col: Var,
) -> Expr {
    let product = |at: Expr, acc: Expr| {
        let (a, b) = (problem.a().at(row, at.clone()), problem.b().at(at, col));
        Expr::Call(Intrinsic::Fma, vec![a.load(), b.load(), acc])
    };
    let partials = plan.partials() as i32;
    let unroll = plan.unroll().map_or(partials, |u| u as i32);
    if unroll == 1 {
        let acc = k.mut_("acc", 0.0);
        k.loop_("k", For::below(0, problem.k), |k, i| {
            k.assign(acc, product(i.into(), acc.into()));
        });
        return acc.into();
    }

    let unroll = k.constant("UNROLL", unroll, "steps of the K loop unrolled together");
    let whole = k.let_("whole", problem.k / unroll * unroll);
    if partials == 1 {
        let acc = k.mut_("acc", 0.0);
        let add = |k: &mut KernelBuilder, at: Expr| k.assign(acc, product(at, acc.into()));
        in_groups(k, whole.into(), unroll, |k, at, _| add(k, at));
        k.comment("What is left of K.");
        k.loop_("k", For::below(whole, problem.k).unroll(Unroll::By(1)), |k, i| {
            add(k, i.into());
        });
        return acc.into();
    }

    let count = partial_sums(k, plan.partials());
    let acc = k.zeroed_registers("acc", Elem::F32, [count.into()], "");
    let at = |p: Expr| Access::new(acc, [p]);
    in_groups(k, whole.into(), unroll, |k, i, u| {
        let p = u % count;
        k.store(at(p.clone()), product(i, at(p).load()));
    });
    k.comment("What is left of K.");
    k.unrolled("u", unroll, |k, u| {
        let p = u % count;
        k.if_((whole + u).lt(problem.k), |k| {
            k.store(at(p.clone()), product(whole + u, at(p).load()));
        });
    });
    (1..partials).fold(at(0.into()).load(), |sum, p| sum + at(p.into()).load())
}

/// The steps below `whole`, a group of `unroll` at a time; the body gets the k and its place in the
/// group.
fn in_groups(
    k: &mut KernelBuilder,
    whole: Expr,
    unroll: Const,
    body: impl FnOnce(&mut KernelBuilder, Expr, Var),
) {
    k.loop_("k", For::below(0, whole).change(Change::Add(unroll.into())), |k, i| {
        k.unrolled("u", unroll, |k, u| body(k, i + u, u));
    });
}
