//! Colours of pages in both schemes. Text and drawings have sufficient contrast with every
//! background on which the style sheets put them.
//!
//! The colours are read from the sheets themselves. Each colour declaration is a background, text,
//! a drawing or an ornament. A declaration in none of these lists is an error.

mod sheet;

use libtest_mimic::Failed;
use sheet::Sheet;
pub use sheet::reads_as_css_does;

/// Style sheets of all pages, and of the live page alone.
const SHEETS: [&str; 2] = [
    include_str!("../../examples/book/templates/style.css"),
    include_str!("../../examples/book/templates/live.css"),
];

/// Minimum contrast ratio of WCAG 2.2, level AA, for text and for graphics that are needed to
/// understand a picture.
const OF_TEXT: f64 = 4.5;
const OF_GRAPHICS: f64 = 3.0;

/// Background of the page itself.
const PAGE: &str = "body background";
/// Backgrounds of text. Any text may be on any of these backgrounds. A translucent background is
/// blended with the page.
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
/// Shapes that need no contrast with the page, because drawings and digits on them show the same.
const SHADES: [&str; 2] = [".e-whole fill", ".e-ragged fill"];

/// Text colours, each checked on each background.
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

/// Backgrounds of pictures.
const DRAWN_ON: [&str; 5] = [PAGE, ".w0 fill", ".w1 fill", ".w2 fill", ".w3 fill"];
/// Drawing colours, each checked on each background in `DRAWN_ON`.
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

/// Pairs of a colour and its background that the lists above do not contain. Text has a halo in the
/// colour of the page.
const PAIRS: [(&str, &str, f64); 5] = [
    ("td.on color", "td.on background", OF_TEXT),
    (".tiles text fill", ".tiles text stroke", OF_TEXT),
    (".roof text fill", ".roof .of stroke", OF_TEXT),
    (".tiles .reads stroke", "[data-lit] .own fill", OF_GRAPHICS),
    ("td.on outline", "td.on background", OF_GRAPHICS),
];

/// Ornaments that carry no information: rules between rows and cells, lines behind points, and gaps
/// between shades.
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

/// Colour declarations that are on no list, and list entries that no rule declares.
fn unlisted(sheet: &Sheet) -> Vec<String> {
    let lists: Vec<&str> = [&GROUNDS[..], &SHADES, &TEXTS, &DRAWN, &ADORNS].concat();
    let in_pair = |name: &str| PAIRS.iter().any(|(on, under, _)| [*on, *under].contains(&name));
    let declared = sheet.names();
    let beyond = declared.iter().filter(|name| !lists.contains(name) && !in_pair(name));
    let gone = lists.iter().filter(|name| !declared.contains(name));
    let beyond = beyond.map(|name| format!("the colour {name} is on no list"));
    beyond.chain(gone.map(|name| format!("no rule declares {name}"))).collect()
}

/// All pairs of elements from the two lists.
fn pairs<A: Copy, B: Copy>(a: &[A], b: &[B]) -> Vec<(A, B)> {
    a.iter().flat_map(|a| b.iter().map(move |b| (*a, *b))).collect()
}
