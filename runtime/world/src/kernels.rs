//! Kernels and epilogue operands for the parts of a distributed GEMM.

use super::{Block, Factor, Rank, Sharded};
use crate::collective::CollectiveContext;
use crate::execution::ProductPart;
use crate::selection::{CachedGemm, sums_alike};
use crate::{Error, Result};
use gemm_dsl::spec::{Along, EpilogueArg, SgemmSpec};
use gemm_runtime::bounds::{Operands, OperandsFor};
use gemm_runtime::internal::operand::Input;
use gemm_runtime::internal::{
    CachedProgram, GivenOperands, OperandForms, PendingSplit, Shape, SplitBuffers, arrays,
    call_program, load, operands as sealed, with_splits,
};
use gemm_runtime::{Device, LaunchReport, MatrixRef, SplitMatrix};
use std::borrow::Cow;
use std::marker::PhantomData;
use std::mem;
use std::sync::Arc;

/// Kernels of a distributed GEMM.
pub(crate) struct Kernels<'k, E> {
    device: Device,
    collective: &'k CollectiveContext,
    spec: Cow<'k, SgemmSpec>,
    /// The two programs, if an earlier call compiled them.
    made: Option<&'k [Arc<CachedProgram>; 2]>,
    /// True for kernels of tables, which are compiled for any matrix strides.
    is_from_table: bool,
    /// Sources of the splits: this rank's shards of A, transposed, and of B. `None` once the ranks
    /// have asked each other whether all values are representable.
    own: Option<[SplitSource<'k>; 2]>,
    /// Splits of the shards of A and B, if tensor cores multiply them.
    splits: [Option<SplitMatrix<'k>>; 2],
    /// Programs for packed and for padded parts. `None` until it is known whether the splits
    /// represent all values.
    kernels: Option<[Arc<CachedProgram>; 2]>,
    operands: PhantomData<fn() -> E>,
    /// True if the kernels are those of the f32 fallback, because the splits cannot represent some
    /// value.
    are_others: bool,
    /// Rows and columns of this rank's share of C.
    c: [usize; 2],
}

struct SplitSource<'k> {
    /// `None` for an empty shard.
    view: Option<MatrixRef<'k>>,
    /// Splits of the previous GEMM, whose memory the new splits reuse.
    spare: Option<Arc<SplitBuffers>>,
}

impl<'k, E: Operands> Kernels<'k, E> {
    /// Selects the kernels of a spec. If a single unrepresentable value makes the whole GEMM fall
    /// back to f32, the ranks must first ask each other for such values. With `late`
    /// ([`Selection::asks_late`](crate::selection::Selection)) they ask immediately before the
    /// first multiplication. Without `late` they ask in this function, or in [`ask`](Self::ask) if
    /// kernels may be loaded during exchanges.
    pub(crate) fn new(
        rank: &mut Rank,
        collective: &'k CollectiveContext,
        known: &'k CachedGemm,
        a: &'k Sharded,
        b: &'k Sharded,
        c: &Sharded,
        late: bool,
    ) -> Result<Self> {
        let CachedGemm { spec, is_from_table, transposition, kernels, .. } = known;
        let mut all = Self {
            device: rank.device().clone(),
            collective,
            spec: Cow::Borrowed(spec),
            made: kernels.as_ref(),
            is_from_table: *is_from_table,
            own: None,
            splits: [None, None],
            kernels: None,
            operands: PhantomData,
            are_others: false,
            c: [c.block().rows.len(), c.block().cols.len()],
        };
        if !spec.falls_back_as_a_whole() {
            all.make()?;
        } else if !late {
            let of_a = transposition.view(Factor::A, a.view());
            let of_b = transposition.view(Factor::B, b.view());
            let [spare_a, spare_b] = mem::take(&mut rank.splits);
            let own = |of: &Sharded, view, spare| SplitSource {
                view: (!of.block().is_empty()).then_some(view),
                spare,
            };
            all.own = Some([own(a, of_a.t(), spare_a), own(b, of_b, spare_b)]);
            if !rank.links.loads_beside() {
                all.ask()?;
            }
        }
        Ok(all)
    }

    /// Returns true if the ranks must still ask each other before any rank multiplies.
    pub(crate) fn asks(&self) -> bool {
        self.own.is_some()
    }

    /// Asks all ranks whether their splits cannot represent some value. If one of them cannot, the
    /// whole GEMM falls back to f32.
    pub(crate) fn ask(&mut self) -> Result<()> {
        if let Some(own) = self.own.take() {
            let begin = |SplitSource { view, spare }| {
                let begin = |view| self.device.begin_splits(self.spec.arith, &view, spare);
                view.map(begin).transpose()
            };
            let [a, b] = own.map(begin);
            let (a, b) = (a?, b?);
            // Launches both splits before waiting for either of them.
            let done =
                |of: Option<PendingSplit<'k>>| of.map(|of| of.done(&self.device)).transpose();
            self.splits = [done(a)?, done(b)?];
        }
        self.ask_of(self.splits.iter().flatten().any(|splits| !splits.is_whole()))
    }

    /// Returns the split buffers for reuse by the next GEMM of these extents.
    pub(crate) fn into_splits(self) -> [Option<Arc<SplitBuffers>>; 2] {
        self.splits.map(|splits| splits.and_then(SplitMatrix::into_splits))
    }

    /// Asks all ranks; `has_lost` is this rank's own answer.
    fn ask_of(&mut self, has_lost: bool) -> Result<()> {
        if self.collective.gather_all(vec![u8::from(has_lost)])?.iter().any(|has| *has != [0]) {
            self.spec = Cow::Owned(self.spec.in_f32());
            self.made = None;
            self.are_others = true;
            self.splits = [None, None];
        }
        self.make()
    }

    /// Selects the packed and the padded kernel. A table's kernels accept any matrix strides. If
    /// the bits of such a kernel depend on padding, every part uses the padded kernel, so that the
    /// bits do not depend on the number of ranks.
    fn make(&mut self) -> Result<()> {
        if let Some(programs) = self.made {
            self.kernels = Some(programs.clone());
            return Ok(());
        }
        let alike = sums_alike(&self.spec);
        let made = |padded: bool| {
            let spec = self.spec.as_ref().clone();
            match (self.is_from_table, alike) {
                (true, alike) => spec.for_matrices(self.spec.layout, padded || !alike),
                (false, true) if padded => spec.pitched(true),
                (false, _) => spec,
            }
        };
        let program = |padded| self.device.programs().get::<SgemmSpec>(&made(padded).to_string());
        self.kernels = Some([program(false)?, program(true)?]);
        Ok(())
    }

    /// Returns the programs for reuse by the next equal GEMM, or `None` for the f32 fallback.
    pub(crate) fn programs(&self) -> Option<[Arc<CachedProgram>; 2]> {
        self.kernels.clone().filter(|_| !self.are_others)
    }

    /// Returns true if the kernels are those of the f32 fallback, which were not loaded before the
    /// exchanges.
    pub(crate) fn are_others(&self) -> bool {
        self.are_others
    }

    /// Answers the other ranks' question if this rank multiplied nothing and so has not answered
    /// yet.
    pub(crate) fn end(&mut self) -> Result<()> {
        if self.kernels.is_none() { self.ask() } else { Ok(()) }
    }

    /// Loads everything that a part launches. Before the ranks have asked each other, only the
    /// kernels that compute splits are known. The other kernels are loaded later: after all
    /// exchanges, or during exchanges that allow it.
    pub(crate) fn ready(&self, part: &ProductPart<'_>) -> Result<()> {
        let programs = self.device.programs();
        let mut used = Vec::new();
        if let Some(kernels) = &self.kernels {
            let program = Arc::clone(&kernels[usize::from(part.is_padded())]);
            let (of_a, of_b) = self.splits_of(part.is_own);
            let of_a = of_a.as_ref().and_then(|a| a.splits(Factor::A));
            let splits = [of_a, of_b.and_then(|b| b.splits(Factor::B))];
            used.push(with_splits(program, splits)?.0);
        } else {
            for shape in [part.a.t().shape(), part.b.shape()] {
                let by_column = shape.is_column_major();
                used.push(programs.splits_of_b(self.spec.arith, by_column)?);
            }
        }
        Ok(used.iter().try_for_each(|program| load(&self.device, program))?)
    }

    /// Returns the splits of A, transposed back, and of B, for a part that uses the whole shard.
    fn splits_of(
        &self,
        [all_of_a, all_of_b]: [bool; 2],
    ) -> (Option<SplitMatrix<'_>>, Option<&SplitMatrix<'k>>) {
        let [of_a, of_b] = &self.splits;
        let of_a = of_a.as_ref().filter(|_| all_of_a).map(SplitMatrix::t);
        (of_a, of_b.as_ref().filter(|_| all_of_b))
    }

    /// Launches the GEMM of a part.
    pub(crate) fn launch<O: OperandsFor<E>>(
        &mut self,
        part: ProductPart<'_>,
        given: &mut O,
    ) -> Result<LaunchReport> {
        let is_padded = part.is_padded();
        let ProductPart { a, b, mut c, of_c, is_own } = part;
        if self.kernels.is_none() {
            let of = |view: &MatrixRef<'_>| {
                let is_empty = view.rows() == 0 || view.cols() == 0;
                let whole = || self.device.prepare(self.spec.arith, view).map(|p| p.is_whole());
                if is_empty { Ok(true) } else { whole() }
            };
            let is_whole = of(&a.t())? && of(&b)?;
            self.ask_of(!is_whole)?;
        }
        let Some([packed, pitched]) = &self.kernels else {
            return Err(Error::internal("no kernel was built".to_owned()));
        };
        let kernel = if is_padded { pitched } else { packed };
        let (of_a, of_b) = self.splits_of(is_own);
        let given = OperandSlice { given, of_c, c: self.c };
        let call = call_program::<PartOperands, _>(kernel, &self.device, given);
        let launched = match (of_a, of_b) {
            (None, None) => call.launch(&a, &b, &mut c),
            (Some(a), None) => call.launch(&a, &b, &mut c),
            (None, Some(b)) => call.launch(&a, b, &mut c),
            (Some(a), Some(b)) => call.launch(&a, b, &mut c),
        };
        Ok(launched?)
    }
}

/// Epilogue operands, cut to a part of the rank's share of C.
struct OperandSlice<'o, O> {
    given: &'o mut O,
    of_c: Block,
    /// Rows and columns of the rank's share of C.
    c: [usize; 2],
}

/// Operands of any kinds, cut to a part of C.
enum PartOperands {}

impl Operands for PartOperands {
    type List = Self;
    type Unset<'a> = ();
    type A = f32;
    type B = f32;
    type C = f32;
}

impl sealed::Operands for PartOperands {
    const KINDS: Option<&'static [&'static str]> = None;
}

impl<O: sealed::GiveAll> OperandsFor<PartOperands> for OperandSlice<'_, O> {}

impl<O: sealed::GiveAll> sealed::GiveAll for OperandSlice<'_, O> {
    fn forms(&self, operands: &[EpilogueArg]) -> gemm_runtime::error::Result<OperandForms> {
        self.given.forms(operands)
    }

    fn give_all(
        &mut self,
        operands: &[EpilogueArg],
    ) -> gemm_runtime::error::Result<GivenOperands<'_>> {
        let Block { rows, cols } = &self.of_c;
        let [m, n] = self.c;
        let mut beside = self.given.give_all(operands)?;
        let wrong = |operand: &EpilogueArg, has: usize, need: String| {
            let (argument, has) = (operand.name.to_string(), has as u64);
            gemm_runtime::Error::WrongExtent { argument, has, need }
        };
        let part_of_c = |operand: &EpilogueArg, whole: &Shape| {
            if (whole.rows, whole.cols) != (m, n) {
                let need = format!(
                    "its shape {} x {} is not {m} x {n}, the shape of this rank's part of C",
                    whole.rows, whole.cols
                );
                return Err(wrong(operand, whole.rows.saturating_mul(whole.cols), need));
            }
            whole.part(rows.clone(), cols.clone())
        };
        let outputs = operands.iter().filter(|operand| operand.is_output());
        for (operand, shape) in outputs.zip(beside.outputs_mut()) {
            // Kernels with results of rows, which are vectors, are rejected before.
            if let Some(shape) = shape {
                *shape = part_of_c(operand, shape)?;
            }
        }
        for ((operand, _), (elements, shape)) in arrays(operands).zip(beside.arrays_mut()) {
            let wrong = |has, need| wrong(operand, has, need);
            let (range, needed, of) = match (operand.along, &shape) {
                // A rank's part of C is a batch of one.
                (Along::Batch, _) => continue,
                (along @ (Along::BatchN | Along::BatchM), Some(whole)) => {
                    let (range, needed) =
                        if along == Along::BatchN { (cols, n) } else { (rows, m) };
                    if (whole.rows, whole.cols) != (1, needed) {
                        let need = format!(
                            "its shape {} x {} is not 1 x {needed}, a row for this rank's part of \
                             C",
                            whole.rows, whole.cols
                        );
                        return Err(wrong(whole.rows.saturating_mul(whole.cols), need));
                    }
                    *shape = Some(whole.part(0..1, range.clone())?);
                    continue;
                }
                (Along::Mn, Some(whole)) => {
                    *shape = Some(part_of_c(operand, whole)?);
                    continue;
                }
                (Along::M | Along::BatchM, _) => (rows, m, "row"),
                (Along::N | Along::BatchN | Along::Mn | Along::Pairs | Along::Nothing, _) => {
                    (cols, n, "column")
                }
            };
            let has = elements.len();
            let cut = elements.part(range.clone()).filter(|_| has >= needed);
            *elements = cut.ok_or_else(|| {
                wrong(
                    has,
                    format!("{needed} are needed, one for each {of} of this rank's part of C"),
                )
            })?;
        }
        Ok(beside)
    }
}
