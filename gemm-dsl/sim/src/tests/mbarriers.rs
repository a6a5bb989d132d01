//! Mbarriers in shared memory: waits, ordering and faults.

use super::*;
use crate::{MbarrierFault, WaitReason};
use gemm_dsl::ir::{MbarrierId, ProxyFence, TensorMap, TensorSwizzle};

/// Kernel of three warps with a barrier for `count` arrivals and an array that one thread fills.
struct Ring {
    t: Team,
    barrier: MbarrierId,
    x: BufferId,
    out: BufferId,
}

fn ring(count: i32) -> Ring {
    let mut t = team(96, 1);
    let (x, out) = (t.shared("x", 4), t.array("out", &[0; 96]));
    let barrier = t.k.mbarriers("full", 2, "");
    thread(&mut t.k, 0, |b| b.mbarrier_init(barrier, 1, count));
    t.k.barrier();
    Ring { t, barrier, x, out }
}

fn wrong(kind: FaultKind) -> MbarrierFault {
    match kind {
        FaultKind::Mbarrier { barrier, index: 1, block: None, wrong } if barrier == "full" => wrong,
        other => panic!("{other}"),
    }
}

/// The first thread writes and arrives; all others wait and read. Either step can be left out.
fn handed(arrives: bool, waits: bool) -> Ring {
    let mut r = ring(1);
    let (barrier, x, out) = (r.barrier, r.x, r.out);
    thread(&mut r.t.k, 0, |b| {
        b.store(at(x, 0), 7);
        if arrives {
            b.mbarrier_arrive(barrier, 1);
        }
    });
    if waits {
        r.t.k.mbarrier_wait(barrier, 1, 0);
    }
    r.t.k.store(at(out, tid()), load(x, 0));
    r
}

#[test]
fn accesses_before_an_arrival_are_ordered_before_the_waiters() {
    assert_eq!(handed(true, true).t.run(), Ok(vec![7; 96]));
    assert_eq!(race(handed(true, false).t.kind()), "x");
    let kind = handed(false, true).t.kind();
    let FaultKind::Deadlock { waiting, .. } = &kind else { panic!("{kind}") };
    let (barrier, index) = ("full".to_owned(), 1);
    let waits_for =
        WaitReason::Phase { barrier, index, parity: 0, phase: 0, arrivals: 1, bytes: 0 };
    assert!(waiting.len() == 3 && waiting.iter().all(|w| w.waits_for == waits_for));
    let told = "waits at barrier full[1] for parity 0: phase 0 lacks 1 arrival";
    assert!(kind.to_string().contains(told), "{kind}");
}

#[test]
fn waiting_alone_orders_nothing() {
    // The second warp reads and arrives at the barrier without signalling the first warp, which
    // then writes.
    let told = |arrives: bool| {
        let mut r = ring(if arrives { 33 } else { 1 });
        let (barrier, x, out) = (r.barrier, r.x, r.out);
        thread(&mut r.t.k, 0, |b| b.store(at(x, 0), 7));
        r.t.k.barrier();
        warp(&mut r.t.k, 1, |b| {
            b.store(at(out, tid()), load(x, 0));
            if arrives {
                b.mbarrier_arrive(barrier, 1);
            }
        });
        thread(&mut r.t.k, 0, |b| {
            b.mbarrier_arrive(barrier, 1);
            b.mbarrier_wait(barrier, 1, 0);
            b.store(at(x, 0), 8);
        });
        r
    };
    assert!(told(true).t.run().is_ok());
    assert_eq!(race(told(false).t.kind()), "x");
}

#[test]
fn a_fresh_barrier_has_had_a_phase_of_parity_1() {
    let mut r = ring(1);
    r.t.k.mbarrier_wait(r.barrier, 1, 1);
    assert!(r.t.run().is_ok());
    let mut r = ring(1);
    r.t.k.mbarrier_wait(r.barrier, 1, 2);
    assert_eq!(wrong(r.t.kind()), MbarrierFault::NoParity { parity: 2 });
}

/// Fault of threads that run `body` on a barrier for `count` arrivals.
fn doing(count: i32, body: impl FnOnce(&mut KernelBuilder, MbarrierId)) -> FaultKind {
    let mut r = ring(count);
    body(&mut r.t.k, r.barrier);
    r.t.kind()
}

#[test]
fn mbarrier_faults_are_reported() {
    let too_many = doing(1, |b, barrier| {
        thread(b, 0, |b| {
            b.mbarrier_arrive_expect(barrier, 1, 16);
            b.mbarrier_arrive(barrier, 1);
        });
    });
    assert_eq!(wrong(too_many), MbarrierFault::TooManyArrivals { phase: 0 });
    // The second arrival may fall into the first phase or into the next.
    let early = doing(1, |b, barrier| {
        thread(b, 0, |b| {
            b.mbarrier_arrive(barrier, 1);
            b.mbarrier_arrive(barrier, 1);
        });
    });
    assert_eq!(wrong(early), MbarrierFault::TooEarly { phase: 1 });
    for bytes in [-1, 1 << 20] {
        let bytes = doing(2, |b, barrier| {
            thread(b, 0, |b| b.mbarrier_arrive_expect(barrier, 1, bytes));
        });
        assert!(matches!(wrong(bytes), MbarrierFault::TooManyBytes { .. }));
    }
    // A thread that has observed only the first phase waits for it again after the second has
    // completed.
    let late = doing(1, |b, barrier| {
        thread(b, 0, |b| {
            for phase in 0..2 {
                b.mbarrier_arrive(barrier, 1);
                b.mbarrier_wait(barrier, 1, phase);
            }
        });
        thread(b, 32, |b| b.mbarrier_wait(barrier, 1, 0));
    });
    assert_eq!(wrong(late), MbarrierFault::TooLate { phase: 0, now: 2 });
    // A thread that waits in time blocks no other, but its wait must be ordered.
    let unseen = doing(1, |b, barrier| {
        thread(b, 32, |b| b.mbarrier_wait(barrier, 1, 1));
        b.barrier();
        thread(b, 32, |b| b.mbarrier_wait(barrier, 1, 1));
        thread(b, 64, |b| b.mbarrier_arrive(barrier, 1));
    });
    assert_eq!(wrong(unseen), MbarrierFault::NotObserved { phase: 0 });
    let outside = doing(1, |b, barrier| b.mbarrier_wait(barrier, 2, 1));
    let FaultKind::OutOfBounds { place, extents, .. } = outside else { panic!("{outside}") };
    assert_eq!((place.buffer.as_str(), place.index, extents), ("full", vec![2], vec![2]));
}

/// Block that copies boxes of 8 rows of 128 bytes.
struct Copies {
    k: KernelBuilder,
    from: BufferId,
    to: BufferId,
    out: BufferId,
    barrier: MbarrierId,
}

fn copies() -> Copies {
    let mut b = KernelBuilder::new("kernel");
    let grid = [const { Expr::U64(1) }; 3];
    b.geometry(Geometry { block: (64, 1), grid, blocks_per_sm: Some(1) });
    let map = TensorMap { tile: vec![8, 32].into(), swizzle: TensorSwizzle::Bytes128 };
    let from = b.tensor_map("in", Elem::I32, Operand::Input(0), map);
    b.shape(from, [16.into(), 32.into()], [32.into(), 1.into()]);
    let out = b.global("out", Elem::I32, Operand::Output(0));
    b.shape(out, [64.into()], [1.into()]);
    let swizzle = TensorSwizzle::Bytes128.layout(Elem::I32);
    let layout = BufferLayout::Array { order: vec![0, 1], pad: 0.into(), swizzle };
    let to = b.shared("x", Elem::I32, [20.into(), 32.into()], layout, "");
    let barrier = b.mbarriers("full", 1, "");
    thread(&mut b, 0, |b| {
        b.mbarrier_init(barrier, 0, 1);
        b.proxy_fence(ProxyFence::MbarrierInit);
    });
    b.barrier();
    Copies { k: b, from, to, out, barrier }
}

impl Copies {
    /// The first thread issues a TMA copy from one row to another.
    fn bring(&mut self, from_row: i32, row: i32) {
        let Self { from, to, barrier, .. } = *self;
        thread(&mut self.k, 0, |b| {
            b.mbarrier_arrive_expect(barrier, 0, 1024);
            let to = Access::new(to, [row.into(), 0.into()]);
            b.tensor_copy(from, [from_row.into(), 0.into()], to, (barrier, 0.into()));
        });
    }

    fn element(&self, row: impl Into<Expr>) -> Access {
        Access::new(self.to, [row.into(), tid() % 32])
    }

    fn run(self) -> Result<Vec<i32>, SimError> {
        let input: Vec<i32> = (0..16 * 32).collect();
        let buffers = [Buffer::from_slice(&input), Buffer::from_slice(&[0_i32; 64])];
        launch(&self.k.finish().expect("the test's kernel is valid"), &buffers, &[])?;
        Ok(buffers[1].to_vec_of().unwrap_or_default())
    }

    fn kind(self) -> FaultKind {
        fault(self.run()).kind
    }
}

#[test]
fn a_box_comes_with_zeros_outside_of_the_array() {
    for (from_row, row) in [(8, 8), (12, 0), (-3, 8)] {
        let mut c = copies();
        c.bring(from_row, row);
        c.k.mbarrier_wait(c.barrier, 0, 0);
        let there = Expr::from(row) + tid() / 32 * 4;
        let (out, value) = (at(c.out, tid()), c.element(there).load());
        c.k.store(out, value);
        let expected: Vec<i32> = (0..64)
            .map(|i| {
                let from = from_row + i / 32 * 4;
                if (0..16).contains(&from) { 32 * from + i % 32 } else { 0 }
            })
            .collect();
        assert_eq!(c.run(), Ok(expected), "{from_row} {row}");
    }
}

#[test]
fn a_box_starts_where_its_rows_do_and_ends_inside() {
    let mut c = copies();
    c.bring(0, 4);
    let kind = c.kind();
    let FaultKind::MisalignedTile { place, bytes: 1024 } = &kind else { panic!("{kind}") };
    assert_eq!(place.buffer, "x");
    let mut c = copies();
    c.bring(0, 16);
    assert!(matches!(c.kind(), FaultKind::BoxOutside { .. }));
}

/// R4 and R5: a proxy fence orders earlier reads and writes of statements before a box that
/// overwrites them. It may be anywhere on the path.
#[test]
fn statements_before_a_box_that_overwrites() {
    for (writes, fence) in [true, false].into_iter().flat_map(|w| [0, 1, 2].map(|f| (w, f))) {
        let mut c = copies();
        let word = c.element(0);
        warp(&mut c.k, 1, |b| b.store(word.clone(), tid()));
        if !writes {
            // The writes are fenced; only the later reads are under test.
            c.k.proxy_fence(ProxyFence::Async);
            c.k.barrier();
            let (out, value) = (at(c.out, tid() % 32), word.load());
            warp(&mut c.k, 1, |b| b.store(out, value));
        }
        if fence == 1 {
            warp(&mut c.k, 1, |b| b.proxy_fence(ProxyFence::Async));
        }
        c.k.barrier();
        if fence == 2 {
            thread(&mut c.k, 0, |b| b.proxy_fence(ProxyFence::Async));
        }
        c.bring(0, 0);
        thread(&mut c.k, 0, |b| b.mbarrier_wait(c.barrier, 0, 0));
        match fence {
            0 => assert_eq!(race(c.kind()), "x"),
            _ => assert!(c.run().is_ok(), "{writes} {fence}"),
        }
    }
}

/// R13: two boxes of one phase have the same destination.
#[test]
fn two_boxes_to_one_place() {
    let mut c = copies();
    let Copies { from, to, barrier, .. } = c;
    thread(&mut c.k, 0, |b| {
        b.mbarrier_arrive_expect(barrier, 0, 2048);
        for row in [0, 8] {
            let to = Access::new(to, [0.into(), 0.into()]);
            b.tensor_copy(from, [row.into(), 0.into()], to, (barrier, 0.into()));
        }
    });
    assert_eq!(race(c.kind()), "x");
}

#[test]
fn a_copy_that_outlives_its_block() {
    for waits in [false, true] {
        let mut c = copies();
        c.bring(0, 0);
        if waits {
            thread(&mut c.k, 40, |b| b.mbarrier_wait(c.barrier, 0, 0));
            assert!(c.run().is_ok());
            continue;
        }
        let fault = fault(c.run());
        let told = "barrier full[0]: a copy that no thread has waited for may write after the \
                    block has exited";
        assert!(fault.to_string().contains(told), "{fault}");
        assert!(
            fault.thread == (0, 0) && fault.statement.starts_with("tensor_copy_2d("),
            "{fault}"
        );
    }
}

/// R2: a thread that has not waited itself synchronised with one that has.
#[test]
fn a_box_is_there_for_those_who_are_told() {
    for told in [true, false] {
        let mut c = copies();
        c.bring(0, 0);
        thread(&mut c.k, 32, |b| b.mbarrier_wait(c.barrier, 0, 0));
        if told {
            c.k.barrier();
        }
        let (out, value) = (at(c.out, tid()), c.element(0).load());
        c.k.store(out, value);
        match told {
            true => assert!(c.run().is_ok()),
            false => assert!(matches!(c.kind(), FaultKind::CopyNotAwaited { .. })),
        }
    }
}
