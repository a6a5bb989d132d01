//! Kernels as constants: the artifact of a spec in the user's crate.

use gemm_dsl::artifact::Artifact;
use proc_macro2::{Span, TokenStream};
use quote::quote;

/// Constant expression of a kernel type that contains an artifact.
pub(crate) fn kernel(
    runtime: &TokenStream,
    kernel: &TokenStream,
    artifact: &Artifact,
) -> TokenStream {
    let artifact: TokenStream = match artifact.constant("items").parse() {
        Ok(tokens) => tokens,
        Err(error) => syn::Error::new(Span::call_site(), error).into_compile_error(),
    };
    quote!({
        use #runtime::__private::items;
        static ARTIFACT: items::Artifact = #artifact;
        fn slot() -> &'static #runtime::__private::KernelSlot {
            static SLOT: #runtime::__private::KernelSlot = #runtime::__private::KernelSlot::new();
            &SLOT
        }
        #kernel::__from_macro(&ARTIFACT, slot)
    })
}
