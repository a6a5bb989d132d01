//! Launches a spec on the simulator, and keeps what was seen of it.

mod recorder;

use crate::diff::Counts;
use gemm_bench::cli::Failure;
use gemm_bench::epilogue::few;
use gemm_bench::family::Family;
use gemm_bench::products::Products;
use gemm_bench::sample;
use gemm_bench::sample::{Arrays, SampleLaunch};
use gemm_dsl::Plan as _;
use gemm_dsl::ir::VerifiedProgram;
use gemm_dsl::parse;
use gemm_dsl::plan::{Decision as Decided, ReducePlan, SgemmPlan};
use gemm_dsl::spec::{Batch, Factor, Instruction};
use gemm_oracle::product::Size;
use gemm_runtime::watch::{Arguments, Profile, Trace, VerifiedKernel};
use gemm_runtime::{Device, Error, SassCounters};
pub(super) use recorder::LaunchRecord;
use recorder::{Recorder, Recording};
use std::sync::Arc;

/// A spec of either family, with its plan.
#[derive(Clone, Debug)]
pub(super) enum Spec {
    Reduce(Box<ReducePlan>),
    Sgemm(Box<SgemmPlan>),
}

/// A shape that a spec is simulated at.
#[derive(Clone, Copy, Debug)]
pub(super) enum SampleShape {
    Arrays(Arrays),
    Products(Products),
    /// Of as few products as a spec takes.
    Size(Size),
}

/// How many blocks are looked on at: all of a grid.
const ALL: fn([u32; 3]) -> u32 = |grid| grid.iter().product();

/// A launch that was looked on at.
pub(super) struct Observation {
    pub(super) kernel: VerifiedKernel,
    pub(super) grid: [u32; 3],
    pub(super) profile: Profile,
    pub(super) trace: Trace,
    pub(super) arguments: Arguments,
    pub(super) ran: SampleLaunch,
}

impl Spec {
    pub(super) fn parse(family: Family, line: &str) -> Result<Self, Failure> {
        Ok(match family {
            Family::Reduce => Self::Reduce(Box::new(line.parse()?)),
            Family::Sgemm => Self::Sgemm(Box::new(line.parse()?)),
        })
    }

    pub(super) fn line(&self) -> String {
        match self {
            Self::Reduce(plan) => plan.spec().to_string(),
            Self::Sgemm(plan) => plan.spec().to_string(),
        }
    }

    pub(super) fn decisions(&self) -> Vec<Decided> {
        match self {
            Self::Reduce(plan) => plan.decisions(),
            Self::Sgemm(plan) => plan.decisions(),
        }
    }

    /// The kernel that stands in for the preferred one, if there is one.
    pub(super) fn fallback(&self) -> Result<Option<VerifiedKernel>, Failure> {
        Ok(self.program()?.variants().nth(1).cloned())
    }

    pub(super) fn program(&self) -> Result<VerifiedProgram, Failure> {
        Ok(match self {
            Self::Reduce(plan) => plan.program()?,
            Self::Sgemm(plan) => plan.program()?,
        })
    }

    /// Where it is simulated.
    pub(super) fn at(&self) -> Result<SampleShape, Failure> {
        let shape = match self {
            Self::Reduce(plan) => sample::arrays(plan).map(SampleShape::Arrays),
            Self::Sgemm(plan) => sample::products(plan).map(SampleShape::Products),
        };
        shape.map_err(Failure::Usage)
    }

    /// Where it is simulated beside another one: at a shape that both take.
    pub(super) fn at_beside(&self, other: &Self) -> Result<SampleShape, Failure> {
        match (self, other) {
            (Self::Sgemm(own), Self::Sgemm(other)) => {
                let products = sample::products_of_both(own, other);
                products.map(SampleShape::Products).map_err(Failure::Usage)
            }
            _ => self.at(),
        }
    }

    /// Whether its matrices are those of lists.
    pub(super) fn is_of_lists(&self) -> bool {
        matches!(self, Self::Sgemm(plan) if plan.batch() == Some(Batch::Pointers))
    }

    /// Rows and columns of the tile of a block of a product.
    pub(super) fn block_tile(&self) -> Option<(u32, u32)> {
        match self {
            Self::Reduce(_) => None,
            Self::Sgemm(plan) => Some(plan.block_tile()),
        }
    }

    /// Rows and columns of the tile of a cluster of blocks, and the terms of one of K, of a product.
    pub(super) fn cluster_tile(&self) -> ([usize; 2], usize) {
        match self {
            Self::Reduce(_) => ([1; 2], 1),
            Self::Sgemm(plan) => {
                let (rows, columns) = plan.block_tile();
                let rows = rows * plan.spec().cluster;
                ([rows, columns].map(|of| of as usize), plan.depth() as usize)
            }
        }
    }

    /// Bits of what tensor cores multiply, if they do.
    pub(super) fn bits(&self) -> Option<u32> {
        match self {
            Self::Reduce(_) => None,
            Self::Sgemm(plan) => plan.spec().arith.format().map(|format| format.bits()),
        }
    }

    /// Few terms of which its kernel makes a product: none, but for one that reads boxes, of which none is empty, those of a tile.
    pub(super) fn few_terms(&self) -> usize {
        match self {
            Self::Sgemm(plan) if plan.spec().mma == Instruction::Wgmma => plan.depth() as usize,
            _ => 0,
        }
    }

    /// Bytes of a number of A or of B as the kernel of a product reads it: of its planes, where some are made.
    pub(super) fn bytes_of_number(&self) -> u64 {
        match self {
            Self::Sgemm(plan) => plan.spec().staged_bytes(Factor::A).into(),
            Self::Reduce(_) => 4,
        }
    }

    fn launch(&self, at: SampleShape, device: &Device) -> Result<SampleLaunch, Failure> {
        match (self, self.taken(at)) {
            (Self::Reduce(plan), SampleShape::Arrays(arrays)) => {
                sample::reduce(plan.spec(), arrays, device)
            }
            (Self::Sgemm(plan), SampleShape::Products(products)) => {
                sample::product(plan.spec(), products, device)
            }
            (Self::Sgemm(plan), SampleShape::Size(size)) => {
                sample::product(plan.spec(), few(plan, size), device)
            }
            _ => Err(internal("a shape of the other family").into()),
        }
    }

    /// What one launch takes of a shape: of several products one, where it is of no batch.
    pub(super) fn taken(&self, at: SampleShape) -> SampleShape {
        match (self, at) {
            (Self::Sgemm(plan), SampleShape::Products(Products { size, .. }))
                if plan.batch().is_none() =>
            {
                SampleShape::Products(Products::single(size))
            }
            _ => at,
        }
    }

    /// Launches for all of a shape: one, but as many as there are products where it is of no batch.
    pub(super) fn launches(&self, at: SampleShape) -> usize {
        match (self, at) {
            (Self::Sgemm(plan), SampleShape::Products(products)) if plan.batch().is_none() => {
                products.count()
            }
            _ => 1,
        }
    }

    /// Products that a block computes; 1 of a reduction.
    pub(super) fn products(&self) -> u32 {
        match self {
            Self::Reduce(_) => 1,
            Self::Sgemm(plan) => plan.products(),
        }
    }

    /// Launches it, and looks on at the first block of the kernel that does most.
    pub(super) fn look(&self, at: SampleShape) -> Result<Observation, Failure> {
        let seen = self.watched(at, Recorder::new(|_| 1))?;
        let (looked, _) = seen.ok_or_else(|| internal("the main launch was not seen"))?;
        Ok(looked)
    }

    /// The same of all blocks: with what happened in those behind the first.
    pub(super) fn look_at_all(
        &self,
        at: SampleShape,
    ) -> Result<(Observation, Vec<Trace>), Failure> {
        let seen = self.watched(at, Recorder::new(ALL))?;
        Ok(seen.ok_or_else(|| internal("the main launch was not seen"))?)
    }

    /// The same of the kernel that it prefers, whether or not that does most; none where it is not launched.
    pub(super) fn look_at_preferred(
        &self,
        at: SampleShape,
    ) -> Result<Option<(Observation, Vec<Trace>)>, Failure> {
        let name = self.program()?.preferred().name.clone();
        self.watched(at, Recorder::new(ALL).at(name))
    }

    fn watched(
        &self,
        at: SampleShape,
        eye: Recorder,
    ) -> Result<Option<(Observation, Vec<Trace>)>, Failure> {
        let eye = Arc::new(eye);
        let ran = self.launch(at, &eye.device())?;
        Ok(eye.seen().map(|Recording { kernel, grid, profile, trace, others, arguments }| {
            (Observation { kernel, grid, profile, trace, arguments, ran }, others)
        }))
    }

    /// The launch that comes to a fault; none where none does.
    pub(super) fn failed(&self, at: SampleShape) -> Option<LaunchRecord> {
        let eye = Arc::new(Recorder::new(|_| 1));
        self.launch(at, &eye.device()).err().and_then(|_| eye.failed())
    }

    /// What is counted of it at a shape, of all its launches.
    pub(super) fn counts(&self, at: SampleShape) -> Result<Counts, Failure> {
        let ran = self.launch(at, &Device::simulator_compiled())?;
        let (text, compiled) = sample::compiled_of_main(&ran.launched)?;
        Ok(Counts { text: *text, compiled: *compiled }.times(self.launches(at)))
    }
}

/// The instructions that a launch may execute which does what another one has done.
const INSTRUCTIONS: u64 = 1 << 36;

impl Observation {
    /// What was counted of it.
    pub(super) fn counts(&self) -> Result<Counts, Failure> {
        Ok(Counts { text: self.profile.total, compiled: *self.compiled()? })
    }

    /// What its first block does when it runs once more, with other elements in the same arrays.
    pub(super) fn again(&self, arguments: &Arguments) -> Result<Option<Trace>, Failure> {
        let replay = arguments.replay(&self.kernel, &[0], INSTRUCTIONS).map_err(Error::from)?;
        replay.ran.map_err(Error::from)?;
        Ok(replay.traces.into_iter().next())
    }

    /// What the profiler would count of it.
    pub(super) fn compiled(&self) -> Result<&SassCounters, Failure> {
        let compiled = self.profile.compiled.as_ref();
        Ok(compiled.ok_or_else(|| internal("the launch was not counted as compiled"))?)
    }
}

pub(super) fn internal(what: &str) -> Error {
    Error::Internal(what.to_owned())
}

/// The entries of a line, each as it is written.
pub(super) fn entries(line: &str) -> Result<Vec<String>, Failure> {
    let entries = parse::entries(line)?;
    Ok(entries.into_iter().map(|alternatives| alternatives.join(" | ")).collect())
}
