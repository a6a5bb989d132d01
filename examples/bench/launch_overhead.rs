//! Measures the host time of a launch on a GPU.
//!
//! A typed launch of a small reduction is compared with a bare driver call for the same kernel and
//! arguments. The time of each is the median of 10,000 launches. The program also measures launches
//! of a small GEMM, with and without operands of an epilogue, the choice of a table's rule, and the
//! first launch of a kernel, both with compilation and from the disk cache.

use clap::Parser;
use cudarc::driver::{DevicePtr, DevicePtrMut, result};
use gemm_bench::cli::{Failure, Outcome, exit, open_gpu, write_json};
use gemm_bench::gpu::{Gpu, failed, median};
use gemm_bench::table::{Table, number, text};
use gemm_dsl::spec::{GemmLayout, SgemmSpec};
use gemm_dsl::tables::{KernelTable, SgemmProblem, SgemmShape, Target};
use gemm_runtime::compile::{self, Arch, Options as CompileOptions};
use gemm_runtime::spec::Accuracy;
use gemm_runtime::{
    Device, Epilogue, Error, MN, N, ReduceKernel, Sgemm, SgemmKernel, epilogue, reduce_kernel,
    sgemm, sgemm_kernel, sgemm_tables,
};
use serde::Serialize;
use std::ffi::{CString, c_void};
use std::hint::black_box;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

const SUM: ReduceKernel = reduce_kernel!(name: small_sum, block: 256, items: 4, shuffle);
const NAME: &str = "reduce_small_sum";
const THREADS: u32 = 256;

/// Number of elements of the array, small enough for one block.
const LENGTH: usize = 1000;
const LAUNCHES: usize = 10_000;
/// Launches between two synchronisations. The stream has capacity for that many.
const BATCH: usize = 100;

/// Side of a small GEMM.
const SIDE: usize = 16;
const PLAIN: SgemmKernel = sgemm_kernel!(tile: 32x32x8, thread: 2x2);
const LAYER: Sgemm<(N, MN)> = sgemm_kernel!(
    tile: 32x32x8,
    thread: 2x2,
    epilogue: |acc, bias[n], residual[m, n]| relu(acc + bias) + residual
);
const EPILOGUE: Epilogue<(N, MN)> =
    epilogue!(|acc, bias[n], residual[m, n]| relu(acc + bias) + residual);

/// Measure the host time of a launch.
#[derive(Debug, Parser)]
#[command(name = "launch_overhead")]
struct LaunchOverheadOptions {
    /// Print only the time of the first launch, in microseconds
    #[arg(long, hide = true)]
    first_launch: bool,
    /// Measure only the choice of a table's rule, which needs no GPU
    #[arg(long)]
    choice: bool,
    /// Write the times to a file, as one JSON object
    #[arg(long, value_name = "FILE", conflicts_with_all = ["choice", "first_launch"])]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    exit(run(&LaunchOverheadOptions::parse()))
}

fn run(options: &LaunchOverheadOptions) -> Result<Outcome, Failure> {
    if options.choice {
        let (rows, [middle, slowest]) = choice()?;
        println!(
            "choosing one of the {rows} rules of sm_90: {middle:.3} µs, at most {slowest:.3} µs"
        );
        return Ok(Outcome::Right);
    }
    let device = open_gpu()?;
    let first = first_launch(&device)?;
    if options.first_launch {
        println!("{first}");
        return Ok(Outcome::Right);
    }
    let Launches { buffers, slices, bare } = launches(&device)?;
    let ((rows, [choosing, _]), gemms) = (choice()?, gemms(&device)?);
    println!("on {}, microseconds of host time", device.name());
    let mut table = Table::new([text("what"), number("µs")]);
    let cache = tempfile::tempdir()?;
    let times = HostTimes {
        typed_us: buffers,
        slices_us: slices,
        bare_us: bare,
        choice_us: choosing,
        gemm_us: gemms.typed,
        gemm_operands_us: gemms.with_operands,
        sgemm_us: gemms.by_table,
        sgemm_operands_us: gemms.by_table_with_operands,
        compilation_us: compilation(&device)?,
        first_us: first_launch_of_process(cache.path())?,
        first_from_disk_us: first_launch_of_process(cache.path())?,
    };
    let mut row = |what: &str, time: f64| {
        table.add([what.to_owned(), format!("{time:.2}")]);
    };
    row("typed launch", times.typed_us);
    row("typed launch on slices of cudarc", times.slices_us);
    row("bare driver call", times.bare_us);
    row(&format!("choosing one of the {rows} rules of sm_90"), times.choice_us);
    row("typed GEMM", times.gemm_us);
    row("typed GEMM with bias and residual", times.gemm_operands_us);
    row("sgemm, with the built-in table", times.sgemm_us);
    row("sgemm with bias and residual", times.sgemm_operands_us);
    row("NVRTC compilation of the kernel", times.compilation_us);
    row("first launch, compiled", times.first_us);
    row("first launch, from the disk cache", times.first_from_disk_us);
    println!("\n{}", table.text());
    if let Some(path) = &options.json {
        write_json(path, &times)?;
    }
    Ok(Outcome::Right)
}

/// Host times in microseconds, for `--json`.
#[derive(Serialize)]
struct HostTimes {
    /// Typed launch, on buffers and on slices of cudarc.
    typed_us: f64,
    slices_us: f64,
    /// Bare driver call.
    bare_us: f64,
    /// Choice of a rule of the `sm_90` table.
    choice_us: f64,
    /// Typed GEMM, without and with two operands of an epilogue.
    gemm_us: f64,
    gemm_operands_us: f64,
    /// `sgemm` with its table, without and with an epilogue of two operands.
    sgemm_us: f64,
    sgemm_operands_us: f64,
    /// NVRTC alone.
    compilation_us: f64,
    /// First launch in a process, compiled anew and from the disk cache.
    first_us: f64,
    first_from_disk_us: f64,
}

/// Returns the time in microseconds until a device has finished its first launch.
fn first_launch(device: &Device) -> Result<f64, Error> {
    let input = device.upload(&[1.0; LENGTH])?;
    let mut output = device.alloc(1)?;
    let start = Instant::now();
    SUM.launch(device, &input, &mut output)?;
    device.synchronize()?;
    Ok(start.elapsed().as_secs_f64() * 1e6)
}

/// Returns the time of [`first_launch`] in a new process, which caches compiled kernels in the
/// given directory.
fn first_launch_of_process(cache: &std::path::Path) -> Result<f64, Failure> {
    let child = Command::new(std::env::current_exe()?)
        .arg("--first-launch")
        .env("GEMM_CACHE_DIR", cache)
        .output()?;
    let text = String::from_utf8_lossy(&child.stdout);
    text.trim().parse().map_err(|_| {
        let reason = String::from_utf8_lossy(&child.stderr).into_owned();
        Failure::Missing(format!("the measuring process failed: {reason}"))
    })
}

/// Returns the median time of NVRTC alone, in microseconds.
fn compilation(device: &Device) -> Result<f64, Error> {
    let arch = device.arch().ok_or(Error::NoGpu)?;
    let mut times = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        compile::compile(NAME, SUM.source(), arch, &CompileOptions::default())?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(median(&mut times))
}

/// Returns the number of rules in the shipped `sm_90` table of single GEMMs, and the times of a
/// choice.
///
/// The times are in microseconds: the median over many problems, and the maximum.
fn choice() -> Result<(usize, [f64; 2]), Failure> {
    let [single, _] = sgemm_tables(Some(Arch::sm(90)), Accuracy::Ieee);
    let table: KernelTable<SgemmSpec> = single.text().parse().map_err(Error::from)?;
    let extents = [1, 7, 64, 100, 1000, 4096, 8192];
    let mut times = Vec::new();
    for m in extents {
        for n in extents {
            for (k, layout) in
                [(64, GemmLayout::Nn), (512, GemmLayout::Tn), (32768, GemmLayout::Tt)]
            {
                let shape = SgemmShape::from((m, n, k)).layout(layout).aligned(true);
                let problem = SgemmProblem { shape, target: Target::H200 };
                let start = Instant::now();
                for _ in 0..LAUNCHES {
                    black_box(table.choose(black_box(&problem))).map_err(Error::from)?;
                }
                times.push(start.elapsed().as_secs_f64() * 1e6 / LAUNCHES as f64);
            }
        }
    }
    let middle = median(&mut times);
    Ok((table.rules().len(), [middle, times.into_iter().fold(0.0, f64::max)]))
}

/// Host times of a small GEMM in microseconds.
struct Gemms {
    typed: f64,
    with_operands: f64,
    /// Launches of the kernel that the shipped table selects.
    by_table: f64,
    by_table_with_operands: f64,
}

/// Times launches of a small GEMM, without and with the operands of an epilogue.
fn gemms(device: &Device) -> Result<Gemms, Error> {
    let x = device.upload_matrix(&[1.0; SIDE * SIDE], SIDE, SIDE)?;
    let (bias, mut c) = (device.upload(&[1.0; SIDE])?, device.alloc_matrix(SIDE, SIDE)?);
    let operands = (&bias, &x);
    Ok(Gemms {
        typed: host_time(device, || PLAIN.call(device).launch(&x, &x, &mut c).map(drop))?,
        with_operands: host_time(device, || {
            LAYER.call(device).operands(operands).launch(&x, &x, &mut c).map(drop)
        })?,
        by_table: host_time(device, || sgemm(&x, &x, &mut c).run(device).map(drop))?,
        by_table_with_operands: host_time(device, || {
            sgemm(&x, &x, &mut c).epilogue(EPILOGUE).operands(operands).run(device).map(drop)
        })?,
    })
}

/// Host times of a launch in microseconds.
struct Launches {
    /// Typed, on buffers of the runtime.
    buffers: f64,
    /// Typed, on slices of cudarc.
    slices: f64,
    bare: f64,
}

/// Times the typed launches and the bare driver call.
#[allow(unsafe_code, reason = "the bare driver call is the reference")]
fn launches(device: &Device) -> Result<Launches, Error> {
    let gpu = Gpu::new(device).ok_or(Error::NoGpu)?;
    let input = device.upload(&[1.0; LENGTH])?;
    let mut output = device.alloc(1)?;
    let buffers = host_time(device, || SUM.launch(device, &input, &mut output).map(drop))?;

    let slice = gpu.stream.clone_htod(&[1.0_f32; LENGTH]).map_err(failed("copying the input"))?;
    let mut value = gpu.stream.alloc_zeros::<f32>(1).map_err(failed("allocating the output"))?;
    let slices = host_time(device, || SUM.launch(device, &slice, &mut value).map(drop))?;
    let (mut from, _from) = slice.device_ptr(gpu.stream);
    let (mut to, _to) = value.device_ptr_mut(gpu.stream);
    let mut length = LENGTH as u64;
    let cubin = compile::compile(NAME, SUM.source(), gpu.arch, &CompileOptions::default())?.cubin;
    let name = CString::new(NAME).map_err(|error| Error::Internal(error.to_string()))?;
    gpu.context.bind_to_thread().map_err(failed("making the context current"))?;
    // SAFETY: the image is a cubin for this GPU, and `name` is the name of its kernel. The module
    // is never unloaded, so that the function stays valid.
    let function = unsafe {
        let module = result::module::load_data(cubin.as_ptr().cast());
        let module = module.map_err(failed("loading the kernel"))?;
        result::module::get_function(module, name).map_err(failed("finding the kernel"))?
    };
    let bare = host_time(device, || {
        let mut arguments: [*mut c_void; 3] =
            [(&raw mut from).cast(), (&raw mut to).cast(), (&raw mut length).cast()];
        // SAFETY: the arguments are the kernel's parameters: the address of the elements, the
        // address of one element, and the number of elements as 64 bits. All outlive the launch.
        let launched = unsafe {
            let (grid, block) = ((1, 1, 1), (THREADS, 1, 1));
            let stream = gpu.stream.cu_stream();
            result::launch_kernel(function, grid, block, 0, stream, &mut arguments)
        };
        launched.map_err(failed("launching the kernel"))
    })?;
    Ok(Launches { buffers, slices, bare })
}

/// Returns the median host time of a call in microseconds.
fn host_time(device: &Device, mut call: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    let mut times = Vec::with_capacity(LAUNCHES);
    for number in 0..LAUNCHES {
        if number % BATCH == 0 {
            device.synchronize()?;
        }
        let start = Instant::now();
        call()?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    device.synchronize()?;
    Ok(median(&mut times))
}
