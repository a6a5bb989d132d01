//! Tables fitted to times for which the best table is known.

use super::*;
use crate::shapes;
use crate::table_source::rows_of;
use crate::tune::table::times::{CUBLAS, Head, Time, TimesFile};
use crate::tune::table::tree::Tree;
use gemm_dsl::spec::{Accuracy, GemmLayout};
use std::collections::BTreeSet;

/// Returns a spec that is identified by its tile.
fn line(tile: &str) -> String {
    format!("tile: {tile}")
}

const TILES: [&str; 4] = ["8x8x8", "16x16x8", "32x32x8", "24x24x8"];

/// Limits with few trials.
fn limits(rows: usize) -> TreeLimits {
    TreeLimits { trials: 4, ..TreeLimits::of_rows(rows) }
}

/// Times at the shapes of the grid and at random shapes, computed by a function of the shape and
/// the tile's index.
fn times(drawn: usize, layouts: &[GemmLayout], us: impl Fn(&GemmShape, usize) -> f64) -> TimesFile {
    let mut times = TimesFile::new(Head { device: "it".to_owned(), arch: 90, sms: 132 });
    let grid = shapes::grid().into_iter().filter(|shape| layouts.contains(&shape.layout));
    for shape in grid.chain(shapes::random(5, drawn, layouts)) {
        for (number, tile) in TILES.iter().enumerate() {
            let time = Time::Us(us(&shape, number));
            times.add(shape, &line(tile), time).expect("no file");
        }
    }
    times
}

/// Returns the index of the tile that a table selects.
fn best(table: &KernelTable<SgemmSpec>, shape: &GemmShape) -> usize {
    let target = tables::Target { arch: 90, sms: 132 };
    let row = table.choose(&SgemmProblem { shape: shape.of_table(), target }).expect("in range");
    let tile = table.rules()[row].spec.tile.expect("a tile").to_string();
    TILES.iter().position(|known| *known == tile).expect("one of them")
}

/// Derives times from a table. The time of its choice is the number of bytes of the GEMM. Other
/// specs take 1.5 times as long.
fn known(text: &str, drawn: usize) -> (KernelTable<SgemmSpec>, TimesFile) {
    let table = read(text).expect(text);
    let times = times(drawn, &[GemmLayout::Nn], |shape, number| {
        let is_best = best(&table, shape) == number;
        shape.size.bytes() * if is_best { 1.0 } else { 1.5 }
    });
    (table, times)
}

#[test]
fn a_known_table_is_recovered() {
    for text in [
        "min(m, n) <= 8 => tile: 8x8x8; k > 2048 => tile: 16x16x8; else => tile: 24x24x8",
        "aligned => tile: 8x8x8; else => tile: 16x16x8",
        "waves(32x32) <= 1.0 => tile: 32x32x8; k <= 128 => tile: 8x8x8; else => tile: 16x16x8",
        "m * n <= 65536 => tile: 8x8x8; m <= 512 => tile: 32x32x8; else => tile: 24x24x8",
    ] {
        let (table, times) = known(text, 300);
        let samples = FitSamples::new(&times, Accuracy::Ieee);
        let rows = rows(&samples, &limits(10));
        let fitted = read(&super::text(&rows)).expect("a table");
        let regret = regret(&fitted, &samples).expect("all are timed");
        // A shape may be on the wrong side of a fitted threshold.
        assert!(regret.mean < 1.005, "{text}:\n{fitted}\n{regret:?}");
        let fresh = shapes::random(99, 1000, &[GemmLayout::Nn]);
        let same = fresh.iter().filter(|shape| best(&fitted, shape) == best(&table, shape));
        assert!(same.count() >= 950, "{text}:\n{fitted}");
        assert!(rows.len() <= 6, "{text}:\n{fitted}");
    }
}

#[test]
fn differences_below_two_percent_give_one_rule() {
    let of = |factor: f64| {
        let times = times(0, &[GemmLayout::Nn], |shape, number| {
            let is_best = number == usize::from(shape.size.k > 1000);
            if is_best { 1.0 } else { factor }
        });
        rows(&FitSamples::new(&times, Accuracy::Ieee), &limits(10)).len()
    };
    assert_eq!((of(1.015), of(1.03)), (1, 2));
}

/// Random times, which no table can represent.
fn disorder(seed: u64) -> TimesFile {
    let random = std::cell::RefCell::new(fastrand::Rng::with_seed(seed));
    times(60, GemmLayout::ALL, |_, _| 1.0 + 3.0 * random.borrow_mut().f64())
}

#[test]
fn a_shape_chooses_what_was_fitted() {
    for seed in 0..4 {
        let samples = FitSamples::new(&disorder(seed), Accuracy::Ieee);
        let limits = &limits(40);
        let rows = rows(&samples, limits);
        assert!(rows.len() > 20 && rows.len() <= 40, "{}", rows.len());
        // Parsing rejects unreachable rules.
        let table = read(&text(&rows)).expect("a table");
        let mut chosen = BTreeSet::new();
        let mut trees = vec![grow(&samples, limits)];
        while let Some(tree) = trees.pop() {
            match tree {
                Tree::Cut { passes, fails, .. } => trees.extend([*passes, *fails]),
                Tree::Leaf { line, shapes } => {
                    for shape in shapes {
                        let shape = samples.shapes[shape].of_table();
                        let problem = SgemmProblem { shape, target: samples.target };
                        let row = table.choose(&problem).expect("in range");
                        assert_eq!(table.rules()[row].spec.to_string(), samples.lines[line]);
                        chosen.insert(row);
                    }
                }
            }
        }
        assert_eq!(chosen.len(), rows.len(), "each row is of some shape");
    }
}

#[test]
fn more_rows_never_cost() {
    let samples = FitSamples::new(&disorder(7), Accuracy::Ieee);
    let mean = |count| {
        let rows = rows(&samples, &limits(count));
        assert!(rows.len() <= count);
        regret(&read(&text(&rows)).expect("a table"), &samples).expect("timed").mean
    };
    let means = [4, 10, 20, 40].map(mean);
    assert!(means.windows(2).all(|pair| pair[1] <= pair[0] + 1e-9), "{means:?}");
    assert!(means[3] < 0.95 * means[0], "{means:?}");
}

#[test]
fn untimed_specs_are_not_chosen() {
    let text = "k <= 128 => tile: 8x8x8; else => tile: 16x16x8";
    let (_, complete) = known(text, 0);
    let mut times = TimesFile::new(complete.head.clone());
    for shape in complete.shapes() {
        for (line, time) in complete.at_shape(shape) {
            // The best spec for small K was refused, or was not measured.
            let time =
                if shape.size.k > 128 || !line.contains("8x8x8") { *time } else { Time::Refused };
            times.add(*shape, line, time).expect("no file");
        }
    }
    let samples = FitSamples::new(&times, Accuracy::Ieee);
    let table = read(&super::text(&rows(&samples, &limits(10)))).expect("a table");
    let short = shapes::grid()
        .into_iter()
        .filter(|shape| shape.layout == GemmLayout::Nn && shape.size.k == 64);
    assert!(short.into_iter().all(|shape| best(&table, &shape) != 0));
}

#[test]
fn invalid_table_specs_are_left_out() {
    let (_, mut times) = known("else => tile: 8x8x8", 0);
    let shape = times.shapes()[0];
    let none = ["tile: 8x8", "layout: tt, tile: 8x8x8", "tile: 8x8x8, scaled", "bounds: aligned"];
    for line in none {
        times.add(shape, line, Time::Us(1e-3)).expect("no file");
    }
    // The spec is not in canonical form.
    times.add(shape, "order: row,tile:8x4x8", Time::Us(1e-3)).expect("no file");
    let samples = FitSamples::new(&times, Accuracy::Ieee);
    assert_eq!(samples.unknown, none.map(str::to_owned).into());
    assert_eq!(samples.lines.len(), TILES.len() + 1);
    let table = read(&text(&rows(&samples, &limits(10)))).expect("a table");
    assert!(regret(&table, &samples).is_ok());
}

#[test]
fn shapes_that_were_left_out_are_judged_by_the_others() {
    let text = "min(m, n) <= 8 => tile: 8x8x8; k > 2048 => tile: 16x16x8; else => tile: 24x24x8";
    let (_, times) = known(text, 40);
    let samples = FitSamples::new(&times, Accuracy::Ieee);
    let drawn = unseen(&samples, &First::default(), &limits(10), |shape| !shape.is_of_grid())
        .expect("tables");
    assert_eq!(drawn.count, 40);
    assert!(drawn.mean < 1.1, "{drawn:?}");
    // Random times cannot be learned from other shapes.
    let samples = FitSamples::new(&disorder(3), Accuracy::Ieee);
    let all = unseen(&samples, &First::default(), &limits(40), |shape| !shape.is_of_grid())
        .expect("tables");
    let table = read(&super::text(&rows(&samples, &limits(40)))).expect("a table");
    let seen = regret(&table, &samples).expect("timed");
    assert!(all.mean > seen.mean, "{all:?} {seen:?}");
}

#[test]
fn rows_by_hand_stand_first_and_the_others_are_fitted_to_what_is_left() {
    let text = "min(m, n) <= 8 => tile: 8x8x8; k > 2048 => tile: 16x16x8; else => tile: 24x24x8";
    let (_, times) = known(text, 40);
    let samples = FitSamples::new(&times, Accuracy::Ieee);
    // A manual rule is kept although its spec is slow there.
    let first = First::read("k > 2048 && m > 8 && n > 8 => tile: 32x32x8;\n", Accuracy::Ieee)
        .expect("a row");
    let left = first.left(&samples).expect("in range");
    let is_left = |shape: &&GemmShape| shape.size.k <= 2048 || shape.size.m.min(shape.size.n) <= 8;
    assert!(left.shapes.iter().eq(samples.shapes.iter().filter(is_left)));
    let rows = first.then_fitted(&samples, &limits(10)).expect("a table");
    assert_eq!((first.count(), rows[0].line.as_str()), (1, "tile: 32x32x8"));
    assert_eq!(rows[1..], super::rows(&left, &limits(10)));
    let table = read(&super::text(&rows)).expect("a table");
    for shape in &samples.shapes {
        let wanted = if is_left(&shape) { best(&read(text).expect(text), shape) } else { 2 };
        assert_eq!(best(&table, shape), wanted, "{shape}");
    }
    let unseen = unseen(&samples, &first, &limits(10), |shape| !shape.is_of_grid()).expect("timed");
    assert_eq!(unseen.count, 40);

    let all = First::read("m > 0 || n <= 1 => tile: 8x8x8", Accuracy::Ieee).expect("a row");
    let nothing = all.then_fitted(&samples, &limits(10)).expect_err("nothing left");
    assert!(nothing.contains("reaches the fitted rules"), "{nothing}");
    for (text, wanted) in [("else => tile: 8x8x8;", "else"), ("m > 3 => tile: 8x8", "tile")] {
        let error = First::read(text, Accuracy::Ieee).expect_err(text);
        assert!(error.contains(wanted), "{text}: {error}");
    }
}

#[test]
fn a_table_is_compared_with_cublas_where_that_was_timed() {
    let (_, mut times) = known("else => tile: 8x8x8", 0);
    let shape = times.shapes()[3];
    times.add(shape, CUBLAS, Time::Us(3.0 * shape.size.bytes())).expect("no file");
    let samples = FitSamples::new(&times, Accuracy::Ieee);
    let table = read("else => tile: 8x8x8").expect("a table");
    let cublas = |shape: &GemmShape| times.get(shape, CUBLAS).and_then(Time::us);
    let beside = over_cublas(&table, &samples, cublas).expect("timed");
    assert_eq!(beside.count, 1);
    assert!((beside.mean - 3.0).abs() < 1e-9, "{beside:?}");
}

#[test]
fn times_behind_cublas_count_twice() {
    // The second tile is slightly better at most shapes, and much worse than cuBLAS at few others.
    let of = |cublas: Option<f64>| {
        let worse = |shape: &GemmShape| shape.size.m == 4096 && shape.size.k == 64;
        let mut times = times(0, &[GemmLayout::Nn], |shape, number| match number {
            0 => 1.0,
            1 if worse(shape) => 1.3,
            1 => 0.99,
            _ => 2.0,
        });
        for shape in times.shapes().to_vec() {
            if let Some(us) = cublas {
                times.add(shape, CUBLAS, Time::Us(us)).expect("no file");
            }
        }
        let text = text(&rows(&FitSamples::new(&times, Accuracy::Ieee), &limits(1)));
        best(&read(&text).expect("a table"), &times.shapes()[0])
    };
    // 189 shapes with 1 % cost more than 7 shapes with 30 %, unless the latter are slower than
    // cuBLAS and count twice.
    assert_eq!([None, Some(9.0), Some(1.0), Some(0.2)].map(of), [1, 1, 0, 1]);
}

/// Output of `source`. The macro compiles it as a module of this test.
#[path = "written.rs"]
mod written;

#[test]
fn the_macro_takes_what_is_written() {
    let times = times(40, GemmLayout::ALL, |shape, number| {
        let wanted: usize = match (shape.layout, shape.size.m.min(shape.size.n), shape.size.k) {
            (_, ..=8, _) => 0,
            (GemmLayout::Nn | GemmLayout::Tt, _, 1024..) => 1,
            (_, ..=500, _) => 2,
            _ => 3,
        };
        shape.size.bytes() * (1.0 + 0.2 * wanted.abs_diff(number) as f64)
    });
    let rows = rows(&FitSamples::new(&times, Accuracy::Ieee), &limits(12));
    let about = ["from times that follow a rule".to_owned()];
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tune/table/fit/written.rs");
    let written = std::fs::read_to_string(path).expect("the file");
    assert_eq!(written, source(&rows, &about), "{path} is not what is written today");
    let read: KernelTable<SgemmSpec> = written::GEMM.text().parse().expect("its own text");
    assert_eq!(super::read(rows_of(&written)).as_ref(), Ok(&read));
    assert_eq!(super::read(rows_of(written::GEMM.text())).as_ref(), Ok(&read));
    assert_eq!(Ok(read), super::read(&text(&rows)));
}

/// The shipped table is as `source` writes its rules, in lines of at most [`WIDTH`] columns.
#[test]
fn the_shipped_table_is_as_it_was_written() {
    let shipped = include_str!("../../../../../../runtime/src/blas/tables/h200.rs");
    let table = read(rows_of(shipped)).expect("a table");
    let rule = |rule: &tables::Rule<SgemmSpec>| Rule {
        when: rule.when.as_ref().map_or("else".to_owned(), ToString::to_string),
        line: rule.spec.to_string(),
    };
    let rules: Vec<Rule> = table.rules().iter().map(rule).collect();
    let written = source(&rules, &[]);
    assert_eq!(rows_of(&written), rows_of(shipped));
    assert!(written.lines().all(|line| line.len() <= WIDTH), "{written}");
}

/// Specs that emulate `f32` on tensor cores become rules only if their accuracy is granted. The
/// table then has an accuracy clause.
#[test]
fn a_table_grants_what_its_rows_need() {
    let emulated = "tile: 64x64x64, arith: bf16x6, mma: wgmma";
    let mut times = TimesFile::new(Head { device: "it".to_owned(), arch: 90, sms: 132 });
    for shape in shapes::grid().into_iter().filter(|shape| shape.layout == GemmLayout::Nn) {
        let is_large = shape.size.m > 64;
        times
            .add(shape, "tile: 8x8x8", Time::Us(if is_large { 9.0 } else { 1.0 }))
            .expect("no file");
        times.add(shape, emulated, Time::Us(2.0)).expect("no file");
    }
    let fitted = |granted| rows(&FitSamples::new(&times, granted), &limits(4));
    let (plain, granted) = (fitted(Accuracy::Ieee), fitted(Accuracy::Bound));
    assert_eq!(text(&plain), "else => tile: 8x8x8");
    let text = text(&granted);
    assert!(text.starts_with("accuracy: bound;\n") && text.contains(emulated), "{text}");
    assert_eq!(read(&text).map(|table| table.accuracy()), Ok(Accuracy::Bound));
    let source = source(&granted, &["about it".to_owned()]);
    assert!(source.contains("sgemm_table! {\n    accuracy: bound;\n    "), "{source}");
    assert_eq!(read(rows_of(&source).trim().trim_end_matches(';')), read(&text));
    let first = format!("accuracy: bound;\nm > 9 => {emulated}");
    assert_eq!(First::read(&first, Accuracy::Norm).map(|first| first.count()), Ok(1));
    let refused = First::read(&first, Accuracy::Ieee).expect_err("more than is granted");
    assert!(refused.contains("Add --accuracy bound"), "{refused}");
}
