//! Binding of a program: extents and numbers by name, arrays by operand.

use super::{Launch, LaunchProgram, Operand, Step};
use crate::ir::contract::ArrayAxis;
use crate::ir::{Extent, HostError, HostExpr};
use smallvec::SmallVec;
use std::fmt;
use std::ops::Range;
use thiserror::Error;

/// Part of a program that its caller supplies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramInput {
    Extent(Extent),
    /// Number, by its name.
    Number(String),
    /// Array, by its operand.
    Array(Operand),
}

impl fmt::Display for ProgramInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Extent(extent) => write!(f, "the extent {extent}"),
            Self::Number(name) => write!(f, "the number `{name}`"),
            Self::Array(operand) => write!(f, "the array {operand:?}"),
        }
    }
}

/// Mismatch between a program and its caller's arguments.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BindError {
    /// An extent, number or array is missing.
    #[error("{0} of the program is not given")]
    Missing(ProgramInput),
    /// An extent, number or array is given more than once.
    #[error("{0} of the program is given twice")]
    Repeated(ProgramInput),
    /// An extent, number or array is given that the program does not have.
    #[error("the program does not have {0}")]
    Unknown(ProgramInput),
    /// A value cannot be computed from the extents.
    #[error(transparent)]
    Value(#[from] HostError),
}

/// Values of all handles of a program for one problem: extents, bits of numbers, and computed
/// values. [`LaunchProgram::bind`] creates it.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramValues {
    all: SmallVec<[u64; 16]>,
    /// Positions of the caller's numbers.
    arguments: Range<usize>,
}

impl ProgramValues {
    /// Bits of the caller's numbers, in the program's order.
    pub fn arguments(&self) -> &[u64] {
        &self.all[self.arguments.clone()]
    }

    /// Evaluates an expression of the program for the problem; a condition is 0 or 1.
    ///
    /// # Errors
    /// Returns [`HostError::Overflow`] or [`HostError::Negative`] if it cannot be computed.
    pub fn eval(&self, expr: &HostExpr) -> Result<u64, HostError> {
        let value = expr.value(&self.all)?;
        u64::try_from(value).map_err(|_| HostError::Overflow)
    }

    /// Gap-free layout of an array with these extents.
    ///
    /// # Errors
    /// Same as [`eval`](Self::eval).
    pub fn packed(&self, dims: &[HostExpr]) -> Result<PackedLayout, HostError> {
        let (mut axes, mut len) = (SmallVec::new(), 1_u64);
        for dim in dims.iter().rev() {
            let extent = self.eval(dim)?;
            axes.push(ArrayAxis { extent, stride: len });
            len = len.saturating_mul(extent);
        }
        axes.reverse();
        Ok(PackedLayout { axes, len })
    }
}

/// Arrays that a caller passes to a program, in the program's order.
#[derive(Clone, Debug)]
pub struct ProgramArrays<'a, A> {
    pub(super) inputs: SmallVec<[&'a A; 8]>,
    pub(super) outputs: SmallVec<[&'a A; 4]>,
}

impl<'a, A> ProgramArrays<'a, A> {
    pub fn inputs(&self) -> &[&'a A] {
        &self.inputs
    }

    pub fn outputs(&self) -> &[&'a A] {
        &self.outputs
    }
}

/// Layout of an array without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedLayout {
    /// Dimensions, outermost first.
    pub axes: SmallVec<[ArrayAxis; 4]>,
    pub len: u64,
}

/// Launches of a run, without an allocation for up to four.
pub(super) type Launches<'p> = SmallVec<[&'p Launch<HostExpr>; 4]>;

impl LaunchProgram {
    /// Binds the extents of a problem and the bits of its numbers by name, and computes the
    /// program's values.
    ///
    /// # Errors
    /// Returns [`BindError`] for a name that is missing, given twice or unknown, and for a value
    /// that cannot be computed.
    pub fn bind(
        &self,
        extents: &[(Extent, u64)],
        numbers: &[(&str, u64)],
    ) -> Result<ProgramValues, BindError> {
        let names = self.arguments.iter().map(|argument| &*argument.name);
        let number = |name: &str| ProgramInput::Number(name.to_owned());
        let mut all = SmallVec::new();
        for value in in_order(self.extents.iter().copied(), extents, ProgramInput::Extent)? {
            all.push(*value?);
        }
        let first = all.len();
        for value in in_order(names, numbers, number)? {
            all.push(*value?);
        }
        let arguments = first..all.len();
        let mut values = ProgramValues { all, arguments };
        for value in &self.values {
            let value = values.eval(value)?;
            values.all.push(value);
        }
        Ok(values)
    }

    /// Binds arrays by operand.
    ///
    /// # Errors
    /// Returns [`BindError`] for an operand that is missing, given twice or unknown.
    pub fn bind_arrays<'a, A>(
        &self,
        arrays: &'a [(Operand, A)],
    ) -> Result<ProgramArrays<'a, A>, BindError> {
        let operands = self.inputs.iter().chain(&self.outputs).map(|array| array.operand);
        let mut bound = in_order(operands, arrays, ProgramInput::Array)?;
        Ok(ProgramArrays {
            inputs: bound.by_ref().take(self.inputs.len()).collect::<Result<_, _>>()?,
            outputs: bound.collect::<Result<_, _>>()?,
        })
    }

    /// Returns the launches for a problem, in order.
    ///
    /// # Errors
    /// Returns [`HostError::Overflow`] or [`HostError::Negative`] if a condition cannot be
    /// evaluated for these values.
    pub fn launches(&self, values: &ProgramValues) -> Result<Launches<'_>, HostError> {
        fn follow<'p>(
            steps: &'p [Step<HostExpr>],
            values: &ProgramValues,
            launches: &mut Launches<'p>,
        ) -> Result<(), HostError> {
            for step in steps {
                match step {
                    Step::Launch(launch) => launches.push(launch),
                    Step::If { cond, then, otherwise } => {
                        let holds = values.eval(cond)? != 0;
                        follow(if holds { then } else { otherwise }, values, launches)?;
                    }
                }
            }
            Ok(())
        }
        let mut launches = Launches::new();
        follow(&self.steps, values, &mut launches)?;
        Ok(launches)
    }
}

/// Returns the given values in the order in which the program declares their names.
fn in_order<N: Copy + PartialEq, V>(
    declared: impl Iterator<Item = N> + Clone,
    given: &[(N, V)],
    input: impl Fn(N) -> ProgramInput,
) -> Result<impl Iterator<Item = Result<&V, BindError>>, BindError> {
    for (nth, (name, _)) in given.iter().enumerate() {
        if given[..nth].iter().any(|(other, _)| other == name) {
            return Err(BindError::Repeated(input(*name)));
        }
        if !declared.clone().any(|declared| declared == *name) {
            return Err(BindError::Unknown(input(*name)));
        }
    }
    Ok(declared.map(move |name| {
        let found = given.iter().find(|(given, _)| *given == name);
        found.map(|(_, value)| value).ok_or_else(|| BindError::Missing(input(name)))
    }))
}
