//! Reader of a file with measured times: a comment line, a line with the names of the columns, then
//! one line per launch.

use crate::{LaunchLoad, Reads, Waits, Work};

/// Program, with its measured time.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramTime {
    /// Set of programs that were timed together, for example a ladder.
    pub set: String,
    /// Name of a stage, or a spec.
    pub name: String,
    /// Extent of a square GEMM, or number of elements of a reduction.
    pub n: u64,
    /// Median time of all launches together.
    pub milliseconds: f64,
    /// Launches of the program, in order.
    pub launches: Vec<LaunchLoad>,
}

/// Reads all programs of a file. `None` if a line lacks a column, or if a numeric cell has no
/// number.
pub fn programs(file: &str) -> Option<Vec<ProgramTime>> {
    let mut lines = file.lines().skip(1);
    let names = cells(lines.next()?);
    let mut programs: Vec<ProgramTime> = Vec::new();
    for line in lines {
        let cells = cells(line);
        let cell = |name: &str| cells.get(names.iter().position(|column| column == name)?);
        let number = |name: &str| cell(name)?.parse::<f64>().ok();
        let (set, name, n) = (cell("set")?, cell("name")?, number("n")? as u64);
        let launch = launch(number)?;
        let is_same = |last: &&mut ProgramTime| (&last.set, &last.name, last.n) == (set, name, n);
        match programs.last_mut().filter(is_same) {
            Some(last) => last.launches.push(launch),
            None => programs.push(ProgramTime {
                set: set.clone(),
                name: name.clone(),
                n,
                milliseconds: number("time_ms")?,
                launches: vec![launch],
            }),
        }
    }
    Some(programs)
}

fn launch(number: impl Fn(&str) -> Option<f64>) -> Option<LaunchLoad> {
    Some(LaunchLoad {
        blocks: number("blocks")?,
        threads: number("threads")? as u32,
        registers: number("registers")? as u32,
        shared_bytes: number("shared_bytes")? as u64,
        work: Work {
            instructions: number("instructions")?,
            fma: number("fma")?,
            mma: number("mma")?,
            mma_flops: number("mma_flops")?,
            wgmma_flops: number("wgmma_flops")?,
            shared_wavefronts: number("shared_wavefronts")?,
            shared_load_bytes: number("shared_load_bytes")?,
            lines: number("lines")?,
            sectors: number("sectors")?,
        },
        waits: Waits {
            rounds: number("rounds")?,
            ahead: number("ahead")?,
            barriers: number("barriers")?,
            code: number("code")?,
            parts: number("parts")?,
            part_bytes: number("part_bytes")?,
        },
        reads: Reads {
            tiles: [number("tile_rows")?, number("tile_cols")?],
            strips: [number("strip_a")?, number("strip_b")?],
            raster: number("raster")?,
            once: number("once")?,
        },
    })
}

/// Splits a line into cells, some of which are quoted.
pub fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            c => cells.last_mut().into_iter().for_each(|cell| cell.push(c)),
        }
    }
    cells
}
