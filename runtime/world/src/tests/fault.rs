//! Faults at every step of random programs, and the losses that are reported to other ranks.

use super::program::{Step, expected, program, step};
use super::{KINDS, run, same, soon};
use crate::channel::{Channel, RankLoss, Tag};
use crate::error::LossReason;
use crate::mailbox::{Delivery, Fault, FaultKind, mailboxes};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

type StagedBlocks = (Vec<Option<Vec<u8>>>, Option<RankLoss>);

/// Executes a program until it ends or fails. Returns the received messages and the failure, and
/// leaves after success.
fn go(channel: &dyn Channel, steps: &[Step]) -> StagedBlocks {
    let mut got = Vec::new();
    for next in steps {
        match step(channel, next, soon()) {
            Ok(message) => got.push(message),
            Err(broken) => return (got, Some(broken)),
        }
    }
    channel.leave();
    (got, None)
}

/// Random programs that end with a message between every two ranks, so every rank notices a loss.
fn all_told(ranks: usize, steps: usize, random: &mut fastrand::Rng) -> Vec<Vec<Step>> {
    let mut program = program(ranks, steps, random);
    for (rank, steps) in program.iter_mut().enumerate() {
        let others = (0..ranks).filter(|other| *other != rank);
        for to in others.clone() {
            steps.push(Step::Send { to, tag: Tag(99), bytes: vec![rank as u8] });
        }
        for from in others {
            steps.push(Step::Take { from, tag: Tag(99), bytes: vec![from as u8] });
        }
    }
    program
}

#[test]
fn faults_of_a_plan_at_every_call() {
    let mut random = fastrand::Rng::with_seed(4);
    for round in 0..6 {
        let ranks = random.usize(2..=6);
        let program = all_told(ranks, 40, &mut random);
        for rank in 0..ranks {
            for call in 0..program[rank].len() {
                let kinds = [
                    FaultKind::Die,
                    FaultKind::Fail("no memory".to_owned()),
                    FaultKind::Corrupt,
                    FaultKind::Delay(Duration::from_millis(1)),
                ];
                let kind = random.choice(kinds).expect("there are some");
                let faults = vec![Fault { rank, call: call as u64, kind: kind.clone() }];
                let seed = random.bool().then(|| random.u64(..));
                let ends = mailboxes(ranks, Delivery { seed, faults });
                let got = run(ends, |channel| go(&*channel, &program[channel.rank()]));
                let got: Vec<StagedBlocks> =
                    got.into_iter().map(|got| got.expect("no panic")).collect();
                let case =
                    format!("round {round}, rank {rank}, call {call}, {kind:?}, seed {seed:?}");
                check(&program, &got, (rank, call), &kind, &case);
            }
        }
    }
}

fn check(
    program: &[Vec<Step>],
    got: &[StagedBlocks],
    (rank, call): (usize, usize),
    kind: &FaultKind,
    case: &str,
) {
    let mut changed = 0;
    for (other, (messages, _)) in got.iter().enumerate() {
        for (message, expected) in messages.iter().zip(expected(&program[other])) {
            if *message != expected {
                changed += 1;
                let (message, expected) = (message.as_ref().expect(case), expected.expect(case));
                let bits =
                    message.iter().zip(&expected).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>();
                let length = message.len().abs_diff(expected.len());
                assert_eq!(bits as usize + length, 1, "{case}");
            }
        }
    }
    let told = same(got.iter().filter_map(|(_, broken)| broken.clone()));
    let why = match kind {
        FaultKind::Die => LossReason::Gone,
        FaultKind::Fail(text) => LossReason::Failed(text.clone()),
        FaultKind::Corrupt | FaultKind::Delay(_) => {
            assert_eq!(told, None, "{case}");
            // A corrupted message that nobody takes has no visible effect.
            let most = usize::from(*kind == FaultKind::Corrupt);
            assert!(changed <= most, "{case}");
            if let Step::Take { .. } = program[rank][call] {
                assert_eq!(changed, most, "{case}");
            }
            return;
        }
    };
    assert_eq!((told, changed), (Some(RankLoss { rank, why }), 0), "{case}");
    assert_eq!(got[rank].0.len(), call, "{case}: what it did before");
    // A rank lost before its last messages is noticed by all others.
    for (other, (_, broken)) in got.iter().enumerate() {
        let silent = call <= program[rank].len() - 2 * (program.len() - 1);
        assert!(broken.is_some() || !silent, "{case}: rank {other} was not told");
    }
}

/// Ways in which a rank can end without leaving in order.
#[derive(Clone, Copy, Debug)]
enum Exit {
    Drops,
    Panics,
    Aborts,
    Finishes,
}

#[test]
fn a_rank_that_goes_is_lost_to_all() {
    let mut random = fastrand::Rng::with_seed(5);
    for (kind, ends) in KINDS {
        for round in 0..(if kind == "TCP" { 24 } else { 100 }) {
            let ranks = random.usize(2..=5);
            let program = all_told(ranks, 30, &mut random);
            let rank = random.usize(..ranks);
            let last = program[rank].len() - 2 * (ranks - 1);
            let call = random.usize(..=last);
            let exit = random.choice([Exit::Drops, Exit::Panics, Exit::Aborts, Exit::Finishes]);
            let exit = exit.expect("there are some");
            let began = Instant::now();
            let got = run(ends(ranks, round), |channel: Arc<dyn Channel>| {
                if channel.rank() != rank {
                    return go(&*channel, &program[channel.rank()]);
                }
                let got = program[rank][..call].iter().map(|next| step(&*channel, next, soon()));
                let got: Result<Vec<_>, RankLoss> = got.collect();
                match exit {
                    Exit::Drops => {}
                    // Panics without printing a message.
                    Exit::Panics => std::panic::resume_unwind(Box::new("a panic that is meant")),
                    Exit::Aborts => {
                        channel.abort(RankLoss {
                            rank,
                            why: LossReason::Failed("no memory".to_owned()),
                        });
                        // Only the first loss counts.
                        channel.abort(RankLoss { rank: 0, why: LossReason::Gone });
                        let broken = channel
                            .take((rank + 1) % ranks, Tag(98), soon())
                            .expect_err("it is broken");
                        assert_eq!(channel.send(rank, Tag(98), Vec::new()), Err(broken.clone()));
                        assert_eq!(channel.broken(), Some(broken.clone()));
                        return (Vec::new(), Some(broken));
                    }
                    Exit::Finishes => channel.leave(),
                }
                (got.expect("nobody else goes"), None)
            });
            let case =
                format!("{kind}, round {round}: rank {rank} {exit:?} at {call} of {ranks} ranks");
            assert!(began.elapsed() < Duration::from_secs(10), "{case}: at once");
            assert_eq!(got[rank].is_none(), matches!(exit, Exit::Panics), "{case}");
            let told = got.iter().enumerate().filter(|(other, _)| *other != rank);
            let told = told
                .map(|(_, got)| got.as_ref().and_then(|(_, broken)| broken.clone()).expect(&case));
            let why = match exit {
                Exit::Drops | Exit::Panics => LossReason::Gone,
                Exit::Aborts => LossReason::Failed("no memory".to_owned()),
                Exit::Finishes => LossReason::Finished,
            };
            assert_eq!(same(told), Some(RankLoss { rank, why }), "{case}");
        }
    }
}

#[test]
fn a_rank_that_says_nothing_is_late_for_all() {
    for (kind, ends) in KINDS {
        for late in 0..3 {
            let waits = Duration::from_millis(150);
            let got = run(ends(3, 11), |channel| {
                let rank = channel.rank();
                let began = Instant::now();
                let broken = if rank == late {
                    thread::sleep(waits * 4);
                    channel.send((rank + 1) % 3, Tag(0), Vec::new()).expect_err("it comes too late")
                } else if rank == (late + 1) % 3 {
                    channel.take(late, Tag(0), began + waits).expect_err("nobody says that")
                } else {
                    // Waits for another rank with a longer deadline.
                    channel
                        .take((late + 1) % 3, Tag(0), began + waits * 100)
                        .expect_err("nobody says that")
                };
                (broken, began.elapsed())
            });
            let got: Vec<_> = got.into_iter().map(|got| got.expect("no panic")).collect();
            for (rank, (_, time)) in got.iter().enumerate() {
                assert!(
                    rank == late || *time < waits * 10,
                    "{kind}: rank {rank} waited for {time:?}"
                );
            }
            let broken = same(got.into_iter().map(|(broken, _)| broken)).expect("all were told");
            let RankLoss { rank, why: LossReason::Late(time) } = broken else {
                panic!("{kind}: {broken:?}");
            };
            assert_eq!(rank, late, "{kind}");
            assert!(time >= waits && time < waits * 10, "{kind}: {time:?}");
        }
    }
}

#[test]
fn waiting_ranks_are_not_reported_as_late() {
    // Rank 0 does nothing. Each other rank waits for the rank before it, and the deadline of one
    // rank expires first.
    for (turn, (kind, ends)) in KINDS.into_iter().enumerate() {
        let cases = [(3, 2), (4, 3), (4, 2), (5, 4)].into_iter().enumerate();
        for (nth, (ranks, first)) in cases {
            for still in [0, 1] {
                if !gemm_cases::is_in_turn(nth + still, 2, turn) {
                    continue;
                }
                // Renumbers the ranks, so that rank 0 also waits.
                let of = |rank: usize| (rank + ranks - still) % ranks;
                let waits = Duration::from_millis(400);
                let got = run(ends(ranks, 13), |channel| {
                    let place = of(channel.rank());
                    if place == 0 {
                        while channel.broken().is_none() {
                            thread::sleep(Duration::from_millis(1));
                        }
                        return channel.broken().expect("it is");
                    }
                    let before = (channel.rank() + ranks - 1) % ranks;
                    let time = if place == first { waits } else { waits * 20 };
                    channel
                        .take(before, Tag(0), Instant::now() + time)
                        .expect_err("nobody says that")
                });
                let told = got.into_iter().map(|got| got.expect("no panic"));
                let broken = same(told).expect("all were told");
                let case = format!(
                    "{kind}: {first} of {ranks} waits least, {still} stands still: {broken:?}"
                );
                assert!(
                    broken.rank == still && matches!(broken.why, LossReason::Late(_)),
                    "{case}"
                );
            }
        }
    }
}

#[test]
fn ranks_that_stall_after_waiting_are_late() {
    for (kind, ends) in KINDS {
        let got = run(ends(3, 17), |channel| {
            let stand = || {
                while channel.broken().is_none() {
                    thread::sleep(Duration::from_millis(1));
                }
                channel.broken().expect("it is")
            };
            match channel.rank() {
                0 => {
                    // Rank 1 has waited long enough to report its wait.
                    thread::sleep(Duration::from_millis(400));
                    channel.send(1, Tag(0), Vec::new()).expect("all are there");
                    stand()
                }
                1 => {
                    channel.take(0, Tag(0), soon()).expect("it comes");
                    stand()
                }
                _ => channel
                    .take(1, Tag(0), Instant::now() + Duration::from_millis(1200))
                    .expect_err("nobody says that"),
            }
        });
        let broken = same(got.into_iter().map(|got| got.expect("no panic"))).expect("all");
        assert!(
            broken.rank == 1 && matches!(broken.why, LossReason::Late(_)),
            "{kind}: {broken:?}"
        );
    }
}

#[test]
fn ranks_failing_while_waiting_are_lost() {
    for (kind, ends) in KINDS {
        for fails in [0, 1] {
            let got = run(ends(3, 19), |channel| {
                if channel.rank() != fails {
                    while channel.broken().is_none() {
                        thread::sleep(Duration::from_millis(1));
                    }
                    return channel.broken().expect("it is");
                }
                thread::scope(|scope| {
                    let waits = scope.spawn(|| channel.take(2, Tag(0), soon()));
                    thread::sleep(Duration::from_millis(400));
                    let why = LossReason::Failed("no memory".to_owned());
                    channel.abort(RankLoss { rank: fails, why });
                    waits.join().expect("no panic").expect_err("nobody says that")
                })
            });
            let broken = same(got.into_iter().map(|got| got.expect("no panic"))).expect("all");
            assert_eq!(
                broken,
                RankLoss { rank: fails, why: LossReason::Failed("no memory".to_owned()) },
                "{kind}"
            );
        }
    }
}

#[test]
fn a_rank_cannot_speak_to_one_that_is_not_there_or_after_it_has_left() {
    for (kind, ends) in KINDS {
        let got = run(ends(2, 1), |channel| {
            if channel.rank() == 1 {
                return channel.take(0, Tag(0), soon()).map(|_| ());
            }
            channel.send(2, Tag(0), Vec::new())
        });
        let broken = RankLoss {
            rank: 0,
            why: LossReason::Failed("it sent to rank 2 in a world of 2".to_owned()),
        };
        assert_eq!(got, [Some(Err(broken.clone())), Some(Err(broken))], "{kind}");

        let got = run(ends(1, 1), |channel| {
            channel.leave();
            (channel.send(0, Tag(0), Vec::new()), channel.take(0, Tag(0), soon()).map(|_| ()))
        });
        let broken = Err(RankLoss { rank: 0, why: LossReason::Finished });
        assert_eq!(got, [Some((broken.clone(), broken))], "{kind}");
    }
}
