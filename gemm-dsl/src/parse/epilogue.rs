//! Parsing of an epilogue without a spec, as the key `epilogue` parses its value.

use super::calls::{all_located, placed};
use super::{Fault, excerpted, messages};
use crate::error::SpecErrors;
use crate::expr::{Closure, EPILOGUE};
use crate::spec::{Epilogue, EpilogueArg, KeyKind, SgemmSpec};
use crate::syntax::{Token, Tokens, lex, macro_tokens};
use proc_macro2::{Span as Place, TokenStream};
use std::str::FromStr;

/// Result of reading an `epilogue!` call.
#[derive(Debug)]
pub struct EpilogueTokens {
    /// The epilogue, or all faults, each at its own tokens.
    pub epilogue: syn::Result<Epilogue>,
    /// The [operands](Epilogue::operands), each with the place of its name. Also known if only the
    /// body of the expression is faulty.
    pub operands: Option<Vec<(EpilogueArg, Place)>>,
}

/// Reads the tokens of an `epilogue!` call.
pub fn epilogue(stream: TokenStream) -> EpilogueTokens {
    let (tokens, places) = match macro_tokens(stream) {
        Ok(read) => read,
        Err(fault) => {
            let epilogue = Err(syn::Error::new(fault.place, fault.error));
            return EpilogueTokens { epilogue, operands: None };
        }
    };
    let read = read(&tokens);
    let head = || Closure::head(&EPILOGUE, &tokens).map(Epilogue::new);
    let known = read.as_ref().ok().cloned().or_else(head);
    let operands = known.map(|epilogue| {
        let spec = SgemmSpec::default().epilogue(epilogue);
        placed(&spec, Some(0), &places)
    });
    EpilogueTokens { epilogue: read.map_err(|faults| all_located(faults, &places)), operands }
}

/// Parses an epilogue, with the same messages as the key of a spec.
impl FromStr for Epilogue {
    type Err = SpecErrors;
    fn from_str(text: &str) -> Result<Self, SpecErrors> {
        let (tokens, places) = lex(text).map_err(|fault| fault.in_text(text))?;
        read(&tokens).map_err(|faults| {
            SpecErrors::new(faults.into_iter().map(|fault| excerpted(fault, text, &places)))
        })
    }
}

/// Parses the tokens of an epilogue, and checks the names of its operands.
fn read(tokens: &[Token]) -> Result<Epilogue, Vec<Fault>> {
    if tokens.is_empty() {
        let fault = messages::missing_value("epilogue", KeyKind::Closure(&EPILOGUE));
        return Err(vec![(fault, None)]);
    }
    let whole = Tokens::all(tokens).span();
    let at_tokens = |fault: crate::error::SpecError| {
        let span = fault.tokens().map(|at| at.first..at.last + 1);
        (fault, Some(span.unwrap_or_else(|| whole.clone())))
    };
    let closure = Closure::read(&EPILOGUE, tokens);
    let closure =
        closure.map_err(|faults| faults.into_iter().map(at_tokens).collect::<Vec<_>>())?;
    let epilogue = Epilogue::new(closure);
    // The smallest kernel checks the names of the operands, and that they fit its registers.
    match epilogue.clone().smallest_kernel().plan() {
        Ok(_) => Ok(epilogue),
        Err(faults) => Err(faults.iter().cloned().map(at_tokens).collect()),
    }
}
