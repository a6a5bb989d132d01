//! Work of a rank, and its timing.

use gemm_bench::cli::Failure;
use gemm_bench::gpu::median;
use gemm_bench::scale::elements::{of_array, of_matrix};
use gemm_bench::scale::options::ScaleOptions;
use gemm_bench::scale::sums;
use gemm_bench::scale::sums::PredictedTimes;
use gemm_bench::scale::table::{MeasuredTimes, ScaleRow, layouts};
use gemm_runtime::{Buffer, Device, MatrixRef, ReduceKernel, ReduceSpec, SgemmKernel};
use gemm_world::{Distribution, Distributions, OnRank, Rank, Result, Sharded, Strategy};
use std::time::Instant;

/// Number of rows of C that are compared at a time.
const AT_ONCE: usize = 1024;

pub struct Kernels {
    product: SgemmKernel,
    sum: ReduceKernel,
    sum_spec: ReduceSpec,
}

impl Kernels {
    /// Creates the kernels of the options.
    pub fn from_options(options: &ScaleOptions) -> Result<Self, Failure> {
        let (product, sum) = (options.kernel()?, options.sum_kernel()?);
        Ok(Self { product, sum, sum_spec: options.sum_spec()? })
    }
}

/// Measures all requested GEMMs and sums.
pub fn all(
    options: &ScaleOptions,
    rank: &mut Rank,
    sizes: &[usize],
    sums: &[usize],
    kernels: &Kernels,
) -> Result<Vec<ScaleRow>> {
    let mut rows = Vec::new();
    for n in sizes {
        rows.push(product(options, rank, &kernels.product, *n)?);
    }
    for len in sums {
        rows.push(fold(options, rank, kernels, *len)?);
    }
    Ok(rows)
}

fn product(
    options: &ScaleOptions,
    rank: &mut Rank,
    kernel: &SgemmKernel,
    n: usize,
) -> Result<ScaleRow> {
    let Distributions { a: of_a, b: of_b, c: of_c } = layouts(n, rank.ranks(), options.weak);
    let load = |rank: &Rank, layout: &Distribution, seed: u64| {
        rank.load(layout, |block| Ok(of_matrix(options.seed.wrapping_add(seed), block)))
    };
    let (a, b) = (load(rank, &of_a, 1)?, load(rank, &of_b, 2)?);
    let whole = load(rank, &Distribution::whole(of_a.rows, of_a.cols), 1)?;
    let (mut c, mut alone) = (rank.alloc(&of_c)?, rank.alloc(&of_c)?);
    let device = rank.device().clone();
    let mut predicted = None;
    let rounds = options.rounds(device.is_simulator());
    // The baseline and the distributed run take turns, so that both run at the same clocks. The
    // first round is not counted, because it compiles and allocates.
    let mut compared = |rank: &mut Rank, way: Option<Strategy>| -> Result<[f64; 2]> {
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..=rounds {
            let own = timed(rank, &device, |_| {
                Ok(kernel.call(&device).launch(&whole, &b, &mut alone).map(drop)?)
            })?;
            let shared = timed(rank, &device, |rank| {
                let call = kernel.on(rank);
                let call = if let Some(way) = way { call.strategy(way) } else { call };
                let estimate = call.launch(&a, &b, &mut c)?.estimate;
                predicted =
                    Some(PredictedTimes { time: estimate.time, efficiency: estimate.efficiency() });
                Ok(())
            })?;
            if round > 0 {
                times.iter_mut().zip([own, shared]).for_each(|(all, one)| all.push(one));
            }
        }
        slowest(rank, times)
    };
    // The hidden share requires communication and real times. It has its own loop, because two
    // strategies in one loop would evict each other's memory. The run whose result is compared is
    // the last.
    let in_turn = if rank.ranks() > 1 && !device.is_simulator() {
        let [alone, in_turn] = compared(rank, Some(Strategy::Sequential))?;
        Some(in_turn / alone)
    } else {
        None
    };
    let [alone_ms, shared] = compared(rank, None)?;
    let is_right = same(&device, &c, &alone)?;
    let predicted = predicted
        .ok_or_else(|| gemm_runtime::Error::Internal("nothing was launched".to_owned()))?;
    let is_right = everywhere(rank, is_right)?;
    let in_turn = in_turn.map(|times| times * alone_ms);
    let measured = MeasuredTimes { alone: alone_ms, shared, in_turn };
    Ok(ScaleRow::product(rank, &of_c, of_a.cols, measured, predicted, is_right))
}

fn fold(
    options: &ScaleOptions,
    rank: &mut Rank,
    kernels: &Kernels,
    len: usize,
) -> Result<ScaleRow> {
    let (kernel, spec) = (&kernels.sum, &kernels.sum_spec);
    let layout: Distribution = format!("1x{len} cols/{}", spec.run.unwrap_or(1))
        .parse()
        .map_err(gemm_world::WorldError::from)?;
    let x = rank.load(&layout, |block| Ok(of_array(options.seed, block.cols.clone())))?;
    let device = rank.device().clone();
    // Rank 0 also has the whole array. Its own sum is the reference for the result and for the
    // time.
    let whole: Option<Buffer> = match rank.number() {
        0 => Some(device.upload(&of_array(options.seed, 0..len))?),
        _ => None,
    };
    let (mut alone, mut sum) = (device.alloc(1)?, device.alloc(1)?);
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..=options.rounds(device.is_simulator()) {
        let own = timed(rank, &device, |_| match &whole {
            Some(whole) => Ok(kernel.launch(&device, whole, &mut alone).map(drop)?),
            None => Ok(()),
        })?;
        let shared = timed(rank, &device, |rank| kernel.on(rank).launch(&x, &mut sum))?;
        if round > 0 {
            times.iter_mut().zip([own, shared]).for_each(|(all, one)| all.push(one));
        }
    }
    let bits = |of: &Buffer| -> Result<f64> { Ok(f64::from(device.download(of)?[0].to_bits())) };
    let found: Vec<f64> = told(rank, &[bits(&sum)?, bits(&alone)?])?;
    // Each rank sends two numbers: its result of the distributed sum, and the result of a single
    // device, which is valid on rank 0 only.
    let is_right = found.chunks_exact(2).all(|of_rank| of_rank[0] == found[1]);
    let [alone, shared] = slowest(rank, times)?;
    // The machine is the same as in the prediction of GEMMs.
    let ranks = rank.ranks();
    let predicted = sums::predicted(spec, len, ranks, rank.machine()).on(ranks);
    Ok(ScaleRow::sum(
        rank,
        len,
        MeasuredTimes { alone, shared, in_turn: None },
        predicted,
        is_right,
    ))
}

/// Returns the milliseconds of the work, from a barrier of all ranks until the device is done.
fn timed(
    rank: &mut Rank,
    device: &Device,
    work: impl FnOnce(&mut Rank) -> Result<()>,
) -> Result<f64> {
    // The first barrier wakes the ranks. After the second, all start within microseconds.
    rank.barrier()?;
    rank.barrier()?;
    let Some((_, stream)) = device.cudarc() else {
        let begin = Instant::now();
        work(rank)?;
        return Ok(begin.elapsed().as_secs_f64() * 1e3);
    };
    let event = || {
        let flags = Some(cudarc::driver::sys::CUevent_flags::CU_EVENT_DEFAULT);
        stream.record_event(flags).map_err(gemm_bench::gpu::failed("recording an event"))
    };
    let begin = event()?;
    work(rank)?;
    let end = event()?;
    device.synchronize()?;
    Ok(f64::from(gemm_runtime::internal::elapsed_ms(&begin, &end)?))
}

/// Returns true if two matrices have the same bits.
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

/// Returns the median over the rounds of the slowest rank's time, for each of the `N` measurements.
fn slowest<const N: usize>(rank: &mut Rank, times: [Vec<f64>; N]) -> Result<[f64; N]> {
    let mut medians = [0.0; N];
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

/// Returns the numbers of all ranks, in the order of ranks. Every rank receives them.
fn told(rank: &mut Rank, own: &[f64]) -> Result<Vec<f64>> {
    let layout = Distribution::cols(1, own.len() * rank.ranks());
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
