//! A group reduces a segment that takes at most 16 rounds of the group. The whole block reduces a
//! longer segment. The bits depend on this choice.

use gemm_dsl::spec::{Over, ReduceSpec};
use gemm_tests::fold::placement::Placement;
use gemm_tests::fold::simulate::{Simulator, run};
use gemm_tests::fold::{Case, Shape};
use libtest_mimic::Trial;

/// Returns a number from a sequence. The last bits of sums over the sequence depend on the order of
/// addition.
fn uneven(n: usize) -> u64 {
    let x = (n * 2_654_435_761 % 1_000_003) as f32 / 977.0 - 511.3;
    x.to_bits().into()
}

/// Sums of a shape over a fixed array.
fn sums(spec: &ReduceSpec, shape: Shape) -> Vec<u64> {
    let mut case = Case::new(spec, shape, 0);
    for (n, bits) in case.inputs[0].iter_mut().enumerate() {
        *bits = uneven(n);
    }
    let ran = run(&Simulator::default(), &case, &Placement::PACKED);
    ran.unwrap_or_else(|wrong| panic!("{wrong}")).results.remove(0)
}

const SEGMENTS: usize = 5;

fn a_segment_of_at_most_16_rounds_is_its_groups_and_a_longer_one_the_blocks() {
    for (group, items, more) in [
        (1, 1, "block: 32"),
        (1, 3, "block: 64"),
        (8, 1, "block: 64"),
        (8, 2, "block: 128, shuffle"),
        (32, 2, "block: 64, shuffle"),
        (32, 1, "block: 128, op: mean_var"),
    ] {
        let line = format!("items: {items}, {more}");
        let spec: ReduceSpec = line.parse().unwrap_or_else(|faults| panic!("{line}: {faults}"));
        let spec = spec.over(Over::Segments);
        let by_groups = spec.clone().group(group);
        let by_blocks = spec.clone().group(spec.block);
        // A group is at most a warp and always uses shuffles.
        let of_group = by_groups.clone().over(Over::Rows).shuffle(false);
        let longest = 16 * group as usize * items;
        for length in [longest - 1, longest, longest + 1] {
            let ends = (0..=SEGMENTS).map(|n| (n * length) as u64).collect();
            let ran = sums(&by_groups, Shape::Segments(ends));
            let rows = Shape::Tensor { outer: SEGMENTS, len: length, inner: 1 };
            let groups = sums(&of_group, rows);
            let ends = (0..=SEGMENTS).map(|n| (n * length) as u64).collect();
            let blocks = sums(&by_blocks, Shape::Segments(ends));
            assert_ne!(groups, blocks, "`{by_groups}` of {length}: what is the same shows nothing");
            let expected = if length <= longest { &groups } else { &blocks };
            assert_eq!(&ran, expected, "`{by_groups}` of {length}");
        }
    }
}

pub fn trials() -> Vec<Trial> {
    simulated![a_segment_of_at_most_16_rounds_is_its_groups_and_a_longer_one_the_blocks,]
}
