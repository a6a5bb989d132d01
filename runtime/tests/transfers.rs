//! Copies between host and device, and within a device, on the simulator. The test `gpu` runs the
//! same functions on a GPU.

#[path = "gpu/transfers.rs"]
mod transfers;

use gemm_runtime::{Buffer, Device, Error, Matrix, MatrixList, MatrixMut, MatrixRef};

fn on_simulator(check: fn(&Device) -> transfers::Checked) {
    check(&Device::simulator()).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn random_views_hold_what_was_written() {
    on_simulator(transfers::random_views);
}

#[test]
fn halves_are_separate_and_complete() {
    on_simulator(transfers::halves);
}

#[test]
fn asynchronous_transfers_are_ordered() {
    on_simulator(transfers::asynchronous);
}

#[test]
fn streams_that_share_buffers_are_ordered() {
    on_simulator(transfers::streams);
}

#[test]
fn a_loop_that_has_been_through_once_allocates_nothing() {
    on_simulator(transfers::no_allocation);
}

fn buffer(device: &Device, len: usize) -> Buffer {
    device.alloc(len).expect("room")
}

#[track_caller]
fn message<T>(result: Result<T, Error>) -> String {
    result.err().expect("an error").to_string()
}

#[test]
fn lengths_and_shapes_are_checked() {
    let device = Device::simulator();
    let mut x = buffer(&device, 3);
    assert_eq!(
        message(x.write(&[0.0; 4])),
        "`elements` has 4 elements, but `target` has 3: pass as many"
    );
    assert_eq!(
        message(x.read_into(&mut [0.0; 2])),
        "`elements` has 2 elements, but `array` has 3: pass as many"
    );
    assert_eq!(
        message(x.copy_from(&buffer(&device, 1))),
        "`source` has 1 element, but `target` has 3: pass as many"
    );
    for error in [
        x.write_at(2, &[0.0; 2]).expect_err("one too many"),
        x.write_at(usize::MAX, &[0.0]).expect_err("far away"),
        x.write_at(4, &[]).expect_err("behind the end"),
        x.split_at_mut(4).map(drop).expect_err("behind the end"),
        x.slice_mut(1..)
            .and_then(|mut part| part.slice_mut(..3).map(drop))
            .expect_err("beyond the part"),
        x.slice(1..).and_then(|part| part.slice(..3).map(drop)).expect_err("beyond the part"),
    ] {
        assert!(matches!(error, Error::OutOfRange { .. }), "{error}");
    }
    x.write_at(3, &[]).expect("at the end");

    let mut wide: Matrix = device.alloc_matrix(2, 3).expect("room");
    let high: Matrix = device.alloc_matrix(3, 2).expect("room");
    let error = message(wide.copy_from(&high));
    assert_eq!(error, "`source` is 3 x 2, but `target` is 2 x 3. Pass `source.t()`");
    wide.copy_from(&high.t()).expect("the same shape");
    wide.copy_from(high.buffer()).expect("as many elements");
    let batch = MatrixRef::batch(high.buffer(), 2, 1, 3).expect("room");
    let error = message(wide.copy_from(&batch));
    let has = "`source` is a batch of 2 matrices of 1 x 3, but `target` is 2 x 3. Pass a part of \
               the larger one";
    assert_eq!(error, has);
    assert!(matches!(wide.view_mut().split_at_col_mut(4).map(drop), Err(Error::OutOfRange { .. })));
    assert!(matches!(wide.view_mut().split_at_row_mut(3).map(drop), Err(Error::OutOfRange { .. })));
    let list = MatrixList::new(&device, [&high]).expect("alike");
    assert!(matches!(wide.copy_from(&list), Err(Error::List { .. })));
}

#[test]
fn a_batch_with_common_elements_is_not_written() {
    let device = Device::simulator();
    let mut x = buffer(&device, 10);
    let mut batch = MatrixMut::batch_apart(&mut x, (3, 2), 1, 3, 3).expect("room");
    let error = message(batch.write(&[1.0; 9]));
    assert!(error.contains("matrix 1 of `target`"), "{error}");
    batch.fill(1.0).expect("all elements are the same");
    assert!(matches!(batch.split_at_row_mut(1).map(drop), Err(Error::Overlap { .. })));
    assert_eq!(device.download(&x).expect("ours"), [1., 1., 1., 1., 1., 1., 1., 0., 0., 0.]);
}

#[test]
fn arrays_of_another_device_are_refused() {
    let (here, there) = (Device::simulator(), Device::simulator());
    let (mut x, y) = (buffer(&here, 2), buffer(&there, 2));
    for (error, name) in [
        (x.copy_from(&y), "source"),
        (there.copy(&y, &mut x), "target"),
        (there.write(&mut x, &[0.0; 2]), "target"),
        (there.fill(&mut x, 0.0), "target"),
        (there.read_into(&x, &mut [0.0; 2]), "array"),
    ] {
        let error = error.expect_err("not ours");
        assert!(
            matches!(&error, Error::WrongDevice { argument, .. } if argument == name),
            "{error}"
        );
    }
}

#[test]
#[allow(unsafe_code, reason = "what is tested")]
fn a_simulator_has_no_addresses() {
    let device = Device::simulator();
    // SAFETY: the call is refused.
    let error = message(unsafe { Buffer::<f32>::from_raw_parts(&device, 0x1000, 1) });
    let expected = "no buffer can be built at 0x1000: a simulator has no addresses. Upload the \
                    elements";
    assert_eq!(error, expected);
    assert_eq!(buffer(&device, 1).raw_address(), None);
}

/// A list belongs to one device, and so do its matrices.
#[test]
fn lists_take_matrices_of_one_stream() {
    let device = Device::simulator();
    let other = device.on_new_stream().expect("a stream");
    let matrix = device.alloc_matrix(2, 2).expect("room");
    let error = MatrixList::new(&other, [&matrix]).map(drop).expect_err("of another stream");
    assert!(matches!(error, Error::WrongDevice { .. }), "{error}");
    MatrixList::new(&device, [&matrix]).expect("of this stream");
}
