//! Tests of the book. Its pages are valid HTML with working links, self-contained, readable in
//! every colour scheme, and reproducible.

mod browser;
mod elements;
mod explains;
mod fault;
mod front;
mod html;
mod index;
mod lanes;
mod live;
mod look;
mod palette;
mod pinned;
mod record;
mod registers;
mod report;
mod stepper;

use gemm_bench::cli::Failure;
use gemm_book::analysis;
use gemm_book::analysis::Subject;
use gemm_book::report::Report;
use gemm_book::site;
use gemm_needs::Need;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Maximum size of a page in bytes, plain and compressed by gzip.
const MOST: usize = 300_000;
const MOST_PACKED: usize = 43_008;

/// GEMM stages in the tested book. They cover each way to copy and multiply, and include all stages
/// whose page a test names. Of two stages with the same parts, the one with the cheaper report is
/// tested. All reductions are also in the tested book.
const PRODUCTS: [u32; 9] = [2, 9, 16, 22, 29, 31, 34, 36, 39];

/// True if a stage is in the tested book. `GEMM_EVERY_PAGE` includes all stages.
fn is_tested(ladder: &str, stage: u32) -> bool {
    ladder == "reduce" || is_whole() || PRODUCTS.contains(&stage)
}

/// True if the tested book has all pages.
fn is_whole() -> bool {
    std::env::var_os("GEMM_EVERY_PAGE").is_some_and(|value| !value.is_empty())
}

/// Returns the tested pages, which the first caller generates.
fn pages() -> Result<&'static BTreeMap<String, String>, Failed> {
    static PAGES: OnceLock<Result<BTreeMap<String, String>, String>> = OnceLock::new();
    let gather = |ladder, stage, subject: &Subject| match is_tested(ladder, stage) {
        true => known(ladder, stage, || analysis::report(subject)).map(Some),
        false => Ok(None),
    };
    let made =
        PAGES.get_or_init(|| site::pages_of(&gather, None).map_err(|error| error.to_string()));
    made.as_ref().map_err(Failed::from)
}

fn page(name: &str) -> Result<&'static str, Failed> {
    let page = pages()?.get(name).ok_or_else(|| format!("the book has no page {name}"))?;
    Ok(page)
}

/// Returns the tested pages and the pages of faults. The latter have no links to other pages.
fn pages_and_faults() -> Result<impl Iterator<Item = (&'static str, &'static str)>, Failed> {
    let faults = fault::pages()?.iter().map(|(name, html)| (&**name, &**html));
    Ok(pages()?.iter().map(|(name, html)| (&**name, &**html)).chain(faults))
}

/// Returns the report of a stage. The pages of all tested stages are generated first, so that their
/// reports are cached.
fn report_of(ladder: &'static str, stage: u32) -> Result<Arc<Report>, Failed> {
    if is_tested(ladder, stage) {
        pages()?;
    }
    Ok(known(ladder, stage, || site::report_of(ladder, stage))?)
}

/// Returns a cached report. Two concurrent callers may both compute it. If one waited for the
/// other, it could block a thread that the other needs.
fn known(
    ladder: &'static str,
    stage: u32,
    gather: impl FnOnce() -> Result<Report, Failure>,
) -> Result<Arc<Report>, Failure> {
    static KNOWN: Mutex<BTreeMap<(&str, u32), Arc<Report>>> = Mutex::new(BTreeMap::new());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(report) = known().get(&(ladder, stage)) {
        return Ok(Arc::clone(report));
    }
    let report = Arc::new(gather()?);
    Ok(Arc::clone(known().entry((ladder, stage)).or_insert(report)))
}

fn sizes() -> Result<(), Failed> {
    for (name, html) in pages_and_faults()? {
        if html.len() > MOST {
            return Err(format!("{name} has {} bytes, more than {MOST}", html.len()).into());
        }
    }
    Ok(())
}

/// Each page is small enough after compression by gzip. Ignored if gzip is missing.
fn packed_sizes() -> Result<Completion, Failed> {
    let mut large = Vec::new();
    for (name, html) in pages()? {
        let mut gzip = Command::new("gzip");
        gzip.args(["-9", "-n"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let Ok(mut packing) = gzip.spawn() else {
            return Ok(Completion::ignored_with("needs the program gzip"));
        };
        let mut input = packing.stdin.take().ok_or("gzip reads")?;
        let html = html.clone();
        let writing = std::thread::spawn(move || input.write_all(html.as_bytes()));
        let packed = packing.wait_with_output()?.stdout.len();
        writing.join().map_err(|_| "gzip was written to")??;
        if packed == 0 || packed > MOST_PACKED {
            large.push(format!("{name} has {packed} bytes packed, more than {MOST_PACKED}"));
        }
    }
    if large.is_empty() { Ok(Completion::Completed) } else { Err(large.join("\n").into()) }
}

/// A page that one thread generates is identical to the page that several threads generate.
fn same_bytes() -> Result<(), Failed> {
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    for (ladder, stage) in [("reduce", 1), ("sgemm", 9)] {
        let (name, html): (String, String) = one.install(|| site::page_of(ladder, stage, None))?;
        if page(&name)? != html {
            return Err(format!("{name} differs").into());
        }
    }
    // With a live page, each page has one more link.
    let (name, html) = site::page_of("sgemm", 2, Some("live.html"))?;
    let link = html.find("<a href=\"live.html").ok_or("it leads to the live page")?;
    let end = html[link..].find("</a>").ok_or("a link ends")? + link + "</a>".len();
    if page(&name)? != format!("{}{}", &html[..link], &html[end..]) {
        return Err(format!("{name} differs by more than the link").into());
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = vec![
        Trial::test("sizes", sizes),
        Trial::ignorable_test("sizes::packed", packed_sizes),
        Trial::test("same_bytes", same_bytes),
        Trial::test("record::comes_to_what_is_counted", record::comes_to_what_is_counted),
        Trial::test("report::adds_up", report::adds_up),
        Trial::test(
            "report::rounds_are_of_the_loop_along_k",
            report::rounds_are_of_the_loop_along_k,
        ),
        Trial::test("report::conflicts_of_copies_are_told", report::conflicts_of_copies_are_told),
        Trial::test("explains::valid_specs_are_explained", explains::valid_specs_are_explained),
        Trial::test("fault::says_what_is_wrong", fault::says_what_is_wrong),
        Trial::test("html::pages_are_sound", html::pages_are_sound),
        Trial::test(
            "html::sections_say_what_they_leave_out",
            html::sections_say_what_they_leave_out,
        ),
        Trial::test(
            "html::a_fault_says_whose_lines_it_counts",
            html::a_fault_says_whose_lines_it_counts,
        ),
        Trial::test("index::names_the_longest_bar", index::names_the_longest_bar),
        Trial::test("index::says_what_reports_do", index::says_what_reports_do),
        Trial::test(
            "index::no_bar_is_beyond_the_time_beside_it",
            index::no_bar_is_beyond_the_time_beside_it,
        ),
        Trial::test(
            "index::says_where_a_cache_is_taken_for_granted",
            index::says_where_a_cache_is_taken_for_granted,
        ),
        Trial::test("palette::can_be_read", palette::can_be_read),
        Trial::test("palette::reads_as_css_does", palette::reads_as_css_does),
    ];
    trials.extend(pinned::trials());
    trials.extend(browser::trials());
    trials.extend(live::trials());
    trials.extend(lanes::trials());
    trials.extend(elements::trials());
    trials.extend(front::trials());
    trials.extend(stepper::trials());
    trials.extend(registers::trials());
    let look = Need::Browser.trial("look::writes_pictures", look::writes_pictures);
    trials.push(look.with_ignored_flag(true));
    let conclusion = libtest_mimic::run(&arguments, trials);
    browser::session::end_idle();
    conclusion.exit_code()
}
