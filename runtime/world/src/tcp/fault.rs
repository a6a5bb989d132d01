//! Fault of a rendezvous, which rank 0 sends to all ranks.

use crate::codec::{Decoder, put_bytes, put_number};

/// Name of the fact by which the ranks compare their number of ranks.
pub(super) const RANKS: &str = "the number of ranks";

/// Maximum length of a text in bytes. Longer texts are cut, so that every fault can be sent.
const TEXT: usize = 4096;

/// Reason why no world is created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RendezvousFault {
    /// Ranks disagree on a fact.
    Mismatch { what: String, rank: usize, has: String, other: usize, others: String },
    /// Ranks share a resource of which each rank needs its own.
    Shared { what: String, value: String, rank: usize, other: usize },
    /// A rank reports that it cannot take part.
    Failed { rank: usize, text: String },
    /// The arrived processes are not the ranks of the job.
    Rendezvous { reason: String },
}

impl RendezvousFault {
    pub(super) fn put(&self, to: &mut Vec<u8>) {
        let text = |to: &mut Vec<u8>, text: &str| put_bytes(to, cut(text).as_bytes());
        match self {
            Self::Mismatch { what, rank, has, other, others } => {
                put_number(to, 0);
                text(to, what);
                put_number(to, *rank as u64);
                text(to, has);
                put_number(to, *other as u64);
                text(to, others);
            }
            Self::Shared { what, value, rank, other } => {
                put_number(to, 1);
                text(to, what);
                text(to, value);
                put_number(to, *rank as u64);
                put_number(to, *other as u64);
            }
            Self::Failed { rank, text: with } => {
                put_number(to, 2);
                put_number(to, *rank as u64);
                text(to, with);
            }
            Self::Rendezvous { reason } => {
                put_number(to, 3);
                text(to, reason);
            }
        }
    }

    pub(super) fn get(from: &mut Decoder<'_>) -> Option<Self> {
        Some(match from.number()? {
            0 => Self::Mismatch {
                what: from.text()?,
                rank: from.count()?,
                has: from.text()?,
                other: from.count()?,
                others: from.text()?,
            },
            1 => Self::Shared {
                what: from.text()?,
                value: from.text()?,
                rank: from.count()?,
                other: from.count()?,
            },
            2 => Self::Failed { rank: from.count()?, text: from.text()? },
            3 => Self::Rendezvous { reason: from.text()? },
            _ => return None,
        })
    }
}

/// Returns the beginning of a text, cut at a character boundary.
pub(super) fn cut(text: &str) -> &str {
    let mut end = text.len().min(TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
