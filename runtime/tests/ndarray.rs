//! Copies between the device and arrays of ndarray.

use gemm_runtime::half::bf16;
use gemm_runtime::{Device, Error, MatrixRef};
use ndarray::{Array1, Array2, Array3, Axis, s};

/// Array of the numbers 0, 1, …, all different.
fn numbered(rows: usize, cols: usize) -> Array2<f32> {
    Array2::from_shape_fn((rows, cols), |(row, col)| (row * cols + col) as f32)
}

/// Views with random starts, steps, directions and orders of the axes come back element by element.
#[test]
fn random_views_come_back() -> Result<(), Error> {
    let device = Device::simulator();
    let mut random = fastrand::Rng::with_seed(39);
    for _ in 0..300 {
        let host = numbered(random.usize(0..9), random.usize(0..9));
        let mut view = host.view();
        for axis in [Axis(0), Axis(1)] {
            let step = random.isize(1..4) * if random.bool() { -1 } else { 1 };
            let start = random.usize(0..=view.len_of(axis));
            view.slice_axis_inplace(axis, ndarray::Slice::new(start as isize, None, step));
        }
        if random.bool() {
            view.swap_axes(0, 1);
        }
        let x = device.upload_array2(view)?;
        assert_eq!((x.rows(), x.cols(), x.pitch()), (view.nrows(), view.ncols(), view.ncols()));
        assert_eq!(device.download_array2(&x)?, view);
        assert_eq!(device.download_array2(&x.t())?, view.t());
        for row in view.rows() {
            let row = row.slice(s![..;2]);
            assert_eq!(device.download(&device.upload_array1(row)?)?, row.to_vec());
        }
    }
    Ok(())
}

#[test]
fn repeated_rows_and_other_types_are_copied() -> Result<(), Error> {
    let device = Device::simulator();
    let row = Array1::from_vec([1.0, 2.0, 3.0].map(bf16::from_f32).to_vec());
    let rows = row.broadcast((2, 3)).expect("a view of two rows");
    let x = device.upload_array2(rows)?;
    assert_eq!(device.download_array2(&x)?, rows);
    let part = x.part(0..2, 1..3)?;
    assert_eq!(device.download_array2(&part)?, rows.slice(s![.., 1..]));
    Ok(())
}

#[test]
fn a_batch_is_no_array2() -> Result<(), Error> {
    let device = Device::simulator();
    let host = Array3::<f32>::zeros((2, 3, 4));
    let x = device.upload_array1(host.flatten().view())?;
    let batch = MatrixRef::batch(&x, 2, 3, 4)?;
    let error = device.download_array2(&batch).map(drop).expect_err("a batch");
    let words = "`matrix` is 2 matrices of 3×4 elements, but an `Array2` is one matrix";
    assert!(error.to_string().starts_with(words), "{error}");
    Ok(())
}
