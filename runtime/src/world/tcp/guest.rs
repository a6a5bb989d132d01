//! The side of a rank that comes to where rank 0 listens.

use super::Limits;
use super::answer::Answer;
use super::hello::{Greeting, Hello, Met};
use super::job::{Address, Job};
use crate::world::WorldError;
use std::io::Write;
use std::net::{TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

/// After how long a rank comes again at first, and at last.
const AGAIN: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(5);

/// How a visit ended.
enum Visit {
    Welcome(TcpStream, Met),
    /// All ranks are told this.
    Failed(WorldError),
    /// To be tried again. What happened.
    Again(String),
    /// The same, where a rank 0 was there.
    Heard(String),
}

/// Comes to rank 0, again and again, until it has answered or the time is over.
///
/// # Errors
/// Those of [`meet`](super::meet).
pub(super) fn join(
    job: &Job,
    hello: &Hello,
    limits: &Limits,
    deadline: Instant,
) -> Result<(TcpStream, Met), WorldError> {
    let refused = |reason| WorldError::Rendezvous { address: job.address.to_string(), reason };
    let greeting = Greeting::new(job, hello).encode().map_err(refused)?;
    let mut pause = AGAIN.0;
    let mut before = String::new();
    loop {
        let (happened, was_there) = match visit(job, hello, &greeting, limits, deadline) {
            Visit::Welcome(stream, met) => return Ok((stream, met)),
            Visit::Failed(error) => return Err(error),
            Visit::Again(happened) => (happened, false),
            Visit::Heard(happened) => (happened, true),
        };
        if Instant::now() + pause >= deadline {
            let time = limits.meeting.as_secs_f64();
            return Err(refused(format!(
                "rank {} did not meet rank 0 in {time:.1} s: {happened}{before}",
                job.rank
            )));
        }
        if was_there {
            before = format!(" (before that, {happened})");
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
    let patience = Some(limits.silence);
    let said = stream.set_write_timeout(patience).and_then(|()| stream.write_all(greeting));
    if let Err(error) = said {
        return Visit::Again(error.to_string());
    }
    // Who is heard has come in time, and is told by rank 0 when its time is over.
    let last = deadline + limits.meeting + limits.silence;
    let mut until = deadline;
    let mut waited_for = None;
    loop {
        match Answer::read(&stream, limits.silence, until) {
            Ok(Answer::Wait(missing)) => {
                until = until.max(Instant::now() + limits.silence).min(last);
                waited_for = Some(missing);
            }
            Ok(Answer::Away(reason)) => return Visit::Heard(reason),
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
            Err(reason) => {
                return match waited_for {
                    Some(missing) => {
                        Visit::Heard(format!("while rank 0 waited for {missing}, {reason}"))
                    }
                    None => Visit::Again(reason),
                };
            }
        }
    }
}

/// A connection to whoever listens at an address.
fn connect(address: &Address, deadline: Instant) -> std::io::Result<TcpStream> {
    let mut error = std::io::Error::other("the host has no address");
    for place in (address.host.as_str(), address.port).to_socket_addrs()? {
        let left = deadline.saturating_duration_since(Instant::now()).min(CONNECT);
        // None at all is no time that a connection may be given.
        match TcpStream::connect_timeout(&place, left.max(Duration::from_millis(1))) {
            // Where nobody listens on a port of this host that connections start from, one may meet itself.
            Ok(stream) if stream.local_addr().ok() == stream.peer_addr().ok() => {
                error = std::io::ErrorKind::ConnectionRefused.into();
            }
            Ok(stream) => return Ok(stream),
            Err(refused) => error = refused,
        }
    }
    Err(error)
}
