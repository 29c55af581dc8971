//! Conversion of text to tokens with their positions.

use std::ops::Range;

use super::error::ExprError;

/// A piece of an expression.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Token<'a> {
    Number(f64),
    Name(&'a str),
    /// An operator or bracket, as it is written; `**` is given as `^`.
    Symbol(&'static str),
    End,
}

impl std::fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(value) => write!(f, "`{value}`"),
            Self::Name(name) => write!(f, "`{name}`"),
            Self::Symbol(symbol) => write!(f, "`{symbol}`"),
            Self::End => f.write_str("the end"),
        }
    }
}

/// Longer ones first where one begins another.
const SYMBOLS: [&str; 15] = ["**", "<=", ">=", "==", "!=", "<", ">", "+", "-", "*", "/", "^", "(", ")", ","];

/// Common notations of other languages, and their form here.
const FOREIGN: [(&str, &str); 13] = [
    ("&&", "write `and`"),
    ("||", "write `or`"),
    ("!", "write `not`"),
    ("=", "write `==` to compare"),
    ("%", "write `mod(a, b)`"),
    ("?", "write `if(condition, then, else)`"),
    ("|", "write `abs(..)` or `or`"),
    ("[", "use round brackets"),
    ("]", "use round brackets"),
    ("\u{2212}", "write `-`"),
    ("\u{d7}", "write `*`"),
    ("\u{b7}", "write `*`"),
    ("\u{3c0}", "write `pi`"),
];

/// All tokens, the last one being [`Token::End`].
pub(super) fn lex(text: &str) -> Result<Vec<(Token<'_>, Range<usize>)>, ExprError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let (token, length) = if first.is_ascii_digit() || first == '.' {
            number(text, at)?
        } else if first.is_alphabetic() && first != '\u{3c0}' || first == '_' {
            let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            (Token::Name(&rest[..length]), length)
        } else if let Some(symbol) = SYMBOLS.into_iter().find(|s| rest.starts_with(s)) {
            (Token::Symbol(if symbol == "**" { "^" } else { symbol }), symbol.len())
        } else {
            let foreign = FOREIGN.into_iter().find(|(s, _)| rest.starts_with(s));
            let length = foreign.map_or(first.len_utf8(), |(s, _)| s.len());
            return Err(ExprError {
                text: text.to_owned(),
                span: at..at + length,
                message: format!("`{}` is not part of an expression", rest[..length].escape_debug()),
                hint: foreign.map(|(_, hint)| hint.to_owned()),
            });
        };
        tokens.push((token, at..at + length));
        at += length;
    }
    tokens.push((Token::End, text.len()..text.len()));
    Ok(tokens)
}

/// `12`, `12.`, `.5`, `1.5e-3` at byte `at`.
fn number(text: &str, at: usize) -> Result<(Token<'_>, usize), ExprError> {
    let bytes = &text.as_bytes()[at..];
    let digits = |from: usize| bytes[from.min(bytes.len())..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut length = digits(0);
    if bytes.get(length) == Some(&b'.') {
        length += 1 + digits(length + 1);
    }
    if matches!(bytes.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        let exponent = digits(length + 1 + sign);
        // Without digits the `e` is a name, and the parser misses an operator before it.
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    let failed = |message: String| ExprError { text: text.to_owned(), span: at..at + length, message, hint: None };
    let written = &text[at..at + length];
    let value: f64 = written.parse().map_err(|_| failed(format!("`{written}` is not a number")))?;
    if value.is_infinite() {
        return Err(failed(format!("`{written}` is too large: the largest number is 1.8e308")));
    }
    Ok((Token::Number(value), length))
}
