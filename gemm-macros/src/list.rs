//! Operands of a GEMM's epilogue as types, fields and values.

use crate::rust_type::rust_type;
use gemm_dsl::spec::{Along, EpilogueArg, GemmTypes};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};

/// Operands of a kernel in their order, each with the span of its name.
#[derive(Default)]
pub(crate) struct List(Vec<(EpilogueArg, Span)>);

/// Names that cannot be field names, not even as `r#name`.
const NO_FIELDS: [&str; 5] = ["self", "Self", "super", "crate", "_"];

impl List {
    pub(crate) fn new(operands: Vec<(EpilogueArg, Span)>) -> Self {
        Self(operands)
    }

    /// Checks that a type can list this many operands. The error names the remedy for too many.
    pub(crate) fn check(&self, remedy: &str) -> syn::Result<()> {
        let most = EpilogueArg::MOST_LISTED;
        let Some((operand, place)) = self.0.get(most) else { return Ok(()) };
        let is_listed = |name: &&str| self.0.iter().any(|(operand, _)| operand.name == **name);
        let counts_scalars = ["alpha", "beta"].iter().all(is_listed);
        let message = format!(
            "`{operand}` is operand {} of {}{}, and a type lists at most {most}; {remedy}, or put \
             several into one matrix",
            most + 1,
            self.0.len(),
            // Epilogues may also have scalars of these names without `scaled`.
            if counts_scalars { ", counting `alpha` and `beta`" } else { "" },
        );
        Err(syn::Error::new(*place, message))
    }

    /// Checks that each operand's name can be a field.
    pub(crate) fn check_fields(&self) -> syn::Result<()> {
        let wrong = self.0.iter().filter(|(operand, _)| NO_FIELDS.contains(&&*operand.name));
        let errors = wrong.map(|(operand, place)| {
            let name = &operand.name;
            let message = format!(
                "`{name}` cannot be a field name, and the operands of a named kernel are fields; \
                 use another name, such as `{}_value`",
                name.trim_matches('_').to_lowercase()
            );
            syn::Error::new(*place, message)
        });
        errors
            .reduce(|mut all, next| {
                all.combine(next);
                all
            })
            .map_or(Ok(()), Err)
    }

    /// Type of a kernel that takes these operands. If they are unknown, it contains `_`, which type
    /// inference resolves.
    pub(crate) fn kernel(
        list: Option<&Self>,
        types: GemmTypes,
        runtime: &TokenStream,
    ) -> TokenStream {
        Self::gemm(types, &Self::kinds(list, runtime), runtime)
    }

    /// Type named `of` that takes these operands, in the same form as [`kernel`](Self::kernel).
    pub(crate) fn typed(of: &str, list: Option<&Self>, runtime: &TokenStream) -> TokenStream {
        let (of, kinds) = (format_ident!("{of}"), Self::kinds(list, runtime));
        quote!(#runtime::#of::<#kinds>)
    }

    /// Tuple of the kinds of the operands, or `_`.
    fn kinds(list: Option<&Self>, runtime: &TokenStream) -> TokenStream {
        let listed = list.filter(|Self(operands)| operands.len() <= EpilogueArg::MOST_LISTED);
        let Some(Self(operands)) = listed else { return quote!(_) };
        let kinds = operands.iter().map(|(operand, _)| match operand.along {
            Along::Nothing => quote!(::core::primitive::f32),
            _ => {
                let kind = format_ident!("{}", operand.kind());
                quote!(#runtime::#kind)
            }
        });
        quote!((#(#kinds,)*))
    }

    /// Type of a named kernel, which must not contain `_`. Too many operands become `ByName`.
    pub(crate) fn kernel_of_item(&self, types: GemmTypes, runtime: &TokenStream) -> TokenStream {
        let kinds = match self.0.len() <= EpilogueArg::MOST_LISTED {
            true => Self::kinds(Some(self), runtime),
            false => quote!(#runtime::ByName),
        };
        Self::gemm(types, &kinds, runtime)
    }

    /// Type of a table for these matrices and operands, in the same form as
    /// [`kernel`](Self::kernel).
    pub(crate) fn table(
        list: Option<&Self>,
        types: GemmTypes,
        runtime: &TokenStream,
    ) -> TokenStream {
        if types == GemmTypes::F32 {
            return Self::typed("SgemmTable", list, runtime);
        }
        let (matrices, kinds) = (Self::matrices(types, runtime), Self::kinds(list, runtime));
        quote!(#runtime::GemmTable::<#matrices #kinds>)
    }

    /// Type of a table for matrices whose types follow from its use.
    pub(crate) fn table_by_use(list: Option<&Self>, runtime: &TokenStream) -> TokenStream {
        let kinds = Self::kinds(list, runtime);
        quote!(#runtime::GemmTable::<_, _, _, #kinds>)
    }

    /// Element types of A, B and C, each with a comma.
    fn matrices(types: GemmTypes, runtime: &TokenStream) -> TokenStream {
        let matrices = types.matrices().map(|elem| rust_type(runtime, elem));
        quote!(#(#matrices,)*)
    }

    /// Type of a kernel for matrices whose types follow from its use.
    pub(crate) fn typed_by_use(list: Option<&Self>, runtime: &TokenStream) -> TokenStream {
        let kinds = Self::kinds(list, runtime);
        quote!(#runtime::Gemm::<_, _, _, #kinds>)
    }

    /// Type of a kernel for matrices of these types and operands of these kinds.
    fn gemm(types: GemmTypes, kinds: &TokenStream, runtime: &TokenStream) -> TokenStream {
        if types == GemmTypes::F32 {
            return quote!(#runtime::Sgemm::<#kinds>);
        }
        let matrices = Self::matrices(types, runtime);
        quote!(#runtime::Gemm::<#matrices #kinds>)
    }

    /// Operands as fields of a struct.
    pub(crate) fn fields(&self, runtime: &TokenStream) -> Vec<Field> {
        let fields = self.0.iter().enumerate().map(|(n, (operand, place))| {
            let generic = match operand.along {
                Along::Nothing => None,
                _ if operand.is_row_result() => {
                    Some(quote!(#runtime::bounds::VectorMutOf<::core::primitive::f32>))
                }
                _ if operand.is_output() => {
                    Some(quote!(#runtime::bounds::MatrixMutOf<::core::primitive::f32>))
                }
                along if along.is_matrix() => {
                    Some(quote!(#runtime::bounds::MatrixOf<::core::primitive::f32>))
                }
                _ => Some(quote!(#runtime::bounds::VectorOf<::core::primitive::f32>)),
            };
            let generic = generic.map(|bound| (format_ident!("T{n}"), bound));
            let ty = match &generic {
                None => quote!(::core::primitive::f32),
                Some((ty, _)) if operand.is_output() => quote!(&'a mut #ty),
                Some((ty, _)) => quote!(&'a #ty),
            };
            let name = match &*operand.name {
                name if NO_FIELDS.contains(&name) => format_ident!("value_{n}"),
                // The name may be a Rust keyword.
                name => Ident::new_raw(name, *place),
            };
            let meaning = format!("`{operand}`: {}.", operand.meaning());
            Field { name, ty, generic, meaning, is_output: operand.is_output() }
        });
        fields.collect()
    }
}

pub(crate) struct Field {
    pub(crate) name: Ident,
    pub(crate) ty: TokenStream,
    /// Type parameter of an array operand, with its bound.
    pub(crate) generic: Option<(Ident, TokenStream)>,
    pub(crate) meaning: String,
    /// True for a mutable reference.
    pub(crate) is_output: bool,
}
