//! Regime of a run: free path, collision time, Knudsen number, cells and steps against them.
//!
//! Criteria: Alexander, Garcia and Alder, Phys. Fluids 10 (1998) 1540 (cells); Garcia and Wagner, Phys. Fluids 12 (2000) 2621
//! (steps): errors of transport go with the squares of cell over free path and step over collision time, some per cent at one of
//! each.

use zellige_engine::device::Device;
use zellige_engine::error::Problem;
use zellige_engine::sim::{Expected, WorkEstimate};

use crate::config::{AUTO, Config};
use crate::diagnostics::audit;
use crate::gas::mixture;
use crate::geometry::Body;
use crate::model::{CROWD, Edge, Model, Partner, Scheme};
use crate::plan::relaxation;
use crate::plan::shocked;
use crate::plan::unused::unused_keys;
use crate::planar;
use crate::walls::BOLTZMANN;

/// Schedule of averages, in words.
fn averages(config: &Config) -> String {
    let begin = match config.sampling_start() {
        AUTO => "once the flow is found steady".to_owned(),
        step => format!("from step {step} on"),
    };
    config.sampling.window.map_or(begin.clone(), |w| format!("{begin}, anew every {w} steps"))
}

/// Nanoseconds of a core per particle and step with and without collisions, and the particle-steps of a large GPU in a second, as
/// `docs/performance/dsmc.md` has them measured.
const CORE: [f64; 2] = [25.0, 12.0];
const GPU: f64 = 2.4e10;

/// Duration of a run, in words: the particles of the start on every step.
pub fn duration(config: &Config, model: &Model, device: &Device) -> String {
    let work = model.expected * config.steps as f64;
    let (seconds, by) = match device {
        Device::Cpu(cpu) => {
            let each = CORE[usize::from(model.collisions.scheme == Scheme::None)];
            (work * each * 1e-9 / cpu.threads() as f64, format!("{each} ns per particle and step of a thread"))
        }
        Device::Cuda(_) => (work / GPU, format!("{GPU:.1e} particle-steps a second")),
    };
    let text = match seconds {
        s if s < 1.0 => "less than a second".to_owned(),
        s if s < 100.0 => format!("about {s:.0} s"),
        s if s < 6000.0 => format!("about {:.0} min", s / 60.0),
        s => format!("about {:.1} h", s / 3600.0),
    };
    format!("{text}, by {by}, if the number of particles stays")
}

/// Launches of a step on a GPU: 40 to 120 us of a small one.
const LAUNCHES: f64 = 15.0;

/// All steps by the cost model, `bytes` each; what a GPU moves in a step is twice that, and its kernels are at half of the
/// bandwidth.
pub fn work(config: &Config, model: &Model, bytes: f64) -> WorkEstimate {
    let each = CORE[usize::from(model.collisions.scheme == Scheme::None)];
    WorkEstimate { steps: config.steps as f64, thread_seconds: 1e-9 * each * model.expected, launches: LAUNCHES, bytes: 4.0 * bytes }
}

/// Number of particles, and of times those of the start, from which a plan tells what denser gas from outside makes of them.
const MANY: f64 = 1e6;
const MANY_TIMES: f64 = 10.0;

/// The largest ratio of the weights of neighbouring cells.
fn steepest(model: &Model) -> f64 {
    let grid = &model.grid;
    let beside = |cell: usize, axis: usize| {
        let mut next = grid.cell(cell);
        next[axis] += 1;
        (next[axis] < grid.cells[axis]).then(|| model.relative(grid.index(next)) / model.relative(cell))
    };
    let ratios = (0..grid.len()).flat_map(|cell| [beside(cell, 0), beside(cell, 1)]).flatten();
    ratios.fold(1.0, |most, r| most.max(r).max(1.0 / r))
}

/// Collision partner, where the program chooses it: `wide` is the width of a cell in free paths.
fn partners(config: &Config, model: &Model, wide: f64) -> Option<(String, String)> {
    let c = &model.collisions;
    if config.collisions.partner != Partner::Auto || !matches!(c.scheme, Scheme::Ntc | Scheme::Majorant) || model.grid.len() == 1 {
        return None;
    }
    let text = match c.partner {
        Partner::NearestNeighbour => {
            format!("the nearest of a cell, as cells are {wide:.2} free paths wide; `collisions.partner = \"random\"` is faster")
        }
        _ if wide > 1.0 => format!("any of a cell: with fewer than {CROWD} particles in it the nearest is not much nearer"),
        _ => format!("any of a cell, as cells are no wider than the free path ({wide:.2} of it)"),
    };
    Some(("partners".into(), text))
}

/// Collisions of a closed box in a step where the gas is uniform, as in equilibrium at its first temperature.
pub fn expected(config: &Config, model: &Model) -> Vec<Expected> {
    let i = &config.initial;
    let uniform = i.density.is_none() && i.temperature.is_none() && i.temperatures.is_none();
    if model.collisions.scheme == Scheme::None || !uniform || !audit::closed(model) {
        return Vec::new();
    }
    let tau = model.free_path(config.gas.density, config.gas.temperature)[1];
    // Two particles have each.
    vec![Expected::new("collisions_per_step", 0.5 * model.expected * model.dt / tau, "equilibrium")]
}

/// Most collisions of a particle in a step, and most cells that a molecule may cross in one: far beyond them a step would not end.
const BEARABLE: (f64, f64) = (1e4, 1e5);

/// Refuses a step that would take for ever, for a gas of at most this density.
pub(crate) fn bearable(model: &Model, density: f64) -> Result<(), Problem> {
    let grid = &model.grid;
    let tau = model.free_path(density, model.hottest[0])[1];
    let collisions = if model.collisions.scheme == Scheme::None { 0.0 } else { model.dt / tau };
    // NaN is refused too.
    let few = collisions <= BEARABLE.0;
    if !few {
        let message = format!(
            "in a step of {:e} s a particle would collide {collisions:.1e} times at {density:.3e} /m^3 and {} K",
            model.dt, model.hottest[0]
        );
        let hint = format!("`dt = {:.3e}` is a fifth of the time between collisions; is the density right?", 0.2 * tau);
        return Err(Problem::new("", message).allowed(format!("at most {:e} times", BEARABLE.0)).hint(hint));
    }
    let narrow = grid.h[..grid.dimensions].iter().copied().fold(f64::MAX, f64::min);
    let fastest = fastest(model);
    let crossed = model.dt * fastest / narrow;
    let near = crossed <= BEARABLE.1;
    if !near {
        let message = format!("in a step of {:e} s a molecule of {fastest:.0} m/s would cross {crossed:.1e} cells", model.dt);
        let hint = format!("`dt = {:.3e}` would be one cell", narrow / fastest);
        return Err(Problem::new("", message).allowed(format!("at most {:e} cells", BEARABLE.1)).hint(hint));
    }
    Ok(())
}

/// The speed of a fast molecule, m/s.
fn fastest(model: &Model) -> f64 {
    let lightest = model.species.iter().map(|s| s.mass).fold(f64::MAX, f64::min);
    model.hottest[1] + (2.0 * BOLTZMANN * model.hottest[0] / lightest).sqrt()
}

/// Lines of the plan and warnings.
pub fn forecast(config: &Config, model: &Model) -> (Vec<(String, String)>, Vec<String>) {
    let (grid, gas) = (&model.grid, &config.gas);
    let join = |f: &dyn Fn(usize) -> String| (0..grid.dimensions).map(f).collect::<Vec<_>>().join(" x ");
    let mut lines = vec![
        ("grid".to_owned(), format!("{} cells of {} m", join(&|d| grid.cells[d].to_string()), join(&|d| format!("{:.4e}", grid.h[d])))),
        ("time".to_owned(), format!("{} steps of {:.4e} s, averages {}", config.steps, model.dt, averages(config))),
    ];
    let names: Vec<_> = model.species.iter().zip(&model.fractions).map(|(s, f)| format!("{:.4} {}", f, s.name)).collect();
    let state = format!("{} at {:.4e} /m^3, {} K", names.join(", "), gas.density, gas.temperature);
    lines.push(("gas".into(), state));
    let mut warnings = model.notes.clone();
    warnings.extend(unused_keys(config, model));
    for body in model.geometry.bodies() {
        let text =
            format!("{}: {} segments, area {:.4e} m^2, perimeter {:.4e} m", body.name, body.segments.len(), body.area, body.perimeter);
        lines.push(("body".into(), text));
    }
    let [path, tau] = model.free_path(gas.density, gas.temperature);
    let h = model.widest();
    let length = (0..grid.dimensions).map(|d| grid.length(d)).fold(0.0, f64::max);
    lines.push((
        "collisions".into(),
        format!("free path {path:.4e} m ({:.3} cells), time between collisions {tau:.4e} s ({:.2} steps)", path / h, tau / model.dt),
    ));
    lines.extend(partners(config, model, h / path));
    let extent = |body: &Body| (0..2).map(|d| body.bounds[1][d] - body.bounds[0][d]).fold(0.0, f64::max);
    let by_body = model.geometry.bodies().iter().map(|b| format!("{:.4e} by that of `{}`", path / extent(b), b.name));
    let by: Vec<_> = std::iter::once(format!("{:.4e} by the longer side of the domain", path / length)).chain(by_body).collect();
    lines.push(("knudsen".into(), by.join(", ")));
    let transport = if model.planar() {
        (model.species.len() == 1).then(|| planar::transport(&model.species[0], gas.temperature))
    } else {
        let z = model.collisions.z_definition;
        Some(mixture::transport(&model.species, |a, b| *model.pair(a, b), &model.fractions, gas.temperature, z))
    };
    let text = transport.map_or_else(
        || "not known of mixtures with two components of velocity".to_owned(),
        |[viscosity, conductivity]| format!("viscosity {viscosity:.4e} Pa s, conductivity {conductivity:.4e} W/(m K)"),
    );
    lines.push(("transport".into(), text));
    let (shocked, coarse) = shocked::lines(config, model);
    lines.extend(shocked);
    warnings.extend(coarse);
    let (relaxing, cut) = relaxation::lines(config, model);
    lines.extend(relaxing);
    warnings.extend(cut);
    if model.planar() {
        lines.extend(planar::changes(model, gas.temperature));
    }
    let per_cell = gas.density * grid.volume() / model.weight;
    lines.push((
        "weight".into(),
        format!("{:.4e} molecules a particle, {per_cell:.1} particles in a cell at the density of `gas`", model.weight),
    ));
    let brought = model.inflow.iter().flatten().map(|g| g.density).fold(0.0, f64::max);
    let filled = brought * grid.volume() * grid.len() as f64 / model.weight;
    if filled > MANY && filled > MANY_TIMES * model.expected {
        warnings.push(format!(
            "a side brings gas of {brought:.4e} /m^3, {:.1e} times as dense as `gas`, by which particles are counted here: where it fills the domain \
             there are {filled:.1e}, with as much more memory and time; fewer `particles_per_cell` keep them fewer",
            brought / gas.density
        ));
    }
    if model.weighted() {
        let (low, high) = model.weights.iter().fold((f32::MAX, 0.0_f32), |(a, b), w| (a.min(*w), b.max(*w)));
        let particles = |w: f32| per_cell / f64::from(w);
        let text = format!(
            "{low} to {high} times that, up to {:.2} times from a cell to the next: {:.1} to {:.1} particles in a cell at that density",
            steepest(model),
            particles(high),
            particles(low)
        );
        lines.push(("cell weights".into(), text));
        if model.edges.iter().all(|e| *e != Edge::Open) {
            warnings.push(
                "particles are doubled and removed at random between cells of different weights: in a closed domain mass and energy are kept on \
                 average, and wander with time"
                    .into(),
            );
        }
    }
    for s in model.species.iter().filter(|s| s.vibration.modes().len() > 1) {
        let soft = s.vibration.modes().iter().map(|m| m.theta).fold(f64::INFINITY, f64::min);
        // A part exp(-8) of the molecules would be above it.
        if f64::from(s.vibration.highest()) * soft < 8.0 * model.hottest[0] {
            warnings.push(format!(
                "{}: at {} K levels of the mode of {soft} K above {}, which are left out, would matter",
                s.name,
                model.hottest[0],
                s.vibration.highest()
            ));
        }
    }
    if config.sampling_start() != AUTO && config.sampling_start() >= config.steps {
        warnings.push(format!(
            "averages would begin with step {}, and the run ends with step {}: no fields and no loads will be written",
            config.sampling_start(),
            config.steps
        ));
    }
    let uniform = grid.len() == 1;
    let narrow = grid.h[..grid.dimensions].iter().copied().fold(f64::MAX, f64::min);
    let fastest = fastest(model);
    if !uniform {
        let text = format!("a fast molecule, {fastest:.0} m/s, crosses a cell in {:.2} steps", narrow / (fastest * model.dt));
        lines.push(("transit".into(), format!("{text}, the domain in {:.0}", length / (fastest * model.dt))));
    }
    let collides = model.collisions.scheme != Scheme::None;
    // Gas in one cell has gradients only where something else is beside it.
    let alike = |edge: &Edge| match edge {
        Edge::Periodic => true,
        Edge::Wall(wall) => model.walls[*wall as usize].is_mirror(),
        Edge::Walls(_) | Edge::Open => false,
    };
    let still = uniform && model.edges[..2 * grid.dimensions].iter().all(alike) && model.geometry.bodies().is_empty();
    if collides && h > path && !still && model.collisions.partner != Partner::NearestNeighbour {
        warnings.push(format!(
            "a cell is {:.2} free paths wide: transport comes out too fast; cells of {:.3e} m (half a free path) would do, or nearest-neighbour partners \
             (`collisions.partner`), which take 20 particles or more in a cell",
            h / path,
            0.5 * path
        ));
    }
    if collides && model.dt > 0.5 * tau {
        warnings.push(format!(
            "a step is {:.2} times the time between collisions: transport comes out too fast; `dt = {:.3e}` (a fifth) would do",
            model.dt / tau,
            0.2 * tau
        ));
    }
    if model.dt * fastest > 2.0 * narrow && !uniform {
        warnings.push(format!(
            "a molecule of {fastest:.0} m/s crosses {:.1} cells in a step; `dt = {:.3e}` would be one cell",
            model.dt * fastest / narrow,
            narrow / fastest
        ));
    }
    if collides && per_cell < 5.0 {
        warnings.push(format!("{per_cell:.1} particles in a cell: few pairs to choose from; 10 or more are usual"));
    }
    (lines, warnings)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;
    use crate::bench;

    /// Argon at the density of the benchmarks: a free path of 1.885e-5 m.
    #[test]
    fn partners_are_near_where_cells_are_coarse_and_full() {
        let mut config = Config::new(vec![40], vec![40.0 * 1.9e-5], "Ar", 7.07043e22, 273.15);
        config.particles_per_cell = Some(CROWD);
        let plan = |config: &Config| {
            let model = Model::new(config, Path::new(""), 1).unwrap();
            let (lines, warnings) = forecast(config, &model);
            let said = lines.into_iter().find(|l| l.0 == "partners").map(|l| l.1);
            (model.collisions.partner, said.unwrap_or_default(), warnings.iter().any(|w| w.contains("free paths wide")))
        };
        let (partner, said, warned) = plan(&config);
        assert!(
            partner == Partner::NearestNeighbour && said.starts_with("the nearest") && said.contains("1.01 free paths") && !warned,
            "{said}"
        );
        config.grid.size = vec![40.0 * 1.8e-5];
        let (partner, said, warned) = plan(&config);
        assert!(partner == Partner::Random && said.contains("(0.96 of it)") && !warned, "{said}");
        config.grid.size = vec![40.0 * 1.9e-5];
        config.particles_per_cell = Some(CROWD - 1.0);
        let (partner, said, warned) = plan(&config);
        assert!(partner == Partner::Random && said.contains("fewer than 20") && warned, "{said}");
        config.particles_per_cell = Some(CROWD);
        config.collisions.scheme = Scheme::Pairing;
        assert_eq!(plan(&config), (Partner::Random, String::new(), true));
        config.collisions.scheme = Scheme::Majorant;
        config.collisions.partner = Partner::Random;
        assert_eq!(plan(&config), (Partner::Random, String::new(), true));
        // A cell by itself has no gradient.
        config.collisions.partner = Partner::Auto;
        config.grid.cells = vec![1];
        assert_eq!(plan(&config).0, Partner::Random);
    }

    /// Argon of a millionth of an atmosphere beside one of a thousandth, and one cell beside other things.
    #[test]
    fn what_comes_through_sides_is_counted_and_one_cell_is_coarse() {
        let warned = |boundary: Value, cells: u32, about: &str| {
            let config: Config = serde_json::from_value(json!({
                "dt": 1e-7, "steps": 10, "particles_per_cell": 20, "species": [{ "name": "Ar" }],
                "gas": { "density": 2.7e19, "temperature": 273.15 }, "grid": { "cells": [cells], "size": [1.0] }, "boundary": boundary
            }))
            .unwrap();
            let model = Model::new(&config, Path::new(""), 1).unwrap();
            forecast(&config, &model).1.iter().any(|w| w.contains(about))
        };
        let inlet = |pressure: f64| json!({ "x_lo": { "inlet": { "pressure": pressure, "temperature": 273.15 } }, "x_hi": "specular" });
        assert!(warned(inlet(101.0), 10_000, "brings gas of"));
        assert!(!warned(inlet(0.2), 10_000, "brings gas of"));
        let walls = json!({ "x_lo": { "wall": { "temperature": 300 } }, "x_hi": { "wall": { "temperature": 600 } } });
        assert!(warned(walls, 1, "free paths wide"));
        assert!(["specular", "periodic"].into_iter().all(|side| !warned(json!({ "x": side }), 1, "free paths wide")));
    }

    #[test]
    fn benchmarks_take_any_partner() {
        for name in ["dsmc/collide-100k", "dsmc/collide-1m"] {
            let config = bench::config(name).unwrap();
            assert_eq!(Model::new(&config, Path::new(""), 1).unwrap().collisions.partner, Partner::Random, "{name}");
        }
    }
}
