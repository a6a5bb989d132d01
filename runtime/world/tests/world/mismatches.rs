//! Disagreements and impossible requests return the same error on all ranks, and later calls still
//! work.

use gemm_runtime::{ReduceKernel, SgemmKernel, SgemmSpec};
use gemm_world::{
    ClusterModel, Distribution, Distributions, Error, OnRank, Rank, Result, Schedule, Sharded,
    Strategy, World, WorldError,
};

/// Returns the errors of three ranks, which then meet at a barrier.
fn errors(wrong: impl Fn(&mut Rank) -> Result<()> + Sync) -> Vec<WorldError> {
    let all = World::simulated(3).expect("a world").run(|rank| {
        let error = wrong(rank).expect_err("it cannot be");
        rank.barrier()?;
        match error {
            Error::World(error) => Ok(error),
            other => panic!("{other}"),
        }
    });
    let all = all.expect("all go on");
    assert!(all.windows(2).all(|two| two[0] == two[1]), "{all:?}");
    all
}

fn upload(rank: &Rank, distribution: &str) -> Result<Sharded> {
    let distribution: Distribution = distribution.parse().expect("a layout");
    rank.upload(&distribution, &vec![1.0; distribution.rows * distribution.cols])
}

/// All inputs of a reduction need the same distribution, on all ranks.
#[test]
fn inputs_of_reductions_are_dealt_out_alike() {
    let dot = ReduceKernel::<(f32, f32), f32>::new(
        "map: |x, y| x * y, block: 32, run: 32".parse().expect("a line"),
    );
    let dot = dot.expect("a kernel");
    let [even, other] = ["1x192 cols/32", "1x192 cols[32,96,64]"];
    for distributions in [[even, other], [other, even]] {
        let found = errors(|rank| {
            let (x, y) = (upload(rank, distributions[0])?, upload(rank, distributions[1])?);
            dot.on(rank).run((&x, &y)).map(|_| ())
        });
        let WorldError::Impossible { what, .. } = &found[0] else { panic!("{found:?}") };
        assert!(distributions.iter().all(|distribution| what.contains(distribution)), "{what}");
    }
    // One of the two inputs has another distribution on one rank.
    for at in [0, 1] {
        let found = errors(|rank| {
            let mut distributions = [even; 2];
            distributions[at] = if rank.number() == 1 { other } else { even };
            let (x, y) = (upload(rank, distributions[0])?, upload(rank, distributions[1])?);
            dot.on(rank).run((&x, &y)).map(|_| ())
        });
        let WorldError::Mismatch { rank: 1, has, other: 0, others, .. } = &found[0] else {
            panic!("{found:?}")
        };
        assert!(has.contains(other) && !others.contains(other), "{has}, {others}");
    }
}

/// A gather needs the same distribution on all ranks, even if parts of two distributions have the
/// same number of elements.
#[test]
fn gathers_need_equal_distributions() {
    let found = errors(|rank| {
        let part = upload(rank, if rank.number() == 2 { "6x6 rows" } else { "6x6 cols" })?;
        rank.gather(&part, 0).map(|_| ())
    });
    assert!(matches!(found[0], WorldError::Mismatch { rank: 2, other: 0, .. }), "{found:?}");
    let found = errors(|rank| {
        let part = upload(rank, "6x6 rows")?;
        rank.gather(&part, usize::from(rank.number() == 1)).map(|_| ())
    });
    assert!(matches!(found[0], WorldError::Mismatch { rank: 1, other: 0, .. }), "{found:?}");
}

#[test]
fn nothing_is_gathered_at_a_rank_that_is_not_there() {
    for at in [3, 4, usize::MAX] {
        let found = errors(|rank| {
            let part = upload(rank, "6x6 rows")?;
            rank.gather(&part, at).map(|_| ())
        });
        let WorldError::Impossible { what, need } = &found[0] else { panic!("{found:?}") };
        assert_eq!(*what, format!("rank {at}"));
        assert!(need.contains("3 ranks"), "{need}");
    }
    let found = World::simulated(3).expect("a world").run(|rank| {
        let part = upload(rank, "6x6 rows")?;
        rank.gather(&part, 2)
    });
    assert_eq!(found.expect("the last one is there")[2], Some(vec![1.0; 36]));
}

/// If scaled rows of A or columns of B would arrive in parts, all data arrives before the first
/// multiplication. Each rank is then asked once about all its values.
#[test]
fn scaled_operands_arrive_before_the_first_multiplication() {
    const LINE: &str = "tile: 64x16x32, arith: f16x3, mma: wgmma, pitched";
    let n = 48;
    for (lies, a, b, is_late) in [
        ("nn", Distribution::cols(n, n), Distribution::cols(n, n), true),
        ("nn", Distribution::rows(n, n), Distribution::rows(n, n), true),
        ("nn", Distribution::rows(n, n), Distribution::cols(n, n), false),
        // Distributions as stored.
        ("tn", Distribution::cols(n, n), Distribution::cols(n, n), false),
        ("tn", Distribution::rows(n, n), Distribution::cols(n, n), true),
        ("nt", Distribution::rows(n, n), Distribution::rows(n, n), false),
        ("nt", Distribution::rows(n, n), Distribution::cols(n, n), true),
    ] {
        let spec: SgemmSpec = format!("layout: {lies}, {LINE}").parse().expect("a line");
        let kernel = SgemmKernel::new(spec.clone()).expect("a kernel");
        for strategy in [Strategy::Rotate, Strategy::Gather { parts: 2 }] {
            let c = Distribution::rows(n, n);
            let launches = World::simulated(3).expect("a world").run(|rank| {
                let (a, b) = (rank.alloc(&a)?, rank.alloc(&b)?);
                let mut c = rank.alloc(&c)?;
                kernel.on(rank).strategy(strategy).launch(&a, &b, &mut c)
            });
            let [of_a, of_b] = [(spec.layout.transposes_a(), &a), (spec.layout.transposes_b(), &b)]
                .map(
                    |(is_turned, distribution)| {
                        if is_turned { distribution.t() } else { distribution.clone() }
                    },
                );
            let distributions = Distributions { a: of_a, b: of_b, c: c.clone() };
            let strategy = if is_late { Strategy::Sequential } else { strategy };
            let expected = Schedule::new(distributions, 3, strategy).expect("a schedule");
            for launch in launches.expect("they multiply") {
                assert_eq!(*launch.schedule, expected, "{spec}, {a}, {b}, {strategy}");
                // The prediction uses the kernel's arithmetic.
                let machine = ClusterModel::h200_nccl().computing(&spec);
                assert_eq!(launch.estimate, expected.estimate(&machine));
                assert_ne!(launch.estimate, expected.estimate(&ClusterModel::h200_nccl()));
            }
        }
    }
}
