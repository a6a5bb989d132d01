//! Programs. A program is one computation: launches of verified kernels, and the memory between
//! them.
//!
//! The extents of the problem and the numbers that the caller passes determine the launches and the
//! lengths of the temporaries. Expressions of a program may contain these extents and numbers, and
//! values computed from them. [`Program::extent`], [`Program::argument`] and [`Program::value`]
//! return the handles for expressions.
//!
//! A launch may list several kernels that compute the same bits but have different contracts. The
//! first kernel whose contract the arguments meet is launched. A kernel may be optional: GPUs
//! without its instructions then take a later kernel.
//!
//! A program has two forms. Lowering builds a [`Program`] with [`Expr`]s and whole kernels, which
//! is checked as a [`VerifiedProgram`]. A [`LaunchProgram`] is derived from it, with compiled
//! [`HostExpr`](super::HostExpr)s and only the contracts of the kernels. Back ends execute this
//! form, and macros write it as a constant.

mod bind;
mod call_cache;
mod check;
mod executor;
mod launch_program;
#[cfg(test)]
mod tests;

pub use bind::{BindError, PackedLayout, ProgramArrays, ProgramInput, ProgramValues};
pub use call_cache::CallCache;
pub use executor::{
    ExecutedLaunch, Execution, KernelArgument, KernelLaunch, ProgramBackend, Temporary,
};
pub use launch_program::LaunchProgram;

use super::{Elem, Expr, Extent, IrError, List, Operand, Scalar, Ty, VerifiedKernel};
use std::borrow::Cow;
use std::ops::Deref;

/// One computation. The check of its rules returns a [`VerifiedProgram`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Extents of the problem. In an expression, extent `i` is the `U64` parameter `i`. The
    /// caller's numbers are the next parameters.
    pub extents: Vec<Extent>,
    /// Arrays that the caller provides for reading.
    pub inputs: Vec<Array>,
    /// Arrays that the caller provides for writing.
    pub outputs: Vec<Array>,
    /// Numbers that the caller passes in addition to the extents.
    pub arguments: Vec<Argument>,
    /// Values of type `U64` that each run computes once and several expressions use. They depend on
    /// extents, numbers and earlier values. In an expression, they are the parameters after the
    /// numbers.
    pub values: Vec<ComputedValue>,
    /// Scratch arrays. Each exists from the first launch that uses it to the last.
    pub temps: Vec<Temp>,
    /// Kernels. The program's source is the source of the first kernel.
    pub kernels: Vec<VerifiedKernel>,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ComputedValue {
    pub expr: Expr,
    /// Count of extents and of the caller's numbers when the value was added. The final count must
    /// be the same, because a handle added later would change the meaning of this one.
    pub behind: usize,
}

/// Number that the caller passes.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// Name in messages.
    pub name: Cow<'static, str>,
    pub ty: Ty,
}

/// An array that the caller provides.
#[derive(Clone, Debug, PartialEq)]
pub struct Array<E: 'static = Expr> {
    /// Operand with which the caller identifies the array.
    pub operand: Operand,
    /// Name in messages.
    pub name: Cow<'static, str>,
    pub elem: Elem,
    /// Number of arrays if the caller passes a list: of type `U64`.
    pub count: Option<E>,
    /// Extents, of type `U64`; for a list, the extents of each array.
    pub dims: List<E>,
    /// True if the array has content when the program starts: an input, or an output that is also
    /// read.
    pub is_given: bool,
}

impl Array {
    fn new(
        operand: Operand,
        name: impl Into<Cow<'static, str>>,
        elem: Elem,
        dims: impl IntoIterator<Item = Expr>,
    ) -> Self {
        let dims = dims.into_iter().collect();
        Self { operand, name: name.into(), elem, count: None, dims, is_given: false }
    }
}

/// Packed array that the program allocates.
#[derive(Clone, Debug, PartialEq)]
pub struct Temp<E: 'static = Expr> {
    /// Name in messages.
    pub name: &'static str,
    pub elem: Elem,
    /// Extents, of type `U64`.
    pub dims: List<E>,
    /// Content before the first launch.
    pub fill: TempFill,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TempFill {
    /// Undefined; the program must write the array before it reads it.
    Uninitialised,
    Zero,
    /// Zeros; each run restores the zeros before it ends.
    Kept,
}

/// Index of a kernel of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelId(pub usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slot {
    Input(usize),
    Output(usize),
    Temp(usize),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Step<E: 'static = Expr> {
    Launch(Launch<E>),
    If {
        /// Condition over the extents, numbers and values.
        cond: E,
        then: List<Step<E>>,
        otherwise: List<Step<E>>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Launch<E: 'static = Expr> {
    /// Kernels that can perform the launch, in order of preference.
    pub choose: List<KernelId>,
    /// Array of the program that is bound to each operand of the kernels.
    pub bind: List<(Operand, Slot)>,
    /// Value of each extent of the kernels, of type `U64`.
    pub extents: List<(Extent, E)>,
}

impl Step {
    /// Launches one of some kernels.
    pub fn launch(
        choose: Vec<KernelId>,
        bind: Vec<(Operand, Slot)>,
        extents: Vec<(Extent, Expr)>,
    ) -> Self {
        let (choose, bind, extents) = (choose.into(), bind.into(), extents.into());
        Self::Launch(Launch { choose, bind, extents })
    }

    /// Takes the first steps if the condition holds, else the others.
    pub fn either(cond: Expr, then: Vec<Step>, otherwise: Vec<Step>) -> Self {
        Self::If { cond, then: then.into(), otherwise: otherwise.into() }
    }
}

impl Program {
    /// Adds an extent of the problem, and returns its handle.
    pub fn extent(&mut self, extent: Extent) -> Expr {
        self.extents.push(extent);
        Expr::Param(Scalar { param: self.extents.len() - 1, ty: Ty::U64 })
    }

    /// Adds an array that the caller provides for this operand, and binds it to the same operand of
    /// a kernel.
    pub fn input(
        &mut self,
        operand: Operand,
        name: impl Into<Cow<'static, str>>,
        elem: Elem,
        dims: impl IntoIterator<Item = Expr>,
    ) -> (Operand, Slot) {
        self.inputs.push(Array { is_given: true, ..Array::new(operand, name, elem, dims) });
        (operand, Slot::Input(self.inputs.len() - 1))
    }

    /// Adds a number that the caller passes, and returns its handle. Add all extents first.
    pub fn argument(&mut self, name: impl Into<Cow<'static, str>>, ty: Ty) -> Expr {
        self.arguments.push(Argument { name: name.into(), ty });
        let param = self.extents.len() + self.arguments.len() - 1;
        Expr::Param(Scalar { param, ty })
    }

    /// Adds a value that each run computes once, and returns its handle. Add all extents and
    /// numbers first.
    pub fn value(&mut self, expr: Expr) -> Expr {
        let behind = self.extents.len() + self.arguments.len();
        self.values.push(ComputedValue { expr, behind });
        Expr::Param(Scalar { param: behind + self.values.len() - 1, ty: Ty::U64 })
    }

    /// Adds an array that the program writes, like [`input`](Self::input).
    pub fn output(
        &mut self,
        operand: Operand,
        name: impl Into<Cow<'static, str>>,
        elem: Elem,
        dims: impl IntoIterator<Item = Expr>,
    ) -> (Operand, Slot) {
        self.outputs.push(Array::new(operand, name, elem, dims));
        (operand, Slot::Output(self.outputs.len() - 1))
    }

    /// Adds an array that the program reads and changes, like [`input`](Self::input).
    pub fn in_out(
        &mut self,
        operand: Operand,
        name: impl Into<Cow<'static, str>>,
        elem: Elem,
        dims: impl IntoIterator<Item = Expr>,
    ) -> (Operand, Slot) {
        self.outputs.push(Array { is_given: true, ..Array::new(operand, name, elem, dims) });
        (operand, Slot::Output(self.outputs.len() - 1))
    }

    /// Turns an array of the caller into a list of `count` arrays.
    pub fn list(&mut self, slot: Slot, count: &Expr) {
        let array = match slot {
            Slot::Input(n) => &mut self.inputs[n],
            Slot::Output(n) => &mut self.outputs[n],
            Slot::Temp(_) => unreachable!("list: a temporary is no array of the caller"),
        };
        array.count = Some(count.clone());
    }

    /// Adds a temporary that the program writes before it reads it.
    pub fn temp(
        &mut self,
        name: &'static str,
        elem: Elem,
        dims: impl IntoIterator<Item = Expr>,
    ) -> Slot {
        let (dims, fill) = (dims.into_iter().collect(), TempFill::Uninitialised);
        self.temps.push(Temp { name, elem, dims, fill });
        Slot::Temp(self.temps.len() - 1)
    }

    /// Adds a temporary with an initial content.
    pub fn temp_of(
        &mut self,
        name: &'static str,
        elem: Elem,
        dims: impl IntoIterator<Item = Expr>,
        fill: TempFill,
    ) -> Slot {
        self.temps.push(Temp { name, elem, dims: dims.into_iter().collect(), fill });
        Slot::Temp(self.temps.len() - 1)
    }

    pub fn kernel(&mut self, kernel: VerifiedKernel) -> KernelId {
        self.kernels.push(kernel);
        KernelId(self.kernels.len() - 1)
    }
}

/// Program that obeys all rules. Dereferences to the form that back ends execute.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifiedProgram {
    program: Program,
    launches: LaunchProgram,
}

impl Deref for VerifiedProgram {
    type Target = LaunchProgram;
    fn deref(&self) -> &LaunchProgram {
        &self.launches
    }
}

impl VerifiedProgram {
    /// Checks a program as a whole.
    ///
    /// Names, types, elements and ranks must agree. On every path through the steps, the program
    /// must write each array before it reads it, and must write every output. It must not write
    /// inputs. Every declaration must be used.
    ///
    /// # Errors
    /// Returns the first broken rule.
    pub fn new(program: Program) -> Result<Self, IrError> {
        let launches =
            check::program(&program).and_then(|()| LaunchProgram::from_checked(&program));
        match launches {
            Ok(launches) => Ok(Self { program, launches }),
            Err(rule) => {
                let kernel = program.kernels.first().map_or_else(String::new, |k| k.name.clone());
                Err(IrError { kernel, rule: format!("its program: {rule}") })
            }
        }
    }

    /// Returns the program for modification. Tests use this to inject faults.
    pub fn into_inner(self) -> Program {
        self.program
    }

    /// Kernels, in the order of their numbers.
    pub fn kernels(&self) -> &[VerifiedKernel] {
        &self.program.kernels
    }

    /// Kernel whose source is the program's source.
    pub fn preferred(&self) -> &VerifiedKernel {
        self.kernel(KernelId(0))
    }

    /// Returns the preferred kernel, followed by the kernels that are launched if its contract is
    /// not met.
    pub fn variants(&self) -> impl Iterator<Item = &VerifiedKernel> {
        let launches = self.all_launches();
        let launch = launches.into_iter().find(|l| l.choose.contains(&KernelId(0)));
        launch.into_iter().flat_map(|launch| launch.choose.iter().map(|id| self.kernel(*id)))
    }

    /// Kernels that launches prefer, without repetition, in launch order.
    pub fn launched(&self) -> impl Iterator<Item = &VerifiedKernel> {
        let mut ids = Vec::new();
        for id in self.all_launches().into_iter().filter_map(|launch| launch.choose.first()) {
            if !ids.contains(id) {
                ids.push(*id);
            }
        }
        ids.into_iter().map(|id| self.kernel(id))
    }

    pub fn kernel(&self, id: KernelId) -> &VerifiedKernel {
        self.kernels().get(id.0).unwrap_or_else(|| unreachable!("check: every kernel is there"))
    }
}
