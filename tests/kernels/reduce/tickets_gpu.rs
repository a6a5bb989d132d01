//! Single-launch reductions on several concurrent streams and in CUDA graphs. At each launch the
//! tickets are zero.

use crate::capture::captured;
use crate::streams::of_a_context;
use crate::{equal_bits, on_gpu, own_gpu};
use gemm_dsl::spec::{LaunchForm, ReduceSpec};
use gemm_oracle::random;
use gemm_runtime::bounds::Vector;
use gemm_runtime::{Buffer, Device, Error, MatrixRef, ReduceKernel};
use gemm_tests::simulator;
use libtest_mimic::{Failed, Trial};
use std::sync::Barrier;

/// Kernels with tickets: spec, rows and columns of the input, and number of results.
const LINES: [(&str, [usize; 2], usize); 3] = [
    ("block: 128, items: 2, float4, blocks: 24, launch: once", [1, LEN], 1),
    ("op: logsumexp, over: rows, block: 128, group: 128, blocks: 5, launch: once", [3, LEN / 3], 3),
    ("over: columns, group: 8, blocks: 6, launch: once", [LEN / 64, 64], 64),
];

/// Elements of an input.
const LEN: usize = 3 << 14;
/// Inputs per thread.
const INPUTS: usize = 4;
/// Launches of each kernel per thread.
const LAUNCHES: usize = 1000;
const REPLAYS: u64 = 100;

pub fn trials() -> Vec<Trial> {
    vec![
        on_gpu("reduce_tickets::two_streams_of_a_context", || {
            at_once(of_a_context(|context| Ok([context.new_stream()?, context.new_stream()?]))?)
        }),
        on_gpu("reduce_tickets::two_devices", || at_once([own_gpu()?, own_gpu()?])),
        on_gpu("reduce_tickets::two_threads_of_a_device", || {
            let device = own_gpu()?;
            at_once([device.clone(), device])
        }),
        on_gpu("reduce_tickets::graph", graph),
    ]
}

/// Kernel, with the rows and columns of the matrix that it reads.
struct Kernel {
    line: &'static str,
    kernel: ReduceKernel,
    rows: usize,
    cols: usize,
    results: usize,
}

impl Kernel {
    fn all(form: LaunchForm) -> Result<Vec<Self>, Failed> {
        let kernels = LINES.into_iter().map(|(line, [rows, cols], results)| {
            let spec: ReduceSpec = line.parse()?;
            let kernel = <ReduceKernel>::new(spec.launch(form))?;
            Ok(Self { line, kernel, rows, cols, results })
        });
        kernels.collect()
    }

    /// Launches the kernel on elements. The results overwrite those of an earlier launch.
    fn launch(
        &self,
        device: &Device,
        elements: &impl Vector<Element = f32>,
        to: &mut Buffer,
        before: usize,
    ) -> Result<(), Error> {
        let matrix = MatrixRef::new(elements, self.rows, self.cols)?;
        let mut results = to.slice_mut(before * self.results..(before + 1) * self.results)?;
        self.kernel.launch(device, &matrix, &mut results).map(drop)
    }

    /// Results of the kernel without concurrent work.
    fn alone(&self, device: &Device, elements: &[f32]) -> Result<Vec<f32>, Failed> {
        let (elements, mut results) = (device.upload(elements)?, device.alloc(self.results)?);
        self.launch(device, &elements, &mut results, 0)?;
        Ok(device.download(&results)?)
    }
}

/// Elements of one input of a thread.
fn input(thread: usize, number: usize) -> Vec<f32> {
    random::values((thread * INPUTS + number) as u64 + 1, LEN)
}

/// Both devices launch all kernels repeatedly on their own inputs without waiting. The bits must be
/// those that the simulator computes in several passes.
fn at_once(devices: [Device; 2]) -> Result<(), Failed> {
    let (kernels, by_passes) = (Kernel::all(LaunchForm::Once)?, Kernel::all(LaunchForm::Passes)?);
    let start = Barrier::new(devices.len());
    std::thread::scope(|scope| {
        let threads: Vec<_> = devices
            .iter()
            .enumerate()
            .map(|(thread, device)| {
                let (kernels, by_passes, start) = (&kernels, &by_passes, &start);
                scope.spawn(move || -> Result<(), Failed> {
                    let prepared = || -> Result<_, Failed> {
                        let inputs = (0..INPUTS).map(|n| device.upload(&input(thread, n)));
                        let inputs: Vec<Buffer> = inputs.collect::<Result<_, _>>()?;
                        let results =
                            kernels.iter().map(|kernel| device.alloc(LAUNCHES * kernel.results));
                        let results: Vec<Buffer> = results.collect::<Result<_, _>>()?;
                        // All kernels are compiled first, so that no launch waits for compilation
                        // later.
                        for kernel in kernels {
                            kernel.alone(device, &input(thread, 0))?;
                        }
                        Ok((inputs, results))
                    };
                    let prepared = prepared();
                    // This line is reached even after an error, because the other thread waits at
                    // the barrier.
                    start.wait();
                    let (inputs, mut results) = prepared?;
                    for launch in 0..LAUNCHES {
                        for (kernel, results) in kernels.iter().zip(&mut results) {
                            kernel.launch(device, &inputs[launch % INPUTS], results, launch)?;
                        }
                    }
                    for (kernel, results) in by_passes.iter().zip(&results) {
                        let found = device.download(results)?;
                        let mut expected = Vec::new();
                        for n in 0..INPUTS {
                            expected.push(kernel.alone(&simulator(), &input(thread, n))?);
                        }
                        for (launch, found) in found.chunks(kernel.results).enumerate() {
                            let what =
                                format!("`{}`, thread {thread}, launch {launch}", kernel.line);
                            let expected = ("on the simulator", &expected[launch % INPUTS][..]);
                            equal_bits(&what, ("at once", found), expected)?;
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
    })
}

/// Captures once and replays on changing elements, with direct launches in between. Each result has
/// the bits of several passes. Some results are also compared with the simulator.
fn graph() -> Result<(), Failed> {
    // The stream is separate, because launches of other tests on a capturing stream would also be
    // captured.
    let gpu = own_gpu()?;
    let (_, stream) = gpu.cudarc().ok_or("a GPU has a stream")?;
    let (kernels, by_passes) = (Kernel::all(LaunchForm::Once)?, Kernel::all(LaunchForm::Passes)?);
    let mut elements = stream.alloc_zeros::<f32>(LEN)?;
    let results = kernels.iter().map(|kernel| gpu.alloc(kernel.results));
    let mut results: Vec<Buffer> = results.collect::<Result<_, _>>()?;
    let all = |elements: &_, results: &mut [Buffer]| -> Result<(), Error> {
        let each = kernels.iter().zip(results);
        each.into_iter().try_for_each(|(kernel, to)| kernel.launch(&gpu, elements, to, 0))
    };
    // The first launch compiles, which a capture forbids.
    all(&elements, &mut results)?;
    let graph = captured(stream, || all(&elements, &mut results))?;
    for seed in 1..=REPLAYS {
        let values = random::values(1000 + seed, LEN);
        stream.memcpy_htod(&values, &mut elements)?;
        graph.launch()?;
        let replayed = results.iter().map(|results| gpu.download(results));
        let replayed: Vec<Vec<f32>> = replayed.collect::<Result<_, _>>()?;
        for (kernel, replayed) in by_passes.iter().zip(&replayed) {
            let what = format!("`{}`, replay {seed}", kernel.line);
            let passes = kernel.alone(&gpu, &values)?;
            equal_bits(&what, ("in the graph", replayed), ("by passes", &passes))?;
            if seed % 25 == 0 {
                let simulated = kernel.alone(&simulator(), &values)?;
                equal_bits(&what, ("in the graph", replayed), ("on the simulator", &simulated))?;
            }
        }
        if seed % 3 == 0 {
            all(&elements, &mut results)?;
            for ((kernel, direct), replayed) in kernels.iter().zip(&results).zip(&replayed) {
                let what = format!("`{}`, replay {seed}", kernel.line);
                let direct = gpu.download(direct)?;
                equal_bits(&what, ("in the graph", replayed), ("launched", &direct))?;
            }
        }
    }
    Ok(())
}
