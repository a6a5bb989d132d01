//! Error messages of the general GEMM checks.

use crate::error::SpecError;
use crate::expr::ClosureParam;

pub(crate) fn above(key: &'static str, number: u32, most: u32, why: &str) -> SpecError {
    SpecError::at_value(&[key], format!("`{key}: {number}`: {why}; use {most} or less"))
}

pub(crate) fn name_of_matrix(param: &ClosureParam) -> SpecError {
    let name = &param.name;
    let message =
        format!("`{name}` is a matrix of the GEMM; use another name, such as `{name}_value`");
    SpecError::at_tokens("epilogue", param.at, message)
}

pub(crate) fn name_of_output(param: &ClosureParam) -> SpecError {
    let name = &param.name;
    let message = format!(
        "`{name}` is the matrix for a further value of the tuple; use another name, such as \
         `{name}_value`"
    );
    SpecError::at_tokens("epilogue", param.at, message)
}

pub(crate) fn name_of_factor(param: &ClosureParam) -> SpecError {
    let name = &param.name;
    SpecError::at_tokens(
        "epilogue",
        param.at,
        format!(
            "`{name}` is a factor of a `scaled` GEMM, which scales the accumulator itself; use \
             another name, or leave `scaled` out. A call of `sgemm` that sets `alpha` or `beta` is \
             `scaled`"
        ),
    )
}

pub(crate) fn operand_of_batch(param: &ClosureParam) -> SpecError {
    let alone: Vec<&str> =
        param.index.iter().map(String::as_str).filter(|axis| *axis != "batch").collect();
    let alone = match alone.as_slice() {
        [] => param.name.clone(),
        axes => format!("{}[{}]", param.name, axes.join(", ")),
    };
    SpecError::at_tokens(
        "epilogue",
        param.at,
        format!(
            "`{param}` has elements of its own for each GEMM of a batch, and this kernel computes \
             a single GEMM; add `batch: strided`, or write `{alone}`. A call of `sgemm` is a batch \
             if its C is one"
        ),
    )
}

pub(crate) fn shared_twice() -> SpecError {
    SpecError::at_key(
        &["split_k", "stream_k"],
        "`split_k` has no effect: under `stream_k` blocks share the K steps of all tiles evenly; \
         leave one of the two out"
            .into(),
    )
}

pub(crate) fn products_of_one() -> SpecError {
    SpecError::at_key(
        &["products", "batch"],
        "`products` has no effect: it sets the number of GEMMs of a batch that a block computes; \
         add `batch: strided`, or leave `products` out"
            .into(),
    )
}

pub(crate) fn two_pipelines(key: &'static str, other: &'static str) -> SpecError {
    SpecError::at_key(
        &[key, other],
        format!(
            "`{key}` and `{other}` are two pipelines, and a kernel has one; leave one of them out"
        ),
    )
}

pub(crate) fn partials_of_unroll(partials: u32, unroll: u32) -> SpecError {
    SpecError::at_value(
        &["unroll", "partials"],
        format!(
            "`unroll: {unroll}` is not a multiple of `partials: {partials}`, and an iteration of \
             the unrolled loop adds to each partial sum equally often: {unroll} mod {partials} = \
             {}; use a multiple of {partials}",
            unroll % partials.max(1),
        ),
    )
}
