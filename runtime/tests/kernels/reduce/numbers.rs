//! Numbers that a launch passes, and the value beside an index.

use super::{by_name, device, spec};
use gemm_runtime::half::f16;
use gemm_runtime::{
    Error, MatrixRef, Number, ReduceKernel, ReduceTable, Segments, reduce_kernel, reduce_table,
};

const SPREAD: ReduceKernel<(f32, Number<f32>, Number<f64>), f32> = reduce_kernel!(
    map: |x, mu: f32| (x - mu) * (x - mu),
    finish: |s, len, eps: f64, mu: f32| s / len + mu + f32(eps)
);
const BOTH: ReduceKernel<(f32, f32, Number<i32>), f32> =
    reduce_kernel!(map: |x, y, first: i32| if i < first { x } else { y }, over: rows);
const ABOVE: ReduceTable<(f32, Number<f32>), u8> = reduce_table! {
    len < 3 => op: any, over: rows, map: |x, t: f32| x > t, group: 1;
    else => op: any, over: rows, map: |x, t: f32| x > t;
};
const LARGEST: ReduceKernel<f16, (f16, u64)> =
    reduce_kernel!(op: argmax, with_value, type: f16, result: f16, index: u64, over: columns);

#[test]
fn numbers_follow_the_arrays() {
    let device = device();
    assert_eq!(SPREAD.run(&device, (&[1.0, 3.0], 2.0, 0.5)).expect("sound"), 3.5);
    let (x, y) = ([1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0]);
    assert_eq!(BOTH.run_over(&device, (&x, &y, 1), (2, 2, 1)).expect("sound"), [21.0, 43.0]);
    let (x, y) = (device.upload(&x).expect("room"), device.upload(&y).expect("room"));
    let [x, y] = [&x, &y].map(|array| MatrixRef::new(array, 2, 2).expect("its shape"));
    let mut sums = device.alloc(2).expect("room");
    BOTH.launch(&device, (&x, &y, 2), &mut sums).expect("sound");
    assert_eq!(device.download(&sums).expect("ours"), [3.0, 7.0]);
    let mut above = device.alloc_of::<u8>(2).expect("room");
    ABOVE.launch(&device, (&x, 3.5), &mut above).expect("sound");
    assert_eq!(device.download(&above).expect("ours"), [0, 1]);
}

#[test]
fn segments_take_numbers() {
    let device = device();
    let kernel: ReduceKernel<(f32, Number<f32>), f32> =
        reduce_kernel!(over: segments, map: |x, scale: f32| x * scale);
    let x = device.upload(&[1.0, 2.0, 3.0]).expect("room");
    let segments: Segments = Segments::new(&device, &[0, 2, 2, 3]).expect("ascending");
    let mut sums = device.alloc(3).expect("room");
    kernel.launch_segments(&device, (&x, 2.0), &segments, &mut sums).expect("sound");
    assert_eq!(device.download(&sums).expect("ours"), [6.0, 0.0, 6.0]);
}

#[test]
fn an_index_has_its_value_beside_it() {
    let device = device();
    let x = [1.0, 5.0, -2.0, 5.0, 2.0, -1.0].map(f16::from_f32);
    let (values, indices) = LARGEST.run_over(&device, &x, (1, 2, 3)).expect("sound");
    assert_eq!((values, indices), ([5.0, 5.0, -1.0].map(f16::from_f32).to_vec(), vec![1, 0, 1]));
    let kernel: ReduceKernel<f32, (f32, u32)> = reduce_kernel!(op: argmin, with_value);
    let nan = kernel.run(&device, &[1.0, f32::NAN, -1.0]).expect("sound");
    assert!(nan.0.is_nan() && nan.1 == 1, "{nan:?}");
    let (zero, at) = kernel.run(&device, &[1.0, 0.0, -0.0]).expect("sound");
    assert_eq!((zero.to_bits(), at), (0, 1));
    let error = kernel.run(&device, &[]).expect_err("it has no index");
    assert!(matches!(error, Error::WrongExtent { .. }), "{error}");
}

#[test]
fn numbers_go_by_name() {
    let device = device();
    let kernel = by_name("map: |x, mu: f32| x - mu, finish: |s, k: i64| s + f32(k)");
    let x = device.upload(&[1.0, 2.0]).expect("room");
    let mut sum = device.alloc(1).expect("room");
    let call = kernel.call(&device).number("k", 10_i64).input("x", &x).output("output", &mut sum);
    call.number("mu", 0.5_f32).launch().expect("all of them");
    assert_eq!(device.download(&sum).expect("ours"), [12.0]);
    let message = |outcome: Result<_, Error>| outcome.map(|_| ()).expect_err("misuse").to_string();
    let call = kernel.call(&device).input("x", &x).number("mu", 0.5_f32);
    assert_eq!(
        message(call.output("output", &mut sum).launch()),
        "the call gives no `k`, a number: add it with `.number(name, …)`"
    );
    let call = kernel.call(&device).input("x", &x).number("mu", 0.5_f32).number("k", 1.0_f64);
    let message = message(call.output("output", &mut sum).launch());
    assert!(message.contains("`k`") && message.contains("an i64"), "{message}");
}

#[test]
fn the_type_lists_the_numbers() {
    let refused = ReduceKernel::<f32, f32>::new(spec("map: |x, mu: f32| x - mu"));
    let error = refused.expect_err("it lists no number");
    assert!(error.to_string().contains("`ReduceKernel<(f32, Number<f32>), f32>`"), "{error}");
    let refused = ReduceKernel::<f32, (u32, f32)>::new(spec("op: argmax, with_value"));
    let error = refused.expect_err("the value is first");
    assert!(error.to_string().contains("`ReduceKernel<f32, (f32, u32)>`"), "{error}");
}
