//! Launch of a GEMM: choice of the kernel for its matrices, and binding of arguments.

use super::super::Callee;
use super::super::operands::{self, sealed::GiveAll};
use super::super::table::ParsedTable;
use super::bind::{ExtentsOfC, NamedExtent, bind, bind_beside, halved, shape_of, wrong_shape};
use super::groups::{self, GroupOffsets};
use super::problem;
use crate::backend::Backend;
use crate::device::{Device, dispatch};
use crate::error::{Error, Result};
use crate::launch::{BoundArray, launch};
use crate::operand::{Input, Output, read, resolve, resolve_mut, write};
use crate::program::CachedProgram;
use crate::report::LaunchReport;
use crate::shape::{CallBatch, MAX_AXES, NamedBatch, Shape};
use crate::splits::SplitBuffers;
use crate::view::{MatrixMut, MatrixRef};
use gemm_dsl::ir::{Extent, Operand};
use gemm_dsl::spec::{Along, ArgSlot, EpilogueArg, Factor, Pairs, SgemmSpec};
use gemm_dsl::tables::{SgemmProblem, SgemmShape};
use gemm_dsl::target::element::Element;
use smallvec::SmallVec;
use std::sync::Arc;

/// Matrix with its name in messages.
#[derive(Clone, Copy)]
pub(crate) struct NamedMatrix<M> {
    name: &'static str,
    matrix: M,
}

impl<M> NamedMatrix<M> {
    pub(crate) fn new(name: &'static str, matrix: M) -> Self {
        Self { name, matrix }
    }
}

/// View with its name in messages.
type NamedView<'m, 'v, T> = NamedMatrix<&'m MatrixRef<'v, T>>;

/// Matrices of a GEMM, with prepared splits of A and of B.
pub(crate) struct GemmMatrices<'m, A: ?Sized, B: ?Sized, C: ?Sized> {
    pub(crate) a: NamedMatrix<&'m A>,
    pub(crate) b: NamedMatrix<&'m B>,
    pub(crate) c: NamedMatrix<&'m mut C>,
    pub(crate) splits: [Option<&'m SplitBuffers>; 2],
    /// Offsets of the groups of a grouped GEMM.
    pub(crate) groups: Option<GroupOffsets<'m>>,
    /// True if these are the matrices of Cᵀ = Bᵀ·Aᵀ, for a call whose C is column-major. The `[m,
    /// n]` operands of the call are then transposed, too.
    pub(crate) is_transposed: bool,
}

/// Extents (m, n, k) of views, after checking that they agree. `pairs` are the pairs of columns
/// that the epilogue computes.
pub(crate) fn extents<A: Element, B: Element, C: Element>(
    a: NamedMatrix<&MatrixRef<'_, A>>,
    b: NamedMatrix<&MatrixRef<'_, B>>,
    c: NamedMatrix<&MatrixMut<'_, C>>,
    pairs: Pairs,
) -> Result<(usize, usize, usize)> {
    let listed = c.matrix.is_list();
    let lists = [
        (a.name, a.matrix.is_list(), a.matrix.count()),
        (b.name, b.matrix.is_list(), b.matrix.count()),
    ];
    for (name, is_list, count) in lists {
        if let (Some(count), Some(products), true) = (count, c.matrix.count(), is_list && listed) {
            same(Extent::BATCH, (name, count), (c.name, products))?;
        }
    }
    // An empty list has no extents. If C is empty, all lists of the call must be empty.
    if c.matrix.is_list() && c.matrix.count() == Some(0) {
        return Ok((0, 0, 0));
    }
    let cols = match (pairs, c.matrix.cols()) {
        (Pairs::One, cols) if b.matrix.cols() / 2 == cols => b.matrix.cols(),
        (Pairs::One, cols) => cols.saturating_mul(2),
        (Pairs::None | Pairs::Both, cols) => cols,
    };
    let shapes = [(a.matrix.rows(), a.matrix.cols()), (b.matrix.rows(), b.matrix.cols())];
    check_transposes([a.name, b.name], shapes, (c.matrix.rows(), cols))?;
    let m = same(Extent::M, (a.name, a.matrix.rows()), (c.name, c.matrix.rows()))?;
    let n = b.matrix.cols();
    if pairs != Pairs::One {
        same(Extent::N, (b.name, n), (c.name, cols))?;
    } else if cols != n {
        let rows = NamedExtent::new("m", m as u64);
        let shape = (c.matrix.rows(), c.matrix.cols());
        return Err(wrong_shape(c.name, shape, rows, halved(NamedExtent::new("n", n as u64))));
    }
    let k = same(Extent::K, (a.name, a.matrix.cols()), (b.name, b.matrix.rows()))?;
    even_columns(pairs, b.name, n)?;
    Ok((m, n, k))
}

/// Checks that the columns of B are pairs, if the epilogue computes pairs.
fn even_columns(pairs: Pairs, argument: &str, columns: usize) -> Result<()> {
    match pairs {
        Pairs::Both | Pairs::One if !columns.is_multiple_of(2) => {
            Err(Error::OddColumns { argument: argument.to_owned(), columns })
        }
        Pairs::None | Pairs::Both | Pairs::One => Ok(()),
    }
}

/// Returns an error if the matrices fit an m×n C only after A, B or both are transposed.
fn check_transposes(
    [a, b]: [&str; 2],
    [of_a, of_b]: [(usize, usize); 2],
    (m, n): (usize, usize),
) -> Result<()> {
    let transpose = |(rows, cols): (usize, usize)| (cols, rows);
    let fits = |a: (usize, usize), b: (usize, usize)| a.0 == m && a.1 == b.0 && b.1 == n;
    let [m, n] = [("m", m), ("n", n)].map(|(name, value)| NamedExtent::new(name, value as u64));
    let k = |value: usize| NamedExtent::new("k", value as u64);
    if fits(of_a, of_b) {
        Ok(())
    } else if fits(of_a, transpose(of_b)) {
        Err(wrong_shape(b, of_b, k(of_a.1), n))
    } else if fits(transpose(of_a), of_b) {
        Err(wrong_shape(a, of_a, m, k(of_b.0)))
    } else if fits(transpose(of_a), transpose(of_b)) {
        Err(wrong_shape(a, of_a, m, k(of_a.0)))
    } else {
        Ok(())
    }
}

/// Extent of two matrices, after checking that it is the same.
fn same(extent: Extent, first: (&str, usize), other: (&str, usize)) -> Result<usize> {
    if first.1 == other.1 {
        return Ok(first.1);
    }
    let [first, other] = [first, other].map(|(name, extent)| (name.to_owned(), extent));
    Err(Error::Extents { extent, first, other })
}

/// A table or a [`sgemm`](crate::sgemm) call, which chooses a kernel by the extents and layouts of
/// the matrices.
pub(crate) trait Chooses {
    /// Operands of the call besides the matrices, the same for every kernel.
    fn operands(&self) -> &[EpilogueArg];

    /// Pairs of columns that the epilogue computes.
    fn pairs(&self) -> Pairs;

    /// Canonical line of the chosen kernel.
    fn line(&self, problem: &SgemmProblem) -> Result<&str>;
}

impl Chooses for ParsedTable<SgemmSpec> {
    fn operands(&self) -> &[EpilogueArg] {
        &self.operands
    }

    fn pairs(&self) -> Pairs {
        self.pairs
    }

    fn line(&self, problem: &SgemmProblem) -> Result<&str> {
        self.line_for(problem)
    }
}

/// Program of a call, or the chooser of the program.
enum ProgramSource<'a> {
    One(Arc<CachedProgram>),
    Of(&'a dyn Chooses),
}

impl<'a> ProgramSource<'a> {
    fn from_call(what: Callee<'a, SgemmSpec>, device: &Device) -> Result<Self> {
        Ok(match what {
            Callee::Kernel(kernel) => Self::One(kernel.program::<SgemmSpec>(device)?),
            Callee::Program(program) => Self::One(Arc::clone(program)),
            Callee::Table(table) => Self::Of(table),
        })
    }

    /// Operands of the call besides the matrices.
    fn operands(&self) -> &[EpilogueArg] {
        match self {
            Self::One(program) => program.operands(),
            Self::Of(chooses) => chooses.operands(),
        }
    }
}

/// Launches the kernel chosen for these matrices.
pub(crate) fn launch_chosen<A: Element, B: Element, C: Element>(
    chooses: &dyn Chooses,
    device: &Device,
    matrices: GemmMatrices<'_, MatrixRef<'_, A>, MatrixRef<'_, B>, MatrixMut<'_, C>>,
    operands: &mut impl GiveAll,
) -> Result<LaunchReport> {
    let GemmMatrices { a, b, c, .. } = &matrices;
    let size = extents(*a, *b, NamedMatrix::new(c.name, &*c.matrix), chooses.pairs())?;
    run(ProgramSource::Of(chooses), device, matrices, size, operands)
}

/// Shape of A, B and C on a device, for the choice of a rule. `has_padding` is true if operands are
/// padded.
pub(crate) fn shape_on<A: Element, B: Element, C: Element>(
    device: &Device,
    (a, b, c): (NamedView<'_, '_, A>, NamedView<'_, '_, B>, NamedView<'_, '_, C>),
    size: (usize, usize, usize),
    has_padding: bool,
) -> Result<SgemmShape> {
    dispatch!(device, on => {
        let (a, b) = (read(on, a.matrix, a.name)?, read(on, b.matrix, b.name)?);
        let c = read(on, c.matrix, c.name)?;
        let elems = [A::ELEM, B::ELEM, C::ELEM];
        Ok(padded_as(has_padding, shape_of([&a, &b, &c], elems, size)))
    })
}

/// Shape of a GEMM whose operands may be padded. A kernel takes padded operands if it takes padded
/// matrices.
fn padded_as(has_padding: bool, shape: SgemmShape) -> SgemmShape {
    shape.padded(shape.padded || has_padding)
}

/// Launches the GEMM of a kernel or a table; `size` is (m, n, k).
pub(super) fn multiply<A, B, C>(
    what: Callee<'_, SgemmSpec>,
    device: &Device,
    matrices: GemmMatrices<'_, A, B, C>,
    size: (usize, usize, usize),
    operands: &mut impl GiveAll,
) -> Result<LaunchReport>
where
    A: Input + ?Sized,
    B: Input + ?Sized,
    C: Output + ?Sized,
{
    run(ProgramSource::from_call(what, device)?, device, matrices, size, operands)
}

/// Returns the splits that suit the program's arithmetic, and the variant of the program that takes
/// them as inputs.
pub fn with_splits(
    program: Arc<CachedProgram>,
    splits: [Option<&SplitBuffers>; 2],
) -> Result<(Arc<CachedProgram>, [Option<&SplitBuffers>; 2])> {
    if splits.iter().all(Option::is_none) {
        return Ok((program, splits));
    }
    let arith = program.gemm()?.spec().arith;
    let splits = splits.map(|splits| splits.filter(|splits| splits.are_for(arith)));
    Ok(match program.given(splits.map(|splits| splits.is_some()))? {
        Some(given) => (Arc::clone(given), splits),
        None => (program, [None, None]),
    })
}

/// Returns the given program, or the one that is chosen for a shape.
fn chosen(
    of: ProgramSource<'_>,
    device: &Device,
    shape: impl FnOnce() -> SgemmShape,
) -> Result<Arc<CachedProgram>> {
    match of {
        ProgramSource::One(program) => Ok(program),
        ProgramSource::Of(chooses) => {
            device.programs().get::<SgemmSpec>(chooses.line(&problem(shape(), device))?)
        }
    }
}

/// Launches the given or the chosen program, as [`multiply`] does.
fn run<A, B, C>(
    of: ProgramSource<'_>,
    device: &Device,
    matrices: GemmMatrices<'_, A, B, C>,
    size: (usize, usize, usize),
    operands: &mut impl GiveAll,
) -> Result<LaunchReport>
where
    A: Input + ?Sized,
    B: Input + ?Sized,
    C: Output + ?Sized,
{
    let has_padding = match &of {
        ProgramSource::One(_) => false,
        ProgramSource::Of(chooses) => {
            let named = chooses.operands();
            operands::has_padding(named, &operands.forms(named)?)
        }
    };
    let beside = operands.give_all(of.operands())?;
    let GemmMatrices { a: in_a, b: in_b, c: out, splits, groups, is_transposed } = matrices;
    let [rows, cols] = if is_transposed { ["n", "m"] } else { ["m", "n"] };
    let [m, n, k] = [(rows, size.0), (cols, size.1), ("k", size.2)]
        .map(|(name, extent)| NamedExtent::new(name, extent as u64));
    dispatch!(device, on => {
        let (a, b) = (read(on, in_a.matrix, in_a.name)?, read(on, in_b.matrix, in_b.name)?);
        let c = write(on, out.matrix, out.name)?;
        let elems = [A::Element::ELEM, B::Element::ELEM, C::Element::ELEM];
        let shape = || padded_as(has_padding, shape_of([&a, &b, &c], elems, size));
        let (program, splits) = with_splits(chosen(of, device, shape)?, splits)?;
        let mut read_splits = SmallVec::<[_; 2]>::new();
        for (factor, splits) in Factor::BOTH.into_iter().zip(splits) {
            if let Some(splits) = splits {
                read_splits.push((factor, splits, splits.read(on)?));
            }
        }
        let groups = groups::of_kernel(&program, groups)?;
        let has = |extent| program.program().extents.contains(&extent);
        let products = match &groups {
            None => c.shape.map_or(1, |shape| shape.batch().count()),
            Some((_, offsets)) => offsets.groups()?,
        };
        let products = has(Extent::BATCH).then_some(products);
        // For an empty list, the shapes of the operands need not fit.
        let fits = !c.is_empty_list();
        let lies = |operand| program.by_column(operand);
        let a = bind(in_a.name, &a, m, k, lies(Operand::Input(0)), fits)?;
        let b = bind(in_b.name, &b, k, n, lies(Operand::Input(1)), fits)?;
        even_columns(program.pairs(), in_b.name, size.1)?;
        let cols = if program.pairs() == Pairs::One { halved(n) } else { n };
        let c = bind(out.name, &c, m, cols, lies(Operand::Output(0)), fits)?;
        // A guard records the use of its operand when it is dropped, so it must not be dropped
        // before the launch.
        let mut used = SmallVec::<[_; 4]>::new();
        let turned = |of: &EpilogueArg, shape: Shape| match is_transposed && of.along == Along::Mn {
            true => shape.transposed(),
            false => shape,
        };
        let names = operands::arrays(program.operands());
        for ((of, operand), (elements, shape)) in names.zip(beside.arrays) {
            let shape = shape.map(|shape| turned(of, shape));
            used.push((of, operand, resolve(on, elements, shape, &of.name)?));
        }
        let names = operands::outputs(program.operands());
        for ((of, operand), (elements, shape)) in names.zip(beside.outputs) {
            let shape = shape.map(|shape| turned(of, shape));
            used.push((of, operand, resolve_mut(on, elements, shape, &of.name)?));
        }
        let offsets = groups.as_ref().map(|(_, offsets)| offsets.locate(on)).transpose()?;
        let mut arrays = SmallVec::<[_; 8]>::new();
        arrays.extend([(Operand::Input(0), a), (Operand::Input(1), b)]);
        let of_c = ExtentsOfC { rows: m, cols: n, is_transposed, has_groups: groups.is_some() };
        for (of, operand, array) in &used {
            arrays.push((*operand, bind_beside(of, array, of_c, products, fits)?));
        }
        arrays.push((Operand::Output(0), c));
        let batch = batch_extents(&program, products, groups.is_some(), &mut arrays)?;
        for ((operand, _), offsets) in groups.iter().zip(&offsets) {
            arrays.push((*operand, groups::bind(offsets, products.unwrap_or(0))?));
        }
        for (factor, splits, read) in &read_splits {
            arrays.extend(splits.bind(*factor, read));
        }
        let mut extents = SmallVec::<[_; 8]>::new();
        extents.extend([(Extent::M, m.value), (Extent::N, n.value), (Extent::K, k.value)]);
        extents.extend(batch.into_iter().filter(|(extent, _)| has(*extent)));
        extents.extend(has(Extent::SMS).then(|| (Extent::SMS, u64::from(device.target().sms))));
        let numbers = operands::numbers(program.operands(), &beside.numbers);
        let values = program.program().bind(&extents, &numbers)?;
        launch(on, &program, &values, &arrays)
    })
}

/// Gives the matrices of a batch or of groups their batch axes, and returns the extents of the
/// kernel that follow from them. `products` is the number of GEMMs, or of groups.
fn batch_extents<B: Backend>(
    program: &CachedProgram,
    products: Option<usize>,
    has_groups: bool,
    arrays: &mut [(Operand, BoundArray<'_, B>)],
) -> Result<SmallVec<[(Extent, u64); 5]>> {
    Ok(match products {
        None => SmallVec::new(),
        Some(groups) if has_groups => groups::along_groups(groups, arrays)?.into_iter().collect(),
        Some(products) => along_axes(program, products, arrays)?.into(),
    })
}

/// Gives the matrices of a batch the axes of the program's batch. Returns the extents of the axes,
/// and the numbers of distinct A and of distinct B: 1 if all GEMMs share the matrix.
fn along_axes<B: Backend>(
    program: &CachedProgram,
    products: usize,
    arrays: &mut [(Operand, BoundArray<'_, B>)],
) -> Result<[(Extent, u64); 5]> {
    let kind = program.batch().unwrap_or_default();
    let has_axes = |operand: &Operand| {
        matches!(operand, Operand::Input(0 | 1) | Operand::Output(0))
            || program.operands().iter().any(|of| {
                let own = match of.slot {
                    ArgSlot::Array(nth) => Operand::Input(nth),
                    ArgSlot::Output(nth) => Operand::Output(nth),
                    ArgSlot::Number(_) => return false,
                };
                of.along.is_like_c() && own == *operand
            })
    };
    let mut matrices = SmallVec::<[_; 4]>::new();
    matrices.extend(arrays.iter_mut().filter(|(operand, _)| has_axes(operand)));
    let named: SmallVec<[NamedBatch<'_>; 4]> =
        matrices.iter().map(|(_, array)| (array.name(), array.batch().into())).collect();
    let batch = CallBatch::new(products, &named)?;
    batch.check(kind, &named)?;
    let axes = kind.axes().max(1);
    let mut distinct = [batch.count(); 2];
    for (operand, array) in matrices {
        array.for_each_of(&batch, axes);
        if let (Operand::Input(nth @ (0 | 1)), true) = (*operand, array.is_shared()) {
            distinct[nth] = distinct[nth].min(1);
        }
    }
    // The kernel divides by the extents of the axes after the first.
    let mut inner = batch.extents(MAX_AXES).skip(1).map(|extent| extent.max(1));
    let mut next = || inner.next().unwrap_or(1);
    Ok([
        (Extent::BATCH, batch.count()),
        (Extent::BATCH_1, next()),
        (Extent::BATCH_2, next()),
        (Extent::BATCH_A, distinct[0]),
        (Extent::BATCH_B, distinct[1]),
    ])
}
