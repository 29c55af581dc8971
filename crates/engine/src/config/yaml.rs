//! Conversion of YAML to values and positions in the text, by the core schema of YAML 1.2: `no` is a text and `1e-6` a number.
//!
//! Anchors, aliases, tags and several documents are refused: an input that is meant to be read has no use for them.

use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::{Map, Number, Value};

use super::NESTING_LIMIT;
use super::source::{Positions, join, problem_at};
use crate::error::Problem;

/// A table or list that is still open.
enum OpenNode {
    Table { path: String, map: Map<String, Value>, key: Option<String> },
    List { path: String, items: Vec<Value> },
}

struct Reader {
    stack: Vec<OpenNode>,
    root: Option<Value>,
    positions: Positions,
}

type Step<T> = Result<T, Problem>;

pub(super) fn parse(text: &str) -> Result<(Value, Positions), Vec<Problem>> {
    let mut reader = Reader { stack: Vec::new(), root: None, positions: Positions::new() };
    let mut documents = 0;
    for event in Parser::new_from_str(text) {
        let step = match event {
            Ok((Event::DocumentStart(_), span)) => {
                documents += 1;
                if documents > 1 {
                    Err(problem_at(position(span), "", "a second document begins here; one file is one input"))
                } else {
                    Ok(())
                }
            }
            Ok((event, span)) => reader.take(event, span),
            Err(e) => Err(problem_at((e.marker().line(), e.marker().col() + 1), "", e.info())),
        };
        step.map_err(|problem| vec![problem])?;
    }
    let root = reader.root.filter(|r| !r.is_null()).unwrap_or_else(|| Value::Object(Map::new()));
    Ok((root, reader.positions))
}

fn position(span: Span) -> (usize, usize) {
    (span.start.line(), span.start.col() + 1)
}

impl Reader {
    fn take(&mut self, event: Event<'_>, span: Span) -> Step<()> {
        let at = position(span);
        let refuse = |what: &str| Err(problem_at(at, "", format!("{what} are not supported")));
        match event {
            Event::Alias(_) => refuse("aliases"),
            Event::Scalar(_, _, 1.., _) | Event::SequenceStart(1.., _) | Event::MappingStart(1.., _) => refuse("anchors"),
            Event::Scalar(_, _, _, Some(_)) | Event::SequenceStart(_, Some(_)) | Event::MappingStart(_, Some(_)) => refuse("tags"),
            Event::Scalar(text, style, ..) => {
                if let Some(OpenNode::Table { path, map, key: key @ None }) = self.stack.last_mut() {
                    let name = text.into_owned();
                    let path = join(path, &name);
                    if map.contains_key(&name) {
                        return Err(problem_at(at, &path, "the key is there twice"));
                    }
                    self.positions.insert(path, at);
                    *key = Some(name);
                    return Ok(());
                }
                let path = self.enter(at)?;
                let value = if style == ScalarStyle::Plain { plain(&text) } else { Some(Value::String(text.to_string())) };
                let value = value.ok_or_else(|| problem_at(at, &path, format!("`{text}` is not a finite number")))?;
                self.put(value);
                Ok(())
            }
            Event::SequenceStart(..) => {
                let path = self.enter(at)?;
                self.stack.push(OpenNode::List { path, items: Vec::new() });
                Ok(())
            }
            Event::MappingStart(..) => {
                let path = self.enter(at)?;
                self.stack.push(OpenNode::Table { path, map: Map::new(), key: None });
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => {
                match self.stack.pop() {
                    Some(OpenNode::Table { map, .. }) => self.put(Value::Object(map)),
                    Some(OpenNode::List { items, .. }) => self.put(Value::Array(items)),
                    None => {}
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The path of the value that begins at `at`.
    fn enter(&mut self, at: (usize, usize)) -> Step<String> {
        if self.stack.len() > NESTING_LIMIT {
            return Err(problem_at(at, "", format!("more than {NESTING_LIMIT} levels of nesting")));
        }
        match self.stack.last() {
            None => Ok(String::new()),
            Some(OpenNode::Table { path, key: Some(key), .. }) => Ok(join(path, key)),
            Some(OpenNode::Table { path, key: None, .. }) => Err(problem_at(at, path, "a key must be a plain name")),
            Some(OpenNode::List { path, items }) => {
                let path = format!("{path}[{}]", items.len());
                self.positions.insert(path.clone(), at);
                Ok(path)
            }
        }
    }

    fn put(&mut self, value: Value) {
        match self.stack.last_mut() {
            None => self.root = Some(value),
            Some(OpenNode::Table { map, key, .. }) => {
                if let Some(key) = key.take() {
                    map.insert(key, value);
                }
            }
            Some(OpenNode::List { items, .. }) => items.push(value),
        }
    }
}

/// A scalar without quotes by the core schema; `None` for infinities and NaN.
fn plain(text: &str) -> Option<Value> {
    let integer = |digits: &str, radix| i64::from_str_radix(digits, radix).ok().map(|i| Value::Number(i.into()));
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(Value::Null),
        "true" | "True" | "TRUE" => return Some(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Some(Value::Bool(false)),
        ".nan" | ".NaN" | ".NAN" => return None,
        _ if matches!(text.trim_start_matches(['+', '-']), ".inf" | ".Inf" | ".INF") => return None,
        _ => {}
    }
    let written = text.strip_prefix('+').unwrap_or(text);
    let prefixed = |prefix, radix| written.strip_prefix(prefix).and_then(|d| integer(d, radix));
    if let Some(value) = prefixed("0x", 16).or_else(|| prefixed("0o", 8)).or_else(|| integer(written, 10)) {
        return Some(value);
    }
    // Only what begins like a number: `f64::from_str` would also take `nan` and `infinity`.
    let numeric = written.strip_prefix('-').unwrap_or(written).starts_with(|c: char| c.is_ascii_digit() || c == '.');
    match written.parse::<f64>() {
        Ok(x) if numeric => Number::from_f64(x).map(Value::Number),
        _ => Some(Value::String(text.to_owned())),
    }
}
