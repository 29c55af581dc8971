//! Checkpoints of a run: beside the solver's state its input, what its data files held, and whether results are still to be
//! written.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{Options, Sink, checkpoint_path};
use crate::checkpoint::{Reader, Writer};
use crate::config::data_files;
use crate::error::{Error, Problem, Result};
use crate::files::{self, Fingerprints};
use crate::links::Links;
use crate::sim::{Ending, Environment, Outcome, Solver};

const INPUT: &str = "run.input";
const SEED: &str = "run.seed";
const FILES: &str = "run.files";
const PENDING: &str = "run.pending";

/// Results still to be written at the step of a checkpoint.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) enum PendingResults {
    /// No results.
    #[default]
    Nothing,
    /// Results scheduled during the run.
    Results,
    /// Results at the end of the run, with its outcome.
    End { ending: Ending, status: String, message: String },
}

impl PendingResults {
    /// Chooses between the results of the end and those during the run.
    pub(super) fn after(end: Option<&Outcome>) -> Self {
        end.map_or(Self::Results, |o| Self::End { ending: o.ending, status: o.status.to_owned(), message: o.message.clone() })
    }

    /// The end, if the run had reached it.
    pub(super) fn end(&self) -> Option<Outcome> {
        let Self::End { ending, status, message } = self else { return None };
        // A word of the solver's, once in a process.
        Some(Outcome { ending: *ending, status: status.clone().leak(), message: message.clone() })
    }
}

/// Saves a state by itself, as of a run without data files; the old checkpoint stays until the new one is whole.
pub fn save<S: Solver>(solver: &mut S, config: &S::Config, path: &Path) -> Result<()> {
    let files = Fingerprints::new();
    let saver = Saver::<S> { config: config.clone(), seed: None, files, path: path.to_owned(), links: Links::default() };
    saver.write(solver, &PendingResults::Nothing)?
}

/// Saves the state of one run.
pub(super) struct Saver<S: Solver> {
    config: S::Config,
    /// Seed of random numbers, where it is known.
    seed: Option<u64>,
    /// Fingerprints of the data files before the solver read them.
    files: Fingerprints,
    path: PathBuf,
    links: Links,
}

impl<S: Solver> Saver<S> {
    pub(super) fn new(config: &S::Config, environment: &Environment, options: &Options) -> Result<Self> {
        let value = serde_json::to_value(config).map_err(|e| Error::input("the input", Problem::new(S::NAME, e.to_string())))?;
        let files = files::fingerprints(&environment.folder, data_files(&value, &environment.folder));
        let files = environment.links.together(files)?;
        let contents: Vec<String> = files.iter().map(|(name, content)| format!("{name}: {content}")).collect();
        environment.links.must_agree("the data", &contents.join("\n"))?;
        let path = checkpoint_path(options.checkpoint_folder());
        Ok(Self { config: config.clone(), seed: Some(environment.seed), files, path, links: environment.links.clone() })
    }

    /// Saves below another folder from now on.
    pub(super) fn save_in(&mut self, folder: &Path) {
        self.path = checkpoint_path(folder);
    }

    /// Saves below `folder` this once.
    pub(super) fn save_once_in(&mut self, folder: &Path, solver: &mut S, pending: &PendingResults, sink: &mut dyn Sink) -> Result<PathBuf> {
        let usual = std::mem::replace(&mut self.path, checkpoint_path(folder));
        let saved = self.save(solver, pending, sink);
        self.path = usual;
        saved
    }

    /// Returns true if its checkpoints are this file.
    pub(super) fn saves_at(&self, path: &Path) -> bool {
        self.path == path
    }

    /// Links of the run to its other parts.
    pub(super) fn links(&self) -> &Links {
        &self.links
    }

    /// Rows first: a run that is killed right after the checkpoint continues after rows that exist. `pending` says that the
    /// results of this step are still to be written.
    pub(super) fn save(&self, solver: &mut S, pending: &PendingResults, sink: &mut dyn Sink) -> Result<PathBuf> {
        rows_first(sink);
        self.write(solver, pending)?.map(|()| self.path.clone())
    }

    /// Writes the state; within the result is that of the file, which all parts share.
    ///
    /// # Errors
    /// The state has broken down, or that of a part of several cannot be told, for which the others wait: the run ends.
    fn write(&self, solver: &mut S, pending: &PendingResults) -> Result<Result<()>> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let created = if self.links.is_first() { files::create_dir(folder) } else { Ok(()) };
        let writer = self.links.follow_first(created).and_then(|()| Writer::of_parts(&self.links, &self.path, S::NAME));
        let (saved, ends) = match writer {
            Err(error) => (Err(error), false),
            Ok(mut writer) => {
                let sections = (|| {
                    writer.json(INPUT, &self.config)?;
                    writer.json(SEED, &self.seed)?;
                    writer.json(FILES, &self.files)?;
                    writer.json(PENDING, pending)?;
                    solver.save(&mut writer)
                })();
                let ends = sections.as_ref().is_err_and(|error| !self.links.is_alone() || matches!(error, Error::Numerics { .. }));
                (sections.and_then(|()| writer.finish()), ends)
            }
        };
        if saved.is_err() && self.links.is_first() {
            // Only if there is nothing in it.
            let _ = std::fs::remove_dir(folder);
        }
        let saved = saved.map(|_| ());
        if ends { saved.map(Ok) } else { Ok(saved) }
    }

    /// Saves the state, or tells why it could not be written: a full disk must not end a run whose state is whole in memory and,
    /// older, on disk.
    pub(super) fn save_or_notice(&self, solver: &mut S, sink: &mut dyn Sink) -> Result<()> {
        rows_first(sink);
        if let Err(error) = self.write(solver, &PendingResults::Nothing)? {
            sink.notice(&format!("this checkpoint could not be saved, the last one remains: {}", cause(&error)));
        }
        Ok(())
    }

    /// Converts an error that stopped the writing of results: the state is saved, so that they can be written without computing
    /// again.
    pub(super) fn unwritten_results(&self, error: Error, pending: &PendingResults, solver: &mut S, sink: &mut dyn Sink) -> Error {
        match (error, self.save(solver, pending, sink)) {
            (Error::Interrupted { reason, .. }, Ok(path)) => {
                Error::Interrupted { reason, step: solver.clock().step, checkpoint: Some(path) }
            }
            // The part that could not write tells it.
            (Error::Interrupted { .. }, Err(error)) | (error @ Error::Part { .. }, Ok(_)) => error,
            (error, Ok(checkpoint)) => Error::Unwritten { source: Box::new(error), step: solver.clock().step, checkpoint },
            // It names what broke down, which nothing saves.
            (error, Err(second @ Error::Numerics { .. })) => {
                sink.notice(&format!("there is no state to save either: {}", cause(&second)));
                error
            }
            (error, Err(second)) => {
                sink.notice(&format!("the state could not be saved either; `--checkpoint-dir` saves it elsewhere: {}", cause(&second)));
                error
            }
        }
    }

    /// Takes the checkpoint away: the run has ended and its results are there.
    pub(super) fn remove(&self) -> Result<()> {
        if !self.links.is_first() {
            return Ok(());
        }
        match std::fs::remove_file(&self.path) {
            // Of a disk that was full there is none.
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(Error::file("remove", &self.path, e)),
            _ => {}
        }
        let _ = std::fs::remove_dir(self.path.parent().unwrap_or(Path::new(".")));
        Ok(())
    }

    /// The checkpoint in a folder, or none where none is to be taken: the same for all parts.
    pub(super) fn open(&self, folder: Option<&PathBuf>) -> Result<Option<Reader>> {
        let reader = self.links.together(folder.map(|folder| Reader::open(checkpoint_path(folder), S::NAME)).transpose())?;
        let seal = reader.as_ref().map_or_else(|| "none".to_owned(), |reader| format!("one sealed {}", reader.seal()));
        self.links.must_agree("the checkpoint to resume from", &seal)?;
        Ok(reader)
    }

    /// Takes the state back; the input and the data files must be those that the checkpoint was made from, but for what
    /// [`Solver::may_change`] names. Tells what of the results of its step is still to be written.
    pub(super) fn restore(&self, solver: &mut S, reader: &Reader) -> Result<PendingResults> {
        let path = reader.path();
        let mut then: serde_json::Value = reader.json(INPUT)?;
        let mut now = serde_json::to_value(&self.config).map_err(|e| reader.content_error(e.to_string()))?;
        let same = then == now;
        for input in [&mut then, &mut now].into_iter().filter_map(serde_json::Value::as_object_mut) {
            input.retain(|key, _| !S::may_change().contains(&key.as_str()));
        }
        if then != now {
            return Err(reader.mismatch(format!("the checkpoint belongs to another input: {}", difference(&then, &now, S::NAME))));
        }
        if let (Some(then), Some(now)) = (reader.json::<Option<u64>>(SEED)?, self.seed)
            && then != now
        {
            return Err(reader.mismatch(format!("the checkpoint belongs to another input: `run.seed` was {then} and is {now}")));
        }
        let files: Fingerprints = reader.json(FILES)?;
        for (name, then) in &files {
            let happened = match self.files.get(name) {
                Some(now) if now == then => continue,
                Some(_) => "is not the one",
                None => "is not there any more",
            };
            let message = format!("the data file `{name}` {happened} that the checkpoint `{}` was computed with", path.display());
            let hint = "restore the earlier file, or start again without `--resume`";
            return Err(Error::input("command line", Problem::new("--resume", message).hint(hint)));
        }
        solver.restore(reader)?;
        if solver.progress() > 1.0 {
            let message =
                format!("the checkpoint `{}` is of {} {}, beyond the end of this input", path.display(), S::STEP, solver.clock().step);
            return Err(Error::input("command line", Problem::new("--resume", message).hint("give the input a later end")));
        }
        let pending = reader.json(PENDING)?;
        // More steps were asked for: what was the end is none.
        Ok(if same || !matches!(pending, PendingResults::End { .. }) { pending } else { PendingResults::Nothing })
    }
}

/// Writes rows ahead of a checkpoint, or tells why they could not be written.
fn rows_first(sink: &mut dyn Sink) {
    if let Err(error) = sink.saving() {
        sink.notice(&format!("not all rows before this checkpoint could be written: {error}"));
    }
}

/// Cause of a checkpoint that was not written, by which part.
fn cause(error: &Error) -> String {
    match error {
        Error::Part { part, host, message, .. } => {
            format!("part {part}{}: {message}", host.as_ref().map_or_else(String::new, |host| format!(" on {host}")))
        }
        error => error.to_string(),
    }
}

/// The first key in which two inputs differ.
fn difference(then: &serde_json::Value, now: &serde_json::Value, path: &str) -> String {
    if let (Some(a), Some(b)) = (then.as_object(), now.as_object()) {
        for key in a.keys().chain(b.keys()) {
            let (x, y) = (a.get(key).unwrap_or(&serde_json::Value::Null), b.get(key).unwrap_or(&serde_json::Value::Null));
            if x != y {
                return difference(x, y, &format!("{path}.{key}"));
            }
        }
    }
    if let (Some(a), Some(b)) = (then.as_array(), now.as_array())
        && a.len() == b.len()
        && let Some(k) = (0..a.len()).find(|k| a[*k] != b[*k])
    {
        return difference(&a[k], &b[k], &format!("{path}[{k}]"));
    }
    format!("`{path}` was {then} and is {now}")
}

/// Checkpoints of long runs that ask for none, removed at the end.
pub(super) struct TemporaryCheckpoint {
    every: Duration,
    next: Duration,
    saved: bool,
}

/// Temporary checkpoints take at most one part in this many of the wall time.
const SHARE: u32 = 20;

impl TemporaryCheckpoint {
    pub(super) fn new(every: Duration) -> Self {
        Self { every, next: every, saved: false }
    }

    /// Returns true if a checkpoint was saved.
    pub(super) fn saved(&self) -> bool {
        self.saved
    }

    /// Returns true if it is time for one, `wall` into the run.
    pub(super) fn due(&self, wall: Duration) -> bool {
        wall >= self.next
    }

    /// Saves one, `wall` into the run.
    pub(super) fn save<S: Solver>(&mut self, wall: Duration, saver: &Saver<S>, solver: &mut S, sink: &mut dyn Sink) -> Result<()> {
        let begun = Instant::now();
        saver.save_or_notice(solver, sink)?;
        let taken = saver.links.first_says(begun.elapsed())?;
        let pause = self.every.max(taken * SHARE);
        if !self.saved {
            sink.notice(&format!(
                "checkpoints are saved from now on, this one in {:.1} s and the next in {:.0} s, and removed at the end: `run.checkpoint_every` sets \
                 another interval, and \"never\" saves none",
                taken.as_secs_f64(),
                pause.as_secs_f64()
            ));
        }
        (self.next, self.saved) = (wall + taken + pause, true);
        Ok(())
    }
}
