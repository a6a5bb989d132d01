//! The plan of a reduction.
//!
//! A reduction spec is valid if all of the following hold:
//!
//! * `block` is a power of two from 32 to 1024, and `items` is at least 1;
//! * with `launch: tiles`, explicit or by default, a block reads at most 2^30 elements; with any
//!   other `launch`, a thread holds at most 64 elements at once;
//! * `launch: tiles` requires a whole array of `f32` that `sum`, `prod`, `max` or `min` folds in
//!   `f32` into an `f32`, without `fold`, `map`, `finish`, `compensated`, `topk`, `blocks` and
//!   `run`;
//! * at most one of `unroll_last_warp` and `shuffle` is given;
//! * under `unroll_last_warp` the block has at least 64 threads, and the tree's last 32 active
//!   threads are in one warp;
//! * `shuffle` excludes `tree`, and `tree` requires that all threads of a block fold one result;
//! * `group` is a power of two. For rows and segments it is at most a warp, or the whole block. For
//!   columns it is at most the block;
//! * several blocks fold a row only if `group` is the whole block;
//! * `topk` is from 1 to 64. It needs `op: max`, `min`, `argmax` or `argmin`, `over: all` or `over:
//!   rows`, and as `group` a warp or the whole block. It excludes `finish`, `tree`,
//!   `unroll_last_warp`, `shuffle`, `run`, `launch: tiles` and `launch: once`;
//! * `blocks` is at most 65,535, and excludes `run`;
//! * `run` is at most 2^30, and a multiple of the elements of one result that a block reads per
//!   round;
//! * for columns with a `group` above 1, the accumulators of all threads of a block fit in 48 KiB
//!   of shared memory;
//! * the accumulator type is the element type, a type of at least 4 bytes that represents every
//!   element, or the type of the `map` (`types`). `mean_var`, `logsumexp` and `compensated` need a
//!   floating-point type, and `logsumexp` excludes `f64`;
//! * a result has the accumulator type, with these exceptions: an `f32` accumulator may be stored
//!   as `f16` or `bf16`, and an `f64` accumulator as `f32`; integers with a `finish` may be stored
//!   as `f32` or `f64`;
//! * `fold` and `identity` are given together;
//! * `finish` has one parameter for the folded value, or two under `mean_var`, and optionally a
//!   last parameter for the number of elements;
//! * expressions are well typed (`types`) and neither take nor return a `u64`;
//! * a name, if given, is an identifier of CUDA C++ with at least one letter or digit.
//!
//! A launch also checks the grid. A row or column has at most 65,535 runs. Along x, a grid has at
//! most 2^31 − 1 blocks. They fold a whole array, or groups of rows, columns or segments.

mod decisions;
mod messages;
mod parts;
mod topk;
mod types;

pub(super) use messages::widths;
pub use parts::AccumulatorPart;

pub use types::Types;
pub(super) use types::holds;

use super::{Faults, check_name};
use crate::error::{SpecError, SpecErrors};
use crate::ir::Elem;
use crate::plan::residency::{resident_blocks, resident_threads};
use crate::spec::{LaunchForm, Op, Over, ReduceSpec, Tree};
use crate::target::arch::{BLOCK_THREADS, GRID_BLOCKS, STATIC_SHARED_BYTES, WARP};

/// Maximum number of elements that a block reads.
pub(crate) const MAX_BLOCK_ELEMENTS: u128 = 1 << 30;

/// Maximum number of elements that a thread holds at once.
const MAX_HELD: u64 = 64;

/// Maximum number of blocks that fold one result.
const MAX_BLOCKS: u32 = GRID_BLOCKS[1];

/// Bytes of shared memory for the flag that tells a block whether it drew the last ticket.
const TICKET_BYTES: u64 = 16;

/// Maximum number of rounds in which one group folds a segment. The whole block folds longer
/// segments.
const ROUNDS_OF_GROUP: u64 = 16;

/// Default for the maximum number of blocks that fold one array.
const BLOCKS: u32 = 1024;

/// Method that folds the values of a block into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockFold {
    /// Tree in shared memory to the last step, with a block barrier after each step.
    Tree,
    /// Tree while more than 32 threads are active; one warp then folds the rest without a loop.
    UnrolledWarp,
    /// Shuffles between registers, first inside each warp, then across the warps.
    Shuffle,
}

/// Assignment of results to threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Each block folds one tile of the array. Further launches of the same kernel fold the blocks'
    /// partial results until one is left.
    Tiles,
    /// `group` adjacent threads fold a result (of an array, a row or a segment), round by round.
    Neighbours {
        /// A power of two up to 32, or all threads of the block.
        group: u32,
    },
    /// The block is a grid of threads. The threads in a column of this grid fold one or more
    /// columns of the matrix, so threads in a row of the grid read neighbouring elements.
    Columns {
        /// Number of threads that fold a column together.
        group: u32,
        /// Number of matrix columns that a thread folds.
        width: u32,
    },
}

/// Number of blocks that fold one result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// One block folds the whole result.
    One,
    /// At most this many blocks, at least 2, take the rounds in turn.
    InTurn(u32),
    /// Each block folds one run of this many consecutive elements; the last run may be shorter.
    Runs(u32),
}

/// A valid reduction with all defaults resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReducePlan {
    spec: ReduceSpec,
    types: Types,
    parts: Vec<AccumulatorPart>,
    share: Share,
    blocks: Blocks,
    block_fold: BlockFold,
}

impl ReduceSpec {
    /// Resolves the spec.
    ///
    /// # Errors
    /// Returns all errors of the spec.
    pub fn plan(&self) -> Result<ReducePlan, SpecErrors> {
        let mut faults = Faults::default();
        check_name(self.name.as_deref(), &mut faults);
        faults.check_minimums(self);
        let types = types::resolve(self, &mut faults);
        check_block(self, &mut faults);
        if let Some(blocks) = self.blocks_per_sm {
            resident_blocks(blocks, &mut faults);
            if faults.sound(&["block"]) {
                resident_threads(blocks, self.block.into(), &mut faults);
            }
        }
        check_items(self, &mut faults);
        check_block_fold(self, &mut faults);
        check_group(self, &mut faults);
        check_blocks(self, &mut faults);
        check_run(self, &mut faults);
        topk::check(self, &mut faults);
        let parts = parts::parts(self, types);
        check_shared(self, &parts, &mut faults);
        faults.check_acting(self);
        check_launch(self, &mut faults);
        faults.finish()?;
        let block_fold = match (self.shuffle, self.unroll_last_warp) {
            (true, _) => BlockFold::Shuffle,
            (false, true) => BlockFold::UnrolledWarp,
            (false, false) => BlockFold::Tree,
        };
        let group = self.group_of_result();
        let share = match self.over {
            Over::All if self.launch_form() == LaunchForm::Tiles => Share::Tiles,
            Over::All | Over::Rows | Over::Segments => Share::Neighbours { group },
            Over::Columns | Over::Middle => {
                Share::Columns { group, width: self.coarsen * self.vector() }
            }
        };
        let most = match (self.blocks, share, self.over) {
            (Some(blocks), ..) => blocks,
            (None, Share::Neighbours { .. }, Over::All) if self.topk.is_some() => topk::BLOCKS,
            (None, Share::Neighbours { .. }, Over::All) => BLOCKS,
            (None, ..) => 1,
        };
        let blocks = match (self.run, most) {
            (Some(run), _) => Blocks::Runs(run),
            (None, 1) => Blocks::One,
            (None, most) => Blocks::InTurn(most),
        };
        Ok(ReducePlan { spec: self.clone(), types, parts, share, blocks, block_fold })
    }

    /// Returns three factors: threads, items per thread and elements per item. Their product is the
    /// number of elements that a block reads at once for one result.
    fn round(&self) -> (u32, u32, u32) {
        (self.group_of_result(), self.items, self.vector_of_result())
    }

    /// Returns the error for a spec whose shards cannot be folded separately because it has no
    /// runs.
    pub(crate) fn without_runs(&self) -> SpecError {
        messages::shards_without_runs(self.over, elements(self.round()))
    }
}

fn elements(round: (u32, u32, u32)) -> u64 {
    let (threads, items, vector) = round;
    u64::from(threads) * u64::from(items) * u64::from(vector)
}

fn check_block(spec: &ReduceSpec, faults: &mut Faults) {
    let block = spec.block;
    match block {
        0 => faults.0.push(messages::block_zero()),
        1..WARP => faults.0.push(messages::block_small(block)),
        WARP..=BLOCK_THREADS => {
            faults.require(block.is_power_of_two(), || messages::block_not_power_of_two(block))
        }
        _ => faults.0.push(messages::block_large(block)),
    }
}

fn check_items(spec: &ReduceSpec, faults: &mut Faults) {
    let vector = spec.vector();
    let elements = u128::from(spec.block) * u128::from(spec.items) * u128::from(vector);
    if spec.launch_form() == LaunchForm::Tiles {
        if faults.sound(&["block"]) {
            faults.require(elements <= MAX_BLOCK_ELEMENTS, || {
                messages::too_many_elements(spec.block, spec.items, vector)
            });
        }
    } else {
        let width = vector.saturating_mul(spec.coarsen);
        let held = u64::from(spec.items) * u64::from(width);
        faults.require(held <= MAX_HELD, || messages::too_many_held(spec.items, width, MAX_HELD));
    }
}

fn check_block_fold(spec: &ReduceSpec, faults: &mut Faults) {
    let folds = spec.folds_by_blocks();
    faults.require(folds || spec.tree == Tree::Sequential, || {
        messages::tree_without_block(spec.tree)
    });
    if spec.unroll_last_warp && spec.shuffle {
        faults.0.push(messages::last_warp_and_shuffle());
    } else if spec.unroll_last_warp {
        if faults.sound(&["block"]) {
            faults.require(spec.block >= 64, || messages::last_warp_without_tree(spec.block));
        }
        faults.require(spec.tree != Tree::InterleavedDivergent, || {
            messages::last_warp_of_divergent_tree()
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
            faults.require(sound, || messages::group_of_row(group, spec.block));
        }
        Over::Columns | Over::Middle => {
            faults.require(sound, || messages::group_of_column(group, spec.block));
        }
    }
}

fn check_blocks(spec: &ReduceSpec, faults: &mut Faults) {
    let Some(blocks) = spec.blocks else { return };
    faults.require(blocks <= MAX_BLOCKS, || messages::too_many_blocks(blocks, MAX_BLOCKS));
    check_row("blocks", spec, faults);
}

/// Checks that several blocks share a row only if a whole block folds it.
fn check_row(key: &'static str, spec: &ReduceSpec, faults: &mut Faults) {
    let by_parts = spec.over == Over::Rows && !spec.folds_by_blocks();
    if faults.sound(&["group", "block"]) {
        let group = spec.group_of_result();
        faults.require(!by_parts, || messages::blocks_of_groups(key, group, spec.block));
    }
}

fn check_run(spec: &ReduceSpec, faults: &mut Faults) {
    // `run` on segments is reported elsewhere, as a key without effect.
    let Some(run) = spec.run.filter(|_| spec.over != Over::Segments) else { return };
    faults.require(spec.blocks.is_none(), || messages::run_and_blocks(run));
    check_row("run", spec, faults);
    if faults.sound(&["run", "block", "group", "items"]) {
        let round = elements(spec.round());
        if u128::from(run) > MAX_BLOCK_ELEMENTS {
            faults.0.push(messages::run_long(run, round));
        } else if !u64::from(run).is_multiple_of(round) {
            faults.0.push(messages::run_of_rounds(run, spec.round()));
        }
    }
}

/// Checks that the column values of a block fit in shared memory.
fn check_shared(spec: &ReduceSpec, parts: &[AccumulatorPart], faults: &mut Faults) {
    let width = u64::from(spec.vector()) * u64::from(spec.coarsen);
    let columns = matches!(spec.over, Over::Columns | Over::Middle) && spec.group != Some(1);
    if columns && faults.sound(&["block", "group", "items", "acc"]) {
        let kept: u64 = parts.iter().map(|part| u64::from(part.elem.size())).sum();
        let bytes = u64::from(spec.block) * width * kept;
        // The ticket word is counted for every form of launch, so changing `launch` never makes a
        // spec invalid.
        let several = spec.run.is_some() || spec.blocks.is_some_and(|blocks| blocks > 1);
        let word = if several { TICKET_BYTES } else { 0 };
        faults.require(bytes + word <= STATIC_SHARED_BYTES, || {
            messages::too_much_shared(spec.block, width, kept, word, STATIC_SHARED_BYTES)
        });
    }
}

fn check_launch(spec: &ReduceSpec, faults: &mut Faults) {
    if spec.launch == Some(LaunchForm::Tiles)
        && faults.sound(&["launch"])
        && let Some(beyond) = spec.beyond_tiles()
    {
        faults.0.push(messages::beyond_tiles(beyond));
    }
}

impl ReducePlan {
    pub fn spec(&self) -> &ReduceSpec {
        &self.spec
    }

    pub fn kernel_name(&self) -> String {
        self.spec.kernel_name()
    }

    /// Operator; `None` for a user-defined fold.
    pub fn op(&self) -> Option<Op> {
        self.spec.operator()
    }

    /// Types of the elements, the accumulators and the results.
    pub fn types(&self) -> Types {
        self.types
    }

    pub fn parts(&self) -> &[AccumulatorPart] {
        &self.parts
    }

    pub fn share(&self) -> Share {
        self.share
    }

    /// Number of blocks that fold one result. Ignored under [`Share::Tiles`], where each launch
    /// computes its own number of blocks.
    pub fn blocks(&self) -> Blocks {
        self.blocks
    }

    /// Returns true if several blocks may fold one result, so that their partial results are folded
    /// afterwards.
    pub fn has_partials(&self) -> bool {
        self.share != Share::Tiles && self.blocks != Blocks::One
    }

    /// Returns true if the partial results are folded in the same launch.
    pub fn is_once(&self) -> bool {
        self.has_partials() && self.spec.launch_form() == LaunchForm::Once
    }

    /// Threads of a block: a power of two from 32 to 1024.
    pub fn block(&self) -> u32 {
        self.spec.block
    }

    /// Form of the shared-memory tree; ignored under [`BlockFold::Shuffle`].
    pub fn tree(&self) -> Tree {
        self.spec.tree
    }

    /// Items that a thread reads, at least 1. Consecutive items of a thread are one block of
    /// threads apart.
    pub fn items(&self) -> u32 {
        self.spec.items
    }

    /// Elements of an item: 16 bytes of elements for a vector, otherwise 1.
    pub fn vector(&self) -> u32 {
        self.spec.vector()
    }

    pub fn block_fold(&self) -> BlockFold {
        self.block_fold
    }

    /// Length of the longest segment that a group folds; the whole block folds longer segments, one
    /// after another. `None` if a group is the whole block, or if the spec does not fold segments.
    pub fn longest_of_group(&self) -> Option<u64> {
        let groups = self.spec.over == Over::Segments && self.group() < self.block();
        groups.then(|| ROUNDS_OF_GROUP * self.elements_per_round())
    }

    /// Elements that a block reads.
    pub fn elements_per_block(&self) -> u64 {
        u64::from(self.block()) * u64::from(self.items()) * u64::from(self.vector())
    }

    /// Number of threads of a block that fold one result together.
    pub fn group(&self) -> u32 {
        match self.share {
            Share::Tiles => self.block(),
            Share::Neighbours { group } | Share::Columns { group, .. } => group,
        }
    }

    /// Number of results that a thread folds: 1, except for columns.
    pub fn width(&self) -> u32 {
        match self.share {
            Share::Tiles | Share::Neighbours { .. } => 1,
            Share::Columns { width, .. } => width,
        }
    }

    /// Returns the vector width for neighbouring columns in an array of results or partial results
    /// of type `elem`. `None` unless a thread folds enough neighbouring columns to fill vectors.
    pub fn lanes_of_columns(&self, elem: Elem) -> Option<u32> {
        let lanes = u32::from(elem.vector_lanes());
        let neighbours = self.vector() > 1 && self.width() > 1;
        (neighbours && lanes > 1 && self.width().is_multiple_of(lanes)).then_some(lanes)
    }

    /// Results that a block folds.
    pub fn results_per_block(&self) -> u32 {
        self.block() / self.group() * self.width()
    }

    /// Elements of one result that a block reads at once.
    pub fn elements_per_round(&self) -> u64 {
        elements((self.group(), self.items(), self.spec.vector_of_result()))
    }
}
