//! Epilogues as values, for calls of [`sgemm`](crate::sgemm).

use super::rule_lines::RuleLines;
use crate::error::{Error, Result};
use crate::kernel::operands::{ListingType, Operands};
use crate::slot::{KernelSlot, SlotTable};
use gemm_dsl::spec::{self, EpilogueArg, Pairs};
use std::convert::Infallible;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

/// Epilogue of a [`sgemm`](crate::sgemm) call: an expression whose value is stored in C in place of
/// the accumulator. Built by [`epilogue!`](crate::epilogue), or parsed from text at run time.
///
/// `E` lists the kinds of its operands, as for an [`Sgemm`](crate::Sgemm): `Epilogue<(N, f32)>` for
/// `|acc, bias[n], slope| …`. An `Epilogue<ByName>` takes its operands by name, so that its text
/// need not be known when the program is compiled.
///
/// ```
/// use gemm_runtime::{ByName, Device, Epilogue, N, epilogue, sgemm};
///
/// const BIAS: Epilogue<(N,)> = epilogue!(|acc, bias[n]| relu(acc + bias));
///
/// let device = Device::simulator();
/// let (x, w) = (device.upload_matrix(&[1.0; 6], 2, 3)?, device.upload_matrix(&[2.0; 6], 2, 3)?);
/// let (bias, mut y) = (device.upload(&[-20.0, 20.0])?, device.alloc_matrix(2, 2)?);
/// sgemm(&x, &w.t(), &mut y).epilogue(BIAS).operands(&bias).run(&device)?;
/// assert_eq!(device.download(&y)?, [0.0, 26.0, 0.0, 26.0]);
///
/// let parsed: Epilogue<(N,)> = "|acc, bias[n]| relu(acc + bias)".parse()?;
/// assert_eq!(parsed, BIAS);
/// let by_name: Epilogue<ByName> = "|acc, slope| slope * acc".parse()?;
/// sgemm(&x, &w.t(), &mut y).epilogue(by_name).operand("slope", 0.5).run(&device)?;
/// assert_eq!(device.download(&y)?, [3.0; 4]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
///
/// A value is parsed once, by the first call that needs it. It also keeps the specs of the kernels
/// that its calls have chosen. A clone shares them, so clone a parsed epilogue instead of parsing
/// its text again.
pub struct Epilogue<E = ()> {
    source: EpilogueSource,
    of: PhantomData<fn() -> E>,
}

/// Origin of an epilogue.
#[derive(Clone)]
enum EpilogueSource {
    /// Canonical text, and the slot for its parsed form.
    Macro(&'static str, fn() -> &'static EpilogueSlot),
    Text(Arc<ParsedEpilogue>),
}

/// Slot in which a macro call stores its parsed epilogue.
pub struct EpilogueSlot(OnceLock<ParsedEpilogue>);

impl EpilogueSlot {
    /// Slot for an epilogue that has not been parsed yet.
    #[expect(clippy::new_without_default, reason = "only the macro builds one, as a constant")]
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }
}

/// Parsed epilogue.
struct ParsedEpilogue {
    text: String,
    row_major: CallEpilogue,
    /// Epilogue of Cᵀ = Bᵀ·Aᵀ, which a call with a column-major C computes.
    transposed: CallEpilogue,
}

impl ParsedEpilogue {
    fn new(epilogue: spec::Epilogue) -> Self {
        let transposed = CallEpilogue::new(epilogue.transposed());
        Self { text: epilogue.to_string(), row_major: CallEpilogue::new(epilogue), transposed }
    }
}

/// Epilogue for row-major results, with the lines of the kernels that tables chose with it.
#[derive(Debug)]
pub(super) struct CallEpilogue {
    pub(super) expression: spec::Epilogue,
    /// Operands in order, without `alpha` and `beta`.
    pub(super) operands: Vec<EpilogueArg>,
    /// Pairs of columns that the expression computes.
    pub(super) pairs: Pairs,
    lines: SlotTable<RuleLines>,
}

impl CallEpilogue {
    pub(super) fn new(expression: spec::Epilogue) -> Self {
        let (operands, pairs) = (expression.operands(), expression.pairs());
        Self { operands, pairs, expression, lines: SlotTable::default() }
    }

    /// Lines of the rules of a table, which has this slot.
    pub(super) fn lines(&self, table: &KernelSlot) -> &RuleLines {
        let Ok(lines) = self.lines.get_or_try_init(table, || Ok::<_, Infallible>(RuleLines::new()));
        lines
    }
}

impl<E> Epilogue<E> {
    #[doc(hidden)]
    pub const fn __from_macro(text: &'static str, slot: fn() -> &'static EpilogueSlot) -> Self {
        Self { source: EpilogueSource::Macro(text, slot), of: PhantomData }
    }

    /// Builds the value of a parsed expression. It equals the value that the macro builds.
    ///
    /// # Errors
    /// [`Error::KernelType`] if `E` does not list the operands of the expression. The error names
    /// the right type.
    pub fn new(expression: spec::Epilogue) -> Result<Self>
    where
        E: Operands,
    {
        ListingType::EPILOGUE.check::<E>(&expression.to_string(), &expression.operands())?;
        let parsed = Arc::new(ParsedEpilogue::new(expression));
        Ok(Self { source: EpilogueSource::Text(parsed), of: PhantomData })
    }

    /// Returns the canonical text of the expression.
    pub fn text(&self) -> &str {
        match &self.source {
            EpilogueSource::Macro(text, _) => text,
            EpilogueSource::Text(parsed) => &parsed.text,
        }
    }

    /// Returns the expression, for the spec of a kernel: `spec.epilogue(EP.expression().clone())`.
    pub fn expression(&self) -> &spec::Epilogue {
        &self.parsed().row_major.expression
    }

    /// Epilogue for a row-major C, or for the transpose of a column-major C.
    pub(super) fn for_c(&self, is_row_major: bool) -> &CallEpilogue {
        let ParsedEpilogue { row_major, transposed, .. } = self.parsed();
        if is_row_major { row_major } else { transposed }
    }

    fn parsed(&self) -> &ParsedEpilogue {
        match &self.source {
            EpilogueSource::Text(parsed) => parsed,
            EpilogueSource::Macro(text, slot) => slot().0.get_or_init(|| {
                let epilogue = text.parse();
                ParsedEpilogue::new(epilogue.unwrap_or_else(|faults| {
                    unreachable!("the macro has checked its expression: {faults}")
                }))
            }),
        }
    }
}

/// Parses and checks an epilogue, with the same messages as the macro.
impl<E: Operands> FromStr for Epilogue<E> {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::new(text.parse()?)
    }
}

impl<E> Clone for Epilogue<E> {
    fn clone(&self) -> Self {
        Self { source: self.source.clone(), of: PhantomData }
    }
}

impl<E> PartialEq for Epilogue<E> {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl<E> Eq for Epilogue<E> {}

impl<E> fmt::Debug for Epilogue<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Epilogue").field("text", &self.text()).finish_non_exhaustive()
    }
}

/// Writes the canonical text.
impl<E> fmt::Display for Epilogue<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}
