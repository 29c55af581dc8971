//! `zellige new`: the examples, which are part of the binary.

use std::path::PathBuf;

use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::files;

use crate::args::NewArgs;
use crate::commands::print;
use crate::report;

macro_rules! examples {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../examples/", $name, ".toml")))),*]
    };
}

/// Name and text of every example.
pub(crate) const EXAMPLES: &[(&str, &str)] = examples![
    "poisson/dipole",
    "poisson/manufactured",
    "poisson/neumann",
    "poisson/periodic",
    "poisson/anisotropic",
    "poisson/channel",
    "poisson/point_charges_3d",
    "pic/two_stream",
    "pic/langmuir",
    "pic/filamentation",
    "pic/plasma_waves",
    "pic/magnetised_waves",
    "pic/wakefield",
    "pic/slab",
    "pic/kelvin_helmholtz",
    "pic/heating",
    "pic/log_weibel",
    "pic/kong",
    "dsmc/cylinder",
    "dsmc/couette",
    "dsmc/fourier",
    "dsmc/cavity",
    "dsmc/relaxation",
    "dsmc/jet",
    "ptycho/simulated",
    "ptycho/stacked",
    "ptycho/mixed_state",
    "ptycho/position_errors",
    "ptycho/weak_phase",
    "ptycho/near_field",
];

/// The first line of an example, which says what it shows.
fn headline(text: &str) -> &str {
    text.lines().next().unwrap_or("").trim_start_matches(['#', ' '])
}

/// Lists the examples.
pub(crate) fn list() -> Result<u8> {
    let lines: Vec<String> = EXAMPLES.iter().map(|(name, text)| format!("{name:28} {}\n", headline(text))).collect();
    report::note("these examples come with the program; `zellige new NAME` writes one, `zellige run FILE` runs it");
    print(&lines.concat())
}

/// The command.
pub(crate) fn new(arguments: &NewArgs) -> Result<u8> {
    let Some(name) = &arguments.example else {
        return list();
    };
    let wrong = |message: String| {
        let names: Vec<_> = EXAMPLES.iter().map(|e| e.0).collect();
        Error::input("command line", Problem::new("", message).allowed(names.join(", ")))
    };
    let wanted = name.trim_end_matches(".toml");
    let found: Vec<_> = EXAMPLES.iter().filter(|(n, _)| *n == wanted || n.rsplit('/').next() == Some(wanted)).collect();
    let [(full, text)] = found[..] else {
        return Err(wrong(format!("there is no example `{name}`")));
    };
    let short = full.rsplit('/').next().unwrap_or(full);
    let path = arguments.output.clone().unwrap_or_else(|| PathBuf::from(format!("{short}.toml")));
    if path.exists() {
        let problem = Problem::new("", format!("`{}` exists and is left as it is", path.display()));
        return Err(Error::input("command line", problem.hint("name another file with `-o FILE`")));
    }
    files::atomic_write(&path, |out| std::io::Write::write_all(out, text.as_bytes()))?;
    report::line("written", &path.display().to_string());
    report::line("next", &format!("zellige run {}", path.display()));
    Ok(0)
}
