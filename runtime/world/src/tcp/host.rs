//! Rendezvous on rank 0's side.
//!
//! A single thread polls all sockets without blocking, until all ranks are present or time is up. A
//! silent or slow peer therefore does not delay other ranks.

use super::Limits;
use super::answer::Answer;
use super::fault::{RANKS, RendezvousFault};
use super::hello::{Greeting, Hello, Incoming, PeerFact, RendezvousOutcome, compare};
use super::job::Job;
use super::link::Start;
use crate::WorldError;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const ROUND: Duration = Duration::from_millis(5);

/// Interval between checks that waiting ranks are still connected.
const LOOK: Duration = Duration::from_millis(100);

/// Number of unidentified connections that are kept in addition to the number of ranks. A further
/// connection replaces the oldest.
const STRANGERS: usize = 64;

/// Meets all ranks. Returns a connection to each of them, and the facts of all.
///
/// # Errors
/// Same as [`meet`](super::meet). Rank 0 sends the error to every arrived rank.
pub(super) fn host(
    listener: TcpListener,
    job: &Job,
    hello: &Hello,
    limits: &Limits,
    deadline: Instant,
) -> Result<(Vec<Start>, RendezvousOutcome), WorldError> {
    let address = job.address.to_string();
    let refused = |reason: String| WorldError::Rendezvous { address: address.clone(), reason };
    let own = Greeting::new(job, hello);
    // The limit for the greetings of other ranks also applies to rank 0.
    own.encode().map_err(refused)?;
    let nonblocking = listener.set_nonblocking(true);
    nonblocking.map_err(|error| refused(format!("rank 0 cannot listen: {error}")))?;
    let mut rendezvous = Rendezvous {
        job,
        listener,
        deadline,
        seats: (1..job.ranks).map(|_| None).collect(),
        strangers: Vec::new(),
        told: vec![false; job.ranks],
        fault: None,
    };
    let fault = match rendezvous.wait(limits) {
        None => {
            let (said, failures) = rendezvous.said(own);
            match compare(&said, &failures) {
                None => {
                    let met = RendezvousOutcome { said, payload: hello.payload.clone() };
                    let welcome = match Answer::Welcome(met.clone()).encode() {
                        Ok(welcome) => welcome,
                        Err(_) => {
                            let reason = "the messages of the ranks are too long".to_owned();
                            let fault = rendezvous.tell(RendezvousFault::Rendezvous { reason });
                            return Err(fault.error(&address, hello));
                        }
                    };
                    let starts = rendezvous.starts(&welcome.into());
                    return Ok((starts.map_err(|error| refused(error.to_string()))?, met));
                }
                Some(fault) => {
                    rendezvous.tell(fault.clone());
                    fault
                }
            }
        }
        Some(fault) => fault,
    };
    Err(fault.error(&address, hello))
}

struct Rendezvous<'a> {
    job: &'a Job,
    listener: TcpListener,
    deadline: Instant,
    /// Arrived ranks, from rank 1 on.
    seats: Vec<Option<Guest>>,
    strangers: Vec<UnknownPeer>,
    /// True for each rank to which the fault was sent.
    told: Vec<bool>,
    fault: Option<RendezvousFault>,
}

/// Rank that has arrived and waits.
struct Guest {
    stream: TcpStream,
    from: SocketAddr,
    said: Vec<PeerFact>,
    failure: Option<String>,
}

/// Connection that has not identified itself yet.
struct UnknownPeer {
    stream: TcpStream,
    from: SocketAddr,
    incoming: Incoming,
}

/// Sends an answer to a waiting rank. The few bytes of the answer fit in the socket's buffer, so a
/// failure means that the rank is gone.
fn answer(mut stream: &TcpStream, answer: &Answer) -> bool {
    answer.encode().and_then(|bytes| stream.write_all(&bytes)).is_ok()
}

/// Returns true if a waiting rank is still connected. A waiting rank sends nothing, so any readable
/// byte or end of the connection means that it is not.
fn is_there(stream: &TcpStream) -> bool {
    matches!(stream.peek(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

impl Rendezvous<'_> {
    /// Waits until all ranks are present and returns `None`, or returns a fault. After a fault,
    /// still answers late ranks for some time, so that they need not wait for their own time limit.
    fn wait(&mut self, limits: &Limits) -> Option<RendezvousFault> {
        let began = Instant::now();
        let mut looked = began;
        let mut spoke = began;
        let mut until = self.deadline;
        loop {
            self.accept();
            self.hear();
            let now = Instant::now();
            if let Some(fault) = &self.fault {
                until = until.min(now + limits.rendezvous / 10);
                if now >= until || self.told.iter().skip(1).all(|told| *told) {
                    return Some(fault.clone());
                }
            } else {
                let all = self.seats.iter().all(Option::is_some);
                if all || now.duration_since(looked) >= LOOK {
                    looked = now;
                    let leave = |seat: &mut Option<Guest>| {
                        _ = seat.take_if(|guest| !is_there(&guest.stream));
                    };
                    self.seats.iter_mut().for_each(leave);
                }
                if self.seats.iter().all(Option::is_some) {
                    return None;
                }
                if now >= self.deadline {
                    let reason = format!(
                        "{} did not arrive within {:.1} s",
                        self.missing(),
                        limits.rendezvous.as_secs_f64()
                    );
                    return Some(self.tell(RendezvousFault::Rendezvous { reason }));
                }
                if now.duration_since(spoke) >= limits.heartbeat {
                    spoke = now;
                    let wait = Answer::Wait(self.missing());
                    for seat in &mut self.seats {
                        _ = seat.take_if(|guest| !answer(&guest.stream, &wait));
                    }
                }
            }
            thread::sleep(ROUND);
        }
    }

    fn accept(&mut self) {
        while let Ok((stream, from)) = self.listener.accept() {
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            if self.strangers.len() >= self.job.ranks + STRANGERS {
                self.strangers.remove(0);
            }
            let incoming = Incoming::default();
            self.strangers.push(UnknownPeer { stream, from, incoming });
        }
    }

    /// Reads from connections that have not identified themselves.
    fn hear(&mut self) {
        for mut stranger in std::mem::take(&mut self.strangers) {
            match stranger.incoming.read(&mut stranger.stream) {
                Ok(greeting) => self.judge(stranger.stream, stranger.from, greeting),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.strangers.push(stranger)
                }
                // The peer is not a rank, so its connection is dropped.
                Err(_) => {}
            }
        }
    }

    /// Handles the greeting of a process.
    fn judge(&mut self, stream: TcpStream, from: SocketAddr, greeting: Greeting) {
        let Greeting { rank, ranks, .. } = greeting;
        if greeting.token != self.job.token {
            let away = format!(
                "the ranks of job \"{}\" meet there, but this rank is of job \"{}\"",
                self.job.token, greeting.token
            );
            answer(&stream, &Answer::Away(away));
            return;
        }
        if let Some(fault) = &self.fault {
            answer(&stream, &Answer::Failed(fault.clone()));
            if let Some(told) = self.told.get_mut(rank) {
                *told = true;
            }
            return;
        }
        let fault = if ranks != self.job.ranks {
            let (has, others) = (ranks.to_string(), self.job.ranks.to_string());
            RendezvousFault::Mismatch { what: RANKS.to_owned(), rank, has, other: 0, others }
        } else if rank == 0 {
            RendezvousFault::Rendezvous {
                reason: format!(
                    "two processes are rank 0: the one that listens, and one at {from}"
                ),
            }
        } else if let Some(seat) = self.seats.get_mut(rank - 1) {
            match seat {
                Some(guest) if is_there(&guest.stream) => {
                    let reason =
                        format!("two processes are rank {rank}, at {} and at {from}", guest.from);
                    RendezvousFault::Rendezvous { reason }
                }
                // The earlier process has disconnected, and may be this process before a new
                // attempt.
                _ => {
                    let Greeting { said, failure, .. } = greeting;
                    let guest = Guest { stream, from, said, failure };
                    *seat = Some(guest);
                    let wait = Answer::Wait(self.missing());
                    _ = self.seats[rank - 1].take_if(|guest| !answer(&guest.stream, &wait));
                    return;
                }
            }
        } else {
            RendezvousFault::Rendezvous {
                reason: format!("a process at {from} is rank {rank}, of {ranks}"),
            }
        };
        answer(&stream, &Answer::Failed(fault.clone()));
        self.tell(fault);
    }

    /// Sends the fault to all waiting ranks.
    fn tell(&mut self, fault: RendezvousFault) -> RendezvousFault {
        let failed = Answer::Failed(fault.clone());
        for (place, seat) in self.seats.iter_mut().enumerate() {
            if let Some(guest) = seat.take() {
                self.told[place + 1] |= answer(&guest.stream, &failed);
            }
        }
        self.fault = Some(fault.clone());
        fault
    }

    /// Lists the missing ranks as text: `rank 3`, `ranks 1 to 3, 7`, `nobody`.
    fn missing(&self) -> String {
        let missing: Vec<usize> =
            (1..self.job.ranks).filter(|rank| self.seats[rank - 1].is_none()).collect();
        if missing.is_empty() {
            return "nobody".to_owned();
        }
        let runs = missing.chunk_by(|one, next| one + 1 == *next);
        let run = |run: &[usize]| match run {
            [first, .., last] => format!("{first} to {last}"),
            run => run.iter().map(usize::to_string).collect(),
        };
        let noun = if missing.len() == 1 { "rank" } else { "ranks" };
        format!("{noun} {}", runs.map(run).collect::<Vec<_>>().join(", "))
    }

    /// Returns the facts and failures of all ranks.
    fn said(&self, own: Greeting) -> (Vec<Vec<PeerFact>>, Vec<Option<String>>) {
        let guests =
            self.seats.iter().flatten().map(|guest| (guest.said.clone(), guest.failure.clone()));
        std::iter::once((own.said, own.failure)).chain(guests).unzip()
    }

    /// Returns the connections, each with the welcome as its first bytes to send.
    fn starts(self, welcome: &Arc<[u8]>) -> std::io::Result<Vec<Start>> {
        let guests = self.seats.into_iter().enumerate();
        let start = |(place, seat): (usize, Option<Guest>)| {
            let stream = seat?.stream;
            let blocking = stream.set_nonblocking(false);
            Some(blocking.map(|()| Start { peer: place + 1, stream, first: Arc::clone(welcome) }))
        };
        guests.filter_map(start).collect()
    }
}
