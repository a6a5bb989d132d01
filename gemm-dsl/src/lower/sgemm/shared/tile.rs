//! What all builders of a kernel that stages block tiles of A and B in shared memory know: its
//! constants, the position of a thread, and of both operands all places where their elements lie.

use super::copy::{Extents, TileCopy};
use super::problem::{Matrix, Problem};
use super::schedule::{self, Counts, Origin, Part, Range, Ranges};
use super::slices::TileSlices;
use crate::ir::{
    Access, BufferId, BufferLayout, Const, Elem, Expr, Geometry, KernelBuilder, Scalar, Special,
    Stmt, Var,
};
use crate::lower::sgemm::mma;
use crate::lower::sgemm::mma::WarpMatrices;
use crate::lower::sgemm::shared::accumulator_tile::{Parts, all_holders};
use crate::lower::sgemm::shared::split_k::Held;
use crate::plan::{Axis, OperandPlan, Pipeline, SgemmPlan, TiledPlan};
use crate::spec::Fragment;
use crate::target::arch::WARP;

/// What every builder of a tiled kernel knows.
pub(crate) struct Tiled<'p> {
    pub plan: &'p SgemmPlan,
    pub t: &'p TiledPlan,
    pub problem: Problem,
    pub bm: Const,
    pub bn: Const,
    pub bk: Const,
    pub tm: Const,
    pub tn: Const,
    /// The threads of a product, and this thread's number among them.
    pub threads: Const,
    pub tid: Var,
    /// Those that hold the sums of a tile in the end, and this thread's number among them.
    pub holders: Const,
    pub holder: Var,
    /// The slices, where several take turns along K.
    pub slices: Option<TileSlices>,
    /// What tensor cores multiply, if they do.
    pub matrices: Option<WarpMatrices>,
    /// The thread's own product, where the block computes several.
    pub part: Option<Part>,
    /// The terms that the block sums, where that is not all of K.
    pub range: Option<Range>,
    pub origin: Origin,
    /// This thread's elements of the tile, along the rows and along the columns of C.
    pub rows: Elements,
    pub cols: Elements,
    pub a: Factor,
    pub b: Factor,
}

/// One of the two factors of the product: its plan, and where its elements lie.
pub(crate) struct Factor {
    pub plan: OperandPlan,
    /// In global memory.
    pub matrix: Matrix,
    /// The block's first row of A or column of B, and how many there are in all.
    pub origin: Var,
    pub extent: Scalar,
    pub shared: SharedTile,
    /// What a thread copies.
    pub copy: TileCopy,
    /// What a thread multiplies.
    pub own: Elements,
    /// The first of the terms that the block sums, where that is not the first of all.
    pub begin: Option<Var>,
}

impl Factor {
    /// An element in global memory, by its row of A or column of B, and k among the terms of the block.
    pub fn at(&self, free: Expr, k: Expr) -> Access {
        let k = match self.begin {
            None => k,
            Some(begin) => begin + k,
        };
        let [row, col] = by_row(&self.plan, free, k);
        self.matrix.at(row, col)
    }
}

/// What belongs to the free axis of an operand and what belongs to K, as row and column.
fn by_row<T>(plan: &OperandPlan, free: T, k: T) -> [T; 2] {
    if plan.free() == Axis::M { [free, k] } else { [k, free] }
}

/// A thread's elements along one axis of the block tile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elements {
    pub adjacent: Adjacent,
    /// The first element.
    pub first: Var,
    /// The number of elements, as a constant of the text and as a number.
    pub name: Const,
    pub count: u32,
    /// Threads along the axis, among which runs that are not all are dealt out.
    pub threads: Const,
}

/// The elements of a thread that are neighbours.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Adjacent {
    All,
    One,
    /// So many; as many for each thread lie between two runs of one of them.
    Of(i32),
}

impl Adjacent {
    pub(crate) fn of(fragment: Fragment) -> Self {
        match fragment {
            Fragment::Blocked => Self::All,
            Fragment::Strided => Self::One,
            Fragment::Split => Self::Of(4),
        }
    }

    /// Elements from one thread's first to the next thread's.
    fn step(self, own: Const) -> Expr {
        match self {
            Self::All => own.into(),
            Self::One => Expr::I32(1),
            Self::Of(run) => Expr::I32(run),
        }
    }
}

impl Elements {
    /// So many elements, whose number has a name, from the first one on.
    pub fn new(
        first: Var,
        adjacent: Adjacent,
        (name, count): (Const, u32),
        threads: Const,
    ) -> Self {
        Self { adjacent, first, name, count, threads }
    }

    /// Element `i` of the thread, as an offset in the tile.
    pub fn element(&self, i: Expr) -> Expr {
        match self.adjacent {
            Adjacent::All => self.first + i,
            Adjacent::One => self.first + i * self.threads,
            Adjacent::Of(run) => {
                let first = i.clone() / run * (Expr::I32(run) * self.threads);
                self.first + first + i % run
            }
        }
    }

    /// The first of the four elements of vector `v`, as an offset in the tile.
    pub fn vector(&self, v: Expr) -> Expr {
        match self.adjacent {
            Adjacent::Of(4) => self.first + v * (Expr::I32(4) * self.threads),
            Adjacent::All | Adjacent::One | Adjacent::Of(_) => self.first + v * 4,
        }
    }
}

/// The shared tile of one operand. Its logical dimensions are the operand's own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedTile {
    buffer: BufferId,
    /// Whether its rows lie along K.
    rows_along_k: bool,
    /// Whether there are several buffers: a dimension then selects one.
    several: bool,
    /// The thread's own product, where the block computes several: the first dimension then selects one.
    product: Option<Var>,
}

impl SharedTile {
    /// The element of the tile in buffer `slot` that lies at `free` along the axis which the operand
    /// shares with C, and at `k`.
    pub fn at(&self, slot: &Expr, (free, k): (Expr, Expr)) -> Access {
        let slot = self.several.then(|| slot.clone());
        let at = if self.rows_along_k { [free, k] } else { [k, free] };
        let product = self.product.map(Expr::from);
        Access::new(self.buffer, product.into_iter().chain(slot).chain(at))
    }
}

/// What a kernel has once, whichever tile its block computes: its constants, its threads and its shared
/// arrays.
pub(crate) struct Frame<'p> {
    pub plan: &'p SgemmPlan,
    pub t: &'p TiledPlan,
    pub problem: Problem,
    pub bm: Const,
    pub bn: Const,
    pub bk: Const,
    pub tm: Const,
    pub tn: Const,
    tid: Var,
    /// Threads of a product, and those that have its sums in the end, with this thread's number among those.
    pub threads: Const,
    holders: (Const, Var),
    slices: Option<TileSlices>,
    /// How many matrices a warp multiplies, where tensor cores do.
    matrices: Option<mma::Counts>,
    part: Option<Part>,
    shared: (SharedTile, SharedTile),
}

/// What a thread has of a tile, whichever it is: its elements of C, and its share in copying those of A and B.
pub(crate) struct Own {
    rows: Elements,
    cols: Elements,
    matrices: Option<WarpMatrices>,
    copies: [TileCopy; 2],
}

impl<'p> Frame<'p> {
    /// Declares constants, shared arrays and geometry.
    pub fn declare(
        b: &mut KernelBuilder,
        plan: &'p SgemmPlan,
        t: &'p TiledPlan,
        problem: Problem,
    ) -> Self {
        let int = |v: u32| v as i32;
        let bm = b.constant("BM", int(t.bm()), "rows of C of a block");
        let bn = b.constant("BN", int(t.bn()), "columns of C of a block");
        let bk = b.constant("BK", int(t.bk()), "terms of a sum in one tile");
        let tm = b.constant("TM", int(t.tm()), "rows of C of a thread");
        let tn = b.constant("TN", int(t.tn()), "columns of C of a thread");
        let of = if t.products() > 1 { "threads of a product" } else { "threads of a block" };
        let of_slice = bm / tm * (bn / tn);
        let matrices = t.matrix().map(|plan| mma::Counts::constants(b, t, plan, bk));
        let steps = matrices.map_or(bk, |matrices| matrices.steps);
        let slices =
            (t.slices() > 1).then(|| TileSlices::constants(b, t.slices(), &of_slice, steps));
        let threads = match slices {
            None => b.constant("THREADS", of_slice, of),
            Some(slices) => b.constant("THREADS", slices.holders * slices.count, of),
        };
        let products = (t.products() > 1)
            .then(|| b.constant("PRODUCTS", int(t.products()), "products of a block"));
        match products {
            None => b.launch_bounds(threads),
            Some(products) => b.launch_bounds(threads * products),
        }

        let grid = schedule::grid(plan, &problem);
        let blocks_per_sm = plan.blocks_per_sm();
        let block = (t.threads_of_product(), t.products());
        b.geometry(Geometry { block, grid, blocks_per_sm });
        let tid = b.let_("tid", Special::ThreadX);
        let part = products
            .map(|products| Part { product: b.let_("product", Special::ThreadY), products });
        let shared = shared_tiles(b, t, (bm, bn, bk), part);
        if t.assume() {
            b.comment("Never negative, which an int does not say: divisions need no sign.");
            b.push(Stmt::Assume(Expr::from(tid).ge(0)));
        }
        let (slices, holders) = match slices {
            None => (None, (threads, tid)),
            Some(constants) => {
                let (slices, holder) = TileSlices::declare(b, constants, tid);
                (Some(slices), (constants.holders, holder))
            }
        };
        Self {
            plan,
            t,
            problem,
            bm,
            bn,
            bk,
            tm,
            tn,
            tid,
            threads,
            holders,
            slices,
            matrices,
            part,
            shared,
        }
    }

    /// The sums of the block in the end.
    pub fn held(&self) -> Held {
        let holders = all_holders(self.holders.0, self.part);
        Held { places: self.tm * self.tn, holders, by_all: self.slices.is_none() }
    }

    /// Finds this thread's place in the tile of its block.
    pub fn own_tile(&self, b: &mut KernelBuilder) -> (Tiled<'p>, Option<Parts>) {
        let origin = self.own_origin(b);
        self.tile_at(b, origin)
    }

    /// Finds the tile of this block.
    pub fn own_origin(&self, b: &mut KernelBuilder) -> Origin {
        schedule::origin(b, self.plan, &self.problem, self.tile(), self.part, None)
    }

    /// Finds this thread's place in that tile.
    pub fn tile_at(&self, b: &mut KernelBuilder, origin: Origin) -> (Tiled<'p>, Option<Parts>) {
        let problem = self.problem.of(b, origin.batch);
        let ranges = Ranges::of_block(b, self.plan, &problem, self.bk);
        let (parts, range) = ranges.map(|(all, own)| (Parts::Ranges(all), own)).unzip();
        let own = self.own(b);
        (self.at(problem, origin, range, own), parts)
    }

    /// Finds what this thread has of any tile, and how many there are, for [`tile_of`](Self::tile_of).
    pub fn any_tile(&self, b: &mut KernelBuilder) -> (Own, Counts) {
        let own = self.own(b);
        b.comment("Tiles of C along its rows and along its columns.");
        (own, Counts::declare(b, self.plan, &self.problem, self.tile()))
    }

    /// Finds the tile of a number, of which the block sums a range of K.
    pub fn tile_of(
        &self,
        b: &mut KernelBuilder,
        (own, counts): (Own, Counts),
        number: Var,
        range: Range,
    ) -> Tiled<'p> {
        let number = Some((number, counts));
        let origin = schedule::origin(b, self.plan, &self.problem, self.tile(), self.part, number);
        let problem = self.problem.of(b, origin.batch);
        self.at(problem, origin, Some(range), own)
    }

    /// Rows and columns of a tile.
    fn tile(&self) -> (Expr, Expr) {
        (self.bm.into(), self.bn.into())
    }

    fn own(&self, b: &mut KernelBuilder) -> Own {
        let Self { t, bm, bn, bk, tm, tn, tid, threads, .. } = *self;
        let (rows, cols, matrices) = match self.matrices {
            None => {
                let (rows, cols) = position(b, t, self.holders.1, (bm, bn, tm, tn));
                (rows, cols, None)
            }
            Some(counts) => {
                let (rows, cols, matrices) = counts.position(b, t, self.holders.1, (bn, [tm, tn]));
                (rows, cols, Some(matrices))
            }
        };
        let copy = |b: &mut KernelBuilder, plan, other, free| {
            TileCopy::declare(b, plan, other, Extents { tid, threads, free, depth: bk })
        };
        let a = copy(b, t.a(), t.b(), bm);
        Own { rows, cols, matrices, copies: [a, copy(b, t.b(), t.a(), bn)] }
    }

    fn at(
        &self,
        problem: Problem,
        origin: Origin,
        range: Option<Range>,
        Own { rows, cols, matrices, copies: [a_copy, b_copy] }: Own,
    ) -> Tiled<'p> {
        let Self { plan, t, bm, bn, bk, tm, tn, tid, threads, slices, part, .. } = *self;
        let begin = range.map(|range| range.begin);
        let (holders, holder) = self.holders;
        let a = Factor {
            plan: t.a(),
            matrix: problem.a(),
            origin: origin.row,
            extent: problem.m,
            shared: self.shared.0,
            copy: a_copy,
            own: rows,
            begin,
        };
        let b = Factor {
            plan: t.b(),
            matrix: problem.b(),
            origin: origin.col,
            extent: problem.n,
            shared: self.shared.1,
            copy: b_copy,
            own: cols,
            begin,
        };
        Tiled {
            plan,
            t,
            problem,
            bm,
            bn,
            bk,
            tm,
            tn,
            threads,
            tid,
            holders,
            holder,
            slices,
            matrices,
            part,
            range,
            origin,
            rows,
            cols,
            a,
            b,
        }
    }
}

impl Tiled<'_> {
    /// The steps of a tile that a thread multiplies.
    pub fn steps(&self) -> Const {
        let of_tile = self.matrices.map_or(self.bk, |matrices| matrices.counts.steps);
        self.slices.map_or(of_tile, |slices| slices.steps)
    }

    /// The first term of the i-th of them among those of the tile.
    pub fn step(&self, i: Expr) -> Expr {
        let step = match self.slices {
            None => i,
            Some(slices) => slices.step(i),
        };
        match self.matrices {
            None => step,
            Some(matrices) => step * matrices.counts.terms,
        }
    }

    /// How many terms the block sums.
    pub fn depth(&self) -> Expr {
        match self.range {
            None => self.problem.k.into(),
            Some(range) => range.depth.into(),
        }
    }
}

/// The constant that names the buffers of a ring.
pub(crate) fn stages(b: &mut KernelBuilder, stages: u32) -> Const {
    b.constant("STAGES", stages as i32, "tiles in shared memory, in use or on their way")
}

fn shared_tiles(
    b: &mut KernelBuilder,
    t: &TiledPlan,
    (bm, bn, bk): (Const, Const, Const),
    part: Option<Part>,
) -> (SharedTile, SharedTile) {
    let slots = match t.buffers() {
        1 => None,
        2 if t.pipeline() == Pipeline::DoubleBuffer => {
            Some(b.constant("BUFFERS", 2, "tiles in shared memory: one is used, one is filled"))
        }
        n => Some(stages(b, n)),
    };
    let pads = [t.a(), t.b()].map(|plan| match plan.pad() {
        0 => Expr::I32(0),
        pad => {
            let meaning = format!("unused elements of a shared row of {}", plan.letter());
            b.constant(&format!("PAD_{}", plan.letter()), pad as i32, meaning).into()
        }
    });
    let several = slots.is_some();
    let mut tile = |plan: OperandPlan, free: Const, pad: Expr| {
        let [rows, cols] = by_row(&plan, free, bk);
        let [row_axis, col_axis] = by_row(&plan, plan.free(), Axis::K);
        let rows_along_k = col_axis == Axis::K;
        // Dimensions from the outermost in memory to the innermost: products, buffers, then shared rows.
        let outer: Vec<Expr> =
            part.map(|part| part.products).into_iter().chain(slots).map(Expr::from).collect();
        let first = outer.len();
        let inner = if plan.shared() == row_axis { [first + 1, first] } else { [first, first + 1] };
        let order = (0..first).chain(inner).collect();
        // Said where the tile does not lie as its operand does.
        let lies = match (plan.shared() == plan.contiguous(), plan.swizzle()) {
            (true, None) => "",
            (true, Some(_)) => ", its vectors exchanged",
            (false, _) => ", K-major",
        };
        let dims = outer.into_iter().chain([rows.into(), cols.into()]);
        let name = format!("{}s", plan.letter());
        let meaning = format!("tile of {}{lies}", plan.letter());
        let layout = BufferLayout::Array { order, pad, swizzle: plan.swizzle() };
        let buffer = b.shared(&name, Elem::F32, dims, layout, meaning);
        SharedTile { buffer, rows_along_k, several, product: part.map(|part| part.product) }
    };
    let [pad_a, pad_b] = pads;
    (tile(t.a(), bm, pad_a), tile(t.b(), bn, pad_b))
}

/// Where in the block tile this thread's outputs lie.
fn position(
    b: &mut KernelBuilder,
    t: &TiledPlan,
    tid: Var,
    (bm, bn, tm, tn): (Const, Const, Const, Const),
) -> (Elements, Elements) {
    let (fragment, adjacent) = (t.fragment(), Adjacent::of(t.fragment()));
    let step = |own: Const| adjacent.step(own);
    let what = match fragment {
        Fragment::Blocked => "TM x TN adjacent outputs",
        Fragment::Strided => "TM x TN outputs, a block of threads apart",
        Fragment::Split => "TM x TN outputs, in vectors of four a block of threads apart",
    };
    let (first_row, first_col, threads_m, threads_n) = match t.warp() {
        None => {
            let threads_m = b.constant("THREADS_M", bm / tm, "threads along the rows of C");
            let threads_n = b.constant("THREADS_N", bn / tn, "threads along the columns of C");
            b.comment(format!("A thread computes {what}."));
            let row = b.let_("thread_row", tid / threads_n * step(tm));
            let col = b.let_("thread_col", tid % threads_n * step(tn));
            (row, col, threads_m, threads_n)
        }
        Some(warp) => {
            let wm = b.constant("WM", warp.m() as i32, "rows of C of a warp");
            let wn = b.constant("WN", warp.n() as i32, "columns of C of a warp");
            let lanes_m = b.constant("LANES_M", wm / tm, "lanes along the rows of a warp tile");
            let lanes_n = b.constant("LANES_N", wn / tn, "lanes along its columns");
            b.comment(
                "A warp computes WM x WN outputs of the block tile, and inside that rectangle",
            );
            b.comment(format!("a lane {}.", what.replace("a block of threads", "a warp of lanes")));
            let warp = b.let_("warp", tid / WARP as i32);
            let lane = b.let_("lane", tid % WARP as i32);
            let warp_row = warp / (bn / wn) * wm;
            let warp_col = warp % (bn / wn) * wn;
            let row = b.let_("thread_row", warp_row + lane / lanes_n * step(tm));
            let col = b.let_("thread_col", warp_col + lane % lanes_n * step(tn));
            (row, col, lanes_m, lanes_n)
        }
    };
    (
        Elements::new(first_row, adjacent, (tm, t.tm()), threads_m),
        Elements::new(first_col, adjacent, (tn, t.tn()), threads_n),
    )
}
