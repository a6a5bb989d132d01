//! The launch of a product on matrices: which kernel it is, once they are known, and what it is bound to.

use super::super::Callee;
use super::super::operands::{self, OperandsFor};
use super::super::table::ParsedTable;
use super::bind::{bind, bind_beside, shape_of};
use super::problem;
use crate::device::{Device, dispatch};
use crate::error::{Error, Result};
use crate::launch::launch;
use crate::operand::{Input, Output, read, resolve, write};
use crate::program::CachedProgram;
use crate::report::LaunchReport;
use crate::splits::SplitBuffers;
use crate::view::{MatrixMut, MatrixRef};
use gemm_dsl::ir::{Extent, Operand};
use gemm_dsl::spec::{EpilogueArg, SgemmSpec};
use gemm_dsl::tables::{SgemmProblem, SgemmShape};
use std::sync::Arc;

/// A matrix, and what the caller calls it.
pub(crate) type Called<M> = (&'static str, M);

/// The extents (m, n, k) of views that fit each other.
pub(crate) fn extents(
    (a_name, a): Called<&MatrixRef<'_>>,
    (b_name, b): Called<&MatrixRef<'_>>,
    (c_name, c): Called<&MatrixMut<'_>>,
) -> Result<(usize, usize, usize)> {
    let same = |extent, first: Called<usize>, other: Called<usize>| {
        if first.1 == other.1 {
            return Ok(first.1);
        }
        let [first, other] = [first, other].map(|(name, extent)| (name.to_owned(), extent));
        Err(Error::Extents { extent, first, other })
    };
    for (name, of) in [(a_name, a), (b_name, b)] {
        if let (Some(count), Some(products), true, true) =
            (of.count(), c.count(), of.is_list(), c.is_list())
        {
            same(Extent::BATCH, (name, count), (c_name, products))?;
        }
    }
    // An empty list has no other extents, and where one is, all are.
    if c.is_list() && c.count() == Some(0) {
        return Ok((0, 0, 0));
    }
    let m = same(Extent::M, (a_name, a.rows()), (c_name, c.rows()))?;
    let n = same(Extent::N, (b_name, b.cols()), (c_name, c.cols()))?;
    let k = same(Extent::K, (a_name, a.cols()), (b_name, b.rows()))?;
    Ok((m, n, k))
}

/// Callee chooses the kernel of a product once it is known how large the matrices are and how they lie.
pub(crate) trait Chooses {
    /// Callee the caller gives beside the matrices, whichever kernel it is.
    fn operands(&self) -> &[EpilogueArg];

    /// The line of the kernel.
    fn line(&self, problem: &SgemmProblem) -> Result<&str>;
}

impl Chooses for ParsedTable<SgemmSpec> {
    fn operands(&self) -> &[EpilogueArg] {
        &self.operands
    }

    fn line(&self, problem: &SgemmProblem) -> Result<&str> {
        self.line_for(problem)
    }
}

/// The program of a call, or what chooses it.
enum ProgramSource<'a> {
    One(Arc<CachedProgram>),
    Of(&'a dyn Chooses),
}

impl<'a> ProgramSource<'a> {
    fn from_call(what: Callee<'a, SgemmSpec>, device: &Device) -> Result<Self> {
        Ok(match what {
            Callee::Kernel(line) => Self::One(device.programs().get::<SgemmSpec>(line)?),
            Callee::Table(table) => Self::Of(table),
        })
    }

    /// Callee the caller gives beside the matrices.
    fn operands(&self) -> &[EpilogueArg] {
        match self {
            Self::One(program) => &program.operands,
            Self::Of(chooses) => chooses.operands(),
        }
    }
}

/// Launches the product that is chosen for its matrices; `splits` are those of A and of B that have been made.
pub(crate) fn launch_chosen<E>(
    chooses: &dyn Chooses,
    device: &Device,
    (a, b, c): (Called<&MatrixRef<'_>>, Called<&MatrixRef<'_>>, Called<&mut MatrixMut<'_>>),
    splits: [Option<&SplitBuffers>; 2],
    operands: &impl OperandsFor<E>,
) -> Result<LaunchReport> {
    let size = extents(a, b, (c.0, &*c.1))?;
    run(ProgramSource::Of(chooses), device, (a, b, c), splits, size, operands)
}

/// How large matrices of a device are and how they lie: what a product of them is chosen by.
pub(crate) fn shape_on(
    device: &Device,
    ((a_name, a), (b_name, b), (c_name, c)): (
        Called<&MatrixRef<'_>>,
        Called<&MatrixRef<'_>>,
        Called<&MatrixRef<'_>>,
    ),
    size: (usize, usize, usize),
) -> Result<SgemmShape> {
    dispatch!(device, on => {
        let (a, b, c) = (read(on, a, a_name)?, read(on, b, b_name)?, read(on, c, c_name)?);
        Ok(shape_of((&a, &b, &c), size))
    })
}

/// Launches a product; `size` is (m, n, k), `splits` are those of A and of B that have been made.
pub(super) fn multiply<E, A, B, C>(
    what: Callee<'_, SgemmSpec>,
    device: &Device,
    matrices: (Called<&A>, Called<&B>, Called<&mut C>),
    splits: [Option<&SplitBuffers>; 2],
    size: (usize, usize, usize),
    operands: &impl OperandsFor<E>,
) -> Result<LaunchReport>
where
    A: Input + ?Sized,
    B: Input + ?Sized,
    C: Output + ?Sized,
{
    run(ProgramSource::from_call(what, device)?, device, matrices, splits, size, operands)
}

/// The program that takes of these splits those that are for its arithmetic, with these.
pub fn with_splits(
    program: Arc<CachedProgram>,
    splits: [Option<&SplitBuffers>; 2],
) -> Result<(Arc<CachedProgram>, [Option<&SplitBuffers>; 2])> {
    if splits.iter().all(Option::is_none) {
        return Ok((program, splits));
    }
    let arith = program.spec::<SgemmSpec>().arith;
    let splits = splits.map(|splits| splits.filter(|splits| splits.are_for(arith)));
    Ok(match program.given(splits.map(|splits| splits.is_some()))? {
        Some(given) => (Arc::clone(given), splits),
        None => (program, [None, None]),
    })
}

/// As [`multiply`], of a program or what chooses it.
fn run<E, A, B, C>(
    of: ProgramSource<'_>,
    device: &Device,
    ((a_name, a), (b_name, b), (c_name, c)): (Called<&A>, Called<&B>, Called<&mut C>),
    splits: [Option<&SplitBuffers>; 2],
    size: (usize, usize, usize),
    operands: &impl OperandsFor<E>,
) -> Result<LaunchReport>
where
    A: Input + ?Sized,
    B: Input + ?Sized,
    C: Output + ?Sized,
{
    let beside = operands.give_all(of.operands())?;
    let (m, n, k) = (size.0 as u64, size.1 as u64, size.2 as u64);
    dispatch!(device, on => {
        let (a, b, c) = (read(on, a, a_name)?, read(on, b, b_name)?, write(on, c, c_name)?);
        let program = match of {
            ProgramSource::One(program) => program,
            ProgramSource::Of(chooses) => {
                let problem = problem(shape_of((&a, &b, &c), size), device);
                device.programs().get::<SgemmSpec>(chooses.line(&problem)?)?
            }
        };
        let (program, splits) = with_splits(program, splits)?;
        let mut read_splits = Vec::new();
        for splits in splits.into_iter().flatten() {
            read_splits.push((splits, splits.read(on)?));
        }
        let is_batch = program.program.extents.contains(&Extent::BATCH);
        let products = c.shape.map_or(1, |shape| shape.batch().count);
        let products = is_batch.then_some(products);
        // Nor does what lies beside no product need a shape that fits.
        let fits = !c.is_empty_list();
        let lies = |operand| program.by_column(operand);
        let in_a = bind(a_name, &a, (("m", m), ("k", k)), lies(Operand::Input(0)), fits)?;
        let in_b = bind(b_name, &b, (("k", k), ("n", n)), lies(Operand::Input(1)), fits)?;
        let output = bind(c_name, &c, (("m", m), ("n", n)), lies(Operand::Output(0)), fits)?;
        let mut inputs = vec![in_a.for_each_of(products)?, in_b.for_each_of(products)?];
        let distinct = products.map(|products| {
            [0, 1].map(|nth| if inputs[nth].is_shared() { products.min(1) } else { products })
        });
        // They record when they are dropped that they were used: not before the launch.
        let mut used = Vec::with_capacity(beside.arrays.len());
        for (operand, given) in operands::arrays(&program.operands).zip(beside.arrays) {
            used.push(resolve(on, given, &operand.name)?);
        }
        for (operand, array) in operands::arrays(&program.operands).zip(&used) {
            inputs.push(bind_beside(operand, array, (m, n), (products, fits))?);
        }
        // The splits of both stand before the greatest magnitudes of both.
        for nth in 0..2 {
            let bound = read_splits.iter().filter_map(|(splits, read)| splits.bind(read, nth));
            inputs.extend(bound);
        }
        let extents = &program.program.extents;
        let mut problem = vec![m, n, k];
        problem.extend(products.map(|products| products as u64));
        let distinct = distinct.filter(|_| extents.contains(&Extent::BATCH_A));
        problem.extend(distinct.into_iter().flatten().map(|count| count as u64));
        problem.extend(extents.contains(&Extent::SMS).then(|| u64::from(device.target().sms)));
        problem.extend(beside.numbers.iter().map(|number| u64::from(number.to_bits())));
        launch(on, &program, &inputs, &[output.for_each_of(products)?], &problem)
    })
}
