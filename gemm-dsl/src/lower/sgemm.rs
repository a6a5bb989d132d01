//! Matrix products: C = A·B in `f32`, C row-major, A and B as the plan's layout says.
//!
//! Builders match on the plan and decide nothing; what a launch must satisfy, so that the indices
//! which they write stay inside an `int`, follows from it in [`Problem::requirements`]. A and B are one kind of thing, a
//! [`Factor`](tile::Factor), and what tells them apart are questions to their
//! [`OperandPlan`](crate::plan::OperandPlan), such as which of their axes is contiguous.
//!
//! Three seams keep the axes of a spec apart. The *schedule* alone knows which tile of C a block
//! works on. An operand is a [`Matrix`], which the builders index by row and column. The main loop
//! of a tiled kernel ends in [`Accumulators`](fragment::Accumulators), and only the *epilogue* takes
//! them to C; a kernel without a tile (`naive`) has no main loop and does both itself.
//!
//! Every kernel sums the terms of an element from +0 on in ascending k, with one fused multiply-add
//! each, and what fills a ragged tile changes no sum (see `edge`), so that all kernels without
//! `partials` and `split_k` give the same bits, those of a zero's sign included.

mod copy;
mod edge;
mod epilogue;
mod finish;
mod fragment;
mod load;
mod naive;
mod operands;
mod pipeline;
mod ring;
mod schedule;
mod split;
mod stream;
#[cfg(test)]
mod tests;
mod tile;

use crate::ir::Elem::F32;
use crate::ir::program::{Launch, Program, Step};
use crate::ir::{
    Access, BinaryOp, BufferId, Elem, Expr, Extent, Integer, IrError, KernelBuilder, Operand,
    Requirement, Scalar, Source, Ty, Var, Variant, VerifiedKernel, VerifiedProgram,
};
use crate::plan::{Pipeline, SgemmPlan, Shape};
use crate::spec::{Along, Batch, Layout, SgemmOperand, SgemmSpec, Slot};
use finish::Finish;
use split::Split;
use tile::Tiled;

/// The program of a matrix product: one launch. A kernel without guards takes a tile of K at the
/// least, so that empty sums are those of a kernel with guards.
///
/// # Errors
/// A kernel that breaks a rule of the IR: a mistake of this module.
pub fn sgemm(plan: &SgemmPlan) -> Result<VerifiedProgram, IrError> {
    let mut program = Program::default();
    let [m, n, k] = [Extent::M, Extent::N, Extent::K].map(|extent| program.extent(extent));
    let batch = plan.batch().map(|_| program.extent(Extent::BATCH));
    let dims =
        |of: &[&Expr]| -> Vec<Expr> { batch.iter().chain(of.iter().copied()).cloned().collect() };
    let listed = batch.as_ref().filter(|_| plan.batch() == Some(Batch::Pointers));
    let matrix = |rows: &Expr, cols: &Expr| match listed {
        Some(_) => vec![rows.clone(), cols.clone()],
        None => dims(&[rows, cols]),
    };
    let a = program.input("a", F32, matrix(&m, &k));
    let b = program.input("b", F32, matrix(&k, &n));
    let c = match plan.spec().reads_c() {
        true => program.in_out("c", F32, matrix(&m, &n)),
        false => program.output("c", F32, matrix(&m, &n)),
    };
    if let Some(count) = listed {
        [a, b, c].into_iter().for_each(|slot| program.list(slot, count));
    }
    let bind = [Operand::Input(0), Operand::Input(1), Operand::Output(0)];
    let mut bind: Vec<_> = bind.into_iter().zip([a, b, c]).collect();
    let mut alpha = None;
    for SgemmOperand { name, along, slot } in plan.spec().operands() {
        let dims = match along {
            // The products of a batch share them.
            Along::N => vec![n.clone()],
            Along::M => vec![m.clone()],
            Along::Mn => dims(&[&m, &n]),
            Along::Nothing => Vec::new(),
        };
        match slot {
            Slot::Array(nth) => bind.push((Operand::Input(nth), program.input(name, F32, dims))),
            Slot::Number(_) => {
                let is_alpha = plan.spec().scaled && name == SgemmSpec::ALPHA;
                let number = program.argument(name, Ty::F32);
                alpha = alpha.or(is_alpha.then_some(number));
            }
        }
    }
    // By the rules of BLAS no term counts where alpha is a zero of either sign.
    let terms = match alpha {
        Some(alpha) => {
            let bits = alpha.bitcast(Elem::U32);
            let magnitude =
                Expr::binary(BinaryOp::Integer(Integer::And), bits, Expr::U32(0x7fff_ffff));
            magnitude.equals(Expr::U32(0)).select(0u64, k.clone())
        }
        None => k.clone(),
    };
    let size = [m.clone(), n.clone()];
    bind.extend(split::slots(&mut program, plan, size, batch.clone()));
    let mut choose = vec![program.kernel(kernel(plan)?)];
    if let Some(scalar) = plan.scalar_variant() {
        choose.push(program.kernel(kernel(&scalar)?));
    }
    let mut extents = vec![(Extent::M, m), (Extent::N, n), (Extent::K, terms.clone())];
    if plan.spec().names_depth() {
        extents.push((Extent::DEPTH, k));
    }
    extents.extend(batch.map(|batch| (Extent::BATCH, batch)));
    let launch = |choose| {
        let (bind, extents) = (bind.clone(), extents.clone());
        vec![Step::Launch(Launch { choose, bind, extents })]
    };
    program.steps = match plan.guarded_variant() {
        None => launch(choose),
        Some(guarded) => {
            let guarded = program.kernel(kernel(&guarded)?);
            let (then, otherwise) = (launch(choose), launch(vec![guarded]));
            vec![Step::If { cond: terms.gt(0u64), then, otherwise }]
        }
    };
    VerifiedProgram::new(program)
}

fn kernel(plan: &SgemmPlan) -> Result<VerifiedKernel, IrError> {
    let mut k = KernelBuilder::new(plan.kernel_name());
    let stored = if plan.spec().scaled { "alpha * A * B + beta * C" } else { "A * B" };
    let stored = match plan.epilogue() {
        Some(_) => format!("epilogue({stored})"),
        None => stored.to_owned(),
    };
    let shapes = "A is M x K, B is K x N, C is M x N";
    match lies(plan.layout()) {
        None => k.title(format!("C = {stored} in f32, row-major: {shapes}.")),
        Some(lies) => {
            k.title(format!("C = {stored} in f32: {shapes}."));
            k.title(lies);
        }
    }
    match plan.batch() {
        None => {}
        Some(Batch::Strided) => {
            k.title("A batch: product p of BATCH has its A, B and C at A + p * stride_a, B + p * stride_b and");
            k.title("C + p * stride_c.");
        }
        Some(Batch::Pointers) => {
            k.title("A, B and C are arrays of pointers, each to the matrix of a product.");
        }
    }
    if plan.spec().scaled {
        k.title("Where alpha is 0 the caller passes K = 0: A and B are then not read.");
    }
    if plan.spec().names_depth() {
        k.title("DEPTH is the extent of A and B all the same, which the epilogue knows as k.");
    }
    k.title(format!("sgemm_kernel!({})", plan.spec()));
    k.variant(plan.variant());
    if plan.variant() == Variant::Scalar {
        k.title("Access variant for operands that cannot be accessed 16 bytes at a time.");
    }
    if plan.variant() == Variant::Guarded {
        k.title("Variant for K = 0, with guards.");
    }
    let problem = Problem::declare(&mut k, plan);
    match plan.shape() {
        Shape::Naive(shape) => naive::body(&mut k, plan, shape, problem),
        Shape::Tiled(shape) => {
            let tiled = Tiled::declare(&mut k, plan, shape, problem);
            let finish = Finish::declare(&mut k, plan, &tiled.problem);
            let split = Split::declare(&mut k, &tiled);
            let acc = pipeline::main_loop(&mut k, &tiled);
            match split {
                None => epilogue::store(&mut k, &tiled, &acc, &finish),
                Some(split) => split.gather(&mut k, &tiled, &acc, |k, all| {
                    epilogue::store(k, &tiled, all, &finish);
                }),
            }
        }
    }
    k.finish()
}

/// How the matrices lie, unless all do row by row.
fn lies(layout: Layout) -> Option<&'static str> {
    match layout {
        Layout::Nn => None,
        Layout::Nt => Some("B lies column by column in memory, A and C row by row."),
        Layout::Tn => Some("A lies column by column in memory, B and C row by row."),
        Layout::Tt => Some("A and B lie column by column in memory, C row by row."),
    }
}

/// A matrix in global memory: element (row, column) lies at `row * stride + column`, or, column by
/// column, at `row + column * stride`; of a batch behind the first of the product's matrix.
#[derive(Clone, Copy, Debug)]
struct Matrix {
    buffer: BufferId,
    /// Elements from one row, or column, to the next.
    stride: Scalar,
    /// Which matrix of a batch it is, once the schedule has said so.
    batch: Option<Var>,
}

impl Matrix {
    fn at(&self, row: impl Into<Expr>, col: impl Into<Expr>) -> Access {
        let batch = self.batch.map(Expr::from);
        Access::new(self.buffer, batch.into_iter().chain([row.into(), col.into()]))
    }
}

/// The operands and extents of a product.
#[derive(Clone, Copy, Debug)]
struct Problem {
    a: Matrix,
    b: Matrix,
    c: Matrix,
    m: Scalar,
    n: Scalar,
    k: Scalar,
    /// The number of products, of a batch.
    batch: Option<Scalar>,
    /// Whether A, B and C are lists of matrices.
    listed: bool,
    /// Which product of a batch it is, once that is known.
    product: Option<Var>,
}

impl Problem {
    /// The problem of one product of a batch.
    fn of(self, k: &mut KernelBuilder, product: Option<Var>) -> Self {
        let matrices = [("a", self.a), ("b", self.b), ("c", self.c)];
        let [a, b, c] = match product.filter(|_| self.listed) {
            Some(nth) => {
                k.comment("The matrices of this product.");
                matrices.map(|(name, matrix)| Matrix {
                    buffer: k.choose(name, matrix.buffer, nth),
                    ..matrix
                })
            }
            None => matrices.map(|(_, matrix)| Matrix { batch: product, ..matrix }),
        };
        Self { a, b, c, product, ..self }
    }

    /// Declares the parameters in the order `A, B, C, M, N, K[, lda, ldb, ldc][, BATCH[, stride_a,
    /// stride_b, stride_c]]`.
    fn declare(k: &mut KernelBuilder, plan: &SgemmPlan) -> Self {
        let (a_op, b_op, c_op) = (Operand::Input(0), Operand::Input(1), Operand::Output(0));
        let (a, b, c) =
            (k.global("A", F32, a_op), k.global("B", F32, b_op), k.global("C", F32, c_op));
        let m = k.extent("M", Ty::I32, Extent::M);
        let n = k.extent("N", Ty::I32, Extent::N);
        let depth = k.extent("K", Ty::I32, Extent::K);
        let [a_by_col, b_by_col] = [plan.layout().transposes_a(), plan.layout().transposes_b()];
        let (lda, ldb, ldc) = if plan.pitched() {
            let outer = usize::from(plan.batch() == Some(Batch::Strided));
            let mut stride = |name, operand, by_col| {
                let dim = outer + usize::from(by_col);
                k.scalar(name, Ty::I32, Source::Stride { operand, dim })
            };
            (
                stride("lda", a_op, a_by_col),
                stride("ldb", b_op, b_by_col),
                stride("ldc", c_op, false),
            )
        } else {
            (if a_by_col { m } else { depth }, if b_by_col { depth } else { n }, n)
        };
        // The last vector of a pitched line may read past the line's end, into its padding. That much
        // of the padding must exist, behind the last line too; C's is never written.
        let readable = |extent: Scalar, vector: bool| match vector && plan.pitched() {
            true => (extent + 3) / 4 * 4,
            false => extent.into(),
        };
        let (a_vector, b_vector) = match plan.shape() {
            Shape::Naive(_) => (false, false),
            Shape::Tiled(t) => (t.a().overhangs(), t.b().overhangs()),
        };
        let batch = plan.batch().map(|_| k.extent("BATCH", Ty::I32, Extent::BATCH));
        let apart = [("stride_a", a_op), ("stride_b", b_op), ("stride_c", c_op)];
        let strided = batch.filter(|_| plan.batch() == Some(Batch::Strided));
        let apart = apart.map(|(name, operand)| {
            strided.map(|_| k.scalar(name, Ty::U64, Source::Stride { operand, dim: 0 }))
        });
        let listed = batch.filter(|_| plan.batch() == Some(Batch::Pointers));
        let mut shape = |buffer, nth, [rows, cols]: [Scalar; 2], stride: Scalar, by_col, vector| {
            let (dims, strides): ([Expr; 2], [Expr; 2]) = match by_col {
                false => ([rows.into(), readable(cols, vector)], [stride.into(), 1.into()]),
                true => ([readable(rows, vector), cols.into()], [1.into(), stride.into()]),
            };
            match listed {
                Some(count) => k.list(buffer, count.into(), dims, strides),
                None => batched(k, buffer, batch.zip(apart[nth]), dims, strides),
            }
        };
        shape(a, 0, [m, depth], lda, a_by_col, a_vector);
        shape(b, 1, [depth, n], ldb, b_by_col, b_vector);
        shape(c, 2, [m, n], ldc, false, false);
        let matrix = |buffer, stride| Matrix { buffer, stride, batch: None };
        let [a, b, c] = [matrix(a, lda), matrix(b, ldb), matrix(c, ldc)];
        let (listed, product) = (listed.is_some(), None);
        let problem = Self { a, b, c, m, n, k: depth, batch, listed, product };
        problem.requirements(k, plan, apart);
        problem
    }

    /// What a launch must satisfy: alignment of 16-byte accesses, divisibility of an aligned
    /// kernel, and extents that keep the kernel's index arithmetic inside an `int`.
    fn requirements(&self, k: &mut KernelBuilder, plan: &SgemmPlan, apart: [Option<Scalar>; 3]) {
        let (bm, bn) = plan.block_tile();
        // What K must be a multiple of without guards, and how far the loop over it gets.
        let (bk, reach) = match plan.shape() {
            // It ends at K, however it is unrolled.
            Shape::Naive(_) => (1, plan.unroll().unwrap_or(1).max(plan.partials())),
            Shape::Tiled(t) => match t.pipeline() {
                Pipeline::Async { stages, .. } => (t.bk(), t.bk() * (stages + 1)),
                _ => (t.bk(), t.bk() * 2),
            },
        };
        let passed = |step: u32| u64::from(i32::MAX as u32 - step);
        let columns = passed(bn).min(schedule::most_columns(plan));
        for (scalar, max) in [(self.m, passed(bm)), (self.n, columns), (self.k, passed(reach))] {
            k.require(Requirement::Range { scalar, min: 0, max });
        }
        if let Some(scalar) = self.batch.filter(|_| plan.products() > 1) {
            // The last block counts to the end of its products.
            k.require(Requirement::Range { scalar, min: 0, max: passed(plan.products()) });
        }
        // Whether M and N are accepted does not depend on which variant the number of terms asks for. K
        // itself may be any where none counts: the one with guards is then given 0.
        if !plan.guarded() || plan.variant() == Variant::Guarded {
            let products = self.batch.map(|batch| (batch, plan.products()));
            for (scalar, of) in
                [(self.m, bm), (self.n, bn), (self.k, bk)].into_iter().chain(products)
            {
                if of > 1 {
                    k.require(Requirement::Multiple { scalar, of: of.into() });
                }
            }
        }
        let Shape::Tiled(t) = plan.shape() else { return };
        let accesses = [
            (t.a().width(), Operand::Input(0), [Some(self.a.stride), apart[0]]),
            (t.b().width(), Operand::Input(1), [Some(self.b.stride), apart[1]]),
            (t.epilogue().width(), Operand::Output(0), [Some(self.c.stride), apart[2]]),
        ];
        for (_, operand, strides) in accesses.into_iter().filter(|(width, ..)| *width == 4) {
            k.require(Requirement::Aligned { operand, bytes: 16 });
            for scalar in strides.into_iter().flatten() {
                k.require(Requirement::Multiple { scalar, of: 4 });
            }
        }
    }
}

/// Sets the shape of an array, behind the products of a batch: how many, and how far its parts lie apart.
fn batched<const N: usize>(
    k: &mut KernelBuilder,
    buffer: BufferId,
    batch: Option<(Scalar, Scalar)>,
    dims: [Expr; N],
    strides: [Expr; N],
) {
    let (count, apart) = (batch.map(|(n, _)| n.into()), batch.map(|(_, apart)| apart.into()));
    k.shape(buffer, count.into_iter().chain(dims), apart.into_iter().chain(strides));
}
