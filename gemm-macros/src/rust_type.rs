//! Rust types for the element types of the IR.

use gemm_dsl::ir::Elem;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// Path of the Rust type of an element.
pub(crate) fn rust_type(runtime: &TokenStream, elem: Elem) -> TokenStream {
    let name = format_ident!("{elem}");
    match elem {
        Elem::F16 | Elem::Bf16 => quote!(#runtime::half::#name),
        Elem::E4m3 | Elem::E5m2 => quote!(#runtime::fp8::#name),
        Elem::Tf32 => unreachable!("GemmTypes, DataType: no argument has this type"),
        Elem::F64 | Elem::F32 => quote!(::core::primitive::#name),
        Elem::I64 | Elem::U64 | Elem::I32 | Elem::U32 => quote!(::core::primitive::#name),
        Elem::I16 | Elem::U16 | Elem::I8 | Elem::U8 => quote!(::core::primitive::#name),
    }
}
