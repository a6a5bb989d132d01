//! The plan of a scan.
//!
//! A scan spec is valid if all of the following hold:
//!
//! * `block` is a power of two from 32 to 1024;
//! * `block` times `items` is at most 1024 for rows and 2048 for an array, and the items of a block
//!   of an array have at most 32 KiB in memory, unless a thread has one item;
//! * `group` is a power of two up to 32, or the whole block;
//! * the accumulator type is the element type, or a type of at least 4 bytes that represents every
//!   element;
//! * a result has the accumulator type, with these exceptions: an `f32` accumulator may be stored
//!   as `f16` or `bf16`, and an `f64` accumulator as `f32`;
//! * a name, if given, is an identifier of CUDA C++ with at least one letter or digit.
//!
//! A launch also checks the grid, which has at most 2^31 − 1 blocks.

use super::decision::{Decision, Decisions};
use super::reduce::{holds, widths};
use super::residency::{self, resident_blocks, resident_threads};
use super::{Faults, check_name};
use crate::error::SpecErrors;
use crate::ir::Elem;
use crate::spec::{ScanOver, ScanSpec};
use crate::target::arch::{BLOCK_THREADS, WARP};

/// Default for the maximum number of items of a thread, and of the elements that it holds.
const ITEMS: u32 = 4;
const HELD: u32 = 16;

/// The same for arrays, whose tiles are in shared memory.
const ITEMS_OF_ARRAY: u32 = 6;
const HELD_OF_ARRAY: u32 = 24;

/// Maximum number of items of a block: one sum of a warp for each lane of a warp, or two.
const BLOCK_ITEMS: u32 = BLOCK_THREADS;
const BLOCK_ITEMS_OF_ARRAY: u32 = 2 * BLOCK_THREADS;

/// Shared memory for the tile of an array, in bytes.
const TILE_BYTES: u32 = 32 * 1024;

/// Threads of an SM that the registers of a scan of an array leave room for by default: with items
/// of four 4-byte values, and with other items.
const RESIDENT_THREADS: [u32; 2] = [2048, 1536];

/// Blocks of an SM for the same purpose.
const RESIDENT_BLOCKS: u32 = 16;

/// A valid scan with all defaults resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanPlan {
    spec: ScanSpec,
    items: u32,
}

impl ScanSpec {
    /// Resolves the spec.
    ///
    /// # Errors
    /// Returns all errors of the spec.
    pub fn plan(&self) -> Result<ScanPlan, SpecErrors> {
        let mut faults = Faults::default();
        check_name(self.name.as_deref(), &mut faults);
        faults.check_minimums(self);
        let (element, acc, result) = (self.element.elem(), self.acc_elem(), self.result_elem());
        faults.require(holds(acc, element), || messages::narrow(element, acc));
        if faults.sound(&["acc"]) {
            let fits = match acc {
                Elem::F32 => matches!(result, Elem::F32 | Elem::F16 | Elem::Bf16),
                Elem::F64 => matches!(result, Elem::F64 | Elem::F32),
                _ => result == acc,
            };
            faults.require(fits, || messages::wrong_result(acc, result));
        }
        self.check_threads(&mut faults);
        faults.check_acting(self);
        faults.finish()?;
        let held = match self.over {
            ScanOver::Rows => (HELD / self.vector()).clamp(1, ITEMS),
            ScanOver::All => (HELD_OF_ARRAY / self.vector()).clamp(1, ITEMS_OF_ARRAY),
        };
        let items = self.items.unwrap_or_else(|| held.min(self.most_items()));
        Ok(ScanPlan { spec: self.clone(), items })
    }

    /// Returns the number of elements of an item: 16 bytes of the elements or of the results,
    /// whichever has more elements.
    fn vector(&self) -> u32 {
        let elems = [self.element.elem(), self.result_elem()];
        elems.map(|elem| u32::from(elem.vector_lanes())).into_iter().max().unwrap_or(1)
    }

    /// Maximum number of items of a thread.
    fn most_items(&self) -> u32 {
        match self.over {
            ScanOver::Rows => BLOCK_ITEMS / self.block,
            ScanOver::All => {
                let bytes = self.block * self.vector() * self.element.elem().size();
                (BLOCK_ITEMS_OF_ARRAY / self.block).min(TILE_BYTES / bytes).max(1)
            }
        }
    }

    fn check_threads(&self, faults: &mut Faults) {
        let block = self.block;
        let is_block = block.is_power_of_two() && (WARP..=BLOCK_THREADS).contains(&block);
        faults.require(is_block, || messages::wrong_block(block));
        if let Some(blocks) = self.blocks_per_sm {
            resident_blocks(blocks, faults);
            if faults.sound(&["block"]) {
                resident_threads(blocks, block.into(), faults);
            }
        }
        if !faults.sound(&["block", "items", "group"]) {
            return;
        }
        let most = self.most_items();
        if let Some(items) = self.items {
            faults.require(items <= most, || messages::many_items(self, items, most));
        }
        if let Some(group) = self.group.filter(|_| self.over == ScanOver::Rows) {
            let sound = group == block || (group.is_power_of_two() && group <= WARP);
            faults.require(sound, || messages::wrong_group(group, block));
        }
    }
}

impl ScanPlan {
    pub fn spec(&self) -> &ScanSpec {
        &self.spec
    }

    pub fn kernel_name(&self) -> String {
        self.spec.kernel_name()
    }

    /// Threads of a block: a power of two from 32 to 1024.
    pub fn block(&self) -> u32 {
        self.spec.block
    }

    /// Number of threads that scan a row or the array together.
    pub fn team(&self) -> u32 {
        self.spec.team()
    }

    /// Items of a thread.
    pub fn items(&self) -> u32 {
        self.items
    }

    /// Minimum number of resident blocks per SM for which the compiler allots registers, if there
    /// is one. `is_wide` is true for the vector variant; scalar accesses need more registers.
    pub(crate) fn blocks_per_sm(&self, is_wide: bool) -> Option<u32> {
        let default = || {
            let is_small = self.spec.acc_elem().size() == 4 && self.vector() == 4;
            let threads = RESIDENT_THREADS[usize::from(!is_small)];
            (threads / self.block()).min(RESIDENT_BLOCKS)
        };
        let has_default = is_wide && self.spec.over == ScanOver::All;
        self.spec.blocks_per_sm.or_else(|| has_default.then(default))
    }

    /// Elements of an item: 16 bytes of the elements or of the results, whichever has more
    /// elements.
    pub fn vector(&self) -> u32 {
        self.spec.vector()
    }

    /// Elements that a team scans at once.
    pub fn tile(&self) -> u32 {
        self.team() * self.items * self.vector()
    }

    /// All decisions of the plan.
    pub fn decisions(&self) -> Vec<Decision> {
        let spec = self.spec();
        let mut list = Decisions::of_block(self.block());
        let kind = if spec.exclusive { "exclusive" } else { "inclusive" };
        list.say("operator", format!("{}, {kind}", spec.op));
        let types = (spec.element.elem(), spec.acc_elem());
        list.say("element type", format!("{}, accumulated in {}", types.0, types.1));
        list.say("result type", spec.result_elem().to_string());
        list.say("scan over", spec.over.to_string());
        let [wide, scalar] = [true, false].map(|is_wide| self.blocks_per_sm(is_wide));
        let reason = match spec.blocks_per_sm {
            None if spec.over == ScanOver::All => {
                "registers for 2048 threads of an SM if accumulators and elements have 4 bytes, \
                 else 1536; at most 16 blocks"
            }
            _ => "",
        };
        list.because("minimum blocks per SM", residency::told(wide), reason);
        if scalar != wide {
            list.because(
                "minimum blocks per SM of the scalar variant",
                residency::told(scalar),
                "a scalar access needs more registers",
            );
        }
        list.because(
            "elements per item",
            self.vector().to_string(),
            "16 bytes of the smaller of element and result, so that every access has 16 bytes",
        );
        let reason = match spec.items {
            Some(_) => "",
            None if spec.over == ScanOver::Rows => {
                "as many as hold 16 elements, at most 4; `block` times `items` is at most 1024"
            }
            None => "as many as hold 24 elements, at most 6, in 32 KiB of shared memory per block",
        };
        list.because("items per thread", self.items().to_string(), reason);
        list.say("threads per scan", self.team().to_string());
        match spec.over {
            ScanOver::All => {
                list.say("elements per block", self.tile().to_string());
                list.because(
                    "prefix of a block",
                    "groups of 32 blocks, sections of 32 groups".to_owned(),
                    "a block folds the prefix of its section, the sums of the earlier groups of \
                     the section and those of the earlier blocks of the group, the sums in fixed \
                     trees: no bit depends on timing",
                );
            }
            ScanOver::Rows => list.say("elements per iteration", self.tile().to_string()),
        }
        list.finish()
    }
}

mod messages {
    use super::{BLOCK_ITEMS, BLOCK_ITEMS_OF_ARRAY, ScanOver, ScanSpec, TILE_BYTES, widths};
    use crate::error::SpecError;
    use crate::ir::Elem;
    use crate::target::arch::{BLOCK_THREADS, WARP};

    pub(crate) fn narrow(element: Elem, acc: Elem) -> SpecError {
        SpecError::at_value(
            &["acc", "type"],
            format!(
                "`acc: {acc}` cannot hold every `{element}`; leave `acc` out, or use {}",
                widths(element)
            ),
        )
    }

    pub(crate) fn wrong_result(acc: Elem, result: Elem) -> SpecError {
        let results = match acc {
            Elem::F32 => "`f32`, `f16` and `bf16`".to_owned(),
            Elem::F64 => "`f64` and `f32`".to_owned(),
            _ => format!("`{acc}`"),
        };
        SpecError::at_value(
            &["result", "acc", "type"],
            format!("`result: {result}`: a scan in `{acc}` can return {results}; use one of these"),
        )
    }

    pub(crate) fn wrong_block(block: u32) -> SpecError {
        let nearest = block.clamp(WARP, BLOCK_THREADS).next_power_of_two();
        SpecError::at_value(
            &["block"],
            format!(
                "`block: {block}`: a block has a power of two of threads, from {WARP} to \
                 {BLOCK_THREADS}; use {nearest}"
            ),
        )
    }

    pub(crate) fn many_items(spec: &ScanSpec, items: u32, most: u32) -> SpecError {
        let block = spec.block;
        let bytes = spec.vector() * spec.element.elem().size();
        let of_block = u64::from(block) * u64::from(items);
        let (limit, why) = match spec.over {
            ScanOver::Rows => (BLOCK_ITEMS, String::new()),
            ScanOver::All if TILE_BYTES / bytes < BLOCK_ITEMS_OF_ARRAY => {
                let why = format!(" of {bytes} bytes in {TILE_BYTES} bytes of shared memory");
                (TILE_BYTES / bytes, why)
            }
            ScanOver::All => (BLOCK_ITEMS_OF_ARRAY, String::new()),
        };
        SpecError::at_value(
            &["items", "block"],
            format!(
                "{block} threads · {items} items = {of_block} items per block, and a block scans \
                 at most {limit}{why}; use `items: {most}` or less, or a smaller block"
            ),
        )
    }

    pub(crate) fn wrong_group(group: u32, block: u32) -> SpecError {
        SpecError::at_value(
            &["group", "block"],
            format!(
                "`group: {group}`: a row is scanned by a power of two of threads up to {WARP}, or \
                 by the whole block; use {}, or `group: {block}`",
                group.min(WARP).next_power_of_two()
            ),
        )
    }
}
