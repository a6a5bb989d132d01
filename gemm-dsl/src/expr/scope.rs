//! Scopes of expressions: the names and types that a key offers.

use super::function::{Function, Signature};
use super::range::IntRange;
use super::typing::{Float, Typing};
use crate::expr::typing::Type;

/// Names and types that a key of a spec offers to its expression.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ExprScope {
    pub key: &'static str,
    /// Example of a value, for messages.
    pub example: &'static str,
    /// Least and most number of values that the closure names first.
    pub values: (usize, usize),
    /// Description of these values, for messages.
    pub meaning: &'static str,
    /// Reserved name that a value after the first may have, because it means exactly this value.
    pub lent: Option<&'static str>,
    /// Indices of the operands that may follow; `&[]` is a scalar.
    pub operands: &'static [&'static [&'static str]],
    /// Name and index of the operand that is the key's output before the kernel.
    pub output: Option<(&'static str, &'static [&'static str])>,
    /// Integers that need no declaration, with their ranges.
    pub integers: &'static [(&'static str, IntRange)],
    /// Further names for expressions that the host evaluates; `None` if a kernel evaluates them.
    pub conditions: Option<ConditionScope>,
    /// Types, if the key determines them. Otherwise the plan of the spec
    /// [checks](super::Closure::check) them.
    pub typing: Option<Typing>,
}

/// Additional names of an expression that the host evaluates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConditionScope {
    /// Truth values that need no declaration.
    pub truths: &'static [&'static str],
    /// True if there are floats: numbers with a point, functions of them, and `waves(128x256)`.
    pub floats: bool,
}

impl ExprScope {
    /// Returns the range of the integer with this name, if there is one.
    pub fn integer(&self, name: &str) -> Option<IntRange> {
        self.integers.iter().find(|(known, _)| *known == name).map(|(_, range)| *range)
    }

    /// Returns the truth values that need no declaration.
    pub fn truths(&self) -> &'static [&'static str] {
        self.conditions.map_or(&[], |conditions| conditions.truths)
    }

    /// Returns the names that need no declaration.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let truths = self.truths().iter().copied();
        self.integers.iter().map(|(name, _)| *name).chain(truths)
    }

    /// Returns true if the expressions may have floats.
    pub fn has_floats(&self) -> bool {
        self.conditions.is_none_or(|conditions| conditions.floats)
    }

    /// Returns true if the expressions may call `waves(128x256)`.
    pub fn has_waves(&self) -> bool {
        self.conditions.is_some_and(|conditions| conditions.floats)
    }

    /// Returns the functions of its expressions. A kernel has all, without the conversion to `f64`
    /// if everything is `f32`. The host has the ones that IEEE 754 or integer arithmetic defines,
    /// and one conversion.
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

    /// Returns true if the plan decides how many values there are. These scopes lend a name to the
    /// value after them.
    pub(super) fn is_counted_by_plan(&self) -> bool {
        self.lent.is_some()
    }

    /// Returns the function with this name, if the scope has it.
    pub fn function(&self, name: &str) -> Option<Function> {
        self.functions().find(|function| function.name() == name)
    }
}

/// Names that parameters and definitions cannot have, unless a scope lends one.
pub(super) const RESERVED: &[&str] = &["m", "n", "k", "len", "batch", "row", "col", "i"];

/// Function of a tile, for conditions.
pub(crate) const WAVES: &str = "waves";

pub(super) const KEYWORDS: &[&str] = &["let", "if", "else"];

/// Last step of a GEMM: the value that is stored in place of the accumulator `acc`.
pub static EPILOGUE: ExprScope = ExprScope {
    key: "epilogue",
    example: "|acc| max(acc, 0.0)",
    values: (1, 1),
    meaning: "the accumulator",
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

/// First step of a reduction: the value that is folded, from the elements at an index.
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

/// Last step of a reduction: the value that is stored, from the folded one.
pub static FINISH: ExprScope = ExprScope {
    key: "finish",
    example: "|s, len| s / len",
    values: (1, 3),
    meaning: "the folded value, then the number of elements",
    lent: Some("len"),
    operands: &[],
    output: None,
    integers: &[],
    conditions: None,
    typing: None,
};

/// User-defined operator of a reduction, which folds two values.
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

/// Identity of a user-defined operator.
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

/// Condition of a rule in a table of reductions.
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

/// Condition of a rule in a table of GEMMs.
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
