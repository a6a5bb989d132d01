//! Who a thread is: what it folds, with whom, and where the elements of that lie.

mod columns;
mod segment;

pub(super) use columns::Columns;
pub(super) use segment::Groups;

use super::params::{Params, Results};
use super::reader::Round;
use super::rounds::Role;
use super::shape;
use crate::ir::{Access, BufferId, Const, Expr, KernelBuilder, Scalar, Special, Var};
use crate::plan::{Blocks, ReducePlan};

/// What a thread is, and where it reads and writes.
pub(super) struct Place {
    /// Its number in the block, of columns along y.
    pub(super) tid: Expr,
    /// The threads of its result in the block.
    pub(super) group: Const,
    /// Its number among the threads of its result in the block.
    pub(super) lane: Expr,
    /// How many elements its result has.
    pub(super) n: Expr,
    /// Its block among those of its result, where there are several: never of segments, nor where a block folds
    /// several rows.
    pub(super) split: Option<Split>,
    pub(super) folds: Folds,
}

/// What a thread folds.
pub(super) enum Folds {
    /// The array, as all other threads do.
    Array,
    /// A row; `inside` says whether there is such a one, where a block may have threads past the last.
    Row { row: Var, inside: Option<Expr> },
    /// A segment, whose first element has this index; with `groups` where it is the threads of a group that
    /// fold one, not those of a block.
    Segment { segment: Var, first: Var, groups: Option<Groups> },
    /// A column, or some.
    Columns(Columns),
}

/// A block among those that fold the same result.
pub(super) struct Split {
    /// Its number.
    pub(super) block: Expr,
    /// How many there are.
    pub(super) blocks: Expr,
    /// How many of them leave what they have folded of elements.
    pub(super) partials: Expr,
    /// The run that it folds, where it does not take turns with others.
    pub(super) run: Option<Run>,
}

/// A run of elements.
#[derive(Clone, Copy)]
pub(super) struct Run {
    /// The index of its first element.
    pub(super) from: Var,
    /// That of the element behind its last.
    pub(super) end: Var,
}

impl Place {
    /// The place of a thread of a kernel.
    pub(super) fn new(b: &mut KernelBuilder, plan: &ReducePlan, p: &Params, block: Const) -> Self {
        match p.results {
            Results::Array => Self::of_array(b, plan, p, block),
            Results::Rows(rows) => Self::of_row(b, plan, p, (block, rows)),
            Results::Segments(segments, offsets) => {
                Self::of_segment(b, plan, (block, segments, offsets))
            }
            Results::Columns(columns, matrices) => {
                Self::of_columns(b, plan, p, (block, columns, matrices))
            }
        }
    }

    fn of_array(b: &mut KernelBuilder, plan: &ReducePlan, p: &Params, block: Const) -> Self {
        let tid: Expr = b.let_("tid", Special::ThreadX).into();
        let split = Split::new(b, plan, p, (block, Special::BlockX));
        let (lane, n) = (tid.clone(), p.n.into());
        Self { tid, group: block, lane, n, split, folds: Folds::Array }
    }

    fn of_row(
        b: &mut KernelBuilder,
        plan: &ReducePlan,
        p: &Params,
        (block, rows): (Const, Scalar),
    ) -> Self {
        let tid: Expr = b.let_("tid", Special::ThreadX).into();
        let n = p.n.into();
        let Some(member) = Member::new(b, plan, &tid, (block, rows), ["row", "rows"]) else {
            let row = b.let_("row", Expr::from(Special::BlockX).wide());
            let split = Split::new(b, plan, p, (block, Special::BlockY));
            let folds = Folds::Row { row, inside: None };
            return Self { lane: tid.clone(), tid, group: block, n, split, folds };
        };
        let Member { group, lane, own: row, inside, .. } = member;
        let folds = Folds::Row { row, inside: Some(inside) };
        Self { tid, group, lane, n, split: None, folds }
    }

    /// The row, the segment or the matrix.
    fn outer(&self) -> Option<Expr> {
        match &self.folds {
            Folds::Array => None,
            Folds::Row { row: of, .. } | Folds::Segment { segment: of, .. } => Some((*of).into()),
            Folds::Columns(columns) => columns.matrix.map(Expr::from),
        }
    }

    /// Those of a thread that folds columns.
    pub(super) fn columns(&self) -> Option<&Columns> {
        match &self.folds {
            Folds::Columns(columns) => Some(columns),
            Folds::Array | Folds::Row { .. } | Folds::Segment { .. } => None,
        }
    }

    /// Whether the thread has a result of its own, where one may have none. Columns are asked one by one.
    pub(super) fn inside(&self) -> Option<Expr> {
        match &self.folds {
            Folds::Row { inside, .. } => inside.clone(),
            Folds::Segment { groups, .. } => groups.as_ref().map(Groups::is_short),
            Folds::Array | Folds::Columns(_) => None,
        }
    }

    /// Whether it is the first thread of the block, where the block's threads fold one result or columns.
    pub(super) fn is_first_thread(&self) -> Expr {
        match self.columns() {
            None => self.lane.clone().equals(0),
            Some(columns) => columns.ty.clone().equals(0).and(columns.tx.clone().equals(0)),
        }
    }

    /// An element of an input, by its index; of a column.
    pub(super) fn element(&self, input: BufferId, index: Expr, column: Option<Expr>) -> Access {
        match &self.folds {
            Folds::Segment { first, .. } => Access::new(input, [*first + index]),
            _ => Access::new(input, self.outer().into_iter().chain([index]).chain(column)),
        }
    }

    /// Does something for each result of the thread, the columns that it folds.
    pub(super) fn each(
        &self,
        b: &mut KernelBuilder,
        mut f: impl FnMut(&mut KernelBuilder, Option<Expr>),
    ) {
        match self.columns() {
            None => f(b, None),
            Some(columns) => columns.each(b, f),
        }
    }

    /// The index of a result that there is.
    pub(super) fn result(&self, w: Option<Expr>) -> Vec<Expr> {
        let column = self.columns().map(|columns| columns.own(w));
        let index: Vec<Expr> = self.outer().into_iter().chain(column).collect();
        if index.is_empty() { vec![0.into()] } else { index }
    }

    /// The index of the partial of a block, of a result that there is. Those of neighbouring columns are
    /// neighbours.
    pub(super) fn partial(&self, block: Expr, w: Option<Expr>) -> Vec<Expr> {
        self.partial_at(block, self.columns().map(|columns| columns.own(w)))
    }

    /// The same, of the last column where there is none such.
    pub(super) fn partial_of_some(&self, block: Expr, w: Option<Expr>) -> Vec<Expr> {
        self.partial_at(block, self.columns().map(|columns| columns.column(w)))
    }

    /// The same of a column.
    pub(super) fn partial_at(&self, block: Expr, column: Option<Expr>) -> Vec<Expr> {
        self.outer().into_iter().chain([block]).chain(column).collect()
    }
}

impl Split {
    /// The thread's block where several fold a result: the coordinate is its number.
    fn new(
        b: &mut KernelBuilder,
        plan: &ReducePlan,
        p: &Params,
        (group, number): (Const, Special),
    ) -> Option<Self> {
        let block = Expr::from(number).wide();
        match (plan.blocks(), p.run) {
            (Blocks::Runs(_), Some(run)) => Some(Self::of_run(b, p, block, run)),
            (Blocks::InTurn(most), _) => {
                let round = Round::new(b, plan, group, "ROUND").elements;
                let meaning = "the most blocks that fold one result";
                let most = b.constant("BLOCKS", most as i32, meaning);
                let rounds = shape::rounds(p.n.into(), Expr::from(round).wide());
                let rounds = b.let_("rounds", rounds);
                let blocks = Expr::from(rounds).min(Expr::from(most).wide());
                let blocks: Expr = b.let_("blocks", blocks).into();
                Some(Self { block, partials: blocks.clone(), blocks, run: None })
            }
            _ => None,
        }
    }

    /// The same where each block folds a run.
    fn of_run(b: &mut KernelBuilder, p: &Params, block: Expr, run: Const) -> Self {
        let own = p.role.reads().then(|| {
            let from = b.let_("from", block.clone() * run);
            Run { from, end: b.let_("end", (from + run).min(p.n)) }
        });
        let mut partials = Expr::from(p.n).div_ceil(Expr::from(run).wide());
        if matches!(p.role, Role::Last | Role::Once) {
            partials = b.let_("runs", partials).into();
        }
        let mut blocks = partials.clone();
        if p.role == Role::Once {
            // Some block makes a result of no elements, too.
            let some = blocks.clone().gt(0u64).select(blocks, 1u64);
            blocks = b.let_("blocks", some).into();
        }
        Self { block, blocks, partials, run: own }
    }
}

/// A thread of a group that folds a row or a segment.
struct Member {
    /// The threads of the group.
    group: Const,
    /// How many groups a block has.
    per_block: Const,
    /// The thread's number in its group.
    lane: Expr,
    /// The row or the segment; past the last one, the last.
    own: Var,
    /// Whether it is none past the last.
    inside: Expr,
}

impl Member {
    /// None where the group is the block.
    fn new(
        b: &mut KernelBuilder,
        plan: &ReducePlan,
        tid: &Expr,
        (block, count): (Const, Scalar),
        [one, many]: [&str; 2],
    ) -> Option<Self> {
        let group = plan.group();
        if group == plan.block() {
            return None;
        }
        let group =
            b.constant("GROUP", group as i32, format!("threads that fold a {one} together"));
        let per_block =
            b.constant(&many.to_uppercase(), block / group, format!("{many} of a block"));
        b.comment(format!(
            "GROUP neighbours fold a {one}; those past the last {one} repeat it and store nothing."
        ));
        let own = Expr::from(Special::BlockX).wide() * per_block + tid.clone() / group;
        let nth = b.let_("own", own);
        let own = b.let_(one, Expr::from(nth).min(Expr::from(count) - 1));
        let lane = b.let_("lane", tid.clone() % group).into();
        Some(Self { group, per_block, lane, own, inside: Expr::from(nth).lt(count) })
    }
}
