//! Prediction of a spec's time on a device that is not present.

pub mod counts;
pub mod reduction;

use gemm_dsl::ir::VerifiedProgram;
use gemm_perf::LaunchLoad;

/// Load of one kernel launch. Its register count is unknown until the kernel is compiled.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchCounts {
    pub kernel: String,
    pub launch: LaunchLoad,
}

impl LaunchCounts {
    /// Creates the load of a program's kernel, with all counts 0.
    fn new(program: &VerifiedProgram, name: &str) -> Self {
        let kernel = program.kernels().iter().find(|kernel| kernel.name == name);
        let launch = LaunchLoad {
            threads: kernel.map_or(0, |kernel| kernel.geometry.threads()),
            shared_bytes: kernel.map_or(0, |kernel| kernel.shared_bytes()),
            ..LaunchLoad::default()
        };
        Self { kernel: name.to_owned(), launch }
    }
}
