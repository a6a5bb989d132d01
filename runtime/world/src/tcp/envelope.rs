//! Envelope of every rendezvous message: sender, protocol version and length.

use std::io::{Error, ErrorKind, Read, Result};

/// Protocol version. Increment it with any change of a message, during or after the rendezvous. The
/// envelope and the beginning of a hello never change, so that ranks of different versions can
/// report each other's version.
pub(super) const PROTOCOL: u32 = 1;

/// Size of an envelope in bytes.
pub(super) const ENVELOPE: usize = 16;

/// Sender of a rendezvous message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    /// Rank that arrives at the rendezvous.
    Guest,
    /// Rank 0, which answers the others.
    Host,
}

impl Speaker {
    /// First bytes of the sender's envelope.
    const fn magic(self) -> &'static [u8; 8] {
        match self {
            Self::Guest => b"GEMMrank",
            Self::Host => b"GEMMhost",
        }
    }

    /// Wraps a body in an envelope.
    pub(super) fn seal(self, body: &[u8]) -> Result<Vec<u8>> {
        let length = u32::try_from(body.len()).map_err(|_| Error::from(ErrorKind::InvalidInput))?;
        let mut bytes = self.magic().to_vec();
        bytes.extend_from_slice(&PROTOCOL.to_le_bytes());
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(body);
        Ok(bytes)
    }

    /// Returns true if the bytes received so far may belong to this sender.
    pub(super) fn may_be(self, bytes: &[u8]) -> bool {
        bytes.iter().zip(self.magic()).all(|(byte, magic)| byte == magic)
    }

    /// Returns the protocol and length of an envelope, or `None` if the envelope is not from this
    /// sender.
    pub(super) fn open(self, envelope: &[u8; ENVELOPE]) -> Option<(u32, usize)> {
        let (protocol, length) = envelope.strip_prefix(self.magic())?.split_first_chunk::<4>()?;
        let (length, _) = length.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        Some((u32::from_le_bytes(*protocol), length))
    }
}

/// Reads exactly `length` bytes. Memory grows with the received bytes, not with `length`.
pub(super) fn read_exactly(from: &mut impl Read, length: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length { Ok(bytes) } else { Err(ErrorKind::UnexpectedEof.into()) }
}
