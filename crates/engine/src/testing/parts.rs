//! Runs in several parts, to be compared bit for bit.

use std::path::{Path, PathBuf};

use crate::checkpoint::Reader;
use crate::cuda::Cuda;
use crate::device::{Cpu, Device};
use crate::error::{Error, Result};
use crate::files;
use crate::links::inside::{self, Memory};
use crate::profile::Profiler;
use crate::record::{Check, Record, Row};
use crate::run::{self, Options, Progress, Silent, Sink, checkpoint_path};
use crate::schedule::Schedule;
use crate::sim::{Clock, Environment, Outcome, Solver};

/// Everything that a run gives, bit by bit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Course {
    /// Step, and the columns of the row.
    pub rows: Vec<(u64, Vec<(&'static str, u64)>)>,
    /// Step, name and hash of each record.
    pub records: Vec<(u64, String, String)>,
    /// Sections of the checkpoint at the end, each with its hash.
    pub state: Vec<(String, String)>,
    /// Verdict.
    pub outcome: Option<Outcome>,
    /// Checks at the end.
    pub checks: Vec<Check>,
}

impl Sink for Course {
    fn row(&mut self, clock: &Clock, row: &Row) -> Result<()> {
        self.rows.push((clock.step, row.0.iter().map(|scalar| (scalar.name, scalar.value.to_bits())).collect()));
        Ok(())
    }

    fn progress(&mut self, _: &Progress, _: &Row) {}

    fn records(&mut self, clock: &Clock, records: Vec<Record>, _last: bool) -> Result<()> {
        for record in records {
            let hash = blake3::hash(format!("{record:?}").as_bytes()).to_hex().to_string();
            self.records.push((clock.step, record.name().to_owned(), hash));
        }
        Ok(())
    }

    fn notice(&mut self, _: &str) {}
}

/// The first difference of two courses, in words; none where all is bitwise identical.
pub fn difference(a: &Course, b: &Course) -> Option<String> {
    let pairs = a.rows.iter().zip(&b.rows).find(|(a, b)| a != b);
    if let Some(((step, row), (_, other))) = pairs {
        let column = row.iter().zip(other).find(|(a, b)| a != b);
        let told = column.map(|(a, b)| format!("{} is {} and {}", a.0, f64::from_bits(a.1), f64::from_bits(b.1)));
        return Some(format!("the row of step {step}: {}", told.unwrap_or_else(|| "its columns".into())));
    }
    let records = a.records.iter().zip(&b.records).find(|(a, b)| a != b);
    let sections = a.state.iter().zip(&b.state).find(|(a, b)| a != b);
    match (records, sections) {
        (Some((a, _)), _) => Some(format!("the record {} of step {}", a.1, a.0)),
        (_, Some((a, b))) => Some(format!("the section {} of the checkpoint, or {}", a.0, b.0)),
        _ => (a != b).then(|| "lengths, the outcome or the checks".into()),
    }
}

/// Sink that keeps a copy of the checkpoint of one step.
struct Keeping<'a> {
    course: Course,
    checkpoint: PathBuf,
    /// Step, and folder of the copy.
    keep: Option<(u64, &'a Path)>,
}

impl Sink for Keeping<'_> {
    fn row(&mut self, clock: &Clock, row: &Row) -> Result<()> {
        if let Some((_, folder)) = self.keep.filter(|(step, _)| clock.step == step + 1) {
            let copy = checkpoint_path(folder);
            files::create_dir(copy.parent().unwrap_or(folder))?;
            std::fs::copy(&self.checkpoint, &copy).map_err(|e| Error::file("copy", &copy, e))?;
        }
        self.course.row(clock, row)
    }

    fn progress(&mut self, _: &Progress, _: &Row) {}

    fn records(&mut self, clock: &Clock, records: Vec<Record>, last: bool) -> Result<()> {
        self.course.records(clock, records, last)
    }

    fn notice(&mut self, _: &str) {}
}

/// One run of a comparison.
struct Run<'a> {
    parts: usize,
    memory: Memory,
    folder: &'a Path,
    resume: Option<&'a Path>,
    /// Step of a checkpoint to be kept, and the folder for it.
    keep: Option<(u64, &'a Path)>,
}

/// Runs an input, whose parts are on devices that `open` gives.
fn course<S: Solver>(open: fn() -> Result<Device>, config: &S::Config, input_folder: &Path, run: &Run<'_>) -> Result<Course> {
    let options = Options {
        // With each step: the last one is that of the end.
        checkpoint: Some(Schedule::Steps(1)),
        resume: run.resume.map(Path::to_owned),
        ..Options::new(run.folder)
    };
    let environment = |links| -> Result<Environment> { Ok(Environment::new(open()?, input_folder, 7).of_part(links)) };
    let mut sink = Keeping { course: Course::default(), checkpoint: checkpoint_path(run.folder), keep: run.keep };
    let first = |links| run::run::<S>(config, &environment(links)?, &options, &mut Profiler::off(), &mut sink);
    let others = |links| run::run::<S>(config, &environment(links)?, &options, &mut Profiler::off(), &mut Silent);
    let (summary, _) = inside::lead(run.parts, run.memory, first, others)?;
    let mut course = sink.course;
    (course.outcome, course.checks) = (Some(summary.outcome), summary.checks);
    let reader = Reader::open(checkpoint_path(run.folder), S::NAME)?;
    for name in reader.names() {
        course.state.push((name.to_owned(), blake3::hash(&reader.raw(name)?).to_hex().to_string()));
    }
    Ok(course)
}

/// Runs an input in one part and in each number of `parts`, and lets every other number of parts go on from a checkpoint that each
/// has saved after `early` steps. Each part has a thread.
///
/// # Panics
/// Where anything that a run gives is not bitwise identical.
pub fn same_in_parts<S: Solver>(name: &str, config: &S::Config, input_folder: &Path, parts: &[usize], early: u64) {
    let set = (name, config, input_folder);
    let resumed = |parts: &usize| (*parts, Memory::Shared);
    let resumed: Vec<_> = parts.iter().skip(1).map(resumed).collect();
    same_on::<S>(|| Ok(Device::Cpu(Cpu::new(1)?)), set, parts, &resumed, early);
}

/// Runs an input to its end in some parts and resumes it there, which leaves nothing to do: it tells the same once more. Each part
/// has a thread.
///
/// # Panics
/// Where verdict, checks or state differ.
pub fn same_at_the_end<S: Solver>(name: &str, config: &S::Config, input_folder: &Path, parts: usize) {
    let begin = std::env::temp_dir().join(format!("zellige-end-{}-{}", std::process::id(), name.replace(['/', ' ', '.'], "_")));
    let [first, again] = ["first", "again"].map(|folder| begin.join(folder));
    let go = |folder: &Path, resume: Option<&Path>| {
        let run = Run { parts, memory: Memory::Shared, folder, resume, keep: None };
        let found = course::<S>(|| Ok(Device::Cpu(Cpu::new(1)?)), config, input_folder, &run);
        let Course { state, outcome, checks, .. } = found.unwrap_or_else(|error| panic!("{name} in {parts} parts: {error}"));
        (state, outcome, checks)
    };
    let expected = go(&first, None);
    assert_eq!(go(&again, Some(&first)), expected, "{name} in {parts} parts, resumed at its end");
    let _ = std::fs::remove_dir_all(&begin);
}

/// [`same_in_parts`] of parts that share the first GPU; those that go on from checkpoints do as processes that share no memory.
///
/// # Panics
/// Where anything that a run gives is not bitwise identical, or there is no GPU.
pub fn same_in_parts_of_a_gpu<S: Solver>(name: &str, config: &S::Config, input_folder: &Path, parts: &[usize], early: u64) {
    let resumed: Vec<_> = parts.iter().map(|parts| (*parts, Memory::Apart)).collect();
    same_on::<S>(|| Ok(Device::Cuda(Cuda::open(0)?)), (name, config, input_folder), parts, &resumed, early);
}

/// Compares runs in one part with those in `parts`, and with those that go on in `resumed`, each from the checkpoint of another.
fn same_on<S: Solver>(
    open: fn() -> Result<Device>,
    (name, config, input_folder): (&str, &S::Config, &Path),
    parts: &[usize],
    resumed: &[(usize, Memory)],
    early: u64,
) {
    let begin = std::env::temp_dir().join(format!("zellige-parts-{}-{}", std::process::id(), name.replace(['/', ' ', '.'], "_")));
    let go = |parts: usize, memory: Memory, resume: Option<&Path>, keep: Option<&Path>| {
        let folder = begin.join(format!("run-{parts}"));
        let _ = std::fs::remove_dir_all(&folder);
        let run = Run { parts, memory, folder: &folder, resume, keep: keep.map(|folder| (early, folder)) };
        course::<S>(open, config, input_folder, &run).unwrap_or_else(|error| panic!("{name} in {parts} parts: {error}"))
    };
    let same = |a: &Course, b: &Course, what: String| {
        if let Some(difference) = difference(a, b) {
            panic!("{name} {what} differs from one part in {difference}");
        }
    };
    let saved = begin.join("saved");
    let one = go(1, Memory::Shared, None, Some(&saved));
    assert!(!one.rows.is_empty() && !one.records.is_empty() && one.state.len() > 3, "{name} gives nothing to compare");
    let mut rest = one.clone();
    rest.rows.retain(|(step, _)| *step > early);
    rest.records.retain(|(step, ..)| *step > early);
    for parts in parts {
        for (parts, memory) in resumed.iter().filter(|(resumed, _)| resumed == parts) {
            same(&rest, &go(*parts, *memory, Some(&saved), None), format!("in {parts} parts, resumed,"));
        }
        same(&one, &go(*parts, Memory::Shared, None, Some(&saved)), format!("in {parts} parts"));
    }
    same(&rest, &go(1, Memory::Shared, Some(&saved), None), "in one part, resumed from the last of these,".into());
    let _ = std::fs::remove_dir_all(&begin);
}

/// Compares the model of an input in parts with the messages that its parts send in some steps, the most of any: their number and
/// bytes within factors of this size, since a model knows means alone.
///
/// # Panics
/// If they are farther apart.
pub fn model_tells_the_traffic<S: Solver>(name: &str, config: &S::Config, folder: &Path, parts: &[usize], steps: u64, factors: [f64; 2]) {
    let environment = || Ok(Environment::new(Device::Cpu(Cpu::new(1)?), folder, 7));
    for &parts in parts {
        let found = inside::run(parts, |links| {
            let mut solver = S::setup(config, &environment()?.of_part(links.clone()))?;
            // The first one may tell of the start.
            solver.step(&mut Profiler::off())?;
            let before = links.traffic();
            for _ in 0..steps {
                solver.step(&mut Profiler::off())?;
            }
            let traffic = links.traffic().since(before);
            Ok([traffic.messages as f64, traffic.bytes as f64].map(|v| v / steps as f64))
        })
        .unwrap_or_else(|error| panic!("{name} in {parts} parts: {error}"));
        let most = found.iter().fold([0.0_f64; 2], |most, of| [0, 1].map(|k| most[k].max(of[k])));
        let environment = environment().unwrap();
        let plan = S::plan(config, &environment).unwrap();
        let division = S::divide(config, &environment, &plan, parts).unwrap();
        let told = [division.messages, division.bytes];
        println!(
            "{name} in {parts} parts: {} messages and {} bytes a step, by the model {} and {}; {division:?}",
            most[0], most[1], told[0], told[1]
        );
        assert!(
            division.imbalance >= 1.0 - 1e-9 && division.memory <= plan.memory && (0.0..=1.0).contains(&division.repeated),
            "{division:?}"
        );
        for (k, what) in ["messages", "bytes"].iter().enumerate() {
            let ratio = told[k] / most[k].max(1.0);
            assert!(
                (1.0 / factors[k]..=factors[k]).contains(&ratio),
                "{name} in {parts} parts: {} {what} a step, {} by the model",
                most[k],
                told[k]
            );
        }
    }
}
