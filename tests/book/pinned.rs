//! Which pages of the book a change moves: the hash of each, a small page and a small report in full.

use crate::pages;
use gemm_examples::book::whole;
use libtest_mimic::Trial;
use sha2::{Digest, Sha256};
use std::path::Path;

/// What is there in full.
const PAGE: (&str, u32) = ("sgemm", 2);
const REPORT: (&str, u32) = ("reduce", 5);

pub fn trials() -> [Trial; 3] {
    [
        Trial::test("pinned::pages", || {
            let hash = |(name, html): (&String, &String)| {
                let digits: String =
                    Sha256::digest(html).iter().map(|byte| format!("{byte:02x}")).collect();
                format!("{digits} {name} {}", html.len())
            };
            let hashes: Vec<String> = pages()?.iter().map(hash).collect();
            compare("pages", &hashes.join("\n"));
            Ok(())
        }),
        Trial::test("pinned::page", || {
            compare("page", &whole::page_of(PAGE.0, PAGE.1)?.1);
            Ok(())
        }),
        Trial::test("pinned::report", || {
            let report = whole::report_of(REPORT.0, REPORT.1)?;
            compare("report", &serde_json::to_string_pretty(&report)?);
            Ok(())
        }),
    ]
}

/// Compares with the snapshot of that name in `snapshots/book`; `cargo bless-book` writes it anew.
fn compare(name: &str, text: &str) {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(top.expect("a package of the workspace").join("snapshots/book"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}
