//! The key `epilogue`, and what a product takes beside its matrices.

use super::SgemmSpec;
use super::table::{Datum, Kind, Value};
use crate::error::SpecErrors;
use crate::value::{Closure, EPILOGUE, Param};
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
    pub(crate) fn named(&self) -> impl Iterator<Item = (&Param, Named)> {
        self.0.params().iter().skip(1).map(|param| {
            let index: Vec<&str> = param.index.iter().map(String::as_str).collect();
            let named = match index.as_slice() {
                _ if self.0.env().output.is_some_and(|(output, _)| output == param.name) => {
                    Named::Output
                }
                [] => Named::Operand(Along::Nothing),
                ["n"] => Named::Operand(Along::N),
                ["m"] => Named::Operand(Along::M),
                _ => Named::Operand(Along::Mn),
            };
            (param, named)
        })
    }
}

/// What an epilogue names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
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
        f.write_str(match self {
            Along::Nothing => "",
            Along::N => "[n]",
            Along::M => "[m]",
            Along::Mn => "[m, n]",
        })
    }
}

/// What the caller of a product gives beside its matrices: numbers and arrays of `f32`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SgemmOperand {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Along which axes it has elements.
    pub along: Along,
}

impl SgemmOperand {
    /// How many operands the type of a kernel lists at most.
    pub const MOST_LISTED: usize = 12;
}

/// How an epilogue names it: `bias[n]`.
impl Display for SgemmOperand {
    fn fmt(&self, f: &mut Formatter<'_>) -> Formatted {
        write!(f, "{}{}", self.name, self.along)
    }
}

impl SgemmSpec {
    /// The factors of a `scaled` product.
    pub(crate) const FACTORS: [&'static str; 2] = ["alpha", "beta"];

    /// What the caller gives beside A, B and C, in this order: `alpha` and `beta` of a `scaled` product,
    /// then what the epilogue names, but for C itself.
    pub fn operands(&self) -> Vec<SgemmOperand> {
        let factors = Self::FACTORS.into_iter().filter(|_| self.scaled);
        let factors = factors.map(|name| SgemmOperand { name: name.into(), along: Along::Nothing });
        let named = self.epilogue.iter().flat_map(Epilogue::named);
        let named = named.filter_map(|(param, named)| match named {
            Named::Output => None,
            Named::Operand(along) => Some(SgemmOperand { name: param.name.clone().into(), along }),
        });
        factors.chain(named).collect()
    }

    /// Whether the kernel's extent of K may differ from that of the problem, which the epilogue names.
    pub(crate) fn names_depth(&self) -> bool {
        self.scaled && self.epilogue.as_ref().is_some_and(|epilogue| epilogue.0.reads("k"))
    }

    /// Whether C is read where it is written.
    pub fn reads_c(&self) -> bool {
        let named = |epilogue: &Epilogue| epilogue.named().any(|(_, n)| n == Named::Output);
        self.scaled || self.epilogue.as_ref().is_some_and(named)
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

impl Value for Epilogue {
    const KIND: Kind = Kind::Closure(&EPILOGUE);

    fn text(&self) -> String {
        self.to_string()
    }

    /// A hash of the text, the same on every machine: FNV-1a, by G. Fowler, L. C. Noll and K.-P. Vo.
    fn part(&self) -> String {
        let step = |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        format!("{:08x}", self.text().bytes().fold(0x811c_9dc5, step))
    }

    fn read(datum: &Datum) -> Option<Self> {
        match datum {
            Datum::Closure(closure) if *closure.env() == EPILOGUE => Some(Self(closure.clone())),
            _ => None,
        }
    }
}
