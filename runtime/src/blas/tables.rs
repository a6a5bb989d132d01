//! Tables that ship with this crate. Each architecture has one for single GEMMs, and one for
//! batches, whose specs have `batch: strided`. [`Shipped::chosen`] adds the keys that depend on the
//! call, and skips the rules that cannot take its epilogue.

mod batch;
mod emulated;
mod h200;
mod safe;
pub(super) mod typed;

use super::epilogue::CallEpilogue;
use super::rule_lines::RuleLines;
use crate::error::{Error, Result};
use crate::kernel::{Choice, GemmTable};
use crate::slot::KernelSlot;
use gemm_dsl::SpecErrors;
use gemm_dsl::spec::{Accuracy, Batch, GemmLayout, Rect, SgemmSpec, Tile};
use gemm_dsl::tables::{KernelTable, SgemmProblem, TableFamily};
use gemm_dsl::target::arch::{ALL, Multiprocessor};
use gemm_dsl::target::element::Element;
use std::fmt;
use std::sync::LazyLock;

/// Tables of an architecture, for single GEMMs and for batches.
pub struct Tables<T: Element, C: Element> {
    pub(super) one: Shipped<T, C>,
    pub(super) batch: Shipped<T, C>,
}

/// Table, with the specs of its rules for each kind of call without an epilogue.
pub struct Shipped<T: Element, C: Element> {
    pub(super) table: GemmTable<T, T, C>,
    /// SM whose shared memory limits stages, slices and blocks.
    sm: Multiprocessor,
    lines: RuleLines,
    /// Slot of this table's lines in each epilogue.
    slot: KernelSlot,
}

/// Features of a call that are not part of the problem.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallFeatures<'e> {
    /// True if the call has `alpha` and `beta`.
    pub(super) scaled: bool,
    /// Kind of batch, if the call is one.
    pub(super) batch: Option<Batch>,
    pub(super) epilogue: Option<&'e CallEpilogue>,
}

/// Number of lines of a rule: one for each combination of layout, with or without `scaled`, and
/// kind of batch.
const LINES: usize = SgemmSpec::LAYOUTS * 2 * Batch::ALL.len();

/// Single GEMMs: measured on an H200, most rules written by `tune --table`. Batches: by hand.
static SM_90: F32Tables = Tables::new(h200::GEMM, batch::GEMMS, 90);
/// Not measured: the rules of `sm_90`, with as many stages, slices and blocks as fit this SM.
/// `waves` uses the number of SMs of the device.
static SM_80: F32Tables = Tables::new(h200::GEMM, batch::GEMMS, 80);
/// Not measured; adapted like `SM_80`.
static SM_89: F32Tables = Tables::new(h200::GEMM, batch::GEMMS, 89);
/// Not measured: the rules of `sm_90`, because an SM has the same shared memory and registers.
static SM_100: F32Tables = Tables::new(h200::GEMM, batch::GEMMS, 100);
/// Not measured; adapted like `SM_89`.
static SM_120: F32Tables = Tables::new(h200::GEMM, batch::GEMMS, 120);

/// Tables of a wider accuracy class, measured: see `emulated`.
static SM_90_BOUND: LazyLock<F32Tables> =
    LazyLock::new(|| Tables::granted(Accuracy::Bound, emulated::BOUND, 90));
static SM_90_NORM: LazyLock<F32Tables> =
    LazyLock::new(|| Tables::granted(Accuracy::Norm, emulated::NORM, 90));

impl<T: Element, C: Element> Tables<T, C> {
    /// Tables limited to the SM of an architecture, which must be in `arch::ALL`.
    const fn new(one: GemmTable<T, T, C>, batch: GemmTable<T, T, C>, arch: u32) -> Self {
        let mut at = 0;
        while ALL[at].arch != arch {
            at += 1;
        }
        Self { one: Shipped::new(one, ALL[at]), batch: Shipped::new(batch, ALL[at]) }
    }

    /// Tables of these rules, for single GEMMs and for batches.
    pub(super) fn of_rules(rules: [impl fmt::Display; 2], arch: u32) -> Self {
        let (t, c) = (T::ELEM, C::ELEM);
        let [one, batch] = rules.map(|rules| parsed(&format!("a: {t}, b: {t}, c: {c};\n{rules}")));
        Self::new(one, batch, arch)
    }

    /// Table for calls with these features.
    pub(super) fn table(&self, asked: CallFeatures<'_>) -> &Shipped<T, C> {
        // Groups are parts of a single GEMM.
        match asked.batch {
            None | Some(Batch::Grouped) => &self.one,
            Some(_) => &self.batch,
        }
    }
}

/// Table of rules that a test has parsed.
fn parsed<T: Element, C: Element>(text: &str) -> GemmTable<T, T, C> {
    let table: Result<KernelTable<SgemmSpec>, SpecErrors> = text.parse();
    let table = table.map_err(Error::from).and_then(|table| GemmTable::new(&table));
    table.unwrap_or_else(|faults| unreachable!("a test parses these rules: {faults}"))
}

/// Tables for matrices of `f32`.
pub(super) type F32Tables = Tables<f32, f32>;

impl F32Tables {
    /// Tables for an architecture and an accuracy class. The simulator has no architecture.
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
            // The shared memory is as large as that of `sm_89`.
            Some(86 | 88 | 89) => &SM_89,
            Some(90) => &SM_90,
            Some(100 | 101 | 103 | 110) => &SM_100,
            Some(120 | 121) => &SM_120,
            _ => &safe::TABLES,
        }
    }

    /// Tables of an architecture, preceded by rules for single GEMMs and for batches of this
    /// accuracy class.
    fn granted(accuracy: Accuracy, rows: [&[&str]; 2], arch: u32) -> Self {
        let Self { one, batch } = Self::in_f32(Some(arch));
        let [one, batch] = [(rows[0], &one.table), (rows[1], &batch.table)]
            .map(|(rows, then)| parsed(&format!("accuracy: {accuracy};\n{}{then}", rows.concat())));
        Self::new(one, batch, arch)
    }

    /// One architecture for each set of tables.
    #[cfg(test)]
    pub(super) const ARCHS: [u32; 6] = [75, 80, 89, 90, 100, 120];
}

impl<T: Element, C: Element> Shipped<T, C> {
    const fn new(table: GemmTable<T, T, C>, sm: Multiprocessor) -> Self {
        Self { table, sm, lines: RuleLines::new(), slot: KernelSlot::new() }
    }

    /// Returns the rule for a problem, and the canonical line of its kernel for the call.
    ///
    /// This is the first rule whose condition holds and whose kernel can take the epilogue of the
    /// call. The operands of an epilogue may need more registers than a rule with a large thread
    /// tile leaves; every rule can take a call without an epilogue.
    ///
    /// # Errors
    /// Returns the errors of [`SgemmTable::choice`], and the faults of the last rule if no rule can
    /// take the epilogue.
    pub(super) fn chosen<'l>(
        &'l self,
        problem: &SgemmProblem,
        asked: CallFeatures<'l>,
    ) -> Result<(usize, &'l str)> {
        let mut rule = self.table.rule(problem)?;
        loop {
            let faults = match self.line_of(rule, problem, asked) {
                Ok(line) => return Ok((rule, line)),
                Err(faults) => faults,
            };
            match self.table.rule_from(problem, rule + 1)? {
                Some(next) => rule = next,
                None => return Err(Error::from(faults.clone())),
            }
        }
    }

    /// Line of a rule's kernel. The first call with these features and layouts prints it.
    fn line_of<'l>(
        &'l self,
        rule: usize,
        problem: &SgemmProblem,
        asked: CallFeatures<'l>,
    ) -> Result<&'l str, &'l SpecErrors> {
        let lines = asked.epilogue.map_or(&self.lines, |epilogue| epilogue.lines(&self.slot));
        let way = rule * SgemmSpec::LAYOUTS + SgemmSpec::layout_index(problem);
        let way = way * 2 + usize::from(asked.scaled);
        let number = way * Batch::ALL.len() + asked.batch.unwrap_or_default() as usize;
        let line = lines.get(self.table.rules().len() * LINES, number);
        let line = line.get_or_init(|| {
            let (layout, padded) = (problem.shape.lies(), problem.shape.padded);
            self.spec(rule, layout, padded, asked).map(|spec| spec.to_string())
        });
        line.as_ref().map(String::as_str)
    }

    /// Returns the rule for a problem, the line of the kernel that the call takes, and the reason.
    ///
    /// # Errors
    /// Returns the errors of [`chosen`](Self::chosen).
    pub(super) fn choice(&self, problem: &SgemmProblem, asked: CallFeatures<'_>) -> Result<Choice> {
        let (rule, line) = self.chosen(problem, asked)?;
        self.table.reason(rule, problem, line.to_owned())
    }

    /// Spec of a rule for these layouts and features. Reduces stages, and then slices, to fit the
    /// shared memory of a block, and blocks per SM to fit the shared memory of an SM.
    pub(super) fn spec(
        &self,
        row: usize,
        layout: GemmLayout,
        padded: bool,
        asked: CallFeatures<'_>,
    ) -> Result<SgemmSpec, SpecErrors> {
        let spec = self.table.rules()[row].spec.clone();
        let spec = match asked.batch {
            Some(Batch::Grouped) => for_groups(spec),
            _ => spec,
        };
        let spec = match asked.batch {
            Some(batch) => spec.batch(batch),
            None => spec,
        };
        let spec = spec.for_matrices(layout, padded).scaled(asked.scaled);
        let mut spec = match asked.epilogue {
            Some(epilogue) => spec.epilogue(epilogue.expression.clone()),
            None => spec,
        };
        while let Some(fewer) = spec.stages.map(|stages| stages - 1).filter(|fewer| *fewer >= 2)
            && shared_bytes(&spec)? > self.sm.shared_per_block
        {
            spec = spec.stages(fewer);
        }
        // The partial sums of slices occupy shared memory beside the tiles. If even two stages are
        // too many, fewer slices help.
        while spec.slices > 1 && shared_bytes(&spec)? > self.sm.shared_per_block {
            spec.slices /= 2;
        }
        let of_block = shared_bytes(&spec)? + self.sm.shared_reserved;
        let fitting = self.sm.shared_bytes.checked_div(of_block).unwrap_or(u64::MAX);
        Ok(match u32::try_from(fitting) {
            Ok(fitting) if fitting < spec.resident_blocks() => spec.blocks_per_sm(fitting.max(1)),
            _ => spec,
        })
    }
}

/// Returns the spec of a rule for single GEMMs, for groups of rows.
///
/// Each group ends with a partial tile. Blocks of half as many rows waste half as much, and are as
/// fast if two of them share an SM.
fn for_groups(spec: SgemmSpec) -> SgemmSpec {
    let spec = spec.split_k(1).stream_k(false);
    let is_large = spec.tile == Some(Tile::new(128, 256, 16)) && spec.thread == Rect::new(8, 16);
    if !is_large || spec.warp.is_none() {
        return spec;
    }
    let raster = spec.raster.map_or(1, |rows| 2 * rows);
    spec.tile(Tile::new(64, 256, 16)).warp(Rect::new(64, 64)).raster(raster).blocks_per_sm(2)
}

/// Shared memory of a block, in bytes.
fn shared_bytes(spec: &SgemmSpec) -> Result<u64, SpecErrors> {
    Ok(spec.plan()?.shared_bytes())
}
