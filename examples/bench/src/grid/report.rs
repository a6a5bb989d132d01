//! What was measured, as JSON has it, and what follows from all of it.

use crate::shapes::GemmShape;
use gemm_dsl::spec::GemmLayout;
use gemm_oracle::product::Size;
use serde::Serialize;

/// What a GPU of the H200's kind may reach: floating-point operations, and bytes from memory and from the L2 cache, in a
/// second, and what a launch takes beside, in microseconds.
const FLOPS: f64 = 54e12;
const MEMORY: f64 = 4.5e12;
const CACHE: f64 = 12e12;
const LAUNCH: f64 = 2.0;

/// Matrices of fewer bytes stay in the L2 cache from launch to launch.
const CACHED: f64 = 40e6;

/// A ratio below which a product counts as behind.
pub const BEHIND: f64 = 0.92;

/// The least time of a product, in microseconds: by its operations or by the bytes of its matrices, and a launch.
pub fn roof(size: Size) -> f64 {
    let rate = if size.bytes() < CACHED { CACHE } else { MEMORY };
    (size.flops() / FLOPS).max(size.bytes() / rate) * 1e6 + LAUNCH
}

/// A product with its times. What was not measured is `null`.
#[derive(Clone, Debug, Serialize)]
pub struct GridRow {
    /// Rows of C.
    pub m: usize,
    /// Columns of C.
    pub n: usize,
    /// Terms of an element.
    pub k: usize,
    /// How A and B lie.
    pub layout: &'static str,
    /// The line that `sgemm` takes, or the table.
    pub line: String,
    /// The condition of the table's row; `null` of its last one, and of `sgemm`.
    pub condition: Option<String>,
    /// The time of a launch in microseconds, the median of the replays.
    pub us: Option<f64>,
    /// The same of cuBLAS.
    pub cublas_us: Option<f64>,
    /// The time of cuBLAS over ours.
    pub ratio: Option<f64>,
    /// The least time that there could be.
    pub roof_us: f64,
    /// The share of that in our time.
    pub of_roof: Option<f64>,
    /// The share of that in the time of cuBLAS.
    pub cublas_of_roof: Option<f64>,
    /// Launches that lay back to back in a graph.
    pub launches: Option<usize>,
    /// Replays of it.
    pub replays: Option<usize>,
    /// The largest error of an element of C relative to (|A|·|B|) of it; `null` where there is no result, or one is
    /// infinite.
    pub error: Option<f64>,
    /// Whether rounding explains all errors; `null` where there is no result.
    pub ok: Option<bool>,
    /// Why there is no result, or no time.
    pub message: Option<String>,
    /// The product.
    #[serde(skip)]
    pub shape: GemmShape,
}

impl GridRow {
    /// A product without a result.
    pub fn new(shape: GemmShape) -> Self {
        let Size { m, n, k } = shape.size;
        Self {
            m,
            n,
            k,
            layout: shape.layout.word(),
            line: String::new(),
            condition: None,
            us: None,
            cublas_us: None,
            ratio: None,
            roof_us: roof(shape.size),
            of_roof: None,
            cublas_of_roof: None,
            launches: None,
            replays: None,
            error: None,
            ok: None,
            message: None,
            shape,
        }
    }

    /// Notes the times of a launch, ours and, where there is one, that of cuBLAS.
    pub fn timed(&mut self, us: f64, cublas_us: Option<f64>) {
        self.us = Some(us);
        self.of_roof = Some(self.roof_us / us);
        self.cublas_us = cublas_us;
        self.ratio = cublas_us.map(|cublas| cublas / us);
        self.cublas_of_roof = cublas_us.map(|cublas| self.roof_us / cublas);
    }
}

/// All that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct GridReport {
    /// The GPU's name.
    pub device: String,
    /// Of the random elements, and of what was drawn.
    pub seed: u64,
    /// The products.
    pub rows: Vec<GridRow>,
    /// What follows from them.
    pub means: Vec<GridMean>,
}

/// Geometric means over some products.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GridMean {
    /// Which.
    pub of: String,
    /// How many of them have times.
    pub count: usize,
    /// The mean of the times of cuBLAS over ours; `null` without cuBLAS.
    pub ratio: Option<f64>,
    /// The least of these ratios.
    pub least: Option<f64>,
    /// How many of them are below 0.92.
    pub behind: usize,
    /// The mean share of the roof.
    pub of_roof: f64,
    /// The same of cuBLAS.
    pub cublas_of_roof: Option<f64>,
}

/// The means over all products, over those of which M or N is at most 64, over the others, and where there are several
/// layouts over each.
pub fn means(rows: &[GridRow]) -> Vec<GridMean> {
    let layouts =
        GemmLayout::ALL.iter().filter(|layout| with_layout(rows, layout).next().is_some());
    let layouts: Vec<&GemmLayout> = layouts.collect();
    let mut means = vec![
        mean("all", rows.iter()),
        mean("m or n <= 64", rows.iter().filter(|row| row.shape.is_thin())),
        mean("elsewhere", rows.iter().filter(|row| !row.shape.is_thin())),
    ];
    if layouts.len() > 1 {
        means.extend(layouts.iter().map(|layout| mean(layout.word(), with_layout(rows, layout))));
    }
    means.into_iter().flatten().collect()
}

fn with_layout<'r>(rows: &'r [GridRow], layout: &GemmLayout) -> impl Iterator<Item = &'r GridRow> {
    rows.iter().filter(move |row| row.shape.layout == *layout)
}

fn mean<'r>(of: &str, rows: impl Iterator<Item = &'r GridRow>) -> Option<GridMean> {
    let rows: Vec<&GridRow> = rows.filter(|row| row.us.is_some()).collect();
    let all = |value: fn(&GridRow) -> Option<f64>| -> Vec<f64> {
        rows.iter().filter_map(|row| value(row)).collect()
    };
    let ratios = all(|row| row.ratio);
    Some(GridMean {
        of: of.to_owned(),
        count: rows.len(),
        ratio: geometric_mean(&ratios),
        least: ratios.iter().copied().min_by(f64::total_cmp),
        behind: ratios.iter().filter(|ratio| **ratio < BEHIND).count(),
        of_roof: geometric_mean(&all(|row| row.of_roof))?,
        cublas_of_roof: geometric_mean(&all(|row| row.cublas_of_roof)),
    })
}

/// The geometric mean; none of nothing.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logs: f64 = values.iter().map(|value| value.ln()).sum();
    (!values.is_empty()).then(|| (logs / values.len() as f64).exp())
}

/// The products that are furthest behind cuBLAS, at most so many, the worst first.
pub fn worst(rows: &[GridRow], most: usize) -> Vec<&GridRow> {
    let ratio = |row: &&GridRow| row.ratio.unwrap_or(f64::INFINITY);
    let mut behind: Vec<&GridRow> = rows.iter().filter(|row| ratio(row) < BEHIND).collect();
    behind.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    behind.truncate(most);
    behind
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(m: usize, n: usize, layout: GemmLayout, us: f64, cublas: Option<f64>) -> GridRow {
        let mut row = GridRow::new(GemmShape { size: Size::new(m, n, 512), layout });
        row.timed(us, cublas);
        row
    }

    #[test]
    fn the_roof_is_of_operations_or_of_bytes() {
        // 2 * 4096^3 / 54e12 s, and 3 * 4 * 4096^2 bytes are fewer.
        assert!((roof(Size::square(4096)) - 2547.0).abs() < 1.0);
        // 134 MB from memory; 8 MB from the cache.
        assert!((roof(Size::new(1, 1024, 32_768)) - 31.9).abs() < 0.1);
        assert!((roof(Size::new(1, 4096, 512)) - 2.7).abs() < 0.1);
        assert!((roof(Size::new(1, 1, 64)) - 2.0).abs() < 0.001);
    }

    #[test]
    fn means_are_geometric_and_of_each_kind() {
        let rows = [
            row(4, 4096, GemmLayout::Nn, 10.0, Some(20.0)),
            row(64, 4096, GemmLayout::Nn, 10.0, Some(5.0)),
            row(256, 256, GemmLayout::Nt, 10.0, Some(9.0)),
            GridRow::new(GemmShape { size: Size::square(1024), layout: GemmLayout::Nt }),
        ];
        let means = means(&rows);
        let names: Vec<&str> = means.iter().map(|mean| &*mean.of).collect();
        assert_eq!(names, ["all", "m or n <= 64", "elsewhere", "nn", "nt"]);
        let [all, thin, elsewhere, ..] = &means[..] else { panic!("{means:?}") };
        assert_eq!((all.count, thin.count, elsewhere.count), (3, 2, 1));
        assert!(thin.ratio.is_some_and(|ratio| (ratio - 1.0).abs() < 1e-12));
        assert_eq!((thin.least, thin.behind), (Some(0.5), 1));
        assert_eq!((all.behind, elsewhere.behind), (2, 1));
        let worst: Vec<usize> = worst(&rows, 9).iter().map(|row| row.m).collect();
        assert_eq!(worst, [64, 256]);
    }

    #[test]
    fn without_cublas_there_is_the_roof() {
        let means = means(&[row(256, 256, GemmLayout::Nn, 10.0, None)]);
        let names: Vec<&str> = means.iter().map(|mean| &*mean.of).collect();
        assert_eq!(names, ["all", "elsewhere"]);
        assert_eq!((means[0].ratio, means[0].least, means[0].behind), (None, None, 0));
        assert!(means[0].of_roof > 0.0);
        let json = serde_json::to_value(&means).expect("JSON");
        assert!(json[0]["ratio"].is_null());
    }
}
