//! What a matrix product can ask too much of: threads, registers, shared memory, aligned accesses.

use super::SpecError;
use crate::spec::{Block, Rect, Tile};

pub(crate) fn block_threads(block: Block) -> SpecError {
    let threads = u64::from(block.rows) * u64::from(block.cols);
    SpecError::at_value(
        &["block"],
        format!(
            "`block: {block}` is {} · {} = {threads} threads, and a block has at most 1024; use a \
             smaller one such as `block: 32x32`",
            block.rows, block.cols,
        ),
    )
}

pub(crate) fn tile_threads(tile: Tile, thread: Rect) -> SpecError {
    let (m, n) = (tile.m / thread.m, tile.n / thread.n);
    let threads = u64::from(m) * u64::from(n);
    SpecError::at_value(
        &["thread", "tile"],
        format!(
            "`tile: {tile}` with `thread: {thread}` is ({}/{}) · ({}/{}) = {m} · {n} = {threads} \
             threads, and a block has at most 1024; use a larger thread tile or a smaller tile",
            tile.m, thread.m, tile.n, thread.n,
        ),
    )
}

pub(crate) fn float4_width(operand: char, axis: char, tile: Tile, width: u32) -> SpecError {
    let next = u64::from(width).next_multiple_of(4);
    SpecError::at_value(
        &["tile", "float4"],
        format!(
            "`float4` moves 4 elements of a row of {operand} at once, and a row has {axis} = \
             {width} elements in `tile: {tile}`: {width} mod 4 = {}; use a multiple of 4 such as \
             {next}, or leave `float4` out",
            width % 4,
        ),
    )
}

pub(crate) fn float4_without_access(tile: Tile) -> SpecError {
    SpecError::at_key(
        &["float4", "tile", "thread", "fragment", "transpose", "pad_a", "pad_b", "stages"],
        format!(
            "`float4` has nothing to act on: with these paddings, `thread` and `fragment`, no access \
             of `tile: {tile}` covers 16 aligned bytes; make the padding a multiple of 4, or leave \
             it out"
        ),
    )
}

/// The registers of a thread that hold its part of the computation.
pub(crate) struct Registers {
    pub thread: Rect,
    pub partials: u32,
    pub fragments: u128,
    /// Elements of the next tile on their way to shared memory.
    pub staged: u128,
    pub threads: u64,
    pub blocks_per_sm: u32,
    /// How many a thread may have.
    pub available: u128,
}

impl Registers {
    fn sums(&self) -> u128 {
        u128::from(self.thread.area()) * u128::from(self.partials)
    }

    pub(crate) fn needed(&self) -> u128 {
        self.sums() + self.fragments + self.staged
    }
}

pub(crate) fn registers(guilty: &'static str, r: &Registers) -> SpecError {
    let Rect { m, n } = r.thread;
    let partials = match r.partials {
        1 => String::new(),
        p => format!(" · {p} partial sums"),
    };
    let staged = match r.staged {
        0 => String::new(),
        s => format!(" + {s} of the next tile"),
    };
    let limit = if r.available == 255 {
        "a thread has at most 255".to_owned()
    } else {
        let (threads, blocks, available) = (r.threads, r.blocks_per_sm, r.available);
        format!("65536 shared by {threads} threads · {blocks} blocks are {available} a thread")
    };
    let remedy = match guilty {
        "blocks_per_sm" => "use fewer blocks",
        "partials" => "use fewer partial sums",
        _ => "use a smaller thread tile or fewer threads",
    };
    let mut keys = vec![guilty];
    let involved = ["tile", "thread", "block", "partials", "blocks_per_sm"];
    let pipelines = ["prefetch", "double_buffer", "stages"];
    keys.extend(involved.into_iter().chain(pipelines).filter(|key| *key != guilty));
    SpecError::at_value(
        &keys,
        format!(
            "a thread needs {m} · {n}{partials} = {} registers for its sums + {} for fragments\
             {staged} = {}, and {limit}; {remedy}",
            r.sums(),
            r.fragments,
            r.needed(),
        ),
    )
}

/// The shared memory of a block, in elements of 4 bytes.
pub(crate) struct SharedSum {
    pub buffers: u32,
    /// Rows and row length of A, then of B, padding included.
    pub a: (u128, u128),
    pub b: (u128, u128),
}

impl SharedSum {
    /// Bytes of the whole of A and of B.
    pub(crate) fn parts(&self) -> (u128, u128) {
        let bytes = |(rows, row): (u128, u128)| 4 * u128::from(self.buffers) * rows * row;
        (bytes(self.a).next_multiple_of(16), bytes(self.b))
    }

    pub(crate) fn total(&self) -> u128 {
        let (a, b) = self.parts();
        a + b
    }
}

pub(crate) fn shared_memory(keys: &[&'static str], sum: &SharedSum, remedy: &str) -> SpecError {
    let (a, b) = sum.parts();
    let buffers = match sum.buffers {
        1 => String::new(),
        n => format!("{n} buffers · "),
    };
    SpecError::at_value(
        keys,
        format!(
            "the block needs {} bytes of shared memory: {buffers}{}·{} elements · 4 = {a} for A, \
             {buffers}{}·{} elements · 4 = {b} for B, and a block has at most {} (227 KiB); {remedy}",
            sum.total(),
            sum.a.0,
            sum.a.1,
            sum.b.0,
            sum.b.1,
            crate::ir::MAX_SHARED_BYTES,
        ),
    )
}

pub(crate) fn resident_blocks(blocks: u32) -> SpecError {
    SpecError::at_value(
        &["blocks_per_sm"],
        format!(
            "`blocks_per_sm: {blocks}`: a multiprocessor holds at most 32 blocks; use 32 or less"
        ),
    )
}

pub(crate) fn resident_threads(blocks: u32, threads: u64) -> SpecError {
    SpecError::at_value(
        &["blocks_per_sm", "tile", "thread", "block"],
        format!(
            "`blocks_per_sm: {blocks}` with {threads} threads a block is {} threads, and a \
             multiprocessor holds at most 2048; use {} or less",
            u64::from(blocks) * threads,
            2048 / threads.max(1),
        ),
    )
}

pub(crate) fn resident_shared(blocks: u32, bytes: u128, most: u128) -> SpecError {
    SpecError::at_value(
        &["blocks_per_sm", "tile", "pad_a", "pad_b", "stages", "double_buffer"],
        format!(
            "`blocks_per_sm: {blocks}` with {bytes} bytes of shared memory a block and 1024 that \
             the system reserves is {} bytes, and a multiprocessor has at most 233472 (228 KiB); \
             use {most} or less",
            u128::from(blocks) * (bytes + 1024),
        ),
    )
}

pub(crate) fn too_wide(key: &'static str, number: u32, each: u32, axis: &str) -> SpecError {
    SpecError::at_value(
        &[key, "block", "tile"],
        format!(
            "`{key}: {number}` of {each} {axis} is {} {axis}, more than 2^30 = 1073741824; use {} \
             or less",
            u64::from(number) * u64::from(each),
            (1u64 << 30) / u64::from(each.max(1)),
        ),
    )
}
