//! Segments of an array.

use super::{by_name, device};
use gemm_runtime::{Device, Error, ReduceKernel, Segments, reduce_kernel};

const SUM: ReduceKernel = reduce_kernel!(over: segments);

#[test]
fn segments_are_folded_from_offset_to_offset() {
    let device = device();
    let elements: Vec<f32> = (0..200).map(|i| (i % 13) as f32).collect();
    let offsets: [u32; 8] = [3, 3, 4, 40, 40, 41, 150, 197];
    let expected: Vec<f32> =
        offsets.windows(2).map(|o| elements[o[0] as usize..o[1] as usize].iter().sum()).collect();
    let largest: Vec<u64> = offsets
        .windows(2)
        .map(|o| {
            let of = &elements[o[0] as usize..o[1] as usize];
            let best = (0..of.len()).rev().max_by(|&a, &b| of[a].total_cmp(&of[b]));
            best.map_or(u64::MAX, |n| n as u64)
        })
        .collect();
    for before in [0, 1, 3] {
        // Elements after the last segment are NaN. A result that included them would be NaN.
        let memory: Vec<f32> =
            [vec![f32::NAN; before], elements[..197].to_vec(), vec![f32::NAN; 2]].concat();
        let memory = device.upload(&memory).expect("room");
        let view = memory.slice(before..before + 197).expect("inside");
        let segments = Segments::new(&device, &offsets).expect("ascending");
        assert_eq!((segments.len(), segments.end(), segments.is_empty()), (7, 197, false));
        let mut sums = device.upload(&[7.0; 9]).expect("room");
        SUM.launch_segments(&device, &view, &segments, &mut sums.slice_mut(1..8).expect("7"))
            .expect("sound");
        let found = device.download(&sums).expect("ours");
        assert_eq!(found, [&[7.0], expected.as_slice(), &[7.0]].concat());

        let wide = offsets.map(u64::from);
        let wide = Segments::from_buffer(&device, device.upload_of(&wide).expect("room"))
            .expect("ascending");
        let argmax = by_name("op: argmax, over: segments, index: u64, block: 64, group: 64");
        let mut indices = device.alloc_of::<u64>(7).expect("room");
        let call = argmax.call(&device).input("input", &view).output("output", &mut indices);
        call.segments(&wide).launch().expect("sound");
        assert_eq!(device.download(&indices).expect("ours"), largest);
    }
}

#[test]
fn offsets_ascend() {
    let device = device();
    for (offsets, at) in [
        (&[1, 0][..], (1, 0, 1)),
        (&[0, 5, 4, 9], (2, 4, 5)),
        (&[0, 1, 2, 3, u32::MAX, 3], (5, 3, u32::MAX)),
    ] {
        let buffer = device.upload_of(offsets).expect("room");
        for outcome in [Segments::new(&device, offsets), Segments::from_buffer(&device, buffer)] {
            let error = outcome.map(|_| ()).expect_err("backwards");
            let Error::Backwards { index, offset, before } = error else { panic!("{error}") };
            assert_eq!((index, offset, before), (at.0, at.1, at.2.into()));
        }
    }
    let error = Segments::<u64>::new(&device, &[]).map(|_| ()).expect_err("no offset");
    assert_eq!(error.to_string(), "`offsets` has 0 elements, but n segments have n + 1 of them");
    let none: Segments = Segments::new(&device, &[9]).expect("no segments");
    assert!(none.is_empty());
    let foreign = Device::simulator().upload_of(&[0_u32, 1]).expect("room");
    assert!(matches!(Segments::from_buffer(&device, foreign), Err(Error::WrongDevice { .. })));
}

#[test]
fn no_segments_have_no_results() {
    let device = device();
    let x = device.upload(&[1.0; 9]).expect("room");
    let mut to = device.upload(&[7.0]).expect("room");
    let none: Segments = Segments::new(&device, &[9]).expect("no segments");
    let launched = SUM.launch_segments(&device, &x, &none, &mut to.slice_mut(..0).expect("none"));
    assert_eq!(launched.expect("nothing to do").passes(), 0);
    assert_eq!(device.download(&to).expect("ours"), [7.0]);
    // If all segments are empty, there need be no elements.
    let empty: Segments = Segments::new(&device, &[0, 0]).expect("ascending");
    SUM.launch_segments(&device, &x.slice(..0).expect("none"), &empty, &mut to).expect("sound");
    assert_eq!(device.download(&to).expect("ours"), [0.0]);
}

#[test]
fn segments_lie_in_the_array_and_belong_to_the_kernel() {
    let device = device();
    let x = device.upload(&[1.0; 9]).expect("room");
    let mut to = device.upload(&[7.0; 3]).expect("room");
    let segments: Segments = Segments::new(&device, &[0, 4, 10]).expect("ascending");
    let message = |outcome: Result<_, Error>| outcome.map(|_| ()).expect_err("misuse").to_string();
    assert_eq!(
        message(SUM.launch_segments(&device, &x, &segments, &mut to)),
        "`input` has 9 elements, but the last segment ends at element 10"
    );
    let segments: Segments = Segments::new(&device, &[0, 4, 9]).expect("ascending");
    assert_eq!(
        message(SUM.launch_segments(&device, &x, &segments, &mut to.slice_mut(..1).expect("1"))),
        "`output` has 1 element, but segments = 2 are needed, one for each segment"
    );
    let plain: ReduceKernel = reduce_kernel!();
    let error = message(plain.launch_segments(&device, &x, &segments, &mut to));
    assert!(
        error.contains("the kernel folds `over: all`, but the call gives segments. Leave"),
        "{error}"
    );
    let error = message(SUM.launch(&device, &x, &mut to));
    assert!(
        error.contains("folds `over: segments`, but the call gives no segments. Launch"),
        "{error}"
    );
    let wide = Segments::<u64>::new(&device, &[0, 9]).expect("ascending");
    let error = message(SUM.launch_segments(&device, &x, &wide, &mut to));
    assert!(error.contains("of type u32 in `offsets`, but they are of type u64"), "{error}");
    let foreign: Segments = Segments::new(&Device::simulator(), &[0, 9]).expect("ascending");
    let error = SUM.launch_segments(&device, &x, &foreign, &mut to).expect_err("foreign");
    assert!(
        matches!(&error, Error::WrongDevice { argument, .. } if argument == "offsets"),
        "{error}"
    );
    assert_eq!(device.download(&to).expect("ours"), [7.0; 3]);
}
