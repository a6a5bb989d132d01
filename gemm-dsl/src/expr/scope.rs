//! Scopes of expressions: the names and types that an expression may use.

use super::function::{Function, Signature};
use super::range::IntRange;
use super::tree::ClosureParam;
use super::typing::{Float, Typing};

/// Names and types that the expression of a key may use.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ExprScope {
    pub key: &'static str,
    /// Example of a value, for messages.
    pub example: &'static str,
    /// Minimum and maximum number of values, which are the closure's first parameters.
    pub values: (usize, usize),
    /// Description of these values, for messages.
    pub meaning: &'static str,
    /// Names that parameters and definitions must not have, except a lent name.
    pub reserved: &'static [&'static str],
    /// Reserved name that a value after the first may have, because the name stands for this value.
    pub lent: Option<&'static str>,
    /// Indices that operands after the values may have; `&[]` is the index of a scalar.
    pub operands: &'static [&'static [&'static str]],
    /// Name and index of the operand that stands for the previous content of the kernel's output.
    pub output: Option<(&'static str, &'static [&'static str])>,
    /// Maximum number of values that the expression may have. Several are a tuple at its end.
    pub results: usize,
    /// True if parameters and results may state their element types: `|x[m, n]: bf16| -> f32 …`.
    pub is_typed: bool,
    /// True if a parameter with a type, after the values, is a number that a launch passes:
    /// `|x, mu: f32| x - mu`.
    pub numbers: bool,
    /// True if the expression may fold a value over a row, as in `sum(x * x)`. If it is not
    /// [elementwise](Self::is_elementwise), only values after the first may do so.
    pub folds: bool,
    /// True if the expression may be computed once for each pair of columns: `next(x)` reads the
    /// odd column, and `pair(x, y)` is a value for each of the two.
    pub pairs: bool,
    /// Integers that are in scope without a declaration, with their ranges.
    pub integers: &'static [(&'static str, IntRange)],
    /// Additional names of expressions that the host evaluates; `None` if a kernel evaluates them.
    pub conditions: Option<ConditionScope>,
    /// Types, if the key determines them. Otherwise the spec's plan [checks](super::Closure::check)
    /// the types.
    pub typing: Option<Typing>,
}

/// Additional names of an expression that the host evaluates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConditionScope {
    /// Truth values that are in scope without a declaration.
    pub truths: &'static [&'static str],
    /// True if floats are allowed: numbers with a point, functions of floats, and `waves(128x256)`.
    pub floats: bool,
}

impl ExprScope {
    /// Returns true for the expression of an elementwise kernel. All of its parameters are
    /// operands, and it computes each element of the kernel's results.
    pub fn is_elementwise(&self) -> bool {
        self.values.1 == 0 && !self.operands.is_empty()
    }

    /// Splits parameters into the values, with any operands, and the numbers after them.
    pub(crate) fn values_and_numbers<'p>(
        &self,
        params: &'p [ClosureParam],
    ) -> (&'p [ClosureParam], &'p [ClosureParam]) {
        let is_value = |param: &ClosureParam| !self.numbers || param.elem.is_none();
        let values = params.iter().rposition(is_value).map_or(0, |last| last + 1);
        params.split_at(values)
    }

    /// Returns the range of the integer with this name, if there is one.
    pub fn integer(&self, name: &str) -> Option<IntRange> {
        self.integers.iter().find(|(known, _)| *known == name).map(|(_, range)| *range)
    }

    /// Returns the booleans that are in scope without a declaration.
    pub fn truths(&self) -> &'static [&'static str] {
        self.conditions.map_or(&[], |conditions| conditions.truths)
    }

    /// Returns the names that are in scope without a declaration.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let truths = self.truths().iter().copied();
        self.integers.iter().map(|(name, _)| *name).chain(truths)
    }

    /// Returns true if the expressions may contain floats.
    pub fn has_floats(&self) -> bool {
        self.conditions.is_none_or(|conditions| conditions.floats)
    }

    /// Returns true if the expressions may call `waves(128x256)`.
    pub fn has_waves(&self) -> bool {
        self.conditions.is_some_and(|conditions| conditions.floats)
    }

    /// Returns the functions that the expressions may call. In a kernel these are all functions,
    /// except the conversion to `f64` if all types are `f32`. On the host these are the functions
    /// defined by IEEE 754 or by integer arithmetic, and one conversion.
    pub fn functions(&self) -> impl Iterator<Item = Function> {
        let has_f64 = self.typing.as_ref().is_none_or(Typing::has_f64);
        let float = self.typing.as_ref().map(|typing| typing.float);
        let (conditions, has_floats) = (self.conditions, self.has_floats());
        let functions = Function::ALL.iter().copied();
        functions.filter(move |function| match (function.info().signature, conditions) {
            (Signature::Number, _) => true,
            (Signature::Float | Signature::Predicate, _) => has_floats,
            (Signature::Single, conditions) => conditions.is_none(),
            (Signature::Conversion, None) => has_f64 || function.converts_to() == Some(Float::F32),
            (Signature::Conversion, Some(_)) => has_floats && function.converts_to() == float,
        })
    }

    /// Returns true if the plan decides how many values there are. Exactly these scopes have a
    /// [`lent`](Self::lent) name.
    pub(super) fn is_counted_by_plan(&self) -> bool {
        self.lent.is_some()
    }

    /// Returns the function with this name, if the scope has it.
    pub fn function(&self, name: &str) -> Option<Function> {
        self.functions().find(|function| function.name() == name)
    }
}

/// Reserved names of GEMMs: integers that some expression or condition may read.
const IN_GEMM: &[&str] = &["m", "n", "k", "len", "batch", "row", "col", "i"];

/// Reserved names of elementwise kernels: integers that the expression may read.
const IN_ELEMENTWISE: &[&str] = &["m", "n", "row", "col"];

/// Reserved names of reductions: integers that some expression may read.
const IN_REDUCTION: &[&str] = &["i", "len"];

/// Name of the function of a tile that conditions may call.
pub(crate) const WAVES: &str = "waves";

pub(super) const KEYWORDS: &[&str] = &["let", "if", "else"];

/// Value that a GEMM stores in place of the accumulator `acc`.
pub static EPILOGUE: ExprScope = ExprScope {
    key: "epilogue",
    example: "|acc| max(acc, 0.0)",
    values: (1, 1),
    meaning: "the accumulator",
    reserved: IN_GEMM,
    lent: None,
    operands: &[&[], &["n"], &["m"], &["m", "n"], &["batch"], &["batch", "n"], &["batch", "m"]],
    output: Some(("c", &["m", "n"])),
    results: 4,
    is_typed: false,
    numbers: false,
    folds: true,
    pairs: true,
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

/// Results of an elementwise kernel, computed from the operands' elements at one index.
pub static ELEMENTWISE: ExprScope = ExprScope {
    key: "map",
    example: "|x[m, n], bias[n]| relu(x + bias)",
    values: (0, 0),
    meaning: "nothing",
    reserved: IN_ELEMENTWISE,
    lent: None,
    operands: &[&[], &["n"], &["m"], &["m", "n"]],
    output: None,
    results: 4,
    is_typed: true,
    numbers: false,
    folds: true,
    pairs: false,
    integers: &[
        ("m", IntRange::INDEX),
        ("n", IntRange::INDEX),
        ("row", IntRange::INDEX),
        ("col", IntRange::INDEX),
    ],
    conditions: None,
    typing: None,
};

/// Value that a reduction folds, computed from the elements at one index.
pub static MAP: ExprScope = ExprScope {
    key: "map",
    example: "|x| x * x",
    values: (1, 4),
    meaning: "one for each input array",
    reserved: IN_REDUCTION,
    lent: None,
    operands: &[],
    output: None,
    results: 1,
    is_typed: false,
    numbers: true,
    folds: false,
    pairs: false,
    integers: &[("i", IntRange::LENGTH), ("len", IntRange::LENGTH)],
    conditions: None,
    typing: None,
};

/// Result of a reduction, computed from the folded value.
pub static FINISH: ExprScope = ExprScope {
    key: "finish",
    example: "|s, len| s / len",
    values: (1, 3),
    meaning: "the folded value (mean and variance under `mean_var`), then optionally the number \
              of elements",
    reserved: IN_REDUCTION,
    lent: Some("len"),
    operands: &[],
    output: None,
    results: 1,
    is_typed: false,
    numbers: true,
    folds: false,
    pairs: false,
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
    reserved: IN_REDUCTION,
    lent: None,
    operands: &[],
    output: None,
    results: 1,
    is_typed: false,
    numbers: false,
    folds: false,
    pairs: false,
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
    reserved: IN_REDUCTION,
    lent: None,
    operands: &[],
    output: None,
    results: 1,
    is_typed: false,
    numbers: false,
    folds: false,
    pairs: false,
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
    reserved: IN_REDUCTION,
    lent: None,
    operands: &[],
    output: None,
    results: 1,
    is_typed: false,
    numbers: false,
    folds: false,
    pairs: false,
    integers: &[
        ("outer", IntRange::LENGTH),
        ("len", IntRange::LENGTH),
        ("inner", IntRange::LENGTH),
    ],
    conditions: Some(ConditionScope { truths: &[], floats: false }),
    typing: Some(Typing::F32_CONDITION),
};

/// Condition of a rule in a table of GEMMs.
pub static SGEMM_TABLE: ExprScope = ExprScope {
    key: "condition",
    example: "m <= 64",
    values: (0, 0),
    meaning: "nothing",
    reserved: IN_GEMM,
    lent: None,
    operands: &[],
    output: None,
    results: 1,
    is_typed: false,
    numbers: false,
    folds: false,
    pairs: false,
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
    typing: Some(Typing::F64_CONDITION),
};
