//! `zellige run`: input, device, plan, run, results.

use std::path::{Path, PathBuf};
use std::time::Duration;

use zellige_dsmc::start::seed;
use zellige_engine::config::{FileFormat, Input, Source};
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::files;
use zellige_engine::links::Links;
use zellige_engine::lock::Lock;
use zellige_engine::profile::Profiler;
use zellige_engine::run::{self, Options, Silent, checkpoint_path};
use zellige_engine::schedule::Schedule;
use zellige_engine::sim::{Ending, Solver};
use zellige_io::Format;
use zellige_live::Watcher;

use crate::args::RunArgs;
use crate::commands::conclude::conclude_run;
use crate::commands::live::{self, Live};
use crate::commands::parts;
use crate::commands::queue;
use crate::commands::ready::Ready;
use crate::report::{self, GIT_HASH, VERSION};
use crate::sink::{Output, RESOLVED};
use crate::{commands, solvers};

/// The command.
pub(crate) fn run(arguments: &RunArgs) -> Result<u8> {
    parts::with_links(|links| match queue::asked(arguments) {
        true if links.is_alone() => queue::run(arguments),
        true => {
            let problem = Problem::new("INPUT", format!("several runs in each of {} processes", links.size()));
            Err(Error::input("command line", problem.hint("start one process: it starts the runs, one at a time on each device")))
        }
        false => {
            queue::follow();
            run_one(arguments, links)
        }
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
    completed(Source::read(path)?, overrides)
}

/// Sets what the caller overrides, and fills in what the input leaves to other inputs.
pub(crate) fn completed(mut source: Source, overrides: &[String]) -> Result<Source> {
    source.set(overrides)?;
    match seed::adopt(&mut source.value) {
        Ok(false) => {}
        Ok(true) => report::note(seed::NOTE),
        Err(problems) => return Err(source.problems(problems)),
    }
    Ok(source)
}

/// Origin of an input that is no file.
pub(crate) const NO_FILE: &str = "the input";

/// `out/NAME` for an input `some/where/NAME.toml`, `out/SOLVER` for one that is no file.
fn default_folder(origin: &str, solver: &str) -> PathBuf {
    let name = if origin == NO_FILE { None } else { Path::new(origin).file_stem() };
    Path::new("out").join(name.unwrap_or(solver.as_ref()))
}

/// Folder of a run that is named by itself or by its checkpoint.
pub(crate) fn resumed_folder(named: &Path) -> PathBuf {
    let Ok(whole) = std::path::absolute(named) else { return named.to_owned() };
    let above = whole.ancestors().nth(2).filter(|folder| checkpoint_path(folder) == whole && whole.is_file());
    let shown = named.ancestors().nth(2).filter(|folder| !folder.as_os_str().is_empty());
    above.map_or(named, |above| shown.unwrap_or(above)).to_owned()
}

/// Runs a checked input.
pub(crate) fn execute<S: Solver>(input: Input<S::Config>, arguments: &RunArgs, links: &Links) -> Result<u8> {
    let Ready { input, environment, plan, prepared, parts } = Ready::<S>::new(input, arguments, links)?;
    if arguments.dry_run {
        report::note("this was a dry run: nothing was computed or written");
        return Ok(0);
    }
    let destination = links.is_first().then(|| Destination::new::<S>(&input, arguments)).transpose();
    let Some(destination) = links.follow_first(destination)? else {
        let options = options::<S>(&input, arguments, &folder_of::<S>(&input, arguments));
        let summary = run::run_from::<S>(prepared, &input.config, &environment, &options, &mut Profiler::new(), &mut Silent)?;
        return Ok(if arguments.keep_going && summary.outcome.ending != Ending::Failed { 0 } else { summary.exit_code() });
    };
    let mut profiler = if arguments.profile { Profiler::new().with_trace() } else { Profiler::new() };
    let Destination { options, locks } = destination;
    let mut output = output::<S>(&options.folder, &input, arguments, environment.device.name())?;
    let live = arguments.live.as_ref().map(|address| {
        let names = live::names::<S>(&input.config, &options.folder, environment.device.name(), &plan, arguments.steer);
        Live::start(address, names)
    });
    let live = live.transpose()?;
    let result = match &live {
        Some(live) => {
            let mut watcher = Watcher::new(live.hub());
            let mut watched = watcher.before(&mut output);
            let result = parts.run::<S>(prepared, &input, &environment, &options, &mut profiler, &mut watched);
            live.tell_cost(watched.cost());
            result
        }
        None => parts.run::<S>(prepared, &input, &environment, &options, &mut profiler, &mut output),
    };
    let live = live.inspect(|live| live.tell_end(&result));
    let code = conclude_run::<S>(result, &input.origin, &plan, &options.folder, output, profiler, arguments, (environment, locks));
    if let Some(live) = live {
        live.close();
    }
    code
}

/// Folder of the results.
pub(crate) fn folder_of<S: Solver>(input: &Input<S::Config>, arguments: &RunArgs) -> PathBuf {
    let asked = arguments.output.clone().or_else(|| input.output.folder.clone().map(PathBuf::from));
    asked.or_else(|| arguments.resume.clone()).unwrap_or_else(|| default_folder(&input.origin, S::NAME))
}

/// Folder of a run that is this process's own, and what goes there.
pub(crate) struct Destination {
    pub(crate) options: Options,
    pub(crate) locks: Vec<Lock>,
}

impl Destination {
    /// Takes the folder. Before anything is computed: a result that cannot be written is found out now.
    pub(crate) fn new<S: Solver>(input: &Input<S::Config>, arguments: &RunArgs) -> Result<Self> {
        let folder = folder_of::<S>(input, arguments);
        // Before the folder is made, which a mistyped name would leave behind.
        if let Some(from) = &arguments.resume
            && !checkpoint_path(from).exists()
        {
            let problem = Problem::new("--resume", format!("there is no checkpoint in `{}`", from.display()));
            let hint =
                "name the output folder of the interrupted run, or its `--checkpoint-dir`; a run that ended well removes its checkpoint";
            return Err(Error::input("command line", problem.hint(hint)));
        }
        let options = options::<S>(input, arguments, &folder);
        let locks = own(&folder, arguments.checkpoint_dir.as_deref(), arguments.force)?;
        Ok(Self { options, locks })
    }
}

/// Writer of the results into a folder.
pub(crate) fn output<S: Solver>(folder: &Path, input: &Input<S::Config>, arguments: &RunArgs, device: &str) -> Result<Output> {
    let output = Output::new(folder, formats(&input.output.formats), resolved::<S>(input, device)?, S::STEP, S::ITEM);
    Ok(output.after(arguments.resume.clone()).beside(arguments.checkpoint_dir.clone()))
}

/// The input with its defaults, as it lies beside results.
pub(crate) fn resolved<S: Solver>(input: &Input<S::Config>, device: &str) -> Result<String> {
    Ok(format!("# zellige {VERSION} ({GIT_HASH}), device {device}\n{}", input.resolved::<S>()?))
}

/// Takes the folders that the run writes into: nobody else writes there meanwhile, and what killed runs left half-written is
/// cleared.
pub(crate) fn own(folder: &Path, checkpoints: Option<&Path>, force: bool) -> Result<Vec<Lock>> {
    let mut locks = Vec::new();
    // A folder is not locked twice.
    let other = checkpoints.filter(|other| std::path::absolute(other).ok() != std::path::absolute(folder).ok());
    for folder in [Some(folder), other].into_iter().flatten() {
        files::writable_dir(folder)?;
        let lock = Lock::take(folder, force)?;
        if !lock.holds() {
            report::note(&format!("the file system of `{}` has no locks: make sure that no other run writes there", folder.display()));
        }
        if !force {
            for folder in [folder, &folder.join("openpmd"), checkpoint_path(folder).parent().unwrap_or(folder)] {
                files::clear_temporaries(folder, lock.holds());
            }
        }
        locks.push(lock);
    }
    Ok(locks)
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

/// Interval of the temporary checkpoints of a run that asks for none.
const TEMPORARY_EVERY: Duration = Duration::from_secs(600);

/// Schedule of the rows, as the input says or the solver.
pub(crate) fn rows_every<S: Solver>(input: &Input<S::Config>) -> Schedule {
    input.run.rows_every.unwrap_or_else(|| S::rows_every(&input.config))
}

fn options<S: Solver>(input: &Input<S::Config>, arguments: &RunArgs, folder: &Path) -> Options {
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
        rows: rows_every::<S>(input),
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
    use zellige_engine::device::{Device, DeviceSpec};
    use zellige_engine::sim::Environment;

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
