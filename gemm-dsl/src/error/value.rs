//! What can be wrong with an expression.

mod grammar;
mod names;
mod numbers;
mod types;

pub(crate) use grammar::*;
pub(crate) use names::*;
pub(crate) use numbers::*;
pub(crate) use types::*;

use super::SpecError;
use crate::expr::Tokens;

pub(super) fn fault(key: &'static str, at: Tokens, message: String) -> SpecError {
    SpecError::at_tokens(key, (at.first, at.last), message)
}
