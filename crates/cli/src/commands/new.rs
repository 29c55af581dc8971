//! `zellige new`: the examples, which are part of the binary.

use std::path::PathBuf;

use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::text::did_you_mean;

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
    "poisson/batch",
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
    "dsmc/nozzle",
    "dsmc/flat_plate",
    "dsmc/satellite_panel",
    "dsmc/knudsen_pump",
    "ptycho/simulated",
    "ptycho/stacked",
    "ptycho/mixed_state",
    "ptycho/position_errors",
    "ptycho/weak_phase",
    "ptycho/near_field",
    "ptycho/wide_beam",
    "ptycho/subpixel",
    "ptycho/streamed",
];

macro_rules! older {
    ($($name:literal: $($file:literal),*;)*) => {
        &[$(($name, &[$(($file, include_str!(concat!("../../../../examples/dsmc/seed/", $file)))),*])),*]
    };
}

/// Examples in the older form of rarefied gas: name, and the files that belong together, the input first.
pub(crate) const OLDER: &[(&str, &[(&str, &str)])] = older![
    "dsmc/seed/box": "box.yaml";
    "dsmc/seed/source": "source.yaml", "left.yaml";
    "dsmc/seed/large": "large.yaml", "left_large.yaml";
];

/// The first line of an example, which says what it shows.
fn headline(text: &str) -> &str {
    text.lines().next().unwrap_or("").trim_start_matches(['#', ' '])
}

/// Name, and files with their texts, the input first.
fn all() -> Vec<(&'static str, Vec<(String, &'static str)>)> {
    let short = |name: &str| format!("{}.toml", name.rsplit('/').next().unwrap_or(name));
    let own = EXAMPLES.iter().map(|(name, text)| (*name, vec![(short(name), *text)]));
    own.chain(OLDER.iter().map(|(name, files)| (*name, files.iter().map(|(f, t)| ((*f).to_owned(), *t)).collect()))).collect()
}

/// Returns true if there is an example of that name.
pub(crate) fn is_example(name: &str) -> bool {
    all().iter().any(|(n, _)| *n == name)
}

/// Lists the examples whose names begin so.
pub(crate) fn list(beginning: &str) -> Result<u8> {
    let all = all();
    let named = all.iter().filter(|(name, _)| name.starts_with(beginning));
    let lines: Vec<String> = named.map(|(name, files)| format!("{name:28} {}\n", headline(files[0].1))).collect();
    report::note("these examples come with the program; `zellige new NAME` writes one, `zellige run FILE` runs it");
    print(&lines.concat())
}

/// The command.
pub(crate) fn new(arguments: &NewArgs) -> Result<u8> {
    let Some(name) = &arguments.example else {
        return list("");
    };
    let examples = all();
    // `poisson` or `dsmc/seed/` is a folder of them.
    let folder = format!("{}/", name.trim_end_matches('/'));
    if examples.iter().any(|(n, _)| n.starts_with(&folder)) {
        return list(&folder);
    }
    let wrong = |message: String| {
        let names: Vec<_> = examples.iter().map(|e| e.0).collect();
        let mut problem = Problem::new("", message).allowed(names.join(", "));
        problem.hint = did_you_mean(name, names.iter().copied().chain(names.iter().filter_map(|n| n.rsplit('/').next())));
        Error::input("command line", problem)
    };
    let wanted = name.trim_end_matches(".toml").trim_end_matches(".yaml");
    let found: Vec<_> = examples.iter().filter(|(n, _)| *n == wanted || n.rsplit('/').next() == Some(wanted)).collect();
    let [(_, files)] = found[..] else {
        return Err(wrong(format!("there is no example `{name}`")));
    };
    let first = arguments.output.clone().unwrap_or_else(|| PathBuf::from(&files[0].0));
    // The others lie beside the input, which names them.
    let path = |k: usize| if k == 0 { first.clone() } else { first.with_file_name(&files[k].0) };
    if let Some(there) = (0..files.len()).map(path).find(|p| p.exists()) {
        let problem = Problem::new("", format!("`{}` exists and is left as it is", there.display()));
        return Err(Error::input("command line", problem.hint("name another file with `-o FILE`")));
    }
    for (k, (_, text)) in files.iter().enumerate() {
        zellige_engine::files::atomic_write(path(k), |out| std::io::Write::write_all(out, text.as_bytes()))?;
        report::line("written", &path(k).display().to_string());
    }
    report::line("next", &format!("zellige run {}", first.display()));
    Ok(0)
}
