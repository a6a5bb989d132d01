//! Frames on a connection after the rendezvous.

use super::envelope::read_exactly;
use crate::channel::{RankLoss, Tag};
use crate::codec::{Decoder, put_bytes, put_number};
use crate::error::LossReason;
use std::io::{ErrorKind, Read, Result, Write};
use std::sync::Arc;
use std::time::Duration;

/// Size of a header in bytes: kind, two ranks, tag, length.
const HEADER: usize = 1 + 4 + 4 + 8 + 8;

/// Maximum size of a notice in bytes.
const NOTICE_LIMIT: u64 = 1 << 20;

/// Unit of transmission on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// Message from one rank to another, possibly forwarded.
    Message { to: usize, from: usize, tag: Tag, bytes: Vec<u8> },
    /// Heartbeat of a connection without other frames.
    Alive,
    /// Heartbeat that names the rank for which its sender has waited for some time. `None` if the
    /// sender has stopped waiting.
    Waits(Option<usize>),
    /// Notice that a rank has left in order.
    Left(usize),
    /// A rank is lost. Rank 0's process sends the first loss to all others. Other processes report
    /// suspected losses to rank 0's process.
    LossReason(RankLoss),
    /// Raw bytes before all other frames. They are only written: the receiver reads them as an
    /// answer.
    First(Arc<[u8]>),
}

impl Frame {
    pub(super) fn write(&self, to: &mut impl Write) -> Result<()> {
        let notice;
        let (kind, ranks, tag, bytes) = match self {
            Self::Message { to, from, tag, bytes } => (0, (*to, *from), tag.0, bytes.as_slice()),
            Self::Alive => (1, (0, 0), 0, [].as_slice()),
            Self::Waits(None) => (4, (0, 0), 0, [].as_slice()),
            Self::Waits(Some(rank)) => (4, (*rank, 1), 0, [].as_slice()),
            Self::Left(rank) => (2, (*rank, 0), 0, [].as_slice()),
            Self::LossReason(broken) => {
                notice = put_lost(&broken.why);
                (3, (broken.rank, 0), 0, notice.as_slice())
            }
            Self::First(bytes) => return to.write_all(bytes),
        };
        let rank = |rank| u32::try_from(rank).map_err(|_| ErrorKind::InvalidInput);
        let mut header = [0; HEADER];
        header[0] = kind;
        header[1..5].copy_from_slice(&rank(ranks.0)?.to_le_bytes());
        header[5..9].copy_from_slice(&rank(ranks.1)?.to_le_bytes());
        header[9..17].copy_from_slice(&tag.to_le_bytes());
        header[17..25].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        to.write_all(&header)?;
        to.write_all(bytes)
    }

    /// Reads a frame. Returns `None` if the connection ends before a frame.
    ///
    /// # Errors
    /// Returns the errors of `from`, [`ErrorKind::InvalidData`] for an invalid frame, and
    /// [`ErrorKind::UnexpectedEof`] if the connection ends within a frame.
    pub(super) fn read(from: &mut impl Read) -> Result<Option<Self>> {
        let mut header = [0; HEADER];
        let read = read_first(from, &mut header)?;
        if read == 0 {
            return Ok(None);
        }
        from.read_exact(&mut header[1..])?;
        let mut decoder = Decoder::new(&header[1..]);
        let numbers = (decoder.number(), decoder.number(), decoder.number());
        let (Some(ranks), Some(tag), Some(length)) = numbers else {
            return Err(ErrorKind::InvalidData.into());
        };
        let [first, second] = [ranks & 0xffff_ffff, ranks >> 32];
        let rank = |rank| usize::try_from(rank).map_err(|_| ErrorKind::InvalidData);
        let frame = match (header[0], length) {
            (0, _) => {
                let bytes = read_exactly(from, length)?;
                Self::Message { to: rank(first)?, from: rank(second)?, tag: Tag(tag), bytes }
            }
            (1, 0) => Self::Alive,
            (2, 0) => Self::Left(rank(first)?),
            (4, 0) => Self::Waits((second != 0).then(|| rank(first)).transpose()?),
            (3, ..=NOTICE_LIMIT) => {
                let why = get_lost(&read_exactly(from, length)?).ok_or(ErrorKind::InvalidData)?;
                Self::LossReason(RankLoss { rank: rank(first)?, why })
            }
            _ => return Err(ErrorKind::InvalidData.into()),
        };
        Ok(Some(frame))
    }
}

/// Reads the first byte, if the connection has not ended.
fn read_first(from: &mut impl Read, header: &mut [u8]) -> Result<usize> {
    loop {
        match from.read(&mut header[..1]) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

fn put_lost(why: &LossReason) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (kind, text) = match why {
        LossReason::Gone => (0, ""),
        LossReason::Late(_) => (1, ""),
        LossReason::Failed(text) => (2, text.as_str()),
        LossReason::Finished => (3, ""),
        LossReason::Deadlock(text) => (4, text.as_str()),
    };
    put_number(&mut bytes, kind);
    let nanoseconds = match why {
        LossReason::Late(time) => u64::try_from(time.as_nanos()).unwrap_or(u64::MAX),
        _ => 0,
    };
    put_number(&mut bytes, nanoseconds);
    put_bytes(&mut bytes, super::fault::cut(text).as_bytes());
    bytes
}

fn get_lost(bytes: &[u8]) -> Option<LossReason> {
    let mut decoder = Decoder::new(bytes);
    let (kind, nanoseconds, text) = (decoder.number()?, decoder.number()?, decoder.text()?);
    decoder.end()?;
    Some(match kind {
        0 => LossReason::Gone,
        1 => LossReason::Late(Duration::from_nanos(nanoseconds)),
        2 => LossReason::Failed(text),
        3 => LossReason::Finished,
        4 => LossReason::Deadlock(text),
        _ => return None,
    })
}
