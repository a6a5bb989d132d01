//! From the tokens of a call to the tokens it becomes.

use crate::errors::both;
use crate::item;
use crate::list::List;
use crate::rust_type::rust_type;
use gemm_dsl::Plan;
use gemm_dsl::ir::Elem;
use gemm_dsl::parse::{self, ReduceTableTokens, ReduceTokens, SgemmTableTokens, SgemmTokens};
use gemm_dsl::tables::{KernelTable, Rule, TableFamily};
use proc_macro2::{Group, Span, TokenStream};
use quote::{format_ident, quote};
use std::collections::HashSet;
use syn::parse::{ParseStream, Parser};

/// The expression for a reduction.
pub(crate) fn reduce(input: TokenStream) -> TokenStream {
    let (runtime, spec) = match split.parse2(input) {
        Ok(parts) => parts,
        Err(error) => return error.into_compile_error(),
    };
    let ReduceTokens { plan, inputs, results } = parse::reduce(spec);
    let [inputs, results] = [inputs, results].map(|elems| types(&runtime, elems.as_deref()));
    let line = plan.and_then(|plan| checked(&plan));
    expression(&quote!(#runtime::ReduceKernel::<#inputs, #results>), line)
}

/// The expression for a table of reductions.
pub(crate) fn reduce_table(input: TokenStream) -> TokenStream {
    let (runtime, rows) = match split.parse2(input) {
        Ok(parts) => parts,
        Err(error) => return error.into_compile_error(),
    };
    let ReduceTableTokens { table, inputs, results } = parse::reduce_table(rows);
    let [inputs, results] = [inputs, results].map(|elems| types(&runtime, elems.as_deref()));
    let text = checked_rows(table);
    table_of(&runtime, "ReduceSlot", &quote!(#runtime::ReduceTable::<#inputs, #results>), text)
}

/// The expression for a table of products.
pub(crate) fn sgemm_table(input: TokenStream) -> TokenStream {
    let (runtime, rows) = match split.parse2(input) {
        Ok(parts) => parts,
        Err(error) => return error.into_compile_error(),
    };
    let SgemmTableTokens { table, operands } = parse::sgemm_table(rows);
    let list = operands.map(List::new);
    let text = both(checked_rows(table), list.as_ref().map_or(Ok(()), List::check));
    let ty = List::typed("SgemmTable", list.as_ref(), &runtime);
    table_of(&runtime, "SgemmSlot", &ty, text)
}

/// The canonical text of a table whose kernels can be generated.
fn checked_rows<S: TableFamily>(table: syn::Result<KernelTable<S>>) -> syn::Result<String> {
    let table = table?;
    let mut known = HashSet::new();
    let kernels = table.rules().iter().flat_map(Rule::kernels);
    let kernels = kernels.filter(|plan| known.insert(plan.spec().to_string()));
    kernels.map(|plan| checked(plan).map(drop)).fold(Ok(table.to_string()), both)
}

/// A table of this type, with a place for what is read of it; after an error, one of a text that nobody will read.
fn table_of(
    runtime: &TokenStream,
    slot: &str,
    table: &TokenStream,
    text: syn::Result<String>,
) -> TokenStream {
    let slot = format_ident!("{slot}");
    let (text, errors) = match text {
        Ok(text) => (text, None),
        Err(error) => (String::new(), Some(error.into_compile_error())),
    };
    quote!({
        #errors
        fn slot() -> &'static #runtime::__private::#slot {
            static SLOT: #runtime::__private::#slot = #runtime::__private::#slot::new();
            &SLOT
        }
        #table::__from_macro(#text, slot)
    })
}

/// The types of arrays as a list; of unknown ones, one that fits where it stands.
fn types(runtime: &TokenStream, elems: Option<&[Elem]>) -> TokenStream {
    match elems {
        None => quote!(_),
        Some([one]) => rust_type(runtime, *one),
        Some(several) => {
            let several = several.iter().map(|elem| rust_type(runtime, *elem));
            quote!((#(#several),*))
        }
    }
}

/// The expression for a product, or the items of the type that a user names.
pub(crate) fn sgemm(input: TokenStream) -> TokenStream {
    let parts = split.parse2(input).and_then(|(runtime, call)| {
        let (head, spec) = item::head(call)?;
        Ok((runtime, head, spec))
    });
    let (runtime, head, spec) = match parts {
        Ok(parts) => parts,
        Err(error) => return error.into_compile_error(),
    };
    let SgemmTokens { plan, types, operands } = parse::sgemm(spec);
    let list = operands.map(List::new);
    let line = plan.and_then(|plan| checked(&plan));
    match head {
        None => {
            let line = both(line, list.as_ref().map_or(Ok(()), List::check));
            expression(&List::kernel(list.as_ref(), &runtime), line)
        }
        Some(head) => item::items(&runtime, &head, types, &list.unwrap_or_default(), line),
    }
}

/// Splits a call into the path of the runtime crate and what the user wrote.
fn split(input: ParseStream<'_>) -> syn::Result<(TokenStream, TokenStream)> {
    let runtime: Group = input.parse()?;
    Ok((runtime.stream(), input.parse()?))
}

/// The canonical line of a plan whose kernels can be generated.
fn checked(plan: &impl Plan) -> syn::Result<String> {
    let program = plan.program();
    program
        .map_err(|errors| syn::Error::new(Span::call_site(), errors))
        .map(|_| plan.spec().to_string())
}

/// A kernel of this type; after an error, one of a line that nobody will read.
fn expression(kernel: &TokenStream, line: syn::Result<String>) -> TokenStream {
    match line {
        Ok(line) => quote!(#kernel::__from_macro(#line)),
        Err(error) => {
            let errors = error.into_compile_error();
            quote!({ #errors #kernel::__from_macro("") })
        }
    }
}
