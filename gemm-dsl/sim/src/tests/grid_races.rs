//! Races between blocks, in kernels whose blocks run in parallel and in kernels with inter-block
//! synchronisation. The two detectors find the same races.

use super::*;
use gemm_dsl::ir::Stmt;

/// Blocks that run one body on an array, with or without an atomic on another array.
fn blocks(
    synchronising: bool,
    (threads, count): (u32, u64),
    body: impl FnOnce(&mut KernelBuilder, BufferId, BufferId),
) -> Team {
    let mut t = team(threads, count);
    let (word, x) = (t.array("word", &[0]), t.array("x", &[0; 64]));
    let out = t.array("out", &[0; 64]);
    if synchronising {
        in_block(&mut t.k, 0, |b| {
            b.atomic_only(AtomicOp::Add, at(word, 0), 1, MemoryOrder::Relaxed, Scope::Device);
        });
    }
    body(&mut t.k, x, out);
    t
}

/// The two blocks that race on the first word of `x`, and true if the later access is a write.
fn between(t: Team) -> (u32, u32, bool) {
    let fault = t.fault();
    let FaultKind::Race { place, writes, earlier: other } = fault.kind else {
        panic!("{fault:?}");
    };
    assert_eq!((place.buffer.as_str(), &place.index[..]), ("x", &[0][..]));
    assert!(writes || other.wrote);
    (other.block.0, fault.block.0, writes)
}

#[test]
fn writing_readers_do_not_hide_other_readers() {
    for synchronising in [false, true] {
        let kernel = |writer: i32, word: i32| {
            blocks(synchronising, (1, 3), |b, x, out| {
                b.if_else(
                    block().equals(writer),
                    |b| b.store(at(x, 0), load(x, 0) + 1),
                    |b| b.store(at(out, block()), load(x, word)),
                );
            })
        };
        for writer in 0..3 {
            assert!(kernel(writer, 1).run().is_ok());
        }
        assert!(matches!(between(kernel(0, 0)), (0, 1 | 2, false)));
        assert_eq!(between(kernel(1, 0)), (0, 1, true));
        assert_eq!(between(kernel(2, 0)), (0, 2, true));
    }
}

/// Two blocks read the word, and one of them writes it.
#[test]
fn a_read_does_not_hide_an_older_one() {
    for synchronising in [false, true] {
        for writer in [1, 2] {
            let kernel = |reads: i32| {
                blocks(synchronising, (1, 3), |b, x, out| {
                    b.if_(block().ge(reads), |b| b.store(at(out, block()), load(x, 0)));
                    b.if_(block().equals(writer), |b| b.store(at(x, 0), 1));
                })
            };
            assert_eq!(between(kernel(0)), (0, writer as u32, true));
            // A block alone may read and write the word.
            assert_eq!(kernel(2).run().is_ok(), writer == 2);
        }
    }
}

/// A copy reads a word in one thread, and no thread waits for its group. A later read by another
/// thread of the warp does not hide it.
#[test]
fn an_older_read_of_a_copy_is_not_forgotten() {
    for synchronising in [false, true] {
        let kernel = |pending: i32| {
            blocks(synchronising, (32, 1), |b, x, _| {
                let to = b.shared("to", Elem::I32, [2.into()], BufferLayout::row_major(1), "");
                let copy =
                    |n: i32| Stmt::CopyAsync { target: at(to, n), source: at(x, 0), guard: None };
                thread(b, 0, |b| {
                    b.push(copy(0));
                    b.push(Stmt::CopyCommit);
                });
                thread(b, 1, |b| {
                    b.push(Stmt::CopyCommit);
                    b.push(copy(1));
                    b.push(Stmt::CopyCommit);
                });
                thread(b, 0, |b| b.push(Stmt::CopyWait { pending: pending.into() }));
                thread(b, 1, |b| b.push(Stmt::CopyWait { pending: 0.into() }));
                b.warp_barrier();
                thread(b, 1, |b| b.store(at(x, 0), 1));
            })
        };
        assert!(kernel(0).run().is_ok());
        let kind = kernel(1).kind();
        assert!(
            matches!(&kind, FaultKind::Race { writes: true, earlier, .. }
                if earlier.by_copy() && !earlier.wrote && earlier.thread == (0, 0)),
            "{kind:?}"
        );
    }
}

/// Shared memory is uninitialised in every block, although blocks that run on one worker or in one
/// slot reuse the memory.
#[test]
fn shared_memory_is_new_to_every_block() {
    for synchronising in [false, true] {
        let kernel = |from: i32| {
            blocks(synchronising, (32, 40), |b, _, out| {
                let x = b.shared("s", Elem::I32, [64.into()], BufferLayout::row_major(1), "");
                b.if_(block().lt(from), |b| b.store(at(x, tid()), 1));
                thread(b, 0, |b| b.store(at(out, block()), load(x, 0)));
            })
        };
        assert!(kernel(40).run().is_ok());
        let fault = kernel(37).fault();
        assert_eq!(fault.block, (37, 0, 0));
        assert!(matches!(fault.kind, FaultKind::Uninitialised { place } if place.buffer == "s"));
    }
}

/// Order is not carried from one block to the next, neither by barriers nor by acquired values.
#[test]
fn order_is_new_in_every_block() {
    for synchronising in [false, true] {
        let kernel = |last: i32| {
            blocks(synchronising, (64, 40), |b, _, out| {
                let x = b.shared("s", Elem::I32, [64.into()], BufferLayout::row_major(1), "");
                b.store(at(x, tid()), 1);
                b.if_(block().lt(last), |b| b.barrier());
                b.if_(block().lt(last), |b| b.barrier());
                thread(b, 0, |b| b.store(at(out, block()), load(x, 40)));
            })
        };
        assert!(kernel(40).run().is_ok());
        let fault = kernel(39).fault();
        assert_eq!(fault.block, (39, 0, 0));
        assert_eq!(race(fault.kind), "s");
    }
}

/// Threads of one block race on global memory, in any of the blocks that a worker runs.
#[test]
fn threads_of_any_block_race_on_global_memory() {
    for synchronising in [false, true] {
        let kernel = |last: i32| {
            blocks(synchronising, (2, 30), |b, x, out| {
                let own = || block() * 2;
                b.store(at(x, own() + tid()), 1);
                b.if_(block().lt(last), |b| b.warp_barrier());
                b.store(at(out, own() + tid()), load(x, own() + 1 - tid()));
            })
        };
        assert!(kernel(30).run().is_ok());
        let fault = kernel(29).fault();
        assert_eq!(fault.block, (29, 0, 0));
        assert!(matches!(&fault.kind, FaultKind::Race { earlier, .. } if earlier.block.0 == 29));
    }
}

/// An asynchronous copy reads a word that another block writes. Both detectors report that the
/// access was a copy.
#[test]
fn a_copy_of_another_block() {
    for synchronising in [false, true] {
        let kernel = |word: i32, by_copy: bool| {
            blocks(synchronising, (1, 2), |b, x, out| {
                let to = b.shared("to", Elem::I32, [1.into()], BufferLayout::row_major(1), "");
                let copy = Stmt::CopyAsync { target: at(to, 0), source: at(x, word), guard: None };
                b.if_(block().equals(0), |b| match by_copy {
                    true => b.push(copy),
                    false => b.store(at(out, 0), load(x, word)),
                });
                b.if_(block().equals(1), |b| b.store(at(x, 0), 1));
            })
        };
        for by_copy in [true, false] {
            assert!(kernel(1, by_copy).run().is_ok());
            let kind = kernel(0, by_copy).kind();
            let text = kind.to_string();
            let FaultKind::Race { writes: true, earlier, .. } = kind else { panic!("{text}") };
            assert_eq!((earlier.block, earlier.wrote), ((0, 0, 0), false));
            assert_eq!(earlier.by_copy(), by_copy);
            assert_eq!(text.contains("by an asynchronous copy of thread"), by_copy, "{text}");
        }
    }
}
