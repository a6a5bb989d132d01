//! The tables that ship: of each architecture one for single products and one for batches, whose rows are of
//! `batch: strided`. A row says nothing of what follows from the call: see [`Shipped::line`].

mod batch;
mod emulated;
mod h200;
mod safe;

use crate::compile::Arch;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::kernel::{Choice, SgemmTable};
use gemm_dsl::SpecErrors;
use gemm_dsl::spec::{Accuracy, Batch, GemmLayout, SgemmSpec};
use gemm_dsl::tables::{KernelTable, SgemmProblem, TableFamily};
use gemm_dsl::target::arch::{ALL, Multiprocessor};
use std::sync::{LazyLock, OnceLock};

/// The tables of an architecture.
pub(super) struct Tables {
    pub(super) one: Shipped,
    pub(super) batch: Shipped,
}

/// A table, with the lines of its rows for calls of every kind, each printed when it is needed first.
pub(super) struct Shipped {
    pub(super) table: SgemmTable,
    /// What it is for.
    sm: Multiprocessor,
    lines: OnceLock<Box<[OnceLock<String>]>>,
}

/// What a call asks for beside what a row is chosen by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallFeatures {
    /// Whether there are `alpha` and `beta`.
    pub(super) scaled: bool,
    /// Whether it is a batch, or a list.
    pub(super) batch: Option<Batch>,
}

/// The lines of a row: for each way in which matrices lie, scaled or not, in a batch or in lists.
const LINES: usize = SgemmSpec::LAYOUTS * 2 * 2;

/// Single products measured on an H200, most rows as `tune --table` has written them; batches by hand.
static SM_90: Tables = Tables::new(h200::GEMM, batch::GEMMS, 90);
/// By model, not measured: the rows of `sm_90`, with as many stages, slices and blocks as fit into a multiprocessor here.
/// What they count in `waves` counts the multiprocessors of the device.
static SM_80: Tables = Tables::new(h200::GEMM, batch::GEMMS, 80);
/// By model, not measured: the same.
static SM_89: Tables = Tables::new(h200::GEMM, batch::GEMMS, 89);
/// By model, not measured: the same as `sm_90`, since a multiprocessor has the same memory and registers.
static SM_100: Tables = Tables::new(h200::GEMM, batch::GEMMS, 100);
/// By model, not measured: the same as `sm_89`.
static SM_120: Tables = Tables::new(h200::GEMM, batch::GEMMS, 120);

/// The same where more is granted: measured, as `emulated` says.
static SM_90_BOUND: LazyLock<Tables> =
    LazyLock::new(|| Tables::granted(Accuracy::Bound, emulated::BOUND, 90));
static SM_90_NORM: LazyLock<Tables> =
    LazyLock::new(|| Tables::granted(Accuracy::Norm, emulated::NORM, 90));

impl Tables {
    /// Those of an architecture that `arch::ALL` has.
    const fn new(one: SgemmTable, batch: SgemmTable, arch: u32) -> Self {
        let mut at = 0;
        while ALL[at].arch != arch {
            at += 1;
        }
        Self { one: Shipped::new(one, ALL[at]), batch: Shipped::new(batch, ALL[at]) }
    }

    /// Those for a device.
    pub(super) fn on(device: &Device, accuracy: Accuracy) -> &'static Self {
        Self::for_arch(device.arch().map(Arch::number), accuracy)
    }

    /// Those for a GPU of this architecture, whose rows are of that accuracy. One without a number is the simulator.
    pub(super) fn for_arch(arch: Option<u32>, accuracy: Accuracy) -> &'static Self {
        match (arch, accuracy) {
            (Some(90), Accuracy::Bound) => &SM_90_BOUND,
            (Some(90), Accuracy::Norm) => &SM_90_NORM,
            _ => Self::in_f32(arch),
        }
    }

    fn in_f32(arch: Option<u32>) -> &'static Self {
        match arch {
            Some(80 | 87) => &SM_80,
            // They have the shared memory of 8.9.
            Some(86 | 88 | 89) => &SM_89,
            Some(90) => &SM_90,
            Some(100 | 101 | 103 | 110) => &SM_100,
            Some(120 | 121) => &SM_120,
            _ => &safe::TABLES,
        }
    }

    /// Those of an architecture behind rows for single products and for batches, which are of that accuracy.
    fn granted(accuracy: Accuracy, rows: [&[&str]; 2], arch: u32) -> Self {
        let Self { one, batch } = Self::in_f32(Some(arch));
        let [one, batch] = [(rows[0], &one.table), (rows[1], &batch.table)].map(|(rows, then)| {
            let text = format!("accuracy: {accuracy};\n{}{then}", rows.concat());
            let table: Result<KernelTable<SgemmSpec>, SpecErrors> = text.parse();
            let table = table.map_err(Error::from).and_then(|table| SgemmTable::new(&table));
            table.unwrap_or_else(|faults| unreachable!("these rows ship, and are tested: {faults}"))
        });
        Self::new(one, batch, arch)
    }

    /// An architecture of each of them.
    #[cfg(test)]
    pub(super) const ARCHS: [u32; 6] = [75, 80, 89, 90, 100, 120];

    /// The one for such a call.
    pub(super) fn table(&self, asked: CallFeatures) -> &Shipped {
        if asked.batch.is_some() { &self.batch } else { &self.one }
    }
}

impl Shipped {
    const fn new(table: SgemmTable, sm: Multiprocessor) -> Self {
        Self { table, sm, lines: OnceLock::new() }
    }

    /// The line of the kernel for a problem, which is printed by the first call of its kind.
    ///
    /// # Errors
    /// Those of [`SgemmTable::choice`] and of [`spec`](Self::spec).
    pub(super) fn line(&self, problem: &SgemmProblem, asked: CallFeatures) -> Result<&str> {
        let row = self.table.row(problem)?;
        let (layout, padded) = (problem.shape.lies(), problem.shape.padded);
        let lines = self.lines.get_or_init(|| {
            (0..self.table.rules().len() * LINES).map(|_| OnceLock::new()).collect()
        });
        let asks = [asked.scaled, asked.batch == Some(Batch::Pointers)];
        let way = row * SgemmSpec::LAYOUTS + SgemmSpec::layout_index(problem);
        let number = asks.into_iter().fold(way, |n, bit| n * 2 + usize::from(bit));
        if let Some(line) = lines[number].get() {
            return Ok(line);
        }
        let line = self.spec(row, layout, padded, asked)?.to_string();
        Ok(lines[number].get_or_init(|| line))
    }

    /// The row for a problem, the line of the kernel that a call takes, and why.
    ///
    /// # Errors
    /// Those of [`line`](Self::line).
    pub(super) fn choice(&self, problem: &SgemmProblem, asked: CallFeatures) -> Result<Choice> {
        let line = self.line(problem, asked)?.to_owned();
        Ok(Choice { line, ..self.table.chosen(problem)? })
    }

    /// The spec of a row for matrices that lie so: its own with what the call needs beside, and as many of its stages, and
    /// then slices, as the shared memory of a block holds, then as many of its blocks as that of a multiprocessor.
    ///
    /// # Errors
    /// [`Error::Spec`] for a row that has no plan with what the call needs. None ships: tests see
    /// to it.
    pub(super) fn spec(
        &self,
        row: usize,
        layout: GemmLayout,
        padded: bool,
        asked: CallFeatures,
    ) -> Result<SgemmSpec> {
        let spec = self.table.rules()[row].spec.clone();
        let spec = spec.for_matrices(layout, padded).scaled(asked.scaled);
        let mut spec = match asked.batch {
            Some(batch) => spec.batch(batch),
            None => spec,
        };
        while let Some(fewer) = spec.stages.map(|stages| stages - 1).filter(|fewer| *fewer >= 2)
            && shared_bytes(&spec)? > self.sm.shared_per_block
        {
            spec = spec.stages(fewer);
        }
        // The sums of slices wait beside the tiles, so that fewer slices wait where two stages are still too many.
        while spec.slices > 1 && shared_bytes(&spec)? > self.sm.shared_per_block {
            spec.slices /= 2;
        }
        let of_block = shared_bytes(&spec)? + self.sm.shared_reserved;
        let fitting = self.sm.shared_bytes.checked_div(of_block).unwrap_or(u64::MAX);
        Ok(match u32::try_from(fitting) {
            Ok(fitting) if fitting < spec.blocks_per_sm => spec.blocks_per_sm(fitting.max(1)),
            _ => spec,
        })
    }
}

/// What a block takes of shared memory.
fn shared_bytes(spec: &SgemmSpec) -> Result<u64> {
    Ok(spec.plan()?.shared_bytes())
}
