//! Forms and values of the operands of a call.

use crate::operand::{Exclusive, Shared};
use crate::shape::{NamedBatch, Shape};
use gemm_dsl::ir::Operand;
use gemm_dsl::spec::{ArgSlot, EpilogueArg};
use smallvec::SmallVec;

/// Form of an operand's value.
#[derive(Clone, Copy, Debug)]
pub enum OperandForm {
    Number(f32),
    /// Array to be read: its number of elements, and the shape if it is a matrix.
    Array(usize, Option<Shape>),
    /// Array to be written: its number of elements, and the shape if it is a matrix.
    Output(usize, Option<Shape>),
}

/// Forms of the operands of a call.
pub type OperandForms = SmallVec<[OperandForm; 4]>;

/// Returns true if rows of a matrix of the shape of C, or its columns if it is column-major, are
/// padded. The rows of other matrices may have any stride in every kernel.
pub(crate) fn has_padding(operands: &[EpilogueArg], forms: &[OperandForm]) -> bool {
    operands.iter().zip(forms).any(|(operand, form)| match form {
        OperandForm::Array(_, Some(shape)) | OperandForm::Output(_, Some(shape)) => {
            operand.along.is_like_c() && shape.is_padded()
        }
        _ => false,
    })
}

/// Batches of the matrices of the shape of C. A matrix for all GEMMs has no axes.
pub(crate) fn batches<'o>(
    operands: &'o [EpilogueArg],
    forms: &[OperandForm],
) -> impl Iterator<Item = NamedBatch<'o>> {
    let like_c = operands.iter().zip(forms).filter(|(operand, _)| operand.along.is_like_c());
    like_c.filter_map(|(operand, form)| match form {
        OperandForm::Array(_, Some(shape)) | OperandForm::Output(_, Some(shape)) => {
            let axes = shape.batch.map(|batch| batch.array_axes()).unwrap_or_default();
            Some((&*operand.name, axes))
        }
        _ => None,
    })
}

/// Value of an operand. Nothing has checked yet that it belongs to the device of the call.
pub enum OperandValue<'a> {
    /// Scalar, passed to the kernel by value.
    Number(f32),
    /// Elements of an array, and the shape if it is a matrix.
    Array(Shared<'a, f32>, Option<Shape>),
    /// Elements of an array to be written, and the shape if it is a matrix.
    Output(Exclusive<'a, f32>, Option<Shape>),
}

/// Values of the operands: arrays and scalars, each in the order of the kernel's operands.
#[derive(Default)]
pub struct GivenOperands<'a> {
    pub(crate) arrays: SmallVec<[(Shared<'a, f32>, Option<Shape>); 2]>,
    pub(crate) numbers: SmallVec<[f32; 4]>,
    pub(crate) outputs: SmallVec<[(Exclusive<'a, f32>, Option<Shape>); 1]>,
}

impl<'a> GivenOperands<'a> {
    /// Values of the scalars, in the order of the kernel's operands.
    pub fn numbers(&self) -> &[f32] {
        &self.numbers
    }

    /// Arrays in the order of the kernel's operands, each with its shape if it is a matrix.
    pub fn arrays_mut(&mut self) -> impl Iterator<Item = &mut (Shared<'a, f32>, Option<Shape>)> {
        self.arrays.iter_mut()
    }

    /// Shapes of the arrays to be written, as far as they are matrices, in the order of the
    /// kernel's operands.
    pub fn outputs_mut(&mut self) -> impl Iterator<Item = &mut Option<Shape>> {
        self.outputs.iter_mut().map(|(_, shape)| shape)
    }

    pub(super) fn push(&mut self, given: OperandValue<'a>) {
        match given {
            OperandValue::Number(number) => self.numbers.push(number),
            OperandValue::Array(elements, shape) => self.arrays.push((elements, shape)),
            OperandValue::Output(elements, shape) => self.outputs.push((elements, shape)),
        }
    }
}

/// Array arguments of the epilogue, each with its operand.
pub fn arrays(operands: &[EpilogueArg]) -> impl Iterator<Item = (&EpilogueArg, Operand)> {
    operands.iter().filter_map(|argument| match argument.slot {
        ArgSlot::Array(nth) => Some((argument, Operand::Input(nth))),
        ArgSlot::Number(_) | ArgSlot::Output(_) => None,
    })
}

/// Arrays that the epilogue writes besides C, each with its operand.
pub(crate) fn outputs(operands: &[EpilogueArg]) -> impl Iterator<Item = (&EpilogueArg, Operand)> {
    operands.iter().filter_map(|argument| match argument.slot {
        ArgSlot::Output(nth) => Some((argument, Operand::Output(nth))),
        ArgSlot::Array(_) | ArgSlot::Number(_) => None,
    })
}

/// Names of the epilogue's scalar arguments, each with the bits of its value.
pub(crate) fn numbers<'o>(
    operands: &'o [EpilogueArg],
    values: &[f32],
) -> SmallVec<[(&'o str, u64); 4]> {
    let are_numbers = |argument: &&EpilogueArg| matches!(argument.slot, ArgSlot::Number(_));
    let named = operands.iter().filter(are_numbers).zip(values);
    named.map(|(argument, value)| (&*argument.name, u64::from(value.to_bits()))).collect()
}
