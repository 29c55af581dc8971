//! Conversion of JSON to values and positions in the text. `serde_json` judges the syntax and makes the values; the positions, and
//! keys that stand twice, come from a second walk over text that is then known to be right.

use serde_json::Value;

use super::NESTING_LIMIT;
use super::source::{Positions, join, problem_at};
use crate::error::Problem;
use crate::text::line_column;

pub(super) fn parse(text: &str) -> Result<(Value, Positions), Vec<Problem>> {
    if text.trim().is_empty() {
        return Ok((Value::Object(serde_json::Map::new()), Positions::new()));
    }
    let value: Value = serde_json::from_str(text).map_err(|e| {
        let message = e.to_string();
        let message = message.split(" at line ").next().unwrap_or_default().to_owned();
        vec![problem_at((e.line().max(1), e.column().max(1)), "", message)]
    })?;
    let mut parser = Parser { text, at: 0, positions: Positions::new(), problems: Vec::new() };
    parser.value("", 0);
    if parser.problems.is_empty() { Ok((value, parser.positions)) } else { Err(parser.problems) }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    positions: Positions,
    problems: Vec<Problem>,
}

impl Parser<'_> {
    /// The next byte that is not white space; 0 at the end.
    fn peek(&mut self) -> u8 {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    /// The string that begins here, as written with its quotes.
    fn string(&mut self) -> &str {
        let start = self.at;
        let bytes = self.text.as_bytes();
        self.at += 1;
        while self.at < bytes.len() && bytes[self.at] != b'"' {
            self.at += if bytes[self.at] == b'\\' { 2 } else { 1 };
        }
        self.at = (self.at + 1).min(bytes.len());
        &self.text[start..self.at]
    }

    fn value(&mut self, path: &str, depth: usize) {
        if depth > NESTING_LIMIT {
            let position = line_column(self.text, self.at);
            self.problems.push(problem_at(position, path, format!("more than {NESTING_LIMIT} levels of nesting")));
            self.at = self.text.len();
            return;
        }
        match self.peek() {
            open @ (b'{' | b'[') => {
                self.at += 1;
                for i in 0_usize.. {
                    if matches!(self.peek(), b'}' | b']' | 0) {
                        break;
                    }
                    let position = line_column(self.text, self.at);
                    let path = if open == b'{' {
                        let key: String = serde_json::from_str(self.string()).unwrap_or_default();
                        self.peek();
                        self.at += 1;
                        join(path, &key)
                    } else {
                        format!("{path}[{i}]")
                    };
                    if self.positions.insert(path.clone(), position).is_some() {
                        self.problems.push(problem_at(position, &path, "the key is there twice"));
                    }
                    self.value(&path, depth + 1);
                    if self.peek() == b',' {
                        self.at += 1;
                    }
                }
                self.at = (self.at + 1).min(self.text.len());
            }
            b'"' => {
                self.string();
            }
            _ => {
                let rest = &self.text.as_bytes()[self.at..];
                self.at += rest.iter().take_while(|b| !matches!(b, b',' | b'}' | b']') && !b.is_ascii_whitespace()).count();
            }
        }
    }
}
