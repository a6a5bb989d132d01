//! Rows that a cluster of blocks computes, and the same order of the elements for a single block.

use super::super::arrays::{Array, Parameter};
use super::super::thread;
use super::{Cluster, Row, RowKernel};
use crate::expr::RowPart;
use crate::ir::{
    Access, BufferId, BufferLayout, Change, Const, Expr, For, KernelBuilder, MbarrierId,
    ProxyFence, Special, Stmt, Var,
};
use crate::spec::Along;

/// Exchange of values between the blocks of a cluster. Each block stores its values in all blocks.
#[derive(Clone, Copy)]
pub(super) struct Exchange {
    blocks: Const,
    /// A barrier for each pass, or two that alternate from row to row.
    barriers: MbarrierId,
    /// Number of rows before the current one.
    round: Var,
    alternates: bool,
}

impl Exchange {
    /// Index of the memory for a row, which alternates between 0 and 1 if there is one pass.
    pub(super) fn turn(self) -> Option<Expr> {
        self.alternates.then(|| Expr::from(self.round) % 2)
    }
}

impl RowKernel<'_> {
    /// Computes the rows of a cluster, one after the other.
    pub(super) fn rows_of_cluster(&self, b: &mut KernelBuilder, cluster: Cluster) {
        let tid = b.let_("tid", thread());
        let rank = b.let_("rank", Special::ClusterRank);
        let member = b.let_("member", rank * Expr::from(self.block) + tid);
        let first = (Expr::from(Special::BlockX) / cluster.blocks).wide();
        let first = b.let_("first", first);
        let row_of = |row: Expr| self.row_of(row, [member.into(), tid.into()], self.team.into());
        let next = self.next_rows(b);
        let has_next = next.iter().any(Option::is_some);
        if has_next {
            b.comment("Each thread copies its elements of the next row, while it computes a row.");
            b.if_(Expr::from(first).lt(self.arrays.m), |b| {
                self.copy_row(b, &row_of(first.into()), &next);
            });
            b.push(Stmt::CopyCommit);
        }
        let exchange = self.exchange(b, cluster);
        let head = For::below(first, self.arrays.m).change(Change::Add(cluster.count.into()));
        b.loop_("row", head, |b, at| {
            let mut row = row_of(at.into());
            row.exchange = Some(exchange);
            row.of_row = self.row_elements(b, &row.row);
            self.registers(b, &mut row, |_| true);
            if has_next {
                b.push(Stmt::CopyWait { pending: Expr::I32(0) });
                self.take_row(b, &row, &next);
                let after = b.let_("next", Expr::from(at) + cluster.count);
                b.if_(Expr::from(after).lt(self.arrays.m), |b| {
                    self.copy_row(b, &row_of(after.into()), &next);
                });
                b.push(Stmt::CopyCommit);
            } else if row.elements.iter().any(Option::is_some) {
                b.comment("The loads of all items are in flight together.");
                self.load(b, &row, &Expr::I32(0));
            }
            self.compute(b, &mut row);
            b.assign(exchange.round, Expr::from(exchange.round) + 1);
        });
    }

    /// Declares shared memory for the elements of the next row, if they are copied as vectors.
    fn next_rows(&self, b: &mut KernelBuilder) -> Vec<Option<BufferId>> {
        let row = Expr::from(self.block) * self.lanes();
        let dims = [Expr::from(self.items), row];
        let operands = self.arrays.operands.iter().enumerate().map(|(nth, operand)| {
            let array = match operand {
                Parameter::Array(array) if array.along == Along::Mn && self.is_wide => array,
                _ => return None,
            };
            let name = &self.arrays.names[nth];
            let (meaning, layout) =
                (format!("elements of `{name}` of the next row"), BufferLayout::row_major(2));
            Some(b.shared(&format!("next{nth}"), array.elem(), dims.clone(), layout, meaning))
        });
        operands.collect()
    }

    /// Starts the copy of the thread's elements of a row.
    fn copy_row(&self, b: &mut KernelBuilder, row: &Row, next: &[Option<BufferId>]) {
        self.each_vector(b, row, next, |b, array, [item, col, lane], to| {
            let source = array.at(row.row.clone(), col + lane.clone()).vector();
            let target = self.place_of_next(row, to, item, lane);
            b.push(Stmt::CopyAsync { target, source, guard: None });
        });
    }

    /// Loads the thread's copied elements into registers.
    fn take_row(&self, b: &mut KernelBuilder, row: &Row, next: &[Option<BufferId>]) {
        let held = row.elements.clone();
        self.each_vector(b, row, next, |b, _, [item, _, lane], from| {
            let nth = next.iter().position(|buffer| *buffer == Some(from));
            let Some(registers) = nth.and_then(|nth| held[nth]) else {
                unreachable!("registers: each array with a copy has registers")
            };
            let value = self.place_of_next(row, from, item.clone(), lane.clone()).load();
            b.store(Access::new(registers, [item, lane]).vector(), value);
        });
    }

    /// Vector of the thread in shared memory.
    fn place_of_next(&self, row: &Row, buffer: BufferId, item: Expr, lane: Expr) -> Access {
        let col = row.thread.clone() * self.lanes() + lane;
        Access::new(buffer, [item, col]).vector()
    }

    /// Calls `f` with each vector of the thread in arrays that are copied: the array, its item, its
    /// column and its lane in the item, and the shared memory.
    fn each_vector(
        &self,
        b: &mut KernelBuilder,
        row: &Row,
        next: &[Option<BufferId>],
        f: impl Fn(&mut KernelBuilder, Array, [Expr; 3], BufferId),
    ) {
        self.each_item(b, row, &Expr::I32(0), |b, item, col| {
            for (nth, buffer) in next.iter().enumerate() {
                let (Some(buffer), Some(array)) = (*buffer, self.array(nth)) else { continue };
                for lane in self.vectors(array) {
                    f(b, array, [item.clone(), col.clone(), Expr::I32(lane)], buffer);
                }
            }
        });
    }

    /// Initialises the mbarriers of the exchange between the blocks.
    fn exchange(&self, b: &mut KernelBuilder, cluster: Cluster) -> Exchange {
        // The exchange of another pass, or of the previous row, shows that all blocks have read the
        // values which the next exchange overwrites.
        let slots = self.passes().max(2) as i32;
        let barriers = b.mbarriers("values", slots, "for the values of all blocks, in each pass");
        b.if_(thread().equals(0), |b| {
            for slot in 0..slots {
                b.mbarrier_init(barriers, slot, 1);
            }
            b.proxy_fence(ProxyFence::MbarrierInit);
        });
        b.comment("All blocks of the cluster have started, and see the barriers.");
        b.cluster_barrier();
        let round = b.mut_("round", 0);
        Exchange { blocks: cluster.blocks, barriers, round, alternates: self.passes() == 1 }
    }

    /// Folds the values of the blocks of a cluster. Every thread gets the result.
    pub(super) fn fold_blocks(
        &self,
        b: &mut KernelBuilder,
        row: &Row,
        vars: &[(usize, &RowPart, Var)],
        exchange: Exchange,
    ) {
        let Exchange { blocks, barriers, round, alternates } = exchange;
        let partials = self.partials(b, vars, "block", blocks, exchange.turn());
        let turn = || Expr::from(round) % 2;
        let (slot, parity) = match alternates {
            true => (turn(), Expr::from(round) / 2 % 2),
            false => {
                let pass = vars.first().map_or(0, |(_, part, _)| part.pass);
                (Expr::I32(pass as i32), turn())
            }
        };
        b.comment("Every block gets the values of all blocks, and folds them in their order.");
        let bytes: u32 = vars.iter().map(|(_, part, _)| part.elem().size()).sum();
        b.if_(row.thread.clone().equals(0), |b| {
            b.mbarrier_arrive_expect(barriers, slot.clone(), Expr::from(blocks) * bytes as i32);
        });
        b.if_(row.thread.clone().lt(blocks), |b| {
            for (place, (.., var)) in partials.at(Special::ClusterRank.into()).zip(vars) {
                b.store_async(row.thread.clone(), place, *var, (barriers, slot.clone()));
            }
        });
        b.mbarrier_wait(barriers, slot, parity);
        partials.fold(b, vars);
    }

    /// Declares the number of parts of the row: the blocks of the cluster that computes it on other
    /// GPUs.
    pub(super) fn parts(&self, b: &mut KernelBuilder) -> Var {
        let classes = self.plan.row_classes();
        let mut clusters = classes.iter().filter(|class| class.cluster > 1).rev();
        let most = clusters.next().map_or(1, |class| class.cluster as i32);
        let parts = clusters.filter(|class| class.cluster as i32 != most);
        let parts = parts.fold(Expr::I32(most), |others, class| {
            let longest = class.longest.unwrap_or_default() as i32;
            Expr::from(self.arrays.n).le(longest).select(class.cluster as i32, others)
        });
        b.comment("The parts of the row are those of a cluster's blocks, for the same bits.");
        b.let_("parts", parts)
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
                let var = b.mut_(&name, part.identity());
                b.named_by_user(var);
                own.parts[*nth] = Some(var);
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
