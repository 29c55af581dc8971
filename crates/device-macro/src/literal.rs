//! Literals and constants of the standard library.

use syn::{Lit, Result};

use crate::emit::{Code, refuse};
use crate::types::{Float, Int, Ty};

/// The C++ of a literal, given the type that its surroundings ask for.
pub(crate) fn literal(lit: &Lit, expected: Option<&Ty>) -> Result<Code> {
    match lit {
        Lit::Bool(b) => Ok(Code::primary(b.value.to_string(), Ty::Bool)),
        Lit::Float(f) => number(lit, f.base10_digits(), f.suffix(), true, expected),
        Lit::Int(i) => {
            let real = matches!(i.suffix(), "f32" | "f64");
            number(lit, i.base10_digits(), i.suffix(), real, expected)
        }
        Lit::Str(_) | Lit::ByteStr(_) | Lit::CStr(_) => Err(refuse(lit, "no text: a formula works on numbers")),
        _ => Err(refuse(lit, "only numbers, `true` and `false` have a C++ form here")),
    }
}

fn number(lit: &Lit, digits: &str, suffix: &str, real: bool, expected: Option<&Ty>) -> Result<Code> {
    let ty = match (suffix, expected) {
        ("", None) => Ty::Literal(real),
        ("", Some(ty)) => ty.clone(),
        (suffix, _) => Ty::scalar(suffix).ok_or_else(|| refuse(lit, format!("`{suffix}` has no C++ form")))?,
    };
    let text = match &ty {
        Ty::Float(float) if real => return Ok(Code::primary(real_text(digits, *float), ty)),
        Ty::Int(int) if !real => return Ok(Code::primary(whole_text(lit, digits, *int)?, ty)),
        Ty::Generic(name) => {
            return Err(refuse(lit, format!("a number of the generic type is written `{name}::from_f64({digits})`, `{name}::ONE`, ...")));
        }
        _ if real => {
            check_double_rounding(lit, digits)?;
            real_text(digits, Float::F64)
        }
        _ => whole_text(lit, digits, Int::I32).or_else(|_| whole_text(lit, digits, Int::I64))?,
    };
    Ok(match ty {
        Ty::Like(other) => Code::primary(format!("zl::like({other}, {text})"), Ty::Like(other)),
        ty => Code::primary(text, ty),
    })
}

/// A real literal: digits with a point or exponent, and `f` in single precision.
fn real_text(digits: &str, float: Float) -> String {
    let mut text = digits.to_owned();
    if !text.contains(['.', 'e', 'E']) {
        text.push_str(".0");
    }
    if text.ends_with('.') {
        text.push('0');
    }
    if float == Float::F32 {
        text.push('f');
    }
    text
}

/// Refuses the rare literal that C++ would round twice, from decimal to double to single precision, with another result.
fn check_double_rounding(lit: &Lit, digits: &str) -> Result<()> {
    let (Ok(single), Ok(double)) = (digits.parse::<f32>(), digits.parse::<f64>()) else {
        return Err(refuse(lit, "this number cannot be read"));
    };
    if single.to_bits() == (double as f32).to_bits() {
        Ok(())
    } else {
        Err(refuse(lit, "the type of this number cannot be seen here and matters: add `_f32` or `_f64`"))
    }
}

fn whole_text(lit: &Lit, digits: &str, int: Int) -> Result<String> {
    let largest = match int {
        Int::I32 => i32::MAX as u64,
        Int::U32 => u64::from(u32::MAX),
        Int::I64 => i64::MAX as u64,
        Int::U64 => u64::MAX,
    };
    match digits.parse::<u64>() {
        Ok(value) if value <= largest => Ok(format!("{value}{}", int.suffix())),
        _ => Err(refuse(lit, "too large for its type in C++; the least integer is written `i32::MIN` or `i64::MIN`")),
    }
}

/// `f64::consts::PI` and the like, and `u32::MAX`: the constants of the standard library that formulae use.
pub(crate) fn constant(ty: &Ty, name: &str) -> Option<Code> {
    let text = match (ty, name) {
        (Ty::Float(float), _) => {
            use std::f64::consts as c;
            // The shortest digits that give the same single or double.
            let (single, double) = match name {
                "PI" => (std::f32::consts::PI, c::PI),
                "TAU" => (std::f32::consts::TAU, c::TAU),
                "FRAC_PI_2" => (std::f32::consts::FRAC_PI_2, c::FRAC_PI_2),
                "FRAC_1_PI" => (std::f32::consts::FRAC_1_PI, c::FRAC_1_PI),
                "FRAC_1_SQRT_2" => (std::f32::consts::FRAC_1_SQRT_2, c::FRAC_1_SQRT_2),
                "SQRT_2" => (std::f32::consts::SQRT_2, c::SQRT_2),
                "E" => (std::f32::consts::E, c::E),
                "LN_2" => (std::f32::consts::LN_2, c::LN_2),
                "EPSILON" => (f32::EPSILON, f64::EPSILON),
                "MAX" => (f32::MAX, f64::MAX),
                "MIN_POSITIVE" => (f32::MIN_POSITIVE, f64::MIN_POSITIVE),
                _ => return None,
            };
            match float {
                Float::F32 => format!("{single:e}f"),
                Float::F64 => format!("{double:e}"),
            }
        }
        (Ty::Int(Int::I32), "MAX") => i32::MAX.to_string(),
        (Ty::Int(Int::I32), "MIN") => format!("({} - 1)", -i32::MAX),
        (Ty::Int(Int::I64), "MAX") => format!("{}ll", i64::MAX),
        (Ty::Int(Int::I64), "MIN") => format!("({}ll - 1)", -i64::MAX),
        (Ty::Int(Int::U32), "MAX") => format!("{}u", u32::MAX),
        (Ty::Int(Int::U64), "MAX") => format!("{}ull", u64::MAX),
        _ => return None,
    };
    Some(Code::primary(text, ty.clone()))
}
