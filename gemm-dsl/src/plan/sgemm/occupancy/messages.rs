//! Error messages for exceeded resources: threads, registers, shared memory, alignment.

use crate::error::SpecError;
use crate::plan::{Axis, MAX_EXTENT, OperandPlan, Registers, SharedBytes};
use crate::spec::{Arith, Rect, SgemmSpec, Tile};
use crate::target::arch::{BLOCK_THREADS, LARGEST, THREAD_REGISTERS};

pub(crate) fn tile_threads(tile: Tile, spec: &SgemmSpec) -> SpecError {
    let SgemmSpec { slices, products, .. } = *spec;
    let thread = spec.thread_tile();
    let (m, n) = (tile.m / thread.m, tile.n / thread.n);
    let of_slice = u64::from(m) * u64::from(n);
    let groups = [(slices, "slices"), (products, "GEMMs")].into_iter().filter(|(n, _)| *n > 1);
    let times: String = groups.map(|(n, of)| format!(" · {n} {of}")).collect();
    let threads = u128::from(of_slice) * u128::from(slices) * u128::from(products);
    let times = format!("{m} · {n}{times} = {threads}");
    // With tensor cores, the warp tile determines the elements of a thread.
    let (part, larger, of) = match (spec.arith, spec.warp) {
        (Arith::F32, _) | (_, None) => ("thread", "thread tile", format!("`thread: {thread}`")),
        (_, Some(warp)) => ("warp", "warp tile", format!("{thread} per thread of `warp: {warp}`")),
    };
    let most = |of: u64| u64::from(BLOCK_THREADS) / of;
    let (guilty, remedy) = match (most(of_slice), most(of_slice.saturating_mul(slices.into()))) {
        (0, _) => (part, format!("use a larger {larger} or a smaller tile")),
        (1, 0) => ("slices", format!("leave `slices` out, or use a larger {larger}")),
        (most, 0) => ("slices", format!("use `slices: {most}` or less, or a larger {larger}")),
        (_, most) => ("products", format!("use `products: {most}` or less, or a larger {larger}")),
    };
    let mut keys = vec![guilty];
    keys.extend([part, "tile", "arith", "mma"].into_iter().filter(|key| *key != guilty));
    SpecError::at_value(
        &keys,
        format!(
            "`tile: {tile}` with {of} is ({}/{}) · ({}/{}) = {times} threads, and a block \
             has at most {BLOCK_THREADS}; {remedy}",
            tile.m, thread.m, tile.n, thread.n,
        ),
    )
}

/// Extent of the tile that is the length of a line; a part of a tile of B has a part of it.
fn axis_of_line(plan: &OperandPlan, tile: Tile) -> String {
    let axis = plan.contiguous();
    match (axis, plan.line()) {
        (Axis::N, columns) if columns < tile.n => format!("N / {}", tile.n / columns.max(1)),
        _ => axis.to_string(),
    }
}

pub(crate) fn float4_width(plan: &OperandPlan, tile: Tile) -> SpecError {
    let (operand, axis, width) = (plan.letter(), axis_of_line(plan, tile), plan.line());
    let line = if plan.lines_are_rows() { "row" } else { "column" };
    let lanes = plan.width();
    let next = u64::from(width).next_multiple_of(lanes.into());
    SpecError::at_value(
        &["tile", "float4"],
        format!(
            "`float4` moves {lanes} elements of a {line} of {operand} at once, and a {line} has \
             {axis} = {width} elements in `tile: {tile}`: {width} mod {lanes} = {}; use a multiple \
             of {lanes} as {axis}, such as {next}, or leave `float4` out",
            width % lanes,
        ),
    )
}

pub(crate) fn adjacent_of_line(adjacent: u32, plan: &OperandPlan, tile: Tile) -> SpecError {
    let (operand, axis, width) = (plan.letter(), axis_of_line(plan, tile), plan.line());
    let line = if plan.lines_are_rows() { "row" } else { "column" };
    SpecError::at_value(
        &["adjacent", "tile", "layout"],
        format!(
            "`adjacent: {adjacent}` does not divide a {line} of {operand}, which has {axis} = \
             {width} elements in `tile: {tile}`: {width} mod {adjacent} = {}; use a divisor of \
             {width}",
            width % adjacent.max(1),
        ),
    )
}

pub(crate) fn float4_without_access(tile: Tile) -> SpecError {
    SpecError::at_key(
        &[
            "float4",
            "tile",
            "thread",
            "fragment",
            "transpose",
            "pad_a",
            "pad_b",
            "stages",
            "layout",
        ],
        format!(
            "`float4` has no effect: with these paddings, `thread` and `fragment`, no access of \
             `tile: {tile}` covers 16 aligned bytes; make the padding a multiple of 4, or leave \
             `float4` out"
        ),
    )
}

pub(crate) fn registers(guilty: &'static str, r: &Registers) -> SpecError {
    let Rect { m, n } = r.thread;
    let partials = match (r.partials, r.folds_tiles) {
        (1, _) => String::new(),
        (p, false) => format!(" · {p} partial sums"),
        (p, true) => format!(" · ({p} partial sums + 1 sum)"),
    };
    let staged = match r.staged {
        0 => String::new(),
        s => format!(" + {s} of the next tile"),
    };
    let available = r.available();
    let limit = if available == THREAD_REGISTERS {
        format!("a thread has at most {available}")
    } else {
        let (threads, blocks, all) = (r.threads, r.blocks_per_sm, LARGEST.registers);
        let number = if blocks == 1 { "block" } else { "blocks" };
        format!(
            "{all} registers shared by {threads} threads · {blocks} {number} leave {available} per \
             thread"
        )
    };
    let remedy = match guilty {
        "warp" => "use a smaller warp tile or fewer threads",
        "epilogue" => "use fewer operands, a smaller thread tile or fewer threads",
        "blocks_per_sm" => "use a smaller `blocks_per_sm`",
        "partials" => "use a smaller `partials`",
        "unroll" => "use a smaller `unroll`",
        _ => "use a smaller thread tile or fewer threads",
    };
    let mut keys = vec![guilty];
    let involved =
        ["tile", "thread", "warp", "arith", "block", "unroll", "partials", "blocks_per_sm"];
    let pipelines = ["prefetch", "double_buffer", "stages"];
    keys.extend(involved.into_iter().chain(pipelines).filter(|key| *key != guilty));
    let beside = match guilty {
        "epilogue" => format!("{} for operands of the epilogue", r.operands),
        _ => format!("{} for fragments{staged}", r.fragments),
    };
    SpecError::at_value(
        &keys,
        format!(
            "a thread needs {m} · {n}{partials} = {} registers for its accumulators + {beside} = \
             {}, and {limit}; {remedy}",
            r.sums(),
            r.needed(),
        ),
    )
}

pub(crate) fn shared_memory(
    spec: &SgemmSpec,
    keys: &[&'static str],
    sum: &SharedBytes,
    remedy: &str,
) -> SpecError {
    let ((a, b), [of_a, of_b]) = (sum.parts(), sum.bytes);
    let most = LARGEST.shared_per_block;
    let times = |number: u32, of: &str| match number {
        1 => String::new(),
        n => format!("{n} {of} · "),
    };
    let beside: String =
        sum.beside.arrays().map(|(bytes, what)| format!(", {bytes} for {what}")).collect();
    let arrays = a + b + sum.beside.arrays().map(|(bytes, _)| bytes).sum::<u128>();
    let between = match sum.total() - arrays {
        0 => String::new(),
        bytes => format!(", {bytes} to align arrays to 16 bytes"),
    };
    let buffers = if spec.stages.is_some() { "stages" } else { "buffers" };
    let buffers = times(sum.products, "GEMMs") + &times(sum.buffers, buffers);
    SpecError::at_value(
        keys,
        format!(
            "the block needs {} bytes of shared memory: {buffers}{}·{} elements · {} bytes = \
             {a} for A, {buffers}{}·{} elements · {} bytes = {b} for B{beside}{between}, and a \
             block has at most {most} ({} KiB); {remedy}",
            sum.total(),
            sum.a.0,
            sum.a.1,
            of_a,
            sum.b.0,
            sum.b.1,
            of_b,
            most / 1024,
        ),
    )
}

pub(crate) fn resident_shared(blocks: u32, bytes: u128, most: u128) -> SpecError {
    let (reserved, all) = (LARGEST.shared_reserved, LARGEST.shared_bytes);
    SpecError::at_value(
        &["blocks_per_sm", "tile", "pad_a", "pad_b", "stages", "double_buffer"],
        format!(
            "`blocks_per_sm: {blocks}` needs {blocks} · ({bytes} + {reserved} reserved by CUDA) = \
             {} bytes of shared memory, and an SM has at most {all} ({} KiB); use {most} or less",
            u128::from(blocks) * (bytes + u128::from(reserved)),
            all / 1024,
        ),
    )
}

pub(crate) fn too_wide(key: &'static str, number: u32, each: u32, axis: &str) -> SpecError {
    SpecError::at_value(
        &[key, "block", "tile"],
        format!(
            "`{key}: {number}` · {each} {axis} = {} {axis}, more than 2^{} = {MAX_EXTENT}; use {} \
             or less",
            u64::from(number) * u64::from(each),
            MAX_EXTENT.ilog2(),
            MAX_EXTENT / u64::from(each.max(1)),
        ),
    )
}
