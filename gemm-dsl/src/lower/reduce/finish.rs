//! What becomes of what threads have folded: results, or partials, of which the block with the last ticket
//! makes results.

use super::expressions::Expressions;
use super::fold::{Fold, number};
use super::kept::Kept;
use super::place::{Params, Place};
use super::rounds::Role;
use super::team::{DoneOf, Team, load, store, values};
use crate::ir::{
    Access, AtomicOp, BufferId, Change, Elem, Expr, For, KernelBuilder, Layout, Order, Scope,
    Special,
};
use crate::plan::ReducePlan;

/// The end of a kernel.
pub(super) struct Finish<'f> {
    pub(super) plan: &'f ReducePlan,
    pub(super) fold: &'f Fold,
    pub(super) expressions: &'f Expressions,
    pub(super) place: &'f Place,
    pub(super) params: &'f Params,
}

impl Finish<'_> {
    pub(super) fn build(
        &self,
        k: &mut KernelBuilder,
        team: &mut Team<'_>,
        kept: &Kept,
        role: Role,
    ) {
        match role {
            Role::Whole => self.fold_team(k, team, kept, &mut |k, w, all| {
                self.store_results(k, w, all);
            }),
            Role::First => self.fold_team(k, team, kept, &mut |k, w, all| {
                self.store_partials(k, w, all);
            }),
            Role::Last => {
                self.fold_partials(k, kept);
                self.fold_team(k, team, kept, &mut |k, w, all| self.store_results(k, w, all));
            }
            Role::Once => self.by_tickets(k, team, kept),
        }
    }

    /// The threads of a result fold what they keep, and one of them has it all.
    fn fold_team(&self, k: &mut KernelBuilder, team: &mut Team<'_>, kept: &Kept, done: DoneOf<'_>) {
        if let Some(columns) = &self.place.columns {
            return team.by_columns(k, columns, &|w| kept.of(w), &mut |k, w, all| {
                k.if_(columns.inside(w.clone()), |k| done(k, w, all));
            });
        }
        let kept = kept.of(None);
        let group = self.plan.group();
        if group == self.plan.block() {
            return team.by_block(k, values(&kept), &mut |k, all| done(k, None, all));
        }
        if group > 1 {
            k.comment("The threads of a result fold their registers: a lane takes the value of the lane s above.");
            team.by_group(k, &kept, group as i32);
        }
        // A thread past the last result has none.
        let first = (group > 1).then(|| self.place.lane.clone().equals(0));
        let has = match (first, self.place.inside.clone()) {
            (Some(first), Some(inside)) => Some(first.and(inside)),
            (first, inside) => first.or(inside),
        };
        match has {
            None => done(k, None, values(&kept)),
            Some(has) => k.if_(has, |k| done(k, None, values(&kept))),
        }
    }

    pub(super) fn store_results(&self, k: &mut KernelBuilder, w: Option<Expr>, all: Vec<Expr>) {
        let values = self.fold.values(k, &all);
        let results = self.expressions.results(values, self.place.n.clone());
        store(k, &self.params.outputs, &self.place.result(w), results);
    }

    /// Which of the parts of a result the block leaves, and how many there are.
    fn part(&self) -> &(Expr, Expr) {
        match &self.place.part {
            Some(part) => part,
            None => unreachable!("there are several blocks"),
        }
    }

    fn store_partials(&self, k: &mut KernelBuilder, w: Option<Expr>, all: Vec<Expr>) {
        let (part, _) = self.part();
        store(k, &self.params.partials, &self.place.partial(part.clone(), w, true), all);
    }

    /// What the blocks have left, in their order.
    fn fold_partials(&self, k: &mut KernelBuilder, kept: &Kept) {
        let (_, parts) = self.part();
        k.comment("What the blocks have left, in their order.");
        let step = Change::Add(u64::from(self.plan.group()).into());
        let from = self.place.lane.clone().wide();
        k.loop_("left", For::below(from, parts.clone()).change(step), |k, left| {
            self.place.each(k, |k, w| {
                let others =
                    load(&self.params.partials, &self.place.partial(left.into(), w.clone(), false));
                self.fold.combine_into(k, &kept.of(w), &others);
            });
        });
    }

    fn by_tickets(&self, k: &mut KernelBuilder, team: &mut Team<'_>, kept: &Kept) {
        let flag = "whether all blocks have left their parts";
        let is_last = k.shared("is_last", Elem::U32, [1.into()], Layout::row_major(1), flag);
        let is_columns = self.place.columns.is_some();
        let ticket = self.ticket_of();
        self.fold_team(k, team, kept, &mut |k, w, all| {
            self.store_partials(k, w, all);
            if !is_columns {
                self.take_ticket(k, is_last, &ticket);
            }
        });
        if is_columns {
            k.barrier();
            k.if_(self.is_first_thread(), |k| self.take_ticket(k, is_last, &ticket));
        }
        k.barrier();
        let flag = Access::new(is_last, [0.into()]).load();
        k.if_(flag.equals(Expr::U32(1)), |k| {
            k.comment("All others have left theirs: this block has the last ticket.");
            kept.reset(k, self.place, &team.identity);
            self.fold_partials(k, kept);
            self.fold_team(k, team, kept, &mut |k, w, all| self.store_results(k, w, all));
            k.comment("The next launch finds the tickets as this one did.");
            k.if_(self.is_first_thread(), |k| k.store(ticket.clone(), number(Elem::U32, 0)));
        });
    }

    /// Says that this block has left its part: whoever takes the last ticket sees all parts.
    fn take_ticket(&self, k: &mut KernelBuilder, is_last: BufferId, ticket: &Access) {
        let (_, parts) = self.part();
        let one = number(Elem::U32, 1);
        let before = k.atomic(
            "ticket",
            AtomicOp::Add,
            ticket.clone(),
            one.clone(),
            Order::AcqRel,
            Scope::Device,
        );
        let last = (before + one.clone()).equals(parts.clone().cast(Elem::U32));
        k.store(Access::new(is_last, [0.into()]), last.select(one, number(Elem::U32, 0)));
    }

    /// The word that the blocks of a result count in.
    fn ticket_of(&self) -> Access {
        let Some(tickets) = self.params.tickets else { unreachable!("there are tickets") };
        let at = match (self.params.outer, self.params.inner) {
            (None, None) => 0.into(),
            _ => Expr::from(Special::BlockX),
        };
        Access::new(tickets, [at])
    }

    fn is_first_thread(&self) -> Expr {
        match &self.place.columns {
            None => self.place.lane.clone().equals(0),
            Some(columns) => columns.ty.clone().equals(0).and(columns.tx.clone().equals(0)),
        }
    }
}
