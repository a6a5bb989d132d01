//! Expression language of the keys `epilogue`, `map`, `fold`, `identity` and `finish`, and of
//! elementwise kernels.
//!
//! ```text
//! |acc| { let t = 0.5 * acc; if t > 1.0 { 1.0 } else { max(t, 0.0) } }
//! ```
//!
//! The key determines the meaning of the closure's parameters. The body is an expression, or a
//! block with definitions (`let`) that ends in an expression. The value of an `epilogue` or of an
//! elementwise kernel may be a tuple of two to four values, such as `(gelu(t), t)`.
//!
//! **Folds** `sum(e)`, `prod(e)`, `max(e)` and `min(e)` of one operand fold `e` over the columns of
//! a row. A row kernel has them anywhere. An epilogue has them in results of rows:
//! values after the first that depend on elements only inside of folds.
//!
//! **Pairs of columns.** An epilogue that contains `next(e)` or `pair(x, y)` is computed once for
//! each pair of columns 2j and 2j + 1. Names are those of the even column, and `next(e)` is the
//! value of `e` in the odd column. A value of the closure is either `pair(x, y)`, a value for each
//! of the two columns, or one value for the pair. Folds fold one value for each pair.
//!
//! **Types** are `f32`, `f64`, 64-bit integers and booleans. A GEMM computes in `f32` and has no
//! `f64`. In a reduction, the element types determine the floating-point type. `2` is an integer,
//! and `2.0` has the floating-point type of the computation. The operands of an operator must have
//! the same type. Only `f32(…)` and `f64(…)` convert, and nothing converts to an integer. Extents
//! and positions are integers: `m` and `row` in a GEMM, `len` and `i` in a reduction.
//!
//! **Inputs and results** are converted automatically. Elements of `f16` and `bf16` are read as
//! `f32`, and integers of any width as 64 bits. In a `finish`, the parameter for the number of
//! elements has the accumulator type. If this type is `f32`, a number above 2^24 may be rounded. A
//! floating-point result is rounded if the result type is narrower. An integer result wraps in the
//! accumulator type.
//!
//! **Values** have the same bits on a GPU and in the simulator, except the bits of some NaNs
//! (below). Arithmetic is IEEE binary32 or binary64, rounded to nearest even, with subnormals.
//! `a * b + c` rounds twice, and `fma(a, b, c)` once. `min` and `max` follow IEEE 754-2019: NaN
//! wins, and −0 is below +0. Comparisons with NaN are false, except `!=`. An expression is rejected
//! if an integer could exceed 64 bits or be divided by zero.
//!
//! **NaN** that `f32` arithmetic produces is `0x7fffffff`. A NaN that is only selected keeps its
//! bits. The bits of a NaN are unspecified after `f64` arithmetic and after a conversion between
//! `f32` and `f64`. They are also unspecified after `-x`, `abs(x)`, and operations that leave a
//! number unchanged or negate it, such as `x * 1.0` and `x - 0.0`: compilers drop these, or apply
//! the sign where the value is used.
//!
//! **Literals** with a point or an exponent are read as the nearest `f64`. For `f32`, the
//! shortest decimal text of that `f64` is rounded to the nearest `f32`, because rounding the `f64`
//! itself could give a different `f32`. So `0.1` is the `f32` nearest to 0.1. A literal is rejected
//! if it is too large for its type, or if it is not 0 but rounds to 0. Infinity has no literal:
//! write `1.0 / 0.0` for +∞ and `-1.0 / 0.0` for −∞.
//!
//! **Size**: an expression has at most 64 levels, and each operator of a chain such as `a + b + c`
//! counts as a level. Use `let` definitions to reduce the number of levels. An expression has at
//! most 1024 literals, names, operators and calls. A name has at most 128 characters.
//!
//! **Operators**, from the lowest precedence to the highest: `||`, `&&`, comparisons (which do not
//! chain), `+ -`, `* / %` (`%` on integers only), `- !`.
//!
//! **Functions**: `min max abs sign clamp` take numbers, and `sqrt fma floor ceil round trunc rsqrt
//! relu` take floats. `isnan` takes a float and returns a boolean. `f32` and `f64` convert an
//! integer or a float of the other type, and round to nearest even. All other functions take and
//! return only `f32`, with the errors listed below.
//!
//! Each expression has one canonical text. Parsing this text returns the same expression.

mod check;
mod conditions;
mod function;
mod lexeme;
pub mod library;
mod literal;
mod lower;
mod messages;
mod pairs;
mod parse;
mod print;
#[doc(hidden)]
pub mod random;
mod range;
mod reachability;
mod row_results;
mod rows;
mod scope;
pub(crate) mod suggestion;
#[cfg(test)]
mod tests;
mod tree;
mod typing;

pub use conditions::Facts;
pub(crate) use conditions::{ConditionInput, Conditions};
pub use function::{Bound, Function, FunctionInfo, Signature};
pub use lower::Lowered;
pub use range::IntRange;
pub(crate) use reachability::ProblemSet;
pub(crate) use row_results::RowResults;
pub(crate) use rows::{RowExpression, RowPart, RowPartKind};
pub(crate) use scope::WAVES;
pub use scope::{
    ConditionScope, ELEMENTWISE, EPILOGUE, ExprScope, FINISH, FOLD, IDENTITY, MAP, REDUCE_TABLE,
    SGEMM_TABLE,
};
pub use tree::{
    Binary, Block, ClosureParam, ClosureResult, FoldOp, Let, Node, NodeKind, NodeSpan, Unary,
};
pub use typing::{Float, Type, Typing, ValueType};

use crate::error::{Excerpt, SpecError, SpecErrors, TokenSpan};
use crate::ir::Elem;
use crate::syntax::{Token, lex};
use lexeme::lexemes;
use std::fmt::{Display, Formatter, Result as Formatted};

/// Valid expression of named parameters, in the scope of its key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Closure {
    scope: &'static ExprScope,
    params: Vec<ClosureParam>,
    /// Element types of the results, if the closure states them.
    results: Vec<ClosureResult>,
    /// Definitions and the first value.
    body: Block,
    /// Other values of a tuple, which may use the definitions of the body.
    others: Vec<Node>,
}

impl Closure {
    /// Parses the tokens of a value, and checks them in the scope of the key. Checks types, too, if
    /// the key determines them.
    pub(crate) fn read(
        scope: &'static ExprScope,
        tokens: &[Token],
    ) -> Result<Self, Vec<SpecError>> {
        let flat = lexemes(tokens);
        let closure = parse::Parser::new(scope, &flat).closure().map_err(|fault| vec![fault])?;
        let typing = scope.typing.as_ref();
        let faults = check::check(&closure, typing);
        if !faults.is_empty() {
            return Err(faults);
        }
        // In the odd column, `col` is greater by 1.
        let in_columns = closure.has_pairs().then(|| closure.columns().closure);
        match in_columns.map(|closure| check::check(&closure, typing)).unwrap_or_default() {
            faults if faults.is_empty() => Ok(closure),
            faults => Err(faults),
        }
    }

    /// Returns a placeholder for an expression with a faulty body. It has the same parameters, and
    /// its value is the first parameter. `None` if the parameters themselves are faulty.
    pub(crate) fn head(scope: &'static ExprScope, tokens: &[Token]) -> Option<Self> {
        let parse::Head { params, results } =
            parse::Parser::new(scope, &lexemes(tokens)).head().ok()?;
        let lists = params.len() >= scope.values.0 && check::lists_operands(scope, &params);
        let first = params.first().filter(|_| lists)?;
        let value = Node { kind: NodeKind::Name(first.name.clone()), at: first.at };
        let body = Block { lets: Vec::new(), value };
        Some(Self { scope, body, params, results, others: Vec::new() })
    }

    /// Returns all type errors of the expression, in the order of the text, each at its own tokens.
    pub fn check(&self, typing: &Typing) -> Vec<SpecError> {
        check::check(self, Some(typing))
    }

    /// Returns the smallest and the greatest integer value that the expression can have. `None` if
    /// it is not an integer expression or is invalid.
    pub fn range(&self, typing: &Typing) -> Option<(i128, i128)> {
        check::range(self, typing)
    }

    /// Parses an expression, and checks its types if its key determines them.
    ///
    /// # Errors
    /// Returns all faults, each at its own token.
    pub fn parse(scope: &'static ExprScope, text: &str) -> Result<Self, SpecErrors> {
        let (tokens, places) = lex(text).map_err(|fault| fault.in_text(text))?;
        Self::read(scope, &tokens).map_err(|faults| {
            let located = |fault: SpecError| {
                let last = tokens.len().saturating_sub(1);
                let TokenSpan { first, last } =
                    fault.tokens().unwrap_or(TokenSpan { first: 0, last });
                let ends = places.get(first).zip(places.get(last));
                let place = ends.map(|(first, last)| first.start..last.end);
                fault.with_excerpt(place.map(|place| Excerpt::new(text, place)))
            };
            SpecErrors::new(faults.into_iter().map(located))
        })
    }

    /// Returns the scope of the expression's key.
    pub fn scope(&self) -> &'static ExprScope {
        self.scope
    }

    /// Returns the parameters: the values of the scope, then the operands.
    pub fn params(&self) -> &[ClosureParam] {
        &self.params
    }

    /// Returns the parameters before the numbers.
    pub fn value_params(&self) -> &[ClosureParam] {
        self.scope.values_and_numbers(&self.params).0
    }

    /// Returns the numbers that a launch passes, with their types.
    pub fn number_params(&self) -> impl Iterator<Item = (&ClosureParam, Elem)> {
        let numbers = self.scope.values_and_numbers(&self.params).1.iter();
        numbers.filter_map(|number| Some((number, number.elem?)))
    }

    /// Returns the definitions and the first value.
    pub fn body(&self) -> &Block {
        &self.body
    }

    /// Returns the values in order.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &Node> {
        (0..1 + self.others.len()).map(|nth| match nth {
            0 => &self.body.value,
            nth => &self.others[nth - 1],
        })
    }

    /// Returns the element types of the results, or nothing if the closure does not state them.
    pub fn result_types(&self) -> &[ClosureResult] {
        &self.results
    }

    /// Returns the n-th value with the definitions that it reads.
    pub fn value_block(&self, nth: usize) -> Option<Block> {
        Some(Block::reading(&self.body.lets, self.values().nth(nth)?.clone()))
    }

    /// Returns the closure of the n-th value, with the definitions and the parameters that it
    /// reads.
    pub(crate) fn result(&self, nth: usize) -> Option<Self> {
        let body = self.value_block(nth)?;
        let read = body.read();
        let params = self.params.iter().filter(|param| read.contains(param.name.as_str()));
        Some(Self {
            scope: self.scope,
            params: params.cloned().collect(),
            results: self.results.get(nth).copied().into_iter().collect(),
            body,
            others: Vec::new(),
        })
    }

    /// Returns true if the body reads a name.
    pub(crate) fn reads(&self, name: &str) -> bool {
        let mut reads = false;
        self.visit(&mut |e| reads |= matches!(&e.kind, NodeKind::Name(n) if n == name));
        reads
    }

    /// Swaps the names of each pair, in the body and in indices that do not have both. All must be
    /// reserved names of the scope, which no parameter or definition can have.
    pub(crate) fn with_swapped(mut self, pairs: &[[&str; 2]]) -> Self {
        let swap = |name: &mut String| {
            for [one, other] in pairs {
                if name == one {
                    return *name = (*other).to_owned();
                }
                if name == other {
                    return *name = (*one).to_owned();
                }
            }
        };
        self.body.visit_names(&mut |name| swap(name));
        self.others.iter_mut().for_each(|value| value.visit_names(&mut |name| swap(name)));
        for param in &mut self.params {
            let names_both = |pair: &&[&str; 2]| {
                pair.iter().all(|name| param.index.iter().any(|axis| axis == name))
            };
            if !pairs.iter().any(|pair| names_both(&pair)) {
                param.index.iter_mut().for_each(swap);
            }
        }
        self
    }
}

impl Display for Closure {
    fn fmt(&self, f: &mut Formatter<'_>) -> Formatted {
        let params: Vec<String> = self.params.iter().map(ClosureParam::to_string).collect();
        if !params.is_empty() || !self.scope.operands.is_empty() {
            write!(f, "|{}| ", params.join(", "))?;
        }
        print::results(&self.results, f)?;
        print::body(self, f)
    }
}
