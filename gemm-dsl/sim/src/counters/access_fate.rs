//! Fate of an access of the CUDA text in the machine code: determined by `sass`, used by `traffic`.

/// Effect of an access of the text on the profiler's counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessFate {
    /// The access stays as written.
    Own,
    /// The first of several accesses merged into one of this many bytes per lane.
    First(u32),
    /// The access is eliminated: another access loads the data too, or no code uses it.
    Gone,
}
