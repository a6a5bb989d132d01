//! Tests of the glossary: order, ids, and entries for all CUDA words of the stages.

use super::*;
use gemm_dsl::Plan as _;
use gemm_dsl::{cuda, stages};
use std::collections::BTreeSet;

#[test]
fn terms_are_in_order_and_have_places_of_their_own() {
    let names = TERMS.map(|term| term.name.to_lowercase());
    let out_of_order = names.windows(2).find(|pair| pair[0] >= pair[1]);
    assert_eq!(out_of_order, None);
    let ids: BTreeSet<&str> = TERMS.iter().map(|term| term.id).collect();
    assert_eq!(ids.len(), TERMS.len());
    for term in &TERMS {
        assert!(term.says.ends_with('.'), "{}", term.name);
    }
}

/// Sources of all kernels of all stages.
fn texts() -> Vec<String> {
    let of_products =
        stages::sgemm().into_iter().map(|stage| stage.spec.plan().and_then(|plan| plan.program()));
    let of_reductions =
        stages::reduce().into_iter().map(|stage| stage.spec.plan().and_then(|plan| plan.program()));
    let programs = of_products.chain(of_reductions).map(|program| program.expect("a stage"));
    programs
        .flat_map(|program| {
            program.kernels().iter().map(|kernel| cuda::listing(kernel).text).collect::<Vec<_>>()
        })
        .collect()
}

/// Returns the CUDA words of a source: names with leading underscores, coordinates such as
/// `threadIdx`, directives, vector types, and the opcode of each quoted PTX instruction.
fn words_of_cuda(text: &str) -> BTreeSet<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let words = text.split(|c| !is_word(c)).filter(|word| {
        let own =
            ["threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", "asm", "CUtensorMap"];
        let is_vector = ["float", "int", "uint"]
            .iter()
            .any(|of| word.strip_prefix(of).is_some_and(|n| ["2", "4"].contains(&n)));
        word.starts_with("__") || own.contains(word) || is_vector
    });
    let directives = text.lines().filter_map(|line| line.trim_start().strip_prefix("#pragma "));
    let directives =
        directives.map(|of| format!("pragma {}", of.split(' ').next().unwrap_or_default()));
    let quoted = text.split('"').skip(1).step_by(2).flat_map(|text| text.split([';', '{', '}']));
    let opcode = |text: &str| {
        let mut words = text.split_whitespace().skip_while(|word| word.starts_with('@'));
        Some(words.next()?.to_owned())
            .filter(|word| word.contains('.') && !word.starts_with(['.', '%', '[']))
    };
    words.map(str::to_owned).chain(directives).chain(quoted.filter_map(opcode)).collect()
}

/// A PTX instruction needs an entry for its opcode, or for a part of the opcode that ends before a
/// dot.
#[test]
fn each_word_of_cuda_has_an_entry() {
    let words: BTreeSet<String> = texts().iter().flat_map(|text| words_of_cuda(text)).collect();
    for known in
        ["__global__", "threadIdx", "blockIdx", "pragma unroll", "float4", "cp.async.commit_group"]
    {
        assert!(words.contains(known), "{known} in {words:?}");
    }
    let is_known = |word: &&String| {
        let behind = |known: &&str| {
            word.strip_prefix(*known).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        TERMS.iter().any(|term| term.code.iter().any(behind))
    };
    let unknown: Vec<_> = words.iter().filter(|word| !is_known(word)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
