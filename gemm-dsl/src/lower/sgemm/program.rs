//! Programs of several launches.

pub(crate) mod wgmma;
