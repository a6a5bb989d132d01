//! Lists of arrays: each array has its own pointer, into one allocation with others or into its
//! own.

use super::*;
use gemm_dsl::ir::{PointerRef, Requirement, Space, Stmt};

/// Kernel on lists `in` and `out` of `count` arrays. Each array is 4 × 4 with row stride `pitch`.
/// Thread (row, column) of block `b` works on array `b`.
struct Lists {
    k: KernelBuilder,
    input: BufferId,
    output: BufferId,
}

fn lists(count: u64, pitch: u64, body: impl FnOnce(&mut Lists)) -> VerifiedKernel {
    let mut b = KernelBuilder::new("kernel");
    let input = b.global("in", Elem::F32, Operand::Input(0));
    let output = b.global("out", Elem::F32, Operand::Output(0));
    for list in [input, output] {
        b.list(list, count.into(), [4.into(), 4.into()], [pitch.into(), 1.into()]);
    }
    let grid = [Expr::U64(count), Expr::U64(1), Expr::U64(1)];
    b.geometry(Geometry { block: (16, 1), grid, blocks_per_sm: Some(1) });
    let mut lists = Lists { k: b, input, output };
    body(&mut lists);
    lists.k.finish().expect("the test's kernel is valid")
}

/// Element (row, column) of array `nth`, one for each thread.
fn own(list: BufferId, nth: impl Into<Expr>) -> Access {
    Access::new(list, [nth.into(), tid() / 4, tid() % 4])
}

/// Copies each element of `in` to the same place in `out`.
fn copies(count: u64, pitch: u64) -> VerifiedKernel {
    lists(count, pitch, |lists| {
        let value = own(lists.input, block()).load();
        lists.k.store(own(lists.output, block()), value);
    })
}

fn numbers(from: usize, len: usize) -> Buffer {
    Buffer::from_f32(&(from..from + len).map(|i| i as f32).collect::<Vec<_>>())
}

fn zeros(count: usize, len: usize) -> Vec<Buffer> {
    (0..count).map(|_| Buffer::zeros(len)).collect()
}

fn run(kernel: &VerifiedKernel, input: &[Buffer], output: &[Buffer]) -> Result<Counters, SimError> {
    launch(kernel, &[input, output].map(|list| BufferArg::List(list.to_vec())), &[])
}

#[test]
fn arrays_lie_anywhere() {
    let (one, other) = (numbers(0, 16), numbers(100, 40));
    let part = |start| other.view(start, 16).expect("inside");
    // One array twice, two that overlap, and parts of an allocation in descending order.
    let input = [part(24), one.clone(), part(5), one, part(0)];
    let all = Buffer::zeros(100);
    let at = |start| all.view(start, 16).expect("inside");
    let output = [at(84), at(3), Buffer::zeros(16), at(40), at(20)];
    run(&copies(5, 4), &input, &output).expect("a sound launch");
    for (found, expected) in output.iter().zip(&input) {
        assert_eq!(found.to_vec(), expected.to_vec());
    }
    // Elements outside of the arrays are unchanged.
    let inside = [3..19, 20..36, 40..56, 84..100];
    let beside = |at: &usize| !inside.iter().any(|range| range.contains(at));
    assert!((0..100).filter(beside).all(|at| all.to_vec()[at] == 0.0));
}

/// Arrays may be interleaved: rows of one are between rows of the other.
#[test]
fn arrays_may_be_interleaved() {
    let all = Buffer::zeros(32);
    let output = [0, 4].map(|start| all.view(start, 28).expect("inside"));
    let input = [numbers(0, 28), numbers(50, 28)];
    run(&copies(2, 8), &input, &output).expect("no element of both");
    let expected = (0..32).map(|i| if i % 8 < 4 { i } else { 50 + i - 4 } as f32);
    assert_eq!(all.to_vec(), expected.collect::<Vec<_>>());
    // One column further, the rows of the two arrays overlap by one element.
    let output = [0, 3].map(|start| all.view(start, 28).expect("inside"));
    let kind = fault(run(&copies(2, 8), &input, &output)).kind;
    let FaultKind::Race { place, writes: true, .. } = kind else { panic!("{kind:?}") };
    assert_eq!((place.buffer.as_str(), place.index), ("out", vec![0, 0, 3]));
}

#[test]
fn a_race_between_arrays_of_a_list_is_one() {
    // Two blocks: one reads, in its array of `out`, an element that the other wrote in its own.
    let kernel = lists(2, 4, |lists| {
        let value = own(lists.output, Expr::I32(1) - block()).load();
        lists.k.store(own(lists.output, block()), value + 1.0);
    });
    let all = Buffer::zeros(64);
    let output = |starts: [usize; 2]| starts.map(|start| all.view(start, 16).expect("inside"));
    assert_eq!(race(fault(run(&kernel, &zeros(2, 16), &output([0, 16]))).kind), "out");
    // One block: two arrays of the list share an element.
    let kernel = lists(2, 4, |lists| {
        let (k, output) = (&mut lists.k, lists.output);
        k.if_(block().equals(0), |b| {
            b.store(own(output, 0), 1.0);
            b.store(own(output, 1), 2.0);
        });
    });
    run(&kernel, &zeros(2, 16), &output([0, 16])).expect("apart");
    run(&kernel, &zeros(2, 16), &output([33, 7])).expect("apart");
    assert_eq!(race(fault(run(&kernel, &zeros(2, 16), &output([0, 15]))).kind), "out");
    assert_eq!(race(fault(run(&kernel, &zeros(2, 16), &output([25, 10]))).kind), "out");
}

/// Blocks with inter-block synchronisation run in several orders, each from the original contents.
#[test]
fn arrays_of_a_list_are_put_back() {
    let kernel = |op: AtomicOp| {
        let mut b = KernelBuilder::new("kernel");
        let words = b.global("words", Elem::U32, Operand::Temp(0));
        b.list(words, 3u64.into(), [2.into()], [1.into()]);
        let grid = [Expr::U64(6), Expr::U64(1), Expr::U64(1)];
        b.geometry(Geometry { block: (1, 1), grid, blocks_per_sm: Some(1) });
        let target = Access::new(words, [block() / 2, block() % 2]);
        let value = block().cast(Elem::U32) + Expr::U32(1);
        b.atomic_only(op, target, value, MemoryOrder::Relaxed, Scope::Device);
        b.finish().expect("the test's kernel is valid")
    };
    let all = Buffer::from_slice(&[10u32, 20, 30, 40]);
    let apart = Buffer::from_slice(&[50u32, 60]);
    // The second element of `all` is in both arrays, and the third only in one.
    let at = |start| all.view(start, 2).expect("inside");
    let given = [BufferArg::List(vec![at(0), apart.clone(), at(1)])];
    launch(&kernel(AtomicOp::Add), &given, &[]).expect("sums do not depend on the order");
    assert_eq!(all.to_vec_of::<u32>(), Some(vec![11, 20 + 2 + 5, 30 + 6, 40]));
    assert_eq!(apart.to_vec_of::<u32>(), Some(vec![53, 64]));
    match launch(&kernel(AtomicOp::Exchange), &given, &[]) {
        Err(SimError::OrderDependent { place, .. }) => {
            assert_eq!((&*place.buffer, &place.index), ("words", &vec![0, 1]));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn indices_are_checked_in_each_array() {
    let read = |nth: Expr, row: Expr| {
        lists(2, 4, |lists| {
            let value = Access::new(lists.input, [nth, row, 0.into()]).load();
            lists.k.store(own(lists.output, block()), value);
        })
    };
    let all = numbers(0, 100);
    // The allocation extends past the end of every array.
    let input = [0, 40].map(|start| all.view(start, 60).expect("inside"));
    let outcome = |nth: Expr, row| run(&read(nth, row), &input, &zeros(2, 16));
    assert!(outcome(block(), 3.into()).is_ok() && outcome(tid() % 2, tid() / 4).is_ok());
    let beyond = [
        (Expr::I32(2), Expr::I32(0), vec![2, 0, 0]),
        (tid() - 1, 0.into(), vec![-1, 0, 0]),
        (block() + 1, 1.into(), vec![2, 1, 0]),
        (Expr::U64(1 << 32), 0.into(), vec![1 << 32, 0, 0]),
        (Expr::I32(0), Expr::I32(4), vec![0, 4, 0]),
    ];
    for (nth, row, expected) in beyond {
        let kind = fault(outcome(nth, row)).kind;
        let FaultKind::OutOfBounds { place, extents, .. } = kind else { panic!("{kind:?}") };
        assert_eq!((place.index, extents), (expected, vec![2, 4, 4]));
    }
}

/// An access through a pointer must stay inside its array, not only inside the allocation around
/// it.
#[test]
fn pointers_stay_in_their_array() {
    let walk = |nth: Expr, from: i32, to: i32| {
        lists(2, 4, |lists| {
            let (k, input) = (&mut lists.k, lists.input);
            let pointer = k.pointers("p", input, [], "");
            let of = || PointerRef { buffer: pointer, index: Vec::new() };
            let at = Access::new(input, [nth, 0.into(), Expr::I32(from)]);
            k.push(Stmt::Point { pointer: of(), at });
            k.push(Stmt::Advance { pointer: of(), by: (to - from).into() });
            let value = Access::new(pointer, [0.into()]).load();
            k.store(own(lists.output, block()), value);
        })
    };
    let all = numbers(0, 64);
    let input = [32, 16].map(|start| all.view(start, 16).expect("inside"));
    let outcome = |nth: Expr, from, to| {
        let output = zeros(2, 16);
        run(&walk(nth, from, to), &input, &output).map(|_| output.map_first())
    };
    for (nth, from, to, expected) in [(0, 0, 15, 47.0), (1, 0, 15, 31.0), (1, -20, 0, 16.0)] {
        assert_eq!(outcome(nth.into(), from, to).expect("inside"), expected);
    }
    let beyond = [
        (Expr::I32(0), 0, 16),
        (1.into(), 0, 16),
        (0.into(), -1, -1),
        (1.into(), -1, -1),
        (2.into(), 0, 0),
        (Expr::I32(-1), 0, 0),
        (Expr::U64(1 << 24), 0, 0),
    ];
    for (nth, from, to) in beyond {
        let kind = fault(outcome(nth.clone(), from, to)).kind;
        let FaultKind::BeyondAllocation { place, .. } = kind else { panic!("{nth:?}: {kind:?}") };
        assert_eq!((&*place.buffer, place.space), ("in", Space::Global));
    }
}

trait First {
    fn map_first(&self) -> f32;
}

impl First for Vec<Buffer> {
    fn map_first(&self) -> f32 {
        self[0].to_vec()[0]
    }
}

/// Alignment and sectors are computed for each array.
#[test]
fn vectors_are_aligned_in_each_array() {
    let kernel = |required: bool| {
        lists(2, 4, |lists| {
            let (k, input, output) = (&mut lists.k, lists.input, lists.output);
            if required {
                k.require(Requirement::Aligned { operand: Operand::Input(0), bytes: 16 });
            }
            k.if_(tid().lt(4), |b| {
                let row = |list| Access::new(list, [block(), tid(), 0.into()]).vector();
                b.store(row(output), row(input).load());
            });
        })
    };
    let all = numbers(0, 64);
    let input = |starts: [usize; 2]| starts.map(|start| all.view(start, 16).expect("inside"));
    let output = zeros(2, 16);
    let run = |required, starts| run(&kernel(required), &input(starts), &output);
    // Each of the two blocks reads 64 bytes and writes 64 bytes.
    assert_eq!(run(true, [16, 40]).expect("aligned").global_sectors, 8);
    assert_eq!(output[1].to_vec()[0], 40.0);
    // An array that starts inside a sector touches one sector more.
    assert_eq!(run(true, [16, 44]).expect("aligned").global_sectors, 9);
    // The same holds for the first array of the allocation.
    assert_eq!(run(true, [20, 44]).expect("aligned").global_sectors, 10);
    let kind = fault(run(false, [17, 41])).kind;
    assert!(
        matches!(&kind, FaultKind::Misaligned { place } if place.index == [0, 0, 0]),
        "{kind:?}"
    );
    let kind = fault(run(false, [16, 41])).kind;
    assert!(
        matches!(&kind, FaultKind::Misaligned { place } if place.index == [1, 0, 0]),
        "{kind:?}"
    );
    let lacks = unmet(run(true, [16, 41]));
    assert!(matches!(&lacks.subject, Subject::OfList { name, nth: 1, .. } if name == "in"));
    assert_eq!((&lacks.need, lacks.value), (&Need::Aligned { bytes: 16, elem: Elem::F32 }, 4));
}

#[test]
fn wrong_lists_are_rejected() {
    let kernel = copies(2, 4);
    let one = || BufferArg::One(Buffer::zeros(32));
    let list = |len: [usize; 2]| BufferArg::List(len.map(Buffer::zeros).to_vec());
    let full = || list([16, 16]);
    let with = |input: BufferArg, output: BufferArg| launch(&kernel, &[input, output], &[]);
    assert!(with(full(), full()).is_ok());
    let lacks = unmet(with(one(), full()));
    assert!(matches!(&lacks.subject, Subject::Array { name, .. } if name == "in"));
    assert_eq!(lacks.need, Need::List);
    let three = BufferArg::List(zeros(3, 16));
    let lacks = unmet(with(full(), three));
    assert_eq!((lacks.need, lacks.value), (Need::Count(2), 3));
    let lacks = unmet(with(BufferArg::List(Vec::new()), full()));
    assert_eq!((lacks.need, lacks.value), (Need::Count(2), 0));
    let lacks = unmet(with(list([16, 15]), full()));
    assert!(matches!(&lacks.subject, Subject::OfList { nth: 1, .. }));
    assert_eq!((lacks.need, lacks.value), (Need::Elements(16), 15));
    let other = BufferArg::List(vec![Buffer::zeros(16), Buffer::zeros_of(Elem::U32, 16)]);
    let need = Need::Element { expected: Elem::F32, found: Elem::U32 };
    assert_eq!(unmet(with(other, full())).need, need);
    // A list is not accepted for a single array.
    let mut b = bench(1, 1, [1, 1]);
    let value = b.read(0);
    b.write(0, value);
    let lacks = unmet(launch(&b.finish(), &[list([1, 1]), one()], &[]));
    assert_eq!((lacks.need, lacks.value), (Need::One, 2));
}

/// Inputs may not overlap outputs: pointers of a kernel are `__restrict__`.
#[test]
fn inputs_may_not_overlap_outputs() {
    let all = Buffer::zeros(96);
    let at = |start| all.view(start, 16).expect("inside");
    let run =
        |input: [usize; 2], output: [usize; 2]| run(&copies(2, 4), &input.map(at), &output.map(at));
    assert!(run([16, 48], [0, 32]).is_ok() && run([0, 0], [16, 32]).is_ok());
    for (input, output) in [([15, 48], [0, 32]), ([80, 63], [0, 48]), ([5, 5], [40, 20])] {
        let refused = run(input, output);
        let names = |written: &str, other: &str| (written, other) == ("out", "in");
        assert!(
            matches!(&refused, Err(SimError::Overlap { written, other }) if names(written, other)),
            "{refused:?}"
        );
    }
}

#[test]
fn an_empty_list_runs_no_block() {
    let counters = run(&copies(0, 4), &[], &[]).expect("nothing is done");
    assert_eq!(counters.blocks, 0);
}

/// An array selected from a list has its own bounds.
#[test]
fn an_array_is_chosen_of_a_list() {
    let kernel = |nth: Expr, row: i32, ahead: i32| {
        lists(2, 4, |lists| {
            let (k, input, output) = (&mut lists.k, lists.input, lists.output);
            let nth = k.let_("nth", nth);
            let (a, c) = (k.choose("a", input, nth), k.choose("c", output, nth));
            let pointer = k.pointers("p", a, [], "");
            let of = PointerRef { buffer: pointer, index: Vec::new() };
            let first = Access::new(a, [0.into(), 0.into()]);
            k.push(Stmt::Point { pointer: of, at: first });
            let ahead = Access::new(pointer, [ahead.into()]).load();
            let value = Access::new(a, [Expr::I32(row), tid() % 4]).load();
            k.if_(tid().lt(4), |b| {
                b.store(Access::new(c, [3.into(), tid()]), value + ahead);
            });
        })
    };
    let all = numbers(0, 64);
    let input = [40, 8].map(|start| all.view(start, 16).expect("inside"));
    let output = zeros(2, 16);
    run(&kernel(block(), 2, 15), &input, &output).expect("inside");
    for (output, start) in output.iter().zip([40.0, 8.0]) {
        let mut expected = vec![0.0; 12];
        expected.extend([8.0, 9.0, 10.0, 11.0].map(|at| start + at + start + 15.0));
        assert_eq!(output.to_vec(), expected);
    }
    let kind = fault(run(&kernel(block(), 4, 0), &input, &output)).kind;
    let FaultKind::OutOfBounds { place, .. } = kind else { panic!("{kind:?}") };
    assert_eq!((&*place.buffer, place.index), ("in", vec![0, 4, 0]));
    let kind = fault(run(&kernel(block(), 0, 16), &input, &output)).kind;
    assert!(matches!(kind, FaultKind::BeyondAllocation { len: 16, .. }), "{kind:?}");
    // Selecting an array that does not exist is a fault, even if it is not used.
    for (nth, expected) in [(block() + 1, 2), (block() - 1, -1), (tid() / 15 + block(), 2)] {
        let fault = fault(run(&kernel(nth, 0, 0), &input, &output));
        let FaultKind::OutOfBounds { place, extents, .. } = fault.kind else { panic!("{fault}") };
        assert_eq!((place.index, extents), (vec![expected], vec![2]));
        assert!(fault.statement.contains("const a = in[nth]"), "{}", fault.statement);
    }
}

/// A race is found for every way of selecting an array.
#[test]
fn chosen_arrays_race_as_others_do() {
    let kernel = |other: i32| {
        lists(2, 4, |lists| {
            let (k, output) = (&mut lists.k, lists.output);
            let (one, two) = (k.choose("one", output, 0), k.choose("two", output, other));
            k.if_(block().equals(0), |b| {
                b.store(Access::new(one, [tid() / 4, tid() % 4]), 1.0);
                b.store(Access::new(two, [Expr::I32(3) - tid() / 4, tid() % 4]), 2.0);
            });
        })
    };
    run(&kernel(1), &zeros(2, 16), &zeros(2, 16)).expect("apart");
    assert_eq!(race(fault(run(&kernel(0), &zeros(2, 16), &zeros(2, 16))).kind), "out");
}

#[test]
fn chosen_arrays_are_verified() {
    fn first(of: BufferId) -> Access {
        at(of, 0)
    }
    let build = |body: &dyn Fn(&mut KernelBuilder, BufferId, BufferId)| {
        let mut b = KernelBuilder::new("kernel");
        let list = b.global("in", Elem::F32, Operand::Input(0));
        let one = b.global("out", Elem::F32, Operand::Output(0));
        b.list(list, 2.into(), [4.into()], [1.into()]);
        b.shape(one, [4.into()], [1.into()]);
        body(&mut b, list, one);
        b.finish().map(drop).map_err(|error| error.rule)
    };
    let ok = build(&|b, list, one| {
        let a = b.choose("a", list, 1);
        b.store(first(one), first(a).load());
    });
    assert_eq!(ok, Ok(()));
    type Body = dyn Fn(&mut KernelBuilder, BufferId, BufferId);
    let broken: [(&Body, &str); 6] = [
        (&|b, _, one| _ = b.choose("a", one, 0), "a is chosen from a buffer that is not a list"),
        (
            &|b, list, one| {
                let mut a = list;
                b.if_(tid().equals(0), |b| a = b.choose("a", list, 0));
                b.store(first(one), first(a).load());
            },
            "a out of scope",
        ),
        (
            &|b, list, _| {
                let a = b.choose("a", list, 0);
                b.store(first(a), 1.0);
            },
            "a is read-only",
        ),
        (
            &|b, list, _| {
                let nth = b.mut_("nth", 0);
                _ = b.choose("a", list, nth);
            },
            "which array a is may change",
        ),
        (&|b, list, _| _ = b.choose("a", list, tid() / 2), "which array a is may change"),
        (
            &|b, list, _| {
                _ = b.choose("a", list, 0);
                _ = b.choose("a", list, 1);
            },
            "a",
        ),
    ];
    for (body, expected) in broken {
        let rule = build(body).expect_err(expected);
        assert!(rule.contains(expected), "{rule}");
    }
}
