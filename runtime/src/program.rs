//! Programs cached by a device, with their machine code.

mod code;
mod kept;
#[cfg(test)]
mod tests;

pub(crate) use code::LoadedCode;

use crate::compile::Resources;
use crate::compile::unit::CodeOrigin;
use crate::error::{Error, Result};
use crate::slot::{KernelSlot, SlotTable};
use cudarc::driver::sys::CUfunction_attribute as Attribute;
use gemm_dsl::artifact::{Artifact, Interface};
use gemm_dsl::ir::contract::Contract;
use gemm_dsl::ir::program::{CallCache, KernelId, LaunchProgram};
use gemm_dsl::ir::{List, Operand, VerifiedProgram};
use gemm_dsl::plan::{ReducePlan, SgemmPlan};
use gemm_dsl::spec::{Arith, Batch, EpilogueArg, Op, Over, Pairs, SgemmSpec};
use gemm_dsl::{Family, Plan, SpecErrors};
use kept::KeptPrograms;
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Programs of a device.
pub struct Programs {
    /// By macro name and spec, at most as many as the device may keep.
    by_line: RwLock<KeptPrograms>,
    /// By macro call, found without a lock. Each is also in `by_line`, which never evicts it.
    by_slot: SlotTable<Arc<CachedProgram>>,
    /// True for a simulator, which needs the bodies of kernels.
    is_simulated: bool,
}

/// Builds a program with the bodies of its kernels.
type Lower = Box<dyn Fn() -> Result<VerifiedProgram> + Send + Sync>;

impl Programs {
    pub(crate) fn new(is_simulated: bool) -> Self {
        Self { by_line: RwLock::default(), by_slot: SlotTable::default(), is_simulated }
    }

    /// Program of a macro call.
    pub(crate) fn of_constant<S: Family>(
        &self,
        artifact: &'static Artifact,
        slot: &KernelSlot,
    ) -> Result<&Arc<CachedProgram>> {
        self.by_slot.get_or_try_init(slot, || {
            let lower = lower::<S>(&artifact.line);
            let made = || Ok(CachedProgram::new(Cow::Borrowed(artifact), lower));
            let program = self.kept(S::MACRO, &artifact.line, made)?;
            program.is_constant.store(true, Ordering::Relaxed);
            Ok(program)
        })
    }

    /// Program of a spec whose artifact exists.
    pub(crate) fn of_artifact<S: Family>(&self, artifact: &Artifact) -> Result<Arc<CachedProgram>> {
        self.kept(S::MACRO, &artifact.line, || {
            let lower = lower::<S>(&artifact.line);
            Ok(CachedProgram::new(Cow::Owned(artifact.clone()), lower))
        })
    }

    /// Program of a spec, given as its canonical line.
    pub fn get<S: Family>(&self, line: &str) -> Result<Arc<CachedProgram>> {
        self.kept(S::MACRO, line, || {
            let plan: S::Plan = line.parse()?;
            let program = plan.program()?;
            let artifact = plan.artifact_of(&program);
            Ok(self.lowered(artifact, program, lower::<S>(line)))
        })
    }

    /// Number of programs that are kept.
    pub(crate) fn made(&self) -> usize {
        self.by_line.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    #[cfg(test)]
    fn is_kept<S: Family>(&self, line: &str) -> bool {
        let known = self.by_line.read().unwrap_or_else(PoisonError::into_inner);
        known.contains(S::MACRO, line)
    }

    /// Sets the number of programs to keep, and evicts those beyond it.
    pub(crate) fn keep_at_most(&self, programs: usize) {
        let mut known = self.by_line.write().unwrap_or_else(PoisonError::into_inner);
        let evicted = known.keep_at_most(programs);
        drop(known);
        drop(evicted);
    }

    /// Lets code be unloaded to which captured graphs refer. The device, and so its graphs, are not
    /// used any more.
    pub(crate) fn release(&self) {
        self.by_line.read().unwrap_or_else(PoisonError::into_inner).release();
    }

    /// Forgets the program of a spec. Returns false if there is none, or if a macro call has it.
    pub(crate) fn forget<S: Family>(&self, line: &str) -> bool {
        let mut known = self.by_line.write().unwrap_or_else(PoisonError::into_inner);
        let forgotten = known.remove(S::MACRO, line);
        drop(known);
        forgotten.is_some()
    }

    /// Program without a spec.
    #[cfg(test)]
    pub(crate) fn get_or(
        &self,
        family: &'static str,
        name: &str,
        make: impl FnOnce() -> Result<VerifiedProgram>,
    ) -> Result<Arc<CachedProgram>> {
        self.kept(family, name, || {
            let program = make()?;
            let interface =
                Interface::Gemm { operands: List::EMPTY, batch: None, pairs: Pairs::None };
            self.new_program(name, interface, Box::new(move || Ok(program.clone())))
        })
    }

    /// Program that computes the splits of a row-major or column-major B.
    pub fn splits_of_b(&self, arith: Arith, by_column: bool) -> Result<Arc<CachedProgram>> {
        let name = format!("{arith}{}", if by_column { ", by column" } else { "" });
        self.kept("splits", &name, || {
            let interface =
                Interface::Gemm { operands: List::EMPTY, batch: None, pairs: Pairs::None };
            let lower = move || Ok(SgemmSpec::splits_of_b(arith, by_column)?);
            self.new_program(&name, interface, Box::new(lower))
        })
    }

    /// Program that folds one shard of a reduction.
    pub(crate) fn of_shard(&self, line: &str) -> Result<Arc<CachedProgram>> {
        self.of_pieces("shard", line, ReducePlan::program_of_shard)
    }

    /// Program that folds the partial results of all shards.
    pub fn of_partials(&self, line: &str) -> Result<Arc<CachedProgram>> {
        self.of_pieces("partials", line, ReducePlan::program_of_partials)
    }

    fn of_pieces(
        &self,
        family: &'static str,
        line: &str,
        program: fn(&ReducePlan) -> Result<VerifiedProgram, SpecErrors>,
    ) -> Result<Arc<CachedProgram>> {
        self.kept(family, line, || {
            let plan: ReducePlan = line.parse()?;
            let interface = plan.spec().interface();
            let lower = move || Ok(program(&plan)?);
            self.new_program(line, interface, Box::new(lower))
        })
    }

    fn new_program(&self, name: &str, interface: Interface, lower: Lower) -> Result<CachedProgram> {
        let program = lower()?;
        let artifact = Artifact::new(name.to_owned(), interface, &program);
        Ok(self.lowered(artifact, program, lower))
    }

    /// Program that has just been lowered. A simulator keeps the bodies of its kernels.
    fn lowered(&self, artifact: Artifact, program: VerifiedProgram, lower: Lower) -> CachedProgram {
        let made = CachedProgram::new(Cow::Owned(artifact), lower);
        if self.is_simulated {
            made.keep(program);
        }
        made
    }

    /// Returns the program cached under a family and a name, or builds and caches it.
    fn kept(
        &self,
        family: &'static str,
        name: &str,
        make: impl FnOnce() -> Result<CachedProgram>,
    ) -> Result<Arc<CachedProgram>> {
        let known = self.by_line.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = known.get(family, name) {
            return Ok(program);
        }
        drop(known);
        // Two threads may both build the program. The map keeps the first that is inserted.
        let made = Arc::new(make()?);
        let mut known = self.by_line.write().unwrap_or_else(PoisonError::into_inner);
        let (kept, evicted) = known.insert(family, name, made);
        // An evicted program waits for its launches, which no other thread should do.
        drop(known);
        drop(evicted);
        Ok(kept)
    }
}

/// Lowering of a spec that has been checked.
fn lower<S: Family>(line: &str) -> Lower {
    let line = line.to_owned();
    Box::new(move || Ok(line.parse::<S::Plan>()?.program()?))
}

/// Program ready for launches on one device.
pub struct CachedProgram {
    artifact: Cow<'static, Artifact>,
    kernels: Box<[CachedKernel]>,
    calls: CallCache,
    /// Plan of a GEMM. Only launches with prepared splits need it.
    plan: OnceLock<SgemmPlan>,
    /// Programs that take the splits of A, of B, or of both as inputs.
    given: [OnceLock<Option<Arc<CachedProgram>>>; 3],
    #[cfg_attr(not(feature = "sim"), expect(dead_code, reason = "a GPU needs no bodies"))]
    lower: Lower,
    /// Kernels with their bodies, once a simulator has needed them.
    bodies: OnceLock<VerifiedProgram>,
    /// True for the program of a macro call, which is never evicted.
    is_constant: AtomicBool,
}

impl CachedProgram {
    fn new(artifact: Cow<'static, Artifact>, lower: Lower) -> Self {
        let kernels = artifact.program.contracts.iter().map(|_| CachedKernel::default()).collect();
        let (plan, given, bodies) = (OnceLock::new(), Default::default(), OnceLock::new());
        let is_constant = AtomicBool::new(false);
        let calls = CallCache::default();
        Self { artifact, kernels, calls, plan, given, lower, bodies, is_constant }
    }

    fn keep(&self, program: VerifiedProgram) {
        _ = self.bodies.set(program);
    }

    /// Returns true for the program of a macro call.
    pub(crate) fn is_constant(&self) -> bool {
        self.is_constant.load(Ordering::Relaxed)
    }

    /// Returns true if a macro call or a captured graph refers to the program.
    fn is_permanent(&self) -> bool {
        let mut given = self.given.iter().filter_map(|given| given.get()?.as_ref());
        self.is_constant()
            || self.codes().any(LoadedCode::is_captured)
            || given.any(|given| given.is_permanent())
    }

    /// Records that no captured graph refers to the program any more.
    fn release(&self) {
        self.codes().for_each(|code| code.set_captured(false));
        let given = self.given.iter().filter_map(|given| given.get()?.as_ref());
        given.for_each(|given| given.release());
    }

    fn codes(&self) -> impl Iterator<Item = &LoadedCode> {
        self.kernels.iter().filter_map(|kernel| kernel.function.get())
    }

    /// Canonical line of its spec, or its name.
    pub(crate) fn line(&self) -> &str {
        &self.artifact.line
    }

    /// Launches of the program.
    pub(crate) fn program(&self) -> &LaunchProgram {
        &self.artifact.program
    }

    /// Calls of earlier launches.
    pub(crate) fn calls(&self) -> &CallCache {
        &self.calls
    }

    /// The program with the bodies of its kernels, for the simulator. Its first launch lowers it.
    #[cfg(feature = "sim")]
    pub(crate) fn bodies(&self) -> Result<&VerifiedProgram> {
        if let Some(bodies) = self.bodies.get() {
            return Ok(bodies);
        }
        let lowered = (self.lower)()?;
        Ok(self.bodies.get_or_init(|| lowered))
    }

    /// Operands of a call besides the matrices.
    pub(crate) fn operands(&self) -> &[EpilogueArg] {
        self.artifact.interface.operands()
    }

    /// Pairs of columns that the epilogue computes.
    pub(crate) fn pairs(&self) -> Pairs {
        self.artifact.interface.pairs()
    }

    /// Locations of the matrices of a batch.
    pub(crate) fn batch(&self) -> Option<Batch> {
        match self.artifact.interface {
            Interface::Gemm { batch, .. } => batch,
            Interface::Reduction { .. } | Interface::Elementwise { .. } => None,
        }
    }

    /// Axes that a reduction folds.
    pub(crate) fn over(&self) -> Over {
        match self.artifact.interface {
            Interface::Reduction { over, .. } => over,
            Interface::Gemm { .. } | Interface::Elementwise { .. } => {
                unreachable!("kernel/reduce.rs: it asks for programs of reductions only")
            }
        }
    }

    /// Operator of a reduction whose result is an index.
    pub(crate) fn index(&self) -> Option<Op> {
        match self.artifact.interface {
            Interface::Reduction { index, .. } => index,
            Interface::Gemm { .. } | Interface::Elementwise { .. } => None,
        }
    }

    /// Number of elements of each result of a reduction, if it selects several.
    pub(crate) fn topk(&self) -> Option<u32> {
        match self.artifact.interface {
            Interface::Reduction { topk, .. } => topk,
            Interface::Gemm { .. } | Interface::Elementwise { .. } => None,
        }
    }

    /// Returns true if a result may be the same array as an operand.
    pub(crate) fn is_in_place(&self) -> bool {
        matches!(self.artifact.interface, Interface::Elementwise { .. })
    }

    /// Returns true if matrices without padding may be passed as one row of all their elements.
    pub(crate) fn is_flat(&self) -> bool {
        matches!(self.artifact.interface, Interface::Elementwise { is_flat: true, .. })
    }

    /// Plan of a GEMM's program.
    pub(crate) fn gemm(&self) -> Result<&SgemmPlan> {
        if let Some(plan) = self.plan.get() {
            return Ok(plan);
        }
        let plan = self.artifact.line.parse()?;
        Ok(self.plan.get_or_init(|| plan))
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
            let made = self.with_splits(splits)?.map(Arc::new);
            // If two threads build it, the first result is kept.
            _ = kept.set(made);
        }
        Ok(kept.get().and_then(Option::as_ref))
    }

    fn with_splits(&self, splits: [bool; 2]) -> Result<Option<CachedProgram>> {
        let plan = self.gemm()?.clone();
        let Some(program) = plan.program_with_splits(splits)? else { return Ok(None) };
        let (line, interface) = (self.artifact.line.to_string(), self.artifact.interface.clone());
        let artifact = Artifact::new(line, interface, &program);
        let lower = move || {
            let program = plan.program_with_splits(splits)?;
            program.ok_or_else(|| Error::Internal("a program with splits is gone".to_owned()))
        };
        Ok(Some(Self::new(Cow::Owned(artifact), Box::new(lower))))
    }

    pub(crate) fn kernel(&self, id: KernelId) -> &CachedKernel {
        match self.kernels.get(id.0) {
            Some(kernel) => kernel,
            None => unreachable!("VerifiedProgram::new: the kernel exists"),
        }
    }

    pub(crate) fn contract(&self, id: KernelId) -> &Contract {
        self.program().contract(id)
    }

    /// CUDA C of a kernel.
    pub(crate) fn source(&self, id: KernelId) -> &str {
        match self.artifact.sources.get(id.0) {
            Some(source) => source,
            None => unreachable!("Artifact::new: every kernel has a source"),
        }
    }

    /// Numbers of all kernels.
    pub(crate) fn ids(&self) -> impl Iterator<Item = KernelId> {
        (0..self.kernels.len()).map(KernelId)
    }

    /// Returns true if the machine code of all kernels is loaded.
    pub(crate) fn is_loaded(&self) -> bool {
        self.kernels.iter().all(|kernel| kernel.function.get().is_some())
    }

    /// Returns true if the kernels take a matrix as column-major.
    pub(crate) fn by_column(&self, operand: Operand) -> bool {
        let mut arrays = self.program().contracts.iter().flat_map(Contract::arrays);
        // The last two dimensions are rows and columns. A batch has a dimension before them.
        arrays.any(|array| array.operand == operand && array.contiguous_dim() + 2 == array.rank())
    }

    /// Returns true if every kernel takes matrices with padded rows or columns.
    pub(crate) fn takes_pitches(&self) -> bool {
        self.program().contracts.iter().all(Contract::takes_pitches)
    }
}

/// Cost of loading the machine code of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct KernelLoad {
    pub(crate) took: Duration,
    pub(crate) origin: CodeOrigin,
}

/// Machine code of a kernel after its first launch on a GPU.
#[derive(Default)]
pub struct CachedKernel {
    function: OnceLock<LoadedCode>,
    loading: Mutex<()>,
}

impl CachedKernel {
    /// Resources as the driver reports them, once the machine code is loaded.
    pub(crate) fn resources(&self) -> Option<Resources> {
        let function = self.function.get()?.function();
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

    /// Returns the machine code, and the cost if this call loaded the code.
    ///
    /// If several threads need the same kernel, one thread loads it and the others wait. Threads
    /// that need other kernels do not wait. After a failure the next call tries again.
    pub(crate) fn function(
        &self,
        load: impl FnOnce() -> Result<(LoadedCode, CodeOrigin)>,
    ) -> Result<(&LoadedCode, Option<KernelLoad>)> {
        if let Some(function) = self.function.get() {
            return Ok((function, None));
        }
        let _loading = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        let mut made = None;
        if self.function.get().is_none() {
            let start = Instant::now();
            let (function, origin) = load()?;
            _ = self.function.set(function);
            made = Some(KernelLoad { took: start.elapsed(), origin });
        }
        let function = self.function.get();
        let function =
            function.ok_or_else(|| Error::Internal("a loaded kernel has no code".to_owned()))?;
        Ok((function, made))
    }
}
