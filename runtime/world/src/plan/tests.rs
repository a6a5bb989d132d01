//! Schedules do what they say, and what does not is refused.

mod faults;
mod figures;
mod kernels;
mod layouts;
mod mutants;
mod order;
mod run;
mod schedules;
mod times;

use super::*;
use proptest::prelude::*;

/// An extent cut into parts of any length.
fn lengths(extent: usize, parts: usize) -> impl Strategy<Value = Cut> {
    proptest::collection::vec(0..=extent, parts.max(1) - 1).prop_map(move |mut cuts| {
        cuts.sort();
        let starts = [0].into_iter().chain(cuts.clone());
        let ends = cuts.iter().copied().chain([extent]);
        Cut::Lengths(starts.zip(ends).map(|(start, end)| end - start).collect())
    })
}

fn cut(extent: usize, parts: usize) -> impl Strategy<Value = Cut> {
    prop_oneof![Just(Cut::EVEN), (1..6_usize).prop_map(Cut::Even), lengths(extent, parts)]
}

/// What divides a number.
fn divisor(number: usize) -> impl Strategy<Value = usize> {
    let all: Vec<usize> = (1..=number).filter(|divisor| number.is_multiple_of(*divisor)).collect();
    proptest::sample::select(all)
}

/// A layout for so many ranks.
fn layout(rows: usize, cols: usize, ranks: usize) -> impl Strategy<Value = Layout> {
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
    split.prop_map(move |split| Layout { rows, cols, split })
}

fn way() -> impl Strategy<Value = Way> {
    let gather = (1..6_usize).prop_map(|parts| Way::Gather { parts });
    prop_oneof![1 => Just(Way::Sequential), 3 => gather, 3 => Just(Way::Rotate)]
}

/// A product, for 1 to 9 ranks.
fn case() -> impl Strategy<Value = (Layouts, usize, Way)> {
    let extent = || prop_oneof![1 => Just(0_usize), 9 => 1..14_usize];
    (extent(), extent(), extent(), 1..=9_usize, way()).prop_flat_map(|(m, n, k, ranks, way)| {
        let layouts = (layout(m, k, ranks), layout(k, n, ranks), layout(m, n, ranks));
        layouts.prop_map(move |(a, b, c)| (Layouts { a, b, c }, ranks, way))
    })
}

/// A product for ranks that take turns with slots more than once.
fn rotating() -> impl Strategy<Value = (Layouts, usize, Way)> {
    let product = (4..14_usize, 1..14_usize, 1..9_usize, 4..=9_usize);
    product.prop_flat_map(|(m, n, k, ranks)| {
        let b = prop_oneof![Just(Layout::cols(k, n)), Just(Layout::whole(k, n))];
        let layouts = (cut(m, ranks), b, layout(m, n, ranks));
        layouts.prop_map(move |(rows, b, c)| {
            let a = Layout { split: Split::Rows(rows), ..Layout::whole(m, k) };
            (Layouts { a, b, c }, ranks, Way::Rotate)
        })
    })
}

/// How a product of many is most often dealt out: A by rows, B and C by columns.
fn by_columns(n: usize) -> Layouts {
    Layouts { a: Layout::rows(n, n), b: Layout::cols(n, n), c: Layout::cols(n, n) }
}

/// All three as grids of patches.
fn by_patches(n: usize, ranks: [usize; 2], patch: [usize; 2]) -> Layouts {
    let layout = Layout::patches(n, n, ranks, patch);
    Layouts { a: layout.clone(), b: layout.clone(), c: layout }
}
