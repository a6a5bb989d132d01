//! Random GEMMs.

use super::{repaired, values, with};
use gemm_dsl::ir::Elem;
use gemm_dsl::spec::{
    Arith, Block, Convert, Copies, GemmLayout, Instruction, Lanes, MatrixType, Rect, SgemmSpec,
    Spec, Tile, newer_word,
};
use proptest::prelude::*;
use proptest::sample::select;

/// Keys of the geometry, whose values depend on each other and are drawn together. The list
/// includes `batch` and `products`, which require other operands (`tests/kernels/batch.rs`), and
/// the types of [`typed`].
const GEOMETRY: &[&str] = &[
    "a",
    "b",
    "c",
    "tile",
    "thread",
    "warp",
    "block",
    "pad_a",
    "pad_b",
    "prefetch",
    "double_buffer",
    "stages",
    "spread",
    "blocks_per_sm",
    "batch",
    "products",
    "lanes",
    "slices",
    "arith",
    "promote",
    "mma",
    "convert",
    "copy",
    "producer",
    "swap_ab",
];

/// Random valid GEMM with at most `threads` threads per block. Every key varies except the name.
pub fn sgemm(threads: u32) -> impl Strategy<Value = SgemmSpec> {
    let shape = prop_oneof![
        1 => naive().boxed(),
        4 => direct().boxed(),
        6 => tiled().boxed(),
        4 => matrices().boxed(),
        3 => warpgroups().boxed(),
    ];
    let spec = (shape, values::<SgemmSpec>(GEOMETRY), 0..=2u32);
    spec.prop_filter_map("the spec cannot be repaired", move |((kind, shape), values, blocks)| {
        let mut spec = with(shape, &values);
        spec.blocks_per_sm = (blocks > 0).then_some(blocks);
        kind.others.iter().for_each(|key| spec.reset(key));
        let spec = repaired(spec, |spec| spec.plan().map(drop), suit)?;
        let plan = spec.plan().ok()?;
        (plan.threads() <= threads).then_some(spec)
    })
}

/// Random valid GEMM on tensor cores with at most `threads` threads per block.
pub fn on_tensor_cores(threads: u32) -> impl Strategy<Value = SgemmSpec> {
    let shape = prop_oneof![matrices().boxed(), warpgroups().boxed()];
    let spec = (shape, values::<SgemmSpec>(GEOMETRY));
    spec.prop_filter_map("the spec cannot be repaired", move |((kind, shape), values)| {
        let mut spec = with(shape, &values);
        kind.others.iter().for_each(|key| spec.reset(key));
        let spec = repaired(spec, |spec| spec.plan().map(drop), suit)?;
        let asks = spec.arith != Arith::F32;
        (asks && spec.plan().ok()?.threads() <= threads).then_some(spec)
    })
}

/// Random valid GEMM on matrices of any types, without operands and with at most `threads` threads
/// per block.
pub fn typed(threads: u32) -> impl Strategy<Value = SgemmSpec> {
    let columns = select(vec![8, 16, 48, 64, 96, 128, 192]);
    let rest = (columns, 1..=2u32, values::<SgemmSpec>(GEOMETRY));
    let on_tensor_cores = (warpgroups(), rest).prop_map(|((_, spec), (n, beside, values))| {
        let swapped = spec.swap_ab;
        let tile = spec.tile.map(|tile| match swapped {
            false => Tile { n: n * beside, ..tile },
            true => Tile { m: n, ..tile },
        });
        let mut spec = spec;
        spec.warp = (!swapped).then_some(Rect::new(16, n));
        spec.tile = tile;
        with(spec.copy(Copies::Tma), &values)
    });
    let spec = prop_oneof![3 => sgemm(threads), 2 => on_tensor_cores];
    let types = [(); 3].map(|()| select(MatrixType::ALL));
    (spec, types).prop_filter_map("the spec cannot be repaired", move |(mut spec, [a, b, c])| {
        let a = if a == MatrixType::I32 { MatrixType::I8 } else { a };
        let is_read = Arith::of_types(a, a).is_some();
        let a = if spec.is_wgmma() && !is_read { MatrixType::Bf16 } else { a };
        // The types of A and B differ if the instruction allows it.
        let b = Arith::of_types(a, b).map_or(a, |_| b);
        if let Some(arith) = Arith::of_types(a, b).filter(|_| spec.is_wgmma()) {
            spec = spec.copy(Copies::Tma).arith(arith);
            spec.batch = None;
            let bytes = a.elem().size();
            // Rows of B have at least 16 columns.
            if bytes == 1 || spec.warp.is_some_and(|warp| !warp.n.is_multiple_of(16)) {
                spec = spec.layout(GemmLayout::Nt);
            }
            if spec.swap_ab && spec.tile.is_some_and(|tile| !tile.m.is_multiple_of(16)) {
                spec = spec.layout(GemmLayout::Nt);
            }
            spec.tile = spec.tile.map(|tile| Tile { k: tile.k * 2 / bytes, ..tile });
            spec.promote = spec.promote.map(|promote| promote * 2 / bytes);
        }
        let c = match (a.elem().is_float(), c.elem()) {
            (true, c) if !c.is_float() => MatrixType::F32,
            (false, Elem::I8 | Elem::U8) => MatrixType::I32,
            _ => c,
        };
        let mut spec = spec.a(a).b(b).c(c).scaled(false);
        spec.epilogue = None;
        let spec = repaired(spec, |spec| spec.plan().map(drop), suit)?;
        (spec.plan().ok()?.threads() <= threads).then_some(spec)
    })
}

/// Such a GEMM on matrices of floats of at least 16 bits.
pub fn typed_floats(threads: u32) -> impl Strategy<Value = SgemmSpec> {
    typed(threads).prop_filter("8 bits or integers", |spec| {
        let types = [spec.a, spec.b, spec.c].map(|ty| ty.elem());
        types.iter().all(|elem| elem.is_float() && elem.size() > 1)
    })
}

#[derive(Clone, Copy, Debug)]
struct Kind {
    /// Keys outside of the geometry that would change the kind of the kernel.
    others: &'static [&'static str],
}

/// Kernels whose threads compute single sums, one after the other.
fn naive() -> impl Strategy<Value = (Kind, SgemmSpec)> {
    (1..=24u32, 1..=24u32, select(vec![Lanes::N, Lanes::M])).prop_map(|(rows, cols, lanes)| {
        let spec = SgemmSpec::default().block(Block::new(rows, cols)).lanes(lanes);
        (Kind { others: &["float4", "split_k"] }, spec)
    })
}

/// Kernels whose threads have tiles of C and read global memory directly.
fn direct() -> impl Strategy<Value = (Kind, SgemmSpec)> {
    let extent = || select(vec![1, 1, 2, 3, 4, 4, 5, 8]);
    let lanes = select(vec![Lanes::N, Lanes::M, Lanes::K, Lanes::K]);
    let block = (1..=9u32, 1..=9u32);
    (block, lanes, (extent(), extent()), select(vec![1, 1, 1, 2, 3, 4])).prop_map(
        |((rows, cols), lanes, (tm, tn), slices)| {
            let block = match lanes {
                Lanes::K => Block::new(rows.div_ceil(3), cols.div_ceil(4)),
                Lanes::N | Lanes::M => Block::new(rows, cols),
                lanes => newer_word(lanes),
            };
            let thread = Rect::new(tm, tn);
            let spec = SgemmSpec::default().block(block).lanes(lanes).thread(thread).slices(slices);
            (Kind { others: &[] }, spec)
        },
    )
}

/// Threads or lanes along each axis, and the number of warps.
#[derive(Clone, Copy, Debug)]
struct Grid {
    m: u32,
    n: u32,
    warps: Option<(u32, u32)>,
}

fn grid() -> impl Strategy<Value = Grid> {
    let threads = (1..=20u32, 1..=20u32).prop_map(|(m, n)| Grid { m, n, warps: None });
    let even = (0..=4u32, 0..=4u32).prop_map(|(m, n)| Grid { m: 1 << m, n: 1 << n, warps: None });
    let warps = (0..=5u32, 1..=2u32, 1..=2u32).prop_map(|(m, wm, wn)| Grid {
        m: 1 << m,
        n: 32 >> m,
        warps: Some((wm, wn)),
    });
    prop_oneof![1 => threads, 2 => even, 2 => warps]
}

/// Pipeline for the next tile.
#[derive(Clone, Copy, Debug)]
enum Pipeline {
    None,
    Prefetch,
    DoubleBuffer,
    Stages { stages: u32, spread: u32 },
}

impl Pipeline {
    fn of(self, spec: SgemmSpec) -> SgemmSpec {
        match self {
            Pipeline::None => spec,
            Pipeline::Prefetch => spec.prefetch(true),
            Pipeline::DoubleBuffer => spec.double_buffer(true),
            Pipeline::Stages { stages, spread } => spec.stages(stages).spread(spread),
        }
    }
}

fn pipeline() -> impl Strategy<Value = Pipeline> {
    let stages =
        (2..=5u32, 1..=8u32).prop_map(|(stages, spread)| Pipeline::Stages { stages, spread });
    let others = select(vec![Pipeline::None, Pipeline::Prefetch, Pipeline::DoubleBuffer]);
    prop_oneof![2 => others, 1 => stages]
}

fn tiled() -> impl Strategy<Value = (Kind, SgemmSpec)> {
    let extent = || select(vec![1, 2, 3, 4, 4, 4, 5, 8, 8]);
    let k = select(vec![1, 2, 3, 4, 5, 8, 8, 12, 16, 16, 20, 32]);
    let pad = || select(vec![0, 0, 0, 1, 2, 4, 4, 8]);
    let slices = select(vec![1, 1, 1, 2, 4]);
    let geometry = (grid(), extent(), extent(), k, slices);
    (geometry, (pad(), pad()), pipeline()).prop_map(
        |((grid, tm, tn, k, slices), (pad_a, pad_b), pipeline)| {
            let (wm, wn) = grid.warps.unwrap_or((1, 1));
            // Each slice has the same number of steps in a tile.
            let k = u32::next_multiple_of(k, slices);
            let mut spec = SgemmSpec::default()
                .tile(Tile::new(tm * grid.m * wm, tn * grid.n * wn, k))
                .thread(Rect::new(tm, tn))
                .slices(slices)
                .pad_a(pad_a)
                .pad_b(pad_b);
            if grid.warps.is_some() {
                spec = spec.warp(Rect::new(tm * grid.m, tn * grid.n));
            }
            (Kind { others: &["ldmatrix"] }, pipeline.of(spec))
        },
    )
}

/// Kernels whose warps use tensor cores.
fn matrices() -> impl Strategy<Value = (Kind, SgemmSpec)> {
    let by_lanes = Arith::ALL.iter().filter(|arith| arith.format().is_some() && !arith.is_scaled());
    let arith = select(by_lanes.copied().collect::<Vec<_>>());
    let warp = (select(vec![16, 32]), select(vec![8, 16, 24]));
    let warps = (1..=2u32, 1..=2u32, select(vec![1, 1, 1, 2, 3]));
    let steps = (1..=4u32, select(vec![0, 0, 1, 2]));
    let pad = || select(vec![0, 0, 1, 4, 8]);
    let staged = (pad(), pad(), select(vec![Convert::Fragment, Convert::Matrix]));
    (arith, warp, warps, steps, staged, pipeline()).prop_map(
        |(arith, (wm, wn), (m, n, slices), (steps, promote), (pad_a, pad_b, convert), pipeline)| {
            // Rows of converted tiles are aligned to 16 bytes.
            let whole = if convert == Convert::Matrix { 8 } else { 1 };
            let [pad_a, pad_b] = [pad_a, pad_b].map(|pad: u32| pad.next_multiple_of(whole));
            let terms = arith.format().map_or(1, |format| format.terms() as u32);
            let tile = Tile::new(wm * m, wn * n, terms * steps * slices);
            let mut spec = SgemmSpec::default()
                .tile(tile)
                .warp(Rect::new(wm, wn))
                .arith(arith)
                .slices(slices)
                .convert(convert)
                .pad_a(pad_a)
                .pad_b(pad_b);
            spec.promote = (promote > 0).then_some(terms * promote);
            let others: &[&str] = match convert {
                Convert::Fragment => &["thread", "partials", "order", "fragment", "unroll"],
                Convert::Matrix => {
                    &["thread", "partials", "order", "fragment", "unroll", "transpose", "ldmatrix"]
                }
                convert => newer_word(convert),
            };
            (Kind { others }, pipeline.of(spec))
        },
    )
}

/// Kernels whose warpgroups use tensor cores.
fn warpgroups() -> impl Strategy<Value = (Kind, SgemmSpec)> {
    let arith = select(
        Arith::ALL.iter().copied().filter(|arith| arith.format().is_some()).collect::<Vec<_>>(),
    );
    let tile = (1..=2u32, select(vec![8, 16, 24, 32]), 1..=2u32, select(vec![32, 64, 128]));
    let copies = (any::<bool>(), any::<bool>(), select(vec![None, Some(2), Some(3)]));
    let swap_ab = select(vec![false, false, true]);
    (arith, tile, copies, select(vec![0, 0, 1, 2]), swap_ab).prop_map(
        |(arith, (m, n, beside, bytes), (boxes, producer, stages), promote, swap_ab)| {
            let terms = arith.format().map_or(1, |format| format.terms() as u32);
            let k = bytes * terms / 32;
            let spec = match swap_ab {
                false => {
                    let tile = Tile::new(64 * m, n * beside, k);
                    SgemmSpec::default().tile(tile).warp(Rect::new(16, n))
                }
                true => SgemmSpec::default().tile(Tile::new(n, 64 * m, k)).swap_ab(true),
            };
            let spec = spec.arith(arith).mma(Instruction::Wgmma);
            let mut spec = match boxes {
                false => spec,
                true => spec.copy(Copies::Tma).producer(producer),
            };
            spec.stages = stages.filter(|_| boxes);
            spec.promote = (promote > 0).then_some(terms * promote);
            let others = &[
                "thread",
                "partials",
                "order",
                "fragment",
                "unroll",
                "transpose",
                "pad_a",
                "pad_b",
                "swizzle",
                "ldmatrix",
                "float4",
                "prefetch",
                "double_buffer",
                "spread",
                "slices",
                "stream_k",
            ];
            (Kind { others }, spec)
        },
    )
}

/// Resets a key. If the default would change the kind of the kernel, sets a value that is valid in
/// every spec.
fn suit(spec: &mut SgemmSpec, key: &str) {
    match (key, spec.tile) {
        ("tile", Some(t)) => spec.tile = Some(Tile::new(t.m, t.n.next_multiple_of(4), 4)),
        _ => spec.reset(key),
    }
}
