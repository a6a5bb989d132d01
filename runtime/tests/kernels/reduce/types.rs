//! Types of kernels, and arrays on the host.

use super::{Small, device, small, spec};
use gemm_runtime::bounds::Elements;
use gemm_runtime::half::{bf16, f16};
use gemm_runtime::{Error, ReduceKernel, reduce_kernel};

const DOT: ReduceKernel<(f32, f32), f32> = reduce_kernel!(map: |x, y| x * y);
const STATISTICS: ReduceKernel<f32, (f32, f32)> = reduce_kernel!(op: mean_var);
const FAR: ReduceKernel<f16, u64> = reduce_kernel!(op: argmax, type: f16, index: u64);
const FOUR: ReduceKernel<(i32, i32, i32, i32), f64> = reduce_kernel!(
    type: i32, map: |a, b, c, d| a * b - c * d, finish: |s| f64(s) / 2.0, result: f64
);

#[test]
fn the_type_says_what_is_folded_into_what() {
    let device = device();
    assert_eq!(DOT.run(&device, (&[1.0, 2.0], &[3.0, 4.0])).expect("sound"), 11.0);
    assert_eq!(STATISTICS.run(&device, &[1.0, 3.0]).expect("sound"), (2.0, 1.0));
    let x = [1.0, 5.0, 2.0].map(f16::from_f32);
    assert_eq!(FAR.run(&device, &x).expect("sound"), 1_u64);
    assert_eq!(FOUR.run(&device, (&[5, 1], &[2, 1], &[3, 0], &[1, 9])).expect("sound"), 4.0);
    let error = DOT.run(&device, (&[1.0, 2.0], &[3.0])).expect_err("one is short");
    assert_eq!(error.to_string(), "len is 2 in `x` but 1 in `y`: the shapes do not match");
}

fn refused<T: Elements, R: Elements>(line: &str) -> String {
    match ReduceKernel::<T, R>::new(spec(line)) {
        Err(error @ Error::KernelType { .. }) => error.to_string(),
        other => panic!("`{line}`: {other:?}"),
    }
}

#[test]
fn other_types_are_rejected() {
    assert_eq!(
        refused::<f32, f32>("op: mean_var"),
        "a kernel of `op: mean_var` takes `input: f32`, `mean: f32`, `var: f32`: its type is \
         `ReduceKernel<f32, (f32, f32)>`, not `ReduceKernel`. Use `ReduceKernel<f32, (f32, f32)>`, \
         or `Kernel<ReduceSpec, ByName>`, which takes any operands"
    );
    for (message, types) in [
        (refused::<(f32, f32), f32>(""), "`ReduceKernel`, not `ReduceKernel<(f32, f32), f32>`"),
        (
            refused::<f32, f32>("map: |x, y| x * y"),
            "`ReduceKernel<(f32, f32), f32>`, not `ReduceKernel`",
        ),
        (
            refused::<f32, u32>("op: argmax, index: u64"),
            "`ReduceKernel<f32, u64>`, not `ReduceKernel<f32, u32>`",
        ),
        (refused::<f16, f16>("type: f16"), "`ReduceKernel<f16, f32>`, not `ReduceKernel<f16>`"),
        (refused::<i8, i8>("type: i8"), "`ReduceKernel<i8, i32>`, not `ReduceKernel<i8>`"),
        (refused::<f32, f32>("op: any, type: u8"), "`ReduceKernel<u8>`, not `ReduceKernel`"),
    ] {
        assert!(message.contains(types), "{message}");
    }
}

/// Kernels of this element type take their elements from the host and from the device.
fn runs<T, R>(line: &str)
where
    T: Elements<Vecs = Vec<T>> + for<'a> Elements<Slices<'a> = &'a [T]> + Small,
    R: Elements<Vecs = Vec<R>> + Small,
{
    let device = device();
    let line = format!("type: {}, {line}", T::NAME);
    let kernel = ReduceKernel::<T, R>::new(spec(&line)).expect("its type");
    let elements = small::<T>(45);
    let count = |of: &[T]| {
        R::of((0..5).map(|n| n * of.iter().filter(|v| **v == T::of(n)).count() as u8).sum())
    };
    assert!(kernel.run(&device, &elements).expect("sound") == count(&elements), "{line}");
    let rows = ReduceKernel::<T, R>::new(spec(&format!("over: rows, {line}"))).expect("its type");
    let sums = rows.run_over(&device, &elements, (5, 9, 1)).expect("sound");
    assert!(sums.iter().copied().eq(elements.chunks(9).map(count)), "{line}");
    let columns = ReduceKernel::<T, R>::new(spec(&format!("over: columns, {line}")));
    let sums = columns.expect("its type").run_over(&device, &elements, (1, 9, 5)).expect("sound");
    let column = |c: usize| -> Vec<T> { elements.iter().copied().skip(c).step_by(5).collect() };
    assert!(sums.iter().copied().eq((0..5).map(|c| count(&column(c)))), "{line}");
}

#[test]
fn every_element_has_a_type() {
    runs::<f32, f32>("");
    runs::<f64, f64>("");
    runs::<f16, f32>("");
    runs::<f16, f16>("result: f16");
    runs::<bf16, f32>("");
    runs::<i8, i32>("");
    runs::<i8, i64>("acc: i64");
    runs::<u8, u32>("");
    runs::<i32, i32>("");
    runs::<u32, u32>("");
    runs::<i64, i64>("");
    runs::<u64, u64>("");
}

#[test]
fn a_run_has_the_extents_of_what_the_kernel_folds() {
    let device = device();
    let rows: ReduceKernel = reduce_kernel!(over: rows);
    let columns: ReduceKernel = reduce_kernel!(over: columns);
    let middle: ReduceKernel<f32, (f32, f32)> = reduce_kernel!(op: mean_var, over: middle);
    let plain: ReduceKernel = reduce_kernel!();
    let segments: ReduceKernel = reduce_kernel!(over: segments);
    let x = [1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 7.0, 8.0];
    let (mean, var) = middle.run_over(&device, &x, (2, 2, 2)).expect("sound");
    assert_eq!((mean, var), (vec![2.0, 3.0, 6.0, 7.5], vec![1.0, 1.0, 1.0, 0.25]));
    let message = |outcome: Result<(), Error>| outcome.expect_err("misuse").to_string();
    for (outcome, part) in [
        (
            rows.run(&device, &x).map(drop),
            "`over: rows`, but the call gives an array without extents. Call `run_over`",
        ),
        (segments.run(&device, &x).map(drop), "Upload it and call `launch_segments`"),
        (
            plain.run_over(&device, &x, (1, 8, 1)).map(drop),
            "gives extents of rows and columns. Call `run`",
        ),
        (segments.run_over(&device, &x, (1, 8, 1)).map(drop), "gives extents and no segments"),
        (
            rows.run_over(&device, &x, (2, 2, 2)).map(drop),
            "an inner extent of 2. Rows need an inner extent of 1",
        ),
        (
            columns.run_over(&device, &x, (2, 2, 2)).map(drop),
            "an outer extent of 2. Columns need an outer extent of 1",
        ),
        (
            rows.run_over(&device, &x, (2, 3, 1)).map(drop),
            "`input` has 8 elements, but outer·len·inner = 2·3·1 = 6 are needed",
        ),
        (
            rows.run_over(&device, &[], (usize::MAX, 2, 1)).map(drop),
            "`input` would have outer·len·inner = 18446744073709551615·2·1 elements",
        ),
    ] {
        let message = message(outcome);
        assert!(message.contains(part), "{message}");
    }
}
