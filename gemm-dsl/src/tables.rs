//! Tables of kernels: which line computes a problem of which shape.
//!
//! ```text
//! len <= 64 => op: sum, over: rows, group: 4;
//! len % 4 == 0 => op: sum, over: rows, group: 32, float4;
//! else => op: sum, over: rows, group: 32
//! ```
//!
//! The first row whose condition holds is chosen. A condition is an expression over what its [family](TableFamily) says:
//! of reductions the extents of a problem, and nothing of the device, so that what is chosen, and with it the bits
//! of the result, depends on the table and on the shape alone; of products also how the matrices lie, and the
//! device. All rows compute the same; they differ in how.
//!
//! A line of products says neither `layout` nor `pitched`: a row takes matrices however they lie, and has a kernel
//! for each layout.
//!
//! A table of products that begins with `invariant;` has only rows that sum each element in ascending K by one
//! accumulator: they all give the same bits, so that none of them depends on which row is chosen. `accuracy: bound;` before
//! the rows grants them what tensor cores make in place of `f32`: see [`Accuracy`].

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

/// Reading of tables, which the grammar implements.
pub trait ReadTable: Family {
    /// Reads and checks a table.
    ///
    /// # Errors
    /// All of its faults.
    fn read_table(text: &str) -> Result<KernelTable<Self>, SpecErrors>;
}

/// A family of which there are tables.
pub trait TableFamily: ReadTable {
    /// What a row is chosen for.
    type Problem;

    /// What the names of its conditions stand for, in the order of their environment.
    fn facts(problem: &Self::Problem) -> Facts;

    /// How many tiles of so many rows and columns there are for each multiprocessor; none where conditions do not ask.
    fn waves(_: &Self::Problem, _: (u32, u32)) -> Option<f64> {
        None
    }

    /// The number of layouts that the arrays of a problem may have, which no line says: a rule has a kernel for each.
    const LAYOUTS: usize = 1;

    /// The index of the layout that those of a problem have.
    fn layout_index(_: &Self::Problem) -> usize {
        0
    }

    /// The kernel of a line for arrays in a layout.
    ///
    /// # Errors
    /// All faults of the spec for that layout.
    fn plan_for_layout(&self, _layout_index: usize) -> Result<Self::Plan, SpecErrors> {
        self.plan()
    }
}

/// What a table asks of the specs in its rows.
pub(crate) trait RuleSpec: Table + TableFamily {
    /// What conditions may name.
    const CONDITION: &'static ExprScope;

    /// Keys that no line has, since they follow from the problem, and what a condition asks in their place.
    const FOLLOWING: &'static [(&'static str, &'static str)];

    /// What is so of the problems whose arrays lie in a layout.
    fn answers(layout_index: usize) -> Vec<(&'static str, bool)>;

    /// A line, for messages.
    const LINE: &'static str;

    /// The key by which a line sums otherwise than in ascending order by one accumulator, if any; none where no
    /// table is `invariant`.
    const VARIES: Option<fn(&Self) -> Option<&'static str>>;

    /// How a line rounds; none where tables grant nothing.
    const ROUNDS: Option<Rounds<Self>>;
}

/// The key that says how a line rounds, and the class that a table has to grant for it, if there is one.
pub(crate) type Rounds<S> = (&'static str, fn(&S) -> Option<Accuracy>);

/// A row of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule<S: Family> {
    /// Where it is chosen; always, without one.
    pub when: Option<Closure>,
    /// The kernel, as its line says, which says nothing of how arrays lie: see [`Rule::kernels`].
    pub spec: S,
    /// The plan for each layout in which arrays lie of problems that may come to it.
    pub(crate) kernels: Vec<(usize, S::Plan)>,
}

impl<S: Family> Rule<S> {
    /// Its kernels, one for each layout in which the arrays lie of problems that may come to it.
    pub fn kernels(&self) -> impl Iterator<Item = &S::Plan> {
        self.kernels.iter().map(|(_, plan)| plan)
    }
}

/// A table: each problem has a row, the last one if no other. No two rows have one condition.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelTable<S: Family> {
    rows: Vec<Rule<S>>,
    conditions: Conditions,
    header: Header,
}

/// What a table says of all its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    /// Whether they give the same bits.
    pub is_invariant: bool,
    /// How accurate they are, if it says so.
    pub accuracy: Option<Accuracy>,
}

impl Header {
    /// What the rows are granted.
    pub fn granted(self) -> Accuracy {
        self.accuracy.unwrap_or_default()
    }
}

/// A number that conditions ask for is none that a device can be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    /// What conditions call it.
    pub name: &'static str,
    /// What it is.
    pub value: u64,
    /// The least that it may be.
    pub least: u64,
    /// The greatest.
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
    /// Rules that have been checked.
    pub(crate) fn new(rows: Vec<Rule<S>>, header: Header) -> Self {
        let conditions = Conditions::new(rows.iter().map(|row| row.when.as_ref()));
        Self { rows, conditions, header }
    }

    /// The rows. The last one has no condition.
    pub fn rules(&self) -> &[Rule<S>] {
        &self.rows
    }

    /// Whether it says that all rows give the same bits.
    pub fn is_invariant(&self) -> bool {
        self.header.is_invariant
    }

    /// How far its rows may be off.
    pub fn accuracy(&self) -> Accuracy {
        self.header.granted()
    }
}

impl<S: TableFamily> KernelTable<S> {
    /// The number of the row for a problem.
    ///
    /// # Errors
    /// [`OutOfRange`] for an extent that no array has.
    pub fn choose(&self, problem: &S::Problem) -> Result<usize, OutOfRange> {
        let waves = |tile| waves_of::<S>(problem, tile);
        first(&self.conditions, ConditionInput { facts: &S::facts(problem), waves: &waves })
    }

    /// The kernel of the row that was [chosen](Self::choose) for a problem.
    pub fn kernel(&self, row: usize, problem: &S::Problem) -> &S::Plan {
        let layout_index = S::layout_index(problem);
        let mut kernels = self.rows[row].kernels.iter();
        let kernel = kernels.find(|(layout, _)| *layout == layout_index);
        let (_, plan) = kernel
            .unwrap_or_else(|| unreachable!("ProblemSet: no problem of this layout comes to it"));
        plan
    }

    /// Why a row is chosen for a problem: what its condition and those before it name, and what that is, in the order
    /// of the text.
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

/// The waves that conditions of a family ask for.
fn waves_of<S: TableFamily>(problem: &S::Problem, tile: (u32, u32)) -> f64 {
    S::waves(problem, tile)
        .unwrap_or_else(|| unreachable!("ExprScope::has_waves: problems of this family have them"))
}

/// The first row for a problem.
fn first(conditions: &Conditions, problem: ConditionInput<'_>) -> Result<usize, OutOfRange> {
    check(conditions, problem.facts)?;
    match conditions.first(problem) {
        Some(row) => Ok(row),
        None => unreachable!("checked: the last row has no condition"),
    }
}

/// Checks that what is asked is in the ranges that conditions were checked with.
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

/// The word of a table whose rows give the same bits.
pub(crate) const INVARIANT: &str = "invariant";
/// The word before what rows are granted.
pub(crate) const ACCURACY: &str = "accuracy";

/// The canonical text: a row a line.
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
    /// The extents (outer, len, inner) of what is folded; those that `over` has not are 1.
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
