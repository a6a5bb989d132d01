use super::*;
use crate::record;
use crate::{Action, Event, EventKind, Kind, Price, Trace};
use gemm_dsl::ir::{For, Intrinsic, Unroll};

fn at(buffer: BufferId, index: impl Into<Expr>) -> Access {
    Access::new(buffer, [index.into()])
}

fn tid() -> Expr {
    Special::ThreadX.into()
}

/// Sum of the costs in the traces of all blocks, to be compared with the counters of the launch.
fn prices(traces: &[Trace]) -> (u64, u64, u64) {
    let (mut sectors, mut wavefronts, mut conflicts) = (0, 0, 0);
    for trace in traces {
        for access in trace.accesses() {
            match access.pattern.cost {
                Price::Sectors(of) => sectors += of,
                Price::Shared(of) => {
                    wavefronts += of.wavefronts;
                    conflicts += of.conflicts();
                }
            }
        }
    }
    (sectors, wavefronts, conflicts)
}

/// Two blocks of two warps: traces hold the events, their loop counters, and the instructions
/// executed before.
#[test]
fn traces_record_all_events() {
    let mut b = bench(64, 2, [256, 1]);
    let (x, input) = (b.shared(128), b.input);
    b.k.loop_("t", For::below(0, 2).unroll(Unroll::By(1)), |k, t| {
        k.unrolled("i", 2, |k, i| {
            let from = at(input, t * 128 + tid() * 2 + i).load();
            k.store(at(x, tid() * 2 + i), from);
        });
        k.barrier();
    });
    let kernel = b.k.finish().expect("sound");
    let input: Vec<f32> = (0..256).map(|i| i as f32).collect();
    let buffers = [Buffer::from_f32(&input), Buffer::zeros(1)];
    let seen = record(&kernel, &buffers, &[], &[1], &Options::default()).expect("arguments fit");
    let (ran, traces) = seen;
    let profile = ran.expect("the kernel is right");
    let [trace] = &traces[..] else { panic!("one block is watched: {traces:?}") };
    assert_eq!(trace.block, (1, 0, 0));

    let of_warp = |warp: u32| trace.events.iter().filter(move |event| event.warp == warp);
    let second: Vec<&Event> = of_warp(1).collect();
    assert_eq!(second.len(), 2 * (2 * 2 + 1));
    let stmts = kernel.statements();
    let stmt = |event: &Event| stmts[event.stmt as usize];
    assert!(matches!(stmt(second[0]), gemm_dsl::ir::Stmt::Store { .. }));
    assert_eq!(*stmt(second[4]), gemm_dsl::ir::Stmt::Barrier(Scope::Block));
    assert_eq!(second[4].what, EventKind::Statement);

    // The load is recorded before the store of its value, with the values of both loops.
    let EventKind::Access { pattern, first, words } = &second[7].what else { panic!("{second:?}") };
    let rounds = &trace.rounds[second[7].rounds as usize];
    assert_eq!(rounds.iter().map(|(_, value)| *value).collect::<Vec<_>>(), [1, 1]);
    let names: Vec<&str> = rounds.iter().map(|(var, _)| &*kernel.vars[*var].name).collect();
    assert_eq!(names, ["t", "i"]);
    let load = &trace.patterns[*pattern as usize];
    assert_eq!((load.kind, load.bytes, *first), (Kind::Load, 4, 128 + 64 + 1));
    assert!(words.is_empty());
    assert_eq!(load.lanes[31], Some(62));
    assert_eq!((load.skew, load.cost), (4, Price::Sectors(8)));
    let EventKind::Access { pattern, first, words } = &second[8].what else { panic!("{second:?}") };
    let store = &trace.patterns[*pattern as usize];
    assert_eq!((store.kind, *first, store.skew), (Kind::Store, 65, 1));
    let written: Vec<u32> = (0..32).map(|lane| ((193 + 2 * lane) as f32).to_bits()).collect();
    assert_eq!(*words, written);
    let Price::Shared(cost) = store.cost else { panic!("{store:?}") };
    assert_eq!((cost.wavefronts, cost.phases, cost.conflicts()), (2, 1, 1));

    // Instructions executed by the warp so far. They are charged to the launch one warp at a time.
    let executed: Vec<u64> = second.iter().map(|event| event.executed[0]).collect();
    // The loop test counts two, a load with its store eight; barrier, step and test count four.
    assert_eq!(executed, [2, 2, 10, 10, 18, 22, 22, 30, 30, 38]);

    let all =
        record(&kernel, &buffers, &[], &[0, 1], &Options::default()).expect("arguments fit").1;
    assert_eq!(all[1], *trace, "whoever else is watched");
    let total = profile.total;
    let counted = (total.global_sectors, total.shared_wavefronts, total.shared_bank_conflicts);
    assert_eq!(prices(&all), counted);
    assert_eq!(launch(&kernel, &buffers, &[]).expect("right"), total, "and whether anybody looks");
}

/// A trace holds the events before a fault. Blocks that the fault prevented from running have none.
#[test]
fn a_fault_has_a_past() {
    let mut b = bench(32, 3, [64, 1]);
    let (x, input) = (b.shared(32), b.input);
    let wrong = at(input, Expr::from(Special::BlockX) * 32 + tid()).load();
    b.k.store(at(x, tid()), wrong);
    let kernel = b.k.finish().expect("sound");
    let buffers = [Buffer::zeros(64), Buffer::zeros(1)];
    let (ran, traces) =
        record(&kernel, &buffers, &[], &[1, 2], &Options::default()).expect("arguments fit");
    assert!(matches!(fault(ran).kind, FaultKind::OutOfBounds { .. }));
    let events: Vec<usize> = traces.iter().map(|trace| trace.events.len()).collect();
    // The last event is the refused access.
    assert_eq!(events, [2, 1]);
    assert_eq!(traces[1].events[0].what, EventKind::Refused);
    assert!(record(&kernel, &buffers[..1], &[], &[0], &Options::default()).is_err());
}

/// If blocks run in several orders, the ascending one is traced.
#[test]
fn traces_record_the_ascending_order() {
    let mut t = team(32, 3);
    let counter = t.array("counter", &[0i32]);
    t.unordered();
    let atomic = at(counter, 0);
    t.k.if_(tid().equals(0), |k| {
        k.atomic("old", AtomicOp::Add, atomic, 1, MemoryOrder::Relaxed, Scope::Device);
    });
    let (kernel, arrays) = t.finish();
    let (ran, traces) =
        record(&kernel, &arrays, &[], &[0, 2], &Options::default()).expect("arguments fit");
    ran.expect("right");
    let kinds =
        traces.iter().map(|trace| (trace.block.0, trace.events.len(), trace.patterns[0].kind));
    assert_eq!(kinds.collect::<Vec<_>>(), [(0, 1, Kind::Atomic), (2, 1, Kind::Atomic)]);
}

/// Shuffles are traced with their values, and global stores with the words written.
#[test]
fn shuffles_are_seen_with_their_values() {
    let mut b = bench(64, 1, [64, 64]);
    let value = Expr::Call(Intrinsic::ShuffleDown, vec![b.read(tid()), 5.into()]);
    b.write(tid(), value);
    let kernel = b.k.finish().expect("sound");
    let input: Vec<f32> = (0..64).map(|i| 0.5 + i as f32).collect();
    let buffers = [Buffer::from_f32(&input), Buffer::zeros(64)];
    let (ran, traces) =
        record(&kernel, &buffers, &[], &[0], &Options::default()).expect("arguments fit");
    ran.expect("right");
    let trace = &traces[0];
    let from = |lane: usize| if lane + 5 < 32 { lane + 5 } else { lane };
    for (warp, detail) in (0..).zip(&trace.details) {
        let Action::Shuffle { values, sources } = &detail.did else { panic!("{detail:?}") };
        let own = |lane: usize| input[32 * warp as usize + lane].to_bits();
        assert!((0..32).all(|lane| values[lane] == u64::from(own(lane))));
        assert!((0..32).all(|lane| sources[lane] == Some(from(lane) as u8)));
        // The load precedes the shuffle, and the store follows it.
        assert_eq!((detail.rank, detail.warp, detail.event), (0, warp, 2 * warp as usize + 1));
        let stored = trace
            .accesses()
            .find(|access| access.event.warp == warp && access.pattern.kind == Kind::Store);
        let words: Vec<u32> = (0..32).map(|lane| own(from(lane))).collect();
        assert_eq!(stored.map(|access| access.words.to_vec()), Some(words));
    }
    assert_eq!(trace.details.len(), 2);
}
