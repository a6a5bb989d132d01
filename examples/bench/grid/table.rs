//! Tables and plot of the results.

use gemm_bench::grid::repeats;
use gemm_bench::grid::report::{GridMean, GridRow};
use gemm_bench::plot::{Heat, Panel};
use gemm_bench::table::{Table, number, percent, text};
use gemm_runtime::spec::GemmLayout;
use std::borrow::Borrow;
use std::collections::BTreeSet;

fn shown(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
}

fn share(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), percent)
}

/// Returns a table with a line for each GEMM.
pub fn table<R: Borrow<GridRow>>(rows: &[R]) -> Table {
    let mut table = Table::new([
        text(""),
        number("m"),
        number("n"),
        number("k"),
        text(""),
        number("ours\nµs"),
        number("cuBLAS\nµs"),
        number("ratio"),
        number("of the\nroof").optional(2),
        number("cuBLAS of\nthe roof").optional(3),
        text("spec").wrapping().optional(1),
    ]);
    for row in rows {
        let row = row.borrow();
        let mark = row.ok.map_or("–", |ok| if ok { "✓" } else { "✗" });
        table.add([
            mark.to_owned(),
            row.m.to_string(),
            row.n.to_string(),
            row.k.to_string(),
            row.layout.to_owned(),
            shown(row.us, 2),
            shown(row.cublas_us, 2),
            shown(row.ratio, 3),
            share(row.of_roof),
            share(row.cublas_of_roof),
            row.line.clone(),
        ]);
    }
    table
}

/// Returns a note on graphs that have fewer launches than the others, if there are any.
pub fn few_launches(rows: &[GridRow]) -> Option<String> {
    let launches = rows.iter().filter_map(|row| row.launches);
    let few: Vec<usize> = launches.filter(|launches| *launches < repeats::LEAST).collect();
    let (least, count) = (few.iter().min()?, few.len());
    Some(format!(
        "The graphs of {count} GEMMs, whose launches take more than {:.0} ms, have fewer than {} \
         launches, at least {least}.",
        repeats::LONG / 1e3,
        repeats::LEAST
    ))
}

/// Returns a table of the geometric means.
pub fn means(means: &[GridMean]) -> Table {
    let mut table = Table::new([
        text("geometric mean"),
        number("products"),
        number("ratio"),
        number("least"),
        number("below\n0.92"),
        number("of the\nroof"),
        number("cuBLAS of\nthe roof"),
    ]);
    for mean in means {
        table.add([
            mean.of.clone(),
            mean.count.to_string(),
            shown(mean.ratio, 3),
            shown(mean.least, 3),
            mean.behind.to_string(),
            share(Some(mean.of_roof)),
            share(mean.cublas_of_roof),
        ]);
    }
    table
}

/// Plots the ratios over M and N, with a heat map for each K and layout.
pub fn map(rows: &[GridRow], device: &str) -> Heat {
    fn values<T: Ord>(of: impl Iterator<Item = T>) -> Vec<T> {
        of.collect::<BTreeSet<T>>().into_iter().collect()
    }
    let [ms, ns, ks] = [|row: &GridRow| row.m, |row: &GridRow| row.n, |row: &GridRow| row.k]
        .map(|extent: fn(&GridRow) -> usize| values(rows.iter().map(extent)));
    let layouts = values(rows.iter().map(|row| row.shape.layout));
    let panel = |(layout, k): (GemmLayout, usize)| {
        let of = |row: &&GridRow| row.shape.layout == layout && row.k == k;
        let rows: Vec<&GridRow> = rows.iter().filter(of).collect();
        let [ms, ns] = [(&ms, true), (&ns, false)].map(|(all, is_m)| -> Vec<usize> {
            let has =
                |extent: &usize| rows.iter().any(|row| *extent == if is_m { row.m } else { row.n });
            all.iter().copied().filter(has).collect()
        });
        let ratio = |m: usize, n: usize| {
            rows.iter().find(|row| row.m == m && row.n == n).and_then(|row| row.ratio)
        };
        let values = ms.iter().map(|&m| ns.iter().map(|&n| ratio(m, n)).collect());
        Panel {
            title: format!("k = {k}, {layout}"),
            values: values.collect(),
            rows: ms.iter().map(usize::to_string).collect(),
            cols: ns.iter().map(usize::to_string).collect(),
        }
    };
    let kinds = layouts.iter().flat_map(|&layout| ks.iter().map(move |&k| (layout, k)));
    Heat {
        title: format!("cuBLAS time over ours on {device}"),
        labels: ["m", "n"].map(str::to_owned),
        panels: kinds.map(panel).collect(),
        across: ks.len(),
    }
}
