//! Semantics of expressions on the simulator, compared with an evaluator in Rust.

mod evaluator;
mod meaning;
mod prototypes;
mod typed;

use gemm_dsl::expr::{ExprScope, FINISH, FOLD, Float, IDENTITY, MAP, Type, Typing, ValueType};
use gemm_dsl::ir::Elem;
use proptest::prelude::*;
use proptest::sample::select;

/// Random scope of a reduction, with types that its expressions may have.
fn typings() -> impl Strategy<Value = (&'static ExprScope, Typing)> {
    let float = || select(vec![Float::F32, Float::F64]);
    let integers = [Elem::I8, Elem::U8, Elem::I32, Elem::U32, Elem::I64];
    let mut types: Vec<ValueType> = integers.into_iter().filter_map(ValueType::from_elem).collect();
    types.extend([ValueType::Int { least: 3, most: 9 }, ValueType::Bool]);
    let value = prop_oneof![float().prop_map(ValueType::Float), select(types)];
    let values = proptest::collection::vec(value, 0..5);
    let result = select(vec![Type::F32, Type::F64, Type::Int, Type::Bool]);
    let typing = (float(), values, result).prop_map(|(float, values, result)| Typing {
        float,
        values,
        result,
        more: Vec::new(),
    });
    (select(vec![&MAP, &FINISH, &FOLD, &IDENTITY]), typing)
}
