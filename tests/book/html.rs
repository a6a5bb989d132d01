//! Pages as a browser's parser takes them.

use crate::{fault, pages, pages_and_faults};
use gemm_book::glossary::TERMS;
use gemm_dsl::{Plan as _, cuda};
use gemm_runtime::SgemmSpec;
use html5ever::tendril::TendrilSink;
use libtest_mimic::Failed;
use markup5ever_rcdom::{Handle, NodeData, RcDom};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

pub fn parse(html: &str) -> RcDom {
    let options = html5ever::ParseOpts {
        tokenizer: html5ever::tokenizer::TokenizerOpts { exact_errors: true, ..Default::default() },
        ..Default::default()
    };
    html5ever::parse_document(RcDom::default(), options).one(html)
}

pub fn parses() -> Result<(), Failed> {
    for (name, html) in pages_and_faults()? {
        let dom = parse(html);
        let errors = dom.errors.borrow();
        if let Some(error) = errors.first() {
            return Err(format!("{name}: {error}, and {} more", errors.len() - 1).into());
        }
    }
    Ok(())
}

/// Visits all elements: their names and attributes.
fn visit(node: &Handle, f: &mut impl FnMut(&str, &BTreeMap<String, String>)) {
    if let NodeData::Element { name, attrs, .. } = &node.data {
        let attrs = attrs.borrow();
        let attrs = attrs.iter().map(|attr| (attr.name.local.to_string(), attr.value.to_string()));
        f(&name.local, &attrs.collect());
    }
    node.children.borrow().iter().for_each(|child| visit(child, f));
}

/// What is written in a node.
pub fn text(node: &Handle) -> String {
    match &node.data {
        NodeData::Text { contents } => contents.borrow().to_string(),
        _ => node.children.borrow().iter().map(text).collect(),
    }
}

/// An attribute of an element.
pub fn attribute(node: &Handle, name: &str) -> Option<String> {
    let NodeData::Element { attrs, .. } = &node.data else { return None };
    let attrs = attrs.borrow();
    attrs.iter().find(|attr| *attr.name.local == *name).map(|attr| attr.value.to_string())
}

/// All elements of a name in a node.
pub fn all(node: &Handle, wanted: &str) -> Vec<Handle> {
    let is_it = matches!(&node.data, NodeData::Element { name, .. } if *name.local == *wanted);
    let own = is_it.then(|| node.clone());
    let inner = node.children.borrow();
    own.into_iter().chain(inner.iter().flat_map(|child| all(child, wanted))).collect()
}

/// All elements of a name: their classes and their text.
pub fn texts(dom: &RcDom, wanted: &str) -> Vec<(Vec<String>, String)> {
    let classes = |node: &Handle| {
        let classes = attribute(node, "class").unwrap_or_default();
        classes.split_whitespace().map(str::to_owned).collect()
    };
    all(&dom.document, wanted).iter().map(|node| (classes(node), text(node))).collect()
}

/// The places of a page, and where it leads.
pub fn places(html: &str) -> Result<(BTreeSet<String>, Vec<String>), String> {
    let (mut ids, mut links, mut twice) = (BTreeSet::new(), Vec::new(), None);
    visit(&parse(html).document, &mut |_, attrs| {
        if let Some(id) = attrs.get("id")
            && !ids.insert(id.clone())
        {
            twice = Some(format!("#{id} is twice there"));
        }
        links.extend(attrs.get("href").cloned());
        // A name of a region is a place too.
        links.extend(attrs.get("aria-labelledby").map(|id| format!("#{id}")));
    });
    twice.map_or(Ok((ids, links)), Err)
}

pub fn links() -> Result<(), Failed> {
    let mut all = BTreeMap::new();
    for (name, html) in pages_and_faults()? {
        all.insert(name, places(html).map_err(|twice| format!("{name}: {twice}"))?);
    }
    for (name, (ids, links)) in &all {
        for link in links {
            let is_there = match link.split_once('#') {
                Some(("", id)) => ids.contains(id),
                Some((page, id)) => all.get(page).is_some_and(|(ids, _)| ids.contains(id)),
                None => all.contains_key(&**link),
            };
            if !is_there {
                return Err(format!("{name} leads to {link}, which is not there").into());
            }
        }
    }
    Ok(())
}

/// A page asks for nothing: its policy forbids it, and has the hashes of its one style and of its script.
pub fn alone() -> Result<(), Failed> {
    for (name, html) in pages_and_faults()? {
        let mut policy = None;
        let mut foreign = None;
        visit(&parse(html).document, &mut |element, attrs| {
            if attrs.get("http-equiv").is_some_and(|what| what == "Content-Security-Policy") {
                policy = attrs.get("content").cloned();
            }
            let asks = matches!(element, "img" | "link" | "iframe" | "object" | "video");
            let styled =
                attrs.contains_key("style") || attrs.keys().any(|key| key.starts_with("on"));
            let away =
                attrs.values().any(|value| value.contains("http:") || value.contains("https:"));
            if asks || styled || away {
                foreign = Some(format!("<{element} {attrs:?}>"));
            }
        });
        if let Some(foreign) = foreign {
            return Err(format!("{name} has {foreign}").into());
        }
        let style = within(html, "style").ok_or_else(|| format!("{name} has no style"))?;
        if style.contains("url(") {
            return Err(format!("{name}: its style asks for something").into());
        }
        let policy = policy.ok_or_else(|| format!("{name} has no policy"))?;
        let own = [("style", Some(style)), ("script", within(html, "script"))];
        let own = own.into_iter().filter_map(|(kind, text)| Some((kind, hash(text?))));
        let expected: Vec<_> = own.collect();
        let mut said = policy.split("; ");
        let first = said.next();
        let said: Option<Vec<_>> = said.map(allowed).collect();
        if first != Some("default-src 'none'") || said != Some(expected) {
            return Err(format!("{name}: {policy} is not of its style and its script").into());
        }
    }
    Ok(())
}

/// What the one element of this kind holds.
pub fn within<'h>(html: &'h str, kind: &str) -> Option<&'h str> {
    let (_, rest) = html.split_once(&format!("<{kind}>"))?;
    Some(rest.split_once(&format!("</{kind}>"))?.0)
}

pub fn hash(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What may be there of a kind, and the hash that it must have.
fn allowed(directive: &str) -> Option<(&str, String)> {
    let (kind, hash) = directive.split_once("-src 'sha256-")?;
    Some((kind, decoded(hash.strip_suffix('\'')?)))
}

/// Base 64, as hexadecimal digits.
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

/// What is read as sentences of a page before its words are explained: without texts of kernels, pictures and headings.
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
            // A link to another part is no term; one to a word is.
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

/// Each term of the glossary that a page of a kernel says leads to its sentence there, and no other is explained.
pub fn words_are_explained() -> Result<(), Failed> {
    for (name, html) in pages()?.iter().filter(|(_, html)| html.contains("id=\"words\"")) {
        let dom = parse(html);
        let mut said = String::new();
        sentences(&dom.document, &mut said);
        let mut said = said.to_lowercase();
        let mut terms: Vec<_> = TERMS.iter().collect();
        // A bank conflict is no bank.
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
                    "{name}: {} occurs {occurs}, is linked {is_linked} and explained {is_explained}",
                    term.name
                )
                .into());
            }
            said = said.replace(&word, "");
        }
    }
    Ok(())
}

/// A key that no counter sees has the lines of the text that it changes, or leads to what shows it.
pub fn unseen_keys_are_shown() -> Result<(), Failed> {
    let mut shown = 0;
    for (name, html) in pages()? {
        let dom = parse(html);
        let sections = all(&dom.document, "section");
        let is_ledger = |of: &&Handle| attribute(of, "id").as_deref() == Some("ledger");
        let Some(ledger) = sections.iter().find(is_ledger) else { continue };
        if all(ledger, "table").iter().any(|table| all(table, "tr").is_empty()) {
            return Err(format!("{name}: an empty table").into());
        }
        for row in all(ledger, "tr") {
            let said = text(&row);
            if !said.contains("no counter sees it") {
                continue;
            }
            let changed = all(&row, "tr")
                .iter()
                .any(|line| matches!(attribute(line, "class").as_deref(), Some("ins" | "del")));
            if !changed {
                return Err(format!("{name}: {said}").into());
            }
            shown += 1;
        }
    }
    if shown > 5 { Ok(()) } else { Err(format!("{shown} keys are shown").into()) }
}

/// What a page has in a section.
fn section(name: &str, id: &str) -> Result<String, Failed> {
    let dom = parse(crate::page(name)?);
    let found = all(&dom.document, "section").into_iter();
    let mut own = found.filter(|of| attribute(of, "id").as_deref() == Some(id));
    let own = own.next().ok_or_else(|| format!("{name} has no section {id}"))?;
    let links = all(&own, "a").iter().filter_map(|a| attribute(a, "href")).collect::<Vec<_>>();
    Ok(format!("{} {}", text(&own), links.join(" ")))
}

/// What a section does not show it leads to, or says that it is not there; and the resources of both kernels stand beside their
/// difference.
pub fn sections_say_what_they_leave_out() -> Result<(), Failed> {
    for (name, id, says) in [
        ("sgemm_41_wgmma_bf16x6.html", "owners", "A dashed frame is a box that brings it there"),
        ("sgemm_41_wgmma_bf16x6.html", "owners", " #ring"),
        ("sgemm_41_wgmma_bf16x6.html", "owners", " #held"),
        ("sgemm_41_wgmma_bf16x6.html", "pipeline", "#ring"),
        ("sgemm_22_fastest.html", "owners", "A to the left of C"),
        ("sgemm_22_fastest.html", "change", "Shared memory of a block: "),
        ("sgemm_22_fastest.html", "change", "sm_90"),
        ("sgemm_22_fastest.html", "occupancy", "The scalar variant"),
    ] {
        let said = section(name, id)?;
        if !said.contains(says) {
            return Err(format!("{name}, {id}, does not say {says}: {said}").into());
        }
    }
    let ledgers = pages()?.iter().filter(|(_, html)| html.contains("id=\"ledger\""));
    let with_registers = |(name, _): &(&String, &String)| {
        section(name, "ledger").is_ok_and(|said| said.contains("Registers") && said.contains(" → "))
    };
    let shown = ledgers.filter(with_registers).count();
    if shown < 20 { Err(format!("{shown} pages have registers of keys").into()) } else { Ok(()) }
}

/// The line that is changed is one of the unchanged text; the text that the page has is without it.
pub fn a_fault_says_whose_lines_it_counts() -> Result<(), Failed> {
    let dom = parse(fault::race()?);
    let said = text(&dom.document);
    let (_, behind) = said.split_once("changed at line ").ok_or("no change is named")?;
    let (line, what) = behind.split_once(" of its unchanged text, ").ok_or("no text is named")?;
    let number: usize = line.parse()?;
    let spec: SgemmSpec = fault::LINE.parse()?;
    let unchanged = cuda::source(&spec.plan()?.program()?.kernels[0]);
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

/// Blocks are named in one form, with all three coordinates, in what pages say and in the messages that they repeat.
pub fn blocks_have_three_coordinates() -> Result<(), Failed> {
    let mut named = 0;
    for (name, html) in pages_and_faults()? {
        for behind in html.split("block (").skip(1) {
            let Some((inside, _)) = behind.split_once(')') else { continue };
            let numbers: Vec<&str> = inside.split(", ").collect();
            if numbers.iter().any(|number| number.parse::<u32>().is_err()) {
                continue;
            }
            if numbers.len() != 3 {
                return Err(format!("{name}: block ({inside})").into());
            }
            named += 1;
        }
    }
    if named > 100 { Ok(()) } else { Err(format!("{named} blocks are named").into()) }
}
