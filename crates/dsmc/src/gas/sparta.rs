//! SPARTA's `.species` and `.vss` files, as they are.
//!
//! A line of the first: name, molecular weight, mass (kg), degrees of freedom of rotation, 1/Z of it, degrees of freedom of
//! vibration, 1/Z of it, characteristic temperature (K), weight, charge. A line of the second: name, diameter (m), omega, reference
//! temperature (K), alpha, and in files with variable relaxation Z_inf and T* of the rotation and two constants of the vibration;
//! two names at the beginning make a line of a pair. `#` begins a comment.

use std::path::Path;

use zellige_engine::error::{Error, Result};

use super::{Relaxation, Scatter, Species};

/// What a `.vss` file holds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Vss {
    /// Scattering and, where given, Parker's constants by species.
    pub species: Vec<(String, Scatter, Option<Relaxation>)>,
    /// Scattering of pairs.
    pub pairs: Vec<([String; 2], Scatter)>,
}

/// Words of a line with its number.
fn lines(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    text.lines()
        .enumerate()
        .map(|(i, l)| (i + 1, l.split('#').next().unwrap_or("").split_whitespace().collect::<Vec<_>>()))
        .filter(|(_, words)| !words.is_empty())
}

struct Faults<'a> {
    path: &'a Path,
    format: &'static str,
}

impl Faults<'_> {
    fn at(&self, line: usize, message: &str) -> Error {
        Error::format(self.path, self.format, format!("line {line}: {message}"))
    }

    fn number(&self, line: usize, words: &[&str], i: usize, what: &str) -> Result<f64> {
        let word = words.get(i).ok_or_else(|| self.at(line, &format!("{what} is missing (word {})", i + 1)))?;
        let value: f64 = word.parse().map_err(|_| self.at(line, &format!("{what} is `{word}`, not a number")))?;
        if value.is_finite() { Ok(value) } else { Err(self.at(line, &format!("{what} is {value}"))) }
    }
}

/// The species of a `.species` file; how they scatter comes from [`vss`].
pub fn species(path: &Path, text: &str) -> Result<Vec<Species>> {
    let faults = Faults { path, format: "SPARTA species" };
    let mut all: Vec<Species> = Vec::new();
    for (line, words) in lines(text) {
        let number = |i, what| faults.number(line, &words, i, what);
        let mass = number(2, "the mass")?;
        let rotation = number(3, "the degrees of freedom of rotation")?;
        let [rotational, vibrational] = [number(4, "1/Z of the rotation")?, number(6, "1/Z of the vibration")?];
        let (modes, theta) = (number(5, "the degrees of freedom of vibration")?, number(7, "the temperature of the vibration")?);
        if mass <= 0.0 || mass > 1e-20 {
            return Err(faults.at(line, &format!("the mass of a molecule is {mass:e} kg; it must be above 0 and below 1e-20")));
        }
        if ![0.0, 2.0, 3.0].contains(&rotation) {
            return Err(faults.at(line, &format!("{rotation} degrees of freedom of rotation; 0, 2 or 3 are allowed")));
        }
        if all.iter().any(|s| s.name == words[0]) {
            return Err(faults.at(line, &format!("the species `{}` is there twice", words[0])));
        }
        let z = |p: f64| Relaxation::Constant(if p > 0.0 { 1.0 / p } else { f64::INFINITY });
        all.push(Species {
            name: words[0].into(),
            mass,
            scatter: Scatter { diameter: 0.0, omega: 0.5, t_ref: 273.15, alpha: 1.0 },
            rotation: rotation as u32,
            z_rotation: z(rotational),
            vibration: if modes == 2.0 { theta } else { 0.0 },
            z_vibration: z(vibrational),
        });
    }
    if all.is_empty() { Err(faults.at(0, "there is no species in it")) } else { Ok(all) }
}

/// A `.vss` file.
pub fn vss(path: &Path, text: &str) -> Result<Vss> {
    let faults = Faults { path, format: "SPARTA vss" };
    let mut all = Vss::default();
    for (line, words) in lines(text) {
        // A pair has a second name where a lone species has its diameter.
        let pair = words.get(1).is_some_and(|w| w.parse::<f64>().is_err());
        let first = 1 + usize::from(pair);
        let number = |i, what| faults.number(line, &words, first + i, what);
        let scatter = Scatter {
            diameter: number(0, "the diameter")?,
            omega: number(1, "omega")?,
            t_ref: number(2, "the reference temperature")?,
            alpha: number(3, "alpha")?,
        };
        if let Some(message) = fault(&scatter) {
            return Err(faults.at(line, &message));
        }
        if pair {
            all.pairs.push(([words[0].into(), words[1].into()], scatter));
            continue;
        }
        let parker = match words.len() {
            5 => None,
            _ => {
                let (z_inf, t_star) = (number(4, "Z_inf of the rotation")?, number(5, "T* of the rotation")?);
                (z_inf > 0.0).then_some(Relaxation::Parker { z_inf, t_star })
            }
        };
        all.species.push((words[0].into(), scatter, parker));
    }
    Ok(all)
}

/// What is wrong with scattering parameters, if anything.
pub fn fault(s: &Scatter) -> Option<String> {
    let inside = |what: &str, value: f64, low: f64, high: f64| {
        (!(value >= low && value <= high)).then(|| format!("{what} is {value:e}; allowed: {low:e} to {high:e}"))
    };
    inside("the diameter in m", s.diameter, 1e-11, 1e-8)
        .or_else(|| inside("omega", s.omega, 0.5, 1.4))
        .or_else(|| inside("the reference temperature in K", s.t_ref, 1.0, 1e5))
        .or_else(|| inside("alpha", s.alpha, 0.5, 4.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECIES: &str = "# name weight mass rotdof rotrel vibdof vibrel vibtemp weight charge\n\
        O2 31.98 5.31E-26 2 0.2 2 5.58659E-5 2256.0 1.0 0.0\nAr 39.9 66.3E-27 0 0 0 0 0 1 0 # noble\n";

    #[test]
    fn files_of_sparta_are_read() {
        let all = species(Path::new("a.species"), SPECIES).unwrap();
        assert_eq!((all.len(), all[0].mass, all[0].rotation, all[0].vibration), (2, 5.31e-26, 2, 2256.0));
        assert_eq!(all[0].z_rotation, Relaxation::Constant(5.0));
        assert_eq!(all[1].z_rotation, Relaxation::Constant(f64::INFINITY));
        let text = "Ar 4.11E-10 0.81 273.15 1.4\nO2 4.01e-10 0.77 273.15 1.4 16.5 113.5 56.5 153.5\nAr O2 4.0e-10 0.8 273.15 1.3";
        let found = vss(Path::new("a.vss"), text).unwrap();
        assert_eq!((found.species.len(), found.pairs.len()), (2, 1));
        assert_eq!(found.species[1].2, Some(Relaxation::Parker { z_inf: 16.5, t_star: 113.5 }));
        assert_eq!(found.pairs[0].1.omega, 0.8);
    }

    #[test]
    fn broken_files_are_refused_with_the_line() {
        let refused = |text: &str| species(Path::new("a.species"), text).unwrap_err().to_string();
        assert!(refused("O2 31 5e-26 2 0.2").contains("line 1: 1/Z of the vibration is missing"), "{}", refused("O2 31 5e-26 2 0.2"));
        assert!(refused("\nO2 31 abc 2 0.2 2 0 0 1 0").contains("line 2: the mass is `abc`"));
        assert!(refused("O2 31 -5e-26 2 0.2 2 0 0 1 0").contains("line 1: the mass of a molecule is -5e-26"));
        assert!(refused(&SPECIES.replace("Ar", "O2")).contains("there twice"));
        assert!(refused("# nothing").contains("no species"));
        let refused = |text: &str| vss(Path::new("a.vss"), text).unwrap_err().to_string();
        assert!(refused("Ar 4.11 0.81 273.15 1.4").contains("line 1: the diameter in m is 4.11e0"));
        assert!(refused("Ar 4.11e-10 0.81 273.15").contains("alpha is missing"));
        assert!(refused("Ar nan 0.81 273.15 1.4").contains("line 1"));
    }
}
