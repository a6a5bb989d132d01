//! The key `epilogue`.

use super::table::{Datum, Kind, Value};
use crate::error::SpecErrors;
use crate::value::{Closure, EPILOGUE};
use std::fmt::{Display, Formatter, Result as Formatted};
use std::str::FromStr;

/// What is stored where a matrix product has the sum `acc`, such as `|acc| max(acc, 0.0)`.
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
