//! Execution of a kernel's program on arrays of a device.

#[cfg(test)]
mod tests;

use crate::backend::StepCounters;
use crate::backend::{Backend, Place};
use crate::device::On;
use crate::error::{Error, Result};
use crate::kernel_arg::{Address, KernelArg};
use crate::program::CachedProgram;
use crate::report::{LaunchReport, LoadTimes};
use crate::shape::{AXES, CallBatch, Shape};
use crate::trace::span;
use gemm_dsl::ir::Operand;
use gemm_dsl::ir::contract::{self, ArrayAxis, Contract, Region, meet};
use gemm_dsl::ir::program::{
    CallCache, KernelArgument, KernelId, KernelLaunch, ProgramBackend, ProgramValues, TempFill,
    Temporary,
};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// Array or list of arrays bound to an operand: address, extents and strides.
pub(crate) struct BoundArray<'n, B: Backend> {
    /// Name in messages.
    name: &'n str,
    place: Place<'n, B>,
    /// Extents and strides of the array, or of each array of a list.
    axes: [ArrayAxis; AXES],
    rank: usize,
}

impl<'n, B: Backend> BoundArray<'n, B> {
    /// Array with these axes, at most five.
    pub(crate) fn array(name: &'n str, place: Place<'n, B>, along: &[ArrayAxis]) -> Self {
        let mut axes = [ArrayAxis { extent: 1, stride: 1 }; AXES];
        let rank = along.len();
        let Some(filled) = axes.get_mut(..rank) else {
            unreachable!("lowering: operands and splits have five dimensions at most")
        };
        filled.copy_from_slice(along);
        Self { name, place, axes, rank }
    }

    pub(crate) fn vector(name: &'n str, place: Place<'n, B>, extent: u64) -> Self {
        let axis = ArrayAxis { extent, stride: 1 };
        Self { name, place, axes: [axis; AXES], rank: 1 }
    }

    /// Matrix, or batch or list of matrices.
    pub(crate) fn matrix(name: &'n str, place: Place<'n, B>, shape: Shape) -> Self {
        let axis = |extent, stride| ArrayAxis { extent: extent as u64, stride: stride as u64 };
        let Shape { rows, cols, row_stride, col_stride, batch, .. } = shape;
        let matrix = [axis(rows, row_stride), axis(cols, col_stride)];
        let batch = batch.filter(|_| matches!(place, Place::One { .. }));
        let batch = batch.map(|batch| batch.array_axes()).unwrap_or_default();
        let mut axes = [ArrayAxis { extent: 1, stride: 1 }; AXES];
        let rank = batch.len() + matrix.len();
        let along = batch.into_iter().chain(matrix);
        axes.iter_mut().zip(along).for_each(|(to, from)| *to = from);
        Self { name, place, axes, rank }
    }

    pub(crate) fn name(&self) -> &'n str {
        self.name
    }

    /// Axes of the batch, if the array is one.
    pub(crate) fn batch(&self) -> &[ArrayAxis] {
        &self.axes[..self.rank.saturating_sub(2)]
    }

    /// Gives a matrix the axes of the launch's batch, of which the kernel has `axes`. All GEMMs
    /// share a single matrix. The contract checks the length of a list, and whether a list is
    /// allowed.
    pub(crate) fn for_each_of(&mut self, batch: &CallBatch, axes: usize) {
        if matches!(self.place, Place::List(_)) {
            return;
        }
        let all = self.axes;
        let (own, matrix) = all[..self.rank].split_at(self.rank.saturating_sub(2));
        let along = batch.axes_of(own, axes).chain(matrix.iter().copied());
        self.rank = axes + matrix.len();
        self.axes.iter_mut().zip(along).for_each(|(to, from)| *to = from);
    }

    /// Returns true for a batch that repeats a single matrix.
    pub(crate) fn is_shared(&self) -> bool {
        let batch = self.batch();
        !batch.is_empty() && batch.iter().all(|axis| axis.stride == 0)
    }

    /// Number of elements of memory from the first element of the shape to the last.
    fn span(&self) -> u64 {
        let axes = self.axes();
        if axes.iter().any(|axis| axis.extent == 0) {
            return 0;
        }
        let reach = axes.iter().map(|axis| (axis.extent - 1).saturating_mul(axis.stride));
        reach.fold(1, u64::saturating_add)
    }

    /// Address and layout, as contracts check them.
    fn describe(&self) -> contract::BoundArray<'_> {
        let place = match &self.place {
            Place::One { address, len } => {
                contract::ArrayPlace::One(Region { address: address.bytes(), len: *len })
            }
            Place::List(list) => contract::ArrayPlace::List(&list.stretches),
        };
        let (name, elem, axes) = (self.name, self.place.elem(), Some(self.axes()));
        contract::BoundArray { name, elem, place, axes }
    }

    /// Kernel argument for this array.
    pub(crate) fn argument(&self) -> KernelArg<'_, B::Address, B::Pointers> {
        match &self.place {
            Place::One { address, .. } => KernelArg::Array(address.clone()),
            Place::List(list) => KernelArg::List { arrays: &list.arrays, pointers: &list.pointers },
        }
    }

    fn axes(&self) -> &[ArrayAxis] {
        &self.axes[..self.rank]
    }

    /// Returns true if both are the same elements of one array, in the same layout.
    fn is_same(&self, other: &Self) -> bool {
        let range = |array: &Self| match &array.place {
            Place::One { address, .. } => Some(address.range(array.span())),
            Place::List(_) => None,
        };
        self.place.elem() == other.place.elem()
            && self.axes() == other.axes()
            && range(self).is_some_and(|own| range(other) == Some(own))
    }

    /// Returns true if the memory ranges of the two arrays overlap, each from its first to its last
    /// element.
    fn meets(&self, other: &Self) -> bool {
        self.with_memory(|own| other.with_memory(|others| meet(own, others)))
    }

    fn with_memory<R>(&self, then: impl FnOnce(&[Range<u64>]) -> R) -> R {
        match &self.place {
            Place::One { address, .. } => match address.range(self.span()) {
                range if range.is_empty() => then(&[]),
                range => then(&[range]),
            },
            Place::List(list) => then(&list.memory),
        }
    }
}

/// Launches a program. `arrays` maps each operand to its array.
pub(crate) fn launch<'a, B: Backend>(
    on: On<'a, B>,
    program: &Arc<CachedProgram>,
    values: &ProgramValues,
    arrays: &[(Operand, BoundArray<'a, B>)],
) -> Result<LaunchReport> {
    span!("launch", spec = program.line());
    let arrays = program.program().bind_arrays(arrays)?;
    check_overlap(arrays.inputs(), arrays.outputs(), program.is_in_place())?;
    let (backend, load_times) = (on.backend, LoadTimes::default());
    let mut run = Run { backend, program, workspace: None, load_times };
    let mut execution = program.program().execute(values, &arrays, &mut run)?;
    execution.launches.retain(|launch| launch.report.is_some());
    if let Some(workspace) = &mut run.workspace {
        B::holds_zeros(workspace, true);
    }
    Ok(LaunchReport { program: Arc::clone(program), execution, load_times: run.load_times })
}

/// Checks that no output shares memory with another array. With `in_place`, an input may be the
/// same elements in the same layout.
fn check_overlap<B: Backend>(
    inputs: &[&BoundArray<'_, B>],
    outputs: &[&BoundArray<'_, B>],
    in_place: bool,
) -> Result<()> {
    for (n, written) in outputs.iter().enumerate() {
        let others = inputs.iter().filter(|input| !in_place || !written.is_same(input));
        for other in others.chain(&outputs[..n]) {
            if written.meets(other) {
                let (written, other) = (written.name.to_owned(), other.name.to_owned());
                return Err(Error::Overlap { written, other });
            }
        }
    }
    Ok(())
}

/// Execution of a program on a back end.
struct Run<'a, 'p, B: Backend> {
    backend: &'a B,
    program: &'p CachedProgram,
    /// Scratch memory. All launches on a GPU share it, one after the other on the stream. It is
    /// locked until all launches of the program have been enqueued.
    workspace: Option<B::Workspace<'a>>,
    load_times: LoadTimes,
}

impl<'a, B: Backend> ProgramBackend for Run<'a, '_, B> {
    type Array = BoundArray<'a, B>;
    type Report = Option<Box<StepCounters>>;
    type Error = Error;

    fn describe<'b>(&self, array: &'b BoundArray<'a, B>) -> contract::BoundArray<'b> {
        array.describe()
    }

    fn call_cache(&self) -> Option<&CallCache> {
        Some(self.program.calls())
    }

    fn runs(&self, contract: &Contract) -> bool {
        self.backend.runs(contract)
    }

    fn prepare(&mut self, kernel: KernelId) -> Result<()> {
        self.load_times.add(self.backend.ready(self.program, kernel)?);
        Ok(())
    }

    fn temporary(&mut self, temporary: &Temporary<'_>) -> Result<BoundArray<'a, B>> {
        let backend = self.backend;
        let workspace = self.workspace.get_or_insert_with(|| backend.workspace());
        let (number, temp, len) = (temporary.number, temporary.temp, temporary.layout.len);
        let address = match temp.fill {
            TempFill::Kept => backend.scratch_of_zeros(workspace, number, temp.elem, len)?,
            TempFill::Uninitialised | TempFill::Zero => {
                backend.scratch(workspace, number, temp.elem, len)?
            }
        };
        if temp.fill == TempFill::Zero {
            backend.zero(&address, len)?;
        }
        Ok(BoundArray::vector(temp.name, Place::One { address, len }, len))
    }

    fn launch(
        &mut self,
        launch: &KernelLaunch<'_, BoundArray<'a, B>>,
    ) -> Result<Option<Box<StepCounters>>> {
        let arguments = launch.arguments.iter().map(kernel_arg);
        let arguments: SmallVec<[KernelArg<'_, _, _>; 16]> = arguments.collect();
        let KernelLaunch { kernel, grid, is_main, .. } = *launch;
        let counters = self.backend.launch(self.program, kernel, grid, is_main, &arguments)?;
        // A later launch of the program may fail, so the scratch memory counts as zero only after
        // the last launch.
        if let Some(workspace) = &mut self.workspace {
            B::holds_zeros(workspace, false);
        }
        Ok(counters)
    }
}

/// Kernel argument in the form of the back end.
fn kernel_arg<'a, B: Backend>(
    argument: &KernelArgument<'a, BoundArray<'_, B>>,
) -> KernelArg<'a, B::Address, B::Pointers> {
    match *argument {
        KernelArgument::Scalar(ty, bits) => KernelArg::scalar(ty, bits),
        KernelArgument::Array(array) => array.argument(),
        KernelArgument::TensorMap { array, elem, map, mapped } => match array.argument() {
            KernelArg::Array(address) => KernelArg::TensorMap { address, elem, map, mapped },
            _ => unreachable!("verify: a tensor map describes a single array"),
        },
    }
}
