//! How a tile lies in shared memory: eight of its rows, in parts of 16 bytes, over the eight groups of four banks.

use super::extents;
use gemm_dsl::ir::{Kernel, Layout, Space};
use gemm_runtime::watch::{Boxed, Did, Kind, Operand, Trace};
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
pub struct Swizzled {
    /// The arrays that lie so.
    pub arrays: Vec<String>,
    /// Bytes of a row of the tile.
    pub row: u32,
    /// What the instruction is given to find the tile.
    pub descriptor: u64,
    /// Whether copies of boxes write it; else threads do.
    pub is_boxed: bool,
    /// By row of the tile and group of banks.
    pub cells: Vec<Vec<Option<Cell>>>,
    /// The same as it would be without a swizzle: the part.
    pub plain: Vec<Vec<Option<u32>>>,
    /// Wavefronts that the same part of eight rows takes: so, and without a swizzle.
    pub wavefronts: [u64; 2],
}

/// Sixteen bytes of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// Which part of the row it is.
    pub part: u32,
    /// The first of the instructions on this tile that reads it.
    pub instruction: Option<u32>,
    /// The thread that has stored it.
    pub thread: Option<u32>,
}

impl Swizzled {
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
        let text = |cell: &Option<Cell>| cell.map_or("·".to_owned(), |cell| cell.part.to_string());
        self.cells.iter().map(|row| row.iter().map(text).collect::<Vec<_>>().join(" ")).collect()
    }
}

/// Each way in which tiles of matrix instructions lie.
pub(super) fn all(kernel: &Kernel, trace: &Trace) -> Vec<Swizzled> {
    // By array, what its first tile's instructions read.
    let mut read: BTreeMap<usize, Vec<&Operand>> = BTreeMap::new();
    let mut first = None;
    // Of a box of several planes the first rows are known, which need not be those that are multiplied first.
    let boxed = trace.details.iter().filter_map(|detail| match &detail.did {
        Did::Boxed(boxed) => Some((boxed.to, boxed.first)),
        _ => None,
    });
    let boxed: BTreeSet<(usize, u32)> = boxed.collect();
    let begins_a_box = |operand: &Operand| {
        let size = kernel.buffers[operand.buffer].elem.size();
        boxed.contains(&(operand.buffer, operand.first - operand.column / size))
    };
    for detail in &trace.details {
        let Did::Multiplied { a, b, .. } = &detail.did else { continue };
        let warp = (detail.rank, detail.warp);
        if *first.get_or_insert(warp) != warp {
            continue;
        }
        for operand in [a, b].into_iter().filter(|of| boxed.is_empty() || begins_a_box(of)) {
            let all = read.entry(operand.buffer).or_default();
            let is_same_row = all.first().is_none_or(|first| start(first) == start(operand));
            if is_same_row && all.iter().all(|other| other.column != operand.column) {
                all.push(operand);
            }
        }
    }
    let mut found: Vec<Swizzled> = Vec::new();
    for (buffer, operands) in read {
        let Some(swizzled) = one(kernel, trace, buffer, &operands) else { continue };
        match found.iter_mut().find(|other| looks_like(other, &swizzled)) {
            Some(other) => other.arrays.extend(swizzled.arrays),
            None => found.push(swizzled),
        }
    }
    found
}

/// The address of the first row of a tile.
fn start(operand: &Operand) -> u32 {
    operand.parts.first().map_or(0, |at| at - operand.column)
}

fn looks_like(one: &Swizzled, other: &Swizzled) -> bool {
    let places = |of: &Swizzled| -> Vec<Option<(u32, Option<u32>)>> {
        of.cells.iter().flatten().map(|cell| cell.map(|c| (c.part, c.instruction))).collect()
    };
    (one.row, one.is_boxed) == (other.row, other.is_boxed) && places(one) == places(other)
}

fn one(kernel: &Kernel, trace: &Trace, buffer: usize, operands: &[&Operand]) -> Option<Swizzled> {
    let declared = &kernel.buffers[buffer];
    let size = declared.elem.size();
    let row = u32::try_from(*extents(kernel, buffer)?.last()?).ok()? * size;
    let own = operands.first()?;
    let start = start(own);
    // Where each part was read, and by which instruction.
    let mut places: BTreeMap<(u32, u32), (u32, Option<u32>)> = BTreeMap::new();
    for (number, operand) in (0..).zip(operands) {
        let of_row = operand.bytes / PART;
        for (at, address) in (0..).zip(&operand.parts) {
            let part = operand.column / PART + at % of_row;
            places.insert((at / of_row, part), (*address, Some(number)));
        }
    }
    let boxed = trace.details.iter().find_map(|detail| match &detail.did {
        Did::Boxed(boxed) if boxed.to == buffer => written(boxed, start, own, row, size),
        _ => None,
    });
    let threads = threads(trace, buffer, (start, own.first - own.column / size), size);
    let is_boxed = boxed.is_some();
    // What a copy writes and no instruction reads is there all the same.
    for (key, address) in boxed.into_iter().flatten() {
        let (read, _) = places.entry(key).or_insert((address, None));
        // The pictures are one: whoever finds that they differ finds it in the tests too.
        if *read != address {
            return None;
        }
    }
    let mut cells = vec![vec![None; GROUPS as usize]; ROWS as usize];
    let mut plain = vec![vec![None; GROUPS as usize]; ROWS as usize];
    for (&(line, part), &(address, instruction)) in &places {
        let thread = threads.get(&address).copied().filter(|_| !is_boxed);
        let group = |at: u32| (at / PART % GROUPS) as usize;
        *cells.get_mut(line as usize)?.get_mut(group(address))? =
            Some(Cell { part, instruction, thread });
        *plain.get_mut(line as usize)?.get_mut(group(start + line * row + part * PART))? =
            Some(part);
    }
    let of = |rows: Vec<Vec<Option<u32>>>| {
        let most = |group: usize| {
            let parts = rows.iter().filter_map(|row| row[group]);
            let mut times: BTreeMap<u32, u64> = BTreeMap::new();
            parts.for_each(|part| *times.entry(part).or_default() += 1);
            times.values().copied().max().unwrap_or(0)
        };
        (0..GROUPS as usize).map(most).max().unwrap_or(0)
    };
    let parts = |row: &Vec<Option<Cell>>| row.iter().map(|cell| cell.map(|c| c.part)).collect();
    let wavefronts = [of(cells.iter().map(parts).collect()), of(plain.clone())];
    let is_array =
        declared.space == Space::Shared && matches!(declared.layout, Layout::Array { .. });
    is_array.then(|| Swizzled {
        arrays: vec![declared.name.clone()],
        row,
        descriptor: own.descriptor,
        is_boxed,
        cells,
        plain,
        wavefronts,
    })
}

/// Where the parts of the first rows of a box lie, if it is the tile that begins there.
fn written(
    boxed: &Boxed,
    start: u32,
    own: &Operand,
    row: u32,
    size: u32,
) -> Option<Vec<((u32, u32), u32)>> {
    let of_row = (u32::try_from(*boxed.tile.last()?).ok()? * size / PART).max(1);
    let is_it = boxed.first == own.first - own.column / size && of_row * PART == row;
    let place = |(at, address): (u32, &u32)| ((at / of_row, at % of_row), *address);
    let first = *boxed.parts.first()?;
    (is_it && first == start).then(|| (0..).zip(&boxed.parts).map(place).collect())
}

/// The threads that stored 16 bytes at an address first; element `first` of the array lies at `start`.
fn threads(
    trace: &Trace,
    buffer: usize,
    (start, first): (u32, u32),
    size: u32,
) -> BTreeMap<u32, u32> {
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
