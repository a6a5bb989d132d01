//! The text of a constant, read again.

use super::{Artifact, Interface};
use crate::Plan;
use crate::ir::List;
use crate::ir::program::LaunchProgram;
use crate::plan::{ReducePlan, SgemmPlan};
use crate::spec::Pairs;
use proc_macro2::{TokenStream, TokenTree};

fn artifacts() -> [Artifact; 2] {
    let reduce: ReducePlan = "op: argmax, over: rows, type: f16".parse().expect("a line");
    let gemm = "tile: 64x64x32, arith: bf16x6, mma: wgmma, epilogue: |acc, bias[n]| acc + bias";
    let gemm: SgemmPlan = gemm.parse().expect("a line");
    [reduce.artifact().expect("an artifact"), gemm.artifact().expect("an artifact")]
}

/// Number of groups and leaves of tokens, at any depth.
fn count(tokens: TokenStream) -> usize {
    let all = tokens.into_iter().map(|token| match token {
        TokenTree::Group(group) => 1 + count(group.stream()),
        _ => 1,
    });
    all.sum()
}

/// A source is one literal with the lines of the text, so that it can be read.
#[test]
fn sources_are_in_the_text_as_they_are() {
    for artifact in artifacts() {
        let text = artifact.constant("items");
        let tokens: TokenStream = text.parse().expect("tokens");
        assert!(count(tokens) > 100, "{text}");
        assert_eq!(artifact.sources.len(), artifact.program.contracts.len());
        for source in &artifact.sources {
            assert!(text.contains(&format!("\"{source}\"#")), "{source}");
        }
    }
}

/// A text that ends a raw literal is in one with more signs.
#[test]
fn a_literal_ends_where_its_text_does() {
    for source in ["a\n\"#b", "a\n\"##b\"#", "\"", "plain", "\\", "a\r\nb", ""] {
        let artifact = Artifact {
            line: source.to_owned().into(),
            interface: Interface::Gemm { operands: List::EMPTY, batch: None, pairs: Pairs::None },
            program: LaunchProgram::EMPTY,
            sources: List::EMPTY,
        };
        let text = artifact.constant("items");
        let (_, rest) = text.split_once("items::Cow::Borrowed(").expect("the line");
        let (literal, _) = rest.split_once("), interface").expect("the interface");
        let literal: syn::LitStr = syn::parse_str(literal).expect("a literal");
        assert_eq!(literal.value(), source);
    }
}
