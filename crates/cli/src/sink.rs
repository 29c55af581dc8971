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

/// Between two progress lines where there is no terminal.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
/// The file of rows.
const ROWS: &str = "rows.csv";
/// The file of the input with its defaults.
const RESOLVED: &str = "resolved.toml";
/// Parts of the bar.
const BAR: u64 = 1000;

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
        Self { folder, formats, resolved, resume: None, earlier, rows, written, bar, logged, step, item, writing }
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

/// The row's first scalars in one line, but for the number of the `step`, which stands before them.
fn scalars(row: &Row, step: &str) -> String {
    row.0
        .iter()
        .filter(|s| s.name != step)
        .take(SHOWN)
        .map(|s| format!("{} {:.3e}", s.name.replace('_', " "), s.value))
        .collect::<Vec<_>>()
        .join(", ")
}

impl Sink for Output {
    fn row(&mut self, clock: &Clock, row: &Row) -> Result<()> {
        self.rows.push((*clock, row.clone()));
        Ok(())
    }

    fn progress(&mut self, progress: &Progress, row: &Row) {
        let rate = progress.items_per_second;
        let message = format!("{} {}: {} ({rate:.2e} {}s/s)", self.step, progress.clock.step, scalars(row, self.step), self.item);
        if let Some(bar) = &self.bar {
            bar.set_position((progress.fraction.clamp(0.0, 1.0) * BAR as f64) as u64);
            bar.set_message(message);
        } else if progress.clock.step <= 1 || self.logged.elapsed() >= LOG_INTERVAL || progress.fraction >= 1.0 {
            self.logged = Instant::now();
            eprintln!("  {:3.0} %  {message}", 100.0 * progress.fraction);
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
