//! `sgemm` with an epilogue stores the expression of the sums that it stores without one.

use super::{POISON, Stored, call, extent, factor};
use gemm_dsl::expr::{EPILOGUE, random};
use gemm_dsl::spec::{Along, SgemmSpec};
use gemm_oracle::beside::Beside;
use gemm_oracle::epilogue::stored;
use gemm_oracle::product::Size;
use gemm_oracle::random::Random;
use gemm_runtime::{
    Buffer, ByName, Device, Epilogue, Error, M, MN, MatrixMut, MatrixRef, N, SgemmCall, epilogue,
    sgemm,
};
use libtest_mimic::Trial;
use proptest::prelude::*;

/// Random numbers from −1 to 1, some of them replaced by values that are not ordinary numbers.
fn odd(seed: u64) -> impl FnMut() -> f32 {
    let mut random = Random::new(seed);
    move || match random.bits() % 24 {
        0 => f32::NAN,
        1 => f32::INFINITY,
        2 => f32::NEG_INFINITY,
        3 => -0.0,
        4 => f32::MIN_POSITIVE / 4.0,
        _ => random.unit(),
    }
}

/// Operand of an epilogue, as elements with memory of no one else around them, or as a matrix.
enum Given {
    Number(f32),
    /// Vector, with the offset of its first element in the memory.
    Vector(Vec<f32>, usize),
    /// Vector with an element for each GEMM of a batch.
    Items(Vec<f32>, usize),
    Matrix(Stored),
    /// Matrix of which each row of a row-major C, or each column of a column-major C, has the same
    /// elements.
    Repeated(Stored),
    /// Matrix with a row for each GEMM of a batch.
    Lines(Stored),
}

impl Given {
    /// Uploads the operand with poisoned memory around it.
    fn upload(&self, device: &Device) -> Buffer {
        let memory = match self {
            Self::Number(_) => vec![POISON],
            Self::Vector(values, offset) | Self::Items(values, offset) => {
                let around = |count| vec![POISON; count];
                [around(*offset), values.clone(), around(3)].concat()
            }
            Self::Matrix(stored) | Self::Repeated(stored) | Self::Lines(stored) => {
                stored.memory.clone()
            }
        };
        device.upload(&memory).expect("room")
    }

    /// Packed elements for one GEMM of a batch.
    fn packed(&self, product: usize, Size { m, n, .. }: Size) -> Vec<f32> {
        match self {
            Self::Number(number) => vec![*number],
            Self::Vector(values, _) => values.clone(),
            Self::Items(values, _) => vec![values[product]],
            Self::Matrix(stored) => {
                (0..m * n).map(|at| stored.element(product, at / n, at % n)).collect()
            }
            Self::Repeated(stored) if stored.in_columns => {
                (0..m * n).map(|at| stored.element(product, at / n, 0)).collect()
            }
            Self::Repeated(stored) => {
                (0..m * n).map(|at| stored.element(product, 0, at % n)).collect()
            }
            Self::Lines(stored) => {
                (0..stored.cols).map(|col| stored.element(0, product, col)).collect()
            }
        }
    }

    /// View of an operand that is a matrix.
    fn matrix<'m>(&self, memory: &'m Buffer, Size { m, n, .. }: Size) -> Option<MatrixRef<'m>> {
        match self {
            Self::Matrix(stored) | Self::Lines(stored) => Some(stored.view(memory)),
            Self::Repeated(stored) => {
                let line = stored.view(memory);
                Some(match stored.in_columns {
                    true => line.t().broadcast_rows(n).expect("one column").t(),
                    false => line.broadcast_rows(m).expect("one row"),
                })
            }
            Self::Number(_) | Self::Vector(..) | Self::Items(..) => None,
        }
    }
}

fn scaled(call: SgemmCall<'_>, factors: Option<(f32, f32)>) -> SgemmCall<'_> {
    match factors {
        Some((alpha, beta)) => call.alpha(alpha).beta(beta),
        None => call,
    }
}

proptest! {
    #![proptest_config(gemm_cases::cases(256))]

    /// For any expression, layout, padding, offset, batch and list, the stored values have the bits
    /// of the expression of the values that the same rule stores without the epilogue.
    fn the_expression_of_the_rules_sums_is_stored(
        (m, n, k) in (extent(), extent(), extent()),
        factors in proptest::option::of((factor(), factor())),
        lies in [
            (any::<bool>(), 0..5usize),
            (any::<bool>(), 0..5usize),
            (any::<bool>(), 0..5usize),
        ],
        batch in proptest::option::of(0..4usize),
        listed: bool,
        (shape_of_expression, depth) in (any::<u64>(), 0..4u32),
        seed: u64,
    ) {
        let size = Size { m, n, k };
        let mut random = Random::new(seed);
        let mut next = odd(random.bits());
        let a = Stored::new((m, k), lies[0].0, lies[0].1, batch, &mut next);
        let b = Stored::new((k, n), lies[1].0, lies[1].1, batch, &mut next);
        let c = Stored::new((m, n), lies[2].0, lies[2].1, batch, &mut next);
        let grow = if batch.is_some() { random::of_batch } else { random::with_operands };
        let closure = grow(&EPILOGUE, shape_of_expression, depth, 3);
        let epilogue: Epilogue<ByName> = closure.to_string().parse().expect("sound");
        let expression = epilogue.expression().clone();
        let given: Vec<Given> = expression.operands().iter().map(|operand| match operand.along {
            Along::Nothing => Given::Number(next()),
            Along::N => Given::Vector((0..n).map(|_| next()).collect(), random.bits() as usize % 5),
            Along::M => Given::Vector((0..m).map(|_| next()).collect(), random.bits() as usize % 5),
            Along::Batch => {
                let items = (0..batch.expect("of a batch")).map(|_| next()).collect();
                Given::Items(items, random.bits() as usize % 5)
            }
            along @ (Along::BatchN | Along::BatchM) => {
                let line = if along == Along::BatchN { n } else { m };
                let (count, padding) = (batch.expect("of a batch"), random.bits() as usize % 5);
                Given::Lines(Stored::new((count, line), false, padding, None, &mut next))
            }
            Along::Mn if m > 1 && n > 1 && random.bits().is_multiple_of(3) => {
                let line = if c.in_columns { (m, 1) } else { (1, n) };
                let count = batch.filter(|_| random.bits().is_multiple_of(2));
                Given::Repeated(Stored::new(line, c.in_columns, 2, count, &mut next))
            }
            Along::Mn | Along::Pairs => {
                // A single row or column of C has the layout that its padding gives it.
                let is_line = m == 1 || n == 1;
                let padding = if is_line { lies[2].1 } else { random.bits() as usize % 5 };
                let count = batch.filter(|_| random.bits().is_multiple_of(2));
                Given::Matrix(Stored::new((m, n), c.in_columns, padding, count, &mut next))
            }
        }).collect();

        let device = Device::simulator();
        let upload = |stored: &Stored| device.upload(&stored.memory).expect("room");
        let (a_memory, b_memory) = (upload(&a), upload(&b));
        let memories: Vec<Buffer> = given.iter().map(|given| given.upload(&device)).collect();
        let vectors: Vec<_> = given.iter().zip(&memories).map(|(given, memory)| match given {
            Given::Vector(values, offset) | Given::Items(values, offset) => {
                memory.slice(*offset..*offset + values.len()).expect("inside")
            }
            _ => memory.slice(..0).expect("inside"),
        }).collect();
        let matrices: Vec<Option<MatrixRef<'_>>> =
            given.iter().zip(&memories).map(|(given, memory)| given.matrix(memory, size)).collect();

        let mut plain_memory = upload(&c);
        let memory = (&a_memory, &b_memory, &mut plain_memory);
        let (plain, launched) = call(&device, [&a, &b, &c], memory, listed, |call| {
            let call = scaled(call, factors);
            (call.choice(&device), call.run(&device))
        });
        let plain = plain.expect("views that fit");
        launched.map_err(|error| TestCaseError::fail(error.to_string()))?;
        let mut c_memory = upload(&c);
        let memory = (&a_memory, &b_memory, &mut c_memory);
        let (choice, launched) = call(&device, [&a, &b, &c], memory, listed, |call| {
            let mut call = scaled(call, factors).epilogue(epilogue.clone());
            for (n, operand) in expression.operands().iter().enumerate() {
                call = match (&given[n], &matrices[n]) {
                    (Given::Number(number), _) => call.operand(&operand.name, *number),
                    (_, Some(matrix)) => call.operand(&operand.name, matrix),
                    (_, None) => call.operand(&operand.name, &vectors[n]),
                };
            }
            (call.choice(&device), call.run(&device))
        });
        let choice = choice.expect("views that fit");
        launched.map_err(|error| TestCaseError::fail(format!("{epilogue}: {error}")))?;

        // The same rule, with the epilogue and, if an operand is padded, `pitched`.
        prop_assert_eq!(choice.rule, plain.rule);
        let parsed = |line: &str| line.parse::<SgemmSpec>().expect("printed");
        let (mut with, without) = (parsed(&choice.spec), parsed(&plain.spec));
        let transposed = [expression.clone(), expression.transposed()];
        prop_assert!(transposed.contains(with.epilogue.as_ref().expect("asked")));
        prop_assert!(with.pitched >= without.pitched);
        with.epilogue = None;
        let pitched = with.pitched;
        prop_assert_eq!(with, without.pitched(pitched));

        let sums = device.download(&plain_memory).expect("ours");
        let found = device.download(&c_memory).expect("ours");
        let mut expected = c.memory.clone();
        for product in 0..batch.unwrap_or(1) {
            let places: Vec<usize> =
                (0..m * n).map(|at| c.at(product, at / n, at % n)).collect();
            let values = given.iter().map(|given| given.packed(product, size));
            let beside = Beside {
                operands: expression.operands().into_iter().zip(values).collect(),
                c: Some(places.iter().map(|at| c.memory[*at]).collect()),
            };
            let sums: Vec<_> = places.iter().map(|at| sums[*at]).enumerate().collect();
            let spec = SgemmSpec::default().epilogue(expression.clone());
            let values = stored(&spec, &sums, size, &beside).expect("a sound expression");
            for (at, value) in places.into_iter().zip(values) {
                expected[at] = value;
            }
        }
        let differs = found.iter().zip(&expected).position(|(f, e)| f.to_bits() != e.to_bits());
        if let Some(at) = differs {
            let (found, expected) = (found[at], expected[at]);
            let at = format!("element {at} of the memory of C");
            prop_assert!(false, "{epilogue}: {at} is {found}, not {expected}: {choice:?}");
        }
    }
}

const LAYER: Epilogue<(N, M, MN, f32)> = epilogue!(|acc, bias[n], scale[m], rest[m, n], slope| {
    let t = scale * acc + bias;
    rest + if col > row { slope * t } else { t }
});

/// Operands of a column-major C are told by the caller's extents.
fn operands_that_do_not_fit_are_told_by_the_callers_names() {
    let device = Device::simulator();
    let memory = device.alloc(64).expect("room");
    let view = |rows, cols| MatrixRef::new(&memory, rows, cols).expect("room");
    let vector = |len| memory.slice(..len).expect("inside");
    let launched = |in_columns: bool, by_column: bool, operands: (usize, usize, (usize, usize))| {
        let mut room = device.alloc(12).expect("room");
        let (bias, scale, (rows, cols)) = operands;
        let (a, b) = (view(3, 2), view(2, 4));
        let shape = if in_columns { (4, 3) } else { (3, 4) };
        let mut c = MatrixMut::new(&mut room, shape.0, shape.1).expect("room");
        let mut c = if in_columns { c.t() } else { c };
        let rest = if by_column { view(cols, rows).t() } else { view(rows, cols) };
        let given = (&vector(bias), &vector(scale), &rest, 0.5);
        let launched = sgemm(&a, &b, &mut c).epilogue(LAYER).operands(given).run(&device);
        launched.map_err(|error| error.to_string())
    };
    for in_columns in [false, true] {
        let refused = |by_column, operands| launched(in_columns, by_column, operands);
        assert!(refused(in_columns, (4, 3, (3, 4))).is_ok());
        let error = refused(!in_columns, (4, 3, (3, 4))).expect_err("another layout than C");
        let remedy = if in_columns { "to a column-major matrix" } else { "to a row-major matrix" };
        assert!(error.contains("`rest`") && error.contains(remedy), "{error}");
        for (operands, parts) in [
            ((3, 3, (3, 4)), ["bias", "n = 4 are needed, one for each column of C"]),
            ((4, 2, (3, 4)), ["scale", "m = 3 are needed, one for each row of C"]),
            ((4, 3, (4, 3)), ["rest", "its shape 4 x 3 is not m x n = 3 x 4"]),
        ] {
            let error = refused(in_columns, operands).expect_err("too few elements");
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        }
        // Operands by name: a missing and an unknown one.
        let mut room = device.alloc(12).expect("room");
        let shape = if in_columns { (4, 3) } else { (3, 4) };
        let mut c = MatrixMut::new(&mut room, shape.0, shape.1).expect("room");
        let mut c = if in_columns { c.t() } else { c };
        let by_name: Epilogue<ByName> = LAYER.text().parse().expect("sound");
        let (a, b) = (view(3, 2), view(2, 4));
        let call = sgemm(&a, &b, &mut c).alpha(2.0).epilogue(by_name.clone());
        let unknown = call.operand("alpha", 1.0).run(&device);
        assert!(matches!(unknown, Err(Error::UnknownOperand { .. })), "{unknown:?}");
        let missing = sgemm(&a, &b, &mut c).epilogue(by_name).operand("slope", 1.0).run(&device);
        assert!(matches!(missing, Err(Error::MissingOperand { .. })), "{missing:?}");
    }
}

/// The value of the macro, of its text at run time and of a clone are equal, and launch the kernel
/// that a spec with the epilogue written by hand launches.
fn values_of_the_macro_and_of_text_are_equal() {
    let text = "|acc,bias[n],scale[m],rest[m,n],slope|{let t=scale*acc+bias;\
                rest+if col>row{slope*t}else{t}}";
    let parsed: Epilogue<(N, M, MN, f32)> = text.parse().expect("sound");
    assert_eq!((&parsed, parsed.expression()), (&LAYER, LAYER.expression()));
    assert_eq!(LAYER.to_string(), parsed.text());
    let wrong: Result<Epilogue<(N, MN, M, f32)>, Error> = text.parse();
    let error = wrong.expect_err("another order").to_string();
    assert!(error.contains("its type is `Epilogue<(N, M, MN, f32)>`"), "{error}");
    assert!("|acc, bias[n]| bias".parse::<Epilogue>().is_err(), "it does not read `acc`");
    let error = "|acc, a[n]| acc + a".parse::<Epilogue<(N,)>>().expect_err("a matrix").to_string();
    assert!(error.contains("`a` is a matrix of the GEMM") && error.contains("^^^^"), "{error}");

    let device = Device::simulator();
    let memory = device.upload(&(0..64_u8).map(f32::from).collect::<Vec<_>>()).expect("room");
    let view = |rows, cols| MatrixRef::new(&memory, rows, cols).expect("room");
    let (a, b, rest) = (view(3, 2), view(2, 4), view(3, 4));
    let mut results = Vec::new();
    for epilogue in [LAYER, parsed.clone(), parsed] {
        let mut c = device.alloc_matrix(3, 4).expect("room");
        let call = sgemm(&a, &b, &mut c).epilogue(epilogue);
        let call = call.operands((&memory, &memory, &rest, 0.5));
        let spec = call.spec(&device).expect("views that fit");
        let launched = call.run(&device).expect("views that fit");
        let ran = launched.steps().next().expect("a launch").kernel().to_owned();
        assert_eq!(ran, spec.kernel_name());
        results.push((spec.to_string(), device.download(&c).expect("ours")));
    }
    let [first, rest @ ..] = &results[..] else { unreachable!("three epilogues") };
    assert!(rest.iter().all(|result| result == first), "{results:?}");
    assert!(first.0.ends_with(&format!("epilogue: {LAYER}")), "{}", first.0);
}

pub fn trials() -> Vec<Trial> {
    simulated![
        the_expression_of_the_rules_sums_is_stored,
        operands_that_do_not_fit_are_told_by_the_callers_names,
        values_of_the_macro_and_of_text_are_equal,
    ]
}
