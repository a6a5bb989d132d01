//! The results of the live page in a browser agree with those of the same function called here.

mod browser;

use crate::browser::{asking_axe, found_by_axe, open, without_policy};
use crate::html::{decoded, hash, parse, places, within};
use crate::report_of;
use browser::{Server, attribute, shown, shown_when};
use gemm_book::live::{FILE, address, module, page};
use gemm_book::site;
use gemm_dsl::Plan as _;
use gemm_dsl::stages;
use gemm_live::subject::Family;
use gemm_live::{answer, unknown};
use gemm_needs::Need;
use gemm_tests::arbitrary::{self, sample};
use libtest_mimic::{Failed, Trial};
use rayon::prelude::*;
use std::sync::OnceLock;
use std::time::Duration;

/// Maximum size of the page in bytes.
const MOST: usize = 1_350_000;

/// Random specs of a family.
const RANDOM: usize = 100;

pub fn trials() -> Vec<Trial> {
    const BOTH: [Need; 2] = [Need::Wasm, Need::Browser];
    vec![
        Trial::test("live::faults_are_at_their_tokens", faults),
        Trial::test("live::launches_all_valid_specs", launches),
        Trial::test("live::counts_as_the_book_does", counts),
        Need::Wasm.trial("live::is_sound_and_alone", sound),
        Need::trial_of(BOTH, "live::answers_as_it_does_here", answers),
        Need::trial_of(BOTH, "live::underlines_what_is_wrong", underlines),
        Need::trial_of(BOTH, "live::underlines_a_token_once", underlines_once),
        Need::trial_of(BOTH, "live::says_that_the_module_has_stopped", stopped),
        Need::trial_of(BOTH, "live::makes_one_request", one_request),
        Need::trial_of(BOTH, "live::fits_a_phone", phone),
        Need::trial_of(BOTH, "live::shows_the_line_of_a_stage", led_to),
        Need::trial_of([Need::Wasm, Need::Axe], "live::is_accessible", accessible),
    ]
}

/// Returns the page, which the first caller builds.
fn live() -> Result<&'static str, Failed> {
    static PAGE: OnceLock<Result<String, String>> = OnceLock::new();
    let made = PAGE.get_or_init(|| {
        let module = module().map_err(|missing| missing.to_string())?;
        page(&module, "a test").map_err(|error| error.to_string())
    });
    made.as_deref().map_err(Failed::from)
}

fn fastest() -> String {
    let stages = stages::sgemm();
    stages
        .iter()
        .find(|stage| stage.name == "fastest")
        .map_or(String::new(), |s| s.spec.to_string())
}

/// Faults are marked at their tokens, with any text before them. Positions are in UTF-16 code
/// units, as in scripts.
fn faults() -> Result<(), Failed> {
    for text in [
        "thread: 8x8, flaot4",
        "\n  thread: 8x8,\n /* 𝄞 */ flaot4",
        "sgemm_kernel!(/* é */ thread: 8x8,\nflaot4)",
        "reduce_kernel! { op: sum, flaot4 }",
    ] {
        let report = answer(Family::Sgemm, text);
        let units: Vec<u16> = text.encode_utf16().collect();
        let marked =
            report.marks.iter().map(|[from, to]| String::from_utf16_lossy(&units[*from..*to]));
        let marked: Vec<String> = marked.collect();
        if marked != ["flaot4"] || !report.said.contains("did you mean `float4`") {
            return Err(format!("{text}: {marked:?}, {}", report.said).into());
        }
        if !report.said.contains("<em>flaot4</em>") || !report.seen.is_empty() {
            return Err(format!("{text}: {}", report.said).into());
        }
    }
    let report = unknown("<none>");
    if !report.said.contains("Unknown macro") || report.said.contains("<none>") {
        return Err(report.said.into());
    }
    Ok(())
}

/// Every stage and nearly every random spec are launched. A spec whose block is too large is not.
fn launches() -> Result<(), Failed> {
    let stages = stages::sgemm().into_iter().map(|stage| stage.spec);
    let random = sample(arbitrary::sgemm(128), gemm_cases::scaled(RANDOM));
    let on_tensor_cores = sample(arbitrary::on_tensor_cores(128), gemm_cases::scaled(RANDOM / 4));
    let products = stages.chain(random).chain(on_tensor_cores);
    let products = products.map(|spec| (Family::Sgemm, spec.to_string()));
    let stages = stages::reduce().into_iter().map(|stage| stage.spec);
    let reductions = stages.chain(sample(arbitrary::reduce(), gemm_cases::scaled(RANDOM)));
    let reductions = reductions.map(|spec| (Family::Reduce, spec.to_string()));
    let all: Vec<(Family, String)> = products.chain(reductions).collect();
    let is_launched = |(family, line): &(Family, String)| {
        let report = answer(*family, line);
        match report.said.contains("A kernel, ") && report.seen.contains("id=\"L1\"") {
            false if !report.said.contains("too large") => Err(format!("{line}: {}", report.said)),
            is_launched => Ok(is_launched),
        }
    };
    let launched: Result<Vec<bool>, String> = all.par_iter().map(is_launched).collect();
    let launched = launched?;
    let first = all.iter().zip(&launched).take(stages::sgemm().len());
    if let Some(((_, line), _)) = first.clone().find(|(_, is_launched)| !**is_launched) {
        return Err(format!("the stage {line} is too large").into());
    }
    let large = launched.into_iter().filter(|is_launched| !is_launched).count();
    if large > all.len() / 20 {
        return Err(format!("{large} of {} are too large", all.len()).into());
    }
    let large = answer(Family::Reduce, "block: 1024, items: 65536");
    if !large.said.contains("too large to simulate") || !large.seen.is_empty() {
        return Err(large.said.into());
    }
    Ok(())
}

/// A launch without a device has the same counts as a launch by the runtime.
fn counts() -> Result<(), Failed> {
    for (family, ladder, stage) in
        [(Family::Sgemm, "sgemm", 16), (Family::Sgemm, "sgemm", 2), (Family::Reduce, "reduce", 7)]
    {
        let report = report_of(ladder, stage)?;
        let text = report.counters.iter().map(|of| format!("{} {}", of.name, of.value));
        let compiled = report.compiled.iter().map(|of| format!("{} {}", of.name, of.value));
        let found = counters(&answer(family, &report.line).seen);
        if compiled.len() < 8 || found != text.chain(compiled).collect::<Vec<_>>() {
            return Err(format!("{}: {found:?}", report.line).into());
        }
    }
    Ok(())
}

/// The page is valid HTML. Its policy contains the hashes of its style and its script and allows
/// nothing else.
fn sound() -> Result<(), Failed> {
    let html = live()?;
    if html.len() > MOST {
        return Err(format!("{} bytes, more than {MOST}", html.len()).into());
    }
    let report = answer(Family::Sgemm, &fastest());
    // The same holds for the page with a report.
    let answered = html.replace("<div id=\"seen\">", &format!("<div id=\"seen\">{}", report.seen));
    for html in [html, &answered] {
        let dom = parse(html);
        if let Some(error) = dom.errors.borrow().first() {
            return Err(format!("{error}").into());
        }
        let (ids, links) = places(&dom)?;
        let of_no_place = |link: &&String| {
            link.strip_prefix('#').is_some_and(|id| !ids.contains(id) && !id.starts_with("family="))
        };
        if let Some(link) = links.iter().find(of_no_place) {
            return Err(format!("{link} does not exist").into());
        }
    }
    let policy =
        html.split_once("Content-Security-Policy").and_then(|(_, rest)| attribute(rest, "content"));
    let policy = policy.ok_or("no policy")?.replace("&#39;", "'");
    let parts: Vec<&str> = policy.split("'sha256-").collect();
    let [first, style, script] = &parts[..] else { return Err(policy.into()) };
    let [style, script] = [style, script].map(|part| part.split_once('\'').unwrap_or((part, "")));
    let rest = [*first, style.1, script.1];
    if rest != ["default-src 'none'; style-src ", "; script-src ", " 'wasm-unsafe-eval'"] {
        return Err(policy.into());
    }
    let hashes = ["style", "script"].map(|kind| within(html, kind).map_or(String::new(), hash));
    if [style.0, script.0].map(decoded) != hashes {
        return Err(format!("{policy} does not have the hashes of its style and its script").into());
    }
    Ok(())
}

/// The page with a report is no wider than a phone. The tested copy has no policy and one
/// additional script.
fn phone() -> Result<(), Failed> {
    const ASKS: &str = "<script>new MutationObserver(() => {document.body.dataset.wide = \
                        document.documentElement.scrollWidth;}).observe(document.body, { \
                        attributeFilter: [\"data-state\"] });</script></body>";
    let asking = without_policy(live()?)?.replace("</body>", ASKS);
    let address = address("sgemm_kernel", &fastest());
    let shown = shown(&asking, &address, &["--window-size=390,800"])?;
    let wide: u32 = attribute(&shown, "data-wide").ok_or("the script has not run")?.parse()?;
    if wide > 390 {
        return Err(format!("{wide} pixels wide on a phone of 390").into());
    }
    Ok(())
}

/// Every report on the page has the numbers that the same function returns here. The duration that
/// the page shows is not tested.
fn answers() -> Result<(), Failed> {
    let steps = stages::reduce();
    let interleaved = steps.iter().find(|stage| stage.name == "interleaved").ok_or("a stage")?;
    let asked = [
        (Family::Sgemm, fastest()),
        (Family::Reduce, interleaved.spec.to_string()),
        (
            Family::Sgemm,
            "tile: 64x64x16, thread: 4x4, epilogue: |acc, bias[n]| acc + bias".to_owned(),
        ),
    ];
    for (family, line) in asked {
        let shown = shown(live()?, &address(family.macro_name(), &line), &[])?;
        let ms: u64 = attribute(&shown, "data-ms").ok_or("no answer")?.parse()?;
        println!("{line}: {ms} ms");
        let expected = counters(&answer(family, &line).seen);
        let found = counters(&shown);
        if found.len() < 8 || found != expected {
            return Err(format!("{line}: {found:?} instead of {expected:?}").into());
        }
    }
    Ok(())
}

/// A token with two faults is underlined once, and the typed text is repeated only once behind the
/// input.
fn underlines_once() -> Result<(), Failed> {
    let line = "tile: 24x30x10, thread: 2x2, float4";
    let marks = answer(Family::Sgemm, line).marks;
    if marks.len() != 2 || marks[0] != marks[1] {
        return Err(format!("{marks:?} are not two faults of one token").into());
    }
    let shown = shown(live()?, &address("sgemm_kernel", line), &[])?;
    let marked = shown.split_once("id=\"marked\"").and_then(|(_, rest)| rest.split_once("</pre>"));
    let marked = marked.and_then(|(marked, _)| marked.split_once('>')).ok_or("no text")?.1;
    if marked != "tile: <mark>24x30x10</mark>, thread: 2x2, float4 " {
        return Err(format!("the text behind the input is {marked}").into());
    }
    Ok(())
}

fn underlines() -> Result<(), Failed> {
    let shown = shown(live()?, &address("sgemm_kernel", "thread: 8x8, flaot4"), &[])?;
    for part in ["<mark>flaot4</mark>", "did you mean `float4`?", "data-state=\"done\""] {
        if !shown.contains(part) {
            return Err(format!("{part} is missing").into());
        }
    }
    Ok(())
}

/// If the module's `run` traps, the page says so and stays usable.
fn stopped() -> Result<(), Failed> {
    const TRAPS: &[u8] = b"\0asm\x01\0\0\0\
        \x01\x0d\x03\x60\x01\x7f\x01\x7f\x60\0\0\x60\0\x01\x7f\
        \x03\x05\x04\0\x01\x02\x02\
        \x05\x03\x01\0\x01\
        \x07\x29\x05\x06memory\x02\0\x04room\0\0\x03run\0\x01\x06result\0\x02\x06length\0\x03\
        \x0a\x14\x04\x04\0\x41\0\x0b\x03\0\0\x0b\x04\0\x41\0\x0b\x04\0\x41\0\x0b";
    let shown = shown(&page(TRAPS, "a test")?, &address("sgemm_kernel", "float4"), &[])?;
    if attribute(&shown, "data-state") != Some("failed") || !shown.contains("The module stopped.") {
        return Err("it does not say that the module has stopped".into());
    }
    Ok(())
}

/// Pages of stages link to the live page, each with its own spec.
fn led_to() -> Result<(), Failed> {
    let stage = stages::sgemm().swap_remove(1);
    let (_, html) = site::page_of("sgemm", stage.index as u32, Some(FILE))?;
    let href = html.split_once(&format!("href=\"{FILE}")).ok_or("no link leads to it")?.1;
    let (address, _) = href.split_once('"').ok_or("a link ends")?;
    let shown = shown(live()?, &address.replace("&#38;", "&"), &[])?;
    let title = stage.spec.plan()?.program()?.kernels()[0].name.clone();
    if attribute(&shown, "data-state") != Some("done") || !shown.contains(&title) {
        return Err(format!("{address} does not show {title}").into());
    }
    Ok(())
}

/// axe-core finds no problem in a report, in both colour schemes.
fn accessible() -> Result<(), Failed> {
    let asking = without_policy(live()?)?
        .replace("</body>", &asking_axe("document.body.dataset.state === 'done'")?);
    for scheme in ["0", "1"] {
        let scheme = format!("--blink-settings=preferredColorScheme={scheme}");
        let address = address("sgemm_kernel", "tile: 32x32x8, thread: 4x4, float4");
        let is_over = |shown: &str| found_by_axe(shown).is_some();
        let shown = shown_when(&asking, &address, &[&scheme], &is_over)?;
        match found_by_axe(&shown) {
            Some(".") => {}
            found => return Err(format!("{scheme}: {found:?}").into()),
        }
    }
    Ok(())
}

/// The page makes no further requests.
fn one_request() -> Result<(), Failed> {
    let server = Server::new(live()?, Duration::ZERO)?;
    let output = open(&format!("{}/{FILE}", server.address), &["--dump-dom"])?;
    if !String::from_utf8_lossy(&output.stdout).contains("</main>") {
        return Err("the page is not displayed".into());
    }
    let requests = server.requests();
    if requests != [format!("/{FILE}")] {
        return Err(format!("{requests:?}").into());
    }
    Ok(())
}

/// Rows of the two counter tables of a page: from source and as compiled.
fn counters(html: &str) -> Vec<String> {
    let table = |id: &str| {
        let (_, rest) = html.split_once(&format!("id=\"{id}\""))?;
        Some(rest.split_once("</section>")?.0)
    };
    let cells = |row: &str| {
        let (name, rest) =
            row.split_once("scope=\"row\"")?.1.split_once("</th><td class=\"n\">")?;
        let (_, name) = name.split_once('>')?;
        Some(format!("{name} {}", rest.split_once('<')?.0))
    };
    let tables = ["counters", "compiled"].into_iter().filter_map(table);
    tables.flat_map(|table| table.split("<tr>").skip(1)).filter_map(cells).collect()
}
