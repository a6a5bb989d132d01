//! The plan of a reduction.
//!
//! A reduction is sound when
//!
//! * the block is a power of two from 32 to 1024, and a thread takes in at least one item;
//! * a block takes in at most 2^30 elements;
//! * at most one of `unroll_last_warp` and `shuffle` replaces the last steps;
//! * `unroll_last_warp` has a block of at least 64, and a tree whose last threads are one warp;
//! * `shuffle` has no tree to contradict;
//! * a name, if given, is an identifier of CUDA C++ with a letter or a digit.

use super::decision::{Decision, Decisions};
use super::{Faults, check_name};
use crate::arch::{BLOCK_THREADS, WARP};
use crate::error::{SpecErrors, reduce as error};
use crate::spec::{Op, ReduceSpec, Tree};

/// The most elements that a block takes in.
pub(crate) const MAX_BLOCK_ELEMENTS: u128 = 1 << 30;

/// How the values of a block become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockFold {
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
    block_fold: BlockFold,
}

impl ReduceSpec {
    /// Resolves the spec.
    ///
    /// # Errors
    /// All of the spec's faults.
    pub fn plan(&self) -> Result<ReducePlan, SpecErrors> {
        let mut faults = Faults::default();
        check_name(self.name.as_deref(), &mut faults);
        faults.check_minimums(self);
        check_block(self, &mut faults);
        check_items(self, &mut faults);
        check_block_fold(self, &mut faults);
        faults.check_acting(self);
        faults.finish()?;
        let block_fold = match (self.shuffle, self.unroll_last_warp) {
            (true, _) => BlockFold::Shuffle,
            (false, true) => BlockFold::UnrolledWarp,
            (false, false) => BlockFold::Tree,
        };
        Ok(ReducePlan { spec: self.clone(), block_fold })
    }
}

fn check_block(spec: &ReduceSpec, faults: &mut Faults) {
    let block = spec.block;
    match block {
        0 => faults.0.push(error::block_zero()),
        1..WARP => faults.0.push(error::block_small(block)),
        WARP..=BLOCK_THREADS => {
            faults.require(block.is_power_of_two(), || error::block_not_power_of_two(block))
        }
        _ => faults.0.push(error::block_large(block)),
    }
}

fn check_items(spec: &ReduceSpec, faults: &mut Faults) {
    let vector = if spec.float4 { 4 } else { 1 };
    let elements = u128::from(spec.block) * u128::from(spec.items) * u128::from(vector);
    if faults.sound(&["block"]) {
        faults.require(elements <= MAX_BLOCK_ELEMENTS, || {
            error::too_many_elements(spec.block, spec.items, vector)
        });
    }
}

fn check_block_fold(spec: &ReduceSpec, faults: &mut Faults) {
    if spec.unroll_last_warp && spec.shuffle {
        faults.0.push(error::last_warp_and_shuffle());
    } else if spec.unroll_last_warp {
        if faults.sound(&["block"]) {
            faults.require(spec.block >= 64, || error::last_warp_without_tree(spec.block));
        }
        faults.require(spec.tree != Tree::InterleavedDivergent, || {
            error::last_warp_of_divergent_tree()
        });
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

    /// The shared-memory tree; without effect under [`BlockFold::Shuffle`].
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
    pub fn block_fold(&self) -> BlockFold {
        self.block_fold
    }

    /// All that was decided.
    pub fn decisions(&self) -> Vec<Decision> {
        let mut list = Decisions::of_block(self.block());
        list.say("operator", self.op().to_string());
        let items = match self.vector() {
            1 => self.items().to_string(),
            vector => format!("{} of {vector} elements", self.items()),
        };
        list.say("items of a thread", items);
        list.say("elements of a block", self.elements_per_block().to_string());
        let fold = match self.block_fold {
            BlockFold::Tree => format!("{} tree in shared memory", self.tree()),
            BlockFold::UnrolledWarp => format!("{} tree, the last warp unrolled", self.tree()),
            BlockFold::Shuffle => "shuffles in the warp, then across the warps".to_owned(),
        };
        list.say("combined by", fold);
        list.finish()
    }

    /// Elements that a block takes in.
    pub fn elements_per_block(&self) -> u64 {
        u64::from(self.block()) * u64::from(self.items()) * u64::from(self.vector())
    }
}
