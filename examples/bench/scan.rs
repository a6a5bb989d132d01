//! Measures scans of arrays against plain copies of as many bytes. `peers/cub_scan.cu` measures
//! CUB's DeviceScan on the same lengths.
//!
//! ```text
//! cargo run --release -p gemm-bench --example scan                  2^20, 2^24 and 2^28 elements
//! cargo run --release -p gemm-bench --example scan -- --log2 28 --spec "block: 128, items: 8"
//! ```
//!
//! Each kernel runs in CUDA graphs of back-to-back launches. The exit code is 1 if a result is
//! wrong: sums of small integers, which are exact in every order.

use clap::Parser;
use gemm_bench::cli::{Failure, Outcome, device_label, exit, open_gpu};
use gemm_bench::gpu::{Gpu, Timer};
use gemm_bench::rows::graph::time;
use gemm_bench::table::{Table, number, text};
use gemm_runtime::Scan;
use std::io::{self, Write};
use std::process::ExitCode;

/// Measure scans of arrays against plain copies
#[derive(Debug, Parser)]
#[command(name = "scan")]
struct ScanOptions {
    /// Logarithms of the numbers of elements
    #[arg(long, value_delimiter = ',', default_values = ["20", "24", "28"],
        value_parser = clap::value_parser!(u32).range(0..=30))]
    log2: Vec<u32>,
    /// Specs of scans of arrays of `f32`
    #[arg(long, default_values = ["", "exclusive", "block: 128, items: 8", "block: 512, items: 2"])]
    spec: Vec<String>,
}

fn main() -> ExitCode {
    exit(run(&ScanOptions::parse()))
}

fn run(options: &ScanOptions) -> Result<Outcome, Failure> {
    let device = open_gpu()?;
    let gpu = Gpu::new(&device);
    let gpu = gpu.ok_or_else(|| Failure::Missing("kernels are timed on a GPU".to_owned()))?;
    let timer = Timer::new(gpu)?;
    let mut table = Table::new([
        text("spec"),
        number("log2 n"),
        number("us"),
        number("TB/s"),
        number("of copying"),
    ]);
    let mut is_right = true;
    for &log2 in &options.log2 {
        let n = 1_usize << log2;
        let values: Vec<f32> = (0..n).map(|i| if i % 64 == 0 { 1.0 } else { 0.0 }).collect();
        let x = device.upload(&values)?;
        let mut y = device.alloc(n)?;
        let copy = time(gpu, &timer, &mut || device.copy(&x, &mut y))?.us;
        for line in &options.spec {
            let scan = <Scan>::new(line.parse().map_err(gemm_runtime::Error::Spec)?)?;
            let mut launch = || scan.launch(&device, &x, &mut y).map(drop);
            launch()?;
            let us = time(gpu, &timer, &mut launch)?.us;
            is_right &= is_scan(&device.download(&y)?, line.contains("exclusive"));
            table.add([
                line.clone(),
                log2.to_string(),
                format!("{us:.1}"),
                format!("{:.2}", 8.0 * n as f64 / us / 1e6),
                format!("{:.3}", copy / us),
            ]);
        }
    }
    writeln!(io::stdout(), "{}\n{}", device_label(&device), table.text())?;
    Ok(if is_right { Outcome::Right } else { Outcome::Wrong })
}

/// Returns true if each element is the number of earlier multiples of 64.
fn is_scan(found: &[f32], exclusive: bool) -> bool {
    let ones = |i: usize| if exclusive { i.div_ceil(64) } else { i / 64 + 1 };
    // Above 2^24, not every integer is an `f32`.
    found.iter().enumerate().all(|(i, sum)| *sum == ones(i) as f32 || ones(i) > 1 << 24)
}
