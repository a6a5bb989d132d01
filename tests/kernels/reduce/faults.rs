//! Every part of a reduction that makes blocks wait, or lets one block combine the results, is
//! needed. If a part is removed, the simulator finds a fault, a result is wrong, or a scratch
//! buffer is not restored.

use crate::planted_faults::*;
use gemm_dsl::Plan;
use gemm_dsl::ir::{MemoryOrder, Scope, VerifiedProgram};
use gemm_dsl::spec::ReduceSpec;
use gemm_oracle::fold::Number;
use gemm_tests::fold::placement::Placement;
use gemm_tests::fold::simulate::{Failure, simulate};
use gemm_tests::fold::{Case, Shape};
use libtest_mimic::Trial;

/// Single-launch kernels with inter-block synchronisation. They use a tree, shuffles, results of
/// several parts, or columns.
const SPEAKING: [&str; 10] = [
    "blocks: 3, block: 64, launch: once, type: i32",
    "blocks: 4, block: 64, launch: once, shuffle",
    "blocks: 3, block: 64, launch: once, op: argmax, tree: interleaved",
    "blocks: 3, block: 64, launch: once, op: mean_var, unroll_last_warp",
    "over: rows, block: 64, group: 64, blocks: 3, launch: once, op: logsumexp",
    "over: columns, block: 64, group: 4, blocks: 3, launch: once, type: i32",
    "over: middle, block: 64, group: 1, blocks: 3, launch: once, op: max",
    "run: 256, block: 64, launch: once, type: i32",
    "over: rows, run: 256, block: 64, group: 64, launch: once, op: mean_var",
    "over: columns, run: 256, block: 64, group: 4, launch: once, type: i32",
];

/// Case in which the elements of every part and every thread affect the result.
fn case(line: &str) -> Case {
    let spec: ReduceSpec = line.parse().expect("a line");
    let outer = if line.contains("rows") || line.contains("middle") { 2 } else { 1 };
    let inner = if line.contains("columns") || line.contains("middle") { 18 } else { 1 };
    let (len, elem) = (700, spec.element.elem());
    let mut case = Case::new(&spec, Shape::Tensor { outer, len, inner }, 1);
    for (n, bits) in case.inputs[0].iter_mut().enumerate() {
        // The maximum is in the last of three parts, for any size of the parts.
        let value = if n / inner % len == 128 { 300 } else { n % 1009 * 37 % 101 + n / 5000 };
        *bits = Number::Int(value as i128).bits(elem);
    }
    case
}

fn shown(case: &Case, program: &VerifiedProgram) -> Shown {
    let mut images = case.images(&Placement::PACKED);
    match simulate(program, &mut images) {
        Ok(_) => match images.results().and_then(|results| case.judge(&results)) {
            Ok(()) => Shown::Not,
            Err(_) => Shown::Wrong,
        },
        Err(Failure::NotKept(..)) => Shown::NotKept,
        Err(Failure::Sim(error)) => Shown::by(error),
        Err(other) => Shown::Otherwise(other.to_string()),
    }
}

/// Case of a spec with its sound program.
fn sound(line: &str) -> (Case, VerifiedProgram) {
    let case = case(line);
    let program = case.spec.plan().and_then(|plan| plan.program()).expect("a sound spec");
    assert_eq!(shown(&case, &program), Shown::Not, "{line}");
    (case, program)
}

fn every_block_barrier_is_needed() {
    for line in SPEAKING {
        let (case, program) = sound(line);
        let without = |n| planted(&program, |kernel| without_barrier(kernel, Scope::Block, n));
        let planted = each(without);
        assert!(planted.len() >= 2, "`{line}`: {}", planted.len());
        for (n, program) in planted.iter().enumerate() {
            let found = shown(&case, program);
            let told = [Shown::Race, Shown::Uninitialised].contains(&found);
            assert!(told, "`{line}` without barrier {n}: {found:?}");
        }
    }
}

fn a_ticket_orders_what_blocks_have_left() {
    for line in SPEAKING {
        let (case, program) = sound(line);
        for order in [MemoryOrder::Relaxed, MemoryOrder::Acquire, MemoryOrder::Release] {
            let weak = planted(&program, |kernel| with_ticket(kernel, order, 1));
            let found = shown(&case, &weak.expect("a ticket"));
            assert_eq!(found, Shown::Race, "`{line}`, {order:?}");
        }
    }
}

/// If the ticket is not reset, the next launch waits for blocks that never arrive, or does not wait
/// at all.
fn a_ticket_that_is_not_put_back_is_noticed() {
    for line in SPEAKING {
        let (case, program) = sound(line);
        let forgotten = planted(&program, |kernel| without_store(kernel, "tickets", 0));
        assert_eq!(shown(&case, &forgotten.expect("a reset")), Shown::NotKept, "{line}");
    }
}

/// A block that does not wait for all others combines results that are not yet written.
fn a_block_that_does_not_wait_for_all_is_noticed() {
    let of_three = |line: &&str| line.contains("blocks: 3") || line.contains("run: 256");
    for line in SPEAKING.into_iter().filter(of_three) {
        let (case, program) = sound(line);
        let early = planted(&program, |kernel| with_ticket(kernel, MemoryOrder::AcqRel, 2));
        let found = shown(&case, &early.expect("a ticket"));
        assert!(matches!(found, Shown::Race | Shown::Uninitialised), "`{line}`: {found:?}");
    }
}

fn a_part_that_is_left_out_is_noticed_in_both_forms() {
    for line in SPEAKING {
        for line in [line.to_owned(), line.replace(", launch: once", "")] {
            let (case, program) = sound(&line);
            let name = if line.contains("run: ") { "run" } else { "block" };
            let fewer = planted(&program, |kernel| with_other_end(kernel, name, -1));
            let found = shown(&case, &fewer.expect("partials"));
            assert_eq!(found, Shown::Wrong, "{line}");
        }
    }
}

/// Block and warp barriers in kernels without inter-block synchronisation.
fn no_barrier_of_a_block_alone_is_there_in_vain() {
    let lines = [
        "over: columns, block: 64, group: 4, op: argmin",
        "over: rows, block: 64, group: 64, op: mean_var",
        "over: rows, block: 128, group: 128, shuffle, op: logsumexp",
        "over: rows, block: 128, group: 128, unroll_last_warp, compensated",
        "over: middle, block: 64, group: 16, op: sum, type: u8",
    ];
    for line in lines {
        let (case, program) = sound(line);
        for scope in [Scope::Block, Scope::Warp] {
            let without = |n| planted(&program, |kernel| without_barrier(kernel, scope, n));
            let planted = each(without);
            assert_eq!(
                planted.is_empty(),
                scope == Scope::Warp && !line.contains("last_warp"),
                "{line}"
            );
            for (n, program) in planted.iter().enumerate() {
                let found = shown(&case, program);
                let told = [Shown::Race, Shown::Uninitialised].contains(&found);
                assert!(told, "`{line}` without barrier {n} of a {scope:?}: {found:?}");
            }
        }
    }
}

pub fn trials() -> Vec<Trial> {
    simulated![
        every_block_barrier_is_needed,
        a_ticket_orders_what_blocks_have_left,
        a_ticket_that_is_not_put_back_is_noticed,
        a_block_that_does_not_wait_for_all_is_noticed,
        a_part_that_is_left_out_is_noticed_in_both_forms,
        no_barrier_of_a_block_alone_is_there_in_vain,
    ]
}
