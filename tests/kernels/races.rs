//! Every barrier and every wait of the ladders' stages is needed. If it is removed, the simulator
//! finds a race.

use crate::planted_faults::*;
use gemm_dsl::ir::{Scope, VerifiedKernel};
use gemm_dsl::spec::{ReduceSpec, SgemmSpec};
use gemm_dsl::stages;
use gemm_oracle::product::Size;
use gemm_sim::FaultKind;
use libtest_mimic::Trial;

fn reduction(index: u32) -> ReduceSpec {
    let stage = stages::reduce().into_iter().find(|stage| stage.index == index);
    stage.expect("a stage of the catalogue").spec.block(128)
}

fn product(index: u32) -> SgemmSpec {
    let stage = stages::sgemm().into_iter().find(|stage| stage.index == index);
    stage.expect("a stage of the catalogue").spec
}

fn is_race(fault: Option<FaultKind>) -> bool {
    matches!(fault, Some(FaultKind::Race { .. } | FaultKind::CopyNotAwaited { .. }))
}

fn without_a_warp_barrier_the_unrolled_warp_races() {
    let kernel = kernel(&reduction(4));
    assert_eq!(fault(launch_reduction(&kernel, 1000)), None);
    let planted = each(|n| without_barrier(&kernel, Scope::Warp, n));
    assert_eq!(planted.len(), 2, "after the read and after the write");
    for kernel in planted {
        let fault = fault(launch_reduction(&kernel, 1000));
        assert!(matches!(fault, Some(FaultKind::Race { .. })), "{fault:?}");
    }
}

/// Two of the twelve warp barriers are unnecessary. The step of 32 reads x[32..64] and writes
/// x[..32]. After the step of 1, only thread 0 reads, and it reads only its own result.
fn each_warp_barrier_of_each_step_is_needed_but_two() {
    let kernel = kernel(&reduction(4));
    let mut harmless = Vec::new();
    for (n, after) in [(0, "read"), (1, "write")] {
        for step in [32, 16, 8, 4, 2, 1] {
            let planted = without_barrier_in(&kernel, Scope::Warp, n, step).expect("a barrier");
            match fault(launch_reduction(&planted, 1000)) {
                Some(FaultKind::Race { .. }) => {}
                None => harmless.push((after, step)),
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(harmless, [("read", 32), ("write", 1)]);
}

fn without_a_block_barrier_every_reduction_races() {
    for index in 0..=5 {
        let kernel = kernel(&reduction(index));
        let planted = each(|n| without_barrier(&kernel, Scope::Block, n));
        assert!(!planted.is_empty());
        for kernel in planted {
            let fault = fault(launch_reduction(&kernel, 1000));
            assert!(
                matches!(fault, Some(FaultKind::Race { .. } | FaultKind::Uninitialised { .. })),
                "stage {index}: {fault:?}"
            );
        }
    }
}

/// Asserts that every planted kernel races and that the sound one does not.
fn all_race(
    spec: &SgemmSpec,
    size: Size,
    expected: usize,
    plant: impl Fn(&VerifiedKernel, usize) -> Option<VerifiedKernel>,
) {
    let kernel = kernel(spec);
    assert_eq!(fault(launch_product(&kernel, size)), None);
    let planted = each(|n| plant(&kernel, n));
    assert_eq!(planted.len(), expected, "`{spec}`");
    for (n, kernel) in planted.iter().enumerate() {
        let fault = fault(launch_product(kernel, size));
        assert!(is_race(fault.clone()), "`{spec}`, number {n}: {fault:?}");
    }
}

fn without_a_barrier_a_tile_is_read_or_overwritten_too_early() {
    let barrier = |kernel: &VerifiedKernel, n| without_barrier(kernel, Scope::Block, n);
    all_race(&product(5), Size::new(64, 64, 96), 3, barrier);
    all_race(&product(8).b_in_parts(true), Size::new(32, 128, 48), 2, barrier);
    all_race(&product(10), Size::new(64, 64, 96), 3, barrier);
    all_race(&product(17), Size::new(128, 128, 32), 2, barrier);
    all_race(&product(21), Size::new(128, 128, 96), 2, barrier);
    all_race(&product(22), Size::new(128, 256, 96), 2, barrier);
}

fn a_wait_for_too_few_copies_is_noticed() {
    all_race(&product(21), Size::new(128, 128, 96), 2, with_weaker_wait);
    all_race(&product(22), Size::new(128, 256, 96), 2, with_weaker_wait);
}

pub fn trials() -> Vec<Trial> {
    simulated![
        without_a_warp_barrier_the_unrolled_warp_races,
        each_warp_barrier_of_each_step_is_needed_but_two,
        without_a_block_barrier_every_reduction_races,
        without_a_barrier_a_tile_is_read_or_overwritten_too_early,
        a_wait_for_too_few_copies_is_noticed,
    ]
}
