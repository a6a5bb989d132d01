//! What a search is about: how specs of a family are compiled, checked and timed.

use crate::cli::Failure;
use crate::timing::Fusion;
use gemm_runtime::Error;
use gemm_runtime::compile::Resources;
use gemm_runtime::spec::Spec;

/// The time of a spec at a size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpecTime {
    /// The time of a launch, in milliseconds.
    pub time: f64,
    /// In 10^9 floating-point operations, or bytes, a second.
    pub rate: f64,
    /// Over what it is compared with in the same run; NaN where there is nothing.
    pub ratio: f64,
}

/// A family of specs at a few sizes.
pub trait Target {
    /// The family.
    type Spec: Spec;

    /// The unit of rates.
    const UNIT: &'static str;
    /// What ratios are to.
    const BASELINE: &'static str;

    /// The sizes, in words.
    fn sizes(&self) -> Vec<String>;

    /// The spec of a line as it is launched at these sizes, with what they need and it lacks; `None` where
    /// it is not sound.
    fn spec(&self, line: &str) -> Option<Self::Spec> {
        line.parse().ok()
    }

    /// Something that compiles, loads and launches a spec on a few elements, and says what its
    /// machine code occupies. Several threads may do so at once.
    fn compiler(&self) -> impl Fn(&Self::Spec) -> Result<Resources, Error> + Sync;

    /// The error of a spec's result on a small problem, or at a size, and whether it is within
    /// rounding.
    ///
    /// # Errors
    /// Those of the launch.
    fn check(&mut self, size: Option<usize>, spec: &Self::Spec) -> Result<(f64, bool), Error>;

    /// What the epilogue of a spec costs at a size, of one that has one, over some rounds.
    ///
    /// # Errors
    /// Those of the launches.
    fn fusion(
        &mut self,
        _size: usize,
        _spec: &Self::Spec,
        _rounds: usize,
    ) -> Result<Option<Fusion>, Failure> {
        Ok(None)
    }

    /// The time of a spec at a size, over some rounds.
    ///
    /// # Errors
    /// Those of the launches.
    fn time(&mut self, size: usize, spec: &Self::Spec, rounds: usize) -> Result<SpecTime, Failure>;
}
