//! SPARTA's `.species`, `.vib` and `.vss` files, as they are.
//!
//! A line of the first: name, molecular weight, mass (kg), degrees of freedom of rotation, 1/Z of it, degrees of freedom of
//! vibration, 1/Z of it, characteristic temperature (K), weight, charge. A 1/Z below 0 stands there for one that is not given. A
//! line of the second, for molecules with more than two degrees of freedom of vibration: name, number of modes, then of each its
//! characteristic temperature (K), 1/Z and degeneracy; modes of one temperature may also stand there several times. A line of the
//! third: name, diameter (m), omega, reference temperature (K), alpha, and in files with variable relaxation Z_inf and T* of the
//! rotation and two or three constants of the vibration; two names at the beginning make a line of a pair. `#` begins a comment.
//!
//! Lines of species that a run does not use are passed over, whatever is in them: files for air have electrons too.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zellige_engine::error::{Error, Result};

use super::vibration::{Mode, Vibration};
use super::{Relaxation, Scatter, Species};

/// Source of the rotational collision number in runs with SPARTA's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Relax {
    /// Column 1/Z of `species_file`; of `vss_file` only the first four numbers count.
    #[default]
    Constant,
    /// Parker's formula with Z_inf and T* of `vss_file`; its vibration constants are ignored.
    Variable,
}

impl Relax {
    /// True if it is by `species_file`. Inputs that say nothing else are written down without the key.
    pub fn is_constant(&self) -> bool {
        *self == Self::Constant
    }
}

/// Contents of a `.vss` file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Vss {
    /// Scattering and, with variable relaxation and where given, Parker's constants by species.
    pub species: Vec<(String, Scatter, Option<Relaxation>)>,
    /// Scattering of pairs.
    pub pairs: Vec<([String; 2], Scatter)>,
}

/// A line of a `.species` file.
#[derive(Debug, Clone, PartialEq)]
pub struct SpeciesLine {
    /// The species; of several modes of vibration it has none yet.
    pub species: Species,
    /// Modes of vibration: half of the degrees of freedom.
    pub modes: u32,
}

/// Words of a line with its number.
fn lines(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    text.lines()
        .enumerate()
        .map(|(i, l)| (i + 1, l.split('#').next().unwrap_or("").split_whitespace().collect::<Vec<_>>()))
        .filter(|(_, words)| !words.is_empty())
}

/// Those of the species `used`.
fn lines_of<'a>(text: &'a str, used: &'a [&str]) -> impl Iterator<Item = (usize, Vec<&'a str>)> {
    lines(text).filter(|(_, words)| used.contains(&words[0]))
}

/// Names of all species of a file.
pub fn names(text: &str) -> Vec<&str> {
    lines(text).map(|(_, words)| words[0]).collect()
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

    /// Z of a word that holds 1/Z; infinity where it is 0 or not given.
    fn z(&self, line: usize, words: &[&str], i: usize, what: &str) -> Result<f64> {
        let part = self.number(line, words, i, what)?;
        if part > 1.0 {
            return Err(self.at(line, &format!("{what} is {part}, above 1: is it Z itself? then write {}", 1.0 / part)));
        }
        Ok(if part > 0.0 { 1.0 / part } else { f64::INFINITY })
    }

    /// A characteristic temperature.
    fn theta(&self, line: usize, words: &[&str], i: usize, several: bool) -> Result<f64> {
        let theta = self.number(line, words, i, "the temperature of the vibration")?;
        let least = if several { SOFTEST } else { 10.0 };
        if (least..=1e5).contains(&theta) {
            return Ok(theta);
        }
        Err(self.at(line, &format!("the temperature of the vibration is {theta} K; it must be {least} to 1e5")))
    }
}

/// Lowest characteristic temperature of one of several oscillators, K: their levels have a byte each.
pub const SOFTEST: f64 = 200.0;

/// The species `used` of a `.species` file; how they scatter comes from [`vss`], how molecules of several modes vibrate from
/// [`vibrations`].
pub fn species(path: &Path, text: &str, used: &[&str]) -> Result<Vec<SpeciesLine>> {
    let faults = Faults { path, format: "SPARTA species" };
    let mut all: Vec<SpeciesLine> = Vec::new();
    for (line, words) in lines_of(text, used) {
        let number = |i, what| faults.number(line, &words, i, what);
        let mass = number(2, "the mass")?;
        let rotation = number(3, "the degrees of freedom of rotation")?;
        let z_rotation = Relaxation::Constant(faults.z(line, &words, 4, "1/Z of the rotation")?);
        let (freedom, z) = (number(5, "the degrees of freedom of vibration")?, faults.z(line, &words, 6, "1/Z of the vibration")?);
        if ![0.0, 2.0, 4.0, 6.0, 8.0].contains(&freedom) {
            return Err(faults.at(line, &format!("{freedom} degrees of freedom of vibration; 0, 2, 4, 6 or 8 are allowed")));
        }
        let vibration = if freedom == 2.0 { Vibration::single(faults.theta(line, &words, 7, false)?).relaxing(z) } else { Vibration::NONE };
        if mass <= 0.0 || mass > 1e-20 {
            return Err(faults.at(line, &format!("the mass of a molecule is {mass:e} kg; it must be above 0 and below 1e-20")));
        }
        if ![0.0, 2.0, 3.0].contains(&rotation) {
            return Err(faults.at(line, &format!("{rotation} degrees of freedom of rotation; 0, 2 or 3 are allowed")));
        }
        if all.iter().any(|s| s.species.name == words[0]) {
            return Err(faults.at(line, &format!("the species `{}` is there twice", words[0])));
        }
        if words.len() > 9 && number(9, "the charge")? != 0.0 {
            let what =
                format!("`{}` has a charge of {}: ions and electrons are not computed, and it would fly as a neutral", words[0], words[9]);
            return Err(faults.at(line, &format!("{what}; leave it out of `species`, or name a neutral species")));
        }
        let scatter = Scatter { diameter: 0.0, omega: 0.5, t_ref: 273.15, alpha: 1.0 };
        let found =
            Species { name: words[0].into(), mass, scatter, rotation: rotation as u32, z_rotation, vibration, left_out: Vibration::NONE };
        all.push(SpeciesLine { species: found, modes: freedom as u32 / 2 });
    }
    if names(text).is_empty() { Err(faults.at(0, "there is no species in it")) } else { Ok(all) }
}

/// The modes of the species `used` of a `.vib` file.
pub fn vibrations(path: &Path, text: &str, used: &[&str]) -> Result<Vec<(String, Vibration)>> {
    let faults = Faults { path, format: "SPARTA vibration" };
    let mut all: Vec<(String, Vibration)> = Vec::new();
    for (line, words) in lines_of(text, used) {
        let whole = |i, what: &str, most: f64| {
            let value = faults.number(line, &words, i, what)?;
            let allowed = value.fract() == 0.0 && (1.0..=most).contains(&value);
            if allowed { Ok(value as usize) } else { Err(faults.at(line, &format!("{what} is {value}; 1 to {most} are allowed"))) }
        };
        let count = whole(1, "the number of modes", 16.0)?;
        if words.len() != 2 + 3 * count {
            return Err(faults.at(line, &format!("{} words for {count} modes; a name, their number, and three of each", words.len())));
        }
        let mode = |m: usize| -> Result<Mode> {
            let theta = faults.theta(line, &words, 2 + 3 * m, count > 1)?;
            let z = faults.z(line, &words, 3 + 3 * m, "1/Z of the vibration")?;
            Ok(Mode { theta, degeneracy: whole(4 + 3 * m, "the degeneracy", 16.0)? as u32, z })
        };
        let modes = (0..count).map(mode).collect::<Result<Vec<_>>>()?;
        if all.iter().any(|v| v.0 == words[0]) {
            return Err(faults.at(line, &format!("the species `{}` is there twice", words[0])));
        }
        all.push((words[0].into(), Vibration::new(&modes).map_err(|message| faults.at(line, &message))?));
    }
    Ok(all)
}

/// The species `used` of a `.vss` file and the pairs of them.
pub fn vss(path: &Path, text: &str, used: &[&str], relax: Relax) -> Result<Vss> {
    let faults = Faults { path, format: "SPARTA vss" };
    let mut all = Vss::default();
    for (line, words) in lines_of(text, used) {
        // A pair has a second name where a lone species has its diameter.
        let pair = words.get(1).is_some_and(|w| w.parse::<f64>().is_err());
        if pair && !used.contains(&words[1]) {
            continue;
        }
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
        if all.species.iter().any(|s| s.0 == words[0]) {
            return Err(faults.at(line, &format!("the species `{}` is there twice", words[0])));
        }
        let mut parker = None;
        if relax == Relax::Variable && words.len() > 5 {
            let (z_inf, t_star) = (number(4, "Z_inf of the rotation")?, number(5, "T* of the rotation")?);
            // Atoms have zeros.
            if z_inf != 0.0 && !((1.0..=1e6).contains(&z_inf) && (0.0..=1e5).contains(&t_star)) {
                let message = format!("Z_inf is {z_inf} and T* {t_star} K; allowed: 1 to 1e6 (or 0 for an atom) and 0 to 1e5");
                return Err(faults.at(line, &message));
            }
            parker = (z_inf > 0.0).then_some(Relaxation::Parker { z_inf, t_star });
        }
        all.species.push((words[0].into(), scatter, parker));
    }
    Ok(all)
}

/// Fault of scattering parameters, if any.
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

    /// As SPARTA's files for air have them: comments by column, a number in any form, electrons, a 1/Z that is not given as -1.
    const SPECIES: &str = "# Species data\n\n# ID\n# Molwt (amu)\n# Rotational dof\n# RotRel\n\n\
        O2  32.00    5.31E-26  2    0.2   2    5.58659E-5    2256.0    1.0      0.0\n\
        N2  28.016   4.65E-26  2    -1.0  2   -1.0    3371.0    1.0      0.0\n\
        O   16.00    2.65E-26  0     0.0   0    0.0       0.0    1.0      0.0 # an atom\n\
        CO2 44.01    7.31E-26  2   0.125  8    1.9e-5        959.66    1.0      0.0\n\
        O2+ 32.00    5.31E-26  2    -1.0   2   -1.0    2256.0    1.0      1.0\n\
        e   0.001  9.10938188E-31 0  0.0   0    0.0       0.0    1.0     -1.0\n";
    const VIB: &str = "# Vibrational temperature data\n# vibtemp (K)  vibrel  degen\n\n\
        CO2  3  959.66  1.9e-5 2  1918.7  1.9e-5 1  3382.1  1.9e-5 1\nX 1 5 0.1 3\n";
    const VSS: &str = "# VSS collision model parameters for each species\n# diameter (mass)\n# omega (unitless)\n\n\
        O2   3.96E-10    0.77  273.15  1.4   16.5 113.5 56.5 153.5 3.0e-21\n\
        N2   4.07E-10    0.74  273.15  1.6\n\
        O    3.0E-10     0.80  273.15  1.0   0.0 0.0 0.0 0.0 0.0\n\
        O2 O 3.45E-10    0.75  273.15  1.3   0.0 0.0 0.0 0.0\n\
        O e  3.45E-15    0.75  273.15  1.3   0.0 0.0 0.0 0.0\n\
        e    7.0E-13     0.50  273.15  1.0   0.0 0.0 0.0 0.0 0.0\n";

    fn path() -> &'static Path {
        Path::new("a file")
    }

    #[test]
    fn files_of_sparta_are_read() {
        assert_eq!(names(SPECIES), ["O2", "N2", "O", "CO2", "O2+", "e"]);
        let all = species(path(), SPECIES, &["O2", "N2", "O", "CO2"]).unwrap();
        let [o2, n2, o, co2] = &all[..] else { panic!("{all:?}") };
        let z = |s: &SpeciesLine| (s.species.z_rotation, s.species.vibration.modes().first().map(|m| m.z));
        assert_eq!((o2.species.mass, o2.species.rotation, o2.species.vibration.modes()[0].theta), (5.31e-26, 2, 2256.0));
        assert_eq!(z(o2), (Relaxation::Constant(5.0), Some(1.0 / 5.58659e-5)));
        assert_eq!(z(n2), (Relaxation::Constant(f64::INFINITY), Some(f64::INFINITY)));
        assert_eq!((z(o), o.modes, co2.modes), ((Relaxation::Constant(f64::INFINITY), None), 0, 4));
        for (name, charge) in [("O2+", "line 12: `O2+` has a charge of 1.0"), ("e", "line 13: `e` has a charge of -1.0")] {
            let said = species(path(), SPECIES, &["O2", name]).unwrap_err().to_string();
            assert!(said.contains(charge) && said.contains("leave it out"), "{said}");
        }
        let found = vibrations(path(), VIB, &["CO2", "O2"]).unwrap();
        let modes: Vec<_> = found.iter().flat_map(|v| v.1.modes()).map(|m| (m.theta, m.degeneracy, m.z)).collect();
        assert_eq!(modes, [(959.66, 2, 1.0 / 1.9e-5), (1918.7, 1, 1.0 / 1.9e-5), (3382.1, 1, 1.0 / 1.9e-5)]);
        let text = "CO2 3 959.66 1.9e-5 1 959.66 1.9e-5 1  1918.7 1e-4 1";
        assert_eq!(vibrations(path(), text, &["CO2"]).unwrap()[0].1.modes()[0].degeneracy, 2);
    }

    /// Electrons are smaller than anything allowed, and the files that come with SPARTA have them.
    #[test]
    fn lines_of_other_species_are_passed_over() {
        let used = ["O2", "N2", "O"];
        let found = vss(path(), VSS, &used, Relax::Constant).unwrap();
        assert_eq!(
            found.species.iter().map(|s| (s.0.as_str(), s.1.diameter, s.2)).collect::<Vec<_>>(),
            [("O2", 3.96e-10, None), ("N2", 4.07e-10, None), ("O", 3.0e-10, None)]
        );
        assert_eq!((found.pairs.len(), found.pairs[0].1.omega, &found.pairs[0].0[1][..]), (1, 0.75, "O"));
        let said = vss(path(), VSS, &["O2", "e"], Relax::Constant).unwrap_err().to_string();
        assert!(said.contains("line 10: the diameter in m is 7e-13"), "{said}");
        assert_eq!(species(path(), SPECIES, &["He"]).unwrap(), []);
        let found = vss(path(), VSS, &used, Relax::Variable).unwrap();
        let parker = found.species.iter().map(|s| s.2).collect::<Vec<_>>();
        assert_eq!(parker, [Some(Relaxation::Parker { z_inf: 16.5, t_star: 113.5 }), None, None]);
        let said = vss(path(), &VSS.replace("16.5", "-16.5"), &used, Relax::Variable).unwrap_err().to_string();
        assert!(said.contains("line 5: Z_inf is -16.5"), "{said}");
    }

    #[test]
    fn broken_files_are_refused_with_the_line() {
        let refused = |text: &str| species(path(), text, &["O2"]).unwrap_err().to_string();
        assert!(refused("O2 31 5e-26 2 0.2 2").contains("line 1: 1/Z of the vibration is missing"), "{}", refused("O2 31 5e-26 2 0.2 2"));
        assert!(refused("\nO2 31 abc 2 0.2 2 0 2256 1 0").contains("line 2: the mass is `abc`"));
        assert!(refused("O2 31 -5e-26 2 0.2 2 0 2256 1 0").contains("line 1: the mass of a molecule is -5e-26"));
        assert!(refused(&SPECIES.replace("O2+", "O2")).contains("there twice"));
        assert!(refused("# nothing").contains("no species"));
        assert!(refused("O2 31 5e-26 2 5.0 2 0 2256 1 0").contains("1/Z of the rotation is 5, above 1"));
        assert!(refused("O2 31 5e-26 2 0.2 3 0 2256 1 0").contains("3 degrees of freedom of vibration"));
        assert!(refused("O2 31 5e-26 2 0.2 2 0 0 1 0").contains("temperature of the vibration is 0 K"));
        let refused = |text: &str| vibrations(path(), text, &["CO2", "X"]).unwrap_err().to_string();
        assert!(refused("CO2 2 959 1e-5 1 1918 1e-5").contains("line 1: 7 words for 2 modes"));
        assert!(refused("CO2 0").contains("the number of modes is 0"));
        assert!(refused("CO2 2 959 1e-5 1 19 1e-5 1").contains("200 to 1e5"));
        assert!(refused("CO2 1 959 1e-5 1\nCO2 1 959 1e-5 1").contains("there twice"));
        assert!(refused("X 5 300 0 1 400 0 1 500 0 1 600 0 1 700 0 1").contains("at most 4"));
        let refused = |text: &str| vss(path(), text, &["Ar"], Relax::Constant).unwrap_err().to_string();
        assert!(refused("Ar 4.11 0.81 273.15 1.4").contains("line 1: the diameter in m is 4.11e0"));
        assert!(refused("Ar 4.11e-10 0.81 273.15").contains("alpha is missing"));
        assert!(refused("Ar nan 0.81 273.15 1.4").contains("line 1"));
        assert!(refused("Ar 4e-10 0.81 273.15 1.4\nAr 4e-10 0.81 273.15 1.4").contains("line 2: the species `Ar` is there twice"));
    }
}
