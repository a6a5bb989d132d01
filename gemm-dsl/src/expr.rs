//! The expression language: what a user writes for a value that a kernel computes.
//!
//! ```text
//! |acc| { let t = 0.5 * acc; if t > 1.0 { 1.0 } else { max(t, 0.0) } }
//! ```
//!
//! A closure names the values at hand, which its key has. The body is an expression, or a block of
//! definitions that ends in one.
//!
//! **Types** are `f32`, `f64`, integers of 64 bits and truth values. A product computes in `f32` and has
//! no `f64`; in a reduction the types of its elements decide. `2` is an integer, `2.0` a number of the
//! type that is computed in. Within an expression nothing is converted but by `f32(…)` and `f64(…)`, and nothing to
//! an integer: operands have one type. The extents and positions that a key has, such as `m` and `row`, are integers.
//!
//! **What comes in and goes out** is converted: elements of `f16` and `bf16` come as `f32`, integers of any width
//! with 64 bits, and the number of elements that a `finish` names as a value of the type that is folded in: as an
//! `f32` rounded from 2^24 on. A result is rounded to a floating-point type that is less wide; an integer wraps in the type
//! that is folded in.
//!
//! **What is written is what is computed**, by a GPU and by the simulator, to the bit. Arithmetic is
//! IEEE binary32 or binary64, rounded to nearest even, subnormals kept; `a * b + c` rounds twice,
//! `fma(a, b, c)` once. `min` and `max` are those of IEEE 754-2019: NaN wins, and −0 is below +0. A NaN
//! that arithmetic of `f32` produces is `0x7fffffff`; which one is produced of an `f64`, or of one type
//! from the other, is left open. Comparisons with NaN fail, but for `!=`. Integers are exact: an
//! expression in which one could leave 64 bits or be divided by zero is refused.
//!
//! **Numbers** with a point or an exponent are read as the nearest `f64`. An `f32` is the one nearest to
//! the shortest text of that: `0.1` is the `f32` nearest to 0.1. One that is too large for its type, or
//! would be 0 and is not, is refused.
//!
//! **Size**: at most 64 levels deep, of which each operator of a chain such as `a + b + c` is one, and
//! 1024 numbers, names, operators and calls; a name has at most 128 characters. Definitions make a
//! deep expression flat.
//!
//! **Operators**, loosest first: `||`, `&&`, comparisons (which do not chain), `+ -`, `* / %` (`%`
//! on integers only), `- !`.
//!
//! **Functions**: `min max abs clamp` of numbers; of floats `sqrt fma floor round` (to even), which a
//! machine has, and `rsqrt relu`, made of such in place; all others are of an `f32` alone, arithmetic
//! spelled out in the IR, with the bounds of their errors. `f32` and `f64` convert an integer or the other
//! float, rounding to nearest even.
//!
//! An expression has one canonical text, and reading that gives the expression back.

mod check;
mod conditions;
mod function;
mod lexeme;
pub mod library;
mod literal;
mod lower;
mod messages;
mod parse;
mod print;
#[doc(hidden)]
pub mod random;
mod range;
mod reachability;
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
pub(crate) use scope::WAVES;
pub use scope::{
    ConditionScope, EPILOGUE, ExprScope, FINISH, FOLD, IDENTITY, MAP, REDUCE_TABLE, SGEMM_TABLE,
};
pub use tree::{Binary, Block, ClosureParam, Let, Node, NodeKind, NodeSpan, Unary};
pub use typing::{Float, Type, Typing, ValueType};

use crate::error::{Excerpt, SpecError, SpecErrors, TokenSpan};
use crate::syntax::{Token, lex};
use lexeme::lexemes;
use std::fmt::{Display, Formatter, Result as Formatted};

/// An expression of the values that its parameters name; sound in its environment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Closure {
    scope: &'static ExprScope,
    params: Vec<ClosureParam>,
    body: Block,
}

impl Closure {
    /// Reads the tokens of a value and checks them in the environment of its key; their types too, if it
    /// has them.
    pub(crate) fn read(
        scope: &'static ExprScope,
        tokens: &[Token],
    ) -> Result<Self, Vec<SpecError>> {
        let flat = lexemes(tokens);
        let (params, body) =
            parse::Parser::new(scope, &flat).closure().map_err(|fault| vec![fault])?;
        match check::check(scope, scope.typing.as_ref(), &params, &body) {
            faults if faults.is_empty() => Ok(Self { scope, params, body }),
            faults => Err(faults),
        }
    }

    /// What is known of an expression whose body is faulty: one of the same parameters, which gives the
    /// first of them. None where the parameters are no list of values and operands.
    pub(crate) fn head(scope: &'static ExprScope, tokens: &[Token]) -> Option<Self> {
        let params = parse::Parser::new(scope, &lexemes(tokens)).params().ok()?;
        let lists = params.len() >= scope.values.0 && check::lists_operands(scope, &params);
        let first = params.first().filter(|_| lists)?;
        let value = Node { kind: NodeKind::Name(first.name.clone()), at: first.at };
        Some(Self { scope, body: Block { lets: Vec::new(), value }, params })
    }

    /// What is wrong with the types of the expression, in the order of the text; each fault is at its
    /// own tokens.
    pub fn check(&self, typing: &Typing) -> Vec<SpecError> {
        check::check(self.scope, Some(typing), &self.params, &self.body)
    }

    /// The least and the greatest integer that the expression may give; none where it gives no integer,
    /// or is not sound.
    pub fn range(&self, typing: &Typing) -> Option<(i128, i128)> {
        check::range(self.scope, typing, &self.params, &self.body)
    }

    /// The expression that a text describes, of sound types if its key has them.
    ///
    /// # Errors
    /// All faults, each at its own token.
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

    /// Where it stands.
    pub fn scope(&self) -> &'static ExprScope {
        self.scope
    }

    /// The values at hand, then the operands.
    pub fn params(&self) -> &[ClosureParam] {
        &self.params
    }

    /// The body.
    pub fn body(&self) -> &Block {
        &self.body
    }

    /// Whether it reads what has this name.
    pub(crate) fn reads(&self, name: &str) -> bool {
        let mut reads = false;
        self.body.visit(&mut |e| reads |= matches!(&e.kind, NodeKind::Name(n) if n == name));
        reads
    }
}

impl Display for Closure {
    fn fmt(&self, f: &mut Formatter<'_>) -> Formatted {
        let params: Vec<String> = self.params.iter().map(ClosureParam::to_string).collect();
        match params.as_slice() {
            [] => self.body.fmt(f),
            params => write!(f, "|{}| {}", params.join(", "), self.body),
        }
    }
}
