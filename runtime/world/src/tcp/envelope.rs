//! What stands before everything that is said while ranks meet: who speaks, in which protocol, how much.

use std::io::{Error, ErrorKind, Read, Result};

/// The protocol of this version. Whatever changes in what is said while ranks meet, or afterwards, changes it; the
/// envelope itself and the beginning of a hello never do, so that the ranks of all versions can be told of each other.
pub(super) const PROTOCOL: u32 = 1;

/// How many bytes an envelope takes.
pub(super) const ENVELOPE: usize = 16;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    /// A rank that comes.
    Guest,
    /// Rank 0, which answers.
    Host,
}

impl Speaker {
    /// How it begins.
    const fn magic(self) -> &'static [u8; 8] {
        match self {
            Self::Guest => b"GEMMrank",
            Self::Host => b"GEMMhost",
        }
    }

    /// What it says, in an envelope.
    pub(super) fn seal(self, body: &[u8]) -> Result<Vec<u8>> {
        let length = u32::try_from(body.len()).map_err(|_| Error::from(ErrorKind::InvalidInput))?;
        let mut bytes = self.magic().to_vec();
        bytes.extend_from_slice(&PROTOCOL.to_le_bytes());
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(body);
        Ok(bytes)
    }

    /// Whether what has come so far may be what it says.
    pub(super) fn may_be(self, bytes: &[u8]) -> bool {
        bytes.iter().zip(self.magic()).all(|(byte, magic)| byte == magic)
    }

    /// Protocol and length of an envelope; `None` where it is none of this speaker.
    pub(super) fn open(self, envelope: &[u8; ENVELOPE]) -> Option<(u32, usize)> {
        let (protocol, length) = envelope.strip_prefix(self.magic())?.split_first_chunk::<4>()?;
        let (length, _) = length.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        Some((u32::from_le_bytes(*protocol), length))
    }
}

/// So many bytes, with room for what has come and little more.
pub(super) fn read_exactly(from: &mut impl Read, length: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length { Ok(bytes) } else { Err(ErrorKind::UnexpectedEof.into()) }
}
