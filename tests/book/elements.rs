//! Marking of elements. An element under the pointer, or one selected by a click, an input or the
//! address, is marked in every picture. The page lists the lanes that copy and read it.

use crate::html::{parse, texts};
use crate::lanes::{Cells, STAGE, after, of_lane, paths};
use crate::report_of;
use gemm_book::ownership::{OwnedTile, Ownership};
use gemm_needs::Need;
use libtest_mimic::{Failed, Trial};

/// One element of each tile, as row and column relative to the tile's first element.
const ELEMENTS: [(&str, [u64; 2]); 3] = [("A", [37, 5]), ("B", [3, 90]), ("C", [70, 21])];

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        Need::Browser.trial("elements::a_click_marks_one", || marks(By::Click, ELEMENTS[0])),
        Need::Browser
            .trial("elements::a_click_in_shared_memory_does", || marks(By::Held, ELEMENTS[1])),
        Need::Browser.trial("elements::fields_mark_one", || marks(By::Fields, ELEMENTS[1])),
        Need::Browser.trial("elements::no_other_address_does", || {
            let shown = after(STAGE.2, "", "#element=A,5000,0")?;
            if shown.contains("class=\"mark\"") { Err("marked".into()) } else { Ok(()) }
        }),
    ];
    trials.extend(ELEMENTS.map(|element| {
        let name = format!("elements::the_address_marks_one_of_{}", element.0);
        Need::Browser.trial(name, move || marks(By::Address, element))
    }));
    trials
}

#[derive(Clone, Copy, PartialEq)]
enum By {
    Address,
    Click,
    Held,
    Fields,
}

/// Origins of a tile in the picture of the matrices and in the picture of shared memory.
fn begins(owners: &Ownership, name: &str) -> Result<([u64; 2], Option<[u64; 2]>), Failed> {
    let tile = owners.picture().tiles.into_iter().find(|tile| tile.name == name);
    let held =
        owners.tiles.iter().filter(|tile| tile.held.is_some()).position(|of| of.name == name);
    let held = held.and_then(|at| Some(owners.held_picture()?.tiles.get(at)?.at));
    Ok((tile.ok_or("no such tile")?.at, held))
}

/// Checks the frames of the first 32 lanes: a lane's elements of C are framed if and only if the
/// lane reads the marked element of A or B.
fn marks(by: By, (name, [row, column]): (&str, [u64; 2])) -> Result<(), Failed> {
    let (ladder, stage, page) = STAGE;
    let report = report_of(ladder, stage)?;
    let owners = report.owners.as_ref().ok_or("no owners")?;
    let find =
        |name: &str| owners.tiles.iter().find(|tile| tile.name == name).ok_or("no such tile");
    let tile: &OwnedTile = find(name)?;
    let (at, held_at) = begins(owners, name)?;
    let element = (column + at[0], row + at[1]);
    let [y, x] = [tile.origin[0] + row, tile.origin[1] + column];
    let address = format!("element={name},{y},{x}");
    // The position of the element in shared memory follows from the lanes that read it there.
    let lies = |shown: &str| -> Vec<Cells> { paths(shown, "mark") };
    let click = |picture: usize, (x, y): (u64, u64)| {
        format!(
            "const svg = document.querySelectorAll(\".owners svg\")[{picture}]; const box = \
             svg.getScreenCTM(); const point = new DOMPoint({x}.5, {y}.5).matrixTransform(box); \
             svg.dispatchEvent(new PointerEvent(\"click\", {{ bubbles: true, clientX: point.x, \
             clientY: point.y }}));"
        )
    };
    let shown = match by {
        By::Address => after(page, "", &format!("#{address}"))?,
        By::Click => after(page, &click(0, element), "")?,
        By::Held => {
            let known = after(page, "", &format!("#{address}"))?;
            let marked = lies(&known);
            let at = marked.last().and_then(|cells| cells.first()).ok_or("it lies nowhere")?;
            after(page, &click(1, *at), "")?
        }
        By::Fields => {
            let script = format!(
                "const set = (id, value) => {{ const field = document.getElementById(id); \
                 field.value = value; }}; set(\"element-tile\", \"{name}\"); set(\"element-row\", \
                 {y}); set(\"element-column\", {x}); \
                 document.getElementById(\"element-column\").dispatchEvent(new Event(\"input\", \
                 {{ bubbles: true }}));"
            );
            after(page, &script, "")?
        }
    };
    if !shown.contains(&format!("data-element=\"{name},{y},{x}\"")) {
        return Err("the attribute of the body differs".into());
    }
    let marked = lies(&shown);
    if marked.first() != Some(&Cells::from([element])) {
        return Err(format!("marked is {marked:?}").into());
    }
    let said = texts(&parse(&shown), "output").into_iter().map(|(_, text)| text);
    let said = said.into_iter().find(|text| text.starts_with(&format!("{name} ({y}, {x}): ")));
    let said = said.ok_or("nothing is said of it")?;
    let is_of = |areas, lane, at, cell: (u64, u64)| of_lane(areas, lane, at).contains(&cell);
    if let Some(lane) = (0..32).find(|lane| is_of(&tile.threads, *lane, at, element))
        && !said.contains(&format!(" by lane {lane} of warp 0"))
    {
        return Err(said.into());
    }
    let c = find("C")?;
    let (at_c, _) = begins(owners, "C")?;
    let uses = paths(&shown, "uses");
    if name == "C" {
        // For an element of C, a row of A, a column of B, and their copies in shared memory are
        // marked.
        let sizes: Vec<usize> = uses.iter().map(Cells::len).collect();
        let terms = [find("A")?.extents[1] as usize, find("B")?.extents[0] as usize];
        let expected = [terms, terms].concat();
        return if sizes == expected { Ok(()) } else { Err(format!("{sizes:?}").into()) };
    }
    let held = tile.held.as_ref().ok_or("not copied")?;
    let [_, lies] = &marked[..] else { return Err("not marked in shared memory".into()) };
    let lies = *lies.first().ok_or("nothing is marked")?;
    let (x, y) = (lies.0 - held_at.unwrap_or_default()[0], lies.1 - held_at.unwrap_or_default()[1]);
    if !said.contains(&format!("in row {y}, column {x} of {}", held.name)) {
        return Err(said.into());
    }
    let [uses] = &uses[..] else { return Err(format!("{} frames", uses.len()).into()) };
    for lane in 0..32 {
        let reads = is_of(&tile.read, lane, at, element);
        let reads_there = is_of(&held.read, lane, held_at.unwrap_or_default(), lies);
        let stores = of_lane(&c.threads, lane, at_c);
        let is_framed = !stores.is_empty() && stores.is_subset(uses);
        if [reads_there, is_framed] != [reads; 2] || (!reads && !stores.is_disjoint(uses)) {
            return Err(format!("lane {lane} reads it: {reads}, {reads_there}, {is_framed}").into());
        }
    }
    if !said.contains(&format!("read {} times, by ", tile.reads[0])) {
        return Err(said.into());
    }
    Ok(())
}
