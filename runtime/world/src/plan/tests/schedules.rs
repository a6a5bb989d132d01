//! Every built schedule is correct, and its cost is as stated.

use super::run::is_right;
use super::{by_patches, case};
use crate::plan::Strategy;
use crate::plan::*;
use gemm_dsl::spec::GemmLayout as Lies;
use proptest::prelude::*;

proptest! {
    #![proptest_config(gemm_cases::cases(1500))]

    #[test]
    fn schedules_compute_their_products((distributions, ranks, strategy) in case(), seed: u64) {
        let schedule = Schedule::new(distributions, ranks, strategy).unwrap();
        prop_assert!(is_right(&schedule, seed), "{}", *schedule);
    }

    /// Long parts are cut at multiples of tiles, wherever they begin.
    #[test]
    fn long_parts_do_not_cut_tiles(
        lengths in proptest::collection::vec(0..9000_usize, 1..6),
        parts in 1..6_usize,
        factor in prop::sample::select(&Factor::BOTH[..]),
    ) {
        let (all, ranks) = (lengths.iter().sum(), lengths.len());
        let cut = Cut::Lengths(lengths);
        let (distributions, unit) = match factor {
            Factor::A => {
                let a = Distribution { split: Split::Rows(cut), ..Distribution::whole(all, 1) };
                let (b, c) = (Distribution::cols(1, 9), Distribution::cols(all, 9));
                (Distributions { a, b, c }, 128)
            }
            Factor::B => {
                let b = Distribution { split: Split::Cols(cut), ..Distribution::whole(1, all) };
                let (a, c) = (Distribution::rows(9, 1), Distribution::rows(9, all));
                (Distributions { a, b, c }, 256)
            }
        };
        let schedule = Schedule::new(distributions, ranks, Strategy::Gather { parts }).unwrap();
        for (steps, shard) in schedule.steps.iter().zip(schedule.shards().of_factor(factor)) {
            let own = factor.outer(shard);
            let rest = all - own.len();
            for step in steps {
                let Step::Multiply { block, a, b } = step else { continue };
                if ![a, b].contains(&&Place::Gathered) {
                    continue;
                }
                let range = factor.outer(block);
                let known = [0, all, own.start, own.end];
                let at = |at| known.contains(&at) || at % unit == 0 || rest / parts < 4 * unit;
                prop_assert!(at(range.start) && at(range.end), "{}", *schedule);
                // Parts have about equal lengths; short parts are as equal as possible.
                let slack = if rest / parts < 4 * unit { 0 } else { unit };
                prop_assert!(range.len() <= rest.div_ceil(parts) + slack);
            }
        }
    }

    #[test]
    fn estimates_count_bytes_and_rooms(
        (distributions, ranks, strategy) in case(),
        lies in proptest::sample::select(Lies::ALL),
    ) {
        let schedule = Schedule::new(distributions, ranks, strategy).unwrap();
        let hosts = Some(Hosts::infiniband(2));
        let slow = ClusterModel { hosts, ..ClusterModel::h200_copy_engines() };
        // True if the rows of a block, as stored, are not contiguous within another block.
        let apart = |factor, block: &Block, of: &Block| match (factor, lies) {
            (Factor::A, Lies::Tn | Lies::Tt) | (Factor::B, Lies::Nt | Lies::Tt) => {
                block.cols.len() > 1 && block.rows != of.rows
            }
            _ => block.rows.len() > 1 && block.cols != of.cols,
        };
        for machine in [ClusterModel { layout: lies, ..ClusterModel::h200_nccl() }, slow] {
            let estimate = schedule.estimate(&machine);
            for rank in 0..ranks {
                let all = schedule.exchanges.iter().flat_map(|exchange| &exchange.moves);
                let from_others = all.filter(|of| of.to == rank && of.from != rank);
                let bytes: usize = from_others.map(|of| 4 * of.block.len()).sum();
                prop_assert_eq!(estimate.bytes[rank], bytes as u64);
                let staging: usize = schedule.staging()[rank].iter().map(|room| 4 * room.len).sum();
                let mut staged = 0;
                for exchange in schedule.exchanges.iter().filter(|_| machine.staging) {
                    let factor = exchange.factor;
                    for of in exchange.moves.iter().filter(|of| of.from != of.to) {
                        let has = schedule.shards().of_factor(factor)[of.from].clone();
                        let gets = match of.into {
                            Place::Gathered => {
                                schedule.size.needed(factor, &schedule.shards().c[of.to])
                            }
                            slot => exchange.held(of.to, slot),
                        };
                        for (who, origin) in [(of.from, has), (of.to, gets)] {
                            let counts = who == rank && apart(factor, &of.block, &origin);
                            staged += if counts { 4 * of.block.len() } else { 0 };
                        }
                    }
                }
                prop_assert_eq!(estimate.memory[rank], (staging + staged) as u64);
            }
            let Estimate { products, exchanges, time, .. } = estimate;
            let parts = products.max(exchanges);
            prop_assert!(time.is_finite() && time >= parts * (1.0 - 1e-9));
            // The slowdown of multiplications by exchanges never costs more time than waiting for
            // each exchange.
            prop_assert!(time <= (products + exchanges) * (1.0 + 1e-9), "{estimate}");
        }
    }

    /// All moved data fits in the buffers: everything that a slot ever receives, and everything
    /// that a gather buffer needs.
    #[test]
    fn there_is_room_for_what_is_moved((distributions, ranks, strategy) in case()) {
        let schedule = Schedule::new(distributions, ranks, strategy).unwrap();
        let room = |rank: usize, factor, place| {
            let staging = &schedule.staging()[rank];
            let room = staging.iter().find(|room| (room.factor, room.place) == (factor, place));
            room.map_or(0, |room| room.len)
        };
        for exchange in &schedule.exchanges {
            for of in &exchange.moves {
                let has = room(of.to, exchange.factor, of.into);
                match of.into {
                    Place::Slot(_) => prop_assert!(exchange.held(of.to, of.into).len() <= has),
                    Place::Gathered => {
                        let kept = &schedule.shards().c[of.to];
                        let needed = schedule.size.needed(exchange.factor, kept);
                        prop_assert_eq!(needed.len(), has);
                    }
                    Place::Shard => prop_assert!(false),
                }
            }
        }
    }

    /// Each rank asks the next rank first and continues around, so ranks start with different
    /// senders.
    #[test]
    fn ranks_ask_others_in_turn((distributions, ranks, _) in case()) {
        let schedule = Schedule::new(distributions, ranks, Strategy::Sequential).unwrap();
        for exchange in &schedule.exchanges {
            for rank in 0..ranks {
                let turns = exchange.moves.iter().filter(|of| of.to == rank);
                prop_assert!(turns.map(|of| (of.from + ranks - rank) % ranks).is_sorted());
            }
        }
    }

    /// Each needed and missing byte is received exactly once, and no other byte is received.
    #[test]
    fn nothing_comes_twice((distributions, ranks, strategy) in case()) {
        let schedule = Schedule::new(distributions, ranks, strategy).unwrap();
        let bytes = schedule.estimate(&ClusterModel::h200_nccl()).bytes;
        for (rank, bytes) in bytes.iter().enumerate() {
            let missing = |factor| {
                let needed = schedule.size.needed(factor, &schedule.shards().c[rank]);
                needed.len() - needed.and(&schedule.shards().of_factor(factor)[rank]).len()
            };
            let missing: usize = Factor::BOTH.into_iter().map(missing).sum();
            prop_assert_eq!(*bytes, 4 * missing as u64);
        }
    }

    #[test]
    fn the_cheapest_fits_and_no_other_that_does_is_faster(
        (distributions, ranks, _) in case(),
        limit in prop::option::of(0..3000_u64),
    ) {
        let machine = ClusterModel::h200_copy_engines();
        let cheapest = |limit| Schedule::cheapest(distributions.clone(), ranks, &machine, limit);
        match cheapest(limit) {
            Ok(chosen) => {
                let fits = |estimate: &Estimate| {
                    limit.is_none_or(|limit| estimate.most_memory() <= limit)
                };
                prop_assert!(fits(&chosen.estimate));
                let same = Schedule::new(distributions, ranks, chosen.strategy).unwrap();
                prop_assert_eq!(&chosen.schedule, &same);
                prop_assert_eq!(&chosen.estimate, &chosen.schedule.estimate(&machine));
                let better = |(_, other): &(Strategy, Estimate)| {
                    fits(other) && other.time < chosen.estimate.time
                };
                prop_assert!(!chosen.tried.iter().any(better), "{chosen}");
                let text = chosen.to_string();
                prop_assert_eq!(text.lines().filter(|line| line.starts_with('*')).count(), 1);
            }
            Err(fault) => {
                let ScheduleFault::Memory { least, strategy, .. } = fault else {
                    panic!("{fault}")
                };
                prop_assert!(limit.is_some_and(|limit| least > limit));
                // This limit suffices, and a lower one does not.
                let chosen = cheapest(Some(least)).unwrap();
                prop_assert_eq!(chosen.estimate.most_memory(), least);
                prop_assert!(cheapest(Some(least - 1)).is_err());
                let schedule = Schedule::new(distributions, ranks, strategy).unwrap();
                prop_assert_eq!(schedule.estimate(&machine).most_memory(), least);
            }
        }
    }
}

/// A single rank exchanges nothing under any strategy.
#[test]
fn one_rank_multiplies_at_once() {
    let distributions = Distributions {
        a: Distribution::rows(4, 5),
        b: Distribution::cols(5, 6),
        c: Distribution::grid(4, 6, [1, 1]),
    };
    for strategy in [Strategy::Sequential, Strategy::Gather { parts: 3 }, Strategy::Rotate] {
        let schedule = Schedule::new(distributions.clone(), 1, strategy).unwrap();
        assert!(schedule.exchanges.is_empty());
        let block = Block::new(0..4, 0..6);
        assert_eq!(schedule.steps, [[Step::Multiply { block, a: Place::Shard, b: Place::Shard }]]);
    }
    let chosen = Schedule::cheapest(distributions, 1, &ClusterModel::h200_nccl(), Some(0)).unwrap();
    assert_eq!((chosen.tried.len(), chosen.estimate.efficiency()), (1, 1.0));
}

#[test]
fn layouts_of_other_products_are_refused() {
    let distributions = Distributions {
        a: Distribution::rows(4, 5),
        b: Distribution::cols(6, 6),
        c: Distribution::cols(4, 6),
    };
    let fault = Schedule::new(distributions, 2, Strategy::Rotate).unwrap_err();
    assert_eq!(fault.to_string(), "B is 6x6, but that of a GEMM of 4x6x5 is 5x6");
    let most = usize::MAX;
    let distributions = Distributions {
        a: Distribution::rows(most, 1),
        b: Distribution::cols(1, 1),
        c: Distribution::cols(most, 1),
    };
    let fault = Schedule::new(distributions, 2, Strategy::Rotate).unwrap_err();
    assert_eq!(fault, ScheduleFault::TooLarge { matrix: "A", has: [most, 1] });
    let distributions = Distributions {
        a: Distribution::rows(4, 4),
        b: Distribution::grid(4, 4, [2, 2]),
        c: Distribution::cols(4, 4),
    };
    let fault = Schedule::new(distributions, 3, Strategy::Rotate).unwrap_err();
    assert_eq!(fault.to_string(), "B: a grid of 2x2 needs 4 ranks, but there are 3");
}

#[test]
fn b_arrives_in_parts_only_if_a_is_complete() {
    let last = |distributions: Distributions| {
        let schedule = Schedule::new(distributions, 4, Strategy::Gather { parts: 2 }).unwrap();
        schedule.exchanges.last().map(|exchange| exchange.factor)
    };
    assert_eq!(last(by_patches(1024, [2, 2], [1, 1])), Some(Factor::A));
    let (a, b) = (Distribution::whole(1024, 1024), Distribution::cols(1024, 1024));
    let c = Distribution::rows(1024, 1024);
    assert_eq!(last(Distributions { a, b, c }), Some(Factor::B));
}
