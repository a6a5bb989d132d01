//! Tests of fault reports.

mod refused;

use super::{FaultReport, HighlightedAccess, MOST, ReplayedLaunch, drawn};
use crate::analysis::{Subject, without};
use crate::observation::Observation;
use crate::sync;
use gemm_bench::cli::Failure;
use gemm_bench::family::Family;
use gemm_dsl::cuda;
use gemm_dsl::ir::{Access, BufferId, Elem, Expr, Special, Stmt, VerifiedKernel};
use std::sync::Arc;

fn subject(line: &str) -> Subject {
    Subject { line: line.to_owned(), ..Subject::new(Family::Sgemm) }
}

/// Stage 5: the barrier after the FMAs of a tile keeps the next copies from overwriting it.
#[test]
fn the_element_of_a_race_has_a_past() {
    let subject = subject("tile: 32x32x32");
    let kernel = &looked(&subject.line).kernel;
    let barriers = sync::lines(kernel, &cuda::listing(kernel));
    let late = without(&subject, barriers[1]).expect("a race");
    assert!(late.fault.what.starts_with("data race on As[0][0]: this write"), "{late:?}");
    let (last, before) = late.past.split_last().expect("a past");
    assert!(last.is_fault && last.kind == "store" && (last.warp, last.lane) == (0, 0), "{last:?}");
    assert!(before.iter().all(|past| !past.is_fault));
    // The history has the first copy and the reads by the warps.
    assert!(before.iter().any(|past| past.kind == "load"), "{before:?}");
    assert_eq!(late.at, last.line);
    let kinds: Vec<&str> = late.accesses.iter().map(|lit| lit.access.kind).collect();
    assert_eq!(kinds, ["load", "store"]);
    assert!(late.order().contains("is last"), "{}", late.order());
    for HighlightedAccess { lanes, access, .. } in &late.accesses {
        let cells = access.grid.rows.iter().flat_map(|row| &row.cells);
        assert_eq!(lanes.len(), 1);
        assert!(cells.flat_map(|cell| &cell.lanes).any(|of| lanes.contains(of)));
    }
}

#[test]
fn a_line_without_a_synchronisation_is_told_which_lines_have_one() {
    let Err(Failure::Usage(said)) = without(&subject("tile: 32x32x32"), 1) else {
        panic!("line 1 is none")
    };
    assert!(said.contains("lines of this kernel with one: "), "{said}");
    let Err(Failure::Usage(said)) = without(&subject("block: 16x16"), 1) else {
        panic!("nothing synchronises")
    };
    assert!(said.ends_with("with one: none"), "{said}");
}

fn looked(line: &str) -> Arc<Observation> {
    crate::observation::looked(Family::Sgemm, line)
}

/// Removes each synchronisation of a kernel in turn. Returns the first fault whose message starts
/// with `what`.
fn fault(line: &str, what: &str) -> FaultReport {
    let looked = looked(line);
    let lines = sync::lines(&looked.kernel, &cuda::listing(&looked.kernel));
    let of = |at: usize| super::without("sgemm_kernel", line.to_owned(), &looked, at).ok();
    let found = lines.into_iter().filter_map(of).find(|of| of.fault.what.starts_with(what));
    found.expect("a synchronisation prevents it")
}

/// The caption reports the simulated order. If a tile is read before it is filled, the read is
/// first.
#[test]
fn the_fault_may_come_before_what_it_is_not_ordered_with() {
    let early = fault("tile: 32x32x8, thread: 4x4", "data race on As[4][0]: this read");
    assert_eq!((early.turns.as_deref(), early.unknown), (None, None));
    let [fault, other] = &early.accesses[..] else { panic!("{early:?}") };
    assert!(fault.is_fault && !other.is_fault);
    assert_eq!((fault.access.kind, other.access.kind), ("load", "store"));
    assert!(early.order().contains("is first, followed by"), "{}", early.order());
    let at = early.past.iter().position(|past| past.is_fault).expect("the fault");
    assert!(early.past[at + 1..].iter().any(|past| past.kind == "store"), "{:?}", early.past);
}

/// Faults in the initialisation of a barrier, or in operands of matrix instructions, are not memory
/// accesses of a thread.
#[test]
fn faults_without_an_access_are_not_drawn() {
    let boxes = "tile: 128x64x64, stages: 2, arith: bf16x6, mma: wgmma, copy: tma";
    let faults = [
        (
            fault(boxes, "barrier full[0]: no fence makes its initialisation visible"),
            "tensor_copy_3d(",
        ),
        (fault("tile: 128x64x32, arith: tf32, mma: wgmma", "data race on As[0][0]"), "wgmma"),
    ];
    for (broken, statement) in faults {
        assert!(broken.fault.statement.contains(statement), "{:?}", broken.fault);
        assert!(broken.past.is_empty() && broken.accesses.is_empty(), "{:?}", broken.past);
        assert_eq!(broken.unknown, Some(super::NO_ACCESS));
        let at = broken.at;
        let words = broken.source[at - 1..].iter().take(4).flat_map(|line| &line.words);
        let text: String = words.map(|word| &*word.text).collect();
        assert!(text.contains(statement), "line {at}: {text}");
    }
}

/// The faulty access is always listed, however many accesses follow it.
#[test]
fn the_access_at_fault_is_never_left_out() {
    for line in ["tile: 32x32x8, thread: 4x4", "tile: 64x64x8, thread: 4x4", "tile: 32x32x32"] {
        let looked = looked(line);
        for at in sync::lines(&looked.kernel, &cuda::listing(&looked.kernel)) {
            let said = line.to_owned();
            let Ok(broken) = super::without("sgemm_kernel", said, &looked, at) else { continue };
            let fault = broken.past.iter().position(|past| past.is_fault);
            assert!(fault.is_some() || broken.accesses.is_empty(), "{line}: {:?}", broken.past);
        }
    }
}

/// Kernel of two by two blocks of 32 x 32 threads, with the given statements on the first element
/// of `As`.
fn kernel(
    looked: &Observation,
    body: impl FnOnce(Access) -> Vec<Stmt>,
) -> (VerifiedKernel, [u32; 3]) {
    let mut kernel = looked.kernel.clone().into_inner();
    let id = kernel.buffers.iter().position(|buffer| buffer.name == "As").expect("a tile of A");
    kernel.body = body(Access::new(BufferId { id, elem: Elem::F32 }, [Expr::I32(0), Expr::I32(0)]));
    kernel.geometry.block = (32, 32);
    let grid = [2, 2, 1];
    kernel.geometry.grid = grid.map(|extent: u32| Expr::U64(extent.into()));
    (VerifiedKernel::new(kernel).expect("a kernel"), grid)
}

fn is(special: Special, value: i32) -> Expr {
    Expr::from(special).equals(value)
}

/// Executes a statement under a condition.
fn of(cond: Expr, stmt: Stmt) -> Stmt {
    Stmt::If { cond, then: vec![stmt], otherwise: Vec::new() }
}

fn drawn_of(looked: &Observation, kernel: &VerifiedKernel, grid: [u32; 3]) -> FaultReport {
    let launch = ReplayedLaunch { kernel, grid, arguments: &looked.arguments };
    let found = drawn("sgemm_kernel", String::new(), launch, None, 1 << 20);
    found.expect("a launch").expect("a fault")
}

/// One thread stores to an element repeatedly. In one block, another thread also stores to the
/// element, without an order between the two.
#[test]
fn a_fault_is_found_in_its_block_and_its_thread_and_with_its_last_accesses() {
    let looked = looked("tile: 32x32x32");
    let one = is(Special::ThreadX, 0).and(is(Special::ThreadY, 0));
    let other = is(Special::ThreadX, 5).and(is(Special::ThreadY, 3)).and(is(Special::BlockY, 1));
    let (kernel, grid) = kernel(&looked, |target| {
        let store = |cond| of(cond, Stmt::Store { target: target.clone(), value: Expr::F32(0.0) });
        let mut body = vec![store(one); 2 * MOST];
        body.push(store(other));
        body
    });
    let broken = drawn_of(&looked, &kernel, grid);
    assert_eq!((broken.fault.block, broken.fault.thread), ([0, 1, 0], [5, 3]), "{broken:?}");
    let (last, before) = broken.past.split_last().expect("a past");
    assert!(last.is_fault && (last.warp, last.lane) == (3, 5), "{last:?}");
    assert!(before.iter().all(|past| (past.warp, past.lane, past.kind) == (0, 0, "store")));
    assert_eq!((broken.past.len(), broken.left_out), (12, 2 * MOST + 1 - 12));
    assert_eq!(broken.accesses.iter().map(|lit| &lit.lanes[..]).collect::<Vec<_>>(), [[0], [5]]);
}

/// The fault is a read that happens too early. The history lists it although many writes follow.
#[test]
fn later_accesses_keep_the_fault_in_the_history() {
    let looked = looked("tile: 32x32x32");
    let c = looked.kernel.buffers.iter().position(|buffer| buffer.name == "C").expect("C");
    let c = Access::new(BufferId { id: c, elem: Elem::F32 }, [Expr::I32(0), Expr::I32(0)]);
    let one = || is(Special::ThreadX, 0).and(is(Special::ThreadY, 0)).and(is(Special::BlockX, 0));
    let other = is(Special::ThreadX, 5).and(is(Special::ThreadY, 3));
    let (kernel, grid) = kernel(&looked, |element| {
        let read = Stmt::Store { target: c, value: element.clone().load() };
        let write = Stmt::Store { target: element, value: Expr::F32(0.0) };
        let mut body = vec![of(one(), read)];
        body.extend(vec![of(other, write); 2 * MOST]);
        body
    });
    let broken = drawn_of(&looked, &kernel, grid);
    assert!(broken.fault.what.starts_with("data race on As[0][0]: this read"), "{broken:?}");
    let (first, behind) = broken.past.split_first().expect("a past");
    assert!(first.is_fault && first.kind == "load", "{first:?}");
    assert_eq!((behind.len(), broken.left_out), (2 * MOST, 0));
    assert!(behind.iter().all(|past| (past.warp, past.lane, past.kind) == (3, 5, "store")));
}
