//! Time model of a distributed sum. It includes the bytes that a rank reads, the partial results
//! that are written and exchanged, and the launches.

use gemm_runtime::ReduceSpec;
use gemm_runtime::spec::LaunchForm;
use gemm_world::ClusterModel;

/// Predicted time and efficiency.
#[derive(Clone, Copy, Debug)]
pub struct PredictedTimes {
    /// Seconds on all ranks together.
    pub time: f64,
    /// Speed of each rank divided by the speed of a single device.
    pub efficiency: f64,
}

/// Times of a sum, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SumTimes {
    /// Seconds on one GPU with the whole array.
    pub one: f64,
    /// Seconds on all ranks together.
    pub all: f64,
}

impl SumTimes {
    /// Returns the speedup over one GPU, divided by the number of ranks.
    pub fn efficiency(&self, ranks: usize) -> f64 {
        self.one / (ranks as f64 * self.all)
    }

    /// Returns the prediction for a number of ranks.
    pub fn on(&self, ranks: usize) -> PredictedTimes {
        PredictedTimes { time: self.all, efficiency: self.efficiency(ranks) }
    }
}

/// Predicts the time of the sum of an `f32` array that is distributed in whole runs.
///
/// The array is read once, at the rate of copies. The partial result of each run is written and
/// read. Each rank receives the partial results of all other ranks and adds them in a second
/// launch. The model ignores that ranks start at different times, and that kernels may read more
/// slowly than copies.
pub fn predicted(spec: &ReduceSpec, len: usize, ranks: usize, machine: &ClusterModel) -> SumTimes {
    let run = spec.run.map_or(len, |run| run as usize).max(1);
    let runs = len.div_ceil(run);
    let partial = spec
        .plan()
        .and_then(|plan| plan.partials())
        .map_or(4, |parts| parts.iter().map(|(_, elem)| u64::from(elem.size())).sum());
    let moved = |bytes: u64| bytes as f64 / machine.gpu.memory;
    let read = |elements: usize| moved(4 * elements as u64);
    let left = |runs: usize| moved(partial * runs as u64);
    let launches = if spec.launch == Some(LaunchForm::Once) { 1.0 } else { 2.0 };
    let one = read(len) + 2.0 * left(runs) + launches * machine.gpu.launch;
    if ranks <= 1 {
        return SumTimes { one, all: one };
    }
    // The largest share of a rank.
    let own = runs.div_ceil(ranks);
    let shard = (own * run).min(len);
    let bytes = partial * (runs - own) as u64;
    let mut exchange = machine.link.time(bytes);
    if let Some(hosts) = machine.hosts.filter(|hosts| ranks > hosts.gpus) {
        let of_host = (own * hosts.gpus.max(1)).min(runs);
        let each = if hosts.once { 1 } else { hosts.gpus as u64 };
        exchange = exchange.max(hosts.network.time(partial * (runs - of_host) as u64 * each));
    }
    let all = read(shard) + left(own) + exchange + left(runs) + 2.0 * machine.gpu.launch;
    SumTimes { one, all }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gemm_world::Hosts;

    fn spec(line: &str) -> ReduceSpec {
        line.parse().expect("a line")
    }

    #[test]
    fn a_sum_takes_what_it_reads_and_what_travels() {
        let machine = ClusterModel::h200_nccl();
        let line = spec("op: sum, block: 256, float4, items: 4, shuffle, run: 65536");
        let len = 1 << 32;
        let one = predicted(&line, len, 1, &machine);
        let read = (4.0 * len as f64) / machine.gpu.memory;
        assert!(one.one >= read && one.one < 1.01 * read && one.efficiency(1) == 1.0, "{one:?}");
        let four = predicted(&line, len, 4, &machine);
        assert_eq!(four.one, one.one);
        // 2^16 runs have partial results of 4 bytes, three quarters of which are exchanged.
        let beside = 45e-6 + 196_608.0 / 330e9 + 2.0 * 3.2e-6;
        assert!((four.all - read / 4.0 - beside).abs() < 1e-6, "{four:?}");
        assert!(four.efficiency(4) > 0.93 && four.efficiency(4) < 1.0, "{four:?}");
        // A small sum is not faster on many ranks.
        let small = predicted(&line, 1 << 16, 8, &machine);
        assert!(small.efficiency(8) <= 0.125, "{small:?}");
    }

    #[test]
    fn more_parts_of_a_fold_and_more_hosts_travel_longer() {
        let one_host = ClusterModel::h200_nccl();
        let all =
            |line: &str, machine: &ClusterModel| predicted(&spec(line), 1 << 30, 16, machine).all;
        let (sum, moments) = ("op: sum, run: 256", "op: mean_var, run: 256");
        assert!(all(sum, &one_host) < all(moments, &one_host));
        let hosts = ClusterModel { hosts: Some(Hosts::infiniband(2)), ..one_host };
        assert!(all(sum, &one_host) < all(sum, &hosts));
        assert_eq!(predicted(&spec(sum), 0, 4, &one_host).all, 2.0 * one_host.gpu.launch);
    }
}
