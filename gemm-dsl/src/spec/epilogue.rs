//! The key `epilogue`, and the arguments of a GEMM other than A, B and C.

use super::table::hash;
use super::table::{Datum, KeyKind, KeyValue};
use crate::expr::{Closure, ClosureParam, EPILOGUE, RowResults};
use std::borrow::Cow;
use std::fmt::{Display, Formatter, Result as Formatted};

/// Expression whose value a GEMM stores in place of the accumulator `acc`, such as
/// `|acc, bias[n]| max(acc + bias, 0.0)`.
///
/// ```
/// use gemm_dsl::spec::{Epilogue, SgemmSpec};
///
/// let relu: Epilogue = "|acc| relu(acc)".parse()?;
/// assert_eq!(SgemmSpec::default().epilogue(relu).to_string(), "epilogue: |acc| relu(acc)");
/// # Ok::<(), gemm_dsl::SpecErrors>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Epilogue(Closure);

impl Epilogue {
    /// Wraps an expression in the scope of the key.
    pub(crate) fn new(closure: Closure) -> Self {
        Self(closure)
    }

    pub fn closure(&self) -> &Closure {
        &self.0
    }

    /// Returns the epilogue of the transposed GEMM Cᵀ = Bᵀ·Aᵀ, which stores the same elements. Rows
    /// and columns swap: `bias[n]` becomes `bias[m]`, and `row` becomes `col`. `[m, n]` operands
    /// are then read as their transposes.
    ///
    /// ```
    /// use gemm_dsl::spec::Epilogue;
    ///
    /// let mask: Epilogue = "|acc, bias[n]| if col < m { acc + bias } else { 0.0 }".parse()?;
    /// let transposed = "|acc, bias[m]| if row < n { acc + bias } else { 0.0 }";
    /// assert_eq!(mask.transposed().to_string(), transposed);
    /// # Ok::<(), gemm_dsl::SpecErrors>(())
    /// ```
    #[must_use]
    pub fn transposed(&self) -> Self {
        Self(self.0.clone().with_swapped(&[["m", "n"], ["row", "col"]]))
    }

    /// Returns the values of elements, the folds over rows and the results of rows.
    pub(crate) fn row_results(&self) -> RowResults {
        self.0.row_results()
    }

    /// Returns true if a value folds the rows of C.
    pub fn folds_rows(&self) -> bool {
        self.0.first_fold().is_some()
    }

    /// Returns the pairs of columns that the epilogue computes.
    pub fn pairs(&self) -> Pairs {
        match (self.0.has_pairs(), self.0.is_of_each_column(0)) {
            (false, _) => Pairs::None,
            (true, true) => Pairs::Both,
            (true, false) => Pairs::One,
        }
    }

    /// Returns the names of the arrays for the values after the first, which is C. Each has
    /// elements along [`Along::Mn`], or along [`Along::Pairs`] for one value for each pair of
    /// columns, or along [`Along::M`] for a result of rows.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = (Cow<'static, str>, Along)> {
        let names = OUTPUTS.iter().take(self.0.values().len() - 1).enumerate();
        names.map(|(nth, name)| {
            let along = match nth + 1 {
                nth if self.0.is_of_row(nth) => Along::M,
                nth if self.0.is_of_each_column(nth) => Along::Mn,
                _ => Along::Pairs,
            };
            (Cow::Borrowed(*name), along)
        })
    }

    /// Returns the parameters after the accumulator, in order.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&ClosureParam, EpilogueInput)> {
        self.0.params().iter().skip(1).map(|param| {
            let named = match self.0.scope().output {
                Some((output, _)) if output == param.name => EpilogueInput::Output,
                _ => EpilogueInput::Operand(Along::indexed_by(&param.index).unwrap_or_else(|| {
                    unreachable!("parse: `epilogue` has no operand such as `{}`", param.name)
                })),
            };
            (param, named)
        })
    }
}

/// Pairs of columns of A·B for which an epilogue is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pairs {
    /// The epilogue is computed for each column.
    None,
    /// C has both columns of a pair.
    Both,
    /// C has one column for each pair.
    One,
}

impl Pairs {
    /// Returns the number of columns of C.
    pub fn columns_of_c(self, n: u64) -> u64 {
        if self == Self::One { n / 2 } else { n }
    }
}

/// Names of the matrices for the values of an epilogue after the first.
const OUTPUTS: [&str; 3] = ["c2", "c3", "c4"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EpilogueInput {
    /// Value of C before the GEMM.
    Output,
    /// Operand that the caller passes.
    Operand(Along),
}

/// Axes of C along which an operand has elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Along {
    /// No axis: a number.
    Nothing,
    /// One element per column of C.
    N,
    /// One element per row of C.
    M,
    /// One element per element of C.
    Mn,
    /// One element per row of C and pair of columns of A·B. Only a launch writes such a matrix.
    Pairs,
    /// One element per GEMM of a batch.
    Batch,
    /// One element per column of C, for each GEMM of a batch.
    BatchN,
    /// One element per row of C, for each GEMM of a batch.
    BatchM,
}

impl Along {
    /// All variants that an operand may have, in the order of the documentation.
    pub const ALL: [Along; 7] =
        [Along::Nothing, Along::N, Along::M, Along::Mn, Along::Batch, Along::BatchN, Along::BatchM];

    /// Returns the index with which the operand is written.
    pub fn index(self) -> &'static [&'static str] {
        match self {
            Along::Nothing => &[],
            Along::N => &["n"],
            Along::M => &["m"],
            Along::Mn => &["m", "n"],
            Along::Pairs => &["m", "n / 2"],
            Along::Batch => &["batch"],
            Along::BatchN => &["batch", "n"],
            Along::BatchM => &["batch", "m"],
        }
    }

    /// Returns the variant whose operands are written with this index, if there is one.
    pub fn indexed_by(index: &[impl AsRef<str>]) -> Option<Along> {
        let same =
            |along: &Along| along.index().iter().copied().eq(index.iter().map(AsRef::as_ref));
        Along::ALL.into_iter().find(same)
    }

    /// Returns an example name for such an operand, for messages and pages.
    pub fn example(self) -> &'static str {
        match self {
            Along::Nothing => "factor",
            Along::N => "bias",
            Along::M => "scale",
            Along::Mn | Along::Pairs => "residual",
            Along::Batch => "factor",
            Along::BatchN => "bias",
            Along::BatchM => "scale",
        }
    }

    /// Returns the name of the variant in a kernel's type.
    pub fn kind(self) -> &'static str {
        match self {
            Along::Nothing => "f32",
            Along::N => "N",
            Along::M => "M",
            Along::Mn | Along::Pairs => "MN",
            Along::Batch => "BatchItem",
            Along::BatchN => "BatchN",
            Along::BatchM => "BatchM",
        }
    }

    /// Returns a description of the argument for messages.
    pub fn meaning(self) -> &'static str {
        match self {
            Along::Nothing => "a number",
            Along::N => "a vector with an element for each column of C",
            Along::M => "a vector with an element for each row of C",
            Along::Mn => "a matrix of the shape of C",
            Along::Pairs => "a matrix of m x n / 2 elements",
            Along::Batch => "a vector with an element for each GEMM of the batch",
            Along::BatchN => "a matrix with a row for each GEMM of the batch and the columns of C",
            Along::BatchM => {
                "a matrix with a row for each GEMM of the batch, which has an element for each \
                 row of C"
            }
        }
    }

    /// Returns true if each GEMM of a batch has elements of its own, so that a single GEMM cannot
    /// have the operand.
    pub fn is_of_batch(self) -> bool {
        matches!(self, Along::Batch | Along::BatchN | Along::BatchM)
    }

    /// Returns true for a matrix with the rows of C, of which each GEMM of a batch may have its
    /// own.
    pub fn is_like_c(self) -> bool {
        matches!(self, Along::Mn | Along::Pairs)
    }

    /// Returns true if a call passes a matrix, and not a vector or a number.
    pub fn is_matrix(self) -> bool {
        self.index().len() == 2
    }
}

/// Prints the index as it follows an operand's name.
impl Display for Along {
    fn fmt(&self, f: &mut Formatter<'_>) -> Formatted {
        match self.index() {
            [] => Ok(()),
            index => write!(f, "[{}]", index.join(", ")),
        }
    }
}

/// Argument of a launch other than A, B and C: `alpha`, `beta`, an operand of the epilogue, or the
/// matrix for a further value of the epilogue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EpilogueArg {
    /// Name in the epilogue, or `alpha` or `beta`.
    pub name: Cow<'static, str>,
    /// Axes of C along which the argument has elements.
    pub along: Along,
    /// Position among the arguments of a launch.
    pub slot: ArgSlot,
}

/// Position of an argument among the read-only arrays, the scalars or the written arrays of a
/// launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArgSlot {
    /// Index among the read-only arrays; A is 0, B is 1.
    Array(usize),
    /// Index among the scalars: `alpha` and `beta` under `scaled`, then those of the epilogue.
    Number(usize),
    /// Index among the arrays that the launch writes; C is 0.
    Output(usize),
}

impl EpilogueArg {
    /// Maximum number of operands that a kernel's type can list.
    pub const MOST_LISTED: usize = 12;

    /// Returns true if a launch writes the argument: it is a further result of the epilogue.
    pub fn is_output(&self) -> bool {
        matches!(self.slot, ArgSlot::Output(_))
    }

    /// Returns true if a launch writes one value for each row of C: it is a result of rows.
    pub fn is_row_result(&self) -> bool {
        self.is_output() && self.along == Along::M
    }

    /// Returns the name of the argument's kind in a kernel's type.
    pub fn kind(&self) -> &'static str {
        match (self.is_output(), self.along) {
            (true, Along::M) => "OutM",
            (true, _) => "Out",
            (false, along) => along.kind(),
        }
    }

    /// Returns a description of the argument for messages.
    pub fn meaning(&self) -> &'static str {
        match (self.is_output(), self.along) {
            (true, Along::M) => {
                "a vector with an element for each row of C, to which the result of the row is \
                 written"
            }
            (true, Along::Pairs) => {
                "a matrix of m x n / 2 elements, to which a further value is written for each pair \
                 of columns"
            }
            (true, _) => "a matrix of the shape of C, to which a further value is written",
            (false, along) => along.meaning(),
        }
    }
}

/// Prints the argument as the epilogue declares it, for example `bias[n]`.
impl Display for EpilogueArg {
    fn fmt(&self, f: &mut Formatter<'_>) -> Formatted {
        write!(f, "{}{}", self.name, self.along)
    }
}

impl Display for Epilogue {
    fn fmt(&self, f: &mut Formatter<'_>) -> Formatted {
        self.0.fmt(f)
    }
}

impl KeyValue for Epilogue {
    const KIND: KeyKind = KeyKind::Closure(&EPILOGUE);

    fn text(&self) -> String {
        self.to_string()
    }

    fn part(&self) -> String {
        hash(&self.text())
    }

    fn read(datum: &Datum) -> Option<Self> {
        match datum {
            Datum::Closure(closure) if *closure.scope() == EPILOGUE => Some(Self(closure.clone())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each value that the key allows has a matrix.
    #[test]
    fn values_have_a_matrix_each() {
        assert_eq!(OUTPUTS.len() + 1, EPILOGUE.results);
        let epilogue: Epilogue = "|acc| (acc, 2.0 * acc, -acc)".parse().expect("three values");
        let outputs: Vec<_> = epilogue.outputs().map(|(name, _)| name).collect();
        assert_eq!(outputs, ["c2", "c3"]);
    }

    /// Each index that the key allows belongs to one variant, and no other index does.
    #[test]
    fn operands_of_the_key_have_a_kind_each() {
        let kinds: Vec<_> =
            EPILOGUE.operands.iter().map(|index| Along::indexed_by(index)).collect();
        assert_eq!(kinds, Along::ALL.map(Some));
        assert_eq!(Along::indexed_by(&["n", "m"]), None);
        let all = Along::ALL.map(|along| format!("x{along}"));
        let each = ["x", "x[n]", "x[m]", "x[m, n]", "x[batch]", "x[batch, n]", "x[batch, m]"];
        assert_eq!(all, each);
    }
}
