//! Binding of a program: extents and numbers by name, arrays by operand.

use super::{Array, Expr, Operand, VerifiedProgram};
use crate::ir::Extent;
use crate::ir::contract::ArrayAxis;
use crate::ir::eval::{HostError, eval};
use std::fmt;
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
/// values. [`VerifiedProgram::bind`] creates it.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramValues {
    all: Vec<Option<u64>>,
    arguments: Vec<u64>,
}

impl ProgramValues {
    /// Bits of the caller's numbers, in the program's order.
    pub fn arguments(&self) -> &[u64] {
        &self.arguments
    }
}

/// Arrays that a caller passes to a program, in the program's order.
#[derive(Clone, Debug)]
pub struct ProgramArrays<'a, A> {
    pub(super) inputs: Vec<&'a A>,
    pub(super) outputs: Vec<&'a A>,
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
    pub axes: Vec<ArrayAxis>,
    pub len: u64,
}

impl VerifiedProgram {
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
        let extents = in_order(self.extents.iter().copied(), extents, ProgramInput::Extent)?;
        let arguments = in_order(names, numbers, number)?;
        let (extents, arguments) = (extents.into_iter().copied(), arguments.into_iter().copied());
        let arguments: Vec<u64> = arguments.collect();
        let all = extents.chain(arguments.iter().copied()).map(Some).collect();
        let mut values = ProgramValues { all, arguments };
        for value in &self.values {
            let value = self.eval(&value.expr, &values)?;
            values.all.push(Some(value));
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
        let operands = self.inputs.iter().chain(&self.outputs).map(|array: &Array| array.operand);
        let mut inputs = in_order(operands, arrays, ProgramInput::Array)?;
        let outputs = inputs.split_off(self.inputs.len());
        Ok(ProgramArrays { inputs, outputs })
    }

    /// Evaluates an expression of the program for a problem. A condition evaluates to 0 or 1.
    ///
    /// # Errors
    /// Returns [`HostError::Overflow`] or [`HostError::Negative`] if the expression cannot be
    /// evaluated.
    pub fn eval(&self, expr: &Expr, values: &ProgramValues) -> Result<u64, HostError> {
        let value = eval(expr, &[], &values.all)?;
        u64::try_from(value).map_err(|_| HostError::Overflow)
    }

    /// Returns the layout without gaps of an array with these extents.
    ///
    /// # Errors
    /// Same as for [`eval`](Self::eval).
    pub fn packed(&self, dims: &[Expr], values: &ProgramValues) -> Result<PackedLayout, HostError> {
        let (mut axes, mut len) = (Vec::with_capacity(dims.len()), 1_u64);
        for dim in dims.iter().rev() {
            let extent = self.eval(dim, values)?;
            axes.push(ArrayAxis { extent, stride: len });
            len = len.saturating_mul(extent);
        }
        axes.reverse();
        Ok(PackedLayout { axes, len })
    }
}

/// Sorts the given values into the order in which the program declares their names.
fn in_order<N: Copy + PartialEq, V>(
    declared: impl Iterator<Item = N> + Clone,
    given: &[(N, V)],
    input: impl Fn(N) -> ProgramInput,
) -> Result<Vec<&V>, BindError> {
    for (nth, (name, _)) in given.iter().enumerate() {
        if given[..nth].iter().any(|(other, _)| other == name) {
            return Err(BindError::Repeated(input(*name)));
        }
        if !declared.clone().any(|declared| declared == *name) {
            return Err(BindError::Unknown(input(*name)));
        }
    }
    let value = |name| {
        let found = given.iter().find(|(given, _)| *given == name);
        found.map(|(_, value)| value).ok_or_else(|| BindError::Missing(input(name)))
    };
    declared.map(value).collect()
}
