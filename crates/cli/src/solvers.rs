//! The list of solvers: the one place where a new solver is entered. Everything behind an entry is generic over
//! [`Solver`].

use std::marker::PhantomData;
use std::path::PathBuf;

use zellige_dsmc::Dsmc;
use zellige_engine::bench::{self, BenchResult};
use zellige_engine::config::{self, Source};
use zellige_engine::cuda::{Properties, Recipe};
use zellige_engine::device::{Cpu, Device};
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::links::Links;
use zellige_engine::sim::{Case, Environment, Plan, Solver};
use zellige_pic::Pic;
use zellige_poisson::Poisson;
use zellige_ptycho::Ptycho;

use crate::args::RunArgs;
use crate::commands::run;
use crate::report;
use crate::session::{self, Session, Settings};

/// List of all solvers.
pub(crate) const SOLVERS: &[&dyn Entry] = &[
    &SolverEntry::<Poisson>(PhantomData),
    &SolverEntry::<Pic>(PhantomData),
    &SolverEntry::<Dsmc>(PhantomData),
    &SolverEntry::<Ptycho>(PhantomData),
];

/// Interface of a solver to the commands.
pub(crate) trait Entry: Sync {
    /// Name of the solver.
    fn name(&self) -> &'static str;
    /// JSON schema of its input.
    fn schema(&self) -> serde_json::Value;
    /// Checks an input that was read and found to be its own.
    fn check(&self, source: &Source) -> Result<()>;
    /// Runs an input that was read and found to be its own.
    fn run(&self, source: &Source, arguments: &RunArgs, links: &Links) -> Result<u8>;
    /// Sets up a run of such an input, to be driven from outside.
    fn open(&self, source: &Source, settings: &Settings) -> Result<Box<dyn Session>>;
    /// Programs that an input takes on such a GPU.
    fn programs(&self, source: &Source, gpu: &Properties) -> Result<Vec<Recipe>>;
    /// Benchmark cases of the solver.
    fn cases(&self) -> &'static [Case];
    /// Standard cases of the solver over a range of sizes.
    fn sweep(&self) -> Vec<Vec<Case>>;
    /// Times one, for at least this many seconds.
    fn bench(&self, case: &Case, device: &Device, patience: f64) -> Result<BenchResult>;
    /// Plans a case on a device, if the case has an input.
    fn plan(&self, case: &Case, device: &Device) -> Option<Result<Plan>>;
    /// The input of a case as a file in JSON, if it has one.
    fn input(&self, case: &Case) -> Option<Result<serde_json::Value>>;
}

struct SolverEntry<S>(PhantomData<fn() -> S>);

/// The entry of a solver that is not in the list.
#[cfg(test)]
pub(crate) fn entry<S: Solver>() -> impl Entry {
    SolverEntry::<S>(PhantomData)
}

impl<S: Solver> Entry for SolverEntry<S> {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn schema(&self) -> serde_json::Value {
        config::schema::<S>()
    }

    fn check(&self, source: &Source) -> Result<()> {
        source.typed::<S>().map(drop)
    }

    fn run(&self, source: &Source, arguments: &RunArgs, links: &Links) -> Result<u8> {
        run::execute::<S>(links.together(source.typed::<S>())?, arguments, links).map_err(|e| run::with_positions(e, source))
    }

    fn open(&self, source: &Source, settings: &Settings) -> Result<Box<dyn Session>> {
        session::open_solver::<S>(source.typed::<S>()?, settings).map_err(|e| run::with_positions(e, source))
    }

    fn programs(&self, source: &Source, gpu: &Properties) -> Result<Vec<Recipe>> {
        let input = source.typed::<S>()?;
        if !S::only_on_cpu(&input.config).is_empty() {
            return Ok(Vec::new());
        }
        let environment = Environment::new(Device::Cpu(Cpu::new(0)?), input.folder.clone(), input.run.seed);
        S::programs(&input.config, &environment, gpu).map_err(|e| run::with_positions(run::named(e, &input.origin), source))
    }

    fn cases(&self) -> &'static [Case] {
        S::cases()
    }

    fn sweep(&self) -> Vec<Vec<Case>> {
        S::sweep()
    }

    fn bench(&self, case: &Case, device: &Device, patience: f64) -> Result<BenchResult> {
        bench::bench_for::<S>(case, device, patience, report::VERSION, report::GIT_HASH)
    }

    fn plan(&self, case: &Case, device: &Device) -> Option<Result<Plan>> {
        let environment = Environment::new(device.clone(), PathBuf::new(), 1);
        S::input(case).map(|config| S::plan(&config, &environment))
    }

    fn input(&self, case: &Case) -> Option<Result<serde_json::Value>> {
        let config = S::input(case)?;
        let value = serde_json::to_value(config).map_err(|e| Error::input(case.name, Problem::new("", e.to_string())));
        Some(value.map(|value| serde_json::json!({ S::NAME: value })))
    }
}

/// Names of all solvers.
pub(crate) fn names() -> Vec<&'static str> {
    SOLVERS.iter().map(|s| s.name()).collect()
}

/// The solver of that name.
pub(crate) fn find(name: &str) -> Result<&'static dyn Entry> {
    SOLVERS
        .iter()
        .copied()
        .find(|s| s.name() == name)
        .ok_or_else(|| Error::input("command line", Problem::new("", format!("`{name}` is not a solver")).allowed(names().join(", "))))
}

#[cfg(test)]
mod tests {
    use zellige_engine::config::Format;
    use zellige_engine::testing::toy::Toy;

    use super::*;

    /// Tells the test binary that it is the process that panics.
    const FOLDER: &str = "ZELLIGE_TEST_OF_A_PANIC";

    /// Runs the toy with further keys, in this process.
    fn toy(folder: &std::path::Path, keys: &str, keep_going: bool) -> Result<u8> {
        let text = format!("[toy]\n{keys}\n[run]\ndevice = \"cpu\"\nthreads = 1");
        let source = Source::parse(&text, Format::Toml, "toy.toml")?;
        SolverEntry::<Toy>(PhantomData).run(
            &source,
            &RunArgs { output: Some(folder.into()), keep_going, ..RunArgs::default() },
            &Links::default(),
        )
    }

    #[test]
    fn how_a_run_ended_stands_in_its_exit_code_and_in_its_summary() {
        let folder = tempfile::tempdir().unwrap();
        let summary = || zellige_io::json::read(folder.path().join("summary.json")).unwrap();
        assert_eq!(toy(folder.path(), "", false).unwrap(), 0);
        assert_eq!((summary()["exit_code"].as_u64(), summary().get("verdict")), (Some(0), None));
        for (keep_going, code) in [(false, 3), (true, 0)] {
            assert_eq!(toy(folder.path(), "bound = 1e-9", keep_going).unwrap(), code);
            assert_eq!(summary()["exit_code"].as_u64(), Some(u64::from(code)));
            let verdict = summary()["verdict"].as_str().unwrap().to_owned();
            assert!(verdict.starts_with("a check failed: error against the closed form: "), "{verdict}");
        }
        // The goal itself is not excused.
        assert_eq!(toy(folder.path(), "diverge_after = 3", true).unwrap(), 3);
        let broken = toy(folder.path(), "poison_after = 3", true).unwrap_err();
        assert_eq!((broken.exit_code(), summary()["outcome"]["status"].as_str()), (3, Some("broken_down")));
        assert_eq!(summary()["verdict"].as_str(), Some(broken.to_string().as_str()));
        assert_eq!(zellige_io::csv::read(folder.path().join("rows.csv")).unwrap().columns[0], [1.0, 2.0, 3.0]);
    }

    #[test]
    fn a_panic_in_a_solver_is_told_as_a_defect_with_exit_code_70() {
        if let Some(folder) = std::env::var_os(FOLDER) {
            report::defects_in_one_line();
            let ended = toy(folder.as_ref(), "panic_after = 3", false);
            eprintln!("it went on to {ended:?}");
            std::process::exit(1);
        }
        let folder = tempfile::tempdir().unwrap();
        let name = "solvers::tests::a_panic_in_a_solver_is_told_as_a_defect_with_exit_code_70";
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args([name, "--exact", "--nocapture"]).env(FOLDER, folder.path()).env("NO_COLOR", "1").env_remove("RUST_BACKTRACE");
        let output = child.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(70), "{text}");
        let line = text.lines().find(|l| l.starts_with("error: ")).unwrap_or_default();
        assert!(line.contains("a defect of zellige") && line.ends_with("the oscillator was asked to panic"), "{text}");
        assert!(text.contains("hint: please report") && !text.contains("stack backtrace"), "{text}");
        assert!(!folder.path().join("summary.json").exists());
    }
}
