//! Machine code: compilation, loading and launches.

use super::{Allocation, Gpu, GpuAddress, Replacement};
use crate::backend::driver::failed;
use crate::backend::tensor_map::{self, EncodedTensorMap};
use crate::compile::unit::{self, CodeOrigin, Unit};
use crate::error::{Error, Result};
use crate::kernel_arg::KernelArg;
use crate::program::{CachedProgram, LoadedCode};
use cudarc::driver::sys::{CUfunction_attribute as Attribute, CUresult};
use cudarc::driver::{CudaModule, DriverError, result};
use cudarc::nvrtc::Ptx;
use gemm_dsl::ir::program::KernelId;
use smallvec::SmallVec;
use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, PoisonError};

impl Gpu {
    /// Loads a kernel from an archive or from the disk cache, or compiles it. Returns the origin of
    /// the machine code.
    pub(super) fn load(
        &self,
        program: &CachedProgram,
        kernel: KernelId,
    ) -> Result<(LoadedCode, CodeOrigin)> {
        let (contract, source) = (program.contract(kernel), program.source(kernel));
        let name = &*contract.kernel;
        let needed = contract.min_arch;
        if needed > self.arch.number() {
            return Err(Error::Architecture {
                kernel: name.to_owned(),
                needed,
                has: self.arch.to_string(),
                device: self.name.clone(),
            });
        }
        if contract.is_specific && needed != self.arch.number() {
            return Err(Error::OtherArchitecture {
                kernel: name.to_owned(),
                needed,
                has: self.arch.to_string(),
                device: self.name.clone(),
            });
        }
        if contract.shared_bytes > self.shared_limit {
            return Err(Error::SharedMemory {
                kernel: name.to_owned(),
                needed: contract.shared_bytes,
                limit: self.shared_limit,
                device: self.name.clone(),
            });
        }
        self.refuse_capture("compiling and loading a kernel")?;
        let replacement = self.replacement(source);
        let unit = Unit::new(contract, source, self.arch);
        let unit = match &replacement {
            Some(Replacement { kernel, source }) => Unit { name: kernel, source, ..unit },
            None => unit,
        };
        let name = unit.name;
        let (module, origin) = self.module(program.line(), unit)?;
        let function = module.load_function(name);
        let function = function.map_err(failed(format!("finding kernel `{name}`")))?;
        if contract.dynamic_shared_bytes() > 0 {
            let limit = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            let bytes = i32::try_from(contract.dynamic_shared_bytes()).unwrap_or(i32::MAX);
            function
                .set_attribute(limit, bytes)
                .map_err(failed(format!("raising the shared memory of `{name}`")))?;
        }
        Ok((LoadedCode::new(function, Arc::clone(&self.stream)), origin))
    }

    /// Loads the module of a kernel of the spec `line`, from the first archive whose code the
    /// driver accepts, else from the disk cache or the compiler.
    ///
    /// A driver accepts the code of all minor releases of its major release of CUDA, but it may
    /// reject the code of a newer major release.
    fn module(&self, line: &str, unit: Unit<'_>) -> Result<(Arc<CudaModule>, CodeOrigin)> {
        let archives = self.archives.read().unwrap_or_else(PoisonError::into_inner).clone();
        let load = |cubin: Vec<u8>| self.context.load_module(Ptx::from_binary(cubin));
        let mut rejected = None;
        for archived in unit::archived(&archives, unit) {
            let (cubin, origin) = archived?;
            match load(cubin.to_vec()) {
                Ok(module) => return Ok((module, origin)),
                Err(error) => {
                    let is_rejection = is_rejection(&error);
                    let error = failed(self.loading(unit.name, origin))(error);
                    if !is_rejection {
                        return Err(error);
                    }
                    rejected.get_or_insert(error);
                }
            }
        }
        let (cubin, origin) = match unit::cached(&self.cache, unit, self.driver) {
            Ok(found) => found,
            Err(error @ (Error::NvrtcMissing { .. } | Error::NvrtcUnsuitable { .. }))
                if !archives.is_empty() =>
            {
                return Err(rejected.unwrap_or_else(|| Error::NotArchived {
                    kernel: unit.name.to_owned(),
                    line: line.to_owned(),
                    arch: unit.arch.to_string(),
                    archives: archives.iter().map(ToString::to_string).collect(),
                    error: Box::new(error),
                }));
            }
            Err(error) => return Err(error),
        };
        let module = load(cubin).map_err(failed(self.loading(unit.name, origin)))?;
        Ok((module, origin))
    }

    /// Action of loading a kernel, for the error of a driver that rejects its machine code.
    fn loading(&self, name: &str, origin: CodeOrigin) -> String {
        let CodeOrigin::Archive { name: archive, compiler: (major, minor, _) } = origin else {
            return format!("loading kernel `{name}`");
        };
        let driver = (self.driver / 1000, self.driver % 1000 / 10);
        format!(
            "loading kernel `{name}` from the archive `{archive}`, compiled by NVRTC \
             {major}.{minor} (this driver is of CUDA {}.{}; to support older drivers, build the \
             archive with an older NVRTC)",
            driver.0, driver.1
        )
    }

    /// Puts a launch on the stream.
    #[allow(unsafe_code, reason = "the driver checks neither number nor types of arguments")]
    pub(super) fn enqueue(
        &self,
        program: &CachedProgram,
        kernel: KernelId,
        grid: [u32; 3],
        arguments: &[KernelArg<'_, GpuAddress, Allocation>],
    ) -> Result<()> {
        let contract = program.contract(kernel);
        let (code, _) = program.kernel(kernel).function(|| self.load(program, kernel))?;
        if !program.is_constant() && !code.is_captured() && self.is_capturing()? {
            code.set_captured(true);
        }
        let mut maps = SmallVec::<[EncodedTensorMap; 3]>::new();
        for argument in arguments {
            if let KernelArg::TensorMap { address, elem, map, mapped } = argument {
                maps.push(tensor_map::encode(address.at, *elem, map, mapped)?);
            }
        }
        let mut maps = maps.iter();
        let mut pointers = SmallVec::<[*mut c_void; 32]>::new();
        for argument in arguments {
            pointers.push(match argument {
                KernelArg::Word(bits) => pointer(bits),
                KernelArg::Double(bits) => pointer(bits),
                KernelArg::Array(address) => pointer(&address.at),
                KernelArg::TensorMap { .. } => match maps.next() {
                    Some(map) => pointer(map),
                    None => unreachable!("the loop above: it encodes a map for each such argument"),
                },
                KernelArg::List { pointers, .. } => pointer(pointers.at()),
            });
        }
        self.bind()?;
        let (grid, (block_x, block_y)) = ((grid[0], grid[1], grid[2]), contract.block);
        // The shared memory of a block is far below 4 GiB.
        let shared = contract.dynamic_shared_bytes() as u32;
        // SAFETY: the contract has bound the arguments to the kernel's parameters in number, order
        // and size; the driver copies them before it returns. All addresses belong to operands in
        // this context. The contract has checked the kernel's spans against the operands' lengths,
        // so no access is outside an operand. The arrays of a list have as many pointers as the
        // contract requires; the pointers were written before the list existed and never change.
        // Outputs are exclusively borrowed. Memory is freed in the order of the stream or of the
        // slice's events, so it outlives the launch.
        let launched = unsafe {
            let (function, stream) = (code.function().cu_function(), self.stream.cu_stream());
            let block = (block_x, block_y, 1);
            result::launch_kernel(function, grid, block, shared, stream, &mut pointers)
        };
        launched.map_err(|error| failed(format!("launching kernel `{}`", contract.kernel))(error))
    }
}

/// Returns true if the driver cannot use machine code, because it is of a newer release of CUDA or
/// of another architecture.
fn is_rejection(error: &DriverError) -> bool {
    matches!(error.0, CUresult::CUDA_ERROR_INVALID_IMAGE | CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU)
}

/// Address of an argument, from which the driver copies it.
fn pointer<T>(argument: &T) -> *mut c_void {
    ptr::from_ref(argument).cast_mut().cast()
}
