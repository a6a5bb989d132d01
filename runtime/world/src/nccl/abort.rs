//! How communicators are given up.

use super::functions::Handle;
use super::{Communicator, Library, NcclResult};
use std::sync::Arc;

/// Aborts the communicators of several ranks of this process at once; one after the other may wait for ever for those that
/// are still to come (NVIDIA/nccl#1013). The threads that have begun something with them must not have ended.
///
/// It waits for NCCL's own threads, which end soon after. Its kernels end at some time.
///
/// # Errors
/// The first [`WorldError::Nccl`](crate::WorldError::Nccl); all communicators are gone all the same.
pub fn abort_all(mut communicators: Vec<Communicator>) -> NcclResult<()> {
    let mut outcome = Ok(());
    while let Some(first) = communicators.first() {
        let library = Arc::clone(first.library());
        let of_it = |communicator: &mut Communicator| Arc::ptr_eq(communicator.library(), &library);
        let mut group: Vec<_> = communicators.extract_if(.., of_it).collect();
        let handles: Vec<_> = group.iter_mut().map(Communicator::take).collect();
        outcome = outcome.and(abort_in_one_group(&library, &handles));
    }
    outcome
}

/// Aborts what handles stand for, which are not to be used again.
#[allow(unsafe_code, reason = "calls of the C library")]
pub(super) fn abort_in_one_group(library: &Library, handles: &[Handle]) -> NcclResult<()> {
    let (functions, doing) = (&library.functions, "giving up");
    // SAFETY: there is no precondition.
    let started = library.done(doing, unsafe { (functions.group_start)() });
    let has_started = started.is_ok();
    let mut outcome = started;
    for handle in handles {
        // SAFETY: the handle is live, and is not used again.
        let code = unsafe { (functions.abort)(*handle) };
        outcome = outcome.and(library.begun(doing, code).map(|_| ()));
    }
    if has_started {
        // SAFETY: this thread has begun a group.
        let code = unsafe { (functions.group_end)() };
        outcome = outcome.and(library.begun(doing, code).map(|_| ()));
    }
    outcome
}
