//! Catalogue of kernels in two ladders, reductions and GEMMs, each from the simplest kernel to the
//! fastest. The spec of a stage is the spec of its base stage with some keys changed. Each stage
//! shows one technique; other changed keys only keep the kernel within its registers.

pub mod pinned;

use crate::spec::{
    Arith, Batch, Block, Convert, Copies, Epilogue, Fragment, GemmLayout, Instruction, Lanes,
    LaunchForm, Op, Order, Over, Rect, ReduceSpec, SgemmSpec, SplitK, Tile, Tree,
};

/// Step of a ladder: a named technique, and the kernel that shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stage<S> {
    pub index: u32,
    pub name: &'static str,
    /// Number of the base stage; `None` for the defaults.
    pub base: Option<u32>,
    pub spec: S,
}

impl<S> Stage<S> {
    /// Returns the base name of the stage's files, for example `04_unroll_last_warp`.
    pub fn stem(&self) -> String {
        format!("{:02}_{}", self.index, self.name)
    }
}

struct Ladder<S>(Vec<Stage<S>>);

impl<S: Clone + Default> Ladder<S> {
    /// Adds a stage that changes the defaults, and returns its spec.
    fn start(&mut self, index: u32, name: &'static str, change: impl FnOnce(S) -> S) -> Base<S> {
        self.push(index, name, None, change(S::default()))
    }

    /// Adds a stage that changes an earlier one, and returns its spec.
    fn step(
        &mut self,
        base: &Base<S>,
        index: u32,
        name: &'static str,
        change: impl FnOnce(S) -> S,
    ) -> Base<S> {
        self.push(index, name, Some(base.index), change(base.spec.clone()))
    }

    fn push(&mut self, index: u32, name: &'static str, base: Option<u32>, spec: S) -> Base<S> {
        self.0.push(Stage { index, name, base, spec: spec.clone() });
        Base { index, spec }
    }
}

/// Stage on which later stages are based.
struct Base<S> {
    index: u32,
    spec: S,
}

/// Reductions, simplest first. The first stages reduce a whole array, after M. Harris, "Optimizing
/// Parallel Reduction in CUDA" (2007), and then do so in one launch. The last stages reduce rows
/// and columns.
pub fn reduce() -> Vec<Stage<ReduceSpec>> {
    let mut ladder = Ladder(Vec::new());
    ladder.start(0, "interleaved_divergent", |s: ReduceSpec| s.tree(Tree::InterleavedDivergent));
    ladder.start(1, "interleaved", |s| s.tree(Tree::Interleaved));
    let sequential = ladder.start(2, "sequential", |s| s);
    let items = ladder.step(&sequential, 3, "items", |s| s.items(2));
    ladder.step(&items, 4, "unroll_last_warp", |s| s.unroll_last_warp(true));
    let shuffle = ladder.step(&items, 5, "shuffle", |s| s.shuffle(true));
    let ticket = ladder.step(&shuffle, 6, "ticket", |s| s.launch(LaunchForm::Once));
    // At 2^28 elements on an H200, two blocks of 512 threads per SM reach 0.99 of the speed of
    // plain reads. Each thread has four 16-byte loads in flight.
    ladder.step(&ticket, 7, "grid_stride", |s| s.block(512).items(4).float4(true).blocks(264));
    let rows = ladder.start(8, "rows", |s: ReduceSpec| {
        s.over(Over::Rows).block(128).group(32).items(4).float4(true)
    });
    ladder.start(9, "columns", |s: ReduceSpec| {
        s.over(Over::Columns)
            .group(16)
            .items(8)
            .float4(true)
            .blocks(8)
            .launch(LaunchForm::Once)
            .blocks_per_sm(1)
    });
    ladder.step(&rows, 10, "online", |s| s.op(Op::Logsumexp).group(16).blocks_per_sm(1));
    ladder.0
}

/// GEMMs, simplest first.
pub fn sgemm() -> Vec<Stage<SgemmSpec>> {
    let mut ladder = Ladder(Vec::new());
    shared_tiles(&mut ladder);
    register_tiles(&mut ladder);
    pipelines(&mut ladder);
    tensor_cores(&mut ladder);
    ladder.0
}

/// Stages 1 to 12: from one element per thread to tiles in shared memory.
///
/// In both ladders, a stage sets `blocks_per_sm: 1` if that makes it more than 0.5 % faster on an
/// H200. The compiler then uses more registers, so fewer blocks are resident.
fn shared_tiles(ladder: &mut Ladder<SgemmSpec>) {
    let block = Block::new(16, 16);
    ladder.start(1, "naive_uncoalesced", |s: SgemmSpec| s.block(block).lanes(Lanes::M));
    let naive = ladder.start(2, "naive", |s| s.block(block));
    ladder.step(&naive, 3, "unroll", |s| s.unroll(4));
    ladder.step(&naive, 4, "coarsen", |s| s.coarsen(4).blocks_per_sm(1));

    let shared = ladder.start(5, "shared_tile", |s| s.tile(Tile::new(32, 32, 32)));
    let wide_k = ladder.step(&shared, 6, "shared_tile_k", |s| s.tile(Tile::new(16, 16, 64)));
    ladder.step(&wide_k, 7, "thread_strided", |s| {
        s.tile(Tile::new(64, 64, 32))
            .thread(Rect::new(4, 4))
            .fragment(Fragment::Strided)
            .blocks_per_sm(1)
    });
    ladder.step(&shared, 8, "private_row", |s| {
        s.tile(Tile::new(16, 64, 16)).thread(Rect::new(1, 4)).fragment(Fragment::Strided)
    });
    ladder.step(&shared, 9, "register_tile_padded", |s| s.thread(Rect::new(8, 8)).pad_a(1));
    ladder.step(&shared, 10, "padded_prefetch", |s| {
        s.pad_a(1).pad_b(1).prefetch(true).unroll(4).partials(4)
    });
    let float4 = ladder.step(&shared, 11, "float4", |s| s.thread(Rect::new(1, 4)).float4(true));
    // Its scalar variant spills without `blocks_per_sm: 1`.
    ladder.step(&float4, 12, "outer_product", |s| {
        s.tile(Tile::new(64, 64, 16)).thread(Rect::new(4, 4)).blocks_per_sm(1)
    });
}

/// Stages 13 to 20: block tiles of 128x128 with thread tiles of 8x8.
fn register_tiles(ladder: &mut Ladder<SgemmSpec>) {
    let block_128 = ladder.start(13, "block_128", |s| {
        s.tile(Tile::new(128, 128, 8)).thread(Rect::new(8, 8)).blocks_per_sm(1)
    });
    let vectors = ladder.step(&block_128, 14, "block_128_float4", |s| s.float4(true));
    let transpose = ladder.step(&vectors, 15, "transpose", |s| s.transpose(true));
    let split = ladder.step(&transpose, 16, "split_fragment", |s| s.fragment(Fragment::Split));
    // With the registers that hold the next tile, the compiler would allow one resident block
    // instead of two, so `blocks_per_sm` demands two. Two blocks leave a thread 128 registers. No
    // single `order` keeps stages 17, 19 and 20 within 128 on sm_80, sm_90 and sm_100.
    let buffered = ladder.step(&split, 17, "double_buffer", |s| {
        s.double_buffer(true).blocks_per_sm(2).order(Order::RowSerpentine)
    });
    ladder.step(&buffered, 18, "guarded_scalar", |s| s.float4(false));
    let column = |s: SgemmSpec| s.order(Order::Column);
    ladder.step(&buffered, 19, "pitched", |s| column(s.pitched(true)));
    ladder.step(&buffered, 20, "warp_tile", |s| column(s.warp(Rect::new(64, 32))));
}

/// Stages 21 to 32: asynchronous copies, and techniques that build on them.
fn pipelines(ladder: &mut Ladder<SgemmSpec>) {
    ladder.start(21, "async_pipeline", |s| {
        s.tile(Tile::new(128, 128, 16))
            .thread(Rect::new(8, 8))
            .warp(Rect::new(32, 64))
            .float4(true)
            .fragment(Fragment::Split)
            .transpose(true)
            .pad_a(4)
            .stages(4)
            .blocks_per_sm(2)
    });
    let fastest = ladder.start(22, "fastest", |s| {
        s.tile(Tile::new(128, 256, 16))
            .thread(Rect::new(8, 16))
            .warp(Rect::new(32, 128))
            .float4(true)
            .fragment(Fragment::Split)
            .transpose(true)
            .pad_a(4)
            .stages(3)
            .spread(6)
            .raster(8)
            .stage_c(true)
            .order(Order::ColumnSerpentine)
    });
    let one = |s: SgemmSpec| s.blocks_per_sm(1);
    // A matrix that is contiguous along M or N is not transposed, so its copies are 16 bytes wide
    // and its shared rows need no padding. A and B are then copied alike, and the taller tile is
    // faster: 1.056 times the speed of cuBLAS at 4096 on an H200.
    ladder.step(&fastest, 23, "layout_tn", |s| {
        one(s)
            .layout(GemmLayout::Tn)
            .transpose(false)
            .pad_a(0)
            .tile(Tile::new(256, 128, 16))
            .thread(Rect::new(16, 8))
            .warp(Rect::new(128, 32))
            .stages(5)
            .order(Order::RowSerpentine)
    });
    // Copies transpose both matrices. `tune` found this spec: 1.026 times the speed of cuBLAS at
    // 4096 on an H200.
    ladder.step(&fastest, 24, "layout_nt", |s| {
        s.layout(GemmLayout::Nt)
            .tile(Tile::new(256, 128, 16))
            .pad_b(12)
            .stages(3)
            .spread(12)
            .raster(16)
    });
    // At 4096 on an H200, `tune` measured 2.595 ms for this spec, 2.600 ms with three stages and
    // `stage_c`, and 2.617 ms with all keys of stage 22.
    ladder
        .step(&fastest, 25, "scaled", |s| one(s).scaled(true).stages(5).spread(10).stage_c(false));
    ladder.step(&fastest, 26, "batched", |s| one(s).batch(Batch::Strided));
    let epilogue = |text: &str| match text.parse::<Epilogue>() {
        Ok(epilogue) => epilogue,
        Err(faults) => unreachable!("a test plans every spec of the catalogue: {faults}"),
    };
    // The fastest specs that `tune` found at 4096 on an H200. With their epilogues they take 0.951
    // and 0.971 times as long as a plain cuBLAS GEMM.
    let relu = epilogue("|acc, bias[n]| relu(acc + bias)");
    ladder.step(&fastest, 27, "epilogue_bias_relu", |s| one(s).epilogue(relu).stages(5).spread(11));
    let gelu = epilogue("|acc, bias[n], residual[m, n]| gelu(acc + bias) + residual");
    ladder.step(&fastest, 28, "epilogue_gelu_residual", |s| {
        one(s).epilogue(gelu).stages(3).spread(8).warp(Rect::new(64, 64))
    });
    split_sums(ladder, &fastest);
}

/// Stages 29 to 32: several threads or blocks share the sum of an element of C.
fn split_sums(ladder: &mut Ladder<SgemmSpec>, fastest: &Base<SgemmSpec>) {
    // Eight warps with four rows each; each lane keeps eight 16-byte loads of A in flight.
    ladder.start(29, "matrix_vector", |s: SgemmSpec| {
        s.block(Block::new(8, 1))
            .lanes(Lanes::K)
            .thread(Rect::new(4, 1))
            .float4(true)
            .unroll(2)
            .blocks_per_sm(1)
    });
    // For a small C: eight groups of 16 threads take the steps of K in turn.
    let slices = ladder.start(30, "slices", |s: SgemmSpec| {
        s.tile(Tile::new(16, 16, 64))
            .thread(Rect::new(4, 4))
            .float4(true)
            .transpose(true)
            .pad_a(4)
            .stages(3)
            .slices(8)
            .blocks_per_sm(4)
    });
    ladder.step(&slices, 31, "split_k", |s| s.split_k(SplitK::Auto));
    ladder.step(fastest, 32, "stream_k", |s| s.blocks_per_sm(1).stream_k(true));
}

/// Stages 33 to 45: tensor cores.
fn tensor_cores(ladder: &mut Ladder<SgemmSpec>) {
    // Reads of K-major fragments are free of bank conflicts if consecutive rows are offset by four
    // banks. Reads of N-major fragments need an offset of eight banks.
    let mma = ladder.start(33, "mma_sync", |s| {
        s.tile(Tile::new(128, 256, 32))
            .warp(Rect::new(64, 64))
            .arith(Arith::Bf16)
            .float4(true)
            .pad_a(4)
            .pad_b(8)
    });
    let loaded = ladder.step(&mma, 34, "ldmatrix", |s| s.ldmatrix(true).swizzle(true).pad_a(0));
    ladder.step(&loaded, 35, "mma_ring", |s| s.stages(2).raster(8).blocks_per_sm(1));
    // Threads split the numbers in registers, so only smaller tiles fit. `tune` found this tile on
    // an H200.
    ladder.step(&mma, 36, "mma_bf16x6", |s| {
        s.arith(Arith::Bf16x6)
            .tile(Tile::new(64, 128, 16))
            .warp(Rect::new(64, 32))
            .stages(2)
            .raster(8)
            .blocks_per_sm(1)
    });
    // Warpgroups multiply splits that an earlier launch computes: one split for bf16, three for
    // bf16x6. A block has two warpgroups of 64 rows each.
    let wgmma = ladder.start(37, "wgmma", |s| {
        s.tile(Tile::new(128, 128, 64)).arith(Arith::Bf16).mma(Instruction::Wgmma).float4(true)
    });
    let tma = ladder.step(&wgmma, 38, "tma", |s| s.copy(Copies::Tma).stages(4));
    let roles = ladder.step(&tma, 39, "warp_specialised", |s| {
        s.tile(Tile::new(128, 256, 64)).producer(true).raster(16)
    });
    let persistent = ladder.step(&roles, 40, "persistent", |s| s.persistent(true));
    let splits = ladder.step(&persistent, 41, "wgmma_bf16x6", |s| {
        s.tile(Tile::new(128, 128, 64)).stages(2).raster(8).arith(Arith::Bf16x6)
    });
    ladder.step(&splits, 42, "wgmma_f16x3", |s| s.stages(3).arith(Arith::F16x3));
    ladder.step(&persistent, 43, "cluster_multicast", |s| s.cluster(2));
    // `mma.sync` on converted matrices. Tiles of bf16 take half of the shared memory, and converted
    // values take no registers. Two blocks of these tiles are therefore resident.
    let converted = ladder.step(&loaded, 44, "mma_converted", |s| {
        s.convert(Convert::Matrix)
            .tile(Tile::new(128, 128, 32))
            .ldmatrix(false)
            .pad_b(0)
            .stages(3)
            .raster(8)
    });
    // Two blocks are resident: a block with these smaller tiles keeps all fragments and
    // accumulators in registers.
    ladder.step(&converted, 45, "mma_converted_bf16x6", |s| {
        s.arith(Arith::Bf16x6)
            .tile(Tile::new(128, 64, 32))
            .warp(Rect::new(64, 32))
            .stages(2)
            .blocks_per_sm(2)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{BlockFold, KernelKind, Pipeline, Pointers, Walk};

    #[test]
    fn every_stage_plans_and_is_printed_back() {
        for stage in reduce() {
            stage.spec.plan().unwrap_or_else(|e| panic!("{}: {e}", stage.name));
            assert_eq!(stage.spec.to_string().parse(), Ok(stage.spec));
        }
        for stage in sgemm() {
            stage.spec.plan().unwrap_or_else(|e| panic!("{}: {e}", stage.name));
            assert_eq!(stage.spec.to_string().parse(), Ok(stage.spec));
        }
    }

    #[test]
    fn the_ladders_are_numbered_in_order() {
        assert!(reduce().iter().map(|stage| stage.index).eq(0..=10));
        assert!(sgemm().iter().map(|stage| stage.index).eq(1..=45));
        for stage in sgemm() {
            assert!(stage.base.is_none_or(|base| base < stage.index));
        }
    }

    #[test]
    fn kernel_names_are_distinct_identifiers() {
        let mut names: Vec<String> = reduce().iter().map(|s| s.spec.kernel_name()).collect();
        names.extend(sgemm().iter().map(|s| s.spec.kernel_name()));
        assert!(names.iter().all(|name| crate::ir::is_identifier(name)));
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 56);
    }

    #[test]
    fn reductions_take_in_what_the_catalogue_says() {
        let plans: Vec<_> = reduce().iter().take(6).filter_map(|s| s.spec.plan().ok()).collect();
        let elements: Vec<u64> = plans.iter().map(|plan| plan.elements_per_block()).collect();
        assert_eq!(elements, [256, 256, 256, 512, 512, 512]);
        let folds: Vec<BlockFold> = plans.iter().map(|plan| plan.block_fold()).collect();
        use BlockFold::{Shuffle, Tree, UnrolledWarp};
        assert_eq!(folds, [Tree, Tree, Tree, Tree, UnrolledWarp, Shuffle]);
    }

    #[test]
    fn products_have_the_geometry_of_the_catalogue() {
        let geometry: Vec<(u32, u64)> = sgemm()
            .iter()
            .filter_map(|stage| stage.spec.plan().ok())
            .map(|plan| (plan.threads(), plan.shared_bytes()))
            .collect();
        let kib = 1024;
        let expected = [
            (256, 0),
            (256, 0),
            (256, 0),
            (256, 0),
            (1024, 8 * kib),
            (256, 8 * kib),
            (256, 16 * kib),
            (256, 5 * kib),
            (16, 4 * (32 * 33 + 32 * 32)),
            (1024, 4 * 2 * 32 * 33),
            (256, 8 * kib),
            (256, 8 * kib),
            (256, 8 * kib),
            (256, 8 * kib),
            (256, 8 * kib),
            (256, 8 * kib),
            (256, 16 * kib),
            (256, 16 * kib),
            (256, 16 * kib),
            (256, 16 * kib),
            (256, 4 * 4 * 16 * (132 + 128)),
            (256, 4 * 3 * 16 * (132 + 256) + 16 * kib),
            (256, 4 * 5 * 16 * (256 + 128) + 16 * kib),
            (256, 4 * 3 * 16 * (260 + 140) + 16 * kib),
            (256, 4 * 5 * 16 * (132 + 256)),
            (256, 4 * 3 * 16 * (132 + 256) + 16 * kib),
            (256, 4 * 5 * 16 * (132 + 256) + 16 * kib),
            (256, 4 * 3 * 16 * (132 + 256) + 16 * kib),
            (256, 0),
            (128, 4 * 3 * 64 * (20 + 16) + 4 * 7 * 16 * 16),
            (128, 4 * 3 * 64 * (20 + 16) + 16 + 4 * 16 * 16 + 4 * 7 * 16 * 16),
            (256, 4 * 3 * 16 * (132 + 256) + 16 + 16 * kib),
            (256, 4 * (128 * 36 + 32 * 264)),
            (256, 4 * (128 * 32 + 32 * 264)),
            (256, 4 * 2 * (128 * 32 + 32 * 264)),
            (128, 4 * 2 * (64 * 20 + 16 * 136)),
            (256, 2 * 64 * (128 + 128)),
            (256, 2 * 4 * 64 * (128 + 128) + 8 * 4),
            (384, 2 * 4 * 64 * (128 + 256) + 2 * 8 * 4),
            (384, 2 * 4 * 64 * (128 + 256) + 2 * 8 * 4),
            (384, 2 * 2 * 3 * 64 * (128 + 128) + 2 * 8 * 2),
            (384, 2 * 3 * 2 * 64 * (128 + 128) + 32 + 24),
            (384, 2 * 4 * 64 * (128 + 256) + 2 * 8 * 4),
            (128, 2 * 3 * 32 * (128 + 128)),
            (128, 2 * 2 * 3 * 32 * (128 + 64)),
        ];
        assert_eq!(geometry, expected);
    }

    #[test]
    fn the_fastest_stage_widens_what_its_layout_allows() {
        let stages = sgemm();
        let fastest = stages.iter().find(|stage| stage.name == "fastest");
        let Some(plan) = fastest.and_then(|stage| stage.spec.plan().ok()) else {
            panic!("the fastest stage has a plan");
        };
        let KernelKind::Tiled(tiled) = plan.kind() else {
            panic!("the fastest stage has a tile");
        };
        let (a, b) = (tiled.a(), tiled.b());
        // Transposing asynchronous copies are 4 bytes wide.
        assert_eq!((a.width(), a.store_width(), a.fragment_width(), a.runs()), (1, 1, 4, 8));
        assert_eq!((b.width(), b.store_width(), b.fragment_width(), b.runs()), (4, 4, 4, 4));
        assert_eq!(
            (a.walk(), a.pointers()),
            (Walk::Groups { step: 32, passes: 4 }, Pointers::PerPass)
        );
        assert_eq!((b.walk(), b.pointers()), (Walk::Lines { step: 4 }, Pointers::One));
        assert_eq!(tiled.epilogue().width(), 4);
        assert_eq!(tiled.pipeline(), Pipeline::Async { stages: 3, spread: 6 });
        assert_eq!(tiled.epilogue().staged_rows(), 1);
        let warp = tiled.warp().map(|w| (w.lanes_m(), w.lanes_n(), w.warps_m(), w.warps_n()));
        assert_eq!(warp, Some((4, 8, 4, 2)));

        let scalar = plan.scalar_variant().map(|plan| *plan.kind());
        let Some(KernelKind::Tiled(scalar)) = scalar else {
            panic!("a guarded kernel with vectors has a scalar variant");
        };
        assert_eq!((scalar.b().width(), scalar.epilogue().width()), (1, 1));
        assert_eq!((scalar.b().fragment_width(), scalar.b().runs()), (4, 16));
    }

    /// M-major and N-major operands are copied in 16-byte vectors; K-major operands are transposed.
    #[test]
    fn a_layout_decides_how_copies_travel() {
        let wide = |layout: &str, name: &str| {
            let stages = sgemm();
            let stage = stages.iter().find(|stage| stage.name == name);
            let mut spec = stage.map(|stage| stage.spec.clone()).unwrap_or_default();
            assert_eq!(spec.layout.to_string(), layout);
            if layout == "nt" {
                spec.layout = GemmLayout::Tt;
            }
            let plans = [spec.plan(), spec.clone().layout(GemmLayout::Nn).plan()];
            plans.map(|plan| match plan.map(|plan| *plan.kind()) {
                Ok(KernelKind::Tiled(t)) => [t.a(), t.b()].map(|o| (o.width(), o.walk())),
                other => panic!("{other:?}"),
            })
        };
        let lines = |step| (4, Walk::Lines { step });
        let groups = |passes| (1, Walk::Groups { step: 32, passes });
        // Without `transpose` A is K-major in its tile, too.
        assert_eq!(wide("tn", "layout_tn"), [[lines(4), lines(8)], [lines(64), lines(8)]]);
        assert_eq!(wide("nt", "layout_nt"), [[lines(4), groups(4)], [groups(8), lines(8)]]);
    }
}
