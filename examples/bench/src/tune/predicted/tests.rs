use super::*;
use crate::tune::options::TuneOptions;
use clap::Parser;
use gemm_perf::{H200, csv};

/// Limit that a small space does not reach.
const ALL: Limit = Limit { time: Duration::from_secs(60), classes: usize::MAX, seed: 1 };

#[test]
fn a_space_is_ranked_by_classes() {
    let line = "tile: 64x64x8 | 32x32x8, thread: 4x4 | 2x2, float4, transpose, stages: 2,
                spread: 1 | 4 | 5, order: row | row_serpentine, pitched | none";
    let space = Space::parse(&[line]).expect("a space");
    let size = Size::square(512);
    let ranked = rank(&space, size, &H200, ALL).expect("it runs");
    assert_eq!(ranked.len(), 4, "{ranked:?}");
    assert!(ranked.windows(2).all(|pair| pair[0].time <= pair[1].time));
    assert!(ranked.iter().all(|one| one.spec.spread == 5));
    assert!(ranked.iter().all(|one| one.spec.order == Order::RowSerpentine && !one.spec.pitched));
    // With four by four accumulators, there are fewer reads per accumulator.
    assert_eq!(ranked[0].spec.thread.m, 4);
}

#[test]
fn a_space_without_specs_says_why() {
    for (line, why) in [("tiel: 64x64x8", "tiel"), ("tile: 63x64x8, thread: 4x4", "63")] {
        let space = Space::parse(&[line]).expect("a space");
        let error = rank(&space, Size::square(512), &H200, ALL).expect_err(line);
        assert!(matches!(&error, Failure::Spec(faults) if faults.to_string().contains(why)));
    }
}

#[test]
fn similar_specs_are_ranked_with_one_per_tile_first() {
    let one = |line: &str, time| PredictedSpec {
        point: Space::parse(&[line]).expect("a line").all().next().expect("a point"),
        spec: line.parse().expect("a spec"),
        time,
        bound: Bound::Waiting,
    };
    let tile = |n: u32, rest: &str| format!("tile: {n}x{n}x8, thread: 4x4, float4, {rest}");
    let found = vec![
        one(&tile(64, "double_buffer"), 1.0),
        one(&tile(64, "stages: 2"), 1.005),
        one(&tile(64, "stages: 4"), 1.006),
        one(&tile(32, "stages: 2"), 1.007),
        one(&tile(64, "stages: 3"), 1.2),
    ];
    let ranked: Vec<f64> = varied(found).iter().map(|one| one.time).collect();
    // Three stages would be preferred, but take longer by more than the model's error.
    assert_eq!(ranked, [1.005, 1.007, 1.0, 1.006, 1.2]);
}

/// Output of `examples/bench/peers/first.py`: times of the first specs of a ranking and of the best
/// specs of a search, measured together on one GPU.
const FIRST: &str = include_str!("../../../../../tests/data/profiler/first.csv");

/// Maximum ratio of the best time of the first ten ranked specs to the best time of the search.
const NEAR: f64 = 1.03;

/// Timed spec, with its place in the ranking.
struct Timed {
    place: Option<usize>,
    spec: String,
    time: f64,
}

/// By default only the preset `small` is ranked.
#[test]
fn the_first_ten_of_a_ranking_hold_one_that_no_search_beats_by_much() {
    let (device, table) = FIRST.split_once('\n').expect("a line on the device");
    assert!(device.starts_with("# NVIDIA "), "where they were taken");
    // Options of the ranking: preset, size, classes and seed.
    let mut runs: Vec<([String; 4], Vec<Timed>)> = Vec::new();
    for line in table.lines().skip(1) {
        let [preset, n, classes, seed, place, spec, time]: [String; 7] =
            csv::cells(line).try_into().expect("seven columns");
        let of = [preset, n, classes, seed];
        let timed = Timed { place: place.parse().ok(), spec, time: time.parse().expect("ms") };
        match runs.iter_mut().find(|(run, _)| *run == of) {
            Some((_, all)) => all.push(timed),
            None => runs.push((of, vec![timed])),
        }
    }
    assert_eq!(runs.iter().map(|(of, _)| &of[0]).collect::<Vec<_>>(), ["large", "small"]);
    for (nth, ([preset, n, classes, seed], all)) in runs.into_iter().enumerate() {
        if !gemm_cases::is_in_turn(nth, 2, 1) {
            continue;
        }
        let words = ["tune", "--for", "h200", "--preset", &preset, "--size", &n];
        let options = TuneOptions::try_parse_from(words).expect("options");
        let classes = classes.parse().expect("a number");
        let limit = Limit {
            time: Duration::from_secs(3600),
            classes,
            seed: seed.parse().expect("a number"),
        };
        let size = Size::square(n.parse().expect("a size"));
        let ranked = rank(&options.space().expect("a space"), size, &H200, limit).expect("it runs");
        assert_eq!(ranked.len(), classes);
        let first: Vec<String> = ranked.iter().take(10).map(|one| one.spec.to_string()).collect();
        let mut placed: Vec<&Timed> = all.iter().filter(|one| one.place.is_some()).collect();
        placed.sort_by_key(|one| one.place);
        let pinned: Vec<&str> = placed.iter().map(|one| &*one.spec).collect();
        assert_eq!(first, pinned, "{preset}: other specs are first now; measure them, too");
        let best = |all: &mut dyn Iterator<Item = &Timed>| {
            all.map(|one| one.time).fold(f64::INFINITY, f64::min)
        };
        let searched = best(&mut all.iter().filter(|one| one.place.is_none()));
        let found = best(&mut placed.into_iter());
        println!("{preset}: {:+.1} %", 100.0 * (found / searched - 1.0));
        assert!(found <= NEAR * searched, "{preset}: {found} ms instead of {searched} ms");
    }
}
