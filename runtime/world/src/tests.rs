//! What holds of every kind of wire, whatever carries it, and of what is written over them.

mod consensus;
mod deadlock;
mod ends;
mod fault;
mod messages;
pub(crate) mod program;

use super::mailbox::{Delivery, mailboxes, mailboxes_that};
use super::tcp;
use crate::channel::{Channel, RankLoss};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The ends of a world of some kind.
type Ends = Vec<Arc<dyn Channel>>;

/// Makes a world of so many ranks, by a seed.
type Kind = fn(usize, u64) -> Ends;

/// Every kind of world: memory in order, whose ranks sleep until something comes or look out for it first, memory in an order of some seed, processes' connections.
const KINDS: [(&str, Kind); 4] = [
    ("memory", |ranks, _| mailboxes(ranks, Delivery::default())),
    ("memory that is watched", |ranks, _| mailboxes_that(ranks, Delivery::default(), true)),
    ("shuffled memory", |ranks, seed| {
        mailboxes(ranks, Delivery { seed: Some(seed), faults: Vec::new() })
    }),
    ("TCP", |ranks, _| tcp::tests::connected(ranks, &tcp::tests::limits())),
];

/// How long a test waits for what comes. Nothing that is right takes that long.
fn soon() -> Instant {
    Instant::now() + Duration::from_secs(30)
}

/// Runs a rank in each of as many threads, which alone hold the ends. What each has come to, by rank; `None` of one that
/// has panicked.
fn run<T: Send>(ends: Ends, rank: impl Fn(Arc<dyn Channel>) -> T + Sync) -> Vec<Option<T>> {
    let rank = &rank;
    thread::scope(|scope| {
        let threads: Vec<_> = ends.into_iter().map(|end| scope.spawn(move || rank(end))).collect();
        threads.into_iter().map(|thread| thread.join().ok()).collect()
    })
}

/// What all ranks that were told of a loss were told: the same.
fn same(told: impl IntoIterator<Item = RankLoss>) -> Option<RankLoss> {
    let mut told = told.into_iter();
    let first = told.next()?;
    for other in told {
        assert_eq!(first, other, "all ranks are told the same");
    }
    Some(first)
}
