//! Predicted cost of a schedule: bytes, memory and time.

mod time;
mod traffic;

use super::{ClusterModel, StagingBuffer, VerifiedSchedule};
use gemm_dsl::spec::GemmTypes;
use std::fmt;

/// Bytes of an element: schedules are for `f32` matrices.
pub(super) const ELEMENT: u64 = GemmTypes::F32.c.size() as u64;

/// Predicted cost of a schedule on a [`ClusterModel`]. Bytes and memory are exact. Times come from
/// a model that is within 10 % of measurements on four H200 at n = 8192 and above.
///
/// Each rank has one timeline for multiplications and one for exchanges:
///
/// * An exchange begins once all its ranks have reached it and finished their earlier exchanges. It
///   takes as long as its slowest rank or host. The time of a rank or host follows from the larger
///   of its received and its sent bytes.
/// * A multiplication begins after the previous multiplication and after the waits before it. It is
///   slower while its rank takes part in an exchange.
///
/// The model ignores:
///
/// * kernels with split-K, for GEMMs of less than a wave of the smallest tiles;
/// * memory traffic of a GEMM, except of its splits, which matters for small K;
/// * overlap of a GEMM's last wave with the first wave of the next GEMM;
/// * clocks that fall under load;
/// * the wait of NCCL's kernels for SMs that a GEMM occupies, up to the time of a tile;
/// * links of unequal speed between the GPUs of a host;
/// * networks in which some pairs of hosts have less bandwidth than the link of each host;
/// * the time until all ranks reach the first step.
///
/// No prediction for several hosts was compared with measurements.
///
/// ```
/// use gemm_world::plan::{ClusterModel, Distribution, Distributions, Schedule, Strategy};
///
/// let n = 16384;
/// let distributions = Distributions {
///     a: Distribution::rows(n, n),
///     b: Distribution::cols(n, n),
///     c: Distribution::cols(n, n),
/// };
/// let schedule = Schedule::new(distributions, 4, Strategy::Sequential)?;
/// let estimate = schedule.estimate(&ClusterModel::h200_nccl());
/// assert_eq!(estimate.bytes, [805306368; 4]);
/// assert_eq!(
///     estimate.to_string(),
///     "bytes: at most 805.3 MB into a rank, 3.2 GB in all
/// memory: at most 1.1 GB of a rank beside its shards
/// predicted time: 45.20 ms = 42.71 ms of products + 2.49 ms exposed, of 2.49 ms of exchanges; \
/// 94.5 % of the local speed
/// "
/// );
/// # Ok::<(), gemm_world::plan::ScheduleFault>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Bytes that each rank receives from other ranks.
    pub bytes: Vec<u64>,
    /// Bytes of memory that each rank needs beside its shards: [`VerifiedSchedule::staging`], and
    /// copies of blocks that the machine [packs](ClusterModel::staging). Memory of kernels, such as
    /// splits and split-K partial sums, is not included.
    pub memory: Vec<u64>,
    /// Seconds to compute a rank's share of C in one launch if all data is present, on the slowest
    /// rank.
    pub local: f64,
    /// Seconds of the schedule's multiplications if no exchange slows them, on the slowest rank.
    pub products: f64,
    /// Seconds of the exchanges alone.
    pub exchanges: f64,
    /// Seconds of the whole schedule.
    pub time: f64,
}

impl Estimate {
    /// Returns the seconds that exchanges add to the multiplications by delaying or slowing them.
    pub fn exposed(&self) -> f64 {
        (self.time - self.products).max(0.0)
    }

    /// Returns the ratio of `local` to `time`: the achieved share of the speed that the GEMM would
    /// have with all data present. Returns 1 if nothing is computed.
    pub fn efficiency(&self) -> f64 {
        match self.time > 0.0 {
            true => self.local / self.time,
            false => 1.0,
        }
    }

    /// Returns the largest of all ranks' [`memory`](Self::memory) in bytes.
    pub fn most_memory(&self) -> u64 {
        self.memory.iter().copied().max().unwrap_or(0)
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = self.bytes.iter().copied().max().unwrap_or(0);
        let all = self.bytes.iter().fold(0_u64, |all, bytes| all.saturating_add(*bytes));
        writeln!(f, "bytes: at most {} into a rank, {} in all", Bytes(most), Bytes(all))?;
        writeln!(f, "memory: at most {} of a rank beside its shards", Bytes(self.most_memory()))?;
        writeln!(
            f,
            "predicted time: {} = {} of products + {} exposed, of {} of exchanges; {:.1} % of the \
             local speed",
            Seconds(self.time),
            Seconds(self.products),
            Seconds(self.exposed()),
            Seconds(self.exchanges),
            100.0 * self.efficiency()
        )
    }
}

/// Number of bytes, printed with a decimal prefix.
pub(super) struct Bytes(pub(super) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut number, mut unit) = (self.0 as f64, "B");
        for larger in ["kB", "MB", "GB", "TB", "PB", "EB"] {
            // Larger numbers would be printed as 1000.0.
            if number < 999.95 {
                break;
            }
            (number, unit) = (number / 1000.0, larger);
        }
        match unit {
            "B" => f.pad(&format!("{number} B")),
            unit => f.pad(&format!("{number:.1} {unit}")),
        }
    }
}

/// Time in seconds, printed with a prefix.
pub(super) struct Seconds(pub(super) f64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, unit) = match self.0 {
            seconds if seconds < 999.995e-6 => (seconds * 1e6, "us"),
            seconds if seconds < 999.995e-3 => (seconds * 1e3, "ms"),
            seconds => (seconds, "s"),
        };
        f.pad(&format!("{number:.2} {unit}"))
    }
}

impl VerifiedSchedule {
    /// Predicts the cost of the schedule on a machine.
    pub fn estimate(&self, machine: &ClusterModel) -> Estimate {
        let traffic = traffic::traffic(self, machine);
        let bytes_of = |(staging, staged): (&Vec<StagingBuffer>, &u64)| {
            let all = staging.iter().fold(0_u64, |all, room| all.saturating_add(room.len as u64));
            all.saturating_mul(ELEMENT).saturating_add(*staged)
        };
        let kept = self.shards().c.iter();
        let local = kept
            .map(|block| machine.gpu.product([block.rows.len(), block.cols.len(), self.size.k]));
        let times = time::times(self, machine, &traffic.times);
        Estimate {
            bytes: traffic.bytes,
            memory: self.staging().iter().zip(&traffic.staged).map(bytes_of).collect(),
            local: local.fold(0.0, f64::max),
            products: times.products,
            exchanges: times.exchanges,
            time: times.all,
        }
    }
}
