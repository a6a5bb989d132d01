//! Prints a few kernels.
use gemm_dsl::spec::*;
fn main() {
    let d = SgemmSpec::default();
    let t = |m, n, k| d.clone().tile(Tile::new(m, n, k));
    let r = Rect::new;
    let b128 = t(128, 128, 8).thread(r(8, 8));
    let db = b128.clone().float4(true).transpose(true).map(Map::Split).double_buffer(true);
    let specs: Vec<(u32, SgemmSpec)> = vec![
        (1, d.clone().lanes(Lanes::M)),
        (2, d.clone()),
        (3, d.clone().unroll(4)),
        (4, d.clone().coarsen(4)),
        (5, t(32, 32, 32)),
        (6, t(16, 16, 64)),
        (7, t(64, 64, 32).thread(r(4, 4)).map(Map::Strided)),
        (8, t(16, 64, 16).thread(r(1, 4)).map(Map::Strided)),
        (9, t(32, 32, 32).thread(r(8, 8)).pad_a(1)),
        (10, t(32, 32, 32).pad_a(1).pad_b(1).prefetch(true).unroll(4).partials(4)),
        (11, t(32, 32, 32).thread(r(1, 4)).float4(true)),
        (12, t(64, 64, 16).thread(r(4, 4)).float4(true)),
        (13, b128.clone()),
        (14, b128.clone().float4(true)),
        (15, b128.clone().float4(true).transpose(true)),
        (16, b128.clone().float4(true).transpose(true).map(Map::Split)),
        (17, db.clone()),
        (18, db.clone().float4(false)),
        (19, db.clone().pitched(true)),
        (20, db.clone().warp(r(64, 32))),
        (
            21,
            t(128, 128, 16)
                .thread(r(8, 8))
                .warp(r(32, 64))
                .float4(true)
                .map(Map::Split)
                .transpose(true)
                .pad_a(4)
                .stages(4)
                .blocks_per_sm(2),
        ),
        (
            22,
            t(128, 256, 16)
                .thread(r(8, 16))
                .warp(r(64, 64))
                .float4(true)
                .map(Map::Split)
                .transpose(true)
                .pad_a(4)
                .stages(4)
                .spread(8)
                .raster(8)
                .order(Order::ColumnSerpentine),
        ),
        (
            23,
            t(128, 256, 16)
                .thread(r(8, 16))
                .warp(r(64, 64))
                .float4(true)
                .map(Map::Split)
                .transpose(true)
                .pad_a(4)
                .stages(4)
                .spread(8)
                .raster(8)
                .order(Order::ColumnSerpentine)
                .bounds(Bounds::Aligned),
        ),
    ];
    for (i, s) in specs {
        match gemm_dsl::lower::sgemm(&s.plan().unwrap()) {
            Ok(p) => {
                std::fs::write(format!("/tmp/sg{i:02}.cu"), gemm_dsl::cuda::source(&p.kernel))
                    .unwrap();
                if let Some(f) = p.fallback {
                    std::fs::write(format!("/tmp/sg{i:02}s.cu"), gemm_dsl::cuda::source(&f))
                        .unwrap();
                }
            }
            Err(e) => println!("{i}: {e}"),
        }
    }
}
