//! Counts what is done for a schedule, in tests alone: what is looked at once for each of many ranks, steps and moves must not
//! be looked at once for each two of them.

#[cfg(test)]
thread_local! {
    static DONE: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// So many steps of a loop.
#[inline]
pub(super) fn work(_steps: usize) {
    #[cfg(test)]
    DONE.set(DONE.get() + _steps);
}

/// How many steps there were since this was last asked.
#[cfg(test)]
pub(super) fn done() -> usize {
    DONE.take()
}
