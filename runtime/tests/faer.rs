//! Copies between the device and matrices of faer.

use faer::{Mat, MatRef};
use gemm_runtime::{Device, Error, MatrixRef};

/// Matrix of the numbers 0, 1, …, all different.
fn numbered(rows: usize, cols: usize) -> Mat<f32> {
    Mat::from_fn(rows, cols, |row, col| (row * cols + col) as f32)
}

/// Parts, transposes and reversals come back element by element.
#[test]
fn random_views_come_back() -> Result<(), Error> {
    let device = Device::simulator();
    let mut random = fastrand::Rng::with_seed(39);
    for _ in 0..300 {
        let host = numbered(random.usize(0..9), random.usize(0..9));
        let (first, end) = (random.usize(0..=host.nrows()), random.usize(0..=host.ncols()));
        let mut view: MatRef<'_, f32> =
            host.as_ref().submatrix(first, 0, host.nrows() - first, end);
        for change in [MatRef::transpose, MatRef::reverse_rows, MatRef::reverse_cols] {
            if random.bool() {
                view = change(view);
            }
        }
        let x = device.upload_faer(view)?;
        assert_eq!((x.rows(), x.cols(), x.pitch()), (view.nrows(), view.ncols(), view.ncols()));
        assert_eq!(device.download_faer(&x)?, view);
        assert_eq!(device.download_faer(&x.t())?, view.transpose());
    }
    Ok(())
}

#[test]
fn numbers_of_64_bits_are_copied() -> Result<(), Error> {
    let device = Device::simulator();
    let host = Mat::from_fn(3, 4, |row, col| (row as f64).exp() + col as f64);
    let x = device.upload_faer(host.as_ref())?;
    assert_eq!(device.download_faer(&x.part(1..3, 0..3)?)?, host.as_ref().submatrix(1, 0, 2, 3));
    Ok(())
}

#[test]
fn a_batch_is_no_matrix() -> Result<(), Error> {
    let device = Device::simulator();
    let x = device.upload(&[0.0; 24])?;
    let error = device.download_faer(&MatrixRef::batch(&x, 2, 3, 4)?).map(drop);
    let error = error.expect_err("a batch").to_string();
    let words = "`matrix` is 2 matrices of 3×4 elements, but a `Mat` is one matrix";
    assert!(error.starts_with(words), "{error}");
    Ok(())
}
