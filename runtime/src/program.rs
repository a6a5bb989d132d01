//! Programs that a device has launched, with what it made of them.

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

/// The programs of a device by macro and spec.
#[derive(Default)]
pub struct Programs(RwLock<HashMap<&'static str, HashMap<String, Arc<CachedProgram>>>>);

impl Programs {
    /// The program of a spec, by its canonical line.
    pub(crate) fn get<S: Family>(&self, line: &str) -> Result<Arc<CachedProgram>> {
        self.kept(S::MACRO, line, || {
            let plan = line.parse::<S::Plan>()?;
            Ok(CachedProgram::by_plan::<S>(plan.program()?, plan))
        })
    }

    /// How many there are.
    #[cfg(test)]
    pub(crate) fn made(&self) -> usize {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.values().map(HashMap::len).sum()
    }

    /// A program that follows from no spec.
    #[cfg(test)]
    pub(crate) fn get_or(
        &self,
        family: &'static str,
        name: &str,
        make: impl FnOnce() -> Result<VerifiedProgram>,
    ) -> Result<Arc<CachedProgram>> {
        self.kept(family, name, || Ok(CachedProgram::new(make()?, Vec::new())))
    }

    /// The program that makes splits of a B that lies row by row, or column by column.
    pub fn splits_of_b(&self, arith: Arith, by_column: bool) -> Result<Arc<CachedProgram>> {
        let name = format!("{arith}{}", if by_column { ", by column" } else { "" });
        self.kept("splits", &name, || {
            let program = SgemmSpec::splits_of_b(arith, by_column)?;
            Ok(CachedProgram::new(program, Vec::new()))
        })
    }

    /// The program that folds a shard of what a reduction folds.
    pub(crate) fn of_shard(&self, line: &str) -> Result<Arc<CachedProgram>> {
        self.kept("shard", line, || {
            let plan = line.parse::<ReducePlan>()?;
            Ok(CachedProgram::by_plan::<ReduceSpec>(plan.program_of_shard()?, plan))
        })
    }

    /// The program that folds what all shards have left.
    pub fn of_partials(&self, line: &str) -> Result<Arc<CachedProgram>> {
        self.kept("partials", line, || {
            let plan = line.parse::<ReducePlan>()?;
            Ok(CachedProgram::by_plan::<ReduceSpec>(plan.program_of_partials()?, plan))
        })
    }

    /// The program kept under a family and a name, made where there is none.
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
        // Two threads may both make it; the first to come back here is kept.
        let made = Arc::new(make()?);
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let kept = known.entry(family).or_default().entry(name.to_owned()).or_insert(made);
        Ok(Arc::clone(kept))
    }
}

/// A program ready to be launched on one device.
pub struct CachedProgram {
    pub(crate) program: VerifiedProgram,
    /// The plan, of type `S::Plan` where [`Programs::get`] was asked for a spec of `S`.
    plan: Option<Box<dyn Any + Send + Sync>>,
    /// What its spec says that the caller gives beside the matrices.
    pub(crate) operands: Vec<EpilogueArg>,
    /// Its kernels, in its order.
    kernels: Vec<CachedKernel>,
    /// The same where the splits of A are given, of B, or of both.
    given: [OnceLock<Option<Arc<CachedProgram>>>; 3],
}

impl CachedProgram {
    fn new(program: VerifiedProgram, operands: Vec<EpilogueArg>) -> Self {
        let kernels = program.kernels.iter().map(CachedKernel::new).collect();
        Self { program, plan: None, operands, kernels, given: Default::default() }
    }

    /// A program of a plan, which is kept with it.
    fn by_plan<S: Family>(program: VerifiedProgram, plan: S::Plan) -> Self {
        let operands = plan.spec().operands();
        Self { plan: Some(Box::new(plan)), ..Self::new(program, operands) }
    }

    /// The plan that the program was made of.
    fn plan<S: Family>(&self) -> &S::Plan {
        let plan = self.plan.as_ref().and_then(|plan| plan.downcast_ref());
        plan.unwrap_or_else(|| {
            unreachable!("Kernel::prepare: it was made of a plan of this family")
        })
    }

    /// The spec that the program was made of.
    pub(crate) fn spec<S: Family>(&self) -> &S {
        self.plan::<S>().spec()
    }

    /// The same product where the splits of A are given, of B, or of both, if it takes such and there are any.
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
            // Of two threads that make it the first one's is kept.
            _ = kept.set(made);
        }
        Ok(kept.get().and_then(Option::as_ref))
    }

    /// The kernel of a number that a launch of the program names.
    pub(crate) fn kernel(&self, id: KernelId) -> &CachedKernel {
        self.kernels.get(id.0).unwrap_or_else(|| unreachable!("VerifiedProgram::new: it is there"))
    }

    /// Whether the machine code of all kernels is there.
    pub(crate) fn is_loaded(&self) -> bool {
        self.kernels.iter().all(|kernel| kernel.function.get().is_some())
    }

    /// Whether a matrix lies column by column for the kernels.
    pub(crate) fn by_column(&self, operand: Operand) -> bool {
        let mut arrays = self.kernels.iter().flat_map(|k| k.kernel.contract().arrays());
        // The last two dimensions are its rows and its columns; before them are the matrices of a batch.
        arrays.any(|array| array.operand == operand && array.contiguous_dim() + 2 == array.rank())
    }

    /// Whether every kernel takes matrices whose rows, or columns, are padded.
    pub(crate) fn takes_pitches(&self) -> bool {
        self.kernels.iter().all(|k| k.kernel.contract().takes_pitches())
    }
}

/// What it took to have the machine code of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct KernelLoad {
    pub(crate) took: Duration,
    /// Whether it was compiled, and not found on disk.
    pub(crate) is_compiled: bool,
}

/// One kernel of a program, with its machine code once it has been launched on a GPU.
pub struct CachedKernel {
    pub(crate) kernel: VerifiedKernel,
    function: OnceLock<CudaFunction>,
    loading: Mutex<()>,
}

impl CachedKernel {
    fn new(kernel: &VerifiedKernel) -> Self {
        Self { kernel: kernel.clone(), function: OnceLock::new(), loading: Mutex::new(()) }
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

    /// The machine code, and what this call took to have it; `load` also says whether it has compiled. Of threads
    /// that ask at the same time, one loads it and the others wait, those that ask for other kernels do not; after a
    /// failure the next one tries again.
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
            function.ok_or_else(|| Error::Internal("a loaded kernel is gone".to_owned()))?;
        Ok((function, made))
    }
}
