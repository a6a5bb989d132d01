//! Gathering and agreement, and the errors of ranks that disagree.

use super::{KINDS, run, soon};
use crate::WorldError;
use crate::channel::{Channel, Tag};
use crate::codec::{put_bytes, put_list};
use crate::consensus::{agree, gather_all};
use crate::error::LossReason;
use crate::mailbox::{Delivery, Fault, FaultKind, mailboxes};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Barrier over all ranks.
fn barrier(
    channel: &dyn Channel,
    tag: Tag,
    doing: &str,
    deadline: Instant,
) -> Result<(), WorldError> {
    gather_all(channel, tag, doing, Vec::new(), deadline).map(drop)
}

#[test]
fn all_ranks_get_what_all_have_given() {
    let mut random = fastrand::Rng::with_seed(6);
    for (kind, ends) in KINDS {
        for round in 0..10 {
            let ranks = random.usize(1..=7);
            let mut bytes = || (0..random.usize(..50)).map(|_| random.u8(..)).collect::<Vec<u8>>();
            let given: Vec<Vec<Vec<u8>>> =
                (0..3).map(|_| (0..ranks).map(|_| bytes()).collect()).collect();
            let got = run(ends(ranks, round), |channel| {
                // Repeated gathers under one tag.
                let gather = |given: &Vec<Vec<u8>>| {
                    gather_all(
                        &*channel,
                        Tag(1),
                        "gathering",
                        given[channel.rank()].clone(),
                        soon(),
                    )
                };
                let got: Result<Vec<_>, _> = given.iter().map(gather).collect();
                channel.leave();
                got
            });
            assert!(
                got.iter().all(|got| got.as_ref() == Some(&Ok(given.clone()))),
                "{kind}, round {round}: {got:?}"
            );
        }
    }
}

#[test]
fn no_rank_leaves_a_barrier_before_all_have_come() {
    for (kind, ends) in KINDS {
        let came = AtomicUsize::new(0);
        let got = run(ends(5, 3), |channel| {
            for round in 1..=4 {
                std::thread::sleep(Duration::from_millis(channel.rank() as u64 * 3));
                came.fetch_add(1, Ordering::SeqCst);
                barrier(&*channel, Tag(1), "waiting for all", soon())?;
                assert!(came.load(Ordering::SeqCst) >= 5 * round, "{kind}");
            }
            channel.leave();
            Ok::<_, WorldError>(())
        });
        assert!(got.iter().all(|got| *got == Some(Ok(()))), "{kind}: {got:?}");
    }
}

#[test]
fn all_ranks_are_told_of_the_lowest_that_is_at_odds() {
    let mut random = fastrand::Rng::with_seed(8);
    for (kind, ends) in KINDS {
        for round in 0..10 {
            let ranks = random.usize(1..=6);
            let values: Vec<&str> =
                (0..ranks).map(|_| if random.u8(..4) == 0 { "64x32" } else { "32x32" }).collect();
            let ready: Vec<bool> = (0..ranks).map(|_| random.u8(..4) != 0).collect();
            let got = run(ends(ranks, round), |channel| {
                let (value, is_ready) = (values[channel.rank()], ready[channel.rank()]);
                // The first text is equal on all ranks.
                let said = [("the kernel", "8x8"), ("the extents", value), ("the rest", value)];
                let got = agree(&*channel, Tag(1), &said, is_ready, soon(), "Give all the same");
                // After a disagreement, further calls still work.
                let after = barrier(&*channel, Tag(2), "going on", soon());
                channel.leave();
                (got, after)
            });
            let odd = values.iter().position(|value| *value != values[0]);
            let expected = odd.map_or(Ok(ready.iter().all(|is_ready| *is_ready)), |rank| {
                Err(WorldError::Mismatch {
                    what: "the extents".to_owned(),
                    rank,
                    has: values[rank].to_owned(),
                    other: 0,
                    others: values[0].to_owned(),
                    remedy: "Give all the same",
                })
            });
            for got in got {
                assert_eq!(got, Some((expected.clone(), Ok(()))), "{kind}, round {round}");
            }
        }
    }
}

#[test]
fn lists_from_rank_0_must_have_one_entry_per_rank() {
    for given in [1, 2, 4] {
        let got = run(mailboxes(3, Delivery::default()), |channel| {
            if channel.rank() == 0 {
                let mut all = Vec::new();
                put_list(&mut all, &vec![b"x"; given], |to, bytes| put_bytes(to, *bytes));
                for rank in 1..3 {
                    // The rank that was told first may have reported the fault by then.
                    _ = channel.send(rank, Tag(1), all.clone());
                }
                return channel.take(1, Tag(2), soon()).expect_err("it is broken").at("");
            }
            gather_all(&*channel, Tag(1), "", vec![1], soon()).expect_err("that is not all")
        });
        for error in got {
            let error = error.expect("no panic");
            let RankLost { who, why } = lost(&error).expect("a rank is lost");
            assert!(who == 0 && matches!(why, LossReason::Failed(_)), "{error}");
        }
    }
}

#[test]
fn faults_at_any_call_of_an_agreement_are_reported() {
    for ranks in 2..=5 {
        for rank in 0..ranks {
            // Rank 0 takes, then sends; the others send, then take.
            for call in 0..(if rank == 0 { 2 * (ranks - 1) } else { 2 }) {
                for seed in 0..8 {
                    for kind in [FaultKind::Die, FaultKind::Corrupt] {
                        let faults = vec![Fault { rank, call: call as u64, kind: kind.clone() }];
                        let ends = mailboxes(ranks, Delivery { seed: Some(seed), faults });
                        let got = run(ends, |channel| {
                            let got =
                                agree(&*channel, Tag(1), &[("x", "one text")], true, soon(), "");
                            // A rank that finds no fault continues, and needs the others.
                            let got =
                                got.and_then(|_| barrier(&*channel, Tag(1), "going on", soon()));
                            if got.is_ok() {
                                channel.leave();
                            }
                            got
                        });
                        let case = format!(
                            "{ranks} ranks, rank {rank}, call {call}, seed {seed}, {kind:?}"
                        );
                        for (other, got) in got.into_iter().enumerate() {
                            let error = got.expect("no panic").expect_err(&case);
                            let Some(RankLost { who, why }) = lost(&error) else {
                                // A contribution, or the list of all contributions, was corrupted
                                // on its way.
                                assert_eq!(kind, FaultKind::Corrupt, "{case}");
                                continue;
                            };
                            match kind {
                                FaultKind::Die => {
                                    assert_eq!(
                                        (who, why),
                                        (rank, &LossReason::Gone),
                                        "{case}, {other}"
                                    )
                                }
                                _ => assert_ne!(why, &LossReason::Finished, "{case}, {other}"),
                            }
                        }
                    }
                }
            }
        }
    }
}

struct RankLost<'a> {
    who: usize,
    why: &'a LossReason,
}

fn lost(error: &WorldError) -> Option<RankLost<'_>> {
    match error {
        WorldError::RankLost { rank, why, .. } => Some(RankLost { who: *rank, why }),
        _ => None,
    }
}
