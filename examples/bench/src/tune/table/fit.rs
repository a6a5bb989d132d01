//! The table that follows from times: a decision list, and how good it is.

use super::condition::Condition;
use super::lines::class;
use super::samples::FitSamples;
use super::tree::{Tree, TreeLimits, grow};
use crate::grid::report::geometric_mean;
use crate::shapes::GemmShape;
use crate::table_source::read;
use gemm_dsl::spec::{Accuracy, SgemmSpec};
use gemm_dsl::tables;
use gemm_dsl::tables::{KernelTable, SgemmProblem};
use gemm_oracle::product::Size;
use rayon::prelude::*;
use std::collections::HashSet;

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The condition in the grammar of tables.
    pub when: String,
    /// The kernel.
    pub line: String,
}

/// The rows of a fitted table, the last of which has no condition.
pub fn rows(samples: &FitSamples, limits: &TreeLimits) -> Vec<Rule> {
    let mut rows = Vec::new();
    list(samples, &grow(samples, limits), &Condition::default(), &mut rows);
    rows
}

/// Rows by hand, which stand before those that are fitted to what comes to none of them.
#[derive(Clone, Debug, Default)]
pub struct First {
    rows: Vec<Rule>,
    /// They, and one more for all that is left.
    table: Option<KernelTable<SgemmSpec>>,
}

impl First {
    /// Reads rows, of which none is for all that is left, and which may be off so far.
    ///
    /// # Errors
    /// Their faults.
    pub fn read(text: &str, granted: Accuracy) -> Result<Self, String> {
        let rows = text.trim_end().trim_end_matches(';');
        let table = read(&format!("{rows};\nelse => tile: 16x16x16"))?;
        let class = table.accuracy();
        if class > granted {
            return Err(format!("its rows are of accuracy `{class}`. Add --accuracy {class}"));
        }
        let row = |row: &tables::Rule<SgemmSpec>| {
            let when = row.when.as_ref()?.to_string();
            Some(Rule { when, line: row.spec.to_string() })
        };
        Ok(Self { rows: table.rules().iter().filter_map(row).collect(), table: Some(table) })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// The samples that come to none of them.
    ///
    /// # Errors
    /// An extent that no table is asked for.
    pub fn left(&self, samples: &FitSamples) -> Result<FitSamples, String> {
        let Some(table) = &self.table else { return Ok(samples.clone()) };
        let mut left = HashSet::new();
        for shape in &samples.shapes {
            let problem = SgemmProblem { shape: shape.of_table(), target: samples.target };
            if table.choose(&problem).map_err(|error| error.to_string())? == self.rows.len() {
                left.insert(*shape);
            }
        }
        Ok(samples.only(|shape| left.contains(shape)))
    }

    /// They, and those that are fitted to what is left, if anything is.
    ///
    /// # Errors
    /// As [`First::left`], and where they leave nothing.
    pub fn then_fitted(
        &self,
        samples: &FitSamples,
        limits: &TreeLimits,
    ) -> Result<Vec<Rule>, String> {
        let left = self.left(samples)?;
        if left.shapes.is_empty() {
            return Err("no shape with a time comes to the rows that are fitted".to_owned());
        }
        Ok([self.rows.clone(), rows(&left, limits)].concat())
    }
}

/// The leaves as rows: of a cut first the smaller side, with the test, and then the other one without, since nothing
/// that passes is left.
fn list(samples: &FitSamples, tree: &Tree, above: &Condition, rows: &mut Vec<Rule>) {
    match tree {
        Tree::Leaf { line, .. } => {
            rows.push(Rule { when: above.text(), line: samples.lines[*line].clone() });
        }
        Tree::Cut { test, passes, fails } => {
            let passes_first = passes.leaves() <= fails.leaves();
            let (first, then) = if passes_first { (passes, fails) } else { (fails, passes) };
            list(samples, first, &above.and(*test, passes_first), rows);
            list(samples, then, above, rows);
        }
    }
}

/// The rows between semicolons, each in a line, behind what they have to be granted.
pub fn text(rows: &[Rule]) -> String {
    let lines: Vec<String> =
        rows.iter().map(|row| format!("{} => {}", row.when, row.line)).collect();
    grant(rows).map_or(String::new(), |grant| grant + "\n") + &lines.join(";\n")
}

/// The word before rows by some of which tensor cores stand for `f32`.
fn grant(rows: &[Rule]) -> Option<String> {
    let class = rows.iter().map(|row| match row.line.parse() {
        Ok(spec) => class(&spec),
        Err(faults) => unreachable!("Samples and First: the line of a row is sound: {faults}"),
    });
    let class = class.max();
    class.filter(|class| *class > Accuracy::Ieee).map(|class| format!("accuracy: {class};"))
}

/// Columns of a line of source.
const WIDTH: usize = 110;

/// The source of a table: a constant, under what `about` says.
pub fn source(rows: &[Rule], about: &[String]) -> String {
    let about: String = about.iter().map(|line| wrapped(line, " ", "//! ")).collect();
    let row = |row: &Rule| {
        let (when, line) = (&row.when, format!("{};", row.line));
        let whole = format!("    {when} => {line}\n");
        // The newline is no column.
        match whole.len() <= WIDTH + 1 {
            true => whole,
            false => {
                format!("    {when} =>\n{}", wrapped(&line, ", ", "        "))
            }
        }
    };
    let grant = grant(rows).map_or(String::new(), |grant| format!("    {grant}\n"));
    let rows: String = rows.iter().map(row).collect();
    format!(
        "{about}\nuse gemm_runtime::{{SgemmTable, sgemm_table}};\n\n\
         /// For each shape the line that costs least around it.\n\
         pub const GEMM: SgemmTable = sgemm_table! {{\n{grant}{rows}}};\n"
    )
}

/// A text in lines of that width at most, each of which begins so, broken where parts meet.
fn wrapped(text: &str, between: &str, begin: &str) -> String {
    let (mut all, mut line) = (String::new(), String::new());
    for part in text.split_inclusive(between) {
        if !line.is_empty() && begin.len() + line.len() + part.trim_end().len() > WIDTH {
            all.push_str(&format!("{begin}{}\n", line.trim_end()));
            line.clear();
        }
        line.push_str(part);
    }
    all + &format!("{begin}{line}\n")
}

/// How a table compares with something at some shapes: the geometric mean of ratios of times.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Shapes.
    pub count: usize,
    /// The mean.
    pub mean: f64,
    /// The least of the ratios, and where.
    pub least: Option<(f64, GemmShape)>,
    /// The largest.
    pub most: Option<(f64, GemmShape)>,
}

impl Comparison {
    fn from_ratios(all: &[(f64, GemmShape)]) -> Self {
        let ratios: Vec<f64> = all.iter().map(|(ratio, _)| *ratio).collect();
        let by_ratio = |a: &(f64, GemmShape), b: &(f64, GemmShape)| a.0.total_cmp(&b.0);
        Self {
            count: all.len(),
            mean: geometric_mean(&ratios).unwrap_or(f64::NAN),
            least: all.iter().copied().min_by(by_ratio),
            most: all.iter().copied().max_by(by_ratio),
        }
    }
}

/// The time of what a table chooses at a shape over that of the best line: by the number of the shape.
fn slower(
    table: &KernelTable<SgemmSpec>,
    samples: &FitSamples,
    shape: usize,
) -> Result<f64, String> {
    let of = samples.shapes[shape];
    let problem = SgemmProblem { shape: of.of_table(), target: samples.target };
    let row = table.choose(&problem).map_err(|error| error.to_string())?;
    let line = table.rules()[row].spec.to_string();
    let known = samples.lines.iter().position(|known| *known == line);
    let known = known.ok_or_else(|| format!("`{line}` is chosen for {of}, and was not timed"))?;
    Ok(samples.slower[shape][known].exp())
}

/// How much slower a table is than the best line of each shape that it was fitted to.
///
/// # Errors
/// What is wrong with the table.
pub fn regret(table: &KernelTable<SgemmSpec>, samples: &FitSamples) -> Result<Comparison, String> {
    let one = |shape| Ok((slower(table, samples, shape)?, samples.shapes[shape]));
    let ratios: Result<Vec<_>, String> = (0..samples.shapes.len()).map(one).collect();
    Ok(Comparison::from_ratios(&ratios?))
}

/// So many tables judge what is left out of each.
const PARTS: usize = 10;

/// The same at shapes that a table has not seen: what was drawn is parted by its size, and for each part a table is
/// fitted to all others.
///
/// # Errors
/// What is wrong with a table.
pub fn unseen(
    samples: &FitSamples,
    first: &First,
    limits: &TreeLimits,
    is_drawn: impl Fn(&GemmShape) -> bool,
) -> Result<Comparison, String> {
    let drawn = samples.shapes.iter().filter(|shape| is_drawn(shape)).map(|shape| shape.size);
    let mut sizes: Vec<Size> = Vec::new();
    for size in drawn {
        if !sizes.contains(&size) {
            sizes.push(size);
        }
    }
    let of_part = |part: usize| -> HashSet<Size> {
        sizes.iter().skip(part).step_by(PARTS).copied().collect()
    };
    let parts = (0..PARTS.min(sizes.len())).into_par_iter().map(|part| {
        let left_out = of_part(part);
        let others = samples.only(|shape| !left_out.contains(&shape.size));
        if first.left(&others)?.shapes.is_empty() {
            return Ok(Vec::new());
        }
        let table = read(&text(&first.then_fitted(&others, limits)?))?;
        let numbers = 0..samples.shapes.len();
        let numbers = numbers.filter(|n| left_out.contains(&samples.shapes[*n].size));
        numbers.map(|n| Ok((slower(&table, samples, n)?, samples.shapes[n]))).collect()
    });
    let ratios: Result<Vec<Vec<_>>, String> = parts.collect();
    Ok(Comparison::from_ratios(&ratios?.concat()))
}

/// The time of cuBLAS over that of what a table chooses, where both are known.
///
/// # Errors
/// What is wrong with the table.
pub fn over_cublas(
    table: &KernelTable<SgemmSpec>,
    samples: &FitSamples,
    cublas: impl Fn(&GemmShape) -> Option<f64>,
) -> Result<Comparison, String> {
    let mut ratios = Vec::new();
    for (n, shape) in samples.shapes.iter().enumerate() {
        if let Some(cublas) = cublas(shape) {
            let us = slower(table, samples, n)? * samples.best[n];
            ratios.push((cublas / us, *shape));
        }
    }
    Ok(Comparison::from_ratios(&ratios))
}

#[cfg(test)]
mod tests;
