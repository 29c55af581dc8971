//! A session on the way to the end of its run, with the files of the command line; it may pause between two steps.

use std::path::{Path, PathBuf};
use std::time::Instant;

use zellige_engine::error::Result;
use zellige_engine::lock::Lock;
use zellige_engine::profile::Profiler;
use zellige_engine::run::{Options, Sink};
use zellige_engine::signal::Signals;
use zellige_engine::sim::Solver;

use super::{Driven, State, ended, sunk};
use crate::commands::conclude::conclude_run;
use crate::commands::run::{self, Destination};
use crate::sink::Output;

/// Files of such a run, and what stops it.
pub(super) struct Files {
    pub(super) output: Output,
    options: Options,
    locks: Vec<Lock>,
    begun: Instant,
    /// None before the first step.
    signals: Option<Signals>,
}

impl Files {
    /// Returns true if they lie in `folder`.
    pub(super) fn are_in(&self, folder: &Path) -> bool {
        // It exists, and may be named otherwise or through a link.
        let whole = |path: &Path| std::fs::canonicalize(path).ok();
        whole(&self.options.folder).is_some_and(|own| whole(folder) == Some(own))
    }
}

impl<S: Solver> Driven<S> {
    /// Takes the folder of the results.
    fn files(&mut self) -> Result<Files> {
        let begun = Instant::now();
        let Destination { options, locks } = Destination::new::<S>(&self.input, &self.arguments)?;
        let output = run::output::<S>(&options.folder, &self.input, &self.arguments, &self.device)?;
        let output = output.going_on(std::mem::take(&mut self.series));
        Ok(Files { output, options, locks, begun, signals: None })
    }

    /// Runs to the end, or to the step that it pauses after.
    pub(super) fn run_to_end(&mut self, pause: Option<u64>) -> Result<Option<PathBuf>> {
        if self.running().is_none() {
            return Err(ended("its results are written"));
        }
        let mut files = self.files.take().map_or_else(|| self.files(), Ok)?;
        let (State::SetUp(mut running) | State::Stepping(mut running)) = std::mem::replace(&mut self.state, State::Lost) else {
            return Err(ended("its state was lost"));
        };
        let (state, profiler) = (&mut self.state, &mut self.profiler);
        let Files { output, options, begun, signals, .. } = &mut files;
        let result = sunk(&mut self.run, Some(output), self.page.as_mut(), |sink| {
            let work = (|| {
                let signals = match signals {
                    Some(signals) => {
                        signals.go_on();
                        signals
                    }
                    none => {
                        let signals = none.insert(Signals::listen_beside()?);
                        running.start(options, sink)?;
                        signals
                    }
                };
                let to = pause.unwrap_or(u64::MAX);
                let Some(outcome) = running.advance_to(to, signals, *begun, options.wall_time, profiler, sink)? else {
                    // Its limit is none of runs that are made in the meantime.
                    signals.rest();
                    return Ok(None);
                };
                let figures = running.write_results(&outcome, profiler, sink)?;
                Ok(Some((outcome, figures)))
            })();
            match work {
                Ok(Some((outcome, figures))) => {
                    *state = State::Ended(running.solver().clock(), outcome.clone());
                    running.summed_up(outcome, &figures, profiler).map(Some)
                }
                Ok(None) => {
                    *state = State::Stepping(running);
                    Ok(None)
                }
                // Results that could not be written are not lost: they can be elsewhere, or later.
                Err(error) => {
                    running.by_hand();
                    *state = State::Stepping(running);
                    Err(error)
                }
            }
        });
        let Some(result) = result.transpose() else {
            self.files = Some(files);
            return Ok(None);
        };
        let Files { mut output, options, locks, signals, .. } = files;
        drop(signals);
        self.series = output.take_series();
        if let Some(page) = &mut self.page {
            page.live.tell_cost(page.watcher.before(&mut output).cost());
            match &result {
                Ok(_) => page.live.tell_end(&result),
                Err(error) => page.tell_error(error),
            }
        }
        // A run that goes on keeps the times of its stages.
        let profiler = if result.is_ok() { std::mem::replace(&mut self.profiler, Profiler::new()) } else { Profiler::new() };
        let (origin, folder) = (self.input.origin.clone(), options.folder.clone());
        conclude_run::<S>(result, &origin, &self.plan, &folder, output, profiler, &self.arguments, locks)?;
        Ok(Some(folder))
    }

    /// Ends the files of a run that pauses, with its state where that is to be saved.
    pub(super) fn end_files(&mut self, save: bool) -> Result<()> {
        let Some(Files { mut output, locks, signals, .. }) = self.files.take() else { return Ok(()) };
        drop(signals);
        let saved = match &mut self.state {
            State::Stepping(running) => {
                let save = |sink: &mut dyn Sink| if save { running.save_before_end(sink).map(drop) } else { Ok(()) };
                let saved = sunk(&mut self.run, Some(&mut output), self.page.as_mut(), save);
                running.by_hand();
                saved
            }
            _ => Ok(()),
        };
        self.series = output.take_series();
        let finished = output.finish();
        drop(locks);
        saved.and(finished)
    }
}
