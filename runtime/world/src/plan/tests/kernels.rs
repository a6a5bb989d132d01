//! Machines adapted to a kernel's arithmetic and to the layout of its matrices.

use crate::plan::*;
use gemm_dsl::spec::{GemmLayout as Lies, SgemmSpec};

const ONE: Tile = Tile { rows: 1, cols: 1, reached: 1.0 };

/// Machine on which a GEMM takes m·n·k seconds and a byte over a link one second. Exchanges do not
/// slow GEMMs down.
fn slow(splits: Splits) -> ClusterModel {
    let of_h200 = ClusterModel::h200_host();
    let gpu = Gpu {
        flops: 2.0,
        tiles: &[ONE],
        multiprocessors: 1,
        launch: 0.0,
        memory: 1.0,
        splits,
        ..of_h200.gpu
    };
    ClusterModel { name: "slow", gpu, link: Link { latency: 0.0, rate: 1.0 }, lost: 0.0, ..of_h200 }
}

/// Medians of `tests/data/profiler/times.csv`, in ms.
#[test]
fn products_of_each_arithmetic_take_as_long_as_was_measured() {
    for (line, of_4096, of_8192, share) in [
        ("tile: 128x256x32, warp: 64x64, arith: bf16", 0.650672, 4.86139, 0.04),
        ("tile: 64x128x16, warp: 64x32, arith: bf16x6", 2.39794, 18.8006, 0.02),
        ("tile: 128x128x64, arith: bf16, mma: wgmma", 0.236768, 1.61824, 0.02),
        ("tile: 128x128x32, arith: bf16x6, mma: wgmma", 1.0655, 8.16482, 0.02),
        ("tile: 128x128x32, arith: f16x3, mma: wgmma", 0.670448, 4.84533, 0.03),
    ] {
        let spec: SgemmSpec = line.parse().unwrap();
        for machine in [
            ClusterModel::h200_nccl(),
            ClusterModel::h200_copy_engines(),
            ClusterModel::h200_host(),
        ] {
            let gpu = machine.computing(&spec).gpu;
            for (n, measured) in [(4096, of_4096), (8192, of_8192)] {
                let off = gpu.product([n; 3]) * 1e3 / measured - 1.0;
                assert!(off.abs() <= share, "{line} at {n}: {:.1} % off", 100.0 * off);
            }
        }
    }
    // An arithmetic without its own rate uses the rate of `f32`.
    let gpu = ClusterModel::h200_nccl().gpu;
    let spec = |line: &str| line.parse::<SgemmSpec>().unwrap();
    let of = |line: &str| gpu.computing(&spec(line)).product([4096; 3]);
    assert_eq!(of("tile: 128x128x8, thread: 8x8"), gpu.product([4096; 3]));
    let none = Gpu { rates: &[], ..gpu };
    let tf32 = spec("tile: 128x256x32, warp: 64x64, arith: tf32");
    assert_eq!(none.computing(&tf32).product([4096; 3]), gpu.product([4096; 3]));
}

/// Faster GEMMs leave less time to hide exchanges.
#[test]
fn chosen_strategies_depend_on_the_arithmetic() {
    let n = 8192;
    let distributions = Distributions {
        a: Distribution::rows(n, n),
        b: Distribution::cols(n, n),
        c: Distribution::cols(n, n),
    };
    let of = |line: &str| {
        let machine = ClusterModel::h200_copy_engines().computing(&line.parse().unwrap());
        Schedule::cheapest(distributions.clone(), 4, &machine, None).unwrap().estimate
    };
    let [plain, six, three] = ["f32", "bf16x6", "f16x3"].map(|arith| match arith {
        "f32" => of("tile: 128x128x8, thread: 8x8"),
        arith => of(&format!("tile: 128x128x32, arith: {arith}, mma: wgmma")),
    });
    assert!(three.local < six.local && six.local < 0.5 * plain.local);
    assert!(three.efficiency() < six.efficiency() && six.efficiency() < plain.efficiency());
}

/// With `once`, a rank splits its own shards once before all other work, and received parts for
/// each GEMM. Without `once`, it splits everything for each GEMM.
#[test]
fn splits_are_computed_once_or_for_each_product() {
    let distributions = Distributions {
        a: Distribution::rows(4, 3),
        b: Distribution::whole(3, 5),
        c: Distribution::whole(4, 5),
    };
    let schedule = Schedule::new(distributions, 2, Strategy::Gather { parts: 1 }).unwrap();
    let of = |splits| schedule.estimate(&slow(splits));
    let none = of(Splits::default());
    // Own rows take 2·5·3 s, and 24 bytes are received.
    assert_eq!((none.products, none.time, none.exchanges), (60.0, 60.0, 24.0));
    let each = of(Splits { bytes: 2.0, once: false });
    // Two GEMMs, each with 6 elements of A and all 15 of B.
    assert_eq!((each.products, each.time), (60.0 + 4.0 * (6.0 + 15.0), 144.0));
    let once = of(Splits { bytes: 2.0, once: true });
    assert_eq!((once.products, once.time), (60.0 + 2.0 * (6.0 + 15.0) + 2.0 * 6.0, 114.0));
    assert_eq!(once.local, 60.0 + 2.0 * (12.0 + 15.0));
}

/// Senders of padded rows, and receivers into padded rows, need additional memory and time for
/// copies.
#[test]
fn blocks_whose_rows_lie_apart_are_staged() {
    let staged = |distributions: &Distributions, ranks, strategy, lies| {
        let schedule = Schedule::new(distributions.clone(), ranks, strategy).unwrap();
        let plain = ClusterModel { layout: lies, ..slow(Splits::default()) };
        let (without, with) = (
            schedule.estimate(&plain),
            schedule.estimate(&ClusterModel { staging: true, ..plain }),
        );
        assert_eq!(without.bytes, with.bytes);
        let more = |(with, without): (&u64, &u64)| with - without;
        let memory: Vec<u64> = with.memory.iter().zip(&without.memory).map(more).collect();
        (memory, with.exchanges - without.exchanges)
    };
    let of = |text: &str| text.parse::<Distribution>().unwrap();
    // B is distributed by rows, and each rank needs its columns. Senders pack 2x3 or 4x5 of 8
    // columns; receivers store whole rows.
    let distributions =
        Distributions { a: of("2x6 whole"), b: of("6x8 rows[2,4]"), c: of("2x8 cols[5,3]") };
    let rows = staged(&distributions, 2, Strategy::Sequential, Lies::Nn);
    assert_eq!(rows, (vec![4 * 2 * 3, 4 * 4 * 5], 2.0 * 80.0));
    // With B transposed, senders have whole rows, and receivers unpack them.
    let columns = staged(&distributions, 2, Strategy::Sequential, Lies::Nt);
    assert_eq!(columns, (vec![4 * 4 * 5, 4 * 2 * 3], 2.0 * 80.0));
    assert_eq!(staged(&distributions, 2, Strategy::Sequential, Lies::Tn), rows);
    // Columns of A are unpacked, and rows of A are not.
    let distributions =
        Distributions { a: of("4x6 cols[2,4]"), b: of("6x2 whole"), c: of("4x2 rows[4,0]") };
    let columns = staged(&distributions, 2, Strategy::Sequential, Lies::Nn);
    assert_eq!(columns, (vec![4 * 4 * 4, 0], 2.0 * 64.0));
    assert_eq!(staged(&distributions, 2, Strategy::Sequential, Lies::Tn), (vec![0, 0], 0.0));
    let distributions = Distributions { a: of("9x4 rows"), b: of("4x6 cols"), c: of("9x6 cols") };
    for strategy in [Strategy::Sequential, Strategy::Gather { parts: 2 }, Strategy::Rotate] {
        assert_eq!(staged(&distributions, 3, strategy, Lies::Nn), (vec![0; 3], 0.0), "{strategy}");
    }
    // With A transposed, each whole shard arrives in its own slot.
    assert_eq!(staged(&distributions, 3, Strategy::Rotate, Lies::Tn), (vec![0; 3], 0.0));
    // Gathered: 3 rows from each of two other ranks, of 9.
    let gathered = staged(&distributions, 3, Strategy::Sequential, Lies::Tn);
    assert_eq!(gathered, (vec![4 * 2 * 3 * 4; 3], 2.0 * 96.0));
}

/// A memory limit includes packed copies.
#[test]
fn packed_copies_count_towards_the_memory_limit() {
    let n = 64;
    let distributions = Distributions {
        a: Distribution::whole(n, n),
        b: Distribution::rows(n, n),
        c: Distribution::cols(n, n),
    };
    let plain = slow(Splits::default());
    let staging = ClusterModel { staging: true, ..plain };
    let least = |machine: &ClusterModel| match Schedule::cheapest(
        distributions.clone(),
        4,
        machine,
        Some(0),
    )
    .unwrap_err()
    {
        ScheduleFault::Memory { least, .. } => least,
        other => panic!("{other}"),
    };
    assert!(least(&plain) < least(&staging));
    let chosen =
        Schedule::cheapest(distributions.clone(), 4, &staging, Some(least(&staging))).unwrap();
    assert_eq!(chosen.estimate.most_memory(), least(&staging));
}
