//! C++ text under construction: an expression with its precedence, and the state of the function being translated.

use proc_macro2::{Spacing, TokenStream, TokenTree};
use quote::ToTokens;
use syn::Error;

use crate::names::Scope;
use crate::types::Ty;

/// An error at `tokens`.
pub(crate) fn refuse(tokens: impl ToTokens, message: impl AsRef<str>) -> Error {
    Error::new_spanned(tokens, format!("`#[device]`: {}", message.as_ref()))
}

/// Precedence levels of C++ operators.
pub(crate) mod precedence {
    pub(crate) const TERNARY: u8 = 3;
    pub(crate) const OR: u8 = 4;
    pub(crate) const AND: u8 = 5;
    pub(crate) const BIT_OR: u8 = 6;
    pub(crate) const BIT_XOR: u8 = 7;
    pub(crate) const BIT_AND: u8 = 8;
    pub(crate) const EQUALITY: u8 = 9;
    pub(crate) const ORDER: u8 = 10;
    pub(crate) const SHIFT: u8 = 11;
    pub(crate) const SUM: u8 = 12;
    pub(crate) const PRODUCT: u8 = 13;
    pub(crate) const UNARY: u8 = 15;
    pub(crate) const PRIMARY: u8 = 16;
}

/// A C++ expression.
#[derive(Debug, Clone)]
pub(crate) struct Code {
    pub(crate) text: String,
    pub(crate) precedence: u8,
    pub(crate) ty: Ty,
}

impl Code {
    /// A name, a literal, a call: never in parentheses.
    pub(crate) fn primary(text: impl Into<String>, ty: Ty) -> Self {
        Self { text: text.into(), precedence: precedence::PRIMARY, ty }
    }

    /// An expression of an operator.
    pub(crate) fn new(text: String, precedence: u8, ty: Ty) -> Self {
        Self { text, precedence, ty }
    }

    /// The text, in parentheses where it binds less tightly than `least`.
    pub(crate) fn at(&self, least: u8) -> String {
        if self.precedence < least { format!("({})", self.text) } else { self.text.clone() }
    }

    /// `left operator right` of a left-associative operator.
    pub(crate) fn binary(left: &Self, operator: &str, right: &Self, precedence: u8, ty: Ty) -> Self {
        Self::new(format!("{} {operator} {}", left.at(precedence), right.at(precedence + 1)), precedence, ty)
    }
}

/// The translation of one item.
pub(crate) struct Emitter {
    /// Type parameters bound by `Real`.
    pub(crate) generics: Vec<String>,
    /// Variables.
    pub(crate) scope: Scope,
    /// Lines so far.
    pub(crate) out: String,
    /// Depth of braces.
    pub(crate) indent: usize,
    /// Loops open in this function or lambda.
    pub(crate) loops: usize,
    /// Set inside an open C++ lambda, which `return` would leave instead of the function.
    pub(crate) in_value: bool,
    /// Return type of the function.
    pub(crate) output: Ty,
}

impl Emitter {
    /// Starts the output for an item with these type parameters, whose tokens are `body`.
    pub(crate) fn new(generics: Vec<String>, body: &TokenStream) -> Self {
        let mut used = generics.clone();
        called(body.clone(), &mut used);
        Self { scope: Scope::new(used), generics, out: String::new(), indent: 0, loops: 0, in_value: false, output: Ty::Bool }
    }

    /// One line of output.
    pub(crate) fn line(&mut self, text: &str) {
        for _ in 0..self.indent {
            self.out.push_str("    ");
        }
        self.out.push_str(text);
        self.out.push('\n');
    }
}

/// Collects the names that are called: a variable must not hide them in C++, where it is visible in its own value.
fn called(tokens: TokenStream, names: &mut Vec<String>) {
    let mut before: Option<String> = None;
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => before = Some(ident.to_string()),
            TokenTree::Group(group) => {
                if let Some(name) = before.take()
                    && group.delimiter() == proc_macro2::Delimiter::Parenthesis
                {
                    names.push(name);
                }
                called(group.stream(), names);
            }
            // `name::<R>(..)`
            TokenTree::Punct(punct) if punct.as_char() == ':' && punct.spacing() == Spacing::Joint => {
                if let Some(name) = before.take() {
                    names.push(name);
                }
            }
            _ => before = None,
        }
    }
}
