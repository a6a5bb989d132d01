//! The greatest or smallest elements, in order.

use super::{by_name, device, spec};
use gemm_runtime::half::f16;
use gemm_runtime::{Device, Error, Matrix, MatrixRef, ReduceKernel, ReduceTable, reduce_kernel};

const TOP: ReduceKernel<f32, (f32, u32)> =
    reduce_kernel!(op: argmax, with_value, topk: 3, over: rows, pitched);
const SMALLEST: ReduceKernel<f16, f16> = reduce_kernel!(op: min, topk: 2, type: f16, result: f16);
const AT: ReduceKernel<f32, u64> = reduce_kernel!(op: argmin, topk: 2, index: u64, over: rows);

/// Two rows of five elements.
const X: [f32; 10] = [1.0, 5.0, f32::NAN, 5.0, 2.0, -1.0, -0.0, 0.0, -7.0, f32::NEG_INFINITY];

#[test]
fn values_and_indices_are_in_order() {
    let device = device();
    let (values, indices) = TOP.run_over(&device, &X, (2, 5, 1)).expect("sound");
    assert_eq!(indices, [2, 1, 3, 1, 2, 0]);
    assert!(values[0].is_nan() && values[1..] == [5.0, 5.0, -0.0, 0.0, -1.0], "{values:?}");
    assert!(values[3].is_sign_negative() && values[4].is_sign_positive(), "{values:?}");
    assert_eq!(AT.run_over(&device, &X, (2, 5, 1)).expect("sound"), [2, 0, 4, 3]);
    let x = [3.0, 1.0, -2.0, 8.0].map(f16::from_f32);
    let smallest = SMALLEST.run_over(&device, &x, (1, 4, 1)).expect("sound");
    assert_eq!(smallest, [-2.0, 1.0].map(f16::from_f32));
}

fn results(device: &Device, rows: usize, cols: usize) -> Matrix {
    device.alloc_matrix(rows, cols).expect("room")
}

#[test]
fn results_are_a_matrix_or_a_vector() {
    let device = device();
    let x = device.upload(&X).expect("room");
    let x = MatrixRef::pitched(&x, 2, 4, 5).expect("its shape");
    let mut values = results(&device, 2, 3);
    let mut indices = device.alloc_of::<u32>(7).expect("room");
    TOP.launch(&device, &x, (&mut values, &mut indices)).expect("sound");
    let found = device.download(&values).expect("ours");
    assert!(found[0].is_nan() && found[1..] == [5.0, 5.0, -0.0, 0.0, -1.0], "{found:?}");
    assert_eq!(device.download(&indices).expect("ours"), [2, 1, 3, 1, 2, 0, 0]);

    let launched = TOP.launch(&device, &x, (&mut results(&device, 3, 2), &mut indices));
    let wrong = launched.expect_err("another shape").to_string();
    assert!(wrong.contains("3 x 2") && wrong.contains("outer x topk = 2 x 3"), "{wrong}");
    let mut few = device.alloc_of::<u32>(5).expect("room");
    let launched = TOP.launch(&device, &x, (&mut values, &mut few));
    let wrong = launched.expect_err("too small").to_string();
    assert!(wrong.contains("outer·topk = 2·3 = 6 are needed, 3 for each row"), "{wrong}");
}

#[test]
fn a_selection_needs_its_elements() {
    let device = device();
    let error = TOP.run_over(&device, &[1.0, 2.0], (1, 2, 1)).expect_err("two are too few");
    let text = error.to_string();
    assert!(matches!(error, Error::WrongExtent { has: 2, .. }), "{text}");
    assert!(text.contains("`topk: 3` needs each row to have at least 3 elements"), "{text}");
    let error = SMALLEST.run(&device, &[f16::ONE; 4]).expect_err("it has two results");
    assert!(error.to_string().contains("run_over"), "{error}");
    assert_eq!(TOP.run_over(&device, &[], (0, 3, 1)).expect("no row"), (vec![], vec![]));
}

#[test]
fn names_and_tables_select_too() {
    let device = device();
    let kernel = by_name("op: argmax, with_value, topk: 2, map: |x, y| x * y");
    let x = device.upload(&[1.0, 2.0, 3.0]).expect("room");
    let y = device.upload(&[4.0, -1.0, 1.0]).expect("room");
    let mut value = device.alloc(2).expect("room");
    let mut index = device.alloc_of::<u32>(2).expect("room");
    let call = kernel.call(&device).input("x", &x).input("y", &y);
    call.output("index", &mut index).output("value", &mut value).launch().expect("sound");
    assert_eq!(device.download(&value).expect("ours"), [4.0, 3.0]);
    assert_eq!(device.download(&index).expect("ours"), [0, 2]);

    let table = ReduceTable::<f32>::tuned(&spec("op: max, topk: 4, over: rows")).expect("sound");
    let mut top = device.alloc(8).expect("room");
    let x = device.upload(&X).expect("room");
    let x = MatrixRef::new(&x, 2, 5).expect("its shape");
    table.launch(&device, &x, &mut top).expect("sound");
    let top = device.download(&top).expect("ours");
    assert!(top[0].is_nan() && top[1..4] == [5.0, 5.0, 2.0], "{top:?}");
    let last: Vec<u32> = top[4..].iter().map(|x| x.to_bits()).collect();
    assert_eq!(last, [0.0, -0.0, -1.0, -7.0].map(f32::to_bits), "{top:?}");
}
