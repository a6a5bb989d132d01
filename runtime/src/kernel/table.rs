//! Tables of kernels, as the macros build them.

use super::Kernel;
use super::operands::Typed;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::program::CachedProgram;
use crate::trace::{event, span};
use crate::warm_up::warm_up;
use gemm_dsl::artifact::Interface;
use gemm_dsl::ir::List;
use gemm_dsl::spec::{EpilogueArg, Pairs, ReduceSpec, SgemmSpec};
use gemm_dsl::tables::{KernelTable, OutOfRange, Rule, TableFamily};
use gemm_dsl::{Plan, SpecErrors};
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

/// Table of specs for one computation. It chooses a spec for each problem, which is the extents
/// and, for a GEMM, also the layouts and the device. Only chosen kernels are compiled. `S` and `E`
/// are the parameters of its [`Kernel`]s.
///
/// A launch chooses its rule without a lock and without copying the table. A table from a macro is
/// parsed once, by the first call that needs it. Other tables are parsed when they are built.
pub struct Table<S: TableFamily, E = ()> {
    rules: RuleSource<S>,
    of: PhantomData<fn() -> E>,
}

/// Table of GEMM kernels, built by [`sgemm_table!`](crate::sgemm_table). `E` lists its operands, as
/// for an [`Sgemm`](crate::Sgemm).
///
/// A condition may test the extents `m`, `n`, `k` and `batch`, the layouts of A and B, alignment,
/// and the device. The page of the macro lists all names. A rule takes matrices of any layout. Its
/// spec must not have the keys `layout` and `pitched`, because each call [adapts the spec to its
/// matrices](SgemmSpec::for_matrices).
///
/// ```
/// use gemm_runtime::{Device, MatrixMut, MatrixRef, SgemmTable, sgemm_table};
///
/// const GEMM: SgemmTable = sgemm_table! {
///     m <= 8 || n <= 8 => tile: 8x8x8, thread: 1x1;
///     aligned && waves(64x64) >= 2.0 => tile: 64x64x16, thread: 8x8, float4;
///     else => tile: 16x16x8, thread: 2x2;
/// };
///
/// let device = Device::simulator();
/// let (a, b) = (device.upload(&[1.0, 2.0])?, device.upload(&[3.0, 4.0])?);
/// let mut c = device.alloc(1)?;
/// let (a, b) = (MatrixRef::new(&a, 1, 2)?, MatrixRef::new(&b, 2, 1)?);
/// GEMM.call(&device).launch(&a, &b, &mut MatrixMut::new(&mut c, 1, 1)?)?;
/// assert_eq!(device.download(&c)?, [11.0]);
///
/// let choice = GEMM.choice((100, 64, 32), &device)?;
/// assert_eq!((choice.rule, choice.spec.as_str()), (2, "tile: 16x16x8, thread: 2x2"));
/// assert_eq!(choice.why, "m = 100, n = 64, aligned = true, waves(64x64) = 0.015151515151515152");
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
pub type SgemmTable<E = ()> = GemmTable<f32, f32, f32, E>;

/// Table of GEMM kernels for matrices with elements of the types `A`, `B` and `C`, built by
/// [`gemm_table!`](crate::gemm_table). `E` lists its operands, as for an [`Sgemm`](crate::Sgemm).
/// It is used as an [`SgemmTable`].
///
/// ```
/// use gemm_runtime::half::bf16;
/// use gemm_runtime::{Device, GemmTable, gemm_table};
///
/// const GEMM: GemmTable<bf16, bf16, bf16> = gemm_table! {
///     a: bf16, b: bf16, c: bf16;
///     m <= 8 => tile: 8x8x8, thread: 1x1;
///     else => tile: 16x16x8, thread: 2x2;
/// };
///
/// let device = Device::simulator();
/// let x = device.upload_matrix_of(&[1.0, 2.0].map(bf16::from_f32), 1, 2)?;
/// let w = device.upload_matrix_of(&[3.0, 4.0].map(bf16::from_f32), 1, 2)?;
/// let mut y = device.alloc_matrix_of::<bf16>(1, 1)?;
/// GEMM.call(&device).launch(&x, &w.t(), &mut y)?;
/// assert_eq!(device.download(&y)?, [bf16::from_f32(11.0)]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
pub type GemmTable<A, B, C, E = ()> = Table<SgemmSpec, Typed<A, B, C, E>>;

/// Rule that a table chooses for a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    /// Index of the rule, from 0 on.
    pub rule: usize,
    /// Condition of the rule; `None` for the last one, `else`.
    pub condition: Option<String>,
    /// Spec of the kernel: the spec of the rule, adapted to the layouts of the problem.
    pub spec: String,
    /// Values of all names in the condition of this rule and in the conditions of the rules before
    /// it, such as `m = 4, n = 4096`.
    pub why: String,
}

/// Parsed form of a table, for launches.
pub struct ParsedTable<S: TableFamily> {
    pub(super) table: KernelTable<S>,
    text: String,
    /// Line of each rule for each layout, printed by the first launch that needs it.
    lines: Box<[OnceLock<String>]>,
    /// Operands of every rule besides the matrices of a GEMM.
    pub(super) operands: List<EpilogueArg>,
    /// Pairs of columns that the epilogue of every rule computes.
    pub(super) pairs: Pairs,
}

/// Slot in which a macro call stores its parsed table.
pub struct ParsedOnce<S: TableFamily>(OnceLock<ParsedTable<S>>);

/// Source of a table's rules.
enum RuleSource<S: TableFamily> {
    /// Canonical text, and the slot for its parsed form.
    OfMacro(&'static str, fn() -> &'static ParsedOnce<S>),
    Owned(Arc<ParsedTable<S>>),
}

impl<S: TableFamily> ParsedOnce<S> {
    /// Slot for a table that has not been parsed yet.
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }
}

impl<S: TableFamily> ParsedTable<S> {
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

impl<S: TableFamily> ParsedTable<S> {
    fn new(table: KernelTable<S>) -> Self {
        let lines = (0..table.rules().len() * S::LAYOUTS).map(|_| OnceLock::new()).collect();
        let interface = table.rules().first().map(|rule| rule.spec.interface());
        let pairs = interface.as_ref().map_or(Pairs::None, Interface::pairs);
        let operands = match interface {
            Some(Interface::Gemm { operands, .. }) => operands,
            Some(Interface::Reduction { .. } | Interface::Elementwise { .. }) | None => List::EMPTY,
        };
        Self { text: table.to_string(), table, lines, operands, pairs }
    }

    /// Line of the kernel for a problem.
    pub(super) fn line_for(&self, problem: &S::Problem) -> Result<&str> {
        span!("choose");
        let line = self.line_of(self.table.choose(problem)?, problem);
        event!("chosen", spec = line);
        Ok(line)
    }

    /// Line of a rule's kernel, adapted to the layouts of the problem.
    fn line_of(&self, rule: usize, problem: &S::Problem) -> &str {
        let way = S::layout_index(problem);
        self.lines[rule * S::LAYOUTS + way]
            .get_or_init(|| self.table.kernel(rule, problem).spec().to_string())
    }

    /// Program of the kernel for a problem.
    pub(super) fn prepare(
        &self,
        device: &Device,
        problem: &S::Problem,
    ) -> Result<Arc<CachedProgram>> {
        device.programs().get::<S>(self.line_for(problem)?)
    }
}

impl<S: TableFamily, E> Table<S, E> {
    #[doc(hidden)]
    pub const fn __from_macro(text: &'static str, slot: fn() -> &'static ParsedOnce<S>) -> Self {
        Self { rules: RuleSource::OfMacro(text, slot), of: PhantomData }
    }

    /// Table of checked rules, whose operands are `E`.
    pub(crate) fn checked(table: KernelTable<S>) -> Self {
        Self { rules: RuleSource::Owned(Arc::new(ParsedTable::new(table))), of: PhantomData }
    }

    /// Returns the rules as text, one rule per line, after the lines `invariant` and `accuracy` if
    /// the table has them.
    pub fn text(&self) -> &str {
        match &self.rules {
            RuleSource::OfMacro(text, _) => text,
            RuleSource::Owned(read) => &read.text,
        }
    }

    pub(super) fn read(&self) -> &ParsedTable<S> {
        match &self.rules {
            RuleSource::Owned(read) => read,
            RuleSource::OfMacro(text, slot) => slot().0.get_or_init(|| {
                let table: Result<KernelTable<S>, SpecErrors> = text.parse();
                match table {
                    Ok(table) => ParsedTable::new(table),
                    Err(faults) => unreachable!("the macro has checked its rules: {faults}"),
                }
            }),
        }
    }

    pub(crate) fn rules(&self) -> &[Rule<S>] {
        self.read().table.rules()
    }

    /// Index of the rule for a problem.
    pub(crate) fn rule(&self, problem: &S::Problem) -> Result<usize> {
        Ok(self.read().table.choose(problem)?)
    }

    /// First rule from `from` on for a problem. `None` if there are no such rules.
    pub(crate) fn rule_from(&self, problem: &S::Problem, from: usize) -> Result<Option<usize>> {
        Ok(self.read().table.choose_from(problem, from)?)
    }

    /// Rule for a problem, with the reason for the choice.
    pub(crate) fn chosen(&self, problem: &S::Problem) -> Result<Choice> {
        let read = self.read();
        let rule = read.table.choose(problem)?;
        self.reason(rule, problem, read.line_of(rule, problem).to_owned())
    }

    /// Choice of a rule, whose kernel has this spec, with the reason.
    pub(crate) fn reason(&self, rule: usize, problem: &S::Problem, spec: String) -> Result<Choice> {
        let read = self.read();
        let condition = read.table.rules()[rule].when.as_ref().map(ToString::to_string);
        let why = read.table.why(rule, problem)?;
        let why: Vec<String> = why.into_iter().map(|(name, is)| format!("{name} = {is}")).collect();
        Ok(Choice { rule, condition, spec, why: why.join(", ") })
    }

    /// Compiles the kernels for these problems in advance.
    pub(super) fn warm_for(
        &self,
        device: &Device,
        problems: impl Iterator<Item = S::Problem>,
    ) -> Result<()> {
        let read = self.read();
        let lines = problems.map(|problem| read.line_for(&problem)).collect::<Result<Vec<_>>>()?;
        warm_up::<S>(device, lines)
    }

    /// Kernel for a problem.
    pub(super) fn kernel_for(&self, problem: &S::Problem) -> Result<Kernel<S, E>> {
        let plan: S::Plan = self.read().line_for(problem)?.parse()?;
        Kernel::planned(&plan)
    }
}

impl From<OutOfRange> for Error {
    fn from(wrong: OutOfRange) -> Self {
        Error::TooLarge {
            what: wrong.to_string(),
            limit: wrong.most,
            remedy: "Check the order of the extents",
        }
    }
}

impl<S: TableFamily, E> Clone for Table<S, E> {
    fn clone(&self) -> Self {
        let rules = match &self.rules {
            RuleSource::OfMacro(text, slot) => RuleSource::OfMacro(text, *slot),
            RuleSource::Owned(read) => RuleSource::Owned(Arc::clone(read)),
        };
        Self { rules, of: PhantomData }
    }
}

impl<S: TableFamily, E> fmt::Debug for Table<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("text", &self.text()).finish_non_exhaustive()
    }
}

/// Writes the rules as [`Table::text`] does.
impl<S: TableFamily, E> fmt::Display for Table<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// Slot for the parsed table of a `reduce_table!` call.
pub type ReduceSlot = ParsedOnce<ReduceSpec>;
/// Slot for the parsed table of a `sgemm_table!` call.
pub type SgemmSlot = ParsedOnce<SgemmSpec>;
