//! `zellige run`: input, device, plan, run, results.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use zellige_dsmc::start::seed;
use zellige_engine::allocator;
use zellige_engine::config::{FileFormat, Input, Source};
use zellige_engine::cuda;
use zellige_engine::device::{Device, DeviceSpec, host_memory_peak};
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::files;
use zellige_engine::links::Links;
use zellige_engine::lock::Lock;
use zellige_engine::profile::Profiler;
use zellige_engine::run::{self, Options, Silent, Summary, checkpoint_path};
use zellige_engine::schedule::Schedule;
use zellige_engine::sim::{Ending, Environment, Outcome, Plan, Solver};
use zellige_engine::times::{self, Phase};
use zellige_io::Format;

use crate::args::{RunArgs, RunTarget};
use crate::commands::parts::{self, Parts};
use crate::commands::queue;
use crate::commands::tell::{conclude, show};
use crate::report::{self, GIT_HASH, VERSION};
use crate::sink::{Output, RESOLVED, SUMMARY};
use crate::{commands, solvers};

/// The command.
pub(crate) fn run(arguments: &RunArgs) -> Result<u8> {
    parts::with_links(|links| match queue::asked(arguments) {
        true if links.is_alone() => queue::run(arguments),
        true => {
            let problem = Problem::new("INPUT", format!("several runs in each of {} processes", links.size()));
            Err(Error::input("command line", problem.hint("start one process: it starts the runs, one at a time on each device")))
        }
        false => run_one(arguments, links),
    })
}

/// One run, or this process's part of it.
fn run_one(arguments: &RunArgs, links: &Links) -> Result<u8> {
    // A run that was cut off has left its whole input beside its checkpoint.
    let left = arguments.resume.as_ref().map(|folder| folder.join(RESOLVED));
    let Some(path) = arguments.inputs.first().or(left.as_ref()) else {
        return commands::new::list("");
    };
    let source = links.together(read(path, &arguments.overrides))?;
    let solver = source.solver(&solvers::names())?;
    solvers::find(solver)?.run(&source, arguments, links)
}

/// Reads and checks an input, as far as that is possible without its files.
pub(crate) fn check(path: &Path, overrides: &[String]) -> Result<()> {
    let source = read(path, overrides)?;
    solvers::find(source.solver(&solvers::names())?)?.check(&source)
}

/// Reads an input and sets what the command line overrides.
pub(crate) fn read(path: impl AsRef<Path>, overrides: &[String]) -> Result<Source> {
    let path = path.as_ref();
    let name = path.to_string_lossy();
    if !path.exists() && commands::new::is_example(&name) {
        let problem = Problem::new("", "there is no such file, but the program has an example of that name");
        return Err(Error::input(name.as_ref(), problem.hint(format!("`zellige new {name}` writes it into a file to run"))));
    }
    let mut source = Source::read(path)?;
    source.set(overrides)?;
    match seed::adopt(&mut source.value) {
        Ok(false) => {}
        Ok(true) => report::note(seed::NOTE),
        Err(problems) => return Err(source.problems(problems)),
    }
    Ok(source)
}

/// Largest number of threads that can be requested, as in the input.
const THREADS: usize = 4096;

/// The device that the command line, the environment or the input asks for, with what was passed over said. `without` says what
/// there are no kernels for GPUs for: `auto` is the CPU then.
pub(crate) fn open(target: &RunTarget, device: &str, threads: usize, without: Option<&str>) -> Result<Device> {
    let mut spec = spec(target, device)?;
    if let (Some(what), DeviceSpec::Auto) = (without, &spec) {
        report::note(&format!("no GPU is used: there are no kernels for {what}"));
        spec = DeviceSpec::Cpu;
    }
    // The input's number is checked with the input.
    if let Some(asked) = target.threads.filter(|n| *n > THREADS) {
        let problem = Problem::new("--threads", format!("{asked} threads")).allowed(format!("0 (every core) to {THREADS}"));
        return Err(Error::input("command line", problem));
    }
    let (device, notes) = Device::open(&spec, target.threads.unwrap_or(threads))?;
    for text in notes {
        report::note(&text);
    }
    Ok(device)
}

fn spec(target: &RunTarget, device: &str) -> Result<DeviceSpec> {
    let parse = |text: &str, path: &str| {
        text.parse::<DeviceSpec>()
            .map_err(|message| Error::input("command line", Problem::new(path, message).hint("`zellige devices` lists them")))
    };
    let asked = target.device.as_deref().map(|d| parse(d, "--device")).transpose()?;
    DeviceSpec::choose(asked, Some(parse(device, "run.device")?))
}

/// The CPU, where `auto` may choose it and it is forecast to be done before a GPU that has to be started first. A driver is asked
/// only where it could be faster.
fn chosen<S: Solver>(spec: &DeviceSpec, may: bool, input: &Input<S::Config>, threads: usize) -> Result<Option<Device>> {
    if *spec != DeviceSpec::Auto || !may || !cuda::library::driver().usable() {
        return Ok(None);
    }
    let device = Device::open(&DeviceSpec::Cpu, threads)?.0;
    let environment = Environment::new(device.clone(), input.folder.clone(), input.run.seed);
    // Faults of the input are reported by the plan of the run itself.
    let Some(work) = S::plan(&input.config, &environment).ok().and_then(|plan| plan.work) else { return Ok(None) };
    let Some(forecasts) = work.forecasts_if_cpu_faster(device.threads()) else { return Ok(None) };
    let [here, there] = forecasts.map(report::seconds);
    report::note(&format!(
        "the CPU is used: the cost model forecasts {here} for the steps, and {there} on a GPU with its start; `--device cuda` uses the GPU anyway"
    ));
    Ok(Some(device))
}

/// Model traffic of a step below which one thread is faster than several, bytes: a step of 0.7 MiB in six stages takes 88 us on one
/// thread, 151 on four and 188 on sixteen, which wait for each other between the stages.
const ALONE: u64 = 900_000;

/// One thread in place of all where a step is too small for more.
fn alone(device: Device, plan: &Plan, step: &str) -> Result<Device> {
    let threads = device.threads();
    if !matches!(device, Device::Cpu(_)) || threads == 1 || plan.traffic >= ALONE {
        return Ok(device);
    }
    report::note(&format!("1 of {threads} threads is used: one {step} is too little work to share; `--threads` sets another number"));
    Ok(Device::open(&DeviceSpec::Cpu, 1)?.0)
}

/// `out/NAME` for an input `some/where/NAME.toml`.
fn default_folder(origin: &str) -> PathBuf {
    Path::new("out").join(Path::new(origin).file_stem().unwrap_or("run".as_ref()))
}

/// Runs a checked input.
pub(crate) fn execute<S: Solver>(mut input: Input<S::Config>, arguments: &RunArgs, links: &Links) -> Result<u8> {
    let parts = Parts::new::<S>(&input.config, arguments.parts, links)?;
    // As it was read: the threads of each part are its own matter.
    links.must_agree("the input", &input.resolved::<S>()?)?;
    let mut without = S::only_on_cpu(&input.config).join(", ");
    if parts.count() > 1 {
        without = "several parts".into();
    }
    let asked = parts.threads(arguments.target.threads.unwrap_or(input.run.threads))?;
    let spec = spec(&arguments.target, &input.run.device)?;
    let device = match chosen::<S>(&spec, without.is_empty(), &input, asked)? {
        Some(processor) => processor,
        None => {
            let target = RunTarget { threads: Some(asked), ..arguments.target.clone() };
            links.together(open(&target, &input.run.device, asked, (!without.is_empty()).then_some(&without)))?
        }
    };
    parts.refuse(&device)?;
    input.run.device = device.id();
    let mut environment = Environment::new(device, input.folder.clone(), input.run.seed).of_part(links.clone());
    let device = environment.device.clone();
    let plural = if device.threads() == 1 { "" } else { "s" };
    let in_parts = match parts.count() {
        1 => String::new(),
        n if links.is_alone() => format!(", {n} parts"),
        n => format!(" in each of {n} parts, {}", links.transport()),
    };
    report::heading(&format!(
        "zellige {VERSION} {} on {} ({}, {} thread{plural}{in_parts})",
        S::NAME,
        device.name(),
        device.id(),
        device.threads()
    ));
    let named = |error| named(error, &input.origin);
    // Preparing may take as long as the run. Parts in this process prepare each for itself.
    let prepared = if arguments.dry_run || parts.inside() > 1 {
        None
    } else {
        Some(links.together(S::prepare(&input.config, &environment).map_err(named))?)
    };
    let plan = match &prepared {
        Some(prepared) => S::plan_prepared(prepared, &input.config, &environment),
        None => S::plan(&input.config, &environment),
    };
    let plan = plan.map_err(named)?;
    show(&plan, S::ITEM, S::STEP, &device);
    if asked == 0 && parts.count() == 1 {
        environment.device = alone(environment.device, &plan, S::STEP)?;
    }
    input.run.threads = environment.device.threads();
    allocator::set_planned(plan.memory);
    if arguments.dry_run {
        report::note("this was a dry run: nothing was computed or written");
        return Ok(0);
    }
    let asked = arguments.output.clone().or_else(|| input.output.folder.clone().map(PathBuf::from));
    let folder = asked.or_else(|| arguments.resume.clone()).unwrap_or_else(|| default_folder(&input.origin));
    // Before the folder is made, which a mistyped name would leave behind.
    if let Some(from) = &arguments.resume
        && !checkpoint_path(from).exists()
    {
        let problem = Problem::new("--resume", format!("there is no checkpoint in `{}`", from.display()));
        let hint = "name the output folder of the interrupted run, or its `--checkpoint-dir`; a run that ended well removes its checkpoint";
        return Err(Error::input("command line", problem.hint(hint)));
    }
    let options = options(&input, arguments, &folder);
    // Before anything is computed: a result that cannot be written is found out now.
    let locks = if links.is_first() { own(&folder, arguments.checkpoint_dir.as_deref(), arguments.force) } else { Ok(Vec::new()) };
    let locks = links.follow_first(locks)?;
    if !links.is_first() {
        let summary = run::run_from::<S>(prepared, &input.config, &environment, &options, &mut Profiler::new(), &mut Silent)?;
        return Ok(if arguments.keep_going && summary.outcome.ending != Ending::Failed { 0 } else { summary.exit_code() });
    }
    let resolved = format!("# zellige {VERSION} ({GIT_HASH}), device {}\n{}", device.name(), input.resolved::<S>()?);
    let mut profiler = if arguments.profile { Profiler::new().with_trace() } else { Profiler::new() };
    let output = Output::new(&folder, formats(&input.output.formats), resolved, S::STEP, S::ITEM);
    let mut output = output.after(arguments.resume.clone()).beside(arguments.checkpoint_dir.clone());
    let result = parts.run::<S>(prepared, &input, &environment, &options, &mut profiler, &mut output);
    times::switch_to(Phase::End);
    // Rows are kept also when the run broke down or was interrupted.
    let finished = times::within(Phase::Output, || output.finish());
    if let Err(error @ Error::Numerics { .. }) = &result {
        broken_down::<S>(error, &plan, &folder)?;
    }
    if let (Err(_), Err(error)) = (&result, &finished) {
        report::warning(&format!("earlier results could not all be written either: {error}"));
    }
    let mut summary = result.map_err(named)?;
    finished?;
    if arguments.profile {
        files::atomic_write(folder.join("trace.json"), |out| profiler.write_trace(out))?;
    }
    // All that takes time comes before the times are told.
    drop((environment, profiler, locks));
    summary.times = times::elapsed();
    let verdict = summary.verdict();
    // A missed goal is not excused by a flag about checks.
    let excused = arguments.keep_going && summary.outcome.ending != Ending::Failed;
    let exit_code = if excused { 0 } else { summary.exit_code() };
    let (items, bytes) = (summary.cost_per_step.items, summary.cost_per_step.bytes);
    let whole = SummaryFile {
        version: VERSION,
        git_hash: GIT_HASH,
        exit_code,
        verdict: verdict.as_deref(),
        plan: &plan,
        items,
        bytes_per_item: bytes / items.max(1.0),
        gb_per_s: summary.bytes_per_second / 1e9,
        fraction_of_bandwidth: summary.bandwidth.map(|b| summary.bytes_per_second / b),
        measured_bandwidth: summary.bandwidth.map(|b| b / 1e9),
        peak_memory: host_memory_peak(),
        run: &summary,
    };
    zellige_io::json::write(folder.join(SUMMARY), &whole)?;
    conclude::<S>(&summary, &output, &folder, arguments.profile);
    // The last line, where nobody overlooks it.
    match verdict {
        Some(verdict) if excused => report::warning(&format!("{verdict}; exit code 0 nevertheless, because of --keep-going")),
        Some(verdict) => report::fault(&format!("{verdict}; do not trust the result (exit code {exit_code})")),
        None => {}
    }
    Ok(exit_code)
}

/// Takes the folders that the run writes into: nobody else writes there meanwhile, and what killed runs left half-written is
/// cleared.
fn own(folder: &Path, checkpoints: Option<&Path>, force: bool) -> Result<Vec<Lock>> {
    let mut locks = Vec::new();
    // A folder is not locked twice.
    let other = checkpoints.filter(|other| std::path::absolute(other).ok() != std::path::absolute(folder).ok());
    for folder in [Some(folder), other].into_iter().flatten() {
        files::writable_dir(folder)?;
        let lock = Lock::take(folder, force)?;
        if !lock.holds() {
            report::note(&format!("the file system of `{}` has no locks: make sure that no other run writes there", folder.display()));
        }
        locks.push(lock);
        if !force {
            for folder in [folder, &folder.join("openpmd"), checkpoint_path(folder).parent().unwrap_or(folder)] {
                files::clear_temporaries(folder);
            }
        }
    }
    Ok(locks)
}

/// The summary of a run that broke down: scripts find here how it ended, as of any other.
fn broken_down<S: Solver>(error: &Error, plan: &Plan, folder: &Path) -> Result<()> {
    let outcome = Outcome { ending: Ending::Failed, status: "broken_down", message: error.to_string() };
    let summary = serde_json::json!({
        "version": VERSION,
        "git_hash": GIT_HASH,
        "exit_code": error.exit_code(),
        "verdict": outcome.message,
        "plan": plan,
        "solver": S::NAME,
        "outcome": outcome,
    });
    zellige_io::json::write(folder.join(SUMMARY), &summary)
}

/// Names the file that the solver, which has not seen it, calls the input.
pub(crate) fn named(error: Error, origin: &str) -> Error {
    match error {
        Error::Input { problems, .. } => Error::Input { origin: origin.to_owned(), problems },
        other => other,
    }
}

/// Says where in the input the problems stand that were only found when the run was set up.
pub(crate) fn with_positions(error: Error, source: &Source) -> Error {
    match error {
        Error::Input { origin, problems } if origin == source.origin => source.problems(problems),
        other => other,
    }
}

/// The summary as it is written.
#[derive(Serialize)]
struct SummaryFile<'a> {
    version: &'a str,
    git_hash: &'a str,
    exit_code: u8,
    /// Reason why the result is not to be trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'a str>,
    plan: &'a Plan,
    // Under the names that `bench --json` uses.
    items: f64,
    bytes_per_item: f64,
    gb_per_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    fraction_of_bandwidth: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured_bandwidth: Option<f64>,
    /// Peak host memory of the process, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_memory: Option<u64>,
    #[serde(flatten)]
    run: &'a Summary,
}

/// Interval of the temporary checkpoints of a run that asks for none.
const TEMPORARY_EVERY: Duration = Duration::from_secs(600);

fn options<C>(input: &Input<C>, arguments: &RunArgs, folder: &Path) -> Options {
    let wall_time = match input.run.wall_time {
        Some(Schedule::Wall(limit)) => Some(limit),
        _ => None,
    };
    // Asked for or not: "never" is neither.
    let checkpoint = input.run.checkpoint_every.filter(|every| *every != Schedule::Never);
    let temporary_checkpoints = input.run.checkpoint_every.is_none().then_some(TEMPORARY_EVERY);
    Options {
        checkpoint_folder: arguments.checkpoint_dir.clone(),
        resume: arguments.resume.clone(),
        wall_time,
        checkpoint,
        temporary_checkpoints,
        rows: input.run.rows_every,
        records: input.output.every,
        ..Options::new(folder)
    }
}

fn formats(wanted: &[FileFormat]) -> Vec<Format> {
    let format = |f: &FileFormat| match f {
        FileFormat::Npy => Format::Npy,
        FileFormat::Bov => Format::Bov,
        FileFormat::Vti => Format::Vti,
        FileFormat::Vtu => Format::Vtu,
        FileFormat::Hdf5 => Format::Hdf5,
        FileFormat::Csv => Format::Csv,
        FileFormat::Png => Format::Png,
    };
    wanted.iter().map(format).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns true if an example is forecast to end first on 16 threads rather than on the GPU.
    fn on_threads<S: Solver>(source: &Source) -> bool {
        let input = source.typed::<S>().unwrap();
        let device = Device::open(&DeviceSpec::Cpu, 16).unwrap().0;
        let work = S::plan(&input.config, &Environment::new(device, input.folder, 1)).unwrap().work.unwrap();
        work.forecasts_if_cpu_faster(16).is_some()
    }

    /// Compares the choice with times measured on an H200 and on 16 cores of its host, where they differ clearly
    /// (`docs/performance/runs.md`).
    #[test]
    fn examples_go_where_they_end_first() {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let mut wrong = Vec::new();
        for (name, threads) in [
            ("poisson/anisotropic", true),
            ("poisson/channel", true),
            ("poisson/neumann", true),
            ("poisson/periodic", true),
            ("poisson/point_charges_3d", true),
            ("pic/langmuir", true),
            ("pic/filamentation", true),
            ("pic/plasma_waves", true),
            ("pic/two_stream", true),
            ("pic/kong", false),
            ("pic/kelvin_helmholtz", false),
            ("pic/log_weibel", false),
            ("pic/wakefield", false),
            ("dsmc/flat_plate", false),
            ("dsmc/knudsen_pump", false),
            ("dsmc/satellite_panel", false),
            ("ptycho/mixed_state", false),
            ("ptycho/stacked", false),
        ] {
            let source = Source::read(examples.join(name).with_extension("toml")).unwrap();
            let found = match name.split('/').next() {
                Some("poisson") => on_threads::<zellige_poisson::Poisson>(&source),
                Some("pic") => on_threads::<zellige_pic::Pic>(&source),
                Some("dsmc") => on_threads::<zellige_dsmc::Dsmc>(&source),
                _ => on_threads::<zellige_ptycho::Ptycho>(&source),
            };
            if found != threads {
                wrong.push(name);
            }
        }
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}
