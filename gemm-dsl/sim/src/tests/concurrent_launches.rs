//! Concurrent launches that share buffers.

use super::*;
use gemm_dsl::ir::For;

/// Two blocks that each add `rounds` times to a counter and write one word of another array,
/// starting at `from`.
fn adding(rounds: i32, from: i32, arrays: [&Buffer; 2]) -> (VerifiedKernel, Vec<Buffer>) {
    let mut t = team(32, 2);
    let (count, out) = (t.bound("count", arrays[0].clone()), t.bound("out", arrays[1].clone()));
    t.k.loop_("i", For::below(0, rounds), |k, _| {
        thread(k, 3, |k| {
            let (add, order) = (AtomicOp::Add, MemoryOrder::Relaxed);
            k.atomic_only(add, at(count, 0), 1, order, Scope::Device);
        });
    });
    thread(&mut t.k, 0, |k| k.store(at(out, block() + from), block() + 5));
    t.finish()
}

fn values(buffer: &Buffer) -> Vec<i32> {
    buffer.to_vec_of().expect("of four bytes")
}

/// Each launch runs in several block orders, and adds its effect to the results of the others.
#[test]
fn launches_that_add_to_one_counter() {
    let (count, out) = (Buffer::from_slice(&[0]), Buffer::from_slice(&[0; 16]));
    let launches: Vec<_> = (0..8).map(|i| adding(150, 2 * i, [&count, &out])).collect();
    std::thread::scope(|scope| {
        for (kernel, arrays) in &launches {
            scope.spawn(|| launch(kernel, arrays, &[]).expect("the order does not matter"));
        }
    });
    assert_eq!(values(&count), [8 * 2 * 150]);
    assert_eq!(values(&out), [[5, 6]; 8].concat());
}

/// Concurrent writes to other elements of a buffer are kept.
#[test]
fn concurrent_writes_to_other_elements_are_kept() {
    let (count, out) = (Buffer::from_slice(&[0]), Buffer::from_slice(&[0; 4]));
    let (kernel, arrays) = adding(3, 0, [&count, &out]);
    let elsewhere = out.view(2, 2).expect("inside");
    let write = |done: u64, _: u64| assert!(elsewhere.copy_from(&[done as i32, 7]));
    let options = Options { progress: Some(&write), ..Options::default() };
    launch_with(&kernel, &arrays, &[], &options).expect("the order does not matter");
    assert_eq!((values(&count), values(&out)), (vec![6], vec![5, 6, 10, 7]));
    // Such writes are also kept if blocks race and the grid is run again.
    let mut t = team(32, 2);
    let word = t.bound("word", out.clone());
    thread(&mut t.k, 0, |k| k.store(at(word, 0), block()));
    let (kernel, arrays) = t.finish();
    let write = |_: u64, _: u64| assert!(elsewhere.copy_from(&[20, 21]));
    let options = Options { progress: Some(&write), ..Options::default() };
    assert_eq!(race(fault(launch_with(&kernel, &arrays, &[], &options)).kind), "word");
    assert_eq!(values(&elsewhere), [20, 21]);
}

/// A launch from inside another launch must not write a buffer that both use.
#[test]
fn a_launch_does_not_wait_for_itself() {
    let all = Buffer::from_slice(&[0; 6]);
    let part = |from: usize, len: usize| all.view(from, len).expect("inside");
    let nested = |own: [&Buffer; 2]| {
        let (outer, inner) = (adding(1, 0, [&part(0, 1), &part(1, 2)]), adding(1, 0, own));
        let found = std::sync::Mutex::new(Ok(Counters::default()));
        let watch = |done: u64, _: u64| {
            if done == 1 {
                *found.lock().expect("nobody fails") = launch(&inner.0, &inner.1, &[]);
            }
        };
        let options = Options { progress: Some(&watch), ..Options::default() };
        launch_with(&outer.0, &outer.1, &[], &options).expect("the order does not matter");
        found.into_inner().expect("nobody fails").map(|_| ())
    };
    assert_eq!(nested([&part(3, 1), &part(4, 2)]), Ok(()));
    for (shared, own) in
        [("count", [&part(0, 1), &part(4, 2)]), ("out", [&part(5, 1), &part(2, 2)])]
    {
        let in_use = SimError::InUse { kernel: "kernel".into(), buffer: shared.into() };
        assert_eq!(nested(own), Err(in_use));
    }
    // The outer launch no longer uses the buffers.
    let (kernel, arrays) = adding(1, 0, [&part(0, 1), &part(1, 2)]);
    assert!(launch(&kernel, &arrays, &[]).is_ok());
}

/// Two threads are each inside a launch, and each starts a launch that needs the other's buffer.
#[test]
fn launches_do_not_wait_for_one_another_in_a_circle() {
    let buffers = [[0; 8]; 2].map(|words| Buffer::from_slice(&words));
    let part = |own: usize, from: usize, len: usize| buffers[own].view(from, len).expect("inside");
    let meet = std::sync::Barrier::new(2);
    let found = std::sync::Mutex::new(Vec::new());
    let run = |own: usize| {
        let outer = adding(1, 0, [&part(own, 0, 1), &part(own, 1, 2)]);
        let inner = adding(1, 0, [&part(1 - own, 0, 1), &part(own, 4, 2)]);
        let watch = |done: u64, _: u64| {
            if done == 1 {
                meet.wait();
                let launched = launch(&inner.0, &inner.1, &[]);
                meet.wait();
                found.lock().expect("nobody fails").push(launched.map(|_| ()));
            }
        };
        let options = Options { progress: Some(&watch), ..Options::default() };
        launch_with(&outer.0, &outer.1, &[], &options).expect("the order does not matter");
    };
    std::thread::scope(|scope| {
        scope.spawn(|| run(0));
        scope.spawn(|| run(1));
    });
    let in_use = || Err(SimError::InUse { kernel: "kernel".into(), buffer: "count".into() });
    assert_eq!(found.into_inner().expect("nobody fails"), [in_use(), in_use()]);
}

/// Launches may share a buffer that none of them writes.
#[test]
fn launches_may_read_the_same() {
    let input = Buffer::from_slice(&[4, 5]);
    let reading = || {
        let mut t = team(1, 2);
        let (input, count) = (t.bound("input", input.clone()), t.array("count", &[0]));
        let value = load(input, block());
        t.k.atomic_only(AtomicOp::Add, at(count, 0), value, MemoryOrder::Relaxed, Scope::Device);
        t.finish()
    };
    let (outer, inner) = (reading(), reading());
    let watch = |_: u64, _: u64| _ = launch(&inner.0, &inner.1, &[]).expect("nobody writes it");
    let options = Options { progress: Some(&watch), ..Options::default() };
    launch_with(&outer.0, &outer.1, &[], &options).expect("the order does not matter");
    assert_eq!(values(&outer.1[1]), [9]);
}
