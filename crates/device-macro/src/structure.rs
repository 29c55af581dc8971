//! Structs: the declaration in C++ with the sizes and offsets that Rust's compiler has found, and the bytes that a kernel gets.

use std::fmt::Write as _;

use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens, quote};
use syn::{Expr, ExprLit, Field, Fields, Ident, ItemStruct, Lit, PointerMutability, Result, Type};

use crate::emit::refuse;
use crate::item;
use crate::names;
use crate::types::{self, Ty};

/// Place of a number in the text that Rust's compiler fills in, as wide as `zellige_engine::cuda::with_numbers` has it.
const NUMBER: &str = "####";

/// An item that was refused, without the types that Rust does not know.
pub(crate) fn without_pointers(item: TokenStream) -> TokenStream {
    let Ok(mut item) = syn::parse2::<ItemStruct>(item.clone()) else { return item };
    for field in &mut item.fields {
        let mut ty = &mut field.ty;
        while let Type::Array(array) = ty {
            ty = &mut array.elem;
        }
        if matches!(ty, Type::Ptr(_)) {
            *ty = syn::parse_quote!(u64);
        }
    }
    item.into_token_stream()
}

/// A struct, whose pointers are now addresses.
pub(crate) struct Structure {
    /// The C++ text, numbers left open.
    text: String,
    /// The numbers, as Rust.
    numbers: Vec<TokenStream>,
    /// The types: one, or those of each real number.
    instances: Vec<TokenStream>,
    fields: Vec<Ident>,
}

impl Structure {
    pub(crate) fn of(item: &mut ItemStruct) -> Result<Self> {
        let generics = item::generics(&item.generics, false)?;
        let Fields::Named(fields) = &mut item.fields else {
            return Err(refuse(&item.ident, "a struct has named fields"));
        };
        let ident = &item.ident;
        let mut all = Self { text: String::new(), numbers: Vec::new(), instances: Vec::new(), fields: Vec::new() };
        all.text = format!("{}struct {} {{\n", item::template(&generics), names::cpp(ident));
        for field in &mut fields.named {
            let declared = all.declared(field, &generics)?;
            let _ = writeln!(all.text, "    {declared};");
            all.fields.extend(field.ident.clone());
        }
        all.text += "};\n";
        let reals = if generics.is_empty() { &[][..] } else { &["float", "double"] };
        for real in reals {
            let (name, rust) = (names::cpp(ident), if *real == "float" { quote!(f32) } else { quote!(f64) });
            let (cpp, rust) = (vec![*real; generics.len()].join(", "), generics.iter().map(|_| &rust));
            all.check(&format!("{name}<{cpp}>"), quote!(#ident<#(#rust),*>));
        }
        if generics.is_empty() {
            all.check(&names::cpp(ident), quote!(#ident));
        }
        Ok(all)
    }

    /// Declaration of a field, whose device pointers become addresses.
    fn declared(&mut self, field: &mut Field, generics: &[String]) -> Result<String> {
        let name = field.ident.as_ref().map(names::cpp).unwrap_or_default();
        let (mut ty, mut lengths) = (&mut field.ty, String::new());
        while let Type::Array(array) = ty {
            match &array.len {
                Expr::Lit(ExprLit { lit: Lit::Int(n), .. }) => {
                    let _ = write!(lengths, "[{}]", n.base10_digits());
                }
                length => {
                    let _ = write!(lengths, "[{NUMBER}]");
                    self.numbers.push(quote!(#length));
                }
            }
            ty = &mut array.elem;
        }
        let Type::Ptr(pointer) = ty else {
            return Ok(format!("{} {name}{lengths}", types::parse(ty, generics)?.cpp().unwrap_or_default()));
        };
        let Type::Path(path) = &*pointer.elem else {
            return Err(refuse(&pointer.elem, "a pointer is to a scalar or a struct, by its name"));
        };
        // The device has types that Rust does not know.
        let to = path.path.require_ident()?;
        let scalar = Ty::scalar(&to.to_string());
        let to = scalar.as_ref().and_then(Ty::cpp).map_or_else(|| names::cpp(to), str::to_owned);
        let constant = if matches!(pointer.mutability, PointerMutability::Const(_)) { "const " } else { "" };
        *ty = syn::parse_quote!(u64);
        Ok(format!("{constant}{to}* {name}{lengths}"))
    }

    /// Adds that size and offsets are Rust's.
    fn check(&mut self, cpp: &str, rust: TokenStream) {
        let _ = writeln!(self.text, "static_assert(sizeof({cpp}) == {NUMBER}, \"size of {cpp} in Rust\");");
        self.numbers.push(quote!(::core::mem::size_of::<#rust>()));
        for field in &self.fields {
            let name = names::cpp(field);
            let text = &mut self.text;
            let _ = writeln!(text, "static_assert(ZL_OFFSET({name}, {cpp}) == {NUMBER}, \"offset of {cpp}::{name} in Rust\");");
            self.numbers.push(quote!(::core::mem::offset_of!(#rust, #field)));
        }
        self.instances.push(rust);
    }

    /// The C++ text as a constant expression.
    pub(crate) fn text(&self) -> TokenStream {
        let (numbers, length) = (&self.numbers, self.text.len());
        let text = Literal::byte_string(self.text.as_bytes());
        quote! {{
            const TEXT: [u8; #length] = ::zellige_engine::cuda::with_numbers(*#text, [#(#numbers),*]);
            match ::core::str::from_utf8(&TEXT) {
                Ok(text) => text,
                Err(_) => panic!("numbers are ASCII"),
            }
        }}
    }

    /// `Argument`, for every type that the struct has on a device.
    pub(crate) fn argument(&self) -> Vec<TokenStream> {
        let fields = &self.fields;
        let of = |ty: &TokenStream| {
            quote! {
                impl ::zellige_engine::cuda::Argument for #ty {
                    type Value = [u8; ::core::mem::size_of::<Self>()];
                    fn value(self) -> Self::Value {
                        let mut bytes = [0; ::core::mem::size_of::<Self>()];
                        #(::zellige_engine::cuda::put(&mut bytes, ::core::mem::offset_of!(Self, #fields), self.#fields);)*
                        bytes
                    }
                }
            }
        };
        self.instances.iter().map(of).collect()
    }
}
