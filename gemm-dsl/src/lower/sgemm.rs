//! Matrix products: C = A·B in `f32`, C row-major, A and B as the plan's layout says.
//!
//! Builders match on the plan and decide nothing; what a launch must satisfy, so that the indices
//! which they write stay inside an `int`, follows from it in [`Problem::requirements`]. A and B are one kind of thing, a
//! [`Factor`](tile::Factor), and what tells them apart are questions to their
//! [`OperandPlan`](crate::plan::OperandPlan), such as which of their axes is contiguous.
//!
//! Three seams keep the axes of a spec apart. The *schedule* alone knows which tile of C a block
//! works on. An operand is a [`Matrix`], which the builders index by row and column. The main loop
//! of a kernel whose threads hold tiles of C ends in [`Accumulators`](fragment::Accumulators), staged (`pipeline`)
//! or not (`direct`), and only the *epilogue* takes them to C; one whose threads have one sum after the other
//! (`naive`) does both itself.
//!
//! Every kernel in `arith: f32` sums the terms of an element from +0 on in ascending k, with one fused multiply-add
//! each, and what fills a ragged tile changes no sum (see `edge`), so that all kernels without
//! `partials`, `lanes: k`, `slices`, `split_k` and `stream_k` give the same bits, those of a zero's sign included.

mod block_tile;
mod copy;
mod direct;
mod edge;
mod epilogue;
mod finish;
mod fold;
mod fragment;
mod load;
mod matrix;
mod naive;
mod operands;
mod pipeline;
mod ring;
mod schedule;
mod slices;
mod split;
mod stream;
mod stream_k;
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
use crate::spec::{Along, Batch, Layout, SgemmOperand, SgemmSpec, Sharing, Slot};
use block_tile::{BlockTile, Parts};
use finish::Finish;
use fold::HandedOver;
use fragment::Accumulators;
use split::Split;
use stream_k::StreamK;
use tile::{Frame, Tiled};

/// The program of a matrix product: one launch. A kernel without guards takes a tile of K at the
/// least, so that empty sums are those of a kernel with guards.
///
/// # Errors
/// A kernel that breaks a rule of the IR: a mistake of this module.
pub fn sgemm(plan: &SgemmPlan) -> Result<VerifiedProgram, IrError> {
    let mut program = Program::default();
    let [m, n, k] = [Extent::M, Extent::N, Extent::K].map(|extent| program.extent(extent));
    let batch = plan.batch().map(|_| program.extent(Extent::BATCH));
    let asks = matches!(plan.sharing(), Sharing::AutoRanges | Sharing::Stream);
    let sms = asks.then(|| program.extent(Extent::SMS));
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
    let tiles = schedule::tiles(plan, [m.clone(), n.clone()], batch.clone());
    // By all of K, whether alpha lets its terms count or not: a launch that is captured needs no more memory than
    // one before it has needed.
    let (shared, of_blocks) = shared(&mut program, plan, tiles, &k, sms);
    bind.extend(split::slots(&mut program, plan, shared));
    let mut choose = vec![program.kernel(kernel(plan)?)];
    if let Some(scalar) = plan.scalar_variant() {
        choose.push(program.kernel(kernel(&scalar)?));
    }
    let mut extents = vec![(Extent::M, m), (Extent::N, n), (Extent::K, terms.clone())];
    if plan.spec().names_depth() {
        extents.push((Extent::DEPTH, k));
    }
    extents.extend(batch.map(|batch| (Extent::BATCH, batch)));
    extents.extend(of_blocks);
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

/// How blocks share the tiles of C, for the arrays that they share and for the kernels: by the extents of the
/// product, and where the spec says so by the multiprocessors of the device. What several of them need is computed
/// once: a launch of a small product takes a few microseconds.
fn shared(
    program: &mut Program,
    plan: &SgemmPlan,
    tiles: Expr,
    depth: &Expr,
    sms: Option<Expr>,
) -> (split::Sizes, Vec<(Extent, Expr)>) {
    let one = || Expr::U64(1);
    let ranges =
        |program: &mut Program, most| program.value(schedule::ranges(plan, depth.clone(), most));
    let terms = depth.clone();
    let sizes = |tiles, ranges, blocks| split::Sizes { tiles, ranges, blocks, terms };
    match (plan.sharing(), sms, plan.shape()) {
        (Sharing::AutoRanges, Some(sms), _) => {
            let tiles = program.value(tiles);
            let most = program.value(schedule::auto_ranges(plan, tiles.clone(), depth, sms));
            let ranges = ranges(program, most.clone());
            (sizes(tiles, ranges, one()), vec![(Extent::RANGES, most)])
        }
        (Sharing::Stream, Some(sms), Shape::Tiled(t)) => {
            let tiles = program.value(tiles);
            let resident = sms * u64::from(plan.blocks_per_sm());
            let blocks = stream_k::blocks(resident, tiles.clone(), depth, t.bk());
            let blocks = program.value(blocks);
            let extents = vec![(Extent::TILES, tiles.clone()), (Extent::BLOCKS, blocks.clone())];
            (sizes(tiles, one(), blocks), extents)
        }
        (Sharing::Ranges(most), ..) => {
            let tiles = program.value(tiles);
            let ranges = ranges(program, u64::from(most).into());
            (sizes(tiles, ranges, one()), Vec::new())
        }
        _ => (sizes(tiles, one(), one()), Vec::new()),
    }
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
        Shape::Direct(shape) => direct::body(&mut k, plan, shape, problem),
        Shape::Tiled(shape) => {
            let frame = Frame::declare(&mut k, plan, shape, problem);
            let split = Split::declare(&mut k, plan, &problem, frame.held());
            match problem.stream {
                None => {
                    let (tiled, parts) = frame.own_tile(&mut k);
                    product(&mut k, &tiled, parts, split.as_ref());
                }
                Some(stream) => {
                    let any = frame.any_tile(&mut k);
                    stream.each_tile(&mut k, &frame, |k, tile, range, segment| {
                        let tiled = frame.tile_of(k, any, tile, range);
                        product(k, &tiled, Some(Parts::Segment(segment)), split.as_ref());
                    });
                }
            }
        }
    }
    k.finish()
}

/// The tile of C, or the block's part of it.
fn product(k: &mut KernelBuilder, tiled: &Tiled<'_>, parts: Option<Parts>, split: Option<&Split>) {
    let block = BlockTile::of(tiled);
    let finish = Finish::declare(k, tiled.plan, &block.problem);
    let acc = pipeline::main_loop(k, tiled);
    if let Some(matrices) = &tiled.matrices {
        matrix::recompute(k, tiled, matrices, &acc);
    }
    match tiled.slices {
        None => finished(k, (&block, parts, split), (acc, None), &finish),
        Some(slices) => {
            let acc = acc.in_one(k, &block);
            let others = slices.of_block.hand_over(k, &block, &acc, None);
            finished(k, (&block, parts, split), (acc, Some(others)), &finish);
        }
    }
}

/// Takes the sums of a block to C, with those that slices have handed over, or leaves them for another block.
fn finished(
    k: &mut KernelBuilder,
    (block, parts, split): (&BlockTile<'_>, Option<Parts>, Option<&Split>),
    (acc, others): (Accumulators, Option<HandedOver>),
    finish: &Finish<'_>,
) {
    let add = |k: &mut KernelBuilder| {
        if let Some(others) = &others {
            others.add(k, block, &acc);
        }
    };
    match split.zip(parts) {
        None => block.by_holders(k, |k| {
            add(k);
            epilogue::store(k, block, &acc, finish);
        }),
        Some((split, parts)) => {
            if others.is_some() {
                block.by_holders(k, add);
            }
            split.gather(k, (block, &parts), acc, |k, all| epilogue::store(k, block, all, finish));
        }
    }
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
    /// The most ranges of K, where the launch says how many.
    ranges: Option<Scalar>,
    /// How blocks share all tiles, where they do so evenly.
    stream: Option<StreamK>,
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
    /// stride_b, stride_c]][, RANGES][, TILES, BLOCKS]`.
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
            Shape::Direct(d) => (d.a().overhangs(), d.b().overhangs()),
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
        let is = |sharing| plan.sharing() == sharing;
        let ranges = is(Sharing::AutoRanges).then(|| k.extent("RANGES", Ty::I32, Extent::RANGES));
        let stream = is(Sharing::Stream).then(|| StreamK::declare(k));
        let problem = Self { a, b, c, m, n, k: depth, batch, ranges, stream, listed, product };
        problem.requirements(k, plan, apart);
        problem
    }

    /// What a launch must satisfy: alignment of 16-byte accesses, divisibility of an aligned
    /// kernel, and extents that keep the kernel's index arithmetic inside an `int`.
    fn requirements(&self, k: &mut KernelBuilder, plan: &SgemmPlan, apart: [Option<Scalar>; 3]) {
        let (bm, bn) = plan.block_tile();
        // What K must be a multiple of without guards, and how far the loop over it gets.
        let bk = plan.depth();
        let reach = match plan.shape() {
            // It ends at K, however it is unrolled.
            Shape::Naive(_) => plan.unroll().unwrap_or(1).max(plan.partials()),
            Shape::Direct(_) => bk,
            Shape::Tiled(t) => match t.pipeline() {
                Pipeline::Async { stages, .. } => bk * (stages + 1),
                _ => bk * 2,
            },
        };
        // Tiles and rounds are counted in ranges.
        let reach = match plan.sharing() {
            Sharing::Whole | Sharing::Stream => reach,
            Sharing::Ranges(_) | Sharing::AutoRanges => reach + schedule::MOST_RANGES,
        };
        let passed = |step: u32| u64::from(i32::MAX as u32 - step);
        let columns = passed(bn).min(schedule::most_columns(plan));
        for (scalar, max) in [(self.m, passed(bm)), (self.n, columns), (self.k, passed(reach))] {
            k.require(Requirement::Range { scalar, min: 0, max });
        }
        if let Some(scalar) = self.ranges {
            let max = u64::from(schedule::MOST_RANGES);
            k.require(Requirement::Range { scalar, min: 1, max });
        }
        if let Some(StreamK { tiles, blocks }) = self.stream {
            // The number of a round's last tile, and of the next round, are those of an int.
            let most = u64::from(i32::MAX as u32 / 2);
            k.require(Requirement::Range { scalar: tiles, min: 0, max: most });
            k.require(Requirement::Range { scalar: blocks, min: 0, max: most });
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
        let [a, b, c] = match plan.shape() {
            Shape::Naive(_) => return,
            Shape::Direct(d) => [d.a().width(), d.b().width(), d.epilogue().width()],
            Shape::Tiled(t) => [t.a().width(), t.b().width(), t.epilogue().width()],
        };
        let accesses = [
            (a, Operand::Input(0), [Some(self.a.stride), apart[0]]),
            (b, Operand::Input(1), [Some(self.b.stride), apart[1]]),
            (c, Operand::Output(0), [Some(self.c.stride), apart[2]]),
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
