//! Predicts the load of each spec's launches. `examples/bench/peers/times.py` builds the test data
//! of the time model from this output.
//!
//! An input line is a size and a GEMM spec, or a size, the word `reduce` and a reduction spec. An
//! output line is a JSON object.

use gemm_bench::cli::{Failure, Outcome, exit};
use gemm_bench::predict::{LaunchCounts, counts, reduction};
use gemm_bench::report::write_line;
use gemm_dsl::spec::{ReduceSpec, SgemmSpec};
use gemm_oracle::product::Size;
use gemm_runtime::Error;
use rayon::prelude::*;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Number of SMs of the device with pinned times.
const SMS: u32 = 132;

fn main() -> ExitCode {
    exit(run())
}

fn run() -> Result<Outcome, Failure> {
    let lines: Result<Vec<String>, _> = std::io::stdin().lines().collect();
    let lines = lines.map_err(|error| Failure::Usage(error.to_string()))?;
    let counted: Vec<Result<Value, Failure>> = lines.par_iter().map(|line| record(line)).collect();
    for line in counted {
        write_line(&mut std::io::stdout().lock(), &line?)?;
    }
    Ok(Outcome::Right)
}

fn record(line: &str) -> Result<Value, Failure> {
    let usage = || Failure::Usage(format!("`{line}` is not a size and a spec"));
    let (size, spec) = line.split_once(' ').ok_or_else(usage)?;
    let n: usize = size.parse().map_err(|_| usage())?;
    let launches = match spec.strip_prefix("reduce ") {
        Some(spec) => {
            let spec: ReduceSpec = spec.parse().map_err(Error::from)?;
            reduction::passes(&spec, n)?.unwrap_or_default()
        }
        None => {
            let spec: SgemmSpec = spec.parse().map_err(Error::from)?;
            counts::product(&spec, Size::square(n), SMS)?
        }
    };
    let launches: Vec<Value> = launches.iter().map(object).collect();
    Ok(json!({"n": n, "spec": spec, "launches": launches}))
}

fn object(counted: &LaunchCounts) -> Value {
    let l = &counted.launch;
    let (w, r) = (&l.work, &l.reads);
    json!({
        "kernel": counted.kernel, "blocks": l.blocks, "threads": l.threads,
        "shared_bytes": l.shared_bytes,
        "instructions": w.instructions, "fma": w.fma, "mma": w.mma, "mma_flops": w.mma_flops,
        "wgmma_flops": w.wgmma_flops, "shared_wavefronts": w.shared_wavefronts,
        "shared_load_bytes": w.shared_load_bytes, "lines": w.lines, "sectors": w.sectors,
        "rounds": l.waits.rounds, "ahead": l.waits.ahead, "barriers": l.waits.barriers,
        "code": l.waits.code,
        "parts": l.waits.parts, "part_bytes": l.waits.part_bytes,
        "tile_rows": r.tiles[0], "tile_cols": r.tiles[1], "strip_a": r.strips[0],
        "strip_b": r.strips[1],
        "raster": r.raster, "once": r.once,
    })
}
