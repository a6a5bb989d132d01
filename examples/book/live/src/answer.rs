use crate::subject::{Family, Subject};
use askama::Template;
use gemm_draw::counters::{CounterValue, counted};
use gemm_draw::metrics::Metric;
use gemm_draw::occupancy;
use gemm_draw::occupancy::Occupancy;
use gemm_draw::view;
use gemm_draw::view::{Group, LineView};
use gemm_draw::{access, metrics, source, suggestion};
use gemm_dsl::error::Excerpt;
use gemm_dsl::plan::Decision;
use gemm_dsl::{SpecError, SpecErrors, cuda, parse};
use serde::Serialize;

/// Answer to a spec, as shown by the page.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Ranges of the faults that have a position, in UTF-16 code units as used by scripts.
    pub marks: Vec<[usize; 2]>,
    /// Message about the spec as HTML: a sentence, or the faults.
    pub said: String,
    /// Report of the simulated launch as HTML. Empty if nothing was launched.
    pub seen: String,
}

#[derive(Clone, Debug)]
struct Fault<'e> {
    message: &'e str,
    place: Option<Place>,
}

/// Line of the spec around the faulty token.
#[derive(Clone, Debug)]
struct Place {
    before: String,
    token: String,
    after: String,
}

#[derive(Template)]
#[template(path = "said.html")]
struct Said<'e> {
    sentence: &'e str,
    faults: &'e [Fault<'e>],
}

#[derive(Template)]
#[template(path = "report.html")]
struct RunView<'r> {
    kernel: &'r str,
    variant: String,
    threads: u32,
    shared_bytes: u64,
    shape: &'r str,
    grid: [u32; 3],
    launches: usize,
    residents: &'r [Occupancy],
    counters: &'r [CounterValue],
    /// Predicted counts. Empty if the model cannot predict the compiled kernel.
    compiled: &'r [Metric],
    lines: Vec<LineView<'r>>,
    groups: Vec<Group<'r>>,
    decisions: &'r [Decision],
}

/// Compiles and simulates a spec. If the text is a macro call, the macro determines the family.
pub fn answer(family: Family, text: &str) -> Report {
    let call = parse::call(text).and_then(|(name, line)| Some((Family::of_macro(name)?, line)));
    let (family, line) = call.unwrap_or((family, text));
    // `line` is a slice of `text`.
    let before = &text[..line.as_ptr().addr() - text.as_ptr().addr()];
    match Subject::parse(family, line) {
        Err(faults) => faulty(&faults, before, line),
        Ok(subject) => seen(&subject)
            .unwrap_or_else(|why| Report { said: said(&why, &[]), ..Report::default() }),
    }
}

/// Report for an unknown macro.
pub fn unknown(name: &str) -> Report {
    let said = said(&format!("Unknown macro `{name}!`."), &[]);
    Report { said, ..Report::default() }
}

fn said(sentence: &str, faults: &[Fault<'_>]) -> String {
    // Rendering to memory fails only if the template is faulty. The error is shown instead.
    Said { sentence, faults }.render().unwrap_or_else(|error| error.to_string())
}

fn faulty(errors: &SpecErrors, before: &str, line: &str) -> Report {
    let faults: Vec<Fault<'_>> = errors.iter().map(fault).collect();
    let sentence = match faults.len() {
        1 => "Not a kernel:".to_owned(),
        several => format!("Not a kernel, for {several} reasons:"),
    };
    let units = |text: &str| text.encode_utf16().count();
    let mark = |excerpt: &Excerpt| {
        let [start, end] = place(line, excerpt).map(|at| units(before) + units(&line[..at]));
        [start, end]
    };
    let marks = errors.iter().filter_map(SpecError::excerpt).map(mark).collect();
    Report { marks, said: said(&sentence, &faults), ..Report::default() }
}

fn fault(error: &SpecError) -> Fault<'_> {
    let place = error.excerpt().map(|excerpt| {
        let part =
            |from: usize, count: usize| excerpt.text.chars().skip(from).take(count).collect();
        let Excerpt { indent, width, .. } = *excerpt;
        let after = indent + width;
        Place {
            before: part(0, indent),
            token: part(indent, width),
            after: part(after, usize::MAX),
        }
    });
    Fault { message: error.message(), place }
}

/// Byte range of an excerpt's token in the text.
fn place(text: &str, excerpt: &Excerpt) -> [usize; 2] {
    let mut lines = text.split_inclusive('\n');
    let start: usize = lines.by_ref().take(excerpt.line - 1).map(str::len).sum();
    let line = lines.next().unwrap_or_default();
    let at = |column: usize| {
        let byte = line.char_indices().nth(column).map_or(line.len(), |(byte, _)| byte);
        start + byte
    };
    [at(excerpt.column - 1), at(excerpt.column - 1 + excerpt.width)]
}

/// Launches the program and renders the report. The error is the reason why the program cannot be
/// launched.
fn seen(subject: &Subject) -> Result<Report, String> {
    let program = subject.program().map_err(|faults| faults.to_string())?;
    let decisions = subject.decisions();
    let problem = subject.problem(&program)?;
    let ran = subject.launch(&program, &problem).map_err(|failure| failure.to_string())?;
    let kernel = &ran.kernel;
    let listing = cuda::listing(kernel);
    let lines = source::lines(kernel, &listing.text, &listing.lines, Some(&ran.profile));
    let accesses = access::all(kernel, &listing.lines, &ran.trace);
    let accesses = suggestion::kept(subject.product(), accesses);
    let counters = counted(&ran.profile.total);
    let compiled = ran.profile.compiled.as_ref();
    let compiled = compiled.map(|counts| metrics::predicted(counts, |_| None)).unwrap_or_default();
    let residents = occupancy::all(kernel, &subject.registers(kernel.variant));
    let page = RunView {
        kernel: &kernel.name,
        variant: kernel.variant.to_string(),
        threads: kernel.geometry.threads(),
        shared_bytes: kernel.shared_bytes(),
        shape: &problem.words,
        grid: ran.grid,
        launches: ran.launches,
        residents: &residents,
        counters: &counters,
        compiled: &compiled,
        lines: view::lines(&lines, &accesses),
        groups: view::groups(&accesses),
        decisions: &decisions,
    };
    let seen = page.render().map_err(|error| error.to_string())?;
    let conflicts = ran.profile.total.shared_bank_conflicts;
    let sentence = format!("A kernel, {}: {conflicts} bank conflicts from source.", kernel.name);
    Ok(Report { marks: Vec::new(), said: said(&sentence, &[]), seen })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Padding is suggested only if it reduces conflicts and the padded arrays fit in shared
    /// memory.
    #[test]
    fn no_padding_is_advised_that_the_plan_refuses() {
        let advised = |line: &str| answer(Family::Sgemm, line).seen.contains(" of padding per row");
        let plans = |line: &str| line.parse::<gemm_dsl::plan::SgemmPlan>().is_ok();
        let full = "tile: 256x192x128, thread: 16x12, float4";
        assert!(plans(full) && !plans(&format!("{full}, pad_a: 4")));
        assert!(!advised(full));
        assert!(advised("tile: 64x64x16, thread: 4x4, float4, transpose"));
    }
}
