//! A spec of either macro, and the small problem on which it is simulated.

use crate::launch::{self, RunRecord};
use gemm_draw::shapes::{self, SimulationLimits};
use gemm_dsl::ir::{Extent, Variant, VerifiedProgram};
use gemm_dsl::plan::{Decision, ReducePlan, SgemmPlan};
use gemm_dsl::spec::{Over, ReduceSpec, SgemmSpec, Spec};
use gemm_dsl::stages::{self, Stage};
use gemm_dsl::tables::Target;
use gemm_dsl::{Plan as _, SpecErrors};

/// Limits of a simulation while the reader waits. The fastest GEMM takes a quarter of a second.
const MOST: SimulationLimits = SimulationLimits { elements: 1 << 21, fmas: 1 << 25 };

/// Simulation time per multiply-add, relative to plain kernels. Kernels with inter-block
/// synchronisation are run in several orders, and tensor cores are simulated bit by bit.
const ORDERS: u64 = 8;
const TENSOR_CORES: u64 = 4;

/// Minimum number of GEMMs in a batch. A block may compute more.
const PRODUCTS: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Reduce,
    Sgemm,
}

impl Family {
    /// Returns the family of a macro, by its name without the `!`.
    pub fn of_macro(name: &str) -> Option<Self> {
        let is_of = |family: &Self| family.macro_name() == name;
        [Self::Reduce, Self::Sgemm].into_iter().find(is_of)
    }

    /// Name of the macro, without the `!`.
    pub fn macro_name(self) -> &'static str {
        match self {
            Self::Reduce => ReduceSpec::MACRO,
            Self::Sgemm => SgemmSpec::MACRO,
        }
    }
}

/// Plan of a spec of either family.
#[derive(Clone, Debug)]
pub enum Subject {
    Reduce(Box<ReducePlan>),
    Sgemm(Box<SgemmPlan>),
}

/// Problem on which a spec is launched.
#[derive(Clone, Debug)]
pub struct Problem {
    pub words: String,
    extents: Vec<(Extent, u64)>,
    /// Offsets of the segments, for a reduction over segments.
    offsets: Option<Vec<u64>>,
}

impl Subject {
    /// Parses a spec and plans it.
    ///
    /// # Errors
    /// Returns all faults of the spec.
    pub fn parse(family: Family, line: &str) -> Result<Self, SpecErrors> {
        Ok(match family {
            Family::Reduce => Self::Reduce(Box::new(line.parse()?)),
            Family::Sgemm => Self::Sgemm(Box::new(line.parse()?)),
        })
    }

    /// Returns the spec of a GEMM, or `None` for a reduction.
    pub fn product(&self) -> Option<&SgemmSpec> {
        match self {
            Self::Reduce(_) => None,
            Self::Sgemm(plan) => Some(plan.spec()),
        }
    }

    /// Canonical text of the spec.
    pub fn line(&self) -> String {
        match self {
            Self::Reduce(plan) => plan.spec().to_string(),
            Self::Sgemm(plan) => plan.spec().to_string(),
        }
    }

    /// Generates the program.
    ///
    /// # Errors
    /// Returns an error on a fault of the generator.
    pub fn program(&self) -> Result<VerifiedProgram, SpecErrors> {
        match self {
            Self::Reduce(plan) => plan.program(),
            Self::Sgemm(plan) => plan.program(),
        }
    }

    /// Decisions of the plan, including those that the spec states.
    pub fn decisions(&self) -> Vec<Decision> {
        match self {
            Self::Reduce(plan) => plan.decisions(),
            Self::Sgemm(plan) => plan.decisions(),
        }
    }

    /// Returns the problem that the page of a stage uses, or a smaller problem if its simulation
    /// would take too long.
    ///
    /// # Errors
    /// Returns a message if a block is too large to simulate, or if an extent of the program is
    /// unknown.
    pub fn problem(&self, program: &VerifiedProgram) -> Result<Problem, String> {
        let (words, extent, offsets): (_, Box<dyn Fn(Extent) -> Option<u64>>, _) = match self {
            Self::Reduce(plan) => {
                let over = plan.spec().over;
                let arrays = shapes::arrays(plan, MOST)?;
                let (outer, len, inner) = arrays.size;
                let (outer, len, inner) = (outer as u64, len as u64, inner as u64);
                let is_segments = over == Over::Segments;
                let offsets = is_segments.then(|| (0..=outer).map(|n| n * len).collect());
                let all = arrays.elements as u64;
                let extent = move |extent| match extent {
                    Extent::LENGTH if is_segments => Some(all),
                    Extent::LENGTH => Some(len),
                    Extent::INNER => Some(inner),
                    Extent::OUTER | Extent::SEGMENTS => Some(outer),
                    _ => None,
                };
                (arrays.in_words(over), Box::new(extent), offsets)
            }
            Self::Sgemm(plan) => {
                let most = SimulationLimits { fmas: MOST.fmas / self.weight(program), ..MOST };
                let (m, n, k) = shapes::extents(plan, most)?;
                let products = shapes::products(plan).max(PRODUCTS);
                let extent = move |extent| match extent {
                    Extent::M => Some(m as u64),
                    Extent::N => Some(n as u64),
                    Extent::K => Some(k as u64),
                    Extent::SMS => Some(Target::H200.sms.into()),
                    Extent::BATCH | Extent::BATCH_A | Extent::BATCH_B => Some(products as u64),
                    _ => None,
                };
                let mut words = format!("m = {m}, n = {n}, k = {k}");
                if plan.batch().is_some() {
                    words += &format!(", {products} GEMMs");
                }
                (words, Box::new(extent), None)
            }
        };
        let unknown = |of| format!("internal error of the page: unknown extent `{of}`");
        let extents = program.extents.iter();
        let extents = extents.map(|of| {
            let value = extent(*of).ok_or_else(|| unknown(of))?;
            Ok::<_, String>((*of, value))
        });
        Ok(Problem { words, extents: extents.collect::<Result<_, _>>()?, offsets })
    }

    /// Simulation time per multiply-add, relative to a plain kernel.
    fn weight(&self, program: &VerifiedProgram) -> u64 {
        let orders = if program.preferred().communicates() { ORDERS } else { 1 };
        let products = match self {
            Self::Sgemm(plan) if plan.spec().arith.format().is_some() => {
                TENSOR_CORES.max(plan.spec().arith.products().len() as u64)
            }
            _ => 1,
        };
        orders * products
    }

    /// Returns the stage with this spec, if there is one, as the folder and the name of its
    /// snapshots.
    pub fn stage(&self) -> Option<(&'static str, String)> {
        fn stem<S: PartialEq>(spec: &S, stages: &[Stage<S>]) -> Option<String> {
            Some(stages.iter().find(|stage| stage.spec == *spec)?.stem())
        }
        match self {
            Self::Reduce(plan) => Some(("reduce", stem(plan.spec(), &stages::reduce())?)),
            Self::Sgemm(plan) => Some(("sgemm", stem(plan.spec(), &stages::sgemm())?)),
        }
    }

    /// Returns the registers of a variant of the kernel, for each architecture with a pinned
    /// compiler report.
    pub fn registers(&self, variant: Variant) -> Vec<gemm_draw::occupancy::Registers> {
        let of =
            |(ladder, stem): (&str, String)| gemm_draw::compiler::registers(ladder, &stem, variant);
        self.stage().map(of).unwrap_or_default()
    }

    /// Launches the program on the simulator.
    ///
    /// # Errors
    /// Returns the errors of [`launch::launch`].
    pub fn launch(
        &self,
        program: &VerifiedProgram,
        problem: &Problem,
    ) -> Result<RunRecord, launch::Failure> {
        launch::launch(program, &problem.extents, problem.offsets.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Multiply-adds of a spec's problem, and true if its blocks synchronise with each other.
    fn fmas(line: &str) -> (u64, bool) {
        let subject = Subject::parse(Family::Sgemm, line).expect("a line");
        let program = subject.program().expect("a program");
        let problem = subject.problem(&program).expect("a problem");
        let extents = problem.extents.iter();
        let own = extents.filter(|(of, _)| [Extent::M, Extent::N, Extent::K].contains(of));
        (own.map(|(_, extent)| extent).product(), program.preferred().communicates())
    }

    /// A spec whose launches are simulated in several orders gets a smaller problem.
    #[test]
    fn specs_simulated_in_several_orders_get_smaller_problems() {
        let line = "tile: 128x256x16, thread: 8x16";
        let (alone, speaks) = fmas(line);
        assert!(!speaks && alone > MOST.fmas / 8, "{alone}");
        let (streamed, speaks) = fmas(&format!("{line}, stream_k"));
        assert!(speaks && streamed <= MOST.fmas / 8, "{streamed}");
    }
}
