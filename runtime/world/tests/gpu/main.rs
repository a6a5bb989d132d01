//! Worlds of GPUs return the same bits as simulated worlds. If there are too few GPUs, one GPU
//! serves several ranks: it copies from itself, and the required ordering is the same.

#[path = "../../../tests/common/mod.rs"]
mod common;
#[path = "../world/sampling.rs"]
mod sampling;

use common::{Outcome, Prerequisite, ensure};
use fastrand::Rng;
use gemm_runtime::{Device, ReduceKernel, SgemmKernel, SgemmSpec};
use gemm_world::{Distribution, OnRank, Rank, Sharded, TransportKind, World};
use libtest_mimic::Arguments;
use std::process::ExitCode;

const LINES: [&str; 6] = [
    "tile: 32x32x8, thread: 4x4, pitched",
    "tile: 64x64x8, thread: 8x8, double_buffer, pitched",
    "tile: 64x64x16, thread: 8x8, stages: 3, float4, pitched",
    "tile: 64x64x8, thread: 8x8, split_k: 3, pitched",
    "tile: 128x64x32, arith: bf16x6, mma: wgmma, pitched",
    "tile: 128x64x32, arith: f16x3, mma: wgmma, pitched",
];

fn main() -> ExitCode {
    let gpu = Prerequisite::gpu();
    let trial = |name: &str, test| gpu.trial(name, test);
    let trials = vec![
        trial("ranks_that_fetch_from_one_another_have_the_simulators_bits", peers),
        trial("ranks_that_speak_through_the_host_have_the_simulators_bits", host),
        #[cfg(feature = "nccl")]
        trial("ranks_that_nccl_connects_have_the_simulators_bits", nccl),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Devices of the ranks: all GPUs of the machine in turn.
fn devices(ranks: usize) -> gemm_world::Result<Vec<Device>> {
    let there = (0..).take_while(|ordinal| Device::cuda(*ordinal).is_ok()).count();
    (0..ranks).map(|rank| Ok(Device::cuda(rank % there.max(1))?)).collect()
}

fn peers() -> Outcome {
    products(Some(TransportKind::Peers), &[1, 2, 3, 4], 21)?;
    by_terms(Some(TransportKind::Peers), &[1, 2, 3, 4], 31)?;
    reductions(Some(TransportKind::Peers), &[1, 2, 3, 4])
}

fn host() -> Outcome {
    products(Some(TransportKind::Host), &[1, 2, 3], 22)?;
    by_terms(Some(TransportKind::Host), &[1, 2, 3], 32)?;
    reductions(Some(TransportKind::Host), &[1, 2, 3])
}

/// With one GPU: one rank, or two if NCCL may share a GPU between ranks.
#[cfg(feature = "nccl")]
fn nccl() -> Outcome {
    use gemm_world::{Error, WorldError};
    if !gemm_world::__private::nccl::multicast_is_off() {
        return Err("set NCCL_NVLS_ENABLE=0: multicast can put a host's GPUs out of service".into());
    }
    let there = (0..).take_while(|ordinal| Device::cuda(*ordinal).is_ok()).count();
    let shared = std::env::var("NCCL_MULTI_RANK_GPU_ENABLE").is_ok_and(|value| value == "1");
    let ranks: Vec<usize> = (1..=if shared { 2 * there } else { there }).collect();
    products(Some(TransportKind::Nccl), &ranks, 23)?;
    by_terms(Some(TransportKind::Nccl), &ranks, 33)?;
    reductions(Some(TransportKind::Nccl), &ranks)?;
    if !shared {
        let twice =
            World::with_transport(vec![Device::cuda(0)?, Device::cuda(0)?], TransportKind::Nccl);
        let is_told = matches!(twice, Err(Error::World(WorldError::Shared { .. })));
        ensure(is_told, || "one GPU was two ranks of NCCL".to_owned())?;
    }
    Ok(())
}

fn products(carry: Option<TransportKind>, all_ranks: &[usize], seed: u64) -> Outcome {
    let mut rng = Rng::with_seed(seed);
    for round in 0..48 {
        let spec = sampling::with_layout(&mut rng, LINES[round % LINES.len()]);
        let ranks = all_ranks[rng.usize(0..all_ranks.len())];
        let [m, n, k] = [0; 3].map(|_| sampling::extent(&mut rng, 300));
        let mut a = sampling::numbers(&mut rng, m * k);
        if rng.bool() {
            a.iter_mut().for_each(|value| *value = value.clamp(0.25, 4.0));
        }
        let b = sampling::numbers(&mut rng, k * n);
        let [a, b] = sampling::transposition(spec.layout, &a, &b, (m, n, k));
        let [of_a, of_b, of_c] = sampling::distributions(&mut rng, spec.layout, (m, n, k), ranks);
        let strategy = sampling::strategy(&mut rng);
        let drawn = Drawn { spec, extents: (m, n, k), ranks, distributions: [of_a, of_b, of_c] };
        same_bits(carry, &drawn, [&a, &b], &format!("{strategy:?}"), |rank, kernel, [a, b], c| {
            let call = kernel.on(rank);
            let call = if let Some(strategy) = strategy { call.strategy(strategy) } else { call };
            call.launch(a, b, c).map(drop)
        })?;
    }
    Ok(())
}

/// Split-K GEMMs with few elements.
fn by_terms(carry: Option<TransportKind>, all_ranks: &[usize], seed: u64) -> Outcome {
    const LINES: [&str; 3] = [
        "tile: 32x32x8, thread: 4x4, split_k: 4, pitched",
        "tile: 64x64x8, thread: 8x8, double_buffer, split_k: 7, pitched",
        "tile: 64x64x16, thread: 8x8, stages: 3, float4, split_k: 3, pitched",
    ];
    let mut rng = Rng::with_seed(seed);
    for round in 0..24 {
        let spec = sampling::with_layout(&mut rng, LINES[round % LINES.len()]);
        let ranks = all_ranks[rng.usize(0..all_ranks.len())];
        let [m, n, k] = [100, 100, 2000].map(|most| sampling::extent(&mut rng, most));
        let (a, b) = (sampling::numbers(&mut rng, m * k), sampling::numbers(&mut rng, k * n));
        let [a, b] = sampling::transposition(spec.layout, &a, &b, (m, n, k));
        let [of_a, of_b] = sampling::terms(&mut rng, &spec, (m, n, k), ranks);
        let of_c = sampling::distribution(&mut rng, m, n, ranks);
        let drawn = Drawn { spec, extents: (m, n, k), ranks, distributions: [of_a, of_b, of_c] };
        same_bits(carry, &drawn, [&a, &b], "by terms", |rank, kernel, [a, b], c| {
            kernel.on(rank).launch_split_k(a, b, c)
        })?;
    }
    Ok(())
}

/// Random GEMM on ranks.
struct Drawn {
    spec: SgemmSpec,
    extents: (usize, usize, usize),
    ranks: usize,
    /// Distributions of stored A and B, and of C.
    distributions: [Distribution; 3],
}

/// Multiplies several times in a row, reusing buffers, and compares the bits with the simulator's.
fn same_bits(
    carry: Option<TransportKind>,
    drawn: &Drawn,
    [a, b]: [&[f32]; 2],
    how: &str,
    multiply: impl Fn(
        &mut Rank,
        &SgemmKernel,
        [&Sharded; 2],
        &mut Sharded,
    ) -> Result<(), gemm_world::Error>
    + Sync,
) -> Outcome {
    let Drawn { spec, extents: (m, n, k), ranks, distributions: [of_a, of_b, of_c] } = drawn;
    let kernel = SgemmKernel::new(spec.clone())?;
    let found = world(carry, *ranks)?.run(|rank| {
        let (a, b) = (rank.upload(of_a, a)?, rank.upload(of_b, b)?);
        let mut found = None;
        for _ in 0..3 {
            let mut c = rank.upload(of_c, &vec![f32::NAN; m * n])?;
            multiply(rank, &kernel, [&a, &b], &mut c)?;
            found = rank.gather(&c, 0)?;
        }
        Ok(found)
    })?;
    let expected = kernel.run(&Device::simulator(), a, b, (*m, *n, *k))?;
    let found = found.into_iter().next().flatten().unwrap_or_default();
    ensure(are_same(&found, &expected), || {
        format!(
            "{spec}, {m}x{n}x{k}, {ranks} ranks, A {of_a}, B {of_b}, C {of_c}, {how}: other bits"
        )
    })
}

/// World of `ranks` ranks with a transport.
fn world(carry: Option<TransportKind>, ranks: usize) -> gemm_world::Result<World> {
    let devices = devices(ranks)?;
    match carry {
        Some(carry) => World::with_transport(devices, carry),
        None => World::new(devices),
    }
}

/// Returns true if all values have the same bits. NaN bits may differ, since they depend on the
/// hardware.
fn are_same(found: &[f32], expected: &[f32]) -> bool {
    let same = |(found, expected): (&f32, &f32)| {
        found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan())
    };
    found.len() == expected.len() && found.iter().zip(expected).all(same)
}

fn reductions(carry: Option<TransportKind>, all_ranks: &[usize]) -> Outcome {
    let mut rng = Rng::with_seed(7);
    let sum = <ReduceKernel>::new("block: 256, float4, items: 2, shuffle, run: 4096".parse()?)?;
    let arg = ReduceKernel::<f32, u32>::new("op: argmax, block: 128, run: 1024".parse()?)?;
    let moments =
        ReduceKernel::<f32, (f32, f32)>::new("op: mean_var, block: 128, run: 1024".parse()?)?;
    for ranks in all_ranks {
        let len = rng.usize(1..200_000);
        let x: Vec<f32> = (0..len).map(|_| rng.f32() - 0.25).collect();
        let distribution: Distribution = format!("1x{len} cols/4096").parse()?;
        let found = world(carry, *ranks)?.run(|rank| {
            let x = rank.upload(&distribution, &x)?;
            Ok((sum.on(rank).run(&x)?, arg.on(rank).run(&x)?, moments.on(rank).run(&x)?))
        })?;
        let device = Device::simulator();
        let expected = (sum.run(&device, &x)?, arg.run(&device, &x)?, moments.run(&device, &x)?);
        let is_same = found.iter().all(|found| *found == expected);
        ensure(is_same, || format!("{len} elements, {ranks} ranks: {found:?}, not {expected:?}"))?;
    }
    Ok(())
}
