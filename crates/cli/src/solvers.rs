//! The list of solvers: the one place where a new solver is entered. Everything behind an entry is generic over
//! [`Solver`].

use std::marker::PhantomData;

use zellige_engine::bench::{self, BenchResult};
use zellige_engine::config::{self, Source};
use zellige_engine::device::Device;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::sim::{Case, Solver};
use zellige_pic::Pic;
use zellige_poisson::Poisson;

use crate::args::RunArgs;
use crate::commands::run;
use crate::report;

/// Every solver.
pub(crate) const SOLVERS: &[&dyn Entry] = &[&Of::<Poisson>(PhantomData), &Of::<Pic>(PhantomData)];

/// What the commands need of a solver.
pub(crate) trait Entry: Sync {
    /// Its name.
    fn name(&self) -> &'static str;
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

    fn schema(&self) -> serde_json::Value {
        config::schema::<S>()
    }

    fn run(&self, source: &Source, arguments: &RunArgs) -> Result<u8> {
        run::execute::<S>(source.typed::<S>()?, arguments)
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
