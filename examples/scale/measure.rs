//! What a rank does, and how long it takes.

use crate::options::Options;
use crate::table::{Row, layouts};
use gemm_examples::data;
use gemm_examples::gpu::median;
use gemm_runtime::world::{Block, Layout, Layouts, Rank, Sharded};
use gemm_runtime::{Device, Error, MatrixRef, ReduceKernel, Result, SgemmKernel};
use std::time::Instant;

/// Rows of a part of C that are compared at once.
const AT_ONCE: usize = 1024;

/// All products and sums that are asked for.
pub fn all(
    options: &Options,
    rank: &mut Rank,
    (kernel, sum): &(SgemmKernel, ReduceKernel),
) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for n in options.sizes() {
        rows.push(product(options, rank, kernel, n)?);
    }
    for len in options.sums() {
        rows.push(fold(options, rank, sum, len)?);
    }
    Ok(rows)
}

/// The elements of a block, which are the same whoever asks for them: each row has a seed of its own.
fn elements(seed: u64, block: &Block) -> Vec<f32> {
    let row = |row: usize| {
        let seed = seed.wrapping_mul(1_000_003).wrapping_add(row as u64);
        let all = data::uniform(seed, block.cols.end, -1.0, 1.0);
        all[block.cols.clone()].to_vec()
    };
    block.rows.clone().flat_map(row).collect()
}

fn product(options: &Options, rank: &mut Rank, kernel: &SgemmKernel, n: usize) -> Result<Row> {
    let Layouts { a: of_a, b: of_b, c: of_c } = layouts(n, rank.ranks(), options.weak);
    let load = |rank: &Rank, layout: &Layout, seed: u64| {
        rank.load(layout, |block| Ok(elements(options.seed + seed, block)))
    };
    let (a, b) = (load(rank, &of_a, 1)?, load(rank, &of_b, 2)?);
    let whole = load(rank, &Layout::whole(of_a.rows, of_a.cols), 1)?;
    let (mut c, mut alone) = (rank.alloc(&of_c)?, rank.alloc(&of_c)?);
    let device = rank.device().clone();
    let mut predicted = None;
    let mut all = [Vec::new(), Vec::new()];
    let rounds = if device.is_simulator() { 1 } else { options.rounds.max(1) };
    // The first round compiles, and is not counted.
    for round in 0..=rounds {
        let own = timed(rank, &device, |_| {
            kernel.call(&device).launch(&whole, &b, &mut alone).map(drop)
        })?;
        let shared = timed(rank, &device, |rank| {
            predicted = Some(kernel.on(rank).launch(&a, &b, &mut c)?.estimate.efficiency());
            Ok(())
        })?;
        if round > 0 {
            all[0].push(own);
            all[1].push(shared);
        }
    }
    let is_right = same(&device, &c, &alone)?;
    let [own, shared] = slowest(rank, all)?;
    let predicted = predicted.ok_or_else(|| Error::Internal("nothing was launched".to_owned()))?;
    let is_right = everywhere(rank, is_right)?;
    Ok(Row::product(rank, &of_c, of_a.cols, [own, shared], predicted, is_right))
}

fn fold(options: &Options, rank: &mut Rank, kernel: &ReduceKernel, len: usize) -> Result<Row> {
    let run = kernel.spec_line().parse::<gemm_runtime::ReduceSpec>()?.run.unwrap_or(1);
    let layout: Layout =
        format!("1x{len} cols/{run}").parse().map_err(gemm_runtime::world::WorldError::from)?;
    let x = rank.load(&layout, |block| {
        Ok(data::uniform(options.seed + block.cols.start as u64, block.len(), 0.0, 1.0))
    })?;
    let device = rank.device().clone();
    let mut own = device.alloc(1)?;
    let mut all = [Vec::new(), Vec::new()];
    let mut sum = device.alloc(1)?;
    let rounds = if device.is_simulator() { 1 } else { options.rounds.max(1) };
    for round in 0..=rounds {
        let alone = timed(rank, &device, |_| kernel.launch(&device, &x, &mut own).map(drop))?;
        let shared = timed(rank, &device, |rank| kernel.on(rank).launch(&x, &mut sum))?;
        if round > 0 {
            all[0].push(alone);
            all[1].push(shared);
        }
    }
    // All ranks have the same, and the sum of what each would make alone comes near it.
    let found = device.download(&sum)?[0];
    let parts = rank.device().download(&own)?[0];
    let near = everywhere_sum(rank, f64::from(parts))?;
    let is_right = (f64::from(found) - near).abs() <= 1e-3 * near.abs().max(1.0);
    let is_right = everywhere(rank, is_right)?;
    let times = slowest(rank, all)?;
    Ok(Row::sum(rank, len, times, is_right))
}

/// Milliseconds of something on all ranks, from where all have come to until the device is done.
fn timed(
    rank: &mut Rank,
    device: &Device,
    work: impl FnOnce(&mut Rank) -> Result<()>,
) -> Result<f64> {
    rank.barrier()?;
    let Some((_, stream)) = device.cudarc() else {
        let begin = Instant::now();
        work(rank)?;
        return Ok(begin.elapsed().as_secs_f64() * 1e3);
    };
    let event = || {
        let flags = Some(cudarc::driver::sys::CUevent_flags::CU_EVENT_DEFAULT);
        stream.record_event(flags).map_err(gemm_examples::gpu::failed("recording an event"))
    };
    let begin = event()?;
    work(rank)?;
    let end = event()?;
    device.synchronize()?;
    let ms = begin.elapsed_ms(&end).map_err(gemm_examples::gpu::failed("reading an event"))?;
    Ok(f64::from(ms))
}

/// Whether two matrices have the same bits.
fn same(device: &Device, one: &Sharded, other: &Sharded) -> Result<bool> {
    let (rows, cols) = (one.matrix().rows(), one.matrix().cols());
    for from in (0..rows).step_by(AT_ONCE) {
        let bits = |of: &Sharded| -> Result<Vec<u32>> {
            let part: MatrixRef<'_> = of.view().part(from..rows.min(from + AT_ONCE), 0..cols)?;
            Ok(device.download(&part)?.iter().map(|value| value.to_bits()).collect())
        };
        if bits(one)? != bits(other)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The medians over the rounds, of each the time of the slowest rank.
fn slowest(rank: &mut Rank, times: [Vec<f64>; 2]) -> Result<[f64; 2]> {
    let mut medians = [0.0; 2];
    for (median_of, own) in medians.iter_mut().zip(times) {
        let all = told(rank, &own)?;
        let rounds = own.len();
        let mut slowest: Vec<f64> = (0..rounds)
            .map(|round| (0..rank.ranks()).map(|of| all[of * rounds + round]).fold(0.0, f64::max))
            .collect();
        *median_of = median(&mut slowest);
    }
    Ok(medians)
}

/// What all ranks say, one after the other, at every rank.
fn told(rank: &mut Rank, own: &[f64]) -> Result<Vec<f64>> {
    let layout = Layout::cols(1, own.len() * rank.ranks());
    let part = rank.load(&layout, |_| Ok(own.to_vec()))?;
    let mut all = Vec::new();
    for at in 0..rank.ranks() {
        if let Some(found) = rank.gather(&part, at)? {
            all = found;
        }
    }
    Ok(all)
}

fn everywhere(rank: &mut Rank, is_so: bool) -> Result<bool> {
    Ok(told(rank, &[f64::from(u8::from(is_so))])?.iter().all(|told| *told == 1.0))
}

fn everywhere_sum(rank: &mut Rank, own: f64) -> Result<f64> {
    Ok(told(rank, &[own])?.iter().sum())
}
