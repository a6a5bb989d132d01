use super::Error;
use crate::backend::driver::failed;
use crate::{Device, sgemm_kernel};
use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;
use std::error::Error as _;

#[test]
fn debug_has_the_data_and_display_the_message() {
    let buffer = Device::simulator().alloc(1).expect("room");
    let error = buffer.slice(2..).map(drop).expect_err("1 element");
    let fields = "OutOfRange { start: 2, end: 1, len: 1, of: \"the elements of the buffer\" }";
    assert_eq!(format!("{error:?}"), fields);
    assert!(error.to_string().starts_with("the range 2.. is not within 0..1"), "{error}");
}

/// Without a driver, no text explains a code.
#[test]
fn a_failure_of_the_driver_keeps_its_code() {
    let error = Error::Driver {
        doing: "loading".to_owned(),
        code: "CUDA_ERROR_NO_BINARY_FOR_GPU".to_owned(),
        status: 209,
        text: "no image".to_owned(),
    };
    let text = "the CUDA driver failed while loading: no image (CUDA_ERROR_NO_BINARY_FOR_GPU, \
                status 209)";
    assert_eq!(error.to_string(), text);
    if !crate::backend::driver::is_installed() {
        return;
    }
    let error = failed("loading")(DriverError(CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU));
    assert!(matches!(error, Error::Driver { status: 209, .. }), "{error:?}");
}

#[test]
fn a_failed_compilation_has_its_cause_as_its_source() {
    let cause = Error::Internal("cause".to_owned());
    let (line, error) = ("op: sum".to_owned(), Box::new(cause));
    let ahead = Error::Ahead { line, error, others: 0 };
    let source = ahead.source().expect("a source").to_string();
    assert_eq!(source, "cause. This is a bug in the generator: please report it");
}

#[test]
fn numbers_agree_with_their_nouns() {
    let device = Device::simulator();
    let told = |len: usize| {
        let gemm = sgemm_kernel!(block: 8x8);
        let (a, b) = (device.alloc(len).expect("room"), device.alloc(6).expect("room"));
        let mut c = device.alloc(9).expect("room");
        gemm.launch(&device, &a, &b, &mut c, (3, 3, 2)).map(drop).expect_err("6 are needed")
    };
    assert!(told(1).to_string().contains("`a` has 1 element, but"), "{}", told(1));
    assert!(told(2).to_string().contains("`a` has 2 elements, but"), "{}", told(2));
    let asked = |bytes| Error::OutOfMemory { bytes, device: "the host".to_owned() }.to_string();
    assert!(asked(1).contains(": 1 byte requested"), "{}", asked(1));
    assert!(asked(u64::MAX).contains(": 2^64 bytes or more requested"));
    assert!(asked(u64::MAX - 1).contains(": 18446744073709551614 bytes requested"));
}
