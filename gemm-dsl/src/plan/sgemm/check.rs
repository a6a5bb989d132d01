//! What a matrix product must satisfy; the list stands in the documentation of the parent module.

use super::TiledPlan;
use crate::error::sgemm::{self as error, Registers, SharedSum};
use crate::ir::{MAX_SHARED_BYTES, MAX_THREADS};
use crate::plan::{Faults, check_name};
use crate::spec::{Lanes, Map, Order, Rect, SgemmSpec, Tile};

/// The most registers the instruction set lets a thread name.
const MAX_REGISTERS: u128 = 255;
/// Registers of a multiprocessor, on every architecture.
const SM_REGISTERS: u64 = 65536;
/// The most threads a multiprocessor holds on any architecture.
const SM_THREADS: u64 = 2048;
/// The most blocks a multiprocessor holds on any architecture.
const SM_BLOCKS: u32 = 32;
/// The most shared memory of a multiprocessor on any architecture, in bytes.
const SM_SHARED_BYTES: u128 = 228 * 1024;
/// What the system takes of it for each block, in bytes.
const RESERVED_SHARED_BYTES: u128 = 1024;
/// A longer body serves nobody and keeps the compiler busy for minutes.
const MAX_UNROLL: u32 = 1024;
/// Indices inside a block stay far from 2^31.
const MAX_EXTENT: u64 = 1 << 30;

/// All faults of a spec. The order matters: a check is left out where an earlier fault is about a
/// key that its arithmetic rests on.
pub(super) fn check(spec: &SgemmSpec, faults: &mut Faults) {
    check_name(spec.name.as_deref(), faults);
    dimensions(spec, faults);
    numbers(spec, faults);
    one_pipeline(spec, faults);
    match spec.tile {
        Some(tile) => {
            belongs_to_naive(spec, faults);
            acts_on_thread(spec, faults);
            thread_divides(spec, tile, faults);
            warp_divides(spec, tile, faults);
            steps_of_tile(spec, tile, faults);
            shared_memory(spec, tile, faults);
        }
        None => belongs_to_tile(spec, faults),
    }
    partials_and_unroll(spec, faults);
    threads(spec, faults);
    extents(spec, faults);
    if let Some(tile) = spec.tile {
        vectors(spec, tile, faults);
    }
}

fn dimensions(spec: &SgemmSpec, faults: &mut Faults) {
    let mut require = |key, size: Option<(String, bool)>| {
        if let Some((size, false)) = size {
            faults.0.push(error::zero_dimension(key, size));
        }
    };
    let rect = |r: Rect| (r.to_string(), r.m > 0 && r.n > 0);
    require("block", spec.block.map(|b| (b.to_string(), b.rows > 0 && b.cols > 0)));
    require("tile", spec.tile.map(|t| (t.to_string(), t.m > 0 && t.n > 0 && t.k > 0)));
    require("thread", Some(rect(spec.thread)));
    require("warp", spec.warp.map(rect));
}

fn numbers(spec: &SgemmSpec, faults: &mut Faults) {
    let mut at_least = |key, number: Option<u32>, least, why| {
        if let Some(number) = number.filter(|number| *number < least) {
            faults.0.push(error::below(key, number, least, why));
        }
    };
    at_least("coarsen", Some(spec.coarsen), 1, "a thread computes at least one element");
    at_least("unroll", spec.unroll, 1, "a round of the loop does at least one step");
    at_least("partials", Some(spec.partials), 1, "an element needs at least one sum");
    at_least("stages", spec.stages, 2, "a pipeline fills one buffer while another is used");
    at_least("spread", Some(spec.spread), 1, "copies are issued in at least one step");
    at_least("raster", spec.raster, 1, "a group has at least one tile row");
    at_least("blocks_per_sm", Some(spec.blocks_per_sm), 1, "at least one block must fit");
    if let Some(unroll) = spec.unroll {
        faults.require(unroll <= MAX_UNROLL, || {
            error::above("unroll", unroll, MAX_UNROLL, "the loop body would be too long to compile")
        });
    }
}

fn one_pipeline(spec: &SgemmSpec, faults: &mut Faults) {
    let given = [
        ("prefetch", spec.prefetch),
        ("double_buffer", spec.double_buffer),
        ("stages", spec.stages.is_some()),
    ];
    let mut given = given.into_iter().filter_map(|(key, on)| on.then_some(key));
    if let Some(first) = given.next() {
        faults.0.extend(given.map(|key| error::two_pipelines(key, first)));
    }
}

fn belongs_to_tile(spec: &SgemmSpec, faults: &mut Faults) {
    let given = [
        ("thread", spec.thread != Rect::new(1, 1)),
        ("map", spec.map != Map::Blocked),
        ("float4", spec.float4),
        ("transpose", spec.transpose),
        ("pad_a", spec.pad_a != 0),
        ("pad_b", spec.pad_b != 0),
        ("prefetch", spec.prefetch),
        ("double_buffer", spec.double_buffer),
        ("stages", spec.stages.is_some()),
        ("spread", spec.spread != 1),
        ("warp", spec.warp.is_some()),
        ("order", spec.order != Order::Row),
    ];
    for (key, given) in given {
        if given && faults.sound(&[key]) {
            faults.0.push(error::needs_tile(key));
        }
    }
}

fn belongs_to_naive(spec: &SgemmSpec, faults: &mut Faults) {
    let given = [
        (
            "block",
            spec.block.is_some(),
            "the threads of a tiled kernel follow from `tile` and `thread`; leave it out",
        ),
        ("lanes", spec.lanes != Lanes::N, "leave it out"),
        ("coarsen", spec.coarsen != 1, "use `thread: 1x4` for four elements of a row"),
    ];
    for (key, given, instead) in given {
        if given && faults.sound(&[key]) {
            faults.0.push(error::excludes_tile(key, instead));
        }
    }
}

fn acts_on_thread(spec: &SgemmSpec, faults: &mut Faults) {
    let thread = spec.thread;
    if spec.order != Order::Row {
        faults
            .require(thread.m > 1 && thread.n > 1, || error::order_of_one_line(spec.order, thread));
    }
    match spec.map {
        Map::Blocked => {}
        map if thread.area() == 1 => faults.0.push(error::map_of_one(map)),
        Map::Strided => {}
        Map::Split => {
            faults.require(thread.m % 4 == 0 && thread.n % 4 == 0, || error::split_thread(thread))
        }
    }
}

fn thread_divides(spec: &SgemmSpec, tile: Tile, faults: &mut Faults) {
    let thread = spec.thread;
    if faults.sound(&["tile", "thread"]) {
        faults.require(tile.m % thread.m == 0 && tile.n % thread.n == 0, || {
            error::thread_does_not_divide(tile, thread)
        });
    }
}

fn warp_divides(spec: &SgemmSpec, tile: Tile, faults: &mut Faults) {
    let Some(warp) = spec.warp else { return };
    let thread = spec.thread;
    if !faults.sound(&["warp"]) {
        return;
    }
    if thread.area() > 0 && faults.sound(&["thread"]) {
        if warp.m % thread.m != 0 || warp.n % thread.n != 0 {
            faults.0.push(error::thread_does_not_divide_warp(warp, thread));
        } else {
            let lanes = u64::from(warp.m / thread.m) * u64::from(warp.n / thread.n);
            faults.require(lanes == 32, || error::warp_lanes(warp, thread));
        }
    }
    if faults.sound(&["tile", "warp"]) {
        faults.require(tile.m % warp.m == 0 && tile.n % warp.n == 0, || {
            error::warp_does_not_divide(tile, warp)
        });
    }
}

fn steps_of_tile(spec: &SgemmSpec, tile: Tile, faults: &mut Faults) {
    if spec.stages.is_none() {
        if faults.sound(&["spread"]) {
            faults.require(spec.spread == 1, error::spread_without_stages);
        }
    } else if faults.sound(&["spread", "tile"]) {
        faults.require(spec.spread <= tile.k, || error::spread_beyond_tile(spec.spread, tile.k));
    }
    if faults.sound(&["partials", "tile"]) {
        faults.require(tile.k % spec.partials == 0, || {
            error::partials_of_tile(spec.partials, tile.k)
        });
    }
}

fn partials_and_unroll(spec: &SgemmSpec, faults: &mut Faults) {
    if let Some(unroll) = spec.unroll
        && faults.sound(&["partials", "unroll"])
    {
        faults.require(unroll % spec.partials == 0, || {
            error::partials_of_unroll(spec.partials, unroll)
        });
    }
}

/// The keys that the sum of shared memory rests on.
const SHARED_KEYS: [&str; 6] = ["tile", "transpose", "pad_a", "pad_b", "double_buffer", "stages"];

fn shared_sum(spec: &SgemmSpec, tile: Tile, buffers: u32) -> SharedSum {
    let [m, n, k] = [tile.m, tile.n, tile.k].map(u128::from);
    let (pad_a, pad_b) = (u128::from(spec.pad_a), u128::from(spec.pad_b));
    SharedSum {
        buffers,
        a: if spec.transpose { (k, m + pad_a) } else { (m, k + pad_a) },
        b: (k, n + pad_b),
    }
}

fn buffers(spec: &SgemmSpec) -> u32 {
    spec.stages.unwrap_or(if spec.double_buffer { 2 } else { 1 })
}

/// A block's shared memory has a limit; the guilty key is the one whose change helps.
fn shared_memory(spec: &SgemmSpec, tile: Tile, faults: &mut Faults) {
    let fits = |sum: &SharedSum| sum.total() <= MAX_SHARED_BYTES.into();
    let sum = shared_sum(spec, tile, buffers(spec));
    if fits(&sum) || !faults.sound(&SHARED_KEYS) {
        return;
    }
    let bare = spec.clone().pad_a(0).pad_b(0);
    let single = shared_sum(spec, tile, 1);
    let (guilty, remedy) = if fits(&shared_sum(&bare, tile, sum.buffers)) {
        let guilty = if spec.pad_a >= spec.pad_b { "pad_a" } else { "pad_b" };
        (guilty, "use less padding".to_owned())
    } else if spec.stages.is_some() {
        let most = u128::from(MAX_SHARED_BYTES) / single.total().max(1);
        if most >= 2 {
            ("stages", format!("use `stages: {most}` or less, or a smaller tile"))
        } else {
            ("tile", "use a smaller tile".to_owned())
        }
    } else if spec.double_buffer && fits(&single) {
        ("double_buffer", "leave `double_buffer` out, or use a smaller tile".to_owned())
    } else {
        ("tile", "use a smaller tile".to_owned())
    };
    let mut keys = vec![guilty];
    keys.extend(SHARED_KEYS.into_iter().filter(|key| *key != guilty));
    faults.0.push(error::shared_memory(&keys, &sum, &remedy));
}

/// The resolved geometry, if everything it rests on is sound.
fn geometry(spec: &SgemmSpec, faults: &Faults) -> Option<TiledPlan> {
    let rests_on = ["thread", "warp", "map", "prefetch"];
    (faults.sound(&SHARED_KEYS) && faults.sound(&rests_on))
        .then(|| spec.tile.map(|tile| TiledPlan::new(spec, tile)))
        .flatten()
}

fn vectors(spec: &SgemmSpec, tile: Tile, faults: &mut Faults) {
    if !spec.float4 {
        return;
    }
    let Some(plan) = geometry(spec, faults) else {
        return;
    };
    if plan.a_global_vector() {
        faults.require(tile.k % 4 == 0, || error::float4_width('A', 'K', tile, tile.k));
    }
    if plan.b_global_vector() {
        faults.require(tile.n % 4 == 0, || error::float4_width('B', 'N', tile, tile.n));
    }
    let acts = plan.a_global_vector()
        || plan.b_global_vector()
        || plan.c_vector()
        || plan.a_frag_vector()
        || plan.b_frag_vector();
    faults.require(acts, || error::float4_without_access(tile));
}

fn block_threads(spec: &SgemmSpec) -> u64 {
    match spec.tile {
        Some(tile) => u64::from(tile.m / spec.thread.m) * u64::from(tile.n / spec.thread.n),
        None => {
            let block = spec.block.unwrap_or(SgemmSpec::DEFAULT_BLOCK);
            u64::from(block.rows) * u64::from(block.cols)
        }
    }
}

fn threads(spec: &SgemmSpec, faults: &mut Faults) {
    let blocks = spec.blocks_per_sm;
    faults.require(blocks <= SM_BLOCKS, || error::resident_blocks(blocks));
    let rests_on: &[&str] = match spec.tile {
        Some(_) => &["tile", "thread"],
        None => &["block"],
    };
    if !faults.sound(rests_on) {
        return;
    }
    let threads = block_threads(spec);
    if threads > MAX_THREADS.into() {
        faults.0.push(match spec.tile {
            Some(tile) => error::tile_threads(tile, spec.thread),
            None => error::block_threads(spec.block.unwrap_or(SgemmSpec::DEFAULT_BLOCK)),
        });
        return;
    }
    if faults.sound(&["blocks_per_sm"]) {
        faults.require(u64::from(blocks) * threads <= SM_THREADS, || {
            error::resident_threads(blocks, threads)
        });
    }
    if let Some(tile) = spec.tile
        && faults.sound(&["blocks_per_sm"])
        && faults.sound(&SHARED_KEYS)
    {
        let bytes = shared_sum(spec, tile, buffers(spec)).total();
        let most = SM_SHARED_BYTES / (bytes + RESERVED_SHARED_BYTES);
        faults.require(u128::from(blocks) <= most, || error::resident_shared(blocks, bytes, most));
    }
    if faults.sound(&["blocks_per_sm", "partials", "thread"]) {
        registers(spec, threads, faults);
    }
}

/// Sums, fragments and what waits in registers must fit beside each other. The compiler needs a few
/// registers more, so this is no promise that nothing is spilled.
fn registers(spec: &SgemmSpec, threads: u64, faults: &mut Faults) {
    let resident = threads.next_multiple_of(32) * u64::from(spec.blocks_per_sm);
    let Some(share) = SM_REGISTERS.checked_div(resident) else {
        return;
    };
    let thread = spec.thread;
    // Fragments are double-buffered under asynchronous copies.
    let copies = if spec.stages.is_some() { 2 } else { 1 };
    let staged = match geometry(spec, faults) {
        Some(plan) if spec.prefetch || spec.double_buffer => {
            u128::from(plan.a_accesses()) * u128::from(plan.a_width())
                + u128::from(plan.b_accesses()) * u128::from(plan.b_width())
        }
        _ => 0,
    };
    let sum = Registers {
        thread,
        partials: spec.partials,
        accumulators: u128::from(thread.area()) * u128::from(spec.partials),
        fragments: (u128::from(thread.m) + u128::from(thread.n)) * copies,
        staged,
        threads,
        blocks_per_sm: spec.blocks_per_sm,
        // Registers are allocated in units of 8 a thread.
        available: MAX_REGISTERS.min((share / 8 * 8).into()),
    };
    faults.require(sum.needed() <= sum.available, || error::registers(&sum));
}

fn extents(spec: &SgemmSpec, faults: &mut Faults) {
    let (rows, cols) = match (spec.tile, spec.block.unwrap_or(SgemmSpec::DEFAULT_BLOCK)) {
        (Some(tile), _) => (tile.m, tile.n),
        (None, block) => (block.rows, block.cols),
    };
    if spec.tile.is_none() {
        faults.require(u64::from(spec.coarsen) * u64::from(cols) <= MAX_EXTENT, || {
            error::too_wide("coarsen", spec.coarsen, cols, "columns")
        });
    }
    if let Some(raster) = spec.raster
        && faults.sound(&["tile"])
    {
        faults.require(u64::from(raster) * u64::from(rows) <= MAX_EXTENT, || {
            error::too_wide("raster", raster, rows, "rows")
        });
    }
}
