//! Loads of the operands, application of the expressions, and stores of the results.

use super::arrays::{Array, Arrays, Parameter};
use super::place::{Place, Places, Shared};
use super::{ResultFunction, thread};
use crate::ir::{Access, BufferId, Expr, KernelBuilder, Special, Var};
use crate::lower::conversions::{in_expression, stored_expression};
use crate::spec::Along;

/// Items of a thread of an elementwise kernel.
pub(super) struct Items<'k> {
    pub(super) arrays: &'k Arrays,
    pub(super) functions: &'k [ResultFunction],
    pub(super) places: &'k Places,
}

/// Elements of an operand in registers, or a number.
enum Loaded {
    /// Elements of each item: `vector` of them, or one for an operand along the rows.
    Array(BufferId, Array),
    Number(Expr),
}

impl Items<'_> {
    /// Builds the loads, and then the computation, of all items.
    pub(super) fn build(&self, b: &mut KernelBuilder) {
        let places = self.places;
        let shared = places.shared(b);
        let loaded = self.registers(b);
        if places.loads {
            b.comment(
                "Loads all items before the first is computed: the loads are in flight together.",
            );
            b.unrolled("item", places.items, |b, item| {
                let number = b.let_("number", places.number(&shared, item));
                b.if_(Expr::from(number).lt(shared.count), |b| {
                    let place = places.find(b, &shared, number, item);
                    self.load(b, &loaded, &place, item.into());
                });
            });
        }
        b.unrolled("item", places.items, |b, item| {
            let number = b.let_("number", places.number(&shared, item));
            b.if_(Expr::from(number).lt(shared.count), |b| {
                let place = places.again(b, &shared, number, item);
                self.store(b, &loaded, &place, item.into());
            });
        });
        if places.has_rest() {
            self.rest(b, &shared);
        }
    }

    /// Computes the elements after the last whole item, one by each thread of the first block.
    fn rest(&self, b: &mut KernelBuilder, shared: &Shared) {
        let lanes = u64::from(self.places.vector);
        b.comment("The first block computes the elements after the last whole item.");
        let col = b.let_("rest", Expr::from(shared.count) * lanes + thread());
        let cond = Expr::from(Special::BlockX).equals(0).and(Expr::from(col).lt(self.arrays.n));
        b.if_(cond, |b| {
            let place = Place { row: Expr::U64(0), col: col.into() };
            let element = |operand: &Parameter| match *operand {
                Parameter::Number(number) => number.into(),
                Parameter::Array(array) => array.at(place.row.clone(), place.col.clone()).load(),
            };
            let elements: Vec<Expr> = self.arrays.operands.iter().map(element).collect();
            let values = self.functions.iter().enumerate().map(|(nth, function)| {
                let value = self.value(function, &elements, &place);
                b.let_(&format!("r{nth}"), value)
            });
            // All operands are read before a result is written, which may be one of them.
            let values: Vec<Var> = values.collect();
            for (array, value) in self.arrays.results.iter().zip(values) {
                b.store(array.at(place.row.clone(), place.col.clone()), value);
            }
        });
    }

    fn is_wide(&self) -> bool {
        self.places.vector > 1
    }

    /// Declares the registers of the operands.
    fn registers(&self, b: &mut KernelBuilder) -> Vec<Loaded> {
        let items = Expr::from(self.places.items);
        let lanes = self.is_wide().then_some(Expr::I32(self.places.vector as i32));
        let mut loaded = Vec::new();
        for (nth, operand) in self.arrays.operands.iter().enumerate() {
            loaded.push(match *operand {
                Parameter::Number(number) => Loaded::Number(number.into()),
                Parameter::Array(array) => {
                    let lanes = lanes.clone().filter(|_| array.along != Along::M);
                    let dims = [items.clone()].into_iter().chain(lanes);
                    let meaning = format!("elements of `{}`", self.arrays.names[nth]);
                    let registers = b.registers(&format!("e{nth}"), array.elem(), dims, meaning);
                    Loaded::Array(registers, array)
                }
            });
        }
        loaded
    }

    /// Loads the operands' elements of an item.
    fn load(&self, b: &mut KernelBuilder, loaded: &[Loaded], place: &Place, item: Expr) {
        for operand in loaded {
            let Loaded::Array(registers, array) = operand else { continue };
            let (row, item) = (place.row.clone(), item.clone());
            if !self.is_wide() || array.along == Along::M {
                let element = array.at(row, place.col.clone()).load();
                b.store(Access::new(*registers, [item]), element);
                continue;
            }
            for lane in self.vectors(*array) {
                let vector = array.at(row.clone(), place.col.clone() + lane).vector().load();
                let to = Access::new(*registers, [item.clone(), Expr::I32(lane)]).vector();
                b.store(to, vector);
            }
        }
    }

    /// First element of each 16-byte vector of an item.
    fn vectors(&self, array: Array) -> impl Iterator<Item = i32> + use<> {
        (0..self.places.vector as i32).step_by(array.elem().vector_lanes().into())
    }

    /// Computes and stores the results of an item.
    fn store(&self, b: &mut KernelBuilder, loaded: &[Loaded], place: &Place, item: Expr) {
        if !self.is_wide() {
            let elements = self.elements(loaded, &[item]);
            for (function, array) in self.functions.iter().zip(&self.arrays.results) {
                let value = self.value(function, &elements, place);
                b.store(array.at(place.row.clone(), place.col.clone()), value);
            }
            return;
        }
        let lanes = self.places.vector as i32;
        let results = self.functions.iter().enumerate().map(|(nth, function)| {
            let name = if self.functions.len() == 1 { "r".to_owned() } else { format!("r{nth}") };
            b.registers(&name, function.elem, [lanes.into()], "results of the item")
        });
        let results: Vec<BufferId> = results.collect();
        b.unrolled("lane", lanes, |b, lane| {
            let elements = self.elements(loaded, &[item.clone(), lane.into()]);
            let place = Place { row: place.row.clone(), col: place.col.clone() + lane };
            for (function, registers) in self.functions.iter().zip(&results) {
                let value = self.value(function, &elements, &place);
                b.store(Access::new(*registers, [lane.into()]), value);
            }
        });
        for (array, registers) in self.arrays.results.iter().zip(results) {
            for lane in self.vectors(*array) {
                let vector = Access::new(registers, [Expr::I32(lane)]).vector().load();
                let to = array.at(place.row.clone(), place.col.clone() + lane).vector();
                b.store(to, vector);
            }
        }
    }

    /// Operands' elements at an index of the registers: an item, and a lane of a vector.
    fn elements(&self, loaded: &[Loaded], at: &[Expr]) -> Vec<Expr> {
        let element = |operand: &Loaded| match operand {
            Loaded::Number(number) => number.clone(),
            Loaded::Array(registers, array) => {
                let rank = if array.along == Along::M { 1 } else { at.len() };
                Access::new(*registers, at.iter().take(rank).cloned()).load()
            }
        };
        loaded.iter().map(element).collect()
    }

    /// Value of a result, in its element type.
    fn value(&self, result: &ResultFunction, elements: &[Expr], place: &Place) -> Expr {
        let taken = result.operands.iter().map(|nth| in_expression(elements[*nth].clone()));
        let value = result.function.apply(taken, |name| match name {
            "row" => place.row.clone(),
            "col" => place.col.clone(),
            "m" => self.arrays.m.into(),
            "n" => self.arrays.n.into(),
            other => unreachable!("ELEMENTWISE: it has no integer {other}"),
        });
        stored_expression(value, result.elem)
    }
}
