//! Activities of a communicator. A thread may have one activity in flight.

use super::NcclResult;
use super::functions::SUCCESS;
use crate::WorldError;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

thread_local! {
    /// In-flight flag of the last activity of this thread, valid as long as the communicator of the
    /// activity exists.
    static BEGUN: RefCell<Weak<AtomicBool>> = const { RefCell::new(Weak::new()) };
}

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

    /// Error for an activity that was not begun, because the requirement `need` is violated.
    pub(super) fn refused(self, need: String) -> WorldError {
        WorldError::NcclRefused { doing: self.text().to_owned(), need }
    }

    /// Error for an impossible state that NCCL reports as success.
    pub(super) fn odd(self, text: String) -> WorldError {
        WorldError::Nccl { doing: self.text().to_owned(), code: SUCCESS, text }
    }

    /// Checks that this thread may begin the activity. Before 2.27, NCCL keeps the state of a group
    /// in flight in the thread that began it (`ncclGroupJobMain` in `src/group.cc`). A second group
    /// would overwrite this state.
    pub(super) fn claim(self) -> NcclResult<()> {
        let begun = BEGUN.try_with(|begun| begun.borrow().upgrade());
        let is_busy = |begun: Arc<AtomicBool>| begun.load(Ordering::Relaxed);
        if begun.is_ok_and(|begun| begun.is_some_and(is_busy)) {
            let need = "the operation that this thread began with another communicator must be \
                        settled or aborted first";
            return Err(self.refused(need.to_owned()));
        }
        Ok(())
    }
}

/// Records the activity that this thread has begun.
pub(super) fn note(in_flight: &Arc<AtomicBool>) {
    // The access fails only in a thread that is ending, which will begin no other activity.
    _ = BEGUN.try_with(|begun| begun.replace(Arc::downgrade(in_flight)));
}
