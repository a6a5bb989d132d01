//! Machine code: compilation, loading and launches.

use super::{Allocation, Gpu, GpuAddress};
use crate::backend::driver::failed;
use crate::backend::tensor_map;
use crate::compile;
use crate::error::{Error, Result};
use crate::kernel_arg::KernelArg;
use crate::program::CachedKernel;
use cudarc::driver::sys::CUfunction_attribute as Attribute;
use cudarc::driver::{CudaFunction, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use gemm_dsl::cuda;

impl Gpu {
    /// Compiles a kernel for this GPU, or takes it from the disk cache, and loads it. Returns true
    /// if it was compiled.
    pub(super) fn load(&self, cached: &CachedKernel) -> Result<(CudaFunction, bool)> {
        let kernel = &cached.kernel;
        let contract = kernel.contract();
        let needed = contract.min_arch();
        if needed > self.arch.number() {
            return Err(Error::Architecture {
                kernel: kernel.name.clone(),
                needed,
                has: self.arch.to_string(),
                device: self.name.clone(),
            });
        }
        if contract.is_specific() && needed != self.arch.number() {
            return Err(Error::OtherArchitecture {
                kernel: kernel.name.clone(),
                needed,
                has: self.arch.to_string(),
                device: self.name.clone(),
            });
        }
        if contract.shared_bytes() > self.shared_limit {
            return Err(Error::SharedMemory {
                kernel: kernel.name.clone(),
                needed: contract.shared_bytes(),
                limit: self.shared_limit,
                device: self.name.clone(),
            });
        }
        self.refuse_capture("compiling and loading a kernel")?;
        let (name, source) = &self.replaced(&kernel.name, cuda::source(kernel));
        let arch = if contract.is_specific() { self.arch.specific() } else { self.arch };
        let (cubin, is_compiled) = compile::cubin(&self.cache, name, source, arch)?;
        let module = self.context.load_module(Ptx::from_binary(cubin));
        let module = module.map_err(failed(format!("loading kernel `{name}`")))?;
        let function = module.load_function(name);
        let function = function.map_err(failed(format!("finding kernel `{name}`")))?;
        if contract.dynamic_shared_bytes() > 0 {
            let limit = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            let bytes = i32::try_from(contract.dynamic_shared_bytes()).unwrap_or(i32::MAX);
            function
                .set_attribute(limit, bytes)
                .map_err(failed(format!("raising the shared memory of `{name}`")))?;
        }
        Ok((function, is_compiled))
    }

    /// Puts a launch on the stream.
    #[allow(unsafe_code, reason = "the driver checks neither number nor types of arguments")]
    pub(super) fn enqueue(
        &self,
        kernel: &CachedKernel,
        grid: [u32; 3],
        arguments: &[KernelArg<'_, GpuAddress, Allocation>],
    ) -> Result<()> {
        let (function, _) = kernel.function(|| self.load(kernel))?;
        let mut maps = Vec::new();
        for argument in arguments {
            if let KernelArg::TensorMap { address, elem, map, mapped } = argument {
                maps.push(tensor_map::encode(address.at, *elem, map, mapped)?);
            }
        }
        let (mut maps, mut launch) = (maps.iter(), self.stream.launch_builder(function));
        for argument in arguments {
            match argument {
                KernelArg::Word(bits) => launch.arg(bits),
                KernelArg::Double(bits) => launch.arg(bits),
                KernelArg::Array(address) => launch.arg(&address.at),
                KernelArg::TensorMap { .. } => {
                    let Some(map) = maps.next() else {
                        unreachable!("a map was encoded for each such argument")
                    };
                    launch.arg(map)
                }
                KernelArg::List { pointers, .. } => launch.arg(pointers.at()),
            };
        }
        let contract = kernel.kernel.contract();
        let (block_x, block_y) = contract.block();
        let config = LaunchConfig {
            grid_dim: (grid[0], grid[1], grid[2]),
            block_dim: (block_x, block_y, 1),
            // The shared memory of a block is far below 4 GiB.
            shared_mem_bytes: contract.dynamic_shared_bytes() as u32,
        };
        // SAFETY: the contract has bound the arguments to the kernel's parameters in number, order
        // and size. All addresses belong to operands in this context. The contract has checked the
        // kernel's spans against the operands' lengths, so no access is outside an operand. The
        // arrays of a list have as many pointers as the contract requires; the pointers were
        // written before the list existed and never change. Outputs are exclusively borrowed.
        // Memory is freed in the order of the stream or of the slice's events, so it outlives the
        // launch.
        let launched = unsafe { launch.launch(config) };
        launched.map(drop).map_err(failed(format!("launching kernel `{}`", contract.kernel())))
    }
}
