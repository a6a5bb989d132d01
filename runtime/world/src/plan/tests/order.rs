//! Planning takes nearly linear time in the number of moves and steps.

use super::{by_columns, by_patches};
use crate::plan::work::done;
use crate::plan::*;

/// Loop steps of building, verifying and estimating a schedule, per move and step.
fn each(distributions: &Distributions, ranks: usize, strategy: Strategy) -> [f64; 3] {
    let machine = ClusterModel { hosts: Some(Hosts::infiniband(8)), ..ClusterModel::h200_nccl() };
    done();
    let schedule = Schedule::new(distributions.clone(), ranks, strategy).unwrap();
    let both = done();
    let schedule = schedule.into_inner().verify().unwrap();
    let checked = done();
    schedule.estimate(&machine);
    let estimated = done();
    let moves: usize = schedule.exchanges.iter().map(|exchange| exchange.moves.len()).sum();
    let steps: usize = schedule.steps.iter().map(Vec::len).sum();
    [both - checked, checked, estimated].map(|steps_of| steps_of as f64 / (moves + steps) as f64)
}

/// Eight times as many ranks make 64 times as many moves. The work per move may grow by a
/// logarithm, not by a factor of eight. By default there are only four times as many ranks.
#[test]
fn work_per_move_does_not_grow_with_the_ranks() {
    let n = 1 << 17;
    let by_rows = Distributions {
        a: Distribution::rows(n, n),
        b: Distribution::rows(n, n),
        c: Distribution::rows(n, n),
    };
    let mixed = |grid| Distributions {
        a: Distribution::cols(n, n),
        b: Distribution::rows(n, n),
        c: Distribution::grid(n, n, grid),
    };
    let gather = |parts| Strategy::Gather { parts };
    let strategies =
        [Strategy::Sequential, gather(2), Strategy::Rotate].map(|strategy| (strategy, strategy));
    let (ranks, grid) = if gemm_cases::is_thinned() { (256, [16, 16]) } else { (512, [16, 32]) };
    let growing = [(gather(8), gather(ranks / 8))];
    for (few, many, strategies) in [
        // Parts that span whole shards: more parts do not add moves.
        (by_columns(n), by_columns(n), &growing[..]),
        (by_columns(n), by_columns(n), &strategies[..]),
        (by_rows.clone(), by_rows, &strategies[..]),
        (by_patches(n, [8, 8], [2, 4]), by_patches(n, grid, [2, 4]), &strategies[..]),
        (mixed([8, 8]), mixed(grid), &strategies[..]),
    ] {
        for (of_few, of_many) in strategies {
            let (few, many) = (each(&few, 64, *of_few), each(&many, ranks, *of_many));
            for (what, number) in [("making", 0), ("checking", 1), ("estimating", 2)] {
                let (few, many) = (few[number], many[number]);
                println!("{of_many}, {what}: {few:.1} and {many:.1} steps for each move");
                assert!(
                    many <= few.max(2.0) * 2.0 && many <= 40.0,
                    "{of_many}, {what}: {few:.1} and {many:.1} steps for each move"
                );
            }
        }
    }
}
