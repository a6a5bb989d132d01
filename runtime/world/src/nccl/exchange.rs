//! Exchanges, all-gathers and broadcasts of bytes.

use super::communicator::Communicator;
use super::doing::Doing;
use super::functions::{BYTES, Functions, Handle, Stream};
use super::{NcclResult, functions::Code};
use std::ffi::{c_int, c_void};

/// One rank's half of a transfer of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NcclTransfer {
    /// Sends bytes to a rank, possibly to itself.
    Send {
        /// Address on this rank's device.
        at: u64,
        /// Number of bytes, equal to the receiver's.
        bytes: usize,
        /// Number of the receiving rank.
        to: usize,
    },
    /// Receives bytes from a rank, possibly from itself.
    Receive {
        /// Address on this rank's device.
        at: u64,
        /// Number of bytes, equal to the sender's.
        bytes: usize,
        /// Number of the sending rank.
        from: usize,
    },
}

impl NcclTransfer {
    /// Returns address, number of bytes, the other rank, and true for a send.
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

#[allow(unsafe_code, reason = "NCCL reads and writes at the addresses passed to it")]
impl Communicator {
    /// Enqueues all parts on a stream as one operation. The n-th send from rank r to rank s matches
    /// the n-th receive of s from r. Empty parts are skipped on both sides. If all parts are empty,
    /// NCCL is not called.
    ///
    /// The function may return before the parts are on the stream; call [`Communicator::settle`]
    /// next.
    ///
    /// # Errors
    /// * [`NcclRefused`](crate::WorldError::NcclRefused) if a rank is out of range, an address is
    ///   0, or an earlier activity is not settled.
    /// * [`NcclRefused`](crate::WorldError::NcclRefused) if this rank's sends to itself do not
    ///   match its receives from itself.
    /// * [`Nccl`](crate::WorldError::Nccl) if NCCL fails. The communicator can then only be
    ///   aborted.
    ///
    /// # Safety
    /// * `stream` is a stream of the communicator's device, and the bytes of all parts are on that
    ///   device.
    /// * Received bytes do not overlap any other part.
    /// * Until the stream has completed the exchange, no other access writes sent bytes, and none
    ///   reads or writes received bytes.
    /// * If [`Library::reaches_into_buffers`](super::Library::reaches_into_buffers), the bytes are
    ///   accessible to the devices of all ranks of this process.
    pub unsafe fn exchange(&self, stream: u64, parts: &[NcclTransfer]) -> NcclResult<()> {
        let doing = Doing::Exchange;
        self.check(parts).map_err(|need| doing.refused(need))?;
        let calls = parts.iter().copied().filter(|part| !part.is_empty()).map(|part| {
            let (at, bytes, peer, sends) = part.fields();
            let (at, peer) = (at as usize as *mut c_void, peer as c_int);
            move |functions: &Functions, handle: Handle, stream: Stream| -> Code {
                // SAFETY: the caller ensures that addresses and stream are valid, and the peer is a
                // rank of the communicator.
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

    /// Checks the requirements that NCCL itself would report too late or not at all.
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
        Err(format!(
            "rank {} must receive from itself exactly what it sends to itself",
            self.rank()
        ))
    }

    fn is_rank(&self, rank: usize) -> Result<(), String> {
        match self.ranks() {
            ranks if rank < ranks => Ok(()),
            ranks => Err(format!("rank {rank} has to be below {ranks}, the number of ranks")),
        }
    }
}

/// Checks that `bytes` bytes fit in memory at an address.
fn in_memory(at: u64, bytes: usize) -> Result<(), String> {
    let ends = usize::try_from(at).is_ok_and(|at| at.checked_add(bytes).is_some());
    if bytes == 0 || (at != 0 && ends) {
        return Ok(());
    }
    Err(format!("{bytes} bytes have to be in memory, and cannot be at {at:#x}"))
}
