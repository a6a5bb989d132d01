//! Random reductions.

use super::repaired;
use gemm_dsl::spec::{Op, ReduceSpec, Tree};
use proptest::prelude::*;
use proptest::sample::select;

/// Any sound reduction with up to 5 items; every field varies but the name.
pub fn reduce() -> impl Strategy<Value = ReduceSpec> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (select(Op::ALL), 5..=10u32, select(Tree::ALL), 1..=5u32, flags).prop_filter_map(
        "the spec cannot be repaired",
        |(op, block, tree, items, (unroll_last_warp, shuffle, float4))| {
            let spec = ReduceSpec::default()
                .op(op)
                .block(1 << block)
                .tree(tree)
                .items(items)
                .unroll_last_warp(unroll_last_warp)
                .shuffle(shuffle)
                .float4(float4);
            repaired(spec, |spec| spec.plan().map(drop), reset)
        },
    )
}

fn reset(spec: ReduceSpec, key: &str) -> ReduceSpec {
    match key {
        "tree" => spec.tree(Tree::Sequential),
        "unroll_last_warp" => spec.unroll_last_warp(false),
        "shuffle" => spec.shuffle(false),
        _ => spec,
    }
}
