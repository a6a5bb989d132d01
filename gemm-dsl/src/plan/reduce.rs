//! The plan of a reduction.
//!
//! A reduction is sound when
//!
//! * the block is a power of two from 32 to 1024, and a thread takes in at least one item;
//! * a block takes in at most 2^30 elements;
//! * at most one of `unroll_last_warp` and `shuffle` replaces the last steps;
//! * `unroll_last_warp` has a block of at least 64, and a tree whose last threads are one warp;
//! * `shuffle` has no tree to contradict, and where no block folds one result there is no `tree`;
//! * a thread holds at most 64 elements at once, but for the classic passes, which hold one;
//! * `group` is a power of two: of rows and segments up to a warp, or the block; of columns up to the block;
//! * several blocks fold a row only if each does so as a whole;
//! * there are at most 65,535 blocks of one result;
//! * elements are folded in their own type, or in one of 4 bytes or more that holds them, or that a `map`
//!   gives (`types`); a mean, a logarithm and a compensated sum are floating-point numbers;
//! * a `fold` has an identity;
//! * expressions are sound in these types (`types`);
//! * a name, if given, is an identifier of CUDA C++ with a letter or a digit.

mod types;

pub use types::Types;

use super::decision::{Decision, Decisions};
use super::{Faults, check_name};
use crate::arch::{BLOCK_THREADS, WARP};
use crate::error::{SpecErrors, reduce as error};
use crate::ir::{Elem, VECTOR_BYTES};
use crate::spec::{LaunchForm, Op, Over, ReduceSpec, Tree};

/// The most elements that a block takes in.
pub(crate) const MAX_BLOCK_ELEMENTS: u128 = 1 << 30;

/// The most elements that a thread holds at once.
const MAX_HELD: u64 = 64;

/// The most blocks that fold one result.
const MAX_BLOCKS: u32 = 65_535;

/// The most bytes of shared memory that a block has without asking for more.
const SHARED_BYTES: u64 = 48 * 1024;

/// How many rounds of a group's a segment has at most that one group folds; the whole block folds longer ones.
const ROUNDS_OF_GROUP: u64 = 16;

/// The most blocks that fold one array, where the spec does not say.
const BLOCKS: u32 = 1024;

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

/// Who folds what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Each block folds one tile of an array, and the same kernel folds what the blocks leave, until one
    /// value is left.
    Tiles,
    /// So many threads that lie next to one another fold a result, an array's, a row's or a segment's,
    /// round by round.
    Neighbours {
        /// Up to 32 of them, or a block.
        group: u32,
    },
    /// The threads of a column of the block fold a column, or some, so that those of a row read neighbours.
    Columns {
        /// Threads of a column.
        group: u32,
        /// How many columns a thread folds.
        width: u32,
    },
}

/// A sound reduction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReducePlan {
    spec: ReduceSpec,
    types: Types,
    share: Share,
    blocks: u32,
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
        let types = types::resolve(self, &mut faults);
        check_block(self, &mut faults);
        check_items(self, &mut faults);
        check_block_fold(self, &mut faults);
        check_group(self, &mut faults);
        check_blocks(self, &mut faults);
        check_shared(self, types, &mut faults);
        faults.check_acting(self);
        faults.finish()?;
        let block_fold = match (self.shuffle, self.unroll_last_warp) {
            (true, _) => BlockFold::Shuffle,
            (false, true) => BlockFold::UnrolledWarp,
            (false, false) => BlockFold::Tree,
        };
        let share = match self.over {
            Over::All if self.is_classic() => Share::Tiles,
            Over::All => Share::Neighbours { group: self.block },
            Over::Rows | Over::Segments => Share::Neighbours { group: self.group.unwrap_or(WARP) },
            Over::Columns | Over::Middle => Share::Columns {
                group: self.group.unwrap_or_else(|| self.block.min(8)),
                width: self.coarsen * self.vector(),
            },
        };
        let blocks = match (self.blocks, share, self.over) {
            (Some(blocks), ..) => blocks,
            (None, Share::Neighbours { .. }, Over::All) => BLOCKS,
            (None, ..) => 1,
        };
        Ok(ReducePlan { spec: self.clone(), types, share, blocks, block_fold })
    }

    /// Whether it is one of the classic passes: a kernel that folds an array of `f32` and, launched again,
    /// what it has left.
    fn is_classic(&self) -> bool {
        let one_type = [self.element.elem(), self.acc_elem()] == [Elem::F32; 2];
        self.over == Over::All
            && self.operator().is_some_and(|op| op.identity().is_some())
            && one_type
            && self.result.is_none_or(|result| result.elem() == Elem::F32)
            && self.map.is_none()
            && self.finish.is_none()
            && !self.compensated
            && self.blocks.is_none()
            && self.launch == LaunchForm::Passes
    }

    /// Elements of an item.
    fn vector(&self) -> u32 {
        if self.float4 { VECTOR_BYTES / self.element.elem().size() } else { 1 }
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
    let vector = spec.vector();
    let elements = u128::from(spec.block) * u128::from(spec.items) * u128::from(vector);
    if faults.sound(&["block"]) && spec.is_classic() {
        faults.require(elements <= MAX_BLOCK_ELEMENTS, || {
            error::too_many_elements(spec.block, spec.items, vector)
        });
    } else if !spec.is_classic() {
        let width = vector.saturating_mul(spec.coarsen);
        let held = u64::from(spec.items) * u64::from(width);
        faults.require(held <= MAX_HELD, || error::too_many_held(spec.items, width, MAX_HELD));
    }
}

fn check_block_fold(spec: &ReduceSpec, faults: &mut Faults) {
    let folds = spec.folds_by_blocks();
    faults.require(folds || spec.tree == Tree::Sequential, || error::tree_without_block(spec.tree));
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

fn check_group(spec: &ReduceSpec, faults: &mut Faults) {
    let Some(group) = spec.group else { return };
    if !faults.sound(&["group", "block"]) {
        return;
    }
    let sound = group.is_power_of_two() && group <= spec.block;
    match spec.over {
        Over::All => {}
        Over::Rows | Over::Segments => {
            let sound = sound && (group <= WARP || group == spec.block);
            faults.require(sound, || error::group_of_row(group, spec.block));
        }
        Over::Columns | Over::Middle => {
            faults.require(sound, || error::group_of_column(group, spec.block));
        }
    }
}

fn check_blocks(spec: &ReduceSpec, faults: &mut Faults) {
    let Some(blocks) = spec.blocks else { return };
    faults.require(blocks <= MAX_BLOCKS, || error::too_many_blocks(blocks, MAX_BLOCKS));
    let by_parts = spec.over == Over::Rows && !spec.folds_by_blocks();
    if faults.sound(&["group", "block"]) {
        faults
            .require(!by_parts, || error::blocks_of_groups(spec.group.unwrap_or(WARP), spec.block));
    }
}

/// The columns of a block meet in shared memory.
fn check_shared(spec: &ReduceSpec, types: Types, faults: &mut Faults) {
    let width = u64::from(spec.vector()) * u64::from(spec.coarsen);
    let columns = matches!(spec.over, Over::Columns | Over::Middle) && spec.group != Some(1);
    if columns && faults.sound(&["block", "group", "items", "acc"]) {
        let kept = types.kept_bytes(spec);
        let bytes = u64::from(spec.block) * width * kept;
        // A word beside them says who has the last ticket.
        faults.require(bytes + 16 <= SHARED_BYTES, || {
            error::too_much_shared(spec.block, width, kept, SHARED_BYTES)
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

    /// The operator, unless the user has a fold.
    pub fn op(&self) -> Option<Op> {
        self.spec.operator()
    }

    /// What the elements are, and what they are folded in.
    pub fn types(&self) -> Types {
        self.types
    }

    /// Who folds what.
    pub fn share(&self) -> Share {
        self.share
    }

    /// The most blocks that fold one result; all that it takes under [`Share::Tiles`].
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Whether several blocks may fold one result, which is then folded of what they leave.
    pub fn has_partials(&self) -> bool {
        self.share != Share::Tiles && self.blocks > 1
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

    /// Elements of an item: those of 16 bytes for a vector, else 1.
    pub fn vector(&self) -> u32 {
        self.spec.vector()
    }

    /// How the values of a block become one.
    pub fn block_fold(&self) -> BlockFold {
        self.block_fold
    }

    /// All that was decided.
    pub fn decisions(&self) -> Vec<Decision> {
        let mut list = Decisions::of_block(self.block());
        list.say(
            "operator",
            self.op().map_or_else(|| "the user's".to_owned(), |op| op.to_string()),
        );
        let items = match self.vector() {
            1 => self.items().to_string(),
            vector => format!("{} of {vector} elements", self.items()),
        };
        list.say("items of a thread", items);
        let fold = match self.block_fold {
            BlockFold::Tree => format!("{} tree in shared memory", self.tree()),
            BlockFold::UnrolledWarp => format!("{} tree, the last warp unrolled", self.tree()),
            BlockFold::Shuffle => "shuffles in the warp, then across the warps".to_owned(),
        };
        match self.share {
            Share::Tiles => {
                list.say("elements of a block", self.elements_per_block().to_string());
                list.say("combined by", fold);
                return list.finish();
            }
            Share::Neighbours { group } if group == self.block() => list.say("combined by", fold),
            Share::Neighbours { group } => {
                list.say("results of a block", self.results_per_block().to_string());
                list.say("combined by", format!("shuffles among {group} threads"));
                if let Some(longest) = self.longest_of_group() {
                    list.say(
                        "longer segments",
                        format!("of more than {longest} elements: by the block, {fold}"),
                    );
                }
            }
            Share::Columns { group, width } => {
                list.say("columns of a block", self.results_per_block().to_string());
                list.say("columns of a thread", width.to_string());
                list.say(
                    "combined by",
                    format!("sequential tree in shared memory, {group} threads of a column"),
                );
            }
        }
        list.say("folded", self.spec.over.to_string());
        list.say("elements of a round", self.elements_per_round().to_string());
        self.say_types(&mut list);
        if self.spec.over != Over::All && self.spec.over != Over::Segments {
            list.say("strides", if self.spec.pitched { "of the launch" } else { "packed" });
        }
        if self.has_partials() {
            list.say("blocks of a result", format!("at most {}", self.blocks));
            list.say(
                "launches",
                match self.spec.launch {
                    LaunchForm::Passes => "two: the second folds what blocks leave",
                    LaunchForm::Once => {
                        "one: the block with the last ticket folds what blocks leave"
                    }
                },
            );
        }
        list.finish()
    }

    /// What is folded, in which types, and what is made of it.
    fn say_types(&self, list: &mut Decisions) {
        let (spec, types) = (&self.spec, self.types);
        list.say("elements", format!("{}, folded in {}", types.element, types.acc));
        if spec.compensated {
            list.say("rounding errors", "summed beside the sum");
        }
        if spec.has_indices() {
            list.say("indices and counts", types.index.to_string());
        }
        let expressions = [
            ("what is folded", spec.map.as_ref().map(ToString::to_string)),
            ("folded by", spec.fold.as_ref().map(ToString::to_string)),
            ("of no elements", spec.identity.as_ref().map(ToString::to_string)),
            ("what is made of it", spec.finish.as_ref().map(ToString::to_string)),
        ];
        for (name, expression) in expressions {
            if let Some(expression) = expression {
                list.say(name, expression);
            }
        }
        list.say("results", types.result.to_string());
    }

    /// The longest segment that a group folds; the whole block folds longer ones, one after the other. None
    /// where the group is the block, or there are no segments.
    pub fn longest_of_group(&self) -> Option<u64> {
        let groups = self.spec.over == Over::Segments && self.group() < self.block();
        groups.then(|| ROUNDS_OF_GROUP * self.elements_per_round())
    }

    /// Elements that a block takes in.
    pub fn elements_per_block(&self) -> u64 {
        u64::from(self.block()) * u64::from(self.items()) * u64::from(self.vector())
    }

    /// Threads that fold one result together in a block.
    pub fn group(&self) -> u32 {
        match self.share {
            Share::Tiles => self.block(),
            Share::Neighbours { group } | Share::Columns { group, .. } => group,
        }
    }

    /// How many results a thread folds: 1, or some columns.
    pub fn width(&self) -> u32 {
        match self.share {
            Share::Tiles | Share::Neighbours { .. } => 1,
            Share::Columns { width, .. } => width,
        }
    }

    /// Results that a block folds.
    pub fn results_per_block(&self) -> u32 {
        self.block() / self.group() * self.width()
    }

    /// Elements of one result that the threads of a block take in at once.
    pub fn elements_per_round(&self) -> u64 {
        let vector = if self.width() == 1 { self.vector() } else { 1 };
        u64::from(self.group()) * u64::from(self.items()) * u64::from(vector)
    }
}
