//! Random test inputs.

use fastrand::Rng;
use gemm_runtime::{SgemmSpec, spec};
use gemm_world::{Cut, Distribution, Split, Strategy};

/// Matrix elements: most are ordinary, some cancel, underflow or are NaN.
pub fn numbers(rng: &mut Rng, len: usize) -> Vec<f32> {
    (0..len).map(|_| number(rng)).collect()
}

fn number(rng: &mut Rng) -> f32 {
    let sign = if rng.bool() { 1.0 } else { -1.0 };
    match rng.u32(0..64) {
        0 => sign * 0.0,
        1 => sign * 1e-42,
        2 => sign * 1e-30,
        3 => sign * 1e19,
        4 => sign * f32::MIN_POSITIVE,
        _ => sign * (rng.f32() + 0.5),
    }
}

/// Extents: often 0 or 1, otherwise up to `most`.
pub fn extent(rng: &mut Rng, most: usize) -> usize {
    match rng.u32(0..8) {
        0 => 0,
        1 => 1,
        _ => rng.usize(1..=most),
    }
}

fn cut(rng: &mut Rng, extent: usize, parts: usize) -> Cut {
    match rng.u32(0..4) {
        0 => Cut::EVEN,
        1 => Cut::Even(rng.usize(1..20)),
        _ => {
            let mut ends: Vec<usize> = (1..parts).map(|_| rng.usize(0..=extent)).collect();
            ends.push(extent);
            ends.sort_unstable();
            let starts = std::iter::once(0).chain(ends.iter().copied());
            Cut::Lengths(starts.zip(&ends).map(|(start, end)| end - start).collect())
        }
    }
}

/// Random divisor of a number.
fn divisor(rng: &mut Rng, number: usize) -> usize {
    let all: Vec<usize> = (1..=number).filter(|n| number.is_multiple_of(*n)).collect();
    *rng.choice(&all).unwrap_or(&1)
}

/// Random distribution of a matrix.
pub fn distribution(rng: &mut Rng, rows: usize, cols: usize, ranks: usize) -> Distribution {
    let split = match rng.u32(0..7) {
        0 => Split::Whole,
        1..=2 => Split::Rows(cut(rng, rows, ranks)),
        3..=4 => Split::Cols(cut(rng, cols, ranks)),
        _ => {
            let down = divisor(rng, ranks);
            let across = ranks / down;
            Split::Grid {
                ranks: [down, across],
                cuts: [cut(rng, rows, down), cut(rng, cols, across)],
                patch: [divisor(rng, down), divisor(rng, across)],
                down: rng.bool(),
            }
        }
    };
    Distribution { rows, cols, split }
}

/// Random strategy; `None` lets the library choose.
pub fn strategy(rng: &mut Rng) -> Option<Strategy> {
    match rng.u32(0..6) {
        0 => Some(Strategy::Sequential),
        1..=2 => Some(Strategy::Gather { parts: rng.usize(1..6) }),
        3 => Some(Strategy::Rotate),
        _ => None,
    }
}

/// Returns the transpose of a matrix, row-major.
fn transpose(elements: &[f32], rows: usize, cols: usize) -> Vec<f32> {
    (0..cols).flat_map(|col| (0..rows).map(move |row| elements[row * cols + col])).collect()
}

/// Spec with one of the four layouts, drawn at random.
pub fn with_layout(rng: &mut Rng, line: &str) -> SgemmSpec {
    let spec: SgemmSpec = line.parse().expect("a line");
    let pitched = spec.pitched;
    spec.for_matrices(*rng.choice(spec::GemmLayout::ALL).expect("there are some"), pitched)
}

/// Random distributions for a GEMM with the given layout.
pub fn distributions(
    rng: &mut Rng,
    lies: spec::GemmLayout,
    (m, n, k): (usize, usize, usize),
    ranks: usize,
) -> [Distribution; 3] {
    let a = if lies.transposes_a() { (k, m) } else { (m, k) };
    let b = if lies.transposes_b() { (n, k) } else { (k, n) };
    [a, b, (m, n)].map(|(rows, cols)| distribution(rng, rows, cols, ranks))
}

/// Returns A and B as stored.
pub fn transposition(
    lies: spec::GemmLayout,
    a: &[f32],
    b: &[f32],
    (m, n, k): (usize, usize, usize),
) -> [Vec<f32>; 2] {
    let a = if lies.transposes_a() { transpose(a, m, k) } else { a.to_vec() };
    let b = if lies.transposes_b() { transpose(b, k, n) } else { b.to_vec() };
    [a, b]
}

/// Random distributions of A and B along K, as stored: each rank has consecutive partitions of the
/// kernel's split-K.
pub fn terms(
    rng: &mut Rng,
    spec: &SgemmSpec,
    (m, n, k): (usize, usize, usize),
    ranks: usize,
) -> [Distribution; 2] {
    let ranges = spec.plan().expect("a sound line").partitions(k as u64).expect("a number of them");
    let mut lengths = vec![0; ranks];
    let mut owners: Vec<usize> = ranges.iter().map(|_| rng.usize(0..ranks)).collect();
    owners.sort_unstable();
    for (range, owner) in ranges.iter().zip(&owners) {
        lengths[*owner] += (range.end - range.start) as usize;
    }
    let a = Distribution { rows: m, cols: k, split: Split::Cols(Cut::Lengths(lengths.clone())) };
    let b = Distribution { rows: k, cols: n, split: Split::Rows(Cut::Lengths(lengths)) };
    let lies = spec.layout;
    [if lies.transposes_a() { a.t() } else { a }, if lies.transposes_b() { b.t() } else { b }]
}
