//! What a communicator is at, and what its thread may begin meanwhile.

use super::NcclResult;
use super::functions::SUCCESS;
use crate::WorldError;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

thread_local! {
    /// Whether what this thread has begun last is in flight; nothing once that communicator is gone.
    static BEGUN: RefCell<Weak<AtomicBool>> = const { RefCell::new(Weak::new()) };
}

/// What a communicator is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    Connect,
    Exchange,
    Finish,
}

impl Doing {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Connect => "connecting the ranks",
            Self::Exchange => "an exchange",
            Self::Finish => "the end of a communicator",
        }
    }

    /// What is not begun, since something is needed.
    pub(super) fn refused(self, need: String) -> WorldError {
        WorldError::NcclRefused { doing: self.text().to_owned(), need }
    }

    /// What NCCL does not call a failure, and what cannot be.
    pub(super) fn odd(self, text: String) -> WorldError {
        WorldError::Nccl { doing: self.text().to_owned(), code: SUCCESS, text }
    }

    /// Whether this thread is free to begin it. Before 2.27 NCCL keeps the state of what a thread has in flight in that
    /// thread (`ncclGroupJobMain` in `src/group.cc`), where a second group would overwrite it.
    pub(super) fn claim(self) -> NcclResult<()> {
        let begun = BEGUN.try_with(|begun| begun.borrow().upgrade());
        let is_busy = |begun: Arc<AtomicBool>| begun.load(Ordering::Relaxed);
        if begun.is_ok_and(|begun| begun.is_some_and(is_busy)) {
            let need = "what this thread has begun with another communicator has to be settled or aborted before";
            return Err(self.refused(need.to_owned()));
        }
        Ok(())
    }
}

/// Notes that this thread has begun what is in flight.
pub(super) fn note(in_flight: &Arc<AtomicBool>) {
    // A thread that is ending begins nothing else.
    _ = BEGUN.try_with(|begun| begun.replace(Arc::downgrade(in_flight)));
}
