//! Verified schedules compute their GEMM, and faulty schedules are rejected.

mod distributions;
mod faults;
mod figures;
mod kernels;
mod mutants;
mod order;
mod run;
mod schedules;
mod times;

use super::*;
use crate::plan::Strategy;
use proptest::prelude::*;
use proptest::strategy::Strategy as Generator;

/// Cuts of an extent into parts of any length.
fn lengths(extent: usize, parts: usize) -> impl Generator<Value = Cut> {
    proptest::collection::vec(0..=extent, parts.max(1) - 1).prop_map(move |mut cuts| {
        cuts.sort();
        let starts = [0].into_iter().chain(cuts.clone());
        let ends = cuts.iter().copied().chain([extent]);
        Cut::Lengths(starts.zip(ends).map(|(start, end)| end - start).collect())
    })
}

fn cut(extent: usize, parts: usize) -> impl Generator<Value = Cut> {
    prop_oneof![Just(Cut::EVEN), (1..6_usize).prop_map(Cut::Even), lengths(extent, parts)]
}

/// Divisors of a number.
fn divisor(number: usize) -> impl Generator<Value = usize> {
    let all: Vec<usize> = (1..=number).filter(|divisor| number.is_multiple_of(*divisor)).collect();
    proptest::sample::select(all)
}

/// Distributions for a number of ranks.
fn distribution(rows: usize, cols: usize, ranks: usize) -> impl Generator<Value = Distribution> {
    let grid = divisor(ranks).prop_flat_map(move |down| {
        let across = ranks / down;
        let cuts = (cut(rows, down), cut(cols, across));
        let patch = (divisor(down), divisor(across), any::<bool>());
        (cuts, patch).prop_map(move |((a, b), (high, wide, is_down))| Split::Grid {
            ranks: [down, across],
            patch: [high, wide],
            down: is_down,
            cuts: [a, b],
        })
    });
    let split = prop_oneof![
        1 => Just(Split::Whole),
        3 => cut(rows, ranks).prop_map(Split::Rows),
        3 => cut(cols, ranks).prop_map(Split::Cols),
        3 => grid,
    ];
    split.prop_map(move |split| Distribution { rows, cols, split })
}

fn strategy() -> impl Generator<Value = Strategy> {
    let gather = (1..6_usize).prop_map(|parts| Strategy::Gather { parts });
    prop_oneof![1 => Just(Strategy::Sequential), 3 => gather, 3 => Just(Strategy::Rotate)]
}

/// Distributions, number of ranks and strategy of a GEMM. It is boxed because without optimisation
/// the values of these generators are too large for the stack of a test.
type BoxedCase = BoxedStrategy<(Distributions, usize, Strategy)>;

/// GEMMs for 1 to 9 ranks.
fn case() -> BoxedCase {
    let extent = || prop_oneof![1 => Just(0_usize), 9 => 1..14_usize];
    (extent(), extent(), extent(), 1..=9_usize, strategy())
        .prop_flat_map(|(m, n, k, ranks, strategy)| {
            let distributions =
                (distribution(m, k, ranks), distribution(k, n, ranks), distribution(m, n, ranks));
            distributions.prop_map(move |(a, b, c)| (Distributions { a, b, c }, ranks, strategy))
        })
        .boxed()
}

/// GEMMs whose ranks reuse slots.
fn rotating() -> BoxedCase {
    let product = (4..14_usize, 1..14_usize, 1..9_usize, 4..=9_usize);
    product
        .prop_flat_map(|(m, n, k, ranks)| {
            let b = prop_oneof![Just(Distribution::cols(k, n)), Just(Distribution::whole(k, n))];
            let distributions = (cut(m, ranks), b, distribution(m, n, ranks));
            distributions.prop_map(move |(rows, b, c)| {
                let a = Distribution { split: Split::Rows(rows), ..Distribution::whole(m, k) };
                (Distributions { a, b, c }, ranks, Strategy::Rotate)
            })
        })
        .boxed()
}

/// The most common distribution of a GEMM: A by rows, B and C by columns.
fn by_columns(n: usize) -> Distributions {
    Distributions {
        a: Distribution::rows(n, n),
        b: Distribution::cols(n, n),
        c: Distribution::cols(n, n),
    }
}

/// A, B and C distributed by patches.
fn by_patches(n: usize, ranks: [usize; 2], patch: [usize; 2]) -> Distributions {
    let distribution = Distribution::patches(n, n, ranks, patch);
    Distributions { a: distribution.clone(), b: distribution.clone(), c: distribution }
}
