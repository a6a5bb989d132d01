//! Guide: one page for each task, with tested examples.
//!
//! | page | content |
//! | --- | --- |
//! | [`start`] | set-up, a first kernel, the types for each task |
//! | [`macros`] | kernels as constants: CUDA C in the binary, launches without generation |
//! | [`views`] | parts and transposes of device arrays |
//! | [`batches`] | batches along several axes, groups of rows, lists |
//! | [`memory`] | writing and copying in place, pinned memory, events, streams, foreign memory |
//! | [`cublas`] | `sgemm` in place of `cublasSgemm` |
//! | [`pytorch`] | the call for each common operation of PyTorch |
//! | [`epilogues`] | bias, activation and residual, fused |
//! | [`elementwise`] | an expression of matrices, vectors and numbers |
//! | [`rows`] | softmax, normalisations and losses: folds over rows and results, in one launch |
//! | [`reductions`] | folds over arrays, rows, columns and segments |
//! | [`scans`] | running sums, products, maxima and minima |
//! | [`typed`] | GEMMs on `bf16`, `f16` and `f64` |
//! | [`tables`] | a kernel for each shape; tuning |
//! | [`tensor_cores`] | FP32 emulation, its accuracy and its speed |
//! | [`determinism`] | the same bits on every run, and for every batch size |
//! | [`testing`] | tests without a GPU |
//! | [`races`] | the race detector |
//! | [`explain`] | reasons for a kernel's speed: `explain` and the book |
//! | [`archives`] | machine code in the binary: no NVRTC at run time |
//! | [`interop`] | inside a program that uses cudarc; ndarray, faer, serde and tracing |
//! | [`many_gpus`] | one GEMM or reduction on several GPUs |
//! | [`errors`] | errors and frequent questions |

/// Declares a page of the guide.
macro_rules! pages {
    ($($page:ident)*) => {$(
        #[doc = include_str!(concat!("../docs/guide/", stringify!($page), ".md"))]
        pub mod $page {}
    )*};
}

pages! {
    start macros views batches memory cublas pytorch epilogues elementwise rows reductions scans
    typed tables
    tensor_cores
    determinism testing races explain archives interop many_gpus errors
}
