//! Layout of a tile in shared memory: eight rows, in parts of 16 bytes, over eight groups of four
//! banks.

use super::{Contradiction, extents};
use gemm_dsl::ir::Kernel;
use gemm_runtime::sim::watch::{Action, BoxCopy, Kind, Operand, Trace};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Number of groups of four banks. A wavefront transfers one 16-byte part per group.
pub const GROUPS: u32 = 8;
/// Bytes of a part of a row.
const PART: u32 = 16;
/// Number of shown rows, which is the period of a swizzle.
pub const ROWS: u32 = 8;

/// Layout of a tile in shared memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SwizzledTile {
    /// Arrays that have this layout.
    pub arrays: Vec<String>,
    /// Bytes of a row of the tile.
    pub row: u32,
    /// Matrix descriptor of the instruction.
    pub descriptor: u64,
    /// True if TMA boxes write the tile, false if threads do.
    pub is_boxed: bool,
    /// Part at each row of the tile and group of banks.
    pub cells: Vec<Vec<Option<SwizzleCell>>>,
    /// Part at each row and group of banks without a swizzle.
    pub plain: Vec<Vec<Option<u32>>>,
    /// Wavefronts that a read of the same part of eight rows takes, with the swizzle and without.
    pub wavefronts: [u64; 2],
}

/// Sixteen bytes of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SwizzleCell {
    /// Index of the part in its row.
    pub part: u32,
    /// First instruction on this tile that reads the part.
    pub instruction: Option<u32>,
    /// Thread that stored the part.
    pub thread: Option<u32>,
}

impl SwizzledTile {
    /// Formula for the position of a part.
    pub fn formula(&self) -> &'static str {
        match self.descriptor >> 62 {
            1 => "chunk = c xor (row mod 8)",
            2 => "chunk within its half = c xor (⌊row / 2⌋ mod 4)",
            3 => "chunk within its quarter = c xor (⌊row / 4⌋ mod 2)",
            _ => "chunk = c",
        }
    }

    /// Formats the wavefronts with the swizzle and without.
    pub fn takes(&self) -> [String; 2] {
        self.wavefronts
            .map(|n| if n == 1 { "1 wavefront".to_owned() } else { format!("{n} wavefronts") })
    }

    /// Fields of the descriptor with their values.
    pub fn fields(&self) -> [(&'static str, String); 4] {
        let field = |from: u32| (self.descriptor >> from & 0x3fff) << 4;
        let mode = ["none", "128 bytes", "64 bytes", "32 bytes"];
        [
            ("start", format!("byte {}", field(0))),
            ("leading offset, unused by a swizzled tile", format!("{} bytes", field(16))),
            ("distance between groups of eight rows", format!("{} bytes", field(32))),
            ("swizzle", mode[(self.descriptor >> 62) as usize].to_owned()),
        ]
    }

    /// Formats the rows of the picture as text.
    pub fn rows(&self) -> Vec<String> {
        let text =
            |cell: &Option<SwizzleCell>| cell.map_or("·".to_owned(), |cell| cell.part.to_string());
        self.cells.iter().map(|row| row.iter().map(text).collect::<Vec<_>>().join(" ")).collect()
    }
}

/// Returns the distinct layouts of the tiles that matrix instructions read.
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

/// Returns the operands that form the first tile of each array. Each operand has different columns
/// of the tile.
fn first_tiles<'t>(
    kernel: &Kernel,
    trace: &'t Trace,
) -> Result<BTreeMap<usize, Vec<&'t Operand>>, Contradiction> {
    // For a box with several components of a split, only the first rows are recorded. They need not
    // be the rows that are multiplied first.
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

/// Address of the first row of a tile.
fn start(operand: &Operand) -> u32 {
    operand.parts.first().map_or(0, |at| at - operand.column)
}

fn looks_like(one: &SwizzledTile, other: &SwizzledTile) -> bool {
    let places = |of: &SwizzledTile| -> Vec<Option<(u32, Option<u32>)>> {
        of.cells.iter().flatten().map(|cell| cell.map(|c| (c.part, c.instruction))).collect()
    };
    (one.row, one.is_boxed) == (other.row, other.is_boxed) && places(one) == places(other)
}

/// Row, and index of the 16-byte part in it.
type TilePart = (u32, u32);

/// First rows of a tile, as written and as read.
struct TileTrace {
    array: String,
    /// Bytes of a row of the tile.
    row: u32,
    /// Address of the first row.
    start: u32,
    descriptor: u64,
    is_boxed: bool,
    /// Address of each part, and the first instruction that reads it.
    places: BTreeMap<TilePart, (u32, Option<u32>)>,
    /// First thread that stored to each address, if threads fill the tile.
    threads: BTreeMap<u32, u32>,
}

impl TileTrace {
    /// Builds a tile from the operands that are parts of it.
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

    /// Adds the parts that a box writes, including parts that no instruction reads. A part that is
    /// read must be written at the address of the read.
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

/// Address of each part that is read, with the first instruction.
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

/// Wavefronts that a read of the same part of all rows takes: the maximum number of these parts in
/// one group of banks.
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

/// Returns the thread that first stored 16 bytes at each address. Element `first` of the array is
/// at address `start`.
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
