//! Items: functions and constants; structs have a file of their own.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::punctuated::Punctuated;
use syn::{Attribute, FnArg, GenericParam, Generics, Item, ItemConst, ItemFn, Result, ReturnType, Safety, Token, TypeParamBound};

use crate::emit::{Emitter, refuse};
use crate::names;
use crate::stmt::Tail;
use crate::structure::Structure;
use crate::types;

/// The attribute: the item as it is, and the constant with its C++.
pub(crate) fn device(arguments: &TokenStream, item: TokenStream) -> Result<TokenStream> {
    if !arguments.is_empty() {
        return Err(refuse(arguments, "takes no arguments"));
    }
    let mut item: Item = syn::parse2(item)?;
    let (ident, vis, attrs, text, argument) = match &mut item {
        Item::Fn(f) => (f.sig.ident.clone(), f.vis.clone(), f.attrs.clone(), function(f)?.to_token_stream(), None),
        Item::Struct(s) => {
            let structure = Structure::of(s)?;
            if !s.attrs.iter().any(|a| a.path().is_ident("repr")) {
                // The layout of C++.
                s.attrs.push(syn::parse_quote!(#[repr(C)]));
            }
            (s.ident.clone(), s.vis.clone(), s.attrs.clone(), structure.text(), Some(structure.argument()))
        }
        Item::Const(c) => (c.ident.clone(), c.vis.clone(), c.attrs.clone(), constant(c)?.to_token_stream(), None),
        other => return Err(refuse(other, "stands on a function, a struct or a constant")),
    };
    let name = format_ident!("{}", names::constant(&ident.to_string()), span = ident.span());
    let doc = format!("[`{ident}`] as CUDA C++.");
    let cfgs = attrs.iter().filter(|a: &&Attribute| a.path().is_ident("cfg"));
    let argument = argument.into_iter().flatten();
    Ok(quote! {
        #item
        #(#cfgs)*
        #[doc = #doc]
        #[allow(dead_code)]
        #vis const #name: &str = #text;
        #(#argument)*
    })
}

/// `device_source![a, b::C]` as `[A_CUDA, b::C_CUDA]`.
pub(crate) fn source(items: TokenStream) -> Result<TokenStream> {
    let parser = Punctuated::<syn::Path, Token![,]>::parse_terminated;
    let mut paths = syn::parse::Parser::parse2(parser, items)?;
    for path in &mut paths {
        if let Some(last) = path.segments.last_mut() {
            last.ident = format_ident!("{}", names::constant(&last.ident.to_string()), span = last.ident.span());
        }
    }
    Ok(quote!([#paths]))
}

fn function(item: &ItemFn) -> Result<String> {
    let sig = &item.sig;
    match &sig.safety {
        Safety::Default => {}
        Safety::Unsafe(token) => return Err(refuse(token, "no `unsafe`: formulae have no need of it")),
        Safety::Safe(token) => return Err(refuse(token, "an ordinary Rust function is wanted")),
    }
    if let Some(token) = &sig.asyncness {
        return Err(refuse(token, "no `async`"));
    }
    if let Some(abi) = &sig.abi {
        return Err(refuse(abi, "an ordinary Rust function is wanted"));
    }
    let generics = generics(&sig.generics, true)?;
    let mut emitter = Emitter::new(generics, &item.block.to_token_stream());
    let ReturnType::Type(_, output) = &sig.output else {
        return Err(refuse(&sig.ident, "a device function returns a value: it has no other effect"));
    };
    emitter.output = types::parse(output, &emitter.generics)?;
    let mut parameters = Vec::new();
    for input in &sig.inputs {
        match input {
            FnArg::Receiver(receiver) => {
                return Err(refuse(receiver, "no methods: write a function with the struct as its first parameter"));
            }
            FnArg::Typed(typed) => {
                let ty = types::parse(&typed.ty, &emitter.generics)?;
                parameters.push(emitter.parameter(&typed.pat, ty)?);
            }
        }
    }
    let head = template(&emitter.generics);
    let output = emitter.output.clone();
    let name = names::cpp(&sig.ident);
    emitter.block(&item.block, Tail::Value(Some(&output)))?;
    let output = output.cpp().unwrap_or_default();
    Ok(format!("{head}__device__ inline {output} {name}({}) {{\n{}}}\n", parameters.join(", "), emitter.out))
}

fn constant(item: &ItemConst) -> Result<String> {
    let mut emitter = Emitter::new(Vec::new(), &TokenStream::new());
    let ty = types::parse(&item.ty, &[])?;
    let value = emitter.typed(&item.expr, Some(&ty))?;
    Ok(format!("static constexpr {} {} = {};\n", ty.cpp().unwrap_or_default(), names::cpp(&item.ident), value.text))
}

pub(crate) fn template(generics: &[String]) -> String {
    if generics.is_empty() {
        return String::new();
    }
    let names: Vec<_> = generics.iter().map(|name| format!("typename {name}")).collect();
    format!("template <{}>\n", names.join(", "))
}

/// The names of the type parameters. Those of functions are bound by `Real` or `RealScalar`.
pub(crate) fn generics(generics: &Generics, bound_needed: bool) -> Result<Vec<String>> {
    const ONLY: &str = "generic over `R: Real` or `R: RealScalar` only";
    let is_real = |bound: &TypeParamBound| matches!(bound, TypeParamBound::Trait(t) if t.path.segments.last().is_some_and(|s| s.ident == "Real" || s.ident == "RealScalar"));
    let mut names = Vec::new();
    for parameter in &generics.params {
        let GenericParam::Type(ty) = parameter else {
            return Err(refuse(parameter, ONLY));
        };
        if let Some(other) = ty.bounds.iter().find(|b| !is_real(b)) {
            return Err(refuse(other, ONLY));
        }
        if bound_needed && ty.bounds.is_empty() {
            return Err(refuse(ty, "a type parameter is bound where it is declared: `R: Real`"));
        }
        names.push(ty.ident.to_string());
    }
    if let Some(clause) = &generics.where_clause {
        return Err(refuse(clause, "no `where`: write `R: Real` where it is declared"));
    }
    Ok(names)
}
