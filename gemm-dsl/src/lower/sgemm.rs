//! Matrix products: C = A·B in `f32`, C row-major, A and B as the plan's layout says.
//!
//! Builders match on the plan and decide nothing; what a launch must satisfy, so that the indices
//! which they write stay inside an `int`, follows from it in [`Problem::requirements`]. A and B are one kind of thing, a
//! [`Factor`](shared::tile::Factor), and what tells them apart are questions to their
//! [`OperandPlan`](crate::plan::OperandPlan), such as which of their axes is contiguous.
//!
//! Three seams keep the axes of a spec apart. The *schedule* alone knows which tile of C a block
//! works on. An operand is a [`Matrix`](shared::problem::Matrix), which the builders index by row and column. The main loop
//! of a kernel whose threads hold tiles of C ends in [`Accumulators`], staged (`pipeline`),
//! by warpgroups (`tensor`) or not (`direct`), and only the *epilogue* takes them to C; one whose threads have one sum after the other
//! (`naive`) does both itself.
//!
//! Every kernel in `arith: f32` sums the terms of an element from +0 on in ascending k, with one fused multiply-add
//! each, and what fills a ragged tile changes no sum (see `edge`), so that all kernels without
//! `partials`, `lanes: k`, `slices`, `split_k` and `stream_k` give the same bits, those of a zero's sign included.

mod direct;
mod mma;
pub(crate) mod program;
pub(crate) mod shared;
pub(crate) mod simt;
#[cfg(test)]
mod tests;
mod wgmma;

pub use program::wgmma::planes_of_b;

use crate::ir::Elem::F32;
use crate::ir::program::{Launch, Program, Slot as ProgramSlot, Step};
use crate::ir::{
    Expr, Extent, IrError, KernelBuilder, Operand, Ty, Variant, VerifiedKernel, VerifiedProgram,
};
use crate::plan::{SgemmPlan, Shape};
use crate::spec::{Along, Batch, Layout, SgemmOperand, SgemmSpec, Sharing, Slot};
use mma::recompute;
use shared::accumulator_tile::{BlockTile, Parts};
use shared::epilogue_expression::Finish;
use shared::intra_block_reduction::HandedOver;
use shared::problem::{Problem, Takes};
use shared::split_k::Split;
use shared::tile::{Frame, Tiled};
use shared::{epilogue, schedule, split_k, stream_k, unrepresentable};
use simt::fragment::Accumulators;
use simt::{naive, pipeline};
use wgmma::splits;

/// The program of a matrix product: one launch, or of warpgroups those of `program::wgmma`. A kernel without guards
/// takes a tile of K at the least, so that empty sums are those of a kernel with guards.
///
/// # Errors
/// A kernel that breaks a rule of the IR: a mistake of this module.
pub fn sgemm(plan: &SgemmPlan) -> Result<VerifiedProgram, IrError> {
    sgemm_of(plan, [false; 2])
}

/// The same where the caller also gives the planes of A, of B or of both, behind all other inputs: of each its planes, then,
/// where lines are scaled, their greatest magnitudes. For single products of warpgroups.
///
/// # Errors
/// As [`sgemm`].
pub fn sgemm_of(plan: &SgemmPlan, kept: [bool; 2]) -> Result<VerifiedProgram, IrError> {
    if kept.contains(&true) && !has_planes_to_give(plan) {
        return Err(IrError { kernel: plan.kernel_name(), rule: program::wgmma::GIVEN.into() });
    }
    let mut program = Program::default();
    let [m, n, k] = [Extent::M, Extent::N, Extent::K].map(|extent| program.extent(extent));
    let batch = plan.batch().map(|_| program.extent(Extent::BATCH));
    let has_planes = batch.is_some() && plan.shape().tensor().is_some();
    let distinct =
        has_planes.then(|| [Extent::BATCH_A, Extent::BATCH_B].map(|extent| program.extent(extent)));
    let shares = matches!(plan.sharing(), Sharing::AutoRanges | Sharing::Stream);
    let asks = shares || plan.persistent();
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
            let is_zero = unrepresentable::magnitude(alpha).equals(Expr::U32(0));
            is_zero.select(0u64, k.clone())
        }
        None => k.clone(),
    };
    let tiles = schedule::tiles(plan, [m.clone(), n.clone()], batch.clone());
    // By all of K, whether alpha lets its terms count or not: a launch that is captured needs no more memory than
    // one before it has needed.
    let resident = sms.clone().filter(|_| plan.persistent());
    let (shared, mut of_blocks) = shared(&mut program, plan, tiles.clone(), &k, sms);
    if let Some(sms) = resident {
        let tiles = program.value(tiles);
        // As many clusters as fit, of whole ones: at least one.
        let resident = sms * u64::from(plan.blocks_per_sm());
        let (sharers, resident) = match plan.cluster() {
            1 => (Extent::BLOCKS, resident),
            blocks => {
                let whole = resident / u64::from(blocks);
                (Extent::CLUSTERS, whole.clone().gt(1u64).select(whole, 1u64))
            }
        };
        let resident = resident.min(tiles.clone());
        of_blocks.extend([(Extent::TILES, tiles), (sharers, resident)]);
    }
    bind.extend(split_k::slots(&mut program, plan, shared));
    let named = [(Extent::M, &m), (Extent::N, &n), (Extent::K, &terms)];
    let mut extents: Vec<_> = named.into_iter().map(|(of, value)| (of, value.clone())).collect();
    if plan.spec().names_depth() {
        extents.push((Extent::DEPTH, k.clone()));
    }
    extents.extend(batch.clone().map(|batch| (Extent::BATCH, batch)));
    for (of, count) in [Extent::BATCH_A, Extent::BATCH_B].into_iter().zip(distinct.iter().flatten())
    {
        extents.push((of, count.clone()));
    }
    extents.extend(of_blocks);
    let given = Given { bind, extents, size: [m, n, k], distinct, terms, kept };
    program.steps = match plan.shape() {
        Shape::Tensor(t) => program::wgmma::steps(&mut program, (plan, t), given)?,
        Shape::Naive(_) | Shape::Direct(_) | Shape::Tiled(_) => steps(&mut program, plan, given)?,
    };
    VerifiedProgram::new(program)
}

/// Whether a caller can give the planes of its factors.
pub fn has_planes_to_give(plan: &SgemmPlan) -> bool {
    plan.shape().tensor().is_some() && plan.batch().is_none()
}

/// What the kernels of a program are given.
pub(crate) struct Given {
    bind: Vec<(Operand, ProgramSlot)>,
    extents: Vec<(Extent, Expr)>,
    /// M, N and K, whether alpha lets its terms count or not.
    size: [Expr; 3],
    /// How many matrices are the A, and the B, of products of a batch, where planes are made of them.
    distinct: Option<[Expr; 2]>,
    /// The terms that count.
    terms: Expr,
    /// Whether the caller gives the planes of A, and of B.
    kept: [bool; 2],
}

/// One launch, of the kernel whose contract is met; without terms of the one with guards.
fn steps(
    program: &mut Program,
    plan: &SgemmPlan,
    Given { bind, extents, terms, .. }: Given,
) -> Result<Vec<Step>, IrError> {
    let mut choose = vec![program.kernel(kernel(plan)?)];
    if let Some(scalar) = plan.scalar_variant() {
        choose.push(program.kernel(kernel(&scalar)?));
    }
    let launch = |choose| {
        let (bind, extents) = (bind.clone(), extents.clone());
        vec![Step::Launch(Launch { choose, bind, extents })]
    };
    Ok(match plan.guarded_variant() {
        None => launch(choose),
        Some(guarded) => {
            let guarded = program.kernel(kernel(&guarded)?);
            let (then, otherwise) = (launch(choose), launch(vec![guarded]));
            vec![Step::If { cond: terms.gt(0u64), then, otherwise }]
        }
    })
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
) -> (split_k::Sizes, Vec<(Extent, Expr)>) {
    let one = || Expr::U64(1);
    let ranges =
        |program: &mut Program, most| program.value(schedule::ranges(plan, depth.clone(), most));
    let terms = depth.clone();
    let sizes = |tiles, ranges, blocks| split_k::Sizes { tiles, ranges, blocks, terms };
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
    let mut b = KernelBuilder::new(plan.kernel_name());
    head(&mut b, plan);
    body(&mut b, plan);
    b.finish()
}

/// What the head of a kernel's text says.
fn head(b: &mut KernelBuilder, plan: &SgemmPlan) {
    let stored = if plan.spec().scaled { "alpha * A * B + beta * C" } else { "A * B" };
    let stored = match plan.epilogue() {
        Some(_) => format!("epilogue({stored})"),
        None => stored.to_owned(),
    };
    let shapes = "A is M x K, B is K x N, C is M x N";
    let arith = plan.spec().arith;
    let computed = match (arith.format(), arith.is_emulation()) {
        (None, _) => "f32".to_owned(),
        (Some(format), false) => format!("{}, summed in f32", format.name()),
        (Some(format), true) => {
            format!("f32, each number split into {} of {}", arith.planes(), format.name())
        }
    };
    match lies(plan.layout()).filter(|_| plan.shape().tensor().is_none()) {
        None => b.title(format!("C = {stored} in {computed}, row-major: {shapes}.")),
        Some(lies) => {
            b.title(format!("C = {stored} in {computed}: {shapes}."));
            b.title(lies);
        }
    }
    if let Some(t) = plan.shape().tensor() {
        b.title(format!(
            "In place of A and B it reads their planes, which lie along K, {}.",
            splits::rows(t)
        ));
    }
    match plan.batch() {
        None => {}
        Some(Batch::Strided) => {
            b.title("A batch: product p of BATCH has its A, B and C at A + p * stride_a, B + p * stride_b and");
            b.title("C + p * stride_c.");
        }
        Some(Batch::Pointers) => {
            b.title("A, B and C are arrays of pointers, each to the matrix of a product.");
        }
    }
    if plan.spec().scaled && plan.shape().tensor().is_none() {
        b.title("Where alpha is 0 the caller passes K = 0: A and B are then not read.");
    }
    if plan.spec().names_depth() {
        b.title("DEPTH is the extent of A and B all the same, which the epilogue knows as k.");
    }
    b.title(format!("sgemm_kernel!({})", plan.spec()));
    b.variant(plan.variant());
    if plan.variant() == Variant::Scalar {
        b.title("Access variant for operands that cannot be accessed 16 bytes at a time.");
    }
    if plan.variant() == Variant::Guarded {
        b.title("Variant for K = 0, with guards.");
    }
}

fn body(b: &mut KernelBuilder, plan: &SgemmPlan) {
    let problem = |b: &mut KernelBuilder| Problem::declare(b, plan, Takes::All);
    match plan.shape() {
        Shape::Tensor(shape) => wgmma::body(b, plan, shape),
        Shape::Naive(shape) => {
            let problem = problem(b);
            naive::body(b, plan, shape, problem);
        }
        Shape::Direct(shape) => {
            let problem = problem(b);
            direct::body(b, plan, shape, problem);
        }
        Shape::Tiled(shape) => {
            let problem = problem(b);
            let frame = Frame::declare(b, plan, shape, problem);
            let split = Split::declare(b, plan, &problem, frame.held());
            match problem.stream {
                None => {
                    let (tiled, parts) = frame.own_tile(b);
                    product(b, &tiled, parts, split.as_ref());
                }
                Some(stream) => {
                    let any = frame.any_tile(b);
                    stream.each_tile(b, &frame, |b, tile, range, segment| {
                        let tiled = frame.tile_of(b, any, tile, range);
                        product(b, &tiled, Some(Parts::Segment(segment)), split.as_ref());
                    });
                }
            }
        }
    }
}

/// The tile of C, or the block's part of it.
fn product(b: &mut KernelBuilder, tiled: &Tiled<'_>, parts: Option<Parts>, split: Option<&Split>) {
    let block = BlockTile::of(tiled);
    let finish = Finish::declare(b, tiled.plan, &block.problem);
    let acc = pipeline::main_loop(b, tiled);
    if let Some(matrices) = &tiled.matrices {
        recompute(b, tiled, matrices, &acc);
    }
    match tiled.slices {
        None => finished(b, (&block, parts, split), (acc, None), &finish),
        Some(slices) => {
            let acc = acc.in_one(b, &block);
            let others = slices.of_block.hand_over(b, &block, &acc, None);
            finished(b, (&block, parts, split), (acc, Some(others)), &finish);
        }
    }
}

/// Takes the sums of a block to C, with those that slices have handed over, or leaves them for another block.
fn finished(
    b: &mut KernelBuilder,
    (block, parts, split): (&BlockTile<'_>, Option<Parts>, Option<&Split>),
    (acc, others): (Accumulators, Option<HandedOver>),
    finish: &Finish<'_>,
) {
    let add = |b: &mut KernelBuilder| {
        if let Some(others) = &others {
            others.add(b, block, &acc);
        }
    };
    match split.zip(parts) {
        None => block.by_holders(b, |b| {
            add(b);
            epilogue::store(b, block, &acc, finish);
        }),
        Some((split, parts)) => {
            if others.is_some() {
                block.by_holders(b, add);
            }
            split.gather(b, (block, &parts), acc, |b, all| epilogue::store(b, block, all, finish));
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
