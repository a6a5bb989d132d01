//! Pages in a real headless browser.

pub mod session;

use crate::look::KINDS;
use crate::{fault, is_whole, pages_and_faults};
use gemm_needs::{BROWSER, Need};
use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use session::Session;
use std::fs;
use std::process::{Command, Output};

pub fn trials() -> Vec<Trial> {
    vec![
        Need::Browser.trial("browser::pages_are_shown_on_a_phone_and_on_paper", shown),
        Need::Browser.trial("browser::the_front_page_fits_a_screen", screen),
        Need::Axe.trial("browser::pages_are_accessible", accessible),
    ]
}

/// Output of the browser for a page. `address` is appended to the file name, for example `#lane=3`.
pub fn browse(name: &str, html: &str, address: &str, arguments: &[&str]) -> Result<Output, Failed> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join(name);
    fs::write(&path, html)?;
    open(&format!("file://{}{address}", path.display()), arguments)
}

/// Output of the browser for a URL.
pub fn open(url: &str, arguments: &[&str]) -> Result<Output, Failed> {
    let fixed = ["--no-sandbox", "--disable-gpu", "--enable-logging=stderr"];
    let output = Command::new(BROWSER).args(fixed).args(arguments).arg(url).output()?;
    if !output.status.success() {
        return Err(format!("{BROWSER}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(output)
}

/// Opens each tested page of the book, and each page of a fault, in one browser, and checks the
/// page.
fn each(
    session: &mut Session,
    mut check: impl FnMut(&mut Session, &str) -> Result<(), Failed>,
) -> Result<(), Failed> {
    for (name, html) in pages_and_faults()? {
        session.open(name, html, "")?;
        check(session, name)
            .map_err(|wrong| format!("{name}: {}", wrong.message().unwrap_or_default()))?;
    }
    Ok(())
}

/// Returns an error that lists the found items, unless there are none.
fn none(found: &Value) -> Result<(), Failed> {
    match found.as_array() {
        Some(found) if found.is_empty() => Ok(()),
        _ => Err(found.to_string().into()),
    }
}

/// Every page is displayed, logs nothing to the browser's console, and fits a phone and paper.
fn shown() -> Result<(), Failed> {
    each(&mut Session::start()?, |session, _| {
        if session.value("document.querySelectorAll('main').length")? != 1 {
            return Err("the page is not displayed".into());
        }
        phone(session)?;
        print(session)?;
        session.medium("screen", "light")?;
        match session.complaints() {
            [] => Ok(()),
            said => Err(said.join("\n").into()),
        }
    })
}

/// Copy of a page without its content security policy, so that other scripts may run.
pub fn without_policy(html: &str) -> Result<String, Failed> {
    let (head, rest) = html.split_once("<meta http-equiv").ok_or("a page has a policy")?;
    let (_, rest) = rest.split_once('>').ok_or("a page has a policy")?;
    Ok(format!("{head}{rest}"))
}

/// No page is wider than a phone. Wide content scrolls in its own box, which is reachable by
/// keyboard.
fn phone(session: &mut Session) -> Result<(), Failed> {
    const ASKS: &str = "[...document.querySelectorAll('body *')].filter((e) => {
        if (e.getBoundingClientRect().right <= innerWidth + 1) return false;
        const box = e.parentElement.closest('.wide');
        return !box || getComputedStyle(box).overflowX !== 'auto' || box.tabIndex < 0;
    }).map((e) => e.outerHTML.slice(0, 80))";
    session.size(390, 800)?;
    let wide = session.value("document.documentElement.scrollWidth")?;
    if wide != 390 {
        return Err(format!("{wide} pixels wide on a phone of 390").into());
    }
    none(&session.value(ASKS)?)
}

/// Width of an A4 sheet within its margins, in CSS pixels.
const SHEET: u32 = 718;

/// Printed pages are not cut off. Every box is as wide as its content and fits the sheet. No words
/// are broken, except names in programs.
fn print(session: &mut Session) -> Result<(), Failed> {
    const CUT: &str = "[...document.querySelectorAll('.wide, .wide > *')].filter((e) =>
        e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && !e.closest('svg') ||
        e.getBoundingClientRect().right > document.documentElement.clientWidth + 1
    ).map((e) => {
        const name = e.parentElement.getAttribute('aria-labelledby');
        return `${e.className} ${e.scrollWidth} ${name}`;
    })";
    const BROKEN: &str = "{
        const broken = [];
        const range = document.createRange();
        for (const cell of document.querySelectorAll('th, td:not(.t)')) {
            const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
            for (let text = texts.nextNode(); text; text = texts.nextNode()) {
                if (text.parentElement.closest('code')) continue;
                for (const word of text.data.matchAll(/[a-z]{2,}/gi)) {
                    range.setStart(text, word.index);
                    range.setEnd(text, word.index + word[0].length);
                    const tops = [...range.getClientRects()].map((box) => Math.round(box.top));
                    if (new Set(tops).size > 1) broken.push(word[0]);
                }
            }
        }
        broken.slice(0, 10);
    }";
    session.size(SHEET, 1000)?;
    session.medium("print", "light")?;
    none(&session.value(CUT)?)?;
    none(&session.value(BROKEN)?)
}

/// The tables of the front page need no scrolling at 1280 × 800 pixels.
fn screen() -> Result<(), Failed> {
    const ASKS: &str = "[...document.querySelectorAll('.wide:has(> .ladder)')].map((e) => \
                        e.scrollWidth - e.clientWidth)";
    let mut session = Session::start()?;
    session.size(1280, 800)?;
    session.open("index.html", crate::page("index.html")?, "")?;
    let beyond = session.value(ASKS)?;
    if beyond == serde_json::json!([0, 0]) {
        Ok(())
    } else {
        Err(format!("the tables go beyond the screen by {beyond} pixels").into())
    }
}

/// JavaScript that formats the violations found by axe-core.
const FOUND: &str = ".then((found) => found.violations.map((v) => `${v.id}: ${v.nodes.length}, \
                     first ${v.nodes[0].target}`))";

fn axe() -> Result<String, Failed> {
    Ok(fs::read_to_string(gemm_needs::axe().ok_or("axe-core is there")?)?)
}

/// Pages on which the browser checks contrast, unless the book is whole. `palette` checks the
/// colours that all pages have.
const CONTRAST_PAGES: [&str; 2] = ["index.html", "sgemm_22_fastest.html"];

/// axe-core finds no accessibility problem. It is slow, and pages of one kind have the same
/// elements and colours. Unless the book is whole, it therefore checks one page of each kind. It
/// checks contrast in both colour schemes.
fn accessible() -> Result<(), Failed> {
    const BUT_CONTRAST: &str = "axe.run({ rules: { 'color-contrast': { enabled: false } } })";
    const CONTRAST: &str = "axe.run({ runOnly: ['color-contrast'] })";
    let axe = axe()?;
    let mut session = Session::start()?;
    session.size(1280, 800)?;
    each(&mut session, |session, name| {
        let is_kind = KINDS.contains(&name) || fault::NAMES.contains(&name);
        if !is_kind && !is_whole() {
            return Ok(());
        }
        let has_contrast = if is_whole() { is_kind } else { CONTRAST_PAGES.contains(&name) };
        session.value(&axe)?;
        none(&session.value(&format!("{BUT_CONTRAST}{FOUND}"))?)?;
        for scheme in ["light", "dark"].into_iter().filter(|_| has_contrast) {
            session.medium("screen", scheme)?;
            none(&session.value(&format!("{CONTRAST}{FOUND}"))?)?;
        }
        Ok(())
    })
}

/// Script that waits until a JavaScript condition is true, and then runs axe-core.
pub fn asking_axe(when: &str) -> Result<String, Failed> {
    let asks = format!(
        "{{ const ask = () => !({when}) ? setTimeout(ask, 20) : axe.run(){FOUND}.then((found) => \
         {{ document.body.dataset.axe = found.join('; ') + '.'; }}); ask(); }}"
    );
    // The source of the script must not contain its own end tag.
    let axe = axe()?.replace("</script", "<\\/script");
    Ok(format!("<script>{axe}</script><script>{asks}</script></body>"))
}

/// Violations found by axe-core, or None if it has not finished.
pub fn found_by_axe(shown: &str) -> Option<&str> {
    let (found, _) = shown.split_once("data-axe=\"")?.1.split_once('"')?;
    Some(found)
}
