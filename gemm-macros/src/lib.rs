//! Procedural macros behind `gemm-runtime`.
//!
//! The input of each macro is `[$crate] spec`: the path of the runtime crate in brackets, followed
//! by the tokens of a spec, table or epilogue. The output is an expression for the kernel, table or
//! epilogue. A kernel is a constant with its CUDA C and all other data of a launch; tables and
//! epilogues contain their text. If the
//! spec is faulty, the output is one `compile_error!` per fault, at the place of the fault, and an
//! expression of the same type.
//!
//! `struct Name;` may precede a GEMM spec. The macro then expands to a type of this name, with the
//! kernel as a constant and a `launch` function.
//!
//! This crate parses the start of a call, passes the spec to `gemm-dsl`, and quotes the result.
//! Only `gemm-dsl` defines the meaning of a spec.

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

/// Expands the spec of an elementwise kernel to an expression of type `Map`.
///
/// Users call it through `gemm_runtime::map_kernel!`, which documents every key.
#[proc_macro]
pub fn map_kernel(input: TokenStream) -> TokenStream {
    expand::map("map_kernel", input.into()).into()
}

/// Expands the spec of a kernel that folds over rows to an expression of type `Map`.
///
/// Users call it through `gemm_runtime::row_kernel!`.
#[proc_macro]
pub fn row_kernel(input: TokenStream) -> TokenStream {
    expand::map("row_kernel", input.into()).into()
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
    expand::sgemm_table("sgemm_table", input.into()).into()
}

/// Expands the rules of a GEMM table to an expression of type `GemmTable`.
///
/// Users call it through `gemm_runtime::gemm_table!`.
#[proc_macro]
pub fn gemm_table(input: TokenStream) -> TokenStream {
    expand::sgemm_table("gemm_table", input.into()).into()
}

/// Expands an epilogue to an expression of type `Epilogue`.
///
/// Users call it through `gemm_runtime::epilogue!`.
#[proc_macro]
pub fn epilogue(input: TokenStream) -> TokenStream {
    expand::epilogue(input.into()).into()
}

/// Expands the spec of a GEMM to an expression of type `Sgemm`. After `struct Name;` it expands to
/// a type with the kernel as a constant.
///
/// Users call it through `gemm_runtime::sgemm_kernel!`, which documents every key.
#[proc_macro]
pub fn sgemm_kernel(input: TokenStream) -> TokenStream {
    expand::sgemm("sgemm_kernel", input.into()).into()
}

/// Expands the spec of a GEMM to an expression of type `Gemm`.
///
/// Users call it through `gemm_runtime::gemm_kernel!`.
#[proc_macro]
pub fn gemm_kernel(input: TokenStream) -> TokenStream {
    expand::sgemm("gemm_kernel", input.into()).into()
}

/// Builds a `Scan` from a spec.
///
/// Users call it through `gemm_runtime::scan_kernel!`, which documents every key.
#[proc_macro]
pub fn scan_kernel(input: TokenStream) -> TokenStream {
    expand::scan(input.into()).into()
}
