//! How long a spec takes on a device, without that device.

pub mod counts;
pub mod reduction;

use gemm_dsl::ir::VerifiedProgram;
use gemm_perf::LaunchLoad;

/// One launch of a kernel; how many registers its threads have is not known before it is compiled.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchCounts {
    /// The name of the kernel.
    pub kernel: String,
    /// What it asks for.
    pub launch: LaunchLoad,
}

impl LaunchCounts {
    /// A launch of a kernel of a program, with nothing counted.
    fn new(program: &VerifiedProgram, name: &str) -> Self {
        let kernel = program.kernels.iter().find(|kernel| kernel.name == name);
        let launch = LaunchLoad {
            threads: kernel.map_or(0, |kernel| kernel.geometry.threads()),
            shared_bytes: kernel.map_or(0, |kernel| kernel.shared_bytes()),
            ..LaunchLoad::default()
        };
        Self { kernel: name.to_owned(), launch }
    }
}
