//! Rendezvous and connections on this machine.

mod bytes;
mod connection;
mod job;
mod processes;
mod rendezvous;
mod unknown_peers;

use super::{Address, Fact, Hello, Job, Limits, RendezvousOutcome, TcpChannel, meet_at};
use crate::WorldError;
use crate::channel::Channel;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Limits long enough for a busy machine.
pub(crate) fn limits() -> Limits {
    Limits {
        rendezvous: Duration::from_secs(10),
        heartbeat: Duration::from_millis(100),
        silence: Duration::from_secs(5),
        linger: Duration::from_secs(5),
    }
}

/// Creates a listener and its address.
fn place() -> (TcpListener, Address) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    (listener, Address { host: "127.0.0.1".to_owned(), port })
}

/// Describes a rank of a job that meets at an address.
fn job(rank: usize, ranks: usize, address: &Address) -> Job {
    Job { rank, ranks, local_rank: None, address: address.clone(), token: "a job".to_owned() }
}

/// Outcome of a rendezvous.
type Rendezvous = Result<(TcpChannel, RendezvousOutcome), WorldError>;

/// Runs a rendezvous of the given ranks, each in its own thread, with rank 0 on the listener.
/// Returns their outcomes in order.
fn come(listener: TcpListener, those: &[(Job, Hello)], limits: &Limits) -> Vec<Rendezvous> {
    thread::scope(|scope| {
        let mut listener = Some(listener);
        let threads: Vec<_> = those
            .iter()
            .map(|(job, hello)| {
                let listener = listener.take_if(|_| job.rank == 0);
                scope.spawn(move || meet_at(listener, job, hello, limits))
            })
            .collect();
        // Without a rank 0, no process may listen.
        drop(listener);
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// Connects all ranks.
fn channels(ranks: usize, limits: &Limits) -> Vec<TcpChannel> {
    let (listener, address) = place();
    let those: Vec<_> =
        (0..ranks).map(|rank| (job(rank, ranks, &address), Hello::default())).collect();
    let met = come(listener, &those, limits);
    met.into_iter().map(|met| met.expect("they meet").0).collect()
}

/// Connects all ranks, as generic channels.
pub(crate) fn connected(ranks: usize, limits: &Limits) -> Vec<Arc<dyn Channel>> {
    channels(ranks, limits)
        .into_iter()
        .map(|channel| Arc::new(channel) as Arc<dyn Channel>)
        .collect()
}

/// Returns the error, which must be the same on all ranks.
fn same_error(met: impl IntoIterator<Item = Rendezvous>) -> WorldError {
    let mut errors = met.into_iter().map(|met| met.map(|_| ()).expect_err("there is no world"));
    let first = errors.next().expect("somebody");
    for other in errors {
        assert_eq!(first, other, "all are told the same");
    }
    first
}

fn saying(fact: Fact) -> Hello {
    Hello { facts: vec![fact], ..Hello::default() }
}
