//! Types: what the translation knows of an expression, and how C++ spells it.

use syn::{GenericArgument, PathArguments, Result, Type};

use crate::emit::refuse;

/// The type of an expression, as far as it can be seen in one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ty {
    /// `f32` or `f64`: the C++ name.
    Float(Float),
    /// An integer.
    Int(Int),
    /// `bool`, or the mask of a generic real.
    Bool,
    /// A type parameter bound by `Real`.
    Generic(String),
    /// A struct, spelled in C++.
    Struct(String),
    /// Type of the given C++ expression: a field, a constant or a call, declared elsewhere.
    Like(String),
    /// A literal without suffix: real (`true`) or whole.
    Literal(bool),
}

/// The real types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Float {
    F32,
    F64,
}

/// The integer types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Int {
    I32,
    U32,
    I64,
    U64,
}

impl Int {
    /// The ending of a C++ literal of this type.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::I32 => "",
            Self::U32 => "u",
            Self::I64 => "ll",
            Self::U64 => "ull",
        }
    }
}

impl Ty {
    /// The C++ name, where it is known.
    pub(crate) fn cpp(&self) -> Option<&str> {
        Some(match self {
            Self::Float(Float::F32) => "float",
            Self::Float(Float::F64) => "double",
            Self::Int(Int::I32) => "int",
            Self::Int(Int::U32) => "unsigned int",
            Self::Int(Int::I64) => "long long",
            Self::Int(Int::U64) => "unsigned long long",
            Self::Bool => "bool",
            Self::Generic(name) | Self::Struct(name) => name,
            Self::Like(_) | Self::Literal(_) => return None,
        })
    }

    /// The type of a scalar's Rust name.
    pub(crate) fn scalar(name: &str) -> Option<Self> {
        Some(match name {
            "f32" => Self::Float(Float::F32),
            "f64" => Self::Float(Float::F64),
            "i32" => Self::Int(Int::I32),
            "u32" => Self::Int(Int::U32),
            "i64" => Self::Int(Int::I64),
            "u64" | "usize" => Self::Int(Int::U64),
            "bool" => Self::Bool,
            _ => return None,
        })
    }
}

const SCALARS: &str = "`f32`, `f64`, `i32`, `u32`, `i64`, `u64`, `usize`, `bool`";

/// Reads a type. `generics` are the names bound by `Real`.
pub(crate) fn parse(ty: &Type, generics: &[String]) -> Result<Ty> {
    let path = match ty {
        Type::Paren(inner) => return parse(&inner.elem, generics),
        Type::Group(inner) => return parse(&inner.elem, generics),
        Type::Path(path) if path.qself.is_none() => &path.path,
        Type::Reference(r) => {
            return Err(refuse(r.and_token, "no references: pass scalars and plain structs by value"));
        }
        Type::Slice(_) | Type::Array(_) | Type::Ptr(_) => {
            return Err(refuse(ty, "no memory access: the kernel loads and stores, the formula gets scalars and structs"));
        }
        Type::Tuple(_) => return Err(refuse(ty, "no tuples: declare a `#[device] struct`")),
        _ => return Err(refuse(ty, format!("this type has no C++ form (allowed: {SCALARS}, structs, `R: Real`)"))),
    };
    let last = path.segments.last().ok_or_else(|| refuse(ty, "a type is missing here"))?;
    let name = last.ident.to_string();
    if path.segments.len() == 2 && name == "Mask" && generics.contains(&path.segments[0].ident.to_string()) {
        return Ok(Ty::Bool);
    }
    if path.segments.len() == 1 && last.arguments.is_none() {
        if generics.contains(&name) {
            return Ok(Ty::Generic(name));
        }
        if let Some(scalar) = Ty::scalar(&name) {
            return Ok(scalar);
        }
    }
    if ["i8", "u8", "i16", "u16", "i128", "u128", "isize", "char", "str", "String", "Vec", "Box", "Option", "Self"].contains(&name.as_str())
    {
        return Err(refuse(&last.ident, format!("`{name}` has no C++ form (allowed: {SCALARS}, structs, `R: Real`)")));
    }
    Ok(Ty::Struct(format!("{name}{}", arguments(&last.arguments, generics)?)))
}

/// `<R, f32>` in C++.
pub(crate) fn arguments(arguments: &PathArguments, generics: &[String]) -> Result<String> {
    match arguments {
        PathArguments::None => Ok(String::new()),
        PathArguments::AngleBracketed(list) => {
            let mut names = Vec::new();
            for argument in &list.args {
                let GenericArgument::Type(ty) = argument else {
                    return Err(refuse(argument, "only types can stand here"));
                };
                let ty = parse(ty, generics)?;
                names.push(ty.cpp().unwrap_or_default().to_owned());
            }
            Ok(format!("<{}>", names.join(", ")))
        }
        PathArguments::Parenthesized(list) => Err(refuse(list, "no function types")),
    }
}
