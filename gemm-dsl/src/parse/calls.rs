//! Specs from the tokens of macro calls.

use super::table::{self, ReadTable};
use super::token::Span;
use super::{Fault, Outcome, checked, stream};
use crate::ir::Elem;
use crate::kernel_table::KernelTable;
use crate::plan::Checked;
use crate::spec::{ReduceSpec, SgemmOperand, SgemmSpec};
use proc_macro2::{Ident, Span as Place, TokenStream, TokenTree};

/// What the tokens of a macro call describe.
#[derive(Debug)]
pub struct ReduceTokens {
    /// The spec, checked as by [`ReduceSpec::plan`]; else all faults, each at its own tokens.
    pub spec: syn::Result<ReduceSpec>,
    /// What the elements of each input are; also those of a faulty spec, unless the fault hides them.
    pub inputs: Option<Vec<Elem>>,
    /// The same of the results.
    pub results: Option<Vec<Elem>>,
}

/// Reads the tokens of a macro call.
pub fn reduce(tokens: TokenStream) -> ReduceTokens {
    let (spec, types) = read(tokens, |outcome, _| [inputs(outcome), results(outcome)]);
    let [inputs, results] = types.unwrap_or_default();
    ReduceTokens { spec, inputs, results }
}

/// What the tokens of a macro call describe that has a table.
#[derive(Debug)]
pub struct ReduceTableTokens {
    /// The table, checked; else all faults, each at its own tokens.
    pub table: syn::Result<KernelTable<ReduceSpec>>,
    /// What the elements of each input are, if its first row tells.
    pub inputs: Option<Vec<Elem>>,
    /// The same of the results.
    pub results: Option<Vec<Elem>>,
}

/// Reads the tokens of a macro call that has a table.
pub fn reduce_table(stream: TokenStream) -> ReduceTableTokens {
    let unknown = |fault| ReduceTableTokens { table: Err(fault), inputs: None, results: None };
    let (tokens, places) = match stream::tokens(stream) {
        Ok(read) => read,
        Err(fault) => return unknown(syn::Error::new(fault.1, fault.0)),
    };
    let ReadTable { rows, faults } = table::read::<ReduceSpec>(&tokens);
    let first = rows.first().map(|(row, _)| &row.spec);
    let inputs = first.map(|spec| vec![spec.element.elem(); spec.inputs().len()]);
    let results = first.map(|spec| spec.results().into_iter().map(|(_, elem)| elem).collect());
    let faults = faults.into_iter().map(|fault| located(fault, &places));
    let faults = faults.reduce(|mut all, next| {
        all.combine(next);
        all
    });
    let table = match faults {
        None => Ok(KernelTable::of(rows.into_iter().map(|(row, _)| row).collect())),
        Some(all) => Err(all),
    };
    ReduceTableTokens { table, inputs, results }
}

/// What the elements of each input are, if the keys that they follow from could be read.
fn inputs(outcome: &Outcome<'_, ReduceSpec>) -> Option<Vec<Elem>> {
    let spec = &outcome.spec;
    let known = all_read(outcome, &["type", "map"]);
    known.then(|| vec![spec.element.elem(); spec.inputs().len()])
}

/// The same of the results.
fn results(outcome: &Outcome<'_, ReduceSpec>) -> Option<Vec<Elem>> {
    let known = all_read(outcome, &["op", "fold", "finish", "type", "acc", "result", "index"]);
    known.then(|| outcome.spec.results().into_iter().map(|(_, elem)| elem).collect())
}

/// Whether none of the keys has a value that could not be read.
fn all_read<S>(outcome: &Outcome<'_, S>, keys: &[&str]) -> bool {
    !outcome.unread.iter().any(|key| keys.contains(key))
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
    if !all_read(outcome, &["scaled", "epilogue"]) {
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
