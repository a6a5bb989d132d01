//! Checks of the element types of A, B and C.

use crate::error::SpecError;
use crate::ir::Elem;
use crate::plan::Faults;
use crate::plan::sgemm::operand::OperandPlan;
use crate::plan::sgemm::pipeline::LEAST_BYTES;
use crate::spec::{Arith, Batch, Copies, GemmLayout, MatrixType, SgemmSpec};

/// Rejects types that do not occur together, and keys that need other types.
pub(super) fn check(spec: &SgemmSpec, faults: &mut Faults) {
    let types = spec.types();
    if !faults.sound(&["a", "b", "c"]) {
        return;
    }
    if spec.a != spec.b && Arith::of_types(spec.a, spec.b).is_none() {
        return faults.0.push(differ(spec.a, spec.b));
    }
    if spec.a == MatrixType::I32 {
        return faults.0.push(wide_integers());
    }
    let is_result = match types.acc {
        Elem::F64 => matches!(spec.c, MatrixType::F64 | MatrixType::F32),
        Elem::U32 => !matches!(spec.c, MatrixType::I8 | MatrixType::U8),
        _ => types.c.is_float(),
    };
    faults.require(is_result, || other_result(spec));
    if spec.reads_matrices() {
        read_matrices(spec, faults);
    } else if spec.arith.takes_elements() {
        faults.0.push(match Arith::of_types(spec.a, spec.b) == Some(spec.arith) {
            true => without_wgmma(spec),
            false => of_other_types(spec),
        });
    } else if spec.arith != Arith::F32 && spec.a != MatrixType::F32 {
        faults.0.push(of_tensor_cores(spec));
    }
    if types.acc == Elem::F64 || types.value() == Elem::I32 {
        let given = [("epilogue", spec.epilogue.is_some()), ("scaled", spec.scaled)];
        let given = given.into_iter().filter(|(_, is_given)| *is_given);
        faults.0.extend(given.map(|(key, _)| without_expression(spec, key)));
    }
}

/// Rejects keys that do not compose with tensor cores that read A and B themselves.
fn read_matrices(spec: &SgemmSpec, faults: &mut Faults) {
    if spec.copy != Copies::Tma {
        faults.0.push(without_tensor_maps(spec));
    }
    let needs_k = spec.formats().is_some_and(|[format, _]| format.bits() != 16);
    if spec.batch == Some(Batch::Pointers) {
        faults.0.push(list_of_matrices());
    } else if spec.batch.is_some() && needs_k {
        faults.0.push(batch_of_bytes(spec));
    }
    let is_along_k = spec.layout == GemmLayout::Nt;
    faults.require(is_along_k || !needs_k, || other_layout(spec));
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

fn wide_integers() -> SpecError {
    SpecError::at_value(
        &["a"],
        "`i32` is a type of C: A and B of integers have elements of `i8` or `u8`".into(),
    )
}

fn other_result(spec: &SgemmSpec) -> SpecError {
    let (types, remedy) = (
        spec.types(),
        match spec.types().acc {
            Elem::F64 => "`c: f64` or `c: f32`",
            Elem::U32 => "`c: i32`, or `c: f32` or a narrower float",
            _ => "`c: f32` or another float",
        },
    );
    SpecError::at_value(
        &["c", "a"],
        format!(
            "sums in `{}` are not converted to `{}`, because there is no such conversion; use \
             {remedy}",
            types.name_of_sums(),
            spec.c,
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

fn batch_of_bytes(spec: &SgemmSpec) -> SpecError {
    SpecError::at_value(
        &["batch", "mma", "a"],
        format!(
            "`mma: wgmma` reads single matrices of `{}`; use matrices of `bf16` or `f16`, or leave \
             `mma` out",
            spec.a
        ),
    )
}

fn other_layout(spec: &SgemmSpec) -> SpecError {
    let which = match (spec.layout.transposes_a(), spec.layout.transposes_b()) {
        (true, true) => "columns of A",
        (true, false) => "columns of A and rows of B",
        (false, _) => "rows of B",
    };
    SpecError::at_value(
        &["layout", "a", "mma"],
        format!(
            "`mma: wgmma` reads elements of 8 bits only along K, and under `layout: {}` the \
             {which} are contiguous; use `layout: nt`: A is M x K and memory holds B as N x K",
            spec.layout,
        ),
    )
}

fn without_wgmma(spec: &SgemmSpec) -> SpecError {
    SpecError::at_value(
        &["arith", "mma"],
        format!(
            "`arith: {}` is an arithmetic of `mma: wgmma`; add `mma: wgmma, copy: tma`, or leave \
             `arith` out for CUDA cores",
            spec.arith,
        ),
    )
}

fn of_other_types(spec: &SgemmSpec) -> SpecError {
    let types = match spec.arith {
        Arith::Fp8 => "`e4m3` or `e5m2`",
        Arith::Int8 => "`i8` or `u8`",
        _ => unreachable!("Arith::takes_elements: all are listed"),
    };
    SpecError::at_value(
        &["arith", "a"],
        format!(
            "`arith: {}` multiplies matrices of {types}, and A has elements of `{}`; name the \
             types of A and B in `gemm_kernel!`, or use another `arith`",
            spec.arith, spec.a,
        ),
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

fn without_expression(spec: &SgemmSpec, key: &'static str) -> SpecError {
    let remedy = match spec.types().acc {
        Elem::U32 => format!("use `c: f32` or a narrower float, or leave `{key}` out"),
        _ => format!("leave `{key}` out"),
    };
    SpecError::at_key(
        &[key, "c", "a"],
        format!(
            "`{key}` computes in `f32`, and the results of this GEMM are in `{}`; {remedy}",
            spec.types().value().name(),
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
