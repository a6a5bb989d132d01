//! Reading of a thread's elements, round by round.

use super::expressions::{ElementIndex, Expressions};
use super::fold::{Fold, LoadedElements};
use super::params::Params;
use super::place::{BlockShare, Columns, FoldPlace};
use super::round::Round;
use crate::ir::{Access, BufferId, Change, Expr, For, KernelBuilder, Stmt, Var};
use crate::plan::ReducePlan;
use crate::spec::Over;

/// Reads a thread's elements, round by round.
pub(super) struct ElementReader<'r> {
    pub(super) plan: &'r ReducePlan,
    pub(super) fold: &'r Fold,
    pub(super) expressions: &'r Expressions,
    pub(super) place: &'r FoldPlace,
    /// Name of the constant for the number of elements of a round.
    pub(super) round: &'static str,
    /// Value that replaces a missing element.
    pub(super) missing: Expr,
    pub(super) wide: bool,
}

/// Use of the elements that a thread reads.
pub(super) trait Consumer {
    /// Prepares for elements. `first` is the index of the thread's first element, if it has one.
    fn begin(&self, b: &mut KernelBuilder, is_there: Expr, first: Expr);

    /// Takes the elements that the thread has loaded; `loaded` describes those of a column.
    fn absorb(&self, b: &mut KernelBuilder, loaded: &dyn Fn(Option<Expr>) -> LoadedElements);
}

impl ElementReader<'_> {
    pub(super) fn rounds(&self, b: &mut KernelBuilder, p: &Params, to: &impl Consumer) {
        let (plan, place, group) = (self.plan, self.place, self.place.group);
        let vector = self.vector() as i32;
        let Round { items, elements: round } = Round::new(b, plan, group, self.round);
        let (whole, in_rounds) = (place.n.clone(), Expr::from(round).wide());
        let (from, end, step) = match &place.split {
            None => (Expr::U64(0), whole, in_rounds),
            Some(BlockShare { run: Some(run), .. }) => (run.from.into(), run.end.into(), in_rounds),
            Some(BlockShare { block, blocks, .. }) => {
                (block.clone() * round, whole, blocks.clone() * round)
            }
        };
        if self.fold.keeps_indices() {
            let lane = place.lane.clone();
            let lane = if vector > 1 { lane * vector } else { lane };
            let first = from.clone() + lane;
            let position = p.position(first.clone());
            let is_there = first.lt(end.clone());
            to.begin(b, is_there, position);
        }
        let name = self.round;
        let stride = match &place.split {
            None => format!("{name} elements per iteration"),
            Some(BlockShare { run: Some(_), .. }) => "Loop over the run".to_owned(),
            Some(_) => "Grid-stride loop".to_owned(),
        };
        b.comment(format!("{stride}: the ITEMS loads of a thread are in flight together."));
        b.loop_("begin", For::below(from, end.clone()).change(Change::Add(step)), |b, begin| {
            let lane = place.lane.clone();
            let index = move |item: Expr| {
                let at = item * group + lane.clone();
                begin + if vector > 1 { at * vector } else { at }
            };
            let width = place.columns().and_then(|columns| columns.width);
            let lanes = (vector > 1).then_some(Expr::I32(vector));
            let dims = [Expr::from(items)].into_iter().chain(lanes).chain(width.map(Expr::from));
            let values = b.registers("e", self.fold.held(), dims, "elements of this thread");
            let held = |ragged: Option<&Expr>, column: Option<Expr>| LoadedElements {
                values,
                items,
                vector: vector as u32,
                column,
                first: Box::new(index.clone()),
                before: p.shard.map(|shard| shard.first.into()),
                ragged: ragged.cloned(),
            };
            let absorb = |b: &mut KernelBuilder, ragged: Option<&Expr>| {
                to.absorb(b, &|column| held(ragged, column));
            };
            let whole = b.block(|b| {
                self.load(b, p, &held(None, None));
                if self.fold.counts() {
                    absorb(b, None);
                }
            });
            let n = Some(&end);
            let otherwise = b.block(|b| {
                b.comment(self.fold.tail_text());
                self.load(b, p, &held(n, None));
                if self.fold.counts() {
                    absorb(b, n);
                }
            });
            let cond = (begin + round).le(end.clone());
            b.push(Stmt::If { cond, then: whole, otherwise });
            if !self.fold.counts() {
                absorb(b, None);
            }
        });
    }

    /// Number of elements of an item that belong to one result.
    fn vector(&self) -> u32 {
        if self.place.columns().is_none() { self.plan.vector() } else { 1 }
    }

    fn load(&self, b: &mut KernelBuilder, p: &Params, held: &LoadedElements) {
        b.unrolled("item", held.items, |b, item| {
            let i = b.let_("i", (held.first)(item.into()));
            // For rows and columns, all elements of a vector exist or none does.
            let whole = held.ragged.is_none() || self.plan.spec().over != Over::All;
            if !(self.wide && whole) {
                return self.each_of(b, held, item, |j, w| {
                    let index = j.map_or_else(|| i.into(), |j| i + j);
                    let value = self.lift(p, index.clone(), w);
                    match &held.ragged {
                        None => value,
                        Some(n) => index.lt(n.clone()).select(value, self.missing.clone()),
                    }
                });
            }
            match &held.ragged {
                None => self.vectors(b, p, held, item, i),
                Some(n) => {
                    let cond = Expr::from(i).lt(n.clone());
                    let then = b.block(|b| self.vectors(b, p, held, item, i));
                    let otherwise =
                        b.block(|b| self.each_of(b, held, item, |_, _| self.missing.clone()));
                    b.push(Stmt::If { cond, then, otherwise });
                }
            }
        });
    }

    /// Value to fold for the elements at one index.
    fn lift(&self, p: &Params, index: Expr, w: Option<Expr>) -> Expr {
        let column = self.place.columns().map(|columns| columns.column(w));
        let load =
            |input: &BufferId| self.place.element(*input, index.clone(), column.clone()).load();
        self.lifted(p, p.inputs.iter().map(load).collect(), index.clone())
    }

    fn lifted(&self, p: &Params, elements: Vec<Expr>, index: Expr) -> Expr {
        let at = ElementIndex { index: p.position(index), len: p.length(&self.place.n) };
        self.expressions.lift(elements, &p.numbers, at, self.fold.held(), self.fold.is_truth())
    }

    /// Fills an item element by element: each element of a vector, or each column.
    fn each_of(
        &self,
        b: &mut KernelBuilder,
        held: &LoadedElements,
        item: Var,
        value: impl Fn(Option<Var>, Option<Expr>) -> Expr,
    ) {
        let store = |b: &mut KernelBuilder, at: Option<Expr>, value: Expr| {
            let index = [Expr::from(item)].into_iter().chain(at);
            b.store(Access::new(held.values, index), value);
        };
        if held.vector > 1 {
            return b.unrolled("j", held.vector as i32, |b, j| {
                store(b, Some(j.into()), value(Some(j), None));
            });
        }
        self.place.each(b, |b, w| store(b, w.clone(), value(None, w)));
    }

    /// Fills an item with one vector load from each input.
    fn vectors(&self, b: &mut KernelBuilder, p: &Params, held: &LoadedElements, item: Var, i: Var) {
        let (place, vector) = (self.place, self.plan.vector());
        let first = place.columns().map(Columns::first_of_vector);
        let load = |input: &BufferId| place.element(*input, i.into(), first.clone()).vector();
        let loads: Vec<Access> = p.inputs.iter().map(load).collect();
        if let ([load], true) = (loads.as_slice(), self.is_moved()) {
            let to = Access::new(held.values, [item.into(), 0.into()]).vector();
            return b.store(to, load.clone().load());
        }
        let names = ["v", "w", "p", "q"];
        let loaded = loads.into_iter().zip(names).map(|(load, name)| b.let_(name, load.load()));
        let loaded: Vec<Var> = loaded.collect();
        for lane in 0..vector {
            let elements = loaded.iter().map(|v| Expr::from(*v).lane(lane as u8)).collect();
            let lane = lane as i32;
            let index = if place.columns().is_some() { i.into() } else { i + lane };
            let value = self.lifted(p, elements, index);
            b.store(Access::new(held.values, [item.into(), lane.into()]), value);
        }
    }

    /// Returns true if elements are folded without a `map`.
    fn is_moved(&self) -> bool {
        self.plan.spec().map.is_none()
            && !self.fold.is_truth()
            && self.fold.held() == self.plan.types().element
    }
}
