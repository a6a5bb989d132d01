//! Printing of device functions and of their calls, for random epilogues and for every function of
//! the language.

use crate::c::{self, Environment, Unit, Value};
use crate::ir;
use gemm_dsl::expr::{Closure, EPILOGUE, Function, Signature, random};
use gemm_dsl::ir::{Expr, Stmt, Ty, Var, VerifiedKernel};
use gemm_dsl::spec::{Datum, SgemmSpec, Spec};
use gemm_dsl::{Plan, cuda};
use gemm_oracle::random::Random;
use proptest::prelude::*;

/// Kernel without a tile. Its sum is a variable, so that the parser supports all of the last
/// statement.
fn kernel(epilogue: Closure) -> VerifiedKernel {
    let mut spec = SgemmSpec::default();
    assert!(spec.set("epilogue", &Datum::Closure(epilogue)));
    spec.plan().and_then(|plan| plan.program()).expect("a sound spec").preferred().clone()
}

/// Random value of the type. It is often a special value.
fn any(random: &mut Random, ty: Ty) -> Value {
    let bits = random.bits();
    let special =
        [0.0, 1.0, 0.63, 88.8, 1e-40, f32::MIN_POSITIVE, f32::MAX, f32::INFINITY, f32::NAN];
    match ty {
        Ty::F32 => Value::F32(match bits >> 62 {
            0 => bits as u32,
            1 => special[(bits >> 32) as usize % special.len()].to_bits() | (bits as u32 & 1) << 31,
            _ => (random.unit() * 8.0).to_bits(),
        }),
        Ty::U32 => Value::U32(bits as u32),
        // Extents and positions.
        Ty::I64 => Value::I64((bits >> (33 + bits % 31)) as i64),
        Ty::I32 => Value::I32((bits >> (33 + bits % 31)) as i32),
        other => unreachable!("no function takes {other}"),
    }
}

/// Compares each function of the kernel's source, and the stored element, with the IR.
fn compare(kernel: &VerifiedKernel, seed: u64, rounds: usize) -> Result<(), String> {
    let mut random = Random::new(seed);
    let names: Vec<&str> = kernel.functions.iter().map(|f| f.name.as_str()).collect();
    let unit = Unit::parse(&cuda::source(kernel), &names)?;
    for function in &kernel.functions {
        for _ in 0..rounds {
            let any = |param: &Var| any(&mut random, param.ty);
            let args: Vec<Value> = function.params.iter().map(any).collect();
            let found = unit.call(&function.name, &args);
            let expected = ir::apply(kernel, function, &args).ok_or("no value");
            if found.as_ref() != Ok(&expected?) {
                return Err(format!("{}({args:?}) is {found:?}, not {expected:?}", function.name));
            }
        }
    }
    let stored = stored(&kernel.body).ok_or("nothing is stored")?;
    let Stmt::Store { value, .. } = stored else { return Err("no store".to_owned()) };
    let line = cuda::statement(kernel, stored);
    let text = line.split_once(" = ").and_then(|(_, value)| value.strip_suffix(';'));
    let tree = c::parse(text.ok_or("no assignment")?)?;
    for _ in 0..rounds {
        let names = ["acc", "M", "N", "K", "row", "col"];
        let known = names.into_iter().map(|name| {
            let ty = if name == "acc" { Ty::F32 } else { Ty::I32 };
            (name.to_owned(), any(&mut random, ty))
        });
        let known: Environment = known.collect();
        let found = tree.value(&known, &unit);
        let expected = ir::value(kernel, &known, value).ok_or("no value")?;
        if found.as_ref() != Ok(&expected) {
            return Err(format!("`{line}` of {known:?} is {found:?}, not {expected:?}"));
        }
    }
    Ok(())
}

/// Statement that stores the result of a function.
fn stored(body: &[Stmt]) -> Option<&Stmt> {
    body.iter().find_map(|stmt| match stmt {
        Stmt::Store { value: Expr::Apply(..), .. } => Some(stmt),
        Stmt::If { then, otherwise, .. } => stored(then).or_else(|| stored(otherwise)),
        Stmt::For(l) => stored(&l.body),
        _ => None,
    })
}

proptest! {
    #![proptest_config(gemm_cases::cases(400))]

    #[test]
    fn a_random_epilogue_is_printed_as_it_is_meant(seed: u64, depth in 0..6u32) {
        let closure = random::closure(&EPILOGUE, seed, depth);
        let text = closure.to_string();
        let differs = |e| TestCaseError::fail(format!("{text}\n{e}"));
        compare(&kernel(closure), seed, 4).map_err(differs)?;
    }
}

#[test]
fn every_function_is_printed_as_it_is_meant() {
    for function in EPILOGUE.functions().map(Function::info) {
        let args = match function.operands {
            ["integer"] => "row".to_owned(),
            operands => vec!["acc"; operands.len()].join(", "),
        };
        let call = format!("{}({args})", function.name);
        let text = match function.signature {
            Signature::Predicate => format!("|acc| if {call} {{ 1.0 }} else {{ acc }}"),
            _ => format!("|acc| 1.0 / acc - {call}"),
        };
        let closure = Closure::parse(&EPILOGUE, &text).unwrap_or_else(|e| panic!("{e}"));
        compare(&kernel(closure), 1, 500).unwrap_or_else(|e| panic!("{text}: {e}"));
    }
}
