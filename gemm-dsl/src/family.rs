//! Kernel families: the traits that resolve a spec to a plan and a plan to verified programs.

use crate::artifact::{Artifact, Interface};
use crate::error::{SpecError, SpecErrors};
use crate::ir::{Elem, IrError, VerifiedProgram};
use crate::lower;
use crate::plan::{Blocks, MapPlan, ReducePlan, ScanPlan, SgemmPlan};
use crate::spec::{
    Along, ArgSlot, Arith, EpilogueArg, GemmLayout, Instruction, MapSpec, ReduceSpec, ScanSpec,
    SgemmSpec, Spec, Tile,
};
use std::fmt::Debug;
use std::str::FromStr;

/// Kernel family, identified by the type of its specs. Each kernel macro belongs to one family.
/// [`FamilyInfo`](crate::spec::FamilyInfo) describes a family as data.
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

/// Valid spec with all decisions made. Parsing text yields a plan, so each spec is planned only
/// once.
pub trait Plan:
    Clone + PartialEq + Debug + FromStr<Err = SpecErrors> + Send + Sync + 'static
{
    type Spec: Family<Plan = Self>;

    /// Returns the spec that was resolved.
    fn spec(&self) -> &Self::Spec;

    /// Builds the verified program: kernels and launches.
    ///
    /// # Errors
    /// Returns an error if a generated kernel breaks a rule of the IR, which is a bug of the
    /// generator.
    fn program(&self) -> Result<VerifiedProgram, SpecErrors>;

    /// Builds the program in the form that back ends execute, with its CUDA C.
    ///
    /// # Errors
    /// Returns the errors of [`program`](Self::program).
    fn artifact(&self) -> Result<Artifact, SpecErrors> {
        Ok(self.artifact_of(&self.program()?))
    }

    /// Artifact of the program that [`program`](Self::program) has built.
    fn artifact_of(&self, program: &VerifiedProgram) -> Artifact {
        let spec = self.spec();
        Artifact::new(spec.to_string(), spec.interface(), program)
    }
}

/// Reports a bug of the generator in the same form as a fault of the spec, instead of panicking.
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
        let index = self.operator().filter(|op| op.is_index());
        Interface::Reduction { over: self.over, index, topk: self.topk }
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

impl Family for MapSpec {
    type Plan = MapPlan;

    fn plan(&self) -> Result<MapPlan, SpecErrors> {
        self.plan()
    }

    fn interface(&self) -> Interface {
        let operands = self.operands().into_iter().map(|operand| operand.arg).collect();
        Interface::Elementwise { operands, is_flat: self.is_flat() }
    }
}

impl Plan for MapPlan {
    type Spec = MapSpec;

    fn spec(&self) -> &MapSpec {
        self.spec()
    }

    fn program(&self) -> Result<VerifiedProgram, SpecErrors> {
        Ok(lower::map(self)?)
    }
}

impl Family for ScanSpec {
    type Plan = ScanPlan;

    fn plan(&self) -> Result<ScanPlan, SpecErrors> {
        self.plan()
    }

    fn interface(&self) -> Interface {
        let name = "input".into();
        let input = EpilogueArg { name, along: Along::Mn, slot: ArgSlot::Array(0) };
        Interface::Elementwise { operands: [input].into_iter().collect(), is_flat: false }
    }
}

impl Plan for ScanPlan {
    type Spec = ScanSpec;

    fn spec(&self) -> &ScanSpec {
        self.spec()
    }

    fn program(&self) -> Result<VerifiedProgram, SpecErrors> {
        Ok(lower::scan(self)?)
    }
}

impl Family for SgemmSpec {
    type Plan = SgemmPlan;

    fn plan(&self) -> Result<SgemmPlan, SpecErrors> {
        self.plan()
    }

    fn interface(&self) -> Interface {
        Interface::Gemm { operands: self.operands().into(), batch: self.batch, pairs: self.pairs() }
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

/// Programs for reductions of arrays that are cut into shards along the folded axis. Cuts must be
/// at multiples of `run`, so every shard except the last consists of whole runs. The results have
/// the same bits as [`Plan::program`] on the whole array, for all such cuts.
impl ReducePlan {
    /// Builds the program that folds one shard.
    ///
    /// Its inputs are the inputs of [`Plan::program`], restricted to the shard. Its extents are
    /// `outer`, `len` and `inner` of the shard, as far as the spec uses them, followed by `first`
    /// and `total`. `first` is the index of the shard's first element in the whole array, and
    /// `total` is the whole array's length, both along the folded axis. Indices and `len` in a
    /// `map` refer to the whole array.
    ///
    /// Its outputs are the [`partials`](Self::partials) of the shard's runs. They are packed arrays
    /// of shape (outer, runs, inner), where `runs` is [`runs`](ReduceSpec::runs) of the shard's
    /// `len`. An empty shard has no runs, and its program launches nothing.
    ///
    /// The contract of the kernels requires that `first` is a multiple of `run`. `len` must also be
    /// a multiple of `run`, unless the shard is the last. If the whole array is folded, a shard has
    /// at most 2^31 − 1 runs, the limit of a grid along x. For rows, columns or matrices, it has at
    /// most 65,535 runs, the limit along y.
    ///
    /// # Errors
    /// Returns an error if the spec has no `run`, and the errors of [`Plan::program`].
    pub fn program_of_shard(&self) -> Result<VerifiedProgram, SpecErrors> {
        Ok(lower::shard(self.with_runs()?)?)
    }

    /// Builds the program that folds the partial results of all shards.
    ///
    /// Its inputs are the [`partials`](Self::partials) of all runs of the whole array, in the order
    /// of the runs. They are packed arrays of shape (outer, runs, inner), where `runs` is
    /// [`runs`](ReduceSpec::runs) of the whole `len`, or 0 for an empty array. Its extents are
    /// `outer`, `len` and `inner` of the whole array, as far as the spec uses them. Its outputs are
    /// the outputs of [`Plan::program`].
    ///
    /// # Errors
    /// Returns the errors of [`program_of_shard`](Self::program_of_shard).
    pub fn program_of_partials(&self) -> Result<VerifiedProgram, SpecErrors> {
        Ok(lower::of_partials(self.with_runs()?)?)
    }

    /// Returns the name, as used in messages, and the element type of each array of partial
    /// results. There is one array per component of the folded state, and each run has one element
    /// in every array.
    ///
    /// # Errors
    /// Returns an error for a spec without `run`.
    pub fn partials(&self) -> Result<Vec<(String, Elem)>, SpecErrors> {
        Ok(lower::partials(self.with_runs()?))
    }

    /// Returns the plan, or an error if its blocks do not fold runs.
    fn with_runs(&self) -> Result<&Self, SpecErrors> {
        match self.blocks() {
            Blocks::Runs(_) => Ok(self),
            Blocks::One | Blocks::InTurn(_) => Err(self.spec().without_runs().into()),
        }
    }
}

/// Programs that reuse the splits of A or B for several GEMMs.
impl SgemmPlan {
    /// Builds the program whose caller supplies the splits of A, of B, or of both, as
    /// [`SgemmSpec::splits_of_b`] computes them. Splits are the last inputs: for each matrix its
    /// splits and, for a scaled arithmetic, the greatest magnitude of each row of A or column of B.
    /// Returns `None` unless the spec is a single GEMM with `mma: wgmma`.
    ///
    /// # Errors
    /// Returns the errors of [`Plan::program`].
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
    /// Builds the program that splits B for GEMMs in `arith`; the splits do not depend on the
    /// tiles.
    ///
    /// Its extents are N and K. Its input is B, row-major or column-major. Its outputs are:
    /// * the splits;
    /// * for FP32 emulation, a word that the caller passes as 0 and that is set if the splits
    ///   cannot represent some number;
    /// * for a scaled arithmetic, the greatest magnitude of each column, in an array that the
    ///   caller passes as zeros.
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
