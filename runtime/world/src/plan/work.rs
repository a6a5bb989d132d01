//! Counter of loop steps, for tests. The tests check that planning visits each rank, step and move
//! once, and not each pair of them.

#[cfg(test)]
thread_local! {
    static DONE: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts steps of a loop.
#[inline]
pub(super) fn work(_steps: usize) {
    #[cfg(test)]
    DONE.set(DONE.get() + _steps);
}

/// Returns the number of steps since the last call.
#[cfg(test)]
pub(super) fn done() -> usize {
    DONE.take()
}
