//! Refused accesses. A fault describes the access that was refused, and the description equals the
//! access that the same kernel performs with enough memory.

use super::*;
use crate::record;
use crate::{Event, EventKind, Kind, Pattern, Price, RefusedAccess, Trace};
use gemm_dsl::cuda;
use gemm_dsl::ir::{For, PointerRef, Space, Stmt, Unroll};

/// Two warps.
const THREADS: i32 = 64;

/// Index that a thread accesses, given the number of the round.
type Place = fn(&Places, Expr) -> Expr;

/// Operands of the index expressions.
struct Places {
    given: BufferId,
}

const PLACES: [(&str, Place); 5] = [
    ("one behind the other", |_, t| tid() + t * 64),
    ("every other", |_, t| tid() * 2 + t * 128),
    ("backwards", |_, t| Expr::from(63) - tid() + t * 64),
    ("mixed", |_, t| tid() * 5 % 64 + t * 64),
    ("given", |of, t| load(of.given, tid()) + t * 64),
];

/// Each thread accesses two elements of an array, in two rounds of a loop.
fn accessing(kind: Kind, space: Space, len: i32, place: Place) -> (VerifiedKernel, Vec<Buffer>) {
    let mut t = team(THREADS as u32, 1);
    let given: Vec<i32> = (0..THREADS).map(|i| i * 3 % THREADS).collect();
    let (given, near) = (t.array("given", &given), t.array("near", &[0i32; THREADS as usize]));
    let staged = t.shared("staged", THREADS);
    let far = match space {
        Space::Global => t.array("far", &vec![0i32; len as usize]),
        _ => t.shared("far", len),
    };
    t.unordered();
    if space == Space::Shared {
        for first in (0..256).step_by(THREADS as usize) {
            t.k.if_((tid() + first).lt(len), |b| b.store(at(far, tid() + first), 1));
        }
        t.k.barrier();
    }
    t.k.loop_("t", For::below(0, 2).unroll(Unroll::By(1)), |b, t| {
        let there = at(far, place(&Places { given }, t.into()));
        match kind {
            Kind::Load => b.store(at(near, tid()), there.load()),
            Kind::Store => b.store(there, 1),
            Kind::CopyRead => {
                let target = at(staged, tid());
                b.push(Stmt::CopyAsync { target, source: there, guard: None });
                b.push(Stmt::CopyCommit);
                b.push(Stmt::CopyWait { pending: 0.into() });
            }
            Kind::CopyWrite => {
                let source = at(near, tid());
                b.push(Stmt::CopyAsync { target: there, source, guard: None });
                b.push(Stmt::CopyCommit);
                b.push(Stmt::CopyWait { pending: 0.into() });
            }
            Kind::Atomic => {
                b.atomic("old", AtomicOp::Add, there, 1, MemoryOrder::Relaxed, Scope::Device);
            }
        }
    });
    t.finish()
}

fn traced((kernel, arrays): &(VerifiedKernel, Vec<Buffer>)) -> (Result<(), Fault>, Trace) {
    let seen = record(kernel, arrays, &[], &[0], &Options::default()).expect("arguments fit");
    let (ran, mut traces) = seen;
    let ran = match ran {
        Ok(_) => Ok(()),
        Err(SimError::Fault(fault)) => Err(*fault),
        Err(other) => panic!("{other}"),
    };
    (ran, traces.remove(0))
}

/// Event as warp, statement, loop counters, and effect.
type Told<'t> = (u32, u32, &'t [(usize, i64)], Done<'t>);

/// Access pattern with its first element and the words written, or another effect.
#[derive(Debug, PartialEq)]
enum Done<'t> {
    Access(&'t Pattern, u32, &'t [u32]),
    Refused,
    Other,
}

/// Events of a trace, from a statement on.
fn told<'t>(trace: &'t Trace, start: usize) -> Vec<Told<'t>> {
    let of = |event: &'t Event| {
        let Event { warp, stmt, rounds, what, .. } = event;
        let done = match what {
            EventKind::Access { pattern, first, words } => {
                Done::Access(&trace.patterns[*pattern as usize], *first, words)
            }
            EventKind::Refused => Done::Refused,
            EventKind::Statement => Done::Other,
        };
        (*warp, *stmt, &trace.rounds[*rounds as usize][..], done)
    };
    trace.events.iter().filter(|event| event.stmt as usize >= start).map(of).collect()
}

/// Asserts that the access refused for lack of memory equals the next event of the same kernel with
/// enough memory.
fn is_what_would_be(
    whole: &(VerifiedKernel, Vec<Buffer>),
    short: &(VerifiedKernel, Vec<Buffer>),
    name: &str,
) -> (Fault, RefusedAccess) {
    let (ran, expected) = traced(whole);
    ran.unwrap_or_else(|fault| panic!("{name}: {fault}"));
    let (ran, trace) = traced(short);
    let fault = ran.expect_err(name);
    // The loop that fills the array depends on its length, so events before the main loop are
    // skipped.
    let is_loop = |stmt: &&Stmt| matches!(stmt, Stmt::For(_));
    let start = short.0.statements().iter().position(is_loop).unwrap_or(0);
    let (mut before, known) = (told(&trace, start), told(&expected, start));
    let (warp, stmt, rounds, done) = before.pop().expect(name);
    assert_eq!(before[..], known[..before.len()], "{name}");
    let next = &known[before.len()];
    assert_eq!(done, Done::Refused, "{name}");
    assert_eq!((warp, stmt, rounds), (next.0, next.1, next.2), "{name}");
    let Done::Access(pattern, first, _) = next.3 else { panic!("{name}: {next:?}") };
    let refused = *fault.refused.clone().expect(name);
    assert_eq!(refused.pattern.as_ref(), Some(pattern), "{name}");
    assert_eq!((refused.buffer, refused.kind), (pattern.buffer, pattern.kind), "{name}");
    assert_eq!(fault.number, stmt, "{name}");
    let statement = short.0.statements()[fault.number as usize];
    assert_eq!(cuda::statement(&short.0, statement), fault.statement, "{name}");
    // Compares the places lane by lane.
    let places: Vec<(u32, i64)> =
        refused.lanes.iter().map(|of| (of.lane, of.at.expect(name))).collect();
    let known = (0..).zip(&pattern.lanes).filter_map(|(lane, at)| Some((lane, (*at)?)));
    let known: Vec<(u32, i64)> =
        known.map(|(lane, at)| (lane, i64::from(first) + i64::from(at))).collect();
    assert_eq!(places, known, "{name}");
    let at_fault = refused.lanes.iter().find(|of| of.is_refused).expect(name);
    assert_eq!((fault.thread.0 / 32, fault.thread.0 % 32), (warp, at_fault.lane), "{name}");
    (fault, refused)
}

#[test]
fn refused_accesses_match_the_same_accesses_in_bounds() {
    let kinds = [
        (Kind::Load, Space::Global),
        (Kind::Load, Space::Shared),
        (Kind::Store, Space::Global),
        (Kind::Store, Space::Shared),
        (Kind::CopyRead, Space::Global),
        (Kind::CopyWrite, Space::Shared),
        (Kind::Atomic, Space::Global),
        (Kind::Atomic, Space::Shared),
    ];
    for (kind, space) in kinds {
        for (place_name, place) in PLACES {
            for len in [20, 64, 100, 127] {
                let name = format!("{kind:?} in {space:?}, {place_name}, {len} elements");
                let whole = accessing(kind, space, 256, place);
                let short = accessing(kind, space, len, place);
                let (_, refused) = is_what_would_be(&whole, &short, &name);
                assert_eq!((&refused.extents[..], refused.width), (&[len as u64][..], 1), "{name}");
                for of in &refused.lanes {
                    let at = of.at.expect("an element");
                    assert_eq!(of.index, [i128::from(at)], "{name}");
                    assert_eq!(of.is_refused, at >= len.into(), "{name}, lane {}", of.lane);
                }
            }
        }
    }
}

/// Padded and swizzled rows are accessed by columns. A lane is out of bounds by its logical index,
/// wherever the element is in memory.
#[test]
fn rows_and_columns_are_told_apart() {
    let kernel = |rows: i32| {
        let mut t = team(32, 1);
        let layout = BufferLayout::Array { order: vec![1, 0], pad: 3.into(), swizzle: None };
        let x = t.k.shared("x", Elem::I32, [rows.into(), 8.into()], layout, "");
        t.k.store(Access::new(x, [tid() / 2, tid() % 2 * 3]), 1);
        t.finish()
    };
    // The layout depends on the number of rows, so that only lanes are compared.
    let (ran, _) = traced(&kernel(16));
    assert!(ran.is_ok());
    let fault = traced(&kernel(11)).0.expect_err("five rows are outside");
    let refused = fault.refused.expect("an access");
    assert_eq!((fault.thread, &refused.extents[..]), ((22, 0), &[11, 8][..]));
    for of in &refused.lanes {
        let (row, column) = (i128::from(of.lane / 2), i128::from(of.lane % 2 * 3));
        assert_eq!(of.index, [row, column]);
        // Columns are contiguous: each has 11 rows, followed by 3 elements of padding.
        assert_eq!(of.at.map(i128::from), Some(column * 14 + row));
        assert_eq!(of.is_refused, row >= 11);
    }
}

/// Places before an array are negative.
#[test]
fn before_the_first_element_places_are_negative() {
    let mut b = bench(32, 1, [64, 32]);
    let value = b.read(tid() - 5);
    b.write(tid(), value);
    let fault = b.fault();
    let refused = fault.refused.expect("an access");
    let places: Vec<Option<i64>> = refused.lanes.iter().map(|of| of.at).collect();
    assert_eq!(places, (0..32).map(|lane| Some(lane - 5)).collect::<Vec<_>>());
    assert!(refused.lanes.iter().all(|of| of.is_refused == (of.lane < 5)));
    // Twenty bytes before a sector boundary, three whole sectors, and part of a fifth.
    let pattern = refused.pattern.expect("lanes that are near");
    assert_eq!((pattern.skew, pattern.cost), (12, Price::Sectors(5)));
}

#[test]
fn a_vector_is_outside_with_its_last_element_or_not_on_16_bytes() {
    let kernel = |len: usize, shift: i32| {
        let mut b = bench(32, 1, [len, 128]);
        let value = at(b.input, tid() * 4 + shift).vector().load();
        b.k.store(at(b.output, tid() * 4).vector(), value);
        (b.finish(), vec![Buffer::zeros(len), Buffer::zeros(128)])
    };
    let (_, refused) = is_what_would_be(&kernel(128, 0), &kernel(126, 0), "vectors");
    assert_eq!((refused.width, &refused.extents[..]), (4, &[126][..]));
    assert!(refused.lanes.iter().all(|of| of.is_refused == (of.lane == 31)));
    let (ran, _) = traced(&kernel(160, 1));
    let fault = ran.expect_err("no vector begins there");
    let FaultKind::Misaligned { place } = &fault.kind else { panic!("{fault}") };
    assert_eq!(place.at, Some(1));
    let refused = fault.refused.expect("an access");
    assert!(
        refused.lanes.iter().all(|of| of.is_refused && of.at == Some(4 * i64::from(of.lane) + 1))
    );
    // 128 words, starting at the second word.
    assert_eq!(refused.pattern.map(|of| of.cost), Some(Price::Sectors(17)));
}

/// Each thread walks elements with stride 32 through a pointer.
fn walking(len: usize) -> (VerifiedKernel, Vec<Buffer>) {
    let mut b = bench(32, 1, [len, 32]);
    let (input, output) = (b.input, b.output);
    let p = b.k.pointers("p", input, [], "");
    let pointer = || PointerRef { buffer: p, index: Vec::new() };
    b.k.push(Stmt::Point { pointer: pointer(), at: at(input, tid()) });
    let sum = b.k.mut_("sum", 0.0);
    b.k.loop_("i", For::below(0, 4).unroll(Unroll::By(1)), |b, _| {
        b.assign(sum, Expr::from(sum) + Access::new(p, [4.into()]).load());
        b.push(Stmt::Advance { pointer: pointer(), by: 32.into() });
    });
    b.k.store(at(output, tid()), sum);
    (b.finish(), vec![Buffer::zeros(len), Buffer::zeros(32)])
}

#[test]
fn through_a_pointer_the_array_is_what_it_has_elements() {
    for len in [120, 70, 35, 3] {
        let (fault, refused) = is_what_would_be(&walking(132), &walking(len), "a pointer");
        assert!(matches!(fault.kind, FaultKind::BeyondAllocation { .. }), "{fault}");
        assert_eq!(refused.extents, [len as u64]);
        for of in &refused.lanes {
            let at = of.at.expect("an element");
            assert_eq!((&of.index[..], of.is_refused), (&[at.into()][..], at >= len as i64));
        }
    }
}

/// Registers have no banks and no sectors, so that only lanes are reported.
#[test]
fn refused_register_accesses_list_only_lanes() {
    for is_read in [false, true] {
        let mut b = bench(32, 1, [1, 32]);
        let r = b.k.zeroed_registers("r", Elem::F32, [4.into()], "");
        let output = b.output;
        match is_read {
            true => b.k.store(at(output, tid()), load(r, tid())),
            false => b.k.store(at(r, tid()), 1.0),
        }
        let fault = b.fault();
        let refused = fault.refused.expect("an access");
        assert_eq!(refused.kind, if is_read { Kind::Load } else { Kind::Store });
        assert_eq!((refused.pattern, &refused.extents[..]), (None, &[4][..]));
        assert!(refused.lanes.iter().all(|of| of.is_refused == (of.lane >= 4)));
    }
}

/// Faults of other kinds contain no refused access.
#[test]
fn other_faults_have_no_refused_access() {
    let mut b = bench(64, 1, [1, 64]);
    let x = b.shared(64);
    b.k.store(at(x, tid()), 1.0);
    b.write(tid(), load(x, Expr::from(63) - tid()));
    let fault = b.fault();
    assert!(matches!(fault.kind, FaultKind::Race { .. }), "{fault}");
    assert_eq!((fault.refused, fault.number), (None, 1));
    let mut b = bench(32, 1, [1, 32]);
    b.k.if_(tid().lt(3), KernelBuilder::barrier);
    assert_eq!(b.fault().refused, None);
}
