//! Measures elementwise kernels and kernels over whole rows against plain copies of as many bytes,
//! and against PyTorch.
//!
//! ```text
//! cargo run --release -p gemm-bench --example elementwise
//! cargo run --release -p gemm-bench --example elementwise -- --only softmax --shapes 8192x4096
//! cargo run --release -p gemm-bench --example elementwise -- --rows 16384 --cols 1024 --only norm
//! ```
//!
//! The kernel and a copy within the device memory (`cudaMemcpyAsync`) run in turns, in CUDA graphs
//! of back-to-back launches. The copy moves as many bytes as the kernel reads and writes. Results
//! of the simulator are compared on a part of the matrix. The exit code is 1 if a result is wrong.

use clap::Parser;
use gemm_bench::cli::{Failure, Outcome, count, device_label, exit, open_gpu, write_json};
use gemm_bench::gpu::{Gpu, Timer, Work, captured, failed};
use gemm_bench::peer::{Peer, Starting};
use gemm_bench::rows::graph::launches;
use gemm_bench::table::{Table, number, text};
use gemm_runtime::half::bf16;
use gemm_runtime::{
    Buffer, Device, Element, Error, InPlace, M, MN, Map, MatrixMut, MatrixRef, N, map_kernel,
    row_kernel,
};
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const TORCH: &str = include_str!("peers/elementwise.py");

/// Time limits for loading PyTorch, and for the response to a request.
const START: Duration = Duration::from_secs(240);
const ANSWER: Duration = Duration::from_secs(60);

const REPLAYS: usize = 21;

/// Measure elementwise kernels against plain copies and PyTorch
#[derive(Debug, Parser)]
#[command(name = "elementwise")]
struct ElementwiseOptions {
    /// Rows of the matrices
    #[arg(long, value_delimiter = ',', value_parser = count, default_values = ["1024", "4096",
        "16384", "65536"])]
    rows: Vec<usize>,
    /// Columns of the matrices
    #[arg(long, value_parser = count, default_value = "4096")]
    cols: usize,
    /// Rows and columns of the matrices of kernels over whole rows
    #[arg(long, value_delimiter = ',', value_parser = shape, default_values = ["8192x4096",
        "65536x1024", "1024x65536", "128x1048576"])]
    shapes: Vec<(usize, usize)>,
    /// Only kernels with these names: add, add_in_place, gelu, norm, swish_backward, each also with
    /// `_bf16`; softmax, log_softmax, layer_norm, rms_norm, cross_entropy
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Do not start PyTorch
    #[arg(long)]
    no_torch: bool,
    /// Write the results to a file, as one JSON object
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    exit(run(&ElementwiseOptions::parse()))
}

fn run(options: &ElementwiseOptions) -> Result<Outcome, Failure> {
    let device = open_gpu()?;
    let gpu = Gpu::new(&device);
    let gpu = gpu.ok_or_else(|| Failure::Missing("kernels are timed on a GPU".to_owned()))?;
    let timer = Timer::new(gpu)?;
    let directory = tempfile::tempdir()?;
    let mut torch = if options.no_torch { None } else { torch(&directory) };
    let mut report = ElementwiseReport { device: device_label(&device), rows: Vec::new() };
    let mut is_right = true;
    let elements = options.rows.iter().map(|rows| (*rows, options.cols, false));
    let whole = options.shapes.iter().map(|(rows, cols)| (*rows, *cols, true));
    for (rows, cols, is_whole) in elements.chain(whole) {
        let mut bench = Bench { gpu, timer: &timer, options, rows, cols, found: Vec::new() };
        if is_whole {
            is_right &= bench.whole_rows()?;
        } else {
            is_right &= bench.kernels::<f32>("", &single())?;
            is_right &= bench.kernels::<bf16>("_bf16", &half())?;
        }
        for mut row in bench.found {
            if let Some(peer) = &mut torch {
                match peer.ask(&Question::new(&row), ANSWER) {
                    Ok(us) => row.torch_us = Some(us),
                    Err(error) => eprintln!("note: PyTorch, {}: {error}", row.kernel),
                }
            }
            report.rows.push(row);
        }
    }
    let mut table = Table::new([
        text("kernel"),
        text("m x n"),
        number("MB"),
        number("us"),
        number("TB/s"),
        number("of copying"),
        number("PyTorch us"),
        number("speedup"),
    ]);
    for row in &report.rows {
        let torch = |text: fn(f64, f64) -> String| {
            row.torch_us.map(|us| text(us, row.us)).unwrap_or_default()
        };
        table.add([
            row.kernel.clone(),
            format!("{}x{}", row.m, row.n),
            format!("{:.0}", row.bytes as f64 / 1e6),
            format!("{:.1}", row.us),
            format!("{:.2}", row.bytes as f64 / row.us / 1e6),
            format!("{:.3}", row.copy_us / row.us),
            torch(|us, _| format!("{us:.1}")),
            torch(|us, own| format!("{:.2}", us / own)),
        ]);
    }
    writeln!(io::stdout(), "{}\n{}", report.device, table.text())?;
    if let Some(path) = &options.json {
        write_json(path, &report)?;
    }
    Ok(if is_right { Outcome::Right } else { Outcome::Wrong })
}

/// Parses rows and columns, such as `8192x4096`.
fn shape(text: &str) -> Result<(usize, usize), String> {
    let (rows, cols) = text.split_once('x').ok_or("write rows and columns, such as 8192x4096")?;
    Ok((count(rows)?, count(cols)?))
}

/// Starts PyTorch. Prints a note if it is missing.
fn torch(directory: &tempfile::TempDir) -> Option<Peer> {
    let started = Starting::torch(directory.path(), "elementwise.py", TORCH);
    started
        .and_then(|peer| peer.finish(START))
        .map_err(|error| eprintln!("note: PyTorch is not compared: {error}"))
        .ok()
}

/// Results for `--json`.
#[derive(Serialize)]
struct ElementwiseReport {
    device: String,
    rows: Vec<ElementwiseRow>,
}

/// Microseconds of a launch, of a copy that moves as many bytes, and of PyTorch.
#[derive(Serialize)]
struct ElementwiseRow {
    kernel: String,
    m: usize,
    n: usize,
    /// Bytes that the kernel reads and writes.
    bytes: usize,
    us: f64,
    copy_us: f64,
    torch_us: Option<f64>,
}

/// Request to PyTorch, sent as a line of JSON.
#[derive(Serialize)]
struct Question<'q> {
    kernel: &'q str,
    m: usize,
    n: usize,
    launches: usize,
    replays: usize,
}

impl<'q> Question<'q> {
    fn new(row: &'q ElementwiseRow) -> Self {
        let launches = launches(row.us);
        Self { kernel: &row.kernel, m: row.m, n: row.n, launches, replays: REPLAYS }
    }
}

/// Normalisation with a mean and a factor for each row, and a weight for each column.
type Norm<T> = Map<(MN<T>, M, M, N<T>), MN<T>>;

/// Swish and its gradient, of an argument and the gradient of its result.
type SwishBackward<T> = Map<(MN<T>, MN<T>), (MN<T>, MN<T>)>;

/// Kernels for elements of one type.
struct Kernels<T> {
    add: Map<(MN<T>, MN<T>), MN<T>>,
    gelu: Map<(MN<T>,), MN<T>>,
    norm: Norm<T>,
    swish_backward: SwishBackward<T>,
}

fn single() -> Kernels<f32> {
    Kernels {
        add: map_kernel!(|x[m, n], y[m, n]| x + y),
        gelu: map_kernel!(|x[m, n]| gelu(x)),
        norm: map_kernel!(|x[m, n], mean[m], rstd[m], gamma[n]| (x - mean) * rstd * gamma),
        swish_backward: map_kernel!(|x[m, n], dy[m, n]| {
            let s = sigmoid(x);
            (x * s, dy * (s + x * s * (1.0 - s)))
        }),
    }
}

fn half() -> Kernels<bf16> {
    Kernels {
        add: map_kernel!(|x[m, n], y[m, n]| x + y, type: bf16),
        gelu: map_kernel!(|x[m, n]| gelu(x), type: bf16),
        norm: map_kernel!(
            |x[m, n], mean[m]: f32, rstd[m]: f32, gamma[n]| (x - mean) * rstd * gamma, type: bf16
        ),
        swish_backward: map_kernel!(|x[m, n], dy[m, n]| {
            let s = sigmoid(x);
            (x * s, dy * (s + x * s * (1.0 - s)))
        }, type: bf16),
    }
}

const SOFTMAX: Map<(MN,)> = row_kernel!(|x[m, n]| {
    let top = max(x);
    let e = exp(x - top);
    e / sum(e)
});
const LOG_SOFTMAX: Map<(MN,)> = row_kernel!(|x[m, n]| {
    let top = max(x);
    x - (top + log(sum(exp(x - top))))
});
const LAYER_NORM: Map<(MN, N, N)> = row_kernel!(|x[m, n], gamma[n], beta[n]| {
    let mean = sum(x) / f32(n);
    let d = x - mean;
    d * rsqrt(sum(d * d) / f32(n) + 1e-5) * gamma + beta
});
const RMS_NORM: Map<(MN, MN, N), (MN, MN)> = row_kernel!(|x[m, n], residual[m, n], gamma[n]| {
    let h = x + residual;
    (h * rsqrt(sum(h * h) / f32(n) + 1e-6) * gamma, h)
});
const CROSS_ENTROPY: Map<(MN, M<i32>), M> = row_kernel!(|x[m, n], target[m]: i32| -> f32[m] {
    let top = max(x);
    log(sum(exp(x - top))) + top - sum(if col == target { x } else { 0.0 })
});

struct Bench<'b> {
    gpu: Gpu<'b>,
    timer: &'b Timer<'b>,
    options: &'b ElementwiseOptions,
    rows: usize,
    cols: usize,
    found: Vec<ElementwiseRow>,
}

impl Bench<'_> {
    /// Measures the kernels for a type. Returns true if their results are right.
    fn kernels<T: Sample>(&mut self, suffix: &str, kernels: &Kernels<T>) -> Result<bool, Failure> {
        let (device, m, n) = (self.gpu.device, self.rows, self.cols);
        let host: Vec<T> = (0..m * n).map(|i| T::sample(i)).collect();
        let x = device.upload_of(&host)?;
        let y = device.upload_of(&host)?;
        let (mut out, mut more) = (device.alloc_of::<T>(m * n)?, device.alloc_of::<T>(m * n)?);
        let ones = device.upload(&vec![0.5; m])?;
        let gamma = device.upload_of(&host[..n])?;
        let size = m * n * size_of::<T>();
        let is_right = checked(device, kernels, &host[..n])?;
        let [x, y] = [&x, &y].map(|array| MatrixRef::new(array, m, n));
        let (x, y) = (x?, y?);
        let name = |name: &str| format!("{name}{suffix}");
        self.time(&name("add"), 3 * size, || {
            kernels.add.launch(device, (&x, &y), &mut MatrixMut::new(&mut out, m, n)?).map(drop)
        })?;
        self.time(&name("add_in_place"), 3 * size, || {
            let target = &mut MatrixMut::new(&mut out, m, n)?;
            kernels.add.launch(device, (InPlace::first(), &y), target).map(drop)
        })?;
        self.time(&name("gelu"), 2 * size, || {
            kernels.gelu.launch(device, &x, &mut MatrixMut::new(&mut out, m, n)?).map(drop)
        })?;
        self.time(&name("norm"), 2 * size, || {
            let target = &mut MatrixMut::new(&mut out, m, n)?;
            kernels.norm.launch(device, (&x, &ones, &ones, &gamma), target).map(drop)
        })?;
        self.time(&name("swish_backward"), 4 * size, || {
            let targets =
                (&mut MatrixMut::new(&mut out, m, n)?, &mut MatrixMut::new(&mut more, m, n)?);
            kernels.swish_backward.launch(device, (&x, &y), targets).map(drop)
        })?;
        Ok(is_right)
    }

    /// Measures the kernels over whole rows. Returns true if their results are right.
    fn whole_rows(&mut self) -> Result<bool, Failure> {
        let (device, m, n) = (self.gpu.device, self.rows, self.cols);
        let host: Vec<f32> = (0..m * n).map(f32::sample).collect();
        let (x, y) = (device.upload(&host)?, device.upload(&host)?);
        let (mut out, mut more) = (device.alloc(m * n)?, device.alloc(m * n)?);
        let (gamma, target) = (device.upload(&host[..n])?, device.upload_of(&vec![1_i32; m])?);
        let (mut loss, size) = (device.alloc(m)?, m * n * size_of::<f32>());
        let is_right = rows_checked(device, &host[..n])?;
        let [x, y] = [&x, &y].map(|array| MatrixRef::new(array, m, n));
        let (x, y) = (x?, y?);
        for (name, kernel) in [("softmax", &SOFTMAX), ("log_softmax", &LOG_SOFTMAX)] {
            self.time(name, 2 * size, || {
                kernel.launch(device, &x, &mut MatrixMut::new(&mut out, m, n)?).map(drop)
            })?;
        }
        self.time("layer_norm", 2 * size, || {
            let target = &mut MatrixMut::new(&mut out, m, n)?;
            LAYER_NORM.launch(device, (&x, &gamma, &gamma), target).map(drop)
        })?;
        self.time("rms_norm", 4 * size, || {
            let targets =
                (&mut MatrixMut::new(&mut out, m, n)?, &mut MatrixMut::new(&mut more, m, n)?);
            RMS_NORM.launch(device, (&x, &y, &gamma), targets).map(drop)
        })?;
        self.time("cross_entropy", size, || {
            CROSS_ENTROPY.launch(device, (&x, &target), &mut loss).map(drop)
        })?;
        Ok(is_right)
    }

    /// Times a kernel and a copy of `bytes / 2` bytes, in turns.
    fn time(
        &mut self,
        kernel: &str,
        bytes: usize,
        mut work: impl FnMut() -> Result<(), Error>,
    ) -> Result<(), Failure> {
        if !self.options.only.is_empty() && !self.options.only.iter().any(|only| only == kernel) {
            return Ok(());
        }
        let device = self.gpu.device;
        let from = device.alloc_of::<u8>(bytes / 2)?;
        let mut to = device.alloc_of::<u8>(bytes / 2)?;
        let mut copy = || to.copy_from(&from);
        // The first launch compiles.
        work()?;
        let once = self.timer.medians(3, &mut [&mut work])?;
        let launches = launches(once.first().map_or(f64::NAN, |ms| ms * 1e3));
        let graphs =
            [captured(self.gpu, &mut work, launches)?, captured(self.gpu, &mut copy, launches)?];
        let [mut own, mut copies] = [&graphs[0], &graphs[1]]
            .map(|graph| move || graph.launch().map_err(failed("launching a graph")));
        let both: &mut [&mut Work<'_>] = &mut [&mut own, &mut copies];
        let times = self.timer.medians(REPLAYS, both)?;
        device.synchronize()?;
        let us = |nth: usize| times.get(nth).map_or(f64::NAN, |ms| ms * 1e3 / launches as f64);
        self.found.push(ElementwiseRow {
            kernel: kernel.to_owned(),
            m: self.rows,
            n: self.cols,
            bytes,
            us: us(0),
            copy_us: us(1),
            torch_us: None,
        });
        Ok(())
    }
}

/// Returns true if the kernels compute the simulator's bits of one row.
fn checked<T: Sample>(device: &Device, kernels: &Kernels<T>, row: &[T]) -> Result<bool, Error> {
    let simulator = Device::simulator();
    let computed = |device: &Device| -> Result<Vec<T>, Error> {
        let x = device.upload_of(row)?;
        let (mut y, mut z) = (device.alloc_of::<T>(row.len())?, device.alloc_of::<T>(row.len())?);
        let one = device.upload(&[0.5])?;
        let mut all = Vec::new();
        let mut add = |y: &Buffer<T>| -> Result<(), Error> {
            all.extend(device.download(y)?);
            Ok(())
        };
        kernels.add.launch(device, (&x, &x), &mut y)?;
        add(&y)?;
        kernels.gelu.launch(device, &x, &mut y)?;
        add(&y)?;
        kernels.norm.launch(device, (&x, &one, &one, &x), &mut y)?;
        add(&y)?;
        kernels.swish_backward.launch(device, (&x, &x), (&mut y, &mut z))?;
        add(&y)?;
        add(&z)?;
        Ok(all)
    };
    Ok(told(computed(device)? == computed(&simulator)?))
}

/// Returns true if the kernels over whole rows compute the simulator's bits of one row.
fn rows_checked(device: &Device, row: &[f32]) -> Result<bool, Error> {
    let simulator = Device::simulator();
    let computed = |device: &Device| -> Result<Vec<f32>, Error> {
        let (x, target) = (device.upload(row)?, device.upload_of(&[1])?);
        let (mut y, mut h) = (device.alloc(row.len())?, device.alloc(row.len())?);
        let (mut loss, mut all) = (device.alloc(1)?, Vec::new());
        SOFTMAX.launch(device, &x, &mut y)?;
        all.extend(device.download(&y)?);
        LOG_SOFTMAX.launch(device, &x, &mut y)?;
        all.extend(device.download(&y)?);
        LAYER_NORM.launch(device, (&x, &x, &x), &mut y)?;
        all.extend(device.download(&y)?);
        RMS_NORM.launch(device, (&x, &x, &x), (&mut y, &mut h))?;
        all.extend(device.download(&y)?);
        CROSS_ENTROPY.launch(device, (&x, &target), &mut loss)?;
        all.extend(device.download(&loss)?);
        Ok(all)
    };
    Ok(told(computed(device)? == computed(&simulator)?))
}

/// Says that results are wrong, unless they are right.
fn told(is_right: bool) -> bool {
    if !is_right {
        eprintln!("the GPU computes other bits than the simulator");
    }
    is_right
}

/// Elements of the measured arrays.
trait Sample: Element + PartialEq {
    /// Element at an index: a number in −4 .. 4.
    fn sample(index: usize) -> Self;
}

impl Sample for f32 {
    fn sample(index: usize) -> Self {
        (index * 37 % 4096) as f32 / 512.0 - 4.0
    }
}

impl Sample for bf16 {
    fn sample(index: usize) -> Self {
        bf16::from_f32(f32::sample(index))
    }
}
