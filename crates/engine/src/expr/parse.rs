//! Tokens to the flat program, by binding powers (Pratt, *Top down operator precedence*, 1973).

use std::ops::Range;

use super::error::ExprError;
use super::lex::{Token, lex};
use super::ops::{One, Op, Three, Two};
use crate::text::did_you_mean;

/// Brackets, signs and powers inside one another. Far more than people write, far less than the stack holds.
const NESTING_LIMIT: usize = 100;

const NOT: u8 = 5;
const SIGN: u8 = 12;

/// Constants that are always there.
const CONSTANTS: [(&str, f64); 4] =
    [("pi", std::f64::consts::PI), ("tau", std::f64::consts::TAU), ("e", std::f64::consts::E), ("inf", f64::INFINITY)];

/// Left and right binding power of an operator between two operands.
fn infix(token: Token<'_>) -> Option<(u8, u8, Two)> {
    Some(match token {
        Token::Name("or") => (1, 2, Two::Or),
        Token::Name("and") => (3, 4, Two::And),
        Token::Symbol("<") => (6, 7, Two::Less),
        Token::Symbol("<=") => (6, 7, Two::LessEqual),
        Token::Symbol(">") => (6, 7, Two::Greater),
        Token::Symbol(">=") => (6, 7, Two::GreaterEqual),
        Token::Symbol("==") => (6, 7, Two::Equal),
        Token::Symbol("!=") => (6, 7, Two::NotEqual),
        Token::Symbol("+") => (8, 9, Two::Add),
        Token::Symbol("-") => (8, 9, Two::Subtract),
        Token::Symbol("*") => (10, 11, Two::Multiply),
        Token::Symbol("/") => (10, 11, Two::Divide),
        // Weaker to the right: from the right; and above the sign, so that `-x^2` is `-(x^2)`.
        Token::Symbol("^") => (14, 13, Two::Power),
        _ => return None,
    })
}

/// Function named before a bracket, with its number of arguments.
#[derive(Clone, Copy)]
enum Function {
    One(One),
    Two(Two),
    /// `min` and `max`: two or more.
    Many(Two),
    Three(Three),
}

fn function(name: &str) -> Option<Function> {
    match name {
        "ln" => return Some(Function::One(One::Log)),
        "pow" => return Some(Function::Two(Two::Power)),
        "min" => return Some(Function::Many(Two::Min)),
        "max" => return Some(Function::Many(Two::Max)),
        _ => {}
    }
    let find = |n: &&str| *n == name;
    None.or_else(|| One::ALL.iter().find(|(n, _)| find(n)).map(|(_, op)| Function::One(*op)))
        .or_else(|| Two::ALL.iter().find(|(n, _)| find(n)).map(|(_, op)| Function::Two(*op)))
        .or_else(|| Three::ALL.iter().find(|(n, _)| find(n)).map(|(_, op)| Function::Three(*op)))
}

/// Names that can stand before a bracket.
fn function_names() -> impl Iterator<Item = &'static str> {
    let names = One::ALL.iter().map(|f| f.0).chain(Two::ALL.iter().map(|f| f.0)).chain(Three::ALL.iter().map(|f| f.0));
    names.chain(["ln", "pow"]).filter(|n| n.starts_with(|c: char| c.is_ascii_alphabetic()) && !["and", "or", "not"].contains(n))
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(Token<'a>, Range<usize>)>,
    at: usize,
    nesting: usize,
    variables: &'a [&'a str],
    constants: &'a [(&'a str, f64)],
    ops: Vec<Op>,
}

/// Parses the whole of `text`.
pub(super) fn parse(text: &str, variables: &[&str], constants: &[(&str, f64)]) -> Result<Vec<Op>, ExprError> {
    let mut parser = Parser { text, tokens: lex(text)?, at: 0, nesting: 0, variables, constants, ops: Vec::new() };
    parser.expression(0)?;
    let (token, span) = parser.peek();
    match token {
        Token::End => Ok(parser.ops),
        Token::Symbol(")") => Err(parser.error(span, "this bracket was never opened", None)),
        Token::Symbol(_) => Err(parser.error(span, format!("unexpected {token}"), None)),
        _ => Err(parser.error(span, format!("an operator is missing before {token}"), Some("write `*` to multiply".into()))),
    }
}

impl Parser<'_> {
    fn peek(&self) -> (Token<'_>, Range<usize>) {
        self.tokens[self.at].clone()
    }

    fn error(&self, span: Range<usize>, message: impl Into<String>, hint: Option<String>) -> ExprError {
        ExprError { text: self.text.to_owned(), span, message: message.into(), hint }
    }

    /// Takes the next token if it is `symbol`.
    fn take(&mut self, symbol: &str) -> bool {
        let found = matches!(self.tokens[self.at].0, Token::Symbol(s) if s == symbol);
        self.at += usize::from(found);
        found
    }

    /// Parses operands and operators that bind at least as strongly as `min`.
    fn expression(&mut self, min: u8) -> Result<(), ExprError> {
        self.nesting += 1;
        if self.nesting > NESTING_LIMIT {
            let span = self.tokens[self.at].1.clone();
            return Err(self.error(span, format!("more than {NESTING_LIMIT} levels of nesting"), None));
        }
        self.operand(min)?;
        let mut compared = false;
        while let Some((left, right, op)) = infix(self.tokens[self.at].0).filter(|(left, ..)| *left >= min) {
            // Only comparisons bind with 6 to the left.
            if left == 6 && std::mem::replace(&mut compared, true) {
                let span = self.tokens[self.at].1.clone();
                return Err(self.error(span, "comparisons cannot be chained", Some("write `a < b and b < c`".into())));
            }
            compared &= left >= 6;
            self.at += 1;
            self.expression(right)?;
            self.emit(Op::Two(op));
        }
        self.nesting -= 1;
        Ok(())
    }

    fn operand(&mut self, min: u8) -> Result<(), ExprError> {
        let (token, span) = self.tokens[self.at].clone();
        self.at += 1;
        match token {
            Token::Number(value) => self.emit(Op::Number(value)),
            Token::Name("not") if min <= NOT => {
                self.expression(NOT)?;
                self.emit(Op::One(One::Not));
            }
            Token::Name("not") => return Err(self.error(span, "`not` needs brackets here", Some("write `(not ..)`".into()))),
            Token::Name(name) if !matches!(name, "and" | "or") => {
                if self.take("(") {
                    return self.call(name, span);
                }
                let op = self.name(name, span)?;
                self.emit(op);
            }
            Token::Symbol("-") => {
                self.expression(SIGN)?;
                self.emit(Op::One(One::Negate));
            }
            Token::Symbol("+") => self.expression(SIGN)?,
            Token::Symbol("(") => {
                self.expression(0)?;
                self.close(span)?;
            }
            Token::End if self.at == 1 => return Err(self.error(span, "the expression is empty", None)),
            _ => return Err(self.error(span, format!("a number, a name or a bracket is missing before {token}"), None)),
        }
        Ok(())
    }

    /// Takes the bracket that closes the one at `open`.
    fn close(&mut self, open: Range<usize>) -> Result<(), ExprError> {
        if self.take(")") {
            return Ok(());
        }
        let (token, span) = self.peek();
        match token {
            Token::End => Err(self.error(open, "this bracket is never closed", None)),
            Token::Symbol(",") => Err(self.error(span, "a comma stands only between the arguments of a function", None)),
            Token::Symbol(_) => Err(self.error(span, format!("unexpected {token}"), None)),
            _ => Err(self.error(span, format!("an operator is missing before {token}"), Some("write `*` to multiply".into()))),
        }
    }

    /// A name that is not called.
    fn name(&self, name: &str, span: Range<usize>) -> Result<Op, ExprError> {
        if let Some(i) = self.variables.iter().position(|v| *v == name) {
            return Ok(Op::Variable(i));
        }
        if let Some((_, value)) = self.constants.iter().chain(&CONSTANTS).find(|(c, _)| *c == name) {
            return Ok(Op::Number(*value));
        }
        if function(name).is_some() {
            let hint = format!("write `{name}(..)`");
            return Err(self.error(span, format!("the function `{name}` needs its arguments in brackets"), Some(hint)));
        }
        let known = || self.variables.iter().copied().chain(self.constants.iter().chain(&CONSTANTS).map(|c| c.0));
        let hint = did_you_mean(name, known()).unwrap_or_else(|| format!("known are {}", known().collect::<Vec<_>>().join(", ")));
        Err(self.error(span, format!("unknown name `{name}`"), Some(hint)))
    }

    /// The arguments of the function `name`, whose opening bracket was taken.
    fn call(&mut self, name: &str, span: Range<usize>) -> Result<(), ExprError> {
        let Some(function) = function(name) else {
            if self.name(name, span.clone()).is_ok() {
                return Err(self.error(span, format!("`{name}` is not a function"), Some("write `*` to multiply".into())));
            }
            return Err(self.error(span, format!("unknown function `{name}`"), did_you_mean(name, function_names())));
        };
        let open = self.tokens[self.at - 1].1.clone();
        let mut count = 0_usize;
        if !self.take(")") {
            loop {
                self.expression(0)?;
                count += 1;
                if let (Function::Many(op), 2..) = (function, count) {
                    self.emit(Op::Two(op));
                }
                if !self.take(",") {
                    break;
                }
            }
            self.close(open)?;
        }
        let (op, wanted) = match function {
            Function::One(op) => (Some(Op::One(op)), 1),
            Function::Two(op) => (Some(Op::Two(op)), 2),
            Function::Three(op) => (Some(Op::Three(op)), 3),
            Function::Many(_) => (None, count.max(2)),
        };
        if count != wanted {
            let at_least = if matches!(function, Function::Many(_)) { "at least " } else { "" };
            let plural = if wanted == 1 { "" } else { "s" };
            let message = format!("`{name}` takes {at_least}{wanted} argument{plural}, found {count}");
            return Err(self.error(span.start..self.tokens[self.at - 1].1.end, message, None));
        }
        if let Some(op) = op {
            self.emit(op);
        }
        Ok(())
    }

    /// Appends an operation; one on numbers alone is carried out at once.
    fn emit(&mut self, op: Op) {
        use Op::Number;
        let folded = match (op, self.ops.as_slice()) {
            (Op::One(op), [.., Number(x)]) => Some((1, op.apply(*x))),
            (Op::Two(op), [.., Number(x), Number(y)]) => Some((2, op.apply(*x, *y))),
            (Op::Three(op), [.., Number(x), Number(y), Number(z)]) => Some((3, op.apply(*x, *y, *z))),
            _ => None,
        };
        match folded {
            Some((operands, value)) => {
                self.ops.truncate(self.ops.len() - operands);
                self.ops.push(Number(value));
            }
            None => self.ops.push(op),
        }
    }
}
