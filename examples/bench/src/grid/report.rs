//! Results of `grid` as JSON, and their geometric means.

use crate::shapes::GemmShape;
use gemm_dsl::spec::GemmLayout;
use gemm_oracle::product::Size;
use serde::Serialize;

/// Assumed limits of a GPU like the H200.
///
/// In this order: floating-point operations per second, bytes per second from memory and from the
/// L2 cache, and microseconds of launch overhead.
const FLOPS: f64 = 54e12;
const MEMORY: f64 = 4.5e12;
const CACHE: f64 = 12e12;
const LAUNCH: f64 = 2.0;

/// Total bytes below which the matrices stay in the L2 cache between launches.
const CACHED: f64 = 40e6;

/// Ratio to cuBLAS below which a GEMM is listed as slow.
pub const BEHIND: f64 = 0.92;

/// Returns the lower bound of a GEMM's time in microseconds. It is the time for the operations or
/// for the bytes of the matrices, whichever is longer, plus the launch overhead.
pub fn roof(size: Size) -> f64 {
    let rate = if size.bytes() < CACHED { CACHE } else { MEMORY };
    (size.flops() / FLOPS).max(size.bytes() / rate) * 1e6 + LAUNCH
}

/// Times of a GEMM. `null` stands for a value that was not measured.
#[derive(Clone, Debug, Serialize)]
pub struct GridRow {
    pub m: usize,
    pub n: usize,
    /// Extent K: length of the dot product of an element.
    pub k: usize,
    /// Layout of A and B.
    pub layout: &'static str,
    /// Spec that `sgemm` or the table selects.
    pub line: String,
    /// Condition of the table's rule. `null` for the last rule, which has none, and for `sgemm`.
    pub condition: Option<String>,
    /// Time of a launch in microseconds, the median of the replays.
    pub us: Option<f64>,
    /// Time of cuBLAS in microseconds, measured the same way.
    pub cublas_us: Option<f64>,
    /// Time of cuBLAS over ours.
    pub ratio: Option<f64>,
    /// Lower bound of the time in microseconds.
    pub roof_us: f64,
    /// Lower bound over our time.
    pub of_roof: Option<f64>,
    /// Lower bound over the time of cuBLAS.
    pub cublas_of_roof: Option<f64>,
    /// Back-to-back launches in the graph.
    pub launches: Option<usize>,
    pub replays: Option<usize>,
    /// Largest error of an element of C, relative to the same element of |A|·|B|. `null` if there
    /// is no result or the error is infinite.
    pub error: Option<f64>,
    /// True if all errors are within the rounding bound; `null` if there is no result.
    pub ok: Option<bool>,
    /// Reason why a result or a time is missing.
    pub message: Option<String>,
    #[serde(skip)]
    pub shape: GemmShape,
}

impl GridRow {
    /// Creates a row without a result.
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

    /// Records our time and that of cuBLAS, if it was measured.
    pub fn timed(&mut self, us: f64, cublas_us: Option<f64>) {
        self.us = Some(us);
        self.of_roof = Some(self.roof_us / us);
        self.cublas_us = cublas_us;
        self.ratio = cublas_us.map(|cublas| cublas / us);
        self.cublas_of_roof = cublas_us.map(|cublas| self.roof_us / cublas);
    }
}

/// Report of a run of `grid`, for `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct GridReport {
    pub device: String,
    /// Seed of the random elements, and of random shapes.
    pub seed: u64,
    pub rows: Vec<GridRow>,
    pub means: Vec<GridMean>,
}

/// Geometric means over a selection of GEMMs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GridMean {
    /// Name of the selection, such as `m or n <= 64`.
    pub of: String,
    /// Number of GEMMs with times.
    pub count: usize,
    /// Mean of the times of cuBLAS over ours; `null` without cuBLAS.
    pub ratio: Option<f64>,
    /// Smallest ratio of the selection.
    pub least: Option<f64>,
    /// Number of ratios below 0.92.
    pub behind: usize,
    /// Mean of the lower bound over our time.
    pub of_roof: f64,
    /// Mean of the lower bound over the time of cuBLAS.
    pub cublas_of_roof: Option<f64>,
}

/// Returns the means over all GEMMs, over those with M or N at most 64, over the others, and over
/// each layout if there are several.
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

/// Returns the geometric mean; `None` without values.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logs: f64 = values.iter().map(|value| value.ln()).sum();
    (!values.is_empty()).then(|| (logs / values.len() as f64).exp())
}

/// Returns at most `most` GEMMs with a ratio below [`BEHIND`], the smallest ratio first.
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
        // 2 * 4096^3 / 54e12 s; the 3 * 4 * 4096^2 bytes take less.
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
