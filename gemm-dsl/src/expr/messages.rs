//! What can be wrong with an expression.

mod grammar;
mod names;
mod numbers;
mod types;

pub(crate) use grammar::*;
pub(crate) use names::*;
pub(crate) use numbers::*;
pub(crate) use types::*;

use crate::error::SpecError;
use crate::expr::Tokens;

pub(crate) fn fault(key: &'static str, at: Tokens, message: String) -> SpecError {
    SpecError::at_tokens(key, (at.first, at.last), message)
}
