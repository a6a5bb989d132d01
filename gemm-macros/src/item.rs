//! Named GEMM kernels: `struct Layer;` before the spec declares a type.

use crate::constant;
use crate::errors::both;
use crate::list::{Field, List};
use crate::rust_type::rust_type;
use gemm_dsl::artifact::Artifact;
use gemm_dsl::spec::GemmTypes;
use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::{format_ident, quote};
use std::iter::Peekable;

/// Tokens before the spec: `/// Docs.` `pub struct Layer;`
pub(crate) struct Head {
    attributes: TokenStream,
    /// Attributes that are repeated on every generated item: `cfg` and lint levels.
    common: TokenStream,
    visibility: TokenStream,
    name: Ident,
}

/// Splits the user's tokens into the head, if there is one, and the spec.
pub(crate) fn head(call: TokenStream) -> syn::Result<(Option<Head>, TokenStream)> {
    let mut rest = call.clone().into_iter().peekable();
    let (attributes, mut visibility) = modifiers(&mut rest);
    let is_line = attributes.is_empty() && visibility.is_empty();
    let common = attributes.iter().filter_map(|[_, attribute]| match attribute {
        Some(TokenTree::Group(group)) => of_every_item(group.stream()),
        _ => None,
    });
    let common = common.collect();
    let attributes = attributes.into_iter().flatten().flatten().collect();
    // A user's macro passes a visibility on in an invisible group, which may be empty.
    visibility.extend(rest.next_if(|token| is_group(token, Delimiter::None)));
    if rest.next_if(|token| is_word(token, "struct")).is_none() {
        return match is_line {
            true => Ok((None, call)),
            false => Err(expected("`struct` and the name of the kernel's type", &mut rest)),
        };
    }
    let name = match rest.peek() {
        Some(TokenTree::Ident(name)) => name.clone(),
        _ => return Err(expected("the name of the kernel's type", &mut rest)),
    };
    rest.next();
    if rest.next_if(|token| is_sign(token, ';')).is_none() {
        return Err(expected(&format!("`;` after `struct {name}`, and then the spec"), &mut rest));
    }
    Ok((Some(Head { attributes, common, visibility, name }), rest.collect()))
}

/// Returns the place of `struct` if the user's tokens declare a type, after attributes and a
/// visibility.
pub(crate) fn declares(call: &TokenStream) -> Option<Span> {
    let mut rest = call.clone().into_iter().peekable();
    modifiers(&mut rest);
    let word = rest.next_if(|token| is_word(token, "struct"))?;
    matches!(rest.next(), Some(TokenTree::Ident(_))).then(|| word.span())
}

/// Takes the attributes and the visibility of an item. An attribute is `#`, and its brackets if
/// they follow.
fn modifiers(
    rest: &mut Peekable<impl Iterator<Item = TokenTree>>,
) -> (Vec<[Option<TokenTree>; 2]>, TokenStream) {
    let (mut attributes, mut visibility) = (Vec::new(), TokenStream::new());
    while let Some(hash) = rest.next_if(|token| is_sign(token, '#')) {
        let attribute = rest.next_if(|token| is_group(token, Delimiter::Bracket));
        attributes.push([Some(hash), attribute]);
    }
    if let Some(word) = rest.next_if(|token| is_word(token, "pub")) {
        visibility.extend([word]);
        visibility.extend(rest.next_if(|token| is_group(token, Delimiter::Parenthesis)));
    }
    (attributes, visibility)
}

/// Returns the attribute to repeat on the other generated items, if this attribute of the struct
/// also applies to them.
fn of_every_item(attribute: TokenStream) -> Option<TokenStream> {
    let mut tokens = attribute.clone().into_iter();
    match tokens.next()? {
        // A user's macro passes the attribute on in an invisible group.
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
            of_every_item(group.stream())
        }
        TokenTree::Ident(name) => match name.to_string().as_str() {
            "cfg" | "allow" | "warn" | "deny" | "forbid" => Some(quote!(#[#attribute])),
            // A lint that is expected for the struct need not occur in every item, so `expect`
            // becomes `allow`.
            "expect" => {
                let lints: TokenStream = tokens.collect();
                Some(quote!(#[allow #lints]))
            }
            _ => None,
        },
        _ => None,
    }
}

fn expected(what: &str, rest: &mut Peekable<impl Iterator<Item = TokenTree>>) -> syn::Error {
    match rest.peek() {
        Some(found) => syn::Error::new(found.span(), format!("expected {what}")),
        None => syn::Error::new(Span::call_site(), format!("expected {what}, not the end")),
    }
}

fn is_sign(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(found) if found.as_char() == sign)
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(found) if found == word)
}

fn is_group(token: &TokenTree, delimiter: Delimiter) -> bool {
    matches!(token, TokenTree::Group(found) if found.delimiter() == delimiter)
}

/// Items of a named kernel: the type with its kernel and its `launch`, and, if it has operands, the
/// type of the operands.
pub(crate) fn items(
    runtime: &TokenStream,
    head: &Head,
    of: GemmTypes,
    list: &List,
    artifact: syn::Result<Artifact>,
) -> TokenStream {
    let [a, b, c] = of.matrices().map(|elem| rust_type(runtime, elem));
    let Head { attributes, common, visibility, name } = head;
    let operands = Operands::new(runtime, head, list);
    let Operands { lifetime, types, bounds, declared, parameter, given } = &operands;
    let (artifact, errors) = match both(artifact, list.check_fields()) {
        Ok(artifact) => (artifact, None),
        Err(error) => (Artifact::EMPTY, Some(error.into_compile_error())),
    };
    let kernel = list.kernel_of_item(of, runtime);
    let value = constant::kernel(runtime, &kernel, &artifact);
    let body = match &errors {
        None => quote!(Self::KERNEL.call(device) #given.launch(a, b, c)),
        // After an error, the body need not type-check with the operands.
        Some(_) => quote!(loop {}),
    };
    let about = format!("The kernel: `{}!({})`.", of.macro_name(), artifact.line);
    quote! {
        #errors

        #attributes
        #visibility struct #name;

        #common
        impl #name {
            #[doc = #about]
            #visibility const KERNEL: #kernel = #value;

            /// Returns the CUDA C of the kernel, of its other access variants and of its other
            /// launches.
            #visibility const fn sources() -> &'static [::std::borrow::Cow<'static, str>] {
                const KERNEL: &#kernel = &#name::KERNEL;
                KERNEL.sources()
            }

            /// Launches the kernel on a device: C is computed from A and B, whose views give the
            /// extents. On a GPU the call returns before the work is done; later work of the device
            /// is ordered after it.
            ///
            /// # Errors
            /// Returns the errors of `Call::launch`.
            #visibility fn launch<#lifetime A, B, C, #(#types,)*>(
                device: &#runtime::Device,
                a: &A,
                b: &B,
                c: &mut C,
                #parameter
            ) -> #runtime::error::Result<#runtime::LaunchReport>
            where
                A: #runtime::bounds::AsMatrixOf<#a>,
                B: #runtime::bounds::AsMatrixOf<#b>,
                C: #runtime::bounds::AsMatrixMutOf<#c>,
                #(#types: #bounds,)*
            {
                #body
            }
        }

        #declared
    }
}

/// Tokens that the operands add to the items. All are empty for a kernel without operands.
#[derive(Default)]
struct Operands {
    lifetime: Option<TokenStream>,
    /// Type parameters of the arrays.
    types: Vec<Ident>,
    bounds: Vec<TokenStream>,
    /// Declaration of the type whose fields are the operands.
    declared: TokenStream,
    /// Parameter of `launch` for the operands.
    parameter: TokenStream,
    /// Method call that passes the operands to the kernel's `Call`.
    given: TokenStream,
}

impl Operands {
    fn new(runtime: &TokenStream, head: &Head, list: &List) -> Self {
        let Head { common, visibility, name: of, .. } = head;
        let fields = list.fields(runtime);
        if fields.is_empty() {
            return Self::default();
        }
        let arrays = fields.iter().filter_map(|field| field.generic.clone());
        let (types, bounds): (Vec<_>, Vec<_>) = arrays.unzip();
        let lifetime = (!types.is_empty()).then(|| quote!('a,));
        let plain = lifetime.as_ref().map(|a| quote!(<#a #(#types,)*>));
        let bounded = lifetime.as_ref().map(|a| quote!(<#a #(#types: #bounds,)*>));

        let name = format_ident!("{of}Operands", span = Span::call_site());
        let names: Vec<_> = fields.iter().map(|field| &field.name).collect();
        let about = format!("The operands of [`{of}`].");
        let members = fields.iter().map(
            |Field { name, ty, meaning, .. }| quote!(#[doc = #meaning] #visibility #name: #ty),
        );
        let copies = quote! {
            #common
            impl #bounded ::core::clone::Clone for #name #plain {
                fn clone(&self) -> Self {
                    *self
                }
            }

            #common
            impl #bounded ::core::marker::Copy for #name #plain {}
        };
        let has_outputs = fields.iter().any(|field| field.is_output);
        let copies = (!has_outputs).then_some(copies);
        let declared = quote! {
            #common
            #[doc = #about]
            #[derive(::core::fmt::Debug)]
            #visibility struct #name #bounded {
                #(#members,)*
            }

            #copies
        };
        let parameter = quote!(operands: #name #plain,);
        let given = quote!(.operands((#(operands.#names,)*)));
        Self { lifetime, types, bounds, declared, parameter, given }
    }
}
