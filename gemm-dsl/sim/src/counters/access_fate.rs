//! Fate of an access of the CUDA source in the machine code. `sass` predicts it, and `traffic` uses
//! it.

/// Effect of an access of the CUDA source on the profiler's counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessFate {
    /// The machine code contains the access unchanged.
    Own,
    /// The access is the first of several that are merged into one access of this many bytes per
    /// lane.
    First(u32),
    /// The access is not in the machine code: another access loads the same data, or the data is
    /// not used.
    Gone,
}
