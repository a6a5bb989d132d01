//! Operands that are passed by name.

use super::sealed::{Give, GiveAll};
use super::{EpilogueArg, GivenOperands, OperandForm, OperandForms, Operands, OperandsFor, sealed};
use crate::error::{Error, Result};
use crate::operand::{Input, Written};
use crate::shape::Shape;
use gemm_dsl::error::counted;
use gemm_dsl::spec::Along;
use std::fmt;

/// Operands of an [`Sgemm`](crate::Sgemm) whose spec is known only at run time.
///
/// A call passes the operands by name, in any order, and its launch checks them. A call of a
/// [`Kernel<ReduceSpec, ByName>`](crate::generic::Kernel#impl-Kernel<ReduceSpec,+ByName>) passes
/// its inputs and the arrays for its results in the same way.
///
/// ```
/// use gemm_runtime::{ByName, Device, MatrixMut, MatrixRef, Sgemm};
///
/// let line = "scaled, epilogue: |acc, bias[n]| acc + bias";
/// let kernel = Sgemm::<ByName>::new(line.parse()?)?;
///
/// let device = Device::simulator();
/// let (a, b) = (device.upload(&[1.0, 2.0])?, device.upload(&[3.0, 4.0])?);
/// let bias = device.upload(&[0.25])?;
/// let mut c = device.upload(&[100.0])?;
/// let (a, b) = (MatrixRef::new(&a, 1, 2)?, MatrixRef::new(&b, 2, 1)?);
/// kernel
///     .call(&device)
///     .operand("bias", &bias)
///     .operand("alpha", 0.5)
///     .operand("beta", 0.1)
///     .launch(&a, &b, &mut MatrixMut::new(&mut c, 1, 1)?)?;
/// assert_eq!(device.download(&c)?, [15.75]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum ByName {}

/// Operand that can be passed by name: an `f32`, a reference to a vector or a matrix of `f32` on a
/// device, or a mutable reference to a matrix or a vector that the epilogue writes besides C. These
/// are called `c2`, `c3` and `c4`.
///
/// ```
/// use gemm_runtime::bounds::AnyOperand;
/// use gemm_runtime::Device;
///
/// fn is_operand(_: impl AnyOperand) -> bool {
///     true
/// }
///
/// let device = Device::simulator();
/// assert!(is_operand(0.5) && is_operand(&device.alloc(4)?));
/// assert!(is_operand(&device.alloc_matrix(2, 2)?));
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an operand of a kernel",
    label = "neither a number nor a reference to an array",
    note = "pass an operand as an `f32`, or as a reference to a vector or a matrix of `f32` on a \
            device"
)]
pub trait AnyOperand: Give {}

/// Operands that a call has passed by name so far.
#[derive(Default)]
pub struct Named<'a>(Vec<(String, Box<dyn Give + 'a>)>);

impl<'a> Named<'a> {
    #[doc(hidden)]
    pub fn push(&mut self, name: &str, given: impl Give + 'a) {
        self.0.push((name.to_owned(), Box::new(given)));
    }
}

impl fmt::Debug for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl Operands for ByName {
    type List = Self;
    type Unset<'a> = Named<'a>;
    type A = f32;
    type B = f32;
    type C = f32;
}

impl sealed::Operands for ByName {
    const KINDS: Option<&'static [&'static str]> = None;
}

impl<V: Input<Element = f32> + ?Sized> AnyOperand for &V {}
impl<V: Written<f32> + ?Sized> AnyOperand for &mut V {}
impl AnyOperand for f32 {}
impl OperandsFor<ByName> for Named<'_> {}

impl GiveAll for Named<'_> {
    fn forms(&self, operands: &[EpilogueArg]) -> Result<OperandForms> {
        for (n, (name, _)) in self.0.iter().enumerate() {
            if operands.iter().all(|operand| operand.name != *name) {
                let takes = operands.iter().map(ToString::to_string).collect();
                return Err(Error::UnknownOperand { operand: name.clone(), takes });
            }
            if self.0[..n].iter().any(|(earlier, _)| earlier == name) {
                return Err(Error::RepeatedOperand { operand: name.clone() });
            }
        }
        let mut forms = OperandForms::new();
        for operand in operands {
            let of_name = self.0.iter().find(|(name, _)| *name == operand.name);
            let Some((_, given)) = of_name else {
                let (operand, needed) = (operand.to_string(), operand.meaning());
                return Err(Error::MissingOperand { operand, needed, method: "operand" });
            };
            let form = given.form();
            fits(operand, form)?;
            forms.push(form);
        }
        Ok(forms)
    }

    fn give_all(&mut self, operands: &[EpilogueArg]) -> Result<GivenOperands<'_>> {
        self.forms(operands)?;
        let place = |name: &str| operands.iter().position(|operand| operand.name == name);
        self.0.sort_by_key(|(name, _)| place(name));
        let mut beside = GivenOperands::default();
        self.0.iter_mut().for_each(|(_, given)| beside.push(given.give()));
        Ok(beside)
    }
}

/// Checks that an operand is a scalar, a vector, a matrix or a matrix to be written, as the kernel
/// requires.
fn fits(operand: &EpilogueArg, given: OperandForm) -> Result<()> {
    let (is_output, is_matrix) = (operand.is_output(), operand.along.is_matrix());
    let (found, remedy) = match (operand.along, given) {
        (_, OperandForm::Output(_, shape)) if is_output && is_matrix == shape.is_some() => {
            return Ok(());
        }
        (Along::Nothing, OperandForm::Number(_)) => return Ok(()),
        (along, OperandForm::Array(_, shape))
            if along != Along::Nothing && is_matrix == shape.is_some() && !is_output =>
        {
            return Ok(());
        }
        (_, OperandForm::Number(number)) => {
            (format!("the number {number}"), "Upload the elements and pass a reference to them")
        }
        (_, OperandForm::Output(len, shape)) => {
            let remedy = match (is_output, is_matrix) {
                (false, _) => "Pass a shared reference, because the kernel only reads the operand",
                (true, true) => "Pass a matrix, such as `MatrixMut::new(&mut elements, m, n)`",
                (true, false) => "Pass a buffer, or a part of one, such as `&mut sums`",
            };
            (format!("{} to be written", array(len, shape)), remedy)
        }
        (along, OperandForm::Array(len, shape)) => {
            let found = array(len, shape);
            let remedy = match along {
                _ if is_output && is_matrix => {
                    "Pass a mutable reference to a matrix, such as `&mut c2`"
                }
                _ if is_output => "Pass a mutable reference to a vector, such as `&mut sums`",
                Along::Nothing => "Pass the number itself, an `f32`",
                Along::Mn | Along::Pairs => {
                    "Pass a view, such as `MatrixRef::new(&elements, m, n)`"
                }
                Along::BatchN => "Pass a view, such as `MatrixRef::new(&elements, batch, n)`",
                Along::BatchM => "Pass a view, such as `MatrixRef::new(&elements, batch, m)`",
                Along::N | Along::M | Along::Batch => "Pass a buffer, or a part of one",
            };
            (found, remedy)
        }
    };
    let (operand, needed) = (operand.to_string(), operand.meaning());
    Err(Error::WrongOperand { operand, needed, found, remedy })
}

/// Description of an array for messages.
fn array(len: usize, shape: Option<Shape>) -> String {
    match shape {
        None => format!("a vector of {}", counted(len as u64, "element")),
        Some(shape) => format!("a matrix of {}x{}", shape.rows, shape.cols),
    }
}
