//! Errors of a world after the loss of a rank: the error of the first lost rank is returned.

use crate::mailbox::{Delivery, Fault, FaultKind, mailboxes};
use crate::{Error, LossReason, Rank, Result, World, WorldError};
use gemm_runtime::Device;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

fn world(ranks: usize) -> World {
    World::simulated(ranks).expect("a world").timeout(Duration::from_secs(20))
}

/// Waits until a rank is lost.
fn wait(rank: &Rank) {
    while rank.channel.broken().is_none() {
        thread::sleep(Duration::from_millis(1));
    }
}

fn own_error(text: &str) -> Error {
    Error::internal(text.to_owned())
}

#[test]
fn what_follows_from_a_loss_is_not_what_is_returned() {
    // One rank is lost, by an injected fault or by its own error. All others fail with errors of
    // their own.
    for lost in 0..3 {
        for kind in [FaultKind::Die, FaultKind::Fail("no more".to_owned())] {
            let faults = vec![Fault { rank: lost, call: 0, kind: kind.clone() }];
            let world = World::simulated_with(3, Delivery { seed: None, faults });
            let error = world.expect("a world").run(|rank| {
                if rank.number() != lost {
                    wait(rank);
                    return Err(own_error("what it makes of that"));
                }
                rank.barrier()
            });
            let Err(Error::World(WorldError::RankLost { rank, why, .. })) = error else {
                panic!("{lost}, {kind:?}: {error:?}")
            };
            let expected = match kind {
                FaultKind::Fail(text) => LossReason::Failed(text),
                _ => LossReason::Gone,
            };
            assert_eq!((rank, why), (lost, expected));
        }
        let error = world(3).run(|rank| -> Result<()> {
            if rank.number() != lost {
                wait(rank);
                return Err(own_error("what it makes of that"));
            }
            Err(own_error("the cause"))
        });
        assert!(error.expect_err("one has failed").to_string().contains("the cause"));
        let error = world(3).run(|rank| -> Result<()> {
            if rank.number() != lost {
                wait(rank);
                return Err(own_error("what it makes of that"));
            }
            panic!("as it is meant to")
        });
        let error = error.expect_err("one has panicked");
        let Error::World(WorldError::Panicked { rank, .. }) = error else { panic!("{error}") };
        assert_eq!(rank, lost);
    }
}

#[test]
fn a_rank_that_finished_too_early_is_what_is_returned() {
    let error = world(3).run(|rank| match rank.number() {
        2 => Ok(()),
        _ => rank.barrier().map_err(|_| own_error("what it makes of that")),
    });
    let Err(Error::World(WorldError::RankLost { rank, why, .. })) = error else {
        panic!("{error:?}")
    };
    assert_eq!((rank, why), (2, LossReason::Finished));
}

#[test]
fn a_rank_of_another_process_is_named_whatever_fails_here() {
    let mut ends = mailboxes(2, Delivery::default());
    let (other, own) = (ends.remove(1), ends.remove(0));
    drop(other);
    let error = World::of_end(Device::simulator(), own)
        .run(|_| -> Result<()> { Err(own_error("what it makes of that")) })
        .expect_err("the other one is gone");
    assert_eq!(
        error.to_string(),
        "rank 1 was lost while this rank was at work: its connection was closed; see the last \
         output of its process"
    );
}

#[test]
fn what_nccl_fails_with_may_follow_from_what_is_known_a_moment_later() {
    let nccl = || {
        let (doing, text) = ("an exchange".to_owned(), "a remote process is gone".to_owned());
        Error::World(WorldError::Nccl { doing, code: 6, text })
    };
    let error = world(2).run(|rank| -> Result<()> {
        if rank.number() == 0 {
            return Err(nccl());
        }
        thread::sleep(Duration::from_millis(200));
        Err(own_error("the cause"))
    });
    assert!(error.expect_err("both have failed").to_string().contains("the cause"));
    // Without another cause, NCCL's own error is returned.
    let error = world(2).run(|rank| if rank.number() == 0 { Err(nccl()) } else { rank.barrier() });
    assert!(matches!(error, Err(Error::World(WorldError::Nccl { .. }))), "{error:?}");
}

#[test]
fn nothing_is_returned_of_a_world_that_is_broken_in_the_end() {
    // Each rank is its own process, as in a job.
    let mut ends = mailboxes(2, Delivery::default());
    let (other, own) = (ends.remove(1), ends.remove(0));
    let (tell, told) = channel();
    let of_own = thread::spawn(move || {
        let told = std::sync::Mutex::new(told);
        World::of_end(Device::simulator(), own).run(|rank| {
            told.lock().expect("no panic").recv().expect("it is told");
            assert!(rank.channel.broken().is_some());
            // All requested work is complete.
            Ok(7)
        })
    });
    let of_other = World::of_end(Device::simulator(), other)
        .run(|_| -> Result<()> { Err(own_error("no memory")) });
    assert!(
        matches!(of_other, Err(Error::Device(gemm_runtime::Error::Internal(_)))),
        "{of_other:?}"
    );
    tell.send(()).expect("it waits");
    let error = of_own.join().expect("no panic").expect_err("rank 1 was lost before it was done");
    let Error::World(WorldError::RankLost { rank: 1, doing, why: LossReason::Failed(_) }) = error
    else {
        panic!("{error}")
    };
    assert_eq!(doing, "waiting for its device");
}
