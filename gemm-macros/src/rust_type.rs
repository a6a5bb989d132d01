//! Element types of the IR as Rust types.

use gemm_dsl::ir::Elem;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// Path of the Rust type of an element.
pub(crate) fn rust_type(runtime: &TokenStream, elem: Elem) -> TokenStream {
    let name = format_ident!("{elem}");
    match elem {
        Elem::F16 | Elem::Bf16 => quote!(#runtime::half::#name),
        _ => quote!(::core::primitive::#name),
    }
}
