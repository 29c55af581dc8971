//! The gas behind the normal shock before a body in a supersonic stream: cells, steps and what is not computed, judged where the
//! gas is densest and hottest.

use std::fmt::Write as _;

use crate::config::Config;
use crate::grid::Side;
use crate::model::{Edge, Model, Partner, Scheme};
use crate::walls::BOLTZMANN;
use crate::walls::tally::Reference;

/// Part of a degree of freedom, in `k`, from which on a vibration that is left out is missed.
const MISSED: f64 = 0.1;
/// Temperature, K, from which on molecules fall apart: 1 % of O2 at 0.01 atmospheres (2400 K); N2 and CO hold to twice that.
const FALL_APART: f64 = 2400.0;
/// And atoms lose electrons: 1 % of argon at 0.01 atmospheres.
const IONISE: f64 = 8000.0;

/// Parts in which the enthalpy of a stream is taken up.
const PARTS: u32 = 200;

/// A gas brought to rest behind a normal shock.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Stagnant {
    mach: f64,
    density: f64,
    temperature: f64,
}

/// The stream brought to rest, by Rankine and Hugoniot and without losses from there on; nothing where it is not supersonic.
/// Vibration as it is computed: none, or all of it.
fn stagnant(model: &Model, stream: &Reference, temperature: f64) -> Option<Stagnant> {
    let species = || model.species.iter().zip(&model.fractions);
    let mass: f64 = species().map(|(s, x)| x * s.mass).sum();
    let capacity = |t: f64| -> f64 {
        let own = |s: &crate::gas::Species| 0.5 * model.components as f64 + 0.5 * f64::from(s.rotation) + s.vibration.capacity(t);
        species().map(|(s, x)| x * own(s)).sum()
    };
    let ratio = |t: f64| 1.0 + 1.0 / capacity(t);
    let sound = (ratio(temperature) * BOLTZMANN * temperature / mass).sqrt();
    let mach = stream.speed / sound;
    if mach <= 1.0 {
        return None;
    }
    // The enthalpy of the stream's motion warms the gas; by the mean capacity where vibration wakes up.
    let (mut total, share) = (temperature, 0.5 * mass * stream.speed * stream.speed / BOLTZMANN / f64::from(PARTS));
    for _ in 0..PARTS {
        total += share / (1.0 + capacity(total));
    }
    let mean = f64::from(PARTS) * share / (total - temperature);
    let g = mean / (mean - 1.0);
    let m2 = stream.speed * stream.speed * mass / (g * BOLTZMANN * temperature);
    let behind = (2.0 * g * m2 - (g - 1.0)) / (g + 1.0);
    let after = (1.0 + 0.5 * (g - 1.0) * m2) / (g * m2 - 0.5 * (g - 1.0));
    let pressure = behind * (1.0 + 0.5 * (g - 1.0) * after).powf(g / (g - 1.0));
    Some(Stagnant { mach, density: stream.pressure / (BOLTZMANN * temperature) * pressure * temperature / total, temperature: total })
}

/// True if something stands across the stream: a body that is not a plate along it, or a wall on the side to which it goes.
fn has_shock(model: &Model, stream: &Reference) -> bool {
    let u = stream.direction;
    let body = |b: &crate::geometry::Body| b.width(u) > 1e-6 * b.width([-u[1], u[0]]);
    model.geometry.bodies().iter().any(body) || Side::ALL.iter().any(|s| meets(model, stream, s))
}

/// True if a side is a wall that the stream goes to.
fn meets(model: &Model, stream: &Reference, side: &Side) -> bool {
    let axis = side.axis;
    axis < model.grid.dimensions && model.edges[side.index()].is_wall() && stream.direction[axis] * side.normal()[axis] < -0.1
}

/// Lines of the plan and warnings.
pub(crate) fn lines(config: &Config, model: &Model) -> (Vec<(String, String)>, Vec<String>) {
    let (mut lines, mut warnings) = (Vec::new(), Vec::new());
    let mut streams = model.inflow.iter().flatten().filter(|g| g.velocity[0].hypot(g.velocity[1]) > 0.0);
    let (Some(stream), Some(gas)) = (Reference::of(model), streams.next()) else { return (lines, warnings) };
    let Some(s) = stagnant(model, &stream, gas.temperature).filter(|_| has_shock(model, &stream)) else { return (lines, warnings) };
    let collides = model.collisions.scheme != Scheme::None;
    let mut text = format!("Mach {:.2}; behind a normal shock up to {:.4e} /m^3 and {:.0} K", s.mach, s.density, s.temperature);
    if collides {
        let [path, tau] = model.free_path(s.density, s.temperature);
        let _ = write!(text, ": free path {path:.4e} m, time between collisions {tau:.4e} s");
        // At the same pressure the gas beside a cold wall is denser.
        let sides = Side::ALL.iter().filter(|s| meets(model, &stream, s));
        let sides = sides.filter_map(|s| if let Edge::Wall(n) | Edge::Walls(n) = model.edges[s.index()] { Some(n as usize) } else { None });
        let walls = model.geometry.segments().iter().map(|g| g.wall as usize).chain(sides);
        let coldest = walls.map(|wall| model.walls[wall]).filter(|w| !w.is_mirror());
        let coldest = coldest.map(|w| w.temperature).fold(s.temperature, f64::min);
        let beside = model.free_path(s.density * s.temperature / coldest, coldest)[0];
        let shown = (10.0 * coldest).round() / 10.0;
        if coldest < s.temperature {
            let _ = write!(text, "; beside a wall of {shown} K {beside:.4e} m");
        }
        let h = model.widest();
        if h > beside && model.collisions.partner != Partner::NearestNeighbour {
            let wall = if coldest < s.temperature { format!(", and {:.2} beside a wall of {shown} K", h / beside) } else { String::new() };
            warnings.push(format!(
                "behind a normal shock a cell would be {:.2} free paths wide{wall}: heat and shear may come out \
                 wrong there; cells of {:.3e} m would do, or nearest-neighbour partners (`collisions.partner = \"nearest_neighbour\"`, 20 particles or more in a cell)",
                h / path,
                0.5 * beside
            ));
        }
        if config.dt > 0.5 * tau {
            warnings.push(format!(
                "behind a normal shock a step would be {:.2} times the time between collisions; `dt = {:.3e}` (a fifth) would do",
                config.dt / tau,
                0.2 * tau
            ));
        }
        for kind in model.species.iter().filter(|k| k.left_out.capacity(s.temperature) > MISSED) {
            warnings.push(format!(
                "{} would vibrate at the {:.0} K behind a normal shock (heat capacity {:.2} k more), and vibration is off: `collisions.vibration = \
                 true`",
                kind.name,
                s.temperature,
                kind.left_out.capacity(s.temperature)
            ));
        }
        let molecules = model.species.iter().any(|k| k.rotation > 0 || !k.vibration.is_empty() || !k.left_out.is_empty());
        if molecules && s.temperature > FALL_APART {
            warnings.push(format!(
                "at the {:.0} K behind a normal shock molecules fall apart and react: no chemistry is computed, so that the gas stays too hot",
                s.temperature
            ));
        } else if s.temperature > IONISE {
            warnings.push(format!("at the {:.0} K behind a normal shock atoms lose electrons, which is not computed", s.temperature));
        }
    }
    lines.push(("shock".into(), text));
    (lines, warnings)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::sides::{SideConfig, SideWord};
    use crate::config::{BodyConfig, SpeciesConfig, WallConfig};
    use crate::geometry::{Gas, Shape};

    /// A stream of Mach 10 or so past a circle.
    fn past_a_circle(name: &str, temperature: f64, speed: f64) -> Config {
        let mut config = Config::new(vec![80, 60], vec![1.6, 1.2], name, 1.7e19, temperature);
        config.gas.velocity = [speed, 0.0, 0.0];
        config.boundary.all = Some(SideConfig::Word(SideWord::Stream));
        config.dt = 1e-6;
        config.bodies = vec![BodyConfig {
            name: "body".into(),
            outline: Some(Shape::Circle { centre: [0.8, 0.6], radius: 0.15, segments: 60 }),
            file: None,
            max_segment_length: None,
            gas: Gas::Outside,
            wall: WallConfig::diffuse(500.0, [0.0; 3]),
            temperature: None,
            walls: std::collections::BTreeMap::default(),
            reference: None,
        }];
        config
    }

    fn said(config: &Config) -> (String, Vec<String>) {
        let model = Model::new(config, Path::new(""), 1).unwrap();
        let (found, warnings) = lines(config, &model);
        (found.into_iter().map(|l| l.1).collect(), warnings)
    }

    /// Argon at Mach 10 and 200 K: `T0/T = 1 + 100/3`; behind the shock 124.75 times the pressure, Mach 0.4543, and at rest 1.1810
    /// times that: 147.3, so 4.291 times the density.
    #[test]
    fn the_gas_behind_the_shock_is_that_of_rankine_and_hugoniot() {
        let config = past_a_circle("Ar", 200.0, 2634.1);
        let model = Model::new(&config, Path::new(""), 1).unwrap();
        let stream = Reference::of(&model).unwrap();
        let s = stagnant(&model, &stream, 200.0).unwrap();
        assert!((s.mach - 10.0).abs() < 0.01, "{s:?}");
        assert!((s.temperature / 200.0 - 34.33).abs() < 0.07 && (s.density / 1.7e19 - 4.291).abs() < 0.002, "{s:?}");
        assert_eq!(stagnant(&model, &Reference { speed: 200.0, ..stream }, 200.0), None);
    }

    #[test]
    fn coarse_cells_and_what_is_left_out_are_said_before_the_run() {
        // Cells of 2 cm, a free path of 8 cm far away and of 3 cm where the gas is at rest, but 3 mm at the wall.
        let (line, warnings) = said(&past_a_circle("Ar", 200.0, 2634.1));
        assert!(line.contains("Mach 10.0") && line.contains("500 K"), "{line}");
        assert!(warnings.len() == 1 && warnings[0].contains("free paths wide"), "{warnings:?}");
        let mut config = past_a_circle("Ar", 200.0, 2634.1);
        config.gas.density = 1e18;
        assert_eq!(said(&config).1, [""; 0]);
        config.dt = 5e-3;
        assert!(said(&config).1[0].contains("times the time between collisions"), "{:?}", said(&config).1);
        // Air at 7.5 km/s.
        let mut config = past_a_circle("N2", 200.0, 7500.0);
        config.gas.density = 1e18;
        config.species = vec![
            SpeciesConfig { fraction: 0.79, ..SpeciesConfig::named("N2") },
            SpeciesConfig { fraction: 0.21, ..SpeciesConfig::named("O2") },
        ];
        let warnings = said(&config).1;
        assert!(
            warnings.iter().any(|w| w.starts_with("N2 would vibrate")) && warnings.iter().any(|w| w.contains("no chemistry")),
            "{warnings:?}"
        );
        // Slow, or along a plate: no shock.
        assert_eq!(said(&past_a_circle("N2", 200.0, 150.0)), (String::new(), Vec::new()));
        let mut config = past_a_circle("N2", 200.0, 7500.0);
        config.bodies[0].outline = Some(Shape::Plate { points: vec![[0.4, 0.6], [1.0, 0.6]] });
        assert_eq!(said(&config).0, "");
    }
}
