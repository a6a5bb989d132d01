//! `sgemm`: BLAS's rules on views that lie in any way.

use gemm_runtime::{Device, Error, MatrixMut, MatrixRef, Sgemm, SgemmSpec, sgemm};
use proptest::prelude::*;

const POISON: f32 = f32::NAN;

/// A matrix that lies in rows or in columns, one element every `apart` behind a line and so many matrices.
#[derive(Clone, Debug)]
struct Stored {
    rows: usize,
    cols: usize,
    in_columns: bool,
    padding: usize,
    /// How many of a batch; `None` for one.
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
        self.lines().0 * self.pitch() + self.padding
    }

    fn at(&self, n: usize, row: usize, col: usize) -> usize {
        let (line, place) = if self.in_columns { (col, row) } else { (row, col) };
        n * self.distance() + line * self.pitch() + place
    }

    /// An element of the matrix for product `n`.
    fn element(&self, n: usize, row: usize, col: usize) -> f32 {
        self.memory[self.at(if self.count.is_some() { n } else { 0 }, row, col)]
    }

    fn view<'a>(&self, buffer: &'a gemm_runtime::Buffer) -> MatrixRef<'a> {
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

/// SplitMix64, by G. Steele, D. Lea and C. Flood.
fn uniform(mut state: u64) -> impl FnMut() -> f32 {
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}

fn extent() -> impl Strategy<Value = usize> {
    prop_oneof![Just(0), Just(1), Just(2), Just(3), Just(5), Just(9), 31..=33usize, 63..=65usize]
}

fn factor() -> impl Strategy<Value = f32> {
    prop::sample::select(vec![0.0, 1.0, 0.7, -1.3, f32::NAN, f32::INFINITY])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 96, ..Default::default() })]

    /// Componentwise within 2·K·ε·|alpha|·(|A||B|) and what scaling rounds, wherever the operands lie.
    #[test]
    fn it_is_what_blas_documents(
        (m, n, k) in (extent(), extent(), extent()),
        (alpha, beta) in (factor(), factor()),
        lies in [(any::<bool>(), 0..5usize), (any::<bool>(), 0..5usize), (any::<bool>(), 0..5usize)],
        (batch, shared) in (proptest::option::of(0..4usize), any::<[bool; 2]>()),
        seed: u64,
    ) {
        let mut next = uniform(seed);
        let count = |shared: bool| batch.filter(|_| !shared);
        let a = Stored::new((m, k), lies[0].0, lies[0].1, count(shared[0]), &mut next);
        let b = Stored::new((k, n), lies[1].0, lies[1].1, count(shared[1]), &mut next);
        let unread = beta == 0.0;
        let c = Stored::new((m, n), lies[2].0, lies[2].1, batch, || if unread { POISON } else { next() });

        let device = Device::simulator();
        let upload = |stored: &Stored| device.upload(&stored.memory).expect("room");
        let (a_memory, b_memory, mut c_memory) = (upload(&a), upload(&b), upload(&c));
        {
            let (lines, line) = c.lines();
            let view = match c.count {
                Some(count) => {
                    MatrixMut::batch_apart(&mut c_memory, (count, c.distance()), lines, line, c.pitch())
                }
                None => MatrixMut::pitched(&mut c_memory, lines, line, c.pitch()),
            };
            let mut view = view.expect("the memory holds it");
            let mut view = if c.in_columns { view.t() } else { view };
            let (a, b) = (a.view(&a_memory), b.view(&b_memory));
            let call = sgemm(&a, &b, &mut view).alpha(alpha).beta(beta);
            call.run(&device).map_err(|error| TestCaseError::fail(error.to_string()))?;
        }
        let found = device.download(&c_memory).expect("ours");

        let mut beside = vec![true; found.len()];
        for product in 0..batch.unwrap_or(1) {
            for row in 0..m {
                for col in 0..n {
                    let at = c.at(product, row, col);
                    beside[at] = false;
                    let terms = (0..k).map(|p| {
                        f64::from(a.element(product, row, p)) * f64::from(b.element(product, p, col))
                    });
                    let (sum, magnitude) =
                        terms.fold((0.0, 0.0), |(sum, of), term| (sum + term, of + f64::abs(term)));
                    let (alpha, beta) = (f64::from(alpha), f64::from(beta));
                    let product = if alpha == 0.0 || k == 0 { 0.0 } else { alpha * sum };
                    let kept = if beta == 0.0 { 0.0 } else { beta * f64::from(c.memory[at]) };
                    let (found, expected) = (f64::from(found[at]), product + kept);
                    let scale = if product == 0.0 { 0.0 } else { f64::abs(alpha) * magnitude };
                    let unit = f64::from(f32::EPSILON) / 2.0;
                    let allowed = (2.0 * k as f64 + 3.0) * unit * scale + 3.0 * unit * (kept.abs() + expected.abs());
                    let close = (found - expected).abs() <= allowed + 1e-40;
                    let same = found == expected || (found.is_nan() && expected.is_nan());
                    prop_assert!(close || same, "C[{row}][{col}] is {found}, not {expected}");
                }
            }
        }
        let untouched = |(at, beside): (usize, &bool)| !*beside || found[at].is_nan();
        prop_assert!(beside.iter().enumerate().all(untouched), "something beside C was written");
    }
}

/// Whatever it may choose has a plan, and is what the views ask for.
#[test]
fn every_line_is_sound() {
    let device = Device::simulator();
    let memory = device.alloc(140 * 140 * 2).expect("room");
    let mut lines = std::collections::BTreeSet::new();
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
            let line = call.line().expect("views that fit");
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

#[test]
fn views_that_do_not_fit_are_told_by_the_callers_names() {
    let device = Device::simulator();
    let (memory, mut room) = (device.alloc(64).expect("room"), device.alloc(64).expect("room"));
    let view = |rows, cols| MatrixRef::new(&memory, rows, cols).expect("room");
    let mut c = MatrixMut::new(&mut room, 4, 5).expect("room");
    // C lies in columns: within, A and B change their places.
    let refused = sgemm(&view(5, 3), &view(2, 4), &mut c.t()).run(&device);
    assert!(
        matches!(&refused, Err(Error::Extents { first: ("a", 3), other: ("b", 2), .. })),
        "{refused:?}"
    );
    let wide = device.alloc_matrix(4, 16).expect("room");
    let scattered = wide.view().part(0..4, 0..4).expect("inside");
    let batch = MatrixRef::batch_apart(&memory, (2, 1), 4, 4, 8).expect("room");
    assert!(sgemm(&scattered, &view(4, 5), &mut c).run(&device).is_ok());
    assert!(matches!(sgemm(&batch, &view(4, 5), &mut c).run(&device), Err(Error::Extents { .. })));
}
