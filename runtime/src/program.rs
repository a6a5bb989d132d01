//! Programs that a device has launched, with what it made of them.

use crate::compile::Resources;
use crate::error::{Error, Result};
use cudarc::driver::CudaFunction;
use cudarc::driver::sys::CUfunction_attribute as Attribute;
use gemm_dsl::ir::{ParamKind, Program, Source, VerifiedKernel};
use gemm_dsl::spec::Spec;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

/// The programs of a device by macro and spec.
#[derive(Default)]
pub(crate) struct Programs(RwLock<HashMap<&'static str, HashMap<String, Arc<Prepared>>>>);

impl Programs {
    /// The program of a spec, by its canonical line.
    pub(crate) fn get<S: Spec>(&self, line: &str) -> Result<Arc<Prepared>> {
        self.get_or(S::MACRO, line, || Ok(line.parse::<S>()?.program()?))
    }

    /// The program kept under a family and a name, made where there is none.
    pub(crate) fn get_or(
        &self,
        family: &'static str,
        name: &str,
        make: impl FnOnce() -> Result<Program>,
    ) -> Result<Arc<Prepared>> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = known.get(family).and_then(|programs| programs.get(name)) {
            return Ok(Arc::clone(program));
        }
        drop(known);
        // Two threads may both make it; the first to come back here is kept.
        let made = Arc::new(Prepared::new(make()?));
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let kept = known.entry(family).or_default().entry(name.to_owned()).or_insert(made);
        Ok(Arc::clone(kept))
    }
}

/// A program ready to be launched on one device.
pub(crate) struct Prepared {
    pub(crate) program: Program,
    /// Its kernels, in order of preference.
    pub(crate) variants: Vec<Variant>,
}

impl Prepared {
    pub(crate) fn new(program: Program) -> Self {
        let variants = program.variants().map(Variant::new).collect();
        Self { program, variants }
    }
}

/// One kernel of a program, with its machine code once it has been launched on a GPU.
pub(crate) struct Variant {
    pub(crate) kernel: VerifiedKernel,
    pub(crate) shared_bytes: u64,
    /// The part of the shared memory that a launch asks for: all or none.
    pub(crate) dynamic_shared: u32,
    function: OnceLock<CudaFunction>,
    loading: Mutex<()>,
}

impl Variant {
    fn new(kernel: &VerifiedKernel) -> Self {
        let shared_bytes = kernel.shared_bytes();
        let dynamic = if kernel.shared_is_dynamic() { shared_bytes } else { 0 };
        Self {
            kernel: kernel.clone(),
            shared_bytes,
            dynamic_shared: u32::try_from(dynamic).unwrap_or(u32::MAX),
            function: OnceLock::new(),
            loading: Mutex::new(()),
        }
    }

    /// Whether the kernel takes leading dimensions.
    pub(crate) fn takes_row_strides(&self) -> bool {
        let is_stride = |kind: &ParamKind| {
            matches!(kind, ParamKind::Scalar { source: Source::RowStride(_), .. })
        };
        self.kernel.params.iter().any(|param| is_stride(&param.kind))
    }

    /// What the driver says of the machine code, once it has been loaded.
    pub(crate) fn resources(&self) -> Option<Resources> {
        let function = self.function.get()?;
        let read = |attribute| {
            let value = function.get_attribute(attribute).ok()?;
            u32::try_from(value).ok()
        };
        Some(Resources {
            registers: read(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            stack: read(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            shared_bytes: read(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            ..Resources::default()
        })
    }

    /// The machine code. Of threads that ask at the same time, one loads it and the others wait;
    /// after a failure the next one tries again.
    pub(crate) fn function(
        &self,
        load: impl FnOnce() -> Result<CudaFunction>,
    ) -> Result<&CudaFunction> {
        if let Some(function) = self.function.get() {
            return Ok(function);
        }
        let _loading = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if self.function.get().is_none() {
            _ = self.function.set(load()?);
        }
        self.function.get().ok_or_else(|| Error::Internal("a loaded kernel is gone".to_owned()))
    }
}
