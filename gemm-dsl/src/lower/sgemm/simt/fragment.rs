//! Innermost loops: loads of fragments from shared memory to registers, and their outer product.

use crate::ir::{Access, BufferId, Change, Const, Expr, For, KernelBuilder, Unroll, Var};
use crate::lower::sgemm::common::accumulators::{
    AccumulatorIndex, AccumulatorShare, Accumulators, MmaAccumulators, partial_sums,
};
use crate::lower::sgemm::common::copy::name_of;
use crate::lower::sgemm::common::loops::over;
use crate::lower::sgemm::common::tile::{PartOfB, StagedFactor, Tiled};
use crate::lower::sgemm::mma::{self, MmaContext};
use crate::plan::Axis;
use crate::spec::Order;

/// Declares the accumulators of a staged kernel, all zero.
pub(super) fn accumulators(b: &mut KernelBuilder, tiled: &Tiled<'_>) -> Accumulators {
    match &tiled.mma {
        None => {
            let partials =
                if tiled.frame.plan.folds_tiles() { 1 } else { tiled.frame.plan.partials() };
            let (acc, share) =
                (tiled.frame.plan.types().acc, AccumulatorShare::Thread { partials });
            Accumulators::zeroed(b, acc, [&tiled.rows, &tiled.cols], share)
        }
        Some(warp) => Accumulators::from_mma(MmaAccumulators::declare(b, tiled, warp)),
    }
}

/// Emits `body`, which multiplies a K tile and adds the products to accumulators. These are `acc`,
/// or partial accumulators of the tile, which are then added to `acc`.
pub(super) fn of_tile(
    b: &mut KernelBuilder,
    tiled: &Tiled<'_>,
    acc: &Accumulators,
    body: impl FnOnce(&mut KernelBuilder, &Accumulators),
) {
    if !tiled.frame.plan.folds_tiles() {
        return body(b, acc);
    }
    let (elem, partials) = (tiled.frame.plan.types().acc, tiled.frame.plan.partials());
    let elements = [&tiled.rows, &tiled.cols];
    let partial = Accumulators::zeroed(b, elem, elements, AccumulatorShare::Tile { partials });
    body(b, &partial);
    b.comment("Add the partial sums of this K tile.");
    acc.fold(b, elements, &partial);
}

/// Fragments of A and B for one k step.
struct Fragments {
    a: FragmentRegisters,
    b: FragmentRegisters,
}

/// A thread's part of a column of A's tile, or of a row of B's tile.
enum FragmentRegisters {
    /// One element: an expression that is read once, or a variable.
    One(Expr),
    /// Array of registers with one fragment.
    Many(BufferId),
    /// Two register arrays, used in alternate k steps; `turn` is the index of the current one.
    Pair { array: BufferId, many: bool, turn: Expr },
}

impl FragmentRegisters {
    fn element(&self, i: &Expr) -> Expr {
        match self {
            FragmentRegisters::One(value) => value.clone(),
            FragmentRegisters::Many(array) => Access::new(*array, [i.clone()]).load(),
            FragmentRegisters::Pair { array, many, turn } => {
                let i = many.then(|| i.clone());
                Access::new(*array, [turn.clone()].into_iter().chain(i)).load()
            }
        }
    }
}

/// Multiplies the tile in buffer `slot`, and adds the products to the accumulators.
pub(crate) fn multiply(b: &mut KernelBuilder, tiled: &Tiled<'_>, acc: &Accumulators, slot: &Expr) {
    of_tile(b, tiled, acc, |b, acc| multiply_part(b, tiled, acc, slot, None));
}

/// Multiplies the tile of A in buffer `slot` by the tile of B, or by a part of it.
pub(super) fn multiply_part(
    b: &mut KernelBuilder,
    tiled: &Tiled<'_>,
    acc: &Accumulators,
    slot: &Expr,
    part: Option<&PartOfB>,
) {
    let partials = tiled.frame.plan.partials();
    let steps = tiled.steps();
    let step = |b: &mut KernelBuilder, at: Expr, partial: Expr| {
        if let Some((warp, accumulators)) = tiled.mma.as_ref().zip(acc.mma()) {
            return mma::step(b, tiled, MmaContext { warp, accumulators }, slot, &at);
        }
        let at = tiled.step(at);
        let a_frag = load(b, tiled, &tiled.a, slot, &at);
        if let Some(PartOfB { factor, n }) = part {
            let element = factor.shared.at(slot, [factor.own.first.into(), at]).load();
            let at = AccumulatorIndex { partial, m: 0.into(), n: n.clone() };
            return acc.multiply_add(b, at, a_frag.element(&0.into()), element);
        }
        let b_frag = load(b, tiled, &tiled.b, slot, &at);
        outer_product(b, tiled, acc, &Fragments { a: a_frag, b: b_frag }, partial);
    };
    match tiled.frame.plan.unroll() {
        // An iteration performs one step for each partial accumulator. Their number divides the
        // tile's K, but the unroll factor need not. The compiler handles the remainder.
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

/// Double-buffered fragments. Those of the next k step are loaded while those of the current step
/// are multiplied.
pub(crate) struct FragmentPair {
    a: BufferId,
    b: BufferId,
}

impl FragmentPair {
    pub fn declare(b: &mut KernelBuilder, tiled: &Tiled<'_>) -> Self {
        let dims = |count: Const, many: bool| {
            [Expr::I32(2)].into_iter().chain(many.then(|| Expr::from(count)))
        };
        let (a_elem, b_elem) = (tiled.a.plan.elem(), tiled.b.plan.elem());
        let (a_dims, b_dims) = (
            dims(tiled.frame.tm, tiled.frame.t.tm() > 1),
            dims(tiled.frame.tn, tiled.frame.t.tn() > 1),
        );
        Self {
            a: b.registers("a_frag", a_elem, a_dims, "double-buffered: step k uses a_frag[k % 2]"),
            b: b.registers("b_frag", b_elem, b_dims, "double-buffered: step k uses b_frag[k % 2]"),
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
        let (t, many) = (tiled.frame.t, |count: u32| count > 1);
        let a_frag =
            FragmentRegisters::Pair { array: self.a, many: many(t.tm()), turn: turn.clone() };
        let b_frag = FragmentRegisters::Pair { array: self.b, many: many(t.tn()), turn };
        outer_product(b, tiled, acc, &Fragments { a: a_frag, b: b_frag }, partial);
    }
}

fn load(
    b: &mut KernelBuilder,
    tiled: &Tiled<'_>,
    factor: &StagedFactor,
    slot: &Expr,
    at: &Expr,
) -> FragmentRegisters {
    let own = factor.own;
    if own.count == 1 {
        let value = factor.shared.at(slot, [own.first.into(), at.clone()]).load();
        // A value that is used once needs no variable.
        let used_once = tiled.frame.t.tm() == 1 && tiled.frame.t.tn() == tiled.frame.t.parts_of_b();
        let name = factor.plan.letter().to_ascii_lowercase().to_string();
        return FragmentRegisters::One(if used_once { value } else { b.let_(&name, value).into() });
    }
    let (name, elem) = (name_of(&factor.plan, "frag"), factor.plan.elem());
    let array = b.registers(&name, elem, [own.name.into()], "");
    fill(b, factor, array, None, slot, at);
    FragmentRegisters::Many(array)
}

/// Loads a thread's part of step `at` of the tile.
fn fill(
    b: &mut KernelBuilder,
    factor: &StagedFactor,
    array: BufferId,
    turn: Option<Expr>,
    slot: &Expr,
    at: &Expr,
) {
    let own = factor.own;
    let lanes = factor.plan.fragment_width() as i32;
    let source = |offset: Expr| factor.shared.at(slot, [offset, at.clone()]);
    let target = |i: Expr| {
        let i = (own.count > 1).then_some(i);
        Access::new(array, turn.clone().into_iter().chain(i))
    };
    if own.count == 1 {
        b.store(target(0.into()), source(own.first.into()).load());
    } else if lanes > 1 && own.count == lanes as u32 {
        b.store(target(0.into()).vector(), source(own.vector(0.into(), lanes)).vector().load());
    } else if lanes > 1 {
        b.unrolled("v", own.name / lanes, |b, v| {
            let from = source(own.vector(v.into(), lanes)).vector();
            b.store(target(v * lanes).vector(), from.load());
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
        let at = AccumulatorIndex { partial: partial.clone(), m, n };
        acc.multiply_add(b, at, a_element, b_element);
    };
    let rows = FragmentAxis { name: "m", count: tiled.frame.tm, number: tiled.frame.t.tm() };
    let cols = FragmentAxis { name: "n", count: tiled.frame.tn, number: tiled.frame.t.tn() };
    match tiled.frame.t.order() {
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

/// Unrolled loop over the elements of a fragment.
#[derive(Clone, Copy)]
struct FragmentAxis {
    name: &'static str,
    count: Const,
    number: u32,
}

impl FragmentAxis {
    fn each(self, b: &mut KernelBuilder, body: impl FnOnce(&mut KernelBuilder, Expr)) {
        over(b, self.name, self.count.into(), self.number, body);
    }

    /// Loops forwards for even values of `outer`, and backwards for odd ones. Consecutive
    /// multiply-adds then share a register of the outer or of the inner fragment.
    fn turning(
        self,
        b: &mut KernelBuilder,
        outer: &Expr,
        body: impl FnOnce(&mut KernelBuilder, Expr),
    ) {
        if self.number == 1 {
            return body(b, 0.into());
        }
        let lines = if self.name == "m" { "columns" } else { "rows" };
        b.comment(format!(
            "Odd {lines} run backwards: consecutive multiply-adds then share a register."
        ));
        let name = if self.name == "m" { "i" } else { "j" };
        b.unrolled(name, self.count, |b, i| {
            let even = (outer.clone() % 2).equals(0);
            let at = b.let_(self.name, even.select(i, self.count - 1 - i));
            body(b, at.into());
        });
    }
}
