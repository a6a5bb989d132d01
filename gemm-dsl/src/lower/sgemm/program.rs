//! Programs of GEMMs: their arrays, extents and launches.

mod converted;
mod steps;
pub(crate) mod wgmma;

use super::common::fold_parts::{self, FoldParts};
use super::common::row_results;
use super::common::split_k::{self, SplitSizes};
use super::common::{schedule, stream_k, unrepresentable};
use super::kernel::kernel;
use crate::ir::program::{Program, Slot, Step};
use crate::ir::{Elem, Expr, Extent, IrError, Operand, Ty, VerifiedProgram};
use crate::plan::{KernelKind, SgemmPlan};
use crate::spec::{self, Along, Batch, Epilogue, EpilogueArg, Pairs, SgemmSpec, Sharing};

/// Builds the program of a GEMM: one launch, or the launches of `wgmma` or `converted` if A and B
/// are split. A kernel without guards needs at least one K tile. For K = 0 its guarded variant is
/// launched instead, so the results do not depend on guards.
///
/// # Errors
/// Returns an error if a kernel violates a rule of the IR, which is a bug in this module.
pub fn sgemm(plan: &SgemmPlan) -> Result<VerifiedProgram, IrError> {
    sgemm_with_splits(plan, [false; 2])
}

/// Builds the program of a GEMM whose caller also passes the splits of A, of B, or of both. They
/// follow all other inputs: for each operand its splits, and then its row maxima if rows are
/// scaled. Only a single GEMM with `mma: wgmma` accepts splits.
///
/// # Errors
/// Returns an error if the plan does not accept splits, and the errors of [`sgemm`].
pub fn sgemm_with_splits(plan: &SgemmPlan, given: [bool; 2]) -> Result<VerifiedProgram, IrError> {
    if given.contains(&true) && !accepts_splits(plan) {
        return Err(IrError { kernel: plan.kernel_name(), rule: wgmma::GIVEN.into() });
    }
    let mut program = Program::default();
    let size = ProblemSize::declare(&mut program, plan);
    let mut bind = matrices(&mut program, plan, &size);
    let BoundArgs { alpha, of_rows } = epilogue_args(&mut program, plan, &size, &mut bind);
    if let Some((nth, groups)) = plan.spec().offsets_input().zip(size.batch.clone()) {
        let offsets = Operand::Input(nth);
        bind.push(program.input(offsets, "offsets", Elem::U32, vec![groups + 1u64]));
    }
    let terms = counted_terms(&size.k, alpha);
    let tiles = schedule::tiles(plan, [size.m.clone(), size.n.clone()], size.batch.clone());
    // The workspace has the size for the full K, even if alpha = 0 makes the effective K 0. A
    // captured launch then needs no more memory than an earlier launch of the same shape.
    let (sizes, mut shares) =
        distribute_tiles(&mut program, plan, tiles.clone(), &size.k, size.sms.clone());
    shares.extend(persistent_blocks(&mut program, plan, tiles, &size));
    bind.extend(split_k::slots(&mut program, plan, sizes));
    let folds = Folds::declare(&mut program, plan, &size)?;
    shares.extend(folds.iter().map(|folds| (Extent::FOLD_PARTS, folds.parts.clone())));
    bind.extend(folds.iter().map(|folds| (FoldParts::operand(), folds.slot)));
    let extents = size.extents(plan, &terms, shares);
    let ProblemSize { m, n, k, distinct, .. } = size;
    let of_c = [m.clone(), n.clone(), k.clone()];
    let bindings = Bindings { bind, extents, size: [m, n, k], distinct, terms, given };
    program.steps = match (plan.kind(), plan.splits()) {
        (KernelKind::Wgmma(t), _) => wgmma::steps(&mut program, plan, t, bindings)?,
        (_, Some(splits)) => converted::steps(&mut program, plan, &splits, bindings)?,
        (_, None) => steps(&mut program, plan, bindings)?,
    };
    if let Some(Folds { slot, rows, parts }) = folds {
        let bind = [(FoldParts::operand(), slot)].into_iter().chain(of_rows).collect();
        let step = row_results::step(&mut program, plan, bind, rows, parts, of_c)?;
        program.steps.push(step);
    }
    VerifiedProgram::new(program)
}

/// Returns true if the caller may pass the splits of A and B.
pub fn accepts_splits(plan: &SgemmPlan) -> bool {
    plan.kind().wgmma().is_some_and(|t| !t.splits().are_matrices()) && plan.batch().is_none()
}

/// Extents of a GEMM, as expressions of its program.
struct ProblemSize {
    m: Expr,
    n: Expr,
    k: Expr,
    batch: Option<Expr>,
    /// Extents of the axes of the batch after the first.
    inner: Vec<Expr>,
    /// True if the batch consists of groups of rows, which share A and C.
    is_grouped: bool,
    /// Numbers of distinct matrices A and B in the batch, if the operands are split.
    distinct: Option<[Expr; 2]>,
    /// Number of SMs of the device, if the grid depends on it.
    sms: Option<Expr>,
}

impl ProblemSize {
    fn declare(program: &mut Program, plan: &SgemmPlan) -> Self {
        let [m, n, k] = [Extent::M, Extent::N, Extent::K].map(|extent| program.extent(extent));
        let batch = plan.batch().map(|_| program.extent(Extent::BATCH));
        let axes = plan.batch().map_or(0, Batch::axes);
        let inner = Extent::INNER_AXES.into_iter().take(axes.saturating_sub(1));
        let inner = inner.map(|extent| program.extent(extent)).collect();
        let has_splits = batch.is_some() && plan.splits().is_some();
        let distinct = has_splits
            .then(|| [Extent::BATCH_A, Extent::BATCH_B].map(|extent| program.extent(extent)));
        let shares = matches!(plan.sharing(), Sharing::AutoPartitions | Sharing::Stream);
        let asks = shares || plan.persistent();
        let sms = asks.then(|| program.extent(Extent::SMS));
        let is_grouped = plan.batch() == Some(Batch::Grouped);
        Self { m, n, k, batch, inner, is_grouped, distinct, sms }
    }

    /// Number of pairs of columns.
    fn pairs(&self) -> Expr {
        self.n.clone() / 2u64
    }

    /// Extents of an array with one element per GEMM of the batch.
    fn batched(&self, dims: &[&Expr]) -> Vec<Expr> {
        self.batch.iter().chain(dims.iter().copied()).cloned().collect()
    }

    /// Extents of an array with a matrix per GEMM of the batch, along all of its axes.
    fn along_axes(&self, dims: &[&Expr]) -> Vec<Expr> {
        let of_one = self.inner.iter().cloned().reduce(|all, of| all * of);
        let first = self.batch.clone().filter(|_| !self.is_grouped).map(|count| match of_one {
            None => count,
            Some(of_one) => count.div_ceil(of_one),
        });
        let axes = first.into_iter().chain(self.inner.iter().cloned());
        axes.chain(dims.iter().copied().cloned()).collect()
    }

    /// Extents of the kernels. K is 0 if alpha is zero.
    fn extents(
        &self,
        plan: &SgemmPlan,
        terms: &Expr,
        shares: Vec<(Extent, Expr)>,
    ) -> Vec<(Extent, Expr)> {
        let named = [(Extent::M, &self.m), (Extent::N, &self.n), (Extent::K, terms)];
        let mut extents: Vec<_> = named.map(|(extent, value)| (extent, value.clone())).into();
        if plan.spec().names_depth() {
            extents.push((Extent::DEPTH, self.k.clone()));
        }
        extents.extend(self.batch.clone().map(|batch| (Extent::BATCH, batch)));
        extents.extend(Extent::INNER_AXES.into_iter().zip(self.inner.iter().cloned()));
        let counts = [Extent::BATCH_A, Extent::BATCH_B].into_iter();
        extents.extend(counts.zip(self.distinct.iter().flatten().cloned()));
        extents.extend(shares);
        extents
    }
}

/// Adds A, B and C. For a batch, each is an array of matrices or a list of pointers.
fn matrices(program: &mut Program, plan: &SgemmPlan, size: &ProblemSize) -> Vec<(Operand, Slot)> {
    let listed = size.batch.as_ref().filter(|_| plan.batch() == Some(Batch::Pointers));
    let matrix = |rows: &Expr, cols: &Expr| match listed {
        Some(_) => vec![rows.clone(), cols.clone()],
        None => size.along_axes(&[rows, cols]),
    };
    let types = plan.types();
    // Groups have a B each.
    let of_b = || match plan.batch() {
        Some(Batch::Grouped) => size.batched(&[&size.k, &size.n]),
        _ => matrix(&size.k, &size.n),
    };
    let a = program.input(Operand::Input(0), "a", types.a, matrix(&size.m, &size.k));
    let b = program.input(Operand::Input(1), "b", types.b, of_b());
    let of_c = if plan.spec().pairs() == Pairs::One { size.pairs() } else { size.n.clone() };
    let dims = matrix(&size.m, &of_c);
    let c = match plan.spec().reads_c() {
        true => program.in_out(Operand::Output(0), "c", types.c, dims),
        false => program.output(Operand::Output(0), "c", types.c, dims),
    };
    if let Some(count) = listed {
        [a, b, c].into_iter().for_each(|(_, slot)| program.list(slot, count));
    }
    vec![a, b, c]
}

/// Folds of the epilogue over the rows of C.
struct Folds {
    /// Array of the parts of each row.
    slot: Slot,
    /// Number of rows of the batch.
    rows: Expr,
    /// Number of parts of each row.
    parts: Expr,
}

impl Folds {
    fn declare(
        program: &mut Program,
        plan: &SgemmPlan,
        size: &ProblemSize,
    ) -> Result<Option<Self>, IrError> {
        if !plan.epilogue().is_some_and(Epilogue::folds_rows) {
            return Ok(None);
        }
        let rows = match &size.batch {
            None => size.m.clone(),
            Some(batch) => batch.clone() * size.m.clone(),
        };
        let parts = fold_parts::parts(plan, size.n.clone());
        let parts = match plan.splits() {
            None => parts,
            Some(_) => parts.max(fold_parts::parts(&steps::f32_plan(plan)?, size.n.clone())),
        };
        let parts = program.value(parts);
        let slot = fold_parts::slot(program, plan, rows.clone(), parts.clone());
        Ok(Some(Self { slot, rows, parts }))
    }
}

/// Arguments of the epilogue that a program binds apart from the others.
struct BoundArgs {
    /// Factor of A·B, if the GEMM is scaled.
    alpha: Option<Expr>,
    /// Results of rows.
    of_rows: Vec<(Operand, Slot)>,
}

/// Adds the arrays and numbers of the epilogue, also those that it writes.
fn epilogue_args(
    program: &mut Program,
    plan: &SgemmPlan,
    size: &ProblemSize,
    bind: &mut Vec<(Operand, Slot)>,
) -> BoundArgs {
    let (mut alpha, mut of_rows) = (None, Vec::new());
    for operand in plan.spec().operands() {
        let is_of_row = operand.is_row_result();
        let EpilogueArg { name, along, slot } = operand;
        let dims = match along {
            // All GEMMs of a batch share a vector without the index `batch`.
            Along::N => vec![size.n.clone()],
            Along::M if is_of_row => {
                let batch = size.batch.iter().cloned();
                vec![batch.fold(size.m.clone(), |rows, batch| batch * rows)]
            }
            Along::M => vec![size.m.clone()],
            Along::Mn => size.along_axes(&[&size.m, &size.n]),
            Along::Pairs => size.along_axes(&[&size.m, &size.pairs()]),
            Along::Batch => size.batched(&[]),
            Along::BatchN => size.batched(&[&size.n]),
            Along::BatchM => size.batched(&[&size.m]),
            Along::Nothing => Vec::new(),
        };
        match slot {
            spec::ArgSlot::Array(nth) => {
                bind.push(program.input(Operand::Input(nth), name, plan.types().value(), dims));
            }
            spec::ArgSlot::Output(nth) if is_of_row => {
                let (operand, elem) = (Operand::Output(nth), plan.types().value());
                of_rows.push(program.output(operand, name, elem, dims));
            }
            spec::ArgSlot::Output(nth) => {
                bind.push(program.output(Operand::Output(nth), name, plan.types().c, dims));
            }
            spec::ArgSlot::Number(_) => {
                let is_alpha = plan.spec().scaled && name == SgemmSpec::ALPHA;
                let number = program.argument(name, Ty::Scalar(plan.types().value()));
                alpha = alpha.or(is_alpha.then_some(number));
            }
        }
    }
    BoundArgs { alpha, of_rows }
}

/// Effective K. By the rules of BLAS, A and B are not read if alpha is +0 or −0, and K is then 0.
fn counted_terms(k: &Expr, alpha: Option<Expr>) -> Expr {
    match alpha {
        Some(alpha) => {
            let is_zero = unrepresentable::magnitude(alpha).equals(Expr::U32(0));
            is_zero.select(0u64, k.clone())
        }
        None => k.clone(),
    }
}

/// Extents of a persistent kernel: the number of tiles, and of the blocks or clusters that share
/// them.
fn persistent_blocks(
    program: &mut Program,
    plan: &SgemmPlan,
    tiles: Expr,
    size: &ProblemSize,
) -> Vec<(Extent, Expr)> {
    let Some(sms) = size.sms.clone().filter(|_| plan.persistent()) else { return Vec::new() };
    let tiles = program.value(tiles);
    // Only whole clusters can be resident. At least one is launched.
    let resident = sms * u64::from(plan.blocks_per_sm());
    let (sharers, resident) = match plan.cluster() {
        1 => (Extent::BLOCKS, resident),
        blocks => {
            let whole = resident / u64::from(blocks);
            (Extent::CLUSTERS, whole.max(1u64))
        }
    };
    let resident = resident.min(tiles.clone());
    vec![(Extent::TILES, tiles), (sharers, resident)]
}

/// Bindings of operands and extents for the launches of a program.
pub(crate) struct Bindings {
    pub bind: Vec<(Operand, Slot)>,
    pub extents: Vec<(Extent, Expr)>,
    /// M, N and K. K is the full extent even if alpha is zero.
    pub size: [Expr; 3],
    /// Numbers of distinct matrices A and B in the batch, if the operands are split.
    pub distinct: Option<[Expr; 2]>,
    /// Effective K, which is 0 if alpha is zero.
    pub terms: Expr,
    /// For each of A and B, true if the caller passes the splits.
    pub given: [bool; 2],
}

/// Builds one launch, which runs the first kernel whose contract is met. For K = 0, the guarded
/// kernel runs instead.
fn steps(
    program: &mut Program,
    plan: &SgemmPlan,
    bindings: Bindings,
) -> Result<Vec<Step>, IrError> {
    let Bindings { bind, extents, terms, .. } = bindings;
    let choose = steps::products(program, plan)?;
    let launch = |choose| {
        let (bind, extents) = (bind.clone(), extents.clone());
        vec![Step::launch(choose, bind, extents)]
    };
    Ok(match plan.guarded_variant() {
        None => launch(choose),
        Some(guarded) => {
            let guarded = program.kernel(kernel(&guarded)?);
            let (then, otherwise) = (launch(choose), launch(vec![guarded]));
            vec![Step::either(terms.gt(0u64), then, otherwise)]
        }
    })
}

/// Computes how C's tiles are distributed among blocks: sizes of the workspace arrays, and extents
/// of the kernels. They depend on the problem size, and for some specs on the number of SMs. Each
/// run computes common values only once, as a launch of a small GEMM takes only a few microseconds.
fn distribute_tiles(
    program: &mut Program,
    plan: &SgemmPlan,
    tiles: Expr,
    k: &Expr,
    sms: Option<Expr>,
) -> (SplitSizes, Vec<(Extent, Expr)>) {
    let one = || Expr::U64(1);
    let sms = || {
        sms.unwrap_or_else(|| {
            unreachable!("ProblemSize: the number of SMs is an extent of the program")
        })
    };
    let partitions =
        |program: &mut Program, most| program.value(schedule::partitions(plan, k.clone(), most));
    let terms = k.clone();
    let sizes = |tiles, partitions, blocks| SplitSizes { tiles, partitions, blocks, terms };
    match plan.sharing() {
        Sharing::Whole => (sizes(tiles, one(), one()), Vec::new()),
        Sharing::AutoPartitions => {
            let tiles = program.value(tiles);
            let most = program.value(schedule::auto_partitions(plan, tiles.clone(), k, sms()));
            let partitions = partitions(program, most.clone());
            (sizes(tiles, partitions, one()), vec![(Extent::PARTITIONS, most)])
        }
        Sharing::Stream => {
            let tiles = program.value(tiles);
            let resident = sms() * u64::from(plan.blocks_per_sm());
            let blocks = stream_k::blocks(resident, tiles.clone(), k, plan.k_step());
            let blocks = program.value(blocks);
            let extents = vec![(Extent::TILES, tiles.clone()), (Extent::BLOCKS, blocks.clone())];
            (sizes(tiles, one(), blocks), extents)
        }
        Sharing::Partitions(most) => {
            let tiles = program.value(tiles);
            let partitions = partitions(program, u64::from(most).into());
            (sizes(tiles, partitions, one()), Vec::new())
        }
    }
}
