//! Parts that several kinds of kernels have in common: problem, schedule, staged tiles,
//! accumulators, epilogue.

pub(crate) mod accumulator_tile;
pub(crate) mod accumulators;
pub(crate) mod copy;
pub(crate) mod edge;
pub(crate) mod elements;
pub(crate) mod epilogue;
pub(crate) mod epilogue_args;
pub(crate) mod epilogue_expression;
pub(crate) mod frame;
pub(crate) mod intra_block_reduction;
pub(crate) mod loops;
pub(crate) mod mma_layout;
pub(crate) mod problem;
pub(crate) mod schedule;
pub(crate) mod shared_tile;
pub(crate) mod sharing;
pub(crate) mod slices;
pub(crate) mod split_k;
pub(crate) mod split_products;
pub(crate) mod splits;
pub(crate) mod stream_k;
pub(crate) mod tf32;
pub(crate) mod tile;
pub(crate) mod unrepresentable;
pub(crate) mod workspace;
