//! Last-block reduction: each block computes a part, and the block with the last ticket adds up all
//! parts.

use super::*;

/// Fences, order and scope with which a block takes its ticket.
#[derive(Clone, Copy)]
struct Ticket {
    before: Option<Scope>,
    order: MemoryOrder,
    scope: Scope,
    after: Option<Scope>,
}

const ATOMIC: Ticket =
    Ticket { before: None, order: MemoryOrder::AcqRel, scope: Scope::Device, after: None };
const FENCED: Ticket = Ticket {
    before: Some(Scope::Device),
    order: MemoryOrder::Relaxed,
    scope: Scope::Device,
    after: Some(Scope::Device),
};

/// Reset of the counter by the last block, for the next launch.
#[derive(Clone, Copy, PartialEq)]
enum Reset {
    Atomic,
    Store,
    Never,
}

const BLOCKS: i32 = 5;

/// One thread of a block writes its part and a thread of another warp takes the ticket. A third
/// thread adds up the parts if its block is the last.
fn reduction(ticket: Ticket, reset: Reset, part: fn() -> Expr) -> Team {
    let mut t = team(64, BLOCKS as u64);
    let parts = t.array("parts", &[0; BLOCKS as usize]);
    let counter = t.array("counter", &[0]);
    let total = t.array("total", &[0]);
    let taken = t.shared("taken", 1);
    let k = &mut t.k;
    thread(k, 40, |b| b.store(at(parts, part()), block() + 1));
    k.barrier();
    thread(k, 0, |b| {
        let fence = |b: &mut KernelBuilder, scope: Option<Scope>| {
            scope.into_iter().for_each(|scope| b.fence(MemoryOrder::AcqRel, scope));
        };
        fence(b, ticket.before);
        let old = b.atomic("old", AtomicOp::Add, at(counter, 0), 1, ticket.order, ticket.scope);
        fence(b, ticket.after);
        b.store(at(taken, 0), old);
    });
    k.barrier();
    k.if_(load(taken, 0).equals(BLOCKS - 1).and(tid().equals(50)), |b| {
        let sum = b.mut_("sum", 0);
        b.unrolled("i", BLOCKS, |b, i| b.assign(sum, Expr::from(sum) + load(parts, i)));
        b.store(at(total, 0), sum);
        match reset {
            Reset::Never => {}
            Reset::Store => b.store(at(counter, 0), 0),
            Reset::Atomic => {
                let (relaxed, device) = (MemoryOrder::Relaxed, Scope::Device);
                b.atomic_only(AtomicOp::Exchange, at(counter, 0), 0, relaxed, device);
            }
        }
    });
    t
}

fn by(ticket: Ticket) -> Team {
    reduction(ticket, Reset::Atomic, block)
}

const TOTAL: i32 = BLOCKS * (BLOCKS + 1) / 2;

#[test]
fn the_last_block_adds_up_what_all_have_written() {
    assert_eq!(by(ATOMIC).run(), Ok(vec![TOTAL]));
    assert_eq!(by(FENCED).run(), Ok(vec![TOTAL]));
    // One half of each protocol replaces the half that the other lacks.
    let released = Ticket { before: None, order: MemoryOrder::Release, ..FENCED };
    let acquired = Ticket { order: MemoryOrder::Acquire, after: None, ..FENCED };
    assert_eq!(by(released).run(), Ok(vec![TOTAL]));
    assert_eq!(by(acquired).run(), Ok(vec![TOTAL]));
}

/// Asserts that the last block has the fault when it reads a part that another block wrote.
fn on_parts(ticket: Ticket) {
    let fault = by(ticket).fault();
    assert_eq!((fault.block, fault.thread), ((4, 0, 0), (50, 0)));
    let FaultKind::Race { place, writes: false, earlier } = &fault.kind else {
        panic!("{fault:?}");
    };
    assert_eq!((place.buffer.as_str(), &place.index[..]), ("parts", &[0][..]));
    assert_eq!((earlier.block, earlier.thread, earlier.wrote), ((0, 0, 0), (40, 0), true));
    assert!(fault.to_string().ends_with("with the blocks in ascending order"), "{fault}");
}

#[test]
fn a_ticket_needs_a_release_before_it_and_an_acquire_after_it() {
    for order in [MemoryOrder::Relaxed, MemoryOrder::Acquire, MemoryOrder::Release] {
        on_parts(Ticket { order, ..ATOMIC });
    }
    on_parts(Ticket { before: None, ..FENCED });
    on_parts(Ticket { after: None, ..FENCED });
}

#[test]
fn a_ticket_speaks_to_the_device() {
    for fence in [None, Some(Scope::Block)] {
        on_parts(Ticket { before: fence, ..FENCED });
        on_parts(Ticket { after: fence, ..FENCED });
    }
    // Two block-scope atomics of different blocks race with each other.
    for ticket in [ATOMIC, FENCED] {
        let kind = by(Ticket { scope: Scope::Block, ..ticket }).kind();
        assert_eq!(race(kind), "counter");
    }
}

/// A fence orders the atomics of its own thread, not those of a thread that it synchronises with.
#[test]
fn the_fence_is_of_the_thread_that_takes_the_ticket() {
    let kernel = |who: i32| {
        let mut t = team(64, 2);
        let (part, counter) = (t.array("part", &[0]), t.array("counter", &[0]));
        let total = t.array("total", &[0]);
        let k = &mut t.k;
        k.if_(block().equals(0).and(tid().equals(40)), |b| b.store(at(part, 0), 7));
        k.if_(block().equals(0), |b| b.barrier());
        thread(k, who, |b| b.fence(MemoryOrder::AcqRel, Scope::Device));
        k.if_(block().equals(0), |b| b.barrier());
        thread(k, 0, |b| {
            let (order, scope) = (MemoryOrder::Relaxed, Scope::Device);
            let old = b.atomic(
                "old",
                AtomicOp::Add,
                at(counter, 0),
                Expr::from(1) - block(),
                order,
                scope,
            );
            b.fence(MemoryOrder::AcqRel, Scope::Device);
            b.if_(block().equals(1).and(Expr::from(old).equals(1)), |b| {
                b.store(at(total, 0), load(part, 0));
            });
        });
        t.unordered();
        t
    };
    assert_eq!(kernel(0).run(), Ok(vec![7]));
    assert_eq!(race(kernel(40).kind()), "part");
}

/// A releasing atomic is ordered before its acquirer. A relaxed atomic after a fence is not ordered
/// by that fence.
#[test]
fn the_counter_is_reset_when_all_have_counted() {
    assert_eq!(reduction(ATOMIC, Reset::Store, block).run(), Ok(vec![TOTAL]));
    assert_eq!(race(reduction(FENCED, Reset::Store, block).kind()), "counter");
}

#[test]
fn a_counter_that_is_not_reset_spoils_the_next_launch() {
    let twice = |reset| {
        let (kernel, arrays) = reduction(ATOMIC, reset, block).finish();
        let run = || {
            arrays[2].zero();
            launch(&kernel, &arrays, &[]).expect("the kernel is sound");
            arrays[2].to_vec_of::<i32>().expect("integers")
        };
        [run(), run()]
    };
    assert_eq!(twice(Reset::Atomic), [[TOTAL], [TOTAL]]);
    assert_eq!(twice(Reset::Never), [[TOTAL], [0]]);
}

#[test]
fn two_blocks_may_not_write_one_part() {
    let fault = reduction(ATOMIC, Reset::Atomic, || block() / 2).fault();
    assert_eq!((fault.block, fault.thread), ((1, 0, 0), (40, 0)));
    assert!(matches!(&fault.kind, FaultKind::Race { place, writes: true, earlier }
        if place.buffer == "parts" && earlier.block == (0, 0, 0) && earlier.wrote));
}

/// Partial sums are read by another thread than their writer, ordered by tickets, so that `parts`
/// is not exclusive. The total belongs to one thread.
#[test]
fn an_exclusive_element_is_one_threads_however_others_are_ordered() {
    let declared = |nth: usize| {
        let mut t = reduction(ATOMIC, Reset::Store, block);
        let array = t.globals[nth];
        t.k.exclusive(array);
        t
    };
    assert_eq!(declared(2).run(), Ok(vec![TOTAL]));
    assert_eq!(race(declared(0).kind()), "parts");
}
