//! Errors in an expression, with their position.

use std::fmt;
use std::ops::Range;

use crate::error::Problem;

/// An expression that cannot be read: the position in bytes, the fault and the likely intention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExprError {
    /// The whole expression.
    pub text: String,
    /// The bytes that are wrong; empty at the end of the text.
    pub span: Range<usize>,
    /// Description of the error.
    pub message: String,
    /// Suggestion of the intended text.
    pub hint: Option<String>,
}

impl ExprError {
    /// Position of the first wrong character in its line, from 1.
    pub fn column(&self) -> usize {
        crate::text::line_column(&self.text, self.span.start).1
    }

    /// The line that is wrong with a caret line below it.
    ///
    /// ```
    /// # use zellige_engine::expr::Expr;
    /// let error = Expr::parse("sin(2 x)", &["x"]).unwrap_err();
    /// assert_eq!(error.render(), "sin(2 x)\n      ^");
    /// ```
    pub fn render(&self) -> String {
        let start = self.text[..self.span.start].rfind('\n').map_or(0, |i| i + 1);
        let end = self.text[self.span.start..].find('\n').map_or(self.text.len(), |i| self.span.start + i);
        // One column a character, tabs included, so that the carets stand below what they mean.
        let line: String = self.text[start..end].chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let indent = self.text[start..self.span.start].chars().count();
        let carets = self.text[self.span.start..self.span.end.clamp(self.span.start, end)].chars().count().max(1);
        format!("{line}\n{}{}", " ".repeat(indent), "^".repeat(carets))
    }

    /// Converts the error to a problem of the input key `path`.
    pub fn problem(&self, path: impl Into<String>) -> Problem {
        let lines = self.render().replace('\n', "\n    ");
        let problem = Problem::new(path, format!("{} in column {} of the expression\n    {lines}", self.message, self.column()));
        match &self.hint {
            Some(hint) => problem.hint(hint),
            None => problem,
        }
    }
}

impl fmt::Display for ExprError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in column {} of `{}`", self.message, self.column(), self.text)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ExprError {}
