use super::{in_parallel, warm_up};
use crate::{Device, Error};
use gemm_dsl::spec::{ReduceSpec, SgemmSpec};
use std::sync::Barrier;
use std::thread;

#[test]
fn results_are_in_the_order_of_the_items() {
    for count in [0, 1, 2, 7, 1000] {
        let items: Vec<usize> = (0..count).collect();
        assert!(in_parallel(&items, |n| n * n).into_iter().eq((0..count).map(|n| n * n)));
    }
}

/// Two items wait for each other, so `in_parallel` must use two threads at once, unless only one is
/// available.
#[test]
fn items_are_worked_on_at_once() {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(2);
    let meet = Barrier::new(threads);
    let who = in_parallel(&vec![(); threads], |()| {
        meet.wait();
        thread::current().id()
    });
    assert!(threads == 1 || who[0] != who[1]);
}

/// Each line is compiled into one program, and later launches add none.
#[test]
fn lines_are_made_once() {
    let device = Device::simulator();
    warm_up::<ReduceSpec>(&device, ["op: max", "op: min", "op: max"]).expect("sound");
    warm_up::<SgemmSpec>(&device, ["tile: 8x8x8"]).expect("sound");
    assert_eq!(device.programs().made(), 3);
    warm_up::<ReduceSpec>(&device, ["op: min"]).expect("sound");
    let max = crate::reduce_kernel!(op: max);
    assert_eq!(max.run(&device, &[1.0, 2.0]).expect("two"), 2.0);
    assert_eq!(device.programs().made(), 3);
}

#[test]
fn the_first_line_that_fails_is_told_and_the_others_are_made() {
    let device = Device::simulator();
    let lines = ["op: max", "block: 7", "op: min", "block: 9"];
    let told = warm_up::<ReduceSpec>(&device, lines).expect_err("two are faulty");
    assert!(
        matches!(&told, Error::Ahead { line, error, others: 1 }
            if line == "block: 7" && matches!(**error, Error::Spec(_))),
        "{told:?}"
    );
    let text = told.to_string();
    assert!(
        text.starts_with(
            "`block: 7` could not be compiled ahead of its launch (further failures: 1): "
        ),
        "{text}"
    );
    assert_eq!(device.programs().made(), 2);
}
