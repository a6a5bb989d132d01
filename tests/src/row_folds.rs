//! Epilogues with results of rows. The results are those of the stored C, in any layout, and their
//! bits depend neither on alignment nor on padding.

use crate::results::Place;
use gemm_dsl::spec::{Batch, SgemmSpec};
use gemm_oracle::product::Size;
use gemm_oracle::random::{Random, values};
use gemm_runtime::{Buffer, ByName, Device, MatrixMut, MatrixRef, Sgemm};

/// Specs with every kind of kernel, of sharing of K and of stores to C.
pub const SPECS: &[&str] = &[
    "block: 8x8",
    "block: 8x8, lanes: m, coarsen: 3, partials: 4, unroll: 4",
    "block: 8x8, thread: 4x4, float4",
    "block: 4x2, thread: 2x2, lanes: k, slices: 2",
    "tile: 32x32x8, thread: 4x4, float4, pitched",
    "tile: 32x32x8, thread: 4x4, fragment: strided, prefetch",
    "tile: 32x64x8, thread: 4x8, fragment: split, float4, transpose, double_buffer",
    "tile: 32x32x8, thread: 4x4, float4, stages: 3, warp: 16x32",
    "tile: 32x32x8, thread: 4x4, slices: 2, split_k: 3",
    "tile: 32x32x8, thread: 4x4, float4, stream_k",
    "tile: 32x32x8, thread: 4x4, float4, stage_c",
    "tile: 64x64x16, mma: sync, arith: bf16, warp: 32x32, float4",
    "tile: 64x64x16, mma: sync, arith: tf32x3, warp: 32x32, stages: 2",
    "tile: 64x64x32, mma: wgmma, arith: bf16x6, float4",
    "tile: 64x64x32, mma: wgmma, arith: tf32, float4, copy: tma, producer, persistent, pitched",
    "tile: 128x128x32, mma: wgmma, arith: f16x3, split_k: 2",
];

/// Bits of a NaN that no arithmetic produces.
const POISON: u32 = 0x7fc0_dead;

/// C, then three results of rows.
const EPILOGUE: &str = "|acc, bias[n], eps| { let v = acc + bias; let squares = sum(v * v); \
                        (v, squares + eps * f32(n), max(v), min(f32(row - col) - v)) }";

const EPS: f32 = 2.0;

/// Elements before and after a vector of results.
const AROUND: usize = 5;

/// GEMM with operands in memory.
struct Launch<'l> {
    device: &'l Device,
    spec: &'l SgemmSpec,
    size: Size,
    count: Option<usize>,
    a: Buffer,
    b: Buffer,
    bias: Buffer,
}

impl Launch<'_> {
    /// Elements of C, and the results of all rows.
    fn run(&self, place: Place) -> Result<(Vec<f32>, [Vec<f32>; 3]), String> {
        let Self { device, spec, size: Size { m, n, k }, count, .. } = *self;
        let text = |error: gemm_runtime::Error| format!("`{spec}`: {error}");
        let kernel = Sgemm::<ByName>::new(spec.clone()).map_err(text)?;
        let view = |buffer, rows, cols| match count {
            Some(count) => MatrixRef::batch(buffer, count, rows, cols),
            None => MatrixRef::new(buffer, rows, cols),
        };
        let (rows_a, cols_a) = if spec.layout.transposes_a() { (k, m) } else { (m, k) };
        let (rows_b, cols_b) = if spec.layout.transposes_b() { (n, k) } else { (k, n) };
        let a = view(&self.a, rows_a, cols_a).map_err(text)?;
        let b = MatrixRef::new(&self.b, rows_b, cols_b).map_err(text)?;
        let a = if spec.layout.transposes_a() { a.t() } else { a };
        let b = if spec.layout.transposes_b() { b.t() } else { b };
        let rows = count.unwrap_or(1) * m;
        let mut memory = place.upload(device, None);
        let poison = vec![f32::from_bits(POISON); rows + 2 * AROUND];
        let mut results = [(); 3].map(|()| device.upload(&poison).expect("room"));
        {
            let mut slice = memory.slice_mut(place.before..).expect("inside");
            let mut c = match count {
                Some(count) => {
                    let apart = (count, place.distance);
                    MatrixMut::batch_apart(&mut slice, apart, m, n, place.pitch)
                }
                None => MatrixMut::pitched(&mut slice, m, n, place.pitch),
            }
            .map_err(text)?;
            let range = AROUND..AROUND + rows;
            let views = results.each_mut().map(|result| result.slice_mut(range.clone()));
            let [two, three, four] = views;
            let (mut two, mut three, mut four) =
                (two.map_err(text)?, three.map_err(text)?, four.map_err(text)?);
            let call = kernel.call(device).operand("bias", &self.bias).operand("eps", EPS);
            let call = call.operand("c2", &mut two).operand("c3", &mut three);
            call.operand("c4", &mut four).launch(&a, &b, &mut c).map_err(text)?;
        }
        let c = place.read(&device.download(&memory).map_err(text)?, "C")?;
        let mut found = [const { Vec::new() }; 3];
        for (found, result) in found.iter_mut().zip(&results) {
            let all = device.download(result).map_err(text)?;
            let (before, rest) = all.split_at(AROUND);
            let (inside, after) = rest.split_at(rows);
            if before.iter().chain(after).any(|value| value.to_bits() != POISON) {
                return Err(format!("`{spec}`: beside the results of rows, memory was written"));
            }
            *found = inside.to_vec();
        }
        Ok((c, found))
    }
}

/// Results of the rows of C, which has integers: no order of their sums rounds.
fn expected(c: &[f32], Size { m, n, .. }: Size, count: usize) -> [Vec<f32>; 3] {
    let mut all = [const { Vec::new() }; 3];
    for nth in 0..count * m {
        let row = &c[nth * n..(nth + 1) * n];
        let squares: f32 = row.iter().map(|v| v * v).sum();
        let from = |col: usize| (nth % m) as f32 - col as f32 - row[col];
        all[0].push(squares + EPS * n as f32);
        all[1].push(row.iter().copied().fold(f32::NEG_INFINITY, f32::max));
        all[2].push((0..n).map(from).fold(f32::INFINITY, f32::min));
    }
    all
}

/// Spec with the results of rows that [`run`] checks.
pub fn with_epilogue(spec: &SgemmSpec) -> SgemmSpec {
    spec.clone().epilogue(EPILOGUE.parse().expect("a sound epilogue"))
}

/// Launches a spec with results of rows: with integers, whose results are known, and twice with
/// fractions, in other places.
///
/// # Errors
/// Returns the first result that differs, or the error of a launch.
pub fn run(
    device: &Device,
    spec: &SgemmSpec,
    size: Size,
    count: Option<usize>,
    seed: u64,
) -> Result<(), String> {
    let mut draw = Random::new(seed);
    let spec = match count {
        Some(_) => spec.clone().scaled(false).batch(Batch::Strided),
        None => spec.clone().scaled(false),
    };
    let spec = with_epilogue(&spec);
    if spec.plan().is_err() {
        return Ok(()); // The operands need more registers than the thread tile leaves.
    }
    let Size { m, n, k } = size;
    let lens = [count.unwrap_or(1) * m * k, k * n, n];
    let mut integers =
        |len| -> Vec<f32> { (0..len).map(|_| (draw.bits() % 7) as f32 - 3.0).collect() };
    let upload = |values: Vec<f32>| device.upload(&values).expect("room");
    let [a, b, bias] = lens.map(|len| upload(integers(len)));
    let launch = Launch { device, spec: &spec, size, count, a, b, bias };
    let (c, found) = launch.run(Place::new(size, count, spec.pitched, &mut draw))?;
    let wanted = expected(&c, size, count.unwrap_or(1));
    for (nth, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
        if let Some(row) = (0..wanted.len()).find(|row| found[*row] != wanted[*row]) {
            let (found, wanted) = (found[row], wanted[row]);
            return Err(format!("`{spec}`: row {row} of c{} is {found}, not {wanted}", nth + 2));
        }
    }
    let [a, b, bias] = lens.map(|len| upload(values(draw.bits(), len)));
    let launch = Launch { a, b, bias, ..launch };
    let (_, first) = launch.run(Place::new(size, count, spec.pitched, &mut draw))?;
    let (_, second) = launch.run(Place::new(size, count, spec.pitched, &mut draw))?;
    for (nth, (first, second)) in first.iter().zip(&second).enumerate() {
        let differs = |row: &usize| first[*row].to_bits() != second[*row].to_bits();
        if let Some(row) = (0..first.len()).find(differs) {
            let (first, second) = (first[row], second[row]);
            let name = format!("row {row} of c{}", nth + 2);
            return Err(format!("`{spec}`: {name} is {first} in one place, {second} in another"));
        }
    }
    Ok(())
}
