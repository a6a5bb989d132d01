//! Release sequences: ordering from a releasing atomic, through other atomics, to an acquiring one.

use super::*;

const DEVICE: Scope = Scope::Device;

/// Adds to the first word of an array and returns the old value.
fn add(
    b: &mut KernelBuilder,
    word: BufferId,
    value: i32,
    order: MemoryOrder,
    scope: Scope,
) -> Expr {
    b.atomic("old", AtomicOp::Add, at(word, 0), value, order, scope).into()
}

/// Block 0 writes and adds 1, block 1 adds 2, and block 2 reads if it finds both.
fn chain(orders: [MemoryOrder; 3], between: impl Fn(&mut KernelBuilder)) -> Team {
    let mut t = team(32, 3);
    let (data, word) = (t.array("data", &[0]), t.array("word", &[0]));
    let out = t.array("out", &[0]);
    in_block(&mut t.k, 0, |b| {
        b.store(at(data, 0), 5);
        add(b, word, 1, orders[0], DEVICE);
    });
    in_block(&mut t.k, 1, |b| {
        add(b, word, 2, orders[1], DEVICE);
        between(b);
    });
    in_block(&mut t.k, 2, |b| {
        let old = add(b, word, 0, orders[2], DEVICE);
        b.if_(old.equals(3), |b| b.store(at(out, 0), load(data, 0)));
    });
    t.unordered();
    t
}

#[test]
fn an_atomic_that_only_counts_hands_on_what_was_released() {
    let (relaxed, acquire, release) =
        (MemoryOrder::Relaxed, MemoryOrder::Acquire, MemoryOrder::Release);
    assert_eq!(chain([release, relaxed, acquire], |_| ()).run(), Ok(vec![5]));
    // A fence after it does no harm.
    let fence = |b: &mut KernelBuilder| b.fence(MemoryOrder::SeqCst, DEVICE);
    assert_eq!(chain([release, relaxed, acquire], fence).run(), Ok(vec![5]));
    assert_eq!(race(chain([relaxed, release, acquire], |_| ()).kind()), "data");
    assert_eq!(race(chain([release, release, relaxed], |_| ()).kind()), "data");
}

/// Block 0 signals block 1 through one word, and block 1 signals block 2 through another.
#[test]
fn releases_include_earlier_acquires() {
    let kernel = |acquire: MemoryOrder, release: MemoryOrder| {
        let mut t = team(64, 3);
        let (data, first) = (t.array("data", &[0]), t.array("first", &[0]));
        let (second, out) = (t.array("second", &[0]), t.array("out", &[0]));
        in_block(&mut t.k, 0, |b| {
            b.store(at(data, 0), 5);
            add(b, first, 1, MemoryOrder::Release, DEVICE);
        });
        let heard = t.shared("heard", 1);
        // Thread 0 receives the signal, meets thread 40 at a barrier, and thread 40 passes it on.
        t.k.if_(block().equals(1), |b| {
            thread(b, 0, |b| {
                let old = add(b, first, 0, acquire, DEVICE);
                b.store(at(heard, 0), old);
            });
            b.barrier();
            thread(b, 40, |b| {
                b.if_(load(heard, 0).equals(1), |b| _ = add(b, second, 1, release, DEVICE));
            });
        });
        in_block(&mut t.k, 2, |b| {
            let old = add(b, second, 0, MemoryOrder::Acquire, DEVICE);
            b.if_(old.equals(1), |b| b.store(at(out, 0), load(data, 0)));
        });
        t.unordered();
        t
    };
    assert_eq!(kernel(MemoryOrder::Acquire, MemoryOrder::Release).run(), Ok(vec![5]));
    assert_eq!(race(kernel(MemoryOrder::Relaxed, MemoryOrder::Release).kind()), "data");
    assert_eq!(race(kernel(MemoryOrder::Acquire, MemoryOrder::Relaxed).kind()), "data");
}

/// One thread of a block writes and another one releases. The barrier between them makes the write
/// part of the release.
#[test]
fn a_release_holds_what_the_thread_has_learnt_at_a_barrier() {
    let kernel = |barrier: bool| {
        let mut t = team(64, 2);
        let (data, word) = (t.array("data", &[0]), t.array("word", &[0]));
        let out = t.array("out", &[0]);
        t.k.if_(block().equals(0), |b| {
            thread(b, 0, |b| b.store(at(data, 0), 5));
            if barrier {
                b.barrier();
            }
            thread(b, 40, |b| _ = add(b, word, 1, MemoryOrder::Release, DEVICE));
        });
        in_block(&mut t.k, 1, |b| {
            let old = add(b, word, 0, MemoryOrder::Acquire, DEVICE);
            b.if_(old.equals(1), |b| b.store(at(out, 0), load(data, 0)));
        });
        t.unordered();
        t
    };
    assert_eq!(kernel(true).run(), Ok(vec![5]));
    assert_eq!(race(kernel(false).kind()), "data");
}

/// Accesses after a release, or after its fence, are not released.
#[test]
fn a_release_ends_with_itself() {
    let kernel = |fence: bool, late: bool| {
        let mut t = team(32, 2);
        let (data, word) = (t.array("data", &[0]), t.array("word", &[0]));
        let out = t.array("out", &[0]);
        in_block(&mut t.k, 0, |b| {
            let store = |b: &mut KernelBuilder| b.store(at(data, 0), 5);
            if !late {
                store(b);
            }
            if fence {
                b.fence(MemoryOrder::AcqRel, DEVICE);
                if late {
                    store(b);
                }
                add(b, word, 1, MemoryOrder::Relaxed, DEVICE);
            } else {
                add(b, word, 1, MemoryOrder::Release, DEVICE);
                if late {
                    store(b);
                }
            }
        });
        in_block(&mut t.k, 1, |b| {
            let old = add(b, word, 0, MemoryOrder::Acquire, DEVICE);
            b.if_(old.equals(1), |b| b.store(at(out, 0), load(data, 0)));
        });
        t.unordered();
        t
    };
    for fence in [false, true] {
        assert_eq!(kernel(fence, false).run(), Ok(vec![5]));
        assert_eq!(race(kernel(fence, true).kind()), "data");
    }
}

/// Between two warps of a block, block scope is enough for atomics and fences.
#[test]
fn the_scope_of_a_block_is_for_its_own_threads() {
    let kernel = |order: MemoryOrder, fence: Option<Scope>| {
        let mut t = team(64, 1);
        let (data, word) = (t.array("data", &[0]), t.array("word", &[0]));
        let out = t.array("out", &[0]);
        thread(&mut t.k, 0, |b| {
            b.store(at(data, 0), 5);
            fence.into_iter().for_each(|scope| b.fence(MemoryOrder::AcqRel, scope));
            add(b, word, 1, order, Scope::Block);
        });
        thread(&mut t.k, 32, |b| {
            let old = add(b, word, 0, order, Scope::Block);
            fence.into_iter().for_each(|scope| b.fence(MemoryOrder::AcqRel, scope));
            b.if_(old.equals(1), |b| b.store(at(out, 0), load(data, 0)));
        });
        t.unordered();
        t
    };
    assert_eq!(kernel(MemoryOrder::AcqRel, None).run(), Ok(vec![5]));
    for scope in [Scope::Block, Scope::Device] {
        assert_eq!(kernel(MemoryOrder::Relaxed, Some(scope)).run(), Ok(vec![5]));
    }
    assert_eq!(race(kernel(MemoryOrder::Relaxed, None).kind()), "data");
}

/// Lanes of one warp are separate agents. Each acquires and releases for itself, and their atomics
/// may run in any order.
#[test]
fn a_lane_acquires_for_itself() {
    let kernel = |reader: i32, looks: bool| {
        let mut t = team(32, 1);
        let (data, word) = (t.shared("data", 1), t.shared("word", 1));
        let out = t.array("out", &[0]);
        let k = &mut t.k;
        thread(k, 9, |b| b.store(at(word, 0), 0));
        k.warp_barrier();
        let found = k.mut_("found", 1);
        k.if_else(
            tid().equals(0),
            |b| {
                b.store(at(data, 0), 5);
                add(b, word, 1, MemoryOrder::Release, Scope::Block);
            },
            |b| {
                thread(b, 7, |b| {
                    let old = add(b, word, 0, MemoryOrder::Acquire, Scope::Block);
                    if looks {
                        b.assign(found, old);
                    }
                });
            },
        );
        let reads = tid().equals(reader).and(Expr::from(found).equals(1));
        k.if_(reads, |b| b.store(at(out, 0), load(data, 0)));
        t.unordered();
        t
    };
    assert_eq!(kernel(7, true).run(), Ok(vec![5]));
    assert_eq!(race(kernel(8, true).kind()), "data");
    // Lane 7 runs first and does not check the flag.
    let fault = kernel(7, false).fault();
    assert_eq!((fault.turns, race(fault.kind)), (Some("reversed"), "data".to_owned()));
}
