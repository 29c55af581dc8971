//! The lists of keys of the book, made from the schemas of the inputs: `docs/keys/`. A test compares them;
//! `INSTA_UPDATE=always cargo test -p zellige --lib keys` writes them anew, as it does snapshots.

use std::collections::btree_map::Entry::Occupied;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use serde_json::{Map, Value};

use crate::solvers::SOLVERS;

/// Units as comments of keys have them, after a comma: `Time step, s.`
const UNITS: &str = "m|s|K|kg|1/m^3|m^-3|m/s|kg/s per metre of depth|Pa|keV|rad|degrees|\
    pixels|pixels of the detector|wavelengths|photons|counts|1/w_n|w_n|c/w_n|w_n/c|c/w_n or 1/w_n|n_0|e|m_e|m_e c^2|m_e c w_n/e";

/// The unit in a description, and the description without it.
fn unit(text: &str) -> (&str, String) {
    let places = text.match_indices(", ").map(|(i, _)| i);
    let found = places.filter_map(|i| {
        let rest = &text[i + 2..];
        // A comma, colon, semicolon or stop ends it, and `, e.g. ` is no unit.
        let ends = |rest: &str| {
            rest.is_empty() || rest.starts_with(" (") || [". ", ": ", "; ", ", "].iter().any(|end| rest.starts_with(end)) || rest == "."
        };
        let stands = |u: &&str| rest.strip_prefix(*u).is_some_and(ends);
        UNITS.split('|').find(stands).map(|u| (i, u))
    });
    match found.min_by_key(|(i, _)| *i) {
        Some((i, unit)) => (unit, format!("{}{}", &text[..i], &text[i + 2 + unit.len()..])),
        None => ("", text.to_owned()),
    }
}

/// The name of a type that a schema refers to.
fn name(schema: &Value) -> Option<&str> {
    schema.get("$ref").and_then(Value::as_str)?.rsplit('/').next()
}

fn list<'a>(schema: &'a Value, key: &str) -> &'a [Value] {
    schema.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(schema: &'a Value, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

/// A list under way: its entries, and where each type, and each key of a table with its schema, was told first.
struct List<'a> {
    definitions: &'a Map<String, Value>,
    told: BTreeMap<&'a str, String>,
    tables: BTreeMap<(&'a str, String), String>,
    entries: Vec<Entry>,
}

/// An entry: keys of one kind and unit.
#[derive(Debug, PartialEq)]
struct Entry {
    /// Keys, with `=` and their default where they have one.
    keys: Vec<String>,
    required: bool,
    /// Kind and unit.
    value: String,
    meaning: String,
    /// Entry that a like one may join.
    short: bool,
}

impl<'a> List<'a> {
    fn new(schema: &'a Value) -> Self {
        let definitions = schema["$defs"].as_object().expect("the types of the schema");
        Self { definitions, told: BTreeMap::new(), tables: BTreeMap::new(), entries: Vec::new() }
    }

    /// Adds an entry, to the one before if both are short, of one table and alike.
    fn push(&mut self, entry: Entry) {
        let parent = |key: &str| key.split('=').next().and_then(|path| path.rsplit_once('.')).map(|(parent, _)| parent.to_owned());
        let alike = |last: &&mut Entry| {
            let alike = last.value == entry.value && last.required == entry.required;
            last.short && entry.short && alike && parent(&last.keys[0]) == parent(&entry.keys[0])
        };
        match self.entries.last_mut().filter(alike) {
            Some(last) => {
                last.keys.extend(entry.keys);
                // Names of like tables, or of many components, say enough.
                let told = last.value.starts_with("as ") || last.keys.len() > 3;
                last.meaning = if told { String::new() } else { format!("{} {}", last.meaning, entry.meaning) };
            }
            None => self.entries.push(entry),
        }
    }

    /// The list as a table of three columns.
    fn lines(&self) -> String {
        let mut lines = String::from("|Key|Value|Meaning|\n|---|---|---|\n");
        let bar = |text: &str| text.replace('|', "\\|");
        for Entry { keys, required, value, meaning, .. } in &self.entries {
            let around = if *required { "**" } else { "" };
            let keys: Vec<_> = keys.iter().map(|key| format!("{around}`{key}`{around}")).collect();
            let _ = writeln!(lines, "|{}|{}|{}|", keys.join(", "), bar(value), bar(meaning));
        }
        lines
    }

    fn resolve(&self, schema: &'a Value) -> &'a Value {
        name(schema).map_or(schema, |name| &self.definitions[name])
    }

    /// Alternatives of a value, each of one kind, without `null`.
    fn alternatives(&self, schema: &'a Value) -> Vec<&'a Value> {
        let schema = self.resolve(schema);
        let mut listed = list(schema, "anyOf").iter().chain(list(schema, "oneOf")).peekable();
        match schema.get("type") {
            _ if listed.peek().is_some() => listed.flat_map(|s| self.alternatives(s)).collect(),
            Some(only) if only == "null" => vec![],
            _ => vec![schema],
        }
    }

    /// Kinds and ranges of the values: fixed values first, but for those that the meaning lists.
    fn kind(&self, schema: &'a Value, listed: bool) -> String {
        let (mut fixed, mut kinds): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        if name(schema) == Some("Schedule") || list(schema, "anyOf").iter().any(|part| name(part) == Some("Schedule")) {
            return "[schedule](../guide/input.md#the-run-and-output-tables)".into();
        }
        let parts = self.alternatives(schema);
        let mut more = false;
        for part in &parts {
            let constants = list(part, "enum").iter().chain(part.get("const"));
            let before = fixed.len();
            if listed && part.get("const").is_some() && says_more(part) {
                more = true;
                continue;
            }
            fixed.extend(constants.filter(|c| !c.is_null()).map(|c| format!("`{c}`")));
            if fixed.len() > before {
                continue;
            }
            let types = match part.get("type") {
                Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
                Some(Value::String(one)) => vec![one.as_str()],
                _ => vec![],
            };
            for one in types.into_iter().filter(|t| *t != "null") {
                let kind = self.word(one, part, listed);
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            }
        }
        let mut all = [fixed, kinds].concat();
        // Others follow with their meanings.
        if more && !all.is_empty() {
            all.push("..".into());
        }
        all.join("/")
    }

    /// Kinds of what may stand in place of a list, each with a stroke behind it.
    fn beside_list(&self, schema: &'a Value) -> String {
        let mut kinds: Vec<String> = Vec::new();
        for part in self.alternatives(schema).into_iter().filter(|part| part.get("items").is_none()) {
            let kind = self.kind(part, true) + "/";
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds.concat()
    }

    /// A kind in words.
    fn word(&self, kind: &str, schema: &'a Value, listed: bool) -> String {
        let count = |key| schema.get(key).and_then(Value::as_u64);
        match kind {
            "boolean" => "boolean".into(),
            "string" => "text".into(),
            "integer" => format!("integer{}", range(schema)),
            "number" => format!("number{}", range(schema)),
            "array" => {
                let item = schema.get("items").map(|items| self.kind(items, listed)).unwrap_or_default();
                match (count("minItems"), count("maxItems")) {
                    (Some(n), Some(most)) if n == most && item.starts_with('[') => format!("[{}]", vec![item; n as usize].join(", ")),
                    (Some(n), Some(most)) if n == most && !item.chars().all(char::is_alphabetic) => format!("[{n} times {item}]"),
                    (Some(n), Some(most)) if n == most => format!("[{n} {item}s]"),
                    _ if item.is_empty() => "list".into(),
                    _ if item.starts_with("`\"") => format!("list of {item}"),
                    _ if item == "table" => "tables".into(),
                    _ if item.chars().all(char::is_alphabetic) => format!("[{item}s]"),
                    _ => format!("[{item}, ..]"),
                }
            }
            _ if properties(schema).is_none() => "table by name".into(),
            _ => "table".into(),
        }
    }

    /// The key whose fixed value tells one table from another, and that value.
    fn tag(&self, schema: &'a Value) -> Option<(&'a str, &'a Value)> {
        properties(schema)?.iter().find_map(|(key, s)| Some((key.as_str(), self.resolve(s).get("const")?)))
    }

    /// Entries of all keys of a table; `prefix` stands before their names, `of` before their meanings.
    fn keys(&mut self, schema: &'a Value, prefix: &str, of: &str, among: bool) {
        // The key by which a table is told from other values is not required: it is one choice.
        let needed = if among && list(schema, "required").len() == 1 { &[] } else { list(schema, "required") };
        for (key, value) in properties(schema).into_iter().flatten() {
            if self.resolve(value).get("const").is_none() {
                // Of a shape that is one key, its own description.
                let about = if among && needed.is_empty() { text(schema, "description") } else { "" };
                let about = [text(value, "description"), about, text(self.resolve(value), "description")];
                let about = about.into_iter().find(|about| !about.is_empty()).unwrap_or_default();
                let (path, required) = (format!("{prefix}{key}"), needed.iter().any(|k| k == key));
                // Of like tables the first tells what a key means.
                let long = text(value, "description").split_whitespace().count() > 4;
                match self.tables.entry((key, format!("{required} {value}"))) {
                    Occupied(first) if long => {
                        let value = format!("as in `{}`", first.get());
                        self.push(Entry { keys: vec![path], required, value, meaning: String::new(), short: true });
                    }
                    entry => {
                        entry.or_insert_with(|| prefix.trim_end_matches('.').to_owned());
                        self.key(&path, value, required, &format!("{of}{about}"));
                    }
                }
            }
        }
    }

    /// The entry of a key, and those of the keys inside.
    fn key(&mut self, path: &str, schema: &'a Value, needed: bool, about: &str) {
        let about = about.split_whitespace().collect::<Vec<_>>().join(" ");
        let (unit, mut meaning) = unit(&about);
        let inner = self.inner(schema);
        let mut kind = self.kind(schema, true);
        // A type is told once.
        let known = inner.name.and_then(|name| self.told.get(name)).cloned();
        let repeated = known.filter(|_| !inner.is_plain());
        if let Some(first) = &repeated {
            kind = match inner.container {
                "[]" => format!("{}[as `{first}`, ..]", self.beside_list(schema)),
                ".NAME" => format!("by name, as `{first}`"),
                _ => format!("as `{first}`"),
            };
        } else {
            for value in inner.values.iter().filter(|value| says_more(value)) {
                let _ = write!(meaning, "<br>`{}`: {}", value["const"], text(value, "description"));
            }
        }
        let default = match schema.get("default") {
            _ if needed => String::new(),
            Some(Value::Null | Value::Object(_)) | None => String::new(),
            Some(Value::Array(items)) if items.is_empty() => String::new(),
            Some(value) => format!("={value}"),
        };
        // Kinds that unit or default tell need no word, and the keys of a table follow.
        let plain =
            ["number", "integer", "boolean", "text"].contains(&kind.as_str()) || (kind.starts_with('[') && kind.ends_with("numbers]"));
        if kind == "table" || kind == "tables" || kind == "number" || (plain && !default.is_empty()) {
            kind.clear();
        } else if let Some(range) = kind.strip_prefix("integer ").or(kind.strip_prefix("number ")).filter(|_| !default.is_empty()) {
            kind = range.to_owned();
        }
        let value = [&kind, unit].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
        let words: Vec<&str> = meaning.split_whitespace().collect();
        let plain = repeated.is_some() || inner.is_plain();
        // A table that is told by its keys needs no entry.
        if plain || words.len() > 4 || !value.is_empty() || !default.is_empty() || needed {
            let short = plain && words.len() <= 6 && !meaning.starts_with('`');
            self.push(Entry { keys: vec![format!("{path}{default}")], required: needed, value, meaning: words.join(" "), short });
        }
        if repeated.is_none() {
            if let Some(name) = inner.name {
                self.told.entry(name).or_insert_with(|| path.to_owned());
            }
            let tags =
                inner.tables.iter().filter_map(|(_, table)| self.tag(table).map(|(key, value)| (key, value, text(table, "description"))));
            let tags: Vec<_> = tags.collect();
            if let Some((key, ..)) = tags.first() {
                let meanings: Vec<String> = tags.iter().map(|(_, value, told)| format!("`{value}`: {told}")).collect();
                let meaning = meanings.join("<br>").split_whitespace().collect::<Vec<_>>().join(" ");
                self.push(Entry { keys: vec![format!("{path}.{key}")], required: true, value: String::new(), meaning, short: false });
            }
            let several = self.alternatives(schema).len() > 1;
            for (suffix, table) in inner.tables {
                let of = self.tag(table).map(|(_, value)| format!("{value}: ")).unwrap_or_default();
                self.keys(table, &format!("{path}{suffix}."), &of.replace('"', "`"), several);
            }
        }
    }

    /// Contents of a value: tables with what stands between their keys and the value's own, and named values.
    fn inner(&self, schema: &'a Value) -> Inner<'a> {
        let mut inner = Inner { name: name(schema), ..Inner::default() };
        for part in self.alternatives(schema) {
            if properties(part).is_some() {
                inner.tables.push((String::new(), part));
            } else if part.get("const").is_some() && part.get("description").is_some() {
                inner.values.push(part);
            } else if let Some(of) = part.get("additionalProperties").filter(|of| of.is_object()).or_else(|| part.get("items")) {
                let mark = if part.get("items").is_some() { "[]" } else { ".NAME" };
                let below = self.inner(of);
                if inner.name.is_none() {
                    (inner.name, inner.container) = (below.name, mark);
                }
                inner.tables.extend(below.tables.into_iter().map(|(suffix, table)| (format!("{mark}{suffix}"), table)));
                inner.values.extend(below.values);
            } else {
                continue;
            }
            inner.name = inner.name.or_else(|| list(schema, "anyOf").iter().find_map(name));
        }
        inner
    }
}

#[derive(Default)]
struct Inner<'a> {
    /// The type that all this belongs to.
    name: Option<&'a str>,
    /// Container of several of them: a list, `[]`, or a table by name, `.NAME`.
    container: &'static str,
    tables: Vec<(String, &'a Value)>,
    values: Vec<&'a Value>,
}

impl Inner<'_> {
    fn is_plain(&self) -> bool {
        self.tables.is_empty() && self.values.is_empty()
    }
}

/// Returns true if a fixed value has more to be told than its name: a description of one or two words has not.
fn says_more(value: &Value) -> bool {
    text(value, "description").split_whitespace().count() > 2
}

/// ` 1-8`, ` >0`; integers that are not negative are nothing to be told.
fn range(schema: &Value) -> String {
    let value = |key| schema.get(key).map(|bound| bound.to_string().trim_end_matches(".0").to_owned());
    let bound = |key, sign: &str| value(key).map(|bound| format!(" {sign}{bound}"));
    match (value("minimum"), value("maximum")) {
        (Some(least), Some(most)) => return format!(" {least}-{most}"),
        (Some(least), None) if least == "0" && schema["minimum"].is_u64() => return String::new(),
        _ => {}
    }
    let least = bound("minimum", ">=").or_else(|| bound("exclusiveMinimum", ">"));
    let most = bound("maximum", "<=").or_else(|| bound("exclusiveMaximum", "<"));
    [least, most].into_iter().flatten().collect()
}

/// The line that says how a page came about.
const MADE: &str = "<!-- Made by `INSTA_UPDATE=always cargo test -p zellige --lib keys`. -->";

/// Notes on reading a list.
const NOTES: &str = "\
Bold keys are required. `[]` stands for an entry of a list, as in `[[ptycho.scan]]`, `NAME` for a name of one's own. The
default follows `=`; values are numbers or tables unless their kind is given, before the unit. Texts are
[expressions](../guide/input.md#expressions) where the meaning says so.";

/// The page of a solver's own table.
fn page(solver: &str, schema: &Value) -> String {
    let mut keys = List::new(schema);
    let config = keys.resolve(&schema["properties"][solver]);
    keys.keys(config, "", "", false);
    let about = text(config, "description").split_whitespace().collect::<Vec<_>>().join(" ");
    format!("# Keys of `[{solver}]`\n\n{MADE}\n\n{about} Keys are [read like this](shared.md).\n\n{}", keys.lines())
}

/// The page of the tables that all solvers share.
fn shared(schema: &Value) -> String {
    let mut keys = List::new(schema);
    for key in ["run", "output"] {
        let config = keys.resolve(&schema["properties"][key]);
        keys.keys(config, &format!("{key}."), "", false);
    }
    format!("# Keys of `[run]` and `[output]`\n\n{MADE}\n\n{NOTES}\n\n{}", keys.lines())
}

#[test]
fn the_lists_of_keys_are_those_of_the_schemas() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/keys");
    let mut pages: Vec<_> = SOLVERS.iter().map(|s| (s.name(), page(s.name(), &s.schema()))).collect();
    pages.push(("shared", shared(&SOLVERS[0].schema())));
    let renew = std::env::var("INSTA_UPDATE").is_ok_and(|v| v == "always");
    for (name, made) in pages {
        let path = folder.join(name).with_extension("md");
        if renew {
            zellige_engine::files::atomic_write(&path, |out| std::io::Write::write_all(out, made.as_bytes())).unwrap();
        }
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        let differ = made.lines().zip(there.lines().chain(std::iter::repeat(""))).find(|(made, there)| made != there);
        assert!(
            made == there,
            "docs/keys/{name}.md is not of the schema: `INSTA_UPDATE=always cargo test -p zellige --lib keys`\n{differ:#?}"
        );
    }
}

/// All names of keys of a type, and of the types in it.
fn names(schema: &Value, into: &mut BTreeSet<String>) {
    match schema {
        Value::Object(map) => {
            into.extend(properties(schema).into_iter().flat_map(|keys| keys.keys().cloned()));
            map.values().for_each(|inside| names(inside, into));
        }
        Value::Array(items) => items.iter().for_each(|inside| names(inside, into)),
        _ => {}
    }
}

#[test]
fn no_key_is_left_out() {
    for solver in SOLVERS {
        let schema = solver.schema();
        let mut keys = BTreeSet::new();
        names(&schema["$defs"], &mut keys);
        let pages = page(solver.name(), &schema) + &shared(&schema).replace("`run.", "`").replace("`output.", "`");
        let entries = || pages.lines().filter(|line| line.starts_with("|`") || line.starts_with("|**`"));
        let told = entries()
            .flat_map(named)
            .filter_map(|key| key.split('=').next())
            .flat_map(|key| key.split('.'))
            .map(|name| name.trim_end_matches("[]").to_owned());
        let told: BTreeSet<String> = told.filter(|name| name != "NAME").collect();
        assert_eq!(keys, told, "{}", solver.name());
        assert!(entries().all(|line| !line.ends_with("|||")), "neither a value nor a meaning");
    }
}

/// The keys of an entry, in its first column.
fn named(line: &str) -> impl Iterator<Item = &str> {
    line.split('|').nth(1).unwrap_or_default().split('`').skip(1).step_by(2)
}

#[test]
fn a_unit_is_found_after_a_comma() {
    assert_eq!(unit("Time step, s: a fraction."), ("s", "Time step: a fraction.".into()));
    assert_eq!(unit("Fields, e.g. E, m_e c w_n/e."), ("m_e c w_n/e", "Fields, e.g. E.".into()));
    assert_eq!(unit("Inflow, kg/s per metre of depth (net)."), ("kg/s per metre of depth", "Inflow (net).".into()));
    assert_eq!(unit("The mean, mostly."), ("", "The mean, mostly.".into()));
}
