//! A program: one computation as launches of verified kernels, with the memory between them.
//!
//! Which launches are made depends on the extents of the problem and on the numbers that the caller
//! passes; so do the lengths of the temporaries. Expressions of a program are over these, and over values
//! that follow from them: [`Program::extent`], [`Program::argument`] and [`Program::value`] give the handles.
//!
//! A launch names several kernels where they compute the same bits and demand different things of
//! their arguments: the first runs whose contract the arguments meet.

mod bind;
mod check;
mod executor;
#[cfg(test)]
mod tests;

pub use bind::{BindError, PackedLayout, ProgramArrays, ProgramInput, ProgramValues};
pub use executor::{
    ExecutedLaunch, Execution, KernelArgument, KernelLaunch, ProgramBackend, Temporary,
};

use super::{Elem, Expr, Extent, HostError, IrError, Operand, Scalar, Ty, VerifiedKernel};
use std::borrow::Cow;
use std::ops::Deref;

/// One computation. Checked into a [`VerifiedProgram`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// The extents of its problem. In an expression, extent `i` is the `U64` parameter `i`; the numbers
    /// that the caller passes follow.
    pub extents: Vec<Extent>,
    /// What the caller gives it to read.
    pub inputs: Vec<Array>,
    /// What the caller gives it to write.
    pub outputs: Vec<Array>,
    /// The numbers that the caller passes.
    pub arguments: Vec<Argument>,
    /// What several expressions need and each run computes once: of type `U64`, over extents, numbers and the
    /// values before. In an expression they follow the numbers.
    pub values: Vec<ComputedValue>,
    /// Memory that lives from the first launch that uses it to the last.
    pub temps: Vec<Temp>,
    /// Its kernels. The text of the first one is the text of the program.
    pub kernels: Vec<VerifiedKernel>,
    /// What is done, in order.
    pub steps: Vec<Step>,
}

/// A value of a program's.
#[derive(Clone, Debug, PartialEq)]
pub struct ComputedValue {
    /// What it is.
    pub expr: Expr,
    /// How many extents and numbers there were when it was added: as many as there are in the end, or handles would
    /// mean something else.
    pub behind: usize,
}

/// A number of the caller's.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// What messages call it.
    pub name: Cow<'static, str>,
    /// Its type.
    pub ty: Ty,
}

/// An array of the caller's.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The operand by which the caller binds it.
    pub operand: Operand,
    /// What messages call it.
    pub name: Cow<'static, str>,
    /// What its elements are.
    pub elem: Elem,
    /// How many there are, of type `U64`, of a list of arrays.
    pub count: Option<Expr>,
    /// Its extents, of type `U64`; of a list, those of each array.
    pub dims: Vec<Expr>,
    /// Whether it holds something when the program begins: an input does, an output that is read does.
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

/// An array of the program's own, packed.
#[derive(Clone, Debug, PartialEq)]
pub struct Temp {
    /// What messages call it.
    pub name: &'static str,
    /// What its elements are.
    pub elem: Elem,
    /// Its extents, of type `U64`.
    pub dims: Vec<Expr>,
    /// What it holds before the first launch.
    pub fill: TempFill,
}

/// The initial content of a temporary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TempFill {
    /// Nothing: it is written before it is read.
    Uninitialised,
    /// Zeros.
    Zero,
    /// Zeros, which each run leaves behind as it has found them.
    Kept,
}

/// A kernel of a program, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelId(pub usize);

/// An array of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slot {
    /// The caller's n-th input.
    Input(usize),
    /// The caller's n-th output.
    Output(usize),
    /// The n-th temporary.
    Temp(usize),
}

/// A step of a program.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Runs one kernel.
    Launch(Launch),
    /// Goes one of two ways.
    If {
        /// The condition, over all that is known.
        cond: Expr,
        /// The steps where it holds.
        then: Vec<Step>,
        /// The steps elsewhere.
        otherwise: Vec<Step>,
    },
}

/// A launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// The kernels that compute it, in order of preference.
    pub choose: Vec<KernelId>,
    /// What each operand of the kernels is.
    pub bind: Vec<(Operand, Slot)>,
    /// What each extent of the kernels is, of type `U64`.
    pub extents: Vec<(Extent, Expr)>,
}

impl Program {
    /// Adds an extent of the problem and gives its value.
    pub fn extent(&mut self, extent: Extent) -> Expr {
        self.extents.push(extent);
        Expr::Param(Scalar { param: self.extents.len() - 1, ty: Ty::U64 })
    }

    /// Adds an array for the caller to give as this operand, and binds it to the same operand.
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

    /// Adds a number for the caller to pass, and gives its value. All extents come before.
    pub fn argument(&mut self, name: impl Into<Cow<'static, str>>, ty: Ty) -> Expr {
        self.arguments.push(Argument { name: name.into(), ty });
        let param = self.extents.len() + self.arguments.len() - 1;
        Expr::Param(Scalar { param, ty })
    }

    /// Adds a value that each run computes once, and gives it. All extents and numbers come before.
    pub fn value(&mut self, expr: Expr) -> Expr {
        let behind = self.extents.len() + self.arguments.len();
        self.values.push(ComputedValue { expr, behind });
        Expr::Param(Scalar { param: behind + self.values.len() - 1, ty: Ty::U64 })
    }

    /// Adds an array for the caller to get, as [`input`](Self::input).
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

    /// Adds an array that the caller gives and gets back changed, as [`input`](Self::input).
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

    /// Makes of an array of the caller's a list of so many of them.
    pub fn list(&mut self, slot: Slot, count: &Expr) {
        let array = match slot {
            Slot::Input(n) => self.inputs.get_mut(n),
            Slot::Output(n) => self.outputs.get_mut(n),
            Slot::Temp(_) => None,
        };
        if let Some(array) = array {
            array.count = Some(count.clone());
        }
    }

    /// Adds a temporary that is written before it is read.
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

    /// Adds a temporary that holds something when the program begins.
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

    /// Adds a kernel.
    pub fn kernel(&mut self, kernel: VerifiedKernel) -> KernelId {
        self.kernels.push(kernel);
        KernelId(self.kernels.len() - 1)
    }
}

/// A program whose launches fit together.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifiedProgram(Program);

impl Deref for VerifiedProgram {
    type Target = Program;
    fn deref(&self) -> &Program {
        &self.0
    }
}

impl VerifiedProgram {
    /// Checks a program as a whole: that names, types, elements and numbers of dimensions agree, that nothing is
    /// read before it is written, whichever way the steps go, that no input is written, that every
    /// output is, and that nothing is declared in vain.
    ///
    /// # Errors
    /// The first broken rule.
    pub fn new(program: Program) -> Result<Self, IrError> {
        match check::program(&program) {
            Ok(()) => Ok(Self(program)),
            Err(rule) => {
                let kernel = program.kernels.first().map_or_else(String::new, |k| k.name.clone());
                Err(IrError { kernel, rule: format!("its program: {rule}") })
            }
        }
    }

    /// The program back, to change it: a test plants its faults this way.
    pub fn into_inner(self) -> Program {
        self.0
    }

    /// The kernel whose text is the text of the program.
    pub fn preferred(&self) -> &VerifiedKernel {
        self.0.kernels.first().unwrap_or_else(|| unreachable!("check: there is a kernel"))
    }

    /// The preferred kernel, and those that stand in for it where its contract is not met.
    pub fn variants(&self) -> impl Iterator<Item = &VerifiedKernel> {
        let launch = self.all_launches().into_iter().find(|l| l.choose.contains(&KernelId(0)));
        launch.into_iter().flat_map(|launch| launch.choose.iter().map(|id| self.kernel(*id)))
    }

    /// The kernels that launches prefer, each once, in the order of the launches.
    pub fn launched(&self) -> impl Iterator<Item = &VerifiedKernel> {
        let mut ids = Vec::new();
        for id in self.all_launches().into_iter().filter_map(|launch| launch.choose.first()) {
            if !ids.contains(id) {
                ids.push(*id);
            }
        }
        ids.into_iter().map(|id| self.kernel(id))
    }

    /// All launches in the order of the steps, whichever way these go.
    fn all_launches(&self) -> Vec<&Launch> {
        fn collect<'p>(steps: &'p [Step], launches: &mut Vec<&'p Launch>) {
            for step in steps {
                match step {
                    Step::Launch(launch) => launches.push(launch),
                    Step::If { then, otherwise, .. } => {
                        collect(then, launches);
                        collect(otherwise, launches);
                    }
                }
            }
        }
        let mut launches = Vec::new();
        collect(&self.steps, &mut launches);
        launches
    }

    /// The kernel of a number that a launch names.
    pub fn kernel(&self, id: KernelId) -> &VerifiedKernel {
        self.0.kernels.get(id.0).unwrap_or_else(|| unreachable!("check: every kernel is there"))
    }

    /// The launches for a problem, in order.
    ///
    /// # Errors
    /// [`HostError::Overflow`] and [`HostError::Negative`] where a condition cannot be computed for it.
    pub fn launches(&self, values: &ProgramValues) -> Result<Vec<&Launch>, HostError> {
        fn follow<'p>(
            program: &'p VerifiedProgram,
            steps: &'p [Step],
            values: &ProgramValues,
            launches: &mut Vec<&'p Launch>,
        ) -> Result<(), HostError> {
            for step in steps {
                match step {
                    Step::Launch(launch) => launches.push(launch),
                    Step::If { cond, then, otherwise } => {
                        let holds = program.eval(cond, values)? != 0;
                        let steps = if holds { then } else { otherwise };
                        follow(program, steps, values, launches)?;
                    }
                }
            }
            Ok(())
        }
        let mut launches = Vec::new();
        follow(self, &self.steps, values, &mut launches)?;
        Ok(launches)
    }
}
