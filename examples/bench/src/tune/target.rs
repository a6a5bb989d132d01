//! Target of a search: compilation, check and timing of a family's specs.

use crate::cli::Failure;
use crate::timing::Fusion;
use gemm_runtime::Error;
use gemm_runtime::compile::Resources;
use gemm_runtime::spec::Spec;

/// Time of a spec at a size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpecTime {
    pub time: f64,
    /// Rate in 10^9 floating-point operations per second, or in 10^9 bytes/s.
    pub rate: f64,
    /// Rate divided by the rate of the baseline in the same run. NaN without a baseline.
    pub ratio: f64,
}

/// Family of specs at a few sizes.
pub trait Target {
    type Spec: Spec;

    const UNIT: &'static str;
    /// Name of the baseline for ratios.
    const BASELINE: &'static str;

    /// Returns descriptions of the sizes.
    fn sizes(&self) -> Vec<String>;

    /// Parses a spec and adds the keys that the sizes require. Returns `None` if the spec is
    /// invalid.
    fn spec(&self, line: &str) -> Option<Self::Spec> {
        line.parse().ok()
    }

    /// Returns a function that compiles and loads a spec, launches it on a few elements, and
    /// returns its resources. Several threads may call the function at the same time.
    fn compiler(&self) -> impl Fn(&Self::Spec) -> Result<Resources, Error> + Sync;

    /// Checks a spec on a small problem, or at a size. Returns the error, and true if it is within
    /// the rounding bound.
    ///
    /// # Errors
    /// Returns the errors of the launch.
    fn check(&mut self, size: Option<usize>, spec: &Self::Spec) -> Result<(f64, bool), Error>;

    /// Measures the cost of a spec's epilogue at a size, over `rounds` rounds. Returns `None` if
    /// the spec has no epilogue.
    ///
    /// # Errors
    /// Returns the errors of the launches.
    fn fusion(
        &mut self,
        _size: usize,
        _spec: &Self::Spec,
        _rounds: usize,
    ) -> Result<Option<Fusion>, Failure> {
        Ok(None)
    }

    /// Times a spec at a size, over `rounds` rounds.
    ///
    /// # Errors
    /// Returns the errors of the launches.
    fn time(&mut self, size: usize, spec: &Self::Spec, rounds: usize) -> Result<SpecTime, Failure>;
}
