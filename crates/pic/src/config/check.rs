//! Everything that is wrong with an input, as far as its text tells.

use zellige_engine::error::Problem;
use zellige_engine::text::did_you_mean;

use super::diagnostics::{Expected, PARTICLE};
use super::profile::{Density, FileProfile, Value};
use super::species::{FileParticles, Momentum, Positions, SpeciesConfig, Thermal, Weighting};
use super::{COORDINATES, Config, DEFAULT_COURANT};
use crate::grid::{FieldSide, ParticleSide};
use crate::sampling::MOST_SPECIES;
use crate::stages::Component;

const AXES: [&str; 2] = ["x", "y"];
/// Steps of a run: the random numbers' limit is far above.
const STEPS: u64 = 1 << 40;
/// Particles per cell.
const PER_CELL: usize = 1 << 20;

pub(super) fn not(path: impl Into<String>, message: impl Into<String>, allowed: &str) -> Problem {
    Problem::new(path, message).allowed(allowed)
}

/// A number that must be finite and above `least`.
pub(super) fn above(path: &str, value: f64, least: f64, faults: &mut Vec<Problem>) -> bool {
    let fine = value.is_finite() && value > least;
    if !fine {
        faults.push(not(path, format!("the value is {value}"), &format!("finite and above {least}")));
    }
    fine
}

pub(super) fn all(config: &Config) -> Vec<Problem> {
    let mut faults = zellige_engine::config::faults(config);
    let sound = grid(config, &mut faults);
    if (1..=2).contains(&config.grid.cells.len()) {
        boundary(config, &mut faults);
    }
    if sound {
        times(config, &mut faults);
    }
    // Expressions need the constants of a sound grid; those that cannot be had are left for the next reading.
    let texts = sound && config.domain().dt.is_finite();
    fields(config, texts, &mut faults);
    species(config, texts, &mut faults);
    super::check_laser::lasers(config, sound && config.domain().dt.is_finite(), &mut faults);
    diagnostics(config, texts, &mut faults);
    for (axis, smoothing) in [("all", config.smoothing.all), ("x", config.smoothing.x), ("y", config.smoothing.y)] {
        if let Some(s) = smoothing {
            let path = format!("smoothing.{axis}");
            if s.compensated && s.passes == 0 {
                faults.push(Problem::new(format!("{path}.compensated"), "there is no pass to compensate").hint("give `passes` as well"));
            }
        }
    }
    if let Some(tile) = config.tile
        && tile.iter().any(|n| !(4..=256).contains(n))
    {
        faults.push(not("tile", format!("a tile of {} x {} cells", tile[0], tile[1]), "4 to 256 cells per axis"));
    }
    faults
}

fn grid(config: &Config, faults: &mut Vec<Problem>) -> bool {
    let g = &config.grid;
    let axes = g.cells.len();
    if !(1..=2).contains(&axes) {
        faults.push(not("grid.cells", format!("{axes} numbers"), "1 or 2, one per axis"));
        return false;
    }
    if g.cells.iter().try_fold(1_usize, |n, c| n.checked_mul(*c)).is_none_or(|n| n > 1 << 32) {
        faults.push(not("grid.cells", "the grid has more than 2^32 cells", "at most 2^32 in all"));
    }
    if g.size.len() != axes {
        faults.push(not("grid.size", format!("{} numbers for {axes} axes", g.size.len()), &format!("{axes} lengths")));
    }
    for (axis, length) in AXES.iter().zip(&g.size).filter(|(_, l)| !(l.is_finite() && **l > 0.0)) {
        faults.push(not("grid.size", format!("the length in {axis} is {length}"), "finite and above 0"));
    }
    if !g.origin.is_empty() && g.origin.len() != axes {
        faults.push(not("grid.origin", format!("{} numbers for {axes} axes", g.origin.len()), &format!("{axes} coordinates")));
    }
    !faults.iter().any(|fault| fault.path.starts_with("grid.") || fault.path.starts_with("units"))
}

fn times(config: &Config, faults: &mut Vec<Problem>) {
    let scale = config.scales().time;
    let limit = config.domain().courant_limit();
    if config.dt.is_some() && config.courant.is_some() {
        faults.push(Problem::new("courant", "both `dt` and `courant` are given").hint("leave one of them out"));
    }
    if let Some(dt) = config.dt
        && above("dt", dt, 0.0, faults)
        && dt >= limit * scale
    {
        let fault = Problem::new("dt", format!("the step {dt} is not below the stability limit {:.6e} of the grid", limit * scale));
        faults.push(
            fault
                .allowed(format!("above 0 and below {:.6e}", limit * scale))
                .hint(format!("`dt = {:.4e}`, or `courant = {DEFAULT_COURANT}` instead of it", DEFAULT_COURANT * limit * scale)),
        );
    }
    match (config.t_end, config.steps) {
        (Some(_), Some(_)) => faults.push(Problem::new("steps", "both `t_end` and `steps` are given").hint("leave one of them out")),
        (None, None) => faults.push(Problem::new("t_end", "nothing says when the run ends").hint("give `t_end` (a time) or `steps`")),
        // A step that is not above 0 has been named already.
        (Some(end), None)
            if above("t_end", end, 0.0, faults) && end / scale > STEPS as f64 * config.domain().dt && config.domain().dt > 0.0 =>
        {
            faults.push(not("t_end", format!("{end:e} is more than 2^40 steps"), "at most 2^40 steps"));
        }
        (None, Some(steps)) if !(1..=STEPS).contains(&steps) => {
            faults.push(not("steps", format!("the value is {steps}"), "1 to 2^40"));
        }
        _ => {}
    }
}

fn boundary(config: &Config, faults: &mut Vec<Problem>) {
    for d in 0..config.dimensions() {
        let sides = [0, 1].map(|end| config.boundary.side(d, end));
        for (end, side) in sides.iter().enumerate() {
            let other = &sides[1 - end];
            let axis = AXES[d];
            if (side.fields == FieldSide::Periodic) != (side.particles == ParticleSide::Periodic) {
                let fault = Problem::new(&side.path, "fields and particles must both be periodic, or neither");
                faults.push(fault.hint("write `\"periodic\"` for both, or neither"));
            }
            if end == 0 && (side.fields == FieldSide::Periodic) != (other.fields == FieldSide::Periodic) {
                let (path, far) = if side.fields == FieldSide::Periodic { (&side.path, "hi") } else { (&other.path, "lo") };
                let fault = Problem::new(path, format!("the {axis} axis is periodic on one side but not at `{axis}_{far}`"));
                faults.push(fault.hint(format!("write `{axis} = \"periodic\"` for both sides")));
            }
        }
        let layers = sides.iter().filter(|s| s.fields == FieldSide::Absorbing).count() * config.boundary.layer;
        if let Some(cells) = config.grid.cells.get(d)
            && layers > 0
            && layers + 2 >= *cells
        {
            let fault =
                Problem::new("boundary.layer", format!("absorbing layers of {layers} cells do not fit into {cells} cells in {}", AXES[d]));
            faults.push(fault.hint("a larger grid, or a thinner `layer`"));
        }
    }
    for (key, side) in [("y", config.boundary.y), ("y_lo", config.boundary.y_lo), ("y_hi", config.boundary.y_hi)] {
        if config.dimensions() == 1 && side.is_some() {
            faults.push(
                Problem::new(format!("boundary.{key}"), "the grid has no y axis").hint("leave it out, or give two numbers of `cells`"),
            );
        }
    }
    if !(4..=256).contains(&config.boundary.layer) {
        faults.push(not("boundary.layer", format!("{} cells", config.boundary.layer), "4 to 256"));
    }
    if let Some(window) = &config.window {
        if !(window.start.is_finite() && window.start >= 0.0) {
            faults.push(not("window.start", format!("the value is {}", window.start), "finite and at least 0"));
        }
        let x = config.boundary.side(0, 0);
        if x.fields == FieldSide::Periodic {
            let fault = Problem::new("window", "the x axis is periodic: a window has new plasma in front and drops the old one");
            faults.push(fault.hint("`boundary.x = \"absorbing\"`"));
        }
    }
}

/// A value that may be an expression.
fn value(config: &Config, path: &str, value: &Value, texts: bool, faults: &mut Vec<Problem>) {
    match value {
        Value::Number(x) if !x.is_finite() => faults.push(not(path, format!("the value is {x}"), "finite numbers")),
        Value::Expression(text) if texts => faults.extend(config.expression(path, text, &COORDINATES).err()),
        Value::File(file) => array(config, path, file, faults),
        _ => {}
    }
}

/// Measures of an array in a file.
fn array(config: &Config, path: &str, profile: &FileProfile, faults: &mut Vec<Problem>) {
    let axes = config.dimensions();
    if profile.file.as_os_str().is_empty() {
        faults.push(Problem::new(format!("{path}.file"), "the name is empty"));
    }
    for (key, numbers, positive) in [("origin", &profile.origin, false), ("spacing", &profile.spacing, true)] {
        let Some(numbers) = numbers else { continue };
        if numbers.len() != axes || numbers.iter().any(|x| !x.is_finite() || positive && *x <= 0.0) {
            let allowed = format!("{axes} finite numbers{}, x first", if positive { " above 0" } else { "" });
            faults.push(not(format!("{path}.{key}"), format!("the value is {numbers:?}"), &allowed));
        }
    }
    if let Some(scale) = profile.scale.filter(|x| !x.is_finite()) {
        faults.push(not(format!("{path}.scale"), format!("the value is {scale}"), "finite numbers"));
    }
}

/// Particles of a file, and the keys that have no meaning beside them.
fn particles(at: &dyn Fn(&str) -> String, s: &SpeciesConfig, particles: &FileParticles, faults: &mut Vec<Problem>) {
    let beside = [
        ("particles_per_cell", s.particles_per_cell.is_some()),
        ("density", s.density.is_some()),
        ("reference_density", s.reference_density.is_some()),
        ("momentum", s.momentum != Momentum::default()),
        ("positions", s.positions != Positions::default()),
        ("weighting", s.weighting != Weighting::default()),
    ];
    for (key, _) in beside.into_iter().filter(|(_, given)| *given) {
        faults.push(Problem::new(at(key), "the particles of this species are those of a file").hint(format!("leave `{key}` out")));
    }
    if particles.file.as_os_str().is_empty() {
        faults.push(Problem::new(at("particles.file"), "the name is empty"));
    }
    if let Some(weight) = particles.weight {
        above(&at("particles.weight"), weight, 0.0, faults);
    }
}

fn fields(config: &Config, texts: bool, faults: &mut Vec<Problem>) {
    for (table, values) in [("initial.fields", &config.initial.fields), ("external", &config.external)] {
        for (name, v) in values.iter().flat_map(super::FieldValues::components) {
            if let Some(v) = v {
                value(config, &format!("{table}.{name}"), v, texts, faults);
            }
        }
    }
}

/// Letters, digits, `_` and `-`: characters allowed in the name of a file.
fn file_safe(path: &str, name: &str, faults: &mut Vec<Problem>) {
    let fine = !name.is_empty() && name.len() <= 64 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if !fine {
        faults.push(not(path, format!("the name `{name}` cannot be part of a file's name"), "1 to 64 letters, digits, `_` and `-`"));
    }
}

fn species(config: &Config, texts: bool, faults: &mut Vec<Problem>) {
    let thermal_side = (0..config.dimensions().min(2))
        .flat_map(|d| [0, 1].map(|end| config.boundary.side(d, end)))
        .find(|s| s.particles == ParticleSide::Thermal);
    for (i, s) in config.species.iter().enumerate() {
        let at = |key: &str| format!("species[{i}].{key}");
        file_safe(&at("name"), &s.name, faults);
        if config.species[..i].iter().any(|other| other.name == s.name) {
            faults.push(Problem::new(at("name"), format!("there are two species `{}`", s.name)));
        }
        match (s.particles_per_cell, &s.particles) {
            (_, Some(file)) => particles(&at, s, file, faults),
            (Some(n), None) if !(1..=PER_CELL).contains(&n.total()) => {
                faults.push(not(at("particles_per_cell"), format!("{} particles", n.total()), "1 to 1048576"));
            }
            (None, None) => {
                let fault = Problem::new(at("particles_per_cell"), format!("nothing says how many particles `{}` has", s.name));
                faults.push(fault.hint("give `particles_per_cell`, or `particles = { file = \"NAME.npz\" }`"));
            }
            _ => {}
        }
        if let Some(reference) = s.reference_density {
            above(&at("reference_density"), reference, 0.0, faults);
        }
        match &s.density {
            Some(Density::Number(n)) if !(n.is_finite() && *n > 0.0) => {
                faults.push(not(at("density"), format!("the value is {n}"), "finite and above 0"));
            }
            None | Some(Density::Number(_)) => {}
            Some(Density::Expression(text)) => value(config, &at("density"), &Value::Expression(text.clone()), texts, faults),
            Some(Density::File(file)) => array(config, &at("density"), file, faults),
            Some(Density::Preset(preset)) => {
                if let Some((key, message)) = preset.fault() {
                    faults.push(Problem::new(
                        at(&format!("density.{}{}{key}", preset.name(), if key.is_empty() { "" } else { "." })),
                        message,
                    ));
                }
            }
        }
        momentum(config, i, s, texts, faults);
        if let (Some(side), None) = (&thermal_side, s.wall_thermal)
            && s.mobile
            && s.particles.is_none()
            && s.momentum.spread().is_none()
        {
            let fault =
                Problem::new(at("wall_thermal"), format!("`{}` is thermal, but no temperature is given for `{}`", side.path, s.name));
            faults.push(fault.hint("give `wall_thermal`, the thermal momentum `gamma v/c` per component"));
        }
        if let Some(thermal) = s.wall_thermal
            && !(thermal.is_finite() && thermal >= 0.0)
        {
            faults.push(not(at("wall_thermal"), format!("the value is {thermal}"), "finite and at least 0"));
        }
    }
    if config.species.len() > MOST_SPECIES {
        faults.push(not("species", format!("{} species", config.species.len()), &format!("at most {MOST_SPECIES}")));
    }
    if config.species.is_empty() && config.laser.is_empty() && config.initial.fields.is_none() {
        let fault = Problem::new("species", "the box is empty: no species, no laser, no initial fields");
        faults.push(fault.hint("`[[pic.species]]` with `name` and `particles_per_cell`"));
    }
}

fn momentum(config: &Config, i: usize, s: &SpeciesConfig, texts: bool, faults: &mut Vec<Problem>) {
    let at = |key: &str| format!("species[{i}].momentum.{key}");
    let m = &s.momentum;
    let given: Vec<&str> =
        [("thermal", m.thermal.is_some()), ("temperature", m.temperature.is_some()), ("maxwell_juttner", m.maxwell_juttner.is_some())]
            .into_iter()
            .filter_map(|(name, there)| there.then_some(name))
            .collect();
    if let [first, second, ..] = given[..] {
        faults.push(Problem::new(at(second), format!("`{first}` is given too")).hint("leave one of them out"));
    }
    if m.quiet == Some(true) && m.maxwell_juttner.is_some() {
        faults
            .push(Problem::new(at("quiet"), "momenta of `maxwell_juttner` are always random").hint("leave it out, or give `temperature`"));
    }
    for (c, v) in m.drift.iter().flatten().enumerate() {
        value(config, &at(&format!("drift[{c}]")), v, texts, faults);
    }
    let mut spreads: Vec<(Value, String)> = [("temperature", &m.temperature), ("maxwell_juttner", &m.maxwell_juttner)]
        .into_iter()
        .filter_map(|(name, v)| v.clone().map(|v| (v, name.to_owned())))
        .collect();
    if let Some(thermal) = &m.thermal {
        let mut components = thermal.components().to_vec();
        components.truncate(if matches!(thermal, Thermal::Each(_)) { 3 } else { 1 });
        spreads.extend(components);
    }
    for (v, key) in spreads {
        if let Some(x) = v.number().filter(|x| x.is_finite() && *x < 0.0) {
            faults.push(not(at(&key), format!("the value is {x}"), "at least 0"));
        }
        value(config, &at(&key), &v, texts, faults);
    }
}

fn diagnostics(config: &Config, texts: bool, faults: &mut Vec<Problem>) {
    let d = &config.diagnostics;
    faults.extend(d.named_twice(&config.species));
    let names: Vec<&str> = config.species.iter().map(|s| s.name.as_str()).collect();
    let known = |path: String, name: &str, faults: &mut Vec<Problem>| -> Option<usize> {
        let found = names.iter().position(|n| *n == name);
        if found.is_none() {
            let fault = not(path, format!("there is no species `{name}`"), &names.join(", "));
            faults.push(match did_you_mean(name, names.iter().copied()) {
                Some(hint) => fault.hint(hint),
                None => fault,
            });
        }
        found
    };
    let text = |path: String, text: &Option<String>, faults: &mut Vec<Problem>| {
        if let (Some(text), true) = (text, texts) {
            faults.extend(config.expression(&path, text, &PARTICLE).err());
        }
    };
    for (i, what) in d.fields.iter().flatten().enumerate().flat_map(|(i, f)| f.what.iter().map(move |w| (i, w))) {
        let path = format!("diagnostics.fields[{i}].what");
        let fields: Vec<&str> = Component::ALL.iter().map(|c| c.name()).chain(["charge"]).collect();
        match what.strip_prefix("charge.") {
            Some(name) => drop(known(path, name, faults)),
            None if fields.contains(&what.as_str()) => {}
            None => {
                let fault = not(path, format!("`{what}` is not a quantity"), &format!("{}, charge.NAME", fields.join(", ")));
                faults.push(match did_you_mean(what, fields) {
                    Some(hint) => fault.hint(hint),
                    None => fault,
                });
            }
        }
    }
    for (i, p) in d.phase_space.iter().flatten().enumerate() {
        let at = |key: &str| format!("diagnostics.phase_space[{i}].{key}");
        if let Some(name) = &p.name {
            file_safe(&at("name"), name, faults);
        }
        known(at("species"), &p.species, faults);
        for (a, axis) in p.axes.iter().enumerate() {
            text(at(&format!("axes[{a}].value")), &Some(axis.value.clone()), faults);
            if let Some([from, to]) = axis.range
                && !(from.is_finite() && to.is_finite() && from < to)
            {
                faults.push(not(
                    at(&format!("axes[{a}].range")),
                    format!("from {from} to {to}"),
                    "finite numbers, the second above the first",
                ));
            }
        }
        text(at("weight"), &p.weight, faults);
        text(at("select"), &p.select, faults);
    }
    for (i, p) in d.particles.iter().enumerate() {
        known(format!("diagnostics.particles[{i}].species"), &p.species, faults);
        text(format!("diagnostics.particles[{i}].select"), &p.select, faults);
    }
    for (i, t) in d.tracks.iter().enumerate() {
        let path = format!("diagnostics.tracks[{i}].species");
        if let Some(s) = known(path.clone(), &t.species, faults)
            && !config.species[s].tagged
        {
            let fault = Problem::new(path, format!("the particles of `{}` carry no tags", t.species));
            faults.push(fault.hint("`tagged = true` in the species"));
        }
        text(format!("diagnostics.tracks[{i}].select"), &t.select, faults);
    }
    for (i, m) in d.mode.iter().enumerate() {
        let at = |key: &str| format!("diagnostics.mode[{i}].{key}");
        file_safe(&at("name"), &m.name, faults);
        if m.mode.len() != config.dimensions() {
            faults.push(not(at("mode"), format!("{} numbers", m.mode.len()), "one per axis"));
        }
        for (d, n) in m.mode.iter().enumerate().take(config.grid.cells.len()) {
            if n.unsigned_abs() as usize > config.grid.cells[d] / 2 {
                faults.push(not(at("mode"), format!("{n} periods in {} cells", config.grid.cells[d]), "at most half the cells"));
            }
        }
        if let Some([from, to]) = m.fit
            && !(from.is_finite() && to.is_finite() && 0.0 <= from && from < to)
        {
            faults.push(not(at("fit"), format!("from {from} to {to}"), "times at or after 0, the second above the first"));
        }
        let expected = match &m.expected {
            Some(Expected::Expression(text)) if texts => config.expression(&at("expected"), text, &[]).map(|e| Some(e.eval(&[]))),
            Some(Expected::Number(x)) => Ok(Some(*x)),
            _ => Ok(None),
        };
        match expected {
            Ok(Some(x)) if !(x.is_finite() && x != 0.0) => {
                faults.push(not(at("expected"), format!("the value is {x}"), "finite and not 0"));
            }
            Ok(_) => {}
            Err(fault) => faults.push(fault),
        }
    }
}
