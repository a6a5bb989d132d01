//! Answers in the disk cache.
//!
//! An entry is the text of an outcome and of the times of its candidates. Their specs are not in
//! it: they follow from the table, whose text is part of the key.

use super::answer::{Basis, Candidate, Outcome};
use crate::cache::{Cache, Entry, Key};
use std::fmt::Write as _;
use std::time::Duration;

/// Compiler of the measured kernels: major, minor, build.
pub(super) type Compiler = (u32, u32, u32);

/// Stands for the end of a line in a message.
const LINE_END: &str = "\u{1}";

/// Answer that a cache keeps.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record {
    pub(super) outcome: Outcome,
    pub(super) candidates: Vec<Candidate>,
}

/// Key of an answer. `device` has all that identifies the GPU and its driver.
pub(super) fn key(device: &[&str], table: &str, condition: &str) -> Key {
    let version = env!("CARGO_PKG_VERSION");
    Key::new(&[&["autotune 1", version, table, condition], device].concat())
}

/// Finds an answer of a compiler that is at least `oldest`, for as large a budget, or of all
/// candidates. `specs` are the candidates before any was tried.
pub(super) fn find(
    cache: &Cache,
    key: Key,
    oldest: Compiler,
    budget: Duration,
    specs: &[Candidate],
) -> Option<Record> {
    let text = String::from_utf8(cache.get(key, oldest)?.payload).ok()?;
    let record = parse(&text, specs)?;
    let is_enough = record.outcome.is_complete || record.outcome.budget >= budget;
    is_enough.then_some(record)
}

/// Stores an answer. A cache that cannot be written is not an error.
pub(super) fn store(cache: &Cache, key: Key, compiler: Compiler, record: &Record) {
    cache.put(key, &Entry { compiler, payload: print(record).into_bytes() });
}

/// Text of a record: the outcome in the first line, then a line for each candidate.
fn print(record: &Record) -> String {
    let Outcome { chosen, is_complete, budget, .. } = &record.outcome;
    let budget = u64::try_from(budget.as_nanos()).unwrap_or(u64::MAX);
    let mut text = format!("{chosen} {} {budget}\n", u8::from(*is_complete));
    for Candidate { rule, predicted, measured, samples, error, .. } in &record.candidates {
        let time = |time: &Option<Duration>| match time {
            Some(time) => time.as_nanos().to_string(),
            None => "-".to_owned(),
        };
        let error = error.as_deref().unwrap_or_default().replace('\n', LINE_END);
        let (predicted, measured) = (time(predicted), time(measured));
        _ = writeln!(text, "{rule} {predicted} {measured} {samples} {error}");
    }
    text
}

fn parse(text: &str, specs: &[Candidate]) -> Option<Record> {
    let mut lines = text.lines();
    let mut head = lines.next()?.split(' ');
    let chosen: usize = head.next()?.parse().ok()?;
    let is_complete = head.next()? == "1";
    let budget = nanoseconds(head.next()?)?;
    let candidates = lines.map(|line| {
        let mut fields = line.splitn(5, ' ');
        let rule: usize = fields.next()?.parse().ok()?;
        let spec = specs.iter().find(|spec| spec.rule == rule)?.clone();
        let mut time = || match fields.next()? {
            "-" => Some(None),
            text => nanoseconds(text).map(Some),
        };
        let (predicted, measured) = (time()?, time()?);
        let samples = fields.next()?.parse().ok()?;
        let error = fields
            .next()
            .filter(|error| !error.is_empty())
            .map(|error: &str| error.replace(LINE_END, "\n"));
        Some(Candidate { predicted, measured, samples, error, ..spec })
    });
    let candidates = candidates.collect::<Option<Vec<Candidate>>>()?;
    let has_all = candidates.len() == specs.len() && candidates[0].rule == specs[0].rule;
    let is_measured = candidates.get(chosen).is_some_and(|chosen| chosen.measured.is_some());
    let outcome = Outcome { chosen, basis: Basis::Measured, is_complete, budget };
    (has_all && is_measured).then_some(Record { outcome, candidates })
}

fn nanoseconds(text: &str) -> Option<Duration> {
    Some(Duration::from_nanos(text.parse().ok()?))
}
