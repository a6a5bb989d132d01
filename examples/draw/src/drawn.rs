//! Lines and accesses, as templates lay them out.

use crate::access::{Access, Cell, Row};
use crate::number::number;
use crate::source::{self, Charged, Word};
use std::collections::BTreeMap;

/// The ways to access memory of one line that are drawn: the costliest.
const DRAWN: usize = 2;

/// The shares of all instructions from which on a line is shaded, and shaded more.
const STEPS: [f64; 4] = [0.01, 0.05, 0.15, 0.4];

/// A line of the text.
#[derive(Clone, Debug)]
pub struct Line<'r> {
    /// Its number, from 1.
    pub number: usize,
    /// Its words.
    pub words: &'r [Word],
    /// Warp instructions.
    pub instructions: String,
    /// Wavefronts of shared memory, those beyond the least in brackets.
    pub wavefronts: String,
    /// Sectors of global memory.
    pub sectors: String,
    /// The same three as compiled.
    pub compiled: [String; 3],
    /// How much of all instructions it executes, from 0 to 4.
    pub heat: u32,
    /// Whether its accesses are drawn.
    pub has_access: bool,
    /// Of a costly line, the number of the next costlier one, and of the next cheaper.
    pub next: [Option<usize>; 2],
}

/// The accesses of a line.
#[derive(Clone, Debug)]
pub struct Group<'r> {
    /// Its number, from 1.
    pub line: usize,
    /// Those that are drawn, costliest first.
    pub drawn: Vec<Drawn<'r>>,
    /// How many are not.
    pub others: usize,
}

/// An access, as it is drawn.
#[derive(Clone, Debug)]
pub struct Drawn<'r> {
    /// The buffer.
    pub buffer: &'r str,
    /// Where it is: `shared` or `global`.
    pub space: &'static str,
    /// What is done.
    pub kind: &'static str,
    /// Bytes of a lane.
    pub bytes: u32,
    /// How many lanes take part.
    pub lanes: String,
    /// How often.
    pub times: String,
    /// What it costs each time.
    pub cost: u64,
    /// The least that as many bytes could cost.
    pub least: u64,
    /// What it costs that in.
    pub unit: &'static str,
    /// What its addresses are, and what would spare conflicts.
    pub algebra: String,
    /// What the picture is called.
    pub name: String,
    /// What stands above its rows.
    pub rows_are: &'static str,
    /// What stands above its columns.
    pub columns: Vec<String>,
    /// Of how many of its 32 columns each is.
    pub span: u32,
    /// Its rows.
    pub rows: &'r [Row],
    /// The lane that is lit from the beginning.
    pub lit: Option<u32>,
}

impl Drawn<'_> {
    /// The classes of a cell.
    pub fn class(&self, cell: &Cell) -> String {
        let is_lit = self.lit.is_some_and(|lane| cell.lanes.contains(&lane));
        match cell.lanes.first() {
            Some(first) => format!("l{}{}", first / 8, if is_lit { " on" } else { "" }),
            None if cell.is_wasted => "w".to_owned(),
            None => String::new(),
        }
    }
}

/// The instructions of each line, and of all lines: as compiled where that is known of any, else by the text.
pub fn executed(source: &[source::Line]) -> (Vec<u64>, u64) {
    let compiled = |line: &source::Line| line.compiled.and_then(|machine| machine.instructions);
    let by_text = |line: &source::Line| line.charged.map_or(0, |charged| charged.instructions);
    let each: Vec<u64> = match source.iter().any(|line| compiled(line).is_some()) {
        true => source.iter().map(|line| compiled(line).unwrap_or(0)).collect(),
        false => source.iter().map(by_text).collect(),
    };
    let all = each.iter().sum();
    (each, all)
}

/// The lines that execute so much of all instructions that they are shaded, costliest first; of equal ones the first in the text.
fn costly(executed: &[u64], all: u64) -> Vec<usize> {
    let is_costly = |at: &usize| executed[*at] as f64 >= STEPS[0] * all.max(1) as f64;
    let mut costly: Vec<usize> = (0..executed.len()).filter(is_costly).collect();
    costly.sort_by_key(|at| std::cmp::Reverse(executed[*at]));
    costly
}

/// The number of the line that executes most instructions.
pub fn costliest(source: &[source::Line]) -> Option<usize> {
    let (executed, all) = executed(source);
    Some(source.get(*costly(&executed, all).first()?)?.number)
}

/// The lines of a text with what they cost; each that has accesses says so.
pub fn lines<'r>(source: &'r [source::Line], accesses: &[Access]) -> Vec<Line<'r>> {
    let (executed, all) = executed(source);
    let ranked = costly(&executed, all);
    let some = |count: u64| if count == 0 { String::new() } else { number(count as f64) };
    let passes = |wavefronts: u64, conflicts: u64| match conflicts {
        0 => some(wavefronts),
        beyond => format!("{} ({})", some(wavefronts), some(beyond)),
    };
    let of = |(line, executed): (&'r source::Line, u64)| {
        let Charged { instructions, wavefronts, conflicts, sectors, .. } =
            line.charged.unwrap_or_default();
        let compiled = line.compiled.map_or_else(Default::default, |machine| {
            let instructions = machine.instructions.map_or(String::new(), some);
            let wavefronts = passes(machine.wavefronts, machine.conflicts);
            [instructions, wavefronts, some(machine.sectors)]
        });
        let share = executed as f64 / all.max(1) as f64;
        let rank = ranked.iter().position(|at| at + 1 == line.number);
        let beside = |rank: Option<usize>| Some(source.get(*ranked.get(rank?)?)?.number);
        Line {
            number: line.number,
            words: &line.words,
            instructions: some(instructions),
            wavefronts: passes(wavefronts, conflicts),
            sectors: some(sectors),
            compiled,
            heat: STEPS.iter().filter(|step| share >= **step).count() as u32,
            has_access: accesses.iter().any(|access| access.line == line.number),
            next: [
                beside(rank.and_then(|rank| rank.checked_sub(1))),
                beside(rank.map(|rank| rank + 1)),
            ],
        }
    };
    source.iter().zip(executed).map(of).collect()
}

/// The accesses, line by line.
pub fn groups(accesses: &[Access]) -> Vec<Group<'_>> {
    let mut by_line: BTreeMap<usize, Vec<&Access>> = BTreeMap::new();
    for access in accesses {
        by_line.entry(access.line).or_default().push(access);
    }
    by_line.into_iter().map(|(line, all)| group(line, all)).collect()
}

fn group(line: usize, mut all: Vec<&Access>) -> Group<'_> {
    let excess = |access: &Access| (access.cost - access.least.min(access.cost), access.times);
    all.sort_by_key(|access| std::cmp::Reverse(excess(access)));
    // Of a copy some pictures of what it reads and some of what it writes.
    let mut drawn: Vec<&Access> = Vec::new();
    for access in &all {
        let like = |other: &&&Access| other.buffer == access.buffer && other.kind == access.kind;
        if drawn.iter().filter(like).count() < DRAWN {
            drawn.push(access);
        }
    }
    let others = all.len() - drawn.len();
    Group { line, others, drawn: drawn.into_iter().map(drawing).collect() }
}

/// An access, laid out.
pub fn drawing(access: &Access) -> Drawn<'_> {
    let is_shared = access.space == "shared";
    let columns: Vec<String> = match is_shared {
        true => (0..32).map(|bank| bank.to_string()).collect(),
        false => (0..4).map(|sector| format!("sector {sector}")).collect(),
    };
    let mut algebra = String::new();
    if let Some(strides) = &access.strides {
        algebra += &apart(strides);
    }
    if let Some(collision) = access.collision {
        let [a, b] = collision.lanes;
        let bit = collision.bit.map_or(String::new(), |bit| format!(" (bit {bit} of the lane)"));
        let words = collision.words.abs();
        algebra += &format!(" Lanes {a} and {b}{bit} are {words} words apart: the same bank.");
    }
    if let Some(cure) = access.cure {
        let (pad, wavefronts) = (cure.pad, cure.wavefronts);
        let elements = if pad == 1 { "element" } else { "elements" };
        algebra +=
            &format!(" With {pad} more {elements} behind each row it would take {wavefronts}.");
    }
    let unit = match (is_shared, access.cost) {
        (true, 1) => "wavefront",
        (true, _) => "wavefronts",
        (false, 1) => "sector",
        (false, _) => "sectors",
    };
    Drawn {
        buffer: &access.buffer,
        space: access.space,
        kind: access.kind,
        bytes: access.bytes,
        lanes: match access.lanes {
            1 => "1 lane".to_owned(),
            lanes => format!("{lanes} lanes"),
        },
        times: match access.times {
            1 => "once".to_owned(),
            times => format!("{times} times"),
        },
        cost: access.cost,
        least: access.least,
        unit,
        algebra: algebra.trim().to_owned(),
        name: format!("{} of {}, line {}", access.kind, access.buffer, access.line),
        rows_are: if is_shared { "bank" } else { "line" },
        span: if is_shared { 1 } else { 8 },
        columns,
        lit: None,
        rows: &access.grid.rows,
    }
}

/// How far lanes are apart, in words.
fn apart(strides: &str) -> String {
    match strides {
        "32:0" => "All lanes access the same element.".to_owned(),
        strides => format!("Lanes are {strides} elements apart."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algebra::Strides;
    use crate::source::Word;

    /// From the costliest line all costly ones are come to, each no costlier than the one before, and back again.
    #[test]
    fn costly_lines_lead_to_one_another() {
        let counts = [0, 7, 300, 7, 1, 120, 300, 0];
        let line = |(at, instructions): (usize, &u64)| source::Line {
            number: at + 1,
            words: Vec::<Word>::new(),
            charged: Some(Charged { instructions: *instructions, ..Charged::default() }),
            compiled: None,
        };
        let source: Vec<source::Line> = counts.iter().enumerate().map(line).collect();
        let lines = lines(&source, &[]);
        let (mut at, mut way) = (costliest(&source), Vec::new());
        while let Some(number) = at {
            let [costlier, cheaper] = lines[number - 1].next;
            assert_eq!(costlier, way.last().copied());
            way.push(number);
            at = cheaper;
        }
        // A line of 1 in 735 is not shaded, and on no way.
        assert_eq!(way, [3, 7, 6]);
        assert!(lines.iter().all(|line| (line.heat > 0) == way.contains(&line.number)));
    }

    #[test]
    fn lanes_of_one_element_are_not_apart() {
        let said = |at: fn(usize) -> i32| {
            let lanes = std::array::from_fn(|lane| Some(at(lane)));
            apart(&Strides::of(&lanes).expect("strides").text())
        };
        assert_eq!(said(|_| 0), "All lanes access the same element.");
        assert_eq!(said(|lane| lane as i32), "Lanes are 32:1 elements apart.");
    }
}
