//! Batches and groups of typed matrices against PyTorch.

use super::{TypedOptions, specs};
use clap::ValueEnum;
use cudarc::driver::{CudaSlice, DevicePtr, DevicePtrMut};
use gemm_bench::cli::{Failure, Outcome, device_label, open_gpu};
use gemm_bench::gpu::{Gpu, Timer, failed};
use gemm_bench::peer::{Peer, PeerError, Starting};
use gemm_bench::rows::graph::{REPLAYS, time};
use gemm_bench::table::{Table, number, text};
use gemm_bench::typed::{kernel_of, rounded};
use gemm_oracle::product::Size;
use gemm_oracle::random::Random;
use gemm_runtime::{Buffer, Device, Element, Error, MatrixMut, MatrixRef};
use serde_json::json;
use std::io::{self, Write};
use std::time::Duration;

/// Time limit of an answer of PyTorch.
const LIMIT: Duration = Duration::from_secs(120);

/// Launches of PyTorch in a graph.
const LAUNCHES: usize = 4;

/// Elements of C that are compared.
const SAMPLES: usize = 500;

/// Elements after which the elements of a matrix repeat. It has no factor in common with extents.
const PERIOD: usize = 1_048_573;

/// How the rows of A are distributed among groups.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(super) enum Rows {
    /// The same number in each group
    Even,
    /// Group i of a shuffled order has 1 / i times the rows of the largest
    Power,
}

/// GEMMs of one launch.
enum Problem {
    /// As many GEMMs of one size.
    Batch(usize),
    /// Rows of each group.
    Groups(Vec<usize>),
}

impl Problem {
    fn new(options: &TypedOptions, rows: usize) -> Self {
        let Some(groups) = options.groups else { return Self::Batch(options.batch.unwrap_or(1)) };
        let groups = groups.max(1);
        let weight = |nth: usize| match options.rows {
            Rows::Even => 1.0,
            Rows::Power => 1.0 / (1 + nth * 37 % groups) as f64,
        };
        let all: f64 = (0..groups).map(weight).sum();
        let mut of: Vec<usize> =
            (0..groups).map(|nth| (rows as f64 * weight(nth) / all) as usize).collect();
        of[0] += rows - of.iter().sum::<usize>();
        Self::Groups(of)
    }

    fn count(&self) -> usize {
        match self {
            Self::Batch(count) => *count,
            Self::Groups(rows) => rows.len(),
        }
    }

    /// Number of matrices A and C.
    fn of_rows(&self) -> usize {
        match self {
            Self::Batch(count) => *count,
            Self::Groups(_) => 1,
        }
    }

    /// First row of each group, and the row after the last group.
    fn offsets(&self) -> Vec<u32> {
        let mut offsets = vec![0];
        if let Self::Groups(rows) = self {
            rows.iter().for_each(|rows| offsets.push(offsets[offsets.len() - 1] + *rows as u32));
        }
        offsets
    }

    /// Extents, with the number of GEMMs or of groups.
    fn name(&self, size: Size) -> String {
        match self {
            Self::Batch(count) => format!("{size} x {count}"),
            Self::Groups(rows) => format!("{size} in {} groups", rows.len()),
        }
    }

    fn key(&self) -> &'static str {
        match self {
            Self::Batch(_) => "batch: strided",
            Self::Groups(_) => "batch: grouped",
        }
    }
}

/// Integers of eight bits, of which the sums are exact.
fn integers(len: usize, seed: u32) -> Vec<i8> {
    let value = |i: u32| (((i.wrapping_mul(2_654_435_761) ^ seed) >> 13) % 255) as i8;
    (0..len.min(PERIOD) as u32).map(value).collect()
}

/// Device memory with `len` elements, which repeat.
fn filled<T: Element>(gpu: Gpu<'_>, pattern: &[i8], len: usize) -> Result<CudaSlice<u16>, Failure> {
    let bits: Vec<u16> =
        pattern.iter().map(|v| rounded::<T>(f32::from(*v)).into_bits() as u16).collect();
    let mut all = Vec::with_capacity(len);
    while all.len() < len {
        all.extend_from_slice(&bits[..bits.len().min(len - all.len())]);
    }
    gpu.stream.clone_htod(&all).map_err(|e| failed("copying")(e).into())
}

fn buffer<T: Element>(device: &Device, address: u64, len: usize) -> Result<Buffer<T>, Error> {
    // SAFETY: the caller's memory outlives the buffer and has as many elements.
    #[allow(unsafe_code, reason = "memory of cudarc")]
    unsafe {
        Buffer::<T>::from_raw_parts(device, address, len)
    }
}

/// A batch of `count` matrices, or one matrix.
fn view<'b, T: Element>(
    of: &'b Buffer<T>,
    count: Option<usize>,
    [rows, cols]: [usize; 2],
    by_column: bool,
) -> Result<MatrixRef<'b, T>, Error> {
    let [lines, line] = if by_column { [cols, rows] } else { [rows, cols] };
    let view = match count {
        None => MatrixRef::new(of, lines, line),
        Some(count) => MatrixRef::batch(of, count, lines, line),
    }?;
    Ok(if by_column { view.t() } else { view })
}

/// PyTorch, unless it is not wanted.
fn peer(options: &TypedOptions, directory: &std::path::Path) -> Result<Option<Peer>, PeerError> {
    if options.no_torch {
        return Ok(None);
    }
    let program = include_str!("../peers/typed.py");
    Starting::torch(directory, "typed.py", program)?.finish(LIMIT).map(Some)
}

pub(super) fn measured<T: Element, R: Element + PartialEq>(
    options: &TypedOptions,
) -> Result<Outcome, Failure> {
    let device = open_gpu()?;
    let gpu = Gpu::new(&device);
    let gpu = gpu.ok_or_else(|| Failure::Missing("kernels are timed on a GPU".to_owned()))?;
    let directory = std::env::temp_dir();
    let mut peer = peer(options, &directory).map_err(|e| Failure::Missing(e.to_string()))?;
    let columns = ["us", "TFLOP/s", "of PyTorch"].map(number);
    let mut table = Table::new([text("size"), text("spec")].into_iter().chain(columns));
    let mut is_right = true;
    for &size in &options.sizes {
        let of = Measured { options, gpu, device: &device, size };
        is_right &= of.with::<T, R>(&mut table, peer.as_mut())?;
    }
    writeln!(io::stdout(), "{}\n{}", device_label(&device), table.text())?;
    Ok(if is_right { Outcome::Right } else { Outcome::Wrong })
}

/// One size.
struct Measured<'m> {
    options: &'m TypedOptions,
    gpu: Gpu<'m>,
    device: &'m Device,
    size: Size,
}

impl Measured<'_> {
    /// Time of PyTorch in microseconds.
    fn ask<T: Element>(&self, peer: &mut Peer, of: &Problem) -> Result<f64, Failure> {
        let Size { m, n, k } = self.size;
        let (batch, rows) = match of {
            Problem::Batch(count) => (*count, None),
            Problem::Groups(rows) => (1, Some(rows)),
        };
        let layout = self.options.layout.to_string();
        let question = json!({
            "m": m, "n": n, "k": k, "layout": layout, "type": T::ELEM.name(), "batch": batch,
            "rows": rows, "launches": LAUNCHES, "replays": REPLAYS,
        });
        peer.ask(&question, LIMIT).map_err(|error| Failure::Missing(error.to_string()))
    }

    fn with<T: Element, R: Element + PartialEq>(
        &self,
        table: &mut Table,
        mut peer: Option<&mut Peer>,
    ) -> Result<bool, Failure> {
        let Self { options, gpu, device, size } = *self;
        let Size { m, n, k } = size;
        let of = Problem::new(options, m);
        let timer = Timer::new(gpu)?;
        let [by_column_a, by_column_b] =
            [options.layout.transposes_a(), options.layout.transposes_b()];
        let (len_a, len_b, len_c) =
            (of.of_rows() * m * k, of.count() * k * n, of.of_rows() * m * n);
        let (of_a, of_b) = (integers(len_a, 1), integers(len_b, 77));
        let (a, b) = (filled::<T>(gpu, &of_a, len_a)?, filled::<T>(gpu, &of_b, len_b)?);
        let words = len_c * R::ELEM.size() as usize / 2;
        let mut c = gpu.stream.alloc_zeros::<u16>(words).map_err(failed("allocating"))?;
        let on_a = buffer::<T>(device, a.device_ptr(gpu.stream).0, len_a)?;
        let on_b = buffer::<T>(device, b.device_ptr(gpu.stream).0, len_b)?;
        let mut on_c = buffer::<R>(device, c.device_ptr_mut(gpu.stream).0, len_c)?;
        let several = matches!(of, Problem::Batch(_)).then_some(of.of_rows());
        let view_a = view(&on_a, several, [m, k], by_column_a)?;
        let view_b = view(&on_b, Some(of.count()), [k, n], by_column_b)?;
        let offsets = device.upload_of(&of.offsets())?;
        let name = of.name(size);
        let mut rows = Vec::new();
        let before = peer.as_deref_mut().map(|peer| self.ask::<T>(peer, &of)).transpose()?;
        let mut is_right = true;
        for line in specs(options) {
            let line_with_batch = format!("{}, {line}", of.key());
            let kernel = kernel_of::<T, R>(&line_with_batch, options.layout)?;
            let mut launch = || {
                let call = kernel.call(device);
                match several {
                    Some(count) => {
                        let mut c = MatrixMut::batch(&mut on_c, count, m, n)?;
                        call.launch(&view_a, &view_b, &mut c).map(drop)
                    }
                    None => {
                        let mut c = MatrixMut::new(&mut on_c, m, n)?;
                        call.groups(&offsets).launch(&view_a, &view_b, &mut c).map(drop)
                    }
                }
            };
            launch()?;
            let us = time(gpu, &timer, &mut launch)?.us;
            let found = device.download(&on_c)?;
            let expected = |item: usize, row: usize, col: usize| -> i64 {
                let of_rows = if several.is_some() { item } else { 0 };
                let at_a = |i: usize| if by_column_a { i * m + row } else { row * k + i };
                let at_b = |i: usize| if by_column_b { col * k + i } else { i * n + col };
                let a = |i| i64::from(of_a[(of_rows * m * k + at_a(i)) % PERIOD.min(len_a)]);
                let b = |i| i64::from(of_b[(item * k * n + at_b(i)) % PERIOD.min(len_b)]);
                (0..k).map(|i| a(i) * b(i)).sum()
            };
            if !is_exact(&of, &found, size, &expected) {
                eprintln!("error: {line} at {name} is wrong");
                is_right = false;
            }
            rows.push((line, us));
        }
        let after = peer.map(|peer| self.ask::<T>(peer, &of)).transpose()?;
        let of_peer = before.zip(after).map(|(before, after)| before.min(after));
        let flops = 2.0 * of.of_rows() as f64 * m as f64 * n as f64 * k as f64;
        let own = rows.into_iter();
        for (spec, us) in of_peer.map(|us| ("PyTorch", us)).into_iter().chain(own) {
            table.add([
                name.clone(),
                spec.to_owned(),
                format!("{us:.1}"),
                format!("{:.0}", flops / us / 1e6),
                of_peer.map_or(String::new(), |peer| format!("{:.3}", peer / us)),
            ]);
        }
        Ok(is_right)
    }
}

/// Compares random elements of C.
fn is_exact<R: Element + PartialEq>(
    of: &Problem,
    found: &[R],
    Size { m, n, .. }: Size,
    expected: &dyn Fn(usize, usize, usize) -> i64,
) -> bool {
    let mut random = Random::new(1);
    let mut below = |most: usize| random.bits() as usize % most;
    let offsets = of.offsets();
    (0..SAMPLES).all(|_| {
        let (row, col) = (below(m), below(n));
        let (item, first) = match of {
            Problem::Batch(count) => {
                let item = below(*count);
                (item, item * m * n)
            }
            Problem::Groups(_) => (offsets.partition_point(|o| *o as usize <= row) - 1, 0),
        };
        let exact = expected(item, row, col) as f32;
        let value = match R::ELEM.name() {
            "f32" => R::from_bits(exact.to_bits().into()),
            _ => rounded::<R>(exact),
        };
        found[first + row * n + col] == value
    })
}
