//! Race detector: happens-before by vector clocks over shadow memory.

pub(crate) mod access_history;
pub(crate) mod check;
pub(crate) mod clock;
pub(crate) mod detector;
pub(crate) mod grid;
pub(crate) mod init;
pub(crate) mod mbarrier;
pub(crate) mod model;
pub(crate) mod named_barrier;
pub(crate) mod persistent_map;
pub(crate) mod release_sequence;
pub(crate) mod remote_stores;
pub(crate) mod shadow;
pub(crate) mod vector_clock;
