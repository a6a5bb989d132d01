//! GEMMs with clusters: results, counters, and detection of planted faults.

use gemm_dsl::ir::contract::{Need, Subject};
use gemm_dsl::target::Format;
use gemm_fixtures::clusters::{Clustered, End, Fault};
use gemm_fixtures::tensor_core::Kind;
use gemm_fixtures::warp_specialised::Product;
use gemm_oracle::random::Random;
use gemm_sim::tensor_core::AccumulationRules;
use gemm_sim::{FaultKind, MbarrierFault, SimError, WaitReason};
use libtest_mimic::Trial;

/// Checks that C is correct, and that elements which a cluster shares are read once.
fn computes(of: Clustered, extents: [usize; 3], kind: Kind) {
    let kernel = of.kernel().expect("a sound kernel");
    let operands = of.product.operands(kind, extents, 1);
    let (found, counters) = Product::simulate(&kernel, &operands).expect("no fault");
    assert!(
        found == of.product.expected(&operands, AccumulationRules::SM_90),
        "{of:?} {extents:?} {kind:?}"
    );
    let [m, n, k] = extents;
    let [across, down] = of.blocks([m, n]).map(|blocks| blocks as u64);
    let rounds = across * down * k.div_ceil(of.product.depth() as usize) as u64;
    let [rows, columns] = of.product.tile().map(|extent| extent as u64);
    let cluster = of.cluster as u64;
    assert_eq!(counters.blocks, across * down);
    assert_eq!(counters.bulk_copies, 2 * rounds);
    assert_eq!(counters.bulk_bytes, rounds * 128 * (rows / cluster + columns));
    assert_eq!(counters.bulk_arrived_bytes(), rounds * 128 * (rows + columns));
}

fn clusters_give_what_the_rules_say() {
    for (i, format) in (0..).zip(Format::FROM_F32) {
        let product = Product { format, stages: 2 + i, ..Product::default() };
        for (cluster, end) in [(2, End::Barrier), (2, End::Drain), (4, End::Barrier)] {
            let of = Clustered { product, cluster, end, fault: Fault::None };
            for kind in [Kind::Any, Kind::Near] {
                computes(of, [150, 104, 296], kind);
            }
        }
    }
    let product = Product { consumers: 1, columns: 24, ..Product::default() };
    computes(Clustered { product, cluster: 8, ..Clustered::default() }, [65, 200, 72], Kind::Near);
}

fn clusters_give_what_the_rules_say_for_random_shapes() {
    let mut random = Random::new(29);
    for _ in 0..12 {
        let mut one_of = |most: u64| 1 + (random.bits() % most) as usize;
        let extents = [one_of(300), one_of(300), 8 * one_of(60)];
        let stages = 1 + one_of(3) as i32;
        let (consumers, columns) = (one_of(2) as i32, 8 * one_of(10) as i32);
        let end = if one_of(2) == 1 { End::Barrier } else { End::Drain };
        let product = Product { stages, consumers, columns, ..Product::default() };
        let of = Clustered { product, cluster: 2, end, fault: Fault::None };
        computes(of, extents, Kind::Near);
    }
}

/// Error that the simulator finds in a GEMM with a fault, on one cluster.
fn found(end: End, fault: Fault) -> SimError {
    let of = Clustered { end, fault, ..Clustered::default() };
    let kernel = of.kernel().expect("a sound kernel");
    let extents = [128, 128, 7 * of.product.depth() as usize];
    let operands = of.product.operands(Kind::Near, extents, 1);
    match Product::simulate(&kernel, &operands) {
        Err(error) => error,
        Ok(_) => panic!("a fault was expected of {of:?}"),
    }
}

fn kind(fault: Fault) -> FaultKind {
    match found(End::Barrier, fault) {
        SimError::Fault(fault) => fault.kind,
        other => panic!("a fault was expected: {other}"),
    }
}

/// Fault at a barrier of another block, with the name of the barrier.
fn at_other(kind: FaultKind) -> (String, MbarrierFault) {
    match kind {
        FaultKind::Mbarrier { barrier, block: Some(_), wrong, .. } => (barrier, wrong),
        other => panic!("a fault at a barrier of another block was expected: {other}"),
    }
}

fn a_cluster_meets_before_its_blocks_speak() {
    let (barrier, wrong) = at_other(kind(Fault::NoClusterBarrier));
    assert_eq!(barrier, "full");
    assert!([MbarrierFault::NotMade, MbarrierFault::NotKnown].contains(&wrong), "{wrong}");
    let FaultKind::Mbarrier { wrong, .. } = kind(Fault::NoFenceOfBarriers) else { panic!("shown") };
    assert_eq!(wrong, MbarrierFault::NotShown);
}

fn a_block_stays_as_long_as_others_arrive() {
    let SimError::Fault(fault) = found(End::Nothing, Fault::None) else { panic!("no fault") };
    assert_eq!(at_other(fault.kind.clone()), ("empty".to_owned(), MbarrierFault::Gone));
    assert!(fault.statement.starts_with("mbarrier_arrive_relaxed(&empty[stage]"), "{fault}");
}

/// Warps that wait at barriers in a deadlock, each with block, barrier, missing arrivals and
/// missing bytes.
fn waiting(fault: Fault) -> Vec<(u32, String, u32, i64)> {
    let FaultKind::Deadlock { waiting, .. } = kind(fault) else { panic!("no deadlock: {fault:?}") };
    let of = |waiting: &gemm_sim::WaitingWarp| match &waiting.waits_for {
        WaitReason::Phase { barrier, index, arrivals, bytes, .. } => {
            Some((waiting.block.0, format!("{barrier}[{index}]"), *arrivals, *bytes))
        }
        WaitReason::Cluster => None,
        other => panic!("{other:?}"),
    };
    waiting.iter().filter_map(of).collect()
}

fn a_stage_that_is_not_given_back_to_all_is_a_hang() {
    let waits = waiting(Fault::ReleaseToOwn { alone: false });
    for block in [0, 1] {
        assert!(waits.contains(&(block, "empty[0]".to_owned(), 8, 0)), "{waits:?}");
    }
}

fn a_stage_is_empty_when_all_blocks_have_read_it() {
    for fault in [Fault::ReleaseToOwn { alone: true }, Fault::ReleaseToWrong, Fault::NoWaitForEmpty]
    {
        match kind(fault) {
            // Other blocks have not read the stage, or no barrier orders their reads.
            FaultKind::Race { place, writes: true, .. } => assert_eq!(place.buffer, "As"),
            FaultKind::Mbarrier { barrier, wrong, .. } => {
                use MbarrierFault::{TooEarly, TooManyArrivals};
                assert_eq!(barrier, "full");
                assert!(matches!(wrong, TooEarly { .. } | TooManyArrivals { .. }), "{wrong}");
            }
            other => panic!("{fault:?}: {other}"),
        }
    }
    assert_eq!(kind(Fault::ReleaseToNone), FaultKind::NoSuchBlock { block: 2, blocks: 2 });
}

fn a_part_goes_to_all_blocks() {
    let waits = waiting(Fault::OwnMask);
    for block in [0, 1] {
        assert!(waits.contains(&(block, "full[0]".to_owned(), 0, 8192)), "{waits:?}");
    }
    assert_eq!(kind(Fault::LongMask), FaultKind::NoSuchBlocks { mask: 7, blocks: 2 });
    assert_eq!(kind(Fault::NoMask), FaultKind::NoSuchBlocks { mask: 0, blocks: 2 });
}

fn a_block_expects_what_others_bring() {
    // The phase completes before the part of the other block arrives. The part is counted in the
    // next phase, so the stage was read without it.
    match kind(Fault::OwnBytes) {
        FaultKind::Mbarrier { barrier, wrong: MbarrierFault::TooEarly { phase: 1 }, .. } => {
            assert_eq!(barrier, "full");
        }
        FaultKind::Uninitialised { place } => assert_eq!(place.buffer, "As"),
        other => panic!("{other}"),
    }
}

fn two_blocks_bring_to_two_places() {
    let kind = kind(Fault::OnePlace);
    let FaultKind::Race { place, writes: true, earlier } = &kind else { panic!("{kind}") };
    assert!(place.buffer == "As" && earlier.wrote && earlier.by_copy(), "{kind}");
}

fn a_grid_that_is_no_multiple_is_refused() {
    let kernel = Clustered::default().kernel().expect("a sound kernel");
    assert_eq!((kernel.contract().cluster, kernel.min_arch()), (2, 90));
    let mut kernel = kernel.into_inner();
    kernel.geometry.grid[0] = gemm_dsl::ir::Expr::U64(3);
    let kernel = gemm_dsl::ir::VerifiedKernel::new(kernel).expect("a sound kernel");
    let operands = Product::default().operands(Kind::Near, [128, 192, 64], 1);
    let Err(SimError::Unmet(unmet)) = Product::simulate(&kernel, &operands) else {
        panic!("a rule was expected not to be met")
    };
    assert_eq!(
        (unmet.subject, unmet.need),
        (Subject::Blocks { axis: 0 }, Need::Multiple { of: 2 })
    );
}

pub fn trials() -> Vec<Trial> {
    simulated![
        clusters_give_what_the_rules_say,
        clusters_give_what_the_rules_say_for_random_shapes,
        a_cluster_meets_before_its_blocks_speak,
        a_block_stays_as_long_as_others_arrive,
        a_stage_that_is_not_given_back_to_all_is_a_hang,
        a_stage_is_empty_when_all_blocks_have_read_it,
        a_part_goes_to_all_blocks,
        a_block_expects_what_others_bring,
        two_blocks_bring_to_two_places,
        a_grid_that_is_no_multiple_is_refused,
    ]
}
