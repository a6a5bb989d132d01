//! The multiplication of a tile by tensor cores: the lanes of a warp turn numbers of A and B into the words that a
//! matrix instruction takes, and it adds their products to sums that the lanes hold together.
//!
//! Which lane brings which terms of an instruction changes no sum, as long as it is the same of A and B and all are of
//! one half of them: lane t of a group of four takes term t and term t + 4 of each eight. Both lie where a load
//! of 4 bytes, and `ldmatrix`, meet no conflict.
//!
//! Where an arithmetic stands for `f32` a number is several of a smaller format, the largest first: each is what the ones
//! before it have left, rounded. What tensor cores sum they cut, so they sum a few terms from zero on, and an
//! IEEE addition adds what they have.

mod recompute;
mod words;

pub(crate) use recompute::{Lost, recompute};
pub(crate) use words::{kept, to_tf32, to_tf32_or_nan};

use crate::ir::{Access, BufferId, Const, Elem, Expr, KernelBuilder, Mma, Var};
use crate::lower::sgemm::shared::tile::{Adjacent, Elements, Tiled};
use crate::lower::sgemm::simt::fragment::over;
use crate::plan::{MatrixPlan, TiledPlan};
use crate::target::arch::WARP;
use words::Side;

/// How many matrices a warp multiplies, by name and as numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    pub plan: MatrixPlan,
    /// Instructions along the rows and along the columns of a warp's tile.
    rows: Const,
    cols: Const,
    /// Terms of an instruction.
    pub terms: Const,
    /// Instructions along the K of a tile.
    pub steps: Const,
    /// How many numbers stand for one, where several do.
    planes: Option<Const>,
}

impl Counts {
    /// Declares their constants.
    pub fn constants(b: &mut KernelBuilder, t: &TiledPlan, plan: MatrixPlan, bk: Const) -> Self {
        let int = |v: u32| Expr::I32(v as i32);
        let terms = b.constant("MMA_K", int(plan.terms()), "terms of a matrix instruction");
        let rows = "matrix instructions along the rows of a warp";
        let rows = b.constant("MMAS_M", int(plan.rows()), rows);
        let cols = b.constant("MMAS_N", int(plan.cols()), "matrix instructions along its columns");
        let steps = if t.slices() > 1 { "TILE_STEPS" } else { "STEPS" };
        let steps = b.constant(steps, bk / terms, "matrix instructions along K in one tile");
        let planes = (plan.arith().planes() > 1).then(|| {
            let meaning = format!("numbers of {} that stand for one of f32", plan.format().name());
            b.constant("PLANES", int(plan.arith().planes()), meaning)
        });
        Self { plan, rows, cols, terms, steps, planes }
    }

    /// Finds this lane's sums, and which words of A and B it brings.
    pub fn position(
        self,
        b: &mut KernelBuilder,
        t: &TiledPlan,
        holder: Var,
        (bn, [tm, tn]): (Const, [Const; 2]),
    ) -> (Elements, Elements, WarpMatrices) {
        let side = |own: Option<u32>| Expr::I32(own.unwrap_or(0) as i32);
        let wm = b.constant("WM", side(t.warp().map(|warp| warp.m())), "rows of C of a warp");
        let wn = b.constant("WN", side(t.warp().map(|warp| warp.n())), "columns of C of a warp");
        let lanes_m = b.constant("LANES_M", wm / tm, "lanes along the rows of a warp tile");
        let lanes_n = b.constant("LANES_N", wn / tn, "lanes along its columns");
        b.comment("A warp computes WM x WN outputs of the block tile by matrix instructions, of which a lane");
        b.comment("has every eighth row, and two adjacent columns of eight.");
        let warp = b.let_("warp", holder / WARP as i32);
        let lane = b.let_("lane", holder % WARP as i32);
        let warp_row = b.let_("warp_row", warp / (bn / wn) * wm);
        let warp_col = b.let_("warp_col", warp % (bn / wn) * wn);
        let row = b.let_("thread_row", warp_row + lane / lanes_n);
        let col = b.let_("thread_col", warp_col + lane % lanes_n * 2);
        let loads = [self.plan.loads_a(), self.plan.loads_b()];
        let own = match loads {
            [true, true] => [None, None],
            [loads_a, loads_b] => {
                b.comment(
                    "It brings such a row of A and a column of B, of which every fourth term.",
                );
                let col = (!loads_b).then(|| b.let_("frag_col", warp_col + lane / lanes_n));
                let term = b.let_("frag_k", lane % lanes_n);
                let line = |first| Own { free: first, term };
                [(!loads_a).then(|| line(row)), col.map(line)]
            }
        };
        if loads.contains(&true) {
            b.comment(
                "For all lanes of its warp it says where four terms lie that ldmatrix reads.",
            );
        }
        // Matrices of A: upper and lower rows, then those of the next terms. Of B: one terms after the other.
        let of_a = loads[0].then(|| Told {
            free: b.let_("a_frag_row", warp_row + lane % Mma::ROWS as i32),
            term: b.let_("a_frag_k", lane / Mma::ROWS as i32 * 4),
        });
        let matrices = self.plan.terms() as i32 / 4;
        let of_b = loads[1].then(|| Told {
            free: b.let_("b_frag_col", warp_col + lane % Mma::COLS as i32),
            term: b.let_("b_frag_k", lane / Mma::COLS as i32 % matrices * 4),
        });
        let rows = Elements::new(row, Adjacent::One, (tm, t.tm()), lanes_m);
        let cols = Elements::new(col, Adjacent::Of(2), (tn, t.tn()), lanes_n);
        let [own_a, own_b] = own;
        let from = |own: Option<Own>, told: Option<Told>| match (own, told) {
            (_, Some(told)) => From::Matrices(told),
            (Some(own), None) => From::Tile(own),
            (None, None) => unreachable!("a lane reads what ldmatrix does not"),
        };
        let from = [from(own_a, of_a), from(own_b, of_b)];
        (rows, cols, WarpMatrices { counts: self, lanes: lanes_m, from })
    }
}

/// What tensor cores multiply of a tile, as a lane sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WarpMatrices {
    pub counts: Counts,
    /// Rows of A, and columns of B, from one line of a lane to the next.
    lanes: Const,
    /// From where a lane has what it brings of A, and of B.
    from: [From; 2],
}

/// From where a lane has the numbers that it brings.
#[derive(Clone, Copy, Debug)]
enum From {
    /// From the tile.
    Tile(Own),
    /// From what `ldmatrix` brings, to which it says this.
    Matrices(Told),
}

/// What a lane reads itself.
#[derive(Clone, Copy, Debug)]
struct Own {
    /// Its first row of A or column of B in the block tile.
    free: Var,
    /// Its first term of each step.
    term: Var,
}

/// Where four terms of a row of A, or of a column of B, lie that `ldmatrix` reads.
#[derive(Clone, Copy, Debug)]
struct Told {
    /// The line in the block tile.
    free: Var,
    /// The first term among those of a step.
    term: Var,
}

/// The sums of a warp in the registers of its lanes.
pub(crate) struct Matrices {
    /// As instructions take them: row of them, column of them, which of a lane's.
    pub sums: BufferId,
    /// Sums of a few terms, where those of several steps are added at once.
    fresh: Option<BufferId>,
    /// The bits of what the planes have not held.
    pub lost: Option<Lost>,
}

impl Matrices {
    /// Declares the sums, all zero.
    pub fn declare(b: &mut KernelBuilder, tiled: &Tiled<'_>, of: &WarpMatrices) -> Self {
        let dims = || [of.counts.rows.into(), of.counts.cols.into(), (Mma::OF_D as i32).into()];
        b.comment("The sums of this thread.");
        let sums = b.zeroed_registers("acc", Elem::F32, dims(), "");
        let several = of.counts.plan.promote().is_some_and(|steps| steps > 1);
        let meaning = "sums of terms that are not added yet";
        let fresh = several.then(|| b.zeroed_registers("fresh", Elem::F32, dims(), meaning));
        let lost = of.counts.plan.arith().is_emulation().then(|| Lost::declare(b, tiled));
        Self { sums, fresh, lost }
    }

    /// Adds the sums of a few terms to the others, and begins new ones.
    fn promote(&self, b: &mut KernelBuilder, counts: &Counts, fresh: BufferId) {
        over(b, "i", counts.rows.into(), counts.plan.rows(), |b, i| {
            over(b, "j", counts.cols.into(), counts.plan.cols(), |b, j| {
                b.unrolled("e", Mma::OF_D as i32, |b, e| {
                    let of = |sums| Access::new(sums, [i.clone(), j.clone(), e.into()]);
                    b.store(of(self.sums), of(self.sums).load() + of(fresh).load());
                    b.store(of(fresh), 0.0);
                });
            });
        });
    }

    /// Where the sum of a thread's element (m, n) is.
    pub fn place(&self, m: &Expr, n: &Expr) -> Access {
        let of = |at: &Expr| [at.clone() / 2, at.clone() % 2];
        let ([i, upper], [j, right]) = (of(m), of(n));
        Access::new(self.sums, [i, j, upper * 2 + right])
    }
}

/// Multiplies step `i` of the tile in buffer `slot`.
pub(crate) fn step(
    b: &mut KernelBuilder,
    tiled: &Tiled<'_>,
    acc: (&WarpMatrices, &Matrices),
    slot: &Expr,
    i: &Expr,
) {
    let (of, matrices) = acc;
    let at = tiled.step(i.clone());
    let (a_words, b_words) = (Side::of_a(b, tiled, of, &at), Side::of_b(b, tiled, of, &at));
    let b_words = b_words.all(b, acc, slot);
    let counts = &of.counts;
    over(b, "i", counts.rows.into(), counts.plan.rows(), |b, i| {
        let row = Row { a: a_words.one(b, acc, slot, &i), b: b_words, counts };
        let of_row = |sums| move |j: &Expr, e: Expr| Access::new(sums, [i.clone(), j.clone(), e]);
        match (matrices.fresh, counts.plan.promote()) {
            (Some(fresh), _) => row.multiply(b, of_row(fresh)),
            (None, None) => row.multiply(b, of_row(matrices.sums)),
            (None, Some(_)) => {
                b.comment(
                    "Sums from zero on, small products first, which are then added to the others.",
                );
                let dims = [counts.cols.into(), (Mma::OF_D as i32).into()];
                let fresh = b.zeroed_registers("fresh", Elem::F32, dims, "");
                let own = move |j: &Expr, e| Access::new(fresh, [j.clone(), e]);
                row.multiply(b, own);
                row.add(b, of_row(matrices.sums), own);
            }
        }
    });
    if let (Some(fresh), Some(steps)) = (matrices.fresh, counts.plan.promote()) {
        let meaning = "steps whose terms are summed from zero on";
        let together = b.constant("PROMOTE", steps as i32, meaning);
        let last = ((i.clone() + 1) % together).equals(0);
        b.if_(last, |b| matrices.promote(b, counts, fresh));
    }
}

/// A row of matrix instructions: the words of A that they share, and those of all columns of B.
struct Row<'c> {
    a: BufferId,
    b: BufferId,
    counts: &'c Counts,
}

impl Row<'_> {
    /// Adds the products to sums. Those of one sum wait for one another, so columns take turns.
    fn multiply(&self, b: &mut KernelBuilder, sums: impl Fn(&Expr, Expr) -> Access) {
        let format = self.counts.plan.format();
        for [of_a, of_b] in self.counts.plan.arith().products() {
            let plane = |plane: u32| self.counts.planes.map(|_| Expr::I32(plane as i32));
            let a_words = Access::new(self.a, plane(*of_a).into_iter().chain([0.into()]));
            self.each(b, |b, j| {
                let index = plane(*of_b).into_iter().chain([j.clone(), 0.into()]);
                let b_words = Access::new(self.b, index);
                b.mma(Mma { format, d: sums(j, 0.into()), a: a_words.clone(), b: b_words });
            });
        }
    }

    /// Adds sums to others.
    fn add(
        &self,
        b: &mut KernelBuilder,
        to: impl Fn(&Expr, Expr) -> Access,
        sums: impl Fn(&Expr, Expr) -> Access,
    ) {
        self.each(b, |b, j| {
            b.unrolled("e", Mma::OF_D as i32, |b, e| {
                let to = to(j, e.into());
                b.store(to.clone(), to.load() + sums(j, e.into()).load());
            });
        });
    }

    fn each(&self, b: &mut KernelBuilder, body: impl FnOnce(&mut KernelBuilder, &Expr)) {
        let counts = self.counts;
        over(b, "j", counts.cols.into(), counts.plan.cols(), |b, j| body(b, &j));
    }
}
