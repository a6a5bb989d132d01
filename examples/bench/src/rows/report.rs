//! Results of `rows` as JSON, and their geometric means.

use super::peers::PeerKind;
use super::problem::{Kind, ReductionProblem};
use serde::Serialize;

/// Input size in bytes above which inputs are read from memory, not from the L2 cache.
const BEYOND_CACHE: u64 = 256 << 20;

/// Input size in bytes at and above which start-up and tail are negligible.
const LONG: u64 = 1 << 30;

/// Expected shares of the rate of a kernel that only reads, for inputs beyond the cache and for
/// long inputs.
const EXPECTED: (f64, f64) = (0.88, 0.95);

/// Result of a problem. `null` means that a value was not measured.
#[derive(Clone, Debug, Serialize)]
pub struct ReductionRow {
    /// Name of the table: `whole`, `rows` or `segments`.
    pub table: &'static str,
    pub shape: Vec<usize>,
    /// Axis, `all`, or the lengths of the segments.
    pub along: String,
    pub op: &'static str,
    pub r#type: String,
    /// Condition of the selected rule. `null` for the last rule, and with `--how`.
    pub condition: Option<String>,
    /// Keys that `--how` gave for the kernel.
    pub how: Option<String>,
    pub spec: String,
    /// Number of results compared with the reference.
    pub checked: usize,
    /// True if all checked results are correct. `null` if the problem does not fit into the
    /// device's memory.
    pub ok: Option<bool>,
    /// Fault, or the reason for a missing result.
    pub error: Option<String>,
    /// Bytes of the input elements.
    pub bytes_read: u64,
    /// Bytes of the input elements, the results and the segment offsets.
    pub bytes_moved: u64,
    /// Back-to-back launches in the graph.
    pub launches: Option<usize>,
    /// Time of a launch in microseconds, the median of the replays.
    pub time_us: Option<f64>,
    /// Read rate in 10^9 bytes/s.
    pub read_gb_s: Option<f64>,
    /// Rate of moved bytes in 10^9 bytes/s.
    pub moved_gb_s: Option<f64>,
    /// Read rate divided by the rate of a kernel that only reads.
    pub of_reading: Option<f64>,
    /// Time of PyTorch in microseconds.
    pub torch_us: Option<f64>,
    /// Time of PyTorch divided by our time.
    pub vs_torch: Option<f64>,
    /// Time of CUB in microseconds.
    pub cub_us: Option<f64>,
    /// Time of CUB divided by our time.
    pub vs_cub: Option<f64>,
    /// Description of the problem.
    #[serde(skip)]
    pub title: String,
}

impl ReductionRow {
    /// Records our time and those of the peers.
    pub fn timed(&mut self, us: f64, launches: usize, read_rate: f64, peers: &[(PeerKind, f64)]) {
        self.launches = Some(launches);
        self.time_us = Some(us);
        self.read_gb_s = Some(rate(self.bytes_read, us));
        self.moved_gb_s = Some(rate(self.bytes_moved, us));
        self.of_reading = Some(rate(self.bytes_read, us) / read_rate);
        for (who, theirs) in peers {
            let (time, ratio) = match who {
                PeerKind::Torch => (&mut self.torch_us, &mut self.vs_torch),
                PeerKind::Cub => (&mut self.cub_us, &mut self.vs_cub),
            };
            (*time, *ratio) = (Some(*theirs), Some(theirs / us));
        }
    }

    /// Returns the time of a peer divided by our time.
    pub fn versus(&self, who: PeerKind) -> Option<f64> {
        match who {
            PeerKind::Torch => self.vs_torch,
            PeerKind::Cub => self.vs_cub,
        }
    }

    /// Returns the read rate of a peer, in 10^9 bytes/s.
    pub fn rate_of(&self, who: PeerKind) -> Option<f64> {
        let us = match who {
            PeerKind::Torch => self.torch_us,
            PeerKind::Cub => self.cub_us,
        };
        Some(rate(self.bytes_read, us?))
    }

    /// Returns the expected share of the rate of a kernel that only reads. `None` for small inputs.
    pub fn expected(&self) -> Option<f64> {
        match self.bytes_read {
            LONG.. => Some(EXPECTED.1),
            bytes if bytes > BEYOND_CACHE => Some(EXPECTED.0),
            _ => None,
        }
    }
}

/// Returns bytes divided by microseconds, in 10^9 bytes/s.
fn rate(bytes: u64, us: f64) -> f64 {
    bytes as f64 / us / 1e3
}

/// Creates a row without times.
pub fn row(problem: &ReductionProblem) -> ReductionRow {
    ReductionRow {
        table: problem.kind().name(),
        shape: problem.shape.clone(),
        along: problem.along_text(),
        op: problem.fold.name(),
        r#type: problem.element.to_string(),
        condition: None,
        how: problem.how.clone(),
        spec: String::new(),
        checked: 0,
        ok: None,
        error: None,
        bytes_read: problem.bytes_read(),
        bytes_moved: problem.bytes_read(),
        launches: None,
        time_us: None,
        read_gb_s: None,
        moved_gb_s: None,
        of_reading: None,
        torch_us: None,
        vs_torch: None,
        cub_us: None,
        vs_cub: None,
        title: problem.to_string(),
    }
}

/// Report of a run of `rows`, for `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct ReductionReport {
    /// `simulator`, or the GPU's name.
    pub device: String,
    /// Seed of the random elements.
    pub seed: u64,
    /// Rate of a kernel that only reads, in 10^9 bytes/s.
    pub read_gb_s: Option<f64>,
    /// Peers that started, with their versions.
    pub peers: Vec<String>,
    pub rows: Vec<ReductionRow>,
    pub means: Vec<ReductionMean>,
}

/// Geometric mean of ratios over all problems of one operation in one table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReductionMean {
    pub table: &'static str,
    pub op: &'static str,
    /// Peer of the ratios: `PyTorch` or `CUB`.
    pub peer: &'static str,
    /// Mean of the peer's time divided by our time.
    pub ratio: f64,
    pub count: usize,
    pub least: f64,
}

/// Returns the geometric means for each table, operation and peer.
pub fn means(rows: &[ReductionRow]) -> Vec<ReductionMean> {
    let mut all = Vec::new();
    for kind in Kind::ALL {
        for who in PeerKind::ALL {
            let mut folds: Vec<&'static str> = Vec::new();
            let of_table = || rows.iter().filter(move |row| row.table == kind.name());
            for row in of_table() {
                if !folds.contains(&row.op) {
                    folds.push(row.op);
                }
            }
            for op in folds {
                let ratios =
                    of_table().filter(|row| row.op == op).filter_map(|row| row.versus(who));
                let ratios: Vec<f64> = ratios.collect();
                if ratios.is_empty() {
                    continue;
                }
                let logs: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
                all.push(ReductionMean {
                    table: kind.name(),
                    op,
                    peer: who.name(),
                    ratio: (logs / ratios.len() as f64).exp(),
                    count: ratios.len(),
                    least: ratios.iter().copied().fold(f64::INFINITY, f64::min),
                });
            }
        }
    }
    all
}

/// Returns two lists with a line per row: rows that are slower than a peer, and rows below the
/// expected share of the read rate.
pub fn behind(rows: &[ReductionRow]) -> (Vec<String>, Vec<String>) {
    let (mut peers, mut reading) = (Vec::new(), Vec::new());
    for row in rows {
        for who in PeerKind::ALL {
            if let Some(ratio) = row.versus(who).filter(|ratio| *ratio < 1.0) {
                peers.push(format!("{}: {ratio:.2} of {}", row.title, who.name()));
            }
        }
        if let (Some(share), Some(expected)) = (row.of_reading, row.expected())
            && share < expected
        {
            let (share, expected) = (100.0 * share, 100.0 * expected);
            reading.push(format!(
                "{}: {share:.1} % of the read rate, below {expected:.0} %",
                row.title
            ));
        }
    }
    (peers, reading)
}

#[cfg(test)]
mod tests {
    use super::super::problem::{Along, Fold};
    use super::*;
    use gemm_runtime::spec::DataType;

    /// Creates a row of `len` elements of `f32`, with our time and that of PyTorch.
    fn timed(len: usize, us: f64, torch: f64) -> ReductionRow {
        let (fold, element) = (Fold::Sum, DataType::F32);
        let mut row = row(&ReductionProblem {
            shape: vec![len],
            along: Along::Whole,
            fold,
            element,
            how: None,
        });
        row.timed(us, 2, 4000.0, &[(PeerKind::Torch, torch)]);
        row
    }

    #[test]
    fn rates_follow_from_times() {
        let row = timed(1 << 28, 300.0, 600.0);
        assert_eq!(row.vs_torch, Some(2.0));
        let rate = row.read_gb_s.expect("a rate");
        assert!((rate - 3579.14).abs() < 0.01, "{rate}");
        assert_eq!(row.of_reading, Some(rate / 4000.0));
        assert_eq!((row.vs_cub, row.cub_us), (None, None));
    }

    #[test]
    fn means_are_geometric() {
        let means = means(&[timed(1 << 10, 2.0, 4.0), timed(1 << 12, 2.0, 16.0)]);
        let [mean] = &means[..] else { panic!("{means:?}") };
        assert_eq!((mean.table, mean.op, mean.peer, mean.count), ("whole", "sum", "PyTorch", 2));
        assert!((mean.ratio - 4.0).abs() < 1e-12 && mean.least == 2.0);
    }

    #[test]
    fn slow_reductions_are_listed() {
        // 89 % of the read rate: enough for 512 MB, too little for 1 GB.
        let rows =
            [timed(1 << 28, 300.0, 150.0), timed(1 << 27, 150.0, 450.0), timed(64, 9.0, 9.0)];
        let (peers, reading) = behind(&rows);
        assert_eq!(peers, ["sum of 2^28: 0.50 of PyTorch"]);
        assert_eq!(reading, ["sum of 2^28: 89.5 % of the read rate, below 95 %"]);
    }
}
