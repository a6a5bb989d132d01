//! The colours of pages, in both schemes: whatever the style sheets can put on something else can be told from it.
//!
//! What they say is read from the sheets themselves: each declaration of a colour is one of a ground, of what is written, of what is
//! drawn, or of what only adorns, and a new one that is none of these is a fault.

mod sheet;

use libtest_mimic::Failed;
use sheet::Sheet;
pub use sheet::reads_as_css_does;

/// The sheets of all pages, and of the live one alone.
const SHEETS: [&str; 2] = [
    include_str!("../../examples/book/templates/style.css"),
    include_str!("../../examples/book/templates/live.css"),
];

/// WCAG 2.2, AA: for text, and for what a picture needs to be understood.
const OF_TEXT: f64 = 4.5;
const OF_GRAPHICS: f64 = 3.0;

/// The page itself.
const PAGE: &str = "body background";
/// What texts stand on: all of them on each of these. One that is not opaque lies on the page.
const GROUNDS: [&str; 21] = [
    PAGE,
    ".l0 background",
    ".l1 background",
    ".l2 background",
    ".l3 background",
    ".w0 fill",
    ".w1 fill",
    ".w2 fill",
    ".w3 fill",
    ".h1 td background",
    ".h2 td background",
    ".h3 td background",
    ".h4 td background",
    ".del background",
    ".ins background",
    ".slots .both background",
    ".grid th[scope=row] background",
    ".lane background",
    "select background",
    ".faults em background",
    ".tiles .mark fill",
];
/// Shapes that are read by what is drawn on them and around them, and by the digits in them.
const SHADES: [&str; 2] = [".e-whole fill", ".e-ragged fill"];

/// What is written, each on each ground.
const TEXTS: [&str; 11] = [
    "body color",
    "a color",
    "thead th color",
    ".code td.n color",
    ".t .comment color",
    ".t .cuda color",
    ".lanes fill",
    ".roof text fill",
    ".chart text fill",
    ".part text fill",
    "#took color",
];

/// What pictures are drawn on.
const DRAWN_ON: [&str; 5] = [PAGE, ".w0 fill", ".w1 fill", ".w2 fill", ".w3 fill"];
/// What is drawn, each on each of these.
const DRAWN: [&str; 42] = [
    ".w background",
    ".own:not([fill]) fill",
    "[data-lit] .own fill",
    "td.on background",
    "td.on outline",
    ".at outline",
    ".hatch fill",
    ".sign stroke",
    ".way stroke",
    ".dashed stroke",
    ".tiles .frame stroke",
    ".tiles .reads stroke",
    ".tiles .mark stroke",
    ".tiles .uses stroke",
    ".tiles .box stroke",
    ".tiles.order .edge stroke",
    ".tiles.order .w1 stroke",
    ".lanes .piece stroke",
    ".m-load fill",
    ".m-tick fill",
    ".m-wait fill",
    ".m-write fill",
    ".m-read fill",
    ".m-work fill",
    ".m-store fill",
    ".roof .point fill",
    ".roof .bound stroke",
    ".roof .most stroke",
    ".ladder thead button:focus-visible outline",
    ".chart .place stroke",
    ".chart .flow stroke",
    ".part .none stroke",
    ".code tr:target outline",
    "a:focus-visible outline",
    "[tabindex]:focus-visible outline",
    "summary:focus-visible outline",
    ".editor textarea:focus-visible outline",
    "select:focus-visible outline",
    "select border",
    ".editor border",
    "#marked mark text-decoration",
    ".faults em text-decoration",
];

/// One on the other, where both are not of the lists above: what is written has a halo in the colour of the page.
const PAIRS: [(&str, &str, f64); 5] = [
    ("td.on color", "td.on background", OF_TEXT),
    (".tiles text fill", ".tiles text stroke", OF_TEXT),
    (".roof text fill", ".roof .of stroke", OF_TEXT),
    (".tiles .reads stroke", "[data-lit] .own fill", OF_GRAPHICS),
    ("td.on outline", "td.on background", OF_GRAPHICS),
];

/// What a page could do without: rules between rows and cells, whose texts stand in columns; lines behind points, whose
/// numbers stand in a table; gaps between shades.
const ADORNS: [&str; 12] = [
    "h2 border-top",
    "thead th border-bottom",
    ".grid td border",
    ".grid th border",
    ".folds td border",
    ".slots td border",
    ".lane border-top",
    ".step>div border",
    ".roof .rule stroke",
    ".roof .drop stroke",
    ".tiles .edge stroke",
    ".part rect stroke",
];

pub fn can_be_read() -> Result<(), Failed> {
    let sheet = Sheet::of(&SHEETS.concat())?;
    let mut faults = unlisted(&sheet);
    let page = sheet.shades(PAGE)?[0];
    let mut hold = |on: &str, under: &str, least: f64| -> Result<(), Failed> {
        for (upper, lower) in pairs(&sheet.shades(on)?, &sheet.shades(under)?) {
            for (scheme, name) in ["light", "dark"].into_iter().enumerate() {
                let lower = lower[scheme].over(page[scheme]);
                let contrast = upper[scheme].over(lower).contrast(lower);
                if contrast < least {
                    faults.push(format!("{on} on {under}, {name}: {contrast:.2} of {least}"));
                }
            }
        }
        Ok(())
    };
    for (text, ground) in pairs(&TEXTS, &GROUNDS) {
        hold(text, ground, OF_TEXT)?;
    }
    for (drawn, ground) in pairs(&DRAWN, &DRAWN_ON) {
        hold(drawn, ground, OF_GRAPHICS)?;
    }
    for (on, under, least) in PAIRS {
        hold(on, under, least)?;
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n").into()) }
}

/// Declarations of colours that are on no list, and what is listed and no rule declares.
fn unlisted(sheet: &Sheet) -> Vec<String> {
    let lists: Vec<&str> = [&GROUNDS[..], &SHADES, &TEXTS, &DRAWN, &ADORNS].concat();
    let in_pair = |name: &str| PAIRS.iter().any(|(on, under, _)| [*on, *under].contains(&name));
    let declared = sheet.names();
    let beyond = declared.iter().filter(|name| !lists.contains(name) && !in_pair(name));
    let gone = lists.iter().filter(|name| !declared.contains(name));
    let beyond = beyond.map(|name| format!("{name} is a colour on no list"));
    beyond.chain(gone.map(|name| format!("no rule says {name}"))).collect()
}

/// Each of some with each of others.
fn pairs<A: Copy, B: Copy>(a: &[A], b: &[B]) -> Vec<(A, B)> {
    a.iter().flat_map(|a| b.iter().map(move |b| (*a, *b))).collect()
}
