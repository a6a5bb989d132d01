//! How a tile lies in shared memory: eight of its rows, in parts of 16 bytes, over the eight groups of four banks.

use super::{Contradiction, extents};
use gemm_dsl::ir::Kernel;
use gemm_runtime::watch::{Action, BoxCopy, Kind, Operand, Trace};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Groups of four banks: parts of 16 bytes that one wavefront moves.
pub const GROUPS: u32 = 8;
/// Bytes of a part.
const PART: u32 = 16;
/// The rows of a tile that are shown: those that a swizzle tells apart.
pub const ROWS: u32 = 8;

/// How a tile lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SwizzledTile {
    /// The arrays that lie so.
    pub arrays: Vec<String>,
    /// Bytes of a row of the tile.
    pub row: u32,
    /// What the instruction is given to find the tile.
    pub descriptor: u64,
    /// Whether copies of boxes write it; else threads do.
    pub is_boxed: bool,
    /// By row of the tile and group of banks.
    pub cells: Vec<Vec<Option<SwizzleCell>>>,
    /// The same as it would be without a swizzle: the part.
    pub plain: Vec<Vec<Option<u32>>>,
    /// Wavefronts that the same part of eight rows takes: so, and without a swizzle.
    pub wavefronts: [u64; 2],
}

/// Sixteen bytes of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SwizzleCell {
    /// Which part of the row it is.
    pub part: u32,
    /// The first of the instructions on this tile that reads it.
    pub instruction: Option<u32>,
    /// The thread that has stored it.
    pub thread: Option<u32>,
}

impl SwizzledTile {
    /// Where a part goes, as a formula.
    pub fn formula(&self) -> &'static str {
        match self.descriptor >> 62 {
            1 => "position = c xor (row mod 8)",
            2 => "position in its half = c xor (⌊row / 2⌋ mod 4)",
            3 => "position in its quarter = c xor (⌊row / 4⌋ mod 2)",
            _ => "position = c",
        }
    }

    /// The wavefronts that the same part of eight rows takes, in words: so, and without a swizzle.
    pub fn takes(&self) -> [String; 2] {
        self.wavefronts
            .map(|n| if n == 1 { "1 wavefront".to_owned() } else { format!("{n} wavefronts") })
    }

    /// What the descriptor says, field by field.
    pub fn fields(&self) -> [(&'static str, String); 4] {
        let field = |from: u32| (self.descriptor >> from & 0x3fff) << 4;
        let mode = ["none", "128 bytes", "64 bytes", "32 bytes"];
        [
            ("start", format!("byte {}", field(0))),
            ("leading offset, which a swizzled tile does not use", format!("{} bytes", field(16))),
            ("from eight rows to the next eight", format!("{} bytes", field(32))),
            ("swizzle", mode[(self.descriptor >> 62) as usize].to_owned()),
        ]
    }

    /// The rows of the picture as text: for each row of the tile what lies in each group.
    pub fn rows(&self) -> Vec<String> {
        let text =
            |cell: &Option<SwizzleCell>| cell.map_or("·".to_owned(), |cell| cell.part.to_string());
        self.cells.iter().map(|row| row.iter().map(text).collect::<Vec<_>>().join(" ")).collect()
    }
}

/// Each way in which tiles of matrix instructions lie.
pub(super) fn all(kernel: &Kernel, trace: &Trace) -> Result<Vec<SwizzledTile>, Contradiction> {
    let mut found: Vec<SwizzledTile> = Vec::new();
    for (buffer, operands) in first_tiles(kernel, trace)? {
        let swizzled = TileTrace::new(kernel, trace, buffer, &operands)?.swizzled()?;
        match found.iter_mut().find(|other| looks_like(other, &swizzled)) {
            Some(other) => other.arrays.extend(swizzled.arrays),
            None => found.push(swizzled),
        }
    }
    Ok(found)
}

/// By array, the operands that are parts of its first tile: each with another column of it.
fn first_tiles<'t>(
    kernel: &Kernel,
    trace: &'t Trace,
) -> Result<BTreeMap<usize, Vec<&'t Operand>>, Contradiction> {
    // Of a box of several planes the first rows are known, which need not be those that are multiplied first.
    let boxed = trace.details.iter().filter_map(|detail| match &detail.did {
        Action::BoxCopy(boxed) => Some((boxed.to, boxed.first)),
        _ => None,
    });
    let boxed: BTreeSet<(usize, u32)> = boxed.collect();
    let is_known = |operand: &Operand| {
        let size = kernel.buffers[operand.buffer].elem.size();
        let begins_a_box = boxed.contains(&(operand.buffer, operand.first - operand.column / size));
        begins_a_box || boxed.iter().all(|(buffer, _)| *buffer != operand.buffer)
    };
    let mut first = None;
    let mut tiles: BTreeMap<usize, Vec<&Operand>> = BTreeMap::new();
    for detail in &trace.details {
        let Action::Multiplied { a, b, .. } = &detail.did else { continue };
        let warp = (detail.rank, detail.warp);
        if *first.get_or_insert(warp) != warp {
            continue;
        }
        for operand in [a, b] {
            let tile = tiles.entry(operand.buffer).or_default();
            let is_same_row = tile.first().is_none_or(|first| start(first) == start(operand));
            let is_new = tile.iter().all(|other| other.column != operand.column);
            if is_known(operand) && is_same_row && is_new {
                tile.push(operand);
            }
        }
    }
    match tiles.iter().find(|(_, tile)| tile.is_empty()) {
        Some((buffer, _)) => {
            Err(Contradiction::NoBeginning { array: kernel.buffers[*buffer].name.clone() })
        }
        None => Ok(tiles),
    }
}

/// The address of the first row of a tile.
fn start(operand: &Operand) -> u32 {
    operand.parts.first().map_or(0, |at| at - operand.column)
}

fn looks_like(one: &SwizzledTile, other: &SwizzledTile) -> bool {
    let places = |of: &SwizzledTile| -> Vec<Option<(u32, Option<u32>)>> {
        of.cells.iter().flatten().map(|cell| cell.map(|c| (c.part, c.instruction))).collect()
    };
    (one.row, one.is_boxed) == (other.row, other.is_boxed) && places(one) == places(other)
}

/// A part of a tile: its row, and which 16 bytes of that.
type TilePart = (u32, u32);

/// The first rows of a tile, as they were written and read.
struct TileTrace {
    array: String,
    /// Bytes of a row.
    row: u32,
    /// The address of the first.
    start: u32,
    descriptor: u64,
    is_boxed: bool,
    /// Where each part lies, and the first instruction that reads it.
    places: BTreeMap<TilePart, (u32, Option<u32>)>,
    /// The thread that stored each address first, where threads do.
    threads: BTreeMap<u32, u32>,
}

impl TileTrace {
    /// The tile of an array that these operands are parts of.
    fn new(
        kernel: &Kernel,
        trace: &Trace,
        buffer: usize,
        operands: &[&Operand],
    ) -> Result<Self, Contradiction> {
        let declared = &kernel.buffers[buffer];
        let (array, size) = (declared.name.clone(), declared.elem.size());
        let elements = extents(kernel, buffer).and_then(|extents| extents.last().copied());
        let row = elements.and_then(|elements| u32::try_from(elements).ok()).zip(operands.first());
        let no_rows = || Contradiction::NoRows { array: array.clone() };
        let (elements, own) = row.ok_or_else(no_rows)?;
        let first = own.first - own.column / size;
        let boxed = trace.details.iter().find_map(|detail| match &detail.did {
            Action::BoxCopy(boxed) if (boxed.to, boxed.first) == (buffer, first) => Some(boxed),
            _ => None,
        });
        let mut tile = Self {
            row: elements * size,
            start: start(own),
            descriptor: own.descriptor,
            is_boxed: boxed.is_some(),
            places: read(operands),
            threads: BTreeMap::new(),
            array,
        };
        match boxed {
            Some(boxed) => tile.is_written_by(boxed, size)?,
            None => tile.threads = threads(trace, buffer, tile.start, first, size),
        }
        Ok(tile)
    }

    /// A box writes it: what no instruction reads is there all the same, and what one does lies where it reads.
    fn is_written_by(&mut self, boxed: &BoxCopy, size: u32) -> Result<(), Contradiction> {
        let row = boxed.tile.last().and_then(|extent| u32::try_from(*extent).ok()).unwrap_or(0);
        if row * size != self.row {
            let (array, written, read) = (self.array.clone(), row * size, self.row);
            return Err(Contradiction::OtherRows { array, written, read });
        }
        let of_row = (self.row / PART).max(1);
        for (at, written) in (0..).zip(boxed.parts.iter().copied()) {
            let (row, part) = (at / of_row, at % of_row);
            let (read, _) = *self.places.entry((row, part)).or_insert((written, None));
            if read != written {
                let array = self.array.clone();
                return Err(Contradiction::OtherAddress { array, row, part, written, read });
            }
        }
        Ok(())
    }

    /// Its picture.
    fn swizzled(self) -> Result<SwizzledTile, Contradiction> {
        let mut cells = vec![vec![None; GROUPS as usize]; ROWS as usize];
        let mut plain = vec![vec![None; GROUPS as usize]; ROWS as usize];
        let group = |at: u32| (at / PART % GROUPS) as usize;
        for (&(row, part), &(address, instruction)) in &self.places {
            let no_row = || Contradiction::NoRow { array: self.array.clone(), row, rows: ROWS };
            let line = row as usize;
            let (own, other) = cells.get_mut(line).zip(plain.get_mut(line)).ok_or_else(no_row)?;
            let thread = self.threads.get(&address).copied();
            own[group(address)] = Some(SwizzleCell { part, instruction, thread });
            other[group(self.start + row * self.row + part * PART)] = Some(part);
        }
        let parts =
            |row: &Vec<Option<SwizzleCell>>| row.iter().map(|cell| cell.map(|c| c.part)).collect();
        let wavefronts =
            [wavefronts(&cells.iter().map(parts).collect::<Vec<_>>()), wavefronts(&plain)];
        Ok(SwizzledTile {
            arrays: vec![self.array],
            row: self.row,
            descriptor: self.descriptor,
            is_boxed: self.is_boxed,
            cells,
            plain,
            wavefronts,
        })
    }
}

/// Where each part of the first rows is read, and by the first of which instructions.
fn read(operands: &[&Operand]) -> BTreeMap<TilePart, (u32, Option<u32>)> {
    let mut places = BTreeMap::new();
    for (number, operand) in (0..).zip(operands) {
        let of_row = (operand.bytes / PART).max(1);
        for (at, address) in (0..).zip(&operand.parts) {
            let part = operand.column / PART + at % of_row;
            places.insert((at / of_row, part), (*address, Some(number)));
        }
    }
    places
}

/// The wavefronts that the same part of all rows takes: so often the most of them are in one group of banks.
fn wavefronts(rows: &[Vec<Option<u32>>]) -> u64 {
    let most = |group: usize| {
        let mut times: BTreeMap<u32, u64> = BTreeMap::new();
        rows.iter().filter_map(|row| row[group]).for_each(|part| {
            *times.entry(part).or_default() += 1;
        });
        times.values().copied().max().unwrap_or(0)
    };
    (0..GROUPS as usize).map(most).max().unwrap_or(0)
}

/// The threads that stored 16 bytes at an address first; element `first` of the array lies at `start`.
fn threads(trace: &Trace, buffer: usize, start: u32, first: u32, size: u32) -> BTreeMap<u32, u32> {
    let mut threads = BTreeMap::new();
    for access in trace.accesses() {
        let pattern = access.pattern;
        if pattern.buffer != buffer || pattern.kind != Kind::Store || pattern.bytes != PART {
            continue;
        }
        for (lane, at) in (0..).zip(&pattern.lanes) {
            let Some(at) = at else { continue };
            let element = i64::from(access.first) + i64::from(*at) - i64::from(first);
            if let Ok(address) = u32::try_from(i64::from(start) + element * i64::from(size)) {
                threads.entry(address).or_insert(access.event.warp * 32 + lane);
            }
        }
    }
    threads
}
