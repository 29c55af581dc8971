//! `zellige kernels`: kernels for GPUs that are not at hand, in one file.

use zellige_engine::config::{Format, Source};
use zellige_engine::cuda::{Properties, write_pack};
use zellige_engine::error::{Error, Problem, Result};

use crate::args::KernelsArgs;
use crate::commands::{new, run};
use crate::{report, solvers};

/// The command.
pub(crate) fn kernels(arguments: &KernelsArgs) -> Result<u8> {
    let sources = if arguments.inputs.is_empty() {
        let parsed = new::EXAMPLES.iter().map(|(name, text)| Source::parse(text, Format::Toml, *name));
        parsed.collect::<Result<Vec<_>>>()?
    } else {
        arguments.inputs.iter().map(|path| run::read(path, &[])).collect::<Result<Vec<_>>>()?
    };
    let mut programs = Vec::new();
    for arch in &arguments.arch {
        let gpu = Properties::usual(arch).ok_or_else(|| {
            let problem = Problem::new("--arch", format!("`{arch}` is not an architecture that kernels are packed for"));
            Error::input("command line", problem.allowed(Properties::known().collect::<Vec<_>>().join(", ")))
        })?;
        for source in &sources {
            let recipes = solvers::find(source.solver(&solvers::names())?)?.programs(source, &gpu)?;
            programs.extend(recipes.into_iter().map(|recipe| (arch.clone(), recipe)));
        }
    }
    let count = write_pack(&arguments.output, &programs)?;
    let bytes = std::fs::metadata(&arguments.output).map_or(0, |m| m.len());
    let (inputs, archs) = (sources.len(), arguments.arch.join(", "));
    report::line(
        "written",
        &format!("{}: {count} programs of {inputs} inputs for {archs}, {}", arguments.output.display(), report::bytes(bytes as f64)),
    );
    report::line("next", "put it as `zellige.kernels` beside the binary, or name it in ZELLIGE_KERNELS");
    Ok(0)
}
