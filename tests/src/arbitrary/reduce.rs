//! Random reductions.

use super::{repaired, values, with};
use gemm_dsl::spec::{ReduceSpec, Spec};
use proptest::prelude::*;

/// Any sound reduction with up to 5 items; every key varies but the name.
pub fn reduce() -> impl Strategy<Value = ReduceSpec> {
    (values::<ReduceSpec>(&["block"]), 5..=10u32).prop_filter_map(
        "the spec cannot be repaired",
        |(values, block)| {
            let spec = with(ReduceSpec::default().block(1 << block), &values);
            repaired(spec, |spec| spec.plan().map(drop), Spec::reset)
        },
    )
}
