//! `sgemm` has the semantics of BLAS on views of any layout.

mod epilogue;
mod gpu;

use gemm_oracle::random::Random;
use gemm_runtime::bounds::AsMatrixMut;
use gemm_runtime::{
    Buffer, Device, Error, MatrixList, MatrixListMut, MatrixMut, MatrixRef, Sgemm, SgemmCall,
    SgemmSpec, sgemm,
};
use libtest_mimic::Trial;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// NaN that no arithmetic produces.
const POISON: f32 = f32::from_bits(0x7fc0_dead);

/// Row-major or column-major matrix, or a batch of such matrices, with padding after each line and
/// between matrices.
#[derive(Clone, Debug)]
struct Stored {
    rows: usize,
    cols: usize,
    in_columns: bool,
    padding: usize,
    /// Batch size; `None` for a single matrix.
    count: Option<usize>,
    memory: Vec<f32>,
}

impl Stored {
    fn new(
        (rows, cols): (usize, usize),
        in_columns: bool,
        padding: usize,
        count: Option<usize>,
        mut value: impl FnMut() -> f32,
    ) -> Self {
        let mut this = Self { rows, cols, in_columns, padding, count, memory: Vec::new() };
        this.memory = vec![POISON; this.distance() * count.unwrap_or(1) + 1];
        for n in 0..count.unwrap_or(1) {
            for row in 0..rows {
                for col in 0..cols {
                    let at = this.at(n, row, col);
                    this.memory[at] = value();
                }
            }
        }
        this
    }

    fn lines(&self) -> (usize, usize) {
        if self.in_columns { (self.cols, self.rows) } else { (self.rows, self.cols) }
    }

    fn pitch(&self) -> usize {
        self.lines().1 + self.padding
    }

    fn distance(&self) -> usize {
        (self.lines().0 + 1) * self.pitch()
    }

    fn at(&self, n: usize, row: usize, col: usize) -> usize {
        let (line, place) = if self.in_columns { (col, row) } else { (row, col) };
        n * self.distance() + line * self.pitch() + place
    }

    /// Element of the matrix of GEMM `n` of the batch.
    fn element(&self, n: usize, row: usize, col: usize) -> f32 {
        self.memory[self.at(if self.count.is_some() { n } else { 0 }, row, col)]
    }

    /// Returns the matrix of each of `count` GEMMs.
    fn each<'a>(&self, buffer: &'a Buffer, count: usize) -> Vec<MatrixRef<'a>> {
        let (lines, line) = self.lines();
        let all = (lines + 1) * self.count.unwrap_or(1);
        let whole = MatrixRef::pitched(buffer, all, line, self.pitch()).expect("room");
        let view = |n| {
            let first = if self.count.is_some() { n * (lines + 1) } else { 0 };
            let view = whole.part(first..first + lines, 0..line).expect("inside");
            if self.in_columns { view.t() } else { view }
        };
        (0..count).map(view).collect()
    }

    fn view<'a>(&self, buffer: &'a Buffer) -> MatrixRef<'a> {
        let (lines, line) = self.lines();
        let view = match self.count {
            Some(count) => {
                MatrixRef::batch_apart(buffer, (count, self.distance()), lines, line, self.pitch())
            }
            None => MatrixRef::pitched(buffer, lines, line, self.pitch()),
        };
        let view = view.expect("the memory holds it");
        if self.in_columns { view.t() } else { view }
    }
}

/// Passes the GEMM of stored matrices to `run`. If C is a batch and `listed` is true, the matrices
/// are in pointer lists.
fn call<T>(
    device: &Device,
    [a, b, c]: [&Stored; 3],
    (a_memory, b_memory, c_memory): (&Buffer, &Buffer, &mut Buffer),
    listed: bool,
    run: impl FnOnce(SgemmCall<'_>) -> T,
) -> T {
    let (lines, line) = c.lines();
    if let Some(count) = c.count.filter(|_| listed) {
        // A matrix that all GEMMs share is repeated in the list.
        let (in_a, in_b) = (a.each(a_memory, count), b.each(b_memory, count));
        let lists = (MatrixList::new(device, &in_a), MatrixList::new(device, &in_b));
        let (in_a, in_b) = (lists.0.expect("alike"), lists.1.expect("alike"));
        // The matrices of C are rows of one tall matrix, and each C starts at a row.
        let pitch = c.pitch().max(1);
        let firsts = (0..count).map(|n| (n * (lines + 1), 0));
        let whole = MatrixMut::pitched(c_memory, count * (lines + 1), line, pitch);
        let mut whole = whole.expect("room");
        let list = MatrixListMut::parts(device, &mut whole, (lines, line), firsts);
        let mut list = list.expect("apart");
        let mut view = list.as_matrix_mut();
        let mut view = if c.in_columns { view.t() } else { view.as_matrix_mut() };
        return run(sgemm(&in_a, &in_b, &mut view));
    }
    let view = match c.count {
        Some(count) => {
            MatrixMut::batch_apart(c_memory, (count, c.distance()), lines, line, c.pitch())
        }
        None => MatrixMut::pitched(c_memory, lines, line, c.pitch()),
    };
    let mut view = view.expect("the memory holds it");
    let mut view = if c.in_columns { view.t() } else { view };
    let (a, b) = (a.view(a_memory), b.view(b_memory));
    run(sgemm(&a, &b, &mut view))
}

/// Random numbers from −1 to 1.
fn uniform(seed: u64) -> impl FnMut() -> f32 {
    let mut random = Random::new(seed);
    move || (random.bits() >> 40) as f32 / (1 << 23) as f32 - 1.0
}

fn extent() -> impl Strategy<Value = usize> {
    let small = prop_oneof![Just(0), Just(1), Just(2), Just(3), Just(5), Just(9)];
    prop_oneof![4 => small, 2 => 31..=33usize, 2 => 63..=65usize, 1 => 127..=129usize]
}

fn factor() -> impl Strategy<Value = f32> {
    prop::sample::select(vec![0.0, 1.0, 0.7, -1.3, f32::NAN, f32::INFINITY])
}

proptest! {
    #![proptest_config(gemm_cases::cases(96))]

    /// The componentwise error is within 2·K·ε·|alpha|·(|A||B|) plus the rounding of the scaling,
    /// for any layout.
    fn it_is_what_blas_documents(
        (m, n, k) in (extent(), extent(), extent()),
        (alpha, beta) in (factor(), factor()),
        lies in [
            (any::<bool>(), 0..5usize),
            (any::<bool>(), 0..5usize),
            (any::<bool>(), 0..5usize),
        ],
        batch in proptest::option::of(0..4usize),
        shared: [bool; 2],
        listed: bool,
        seed: u64,
    ) {
        let mut next = uniform(seed);
        let count = |shared: bool| batch.filter(|_| !shared);
        let a = Stored::new((m, k), lies[0].0, lies[0].1, count(shared[0]), &mut next);
        let b = Stored::new((k, n), lies[1].0, lies[1].1, count(shared[1]), &mut next);
        let unread = beta == 0.0;
        let old = || if unread { POISON } else { next() };
        let c = Stored::new((m, n), lies[2].0, lies[2].1, batch, old);

        let device = Device::simulator();
        let upload = |stored: &Stored| device.upload(&stored.memory).expect("room");
        let (a_memory, b_memory, mut c_memory) = (upload(&a), upload(&b), upload(&c));
        let memory = (&a_memory, &b_memory, &mut c_memory);
        let launched = call(&device, [&a, &b, &c], memory, listed, |call| {
            call.alpha(alpha).beta(beta).run(&device)
        });
        launched.map_err(|error| TestCaseError::fail(error.to_string()))?;
        let found = device.download(&c_memory).expect("ours");

        let mut beside = vec![true; found.len()];
        for product in 0..batch.unwrap_or(1) {
            for row in 0..m {
                for col in 0..n {
                    let at = c.at(product, row, col);
                    beside[at] = false;
                    let terms = (0..k).map(|p| {
                        let (a, b) = (a.element(product, row, p), b.element(product, p, col));
                        f64::from(a) * f64::from(b)
                    });
                    let (sum, magnitude) =
                        terms.fold((0.0, 0.0), |(sum, of), term| (sum + term, of + f64::abs(term)));
                    let (alpha, beta) = (f64::from(alpha), f64::from(beta));
                    let product = if alpha == 0.0 || k == 0 { 0.0 } else { alpha * sum };
                    let kept = if beta == 0.0 { 0.0 } else { beta * f64::from(c.memory[at]) };
                    let (found, expected) = (f64::from(found[at]), product + kept);
                    let scale = if product == 0.0 { 0.0 } else { f64::abs(alpha) * magnitude };
                    let unit = f64::from(f32::EPSILON) / 2.0;
                    let allowed = (2.0 * k as f64 + 3.0) * unit * scale
                        + 3.0 * unit * (kept.abs() + expected.abs());
                    let close = (found - expected).abs() <= allowed + 1e-40;
                    let same = found == expected || (found.is_nan() && expected.is_nan());
                    prop_assert!(close || same, "C[{row}][{col}] is {found}, not {expected}");
                }
            }
        }
        let same = |found: &[f32], before: &[f32]| {
            found.iter().zip(before).position(|(found, before)| found.to_bits() != before.to_bits())
        };
        for (at, beside) in beside.iter().enumerate().filter(|(_, beside)| **beside) {
            prop_assert!(*beside && found[at].to_bits() == POISON.to_bits(), "element {at} beside \
                C was written");
        }
        for (name, memory, stored) in [("A", &a_memory, &a), ("B", &b_memory, &b)] {
            let found = device.download(memory).expect("ours");
            prop_assert_eq!(same(&found, &stored.memory), None, "{} was changed", name);
        }
    }
}

/// Every spec that `sgemm` may choose has a plan and accepts the views.
fn every_line_is_sound() {
    let device = Device::simulator();
    let memory = device.alloc(140 * 140 * 2).expect("room");
    let mut lines = BTreeSet::new();
    for extent in [8, 16, 32, 64, 128, 129] {
        for bits in 0..64_u32 {
            let bit = |n: u32| bits & (1 << n) != 0;
            let view = |in_columns: bool| {
                let pitch = if bit(3) { extent + 4 } else { extent };
                let batch =
                    || MatrixRef::batch_apart(&memory, (2, extent * pitch), extent, extent, pitch);
                let one = || MatrixRef::pitched(&memory, extent, extent, pitch);
                let view = if bit(4) { batch() } else { one() }.expect("room");
                if in_columns { view.t() } else { view }
            };
            let mut c = device.alloc(140 * 140 * 2).expect("room");
            let c = if bit(4) {
                MatrixMut::batch(&mut c, 2, extent, extent)
            } else {
                MatrixMut::new(&mut c, extent, extent)
            };
            let mut c = c.expect("room");
            let mut c = if bit(2) { c.t() } else { c };
            let (a, b) = (view(bit(0)), view(bit(1)));
            let call = sgemm(&a, &b, &mut c).beta(if bit(5) { 0.5 } else { 0.0 });
            let line = call.spec(&device).expect("views that fit").to_string();
            let spec: SgemmSpec = line.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
            assert_eq!((spec.scaled, spec.batch.is_some(), spec.pitched), (bit(5), bit(4), bit(3)));
            let turned = bit(2);
            let expected = if turned { (!bit(1), !bit(0)) } else { (bit(0), bit(1)) };
            assert_eq!(
                (spec.layout.transposes_a(), spec.layout.transposes_b()),
                expected,
                "{line}"
            );
            match bit(5) {
                true => {
                    drop(Sgemm::<(f32, f32)>::new(spec).unwrap_or_else(|e| panic!("{line}: {e}")))
                }
                false => drop(Sgemm::<()>::new(spec).unwrap_or_else(|e| panic!("{line}: {e}"))),
            }
            lines.insert(line);
        }
    }
    assert!(lines.len() > 60, "{}", lines.len());
}

/// A row with an element stride is the transpose of a column.
fn a_row_may_be_a_column_of_a_wider_matrix() {
    let device = Device::simulator();
    let memory = device.upload(&[1.0, 0.0, 0.0, 2.0, 0.0, 0.0, 3.0]).expect("room");
    let (ones, mut room) =
        (device.upload(&[1.0; 9]).expect("room"), device.alloc(9).expect("room"));
    let column = MatrixRef::pitched(&memory, 3, 1, 3).expect("inside");
    let ones = MatrixRef::new(&ones, 3, 3).expect("as many");
    let mut c = MatrixMut::new(&mut room, 1, 3).expect("room");
    sgemm(&column.t(), &ones, &mut c).run(&device).expect("it lies in columns");
    assert_eq!(device.download(&c).expect("ours"), [6.0; 3]);
}

/// A call launches the kernel that it reports, both for row-major and column-major C. The extents
/// and layouts in the test differ.
fn a_call_takes_the_kernel_that_it_says() {
    let device = Device::simulator();
    let memory = device.upload(&[1.0; 400]).expect("room");
    let mut kernels = BTreeSet::new();
    for (m, n, k) in [(2, 100, 3), (100, 2, 3), (9, 20, 11), (20, 9, 11), (1, 60, 5), (60, 1, 5)] {
        for bits in 0..8_u32 {
            let view = |rows, cols, bit: u32| match bits & (1 << bit) != 0 {
                false => MatrixRef::new(&memory, rows, cols).expect("room"),
                true => MatrixRef::new(&memory, cols, rows).expect("room").t(),
            };
            let (a, b) = (view(m, k, 0), view(k, n, 1));
            let mut room = device.alloc(m * n).expect("room");
            let in_columns = bits & 4 != 0;
            let (rows, cols) = if in_columns { (n, m) } else { (m, n) };
            let mut c = MatrixMut::new(&mut room, rows, cols).expect("room");
            let mut c = if in_columns { c.t() } else { c };
            let spec = sgemm(&a, &b, &mut c).spec(&device).expect("views that fit");
            let line = sgemm(&a, &b, &mut c).choice(&device).expect("views that fit").spec;
            assert_eq!(line, spec.to_string());
            let launched = sgemm(&a, &b, &mut c).run(&device).expect("views that fit");
            let kernel = launched.steps().next().expect("a launch").kernel().to_owned();
            assert_eq!(kernel, spec.kernel_name(), "{m}x{n}x{k}, {bits:03b}");
            kernels.insert(kernel);
        }
    }
    assert_eq!(kernels.len(), 4, "{kernels:?}");
}

/// Pointer lists use the same specs as strided batches, except for the value of the key `batch`.
fn the_line_of_lists_is_that_of_batches() {
    let device = Device::simulator();
    let memory = device.alloc(140 * 140 * 2).expect("room");
    for (extent, pitch) in [(8, 8), (16, 20), (32, 32), (64, 68), (128, 128), (129, 132)] {
        for bits in 0..16_u32 {
            let bit = |n: u32| bits & (1 << n) != 0;
            let beta = if bit(3) { 0.5 } else { 0.0 };
            let batch = MatrixRef::batch_apart(&memory, (2, extent * pitch), extent, extent, pitch);
            let (one, batch) =
                (MatrixRef::pitched(&memory, extent, extent, pitch), batch.expect("room"));
            let one = one.expect("room");
            let list = MatrixList::new(&device, [&one, &one]).expect("alike");
            let [a, b] = [bit(0), bit(1)].map(|t| if t { batch.t() } else { batch.t().t() });
            let [list_a, list_b] =
                [bit(0), bit(1)].map(|t| if t { list.t() } else { list.t().t() });
            let mut room = device.alloc(140 * 140 * 2).expect("room");
            let expected = {
                let to =
                    MatrixMut::batch_apart(&mut room, (2, extent * pitch), extent, extent, pitch);
                let mut to = to.expect("room");
                let mut to = if bit(2) { to.t() } else { to };
                sgemm(&a, &b, &mut to).beta(beta).spec(&device).expect("views that fit").to_string()
            };
            let mut whole = MatrixMut::pitched(&mut room, 2 * extent, extent, pitch).expect("room");
            let (of, firsts) = ((extent, extent), [(0, 0), (extent, 0)]);
            let mut to = MatrixListMut::parts(&device, &mut whole, of, firsts).expect("apart");
            let mut to = if bit(2) { to.t() } else { to.as_matrix_mut() };
            let line = sgemm(&list_a, &list_b, &mut to)
                .beta(beta)
                .spec(&device)
                .expect("lists that fit")
                .to_string();
            assert_eq!(line, expected.replace("batch: strided", "batch: pointers"));
            assert!(line.contains("batch: pointers"), "{line}");
        }
    }
}

fn views_that_do_not_fit_are_told_by_the_callers_names() {
    let device = Device::simulator();
    let (memory, mut room) = (device.alloc(64).expect("room"), device.alloc(64).expect("room"));
    let view = |rows, cols| MatrixRef::new(&memory, rows, cols).expect("room");
    let mut c = MatrixMut::new(&mut room, 4, 5).expect("room");
    // C is column-major, so A and B are swapped internally. Errors name the caller's operands
    // nevertheless.
    let refused = sgemm(&view(5, 3), &view(2, 4), &mut c.t()).run(&device);
    assert!(
        matches!(&refused, Err(Error::Extents { first, other, .. })
            if (first.0.as_str(), first.1, other.0.as_str(), other.1) == ("a", 3, "b", 2)),
        "{refused:?}"
    );
    // Errors that the launch finds also name the caller's operands.
    let elsewhere = Device::simulator().alloc(64).expect("room");
    let of_other = MatrixRef::new(&elsewhere, 3, 4).expect("room");
    let mut columns = c.t();
    let refused = sgemm(&view(5, 3), &of_other, &mut columns).run(&device);
    assert!(
        matches!(&refused, Err(Error::WrongDevice { argument, .. }) if argument == "b"),
        "{refused:?}"
    );
    let wide = device.alloc_matrix(4, 16).expect("room");
    let scattered = wide.view().part(0..4, 0..4).expect("inside");
    let batch = MatrixRef::batch_apart(&memory, (2, 1), 4, 4, 8).expect("room");
    assert!(sgemm(&scattered, &view(4, 5), &mut c).run(&device).is_ok());
    assert!(matches!(sgemm(&batch, &view(4, 5), &mut c).run(&device), Err(Error::Extents { .. })));
}

pub fn trials() -> Vec<Trial> {
    let trials = simulated![
        it_is_what_blas_documents,
        every_line_is_sound,
        a_row_may_be_a_column_of_a_wider_matrix,
        a_call_takes_the_kernel_that_it_says,
        the_line_of_lists_is_that_of_batches,
        views_that_do_not_fit_are_told_by_the_callers_names,
    ];
    [trials, epilogue::trials(), gpu::trials()].into_iter().flatten().collect()
}
