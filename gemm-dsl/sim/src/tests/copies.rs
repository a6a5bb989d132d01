//! Asynchronous copies, each of which is an agent from its issue to its wait.

use super::*;
use gemm_dsl::ir::{Elem, Guard, Stmt};

/// Step of the copy protocol that a test leaves out.
#[derive(Clone, Copy, PartialEq)]
enum Plant {
    Nothing,
    Commit,
    Wait,
    Barrier,
}

/// Each thread copies one element to shared memory and reads the element of another thread.
fn staged(threads: u32, plant: Plant, guard: Option<i32>) -> Bench {
    let n = threads as i32;
    let mut b = bench(threads, 1, [threads as usize, threads as usize]);
    let x = b.shared(n);
    let source = at(b.input, tid());
    b.k.push(Stmt::CopyAsync {
        target: at(x, tid()),
        source,
        guard: guard.map(|below| Guard { cond: tid().lt(below), or_zero: true }),
    });
    if plant != Plant::Commit {
        b.k.push(Stmt::CopyCommit);
    }
    if plant != Plant::Wait {
        b.k.push(Stmt::CopyWait { pending: 0.into() });
    }
    if plant != Plant::Barrier {
        b.k.barrier();
    }
    b.write(tid(), load(x, Expr::from(n - 1) - tid()));
    b
}

#[test]
fn a_copy_is_seen_after_wait_and_barrier() {
    for threads in [32, 64, 50] {
        let (out, _) = staged(threads, Plant::Nothing, None).run().expect("ordered");
        assert!((0..threads as usize).all(|t| out[t] == (threads as usize - 1 - t) as f32));
    }
}

#[test]
fn a_copy_read_before_its_wait() {
    for plant in [Plant::Wait, Plant::Commit] {
        let fault = staged(64, plant, None).fault();
        let FaultKind::CopyNotAwaited { place, earlier } = &fault.kind else {
            panic!("{fault:?}");
        };
        assert_eq!((place.index.as_slice(), fault.thread), (&[63][..], (0, 0)));
        assert!(earlier.by_copy() && earlier.wrote && earlier.thread == (63, 0));
        let text = fault.to_string();
        assert!(text.contains("asynchronous copy consumed before its wait"), "{text}");
    }
}

#[test]
fn a_copy_awaited_by_its_thread_needs_a_barrier_for_others() {
    let kind = staged(32, Plant::Barrier, None).kind();
    assert!(
        matches!(&kind, FaultKind::Race { writes: false, earlier, .. } if earlier.by_copy()),
        "{kind:?}"
    );
    // The issuing thread itself needs only the wait.
    let own = |wait: bool| {
        let mut b = bench(32, 1, [32, 32]);
        let x = b.shared(32);
        let source = at(b.input, tid());
        b.k.push(Stmt::CopyAsync { target: at(x, tid()), source, guard: None });
        b.k.push(Stmt::CopyCommit);
        if wait {
            b.k.push(Stmt::CopyWait { pending: 0.into() });
        }
        b.write(tid(), load(x, tid()));
        b
    };
    assert!(own(true).run().is_ok());
    assert!(matches!(own(false).kind(), FaultKind::CopyNotAwaited { .. }));
}

#[test]
fn a_guarded_copy_writes_zeros_and_reads_nothing() {
    let mut b = staged(32, Plant::Nothing, Some(7));
    // The source array holds only the elements that the guard admits.
    b.k.shape(b.input, [Expr::U64(7)], [1.into()]);
    b.lens[0] = 7;
    let (out, counters) = b.run().expect("the guard protects the source");
    let expected = |t: usize| if t > 24 { (31 - t) as f32 } else { 0.0 };
    assert!((0..32).all(|t| out[t] == expected(t)), "{out:?}");
    assert_eq!((counters.global_load_bytes, counters.shared_store_bytes), (28, 128));
}

/// Two lanes copy from the same element, in two groups. The second lane waits for its own copy and
/// writes the element. Nothing orders this write after the copy of the first lane, which is an
/// older reader of the element.
#[test]
fn an_older_copy_still_reads() {
    let kernel = |all_wait: bool| {
        let mut b = KernelBuilder::new("kernel");
        let scratch = b.global("scratch", Elem::F32, Operand::Temp(0));
        b.shape(scratch, [Expr::U64(4)], [1.into()]);
        let x = b.shared("x", Elem::F32, [2.into()], BufferLayout::row_major(1), "");
        for lane in 0..2 {
            b.if_(tid().equals(lane), |b| {
                let (target, source) = (at(x, lane), at(scratch, 0));
                b.push(Stmt::CopyAsync { target, source, guard: None });
            });
            b.push(Stmt::CopyCommit);
        }
        let wait = |b: &mut KernelBuilder| b.push(Stmt::CopyWait { pending: 0.into() });
        if all_wait {
            wait(&mut b);
        } else {
            b.if_(tid().equals(1), wait);
        }
        b.warp_barrier();
        b.if_(tid().equals(1), |b| b.store(at(scratch, 0), 1.0));
        let kernel = b.finish().expect("valid");
        launch(&kernel, &[Buffer::zeros(4)], &[])
    };
    assert!(kernel(true).is_ok());
    let Err(SimError::Fault(fault)) = kernel(false) else {
        panic!("a race was expected");
    };
    assert!(
        matches!(&fault.kind, FaultKind::Race { writes: true, earlier, .. }
            if earlier.by_copy() && earlier.thread == (0, 0)),
        "{fault:?}"
    );
}

/// Pipeline of `stages` buffers over 6 tiles. Each round waits, meets at a barrier, refills the
/// buffer read in the previous round, and reads.
fn pipeline(stages: i32, pending: i32, barrier: bool) -> Bench {
    let (tiles, n) = (6, 64);
    let mut b = bench(n as u32, 1, [(tiles * n) as usize, n as usize]);
    let x = b.k.shared("x", Elem::F32, [stages.into(), n.into()], BufferLayout::row_major(2), "");
    let (input, output) = (b.input, b.output);
    let sum = b.k.mut_("sum", 0.0);
    let fetch = |b: &mut KernelBuilder, tile: Expr| {
        b.push(Stmt::CopyAsync {
            target: Access::new(x, [tile.clone() % stages, tid()]),
            source: at(input, tile * n + tid()),
            guard: None,
        });
    };
    b.k.unrolled("early", stages - 1, |b, tile| {
        fetch(b, tile.into());
        b.push(Stmt::CopyCommit);
    });
    b.k.unrolled("tile", tiles, |b, tile| {
        b.push(Stmt::CopyWait { pending: pending.into() });
        if barrier {
            b.barrier();
        }
        let ahead = tile + (stages - 1);
        b.if_(ahead.clone().lt(tiles), |b| fetch(b, ahead));
        b.push(Stmt::CopyCommit);
        let value = Access::new(x, [tile % stages, Expr::from(n - 1) - tid()]).load();
        b.assign(sum, Expr::from(sum) + value);
    });
    b.k.store(at(output, tid()), sum);
    b
}

#[test]
fn a_pipeline_waits_for_the_right_group() {
    let (out, _) = pipeline(3, 1, true).run().expect("ordered");
    let expected = |t: i32| (0..6).map(|tile| tile * 64 + 63 - t).sum::<i32>() as f32;
    assert!((0..64).all(|t| out[t as usize] == expected(t)), "{out:?}");
    assert!(pipeline(3, 0, true).run().is_ok());
    assert!(pipeline(4, 2, true).run().is_ok());
    assert!(matches!(pipeline(3, 2, true).kind(), FaultKind::CopyNotAwaited { .. }));
    assert!(pipeline(3, 1, false).run().is_err());
}

/// One buffer is refilled while another warp still reads it.
#[test]
fn a_copy_may_not_overwrite_what_is_still_read() {
    let kernel = |barrier: bool| {
        let mut b = bench(64, 1, [64, 64]);
        let x = b.shared(64);
        b.k.store(at(x, tid()), 1.0);
        b.k.barrier();
        let (input, output) = (b.input, b.output);
        b.k.if_(tid().lt(32), |b| b.store(at(output, tid()), load(x, tid() + 32)));
        if barrier {
            b.k.barrier();
        }
        b.k.if_(tid().ge(32), |b| {
            b.push(Stmt::CopyAsync { target: at(x, tid()), source: at(input, tid()), guard: None });
        });
        b
    };
    assert!(kernel(true).run().is_ok());
    let kind = kernel(false).kind();
    assert!(
        matches!(&kind, FaultKind::Race { writes: true, earlier, .. } if !earlier.wrote),
        "{kind:?}"
    );
}

/// A store hits the target of a copy in flight, or two copies in flight share a target.
#[test]
fn writes_over_a_copy_in_flight() {
    let kernel = |wait: bool, by_copy: bool| {
        let mut b = bench(32, 1, [32, 1]);
        let x = b.shared(32);
        let copy = |b: &Bench| Stmt::CopyAsync {
            target: at(x, tid()),
            source: at(b.input, tid()),
            guard: None,
        };
        let first = copy(&b);
        b.k.push(first);
        b.k.push(Stmt::CopyCommit);
        if wait {
            b.k.push(Stmt::CopyWait { pending: 0.into() });
        }
        let second = copy(&b);
        match by_copy {
            true => b.k.push(second),
            false => b.k.store(at(x, tid()), 1.0),
        }
        b
    };
    for by_copy in [true, false] {
        assert!(kernel(true, by_copy).run().is_ok());
        let kind = kernel(false, by_copy).kind();
        assert!(
            matches!(&kind, FaultKind::Race { writes: true, earlier, .. } if earlier.by_copy()),
            "{kind:?}"
        );
    }
}

#[test]
fn vector_copies_are_aligned() {
    let kernel = |shift: i32| {
        let mut b = bench(4, 1, [32, 1]);
        let x = b.shared(32);
        let source = at(b.input, tid() * 4 + 4).vector();
        b.k.push(Stmt::CopyAsync {
            target: at(x, tid() * 4 + shift).vector(),
            source,
            guard: None,
        });
        b
    };
    assert!(kernel(0).run().is_ok());
    assert!(matches!(kernel(2).kind(), FaultKind::Misaligned { place } if place.buffer == "x"));
}
