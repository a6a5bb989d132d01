//! Random graphs of waiting ranks: every deadlock is found at once, and only deadlocks are
//! reported.

use super::{run, same};
use crate::channel::{RankLoss, Tag};
use crate::error::LossReason;
use crate::mailbox::{Delivery, mailboxes, mailboxes_that};
use std::time::{Duration, Instant};

/// Wait of a rank for another rank. `sent` is true if the awaited message was sent.
#[derive(Clone, Copy, Debug)]
struct Wait {
    of: usize,
    sent: bool,
}

/// Circles of ranks that wait in vain, each from its lowest rank on.
fn rings(waits: &[Option<Wait>]) -> Vec<Vec<usize>> {
    let next = |rank: usize| waits[rank].filter(|wait| !wait.sent).map(|wait| wait.of);
    let ring = |first: usize| {
        let mut ring = vec![first];
        loop {
            let rank = next(*ring.last()?)?;
            if rank == first {
                return Some(ring);
            }
            if ring.contains(&rank) {
                return None;
            }
            ring.push(rank);
        }
    };
    (0..waits.len()).filter_map(ring).filter(|ring| ring.iter().min() == ring.first()).collect()
}

#[test]
fn deadlocked_ranks_are_reported_with_their_waits() {
    let mut random = fastrand::Rng::with_seed(2);
    let (mut hangs, mut ends) = (0, 0);
    for round in 0..400 {
        let ranks = random.usize(1..=8);
        let draw = |random: &mut fastrand::Rng| {
            let wait = Wait { of: random.usize(..ranks), sent: random.u8(..4) == 0 };
            (random.u8(..5) != 0).then_some(wait)
        };
        let waits: Vec<Option<Wait>> = (0..ranks).map(|_| draw(&mut random)).collect();
        let rings = rings(&waits);
        let vain = |rank: usize| waits[rank].is_some_and(|wait| !wait.sent);
        let tag = |rank: usize| Tag(rank as u64 + 10);
        let seed = random.bool().then_some(round);
        let began = Instant::now();
        let deadline = began + Duration::from_secs(60);
        let delivery = Delivery { seed, faults: Vec::new() };
        let got = run(mailboxes_that(ranks, delivery, round % 2 == 0), |channel| {
            let me = channel.rank();
            for (to, wait) in waits.iter().enumerate() {
                let for_me = wait.filter(|wait| wait.of == me);
                if for_me.is_some() {
                    // Unrelated messages, with another tag or another receiver, are always under
                    // way.
                    channel.send(to, Tag(1), vec![1])?;
                }
                if for_me.is_some_and(|wait| wait.sent) {
                    channel.send(to, tag(to), vec![2])?;
                }
            }
            if let Some(wait) = waits[me] {
                assert_eq!(channel.take(wait.of, tag(me), deadline)?, [2]);
            }
            channel.leave();
            Ok::<(), RankLoss>(())
        });
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "round {round}: at the deadline, not at once"
        );
        let got: Vec<_> = got.into_iter().map(|got| got.expect("no panic")).collect();
        for (rank, got) in got.iter().enumerate() {
            assert!(got.is_err() || !vain(rank), "round {round}: rank {rank} cannot go on");
        }
        let Some(broken) = same(got.into_iter().filter_map(Result::err)) else {
            ends += 1;
            continue;
        };
        // Expected: a circle, or a wait for a rank that could leave.
        let deadlock = |ring: &Vec<usize>| {
            let who = |rank: &usize| {
                let of = waits[*rank].expect("it waits").of;
                format!("rank {rank} for rank {of} ({})", tag(*rank))
            };
            let text = ring.iter().map(who).collect::<Vec<_>>().join(", ");
            RankLoss { rank: ring[0], why: LossReason::Deadlock(text) }
        };
        let finished = (0..ranks).filter(|rank| vain(*rank)).filter_map(|rank| {
            let of = waits[rank]?.of;
            (!vain(of)).then_some(RankLoss { rank: of, why: LossReason::Finished })
        });
        let may_be: Vec<RankLoss> = rings.iter().map(deadlock).chain(finished).collect();
        assert!(may_be.contains(&broken), "round {round}: {broken:?} is none of {may_be:?}");
        hangs += usize::from(matches!(broken.why, LossReason::Deadlock(_)));
    }
    assert!(hangs > 50 && ends > 20, "both are to be drawn: {hangs} and {ends}");
}

#[test]
fn a_rank_that_works_for_long_is_waited_for() {
    let ends = mailboxes(2, Delivery { seed: Some(3), faults: Vec::new() });
    let got = run(ends, |channel| {
        if channel.rank() == 0 {
            std::thread::sleep(Duration::from_millis(300));
            channel.send(1, Tag(0), vec![1])?;
            channel.leave();
            return Ok(vec![]);
        }
        let got = channel.take(0, Tag(0), Instant::now() + Duration::from_secs(10));
        channel.leave();
        got
    });
    assert_eq!(got, [Some(Ok(vec![])), Some(Ok(vec![1]))]);
}
