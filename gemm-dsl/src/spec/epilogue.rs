//! The key `epilogue`, and what a product takes beside its matrices.

use super::expression::part_of_name;
use super::table::{Datum, KeyKind, KeyValue};
use crate::error::SpecErrors;
use crate::expr::{Closure, ClosureParam, EPILOGUE};
use std::borrow::Cow;
use std::fmt::{Display, Formatter, Result as Formatted};
use std::str::FromStr;

/// What is stored where a matrix product has the sum `acc`, such as `|acc, bias[n]| max(acc + bias, 0.0)`.
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
    /// The expression.
    pub fn closure(&self) -> &Closure {
        &self.0
    }

    /// What it names behind the sum, in its order.
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

/// What an epilogue names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EpilogueInput {
    /// C, as it was before.
    Output,
    /// What the caller gives.
    Operand(Along),
}

/// Along which axes of C an operand has elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Along {
    /// None: a number.
    Nothing,
    /// An element for each column of C.
    N,
    /// An element for each row.
    M,
    /// An element for each element of C.
    Mn,
}

impl Along {
    /// All of them, in the order in which they are explained.
    pub const ALL: [Along; 4] = [Along::Nothing, Along::N, Along::M, Along::Mn];

    /// What an operand of this kind is indexed by.
    pub fn index(self) -> &'static [&'static str] {
        match self {
            Along::Nothing => &[],
            Along::N => &["n"],
            Along::M => &["m"],
            Along::Mn => &["m", "n"],
        }
    }

    /// The kind of an operand with this index, if there is one.
    pub fn indexed_by(index: &[impl AsRef<str>]) -> Option<Along> {
        let same =
            |along: &Along| along.index().iter().copied().eq(index.iter().map(AsRef::as_ref));
        Along::ALL.into_iter().find(same)
    }

    /// A name for an operand of this kind, for messages and pages.
    pub fn example(self) -> &'static str {
        match self {
            Along::Nothing => "factor",
            Along::N => "bias",
            Along::M => "scale",
            Along::Mn => "residual",
        }
    }

    /// What operands of this kind are called where the type of a kernel lists them.
    pub fn kind(self) -> &'static str {
        match self {
            Along::Nothing => "f32",
            Along::N => "N",
            Along::M => "M",
            Along::Mn => "MN",
        }
    }

    /// What the caller gives.
    pub fn meaning(self) -> &'static str {
        match self {
            Along::Nothing => "a number",
            Along::N => "a vector with an element for each column of C",
            Along::M => "a vector with an element for each row of C",
            Along::Mn => "a matrix of the shape of C",
        }
    }
}

/// How it is written behind the operand's name.
impl Display for Along {
    fn fmt(&self, f: &mut Formatter<'_>) -> Formatted {
        match self.index() {
            [] => Ok(()),
            index => write!(f, "[{}]", index.join(", ")),
        }
    }
}

/// What the caller of a product gives beside its matrices: numbers and arrays of `f32`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EpilogueArg {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Along which axes it has elements.
    pub along: Along,
    /// Where a launch finds it.
    pub slot: ArgSlot,
}

/// Which of the arrays or numbers of a launch an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArgSlot {
    /// The n-th array that is only read: A and B are the first two.
    Array(usize),
    /// The n-th number.
    Number(usize),
}

impl EpilogueArg {
    /// How many operands the type of a kernel lists at most.
    pub const MOST_LISTED: usize = 12;
}

/// How an epilogue names it: `bias[n]`.
impl Display for EpilogueArg {
    fn fmt(&self, f: &mut Formatter<'_>) -> Formatted {
        write!(f, "{}{}", self.name, self.along)
    }
}

/// The canonical text.
impl Display for Epilogue {
    fn fmt(&self, f: &mut Formatter<'_>) -> Formatted {
        self.0.fmt(f)
    }
}

impl FromStr for Epilogue {
    type Err = SpecErrors;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Closure::parse(&EPILOGUE, text).map(Self)
    }
}

impl KeyValue for Epilogue {
    const KIND: KeyKind = KeyKind::Closure(&EPILOGUE);

    fn text(&self) -> String {
        self.to_string()
    }

    fn part(&self) -> String {
        part_of_name(&self.text())
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

    /// Every index that the key lets a closure have says along what its operand lies, and no other does.
    #[test]
    fn operands_of_the_key_have_a_kind_each() {
        let kinds: Vec<_> =
            EPILOGUE.operands.iter().map(|index| Along::indexed_by(index)).collect();
        assert_eq!(kinds, Along::ALL.map(Some));
        assert_eq!(Along::indexed_by(&["n", "m"]), None);
        let all = Along::ALL.map(|along| format!("x{along}"));
        assert_eq!(all, ["x", "x[n]", "x[m]", "x[m, n]"]);
    }
}
