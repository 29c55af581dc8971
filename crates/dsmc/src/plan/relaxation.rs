//! The collision numbers of a run: those that are missing, or that no collision could follow, are refused; the others are said in
//! the plan.

use std::fmt::Write as _;

use zellige_engine::error::{Problem, Result};

use crate::config::Config;
use crate::gas::millikan::collision_number;
use crate::gas::pair::Pair;
use crate::gas::sparta::Relax;
use crate::gas::vibration::Mode;
use crate::gas::{Relaxation, Species};
use crate::model::{Model, Scheme, ZDefinition};
use crate::setup::input;
use crate::walls::Model as WallModel;

/// The smallest Z of a mode with `zeta` degrees of freedom: with a smaller one the chance of an exchange would be above 1. Of all
/// partners that with which it is largest, `freedom` being the least `5 - 2 omega` of a relative motion.
fn least(definition: ZDefinition, zeta: f64, freedom: f64) -> f64 {
    match definition {
        ZDefinition::Jeans => (freedom + zeta) / freedom,
        ZDefinition::Particle => 1.0,
    }
}

/// The least `5 - 2 omega` of the collisions of species `a`.
fn freedom(pairs: &[Pair], species: usize, a: usize) -> f64 {
    pairs[a * species..][..species].iter().map(|p| 5.0 - 2.0 * p.scatter.omega).fold(f64::INFINITY, f64::min)
}

/// Degrees of freedom of a mode of vibration at a temperature.
fn zeta(mode: &Mode, temperature: f64) -> f64 {
    let x = mode.theta / temperature;
    f64::from(mode.degeneracy) * 2.0 * x / x.exp_m1()
}

/// Refuses internal modes that no collision would change, and rotations that could not relax as fast as they should.
pub(crate) fn refuse(config: &Config, all: &[Species], pairs: &[Pair]) -> Result<()> {
    let c = &config.collisions;
    if c.scheme == Scheme::None {
        return Ok(());
    }
    for (i, s) in all.iter().enumerate() {
        let without = |what: &str, key: &str, hint: &str| {
            let message = format!("the {what} of {} has no collision number: no collision would change it", s.name);
            let hint = format!("{hint}, or `{key} = 1e12` for one that is frozen");
            Err(input(&format!("species[{i}].{key}"), Problem::new("", message).allowed("1 to 1e12").hint(hint)))
        };
        if s.rotation > 0 && s.z_rotation == Relaxation::Constant(f64::INFINITY) {
            let other = match (&config.vss_file, c.relax) {
                (Some(_), Relax::Constant) => "`collisions.relax = \"variable\"` where `vss_file` has Z_inf and T*",
                _ => "`z_rotation = 5`",
            };
            return without("rotation", "z_rotation", other);
        }
        if !c.millikan_white && s.vibration.modes().iter().any(|m| m.z == f64::INFINITY) {
            return without("vibration", "z_vibration", "`collisions.millikan_white = true`");
        }
        let lowest = least(c.z_definition, f64::from(s.rotation), freedom(pairs, all.len(), i));
        let z = match s.z_rotation {
            Relaxation::Constant(z) => z,
            Relaxation::Parker { z_inf, .. } => z_inf,
        };
        // A rounding of the bound itself is none.
        if s.rotation > 0 && z < lowest * (1.0 - 1e-9) {
            let message = format!("Z is {z}, and {} would have to change its rotation more than once in a collision", s.name);
            let problem = Problem::new("", message).allowed(format!("{lowest:.3} or more with `z_definition = \"jeans\"`"));
            return Err(input(
                &format!("species[{i}].z_rotation"),
                problem.hint("or `collisions.z_definition = \"particle\"`, where 1/Z is the chance of an exchange, if that is meant"),
            ));
        }
    }
    Ok(())
}

/// The temperature below which a collision number is smaller than `lowest`, K; nothing where it is not.
fn cut(z: Relaxation, lowest: f64) -> Option<f64> {
    let (mut low, mut high) = (0.01_f64, 1e6);
    if z.at(low) >= lowest || z.at(high) < lowest {
        return None;
    }
    for _ in 0..100 {
        let t = (low * high).sqrt();
        if z.at(t) < lowest { low = t } else { high = t }
    }
    Some(low)
}

/// The coldest gas or wall of the input, K.
fn coldest(config: &Config, model: &Model) -> f64 {
    let walls = model.walls.iter().filter(|w| w.model != WallModel::Specular).map(|w| w.temperature);
    let gases = model.inflow.iter().flatten().map(|g| g.temperature);
    walls.chain(gases).fold(config.gas.temperature, f64::min)
}

/// Definition and value of Z for each species, for the plan; and cases in which a collision cannot follow it.
pub(crate) fn lines(config: &Config, model: &Model) -> (Vec<(String, String)>, Vec<String>) {
    let (c, t, n) = (&model.collisions, config.gas.temperature, model.species.len());
    let (mut lines, mut warnings) = (Vec::new(), Vec::new());
    if c.scheme == Scheme::None || !(c.rotation || c.vibration) {
        return (lines, warnings);
    }
    let meaning = match c.z_definition {
        ZDefinition::Jeans => "`jeans`: a mode relaxes in Z mean collision times",
        ZDefinition::Particle => "`particle`: in a collision each molecule exchanges energy with the chance 1/Z",
    };
    lines.push(("relaxation".to_owned(), meaning.to_owned()));
    for (i, s) in model.species.iter().enumerate().filter(|(_, s)| s.rotation > 0 || !s.vibration.is_empty()) {
        let (mut parts, free) = (Vec::new(), freedom(&c.pairs, n, i));
        if s.rotation > 0 {
            let mut text = format!("rotation Z = {:.4}", s.z_rotation.at(t));
            if let Relaxation::Parker { z_inf, t_star } = s.z_rotation {
                let _ = write!(text, " at {t} K (Parker, {z_inf} and {t_star} K)");
            }
            parts.push(text);
            let below = cut(s.z_rotation, least(c.z_definition, f64::from(s.rotation), free));
            if let Some(below) = below.filter(|b| *b > coldest(config, model)) {
                warnings.push(format!(
                    "{}: below some {below:.0} K the rotation should relax faster than one exchange in every collision makes it; there it relaxes \
                     with one in each",
                    s.name
                ));
            }
        }
        for m in s.vibration.modes() {
            if m.z == f64::INFINITY {
                let z = collision_number(s, model.pair(i, i), t);
                parts.push(format!("vibration ({} K) by Millikan and White, Z = {z:.3e} at {t} K", m.theta));
                continue;
            }
            parts.push(format!("vibration ({} K) Z = {}", m.theta, m.z));
            let lowest = least(c.z_definition, zeta(m, model.hottest[0]), free);
            if m.z < lowest {
                warnings.push(format!(
                    "{}: with Z = {} the vibration of {} K would have to exchange more than once in a collision where it is hot; at {} K it \
                     relaxes as with Z = {lowest:.2}",
                    s.name, m.z, m.theta, model.hottest[0]
                ));
            }
        }
        lines.push(("relaxation".into(), format!("{}: {}", s.name, parts.join(", "))));
    }
    if config.species_file.is_some() {
        let text = match config.collisions.relax {
            Relax::Constant => "1/Z of `species_file`; Z_inf, T* and more columns of `vss_file` are not used (`relax` says which)",
            Relax::Variable => "Z_inf and T* of `vss_file`; its constants of the vibration are not used",
        };
        lines.push(("relaxation".into(), text.into()));
    }
    (lines, warnings)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{ParkerConfig, SpeciesConfig, ZConfig};

    fn nitrogen() -> Config {
        Config::new(vec![4], vec![1.0], "N2", 1e20, 300.0)
    }

    fn refused(config: &Config) -> String {
        Model::new(config, Path::new(""), 1).map_or_else(|e| e.to_string(), |_| String::new())
    }

    #[test]
    fn modes_without_a_collision_number_are_refused() {
        let mut config = nitrogen();
        config.collisions.vibration = true;
        let said = refused(&config);
        assert!(said.contains("`dsmc.species[0].z_vibration`: the vibration of N2 has no collision number"), "{said}");
        config.collisions.scheme = Scheme::None;
        assert_eq!(refused(&config), "");
        config.collisions.scheme = Scheme::Ntc;
        config.collisions.millikan_white = true;
        assert_eq!(refused(&config), "");
        config.collisions.millikan_white = false;
        config.species[0].z_vibration = Some(1e12);
        assert_eq!(refused(&config), "");
    }

    /// N2 collides with `5 - 2 0.74 = 3.52` degrees of freedom of the relative motion and rotates with two: 5.52/3.52 = 1.568.
    #[test]
    fn a_collision_has_one_exchange_at_most() {
        let mut config = nitrogen();
        let z = |z| Some(ZConfig::Number(z));
        config.species[0].z_rotation = z(1.56);
        let said = refused(&config);
        assert!(said.contains("`dsmc.species[0].z_rotation`: Z is 1.56") && said.contains("1.568 or more"), "{said}");
        config.species[0].z_rotation = z(1.569);
        assert_eq!(refused(&config), "");
        config.species[0].z_rotation = z(1.0);
        config.collisions.z_definition = ZDefinition::Particle;
        assert_eq!(refused(&config), "");
        // A partner whose collisions have less freedom asks for more: omega 1.10 of NH3 and 0.74, 5 - 1.84 = 3.16.
        config.species = vec![SpeciesConfig { z_rotation: z(1.6), ..SpeciesConfig::named("N2") }, SpeciesConfig::named("NH3")];
        config.collisions.z_definition = ZDefinition::Jeans;
        assert!(refused(&config).contains("1.633 or more"), "{}", refused(&config));
    }

    #[test]
    fn the_plan_says_what_z_is_and_where_it_ends() {
        let mut config = nitrogen();
        config.collisions.vibration = true;
        config.species[0].z_vibration = Some(20.0);
        let said = |config: &Config| lines(config, &Model::new(config, Path::new(""), 1).unwrap());
        let (found, warnings) = said(&config);
        let text: Vec<_> = found.iter().map(|l| l.1.as_str()).collect();
        assert!(text[0].starts_with("`jeans`"), "{text:?}");
        assert_eq!(text[1], "N2: rotation Z = 4.2605 at 300 K (Parker, 18.1 and 91.5 K), vibration (3371 K) Z = 20");
        assert_eq!(warnings, [""; 0]);
        // 18.1/(1 + 2.784 sqrt(91.5/T) + 5.609 91.5/T) = 1.568 at 69.8 K.
        config.gas.temperature = 60.0;
        assert!(said(&config).1[0].starts_with("N2: below some 70 K"), "{:?}", said(&config).1);
        config.gas.temperature = 70.0;
        assert_eq!(said(&config).1, [""; 0]);
        // A vibration has two degrees of freedom at most: Z of 1.2 is enough where it has next to none.
        config.species[0].z_vibration = Some(1.2);
        assert_eq!(said(&config).1, [""; 0]);
        config.gas.temperature = 20_000.0;
        assert!(said(&config).1[0].contains("Z = 1.2 the vibration of 3371 K"), "{:?}", said(&config).1);
        config.collisions.z_definition = ZDefinition::Particle;
        assert_eq!(said(&config).1, [""; 0]);
        config.collisions.scheme = Scheme::None;
        assert_eq!(said(&config).0, []);
        let parker = ParkerConfig { z_inf: 1.2, t_star: 0.0 };
        config.species[0].z_rotation = Some(ZConfig::Parker(parker));
        (config.collisions.scheme, config.collisions.z_definition) = (Scheme::Ntc, ZDefinition::Jeans);
        assert!(refused(&config).contains("Z is 1.2"), "{}", refused(&config));
    }
}
