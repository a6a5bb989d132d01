//! Batches of typed matrices, and groups of their rows. Sums are exact, and memory beside the
//! matrices is NaN.

use super::Rounded;
use gemm_dsl::spec::{Batch, Bounds, Epilogue, GemmLayout, MatrixType, SgemmSpec};
use gemm_oracle::product::Size;
use gemm_oracle::random::Random;
use gemm_runtime::half::{bf16, f16};
use gemm_runtime::{
    Buffer, BufferView, ByName, Device, Error, Gemm, LaunchReport, MatrixMut, MatrixRef,
};
use gemm_tests::product::accepted;
use gemm_tests::{arbitrary, simulator};
use libtest_mimic::{Failed, Trial};
use proptest::prelude::*;

/// Matrices along the axes of a batch. Cells outside of them are NaN.
struct Stack {
    /// Number of matrices along each axis, and the distance between neighbours.
    axes: Vec<(usize, usize)>,
    rows: usize,
    cols: usize,
    by_column: bool,
    pitch: usize,
    before: usize,
    cells: Vec<f64>,
}

/// What the places of a batch's matrices may be.
#[derive(Clone, Copy)]
struct Places {
    is_pitched: bool,
    /// All addresses and strides are multiples of 16 bytes.
    is_aligned: bool,
    /// Matrices may repeat.
    may_repeat: bool,
}

impl Stack {
    fn draw(
        random: &mut Random,
        counts: &[usize],
        [rows, cols]: [usize; 2],
        by_column: bool,
        places: Places,
    ) -> Self {
        let mut next = |most: usize| random.bits() as usize % most;
        let Places { is_pitched, is_aligned, may_repeat } = places;
        let up = |len: usize| if is_aligned { len.next_multiple_of(16) } else { len };
        let (lines, line) = if by_column { (cols, rows) } else { (rows, cols) };
        let own = if is_pitched { up(line + next(9)) } else { line };
        let is_beside = is_pitched && next(3) == 0;
        let last = counts.last().copied().unwrap_or(1).max(1);
        let pitch = if is_beside { own * last } else { own };
        let is_shared = may_repeat && next(5) == 0;
        let repeats = if may_repeat { next(2 * counts.len().max(1)) } else { counts.len() };
        let mut span = lines * pitch;
        let mut axes: Vec<(usize, usize)> = Vec::new();
        for (axis, &count) in counts.iter().enumerate().rev() {
            let distance = match is_beside && axes.is_empty() {
                true => own,
                false => {
                    let distance = up(span + next(9));
                    span = distance * count.max(1);
                    distance
                }
            };
            axes.push((count, if axis == repeats { 0 } else { distance }));
        }
        axes.reverse();
        if is_shared {
            axes.clear();
        }
        let before = if is_aligned { 16 * next(3) } else { next(9) };
        let cells = vec![f64::NAN; before + span + 16];
        Self { axes, rows, cols, by_column, pitch, before, cells }
    }

    /// Cell of an element of a GEMM's matrix.
    fn at(&self, index: &[usize], row: usize, col: usize) -> usize {
        let [line, place] = if self.by_column { [col, row] } else { [row, col] };
        let apart = self.axes.iter().zip(index).map(|((_, distance), i)| distance * i);
        self.before + apart.sum::<usize>() + line * self.pitch + place
    }

    /// Fills the matrices of these GEMMs with integers.
    fn fill(&mut self, random: &mut Random, items: &[Vec<usize>]) {
        for item in items {
            for (row, col) in (0..self.rows).flat_map(|row| (0..self.cols).map(move |c| (row, c))) {
                let at = self.at(item, row, col);
                self.cells[at] = f64::from(random.bits() as u32 % 9) - 4.0;
            }
        }
    }

    fn upload<T: Rounded>(&self, device: &Device) -> Result<Buffer<T>, Error> {
        let cells: Vec<T> = self.cells.iter().map(|cell| T::rounded(*cell)).collect();
        device.upload_of(&cells)
    }

    fn view<'b, T: Rounded>(&self, from: &'b BufferView<'_, T>) -> Result<MatrixRef<'b, T>, Error> {
        let (lines, line) = match self.by_column {
            true => (self.cols, self.rows),
            false => (self.rows, self.cols),
        };
        let pitch = self.pitch;
        let view = match self.axes[..] {
            [] => MatrixRef::pitched(from, lines, line, pitch),
            [a] => MatrixRef::batch_axes(from, [a], lines, line, pitch),
            [a, b] => MatrixRef::batch_axes(from, [a, b], lines, line, pitch),
            [a, b, c, ..] => MatrixRef::batch_axes(from, [a, b, c], lines, line, pitch),
        }?;
        Ok(if self.by_column { view.t() } else { view })
    }
}

/// Index along each axis of all GEMMs; the last axis varies fastest.
fn items(counts: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for &count in counts {
        let longer = |item: Vec<usize>| {
            (0..count).map(move |i| item.iter().copied().chain([i]).collect::<Vec<_>>())
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    all
}

const EPILOGUE: &str = "|acc, f[batch], bias[batch, n]| acc * f + bias";

/// Batch or groups with their matrices, vectors of an epilogue, and the expected C.
struct Operands {
    a: Stack,
    b: Stack,
    c: Stack,
    f: Vec<f32>,
    bias: Vec<f32>,
    /// First row of each group, and the row after the last group.
    offsets: Option<Vec<u32>>,
    expected: Vec<f64>,
}

/// GEMMs of a batch along these axes, or groups with these numbers of rows.
#[derive(Clone, Copy, Debug)]
enum Shape<'s> {
    Batch { counts: &'s [usize], size: Size },
    Groups { before: usize, rows: &'s [usize], after: usize, n: usize, k: usize },
}

impl Operands {
    fn draw(random: &mut Random, spec: &SgemmSpec, shape: Shape<'_>, is_aligned: bool) -> Self {
        let [by_column_a, by_column_b] = [spec.layout.transposes_a(), spec.layout.transposes_b()];
        let draw = |random: &mut Random, counts: &[usize], dims, by_column, may_repeat| {
            let places = Places { is_pitched: spec.pitched, is_aligned, may_repeat };
            Stack::draw(random, counts, dims, by_column, places)
        };
        let (counts, of_rows, size, offsets) = match shape {
            Shape::Batch { counts, size } => (counts.to_vec(), counts.to_vec(), size, None),
            Shape::Groups { before, rows, after, n, k } => {
                let mut offsets = vec![before as u32];
                for rows in rows {
                    offsets.push(offsets[offsets.len() - 1] + *rows as u32);
                }
                let m = before + rows.iter().sum::<usize>() + after;
                (vec![rows.len()], Vec::new(), Size::new(m, n, k), Some(offsets))
            }
        };
        let Size { m, n, k } = size;
        let mut a = draw(random, &of_rows, [m, k], by_column_a, offsets.is_none());
        let mut b = draw(random, &counts, [k, n], by_column_b, true);
        let c = draw(random, &of_rows, [m, n], false, false);
        let (all, rows_of_all) = (items(&counts), items(&of_rows));
        a.fill(random, &rows_of_all);
        b.fill(random, &all);
        let mut vector = |len: usize| -> Vec<f32> {
            (0..len).map(|_| (random.bits() % 5) as f32 - 2.0).collect()
        };
        let (f, bias) = (vector(all.len()), vector(all.len() * n));
        let has_epilogue = spec.epilogue.is_some();
        let mut expected = c.cells.clone();
        for (nth, item) in all.iter().enumerate() {
            let rows = match &offsets {
                None => 0..m,
                Some(offsets) => offsets[nth] as usize..offsets[nth + 1] as usize,
            };
            let of_rows: &[usize] = if offsets.is_none() { item } else { &[] };
            for (row, col) in rows.flat_map(|row| (0..n).map(move |col| (row, col))) {
                let product = |i| a.cells[a.at(of_rows, row, i)] * b.cells[b.at(item, i, col)];
                let sum: f64 = (0..k).map(product).sum();
                let [f, bias] = [f[nth], bias[nth * n + col]].map(f64::from);
                let at = c.at(of_rows, row, col);
                expected[at] = if has_epilogue { sum * f + bias } else { sum };
            }
        }
        Self { a, b, c, f, bias, offsets, expected }
    }

    fn launch<T: Rounded, R: Rounded>(
        &self,
        device: &Device,
        spec: &SgemmSpec,
    ) -> Result<(Vec<R>, LaunchReport), Error> {
        let kernel = Gemm::<T, T, R, ByName>::new(spec.clone())?;
        let (a, b) = (self.a.upload::<T>(device)?, self.b.upload::<T>(device)?);
        let mut c = self.c.upload::<R>(device)?;
        let (a, b) = (a.slice(self.a.before..a.len())?, b.slice(self.b.before..b.len())?);
        let (a, b) = (self.a.view(&a)?, self.b.view(&b)?);
        let f = device.upload(&self.f)?;
        let bias = device.upload(&self.bias)?;
        let bias = MatrixRef::new(&bias, self.f.len(), self.c.cols)?;
        let offsets = self.offsets.as_ref().map(|offsets| device.upload_of(offsets)).transpose()?;
        let mut call = kernel.call(device);
        if spec.epilogue.is_some() {
            call = call.operand("f", &f).operand("bias", &bias);
        }
        if let Some(offsets) = &offsets {
            call = call.groups(offsets);
        }
        let Stack { rows, cols, pitch, before, .. } = self.c;
        let report = {
            let len = c.len();
            let mut part = c.slice_mut(before..len)?;
            let mut view = match self.c.axes[..] {
                [] => MatrixMut::pitched(&mut part, rows, cols, pitch),
                [a] => MatrixMut::batch_axes(&mut part, [a], rows, cols, pitch),
                [a, b] => MatrixMut::batch_axes(&mut part, [a, b], rows, cols, pitch),
                [a, b, c, ..] => MatrixMut::batch_axes(&mut part, [a, b, c], rows, cols, pitch),
            }?;
            call.launch(&a, &b, &mut view)?
        };
        Ok((device.download(&c)?, report))
    }

    /// Launches the spec, and compares all cells of C. Returns true if `wgmma` computed it.
    fn check<T: Rounded, R: Rounded>(
        &self,
        device: &Device,
        spec: &SgemmSpec,
    ) -> Result<bool, String> {
        let (found, report) = self.launch::<T, R>(device, spec).map_err(|e| e.to_string())?;
        for (at, (found, exact)) in found.iter().zip(&self.expected).enumerate() {
            let expected = R::rounded(*exact);
            #[expect(clippy::eq_op, reason = "a NaN is not equal to itself")]
            let is_right = *found == expected || (found != found && exact.is_nan());
            if !is_right {
                let (before, axes, pitch) = (self.c.before, &self.c.axes, self.c.pitch);
                let places = format!("C begins at {before}, axes {axes:?}, pitch {pitch}");
                return Err(format!("cell {at} is {found:?}, not {exact}; {places}"));
            }
        }
        let steps: Vec<_> = report.steps().collect();
        Ok(!steps.is_empty() && steps.iter().all(|step| !step.kernel().ends_with("_f32")))
    }
}

/// Computes the batch or the groups with the types of the spec.
fn check(
    device: &Device,
    spec: &SgemmSpec,
    shape: Shape<'_>,
    seed: u64,
    is_aligned: bool,
) -> Result<bool, String> {
    let operands = Operands::draw(&mut Random::new(seed), spec, shape, is_aligned);
    macro_rules! with {
        ($a:ty) => {
            match spec.c {
                MatrixType::F64 => operands.check::<$a, f64>(device, spec),
                MatrixType::F16 => operands.check::<$a, f16>(device, spec),
                MatrixType::Bf16 => operands.check::<$a, bf16>(device, spec),
                _ => operands.check::<$a, f32>(device, spec),
            }
        };
    }
    let found = match spec.a {
        MatrixType::F64 => with!(f64),
        MatrixType::F16 => with!(f16),
        MatrixType::Bf16 => with!(bf16),
        _ => with!(f32),
    };
    found.map_err(|error| format!("`{spec}`, {shape:?}, seed {seed}: {error}"))
}

/// The spec with an epilogue, if it takes one.
fn with_epilogue(spec: SgemmSpec, wants: bool) -> SgemmSpec {
    let epilogue = || EPILOGUE.parse::<Epilogue>().ok().filter(|_| wants);
    let with = epilogue().map(|epilogue| spec.clone().epilogue(epilogue));
    with.filter(|spec| spec.plan().is_ok()).unwrap_or(spec)
}

/// Spec for groups, without the keys that do not compose with them.
fn of_groups(spec: SgemmSpec) -> Option<SgemmSpec> {
    let layout = GemmLayout::from_columns([false, spec.layout.transposes_b()]);
    let pitched = spec.pitched;
    let mut spec = spec.for_matrices(layout, pitched).split_k(1).stream_k(false).products(1);
    spec.bounds = Bounds::Guarded;
    let spec = spec.batch(Batch::Grouped);
    spec.plan().is_ok().then_some(spec)
}

fn count() -> impl Strategy<Value = usize> {
    prop_oneof![1 => Just(0usize), 12 => 1..4usize]
}

/// True in three of four cases.
fn mostly() -> impl Strategy<Value = bool> {
    prop_oneof![3 => Just(true), 1 => Just(false)]
}

fn extent(most: usize) -> impl Strategy<Value = usize> {
    prop_oneof![0..most, (0..most / 8).prop_map(|extent| 8 * extent)]
}

proptest! {
    #![proptest_config(gemm_cases::cases(300))]

    fn batches_are_exact(
        spec in arbitrary::typed_floats(256),
        counts in proptest::collection::vec(count(), 1..=3usize),
        more in 0..2usize,
        (m, n, k) in (0..40usize, extent(40), extent(90)),
        (seed, aligned, wants) in (any::<u64>(), mostly(), any::<bool>()),
    ) {
        let kinds = [Batch::Strided, Batch::Strided2, Batch::Strided3];
        let kind = kinds[(counts.len() - 1 + more).min(2)];
        let spec = with_epilogue(spec.batch(kind), wants);
        let size = accepted(&spec, Size::new(m, n, k));
        let counts: Vec<usize> = counts.iter().map(|count| match spec.bounds {
            Bounds::Aligned => count.next_multiple_of(spec.products.max(1) as usize),
            _ => *count,
        }).collect();
        let aligned = aligned || spec.bounds == Bounds::Aligned;
        let shape = Shape::Batch { counts: &counts, size };
        check(&simulator(), &spec, shape, seed, aligned).map_err(TestCaseError::fail)?;
    }

    fn groups_are_exact(
        spec in arbitrary::typed_floats(256).prop_filter_map("keys do not compose", of_groups),
        (before, after) in (0..3usize, 0..9usize),
        rows in proptest::collection::vec(prop_oneof![0..3usize, 0..150usize], 0..6usize),
        (n, k) in (extent(40), extent(90)),
        (seed, aligned, wants) in (any::<u64>(), mostly(), any::<bool>()),
    ) {
        let spec = with_epilogue(spec, wants);
        let shape = Shape::Groups { before: 20 * before, rows: &rows, after, n, k };
        check(&simulator(), &spec, shape, seed, aligned).map_err(TestCaseError::fail)?;
    }
}

/// Kernels on tensor cores compute aligned batches and groups, with each way of copying tiles.
fn tensor_cores_compute_aligned_batches() {
    let device = simulator();
    let mut nth = 0;
    for keys in super::WARPGROUPS {
        for batch in [Batch::Strided, Batch::Strided2, Batch::Strided3, Batch::Grouped] {
            nth += 1;
            // Groups have a row-major A.
            let layout = match batch {
                Batch::Grouped => [GemmLayout::Nn, GemmLayout::Nt][nth / 4 % 2],
                _ => GemmLayout::ALL[(nth + nth / 4) % 4],
            };
            let line = format!("a: bf16, b: bf16, layout: {layout}, arith: bf16, {keys}");
            let spec = line.parse::<SgemmSpec>().expect("a sound spec");
            let c = [MatrixType::F32, MatrixType::Bf16][nth % 2];
            let spec = with_epilogue(spec.c(c).batch(batch), nth % 3 == 0);
            if spec.plan().is_err() {
                assert!(batch == Batch::Grouped && keys.contains("split_k"), "`{spec}`");
                continue;
            }
            let counts = [2, 1, 3];
            let counts = &counts[..batch.axes().min(3)];
            let (n, k) = [(80, 144), (136, 64)][nth % 2];
            let shape = match batch {
                Batch::Grouped => {
                    let rows = &[1, 0, 130, 64, 0, 3];
                    Shape::Groups { before: 5, rows, after: 2, n, k }
                }
                // A column-major A has rows of M elements.
                _ => Shape::Batch { counts, size: Size::new(72, n, k) },
            };
            match check(&device, &spec, shape, nth as u64, true) {
                Ok(by_wgmma) => assert!(by_wgmma, "`{spec}` ran on CUDA cores"),
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Batches with a distance that no tensor map has run on CUDA cores.
fn other_batches_run_on_cuda_cores() {
    let device = simulator();
    let line = "a: bf16, b: bf16, c: f32, layout: nt, arith: bf16, tile: 64x64x64, mma: wgmma, \
                copy: tma, pitched, batch: strided";
    let spec = line.parse::<SgemmSpec>().expect("a sound spec");
    let shape = Shape::Batch { counts: &[3], size: Size::new(5, 9, 8) };
    let mut operands = Operands::draw(&mut Random::new(1), &spec, shape, true);
    assert_eq!(operands.check::<bf16, f32>(&device, &spec), Ok(true));
    operands.a.axes = vec![(3, operands.a.rows * operands.a.pitch + 1)];
    operands.a.cells = vec![f64::NAN; 3 * operands.a.rows * operands.a.pitch + 99];
    operands.a.fill(&mut Random::new(2), &items(&[3]));
    let found = operands.launch::<bf16, f32>(&device, &spec).expect("any distance");
    assert!(found.1.steps().all(|step| step.kernel().ends_with("_f32")));
}

/// Offsets of any values lead to no access outside the matrices. The simulator reports such
/// accesses as faults.
fn wrong_offsets_reach_nothing_else() {
    let device = simulator();
    let mut random = Random::new(7);
    let all = super::WARPGROUPS.into_iter().filter(|keys| !keys.contains("split_k"));
    for (nth, keys) in all.cycle().take(gemm_cases::scaled(80)).enumerate() {
        let layout = [GemmLayout::Nn, GemmLayout::Nt][nth % 2];
        let line = format!("a: bf16, b: bf16, layout: {layout}, arith: bf16, {keys}");
        let spec = line.parse::<SgemmSpec>().expect("a sound spec").batch(Batch::Grouped);
        let rows = [40, 3, 0, 100];
        let shape = Shape::Groups { before: 0, rows: &rows, after: 9, n: 72, k: 64 };
        let mut operands = Operands::draw(&mut random, &spec, shape, true);
        let mut offset = || match random.bits() % 4 {
            0 => random.bits() as u32,
            1 => u32::MAX,
            _ => (random.bits() % 155) as u32,
        };
        let offsets: Vec<u32> = (0..=rows.len()).map(|_| offset()).collect();
        operands.offsets = Some(offsets.clone());
        let found = match operands.launch::<bf16, f32>(&device, &spec) {
            Ok((found, _)) => found,
            Err(error) => {
                // Two groups may have a row.
                assert!(error.to_string().contains("race"), "`{spec}`, {offsets:?}: {error}");
                continue;
            }
        };
        let Stack { rows, cols, .. } = operands.c;
        let mut beside = vec![true; found.len()];
        for (row, col) in (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col))) {
            beside[operands.c.at(&[], row, col)] = false;
        }
        let written = found.iter().zip(beside).position(|(cell, beside)| beside && !cell.is_nan());
        assert_eq!(written, None, "`{spec}`, {offsets:?}");
    }
}

/// Random batches and groups on a GPU.
fn on_gpu(device: &Device, spec: &SgemmSpec, seed: u64) -> Result<(), Failed> {
    let mut spec = spec.clone();
    let size = |spec: &SgemmSpec, m, n, k| accepted(spec, Size::new(m, n, k));
    for (counts, (m, n, k)) in
        [(&[5][..], (130, 72, 64)), (&[2, 3], (33, 256, 104)), (&[2, 1, 3], (70, 64, 200))]
    {
        let kinds = [Batch::Strided, Batch::Strided2, Batch::Strided3];
        spec = with_epilogue(spec.batch(kinds[counts.len() - 1]), seed.is_multiple_of(2));
        let whole: Vec<usize> = match spec.bounds {
            Bounds::Aligned => counts
                .iter()
                .map(|n: &usize| n.next_multiple_of(spec.products.max(1) as usize))
                .collect(),
            _ => counts.into(),
        };
        let shape = Shape::Batch { counts: &whole, size: size(&spec, m, n, k) };
        check(device, &spec, shape, seed, true)?;
    }
    spec.epilogue = None;
    let Some(spec) = of_groups(spec) else { return Ok(()) };
    let spec = with_epilogue(spec, seed.is_multiple_of(2));
    let mut draw = Random::new(seed);
    for (n, k) in [(72, 64), (256, 200)] {
        let rows: Vec<usize> =
            (0..40).map(|_| (draw.bits() % 300) as usize * (draw.bits() % 2) as usize).collect();
        let shape = Shape::Groups { before: 3, rows: &rows, after: 7, n, k };
        check(device, &spec, shape, seed, true)?;
    }
    Ok(())
}

pub fn trials() -> Vec<Trial> {
    let specs = arbitrary::sample(arbitrary::typed_floats(1024), gemm_cases::scaled(64));
    let on_gpus = specs.into_iter().enumerate().map(|(nth, spec)| {
        let name = format!("typed::batches::{nth:02}");
        crate::trial(name, move |device| on_gpu(device, &spec, nth as u64))
    });
    let all = simulated![
        batches_are_exact,
        groups_are_exact,
        tensor_cores_compute_aligned_batches,
        other_batches_run_on_cuda_cores,
        wrong_offsets_reach_nothing_else,
    ];
    all.into_iter().chain(on_gpus).collect()
}
