//! Parts of a kernel that several of its kinds use: the problem and its schedule, staged tiles, accumulators, and the way
//! to C.

pub(crate) mod accumulator_tile;
pub(crate) mod copy;
pub(crate) mod edge;
pub(crate) mod epilogue;
pub(crate) mod epilogue_args;
pub(crate) mod epilogue_expression;
pub(crate) mod intra_block_reduction;
pub(crate) mod problem;
pub(crate) mod schedule;
pub(crate) mod slices;
pub(crate) mod split_k;
pub(crate) mod stream_k;
pub(crate) mod tile;
pub(crate) mod unrepresentable;
pub(crate) mod workspace;
