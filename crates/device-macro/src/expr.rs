//! Expressions.

use std::fmt::Write as _;

use syn::{BinOp, Expr, ExprBinary, ExprCall, ExprMethodCall, ExprPath, ExprStruct, Member, Result, UnOp};

use crate::emit::{Code, Emitter, precedence, refuse};
use crate::types::{Int, Ty};
use crate::{literal, methods, names, types};

/// Says how to give a number a type.
const UNTYPED: &str = "the type of this number cannot be seen here: add a suffix such as `_f32` or `_u32`, or annotate the variable";

impl Emitter {
    /// The C++ of `expr`, given the type that its surroundings ask for where that is seen.
    pub(crate) fn expr(&mut self, expr: &Expr, expected: Option<&Ty>) -> Result<Code> {
        match expr {
            Expr::Lit(lit) => literal::literal(&lit.lit, expected),
            Expr::Paren(inner) => self.expr(&inner.expr, expected),
            Expr::Group(inner) => self.expr(&inner.expr, expected),
            Expr::Path(path) => self.path(path),
            Expr::Unary(unary) => match unary.op {
                UnOp::Neg(_) => {
                    let operand = self.expr(&unary.expr, expected)?;
                    let text = operand.at(precedence::UNARY);
                    // Two minus signs would be a decrement.
                    let text = if text.starts_with('-') { format!("-({text})") } else { format!("-{text}") };
                    let ty = operand.ty.clone();
                    Ok(Code::new(text, precedence::UNARY, ty))
                }
                UnOp::Not(_) => {
                    let operand = self.expr(&unary.expr, expected)?;
                    let sign = match operand.ty {
                        Ty::Bool => "!",
                        Ty::Int(_) => "~",
                        Ty::Like(_) => {
                            let ty = operand.ty.clone();
                            return Ok(Code::primary(format!("zl::inv({})", operand.text), ty));
                        }
                        _ => return Err(refuse(unary, "`!` is for truth values and integers of known type")),
                    };
                    Ok(Code::new(format!("{sign}{}", operand.at(precedence::UNARY)), precedence::UNARY, operand.ty))
                }
                _ => Err(refuse(unary.op, "no references: values only")),
            },
            Expr::Binary(binary) => self.binary(binary, expected),
            Expr::Cast(cast) => {
                let target = types::parse(&cast.ty, &self.generics)?;
                let (Ty::Float(_) | Ty::Int(_) | Ty::Bool) = target else {
                    return Err(refuse(&cast.ty, "`as` leads to a scalar; for the generic real write `R::from_f64(..)`"));
                };
                // A whole number takes the integer type that it is cast to.
                let hint = (matches!(target, Ty::Int(_)) && whole_literal(&cast.expr)).then_some(&target);
                let operand = self.expr(&cast.expr, hint)?;
                let name = target.cpp().unwrap_or_default();
                let text = match (&operand.ty, &target) {
                    (Ty::Float(_) | Ty::Like(_) | Ty::Literal(true), Ty::Int(_)) => format!("zl::cast<{name}>({})", operand.text),
                    _ => format!("static_cast<{name}>({})", operand.text),
                };
                Ok(Code::primary(text, target.clone()))
            }
            Expr::Field(field) => {
                let Member::Named(member) = &field.member else {
                    return Err(refuse(&field.member, "no tuples: declare a `#[device] struct`"));
                };
                let base = self.expr(&field.base, None)?;
                let text = format!("{}.{}", base.at(precedence::PRIMARY), names::cpp(member));
                Ok(Code::primary(text.clone(), Ty::Like(text)))
            }
            Expr::Struct(literal) => self.struct_literal(literal, expected),
            Expr::Call(call) => self.call(call, expected),
            Expr::MethodCall(call) => self.method(call, expected),
            Expr::If(_) | Expr::Block(_) => self.value_of_block(expr, expected),
            other => Err(unsupported(other)),
        }
    }

    /// Like [`Self::expr`], of a type that is seen; a number without one is an error.
    pub(crate) fn typed(&mut self, expr: &Expr, expected: Option<&Ty>) -> Result<Code> {
        let code = self.expr(expr, expected)?;
        if let Ty::Literal(_) = code.ty { Err(refuse(expr, UNTYPED)) } else { Ok(code) }
    }

    /// Translates an expression that is stored in something of type `expected`: there a plain number need not repeat a type that is
    /// not visible.
    pub(crate) fn stored(&mut self, expr: &Expr, expected: Option<&Ty>) -> Result<Code> {
        match (expr, expected) {
            (Expr::Lit(_), Some(Ty::Like(_))) => self.expr(expr, None),
            _ => self.typed(expr, expected),
        }
    }

    /// Two operands of one type, of which either may be a number that takes the type of the other.
    pub(crate) fn pair(&mut self, left: &Expr, right: &Expr, expected: Option<&Ty>) -> Result<(Code, Code)> {
        let l = self.expr(left, expected)?;
        if let Ty::Literal(_) = l.ty {
            let r = self.expr(right, None)?;
            if let Ty::Literal(_) = r.ty {
                return Ok((l, r));
            }
            return Ok((self.expr(left, Some(&r.ty.clone()))?, r));
        }
        let r = self.expr(right, Some(&l.ty.clone()))?;
        Ok((l, r))
    }

    fn binary(&mut self, binary: &ExprBinary, expected: Option<&Ty>) -> Result<Code> {
        use precedence as p;
        let (operator, level, bits) = match binary.op {
            BinOp::Add(_) => ("+", p::SUM, None),
            BinOp::Sub(_) => ("-", p::SUM, None),
            BinOp::Mul(_) => ("*", p::PRODUCT, None),
            BinOp::Div(_) => ("/", p::PRODUCT, None),
            BinOp::Rem(_) => ("%", p::PRODUCT, None),
            BinOp::BitAnd(_) => ("&", p::BIT_AND, Some("bit_and")),
            BinOp::BitOr(_) => ("|", p::BIT_OR, Some("bit_or")),
            BinOp::BitXor(_) => ("^", p::BIT_XOR, Some("bit_xor")),
            BinOp::And(_) => return self.logic(binary, "&&", p::AND),
            BinOp::Or(_) => return self.logic(binary, "||", p::OR),
            BinOp::Shl(_) | BinOp::Shr(_) => {
                let left = self.typed(&binary.left, expected)?;
                let right = self.expr(&binary.right, None)?;
                let operator = if matches!(binary.op, BinOp::Shl(_)) { "<<" } else { ">>" };
                let ty = left.ty.clone();
                return Ok(Code::binary(&left, operator, &right, p::SHIFT, ty));
            }
            BinOp::Eq(_) => return self.comparison(binary, "==", p::EQUALITY),
            BinOp::Ne(_) => return self.comparison(binary, "!=", p::EQUALITY),
            BinOp::Lt(_) => return self.comparison(binary, "<", p::ORDER),
            BinOp::Le(_) => return self.comparison(binary, "<=", p::ORDER),
            BinOp::Gt(_) => return self.comparison(binary, ">", p::ORDER),
            BinOp::Ge(_) => return self.comparison(binary, ">=", p::ORDER),
            _ => return Err(refuse(binary.op, "an assignment is a statement of its own")),
        };
        let (left, right) = self.pair(&binary.left, &binary.right, expected)?;
        let ty = if let Ty::Literal(_) = left.ty { right.ty.clone() } else { left.ty.clone() };
        match (&ty, bits) {
            (Ty::Struct(name), _) => Err(refuse(binary.op, format!("`{name}` is a struct: write a function instead of an operator"))),
            (Ty::Float(_) | Ty::Generic(_) | Ty::Literal(true), None) if operator == "%" => {
                Err(refuse(binary.op, "`%` is for integers: write `x - n * (x / n).floor()` or what is meant"))
            }
            // The bits of truth values are an `int` in C++, which `!` would read otherwise.
            (Ty::Like(_), Some(helper)) => Ok(Code::primary(format!("zl::{helper}({}, {})", left.text, right.text), ty)),
            _ => Ok(Code::binary(&left, operator, &right, level, ty)),
        }
    }

    fn logic(&mut self, binary: &ExprBinary, operator: &str, level: u8) -> Result<Code> {
        let left = self.expr(&binary.left, Some(&Ty::Bool))?;
        let right = self.expr(&binary.right, Some(&Ty::Bool))?;
        Ok(Code::binary(&left, operator, &right, level, Ty::Bool))
    }

    fn comparison(&mut self, binary: &ExprBinary, operator: &str, level: u8) -> Result<Code> {
        let (left, right) = self.pair(&binary.left, &binary.right, None)?;
        if let (Ty::Literal(_), Ty::Literal(_)) = (&left.ty, &right.ty) {
            return Err(refuse(&binary.left, UNTYPED));
        }
        Ok(Code::binary(&left, operator, &right, level, Ty::Bool))
    }

    fn path(&mut self, path: &ExprPath) -> Result<Code> {
        if path.qself.is_some() {
            return Err(refuse(path, "paths of the form `<T as Trait>::NAME` have no C++ form"));
        }
        let segments: Vec<String> = path.path.segments.iter().map(|s| s.ident.to_string()).collect();
        let last = &path.path.segments[segments.len() - 1];
        if let [name] = &segments[..]
            && let Some(variable) = self.scope.find(name)
        {
            return Ok(Code::primary(variable.cpp.clone(), variable.ty.clone()));
        }
        if let [.., owner, name] = &segments[..] {
            if self.generics.contains(owner) {
                let value = match name.as_str() {
                    "ZERO" => "0",
                    "HALF" => "0.5",
                    "ONE" => "1",
                    "TWO" => "2",
                    _ => return Err(refuse(&last.ident, format!("`{owner}` has the constants `ZERO`, `HALF`, `ONE`, `TWO`"))),
                };
                return Ok(Code::primary(format!("{owner}({value})"), Ty::Generic(owner.clone())));
            }
            let scalar = if owner == "consts" { segments.iter().rev().nth(2) } else { Some(owner) };
            if let Some(ty) = scalar.and_then(|s| Ty::scalar(s)) {
                return literal::constant(&ty, name).ok_or_else(|| {
                    refuse(&last.ident, format!("the constant `{name}` is not known here: declare it as `#[device] const`"))
                });
            }
        }
        let name = names::cpp(&last.ident);
        if name.chars().any(char::is_lowercase) {
            return Err(refuse(
                path,
                "not a variable of this function; constants are written in capitals and declared as `#[device] const`",
            ));
        }
        Ok(Code::primary(name.clone(), Ty::Like(name)))
    }

    fn call(&mut self, call: &ExprCall, expected: Option<&Ty>) -> Result<Code> {
        let Expr::Path(path) = &*call.func else {
            return Err(refuse(&call.func, "only functions can be called"));
        };
        let segments: Vec<_> = path.path.segments.iter().collect();
        let last = segments[segments.len() - 1];
        let name = last.ident.to_string();
        if segments.len() == 1 && self.scope.find(&name).is_some() {
            return Err(refuse(&last.ident, "this is a variable: only `#[device]` functions can be called"));
        }
        if let [.., owner, _] = &segments[..] {
            let owner_name = owner.ident.to_string();
            let generic = self.generics.contains(&owner_name);
            let ty = if generic { Some(Ty::Generic(owner_name.clone())) } else { Ty::scalar(&owner_name) };
            if let Some(ty) = ty {
                return self.associated(call, &name, ty);
            }
        }
        if name.starts_with(char::is_uppercase) {
            return Err(refuse(path, "no tuple structs and enums: declare a `#[device] struct` with named fields"));
        }
        if name == "select" && call.args.len() == 3 {
            let mask = self.expr(&call.args[0], Some(&Ty::Bool))?;
            let (a, b) = self.pair(&call.args[1], &call.args[2], expected)?;
            let ty = a.ty.clone();
            return Ok(Code::primary(format!("zl::select({}, {}, {})", mask.text, a.text, b.text), ty));
        }
        let mut arguments = Vec::new();
        for argument in &call.args {
            arguments.push(self.typed(argument, None)?.text);
        }
        let templates = types::arguments(&last.arguments, &self.generics)?;
        let text = format!("{}{templates}({})", names::cpp(&last.ident), arguments.join(", "));
        Ok(Code::primary(text.clone(), Ty::Like(text)))
    }

    /// `R::from_f64(x)`, `f64::from(x)`, and methods by their type: `R::mul_add(x, a, b)`.
    fn associated(&mut self, call: &ExprCall, name: &str, ty: Ty) -> Result<Code> {
        let cpp = ty.cpp().unwrap_or_default().to_owned();
        if let (Ty::Generic(_), "from_f64", Some(value)) = (&ty, name, call.args.first()) {
            let double = Ty::Float(types::Float::F64);
            let value = self.expr(value, Some(&double))?;
            return Ok(Code::primary(format!("{cpp}({})", value.text), ty));
        }
        if let ("from", Some(value)) = (name, call.args.first()) {
            let value = self.typed(value, None)?;
            return Ok(Code::primary(format!("static_cast<{cpp}>({})", value.text), ty));
        }
        if let (Ty::Float(types::Float::F64), "from_bits", Some(bits)) = (&ty, name, call.args.first()) {
            let bits = self.expr(bits, Some(&Ty::Int(types::Int::U64)))?;
            return Ok(Code::primary(format!("zl::from_bits({})", bits.text), ty));
        }
        if name == "select" && call.args.len() == 3 {
            let mask = self.expr(&call.args[0], Some(&Ty::Bool))?;
            let (a, b) = (self.expr(&call.args[1], Some(&ty))?, self.expr(&call.args[2], Some(&ty))?);
            return Ok(Code::primary(format!("zl::select({}, {}, {})", mask.text, a.text, b.text), ty));
        }
        if methods::arity(name).map(|n| n + 1) != Some(call.args.len()) {
            return Err(refuse(&call.func, format!("no such function has a C++ form; there are {}", methods::NAMES)));
        }
        let mut arguments = Vec::new();
        for argument in &call.args {
            let code = self.expr(argument, Some(&ty))?;
            arguments.push(Code { ty: ty.clone(), ..code });
        }
        let receiver = arguments.remove(0);
        methods::call(name, &receiver, &arguments, true).map_err(|message| refuse(&call.func, message))
    }

    fn method(&mut self, call: &ExprMethodCall, expected: Option<&Ty>) -> Result<Code> {
        let name = call.method.to_string();
        match methods::arity(&name) {
            Some(n) if n == call.args.len() => {}
            Some(n) => return Err(refuse(&call.method, format!("`{name}` takes {n} arguments"))),
            None => return Err(refuse(&call.method, format!("method `{name}` has no C++ form; there are {}", methods::NAMES))),
        }
        let keeps_type = !matches!(name.as_str(), "lt" | "le" | "gt" | "ge" | "to_f64" | "to_bits" | "any" | "all" | "is_multiple_of");
        let receiver = self.typed(&call.receiver, expected.filter(|_| keeps_type))?;
        let like = receiver.ty.clone();
        let mut arguments = Vec::new();
        for argument in &call.args {
            arguments.push(self.expr(argument, Some(&like))?);
        }
        methods::call(&name, &receiver, &arguments, !self.generics.is_empty()).map_err(|message| refuse(&call.method, message))
    }

    /// A struct literal may name its fields in any order, a C++ one may not: a lambda that fills them in.
    fn struct_literal(&mut self, literal: &ExprStruct, expected: Option<&Ty>) -> Result<Code> {
        let last = &literal.path.segments[literal.path.segments.len() - 1];
        let mut name = format!("{}{}", names::cpp(&last.ident), types::arguments(&last.arguments, &self.generics)?);
        if let Some(Ty::Struct(full)) = expected
            && full.split('<').next() == Some(&name)
        {
            name.clone_from(full);
        }
        let mut text = match &literal.rest {
            Some(rest) => format!("[&] {{ {name} zl_s = {};", self.expr(rest, Some(&Ty::Struct(name.clone())))?.text),
            None => format!("[&] {{ {name} zl_s{{}};"),
        };
        for field in &literal.fields {
            let Member::Named(member) = &field.member else {
                return Err(refuse(&field.member, "fields have names here: declare a `#[device] struct` with named fields"));
            };
            let place = format!("zl_s.{}", names::cpp(member));
            let value = self.stored(&field.expr, Some(&Ty::Like(place.clone())))?;
            let _ = write!(text, " {place} = {};", value.text);
        }
        text.push_str(" return zl_s; }()");
        Ok(Code::primary(text, Ty::Struct(name)))
    }
}

/// Returns true if it is a whole number without suffix.
fn whole_literal(expr: &Expr) -> bool {
    matches!(expr, Expr::Lit(lit) if matches!(&lit.lit, syn::Lit::Int(i) if i.suffix().is_empty()))
}

/// Explains why this kind of expression has no C++ form, and what to write instead.
fn unsupported(expr: &Expr) -> syn::Error {
    match expr {
        Expr::Reference(e) => refuse(e.and_token, "no references: pass scalars and plain structs by value"),
        Expr::Closure(e) => refuse(e, "no closures: write a `#[device]` function"),
        Expr::While(e) => {
            refuse(e.while_token, "no `while`: lanes and GPU threads want a counted `for i in a..b`, with `break` where it must end early")
        }
        Expr::Loop(e) => refuse(e.loop_token, "no `loop`: write a counted `for i in a..b` with `break`"),
        Expr::Match(e) => refuse(e.match_token, "no `match`: write `if` and `else`"),
        Expr::Index(e) => refuse(e, "no memory access: the kernel loads and stores, the formula gets scalars and structs"),
        Expr::Array(e) => refuse(e, "no arrays: use variables or a `#[device] struct`"),
        Expr::Repeat(e) => refuse(e, "no arrays: use variables or a `#[device] struct`"),
        Expr::Tuple(e) => refuse(e, "no tuples: declare a `#[device] struct`"),
        Expr::Macro(e) => refuse(e, "macros have no C++ form"),
        Expr::Unsafe(e) => refuse(e.unsafe_token, "no `unsafe`: formulae have no need of it"),
        Expr::Let(e) => refuse(e.let_token, "no patterns: compare numbers"),
        Expr::Return(e) => refuse(e, "`return` is a statement of its own"),
        Expr::Range(e) => refuse(e, "a range stands in `for i in a..b` only"),
        Expr::Try(e) => refuse(e.question_token, "formulae cannot fail: return a number that says so"),
        other => refuse(other, "this has no C++ form"),
    }
}

/// Returns true if a whole-number type may count a loop.
pub(crate) fn counts(ty: &Ty) -> bool {
    matches!(ty, Ty::Int(Int::I32 | Int::U32 | Int::I64 | Int::U64) | Ty::Like(_))
}
