//! The innermost loops: fragments from shared memory to registers, and their outer product.

use crate::ir::{
    Access, BufferId, Change, Const, Elem, Expr, For, Intrinsic, KernelBuilder, Unroll, Var,
};
use crate::lower::sgemm::mma;
use crate::lower::sgemm::mma::Matrices;
use crate::lower::sgemm::shared::accumulator_tile::BlockTile;
use crate::lower::sgemm::shared::copy::name_of;
use crate::lower::sgemm::shared::tile::{Elements, Factor, Tiled};
use crate::plan::Axis;
use crate::spec::Order;

/// The sums of a thread.
pub(crate) struct Accumulators {
    place: Sums,
    tall: bool,
    wide: bool,
    partials: u32,
    /// The number of partial sums by name, if there are several.
    count: Option<Const>,
}

enum Sums {
    One(Var),
    Many(BufferId),
    /// Of a warp's matrices.
    Matrices(Matrices),
    /// Of a warpgroup's: as its instructions have them.
    Warpgroup(BufferId),
}

/// Where a matrix instruction of a warpgroup has the sum of a thread's element (m, n).
fn of_warpgroup(sums: BufferId, m: &Expr, n: &Expr) -> Access {
    Access::new(sums, [n.clone() / 2 * 4 + m.clone() * 2 + n.clone() % 2])
}

impl Accumulators {
    /// Declares the sums, all zero.
    pub fn declare(k: &mut KernelBuilder, tiled: &Tiled<'_>) -> Self {
        let Some(of) = &tiled.matrices else {
            return Self::of(k, [&tiled.rows, &tiled.cols], tiled.plan.partials());
        };
        let place = Sums::Matrices(Matrices::declare(k, tiled, of));
        Self { place, tall: true, wide: true, partials: 1, count: None }
    }

    /// Those of a warp's matrices, where tensor cores multiply.
    pub fn matrices(&self) -> Option<&Matrices> {
        match &self.place {
            Sums::Matrices(matrices) => Some(matrices),
            Sums::One(_) | Sums::Many(_) | Sums::Warpgroup(_) => None,
        }
    }

    /// Those of a warpgroup's threads, two rows of so many columns each, or one where they have been exchanged.
    pub fn of_warpgroup(sums: BufferId, exchanged: bool) -> Self {
        let place = if exchanged { Sums::Many(sums) } else { Sums::Warpgroup(sums) };
        Self { place, tall: !exchanged, wide: true, partials: 1, count: None }
    }

    /// Declares the sums of a thread's elements, all zero.
    pub fn of(k: &mut KernelBuilder, [rows, cols]: [&Elements; 2], partials: u32) -> Self {
        let (tall, wide) = (rows.count > 1, cols.count > 1);
        let count = (partials > 1).then(|| partial_sums(k, partials));
        let (rows, cols) = (tall.then_some(rows.name), wide.then_some(cols.name));
        let dims: Vec<Expr> = [count, rows, cols].into_iter().flatten().map(Expr::from).collect();
        k.comment("The sums of this thread.");
        let place = if dims.is_empty() {
            Sums::One(k.mut_("acc", 0.0))
        } else {
            Sums::Many(k.zeroed_registers("acc", Elem::F32, dims, ""))
        };
        Self { place, tall, wide, partials, count }
    }

    /// Declares sums that are still to be set, one for each element.
    pub fn sums(k: &mut KernelBuilder, block: &BlockTile<'_>) -> Self {
        let (tall, wide) = (block.rows.count > 1, block.cols.count > 1);
        let dims = [tall.then_some(block.rows.name), wide.then_some(block.cols.name)];
        let dims: Vec<Expr> = dims.into_iter().flatten().map(Expr::from).collect();
        let place = if dims.is_empty() {
            Sums::One(k.mut_("sum_of_all", 0.0))
        } else {
            Sums::Many(k.registers("sum_of_all", Elem::F32, dims, ""))
        };
        Self { place, tall, wide, partials: 1, count: None }
    }

    /// The same with one sum for each element, which can be set.
    pub fn in_one(self, k: &mut KernelBuilder, block: &BlockTile<'_>) -> Self {
        if self.partials == 1 {
            return self;
        }
        let all = Self::sums(k, block);
        each(k, block.elements(), |k, m, n| all.set(k, (m, n), self.value(m, n)));
        all
    }

    /// Sets the sum of element (m, n).
    pub fn set(&self, k: &mut KernelBuilder, (m, n): (&Expr, &Expr), sum: Expr) {
        match &self.place {
            Sums::One(var) => k.assign(*var, sum),
            Sums::Many(buffer) => {
                k.store(self.access(*buffer, 0.into(), m.clone(), n.clone()), sum);
            }
            Sums::Matrices(matrices) => k.store(matrices.place(m, n), sum),
            Sums::Warpgroup(sums) => k.store(of_warpgroup(*sums, m, n), sum),
        }
    }

    fn access(&self, buffer: BufferId, p: Expr, m: Expr, n: Expr) -> Access {
        let p = (self.partials > 1).then_some(p);
        let (m, n) = (self.tall.then_some(m), self.wide.then_some(n));
        Access::new(buffer, [p, m, n].into_iter().flatten())
    }

    /// The finished sum of element (m, n).
    pub fn value(&self, m: &Expr, n: &Expr) -> Expr {
        match &self.place {
            Sums::One(var) => (*var).into(),
            Sums::Many(buffer) => {
                let part =
                    |p: u32| self.access(*buffer, Expr::I32(p as i32), m.clone(), n.clone()).load();
                (1..self.partials).fold(part(0), |sum, p| sum + part(p))
            }
            Sums::Matrices(matrices) => matrices.place(m, n).load(),
            Sums::Warpgroup(sums) => of_warpgroup(*sums, m, n).load(),
        }
    }

    /// Four finished sums of a row, the first at (m, n).
    pub fn vector(&self, m: &Expr, n: &Expr) -> Expr {
        match &self.place {
            Sums::Many(buffer) if self.partials == 1 => {
                self.access(*buffer, 0.into(), m.clone(), n.clone()).vector().load()
            }
            _ => Expr::Pack((0..4).map(|j| self.value(m, &(n.clone() + j))).collect()),
        }
    }

    /// `acc[p][m][n] = fma(a, b, acc[p][m][n])`
    pub fn multiply_add(&self, k: &mut KernelBuilder, at: (Expr, Expr, Expr), a: Expr, b: Expr) {
        let fma = |acc: Expr| Expr::Call(Intrinsic::Fma, vec![a, b, acc]);
        match &self.place {
            Sums::One(var) => k.assign(*var, fma((*var).into())),
            Sums::Many(buffer) => {
                let place = self.access(*buffer, at.0, at.1, at.2);
                let sum = fma(place.clone().load());
                k.store(place, sum);
            }
            Sums::Matrices(_) | Sums::Warpgroup(_) => {
                unreachable!("tensor cores multiply what they sum")
            }
        }
    }
}

/// The constant that names the number of partial sums.
pub(crate) fn partial_sums(k: &mut KernelBuilder, partials: u32) -> Const {
    k.constant("PARTIALS", partials as i32, "independent partial sums of an output")
}

/// The fragments of A and B that one k step multiplies.
struct Fragments {
    a: Held,
    b: Held,
}

/// The part of a column of A's tile, or of a row of B's, that belongs to a thread.
enum Held {
    /// One element, read where it is used, or a variable that holds it.
    One(Expr),
    /// A register array.
    Many(BufferId),
    /// Two register arrays that alternate between k steps, with the index of the one in use.
    Pair { array: BufferId, many: bool, turn: Expr },
}

impl Held {
    fn element(&self, i: &Expr) -> Expr {
        match self {
            Held::One(value) => value.clone(),
            Held::Many(array) => Access::new(*array, [i.clone()]).load(),
            Held::Pair { array, many, turn } => {
                let i = many.then(|| i.clone());
                Access::new(*array, [turn.clone()].into_iter().chain(i)).load()
            }
        }
    }
}

/// Multiplies the tile in buffer `slot` into the sums.
pub(crate) fn multiply(k: &mut KernelBuilder, tiled: &Tiled<'_>, acc: &Accumulators, slot: &Expr) {
    let partials = tiled.plan.partials();
    let steps = tiled.steps();
    let step = |k: &mut KernelBuilder, at: Expr, partial: Expr| {
        if let Some(of) = tiled.matrices.as_ref().zip(acc.matrices()) {
            return mma::step(k, tiled, of, slot, &at);
        }
        let at = tiled.step(at);
        let a = load(k, tiled, &tiled.a, slot, &at);
        let b = load(k, tiled, &tiled.b, slot, &at);
        outer_product(k, tiled, acc, &Fragments { a, b }, partial);
    };
    match tiled.plan.unroll() {
        // A round makes one step of each sum. The tile's K is a multiple of that, and not always of
        // the unroll factor: what is left over is the compiler's business.
        unroll if partials > 1 => {
            let parts = partial_sums(k, partials);
            let rounds = unroll.map_or(1, |u| u / partials);
            k.loop_(
                "k",
                For::below(0, steps).change(Change::Add(parts.into())).unroll(Unroll::By(rounds)),
                |k, i| k.unrolled("u", parts, |k, u| step(k, i + u, u.into())),
            );
        }
        None => k.unrolled("k", steps, |k, i| step(k, i.into(), 0.into())),
        Some(u) => {
            k.loop_("k", For::below(0, steps).unroll(Unroll::By(u)), |k, i| {
                step(k, i.into(), 0.into());
            });
        }
    }
}

/// Double-buffered fragments: while one k step is multiplied, the next one's are on their way.
pub(crate) struct FragmentPair {
    a: BufferId,
    b: BufferId,
}

impl FragmentPair {
    pub fn declare(k: &mut KernelBuilder, tiled: &Tiled<'_>) -> Self {
        let dims = |count: Const, many: bool| {
            [Expr::I32(2)].into_iter().chain(many.then(|| Expr::from(count)))
        };
        let (a, b) = (dims(tiled.tm, tiled.t.tm() > 1), dims(tiled.tn, tiled.t.tn() > 1));
        Self {
            a: k.registers("a_frag", Elem::F32, a, "column of A: in use, next"),
            b: k.registers("b_frag", Elem::F32, b, "row of B: in use, next"),
        }
    }

    /// Loads the fragments of step `at` of the tile in buffer `slot`.
    pub fn load(
        &self,
        k: &mut KernelBuilder,
        tiled: &Tiled<'_>,
        turn: Expr,
        slot: &Expr,
        at: &Expr,
    ) {
        let at = tiled.step(at.clone());
        for (factor, array) in [(&tiled.a, self.a), (&tiled.b, self.b)] {
            fill(k, factor, array, Some(turn.clone()), slot, &at);
        }
    }

    /// Multiplies the fragments of step `at`.
    pub fn multiply(&self, k: &mut KernelBuilder, tiled: &Tiled<'_>, acc: &Accumulators, at: Var) {
        let turn = at % 2;
        let partial = acc.count.map_or(Expr::I32(0), |partials| at % partials);
        let (t, many) = (tiled.t, |count: u32| count > 1);
        let a = Held::Pair { array: self.a, many: many(t.tm()), turn: turn.clone() };
        let b = Held::Pair { array: self.b, many: many(t.tn()), turn };
        outer_product(k, tiled, acc, &Fragments { a, b }, partial);
    }
}

fn load(k: &mut KernelBuilder, tiled: &Tiled<'_>, factor: &Factor, slot: &Expr, at: &Expr) -> Held {
    let own = factor.own;
    if own.count == 1 {
        let value = factor.shared.at(slot, (own.first.into(), at.clone())).load();
        // Used once it is read in place; used again it gets a name.
        let used_once = tiled.t.tm() == 1 && tiled.t.tn() == 1;
        let name = factor.plan.letter().to_ascii_lowercase().to_string();
        return Held::One(if used_once { value } else { k.let_(&name, value).into() });
    }
    let array = k.registers(&name_of(&factor.plan, "frag"), Elem::F32, [own.name.into()], "");
    fill(k, factor, array, None, slot, at);
    Held::Many(array)
}

/// Reads a thread's part of step `at` of the tile.
fn fill(
    k: &mut KernelBuilder,
    factor: &Factor,
    array: BufferId,
    turn: Option<Expr>,
    slot: &Expr,
    at: &Expr,
) {
    let own = factor.own;
    let vector = factor.plan.fragment_width() == 4;
    let source = |offset: Expr| factor.shared.at(slot, (offset, at.clone()));
    let target = |i: Expr| {
        let i = (own.count > 1).then_some(i);
        Access::new(array, turn.clone().into_iter().chain(i))
    };
    if own.count == 1 {
        k.store(target(0.into()), source(own.first.into()).load());
    } else if vector && own.count == 4 {
        k.store(target(0.into()).vector(), source(own.vector(0.into())).vector().load());
    } else if vector {
        k.unrolled("v", own.name / 4, |k, v| {
            k.store(target(v * 4).vector(), source(own.vector(v.into())).vector().load());
        });
    } else {
        let index = if factor.plan.free() == Axis::M { "m" } else { "n" };
        k.unrolled(index, own.name, |k, i| {
            k.store(target(i.into()), source(own.element(i.into())).load());
        });
    }
}

fn outer_product(
    k: &mut KernelBuilder,
    tiled: &Tiled<'_>,
    acc: &Accumulators,
    fragments: &Fragments,
    partial: Expr,
) {
    let add = |k: &mut KernelBuilder, m: Expr, n: Expr| {
        let (a, b) = (fragments.a.element(&m), fragments.b.element(&n));
        acc.multiply_add(k, (partial.clone(), m, n), a, b);
    };
    let rows = Run { name: "m", count: tiled.tm, number: tiled.t.tm() };
    let cols = Run { name: "n", count: tiled.tn, number: tiled.t.tn() };
    match tiled.t.order() {
        Order::Row => rows.each(k, |k, m| cols.each(k, |k, n| add(k, m.clone(), n))),
        Order::Column => cols.each(k, |k, n| rows.each(k, |k, m| add(k, m, n.clone()))),
        Order::RowSerpentine => rows.each(k, |k, m| {
            cols.turning(k, &m, |k, n| add(k, m.clone(), n));
        }),
        Order::ColumnSerpentine => cols.each(k, |k, n| {
            rows.turning(k, &n, |k, m| add(k, m, n.clone()));
        }),
    }
}

/// Does something for each element of a thread.
pub(crate) fn each(
    k: &mut KernelBuilder,
    [rows, cols]: [&Elements; 2],
    body: impl FnOnce(&mut KernelBuilder, &Expr, &Expr),
) {
    over(k, "m", rows.name.into(), rows.count, |k, m| {
        over(k, "n", cols.name.into(), cols.count, |k, n| body(k, &m, &n));
    });
}

/// An unrolled loop, or its body alone where there is one round.
pub(crate) fn over(
    k: &mut KernelBuilder,
    name: &str,
    count: Expr,
    number: u32,
    body: impl FnOnce(&mut KernelBuilder, Expr),
) {
    if number == 1 {
        body(k, 0.into());
    } else {
        k.unrolled(name, count, |k, i| body(k, i.into()));
    }
}

/// An unrolled run over the elements of a fragment.
#[derive(Clone, Copy)]
struct Run {
    name: &'static str,
    count: Const,
    number: u32,
}

impl Run {
    fn each(self, k: &mut KernelBuilder, body: impl FnOnce(&mut KernelBuilder, Expr)) {
        over(k, self.name, self.count.into(), self.number, body);
    }

    /// Forwards where `outer` is even and backwards where it is odd, so that consecutive
    /// multiply-adds share one register of the outer fragment or of the inner one.
    fn turning(
        self,
        k: &mut KernelBuilder,
        outer: &Expr,
        body: impl FnOnce(&mut KernelBuilder, Expr),
    ) {
        if self.number == 1 {
            return body(k, 0.into());
        }
        let name = if self.name == "m" { "i" } else { "j" };
        k.unrolled(name, self.count, |k, i| {
            let even = (outer.clone() % 2).equals(0);
            let at = k.let_(self.name, even.select(i, self.count - 1 - i));
            body(k, at.into());
        });
    }
}
