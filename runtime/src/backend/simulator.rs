//! The simulator as a device: memory of the process, launches that finish before they return.

use super::{Area, Areas, Backend};
use crate::error::{Error, Result};
use crate::kernel_arg::{Address, KernelArg};
use crate::program::CachedKernel;
use crate::report::StepCounters;
use gemm_dsl::ir::{Elem, ParamKind, VerifiedKernel};
use gemm_sim::{Buffer, BufferArg, Element, Options, Profile, SimError, Trace};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The simulator as a device.
pub struct Simulator(pub(crate) Simulation);

/// What a simulator does ([`Device::simulator_of`](crate::Device::simulator_of)). By default as [`Device::simulator`](crate::Device::simulator)
/// does.
#[derive(Clone)]
pub struct Simulation {
    /// The most instructions that the warps of one launch may execute together; one stands for a statement, a test or a branch.
    pub instructions: u64,
    /// Whether it is also counted what the machine code of each kernel does, as far as that follows from the text
    /// ([`StepReport::compiled_counters`](crate::StepReport::compiled_counters)).
    pub compiled: bool,
    /// Whether it only counts: it looks for no races, and blocks that speak to one another run in one order alone.
    pub unchecked: bool,
    /// Who looks on.
    pub watch: Option<Arc<dyn Watch>>,
}

impl Default for Simulation {
    fn default() -> Self {
        let instructions = Options::default().instructions;
        Self { instructions, compiled: false, unchecked: false, watch: None }
    }
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation")
            .field("instructions", &self.instructions)
            .field("compiled", &self.compiled)
            .field("unchecked", &self.unchecked)
            .field("is_watched", &self.watch.is_some())
            .finish()
    }
}

/// Looks on at what a simulator runs, kernel by kernel ([`Simulation::watch`]).
pub trait Watch: Send + Sync {
    /// The blocks of a launch that are to be recorded, by their numbers: along x first, then y, then z.
    fn blocks(&self, kernel: &VerifiedKernel, grid: [u32; 3]) -> Vec<u32>;

    /// A kernel has run, or has come to a fault.
    fn ran(&self, seen: KernelRun<'_>);
}

/// What was seen of the launch of a kernel.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KernelRun<'a> {
    /// The kernel.
    pub kernel: &'a VerifiedKernel,
    /// The blocks along x, y and z.
    pub grid: [u32; 3],
    /// Whether it is the [main step](crate::LaunchReport::main_step) of its program.
    pub is_main: bool,
    /// What it was charged with, statement by statement; or its fault, which the launch returns too.
    pub ran: Result<&'a Profile, &'a SimError>,
    /// What happened in the blocks that were asked for, as far as they have come.
    pub traces: Vec<Trace>,
    /// What it was launched with.
    pub arguments: Arguments,
}

/// What a kernel was launched with, as it was before the launch: another one may run on the same.
#[derive(Clone, Debug)]
pub struct Arguments {
    buffers: Vec<BufferArg>,
    scalars: Vec<u64>,
}

/// A launch on arguments of another one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Replay {
    /// What it was charged with, statement by statement; or its fault.
    pub ran: Result<Profile, SimError>,
    /// What happened in the blocks that were asked for.
    pub traces: Vec<Trace>,
    /// Its arrays, in the order of the parameters, as it has left them.
    pub buffers: Vec<BufferArg>,
}

impl Arguments {
    /// The value of each parameter of the kernel; none of an array.
    pub fn scalars(&self, kernel: &VerifiedKernel) -> Vec<Option<u64>> {
        let mut scalars = self.scalars.iter().copied();
        let is_scalar = |kind: &ParamKind| matches!(kind, ParamKind::Scalar { .. });
        kernel.params.iter().map(|p| is_scalar(&p.kind).then(|| scalars.next()).flatten()).collect()
    }

    /// The bytes of what each parameter of the kernel was given, of a list those of all its arrays; none of a number.
    pub fn bytes(&self, kernel: &VerifiedKernel) -> Vec<Option<u64>> {
        let bytes = |given: &BufferArg| -> u64 {
            let all = match given {
                BufferArg::One(buffer) => std::slice::from_ref(buffer),
                BufferArg::List(buffers) => buffers,
            };
            all.iter().map(|buffer| buffer.len() as u64 * u64::from(buffer.elem().size())).sum()
        };
        let mut given = self.buffers.iter().map(bytes);
        let is_scalar = |kind: &ParamKind| matches!(kind, ParamKind::Scalar { .. });
        kernel.params.iter().map(|p| if is_scalar(&p.kind) { None } else { given.next() }).collect()
    }

    /// The same, but that each element of an array of `F32` has a number for its bits, so that it can be told wherever it is
    /// moved to: from 1 on, those of an array behind those of the one before. With them the numbers of each array, none of a list
    /// or of another type.
    pub fn numbered(&self) -> (Self, Vec<Range<u64>>) {
        let mut next = 1;
        let number = |given: &BufferArg| match given {
            BufferArg::One(buffer) if buffer.elem() == Elem::F32 => {
                let numbers = next..next + buffer.len() as u64;
                next = numbers.end;
                let bits: Vec<u64> = numbers.clone().collect();
                (BufferArg::One(Buffer::from_bits(Elem::F32, bits.into_iter())), numbers)
            }
            other => (other.copied(), next..next),
        };
        let (buffers, numbers) = self.buffers.iter().map(number).unzip();
        (Self { buffers, scalars: self.scalars.clone() }, numbers)
    }

    /// The same, but that each element of the first array, whatever its type, and of others of `F32` is the last digit of its
    /// index: whole numbers that are small, whose sums can be followed.
    pub fn digits(&self) -> Self {
        let digit = |(number, given): (usize, &BufferArg)| match given {
            BufferArg::One(buffer) if number == 0 || buffer.elem() == Elem::F32 => {
                let elem = buffer.elem();
                let digits = (0..buffer.len()).map(|index| bits_of(elem, (index % 10) as u8));
                BufferArg::One(Buffer::from_bits(elem, digits))
            }
            other => other.copied(),
        };
        let buffers = self.buffers.iter().enumerate().map(digit).collect();
        Self { buffers, scalars: self.scalars.clone() }
    }

    /// Runs a kernel with the same parameters on copies of the arrays, and records blocks by their numbers. It may execute so
    /// many instructions ([`Options::instructions`]).
    ///
    /// # Errors
    /// Arguments that do not fit the kernel. What it is itself at fault with is beside what was seen.
    pub fn replay(
        &self,
        kernel: &VerifiedKernel,
        blocks: &[u32],
        instructions: u64,
    ) -> Result<Replay, SimError> {
        let buffers: Vec<BufferArg> = self.buffers.iter().map(BufferArg::copied).collect();
        let mut options = Options::default();
        options.instructions = instructions;
        let (ran, traces) = gemm_sim::record(kernel, &buffers, &self.scalars, blocks, &options)?;
        Ok(Replay { ran, traces, buffers })
    }
}

/// A small whole number as an element of a type.
fn bits_of(elem: Elem, number: u8) -> u64 {
    match elem {
        Elem::F64 => f64::from(number).to_bits(),
        Elem::F32 | Elem::Tf32 => f32::from(number).to_bits().into(),
        Elem::F16 => half::f16::from_f32(number.into()).to_bits().into(),
        Elem::Bf16 => half::bf16::from_f32(number.into()).to_bits().into(),
        _ => number.into(),
    }
}

impl Address for Buffer {
    fn elem(&self) -> Elem {
        self.elem()
    }

    fn bytes(&self) -> u64 {
        self.byte_offset()
    }

    fn part(&self, start: u64, len: u64) -> Option<Self> {
        self.view(usize::try_from(start).ok()?, usize::try_from(len).ok()?)
    }

    fn range(&self, len: u64) -> Range<u64> {
        let start = self.addresses().start as u64;
        let len = len.min(self.len() as u64);
        start..start + len * u64::from(self.elem().size())
    }
}

/// An area that is not inside of its memory: whoever made it has measured it wrongly.
fn outside() -> Error {
    Error::Internal("an area reaches beyond its memory".to_owned())
}

impl Backend for Simulator {
    type Address = Buffer;
    type Allocation = Buffer;
    type Pointers = ();
    type Workspace<'b> = ();

    fn alloc(&self, elem: Elem, len: u64) -> Result<Buffer> {
        let bytes = len.saturating_mul(elem.size().into());
        // The process's allocator would abort.
        let room = usize::try_from(bytes).ok().and_then(|bytes| {
            Vec::<u8>::new().try_reserve_exact(bytes).ok()?;
            usize::try_from(len).ok()
        });
        let len = room.ok_or_else(|| Error::OutOfMemory {
            bytes,
            device: "the simulator (memory of this process)".to_owned(),
        })?;
        Ok(Buffer::zeros_of(elem, len))
    }

    fn address(allocation: &Buffer) -> Buffer {
        allocation.clone()
    }

    /// The simulator is given the arrays.
    fn pointers(&self, _: &[Buffer]) -> Result<()> {
        Ok(())
    }

    fn zero(&self, at: &Buffer, len: u64) -> Result<()> {
        if let Some(part) = at.part(0, len) {
            part.zero();
        }
        Ok(())
    }

    fn write<T: Element>(&self, to: &Buffer, elements: &[T]) -> Result<()> {
        if !to.copy_from(elements) {
            unreachable!("the caller has allocated for these elements")
        }
        Ok(())
    }

    fn read<T: Element>(&self, from: &Buffer, len: u64) -> Result<Vec<T>> {
        let elements = from.part(0, len).and_then(|part| part.to_vec_of());
        Ok(elements.unwrap_or_else(|| unreachable!("the elements are there, and of this type")))
    }

    fn workspace(&self) {}

    fn scratch(&self, _: &mut (), _: usize, elem: Elem, len: u64) -> Result<Buffer> {
        self.alloc(elem, len)
    }

    /// Zeros of its own for each run, which is not one after the other here.
    fn scratch_of_zeros(&self, _: &mut (), _: usize, elem: Elem, len: u64) -> Result<Buffer> {
        self.alloc(elem, len)
    }

    fn holds_zeros(_: &mut (), _: bool) {}

    fn launch(
        &self,
        cached: &CachedKernel,
        grid: [u32; 3],
        is_main: bool,
        arguments: Vec<KernelArg<'_, Buffer, ()>>,
    ) -> Result<Option<Box<StepCounters>>> {
        let (mut buffers, mut scalars) = (Vec::new(), Vec::new());
        for argument in arguments {
            match argument {
                KernelArg::Word(bits) => scalars.push(bits.into()),
                KernelArg::Double(bits) => scalars.push(bits),
                KernelArg::Array(buffer) | KernelArg::TensorMap { address: buffer, .. } => {
                    buffers.push(BufferArg::One(buffer));
                }
                KernelArg::List { arrays, .. } => buffers.push(BufferArg::List(arrays.to_vec())),
            }
        }
        // A `Call` does not say which arrays it was bound with: the simulator binds these itself.
        let mut options = Options::default();
        let Simulation { instructions, compiled, unchecked, watch } = &self.0;
        options.instructions = *instructions;
        options.compiled = *compiled;
        options.unchecked = *unchecked;
        let kernel = &cached.kernel;
        let Some(watch) = watch else {
            let profile = gemm_sim::profile(kernel, &buffers, &scalars, &options)?;
            return Ok(Some(Box::new(StepCounters::from_profile(&profile))));
        };
        let blocks = watch.blocks(kernel, grid);
        let before = buffers.iter().map(BufferArg::copied).collect();
        let (ran, traces) = gemm_sim::record(kernel, &buffers, &scalars, &blocks, &options)?;
        let arguments = Arguments { buffers: before, scalars };
        watch.ran(KernelRun { kernel, grid, is_main, ran: ran.as_ref(), traces, arguments });
        Ok(Some(Box::new(StepCounters::from_profile(&ran?))))
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
}

impl Areas for Simulator {
    fn copy_area(&self, from: &Area<Self>, to: &Area<Self>) -> Result<()> {
        for (from, to) in from.lines().zip(to.lines()) {
            let (from, to) = (from.ok_or_else(outside)?, to.ok_or_else(outside)?);
            if !to.copy_of(&from) {
                return Err(outside());
            }
        }
        Ok(())
    }

    fn read_area<T: Element>(&self, from: &Area<Self>) -> Result<Vec<T>> {
        let mut all = Vec::with_capacity(from.len());
        for line in from.lines() {
            let line: Option<Vec<T>> = line.and_then(|line| line.to_vec_of());
            all.extend(line.ok_or_else(outside)?);
        }
        Ok(all)
    }

    fn write_area<T: Element>(&self, to: &Area<Self>, elements: &[T]) -> Result<()> {
        let lines = to.lines().zip(elements.chunks(to.cols.max(1)));
        for (line, elements) in lines {
            if !line.is_some_and(|line| line.copy_from(elements)) {
                return Err(outside());
            }
        }
        Ok(())
    }
}
