//! Specs from the tokens of macro calls.

use super::token::Span;
use super::{Fault, Outcome, checked, stream};
use crate::plan::Checked;
use crate::spec::{ReduceSpec, SgemmOperand, SgemmSpec};
use proc_macro2::{Ident, Span as Place, TokenStream, TokenTree};

/// The spec that the tokens of a macro call describe, checked as by [`ReduceSpec::plan`].
///
/// # Errors
/// All faults, each at its own tokens.
pub fn reduce(tokens: TokenStream) -> syn::Result<ReduceSpec> {
    read(tokens, |_, _| ()).0
}

/// What the tokens of a macro call describe.
#[derive(Debug)]
pub struct SgemmTokens {
    /// The spec, checked as by [`SgemmSpec::plan`]; else all faults, each at its own tokens.
    pub spec: syn::Result<SgemmSpec>,
    /// The [operands](SgemmSpec::operands), each with the place of its name; also those of a faulty spec, unless
    /// the fault hides them.
    pub operands: Option<Vec<(SgemmOperand, Place)>>,
}

/// Reads the tokens of a macro call.
pub fn sgemm(tokens: TokenStream) -> SgemmTokens {
    let (spec, operands) = read(tokens, operands);
    SgemmTokens { spec, operands: operands.flatten() }
}

/// The operands, if the keys that they follow from could be read.
fn operands(
    outcome: &Outcome<'_, SgemmSpec>,
    places: &[Place],
) -> Option<Vec<(SgemmOperand, Place)>> {
    const FROM: [&str; 2] = ["scaled", "epilogue"];
    if outcome.unread.iter().any(|key| FROM.contains(key)) {
        return None;
    }
    let value = outcome.given.get("epilogue").map_or(0, |entry| entry.value_span().start);
    // Factors have no place of their own.
    let place = |operand: &SgemmOperand| {
        let mut named = outcome.spec.epilogue.iter().flat_map(|epilogue| epilogue.named());
        let (param, _) = named.find(|(param, _)| param.name == operand.name)?;
        places.get(value + param.at.first).copied()
    };
    let operands = outcome.spec.operands().into_iter();
    let placed = operands.map(|operand| {
        let place = place(&operand).unwrap_or_else(Place::call_site);
        (operand, place)
    });
    Some(placed.collect())
}

/// The spec, and what else there is to tell of what was read, if there are tokens at all.
fn read<S: Checked, R>(
    stream: TokenStream,
    tell: impl FnOnce(&Outcome<'_, S>, &[Place]) -> R,
) -> (syn::Result<S>, Option<R>) {
    let (tokens, places) = match stream::tokens(stream) {
        Ok(read) => read,
        Err(fault) => return (Err(syn::Error::new(fault.1, fault.0)), None),
    };
    let outcome = checked::<S>(&tokens);
    let told = tell(&outcome, &places);
    let faults = outcome.faults.into_iter().map(|fault| located(fault, &places));
    let spec = match faults.reduce(|mut all, next| {
        all.combine(next);
        all
    }) {
        None => Ok(outcome.spec),
        Some(all) => Err(all),
    };
    (spec, Some(told))
}

fn located((fault, span): Fault, places: &[Place]) -> syn::Error {
    match span {
        None => syn::Error::new(Place::call_site(), fault),
        // Such an error reaches from the first token that it is given to the last.
        Some(Span { start, end }) => {
            let ends = [start, end - 1].map(|end| Ident::new("_", places[end]));
            syn::Error::new_spanned(TokenStream::from_iter(ends.map(TokenTree::from)), fault)
        }
    }
}
