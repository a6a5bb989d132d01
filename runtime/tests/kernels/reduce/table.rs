//! Tables of reductions: choice of the rule, and errors.

use super::{device, small, spec};
use gemm_runtime::{
    Buffer, Device, Error, LaunchReport, MatrixRef, ReduceKernel, ReduceTable, Segments,
    reduce_table,
};

const ROWS: ReduceTable = reduce_table! {
    len <= 4 => over: rows, group: 1;
    len % 4 == 0 && outer >= 3 => over: rows, group: 8, float4, items: 2;
    { let total = outer * len; total > 900 } =>
        over: rows, block: 64, group: 64, blocks: 3, launch: once;
    else => over: rows, group: 16, items: 4;
};

const COLUMNS: ReduceTable = reduce_table! {
    len <= 4 || inner == 1 => over: columns, group: 1;
    if inner % 4 == 0 { len > 9 } else { len > 50 } =>
        over: columns, group: 4, items: 2, blocks: 3, launch: once;
    else => over: columns, group: 8, items: 4;
};

const MIDDLE: ReduceTable = reduce_table! {
    inner <= 3 => over: middle, group: 16;
    outer * inner >= 60 => over: middle, group: 1, items: 2;
    else => over: middle, group: 8, items: 4;
};

const ALL: ReduceTable = reduce_table! {
    len <= 64 => block: 32;
    len < 500 => block: 64, items: 2, shuffle;
    else => block: 128, float4, blocks: 5, launch: once;
};

const SEGMENTS: ReduceTable = reduce_table! {
    outer == 0 || len / max(outer, 1) <= 4 => over: segments, group: 1;
    len < 300 => over: segments, group: 8;
    else => over: segments, group: 32, items: 4, shuffle;
};

/// Numbers whose sum depends on the order of addition in its last bits.
fn uneven(n: usize, seed: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 2_654_435_761 + seed * 97) % 1_000_003) as f32 / 977.0 - 511.3).collect()
}

fn bits(device: &Device, results: &Buffer) -> Vec<u32> {
    device.download(results).expect("ours").into_iter().map(f32::to_bits).collect()
}

type Outcome = Result<LaunchReport, Error>;

/// Asserts that a table gives the same results as the spec of rule `row` alone, with poison around
/// both.
fn same(
    device: &Device,
    (table, size, row): (&ReduceTable, (u64, u64, u64), usize),
    results: usize,
    of_table: impl Fn(&mut Buffer) -> Outcome,
    of_line: impl Fn(&ReduceKernel, &mut Buffer) -> Outcome,
) {
    let line = table.text().lines().nth(row).expect("a row").split_once("=>").expect("an arrow").1;
    let kernel = ReduceKernel::new(spec(line.trim_end_matches(';'))).expect("its type");
    let choice = table.choice(size).expect("in range");
    assert_eq!((choice.rule, choice.spec.as_str()), (row, kernel.spec_line()), "{size:?}");
    assert_eq!(table.kernel(size).expect("in range"), kernel, "{size:?}");
    let poison = vec![7.25; results + 3];
    let (mut one, mut other) =
        (device.upload(&poison).expect("room"), device.upload(&poison).expect("room"));
    of_table(&mut one).unwrap_or_else(|error| panic!("{size:?}: {error}"));
    of_line(&kernel, &mut other).unwrap_or_else(|error| panic!("{size:?}: {error}"));
    let (one, other) = (bits(device, &one), bits(device, &other));
    assert_eq!(one, other, "{size:?}");
    assert_eq!(one[results..], [7.25_f32.to_bits(); 3], "{size:?}");
}

fn draw(seed: &mut u64, below: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % below
}

#[test]
fn a_table_launches_the_line_that_it_chooses() {
    let device = device();
    let mut seed = 5;
    let mut chosen = [[0; 4]; 4];
    for case in 0..90 {
        let len = [0, 1, 3, 4, 5, 8, 12, 33, 64, 100, 101][draw(&mut seed, 11) as usize];
        let (outer, inner) = (draw(&mut seed, 12), draw(&mut seed, 9));
        let x = uneven((outer.max(1) * len * inner.max(1)) as usize, case);
        let x = device.upload(&x).expect("room");
        let matrix = |rows: u64, cols: u64| x.slice(..(rows * cols) as usize).expect("inside");

        let part = matrix(outer, len);
        let rows = MatrixRef::new(&part, outer as usize, len as usize).expect("a matrix");
        let row = match (outer, len) {
            (_, ..=4) => 0,
            (3.., len) if len % 4 == 0 => 1,
            (outer, len) if outer * len > 900 => 2,
            _ => 3,
        };
        chosen[0][row] += 1;
        let what = (&ROWS, (outer, len, 1), row);
        same(
            &device,
            what,
            outer as usize,
            |to| ROWS.launch(&device, &rows, to),
            |kernel, to| kernel.launch(&device, &rows, to),
        );

        let part = matrix(len, inner);
        let columns = MatrixRef::new(&part, len as usize, inner as usize).expect("a matrix");
        let row = match (len, inner) {
            (..=4, _) | (_, 1) => 0,
            (10.., inner) if inner % 4 == 0 => 1,
            (51.., inner) if inner % 4 != 0 => 1,
            _ => 2,
        };
        chosen[1][row] += 1;
        let what = (&COLUMNS, (1, len, inner), row);
        same(
            &device,
            what,
            inner as usize,
            |to| COLUMNS.launch(&device, &columns, to),
            |kernel, to| kernel.launch(&device, &columns, to),
        );

        let part = matrix(outer * len, inner);
        let [o, l, i] = [outer, len, inner].map(|n| n as usize);
        let middle = MatrixRef::batch(&part, o, l, i).expect("a batch");
        let row = match (outer, inner) {
            (_, ..=3) => 0,
            (outer, inner) if outer * inner >= 60 => 1,
            _ => 2,
        };
        chosen[2][row] += 1;
        let what = (&MIDDLE, (outer, len, inner), row);
        same(
            &device,
            what,
            o * i,
            |to| MIDDLE.launch(&device, &middle, to),
            |kernel, to| kernel.launch(&device, &middle, to),
        );

        // The rule for a matrix is the same as for a vector of the same size.
        let row = match len * inner {
            ..=64 => 0,
            65..500 => 1,
            _ => 2,
        };
        chosen[3][row] += 1;
        let what = (&ALL, (1, len * inner, 1), row);
        same(
            &device,
            what,
            1,
            |to| ALL.launch(&device, &columns, to),
            |kernel, to| kernel.launch(&device, &x.slice(..l * i).expect("inside"), to),
        );
    }
    assert!(chosen.iter().flatten().filter(|times| **times > 0).count() == 13, "{chosen:?}");
}

#[test]
fn a_table_of_segments_launches_the_line_for_their_number_and_the_elements() {
    let device = device();
    let mut seed = 3;
    let mut chosen = [0; 3];
    for case in 0..60 {
        let mut offsets = vec![draw(&mut seed, 4) as u32];
        for _ in 0..draw(&mut seed, 40) {
            let length = [0, draw(&mut seed, 5), draw(&mut seed, 60)][draw(&mut seed, 3) as usize];
            offsets.push(offsets[offsets.len() - 1] + length as u32);
        }
        // Elements after the last segment count too.
        let end = u64::from(offsets[offsets.len() - 1]) + draw(&mut seed, 9);
        let x = device.upload(&uneven(end as usize, case)).expect("room");
        let count = offsets.len() as u64 - 1;
        let row = match (count, end) {
            (0, _) => 0,
            (count, end) if end / count <= 4 => 0,
            (_, ..300) => 1,
            _ => 2,
        };
        chosen[row] += 1;
        let segments = Segments::new(&device, &offsets).expect("ascending");
        same(
            &device,
            (&SEGMENTS, (count, end, 1), row),
            count as usize,
            |to| SEGMENTS.launch_segments(&device, &x, &segments, to),
            |kernel, to| kernel.launch_segments(&device, &x, &segments, to),
        );
    }
    assert!(chosen.iter().all(|times| *times > 0), "{chosen:?}");
}

#[test]
fn wide_offsets_and_several_arrays_go_with_a_table() {
    let device = device();
    let text = "len < 4 => op: mean_var, map: |x, y| x * y, over: segments, index: u64; \
                else => op: mean_var, map: |x, y| x * y, over: segments, index: u64, group: 8";
    let table = ReduceTable::<(f32, f32), (f32, f32)>::new(&text.parse().expect("a table"));
    let table = table.expect("its type");
    let (x, y) = (device.upload(&[1.0, 2.0, 3.0, 4.0]), device.upload(&[1.0, 1.0, 1.0, 2.0]));
    let (x, y) = (x.expect("room"), y.expect("room"));
    let segments = Segments::<u64>::new(&device, &[0, 2, 4]).expect("ascending");
    let (mut mean, mut var) = (device.alloc(2).expect("room"), device.alloc(2).expect("room"));
    table.launch_segments(&device, (&x, &y), &segments, (&mut mean, &mut var)).expect("sound");
    assert_eq!(device.download(&mean).expect("ours"), [1.5, 5.5]);
    assert_eq!(device.download(&var).expect("ours"), [0.25, 6.25]);
    let dot = reduce_table! { len < 4 => map: |x, y| x * y; else => map: |x, y| x * y, items: 2 };
    let mut sum = device.alloc(1).expect("room");
    dot.launch(&device, (&x, &y), &mut sum).expect("sound");
    assert_eq!(device.download(&sum).expect("ours"), [14.0]);
}

#[test]
fn tables_report_wrong_arguments_like_kernels() {
    let device = device();
    let x = device.upload(&small::<f32>(24)).expect("room");
    let mut to = device.upload(&[7.0; 4]).expect("room");
    let message = |outcome: Outcome| outcome.map(drop).expect_err("misuse").to_string();
    let rows = MatrixRef::new(&x, 4, 6).expect("a matrix");
    let segments: Segments = Segments::new(&device, &[0, 4, 24]).expect("ascending");

    let told = message(ROWS.launch(&device, &x, &mut to));
    assert!(
        told.contains("`input` is a vector of 24 elements")
            || told.contains("a matrix, whose rows"),
        "{told}"
    );
    assert!(matches!(ROWS.launch(&device, &x, &mut to), Err(Error::WrongOperand { .. })));
    let told = message(SEGMENTS.launch(&device, &x, &mut to));
    assert!(told.contains("gives no segments. Launch it by `launch_segments`"), "{told}");
    // The wrong kind of argument is reported before its wrong layout.
    let padded = MatrixRef::pitched(&x, 4, 5, 6).expect("a matrix");
    assert!(matches!(SEGMENTS.launch(&device, &padded, &mut to), Err(Error::WrongOver { .. })));
    for table in [&ROWS, &ALL] {
        let outcome = table.launch_segments(&device, &x, &segments, &mut to);
        assert!(matches!(&outcome, Err(Error::WrongOver { .. })));
        let told = message(outcome);
        assert!(told.contains("but the call gives segments. Leave them out"), "{told}");
    }
    assert_eq!(
        message(ROWS.launch(&device, &rows, &mut to.slice_mut(..3).expect("3"))),
        "`output` has 3 elements, but outer = 4 are needed, one for each row"
    );
    let short = x.slice(..20).expect("inside");
    assert_eq!(
        message(SEGMENTS.launch_segments(&device, &short, &segments, &mut to)),
        "`input` has 20 elements, but the last segment ends at element 24"
    );
    let foreign = Device::simulator();
    assert!(matches!(ROWS.launch(&foreign, &rows, &mut to), Err(Error::WrongDevice { .. })));
    assert!(matches!(MIDDLE.launch(&device, &x, &mut to), Err(Error::WrongOperand { .. })));
    assert_eq!(device.download(&to).expect("ours"), [7.0; 4]);
}

#[test]
fn a_table_has_the_type_of_its_rows_and_its_text() {
    let table = |text: &str| text.parse().unwrap_or_else(|faults| panic!("{text}: {faults}"));
    let argmax = table("len < 4 => op: argmax; else => op: argmax, items: 2");
    let Err(error) = ReduceTable::<f32>::new(&argmax) else { panic!("an index is a u32") };
    assert!(matches!(&error, Error::KernelType { .. }));
    assert!(error.to_string().contains("`ReduceKernel<f32, u32>`, not `ReduceKernel`"), "{error}");
    let made = ReduceTable::<f32, u32>::new(&argmax).expect("its type");
    assert_eq!(made.text(), argmax.to_string());
    assert_eq!((made.to_string(), made.clone().text()), (argmax.to_string(), made.text()));
    let printed = format!("{made:?}");
    assert!(printed.starts_with("Table { text: \"len < 4 => op: argmax;"), "{printed}");

    let Err(error) = ReduceTable::<f32>::tuned(&spec("op: mean_var")) else { panic!("two") };
    assert!(matches!(error, Error::KernelType { .. }));
    let faulty = spec("op: max").compensated(true);
    let Err(Error::Spec(faults)) = ReduceTable::<f32>::tuned(&faulty).map(drop) else {
        panic!("no sum")
    };
    assert_eq!(faults.iter().count(), 1, "{faults}");
}

#[test]
fn extents_that_no_array_has_are_refused() {
    for table in [&ROWS, &COLUMNS, &MIDDLE, &ALL, &SEGMENTS] {
        for size in [(0, 0, 0), (1, 1 << 48, 1), (1 << 48, 0, 1 << 48)] {
            let choice = table.choice(size).expect("in range");
            let last = table.text().lines().count() - 1;
            assert_eq!(choice.condition.is_none(), choice.rule == last, "{size:?}");
            assert_eq!(table.kernel(size).expect("in range").spec_line(), choice.spec);
        }
        for size in [(u64::MAX, u64::MAX, u64::MAX), (1 << 49, 1 << 49, 1 << 49)] {
            assert!(matches!(table.choice(size), Err(Error::TooLarge { .. })), "{size:?}");
            assert!(matches!(table.kernel(size), Err(Error::TooLarge { .. })), "{size:?}");
        }
    }
    assert_eq!(
        ALL.choice((1, u64::MAX, 1)).expect_err("too long").to_string(),
        "`len` is 18446744073709551615, but tables accept only 0 to 281474976710656: the limit is \
         281474976710656. Check the order of the extents"
    );
    // They are also rejected for a matrix without columns.
    let device = device();
    let x = device.upload(&[1.0]).expect("room");
    let rows = MatrixRef::new(&x, usize::MAX, 0).expect("no elements");
    let columns = rows.t();
    let mut to = device.alloc(1).expect("room");
    assert!(matches!(
        COLUMNS.launch(&device, &columns, &mut to),
        Err(Error::Padded { .. } | Error::TooLarge { .. })
    ));
    let outcome = ROWS.launch(&device, &rows, &mut to);
    assert!(outcome.is_err());
}

#[test]
fn reasons_list_the_evaluated_extents() {
    let choice = ROWS.choice((3, 9, 1)).expect("in range");
    assert_eq!((choice.rule, choice.why.as_str()), (3, "len = 9, outer = 3"));
    let choice = ROWS.choice((3, 4, 1)).expect("in range");
    assert_eq!((choice.rule, choice.why.as_str()), (0, "len = 4"));
}
