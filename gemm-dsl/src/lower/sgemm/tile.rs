//! What all builders of a kernel that stages block tiles of A and B in shared memory know: its
//! constants, the position of a thread, the shared arrays, the share of a thread in the copies.

use super::copy::{Copies, Side};
use super::schedule::{self, Origin};
use super::{Matrix, Problem};
use crate::ir::{
    Access, BufferId, Const, Elem, Expr, Geometry, KernelBuilder, Layout, Special, Stmt, Var,
};
use crate::plan::{Pipeline, SgemmPlan, TiledPlan};
use crate::spec::Fragment;

/// What every builder of a tiled kernel knows.
pub(super) struct Tiled<'p> {
    pub plan: &'p SgemmPlan,
    pub t: &'p TiledPlan,
    pub problem: &'p Problem,
    pub bm: Const,
    pub bn: Const,
    pub bk: Const,
    pub tm: Const,
    pub tn: Const,
    pub origin: Origin,
    /// This thread's elements of the tile, along the rows and along the columns of C.
    pub rows: Axis,
    pub cols: Axis,
    pub a: SharedTile,
    pub b: SharedTile,
    pub copies: Copies,
}

/// A thread's elements along one axis of the block tile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    fragment: Fragment,
    /// The first element.
    pub first: Var,
    /// The number of elements, as a constant of the text and as a number.
    pub name: Const,
    pub count: u32,
    /// Threads along the axis, among which a strided or split fragment is dealt out.
    threads: Const,
}

impl Axis {
    /// Element `i` of the thread, as an offset in the tile.
    pub fn element(&self, i: Expr) -> Expr {
        match self.fragment {
            Fragment::Blocked => self.first + i,
            Fragment::Strided => self.first + i * self.threads,
            Fragment::Split => {
                let vector = i.clone() / 4 * (Expr::I32(4) * self.threads);
                self.first + vector + i % 4
            }
        }
    }

    /// The first of the four elements of vector `v`, as an offset in the tile.
    pub fn vector(&self, v: Expr) -> Expr {
        match self.fragment {
            Fragment::Split => self.first + v * (Expr::I32(4) * self.threads),
            Fragment::Blocked | Fragment::Strided => self.first + v * 4,
        }
    }
}

/// The shared tile of one operand. Its logical dimensions are the operand's own.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedTile {
    buffer: BufferId,
    /// Whether there are several buffers: the first dimension then selects one.
    ring: bool,
}

impl SharedTile {
    /// Element (row, column) of the tile in buffer `slot`.
    pub fn at(&self, slot: &Expr, row: Expr, col: Expr) -> Access {
        let slot = self.ring.then(|| slot.clone());
        Access::new(self.buffer, slot.into_iter().chain([row, col]))
    }
}

impl<'p> Tiled<'p> {
    /// Declares constants, shared arrays and geometry, and finds this thread's place.
    pub fn declare(
        k: &mut KernelBuilder,
        plan: &'p SgemmPlan,
        t: &'p TiledPlan,
        problem: &'p Problem,
    ) -> Self {
        let int = |v: u32| v as i32;
        let bm = k.constant("BM", int(t.bm()), "rows of C of a block");
        let bn = k.constant("BN", int(t.bn()), "columns of C of a block");
        let bk = k.constant("BK", int(t.bk()), "terms of a sum in one tile");
        let tm = k.constant("TM", int(t.tm()), "rows of C of a thread");
        let tn = k.constant("TN", int(t.tn()), "columns of C of a thread");
        let threads = k.constant("THREADS", bm / tm * (bn / tn), "threads of a block");
        k.launch_bounds(threads);
        let (a, b) = shared_tiles(k, t, (bm, bn, bk));

        let grid = schedule::grid(plan, problem);
        let blocks_per_sm = plan.blocks_per_sm();
        k.geometry(Geometry { block: (t.threads(), 1), grid, blocks_per_sm });
        let tid = k.let_("tid", Special::ThreadX);
        let assume = match t.pipeline() {
            // With a warp tile this variant spills on sm_90 if the compiler is not told. The one
            // with vectors loses a tenth of its speed if it is; without `float4` nothing is gained.
            Pipeline::DoubleBuffer => plan.is_scalar_variant(),
            // An instruction less in the main loop.
            Pipeline::Async { .. } => true,
            Pipeline::Single | Pipeline::Prefetch => false,
        };
        if assume {
            k.comment("Never negative, which an int does not say: divisions need no sign.");
            k.push(Stmt::Assume(Expr::from(tid).ge(0)));
        }
        let origin = schedule::origin(k, plan, problem, (bm.into(), bn.into()));
        let (rows, cols) = position(k, t, tid, (bm, bn, tm, tn));
        let copies = Copies::declare(k, t, tid, threads, (bm, bn, bk));
        Self { plan, t, problem, bm, bn, bk, tm, tn, origin, rows, cols, a, b, copies }
    }

    /// The shared tile of an operand.
    pub fn shared(&self, side: Side) -> SharedTile {
        if side == Side::A { self.a } else { self.b }
    }

    /// An operand in global memory.
    pub fn matrix(&self, side: Side) -> Matrix {
        if side == Side::A { self.problem.a } else { self.problem.b }
    }
}

fn shared_tiles(
    k: &mut KernelBuilder,
    t: &TiledPlan,
    (bm, bn, bk): (Const, Const, Const),
) -> (SharedTile, SharedTile) {
    let ring = t.buffers() > 1;
    let slots = match t.buffers() {
        1 => None,
        2 if t.pipeline() == Pipeline::DoubleBuffer => {
            Some(k.constant("BUFFERS", 2, "tiles in shared memory: one is used, one is filled"))
        }
        n => Some(k.constant("STAGES", n as i32, "tiles in shared memory, in use or on their way")),
    };
    let mut pad = |name: &str, pad: u32, what: &str| match pad {
        0 => Expr::I32(0),
        pad => k
            .constant(name, pad as i32, format!("unused elements of a shared row of {what}"))
            .into(),
    };
    let (pad_a, pad_b) = (pad("PAD_A", t.pad_a(), "A"), pad("PAD_B", t.pad_b(), "B"));
    let order = |swap: bool| {
        let (row, col) = (usize::from(ring), usize::from(ring) + 1);
        let inner = if swap { [col, row] } else { [row, col] };
        (0..usize::from(ring)).chain(inner).collect()
    };
    let mut tile = |name: &str, rows: Const, cols: Const, swap: bool, pad: Expr, what: &str| {
        let layout = Layout::Array { order: order(swap), pad, swizzle: None };
        let dims = slots.map(Expr::from).into_iter().chain([rows.into(), cols.into()]);
        let buffer = k.shared(name, Elem::F32, dims, layout, what);
        SharedTile { buffer, ring }
    };
    let a_is = if t.transpose() { "tile of A, K-major" } else { "tile of A" };
    let a = tile("As", bm, bk, t.transpose(), pad_a, a_is);
    let b = tile("Bs", bk, bn, false, pad_b, "tile of B");
    (a, b)
}

/// Where in the block tile this thread's outputs lie.
fn position(
    k: &mut KernelBuilder,
    t: &TiledPlan,
    tid: Var,
    (bm, bn, tm, tn): (Const, Const, Const, Const),
) -> (Axis, Axis) {
    let fragment = t.fragment();
    // Elements from one thread's first to the next thread's.
    let step = |own: Const| match fragment {
        Fragment::Blocked => Expr::from(own),
        Fragment::Strided => Expr::I32(1),
        Fragment::Split => Expr::I32(4),
    };
    let what = match fragment {
        Fragment::Blocked => "TM x TN adjacent outputs",
        Fragment::Strided => "TM x TN outputs, a block of threads apart",
        Fragment::Split => "TM x TN outputs, in vectors of four a block of threads apart",
    };
    let (first_row, first_col, threads_m, threads_n) = match t.warp() {
        None => {
            let threads_m = k.constant("THREADS_M", bm / tm, "threads along the rows of C");
            let threads_n = k.constant("THREADS_N", bn / tn, "threads along the columns of C");
            k.comment(format!("A thread computes {what}."));
            let row = k.let_("thread_row", tid / threads_n * step(tm));
            let col = k.let_("thread_col", tid % threads_n * step(tn));
            (row, col, threads_m, threads_n)
        }
        Some(warp) => {
            let wm = k.constant("WM", warp.m() as i32, "rows of C of a warp");
            let wn = k.constant("WN", warp.n() as i32, "columns of C of a warp");
            let lanes_m = k.constant("LANES_M", wm / tm, "lanes along the rows of a warp tile");
            let lanes_n = k.constant("LANES_N", wn / tn, "lanes along its columns");
            k.comment(
                "A warp computes WM x WN outputs of the block tile, and inside that rectangle",
            );
            k.comment(format!("a lane {}.", what.replace("a block of threads", "a warp of lanes")));
            let warp = k.let_("warp", tid / 32);
            let lane = k.let_("lane", tid % 32);
            let warp_row = warp / (bn / wn) * wm;
            let warp_col = warp % (bn / wn) * wn;
            let row = k.let_("thread_row", warp_row + lane / lanes_n * step(tm));
            let col = k.let_("thread_col", warp_col + lane % lanes_n * step(tn));
            (row, col, lanes_m, lanes_n)
        }
    };
    let axis = |first, name, count, threads| Axis { fragment, first, name, count, threads };
    (axis(first_row, tm, t.tm(), threads_m), axis(first_col, tn, t.tn(), threads_n))
}
