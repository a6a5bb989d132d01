//! Prediction of a spec's time on a device that is not present.

pub mod counts;
pub mod reduction;

pub use gemm_runtime::internal::CountedLaunch as LaunchCounts;
