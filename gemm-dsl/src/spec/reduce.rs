//! The spec of a reduction.

use super::table::{ActsOn, derived_name, given_name, spec, words};

words! {
    /// The operator of a reduction. Its identity stands for a missing element.
    Op {
        /// `a + b`, identity −0: the only value that changes no other, −0 included.
        Sum = "sum",
        /// `a * b`, identity 1.
        Prod = "prod",
        /// The IEEE 754-2019 maximum, identity −∞: a NaN wins, and −0 is below +0.
        Max = "max",
        /// The IEEE 754-2019 minimum, identity +∞: a NaN wins, and −0 is below +0.
        Min = "min",
    }
}

impl Op {
    /// The value that changes no other. Of the sum it is −0: −0 + x is x for every x, −0 included.
    pub fn identity(self) -> f32 {
        match self {
            Op::Sum => -0.0,
            Op::Prod => 1.0,
            Op::Max => f32::NEG_INFINITY,
            Op::Min => f32::INFINITY,
        }
    }
}

words! {
    /// How the threads of a block combine their values in shared memory.
    Tree {
        /// The distance of the partners halves; the active threads are the first ones.
        Sequential = "sequential",
        /// The distance doubles; the active threads are the first ones, their elements strided.
        Interleaved = "interleaved",
        /// The distance doubles; every second, fourth, … thread is active, so warps diverge.
        InterleavedDivergent = "interleaved_divergent",
    }
}

/// Reductions whose blocks combine their values in shared memory.
const SHARED_TREE: ActsOn<ReduceSpec> = ActsOn {
    includes: |spec| !spec.shuffle,
    key: "shuffle",
    because: "`shuffle` replaces the shared-memory tree",
    remedy: "leave one of them out",
};

spec! {
    /// A reduction of an `f32` array: one value per block, then one value in all.
    ReduceSpec for "reduce_kernel" {
        /// The operator.
        op(Op): Op = Op::Sum, "";
        /// Threads of a block: a power of two from 32 to 1024.
        block(u32): u32 = 256, "";
        /// How a block combines its values.
        tree(Tree): Tree = Tree::Sequential, "{}", on SHARED_TREE;
        /// Items that a thread folds while loading, a block apart.
        items(u32): u32 = 1, "items{}", least 1 "a thread takes in at least one item";
        /// Whether the last 32 threads finish unrolled, without block barriers.
        unroll_last_warp(bool): bool = false, "unroll_last_warp";
        /// Whether registers are shuffled in a warp, then across warps, in place of the tree.
        shuffle(bool): bool = false, "shuffle";
        /// Whether an item is a vector of four elements instead of one element.
        float4(bool): bool = false, "float4";
    }
}

impl ReduceSpec {
    /// The kernel's name: the user's behind `reduce_`, or one derived from the spec such as
    /// `reduce_sum_256_items4_shuffle`.
    pub fn kernel_name(&self) -> String {
        match &self.name {
            Some(name) => given_name("reduce_", name),
            None => derived_name(format!("reduce_{}_{}", self.op, self.block), self),
        }
    }
}
