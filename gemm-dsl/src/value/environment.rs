//! Where an expression stands: which names it may use.

use super::function::Function;
use super::tree::Type;
use super::typing::{Float, Typing};

/// What a key of a spec lets its expression use.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Environment {
    /// The key.
    pub key: &'static str,
    /// A value of the key, for messages.
    pub example: &'static str,
    /// How many values at hand the closure names first, at least and at most.
    pub values: (usize, usize),
    /// What they are, for messages.
    pub meaning: &'static str,
    /// The reserved name that a value behind the first may have, since it means just that.
    pub lent: Option<&'static str>,
    /// The operands that may follow them, by what they are indexed by; `&[]` is a scalar.
    pub operands: &'static [&'static [&'static str]],
    /// The operand that is what the key writes, as it was before: its name, and what it is indexed by.
    pub output: Option<(&'static str, &'static [&'static str])>,
    /// Integers that need no declaration.
    pub integers: &'static [&'static str],
    /// Whether it is evaluated on the host, with integers and truth values alone.
    pub on_host: bool,
    /// The types, where they are always the same. Where they follow from other keys of the spec, its plan
    /// [checks](super::Closure::check) them.
    pub typing: Option<Typing>,
}

impl Environment {
    /// The functions of its expressions: all, but for the conversion to `f64` where everything is an `f32`;
    /// on the host those of integers.
    pub fn functions(&self) -> impl Iterator<Item = Function> {
        let has_f64 = self.typing.as_ref().is_none_or(Typing::has_f64);
        let on_host = self.on_host;
        let functions = Function::ALL.iter().copied();
        functions.filter(move |function| match function {
            Function::Min | Function::Max | Function::Abs | Function::Clamp => true,
            Function::ToF64 => has_f64 && !on_host,
            _ => !on_host,
        })
    }

    /// The function of this name, if its expressions have it.
    pub fn function(&self, name: &str) -> Option<Function> {
        self.functions().find(|function| function.name() == name)
    }
}

/// The names that no environment lends to a parameter or a definition, but for one that says so.
pub(super) const RESERVED: &[&str] = &["m", "n", "k", "len", "batch", "row", "col", "i"];

/// The words of the grammar.
pub(super) const KEYWORDS: &[&str] = &["let", "if", "else"];

/// The last step of a matrix product: what is stored where the sum `acc` stood.
pub static EPILOGUE: Environment = Environment {
    key: "epilogue",
    example: "|acc| max(acc, 0.0)",
    values: (1, 1),
    meaning: "the sum",
    lent: None,
    operands: &[&[], &["n"], &["m"], &["m", "n"]],
    output: Some(("c", &["m", "n"])),
    integers: &["m", "n", "k", "row", "col"],
    on_host: false,
    typing: Some(Typing::F32),
};

/// The first step of a reduction: what of the elements at an index is folded.
pub static MAP: Environment = Environment {
    key: "map",
    example: "|x| x * x",
    values: (1, 4),
    meaning: "an element of each input",
    lent: None,
    operands: &[],
    output: None,
    integers: &["i", "len"],
    on_host: false,
    typing: None,
};

/// The last step of a reduction: what is stored of the folded value.
pub static FINISH: Environment = Environment {
    key: "finish",
    example: "|s, len| s / len",
    values: (1, 3),
    meaning: "the folded value, then how many elements there were",
    lent: Some("len"),
    operands: &[],
    output: None,
    integers: &[],
    on_host: false,
    typing: None,
};

/// An operator of the user's own: what two values become in a reduction.
pub static FOLD: Environment = Environment {
    key: "fold",
    example: "|a, b| max(a, b)",
    values: (2, 2),
    meaning: "two values to fold",
    lent: None,
    operands: &[],
    output: None,
    integers: &[],
    on_host: false,
    typing: None,
};

/// The value that such an operator leaves every other as it is with.
pub static IDENTITY: Environment = Environment {
    key: "identity",
    example: "0.0",
    values: (0, 0),
    meaning: "nothing",
    lent: None,
    operands: &[],
    output: None,
    integers: &[],
    on_host: false,
    typing: None,
};

/// A condition in a table of reductions: which problems a row is for.
pub static REDUCE_TABLE: Environment = Environment {
    key: "condition",
    example: "len <= 64",
    values: (0, 0),
    meaning: "nothing",
    lent: None,
    operands: &[],
    output: None,
    integers: &["outer", "len", "inner"],
    on_host: true,
    typing: Some(Typing { float: Float::F32, values: Vec::new(), result: Type::Bool }),
};
