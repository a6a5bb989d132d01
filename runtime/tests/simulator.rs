//! Public API on a machine without a GPU.

use gemm_runtime::sim::SimError;
use gemm_runtime::{
    Device, Error, LaunchReport, Matrix, ReduceKernel, Segments, SgemmKernel, reduce_kernel,
    sgemm_kernel,
};

/// A default version would override the version that other crates of a build let `cudarc` detect.
#[test]
fn the_default_features_leave_the_version_of_cuda_to_cudarc() {
    let manifest = include_str!("../Cargo.toml");
    let default = manifest.lines().find(|line| line.starts_with("default = ")).expect("defaults");
    assert!(
        default.contains("cuda-version-from-build-system") && default.contains("fallback-latest")
    );
    assert!(!default.contains("\"cuda-1"), "{default}");
    for feature in ["cuda-version-from-build-system", "fallback-latest", "cuda-11040", "cuda-13000"]
    {
        let line = format!("{feature} = [\"cudarc/{feature}\"]");
        assert!(manifest.lines().any(|other| other == line), "{line}");
    }
}

fn all_handles_may_cross_threads<T: Send + Sync>() {}

#[test]
fn values_may_cross_threads() {
    all_handles_may_cross_threads::<Device>();
    all_handles_may_cross_threads::<gemm_runtime::Buffer>();
    all_handles_may_cross_threads::<Matrix>();
    all_handles_may_cross_threads::<Segments>();
    all_handles_may_cross_threads::<LaunchReport>();
    all_handles_may_cross_threads::<Error>();
}

#[test]
fn a_device_without_a_gpu_simulates() {
    let device = Device::simulator();
    assert!(device.is_simulator());
    assert_eq!(device.name(), "the simulator");
    assert!(device.arch().is_none() && device.cudarc().is_none());
    device.synchronize().expect("nothing to wait for");
}

/// The sum of a thousand numbers takes more than ten instructions and less than a million.
#[test]
fn a_launch_stops_at_its_limit_of_instructions() {
    const SUM: ReduceKernel = reduce_kernel!(block: 256, items: 4, shuffle);
    let ones = [1.0; 1000];
    let sum = |limit| SUM.run(&Device::simulator_within(limit), &ones);
    assert_eq!(sum(1_000_000).expect("enough"), 1000.0);
    let Err(Error::Simulator(error)) = sum(10) else { panic!("ten instructions are not enough") };
    assert!(matches!(*error, SimError::OutOfInstructions { instructions: 10, .. }), "{error}");
}

#[test]
fn no_gpu_or_no_such_gpu_is_an_error_and_no_panic() {
    let error = Device::cuda(usize::MAX).expect_err("no machine has that many");
    assert!(
        matches!(error, Error::DriverMissing { .. } | Error::NoGpu | Error::BadOrdinal { .. }),
        "{error}"
    );
    // The call panics on no machine, and returns no error without a GPU.
    if Device::cuda(0).is_err() {
        assert!(Device::auto().expect("no GPU").is_simulator());
    }
}

#[test]
fn data_comes_back_bit_for_bit() {
    let device = Device::simulator();
    let values = [1.0, -0.0, f32::from_bits(0x7f80_0001), f32::INFINITY, f32::from_bits(1)];
    let back = device.download(&device.upload(&values).expect("room")).expect("ours");
    assert_eq!(back.map_bits(), values.map_bits());
    assert_eq!(device.download(&device.alloc(3).expect("room")).expect("ours"), [0.0; 3]);
    let empty = device.upload(&[]).expect("room");
    assert!(empty.is_empty() && device.download(&empty).expect("ours").is_empty());
}

trait Bits {
    fn map_bits(&self) -> Vec<u32>;
}

impl<T: AsRef<[f32]>> Bits for T {
    fn map_bits(&self) -> Vec<u32> {
        self.as_ref().iter().map(|v| v.to_bits()).collect()
    }
}

#[test]
fn views_are_checked() {
    let device = Device::simulator();
    let mut buffer = device.upload(&[0.0, 1.0, 2.0, 3.0]).expect("room");
    let view = buffer.slice(1..3).expect("inside");
    assert_eq!((view.len(), view.is_empty()), (2, false));
    assert_eq!(device.download(&view).expect("ours"), [1.0, 2.0]);
    assert_eq!(device.download(&buffer.slice(..).expect("all")).expect("ours").len(), 4);
    assert!(buffer.slice(4..).expect("the end").is_empty());
    for error in [
        buffer.slice(3..5).expect_err("past the end"),
        buffer.slice(..=usize::MAX).expect_err("past the end"),
        buffer.slice(5..).expect_err("past the end"),
        buffer.slice_mut(0..=4).expect_err("past the end"),
    ] {
        assert!(matches!(error, Error::OutOfRange { len: 4, .. }), "{error}");
    }
    #[expect(clippy::reversed_empty_ranges, reason = "what is tested")]
    let backwards = buffer.slice(3..1);
    let error = backwards.expect_err("backwards");
    assert!(matches!(error, Error::OutOfRange { start: 3, end: 1, .. }), "{error}");
    assert!(error.to_string().contains("of the elements of the buffer ends before"), "{error}");
}

#[test]
fn a_buffer_of_another_device_is_refused() {
    let (here, there) = (Device::simulator(), Device::simulator());
    let buffer = there.upload(&[1.0]).expect("room");
    let error = here.download(&buffer).expect_err("not ours");
    assert!(
        matches!(&error, Error::WrongDevice { argument, .. } if argument == "array"),
        "{error}"
    );
    assert_eq!(there.clone().download(&buffer).expect("a clone is the same device"), [1.0]);
}

#[test]
fn memory_that_cannot_be_had_is_an_error() {
    let error = Device::simulator().alloc(usize::MAX / 2).expect_err("too much");
    assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
}

#[test]
fn rows_are_padded_on_request() {
    let device = Device::simulator();
    let values: Vec<f32> = (1..=15).map(|i| i as f32).collect();
    let matrix = device.upload_matrix_padded(&values, 3, 5).expect("room");
    assert_eq!((matrix.rows(), matrix.cols(), matrix.pitch()), (3, 5, 8));
    assert_eq!(device.download_matrix(&matrix).expect("ours"), values);
    let padded = device.download(matrix.buffer()).expect("ours");
    assert_eq!(padded[..10], [1.0, 2.0, 3.0, 4.0, 5.0, 0.0, 0.0, 0.0, 6.0, 7.0]);

    let packed = device.upload_matrix_padded(&values[..12], 3, 4).expect("room");
    assert_eq!((packed.pitch(), packed.buffer().len()), (4, 12));
    assert_eq!(device.alloc_matrix_padded(2, 3).expect("room").buffer().len(), 8);
    for (rows, cols) in [(0, 5), (5, 0), (0, 0)] {
        for empty in
            [device.upload_matrix(&[], rows, cols), device.upload_matrix_padded(&[], rows, cols)]
        {
            let empty = empty.expect("room");
            assert!(device.download_matrix(&empty).expect("ours").is_empty());
        }
    }
}

/// A kernel without `pitched` accepts matrices of any number of columns.
#[test]
fn the_width_of_a_matrix_decides_nothing() {
    const GEMM: SgemmKernel = sgemm_kernel!(tile: 16x16x8, thread: 4x4);
    const SUMS: ReduceKernel = reduce_kernel!(over: rows);
    let device = Device::simulator();
    for width in [1, 2, 3, 4, 5, 63, 64, 65] {
        let ones = |rows, cols| device.upload_matrix(&vec![1.0; rows * cols], rows, cols);
        let (a, b) = (ones(3, width).expect("room"), ones(width, width).expect("room"));
        let mut c = device.alloc_matrix(3, width).expect("room");
        GEMM.call(&device).launch(&a, &b, &mut c).expect("packed");
        assert_eq!(device.download(&c).expect("ours"), vec![width as f32; 3 * width]);
        let mut sums = device.alloc(3).expect("room");
        SUMS.launch(&device, &a, &mut sums).expect("packed");
        assert_eq!(device.download(&sums).expect("ours"), [width as f32; 3]);
    }
}

#[test]
fn matrices_are_checked() {
    let device = Device::simulator();
    for matrix in
        [device.upload_matrix(&[0.0; 5], 2, 3), device.upload_matrix_padded(&[0.0; 5], 2, 3)]
    {
        let need = "rows·cols = 2·3 = 6 are needed";
        let error = matrix.expect_err("one short").to_string();
        assert_eq!(error, format!("`elements` has 5 elements, but {need}"));
    }
    let buffer = || device.alloc(10).expect("room");
    Matrix::from_buffer(buffer(), 3, 2, 4).expect("2·4 + 2 = 10");
    assert!(Matrix::from_buffer(buffer(), 3, 3, 4).is_err());
    assert!(Matrix::from_buffer(buffer(), 3, 3, 2).is_err());
    assert!(Matrix::from_buffer(buffer(), usize::MAX, 2, usize::MAX).is_err());
    assert!(device.alloc_matrix(usize::MAX, 2).is_err());
    assert!(device.alloc_matrix(1, usize::MAX).is_err());
    assert!(device.alloc_matrix_padded(usize::MAX, 2).is_err());
    assert!(device.alloc_matrix_padded(1, usize::MAX).is_err());
}

/// A matrix without columns has no elements, for any number of rows and any row stride.
#[test]
fn matrices_without_columns_have_no_elements() {
    let device = Device::simulator();
    for (rows, pitch) in [(3, 100), (usize::MAX, 1), (0, 0)] {
        let buffer = device.alloc(6).expect("room");
        let matrix = Matrix::from_buffer(buffer, rows, 0, pitch).expect("no elements");
        assert!(device.download_matrix(&matrix).expect("ours").is_empty(), "{rows} {pitch}");
    }
}

#[test]
fn a_pitch_and_a_size_are_refused_in_sentences() {
    let device = Device::simulator();
    let buffer = device.alloc(5).expect("room");
    let error = Matrix::from_buffer(buffer, 2, 3, 2).expect_err("short");
    assert_eq!(
        error.to_string(),
        "a row stride of 2 is less than the 3 elements of a row: use at least 3"
    );
    let buffer = device.alloc(10).expect("room");
    let error = Matrix::from_buffer(buffer, 3, 3, 4).expect_err("one short");
    let need = "3 rows of 3 with a row stride of 4 need (rows − 1)·row_stride + cols = 11";
    assert_eq!(error.to_string(), format!("`buffer` has 10 elements, but {need}"));
    let text = device.alloc_matrix_padded(1, usize::MAX).expect_err("too large").to_string();
    assert!(
        text.starts_with("a matrix of 1 row of 18446744073709551615 elements is too"),
        "{text}"
    );
}

/// All parts of an error have public names.
#[test]
fn the_parts_of_an_error_have_names_here() {
    use gemm_runtime::error::{ContractError, Excerpt, Extent, Need, Subject};
    use gemm_runtime::sim::fault;
    let parts = |unmet: ContractError| -> (Subject, Need) { (unmet.subject, unmet.need) };
    let device = Device::simulator();
    let kernel = gemm_runtime::sgemm_kernel!(tile: 16x16x8, thread: 4x4, bounds: aligned);
    let Err(Error::Unmet(unmet)) = kernel.run(&device, &[0.0; 48], &[0.0; 48], (16, 16, 3)) else {
        panic!("K = 3 is not a multiple of 8");
    };
    assert_eq!(parts(*unmet), (Subject::Extent(Extent::K), Need::Multiple { of: 8 }));
    let kind = |fault: fault::Fault| -> fault::FaultKind { fault.kind };
    let column = |excerpt: &Excerpt| excerpt.column;
    let spec = "block: 100".parse::<gemm_runtime::ReduceSpec>();
    let faults = spec.expect_err("no power of two");
    assert_eq!(faults.iter().filter_map(|f| f.excerpt().map(column)).next(), Some(8));
    _ = kind;
}
