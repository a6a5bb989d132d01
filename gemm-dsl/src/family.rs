//! Families of kernels: a spec has a plan, and a plan becomes verified programs.

use crate::error::{SpecError, SpecErrors};
use crate::ir::{Elem, IrError, VerifiedProgram};
use crate::lower;
use crate::plan::{Blocks, ReducePlan, SgemmPlan};
use crate::spec::{Arith, EpilogueArg, GemmLayout, Instruction, ReduceSpec, SgemmSpec, Spec, Tile};
use std::fmt::Debug;
use std::str::FromStr;

/// A family of kernels, by the type of its specs: those of one macro. What every family has as data is a
/// [`FamilyInfo`](crate::spec::FamilyInfo).
pub trait Family: Spec {
    /// What a spec resolves to.
    type Plan: Plan<Spec = Self>;

    /// Checks and resolves the spec.
    ///
    /// # Errors
    /// All of the spec's faults.
    fn plan(&self) -> Result<Self::Plan, SpecErrors>;

    /// What the caller gives beside the arrays that all kernels of the family take.
    fn operands(&self) -> Vec<EpilogueArg> {
        Vec::new()
    }
}

/// A sound spec with all decisions. A line of the DSL is read as one, so that it is planned once.
pub trait Plan:
    Clone + PartialEq + Debug + FromStr<Err = SpecErrors> + Send + Sync + 'static
{
    /// The specs that are resolved so.
    type Spec: Family<Plan = Self>;

    /// The spec that was resolved.
    fn spec(&self) -> &Self::Spec;

    /// Builds the kernels and launches, which are verified.
    ///
    /// # Errors
    /// A mistake of the generator: a kernel that breaks a rule of the IR.
    fn program(&self) -> Result<VerifiedProgram, SpecErrors>;
}

/// A fault of the generator itself, reported like a fault of the spec instead of a panic.
impl From<IrError> for SpecErrors {
    fn from(error: IrError) -> Self {
        SpecError::at_value(&[], error.to_string()).into()
    }
}

impl Family for ReduceSpec {
    type Plan = ReducePlan;

    fn plan(&self) -> Result<ReducePlan, SpecErrors> {
        self.plan()
    }
}

impl Plan for ReducePlan {
    type Spec = ReduceSpec;

    fn spec(&self) -> &ReduceSpec {
        self.spec()
    }

    fn program(&self) -> Result<VerifiedProgram, SpecErrors> {
        Ok(lower::reduce(self)?)
    }
}

impl Family for SgemmSpec {
    type Plan = SgemmPlan;

    fn plan(&self) -> Result<SgemmPlan, SpecErrors> {
        self.plan()
    }

    fn operands(&self) -> Vec<EpilogueArg> {
        self.operands()
    }
}

impl Plan for SgemmPlan {
    type Spec = SgemmSpec;

    fn spec(&self) -> &SgemmSpec {
        self.spec()
    }

    fn program(&self) -> Result<VerifiedProgram, SpecErrors> {
        Ok(lower::sgemm(self)?)
    }
}

/// Arrays that are cut along the axis that is folded, each piece wherever it is. A spec with `run` says where they may be
/// cut: pieces, or shards, have whole runs, but for the last one. For any cut the bits of the results are those of
/// [`Plan::program`] on the whole.
impl ReducePlan {
    /// The program that folds the elements of one shard. Its inputs are those of [`Plan::program`], of the shard alone.
    /// Its extents are the shard's, `outer`, `len` and `inner` as far as there are such, and then `first`, the index
    /// that the shard's first element has in the whole, and `total`, the length of the whole, both along the axis that is
    /// folded: indices and `len` in a `map` are those of the whole. Its outputs are the [`partials`](Self::partials) of the
    /// shard's runs: packed arrays of (outer, runs, inner), with as many runs as [`runs`](ReduceSpec::runs) says of `len`. A shard without
    /// elements has none, and nothing is launched.
    ///
    /// The contract of its kernels has it that `first` is a multiple of `run`, and `len` too, unless the shard ends with the
    /// whole. A shard has at most 2^31 − 1 runs where all elements are folded, and 65,535 where those of rows, columns or matrices are:
    /// as many as a grid has blocks along x, and along y.
    ///
    /// # Errors
    /// A spec without `run` has no shards; and as [`Plan::program`].
    pub fn program_of_shard(&self) -> Result<VerifiedProgram, SpecErrors> {
        Ok(lower::shard(self.with_runs()?)?)
    }

    /// The program that makes the results of what all shards have left. Its inputs are the [`partials`](Self::partials) of
    /// all runs of the whole, in the order of the runs: packed arrays of (outer, runs, inner), with as many runs as
    /// [`runs`](ReduceSpec::runs) says of `len`, none where there is no element. Its extents are those of the whole, `outer`, `len` and
    /// `inner` as far as there are such, and its outputs are those of [`Plan::program`].
    ///
    /// # Errors
    /// As [`program_of_shard`](Self::program_of_shard).
    pub fn program_of_partials(&self) -> Result<VerifiedProgram, SpecErrors> {
        Ok(lower::of_partials(self.with_runs()?)?)
    }

    /// What is left of a run: by what messages call them, arrays of these elements, one for each part that is kept of what
    /// was folded. A partial has an element of each.
    ///
    /// # Errors
    /// A spec without `run` has no shards.
    pub fn partials(&self) -> Result<Vec<(String, Elem)>, SpecErrors> {
        Ok(lower::partials(self.with_runs()?))
    }

    /// The plan, if its blocks fold runs.
    fn with_runs(&self) -> Result<&Self, SpecErrors> {
        match self.blocks() {
            Blocks::Runs(_) => Ok(self),
            Blocks::One | Blocks::InTurn(_) => Err(self.spec().without_runs().into()),
        }
    }
}

/// Planes that are made once, for many products.
impl SgemmPlan {
    /// The program where the caller gives the planes of A, of B or of both, as [`SgemmSpec::splits_of_b`] makes
    /// them, behind all other inputs: the planes of each, then, where lines are scaled, the greatest magnitudes of each. None where
    /// there are no planes, or products have some of their own: but for single products under `mma: wgmma`.
    ///
    /// # Errors
    /// As [`Plan::program`].
    pub fn program_with_splits(
        &self,
        splits: [bool; 2],
    ) -> Result<Option<VerifiedProgram>, SpecErrors> {
        if !lower::accepts_splits(self) {
            return Ok(None);
        }
        Ok(Some(lower::sgemm_with_splits(self, splits)?))
    }
}

impl SgemmSpec {
    /// The program that makes the planes of B for products in an arithmetic, whatever their tiles are. Its extents are N
    /// and K, its input is B, row by row or column by column. Its outputs are the planes and, where they stand for `f32`, a
    /// word, given as 0, that then says whether they do not hold all numbers, and, where columns are scaled, the greatest
    /// magnitude of each, given as zeros.
    ///
    /// # Errors
    /// `arith: f32` has no planes.
    pub fn splits_of_b(arith: Arith, by_column: bool) -> Result<VerifiedProgram, SpecErrors> {
        if arith == Arith::F32 {
            return Err(SpecErrors::new([no_splits()]));
        }
        let tile = Tile::new(64, 8, 32);
        let spec = Self::default().tile(tile).arith(arith).mma(Instruction::Wgmma).pitched(true);
        let layout = if by_column { GemmLayout::Nt } else { GemmLayout::Nn };
        Ok(lower::splits_of_b(&spec.layout(layout).plan()?)?)
    }
}

fn no_splits() -> SpecError {
    SpecError::at_value(
        &["arith"],
        "`arith: f32` takes A and B as they are, and has no planes; prepare them for another arithmetic, or give the \
         matrix itself"
            .to_owned(),
    )
}
