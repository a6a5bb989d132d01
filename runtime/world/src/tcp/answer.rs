//! Answers of rank 0 to arriving ranks.

use super::envelope::{ENVELOPE, PROTOCOL, Speaker, read_exactly};
use super::fault::{RendezvousFault, cut};
use super::hello::{PeerFact, RendezvousOutcome};
use crate::codec::{Decoder, put_bytes, put_list, put_number};
use crate::error::LossReason;
use std::io::{self, ErrorKind, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Maximum size of an answer in bytes.
const ANSWER_LIMIT: usize = 1 << 30;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Rank 0 has read the rank's greeting. The rank must wait for these missing ranks.
    Wait(String),
    /// The rank belongs to another job. The text names both jobs.
    Away(String),
    /// The world cannot be created.
    Failed(RendezvousFault),
    /// All ranks are present, with these facts.
    Welcome(RendezvousOutcome),
}

impl Answer {
    /// Encodes the answer, in an envelope.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] if it is too long.
    pub(super) fn encode(&self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        match self {
            Self::Wait(text) => {
                put_number(&mut body, 0);
                put_bytes(&mut body, cut(text).as_bytes());
            }
            Self::Away(text) => {
                put_number(&mut body, 1);
                put_bytes(&mut body, cut(text).as_bytes());
            }
            Self::Failed(fault) => {
                put_number(&mut body, 2);
                fault.put(&mut body);
            }
            Self::Welcome(met) => {
                put_number(&mut body, 3);
                put_list(&mut body, &met.said, |to, said| {
                    put_list(to, said, |to, said| said.put(to))
                });
                put_bytes(&mut body, &met.payload);
            }
        }
        if body.len() > ANSWER_LIMIT {
            return Err(ErrorKind::InvalidInput.into());
        }
        Speaker::Host.seal(&body)
    }

    pub(super) fn decode(body: &[u8]) -> Option<Self> {
        let mut decoder = Decoder::new(body);
        let answer = match decoder.number()? {
            0 => Self::Wait(decoder.text()?),
            1 => Self::Away(decoder.text()?),
            2 => Self::Failed(RendezvousFault::get(&mut decoder)?),
            3 => {
                let said = decoder.list(|rank| rank.list(PeerFact::get))?;
                Self::Welcome(RendezvousOutcome { said, payload: decoder.bytes()?.to_vec() })
            }
            _ => return None,
        };
        decoder.end()?;
        Some(answer)
    }

    /// Reads the next answer, and no byte after the answer.
    ///
    /// # Errors
    /// Returns a description of the bytes or the event that arrived instead of an answer.
    pub(super) fn read(
        stream: &TcpStream,
        silence: Duration,
        deadline: Instant,
    ) -> Result<Self, MissingAnswer> {
        let mut patient = DeadlineReader { stream, silence, deadline };
        let mut envelope = Vec::new();
        let ended = patient.by_ref().take(ENVELOPE as u64).read_to_end(&mut envelope);
        if !Speaker::Host.may_be(&envelope) {
            return Err(MissingAnswer::nonsense(format!(
                "no rank listens there, but something that says \"{}\"",
                envelope.escape_ascii()
            )));
        }
        let ended =
            ended.map_err(|error| MissingAnswer::failed(&error, silence, "there was no answer"))?;
        let opened = envelope.first_chunk().and_then(|envelope| Speaker::Host.open(envelope));
        let Some((protocol, length)) = opened else {
            let when = if ended == 0 { "before it gave an answer" } else { "within an answer" };
            let reason = format!("the connection was closed {when}");
            return Err(MissingAnswer { reason, why: LossReason::Gone });
        };
        if protocol != PROTOCOL {
            return Err(MissingAnswer::nonsense(format!(
                "rank 0 speaks protocol {protocol} and this rank {PROTOCOL}; build all ranks from \
                 the same version"
            )));
        }
        if length > ANSWER_LIMIT {
            return Err(MissingAnswer::nonsense(format!(
                "an answer of {length} bytes was announced, more than {ANSWER_LIMIT}"
            )));
        }
        let body = read_exactly(&mut patient, length as u64);
        let body =
            body.map_err(|error| MissingAnswer::failed(&error, silence, "an answer broke off"))?;
        Self::decode(&body)
            .ok_or_else(|| MissingAnswer::nonsense("the answer cannot be read".to_owned()))
    }
}

/// Failure to receive an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MissingAnswer {
    pub(super) reason: String,
    /// Reason for the loss of rank 0, in case rank 0 had been present.
    pub(super) why: LossReason,
}

impl MissingAnswer {
    fn failed(error: &io::Error, silence: Duration, what: &str) -> Self {
        let why = if is_timeout(error) { LossReason::Late(silence) } else { LossReason::Gone };
        Self { reason: format!("{what}: {}", reason(error)), why }
    }

    fn nonsense(reason: String) -> Self {
        let why = LossReason::Failed(reason.clone());
        Self { reason, why }
    }
}

/// Returns true for a timeout error, whose kind depends on the platform.
pub(super) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Formats an error for use after a colon.
fn reason(error: &io::Error) -> String {
    if is_timeout(error) { "nothing arrived in time".to_owned() } else { error.to_string() }
}

/// Reader that fails at a deadline, or if no byte arrives for some time.
struct DeadlineReader<'a> {
    stream: &'a TcpStream,
    silence: Duration,
    deadline: Instant,
}

impl Read for DeadlineReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now()).min(self.silence);
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(buffer)
    }
}
