//! The methods that have a C++ form, on which types.

use crate::emit::{Code, precedence};
use crate::types::{Float, Int, Ty};

/// All of them, for the message about one that is not here.
pub(crate) const NAMES: &str = "`sqrt`, `mul_add`, `abs`, `min`, `max`, `floor`, `ceil`, `recip`, `recip_sqrt`, `exp`, `ln`, `sin`, `cos`, \
     `powf`, `copysign`, `to_f64`, `lt`, `le`, `gt`, `ge`, `any`, `all`, `wrapping_add`, `wrapping_sub`, `wrapping_mul`, `rem_euclid`, \
     `is_multiple_of`, `to_bits`, `from_bits`";

/// Number of arguments that a method takes beside its receiver.
pub(crate) fn arity(name: &str) -> Option<usize> {
    Some(match name {
        "sqrt" | "abs" | "floor" | "ceil" | "recip" | "recip_sqrt" | "exp" | "ln" | "sin" | "cos" | "to_f64" | "any" | "all"
        | "to_bits" => 0,
        "min" | "max" | "powf" | "copysign" | "lt" | "le" | "gt" | "ge" | "wrapping_add" | "wrapping_sub" | "wrapping_mul"
        | "rem_euclid" | "is_multiple_of" => 1,
        "mul_add" => 2,
        _ => return None,
    })
}

/// The call of method `name` on `receiver`, or what is wrong with it. `in_generic` says that the function has a type
/// parameter, so that a receiver whose type is not seen may be of that type or of a concrete one.
pub(crate) fn call(name: &str, receiver: &Code, arguments: &[Code], in_generic: bool) -> Result<Code, String> {
    let ty = receiver.ty.clone();
    let (real, whole) = match &ty {
        Ty::Float(_) | Ty::Generic(_) => (true, false),
        Ty::Int(_) => (false, true),
        Ty::Like(_) => (true, true),
        Ty::Bool => (false, false),
        Ty::Struct(name) => return Err(format!("`{name}` is a struct: methods of structs have no C++ form; write a function")),
        Ty::Literal(_) => return Err("the type of this number cannot be seen here: add `_f32` or `_f64`".into()),
    };
    let helper = |helper: &str, ty: Ty| {
        let mut list = vec![receiver.text.clone()];
        list.extend(arguments.iter().map(|a| a.text.clone()));
        Ok(Code::primary(format!("zl::{helper}({})", list.join(", ")), ty))
    };
    // `Real::mul_add` rounds twice and `f32::mul_add` once; `Real::min` and `f32::min` differ on what is not a number.
    let of_trait = match &ty {
        Ty::Generic(_) => true,
        Ty::Like(_) if in_generic && matches!(name, "mul_add" | "min" | "max") => {
            return Err(format!(
                "whether this is generic cannot be seen here: write `R::{name}(..)` with its type, or bind it with `let v: R = ..`"
            ));
        }
        _ => false,
    };
    match name {
        "sqrt" | "floor" | "ceil" | "recip" | "recip_sqrt" | "exp" | "ln" | "sin" | "cos" | "powf" if real => helper(name, ty),
        "copysign" if real && !of_trait => helper(name, ty),
        "abs" if real || matches!(ty, Ty::Int(Int::I32 | Int::I64)) => helper(name, ty),
        "mul_add" if real => helper(if of_trait { "mul_add" } else { "fma" }, ty),
        "min" | "max" if of_trait || matches!(ty, Ty::Int(_)) => helper(name, ty),
        "min" | "max" if real => helper(if name == "min" { "fmin" } else { "fmax" }, ty),
        "to_f64" if real => Ok(Code::primary(format!("double({})", receiver.text), Ty::Float(Float::F64))),
        "to_bits" if ty == Ty::Float(Float::F64) => helper(name, Ty::Int(Int::U64)),
        "lt" | "le" | "gt" | "ge" if real => {
            let operator = match name {
                "lt" => "<",
                "le" => "<=",
                "gt" => ">",
                _ => ">=",
            };
            Ok(Code::binary(receiver, operator, &arguments[0], precedence::ORDER, Ty::Bool))
        }
        "any" | "all" if ty == Ty::Bool => Ok(receiver.clone()),
        "wrapping_add" | "wrapping_sub" | "wrapping_mul" | "rem_euclid" if whole => helper(name, ty),
        "is_multiple_of" if whole => helper(name, Ty::Bool),
        _ => Err(format!("`{name}` has no C++ form on `{}`", ty.cpp().unwrap_or("this type"))),
    }
}
