//! Counters of the reduction ladder equal values that are calculated by hand.

use crate::planted_faults::{kernel, launch_reduction};
use gemm_dsl::spec::{ReduceSpec, Tree};
use gemm_dsl::stages;
use gemm_sim::Counters;
use libtest_mimic::Trial;

/// Counters of each stage, launched on as many elements as one block of `block` threads reduces.
fn ladder(block: u32) -> Vec<Counters> {
    let classic = stages::reduce().into_iter().take(6);
    let specs = classic.map(|stage| stage.spec.block(block));
    specs.map(|spec| counters(&spec)).collect()
}

/// Counters of one full block.
fn counters(spec: &ReduceSpec) -> Counters {
    let elements = spec.plan().expect("a sound spec").elements_per_block();
    let counters = launch_reduction(&kernel(spec), elements as usize).expect("a launch");
    assert_eq!(counters.blocks, 1);
    counters
}

fn barriers_at_block_128() {
    let barriers: Vec<(u64, u64)> =
        ladder(128).iter().map(|c| (c.block_barriers, c.warp_barriers)).collect();
    // The first stages have one barrier after the load and one after each of seven steps. The fifth
    // has one after the load and one after the step of 64, and two warp barriers in each of the six
    // remaining steps. The last has one barrier in total.
    assert_eq!(barriers, [(8, 0), (8, 0), (8, 0), (8, 0), (2, 12), (1, 0)]);
}

/// Degree of the bank conflicts of one step: the number of words of a warp's access in one bank.
fn degree(block: u64, s: u64) -> u64 {
    ((block / (2 * s)).min(32) * (2 * s).min(32) / 32).max(1)
}

fn the_interleaved_tree_conflicts_as_on_paper() {
    let steps = |block: u64| (0..block.ilog2()).map(|e| 1 << e);
    let degrees: Vec<u64> = steps(128).map(|s| degree(128, s)).collect();
    assert_eq!(degrees, [2, 4, 4, 4, 4, 2, 1]);
    assert_eq!(steps(1024).map(|s| degree(1024, s)).max(), Some(32));

    for block in [32, 64, 128, 256, 512, 1024] {
        // Each active warp of a step reads two words and writes one.
        let conflicts = steps(block.into()).map(|s| {
            let warps = (u64::from(block) / (2 * s)).div_ceil(32);
            3 * warps * (degree(block.into(), s) - 1)
        });
        let interleaved = counters(&ReduceSpec::default().tree(Tree::Interleaved).block(block));
        assert_eq!(interleaved.shared_bank_conflicts, conflicts.sum::<u64>(), "block {block}");
    }
}

fn no_other_stage_conflicts() {
    for block in [128, 1024] {
        let conflicts: Vec<u64> = ladder(block).iter().map(|c| c.shared_bank_conflicts).collect();
        assert_eq!((conflicts[0], &conflicts[2..]), (0, &[0; 4][..]), "block {block}");
    }
}

fn branches_diverge_as_on_paper() {
    let divergent: Vec<u64> = ladder(256).iter().map(|c| c.divergent_branches).collect();
    // In stage 0, all eight warps diverge up to a distance of 16, then only warps with an active
    // thread: 4, 2 and 1. In other stages, the five steps with fewer than 32 threads diverge.
    // Shuffles do not diverge, but the store of lane 0 of each warp does. In all stages, the store
    // of the result by thread 0 diverges.
    assert_eq!(divergent, [5 * 8 + 4 + 2 + 1 + 1, 5 + 1, 5 + 1, 5 + 1, 1, 8 + 1]);
}

fn items_divide_the_shared_traffic_of_an_element() {
    let per_element = |items: u32| {
        let spec = ReduceSpec::default().items(items);
        let elements = f64::from(256 * items);
        let c = counters(&spec);
        let shared = c.shared_bytes() as f64 / elements;
        (shared, c.block_barriers as f64 / elements, c.global_load_bytes as f64 / elements)
    };
    let one = per_element(1);
    for items in [2, 4, 8] {
        let many = per_element(items);
        let by = f64::from(items);
        assert_eq!((one.0 / many.0, one.1 / many.1, many.2), (by, by, 4.0), "{items} items");
    }
}

fn the_shuffle_hands_over_one_word_a_warp() {
    for block in [32, 128, 1024] {
        let c = counters(&ReduceSpec::default().block(block).shuffle(true));
        let warps = u64::from(block / 32);
        let (words, barriers) = if warps == 1 { (0, 0) } else { (warps, 1) };
        assert_eq!(c.block_barriers, barriers, "block {block}");
        assert_eq!((c.shared_store_bytes, c.shared_load_bytes), (4 * words, 4 * words));
        assert_eq!(c.shuffle, 5 * warps + if warps == 1 { 0 } else { 5 }, "block {block}");
    }
}

fn vectors_quarter_the_requests_for_the_same_sectors() {
    let scalar = counters(&ReduceSpec::default().items(8));
    let vector = counters(&ReduceSpec::default().items(2).float4(true));
    assert_eq!(scalar.global_loads, 4 * vector.global_loads);
    // 2048 elements are 256 sectors, and the result is one more sector.
    assert_eq!((scalar.global_sectors, vector.global_sectors), (257, 257));
}

pub fn trials() -> Vec<Trial> {
    simulated![
        barriers_at_block_128,
        the_interleaved_tree_conflicts_as_on_paper,
        no_other_stage_conflicts,
        branches_diverge_as_on_paper,
        items_divide_the_shared_traffic_of_an_element,
        the_shuffle_hands_over_one_word_a_warp,
        vectors_quarter_the_requests_for_the_same_sectors,
    ]
}
