//! Rendering of reports as HTML pages.

use super::glossary::Term;
use super::ideas::Idea;
use super::report::{Counter, Report};
use super::roofline::Roofline;
use super::units::{Unit, UnitName};
use crate::ablation::{AblatedKernel, TimeComparison};
use crate::diff::{CountBasis, Delta, Edit, Hunk};
use crate::fault::{FaultReport, HighlightedAccess};
use crate::links;
use crate::ownership::Ownership;
use askama::Template;
use gemm_bench::change::number;
use gemm_bench::cli::Failure;
use gemm_draw::view;
use gemm_draw::view::{AccessView, Group, LineView, drawing};
use sha2::{Digest, Sha256};

/// Style sheet of all pages.
pub(super) const STYLE: &str = include_str!("../templates/style.css");
/// Scripts that highlight lanes, and elements of tiles, in the pictures of a kernel.
const SCRIPT: &str = include_str!("../templates/page.js");
const ELEMENTS: &str = include_str!("../templates/elements.js");
/// Script that sorts the tables of the front page and compares two of their rows.
const INDEX_SCRIPT: &str = include_str!("../templates/index.js");

#[derive(Clone, Debug)]
pub struct Link {
    pub href: String,
    /// Relation of the link: `prev`, `next` or none.
    pub rel: Option<&'static str>,
    pub text: String,
}

#[derive(Template)]
#[template(path = "kernel.html")]
struct KernelPage<'r> {
    report: &'r Report,
    /// Introduction, if the kernel is a stage.
    idea: Option<&'static Idea>,
    policy: String,
    style: &'static str,
    script: &'r str,
    links: &'r [Link],
    bars: Vec<Bar>,
    lines: Vec<LineView<'r>>,
    /// Number of the line that executes most instructions.
    costliest: Option<usize>,
    groups: Vec<Group<'r>>,
    ledger: Vec<StageEntry<'r>>,
    words: Vec<Term>,
    command: &'r str,
    version: &'static str,
}

struct Bar {
    name: UnitName,
    cycles: String,
    is_from_source: bool,
    from_source: String,
    percent: u64,
    rate: String,
}

struct StageEntry<'r> {
    key: &'r str,
    /// Registers per thread with and without the key.
    registers: String,
    text: String,
    /// For a key without an effect on counters, the parts of the page that show its effect, each as
    /// `id` and description.
    shown: Vec<(&'static str, &'static str)>,
    /// For a key without an effect on counters, the difference of the source, and the number of
    /// further lines.
    hunks: &'r [Hunk],
    more: usize,
}

/// Renders the page of a kernel. `idea` introduces a stage; `command` is the command that creates
/// the page.
///
/// # Errors
/// Returns an error only if the template fails.
pub fn kernel(
    report: &Report,
    idea: Option<&'static Idea>,
    links: &[Link],
    command: &str,
) -> Result<String, Failure> {
    let has_elements = report.owners.as_ref().is_some_and(Ownership::has_groups);
    let script = packed(SCRIPT) + &packed(if has_elements { ELEMENTS } else { "" });
    let page = |words| KernelPage {
        report,
        idea,
        policy: policy(STYLE, Some(&script)),
        style: STYLE,
        script: &script,
        links,
        bars: bars(report),
        lines: view::lines(&report.source, &report.accesses),
        costliest: view::costliest(&report.source),
        groups: view::groups(&report.accesses),
        ledger: report.ledger.iter().map(entry).collect(),
        words,
        command,
        version: env!("CARGO_PKG_VERSION"),
    };
    // The glossary section defines the terms that occur in the rest of the page.
    let (_, words) = links::linked(&rendered(&page(Vec::new()))?);
    Ok(links::linked(&rendered(&page(words))?).0)
}

#[derive(Template)]
#[template(path = "fault.html")]
struct FaultPage<'r> {
    broken: &'r FaultReport,
    drawn: Vec<AccessView<'r>>,
    policy: String,
    style: &'static str,
    command: &'r str,
    version: &'static str,
}

/// Renders the page of a fault.
///
/// # Errors
/// Returns an error only if the template fails.
pub fn broken(broken: &FaultReport, command: &str) -> Result<String, Failure> {
    fn lit(lit: &HighlightedAccess) -> AccessView<'_> {
        let lanes = lit.lanes.iter().fold(0, |lanes, lane| lanes | 1 << lane);
        AccessView { lit: lanes, ..drawing(&lit.access) }
    }
    let (policy, version) = (policy(STYLE, None), env!("CARGO_PKG_VERSION"));
    let drawn = broken.accesses.iter().map(lit).collect();
    rendered(&FaultPage { broken, drawn, policy, style: STYLE, command, version })
}

/// Row of a stage in the table of its ladder.
pub(super) struct LadderRow {
    pub(super) href: String,
    pub(super) title: String,
    /// Page and title of the base stage, to which `keys` is relative.
    pub(super) base: Option<(String, String)>,
    pub(super) keys: Vec<String>,
    pub(super) bound: String,
    /// Load of each unit of the ladder, or `None` for an idle unit.
    pub(super) cells: Vec<Option<UnitCell>>,
    pub(super) conflicts: String,
    pub(super) registers: String,
    /// Rate at the shown size, and its share of the roof.
    pub(super) measured: String,
    /// Entries of the spec as a JSON list, for the comparison of two stages.
    pub(super) entries: String,
}

/// Load of a unit, relative to the busiest one.
pub(super) struct UnitCell {
    pub(super) cycles: String,
    /// Load in percent of the busiest unit's load.
    pub(super) percent: u64,
    /// True if an element that several threads of a block read is counted once.
    pub(super) is_once: bool,
}

/// Table of all stages of a ladder, with their roofline.
pub(super) struct Ladder {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// Units that at least one stage uses.
    pub(super) units: Vec<UnitName>,
    pub(super) stages: Vec<LadderRow>,
    /// Roofline of the measured stages.
    pub(super) roofline: Option<Roofline>,
}

impl Ladder {
    /// Returns true if a row counts shared reads once.
    pub(super) fn has_once(&self) -> bool {
        self.stages.iter().flat_map(|row| row.cells.iter().flatten()).any(|cell| cell.is_once)
    }
}

#[derive(Template)]
#[template(path = "index.html")]
struct IndexPage<'r> {
    policy: String,
    style: &'static str,
    script: &'static str,
    ladders: &'r [Ladder],
    per: &'static str,
    /// File name of the live page, if it was built.
    live: Option<&'r str>,
    command: &'r str,
    version: &'static str,
}

/// Renders the front page with links to all others.
///
/// # Errors
/// Returns an error only if the template fails.
pub(super) fn index(
    ladders: &[Ladder],
    live: Option<&str>,
    command: &str,
) -> Result<String, Failure> {
    let per = "1,000 multiply-adds of a GEMM, or 1,000 elements of a reduction";
    let (policy, version) = (policy(STYLE, Some(INDEX_SCRIPT)), env!("CARGO_PKG_VERSION"));
    let (style, script) = (STYLE, INDEX_SCRIPT);
    rendered(&IndexPage { policy, style, script, ladders, per, live, command, version })
}

#[derive(Template)]
#[template(path = "glossary.html")]
struct GlossaryPage<'r> {
    policy: String,
    style: &'static str,
    terms: &'r [Term],
}

/// Renders the glossary.
///
/// # Errors
/// Returns an error only if the template fails.
pub(super) fn glossary(terms: &[Term]) -> Result<String, Failure> {
    rendered(&GlossaryPage { policy: policy(STYLE, None), style: STYLE, terms })
}

/// Renders a template.
///
/// # Errors
/// Returns [`Failure::Page`] if the template fails.
pub(super) fn rendered(page: &impl Template) -> Result<String, Failure> {
    page.render().map_err(|error| Failure::Page(error.into()))
}

/// Removes indentation, empty lines and comment lines from a script.
fn packed(script: &str) -> String {
    let lines = script.lines().map(str::trim_start);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Content security policy: a page may use only its own style and its own script.
pub(super) fn policy(style: &str, script: Option<&str>) -> String {
    let own = |kind, text: &str| format!("; {kind}-src 'sha256-{}'", base64(&Sha256::digest(text)));
    let script = script.map_or(String::new(), |script| own("script", script));
    format!("default-src 'none'{}{script}", own("style", style))
}

/// Encodes bytes in base64, with padding.
pub(super) fn base64(bytes: &[u8]) -> String {
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
    let bar = |unit: &Unit| Bar {
        name: unit.name,
        cycles: number(unit.cycles),
        is_from_source: unit.is_from_source,
        from_source: number(unit.from_source),
        percent: (100.0 * unit.cycles / most).round() as u64,
        rate: unit.rate.clone(),
    };
    report.units.iter().map(bar).collect()
}

/// Description of a part of the page that shows the effect of a key if no counter does.
fn shown(part: &'static str) -> (&'static str, &'static str) {
    let what = match part {
        "order" => "see the order of tiles",
        "pipeline" => "see the warp timeline",
        _ => "see the memory accesses",
    };
    (part, what)
}

fn entry(entry: &crate::ablation::AblationEntry) -> StageEntry<'_> {
    let (mut shown_at, mut hunks, mut more) = (Vec::new(), &[][..], 0);
    let mut text = match &entry.without {
        AblatedKernel::Counts(deltas) => counts(deltas),
        AblatedKernel::Unseen(unseen) => {
            shown_at.extend(unseen.views.iter().map(|part| shown(part)));
            (hunks, more) = (&unseen.text, unseen.more);
            "no counter shows an effect".to_owned()
        }
        AblatedKernel::Same => "same kernel except for its name".to_owned(),
        AblatedKernel::Refused(why) => format!("not launched: {why}"),
        AblatedKernel::None(why) => format!("not a kernel: {why}"),
    };
    if let Some(TimeComparison { n, milliseconds: [with, without], before }) = entry.measured {
        text += &format!("; measured at {n}: {:.3} times the time", without / with);
        text += &before
            .map_or(String::new(), |commit| format!(" (with kernels older than commit {commit})"));
    }
    let registers = entry.registers;
    let registers =
        registers.map_or("–".to_owned(), |[with, without]| format!("{with} → {without}"));
    StageEntry { key: &entry.key, registers, text, shown: shown_at, hunks, more }
}

/// Describes changed counters: first those of the compiled kernel, then those of the source without
/// a compiled counterpart. If none of them changed, describes other source counts.
fn counts(deltas: &[Delta]) -> String {
    const MOST: usize = 5;
    let written = |by: &[CountBasis]| {
        let of_kind: Vec<&Delta> = telling(deltas).filter(|delta| by.contains(&delta.by)).collect();
        let texts = of_kind.iter().take(MOST).map(|delta| {
            let (before, now) = (number(delta.before as f64), number(delta.now as f64));
            format!("{} {before} → {now}", delta.name)
        });
        texts.collect::<Vec<_>>().join(", ")
    };
    let (compiled, alone) = (written(&[CountBasis::Compiled]), written(&[CountBasis::TextAlone]));
    match (compiled.is_empty(), alone.is_empty()) {
        (false, true) => format!("as compiled {compiled}"),
        (false, false) => format!("as compiled {compiled}; from source {alone}"),
        (true, false) => format!("no change above 2 % as compiled; from source {alone}"),
        (true, true) => match written(&[CountBasis::Text]) {
            none if none.is_empty() => "no counter changes by more than 2 %".to_owned(),
            some => format!("no change above 2 % as compiled; from source {some}"),
        },
    }
}

/// Counters that changed by more than 2 %, largest change first. Counters that repeat others are
/// left out.
fn telling(deltas: &[Delta]) -> impl Iterator<Item = &Delta> {
    const REPEAT: [Counter; 3] = [Counter::ThreadInstructions, Counter::Sync, Counter::Blocks];
    let factor = |delta: &Delta| {
        let (before, now) = (delta.before.max(1) as f64, delta.now.max(1) as f64);
        (now / before).ln().abs()
    };
    let repeats = |delta: &Delta| {
        REPEAT.iter().any(|other| delta.is(*other)) || delta.is_compiled("thread_ffma")
    };
    let all = deltas.iter().filter(|delta| !repeats(delta));
    let mut much: Vec<&Delta> = all.filter(|delta| factor(delta) > 1.02f64.ln()).collect();
    much.sort_by(|a, b| factor(b).total_cmp(&factor(a)));
    much.into_iter()
}

/// Returns true if a tile of C is drawn.
pub(crate) fn draws_c(owners: &Ownership) -> bool {
    owners.tiles.iter().any(|tile| tile.name == "C")
}

/// Returns true if a drawn tile is copied by boxes.
pub(crate) fn draws_boxes(owners: &Ownership) -> bool {
    owners.tiles.iter().any(|tile| tile.role.is_some())
}

/// Returns true if only C is drawn, because threads move neither A nor B.
pub(crate) fn draws_c_alone(owners: &Ownership) -> bool {
    draws_c(owners) && owners.tiles.len() == 1
}

/// Formats the change of a counter as a factor.
pub(crate) fn factor(delta: &Delta) -> String {
    match delta.before {
        0 => "new".to_owned(),
        before => {
            let factor = delta.now as f64 / before as f64;
            // Two significant digits, unless the factor is 0.
            let digits =
                if factor > 0.0 { (1 - factor.log10().floor() as i32).clamp(2, 9) } else { 0 };
            format!("× {factor:.*}", digits as usize)
        }
    }
}

/// CSS class of a line of a difference.
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
    fn no_factor_is_written_as_nothing_unless_it_is() {
        let factor =
            |before, now| factor(&Delta { name: String::new(), by: CountBasis::Text, before, now });
        assert_eq!(factor(100, 250), "× 2.50");
        assert_eq!(factor(100_000, 123), "× 0.0012");
        assert_eq!(factor(1_000, 0), "× 0");
        assert_eq!(factor(0, 3), "new");
    }

    /// No line of a script starts inside a template literal. There, removing indentation would
    /// change the script.
    #[test]
    fn a_script_is_packed_and_means_the_same() {
        assert_eq!(packed("// a\nb();\n\n  if (c) // d\n    e();\n"), "b();\nif (c) // d\ne();\n");
        for script in [SCRIPT, ELEMENTS] {
            assert!(packed(script).len() < script.len());
            assert!(script.lines().all(|line| line.matches('`').count() % 2 == 0));
        }
    }

    #[test]
    fn hashes_are_written_in_base_64() {
        let text = |bytes: &[u8]| base64(bytes);
        assert_eq!(text(b""), "");
        assert_eq!([text(b"f"), text(b"fo"), text(b"foo")], ["Zg==", "Zm8=", "Zm9v"]);
        assert_eq!(base64(&[0xff; 32]).len(), 44);
    }
}
