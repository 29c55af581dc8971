//! What becomes of a run's rows, records and progress: files by `io`, a bar on a terminal, lines in a log.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use zellige_engine::error::Result;
use zellige_engine::files;
use zellige_engine::record::{Record, Row};
use zellige_engine::run::{Progress, Sink};
use zellige_engine::sim::Clock;
use zellige_io::csv::{self, Earlier};
use zellige_io::{Format, Stamp};

use crate::report;

/// Between two lines of the running table where there is no terminal.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
/// The file of rows.
const ROWS: &str = "rows.csv";
/// The file of the input with its defaults.
const RESOLVED: &str = "resolved.toml";
/// Parts of the bar.
const BAR: u64 = 1000;
/// Lines of the running table under one head.
const PAGE: usize = 20;

/// Writes into a folder and shows progress.
pub(crate) struct Output {
    folder: PathBuf,
    formats: Vec<Format>,
    resolved: String,
    resume: Option<PathBuf>,
    earlier: Earlier,
    rows: Vec<(Clock, Row)>,
    written: Vec<PathBuf>,
    bar: Option<ProgressBar>,
    logged: Instant,
    lines: usize,
    step: &'static str,
    item: &'static str,
    writing: Duration,
}

impl Output {
    /// Into `folder`, which exists; `resolved` is the input with its defaults.
    pub(crate) fn new(folder: &Path, formats: Vec<Format>, resolved: String, step: &'static str, item: &'static str) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(BAR);
            let style = ProgressStyle::with_template("  {bar:30} {percent:>3} %  {msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
            bar.set_style(style);
            bar
        });
        let (earlier, rows, written) = (Earlier::default(), Vec::new(), Vec::new());
        let (folder, logged, writing) = (folder.to_owned(), Instant::now(), Duration::ZERO);
        Self { folder, formats, resolved, resume: None, earlier, rows, written, bar, logged, lines: 0, step, item, writing }
    }

    /// The run goes on from the one in a folder.
    #[must_use]
    pub(crate) fn after(mut self, resume: Option<PathBuf>) -> Self {
        self.resume = resume;
        self
    }

    /// Writes the rows and takes the bar away; the run is over, well or not.
    pub(crate) fn finish(&mut self) -> Result<()> {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        self.write_rows()
    }

    /// Writes all rows so far.
    fn write_rows(&mut self) -> Result<()> {
        if self.rows.is_empty() && self.earlier.is_empty() {
            return Ok(());
        }
        let path = self.folder.join(ROWS);
        csv::write_rows(&path, &self.earlier, &self.rows)?;
        if !self.written.contains(&path) {
            self.written.push(path);
        }
        Ok(())
    }

    /// Everything that was written.
    pub(crate) fn written(&self) -> &[PathBuf] {
        &self.written
    }

    /// Time spent on writing records.
    pub(crate) fn writing(&self) -> Duration {
        self.writing
    }
}

/// Scalars of a row that fit into a line of progress; the file of rows has all of them.
const SHOWN: usize = 4;

/// What a line of progress shows: names and values, the number of the `step` first, then the part done, the row's first scalars but for
/// that number, and the pace.
fn shown(progress: &Progress, row: &Row, step: &str, item: &str) -> Vec<(String, String)> {
    let mut shown =
        vec![(step.to_owned(), progress.clock.step.to_string()), ("done".into(), format!("{:.0} %", 100.0 * progress.fraction))];
    let scalars = row.0.iter().filter(|s| s.name != step).take(SHOWN);
    shown.extend(scalars.map(|s| (s.name.replace('_', " "), format!("{:.3e}", s.value))));
    shown.push((format!("{item}s/s"), format!("{:.2e}", progress.items_per_second)));
    shown
}

/// The head of the running table, or one of its lines: columns as wide as their names and as numbers are.
fn table_line(shown: &[(String, String)], head: bool) -> String {
    shown.iter().fold(String::new(), |line, (name, value)| {
        let (text, width) = (if head { name } else { value }, name.len().max(9));
        format!("{line}  {text:>width$}")
    })
}

impl Sink for Output {
    fn row(&mut self, clock: &Clock, row: &Row) -> Result<()> {
        self.rows.push((*clock, row.clone()));
        Ok(())
    }

    fn progress(&mut self, progress: &Progress, row: &Row) {
        let shown = shown(progress, row, self.step, self.item);
        if let Some(bar) = &self.bar {
            let words: Vec<String> = shown[2..].iter().map(|(name, value)| format!("{name} {value}")).collect();
            bar.set_position((progress.fraction.clamp(0.0, 1.0) * BAR as f64) as u64);
            bar.set_message(format!("{} {}: {}", self.step, progress.clock.step, words.join(", ")));
        } else if progress.clock.step <= 1 || self.logged.elapsed() >= LOG_INTERVAL || progress.fraction >= 1.0 {
            self.logged = Instant::now();
            if self.lines.is_multiple_of(PAGE) {
                report::say!("{}", table_line(&shown, true));
            }
            self.lines += 1;
            report::say!("{}", table_line(&shown, false));
        }
    }

    fn records(&mut self, clock: &Clock, records: Vec<Record>, last: bool) -> Result<()> {
        let begun = Instant::now();
        let stamp = Stamp { step: clock.step, time: clock.time, numbered: !last };
        self.written.extend(zellige_io::write_records(&self.folder, &records, &self.formats, stamp)?);
        self.writing += begun.elapsed();
        Ok(())
    }

    fn notice(&mut self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| report::note(text)),
            None => report::note(text),
        }
    }

    fn started(&mut self, clock: &Clock) -> Result<()> {
        // Only now: what an input that cannot be set up would leave here would be taken for that of the results beside it.
        files::atomic_write(self.folder.join(RESOLVED), |out| out.write_all(self.resolved.as_bytes()))?;
        if let Some(from) = self.resume.as_ref().filter(|_| clock.step > 0) {
            match Earlier::read(from.join(ROWS), clock.step) {
                Ok(earlier) => self.earlier = earlier,
                Err(error) => self.notice(&format!("rows of the run before the break are not taken over: {error}")),
            }
        }
        Ok(())
    }

    fn saved(&mut self) -> Result<()> {
        self.write_rows()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_running_table_has_its_columns_under_their_names() {
        let clock = Clock { step: 1200, time: None };
        let progress = Progress { clock, fraction: 0.25, wall: Duration::from_secs(2), items_per_second: 1.5e7 };
        let mut row = Row::default();
        for (name, value) in [("particles", 1e5), ("collisions_per_step", 412.5), ("step", 3.0), ("a", 1.0), ("b", -2.0), ("c", 3.0)] {
            row.push(name, "", value);
        }
        let shown = shown(&progress, &row, "step", "particle");
        let lines = [true, false].map(|head| table_line(&shown, head));
        assert_eq!(lines[0], "       step       done  particles  collisions per step          a          b  particles/s");
        assert_eq!(lines[1], "       1200       25 %    1.000e5              4.125e2    1.000e0   -2.000e0       1.50e7");
    }
}
