//! Measures the kernels that `gemm` chooses for matrices of `bf16` or `f16` against cuBLAS.
//!
//! ```text
//! cargo run --release -p gemm-bench --example gemm -- --layout nn,nt,tn,tt --random 200
//! cargo run --release -p gemm-bench --example gemm -- --type f16 --sizes 4096x4096x4096 \
//!     --layout nn --spec 'tile: 128x256x64, copy: tma, stages: 4, float4'
//! ```
//!
//! The default layout is `nt`: C = A·Bᵀ, with A and B row-major. All kernels and cuBLAS run in
//! turns. Elements are small integers, so that sums are exact: the exit code is 1 if a result
//! differs from that of cuBLAS.

use clap::Parser;
use cudarc::driver::{DevicePtr, DevicePtrMut};
use gemm_bench::cli::{Failure, Outcome, device_label, exit, open_gpu};
use gemm_bench::gpu::{Blas, Gpu, Timer, Work, failed, medians_in_graphs};
use gemm_bench::grid::options::size;
use gemm_bench::grid::repeats::{self, Pace};
use gemm_bench::table::{Table, number, text};
use gemm_bench::typed::{are_equal, integers, kernel_of, viewed};
use gemm_dsl::spec::GemmLayout;
use gemm_oracle::product::Size;
use gemm_oracle::random::Random;
use gemm_runtime::bounds::GemmElement;
use gemm_runtime::half::{bf16, f16};
use gemm_runtime::{Buffer, Element, Error, MatrixMut, gemm};
use std::io::{self, Write};
use std::process::ExitCode;

const ROUNDS: usize = 21;

const SIZES: [&str; 3] = ["2048x2048x2048", "4096x4096x4096", "8192x8192x8192"];

/// Measure the kernels that `gemm` chooses for matrices of 16-bit elements
#[derive(Debug, Parser)]
#[command(name = "gemm")]
struct GemmOptions {
    /// Element type of A and B
    #[arg(long = "type", value_parser = ["bf16", "f16"], default_value = "bf16")]
    elem: String,
    /// Element type of C: that of A, or f32
    #[arg(long, value_parser = ["bf16", "f16", "f32"], default_value = "f32")]
    result: String,
    /// Extents MxNxK
    #[arg(long, value_delimiter = ',', value_parser = size, default_values = SIZES)]
    sizes: Vec<Size>,
    /// Layouts of A and B; each size is measured in each of them
    #[arg(long, value_delimiter = ',', default_value = "nt")]
    layout: Vec<GemmLayout>,
    /// Specs to measure too, without layout, types and `mma`
    #[arg(long)]
    spec: Vec<String>,
    /// Number of random sizes: multiples of 8 from 512 to 8192, each in one of the layouts
    #[arg(long, default_value_t = 0)]
    random: u32,
}

/// Size and layout of a measurement.
type Shape = (Size, GemmLayout);

/// Sizes to measure. The random ones are the same in every run.
fn shapes(options: &GemmOptions) -> Vec<Shape> {
    let sizes = options.sizes.iter();
    let given = sizes.flat_map(|size| options.layout.iter().map(|layout| (*size, *layout)));
    let mut random = Random::new(7);
    let mut extent =
        || 8 * (64.0 * 16_f64.powf(f64::from(random.bits() as u32) / 2_f64.powi(32))) as usize;
    let drawn = (0..options.random as usize).map(|nth| {
        let size = Size::new(extent(), extent(), extent());
        (size, options.layout[nth % options.layout.len()])
    });
    given.chain(drawn).collect()
}

fn main() -> ExitCode {
    exit(run(&GemmOptions::parse()))
}

fn run(options: &GemmOptions) -> Result<Outcome, Failure> {
    match (&*options.elem, &*options.result) {
        ("bf16", "f32") => measured::<bf16, f32>(options),
        ("bf16", _) => measured::<bf16, bf16>(options),
        (_, "f32") => measured::<f16, f32>(options),
        _ => measured::<f16, f16>(options),
    }
}

fn measured<T: GemmElement<R>, R: Element + PartialEq>(
    options: &GemmOptions,
) -> Result<Outcome, Failure> {
    let device = open_gpu()?;
    let gpu = Gpu::new(&device);
    let gpu = gpu.ok_or_else(|| Failure::Missing("kernels are timed on a GPU".to_owned()))?;
    let gpu = gpu.without_events();
    let blas = Blas::for_graphs(gpu)?;
    let session = Session {
        gpu,
        blas,
        timer: Timer::new(gpu)?,
        specs: options.spec.iter().map(String::as_str).collect(),
    };
    let columns = ["ms", "TFLOP/s", "of cuBLAS"].map(number);
    let mut table = Table::new(["size", "layout", "spec"].map(text).into_iter().chain(columns));
    let mut is_right = true;
    let mut ratios = Vec::new();
    for (size, layout) in shapes(options) {
        let Measured { named, times, is_equal } = session.measured::<T, R>(size, layout)?;
        is_right &= is_equal;
        let Size { m, n, k } = size;
        let flops = 2.0 * m as f64 * n as f64 * k as f64;
        for (spec, time) in named.into_iter().zip(&times) {
            table.add([
                size.to_string(),
                layout.to_string(),
                spec,
                format!("{time:.4}"),
                format!("{:.0}", flops / time / 1e9),
                format!("{:.3}", times[0] / time),
            ]);
        }
        ratios.push(times[1..].iter().map(|time| times[0] / time).fold(0.0, f64::max));
    }
    let logs = ratios.iter().map(|ratio: &f64| ratio.ln()).sum::<f64>();
    let mean = (logs / ratios.len() as f64).exp();
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    writeln!(
        io::stdout(),
        "{}\n{}\nfastest of each size over cuBLAS: {mean:.3} in the geometric mean, at least \
         {least:.3}",
        device_label(&device),
        table.text()
    )?;
    Ok(if is_right { Outcome::Right } else { Outcome::Wrong })
}

/// Devices and specs of all measurements.
struct Session<'s> {
    gpu: Gpu<'s>,
    blas: Blas,
    timer: Timer<'s>,
    specs: Vec<&'s str>,
}

/// Times of cuBLAS and of all specs for one shape.
struct Measured {
    named: Vec<String>,
    /// Milliseconds.
    times: Vec<f64>,
    is_equal: bool,
}

impl Session<'_> {
    /// Times cuBLAS, the kernel of `gemm`, and each spec.
    fn measured<T: GemmElement<R>, R: Element>(
        &self,
        size: Size,
        layout: GemmLayout,
    ) -> Result<Measured, Failure> {
        let (gpu, device) = (self.gpu, self.gpu.device);
        let kernels = self.specs.iter().map(|spec| kernel_of::<T, R>(spec, layout));
        let kernels = kernels.collect::<Result<Vec<_>, _>>()?;
        let Size { m, n, k } = size;
        let (a, b) = (integers::<T>(gpu, m * k, 1)?, integers::<T>(gpu, n * k, 77)?);
        let bytes = m * n * R::ELEM.size() as usize;
        let allocated = || gpu.stream.alloc_zeros::<u8>(bytes).map_err(failed("allocating"));
        let results = (0..kernels.len() + 2).map(|_| allocated());
        let mut results = results.collect::<Result<Vec<_>, _>>()?;
        let [from_a, from_b] = [&a, &b].map(|slice| slice.device_ptr(gpu.stream).0);
        // SAFETY: the slices live as long as the buffers, with as many elements.
        #[allow(unsafe_code, reason = "memory of cudarc")]
        let buffer = |address, len| unsafe { Buffer::<T>::from_raw_parts(device, address, len) };
        let (a, b) = (buffer(from_a, m * k)?, buffer(from_b, n * k)?);
        let (a, b) = (
            viewed(&a, (m, k), layout.transposes_a())?,
            viewed(&b, (k, n), layout.transposes_b())?,
        );
        let (peer, own) = results.split_at_mut(1);
        let mut outputs = Vec::new();
        for slice in own.iter_mut() {
            let address = slice.device_ptr_mut(gpu.stream).0;
            // SAFETY: as above.
            #[allow(unsafe_code, reason = "memory of cudarc")]
            outputs.push(unsafe { Buffer::<R>::from_raw_parts(device, address, m * n) }?);
        }
        let to = peer[0].device_ptr_mut(gpu.stream).0;
        let mut named = vec!["cuBLAS".to_owned()];
        let mut launches: Vec<Box<dyn FnMut() -> Result<(), Error> + '_>> = vec![Box::new(|| {
            // SAFETY: the matrices have these types and extents, in memory of the device.
            #[allow(unsafe_code, reason = "the library checks no lengths")]
            unsafe {
                self.blas.typed_product::<T, R>(layout, [from_a, from_b, to], size)
            }
        })];
        let (of_gemm, of_kernels) = outputs.split_at_mut(1);
        let (a, b, of_gemm) = (&a, &b, &mut of_gemm[0]);
        let mut c = MatrixMut::new(&mut *of_gemm, m, n)?;
        named.push(gemm(a, b, &mut c).choice(device)?.spec);
        launches.push(Box::new(move || {
            let mut c = MatrixMut::new(&mut *of_gemm, m, n)?;
            gemm(a, b, &mut c).run(device).map(drop)
        }));
        for (kernel, output) in kernels.iter().zip(of_kernels) {
            launches.push(Box::new(move || {
                let mut c = MatrixMut::new(output, m, n)?;
                kernel.call(device).launch(a, b, &mut c).map(drop)
            }));
        }
        named.extend(self.specs.iter().map(|spec| (*spec).to_owned()));
        let times = self.times(&mut launches)?;
        drop(launches);
        let is_equal = are_equal(gpu, &peer[0], own, &named[1..], size)?;
        Ok(Measured { named, times, is_equal })
    }

    /// Times of launches, in graphs of several launches each, without the time of the host.
    fn times(
        &self,
        launches: &mut [Box<dyn FnMut() -> Result<(), Error> + '_>],
    ) -> Result<Vec<f64>, Failure> {
        let gpu = self.gpu;
        for launch in launches.iter_mut() {
            launch()?;
        }
        let once = self.timer.medians(1, &mut [&mut *launches[0]])?;
        let Pace { launches: count, .. } = repeats::benchmark(once[0] * 1e3);
        let mut work: Vec<&mut Work<'_>> =
            launches.iter_mut().map(|launch| &mut **launch as &mut Work<'_>).collect();
        Ok(medians_in_graphs(gpu, &self.timer, (count, ROUNDS), &mut work)?)
    }
}
