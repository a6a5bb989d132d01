//! Properties of every kind of channel, and of the code above channels.

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

/// Endpoints of all ranks of a world.
type Ends = Vec<Arc<dyn Channel>>;

/// Creates a world of `ranks` ranks from a seed.
type Kind = fn(usize, u64) -> Ends;

/// All kinds of channels: mailboxes in order, with and without spinning, mailboxes in a seeded
/// order, and TCP connections.
const KINDS: [(&str, Kind); 4] = [
    ("memory", |ranks, _| mailboxes(ranks, Delivery::default())),
    ("memory that is watched", |ranks, _| mailboxes_that(ranks, Delivery::default(), true)),
    ("shuffled memory", |ranks, seed| {
        mailboxes(ranks, Delivery { seed: Some(seed), faults: Vec::new() })
    }),
    ("TCP", |ranks, _| tcp::tests::connected(ranks, &tcp::tests::limits())),
];

/// Deadline that a correct run never reaches.
fn soon() -> Instant {
    Instant::now() + Duration::from_secs(30)
}

/// Runs each rank in its own thread, which alone owns its endpoint. Returns the outcomes by rank;
/// `None` for a panic.
fn run<T: Send>(ends: Ends, rank: impl Fn(Arc<dyn Channel>) -> T + Sync) -> Vec<Option<T>> {
    let rank = &rank;
    thread::scope(|scope| {
        let threads: Vec<_> = ends.into_iter().map(|end| scope.spawn(move || rank(end))).collect();
        threads.into_iter().map(|thread| thread.join().ok()).collect()
    })
}

/// Checks that all ranks were told the same loss, and returns it.
fn same(told: impl IntoIterator<Item = RankLoss>) -> Option<RankLoss> {
    let mut told = told.into_iter();
    let first = told.next()?;
    for other in told {
        assert_eq!(first, other, "all ranks are told the same");
    }
    Some(first)
}
