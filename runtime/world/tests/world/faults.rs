//! Worlds with faults: every rank that waits for a lost rank is soon notified, and no incomplete
//! result is returned.

use gemm_runtime::{ReduceKernel, SgemmKernel, reduce_kernel, sgemm_kernel};
use gemm_world::{
    Delivery, Distribution, Error, Fault, FaultKind, LossReason, OnRank, Rank, Result, Strategy,
    World, WorldError,
};
use std::time::{Duration, Instant};

const GEMM: SgemmKernel = sgemm_kernel!(tile: 16x16x8, thread: 4x4);
const SIZE: (usize, usize, usize) = (34, 21, 19);

/// GEMM with several exchanges.
fn product(rank: &mut Rank) -> Result<Option<Vec<f32>>> {
    let (m, n, k) = SIZE;
    let ones = |block: &gemm_world::Block| Ok(vec![1.0; block.len()]);
    let a = rank.load(&Distribution::rows(m, k), ones)?;
    let b = rank.load(&Distribution::cols(k, n), ones)?;
    let mut c = rank.alloc(&Distribution::cols(m, n))?;
    GEMM.on(rank).strategy(Strategy::Gather { parts: 2 }).launch(&a, &b, &mut c)?;
    rank.gather(&c, 0)
}

fn is_right(product: &[Option<Vec<f32>>]) -> bool {
    let (m, n, k) = SIZE;
    product[0].as_deref() == Some(vec![k as f32; m * n].as_slice())
}

/// Outcome and duration of a GEMM on three ranks with one injected fault.
fn with(kind: &FaultKind, rank: usize, call: u64) -> (Result<Vec<Option<Vec<f32>>>>, Duration) {
    let faults = vec![Fault { rank, call, kind: kind.clone() }];
    let delivery = Delivery { seed: Some(call), faults };
    let begin = Instant::now();
    let world = World::simulated_with(3, delivery).expect("a world");
    let outcome = world.timeout(Duration::from_secs(20)).run(product);
    (outcome, begin.elapsed())
}

#[test]
fn a_rank_that_dies_or_fails_at_any_step_is_an_error_on_all() {
    for rank in 0..3 {
        for kind in [FaultKind::Die, FaultKind::Fail("no more".to_owned())] {
            let mut errors = 0;
            for call in 0.. {
                let (outcome, took) = with(&kind, rank, call);
                assert!(took < Duration::from_secs(10), "rank {rank}, call {call}: {took:?}");
                match outcome {
                    // The rank made fewer calls.
                    Ok(product) => {
                        assert!(is_right(&product), "rank {rank}, call {call}");
                        break;
                    }
                    Err(Error::World(WorldError::RankLost { rank: lost, why, .. })) => {
                        assert_eq!(lost, rank, "call {call}");
                        let expected = match &kind {
                            FaultKind::Fail(text) => LossReason::Failed(text.clone()),
                            _ => LossReason::Gone,
                        };
                        assert_eq!(why, expected, "call {call}");
                        errors += 1;
                    }
                    Err(error) => panic!("rank {rank}, call {call}: {error}"),
                }
            }
            assert!(errors > 5, "rank {rank} makes more than {errors} calls");
        }
    }
}

#[test]
fn a_message_that_is_changed_is_an_error_or_a_bit_of_a_number() {
    let (mut told, mut wrong) = (0, 0);
    for rank in 0..3 {
        for call in 0..40 {
            let (outcome, took) = with(&FaultKind::Corrupt, rank, call);
            assert!(took < Duration::from_secs(10), "rank {rank}, call {call}: {took:?}");
            match outcome {
                Ok(product) => wrong += usize::from(!is_right(&product)),
                Err(Error::World(WorldError::Mismatch { .. } | WorldError::RankLost { .. })) => {
                    told += 1
                }
                Err(error) => panic!("rank {rank}, call {call}: {error}"),
            }
        }
    }
    // A flipped bit in matrix data is not detected. A changed length or control word is.
    assert!(told > 10, "{told} of 120 were told, {wrong} gave other numbers");
}

#[test]
fn a_rank_that_is_slow_is_waited_for_and_one_that_is_too_slow_is_not() {
    let (outcome, _) = with(&FaultKind::Delay(Duration::from_millis(300)), 1, 3);
    assert!(is_right(&outcome.expect("it comes in time")));
    let faults = vec![Fault { rank: 1, call: 3, kind: FaultKind::Delay(Duration::from_secs(2)) }];
    let world = World::simulated_with(3, Delivery { seed: None, faults }).expect("a world");
    let error = world.timeout(Duration::from_millis(200)).run(product).expect_err("it does not");
    assert!(
        matches!(
            error,
            Error::World(WorldError::RankLost { rank: 1, why: LossReason::Late(_), .. })
        ),
        "{error}"
    );
}

#[test]
fn ranks_that_panic_or_return_early_are_reported() {
    let world = || World::simulated(3).expect("a world").timeout(Duration::from_secs(20));
    let error = world().run(|rank| {
        assert!(rank.number() != 2, "rank 2 has had enough");
        product(rank)
    });
    let error = error.expect_err("one panics");
    assert!(
        matches!(
            &error,
            Error::World(WorldError::Panicked { rank: 2, message })
                if message.contains("had enough")
        ),
        "{error}"
    );
    let error = world().run(|rank| match rank.number() {
        1 => Ok(rank.device().alloc(usize::MAX / 8).map(|_| None)?),
        _ => product(rank),
    });
    assert!(
        matches!(error, Err(Error::Device(gemm_runtime::Error::OutOfMemory { .. }))),
        "{error:?}"
    );
    let error = world().run(|rank| if rank.number() == 0 { Ok(None) } else { product(rank) });
    assert!(
        matches!(
            &error,
            Err(Error::World(WorldError::RankLost { rank: 0, why: LossReason::Finished, .. }))
        ),
        "{error:?}"
    );
}

#[test]
fn ranks_that_do_not_do_the_same_are_at_odds_on_all() {
    const OTHER: SgemmKernel = sgemm_kernel!(tile: 16x16x8, thread: 2x2);
    let (m, n, k) = SIZE;
    let outcome = World::simulated(3).expect("a world").run(|rank| {
        let a = rank.alloc::<f32>(&Distribution::rows(m, k))?;
        let b = rank.alloc::<f32>(&Distribution::cols(k, n))?;
        let mut c = rank.alloc(&Distribution::cols(m, n))?;
        let kernel = if rank.number() == 1 { OTHER } else { GEMM };
        Ok(kernel.on(rank).launch(&a, &b, &mut c).expect_err("they are at odds").to_string())
    });
    let errors = outcome.expect("all go on");
    assert_eq!(errors[0], errors[1]);
    assert_eq!(errors[0], errors[2]);
    assert!(errors[0].contains("rank 1 has `tile: 16x16x8, thread: 2x2`"), "{}", errors[0]);
    // A call that the other rank does not make.
    let error = World::simulated(2)
        .expect("a world")
        .run(|rank| if rank.number() == 1 { rank.barrier().map(|()| None) } else { product(rank) });
    assert!(
        matches!(
            &error,
            Err(Error::World(WorldError::Mismatch { .. } | WorldError::RankLost { .. }))
        ),
        "{error:?}"
    );
}

#[test]
fn no_thread_is_left() {
    let threads = || std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    for call in 0..6 {
        _ = with(&FaultKind::Die, 1, call);
    }
    let before = threads();
    for call in 0..12 {
        _ = with(&FaultKind::Die, 1, call);
        _ = with(&FaultKind::Fail(String::new()), 2, call);
    }
    // Other tests run concurrently in their own threads.
    assert!(threads() < before + 12, "{before} threads became {}", threads());
}

/// Number of sends and takes by a rank of two during some work.
fn calls(rank: usize, work: impl Fn(&mut Rank) -> Result<()> + Sync) -> u64 {
    let fails = |call| {
        let faults = vec![Fault { rank, call, kind: FaultKind::Fail("here".to_owned()) }];
        let world = World::simulated_with(2, Delivery { seed: None, faults }).expect("a world");
        world.run(&work).is_err()
    };
    (0..).find(|call| !fails(*call)).expect("it ends")
}

/// The comparison of arguments takes one message in each direction. Without missing data, no other
/// message is sent.
#[test]
fn a_product_costs_one_message_each_way() {
    const SUM: ReduceKernel = reduce_kernel!(op: sum, block: 32, run: 32);
    for rank in 0..2 {
        for times in 1..4 {
            let product = calls(rank, |rank| {
                let (a, b) = (
                    rank.alloc(&Distribution::whole(5, 7))?,
                    rank.alloc(&Distribution::cols(7, 9))?,
                );
                let mut c = rank.alloc(&Distribution::cols(5, 9))?;
                (0..times).try_for_each(|_| GEMM.on(rank).launch(&a, &b, &mut c).map(drop))
            });
            assert_eq!(product, 2 * times);
            // Each rank has some elements of two runs and sends its partial to the other.
            let sum = calls(rank, |rank| {
                let x = rank.alloc(&"1x64 cols/32".parse()?)?;
                let mut sum = rank.device().alloc(1)?;
                (0..times).try_for_each(|_| SUM.on(rank).launch(&x, &mut sum))
            });
            assert_eq!(sum, 4 * times);
        }
    }
}
