//! Random sound specs.

mod reduce;
mod sgemm;

pub use reduce::reduce;
pub use sgemm::sgemm;

use gemm_dsl::SpecErrors;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRng, TestRunner};

/// Makes a spec sound by giving the keys that its faults blame their defaults, or gives up.
fn repaired<S: Clone>(
    mut spec: S,
    faults: impl Fn(&S) -> Result<(), SpecErrors>,
    reset: impl Fn(S, &str) -> S,
) -> Option<S> {
    for _ in 0..8 {
        let Err(errors) = faults(&spec) else {
            return Some(spec);
        };
        for key in errors.iter().filter_map(|error| error.key()) {
            spec = reset(spec, key);
        }
    }
    None
}

/// The same values on every run and machine.
pub fn sample<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>, count: usize) -> Vec<T> {
    let config = Config::default();
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let value = |_| strategy.new_tree(&mut runner).ok().map(|tree| tree.current());
    (0..count).filter_map(value).collect()
}
