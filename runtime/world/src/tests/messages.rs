//! Messages of errors.

use crate::Error;
use crate::{Delivery, Distribution, Fault, FaultKind, World, WorldError};
use gemm_dsl::spec::ReduceSpec;

fn told<T>(outcome: Result<T, Error>) -> String {
    outcome.map(|_| ()).expect_err("it cannot be").to_string()
}

#[test]
fn impossible_requests_are_reported_with_the_requirement() {
    assert_eq!(
        told(World::simulated(0)),
        "a world of 0 ranks cannot be used: at least one device is needed"
    );
    let device = gemm_runtime::Device::simulator();
    assert_eq!(
        told(World::new(vec![device.clone(), device])),
        "a world that has the simulator twice cannot be used: each rank needs its own device. \
         Create one for each rank"
    );
    let gathered = World::simulated(4).expect("a world").run(|rank| {
        let part = rank.alloc::<f32>(&Distribution::rows(4, 4))?;
        rank.gather(&part, 7)
    });
    assert_eq!(told(gathered), "rank 7 cannot be used: there are 4 ranks, numbered from 0");
}

#[test]
fn faults_of_ranks_that_are_not_there_are_refused() {
    for ranks in 1..4 {
        for rank in 0..6 {
            let faults = vec![
                Fault { rank: 0, call: 99, kind: FaultKind::Corrupt },
                Fault { rank, call: 99, kind: FaultKind::Die },
            ];
            let world = World::simulated_with(ranks, Delivery { seed: None, faults });
            if rank < ranks {
                assert!(world.is_ok());
                continue;
            }
            assert_eq!(
                told(world),
                format!(
                    "a fault of rank {rank} cannot be used: there are {ranks} ranks, numbered \
                     from 0"
                )
            );
        }
    }
}

#[test]
fn a_reduction_without_runs_is_told_which_it_could_have() {
    let said = |line: &str| WorldError::Unrun { line: line.to_owned() }.to_string();
    let why = "folds elements that are spread over the ranks, but its blocks take turns along all \
        elements: the bits would depend on the number of ranks.";
    assert_eq!(
        said("block: 64, blocks: 3"),
        format!(
            "`block: 64, blocks: 3` {why} Write `run: 65536`, or another multiple of the 64 \
             elements that a block reads at once instead of `blocks`, and cut the elements between \
             runs"
        )
    );
    assert!(said("").starts_with(&format!("the plain sum {why} Write `run: ")), "{}", said(""));
    assert!(!said("").contains("instead of"), "{}", said(""));
    // The suggested spec is a valid kernel.
    for line in [
        "",
        "op: max, block: 512, items: 3",
        "over: rows, group: 8, items: 5",
        "over: columns, blocks: 4",
    ] {
        let said = said(line);
        let (_, rest) = said.split_once("Write `run: ").expect("advice");
        let run = rest.split('`').next().and_then(|run| run.parse().ok()).expect("a number");
        let mut spec: ReduceSpec = line.parse().expect("a line");
        (spec.blocks, spec.run) = (None, Some(run));
        if said.contains(", add `group: 256`, and cut") {
            spec.group = Some(256);
        }
        assert!(spec.plan().is_ok(), "{line}: {said}: {:?}", spec.plan().err());
    }
}
