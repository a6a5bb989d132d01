//! Programs cached by a device, with their machine code.

use crate::compile::Resources;
use crate::error::{Error, Result};
use cudarc::driver::CudaFunction;
use cudarc::driver::sys::CUfunction_attribute as Attribute;
use gemm_dsl::ir::program::KernelId;
use gemm_dsl::ir::{Operand, VerifiedKernel, VerifiedProgram};
use gemm_dsl::plan::ReducePlan;
use gemm_dsl::spec::{Arith, EpilogueArg, ReduceSpec, SgemmSpec};
use gemm_dsl::{Family, Plan};
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Programs of a device by macro name and spec.
#[derive(Default)]
pub struct Programs(RwLock<HashMap<&'static str, HashMap<String, Arc<CachedProgram>>>>);

impl Programs {
    /// Program of a spec, given as its canonical line.
    pub(crate) fn get<S: Family>(&self, line: &str) -> Result<Arc<CachedProgram>> {
        self.kept(S::MACRO, line, || {
            let plan = line.parse::<S::Plan>()?;
            Ok(CachedProgram::by_plan::<S>(plan.program()?, plan))
        })
    }

    #[cfg(test)]
    pub(crate) fn made(&self) -> usize {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.values().map(HashMap::len).sum()
    }

    /// Program without a spec.
    #[cfg(test)]
    pub(crate) fn get_or(
        &self,
        family: &'static str,
        name: &str,
        make: impl FnOnce() -> Result<VerifiedProgram>,
    ) -> Result<Arc<CachedProgram>> {
        self.kept(family, name, || Ok(CachedProgram::new(make()?, Vec::new())))
    }

    /// Program that computes the splits of a row-major or column-major B.
    pub fn splits_of_b(&self, arith: Arith, by_column: bool) -> Result<Arc<CachedProgram>> {
        let name = format!("{arith}{}", if by_column { ", by column" } else { "" });
        self.kept("splits", &name, || {
            let program = SgemmSpec::splits_of_b(arith, by_column)?;
            Ok(CachedProgram::new(program, Vec::new()))
        })
    }

    /// Program that folds one shard of a reduction.
    pub(crate) fn of_shard(&self, line: &str) -> Result<Arc<CachedProgram>> {
        self.kept("shard", line, || {
            let plan = line.parse::<ReducePlan>()?;
            Ok(CachedProgram::by_plan::<ReduceSpec>(plan.program_of_shard()?, plan))
        })
    }

    /// Program that folds the partial results of all shards.
    pub fn of_partials(&self, line: &str) -> Result<Arc<CachedProgram>> {
        self.kept("partials", line, || {
            let plan = line.parse::<ReducePlan>()?;
            Ok(CachedProgram::by_plan::<ReduceSpec>(plan.program_of_partials()?, plan))
        })
    }

    /// Returns the program cached under a family and a name, or builds and caches it.
    fn kept(
        &self,
        family: &'static str,
        name: &str,
        make: impl FnOnce() -> Result<CachedProgram>,
    ) -> Result<Arc<CachedProgram>> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = known.get(family).and_then(|programs| programs.get(name)) {
            return Ok(Arc::clone(program));
        }
        drop(known);
        // Two threads may both build the program. The map keeps the first that is inserted.
        let made = Arc::new(make()?);
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let kept = known.entry(family).or_default().entry(name.to_owned()).or_insert(made);
        Ok(Arc::clone(kept))
    }
}

/// Program ready for launches on one device.
pub struct CachedProgram {
    pub(crate) program: VerifiedProgram,
    /// Plan of type `S::Plan`, if [`Programs::get`] built the program from a spec of type `S`.
    plan: Option<Box<dyn Any + Send + Sync>>,
    /// Operands of the spec besides the matrices.
    pub(crate) operands: Vec<EpilogueArg>,
    kernels: Vec<CachedKernel>,
    /// Programs that take the splits of A, of B, or of both as inputs.
    given: [OnceLock<Option<Arc<CachedProgram>>>; 3],
}

impl CachedProgram {
    fn new(program: VerifiedProgram, operands: Vec<EpilogueArg>) -> Self {
        let kernels = program.kernels.iter().map(CachedKernel::new).collect();
        Self { program, plan: None, operands, kernels, given: Default::default() }
    }

    /// Program of a plan. The plan is stored with the program.
    fn by_plan<S: Family>(program: VerifiedProgram, plan: S::Plan) -> Self {
        let operands = plan.spec().operands();
        Self { plan: Some(Box::new(plan)), ..Self::new(program, operands) }
    }

    fn plan<S: Family>(&self) -> &S::Plan {
        let plan = self.plan.as_ref().and_then(|plan| plan.downcast_ref());
        plan.unwrap_or_else(|| {
            unreachable!("Kernel::prepare: the program was built from a plan of this family")
        })
    }

    pub(crate) fn spec<S: Family>(&self) -> &S {
        self.plan::<S>().spec()
    }

    /// Variant of the program that takes the splits of A, of B, or of both as inputs, or `None` if
    /// the GEMM has no such variant.
    pub(crate) fn given(&self, splits: [bool; 2]) -> Result<Option<&Arc<CachedProgram>>> {
        let kept = match splits {
            [false, false] => return Ok(None),
            [true, false] => &self.given[0],
            [false, true] => &self.given[1],
            [true, true] => &self.given[2],
        };
        if kept.get().is_none() {
            let program = self.plan::<SgemmSpec>().program_with_splits(splits)?;
            let made = program.map(|program| Arc::new(Self::new(program, self.operands.clone())));
            // If two threads build it, the first result is kept.
            _ = kept.set(made);
        }
        Ok(kept.get().and_then(Option::as_ref))
    }

    pub(crate) fn kernel(&self, id: KernelId) -> &CachedKernel {
        self.kernels
            .get(id.0)
            .unwrap_or_else(|| unreachable!("VerifiedProgram::new: the kernel exists"))
    }

    /// Returns true if the machine code of all kernels is loaded.
    pub(crate) fn is_loaded(&self) -> bool {
        self.kernels.iter().all(|kernel| kernel.function.get().is_some())
    }

    /// Returns true if the kernels take a matrix as column-major.
    pub(crate) fn by_column(&self, operand: Operand) -> bool {
        let mut arrays = self.kernels.iter().flat_map(|k| k.kernel.contract().arrays());
        // The last two dimensions are rows and columns. A batch has a dimension before them.
        arrays.any(|array| array.operand == operand && array.contiguous_dim() + 2 == array.rank())
    }

    /// Returns true if every kernel takes matrices with padded rows or columns.
    pub(crate) fn takes_pitches(&self) -> bool {
        self.kernels.iter().all(|k| k.kernel.contract().takes_pitches())
    }
}

/// Cost of loading the machine code of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct KernelLoad {
    pub(crate) took: Duration,
    /// True if the kernel was compiled, false if it was read from the disk cache.
    pub(crate) is_compiled: bool,
}

/// One kernel of a program. Has its machine code after the first launch on a GPU.
pub struct CachedKernel {
    pub(crate) kernel: VerifiedKernel,
    function: OnceLock<CudaFunction>,
    loading: Mutex<()>,
}

impl CachedKernel {
    fn new(kernel: &VerifiedKernel) -> Self {
        Self { kernel: kernel.clone(), function: OnceLock::new(), loading: Mutex::new(()) }
    }

    /// Resources as the driver reports them, once the machine code is loaded.
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

    /// Returns the machine code, and the load time if this call loaded the code. `load` returns
    /// true with the code if it compiled the kernel.
    ///
    /// If several threads need the same kernel, one thread loads it and the others wait. Threads
    /// that need other kernels do not wait. After a failure the next call tries again.
    pub(crate) fn function(
        &self,
        load: impl FnOnce() -> Result<(CudaFunction, bool)>,
    ) -> Result<(&CudaFunction, Option<KernelLoad>)> {
        if let Some(function) = self.function.get() {
            return Ok((function, None));
        }
        let _loading = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        let mut made = None;
        if self.function.get().is_none() {
            let start = Instant::now();
            let (function, is_compiled) = load()?;
            _ = self.function.set(function);
            made = Some(KernelLoad { took: start.elapsed(), is_compiled });
        }
        let function = self.function.get();
        let function =
            function.ok_or_else(|| Error::Internal("a loaded kernel has no code".to_owned()))?;
        Ok((function, made))
    }
}
