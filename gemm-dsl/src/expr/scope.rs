//! Where an expression stands: which names it may use.

use super::function::{Function, Signature};
use super::range::IntRange;
use super::typing::{Float, Typing};
use crate::expr::typing::Type;

/// What a key of a spec lets its expression use.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ExprScope {
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
    /// Integers that need no declaration, and what each can be.
    pub integers: &'static [(&'static str, IntRange)],
    /// What else there is where the host evaluates it; none where a kernel does.
    pub conditions: Option<ConditionScope>,
    /// The types, where they are always the same. Where they follow from other keys of the spec, its plan
    /// [checks](super::Closure::check) them.
    pub typing: Option<Typing>,
}

/// What an expression has that the host evaluates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConditionScope {
    /// Truth values that need no declaration.
    pub truths: &'static [&'static str],
    /// Whether there are floats: numbers with a point, functions of them, and `waves(128x256)`.
    pub floats: bool,
}

impl ExprScope {
    /// What an integer of this name can be, if there is one.
    pub fn integer(&self, name: &str) -> Option<IntRange> {
        self.integers.iter().find(|(known, _)| *known == name).map(|(_, range)| *range)
    }

    /// The truth values that need no declaration.
    pub fn truths(&self) -> &'static [&'static str] {
        self.conditions.map_or(&[], |conditions| conditions.truths)
    }

    /// The names that need no declaration.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let truths = self.truths().iter().copied();
        self.integers.iter().map(|(name, _)| *name).chain(truths)
    }

    /// Whether there are floats.
    pub fn has_floats(&self) -> bool {
        self.conditions.is_none_or(|conditions| conditions.floats)
    }

    /// Whether there is `waves(128x256)`.
    pub fn has_waves(&self) -> bool {
        self.conditions.is_some_and(|conditions| conditions.floats)
    }

    /// The functions of its expressions: all, but for the conversion to `f64` where everything is an `f32`; on the
    /// host those that IEEE 754 or the integers define, and one conversion.
    pub fn functions(&self) -> impl Iterator<Item = Function> {
        let has_f64 = self.typing.as_ref().is_none_or(Typing::has_f64);
        let float = self.typing.as_ref().map(|typing| typing.float);
        let (conditions, has_floats) = (self.conditions, self.has_floats());
        let functions = Function::ALL.iter().copied();
        functions.filter(move |function| match (function.info().signature, conditions) {
            (Signature::Number, _) => true,
            (Signature::Float, _) => has_floats,
            (Signature::Single, conditions) => conditions.is_none(),
            (Signature::Conversion, None) => has_f64 || function.converts_to() == Some(Float::F32),
            (Signature::Conversion, Some(_)) => has_floats && function.converts_to() == float,
        })
    }

    /// Whether the plan says how many values there are: that is where a name is lent to the one behind them.
    pub(super) fn is_counted_by_plan(&self) -> bool {
        self.lent.is_some()
    }

    /// The function of this name, if its expressions have it.
    pub fn function(&self, name: &str) -> Option<Function> {
        self.functions().find(|function| function.name() == name)
    }
}

/// The names that no environment lends to a parameter or a definition, but for one that says so.
pub(super) const RESERVED: &[&str] = &["m", "n", "k", "len", "batch", "row", "col", "i"];

/// The function of a tile that conditions have.
pub(crate) const WAVES: &str = "waves";

/// The words of the grammar.
pub(super) const KEYWORDS: &[&str] = &["let", "if", "else"];

/// The last step of a matrix product: what is stored where the sum `acc` stood.
pub static EPILOGUE: ExprScope = ExprScope {
    key: "epilogue",
    example: "|acc| max(acc, 0.0)",
    values: (1, 1),
    meaning: "the sum",
    lent: None,
    operands: &[&[], &["n"], &["m"], &["m", "n"]],
    output: Some(("c", &["m", "n"])),
    integers: &[
        ("m", IntRange::INDEX),
        ("n", IntRange::INDEX),
        ("k", IntRange::INDEX),
        ("row", IntRange::INDEX),
        ("col", IntRange::INDEX),
    ],
    conditions: None,
    typing: Some(Typing::F32),
};

/// The first step of a reduction: what of the elements at an index is folded.
pub static MAP: ExprScope = ExprScope {
    key: "map",
    example: "|x| x * x",
    values: (1, 4),
    meaning: "an element of each input",
    lent: None,
    operands: &[],
    output: None,
    integers: &[("i", IntRange::LENGTH), ("len", IntRange::LENGTH)],
    conditions: None,
    typing: None,
};

/// The last step of a reduction: what is stored of the folded value.
pub static FINISH: ExprScope = ExprScope {
    key: "finish",
    example: "|s, len| s / len",
    values: (1, 3),
    meaning: "the folded value, then how many elements there were",
    lent: Some("len"),
    operands: &[],
    output: None,
    integers: &[],
    conditions: None,
    typing: None,
};

/// An operator of the user's own: what two values become in a reduction.
pub static FOLD: ExprScope = ExprScope {
    key: "fold",
    example: "|a, b| max(a, b)",
    values: (2, 2),
    meaning: "two values to fold",
    lent: None,
    operands: &[],
    output: None,
    integers: &[],
    conditions: None,
    typing: None,
};

/// The value that such an operator leaves every other as it is with.
pub static IDENTITY: ExprScope = ExprScope {
    key: "identity",
    example: "0.0",
    values: (0, 0),
    meaning: "nothing",
    lent: None,
    operands: &[],
    output: None,
    integers: &[],
    conditions: None,
    typing: None,
};

/// A condition in a table of reductions: which problems a row is for.
pub static REDUCE_TABLE: ExprScope = ExprScope {
    key: "condition",
    example: "len <= 64",
    values: (0, 0),
    meaning: "nothing",
    lent: None,
    operands: &[],
    output: None,
    integers: &[
        ("outer", IntRange::LENGTH),
        ("len", IntRange::LENGTH),
        ("inner", IntRange::LENGTH),
    ],
    conditions: Some(ConditionScope { truths: &[], floats: false }),
    typing: Some(Typing { float: Float::F32, values: Vec::new(), result: Type::Bool }),
};

/// A condition in a table of products: which ones a row is for.
pub static SGEMM_TABLE: ExprScope = ExprScope {
    key: "condition",
    example: "m <= 64",
    values: (0, 0),
    meaning: "nothing",
    lent: None,
    operands: &[],
    output: None,
    integers: &[
        ("m", IntRange::INDEX),
        ("n", IntRange::INDEX),
        ("k", IntRange::INDEX),
        ("batch", IntRange::INDEX),
        ("sms", IntRange::COUNT),
        ("arch", IntRange::COUNT),
    ],
    conditions: Some(ConditionScope {
        truths: &["nn", "nt", "tn", "tt", "padded", "aligned"],
        floats: true,
    }),
    typing: Some(Typing { float: Float::F64, values: Vec::new(), result: Type::Bool }),
};
