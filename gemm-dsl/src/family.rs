//! Kernel families: a spec resolves to a plan, and a plan to verified programs.

use crate::artifact::{Artifact, Interface};
use crate::error::{SpecError, SpecErrors};
use crate::ir::{Elem, IrError, VerifiedProgram};
use crate::lower;
use crate::plan::{Blocks, ReducePlan, SgemmPlan};
use crate::spec::{Arith, GemmLayout, Instruction, ReduceSpec, SgemmSpec, Spec, Tile};
use std::fmt::Debug;
use std::str::FromStr;

/// Kernel family, identified by the type of its specs. Each macro has one.
/// [`FamilyInfo`](crate::spec::FamilyInfo) has its data.
pub trait Family: Spec {
    /// Resolved form of a spec.
    type Plan: Plan<Spec = Self>;

    /// Checks and resolves the spec.
    ///
    /// # Errors
    /// Returns every fault of the spec.
    fn plan(&self) -> Result<Self::Plan, SpecErrors>;

    /// Returns the arguments of a call.
    fn interface(&self) -> Interface;
}

/// Sound spec with all decisions made. Text is parsed to a plan, so that it is planned only once.
pub trait Plan:
    Clone + PartialEq + Debug + FromStr<Err = SpecErrors> + Send + Sync + 'static
{
    type Spec: Family<Plan = Self>;

    /// Returns the spec that was resolved.
    fn spec(&self) -> &Self::Spec;

    /// Builds the verified program: kernels and launches.
    ///
    /// # Errors
    /// Returns a fault of the generator: a kernel that breaks a rule of the IR.
    fn program(&self) -> Result<VerifiedProgram, SpecErrors>;

    /// Builds the program in the form that back ends execute, with its CUDA C.
    ///
    /// # Errors
    /// As [`program`](Self::program).
    fn artifact(&self) -> Result<Artifact, SpecErrors> {
        Ok(self.artifact_of(&self.program()?))
    }

    /// Artifact of the program that [`program`](Self::program) has built.
    fn artifact_of(&self, program: &VerifiedProgram) -> Artifact {
        let spec = self.spec();
        Artifact::new(spec.to_string(), spec.interface(), program)
    }
}

/// Reports a fault of the generator like a fault of the spec, instead of a panic.
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

    fn interface(&self) -> Interface {
        Interface::Reduction { over: self.over }
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

    fn interface(&self) -> Interface {
        Interface::Gemm { operands: self.operands().into() }
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

/// Reductions of sharded arrays, cut along the folded axis. `run` decides where an array may be
/// cut: shards have whole runs, except the last one. The results have the bits of [`Plan::program`]
/// on the whole array, wherever it is cut.
impl ReducePlan {
    /// Builds the program that folds one shard.
    ///
    /// Its inputs are the inputs of [`Plan::program`], for the shard alone. Its extents are the
    /// shard's `outer`, `len` and `inner`, as far as the spec has them, and then `first` and
    /// `total`, along the folded axis: the index of the shard's first element in the whole, and the
    /// length of the whole. Indices and `len` in a `map` refer to the whole.
    ///
    /// Its outputs are the [`partials`](Self::partials) of the shard's runs: packed arrays of
    /// (outer, runs, inner), with [`runs`](ReduceSpec::runs) of the shard's `len`. An empty shard
    /// has no runs, and launches nothing.
    ///
    /// By the contract of its kernels, `first` is a multiple of `run`, and so is `len` unless the
    /// shard ends with the whole. A shard has at most 2^31 − 1 runs if all elements of an array are
    /// folded, and at most 65,535 for rows, columns or matrices: the limits of a grid along x and
    /// y.
    ///
    /// # Errors
    /// Returns an error for a spec without `run`, or as [`Plan::program`].
    pub fn program_of_shard(&self) -> Result<VerifiedProgram, SpecErrors> {
        Ok(lower::shard(self.with_runs()?)?)
    }

    /// Builds the program that folds the partial results of all shards.
    ///
    /// Its inputs are the [`partials`](Self::partials) of all runs of the whole, in the order of
    /// the runs: packed arrays of (outer, runs, inner), with [`runs`](ReduceSpec::runs) of the
    /// whole `len`; 0 for an empty array. Its extents are the whole's `outer`, `len` and `inner`,
    /// as far as the spec has them. Its outputs are the outputs of [`Plan::program`].
    ///
    /// # Errors
    /// As [`program_of_shard`](Self::program_of_shard).
    pub fn program_of_partials(&self) -> Result<VerifiedProgram, SpecErrors> {
        Ok(lower::of_partials(self.with_runs()?)?)
    }

    /// Returns the arrays that hold the partial result of a run: their names, as in messages, and
    /// their element types. There is one array per component of the folded state, and a partial
    /// result has one element in each.
    ///
    /// # Errors
    /// Returns an error for a spec without `run`.
    pub fn partials(&self) -> Result<Vec<(String, Elem)>, SpecErrors> {
        Ok(lower::partials(self.with_runs()?))
    }

    /// Returns the plan if its blocks fold runs.
    fn with_runs(&self) -> Result<&Self, SpecErrors> {
        match self.blocks() {
            Blocks::Runs(_) => Ok(self),
            Blocks::One | Blocks::InTurn(_) => Err(self.spec().without_runs().into()),
        }
    }
}

/// Splits of A and B that are computed once for many GEMMs.
impl SgemmPlan {
    /// Builds the program that takes the splits of A, of B, or of both from the caller, as
    /// [`SgemmSpec::splits_of_b`] computes them. They follow all other inputs: the splits of each
    /// matrix and, for a scaled arithmetic, the greatest magnitude of each row of A or column of B.
    /// `None` for specs other than single GEMMs with `mma: wgmma`.
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
    /// Builds the program that splits B for GEMMs in an arithmetic, with any tiles.
    ///
    /// Its extents are N and K, and its input is B, row-major or column-major. Its outputs are the
    /// splits; for FP32 emulation a word, passed as 0, that is set if the splits cannot represent
    /// some number; and for a scaled arithmetic the greatest magnitude of each column, passed as
    /// zeros.
    ///
    /// # Errors
    /// Returns an error for `arith: f32`, which splits nothing.
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
        "`arith: f32` uses A and B as they are, without splits; prepare them for another \
         arithmetic, or pass the matrix itself"
            .to_owned(),
    )
}
