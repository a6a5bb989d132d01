//! The tables that ship: of each architecture one for single products and one for batches, whose rows are of
//! `batch: strided`. A row says nothing of what follows from the call: see [`Shipped::line`].

mod safe;
mod sm_100;
mod sm_120;
mod sm_80;
mod sm_89;
mod sm_90;

use crate::compile::Arch;
use crate::device::Device;
use crate::error::Result;
use crate::kernel::{Choice, SgemmTable};
use gemm_dsl::kernel_table::SgemmProblem;
use gemm_dsl::spec::{Batch, Layout, SgemmSpec};
use std::sync::OnceLock;

/// The tables of an architecture.
pub(super) struct Tables {
    pub(super) one: Shipped,
    pub(super) batch: Shipped,
}

/// A table, with the lines of its rows for calls of every kind, each made when it is needed first.
pub(super) struct Shipped {
    pub(super) table: SgemmTable,
    lines: OnceLock<Box<[OnceLock<String>]>>,
}

/// What a call asks for beside what a row is chosen by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// Whether there are `alpha` and `beta`.
    pub(super) scaled: bool,
    /// Whether it is a batch, or a list.
    pub(super) batch: Option<Batch>,
}

/// The lines of a row: for each layout, of matrices that are padded or not, scaled or not, in a batch or in lists.
const LINES: usize = 4 * 2 * 2 * 2;

impl Tables {
    const fn new(one: SgemmTable, batch: SgemmTable) -> Self {
        Self { one: Shipped::new(one), batch: Shipped::new(batch) }
    }

    /// Those for a device.
    pub(super) fn on(device: &Device) -> &'static Self {
        Self::of(device.arch().map(Arch::number))
    }

    /// Those for a GPU of this architecture. One without a number is the simulator.
    pub(super) fn of(arch: Option<u32>) -> &'static Self {
        match arch {
            Some(80 | 87) => &sm_80::TABLES,
            // They have the shared memory of 8.9.
            Some(86 | 88 | 89) => &sm_89::TABLES,
            Some(90) => &sm_90::TABLES,
            Some(100 | 101 | 103 | 110) => &sm_100::TABLES,
            Some(120 | 121) => &sm_120::TABLES,
            _ => &safe::TABLES,
        }
    }

    /// All of them, with an architecture that each is for.
    #[cfg(test)]
    pub(super) const ALL: [(u32, &'static Self); 6] = [
        (75, &safe::TABLES),
        (80, &sm_80::TABLES),
        (89, &sm_89::TABLES),
        (90, &sm_90::TABLES),
        (100, &sm_100::TABLES),
        (120, &sm_120::TABLES),
    ];

    /// The one for such a call.
    pub(super) fn table(&self, asked: Asked) -> &Shipped {
        if asked.batch.is_some() { &self.batch } else { &self.one }
    }
}

impl Shipped {
    const fn new(table: SgemmTable) -> Self {
        Self { table, lines: OnceLock::new() }
    }

    /// The line of the kernel for a problem, which is printed by the first call of its kind.
    ///
    /// # Errors
    /// Those of [`SgemmTable::choice`].
    pub(super) fn line(&self, problem: &SgemmProblem, asked: Asked) -> Result<&str> {
        let row = self.table.row(problem)?;
        let (layout, padded) = (problem.shape.layout, problem.shape.padded);
        let lines = self.lines.get_or_init(|| {
            (0..self.table.rows().len() * LINES).map(|_| OnceLock::new()).collect()
        });
        let listed = asked.batch == Some(Batch::Pointers);
        let kind = [padded, asked.scaled, listed].into_iter();
        let number = kind.fold(row * 4 + layout as usize, |n, bit| n * 2 + usize::from(bit));
        let line =
            lines[number].get_or_init(|| self.spec(row, (layout, padded), asked).to_string());
        Ok(line)
    }

    /// The row for a problem, the line of the kernel that a call takes, and why.
    ///
    /// # Errors
    /// Those of [`SgemmTable::choice`].
    pub(super) fn choice(&self, problem: &SgemmProblem, asked: Asked) -> Result<Choice> {
        let line = self.line(problem, asked)?.to_owned();
        Ok(Choice { line, ..self.table.chosen(problem)? })
    }

    /// The spec of a row for matrices that lie so: its own with what the call needs beside.
    pub(super) fn spec(
        &self,
        row: usize,
        (layout, padded): (Layout, bool),
        asked: Asked,
    ) -> SgemmSpec {
        let spec = self.table.rows()[row].spec.clone();
        // Under `tn` nothing lies along K, and there is nothing to transpose.
        let transpose = spec.transpose && layout != Layout::Tn;
        let spec = spec.layout(layout).transpose(transpose).pitched(padded).scaled(asked.scaled);
        match asked.batch {
            Some(batch) => spec.batch(batch),
            None => spec,
        }
    }
}
