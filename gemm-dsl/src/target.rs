//! Facts about hardware, each in one table: limits of architectures, figures of GPUs, CUDA
//! intrinsics and tensor-core formats.

pub mod arch;
pub mod device;
pub mod element;
mod format;
pub mod fp8;
pub mod intrinsic;
pub mod release;
pub(crate) mod reserved;
pub mod types;

pub use format::{FloatLayout, Format};
