//! The plan of an elementwise kernel.
//!
//! A spec of an elementwise kernel is valid if all of the following hold:
//!
//! * it has an expression, with at most 4 results;
//! * `->` states a type for each result, or is left out;
//! * expressions are well typed. They take and return no `u64`. They compute in `f64` if some
//!   operand or result is an `f64`, otherwise in `f32`;
//! * a number is an `f32`, `f64`, `i32`, `u32` or `i64`;
//! * a result with one value for each row does not depend on the column, and the expression folds
//!   over rows. Some operand or result has the index `[m, n]`;
//! * no operand has the name of a result: `output`, or `output_0` to `output_3`;
//! * `block` is a multiple of 32 from 32 to 1024;
//! * the `items` of a thread hold at most 512 bytes of operands and results, unless it is one item;
//! * a name, if given, is an identifier of CUDA C++ with at least one letter or digit.
//!
//! A launch also checks the grid, which has at most 2^31 − 1 blocks. If the expression reads `row`,
//! `col`, `m` or `n`, a matrix has less than 2^31 rows and columns. A row that is folded has at
//! most 2^30 columns.

mod decisions;
mod messages;
mod rows;

pub(crate) use rows::{MAX_COLUMNS, RowClass};

use super::{Faults, check_name};
use crate::error::SpecErrors;
use crate::expr::{Closure, Float, RowExpression, Type, Typing, ValueType};
use crate::ir::Elem;
use crate::spec::{Along, MapOperand, MapResult, MapSpec};
use crate::target::arch::{BLOCK_THREADS, WARP};

/// Bytes that the items of a thread load by default.
const LOADED_BYTES: u32 = 64;

/// Default for the maximum number of items.
const MAX_ITEMS: u32 = 4;

/// Maximum number of bytes that the items of a thread hold, if the spec gives `items`.
const MAX_HELD_BYTES: u64 = 512;

/// Maximum number of elements that a thread of the scalar variant computes.
const MAX_SCALAR_ITEMS: u32 = 8;

/// A valid elementwise kernel with all defaults resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapPlan {
    spec: MapSpec,
    vector: u32,
    items: u32,
}

impl MapSpec {
    /// Resolves the spec.
    ///
    /// # Errors
    /// Returns all errors of the spec.
    pub fn plan(&self) -> Result<MapPlan, SpecErrors> {
        let mut faults = Faults::default();
        check_name(self.name.as_deref(), &mut faults);
        faults.check_minimums(self);
        let block = self.block;
        let is_sound = (WARP..=BLOCK_THREADS).contains(&block) && block.is_multiple_of(WARP);
        faults.require(is_sound, || messages::wrong_block(block));
        match self.map.as_ref().map(|map| map.closure()) {
            None => faults.0.push(messages::no_expression()),
            Some(closure) => check_closure(self, closure, &mut faults),
        }
        let vector = self.vector();
        if let Some(items) = self.items.filter(|_| faults.sound(&["items", "map"])) {
            let bytes = u64::from(vector) * u64::from(self.bytes_held());
            let held = u64::from(items) * bytes;
            faults.require(items == 1 || held <= MAX_HELD_BYTES, || {
                messages::too_many_items(items, bytes, MAX_HELD_BYTES)
            });
        }
        faults.finish()?;
        let items = self.items.unwrap_or_else(|| {
            let loads = |along| along == Along::Mn;
            if let Some(expression) = self.rows() {
                return rows::items(&expression, vector, self.bytes_of(loads));
            }
            let read = self.operands().iter().any(|operand| loads(operand.arg.along));
            let bytes = match read {
                true => self.bytes_of(loads),
                false => self.results().iter().map(|result| result.elem.size()).sum(),
            };
            (LOADED_BYTES / (vector * bytes)).clamp(1, MAX_ITEMS)
        });
        Ok(MapPlan { spec: self.clone(), vector, items })
    }

    /// Returns the number of elements of an item: those of 16 bytes of the smallest element type.
    fn vector(&self) -> u32 {
        let arrays = self.operands().into_iter();
        let arrays = arrays.filter(|operand| matches!(operand.arg.along, Along::Mn | Along::N));
        let elems = arrays.map(|operand| operand.elem);
        let results = self.results().into_iter();
        let results = results.filter(|result| result.along == Along::Mn);
        let elems = elems.chain(results.map(|result| result.elem));
        elems.map(|elem| u32::from(elem.vector_lanes())).max().unwrap_or(1)
    }

    /// Returns the bytes of the operands' elements at one index.
    fn bytes_of(&self, counts: impl Fn(Along) -> bool) -> u32 {
        let operands = self.operands().into_iter().filter(|operand| counts(operand.arg.along));
        operands.map(|operand| operand.elem.size()).sum()
    }

    /// Returns the bytes that a thread holds for each element of an item.
    fn bytes_held(&self) -> u32 {
        let loads = self.bytes_of(|along| matches!(along, Along::Mn | Along::N));
        loads + self.results().iter().map(|result| result.elem.size()).sum::<u32>()
    }

    /// Returns the floating-point type of the expression.
    fn float(&self) -> Float {
        let operands = self.operands().into_iter().map(|operand| operand.elem);
        let mut elems = operands.chain(self.results().into_iter().map(|result| result.elem));
        if elems.any(|elem| elem == Elem::F64) { Float::F64 } else { Float::F32 }
    }

    /// Returns the expression, split into parts, if it is valid and folds over rows.
    fn rows(&self) -> Option<RowExpression> {
        let closure = self.map.as_ref()?.closure();
        closure.first_fold()?;
        let results: Vec<Elem> = self.results().iter().map(|result| result.elem).collect();
        Some(closure.rows(&self.typing(closure, &results)))
    }

    /// Types of the whole expression, or of the closure of one result.
    fn typing(&self, closure: &Closure, results: &[Elem]) -> Typing {
        let value = |elem| ValueType::from_elem(elem).unwrap_or(ValueType::Bool);
        let values = closure.params().iter().map(|param| value(self.elem_of(param))).collect();
        let mut types = results.iter().map(|elem| result_type(*elem));
        let result = types.next().unwrap_or(Type::F32);
        Typing { float: self.float(), values, result, more: types.collect() }
    }
}

/// Type of an expression whose value is stored as this element type.
fn result_type(elem: Elem) -> Type {
    match elem {
        Elem::F64 => Type::F64,
        elem if elem.is_float() => Type::F32,
        _ => Type::Int,
    }
}

fn check_closure(spec: &MapSpec, closure: &Closure, faults: &mut Faults) {
    let (count, stated) = (closure.values().len(), closure.result_types());
    let fits = stated.is_empty() || stated.len() == count;
    if !fits {
        return faults.0.push(messages::result_types(stated.len(), count));
    }
    let results = spec.results();
    let elems: Vec<Elem> = results.iter().map(|result| result.elem).collect();
    for (param, operand) in closure.params().iter().zip(spec.operands()) {
        let is_number = operand.arg.along == Along::Nothing;
        if operand.elem == Elem::U64 {
            faults.0.push(messages::operand_of_u64(param.at, &param.name));
        } else if is_number && !operand.elem.computes() {
            faults.0.push(messages::narrow_number(param.at, &param.name, operand.elem));
        }
        if results.iter().any(|result| result.name == param.name) {
            faults.0.push(messages::name_of_result(param.at, &param.name));
        }
    }
    if elems.contains(&Elem::U64) {
        faults.0.push(messages::result_of_u64());
    }
    if faults.sound(&["map", "type"]) {
        faults.0.extend(closure.check(&spec.typing(closure, &elems)));
    }
    if faults.sound(&["map", "type"]) {
        check_rows(spec, closure, faults);
    }
}

/// Checks results with one value for each row.
fn check_rows(spec: &MapSpec, closure: &Closure, faults: &mut Faults) {
    let results = spec.results();
    let per_row = |result: &&MapResult| result.along == Along::M;
    let Some(first) = results.iter().position(|result| per_row(&result)) else { return };
    let Some(expression) = spec.rows() else {
        return faults.0.push(messages::row_result_without_fold(results[first].elem));
    };
    for ((result, split), value) in results.iter().zip(&expression.results).zip(closure.values()) {
        if per_row(&result) && split.varies {
            faults.0.push(messages::varying_row_result(value.at, result.elem));
        }
    }
    let is_matrix = |operand: &MapOperand| operand.arg.along == Along::Mn;
    if results.iter().all(|result| per_row(&result)) && !spec.operands().iter().any(is_matrix) {
        faults.0.push(messages::no_columns());
    }
}

impl MapPlan {
    pub fn spec(&self) -> &MapSpec {
        &self.spec
    }

    pub fn kernel_name(&self) -> String {
        self.spec.kernel_name()
    }

    /// Threads of a block: a multiple of 32, up to 1024.
    pub fn block(&self) -> u32 {
        self.spec.block
    }

    /// Elements of an item of a vector variant: 16 bytes of the smallest element type.
    pub fn vector(&self) -> u32 {
        self.vector
    }

    /// Items of a thread of a vector variant. Consecutive items are one block of threads apart.
    pub fn items(&self) -> u32 {
        self.items
    }

    /// Elements that a thread of the scalar variant computes, one block of threads apart.
    pub fn scalar_items(&self) -> u32 {
        (self.items * self.vector).min(MAX_SCALAR_ITEMS)
    }

    /// Returns true if the kernel has a variant for one row without padding.
    pub fn is_flat(&self) -> bool {
        self.spec.is_flat()
    }

    pub fn operands(&self) -> Vec<MapOperand> {
        self.spec.operands()
    }

    /// Floating-point type in which the expression is computed.
    pub fn float(&self) -> Float {
        self.spec.float()
    }

    /// The closure of each result, with its types.
    pub(crate) fn results(&self) -> Vec<(Closure, Typing)> {
        let Some(map) = &self.spec.map else {
            unreachable!("MapSpec::plan: there is an expression")
        };
        let results = self.spec.results().into_iter().enumerate().map(|(nth, result)| {
            let Some(closure) = map.closure().result(nth) else {
                unreachable!("MapSpec::results: one for each value of the closure")
            };
            let typing = self.spec.typing(&closure, &[result.elem]);
            (closure, typing)
        });
        results.collect()
    }
}
