//! Measures linear layers y = x·Wᵀ on matrices of `bf16` against cuBLAS.
//!
//! ```text
//! cargo run --release -p gemm-bench --example layers
//! cargo run --release -p gemm-bench --example layers -- --rows 1,16 --layers 4096x4096 \
//!     --spec 'tile: 16x64x64, swap_ab, copy: tma, stages: 8, producer'
//! ```
//!
//! Each layer has enough copies of W that the launches in turn read more than the L2 cache holds.
//! The launches of a kernel are in one CUDA graph. Elements are small integers, so that sums are
//! exact: the exit code is 1 if a result differs from that of cuBLAS.

use clap::Parser;
use cudarc::driver::{CudaSlice, DevicePtr, DevicePtrMut};
use gemm_bench::cli::{Failure, Outcome, device_label, exit, open_gpu};
use gemm_bench::gpu::{Blas, Gpu, Timer, Work, failed, medians_in_graphs};
use gemm_bench::table::{Table, number, text};
use gemm_bench::typed::integers;
use gemm_dsl::spec::GemmLayout;
use gemm_dsl::target::element::to_bytes;
use gemm_oracle::product::Size;
use gemm_runtime::half::bf16;
use gemm_runtime::{Buffer, Device, Error, Gemm, MatrixMut, MatrixRef, SgemmSpec};
use std::io::{self, Write};
use std::process::ExitCode;

const ROUNDS: usize = 15;

/// Bytes that the copies of W have together at least: several times the L2 cache.
const ROTATED: usize = 320 << 20;

const LAYERS: [&str; 6] =
    ["4096x4096", "12288x4096", "4096x12288", "8192x8192", "28672x8192", "8192x28672"];

/// Specs without their types, layout and arithmetic.
const SPECS: [&str; 6] = [
    "tile: 8x64x64, swap_ab, copy: tma, stages: 8, producer",
    "tile: 8x64x64, swap_ab, copy: tma, stages: 6, producer, split_k: 4",
    "tile: 8x128x64, swap_ab, copy: tma, stages: 8, producer, persistent",
    "tile: 16x64x64, swap_ab, copy: tma, stages: 8, producer",
    "tile: 64x64x64, copy: tma, stages: 8, producer, float4",
    "tile: 64x128x64, copy: tma, stages: 8, producer, float4",
];

/// Measure linear layers on matrices of bf16
#[derive(Debug, Parser)]
#[command(name = "layers")]
struct LayersOptions {
    /// Numbers of rows of x
    #[arg(long, value_delimiter = ',', default_values = ["1", "16", "64"])]
    rows: Vec<usize>,
    /// Extents NxK of W
    #[arg(long, value_delimiter = ',', default_values = LAYERS)]
    layers: Vec<String>,
    /// Specs without layout, types, `arith` and `mma`
    #[arg(long)]
    spec: Vec<String>,
}

fn main() -> ExitCode {
    exit(run(&LayersOptions::parse()))
}

fn extents(text: &str) -> Result<[usize; 2], Failure> {
    let parts: Result<Vec<usize>, _> = text.split('x').map(str::parse).collect();
    match parts.ok().as_deref() {
        Some(&[n, k]) => Ok([n, k]),
        _ => Err(Failure::Missing(format!("`{text}`: a layer is NxK"))),
    }
}

/// A linear layer, and the numbers of rows of x and of copies of W.
#[derive(Clone, Copy)]
struct Layer {
    rows: usize,
    n: usize,
    k: usize,
    copies: usize,
}

/// What all measurements share.
struct Bench<'d> {
    device: &'d Device,
    gpu: Gpu<'d>,
    blas: Blas,
    timer: Timer<'d>,
    kernels: Vec<Gemm<bf16, bf16, bf16>>,
}

fn run(options: &LayersOptions) -> Result<Outcome, Failure> {
    let specs: Vec<&str> = match options.spec.as_slice() {
        [] => SPECS.into(),
        given => given.iter().map(String::as_str).collect(),
    };
    let kernel = |spec: &&str| -> Result<Gemm<bf16, bf16, bf16>, Error> {
        let types = "a: bf16, b: bf16, c: bf16, layout: nt, arith: bf16, mma: wgmma";
        Gemm::new(format!("{types}, {spec}").parse::<SgemmSpec>()?)
    };
    let kernels = specs.iter().map(kernel).collect::<Result<Vec<_>, _>>()?;
    let device = open_gpu()?;
    let gpu = Gpu::new(&device);
    let gpu = gpu.ok_or_else(|| Failure::Missing("kernels are timed on a GPU".to_owned()))?;
    let gpu = gpu.without_events();
    let blas = Blas::for_graphs(gpu)?;
    let bench = Bench { device: &device, gpu, blas, timer: Timer::new(gpu)?, kernels };
    let columns = ["rows", "us", "TB/s", "of cuBLAS"].map(number);
    let mut table = Table::new([text("layer"), text("spec")].into_iter().chain(columns));
    let mut is_right = true;
    for name in &options.layers {
        let [n, k] = extents(name)?;
        let copies = ROTATED.div_ceil(2 * n * k).max(2);
        let weights = integers::<bf16>(gpu, copies * n * k, 77)?;
        for &rows in &options.rows {
            let (times, equal) = bench.layer(&weights, Layer { rows, n, k, copies })?;
            let bytes = 2.0 * (n * k + rows * k + rows * n) as f64;
            for (spec, us) in ["cuBLAS"].iter().chain(&specs).zip(&times) {
                table.add([
                    name.clone(),
                    (*spec).to_owned(),
                    rows.to_string(),
                    format!("{us:.2}"),
                    format!("{:.2}", bytes / us / 1e6),
                    format!("{:.3}", times[0] / us),
                ]);
            }
            for (spec, _) in specs.iter().zip(equal).filter(|(_, equal)| !equal) {
                eprintln!("error: {spec} of {name} with {rows} rows differs from cuBLAS");
                is_right = false;
            }
        }
    }
    writeln!(io::stdout(), "{}\n{}", device_label(&device), table.text())?;
    Ok(if is_right { Outcome::Right } else { Outcome::Wrong })
}

impl Bench<'_> {
    /// Times cuBLAS and the kernels, in microseconds of a launch. The second result is true for
    /// each kernel whose result equals that of cuBLAS.
    fn layer(
        &self,
        weights: &CudaSlice<u8>,
        layer: Layer,
    ) -> Result<(Vec<f64>, Vec<bool>), Failure> {
        let Self { device, gpu, .. } = *self;
        let Layer { rows, n, k, copies } = layer;
        let of_w = |nth: usize| weights.device_ptr(gpu.stream).0 + (nth * n * k * 2) as u64;
        let matrices = (0..copies).map(|nth| foreign(device, of_w(nth), n * k));
        let matrices = matrices.collect::<Result<Vec<_>, _>>()?;
        let views = matrices.iter().map(|of| Ok(MatrixRef::new(of, n, k)?.t()));
        let views = views.collect::<Result<Vec<_>, Error>>()?;
        let slice = integers::<bf16>(gpu, rows * k, 1)?;
        let from = slice.device_ptr(gpu.stream).0;
        let x = foreign(device, from, rows * k)?;
        let x = MatrixRef::new(&x, rows, k)?;
        let mut peer = gpu.stream.alloc_zeros::<u8>(2 * rows * n).map_err(failed("allocating"))?;
        let to = peer.device_ptr_mut(gpu.stream).0;
        // Whole turns through the copies.
        let count = copies * (32 / copies).max(1);
        let mut turn = 0;
        let mut reference = || {
            turn = (turn + 1) % copies;
            let (size, at) = (Size::new(rows, n, k), [from, of_w(turn), to]);
            // SAFETY: the matrices have these types and extents, in memory of the device.
            #[allow(unsafe_code, reason = "the library checks no lengths")]
            unsafe {
                self.blas.typed_product::<bf16, bf16>(GemmLayout::Nt, at, size)
            }
        };
        let mut own = Vec::new();
        for _ in &self.kernels {
            own.push(device.alloc_of::<bf16>(rows * n)?);
        }
        let mut launches: Vec<Box<dyn FnMut() -> Result<(), Error> + '_>> =
            vec![Box::new(&mut reference)];
        for (kernel, y) in self.kernels.iter().zip(&mut own) {
            let (x, views, mut turn) = (&x, &views, 0);
            launches.push(Box::new(move || {
                turn = (turn + 1) % copies;
                let mut y = MatrixMut::<bf16>::new(&mut *y, rows, n)?;
                kernel.call(device).launch(x, &views[turn], &mut y).map(drop)
            }));
        }
        let mut work: Vec<&mut Work<'_>> =
            launches.iter_mut().map(|launch| &mut **launch as &mut Work<'_>).collect();
        work.iter_mut().try_for_each(|launch| launch())?;
        let times = medians_in_graphs(gpu, &self.timer, (count, ROUNDS), &mut work)?;
        drop(launches);
        let expected = gpu.stream.clone_dtoh(&peer).map_err(failed("copying"))?;
        let equal = own.iter().map(|y| Ok(to_bytes(&device.download(y)?) == expected));
        let equal = equal.collect::<Result<Vec<_>, Error>>()?;
        Ok((times.iter().map(|ms| ms * 1e3).collect(), equal))
    }
}

/// Buffer in the memory of a slice, which must live longer.
#[allow(unsafe_code, reason = "memory of cudarc")]
fn foreign(device: &Device, address: u64, len: usize) -> Result<Buffer<bf16>, Error> {
    // SAFETY: the slice has as many elements and lives until the program ends its measurements.
    unsafe { Buffer::from_raw_parts(device, address, len) }
}
