//! Timelines that can be computed by hand.

use crate::plan::*;

const ONE: Tile = Tile { rows: 1, cols: 1, reached: 1.0 };

/// Machine whose GPU has one SM and tiles of one element: a GEMM takes m·n·k seconds. A byte takes
/// one second, and an exchange one more.
fn slow(lost: f64) -> ClusterModel {
    let gpu = Gpu {
        flops: 2.0,
        tiles: &[ONE],
        multiprocessors: 1,
        launch: 0.0,
        memory: f64::INFINITY,
        ..ClusterModel::h200_host().gpu
    };
    let link = Link { latency: 1.0, rate: 1.0 };
    ClusterModel { name: "slow", gpu, link, lost, ..ClusterModel::h200_host() }
}

/// Distributions in which the first rank has all of B and C, and A is distributed by these numbers
/// of rows.
fn first_has_c(rows: &[usize], n: usize) -> (Distributions, usize) {
    let m = rows.iter().sum();
    let mut all_of = vec![0; rows.len()];
    all_of[0] = m;
    let of = |lengths: &[usize], cols| Distribution {
        split: Split::Rows(Cut::Lengths(lengths.to_vec())),
        ..Distribution::whole(m, cols)
    };
    (Distributions { a: of(rows, 1), b: Distribution::whole(1, n), c: of(&all_of, n) }, rows.len())
}

fn estimate(rows: &[usize], n: usize, strategy: Strategy, lost: f64) -> Estimate {
    let (distributions, ranks) = first_has_c(rows, n);
    Schedule::new(distributions, ranks, strategy).unwrap().estimate(&slow(lost))
}

#[test]
fn an_exchange_waits_for_the_products_that_read_its_slot() {
    // Own rows take 1·50 s. Slot 0 is full at 4·10 + 1 = 41 s, slot 1 at 46 s. The first part is
    // multiplied from 50 to 550 s. The third part then arrives until 591 s, beside the second
    // multiplication, which ends at 600 s.
    let free = estimate(&[1, 10, 1, 10], 50, Strategy::Rotate, 0.0);
    assert_eq!((free.products, free.exchanges, free.time), (1100.0, 41.0 + 5.0 + 41.0, 1100.0));
    // With one column, the own row is done at 1 s. The first part arrives at 401 s and is done at
    // 501 s. The second arrives at 406 s and is done at 502 s. The third begins at 501 s, not at
    // 406 s, arrives at 902 s and is done at 1002 s.
    let bound = estimate(&[1, 100, 1, 100], 1, Strategy::Rotate, 0.0);
    assert_eq!((bound.products, bound.exchanges, bound.time), (202.0, 401.0 + 5.0 + 401.0, 1002.0));
    assert_eq!(bound.exposed(), 800.0);
    // Gathering does not wait: everything has arrived at 807 s.
    let gathered = estimate(&[1, 100, 1, 100], 1, Strategy::Gather { parts: 1 }, 0.0);
    assert_eq!((gathered.exchanges, gathered.time), (805.0, 805.0 + 201.0));
}

#[test]
fn products_lose_speed_beside_exchanges_alone() {
    // Own rows take 10·20 s, during an exchange of 4·10 + 1 s. Then 10 more rows follow.
    for (lost, time) in [(0.0, 400.0), (0.5, 400.0 + 20.5), (1.0, 400.0 + 41.0)] {
        let estimate = estimate(&[10, 10], 20, Strategy::Gather { parts: 1 }, lost);
        assert_eq!((estimate.products, estimate.time), (400.0, time), "{lost}");
    }
    // The exchange outlasts the own rows: they take 20 s instead of 10, and nothing is computed for
    // the next 21 s.
    let estimate = estimate(&[10, 10], 1, Strategy::Gather { parts: 1 }, 0.5);
    assert_eq!((estimate.products, estimate.time), (20.0, 51.0));
    assert_eq!(estimate.efficiency(), 20.0 / 51.0);
}

#[test]
fn exchanges_take_as_long_as_the_largest_sender() {
    let a = Distribution {
        split: Split::Rows(Cut::Lengths(vec![5, 0, 0])),
        ..Distribution::whole(5, 3)
    };
    let distributions =
        Distributions { a, b: Distribution::cols(3, 6), c: Distribution::cols(5, 6) };
    let schedule = Schedule::new(distributions, 3, Strategy::Sequential).unwrap();
    // Two other ranks receive all 15 elements.
    let estimate = schedule.estimate(&slow(0.0));
    assert_eq!((estimate.exchanges, estimate.bytes), (121.0, vec![0, 60, 60]));
    // Between hosts, the other host receives the elements either once, or once for each of its
    // ranks.
    for (once, seconds) in [(true, 6.0), (false, 12.0)] {
        let network = Link { latency: 0.0, rate: 10.0 };
        let distributions = schedule.distributions.clone();
        let Split::Rows(Cut::Lengths(lengths)) = &distributions.a.split else { unreachable!() };
        // Rank 0 shares its host with another rank.
        let a = Distribution {
            split: Split::Rows(Cut::Lengths([&lengths[..], &[0]].concat())),
            ..distributions.a
        };
        let distributions =
            Distributions { a, b: Distribution::cols(3, 6), c: Distribution::cols(5, 6) };
        let schedule = Schedule::new(distributions, 4, Strategy::Sequential).unwrap();
        let link = Link { latency: 0.0, rate: f64::INFINITY };
        let machine =
            ClusterModel { link, hosts: Some(Hosts { gpus: 2, network, once }), ..slow(0.0) };
        assert_eq!(schedule.estimate(&machine).exchanges, seconds);
    }
}

/// Data gathered from a rank's own shard is copied in its memory, not sent over a link.
#[test]
fn own_terms_are_copied() {
    let distributions = Distributions {
        a: Distribution::cols(4, 6),
        b: Distribution::cols(6, 2),
        c: Distribution::cols(4, 2),
    };
    let schedule = Schedule::new(distributions, 2, Strategy::Sequential).unwrap();
    let fast = Link { latency: 0.0, rate: f64::INFINITY };
    let gpu = Gpu { memory: 2.0, ..slow(0.0).gpu };
    let estimate = schedule.estimate(&ClusterModel { gpu, link: fast, ..slow(0.0) });
    // 12 elements of 4 bytes are read and written.
    assert_eq!((estimate.exchanges, estimate.bytes), (48.0, vec![48, 48]));
}

#[test]
fn the_last_wave_takes_as_long_as_any() {
    let tiles = &[Tile { rows: 4, cols: 2, reached: 1.0 }];
    let of_h200 = ClusterModel::h200_host().gpu;
    let gpu = Gpu { flops: 200.0, tiles, multiprocessors: 10, launch: 0.5, memory: 1.0, ..of_h200 };
    // A wave is 80 elements with K = 5 and two operations each: 800 operations.
    for ([m, n], waves) in
        [([4, 20], 1.0), ([5, 20], 2.0), ([4, 21], 2.0), ([1, 1], 1.0), ([8, 20], 2.0)]
    {
        assert_eq!(gpu.product([m, n, 5]), 0.5 + 4.0 * waves, "{m} {n}");
    }
    assert_eq!((gpu.product([0, 4, 5]), gpu.product([4, 4, 0])), (0.0, 0.5));
    // Smaller tiles are worth their lower rate if large ones do not fill a wave.
    let tiles = &[Tile { rows: 4, cols: 2, reached: 1.0 }, Tile { rows: 2, cols: 1, reached: 0.5 }];
    let both = Gpu { tiles, ..gpu };
    for ([m, n], waves) in [
        ([4, 20], 1.0),
        ([4, 5], 0.5),
        ([4, 6], 1.0),
        ([8, 11], 2.0),
        ([8, 10], 1.0),
        ([5, 12], 2.0),
        ([2, 21], 1.5),
    ] {
        assert_eq!(both.product([m, n, 5]), 0.5 + 4.0 * waves, "{m} {n}");
    }
}

#[test]
fn bytes_and_times_print_for_people() {
    let rotating = estimate(&[1, 100, 1, 100], 1, Strategy::Rotate, 0.0);
    let text = "bytes: at most 804 B into a rank, 804 B in all
memory: at most 404 B of a rank beside its shards
predicted time: 1002.00 s = 202.00 s of products + 800.00 s exposed, of 807.00 s of exchanges; \
    20.2 % of the local speed
";
    assert_eq!(rotating.to_string(), text);
    let bytes = |bytes| estimate::Bytes(bytes).to_string();
    let printed = [0, 999, 1000, 999_949, 999_950, u64::MAX].map(bytes);
    assert_eq!(printed, ["0 B", "999 B", "1.0 kB", "999.9 kB", "1.0 MB", "18.4 EB"]);
    let seconds = |seconds| estimate::Seconds(seconds).to_string();
    assert_eq!(
        [0.0, 3.2e-6, 999.996e-6, 1.5, 2e3].map(seconds),
        ["0.00 us", "3.20 us", "1.00 ms", "1.50 s", "2000.00 s"]
    );
}
