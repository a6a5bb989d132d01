//! Checks of the element types of A, B and C.

use crate::error::SpecError;
use crate::ir::Elem;
use crate::plan::Faults;
use crate::plan::sgemm::operand::OperandPlan;
use crate::plan::sgemm::pipeline::LEAST_BYTES;
use crate::spec::{Arith, Batch, Copies, MatrixType, SgemmSpec};

/// Rejects types that do not occur together, and keys that need other types.
pub(super) fn check(spec: &SgemmSpec, faults: &mut Faults) {
    let types = spec.types();
    if !faults.sound(&["a", "b", "c"]) {
        return;
    }
    if spec.a != spec.b {
        return faults.0.push(differ(spec.a, spec.b));
    }
    if types.acc == Elem::F64 && !types.c.computes() {
        faults.0.push(narrow_result(spec.c));
    }
    if spec.reads_matrices() {
        read_matrices(spec, faults);
    } else if spec.arith != Arith::F32 && spec.a != MatrixType::F32 {
        faults.0.push(of_tensor_cores(spec));
    }
    if types.acc == Elem::F64 {
        let given = [("epilogue", spec.epilogue.is_some()), ("scaled", spec.scaled)];
        let given = given.into_iter().filter(|(_, is_given)| *is_given);
        faults.0.extend(given.map(|(key, _)| expression_in_f64(key)));
    }
}

/// Rejects keys that do not compose with tensor cores that read A and B themselves.
fn read_matrices(spec: &SgemmSpec, faults: &mut Faults) {
    if spec.copy != Copies::Tma {
        faults.0.push(without_tensor_maps(spec));
    }
    if spec.batch == Some(Batch::Pointers) {
        faults.0.push(list_of_matrices());
    }
}

/// Rejects asynchronous copies of elements that are too small for them.
pub(super) fn copies(spec: &SgemmSpec, operands: [OperandPlan; 2], faults: &mut Faults) {
    let is_small = |operand: &&OperandPlan| operand.elem().size() < LEAST_BYTES;
    if spec.stages.is_none() || !faults.sound(&["stages", "float4"]) {
        return;
    }
    let mut small = operands.iter().filter(is_small);
    // A vector that extends past the end of K is copied element by element.
    if let Some(operand) = small.clone().find(|operand| operand.width() == 1) {
        faults.0.push(small_copies(operand));
    } else if let Some(operand) = small.find(|operand| operand.straddles()) {
        faults.0.push(single_elements(operand));
    }
}

fn differ(a: MatrixType, b: MatrixType) -> SpecError {
    SpecError::at_value(
        &["b", "a"],
        format!("B has elements of `{b}` and A of `{a}`: both have the same type; write `b: {a}`"),
    )
}

fn narrow_result(c: MatrixType) -> SpecError {
    SpecError::at_value(
        &["c", "a"],
        format!(
            "sums in `f64` are not rounded to `{c}`, because there is no such conversion; use `c: \
             f64` or `c: f32`"
        ),
    )
}

fn without_tensor_maps(spec: &SgemmSpec) -> SpecError {
    SpecError::at_value(
        &["mma", "copy", "a"],
        format!(
            "`mma: wgmma` reads matrices of `{}` by TMA: add `copy: tma` and `stages: 3`",
            spec.a
        ),
    )
}

fn list_of_matrices() -> SpecError {
    SpecError::at_value(
        &["batch", "mma", "a"],
        "`mma: wgmma` reads 16-bit matrices by a tensor map of A and one of B, and the matrices of \
         a list are anywhere in memory; use `batch: strided`, or leave `mma` and `arith` out"
            .into(),
    )
}

fn of_tensor_cores(spec: &SgemmSpec) -> SpecError {
    SpecError::at_value(
        &["arith", "a"],
        format!(
            "`arith: {}` converts matrices of `f32`, and A has elements of `{}`; leave `arith` out",
            spec.arith, spec.a
        ),
    )
}

fn expression_in_f64(key: &'static str) -> SpecError {
    SpecError::at_key(
        &[key, "a"],
        format!(
            "`{key}` computes in `f32`, and the sums of this GEMM are in `f64`; leave `{key}` out"
        ),
    )
}

fn small_copies(operand: &OperandPlan) -> SpecError {
    let (letter, elem, size) = (operand.letter(), operand.elem(), operand.elem().size());
    SpecError::at_key(
        &["stages", "float4"],
        format!(
            "an asynchronous copy moves at least {LEAST_BYTES} bytes, and an element of {letter} \
             ({elem}) has {size}; add `float4` without `transpose`, or use `double_buffer` instead \
             of `stages`"
        ),
    )
}

fn single_elements(operand: &OperandPlan) -> SpecError {
    let (letter, elem, size) = (operand.letter(), operand.elem(), operand.elem().size());
    SpecError::at_key(
        &["stages", "pitched"],
        format!(
            "under `pitched`, a vector of {letter} may end past K and is then copied element by \
             element; an asynchronous copy moves at least {LEAST_BYTES} bytes, and an element \
             ({elem}) has {size}; use `double_buffer` instead of `stages`, or leave `pitched` out"
        ),
    )
}
