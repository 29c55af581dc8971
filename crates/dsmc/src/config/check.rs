//! Everything that is wrong with an input, as far as its text tells.

use zellige_engine::error::Problem;
use zellige_engine::text::did_you_mean;

use super::sides::{SideConfig, SideWord, WallConfig, WallModel};
use super::{AUTO, Config, GasConfig, SpeciesConfig, Value, VibrationConfig, ZConfig};
use crate::gas::vibration::{Mode, Vibration};
use crate::gas::{sparta, table};
use crate::grid::Side;
use crate::model::{Partner, Scheme};

/// Species: keys of particles have 16 bits for 256 cells and them.
const SPECIES: usize = 255;

fn not(path: impl Into<String>, message: impl Into<String>, allowed: &str) -> Problem {
    Problem::new(path, message).allowed(allowed)
}

/// A number that must be in a range.
fn within(path: &str, value: f64, low: f64, high: f64, faults: &mut Vec<Problem>) {
    if !(value >= low && value <= high) {
        faults.push(not(path, format!("the value is {value:e}"), &format!("{low:e} to {high:e}")));
    }
}

pub(super) fn all(config: &Config) -> Vec<Problem> {
    let mut faults = zellige_engine::config::faults(config);
    let sound = grid(config, &mut faults);
    within("dt", config.dt, 1e-18, 1e3, &mut faults);
    if config.steps == 0 || config.steps > 1 << 40 {
        faults.push(not("steps", format!("{} steps", config.steps), "1 to 2^40"));
    }
    match (config.weight, config.particles_per_cell) {
        (Some(_), Some(_)) => {
            faults.push(Problem::new("weight", "both `weight` and `particles_per_cell` are given").hint("leave one of them out"));
        }
        (None, None) => faults.push(
            Problem::new("particles_per_cell", "nothing says how many particles there are").hint("`particles_per_cell = 20`, or `weight`"),
        ),
        (Some(w), None) => within("weight", w, 1e-10, 1e40, &mut faults),
        (None, Some(n)) => within("particles_per_cell", n, 1e-3, 1e7, &mut faults),
    }
    gas("gas", &config.gas, &mut faults);
    components(config, &mut faults);
    if let Some(text) = config.cell_weights.as_ref().filter(|_| sound) {
        faults.extend(config.expression("cell_weights", text).err());
    }
    species(config, &mut faults);
    boundary(config, sound, &mut faults);
    bodies(config, sound, &mut faults);
    sources(config, &mut faults);
    initial(config, sound, &mut faults);
    let s = &config.sampling;
    if let Some(window) = s.window.filter(|w| s.every > 0 && !w.is_multiple_of(s.every) || w / s.every.max(1) < 2 * s.batches) {
        let allowed = format!("a multiple of `every` with room for 2 samples in each of {} batches", s.batches);
        faults.push(not("sampling.window", format!("{window} steps"), &allowed));
    }
    if config.sampling_start() == AUTO && config.steps / s.every.max(1) < 400 {
        let fault = not("sampling.start", format!("{} steps with samples every {}", config.steps, s.every), "400 samples or more");
        faults.push(fault.hint("a search needs them to tell a trend from noise; give a step"));
    }
    // Conditions at `boundary.all` are checked on each side.
    let mut said = std::collections::HashSet::new();
    faults.retain(|fault| said.insert(fault.to_string()));
    faults
}

fn grid(config: &Config, faults: &mut Vec<Problem>) -> bool {
    let g = &config.grid;
    let axes = g.cells.len();
    if !(1..=2).contains(&axes) {
        faults.push(not("grid.cells", format!("{axes} numbers"), "1 or 2, one per axis"));
        return false;
    }
    if g.cells.iter().fold(1_usize, |n, c| n.saturating_mul(*c)) > 1 << 31 {
        faults.push(not("grid.cells", "the grid has more than 2^31 cells", "at most 2^31 in all"));
    }
    if g.size.len() != axes {
        faults.push(not("grid.size", format!("{} numbers for {axes} axes", g.size.len()), &format!("{axes} lengths")));
    }
    for length in g.size.iter().filter(|l| !(l.is_finite() && **l > 0.0)) {
        faults.push(not("grid.size", format!("a length is {length}"), "finite and above 0"));
    }
    if !g.origin.is_empty() && g.origin.len() != axes || g.origin.iter().any(|x| !x.is_finite()) {
        faults.push(not("grid.origin", format!("{:?} for {axes} axes", g.origin), &format!("{axes} finite coordinates")));
    }
    !faults.iter().any(|fault| fault.path.starts_with("grid."))
}

fn gas(path: &str, gas: &GasConfig, faults: &mut Vec<Problem>) {
    within(&format!("{path}.density"), gas.density, 1e-10, 1e32, faults);
    within(&format!("{path}.temperature"), gas.temperature, 0.1, 1e6, faults);
    for v in gas.velocity {
        within(&format!("{path}.velocity"), v, -3e6, 3e6, faults);
    }
}

/// With two components nothing may move along z.
fn components(config: &Config, faults: &mut Vec<Problem>) {
    if !(2..=3).contains(&config.velocity_components) {
        faults.push(not("velocity_components", format!("{} components", config.velocity_components), "2 or 3"));
    }
    if config.velocity_components != 2 {
        return;
    }
    let mut still = |path: String, value: f64| {
        if value != 0.0 {
            let fault = not(path, format!("the z component is {value}, and `velocity_components` is 2"), "0");
            faults.push(fault.hint("leave `velocity_components` out for a gas that moves in all directions"));
        }
    };
    still("gas.velocity".into(), config.gas.velocity[2]);
    for axis in 0..config.dimensions().min(2) {
        for (side, path) in [false, true].map(|upper| config.boundary.side(Side { axis, upper })) {
            match side {
                SideConfig::Wall(w) => still(format!("{path}.wall.velocity"), w.wall.velocity[2]),
                SideConfig::Inflow(g) => still(format!("{path}.inflow.velocity"), g.inflow.velocity[2]),
                _ => {}
            }
        }
    }
    for (i, body) in config.bodies.iter().enumerate() {
        still(format!("bodies[{i}].wall.velocity"), body.wall.velocity[2]);
        body.walls.iter().for_each(|(kind, own)| still(format!("bodies[{i}].walls.{kind}.velocity"), own.velocity[2]));
    }
    for (i, source) in config.sources.iter().enumerate() {
        still(format!("sources[{i}].velocity"), source.velocity[2]);
    }
    still("initial.temperatures".into(), config.initial.temperatures.map_or(0.0, |t| t[2]));
    match config.initial.velocity.as_ref().map(|v| &v[2]) {
        Some(Value::Number(z)) => still("initial.velocity[2]".into(), *z),
        Some(Value::Expression(text)) => {
            let fault = not("initial.velocity[2]", format!("`{text}` along z, and `velocity_components` is 2"), "0");
            faults.push(fault.hint("leave `velocity_components` out for a gas that moves in all directions"));
        }
        None => {}
    }
}

fn species(config: &Config, faults: &mut Vec<Problem>) {
    if config.species.is_empty() || config.species.len() > SPECIES {
        faults.push(not("species", format!("{} species", config.species.len()), "1 to 255"));
    }
    if config.vibration_file.is_some() && config.species_file.is_none() {
        faults
            .push(Problem::new("vibration_file", "`vibration_file` goes with a `species_file`").hint("or give `vibration` of the species"));
    }
    if config.vss_file.is_some() != config.species_file.is_some() {
        faults.push(Problem::new("species_file", "`species_file` and `vss_file` go together").hint("give both or neither"));
    }
    for (i, s) in config.species.iter().enumerate() {
        let at = |key: &str| format!("species[{i}].{key}");
        if s.name.is_empty() || !s.name.chars().all(|c| c.is_ascii_alphanumeric() || "_+-".contains(c)) {
            faults.push(not(at("name"), format!("the name is `{}`", s.name), "letters, digits, `_`, `+` and `-`"));
        }
        if config.species[..i].iter().any(|other| other.name == s.name) {
            faults.push(Problem::new(at("name"), format!("the species `{}` is there twice", s.name)));
        }
        let whole = s.mass.is_some() && s.diameter.is_some() && s.omega.is_some();
        within(&at("fraction"), s.fraction, 0.0, 1e12, faults);
        if table::find(&s.name, config.collisions.model).is_none() && config.species_file.is_none() && !whole {
            let names = table::names();
            let near = did_you_mean(&s.name, names.iter().copied());
            let fault = not(at("name"), format!("`{}` is not in the table of gases", s.name), &names.join(", "));
            faults.push(
                fault.hint(near.unwrap_or_else(|| "give `mass`, `diameter` and `omega`, or a `species_file` with a `vss_file`".into())),
            );
        }
        for (key, value, low, high) in [
            ("mass", s.mass, 1e-28, 1e-20),
            ("diameter", s.diameter, 1e-11, 1e-8),
            ("t_ref", s.t_ref, 1.0, 1e5),
            ("z_vibration", s.z_vibration, 1.0, 1e12),
        ] {
            if let Some(value) = value {
                within(&at(key), value, low, high, faults);
            }
        }
        vibration(&at("vibration"), s, faults);
        if s.rotation.is_some_and(|r| ![0, 2, 3].contains(&r)) {
            faults.push(not(at("rotation"), format!("{} degrees of freedom", s.rotation.unwrap_or(0)), "0, 2 or 3"));
        }
        match s.z_rotation {
            Some(ZConfig::Number(z)) => within(&at("z_rotation"), z, 1.0, 1e12, faults),
            Some(ZConfig::Parker(p)) => {
                within(&at("z_rotation.z_inf"), p.z_inf, 1.0, 1e6, faults);
                within(&at("z_rotation.t_star"), p.t_star, 0.0, 1e5, faults);
            }
            None => {}
        }
    }
    let c = &config.collisions;
    if c.partner.tagged() && !matches!(c.scheme, Scheme::Ntc | Scheme::Majorant) {
        let fault = not(
            "collisions.partner",
            format!(
                "`{}` with the scheme `{}`",
                if c.partner == Partner::NearestNeighbour { "nearest_neighbour" } else { "fresh" },
                if c.scheme == Scheme::None { "none" } else { "pairing" }
            ),
            "the schemes `ntc` and `majorant`",
        );
        faults.push(fault.hint(if c.scheme == Scheme::None {
            "leave it out: nothing collides"
        } else {
            "leave it out: pairing makes its pairs of all particles of a cell"
        }));
    }
    if c.relax != sparta::Relax::Constant && config.species_file.is_none() {
        let fault = Problem::new("collisions.relax", "`variable` takes the columns of a `vss_file`, and none is given");
        faults.push(fault.hint("leave it out, or give `z_rotation = { z_inf = .., t_star = .. }` of the species"));
    }
    if c.millikan_white && !c.vibration {
        faults.push(Problem::new("collisions.millikan_white", "vibration is not computed").hint("`vibration = true`"));
    }
    for (i, p) in config.collisions.pairs.iter().enumerate() {
        let path = format!("collisions.pairs[{i}]");
        for name in p.species.iter().filter(|n| config.species.iter().all(|s| s.name != **n)) {
            faults.push(Problem::new(format!("{path}.species"), format!("`{name}` is not one of the species")));
        }
        let scatter = crate::gas::Scatter { diameter: p.diameter, omega: p.omega, t_ref: p.t_ref, alpha: p.alpha };
        faults.extend(sparta::fault(&scatter).map(|message| Problem::new(&path, message)));
    }
}

/// The modes of a species.
fn vibration(path: &str, s: &SpeciesConfig, faults: &mut Vec<Problem>) {
    let Some(given) = &s.vibration else { return };
    let modes = given.modes();
    let numbered =
        |m: usize, key: &str| if matches!(given, VibrationConfig::Single(_)) { path.to_owned() } else { format!("{path}[{m}].{key}") };
    let before = faults.len();
    for (m, mode) in modes.iter().enumerate() {
        let least = if modes.len() > 1 { sparta::SOFTEST } else { 10.0 };
        within(&numbered(m, "theta"), mode.theta, least, 1e5, faults);
        if let Some(z) = mode.z {
            within(&numbered(m, "z"), z, 1.0, 1e12, faults);
        }
    }
    let all: Vec<Mode> = modes.iter().map(|m| Mode { theta: m.theta, degeneracy: m.degeneracy, z: m.z.unwrap_or(0.0) }).collect();
    if faults.len() == before {
        faults.extend(Vibration::new(&all).err().map(|message| Problem::new(path, message)));
    }
}

/// A wall of the input.
pub(crate) fn wall(path: &str, wall: &WallConfig, faults: &mut Vec<Problem>) {
    if wall.model != WallModel::Specular {
        within(&format!("{path}.temperature"), wall.temperature, 0.1, 1e6, faults);
    }
    for v in wall.velocity {
        within(&format!("{path}.velocity"), v, -3e6, 3e6, faults);
    }
}

fn boundary(config: &Config, sound: bool, faults: &mut Vec<Problem>) {
    for axis in 0..config.dimensions().min(2) {
        let sides = [false, true].map(|upper| config.boundary.side(Side { axis, upper }));
        let periodic = sides.clone().map(|(s, _)| s == SideConfig::Word(SideWord::Periodic));
        if periodic[0] != periodic[1] {
            let name = ["x", "y"][axis];
            let fault = Problem::new(&sides[usize::from(periodic[0])].1, format!("the {name} axis is periodic on one side only"));
            faults.push(fault.hint(format!("`{name} = \"periodic\"` for both sides, or neither")));
        }
        for (side, path) in &sides {
            match side {
                SideConfig::Wall(w) => {
                    wall(&format!("{path}.wall"), &w.wall, faults);
                    let path = format!("{path}.temperature");
                    match &w.temperature {
                        Some(_) if w.wall.model == WallModel::Specular => {
                            let fault = Problem::new(path, "a mirror has no temperature");
                            faults.push(fault.hint("leave it out, or take `model = \"diffuse\"` or `\"cll\"`"));
                        }
                        Some(text) if sound => faults.extend(config.along(&path, text).err()),
                        _ => {}
                    }
                }
                SideConfig::Inflow(g) => gas(&format!("{path}.inflow"), &g.inflow, faults),
                SideConfig::Outlet(o) => {
                    within(&format!("{path}.outlet.pressure"), o.outlet.pressure, 1e-12, 1e9, faults);
                }
                SideConfig::Inlet(i) => {
                    let (i, path) = (&i.inlet, format!("{path}.inlet"));
                    within(&format!("{path}.temperature"), i.temperature, 0.1, 1e6, faults);
                    match (i.pressure, i.mass_flow) {
                        (Some(p), None) => within(&format!("{path}.pressure"), p, 1e-12, 1e9, faults),
                        (None, Some(m)) => within(&format!("{path}.mass_flow"), m, 1e-30, 1e9, faults),
                        _ => faults.push(Problem::new(&path, "an inlet has `pressure` or `mass_flow`, one of the two")),
                    }
                }
                SideConfig::Word(_) => {}
            }
        }
    }
    let y = [("y", &config.boundary.y), ("y_lo", &config.boundary.y_lo), ("y_hi", &config.boundary.y_hi)];
    for (key, _) in y.into_iter().filter(|(_, s)| s.is_some() && config.dimensions() == 1) {
        faults.push(Problem::new(format!("boundary.{key}"), "the grid has no y axis").hint("leave it out, or give two numbers of `cells`"));
    }
}

fn bodies(config: &Config, sound: bool, faults: &mut Vec<Problem>) {
    for (i, body) in config.bodies.iter().enumerate() {
        let path = format!("bodies[{i}]");
        wall(&format!("{path}.wall"), &body.wall, faults);
        body.walls.iter().for_each(|(kind, own)| wall(&format!("{path}.walls.{kind}"), own, faults));
        if body.file.is_none() && !body.walls.is_empty() {
            faults.push(Problem::new(format!("{path}.walls"), "only a file has types of lines").hint("leave it out, or give `file`"));
        }
        if body.name.is_empty() || !body.name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)) {
            faults.push(not(format!("{path}.name"), format!("the name is `{}`", body.name), "letters, digits, `_` and `-`"));
        }
        if config.bodies[..i].iter().any(|other| other.name == body.name) {
            faults.push(Problem::new(format!("{path}.name"), format!("the body `{}` is there twice", body.name)));
        }
        match (&body.outline, &body.file) {
            (Some(shape), None) => {
                faults.extend(shape.curve(&body.name, &format!("{path}.outline"), body.gas, 0).err().into_iter().flatten());
            }
            (None, Some(_)) => {}
            (Some(_), Some(_)) => faults.push(Problem::new(&path, "both `outline` and `file` are given").hint("leave one of them out")),
            (None, None) => faults.push(Problem::new(&path, "the body has no outline").hint("give `outline` or `file`")),
        }
        if let Some(length) = body.max_segment_length {
            within(&format!("{path}.max_segment_length"), length, 1e-12, 1e9, faults);
        }
        if let Some(text) = body.temperature.as_ref().filter(|_| sound) {
            faults.extend(config.along(&format!("{path}.temperature"), text).err());
        }
        if config.dimensions() == 1 {
            faults.push(Problem::new(&path, "a body needs a plane").hint("give two numbers of `grid.cells`"));
        }
    }
}

fn sources(config: &Config, faults: &mut Vec<Problem>) {
    for (i, source) in config.sources.iter().enumerate() {
        let path = format!("sources[{i}]");
        let own = [source.line.is_some(), source.direction.is_some(), source.temperature.is_some()];
        let more = source.density.is_some() || !source.schedule.is_empty();
        if source.file.is_some() {
            if own.contains(&true) || more || source.velocity != [0.0; 3] {
                faults.push(
                    Problem::new(&path, "both a file and values are given")
                        .hint("a source is `file` alone, with `schedule_file` if needed"),
                );
            }
        } else if own.contains(&false) || !more {
            let problem = Problem::new(&path, "the source is not whole");
            faults.push(problem.hint("`line`, `direction`, `temperature`, and `density` or `schedule`; or `file`"));
        }
        if let Some(n) = source.density {
            within(&format!("{path}.density"), n, 0.0, 1e32, faults);
        }
        let mut steps: Vec<u64> = source.schedule.iter().map(|e| e[0]).collect();
        steps.sort_unstable();
        if let Some([step, ..]) = steps.windows(2).find(|w| w[0] == w[1]) {
            faults.push(Problem::new(format!("{path}.schedule"), format!("step {step} is there twice")));
        }
        if config.dimensions() == 1 {
            faults.push(Problem::new(&path, "a line of gas needs a plane").hint("give two numbers of `grid.cells`"));
        }
    }
}

fn initial(config: &Config, sound: bool, faults: &mut Vec<Problem>) {
    let i = &config.initial;
    let mut value = |path: &str, value: Option<&Value>, low: f64, high: f64| match value {
        Some(Value::Number(x)) => within(path, *x, low, high, faults),
        Some(Value::Expression(text)) if sound => faults.extend(config.expression(path, text).err()),
        _ => {}
    };
    value("initial.density", i.density.as_ref(), 0.0, 1e32);
    value("initial.temperature", i.temperature.as_ref(), 0.1, 1e6);
    for (c, v) in i.velocity.iter().flatten().enumerate() {
        value(&format!("initial.velocity[{c}]"), Some(v), -3e6, 3e6);
    }
    for t in i.temperatures.into_iter().flatten().chain(i.internal_temperature) {
        within("initial.temperatures", t, 0.0, 1e6, faults);
    }
    if i.temperature.is_some() && i.temperatures.is_some() {
        let fault = Problem::new("initial.temperatures", "both `temperature` and `temperatures` are given");
        faults.push(fault.hint("leave one of them out"));
    }
}
