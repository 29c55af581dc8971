//! Blocks and statements.

use syn::{BinOp, Block, Expr, ExprBinary, ExprForLoop, ExprIf, Local, Pat, Result, Stmt};

use crate::emit::{Code, Emitter, precedence, refuse};
use crate::expr::counts;
use crate::types::{self, Ty};

/// Use of the last expression of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tail<'a> {
    /// None: there is no such expression.
    None,
    /// Value of the function or lambda, of this type where visible.
    Value(Option<&'a Ty>),
}

impl Emitter {
    /// The statements of a block, without its braces.
    pub(crate) fn block(&mut self, block: &Block, tail: Tail) -> Result<()> {
        self.scope.enter();
        self.indent += 1;
        let last = block.stmts.len().wrapping_sub(1);
        for (i, stmt) in block.stmts.iter().enumerate() {
            match stmt {
                Stmt::Local(local) => self.local(local)?,
                Stmt::Expr(expr, None) if i == last => self.tail(expr, tail)?,
                Stmt::Expr(expr, _) => self.statement(expr)?,
                Stmt::Item(syn::Item::Const(item)) => {
                    let ty = types::parse(&item.ty, &self.generics)?;
                    let value = self.typed(&item.expr, Some(&ty))?;
                    let name = self.scope.declare(&item.ident, ty.clone());
                    self.line(&format!("const {} {name} = {};", ty.cpp().unwrap_or("auto"), value.text));
                }
                Stmt::Item(item) => return Err(refuse(item, "only constants can be declared inside a function")),
                Stmt::Macro(item) => return Err(refuse(item, "macros have no C++ form")),
            }
        }
        self.indent -= 1;
        self.scope.leave();
        Ok(())
    }

    fn tail(&mut self, expr: &Expr, tail: Tail) -> Result<()> {
        match (expr, tail) {
            (_, Tail::None) | (Expr::Return(_) | Expr::ForLoop(_), _) => self.statement(expr),
            (Expr::If(branch), _) => self.branch(branch, tail),
            (Expr::Block(block), _) if block.label.is_none() => {
                self.line("{");
                self.block(&block.block, tail)?;
                self.line("}");
                Ok(())
            }
            (_, Tail::Value(ty)) => {
                let value = self.stored(expr, ty)?;
                self.line(&format!("return {};", value.text));
                Ok(())
            }
        }
    }

    fn local(&mut self, local: &Local) -> Result<()> {
        let (pat, annotated) = match &local.pat {
            Pat::Type(typed) => (&*typed.pat, Some(types::parse(&typed.ty, &self.generics)?)),
            pat => (pat, None),
        };
        let Pat::Ident(ident) = pat else {
            return Err(refuse(pat, "no patterns: one name for one value"));
        };
        if ident.by_ref.is_some() || ident.subpat.is_some() {
            return Err(refuse(ident, "no patterns: one name for one value"));
        }
        let Some(init) = &local.init else {
            return Err(refuse(local, "a variable gets its value where it is declared: `let x = if .. { a } else { b };`"));
        };
        if let Some((else_token, _)) = &init.diverge {
            return Err(refuse(else_token, "no `let .. else`"));
        }
        let value = self.stored(&init.expr, annotated.as_ref())?;
        let ty = annotated.unwrap_or(value.ty);
        let constant = if ident.mutability.is_some() { "" } else { "const " };
        let spelled = ty.cpp().unwrap_or("auto").to_owned();
        let name = self.scope.declare(&ident.ident, Ty::Bool);
        // The type of an expression is from now on that of this variable.
        let ty = if let Ty::Like(_) = ty { Ty::Like(name.clone()) } else { ty };
        self.scope.retype(&ident.ident, ty);
        self.line(&format!("{constant}{spelled} {name} = {};", value.text));
        Ok(())
    }

    fn statement(&mut self, expr: &Expr) -> Result<()> {
        match expr {
            Expr::Assign(assign) => {
                let place = self.place(&assign.left)?;
                let value = self.stored(&assign.right, Some(&place.ty.clone()))?;
                self.line(&format!("{} = {};", place.text, value.text));
            }
            Expr::Binary(binary) => self.compound(binary)?,
            Expr::If(branch) => self.branch(branch, Tail::None)?,
            Expr::ForLoop(counted) => self.counted(counted)?,
            Expr::Block(block) if block.label.is_none() => {
                self.line("{");
                self.block(&block.block, Tail::None)?;
                self.line("}");
            }
            Expr::Return(ret) => {
                if self.in_value {
                    return Err(refuse(ret, "no `return` inside an `if` or block that is used as a value"));
                }
                let Some(value) = &ret.expr else {
                    return Err(refuse(ret, "a device function returns a value"));
                };
                let output = self.output.clone();
                let value = self.stored(value, Some(&output))?;
                self.line(&format!("return {};", value.text));
            }
            Expr::Break(leave) if leave.label.is_none() && leave.expr.is_none() && self.loops > 0 => self.line("break;"),
            Expr::Continue(next) if next.label.is_none() && self.loops > 0 => self.line("continue;"),
            Expr::Break(_) | Expr::Continue(_) => {
                return Err(refuse(expr, "`break` and `continue` leave the innermost loop, not from inside a value"));
            }
            Expr::Paren(inner) => self.statement(&inner.expr)?,
            other => {
                // Says what is wrong inside it, if anything is.
                self.expr(other, None)?;
                return Err(refuse(other, "a formula has no side effects: this statement does nothing"));
            }
        }
        Ok(())
    }

    fn place(&mut self, expr: &Expr) -> Result<Code> {
        let mut base = expr;
        while let Expr::Field(field) = base {
            base = &field.base;
        }
        if matches!(base, Expr::Path(path) if path.path.get_ident().is_some_and(|name| self.scope.find(&name.to_string()).is_some())) {
            self.expr(expr, None)
        } else {
            Err(refuse(expr, "only variables of this function and their fields can be assigned"))
        }
    }

    fn compound(&mut self, binary: &ExprBinary) -> Result<()> {
        let operator = match binary.op {
            BinOp::AddAssign(_) => "+=",
            BinOp::SubAssign(_) => "-=",
            BinOp::MulAssign(_) => "*=",
            BinOp::DivAssign(_) => "/=",
            BinOp::RemAssign(_) => "%=",
            BinOp::BitAndAssign(_) => "&=",
            BinOp::BitOrAssign(_) => "|=",
            BinOp::BitXorAssign(_) => "^=",
            BinOp::ShlAssign(_) => "<<=",
            BinOp::ShrAssign(_) => ">>=",
            _ => return Err(refuse(binary, "a formula has no side effects: this statement does nothing")),
        };
        let place = self.place(&binary.left)?;
        let like = place.ty.clone();
        if let Ty::Struct(name) = &like {
            return Err(refuse(binary.op, format!("`{name}` is a struct: write a function instead of an operator")));
        }
        let shift = matches!(operator, "<<=" | ">>=");
        let value = self.expr(&binary.right, (!shift).then_some(&like))?;
        self.line(&format!("{} {operator} {};", place.text, value.text));
        Ok(())
    }

    /// `if` as a statement, or as the value of the function or lambda.
    fn branch(&mut self, branch: &ExprIf, tail: Tail) -> Result<()> {
        let mut head = "if".to_owned();
        let mut branch = branch;
        loop {
            let condition = self.expr(&branch.cond, Some(&Ty::Bool))?;
            self.line(&format!("{head} ({}) {{", condition.text));
            self.block(&branch.then_branch, tail)?;
            match branch.else_branch.as_ref().map(|(_, expr)| &**expr) {
                Some(Expr::If(next)) => {
                    "} else if".clone_into(&mut head);
                    branch = next;
                }
                Some(Expr::Block(block)) => {
                    self.line("} else {");
                    self.block(&block.block, tail)?;
                    break;
                }
                _ => break,
            }
        }
        self.line("}");
        Ok(())
    }

    fn counted(&mut self, counted: &ExprForLoop) -> Result<()> {
        if let Some(label) = &counted.label {
            return Err(refuse(label, "no labels: `break` and `continue` are for the innermost loop"));
        }
        let Pat::Ident(ident) = &*counted.pat else {
            return Err(refuse(&counted.pat, "the counter is a plain name; give it one even if it is not used"));
        };
        let (Expr::Range(range), true) = (&*counted.expr, ident.mutability.is_none() && ident.subpat.is_none()) else {
            return Err(refuse(&counted.expr, "loops count: `for i in a..b`"));
        };
        let (Some(start), Some(end), syn::RangeLimits::HalfOpen(_)) = (&range.start, &range.end, &range.limits) else {
            return Err(refuse(range, "loops count up to, not including, the end: `for i in a..b`"));
        };
        let (first, past) = self.pair(start, end, None)?;
        if let Ty::Literal(_) = first.ty {
            return Err(refuse(range, "the type of the counter cannot be seen here: write one end with its type, as in `0..4_u32`"));
        }
        if !counts(&first.ty) {
            return Err(refuse(range, "loops count in integers"));
        }
        let spelled = first.ty.cpp().unwrap_or("auto").to_owned();
        self.scope.enter();
        // Rust computes the end once, before the loop.
        let fixed = matches!(&**end, Expr::Lit(_));
        let past = if fixed {
            past.text
        } else {
            let name = self.scope.declare(&syn::Ident::new(&format!("{}_end", ident.ident), ident.ident.span()), Ty::Bool);
            self.line(&format!("const {} {name} = {};", first.ty.cpp().unwrap_or("auto"), past.text));
            name
        };
        let name = self.scope.declare(&ident.ident, Ty::Bool);
        let ty = if let Ty::Like(_) = first.ty { Ty::Like(name.clone()) } else { first.ty.clone() };
        self.scope.retype(&ident.ident, ty);
        self.line(&format!("for ({spelled} {name} = {}; {name} < {past}; ++{name}) {{", first.text));
        self.loops += 1;
        self.block(&counted.body, Tail::None)?;
        self.loops -= 1;
        self.line("}");
        self.scope.leave();
        Ok(())
    }

    /// `if` or a block as a value: `c ? a : b` where the branches are expressions, else a lambda.
    pub(crate) fn value_of_block(&mut self, expr: &Expr, expected: Option<&Ty>) -> Result<Code> {
        if let Expr::If(branch) = expr
            && let (Some(yes), Some((_, no))) = (only_expression(&branch.then_branch), &branch.else_branch)
            && let Some(no) = match &**no {
                Expr::Block(block) => only_expression(&block.block),
                other => Some(other),
            }
        {
            let condition = self.expr(&branch.cond, Some(&Ty::Bool))?;
            let (yes, no) = self.pair(yes, no, expected)?;
            let ty = if let Ty::Literal(_) = yes.ty { no.ty.clone() } else { yes.ty.clone() };
            let p = precedence::TERNARY;
            return Ok(Code::new(format!("{} ? {} : {}", condition.at(p + 1), yes.at(p + 1), no.at(p)), p, ty));
        }
        let ty = match expected {
            Some(ty) => ty.clone(),
            None => return Err(refuse(expr, "annotate the variable that this block is the value of: its type cannot be seen here")),
        };
        let spelled = ty.cpp().map_or_else(String::new, |name| format!("() -> {name}"));
        let out = std::mem::take(&mut self.out);
        let loops = std::mem::take(&mut self.loops);
        let in_value = std::mem::replace(&mut self.in_value, true);
        match expr {
            Expr::If(branch) => {
                self.indent += 1;
                self.branch(branch, Tail::Value(Some(&ty)))?;
                self.indent -= 1;
            }
            Expr::Block(block) if block.label.is_none() => self.block(&block.block, Tail::Value(Some(&ty)))?,
            other => return Err(refuse(other, "no labels")),
        }
        self.in_value = in_value;
        self.loops = loops;
        let body = std::mem::replace(&mut self.out, out);
        Ok(Code::primary(format!("[&]{spelled} {{\n{body}{}}}()", "    ".repeat(self.indent)), ty))
    }

    /// The function's parameters, declared and spelled.
    pub(crate) fn parameter(&mut self, pat: &Pat, ty: Ty) -> Result<String> {
        let Pat::Ident(ident) = pat else {
            return Err(refuse(pat, "no patterns: one name for one parameter"));
        };
        let spelled = ty.cpp().unwrap_or("auto").to_owned();
        let name = self.scope.declare(&ident.ident, ty);
        Ok(format!("{spelled} {name}"))
    }
}

/// The expression that a block consists of.
fn only_expression(block: &Block) -> Option<&Expr> {
    match &block.stmts[..] {
        [Stmt::Expr(expr, None)] => Some(expr),
        _ => None,
    }
}
