//! Tables of kernels: rules that choose a spec by the shape of a problem.
//!
//! ```text
//! len <= 64 => op: sum, over: rows, group: 4;
//! len % 4 == 0 => op: sum, over: rows, group: 32, float4;
//! else => op: sum, over: rows, group: 32
//! ```
//!
//! The first rule whose condition holds is chosen. All rules compute the same result; they differ
//! in how.
//!
//! A condition is an expression over the facts of its [family](TableFamily). For a reduction these
//! are the extents of the problem, not the device: the choice, and with it the bits of the result,
//! depends only on the table and the shape. For a GEMM they also include the layouts of the
//! matrices and the device.
//!
//! The specs in a table of GEMMs give neither `layout` nor `pitched`. A rule accepts matrices in
//! any layout, and has a kernel for each.
//!
//! A table of GEMMs that begins with `invariant;` only has rules that accumulate each element in
//! ascending K. They all give the same bits, so the bits do not depend on the chosen rule.
//! `accuracy: bound;` before the rules admits FP32 emulation on tensor cores: see [`Accuracy`].

mod sgemm;
pub mod shipped;
#[cfg(test)]
mod tests;

pub use sgemm::{SgemmProblem, SgemmShape, Strided, Target, lines_take_vectors};

use crate::error::SpecErrors;
use crate::expr::{Closure, ConditionInput, Conditions, ExprScope, Facts, REDUCE_TABLE};
use crate::family::Family;
use crate::spec::{Accuracy, ReduceSpec, Table};
use std::fmt;
use std::str::FromStr;

/// Parsing of tables, which the grammar implements.
pub trait ReadTable: Family {
    /// Parses and checks a table.
    ///
    /// # Errors
    /// Returns every fault of the table.
    fn read_table(text: &str) -> Result<KernelTable<Self>, SpecErrors>;
}

/// Family whose kernels can be chosen by a table.
pub trait TableFamily: ReadTable {
    /// Problem that a rule is chosen for.
    type Problem;

    /// Returns the values of the names in conditions, in the order of their scope.
    fn facts(problem: &Self::Problem) -> Facts;

    /// Returns the number of tiles with these rows and columns, divided by the SMs; `None` if
    /// conditions have no `waves`.
    fn waves(_: &Self::Problem, _: (u32, u32)) -> Option<f64> {
        None
    }

    /// Number of layouts that the arrays of a problem may have. Specs do not give the layout; a
    /// rule has a kernel for each.
    const LAYOUTS: usize = 1;

    /// Returns the index of a problem's layout.
    fn layout_index(_: &Self::Problem) -> usize {
        0
    }

    /// Plans a spec for arrays in a layout.
    ///
    /// # Errors
    /// Returns every fault of the spec for that layout.
    fn plan_for_layout(&self, _layout_index: usize) -> Result<Self::Plan, SpecErrors> {
        self.plan()
    }
}

/// Requirements of a table on the specs in its rules.
pub(crate) trait RuleSpec: Table + TableFamily {
    /// Names and functions that conditions may use.
    const CONDITION: &'static ExprScope;

    /// Keys that specs in rules cannot have because they follow from the problem, and the facts
    /// that conditions read instead.
    const FOLLOWING: &'static [(&'static str, &'static str)];

    /// Returns the facts that a layout determines.
    fn answers(layout_index: usize) -> Vec<(&'static str, bool)>;

    /// Example of a spec, for messages.
    const LINE: &'static str;

    /// Returns the key that makes a spec sum otherwise than in ascending order, if any; `None` if
    /// tables cannot be `invariant`.
    const VARIES: Option<fn(&Self) -> Option<&'static str>>;

    /// Rounding of a spec; `None` if tables have no `accuracy`.
    const ROUNDS: Option<Rounds<Self>>;
}

/// The key that decides how a spec rounds, and a function that returns the class that admits the
/// spec, if one does.
pub(crate) type Rounds<S> = (&'static str, fn(&S) -> Option<Accuracy>);

/// Rule of a table: a condition, and the spec for the problems that it holds for.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule<S: Family> {
    /// Condition; `None` for the last rule, which always holds.
    pub when: Option<Closure>,
    /// Spec of the kernel, without a layout: see [`Rule::kernels`].
    pub spec: S,
    /// Plan for each layout of the problems that can reach the rule.
    pub(crate) kernels: Vec<(usize, S::Plan)>,
}

impl<S: Family> Rule<S> {
    /// Returns the plans of its kernels, one for each layout of the problems that can reach the
    /// rule.
    pub fn kernels(&self) -> impl Iterator<Item = &S::Plan> {
        self.kernels.iter().map(|(_, plan)| plan)
    }
}

/// Table of rules. Every problem matches a rule, at least the last one. Conditions are distinct.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelTable<S: Family> {
    rows: Vec<Rule<S>>,
    conditions: Conditions,
    header: Header,
}

/// Header of a table, which applies to all of its rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    /// True if all rules give the same bits.
    pub is_invariant: bool,
    /// Accuracy class that the rules may use, if the table gives one.
    pub accuracy: Option<Accuracy>,
}

impl Header {
    /// Returns the accuracy class that the rules may use.
    pub fn granted(self) -> Accuracy {
        self.accuracy.unwrap_or_default()
    }
}

/// Error for a number in conditions that is outside of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    /// Name in conditions.
    pub name: &'static str,
    pub value: u64,
    pub least: u64,
    pub most: u64,
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value, least, most } = self;
        write!(f, "`{name}` is {value}, and a table is for {least} to {most}")
    }
}

impl std::error::Error for OutOfRange {}

impl<S: Family> KernelTable<S> {
    /// Builds a table from checked rules.
    pub(crate) fn new(rows: Vec<Rule<S>>, header: Header) -> Self {
        let conditions = Conditions::new(rows.iter().map(|row| row.when.as_ref()));
        Self { rows, conditions, header }
    }

    /// Returns the rules. The last one has no condition.
    pub fn rules(&self) -> &[Rule<S>] {
        &self.rows
    }

    /// Returns true if the table begins with `invariant;`.
    pub fn is_invariant(&self) -> bool {
        self.header.is_invariant
    }

    /// Returns the accuracy class that the rules may use.
    pub fn accuracy(&self) -> Accuracy {
        self.header.granted()
    }
}

impl<S: TableFamily> KernelTable<S> {
    /// Returns the index of the rule for a problem.
    ///
    /// # Errors
    /// [`OutOfRange`] if a fact that conditions read is outside of its range.
    pub fn choose(&self, problem: &S::Problem) -> Result<usize, OutOfRange> {
        let waves = |tile| waves_of::<S>(problem, tile);
        first(&self.conditions, ConditionInput { facts: &S::facts(problem), waves: &waves })
    }

    /// Returns the plan for a problem, of the rule that was [chosen](Self::choose) for it.
    pub fn kernel(&self, row: usize, problem: &S::Problem) -> &S::Plan {
        let layout_index = S::layout_index(problem);
        let mut kernels = self.rows[row].kernels.iter();
        let kernel = kernels.find(|(layout, _)| *layout == layout_index);
        let (_, plan) = kernel
            .unwrap_or_else(|| unreachable!("ProblemSet: no problem of this layout comes to it"));
        plan
    }

    /// Explains the choice of a rule: the facts that its condition and the ones before it read,
    /// with their values, in the order of the text.
    ///
    /// # Errors
    /// As [`choose`](Self::choose).
    pub fn why(
        &self,
        row: usize,
        problem: &S::Problem,
    ) -> Result<Vec<(String, String)>, OutOfRange> {
        let (facts, waves) = (S::facts(problem), |tile| waves_of::<S>(problem, tile));
        check(&self.conditions, &facts)?;
        let problem = ConditionInput { facts: &facts, waves: &waves };
        let asked = self.conditions.asked_by(row).iter();
        Ok(asked.map(|asked| (asked.to_string(), problem.answer(*asked).to_string())).collect())
    }
}

/// Returns the waves of a problem, for families whose conditions have them.
fn waves_of<S: TableFamily>(problem: &S::Problem, tile: (u32, u32)) -> f64 {
    S::waves(problem, tile)
        .unwrap_or_else(|| unreachable!("ExprScope::has_waves: problems of this family have them"))
}

/// Returns the first rule that matches a problem.
fn first(conditions: &Conditions, problem: ConditionInput<'_>) -> Result<usize, OutOfRange> {
    check(conditions, problem.facts)?;
    match conditions.first(problem) {
        Some(row) => Ok(row),
        None => unreachable!("checked: the last row has no condition"),
    }
}

/// Checks that the facts are in the ranges that conditions were checked with.
fn check(conditions: &Conditions, facts: &Facts) -> Result<(), OutOfRange> {
    match conditions.out_of_range(facts) {
        None => Ok(()),
        Some((name, value, range)) => {
            let end = |end| u64::try_from(end).unwrap_or(0);
            Err(OutOfRange { name, value, least: end(range.least), most: end(range.most) })
        }
    }
}

impl<S: Family> fmt::Display for Rule<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.when {
            Some(when) => write!(f, "{when} => {}", self.spec),
            None => write!(f, "else => {}", self.spec),
        }
    }
}

/// Header of a table whose rules give the same bits.
pub(crate) const INVARIANT: &str = "invariant";
/// Header that gives the accuracy class of the rules.
pub(crate) const ACCURACY: &str = "accuracy";

/// The canonical text, one rule per line.
impl<S: Family> fmt::Display for KernelTable<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.header.is_invariant {
            writeln!(f, "{INVARIANT};")?;
        }
        if let Some(accuracy) = self.header.accuracy {
            writeln!(f, "{ACCURACY}: {accuracy};")?;
        }
        for (n, row) in self.rows.iter().enumerate() {
            let end = if n + 1 == self.rows.len() { "" } else { ";\n" };
            write!(f, "{row}{end}")?;
        }
        Ok(())
    }
}

impl<S: TableFamily> FromStr for KernelTable<S> {
    type Err = SpecErrors;
    fn from_str(text: &str) -> Result<Self, SpecErrors> {
        S::read_table(text)
    }
}

impl TableFamily for ReduceSpec {
    /// Extents (outer, len, inner) of the folded arrays; extents that `over` lacks are 1.
    type Problem = (u64, u64, u64);

    fn facts(problem: &(u64, u64, u64)) -> Facts {
        let (outer, len, inner) = problem;
        Facts::new([*outer, *len, *inner], [])
    }
}

impl RuleSpec for ReduceSpec {
    const CONDITION: &'static ExprScope = &REDUCE_TABLE;

    const FOLLOWING: &'static [(&'static str, &'static str)] = &[];

    fn answers(_: usize) -> Vec<(&'static str, bool)> {
        Vec::new()
    }

    const LINE: &'static str = "over: rows, group: 4";

    const VARIES: Option<fn(&Self) -> Option<&'static str>> = None;

    const ROUNDS: Option<Rounds<Self>> = None;
}
