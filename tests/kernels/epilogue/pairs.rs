//! Epilogues over pairs of columns.

use crate::trial;
use gemm_dsl::spec::SgemmSpec;
use gemm_oracle::product::Size;
use gemm_runtime::{
    ByName, Device, Epilogue, Error, MN, MatrixList, MatrixListMut, MatrixMut, MatrixRef, N, Out,
    OutM, Sgemm, SgemmTable, epilogue, sgemm, sgemm_kernel, sgemm_table,
};
use gemm_tests::arbitrary;
use gemm_tests::pairs::{SPECS, run};
use gemm_tests::product::{accepted, is_unaligned};
use libtest_mimic::Trial;
use proptest::prelude::*;

proptest! {
    #![proptest_config(gemm_cases::cases(300))]

    fn pairs_have_the_bits_of_their_columns(
        spec in arbitrary::sgemm(128),
        (m, n, k) in (0..40usize, 0..40usize, 0..20usize),
        count in proptest::option::weighted(0.3, 0..4usize),
        seed: u64,
    ) {
        let size = accepted(&spec, Size::new(m, n, k));
        if let Err(error) = run(&Device::simulator(), &spec, size, count, seed) {
            prop_assert!(is_unaligned(&spec, &error), "`{spec}` at {size}: {error}");
        }
    }
}

const SWIGLU: Epilogue<(N,)> = epilogue!(|acc, bias[n]| {
    let t = acc + bias;
    t * sigmoid(t) * next(t)
});

/// Rotates each pair of columns. The even column of `rotor` has cosines, the odd column sines.
const ROTARY: Epilogue<(MN,)> = epilogue!(|acc, rotor[m, n]| pair(
    acc * rotor - next(acc) * next(rotor),
    acc * next(rotor) + next(acc) * rotor
));

/// Each pair of columns of rows of integers, as floats.
fn integers(device: &Device, rows: usize, cols: usize) -> Result<(Vec<f32>, Vec<f32>), Error> {
    let x: Vec<f32> = (0..rows).map(|i| i as f32 - 2.0).collect();
    let w: Vec<f32> = (0..cols).map(|i| (i * 5 % 7) as f32 - 3.0).collect();
    let a = device.upload_matrix(&x, rows, 1)?;
    let b = device.upload_matrix(&w, 1, cols)?;
    let mut c = device.alloc_matrix(rows, cols)?;
    sgemm(&a, &b, &mut c).run(device)?;
    let product: Vec<f32> = x.iter().flat_map(|x| w.iter().map(move |w| x * w)).collect();
    assert_eq!(device.download(&c)?, product);
    Ok((x, w))
}

/// SwiGLU and rotary embeddings by the tuned call, with views, a batch and alpha.
fn a_call_of_sgemm_computes_pairs() -> Result<(), Error> {
    let device = Device::simulator();
    let (x, w) = integers(&device, 5, 8)?;
    let (a, b) = (device.upload_matrix(&x, 5, 1)?, device.upload_matrix(&w, 1, 8)?);
    let bias = device.upload(&[0.5; 8])?;
    let mut c = device.alloc(5 * 6)?;
    let mut view = MatrixMut::pitched(&mut c, 5, 4, 6)?;
    let call = sgemm(&a, &b, &mut view).epilogue(SWIGLU).operands(&bias);
    assert!(call.choice(&device)?.spec.ends_with(SWIGLU.text()));
    call.run(&device)?;
    let c = device.download(&c)?;
    for (row, x) in c.chunks(6).zip(&x) {
        for (found, w) in row.iter().zip(w.chunks(2)) {
            let [t, gate] = [w[0], w[1]].map(|w| x * w + 0.5);
            let expected = t / (1.0 + (-t).exp()) * gate;
            assert!((found - expected).abs() <= 1e-5 * expected.abs(), "{found}, {expected}");
        }
        assert_eq!(row[4..], [0.0; 2]);
    }
    // A quarter turn, for a batch, with alpha.
    let rotor = device.upload_matrix(&[0.0, 1.0].repeat(20), 5, 8)?;
    let both = device.upload(&[&x[..], &x[..]].concat())?;
    let a = MatrixRef::batch(&both, 2, 5, 1)?;
    let mut c = device.alloc(80)?;
    let mut view = MatrixMut::batch(&mut c, 2, 5, 8)?;
    sgemm(&a, &b, &mut view).alpha(2.0).epilogue(ROTARY).operands(&rotor).run(&device)?;
    let rows =
        x.iter().flat_map(|x| w.chunks(2).flat_map(move |w| [-2.0 * x * w[1], 2.0 * x * w[0]]));
    let rows: Vec<f32> = rows.collect();
    assert_eq!(device.download(&c)?, [&rows[..], &rows[..]].concat());
    Ok(())
}

/// Values for each pair, values for each column and results of rows in one launch, of every kind of
/// kernel.
fn kinds_of_results_mix(device: &Device, line: &str) -> Result<(), Error> {
    let epilogue = "|acc, bias[n]| { let v = acc + bias; let products = sum(v * next(v)); (v * \
                    next(v), pair(v - next(v), f32(col) + next(v)), next(f32(col)), products / \
                    f32(n)) }";
    let kernel = Sgemm::<ByName>::new(format!("{line}, epilogue: {epilogue}").parse()?)?;
    let spec: SgemmSpec = kernel.spec_line().parse()?;
    let by_column = spec.layout.transposes_b();
    for (m, n) in [(3, 2), (37, 34), (64, 128)] {
        let (x, w): (Vec<f32>, Vec<f32>) = (
            (0..m).map(|i| (i % 5) as f32 - 2.0).collect(),
            (0..n).map(|i| (i * 5 % 7) as f32 - 3.0).collect(),
        );
        let (a, b) = (device.upload(&x)?, device.upload(&w)?);
        let bias = device.upload(&vec![1.0; n])?;
        let (mut c, mut c2) = (device.alloc_matrix(m, n / 2)?, device.alloc_matrix(m, n)?);
        let (mut c3, mut c4) = (device.alloc_matrix(m, n / 2)?, device.alloc(m)?);
        let a = MatrixRef::new(&a, m, 1)?;
        let b = if by_column { MatrixRef::new(&b, n, 1)?.t() } else { MatrixRef::new(&b, 1, n)? };
        let call = kernel.call(device).operand("bias", &bias).operand("c2", &mut c2);
        call.operand("c3", &mut c3).operand("c4", &mut c4).launch(&a, &b, &mut c)?;
        let (mut first, mut second, mut third, mut sums) = (vec![], vec![], vec![], vec![]);
        for x in &x {
            let products = w.chunks(2).map(|w| (x * w[0] + 1.0) * (x * w[1] + 1.0));
            sums.push(products.clone().sum::<f32>() / n as f32);
            first.extend(products);
            for (nth, w) in w.chunks(2).enumerate() {
                let ([v, next], col) = ([w[0], w[1]].map(|w| x * w + 1.0), 2 * nth);
                second.extend([v - next, col as f32 + next]);
                third.push(col as f32 + 1.0);
            }
        }
        assert_eq!(device.download(&c)?, first, "{line}: {m} x {n}");
        assert_eq!(device.download(&c2)?, second, "{line}: {m} x {n}");
        assert_eq!(device.download(&c3)?, third, "{line}: {m} x {n}");
        assert_eq!(device.download(&c4)?, sums, "{line}: {m} x {n}");
    }
    Ok(())
}

/// Arguments that do not fit are refused, and nothing is written.
fn a_launch_that_does_not_fit_is_told() -> Result<(), Error> {
    let device = Device::simulator();
    let (a, b) = (device.upload_matrix(&[1.0; 8], 4, 2)?, device.upload_matrix(&[1.0; 14], 2, 7)?);
    let even = MatrixRef::pitched(b.buffer(), 2, 6, 7)?;
    let told = |refused: Result<_, Error>, parts: [&str; 3]| {
        let error = refused.map(drop).expect_err("it does not fit").to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    };
    let mut c = device.alloc(28)?;
    let mut three = MatrixMut::new(&mut c, 4, 3)?;
    const GATED: Epilogue = epilogue!(|acc| acc * next(acc));
    const SWAPPED: Epilogue = epilogue!(|acc| pair(next(acc), acc));
    let call = sgemm(&a, &b, &mut three).epilogue(GATED);
    let odd = ["`b` has 7 columns", "pairs of columns", "need an even number"];
    told(call.run(&device), odd);
    let kernel = Sgemm::<()>::new("thread: 1x2, epilogue: |acc| pair(next(acc), acc)".parse()?)?;
    let mut seven = MatrixMut::new(&mut c, 4, 7)?;
    told(sgemm(&a, &b, &mut seven).epilogue(SWAPPED).run(&device), odd);
    told(kernel.call(&device).launch(&a, &b, &mut seven), odd);
    let mut plain = device.alloc(28)?;
    told(kernel.launch(&device, &a, &b, &mut plain, (4, 7, 2)), odd);
    let mut six = MatrixMut::new(&mut c, 4, 6)?;
    let need = "its shape 4 x 6 is not m x n / 2 = 4 x 3";
    told(sgemm(&a, &even, &mut six).epilogue(GATED).run(&device), ["`c`", "24", need]);
    assert!(sgemm(&a, &even, &mut six).epilogue(GATED).choice(&device).is_err());
    let by_column = device.upload_matrix(&[1.0; 8], 2, 4)?;
    let mut columns = device.alloc(12)?;
    let mut columns = MatrixMut::new(&mut columns, 3, 4)?;
    let mut columns = columns.t();
    let refused = sgemm(&by_column.view().t(), &even, &mut columns).epilogue(GATED).run(&device);
    assert!(matches!(refused, Err(Error::PairsOfRows { .. })), "{refused:?}");
    let call = |c: &mut MatrixMut<'_>| sgemm(&a, &even, c).alpha(2.0).epilogue(GATED).run(&device);
    let mut three = MatrixMut::new(&mut c, 4, 3)?;
    told(call(&mut three), ["`scaled`", "n / 2 columns", "pass the factor as an operand"]);
    assert_eq!(device.download(&c)?, [0.0; 28]);
    sgemm(&a, &even, &mut MatrixMut::new(&mut c, 4, 3)?).epilogue(GATED).run(&device)?;
    assert_eq!(device.download(&c)?[..13], [vec![4.0; 12], vec![0.0]].concat());
    Ok(())
}

/// Groups of rows, and lists of matrices, of which the C's have half of the columns.
fn groups_and_lists_compute_pairs() -> Result<(), Error> {
    let device = Device::simulator();
    let gate: Epilogue<()> = "|acc| acc * next(acc)".parse()?;
    let x = device.upload_matrix(&[1.0, 2.0, 3.0], 3, 1)?;
    let experts = device.upload(&[10.0, 1.0, 100.0, 2.0])?;
    let of_groups = MatrixRef::batch(&experts, 2, 1, 2)?;
    let offsets = device.upload_of(&[0_u32, 1, 3])?;
    let mut y = device.alloc_matrix(3, 1)?;
    let call = sgemm(&x, &of_groups, &mut y).epilogue(gate.clone()).groups(&offsets);
    call.run(&device)?;
    assert_eq!(device.download(&y)?, [10.0, 800.0, 1800.0]);
    let (first, second) = (experts.slice(..2)?, experts.slice(2..)?);
    let (first, second) = (MatrixRef::new(&first, 1, 2)?, MatrixRef::new(&second, 1, 2)?);
    let a = MatrixList::new(&device, [&x, &x])?;
    let b = MatrixList::new(&device, [&second, &first])?;
    let (mut one, mut two) = (device.alloc_matrix(3, 1)?, device.alloc_matrix(3, 1)?);
    let mut c = MatrixListMut::new(&device, [&mut one, &mut two])?;
    sgemm(&a, &b, &mut c).epilogue(gate.clone()).run(&device)?;
    assert_eq!(device.download(&c)?, [200.0, 800.0, 1800.0, 10.0, 40.0, 90.0]);
    // All GEMMs of a batch share B.
    let memory = device.upload(&[1.0, 2.0, 3.0, 4.0])?;
    let a = MatrixRef::batch(&memory, 4, 1, 1)?;
    let mut c = device.alloc(4)?;
    let mut view = MatrixMut::batch(&mut c, 4, 1, 1)?;
    sgemm(&a, &first, &mut view).epilogue(gate).run(&device)?;
    assert_eq!(device.download(&c)?, [10.0, 40.0, 90.0, 160.0]);
    Ok(())
}

sgemm_kernel! {
    struct Gated;
    tile: 32x32x8, thread: 4x4, float4,
    epilogue: |acc, gate[n]| (next(acc) * gate, acc + next(gate))
}

const TABLE: SgemmTable<(Out, OutM)> = sgemm_table! {
    m <= 8 => thread: 1x2, epilogue: |acc| (acc * next(acc), pair(acc, -next(acc)), max(next(acc)));
    else => tile: 32x32x8, thread: 4x4,
        epilogue: |acc| (acc * next(acc), pair(acc, -next(acc)), max(next(acc)));
};

/// A named kernel and a table take a C of half as many columns, and so do vectors and host arrays.
fn every_call_takes_half_of_the_columns() -> Result<(), Error> {
    let device = Device::simulator();
    let (a, b) =
        (device.upload_matrix(&[1.0, 2.0], 2, 1)?, device.upload_matrix(&[3.0, 4.0], 1, 2)?);
    let gate = device.upload(&[0.5, 0.25])?;
    let (mut c, mut c2) = (device.alloc_matrix(2, 1)?, device.alloc_matrix(2, 1)?);
    Gated::launch(&device, &a, &b, &mut c, GatedOperands { gate: &gate, c2: &mut c2 })?;
    assert_eq!((device.download(&c)?, device.download(&c2)?), (vec![2.0, 4.0], vec![3.25, 6.25]));
    let (mut whole, mut tops) = (device.alloc_matrix(2, 2)?, device.alloc(2)?);
    TABLE.call(&device).operands((&mut whole, &mut tops)).launch(&a, &b, &mut c)?;
    assert_eq!(device.download(&c)?, [12.0, 48.0]);
    assert_eq!(device.download(&whole)?, [3.0, -4.0, 6.0, -8.0]);
    assert_eq!(device.download(&tops)?, [4.0, 8.0]);
    for line in ["thread: 1x2", "tile: 32x32x8, thread: 4x4, pitched, float4"] {
        let kernel: Sgemm = Sgemm::new(format!("{line}, epilogue: |acc| next(acc)").parse()?)?;
        assert_eq!(kernel.run(&device, &[1.0, 2.0], &[3.0, 4.0], (2, 2, 1))?, [4.0, 8.0]);
    }
    Ok(())
}

pub fn trials() -> Vec<Trial> {
    let simulated = simulated![pairs_have_the_bits_of_their_columns];
    let of_runtime = |name: &str, test: fn() -> Result<(), Error>| {
        Trial::test(format!("epilogue::pairs::{name}"), move || Ok(test()?))
    };
    let tests = [
        of_runtime("a_call_of_sgemm_computes_pairs", a_call_of_sgemm_computes_pairs),
        of_runtime("a_launch_that_does_not_fit_is_told", a_launch_that_does_not_fit_is_told),
        of_runtime("groups_and_lists_compute_pairs", groups_and_lists_compute_pairs),
        of_runtime("every_call_takes_half_of_the_columns", every_call_takes_half_of_the_columns),
    ];
    let every = SPECS.iter().flat_map(|line| {
        let each = move |device: &Device| -> Result<(), String> {
            kinds_of_results_mix(device, line).map_err(|error| format!("{line}: {error}"))?;
            let spec: SgemmSpec = line.parse().map_err(|error| format!("{error}"))?;
            for (nth, (m, n, k)) in [(7, 6, 3), (33, 132, 17), (64, 96, 0)].into_iter().enumerate()
            {
                for count in [None, Some(2)] {
                    let size = accepted(&spec, Size::new(m, n, k));
                    run(device, &spec, size, count, nth as u64)?;
                }
            }
            Ok(())
        };
        let name = format!("epilogue::pairs::{}", line.replace([':', ',', ' '], "_"));
        let simulated = Trial::test(name.clone(), move || Ok(each(&Device::simulator())?));
        [simulated, trial(format!("{name}_on_gpu"), move |gpu| Ok(each(gpu)?))]
    });
    let every: Vec<Trial> = every.collect();
    simulated.into_iter().chain(tests).chain(every).collect()
}
