//! `zellige view DIR --live`: a finished folder on the page of a run.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::record::Record;
use zellige_engine::signal::Signals;
use zellige_engine::sim::Clock;
use zellige_io::csv;
use zellige_live::{Address, Hub, RunNames, frame};

use crate::commands::live::{Live, of_folder};
use crate::commands::view::{Drawable, Found, Source, in_folder, read};
use crate::report;
use crate::sink::{RESOLVED, ROWS, SUMMARY};

/// Interval at which signals are looked at.
const PAUSE: Duration = Duration::from_millis(100);

/// Shows a folder until a signal.
pub(super) fn show(folder: &Path, address: &Address) -> Result<u8> {
    if !folder.is_dir() {
        let problem = Problem::new("--live", format!("`{}` is no folder", folder.display()));
        return Err(Error::input("command line", problem.hint("name the folder of a run; `zellige view FILE` draws one file")));
    }
    let summary = zellige_io::json::read(folder.join(SUMMARY)).ok();
    let live = Live::start(address, names(folder, summary.as_ref()))?;
    open(&live.hub(), folder, summary.as_ref(), &report::note)?;
    report::note("Ctrl-C ends it");
    let signals = Signals::listen()?;
    while signals.stop_reason().is_none() {
        std::thread::sleep(PAUSE);
    }
    Ok(0)
}

/// State of the page of a folder, with all that there is to say among its messages.
pub(super) fn hub(folder: &Path) -> Arc<Hub> {
    let summary = zellige_io::json::read(folder.join(SUMMARY)).ok();
    let hub = Hub::new(names(folder, summary.as_ref()));
    // A run that was stopped has rows, and nothing to draw.
    if let Err(error) = open(&hub, folder, summary.as_ref(), &|_| ()) {
        hub.notice(&format!("no pictures: {error}"));
    }
    Arc::new(hub)
}

/// Shows a folder; `say` is given what stands among the messages too.
fn open(hub: &Hub, folder: &Path, summary: Option<&Value>, say: &dyn Fn(&str)) -> Result<()> {
    let tell = |text: &str| {
        say(text);
        hub.notice(text);
    };
    let filled = fill(hub, folder, summary.map(clock), &tell);
    if let Err(error) = rows(hub, &folder.join(ROWS)) {
        tell(&format!("no rows are shown: {error}"));
    }
    end(hub, summary, folder.join(RESOLVED).exists());
    filled
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

/// Names of a run as its summary has them.
fn names(folder: &Path, summary: Option<&Value>) -> RunNames {
    let own = of_folder(folder);
    let Some(summary) = summary else { return own };
    let pair = |line: &Value| Some((line[0].as_str()?.to_owned(), line[1].as_str()?.to_owned()));
    let plan = summary["plan"]["lines"].as_array().map(|lines| lines.iter().filter_map(pair).collect()).unwrap_or_default();
    let expected = serde_json::from_value(summary["plan"]["expected"].clone()).unwrap_or_default();
    RunNames { expected, solver: text(summary, "solver"), device: text(summary, "device"), version: text(summary, "version"), plan, ..own }
}

fn clock(summary: &Value) -> Clock {
    Clock { step: summary["clock"]["step"].as_u64().unwrap_or(0), time: summary["clock"]["time"].as_f64() }
}

/// A name and the step at its end, `ex_000120`; results of the end have none.
fn stepped(stem: &str) -> (&str, Option<u64>) {
    let digits = |text: &str| text.len() >= 6 && text.bytes().all(|b| b.is_ascii_digit());
    match stem.rsplit_once('_') {
        Some((name, step)) if digits(step) => (name, step.parse().ok()),
        _ => (stem, None),
    }
}

/// Shows what can be drawn, in the order of the steps.
fn fill(hub: &Hub, folder: &Path, end: Option<Clock>, tell: &dyn Fn(&str)) -> Result<()> {
    let mut moments: BTreeMap<u64, Vec<(String, Source)>> = BTreeMap::new();
    let mut of_end = Vec::new();
    let Found { sources, others } = in_folder(folder)?;
    for source in sources {
        let stem = source.picture.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (name, step) = stepped(&stem);
        let named = (name.to_owned(), source);
        match step {
            Some(step) => moments.entry(step).or_default().push(named),
            None => of_end.push(named),
        }
    }
    // Without a summary the last step that has files is the end.
    let last = end.unwrap_or_else(|| Clock { step: moments.keys().next_back().copied().unwrap_or(0), time: None });
    moments.entry(last.step).or_default().extend(of_end);
    for (step, sources) in moments {
        for (name, source) in sources {
            match read(&source.path) {
                Ok(Drawable { record, notes }) => {
                    for text in &notes {
                        tell(text);
                    }
                    let mut contents = frame::frames(&[named(record, &name)]);
                    for content in &mut contents {
                        // Files do not say so: values of both signs have no logarithm.
                        let curve = content.head.kind == frame::Kind::Curve;
                        content.head.log &= !(curve && content.values[content.head.nx..].iter().any(|v| *v < 0.0));
                    }
                    let time = if step == last.step { last.time } else { None };
                    hub.frames(Clock { step, time }, contents);
                }
                Err(error) => tell(&format!("not shown: {error}")),
            }
        }
    }
    for text in &others {
        tell(text);
    }
    Ok(())
}

/// A record under the name of its series: that of a file has the step in it, and is its title where the file has none.
fn named(mut record: Record, name: &str) -> Record {
    let rename = |own: &mut String, title: &mut String| {
        if own == title {
            name.clone_into(title);
        }
        name.clone_into(own);
    };
    match &mut record {
        Record::Field(f) => rename(&mut f.name, &mut f.title),
        Record::Wave(w) => rename(&mut w.name, &mut w.title),
        Record::Curve(c) => rename(&mut c.name, &mut c.title),
        _ => {}
    }
    record
}

/// `energy [J]` as its name and its unit.
fn name_and_unit(column: &str) -> (&str, &str) {
    column.strip_suffix(']').and_then(|c| c.split_once(" [")).unwrap_or((column, ""))
}

fn rows(hub: &Hub, file: &Path) -> Result<()> {
    if !file.exists() {
        return Ok(());
    }
    let table = csv::read(file)?;
    let column = |name: &str| table.names.iter().position(|n| name_and_unit(n).0 == name);
    let (step, time) = (column("step"), column("time"));
    for line in 0..table.columns.first().map_or(0, Vec::len) {
        let at = |column: usize| table.columns[column][line];
        let clock = Clock { step: step.map_or(line as u64 + 1, |c| at(c) as u64), time: time.map(at) };
        let scalars = table.names.iter().enumerate().filter(|(i, _)| Some(*i) != step && Some(*i) != time);
        hub.values(clock, scalars.map(|(i, name)| (name_and_unit(name).0, name_and_unit(name).1, at(i))));
    }
    Ok(())
}

fn end(hub: &Hub, summary: Option<&Value>, is_run: bool) {
    let Some(summary) = summary else {
        let (word, sentence) = if is_run {
            ("unfinished", "the folder has no summary: its run is under way, or was cut off")
        } else {
            ("files", "no run has written this folder: what can be drawn in it is shown")
        };
        hub.end(word, sentence);
        return;
    };
    hub.stages_as_written(summary["stages"].clone());
    let outcome = &summary["outcome"];
    let sentence = format!("{}: {}", text(outcome, "status").replace('_', " "), text(outcome, "message"));
    let good = summary["exit_code"].as_u64() == Some(0);
    hub.end(if good { "finished" } else { "failed" }, summary["verdict"].as_str().unwrap_or(&sentence));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_units_are_taken_from_names() {
        assert_eq!(stepped("ex_000120"), ("ex", Some(120)));
        assert_eq!((stepped("right_x_ux"), stepped("u_12")), (("right_x_ux", None), ("u_12", None)));
        assert_eq!((name_and_unit("energy [J]"), name_and_unit("step")), (("energy", "J"), ("step", "")));
    }
}
