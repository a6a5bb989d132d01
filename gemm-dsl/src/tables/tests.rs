//! Tests of the choice of a rule.

use super::{KernelTable, OutOfRange, SgemmProblem, SgemmShape, TableFamily, Target};
use crate::expr::{REDUCE_TABLE, SGEMM_TABLE};
use crate::spec::{GemmLayout, ReduceSpec, SgemmSpec};

fn table(text: &str) -> KernelTable<ReduceSpec> {
    text.parse().unwrap_or_else(|faults| panic!("`{text}`: {faults}"))
}

fn choose(table: &KernelTable<ReduceSpec>, [outer, len, inner]: [u64; 3]) -> usize {
    table.choose(&(outer, len, inner)).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_first_row_that_holds_is_chosen() {
    let table = table(
        "len <= 64 => items: 1; len % 4 == 0 => items: 2; len <= 65 || outer == 7 => items: 3; \
         inner * outer > len => items: 4; else => items: 5",
    );
    let expected = |outer: u64, len: u64, inner: u64| match (outer, len, inner) {
        (_, ..=64, _) => 0,
        (_, len, _) if len.is_multiple_of(4) => 1,
        (_, 65, _) | (7, ..) => 2,
        (outer, len, inner) if inner * outer > len => 3,
        _ => 4,
    };
    let mut chosen = [0; 5];
    for outer in [0, 1, 7, 8, 100] {
        for len in (0..140).chain([4_095, 4_096, 4_097]) {
            for inner in [0, 1, 2, 50] {
                let row = choose(&table, [outer, len, inner]);
                assert_eq!(row, expected(outer, len, inner), "{outer} {len} {inner}");
                assert_eq!(table.rules()[row].spec.items as usize, row + 1);
                chosen[row] += 1;
            }
        }
    }
    assert!(chosen.iter().all(|times| *times > 0), "{chosen:?}");
}

#[test]
fn the_last_row_alone_has_no_condition_and_needs_no_extent() {
    let one = table("else => items: 2");
    // No condition reads an extent, so none is out of range.
    assert_eq!(choose(&one, [u64::MAX; 3]), 0);
    assert_eq!(one.why(0, &(1, 2, 3)), Ok(Vec::new()));
    for table in [one, table("len < 3 => ; outer < 3 => items: 2; else => items: 4;")] {
        let (last, others) = table.rules().split_last().expect("a row");
        assert!(last.when.is_none() && others.iter().all(|row| row.when.is_some()));
    }
}

#[test]
fn conditions_are_over_the_facts_of_a_problem() {
    assert_eq!(ReduceSpec::waves(&(1, 2, 3), (64, 64)).is_some(), REDUCE_TABLE.has_waves());
    let waves = SgemmSpec::waves(&on_h200((1, 2, 3)), (64, 64));
    assert_eq!(waves.is_some(), SGEMM_TABLE.has_waves());
    for (n, name) in ["outer", "len", "inner"].into_iter().enumerate() {
        let table = table(&format!("{name} == 9 => ; else => items: 2"));
        let mut size = [1, 2, 3];
        assert_eq!(choose(&table, size), 1);
        size[n] = 9;
        assert_eq!(choose(&table, size), 0);
        let why = table.why(1, &(size[0], size[1], size[2]));
        assert_eq!(why, Ok(vec![(name.to_owned(), "9".to_owned())]));
    }
}

#[test]
fn extents_beyond_arrays_are_refused_where_they_are_asked_for() {
    let table =
        table("outer * len < 16 => items: 1; len == 281474976710656 => items: 2; else => items: 4");
    for (extents, row) in [([1, 15, 1], 0), ([1, 1 << 48, 1], 1), ([7, 7, u64::MAX], 2)] {
        assert_eq!(choose(&table, extents), row, "{extents:?}");
    }
    for (extents, name, value) in [
        ((1, (1 << 48) + 1, 1), "len", (1 << 48) + 1),
        ((u64::MAX, u64::MAX, 1), "outer", u64::MAX),
    ] {
        let wrong = OutOfRange { name, value, least: 0, most: 1 << 48 };
        assert_eq!(table.choose(&extents), Err(wrong));
        assert_eq!(table.why(0, &extents), Err(wrong));
        let text = format!("`{name}` is {value}, but tables accept only 0 to 281474976710656");
        assert_eq!(wrong.to_string(), text);
    }
}

fn on_h200(extents: (usize, usize, usize)) -> SgemmProblem {
    SgemmProblem { shape: extents.into(), target: Target::H200 }
}

fn products(text: &str) -> KernelTable<SgemmSpec> {
    text.parse().unwrap_or_else(|faults| panic!("`{text}`: {faults}"))
}

/// Returns true if a condition holds for a GEMM.
fn holds(when: &str, problem: &SgemmProblem) -> bool {
    let table = products(&format!("{when} => ; else => unroll: 2"));
    table.choose(problem).unwrap_or_else(|error| panic!("{when}: {error}")) == 0
}

#[test]
fn conditions_of_products_are_over_extents_layout_alignment_and_device() {
    let plain = on_h200((8, 12, 20));
    let shape = plain.shape;
    let of = |shape: SgemmShape| SgemmProblem { shape, ..plain };
    let on = |arch, sms| SgemmProblem { target: Target { arch, sms }, ..plain };
    for (when, problem, expected) in [
        ("m == 8 && n == 12 && k == 20 && batch == 1", plain, true),
        ("arch == 90 && sms == 132", plain, true),
        ("arch >= 100 || sms <= 108", on(80, 108), true),
        ("k / sms == 2", on(80, 10), true),
        ("batch == 7", of(shape.batch(7)), true),
        ("nn && !nt && !tn && !tt", plain, true),
        ("nt", of(shape.layout(GemmLayout::Nt)), true),
        ("nt", of(shape.layout(GemmLayout::Tn)), false),
        ("tn", of(shape.layout(GemmLayout::Tn)), true),
        ("tt && !nn", of(shape.layout(GemmLayout::Tt)), true),
        ("padded", plain, false),
        ("padded", of(shape.padded(true)), true),
        ("aligned", plain, true),
        ("aligned", of(shape.aligned(false)), false),
        ("if aligned { k > 8 } else { k > 80 }", plain, true),
        ("{ let t = m * n; let u = aligned; u && t == 96 }", plain, true),
    ] {
        assert_eq!(holds(when, &problem), expected, "{when}: {problem:?}");
    }
}

/// A packed row or column is one line in either layout. A padded one has its declared layout.
#[test]
fn packed_vectors_are_read_as_one_line() {
    use GemmLayout::{Nn, Nt, Tn, Tt};
    for (extents, said, lies) in [
        ((5, 6, 7), [Nn, Nt, Tn, Tt], [Nn, Nt, Tn, Tt]),
        // B is a column.
        ((5, 1, 7), [Nn, Nt, Tn, Tt], [Nt, Nt, Tt, Tt]),
        // A is a row.
        ((1, 6, 7), [Nn, Nt, Tn, Tt], [Nn, Nt, Nn, Nt]),
        ((1, 1, 7), [Nn, Nt, Tn, Tt], [Nt; 4]),
        // A is a column, and B a row.
        ((5, 6, 1), [Nn, Nt, Tn, Tt], [Tn; 4]),
        ((1, 1, 1), [Nn, Nt, Tn, Tt], [Nn; 4]),
        ((0, 6, 7), [Nn, Nt, Tn, Tt], [Nn, Nt, Tn, Tt]),
    ] {
        for (said, lies) in said.into_iter().zip(lies) {
            let shape = SgemmShape::from(extents).layout(said);
            assert_eq!(shape.lies(), lies, "{extents:?} {said}");
            assert_eq!(shape.padded(true).lies(), said, "{extents:?} {said}");
            assert!(holds(&lies.to_string(), &SgemmProblem { shape, target: Target::H200 }));
        }
    }
}

#[test]
fn a_line_is_made_for_matrices_however_they_lie() {
    let of = |line: &str| -> [String; 4] {
        let spec: SgemmSpec = line.parse().expect(line);
        [GemmLayout::Nn, GemmLayout::Nt, GemmLayout::Tn, GemmLayout::Tt]
            .map(|layout| spec.clone().for_matrices(layout, false).to_string())
    };
    let line = "tile: 64x64x16, thread: 8x8, float4, transpose, pad_a: 4, pad_b: 8";
    let plain = "tile: 64x64x16, thread: 8x8, float4";
    let expected = [
        format!("{plain}, transpose, pad_a: 4"),
        format!("layout: nt, {line}"),
        format!("layout: tn, {plain}"),
        format!("layout: tt, {plain}, transpose, pad_b: 8"),
    ];
    assert_eq!(of(line), expected);
    // Padding that does not belong to a transposition is kept.
    assert!(
        of("tile: 64x64x16, thread: 8x8, pad_a: 4, pad_b: 8")
            .iter()
            .all(|l| l.contains("pad_b: 8"))
    );
    // Under `nt` no access has four elements.
    let small = of("tile: 16x16x32, thread: 2x2, float4, transpose, stages: 4");
    assert_eq!(small.map(|line| line.contains("float4")), [true, false, true, true]);
    let spec: SgemmSpec = "layout: tt, pitched, unroll: 2".parse().expect("sound");
    assert_eq!(spec.for_matrices(GemmLayout::Nn, true).to_string(), "unroll: 2, pitched");
}

/// A shape that is created from extents has packed rows or columns whose start is aligned to 16
/// bytes.
#[test]
fn packed_matrices_are_aligned_where_each_line_is() {
    for (extents, layout, batch, expected) in [
        ((8, 8, 8), GemmLayout::Nn, 1, true),
        // A row of B and C.
        ((8, 7, 8), GemmLayout::Nn, 1, false),
        // A row of A.
        ((8, 8, 7), GemmLayout::Nn, 1, false),
        // Rows of A, of which there is one.
        ((1, 8, 7), GemmLayout::Nn, 1, true),
        ((1, 8, 7), GemmLayout::Nn, 2, false),
        ((1, 8, 7), GemmLayout::Nn, 0, true),
        ((7, 8, 8), GemmLayout::Nn, 1, true),
        // Columns of A.
        ((7, 8, 8), GemmLayout::Tn, 1, false),
        ((8, 8, 7), GemmLayout::Tn, 1, true),
        // Columns of B have K elements.
        ((8, 8, 6), GemmLayout::Nt, 1, false),
        ((8, 8, 6), GemmLayout::Tt, 1, false),
        ((12, 8, 4), GemmLayout::Tt, 1, true),
        // One row of C and of A, and columns of B.
        ((1, 7, 8), GemmLayout::Nt, 1, true),
        ((1, 7, 8), GemmLayout::Nt, 3, false),
    ] {
        let shape = SgemmShape::from(extents).layout(layout).batch(batch);
        let problem = SgemmProblem { shape, target: Target::H200 };
        assert_eq!(holds("aligned", &problem), expected, "{problem:?}");
        assert!(!holds("aligned", &SgemmProblem { shape: shape.aligned(false), ..problem }));
        assert!(holds("aligned", &SgemmProblem { shape: shape.aligned(true), ..problem }));
    }
}

#[test]
fn waves_are_tiles_for_each_multiprocessor() {
    let problem = |extents: (usize, usize, usize), batch, sms| SgemmProblem {
        shape: SgemmShape::from(extents).batch(batch),
        target: Target { arch: 80, sms },
    };
    let waves = |problem: &SgemmProblem, tile| SgemmSpec::waves(problem, tile);
    assert_eq!(waves(&problem((4096, 4096, 8), 1, 128), (128, 256)), Some(4.0));
    assert_eq!(waves(&problem((4097, 4096, 8), 1, 128), (128, 256)), Some(4.125));
    assert_eq!(waves(&problem((1, 1, 0), 3, 4), (128, 256)), Some(0.75));
    assert_eq!(waves(&problem((0, 4096, 8), 1, 128), (128, 256)), Some(0.0));
    let large = problem((usize::MAX, usize::MAX, 1), u64::MAX, 1);
    assert!(waves(&large, (1, 1)).is_some_and(f64::is_finite));
    let of_4096 = problem((4096, 4096, 8), 1, 128);
    for (when, expected) in [
        ("waves(128x256) >= 4.0", true),
        ("waves(128x256) > 4.0", false),
        ("waves(256x128) == waves(128x256)", true),
        ("waves(64x64) - floor(waves(64x64)) < 0.5 && waves(64x64) * 0.5 == 16.0 - 0.0", true),
        ("f64(m) / f64(n) >= 1.5", false),
        ("-waves(1x1) < 0.0", true),
        ("min(waves(64x64), 2.5) == 2.5 && max(1.0, f64(k)) == 8.0", true),
        ("abs(1.0 - waves(128x256)) == 3.0 && clamp(waves(1x1), 0.0, 1e3) == 1000.0", true),
        ("round(waves(128x256) + 0.5) == 4.0 && sqrt(waves(128x256)) == 2.0", true),
        ("0.0 / 0.0 == 0.0 / f64(m - m)", false),
        ("{ let full = floor(waves(100x100)); waves(100x100) > full }", true),
    ] {
        assert_eq!(holds(when, &of_4096), expected, "{when}");
    }
}

#[test]
fn reasons_list_the_facts_evaluated_up_to_the_rule() {
    let table = products(
        "m <= 8 || n <= 8 => unroll: 2; waves(64x64) >= 2.0 && !padded => unroll: 3; k > m => \
         unroll: 4; else =>",
    );
    let why = |problem: &SgemmProblem| {
        let row = table.choose(problem).expect("in range");
        let why = table.why(row, problem).expect("in range");
        let why: Vec<String> = why.into_iter().map(|(name, is)| format!("{name} = {is}")).collect();
        (row, why.join(", "))
    };
    assert_eq!(why(&on_h200((4, 9, 5))), (0, "m = 4, n = 9".to_owned()));
    let asked = "m = 2048, n = 2048, waves(64x64) = 7.757575757575758, padded = false";
    assert_eq!(why(&on_h200((2048, 2048, 5))), (1, asked.to_owned()));
    let few = "m = 66, n = 9, waves(64x64) = 0.015151515151515152, padded = false, k = ";
    assert_eq!(why(&on_h200((66, 9, 67))), (2, format!("{few}67")));
    assert_eq!(why(&on_h200((66, 9, 66))), (3, format!("{few}66")));
}

#[test]
fn products_beyond_what_kernels_take_are_refused_where_they_are_asked_for() {
    let table = products("m < 9 && sms > 1 => ; else => unroll: 2");
    let most = i32::MAX as usize;
    assert_eq!(table.choose(&on_h200((most, usize::MAX, 1))), Ok(1));
    let told = table.choose(&on_h200((most + 1, 1, 1))).expect_err("an extent").to_string();
    assert_eq!(told, "`m` is 2147483648, but tables accept only 0 to 2147483647");
    let none = SgemmProblem { target: Target { arch: 90, sms: 0 }, ..on_h200((1, 1, 1)) };
    let told = table.choose(&none).expect_err("no device").to_string();
    assert_eq!(told, "`sms` is 0, but tables accept only 1 to 2147483647");
}
