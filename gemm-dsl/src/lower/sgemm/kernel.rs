//! Kernel of a GEMM: its header, and the body for the plan's kind of kernel.

use super::common::problem::{GemmProblem, TakenMatrices};
use super::common::splits;
use super::direct;
use super::simt::{naive, staged};
use super::wgmma;
use crate::ir::{Elem, IrError, KernelBuilder, KernelFamily, Variant, VerifiedKernel};
use crate::plan::{KernelKind, SgemmPlan};
use crate::spec::{Batch, EpilogueInput, GemmLayout, GemmTypes, Lanes};

/// Builds the kernel of a GEMM.
pub(crate) fn kernel(plan: &SgemmPlan) -> Result<VerifiedKernel, IrError> {
    let mut b = KernelBuilder::new(plan.kernel_name());
    head(&mut b, plan);
    body(&mut b, plan);
    b.finish()
}

/// Writes the header comment of a kernel.
pub(crate) fn head(b: &mut KernelBuilder, plan: &SgemmPlan) {
    b.family(KernelFamily::Gemm);
    let stored = if plan.spec().scaled { "alpha * A * B + beta * C" } else { "A * B" };
    let stored = match plan.epilogue() {
        Some(epilogue) => {
            let operands = epilogue.named().map(|(param, named)| match named {
                EpilogueInput::Output => ", C".to_owned(),
                EpilogueInput::Operand(_) => format!(", {}", param.name),
            });
            format!("epilogue({stored}{})", operands.collect::<String>())
        }
        None => stored.to_owned(),
    };
    let outputs = outputs_text(plan);
    let shapes = match outputs.as_str() {
        "C" => "A is M x K, B is K x N, C is M x N".to_owned(),
        outputs => format!("A is M x K, B is K x N, {outputs} are M x N"),
    };
    let arith = plan.spec().arith;
    let computed = match (arith.format(), arith.is_emulation()) {
        (None, _) => plan.types().name_of_sums().to_owned(),
        _ if plan.spec().reads_matrices() => plan.types().name_of_sums().to_owned(),
        (Some(format), false) => format!("f32 from elements rounded to {}", format.name()),
        (Some(format), true) => {
            format!("f32, each element split into {} x {}", arith.splits(), format.name())
        }
    };
    let GemmTypes { a, b: of_b, acc, c } = plan.types();
    if acc == Elem::U32 || [a, of_b, c].iter().any(|elem| *elem != acc) {
        b.title(format!("A has elements of {a}, B of {of_b} and {outputs} of {c}."));
    }
    match (plan.splits(), layout_text(plan.layout())) {
        (Some(of), lies) => {
            match lies {
                None => {
                    b.title(format!(
                        "{outputs} = {stored} in {computed}: {shapes}, all row-major."
                    ));
                }
                Some(lies) => {
                    b.title(format!("{outputs} = {stored} in {computed}: {shapes}."));
                    b.title(lies);
                }
            }
            let copies = match of.count() {
                1 => format!("{} copies", of.format().name()),
                _ => "splits".to_owned(),
            };
            b.title(format!(
                "The {copies} of A and B, which an earlier kernel wrote, are M x K and N x K: K is"
            ));
            b.title(format!("contiguous, and each row is {}.", splits::padding(&of)));
            if arith.is_scaled() {
                b.title(
                    "Before the split, a power of two scales each row of A and each column of B \
                     into the range of",
                );
                b.title("f16; this kernel undoes the scaling.");
            }
            let order = match plan.kind().wgmma() {
                Some(_) if arith.is_scaled() => {
                    "*_row_max, *_splits, this kernel, the fallback *_f32"
                }
                Some(_) if arith.is_emulation() => "*_splits, this kernel, the fallback *_f32",
                Some(_) | None => "*_splits, this kernel",
            };
            b.title(format!("Order of the kernels: {order}."));
            b.title(match plan.kind().wgmma() {
                Some(t) if t.recomputes() => {
                    "A and B themselves are read only to recompute overflowed sums."
                }
                None if arith.is_emulation() => {
                    "A and B themselves are read only to recompute sums in f32."
                }
                Some(_) | None => "A and B themselves are not read.",
            });
        }
        (None, None) => {
            b.title(format!("{outputs} = {stored} in {computed}, row-major: {shapes}."));
        }
        (None, Some(lies)) => {
            b.title(format!("{outputs} = {stored} in {computed}: {shapes}."));
            b.title(lies);
        }
    }
    match (plan.batch(), plan.splits()) {
        (None, _) => {}
        (Some(Batch::Strided), Some(_)) => {
            b.title("Strided batch: GEMM p of BATCH has its C at C + p * stride_c.");
        }
        (Some(Batch::Pointers), Some(_)) => b.title("C[i] points to the C of GEMM i."),
        (Some(Batch::Grouped), _) => {
            b.title(
                "Grouped: the rows of A and C from offsets[g] to offsets[g + 1] belong to group g \
                 of BATCH, whose",
            );
            b.title("B is at B + g * stride_b.");
        }
        (Some(Batch::Strided2 | Batch::Strided3), of) => {
            let matrices = if of.is_some() { "C" } else { "A, B and C" };
            b.title(format!(
                "Batch with several axes: {matrices} have a stride for each axis, stride_c_0 for \
                 the first axis of C."
            ));
        }
        (Some(Batch::Strided), None) => {
            b.title(
                "Strided batch: GEMM p of BATCH has its matrices at A + p * stride_a, B + p * \
                 stride_b and",
            );
            b.title("C + p * stride_c.");
        }
        (Some(Batch::Pointers), None) => {
            b.title("A[i], B[i] and C[i] point to the matrices of GEMM i.");
        }
    }
    if plan.spec().scaled && plan.splits().is_none() {
        b.title("If alpha is 0, the caller passes K = 0, so that A and B are not read.");
    }
    if plan.spec().names_depth() {
        b.title("DEPTH is the full extent along K, which the epilogue uses as k.");
    }
    if matches!(plan.kind(), KernelKind::Direct(d) if d.lanes() == Lanes::K) {
        b.title(
            "For small N, such as 1: each warp computes TM x TN outputs, and its lanes split K.",
        );
    }
    b.title(format!("Generated from {}!({})", plan.types().macro_name(), plan.spec()));
    b.variant(plan.variant());
    if plan.epilogue().is_some_and(|epilogue| epilogue.folds_rows()) {
        b.title("folds has FOLD_PARTS values of each row, which the kernel *_rows folds.");
    }
    if plan.variant() == Variant::Scalar {
        b.title(scalar_text(plan));
    }
    if plan.variant() == Variant::Guarded {
        b.title("Variant for K = 0, with bounds checks.");
    }
}

/// Matrices that the kernel writes.
fn outputs_text(plan: &SgemmPlan) -> String {
    let others = plan.epilogue().into_iter().flat_map(|epilogue| epilogue.outputs());
    let others = others.filter(|(_, along)| along.is_like_c());
    let others: String = others.map(|(name, _)| format!(", {}", name.to_uppercase())).collect();
    format!("C{others}")
}

fn body(b: &mut KernelBuilder, plan: &SgemmPlan) {
    let problem = |b: &mut KernelBuilder| GemmProblem::declare(b, plan, TakenMatrices::All);
    match plan.kind() {
        KernelKind::Wgmma(shape) => wgmma::body(b, plan, shape),
        KernelKind::Naive(shape) => {
            let problem = problem(b);
            naive::body(b, plan, shape, problem);
        }
        KernelKind::Direct(shape) => {
            let problem = problem(b);
            direct::body(b, plan, shape, problem);
        }
        KernelKind::Tiled(shape) => staged::body(b, plan, shape),
    }
}

/// Sentence on the scalar variant, with the requirements that only the vector variant has.
fn scalar_text(plan: &SgemmPlan) -> String {
    let layout = plan.layout();
    let (matrices, any) = match plan.kind().wgmma() {
        Some(_) if plan.pitched() => ("C", "ldc"),
        Some(_) => ("C", "N"),
        None => {
            let any = match (layout.transposes_a(), layout.transposes_b()) {
                _ if plan.pitched() => "leading dimensions",
                (false, false) => "K and N",
                (true, false) => "M and N",
                (false, true) => "K and N",
                (true, true) => "M, K and N",
            };
            ("global memory", any)
        }
    };
    format!(
        "Scalar variant without 16-byte accesses to {matrices}, for any alignment and any {any}."
    )
}

/// Sentence on the layouts, unless all matrices are row-major.
fn layout_text(layout: GemmLayout) -> Option<&'static str> {
    match layout {
        GemmLayout::Nn => None,
        GemmLayout::Nt => Some("B is column-major; A and C are row-major."),
        GemmLayout::Tn => Some("A is column-major; B and C are row-major."),
        GemmLayout::Tt => Some("A and B are column-major; C is row-major."),
    }
}
