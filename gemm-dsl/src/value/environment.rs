//! Where an expression stands: which names it may use, and what it must give.

use super::tree::Type;

/// What a key of a spec lets its expression use.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Environment {
    /// The key.
    pub key: &'static str,
    /// A value of the key, for messages.
    pub example: &'static str,
    /// How many values at hand the closure names first, at least and at most, each an `f32`.
    pub values: (usize, usize),
    /// What they are, for messages.
    pub meaning: &'static str,
    /// The operands that may follow them, by what they are indexed by; `&[]` is a scalar.
    pub operands: &'static [&'static [&'static str]],
    /// The operand that is what the key writes, as it was before: its name, and what it is indexed by.
    pub output: Option<(&'static str, &'static [&'static str])>,
    /// Integers that need no declaration.
    pub integers: &'static [&'static str],
    /// The type of the value.
    pub result: Type,
}

/// The names that no environment lends to a parameter or a definition.
pub(super) const RESERVED: &[&str] = &["m", "n", "k", "len", "batch", "row", "col", "i"];

/// The words of the grammar.
pub(super) const KEYWORDS: &[&str] = &["let", "if", "else"];

/// The last step of a matrix product: what is stored where the sum `acc` stood.
pub static EPILOGUE: Environment = Environment {
    key: "epilogue",
    example: "|acc| max(acc, 0.0)",
    values: (1, 1),
    meaning: "the sum",
    operands: &[&[], &["n"], &["m"], &["m", "n"]],
    output: Some(("c", &["m", "n"])),
    integers: &["m", "n", "k", "row", "col"],
    result: Type::F32,
};
