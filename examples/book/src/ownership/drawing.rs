//! Pictures of the tiles. A is drawn to the left of C and B above it, so that rows and columns line
//! up. A second picture shows A and B in shared memory.

use super::{OwnedTile, Ownership, SharedTile};
use crate::ownership::rectangles::{Area, Rect, outline};
use crate::wgmma::ranges;

/// Maximum width and height of a picture, and maximum font size, in pixels.
const PIXELS: [u64; 2] = [1000, 640];
const LETTERS: u64 = 14;
/// Maximum number of warp rectangles drawn for a tile.
const MOST_RECTS: usize = 600;
/// Number of threads whose owned elements are drawn without the script, and number whose read
/// elements are drawn.
const OWN: u32 = 2;
const READ: u32 = 1;

/// Picture of tiles, in units of elements.
pub struct TilePicture {
    /// Width and height in elements.
    pub extents: [u64; 2],
    /// Width and height in pixels.
    pub pixels: [u64; 2],
    /// Font size, in units of elements.
    pub letters: u64,
    pub tiles: Vec<PlacedTile>,
}

/// Tile at its position in a picture.
pub struct PlacedTile {
    /// Name of the matrix, or of the array in shared memory.
    pub name: String,
    /// Attributes for the script of the page, each as name and value.
    pub told: Vec<(&'static str, String)>,
    /// First column and first row.
    pub at: [u64; 2],
    /// Number of columns and rows.
    pub extents: [u64; 2],
    /// SVG outlines of warps, each as class and path.
    pub outlines: Vec<(String, String)>,
    /// SVG outlines of the TMA boxes.
    pub boxes: Vec<String>,
    /// SVG outlines of the elements that a thread reads, by thread.
    pub read: Vec<(u32, String)>,
    /// SVG outlines of the elements that a thread owns, by thread.
    pub owned: Vec<(u32, String)>,
    /// Labels with their x and y: the name of the matrix and the numbers of warps.
    pub labels: Vec<(String, String, String)>,
}

/// Position of the name of a tile.
#[derive(Clone, Copy)]
enum Side {
    Above,
    Left,
    Corner,
}

/// Content of a drawn tile.
struct TileView<'t> {
    name: &'t str,
    side: Side,
    /// Number of rows and columns.
    extents: [u64; 2],
    warps: &'t [Area],
    threads: &'t [Area],
    read: &'t [Area],
}

impl Ownership {
    /// Draws the tiles of the matrices.
    pub fn picture(&self) -> TilePicture {
        let of = |name| self.tiles.iter().find(|tile| tile.name == name);
        let extent = |name, side: usize| of(name).map_or(0, |tile: &OwnedTile| tile.extents[side]);
        let letters = letters(self.tiles.iter().map(|tile| tile.extents));
        let gap = 2 * letters;
        // K of A points right and K of B points down, so that both end at C.
        let corner = [extent("A", 1) + gap, extent("B", 0) + gap];
        let at = |tile: &OwnedTile| match &*tile.name {
            "A" => [0, corner[1]],
            "B" => [corner[0], 0],
            _ => corner,
        };
        picture(self.tiles.iter().map(|tile| of_tile(tile, at(tile), letters)).collect(), letters)
    }

    /// Draws the tiles in shared memory, if threads copy elements there.
    pub fn held_picture(&self) -> Option<TilePicture> {
        let held = || self.tiles.iter().filter_map(|tile| Some((tile, tile.held.as_ref()?)));
        let letters = letters(held().map(|(_, held)| held.extents));
        // Tiles are side by side if all are higher than wide, otherwise stacked.
        let are_high = held().all(|(_, held)| held.extents[0] > held.extents[1]);
        let mut at = [0, 2 * letters];
        let mut drawn = Vec::new();
        for (tile, held) in held() {
            drawn.push(of_held(tile, held, at, letters));
            let side = usize::from(!are_high);
            at[side] += held.extents[1 - side] + 2 * letters;
        }
        (!drawn.is_empty()).then(|| picture(drawn, letters))
    }
}

/// Draws a single tile.
pub(super) fn alone(tile: &OwnedTile) -> TilePicture {
    let letters = letters([tile.extents].into_iter());
    picture(vec![of_tile(tile, [2 * letters; 2], letters)], letters)
}

/// Font size for tiles of these extents.
fn letters(extents: impl Iterator<Item = [u64; 2]>) -> u64 {
    extents.flatten().max().unwrap_or(1).div_ceil(48).max(1)
}

fn picture(tiles: Vec<PlacedTile>, letters: u64) -> TilePicture {
    let end = |side: usize| tiles.iter().map(|t| t.at[side] + t.extents[side]).max().unwrap_or(1);
    let extents = [end(0), end(1)];
    let is_wide = extents[0] * PIXELS[1] > extents[1] * PIXELS[0];
    let side = usize::from(!is_wide);
    let fitted = |extent: u64| (extent * PIXELS[side]).div_ceil(extents[side].max(1));
    let pixels = extents.map(|extent| fitted(extent).min((extent * LETTERS).div_ceil(letters)));
    TilePicture { extents, pixels, letters, tiles }
}

/// Formats numbers for the script of a page.
fn numbers(all: &[u64]) -> String {
    all.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
}

fn of_tile(tile: &OwnedTile, at: [u64; 2], letters: u64) -> PlacedTile {
    let side = match &*tile.name {
        "A" => Side::Above,
        "B" => Side::Left,
        _ => Side::Corner,
    };
    let OwnedTile { name, extents, warps, threads, read, .. } = tile;
    let shown = TileView { name, side, extents: *extents, warps, threads, read };
    let mut drawn = drawn(&shown, at, letters);
    if let Some(role) = &tile.role {
        drawn.boxes = role.boxes.iter().map(|of| outline(&[*of], at)).collect();
        for (warps, rects) in &role.read {
            let first = warps.first().copied().unwrap_or(0);
            // A region that all warps read has the first colour.
            let shade = if role.read.len() == 1 { 0 } else { first % 4 };
            drawn.outlines.push((format!("w{shade} edge"), outline(rects, at)));
            drawn.labels.extend(number(rects, at, ranges(warps.iter().copied())));
        }
    }
    if tile.owner.is_some() || tile.group.is_some() {
        drawn.told.push(("tile", tile.name.clone()));
        drawn.told.push(("at", numbers(&[at, [extents[1], extents[0]], tile.origin].concat())));
        let verb = tile.moved.split(' ').next().unwrap_or_default();
        drawn.told.push(("verb", verb.to_owned()));
    }
    drawn.told.extend(tile.owner.iter().map(|law| ("owner", law.text())));
    drawn.told.extend(tile.group.iter().map(|law| ("group", law.text())));
    let readers: Option<Vec<String>> =
        tile.groups.iter().map(|group| Some(group.readers.as_ref()?.bits())).collect();
    drawn.told.extend(
        readers.filter(|all| !all.is_empty()).map(|readers| ("readers", readers.join("|"))),
    );
    let reads: Vec<u64> = tile.groups.iter().map(|group| group.reads).collect();
    if !reads.is_empty() {
        let is_one = reads.iter().all(|n| *n == reads[0]);
        drawn.told.push(("reads", numbers(if is_one { &reads[..1] } else { &reads })));
    }
    if let Some(held) = &tile.held {
        drawn.told.push(("lies", held.placement.text()));
    }
    // If an element has several owners, the formula gives only the first.
    if tile.owner.is_some() && tile.owners != [1, 1] {
        drawn.told.push(("owned", tile.owned()));
    }
    drawn
}

fn of_held(tile: &OwnedTile, held: &SharedTile, at: [u64; 2], letters: u64) -> PlacedTile {
    let SharedTile { name, extents, warps, threads, read, .. } = held;
    let side = Side::Above;
    let mut drawn =
        drawn(&TileView { name, side, extents: *extents, warps, threads, read }, at, letters);
    drawn.told.push(("holds", tile.name.clone()));
    drawn.told.push(("array", name.clone()));
    drawn.told.push(("at", numbers(&[at, [extents[1], extents[0]]].concat())));
    drawn
}

fn half(twice: u64) -> String {
    format!("{}{}", twice / 2, if twice.is_multiple_of(2) { "" } else { ".5" })
}

fn label(twice: [u64; 2], text: String) -> (String, String, String) {
    (half(twice[0]), half(twice[1]), text)
}

/// Shorter side of a rectangle.
fn least(rect: &Rect) -> u64 {
    rect.width.min(rect.height)
}

/// Label in the centre of the largest rectangle.
fn number(rects: &[Rect], at: [u64; 2], text: String) -> Option<(String, String, String)> {
    let rect = rects.iter().max_by_key(|rect| (least(rect), rect.width * rect.height))?;
    let [left, top] = at.map(|start| 2 * start);
    Some(label([left + 2 * rect.x + rect.width, top + 2 * rect.y + rect.height], text))
}

fn drawn(shown: &TileView<'_>, at: [u64; 2], letters: u64) -> PlacedTile {
    let [rows, columns] = shown.extents;
    let [left, top] = at.map(|start| 2 * start);
    let place = match shown.side {
        Side::Above => [left + columns, top.saturating_sub(2 * letters)],
        Side::Left => [left.saturating_sub(2 * letters), top + rows],
        Side::Corner => [left.saturating_sub(2 * letters), top.saturating_sub(2 * letters)],
    };
    let name = Some(shown.name.to_owned()).filter(|name| !name.is_empty());
    let mut labels: Vec<_> = name.map(|name| label(place, name)).into_iter().collect();
    let mut outlines = Vec::new();
    let all = || shown.warps.iter().flat_map(|area| &area.rects);
    let edge = if all().all(|rect| 2 * least(rect) >= letters) { " edge" } else { "" };
    if all().count() <= MOST_RECTS {
        for area in shown.warps {
            outlines.push((format!("w{}{edge}", area.owner % 4), outline(&area.rects, at)));
            // A number is drawn only in a rectangle that is large enough.
            let fits: Vec<Rect> =
                area.rects.iter().filter(|rect| least(rect) >= letters).copied().collect();
            labels.extend(number(&fits, at, area.owner.to_string()));
        }
    }
    let of_threads = |areas: &[Area], below: u32| {
        let drawn = areas.iter().filter(|area| area.owner < below);
        drawn.map(|area| (area.owner, outline(&area.rects, at))).collect()
    };
    PlacedTile {
        name: shown.name.to_owned(),
        told: Vec::new(),
        at,
        extents: [columns, rows],
        outlines,
        boxes: Vec::new(),
        read: of_threads(shown.read, READ),
        owned: of_threads(shown.threads, OWN),
        labels,
    }
}
