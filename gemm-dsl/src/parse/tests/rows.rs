//! Messages that follow from the rows of a spec's table, for every row.

use super::faults;
use crate::Family;
use crate::spec::{Datum, KeyKind, ReduceSpec, SgemmSpec, Table};

/// Writes a key with a number, or with a value that is not its default.
fn written<S: Family + Table>(name: &str, kind: KeyKind, number: u32) -> String {
    match kind {
        KeyKind::Flag => name.to_owned(),
        KeyKind::Number | KeyKind::NumberOr(_) => format!("{name}: {number}"),
        KeyKind::Size { example, .. } => format!("{name}: {example}"),
        KeyKind::Word(words) => {
            let default = S::key(name).map(|key| (key.default)()).unwrap_or_default();
            let other = words.iter().find(|word| **word != default);
            format!("{name}: {}", other.unwrap_or_else(|| panic!("{name} has one word")))
        }
        KeyKind::Closure(scope) => format!("{name}: {}", scope.example),
        KeyKind::Name => format!("{name}: mine"),
    }
}

/// A key that has no effect is reported with the text of its row, and no other key is reported.
fn acts<S: Family + Table>() {
    for key in S::KEYS {
        let Some(on) = &key.acts_on else { continue };
        let first = on.rests_on[0];
        let decider = S::key(first).unwrap_or_else(|| panic!("{first} is not a key"));
        let elsewhere = match (on.includes)(&S::default()) {
            false => String::new(),
            true => match decider.kind {
                // The key acts on kernels with certain words only.
                KeyKind::Word(words) => {
                    let excludes = |word: &&&str| {
                        let mut spec = S::default();
                        assert!((decider.set)(&mut spec, &Datum::Word((**word).to_string())));
                        !(on.includes)(&spec)
                    };
                    let word = words.iter().find(excludes);
                    format!("{first}: {}", word.unwrap_or_else(|| panic!("{}", key.name)))
                }
                kind => written::<S>(first, kind, 2),
            },
        };
        let number = key.least.map_or(1, |(least, _)| least) + 1;
        let line = format!("{elsewhere}, {}", written::<S>(key.name, key.kind, number));
        let line = line.trim_start_matches(", ");
        let suggestion = on.suggestion.text(key.name, &S::default());
        let message = format!("`{}` has no effect: {}; {suggestion}", key.name, on.because);
        let found = faults::<S>(line);
        assert!(found.contains(&(key.name.to_owned(), message)), "{line}: {found:?}");
    }
}

/// The smallest valid number is accepted. The number below it is rejected with the text of the row.
fn least<S: Family + Table>() {
    for key in S::KEYS {
        let Some((least, why)) = key.least else { continue };
        let below = least - 1;
        let line = format!("{}: {below}", key.name);
        let message = format!("`{line}`: {why}; use {least} or more");
        let found = faults::<S>(&line);
        assert!(found.contains(&(below.to_string(), message)), "{line}: {found:?}");
        let found = faults::<S>(&format!("{}: {least}", key.name));
        assert!(found.iter().all(|(_, message)| !message.contains(why)), "{line}: {found:?}");
    }
}

#[test]
fn a_key_with_nothing_to_act_on_is_told_so_by_its_row() {
    acts::<ReduceSpec>();
    acts::<SgemmSpec>();
}

#[test]
fn the_least_number_of_a_key_is_that_of_its_row() {
    least::<ReduceSpec>();
    least::<SgemmSpec>();
}
