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
    pub fn declare(b: &mut KernelBuilder, tiled: &Tiled<'_>) -> Self {
        let Some(of) = &tiled.matrices else {
            return Self::of(b, [&tiled.rows, &tiled.cols], tiled.plan.partials());
        };
        let place = Sums::Matrices(Matrices::declare(b, tiled, of));
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
    pub fn of(b: &mut KernelBuilder, [rows, cols]: [&Elements; 2], partials: u32) -> Self {
        let (tall, wide) = (rows.count > 1, cols.count > 1);
        let count = (partials > 1).then(|| partial_sums(b, partials));
        let (rows, cols) = (tall.then_some(rows.name), wide.then_some(cols.name));
        let dims: Vec<Expr> = [count, rows, cols].into_iter().flatten().map(Expr::from).collect();
        b.comment("The sums of this thread.");
        let place = if dims.is_empty() {
            Sums::One(b.mut_("acc", 0.0))
        } else {
            Sums::Many(b.zeroed_registers("acc", Elem::F32, dims, ""))
        };
        Self { place, tall, wide, partials, count }
    }

    /// Declares sums that are still to be set, one for each element.
    pub fn sums(b: &mut KernelBuilder, block: &BlockTile<'_>) -> Self {
        let (tall, wide) = (block.rows.count > 1, block.cols.count > 1);
        let dims = [tall.then_some(block.rows.name), wide.then_some(block.cols.name)];
        let dims: Vec<Expr> = dims.into_iter().flatten().map(Expr::from).collect();
        let place = if dims.is_empty() {
            Sums::One(b.mut_("sum_of_all", 0.0))
        } else {
            Sums::Many(b.registers("sum_of_all", Elem::F32, dims, ""))
        };
        Self { place, tall, wide, partials: 1, count: None }
    }

    /// The same with one sum for each element, which can be set.
    pub fn in_one(self, b: &mut KernelBuilder, block: &BlockTile<'_>) -> Self {
        if self.partials == 1 {
            return self;
        }
        let all = Self::sums(b, block);
        each(b, block.elements(), |b, m, n| all.set(b, (m, n), self.value(m, n)));
        all
    }

    /// Sets the sum of element (m, n).
    pub fn set(&self, b: &mut KernelBuilder, (m, n): (&Expr, &Expr), sum: Expr) {
        match &self.place {
            Sums::One(var) => b.assign(*var, sum),
            Sums::Many(buffer) => {
                b.store(self.access(*buffer, 0.into(), m.clone(), n.clone()), sum);
            }
            Sums::Matrices(matrices) => b.store(matrices.place(m, n), sum),
            Sums::Warpgroup(sums) => b.store(of_warpgroup(*sums, m, n), sum),
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
    pub fn multiply_add(
        &self,
        b: &mut KernelBuilder,
        at: (Expr, Expr, Expr),
        left: Expr,
        right: Expr,
    ) {
        let fma = |acc: Expr| Expr::Call(Intrinsic::Fma, vec![left, right, acc]);
        match &self.place {
            Sums::One(var) => b.assign(*var, fma((*var).into())),
            Sums::Many(buffer) => {
                let place = self.access(*buffer, at.0, at.1, at.2);
                let sum = fma(place.clone().load());
                b.store(place, sum);
            }
            Sums::Matrices(_) | Sums::Warpgroup(_) => {
                unreachable!("tensor cores multiply what they sum")
            }
        }
    }
}

/// The constant that names the number of partial sums.
pub(crate) fn partial_sums(b: &mut KernelBuilder, partials: u32) -> Const {
    b.constant("PARTIALS", partials as i32, "independent partial sums of an output")
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
pub(crate) fn multiply(b: &mut KernelBuilder, tiled: &Tiled<'_>, acc: &Accumulators, slot: &Expr) {
    let partials = tiled.plan.partials();
    let steps = tiled.steps();
    let step = |b: &mut KernelBuilder, at: Expr, partial: Expr| {
        if let Some(of) = tiled.matrices.as_ref().zip(acc.matrices()) {
            return mma::step(b, tiled, of, slot, &at);
        }
        let at = tiled.step(at);
        let a_frag = load(b, tiled, &tiled.a, slot, &at);
        let b_frag = load(b, tiled, &tiled.b, slot, &at);
        outer_product(b, tiled, acc, &Fragments { a: a_frag, b: b_frag }, partial);
    };
    match tiled.plan.unroll() {
        // A round makes one step of each sum. The tile's K is a multiple of that, and not always of
        // the unroll factor: what is left over is the compiler's business.
        unroll if partials > 1 => {
            let parts = partial_sums(b, partials);
            let rounds = unroll.map_or(1, |u| u / partials);
            b.loop_(
                "k",
                For::below(0, steps).change(Change::Add(parts.into())).unroll(Unroll::By(rounds)),
                |b, i| b.unrolled("u", parts, |b, u| step(b, i + u, u.into())),
            );
        }
        None => b.unrolled("k", steps, |b, i| step(b, i.into(), 0.into())),
        Some(u) => {
            b.loop_("k", For::below(0, steps).unroll(Unroll::By(u)), |b, i| {
                step(b, i.into(), 0.into());
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
    pub fn declare(b: &mut KernelBuilder, tiled: &Tiled<'_>) -> Self {
        let dims = |count: Const, many: bool| {
            [Expr::I32(2)].into_iter().chain(many.then(|| Expr::from(count)))
        };
        let (a_dims, b_dims) = (dims(tiled.tm, tiled.t.tm() > 1), dims(tiled.tn, tiled.t.tn() > 1));
        Self {
            a: b.registers("a_frag", Elem::F32, a_dims, "column of A: in use, next"),
            b: b.registers("b_frag", Elem::F32, b_dims, "row of B: in use, next"),
        }
    }

    /// Loads the fragments of step `at` of the tile in buffer `slot`.
    pub fn load(
        &self,
        b: &mut KernelBuilder,
        tiled: &Tiled<'_>,
        turn: Expr,
        slot: &Expr,
        at: &Expr,
    ) {
        let at = tiled.step(at.clone());
        for (factor, array) in [(&tiled.a, self.a), (&tiled.b, self.b)] {
            fill(b, factor, array, Some(turn.clone()), slot, &at);
        }
    }

    /// Multiplies the fragments of step `at`.
    pub fn multiply(&self, b: &mut KernelBuilder, tiled: &Tiled<'_>, acc: &Accumulators, at: Var) {
        let turn = at % 2;
        let partial = acc.count.map_or(Expr::I32(0), |partials| at % partials);
        let (t, many) = (tiled.t, |count: u32| count > 1);
        let a_frag = Held::Pair { array: self.a, many: many(t.tm()), turn: turn.clone() };
        let b_frag = Held::Pair { array: self.b, many: many(t.tn()), turn };
        outer_product(b, tiled, acc, &Fragments { a: a_frag, b: b_frag }, partial);
    }
}

fn load(b: &mut KernelBuilder, tiled: &Tiled<'_>, factor: &Factor, slot: &Expr, at: &Expr) -> Held {
    let own = factor.own;
    if own.count == 1 {
        let value = factor.shared.at(slot, (own.first.into(), at.clone())).load();
        // Used once it is read in place; used again it gets a name.
        let used_once = tiled.t.tm() == 1 && tiled.t.tn() == 1;
        let name = factor.plan.letter().to_ascii_lowercase().to_string();
        return Held::One(if used_once { value } else { b.let_(&name, value).into() });
    }
    let array = b.registers(&name_of(&factor.plan, "frag"), Elem::F32, [own.name.into()], "");
    fill(b, factor, array, None, slot, at);
    Held::Many(array)
}

/// Reads a thread's part of step `at` of the tile.
fn fill(
    b: &mut KernelBuilder,
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
        b.store(target(0.into()), source(own.first.into()).load());
    } else if vector && own.count == 4 {
        b.store(target(0.into()).vector(), source(own.vector(0.into())).vector().load());
    } else if vector {
        b.unrolled("v", own.name / 4, |b, v| {
            b.store(target(v * 4).vector(), source(own.vector(v.into())).vector().load());
        });
    } else {
        let index = if factor.plan.free() == Axis::M { "m" } else { "n" };
        b.unrolled(index, own.name, |b, i| {
            b.store(target(i.into()), source(own.element(i.into())).load());
        });
    }
}

fn outer_product(
    b: &mut KernelBuilder,
    tiled: &Tiled<'_>,
    acc: &Accumulators,
    fragments: &Fragments,
    partial: Expr,
) {
    let add = |b: &mut KernelBuilder, m: Expr, n: Expr| {
        let (a_element, b_element) = (fragments.a.element(&m), fragments.b.element(&n));
        acc.multiply_add(b, (partial.clone(), m, n), a_element, b_element);
    };
    let rows = Run { name: "m", count: tiled.tm, number: tiled.t.tm() };
    let cols = Run { name: "n", count: tiled.tn, number: tiled.t.tn() };
    match tiled.t.order() {
        Order::Row => rows.each(b, |b, m| cols.each(b, |b, n| add(b, m.clone(), n))),
        Order::Column => cols.each(b, |b, n| rows.each(b, |b, m| add(b, m, n.clone()))),
        Order::RowSerpentine => rows.each(b, |b, m| {
            cols.turning(b, &m, |b, n| add(b, m.clone(), n));
        }),
        Order::ColumnSerpentine => cols.each(b, |b, n| {
            rows.turning(b, &n, |b, m| add(b, m, n.clone()));
        }),
    }
}

/// Does something for each element of a thread.
pub(crate) fn each(
    b: &mut KernelBuilder,
    [rows, cols]: [&Elements; 2],
    body: impl FnOnce(&mut KernelBuilder, &Expr, &Expr),
) {
    over(b, "m", rows.name.into(), rows.count, |b, m| {
        over(b, "n", cols.name.into(), cols.count, |b, n| body(b, &m, &n));
    });
}

/// An unrolled loop, or its body alone where there is one round.
pub(crate) fn over(
    b: &mut KernelBuilder,
    name: &str,
    count: Expr,
    number: u32,
    body: impl FnOnce(&mut KernelBuilder, Expr),
) {
    if number == 1 {
        body(b, 0.into());
    } else {
        b.unrolled(name, count, |b, i| body(b, i.into()));
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
    fn each(self, b: &mut KernelBuilder, body: impl FnOnce(&mut KernelBuilder, Expr)) {
        over(b, self.name, self.count.into(), self.number, body);
    }

    /// Forwards where `outer` is even and backwards where it is odd, so that consecutive
    /// multiply-adds share one register of the outer fragment or of the inner one.
    fn turning(
        self,
        b: &mut KernelBuilder,
        outer: &Expr,
        body: impl FnOnce(&mut KernelBuilder, Expr),
    ) {
        if self.number == 1 {
            return body(b, 0.into());
        }
        let name = if self.name == "m" { "i" } else { "j" };
        b.unrolled(name, self.count, |b, i| {
            let even = (outer.clone() % 2).equals(0);
            let at = b.let_(self.name, even.select(i, self.count - 1 - i));
            body(b, at.into());
        });
    }
}
