//! Views of lines and accesses for the templates.

use crate::access::{Access, Cell, LayoutChange, Row};
use crate::number::number;
use crate::source::{self, LineCost, Word};
use gemm_dsl::target::arch::{BANKS, LINE_SECTORS};
use std::collections::BTreeMap;

/// Maximum number of patterns drawn for each line, buffer and kind. The patterns furthest above
/// their minimum cost are drawn.
const DRAWN: usize = 2;

/// Share of all instructions at which each shade of a line begins.
const STEPS: [f64; 4] = [0.01, 0.05, 0.15, 0.4];

#[derive(Clone, Debug)]
pub struct LineView<'r> {
    /// Line number, counted from 1.
    pub number: usize,
    pub words: &'r [Word],
    pub instructions: String,
    /// Wavefronts of shared memory, with the excess over the minimum in brackets.
    pub wavefronts: String,
    pub sectors: String,
    /// Instructions, wavefronts and sectors as predicted for the compiled kernel.
    pub compiled: [String; 3],
    /// Shade of the line by its share of all instructions, from 0 to 4.
    pub heat: u32,
    /// True if the line has accesses.
    pub has_access: bool,
    /// Numbers of the next costlier and the next cheaper line, for a costly line.
    pub next: [Option<usize>; 2],
}

#[derive(Clone, Debug)]
pub struct Group<'r> {
    /// Line number, counted from 1.
    pub line: usize,
    /// Drawn accesses, the furthest above their minimum cost first.
    pub drawn: Vec<AccessView<'r>>,
    /// Sentence about the accesses that are not drawn. Empty if all are drawn.
    pub others: String,
}

#[derive(Clone, Debug)]
pub struct AccessView<'r> {
    /// Line number, counted from 1.
    pub line: usize,
    pub buffer: &'r str,
    /// Memory space: `shared` or `global`.
    pub space: &'static str,
    /// Kind of access in words.
    pub kind: &'static str,
    /// Bytes accessed by each lane.
    pub bytes: u32,
    /// Number of active lanes in words.
    pub lanes: String,
    /// Number of occurrences in words.
    pub times: String,
    /// Cost of one access, in `unit`.
    pub cost: u64,
    /// Minimum cost of an access to the same number of bytes.
    pub least: u64,
    /// Unit of the cost: wavefronts or sectors.
    pub unit: &'static str,
    /// Sentences about the strides and the bank conflict.
    pub algebra: String,
    pub name: String,
    /// Heading of the row labels.
    pub rows_are: &'static str,
    pub columns: Vec<String>,
    /// Number of the 32 columns under each heading.
    pub span: u32,
    pub rows: &'r [Row],
    /// Suggested layout change in words, and the rows of the same lanes under it.
    pub suggested: Option<(String, &'r [Row])>,
    /// Lanes that are highlighted initially, as a bit mask.
    pub lit: u32,
}

impl AccessView<'_> {
    /// CSS classes of a cell.
    pub fn class(&self, cell: &Cell) -> String {
        let is_lit = cell.lanes.iter().any(|lane| self.lit >> lane & 1 == 1);
        match cell.lanes.first() {
            Some(first) => format!("l{}{}", first / 8, if is_lit { " on" } else { "" }),
            None if cell.is_wasted => "w".to_owned(),
            None => String::new(),
        }
    }
}

/// Returns the instructions of each line and their total. Compiled counts are used if any line has
/// them, otherwise source counts.
pub fn executed(source: &[source::SourceLine]) -> (Vec<u64>, u64) {
    let compiled =
        |line: &source::SourceLine| line.compiled.and_then(|machine| machine.instructions);
    let by_text =
        |line: &source::SourceLine| line.charged.map_or(0, |charged| charged.instructions);
    let each: Vec<u64> = match source.iter().any(|line| compiled(line).is_some()) {
        true => source.iter().map(|line| compiled(line).unwrap_or(0)).collect(),
        false => source.iter().map(by_text).collect(),
    };
    let all = each.iter().sum();
    (each, all)
}

/// Returns the indices of the shaded lines, costliest first. Ties are in source order.
fn costly(executed: &[u64], all: u64) -> Vec<usize> {
    let is_costly = |at: &usize| executed[*at] as f64 >= STEPS[0] * all.max(1) as f64;
    let mut costly: Vec<usize> = (0..executed.len()).filter(is_costly).collect();
    costly.sort_by_key(|at| std::cmp::Reverse(executed[*at]));
    costly
}

/// Number of the line that executes most instructions, if a line is shaded.
pub fn costliest(source: &[source::SourceLine]) -> Option<usize> {
    let (executed, all) = executed(source);
    Some(source.get(*costly(&executed, all).first()?)?.number)
}

/// Returns the lines with their costs, and marks those with accesses.
pub fn lines<'r>(source: &'r [source::SourceLine], accesses: &[Access]) -> Vec<LineView<'r>> {
    let (executed, all) = executed(source);
    let ranked = costly(&executed, all);
    let some = |count: u64| if count == 0 { String::new() } else { number(count as f64) };
    let passes = |wavefronts: u64, conflicts: u64| match conflicts {
        0 => some(wavefronts),
        beyond => format!("{} ({})", some(wavefronts), some(beyond)),
    };
    let of = |(line, executed): (&'r source::SourceLine, u64)| {
        let LineCost { instructions, wavefronts, conflicts, sectors, .. } =
            line.charged.unwrap_or_default();
        let compiled = line.compiled.map_or_else(Default::default, |machine| {
            let instructions = machine.instructions.map_or(String::new(), some);
            let wavefronts = passes(machine.wavefronts, machine.conflicts);
            [instructions, wavefronts, some(machine.sectors)]
        });
        let share = executed as f64 / all.max(1) as f64;
        let rank = ranked.iter().position(|at| at + 1 == line.number);
        let beside = |rank: Option<usize>| Some(source.get(*ranked.get(rank?)?)?.number);
        LineView {
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

/// Groups the accesses by line.
pub fn groups(accesses: &[Access]) -> Vec<Group<'_>> {
    let mut by_line: BTreeMap<usize, Vec<&Access>> = BTreeMap::new();
    for access in accesses {
        by_line.entry(access.line).or_default().push(access);
    }
    by_line.into_iter().map(|(line, all)| group(line, all)).collect()
}

fn group(line: usize, all: Vec<&Access>) -> Group<'_> {
    let (drawn, others) = parted(all);
    Group { line, others: left_out(&others), drawn: drawn.into_iter().map(drawing).collect() }
}

/// Cost of an access beyond its minimum.
fn excess(access: &Access) -> u64 {
    access.cost - access.least.min(access.cost)
}

/// Splits the accesses of a line into those drawn and those left out.
fn parted(mut all: Vec<&Access>) -> (Vec<&Access>, Vec<&Access>) {
    all.sort_by_key(|access| std::cmp::Reverse((excess(access), access.cost, access.times)));
    // The limit is per kind, so that reads and writes of a copy both get pictures.
    let (mut drawn, mut others): (Vec<&Access>, Vec<&Access>) = (Vec::new(), Vec::new());
    for access in all {
        let like = |other: &&&Access| other.buffer == access.buffer && other.kind == access.kind;
        let is_drawn = drawn.iter().filter(like).count() < DRAWN;
        if is_drawn { &mut drawn } else { &mut others }.push(access);
    }
    (drawn, others)
}

/// Sentence with the number and the costs of the accesses that are not drawn.
fn left_out(others: &[&Access]) -> String {
    let costs = |space: &str| {
        let costs = others.iter().filter(|access| access.space == space).map(|access| access.cost);
        let (least, most) = (costs.clone().min()?, costs.max()?);
        let unit = unit(space == "shared", most);
        Some(if least == most {
            format!("{most} {unit}")
        } else {
            format!("{least} to {most} {unit}")
        })
    };
    let costs: Vec<String> = ["shared", "global"].into_iter().filter_map(costs).collect();
    match others.len() {
        0 => String::new(),
        count => format!(
            "{count} more {} not drawn, with {}: none is further above its minimum cost than the \
             drawn ones of the same kind and buffer.",
            if count == 1 { "pattern is" } else { "patterns are" },
            costs.join(" and ")
        ),
    }
}

/// Unit of a cost, in singular or plural.
fn unit(is_shared: bool, cost: u64) -> &'static str {
    match (is_shared, cost) {
        (true, 1) => "wavefront",
        (true, _) => "wavefronts",
        (false, 1) => "sector",
        (false, _) => "sectors",
    }
}

pub fn drawing(access: &Access) -> AccessView<'_> {
    let is_shared = access.space == "shared";
    let columns: Vec<String> = match is_shared {
        true => (0..BANKS).map(|bank| bank.to_string()).collect(),
        false => (0..LINE_SECTORS).map(|sector| format!("sector {sector}")).collect(),
    };
    let mut algebra = String::new();
    if let Some(strides) = &access.strides {
        algebra += &apart(strides);
    }
    if let Some(collision) = access.collision {
        let [a, b] = collision.lanes;
        let bit = collision.bit.map_or(String::new(), |bit| format!(" (lane bit {bit})"));
        let words = collision.words.abs();
        algebra += &format!(" Lanes {a} and {b}{bit} are {words} words apart, in the same bank.");
    }
    let suggested = access.suggestion.as_ref().map(|suggestion| {
        let by = match suggestion.by {
            LayoutChange::Padding(1) => "1 element of padding per row".to_owned(),
            LayoutChange::Padding(pad) => format!("{pad} elements of padding per row"),
            LayoutChange::Swizzle => "swizzled rows (key swizzle)".to_owned(),
        };
        let unit = unit(true, suggestion.wavefronts);
        let said = format!("With {by}, the same lanes would take {} {unit}", suggestion.wavefronts);
        (said, &*suggestion.grid.rows)
    });
    AccessView {
        line: access.line,
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
        unit: unit(is_shared, access.cost),
        algebra: algebra.trim().to_owned(),
        name: format!("{} of {}, line {}", access.kind, access.buffer, access.line),
        rows_are: if is_shared { "bank" } else { "line" },
        span: if is_shared { 1 } else { 8 },
        columns,
        lit: 0,
        rows: &access.grid.rows,
        suggested,
    }
}

/// Sentence about the strides of the lanes in elements.
fn apart(strides: &str) -> String {
    match strides {
        "32:0" => "All lanes access the same element.".to_owned(),
        strides => format!("Lanes are {strides} elements apart."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Grid;
    use crate::algebra::Strides;
    use crate::source::Word;

    /// The links visit all costly lines in descending order of cost, and lead back.
    #[test]
    fn costly_lines_lead_to_one_another() {
        let counts = [0, 7, 300, 7, 1, 120, 300, 0];
        let line = |(at, instructions): (usize, &u64)| source::SourceLine {
            number: at + 1,
            words: Vec::<Word>::new(),
            charged: Some(LineCost { instructions: *instructions, ..LineCost::default() }),
            compiled: None,
        };
        let source: Vec<source::SourceLine> = counts.iter().enumerate().map(line).collect();
        let lines = lines(&source, &[]);
        let (mut at, mut way) = (costliest(&source), Vec::new());
        while let Some(number) = at {
            let [costlier, cheaper] = lines[number - 1].next;
            assert_eq!(costlier, way.last().copied());
            way.push(number);
            at = cheaper;
        }
        // The line with 1 of 735 instructions is not shaded and has no links.
        assert_eq!(way, [3, 7, 6]);
        assert!(lines.iter().all(|line| (line.heat > 0) == way.contains(&line.number)));
    }

    /// Access with the given cost, minimum cost and number of occurrences.
    fn access(
        buffer: &str,
        space: &'static str,
        kind: &'static str,
        [cost, least, times]: [u64; 3],
    ) -> Access {
        Access {
            line: 1,
            buffer: buffer.to_owned(),
            space,
            kind,
            bytes: 4,
            times,
            lanes: 32,
            cost,
            least,
            strides: None,
            collision: None,
            suggestion: None,
            grid: Grid { rows: Vec::new() },
            placement: None,
        }
    }

    /// Each random access is either drawn or left out, and the sentence about the accesses left out
    /// is true.
    #[test]
    fn omitted_accesses_have_the_least_excess() {
        let mut state = 1u64;
        let mut below = |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % most
        };
        for _ in 0..500 {
            let mut one = || {
                let (buffer, space) =
                    [("A", "global"), ("B", "global"), ("As", "shared")][below(3) as usize];
                let least = 1 + below(16);
                access(
                    buffer,
                    space,
                    ["load", "store"][below(2) as usize],
                    [least + below(4), least, 1 + below(9)],
                )
            };
            let all: Vec<Access> = (0..12).map(|_| one()).collect();
            let (drawn, others) = parted(all.iter().collect());
            assert_eq!(drawn.len() + others.len(), all.len());
            assert!(drawn.is_sorted_by_key(|access| std::cmp::Reverse(excess(access))));
            for other in &others {
                let like = |access: &&&Access| {
                    (&access.buffer, access.kind) == (&other.buffer, other.kind)
                };
                let alike: Vec<u64> =
                    drawn.iter().filter(like).map(|access| excess(access)).collect();
                assert_eq!(alike.len(), DRAWN);
                assert!(alike.iter().all(|drawn| *drawn >= excess(other)), "{other:?}");
                let said = left_out(&others);
                assert!(said.starts_with(&others.len().to_string()), "{said}");
                let (_, costs) = said.split_once("with ").expect("cost");
                let is_named = costs.split(" and ").any(|part| {
                    let numbers: Vec<u64> =
                        part.split(' ').filter_map(|word| word.parse().ok()).collect();
                    part.contains(unit(other.space == "shared", 2).trim_end_matches('s'))
                        && numbers.first() <= Some(&other.cost)
                        && numbers.last() >= Some(&other.cost)
                });
                assert!(is_named, "{other:?}: {said}");
            }
        }
    }

    /// A costly access at its minimum ranks behind a cheap access above its minimum.
    #[test]
    fn the_excess_counts_and_not_the_cost() {
        let a = |costs| access("A", "global", "load", costs);
        let all = [a([16, 16, 9]), a([5, 4, 1])];
        let (drawn, others) = parted(all.iter().collect());
        assert_eq!((drawn[0].cost, others.len()), (5, 0));
        assert_eq!(left_out(&others), "");
        let more = [&all[0], &all[1], &all[1], &all[1]];
        let (_, others) = parted(more.to_vec());
        let said = "2 more patterns are not drawn, with 5 to 16 sectors: none is further above \
                    its minimum cost than the drawn ones of the same kind and buffer.";
        assert_eq!(left_out(&others), said);
    }

    #[test]
    fn lanes_of_one_element_are_not_apart() {
        let said = |at: fn(usize) -> i32| {
            let lanes = std::array::from_fn(|lane| Some(at(lane)));
            apart(&Strides::from_lanes(&lanes).expect("strides").text())
        };
        assert_eq!(said(|_| 0), "All lanes access the same element.");
        assert_eq!(said(|lane| lane as i32), "Lanes are 32:1 elements apart.");
    }
}
