//! Answers of [`SgemmTable::autotune`].

use crate::error::{Error, Result};
use crate::kernel::{Sgemm, SgemmTable};
use gemm_dsl::SpecErrors;
use gemm_dsl::spec::SgemmSpec;
use gemm_dsl::tables::{KernelTable, ReadTable as _};
use std::fmt;
use std::ops::Deref;
use std::time::Duration;

/// Answer of [`SgemmTable::autotune`]: the fastest spec of a table for one shape on one device,
/// with the times of the specs that were tried.
///
/// The methods of [`Answer`] return the candidates and their times. `Display` writes the
/// [`rule`](Self::rule) with a semicolon, to paste before the other rules of an
/// [`sgemm_table!`](crate::sgemm_table).
pub struct Tuned<E = ()> {
    pub(super) table: SgemmTable<E>,
    pub(super) kernel: Sgemm<E>,
    pub(super) answer: Answer,
}

/// The fastest of several specs for one shape on one device, with the times of the specs that were
/// tried.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Condition that holds for this problem only.
    pub(super) condition: String,
    pub(super) outcome: Outcome,
    pub(super) candidates: Vec<Candidate>,
    pub(super) is_cached: bool,
}

/// Result of a tuning, without the specs of the candidates.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    /// Index of the chosen candidate.
    pub(super) chosen: usize,
    pub(super) basis: Basis,
    /// True if no candidate was left out for lack of time.
    pub(super) is_complete: bool,
    pub(super) budget: Duration,
}

/// Origin of the times by which a spec was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Basis {
    /// Nothing was timed: the budget was zero, or the GEMM is empty. The spec is that of the
    /// table's rule.
    Table,
    /// Times are predictions of the time model, because the device is the simulator.
    Predicted,
    /// Times were measured on the device.
    Measured,
}

/// Spec that competed for a shape.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Candidate {
    /// Index of the first rule of the table with this spec. The table's own choice comes first
    /// among the candidates.
    pub rule: usize,
    /// Spec of the kernel: the spec of the rule, adapted to the layouts of the problem.
    pub spec: String,
    /// Prediction of the time model; `None` if there was no time for it, or without the feature
    /// `sim`.
    pub predicted: Option<Duration>,
    /// Median time of a launch on the device; `None` if the spec was not measured.
    pub measured: Option<Duration>,
    /// Number of samples of `measured`.
    pub samples: usize,
    /// Message of the error, if the spec cannot be launched on this device for this shape.
    pub error: Option<String>,
}

impl Candidate {
    /// Returns the measured time, else the predicted one. Only times of one kind are comparable.
    pub fn time(&self) -> Option<Duration> {
        self.measured.or(self.predicted)
    }
}

impl Answer {
    /// Returns the line of the chosen spec, adapted to the layouts of the problem.
    pub fn spec(&self) -> &str {
        &self.chosen().spec
    }

    /// Returns a condition of tables that holds for this shape, these layouts and this model of GPU
    /// only.
    pub fn condition(&self) -> &str {
        &self.condition
    }

    /// Returns the candidates: the table's own choice, then the other specs in the order in which
    /// they were tried. A spec without times and error was left out: the budget was spent, or its
    /// prediction was four times the best one.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// Returns the chosen candidate.
    pub fn chosen(&self) -> &Candidate {
        &self.candidates[self.outcome.chosen]
    }

    /// Returns the table's own choice.
    pub fn of_table(&self) -> &Candidate {
        &self.candidates[0]
    }

    /// Returns the origin of the times.
    pub fn basis(&self) -> Basis {
        self.outcome.basis
    }

    /// Returns true if the budget was sufficient: all candidates were considered, and the close
    /// ones were timed in all rounds.
    pub fn is_complete(&self) -> bool {
        self.outcome.is_complete
    }

    /// Returns true if the answer is from the disk cache: nothing was measured by this call.
    pub fn is_cached(&self) -> bool {
        self.is_cached
    }
}

impl<E> Tuned<E> {
    /// Returns the kernel of the chosen spec.
    pub fn kernel(&self) -> &Sgemm<E> {
        &self.kernel
    }

    /// Returns the answer as a rule of a table: the [`condition`](Answer::condition), and the spec
    /// of the chosen candidate's rule.
    pub fn rule(&self) -> String {
        let spec = self.table.rules()[self.chosen().rule].spec.without_heading();
        format!("{} => {spec}", self.condition)
    }

    /// Returns the table with the answer as its first rule. If the table chooses this spec anyway,
    /// returns the table as it is. A rule of an earlier answer for the same problem is replaced.
    ///
    /// The new table is used as the old one. Its calls for other problems choose as before.
    ///
    /// # Errors
    /// [`Error::Spec`] if the table has the greatest number of rules, which is 256.
    pub fn table(&self) -> Result<SgemmTable<E>> {
        if self.outcome.chosen == 0 {
            return Ok(self.table.clone());
        }
        let when =
            |rule: &gemm_dsl::tables::Rule<SgemmSpec>| rule.when.as_ref().map(ToString::to_string);
        let rules = self.table.rules();
        let texts: Vec<String> = rules.iter().map(ToString::to_string).collect();
        let header = self.table.text().strip_suffix(&texts.join(";\n"));
        let header = header.ok_or_else(|| {
            Error::Internal("the text of a table does not end with its rules".to_owned())
        })?;
        let others = rules.iter().zip(texts);
        let others = others.filter(|(rule, _)| when(rule).as_ref() != Some(&self.condition));
        let others: Vec<String> = others.map(|(_, text)| text).collect();
        let text = format!("{header}{};\n{}", self.rule(), others.join(";\n"));
        let table: Result<KernelTable<SgemmSpec>, SpecErrors> = text.parse();
        Ok(SgemmTable::checked(table?))
    }
}

impl<E> Deref for Tuned<E> {
    type Target = Answer;

    fn deref(&self) -> &Answer {
        &self.answer
    }
}

impl<E> Clone for Tuned<E> {
    fn clone(&self) -> Self {
        let (table, kernel) = (self.table.clone(), self.kernel.clone());
        Self { table, kernel, answer: self.answer.clone() }
    }
}

/// Writes the rule, followed by a semicolon.
impl<E> fmt::Display for Tuned<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{};", self.rule())
    }
}

impl<E> fmt::Debug for Tuned<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tuned").field("answer", &self.answer).finish_non_exhaustive()
    }
}
