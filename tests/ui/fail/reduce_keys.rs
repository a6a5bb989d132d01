//! Keys that are unknown, of another macro, or duplicate, and misplaced words.

use gemm_runtime::{ReduceKernel, reduce_kernel, reduce_table, sgemm_table};

const _: ReduceKernel = reduce_kernel!(blok: 64);
const _: ReduceKernel = reduce_kernel!(tile: 8x8x8);
const _: ReduceKernel = reduce_kernel!(zzz);
const _: ReduceKernel = reduce_kernel!(interleaved);
const _: ReduceKernel = reduce_kernel!(block: 64, block: 128);
const _: ReduceKernel = reduce_kernel!(shuffle, shuffle);
const _: ReduceKernel = reduce_kernel!(type: 3);
const _: ReduceKernel = reduce_kernel!(3: 4);
const _: ReduceKernel = reduce_kernel!(op: max, axis: 1);

// Only `sgemm_kernel!` declares types. Each call has one error.
reduce_kernel! { struct Maximum; op: max }
reduce_table! { pub struct Maxima; else => op: max; }

fn main() {
    sgemm_table! {
        /// A table.
        struct Layers;
        else => tile: 8x8x8;
    }
}
