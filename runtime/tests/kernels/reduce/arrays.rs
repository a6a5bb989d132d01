//! Layouts of the inputs and of the results of reductions.

use super::{Small, by_name, device, spec};
use gemm_runtime::error::{Need, Subject};
use gemm_runtime::half::{bf16, f16};
use gemm_runtime::{Device, Error, MatrixMut, MatrixRef, ReduceKernel, reduce_kernel};

const ROWS: ReduceKernel = reduce_kernel!(over: rows);
const COLUMNS: ReduceKernel = reduce_kernel!(over: columns);
const MIDDLE: ReduceKernel = reduce_kernel!(over: middle);

/// Array of (outer, length, inner) elements with a row stride and a matrix stride.
struct Lies {
    size: (usize, usize, usize),
    pitch: usize,
    distance: usize,
}

impl Lies {
    fn at(&self, [outer, len, inner]: [usize; 3]) -> usize {
        outer * self.distance + len * self.pitch + inner
    }

    /// Positions of the elements that are reduced into each result.
    fn columns(&self) -> impl Iterator<Item = impl Iterator<Item = usize>> {
        let (outer, len, inner) = self.size;
        let columns = (0..outer).flat_map(move |o| (0..inner).map(move |i| (o, i)));
        columns.map(move |(o, i)| (0..len).map(move |l| self.at([o, l, i])))
    }

    fn span(&self) -> usize {
        let (outer, len, inner) = self.size;
        self.at([outer - 1, len - 1, inner - 1]) + 1
    }
}

/// Reduces a view inside one array into a view inside another and compares the results. The
/// surrounding elements would change the sums.
fn folds<T: Small, R: Small>(device: &Device, over: &str, lies: &Lies, pitched: bool) {
    let (outer, len, inner) = lies.size;
    let more = if pitched { ", pitched" } else { "" };
    let kernel = by_name(&format!("type: {}, over: {over}{more}", T::NAME));
    for start in [0, 1, 3] {
        let mut elements = vec![100; start + lies.span() + 2];
        for n in 0..outer * len * inner {
            let index = [n / (len * inner), n / inner % len, n % inner];
            elements[start + lies.at(index)] = (n % 3) as u8;
        }
        let memory: Vec<T> = elements.iter().map(|value| T::of(*value)).collect();
        let memory = device.upload_of(&memory).expect("room");
        let view = memory.slice(start..start + lies.span()).expect("inside");
        let view = match over {
            "rows" => MatrixRef::pitched(&view, outer, len, lies.distance),
            "columns" => MatrixRef::pitched(&view, len, inner, lies.pitch),
            _ => MatrixRef::batch_apart(&view, (outer, lies.distance), len, inner, lies.pitch),
        };
        let (view, count) = (view.expect("inside"), outer * inner);
        let mut results = device.upload_of(&vec![R::of(77); count + 3]).expect("room");
        let mut part = results.slice_mut(2..2 + count).expect("inside");
        let call = kernel.call(device).input("input", &view).output("output", &mut part);
        call.launch().unwrap_or_else(|error| panic!("{kernel} at {start}: {error}"));
        let sums = lies.columns().map(|places| places.map(|at| elements[start + at]).sum());
        let expected: Vec<R> = [77, 77].into_iter().chain(sums).chain([77]).map(R::of).collect();
        assert_eq!(device.download(&results).expect("ours"), expected, "{kernel} at {start}");
    }
}

fn folds_all<T: Small, R: Small>(device: &Device) {
    let packed =
        |outer, len, inner| Lies { size: (outer, len, inner), pitch: inner, distance: len * inner };
    folds::<T, R>(device, "rows", &packed(5, 37, 1), false);
    folds::<T, R>(device, "columns", &packed(1, 13, 21), false);
    folds::<T, R>(device, "middle", &packed(3, 5, 9), false);
    let apart = |size, pitch, distance| Lies { size, pitch, distance };
    folds::<T, R>(device, "rows", &apart((4, 35, 1), 1, 41), true);
    folds::<T, R>(device, "columns", &apart((1, 11, 6), 8, 0), true);
    folds::<T, R>(device, "middle", &apart((3, 4, 7), 10, 50), true);
}

#[test]
fn every_element_is_folded_over_every_axis_where_it_lies() {
    let device = device();
    folds_all::<f32, f32>(&device);
    folds_all::<f64, f64>(&device);
    folds_all::<f16, f32>(&device);
    folds_all::<bf16, f32>(&device);
    folds_all::<i8, i32>(&device);
    folds_all::<u8, u32>(&device);
    folds_all::<i32, i32>(&device);
    folds_all::<u32, u32>(&device);
    folds_all::<i64, i64>(&device);
    folds_all::<u64, u64>(&device);
}

#[test]
fn rows_of_a_batch_are_rows_where_they_are_one_distance_apart() {
    let device = device();
    let elements: Vec<f32> = (0..64).map(|i| i as f32).collect();
    let memory = device.upload(&elements).expect("room");
    let pitched: ReduceKernel = reduce_kernel!(over: rows, pitched);
    let mut sums = device.alloc(6).expect("room");
    let sum_of = |first: usize| (first..first + 4).sum::<usize>() as f32;

    let packed = MatrixRef::batch(&memory, 3, 2, 4).expect("room");
    ROWS.launch(&device, &packed, &mut sums).expect("24 elements in rows of 4");
    assert_eq!(device.download(&sums).expect("ours"), [0, 4, 8, 12, 16, 20].map(sum_of));
    let even = MatrixRef::batch_apart(&memory, (3, 14), 2, 4, 7).expect("room");
    pitched.launch(&device, &even, &mut sums).expect("rows 7 apart");
    assert_eq!(device.download(&sums).expect("ours"), [0, 7, 14, 21, 28, 35].map(sum_of));
    // If each matrix has one row, the matrix stride is the row stride.
    let single = MatrixRef::batch_apart(&memory, (3, 9), 1, 4, 4).expect("room");
    pitched.launch(&device, &single, &mut sums).expect("rows 9 apart");
    assert_eq!(
        device.download(&sums.slice(..3).expect("3")).expect("ours"),
        [0, 9, 18].map(sum_of)
    );

    let uneven = MatrixRef::batch_apart(&memory, (3, 20), 2, 4, 7).expect("room");
    let error = pitched.launch(&device, &uneven, &mut sums).expect_err("7, then 13");
    assert!(
        matches!(
            &error,
            Error::UnevenRows { argument, row_stride: 7, step: 13 } if argument == "input"
        ),
        "{error}"
    );
    let error = COLUMNS.launch(&device, &packed, &mut sums).expect_err("three matrices");
    assert!(error.to_string().contains("a batch of 3 matrices of 2x4. Fold"), "{error}");
}

#[test]
fn inputs_must_have_the_shape_of_over() {
    let device = device();
    let memory = device.upload(&[1.0; 24]).expect("room");
    let mut to = device.alloc(24).expect("room");
    for (kernel, remedy) in [
        (
            &ROWS,
            "a matrix, whose rows are folded, but the call gives a vector of 24 elements. Pass",
        ),
        (&COLUMNS, "`MatrixRef::new(&elements, len, inner)`"),
        (&MIDDLE, "`MatrixRef::batch(&elements, outer, len, inner)`"),
    ] {
        let error = kernel.launch(&device, &memory, &mut to).expect_err("a vector");
        assert!(
            matches!(&error, Error::WrongOperand { operand, .. } if operand == "input"),
            "{error}"
        );
        assert!(error.to_string().contains(remedy), "{error}");
    }
    // One matrix is a batch of one.
    let matrix = MatrixRef::new(&memory, 4, 6).expect("room");
    MIDDLE.launch(&device, &matrix, &mut to).expect("sound");
    assert_eq!(device.download(&to).expect("ours")[..7], [4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 0.0]);
    // These kernels read neither a transpose nor padding.
    let error = ROWS.launch(&device, &matrix.t(), &mut to).expect_err("columns");
    let Error::Unmet(unmet) = &error else { panic!("{error}") };
    assert_eq!((&unmet.need, unmet.value), (&Need::Exactly(1), 6));
    let remedy = "apart. If it is a transpose, fold the matrix itself: `over: rows` of a matrix is \
                  `over: columns` of its transpose; otherwise copy the elements to a row-major \
                  matrix";
    assert!(error.to_string().contains(remedy), "{error}");
    let part = matrix.part(0..4, 1..4).expect("inside");
    for kernel in [&ROWS, &COLUMNS, &MIDDLE] {
        let error = kernel.launch(&device, &part, &mut to).expect_err("padding");
        let Error::Unmet(unmet) = &error else { panic!("{error}") };
        assert!(
            matches!(&unmet.subject, Subject::Stride { name, .. } if name == "input"),
            "{error}"
        );
        assert_eq!((&unmet.need, unmet.value), (&Need::Exactly(3), 6));
        assert!(error.to_string().contains("Add `pitched`"), "{error}");
    }
}

#[test]
fn results_have_room() {
    let device = device();
    let memory = device.upload(&[1.0; 30]).expect("room");
    let matrix = MatrixRef::new(&memory, 5, 6).expect("room");
    let batch = MatrixRef::batch(&memory, 2, 3, 5).expect("room");
    let mut four = device.alloc(4).expect("room");
    let message = |outcome: Result<_, Error>| outcome.map(|_| ()).expect_err("no room").to_string();
    assert_eq!(
        message(ROWS.launch(&device, &matrix, &mut four)),
        "`output` has 4 elements, but outer = 5 are needed, one for each row"
    );
    assert_eq!(
        message(COLUMNS.launch(&device, &matrix, &mut four)),
        "`output` has 4 elements, but inner = 6 are needed, one for each column"
    );
    assert_eq!(
        message(MIDDLE.launch(&device, &batch, &mut four)),
        "`output` has 4 elements, but outer·inner = 2·5 = 10 are needed, one for each column of \
         each matrix"
    );
    // A matrix receives the results of a batch, row by row.
    let mut to = device.upload(&[7.0; 12]).expect("room");
    let mut shaped = MatrixMut::new(&mut to, 2, 5).expect("room");
    MIDDLE.launch(&device, &batch, &mut shaped).expect("2x5");
    let mut turned = MatrixMut::new(&mut to, 5, 2).expect("room");
    assert_eq!(
        message(MIDDLE.launch(&device, &batch, &mut turned)),
        "`output` has 10 elements, but its shape 5 x 2 is not outer x inner = 2 x 5"
    );
    let mut wide = MatrixMut::new(&mut to, 2, 6).expect("room");
    let mut padded = wide.part(0..2, 0..5).expect("inside");
    let error = MIDDLE.launch(&device, &batch, &mut padded).expect_err("padding");
    assert!(matches!(&error, Error::Padded { argument, .. } if argument == "output"), "{error}");
    assert!(
        error
            .to_string()
            .ends_with("Pass a contiguous buffer, such as one from `device.alloc_of(len)?`")
    );
    let mut apart = MatrixMut::new(&mut to, 6, 2).expect("room");
    let mut column = apart.part(0..5, 0..1).expect("inside");
    let error = ROWS.launch(&device, &matrix, &mut column).expect_err("results lie apart");
    assert!(matches!(&error, Error::Padded { argument, .. } if argument == "output"), "{error}");
    assert_eq!(device.download(&to).expect("ours"), [[3.0; 10].as_slice(), &[7.0; 2]].concat());
    assert_eq!(device.download(&four).expect("ours"), [0.0; 4]);
}

/// `sources` covers all kernels of a launch: both kernels of two launches, and the one kernel of
/// several passes.
#[test]
fn sources_are_those_of_all_launches() {
    let sources = |line: &str| {
        <ReduceKernel>::new(line.parse().expect("a spec")).expect("a kernel").sources().to_vec()
    };
    let two = sources("map: |x| x * x, finish: |s| sqrt(s)");
    assert!(matches!(&two[..], [_, last] if last.contains("_of_partials(")), "{two:?}");
    assert!(!two[0].contains("_of_partials("), "{}", two[0]);
    for line in ["", "launch: once"] {
        assert_eq!(sources(line).len(), 1, "{line}");
    }
}

/// The error says why an array is not contiguous.
#[test]
fn matrices_that_lie_apart_are_no_array() {
    let device = Device::simulator();
    let elements = device.upload(&[1.0; 24]).expect("elements");
    let apart = MatrixRef::batch_apart(&elements, (2, 10), 4, 2, 2).expect("inside");
    let mut output = device.alloc(1).expect("room");
    let kernel = <ReduceKernel>::new("".parse().expect("a spec")).expect("a kernel");
    let error = kernel.launch(&device, &apart, &mut output).expect_err("gaps");
    assert_eq!(
        error.to_string(),
        "`input` must have consecutive elements, but its matrices of 4x2 start every 10 elements. \
         Copy it to a contiguous buffer first"
    );
}

/// With tickets, the last block computes the results in a single launch. The results have the same
/// bits as with several launches, and the tickets are reset for the next launch.
#[test]
fn one_launch_gives_what_several_do() {
    let device = device();
    let elements: Vec<f32> = (0..6000).map(|i| ((i * 7919) % 1009) as f32 * 0.37 - 150.0).collect();
    let memory = device.upload(&elements).expect("room");
    let rows = MatrixRef::new(&memory, 6, 1000).expect("room");
    let columns = MatrixRef::batch(&memory, 3, 200, 10).expect("room");
    for (line, count, over) in [
        ("block: 64, blocks: 7", 1, "all"),
        ("block: 32, group: 32, blocks: 5, over: rows", 6, "rows"),
        ("block: 64, group: 16, blocks: 4, over: middle", 30, "middle"),
    ] {
        let kernel = |form: &str| {
            ReduceKernel::<f32, f32>::new(spec(&format!("{line}, launch: {form}"))).expect("sound")
        };
        let (passes, once) = (kernel("passes"), kernel("once"));
        let run = |kernel: &ReduceKernel| {
            let mut sums = device.upload(&[f32::NAN; 30]).expect("room");
            let launched = match over {
                "all" => kernel.launch(&device, &memory, &mut sums),
                "rows" => kernel.launch(&device, &rows, &mut sums),
                _ => kernel.launch(&device, &columns, &mut sums),
            };
            let passes = launched.expect("sound").passes();
            let sums = device.download(&sums).expect("ours");
            (passes, sums.iter().map(|sum| sum.to_bits()).collect::<Vec<_>>())
        };
        let (two, expected) = run(&passes);
        assert_eq!(two, 2, "{line}");
        assert!(expected[count..].iter().all(|bits| *bits == f32::NAN.to_bits()), "{line}");
        for _ in 0..3 {
            assert_eq!(run(&once), (1, expected.clone()), "{line}");
        }
    }
}

#[test]
fn inputs_agree() {
    let device = device();
    let dot: ReduceKernel<(f32, f32), f32> = reduce_kernel!(map: |x, y| x * y);
    let (x, y) =
        (device.upload(&[2.0; 12]).expect("room"), device.upload(&[3.0; 12]).expect("room"));
    let mut to = device.alloc(12).expect("room");
    dot.launch(&device, (&x, &y.slice(0..12).expect("all")), &mut to).expect("12 each");
    assert_eq!(device.download(&to).expect("ours")[0], 72.0);
    let error = dot.launch(&device, (&x, &y.slice(1..).expect("11")), &mut to).expect_err("11");
    assert_eq!(error.to_string(), "len is 12 in `x` but 11 in `y`: the shapes do not match");
    let line = "over: middle, map: |p, q, r| p * q + r";
    let of_three = ReduceKernel::<(f32, f32, f32), f32>::new(spec(line)).expect("its type");
    let shaped = |outer, len, inner| MatrixRef::batch(&x, outer, len, inner).expect("room");
    of_three
        .launch(&device, (&shaped(2, 3, 2), &shaped(2, 3, 2), &shaped(2, 3, 2)), &mut to)
        .expect("alike");
    assert_eq!(device.download(&to).expect("ours")[..4], [18.0; 4]);
    for (other, extent) in [
        ((1, 3, 2), "outer is 2 in `p` but 1"),
        ((2, 2, 2), "len is 3 in `p` but 2"),
        ((2, 3, 1), "inner is 2 in `p` but 1"),
    ] {
        let other = shaped(other.0, other.1, other.2);
        let arrays = (&shaped(2, 3, 2), &shaped(2, 3, 2), &other);
        let error = of_three.launch(&device, arrays, &mut to).expect_err("another shape");
        assert_eq!(error.to_string(), format!("{extent} in `r`: the shapes do not match"));
    }
}

#[test]
fn arrays_belong_to_the_device() {
    let (device, other) = (device(), device());
    let kernel: ReduceKernel<(f32, f32), f32> = reduce_kernel!(map: |x, y| x - y);
    let statistics: ReduceKernel<f32, (f32, f32)> = reduce_kernel!(op: mean_var);
    let (here, there) = (device.upload(&[1.0]).expect("room"), other.upload(&[1.0]).expect("room"));
    let (mut to, mut far) = (device.alloc(1).expect("room"), other.alloc(1).expect("room"));
    let foreign = |outcome: Result<_, Error>, name: &str| match outcome {
        Err(Error::WrongDevice { argument, .. }) => assert_eq!(argument, name),
        other => panic!("another device: {:?}", other.map(|_: gemm_runtime::LaunchReport| ())),
    };
    foreign(kernel.launch(&device, (&here, &there), &mut to), "y");
    foreign(kernel.launch(&device, (&here, &here), &mut far), "output");
    foreign(statistics.launch(&device, &here, (&mut to, &mut far)), "var");
}

#[test]
fn no_index_is_asked_of_no_elements() {
    let device = device();
    let argmax: ReduceKernel<f32, u32> = reduce_kernel!(op: argmax);
    let argmin: ReduceKernel<f32, u64> = reduce_kernel!(op: argmin, index: u64);
    let error = argmax.run(&device, &[]).expect_err("no element");
    assert_eq!(
        error.to_string(),
        "`input` has 0 elements, but `op: argmax` needs at least one, whose index is the result"
    );
    assert!(matches!(argmin.run(&device, &[]), Err(Error::WrongExtent { has: 0, .. })));
    assert_eq!(argmax.run(&device, &[1.0, 3.0, 3.0]).expect("three"), 1);
    // For an empty row the index is the maximum of its type.
    let rows: ReduceKernel<f32, u32> = reduce_kernel!(op: argmax, over: rows);
    assert_eq!(rows.run_over(&device, &[], (2, 0, 1)).expect("empty rows"), [u32::MAX; 2]);
    let columns: ReduceKernel<f32, u64> = reduce_kernel!(op: argmin, over: columns, index: u64);
    assert_eq!(columns.run_over(&device, &[], (1, 0, 3)).expect("empty"), [u64::MAX; 3]);
}
