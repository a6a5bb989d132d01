//! Every element has an owner, and distributions parse as they print.

use super::{cut, distribution};
use crate::plan::*;
use proptest::prelude::*;
use proptest::strategy::Strategy as Generator;

/// Distributions of any extents and parameters, most of them invalid for any number of ranks.
fn anything() -> impl Generator<Value = Distribution> {
    let number = || prop_oneof![0..9_usize, any::<usize>()];
    let pair = move || [number(), number()];
    let cut = || {
        let lengths = proptest::collection::vec(number(), 0..5).prop_map(Cut::Lengths);
        prop_oneof![number().prop_map(Cut::Even), lengths, Just(Cut::EVEN)]
    };
    let grid = (pair(), prop_oneof![Just([1, 1]), pair()], any::<bool>(), [cut(), cut()]);
    let split = prop_oneof![
        Just(Split::Whole),
        cut().prop_map(Split::Rows),
        cut().prop_map(Split::Cols),
        grid.prop_map(|(ranks, patch, down, cuts)| Split::Grid { ranks, patch, down, cuts }),
    ];
    (pair(), split).prop_map(|([rows, cols], split)| Distribution { rows, cols, split })
}

proptest! {
    #![proptest_config(gemm_cases::cases(256))]

    #[test]
    fn a_layout_is_read_as_it_is_printed(distribution in anything()) {
        let text = distribution.to_string();
        prop_assert_eq!(text.parse::<Distribution>(), Ok(distribution), "{}", text);
    }

    #[test]
    fn distributions_return_valid_shards_or_an_error(
        distribution in anything(), ranks in 0..20_usize,
    ) {
        if let Ok(shards) = distribution.shards(ranks) {
            prop_assert_eq!(shards.len(), ranks);
            prop_assert!(shards.iter().all(|shard| distribution.all().contains(shard)));
        }
    }

    #[test]
    fn invalid_distributions_are_not_parsed(
        text in "[0-9x ]{0,12}(whole|rows|cols|grid|down|patch)?[0-9x/,\\[\\] a-z]{0,16}",
    ) {
        match text.parse::<Distribution>() {
            // An accepted text prints and parses as the same distribution.
            Ok(distribution) => prop_assert_eq!(distribution.to_string().parse(), Ok(distribution)),
            Err(error) => prop_assert_eq!(error, DistributionError::Text(text)),
        }
    }

    #[test]
    fn garbage_is_refused(text in "\\PC*") {
        if let Ok(distribution) = text.parse::<Distribution>() {
            prop_assert_eq!(distribution.to_string().parse(), Ok(distribution));
        }
    }

    #[test]
    fn shards_have_each_element_once(
        (distribution, ranks) in (0..20_usize, 0..20_usize, 1..=12_usize)
            .prop_flat_map(|(rows, cols, ranks)| (distribution(rows, cols, ranks), Just(ranks)))
    ) {
        let shards = distribution.shards(ranks).unwrap();
        prop_assert_eq!(shards.len(), ranks);
        let each = match distribution.split {
            Split::Whole => ranks,
            _ => 1,
        };
        for row in 0..distribution.rows {
            for col in 0..distribution.cols {
                let has = |shard: &&Block| shard.rows.contains(&row) && shard.cols.contains(&col);
                let count = shards.iter().filter(has).count();
                prop_assert_eq!(count, each, "[{}, {}] of {}", row, col, distribution);
            }
        }
    }

    #[test]
    fn transposed_distributions_have_transposed_shards(
        (distribution, ranks) in (0..20_usize, 0..20_usize, 1..=12_usize)
            .prop_flat_map(|(rows, cols, ranks)| (distribution(rows, cols, ranks), Just(ranks)))
    ) {
        let turned: Vec<_> = distribution.shards(ranks).unwrap().iter().map(Block::t).collect();
        prop_assert_eq!(distribution.t().shards(ranks).unwrap(), turned);
        prop_assert_eq!(distribution.t().t(), distribution);
    }

    /// Ranks of a patch have consecutive numbers, and so do patches, in both numbering orders.
    #[test]
    fn ranks_of_a_patch_have_a_rectangle(
        [down, across, high, wide] in [1..4_usize, 1..4_usize, 1..4_usize, 1..4_usize],
        is_down in any::<bool>(),
    ) {
        let of = |ranks, patch, cuts| Split::Grid { ranks, patch, down: is_down, cuts };
        let cuts = [Cut::EVEN, Cut::EVEN];
        let ranks = [down * high, across * wide];
        let whole = Distribution::whole(ranks[0], ranks[1]);
        let distribution = |split| Distribution { split, ..whole.clone() };
        let shards = distribution(of(ranks, [high, wide], cuts.clone()));
        let shards = shards.shards(ranks[0] * ranks[1]).unwrap();
        let patches = distribution(of([down, across], [1, 1], cuts)).shards(down * across).unwrap();
        for (patch, ranks) in patches.iter().zip(shards.chunks(high * wide)) {
            let all = ranks.iter().fold(Block::new(0..0, 0..0), |all, shard| all.with(shard));
            prop_assert_eq!(&all, patch);
            let second = ranks.get(1).map(|second| second.rows.start > patch.rows.start);
            let expected = wide == 1 || is_down && high > 1;
            prop_assert!(second.is_none_or(|is_below| is_below == expected));
        }
    }

    /// Owners found by position agree with the blocks of the ranks.
    #[test]
    fn owners_of_blocks_are_found(
        (distribution, ranks) in (0..20_usize, 0..20_usize, 1..=12_usize)
            .prop_flat_map(|(rows, cols, ranks)| (distribution(rows, cols, ranks), Just(ranks))),
        (row, col, height, width) in (0..20_usize, 0..20_usize, 0..9_usize, 0..9_usize),
        asks in 0..12_usize,
    ) {
        let asks = asks % ranks;
        let block = Block::new(row..row + height, col..col + width);
        let deal = distribution.deal(ranks).unwrap();
        let mut found: Vec<_> = deal.owners_of(&block, asks).collect();
        found.sort_by_key(|(rank, _)| *rank);
        let shards = distribution.shards(ranks).unwrap().into_iter().enumerate();
        let has = shards.filter(|(rank, _)| distribution.split != Split::Whole || *rank == asks);
        let parts = has.map(|(rank, shard)| (rank, shard.and(&block)));
        let expected: Vec<_> = parts.filter(|(_, part)| !part.is_empty()).collect();
        prop_assert_eq!(found, expected);
    }

    /// Parts differ by at most one unit, except that the last unit of the array may be incomplete.
    #[test]
    fn arrays_are_dealt_out_at_multiples_of_a_unit(
        len in prop_oneof![0..50_usize, any::<usize>(), usize::MAX - 50..=usize::MAX],
        unit in prop_oneof![
            1..9_usize,
            any::<usize>().prop_map(|unit| unit.max(1)),
            usize::MAX - 5..=usize::MAX,
        ],
        ranks in 1..600_usize,
    ) {
        let split = Split::Cols(Cut::Even(unit));
        let distribution = Distribution { split, ..Distribution::whole(1, len) };
        let shards = distribution.shards(ranks).unwrap();
        prop_assert_eq!(shards.len(), ranks);
        let mut end = 0;
        for shard in &shards {
            prop_assert_eq!((shard.rows.clone(), shard.cols.start), (0..1, end));
            prop_assert!(end % unit == 0 || end == len);
            end = shard.cols.end;
        }
        prop_assert_eq!(end, len);
        let units = |shard: &Block| shard.cols.len().div_ceil(unit);
        let most = shards.iter().map(units).max().unwrap();
        let least = shards.iter().map(units).min().unwrap();
        prop_assert!(most - least <= 1, "{} and {} units", most, least);
    }

    /// Disjoint blocks do not overlap. A further block overlaps if it shares an element with one of
    /// them.
    #[test]
    fn blocks_that_overlap_are_found(
        (distribution, ranks) in (0..20_usize, 0..20_usize, 1..=12_usize)
            .prop_flat_map(|(rows, cols, ranks)| (distribution(rows, cols, ranks), Just(ranks))),
        order in any::<u64>(),
        (row, col, height, width) in (0..20_usize, 0..20_usize, 0..4_usize, 0..4_usize),
    ) {
        let ranks = if distribution.split == Split::Whole { 1 } else { ranks };
        let mut shards = distribution.shards(ranks).unwrap();
        fastrand::Rng::with_seed(order).shuffle(&mut shards);
        let mut blocks: Vec<&Block> = shards.iter().collect();
        prop_assert_eq!(block::overlap(&blocks), None);
        let more = Block::new(row..row + height, col..col + width);
        let touches = shards.iter().any(|shard| !shard.and(&more).is_empty());
        blocks.insert(order as usize % (blocks.len() + 1), &more);
        let found = block::overlap(&blocks);
        prop_assert_eq!(found.is_some(), touches);
        if let Some((a, b)) = found {
            prop_assert!(!a.and(b).is_empty());
        }
    }

    #[test]
    fn lengths_have_to_come_to_the_extent(
        (extent, cut) in (0..9_usize).prop_flat_map(|extent| (Just(extent), cut(extent, 4))),
        more in 1..9_usize,
    ) {
        let of = |extent| {
            let split = Split::Rows(cut.clone());
            Distribution { split, ..Distribution::whole(extent, 2) }.shards(4)
        };
        prop_assert!(of(extent).is_ok());
        if let Cut::Lengths(_) = cut {
            let fault = DistributionError::Sum { what: "rows", sum: extent, extent: extent + more };
            prop_assert_eq!(of(extent + more), Err(fault));
        }
    }
}

/// Each error names the given values.
#[test]
fn layouts_that_are_not_for_these_ranks() {
    let of = |text: &str, ranks| {
        text.parse::<Distribution>().unwrap().shards(ranks).unwrap_err().to_string()
    };
    assert_eq!(of("4x4 rows", 0), "a matrix cannot be distributed over 0 ranks");
    assert!(of("4x4 rows/0", 2).contains("multiples of 0"));
    assert_eq!(of("4x4 cols[1,3]", 3), "columns are cut into 2 lengths, but 3 ranks share them");
    assert_eq!(
        of("4x4 cols[1,2]", 2),
        "the lengths of the columns add up to 3, but the matrix has 4 columns"
    );
    assert_eq!(of("4x4 grid 2x2", 5), "a grid of 2x2 needs 4 ranks, but there are 5");
    assert_eq!(
        of("4x4 grid 2x2 patch 2x0", 4),
        "a grid of 2x2 ranks cannot be divided into patches of 2x0"
    );
    // A sum that overflows equals no extent.
    let most = usize::MAX;
    let sum = of(&format!("{most}x1 rows[{most},1]"), 2);
    assert_eq!(
        sum,
        format!("the lengths of the rows add up to {most}, but the matrix has {most} rows")
    );
}
