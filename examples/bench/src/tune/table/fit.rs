//! Fitting of a table, which is a decision list, to times, and evaluation of a table.

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

/// Rule of a table, as text.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Condition in the grammar of tables.
    pub when: String,
    pub line: String,
}

/// Returns the rules of a fitted table. The last rule has no condition.
pub fn rows(samples: &FitSamples, limits: &TreeLimits) -> Vec<Rule> {
    let mut rows = Vec::new();
    list(samples, &grow(samples, limits), &Condition::default(), &mut rows);
    rows
}

/// Manual rules that precede fitted rules. The fitted rules cover the shapes that match no manual
/// rule.
#[derive(Clone, Debug, Default)]
pub struct First {
    rows: Vec<Rule>,
    /// Manual rules, and one more rule for all other shapes.
    table: Option<KernelTable<SgemmSpec>>,
}

impl First {
    /// Parses manual rules. Each rule must have a condition, and its accuracy must be within the
    /// granted class.
    ///
    /// # Errors
    /// Returns the faults of the rules.
    pub fn read(text: &str, granted: Accuracy) -> Result<Self, String> {
        let rows = text.trim_end().trim_end_matches(';');
        let table = read(&format!("{rows};\nelse => tile: 16x16x16"))?;
        let class = table.accuracy();
        if class > granted {
            return Err(format!("its rules are of accuracy `{class}`. Add --accuracy {class}"));
        }
        let row = |row: &tables::Rule<SgemmSpec>| {
            let when = row.when.as_ref()?.to_string();
            Some(Rule { when, line: row.spec.to_string() })
        };
        Ok(Self { rows: table.rules().iter().filter_map(row).collect(), table: Some(table) })
    }

    /// Returns the number of manual rules.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// Returns the samples that match no manual rule.
    ///
    /// # Errors
    /// Returns a message for an extent outside the range of tables.
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

    /// Returns the manual rules, followed by rules fitted to the remaining samples.
    ///
    /// # Errors
    /// Returns the errors of [`First::left`], and a message if no samples remain.
    pub fn then_fitted(
        &self,
        samples: &FitSamples,
        limits: &TreeLimits,
    ) -> Result<Vec<Rule>, String> {
        let left = self.left(samples)?;
        if left.shapes.is_empty() {
            return Err("no shape with a time reaches the fitted rules".to_owned());
        }
        Ok([self.rows.clone(), rows(&left, limits)].concat())
    }
}

/// Turns the leaves into rules.
///
/// Of a cut's two sides, the one with fewer shapes is first and has the test as its condition. The
/// other side needs no test, because shapes that pass it match an earlier rule.
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

/// Joins the rules with semicolons, one per line, after the accuracy clause.
pub fn text(rows: &[Rule]) -> String {
    let lines: Vec<String> =
        rows.iter().map(|row| format!("{} => {}", row.when, row.line)).collect();
    grant(rows).map_or(String::new(), |grant| grant + "\n") + &lines.join(";\n")
}

/// Returns the accuracy clause of a table, if its rules emulate `f32` on tensor cores.
fn grant(rows: &[Rule]) -> Option<String> {
    let class = rows.iter().map(|row| match row.line.parse() {
        Ok(spec) => class(&spec),
        Err(faults) => unreachable!("Samples and First: the line of a row is sound: {faults}"),
    });
    let class = class.max();
    class.filter(|class| *class > Accuracy::Ieee).map(|class| format!("accuracy: {class};"))
}

/// Maximum number of columns of a source line.
const WIDTH: usize = 100;

/// Returns the source of a table: the lines of `about` as a comment, then a constant.
pub fn source(rows: &[Rule], about: &[String]) -> String {
    let about: String = about.iter().map(|line| wrapped(line, " ", "//! ")).collect();
    let row = |row: &Rule| {
        let (when, line) = (&row.when, format!("{};", row.line));
        let whole = format!("    {when} => {line}\n");
        // The newline is not a column.
        match whole.len() <= WIDTH + 1 {
            true => whole,
            false => {
                wrapped(&format!("{when} =>"), "&& ", "    ") + &wrapped(&line, ", ", "        ")
            }
        }
    };
    let grant = grant(rows).map_or(String::new(), |grant| format!("    {grant}\n"));
    let rows: String = rows.iter().map(row).collect();
    format!(
        "{about}\nuse gemm_runtime::{{SgemmTable, sgemm_table}};\n\n\
         /// For each shape, the spec with the lowest cost around it.\n\
         pub const GEMM: SgemmTable = sgemm_table! {{\n{grant}{rows}}};\n"
    )
}

/// Wraps a text at the separators. Each line starts with `begin`.
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

/// Comparison of a table's times with a reference over several shapes.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    pub count: usize,
    /// Geometric mean of the ratios.
    pub mean: f64,
    /// Smallest ratio, and its shape.
    pub least: Option<(f64, GemmShape)>,
    /// Largest ratio, and its shape.
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

/// Returns the time of the table's choice divided by the time of the best spec, for the shape with
/// this index.
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
    let known = known.ok_or_else(|| format!("`{line}` is chosen for {of}, but was not timed"))?;
    Ok(samples.slower[shape][known].exp())
}

/// Compares a table with the best spec of each shape that it was fitted to.
///
/// # Errors
/// Returns the faults of the table.
pub fn regret(table: &KernelTable<SgemmSpec>, samples: &FitSamples) -> Result<Comparison, String> {
    let one = |shape| Ok((slower(table, samples, shape)?, samples.shapes[shape]));
    let ratios: Result<Vec<_>, String> = (0..samples.shapes.len()).map(one).collect();
    Ok(Comparison::from_ratios(&ratios?))
}

/// Number of parts of the cross-validation.
const PARTS: usize = 10;

/// Cross-validates the fit on the randomly drawn shapes. For each tenth of their sizes, a table is
/// fitted to all other shapes.
///
/// # Errors
/// Returns the faults of a table.
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

/// Compares cuBLAS with the table's choice, at the shapes that have both times.
///
/// # Errors
/// Returns the faults of the table.
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
