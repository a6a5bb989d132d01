//! Epilogues with several values.

use crate::trial;
use gemm_dsl::spec::Bounds;
use gemm_oracle::product::Size;
use gemm_runtime::{
    ByName, Device, Epilogue, Error, MatrixMut, MatrixRef, N, Out, Sgemm, epilogue, sgemm,
};
use gemm_tests::arbitrary;
use gemm_tests::product::{accepted, is_unaligned};
use gemm_tests::results::run;
use gemm_tests::simulator;
use libtest_mimic::Trial;
use proptest::prelude::*;

proptest! {
    #![proptest_config(gemm_cases::cases(300))]

    fn each_value_has_the_bits_of_its_own_kernel(
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

const BOTH: Epilogue<(N, Out)> = epilogue!(|acc, bias[n]| { let t = acc + bias; (gelu(t), t) });

/// Results of a call of `sgemm`, in any layout of C, are those of the values alone.
fn a_call_of_sgemm_stores_all_values() -> Result<(), Error> {
    const FIRST: Epilogue<(N,)> = epilogue!(|acc, bias[n]| gelu(acc + bias));
    const SECOND: Epilogue<(N,)> = epilogue!(|acc, bias[n]| acc + bias);
    let device = Device::simulator();
    let values: Vec<f32> = (0..64_u8).map(|i| f32::from(i) / 16.0 - 2.0).collect();
    let memory = device.upload(&values)?;
    let (a, b) = (MatrixRef::new(&memory, 5, 3)?, MatrixRef::pitched(&memory, 3, 7, 9)?);
    for in_columns in [false, true] {
        let (rows, cols) = if in_columns { (7, 5) } else { (5, 7) };
        let run = |epilogue: &Epilogue<(N,)>| {
            let mut c = device.alloc_matrix(rows, cols)?;
            let mut view = c.view_mut();
            let mut view = if in_columns { view.t() } else { view };
            let call = sgemm(&a, &b, &mut view).alpha(0.5).epilogue(epilogue.clone());
            call.operands(&memory).run(&device)?;
            device.download(&c)
        };
        let (mut c, mut t) =
            (device.alloc_matrix(rows, cols)?, device.alloc_matrix_padded(rows, cols)?);
        let (mut c_view, mut t_view) = (c.view_mut(), t.view_mut());
        if in_columns {
            let (mut c_view, mut t_view) = (c_view.t(), t_view.t());
            let call = sgemm(&a, &b, &mut c_view).alpha(0.5).epilogue(BOTH);
            let call = call.operands((&memory, &mut t_view));
            assert!(call.choice(&device)?.spec.contains("pitched"));
            call.run(&device)?;
        } else {
            let call = sgemm(&a, &b, &mut c_view).alpha(0.5).epilogue(BOTH);
            call.operands((&memory, &mut t_view)).run(&device)?;
        }
        assert_eq!(device.download(&c)?, run(&FIRST)?, "{in_columns}");
        assert_eq!(device.download_matrix(&t)?, run(&SECOND)?, "{in_columns}");
    }
    Ok(())
}

/// Matrices for further values that do not fit are refused, and nothing is written.
fn a_matrix_that_does_not_fit_is_told() -> Result<(), Error> {
    let device = Device::simulator();
    let memory = device.upload(&[1.0; 64])?;
    let x = MatrixRef::new(&memory, 4, 4)?;
    let kernel = Sgemm::<(Out,)>::new("pitched, epilogue: |acc| (acc, 2.0 * acc)".parse()?)?;
    let mut c = device.alloc_matrix(4, 4)?;
    let told = |refused: Result<_, Error>, parts: [&str; 2]| {
        let error = refused.map(drop).expect_err("it does not fit").to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    };
    let mut small = device.alloc_matrix(4, 3)?;
    let call = kernel.call(&device).operands(&mut small);
    told(call.launch(&x, &x, &mut c), ["`c2`", "its shape 4 x 3 is not m x n = 4 x 4"]);
    let mut turned = device.alloc_matrix(4, 4)?;
    let (mut turned, mut room) = (turned.view_mut(), device.alloc(64)?);
    let mut turned = turned.t();
    let call = kernel.call(&device).operands(&mut turned);
    told(call.launch(&x, &x, &mut c), ["needs contiguous rows of `c2`", "row-major"]);
    // C and the matrix of another value share memory.
    let mut whole = MatrixMut::new(&mut room, 8, 8)?;
    let (mut above, _) = whole.split_at_row_mut(4)?;
    let (mut left, mut right) = above.split_at_col_mut(4)?;
    told(kernel.call(&device).operands(&mut right).launch(&x, &x, &mut left), ["`c`", "`c2`"]);
    let batched = "pitched, batch: strided, epilogue: |acc| (acc, 2.0 * acc)";
    let batched = Sgemm::<(Out,)>::new(batched.parse()?)?;
    let (mut of_two, mut one) = (device.alloc(32)?, device.alloc_matrix(4, 4)?);
    let mut of_two = MatrixMut::batch(&mut of_two, 2, 4, 4)?;
    told(batched.call(&device).operands(&mut one).launch(&x, &x, &mut of_two), ["c2", "2"]);
    // By name, a matrix to be written is a mutable reference, and no other operand is.
    let named = "epilogue: |acc, r[m, n]| (acc, r)";
    let named = Sgemm::<ByName>::new(named.parse()?)?;
    let mut other = device.alloc_matrix(4, 4)?;
    let call = named.call(&device).operand("r", &x);
    told(call.operand("c2", &x).launch(&x, &x, &mut c), ["c2", "mutable reference"]);
    let call = named.call(&device).operand("r", &mut other);
    told(call.operand("c2", &mut one).launch(&x, &x, &mut c), ["`r[m, n]`", "shared reference"]);
    told(
        named.call(&device).operand("r", &x).launch(&x, &x, &mut c),
        ["gives no `c2[m, n]`", "`.operand(name, …)`"],
    );
    assert_eq!(device.download(&c)?, [0.0; 16]);
    named.call(&device).operand("r", &x).operand("c2", &mut one).launch(&x, &x, &mut c)?;
    assert_eq!((device.download(&c)?, device.download(&one)?), (vec![4.0; 16], vec![1.0; 16]));
    Ok(())
}

pub fn trials() -> Vec<Trial> {
    let simulated = simulated![each_value_has_the_bits_of_its_own_kernel];
    let of_runtime = |name: &str, test: fn() -> Result<(), Error>| {
        Trial::test(format!("epilogue::results::{name}"), move || Ok(test()?))
    };
    let tests = [
        of_runtime("a_call_of_sgemm_stores_all_values", a_call_of_sgemm_stores_all_values),
        of_runtime("a_matrix_that_does_not_fit_is_told", a_matrix_that_does_not_fit_is_told),
    ];
    let specs = arbitrary::sample(arbitrary::sgemm(512), 40).into_iter();
    let guarded = specs.filter(|spec| spec.bounds == Bounds::Guarded).take(24);
    let on_gpu = guarded.enumerate().map(|(i, spec)| {
        trial(format!("epilogue::results::{i:02}"), move |gpu| {
            for (size, count) in [
                (Size::new(7, 5, 3), None),
                (Size::new(33, 65, 17), Some(3)),
                (Size::new(128, 64, 8), None),
            ] {
                let size = accepted(&spec, size);
                run(gpu, &spec, size, count, i as u64)
                    .map_err(|error| format!("{size}: {error}"))?;
            }
            Ok(())
        })
    });
    simulated.into_iter().chain(tests).chain(on_gpu).collect()
}
