//! Folds the values of the threads that compute a row.

use super::cluster::Exchange;
use super::{Row, RowKernel, warps};
use crate::expr::{FoldOp, RowPart};
use crate::ir::{
    Access, BufferId, BufferLayout, Change, Const, Expr, For, Intrinsic, KernelBuilder, Unroll, Var,
};
use crate::lower::folds;
use crate::target::arch;

const WARP: i32 = arch::WARP as i32;

impl RowKernel<'_> {
    /// Folds the values of the threads of a team. Every thread gets the result.
    pub(super) fn fold_team(&self, b: &mut KernelBuilder, row: &Row, folds: &[(usize, &RowPart)]) {
        let vars = folds.iter().filter_map(|(nth, part)| Some((*nth, *part, row.parts[*nth]?)));
        let vars: Vec<(usize, &RowPart, Var)> = vars.collect();
        b.comment("Every lane gets the result of its warp.");
        let head = For::above(WARP / 2, 0).change(Change::Div(2.into())).unroll(Unroll::Full);
        b.loop_("step", head, |b, step| {
            for (nth, part, var) in &vars {
                let other = Expr::Call(Intrinsic::ShuffleXor, vec![(*var).into(), step.into()]);
                let other = match part.reads_twice() {
                    true => b.let_(&self.numbered("other", *nth), other).into(),
                    false => other,
                };
                b.assign(*var, part.combined((*var).into(), other));
            }
        });
        if warps(self.class) > 1 {
            self.fold_warps(b, row, &vars);
        }
        if let Some(exchange) = row.exchange {
            self.fold_blocks(b, row, &vars, exchange);
        }
    }

    /// Folds the values of the warps of a block.
    fn fold_warps(&self, b: &mut KernelBuilder, row: &Row, vars: &[(usize, &RowPart, Var)]) {
        let warps = b.constant("WARPS", Expr::from(self.block) / WARP, "warps per block");
        // Without another pass, memory alternates from row to row.
        let turn = row.exchange.and_then(Exchange::turn);
        let partials = self.partials(b, vars, "warp", warps, turn);
        b.comment("Every thread folds the results of the warps in their order.");
        b.if_((row.thread.clone() % WARP).equals(0), |b| {
            for (place, (.., var)) in partials.at(row.thread.clone() / WARP).zip(vars) {
                b.store(place, *var);
            }
        });
        b.barrier();
        partials.fold(b, vars);
    }

    /// Declares shared memory for the values of each warp or block.
    pub(super) fn partials(
        &self,
        b: &mut KernelBuilder,
        vars: &[(usize, &RowPart, Var)],
        of: &'static str,
        count: Const,
        turn: Option<Expr>,
    ) -> Partials {
        let declare = |(nth, part, _): &(usize, &RowPart, Var)| {
            let name = format!("{}_of_{of}s", self.names[*nth]);
            let meaning = format!("`{}` of each {of}", self.names[*nth]);
            let dims: Vec<Expr> = turn.iter().map(|_| 2.into()).chain([count.into()]).collect();
            let layout = BufferLayout::row_major(dims.len());
            let array = b.shared(&name, part.elem(), dims, layout, meaning);
            b.named_by_user(array);
            array
        };
        Partials { arrays: vars.iter().map(declare).collect(), of, count, turn }
    }
}

/// Values of each warp or block, in shared memory.
pub(super) struct Partials {
    arrays: Vec<BufferId>,
    of: &'static str,
    count: Const,
    /// Index of the memory for this row, if the memory alternates.
    turn: Option<Expr>,
}

impl Partials {
    /// Elements of a warp or block, one of each array.
    pub(super) fn at(&self, index: Expr) -> impl Iterator<Item = Access> {
        let place = move |array: &BufferId| {
            Access::new(*array, self.turn.iter().cloned().chain([index.clone()]))
        };
        self.arrays.iter().map(place)
    }

    /// Folds the values in their order.
    pub(super) fn fold(&self, b: &mut KernelBuilder, vars: &[(usize, &RowPart, Var)]) {
        for (place, (.., var)) in self.at(Expr::I32(0)).zip(vars) {
            b.assign(*var, place.load());
        }
        b.loop_(self.of, For::below(1, self.count).unroll(Unroll::Full), |b, index| {
            for (place, (_, part, var)) in self.at(index.into()).zip(vars) {
                b.assign(*var, part.combined((*var).into(), place.load()));
            }
        });
    }
}

impl RowPart {
    /// Returns true if the operator reads its operands twice.
    pub(super) fn reads_twice(&self) -> bool {
        let is_extreme = matches!(self.op(), Some(FoldOp::Max | FoldOp::Min));
        is_extreme && !self.elem().is_float()
    }

    /// Combines two values of a fold.
    pub(super) fn combined(&self, a: Expr, b: Expr) -> Expr {
        folds::combined(self.op().unwrap_or(FoldOp::Sum), a, b)
    }
}
