//! Scratch.
use gemm_dsl::spec::*;
use std::io::Write;
fn main() {
    let dir = std::env::args().nth(1).unwrap();
    let lines = std::io::read_to_string(std::io::stdin()).unwrap();
    let mut meta = std::fs::File::create(format!("{dir}/meta.txt")).unwrap();
    for (i, line) in lines.lines().filter(|l| !l.trim().is_empty()).enumerate() {
        let s: SgemmSpec = match line.parse() { Ok(p) => p, Err(e) => { eprintln!("{line}: {e}"); continue } };
        let plan = s.plan().unwrap();
        let p = gemm_dsl::lower::sgemm(&plan).unwrap();
        let k = &p.kernel;
        std::fs::write(format!("{dir}/{i:03}.cu"), gemm_dsl::cuda::source(k)).unwrap();
        let (bm, bn) = plan.block_tile();
        let dynamic = if k.shared_is_dynamic() { k.shared_bytes() } else { 0 };
        writeln!(meta, "{i:03}|{}|{bm}|{bn}|{}|{}|{dynamic}|{}|{line}", k.name, k.geometry.block.0, k.geometry.block.1, s.pitched as u8).unwrap();
    }
}
