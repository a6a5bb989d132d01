//! Snapshots of the book: a small page and a small report in full, and the main sections of the
//! front page and two large kernels.

use crate::html::{all, attribute, parse};
use crate::{is_whole, page, report_of};
use libtest_mimic::{Failed, Trial};
use markup5ever_rcdom::{Handle, NodeData};
use std::path::Path;

/// Page and report whose snapshots are complete.
const PAGE: &str = "sgemm_02_naive.html";
const REPORT: (&str, u32) = ("reduce", 5);
/// Sections with a snapshot, on three pages: with a ring of asynchronous copies, with a ring of
/// boxes for tensor cores, and the front page.
const SAID: [(&str, &[&str]); 3] = [
    ("sgemm_22_fastest", &["answer", "ledger", "pipeline", "sync"]),
    ("sgemm_39_warp_specialised", &["answer", "ledger", "pipeline", "sync"]),
    ("index", &["sgemm", "reduce"]),
];

pub fn trials() -> Vec<Trial> {
    let said = SAID.map(|(name, sections)| {
        Trial::test(format!("pinned::{name}"), move || {
            compare(name, &said(page(&format!("{name}.html"))?, sections)?);
            Ok(())
        })
    });
    // The front page has a row for each stage, and its snapshot contains all of them.
    let said = said.into_iter().map(|trial| {
        let is_left_out = trial.name() == "pinned::index" && !is_whole();
        trial.with_ignored_flag(is_left_out)
    });
    let whole = [
        Trial::test("pinned::page", || {
            compare("page", page(PAGE)?);
            Ok(())
        }),
        Trial::test("pinned::report", || {
            let report = report_of(REPORT.0, REPORT.1)?;
            compare("report", &serde_json::to_string_pretty(&*report)?);
            Ok(())
        }),
    ];
    whole.into_iter().chain(said).collect()
}

/// Text of the sections with these `id`s, without pictures. Each paragraph, item and row is one
/// line.
fn said(html: &str, sections: &[&str]) -> Result<String, Failed> {
    let dom = parse(html);
    let found = all(&dom.document, "section");
    let mut lines = Vec::new();
    for id in sections {
        let is_it = |section: &&Handle| attribute(section, "id").as_deref() == Some(id);
        let section = found.iter().find(is_it).ok_or_else(|| format!("no section {id}"))?;
        written(section, &mut lines);
        lines.push(String::new());
    }
    Ok(lines.join("\n"))
}

fn written(node: &Handle, lines: &mut Vec<String>) {
    let NodeData::Element { name, .. } = &node.data else { return };
    let plain = |node: &Handle| {
        let shown = shown(node);
        shown.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let children = node.children.borrow();
    match &*name.local {
        "svg" => {}
        "tr" => {
            let cells: Vec<String> =
                children.iter().filter(|child| is_cell(child)).map(plain).collect();
            lines.push(cells.join(" | "));
        }
        "h2" | "h3" | "p" | "li" | "figcaption" => lines.push(plain(node)),
        _ => children.iter().for_each(|child| written(child, lines)),
    }
}

/// Visible text of a node. Bars have no text, and line breaks separate words.
fn shown(node: &Handle) -> String {
    match &node.data {
        NodeData::Element { name, .. } if *name.local == *"meter" => String::new(),
        NodeData::Element { name, .. } if *name.local == *"br" => " ".to_owned(),
        NodeData::Text { contents } => contents.borrow().to_string(),
        _ => node.children.borrow().iter().map(shown).collect(),
    }
}

fn is_cell(node: &Handle) -> bool {
    matches!(&node.data, NodeData::Element { name, .. } if matches!(&*name.local, "td" | "th"))
}

/// Compares with the snapshot of that name in `snapshots/book`; `cargo bless-book` updates it.
fn compare(name: &str, text: &str) {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(top.expect("a package of the workspace").join("snapshots/book"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}
