//! The input file: TOML, YAML or JSON by its ending, into the same typed tables.
//!
//! ```toml
//! [run]            # device, threads, seed, limits: RunConfig
//! [output]         # where, what and when to write: OutputConfig
//! [poisson]        # the table named after the solver decides for the solver: its `Config`
//! ```
//!
//! A file is read in four steps: text to values with the place of each key ([`Source`]), overrides (`--set a.b=3`), a
//! check of all values against the schema of the typed tables, which reports every problem at once, and the typed
//! tables themselves with the solver's own check.

mod json;
mod schema;
mod source;
mod tables;
mod toml_text;
mod yaml;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Problem, Result};
use crate::sim::Solver;

pub use source::{Format, Positions, Source};
pub use tables::{FileFormat, OutputConfig, RunConfig};

/// Longest input file, bytes: data belongs into data files.
pub const LENGTH_LIMIT: u64 = 4 << 20;
/// Tables and lists inside one another.
pub const NESTING_LIMIT: usize = 32;

/// Tables that every solver shares.
const SHARED: [&str; 2] = ["run", "output"];

/// A checked input.
#[derive(Debug, Clone)]
pub struct Input<C> {
    /// The file as the user named it, or `command line`.
    pub origin: String,
    /// The folder that relative paths in the input refer to.
    pub folder: PathBuf,
    /// The solver's table.
    pub config: C,
    /// Table `[run]`.
    pub run: RunConfig,
    /// Table `[output]`.
    pub output: OutputConfig,
}

/// Reads and checks the input `path` for one solver: [`Source::read`], [`Source::set`] and [`Source::typed`] in a row.
pub fn load<S: Solver>(path: impl AsRef<Path>, overrides: &[String]) -> Result<Input<S::Config>> {
    let mut source = Source::read(path)?;
    source.set(overrides)?;
    source.solver(&[S::NAME])?;
    source.typed::<S>()
}

impl Source {
    /// Finds the solver among the `known` ones that the input is for: the one that has a table. Anything at the top level other
    /// than the table of a solver, `[run]` or `[output]` is refused.
    pub fn solver<'a>(&self, known: &[&'a str]) -> Result<&'a str> {
        let top = self.value.as_object();
        let keys = || top.into_iter().flat_map(|t| t.keys()).map(String::as_str);
        let mut problems: Vec<Problem> = keys()
            .filter(|key| !known.contains(key) && !SHARED.contains(key))
            .map(|key| schema::unknown_key("", key, known.iter().chain(&SHARED).copied()))
            .collect();
        let found: Vec<&'a str> = known.iter().copied().filter(|k| keys().any(|key| key == *k)).collect();
        let tables = known.iter().map(|k| format!("[{k}]")).collect::<Vec<_>>().join(", ");
        match found[..] {
            [solver] if problems.is_empty() => return Ok(solver),
            [_] => {}
            [] if top.is_some_and(serde_json::Map::is_empty) => {
                problems.push(Problem::new("", "the input is empty").allowed(format!("one of the tables {tables}")));
            }
            [] => problems.push(
                Problem::new("", "no table says which solver to run")
                    .allowed(format!("one of {tables}"))
                    .hint("`zellige new` writes examples"),
            ),
            [first, second, ..] => {
                // Of a queue all inputs get the same keys.
                let set = [first, second].into_iter().find(|table| self.is_override(table));
                let hint = set.map_or_else(
                    || "split it into two files".into(),
                    |set| format!("this file is for another one than `{set}`: leave `--set {set}...` out, or run it by itself"),
                );
                let at = set.unwrap_or(second);
                problems.push(Problem::new(at, "one input is for one solver").allowed(format!("one of {tables}")).hint(hint));
            }
        }
        Err(self.problems(problems))
    }

    /// Checks everything and gives the typed tables of the solver `S`.
    pub fn typed<S: Solver>(&self) -> Result<Input<S::Config>> {
        let empty = Value::Object(serde_json::Map::new());
        let table = |name: &str| self.value.get(name).unwrap_or(&empty);
        // Each table by itself: what one has wrong does not hide what others have.
        let config = schema::checked::<S::Config>(table(S::NAME), S::NAME);
        let run = schema::checked::<RunConfig>(table("run"), "run");
        let output = schema::checked::<OutputConfig>(table("output"), "output");
        // The solver may say more than that numbers are out of range.
        let with_ranges = |problems: &Vec<Problem>| {
            let more = S::Config::deserialize(table(S::NAME)).map_or_else(|_| Vec::new(), |config| check_solver::<S>(&config));
            let new = more.into_iter().filter(|problem| problems.iter().all(|p| p.path != problem.path));
            problems.iter().cloned().chain(new).collect()
        };
        let found = [
            config.as_ref().map_or_else(with_ranges, check_solver::<S>),
            run.as_ref().map_or_else(Clone::clone, RunConfig::check),
            output.as_ref().map_or_else(Clone::clone, OutputConfig::check),
        ];
        match (config, run, output) {
            (Ok(config), Ok(run), Ok(output)) if found.iter().all(Vec::is_empty) => {
                let folder = run.data_folder.as_ref().map_or_else(|| self.folder.clone(), |f| self.folder.join(f));
                Ok(Input { origin: self.origin.clone(), folder, config, run, output })
            }
            _ => Err(self.problems(found.concat())),
        }
    }

    /// An error made of problems, each with its line and column, in the order of the file.
    pub fn problems(&self, mut problems: Vec<Problem>) -> Error {
        for problem in &mut problems {
            if problem.position.is_none() {
                problem.position = self.position(&problem.path);
            }
            if self.is_override(&problem.path) {
                problem.message.push_str(" (given by `--set`)");
            }
        }
        problems.sort_by_key(|p| p.position.unwrap_or((usize::MAX, 0)));
        // Of a pair of equal numbers both are wrong.
        problems.dedup();
        Error::Input { origin: self.origin.clone(), problems }
    }
}

/// Finds what the schema forbids in a table, ranges above all, and numbers that are not finite. A solver's check begins with
/// this, for tables that are not from a file.
pub fn faults<T: JsonSchema + Serialize>(table: &T) -> Vec<Problem> {
    let value = match toml::Value::try_from(table) {
        Ok(value) => value,
        Err(e) => return vec![Problem::new("", e.to_string())],
    };
    let mut problems = Vec::new();
    not_finite(&value, "", &mut problems);
    if problems.is_empty() {
        problems = schema::check::<T>(&serde_json::json!(value), "");
    }
    problems
}

fn not_finite(value: &toml::Value, path: &str, problems: &mut Vec<Problem>) {
    match value {
        toml::Value::Float(x) if !x.is_finite() => problems.push(Problem::new(path, format!("the value is {x}")).allowed("finite numbers")),
        toml::Value::Array(items) => items.iter().enumerate().for_each(|(i, item)| not_finite(item, &format!("{path}[{i}]"), problems)),
        toml::Value::Table(table) => table.iter().for_each(|(key, item)| not_finite(item, &source::join(path, key), problems)),
        _ => {}
    }
}

impl<C: Serialize> Input<C> {
    /// The solver's own check and that of the shared tables, with paths from the top of the file. An input that was not
    /// read from a file goes through this by itself.
    pub fn check<S: Solver<Config = C>>(&self) -> Vec<Problem> {
        let mut problems = check_solver::<S>(&self.config);
        problems.extend(self.run.check());
        problems.extend(self.output.check());
        problems
    }

    /// All three tables with every default filled in, as TOML: the content of `resolved.toml`. It may lie in another folder than
    /// the input: if that names files, `run.data_folder` says where they are.
    pub fn resolved<S: Solver<Config = C>>(&self) -> Result<String> {
        let failed =
            |e: toml::ser::Error| Error::input(&self.origin, Problem::new("", format!("the resolved input cannot be written: {e}")));
        let mut top = toml::Table::new();
        top.insert(S::NAME.to_owned(), toml::Value::try_from(&self.config).map_err(failed)?);
        let mut run = self.run.clone();
        if self.data_files::<S>()?.iter().any(|name| Path::new(name).is_relative()) {
            let folder = std::path::absolute(Path::new(".").join(&self.folder)).map_err(|e| Error::file("find", &self.folder, e))?;
            run.data_folder = Some(folder.to_string_lossy().into_owned());
        }
        top.insert("run".to_owned(), toml::Value::try_from(&run).map_err(failed)?);
        top.insert("output".to_owned(), toml::Value::try_from(&self.output).map_err(failed)?);
        toml::to_string_pretty(&top).map_err(failed)
    }

    /// Data files that the solver's table names and that are there, as it names them.
    pub fn data_files<S: Solver<Config = C>>(&self) -> Result<BTreeSet<String>> {
        let value = serde_json::to_value(&self.config).map_err(|e| Error::input(&self.origin, Problem::new(S::NAME, e.to_string())))?;
        Ok(data_files(&value, &self.folder))
    }
}

/// The solver's own check, with paths from the top of the file.
fn check_solver<S: Solver>(config: &S::Config) -> Vec<Problem> {
    let mut problems = S::check(config);
    for problem in &mut problems {
        problem.path = if problem.path.is_empty() { S::NAME.to_owned() } else { format!("{}.{}", S::NAME, problem.path) };
    }
    problems
}

/// The texts in a solver's table that name a file there is, relative to `folder` or not, without a dataset behind a colon. What a
/// solver reads stands in its input, so that no solver needs a list of its own.
pub(crate) fn data_files(value: &Value, folder: &Path) -> BTreeSet<String> {
    let is_file = |name: &str| !name.is_empty() && folder.join(name).is_file();
    let (mut left, mut names) = (vec![value], BTreeSet::new());
    while let Some(value) = left.pop() {
        match value {
            Value::String(text) => {
                let ends = text.match_indices(':').map(|(at, _)| at).chain([text.len()]);
                names.extend(ends.map(|end| &text[..end]).filter(|name| is_file(name)).map(str::to_owned));
            }
            Value::Array(list) => left.extend(list),
            Value::Object(table) => left.extend(table.values()),
            _ => {}
        }
    }
    names
}

/// The JSON schema of the whole input of a solver, for editors and for `zellige schema`.
pub fn schema<S: Solver>() -> Value {
    schema::whole::<S::Config>(S::NAME)
}

#[cfg(test)]
mod tests;
