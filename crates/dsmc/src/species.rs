//! From the species of the input, SPARTA's files and the program's own table to molecules and how pairs of them collide.

use std::path::{Path, PathBuf};

use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::text::did_you_mean;

use crate::config::{Config, SpeciesConfig, VibrationConfig, ZConfig};
use crate::gas::pair::Pair;
use crate::gas::sparta::Relax;
use crate::gas::vibration::{Mode, Vibration};
use crate::gas::{Relaxation, Scatter, Species, sparta, table};
use crate::plan::relaxation;
use crate::setup::{input, unreadable};

/// Data of a run's species from SPARTA's files.
struct Files {
    /// Names of all species of the first.
    names: Vec<String>,
    species: Vec<sparta::SpeciesLine>,
    vibrations: Vec<(String, Vibration)>,
    vss: sparta::Vss,
}

impl Files {
    /// Of a checked input; nothing where it names none.
    fn read(config: &Config, folder: &Path) -> Result<Option<Self>> {
        let (Some(species), Some(vss)) = (&config.species_file, &config.vss_file) else { return Ok(None) };
        let used: Vec<&str> = config.species.iter().map(|s| s.name.as_str()).collect();
        let ((a, first), (b, second)) = (read_file(folder, species, "species_file")?, read_file(folder, vss, "vss_file")?);
        let vibrations = match &config.vibration_file {
            Some(file) => {
                let (path, text) = read_file(folder, file, "vibration_file")?;
                sparta::vibrations(&path, &text, &used).map_err(|e| unreadable("vibration_file", e))?
            }
            None => Vec::new(),
        };
        let species = sparta::species(&a, &first, &used).map_err(|e| unreadable("species_file", e))?;
        let vss = sparta::vss(&b, &second, &used, config.collisions.relax).map_err(|e| unreadable("vss_file", e))?;
        let names = sparta::names(&first).into_iter().map(str::to_owned).collect();
        Ok(Some(Self { names, species, vibrations, vss }))
    }

    /// The species of a name, if there is one.
    fn find(&self, name: &str, config: &Config, given: bool, path: &str) -> Result<Option<Species>> {
        let Some(listed) = self.species.iter().find(|f| f.species.name == name) else { return Ok(None) };
        let Some((_, scatter, parker)) = self.vss.species.iter().find(|(n, ..)| *n == name) else {
            let problem = Problem::new("", format!("`{name}` is in the species file but not in the vss file"));
            return Err(input(path, problem.hint("add a line of the species to `vss_file`")));
        };
        let mut found = listed.species.clone();
        found.scatter = *scatter;
        if config.collisions.relax == Relax::Variable {
            found.z_rotation = parker.unwrap_or(Relaxation::Constant(f64::INFINITY));
        }
        let all = |v: &Vibration| v.modes().iter().map(|m| m.degeneracy).sum::<u32>();
        match self.vibrations.iter().find(|(n, _)| *n == name) {
            Some((_, vibration)) if all(vibration) == listed.modes => found.vibration = *vibration,
            Some((_, vibration)) => {
                let problem =
                    format!("`{name}` has {} modes in the species file and {} in the vibration file", listed.modes, all(vibration));
                return Err(input(path, Problem::new("", problem).hint("degrees of freedom are twice the modes, degenerate ones counted")));
            }
            None if listed.modes > 1 && config.collisions.vibration && !given => {
                let problem = format!("`{name}` has {} modes of vibration, of which the species file names one temperature", listed.modes);
                return Err(input(path, Problem::new("", problem).hint("give `vibration_file`, or `vibration` of the species")));
            }
            None => {}
        }
        Ok(Some(found))
    }
}

/// A species of the input.
fn species(config: &Config, s: &SpeciesConfig, number: usize, files: Option<&Files>) -> Result<Species> {
    let path = format!("species[{number}].name");
    // The program's table is for runs without files: a name that is missing from them would get its values without a word.
    let known = match files {
        None => table::find(&s.name, config.collisions.model),
        Some(files) => files.find(&s.name, config, s.vibration.is_some(), &path)?,
    };
    let own = match (s.mass, s.diameter, s.omega) {
        (Some(mass), Some(diameter), Some(omega)) => Some(Species {
            name: s.name.clone(),
            mass,
            scatter: Scatter { diameter, omega, t_ref: table::T_REF, alpha: 1.0 },
            rotation: 0,
            z_rotation: Relaxation::Constant(table::Z_ROTATION),
            vibration: Vibration::NONE,
            left_out: Vibration::NONE,
        }),
        _ => None,
    };
    let Some(mut found) = known.or(own) else {
        let (names, place) = match files {
            None => (table::names(), "the table of gases"),
            Some(files) => (files.names.iter().map(String::as_str).collect(), "`species_file`"),
        };
        let near = did_you_mean(&s.name, names.iter().copied());
        let hint = near.unwrap_or_else(|| "add its lines to the files, or give `mass`, `diameter` and `omega`".into());
        let problem = Problem::new("", format!("the species `{}` is not in {place}", s.name));
        return Err(input(&path, problem.allowed(names.join(", ")).hint(hint)));
    };
    found.mass = s.mass.unwrap_or(found.mass);
    let scatter = &mut found.scatter;
    scatter.diameter = s.diameter.unwrap_or(scatter.diameter);
    scatter.omega = s.omega.unwrap_or(scatter.omega);
    scatter.alpha = s.alpha.unwrap_or(scatter.alpha);
    scatter.t_ref = s.t_ref.unwrap_or(scatter.t_ref);
    found.rotation = s.rotation.unwrap_or(found.rotation);
    found.z_rotation = match s.z_rotation {
        None => found.z_rotation,
        Some(ZConfig::Number(z)) => Relaxation::Constant(z),
        Some(ZConfig::Parker(p)) => Relaxation::Parker { z_inf: p.z_inf, t_star: p.t_star },
    };
    found.vibration = vibration(s, found.vibration, &format!("species[{number}].vibration"))?;
    let c = &config.collisions;
    if !c.rotation {
        found.rotation = 0;
    }
    if !c.vibration {
        found.left_out = std::mem::replace(&mut found.vibration, Vibration::NONE);
    }
    Ok(found)
}

/// The modes of a species: those of the input, else `known`, with the collision number of the input where modes have none.
fn vibration(s: &SpeciesConfig, known: Vibration, path: &str) -> Result<Vibration> {
    let Some(given) = &s.vibration else { return Ok(s.z_vibration.map_or(known, |z| known.relaxing(z))) };
    // Collision numbers of a file or the table for the first mode hold for a temperature by itself.
    let before = known.modes().first().map_or(f64::INFINITY, |m| m.z);
    let other = s.z_vibration.unwrap_or(if matches!(given, VibrationConfig::Single(_)) { before } else { f64::INFINITY });
    let modes: Vec<Mode> =
        given.modes().iter().map(|m| Mode { theta: m.theta, degeneracy: m.degeneracy, z: m.z.unwrap_or(other) }).collect();
    Vibration::new(&modes).map_err(|message| input(path, Problem::new("", message)))
}

/// A file of the input with its path. What went wrong names the key.
fn read_file(folder: &Path, file: &Path, key: &str) -> Result<(PathBuf, String)> {
    let path = folder.join(file);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok((path, text)),
        Err(e) => Err(unreadable(key, Error::file("read", &path, e))),
    }
}

/// The species of a checked input. Files are looked for in `folder`.
pub(crate) fn all_species(config: &Config, folder: &Path) -> Result<(Vec<Species>, Vec<Pair>)> {
    let files = Files::read(config, folder)?;
    let all: Vec<Species> = config.species.iter().enumerate().map(|(i, s)| species(config, s, i, files.as_ref())).collect::<Result<_>>()?;
    let mut pairs = Vec::with_capacity(all.len() * all.len());
    for a in &all {
        for b in &all {
            let is = |names: &[String; 2]| *names == [a.name.clone(), b.name.clone()] || *names == [b.name.clone(), a.name.clone()];
            let own = config.collisions.pairs.iter().find(|p| is(&p.species));
            let own = own.map(|p| Scatter { diameter: p.diameter, omega: p.omega, t_ref: p.t_ref, alpha: p.alpha });
            let from_file = files.as_ref().and_then(|f| f.vss.pairs.iter().find(|(names, _)| is(names)).map(|(_, s)| *s));
            pairs.push(Pair::new(a, b, own.or(from_file)));
        }
    }
    relaxation::refuse(config, &all, &pairs)?;
    Ok((all, pairs))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Krypton stands in the program's table, but a run with files means the files.
    #[test]
    fn what_the_files_lack_is_not_taken_from_the_table() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("a.species", "Ar 39.9 6.63E-26 0 0. 0 0. 0 1.0 0.\n");
        write("a.vss", "Ar 4.0E-10 0.81 273.15 1.4\n");
        let mut config = Config::new(vec![4], vec![1.0], "Ar", 1e20, 300.0);
        (config.species_file, config.vss_file) = (Some("a.species".into()), Some("a.vss".into()));
        assert_eq!(all_species(&config, folder.path()).unwrap().0[0].scatter.diameter, 4.0e-10);
        config.species[0] = SpeciesConfig::named("Kr");
        let said = all_species(&config, folder.path()).unwrap_err().to_string();
        assert!(said.contains("`dsmc.species[0].name`: the species `Kr` is not in `species_file` (allowed: Ar)"), "{said}");
        let own = SpeciesConfig { mass: Some(1.391e-25), diameter: Some(4.7e-10), omega: Some(0.8), ..SpeciesConfig::named("Kr") };
        config.species[0] = own;
        assert_eq!(all_species(&config, folder.path()).unwrap().0[0].mass, 1.391e-25);
        config.species[0] = SpeciesConfig::named("Ar");
        write("a.vss", "Ar 4.0E-10\n");
        let said = all_species(&config, folder.path()).unwrap_err().to_string();
        assert!(said.contains("`dsmc.vss_file`: ") && said.contains("line 1"), "{said}");
    }

    /// 1/Z of the files, -1 where it is not given, and Parker's columns where they are asked for.
    #[test]
    fn the_files_columns_of_relaxation_are_taken_as_asked() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write(
            "a.species",
            "O2 32.00 5.31E-26 2 -1.0 2 -1.0 2256.0 1.0 0.0\nN2 28.016 4.65E-26 2 0.2 2 1.9e-5 3371.0 1.0 0.0\ne 0.001 9.1E-31 0 0 0 0 0 1 -1\n",
        );
        write("a.vss", "O2 3.96E-10 0.77 273.15 1.4 16.5 113.5 56.5 153.5 3.0e-21\nN2 4.07E-10 0.74 273.15 1.6\ne 7.0E-13 0.5 273.15 1\n");
        let mut config = Config::new(vec![4], vec![1.0], "N2", 1e20, 300.0);
        (config.species_file, config.vss_file) = (Some("a.species".into()), Some("a.vss".into()));
        let found = |config: &Config| all_species(config, folder.path()).map(|all| all.0[0].clone()).map_err(|e| e.to_string());
        assert_eq!(found(&config).unwrap().z_rotation, Relaxation::Constant(5.0));
        config.collisions.relax = Relax::Variable;
        assert!(found(&config).unwrap_err().contains("the rotation of N2 has no collision number"));
        config.species[0] = SpeciesConfig::named("O2");
        assert_eq!(found(&config).unwrap().z_rotation, Relaxation::Parker { z_inf: 16.5, t_star: 113.5 });
        config.collisions.relax = Relax::Constant;
        let said = found(&config).unwrap_err();
        assert!(said.contains("`dsmc.species[0].z_rotation`") && said.contains("`collisions.relax = \"variable\"`"), "{said}");
        config.species[0].z_rotation = Some(ZConfig::Number(4.0));
        config.collisions.vibration = true;
        assert!(found(&config).unwrap_err().contains("the vibration of O2 has no collision number"));
        config.collisions.millikan_white = true;
        assert_eq!(found(&config).unwrap().z_rotation, Relaxation::Constant(4.0));
    }
}
