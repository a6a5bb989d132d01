//! Views of matrices: launches and checks.

use super::{product, sgemm, values};
use gemm_runtime::bounds::AsMatrix;
use gemm_runtime::{Device, Error, MatrixList, MatrixMut, MatrixRef, ReduceKernel, ReduceSpec};

/// Parts of larger matrices at every offset, surrounded by NaN.
#[test]
fn views_are_multiplied_where_they_lie() {
    let device = Device::simulator();
    let kernel = sgemm("tile: 16x16x8, thread: 4x4, float4, pitched");
    let (m, n, k) = (5, 6, 7);
    let (a, b) = (values(m * k), values(k * n));
    let among = |values: &[f32], rows: usize, cols: usize, (top, left): (usize, usize)| {
        let mut all = vec![f32::NAN; 12 * 12];
        for row in 0..rows {
            all[(top + row) * 12 + left..][..cols].copy_from_slice(&values[row * cols..][..cols]);
        }
        device.upload(&all).expect("room")
    };
    for left in 0..5 {
        let (a_all, b_all) = (among(&a, m, k, (3, left)), among(&b, k, n, (5, 1)));
        let mut c_all = among(&vec![f32::NAN; m * n], m, n, (0, 0));
        let a = MatrixRef::new(&a_all, 12, 12).and_then(|a| a.part(3..3 + m, left..left + k));
        let b = MatrixRef::new(&b_all, 12, 12).and_then(|b| b.part(5..5 + k, 1..1 + n));
        let mut c = MatrixMut::new(&mut c_all, 12, 12).expect("room");
        let mut c = c.part(7..7 + m, left..left + n).expect("inside");
        assert_eq!((c.rows(), c.cols(), c.row_stride(), c.col_stride()), (m, n, 12, 1));
        let (a, b) = (a.expect("inside"), b.expect("inside"));
        kernel.call(&device).launch(&a, &b, &mut c).expect("sound");
        let expected = product(&values(m * k), &values(k * n), (m, n, k));
        let c = device.download(&c_all).expect("ours");
        for (at, value) in c.iter().enumerate() {
            let (row, col) = (at / 12, at % 12);
            if (7..7 + m).contains(&row) && (left..left + n).contains(&col) {
                assert_eq!(*value, expected[(row - 7) * n + col - left]);
            } else {
                assert!(value.is_nan(), "row {row}, column {col}");
            }
        }
    }
}

#[test]
fn views_are_checked() {
    let device = Device::simulator();
    let mut buffer = device.alloc(13).expect("room");
    assert!(matches!(MatrixRef::new(&buffer, 2, 7), Err(Error::WrongExtent { has: 13, .. })));
    let short = MatrixRef::pitched(&buffer, 2, 5, 4);
    assert!(matches!(short, Err(Error::ShortPitch { pitch: 4, cols: 5 })));
    let matrix = MatrixRef::pitched(&buffer, 2, 5, 8).expect("8 + 5 = 13");
    assert!(matches!(matrix.part(0..3, 0..5), Err(Error::OutOfRange { end: 3, len: 2, .. })));
    assert!(matches!(matrix.part(0..2, 2..6), Err(Error::OutOfRange { end: 6, len: 5, .. })));
    let told = |part: Result<MatrixRef<'_>, Error>| part.expect_err("no part").to_string();
    let rows = "the range 0..3 is not within 0..2, the rows of the matrix: use a range within it";
    assert_eq!(told(matrix.part(0..3, 0..5)), rows);
    let cols = "the range 2..6 is not within 0..5, the columns of the matrix: use a range within \
                it";
    assert_eq!(told(matrix.part(0..2, 2..6)), cols);
    #[expect(clippy::reversed_empty_ranges, reason = "what is tested")]
    let reversed = told(matrix.part(0..2, 3..1));
    let backwards = "the range 3..1 of the columns of the matrix ends before it starts: write the \
                     smaller number first";
    assert_eq!(reversed, backwards);
    let behind = buffer.slice(14..).expect_err("no part").to_string();
    assert!(behind.starts_with("the range 14.. is not within 0..13, the elements"), "{behind}");
    let huge = told(MatrixRef::new(&buffer, usize::MAX, 5));
    assert!(huge.starts_with("a matrix of 18446744073709551615 rows of 5 elements"), "{huge}");
    let empty = matrix.part(2..2, 5..5).expect("at the end");
    assert_eq!((empty.rows(), empty.cols()), (0, 0));
    let t = matrix.part(1..2, 1..5).expect("inside").t();
    assert_eq!((t.rows(), t.cols(), t.row_stride(), t.col_stride()), (4, 1, 1, 8));
    assert!(MatrixMut::pitched(&mut buffer, 2, 6, 8).is_err());
    let mut writable = MatrixMut::new(&mut buffer, 2, 5).expect("10 of 13");
    let error = writable.part(1..4, 0..5).expect_err("two rows").to_string();
    assert!(error.contains("0..2, the rows of the matrix"), "{error}");
}

#[test]
fn a_call_takes_its_extents_from_the_views() {
    let device = Device::simulator();
    let (a, b) = (device.alloc(6).expect("room"), device.alloc(12).expect("room"));
    let mut c = device.alloc(12).expect("room");
    let (a, b) = (MatrixRef::new(&a, 2, 3), MatrixRef::new(&b, 3, 4));
    let (a, b) = (a.expect("room"), b.expect("room"));
    let kernel = sgemm("");
    let mut other = MatrixMut::new(&mut c, 3, 4).expect("room");
    let error = kernel.call(&device).launch(&a, &b, &mut other).expect_err("m differs");
    assert_eq!(error.to_string(), "m is 2 in `a` but 3 in `c`: the shapes do not match");
    let mut to = other.part(0..2, 0..3).expect("inside");
    let error = kernel.call(&device).launch(&a, &b, &mut to).expect_err("n differs");
    assert_eq!(error.to_string(), "n is 4 in `b` but 3 in `c`: the shapes do not match");
    let narrow = a.part(0..2, 0..2).expect("inside");
    let mut to = other.part(0..2, 0..4).expect("inside");
    let error = kernel.call(&device).launch(&narrow, &b, &mut to).expect_err("k differs");
    assert_eq!(error.to_string(), "k is 2 in `a` but 3 in `b`: the shapes do not match");
    // A view whose transpose fits is named, before the extent that differs.
    let launch = |a: &MatrixRef<'_>, b: &MatrixRef<'_>, to: &mut MatrixMut<'_>| {
        kernel.call(&device).launch(a, b, to).expect_err("a transpose").to_string()
    };
    let mut to = other.part(0..2, 0..4).expect("inside");
    let of_b = "`b` has 12 elements, but its shape 4 x 3 is not k x n = 3 x 4: pass `b.t()`. The \
                key `layout` does not transpose a view";
    assert_eq!(launch(&a, &b.t(), &mut to), of_b);
    let of_a = "`a` has 6 elements, but its shape 3 x 2 is not m x k = 2 x 3: pass `a.t()`. The \
                key `layout` does not transpose a view";
    assert_eq!(launch(&a.t(), &b, &mut to), of_a);
    assert_eq!(launch(&a.t(), &b.t(), &mut to), of_a);
    let sizes = kernel.launch(&device, &a, &b.t(), &mut to, (2, 4, 3)).expect_err("a transpose");
    assert_eq!(sizes.to_string(), of_b);
    let called = gemm_runtime::sgemm(&a, &b.t(), &mut to).run(&device).expect_err("a transpose");
    assert_eq!(called.to_string(), of_b);
    let mut turned = other.part(0..3, 0..2).expect("inside");
    let sizes = kernel.launch(&device, &a, &b, &mut turned, (2, 3, 3)).expect_err("other shapes");
    assert!(!sizes.to_string().contains("t()"), "{sizes}");
    // The kernel does not accept a transpose, except the transpose of a single row, which is a
    // column.
    let square = a.part(0..2, 0..2).expect("inside");
    let (two, mut to) =
        (b.part(0..2, 0..4).expect("inside"), other.part(0..2, 0..4).expect("inside"));
    let error = kernel.call(&device).launch(&square.t(), &two, &mut to).expect_err("columns");
    assert!(matches!(&error, Error::Unmet(_)), "{error}");
    let column = a.part(0..1, 0..3).expect("inside").t();
    let row = b.part(0..1, 0..4).expect("inside");
    kernel.call(&device).launch(&column, &row, &mut other).expect("3x1 times 1x4");
}

/// An empty view has no first element to write, even if its array continues.
#[test]
fn a_reduction_writes_nothing_to_an_empty_view() {
    let device = Device::simulator();
    let sum = ReduceKernel::new(ReduceSpec::default()).expect("sound");
    let input = device.upload(&[1.0; 64]).expect("room");
    let mut output = device.upload(&[7.0; 64]).expect("room");
    for (rows, cols) in [(3..3, 0..0), (0..8, 8..8), (0..0, 2..5)] {
        let mut whole = MatrixMut::new(&mut output, 8, 8).expect("room");
        let mut part = whole.part(rows, cols).expect("inside");
        let error = sum.launch(&device, &input, &mut part).expect_err("no element");
        assert!(
            matches!(&error, Error::WrongExtent { argument, has: 0, .. } if argument == "output"),
            "{error}"
        );
    }
    assert_eq!(device.download(&output).expect("ours"), [7.0; 64]);
    // The first element of any other part is written.
    let mut whole = MatrixMut::new(&mut output, 8, 8).expect("room");
    sum.launch(&device, &input, &mut whole.part(2..4, 3..5).expect("inside")).expect("room");
    let found = device.download(&output).expect("ours");
    assert!(found.iter().enumerate().all(|(i, v)| *v == if i == 2 * 8 + 3 { 64.0 } else { 7.0 }));
}

/// Strides of a view without elements are not checked.
#[test]
fn empty_views_have_no_strides() {
    let device = Device::simulator();
    let (a, b) = (device.alloc(64).expect("room"), device.alloc(64).expect("room"));
    let mut c = device.upload(&[7.0; 6]).expect("room");
    let (a, b) = (MatrixRef::new(&a, 8, 8), MatrixRef::new(&b, 8, 8));
    let (a, b) = (a.expect("room"), b.expect("room"));
    let kernel = sgemm("tile: 16x16x8, thread: 4x4, float4");
    let mut to = MatrixMut::new(&mut c, 3, 2).expect("room");
    let (no_k, of_no_k) =
        (a.part(0..3, 2..2).expect("inside"), b.part(4..4, 1..3).expect("inside"));
    kernel.call(&device).launch(&no_k, &of_no_k, &mut to).expect("an empty sum");
    assert_eq!(device.download(&c).expect("ours"), [0.0; 6]);
    let sum = ReduceKernel::new(ReduceSpec::default()).expect("sound");
    let mut value = device.upload(&[7.0]).expect("room");
    sum.launch(&device, &a.part(0..8, 2..2).expect("inside"), &mut value).expect("an empty sum");
    assert_eq!(device.download(&value).expect("ours"), [0.0]);
}

/// The row stride of a matrix with at most one row is not checked.
#[test]
fn one_row_may_have_any_pitch() {
    let device = Device::simulator();
    let kernel = sgemm("tile: 16x16x8, thread: 4x4, float4, pitched");
    let batched = sgemm("tile: 16x16x8, thread: 4x4, float4, pitched, batch: strided");
    let (a, b) = (device.upload(&[2.0; 8]).expect("room"), device.upload(&[3.0; 8]).expect("room"));
    for pitch in [0, 3, 8, 9, i32::MAX as usize, 1 << 31, usize::MAX] {
        let row = MatrixRef::pitched(&a, 1, 8, pitch).expect("8 elements");
        let column = MatrixRef::new(&b, 8, 1).expect("8 elements");
        let mut c = device.alloc(16).expect("room");
        let mut to = MatrixMut::pitched(&mut c, 1, 1, pitch).expect("1 element");
        kernel.call(&device).launch(&row, &column, &mut to).expect("an inner product");
        assert_eq!(device.download(&to).expect("ours"), [48.0]);

        let column = MatrixRef::new(&a, 4, 1).expect("4 elements");
        let row = MatrixRef::pitched(&b, 1, 4, pitch).expect("4 elements");
        let mut to = MatrixMut::new(&mut c, 4, 4).expect("16 elements");
        kernel.call(&device).launch(&column, &row, &mut to).expect("an outer product");
        assert_eq!(device.download(&to).expect("ours"), [6.0; 16]);

        let rows = MatrixRef::batch_apart(&a, (2, 4), 1, 4, pitch).expect("8 elements");
        let column = MatrixRef::new(&b, 4, 1).expect("4 elements");
        let mut to = MatrixMut::batch_apart(&mut c, (2, 3), 1, 1, pitch).expect("4 elements");
        batched.call(&device).launch(&rows, &column, &mut to).expect("two inner products");
        assert_eq!(device.download(&to).expect("ours"), [24.0; 2]);

        let none = MatrixRef::pitched(&a, 0, 8, pitch).expect("no elements");
        let b = MatrixRef::new(&b, 8, 1).expect("8 elements");
        let mut to = MatrixMut::pitched(&mut c, 0, 1, pitch).expect("no elements");
        kernel.call(&device).launch(&none, &b, &mut to).expect("no rows");
    }
}

/// A view may be copied and used beside its copies, also one of a list.
#[test]
fn views_are_copied() {
    fn pair<'a>(view: MatrixRef<'a>) -> [MatrixRef<'a>; 2] {
        [view, view.t()]
    }
    let device = Device::simulator();
    let x = device.upload(&[1.0, 2.0, 3.0, 4.0]).expect("room");
    let [a, t] = pair(MatrixRef::new(&x, 2, 2).expect("4 elements"));
    assert_eq!(device.download(&a).expect("ours"), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(device.download(&t).expect("ours"), [1.0, 3.0, 2.0, 4.0]);
    let list = MatrixList::new(&device, [&a, &a]).expect("alike");
    let [of_list, _] = pair(list.as_matrix());
    assert_eq!(device.download(&of_list).expect("ours"), [1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn a_stride_goes_by_the_name_of_the_caller_s_matrix() {
    let device = Device::simulator();
    let kernel = sgemm("tile: 16x16x8, thread: 4x4, float4, pitched, bounds: aligned");
    let (a, b) = (device.alloc(16 * 9).expect("room"), device.alloc(8 * 16).expect("room"));
    let mut c = device.alloc(16 * 16).expect("room");
    let a = MatrixRef::pitched(&a, 16, 8, 9).expect("room");
    let b = MatrixRef::new(&b, 8, 16).expect("room");
    let mut c = MatrixMut::new(&mut c, 16, 16).expect("room");
    let error = kernel.call(&device).launch(&a, &b, &mut c).expect_err("no vectors").to_string();
    let expected = "needs the stride between rows of `a` to be a multiple of 4, but it is 9";
    assert!(error.contains(expected), "{error}");
}
