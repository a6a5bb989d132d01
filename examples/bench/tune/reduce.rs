//! Sums as the target of a search, compared with the rate of a kernel that only reads.

use gemm_bench::cli::Failure;
use gemm_bench::gpu::{Gpu, Timer, read_rate};
use gemm_bench::tune::target::{SpecTime, Target};
use gemm_oracle::reduction::Truth;
use gemm_runtime::compile::Resources;
use gemm_runtime::spec::Op;
use gemm_runtime::{Buffer, Device, Error, ReduceKernel, ReduceSpec};

/// Draws a random array of each length.
pub fn data(lengths: &[usize], seed: u64) -> Vec<Vec<f32>> {
    let array = |&n: &usize| gemm_bench::data::for_reduction(seed, n, Op::Sum);
    lengths.iter().map(array).collect()
}

/// Uploaded arrays, with the reference results.
pub struct Reduce<'d> {
    device: &'d Device,
    timer: Timer<'d>,
    /// Rate of a kernel that only reads, in 10^9 bytes/s.
    read_rate: f64,
    arrays: Vec<(Buffer, Truth)>,
}

impl<'d> Reduce<'d> {
    /// Uploads the arrays.
    ///
    /// # Errors
    /// Returns the errors of the driver, and [`Failure::Missing`] without a GPU.
    pub fn new(device: &'d Device, data: &[Vec<f32>]) -> Result<Self, Failure> {
        let gpu = Gpu::new(device);
        let gpu = gpu.ok_or_else(|| Failure::Missing("a search needs a GPU".to_owned()))?;
        let timer = Timer::new(gpu)?;
        let read_rate = read_rate(gpu, &timer)?;
        let mut arrays = Vec::new();
        for elements in data {
            let truth =
                Truth::of(Op::Sum, elements).map_err(|error| Failure::Usage(error.to_string()))?;
            arrays.push((device.upload(elements)?, truth));
        }
        Ok(Self { device, timer, read_rate, arrays })
    }
}

impl Target for Reduce<'_> {
    type Spec = ReduceSpec;

    const UNIT: &'static str = "GB/s";
    const BASELINE: &'static str = "reading";

    fn sizes(&self) -> Vec<String> {
        self.arrays.iter().map(|(array, _)| array.len().to_string()).collect()
    }

    fn compiler(&self) -> impl Fn(&ReduceSpec) -> Result<Resources, Error> + Sync {
        let device = self.device.clone();
        move |spec| {
            let (input, mut output) = (device.alloc(64)?, device.alloc(1)?);
            let kernel = ReduceKernel::new(spec.clone())?;
            let launched = kernel.launch(&device, &input, &mut output)?;
            let missing = || Error::Internal("loaded machine code has no resources".to_owned());
            launched.resources().ok_or_else(missing)
        }
    }

    fn check(&mut self, size: Option<usize>, spec: &ReduceSpec) -> Result<(f64, bool), Error> {
        // A check copies only one value, so the first array can be used although it is large.
        let (input, truth) = &self.arrays[size.unwrap_or(0)];
        let mut output = self.device.upload(&[f32::NAN])?;
        ReduceKernel::new(spec.clone())?.launch(self.device, input, &mut output)?;
        let value = self.device.download(&output)?.first().copied().unwrap_or(f32::NAN);
        let verdict = truth.judge(&spec.plan()?, value);
        Ok((verdict.error, verdict.ok))
    }

    fn time(&mut self, size: usize, spec: &ReduceSpec, rounds: usize) -> Result<SpecTime, Failure> {
        let (input, _) = &self.arrays[size];
        let kernel = ReduceKernel::new(spec.clone())?;
        let mut output = self.device.alloc(1)?;
        let mut launch = || kernel.launch(self.device, input, &mut output).map(drop);
        let times = self.timer.medians(rounds, &mut [&mut launch])?;
        let time = times.first().copied().unwrap_or(f64::NAN);
        let rate = (input.len() * size_of::<f32>()) as f64 / time / 1e6;
        Ok(SpecTime { time, rate, ratio: rate / self.read_rate })
    }
}
