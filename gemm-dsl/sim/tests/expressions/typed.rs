//! Expressions of all types agree with the evaluator on the simulator. Parsing their text returns
//! the same expression.

use super::evaluator::{Value, value};
use super::meaning::inputs;
use super::typings;
use gemm_dsl::expr::random;
use gemm_dsl::expr::random::Random;
use gemm_dsl::expr::{
    Closure, ExprScope, FINISH, FOLD, Float, IDENTITY, MAP, Type, Typing, ValueType,
};
use gemm_dsl::ir::{
    Access, Elem, Expr, Geometry, KernelBuilder, Operand, Special, Ty, VerifiedKernel,
};
use gemm_sim::{Buffer, launch};
use proptest::prelude::*;

const THREADS: usize = 128;

/// Element type in which a value is stored. A boolean is 0 or 1.
fn stored(ty: Type) -> Elem {
    match ty.ty() {
        Ty::Scalar(elem) => elem,
        _ => Elem::I64,
    }
}

/// Kernel that evaluates the closure on the elements of all arrays at each index.
fn kernel(closure: &Closure, typing: &Typing, len: usize) -> VerifiedKernel {
    let mut k = KernelBuilder::new("each");
    let types: Vec<Type> = (0..closure.params().len()).map(|n| typing.param(n).ty()).collect();
    let inputs = types.iter().enumerate().map(|(n, ty)| {
        let (name, elem) = (format!("in_{n}"), stored(*ty));
        (k.global(&name, elem, Operand::Input(n)), *ty)
    });
    let inputs: Vec<_> = inputs.collect();
    let output = k.global("out", stored(typing.result), Operand::Output(0));
    for buffer in inputs.iter().map(|(buffer, _)| *buffer).chain([output]) {
        k.shape(buffer, [Expr::U64(len as u64)], [1.into()]);
    }
    let grid = [Expr::U64(len.div_ceil(THREADS) as u64), Expr::U64(1), Expr::U64(1)];
    k.geometry(Geometry { block: (THREADS as u32, 1), grid, blocks_per_sm: Some(1) });
    let lowered = closure.lower_as(&mut k, "computed", typing);
    let i = k.let_("i", Expr::from(Special::BlockX) * THREADS as i32 + Special::ThreadX);
    k.if_(Expr::from(i).lt(len as i32), |k| {
        let params = inputs.iter().map(|(buffer, ty)| {
            let element = Access::new(*buffer, [i.into()]).load();
            if *ty == Type::Bool { element.equals(Expr::I64(1)) } else { element }
        });
        let found = lowered.apply(params, |name| match name {
            "i" => i.into(),
            "len" => Expr::U64(len as u64),
            other => panic!("{other}"),
        });
        let found = match typing.result {
            Type::Bool => found.select(Expr::I64(1), Expr::I64(0)),
            _ => found,
        };
        k.store(Access::new(output, [i.into()]), found);
    });
    k.finish().unwrap_or_else(|e| panic!("{closure} of {typing:?}: {e}"))
}

/// Values of the type: error-prone ones, then random ones.
fn values(random: &mut Random, of: ValueType, len: usize) -> Vec<Value> {
    let single = inputs(random.bits(), len);
    let specials =
        [0.0, -0.0, 1.0, 0.5, 1e-310, f64::MIN_POSITIVE, f64::MAX, f64::INFINITY, f64::NAN];
    let mut value = |n: usize| {
        let bits = random.bits();
        match of {
            ValueType::Float(Float::F32) => Value::F32(single[bits as usize % single.len()]),
            ValueType::Float(Float::F64) => Value::F64(match bits % 3 {
                0 => specials[n % specials.len()] * if bits & 8 == 0 { 1.0 } else { -1.0 },
                1 => f64::from_bits(bits),
                _ => (bits as i64 >> 20) as f64 * 1e-9,
            }),
            ValueType::Int { least, most } => {
                let any = least + (i128::from(bits) % (most - least + 1));
                let picked = [least, most, 0.clamp(least, most), any, any][bits as usize % 5];
                Value::Int(picked as i64)
            }
            ValueType::Bool => Value::Bool(bits & 1 == 0),
        }
    };
    (0..len).map(&mut value).collect()
}

fn bits(value: Value) -> u64 {
    match value {
        Value::F32(value) => value.to_bits().into(),
        // The language does not specify the payload of a NaN.
        Value::F64(value) if value.is_nan() => f64::NAN.to_bits(),
        Value::F64(value) => value.to_bits(),
        Value::Int(value) => value as u64,
        Value::Bool(value) => value.into(),
    }
}

/// Compares the lowered closure with the evaluator.
#[track_caller]
fn agrees(closure: &Closure, typing: &Typing, seed: u64, len: usize) {
    let mut random = Random(seed);
    let types: Vec<ValueType> = (0..closure.params().len()).map(|n| typing.param(n)).collect();
    let arrays: Vec<Vec<Value>> = types.iter().map(|of| values(&mut random, *of, len)).collect();
    let buffers = types.iter().zip(&arrays).map(|(of, values)| {
        Buffer::from_bits(stored(of.ty()), values.iter().map(|value| bits(*value)))
    });
    let output = Buffer::zeros_of(stored(typing.result), len);
    let buffers: Vec<Buffer> = buffers.chain([output]).collect();
    launch(&kernel(closure, typing, len), &buffers, &[])
        .unwrap_or_else(|e| panic!("{closure} of {typing:?}: {e}"));
    for (i, found) in buffers[types.len()].bits().into_iter().enumerate() {
        let reserved = [("i", Value::Int(i as i64)), ("len", Value::Int(len as i64))];
        let named = closure.params().iter().zip(&arrays);
        let named = named.map(|(param, values)| (param.name.as_str(), values[i]));
        let expected = value(closure, typing.float, reserved.into_iter().chain(named));
        let found = match expected {
            Value::F64(_) => bits(Value::F64(f64::from_bits(found))),
            _ => found,
        };
        assert_eq!(found, bits(expected), "{closure} of {typing:?} at {i}: {expected:?}");
        if let (Value::Int(value), Some((least, most))) = (expected, closure.range(typing)) {
            assert!((least..=most).contains(&value.into()), "{closure}: {value}");
        }
    }
}

proptest! {
    #![proptest_config(gemm_cases::cases(600))]

    #[test]
    fn an_expression_of_any_types_means_what_it_says(
        seed: u64,
        depth in 0..6u32,
        (env, typing) in typings(),
    ) {
        let closure = random::closure_of(env, &typing, seed, depth);
        agrees(&closure, &typing, seed, 150);
    }
}

fn typing(float: Float, values: &[ValueType], result: Type) -> Typing {
    Typing { float, values: values.to_vec(), result, more: Vec::new() }
}

/// Typical closures of reductions.
#[test]
fn reduction_closures_evaluate_correctly() {
    let (single, double) = (ValueType::Float(Float::F32), ValueType::Float(Float::F64));
    let byte = ValueType::from_elem(Elem::I8).expect("an integer of 64 bits");
    let long = ValueType::from_elem(Elem::I64).expect("an integer of 64 bits");
    let word = ValueType::from_elem(Elem::U32).expect("an integer of 64 bits");
    let cases: [(&'static ExprScope, &str, Typing); 14] = [
        (&MAP, "|x, y| x * y", typing(Float::F64, &[double, double], Type::F64)),
        (&MAP, "|x| abs(x)", typing(Float::F64, &[double], Type::F64)),
        (&MAP, "|x| if i % 2 == 0 { x } else { 0.0 }", typing(Float::F64, &[double], Type::F64)),
        (&MAP, "|x| f64(x) * 0.1", typing(Float::F64, &[single], Type::F64)),
        (&MAP, "|x| f64(exp(f32(x)))", typing(Float::F64, &[double], Type::F64)),
        (&MAP, "|x| relu(x) + rsqrt(x)", typing(Float::F64, &[double], Type::F64)),
        (&MAP, "|x| x * x", typing(Float::F32, &[byte], Type::Int)),
        (&MAP, "|x| x > 3 && i < len / 2", typing(Float::F32, &[word], Type::Bool)),
        (&MAP, "|x| f32(x) / f32(len)", typing(Float::F32, &[long], Type::F32)),
        (
            &MAP,
            "|x, keep| if keep { x } else { 0 }",
            typing(Float::F32, &[long, ValueType::Bool], Type::Int),
        ),
        (&FINISH, "|s, len| sqrt(s / len)", Typing::F64),
        (&FINISH, "|s| -s", Typing::F32),
        (
            &FOLD,
            "|a, b| clamp(a, -9, 9) - max(b, 1) % 7",
            typing(Float::F32, &[word, word], Type::Int),
        ),
        (&IDENTITY, "-1.0 / 0.0", Typing::F64),
    ];
    for (env, text, typing) in cases {
        let closure = Closure::parse(env, text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(closure.check(&typing), [], "{text}");
        agrees(&closure, &typing, 7, 300);
    }
}

/// The generated function has the types and the name given to the lowering.
#[test]
fn a_function_has_the_types_of_the_typing() {
    let types = [
        ValueType::Float(Float::F64),
        ValueType::from_elem(Elem::I16).expect("it fits"),
        ValueType::Bool,
    ];
    let typing = typing(Float::F64, &types, Type::F64);
    let closure =
        Closure::parse(&MAP, "|x, count, b| if b { fma(x, 0.1, f64(count)) } else { f64(i) }");
    let source = gemm_dsl::cuda::source(&kernel(&closure.expect("sound"), &typing, 32));
    let head = "double computed(double x, long long count, bool b, long long i)";
    assert!(source.contains(head), "{source}");
    assert!(source.contains("b ? fma(x, 0.1, (double)count) : (double)i"), "{source}");
}

/// A closure of the wrong types, or of none, is an error of the kernel and does not panic.
#[test]
fn invalid_closures_are_not_lowered() {
    for (text, typing) in [
        ("|_x| exp(i)", Typing::F32),
        ("|x| exp(x)", Typing::F64),
        ("|x| x", typing(Float::F32, &[ValueType::Bool], Type::Int)),
    ] {
        let closure = Closure::parse(&MAP, text).unwrap_or_else(|e| panic!("{e}"));
        let mut k = KernelBuilder::new("none");
        closure.lower_as(&mut k, "map", &typing);
        let fault = k.finish().expect_err("a mistake").to_string();
        assert!(fault.contains(closure.check(&typing)[0].message()), "{fault}");
        let mut k = KernelBuilder::new("none");
        closure.lower(&mut k);
        let fault = k.finish().expect_err("a mistake").to_string();
        assert!(fault.contains("`map` has no types of its own"), "{fault}");
    }
}
