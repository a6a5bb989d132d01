//! The table that follows from times: a decision list, and how good it is.

use super::condition::Condition;
use super::samples::{Group, Samples};
use super::tree::{Limits, Tree, grow};
use crate::grid::report::geometric_mean;
use crate::grid::shapes::Shape;
use gemm_dsl::SpecErrors;
use gemm_dsl::kernel_table::{KernelTable, SgemmProblem};
use gemm_dsl::spec::{Layout, SgemmSpec};
use rayon::prelude::*;

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The layout, where the condition names it.
    layout: Option<Layout>,
    condition: Condition,
    /// The kernel.
    pub line: String,
}

impl Row {
    /// The condition in the grammar of tables.
    pub fn when(&self) -> String {
        let layout = self.layout.iter().map(Layout::to_string);
        let parts: Vec<String> = layout.chain(self.condition.parts()).collect();
        if parts.is_empty() { "else".to_owned() } else { parts.join(" && ") }
    }
}

/// The rows of a fitted table, the last of which has no condition.
pub fn rows(samples: &Samples, limits: &Limits) -> Vec<Row> {
    let trees = grow(samples, limits);
    let mut rows = Vec::new();
    let count = samples.groups.len();
    for (number, (group, tree)) in samples.groups.iter().zip(&trees).enumerate() {
        let mut listed = Vec::new();
        list(group, tree, &Condition::default(), &mut listed);
        // What comes to the last group is of its layout.
        let layout = (number + 1 < count).then_some(group.layout);
        rows.extend(listed.into_iter().map(|(condition, line)| Row { layout, condition, line }));
    }
    rows
}

/// The leaves as rows: of a cut first the smaller side, with the test, and then the other one without, since nothing
/// that passes is left.
fn list(group: &Group, tree: &Tree, above: &Condition, rows: &mut Vec<(Condition, String)>) {
    match tree {
        Tree::Leaf { line, .. } => rows.push((above.clone(), group.lines[*line].clone())),
        Tree::Cut { test, passes, fails } => {
            let passes_first = passes.leaves() <= fails.leaves();
            let (first, then) = if passes_first { (passes, fails) } else { (fails, passes) };
            list(group, first, &above.and(*test, passes_first), rows);
            list(group, then, above, rows);
        }
    }
}

/// The rows between semicolons, each in a line.
pub fn text(rows: &[Row]) -> String {
    let rows: Vec<String> =
        rows.iter().map(|row| format!("{} => {}", row.when(), row.line)).collect();
    rows.join(";\n")
}

/// The source of a table: a constant, under what `about` says.
pub fn source(rows: &[Row], about: &[String]) -> String {
    let about: String = about.iter().map(|line| format!("// {line}\n")).collect();
    let row = |row: &Row| format!("    {} => {};\n", row.when(), row.line);
    let rows: String = rows.iter().map(row).collect();
    format!(
        "{about}\nuse gemm_runtime::{{SgemmTable, sgemm_table}};\n\n\
         /// For each shape the line that was fastest around it.\n\
         pub const GEMM: SgemmTable = sgemm_table! {{\n{rows}}};\n"
    )
}

/// The rows of a source that has one `sgemm_table!`, or that is nothing but rows.
pub fn rows_of(source: &str) -> &str {
    let Some((_, inside)) = source.split_once("sgemm_table! {") else { return source };
    inside.rsplit_once('}').map_or(inside, |(rows, _)| rows)
}

/// How a table compares with something at some shapes: the geometric mean of ratios of times.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Shapes.
    pub count: usize,
    /// The mean.
    pub mean: f64,
    /// The least of the ratios, and where.
    pub least: Option<(f64, Shape)>,
    /// The largest.
    pub most: Option<(f64, Shape)>,
}

impl Compared {
    fn of(all: &[(f64, Shape)]) -> Self {
        let ratios: Vec<f64> = all.iter().map(|(ratio, _)| *ratio).collect();
        let by_ratio = |a: &(f64, Shape), b: &(f64, Shape)| a.0.total_cmp(&b.0);
        Self {
            count: all.len(),
            mean: geometric_mean(&ratios).unwrap_or(f64::NAN),
            least: all.iter().copied().min_by(by_ratio),
            most: all.iter().copied().max_by(by_ratio),
        }
    }
}

/// Reads a table, as the macro does.
///
/// # Errors
/// Its faults.
pub fn read(text: &str) -> Result<KernelTable<SgemmSpec>, String> {
    text.parse().map_err(|faults: SpecErrors| faults.to_string())
}

/// The time of what a table chooses at a shape over that of the best line: by the numbers of a group and of its shape.
fn slower(
    table: &KernelTable<SgemmSpec>,
    samples: &Samples,
    (group, shape): (usize, usize),
) -> Result<f64, String> {
    let group = &samples.groups[group];
    let of = group.shapes[shape];
    let problem = SgemmProblem { shape: of.of_table(), target: samples.target };
    let row = table.choose(&problem).map_err(|error| error.to_string())?;
    let line = table.rows()[row].spec.to_string();
    let known = group.lines.iter().position(|known| *known == line);
    let known = known.ok_or_else(|| format!("`{line}` is chosen for {of}, and was not timed"))?;
    Ok(group.slower[shape][known].exp())
}

/// The numbers of all groups and shapes.
fn all(samples: &Samples) -> impl Iterator<Item = (usize, usize)> {
    let groups = samples.groups.iter().enumerate();
    groups.flat_map(|(number, group)| (0..group.shapes.len()).map(move |shape| (number, shape)))
}

/// How much slower a table is than the best line of each shape that it was fitted to.
///
/// # Errors
/// What is wrong with the table.
pub fn regret(table: &KernelTable<SgemmSpec>, samples: &Samples) -> Result<Compared, String> {
    let one = |at| Ok((slower(table, samples, at)?, samples.groups[at.0].shapes[at.1]));
    let ratios: Result<Vec<_>, String> = all(samples).map(one).collect();
    Ok(Compared::of(&ratios?))
}

/// The same at shapes that a table has not seen: for each that was drawn a table is fitted to all others.
///
/// # Errors
/// What is wrong with a table.
pub fn unseen(
    samples: &Samples,
    limits: &Limits,
    is_drawn: impl Fn(&Shape) -> bool,
) -> Result<Compared, String> {
    // Of a group of one shape nothing else is known.
    let others = |at: &(usize, usize)| samples.groups[at.0].shapes.len() > 1;
    let drawn = |at: &(usize, usize)| is_drawn(&samples.groups[at.0].shapes[at.1]);
    let left_out: Vec<_> = all(samples).filter(others).filter(drawn).collect();
    let one = |&(group, shape): &(usize, usize)| {
        let table = read(&text(&rows(&samples.without(group, shape), limits)))?;
        Ok((slower(&table, samples, (group, shape))?, samples.groups[group].shapes[shape]))
    };
    let ratios: Result<Vec<_>, String> = left_out.par_iter().map(one).collect();
    Ok(Compared::of(&ratios?))
}

/// The time of cuBLAS over that of what a table chooses, where both are known.
///
/// # Errors
/// What is wrong with the table.
pub fn over_cublas(
    table: &KernelTable<SgemmSpec>,
    samples: &Samples,
    cublas: impl Fn(&Shape) -> Option<f64>,
) -> Result<Compared, String> {
    let mut ratios = Vec::new();
    for at in all(samples) {
        let group = &samples.groups[at.0];
        if let Some(cublas) = cublas(&group.shapes[at.1]) {
            let us = slower(table, samples, at)? * group.best[at.1];
            ratios.push((cublas / us, group.shapes[at.1]));
        }
    }
    Ok(Compared::of(&ratios))
}

#[cfg(test)]
mod tests;
