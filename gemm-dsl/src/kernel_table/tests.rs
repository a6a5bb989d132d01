//! Which row is chosen.

use super::{KernelTable, Tabled};
use crate::spec::ReduceSpec;
use std::cell::RefCell;

fn table(text: &str) -> KernelTable<ReduceSpec> {
    text.parse().unwrap_or_else(|faults| panic!("`{text}`: {faults}"))
}

fn choose(table: &KernelTable<ReduceSpec>, [outer, len, inner]: [u64; 3]) -> usize {
    table.choose(|name| match name {
        "outer" => outer,
        "len" => len,
        "inner" => inner,
        other => panic!("{other}"),
    })
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
                assert_eq!(table.rows()[row].spec.items as usize, row + 1);
                chosen[row] += 1;
            }
        }
    }
    assert!(chosen.iter().all(|times| *times > 0), "{chosen:?}");
}

#[test]
fn the_last_row_alone_has_no_condition_and_needs_no_extent() {
    let one = table("else => items: 2");
    assert_eq!(one.choose(|name| panic!("{name}")), 0);
    for table in [one, table("len < 3 => ; outer < 3 => items: 2; else => items: 4;")] {
        let (last, others) = table.rows().split_last().expect("a row");
        assert!(last.when.is_none() && others.iter().all(|row| row.when.is_some()));
    }
}

/// Those that are asked for are those of the conditions, and no other name is asked for.
#[test]
fn conditions_are_over_the_extents() {
    assert_eq!(ReduceSpec::extents(), ["outer", "len", "inner"]);
    for extent in ReduceSpec::extents() {
        let asked = RefCell::new(Vec::new());
        let row = table(&format!("{extent} == 9 => ; else => items: 2")).choose(|name| {
            asked.borrow_mut().push(name.to_owned());
            9
        });
        assert_eq!((row, asked.take()), (0, vec![(*extent).to_owned()]));
    }
}

#[test]
fn extents_beyond_arrays_choose_a_row() {
    let table = table(
        "outer * len < 16 => items: 1; len == 281474976710656 => items: 2; len > 9223372036854775807 => items: 3; \
         else => items: 4",
    );
    for (extents, row) in [
        ([1, 15, 1], 0),
        ([1, 1 << 48, 1], 1),
        ([1, (1 << 48) + 1, 1], 3),
        ([1, i64::MAX as u64, 1], 3),
        ([1, 1 << 63, 1], 2),
        ([u64::MAX; 3], 2),
        ([0, u64::MAX, 0], 0),
    ] {
        assert_eq!(choose(&table, extents), row, "{extents:?}");
    }
}
