//! From the tokens of a call to the tokens it becomes.

use gemm_dsl::Family;
use proc_macro2::{Group, Ident, Span, TokenStream};
use quote::quote;
use syn::parse::{ParseStream, Parser};

/// The expression for a kernel of the runtime's type `kernel`.
pub(crate) fn kernel<S: Family>(
    kernel: &str,
    parse: fn(TokenStream) -> syn::Result<S>,
    input: TokenStream,
) -> TokenStream {
    let (runtime, spec) = match split.parse2(input) {
        Ok(parts) => parts,
        Err(error) => return error.into_compile_error(),
    };
    let kernel = Ident::new(kernel, Span::call_site());
    let build = |line: &str| quote!(#runtime::#kernel::__from_macro(#line));
    match parse(spec).and_then(|spec| checked(&spec)) {
        Ok(line) => build(&line),
        Err(error) => {
            let errors = error.into_compile_error();
            let instead = build("");
            quote!({ #errors #instead })
        }
    }
}

/// Splits a call into the path of the runtime crate and the spec.
fn split(input: ParseStream<'_>) -> syn::Result<(TokenStream, TokenStream)> {
    let runtime: Group = input.parse()?;
    Ok((runtime.stream(), input.parse()?))
}

/// The canonical line of a spec whose kernels can be generated.
fn checked(spec: &impl Family) -> syn::Result<String> {
    let program = spec.program();
    program.map_err(|errors| syn::Error::new(Span::call_site(), errors)).map(|_| spec.to_string())
}
