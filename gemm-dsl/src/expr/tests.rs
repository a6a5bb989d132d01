//! Tests of the expression language: parsing, printing and typing. Its semantics are tested with
//! its lowering.

mod conditions;
mod faults;
mod pairs;
mod ranges;
mod rows;
mod types;

use super::random::{closure_of, of_pairs, with_operands};
use super::{
    Closure, EPILOGUE, ExprScope, FINISH, FOLD, Float, Function, FunctionInfo, IDENTITY, MAP, Type,
    Typing, ValueType,
};
use crate::SpecError;
use crate::ir::Elem;
use crate::plan::SgemmPlan;
use crate::{Plan, cuda};
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

proptest! {
    #![proptest_config(gemm_cases::cases(3000))]

    #[test]
    fn printing_and_parsing_preserves_closures(
        seed: u64,
        depth in 0..7u32,
        operands in 0..4u64,
        has_pairs: bool,
    ) {
        // The text of a pair contains the expression up to three times.
        let closure = match has_pairs {
            true => of_pairs(&EPILOGUE, seed, depth.min(4), operands),
            false => with_operands(&EPILOGUE, seed, depth, operands),
        };
        let text = closure.to_string();
        let read = Closure::parse(&EPILOGUE, &text);
        let read = read.map_err(|e| TestCaseError::fail(format!("{text}\n{e}")))?;
        prop_assert_eq!(&read, &closure, "{}", text);
        prop_assert_eq!(read.to_string(), text);
    }

    #[test]
    fn printing_and_parsing_preserves_typed_closures(
        seed: u64,
        depth in 0..7u32,
        (scope, typing) in typings(),
    ) {
        let closure = closure_of(scope, &typing, seed, depth);
        let text = closure.to_string();
        let read = Closure::parse(scope, &text);
        // One in 100,000 is longer than the parser accepts.
        if let Err(faults) = &read {
            let is_long = |fault: &SpecError| fault.message().contains("more than 1024 parts");
            prop_assume!(!(depth == 6 && faults.iter().all(is_long)));
        }
        let read = read.map_err(|e| TestCaseError::fail(format!("{text}\n{e}")))?;
        prop_assert_eq!(&read, &closure, "{}", text);
        prop_assert_eq!(read.check(&typing), [], "{}", text);
        prop_assert_eq!(read.to_string(), text);
    }

    #[test]
    fn any_text_is_read_or_refused(
        text in "[|a-z0-9.+*/<=>!&(){}; ,-]{0,40}",
        (scope, typing) in typings(),
    ) {
        for text in [text.clone(), format!("|acc| {text}"), format!("|acc| {{ let t = {text}; t * \
            acc }}")] {
            if let Err(faults) = Closure::parse(&EPILOGUE, &text) {
                prop_assert!(faults.iter().all(|fault| !fault.message().is_empty()));
            }
            if let Ok(read) = Closure::parse(scope, &text) {
                prop_assert!(read.check(&typing).iter().all(|fault| fault.tokens().is_some()));
            }
        }
    }
}

#[test]
fn a_text_is_printed_in_its_canonical_form() {
    for (text, canonical) in [
        ("|acc|acc", "|acc| acc"),
        ("| acc , | { acc }", "|acc| acc"),
        ("|acc| ((acc + 1.) * (2.50 * acc))", "|acc| (acc + 1.0) * (2.5 * acc)"),
        ("|acc| acc - (1.0 - acc) - acc", "|acc| acc - (1.0 - acc) - acc"),
        ("|acc| (acc - 1.0) - acc", "|acc| acc - 1.0 - acc"),
        ("|acc| -(-acc)", "|acc| --acc"),
        ("|acc| -(acc * acc)", "|acc| -(acc * acc)"),
        ("|acc| 1_000e-3 * acc", "|acc| 1.0 * acc"),
        ("|acc| 0.1 * acc", "|acc| 0.1 * acc"),
        ("|acc| max(acc, 0.0,)", "|acc| max(acc, 0.0)"),
        ("|acc|(max(acc,0.0),acc*2.)", "|acc| (max(acc, 0.0), acc * 2.0)"),
        ("|acc|{let t=-acc;(t,acc,)}", "|acc| { let t = -acc; (t, acc) }"),
        (
            "|acc| if !(acc < 0.0) || row == col { acc } else { if acc > 1. { 1.0 } else { 0.0 } }",
            "|acc| if !(acc < 0.0) || row == col { acc } else if acc > 1.0 { 1.0 } else { 0.0 }",
        ),
        (
            "|acc| {let t=acc*2.0;let u=t+1.0;(if t>u{t}else{let v=u;v*v})+1.0}",
            "|acc| { let t = acc * 2.0; let u = t + 1.0; (if t > u { t } else \
             { let v = u; v * v }) + 1.0 }",
        ),
    ] {
        let read = Closure::parse(&EPILOGUE, text).map(|closure| closure.to_string());
        assert_eq!(read.as_deref(), Ok(canonical), "{text}");
    }
}

#[test]
fn the_text_of_a_function_says_its_bound() {
    let bounded = Function::ALL.iter().map(|f| f.info()).filter_map(|f| Some((f, f.bound?)));
    for (FunctionInfo { name, operands, .. }, bound) in bounded.filter(|(f, _)| f.name != "rsqrt") {
        let line = format!("epilogue: |acc| {name}({})", vec!["acc"; operands.len()].join(", "));
        let program = line.parse().and_then(|plan: SgemmPlan| plan.program());
        let source = cuda::source(program.expect("a sound line").preferred());
        let (before, _) = source.split_once(&format!("float {name}_f32(")).expect(name);
        let comment = before.rsplit("\n\n").next().unwrap_or_default();
        assert!(comment.contains(&format!("within {bound}")), "{comment}");
    }
}

#[test]
fn positions_are_no_part_of_a_value() {
    let parse = |text| Closure::parse(&EPILOGUE, text).expect("a sound expression");
    let (a, b) = (parse("|acc| acc + 1.0"), parse("|acc| (acc) + (1.0)"));
    assert_eq!(a, b);
    assert_ne!(a, parse("|acc| acc + 2.0"));
    let set: std::collections::HashSet<_> = [a, b].into_iter().collect();
    assert_eq!(set.len(), 1);
}
