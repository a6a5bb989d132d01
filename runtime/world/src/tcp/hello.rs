//! Facts that each rank announces on arrival, and their comparison.

use super::envelope::{ENVELOPE, PROTOCOL, Speaker};
use super::fault::{RANKS, RendezvousFault};
use super::job::Job;
use crate::codec::{Decoder, put_bytes, put_list, put_number};
use crate::error::{LossReason, WorldError};
use std::collections::HashMap;
use std::io;

/// Maximum size of a hello in bytes.
pub(super) const HELLO_LIMIT: usize = 1 << 20;

/// Name of the fact by which the ranks compare their crate version.
const VERSION: &str = "the version of gemm-runtime";

/// Version of this crate, with the protocol version.
fn version() -> String {
    format!("{} (protocol {PROTOCOL})", env!("CARGO_PKG_VERSION"))
}

/// Fact that a rank announces about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fact {
    what: String,
    value: String,
    rule: Rule,
}

/// Condition on the values of a fact on all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// No condition: the value is only sent to all ranks.
    Noted,
    /// All values must be equal. Contains the remedy for values that differ.
    Same(&'static str),
    /// All values must differ. Contains the remedy for equal values.
    #[cfg_attr(
        not(any(test, feature = "nccl")),
        allow(dead_code, reason = "NCCL alone asks for it")
    )]
    Distinct(&'static str),
}

impl Fact {
    /// Creates a fact that must be equal on all ranks. Otherwise all ranks return
    /// [`WorldError::Mismatch`] with `what`, such as `the version of NCCL`.
    pub(crate) fn same(what: &str, value: impl Into<String>, remedy: &'static str) -> Self {
        Self { what: what.to_owned(), value: value.into(), rule: Rule::Same(remedy) }
    }

    /// Creates a fact that must differ on all ranks. Otherwise all ranks return
    /// [`WorldError::Shared`] with `what`, such as `GPU`.
    #[cfg_attr(
        not(any(test, feature = "nccl")),
        allow(dead_code, reason = "NCCL alone asks for it")
    )]
    pub(crate) fn distinct(what: &str, value: impl Into<String>, remedy: &'static str) -> Self {
        Self { what: what.to_owned(), value: value.into(), rule: Rule::Distinct(remedy) }
    }

    /// Creates a fact that is only sent to all ranks.
    pub(crate) fn noted(what: &str, value: impl Into<String>) -> Self {
        Self { what: what.to_owned(), value: value.into(), rule: Rule::Noted }
    }
}

/// Announcement of an arriving rank. The crate version is always added.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hello {
    /// Facts about the rank, at most 1 MiB in total.
    pub(crate) facts: Vec<Fact>,
    /// Data that rank 0 sends to all ranks, such as an id of NCCL. The payload of other ranks is
    /// ignored.
    pub(crate) payload: Vec<u8>,
    /// Reason why the rank cannot take part. All ranks then fail with this reason.
    pub(crate) failure: Option<String>,
}

impl Hello {
    /// Returns the remedy for a conflict over a fact.
    pub(super) fn remedy(&self, what: &str) -> &'static str {
        let fact = self.facts.iter().find(|fact| fact.what == what);
        match fact.map(|fact| fact.rule) {
            Some(Rule::Same(remedy) | Rule::Distinct(remedy)) => remedy,
            Some(Rule::Noted) | None => {
                "All ranks have to be started alike, by the same build of the same program"
            }
        }
    }
}

impl RendezvousFault {
    /// Converts the fault to a user's error.
    pub(super) fn error(self, address: &str, hello: &Hello) -> WorldError {
        match self {
            Self::Mismatch { what, rank, has, other, others } => {
                let remedy = match what.as_str() {
                    RANKS => "Start all of them with the same WORLD_SIZE, and only once",
                    what => hello.remedy(what),
                };
                WorldError::Mismatch { what, rank, has, other, others, remedy }
            }
            Self::Shared { what, value, rank, other } => {
                let remedy = hello.remedy(&what);
                WorldError::Shared { what, value, rank, other, remedy }
            }
            Self::Failed { rank, text } => WorldError::RankLost {
                rank,
                doing: "meeting the others".to_owned(),
                why: LossReason::Failed(text),
            },
            Self::Rendezvous { reason } => {
                WorldError::Rendezvous { address: address.to_owned(), reason }
            }
        }
    }
}

/// Facts of all ranks, after the rendezvous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RendezvousOutcome {
    /// Facts of each rank, by rank.
    pub(super) said: Vec<Vec<PeerFact>>,
    /// Data that rank 0 sends to all ranks.
    pub(crate) payload: Vec<u8>,
}

impl RendezvousOutcome {
    /// Returns the value of a rank's fact.
    pub(crate) fn value(&self, rank: usize, what: &str) -> Option<&str> {
        let said = self.said.get(rank)?.iter().find(|said| said.what == what)?;
        Some(&said.value)
    }
}

/// Fact in the form that is sent to other ranks, without its remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PeerFact {
    pub(super) what: String,
    pub(super) value: String,
    pub(super) rule: PeerFactRule,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerFactRule {
    Noted,
    Same,
    Distinct,
}

impl PeerFact {
    pub(super) fn put(&self, to: &mut Vec<u8>) {
        put_bytes(to, self.what.as_bytes());
        put_bytes(to, self.value.as_bytes());
        let rule = match self.rule {
            PeerFactRule::Noted => 0,
            PeerFactRule::Same => 1,
            PeerFactRule::Distinct => 2,
        };
        put_number(to, rule);
    }

    pub(super) fn get(from: &mut Decoder<'_>) -> Option<Self> {
        let (what, value) = (from.text()?, from.text()?);
        let rule = match from.number()? {
            0 => PeerFactRule::Noted,
            1 => PeerFactRule::Same,
            2 => PeerFactRule::Distinct,
            _ => return None,
        };
        Some(Self { what, value, rule })
    }
}

/// Identity and facts of an arriving process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Greeting {
    pub(super) token: String,
    pub(super) version: String,
    pub(super) rank: usize,
    pub(super) ranks: usize,
    /// Facts of the process. If it uses another protocol, only its version.
    pub(super) said: Vec<PeerFact>,
    pub(super) failure: Option<String>,
}

impl Greeting {
    /// Creates the greeting of a rank of a job.
    pub(super) fn new(job: &Job, hello: &Hello) -> Self {
        let fact = |fact: &Fact| {
            let rule = match fact.rule {
                Rule::Noted => PeerFactRule::Noted,
                Rule::Same(_) => PeerFactRule::Same,
                Rule::Distinct(_) => PeerFactRule::Distinct,
            };
            PeerFact { what: fact.what.clone(), value: fact.value.clone(), rule }
        };
        Self {
            token: job.token.clone(),
            version: version(),
            rank: job.rank,
            ranks: job.ranks,
            said: std::iter::once(version_said(version()))
                .chain(hello.facts.iter().map(fact))
                .collect(),
            failure: hello.failure.clone(),
        }
    }

    /// Encodes the greeting, in an envelope.
    ///
    /// # Errors
    /// Returns a message if the greeting is too long.
    pub(super) fn encode(&self) -> Result<Vec<u8>, String> {
        let mut body = Vec::new();
        // These four fields come first in every protocol version.
        put_bytes(&mut body, self.token.as_bytes());
        put_bytes(&mut body, self.version.as_bytes());
        put_number(&mut body, self.rank as u64);
        put_number(&mut body, self.ranks as u64);
        put_list(&mut body, &self.said, |to, said| said.put(to));
        put_list(&mut body, self.failure.as_slice(), |to, text| put_bytes(to, text.as_bytes()));
        if body.len() > HELLO_LIMIT {
            return Err(format!(
                "the greeting of this rank takes {} bytes, more than {HELLO_LIMIT}",
                body.len()
            ));
        }
        Speaker::Guest.seal(&body).map_err(|error| error.to_string())
    }

    /// Decodes the body of an envelope of any protocol version.
    pub(super) fn decode(protocol: u32, body: &[u8]) -> Option<Self> {
        let mut decoder = Decoder::new(body);
        let (token, version) = (decoder.text()?, decoder.text()?);
        let (rank, ranks) = (decoder.count()?, decoder.count()?);
        if protocol != PROTOCOL {
            let said = vec![version_said(version.clone())];
            return Some(Self { token, version, rank, ranks, said, failure: None });
        }
        let said = decoder.list(PeerFact::get)?;
        let failure = decoder.list(Decoder::text)?.pop();
        decoder.end()?;
        Some(Self { token, version, rank, ranks, said, failure })
    }
}

fn version_said(version: String) -> PeerFact {
    PeerFact { what: VERSION.to_owned(), value: version, rule: PeerFactRule::Same }
}

/// Received bytes of a hello.
#[derive(Debug, Default)]
pub(super) struct Incoming(Vec<u8>);

impl Incoming {
    /// Reads available bytes. Returns the greeting once it is complete. `from` must not block.
    ///
    /// # Errors
    /// Returns the errors of `from`, [`io::ErrorKind::InvalidData`] for an invalid hello, and
    /// [`io::ErrorKind::UnexpectedEof`] if the greeting ends early.
    pub(super) fn read(&mut self, from: &mut impl io::Read) -> io::Result<Greeting> {
        loop {
            let (protocol, length) = match self.0.first_chunk::<ENVELOPE>() {
                None => (PROTOCOL, 0),
                Some(envelope) => {
                    let opened =
                        Speaker::Guest.open(envelope).filter(|(_, length)| *length <= HELLO_LIMIT);
                    opened.ok_or(io::ErrorKind::InvalidData)?
                }
            };
            let missing = (ENVELOPE + length).saturating_sub(self.0.len());
            if missing == 0 {
                return Greeting::decode(protocol, &self.0[ENVELOPE..])
                    .ok_or(io::ErrorKind::InvalidData.into());
            }
            let mut buffer = [0; 4096];
            let room = missing.min(buffer.len());
            match from.read(&mut buffer[..room]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => self.0.extend_from_slice(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if !Speaker::Guest.may_be(&self.0) {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
    }
}

/// Compares the facts of all ranks. Returns a rank's failure if there is one, otherwise the first
/// fact whose condition is violated, with the lowest ranks that violate it.
pub(super) fn compare(
    said: &[Vec<PeerFact>],
    failures: &[Option<String>],
) -> Option<RendezvousFault> {
    for (rank, failure) in failures.iter().enumerate() {
        if let Some(text) = failure {
            return Some(RendezvousFault::Failed { rank, text: text.clone() });
        }
    }
    let first = said.first()?;
    let value = |rank: &[PeerFact], what: &str| {
        rank.iter().find(|said| said.what == what).map(|said| said.value.clone())
    };
    // Facts of rank 0 come first, then facts that only other ranks have.
    for fact in said.iter().flatten().filter(|fact| fact.rule == PeerFactRule::Same) {
        let ours = value(first, &fact.what);
        if let Some(rank) = said.iter().position(|other| value(other, &fact.what) != ours) {
            let nothing = || "nothing".to_owned();
            return Some(RendezvousFault::Mismatch {
                what: fact.what.clone(),
                rank,
                has: value(&said[rank], &fact.what).unwrap_or_else(nothing),
                other: 0,
                others: ours.unwrap_or_else(nothing),
            });
        }
    }
    let mut seen = HashMap::new();
    for (rank, facts) in said.iter().enumerate() {
        for fact in facts.iter().filter(|fact| fact.rule == PeerFactRule::Distinct) {
            let other = *seen.entry((&fact.what, &fact.value)).or_insert(rank);
            if other != rank {
                let (what, value) = (fact.what.clone(), fact.value.clone());
                return Some(RendezvousFault::Shared { what, value, rank, other });
            }
        }
    }
    None
}

/// Rendezvous of a job with a single rank.
///
/// # Errors
/// [`WorldError::RankLost`] if the rank reports a failure.
pub(super) fn alone(hello: &Hello) -> Result<RendezvousOutcome, WorldError> {
    let job = Job {
        rank: 0,
        ranks: 1,
        local_rank: None,
        address: Default::default(),
        token: String::new(),
    };
    let greeting = Greeting::new(&job, hello);
    let said = vec![greeting.said];
    match compare(&said, &[greeting.failure]) {
        Some(fault) => Err(fault.error("", hello)),
        None => Ok(RendezvousOutcome { said, payload: hello.payload.clone() }),
    }
}
