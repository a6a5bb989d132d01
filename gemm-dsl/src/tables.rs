//! Tables of kernels: rules that choose a spec according to the shape of a problem.
//!
//! ```text
//! len <= 64 => op: sum, over: rows, group: 4;
//! len % 4 == 0 => op: sum, over: rows, group: 32, float4;
//! else => op: sum, over: rows, group: 32
//! ```
//!
//! The first rule whose condition is true is chosen. All rules compute the same result, but in
//! different ways.
//!
//! A condition is an expression of facts that depend on the [family](TableFamily). For reductions,
//! the facts are the extents of the problem, but not the device. The choice, and with it the bits
//! of the result, therefore depends only on the table and the shape. For GEMMs, the facts also
//! include the layouts of the matrices and the device.
//!
//! Specs in a table of GEMMs must not give `layout` or `pitched`. A rule accepts matrices in any
//! layout, and has a kernel for each layout.
//!
//! The element types of A, B and C precede the rules, as in `a: bf16, b: bf16, c: bf16;`.
//!
//! A table of GEMMs may begin with `invariant;`. All of its rules must then accumulate each element
//! in ascending K. They give the same bits, so the bits do not depend on the chosen rule. With
//! `accuracy: bound;` before the rules, they may use FP32 emulation on tensor cores: see
//! [`Accuracy`].

mod sgemm;
pub mod shipped;
#[cfg(test)]
mod tests;

pub use sgemm::{SgemmProblem, SgemmShape, StridedItems, Target, lines_take_vectors};

use crate::error::SpecErrors;
use crate::expr::{Closure, ConditionInput, Conditions, ExprScope, Facts, REDUCE_TABLE};
use crate::family::Family;
use crate::spec::{Accuracy, ReduceSpec, Table};
use std::fmt;
use std::str::FromStr;

/// Parsing of tables. The grammar in `parse` implements it.
pub trait ReadTable: Family {
    /// Parses and checks a table.
    ///
    /// # Errors
    /// Returns every fault of the table.
    fn read_table(text: &str) -> Result<KernelTable<Self>, SpecErrors>;

    /// Returns the entries that all specs of a table share, as the table's text begins with them;
    /// empty if there are none.
    fn heading(&self) -> String {
        String::new()
    }

    /// Returns the spec without the entries of the [heading](Self::heading).
    #[must_use]
    fn without_heading(&self) -> Self {
        self.clone()
    }
}

/// Family with tables that choose among its kernels.
pub trait TableFamily: ReadTable {
    /// Problem for which a rule is chosen.
    type Problem;

    /// Returns the values of the names in a condition, in the order of the scope.
    fn facts(problem: &Self::Problem) -> Facts;

    /// Returns the number of tiles with these rows and columns, divided by the number of SMs.
    /// `None` if the family's conditions have no `waves`.
    fn waves(_: &Self::Problem, _: (u32, u32)) -> Option<f64> {
        None
    }

    /// Number of layouts that the arrays of a problem can have. Specs in rules do not give the
    /// layout, and a rule has a kernel for each one.
    const LAYOUTS: usize = 1;

    /// Returns the index of a problem's layout.
    fn layout_index(_: &Self::Problem) -> usize {
        0
    }

    /// Plans a spec for arrays in the layout with this index.
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

    /// Keys that specs in rules must not give, because the problem determines them. With each key,
    /// the names that conditions can test instead.
    const FOLLOWING: &'static [(&'static str, &'static str)];

    /// Returns the values of the facts that a layout determines.
    fn answers(layout_index: usize) -> Vec<(&'static str, bool)>;

    /// Keys that precede the rules of a table and apply to all of them.
    const HEADING: &'static [&'static str] = &[];

    /// Example of a spec for a rule, for messages.
    const LINE: &'static str;

    /// Function that returns the key, if any, that makes a spec sum in an order other than
    /// ascending. `None` if tables of the family cannot be `invariant`.
    const VARIES: Option<fn(&Self) -> Option<&'static str>>;

    /// Rounding of specs; `None` if tables of the family have no `accuracy`.
    const ROUNDS: Option<Rounds<Self>>;
}

/// Key that determines how a spec rounds, with a function that returns the strictest class that
/// allows the spec, if any.
pub(crate) type Rounds<S> = (&'static str, fn(&S) -> Option<Accuracy>);

/// Rule of a table: a condition, and the spec for problems that match the condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule<S: Family> {
    /// Condition; `None` for the last rule, which matches every problem.
    pub when: Option<Closure>,
    /// Spec of the kernel, without a layout. [`Rule::kernels`] has the plans for all layouts.
    pub spec: S,
    /// Plan for each layout that problems of the rule can have.
    pub(crate) kernels: Vec<(usize, S::Plan)>,
}

impl<S: Family> Rule<S> {
    /// Returns the plans of the rule's kernels, one for each layout that problems of the rule can
    /// have.
    pub fn kernels(&self) -> impl Iterator<Item = &S::Plan> {
        self.kernels.iter().map(|(_, plan)| plan)
    }
}

/// Table of rules. Every problem matches at least the last rule. All conditions are different.
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
    /// Accuracy class that the rules may use, if the table names one.
    pub accuracy: Option<Accuracy>,
}

impl Header {
    /// Returns the accuracy class that the rules may use.
    pub fn granted(self) -> Accuracy {
        self.accuracy.unwrap_or_default()
    }
}

/// Error for a number in a condition that is outside the allowed range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    /// Name of the number in conditions.
    pub name: &'static str,
    pub value: u64,
    pub least: u64,
    pub most: u64,
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value, least, most } = self;
        write!(f, "`{name}` is {value}, but tables accept only {least} to {most}")
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
    /// Returns [`OutOfRange`] if a fact that the conditions read is outside its range.
    pub fn choose(&self, problem: &S::Problem) -> Result<usize, OutOfRange> {
        match self.choose_from(problem, 0)? {
            Some(row) => Ok(row),
            None => unreachable!("checked: the last row has no condition"),
        }
    }

    /// Returns the index of the first rule from `from` on whose condition holds for a problem.
    /// `None` if there are no such rules.
    ///
    /// # Errors
    /// Returns the errors of [`choose`](Self::choose).
    pub fn choose_from(
        &self,
        problem: &S::Problem,
        from: usize,
    ) -> Result<Option<usize>, OutOfRange> {
        let waves = |tile| waves_of::<S>(problem, tile);
        first(&self.conditions, ConditionInput { facts: &S::facts(problem), waves: &waves }, from)
    }

    /// Returns the plan for a problem. `row` must be the rule that was [chosen](Self::choose) for
    /// it.
    pub fn kernel(&self, row: usize, problem: &S::Problem) -> &S::Plan {
        let layout_index = S::layout_index(problem);
        let mut kernels = self.rows[row].kernels.iter();
        let kernel = kernels.find(|(layout, _)| *layout == layout_index);
        let (_, plan) = kernel.unwrap_or_else(|| {
            unreachable!("ProblemSet: no problem of this layout matches the rule")
        });
        plan
    }

    /// Explains the choice of a rule. Returns the facts that its condition and the earlier
    /// conditions read, with their values, in the order of the text.
    ///
    /// # Errors
    /// Returns the errors of [`choose`](Self::choose).
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

/// Returns the waves of a problem, which must be of a family with `waves`.
fn waves_of<S: TableFamily>(problem: &S::Problem, tile: (u32, u32)) -> f64 {
    S::waves(problem, tile)
        .unwrap_or_else(|| unreachable!("ExprScope::has_waves: problems of this family have them"))
}

/// Returns the first rule from `from` on that matches a problem. Not generic, so that its code is
/// optimised in this crate.
fn first(
    conditions: &Conditions,
    problem: ConditionInput<'_>,
    from: usize,
) -> Result<Option<usize>, OutOfRange> {
    check(conditions, problem.facts)?;
    Ok(conditions.first(problem, from))
}

/// Checks that the facts are in the ranges for which the conditions were checked.
fn check(conditions: &Conditions, facts: &Facts) -> Result<(), OutOfRange> {
    match conditions.out_of_range(facts) {
        None => Ok(()),
        Some((name, value, range)) => {
            let end = |end| u64::try_from(end).unwrap_or(0);
            Err(OutOfRange { name, value, least: end(range.least), most: end(range.most) })
        }
    }
}

/// Writes the condition and the spec, without the entries of the table's heading.
impl<S: ReadTable> fmt::Display for Rule<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spec = self.spec.without_heading();
        match &self.when {
            Some(when) => write!(f, "{when} => {spec}"),
            None => write!(f, "else => {spec}"),
        }
    }
}

/// Header of a table whose rules all give the same bits.
pub(crate) const INVARIANT: &str = "invariant";
/// Header that names the accuracy class of the rules.
pub(crate) const ACCURACY: &str = "accuracy";

/// Prints the canonical text, one rule per line.
impl<S: ReadTable> fmt::Display for KernelTable<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heading = self.rows.first().map(|row| row.spec.heading()).unwrap_or_default();
        if !heading.is_empty() {
            writeln!(f, "{heading};")?;
        }
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
    /// Extents (outer, len, inner) of the folded arrays. Extents that do not exist under `over` are
    /// 1.
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
