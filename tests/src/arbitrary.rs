//! Random valid specs.

mod reduce;
mod sgemm;

pub use reduce::{classic, plain_reduce, plain_reduce_of, reduce, with_runs};
pub use sgemm::{on_tensor_cores, sgemm, typed, typed_floats};

use gemm_dsl::SpecErrors;
use gemm_dsl::expr::random;
use gemm_dsl::spec::{Datum, KeyKind, Spec};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Values for each key of the family, except the keys in `own`, which affect the geometry. Values
/// are any flag, word and expression, and numbers up to 5. A key has its default in half of the
/// cases, a key with a number in more. Keys that are added to the table are included automatically.
fn values<S: Spec>(own: &'static [&str]) -> BoxedStrategy<Vec<(&'static str, Datum)>> {
    let mut keys = Vec::new();
    for key in S::table().into_iter().filter(|key| !own.contains(&key.name)) {
        let value = match key.kind {
            KeyKind::Flag => Just(Datum::Flag).boxed(),
            KeyKind::Word(words) => select(words).prop_map(|word| Datum::Word(word.into())).boxed(),
            KeyKind::Number => (0..=5u32).prop_map(Datum::Number).boxed(),
            KeyKind::NumberOr(word) => prop_oneof![
                3 => (0..=5u32).prop_map(Datum::Number),
                1 => Just(Datum::Word(word.into())),
            ]
            .boxed(),
            KeyKind::Closure(env) => (any::<u64>(), 0..4u32)
                .prop_map(move |(seed, depth)| {
                    Datum::Closure(random::with_operands(env, seed, depth, 3))
                })
                .boxed(),
            // Names do not affect the code of a kernel, and sizes are part of the geometry.
            _ => continue,
        };
        let given =
            if matches!(key.kind, KeyKind::Number | KeyKind::NumberOr(_)) { 0.35 } else { 0.5 };
        let value = proptest::option::weighted(given, value);
        keys.push(value.prop_map(move |value| value.map(|value| (key.name, value))).boxed());
    }
    keys.prop_map(|keys| keys.into_iter().flatten().collect()).boxed()
}

fn with<S: Spec>(mut spec: S, values: &[(&'static str, Datum)]) -> S {
    for (key, value) in values {
        spec.set(key, value);
    }
    spec
}

/// Resets the keys that the errors of a spec name, until the spec is valid. Returns None if this
/// fails.
fn repaired<S: Spec>(
    mut spec: S,
    check: impl Fn(&S) -> Result<(), SpecErrors>,
    suit: impl Fn(&mut S, &str),
) -> Option<S> {
    for _ in 0..8 {
        let Err(errors) = check(&spec) else {
            return Some(spec);
        };
        for key in errors.iter().filter_map(|error| error.key()) {
            suit(&mut spec, key);
        }
    }
    None
}

/// Values of a strategy. They are the same in every run and on every machine for the same seed.
pub fn sample<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>, count: usize) -> Vec<T> {
    let seed = [gemm_cases::fixed_seed(), 0, 0, 0].map(u64::to_le_bytes).concat();
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let value = |_| strategy.new_tree(&mut runner).ok().map(|tree| tree.current());
    (0..count).filter_map(value).collect()
}

/// Value of a strategy for a seed. It is the same in every run and on every machine. None if no
/// value was found.
pub fn one<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>, seed: u64) -> Option<T> {
    let seed = [seed, 0, 0, 0].map(u64::to_le_bytes).concat();
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    strategy.new_tree(&mut runner).ok().map(|tree| tree.current())
}
