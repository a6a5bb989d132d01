//! Number and seed of random cases, for the tests of all crates.
//!
//! Each test sets its number of cases. The environment variable `GEMM_CASES` is a factor on all
//! these numbers. It is 0.25 by default, and 10 in `.ci/long`. `PROPTEST_RNG_SEED` is the seed.
//! `.ci/run` uses a fixed seed, `.ci/long` draws and prints one.

use proptest::test_runner::{Config, RngSeed};
use std::env;
use std::ops::Range;

/// Factor if `GEMM_CASES` is not set.
const FACTOR: f64 = 0.25;

/// Scales a number of cases by `GEMM_CASES`, to at least one case.
///
/// # Panics
/// If `GEMM_CASES` is not a positive number.
pub fn scaled(cases: usize) -> usize {
    ((cases as f64 * factor()).ceil() as usize).max(1)
}

/// Returns true if a test of all combinations should test only a part of them.
///
/// # Panics
/// If `GEMM_CASES` is not a positive number.
pub fn is_thinned() -> bool {
    factor() < 1.0
}

/// Returns true if a test of all combinations should test combination `nth`. A thinned run tests
/// every combination whose number equals `turn` modulo `of`.
///
/// # Panics
/// If `GEMM_CASES` is not a positive number.
pub fn is_in_turn(nth: usize, of: usize, turn: usize) -> bool {
    !is_thinned() || nth % of == turn % of
}

fn factor() -> f64 {
    env::var("GEMM_CASES").map_or(FACTOR, |text| match text.parse() {
        Ok(factor) if factor > 0.0 => factor,
        _ => panic!("GEMM_CASES is {text:?}, but a factor above 0 is needed"),
    })
}

/// Configures a proptest to run a scaled number of cases. A failing case is stored in a folder
/// `proptest-regressions` and is the first in later runs.
pub fn cases(count: u32) -> Config {
    Config { cases: scaled(count as usize) as u32, ..Config::default() }
}

/// Returns a seed for each of a scaled number of cases, for tests that draw cases without proptest.
pub fn seeds(count: usize) -> Range<u64> {
    let first = fixed_seed() << 32;
    first..first + scaled(count) as u64
}

/// Seed of this run, or 0 if `PROPTEST_RNG_SEED` is not set.
pub fn fixed_seed() -> u64 {
    match Config::default().rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => 0,
    }
}
