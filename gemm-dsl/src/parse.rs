//! Grammar of the DSL, shared by macros and text.
//!
//! A spec is a list of entries in any order. An entry is a `key: value` pair or a flag. Commas
//! separate entries, and a comma may follow the last entry. The list may be enclosed in `<` and
//! `>`. Rust lexes a size such as `128x128x8` as one literal (`128` with the suffix `x128x8`), so
//! this module splits the literal's text.
//!
//! One pass collects faults of several entries and reports at most 20. Entries that could be parsed
//! are planned even if others are faulty. A fault of the plan is dropped if it involves a key whose
//! value could not be parsed, because a correct value may remove the fault.

mod calls;
mod entries;
mod epilogue;
mod messages;
mod parts;
mod table;
#[cfg(test)]
mod tests;
mod value;

use crate::error::{Excerpt, SpecError, SpecErrors, clip};
use crate::expr::Closure;
use crate::family::Family;
use crate::plan::{MapPlan, ReducePlan, ScanPlan, SgemmPlan};
use crate::spec::{Datum, FAMILIES, Key, KeyKind, MapSpec, ReduceSpec, ScanSpec, SgemmSpec, Table};
use crate::syntax::{Span, Token, Tokens, closest, lex};
use entries::{Entry, EntryList};
use messages::Meant;
use std::collections::HashMap;
use std::ops::Range;
use std::str::FromStr;

pub use calls::{
    MapTokens, ReduceTableTokens, ReduceTokens, ScanTokens, SgemmTableTokens, SgemmTokens, map,
    reduce, reduce_table, scan, sgemm, sgemm_table,
};
pub use epilogue::{EpilogueTokens, epilogue};
pub use parts::{call, entries};

/// Maximum number of faults that are reported at once.
const MAX_FAULTS: usize = 20;

/// Parses and plans a spec given as text, with the same messages as the macro.
pub(crate) fn from_text<S: Family + Table>(text: &str) -> Result<S::Plan, SpecErrors> {
    let (tokens, places) = lex(text).map_err(|fault| fault.in_text(text))?;
    let Outcome { plan, .. } = planned::<S>(&tokens);
    plan.map_err(|faults| {
        SpecErrors::new(faults.into_iter().map(|fault| excerpted(fault, text, &places)))
    })
}

/// Fault with an excerpt of the text. `places` are the bytes of all tokens.
fn excerpted((fault, span): Fault, text: &str, places: &[Range<usize>]) -> SpecError {
    let place = span.map(|span| places[span.start].start..places[span.end - 1].end);
    fault.with_excerpt(place.map(|place| Excerpt::new(text, place)))
}

/// Returns the tokens of a text, and each token's range of bytes.
#[cfg(test)]
pub(crate) fn tokens_of(text: &str) -> (Vec<Token>, Vec<Range<usize>>) {
    lex(text).unwrap_or_else(|fault| panic!("{text}: {}", fault.error))
}

/// Parses and plans a spec, with the same messages as the macro.
impl FromStr for ReducePlan {
    type Err = SpecErrors;
    fn from_str(text: &str) -> Result<Self, SpecErrors> {
        from_text::<ReduceSpec>(text)
    }
}

/// Parses a spec and checks that it has a plan, with the same messages as the macro.
impl FromStr for ReduceSpec {
    type Err = SpecErrors;
    fn from_str(text: &str) -> Result<Self, SpecErrors> {
        from_text::<Self>(text).map(|plan| plan.spec().clone())
    }
}

/// Parses and plans a spec, with the same messages as the macro.
impl FromStr for MapPlan {
    type Err = SpecErrors;
    fn from_str(text: &str) -> Result<Self, SpecErrors> {
        from_text::<MapSpec>(text)
    }
}

/// Parses a spec and checks that it has a plan, with the same messages as the macro.
impl FromStr for MapSpec {
    type Err = SpecErrors;
    fn from_str(text: &str) -> Result<Self, SpecErrors> {
        from_text::<Self>(text).map(|plan| plan.spec().clone())
    }
}

/// Parses and plans a spec, with the same messages as the macro.
impl FromStr for ScanPlan {
    type Err = SpecErrors;
    fn from_str(text: &str) -> Result<Self, SpecErrors> {
        from_text::<ScanSpec>(text)
    }
}

/// Parses a spec and checks that it has a plan, with the same messages as the macro.
impl FromStr for ScanSpec {
    type Err = SpecErrors;
    fn from_str(text: &str) -> Result<Self, SpecErrors> {
        from_text::<Self>(text).map(|plan| plan.spec().clone())
    }
}

/// Parses and plans a spec, with the same messages as the macro.
impl FromStr for SgemmPlan {
    type Err = SpecErrors;
    fn from_str(text: &str) -> Result<Self, SpecErrors> {
        from_text::<SgemmSpec>(text)
    }
}

/// Parses a spec and checks that it has a plan, with the same messages as the macro.
impl FromStr for SgemmSpec {
    type Err = SpecErrors;
    fn from_str(text: &str) -> Result<Self, SpecErrors> {
        from_text::<Self>(text).map(|plan| plan.spec().clone())
    }
}

/// Fault with the tokens that it marks; `None` if it concerns the whole spec.
type Fault = (SpecError, Option<Span>);

/// Result of parsing and planning a spec.
struct Outcome<'t, S, P> {
    spec: S,
    /// Plan of the spec, or plans of a table's rule; if there is none, all faults.
    plan: Result<P, Vec<Fault>>,
    given: HashMap<&'static str, Entry<'t>>,
    /// Keys without a value that could be parsed. Keys that the user probably meant count as well.
    unread: Vec<&'static str>,
}

fn planned<S: Family + Table>(tokens: &[Token]) -> Outcome<'_, S, S::Plan> {
    planned_by(Tokens::all(tokens), S::default(), S::plan)
}

/// Parses a range of the tokens into entries of the spec `start`, and plans the spec with `plan`.
fn planned_by<S: Table, P>(
    tokens: Tokens<'_>,
    start: S,
    plan: impl FnOnce(&S) -> Result<P, SpecErrors>,
) -> Outcome<'_, S, P> {
    let mut reader = SpecReader::<S>::read(tokens, start);
    let plan = (reader.more == 0).then(|| plan(&reader.spec));
    if let Some(Err(errors)) = &plan {
        reader.add_plan_faults(errors);
    }
    let mut faults = reader.faults;
    faults.sort_by_key(|(_, span)| span.as_ref().map(|span| span.start));
    let more = reader.more + faults.len().saturating_sub(MAX_FAULTS);
    if more > 0 {
        faults.truncate(MAX_FAULTS);
        faults.push((messages::too_many(more), None));
    }
    let plan = match plan {
        Some(Ok(plan)) if faults.is_empty() => Ok(plan),
        _ => Err(faults),
    };
    let SpecReader { spec, given, misread, meant, .. } = reader;
    let is_unread = |name: &&str| S::key(name).is_some_and(|key| (key.text)(&spec).is_none());
    let unread = misread.into_iter().chain(meant).filter(is_unread).collect();
    Outcome { spec, plan, given, unread }
}

/// State of parsing a spec.
struct SpecReader<'t, S> {
    spec: S,
    faults: Vec<Fault>,
    /// Keys whose parsed value is not the value that the user meant.
    misread: Vec<&'static str>,
    /// Keys that the user may have meant by a misspelt key.
    meant: Vec<&'static str>,
    /// True once a message has listed all keys, so that later messages do not repeat the list.
    listed: bool,
    given: HashMap<&'static str, Entry<'t>>,
    /// Number of faults of entries so far. From [`MAX_FAULTS`] on, unknown keys are only counted.
    told: usize,
    /// Number of unknown keys that were only counted. The last message adds it to the other faults
    /// that are not reported.
    more: usize,
}

impl<'t, S: Table> SpecReader<'t, S> {
    fn read(tokens: Tokens<'t>, start: S) -> Self {
        let kind = |name: &str| S::key(name).map(|key| key.kind);
        let EntryList { entries, faults } = entries::split(tokens, &kind, S::bare());
        let mut reader = Self {
            spec: start,
            faults: faults.into_iter().map(|(fault, span)| (fault, Some(span))).collect(),
            misread: Vec::new(),
            meant: Vec::new(),
            listed: false,
            given: HashMap::new(),
            told: 0,
            more: 0,
        };
        for entry in entries {
            reader.entry(entry);
        }
        let given = &reader.given;
        reader.spec.complete(|key| given.contains_key(key));
        reader
    }

    fn fault(&mut self, fault: SpecError, span: Span) {
        self.misread.extend(fault.keys());
        self.told += 1;
        self.faults.push((fault, Some(span)));
    }

    fn entry(&mut self, entry: Entry<'t>) {
        let Some(key) = S::key(&entry.name()) else {
            self.unknown(&entry);
            return;
        };
        if let Some(first) = self.given.get(key.name) {
            // The tokens of an expression have no spaces between them, so its canonical text is
            // quoted.
            let text = match key.kind {
                KeyKind::Closure(_) if self.misread.contains(&key.name) => None,
                KeyKind::Closure(_) => (key.text)(&self.spec).map(|text| clip(&text)),
                _ => Some(first.value_text()),
            };
            let fault = messages::duplicate(key.name, &text.unwrap_or_default());
            self.fault(fault, entry.key.span());
            return;
        }
        if entry.malformed {
            self.misread.push(key.name);
        } else {
            match datum(key, &entry) {
                Ok(datum) => {
                    if !(key.set)(&mut self.spec, &datum) {
                        let fault = messages::wrong_kind(key.name, key.kind, &entry.value_text());
                        self.fault(fault, entry.value_span());
                    }
                }
                Err(faults) => {
                    for fault in faults {
                        let span = entry.span(fault.site());
                        self.fault(fault, span);
                    }
                    self.head(key, &entry);
                }
            }
        }
        self.given.insert(key.name, entry);
    }

    /// Stores the parameters of an expression whose body is faulty.
    fn head(&mut self, key: &Key<S>, entry: &Entry<'t>) {
        if let (KeyKind::Closure(scope), Some(value)) = (key.kind, entry.value)
            && let Some(head) = Closure::head(scope, value.tokens())
        {
            (key.set)(&mut self.spec, &Datum::Closure(head));
        }
    }

    fn unknown(&mut self, entry: &Entry<'t>) {
        if self.told >= MAX_FAULTS {
            // This fault will not be reported, so the costly search for the nearest key is skipped.
            self.more += 1;
            return;
        }
        let name = entry.name();
        let keys: Vec<&'static str> = S::KEYS.iter().map(|key| key.name).collect();
        let meant = if let Some(key) = renamed::<S>(&name) {
            Meant::Renamed(key)
        } else if let Some(remedy) = foreign::<S>(&name) {
            Meant::Foreign(remedy)
        } else if let Some(other) = other_macro::<S>(&name) {
            Meant::Macro(other)
        } else if let Some((key, word)) = flagged_word::<S>(entry) {
            Meant::Word(key, word)
        } else if let Some(key) = closest(&name, &keys).or_else(|| part_of(&name, &keys)) {
            Meant::Key(key)
        } else if self.listed {
            Meant::UnclearAgain
        } else {
            Meant::Unclear
        };
        self.listed |= matches!(meant, Meant::Unclear);
        if let Meant::Key(key) | Meant::Renamed(key) | Meant::Word(key, _) = meant {
            self.meant.push(key);
        }
        self.fault(messages::unknown_key(&name, &meant, S::MACRO, &keys), entry.key.span());
    }

    fn add_plan_faults(&mut self, errors: &SpecErrors) {
        let absent = |key: &&'static str| !self.given.contains_key(key);
        self.misread.extend(self.meant.iter().copied().filter(absent));
        for fault in errors.iter() {
            if fault.keys().iter().any(|key| self.misread.contains(key)) {
                continue;
            }
            // A default value is valid by itself, so the fault is placed at the first key that was
            // written.
            let entry = fault.keys().iter().find_map(|key| self.given.get(key));
            let span = entry.map(|entry| entry.span(fault.site()));
            self.faults.push((fault.clone(), span));
        }
    }
}

fn datum<S>(key: &Key<S>, entry: &Entry<'_>) -> Result<Datum, Vec<SpecError>> {
    match (key.kind, entry.value.filter(|value| !value.is_empty())) {
        (KeyKind::Flag, _) if entry.value.is_some() => {
            Err(vec![messages::flag_with_value(key.name)])
        }
        (KeyKind::Flag, _) => Ok(Datum::Flag),
        (kind, None) => Err(vec![messages::missing_value(key.name, kind)]),
        (kind, Some(tokens)) => value::read(key.name, kind, tokens),
    }
}

/// Former names of keys with their current names. They apply to the family that has the current
/// key.
const RENAMED: &[(&str, &str)] = &[("map", "fragment")];

/// Returns the current name of a renamed key.
fn renamed<S: Table>(name: &str) -> Option<&'static str> {
    let (_, now) = RENAMED.iter().find(|(once, now)| *once == name && S::key(now).is_some())?;
    Some(now)
}

/// Names that users may write for keys because other libraries or Rust have them, each with the key
/// that serves the purpose and with the remedy. They apply to the family that has the key.
const FOREIGN: &[(&str, &[&str], &str)] = &[
    (
        "layout",
        &["transpose_a", "trans_a", "transa", "ta", "op_a"],
        "write `layout: tn` for a column-major A, and pass the view `a.t()`",
    ),
    (
        "layout",
        &["transpose_b", "trans_b", "transb", "tb", "op_b"],
        "write `layout: nt` for a column-major B, and pass the view `b.t()`",
    ),
    (
        "layout",
        &["trans", "transposed"],
        "write `layout: nt` for a column-major B, or `layout: tn` for a column-major A",
    ),
    ("scaled", &["alpha", "beta"], "write `scaled`: a call then passes alpha and beta"),
    (
        "epilogue",
        &["bias", "activation", "act", "residual", "relu", "gelu", "silu", "sigmoid", "tanh"],
        "write an epilogue, such as `epilogue: |acc, bias[n]| relu(acc + bias)`",
    ),
    (
        "over",
        &["axis", "axes", "dim", "dims"],
        "write `over: rows` to fold each row of a matrix, or `over: columns` to fold each column",
    ),
    ("type", &["dtype", "element"], "write `type`, as in `type: f16`"),
    (
        "arith",
        &["type", "dtype", "element"],
        "the matrices of a GEMM have elements of type `f32`; to multiply on tensor cores, write \
         `arith`, as in `arith: bf16`",
    ),
    (
        "layout",
        &["struct"],
        "only the macro declares a type, with `struct Name;` before the first key",
    ),
    ("over", &["struct"], "only `sgemm_kernel!` declares a type; leave `struct` out"),
];

/// Returns the remedy for a key that another library or Rust has.
fn foreign<S: Table>(name: &str) -> Option<&'static str> {
    let is_meant = |(key, names, _): &&(&str, &[&str], &'static str)| {
        names.contains(&name) && S::key(key).is_some()
    };
    FOREIGN.iter().find(is_meant).map(|(.., remedy)| *remedy)
}

/// Returns the name of the other macro that has this key, if there is one.
fn other_macro<S: Table>(name: &str) -> Option<&'static str> {
    let others = FAMILIES.iter().filter(|family| family.macro_name != S::MACRO);
    let mut having = others.filter(|family| (family.table)().iter().any(|key| key.name == name));
    having.next().map(|family| family.macro_name)
}

/// Returns the key that is a word of a name, such as `block` of `block_size`.
fn part_of(name: &str, keys: &[&'static str]) -> Option<&'static str> {
    name.split('_').find_map(|part| keys.iter().copied().find(|key| *key == part))
}

/// Returns the key and its word, if the word was written without the key, like a flag.
fn flagged_word<S: Table>(entry: &Entry<'_>) -> Option<(&'static str, &'static str)> {
    let name = entry.name();
    S::KEYS.iter().find_map(|key| match (key.kind, entry.value) {
        (KeyKind::Word(words), None) => {
            let word = words.iter().find(|word| **word == name && word.len() > 1)?;
            Some((key.name, *word))
        }
        _ => None,
    })
}
