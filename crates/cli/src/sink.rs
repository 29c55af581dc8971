//! Output of a run's rows, records and progress: files by `io`, a bar on a terminal, lines in a log.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use zellige_engine::error::{Error, Result};
use zellige_engine::files;
use zellige_engine::record::{Axis, Centring, Field, Lead, Record, Row};
use zellige_engine::run::{Progress, Sink};
use zellige_engine::sim::Clock;
use zellige_io::csv::{self, EarlierRows};
use zellige_io::{Format, Moment, OPENPMD, Stamp};

use crate::report;
use crate::writer::Writer;

/// Interval between two lines of the running table where there is no terminal.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
/// Time between two settings of the bar, which cost more than a small step.
const BAR_INTERVAL: Duration = Duration::from_millis(50);
/// The file of rows.
pub(crate) const ROWS: &str = "rows.csv";
/// The file of the input with its defaults.
pub(crate) const RESOLVED: &str = "resolved.toml";
/// The file of the result, and what becomes of that of an earlier run into the same folder.
pub(crate) const SUMMARY: &str = "summary.json";
const PREVIOUS: &str = "previous_summary.json";
/// Parts of the bar.
const BAR: u64 = 1000;
/// Lines of the running table under one head.
const PAGE: usize = 20;

/// Writes into a folder and shows progress.
pub(crate) struct Output {
    folder: PathBuf,
    writer: Writer,
    resolved: String,
    resume: Option<PathBuf>,
    /// Folder of the checkpoints if it is another one: what a run resumed from there needs lies beside them.
    beside: Option<PathBuf>,
    /// The run begins at its beginning: series of files do too.
    anew: bool,
    earlier: EarlierRows,
    rows: Vec<(Clock, Row)>,
    /// Lists of the series that have begun.
    series: BTreeSet<PathBuf>,
    bar: Option<ProgressBar>,
    logged: Instant,
    origin: Option<(Duration, f64)>,
    lines: usize,
    /// Column names in the head of the file.
    columns: Vec<String>,
    step: &'static str,
    item: &'static str,
    /// Fields at the end, by their names.
    fields: BTreeMap<String, FieldNote>,
}

/// Note on a field in the summary: some formats have the values alone.
#[derive(Serialize)]
pub(crate) struct FieldNote {
    title: String,
    unit: String,
    /// Slowest first, as the shape; `origin` is where the first value lies.
    axes: Vec<Axis>,
}

impl FieldNote {
    fn new(field: &Field) -> (String, Self) {
        let half = if field.centring == Centring::Cell { 0.5 } else { 0.0 };
        let axes = field.axes.iter().rev().map(|axis| Axis { origin: axis.origin + half * axis.spacing, ..axis.clone() }).collect();
        (field.name.clone(), Self { title: field.title.clone(), unit: field.unit.clone(), axes })
    }

    /// Notes on the fields of a record.
    fn of(record: &Record) -> Vec<(String, Self)> {
        match record {
            Record::Field(one) | Record::Stack(one) => vec![Self::new(one)],
            Record::Mesh(mesh) => (0..mesh.components.len()).map(|i| Self::new(&mesh.field_without_values(i))).collect(),
            Record::Wave(wave) if !wave.live => vec![Self::new(&wave.field_without_values())],
            _ => Vec::new(),
        }
    }
}

impl Output {
    /// Into `folder`, which exists; `resolved` is the input with its defaults.
    pub(crate) fn new(folder: &Path, formats: Vec<Format>, resolved: String, step: &'static str, item: &'static str) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(BAR);
            let style =
                ProgressStyle::with_template("  {bar:24} {percent:>3} %  {wide_msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
            bar.set_style(style);
            bar
        });
        let (earlier, rows, series) = (EarlierRows::default(), Vec::new(), BTreeSet::new());
        let (folder, logged) = (folder.to_owned(), Instant::now());
        Self {
            writer: Writer::new(folder.clone(), formats),
            folder,
            resolved,
            resume: None,
            beside: None,
            anew: true,
            earlier,
            rows,
            series,
            bar,
            logged,
            origin: None,
            lines: 0,
            columns: Vec::new(),
            step,
            item,
            fields: BTreeMap::new(),
        }
    }

    /// The run continues from the one in a folder.
    #[must_use]
    pub(crate) fn after(mut self, resume: Option<PathBuf>) -> Self {
        self.resume = resume;
        self
    }

    /// The run goes on with series that it has begun in this folder before.
    #[must_use]
    pub(crate) fn going_on(mut self, series: BTreeSet<PathBuf>) -> Self {
        self.series = series;
        self
    }

    /// Takes the lists of the series that have begun, for the next way to the end.
    pub(crate) fn take_series(&mut self) -> BTreeSet<PathBuf> {
        std::mem::take(&mut self.series)
    }

    /// Checkpoints go to another folder, which exists.
    #[must_use]
    pub(crate) fn beside(mut self, folder: Option<PathBuf>) -> Self {
        self.beside = folder;
        self
    }

    /// Writes what waits and the rows, and takes the bar away; the run is over, well or not.
    pub(crate) fn finish(&mut self) -> Result<()> {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        let rows = self.write_rows();
        self.writer.finish().and(rows)
    }

    /// Writes all rows so far.
    fn write_rows(&mut self) -> Result<()> {
        if self.rows.is_empty() && self.earlier.is_empty() {
            return Ok(());
        }
        csv::write_rows(self.folder.join(ROWS), &self.earlier, &self.rows)
    }

    fn note_fields(&mut self, records: &[Record], last: bool) {
        if last {
            self.fields.extend(records.iter().flat_map(FieldNote::of));
        }
    }

    /// Takes away the lists of the series that these records will begin: an earlier run's steps are not this one's.
    fn begin_series(&mut self, records: &[Record]) -> Result<()> {
        let openpmd = self.folder.join(OPENPMD);
        let goes = self.writer.writes(Format::Hdf5) && records.iter().any(zellige_io::goes_to_openpmd);
        if goes && self.series.insert(openpmd.clone()) && std::fs::read_dir(&openpmd).is_ok_and(|mut files| files.next().is_some()) {
            let text = "holds files of an earlier run, which stay: readers of openPMD take all steps there for those of one run";
            self.notice(&format!("`{}` {text}", openpmd.display()));
        }
        for name in records.iter().flat_map(zellige_io::series_names) {
            let list = zellige_io::series_file(&self.folder, &name);
            if !self.series.contains(&list) && list.exists() {
                std::fs::remove_file(&list).map_err(|e| Error::file("remove", &list, e))?;
            }
            self.series.insert(list);
        }
        Ok(())
    }

    /// Notes on the fields at the end, by their names.
    pub(crate) fn fields(&self) -> &BTreeMap<String, FieldNote> {
        &self.fields
    }

    /// Files that were written.
    pub(crate) fn written(&self) -> Vec<PathBuf> {
        let mut written = self.writer.written();
        if !(self.rows.is_empty() && self.earlier.is_empty()) {
            written.push(self.folder.join(ROWS));
        }
        written
    }
}

/// Scalars of a row that fit into a line of progress; the file of rows has all of them.
const SHOWN: usize = 4;

/// Below this part of the work nothing is said about the time that the rest will take.
const BEGUN: f64 = 0.005;

/// Estimates the time left if the run goes on as since `origin` (time and fraction done), in two or three digits; `None` while it
/// is unknown.
fn left(progress: &Progress, origin: (Duration, f64)) -> Option<String> {
    let (wall, part) = (progress.wall.saturating_sub(origin.0).as_secs_f64(), progress.fraction - origin.1);
    let seconds = (part >= BEGUN && wall > 0.0).then(|| wall * (1.0 - progress.fraction).max(0.0) / part)?;
    Some(match seconds {
        s if s < 99.5 => format!("{s:.0} s"),
        s if s < 5970.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    })
}

/// Builds a line of progress, as names and values: the number of the `step` first, then the fraction done, the time left, the row's
/// first scalars but for that number, and the pace.
fn shown(progress: &Progress, origin: (Duration, f64), row: &Row, step: &str, item: &str) -> Vec<(String, String)> {
    let mut shown = vec![
        (step.to_owned(), progress.clock.step.to_string()),
        ("done".into(), format!("{:.0} %", 100.0 * progress.fraction)),
        ("ETA".into(), left(progress, origin).unwrap_or_else(|| "-".into())),
    ];
    let scalars = row.0.iter().filter(|s| s.name != step).take(SHOWN);
    shown.extend(scalars.map(|s| (s.name.replace('_', " "), format!("{:.3e}", s.value))));
    shown.push((format!("{item}s/s"), format!("{:.2e}", progress.items_per_second)));
    shown
}

/// Builds the text beside the bar: pace and time left before the scalars, of which a narrow terminal shows as many as fit.
fn bar_words(shown: &[(String, String)]) -> String {
    let [(step, number), _, (_, left), scalars @ .., (pace, rate)] = shown else { return String::new() };
    let scalars: Vec<String> = scalars.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let left = if left == "-" { String::new() } else { format!(", {left} left") };
    format!("{step} {number}, {rate} {pace}{left}: {}", scalars.join(", "))
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
        // After the first step, which has other things to do, and from where a run goes on that was resumed.
        let origin = *self.origin.get_or_insert((progress.wall, progress.fraction));
        let (bar, last) = (self.bar.is_some(), progress.fraction >= 1.0);
        let first = self.lines == 0 && !row.0.is_empty() && !bar;
        if !first && !last && self.logged.elapsed() < if bar { BAR_INTERVAL } else { LOG_INTERVAL } {
            return;
        }
        self.logged = Instant::now();
        let shown = shown(progress, origin, row, self.step, self.item);
        if let Some(bar) = &self.bar {
            bar.set_position((progress.fraction.clamp(0.0, 1.0) * BAR as f64) as u64);
            bar.set_message(bar_words(&shown));
        } else {
            // Columns may come and go with what is at work.
            let columns: Vec<String> = shown.iter().map(|s| s.0.clone()).collect();
            if columns != self.columns {
                (self.columns, self.lines) = (columns, 0);
            }
            if self.lines.is_multiple_of(PAGE) {
                report::say!("{}", table_line(&shown, true));
            }
            self.lines += 1;
            report::say!("{}", table_line(&shown, false));
        }
    }

    fn records(&mut self, clock: &Clock, records: Vec<Record>, last: bool) -> Result<()> {
        if self.anew {
            self.begin_series(&records)?;
        }
        self.note_fields(&records, last);
        let stamp = Stamp { step: clock.step, time: clock.time, numbered: !last };
        self.writer.put(Moment { records, stamp }, last)
    }

    fn folder(&self) -> Option<&Path> {
        Some(&self.folder)
    }

    fn takes_share(&self, record: &Record) -> bool {
        self.writer.takes_share(record)
    }

    fn shares(&mut self, clock: &Clock, records: Vec<Record>, last: bool, lead: &Lead) -> Result<()> {
        if self.anew {
            self.begin_series(&records)?;
        }
        self.note_fields(&records, last);
        let stamp = Stamp { step: clock.step, time: clock.time, numbered: !last };
        self.writer.put_shares(&Moment { records, stamp }, lead)
    }

    fn notice(&mut self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| report::note(text)),
            None => report::note(text),
        }
    }

    fn started(&mut self, clock: &Clock) -> Result<()> {
        // Only now: what an input that cannot be set up would leave here would be taken for that of the results beside it.
        for folder in [Some(&self.folder), self.beside.as_ref()].into_iter().flatten() {
            files::atomic_write(folder.join(RESOLVED), |out| out.write_all(self.resolved.as_bytes()))?;
        }
        self.anew = clock.step == 0;
        // Until this run has its own, no result stands here that looks like its.
        match std::fs::rename(self.folder.join(SUMMARY), self.folder.join(PREVIOUS)) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(Error::file("rename", self.folder.join(SUMMARY), e)),
            _ => {}
        }
        if let Some(from) = self.resume.as_ref().filter(|_| clock.step > 0) {
            match EarlierRows::read(from.join(ROWS), clock.step) {
                Ok(earlier) => self.earlier = earlier,
                Err(error) => self.notice(&format!("rows of the run before the interruption are not included: {error}")),
            }
        }
        Ok(())
    }

    fn saving(&mut self) -> Result<()> {
        if let Some(error) = self.writer.wait() {
            self.notice(&format!("not all results before this checkpoint could be written: {error}"));
        }
        if let Some(folder) = self.beside.as_ref().filter(|_| !self.rows.is_empty()) {
            csv::write_rows(folder.join(ROWS), &self.earlier, &self.rows)?;
        }
        self.write_rows()
    }
}

#[cfg(test)]
mod tests {
    use zellige_engine::record::Values;

    use super::*;

    #[test]
    fn the_running_table_has_its_columns_under_their_names() {
        let clock = Clock { step: 1200, time: None };
        let progress = Progress { clock, fraction: 0.25, wall: Duration::from_secs(2), items_per_second: 1.5e7 };
        let mut row = Row::default();
        for (name, value) in [("particles", 1e5), ("collisions_per_step", 412.5), ("step", 3.0), ("a", 1.0), ("b", -2.0), ("c", 3.0)] {
            row.push(name, "", value);
        }
        let shown = shown(&progress, (Duration::ZERO, 0.0), &row, "step", "particle");
        let lines = [true, false].map(|head| table_line(&shown, head));
        assert_eq!(lines[0], "       step       done        ETA  particles  collisions per step          a          b  particles/s");
        assert_eq!(lines[1], "       1200       25 %        6 s    1.000e5              4.125e2    1.000e0   -2.000e0       1.50e7");
        let words = "step 1200, 1.50e7 particles/s, 6 s left: particles 1.000e5, collisions per step 4.125e2, a 1.000e0, b -2.000e0";
        assert_eq!(bar_words(&shown), words);
    }

    #[test]
    fn what_an_earlier_run_left_is_not_taken_for_this_ones() {
        let folder = tempfile::tempdir().unwrap();
        let record = || {
            let axis = Axis { name: "x".into(), unit: String::new(), origin: 0.0, spacing: 1.0, len: 2 };
            Record::Field(Field::bare("u", vec![axis], Centring::Node, Values::F64(vec![1.0, 2.0])))
        };
        // Steps that the lists of files hold after a run that begins at `step`.
        let run = |step: u64, resume: Option<PathBuf>| {
            let mut output = Output::new(folder.path(), vec![Format::Vti], "resolved".into(), "step", "item").after(resume);
            output.started(&Clock { step, time: None }).unwrap();
            assert!(!folder.path().join(SUMMARY).exists());
            for step in [step + 10, step + 20] {
                output.records(&Clock { step, time: Some(step as f64) }, vec![record()], false).unwrap();
            }
            output.records(&Clock { step: step + 25, time: Some((step + 25) as f64) }, vec![record()], true).unwrap();
            output.finish().unwrap();
            std::fs::write(folder.path().join(SUMMARY), format!("from {step}")).unwrap();
            let list = std::fs::read_to_string(folder.path().join("u.pvd")).unwrap();
            // The end is of the series, which an earlier end is no more.
            assert_eq!(list.matches("\"u.vti\"").count(), 1, "{list}");
            assert!(list.contains(&format!("timestep=\"{}\"", step + 25)), "{list}");
            let steps = |line: &str| line.split("u_").nth(1)?.split('.').next()?.parse().ok();
            list.lines().filter_map(steps).collect::<Vec<u64>>()
        };
        assert_eq!(run(0, None), [10, 20]);
        assert_eq!(run(25, Some(folder.path().into())), [10, 20, 35, 45]);
        assert_eq!(run(0, None), [10, 20]);
        assert_eq!(std::fs::read_to_string(folder.path().join(PREVIOUS)).unwrap(), "from 25");
    }

    #[test]
    fn the_time_left_is_told_in_units_that_fit() {
        let after = |wall: u64, fraction| {
            let progress =
                Progress { clock: Clock { step: 1, time: None }, fraction, wall: Duration::from_secs(wall), items_per_second: 1.0 };
            left(&progress, (Duration::from_secs(2), 0.05))
        };
        assert_eq!((after(2, 0.05), after(10, 0.051)), (None, None));
        // 0.45 of the work in 90 s, 0.05 in 20 s, 0.2 in 3600 s, all of it.
        let told = [(92, 0.5), (22, 0.1), (3602, 0.25), (7, 1.0)].map(|(wall, fraction)| after(wall, fraction).unwrap());
        assert_eq!(told, ["2 min", "6 min", "3.8 h", "0 s"]);
    }
}
