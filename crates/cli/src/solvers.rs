//! The list of solvers: the one place where a new solver is entered. Everything behind an entry is generic over
//! [`Solver`].

use std::marker::PhantomData;

use zellige_dsmc::Dsmc;
use zellige_engine::bench::{self, BenchResult};
use zellige_engine::config::{self, Source};
use zellige_engine::device::Device;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::sim::{Case, Solver};
use zellige_pic::Pic;
use zellige_poisson::Poisson;
use zellige_ptycho::Ptycho;

use crate::args::RunArgs;
use crate::commands::run;
use crate::report;

/// Every solver.
pub(crate) const SOLVERS: &[&dyn Entry] =
    &[&Of::<Poisson>(PhantomData), &Of::<Pic>(PhantomData), &Of::<Dsmc>(PhantomData), &Of::<Ptycho>(PhantomData)];

/// What the commands need of a solver.
pub(crate) trait Entry: Sync {
    /// Its name.
    fn name(&self) -> &'static str;
    /// Whether it has kernels for GPUs.
    fn gpu(&self) -> bool;
    /// JSON schema of its input.
    fn schema(&self) -> serde_json::Value;
    /// Runs an input that was read and found to be its own.
    fn run(&self, source: &Source, arguments: &RunArgs) -> Result<u8>;
    /// Its benchmark cases.
    fn cases(&self) -> &'static [Case];
    /// Times one.
    fn bench(&self, case: &Case, device: &Device) -> Result<BenchResult>;
}

struct Of<S>(PhantomData<fn() -> S>);

impl<S: Solver> Entry for Of<S> {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn gpu(&self) -> bool {
        S::GPU
    }

    fn schema(&self) -> serde_json::Value {
        config::schema::<S>()
    }

    fn run(&self, source: &Source, arguments: &RunArgs) -> Result<u8> {
        run::execute::<S>(source.typed::<S>()?, arguments).map_err(|e| run::with_places(e, source))
    }

    fn cases(&self) -> &'static [Case] {
        S::cases()
    }

    fn bench(&self, case: &Case, device: &Device) -> Result<BenchResult> {
        bench::bench::<S>(case, device, report::VERSION, report::GIT_HASH)
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

    #[test]
    fn a_panic_in_a_solver_is_told_as_a_defect_with_exit_code_70() {
        if let Some(folder) = std::env::var_os(FOLDER) {
            report::defects_in_one_line();
            let source = Source::parse("[toy]\npanic_after = 3\n[run]\ndevice = \"cpu\"\nthreads = 1", Format::Toml, "toy.toml");
            let arguments = RunArgs { output: Some(folder.into()), ..RunArgs::default() };
            let ended = source.and_then(|source| Of::<Toy>(PhantomData).run(&source, &arguments));
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
