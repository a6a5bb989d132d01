//! Execution of warps: the machine, the evaluation of expressions, and the effect of each
//! statement.

pub(crate) mod assign;
pub(crate) mod atomic;
pub(crate) mod budget;
pub(crate) mod convert;
pub(crate) mod eval;
pub(crate) mod frames;
pub(crate) mod interleaving;
pub(crate) mod lanes;
pub(crate) mod livelock;
pub(crate) mod machine;
pub(crate) mod mbarrier;
pub(crate) mod memory;
pub(crate) mod mma;
pub(crate) mod pointer;
pub(crate) mod remote_store;
pub(crate) mod undo_log;
pub(crate) mod warp;
pub(crate) mod warpgroup;
pub(crate) mod wgmma;
