//! Memory accesses of the lanes of a warp, drawn as banks and sectors from a recorded trace.

use crate::algebra::{Collision, Strides, WarpAccess, best_padding, collision, groups};
use gemm_dsl::ir::{Buffer, BufferLayout, Elem, Kernel, Space};
use gemm_dsl::target::arch;
use gemm_sim::{Kind, Pattern, Price, Trace, cost};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;

const SECTOR_WORDS: i64 = arch::SECTOR_BYTES as i64 / 4;
/// 4-byte words of a cache line.
const LINE_WORDS: i64 = arch::LINE_SECTORS as i64 * SECTOR_WORDS;
/// Offset that keeps word numbers positive. It is a multiple of every modulus that is applied to
/// word numbers.
const BIAS: i64 = 1 << 24;

/// Pattern in which warps access a buffer in one statement.
#[derive(Clone, Debug, Serialize)]
pub struct Access {
    /// Line of the kernel's source, counted from 1.
    pub line: usize,
    pub buffer: String,
    /// Memory space: `shared` or `global`.
    pub space: &'static str,
    /// Kind of access in words, see [`kind`].
    pub kind: &'static str,
    /// Bytes accessed by each lane.
    pub bytes: u32,
    /// Number of accesses with this pattern in the recorded block.
    pub times: u64,
    /// Number of active lanes.
    pub lanes: u32,
    /// Cost of one access: wavefronts (shared) or sectors (global).
    pub cost: u64,
    /// Minimum cost of an access to the same number of bytes.
    pub least: u64,
    /// Stride in elements of each bit of the lane number, if the addresses are linear in these
    /// bits.
    pub strides: Option<String>,
    /// Two lanes with a bank conflict.
    pub collision: Option<Collision>,
    /// Layout change that reduces the wavefronts of this access and the total cost of all accesses
    /// to the buffer. Their vector widths stay the same.
    pub suggestion: Option<Suggestion>,
    pub grid: Grid,
    /// Row and column of each lane's element, and the row length in words, for an array with a
    /// padding key.
    #[serde(skip)]
    pub(crate) placement: Option<(WarpAccess, u32)>,
}

/// Layout change that reduces the wavefronts of an access.
#[derive(Clone, Debug, Serialize)]
pub struct Suggestion {
    pub by: LayoutChange,
    /// Wavefronts of the access under the changed layout.
    pub wavefronts: u64,
    /// Picture of the same lanes under the changed layout.
    pub grid: Grid,
}

/// Change of an array's layout in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum LayoutChange {
    /// Appends the given number of elements to each row.
    Padding(u32),
    /// Permutes the elements within each row, as the key `swizzle` does.
    Swizzle,
}

impl Suggestion {
    /// Evaluates an access under a changed layout. `word` returns the word of the element at a row
    /// and column.
    pub(crate) fn new(
        by: LayoutChange,
        access: &WarpAccess,
        word: impl Fn(u32, u32) -> u32,
    ) -> Self {
        let wavefronts = access.wavefronts_at(&word);
        Self { by, wavefronts, grid: banks(&access.words(&word), access.bytes, access.writes) }
    }
}

/// Picture with 32 columns: banks, or the words of a cache line.
#[derive(Clone, Debug, Serialize)]
pub struct Grid {
    /// One row for each wavefront or cache line.
    pub rows: Vec<Row>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Label in front of the row, such as `wavefront 1`.
    pub label: String,
    /// True if the row is a wavefront caused by bank conflicts.
    pub is_extra: bool,
    /// Cells from left to right. Their spans add up to 32 columns.
    pub cells: Vec<Cell>,
}

/// Adjacent columns with the same content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// Number of columns that the cell covers.
    pub span: u32,
    /// Lanes that access these words.
    pub lanes: Vec<u32>,
    /// True if the words are transferred although no lane requests them.
    pub is_wasted: bool,
}

impl Cell {
    /// Formats the lanes as ranges: `3`, `0-7`, `0,4`.
    pub fn text(&self) -> String {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for &lane in &self.lanes {
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == lane => *last = lane,
                _ => runs.push((lane, lane)),
            }
        }
        let run = |(first, last): &(u32, u32)| match last - first {
            0 => first.to_string(),
            _ => format!("{first}-{last}"),
        };
        runs.iter().map(run).collect::<Vec<_>>().join(",")
    }
}

/// Returns the access patterns of a block's warps in source order. Patterns of one statement are in
/// the order of their first occurrence.
pub fn all(kernel: &Kernel, lines: &[Range<usize>], trace: &Trace) -> Vec<Access> {
    // Patterns that differ only in the first bank or in the offset within a sector are merged into
    // the first of these patterns.
    let patterns = &trace.patterns;
    let first_like = |n: &Pattern| {
        let merged = |p: &Pattern| (p.buffer, p.kind, p.lanes, p.bytes, p.cost);
        patterns.iter().position(|other| merged(other) == merged(n))
    };
    let same: Vec<u32> = patterns.iter().filter_map(|n| Some(first_like(n)? as u32)).collect();
    let mut occurrences: BTreeMap<(u32, u32), (u64, u32)> = BTreeMap::new();
    for access in trace.accesses() {
        let pattern = same[access.number as usize];
        occurrences.entry((access.event.stmt, pattern)).or_insert((0, access.first)).0 += 1;
    }
    let access = |((stmt, pattern), (times, _)): (&(u32, u32), &(u64, u32))| {
        let line = lines[*stmt as usize].start + 1;
        describe(kernel, line, *times, &trace.patterns[*pattern as usize])
    };
    let mut all: Vec<Access> = occurrences.iter().map(access).collect();
    let patterns = occurrences
        .iter()
        .map(|((_, pattern), (times, first))| (&trace.patterns[*pattern as usize], *times, *first));
    suggest_paddings(kernel, &mut all, &patterns.collect::<Vec<_>>());
    all
}

/// Shared-memory arrays of a GEMM that have a padding key.
const PADDED: [&str; 2] = ["As", "Bs"];

/// Suggests a padding for each buffer. `patterns` contains the pattern of each access, the number
/// of occurrences, and the element of the first occurrence.
fn suggest_paddings(kernel: &Kernel, accesses: &mut [Access], patterns: &[(&Pattern, u64, u32)]) {
    let buffers = kernel.buffers.iter().enumerate();
    let buffers = buffers.filter(|(_, buffer)| PADDED.contains(&&*buffer.name));
    for (number, buffer) in buffers {
        let Some(row) = row_of(kernel, buffer).filter(|_| buffer.elem == Elem::F32) else {
            continue;
        };
        let of_buffer = patterns.iter().enumerate().filter(|(_, (n, ..))| n.buffer == number);
        let (at, placed): (Vec<usize>, Vec<WarpAccess>) = of_buffer
            .map(|(at, (n, times, first))| (at, placed_access(n, *times, *first, row)))
            .unzip();
        let pad = best_padding(&placed, row);
        for (at, placed) in at.into_iter().zip(placed) {
            let access = &mut accesses[at];
            let suggestion = pad.map(|pad| {
                Suggestion::new(LayoutChange::Padding(pad), &placed, |at, column| {
                    at * (row + pad) + column
                })
            });
            access.suggestion = suggestion.filter(|suggestion| suggestion.wavefronts < access.cost);
            access.placement = Some((placed, row));
        }
    }
}

/// Converts a pattern to rows and columns of an array whose rows have `row` words.
fn placed_access(pattern: &Pattern, times: u64, first: u32, row: u32) -> WarpAccess {
    let place = |at: i32| {
        let at = (i64::from(first) + i64::from(at)) as u32;
        (at / row, at % row)
    };
    let lanes = pattern.lanes.iter().zip(0u32..);
    let places = lanes.filter_map(|(at, lane)| Some((lane, place((*at)?)))).collect();
    WarpAccess { places, bytes: pattern.bytes, writes: writes(pattern.kind), times }
}

fn writes(kind: Kind) -> bool {
    !matches!(kind, Kind::Load | Kind::CopyRead)
}

/// Name of a kind of access.
pub fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Load => "load",
        Kind::Store => "store",
        Kind::CopyRead => "read by a copy",
        Kind::CopyWrite => "written by a copy",
        Kind::Atomic => "atomic",
    }
}

/// Describes a pattern at a line that occurred `times` times.
pub fn describe(kernel: &Kernel, line: usize, times: u64, pattern: &Pattern) -> Access {
    let buffer = &kernel.buffers[pattern.buffer];
    let size = i64::from(buffer.elem.size());
    let taking = || pattern.lanes.iter().zip(0u32..).filter_map(|(at, lane)| Some((lane, (*at)?)));
    let lanes = taking().count() as u32;
    let mut found = Access {
        line,
        buffer: buffer.name.clone(),
        space: if buffer.space == Space::Shared { "shared" } else { "global" },
        kind: kind(pattern.kind),
        bytes: pattern.bytes,
        times,
        lanes,
        cost: 0,
        least: 0,
        strides: Strides::from_lanes(&pattern.lanes).map(|strides| strides.text()),
        collision: None,
        suggestion: None,
        grid: Grid { rows: Vec::new() },
        placement: None,
    };
    match pattern.cost {
        Price::Shared(price) => {
            let writes = writes(pattern.kind);
            let word = |at: i32| (BIAS + i64::from(pattern.skew) + i64::from(at) * size / 4) as u32;
            let words = groups(taking().map(|(lane, at)| (lane, word(at))));
            (found.cost, found.least) = (price.wavefronts, price.phases);
            found.collision = collision(&words, pattern.bytes, writes);
            found.grid = banks(&words, pattern.bytes, writes);
        }
        Price::Sectors(sectors) => {
            let byte = |at: i32| i64::from(pattern.skew) + i64::from(at) * size;
            let mut asked: Vec<(i64, u32)> = Vec::new();
            for (lane, at) in taking() {
                let (start, end) = (byte(at), byte(at) + i64::from(pattern.bytes) - 1);
                asked.extend((start.div_euclid(4)..=end.div_euclid(4)).map(|word| (word, lane)));
            }
            let mut words: Vec<i64> = asked.iter().map(|(word, _)| *word).collect();
            words.sort_unstable();
            words.dedup();
            (found.cost, found.least) =
                (sectors, (words.len() as u64).div_ceil(SECTOR_WORDS as u64));
            found.grid = sector_lines(&asked);
        }
    }
    found
}

/// Words of a row of an array in shared memory, including padding. `None` if the array has one
/// dimension or is swizzled.
fn row_of(kernel: &Kernel, buffer: &Buffer) -> Option<u32> {
    let BufferLayout::Array { order, pad, swizzle: None, .. } = &buffer.layout else { return None };
    let (last, _) = order.split_last().filter(|(_, outer)| !outer.is_empty())?;
    let length = kernel.eval_const(&buffer.dims[*last]).ok()? + kernel.eval_const(pad).ok()?;
    u32::try_from(length).ok().filter(|length| *length > 0)
}

/// Draws one row for each wavefront, with the lanes served at each bank.
fn banks(words: &[(u32, u32)], bytes: u32, writes: bool) -> Grid {
    let width = (bytes / 4).max(1);
    let columns = cost::BANKS as u32 / width;
    let phases = cost::phases(words, bytes, writes);
    let mut rows = Vec::new();
    for (phase, lanes) in phases.iter().enumerate() {
        let mut passes: Vec<Vec<Option<u32>>> = Vec::new();
        for &(word, of) in words.iter().filter(|(_, of)| of & lanes != 0) {
            let column = (word / width % columns) as usize;
            let pass = passes.iter().position(|pass| pass[column].is_none());
            let pass = pass.unwrap_or_else(|| {
                passes.push(vec![None; columns as usize]);
                passes.len() - 1
            });
            passes[pass][column] = Some(of & lanes);
        }
        for (number, pass) in passes.iter().enumerate() {
            let label = match phases.len() {
                1 => format!("wavefront {}", number + 1),
                _ => format!("phase {}, wavefront {}", phase + 1, number + 1),
            };
            let cell = |lanes: &Option<u32>| Cell {
                span: width,
                lanes: lanes_of(lanes.unwrap_or(0)),
                is_wasted: false,
            };
            let cells = joined(pass.iter().map(cell));
            rows.push(Row { label, is_extra: number > 0, cells });
        }
    }
    Grid { rows }
}

/// Draws the accessed cache lines and marks the words of their sectors that no lane requests.
fn sector_lines(asked: &[(i64, u32)]) -> Grid {
    let mut lines: BTreeMap<i64, [u32; LINE_WORDS as usize]> = BTreeMap::new();
    for &(word, lane) in asked {
        let (line, column) = (word.div_euclid(LINE_WORDS), word.rem_euclid(LINE_WORDS));
        lines.entry(line).or_default()[column as usize] |= 1 << lane;
    }
    let rows = lines.values().enumerate().map(|(number, words)| {
        let sector_is_moved = |column: usize| {
            let first = column / SECTOR_WORDS as usize * SECTOR_WORDS as usize;
            words[first..first + SECTOR_WORDS as usize].iter().any(|lanes| *lanes != 0)
        };
        let cell = |(column, lanes): (usize, &u32)| Cell {
            span: 1,
            lanes: lanes_of(*lanes),
            is_wasted: *lanes == 0 && sector_is_moved(column),
        };
        let cells = joined(words.iter().enumerate().map(cell));
        Row { label: format!("line {}", number + 1), is_extra: false, cells }
    });
    Grid { rows: rows.collect() }
}

fn lanes_of(mask: u32) -> Vec<u32> {
    (0..arch::WARP).filter(|lane| mask >> lane & 1 == 1).collect()
}

/// Merges adjacent cells with the same lanes, or without lanes. Cells of different sectors are not
/// merged.
fn joined(cells: impl Iterator<Item = Cell>) -> Vec<Cell> {
    let (mut all, mut column): (Vec<Cell>, u32) = (Vec::new(), 0);
    for cell in cells {
        let at_boundary = column.is_multiple_of(SECTOR_WORDS as u32);
        column += cell.span;
        match all.last_mut() {
            Some(last)
                if !at_boundary && last.lanes == cell.lanes && last.is_wasted == cell.is_wasted =>
            {
                last.span += cell.span;
            }
            _ => all.push(cell),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lanes 0 and 1 access different words of bank 0, lane 2 accesses bank 1: two wavefronts, of
    /// which the second is caused by the conflict.
    #[test]
    fn the_first_wavefront_of_a_phase_is_not_extra() {
        let drawn = banks(&[(0, 1 << 0), (32, 1 << 1), (1, 1 << 2)], 4, false);
        let rows: Vec<(&str, bool)> =
            drawn.rows.iter().map(|row| (&*row.label, row.is_extra)).collect();
        assert_eq!(rows, [("wavefront 1", false), ("wavefront 2", true)]);
        let lanes: Vec<String> =
            drawn.rows.iter().map(|row| row.cells[..2].iter().map(Cell::text).collect()).collect();
        assert_eq!(lanes, ["02", "1"]);
    }
}
