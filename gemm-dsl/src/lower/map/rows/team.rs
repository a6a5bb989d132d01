//! Folds the values of the threads that compute a row.

use super::cluster::Exchange;
use super::{Row, RowKernel, warps};
use crate::expr::{FoldOp, RowPart};
use crate::ir::{
    Access, BufferId, BufferLayout, Change, Expr, For, Intrinsic, KernelBuilder, Unroll, Var,
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
        let mut shared = Vec::new();
        for (nth, part, _) in vars {
            let name = format!("{}_of_warps", self.names[*nth]);
            let meaning = format!("`{}` of each warp", self.names[*nth]);
            let dims: Vec<Expr> = turn.iter().map(|_| 2.into()).chain([warps.into()]).collect();
            let layout = BufferLayout::row_major(dims.len());
            let of_warps = b.shared(&name, part.elem(), dims, layout, meaning);
            b.named_by_user(of_warps);
            shared.push(of_warps);
        }
        let place =
            |shared: BufferId, warp: Expr| Access::new(shared, turn.iter().cloned().chain([warp]));
        b.comment("Every thread folds the results of the warps in their order.");
        b.if_((row.thread.clone() % WARP).equals(0), |b| {
            for ((_, _, var), shared) in vars.iter().zip(&shared) {
                b.store(place(*shared, row.thread.clone() / WARP), *var);
            }
        });
        b.barrier();
        for ((_, _, var), shared) in vars.iter().zip(&shared) {
            b.assign(*var, place(*shared, Expr::I32(0)).load());
        }
        b.loop_("warp", For::below(1, warps).unroll(Unroll::Full), |b, warp| {
            for ((_, part, var), shared) in vars.iter().zip(&shared) {
                let other = place(*shared, warp.into()).load();
                b.assign(*var, part.combined((*var).into(), other));
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
