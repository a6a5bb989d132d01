//! A launch: follows the steps of a program, binds each to the first kernel whose contract its
//! arguments meet, and hands it to the device.

#[cfg(test)]
mod tests;

use crate::backend::{Backend, Place};
use crate::device::On;
use crate::error::{Error, Result};
use crate::kernel_arg::{Address, Argument, MapDescription};
use crate::program::CachedProgram;
use crate::report::StepCounters;
use crate::report::{LaunchReport, LoadTimes, StepRun};
use crate::shape::{Batch, Shape};
use gemm_dsl::ir::contract::{self, Arguments, ArrayAxis, Call, Parameter, Region, meet};
use gemm_dsl::ir::program::{KernelId, Launch, ProgramValues, Slot, Temp, TempFill};
use gemm_dsl::ir::{Extent, VerifiedProgram};
use std::ops::Range;
use std::sync::Arc;

/// The most dimensions of an operand.
const MAX_RANK: usize = 3;

/// An array of a program, or a list of them: where it lies and how its elements lie there.
pub(crate) struct BoundArray<'n, B: Backend> {
    /// What the caller calls it.
    name: &'n str,
    place: Place<'n, B>,
    /// Its shape; of a list, that of each array.
    axes: [ArrayAxis; MAX_RANK],
    rank: usize,
}

impl<'n, B: Backend> BoundArray<'n, B> {
    /// Elements along so many axes, three at most.
    pub(crate) fn array(name: &'n str, place: Place<'n, B>, along: &[ArrayAxis]) -> Self {
        let mut axes = [ArrayAxis { extent: 1, stride: 1 }; MAX_RANK];
        let rank = along.len().min(MAX_RANK);
        axes[..rank].copy_from_slice(&along[..rank]);
        Self { name, place, axes, rank }
    }

    /// Consecutive elements.
    pub(crate) fn vector(name: &'n str, place: Place<'n, B>, extent: u64) -> Self {
        let axis = ArrayAxis { extent, stride: 1 };
        Self { name, place, axes: [axis; MAX_RANK], rank: 1 }
    }

    /// A matrix, or a batch or a list of them.
    pub(crate) fn matrix(name: &'n str, place: Place<'n, B>, shape: Shape) -> Self {
        let axis = |extent, stride| ArrayAxis { extent: extent as u64, stride: stride as u64 };
        let Shape { rows, cols, row_stride, col_stride, batch, .. } = shape;
        let (rows, cols) = (axis(rows, row_stride), axis(cols, col_stride));
        let (axes, rank) = match (batch, &place) {
            (Some(Batch { count, distance }), Place::One { .. }) => {
                ([axis(count, distance), rows, cols], 3)
            }
            (None, _) | (_, Place::List(_)) => ([rows, cols, cols], 2),
        };
        Self { name, place, axes, rank }
    }

    /// For the products of a batch, if it is one, as many as C has matrices: what is neither a batch nor a
    /// list itself is the same for all of them.
    ///
    /// # Errors
    /// [`Error::Extents`] for a batch of another number of matrices. Of a list the contract says so, which
    /// knows whether one is wanted.
    pub(crate) fn for_each_of(mut self, products: Option<usize>) -> Result<Self> {
        let Some(products) = products else { return Ok(self) };
        let found = match &self.place {
            Place::List(_) => return Ok(self),
            // It was made of a shape, whose extents are of type usize.
            Place::One { .. } if self.rank == MAX_RANK => self.axes[0].extent as usize,
            Place::One { .. } => {
                self.axes.copy_within(..self.rank, 1);
                self.axes[0] = ArrayAxis { extent: products as u64, stride: 0 };
                self.rank += 1;
                return Ok(self);
            }
        };
        if found == products {
            return Ok(self);
        }
        let (first, other) = ((self.name.to_owned(), found), ("c".to_owned(), products));
        Err(Error::Extents { extent: Extent::BATCH, first, other })
    }

    /// Whether it is a batch of which all matrices are one.
    pub(crate) fn is_shared(&self) -> bool {
        self.rank == MAX_RANK && self.axes[0].stride == 0
    }

    /// Elements from the first of its shape to the last.
    fn span(&self) -> u64 {
        let axes = self.axes();
        if axes.iter().any(|axis| axis.extent == 0) {
            return 0;
        }
        let reach = axes.iter().map(|axis| (axis.extent - 1).saturating_mul(axis.stride));
        reach.fold(1, u64::saturating_add)
    }

    fn axes(&self) -> &[ArrayAxis] {
        &self.axes[..self.rank]
    }

    /// Whether they share memory, from the first of their shapes to the last.
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

/// A temporary of a program: its shape, and where it lies once a launch has needed it.
struct Temporary<A> {
    len: u64,
    axes: Vec<ArrayAxis>,
    address: Option<A>,
}

/// Launches a program. The problem is its extents, then the bits of the caller's numbers, both in the order
/// of the program's.
pub(crate) fn launch<B: Backend>(
    on: On<'_, B>,
    program: &Arc<CachedProgram>,
    inputs: &[BoundArray<'_, B>],
    outputs: &[BoundArray<'_, B>],
    problem: &[u64],
) -> Result<LaunchReport> {
    for (n, written) in outputs.iter().enumerate() {
        for other in inputs.iter().chain(&outputs[..n]) {
            if written.meets(other) {
                let (written, other) = (written.name.to_owned(), other.name.to_owned());
                return Err(Error::Overlap { written, other });
            }
        }
    }
    let known = program.program.known(problem)?;
    let launches = program.program.launches(&known)?;
    let (backend, temps) = (on.backend, Vec::new());
    let mut run = Run { backend, program, inputs, outputs, known: &known, temps, held: None };
    // Whatever is compiled is so before any scratch memory is held, which other threads may wait for.
    let main = VerifiedProgram::main_of(&launches);
    let (mut chosen, mut took) = (Vec::with_capacity(launches.len()), LoadTimes::default());
    for launch in launches {
        let (kernel, call) = run.choose(launch)?;
        if !call.is_empty() {
            took.add(backend.ready(program.kernel(kernel))?);
        }
        chosen.push((launch, kernel, call));
    }
    let main_kernel = main.map_or(KernelId(0), |number| chosen[number].1);
    let mut steps = Vec::with_capacity(chosen.len());
    for (number, (launch, kernel, call)) in chosen.into_iter().enumerate() {
        if !call.is_empty() {
            let is_main = main == Some(number);
            let counted = run.launch(launch, kernel, &call, is_main)?;
            steps.push(StepRun { kernel, grid: call.grid, is_main, counted });
        }
    }
    if let Some(workspace) = &mut run.held {
        B::holds_zeros(workspace, true);
    }
    Ok(LaunchReport { program: Arc::clone(program), main: main_kernel, steps, took })
}

/// A program under way.
struct Run<'a, B: Backend> {
    backend: &'a B,
    program: &'a CachedProgram,
    inputs: &'a [BoundArray<'a, B>],
    outputs: &'a [BoundArray<'a, B>],
    known: &'a ProgramValues,
    /// As many as launches so far have named.
    temps: Vec<Temporary<B::Address>>,
    /// The scratch memory, which on a GPU all launches of the device share, one after the other on its
    /// stream: it keeps other threads from launching in between.
    held: Option<B::Workspace<'a>>,
}

impl<'a, B: Backend> Run<'a, B> {
    /// The first kernel of a launch whose contract is met.
    ///
    /// # Errors
    /// What the last one, the least demanding, is lacking.
    fn choose(&mut self, launch: &Launch) -> Result<(KernelId, Call)> {
        for (_, slot) in &launch.bind {
            if let Slot::Temp(n) = slot {
                self.declare(*n)?;
            }
        }
        let mut extents = Vec::with_capacity(launch.extents.len());
        for (extent, value) in &launch.extents {
            extents.push((*extent, self.program.program.eval(value, self.known)?));
        }
        let mut arrays = Vec::with_capacity(launch.bind.len());
        for (operand, slot) in &launch.bind {
            arrays.push((*operand, self.array(*slot)?));
        }
        let arguments = self.known.arguments();
        let given = Arguments { extents: &extents, arguments, arrays: &arrays };
        let mut unmet = None;
        for &id in &launch.choose {
            match self.program.kernel(id).kernel.contract().bind(&given) {
                Ok(call) => return Ok((id, call)),
                Err(lacking) => unmet = Some(lacking),
            }
        }
        match unmet {
            Some(unmet) => Err(Error::Unmet(Box::new(unmet))),
            None => unreachable!("VerifiedProgram::new: a launch has a kernel"),
        }
    }

    /// Computes the shapes of the temporaries up to this one.
    fn declare(&mut self, number: usize) -> Result<()> {
        while self.temps.len() <= number {
            let Temp { dims, .. } = &self.program.program.temps[self.temps.len()];
            let (axes, len) = self.program.packed(dims, self.known)?;
            self.temps.push(Temporary { len, axes, address: None });
        }
        Ok(())
    }

    fn array(&self, slot: Slot) -> Result<contract::BoundArray<'_>> {
        Ok(match slot {
            Slot::Input(_) | Slot::Output(_) => {
                let bound = self.bound(slot)?;
                let place = match &bound.place {
                    Place::One { address, len } => {
                        contract::ArrayPlace::One(Region { address: address.bytes(), len: *len })
                    }
                    Place::List(list) => contract::ArrayPlace::List(&list.stretches),
                };
                contract::BoundArray {
                    name: bound.name,
                    elem: bound.place.elem(),
                    place,
                    axes: Some(bound.axes()),
                }
            }
            // The device aligns what it allocates to 256 bytes.
            Slot::Temp(n) => {
                let Temporary { len, axes, .. } = &self.temps[n];
                let Temp { name, elem, .. } = self.program.program.temps[n];
                let place = contract::ArrayPlace::One(Region { address: 0, len: *len });
                contract::BoundArray { name, elem, place, axes: Some(axes) }
            }
        })
    }

    fn bound(&self, slot: Slot) -> Result<&'a BoundArray<'a, B>> {
        let bound = match slot {
            Slot::Input(n) => self.inputs.get(n),
            Slot::Output(n) => self.outputs.get(n),
            Slot::Temp(_) => None,
        };
        bound.ok_or_else(|| Error::Internal(format!("the call has no {slot:?}")))
    }

    /// What a kernel is given for an array; a temporary is allocated where it is asked for first.
    fn argument(&mut self, slot: Slot) -> Result<Argument<'a, B::Address, B::Pointers>> {
        let Slot::Temp(n) = slot else {
            return Ok(match &self.bound(slot)?.place {
                Place::One { address, .. } => Argument::Array(address.clone()),
                Place::List(list) => {
                    Argument::List { arrays: &list.arrays, pointers: &list.pointers }
                }
            });
        };
        let temp = &mut self.temps[n];
        if let Some(address) = &temp.address {
            return Ok(Argument::Array(address.clone()));
        }
        let backend = self.backend;
        let workspace = self.held.get_or_insert_with(|| backend.workspace());
        let Temp { elem, fill, .. } = self.program.program.temps[n];
        let address = match fill {
            TempFill::Kept => backend.scratch_of_zeros(workspace, n, elem, temp.len)?,
            TempFill::Uninitialised | TempFill::Zero => {
                backend.scratch(workspace, n, elem, temp.len)?
            }
        };
        if fill == TempFill::Zero {
            backend.zero(&address, temp.len)?;
        }
        temp.address = Some(address.clone());
        Ok(Argument::Array(address))
    }

    fn launch(
        &mut self,
        launch: &Launch,
        kernel: KernelId,
        call: &Call,
        is_main: bool,
    ) -> Result<Option<Box<StepCounters>>> {
        let loadable = self.program.kernel(kernel);
        let params = loadable.kernel.contract().params();
        let mut arguments = Vec::with_capacity(params.len());
        let mut maps = call.maps.iter();
        for (param, bits) in params.iter().zip(&call.scalars) {
            arguments.push(match param {
                Parameter::Scalar { ty, .. } => Argument::scalar(*ty, *bits),
                Parameter::Array(array) => {
                    let bound = launch.bind.iter().find(|(o, _)| *o == array.operand);
                    let Some((_, slot)) = bound else {
                        unreachable!("VerifiedProgram::new: every operand is bound")
                    };
                    let argument = self.argument(*slot)?;
                    let Some(map) = &array.map else {
                        arguments.push(argument);
                        continue;
                    };
                    let Some(mapped) = maps.next() else {
                        unreachable!(
                            "Contract::bind: a call has what each tensor map says, in order"
                        )
                    };
                    let (elem, map, mapped) = (array.elem, map.clone(), mapped.clone());
                    argument.mapped(MapDescription { elem, map, mapped })
                }
            });
        }
        let counted = self.backend.launch(loadable, (call.grid, is_main), arguments)?;
        // Should a later step of the program fail.
        if let Some(workspace) = &mut self.held {
            B::holds_zeros(workspace, false);
        }
        Ok(counted)
    }
}
