//! What was measured, as JSON has it, and what follows from all of it.

use super::peers::PeerKind;
use super::problem::{Kind, ReductionProblem};
use serde::Serialize;

/// Inputs beyond so many bytes are read from memory.
const BEYOND_CACHE: u64 = 256 << 20;

/// Those from so many bytes on take so long that a start and an end do not count.
const LONG: u64 = 1 << 30;

/// The shares of plain reading that are expected of either.
const EXPECTED: (f64, f64) = (0.88, 0.95);

/// A problem with its result. What was not measured is `null`.
#[derive(Clone, Debug, Serialize)]
pub struct ReductionRow {
    /// `whole`, `rows` or `segments`.
    pub table: &'static str,
    /// The extents of the array.
    pub shape: Vec<usize>,
    /// The axis that is folded, `all`, or the lengths of the segments.
    pub along: String,
    /// What is folded.
    pub op: &'static str,
    /// What the elements are.
    pub r#type: String,
    /// The condition of the row that the table chose; `null` of its last, and where `how` was said.
    pub condition: Option<String>,
    /// The keys of `--how`.
    pub how: Option<String>,
    /// The kernel: a line of the DSL.
    pub spec: String,
    /// Results that were compared with the reference.
    pub checked: usize,
    /// Whether all of them are right; `null` where the device has no memory for the problem.
    pub ok: Option<bool>,
    /// What is wrong, or why there is no result.
    pub error: Option<String>,
    /// The elements that are folded, in bytes.
    pub bytes_read: u64,
    /// With the results, and the offsets of segments.
    pub bytes_moved: u64,
    /// Launches that lay back to back in a graph.
    pub launches: Option<usize>,
    /// The time of one in microseconds, the median of the replays.
    pub time_us: Option<f64>,
    /// 10^9 bytes read a second.
    pub read_gb_s: Option<f64>,
    /// 10^9 bytes moved a second.
    pub moved_gb_s: Option<f64>,
    /// Bytes read a second over those of plain reading.
    pub of_reading: Option<f64>,
    /// The time of PyTorch.
    pub torch_us: Option<f64>,
    /// The time of PyTorch over ours.
    pub vs_torch: Option<f64>,
    /// The time of CUB.
    pub cub_us: Option<f64>,
    /// The time of CUB over ours.
    pub vs_cub: Option<f64>,
    /// The problem, for a reader.
    #[serde(skip)]
    pub title: String,
}

impl ReductionRow {
    /// Notes times: ours, and those of the peers.
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

    /// The time of a peer over ours.
    pub fn versus(&self, who: PeerKind) -> Option<f64> {
        match who {
            PeerKind::Torch => self.vs_torch,
            PeerKind::Cub => self.vs_cub,
        }
    }

    /// What a peer reads, in 10^9 bytes a second.
    pub fn rate_of(&self, who: PeerKind) -> Option<f64> {
        let us = match who {
            PeerKind::Torch => self.torch_us,
            PeerKind::Cub => self.cub_us,
        };
        Some(rate(self.bytes_read, us?))
    }

    /// The share of plain reading that is expected of it, by the size of its input.
    pub fn expected(&self) -> Option<f64> {
        match self.bytes_read {
            LONG.. => Some(EXPECTED.1),
            bytes if bytes > BEYOND_CACHE => Some(EXPECTED.0),
            _ => None,
        }
    }
}

/// So many bytes in so many microseconds, in 10^9 a second.
fn rate(bytes: u64, us: f64) -> f64 {
    bytes as f64 / us / 1e3
}

/// A row without times.
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

/// All that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct ReductionReport {
    /// `simulator`, or the GPU's name.
    pub device: String,
    /// Of the random elements.
    pub seed: u64,
    /// Plain reading, in 10^9 bytes a second.
    pub read_gb_s: Option<f64>,
    /// The peers, with their versions.
    pub peers: Vec<String>,
    /// The problems.
    pub rows: Vec<ReductionRow>,
    /// What follows from them.
    pub means: Vec<ReductionMean>,
}

/// A geometric mean of ratios.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReductionMean {
    /// The table.
    pub table: &'static str,
    /// What is folded.
    pub op: &'static str,
    /// What is compared with: `PyTorch` or `CUB`.
    pub peer: &'static str,
    /// The mean of their times over ours.
    pub ratio: f64,
    /// Of so many problems.
    pub count: usize,
    /// The least of the ratios.
    pub least: f64,
}

/// The geometric means of each table, fold and peer that there are.
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

/// The rows that are slower than a peer, and those that are slower than is expected beside plain reading: a line
/// for each.
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
            reading
                .push(format!("{}: {share:.1} % of reading, less than {expected:.0} %", row.title));
        }
    }
    (peers, reading)
}

#[cfg(test)]
mod tests {
    use super::super::problem::{Along, Fold};
    use super::*;
    use gemm_runtime::spec::DataType;

    /// A row of so many elements of `f32` that took so long, and PyTorch so long.
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
    fn what_is_behind_is_named() {
        // 89 % of reading: enough of 512 MB, too little of 1 GB.
        let rows =
            [timed(1 << 28, 300.0, 150.0), timed(1 << 27, 150.0, 450.0), timed(64, 9.0, 9.0)];
        let (peers, reading) = behind(&rows);
        assert_eq!(peers, ["sum of 2^28: 0.50 of PyTorch"]);
        assert_eq!(reading, ["sum of 2^28: 89.5 % of reading, less than 95 %"]);
    }
}
