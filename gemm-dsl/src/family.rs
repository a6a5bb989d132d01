//! Families of kernels: a spec becomes a verified program.

use crate::error::{SpecError, SpecErrors};
use crate::ir::{Elem, IrError, VerifiedProgram};
use crate::lower;
use crate::plan::{Blocks, ReducePlan};
use crate::spec::{
    Arith, EpilogueArg, GemmLayout, Instruction, ReduceSpec, SgemmSpec, Sharing, Spec, Tile,
};
use std::ops::Range;

/// A family of kernels, by the type of its specs: those of one macro, which are made into programs. What
/// every family has as data is a [`FamilyInfo`](crate::spec::FamilyInfo).
pub trait Family: Spec {
    /// Checks the spec, resolves it and builds its kernels and launches, which are verified.
    ///
    /// # Errors
    /// All of the spec's faults.
    fn program(&self) -> Result<VerifiedProgram, SpecErrors>;

    /// What the caller gives beside the arrays that all kernels of the family take.
    fn operands(&self) -> Vec<EpilogueArg> {
        Vec::new()
    }
}

/// A fault of the generator itself, reported like a fault of the spec instead of a panic.
impl From<IrError> for SpecErrors {
    fn from(error: IrError) -> Self {
        SpecError::at_value(&[], error.to_string()).into()
    }
}

impl Family for ReduceSpec {
    fn program(&self) -> Result<VerifiedProgram, SpecErrors> {
        let plan = self.plan()?;
        Ok(lower::reduce(&plan)?)
    }
}

/// Arrays that are cut along the axis that is folded, each piece wherever it is. A spec with `run` says where they may be
/// cut: pieces, or shards, have whole runs, but for the last one. For any cut the bits of the results are those of
/// [`Family::program`] on the whole.
impl ReduceSpec {
    /// The program that folds the elements of one shard. Its inputs are those of [`Family::program`], of the shard alone.
    /// Its extents are the shard's, `outer`, `len` and `inner` as far as there are such, and then `first`, the index
    /// that the shard's first element has in the whole, and `total`, the length of the whole, both along the axis that is
    /// folded: indices and `len` in a `map` are those of the whole. Its outputs are the [`partials`](Self::partials) of the
    /// shard's runs: packed arrays of (outer, runs, inner), with as many runs as [`runs`](Self::runs) says of `len`. A shard without
    /// elements has none, and nothing is launched.
    ///
    /// The contract of its kernels has it that `first` is a multiple of `run`, and `len` too, unless the shard ends with the
    /// whole. A shard has at most 2^31 − 1 runs where all elements are folded, and 65,535 where those of rows, columns or matrices are:
    /// as many as a grid has blocks along x, and along y.
    ///
    /// # Errors
    /// As [`Family::program`]; and a spec without `run` has no shards.
    pub fn program_of_shard(&self) -> Result<VerifiedProgram, SpecErrors> {
        Ok(lower::shard(&self.plan_of_runs()?)?)
    }

    /// The program that makes the results of what all shards have left. Its inputs are the [`partials`](Self::partials) of
    /// all runs of the whole, in the order of the runs: packed arrays of (outer, runs, inner), with as many runs as
    /// [`runs`](Self::runs) says of `len`, none where there is no element. Its extents are those of the whole, `outer`, `len` and
    /// `inner` as far as there are such, and its outputs are those of [`Family::program`].
    ///
    /// # Errors
    /// As [`program_of_shard`](Self::program_of_shard).
    pub fn program_of_partials(&self) -> Result<VerifiedProgram, SpecErrors> {
        Ok(lower::of_partials(&self.plan_of_runs()?)?)
    }

    /// What is left of a run: by what messages call them, arrays of these elements, one for each part that is kept of what
    /// was folded. A partial has an element of each.
    ///
    /// # Errors
    /// As [`program_of_shard`](Self::program_of_shard).
    pub fn partials(&self) -> Result<Vec<(String, Elem)>, SpecErrors> {
        Ok(lower::partials(&self.plan_of_runs()?))
    }

    /// The plan of a spec whose blocks fold runs.
    fn plan_of_runs(&self) -> Result<ReducePlan, SpecErrors> {
        let plan = self.plan()?;
        match plan.blocks() {
            Blocks::Runs(_) => Ok(plan),
            Blocks::One | Blocks::InTurn(_) => Err(self.without_runs().into()),
        }
    }
}

/// Products whose terms are summed in ranges, each by somebody else.
impl SgemmSpec {
    /// The ranges of `k` terms that blocks sum apart under `split_k: n`, in the order in which their sums are added: whole
    /// tiles along K, or rounds, so many that there are n ranges at most and none is empty. One of all terms where the key is
    /// not given. None where how many there are depends on the extents of C, as of `split_k: auto` and `stream_k`.
    ///
    /// ```
    /// use gemm_dsl::spec::SgemmSpec;
    ///
    /// let spec: SgemmSpec = "tile: 16x16x8, thread: 2x2, split_k: 3".parse()?;
    /// assert_eq!(spec.ranges(50)?, Some(vec![0..24, 24..48, 48..50]));
    /// # Ok::<(), gemm_dsl::SpecErrors>(())
    /// ```
    ///
    /// # Errors
    /// All of the spec's faults.
    pub fn ranges(&self, k: u64) -> Result<Option<Vec<Range<u64>>>, SpecErrors> {
        let plan = self.plan()?;
        let most = match self.sharing() {
            Sharing::Whole => 1,
            Sharing::Ranges(most) => u64::from(most),
            Sharing::AutoRanges | Sharing::Stream => return Ok(None),
        };
        let depth = u64::from(plan.depth());
        let of_range = k.div_ceil(depth).div_ceil(most) * depth;
        let ends = |begin: u64| (begin < k).then(|| begin..k.min(begin + of_range));
        let starts = std::iter::successors(Some(0), |begin: &u64| begin.checked_add(of_range));
        Ok(Some(starts.map_while(ends).collect()))
    }
}

/// Planes that are made once, for many products.
impl SgemmSpec {
    /// The program where the caller gives the planes of A, of B or of both, as [`splits_of_b`](Self::splits_of_b) makes
    /// them, behind all other inputs: the planes of each, then, where lines are scaled, the greatest magnitudes of each. None where
    /// there are no planes, or products have some of their own: but for single products under `mma: wgmma`.
    ///
    /// # Errors
    /// As [`Family::program`].
    pub fn program_with_splits(
        &self,
        planes: [bool; 2],
    ) -> Result<Option<VerifiedProgram>, SpecErrors> {
        let plan = self.plan()?;
        if !lower::accepts_splits(&plan) {
            return Ok(None);
        }
        Ok(Some(lower::sgemm_with_splits(&plan, planes)?))
    }

    /// The program that makes the planes of B for products in an arithmetic, whatever their tiles are. Its extents are N
    /// and K, its input is B, row by row or column by column. Its outputs are the planes and, where they stand for `f32`, a
    /// word, given as 0, that then says whether they do not hold all numbers, and, where columns are scaled, the greatest
    /// magnitude of each, given as zeros.
    ///
    /// # Errors
    /// `arith: f32` has no planes.
    pub fn splits_of_b(arith: Arith, by_column: bool) -> Result<VerifiedProgram, SpecErrors> {
        if arith == Arith::F32 {
            return Err(SpecErrors::new([no_planes()]));
        }
        let tile = Tile::new(64, 8, 32);
        let spec = Self::default().tile(tile).arith(arith).mma(Instruction::Wgmma).pitched(true);
        let layout = if by_column { GemmLayout::Nt } else { GemmLayout::Nn };
        Ok(lower::splits_of_b(&spec.layout(layout).plan()?)?)
    }
}

fn no_planes() -> SpecError {
    SpecError::at_value(
        &["arith"],
        "`arith: f32` takes A and B as they are, and has no planes; prepare them for another arithmetic, or give the \
         matrix itself"
            .to_owned(),
    )
}

impl Family for SgemmSpec {
    fn program(&self) -> Result<VerifiedProgram, SpecErrors> {
        let plan = self.plan()?;
        Ok(lower::sgemm(&plan)?)
    }

    fn operands(&self) -> Vec<EpilogueArg> {
        SgemmSpec::operands(self)
    }
}
