//! Expansion: from the tokens of a macro call to the tokens that replace it.

use crate::constant;
use crate::errors::both;
use crate::item;
use crate::list::List;
use crate::rust_type::rust_type;
use gemm_dsl::artifact::Artifact;
use gemm_dsl::ir::Elem;
use gemm_dsl::parse::{
    self, EpilogueTokens, MapTokens, ReduceTableTokens, ReduceTokens, ScanTokens, SgemmTableTokens,
    SgemmTokens,
};
use gemm_dsl::spec::{Along, EpilogueArg, GemmTypes, MapSpec, SgemmSpec};
use gemm_dsl::tables::{KernelTable, Rule, TableFamily};
use gemm_dsl::{Plan, SpecErrors};
use proc_macro2::{Group, Span, TokenStream};
use quote::{format_ident, quote};
use std::collections::HashSet;
use syn::parse::{ParseStream, Parser};

/// Expands `reduce_kernel!` to an expression.
pub(crate) fn reduce(input: TokenStream) -> TokenStream {
    let (runtime, spec) = match undeclared("reduce_kernel", "ReduceKernel", input) {
        Ok(parts) => parts,
        Err(error) => return error.into_compile_error(),
    };
    let ReduceTokens { plan, inputs, numbers, results } = parse::reduce(spec);
    let inputs = types(&runtime, inputs.as_deref(), &numbers);
    let results = types(&runtime, results.as_deref(), &[]);
    let artifact = plan.and_then(|plan| checked(plan.artifact()));
    expression(&runtime, &quote!(#runtime::ReduceKernel::<#inputs, #results>), artifact)
}

/// Expands `scan_kernel!` to an expression.
pub(crate) fn scan(input: TokenStream) -> TokenStream {
    let (runtime, spec) = match undeclared("scan_kernel", "Scan", input) {
        Ok(parts) => parts,
        Err(error) => return error.into_compile_error(),
    };
    let ScanTokens { plan, types: [element, result] } = parse::scan(spec);
    let [element, result] =
        [element, result].map(|elem| types(&runtime, elem.as_ref().map(std::slice::from_ref), &[]));
    let artifact = plan.and_then(|plan| checked(plan.artifact()));
    expression(&runtime, &quote!(#runtime::Scan::<#element, #result>), artifact)
}

/// Expands `map_kernel!` or `row_kernel!` to an expression.
pub(crate) fn map(name: &str, input: TokenStream) -> TokenStream {
    let (runtime, spec) = match undeclared(name, "Map<…>", input) {
        Ok(parts) => parts,
        Err(error) => return error.into_compile_error(),
    };
    let MapTokens { plan, operands, results } = parse::map(spec, name == MapSpec::ROWS);
    let most = EpilogueArg::MOST_LISTED;
    let listed = match operands.as_deref().and_then(|operands| operands.get(most)) {
        None => Ok(()),
        Some((operand, place)) => {
            let message = format!(
                "`{}` is operand {} of {}, and a type lists at most {most}; use the spec as a \
                 `Kernel<MapSpec, ByName>`, or put several into one matrix",
                operand.arg,
                most + 1,
                operands.iter().flatten().count(),
            );
            Err(syn::Error::new(*place, message))
        }
    };
    let artifact = both(plan.and_then(|plan| checked(plan.artifact())), listed);
    let kind = |along: Along, elem| {
        let element = rust_type(&runtime, elem);
        match along {
            Along::Nothing => element,
            along => {
                let kind = format_ident!("{}", along.kind());
                quote!(#runtime::#kind<#element>)
            }
        }
    };
    let operands = match operands.filter(|operands| operands.len() <= most) {
        None => quote!(_),
        Some(operands) => {
            let kinds = operands.iter().map(|(operand, _)| kind(operand.arg.along, operand.elem));
            quote!((#(#kinds,)*))
        }
    };
    let results = match results.as_deref() {
        None => quote!(_),
        Some([one]) => kind(one.along, one.elem),
        Some(several) => {
            let several = several.iter().map(|result| kind(result.along, result.elem));
            quote!((#(#several,)*))
        }
    };
    expression(&runtime, &quote!(#runtime::Map::<#operands, #results>), artifact)
}

/// Expands `reduce_table!` to an expression.
pub(crate) fn reduce_table(input: TokenStream) -> TokenStream {
    let (runtime, rules) = match undeclared("reduce_table", "ReduceTable", input) {
        Ok(parts) => parts,
        Err(error) => return error.into_compile_error(),
    };
    let ReduceTableTokens { table, inputs, numbers, results } = parse::reduce_table(rules);
    let inputs = types(&runtime, inputs.as_deref(), &numbers);
    let results = types(&runtime, results.as_deref(), &[]);
    let text = checked_rules(table);
    parsed_once(&runtime, "ReduceSlot", &quote!(#runtime::ReduceTable::<#inputs, #results>), text)
}

/// Expands `sgemm_table!` or `gemm_table!` to an expression.
pub(crate) fn sgemm_table(name: &str, input: TokenStream) -> TokenStream {
    let has_types = name == "gemm_table";
    let value = if has_types { "GemmTable<A, B, C>" } else { "SgemmTable" };
    let (runtime, rules) = match undeclared(name, value, input) {
        Ok(parts) => parts,
        Err(error) => return error.into_compile_error(),
    };
    let SgemmTableTokens { table, types, operands } = parse::sgemm_table(rules, has_types);
    let list = operands.map(List::new);
    // The types of a faulty table may be other than the user meant.
    let ty = match (table.is_err(), has_types) {
        (true, true) => List::table_by_use(list.as_ref(), &runtime),
        (true, false) => List::table(list.as_ref(), GemmTypes::F32, &runtime),
        (false, _) => List::table(list.as_ref(), types, &runtime),
    };
    let text = both(checked_rules(table), check(list.as_ref(), BY_NAME));
    parsed_once(&runtime, "SgemmSlot", &ty, text)
}

/// Expands `epilogue!` to an expression.
pub(crate) fn epilogue(input: TokenStream) -> TokenStream {
    let (runtime, tokens) = match split.parse2(input) {
        Ok(parts) => parts,
        Err(error) => return error.into_compile_error(),
    };
    let EpilogueTokens { epilogue, operands } = parse::epilogue(tokens);
    let list = operands.map(List::new);
    let text = epilogue.map(|epilogue| epilogue.to_string());
    let text = both(text, check(list.as_ref(), "parse the text as an `Epilogue<ByName>`"));
    let ty = List::typed("Epilogue", list.as_ref(), &runtime);
    parsed_once(&runtime, "EpilogueSlot", &ty, text)
}

/// Remedy for a spec with more operands than a kernel's type can list.
const BY_NAME: &str = "use the spec as a `Sgemm<ByName>`";

/// Checks the number of operands, if they are known.
fn check(list: Option<&List>, remedy: &str) -> syn::Result<()> {
    list.map_or(Ok(()), |list| list.check(remedy))
}

/// Returns the canonical text of a table after checking that each of its kernels can be generated.
fn checked_rules<S: TableFamily>(table: syn::Result<KernelTable<S>>) -> syn::Result<String> {
    let table = table?;
    let mut known = HashSet::new();
    let kernels = table.rules().iter().flat_map(Rule::kernels);
    let kernels = kernels.filter(|plan| known.insert(plan.spec().to_string()));
    kernels.map(|plan| checked(plan.program()).map(drop)).fold(Ok(table.to_string()), both)
}

/// Returns the expression for a value of type `of`, which contains a text, with a static slot for
/// the parsed text. After an error, the text is empty and is never parsed.
fn parsed_once(
    runtime: &TokenStream,
    slot: &str,
    of: &TokenStream,
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
        #of::__from_macro(#text, slot)
    })
}

/// Returns the Rust types of the arrays and of the numbers after them: one type, or a tuple. If the
/// arrays are unknown, returns `_`, which type inference resolves.
fn types(runtime: &TokenStream, elems: Option<&[Elem]>, numbers: &[Elem]) -> TokenStream {
    match (elems, numbers) {
        (None, _) => quote!(_),
        (Some([one]), []) => rust_type(runtime, *one),
        (Some(several), numbers) => {
            let several = several.iter().map(|elem| rust_type(runtime, *elem));
            let numbers = numbers.iter().map(|elem| {
                let number = rust_type(runtime, *elem);
                quote!(#runtime::Number<#number>)
            });
            let all = several.chain(numbers);
            quote!((#(#all),*))
        }
    }
}

/// Expands `sgemm_kernel!` or `gemm_kernel!` to an expression, or to the items of the type that the
/// user names.
pub(crate) fn sgemm(name: &str, input: TokenStream) -> TokenStream {
    let parts = split.parse2(input).and_then(|(runtime, call)| {
        let (head, spec) = item::head(call)?;
        Ok((runtime, head, spec))
    });
    let (runtime, head, spec) = match parts {
        Ok(parts) => parts,
        Err(error) => return error.into_compile_error(),
    };
    let has_types = name == SgemmSpec::TYPED;
    let SgemmTokens { plan, types, operands } = parse::sgemm(spec, has_types);
    let list = operands.map(List::new);
    let is_faulty = plan.is_err();
    let artifact = plan.and_then(|plan| checked(plan.artifact()));
    match head {
        None => {
            let artifact = both(artifact, check(list.as_ref(), BY_NAME));
            // The types of a faulty spec may be other than the user meant.
            let kernel = match is_faulty && has_types {
                true => List::typed_by_use(list.as_ref(), &runtime),
                false if is_faulty => List::kernel(list.as_ref(), GemmTypes::F32, &runtime),
                false => List::kernel(list.as_ref(), types, &runtime),
            };
            expression(&runtime, &kernel, artifact)
        }
        Some(head) => {
            let list = list.unwrap_or_default();
            let artifact = both(artifact, list.check(BY_NAME));
            item::items(&runtime, &head, types, &list, artifact)
        }
    }
}

/// Splits the macro input into the path of the runtime crate and the user's tokens.
fn split(input: ParseStream<'_>) -> syn::Result<(TokenStream, TokenStream)> {
    let runtime: Group = input.parse()?;
    Ok((runtime.stream(), input.parse()?))
}

/// Splits the input of a macro that declares no type.
///
/// # Errors
/// Returns an error at `struct` if the user's tokens declare a type. The expansion has no other
/// tokens then, because the call may be an item.
fn undeclared(
    name: &str,
    value: &str,
    input: TokenStream,
) -> syn::Result<(TokenStream, TokenStream)> {
    let (runtime, tokens) = split.parse2(input)?;
    match item::declares(&tokens) {
        None => Ok((runtime, tokens)),
        Some(word) => {
            let message = format!(
                "`{name}!` declares no type, only `sgemm_kernel!` and `gemm_kernel!` do; write \
                 `const NAME: {value} = {name}!(…);`"
            );
            Err(syn::Error::new(word, message))
        }
    }
}

/// Reports a bug of the generator at the call.
fn checked<T>(generated: Result<T, SpecErrors>) -> syn::Result<T> {
    generated.map_err(|errors| syn::Error::new(Span::call_site(), errors))
}

/// Returns the expression for a value of a kernel type. After an error, the kernel's artifact is
/// empty and is never launched.
fn expression(
    runtime: &TokenStream,
    kernel: &TokenStream,
    artifact: syn::Result<Artifact>,
) -> TokenStream {
    match artifact {
        Ok(artifact) => constant::kernel(runtime, kernel, &artifact),
        Err(error) => {
            let errors = error.into_compile_error();
            let kernel = constant::kernel(runtime, kernel, &Artifact::EMPTY);
            quote!({ #errors #kernel })
        }
    }
}
