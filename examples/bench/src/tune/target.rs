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
    /// 10^9 floating-point operations, or bytes, a second.
    pub rate: f64,
    /// Rate over the baseline's in the same run; NaN without a baseline.
    pub ratio: f64,
}

/// Family of specs at a few sizes.
pub trait Target {
    type Spec: Spec;

    const UNIT: &'static str;
    /// Name of the baseline of ratios.
    const BASELINE: &'static str;

    /// Returns the sizes in words.
    fn sizes(&self) -> Vec<String>;

    /// Parses a spec and adds the keys that the sizes require; `None` if it is invalid.
    fn spec(&self, line: &str) -> Option<Self::Spec> {
        line.parse().ok()
    }

    /// Returns a function that compiles, loads and launches a spec on a few elements, and reports
    /// its resources. Several threads may call it at once.
    fn compiler(&self) -> impl Fn(&Self::Spec) -> Result<Resources, Error> + Sync;

    /// Checks a spec on a small problem, or at a size. Returns the error, and true if it is within
    /// rounding.
    ///
    /// # Errors
    /// Returns the errors of the launch.
    fn check(&mut self, size: Option<usize>, spec: &Self::Spec) -> Result<(f64, bool), Error>;

    /// Measures the cost of a spec's epilogue at a size, if it has one, over some rounds.
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

    /// Times a spec at a size, over some rounds.
    ///
    /// # Errors
    /// Returns the errors of the launches.
    fn time(&mut self, size: usize, spec: &Self::Spec, rounds: usize) -> Result<SpecTime, Failure>;
}
