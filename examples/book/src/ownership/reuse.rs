//! Reuse of a tile: groups of elements that the same threads read equally often.

use super::threads::Threads;
use crate::ownership::layout::SharedTile;
use crate::ownership::moves::{MatrixMoves, Position};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of positions that are named individually. Positions that form rows and columns
/// are named as ranges.
const NAMED: usize = 4;

/// Elements of a tile with the same readers and number of reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReuseGroup {
    /// Positions in the tile, in words.
    pub elements: String,
    pub count: usize,
    /// Positions in shared memory, in words. Empty if the elements are not copied there.
    pub lie: String,
    /// Threads that copy the elements.
    pub owners: Threads,
    /// Threads that read each element, or `None` if the lanes that read it are unknown.
    pub readers: Option<Threads>,
    /// Number of reads of each element.
    pub reads: u64,
}

impl ReuseGroup {
    /// Describes the reads of an element.
    pub fn read(&self) -> String {
        let times = match self.reads {
            0 => return "never".to_owned(),
            1 => "once".to_owned(),
            times => format!("{times} times"),
        };
        match &self.readers {
            None => times,
            Some(readers) if readers.count() == self.reads || self.reads == 1 => {
                format!("{times}, by {}", readers.text())
            }
            Some(readers) => format!("{times}, by {} threads: {}", readers.count(), readers.text()),
        }
    }
}

/// Groups the elements of a tile, and returns the groups and the group of each element. With
/// `is_shuffled` the lanes that read an element are unknown.
pub(super) fn groups(
    moved: &MatrixMoves,
    elements: &BTreeSet<Position>,
    held: Option<&SharedTile>,
    is_shuffled: bool,
) -> (Vec<ReuseGroup>, BTreeMap<Position, usize>) {
    let none = BTreeMap::new();
    let readers = |element: &Position| moved.readers.get(element).unwrap_or(&none);
    // Groups in the order of their first elements.
    let mut known: Vec<(Threads, u64, BTreeSet<Position>)> = Vec::new();
    let mut of_elements = BTreeMap::new();
    for element in elements {
        let by = readers(element);
        let threads = if is_shuffled { Threads::default() } else { Threads::new(by.keys()) };
        let reads = by.values().sum();
        let alike = known.iter().position(|(of, n, _)| *of == threads && *n == reads);
        let number = alike.unwrap_or_else(|| {
            known.push((threads, reads, BTreeSet::new()));
            known.len() - 1
        });
        known[number].2.insert(*element);
        of_elements.insert(*element, number);
    }
    let group = |(readers, reads, elements): (Threads, u64, BTreeSet<Position>)| {
        let owners = elements.iter().filter_map(|element| moved.owned.get(element)).flatten();
        let lie = |held: &SharedTile| {
            places(&elements.iter().filter_map(|at| held.places.get(at).copied()).collect())
        };
        ReuseGroup {
            elements: places(&elements),
            count: elements.len(),
            lie: held.map_or(String::new(), lie),
            owners: Threads::new(&owners.copied().collect::<BTreeSet<u32>>()),
            readers: (!is_shuffled).then_some(readers),
            reads,
        }
    };
    (known.into_iter().map(group).collect(), of_elements)
}

/// Describes positions as rows and columns, or names the first of them.
pub(super) fn places(all: &BTreeSet<Position>) -> String {
    let rows: BTreeSet<u64> = all.iter().map(|(row, _)| *row).collect();
    let columns: BTreeSet<u64> = all.iter().map(|(_, column)| *column).collect();
    let named = |word: &str, numbers: &BTreeSet<u64>| {
        let s = if numbers.len() == 1 { "" } else { "s" };
        format!("{word}{s} {}", runs(numbers))
    };
    if rows.len() * columns.len() == all.len() {
        return format!("{}, {}", named("row", &rows), named("column", &columns));
    }
    let first = all.iter().take(NAMED).map(|(row, column)| format!("({row}, {column})"));
    let first = first.collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(NAMED) {
        0 => first,
        others => format!("{first} and {others} more"),
    }
}

/// Formats numbers as ranges. If more than three ranges are evenly spaced, only the first two and
/// the last are printed: `0–3, 8–11, … 56–59`.
fn runs(numbers: &BTreeSet<u64>) -> String {
    let mut runs: Vec<[u64; 2]> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some([_, last]) if *last + 1 == number => *last = number,
            _ => runs.push([number; 2]),
        }
    }
    let named = |[from, to]: &[u64; 2]| match from == to {
        true => from.to_string(),
        false => format!("{from}–{to}"),
    };
    let apart = |pair: &[[u64; 2]]| [pair[1][0] - pair[0][0], pair[1][1] - pair[0][1]];
    let are_even = runs.windows(2).all(|pair| apart(pair) == apart(&runs[..2]));
    match &runs[..] {
        [first, second, .., last] if runs.len() > 3 && are_even => {
            format!("{}, {}, … {}", named(first), named(second), named(last))
        }
        all => all.iter().map(named).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_as_far_apart_are_not_all_named() {
        let of = |all: &[u64]| runs(&all.iter().copied().collect());
        assert_eq!(of(&[7]), "7");
        assert_eq!(of(&[0, 8, 16]), "0, 8, 16");
        assert_eq!(of(&[0, 8, 16, 24, 32]), "0, 8, … 32");
        assert_eq!(of(&[0, 8, 16, 24, 33]), "0, 8, 16, 24, 33");
        assert_eq!(of(&[0, 1, 4, 5, 8, 9, 12, 13]), "0–1, 4–5, … 12–13");
        assert_eq!(of(&[0, 1, 4, 8, 12]), "0–1, 4, 8, 12");
        assert_eq!(of(&[0, 1, 4, 5, 6, 8, 12]), "0–1, 4–6, 8, 12");
    }

    #[test]
    fn places_are_rows_and_columns_or_named() {
        let of = |all: &[Position]| places(&all.iter().copied().collect());
        assert_eq!(of(&[(3, 5)]), "row 3, column 5");
        assert_eq!(of(&[(0, 1), (0, 2), (4, 1), (4, 2)]), "rows 0, 4, columns 1–2");
        assert_eq!(of(&[(0, 0), (1, 1)]), "(0, 0), (1, 1)");
        let diagonal: Vec<Position> = (0..9).map(|n| (n, n)).collect();
        assert_eq!(of(&diagonal), "(0, 0), (1, 1), (2, 2), (3, 3) and 5 more");
    }

    #[test]
    fn readers_are_counted_unless_each_reads_once() {
        let read = |reads, readers: &[u32]| {
            let readers = Some(Threads::new(&readers.iter().copied().collect::<BTreeSet<u32>>()));
            let none = Threads::default();
            let (elements, lie) = (String::new(), String::new());
            ReuseGroup { elements, count: 1, lie, owners: none, readers, reads }.read()
        };
        assert_eq!(read(0, &[]), "never");
        assert_eq!(read(1, &[3]), "once, by lane 3 of warp 0");
        assert_eq!(read(2, &[3, 4]), "2 times, by lanes 3–4 of warp 0");
        assert_eq!(read(4, &[3, 4]), "4 times, by 2 threads: lanes 3–4 of warp 0");
    }
}
