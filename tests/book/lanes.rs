//! A lane that is pointed at, chosen with the range or named in the address lights where the simulator saw it, and nowhere else.

use crate::browser::{browse, without_policy};
use crate::html::{parse, texts};
use crate::page;
use gemm_examples::book::report::Report;
use gemm_examples::book::whole::report_of;
use gemm_tests::needs::Need;
use libtest_mimic::{Failed, Trial};
use std::collections::BTreeSet;

/// A stage with pictures of accesses and of tiles, its page, and a lane that is none of the first.
const STAGE: (&str, u32, &str) = ("sgemm", 16, "sgemm_16_split_fragment.html");
const LANE: u32 = 11;

pub fn trials() -> Vec<Trial> {
    vec![
        Need::Browser.trial("lanes::the_address_lights_one", || lights("", "#lane=11", Some(LANE))),
        Need::Browser.trial("lanes::a_click_lights_one", || lights(CLICK, "", Some(LANE))),
        Need::Browser.trial("lanes::pointing_away_leaves_the_chosen_one", || {
            lights(POINT_AWAY, "#lane=11", Some(LANE))
        }),
        Need::Browser.trial("lanes::the_range_lights_one", || lights(RANGE, "#lane=3", Some(LANE))),
        Need::Browser.trial("lanes::escape_puts_it_out", || lights(ESCAPE, "#lane=11", None)),
        Need::Browser.trial("lanes::no_other_address_does", || lights("", "#lane=32", None)),
    ]
}

/// Clicks a cell that is of the lane alone.
const CLICK: &str = r##"
    const cell = [...document.querySelectorAll(".grid tbody td")].find((cell) => cell.textContent === "11");
    cell.dispatchEvent(new PointerEvent("click", { bubbles: true }));
    if (location.hash !== "#lane=11") throw new Error(location.hash);"##;
/// Points at another lane's, which lights that, and away.
const POINT_AWAY: &str = r##"
    const cell = [...document.querySelectorAll(".grid tbody td")].find((cell) => cell.textContent === "5");
    cell.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
    if (document.body.dataset.lit !== "5") throw new Error("not lit");
    document.querySelector("h1").dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));"##;
/// The range's own keys end in this event.
const RANGE: &str = r##"
    const range = document.getElementById("lane");
    range.focus();
    range.stepUp(8);
    range.dispatchEvent(new Event("input", { bubbles: true }));
    if (location.hash !== "#lane=11") throw new Error(location.hash);"##;
const ESCAPE: &str = r##"
    const range = document.getElementById("lane");
    range.focus();
    range.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
    if (location.hash !== "") throw new Error(location.hash);"##;

/// After what a script does at an address, what is lit is the lane's.
fn lights(script: &str, address: &str, lane: Option<u32>) -> Result<(), Failed> {
    let (ladder, stage, name) = STAGE;
    // A page that something is done to may run a second script.
    let html = match script {
        "" => page(name)?.to_owned(),
        script => without_policy(page(name)?)?
            .replace("</body>", &format!("<script>{script}</script></body>")),
    };
    let output = browse(name, &html, address, &["--dump-dom"])?;
    let said = String::from_utf8_lossy(&output.stderr);
    if let Some(line) = said.lines().find(|line| line.contains("CONSOLE")) {
        return Err(line.into());
    }
    let shown = String::from_utf8_lossy(&output.stdout);
    let report = report_of(ladder, stage)?;
    cells(&shown, &report, lane)?;
    tiles(&shown, &report, lane)?;
    let said = match lane {
        Some(lane) => shown.contains(&format!("data-lit=\"{lane}\"")),
        None => !shown.contains("data-lit=\""),
    };
    if said { Ok(()) } else { Err("the body says otherwise".into()) }
}

/// Cells of pictures: lit are those in which the report has the lane.
fn cells(shown: &str, report: &Report, lane: Option<u32>) -> Result<(), Failed> {
    let rows = report.accesses.iter().flat_map(|access| &access.grid.rows);
    let with_lane: BTreeSet<String> = rows
        .flat_map(|row| &row.cells)
        .filter(|cell| lane.is_some_and(|lane| cell.lanes.contains(&lane)))
        .map(|cell| cell.text())
        .collect();
    let (mut lit, mut all) = (0, 0);
    let figures = shown.split("<figure class=\"grid").skip(1);
    let figures: Vec<&str> =
        figures.filter_map(|rest| Some(rest.split_once("</figure>")?.0)).collect();
    for (classes, text) in texts(&parse(&figures.concat()), "td") {
        let is_lit = classes.iter().any(|class| class == "on");
        if is_lit != with_lane.contains(&text) {
            return Err(format!("a cell of {text:?} is lit: {is_lit}").into());
        }
        lit += usize::from(is_lit);
        all += 1;
    }
    if lane.is_some() == (lit == 0) || lit == all {
        return Err(format!("{lit} of {all} cells are lit").into());
    }
    Ok(())
}

/// Outlines of tiles: lit are those of the lane, as many as it has tiles.
fn tiles(shown: &str, report: &Report, lane: Option<u32>) -> Result<(), Failed> {
    let tiles = report.owners.iter().flat_map(|owners| &owners.tiles);
    let folded = report.folds.iter().flat_map(|folds| &folds.folded).map(|folded| &folded.tile);
    let tiles = tiles.chain(folded);
    let areas = tiles.flat_map(|tile| tile.threads.iter().chain(&tile.read));
    let expected = areas.filter(|area| Some(area.owner) == lane).count();
    let outlines = shown.split("<path class=\"").skip(1).filter_map(|path| path.split_once('>'));
    let lit = |path: &str| path.split('"').next().is_some_and(|classes| classes.ends_with(" on"));
    let lit: Vec<&str> = outlines.map(|(path, _)| path).filter(|path| lit(path)).collect();
    let of_lane =
        |path: &&&str| lane.is_some_and(|lane| path.contains(&format!("data-lane=\"{lane}\"")));
    if lit.len() != expected || lit.iter().filter(of_lane).count() != expected {
        return Err(format!("{} outlines are lit of {expected}", lit.len()).into());
    }
    Ok(())
}
