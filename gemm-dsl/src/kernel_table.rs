//! Tables of kernels: which line computes a problem of which shape.
//!
//! ```text
//! len <= 64 => op: sum, over: rows, group: 4;
//! len % 4 == 0 => op: sum, over: rows, group: 32, float4;
//! else => op: sum, over: rows, group: 32
//! ```
//!
//! The first row whose condition holds is chosen. A condition is an expression of integers and truth values over
//! the extents of a problem, and over nothing of the device: what is chosen, and with it the bits of the
//! result, depends on the table and on the shape alone. All rows compute the same; they differ in how.

#[cfg(test)]
mod tests;

use crate::Family;
use crate::error::SpecErrors;
use crate::parse;
use crate::plan::Checked;
use crate::spec::ReduceSpec;
use crate::value::{Closure, Environment, REDUCE_TABLE};
use std::fmt;
use std::str::FromStr;

/// A family of which there are tables.
pub trait Tabled: Family {
    /// Reads and checks a table.
    ///
    /// # Errors
    /// All of its faults.
    fn read_table(text: &str) -> Result<KernelTable<Self>, SpecErrors>;

    /// The names of the extents that conditions may be over.
    fn extents() -> &'static [&'static str];
}

/// What a table asks of the specs in its rows.
pub(crate) trait Rows: Checked {
    /// What conditions may name.
    const CONDITION: &'static Environment;

    /// The keys that say what is computed.
    const WORK: &'static [&'static str];

    /// The first of these keys in which two specs differ.
    fn differs(&self, other: &Self) -> Option<&'static str>;
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row<S> {
    /// Where it is chosen; always, without one.
    pub when: Option<Closure>,
    /// The kernel.
    pub spec: S,
}

/// A table: each problem has a row, the last one if no other. No two rows have one condition.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelTable<S> {
    rows: Vec<Row<S>>,
}

impl<S> KernelTable<S> {
    /// Rows that have been checked.
    pub(crate) fn of(rows: Vec<Row<S>>) -> Self {
        Self { rows }
    }

    /// The rows. The last one has no condition.
    pub fn rows(&self) -> &[Row<S>] {
        &self.rows
    }

    /// The number of the row for a problem, whose extents are given by their names.
    ///
    /// An integer that leaves 128 bits is the greatest, or the least, that they hold; without extents above 2^48 none
    /// does.
    pub fn choose(&self, extent: impl Fn(&str) -> u64) -> usize {
        let extent = |name: &str| extent(name).into();
        let holds = |row: &Row<S>| row.when.as_ref().is_none_or(|when| when.holds(&extent));
        match self.rows.iter().position(holds) {
            Some(row) => row,
            None => unreachable!("checked: the last row has no condition"),
        }
    }
}

impl<S: fmt::Display> fmt::Display for Row<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.when {
            Some(when) => write!(f, "{when} => {}", self.spec),
            None => write!(f, "else => {}", self.spec),
        }
    }
}

/// The canonical text: a row a line.
impl<S: fmt::Display> fmt::Display for KernelTable<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, row) in self.rows.iter().enumerate() {
            let end = if n + 1 == self.rows.len() { "" } else { ";\n" };
            write!(f, "{row}{end}")?;
        }
        Ok(())
    }
}

impl<S: Tabled> FromStr for KernelTable<S> {
    type Err = SpecErrors;
    fn from_str(text: &str) -> Result<Self, SpecErrors> {
        S::read_table(text)
    }
}

impl Tabled for ReduceSpec {
    fn read_table(text: &str) -> Result<KernelTable<Self>, SpecErrors> {
        parse::table_from_text(text)
    }

    fn extents() -> &'static [&'static str] {
        Self::CONDITION.integers
    }
}

impl Rows for ReduceSpec {
    const CONDITION: &'static Environment = &REDUCE_TABLE;

    const WORK: &'static [&'static str] = &[
        "op",
        "fold",
        "identity",
        "map",
        "finish",
        "type",
        "acc",
        "index",
        "result",
        "compensated",
        "over",
    ];

    fn differs(&self, other: &Self) -> Option<&'static str> {
        let same = [
            self.op == other.op,
            self.fold == other.fold,
            self.identity == other.identity,
            self.map == other.map,
            self.finish == other.finish,
            self.element == other.element,
            self.acc_elem() == other.acc_elem(),
            self.index == other.index,
            self.results() == other.results(),
            self.compensated == other.compensated,
            self.over == other.over,
        ];
        Self::WORK.iter().copied().zip(same).find(|(_, same)| !same).map(|(key, _)| key)
    }
}
