//! Epilogues that fold the rows of C.

use crate::trial;
use gemm_dsl::spec::SgemmSpec;
use gemm_oracle::product::Size;
use gemm_runtime::{
    ByName, Device, Epilogue, Error, MatrixMut, MatrixRef, N, OutM, Sgemm, SgemmKernel, epilogue,
    sgemm, sgemm_kernel,
};
use gemm_tests::product::{accepted, is_unaligned};
use gemm_tests::row_folds::{SPECS, run, with_epilogue};
use gemm_tests::simulator;
use gemm_tests::{arbitrary, bits};
use libtest_mimic::Trial;
use proptest::prelude::*;

proptest! {
    #![proptest_config(gemm_cases::cases(300))]

    fn results_of_rows_are_those_of_c(
        spec in arbitrary::sgemm(128),
        (m, n, k) in (0..40usize, 0..40usize, 0..20usize),
        count in proptest::option::weighted(0.3, 0..4usize),
        seed: u64,
    ) {
        let size = accepted(&spec, Size::new(m, n, k));
        if let Err(error) = run(&simulator(), &spec, size, count, seed) {
            prop_assert!(is_unaligned(&spec, &error), "`{spec}` at {size}: {error}");
        }
    }
}

/// Launches `|acc| (acc, …)` of two result expressions, with A a column of ones: each row of C
/// is `row`.
fn of_row(device: &Device, spec: &str, row: &[f32], of: [&str; 2]) -> Result<Vec<f32>, Error> {
    let [first, second] = of;
    let line = format!("{spec}, epilogue: |acc| (acc, {first}, {second})");
    let kernel = Sgemm::<(OutM, OutM)>::new(line.parse()?)?;
    let ones = device.upload_matrix(&[1.0; 3], 3, 1)?;
    let b = device.upload_matrix(row, 1, row.len())?;
    let mut c = device.alloc_matrix(3, row.len())?;
    let (mut one, mut other) = (device.alloc(3)?, device.alloc(3)?);
    kernel.call(device).operands((&mut one, &mut other)).launch(&ones, &b, &mut c)?;
    let (one, other) = (device.download(&one)?, device.download(&other)?);
    assert!(bits(&one) == bits(&[one[0]; 3]) && bits(&other) == bits(&[other[0]; 3]), "{line}");
    Ok(vec![one[0], other[0]])
}

/// Rows with NaN, infinities and zeros of either sign, and rows without elements.
fn odd_values_are_folded_as_in_row_kernel(device: &Device) -> Result<(), Error> {
    let inf = f32::INFINITY;
    let mut nan = vec![1.0; 70];
    nan[66] = f32::NAN;
    let mut infinite = vec![-1.0; 70];
    infinite[3] = inf;
    let specs = [
        "block: 8x8",
        "tile: 32x32x8, thread: 4x4, float4",
        "tile: 16x16x8, slices: 2",
        // The f32 fallback, which has another tile, computes C for NaN and infinities.
        "tile: 64x64x32, mma: wgmma, arith: bf16x6, float4",
        "tile: 128x128x32, mma: wgmma, arith: f16x3",
    ];
    for spec in specs {
        let found = of_row(device, spec, &nan, ["max(acc)", "sum(acc)"])?;
        assert!(found.iter().all(|value| value.is_nan()), "{spec}: {found:?}");
        let found = of_row(device, spec, &nan, ["min(acc)", "prod(acc)"])?;
        assert!(found.iter().all(|value| value.is_nan()), "{spec}: {found:?}");
        let found = of_row(device, spec, &infinite, ["max(acc)", "sum(acc)"])?;
        assert_eq!(found, [inf, inf], "{spec}");
        let found = of_row(device, spec, &[-2.0; 33], ["prod(0.5 * acc)", "min(-acc)"])?;
        assert_eq!(found, [-1.0, 2.0], "{spec}");
        let found = of_row(device, spec, &[], ["max(acc)", "prod(acc)"])?;
        assert_eq!(found, [-inf, 1.0], "{spec}");
        let logsumexp = ["log(sum(exp(acc)))", "sqrt(sum(acc * acc) / f32(n))"];
        let found = of_row(device, spec, &[2.0; 64], logsumexp)?;
        assert!((found[0] - (2.0 + 64_f32.ln())).abs() < 1e-5, "{spec}: {found:?}");
        assert_eq!(found[1], 2.0, "{spec}");
    }
    Ok(())
}

const NORM: Epilogue<(N, f32, OutM)> = epilogue!(|acc, bias[n], eps| {
    let y = acc + bias;
    let rms = sqrt(sum(y * y) / f32(n) + eps);
    (y, 1.0 / rms)
});

/// The tuned call computes results of rows, also with alpha and for a batch, and refuses a
/// column-major C.
fn a_call_of_sgemm_folds_rows() -> Result<(), Error> {
    let device = Device::simulator();
    let values: Vec<f32> = (0..64_u8).map(|i| f32::from(i % 5) - 2.0).collect();
    let memory = device.upload(&values)?;
    let a = MatrixRef::batch(&memory, 2, 5, 3)?;
    let b = MatrixRef::pitched(&memory, 3, 7, 9)?;
    let (mut c, mut scale) = (device.alloc(70)?, device.alloc(10)?);
    let mut view = MatrixMut::batch(&mut c, 2, 5, 7)?;
    let call = sgemm(&a, &b, &mut view).alpha(0.5).epilogue(NORM);
    call.operands((&memory, 0.25, &mut scale)).run(&device)?;
    let (c, scale) = (device.download(&c)?, device.download(&scale)?);
    for (row, scale) in c.chunks(7).zip(&scale) {
        let squares: f32 = row.iter().map(|y| y * y).sum();
        assert_eq!(*scale, 1.0 / (squares / 7.0 + 0.25).sqrt());
    }
    let (mut c, mut scale) = (device.alloc_matrix(7, 5)?, device.alloc(7)?);
    let mut view = c.view_mut();
    let a = MatrixRef::new(&memory, 5, 3)?;
    let mut view = view.t();
    let call = sgemm(&a, &b, &mut view).epilogue(NORM).operands((&memory, 0.25, &mut scale));
    let error = call.run(&device).expect_err("C is column-major");
    assert!(matches!(error, Error::FoldsOfColumns { .. }), "{error}");
    assert!(error.to_string().contains("Pass a row-major C"), "{error}");
    Ok(())
}

/// Vectors that do not fit are refused, and nothing is written.
fn a_vector_that_does_not_fit_is_told() -> Result<(), Error> {
    let device = Device::simulator();
    let x = device.upload_matrix(&[1.0; 16], 4, 4)?;
    let line = "epilogue: |acc| (acc, sum(acc))";
    let kernel = Sgemm::<(OutM,)>::new(line.parse()?)?;
    let mut c = device.alloc_matrix(4, 4)?;
    let told = |refused: Result<_, Error>, parts: [&str; 2]| {
        let error = refused.map(drop).expect_err("it does not fit").to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    };
    let (mut short, mut sums) = (device.alloc(3)?, device.alloc(5)?);
    let call = kernel.call(&device).operands(&mut short);
    told(call.launch(&x, &x, &mut c), ["`c2`", "m = 4 are needed, one for each row of C"]);
    let batched = Sgemm::<(OutM,)>::new(format!("batch: strided, {line}").parse()?)?;
    let mut of_two = device.alloc(32)?;
    let call = batched.call(&device).operands(&mut sums);
    let mut two = MatrixMut::batch(&mut of_two, 2, 4, 4)?;
    told(call.launch(&x, &x, &mut two), ["batch·m = 8 are needed", "each row"]);
    let named = Sgemm::<ByName>::new(line.parse()?)?;
    let mut matrix = device.alloc_matrix(4, 4)?;
    let call = named.call(&device).operand("c2", &mut matrix);
    told(call.launch(&x, &x, &mut c), ["`c2[m]`", "Pass a buffer, or a part of one"]);
    let call = named.call(&device).operand("c2", &sums);
    told(call.launch(&x, &x, &mut c), ["`c2[m]`", "a mutable reference to a vector"]);
    let wrong = Sgemm::<()>::new(line.parse()?).map(drop).expect_err("it has a result");
    assert!(wrong.to_string().contains("Sgemm<(OutM,)>"), "{wrong}");
    assert_eq!(device.download(&c)?, [0.0; 16]);
    kernel.call(&device).operands(&mut sums).launch(&x, &x, &mut c)?;
    assert_eq!(device.download(&sums)?, [16.0, 16.0, 16.0, 16.0, 0.0]);
    Ok(())
}

sgemm_kernel! {
    struct Squares;
    tile: 32x32x8, thread: 4x4, epilogue: |acc| (acc, sum(acc * acc))
}

/// A named kernel has the vector as a field, and a spec without folds takes none.
fn a_named_kernel_has_the_vector_as_a_field() -> Result<(), Error> {
    const PLAIN: SgemmKernel = sgemm_kernel!(tile: 32x32x8, thread: 4x4);
    let device = Device::simulator();
    let x = device.upload_matrix(&[2.0; 4], 2, 2)?;
    let (mut c, mut sums) = (device.alloc_matrix(2, 2)?, device.alloc(2)?);
    Squares::launch(&device, &x, &x, &mut c, SquaresOperands { c2: &mut sums })?;
    assert_eq!(device.download(&sums)?, [128.0; 2]);
    assert_eq!((Squares::sources().len(), PLAIN.sources().len()), (2, 1));
    Ok(())
}

pub fn trials() -> Vec<Trial> {
    let simulated = simulated![results_of_rows_are_those_of_c];
    let of_runtime = |name: &str, test: fn() -> Result<(), Error>| {
        Trial::test(format!("epilogue::row_folds::{name}"), move || Ok(test()?))
    };
    let tests = [
        of_runtime("a_call_of_sgemm_folds_rows", a_call_of_sgemm_folds_rows),
        of_runtime("a_vector_that_does_not_fit_is_told", a_vector_that_does_not_fit_is_told),
        of_runtime(
            "a_named_kernel_has_the_vector_as_a_field",
            a_named_kernel_has_the_vector_as_a_field,
        ),
        of_runtime("odd_values", || odd_values_are_folded_as_in_row_kernel(&simulator())),
    ];
    let odd = trial("epilogue::row_folds::odd_values_on_gpu".to_owned(), |gpu| {
        Ok(odd_values_are_folded_as_in_row_kernel(gpu)?)
    });
    let every = SPECS.iter().flat_map(|line| {
        let each = move |device: &Device| -> Result<(), String> {
            let spec: SgemmSpec = line.parse().map_err(|error| format!("{error}"))?;
            with_epilogue(&spec).plan().map_err(|error| format!("{error}"))?;
            for (nth, (m, n, k)) in [(7, 5, 3), (33, 131, 17), (64, 96, 0)].into_iter().enumerate()
            {
                for count in [None, Some(2)] {
                    let size = accepted(&spec, Size::new(m, n, k));
                    run(device, &spec, size, count, nth as u64)?;
                }
            }
            Ok(())
        };
        let name = format!("epilogue::row_folds::{}", line.replace([':', ',', ' '], "_"));
        let simulated = Trial::test(name.clone(), move || Ok(each(&simulator())?));
        [simulated, trial(format!("{name}_on_gpu"), move |gpu| Ok(each(gpu)?))]
    });
    let every: Vec<Trial> = every.collect();
    simulated.into_iter().chain(tests).chain([odd]).chain(every).collect()
}
