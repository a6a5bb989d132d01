//! Elementwise kernels: random expressions over operands of all kinds, types and layouts.

mod gpu;
mod row_clusters;
mod row_names;
mod rows;

use gemm_dsl::ir::Variant;
use gemm_oracle::random::Random;
use gemm_runtime::{Device, Error, InPlace, MN, Map, MatrixMut, MatrixRef, N, map_kernel};
use gemm_tests::map::Case;
use libtest_mimic::Trial;

/// Results are exact, nothing else is written, and all variants run.
fn results_are_exact() {
    let device = Device::simulator();
    let mut ran = Vec::new();
    for seed in gemm_cases::seeds(800) {
        let case = Case::random(&mut Random::new(seed));
        let (found, variants) =
            case.run(&device).unwrap_or_else(|error| panic!("{error}: {case:?}"));
        case.judge(&found).unwrap_or_else(|error| panic!("{error}: {case:?}"));
        ran.extend(variants);
    }
    assert!([Variant::Vector, Variant::Scalar].iter().all(|variant| ran.contains(variant)));
}

const ADD: Map<(MN, MN)> = map_kernel!(|x[m, n], y[m, n]| x + y);

/// A result may be an operand only if both are the same elements in the same layout.
fn overlaps_are_errors() {
    let device = Device::simulator();
    let mut x = device.upload(&[1.0; 16]).expect("room");
    let mut view = MatrixMut::new(&mut x, 4, 4).expect("as many");
    let (first, mut second) = view.split_at_col_mut(2).expect("inside");
    // The columns of one matrix are interleaved, so the memory ranges overlap.
    let found = ADD.launch(&device, (&first, InPlace::first()), &mut second);
    let Err(Error::Overlap { written, other }) = found else { panic!("{found:?}") };
    assert_eq!([written.as_str(), other.as_str()], ["output", "x"]);
    drop(second);
    let found = ADD.launch(
        &device,
        (InPlace::of_result(1), &first),
        &mut device.alloc_matrix(4, 2).expect("room"),
    );
    assert!(matches!(found, Err(Error::WrongOperand { operand, .. }) if operand == "x[m, n]"));
}

/// Arguments of other shapes are errors that name the argument.
fn shapes_must_agree() {
    let device = Device::simulator();
    let x = device.upload(&[1.0; 12]).expect("room");
    let mut out = device.alloc_matrix(3, 4).expect("room");
    let matrix = |rows, cols| MatrixRef::new(&x, rows, cols).expect("as many");
    let (right, wrong) = (matrix(3, 4), matrix(4, 3));
    let extents = |found: Result<_, Error>| match found.map(drop) {
        Err(Error::Extents { extent, first, other }) => (extent.0, first, other),
        other => panic!("{other:?}"),
    };
    let found = extents(ADD.launch(&device, (&right, &wrong), &mut out));
    assert_eq!(found, ("m", ("output".to_owned(), 3), ("y".to_owned(), 4)));
    let found = ADD.launch(&device, (&right, &x), &mut out);
    assert!(matches!(found, Err(Error::WrongOperand { operand, .. }) if operand == "y"));
    let batch = MatrixRef::batch(&x, 1, 3, 4).expect("as many");
    let found = ADD.launch(&device, (&batch, &right), &mut out);
    assert!(matches!(found, Err(Error::WrongOperand { operand, .. }) if operand == "x"));
    let mut short = device.alloc(11).expect("room");
    let found = extents(ADD.launch(&device, (&x, &x), &mut short));
    assert_eq!(found, ("n", ("output".to_owned(), 11), ("x".to_owned(), 12)));

    const BIAS: Map<(MN, N)> = map_kernel!(|x[m, n], bias[n]| x + bias);
    let found = BIAS.launch(&device, (&right, &x.slice(..3).expect("inside")), &mut out);
    let Err(Error::WrongExtent { argument, has: 3, need }) = found else { panic!("{found:?}") };
    assert_eq!(argument, "bias");
    assert!(need.contains("n = 4 are needed, one for each column"), "{need}");
}

/// A kernel's type must list its operands and results.
fn types_must_agree() {
    let spec = || "|x[m, n]: f64, v[n], s| -> (f32, f64) (f32(x) + v, x * f64(s))".parse();
    let found = <Map<(MN,)>>::new(spec().expect("sound"));
    let Err(Error::KernelType { needed, found, .. }) = found else { panic!("{found:?}") };
    assert_eq!(needed, "Map<(MN<f64>, N, f32), (MN, MN<f64>)>");
    assert_eq!(found, "Map<(MN,)>");
    let right = Map::<(MN<f64>, N, f32), (MN, MN<f64>)>::new(spec().expect("sound"));
    right.expect("the type that the message names");
}

pub fn trials() -> Vec<Trial> {
    let trials = [
        simulated![results_are_exact, overlaps_are_errors, shapes_must_agree, types_must_agree,],
        rows::trials(),
        row_clusters::trials(),
        row_names::trials(),
        gpu::trials(),
    ];
    trials.into_iter().flatten().collect()
}
