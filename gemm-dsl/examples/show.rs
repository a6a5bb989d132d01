//! Scratch: writes kernels with launch facts for a quick look on the GPU.
use gemm_dsl::spec::*;
use std::io::Write;
fn main() {
    let dir = std::env::args().nth(1).unwrap();
    let lines = std::io::read_to_string(std::io::stdin()).unwrap();
    let mut meta = std::fs::File::create(format!("{dir}/meta.txt")).unwrap();
    for (i, line) in lines.lines().filter(|l| !l.trim().is_empty()).enumerate() {
        let mut s = SgemmSpec::default();
        for part in line.split(',') {
            let (key, v) = part.split_once(':').unwrap_or((part, ""));
            let (key, v) = (key.trim(), v.trim());
            let d: Vec<u32> = v.split('x').filter_map(|x| x.parse().ok()).collect();
            s = match key {
                "tile" => s.tile(Tile::new(d[0], d[1], d[2])),
                "thread" => s.thread(Rect::new(d[0], d[1])),
                "warp" => s.warp(Rect::new(d[0], d[1])),
                "stages" => s.stages(d[0]),
                "spread" => s.spread(d[0]),
                "raster" => s.raster(d[0]),
                "pad_a" => s.pad_a(d[0]),
                "pad_b" => s.pad_b(d[0]),
                "unroll" => s.unroll(d[0]),
                "partials" => s.partials(d[0]),
                "coarsen" => s.coarsen(d[0]),
                "blocks_per_sm" => s.blocks_per_sm(d[0]),
                "float4" => s.float4(true),
                "transpose" => s.transpose(true),
                "prefetch" => s.prefetch(true),
                "double_buffer" => s.double_buffer(true),
                "pitched" => s.pitched(true),
                "lanes" => s.lanes(Lanes::M),
                "bounds" => s.bounds(Bounds::Aligned),
                "map" => s.map(if v == "split" { Map::Split } else { Map::Strided }),
                "order" => s.order(match v {
                    "row" => Order::Row,
                    "column" => Order::Column,
                    "row_serpentine" => Order::RowSerpentine,
                    _ => Order::ColumnSerpentine,
                }),
                k => panic!("{k}"),
            };
        }
        let plan = match s.plan() {
            Ok(p) => p,
            Err(e) => {
                eprintln!("{line}: {e}");
                continue;
            }
        };
        let p = gemm_dsl::lower::sgemm(&plan).unwrap();
        let k = &p.kernel;
        std::fs::write(format!("{dir}/{i:03}.cu"), gemm_dsl::cuda::source(k)).unwrap();
        let (bm, bn) = plan.block_tile();
        let dynamic = if k.shared_is_dynamic() { k.shared_bytes() } else { 0 };
        writeln!(
            meta,
            "{i:03}|{}|{bm}|{bn}|{}|{}|{dynamic}|{}|{line}",
            k.name, k.geometry.block.0, k.geometry.block.1, s.pitched as u8
        )
        .unwrap();
    }
}
