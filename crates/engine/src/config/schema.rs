//! Values against the JSON schema that the typed tables generate: all problems at once, each at its key.
//!
//! Of JSON schema it knows what `schemars` emits for serde types: references, types, properties, required, items, enum,
//! const, oneOf and anyOf, ranges and lengths. An object with listed properties takes no others.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::source::join;
use super::tables::{OutputConfig, RunConfig};
use crate::error::Problem;
use crate::text::{did_you_mean, nearest};

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12().for_deserialize().into_generator()
}

/// Finds every problem of `value`, the value at `path`, as a table of type `T`.
pub(super) fn check<T: JsonSchema>(value: &Value, path: &str) -> Vec<Problem> {
    let root = generator().into_root_schema_for::<T>().to_value();
    let mut problems = Vec::new();
    Checker { root: &root }.check(&root, value, path, &mut problems);
    problems
}

/// The typed table, or every problem of `value`; what the schema could not say becomes a problem at the key that is to blame.
pub(super) fn checked<T: JsonSchema + DeserializeOwned>(value: &Value, path: &str) -> std::result::Result<T, Vec<Problem>> {
    let problems = check::<T>(value, path);
    if !problems.is_empty() {
        return Err(problems);
    }
    let refusal = |value: &Value| T::deserialize(value).err().map(|e| e.to_string());
    T::deserialize(value).map_err(|error| {
        let message = error.to_string();
        let place = faulty_key(value, &|value| refusal(value).as_deref() == Some(&message), "");
        vec![Problem::new(format!("{path}{place}"), message)]
    })
}

/// Longer lists are blamed as a whole: trying each entry takes the square of their number.
const BLAME_LIMIT: usize = 1000;

/// The innermost key without which the refusal is no longer the same, as `.key[0].key`. Serde's errors have no path.
fn faulty_key(root: &Value, same: &dyn Fn(&Value) -> bool, pointer: &str) -> String {
    let children: Vec<(String, String)> = match root.pointer(pointer) {
        Some(Value::Object(map)) => map.keys().map(|k| (k.replace('~', "~0").replace('/', "~1"), format!(".{k}"))).collect(),
        Some(Value::Array(items)) if items.len() <= BLAME_LIMIT => (0..items.len()).map(|i| (i.to_string(), format!("[{i}]"))).collect(),
        _ => Vec::new(),
    };
    for (step, displayed) in children {
        let child = format!("{pointer}/{step}");
        let mut without = root.clone();
        match (without.pointer_mut(pointer), step.parse::<usize>()) {
            (Some(Value::Object(map)), _) => drop(map.remove(&displayed[1..])),
            (Some(Value::Array(items)), Ok(i)) => drop(items.remove(i)),
            _ => {}
        }
        if !same(&without) {
            return displayed + &faulty_key(root, same, &child);
        }
    }
    String::new()
}

/// Schema of a whole input whose solver's table is `name`.
pub(super) fn whole<T: JsonSchema>(name: &str) -> Value {
    let mut generator = generator();
    let properties = json!({
        name: generator.subschema_for::<T>(),
        "run": generator.subschema_for::<RunConfig>(),
        "output": generator.subschema_for::<OutputConfig>(),
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("input of zellige {name}"),
        "type": "object",
        "properties": properties,
        "required": [name],
        "additionalProperties": false,
        "$defs": generator.take_definitions(true),
    })
}

/// A key that is not known in the table `path`.
pub(super) fn unknown_key<'a>(path: &str, key: &str, known: impl Iterator<Item = &'a str> + Clone) -> Problem {
    let what = if path.is_empty() { "unknown table or key" } else { "unknown key" };
    let problem = Problem::new(join(path, key), what);
    match did_you_mean(key, known.clone()) {
        Some(hint) => problem.hint(hint),
        None => problem.allowed(known.collect::<Vec<_>>().join(", ")),
    }
}

struct Checker<'a> {
    root: &'a Value,
}

impl<'a> Checker<'a> {
    /// The schema that a reference points to. Its siblings only describe.
    fn resolve(&self, mut schema: &'a Value) -> &'a Value {
        // A schema made by `schemars` has no circles of references alone; the bound makes that no matter of trust.
        for _ in 0..16 {
            match schema.get("$ref").and_then(Value::as_str) {
                Some("#") => schema = self.root,
                Some(reference) => schema = reference.strip_prefix('#').and_then(|p| self.root.pointer(p)).unwrap_or(&Value::Null),
                None => break,
            }
        }
        schema
    }

    fn check(&self, schema: &'a Value, value: &Value, path: &str, problems: &mut Vec<Problem>) {
        let schema = self.resolve(schema);
        if let Some(all) = schema.get("allOf").and_then(Value::as_array) {
            for part in all {
                self.check(part, value, path, problems);
            }
        }
        if schema.get("oneOf").or_else(|| schema.get("anyOf")).is_some_and(Value::is_array) {
            return self.alternatives(schema, value, path, problems);
        }
        if schema.get("enum").is_some() || schema.get("const").is_some() {
            let names = AllowedValues { constants: constants(schema), synonyms: synonyms(schema).collect() };
            if !names.constants.contains(&value) {
                problems.push(names.unknown_value(value, path));
            }
            return;
        }
        let types = types(schema);
        if !types.is_empty() && !types.iter().any(|t| is_type(value, t)) {
            let problem = Problem::new(path, format!("expected {}, found {}", list(&types), displayed(value)));
            let keys = schema.get("properties").and_then(Value::as_object).map(|p| p.keys().map(String::as_str).collect::<Vec<_>>());
            problems.push(match (keys, number_of(value)) {
                (Some(keys), _) if !keys.is_empty() => problem.hint(format!("its keys: {}", keys.join(", "))),
                (_, Some(number)) if types.contains(&"number") => problem.hint(format!("write the number alone: `{number}`")),
                _ => problem,
            });
            return;
        }
        match value {
            Value::Number(_) => range(schema, value, path, problems),
            Value::Array(items) => self.array(schema, items, path, problems),
            Value::Object(map) => self.object(schema, map, path, problems),
            Value::String(text) => {
                let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0);
                if (text.chars().count() as u64) < least {
                    problems.push(Problem::new(path, "the text is empty or too short"));
                }
            }
            _ => {}
        }
    }

    fn array(&self, schema: &'a Value, items: &[Value], path: &str, problems: &mut Vec<Problem>) {
        let bound = |name| schema.get(name).and_then(Value::as_u64).map(|n| n as usize);
        let (least, most) = (bound("minItems").unwrap_or(0), bound("maxItems").unwrap_or(usize::MAX));
        if items.len() < least || items.len() > most {
            let allowed = match most {
                _ if least == most => format!("{least} entries"),
                usize::MAX => format!("at least {least} entries"),
                _ => format!("{least} to {most} entries"),
            };
            problems.push(Problem::new(path, format!("the list has {} entries", items.len())).allowed(allowed));
        }
        let first = schema.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (i, item) in items.iter().enumerate() {
            if let Some(schema) = first.get(i).or_else(|| schema.get("items").filter(|s| s.is_object())) {
                self.check(schema, item, &format!("{path}[{i}]"), problems);
            }
        }
    }

    fn object(&self, schema: &'a Value, map: &Map<String, Value>, path: &str, problems: &mut Vec<Problem>) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let known = properties.into_iter().flat_map(|p| p.keys()).map(String::as_str);
        let rest = schema.get("additionalProperties").filter(|s| s.is_object());
        for (key, value) in map {
            match (properties.and_then(|p| p.get(key)), rest) {
                (Some(schema), _) | (None, Some(schema)) => self.check(schema, value, &join(path, key), problems),
                (None, None) if properties.is_some() || schema.get("additionalProperties") == Some(&Value::Bool(false)) => {
                    problems.push(unknown_key(path, key, known.clone()));
                }
                (None, None) => {}
            }
        }
        let required = schema.get("required").and_then(Value::as_array);
        for key in required.into_iter().flatten().filter_map(Value::as_str).filter(|key| !map.contains_key(*key)) {
            let problem = Problem::new(join(path, key), "the key is missing");
            let about =
                properties.and_then(|p| p.get(key)).and_then(|s| s.get("description").or_else(|| self.resolve(s).get("description")));
            problems.push(match about.and_then(Value::as_str).map(first_sentence) {
                Some(sentence) if !sentence.is_empty() => problem.hint(sentence),
                _ => problem,
            });
        }
    }

    /// An enum, an option or an untagged choice: one alternative must fit, and if none does, the problems of the one
    /// that was meant are reported.
    fn alternatives(&self, schema: &'a Value, value: &Value, path: &str, problems: &mut Vec<Problem>) {
        let (mut resolved, mut synonyms) = (Vec::new(), Vec::new());
        self.flatten(schema, &mut resolved, &mut synonyms, 0);
        let tried: Vec<(&Value, Vec<Problem>)> = resolved
            .iter()
            .map(|schema| {
                let mut found = Vec::new();
                self.check(schema, value, path, &mut found);
                (*schema, found)
            })
            .collect();
        if tried.iter().any(|(_, found)| found.is_empty()) {
            return;
        }
        let names = AllowedValues { constants: resolved.iter().flat_map(|s| constants(s)).collect(), synonyms };
        if let (Value::String(_), false) = (value, names.constants.is_empty()) {
            problems.push(AllowedValues::or(&resolved, value, names.unknown_value(value, path)));
            return;
        }
        if let Value::Object(map) = value {
            match self.tagged_alternative(&resolved, map, &names.synonyms, path) {
                Ok(Some(choice)) => return self.check(choice, value, path, problems),
                Ok(None) => {}
                Err(problem) => return problems.push(problem),
            }
        }
        // Alternatives of the value's own type first, then the one that misses least.
        let typed = |schema: &Value| types(schema).iter().any(|t| is_type(value, t));
        match tried.into_iter().filter(|(schema, _)| typed(schema)).min_by_key(|(_, found)| found.len()) {
            Some((_, found)) => problems.extend(found),
            None => {
                let mut expected: Vec<&str> = resolved.iter().flat_map(|s| types(s)).filter(|t| *t != "null").collect();
                expected.dedup();
                let mut problem = Problem::new(path, format!("expected {}, found {}", list(&expected), displayed(value)));
                if !names.constants.is_empty() {
                    problem = problem.allowed(names.constants.iter().map(|n| displayed(n)).collect::<Vec<_>>().join(", "));
                }
                problems.push(problem);
            }
        }
    }

    /// Alternatives inside alternatives (an optional enum) as one list, with the synonyms of all.
    fn flatten(&self, schema: &'a Value, out: &mut Vec<&'a Value>, said: &mut Synonyms<'a>, depth: usize) {
        said.extend(synonyms(schema));
        match schema.get("oneOf").or_else(|| schema.get("anyOf")).and_then(Value::as_array) {
            Some(inner) if depth < 8 => inner.iter().for_each(|s| self.flatten(self.resolve(s), out, said, depth + 1)),
            _ => out.push(schema),
        }
    }

    /// The alternative that a key with a fixed value (`type = "sor"`) or the only key of the table decides for.
    fn tagged_alternative(
        &self,
        schemas: &[&'a Value],
        map: &Map<String, Value>,
        synonyms: &Synonyms<'a>,
        path: &str,
    ) -> Result<Option<&'a Value>, Problem> {
        let properties = |schema: &'a Value| schema.get("properties").and_then(Value::as_object);
        let tag = |schema: &'a Value| properties(schema)?.iter().find_map(|(key, s)| Some((key.as_str(), self.resolve(s).get("const")?)));
        let tags: Vec<(&str, &Value, &'a Value)> = schemas.iter().filter_map(|s| tag(s).map(|(key, value)| (key, value, *s))).collect();
        if let Some((key, ..)) = tags.first() {
            let Some(value) = map.get(*key) else {
                let allowed = tags.iter().map(|(_, v, _)| displayed(v)).collect::<Vec<_>>().join(", ");
                return Err(Problem::new(join(path, key), "the key that selects the variant is missing").allowed(allowed));
            };
            if let Some((.., schema)) = tags.iter().find(|(k, v, _)| k == key && *v == value) {
                return Ok(Some(schema));
            }
            let names = AllowedValues { constants: tags.iter().map(|(_, v, _)| *v).collect(), synonyms: synonyms.clone() };
            let mut problem = names.unknown_value(value, &join(path, key));
            problem.message = format!("the key that decides the kind: {}", problem.message);
            return Err(problem);
        }
        let single: Vec<(&str, &'a Value)> = schemas
            .iter()
            .filter_map(|s| properties(s).filter(|p| p.len() == 1).and_then(|p| Some((p.keys().next()?.as_str(), *s))))
            .collect();
        match (single.iter().find(|(key, _)| map.contains_key(*key)), map.keys().next()) {
            (Some((_, schema)), _) => Ok(Some(schema)),
            // Tables have one key each that says which it is, and this one has none of them, nor any of a table with more keys.
            (None, Some(key))
                if single.len() > 1 && !schemas.iter().any(|s| properties(s).is_some_and(|p| map.keys().any(|k| p.contains_key(k)))) =>
            {
                let larger = schemas.iter().filter_map(|s| properties(s).filter(|p| p.len() > 1)?.keys().next());
                let known = single.iter().map(|(key, _)| *key).chain(larger.map(String::as_str));
                let problem = unknown_key(path, key, known);
                Err(match canonical_value(key, synonyms) {
                    Some(name) => problem.hint(format!("did you mean `{name}`?")),
                    None => problem,
                })
            }
            _ => Ok(None),
        }
    }
}

/// Synonyms of a value, with the value: what `#[schemars(extend("x-synonyms" = { .. }))]` says beside its type.
type Synonyms<'a> = Vec<(&'a str, &'a str)>;

fn synonyms(schema: &Value) -> impl Iterator<Item = (&str, &str)> {
    let listed = schema.get("x-synonyms").and_then(Value::as_object).into_iter().flatten();
    listed.filter_map(|(other, name)| Some((other.as_str(), name.as_str()?)))
}

/// The value that goes by another name.
fn canonical_value<'a>(text: &str, synonyms: &Synonyms<'a>) -> Option<&'a str> {
    let plain = text.to_ascii_lowercase().replace(['-', ' '], "_");
    synonyms.iter().find(|(other, _)| *other == plain).map(|(_, name)| *name)
}

/// The values that may stand somewhere.
struct AllowedValues<'a> {
    constants: Vec<&'a Value>,
    synonyms: Synonyms<'a>,
}

impl AllowedValues<'_> {
    /// Reports another value.
    fn unknown_value(&self, value: &Value, path: &str) -> Problem {
        let allowed = self.constants.iter().filter(|n| !n.is_null()).map(|n| displayed(n)).collect::<Vec<_>>().join(", ");
        let problem = Problem::new(path, format!("unknown value {}", displayed(value))).allowed(allowed);
        let near = |text: &str| nearest(text, self.constants.iter().filter_map(|n| n.as_str()));
        match value.as_str().and_then(|text| canonical_value(text, &self.synonyms).or_else(|| near(text))) {
            Some(best) => problem.hint(format!("did you mean `\"{best}\"`?")),
            None => problem,
        }
    }

    /// Adds the alternatives among `schemas` that are no names to the allowed values: numbers, lists, tables with their key.
    fn or(schemas: &[&Value], value: &Value, mut problem: Problem) -> Problem {
        let mut others: Vec<String> = Vec::new();
        for schema in schemas.iter().filter(|s| constants(s).is_empty()) {
            let keys = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
            let keys: Vec<&str> = keys.collect();
            let other = if keys.is_empty() { list(&types(schema)) } else { format!("`{{ {} = .. }}`", keys.join(" = .., ")) };
            if keys.first().is_some_and(|key| value.as_str() == Some(key)) {
                problem.hint = Some(format!("it is a table here: {other}"));
            }
            if !other.is_empty() && !others.contains(&other) {
                others.push(other);
            }
        }
        problem.allowed = problem.allowed.map(|names| std::iter::once(names).chain(others).collect::<Vec<_>>().join(", "));
        problem
    }
}

/// The number that a text begins with, where a unit follows: 200 of `"200 K"`.
fn number_of(value: &Value) -> Option<&str> {
    let text = value.as_str()?.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'))).unwrap_or(text.len());
    let number = text[..end].trim_end_matches(['e', 'E']);
    number.parse::<f64>().is_ok().then_some(number)
}

/// The first sentence of a description, which may run over several lines.
fn first_sentence(text: &str) -> String {
    let paragraph = text.split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = paragraph.split_whitespace().collect();
    // A sentence ends in a full stop before a capital: `e.g. one` does not, nor does a name such as `rho.npy`.
    let last = |i: &usize| {
        let next = words.get(i + 1).and_then(|w| w.chars().find(|c| c.is_alphanumeric()));
        words[*i].ends_with('.') && next.is_some_and(char::is_uppercase)
    };
    let end = (0..words.len()).find(last).unwrap_or(words.len().saturating_sub(1));
    words.iter().take(end + 1).copied().collect::<Vec<_>>().join(" ")
}

/// Values that `enum` or `const` allow.
fn constants(schema: &Value) -> Vec<&Value> {
    let listed = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    listed.chain(schema.get("const")).collect()
}

fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn is_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

/// `a text or a list`, in the words of people.
fn list(types: &[&str]) -> String {
    let mut words: Vec<&str> = Vec::new();
    for name in types {
        let word = match *name {
            "boolean" => "true or false",
            "integer" => "a whole number",
            "number" => "a number",
            "string" => "a text",
            "array" => "a list",
            "object" => "a table",
            _ => continue,
        };
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(" or ")
}

/// A value as shown in a message.
fn displayed(value: &Value) -> String {
    match value {
        Value::Null => "nothing".into(),
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(_) => "a table".into(),
        Value::String(text) if text.chars().count() > 60 => format!("`\"{}..\"`", text.chars().take(60).collect::<String>()),
        _ => format!("`{value}`"),
    }
}

fn range(schema: &Value, value: &Value, path: &str, problems: &mut Vec<Problem>) {
    let Some(x) = value.as_f64() else { return };
    let bound = |name| schema.get(name).and_then(Value::as_f64);
    let (above, least) = (bound("exclusiveMinimum"), bound("minimum"));
    let (below, most) = (bound("exclusiveMaximum"), bound("maximum"));
    let wrong =
        above.is_some_and(|b| x <= b) || least.is_some_and(|b| x < b) || below.is_some_and(|b| x >= b) || most.is_some_and(|b| x > b);
    if wrong {
        // Whole numbers to the last digit.
        let bound = |name: &str, b: f64| schema.get(name).filter(|b| !b.is_f64()).map_or_else(|| b.to_string(), Value::to_string);
        let said = |word: &str, name: &str, b: Option<f64>| b.map(|b| format!("{word} {}", bound(name, b)));
        let lower = said("above", "exclusiveMinimum", above).or_else(|| said("at least", "minimum", least));
        let upper = said("below", "exclusiveMaximum", below).or_else(|| said("at most", "maximum", most));
        let allowed = lower.into_iter().chain(upper).collect::<Vec<_>>().join(" and ");
        problems.push(Problem::new(path, format!("`{value}` is out of range")).allowed(allowed));
    }
}
