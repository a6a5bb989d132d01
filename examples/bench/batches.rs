//! Measures batches along two axes and groups of rows against the same work in packed matrices.
//!
//! ```text
//! cargo run --release -p gemm-bench --example batches
//! cargo run --release -p gemm-bench --example batches -- --groups 64 --rows 65536 --k 4096
//! ```
//!
//! Heads: Q·Kᵀ and P·V of attention, of tensors as they are stored, `[B, T, H, D]`, and of packed
//! copies, `[B, H, T, D]`. Groups: rows in groups whose sizes follow a power law, each with a B of
//! its own, and one GEMM of as many rows. Both run in turns. All elements are small integers, so
//! that sums are exact: the exit code is 1 if a result is wrong.

use clap::Parser;
use gemm_bench::cli::{Failure, Outcome, count, device_label, exit, open_gpu};
use gemm_bench::gpu::{Gpu, Timer};
use gemm_bench::table::{Table, number, text};
use gemm_runtime::spec::{Batch, SgemmSpec};
use gemm_runtime::{Buffer, Device, Error, MatrixMut, MatrixRef, SgemmKernel, sgemm};
use std::io::{self, Write};
use std::process::ExitCode;

const ROUNDS: usize = 21;

/// Measure batches along two axes and groups of rows
#[derive(Debug, Parser)]
#[command(name = "batches")]
struct BatchOptions {
    /// Sequences
    #[arg(long, value_parser = count, default_value = "4")]
    batch: usize,
    /// Tokens of a sequence
    #[arg(long, value_delimiter = ',', value_parser = count, default_values = ["512", "2048"])]
    tokens: Vec<usize>,
    /// Heads
    #[arg(long, value_parser = count, default_value = "16")]
    heads: usize,
    /// Elements of a head
    #[arg(long, value_parser = count, default_value = "128")]
    dim: usize,
    /// Groups of rows
    #[arg(long, value_parser = count, default_value = "128")]
    groups: usize,
    /// Rows of the smallest group
    #[arg(long, value_parser = count, default_value = "256")]
    least: usize,
    /// Rows of all groups, about
    #[arg(long, value_delimiter = ',', value_parser = count, default_values = ["65536", "131072"])]
    rows: Vec<usize>,
    /// Columns of C
    #[arg(long, value_parser = count, default_value = "4096")]
    n: usize,
    /// Columns of A
    #[arg(long, value_parser = count, default_value = "1024")]
    k: usize,
    /// Spec of the GEMMs with groups, and of the single GEMM, in place of those of `sgemm`
    #[arg(long)]
    spec: Option<SgemmSpec>,
}

/// Times of two forms of the same work.
struct Row {
    what: String,
    size: String,
    flops: f64,
    /// Milliseconds of the form under test, and of the packed form.
    times: [f64; 2],
    is_right: bool,
}

fn main() -> ExitCode {
    exit(run(&BatchOptions::parse()))
}

fn run(options: &BatchOptions) -> Result<Outcome, Failure> {
    let device = open_gpu()?;
    let gpu = Gpu::new(&device);
    let gpu = gpu.ok_or_else(|| Failure::Missing("kernels are timed on a GPU".to_owned()))?;
    let timer = Timer::new(gpu)?;
    let mut rows = Vec::new();
    for &tokens in &options.tokens {
        rows.extend(heads(&device, &timer, options, tokens)?);
    }
    for &all in &options.rows {
        rows.push(groups(&device, &timer, options, all)?);
    }
    let columns = ["ms", "packed ms", "TFLOP/s", "of packed"].map(number);
    let mut table = Table::new([text("work"), text("size")].into_iter().chain(columns));
    for row in &rows {
        let [time, packed] = row.times;
        table.add([
            row.what.clone(),
            row.size.clone(),
            format!("{time:.3}"),
            format!("{packed:.3}"),
            format!("{:.1}", row.flops / time / 1e9),
            format!("{:.3}", packed / time),
        ]);
    }
    writeln!(io::stdout(), "{}\n{}", device_label(&device), table.text())?;
    for row in rows.iter().filter(|row| !row.is_right) {
        eprintln!("error: {} of {} has a wrong result", row.what, row.size);
    }
    let is_right = rows.iter().all(|row| row.is_right);
    Ok(if is_right { Outcome::Right } else { Outcome::Wrong })
}

/// Small integers, the same for each seed.
fn integers(device: &Device, len: usize, seed: u32) -> Result<Buffer, Error> {
    let mut state = seed.wrapping_mul(2_654_435_761).max(1);
    let elements: Vec<f32> = (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (state % 4) as f32
        })
        .collect();
    device.upload(&elements)
}

/// Q·Kᵀ and P·V.
fn heads(
    device: &Device,
    timer: &Timer<'_>,
    options: &BatchOptions,
    t: usize,
) -> Result<[Row; 2], Failure> {
    let BatchOptions { batch: b, heads: h, dim: d, .. } = *options;
    let (axes, all) = ([(b, t * h * d), (h, d)], b * h);
    let stored = [1, 2].map(|seed| integers(device, all * t * d, seed));
    let [q, k] = stored;
    let (q, k) = (q?, k?);
    let of = |buffer| MatrixRef::batch_axes(buffer, axes, t, d, h * d);
    let (q_heads, k_heads) = (of(&q)?, of(&k)?);
    let mut packed = [device.alloc(all * t * d)?, device.alloc(all * t * d)?];
    for (to, from) in packed.iter_mut().zip([&q_heads, &k_heads]) {
        let in_turn = [(b, h * t * d), (h, t * d)];
        device.copy(from, &mut MatrixMut::batch_axes(to, in_turn, t, d, d)?)?;
    }
    let q_packed = MatrixRef::batch(&packed[0], all, t, d)?;
    let k_packed = MatrixRef::batch(&packed[1], all, t, d)?;
    let [mut s, mut s_packed] = [device.alloc(all * t * t)?, device.alloc(all * t * t)?];
    let (k_t, k_packed_t) = (k_heads.t(), k_packed.t());
    let scores = timer.medians(
        ROUNDS,
        &mut [
            &mut || {
                let mut to = MatrixMut::batch(&mut s, all, t, t)?;
                sgemm(&q_heads, &k_t, &mut to).run(device).map(drop)
            },
            &mut || {
                let mut to = MatrixMut::batch(&mut s_packed, all, t, t)?;
                sgemm(&q_packed, &k_packed_t, &mut to).run(device).map(drop)
            },
        ],
    )?;
    let is_right = device.download(&s)? == device.download(&s_packed)?;
    let size = format!("{b}x{h} heads, {t} tokens, {d}");
    let flops = 2.0 * (all * t * t) as f64 * d as f64;
    let row = |what: &str, times: &[f64], is_right| Row {
        what: what.to_owned(),
        size: size.clone(),
        flops,
        times: [times[0], times[1]],
        is_right,
    };
    let scores = row("Q·Kᵀ", &scores, is_right);
    // Exact sums need small elements.
    let p = integers(device, all * t * t, 3)?;
    let p = MatrixRef::batch(&p, all, t, t)?;
    let [mut y, mut y_packed] = [device.alloc(all * t * d)?, device.alloc(all * t * d)?];
    let values = timer.medians(
        ROUNDS,
        &mut [
            &mut || {
                let mut to = MatrixMut::batch_axes(&mut y, axes, t, d, h * d)?;
                sgemm(&p, &k_heads, &mut to).run(device).map(drop)
            },
            &mut || {
                let mut to = MatrixMut::batch(&mut y_packed, all, t, d)?;
                sgemm(&p, &k_packed, &mut to).run(device).map(drop)
            },
        ],
    )?;
    let stored = device.download(&of(&y)?)?;
    Ok([scores, row("P·V", &values, stored == device.download(&y_packed)?)])
}

/// First row of each group, then the row after the last one. The sizes follow a power law.
fn offsets(options: &BatchOptions, rows: usize) -> Vec<u32> {
    let weights: Vec<f64> = (1..=options.groups).map(|n| 1.0 / n as f64).collect();
    let free = rows.saturating_sub(options.groups * options.least) as f64;
    let all: f64 = weights.iter().sum();
    // Large groups lie between small ones, and few sizes are multiples of a tile.
    let size = |n: usize| options.least + (free * weights[n * 37 % options.groups] / all) as usize;
    let mut found = vec![0];
    for n in 0..options.groups {
        found.push(found[n] + size(n) as u32);
    }
    found
}

/// Rows in groups.
fn groups(
    device: &Device,
    timer: &Timer<'_>,
    options: &BatchOptions,
    rows: usize,
) -> Result<Row, Failure> {
    let BatchOptions { n, k, groups, .. } = *options;
    let ends = offsets(options, rows);
    let m = *ends.last().unwrap_or(&0) as usize;
    let (a, b) = (integers(device, m * k, 1)?, integers(device, groups * k * n, 2)?);
    let on_device = device.upload_of(&ends)?;
    let (a, all) = (MatrixRef::new(&a, m, k)?, MatrixRef::batch(&b, groups, k, n)?);
    let one = MatrixRef::new(&b, k, n)?;
    let (mut c, mut c_one) = (device.alloc_matrix(m, n)?, device.alloc_matrix(m, n)?);
    let kernels = options.spec.clone().map(|spec| {
        let grouped = SgemmKernel::new(spec.clone().batch(Batch::Grouped))?;
        Ok::<_, Error>((grouped, SgemmKernel::new(spec)?))
    });
    let kernels = kernels.transpose()?;
    let times = timer.medians(
        ROUNDS,
        &mut [
            &mut || match &kernels {
                None => sgemm(&a, &all, &mut c).groups(&on_device).run(device).map(drop),
                Some((kernel, _)) => {
                    kernel.call(device).groups(&on_device).launch(&a, &all, &mut c).map(drop)
                }
            },
            &mut || match &kernels {
                None => sgemm(&a, &one, &mut c_one).run(device).map(drop),
                Some((_, kernel)) => kernel.call(device).launch(&a, &one, &mut c_one).map(drop),
            },
        ],
    )?;
    let mut is_right = true;
    for group in (0..groups).step_by(1 + groups / 8) {
        let (first, end) = (ends[group] as usize, ends[group + 1] as usize);
        let of_group = b.slice(group * k * n..(group + 1) * k * n)?;
        let of_group = MatrixRef::new(&of_group, k, n)?;
        let mut alone = device.alloc_matrix(end - first, n)?;
        sgemm(&a.part(first..end, 0..k)?, &of_group, &mut alone).run(device)?;
        is_right &= device.download(&c.part(first..end, 0..n)?)? == device.download(&alone)?;
    }
    Ok(Row {
        what: "groups".to_owned(),
        size: format!("{groups} groups, {m}x{n}x{k}"),
        flops: 2.0 * (m * n) as f64 * k as f64,
        times: [times[0], times[1]],
        is_right,
    })
}
