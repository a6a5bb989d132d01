//! Rendezvous on the side of every rank except rank 0.

use super::Limits;
use super::answer::{Answer, MissingAnswer};
use super::hello::{Greeting, Hello, RendezvousOutcome};
use super::job::{Address, Job};
use crate::WorldError;
use crate::channel::RankLoss;
use crate::error::LossReason;
use std::io::Write;
use std::net::{TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

/// First and longest pause between attempts.
const AGAIN: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// Time limit for a connection attempt.
const CONNECT: Duration = Duration::from_secs(5);

/// Time for further attempts if rank 0 disappears after it has read this rank's greeting, since
/// only the connection may have failed.
const GRACE: Duration = Duration::from_secs(1);

enum Visit {
    Welcome(TcpStream, RendezvousOutcome),
    /// Fault that rank 0 sends to all ranks.
    Failed(WorldError),
    /// Failure of this attempt. Another attempt follows.
    Again(String),
    /// Reason to try again: another job meets at this address.
    Away(String),
    /// Rank 0 has read this rank's greeting, but then disappeared.
    LossReason {
        why: LossReason,
        missing: String,
    },
}

/// Connects to rank 0 repeatedly until rank 0 answers or time is up. If rank 0 disappears after it
/// has read this rank's greeting, the rank does not wait for a new rank 0.
///
/// # Errors
/// Same as [`meet`](super::meet).
pub(super) fn join(
    job: &Job,
    hello: &Hello,
    limits: &Limits,
    deadline: Instant,
) -> Result<(TcpStream, RendezvousOutcome), WorldError> {
    let refused = |reason| WorldError::Rendezvous { address: job.address.to_string(), reason };
    let greeting = Greeting::new(job, hello).encode().map_err(refused)?;
    let mut pause = AGAIN.0;
    let mut before = String::new();
    // Error to return if rank 0 does not answer again, and the time limit for this answer.
    let mut lost: Option<(WorldError, Instant)> = None;
    loop {
        let happened = match visit(job, hello, &greeting, limits, deadline) {
            Visit::Welcome(stream, met) => return Ok((stream, met)),
            Visit::Failed(error) => return Err(error),
            Visit::Again(happened) => happened,
            Visit::Away(happened) => {
                before = format!(" (before that, {happened})");
                happened
            }
            Visit::LossReason { why, missing } => {
                let doing = format!("meeting the others, of whom {missing} was missing");
                let until = match why {
                    LossReason::Gone => Instant::now() + GRACE,
                    _ => Instant::now(),
                };
                let error = RankLoss { rank: 0, why }.at(&doing);
                pause = AGAIN.0;
                let happened = error.to_string();
                lost = Some((error, until));
                happened
            }
        };
        let next = Instant::now() + pause;
        if let Some((error, until)) = &lost
            && next >= *until.min(&deadline)
        {
            return Err(error.clone());
        }
        if next >= deadline {
            let time = limits.rendezvous.as_secs_f64();
            return Err(refused(format!(
                "rank {} did not meet rank 0 in {time:.1} s: {happened}{before}",
                job.rank
            )));
        }
        thread::sleep(pause);
        pause = AGAIN.1.min(pause * 2);
    }
}

fn visit(job: &Job, hello: &Hello, greeting: &[u8], limits: &Limits, deadline: Instant) -> Visit {
    let mut stream = match connect(&job.address, deadline) {
        Ok(stream) => stream,
        Err(error) => return Visit::Again(error.to_string()),
    };
    let timeout = Some(limits.silence);
    let said = stream.set_write_timeout(timeout).and_then(|()| stream.write_all(greeting));
    if let Err(error) = said {
        return Visit::Again(error.to_string());
    }
    // Once rank 0 has read the greeting, it will report a failed rendezvous, so this rank may wait
    // longer.
    let last = deadline + limits.rendezvous + limits.silence;
    let mut until = deadline;
    let mut waited_for = None;
    loop {
        match Answer::read(&stream, limits.silence, until) {
            Ok(Answer::Wait(missing)) => {
                until = until.max(Instant::now() + limits.silence).min(last);
                waited_for = Some(missing);
            }
            Ok(Answer::Away(reason)) => return Visit::Away(reason),
            Ok(Answer::Failed(fault)) => {
                return Visit::Failed(fault.error(&job.address.to_string(), hello));
            }
            Ok(Answer::Welcome(met)) if met.said.len() == job.ranks => {
                return Visit::Welcome(stream, met);
            }
            Ok(Answer::Welcome(met)) => {
                return Visit::Again(format!(
                    "rank 0 says that there are {} ranks",
                    met.said.len()
                ));
            }
            Err(MissingAnswer { reason, why }) => {
                return match waited_for {
                    Some(missing) => Visit::LossReason { why, missing },
                    None => Visit::Again(reason),
                };
            }
        }
    }
}

/// Connects to the listener at an address.
fn connect(address: &Address, deadline: Instant) -> std::io::Result<TcpStream> {
    let mut error = std::io::Error::other("the host has no address");
    for place in (address.host.as_str(), address.port).to_socket_addrs()? {
        let left = deadline.saturating_duration_since(Instant::now()).min(CONNECT);
        // `connect_timeout` rejects a timeout of zero.
        match TcpStream::connect_timeout(&place, left.max(Duration::from_millis(1))) {
            // If no process listens on an ephemeral port of this host, a connection may connect to
            // itself.
            Ok(stream) if stream.local_addr().ok() == stream.peer_addr().ok() => {
                error = std::io::ErrorKind::ConnectionRefused.into();
            }
            Ok(stream) => return Ok(stream),
            Err(refused) => error = refused,
        }
    }
    Err(error)
}
