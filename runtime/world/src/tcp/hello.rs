//! What a rank says of itself when it comes, and how that is compared.

use super::envelope::{ENVELOPE, PROTOCOL, Speaker};
use super::fault::{RANKS, RendezvousFault};
use super::job::Job;
use crate::codec::{Decoder, put_bytes, put_list, put_number};
use crate::error::{LossReason, WorldError};
use std::collections::HashMap;
use std::io;

/// The most that a hello may take.
pub(super) const HELLO_LIMIT: usize = 1 << 20;

/// What the version of this crate is compared under.
const VERSION: &str = "the version of gemm-runtime";

/// This version, with what it says it in.
fn version() -> String {
    format!("{} (protocol {PROTOCOL})", env!("CARGO_PKG_VERSION"))
}

/// Something that a rank says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fact {
    what: String,
    value: String,
    rule: Rule,
}

/// What must hold of the values that ranks have for a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Nothing.
    Noted,
    /// They are the same. What to do where they are not.
    Same(&'static str),
    /// No two are the same. What to do where some are.
    #[cfg_attr(
        not(any(test, feature = "nccl")),
        allow(dead_code, reason = "NCCL alone asks for it")
    )]
    Distinct(&'static str),
}

impl Fact {
    /// One that is the same on all ranks, or there is no world: a [`WorldError::Mismatch`] over `what`, as in `the version
    /// of NCCL`.
    pub(crate) fn same(what: &str, value: impl Into<String>, remedy: &'static str) -> Self {
        Self { what: what.to_owned(), value: value.into(), rule: Rule::Same(remedy) }
    }

    /// One that no two ranks have in common, or there is no world: [`WorldError::Shared`] of `what`, as in `GPU`.
    #[cfg_attr(
        not(any(test, feature = "nccl")),
        allow(dead_code, reason = "NCCL alone asks for it")
    )]
    pub(crate) fn distinct(what: &str, value: impl Into<String>, remedy: &'static str) -> Self {
        Self { what: what.to_owned(), value: value.into(), rule: Rule::Distinct(remedy) }
    }

    /// One that all ranks are told.
    pub(crate) fn noted(what: &str, value: impl Into<String>) -> Self {
        Self { what: what.to_owned(), value: value.into(), rule: Rule::Noted }
    }
}

/// What a rank comes with. The version of this crate is compared in any case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hello {
    /// What it says of itself: at most a MiB in all.
    pub(crate) facts: Vec<Fact>,
    /// What rank 0 has for all, an identifier of NCCL. What others have here is not sent.
    pub(crate) payload: Vec<u8>,
    /// Why it cannot take part, if so: then there is no world, and all are told this.
    pub(crate) failure: Option<String>,
}

impl Hello {
    /// What to do where ranks are at odds over something.
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
    /// As the error of a rank.
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

/// What ranks have said to one another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RendezvousOutcome {
    /// What each rank has said of itself.
    pub(super) said: Vec<Vec<PeerFact>>,
    /// What rank 0 has for all.
    pub(crate) payload: Vec<u8>,
}

impl RendezvousOutcome {
    /// What a rank has said.
    pub(crate) fn value(&self, rank: usize, what: &str) -> Option<&str> {
        let said = self.said.get(rank)?.iter().find(|said| said.what == what)?;
        Some(&said.value)
    }
}

/// A fact as others hear of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PeerFact {
    pub(super) what: String,
    pub(super) value: String,
    pub(super) rule: PeerFactRule,
}

/// A rule as others hear of it.
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

/// Who somebody says that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Greeting {
    pub(super) token: String,
    pub(super) version: String,
    pub(super) rank: usize,
    pub(super) ranks: usize,
    /// What it says of itself: only the version where it speaks another protocol.
    pub(super) said: Vec<PeerFact>,
    pub(super) failure: Option<String>,
}

impl Greeting {
    /// What a rank of a job says.
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

    /// As bytes, in an envelope.
    ///
    /// # Errors
    /// What is wrong with it where it is too long.
    pub(super) fn encode(&self) -> Result<Vec<u8>, String> {
        let mut body = Vec::new();
        // These four come first in every protocol.
        put_bytes(&mut body, self.token.as_bytes());
        put_bytes(&mut body, self.version.as_bytes());
        put_number(&mut body, self.rank as u64);
        put_number(&mut body, self.ranks as u64);
        put_list(&mut body, &self.said, |to, said| said.put(to));
        put_list(&mut body, self.failure.as_slice(), |to, text| put_bytes(to, text.as_bytes()));
        if body.len() > HELLO_LIMIT {
            return Err(format!(
                "what this rank says of itself takes {} bytes, of {HELLO_LIMIT}",
                body.len()
            ));
        }
        Speaker::Guest.seal(&body).map_err(|error| error.to_string())
    }

    /// From what was in an envelope of some protocol.
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

/// What has come of a hello.
#[derive(Debug, Default)]
pub(super) struct Incoming(Vec<u8>);

impl Incoming {
    /// Reads what there is: the greeting, when it is whole. `read` fills what it is given as far as it can.
    ///
    /// # Errors
    /// Those of `read`, [`io::ErrorKind::InvalidData`] of what cannot be a hello, and [`io::ErrorKind::UnexpectedEof`]
    /// where it ends before its end.
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

/// What is wrong with what ranks have said: that one has failed, or else the first fact of the lowest rank that breaks a
/// rule of its own, with the lowest ranks that it concerns.
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
    // Those of rank 0 first, then those that only others have.
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

/// The meeting of a rank that is alone.
///
/// # Errors
/// [`WorldError::RankLost`] where it says that it has failed.
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
