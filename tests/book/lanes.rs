//! Highlighting of lanes. A lane under the pointer, or one selected with the slider or the address,
//! is highlighted in exactly the cells in which the simulator recorded it.

use crate::browser::session::Session;
use crate::html::{parse, texts};
use crate::{page, report_of};
use gemm_book::ownership::{Area, Rect};
use gemm_book::report::Report;
use gemm_needs::Need;
use libtest_mimic::{Failed, Trial};
use std::collections::BTreeSet;

/// Stage with pictures of accesses and of tiles: ladder, number and page.
pub const STAGE: (&str, u32, &str) = ("sgemm", 16, "sgemm_16_split_fragment.html");
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
        Need::Browser.trial("lanes::it_lights_what_a_reduction_folds", || {
            let (name, page) = ("reduce_05_shuffle.html", "#lane=11");
            lights_at(("reduce", 5, name), "", page, Some(LANE))
        }),
        Need::Browser.trial("lanes::pointing_at_a_tile_lights_its_owner", points_at_tiles),
        Need::Browser.trial("lanes::no_other_address_does", || lights("", "#lane=32", None)),
    ]
}

/// Clicks a cell that belongs only to this lane.
const CLICK: &str = r##"
    const cells = [...document.querySelectorAll(".grid tbody td")];
    const cell = cells.find((cell) => cell.textContent === "11");
    cell.dispatchEvent(new PointerEvent("click", { bubbles: true }));
    if (location.hash !== "#lane=11") throw new Error(location.hash);"##;
/// Points at the cell of another lane, which highlights that lane, and then at no cell.
const POINT_AWAY: &str = r##"
    const cells = [...document.querySelectorAll(".grid tbody td")];
    const cell = cells.find((cell) => cell.textContent === "5");
    cell.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
    if (document.body.dataset.lit !== "5") throw new Error("not lit");
    const title = document.querySelector("h1");
    title.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));"##;
/// Sets the slider by script. Keys on the slider fire the same event.
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

/// Runs a script at an address, then compares the highlights with those of the lane.
fn lights(script: &str, address: &str, lane: Option<u32>) -> Result<(), Failed> {
    lights_at(STAGE, script, address, lane)
}

fn lights_at(
    (ladder, stage, name): (&'static str, u32, &str),
    script: &str,
    address: &str,
    lane: Option<u32>,
) -> Result<(), Failed> {
    let shown = after(name, script, address)?;
    let report = report_of(ladder, stage)?;
    cells(&shown, &report, lane)?;
    tiles(&shown, &report, lane)?;
    let said = match lane {
        Some(lane) => shown.contains(&format!("data-lit=\"{lane}\"")),
        None => !shown.contains("data-lit=\""),
    };
    if said { Ok(()) } else { Err("the attribute of the body differs".into()) }
}

/// Points at the first and the last element of the lane in each tile. The lane is then highlighted,
/// and the element is inside the filled area. If the pointer is outside of the tiles, nothing is
/// highlighted.
fn points_at_tiles() -> Result<(), Failed> {
    let (ladder, stage, name) = STAGE;
    let report = report_of(ladder, stage)?;
    let owners = report.owners.as_ref().ok_or("no owners")?;
    for (tile, drawn) in owners.tiles.iter().zip(owners.picture().tiles) {
        let own = of_lane(&tile.threads, LANE, drawn.at);
        let ends = own
            .first()
            .zip(own.last())
            .ok_or_else(|| format!("nothing of {} is the lane's", tile.name))?;
        for (x, y) in [ends.0, ends.1] {
            let shown = done(name, "", |session| {
                let place = session.value(&format!(
                    "{{ const svg = document.querySelector('.owners svg');
                     svg.scrollIntoView({{ block: 'center' }});
                     const place = new DOMPoint({x}.5, {y}.5);
                     const point = place.matrixTransform(svg.getScreenCTM());
                     [point.x, point.y]; }}"
                ))?;
                session.point(serde_json::from_value(place)?)?;
                let filled = session.value(&format!(
                    "[...document.querySelector('.owners svg').querySelectorAll('path.own.on')]
                     .filter((path) => path.isPointInFill(new DOMPoint({x}.5, {y}.5)))
                     .map((path) => path.dataset.lane)"
                ))?;
                match filled == serde_json::json!([LANE.to_string()]) {
                    true => Ok(()),
                    false => Err(format!("{} at {x} {y}: filled are {filled}", tile.name).into()),
                }
            })?;
            tiles(&shown, &report, Some(LANE))?;
        }
    }
    let shown = done(name, "", |session| {
        session.click_on("document.querySelector('h1')")?;
        Ok(())
    })?;
    if shown.contains("data-lit=") { Err("lit beside the tiles".into()) } else { Ok(()) }
}

/// HTML of a page after a script has run at an address.
pub fn after(name: &str, script: &str, address: &str) -> Result<String, Failed> {
    done(name, address, |session| session.value(&format!("{{ {script} }}")).map(drop))
}

/// HTML of a page after an action at an address.
pub fn done(
    name: &str,
    address: &str,
    act: impl FnOnce(&mut Session) -> Result<(), Failed>,
) -> Result<String, Failed> {
    let mut session = Session::start()?;
    session.size(1280, 800)?;
    session.open(name, page(name)?, address)?;
    act(&mut session)?;
    match session.complaints() {
        [] => session.shown(),
        said => Err(said.join("\n").into()),
    }
}

/// Checks that the highlighted cells of pictures are those that contain the lane in the report.
fn cells(shown: &str, report: &Report, lane: Option<u32>) -> Result<(), Failed> {
    let accesses = report.accesses.iter().chain(report.beside.iter().flat_map(|both| &both.ways));
    let grids = accesses.flat_map(|access| {
        [Some(&access.grid), access.suggestion.as_ref().map(|of| &of.grid)].into_iter().flatten()
    });
    let rows = grids.flat_map(|grid| &grid.rows);
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
            return Err(format!("a cell of {text:?} is highlighted: {is_lit}").into());
        }
        lit += usize::from(is_lit);
        all += 1;
    }
    if lane.is_some() == (lit == 0) || lit == all {
        return Err(format!("{lit} of {all} cells are highlighted").into());
    }
    Ok(())
}

/// Cells of a picture, by column and row.
pub type Cells = BTreeSet<(u64, u64)>;

/// Paths of a page with these classes, each as the cells that it encloses.
pub fn paths(shown: &str, classes: &str) -> Vec<Cells> {
    let path = |rest: &str| {
        Some(covered(rest.split_once('>')?.0.split_once(" d=\"")?.1.split_once('"')?.0))
    };
    shown.split(&format!("<path class=\"{classes}\"")).skip(1).filter_map(path).collect()
}

/// Cells of an outline of rectangles such as `M2 3h4v5h-4z`.
fn covered(outline: &str) -> Cells {
    let cells = |rect: &str| {
        let numbers = rect.split(['M', ' ', 'h', 'v', 'z']).filter_map(|part| part.parse().ok());
        let [x, y, width, height] = numbers.take(4).collect::<Vec<u64>>()[..] else {
            return Vec::new();
        };
        (y..y + height).flat_map(|y| (x..x + width).map(move |x| (x, y))).collect()
    };
    outline.split_inclusive('z').flat_map(cells).collect()
}

/// Cells of a lane within some areas, in a picture with origin `at`.
pub fn of_lane(areas: &[Area], lane: u32, at: [u64; 2]) -> Cells {
    let rects = areas.iter().filter(|area| area.owner == lane).flat_map(|area| &area.rects);
    let cells = |rect: &Rect| {
        let Rect { x, y, width, height } = *rect;
        (y..y + height).flat_map(move |y| (x..x + width).map(move |x| (x, y)))
    };
    rects.flat_map(cells).map(|(x, y)| (x + at[0], y + at[1])).collect()
}

/// Checks the outlines in tiles and in their copies in shared memory. The highlighted elements must
/// be those that the lane owns and reads.
fn tiles(shown: &str, report: &Report, lane: Option<u32>) -> Result<(), Failed> {
    let mut expected: [Vec<Cells>; 2] = Default::default();
    let mut expect = |threads: &[Area], read: &[Area], at: [u64; 2]| {
        for (all, areas) in expected.iter_mut().zip([threads, read]) {
            let cells = lane.map(|lane| of_lane(areas, lane, at)).unwrap_or_default();
            all.extend(Some(cells).filter(|cells| !cells.is_empty()));
        }
    };
    if let Some(owners) = &report.owners {
        for (tile, drawn) in owners.tiles.iter().zip(owners.picture().tiles) {
            expect(&tile.threads, &tile.read, drawn.at);
        }
        let held = owners.tiles.iter().filter_map(|tile| tile.held.as_ref());
        for (held, drawn) in held.zip(owners.held_picture().into_iter().flat_map(|all| all.tiles)) {
            expect(&held.threads, &held.read, drawn.at);
        }
    }
    for folded in report.folds.iter().flat_map(|folds| &folds.folded) {
        expect(&folded.tile.threads, &[], folded.picture().tiles[0].at);
    }
    for (classes, mut expected) in ["own on", "reads on"].into_iter().zip(expected) {
        let mut lit = paths(shown, classes);
        lit.sort();
        expected.sort();
        if lit != expected {
            return Err(format!("{classes}: {lit:?} is highlighted instead of {expected:?}").into());
        }
    }
    Ok(())
}
