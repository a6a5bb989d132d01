//! Semantics of an expression: the simulator agrees with an evaluator in Rust to the bit.

use super::evaluator::{Value, function, value};
use super::prototypes::pow as pow_prototype;
use gemm_dsl::expr::random;
use gemm_dsl::expr::random::Random;
use gemm_dsl::expr::{Closure, EPILOGUE, Float, Function, Signature, library};
use gemm_dsl::ir::{
    Access, BufferId, Elem, Expr, Geometry, KernelBuilder, Operand, Special, Stmt, VerifiedKernel,
};
use gemm_dsl::target::intrinsic::CANONICAL_NAN;
use gemm_sim::{Buffer, launch};
use proptest::prelude::*;

/// Threads of a block, and values of the reserved names at an element.
const THREADS: usize = 128;
const EXTENTS: [i32; 3] = [33, 129, 4097];

fn integer(name: &str, element: usize) -> i64 {
    match name {
        "m" => EXTENTS[0].into(),
        "n" => EXTENTS[1].into(),
        "k" => EXTENTS[2].into(),
        "row" => (element / THREADS) as i64,
        _ => (element % THREADS) as i64,
    }
}

/// Kernel that stores `closure(input[e])` for each element e.
fn kernel(closure: &Closure, len: usize) -> VerifiedKernel {
    of_each(len, |k| {
        let lowered = closure.lower(k);
        move |x, row, col| {
            lowered.apply([x], |name| match name {
                "m" => EXTENTS[0].into(),
                "n" => EXTENTS[1].into(),
                "k" => EXTENTS[2].into(),
                "row" => row.clone(),
                _ => col.clone(),
            })
        }
    })
}

/// Kernel that stores a function of each element, its row and its column.
fn of_each<F: Fn(Expr, Expr, Expr) -> Expr>(
    len: usize,
    function: impl FnOnce(&mut KernelBuilder) -> F,
) -> VerifiedKernel {
    let mut k = KernelBuilder::new("each");
    let input = k.global("in", Elem::F32, Operand::Input(0));
    let output = k.global("out", Elem::F32, Operand::Output(0));
    for buffer in [input, output] {
        k.shape(buffer, [Expr::U64(len as u64)], [1.into()]);
    }
    let grid = [Expr::U64(len.div_ceil(THREADS) as u64), Expr::U64(1), Expr::U64(1)];
    k.geometry(Geometry { block: (THREADS as u32, 1), grid, blocks_per_sm: Some(1) });
    let function = function(&mut k);
    let (row, col) = (Expr::from(Special::BlockX), Expr::from(Special::ThreadX));
    let e = k.let_("e", row.clone() * THREADS as i32 + col.clone());
    let x = Access::new(input, [e.into()]).load();
    let value = function(x, row, col);
    k.if_(Expr::from(e).lt(len as i32), |k| {
        k.push(Stmt::Store { target: Access::new(output, [e.into()]), value });
    });
    k.finish().expect("a sound closure makes a valid kernel")
}

fn simulated(closure: &Closure, input: &[f32]) -> Vec<f32> {
    launched(&kernel(closure, input.len()), input)
}

fn launched(kernel: &VerifiedKernel, input: &[f32]) -> Vec<f32> {
    let buffers = [Buffer::from_f32(input), Buffer::zeros(input.len())];
    launch(kernel, &buffers, &[]).expect("the kernel runs");
    buffers[1].to_vec()
}

/// Numbers at which functions tend to fail, and their neighbours.
fn specials() -> Vec<f32> {
    let anchors = [
        0.0,
        1e-45,
        1e-40,
        f32::MIN_POSITIVE,
        1e-30,
        2.98e-8,
        1e-8,
        0.000_244_140_63,
        0.3,
        1.0 / 3.0,
        0.41,
        0.5,
        0.63,
        2.0 / 3.0,
        0.785,
        0.93,
        1.0,
        4.0 / 3.0,
        1.5,
        std::f32::consts::FRAC_PI_2,
        2.0,
        2.5,
        3.0,
        4.0,
        10.0,
        11.0,
        14.5,
        16.0,
        20.0,
        30.0,
        64.0,
        88.0,
        88.72284,
        89.0,
        90.0,
        103.97,
        105.0,
        127.0,
        128.0,
        129.0,
        149.5,
        150.0,
        151.0,
        160.0,
        1e5,
        1e6,
        8_388_608.0,
        1e30,
        f32::MAX,
        f32::INFINITY,
    ];
    let around = |x: f32| (-3i64..=3).map(move |d| (i64::from(x.to_bits()) + d).max(0) as u32);
    let bits = anchors.into_iter().flat_map(around).chain([0x7fc0_0000, 0x7fff_ffff, 0x7f80_0001]);
    bits.flat_map(|b| [b, b | 1 << 31]).map(f32::from_bits).collect()
}

pub(super) fn inputs(seed: u64, len: usize) -> Vec<f32> {
    let mut random = Random(seed);
    let any = |random: &mut Random| {
        let bits = random.bits();
        // Half of the numbers have a common magnitude.
        if bits >> 63 == 0 { f32::from_bits(bits as u32) } else { (bits as i32) as f32 * 1e-8 }
    };
    specials().into_iter().chain((0..len).map(|_| any(&mut random))).collect()
}

#[track_caller]
fn same(text: &str, input: &[f32], found: &[f32], expected: impl Fn(usize, f32) -> f32) {
    for (e, (x, found)) in input.iter().zip(found).enumerate() {
        let expected = expected(e, *x);
        let bits = (found.to_bits(), expected.to_bits());
        assert_eq!(
            bits.0,
            bits.1,
            "{text} at {x:e} ({:08x}): {found:e}, not {expected:e}",
            x.to_bits()
        );
    }
}

#[test]
fn the_functions_are_their_prototypes() {
    let input = inputs(1, 1 << 18);
    let of_one =
        |f: &&Function| f.info().operands == ["x"] && f.info().signature != Signature::Predicate;
    for f in Function::ALL.iter().filter(of_one) {
        let text = format!("|acc| {}(acc)", f.name());
        let closure = Closure::parse(&EPILOGUE, &text).expect("a sound expression");
        same(&text, &input, &simulated(&closure, &input), |_, x| function(*f)(x));
    }
}

/// Results at special values, as the definitions of the functions demand them.
#[test]
fn functions_have_their_limits_and_signs() {
    const INF: f32 = f32::INFINITY;
    const NAN: f32 = f32::from_bits(CANONICAL_NAN);
    const TINY: f32 = 1e-45;
    let cases: [(&str, &[(f32, f32)]); 12] = [
        ("log1p(acc)", &[(-0.0, -0.0), (TINY, TINY), (-1.0, -INF), (-1.5, NAN), (INF, INF)]),
        ("expm1(acc)", &[(-0.0, -0.0), (-TINY, -TINY), (-INF, -1.0), (-40.0, -1.0), (INF, INF)]),
        ("expm1(acc)", &[(88.8, INF), (-1e30, -1.0)]),
        ("softplus(acc)", &[(-INF, 0.0), (INF, INF), (89.0, 89.0), (-1e30, 0.0), (3e38, 3e38)]),
        ("mish(acc)", &[(-0.0, -0.0), (-INF, -0.0), (INF, INF), (-1e30, -0.0), (3e38, 3e38)]),
        ("sin(acc)", &[(-0.0, -0.0), (TINY, TINY), (INF, NAN), (-INF, NAN)]),
        ("cos(acc)", &[(-0.0, 1.0), (TINY, 1.0), (INF, NAN), (-INF, NAN)]),
        ("erfc(acc)", &[(-INF, 2.0), (INF, 0.0), (0.0, 1.0), (-4.0, 2.0), (11.0, 0.0)]),
        ("ceil(acc)", &[(-0.5, -0.0), (0.5, 1.0), (-INF, -INF), (TINY, 1.0)]),
        ("trunc(acc)", &[(-0.5, -0.0), (-1.5, -1.0), (1.5, 1.0), (INF, INF)]),
        ("sign(acc)", &[(-0.0, -0.0), (TINY, 1.0), (-INF, -1.0), (0.0, 0.0)]),
        ("if isnan(acc) { 1.0 } else { 0.0 }", &[(INF, 0.0), (-0.0, 0.0), (NAN, 1.0)]),
    ];
    for (body, pairs) in cases {
        let closure = Closure::parse(&EPILOGUE, &format!("|acc| {body}")).expect("sound");
        let not_a_number = if body.starts_with("if") { 1.0 } else { NAN };
        let pairs: Vec<_> = pairs.iter().copied().chain([(NAN, not_a_number)]).collect();
        let input: Vec<f32> = pairs.iter().map(|(x, _)| *x).collect();
        same(body, &input, &simulated(&closure, &input), |e, _| pairs[e].1);
    }
}

/// All pairs of special values, and random pairs: NaN, infinities and signs are those of C, and the
/// error is within the bound.
#[test]
fn powers_are_those_of_the_standard() {
    let values = specials();
    let pairs = values.iter().flat_map(|x| values.iter().map(|y| (*x, *y)));
    let mut random = Random(11);
    let any = |_| {
        let bits = random.bits();
        (f32::from_bits(bits as u32), ((bits >> 32) as f32 / 1e8 - 21.5) * 0.5)
    };
    let pairs: Vec<(f32, f32)> = pairs.chain((0..1 << 16).map(any)).collect();
    let mut k = KernelBuilder::new("powers");
    let arrays = [Operand::Input(0), Operand::Input(1), Operand::Output(0)];
    let arrays = ["x", "y", "out"].into_iter().zip(arrays).map(|(name, operand)| {
        let array = k.global(name, Elem::F32, operand);
        k.shape(array, [Expr::U64(pairs.len() as u64)], [1.into()]);
        array
    });
    let [x, y, out]: [BufferId; 3] = arrays.collect::<Vec<_>>().try_into().expect("three");
    let grid = [Expr::U64(pairs.len().div_ceil(THREADS) as u64), Expr::U64(1), Expr::U64(1)];
    k.geometry(Geometry { block: (THREADS as u32, 1), grid, blocks_per_sm: Some(1) });
    let closure = Closure::parse(&EPILOGUE, "|acc, y| pow(acc, y)").expect("sound");
    let pow = closure.lower(&mut k);
    let e = k.let_("e", Expr::from(Special::BlockX) * THREADS as i32 + Special::ThreadX);
    k.if_(Expr::from(e).lt(pairs.len() as i32), |k| {
        let arguments = [x, y].map(|array| Access::new(array, [e.into()]).load());
        let value = pow.apply(arguments, |name| panic!("{name}"));
        k.store(Access::new(out, [e.into()]), value);
    });
    let kernel = k.finish().expect("a valid kernel");
    let (xs, ys): (Vec<f32>, Vec<f32>) = pairs.iter().copied().unzip();
    let buffers = [Buffer::from_f32(&xs), Buffer::from_f32(&ys), Buffer::zeros(pairs.len())];
    launch(&kernel, &buffers, &[]).expect("the kernel runs");
    let bound = Function::Pow.info().bound.expect("it is computed").ulp;
    for ((x, y), found) in pairs.into_iter().zip(buffers[2].to_vec()) {
        let exact = f64::from(x).powf(y.into());
        let nearest = exact as f32;
        let ulp = f64::from(nearest.abs().next_up() - nearest.abs()).max(2f64.powi(-149));
        let near = (f64::from(found) - exact).abs() <= bound * ulp;
        let same_sign = found.is_sign_negative() == exact.is_sign_negative();
        let sound = match exact.is_nan() {
            true => found.to_bits() == CANONICAL_NAN,
            false => same_sign && (found == nearest || near),
        };
        assert!(sound, "pow({x:e}, {y:e}) is {found:e}, not {exact:e}");
        assert_eq!(found.to_bits(), pow_prototype(x, y).to_bits(), "pow({x:e}, {y:e})");
    }
}

#[test]
fn a_falling_exponential_is_as_near_as_it_says() {
    let mut random = Random(3);
    let any = |random: &mut Random| -(random.bits() as f32 / u64::MAX as f32 * 12.0 - 7.5).exp();
    let input: Vec<f32> = (0..1 << 16)
        .map(|_| any(&mut random))
        .chain([0.0, -0.0, -1e-45, -87.0, -87.1, -1e30, f32::NEG_INFINITY, f32::NAN])
        .collect();
    let kernel = of_each(input.len(), |k| {
        let exp = library::falling_exponential(k);
        move |x, _, _| exp.apply([x])
    });
    for (x, found) in input.iter().zip(launched(&kernel, &input)) {
        let expected = f64::from(x.max(-87.0)).exp();
        let off = (f64::from(found) / expected - 1.0).abs();
        let bound = (1.8 + 0.14 * f64::from(x.abs().min(87.0))) * 1e-7;
        assert!(off <= bound || x.is_nan() && found.is_finite(), "{x:e}: {found:e}, {off:e} off");
        assert!(*x != 0.0 || found == 1.0, "{x}: {found}");
    }
}

fn evaluated(closure: &Closure, element: usize, x: f32) -> f32 {
    let reserved =
        EPILOGUE.integers.iter().map(|(name, _)| (*name, Value::Int(integer(name, element))));
    let params = closure.params().iter().map(|param| (param.name.as_str(), Value::F32(x)));
    match value(closure, Float::F32, reserved.chain(params)) {
        Value::F32(value) => value,
        wrong => panic!("{wrong:?}"),
    }
}

proptest! {
    #![proptest_config(gemm_cases::cases(400))]

    #[test]
    fn an_expression_means_what_it_says(seed: u64, depth in 0..6u32) {
        let closure = random::closure(&EPILOGUE, seed, depth);
        let input = inputs(seed, 100);
        let found = simulated(&closure, &input);
        same(&closure.to_string(), &input, &found, |e, x| evaluated(&closure, e, x));
    }
}

#[test]
fn functions_and_operators_of_integers_mean_what_they_say() {
    let input = vec![0.5; 3 * THREADS];
    for integer in [
        "abs(col - 64)",
        "abs(64 - col)",
        "min(col - 64, row - 1)",
        "max(col - 64, row - 1)",
        "clamp(col - 64, -3, 5)",
        "clamp(col - 64, row, 1)",
        "(col - 64) / 7",
        "(col - 64) % 7",
        "(64 - col) / (-7)",
        "(64 - col) % (-7)",
        "-col * 3 + row",
        "if col % 2 == row { col } else { -col }",
    ] {
        let text = format!("|acc| acc * f32({integer})");
        let closure = Closure::parse(&EPILOGUE, &text).expect("a sound expression");
        let found = simulated(&closure, &input);
        same(&text, &input, &found, |e, x| evaluated(&closure, e, x));
    }
}

/// The generated source defines a function for each library function that a closure calls.
#[test]
fn a_definition_hides_no_function_of_the_text() {
    let input = inputs(5, 100);
    for function in ["exp", "log", "tanh", "gelu", "sigmoid"] {
        let text = format!("|x| {{ let {function}_f32 = x * 0.5; {function}({function}_f32) }}");
        let closure = Closure::parse(&EPILOGUE, &text).expect("a sound expression");
        let source = gemm_dsl::cuda::source(&kernel(&closure, input.len()));
        let called = format!("{function}_f32(");
        assert!(source.contains(&called), "{source}");
        let defined = source.contains(&format!("float {function}_f32 ="));
        assert!(!defined, "{source}");
        let found = simulated(&closure, &input);
        same(&text, &input, &found, |e, x| evaluated(&closure, e, x));
    }
}
