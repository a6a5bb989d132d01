//! Types of a reduction: elements, accumulators, indices and results.

use super::Faults;
use super::messages;
use crate::expr::{Closure, Float, Type, Typing, ValueType};
use crate::ir::Elem;
use crate::spec::{Finish, Map, Op, Over, ReduceSpec};
use std::iter;

/// Name of the array of segment offsets.
pub(crate) const OFFSETS: &str = "offsets";

/// Maximum number of numbers that a launch passes. The type of a kernel lists them.
const MOST_NUMBERS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Types {
    /// Element type of the inputs.
    pub element: Elem,
    pub acc: Elem,
    /// Type of indices and counts.
    pub index: Elem,
    pub result: Elem,
}

/// Returns the types of a spec, and reports errors in them and in the expressions.
pub(super) fn resolve(spec: &ReduceSpec, faults: &mut Faults) -> Types {
    let (element, acc) = (spec.element.elem(), spec.acc_elem());
    let [(_, result), ..] = spec.results()[..] else {
        unreachable!("ReduceSpec::results: there is a result")
    };
    let types = Types { element, acc, index: spec.index.elem(), result };
    let truth = spec.operator().is_some_and(Op::is_truth);
    if spec.map.is_none() && !truth {
        faults.require(holds(acc, element), || messages::acc_narrow(element, acc));
    }
    if !faults.sound(&["acc"]) {
        return types;
    }
    match spec.operator() {
        Some(Op::MeanVar) => {
            faults.require(acc.is_float(), || {
                messages::no_float("op", acc, "`acc: f32` or `acc: f64`")
            });
        }
        Some(Op::Logsumexp) if acc == Elem::F64 => {
            faults.0.push(messages::logsumexp_of_f64(element));
        }
        Some(Op::Logsumexp) => {
            faults.require(acc.is_float(), || messages::no_float("op", acc, "`acc: f32`"));
        }
        _ => {}
    }
    if spec.compensated && spec.operator() == Some(Op::Sum) {
        let either = "`acc: f32` or `acc: f64`";
        faults.require(acc.is_float(), || messages::no_float("compensated", acc, either));
    }
    let is_number = spec.has_value_and_index()
        || !spec.operator().is_some_and(|op| op.is_index() || op.is_truth());
    if let Some(result) = spec.result.filter(|_| is_number) {
        let (result, finish) = (result.elem(), spec.finish.is_some());
        let fits = match acc {
            Elem::F32 => matches!(result, Elem::F32 | Elem::F16 | Elem::Bf16),
            Elem::F64 => matches!(result, Elem::F64 | Elem::F32),
            _ => result == acc || (finish && matches!(result, Elem::F32 | Elem::F64)),
        };
        faults.require(fits, || messages::wrong_result(acc, result, finish));
    }
    faults.require(spec.fold.is_none() || spec.identity.is_some(), messages::fold_without_identity);
    if faults.sound(&["acc", "result"]) {
        check_expressions(spec, faults);
    }
    types
}

/// Returns true if `acc` represents every element: exactly, except that a floating-point type
/// rounds large integers.
pub(in crate::plan) fn holds(acc: Elem, element: Elem) -> bool {
    match (element.is_float(), acc.is_float()) {
        (true, true) => acc.size() >= element.size(),
        (true, false) => false,
        (false, true) => true,
        (false, false) if acc.is_signed() == element.is_signed() => acc.size() >= element.size(),
        // The sign takes one bit, so a signed `acc` must be larger.
        (false, false) => acc.is_signed() && acc.size() > element.size(),
    }
}

/// Types in the expressions of a reduction. Expressions have no `u64`; an earlier check rejects it.
impl ReduceSpec {
    pub(crate) fn typing_of_map(&self) -> Typing {
        let element = self.element.elem();
        let float = float_of(self.acc_elem()).or(float_of(element)).unwrap_or(Float::F32);
        let result = match self.operator() {
            Some(op) if op.is_truth() => Type::Bool,
            _ => type_of(self.acc_elem()),
        };
        let map = self.map.as_ref().map(Map::closure);
        let values = vec![value_of(element); self.inputs().len()].into_iter();
        let values = values.chain(values_of_numbers(map)).collect();
        Typing { float, values, result, more: Vec::new() }
    }

    pub(crate) fn typing_of_fold(&self) -> Typing {
        let acc = self.acc_elem();
        let float = float_of(acc).unwrap_or(Float::F32);
        Typing { float, values: vec![value_of(acc); 2], result: type_of(acc), more: Vec::new() }
    }

    pub(crate) fn typing_of_identity(&self) -> Typing {
        Typing { values: Vec::new(), ..self.typing_of_fold() }
    }

    pub(crate) fn typing_of_finish(&self) -> Typing {
        let acc = self.acc_elem();
        let result = self.result.map_or(acc, |result| result.elem());
        let float = float_of(acc).or(float_of(result)).unwrap_or(Float::F32);
        let count = match float_of(acc) {
            Some(float) => ValueType::Float(float),
            None => ValueType::Int { least: 0, most: 1 << 48 },
        };
        let finish = self.finish.as_ref().map(Finish::closure);
        let has = finish.map_or(self.folded_values() + 1, |finish| finish.value_params().len());
        let values = iter::repeat_n(value_of(acc), self.folded_values()).chain([count]).take(has);
        let values = values.chain(values_of_numbers(finish)).collect();
        Typing { float, values, result: type_of(result), more: Vec::new() }
    }

    /// Number of parameters of a `finish` before the number of elements.
    pub(super) fn folded_values(&self) -> usize {
        if self.operator() == Some(Op::MeanVar) { 2 } else { 1 }
    }
}

/// Types of the numbers of an expression.
fn values_of_numbers(closure: Option<&Closure>) -> impl Iterator<Item = ValueType> {
    closure.into_iter().flat_map(Closure::number_params).map(|(_, elem)| value_of(elem))
}

fn value_of(elem: Elem) -> ValueType {
    // A type that expressions do not support is rejected where an expression uses it.
    ValueType::from_elem(elem).unwrap_or(ValueType::Bool)
}

/// Returns the floating-point type in which a `map` computes with elements of this type.
fn float_of(elem: Elem) -> Option<Float> {
    match elem {
        Elem::F64 => Some(Float::F64),
        elem => elem.is_float().then_some(Float::F32),
    }
}

fn type_of(elem: Elem) -> Type {
    float_of(elem).map_or(Type::Int, Type::from)
}

/// Reports errors in the expressions.
fn check_expressions(spec: &ReduceSpec, faults: &mut Faults) {
    let [element, acc] = [spec.element.elem(), spec.acc_elem()];
    let is_wide = |elems: &[Elem]| elems.contains(&Elem::U64);
    let wide_result = spec.result.map_or(acc, |result| result.elem());
    let check =
        |faults: &mut Faults, key, closure: Option<&Closure>, typing: Typing, wide: bool| {
            let Some(closure) = closure else { return };
            if wide {
                faults.0.push(messages::expression_of_u64(key));
            } else {
                faults.0.extend(closure.check(&typing));
            }
        };
    let truth = spec.operator().is_some_and(Op::is_truth);
    let mapped = if truth { vec![element] } else { vec![element, acc] };
    let map = spec.map.as_ref().map(|map| map.closure());
    check(faults, "map", map, spec.typing_of_map(), is_wide(&mapped));
    check_names(spec, faults);
    let fold = spec.fold.as_ref().map(|fold| fold.closure());
    check(faults, "fold", fold, spec.typing_of_fold(), is_wide(&[acc]));
    let identity = spec.identity.as_ref().map(|identity| identity.closure());
    let identity = identity.filter(|_| spec.fold.is_some());
    check(faults, "identity", identity, spec.typing_of_identity(), is_wide(&[acc]));
    if let (Some(identity), Some(ValueType::Int { least, most })) =
        (identity, ValueType::from_elem(acc))
        && let Some((value, _)) = identity.range(&spec.typing_of_identity())
        && !(least..=most).contains(&value)
    {
        faults.0.push(messages::identity_range(acc, value, least, most));
    }
    let Some(finish) = &spec.finish else { return };
    let (has, least) = (finish.closure().value_params().len(), spec.folded_values());
    if (least..=least + 1).contains(&has) {
        check(
            faults,
            "finish",
            Some(finish.closure()),
            spec.typing_of_finish(),
            is_wide(&[acc, wide_result]),
        );
    } else {
        let example = if least == 2 { "|mean, var, len| sqrt(var)" } else { "|s, len| s / len" };
        faults.0.push(messages::finish_values(has, least, example));
    }
}

/// Checks that the array names differ from the names of results and offsets, since a launch passes
/// all arrays by name.
fn check_names(spec: &ReduceSpec, faults: &mut Faults) {
    check_numbers(spec, faults);
    let Some(map) = &spec.map else { return };
    let results = spec.results();
    for param in map.closure().params() {
        if results.iter().any(|(name, _)| *name == param.name) {
            faults.0.push(messages::taken_name(param.at, &param.name, "a result"));
        } else if spec.over == Over::Segments && param.name == OFFSETS {
            faults.0.push(messages::taken_name(param.at, OFFSETS, "the array of segment offsets"));
        }
    }
}

/// Checks the names of the numbers of `finish`: a launch passes numbers and arrays by name. A
/// number of `map` and `finish` is one number.
fn check_numbers(spec: &ReduceSpec, faults: &mut Faults) {
    let numbers = spec.numbers();
    if let Some((name, _)) = numbers.get(MOST_NUMBERS) {
        let keys = [("map", spec.map.as_ref().map(Map::closure))];
        let keys = keys.into_iter().chain([("finish", spec.finish.as_ref().map(Finish::closure))]);
        let of = keys.filter_map(|(key, closure)| Some((key, closure?)));
        let found = of.flat_map(|(key, closure)| closure.number_params().map(move |n| (key, n.0)));
        let last = { found }.find(|(_, number)| number.name == *name);
        faults.0.extend(last.map(|(key, number)| {
            messages::many_numbers(key, number.at, name, numbers.len(), MOST_NUMBERS)
        }));
    }
    let Some(finish) = &spec.finish else { return };
    let results = spec.results();
    for (number, elem) in finish.closure().number_params() {
        let name = &*number.name;
        if results.iter().any(|(result, _)| *result == name) {
            faults.0.push(messages::taken_number(number.at, name, "a result"));
        } else if spec.over == Over::Segments && name == OFFSETS {
            faults.0.push(messages::taken_number(number.at, name, "the array of segment offsets"));
        } else if spec.inputs().contains(&name) {
            faults.0.push(messages::taken_number(number.at, name, "an input"));
        }
        let mut map = spec.map.iter().flat_map(|map| map.closure().number_params());
        let other = map.find(|(other, _)| other.name == name).map(|(_, elem)| elem);
        if let Some(other) = other.filter(|other| *other != elem) {
            faults.0.push(messages::number_of_two_types(number.at, name, other, elem));
        }
    }
}
