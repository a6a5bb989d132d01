//! Pages: a report, laid out.

use super::access::{Access, Cell, Row};
use super::broken::Broken;
use super::change::{Delta, Edit};
use super::glossary::Term;
use super::ideas::Idea;
use super::ledger::Without;
use super::report::Report;
use super::source::{Charged, Word};
use super::whole::Ladder;
use crate::change::number;
use askama::Template;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The ways to access memory of one line that are drawn: the costliest.
const DRAWN: usize = 2;

/// The style of all pages.
const STYLE: &str = include_str!("../../templates/style.css");
/// And what lights a lane in the pictures of a kernel.
const SCRIPT: &str = include_str!("../../templates/page.js");

/// A link to another page.
#[derive(Clone, Debug)]
pub struct Link {
    /// Where to.
    pub href: String,
    /// `prev` or `next`, if it is.
    pub rel: Option<&'static str>,
    /// Its text.
    pub text: String,
}

#[derive(Template)]
#[template(path = "kernel.html")]
struct KernelPage<'r> {
    report: &'r Report,
    /// What a stage is about.
    idea: Option<&'static Idea>,
    policy: String,
    style: &'static str,
    script: &'static str,
    links: &'r [Link],
    bars: Vec<Bar>,
    lines: Vec<Line<'r>>,
    groups: Vec<Group<'r>>,
    ledger: Vec<Entry<'r>>,
    command: &'r str,
    version: &'static str,
}

struct Bar {
    name: &'static str,
    cycles: String,
    percent: u64,
    rate: &'static str,
}

struct Line<'r> {
    number: usize,
    words: &'r [Word],
    instructions: String,
    wavefronts: String,
    sectors: String,
    /// How much of all instructions it executes, from 0 to 4.
    heat: u32,
    has_access: bool,
}

struct Group<'r> {
    line: usize,
    drawn: Vec<Drawn<'r>>,
    others: usize,
}

/// An access, as it is drawn.
struct Drawn<'r> {
    buffer: &'r str,
    space: &'static str,
    kind: &'static str,
    bytes: u32,
    lanes: String,
    times: String,
    cost: u64,
    least: u64,
    unit: &'static str,
    algebra: String,
    /// What the picture is called.
    name: String,
    rows_are: &'static str,
    columns: Vec<String>,
    span: u32,
    rows: &'r [Row],
    /// The lane that is lit from the beginning.
    lit: Option<u32>,
}

impl Drawn<'_> {
    /// The classes of a cell.
    fn class(&self, cell: &Cell) -> String {
        let is_lit = self.lit.is_some_and(|lane| cell.lanes.contains(&lane));
        match cell.lanes.first() {
            Some(first) => format!("l{}{}", first / 8, if is_lit { " on" } else { "" }),
            None if cell.is_wasted => "w".to_owned(),
            None => String::new(),
        }
    }
}

struct Entry<'r> {
    key: &'r str,
    text: String,
}

/// The page of a kernel, made by a command; of a stage with what it is about.
///
/// # Errors
/// None but those of a template that cannot be written to memory.
pub fn kernel(
    report: &Report,
    idea: Option<&'static Idea>,
    links: &[Link],
    command: &str,
) -> Result<String, askama::Error> {
    let page = KernelPage {
        report,
        idea,
        policy: policy(STYLE, Some(SCRIPT)),
        style: STYLE,
        script: SCRIPT,
        links,
        bars: bars(report),
        lines: lines(report),
        groups: groups(report),
        ledger: report.ledger.iter().map(entry).collect(),
        command,
        version: env!("CARGO_PKG_VERSION"),
    };
    page.render()
}

#[derive(Template)]
#[template(path = "broken.html")]
struct BrokenPage<'r> {
    broken: &'r Broken,
    drawn: Vec<Drawn<'r>>,
    policy: String,
    style: &'static str,
    command: &'r str,
    version: &'static str,
}

/// The page of a fault.
///
/// # Errors
/// As those of [`kernel`].
pub fn broken(broken: &Broken, command: &str) -> Result<String, askama::Error> {
    fn lit((lane, access): &(u32, Access)) -> Drawn<'_> {
        Drawn { lit: Some(*lane), ..drawing(access) }
    }
    let (policy, version) = (policy(STYLE, None), env!("CARGO_PKG_VERSION"));
    let drawn = broken.accesses.iter().map(lit).collect();
    BrokenPage { broken, drawn, policy, style: STYLE, command, version }.render()
}

#[derive(Template)]
#[template(path = "index.html")]
struct IndexPage<'r> {
    policy: String,
    style: &'static str,
    ladders: &'r [Ladder],
    per: &'static str,
    command: &'r str,
    version: &'static str,
}

/// The page that leads to all others.
///
/// # Errors
/// As those of [`kernel`].
pub(super) fn index(ladders: &[Ladder], command: &str) -> Result<String, askama::Error> {
    let per = "1,000 multiply-adds of a product, or 1,000 elements of a reduction";
    let (policy, version) = (policy(STYLE, None), env!("CARGO_PKG_VERSION"));
    IndexPage { policy, style: STYLE, ladders, per, command, version }.render()
}

#[derive(Template)]
#[template(path = "glossary.html")]
struct GlossaryPage<'r> {
    policy: String,
    style: &'static str,
    terms: &'r [Term],
}

/// The page of the words.
///
/// # Errors
/// As those of [`kernel`].
pub(super) fn glossary(terms: &[Term]) -> Result<String, askama::Error> {
    GlossaryPage { policy: policy(STYLE, None), style: STYLE, terms }.render()
}

/// What a page may load: nothing but its own style, and its own script if it has one.
fn policy(style: &str, script: Option<&str>) -> String {
    let own = |kind, text: &str| format!("; {kind}-src 'sha256-{}'", base64(&Sha256::digest(text)));
    let script = script.map_or(String::new(), |script| own("script", script));
    format!("default-src 'none'{}{script}", own("style", style))
}

/// Bytes as a policy has them.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let part = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = part(0) << 16 | part(1) << 8 | part(2);
        for digit in 0..4 {
            let is_there = digit <= three.len();
            let six = (bits >> (18 - 6 * digit) & 63) as usize;
            text.push(if is_there { DIGITS[six] as char } else { '=' });
        }
    }
    text
}

fn bars(report: &Report) -> Vec<Bar> {
    let most = report.units.iter().map(|unit| unit.cycles).fold(1.0, f64::max);
    let bar = |unit: &super::units::Unit| Bar {
        name: unit.name,
        cycles: number(unit.cycles),
        percent: (100.0 * unit.cycles / most).round() as u64,
        rate: unit.rate,
    };
    report.units.iter().map(bar).collect()
}

fn lines(report: &Report) -> Vec<Line<'_>> {
    let charged = report.source.iter().filter_map(|line| line.charged);
    let all = charged.map(|charged| charged.instructions).sum::<u64>().max(1);
    let some = |count: u64| if count == 0 { String::new() } else { number(count as f64) };
    let of = |line: &'_ super::source::Line| {
        let charged = line.charged.unwrap_or_default();
        let Charged { instructions, wavefronts, conflicts, sectors, .. } = charged;
        let beyond = if conflicts > 0 { format!(" ({})", some(conflicts)) } else { String::new() };
        let share = instructions as f64 / all as f64;
        let steps = [0.01, 0.05, 0.15, 0.4];
        (
            some(instructions),
            some(wavefronts) + &beyond,
            some(sectors),
            steps.iter().filter(|step| share >= **step).count() as u32,
        )
    };
    let has_access = |number: usize| report.accesses.iter().any(|access| access.line == number);
    report
        .source
        .iter()
        .map(|line| {
            let (instructions, wavefronts, sectors, heat) = of(line);
            let (number, words) = (line.number, &line.words[..]);
            let has_access = has_access(number);
            Line { number, words, instructions, wavefronts, sectors, heat, has_access }
        })
        .collect()
}

fn groups(report: &Report) -> Vec<Group<'_>> {
    let mut by_line: BTreeMap<usize, Vec<&Access>> = BTreeMap::new();
    for access in &report.accesses {
        by_line.entry(access.line).or_default().push(access);
    }
    by_line.into_iter().map(|(line, all)| group(line, all)).collect()
}

fn group(line: usize, mut all: Vec<&Access>) -> Group<'_> {
    let excess = |access: &Access| (access.cost - access.least.min(access.cost), access.times);
    all.sort_by_key(|access| std::cmp::Reverse(excess(access)));
    // Of a copy some pictures of what it reads and some of what it writes.
    let mut drawn: Vec<&Access> = Vec::new();
    for access in &all {
        let like = |other: &&&Access| other.buffer == access.buffer && other.kind == access.kind;
        if drawn.iter().filter(like).count() < DRAWN {
            drawn.push(access);
        }
    }
    let others = all.len() - drawn.len();
    Group { line, others, drawn: drawn.into_iter().map(drawing).collect() }
}

fn drawing(access: &Access) -> Drawn<'_> {
    let is_shared = access.space == "shared";
    let columns: Vec<String> = match is_shared {
        true => (0..32).map(|bank| bank.to_string()).collect(),
        false => (0..4).map(|sector| format!("sector {sector}")).collect(),
    };
    let mut algebra = String::new();
    if let Some(strides) = &access.strides {
        algebra += &format!("Lanes are {strides} elements apart.");
    }
    if let Some(collision) = access.collision {
        let [a, b] = collision.lanes;
        let bit = collision.bit.map_or(String::new(), |bit| format!(" (bit {bit} of the lane)"));
        let words = collision.words.abs();
        algebra += &format!(" Lanes {a} and {b}{bit} are {words} words apart: the same bank.");
    }
    if let Some(cure) = access.cure {
        let (pad, wavefronts) = (cure.pad, cure.wavefronts);
        algebra +=
            &format!(" With {pad} more elements behind each row it would take {wavefronts}.");
    }
    let unit = match (is_shared, access.cost) {
        (true, 1) => "wavefront",
        (true, _) => "wavefronts",
        (false, 1) => "sector",
        (false, _) => "sectors",
    };
    Drawn {
        buffer: &access.buffer,
        space: access.space,
        kind: access.kind,
        bytes: access.bytes,
        lanes: match access.lanes {
            1 => "1 lane".to_owned(),
            lanes => format!("{lanes} lanes"),
        },
        times: match access.times {
            1 => "once".to_owned(),
            times => format!("{times} times"),
        },
        cost: access.cost,
        least: access.least,
        unit,
        algebra: algebra.trim().to_owned(),
        name: format!("{} of {}, line {}", access.kind, access.buffer, access.line),
        rows_are: if is_shared { "bank" } else { "line" },
        span: if is_shared { 1 } else { 8 },
        columns,
        lit: None,
        rows: &access.grid.rows,
    }
}

fn entry(entry: &super::ledger::Entry) -> Entry<'_> {
    let text = match &entry.without {
        Without::Counts(deltas) => {
            let text = |delta: &&Delta| {
                let (before, now) = (number(delta.before as f64), number(delta.now as f64));
                format!("{} {before} → {now}", delta.name)
            };
            let much: Vec<&Delta> = telling(deltas);
            match much.iter().map(text).collect::<Vec<_>>() {
                none if none.is_empty() => "no counter changes by more than 2 %".to_owned(),
                some => some.join(", "),
            }
        }
        Without::Unseen => {
            "no counter sees it: it changes when things happen, or where, or the machine code alone; \
             a measurement tells what it is worth"
                .to_owned()
        }
        Without::None(why) => format!("not a kernel, because {why}"),
    };
    Entry { key: &entry.key, text }
}

/// The counters that have changed by more than 2 %, those that have changed most first, and a few at most. What only repeats
/// another one is left out.
fn telling(deltas: &[Delta]) -> Vec<&Delta> {
    const MOST: usize = 5;
    const REPEAT: [&str; 3] = ["thread instructions", "sync", "blocks"];
    let factor = |delta: &Delta| {
        let (before, now) = (delta.before.max(1) as f64, delta.now.max(1) as f64);
        (now / before).ln().abs()
    };
    let all = deltas.iter().filter(|delta| !REPEAT.contains(&&*delta.name));
    let mut much: Vec<&Delta> = all.filter(|delta| factor(delta) > 1.02f64.ln()).collect();
    much.sort_by(|a, b| factor(b).total_cmp(&factor(a)));
    much.truncate(MOST);
    much
}

/// What a counter has become, as a factor.
pub(crate) fn factor(delta: &Delta) -> String {
    match delta.before {
        0 => "new".to_owned(),
        before => format!("× {:.2}", delta.now as f64 / before as f64),
    }
}

/// The class of a line of a difference.
pub(crate) fn edit_class(edit: &Edit) -> &'static str {
    match edit.sign {
        '-' => "del",
        '+' => "ins",
        _ => "same",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_written_in_base_64() {
        let text = |bytes: &[u8]| base64(bytes);
        assert_eq!(text(b""), "");
        assert_eq!([text(b"f"), text(b"fo"), text(b"foo")], ["Zg==", "Zm8=", "Zm9v"]);
        assert_eq!(base64(&[0xff; 32]).len(), 44);
    }
}
