//! Elements of a tile that the same threads read as often: how often what was copied once is used.

use super::held::Held;
use super::moved::{Moved, Place};
use super::threads::Threads;
use crate::book::tensor::ranges;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Places that are named one by one, where they are no rows and columns.
const NAMED: usize = 4;

/// Elements that are alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    /// Which, in words.
    pub elements: String,
    /// How many they are.
    pub count: usize,
    /// Where they lie in shared memory, in words; nothing where they are not copied there.
    pub lie: String,
    /// Who copies them.
    pub owners: Threads,
    /// Who reads each of them; nothing where that is not told apart.
    pub readers: Option<Threads>,
    /// How often each is read.
    pub reads: u64,
}

impl Group {
    /// Who reads an element, in words.
    pub fn read(&self) -> String {
        let times = match self.reads {
            0 => return "by none".to_owned(),
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

/// The elements of a tile in groups, and the group of each; `is_shuffled` says that it is not told apart which lane reads what.
pub(super) fn groups(
    moved: &Moved,
    elements: &BTreeSet<Place>,
    held: Option<&Held>,
    is_shuffled: bool,
) -> (Vec<Group>, BTreeMap<Place, usize>) {
    let none = BTreeMap::new();
    let readers = |element: &Place| moved.readers.get(element).unwrap_or(&none);
    // In the order of their first elements.
    let mut known: Vec<(Threads, u64, BTreeSet<Place>)> = Vec::new();
    let mut of_elements = BTreeMap::new();
    for element in elements {
        let by = readers(element);
        let threads = if is_shuffled { Threads::default() } else { Threads::of(by.keys()) };
        let reads = by.values().sum();
        let alike = known.iter().position(|(of, n, _)| *of == threads && *n == reads);
        let number = alike.unwrap_or_else(|| {
            known.push((threads, reads, BTreeSet::new()));
            known.len() - 1
        });
        known[number].2.insert(*element);
        of_elements.insert(*element, number);
    }
    let group = |(readers, reads, elements): (Threads, u64, BTreeSet<Place>)| {
        let owners = elements.iter().filter_map(|element| moved.owned.get(element)).flatten();
        let lie = |held: &Held| {
            places(&elements.iter().filter_map(|at| held.places.get(at).copied()).collect())
        };
        Group {
            elements: places(&elements),
            count: elements.len(),
            lie: held.map_or(String::new(), lie),
            owners: Threads::of(&owners.copied().collect::<BTreeSet<u32>>()),
            readers: (!is_shuffled).then_some(readers),
            reads,
        }
    };
    (known.into_iter().map(group).collect(), of_elements)
}

/// Places, in words: whole rows and columns where they are that, or the first of them.
pub(super) fn places(all: &BTreeSet<Place>) -> String {
    let rows: BTreeSet<u64> = all.iter().map(|(row, _)| *row).collect();
    let columns: BTreeSet<u64> = all.iter().map(|(_, column)| *column).collect();
    let named = |word: &str, numbers: &BTreeSet<u64>| {
        let s = if numbers.len() == 1 { "" } else { "s" };
        format!("{word}{s} {}", ranges(numbers.iter().map(|n| *n as u32)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_rows_and_columns_or_named() {
        let of = |all: &[Place]| places(&all.iter().copied().collect());
        assert_eq!(of(&[(3, 5)]), "row 3, column 5");
        assert_eq!(of(&[(0, 1), (0, 2), (4, 1), (4, 2)]), "rows 0, 4, columns 1–2");
        assert_eq!(of(&[(0, 0), (1, 1)]), "(0, 0), (1, 1)");
        let diagonal: Vec<Place> = (0..9).map(|n| (n, n)).collect();
        assert_eq!(of(&diagonal), "(0, 0), (1, 1), (2, 2), (3, 3) and 5 more");
    }
}
