//! What tests draw at random.

use fastrand::Rng;
use gemm_runtime::world::{Cut, Layout, Split, Way};

/// Numbers as products meet them: most of them ordinary, some that cancel, vanish or are none.
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

/// An extent: often none or one, or about as large as a tile.
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

/// What divides a number.
fn divisor(rng: &mut Rng, number: usize) -> usize {
    let all: Vec<usize> = (1..=number).filter(|n| number.is_multiple_of(*n)).collect();
    *rng.choice(&all).unwrap_or(&1)
}

/// How a matrix is dealt out.
pub fn layout(rng: &mut Rng, rows: usize, cols: usize, ranks: usize) -> Layout {
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
    Layout { rows, cols, split }
}

/// How ranks come by what they lack; often as the library chooses.
pub fn way(rng: &mut Rng) -> Option<Way> {
    match rng.u32(0..6) {
        0 => Some(Way::Sequential),
        1..=2 => Some(Way::Gather { parts: rng.usize(1..6) }),
        3 => Some(Way::Rotate),
        _ => None,
    }
}
