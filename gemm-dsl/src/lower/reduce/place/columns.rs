//! Threads that fold columns.

use super::{BlockShare, FoldPlace, Folds};
use crate::ir::{Const, Expr, KernelBuilder, Scalar, Special, Var};
use crate::lower::reduce::params::Params;
use crate::plan::ReducePlan;

pub(in crate::lower::reduce) struct Columns {
    /// Coordinate of the thread along x in its block.
    pub(in crate::lower::reduce) tx: Expr,
    pub(in crate::lower::reduce) ty: Expr,
    /// Number of adjacent threads along x; `rows` is the number of threads along y.
    pub(in crate::lower::reduce) across: Const,
    pub(in crate::lower::reduce) rows: Const,
    /// Number of columns of a thread, if more than one.
    pub(in crate::lower::reduce) width: Option<Const>,
    /// Index of the matrix, if there are several.
    pub(super) matrix: Option<Var>,
    /// Index of the thread's first column, which may be past the end.
    first: Var,
    /// Distance from one column of the thread to the next.
    step: Expr,
    /// Number of columns of the matrix.
    all: Scalar,
}

impl Columns {
    /// Calls `f` for each column of the thread. The argument is the index among these columns, or
    /// `None` if there is only one.
    pub(in crate::lower::reduce) fn each(
        &self,
        b: &mut KernelBuilder,
        mut f: impl FnMut(&mut KernelBuilder, Option<Expr>),
    ) {
        match self.width {
            None => f(b, None),
            Some(width) => b.unrolled("w", width, |b, w| f(b, Some(w.into()))),
        }
    }

    /// Index of a column in the matrix, which may be past the end.
    pub(super) fn own(&self, w: Option<Expr>) -> Expr {
        match w {
            None => self.first.into(),
            Some(w) if self.step == Expr::I32(1) => self.first + w,
            Some(w) => self.first + w * self.step.clone(),
        }
    }

    /// Index of a column in the matrix, clamped to the last column.
    pub(in crate::lower::reduce) fn column(&self, w: Option<Expr>) -> Expr {
        self.own(w).min(Expr::from(self.all) - 1)
    }

    /// True if the column exists.
    pub(in crate::lower::reduce) fn inside(&self, w: Option<Expr>) -> Expr {
        self.own(w).lt(self.all)
    }

    /// Index of the first column of the thread's vector, clamped so that all columns of the vector
    /// exist.
    pub(in crate::lower::reduce) fn first_of_vector(&self) -> Expr {
        let width = self.width.map_or(Expr::I32(1), Expr::from);
        Expr::from(self.first).min(Expr::from(self.all) - width)
    }
}

impl FoldPlace {
    pub(super) fn of_columns(
        b: &mut KernelBuilder,
        plan: &ReducePlan,
        p: &Params,
        block: Const,
        all: Scalar,
        matrices: Option<Scalar>,
    ) -> Self {
        let rows =
            b.constant("GROUP", plan.group() as i32, "threads that reduce a column together");
        let across = b.constant("ACROSS", block / rows, "threads that read adjacent columns");
        let width = plan.width() as i32;
        let width = (width > 1).then(|| b.constant("WIDTH", width, "columns per thread"));
        let columns = match width {
            None => across,
            Some(width) => b.constant("COLUMNS", across * width, "columns per block"),
        };
        let tx: Expr = b.let_("tx", Special::ThreadX).into();
        let ty: Expr = b.let_("ty", Special::ThreadY).into();
        let reason = match plan.group() {
            1 => "",
            _ => ": every thread must reach the barriers",
        };
        b.comment(format!(
            "Adjacent threads read adjacent columns. Threads past the last column repeat it \
             and store nothing{reason}."
        ));
        let tile: Expr = Expr::from(Special::BlockX).wide();
        let (tile, matrix) = match matrices {
            None => (tile, None),
            Some(_) => {
                let columns = Expr::from(columns).wide();
                let tiles = b.let_("tiles", Expr::from(all).div_ceil(columns));
                let matrix = b.let_("matrix", tile.clone() / Expr::from(tiles));
                (tile % Expr::from(tiles), Some(matrix))
            }
        };
        let (first, step) = match width {
            Some(width) if plan.vector() > 1 => (tx.clone() * width, 1.into()),
            Some(_) | None => (tx.clone(), across.into()),
        };
        let first = b.let_("own_column", tile * columns + first);
        let split = BlockShare::new(b, plan, p, rows, Special::BlockY);
        let (tid, lane, n) = (ty.clone(), ty.clone(), p.n.into());
        let folds =
            Folds::Columns(Columns { tx, ty, across, rows, width, matrix, first, step, all });
        Self { tid, group: rows, lane, n, split, folds }
    }
}
