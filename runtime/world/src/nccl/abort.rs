use super::functions::Handle;
use super::{Library, NcclResult};

/// Aborts several communicators in one group. The caller must not use their handles again.
#[allow(unsafe_code, reason = "calls of the C library")]
pub(super) fn abort_in_one_group(library: &Library, handles: &[Handle]) -> NcclResult<()> {
    let (functions, doing) = (&library.functions, "giving up");
    // SAFETY: the function has no precondition.
    let started = library.done(doing, unsafe { (functions.group_start)() });
    let has_started = started.is_ok();
    let mut outcome = started;
    for handle in handles {
        // SAFETY: the handle is live and is not used again.
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
