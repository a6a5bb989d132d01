//! The plan of a reduction.

use crate::error::SpecErrors;
use crate::spec::{Op, ReduceSpec, Tree};

/// How the values of a block become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The shared-memory tree to its last step, a block barrier after each.
    Tree,
    /// The tree while more than 32 threads are active, then one warp alone, unrolled.
    UnrolledWarp,
    /// Register shuffles in each warp, then across the warps.
    Shuffle,
}

/// A sound reduction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReducePlan {
    spec: ReduceSpec,
    finish: Finish,
}

impl ReduceSpec {
    /// Resolves the spec.
    ///
    /// # Errors
    /// All of the spec's faults.
    pub fn plan(&self) -> Result<ReducePlan, SpecErrors> {
        let finish = match (self.shuffle, self.unroll_last_warp) {
            (true, _) => Finish::Shuffle,
            (false, true) => Finish::UnrolledWarp,
            (false, false) => Finish::Tree,
        };
        Ok(ReducePlan { spec: self.clone(), finish })
    }
}

impl ReducePlan {
    /// The spec that was resolved.
    pub fn spec(&self) -> &ReduceSpec {
        &self.spec
    }

    /// The name of the kernel.
    pub fn kernel_name(&self) -> String {
        self.spec.kernel_name()
    }

    /// The operator.
    pub fn op(&self) -> Op {
        self.spec.op
    }

    /// Threads of a block: a power of two from 32 to 1024.
    pub fn block(&self) -> u32 {
        self.spec.block
    }

    /// The shared-memory tree; without effect under [`Finish::Shuffle`].
    pub fn tree(&self) -> Tree {
        self.spec.tree
    }

    /// Items that a thread takes in, a block apart; at least 1.
    pub fn items(&self) -> u32 {
        self.spec.items
    }

    /// Elements of an item: 4 for a vector, else 1.
    pub fn vector(&self) -> u32 {
        if self.spec.float4 { 4 } else { 1 }
    }

    /// How the values of a block become one.
    pub fn finish(&self) -> Finish {
        self.finish
    }

    /// Elements that a block takes in.
    pub fn elements_per_block(&self) -> u64 {
        u64::from(self.block()) * u64::from(self.items()) * u64::from(self.vector())
    }
}
