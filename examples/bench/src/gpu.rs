//! Tools for measurements on a GPU: event timers, hardware ceilings, cuBLAS, unfused epilogues, and
//! GEMMs in `f64`.

mod blas;
mod ceiling;
mod check;
mod elements;
mod graph;
mod library;
mod reference;
mod timer;
mod typed_product;

pub use blas::{Blas, Product};
pub use ceiling::{fma_rate, read_rate};
pub use check::{BEHIND, Verifier};
pub use elements::elements;
pub use gemm_runtime::internal::failed;
pub use graph::{captured, medians_in_graphs};
pub use reference::GpuReference;
pub use timer::{Timer, Work, median};

use cudarc::driver::{CudaContext, CudaFunction, CudaStream};
use cudarc::nvrtc::Ptx;
use gemm_runtime::compile::{self, Arch, Options};
use gemm_runtime::{Device, Error};
use std::sync::Arc;

/// GPU of a device, with its driver objects.
#[derive(Clone, Copy, Debug)]
pub struct Gpu<'d> {
    pub device: &'d Device,
    pub context: &'d Arc<CudaContext>,
    /// Stream on which the device does all its work.
    pub stream: &'d Arc<CudaStream>,
    pub arch: Arch,
    pub multiprocessors: u32,
}

impl<'d> Gpu<'d> {
    /// Returns the GPU of a device; `None` for the simulator.
    pub fn new(device: &'d Device) -> Option<Self> {
        let (context, stream) = device.cudarc()?;
        let (arch, multiprocessors) = (device.arch()?, device.multiprocessors()?);
        Some(Self { device, context, stream, arch, multiprocessors })
    }

    /// Compiles CUDA C and loads the kernel `name`.
    ///
    /// # Errors
    /// Returns the errors of [`compile::compile`], and [`Error::Driver`] if the driver cannot load
    /// the kernel.
    pub fn load(&self, name: &str, source: &str) -> Result<CudaFunction, Error> {
        let compiled = compile::compile(name, source, self.arch, &Options::default())?;
        let module = self.context.load_module(Ptx::from_binary(compiled.cubin));
        let module = module.map_err(failed(format!("loading kernel `{name}`")))?;
        module.load_function(name).map_err(failed(format!("finding kernel `{name}`")))
    }
}
