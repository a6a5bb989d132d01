//! Estimates against measurements on 4 H200, and against an independently computed table.

use super::{by_columns, by_patches};
use crate::plan::*;

const SIZES: [usize; 3] = [8192, 16384, 32768];

fn within(predicted: f64, measured: f64, share: f64, what: &str) {
    let off = predicted / measured - 1.0;
    assert!(off.abs() <= share, "{what}: {predicted:.4} is {:.1} % off {measured}", 100.0 * off);
}

fn efficiency(machine: &ClusterModel, n: usize, strategy: Strategy) -> f64 {
    Schedule::new(by_columns(n), 4, strategy).unwrap().estimate(machine).efficiency()
}

#[test]
fn local_products_take_as_long_as_was_measured() {
    for (n, milliseconds) in SIZES.into_iter().zip([5.34, 42.7, 339.0]) {
        let schedule = Schedule::new(by_columns(n), 4, Strategy::Sequential).unwrap();
        let estimate = schedule.estimate(&ClusterModel::h200_nccl());
        within(estimate.local, milliseconds * 1e-3, 0.01, "a local product");
        assert_eq!(estimate.local, estimate.products);
    }
}

#[test]
fn all_gathers_are_as_fast_as_was_measured() {
    for (mib, rate) in [(1, 58e9), (16, 251e9), (64, 296e9), (256, 324e9), (1024, 341e9)] {
        let bytes = (3 * mib) << 20;
        within(
            bytes as f64 / ClusterModel::h200_nccl().link.time(bytes),
            rate,
            0.05,
            "an all-gather",
        );
    }
    // Gathers of the measured GEMMs.
    for (n, milliseconds) in SIZES.into_iter().zip([0.68, 2.50, 9.5]) {
        let schedule = Schedule::new(by_columns(n), 4, Strategy::Sequential).unwrap();
        let exchanges = schedule.estimate(&ClusterModel::h200_nccl()).exchanges;
        within(exchanges, milliseconds * 1e-3, 0.05, "the gather of a product");
    }
}

#[test]
fn one_after_the_other_is_as_fast_as_was_measured() {
    for (n, measured) in SIZES.into_iter().zip([0.89, 0.94, 0.97]) {
        within(
            efficiency(&ClusterModel::h200_nccl(), n, Strategy::Sequential),
            measured,
            0.02,
            "one after the other",
        );
    }
}

/// With NCCL, GEMMs hide no exchange: the total time is at least the sum of both times.
#[test]
fn beside_nccl_products_are_as_slow_as_was_measured() {
    for (n, measured) in SIZES.into_iter().zip([0.90, 0.94, 0.95]) {
        let strategy = Strategy::Gather { parts: 1 };
        within(
            efficiency(&ClusterModel::h200_nccl(), n, strategy),
            measured,
            0.03,
            "own rows first, NCCL",
        );
    }
    // All rows are divided into 4, 8 and 16 chunks. A quarter of the chunks are the rank's own.
    for (n, [least, most]) in SIZES.into_iter().zip([[0.75, 0.83], [0.90, 0.94], [0.93, 0.95]]) {
        for parts in [3, 6, 12] {
            let predicted = efficiency(&ClusterModel::h200_nccl(), n, Strategy::Gather { parts });
            assert!(
                predicted >= least * 0.9 && predicted <= most * 1.1,
                "{n}, {parts}: {predicted}"
            );
        }
    }
}

#[test]
fn beside_copy_engines_products_are_as_fast_as_was_measured() {
    // Two runs at 8192 gave 0.91 and 0.93.
    for (n, measured) in [(8192, 0.91), (8192, 0.93), (16384, 0.969), (32768, 0.967)] {
        for strategy in [Strategy::Rotate, Strategy::Gather { parts: 3 }] {
            within(
                efficiency(&ClusterModel::h200_copy_engines(), n, strategy),
                measured,
                0.055,
                "copy engines",
            );
        }
    }
}

/// Machine of the table, with rates only: 54 or 160 TFLOP/s, 370 GB/s into a GPU, and 46 GB/s into
/// a host for each of its GPUs.
fn ideal(teraflops: f64) -> ClusterModel {
    let gpu = Gpu {
        flops: teraflops * 1e12,
        tiles: &[Tile { rows: 1, cols: 1, reached: 1.0 }],
        multiprocessors: 1,
        launch: 0.0,
        memory: f64::INFINITY,
        ..ClusterModel::h200_host().gpu
    };
    let network = Link { latency: 0.0, rate: 8.0 * 46e9 };
    ClusterModel {
        name: "ideal",
        gpu,
        link: Link { latency: 0.0, rate: 370e9 },
        lost: 0.0,
        hosts: Some(Hosts { gpus: 8, network, once: true }),
        ..ClusterModel::h200_host()
    }
}

/// Time of the exchanges as a percentage of the time of the GEMM.
fn share(teraflops: f64, distributions: Distributions, ranks: usize) -> f64 {
    let estimate = Schedule::new(distributions, ranks, Strategy::Sequential)
        .unwrap()
        .estimate(&ideal(teraflops));
    100.0 * estimate.exchanges / estimate.local
}

/// Communication as a percentage of computation, for 1-D and 2-D distributions. Hosts have 8 GPUs
/// and are patches of the grid.
#[test]
fn communication_is_the_share_of_computing_that_was_worked_out() {
    const N: usize = 8192;
    for (teraflops, ranks, n, one, two) in [
        (54.0, 2, N, 4.0, 4.0),
        (54.0, 4, N, 11.0, 7.0),
        (54.0, 4, 2 * N, 5.0, 4.0),
        (54.0, 8, N, 25.0, 14.0),
        (54.0, 8, 4 * N, 6.0, 4.0),
        (54.0, 64, N, 225.0, 115.0),
        (54.0, 64, 8 * N, 28.0, 14.0),
        (54.0, 512, 4 * N, 455.0, 100.0),
        (54.0, 512, 16 * N, 114.0, 25.0),
        (160.0, 2, N, 11.0, 11.0),
        (160.0, 4, N, 32.0, 21.0),
        (160.0, 8, N, 74.0, 42.0),
        (160.0, 8, 2 * N, 37.0, 21.0),
        (160.0, 64, 4 * N, 166.0, 85.0),
        (160.0, 512, 16 * N, 337.0, 74.0),
    ] {
        let (grid, patch) = match ranks {
            2 => ([1, 2], [1, 2]),
            4 => ([2, 2], [2, 2]),
            8 => ([2, 4], [2, 4]),
            64 => ([4, 16], [2, 4]),
            _ => ([16, 32], [2, 4]),
        };
        for (distributions, percent) in [(by_columns(n), one), (by_patches(n, grid, patch), two)] {
            let share = share(teraflops, distributions, ranks);
            // The table is rounded to one percent.
            assert!(
                (share - percent).abs() <= 1.0,
                "{teraflops}, {ranks} at {n}: {share:.1} and not {percent}"
            );
        }
    }
}

/// Without collectives, a host receives the same data once for each of its ranks.
#[test]
fn what_comes_to_a_host_once_is_counted_once() {
    let ideal = ideal(54.0);
    let each = ideal.hosts.map(|hosts| Hosts { once: false, ..hosts });
    let schedule = Schedule::new(by_columns(8192), 64, Strategy::Sequential).unwrap();
    let slow = Link { latency: 0.0, rate: 1e9 };
    let of = |hosts: Option<Hosts>| {
        let hosts = hosts.map(|hosts| Hosts { network: slow, ..hosts });
        schedule.estimate(&ClusterModel { hosts, ..ideal }).exchanges
    };
    let all = 4.0 * 8192.0 * 8192.0 * 7.0 / 8.0 / 1e9;
    within(of(ideal.hosts), all, 1e-9, "once");
    within(of(each), 8.0 * all, 1e-9, "for each");
}

/// Patches halve the bytes per host on the network: a 2 x 4 patch has fewer neighbours than a 1 x 8
/// row.
#[test]
fn patches_need_less_of_other_hosts() {
    let of = |patch| share(54.0, by_patches(1 << 17, [16, 32], patch), 512);
    assert!(of([2, 4]) < 0.8 * of([1, 8]), "{} and {}", of([2, 4]), of([1, 8]));
    assert_eq!(of([1, 1]), of([1, 8]));
}

/// Rotation keeps two shards of A in memory beside the rank's own shards. Gathering keeps all of A.
#[test]
fn rotating_needs_two_shards_of_memory() {
    let n = 131_072;
    let of = |strategy| {
        Schedule::new(by_columns(n), 4, strategy)
            .unwrap()
            .estimate(&ClusterModel::h200_nccl())
            .memory
    };
    let shard = 4 * (n * n / 4) as u64;
    assert_eq!(of(Strategy::Rotate), [2 * shard; 4]);
    assert_eq!(of(Strategy::Gather { parts: 4 }), [4 * shard; 4]);
    assert_eq!(of(Strategy::Sequential), [4 * shard; 4]);
}

/// Printed table of the candidates.
#[test]
fn what_was_tried_prints() {
    let machine = ClusterModel::h200_copy_engines();
    let chosen = Schedule::cheapest(by_columns(8192), 4, &machine, Some(200_000_000)).unwrap();
    let text = chosen.to_string();
    let lines: Vec<&str> = text.lines().collect();
    let expected = [
        "8192x8192x8192 on 4 ranks of H200, copy engines, with at most 200.0 MB beside the shards \
         of a rank",
        "  way              bytes in      memory   predicted  efficiency",
        "  sequential       201.3 MB    268.4 MB     6.94 ms      76.9 %  exceeds the memory \
         limit",
        "  gather in 1      201.3 MB    268.4 MB     5.61 ms      95.2 %  exceeds the memory \
         limit",
    ];
    assert_eq!(lines[..4], expected);
    let last = "* rotate           201.3 MB    134.2 MB     5.59 ms      95.5 %";
    assert_eq!(lines.last(), Some(&last));
    let fault = Schedule::cheapest(by_columns(8192), 4, &machine, Some(100_000_000)).unwrap_err();
    let text = "no schedule needs at most 100000000 bytes beside the shards of a rank: the least \
        is 134217728, by `rotate`";
    assert_eq!(fault.to_string(), text);
}
