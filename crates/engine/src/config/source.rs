//! Conversion of text to values, with the position of every key and with overrides.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{LENGTH_LIMIT, json, toml_text, yaml};
use crate::error::{Error, Problem, Result};
use crate::files;

/// Line and column, from 1, of each key and list entry by its path: `poisson.grid.nodes[0]`.
pub type Positions = BTreeMap<String, (usize, usize)>;

/// The language of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `.toml`
    Toml,
    /// `.yaml` or `.yml`
    Yaml,
    /// `.json`
    Json,
}

impl Format {
    /// The format that the ending of `path` means.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "toml" => Some(Self::Toml),
            "yaml" | "yml" => Some(Self::Yaml),
            "json" => Some(Self::Json),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Toml => "TOML",
            Self::Yaml => "YAML",
            Self::Json => "JSON",
        }
    }
}

/// An input as read, not yet checked.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file as the user named it.
    pub origin: String,
    /// The folder that relative paths in it refer to.
    pub folder: PathBuf,
    /// The values, a table at the top.
    pub value: Value,
    positions: Positions,
    overrides: BTreeSet<String>,
    /// Positions are told to nobody.
    unseen: bool,
}

impl Source {
    /// Reads a file; the format follows from its ending.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let origin = path.display().to_string();
        if path.is_dir() {
            let folder = std::io::Error::new(std::io::ErrorKind::IsADirectory, "this is a folder, not an input file");
            return Err(Error::file("read", path, folder));
        }
        let Some(format) = Format::of(path) else {
            let problem = Problem::new("", "the ending of the file does not identify its format").allowed(".toml, .yaml, .yml, .json");
            return Err(Error::input(origin, problem));
        };
        let text = files::read_text(path, format.name(), LENGTH_LIMIT)?;
        let mut source = Self::parse(&text, format, origin)?;
        source.folder = path.parent().map(Path::to_owned).unwrap_or_default();
        Ok(source)
    }

    /// The values as TOML.
    pub fn toml(&self) -> Result<String> {
        let table = toml::Value::try_from(&self.value).and_then(|value| toml::to_string_pretty(&value));
        table.map_err(|e| Error::input(&self.origin, Problem::new("", format!("the input cannot be written as TOML: {e}"))))
    }

    /// Reads a text. Relative paths in it refer to the current folder.
    pub fn parse(text: &str, format: Format, origin: impl Into<String>) -> Result<Self> {
        let origin = origin.into();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let parsed = match format {
            Format::Toml => toml_text::parse(text),
            Format::Yaml => yaml::parse(text),
            Format::Json => json::parse(text),
        };
        let (value, positions) = parsed.map_err(|problems| Error::Input { origin: origin.clone(), problems })?;
        if !value.is_object() {
            return Err(Error::input(origin, Problem::new("", "the input must be a table at its top level")));
        }
        Ok(Self { origin, folder: PathBuf::new(), value, positions, overrides: BTreeSet::new(), unseen: false })
    }

    /// Names problems by their keys alone: nobody has seen the text, which a program made.
    #[must_use]
    pub fn unseen(self) -> Self {
        Self { unseen: true, ..self }
    }

    /// Carries out `key=value` overrides. The value is read as TOML and, if it is none, as a text: `grid.nodes=[65, 65]`,
    /// `method=sor`. The key leads through tables and lists, whose entries have numbers from 0 (`species.1.charge` or
    /// `species[1].charge`). Tables that are not there are made; the number one past the last entry of a list adds one,
    /// and `0` makes a list where there is nothing.
    pub fn set<T: AsRef<str>>(&mut self, overrides: &[T]) -> Result<()> {
        let problems: Vec<Problem> = overrides.iter().filter_map(|o| self.set_one(o.as_ref()).err()).collect();
        if problems.is_empty() { Ok(()) } else { Err(Error::Input { origin: "--set".into(), problems }) }
    }

    fn set_one(&mut self, text: &str) -> Result<(), Problem> {
        let Some((path, written)) = text.split_once('=') else {
            return Err(Problem::new("", format!("`{text}` has no `=`")).allowed("key=value, for example `run.seed=7`"));
        };
        let (path, written) = (path.trim(), written.trim());
        let Some(keys) = keys(path).filter(|keys| keys.len() <= super::NESTING_LIMIT) else {
            let problem = Problem::new(path, format!("`{path}` is not the path of a key"));
            return Err(problem.allowed("names with dots between them, entries of lists by number: `output.formats.0`"));
        };
        // On a copy: an override that is refused changes nothing.
        let (mut value, mut at) = (self.value.clone(), String::new());
        let mut spot = &mut value;
        for key in keys {
            spot = enter(spot, key, &mut at)?;
        }
        *spot = toml_text::value(written).unwrap_or_else(|| Value::String(written.to_owned()));
        self.value = value;
        self.positions.retain(|position, _| !below(position, &at));
        self.overrides.insert(at);
        Ok(())
    }

    /// Line and column of a key, or of the innermost table around it in the file.
    pub fn position(&self, path: &str) -> Option<(usize, usize)> {
        if self.unseen || self.is_override(path) {
            return None;
        }
        let mut path = path;
        loop {
            if let Some(position) = self.positions.get(path) {
                return Some(*position);
            }
            path = &path[..path.rfind(['.', '['])?];
        }
    }

    /// Returns true if the value of a key was given by an override, or a table of which the file has nothing.
    pub(super) fn is_override(&self, path: &str) -> bool {
        let is_new = |set: &String| below(set, path) && !self.positions.keys().any(|position| below(position, path));
        self.overrides.iter().any(|set| below(path, set) || is_new(set))
    }
}

/// Returns true if `path` is `top` or lies inside it.
fn below(path: &str, top: &str) -> bool {
    path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// The keys of a path, `a.1.b` or `a[1].b`; `None` where one is empty.
fn keys(path: &str) -> Option<Vec<&str>> {
    let mut keys = Vec::new();
    for part in path.split('.') {
        let (name, entries) = part.trim().split_at(part.trim().find('[').unwrap_or(part.trim().len()));
        keys.push(Some(name.trim()).filter(|name| !name.is_empty())?);
        if !entries.is_empty() {
            let numbers = entries.strip_prefix('[')?.strip_suffix(']')?.split("][");
            keys.extend(numbers.map(|n| index(n.trim()).map(|_| n.trim())).collect::<Option<Vec<_>>>()?);
        }
    }
    Some(keys)
}

/// A number of digits alone.
fn index(key: &str) -> Option<usize> {
    key.bytes().all(|b| b.is_ascii_digit()).then(|| key.parse().ok()).flatten()
}

/// Follows `key` from `value` and returns the entry, null where it did not exist; appends the key to `at`, the path so far.
fn enter<'a>(value: &'a mut Value, key: &str, at: &mut String) -> Result<&'a mut Value, Problem> {
    if value.is_null() {
        *value = match index(key) {
            Some(0) => Value::Array(Vec::new()),
            Some(_) => {
                let problem = Problem::new(join(at, key), format!("there is no list `{at}` yet"));
                return Err(problem.allowed(format!("`{at}.0`, its first entry")));
            }
            None => Value::Object(Map::new()),
        };
    }
    match value {
        Value::Object(map) => {
            *at = join(at, key);
            Ok(map.entry(key).or_insert(Value::Null))
        }
        Value::Array(entries) => {
            let count = entries.len();
            let Some(index) = index(key).filter(|i| *i <= count) else {
                let of = if count == 1 { "entry" } else { "entries" };
                let problem = Problem::new(join(at, key), format!("`{at}` is a list of {count} {of}, and `{key}` is the number of none"));
                return Err(problem.allowed(if count == 0 {
                    "0, which adds the first".into()
                } else {
                    format!("0 to {count}; {count} adds one")
                }));
            };
            if index == count {
                entries.push(Value::Null);
            }
            *at = format!("{at}[{index}]");
            Ok(&mut entries[index])
        }
        _ => Err(Problem::new(at.as_str(), format!("`{at}` is neither a table nor a list, so nothing can be set inside it"))),
    }
}

/// `table.key`, or `key` at the top.
pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// A problem with its position in the text.
pub(super) fn problem_at(position: (usize, usize), path: &str, message: impl Into<String>) -> Problem {
    Problem { position: Some(position), ..Problem::new(path, message) }
}
