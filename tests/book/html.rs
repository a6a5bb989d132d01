//! Checks of pages with an HTML parser that conforms to browsers.

use crate::{fault, is_tested, pages_and_faults};
use gemm_book::glossary::TERMS;
use gemm_dsl::{Plan as _, cuda, stages};
use gemm_runtime::SgemmSpec;
use html5ever::tendril::TendrilSink;
use libtest_mimic::Failed;
use markup5ever_rcdom::{Handle, NodeData, RcDom};
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

pub fn parse(html: &str) -> RcDom {
    let options = html5ever::ParseOpts {
        tokenizer: html5ever::tokenizer::TokenizerOpts { exact_errors: true, ..Default::default() },
        ..Default::default()
    };
    html5ever::parse_document(RcDom::default(), options).one(html)
}

/// Page, parsed once for all checks.
pub struct ParsedPage<'p> {
    html: &'p str,
    dom: RcDom,
}

/// Counts of items that must occur on the pages several times.
#[derive(Default, Debug)]
struct Found {
    /// Keys without an effect on counters whose changed lines are shown.
    unseen_keys: usize,
    /// Blocks named by their coordinates.
    blocks: usize,
    /// Rows of ledgers with registers.
    registers: usize,
}

/// Checks that every page parses, its links resolve, it loads nothing, and its terms are explained.
/// Keys without an effect on counters have their changed lines, blocks are named in one form, and
/// each key has registers. All faults are reported, page by page.
pub fn pages_are_sound() -> Result<(), Failed> {
    let pages: Vec<(&str, &str)> = pages_and_faults()?.collect();
    let asked = pages.par_iter().map(|(name, html)| {
        let page = ParsedPage { html, dom: parse(html) };
        let mut found = Found::default();
        let checks = [
            parses(&page),
            links(&page, &pages),
            alone(&page),
            words_are_explained(&page),
            unseen_keys_are_shown(&page, &mut found),
            blocks_have_three_coordinates(&page, &mut found),
            registers_of_every_key(&page, &mut found),
        ];
        let wrong = checks.into_iter().filter_map(Result::err);
        (wrong.map(|wrong| format!("{name}: {wrong}")).collect::<Vec<_>>(), found)
    });
    let (wrong, found): (Vec<_>, Vec<_>) = asked.unzip();
    let wrong = wrong.concat();
    if !wrong.is_empty() {
        return Err(wrong.join("\n").into());
    }
    let sum = |of: fn(&Found) -> usize| found.iter().map(of).sum::<usize>();
    let sums = [sum(|of| of.unseen_keys), sum(|of| of.blocks), sum(|of| of.registers)];
    let enough = sums.iter().zip([3, 50, 60]).all(|(sum, least)| *sum >= least);
    if enough { Ok(()) } else { Err(format!("{sums:?} are too few").into()) }
}

type Checked = Result<(), String>;

fn parses(page: &ParsedPage<'_>) -> Checked {
    let errors = page.dom.errors.borrow();
    match errors.first() {
        None => Ok(()),
        Some(error) => Err(format!("{error}, and {} more", errors.len() - 1)),
    }
}

/// Visits all elements with their names and attributes.
fn visit(node: &Handle, f: &mut impl FnMut(&str, &BTreeMap<String, String>)) {
    if let NodeData::Element { name, attrs, .. } = &node.data {
        let attrs = attrs.borrow();
        let attrs = attrs.iter().map(|attr| (attr.name.local.to_string(), attr.value.to_string()));
        f(&name.local, &attrs.collect());
    }
    node.children.borrow().iter().for_each(|child| visit(child, f));
}

/// Text content of a node.
pub fn text(node: &Handle) -> String {
    match &node.data {
        NodeData::Text { contents } => contents.borrow().to_string(),
        _ => node.children.borrow().iter().map(text).collect(),
    }
}

pub fn attribute(node: &Handle, name: &str) -> Option<String> {
    let NodeData::Element { attrs, .. } = &node.data else { return None };
    let attrs = attrs.borrow();
    attrs.iter().find(|attr| *attr.name.local == *name).map(|attr| attr.value.to_string())
}

/// All elements of a given name below a node.
pub fn all(node: &Handle, wanted: &str) -> Vec<Handle> {
    let is_it = matches!(&node.data, NodeData::Element { name, .. } if *name.local == *wanted);
    let own = is_it.then(|| node.clone());
    let inner = node.children.borrow();
    own.into_iter().chain(inner.iter().flat_map(|child| all(child, wanted))).collect()
}

/// Classes and text of all elements of a given name.
pub fn texts(dom: &RcDom, wanted: &str) -> Vec<(Vec<String>, String)> {
    let classes = |node: &Handle| {
        let classes = attribute(node, "class").unwrap_or_default();
        classes.split_whitespace().map(str::to_owned).collect()
    };
    all(&dom.document, wanted).iter().map(|node| (classes(node), text(node))).collect()
}

/// Anchors of a page, and its links.
pub fn places(dom: &RcDom) -> Result<(BTreeSet<String>, Vec<String>), String> {
    let (mut ids, mut links, mut twice) = (BTreeSet::new(), Vec::new(), None);
    visit(&dom.document, &mut |_, attrs| {
        if let Some(id) = attrs.get("id")
            && !ids.insert(id.clone())
        {
            twice = Some(format!("#{id} occurs twice"));
        }
        links.extend(attrs.get("href").cloned());
        // The label of a region must also exist.
        links.extend(attrs.get("aria-labelledby").map(|id| format!("#{id}")));
    });
    twice.map_or(Ok((ids, links)), Err)
}

/// Each link leads to an anchor of this page, to another page, or to the page of a stage that is
/// not tested.
fn links(page: &ParsedPage<'_>, pages: &[(&str, &str)]) -> Checked {
    let (ids, links) = places(&page.dom)?;
    let other = |name: &str| pages.iter().find(|(other, _)| *other == name);
    for link in links {
        let (name, id) = link.split_once('#').unwrap_or((&link, ""));
        let is_there = match (name, id) {
            ("", id) => ids.contains(id),
            (name, "") => other(name).is_some() || is_untested(name),
            (name, id) => match other(name) {
                Some((_, html)) => html.contains(&format!(" id=\"{id}\"")),
                None => is_untested(name),
            },
        };
        if !is_there {
            return Err(format!("it links to {link}, which does not exist"));
        }
    }
    Ok(())
}

/// True if a page belongs to a stage that is not tested.
fn is_untested(name: &str) -> bool {
    let mut products = stages::sgemm().into_iter().filter(|of| !is_tested("sgemm", of.index));
    products.any(|of| name == format!("sgemm_{}.html", of.stem()))
}

/// A page loads nothing. Its policy allows only its style and its script, by their hashes.
fn alone(page: &ParsedPage<'_>) -> Checked {
    let ParsedPage { html, dom } = page;
    let mut policy = None;
    let mut foreign = None;
    visit(&dom.document, &mut |element, attrs| {
        if attrs.get("http-equiv").is_some_and(|what| what == "Content-Security-Policy") {
            policy = attrs.get("content").cloned();
        }
        let asks = matches!(element, "img" | "link" | "iframe" | "object" | "video");
        let styled = attrs.contains_key("style") || attrs.keys().any(|key| key.starts_with("on"));
        let away = attrs.values().any(|value| value.contains("http:") || value.contains("https:"));
        if asks || styled || away {
            foreign = Some(format!("<{element} {attrs:?}>"));
        }
    });
    if let Some(foreign) = foreign {
        return Err(format!("it contains {foreign}"));
    }
    let style = within(html, "style").ok_or("it has no style")?;
    if style.contains("url(") {
        return Err("its style loads something".to_owned());
    }
    let policy = policy.ok_or("it has no policy")?;
    let own = [("style", Some(style)), ("script", within(html, "script"))];
    let own = own.into_iter().filter_map(|(kind, text)| Some((kind, hash(text?))));
    let expected: Vec<_> = own.collect();
    let mut said = policy.split("; ");
    let first = said.next();
    let said: Option<Vec<_>> = said.map(allowed).collect();
    if first != Some("default-src 'none'") || said != Some(expected) {
        return Err(format!("{policy} does not have the hashes of its style and its script"));
    }
    Ok(())
}

/// Content of the only element of this kind.
pub fn within<'h>(html: &'h str, kind: &str) -> Option<&'h str> {
    let (_, rest) = html.split_once(&format!("<{kind}>"))?;
    Some(rest.split_once(&format!("</{kind}>"))?.0)
}

pub fn hash(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Element kind and hash that a directive allows.
fn allowed(directive: &str) -> Option<(&str, String)> {
    let (kind, hash) = directive.split_once("-src 'sha256-")?;
    Some((kind, decoded(hash.strip_suffix('\'')?)))
}

/// Converts Base64 to hexadecimal digits.
pub fn decoded(text: &str) -> String {
    let six = |c: char| match c {
        'A'..='Z' => c as u32 - 'A' as u32,
        'a'..='z' => c as u32 - 'a' as u32 + 26,
        '0'..='9' => c as u32 - '0' as u32 + 52,
        '+' => 62,
        _ => 63,
    };
    let bits: String =
        text.trim_end_matches('=').chars().map(|c| format!("{:06b}", six(c))).collect();
    let bytes = bits.len() / 8;
    (0..2 * bytes)
        .map(|i| format!("{:x}", u8::from_str_radix(&bits[4 * i..4 * i + 4], 2).unwrap_or(0)))
        .collect()
}

/// Collects the prose of a page, without code, pictures and headings, for the check of its terms.
fn sentences(node: &Handle, out: &mut String) {
    const UNREAD: [&str; 14] = [
        "code", "svg", "style", "script", "title", "h1", "h2", "h3", "summary", "thead", "label",
        "button", "nav", "footer",
    ];
    match &node.data {
        NodeData::Text { contents } => out.push_str(&contents.borrow()),
        NodeData::Element { name, .. } => {
            let local = &*name.local;
            let is_words = attribute(node, "id").as_deref() == Some("words");
            let is_line = local == "td" && attribute(node, "class").as_deref() == Some("t");
            // Links to terms are part of the prose, other links are not.
            let is_other = local == "a" && attribute(node, "class").as_deref() != Some("word");
            if UNREAD.contains(&local) || is_words || is_line || is_other {
                return;
            }
            node.children.borrow().iter().for_each(|child| sentences(child, out));
            if local != "a" {
                out.push('\n');
            }
        }
        _ => node.children.borrow().iter().for_each(|child| sentences(child, out)),
    }
}

/// Each glossary term that a kernel's page uses links to its explanation, and no other term is
/// explained.
fn words_are_explained(page: &ParsedPage<'_>) -> Checked {
    let ParsedPage { html, dom } = page;
    if !html.contains("id=\"words\"") {
        return Ok(());
    }
    let mut said = String::new();
    sentences(&dom.document, &mut said);
    let mut said = said.to_lowercase();
    let mut terms: Vec<_> = TERMS.iter().collect();
    // Longer terms first: "bank conflict" is not an occurrence of "bank".
    terms.sort_by_key(|term| std::cmp::Reverse(term.name.len()));
    for term in terms {
        let word = term.name.to_lowercase();
        let is_letter =
            |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || "_-".contains(c));
        let occurs = said.match_indices(&word).any(|(at, _)| {
            let behind = said[at + word.len()..].trim_start_matches('s').chars().next();
            !is_letter(said[..at].chars().next_back()) && !is_letter(behind)
        });
        let (is_linked, is_explained) = (
            html.contains(&format!("href=\"#w-{}\"", term.id)),
            html.contains(&format!("<dt id=\"w-{}\"", term.id)),
        );
        if occurs && !is_linked || is_linked != is_explained {
            return Err(format!(
                "{} occurs {occurs}, is linked {is_linked} and explained {is_explained}",
                term.name
            ));
        }
        said = said.replace(&word, "");
    }
    Ok(())
}

/// Section of a page by its `id`.
fn section_of(dom: &RcDom, id: &str) -> Option<Handle> {
    let mut sections = all(&dom.document, "section").into_iter();
    sections.find(|of| attribute(of, "id").as_deref() == Some(id))
}

/// A key without an effect on counters has the source lines that it changes.
fn unseen_keys_are_shown(page: &ParsedPage<'_>, found: &mut Found) -> Checked {
    let Some(ledger) = section_of(&page.dom, "ledger") else { return Ok(()) };
    if all(&ledger, "table").iter().any(|table| all(table, "tr").is_empty()) {
        return Err("an empty table".to_owned());
    }
    for row in all(&ledger, "tr") {
        let said = text(&row);
        if !said.contains("no counter shows an effect") {
            continue;
        }
        let changed = all(&row, "tr")
            .iter()
            .any(|line| matches!(attribute(line, "class").as_deref(), Some("ins" | "del")));
        if !changed {
            return Err(said);
        }
        found.unseen_keys += 1;
    }
    Ok(())
}

/// Each row of a ledger has registers, unless the spec without the key is invalid.
fn registers_of_every_key(page: &ParsedPage<'_>, found: &mut Found) -> Checked {
    let Some(ledger) = section_of(&page.dom, "ledger") else { return Ok(()) };
    // Nested rows with differing lines are skipped.
    let rows = all(&ledger, "tr").into_iter();
    for row in rows.filter(|row| !all(row, "td").is_empty() && !all(row, "th").is_empty()) {
        let cells: Vec<String> = all(&row, "td").iter().map(text).collect();
        let [registers, said, ..] = &cells[..] else { return Err(format!("{cells:?}")) };
        let is_kernel = !said.contains("not a kernel");
        if registers.contains(" → ") != is_kernel {
            return Err(format!("registers {registers:?} of {said}"));
        }
        found.registers += usize::from(is_kernel);
    }
    Ok(())
}

/// Text and links of a section.
fn section(name: &str, id: &str) -> Result<String, Failed> {
    let dom = parse(crate::page(name)?);
    let own = section_of(&dom, id).ok_or_else(|| format!("{name} has no section {id}"))?;
    let links = all(&own, "a").iter().filter_map(|a| attribute(a, "href")).collect::<Vec<_>>();
    Ok(format!("{} {}", text(&own), links.join(" ")))
}

/// Sections link to content that they leave out, or say that it is missing. The section on changes
/// has the resources of both kernels.
pub fn sections_say_what_they_leave_out() -> Result<(), Failed> {
    for (name, id, says) in [
        ("sgemm_39_warp_specialised.html", "owners", "A dashed frame is a TMA box"),
        ("sgemm_39_warp_specialised.html", "owners", " #ring"),
        ("sgemm_39_warp_specialised.html", "owners", " #held"),
        ("sgemm_39_warp_specialised.html", "pipeline", "#ring"),
        ("sgemm_22_fastest.html", "owners", "A is to the left of C"),
        ("sgemm_22_fastest.html", "change", "Shared memory of a block: "),
        ("sgemm_22_fastest.html", "change", "sm_90"),
        ("sgemm_22_fastest.html", "occupancy", "The scalar variant"),
    ] {
        let said = section(name, id)?;
        if !said.contains(says) {
            return Err(format!("{name}, {id}, does not contain {says}: {said}").into());
        }
    }
    Ok(())
}

/// The number of the changed line refers to the unchanged source. The source on the page does not
/// contain the line.
pub fn a_fault_says_whose_lines_it_counts() -> Result<(), Failed> {
    let dom = parse(fault::race()?);
    let said = text(&dom.document);
    let (_, behind) = said.split_once("one change at line ").ok_or("no change is named")?;
    let (line, what) =
        behind.split_once(" of the original source, ").ok_or("no source is named")?;
    let number: usize = line.parse()?;
    let spec: SgemmSpec = fault::LINE.parse()?;
    let unchanged = cuda::source(&spec.plan()?.program()?.kernels()[0]);
    let statement = unchanged.lines().nth(number - 1).unwrap_or_default().trim();
    if statement.is_empty() || !what.contains(statement) {
        return Err(format!("line {number} is {statement}, and not what is said: {what}").into());
    }
    let rows = all(&dom.document, "tr").into_iter();
    let mut own = rows.filter(|row| attribute(row, "id") == Some(format!("L{number}")));
    match own.next().map(|row| text(&row)) {
        Some(changed) if !changed.contains(statement) => Ok(()),
        changed => Err(format!("line {number} of the page is {changed:?}").into()),
    }
}

/// Blocks are named with all three coordinates, in the prose and in repeated messages.
fn blocks_have_three_coordinates(page: &ParsedPage<'_>, found: &mut Found) -> Checked {
    for behind in page.html.split("block (").skip(1) {
        let Some((inside, _)) = behind.split_once(')') else { continue };
        let numbers: Vec<&str> = inside.split(", ").collect();
        if numbers.iter().any(|number| number.parse::<u32>().is_err()) {
            continue;
        }
        if numbers.len() != 3 {
            return Err(format!("block ({inside})"));
        }
        found.blocks += 1;
    }
    Ok(())
}
