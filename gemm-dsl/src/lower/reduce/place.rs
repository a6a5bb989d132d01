//! Position of a thread: its result, the threads that fold the same result, and the location of its
//! elements.

mod columns;
mod segment;

pub(super) use columns::Columns;
pub(super) use segment::Groups;

use super::params::{Params, Results};
use super::role::Role;
use super::round::Round;
use super::shape;
use crate::ir::{Access, BufferId, Const, Expr, KernelBuilder, Scalar, Special, Var};
use crate::plan::{Blocks, ReducePlan};
use crate::spec::Over;

/// Position of a thread, with the locations that it reads and writes.
pub(super) struct FoldPlace {
    /// Index of the thread in the block; for columns, its y coordinate.
    pub(super) tid: Expr,
    /// Number of threads of the block that fold the thread's result.
    pub(super) group: Const,
    /// Index of the thread among these threads.
    pub(super) lane: Expr,
    /// Number of elements of the thread's result.
    pub(super) n: Expr,
    /// Share of the block in its result, if several blocks fold one result. Always `None` for
    /// segments, and if a block folds several rows.
    pub(super) split: Option<BlockShare>,
    pub(super) folds: Folds,
}

/// Result that the thread folds.
pub(super) enum Folds {
    /// Whole array, as all other threads do.
    Array,
    /// Row. `inside` is the condition that the row exists, if a block may have threads past the
    /// last row.
    Row {
        row: Var,
        inside: Option<Expr>,
    },
    /// Segment whose first element has the index `first`. `groups` is `None` if the whole block
    /// folds the segment.
    Segment {
        segment: Var,
        first: Var,
        groups: Option<Groups>,
    },
    Columns(Columns),
}

/// Share of one block in a result that several blocks fold.
pub(super) struct BlockShare {
    pub(super) block: Expr,
    pub(super) blocks: Expr,
    /// Number of blocks that have elements and therefore store partial results.
    pub(super) partials: Expr,
    /// Run that the block folds; `None` if the blocks take rounds in turn.
    pub(super) run: Option<Run>,
}

#[derive(Clone, Copy)]
pub(super) struct Run {
    /// Index of the run's first element.
    pub(super) from: Var,
    /// Index after the run's last element.
    pub(super) end: Var,
}

impl FoldPlace {
    pub(super) fn new(b: &mut KernelBuilder, plan: &ReducePlan, p: &Params, block: Const) -> Self {
        match p.results {
            Results::Array => Self::of_array(b, plan, p, block),
            Results::Rows(rows) => Self::of_row(b, plan, p, block, rows),
            Results::Segments(segments, offsets) => {
                Self::of_segment(b, plan, block, segments, offsets)
            }
            Results::Columns(columns, matrices) => {
                Self::of_columns(b, plan, p, block, columns, matrices)
            }
        }
    }

    fn of_array(b: &mut KernelBuilder, plan: &ReducePlan, p: &Params, block: Const) -> Self {
        let tid: Expr = b.let_("tid", Special::ThreadX).into();
        let split = BlockShare::new(b, plan, p, block, Special::BlockX);
        let (lane, n) = (tid.clone(), p.n.into());
        Self { tid, group: block, lane, n, split, folds: Folds::Array }
    }

    fn of_row(
        b: &mut KernelBuilder,
        plan: &ReducePlan,
        p: &Params,
        block: Const,
        rows: Scalar,
    ) -> Self {
        let tid: Expr = b.let_("tid", Special::ThreadX).into();
        let n = p.n.into();
        let Some(member) = GroupMember::new(b, plan, &tid, block, rows, ["row", "rows"]) else {
            let row = b.let_("row", Expr::from(Special::BlockX).wide());
            let split = BlockShare::new(b, plan, p, block, Special::BlockY);
            let folds = Folds::Row { row, inside: None };
            return Self { lane: tid.clone(), tid, group: block, n, split, folds };
        };
        let GroupMember { group, lane, own: row, inside, .. } = member;
        let folds = Folds::Row { row, inside: Some(inside) };
        Self { tid, group, lane, n, split: None, folds }
    }

    /// Index of the row, segment or matrix.
    fn outer(&self) -> Option<Expr> {
        match &self.folds {
            Folds::Array => None,
            Folds::Row { row: of, .. } | Folds::Segment { segment: of, .. } => Some((*of).into()),
            Folds::Columns(columns) => columns.matrix.map(Expr::from),
        }
    }

    /// Columns of the thread, if it folds columns.
    pub(super) fn columns(&self) -> Option<&Columns> {
        match &self.folds {
            Folds::Columns(columns) => Some(columns),
            Folds::Array | Folds::Row { .. } | Folds::Segment { .. } => None,
        }
    }

    /// Condition that the thread's result exists; `None` if it always exists. Columns check this
    /// themselves.
    pub(super) fn inside(&self) -> Option<Expr> {
        match &self.folds {
            Folds::Row { inside, .. } => inside.clone(),
            Folds::Segment { groups, .. } => groups.as_ref().map(Groups::is_short),
            Folds::Array | Folds::Columns(_) => None,
        }
    }

    /// Condition that is true for the first thread of a block whose threads fold one result, or
    /// columns.
    pub(super) fn is_first_thread(&self) -> Expr {
        match self.columns() {
            None => self.lane.clone().equals(0),
            Some(columns) => columns.ty.clone().equals(0).and(columns.tx.clone().equals(0)),
        }
    }

    /// Element of an input at an index and, for columns, in a column.
    pub(super) fn element(&self, input: BufferId, index: Expr, column: Option<Expr>) -> Access {
        match &self.folds {
            Folds::Segment { first, .. } => Access::new(input, [*first + index]),
            _ => Access::new(input, self.outer().into_iter().chain([index]).chain(column)),
        }
    }

    /// Calls `f` for each result of the thread: once, or for each of its columns.
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

    /// Indices of a result, which must exist.
    pub(super) fn result(&self, w: Option<Expr>) -> Vec<Expr> {
        let column = self.columns().map(|columns| columns.own(w));
        let index: Vec<Expr> = self.outer().into_iter().chain(column).collect();
        if index.is_empty() { vec![0.into()] } else { index }
    }

    /// Indices of a result that consists of several elements, without the index of the element.
    pub(super) fn selected(&self) -> Vec<Expr> {
        self.outer().into_iter().collect()
    }

    /// Indices of a block's partial result, for a result that must exist. Partial results of
    /// neighbouring columns are adjacent.
    pub(super) fn partial(&self, block: Expr, w: Option<Expr>) -> Vec<Expr> {
        self.partial_at(block, self.columns().map(|columns| columns.own(w)))
    }

    /// Indices of a block's partial result. A column past the end is clamped to the last column.
    pub(super) fn partial_of_some(&self, block: Expr, w: Option<Expr>) -> Vec<Expr> {
        self.partial_at(block, self.columns().map(|columns| columns.column(w)))
    }

    /// Indices of a block's partial result, for a given column.
    pub(super) fn partial_at(&self, block: Expr, column: Option<Expr>) -> Vec<Expr> {
        self.outer().into_iter().chain([block]).chain(column).collect()
    }
}

impl BlockShare {
    /// Share of the thread's block, if several blocks fold a result. `number` is the block's
    /// coordinate.
    fn new(
        b: &mut KernelBuilder,
        plan: &ReducePlan,
        p: &Params,
        group: Const,
        number: Special,
    ) -> Option<Self> {
        let block = Expr::from(number).wide();
        match (plan.blocks(), p.run) {
            (Blocks::Runs(_), Some(run)) => Some(Self::of_run(b, p, block, run)),
            (Blocks::InTurn(most), _) => {
                let round = Round::new(b, plan, group, "ROUND").elements;
                let meaning = match plan.spec().over {
                    Over::All => "maximum grid size".to_owned(),
                    _ => format!("maximum number of blocks per {}", super::result_noun(plan)),
                };
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

    /// Share of a block that folds one run.
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
            // A result without elements needs a block as well.
            let some = blocks.max(1u64);
            blocks = b.let_("blocks", some).into();
        }
        Self { block, blocks, partials, run: own }
    }
}

/// A thread of a group that folds a row or a segment.
struct GroupMember {
    group: Const,
    per_block: Const,
    /// Index of the thread in its group.
    lane: Expr,
    /// Row or segment of the thread. If it would be past the last one, it is the last one.
    own: Var,
    /// True if the thread's row or segment is not past the last one.
    inside: Expr,
}

impl GroupMember {
    /// `None` if the group is the whole block.
    fn new(
        b: &mut KernelBuilder,
        plan: &ReducePlan,
        tid: &Expr,
        block: Const,
        count: Scalar,
        [one, many]: [&str; 2],
    ) -> Option<Self> {
        let group = plan.group();
        if group == plan.block() {
            return None;
        }
        let group =
            b.constant("GROUP", group as i32, format!("threads that reduce a {one} together"));
        let per_block =
            b.constant(&many.to_uppercase(), block / group, format!("{many} per block"));
        // Groups of one thread do not shuffle.
        let reason = match plan.group() {
            1 => "",
            _ => ": every lane must take part in the shuffles",
        };
        b.comment(format!(
            "GROUP adjacent threads reduce a {one}. Groups past the last {one} repeat the last \
             {one} and store nothing{reason}."
        ));
        let own = Expr::from(Special::BlockX).wide() * per_block + tid.clone() / group;
        let nth = b.let_(&format!("own_{one}"), own);
        let own = b.let_(one, Expr::from(nth).min(Expr::from(count) - 1));
        let lane = b.let_("member", tid.clone() % group).into();
        Some(Self { group, per_block, lane, own, inside: Expr::from(nth).lt(count) })
    }
}
