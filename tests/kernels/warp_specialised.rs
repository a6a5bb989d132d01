//! Kernels with warpgroups, TMA copies and mbarriers: results, and detection of planted faults.

mod gpu;
use gemm_dsl::ir::contract::{Need, Subject};
use gemm_dsl::target::Format;
use gemm_fixtures::splits;
use gemm_fixtures::splits::{PAIRS, PLANES};
use gemm_fixtures::tensor_copies;
use gemm_fixtures::tensor_core::Kind;
use gemm_fixtures::warp_specialised::{Fault, Fill, Product};
use gemm_oracle::random::Random;
use gemm_sim::tensor_core::AccumulationRules;
use gemm_sim::{FaultKind, MbarrierFault, SimError, WaitReason};
use libtest_mimic::Trial;

/// Extents with partial tiles, and a K that is not a multiple of the stages.
const RAGGED: [usize; 3] = [150, 104, 296];

/// Checks that C equals the reference by the simulator's accumulation rules, for operands of all
/// kinds.
fn computes(product: Product, extents: [usize; 3]) {
    let kernel = product.kernel().expect("a sound kernel");
    for kind in [Kind::Any, Kind::Near] {
        let operands = product.operands(kind, extents, 1);
        let (found, counters) = Product::simulate(&kernel, &operands).expect("no fault");
        let expected = product.expected(&operands, AccumulationRules::SM_90);
        assert!(found == expected, "{product:?} {kind:?}");
        let [m, n, k] = extents.map(|extent| extent as u64);
        let [rows, columns] = product.tile().map(|extent| extent as u64);
        let (blocks, depth) = (m.div_ceil(rows) * n.div_ceil(columns), product.depth() as u64);
        let rounds = blocks * k.div_ceil(depth);
        assert_eq!(counters.mma_flops, 2 * rounds * rows * columns * depth);
        assert_eq!(
            counters.wgmma,
            rounds * 4 * product.consumers as u64 * depth / product.format.terms() as u64
        );
        let boxes = u64::from(product.fill == Fill::Boxes);
        assert_eq!(counters.bulk_copies, boxes * 2 * rounds);
        assert_eq!(counters.bulk_bytes, boxes * rounds * 128 * (rows + columns));
        assert_eq!(counters.mbarrier_waits, rounds * (1 + 4 * product.consumers as u64));
    }
}

fn a_ring_of_boxes_gives_what_the_rules_say() {
    for format in Format::FROM_F32 {
        for (stages, consumers, columns) in [(2, 1, 64), (3, 2, 64), (4, 2, 24), (3, 1, 128)] {
            let product = Product { format, stages, consumers, columns, ..Product::default() };
            computes(product, RAGGED);
        }
    }
    for format in Format::FROM_F32 {
        computes(Product { format, overlap: true, ..Product::default() }, RAGGED);
    }
    computes(Product::default(), [128, 64, 64 * 7]);
    computes(Product { columns: 256, consumers: 1, ..Product::default() }, [64, 256, 40]);
}

fn a_ring_of_stores_gives_what_the_rules_say() {
    for format in Format::FROM_F32 {
        let product = Product { format, fill: Fill::Stores, ..Product::default() };
        computes(product, [128, 64, 5 * product.depth() as usize]);
    }
}

/// Error that the simulator finds in a GEMM with a fault.
fn found(product: Product) -> SimError {
    let kernel = product.kernel().expect("a sound kernel");
    let extents = [128, 64, 7 * product.depth() as usize];
    let operands = product.operands(Kind::Near, extents, 1);
    match Product::simulate(&kernel, &operands) {
        Err(error) => error,
        Ok(_) => panic!("a fault was expected of {:?}", product.fault),
    }
}

fn kind(fault: Fault) -> FaultKind {
    kind_of(Product { fault, ..Product::default() })
}

fn kind_of(product: Product) -> FaultKind {
    match found(product) {
        SimError::Fault(fault) => fault.kind,
        other => panic!("a fault was expected: {other}"),
    }
}

fn at_barrier(fault: Fault) -> (String, MbarrierFault) {
    match kind(fault) {
        FaultKind::Mbarrier { barrier, wrong, .. } => (barrier, wrong),
        other => panic!("a fault at a barrier was expected: {other}"),
    }
}

fn a_stage_that_is_not_waited_for_is_a_race() {
    let kind = kind(Fault::NoWaitForFull);
    let told = kind.to_string();
    let (FaultKind::CopyNotAwaited { place, .. } | FaultKind::Race { place, .. }) = kind else {
        panic!("{told}")
    };
    assert_eq!(place.buffer, "As");
    assert!(told.contains("a bulk copy of thread (0, 0)"), "{told}");
}

fn a_wait_for_the_other_parity_is_one_for_a_phase_that_was() {
    let (barrier, wrong) = at_barrier(Fault::OtherParity);
    assert_eq!((barrier.as_str(), wrong), ("full", MbarrierFault::TooLate { phase: -1, now: 1 }));
}

fn a_stage_that_is_freed_too_early_is_a_race() {
    let kind = kind(Fault::EarlyRelease);
    let told = kind.to_string();
    let FaultKind::Race { place, writes: true, earlier } = kind else { panic!("{told}") };
    assert!(place.buffer == "As" && !earlier.wrote, "{told}");
    assert!(told.contains("a matrix instruction of thread"), "{told}");
}

fn a_stage_that_is_not_waited_for_to_be_empty_is_filled_too_early() {
    // The producer starts the second round although no wait shows that the first has completed.
    assert_eq!(at_barrier(Fault::NoWaitForEmpty).0, "full");
}

fn sums_in_flight_are_not_touched() {
    for fault in [Fault::EarlyUse, Fault::EarlyWrite, Fault::UnnamedSums] {
        let kind = kind(fault);
        let FaultKind::AccumulatorsInFlight { place } = &kind else { panic!("{fault:?}: {kind}") };
        assert_eq!(place.buffer, "acc");
    }
    let FaultKind::AccumulatorsNotFenced { buffer } = kind(Fault::NoFence) else {
        panic!("no fence")
    };
    assert_eq!(buffer, "acc");
}

/// Warps that wait at barriers in a deadlock, each with barrier, parity, missing arrivals and
/// missing bytes.
fn waiting(fault: Fault) -> Vec<(u32, String, u32, u32, i64)> {
    let FaultKind::Deadlock { waiting, .. } = kind(fault) else { panic!("no deadlock: {fault:?}") };
    let of = |waiting: &gemm_sim::WaitingWarp| match &waiting.waits_for {
        WaitReason::Phase { barrier, index, parity, arrivals, bytes, .. } => {
            (waiting.warp, format!("{barrier}[{index}]"), *parity, *arrivals, *bytes)
        }
        other => panic!("{other:?}"),
    };
    waiting.iter().map(of).collect()
}

fn a_wrong_number_of_bytes_is_a_hang() {
    let waits = waiting(Fault::MoreBytes(16));
    // The producer has filled all three stages, and the first has not been released.
    assert_eq!(waits[0], (0, "empty[0]".to_owned(), 0, 8, 0));
    assert_eq!(waits.len(), 9);
    for (warp, wait) in (4..).zip(&waits[1..]) {
        assert_eq!(*wait, (warp, "full[0]".to_owned(), 0, 0, 16));
    }
    let told = kind(Fault::MoreBytes(16)).to_string();
    assert!(told.contains("lacks 16 bytes"), "{told}");
    // If fewer bytes are expected, the last bytes may be counted in the next phase.
    let early = ("full".to_owned(), MbarrierFault::TooEarly { phase: 1 });
    assert_eq!(at_barrier(Fault::MoreBytes(-8192)), early);
}

fn a_wrong_number_of_arrivals_is_found() {
    let waits = waiting(Fault::MoreArrivals(1));
    assert_eq!(waits[0], (0, "empty[0]".to_owned(), 0, 1, 0));
    // With one arrival less, a stage becomes empty before all consumers have read it.
    let found = kind(Fault::MoreArrivals(-1));
    let wrong = matches!(found, FaultKind::Mbarrier { .. } | FaultKind::Race { writes: true, .. });
    assert!(wrong, "{found}");
}

fn all_lanes_must_be_known_to_have_waited() {
    let (barrier, wrong) = at_barrier(Fault::NoWarpBarrier);
    assert_eq!((barrier.as_str(), wrong), ("full", MbarrierFault::NotObserved { phase: 1 }));
}

fn barriers_are_made_once_and_shown() {
    assert_eq!(at_barrier(Fault::NoFenceOfBarriers).1, MbarrierFault::NotShown);
    assert_eq!(at_barrier(Fault::NoBarrierOfBlock).1, MbarrierFault::NotKnown);
    assert_eq!(at_barrier(Fault::MadeTwice).1, MbarrierFault::AlreadyMade);
    assert_eq!(at_barrier(Fault::NeverMade).1, MbarrierFault::NotMade);
}

fn stores_need_a_proxy_fence_before_matrix_instructions() {
    let fault = Fault::NoFenceOfProxies;
    let kind = kind_of(Product { fill: Fill::Stores, fault, ..Product::default() });
    let FaultKind::Race { place, writes: false, earlier } = kind else { panic!("{kind}") };
    assert!(place.buffer == "As" && earlier.wrote);
}

fn another_part_of_a_row_gives_other_numbers() {
    let product = Product { fault: Fault::OtherPart, ..Product::default() };
    let kernel = product.kernel().expect("a sound kernel");
    let operands = product.operands(Kind::Near, [128, 64, 128], 1);
    let (found, _) = Product::simulate(&kernel, &operands).expect("no fault");
    let expected = product.expected(&operands, AccumulationRules::SM_90);
    let differing = found.iter().zip(&expected).filter(|(found, said)| found != said).count();
    assert!(differing > found.len() / 2);
    let FaultKind::MisalignedTile { place, bytes } = kind(Fault::OtherRow) else { panic!("a row") };
    assert_eq!((place.buffer.as_str(), bytes), ("As", 1024));
}

fn verification_refuses_another_swizzle() {
    let error = Product { fault: Fault::OtherSwizzle, ..Product::default() }.kernel();
    let error = error.expect_err("another swizzle").to_string();
    assert!(error.contains("rows of 128 bytes of A, swizzled Bytes64"), "{error}");
}

fn a_box_that_is_too_short_is_a_hang() {
    let waits = waiting(Fault::ShortBox);
    assert_eq!(waits[1], (4, "full[0]".to_owned(), 0, 0, 8192));
}

fn the_warps_of_a_warpgroup_stay_together() {
    let found = kind(Fault::WarpApart);
    assert!(matches!(found, FaultKind::WarpgroupApart { .. }), "{found}");
}

/// A block of 384 threads has 168 registers per thread.
fn registers_are_those_that_a_block_was_given() {
    for registers in [[40, 232], [24, 240], [168, 168], [24, 168]] {
        computes(Product { fault: Fault::Registers(registers), ..Product::default() }, RAGGED);
    }
    for registers in [[40, 240], [48, 232], [168, 176]] {
        let told = kind(Fault::Registers(registers));
        let [few, many] = registers;
        let asked = (few + 2 * many) * 128;
        let expected = (asked, 3 * 128 * 168);
        let found = matches!(
            told,
            FaultKind::TooManyRegisters { asked, given } if (asked, given) == expected
        );
        assert!(found, "{told}");
    }
    for registers in [[176, 168], [40, 160]] {
        let told = kind(Fault::Registers(registers));
        assert!(matches!(told, FaultKind::RegisterLimit { has: 168, .. }), "{told}");
    }
}

fn a_tensor_map_asks_for_strides_of_16_bytes() {
    let product = Product::default();
    let kernel = product.kernel().expect("a sound kernel");
    let operands = product.operands(Kind::Near, [128, 64, 100], 1);
    let Err(SimError::Unmet(unmet)) = Product::simulate(&kernel, &operands) else {
        panic!("a requirement was expected not to be met")
    };
    assert!(matches!(&unmet.subject, Subject::Stride { dim: 0, .. }), "{unmet}");
    assert_eq!((unmet.need.clone(), unmet.value), (Need::Multiple { of: 8 }, 100));
}

fn a_product_of_256_is_quick() {
    let product = Product { columns: 128, ..Product::default() };
    computes(product, [256, 256, 256]);
}

fn splits_are_summed_by_stages() {
    for [m, n, k] in [[128, 64, 256], [200, 72, 168]] {
        let extents = [PLANES * m, PLANES * n, k];
        let operands = Kind::Near.tile(Format::Bf16, extents, &mut Random::new(3));
        let (found, counters) = splits::simulate(&operands).expect("no fault");
        assert!(found == splits::expected(&operands, AccumulationRules::SM_90), "{m}x{n}x{k}");
        let [rows, columns] = splits::TILE.map(|extent| extent as usize);
        let stages = m.div_ceil(rows) * n.div_ceil(columns) * k.div_ceil(64);
        // Eight warps execute four instructions for each pair of components and stage.
        assert_eq!(counters.wgmma as usize, stages * PAIRS.len() * 4 * 8);
    }
}

/// The first element of a box must be at a multiple of 16 bytes. For other boxes, an H200 reports
/// an illegal instruction.
fn a_box_begins_at_16_bytes_of_a_row() {
    for case in tensor_copies::cases() {
        let (bits, mut places) = case.inputs(5);
        let step = 16 / case.elem.size() as i32;
        let last = case.tile.len() - 1;
        for index in [0, step - 1, 1 - step] {
            places[last] = index;
            match case.simulate(&bits, &places) {
                Ok(_) => assert_eq!(index, 0, "{}", case.name()),
                Err(SimError::Fault(fault)) => {
                    let bytes = i64::from(index) * i64::from(case.elem.size());
                    let kind = FaultKind::MisalignedBox { index: index.into(), bytes };
                    assert_eq!(fault.kind, kind, "{}", case.name());
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
}

fn boxes_hold_what_the_array_does_and_zeros_outside() {
    for (seed, case) in (0..).zip(tensor_copies::cases()) {
        let (bits, places) = case.inputs(seed);
        let (found, counters) = case.simulate(&bits, &places).expect("no fault");
        assert!(found == case.expected(&bits, &places), "{}", case.name());
        let bytes = (tensor_copies::COUNT * case.len()) as u64 * u64::from(case.elem.size());
        assert_eq!(
            (counters.bulk_copies, counters.bulk_bytes),
            (tensor_copies::COUNT as u64, bytes)
        );
    }
}

pub fn trials() -> Vec<Trial> {
    let trials = [
        simulated![
            a_ring_of_boxes_gives_what_the_rules_say,
            a_ring_of_stores_gives_what_the_rules_say,
            a_stage_that_is_not_waited_for_is_a_race,
            a_wait_for_the_other_parity_is_one_for_a_phase_that_was,
            a_stage_that_is_freed_too_early_is_a_race,
            a_stage_that_is_not_waited_for_to_be_empty_is_filled_too_early,
            sums_in_flight_are_not_touched,
            a_wrong_number_of_bytes_is_a_hang,
            a_wrong_number_of_arrivals_is_found,
            all_lanes_must_be_known_to_have_waited,
            barriers_are_made_once_and_shown,
            stores_need_a_proxy_fence_before_matrix_instructions,
            another_part_of_a_row_gives_other_numbers,
            verification_refuses_another_swizzle,
            a_box_that_is_too_short_is_a_hang,
            the_warps_of_a_warpgroup_stay_together,
            registers_are_those_that_a_block_was_given,
            a_tensor_map_asks_for_strides_of_16_bytes,
            a_product_of_256_is_quick,
            splits_are_summed_by_stages,
            a_box_begins_at_16_bytes_of_a_row,
            boxes_hold_what_the_array_does_and_zeros_outside,
        ],
        gpu::trials(),
    ];
    trials.into_iter().flatten().collect()
}
