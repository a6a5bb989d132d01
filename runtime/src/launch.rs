//! A launch: follows the steps of a program, binds each to the first kernel whose contract its
//! arguments meet, and hands it to the device.

#[cfg(test)]
mod tests;

use crate::compile::Resources;
use crate::device::cuda::Workspace;
use crate::device::{Backend, Device, simulator};
use crate::error::{Error, Result};
use crate::operand::{Place, Shape};
use crate::program::{Loadable, Prepared};
use gemm_dsl::ir::contract::{Array, Axis, Call, Given, Parameter};
use gemm_dsl::ir::program::{Fill, KernelId, Launch, Slot, Temp};
use gemm_dsl::ir::{Ty, Variant};
use gemm_dsl::sim::Counters;
use std::fmt;
use std::sync::Arc;

/// What a launch did.
#[derive(Clone)]
#[non_exhaustive]
pub struct Launched {
    program: Arc<Prepared>,
    /// The kernel chosen for the first step, whether there was anything to launch or not.
    first: KernelId,
    steps: Vec<Ran>,
}

/// A kernel that ran.
#[derive(Clone)]
struct Ran {
    kernel: KernelId,
    grid: [u32; 3],
    counters: Option<Box<Counters>>,
}

/// One kernel launch of a [`Launched`] program.
#[derive(Clone, Copy)]
pub struct LaunchedStep<'a> {
    program: &'a Prepared,
    ran: &'a Ran,
}

impl Launched {
    /// The access variant that ran: of a reduction, the one of the first pass.
    pub fn variant(&self) -> Variant {
        self.program.kernel(self.first).kernel.variant
    }

    /// The number of kernel launches: more than one where a reduction took several passes, 0 where
    /// there was nothing to compute.
    pub fn passes(&self) -> usize {
        self.steps.len()
    }

    /// The kernel launches, in order.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = LaunchedStep<'_>> {
        self.steps.iter().map(|ran| LaunchedStep { program: &self.program, ran })
    }

    /// Registers of a thread, its stack and the static shared memory of a block, as the driver
    /// reports them of the machine code of the variant that ran. Spilled registers lie on the
    /// stack; the driver does not tell them apart, so their fields are 0. None in the simulator.
    pub fn resources(&self) -> Option<Resources> {
        self.program.kernel(self.first).resources()
    }

    /// What the simulator counted in the first pass; none on a GPU.
    pub fn counters(&self) -> Option<&Counters> {
        self.steps.first()?.counters.as_deref()
    }
}

impl<'a> LaunchedStep<'a> {
    /// The name of the kernel.
    pub fn kernel(&self) -> &'a str {
        &self.loadable().kernel.name
    }

    /// Which of the kernels that compute the same it is.
    pub fn variant(&self) -> Variant {
        self.loadable().kernel.variant
    }

    /// The blocks along x, y and z.
    pub fn grid(&self) -> [u32; 3] {
        self.ran.grid
    }

    /// As [`Launched::resources`], of this kernel.
    pub fn resources(&self) -> Option<Resources> {
        self.loadable().resources()
    }

    /// What the simulator counted; none on a GPU.
    pub fn counters(&self) -> Option<&'a Counters> {
        self.ran.counters.as_deref()
    }

    fn loadable(&self) -> &'a Loadable {
        self.program.kernel(self.ran.kernel)
    }
}

impl fmt::Debug for Launched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launched")
            .field("variant", &self.variant())
            .field("steps", &self.steps().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for LaunchedStep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchedStep")
            .field("kernel", &self.kernel())
            .field("variant", &self.variant())
            .field("grid", &self.grid())
            .finish_non_exhaustive()
    }
}

/// One argument of a launch.
pub(crate) enum Argument {
    /// The bits of a number of 4 bytes.
    Word(u32),
    /// The bits of a number of 8 bytes.
    Double(u64),
    Buffer(Place),
}

/// The most dimensions of an operand.
const MAX_RANK: usize = 2;

/// An array of a program: where it lies and how its elements lie there.
#[derive(Clone)]
pub(crate) struct Bound {
    /// What the caller calls it.
    name: &'static str,
    place: Place,
    /// Elements from the place on that belong to it.
    len: u64,
    axes: [Axis; MAX_RANK],
    rank: usize,
}

impl Bound {
    /// Consecutive elements.
    pub(crate) fn vector(name: &'static str, place: Place, len: u64, extent: u64) -> Self {
        let axis = Axis { extent, stride: 1 };
        Self { name, place, len, axes: [axis; MAX_RANK], rank: 1 }
    }

    /// A matrix.
    pub(crate) fn matrix(name: &'static str, place: Place, len: u64, shape: Shape) -> Self {
        let axis = |extent, stride| Axis { extent: extent as u64, stride: stride as u64 };
        let Shape { rows, cols, row_stride, col_stride, .. } = shape;
        let axes = [axis(rows, row_stride), axis(cols, col_stride)];
        Self { name, place, len, axes, rank: 2 }
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

    fn axes(&self) -> &[Axis] {
        &self.axes[..self.rank]
    }
}

/// A temporary of a program: its shape, and where it lies once a launch has needed it.
struct Temporary {
    len: u64,
    axes: Vec<Axis>,
    place: Option<Place>,
}

/// Launches a program. The extents are in the order of the program's.
pub(crate) fn launch(
    device: &Device,
    program: &Arc<Prepared>,
    inputs: &[Bound],
    outputs: &[Bound],
    extents: &[u64],
) -> Result<Launched> {
    for (n, written) in outputs.iter().enumerate() {
        for other in inputs.iter().chain(&outputs[..n]) {
            if written.place.overlaps(written.span(), &other.place, other.span()) {
                let (written, other) = (written.name.to_owned(), other.name.to_owned());
                return Err(Error::Overlap { written, other });
            }
        }
    }
    let launches = program.program.launches(extents)?;
    let mut run = Run { device, program, inputs, outputs, extents, temps: Vec::new(), held: None };
    let mut steps = Vec::with_capacity(launches.len());
    let mut first = KernelId(0);
    for (number, launch) in launches.into_iter().enumerate() {
        let (kernel, call) = run.choose(launch)?;
        if number == 0 {
            first = kernel;
        }
        if !call.is_empty() {
            let counters = run.launch(launch, kernel, &call)?;
            steps.push(Ran { kernel, grid: call.grid, counters });
        }
    }
    Ok(Launched { program: Arc::clone(program), first, steps })
}

/// A program under way.
struct Run<'a> {
    device: &'a Device,
    program: &'a Prepared,
    inputs: &'a [Bound],
    outputs: &'a [Bound],
    extents: &'a [u64],
    /// As many as launches so far have named.
    temps: Vec<Temporary>,
    /// The scratch memory of a GPU, which all launches of the device share, one after the other on its
    /// stream: it keeps other threads from launching in between.
    held: Option<Workspace<'a>>,
}

impl Run<'_> {
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
            extents.push((*extent, self.program.program.eval(value, self.extents)?));
        }
        let mut arrays = Vec::with_capacity(launch.bind.len());
        for (operand, slot) in &launch.bind {
            arrays.push((*operand, self.array(*slot)?));
        }
        let given = Given { extents: &extents, arguments: &[], arrays: &arrays };
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
            let (mut axes, mut len) = (Vec::with_capacity(dims.len()), 1_u64);
            for dim in dims.iter().rev() {
                let extent = self.program.program.eval(dim, self.extents)?;
                axes.push(Axis { extent, stride: len });
                len = len.saturating_mul(extent);
            }
            axes.reverse();
            self.temps.push(Temporary { len, axes, place: None });
        }
        Ok(())
    }

    fn array(&self, slot: Slot) -> Result<Array<'_>> {
        Ok(match slot {
            Slot::Input(_) | Slot::Output(_) => {
                let bound = self.bound(slot)?;
                let Bound { name, place, len, .. } = bound;
                Array { name, address: place.address(), len: *len, axes: Some(bound.axes()) }
            }
            // The device aligns what it allocates to 256 bytes.
            Slot::Temp(n) => {
                let Temporary { len, axes, .. } = &self.temps[n];
                let name = self.program.program.temps[n].name;
                Array { name, address: 0, len: *len, axes: Some(axes) }
            }
        })
    }

    fn bound(&self, slot: Slot) -> Result<&Bound> {
        let bound = match slot {
            Slot::Input(n) => self.inputs.get(n),
            Slot::Output(n) => self.outputs.get(n),
            Slot::Temp(_) => None,
        };
        bound.ok_or_else(|| Error::Internal(format!("the call has no {slot:?}")))
    }

    /// Where an array lies; a temporary is allocated where it is asked for first.
    fn place(&mut self, slot: Slot) -> Result<Place> {
        let Slot::Temp(n) = slot else {
            return Ok(self.bound(slot)?.place.clone());
        };
        let temp = &mut self.temps[n];
        if let Some(place) = &temp.place {
            return Ok(place.clone());
        }
        let place = match self.device.backend() {
            Backend::Simulator => simulator::scratch(temp.len)?,
            Backend::Gpu(gpu) => {
                let workspace = self.held.get_or_insert_with(|| gpu.workspace());
                let address = workspace.scratch(n, temp.len)?;
                if self.program.program.temps[n].fill == Fill::Zero {
                    gpu.zero(address, temp.len)?;
                }
                Place::Gpu(address)
            }
        };
        temp.place = Some(place.clone());
        Ok(place)
    }

    fn launch(
        &mut self,
        launch: &Launch,
        kernel: KernelId,
        call: &Call,
    ) -> Result<Option<Box<Counters>>> {
        let loadable = self.program.kernel(kernel);
        let params = loadable.kernel.contract().params();
        let mut arguments = Vec::with_capacity(params.len());
        for (param, bits) in params.iter().zip(&call.scalars) {
            arguments.push(match param {
                Parameter::Scalar { ty: Ty::U64, .. } => Argument::Double(*bits),
                Parameter::Scalar { .. } => Argument::Word(*bits as u32),
                Parameter::Array(array) => {
                    let bound = launch.bind.iter().find(|(o, _)| *o == array.operand);
                    let Some((_, slot)) = bound else {
                        unreachable!("VerifiedProgram::new: every operand is bound")
                    };
                    Argument::Buffer(self.place(*slot)?)
                }
            });
        }
        match self.device.backend() {
            Backend::Gpu(gpu) => gpu.launch(loadable, call.grid, &arguments).map(|()| None),
            Backend::Simulator => {
                simulator::launch(&loadable.kernel, arguments).map(|c| Some(Box::new(c)))
            }
        }
    }
}
