//! Screenshots of pages for inspection by a person. Only `cargo look-book` runs this test.

use crate::browser::browse;
use crate::browser::session::Session;
use crate::fault;
use libtest_mimic::Failed;
use std::fs;
use std::path::Path;

/// One page of each kind: the front page, the glossary, GEMMs on CUDA cores and tensor cores, and
/// reductions.
pub const KINDS: [&str; 6] = [
    "index.html",
    "glossary.html",
    "sgemm_22_fastest.html",
    "sgemm_39_warp_specialised.html",
    "reduce_04_unroll_last_warp.html",
    "reduce_09_columns.html",
];

/// Views: name, window width in pixels, and colour scheme (0 is dark). The height of the window is
/// that of the page.
const WAYS: [(&str, u32, &str); 3] =
    [("light", 1280, "1"), ("dark", 1280, "0"), ("phone", 390, "1")];

/// Writes screenshots of each kind of page and of the fault pages, in both schemes, on a phone and
/// on paper.
pub fn writes_pictures() -> Result<(), Failed> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/look");
    fs::create_dir_all(&folder)?;
    let faults = fault::pages()?.iter().map(|(name, html)| (&**name, &**html));
    let mut session = Session::start()?;
    let known = KINDS.iter().map(|name| Ok((*name, crate::page(name)?)));
    let known = known.collect::<Result<Vec<_>, Failed>>()?;
    for (name, html) in known.into_iter().chain(faults) {
        let stem = name.trim_end_matches(".html");
        for (way, width, scheme) in WAYS {
            session.size(width, 800)?;
            session.open(name, html, "")?;
            let height = session.value("document.documentElement.scrollHeight")?;
            let picture = folder.join(format!("{stem}.{way}.png"));
            let arguments = [
                format!("--screenshot={}", picture.display()),
                format!("--window-size={width},{height}"),
                format!("--blink-settings=preferredColorScheme={scheme}"),
                "--hide-scrollbars".to_owned(),
            ];
            browse(name, html, "", &arguments.each_ref().map(String::as_str))?;
        }
        let sheet = folder.join(format!("{stem}.print.pdf"));
        let arguments =
            [format!("--print-to-pdf={}", sheet.display()), "--no-pdf-header-footer".into()];
        browse(name, html, "", &arguments.each_ref().map(String::as_str))?;
    }
    println!("the pictures are in {}", folder.display());
    Ok(())
}
