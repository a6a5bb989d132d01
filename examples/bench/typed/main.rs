//! Measures GEMMs on matrices of `bf16`, `f16` or 8-bit elements against cuBLAS, and batches and
//! groups of 16-bit matrices against PyTorch.
//!
//! ```text
//! cargo run --release -p gemm-bench --example typed
//! cargo run --release -p gemm-bench --example typed -- --type f16 --sizes 4096x4096x4096 \
//!     --layout nn --spec 'tile: 128x256x64, copy: tma, stages: 4, float4'
//! cargo run --release -p gemm-bench --example typed -- --batch 64 --sizes 1024x1024x1024
//! cargo run --release -p gemm-bench --example typed -- --groups 128 --rows power \
//!     --sizes 65536x1536x2048 --result bf16
//! ```
//!
//! The default layout is `nt`: C = A·Bᵀ, with A and B row-major. All kernels and cuBLAS run in
//! turns. Elements are small integers, so that sums are exact: the exit code is 1 if a result
//! differs from that of cuBLAS, or samples of it from exact sums. Of `e4m3` and `i8`, the first
//! spec stands in for cuBLAS, whose `cublasGemmEx` has no 8-bit floats.

mod batches;

use clap::Parser;
use cudarc::driver::{CudaSlice, DevicePtr, DevicePtrMut};
use gemm_bench::cli::{Failure, Outcome, device_label, exit, open_gpu};
use gemm_bench::gpu::{Blas, Gpu, Timer, failed};
use gemm_bench::grid::options::size;
use gemm_bench::table::{Table, number, text};
use gemm_bench::typed::{are_equal, integers, kernel_of, viewed};
use gemm_dsl::spec::GemmLayout;
use gemm_oracle::product::Size;
use gemm_runtime::fp8::e4m3;
use gemm_runtime::half::{bf16, f16};
use gemm_runtime::{Buffer, Element, Error, Gemm, MatrixMut};
use std::io::{self, Write};
use std::process::ExitCode;

const ROUNDS: usize = 21;

const SIZES: [&str; 3] = ["2048x2048x2048", "4096x4096x4096", "8192x8192x8192"];

/// Specs without their types and arithmetic.
const SPECS: [&str; 4] = [
    "tile: 128x256x64, copy: tma, stages: 4, producer, raster: 8, float4",
    "tile: 128x256x64, copy: tma, stages: 4, producer, persistent, raster: 8, float4",
    "tile: 128x256x64, copy: tma, stages: 4, producer, persistent, cluster: 2, raster: 8, float4",
    "tile: 128x128x64, copy: tma, stages: 5, producer, persistent, cluster: 2, raster: 8, float4",
];

/// Specs for elements of 8 bits, as above.
const BYTE_SPECS: [&str; 5] = [
    "tile: 128x256x128, copy: tma, stages: 4, producer, persistent, raster: 8, float4",
    "tile: 128x256x128, copy: tma, stages: 4, producer, persistent, cluster: 2, raster: 8, float4",
    "tile: 128x128x128, copy: tma, stages: 6, producer, persistent, cluster: 2, raster: 8, float4",
    "tile: 128x128x128, promote: 128, copy: tma, stages: 5, producer, persistent, raster: 8, \
     float4",
    "tile: 128x128x128, promote: 128, copy: tma, stages: 5, producer, persistent, cluster: 2, \
     raster: 8, float4",
];

/// Measure GEMMs on matrices of 16-bit or 8-bit elements
#[derive(Debug, Parser)]
#[command(name = "typed")]
struct TypedOptions {
    /// Element type of A and B
    #[arg(long = "type", value_parser = ["bf16", "f16", "e4m3", "i8"], default_value = "bf16")]
    elem: String,
    /// Element type of C: that of A, or f32; for 8 bits bf16 or f32, or i32
    #[arg(long, value_parser = ["bf16", "f16", "f32", "i32"], default_value = "f32")]
    result: String,
    /// Extents MxNxK
    #[arg(long, value_delimiter = ',', value_parser = size, default_values = SIZES)]
    sizes: Vec<Size>,
    /// Layout of A and B
    #[arg(long, default_value = "nt")]
    layout: GemmLayout,
    /// Specs without layout, types, `arith` and `mma`
    #[arg(long)]
    spec: Vec<String>,
    /// Number of GEMMs of a batch, against PyTorch
    #[arg(long, conflicts_with = "groups")]
    batch: Option<usize>,
    /// Number of groups of the rows of A, each with a B, against PyTorch
    #[arg(long)]
    groups: Option<usize>,
    /// Rows of the groups
    #[arg(long, value_enum, default_value = "even")]
    rows: batches::Rows,
    /// Do not run PyTorch
    #[arg(long)]
    no_torch: bool,
}

fn main() -> ExitCode {
    exit(run(&TypedOptions::parse()))
}

fn run(options: &TypedOptions) -> Result<Outcome, Failure> {
    let has_batch = options.batch.is_some() || options.groups.is_some();
    match (&*options.elem, &*options.result) {
        ("e4m3" | "i8", _) if has_batch => {
            Err(Failure::Missing("batches and groups have 16-bit elements here".to_owned()))
        }
        ("bf16", "f32") if has_batch => batches::measured::<bf16, f32>(options),
        ("bf16", _) if has_batch => batches::measured::<bf16, bf16>(options),
        (_, "f32") if has_batch => batches::measured::<f16, f32>(options),
        _ if has_batch => batches::measured::<f16, f16>(options),
        ("bf16", "f32") => measured::<bf16, f32>(options),
        ("bf16", _) => measured::<bf16, bf16>(options),
        ("e4m3", "f32") => measured::<e4m3, f32>(options),
        ("e4m3", _) => measured::<e4m3, bf16>(options),
        ("i8", "i32") => measured::<i8, i32>(options),
        ("i8", "f32") => measured::<i8, f32>(options),
        ("i8", _) => measured::<i8, bf16>(options),
        (_, "f32") => measured::<f16, f32>(options),
        _ => measured::<f16, f16>(options),
    }
}

fn measured<T: Element, R: Element + PartialEq>(
    options: &TypedOptions,
) -> Result<Outcome, Failure> {
    let device = open_gpu()?;
    let gpu = Gpu::new(&device);
    let gpu = gpu.ok_or_else(|| Failure::Missing("kernels are timed on a GPU".to_owned()))?;
    let blas = Blas::new(gpu)?;
    let timer = Timer::new(gpu)?;
    let specs = specs(options);
    let layout = options.layout;
    let kernels = kernels::<T, R>(&specs, layout)?;
    let peer = if T::ELEM.size() == 2 { "of cuBLAS" } else { "of first" };
    let columns = ["ms", "TFLOP/s", peer].map(number);
    let mut table = Table::new([text("size"), text("spec")].into_iter().chain(columns));
    let mut is_right = true;
    for &size in &options.sizes {
        let Size { m, n, k } = size;
        let allocated = |len: usize| gpu.stream.alloc_zeros::<u8>(len);
        let (a, b) = (integers::<T>(gpu, m * k, 1)?, integers::<T>(gpu, n * k, 77)?);
        let bytes = m * n * R::ELEM.size() as usize;
        let mut results = (0..=kernels.len())
            .map(|_| allocated(bytes).map_err(|e| Failure::from(failed("allocating")(e))))
            .collect::<Result<Vec<_>, _>>()?;
        let address = |slice: &CudaSlice<u8>| slice.device_ptr(gpu.stream).0;
        // SAFETY: the slices live as long as the buffers, with as many elements.
        #[allow(unsafe_code, reason = "memory of cudarc")]
        let buffer = |address, len| unsafe { Buffer::<T>::from_raw_parts(&device, address, len) };
        let (of_a, of_b) = (buffer(address(&a), m * k)?, buffer(address(&b), n * k)?);
        let view_a = viewed(&of_a, (m, k), layout.transposes_a())?;
        let view_b = viewed(&of_b, (k, n), layout.transposes_b())?;
        let (peer, own) = results.split_at_mut(1);
        let mut outputs = Vec::new();
        for slice in own.iter_mut() {
            let address = slice.device_ptr_mut(gpu.stream).0;
            // SAFETY: as above.
            #[allow(unsafe_code, reason = "memory of cudarc")]
            outputs.push(unsafe { Buffer::<R>::from_raw_parts(&device, address, m * n) }?);
        }
        let to = peer[0].device_ptr_mut(gpu.stream).0;
        let at = [address(&a), address(&b), to];
        // SAFETY: the matrices have these types and extents, in memory of the device.
        #[allow(unsafe_code, reason = "the library checks no lengths")]
        let mut reference = || unsafe { blas.typed_product::<T, R>(layout, at, size) };
        let has_peer = T::ELEM.size() == 2;
        let mut launches: Vec<Box<dyn FnMut() -> Result<(), Error>>> = Vec::new();
        for (kernel, output) in kernels.iter().zip(&mut outputs) {
            let device = &device;
            let (view_a, view_b) = (&view_a, &view_b);
            launches.push(Box::new(move || {
                let mut c = MatrixMut::new(output, m, n)?;
                kernel.call(device).launch(view_a, view_b, &mut c).map(drop)
            }));
        }
        let mut all: Vec<&mut dyn FnMut() -> Result<(), Error>> = Vec::new();
        if has_peer {
            all.push(&mut reference);
        }
        all.extend(launches.iter_mut().map(|launch| &mut **launch as &mut dyn FnMut() -> _));
        let times = timer.medians(ROUNDS, &mut all)?;
        drop(all);
        drop(launches);
        let flops = 2.0 * m as f64 * n as f64 * k as f64;
        let library = has_peer.then_some("cuBLAS");
        for (spec, time) in library.iter().chain(&specs).zip(&times) {
            table.add([
                size.to_string(),
                (*spec).to_owned(),
                format!("{time:.4}"),
                format!("{:.0}", flops / time / 1e9),
                format!("{:.3}", times[0] / time),
            ]);
        }
        let expected = if has_peer { &peer[0] } else { &own[0] };
        is_right &= are_equal(gpu, expected, own, &specs, size)?;
    }
    writeln!(io::stdout(), "{}\n{}", device_label(&device), table.text())?;
    Ok(if is_right { Outcome::Right } else { Outcome::Wrong })
}

fn specs(options: &TypedOptions) -> Vec<&str> {
    match options.spec.as_slice() {
        [] if matches!(&*options.elem, "e4m3" | "i8") => BYTE_SPECS.into(),
        [] => SPECS.into(),
        given => given.iter().map(String::as_str).collect(),
    }
}

fn kernels<T: Element, R: Element>(
    specs: &[&str],
    layout: GemmLayout,
) -> Result<Vec<Gemm<T, T, R>>, Error> {
    specs.iter().map(|spec| kernel_of(spec, layout)).collect()
}
