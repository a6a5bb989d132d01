use super::*;
use crate::observation::looked;
use gemm_bench::family::Family;
use gemm_dsl::cuda;
use gemm_dsl::stages;

fn folded(line: &str) -> Partials {
    let looked = looked(Family::Reduce, line);
    let listing = cuda::listing(&looked.kernel);
    partials(&looked, &listing).expect("the same launch").expect("a reduction of f32")
}

fn stage(name: &str) -> Partials {
    let stage = stages::reduce().into_iter().find(|stage| stage.name == name);
    folded(&stage.expect(name).spec.to_string())
}

fn value(cell: &Option<PartialValue>) -> Option<f32> {
    cell.as_ref().map(|cell| f32::from_bits(cell.bits as u32))
}

/// Value of `s` in the name of a column.
fn step(column: &PartialStep) -> usize {
    let (_, s) = column.name.split_once("s = ").expect("a step");
    s.split(',').next().and_then(|s| s.parse().ok()).expect("a number")
}

/// Sum of the last digits of these indices, in this order.
fn own_sum(elements: &[u64]) -> f32 {
    elements.iter().fold(-0.0, |sum, element| sum + (element % 10) as f32)
}

/// Each step of a tree in shared memory equals the same step over 256 numbers. The table shows the
/// first 32.
#[test]
fn trees_fold_as_they_are_drawn() {
    type Fold = fn(&[f32], usize) -> Vec<f32>;
    // Word i adds word i + s, if i is a multiple of 2 s or less than s.
    let interleaved: Fold = |x, s| {
        let of = |i: usize| {
            if i.is_multiple_of(2 * s) && i + s < x.len() { x[i] + x[i + s] } else { x[i] }
        };
        (0..x.len()).map(of).collect()
    };
    let sequential: Fold =
        |x, s| (0..x.len()).map(|i| if i < s { x[i] + x[i + s] } else { x[i] }).collect();
    // All lanes of the last warp continue.
    let last_warp: Fold = |x, s| {
        let below = s.max(32);
        (0..x.len()).map(|i| if i < below { x[i] + x[i + s] } else { x[i] }).collect()
    };
    let all: [(&str, u64, Fold); 5] = [
        ("interleaved_divergent", 1, interleaved),
        ("interleaved", 1, interleaved),
        ("sequential", 1, sequential),
        ("items", 2, sequential),
        ("unroll_last_warp", 2, last_warp),
    ];
    for (name, items, fold) in all {
        let folds = stage(name);
        assert_eq!((folds.elements as u64, folds.loaded), (256 * items, [1, 1]), "{name}");
        let own =
            |thread: u64| -> Vec<u64> { (0..items).map(|item| thread + item * 256).collect() };
        assert_eq!(folds.lanes, (0..32).map(own).collect::<Vec<_>>(), "{name}");
        let [table] = &folds.tables[..] else { panic!("{name} has one array") };
        let mut x: Vec<f32> = (0..256).map(|thread| own_sum(&own(thread))).collect();
        assert_eq!(table.columns.len(), 9, "{name}");
        for (number, column) in table.columns.iter().enumerate() {
            if number > 0 {
                x = fold(&x, step(column));
            }
            let shown = column.cells.iter().zip(&x);
            let written = shown.filter(|(cell, _)| cell.is_some());
            assert!(written.clone().count() > 0, "{name}");
            for (cell, x) in written {
                assert_eq!(value(cell).map(f32::to_bits), Some(x.to_bits()), "{name}, {column:?}");
            }
        }
        let last = table.columns.last().map(|column| column.active);
        assert_eq!(last, Some(if name == "unroll_last_warp" { 32 } else { 1 }));
        let sum: f32 = (0..256 * items).map(|i| (i % 10) as f32).sum();
        assert_eq!(x[0], sum);
    }
}

/// Shuffles compute the same tree over the sums of the lanes.
#[test]
fn shuffles_fold_as_they_are_drawn() {
    for (name, group) in [("shuffle", 32), ("ticket", 32), ("grid_stride", 32), ("rows", 32)] {
        let folds = stage(name);
        assert_eq!(folds.loaded, [1, 1], "{name}");
        let table = folds.tables.iter().find(|table| table.array.is_none()).expect(name);
        let mut lanes: Vec<f32> = folds.lanes.iter().map(|own| own_sum(own)).collect();
        let steps = table.columns.iter().filter(|column| column.name.starts_with("before"));
        assert_eq!(steps.clone().count(), 5, "{name}");
        for column in steps {
            let shown: Vec<Option<u32>> =
                column.cells.iter().map(|cell| value(cell).map(f32::to_bits)).collect();
            let own: Vec<Option<u32>> = lanes.iter().map(|lane| Some(lane.to_bits())).collect();
            assert_eq!(shown, own, "{name}, {}", column.name);
            let s = step(column);
            // The active lanes are those not yet combined into another lane.
            let counts = |(lane, cell): (usize, &Option<PartialValue>)| {
                cell.as_ref().is_some_and(|cell| cell.counts) == (lane % group < 2 * s)
            };
            assert!(column.cells.iter().enumerate().all(counts), "{name}, {}", column.name);
            assert_eq!(column.active, 2 * s, "{name}");
            let from = |lane: usize| if lane + s < 32 { lane + s } else { lane };
            lanes = (0..32).map(|lane| lanes[lane] + lanes[from(lane)]).collect();
        }
        let stored = table.columns.last().and_then(|column| column.cells.first());
        assert_eq!(stored.and_then(value), Some(lanes[0]), "{name}");
    }
}

/// A tree over the rows of threads reduces each column of a matrix.
#[test]
fn columns_fold_down_their_threads() {
    let folds = stage("columns");
    let table = folds.tables.first().expect("an array");
    assert_eq!(folds.loaded, [1, 1]);
    // One column for the sums of the 16 rows of threads, and four for the steps.
    assert_eq!(table.columns.len(), 5);
    for pair in table.columns[1..].windows(2) {
        assert_eq!(step(&pair[0]), 2 * step(&pair[1]));
        assert_eq!(pair[0].active, 2 * pair[1].active);
    }
    assert!(table.columns.iter().all(|column| column.cells.iter().all(Option::is_some)));
}

/// Pairs of maximum and scaled sum of exponentials. A row has 16 lanes, so a warp has two rows.
#[test]
fn pairs_fold_as_they_are_drawn() {
    let folds = stage("online");
    let lanes: Vec<&PartialTable> =
        folds.tables.iter().filter(|table| table.array.is_none()).collect();
    let [tops, sums] = &lanes[..] else { panic!("two values") };
    let digits = |lane: usize| folds.lanes[lane].iter().map(|element| (element % 10) as f64);
    let of_top = |lane: usize| digits(lane).fold(f64::NEG_INFINITY, f64::max);
    let of_sum = |lane: usize| digits(lane).map(|x| (x - of_top(lane)).exp()).sum::<f64>();
    let mut own: Vec<(f64, f64)> = (0..32).map(|lane| (of_top(lane), of_sum(lane))).collect();
    for (top, sum) in tops.columns.iter().zip(&sums.columns).take(4) {
        for (lane, (expected, near)) in own.iter().enumerate() {
            assert_eq!(value(&top.cells[lane]).map(f64::from), Some(*expected));
            let sum = value(&sum.cells[lane]).map(f64::from).expect("a sum");
            assert!((sum - near).abs() < 1e-5 * near, "{sum} of {near}");
        }
        let s = step(top);
        assert_eq!(top.active, 2 * 2 * s);
        let from = |lane: usize| if lane + s < 32 { lane + s } else { lane };
        let both = |lane: usize| {
            let ((top, sum), (other, others)) = (own[lane], own[from(lane)]);
            let both = top.max(other);
            (both, sum * (top - both).exp() + others * (other - both).exp())
        };
        own = (0..32).map(both).collect();
    }
    let stored = tops.columns.last().expect("a store");
    for lane in [0, 16] {
        let near = own[lane].0 + own[lane].1.ln();
        assert!((value(&stored.cells[lane]).map(f64::from).expect("a result") - near).abs() < 1e-4);
    }
}

#[test]
fn elements_are_named_by_runs() {
    assert_eq!(Partials::elements_of(&[0, 1, 2, 3, 128, 256]), "0–3, 128, 256");
    let many: Vec<u64> = (0..20).map(|i| i * 4).collect();
    assert_eq!(Partials::elements_of(&many), "0, 4, 8, 12, 16, 20 and 14 more");
    assert_eq!(Partials::elements_of(&[]), "");
}

/// In each step, trees of other types contain the exact sums of last digits.
#[test]
fn other_types_fold_as_they_are_drawn() {
    for of in ["f16", "bf16", "f64", "i8", "i32", "u32", "i64"] {
        let folds = folded(&format!("items: 2, type: {of}"));
        assert_eq!((folds.elements, folds.loaded), (512, [1, 1]), "{of}");
        let [table] = &folds.tables[..] else { panic!("{of} has one array") };
        let digit = |at: usize| (at % 10) as u64;
        let mut x: Vec<u64> = (0..256).map(|thread| digit(thread) + digit(thread + 256)).collect();
        assert_eq!(table.columns.len(), 9, "{of}");
        for (number, column) in table.columns.iter().enumerate() {
            if number > 0 {
                let s = step(column);
                (0..s).for_each(|i| x[i] += x[i + s]);
            }
            let written: Vec<_> = column.cells.iter().zip(&x).collect();
            assert!(written[0].0.is_some(), "{of}");
            for (cell, x) in written.into_iter().filter_map(|(cell, x)| Some((cell.as_ref()?, x))) {
                assert_eq!(cell.value, x.to_string(), "{of}, {}", column.name);
            }
        }
    }
}

/// Shuffles of every type are shown, for sums of 32 or 64 bits and for the index of an extreme.
#[test]
fn other_types_are_shuffled_as_they_are_drawn() {
    for of in ["f64", "i64", "u64"] {
        let folds = folded(&format!("items: 2, shuffle, type: {of}"));
        let table = folds.tables.iter().find(|table| table.array.is_none()).expect(of);
        let digits = |lane: usize| folds.lanes[lane].iter().map(|at| at % 10).sum::<u64>();
        let mut lanes: Vec<u64> = (0..32).map(digits).collect();
        let steps = table.columns.iter().filter(|column| column.name.starts_with("before"));
        assert_eq!(steps.clone().count(), 5, "{of}");
        for column in steps {
            for (cell, lane) in column.cells.iter().zip(&lanes) {
                let shown = cell.as_ref().map(|cell| &cell.value);
                assert_eq!(shown, Some(&lane.to_string()), "{of}, {}", column.name);
            }
            let s = step(column);
            assert_eq!(column.active, 2 * s, "{of}");
            let from = |lane: usize| if lane + s < 32 { lane + s } else { lane };
            lanes = (0..32).map(|lane| lanes[lane] + lanes[from(lane)]).collect();
        }
        let stored = table.columns.last().and_then(|column| column.cells.first()?.as_ref());
        assert_eq!(stored.map(|cell| &cell.value), Some(&lanes[0].to_string()), "{of}");
    }
    for of in ["f16", "bf16", "i8", "i32", "u32"] {
        let folds = folded(&format!("items: 2, shuffle, type: {of}"));
        let table = folds.tables.iter().find(|table| table.array.is_none()).expect(of);
        let own = |lane: usize| folds.lanes[lane].iter().map(|at| at % 10).sum::<u64>().to_string();
        for (lane, cell) in table.columns[0].cells.iter().enumerate() {
            assert_eq!(cell.as_ref().map(|cell| &cell.value), Some(&own(lane)), "{of}");
        }
    }
    let folds = folded("items: 2, shuffle, op: argmax");
    let tables: Vec<&PartialTable> =
        folds.tables.iter().filter(|table| table.array.is_none()).collect();
    let [best, at, ..] = &tables[..] else { panic!("two values") };
    for lane in 0..32 {
        let [best, at] = [best, at].map(|table| table.columns[0].cells[lane].as_ref());
        let elements = &folds.lanes[lane];
        let most = elements.iter().map(|element| element % 10).max().expect("elements");
        let first = elements.iter().find(|element| *element % 10 == most).expect("the greatest");
        assert_eq!(best.map(|cell| &cell.value), Some(&most.to_string()));
        assert_eq!(at.map(|cell| &cell.value), Some(&first.to_string()));
    }
}

/// The picture has each loaded element once, with the thread that loads it.
#[test]
fn each_element_is_drawn_with_its_thread() {
    for name in ["sequential", "items", "grid_stride", "rows", "columns", "online"] {
        let folds = stage(name);
        let drawn = folds.folded.as_ref().expect(name);
        let all = drawn.tile.warps.iter().flat_map(|area| &area.rects);
        let count: u64 = all.map(|rect| rect.width * rect.height).sum();
        assert!(drawn.others > 0 || count == folds.elements as u64, "{name}: {count}");
        let [rows, columns] = drawn.tile.extents;
        assert_eq!(rows, drawn.rows.len() as u64, "{name}");
        assert!(!drawn.tile.threads.is_empty(), "{name}");
        for area in &drawn.tile.threads {
            let own = &folds.lanes[area.owner as usize];
            let places = area.rects.iter().flat_map(|rect| {
                (rect.y..rect.y + rect.height)
                    .flat_map(move |y| (rect.x..rect.x + rect.width).map(move |x| (y, x)))
            });
            for (y, x) in places {
                assert!(y < rows && x < columns, "{name}");
                if !drawn.is_matrix {
                    assert!(own.contains(&(drawn.rows[y as usize] + x)), "{name}");
                }
            }
            let count: u64 = area.rects.iter().map(|rect| rect.width * rect.height).sum();
            assert!(drawn.others > 0 || count == own.len() as u64, "{name}: {count}");
            if area.owner == 0 {
                assert_eq!(drawn.of_first, [own.len(), count as usize], "{name}");
            }
        }
    }
}

/// The captions of a block and of its first thread state the number of all elements and name the
/// drawn elements.
#[test]
fn elements_that_are_not_drawn_are_counted() {
    for (name, [block, thread]) in [
        (
            "grid_stride",
            ["8192 elements; drawn: 4096 elements starting at 0", "reduces 16, 8 of them drawn"],
        ),
        (
            "columns",
            [
                "8192 elements; drawn: 64 × 64 elements starting at (0, 0)",
                "reduces 32, 16 of them drawn",
            ],
        ),
        ("items", ["512 elements starting at 0", "reduces 2"]),
    ] {
        let folds = stage(name);
        let drawn = folds.folded.as_ref().expect(name);
        assert_eq!([drawn.counted(), drawn.of_thread_0()], [block, thread], "{name}");
        assert_eq!(drawn.elements[0], folds.elements, "{name}");
    }
    // A row of the picture has more elements than one warp loads.
    let short = folded("block: 32, shuffle");
    let short = short.folded.expect("elements");
    assert_eq!(short.counted(), "32 elements among 64 elements starting at 0");
}

/// If an extreme and its index are both stored, each table shows its own result.
#[test]
fn stored_results_match_their_table() {
    for op in ["argmax", "argmin"] {
        for types in ["", ", type: u32", ", type: i32"] {
            let folds = folded(&format!("items: 2, shuffle, op: {op}{types}"));
            let tables: Vec<&PartialTable> =
                folds.tables.iter().filter(|table| table.array.is_none()).collect();
            let [best, at, ..] = &tables[..] else { panic!("two values") };
            let stored = |table: &PartialTable| {
                let last = table.columns.last().expect("a step");
                assert!(last.name.starts_with("stored"), "{op}{types}: {}", last.name);
                last.cells[0].as_ref().map(|cell| cell.value.clone())
            };
            let (best, at) = (stored(best), stored(at));
            let all = folds.lanes.iter().flatten();
            let digit = |element: &u64| element % 10;
            let extreme = match op {
                "argmax" => all.clone().map(digit).max(),
                _ => all.clone().map(digit).min(),
            };
            let first = all.filter(|element| Some(digit(element)) == extreme).min();
            assert_eq!(best, extreme.map(|of| of.to_string()), "{op}{types}");
            assert_eq!(at, first.map(u64::to_string), "{op}{types}");
        }
        // A warp per row stores the index of the extreme, not its value.
        let rows = folded(&format!("over: rows, group: 32, block: 64, op: {op}"));
        let tables: Vec<&PartialTable> =
            rows.tables.iter().filter(|of| of.array.is_none()).collect();
        let [best, at] = &tables[..] else { panic!("two values") };
        let has_stored =
            |of: &PartialTable| of.columns.iter().any(|column| column.name.starts_with("stored"));
        assert!(!has_stored(best) && has_stored(at), "{op}");
    }
}
