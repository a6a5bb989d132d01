//! What becomes of an access of the text in the machine code: `sass` decides it, `traffic` counts by it.

/// What the profiler is told of an access of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessFate {
    /// It is as it stands there.
    Own,
    /// It is the first of several, that are made one of so many bytes.
    First(u32),
    /// It is not there: another access brings it too, or nobody needs it.
    Gone,
}
