//! Items that the expansions of the macros name.

pub use crate::blas::EpilogueSlot;
pub use crate::kernel::{ReduceSlot, SgemmSlot};
pub use crate::slot::KernelSlot;
pub use gemm_dsl::artifact::items;
pub use gemm_macros::{
    epilogue, gemm_kernel, gemm_table, map_kernel, reduce_kernel, reduce_table, row_kernel,
    scan_kernel, sgemm_kernel, sgemm_table,
};
