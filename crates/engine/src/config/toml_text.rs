//! Conversion of TOML to values and positions in the text.

use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::NESTING_LIMIT;
use super::source::{Positions, join, problem_at};
use crate::error::Problem;
use crate::text::line_column;

/// Parses a document; every syntax error is reported.
pub(super) fn parse(text: &str) -> Result<(Value, Positions), Vec<Problem>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader { text, positions: Positions::new(), problems: Vec::new() };
    for error in errors {
        let at = error.span().map_or(0, |s| s.start);
        reader.problems.push(problem_at(line_column(text, at), "", error.message()));
    }
    // Brackets that are left open are told of once each.
    reader.problems.dedup();
    // After a syntax error the values are guesses, so only the errors count.
    if !reader.problems.is_empty() {
        return Err(reader.problems);
    }
    let value = reader.table(table.get_ref(), "", 0);
    if reader.problems.is_empty() { Ok((value, reader.positions)) } else { Err(reader.problems) }
}

/// A single value as it stands behind `=`, or `None` if it is not one.
pub(super) fn value(text: &str) -> Option<Value> {
    // More than one key would be an override that smuggles others.
    match parse(&format!("v = {text}")).ok()? {
        (Value::Object(mut map), _) if map.len() == 1 => map.remove("v"),
        _ => None,
    }
}

struct Reader<'a> {
    text: &'a str,
    positions: Positions,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn table(&mut self, table: &DeTable<'_>, path: &str, depth: usize) -> Value {
        let mut map = Map::new();
        for (key, value) in table {
            let path = join(path, key.get_ref());
            self.positions.insert(path.clone(), line_column(self.text, key.span().start));
            map.insert(key.get_ref().to_string(), self.value(value, &path, depth + 1));
        }
        Value::Object(map)
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>, path: &str, depth: usize) -> Value {
        let position = line_column(self.text, value.span().start);
        let mut refuse = |message: String| {
            self.problems.push(problem_at(position, path, message));
            Value::Null
        };
        if depth > NESTING_LIMIT {
            return refuse(format!("more than {NESTING_LIMIT} levels of nesting"));
        }
        match value.get_ref() {
            DeValue::String(text) => Value::String(text.to_string()),
            DeValue::Boolean(b) => Value::Bool(*b),
            DeValue::Integer(i) => match i64::from_str_radix(i.as_str(), i.radix()) {
                Ok(i) => Value::Number(i.into()),
                Err(_) => refuse(format!("`{i}` is too large for an integer")),
            },
            DeValue::Float(x) => match x.as_str().parse().ok().and_then(Number::from_f64) {
                Some(x) => Value::Number(x),
                None => refuse(format!("`{}` is not a finite number", x.as_str())),
            },
            DeValue::Datetime(date) => refuse(format!("`{date}` is a date, which no key accepts; a text needs quotes")),
            DeValue::Array(array) => Value::Array(
                array
                    .iter()
                    .enumerate()
                    .map(|(i, entry)| {
                        let path = format!("{path}[{i}]");
                        self.positions.insert(path.clone(), line_column(self.text, entry.span().start));
                        self.value(entry, &path, depth + 1)
                    })
                    .collect(),
            ),
            DeValue::Table(table) => self.table(table, path, depth),
        }
    }
}
