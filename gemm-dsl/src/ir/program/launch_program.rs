//! The form of a program that back ends execute.

use super::{Argument, Array, Launch, Program, Step, Temp};
use crate::ir::contract::Contract;
use crate::ir::{Expr, Extent, HostExpr, List};

/// Launches of a program, the memory between them, and the contracts of its kernels: all that a
/// launch needs except machine code.
///
/// [`VerifiedProgram::new`](super::VerifiedProgram::new) derives it. Macro calls contain it as a
/// constant.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchProgram {
    /// Extents of the problem. They are the first scalars of the expressions, followed by the
    /// caller's numbers and the computed values.
    pub extents: List<Extent>,
    /// Arrays that the caller provides for reading.
    pub inputs: List<Array<HostExpr>>,
    /// Arrays that the caller provides for writing.
    pub outputs: List<Array<HostExpr>>,
    /// Numbers that the caller passes.
    pub arguments: List<Argument>,
    /// Values that each run computes once, each over the scalars before it.
    pub values: List<HostExpr>,
    pub temps: List<Temp<HostExpr>>,
    /// Contract of each kernel. The first kernel is the preferred one.
    pub contracts: List<Contract>,
    pub steps: List<Step<HostExpr>>,
}

impl LaunchProgram {
    /// Program of a faulty macro call, which is never launched.
    pub const EMPTY: Self = Self {
        extents: List::EMPTY,
        inputs: List::EMPTY,
        outputs: List::EMPTY,
        arguments: List::EMPTY,
        values: List::EMPTY,
        temps: List::EMPTY,
        contracts: List::EMPTY,
        steps: List::EMPTY,
    };

    /// Derives the program from one that obeys all rules.
    pub(super) fn from_checked(program: &Program) -> Result<Self, String> {
        let values = program.values.iter().map(|value| HostExpr::new(&value.expr, &[]));
        let contracts = program.kernels.iter().map(|kernel| kernel.contract().clone());
        Ok(Self {
            extents: program.extents.clone().into(),
            inputs: all(&program.inputs, array)?,
            outputs: all(&program.outputs, array)?,
            arguments: program.arguments.clone().into(),
            values: values.collect::<Result<_, _>>()?,
            temps: all(&program.temps, temp)?,
            contracts: contracts.collect(),
            steps: all(&program.steps, step)?,
        })
    }

    /// Returns the launches on all paths, in step order.
    pub(super) fn all_launches(&self) -> Vec<&Launch<HostExpr>> {
        fn collect<'p>(steps: &'p [Step<HostExpr>], launches: &mut Vec<&'p Launch<HostExpr>>) {
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
}

fn expr(expr: &Expr) -> Result<HostExpr, String> {
    HostExpr::new(expr, &[])
}

fn all<T, U>(items: &[T], compiled: impl Fn(&T) -> Result<U, String>) -> Result<List<U>, String> {
    items.iter().map(compiled).collect()
}

fn array(array: &Array) -> Result<Array<HostExpr>, String> {
    let Array { operand, name, elem, count, dims, is_given } = array;
    Ok(Array {
        operand: *operand,
        name: name.clone(),
        elem: *elem,
        count: count.as_ref().map(expr).transpose()?,
        dims: all(dims, expr)?,
        is_given: *is_given,
    })
}

fn temp(temp: &Temp) -> Result<Temp<HostExpr>, String> {
    let Temp { name, elem, dims, fill } = temp;
    Ok(Temp { name, elem: *elem, dims: all(dims, expr)?, fill: *fill })
}

fn step(of: &Step) -> Result<Step<HostExpr>, String> {
    Ok(match of {
        Step::Launch(Launch { choose, bind, extents }) => Step::Launch(Launch {
            choose: choose.clone(),
            bind: bind.clone(),
            extents: all(extents, |(extent, value)| Ok((*extent, expr(value)?)))?,
        }),
        Step::If { cond, then, otherwise } => {
            Step::If { cond: expr(cond)?, then: all(then, step)?, otherwise: all(otherwise, step)? }
        }
    })
}
