//! What can be wrong with a matrix product.

use super::SpecError;
use crate::spec::{Block, Map, Order, Rect, Tile};

pub(crate) fn zero_dimension(key: &'static str, size: String) -> SpecError {
    SpecError::at_value(
        &[key],
        format!("`{key}: {size}` has a dimension of 0; every dimension must be at least 1"),
    )
}

pub(crate) fn below(key: &'static str, number: u32, least: u32, why: &str) -> SpecError {
    SpecError::at_value(&[key], format!("`{key}: {number}`: {why}; use {least} or more"))
}

pub(crate) fn above(key: &'static str, number: u32, most: u32, why: &str) -> SpecError {
    SpecError::at_value(&[key], format!("`{key}: {number}`: {why}; use {most} or less"))
}

pub(crate) fn needs_tile(key: &'static str) -> SpecError {
    SpecError::at_key(
        &[key, "tile"],
        format!(
            "`{key}` has nothing to act on: without `tile` nothing is staged in shared memory; \
             add a tile such as `tile: 64x64x8`, or leave it out"
        ),
    )
}

pub(crate) fn excludes_tile(key: &'static str, instead: &str) -> SpecError {
    SpecError::at_key(
        &[key, "tile"],
        format!("`{key}` has nothing to act on: it shapes a kernel without `tile`; {instead}"),
    )
}

pub(crate) fn map_of_one(map: Map) -> SpecError {
    SpecError::at_key(
        &["map", "thread"],
        format!(
            "`map: {map}` has nothing to act on: a thread owns one element; give it more, such as \
             `thread: 4x4`, or leave the map out"
        ),
    )
}

pub(crate) fn order_of_one_line(order: Order, thread: Rect) -> SpecError {
    SpecError::at_key(
        &["order", "thread"],
        format!(
            "`order: {order}` has nothing to act on: the elements of `thread: {thread}` lie in one \
             line, which every order visits alike; use more rows and columns, or leave it out"
        ),
    )
}

pub(crate) fn spread_without_stages() -> SpecError {
    SpecError::at_key(
        &["spread", "stages"],
        "`spread` has nothing to act on: it spreads the asynchronous copies of `stages`; add \
         `stages: 3`, or leave it out"
            .into(),
    )
}

pub(crate) fn float4_without_access(tile: Tile) -> SpecError {
    SpecError::at_key(
        &["float4", "tile", "thread", "map", "transpose", "pad_a", "pad_b", "stages"],
        format!(
            "`float4` has nothing to act on: with these paddings, `thread` and `map`, no access \
             of `tile: {tile}` covers 16 aligned bytes; make the padding a multiple of 4, or leave \
             it out"
        ),
    )
}

pub(crate) fn two_pipelines(key: &'static str, other: &'static str) -> SpecError {
    SpecError::at_key(
        &[key, other],
        format!(
            "`{key}` and `{other}` are two pipelines, and a kernel has one; leave one of them out"
        ),
    )
}

pub(crate) fn thread_does_not_divide(tile: Tile, thread: Rect) -> SpecError {
    SpecError::at_value(
        &["thread", "tile"],
        format!(
            "`thread: {thread}` does not divide `tile: {tile}`: {}; use divisors of {} and {}",
            remainders([("rows", tile.m, thread.m), ("columns", tile.n, thread.n)]),
            tile.m,
            tile.n,
        ),
    )
}

pub(crate) fn warp_does_not_divide(tile: Tile, warp: Rect) -> SpecError {
    SpecError::at_value(
        &["warp", "tile"],
        format!(
            "`warp: {warp}` does not divide `tile: {tile}`: {}; use divisors of {} and {}",
            remainders([("rows", tile.m, warp.m), ("columns", tile.n, warp.n)]),
            tile.m,
            tile.n,
        ),
    )
}

pub(crate) fn thread_does_not_divide_warp(warp: Rect, thread: Rect) -> SpecError {
    SpecError::at_value(
        &["warp", "thread"],
        format!(
            "`thread: {thread}` does not divide `warp: {warp}`: {}; use multiples of {} and {}",
            remainders([("rows", warp.m, thread.m), ("columns", warp.n, thread.n)]),
            thread.m,
            thread.n,
        ),
    )
}

/// The divisions that leave a remainder, as in `30 rows mod 4 = 2`.
fn remainders(axes: [(&str, u32, u32); 2]) -> String {
    let parts: Vec<String> = axes
        .into_iter()
        .filter_map(|(axis, whole, part)| {
            let rest = whole.checked_rem(part)?;
            (rest != 0).then(|| format!("{whole} {axis} mod {part} = {rest}"))
        })
        .collect();
    parts.join(", ")
}

pub(crate) fn warp_lanes(warp: Rect, thread: Rect) -> SpecError {
    let (m, n) = (warp.m / thread.m, warp.n / thread.n);
    let lanes = u64::from(m) * u64::from(n);
    SpecError::at_value(
        &["warp", "thread"],
        format!(
            "`warp: {warp}` with `thread: {thread}` is ({}/{}) · ({}/{}) = {m} · {n} = {lanes} \
             lanes, and a warp has 32; make the warp tile 32 thread tiles, such as `warp: {}`",
            warp.m,
            thread.m,
            warp.n,
            thread.n,
            Product(thread.m, 8, thread.n, 4),
        ),
    )
}

/// `a·b x c·d`, without overflow.
struct Product(u32, u32, u32, u32);

impl std::fmt::Display for Product {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(a, b, c, d) = self.to_owned();
        let (m, n) = (u64::from(*a) * u64::from(*b), u64::from(*c) * u64::from(*d));
        write!(f, "{m}x{n}")
    }
}

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

pub(crate) fn split_thread(thread: Rect) -> SpecError {
    SpecError::at_value(
        &["map", "thread"],
        format!(
            "`map: split` gives a thread vectors of four on both axes, and `thread: {thread}` \
             leaves {} mod 4 = {} and {} mod 4 = {}; use multiples of 4 such as `thread: 8x8`, or \
             another map",
            thread.m,
            thread.m % 4,
            thread.n,
            thread.n % 4,
        ),
    )
}

pub(crate) fn spread_beyond_tile(spread: u32, k: u32) -> SpecError {
    SpecError::at_value(
        &["spread", "tile"],
        format!("`spread: {spread}` is more than the {k} k steps of a tile; use {k} or less"),
    )
}

pub(crate) fn partials_of_tile(partials: u32, k: u32) -> SpecError {
    SpecError::at_value(
        &["partials", "tile"],
        format!(
            "`partials: {partials}` does not divide the {k} k steps of a tile: {k} mod {partials} \
             = {}; use a divisor of {k}",
            k % partials.max(1),
        ),
    )
}

pub(crate) fn partials_of_unroll(partials: u32, unroll: u32) -> SpecError {
    SpecError::at_value(
        &["unroll", "partials"],
        format!(
            "`unroll: {unroll}` is no multiple of `partials: {partials}`, and a round of the \
             unrolled loop adds to each partial sum equally often: {unroll} mod {partials} = {}; \
             use a multiple of {partials}",
            unroll % partials.max(1),
        ),
    )
}

/// The registers that hold a thread's operands and results.
pub(crate) struct Registers {
    pub thread: Rect,
    pub partials: u32,
    pub accumulators: u128,
    pub fragments: u128,
    pub staged: u128,
    pub threads: u64,
    pub blocks_per_sm: u32,
    pub available: u128,
}

impl Registers {
    pub(crate) fn needed(&self) -> u128 {
        self.accumulators + self.fragments + self.staged
    }
}

pub(crate) fn registers(r: &Registers) -> SpecError {
    let partials = match r.partials {
        1 => String::new(),
        p => format!(" · {p} partial sums"),
    };
    let staged = match r.staged {
        0 => String::new(),
        s => format!(" + {s} of the next tile"),
    };
    let why = if r.available == 255 {
        "a thread has at most 255".to_owned()
    } else {
        format!(
            "65536 on a multiprocessor leave {} for each of {} · {} threads",
            r.available, r.threads, r.blocks_per_sm
        )
    };
    SpecError::at_value(
        &[
            if r.thread.area() > 1 { "thread" } else { "partials" },
            "partials",
            "tile",
            "block",
            "blocks_per_sm",
            "prefetch",
            "double_buffer",
            "stages",
        ],
        format!(
            "a thread needs {} · {}{partials} = {} registers for its sums + {} for fragments\
             {staged} = {}, and {why}; use a smaller thread tile or fewer threads",
            r.thread.m,
            r.thread.n,
            r.accumulators,
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
