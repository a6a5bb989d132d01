//! What is moved between ranks.

use super::communicator::Communicator;
use super::doing::Doing;
use super::functions::{BYTES, Functions, Handle, Stream};
use super::{NcclResult, functions::Code};
use std::ffi::{c_int, c_void};

/// One rank's half of a movement of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NcclTransfer {
    /// Bytes of this rank for another one, or for itself.
    Send {
        /// Where they are, on this rank's device.
        at: u64,
        /// How many.
        bytes: usize,
        /// Who is to have them.
        to: usize,
    },
    /// Bytes of another rank, or of this one, for this one.
    Receive {
        /// Where they go, on this rank's device.
        at: u64,
        /// How many: as many as that rank sends.
        bytes: usize,
        /// Who has them.
        from: usize,
    },
}

impl NcclTransfer {
    /// Where it is, how much, the other rank, and whether that one receives.
    fn fields(self) -> (u64, usize, usize, bool) {
        match self {
            Self::Send { at, bytes, to } => (at, bytes, to, true),
            Self::Receive { at, bytes, from } => (at, bytes, from, false),
        }
    }

    fn is_empty(&self) -> bool {
        self.fields().1 == 0
    }
}

#[allow(unsafe_code, reason = "NCCL reads and writes where it is told to")]
impl Communicator {
    /// Puts all parts on a stream, as one operation. What is sent from one rank to another is received in the order of the
    /// parts. Parts of no bytes are left out, on both sides; without any other nothing is called.
    ///
    /// It may return before they are on the stream: [`Communicator::settle`] comes next.
    ///
    /// # Errors
    /// [`NcclRefused`](crate::WorldError::NcclRefused) where a rank is none, an address is 0, what this rank sends
    /// itself is not what it receives, or something that was begun before is not settled;
    /// [`Nccl`](crate::WorldError::Nccl), after which the communicator is good for nothing but to be aborted.
    ///
    /// # Safety
    /// `stream` is a stream of the communicator's device. The bytes of all parts are on that device, those that are received
    /// overlap no other part, and until the stream has come past the exchange nobody writes those that are sent, or reads or
    /// writes those that are received. Where
    /// [`Library::reaches_into_buffers`](super::Library::reaches_into_buffers), they are accessible to the devices of all
    /// ranks of this process.
    pub unsafe fn exchange(&self, stream: u64, parts: &[NcclTransfer]) -> NcclResult<()> {
        let doing = Doing::Exchange;
        self.check(parts).map_err(|need| doing.refused(need))?;
        let calls = parts.iter().copied().filter(|part| !part.is_empty()).map(|part| {
            let (at, bytes, peer, sends) = part.fields();
            let (at, peer) = (at as usize as *mut c_void, peer as c_int);
            move |functions: &Functions, handle: Handle, stream: Stream| -> Code {
                // SAFETY: the caller vouches for addresses and stream, and the peer is a rank of the communicator.
                unsafe {
                    if sends {
                        (functions.send)(at, bytes, BYTES, peer, handle, stream)
                    } else {
                        (functions.receive)(at, bytes, BYTES, peer, handle, stream)
                    }
                }
            }
        });
        self.enqueue(doing, stream, calls)
    }

    /// What NCCL would not find out before it is too late.
    fn check(&self, parts: &[NcclTransfer]) -> Result<(), String> {
        for part in parts {
            let (at, bytes, peer, _) = part.fields();
            self.is_rank(peer)?;
            in_memory(at, bytes)?;
        }
        let own = |sent: bool| {
            let fields = parts.iter().filter(|part| !part.is_empty()).map(|part| part.fields());
            fields.filter_map(move |(_, bytes, peer, sends)| {
                (peer == self.rank() && sends == sent).then_some(bytes)
            })
        };
        if own(true).eq(own(false)) {
            return Ok(());
        }
        Err(format!("what rank {} sends itself has to be what it receives of itself", self.rank()))
    }

    fn is_rank(&self, rank: usize) -> Result<(), String> {
        match self.ranks() {
            ranks if rank < ranks => Ok(()),
            ranks => Err(format!("rank {rank} has to be below {ranks}, the number of ranks")),
        }
    }
}

/// Whether so many bytes can be at an address.
fn in_memory(at: u64, bytes: usize) -> Result<(), String> {
    let ends = usize::try_from(at).is_ok_and(|at| at.checked_add(bytes).is_some());
    if bytes == 0 || (at != 0 && ends) {
        return Ok(());
    }
    Err(format!("{bytes} bytes have to be in memory, and cannot be at {at:#x}"))
}
