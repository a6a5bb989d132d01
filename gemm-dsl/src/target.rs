//! Facts of the hardware, each in one table: limits of architectures, figures of GPUs, intrinsics of CUDA, arithmetic of tensor cores.

pub mod arch;
pub mod device;
pub mod element;
pub mod intrinsic;
pub mod tensor_core;
pub mod types;
