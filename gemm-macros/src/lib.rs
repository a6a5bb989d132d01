//! The procedural macros behind `gemm-runtime`.
//!
//! Each takes `[$crate] spec`, the path of the runtime crate in brackets and then the tokens of the
//! spec, and expands to an expression that builds the kernel value. A faulty spec expands to one
//! `compile_error!` for each fault, at its own tokens, and an expression of the same type.
//!
//! The crate reads, delegates and quotes; what a spec means is the business of `gemm-dsl`.

mod expand;

use proc_macro::TokenStream;

/// A `ReduceKernel`.
#[proc_macro]
pub fn reduce_kernel(input: TokenStream) -> TokenStream {
    expand::kernel("ReduceKernel", gemm_dsl::parse::reduce, input.into()).into()
}

/// An `SgemmKernel`.
#[proc_macro]
pub fn sgemm_kernel(input: TokenStream) -> TokenStream {
    expand::kernel("SgemmKernel", gemm_dsl::parse::sgemm, input.into()).into()
}
