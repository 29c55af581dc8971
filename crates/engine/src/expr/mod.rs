//! Expressions in input files: `1 + 0.05*cos(2*pi*x/lx)`.
//!
//! | | loosest first |
//! |---|---|
//! | logic | `or`, `and`, `not`; 0 is false, all else true |
//! | comparison | `<` `<=` `>` `>=` `==` `!=`, giving 1 or 0; not chained: `0 < x and x < 1` |
//! | arithmetic | `+` `-`, then `*` `/`, then the sign, then `^` (or `**`), from the right: `-x^2` is `-(x^2)`, `2^3^2` is `2^9` |
//! | constants | `pi`, `tau`, `e`, `inf`, and those that the caller names |
//! | one argument | `sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp expm1 log` (= `ln`) `log10 log2 log1p sqrt cbrt abs floor ceil round trunc sign step erf erfc` |
//! | two and more | `atan2(y, x)`, `hypot(x, y)`, `pow(x, y)`, `mod(x, period)` (in `[0, period)`), `min(..)`, `max(..)` |
//! | three | `if(condition, then, else)`, `clamp(x, low, high)`, `gauss(x, centre, sigma)` = `exp(-(x - centre)^2 / (2 sigma^2))` |
//!
//! `step(x)` is 1 from 0 on, `sign(0)` is 0, `round` takes halves away from 0, and `min` and `max` of a NaN are NaN.
//! Everything is in double precision. Both branches of `if` are evaluated and one is taken, so `if(x > 0, log(x), 0)`
//! is what it says.
//!
//! An expression is compiled once to a flat program in postfix order; [`Expr::eval`] runs it for one point and
//! [`Expr::eval_many`] for a row of points in blocks that stay in the cache.

mod error;
mod lex;
mod ops;
mod parse;
mod print;
mod program;

pub use error::ExprError;
pub use ops::{erf, erfc};
pub use program::Column;

use ops::Op;

/// A parsed expression of some variables.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// Postfix order.
    ops: Vec<Op>,
    /// Names of the variables, for printing and for messages.
    variables: Vec<String>,
    /// Largest number of values on the stack at a time.
    depth: usize,
}

impl Expr {
    /// Parses an expression of the named variables.
    ///
    /// ```
    /// use zellige_engine::expr::Expr;
    /// let f = Expr::parse("exp(-(x^2 + y^2))", &["x", "y"]).unwrap();
    /// assert_eq!(f.eval(&[0.0, 0.0]), 1.0);
    /// let error = Expr::parse("1 + cso(x)", &["x"]).unwrap_err();
    /// assert_eq!(error.span, 4..7);
    /// assert_eq!(error.hint.as_deref(), Some("did you mean `cos`?"));
    /// ```
    pub fn parse(text: &str, variables: &[&str]) -> Result<Self, ExprError> {
        Self::parse_with(text, variables, &[])
    }

    /// Parses an expression of the named variables and further named constants, for example `("lx", 32.0)`. These hide
    /// constants of this module that have the same name.
    pub fn parse_with(text: &str, variables: &[&str], constants: &[(&str, f64)]) -> Result<Self, ExprError> {
        let ops = parse::parse(text, variables, constants)?;
        Ok(Self { depth: program::depth(&ops), variables: variables.iter().map(|v| (*v).to_owned()).collect(), ops })
    }

    /// The value, if it depends on no variable.
    pub fn constant(&self) -> Option<f64> {
        match self.ops[..] {
            [Op::Number(value)] => Some(value),
            _ => None,
        }
    }

    /// Returns true if the expression depends on variable `i`.
    pub fn uses(&self, i: usize) -> bool {
        self.ops.contains(&Op::Variable(i))
    }
}

#[cfg(test)]
mod tests;
