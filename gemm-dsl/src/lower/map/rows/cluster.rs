//! Rows that a cluster of blocks computes, and the same order of the elements for a single block.

use super::super::thread;
use super::{Row, RowKernel};
use crate::expr::RowPart;
use crate::ir::{Access, BufferLayout, Const, Expr, For, KernelBuilder, Special, Unroll, Var};

impl RowKernel<'_> {
    /// Builds the kernel of a cluster.
    pub(super) fn build_cluster(&self, b: &mut KernelBuilder, cluster: Const) {
        let row = b.let_("row", (Expr::from(Special::BlockX) / cluster).wide());
        let tid = b.let_("tid", thread());
        let rank = b.let_("rank", Special::ClusterRank);
        let member = b.let_("member", rank * Expr::from(self.block) + tid);
        b.comment("All blocks of the cluster have started before one writes to another.");
        b.cluster_barrier();
        let threads = [member.into(), tid.into()];
        self.row(b, row.into(), threads, self.team.into());
    }

    /// Folds the values of the blocks of a cluster. Every thread gets the result.
    pub(super) fn fold_blocks(
        &self,
        b: &mut KernelBuilder,
        row: &Row,
        vars: &[(usize, &RowPart, Var)],
        cluster: Const,
    ) {
        let mut shared = Vec::new();
        for (nth, part, _) in vars {
            let name = format!("{}_of_blocks", self.names[*nth]);
            let meaning = format!("`{}` of each block", self.names[*nth]);
            let layout = BufferLayout::row_major(1);
            shared.push(b.shared(&name, part.elem(), [cluster.into()], layout, meaning));
        }
        b.comment("Every block gets the results of all blocks, and folds them in their order.");
        b.if_(row.thread.clone().lt(cluster), |b| {
            for ((_, _, var), shared) in vars.iter().zip(&shared) {
                let place = Access::new(*shared, [Special::ClusterRank.into()]);
                b.store_remote(row.thread.clone(), place, *var);
            }
        });
        b.cluster_barrier();
        for ((_, _, var), shared) in vars.iter().zip(&shared) {
            b.assign(*var, Access::new(*shared, [Expr::I32(0)]).load());
        }
        b.loop_("block", For::below(1, cluster).unroll(Unroll::Full), |b, block| {
            for ((_, part, var), shared) in vars.iter().zip(&shared) {
                let other = Access::new(*shared, [block.into()]).load();
                b.assign(*var, part.combined((*var).into(), other));
            }
        });
    }

    /// Declares the number of blocks of the cluster in whose order a single block folds the row.
    /// `None` if there is no such cluster.
    pub(super) fn blocks(&self, b: &mut KernelBuilder, passes: usize) -> Option<Var> {
        if self.class.longest.is_some() || passes == 0 {
            return None;
        }
        let classes = self.plan.row_classes().into_iter();
        let clusters = classes.filter(|class| class.cluster > 1);
        let parts = clusters.rev().fold(Expr::I32(1), |others, class| {
            let longest = class.longest.unwrap_or_default() as i32;
            Expr::from(self.arrays.n).le(longest).select(class.cluster as i32, others)
        });
        b.comment("A row has a part for each block of the cluster that computes it on other GPUs.");
        Some(b.let_("parts", parts))
    }

    /// Computes the folds of a pass in the order of a cluster: the value of each of its blocks, and
    /// then the fold of these values.
    pub(super) fn fold_parts(
        &self,
        b: &mut KernelBuilder,
        row: &mut Row,
        folds: &[(usize, &RowPart)],
        parts: Var,
    ) {
        b.loop_("part", For::below(0, parts), |b, part| {
            let member = b.let_("member", part * Expr::from(self.block) + row.thread.clone());
            let mut own = row.clone();
            (own.member, own.team) = (member.into(), parts * Expr::from(self.block));
            for (nth, part) in folds {
                let name = format!("{}_of_part", self.names[*nth]);
                own.parts[*nth] = Some(b.mut_(&name, part.identity()));
            }
            self.fold_elements(b, &mut own, folds);
            for (nth, part) in folds {
                let (Some(whole), Some(of_part)) = (row.parts[*nth], own.parts[*nth]) else {
                    unreachable!("fold: each fold has a variable")
                };
                b.assign(whole, part.combined(whole.into(), of_part.into()));
            }
            if super::warps(self.class) > 1 {
                b.comment("The next part overwrites the results of the warps.");
                b.barrier();
            }
        });
    }
}
