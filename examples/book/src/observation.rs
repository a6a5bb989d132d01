//! Observation of a spec: its launch on the simulator and the recorded data.

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
use gemm_dsl::spec::{Batch, Factor};
use gemm_oracle::product::Size;
use gemm_runtime::sim::SassCounters;
use gemm_runtime::sim::watch::{Arguments, Profile, Trace, VerifiedKernel};
use gemm_runtime::{Device, Error};
pub(super) use recorder::LaunchRecord;
use recorder::{Recorder, Recording};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(super) enum Spec {
    Reduce(Box<ReducePlan>),
    Sgemm(Box<SgemmPlan>),
}

/// Shape for the simulation of a spec.
#[derive(Clone, Copy, Debug)]
pub(super) enum SampleShape {
    Arrays(Arrays),
    Products(Products),
    /// One GEMM shape. The launch has the smallest number of GEMMs that the spec accepts.
    Size(Size),
}

/// Number of blocks to record: all of the grid.
const ALL: fn([u32; 3]) -> u32 = |grid| grid.iter().product();

/// Recorded launch of a kernel.
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

    /// Second variant of the program, for operands that the preferred kernel does not accept.
    pub(super) fn fallback(&self) -> Result<Option<VerifiedKernel>, Failure> {
        Ok(self.program()?.variants().nth(1).cloned())
    }

    pub(super) fn program(&self) -> Result<VerifiedProgram, Failure> {
        Ok(match self {
            Self::Reduce(plan) => plan.program()?,
            Self::Sgemm(plan) => plan.program()?,
        })
    }

    /// Small shape for the simulation of the spec.
    pub(super) fn at(&self) -> Result<SampleShape, Failure> {
        let shape = match self {
            Self::Reduce(plan) => sample::arrays(plan).map(SampleShape::Arrays),
            Self::Sgemm(plan) => sample::products(plan).map(SampleShape::Products),
        };
        shape.map_err(Failure::Usage)
    }

    /// Sample shape that this spec and `other` accept.
    pub(super) fn at_beside(&self, other: &Self) -> Result<SampleShape, Failure> {
        match (self, other) {
            (Self::Sgemm(own), Self::Sgemm(other)) => {
                let products = sample::products_of_both(own, other);
                products.map(SampleShape::Products).map_err(Failure::Usage)
            }
            _ => self.at(),
        }
    }

    /// True for a batch given as lists of matrix pointers.
    pub(super) fn is_of_lists(&self) -> bool {
        matches!(self, Self::Sgemm(plan) if plan.batch() == Some(Batch::Pointers))
    }

    /// Rows and columns of the block tile of a GEMM.
    pub(super) fn block_tile(&self) -> Option<(u32, u32)> {
        match self {
            Self::Reduce(_) => None,
            Self::Sgemm(plan) => Some(plan.block_tile()),
        }
    }

    /// Rows and columns of the tile of a cluster, and the extent of a K tile. All are 1 for a
    /// reduction.
    pub(super) fn cluster_tile(&self) -> ([usize; 2], usize) {
        match self {
            Self::Reduce(_) => ([1; 2], 1),
            Self::Sgemm(plan) => {
                let (rows, columns) = plan.block_tile();
                let rows = rows * plan.spec().cluster;
                ([rows, columns].map(|of| of as usize), plan.k_step() as usize)
            }
        }
    }

    /// Width in bits of one operand element, if tensor cores are used.
    pub(super) fn bits(&self) -> Option<u32> {
        match self {
            Self::Reduce(_) => None,
            Self::Sgemm(plan) => plan.spec().arith.format().map(|format| format.bits()),
        }
    }

    /// Smallest K for a test launch: 0, or one K tile for a kernel that reads converted matrices,
    /// because K = 0 converts nothing.
    pub(super) fn min_k(&self) -> usize {
        match self {
            Self::Sgemm(plan) if plan.splits().is_some() => plan.k_step() as usize,
            _ => 0,
        }
    }

    /// Bytes of an element of A or B as the kernel reads it, including all components of the split.
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

    /// Shape of a single launch. A spec without a batch gets one GEMM.
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

    /// Number of launches for a shape: one for each GEMM if the spec has no batch.
    pub(super) fn launches(&self, at: SampleShape) -> usize {
        match (self, at) {
            (Self::Sgemm(plan), SampleShape::Products(products)) if plan.batch().is_none() => {
                products.count()
            }
            _ => 1,
        }
    }

    /// Number of GEMMs computed by a block. It is 1 for a reduction.
    pub(super) fn products(&self) -> u32 {
        match self {
            Self::Reduce(_) => 1,
            Self::Sgemm(plan) => plan.products(),
        }
    }

    /// Launches the kernels of the spec and records the first block of the [main
    /// step](gemm_runtime::LaunchReport::main_step).
    pub(super) fn look(&self, at: SampleShape) -> Result<Observation, Failure> {
        let seen = self.watched(at, Recorder::new(|_| 1))?;
        let (looked, _) = seen.ok_or_else(|| internal("the main launch was not recorded"))?;
        Ok(looked)
    }

    /// Launches the kernels of the spec and records all blocks of the main step. The traces of the
    /// other blocks are returned separately.
    pub(super) fn look_at_all(
        &self,
        at: SampleShape,
    ) -> Result<(Observation, Vec<Trace>), Failure> {
        let seen = self.watched(at, Recorder::new(ALL))?;
        Ok(seen.ok_or_else(|| internal("the main launch was not recorded"))?)
    }

    /// Launches the kernels of the spec as [`Self::look_at_all`] does, without detection of races.
    pub(super) fn look_at_all_unchecked(
        &self,
        at: SampleShape,
    ) -> Result<(Observation, Vec<Trace>), Failure> {
        let seen = self.watched(at, Recorder::new(ALL).unchecked())?;
        Ok(seen.ok_or_else(|| internal("the main launch was not recorded"))?)
    }

    /// Launches the kernels of the spec, without detection of races, and records all blocks of the
    /// preferred kernel. It differs
    /// from the [main step](gemm_runtime::LaunchReport::main_step) if the fallback runs instead.
    /// Returns `None` if the preferred kernel is not launched.
    pub(super) fn look_at_preferred(
        &self,
        at: SampleShape,
    ) -> Result<Option<(Observation, Vec<Trace>)>, Failure> {
        let name = self.program()?.preferred().name.clone();
        self.watched(at, Recorder::new(ALL).at(name).unchecked())
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

    /// Returns the first launch with a fault, or `None` if all launches succeed.
    pub(super) fn failed(&self, at: SampleShape) -> Option<LaunchRecord> {
        let eye = Arc::new(Recorder::new(|_| 1));
        self.launch(at, &eye.device()).err().and_then(|_| eye.failed())
    }

    /// Sum of the counters over all launches for a shape.
    pub(super) fn counts(&self, at: SampleShape) -> Result<Counts, Failure> {
        let ran = self.launch(at, &Device::simulator_compiled())?;
        let (text, compiled) = sample::compiled_of_main(&ran.launched)?;
        Ok(Counts { text: *text, compiled: *compiled }.times(self.launches(at)))
    }
}

/// Limit on the simulated instructions of a repeated launch.
const INSTRUCTIONS: u64 = 1 << 36;

impl Observation {
    /// Source counters, and counters of the compiled kernel.
    pub(super) fn counts(&self) -> Result<Counts, Failure> {
        Ok(Counts { text: self.profile.total, compiled: *self.compiled()? })
    }

    /// Repeats the launch with `arguments`, without detection of races, and returns the trace of
    /// the first block.
    pub(super) fn again(&self, arguments: &Arguments) -> Result<Option<Trace>, Failure> {
        let replay = arguments.retrace(&self.kernel, &[0], INSTRUCTIONS).map_err(Error::from)?;
        replay.ran.map_err(Error::from)?;
        Ok(replay.traces.into_iter().next())
    }

    /// Predicted counters of the compiled kernel.
    pub(super) fn compiled(&self) -> Result<&SassCounters, Failure> {
        let compiled = self.profile.compiled.as_ref();
        Ok(compiled
            .ok_or_else(|| internal("no compiled-kernel counters were recorded for this launch"))?)
    }
}

pub(super) fn internal(what: &str) -> Error {
    Error::Internal(what.to_owned())
}

/// Splits a spec into its entries.
pub(super) fn entries(line: &str) -> Result<Vec<String>, Failure> {
    let entries = parse::entries(line)?;
    Ok(entries.into_iter().map(|alternatives| alternatives.join(" | ")).collect())
}

/// Launch of a spec at its sample shape. Tests that ask for the same spec share one launch.
#[cfg(test)]
pub(super) fn looked(family: Family, line: &str) -> Arc<Observation> {
    use std::collections::BTreeMap;
    use std::sync::{Mutex, OnceLock, PoisonError};

    type Launches = BTreeMap<String, Arc<OnceLock<Arc<Observation>>>>;
    static LAUNCHES: Mutex<Launches> = Mutex::new(BTreeMap::new());
    let key = format!("{family:?} {line}");
    let mut launches = LAUNCHES.lock().unwrap_or_else(PoisonError::into_inner);
    let launch = Arc::clone(launches.entry(key).or_default());
    drop(launches);
    let look = || {
        let spec = Spec::parse(family, line).expect("a spec");
        Arc::new(spec.look(spec.at().expect("a shape")).expect("a launch"))
    };
    Arc::clone(launch.get_or_init(look))
}
