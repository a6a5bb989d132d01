//! The procedural macros behind `gemm-runtime`.
//!
//! Each takes `[$crate] spec`, the path of the runtime crate in brackets and then the tokens of the
//! spec, and expands to an expression that builds the kernel value. A faulty spec expands to one
//! `compile_error!` for each fault, at its own tokens, and an expression of the same type. Before the spec of a
//! product may stand `struct Name;`: then it expands to that type instead, whose items are the kernel and
//! its launch.
//!
//! The crate reads, delegates and quotes; what a spec means is the business of `gemm-dsl`.

#![deny(missing_docs)]

mod errors;
mod expand;
mod item;
mod list;
mod rust_type;

use proc_macro::TokenStream;

/// A `ReduceKernel`.
#[proc_macro]
pub fn reduce_kernel(input: TokenStream) -> TokenStream {
    expand::reduce(input.into()).into()
}

/// A `ReduceTable`.
#[proc_macro]
pub fn reduce_table(input: TokenStream) -> TokenStream {
    expand::reduce_table(input.into()).into()
}

/// An `SgemmTable`.
#[proc_macro]
pub fn sgemm_table(input: TokenStream) -> TokenStream {
    expand::sgemm_table(input.into()).into()
}

/// An `Sgemm`, or a type of the user's that has one.
#[proc_macro]
pub fn sgemm_kernel(input: TokenStream) -> TokenStream {
    expand::sgemm(input.into()).into()
}
