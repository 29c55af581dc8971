//! `zellige poisson X Y M N S ERR Q`: the classical seven arguments, put into an ordinary input.

use std::path::{Path, PathBuf};

use zellige_engine::config::{FileFormat, Input, OutputConfig, RunConfig};
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::links::Links;
use zellige_poisson::Poisson;
use zellige_poisson::config::{Config, FileSource, Source};
use zellige_poisson::method::{Method, Tolerance};
use zellige_poisson::problem::Precision;
use zellige_poisson::step::Cycle;

use crate::args::{PoissonArgs, PrecisionArg, RunArgs};
use crate::commands::run;

/// A pair of opposite Gaussian charges of width 1, an eighth of the length left and right of the middle: on 32 x 32 they
/// stand at (12, 16) and (20, 16).
const DIPOLE: &str = "exp(-((x - 0.375*lx)^2 + (y - 0.5*ly)^2)/2) - exp(-((x - 0.625*lx)^2 + (y - 0.5*ly)^2)/2)";

/// The command.
pub(crate) fn poisson(arguments: PoissonArgs) -> Result<u8> {
    let rhs = match &arguments.rhs {
        None => Source::Expression(DIPOLE.into()),
        Some(text) if Path::new(text).extension().is_some_and(|e| e.eq_ignore_ascii_case("npy")) => {
            Source::File(FileSource { file: PathBuf::from(text) })
        }
        Some(text) => Source::Expression(text.clone()),
    };
    let mut config = Config::new(vec![arguments.m, arguments.n], vec![arguments.x, arguments.y], rhs);
    (config.method, config.cycle) = match arguments.q {
        0 => (Method::Sor, Cycle::V),
        1 => (Method::Multigrid, Cycle::C),
        2 => (Method::Multigrid, Cycle::V),
        _ => (Method::Multigrid, Cycle::W),
    };
    if arguments.q != 0 {
        config.coarse_levels = Some(arguments.s);
    }
    config.tolerance = Tolerance::Relative(arguments.err);
    config.precision = match arguments.precision {
        PrecisionArg::F32 => Precision::F32,
        PrecisionArg::F64 => Precision::F64,
        PrecisionArg::Mixed => Precision::Mixed,
    };
    let formats = vec![FileFormat::Npy, FileFormat::Bov, FileFormat::Vti, FileFormat::Png];
    let output = OutputConfig { formats, ..OutputConfig::default() };
    let input = Input { origin: "command line".into(), folder: PathBuf::new(), config, run: RunConfig::default(), output };
    let mut problems = input.check::<Poisson>();
    if !problems.is_empty() {
        problems.iter_mut().for_each(in_words_of_the_command);
        return Err(Error::Input { origin: "command line".into(), problems });
    }
    let run = RunArgs { output: Some(arguments.output), target: arguments.target, ..RunArgs::default() };
    run::execute::<Poisson>(input, &run, &Links::default()).map_err(|error| match error {
        Error::Input { origin, mut problems } => {
            problems.iter_mut().for_each(in_words_of_the_command);
            Error::Input { origin, problems }
        }
        other => other,
    })
}

/// The argument behind a key of the input.
fn in_words_of_the_command(problem: &mut Problem) {
    let name = match problem.path.as_str() {
        "poisson.grid.size" => "X Y",
        "poisson.grid.nodes" | "poisson.grid.nodes[0]" | "poisson.grid.nodes[1]" => "M N",
        "poisson.coarse_levels" => "S",
        "poisson.tolerance" => "ERR",
        "poisson.rhs" | "poisson.rhs.file" => "--rhs",
        _ => return,
    };
    // There is no input file here, nor a word in place of a number.
    problem.hint = problem.hint.take().map(|hint| hint.replace("the folder of the input file", "the current folder"));
    if name == "ERR" {
        problem.allowed = problem.allowed.take().map(|_| "0 or more and below 1".into());
    }
    name.clone_into(&mut problem.path);
}
