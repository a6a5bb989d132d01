//! Kernels from macros and from specs, launched on the simulator.

mod autotune;
mod operands;
mod reduce;
mod tables;
mod views;

use gemm_runtime::error::Need;
use gemm_runtime::{
    Device, Error, Matrix, MatrixMut, MatrixRef, ReduceKernel, ReduceSpec, SgemmKernel, SgemmSpec,
    Variant, reduce_kernel, sgemm_kernel,
};

const SUM: ReduceKernel = reduce_kernel!(op: sum, block: 64, items: 2, shuffle);
const GEMM: SgemmKernel = sgemm_kernel!(tile: 16x16x8, thread: 4x4);
const KERNELS: &[ReduceKernel] = &[SUM, reduce_kernel!(op: max), reduce_kernel! { <op: min> }];

fn reduce(line: &str) -> ReduceKernel {
    ReduceKernel::new(line.parse::<ReduceSpec>().expect("a spec")).expect("a sound spec")
}

fn sgemm(line: &str) -> SgemmKernel {
    SgemmKernel::new(line.parse::<SgemmSpec>().expect("a spec")).expect("a sound spec")
}

fn values(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 31) % 17) as f32 - 8.0).collect()
}

/// GEMM in plain Rust. It is exact, because the values are small integers.
fn product(a: &[f32], b: &[f32], (m, n, k): (usize, usize, usize)) -> Vec<f32> {
    let at = |i: usize| (0..k).map(|l| a[i / n * k + l] * b[l * n + i % n]).sum();
    (0..m * n).map(at).collect()
}

#[test]
fn the_macro_and_the_spec_give_the_same_kernel() {
    assert_eq!(SUM, reduce("shuffle, items: 2, block: 64"));
    assert_eq!(GEMM, sgemm("thread: 4x4, tile: 16x16x8"));
    assert_eq!(SUM.to_string(), SUM.spec_line());
    assert_eq!(
        SUM.spec_line().parse::<ReduceSpec>().map(<ReduceKernel>::new).ok().map(|k| k.is_ok()),
        Some(true)
    );
    assert!(SUM.source().contains("extern \"C\"") && GEMM.source().contains("extern \"C\""));
}

#[test]
fn reductions_run() {
    let device = Device::simulator();
    let input = values(1000);
    let expected = [input.iter().sum(), 8.0, -8.0];
    for (kernel, expected) in KERNELS.iter().zip(expected) {
        assert_eq!(kernel.run(&device, &input).expect("sound"), expected, "{kernel}");
    }
}

#[test]
fn an_empty_array_gives_the_identity() {
    let device = Device::simulator();
    let identities =
        [("sum", 0.0), ("prod", 1.0), ("max", f32::NEG_INFINITY), ("min", f32::INFINITY)];
    for (op, identity) in identities {
        for rest in ["", "shuffle", "float4, items: 2"] {
            let kernel = reduce(&format!("op: {op}, {rest}"));
            assert_eq!(kernel.run(&device, &[]).expect("sound"), identity, "{kernel}");
        }
    }
}

#[test]
fn a_launch_reports_what_ran() {
    let device = Device::simulator();
    let kernel = reduce("float4");
    let input = device.upload(&values(5000)).expect("room");
    let mut output = device.alloc(1).expect("room");
    let whole = kernel.launch(&device, &input, &mut output).expect("sound");
    assert_eq!((whole.variant(), whole.passes()), (Variant::Vector, 2));
    assert!(whole.counters().is_some_and(|counters| counters.block_barriers > 0));
    let part = input.slice(1..).expect("inside");
    let part = kernel.launch(&device, &part, &mut output).expect("sound");
    assert_eq!(part.variant(), Variant::Scalar);
}

#[test]
fn operands_of_a_reduction_are_checked() {
    let (device, other) = (Device::simulator(), Device::simulator());
    let input = device.upload(&[1.0]).expect("room");
    let mut output = device.alloc(1).expect("room");

    let foreign = other.upload(&[1.0]).expect("room");
    let error = SUM.launch(&device, &foreign, &mut output).expect_err("foreign");
    assert!(
        matches!(&error, Error::WrongDevice { argument, .. } if argument == "input"),
        "{error}"
    );

    let mut none = output.slice_mut(1..).expect("the end");
    let error = SUM.launch(&device, &input, &mut none).expect_err("no room");
    assert!(
        matches!(&error, Error::WrongExtent { argument, .. } if argument == "output"),
        "{error}"
    );

    let padded = device.upload_matrix_padded(&values(6), 2, 3).expect("room");
    let error = SUM.launch(&device, &padded, &mut output).expect_err("padding");
    assert!(
        matches!(
            &error,
            Error::Padded { argument, cols: 3, row_stride: 4, .. } if argument == "input"
        ),
        "{error}"
    );
    let packed = device.upload_matrix(&values(8), 2, 4).expect("room");
    SUM.launch(&device, &packed, &mut output).expect("consecutive");
    assert_eq!(device.download(&output).expect("ours"), [values(8).iter().sum::<f32>()]);
}

#[test]
fn products_run_for_any_shape() {
    let device = Device::simulator();
    for size @ (m, n, k) in
        [(1, 1, 1), (33, 17, 9), (16, 16, 8), (5, 40, 1), (3, 2, 0), (0, 4, 4), (4, 0, 4)]
    {
        let (a, b) = (values(m * k), values(k * n));
        let c = GEMM.run(&device, &a, &b, size).expect("sound");
        assert_eq!(c, product(&a, &b, size), "{size:?}");
    }
}

#[test]
fn a_pitched_kernel_leaves_padding_alone() {
    let device = Device::simulator();
    let kernel = sgemm("tile: 16x16x8, thread: 4x4, float4, pitched");
    let size @ (m, n, k) = (19, 21, 11);
    let (a, b) = (values(m * k), values(k * n));
    assert_eq!(kernel.run(&device, &a, &b, size).expect("sound"), product(&a, &b, size));

    let pitched = |values: &[f32], rows: usize, cols: usize, pitch: usize| {
        let mut padded = vec![f32::NAN; rows * pitch];
        for row in 0..rows {
            padded[row * pitch..][..cols].copy_from_slice(&values[row * cols..][..cols]);
        }
        let buffer = device.upload(&padded).expect("room");
        Matrix::from_buffer(buffer, rows, cols, pitch).expect("room")
    };
    for (pitch, variant) in [(24, Variant::Vector), (23, Variant::Scalar)] {
        let (a, b) = (pitched(&a, m, k, pitch), pitched(&b, k, n, pitch));
        let mut c = pitched(&vec![0.0; m * n], m, n, pitch);
        let launched = kernel.launch(&device, &a, &b, &mut c, size).expect("sound");
        assert_eq!(launched.variant(), variant);
        assert_eq!(
            device.download_matrix(&c).expect("ours"),
            product(&values(m * k), &values(k * n), size)
        );
        let rows = device.download(&c.into_buffer()).expect("ours");
        assert!(
            rows.chunks(pitch).all(|row| row[n..].iter().all(|x| x.is_nan())),
            "padding written"
        );
    }
}

#[test]
fn operands_of_a_product_are_checked() {
    let device = Device::simulator();
    let message = |a: usize, b: usize, size| {
        GEMM.run(&device, &values(a), &values(b), size).expect_err("a wrong extent").to_string()
    };
    assert_eq!(message(5, 6, (2, 2, 3)), "`a` has 5 elements, but m·k = 2·3 = 6 are needed");
    assert_eq!(message(6, 7, (2, 2, 3)), "`b` has 7 elements, but k·n = 3·2 = 6 are needed");
    assert!(message(1, 1, (usize::MAX, 1, 2)).contains("m·k"));
    assert!(message(0, 0, (usize::MAX, 2, 0)).contains("`c` would have m·n"));

    let buffer = |n| device.alloc(n).expect("room");
    let (a, b, mut c) = (buffer(6), buffer(6), buffer(3));
    let error = GEMM.launch(&device, &a, &b, &mut c, (2, 2, 3)).expect_err("one short");
    assert!(
        matches!(&error, Error::WrongExtent { argument, has: 3, .. } if argument == "c"),
        "{error}"
    );
    let error =
        GEMM.launch(&device, &a, &b, &mut buffer(0), (0, 1 << 31, 0)).expect_err("beyond i32");
    let Error::Unmet(unmet) = &error else { panic!("{error}") };
    assert_eq!(unmet.subject.to_string(), "n");
    assert_eq!((&unmet.need, unmet.value), (&Need::AtMost(i32::MAX as u64), 1 << 31));

    let matrix = device.alloc_matrix(3, 2).expect("room");
    let error =
        GEMM.launch(&device, &matrix, &b, &mut buffer(4), (2, 2, 3)).expect_err("transposed");
    assert_eq!(
        error.to_string(),
        "`a` has 6 elements, but its shape 3 x 2 is not m x k = 2 x 3: pass `a.t()`. The key \
         `layout` does not transpose a view"
    );
    let matrix = device.alloc_matrix_padded(2, 3).expect("room");
    let error = GEMM.launch(&device, &matrix, &b, &mut buffer(4), (2, 2, 3)).expect_err("padding");
    assert!(error.to_string().contains("Add `pitched`"), "{error}");
}

#[test]
fn an_aligned_kernel_refuses_other_shapes() {
    let device = Device::simulator();
    let kernel = sgemm("tile: 16x16x8, thread: 4x4, bounds: aligned");
    let size = (32, 16, 8);
    let (a, b) = (values(32 * 8), values(8 * 16));
    assert_eq!(kernel.run(&device, &a, &b, size).expect("sound"), product(&a, &b, size));
    let error = kernel.run(&device, &values(33 * 8), &b, (33, 16, 8)).expect_err("not divisible");
    assert!(matches!(error, Error::Unmet { .. }), "{error}");

    // K is smaller than a tile: the error suggests padding, not splitting.
    let (a, b) = (values(16 * 3), values(3 * 16));
    let error = kernel.run(&device, &a, &b, (16, 16, 3)).expect_err("not divisible").to_string();
    assert!(error.contains("k to be a multiple of 8, but it is 3 = 0·8 + 3. Pad"), "{error}");
    assert!(!error.contains("Split"), "{error}");
}

#[test]
fn an_aligned_kernel_takes_a_k_of_zero() {
    let device = Device::simulator();
    for more in ["", ", prefetch", ", double_buffer", ", stages: 3", ", float4, pitched"] {
        let kernel = sgemm(&format!("tile: 16x16x8, thread: 4x4, bounds: aligned{more}"));
        for size @ (m, n, _) in [(32, 16, 0), (0, 16, 0), (0, 0, 0)] {
            let (a, b) = (device.alloc(0).expect("room"), device.alloc(0).expect("room"));
            let mut c = device.upload(&vec![7.0; m * n]).expect("room");
            let launched = kernel.launch(&device, &a, &b, &mut c, size).expect("empty sums");
            assert_eq!(launched.variant(), Variant::Guarded);
            let c = device.download(&c).expect("ours");
            assert!(c.iter().all(|c| c.to_bits() == 0), "{more} {size:?}");
        }
    }
}

#[test]
fn an_aligned_kernel_refuses_other_shapes_whatever_k_is() {
    let device = Device::simulator();
    let kernels = [
        ("tile: 16x16x8, thread: 4x4, bounds: aligned", "sgemm_16x16x8_4x4_aligned"),
        ("block: 16x8, coarsen: 2, bounds: aligned", "sgemm_naive_16x8_coarsen2_aligned"),
        (
            "block: 16x16, lanes: m, unroll: 4, bounds: aligned",
            "sgemm_naive_16x16_lanes_m_unroll4_aligned",
        ),
    ];
    let operands = device.alloc(33 * 16).expect("room");
    let mut c = device.alloc(33 * 16).expect("room");
    for (spec, name) in kernels {
        let kernel = sgemm(spec);
        for k in [0, 8] {
            for ((m, n), part) in [((33, 16), "m to be a multiple of 16"), ((32, 3), "n to be")] {
                let launched = kernel.launch(&device, &operands, &operands, &mut c, (m, n, k));
                let error = launched.expect_err("no tiles").to_string();
                // The error names the requested kernel, even if a fallback kernel would run.
                assert!(error.starts_with(&format!("kernel `{name}` needs ")), "{error}");
                assert!(error.contains(part), "{error}");
            }
        }
    }
}

#[test]
fn threads_may_launch_one_kernel_at_once() {
    let device = Device::simulator();
    std::thread::scope(|scope| {
        for n in [0, 1, 500, 70_000] {
            let device = &device;
            scope.spawn(move || {
                let input = values(n);
                let expected: f32 = input.iter().sum();
                assert_eq!(SUM.run(device, &input).expect("sound"), expected, "{n}");
            });
        }
    });
}

#[test]
fn a_faulty_spec_is_an_error() {
    let error =
        "block: 100".parse::<ReduceSpec>().map_err(Error::from).and_then(<ReduceKernel>::new);
    assert!(matches!(error, Err(Error::Spec(_))), "{error:?}");
}

/// A part of a transpose is the transpose of a part.
#[test]
fn a_part_of_a_transpose_starts_where_it_says() {
    let device = Device::simulator();
    let all = values(6 * 9);
    let buffer = device.upload(&all).expect("room");
    let matrix = MatrixRef::new(&buffer, 6, 9).expect("room");
    // A column of the matrix is a row of its transpose. Any kernel can read a single row.
    let ones = device.upload(&[1.0]).expect("room");
    let one = MatrixRef::new(&ones, 1, 1).expect("room");
    for (row, col) in [(0, 0), (2, 7), (5, 3)] {
        let element = matrix.t().part(col..col + 1, row..row + 1).expect("inside");
        let mut c = device.alloc(1).expect("room");
        let mut to = MatrixMut::new(&mut c, 1, 1).expect("room");
        sgemm("").call(&device).launch(&element, &one, &mut to).expect("1x1");
        assert_eq!(device.download(&c).expect("ours"), [all[row * 9 + col]]);
    }
    let error = {
        let mut c = device.alloc(9 * 6).expect("room");
        let mut to = MatrixMut::new(&mut c, 9, 6).expect("room");
        let eye = device.alloc(36).expect("room");
        let eye = MatrixRef::new(&eye, 6, 6).expect("room");
        sgemm("").call(&device).launch(&matrix.t(), &eye, &mut to).expect_err("columns lie apart")
    };
    assert!(error.to_string().contains("contiguous rows of `a`"), "{error}");
}

/// The counters of a launch are those of its first step. Each step also has its own counters.
#[test]
fn every_step_is_counted_for_itself() {
    let device = Device::simulator();
    let sum = ReduceKernel::new(ReduceSpec::default()).expect("sound");
    let input = device.upload(&vec![1.0; 256 * 256 + 1]).expect("room");
    let mut output = device.alloc(1).expect("room");
    let launched = sum.launch(&device, &input, &mut output).expect("room");
    let blocks: Vec<u64> =
        launched.steps().map(|step| step.counters().expect("simulated").blocks).collect();
    assert_eq!(blocks, [257, 2, 1]);
    assert_eq!(launched.counters().map(|c| c.blocks), Some(257));
}
