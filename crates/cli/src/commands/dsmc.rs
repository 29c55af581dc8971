//! `zellige dsmc`: properties of a gas, the plan of a run, and inputs of the older form.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use zellige_dsmc::Dsmc;
use zellige_dsmc::gas::Species;
use zellige_dsmc::gas::table::{self, Model};
use zellige_dsmc::gas::transport::Transport;
use zellige_dsmc::gas::vibration::Mode;
use zellige_dsmc::start::seed;
use zellige_engine::config::Source;
use zellige_engine::device::{Cpu, Device};
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::files::atomic_write;
use zellige_engine::links::Links;
use zellige_engine::sim::{Environment, Solver};
use zellige_engine::text::did_you_mean;

use crate::args::{DsmcCommand, RunArgs};
use crate::commands::{print, run};
use crate::report;

/// Boltzmann's constant, J/K.
const BOLTZMANN: f64 = zellige_dsmc::walls::BOLTZMANN;

/// The command.
pub(crate) fn dsmc(command: DsmcCommand) -> Result<u8> {
    match command {
        DsmcCommand::Gas { name: None, .. } => print(&list()),
        DsmcCommand::Gas { name: Some(name), temperature, density, pressure } => {
            let range = |what: &str, value: f64, low: f64, high: f64| {
                let problem = || Problem::new("", format!("the {what} is {value:e}")).allowed(format!("{low:e} to {high:e}"));
                if value >= low && value <= high { Ok(value) } else { Err(Error::input("command line", problem())) }
            };
            range("temperature in K", temperature, 1.0, 1e6)?;
            let density = match (density, pressure) {
                (Some(n), _) => range("density in 1/m^3", n, 1e-10, 1e32)?,
                (None, p) => range("pressure in Pa", p.unwrap_or(101_325.0), 1e-20, 1e12)? / (BOLTZMANN * temperature),
            };
            print(&describe(&name, temperature, density)?)
        }
        DsmcCommand::Convert { old, new, geometry, source, schedule } => {
            convert(&old, &new, [("geometry", geometry), ("source", source), ("schedule", schedule)])
        }
        DsmcCommand::Check { input, overrides } => {
            let source = run::read(&input, &overrides)?;
            source.solver(&[Dsmc::NAME])?;
            let arguments = RunArgs { dry_run: true, ..RunArgs::default() };
            run::execute::<Dsmc>(source.typed::<Dsmc>()?, &arguments, &Links::default()).map_err(|e| run::with_positions(e, &source))
        }
    }
}

/// Rewrites an input of the older form, with the files beside it by key.
fn convert(old: &Path, new: &Path, files: [(&str, Vec<PathBuf>); 3]) -> Result<u8> {
    let wrong = |problem| Error::input("command line", problem);
    if new.exists() {
        return Err(wrong(Problem::new("", format!("`{}` exists and is left as it is", new.display())).hint("name another file")));
    }
    if new.extension().is_none_or(|ending| ending != "toml") {
        return Err(wrong(Problem::new("", format!("`{}` is to hold TOML", new.display())).allowed("a name that ends in .toml")));
    }
    let mut source = Source::read(old)?;
    if !seed::is_older(&source.value) {
        let problem =
            Problem::new("", "this input is not of the older form").allowed("an input with `grid`, `physics` and `init` at the top");
        return Err(Error::input(old.to_string_lossy(), problem));
    }
    let absolute = |p: &Path| std::path::absolute(p).map_err(|e| Error::file("find", p, e));
    // Beside the new input by name, others by their whole path.
    let folder = absolute(new)?.parent().map(Path::to_owned).unwrap_or_default();
    let seen_from_new = |path: &Path| absolute(path).map(|p| p.strip_prefix(&folder).unwrap_or(&p).to_string_lossy().into_owned());
    for (key, given) in files {
        let named = if given.is_empty() { seed::files(&source.value, key).iter().map(|f| source.folder.join(f)).collect() } else { given };
        if !named.is_empty() {
            source.value[key] = named.iter().map(|p| seen_from_new(p)).collect::<Result<Vec<_>>>()?.into();
        }
    }
    if let Err(problems) = seed::adopt(&mut source.value) {
        return Err(source.problems(problems));
    }
    source.folder = folder;
    let input = source.typed::<Dsmc>()?;
    // Files that are missing or wrong are told of now.
    let environment = Environment::new(Device::Cpu(Cpu::new(1)?), input.folder.clone(), input.run.seed);
    Dsmc::prepare(&input.config, &environment).map_err(|e| run::named(e, &input.origin))?;
    let text = format!("# From `{}` by `zellige dsmc convert`: {}.\n\n{}", old.display(), seed::NOTE, source.toml()?);
    atomic_write(new, |out| std::io::Write::write_all(out, text.as_bytes()))?;
    report::line("written", &new.display().to_string());
    report::line("next", &format!("zellige run {}", new.display()));
    Ok(0)
}

/// All gases.
fn list() -> String {
    let mut text = format!("{:6}{:>14}{:>12}{:>8}{:>8}{:>6}  {}\n", "gas", "mass (kg)", "VSS d (m)", "omega", "alpha", "rot", "vib (K)");
    for s in table::names().into_iter().filter_map(|n| table::find(n, Model::Vss)) {
        let c = s.scatter;
        let _ = writeln!(
            text,
            "{:6}{:>14.4e}{:>12.3e}{:>8.3}{:>8.3}{:>6}  {}",
            s.name,
            s.mass,
            c.diameter,
            c.omega,
            c.alpha,
            s.rotation,
            modes(&s)
        );
    }
    text
}

/// Characteristic temperatures of a gas with their degeneracies; `-` of an atom.
fn modes(gas: &Species) -> String {
    let one = |m: &Mode| if m.degeneracy > 1 { format!("{} x {:.0}", m.degeneracy, m.theta) } else { format!("{:.0}", m.theta) };
    let all: Vec<_> = gas.vibration.modes().iter().map(one).collect();
    if all.is_empty() { "-".into() } else { all.join(", ") }
}

/// A gas at rest.
fn describe(name: &str, temperature: f64, density: f64) -> Result<String> {
    let Some(gas) = table::find(name, Model::Vss) else {
        let names = table::names();
        let problem = Problem::new("", format!("`{name}` is not in the table of gases")).allowed(names.join(", "));
        let hint = did_you_mean(name, names).unwrap_or_else(|| "`zellige dsmc gas` lists them with what is known of each".into());
        let problem = problem.hint(hint);
        return Err(Error::input("command line", problem));
    };
    let t = Transport::new(&gas, temperature);
    let mean_speed = (8.0 * BOLTZMANN * temperature / (std::f64::consts::PI * gas.mass)).sqrt();
    let lines = [
        ("temperature", temperature, "K"),
        ("density", density, "1/m^3"),
        ("pressure", density * BOLTZMANN * temperature, "Pa"),
        ("mean speed", mean_speed, "m/s"),
        ("viscosity", t.viscosity, "Pa s"),
        ("conductivity", t.conductivity, "W/(m K)"),
        ("self-diffusion", t.diffusion / density, "m^2/s"),
        ("free path", t.free_path / density, "m"),
        ("collisions of a molecule", t.rate * density, "1/s"),
        ("time between them", 1.0 / (t.rate * density), "s"),
        ("heat capacity, c_p", (1.0 + t.heat_capacity) * BOLTZMANN / gas.mass, "J/(kg K)"),
        ("ratio of heats", (1.0 + t.heat_capacity) / t.heat_capacity, ""),
    ];
    let mut text = format!(
        "{name}: variable soft spheres, diameter {:.4e} m at {} K, omega {}, alpha {}\n",
        gas.scatter.diameter, gas.scatter.t_ref, gas.scatter.omega, gas.scatter.alpha
    );
    for (what, value, unit) in lines {
        let _ = writeln!(text, "{}", format!("  {what:26} {value:.4e} {unit}").trim_end());
    }
    if gas.rotation > 0 {
        let _ =
            writeln!(text, "  {:26} {:.3} (collision number {:.3})", "rotation, freedoms", gas.rotation, gas.z_rotation.at(temperature));
    }
    if !gas.vibration.is_empty() {
        let freedom = gas.vibration.freedom(temperature);
        let _ = writeln!(text, "  {:26} {freedom:.4} (characteristic temperatures {} K)", "vibration, freedoms", modes(&gas));
    }
    Ok(text)
}
