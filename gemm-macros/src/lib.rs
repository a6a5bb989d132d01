//! Procedural macros behind `gemm-runtime`.
//!
//! The input of each is `[$crate] spec`: the path of the runtime crate in brackets, then the tokens
//! of the spec or table. The output is an expression that builds the kernel or table value. A kernel
//! contains its CUDA C and all that a launch needs, as constants; a table contains its text. A
//! faulty spec expands to one `compile_error!` per fault, at the span of the fault, and to an
//! expression of the same type.
//!
//! A GEMM spec may follow `struct Name;`. It then expands to that type instead, with the kernel as
//! a constant and a `launch` function.
//!
//! This crate parses the head of a call, delegates the spec to `gemm-dsl` and quotes the result.
//! `gemm-dsl` alone defines the meaning of a spec.

#![deny(missing_docs)]

mod constant;
mod errors;
mod expand;
mod item;
mod list;
mod rust_type;

use proc_macro::TokenStream;

/// Expands the spec of a reduction to an expression of type `ReduceKernel`.
///
/// Users call it through `gemm_runtime::reduce_kernel!`, which documents every key.
#[proc_macro]
pub fn reduce_kernel(input: TokenStream) -> TokenStream {
    expand::reduce(input.into()).into()
}

/// Expands the rules of a reduction table to an expression of type `ReduceTable`.
///
/// Users call it through `gemm_runtime::reduce_table!`.
#[proc_macro]
pub fn reduce_table(input: TokenStream) -> TokenStream {
    expand::reduce_table(input.into()).into()
}

/// Expands the rules of a GEMM table to an expression of type `SgemmTable`.
///
/// Users call it through `gemm_runtime::sgemm_table!`.
#[proc_macro]
pub fn sgemm_table(input: TokenStream) -> TokenStream {
    expand::sgemm_table(input.into()).into()
}

/// Expands the spec of a GEMM to an expression of type `Sgemm`, or, after `struct Name;`, to a type
/// that holds the kernel.
///
/// Users call it through `gemm_runtime::sgemm_kernel!`, which documents every key.
#[proc_macro]
pub fn sgemm_kernel(input: TokenStream) -> TokenStream {
    expand::sgemm(input.into()).into()
}
