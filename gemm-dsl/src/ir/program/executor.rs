//! Execution of programs. The executor follows the steps for a problem. It binds the arguments of
//! each launch to the first kernel whose contract they meet, and passes the launch to a back end.

use super::bind::{BindError, Launches, PackedLayout, ProgramArrays, ProgramValues};
use super::call_cache::{CallCache, Calls};
use super::{KernelId, Launch, LaunchProgram, Slot, Temp};
use crate::ir::contract::{
    Arguments, ArrayParameter, ArrayPlace, BoundArray, Call, Contract, ContractError, MappedArray,
    Parameter, Region,
};
use crate::ir::{Elem, Extent, HostError, HostExpr, Operand, TensorMap, Ty};
use smallvec::SmallVec;

/// Back end that runs the launches of a program.
pub trait ProgramBackend {
    /// Array of the caller, or temporary.
    type Array;

    type Report;

    type Error: From<BindError> + From<HostError> + From<ContractError>;

    /// Returns the location and layout of a caller's array, for contract checks.
    fn describe<'a>(&self, array: &'a Self::Array) -> BoundArray<'a>;

    /// Calls of earlier runs of the program, if the back end keeps them.
    fn call_cache(&self) -> Option<&CallCache> {
        None
    }

    /// Returns true if the device has the instructions of a kernel. A launch skips optional kernels
    /// that the device cannot run.
    fn runs(&self, _contract: &Contract) -> bool {
        true
    }

    /// Prepares a kernel for launching, for example by compilation. All kernels of a run are
    /// prepared before the first temporary is allocated. A run whose kernels cannot be compiled
    /// therefore allocates nothing.
    ///
    /// # Errors
    /// Returns the back end's error if the kernel cannot be prepared.
    fn prepare(&mut self, _kernel: KernelId) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Allocates a temporary before the first launch that uses it. The address must be aligned to
    /// 256 bytes, as contracts assume.
    ///
    /// # Errors
    /// Returns the back end's error if the allocation fails.
    fn temporary(&mut self, temporary: &Temporary<'_>) -> Result<Self::Array, Self::Error>;

    /// Launches a kernel. The executor has checked that the arguments meet the kernel's contract.
    ///
    /// # Errors
    /// Returns the back end's error if the launch fails.
    fn launch(
        &mut self,
        launch: &KernelLaunch<'_, Self::Array>,
    ) -> Result<Self::Report, Self::Error>;
}

#[derive(Clone, Debug)]
pub struct Temporary<'p> {
    pub number: usize,
    pub temp: &'p Temp<HostExpr>,
    pub layout: PackedLayout,
}

impl Temporary<'_> {
    fn describe(&self) -> BoundArray<'_> {
        let place = ArrayPlace::One(Region { address: 0, len: self.layout.len });
        let Temp { name, elem, .. } = *self.temp;
        BoundArray { name, elem, place, axes: Some(&self.layout.axes) }
    }
}

/// Launch of one kernel, with its arguments.
#[derive(Clone, Debug)]
pub struct KernelLaunch<'a, A> {
    pub kernel: KernelId,
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// True if this is the main launch of the program.
    pub is_main: bool,
    /// Values of all parameters, in their order.
    pub arguments: &'a [KernelArgument<'a, A>],
}

impl<'a, A> KernelLaunch<'a, A> {
    /// Bits of the scalar arguments, in parameter order.
    pub fn scalars(&self) -> impl Iterator<Item = u64> {
        self.arguments.iter().filter_map(|argument| match argument {
            KernelArgument::Scalar(_, bits) => Some(*bits),
            KernelArgument::Array(_) | KernelArgument::TensorMap { .. } => None,
        })
    }

    /// Array arguments, in parameter order. A tensor map counts as its array.
    pub fn arrays(&self) -> impl Iterator<Item = &'a A> {
        self.arguments.iter().filter_map(|argument| match argument {
            KernelArgument::Scalar(..) => None,
            KernelArgument::Array(array) | KernelArgument::TensorMap { array, .. } => Some(*array),
        })
    }
}

#[derive(Clone, Debug)]
pub enum KernelArgument<'a, A> {
    /// Number with its type, given by its bits.
    Scalar(Ty, u64),
    Array(&'a A),
    /// Array that the kernel accesses through its tensor map.
    TensorMap {
        array: &'a A,
        /// Element type as which the kernel reads the array.
        elem: Elem,
        /// Tensor map as the kernel declares it.
        map: &'a TensorMap,
        /// Shape of the array in this launch.
        mapped: &'a MappedArray,
    },
}

/// Record of a run of a program.
#[derive(Clone, Debug)]
pub struct Execution<R> {
    /// Kernel of the main launch; known even if nothing was launched.
    pub main: KernelId,
    pub launches: SmallVec<[ExecutedLaunch<R>; 2]>,
}

#[derive(Clone, Debug)]
pub struct ExecutedLaunch<R> {
    pub kernel: KernelId,
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// True if this is the main launch of the program.
    pub is_main: bool,
    /// Report of the back end; `None` if the grid was empty and nothing was launched.
    pub report: Option<R>,
}

impl LaunchProgram {
    /// Runs the program for a problem. For a problem in the back end's [`CallCache`], a run with
    /// few launches allocates nothing on the host.
    ///
    /// # Errors
    /// If the arguments of a launch meet no kernel's contract, returns the violation of the last
    /// contract, which demands least. Also returns the errors of values that cannot be
    /// computed, and of the back end.
    pub fn execute<B: ProgramBackend>(
        &self,
        values: &ProgramValues,
        arrays: &ProgramArrays<'_, B::Array>,
        backend: &mut B,
    ) -> Result<Execution<B::Report>, B::Error> {
        let launches = self.launches(values)?;
        let main = main_launch(&launches);
        let temps = SmallVec::new();
        let (inputs, outputs) = (arrays.inputs(), arrays.outputs());
        let mut executor = Executor { program: self, values, inputs, outputs, backend, temps };
        let chosen = executor.calls(&launches)?;
        for (kernel, call) in chosen.iter() {
            if !call.is_empty() {
                executor.backend.prepare(*kernel)?;
            }
        }
        let main_kernel = main.map_or(KernelId(0), |number| chosen[number].0);
        let mut executed = SmallVec::new();
        for (number, (kernel, call)) in chosen.iter().enumerate() {
            let (kernel, grid, is_main) = (*kernel, call.grid, main == Some(number));
            let report = match call.is_empty() {
                true => None,
                false => Some(executor.launch(launches[number], kernel, call, is_main)?),
            };
            executed.push(ExecutedLaunch { kernel, grid, is_main, report });
        }
        Ok(Execution { main: main_kernel, launches: executed })
    }

    /// Contract of a kernel.
    pub fn contract(&self, kernel: KernelId) -> &Contract {
        match self.contracts.get(kernel.0) {
            Some(contract) => contract,
            None => unreachable!("check: every kernel is there"),
        }
    }
}

/// Returns the index of the main launch of a run: the launch of the preferred kernel or one of its
/// variants, otherwise the first launch. `None` if there are no launches.
fn main_launch(launches: &Launches<'_>) -> Option<usize> {
    let is_preferred = |launch: &&Launch<HostExpr>| launch.choose.contains(&KernelId(0));
    launches.iter().position(is_preferred).or((!launches.is_empty()).then_some(0))
}

/// State of a running program.
struct Executor<'a, B: ProgramBackend> {
    program: &'a LaunchProgram,
    values: &'a ProgramValues,
    inputs: &'a [&'a B::Array],
    outputs: &'a [&'a B::Array],
    backend: &'a mut B,
    /// Temporaries that launches have used so far, with their arrays if they are allocated.
    temps: SmallVec<[(Temporary<'a>, Option<B::Array>); 2]>,
}

impl<B: ProgramBackend> Executor<'_, B> {
    /// Returns the kernel and the checked call of each launch.
    fn calls(&mut self, launches: &Launches<'_>) -> Result<Calls, B::Error> {
        for (_, slot) in launches.iter().flat_map(|launch| launch.bind.iter()) {
            if let Slot::Temp(number) = slot {
                self.declare(*number)?;
            }
        }
        let arrays = self.inputs.iter().chain(self.outputs);
        let arrays = arrays.map(|array| self.backend.describe(array));
        let cache = self.backend.call_cache();
        if let Some(calls) = cache.and_then(|cache| cache.get(self.values, arrays.clone())) {
            return Ok(calls);
        }
        let chosen = launches.iter().map(|launch| self.choose(launch));
        let calls = chosen.collect::<Result<Calls, _>>()?;
        if let Some(cache) = cache {
            cache.insert(self.values, arrays, &calls);
        }
        Ok(calls)
    }

    /// Returns the first kernel of a launch whose contract is met, without the optional kernels
    /// that the device cannot run.
    fn choose(&self, launch: &Launch<HostExpr>) -> Result<(KernelId, Call), B::Error> {
        let mut extents = SmallVec::<[(Extent, u64); 8]>::new();
        for (extent, value) in &launch.extents {
            extents.push((*extent, self.values.eval(value)?));
        }
        let arrays = launch.bind.iter().map(|(operand, slot)| (*operand, self.describe(*slot)));
        let arrays: SmallVec<[(Operand, BoundArray<'_>); 8]> = arrays.collect();
        let arguments = self.values.arguments();
        let given = Arguments { extents: &extents, arguments, arrays: &arrays };
        let mut unmet = None;
        for &id in &launch.choose {
            let contract = self.program.contract(id);
            if contract.is_optional && !self.backend.runs(contract) {
                continue;
            }
            match contract.bind(&given) {
                Ok(call) => return Ok((id, call)),
                Err(error) => unmet = Some(error),
            }
        }
        match unmet {
            Some(error) => Err(error.into()),
            None => unreachable!("check: a launch has a kernel"),
        }
    }

    /// Computes the layouts of the temporaries up to `number`.
    fn declare(&mut self, number: usize) -> Result<(), HostError> {
        for number in self.temps.len()..=number {
            let temp = &self.program.temps[number];
            let layout = self.values.packed(&temp.dims)?;
            self.temps.push((Temporary { number, temp, layout }, None));
        }
        Ok(())
    }

    fn describe(&self, slot: Slot) -> BoundArray<'_> {
        match slot {
            Slot::Input(n) => self.backend.describe(self.inputs[n]),
            Slot::Output(n) => self.backend.describe(self.outputs[n]),
            Slot::Temp(n) => self.temps[n].0.describe(),
        }
    }

    fn launch(
        &mut self,
        launch: &Launch<HostExpr>,
        kernel: KernelId,
        call: &Call,
        is_main: bool,
    ) -> Result<B::Report, B::Error> {
        let params = &self.program.contract(kernel).params;
        for param in params {
            if let Parameter::Array(array) = param
                && let Slot::Temp(number) = slot_of(launch, array.operand)
                && let (temporary, made @ None) = &mut self.temps[number]
            {
                *made = Some(self.backend.temporary(temporary)?);
            }
        }
        let Self { inputs, outputs, backend, temps, .. } = self;
        let array = |slot| match slot {
            Slot::Input(n) => inputs[n],
            Slot::Output(n) => outputs[n],
            Slot::Temp(n) => temps[n].1.as_ref().unwrap_or_else(|| unreachable!("made above")),
        };
        let mut maps = call.maps.iter();
        let mut arguments = SmallVec::<[_; 16]>::new();
        for (param, bits) in params.iter().zip(&call.scalars) {
            arguments.push(match param {
                Parameter::Scalar { ty, .. } => KernelArgument::Scalar(*ty, *bits),
                Parameter::Array(param) => {
                    array_argument(param, array(slot_of(launch, param.operand)), &mut maps)
                }
            });
        }
        let (grid, arguments) = (call.grid, &arguments[..]);
        backend.launch(&KernelLaunch { kernel, grid, is_main, arguments })
    }
}

/// Returns the argument for an array parameter. A tensor map takes the next mapped array of the
/// call.
fn array_argument<'a, A>(
    param: &'a ArrayParameter,
    array: &'a A,
    maps: &mut impl Iterator<Item = &'a MappedArray>,
) -> KernelArgument<'a, A> {
    let Some(map) = &param.map else { return KernelArgument::Array(array) };
    let Some(mapped) = maps.next() else {
        unreachable!("Contract::bind: a call has each tensor map, in order")
    };
    KernelArgument::TensorMap { array, elem: param.elem, map, mapped }
}

/// Array that a launch binds to an operand of its kernels.
fn slot_of(launch: &Launch<HostExpr>, operand: Operand) -> Slot {
    let bound = launch.bind.iter().find(|(bound, _)| *bound == operand);
    bound.map_or_else(|| unreachable!("check: every operand is bound"), |(_, slot)| *slot)
}
