//! The derive macro `Module` of the crate `ultramarine-nn`, which documents it.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::{Data, DeriveInput, Error, Field, Fields, LitStr, Result, parse_macro_input};

/// Implements `Module` by visiting the fields in their order, each under its name.
///
/// - `#[module(rename = "...")]` gives a field another name, as files of weights may have it.
/// - `#[module(skip)]` leaves a field out. It need not be a module.
///
/// Fields of a tuple are named by their numbers. An enum shows the fields of its present variant; a variant with one
/// unnamed field shows that field's own parts, without a name in between.
#[proc_macro_derive(Module, attributes(module))]
pub fn derive_module(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    implement(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// A field that is visited.
struct Part<'a> {
    field: &'a Field,
    /// Its name in patterns: of the field, or of its number.
    member: TokenStream,
    /// The name that a pattern binds it to.
    binding: proc_macro2::Ident,
    /// Its name in paths; `None` if its parts take the place of the whole.
    name: Option<String>,
}

fn implement(input: &DeriveInput) -> Result<TokenStream> {
    let type_name = &input.ident;
    let variants: Vec<(TokenStream, Vec<Part<'_>>)> = match &input.data {
        Data::Struct(data) => vec![(quote!(#type_name), parts(&data.fields, false)?)],
        Data::Enum(data) => data
            .variants
            .iter()
            .map(|v| {
                let variant = &v.ident;
                Ok((quote!(#type_name::#variant), parts(&v.fields, true)?))
            })
            .collect::<Result<_>>()?,
        _ => {
            return Err(Error::new_spanned(
                type_name,
                "`Module` is derived for structs and enums, not for unions",
            ));
        }
    };
    let arms = |call: &str| {
        let call = format_ident!("{call}");
        let arms = variants.iter().map(|(path, parts)| {
            let bound = parts.iter().map(|p| (&p.member, &p.binding));
            let (members, bindings): (Vec<_>, Vec<_>) = bound.unzip();
            let visits = parts.iter().map(|p| {
                // The type is written out, so that errors are at the field, and the trait, so that both functions
                // give the same error: the compiler shows it once.
                let (binding, of) = (&p.binding, &p.field.ty);
                let visit = quote!(<#of as ::ultramarine_nn::Module>::#call(#binding, visitor));
                match &p.name {
                    Some(name) => quote!(visitor.within(#name, |visitor| #visit);),
                    None => quote!(#visit;),
                }
            });
            quote!(#path { #(#members: #bindings,)* .. } => { #(#visits)* })
        });
        // A reference to an enum without variants is matched by no arm.
        if variants.is_empty() { quote!(_ => {}) } else { quote!(#(#arms)*) }
    };
    let (shared, exclusive) = (arms("visit"), arms("visit_mut"));

    let mut generics = input.generics.clone();
    if generics.type_params().next().is_some() {
        let clause = generics.make_where_clause();
        for part in variants.iter().flat_map(|(_, parts)| parts) {
            let of = &part.field.ty;
            clause.predicates.push(syn::parse_quote!(#of: ::ultramarine_nn::Module));
        }
    }
    let (implemented, arguments, clause) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #implemented ::ultramarine_nn::Module for #type_name #arguments #clause {
            fn visit(&self, visitor: &mut ::ultramarine_nn::Visitor<'_>) {
                let _ = &visitor;
                match self { #shared }
            }

            fn visit_mut(&mut self, visitor: &mut ::ultramarine_nn::VisitorMut<'_>) {
                let _ = &visitor;
                match self { #exclusive }
            }
        }
    })
}

/// The fields that are visited. `variant`: of an enum.
fn parts(fields: &Fields, variant: bool) -> Result<Vec<Part<'_>>> {
    let transparent = variant && matches!(fields, Fields::Unnamed(f) if f.unnamed.len() == 1);
    let mut parts: Vec<Part<'_>> = Vec::new();
    for (number, field) in fields.iter().enumerate() {
        let Options { skip, rename } = options(field)?;
        if skip {
            continue;
        }
        let (member, own) = match &field.ident {
            Some(ident) => (quote!(#ident), ident.unraw().to_string()),
            None => {
                let index = syn::Index::from(number);
                (quote!(#index), number.to_string())
            }
        };
        let name = match rename {
            None if transparent => None,
            None => Some(own),
            Some(name) => Some(name.value()),
        };
        if let Some(same) = parts.iter().find(|p| p.name.is_some() && p.name == name) {
            let text = format!("two fields are named `{}`", same.name.as_deref().unwrap_or(""));
            return Err(Error::new_spanned(field, text));
        }
        parts.push(Part { field, member, binding: format_ident!("part_{number}"), name });
    }
    Ok(parts)
}

#[derive(Default)]
struct Options {
    skip: bool,
    rename: Option<LitStr>,
}

fn options(field: &Field) -> Result<Options> {
    let mut options = Options::default();
    for attribute in field.attrs.iter().filter(|a| a.path().is_ident("module")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("skip") {
                options.skip = true;
            } else if meta.path.is_ident("rename") {
                let name: LitStr = meta.value()?.parse()?;
                if name.value().is_empty() || name.value().contains('.') {
                    return Err(Error::new_spanned(
                        &name,
                        "a field's name may neither be empty nor contain a dot",
                    ));
                }
                options.rename = Some(name);
            } else {
                return Err(meta.error("use `skip` or `rename = \"...\"`"));
            }
            Ok(())
        })?;
    }
    if options.skip && options.rename.is_some() {
        return Err(Error::new_spanned(field, "a field that is skipped has no name"));
    }
    Ok(options)
}
