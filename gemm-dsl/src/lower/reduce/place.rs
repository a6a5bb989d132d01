//! Who a thread is: which result it folds for, with whom, and where the elements of that lie.

use crate::ir::{
    Access, BufferId, Const, Elem, Expr, Extent, KernelBuilder, Operand, Requirement, Scalar,
    Source, Special, Ty, Var,
};
use crate::plan::{ReducePlan, Share};
use crate::spec::Over;

/// The parameters of a kernel, as far as it has them.
pub(super) struct Params {
    pub(super) inputs: Vec<BufferId>,
    pub(super) outputs: Vec<BufferId>,
    /// What blocks leave, a part each.
    pub(super) partials: Vec<BufferId>,
    /// How many blocks of a result have left theirs.
    pub(super) tickets: Option<BufferId>,
    /// Where segments begin.
    pub(super) offsets: Option<BufferId>,
    /// Elements of a result; of segments, of all.
    pub(super) n: Scalar,
    pub(super) outer: Option<Scalar>,
    pub(super) inner: Option<Scalar>,
}

/// What a thread is, and where it reads and writes.
pub(super) struct Place {
    /// Its number in the block.
    pub(super) tid: Expr,
    /// The threads of its result in the block.
    pub(super) group: Const,
    /// Its number among the threads of its result in the block.
    pub(super) lane: Expr,
    /// The one of its block's parts of a result, of so many.
    pub(super) part: Option<(Expr, Expr)>,
    /// How many elements its result has.
    pub(super) n: Expr,
    /// The row, the matrix or the segment, where there are many.
    outer: Option<Expr>,
    /// Of a segment, the index of its first element.
    start: Option<Expr>,
    /// Whether there is such a result, where there may be threads too many.
    pub(super) inside: Option<Expr>,
    /// Of columns, those of the thread.
    pub(super) columns: Option<Columns>,
    /// Of segments that groups fold, how many a block has, and how long they may be.
    pub(super) groups: Option<(Const, Const)>,
    /// The length of the thread's segment where there is one; the last one stands for those that there are not.
    length: Option<(Expr, Expr)>,
}

/// The columns that a thread folds.
pub(super) struct Columns {
    /// The thread's place in its block.
    pub(super) tx: Expr,
    pub(super) ty: Expr,
    /// Threads of a block that lie next to one another, and rows of them.
    pub(super) across: Const,
    pub(super) rows: Const,
    /// How many columns there are, where they are several.
    pub(super) width: Option<Const>,
    /// The first one, though there may be none such.
    own: Var,
    /// How far the next one lies.
    step: Expr,
    /// How many there are in all.
    all: Scalar,
}

impl Columns {
    /// Does something for each of them: the index of one among them is none where there is but one.
    pub(super) fn each(
        &self,
        k: &mut KernelBuilder,
        mut f: impl FnMut(&mut KernelBuilder, Option<Expr>),
    ) {
        match self.width {
            None => f(k, None),
            Some(width) => k.unrolled("w", width, |k, w| f(k, Some(w.into()))),
        }
    }

    /// Which column it is, though there may be none such.
    fn own(&self, w: Option<Expr>) -> Expr {
        match w {
            None => self.own.into(),
            Some(w) if self.step == Expr::I32(1) => self.own + w,
            Some(w) => self.own + w * self.step.clone(),
        }
    }

    /// A column that there is: past the last one, the last.
    pub(super) fn column(&self, w: Option<Expr>) -> Expr {
        self.own(w).min(Expr::from(self.all) - 1)
    }

    /// Whether there is such a column.
    pub(super) fn inside(&self, w: Option<Expr>) -> Expr {
        self.own(w).lt(self.all)
    }

    /// The first of as many columns as a vector has, all of which there are.
    pub(super) fn first(&self, vector: u32) -> Expr {
        Expr::from(self.own).min(Expr::from(self.all) - i64::from(vector) as i32)
    }
}

impl Place {
    /// An element of an input, by its index; of a column.
    pub(super) fn element(&self, input: BufferId, index: Expr, column: Option<Expr>) -> Access {
        let index = match &self.start {
            None => index,
            Some(start) => start.clone() + index,
        };
        let outer = self.outer.iter().filter(|_| self.start.is_none()).cloned();
        Access::new(input, outer.chain([index]).chain(column))
    }

    /// Does something for each result of the thread, the columns that it folds.
    pub(super) fn each(
        &self,
        k: &mut KernelBuilder,
        mut f: impl FnMut(&mut KernelBuilder, Option<Expr>),
    ) {
        match &self.columns {
            None => f(k, None),
            Some(columns) => columns.each(k, f),
        }
    }

    /// The index of a result that there is.
    pub(super) fn result(&self, w: Option<Expr>) -> Vec<Expr> {
        let column = self.columns.as_ref().map(|columns| columns.own(w));
        let index: Vec<Expr> = self.outer.iter().cloned().chain(column).collect();
        if index.is_empty() { vec![0.into()] } else { index }
    }

    /// The place of a part of a result; `own` where there is such a result, else that of one which there is.
    /// Parts of neighbouring columns lie next to one another.
    pub(super) fn partial(&self, part: Expr, w: Option<Expr>, own: bool) -> Vec<Expr> {
        let column = self.columns.as_ref();
        let column = column.map(|columns| if own { columns.own(w) } else { columns.column(w) });
        self.outer.iter().cloned().chain([part]).chain(column).collect()
    }
}

/// How many parts a result of so many elements has.
pub(super) fn parts(plan: &ReducePlan, n: Expr) -> Expr {
    let round = plan.elements_per_round();
    let rounds = n.clone().gt(0u64).select(n.div_ceil(round), 1u64);
    rounds.clone().lt(u64::from(plan.blocks())).select(rounds, u64::from(plan.blocks()))
}

/// The extents of the results.
pub(super) fn results(over: Over, outer: Option<Expr>, inner: Option<Expr>) -> Vec<Expr> {
    match over {
        Over::All => vec![1u64.into()],
        Over::Rows | Over::Segments | Over::Columns | Over::Middle => {
            outer.into_iter().chain(inner).collect()
        }
    }
}

/// The extents of what is folded.
pub(super) fn elements(n: Expr, outer: Option<Expr>, inner: Option<Expr>, over: Over) -> Vec<Expr> {
    match over {
        // Its segments are no dimension of an array.
        Over::Segments => vec![n],
        _ => outer.into_iter().chain([n]).chain(inner).collect(),
    }
}

/// The extent that says how many rows, matrices or segments there are.
pub(super) fn outer_extent(over: Over) -> Option<Extent> {
    match over {
        Over::Rows | Over::Middle => Some(Extent::OUTER),
        Over::Segments => Some(Extent::SEGMENTS),
        Over::All | Over::Columns => None,
    }
}

/// The extent that says how many columns there are.
pub(super) fn inner_extent(over: Over) -> Option<Extent> {
    matches!(over, Over::Columns | Over::Middle).then_some(Extent::INNER)
}

/// The extents of what blocks leave: beside those of the results which of the parts it is.
pub(super) fn partial_dims(over: Over, results: &[Expr], parts: Expr) -> Vec<Expr> {
    match (over, results) {
        (Over::Columns | Over::Middle, [before @ .., columns]) => {
            before.iter().cloned().chain([parts, columns.clone()]).collect()
        }
        (Over::Rows, rows) => rows.iter().cloned().chain([parts]).collect(),
        _ => vec![parts],
    }
}

/// How many results, or neighbours of them, have tickets of their own.
pub(super) fn tickets(plan: &ReducePlan, outer: Option<Expr>, inner: Option<Expr>) -> Expr {
    let columns = u64::from(plan.results_per_block());
    let tiles = inner.map(|inner| inner.div_ceil(columns));
    match (outer, tiles) {
        (Some(outer), Some(tiles)) => tiles * outer,
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => 1u64.into(),
    }
}

/// Strides of an input, packed or as the launch says.
pub(super) fn strides(
    k: &mut KernelBuilder,
    plan: &ReducePlan,
    operand: usize,
    (name, dims): (&str, &[Expr]),
    vector: Option<u64>,
) -> Vec<Expr> {
    if !plan.spec().pitched {
        return packed(dims);
    }
    let mut strides = vec![Expr::I32(1)];
    for dim in (1..dims.len()).rev() {
        let what = if dim + 1 == dims.len() { "stride" } else { "distance" };
        let source = Source::Stride { operand: Operand::Input(operand), dim: dim - 1 };
        let scalar = k.scalar(&format!("{name}_{what}"), Ty::U64, source);
        if let Some(of) = vector {
            k.require(Requirement::Multiple { scalar, of });
        }
        strides.insert(0, scalar.into());
    }
    strides
}

/// The strides of a packed array.
pub(super) fn packed(dims: &[Expr]) -> Vec<Expr> {
    let mut strides = vec![Expr::I32(1)];
    let mut stride: Option<Expr> = None;
    for extent in dims.iter().skip(1).rev() {
        let next = match stride {
            None => extent.clone(),
            Some(stride) => stride * extent.clone(),
        };
        strides.insert(0, next.clone());
        stride = Some(next);
    }
    strides
}

impl Place {
    /// The place of a thread of a kernel that reads elements.
    pub(super) fn new(k: &mut KernelBuilder, plan: &ReducePlan, p: &Params, block: Const) -> Self {
        match plan.share() {
            Share::Columns { group, .. } => Self::of_column(k, plan, p, block, group as i32),
            Share::Neighbours { group } => Self::of_row(k, plan, p, block, group as i32),
            Share::Tiles => unreachable!("the classic passes have no rounds"),
        }
    }

    /// A thread that folds an array of so many elements.
    fn of_array(tid: Expr, group: Const, n: Expr) -> Self {
        let (part, outer, start) = (None, None, None);
        let (inside, columns, groups, length) = (None, None, None, None);
        let lane = tid.clone();
        Self { tid, group, lane, part, n, outer, start, inside, columns, groups, length }
    }

    fn of_row(
        k: &mut KernelBuilder,
        plan: &ReducePlan,
        p: &Params,
        block: Const,
        group: i32,
    ) -> Self {
        let tid: Expr = k.let_("tid", Special::ThreadX).into();
        let n: Expr = p.n.into();
        let several = plan.has_partials();
        let Some(rows) = p.outer else {
            let part = several.then(|| (Expr::from(Special::BlockX).wide(), of_parts(k, plan, &n)));
            return Self { part, ..Self::of_array(tid, block, n) };
        };
        let segments = plan.spec().over == Over::Segments;
        let (one, many) = if segments { ("segment", "segments") } else { ("row", "rows") };
        let whole = plan.block() as i32 == group;
        let (mut place, row, per_block) = if whole {
            let row = k.let_(one, Expr::from(Special::BlockX).wide());
            (Self::of_array(tid, block, n), row, None)
        } else {
            let group = k.constant("GROUP", group, format!("threads that fold a {one} together"));
            let per_block =
                k.constant(&many.to_uppercase(), block / group, format!("{many} of a block"));
            k.comment(format!(
                "GROUP neighbours fold a {one}; those past the last fold it too, for nothing."
            ));
            let own = Expr::from(Special::BlockX).wide() * per_block + tid.clone() / group;
            let own = k.let_("own", own);
            let row = k.let_(one, Expr::from(own).min(Expr::from(rows) - 1));
            let lane = k.let_("lane", tid.clone() % group).into();
            let inside = Some(Expr::from(own).lt(rows));
            (Self { lane, inside, ..Self::of_array(tid, group, n) }, row, Some(per_block))
        };
        place.outer = Some(row.into());
        if several {
            place.part = Some((Expr::from(Special::BlockY).wide(), of_parts(k, plan, &place.n)));
        }
        let Some(offsets) = p.offsets else { return place };
        let (first, length) = segment(k, offsets, row, ["first", "length"]);
        (place.start, place.n) = (Some(first.into()), length.into());
        if let (Some(longest), Some(per_block)) = (plan.longest_of_group(), per_block) {
            let text = "elements of the longest segment that a group folds";
            let longest = k.constant("LONGEST", longest as i32, text);
            let short = Expr::from(length).le(longest);
            place.length = place.inside.clone().map(|inside| (inside, length.into()));
            place.inside = place.inside.map(|inside| inside.and(short.clone()));
            place.n = k.let_("taken", short.select(length, 0u64)).into();
            place.groups = Some((per_block, longest));
        }
        place
    }

    /// Whether the thread has a segment that is too long for its group.
    pub(super) fn is_long(&self, longest: Const) -> Expr {
        match &self.length {
            Some((inside, length)) => inside.clone().and(length.clone().gt(longest)),
            None => unreachable!("a group has a segment"),
        }
    }

    /// The segment of this number, which the whole block folds, and whether it is so long.
    pub(super) fn of_long_segment(
        k: &mut KernelBuilder,
        p: &Params,
        (tid, block): (Expr, Const),
        number: Var,
        longest: Const,
    ) -> (Self, Expr) {
        let Some(offsets) = p.offsets else { unreachable!("there are segments") };
        let (first, n) = segment(k, offsets, number, ["first_of_all", "length_of_all"]);
        let (start, outer) = (Some(first.into()), Some(number.into()));
        let place = Self { start, outer, ..Self::of_array(tid, block, n.into()) };
        (place, Expr::from(n).gt(longest))
    }

    fn of_column(
        k: &mut KernelBuilder,
        plan: &ReducePlan,
        p: &Params,
        block: Const,
        group: i32,
    ) -> Self {
        let Some(inner) = p.inner else { unreachable!("columns have an extent") };
        let rows = k.constant("GROUP", group, "threads that fold a column together");
        let across = k.constant("ACROSS", block / rows, "threads of a block that read neighbours");
        let width = plan.width() as i32;
        let width = (width > 1).then(|| k.constant("WIDTH", width, "columns of a thread"));
        let columns = match width {
            None => across,
            Some(width) => k.constant("COLUMNS", across * width, "columns of a block"),
        };
        let tx: Expr = k.let_("tx", Special::ThreadX).into();
        let ty: Expr = k.let_("ty", Special::ThreadY).into();
        k.comment(
            "Neighbours read neighbours; those past the last column fold it too, for nothing.",
        );
        let tile: Expr = Expr::from(Special::BlockX).wide();
        let (tile, outer) = match p.outer {
            None => (tile, None),
            Some(_) => {
                let columns = Expr::from(columns).wide();
                let tiles = k.let_("tiles", Expr::from(inner).div_ceil(columns));
                let outer = k.let_("matrix", tile.clone() / Expr::from(tiles));
                (tile % Expr::from(tiles), Some(Expr::from(outer)))
            }
        };
        let (first, step) = match width {
            Some(width) if plan.vector() > 1 => (tx.clone() * width, 1.into()),
            Some(_) | None => (tx.clone(), across.into()),
        };
        let own = k.let_("own", tile * columns + first);
        let n: Expr = p.n.into();
        let several = plan.has_partials();
        let part = several.then(|| (Expr::from(Special::BlockY).wide(), of_parts(k, plan, &n)));
        let lane = ty.clone();
        let columns = Columns { tx, ty, across, rows, width, own, step, all: inner };
        Self { part, outer, columns: Some(columns), ..Self::of_array(lane, rows, n) }
    }
}

/// Where a segment begins and how many elements it has, as variables of these names.
fn segment(
    k: &mut KernelBuilder,
    offsets: BufferId,
    number: Var,
    [first, length]: [&str; 2],
) -> (Var, Var) {
    let at = |i: Expr| Access::new(offsets, [i]).load().cast(Elem::U64);
    let first = k.let_(first, at(number.into()));
    let length = k.let_(length, at(number + 1) - first);
    (first, length)
}

/// How many parts there are, as a variable.
fn of_parts(k: &mut KernelBuilder, plan: &ReducePlan, n: &Expr) -> Expr {
    k.let_("parts", parts(plan, n.clone())).into()
}
