//! Tests of the shipped tables: which reductions have one, and that each rule is reachable.

use super::tuned;
use crate::Plan;
use crate::spec::{DataType, Op, Over, ReduceSpec, Table};
use crate::tables::KernelTable;

/// Every reduction without expressions, with or without a plan.
fn works() -> Vec<ReduceSpec> {
    let mut works = Vec::new();
    for (op, element, over) in Op::ALL.iter().flat_map(|op| {
        let pairs =
            DataType::ALL.iter().flat_map(|ty| Over::ALL.iter().map(move |over| (ty, over)));
        pairs.map(move |(ty, over)| (*op, *ty, *over))
    }) {
        let line = format!("op: {op}, type: {element}, over: {over}");
        for more in [
            "",
            ", compensated",
            ", acc: f32",
            ", acc: f64",
            ", acc: i64",
            ", acc: u64, compensated",
            ", index: u64",
            ", result: f16",
            ", result: i64, acc: i64",
            ", pitched",
            ", pitched, acc: f64, compensated",
            ", index: u64, acc: f64",
        ] {
            works.extend(read(&format!("{line}{more}")));
        }
    }
    works
}

/// Parses a spec, also one without a plan.
fn read(line: &str) -> Option<ReduceSpec> {
    let (tokens, _) = crate::parse::tokens_of(line);
    assert!(!tokens.is_empty());
    line.parse().ok()
}

fn choose(table: &KernelTable<ReduceSpec>, [outer, len, inner]: [u64; 3]) -> usize {
    table.choose(&(outer, len, inner)).unwrap_or_else(|error| panic!("{error}"))
}

/// Shapes around the limits of the tables; extents that a kernel lacks are 1.
fn shapes(over: Over) -> Vec<[u64; 3]> {
    let around = [
        1,
        2,
        3,
        4,
        5,
        7,
        8,
        9,
        12,
        16,
        17,
        31,
        32,
        33,
        48,
        64,
        65,
        100,
        128,
        129,
        256,
        257,
        258,
        512,
        513,
        1000,
        1024,
        1025,
        1040,
        2048,
        2049,
        4096,
        8192,
        8193,
        32767,
        32768,
        32769,
        65536,
        65537,
        100_000,
        131_072,
        1 << 20,
        1 << 27,
    ];
    let outers: &[u64] = if matches!(over, Over::Rows | Over::Middle) { &around } else { &[1] };
    let inners: &[u64] = if matches!(over, Over::Columns | Over::Middle) { &around } else { &[1] };
    let mut shapes = Vec::new();
    for outer in outers {
        for inner in inners {
            shapes.extend(around.iter().map(|len| [*outer, *len, *inner]));
        }
    }
    shapes
}

#[test]
fn reductions_with_a_plan_have_a_table() {
    let works = works();
    assert!(works.len() > 1_500, "{}", works.len());
    for what in works {
        let table = tuned(&what).unwrap_or_else(|faults| panic!("`{what}`: {faults}"));
        for row in table.rules() {
            // Every rule keeps the keys that affect the result.
            assert_eq!(row.spec.differs(&what), None, "{what}: {row}");
            assert_eq!(row.spec.name, None, "{what}");
        }
        assert_eq!(table.to_string().parse(), Ok(table), "{what}");
    }
}

#[test]
fn expressions_are_kept_and_how_it_is_computed_is_not() {
    for line in [
        "over: rows, map: |x, y| x * y, finish: |s, len| sqrt(s / len)",
        "over: columns, fold: |a, b| max(a, b), identity: -1.0, map: |x| abs(x)",
        "over: middle, op: mean_var, map: |x| x * 0.5",
    ] {
        let what: ReduceSpec = line.parse().expect("a line");
        let how = what.clone().name("mine").block(64).items(2);
        let table = tuned(&what).expect("a table");
        assert_eq!(tuned(&how), Ok(table.clone()), "{line}");
        for row in table.rules() {
            let spec = &row.spec;
            assert_eq!(
                (&spec.map, &spec.finish, &spec.fold, &spec.identity),
                (&what.map, &what.finish, &what.fold, &what.identity),
                "{line}"
            );
        }
    }
}

/// A fault of the reduction is reported once; a fault in how it is computed is ignored.
#[test]
fn reductions_without_a_plan_report_their_faults() {
    let what =
        ReduceSpec { compensated: true, op: Op::Max, over: Over::Rows, ..Default::default() };
    let faults = tuned(&what).expect_err("no sum").to_string();
    let expected = what.plan().expect_err("no sum").to_string();
    assert_eq!(faults, expected);
    let how = ReduceSpec { block: 7, over: Over::Rows, ..Default::default() };
    assert!(how.plan().is_err() && tuned(&how).is_ok());
}

#[test]
fn each_row_is_chosen_by_some_shape_of_elements() {
    for over in Over::ALL {
        let shapes = shapes(*over);
        for op in [Op::Sum, Op::Logsumexp, Op::MeanVar] {
            for element in DataType::ALL {
                let Some(what) = read(&format!("op: {op}, type: {element}, over: {over}")) else {
                    continue;
                };
                let table = tuned(&what).expect("a table");
                let mut chosen = vec![0; table.rules().len()];
                shapes.iter().for_each(|shape| chosen[choose(&table, *shape)] += 1);
                for (row, times) in table.rules().iter().zip(chosen) {
                    assert!(times > 0, "op: {op}, type: {element}: {row}");
                }
            }
        }
    }
}

/// If a rule loads vectors, the extent along them is a multiple of their length.
#[test]
fn vectors_are_of_shapes_that_have_some() {
    for element in DataType::ALL {
        let vector = u64::from(16 / element.elem().size());
        for over in [Over::Rows, Over::Columns, Over::Middle] {
            let what = read(&format!("type: {element}, over: {over}")).expect("a sum");
            let table = tuned(&what).expect("a table");
            let mut vectors = 0;
            for shape in shapes(over) {
                let along = if over == Over::Rows { shape[1] } else { shape[2] };
                let is_vector = table.rules()[choose(&table, shape)].spec.float4;
                assert!(!is_vector || along.is_multiple_of(vector), "{what}: {shape:?}");
                vectors += usize::from(is_vector);
            }
            assert!(vectors > 0, "{what}");
        }
    }
}

/// Each rule of the tables has kernels, for one element type of each size.
#[test]
fn each_row_has_kernels() {
    for over in Over::ALL {
        for line in [
            "",
            "op: mean_var, type: f64",
            "op: argmax, type: i8, index: u64",
            "op: logsumexp, type: bf16",
        ] {
            let what = read(&format!("over: {over}, {line}")).expect("a line");
            for row in tuned(&what).expect("a table").rules() {
                row.spec
                    .plan()
                    .and_then(|plan| plan.program())
                    .unwrap_or_else(|faults| panic!("{row}: {faults}"));
            }
        }
    }
}
