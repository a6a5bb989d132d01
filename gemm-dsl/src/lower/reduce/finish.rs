//! End of a kernel, which stores results or partial results. A second launch, or the block with the
//! last ticket, folds partial results into results.

use super::accumulators::FoldAccumulators;
use super::expressions::Expressions;
use super::fold::Fold;
use super::params::Params;
use super::place::{BlockShare, Columns, FoldPlace, Folds};
use super::role::Role;
use super::team::{Team, load, store, values};
use crate::ir::{Access, BufferId, Change, Const, Elem, Expr, For, KernelBuilder, Special};
use crate::lower::tickets::{self, Tickets};
use crate::plan::{Blocks, ReducePlan};

/// Inputs for the end of a kernel.
pub(super) struct Finish<'f> {
    pub(super) plan: &'f ReducePlan,
    pub(super) fold: &'f Fold,
    pub(super) expressions: &'f Expressions,
    pub(super) place: &'f FoldPlace,
    pub(super) params: &'f Params,
    /// True to access arrays by vectors.
    pub(super) wide: bool,
}

/// Destination of the folded values.
#[derive(Clone, Copy)]
pub(super) enum Destination<'t> {
    Results,
    Partials,
    /// Partial results. The thread that stores the partial results also takes the block's ticket if
    /// the block folds a single result.
    Counted(&'t Tickets),
}

impl Finish<'_> {
    pub(super) fn build(
        &self,
        b: &mut KernelBuilder,
        team: &mut Team<'_>,
        kept: &FoldAccumulators,
        role: Role,
    ) {
        match role {
            Role::Whole => self.fold_team(b, team, kept, Destination::Results),
            Role::First | Role::Shard => self.fold_team(b, team, kept, Destination::Partials),
            Role::Last => {
                self.fold_partials(b, kept);
                self.fold_team(b, team, kept, Destination::Results);
            }
            Role::Once => self.by_tickets(b, team, kept),
        }
    }

    /// Folds the accumulators of a result's threads; one of them stores the folded value.
    fn fold_team(
        &self,
        b: &mut KernelBuilder,
        team: &mut Team<'_>,
        kept: &FoldAccumulators,
        to: Destination<'_>,
    ) {
        if let Some(columns) = self.place.columns() {
            return team.by_columns(b, columns, &|w| kept.cells(w), &mut |b, all| {
                self.store_columns(b, columns, to, all);
            });
        }
        let kept = kept.cells(None);
        let group = self.plan.group();
        if group == self.plan.block() {
            return team.by_block(b, values(&kept), &mut |b, all| self.store(b, to, None, all));
        }
        if group > 1 {
            self.group_text(b);
            team.by_group(b, &kept, group as i32);
        }
        // A thread whose result is past the last stores nothing.
        let first = (group > 1).then(|| self.place.lane.clone().equals(0));
        let has = match (first, self.place.inside()) {
            (Some(first), Some(inside)) => Some(first.and(inside)),
            (first, inside) => first.or(inside),
        };
        match has {
            None => self.store(b, to, None, values(&kept)),
            Some(has) => b.if_(has, |b| self.store(b, to, None, values(&kept))),
        }
    }

    /// Emits a comment on the shuffles of a group.
    fn group_text(&self, b: &mut KernelBuilder) {
        let [folds, _] = self.fold.verbs();
        let one = super::result_noun(self.plan);
        b.comment(format!(
            "Shuffle reduction within each group: each lane {folds} the value of lane + s. Member \
             0 ends with the whole {one}; values from other groups never reach it."
        ));
    }

    /// Stores one result or partial result.
    pub(super) fn store(
        &self,
        b: &mut KernelBuilder,
        to: Destination<'_>,
        w: Option<Expr>,
        all: Vec<Expr>,
    ) {
        let made = self.made(b, to, all);
        let tickets = match (to, self.place.columns()) {
            (Destination::Counted(tickets), None) => Some(tickets),
            _ => None,
        };
        if tickets.is_some() {
            b.comment("Publish the partial, then take a ticket.");
        }
        store(b, self.arrays(to), &self.index(to, w), made);
        if let Some(tickets) = tickets {
            tickets.take(b);
        }
    }

    /// Values to store: one element for each array.
    fn made(&self, b: &mut KernelBuilder, to: Destination<'_>, all: Vec<Expr>) -> Vec<Expr> {
        match to {
            Destination::Results => {
                let values = self.fold.values(b, &all);
                self.expressions.results(values, &self.params.numbers, self.place.n.clone())
            }
            Destination::Partials | Destination::Counted(_) => all,
        }
    }

    fn arrays(&self, to: Destination<'_>) -> &[BufferId] {
        match to {
            Destination::Results => &self.params.outputs,
            Destination::Partials | Destination::Counted(_) => &self.params.partials,
        }
    }

    fn index(&self, to: Destination<'_>, w: Option<Expr>) -> Vec<Expr> {
        match to {
            Destination::Results => self.place.result(w),
            Destination::Partials | Destination::Counted(_) => {
                self.place.partial(self.split().block.clone(), w)
            }
        }
    }

    /// Stores the columns of a thread, except those past the last one. `all` is the folded
    /// accumulator of one column.
    fn store_columns(
        &self,
        b: &mut KernelBuilder,
        columns: &Columns,
        to: Destination<'_>,
        all: &dyn Fn(Option<Expr>) -> Vec<Expr>,
    ) {
        let arrays = self.arrays(to);
        let lanes = |array: &BufferId| self.lanes(array.elem);
        let Some(width) =
            columns.width.filter(|_| arrays.iter().any(|array| lanes(array).is_some()))
        else {
            return columns.each(b, |b, w| {
                b.if_(columns.inside(w.clone()), |b| self.store(b, to, w.clone(), all(w)));
            });
        };
        // All columns of a vector exist, or none does.
        b.if_(columns.inside(None), |b| {
            let each = arrays.iter().enumerate();
            let held = each.map(|(n, array)| {
                neighbours(b, array.elem, ArrayNumber { n, count: arrays.len() }, width)
            });
            let held: Vec<BufferId> = held.collect();
            columns.each(b, |b, w| {
                let made = self.made(b, to, all(w.clone()));
                store(b, &held, w.as_slice(), made);
            });
            for (array, held) in arrays.iter().zip(&held) {
                let Some(lanes) = lanes(array) else {
                    columns.each(b, |b, w| {
                        let value = load(&[*held], w.as_slice());
                        store(b, &[*array], &self.index(to, w), value);
                    });
                    continue;
                };
                for first in (0..self.plan.width()).step_by(lanes as usize) {
                    let at = (first > 0).then_some(Expr::I32(first as i32));
                    let from = Access::new(*held, [Expr::I32(first as i32)]).vector();
                    b.store(Access::new(*array, self.index(to, at)).vector(), from.load());
                }
            }
        });
    }

    /// Vector width for neighbouring columns in an array; `None` if the kernel does not use
    /// vectors.
    fn lanes(&self, elem: Elem) -> Option<u32> {
        if self.wide { self.plan.lanes_of_columns(elem) } else { None }
    }

    /// Share of the block in a result that several blocks fold.
    fn split(&self) -> &BlockShare {
        match &self.place.split {
            Some(split) => split,
            None => unreachable!("BlockShare::new: kernels with partials have a share"),
        }
    }

    /// Each thread folds some of the partial results. Their distribution and the order of the fold
    /// do not depend on the block that executes it.
    fn fold_partials(&self, b: &mut KernelBuilder, kept: &FoldAccumulators) {
        let one = match self.plan.blocks() {
            Blocks::Runs(_) => "run",
            Blocks::One | Blocks::InTurn(_) => "block",
        };
        self.order_comment(b);
        let step = Change::Add(Expr::from(self.place.group).wide());
        let (from, partials) = (self.place.lane.clone().wide(), self.split().partials.clone());
        b.loop_(one, For::below(from, partials).change(step), |b, block| {
            let held = self.load_neighbours(b, block.into());
            self.place.each(b, |b, w| {
                let index = self.place.partial_of_some(block.into(), w.clone());
                let arrays = self.params.partials.iter().zip(&held);
                let others = arrays.map(|(array, held)| match held {
                    Some(held) => Access::new(*held, w.clone()).load(),
                    None => Access::new(*array, index.clone()).load(),
                });
                let others: Vec<Expr> = others.collect();
                self.fold.combine_into(b, &kept.cells(w), &others);
            });
        });
    }

    /// Comments on the order in which partial results are folded.
    fn order_comment(&self, b: &mut KernelBuilder) {
        let event = match self.params.role {
            Role::Once => "which block finishes last",
            _ => "when blocks finish",
        };
        let (result, folds, parts) = match self.fold.is_sum() {
            true => ("sum", "sums", "sums"),
            false => ("result", "combines", "values"),
        };
        let order = match (self.place.columns(), self.plan.group()) {
            (Some(_), 1) => format!("each thread {folds} the partials of a column in order."),
            (Some(_), _) => format!(
                "each thread {folds} partials GROUP apart, then the threads of a column reduce \
                 these {parts}."
            ),
            (None, _) => format!(
                "each thread {folds} partials BLOCK apart, then the block reduces these {parts}."
            ),
        };
        b.comment(format!(
            "The order does not depend on {event}, so the {result} is reproducible: {order}"
        ));
    }

    /// Loads a block's partial results for the columns of the thread into registers, for arrays
    /// that are read by vectors.
    fn load_neighbours(&self, b: &mut KernelBuilder, block: Expr) -> Vec<Option<BufferId>> {
        let arrays = &self.params.partials;
        let width = self.place.columns().and_then(|columns| columns.width);
        let (Some(columns), Some(width)) = (self.place.columns(), width) else {
            return vec![None; arrays.len()];
        };
        let loaded = arrays.iter().enumerate().map(|(n, array)| {
            let lanes = self.lanes(array.elem)?;
            let held = neighbours(b, array.elem, ArrayNumber { n, count: arrays.len() }, width);
            for first in (0..self.plan.width()).step_by(lanes as usize) {
                let column = columns.first_of_vector();
                let column = if first > 0 { column + first as i32 } else { column };
                let from = Access::new(*array, self.place.partial_at(block.clone(), Some(column)));
                let to = Access::new(held, [Expr::I32(first as i32)]).vector();
                b.store(to, from.vector().load());
            }
            Some(held)
        });
        loaded.collect()
    }

    fn by_tickets(&self, b: &mut KernelBuilder, team: &mut Team<'_>, kept: &FoldAccumulators) {
        let (word, first_thread) = (self.ticket(), self.place.is_first_thread());
        let tickets =
            Tickets::new(word, tickets::flag(b), self.split().blocks.clone(), first_thread);
        self.fold_team(b, team, kept, Destination::Counted(&tickets));
        if self.place.columns().is_some() {
            b.comment(
                "Take a ticket after all threads of the block have published their partials.",
            );
            tickets.take_for_all(b);
        }
        tickets.by_last(b, |b| {
            b.comment(
                "Last ticket: the acquire-release add and the barrier make all partials visible. \
                 is_last is the same in the whole block, so barriers are legal here.",
            );
            kept.reset(b, self.place, &team.identity);
            self.fold_partials(b, kept);
            self.fold_team(b, team, kept, Destination::Results);
        });
    }

    /// Word in which the blocks of a result take tickets. Results that the same blocks fold share
    /// one word.
    fn ticket(&self) -> Access {
        let Some(tickets) = self.params.tickets else {
            unreachable!("params: `Role::Once` has tickets")
        };
        let at = match self.place.folds {
            Folds::Array => 0.into(),
            Folds::Row { .. } | Folds::Segment { .. } | Folds::Columns(_) => Special::BlockX.into(),
        };
        Access::new(tickets, [at])
    }
}

/// Index of an array among several.
struct ArrayNumber {
    n: usize,
    count: usize,
}

/// Declares registers for the columns of a thread, for the array with the given number.
fn neighbours(b: &mut KernelBuilder, elem: Elem, number: ArrayNumber, width: Const) -> BufferId {
    let ArrayNumber { n, count } = number;
    let name = if count == 1 { "neighbours".to_owned() } else { format!("neighbours_{n}") };
    b.registers(&name, elem, [width.into()], "for the columns of the thread")
}
