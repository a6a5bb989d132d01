//! Random programs of sends and takes, with the messages that each rank must receive.

use super::{KINDS, run, soon};
use crate::channel::{Channel, RankLoss, Tag};
use crate::error::LossReason;
use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

/// Step of a rank.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Send {
        to: usize,
        tag: Tag,
        bytes: Vec<u8>,
    },
    /// Takes a message, which must be equal to `bytes`.
    Take {
        from: usize,
        tag: Tag,
        bytes: Vec<u8>,
    },
}

/// Random program for each rank. The steps can be executed one after another in the order in which
/// they were drawn, and sends never block. Ranks that execute them concurrently therefore finish.
pub(crate) fn program(ranks: usize, steps: usize, random: &mut fastrand::Rng) -> Vec<Vec<Step>> {
    let mut program = vec![Vec::new(); ranks];
    let mut queues: HashMap<(usize, usize, Tag), Vec<Vec<u8>>> = HashMap::new();
    for number in 0..steps {
        let sent: Vec<_> =
            queues.iter().filter(|(_, queue)| !queue.is_empty()).map(|(key, _)| *key).collect();
        if !sent.is_empty() && random.bool() {
            let (from, to, tag) = sent[random.usize(..sent.len())];
            let bytes = queues.get_mut(&(from, to, tag)).expect("it was there").remove(0);
            program[to].push(Step::Take { from, tag, bytes });
        } else {
            let (from, to) = (random.usize(..ranks), random.usize(..ranks));
            let tag = Tag(random.u64(..3));
            let mut bytes = (number as u64).to_le_bytes().to_vec();
            bytes.extend((0..random.usize(..200)).map(|_| random.u8(..)));
            // Empty messages count too.
            if random.u8(..8) == 0 {
                bytes.clear();
            }
            queues.entry((from, to, tag)).or_default().push(bytes.clone());
            program[from].push(Step::Send { to, tag, bytes });
        }
    }
    program
}

/// Executes a step. Returns the message of a take.
pub(crate) fn step(
    channel: &dyn Channel,
    step: &Step,
    deadline: Instant,
) -> Result<Option<Vec<u8>>, RankLoss> {
    match step {
        Step::Send { to, tag, bytes } => channel.send(*to, *tag, bytes.clone()).map(|()| None),
        Step::Take { from, tag, .. } => channel.take(*from, *tag, deadline).map(Some),
    }
}

/// Expected messages of a rank's steps.
pub(crate) fn expected(steps: &[Step]) -> Vec<Option<Vec<u8>>> {
    let message = |step: &Step| match step {
        Step::Send { .. } => None,
        Step::Take { bytes, .. } => Some(bytes.clone()),
    };
    steps.iter().map(message).collect()
}

#[test]
fn every_rank_gets_what_was_sent_in_order() {
    let mut random = fastrand::Rng::with_seed(1);
    for round in 0..60 {
        let ranks = random.usize(1..=8);
        let steps = random.usize(..200);
        let program = program(ranks, steps, &mut random);
        for (kind, ends) in KINDS {
            // TCP worlds take longer to create.
            if kind == "TCP" && round % 3 != 0 {
                continue;
            }
            let got = run(ends(ranks, round), |channel| {
                let steps = program[channel.rank()].iter();
                let got: Result<Vec<_>, RankLoss> =
                    steps.map(|next| step(&*channel, next, soon())).collect();
                channel.leave();
                got
            });
            for (rank, got) in got.into_iter().enumerate() {
                let got = got
                    .expect("no panic")
                    .unwrap_or_else(|broken| panic!("{kind}, round {round}: {broken:?}"));
                assert!(got == expected(&program[rank]), "{kind}, round {round}, rank {rank}");
            }
        }
    }
}

#[test]
fn a_rank_that_has_left_lets_the_others_go_on() {
    for (kind, ends) in KINDS {
        for first in 0..3 {
            let got = run(ends(3, 7), |channel| {
                let (rank, next) = (channel.rank(), (channel.rank() + 1) % 3);
                channel.send(next, Tag(0), vec![rank as u8])?;
                if rank == first {
                    let got = channel.take((rank + 2) % 3, Tag(0), soon())?;
                    channel.leave();
                    return Ok(vec![got]);
                }
                // The other ranks exchange messages long after this rank has left, and still
                // receive its earlier messages.
                let other = 3 - first - rank;
                thread::sleep(Duration::from_millis(100));
                channel.send(other, Tag(1), vec![9])?;
                channel.send(first, Tag(1), vec![9])?;
                let got = channel.take(other, Tag(1), soon())?;
                let before = channel.take((rank + 2) % 3, Tag(0), soon())?;
                channel.leave();
                Ok::<_, RankLoss>(vec![got, before])
            });
            let before = |rank: usize| vec![((rank + 2) % 3) as u8];
            for (rank, got) in got.into_iter().enumerate() {
                let all =
                    if rank == first { vec![before(rank)] } else { vec![vec![9], before(rank)] };
                assert_eq!(got, Some(Ok(all)), "{kind}, rank {first} leaves, rank {rank}");
            }
        }
    }
}

#[test]
fn one_that_waits_for_a_rank_that_has_left_is_told_at_once() {
    for (kind, ends) in KINDS {
        for (leaves, waits) in [(0, 1), (1, 0), (1, 2), (2, 1)] {
            let began = Instant::now();
            let got = run(ends(3, 5), |channel| {
                let rank = channel.rank();
                if rank == leaves {
                    channel.leave();
                    return None;
                }
                if rank == waits {
                    // The wait may begin before or after the departure.
                    return channel.take(leaves, Tag(0), soon()).err();
                }
                // This rank can learn of the loss only from the channel.
                while channel.broken().is_none() && began.elapsed() < Duration::from_secs(10) {
                    thread::sleep(Duration::from_millis(1));
                }
                channel.broken()
            });
            let finished = RankLoss { rank: leaves, why: LossReason::Finished };
            for (rank, got) in got.into_iter().enumerate() {
                let told = (rank != leaves).then(|| finished.clone());
                assert_eq!(got, Some(told), "{kind}, {leaves} leaves, {waits} waits, rank {rank}");
            }
        }
    }
}
