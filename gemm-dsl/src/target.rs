//! Facts of the hardware, each in one table: limits of architectures, figures of GPUs, intrinsics of CUDA, formats of tensor cores.

pub mod arch;
pub mod device;
pub mod element;
mod format;
pub mod intrinsic;
pub(crate) mod reserved;
pub mod types;

pub use format::{FloatLayout, Format};
