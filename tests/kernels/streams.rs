//! Two threads launch concurrently, on separate streams or on one stream. Each gets its own
//! results.

use crate::{alone, equal_bits, on_gpu, own_gpu};
use gemm_dsl::spec::{Batch, SgemmSpec};
use gemm_dsl::stages;
use gemm_oracle::product::Size;
use gemm_oracle::{random, sharing};
use gemm_runtime::cudarc::driver::{CudaContext, CudaStream};
use gemm_runtime::{
    Buffer, ByName, Device, Error, MatrixMut, MatrixRef, ReduceKernel, Sgemm, reduce_kernel,
};
use libtest_mimic::{Failed, Trial};
use std::sync::{Arc, Barrier};

/// GEMMs with epilogue operands, with C read in place, in a batch, and with more shared memory than
/// the default limit. The tests add kernels with split-K and stream-K.
const LINES: [&str; 5] = [
    "tile: 64x64x8, thread: 4x4, float4, double_buffer",
    "tile: 32x64x16, thread: 4x4, stages: 3, epilogue: |acc, bias[n], slope| gelu(acc + bias) * \
     slope",
    "tile: 64x32x8, thread: 4x4, scaled",
    "tile: 16x16x16, thread: 2x4, float4, batch: strided",
    "block: 16x16, coarsen: 2, epilogue: |acc, scale[m], c[m, n]| acc * scale - c",
];

/// Reduction in several passes, which use the same scratch memory.
const SUM: ReduceKernel = reduce_kernel!(block: 64);

/// Size at which blocks that share tiles have few steps and start inside tiles.
const SIZE: Size = Size::new(160, 192, 208);
/// Batch size. Kernels without a batch use the first matrices.
const COUNT: usize = 3;
/// Launches of each kernel that a thread enqueues before it reads a result.
const LAUNCHES: usize = 12;

pub fn trials() -> Vec<Trial> {
    vec![
        on_gpu("streams::two_devices", || at_once([own_gpu()?, own_gpu()?])),
        on_gpu("streams::two_streams_of_a_context", || {
            at_once(of_a_context(|context| Ok([context.new_stream()?, context.new_stream()?]))?)
        }),
        on_gpu("streams::the_default_stream_and_another", || {
            at_once(of_a_context(|context| Ok([context.default_stream(), context.new_stream()?]))?)
        }),
        on_gpu("streams::one_device", || {
            let device = own_gpu()?;
            at_once([device.clone(), device])
        }),
    ]
}

/// Returns devices of one context, each on one of the given streams.
pub fn of_a_context(
    streams: impl FnOnce(&Arc<CudaContext>) -> Result<[Arc<CudaStream>; 2], Failed>,
) -> Result<[Device; 2], Failed> {
    let _alone = alone();
    let context = CudaContext::new(0)?;
    let [one, two] = streams(&context)?;
    Ok([Device::from_cudarc(context.clone(), one)?, Device::from_cudarc(context, two)?])
}

/// Kernels that both threads launch concurrently.
struct Work {
    kernels: Vec<(SgemmSpec, Sgemm<ByName>)>,
}

/// Operands of a thread, on its device.
struct Operands {
    a: Buffer,
    b: Buffer,
    vector: Buffer,
    c: Vec<f32>,
}

impl Operands {
    fn new(device: &Device, seed: u64) -> Result<Self, Error> {
        let Size { m, n, k } = SIZE;
        Ok(Self {
            a: device.upload(&random::values(seed, COUNT * m * k))?,
            b: device.upload(&random::values(seed + 1, COUNT * k * n))?,
            vector: device.upload(&random::values(seed + 2, m.max(n)))?,
            c: random::values(seed + 3, COUNT * m * n),
        })
    }
}

impl Work {
    fn new() -> Result<Self, Failed> {
        let fastest = stages::sgemm().into_iter().filter(|stage| stage.name == "fastest");
        let mut specs: Vec<SgemmSpec> = fastest.map(|stage| stage.spec).collect();
        for line in LINES.into_iter().chain(sharing::LINES.map(|(_, line)| line)) {
            specs.push(line.parse()?);
        }
        let kernels = specs.into_iter().map(|spec| Ok((spec.clone(), Sgemm::new(spec)?)));
        Ok(Self { kernels: kernels.collect::<Result<_, Error>>()? })
    }

    /// Buffers for the result of each kernel and for the sum of A, in the order of their launches,
    /// starting at kernel `first`.
    fn results(
        &self,
        device: &Device,
        operands: &Operands,
        first: usize,
    ) -> Result<Vec<(usize, Buffer)>, Error> {
        let count = self.kernels.len();
        let mut results = Vec::new();
        for number in (first..first + count).map(|number| number % count) {
            results.push((number, device.upload(&operands.c)?));
        }
        results.push((count, device.alloc(1)?));
        Ok(results)
    }

    /// Enqueues the launches on the device's stream without waiting.
    fn launch(
        &self,
        device: &Device,
        operands: &Operands,
        results: &mut [(usize, Buffer)],
    ) -> Result<(), Error> {
        let Size { m, n, k } = SIZE;
        let Operands { a, b, vector, .. } = operands;
        for (number, result) in results {
            let Some((spec, kernel)) = self.kernels.get(*number) else {
                SUM.launch(device, a, result)?;
                continue;
            };
            let mut call = kernel.call(device);
            for operand in spec.operands() {
                call = match &*operand.name {
                    "bias" | "scale" => call.operand(&operand.name, vector),
                    name => call.operand(name, 0.75),
                };
            }
            match spec.batch {
                Some(Batch::Strided) => call.launch(
                    &MatrixRef::batch(a, COUNT, m, k)?,
                    &MatrixRef::batch(b, COUNT, k, n)?,
                    &mut MatrixMut::batch(result, COUNT, m, n)?,
                ),
                _ => call.launch(
                    &MatrixRef::new(a, m, k)?,
                    &MatrixRef::new(b, k, n)?,
                    &mut MatrixMut::new(result, m, n)?,
                ),
            }?;
        }
        Ok(())
    }
}

/// Both devices run the same kernels concurrently, including the first launches, which compile. The
/// second device starts with another kernel, so that different kernels also overlap.
fn at_once(devices: [Device; 2]) -> Result<(), Failed> {
    let work = Work::new()?;
    // The expected results are computed without concurrent work.
    let quiet = own_gpu()?;
    let mut expected = Vec::new();
    for seed in [10, 20] {
        let operands = Operands::new(&quiet, seed)?;
        let mut results = work.results(&quiet, &operands, 0)?;
        work.launch(&quiet, &operands, &mut results)?;
        let results = results.iter().map(|(_, buffer)| quiet.download(buffer));
        expected.push(results.collect::<Result<Vec<_>, _>>()?);
    }
    let start = Barrier::new(devices.len());
    std::thread::scope(|scope| {
        let threads: Vec<_> = devices
            .iter()
            .zip([10, 20])
            .zip(&expected)
            .enumerate()
            .map(|(thread, ((device, seed), expected))| {
                let (work, start) = (&work, &start);
                scope.spawn(move || -> Result<(), Failed> {
                    let prepared = Operands::new(device, seed).and_then(|operands| {
                        let count = work.kernels.len();
                        let first = |round| thread * count / 2 + round * thread;
                        let mut results = Vec::new();
                        for round in 0..LAUNCHES {
                            results.extend(work.results(device, &operands, first(round))?);
                        }
                        Ok((results, operands))
                    });
                    // This line is reached even after an error, because the other thread waits at
                    // the barrier.
                    start.wait();
                    let (mut written, operands) = prepared?;
                    work.launch(device, &operands, &mut written)?;
                    for (number, buffer) in &written {
                        let found = device.download(buffer)?;
                        let what = format!("thread {thread}, kernel {number}");
                        let (found, alone) =
                            (("at once", &found[..]), ("alone", &expected[*number][..]));
                        equal_bits(&what, found, alone)?;
                    }
                    Ok(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
    })
}
