//! Warnings about a run, for its plan.

use crate::config::{Config, check_laser};
use crate::grid::FieldSide;
use crate::output::digits;
use crate::setup::{Load, Model};
use crate::stability::{self, COARSE, LONG, Motion};

/// Particles per cell below which a warm plasma is mostly noise.
const FEW: usize = 4;
/// Momenta along the grid above which a drift is said to radiate on it.
const SWIFT: f64 = 1.0;
/// Passes of a filter that keep this down, and those that do with quadratic shapes.
const ENOUGH: [u32; 2] = [8, 4];
/// Part of what all charges carry at most, each with the speeds of its drift and its thermal motion, above which a net current is
/// said.
const NET: f64 = 0.02;

/// Remedies against it: energy of the fields over that of the drift at `t = 60`, of a beam of `u = 5` in the plane that had 19 %
/// with neither (`tests/all/warnings.rs`, 2026-11-27).
const REMEDIES: &str = "Against it: 8 passes of `smoothing` (fields of 0.0002 % of the drift's energy after 60 plasma periods over 2 pi, \
    where 19 % were without), `order = 2` with 4 compensated passes (0.01 %), in the plane `courant = 0.707` (7 %)";

/// Warnings about the particles of a file.
fn of_file(load: &Load) -> Vec<String> {
    let (Some(listed), name) = (&load.listed, &load.species.name) else { return Vec::new() };
    let all = listed.len() + listed.outside;
    let outside = format!("{} of the {all} particles of `{name}` in the file lie outside the box and are left out", listed.outside);
    if listed.outside > 0 { vec![outside] } else { Vec::new() }
}

/// Warnings about a run, with the number.
pub(crate) fn of(config: &Config, model: &Model) -> Vec<String> {
    let grid = &model.grid;
    let mut out = Vec::new();
    let h = stability::cell(model);
    let moving: Vec<(&Load, Motion)> = model.loads.iter().filter(|l| l.species.mobile).map(|l| (l, Motion::new(model, l))).collect();
    for (load, motion) in &moving {
        let s = &load.species;
        if let Some(debye) = stability::debye(load, motion).filter(|debye| h > COARSE * debye) {
            let limit = COARSE * debye * model.units.length;
            out.push(format!(
                "a cell is {} Debye lengths of `{}` wide ({:.3e}): the plasma heats up until it is about {COARSE:.1}; cells below {limit:.3e}, `order = 2` or `smoothing` slow that down",
                stability::ratio(h / debye),
                s.name,
                debye * model.units.length
            ));
        }
        if stability::uniform_thermal(load) > 0.0 && load.per_cell < FEW && load.listed.is_none() {
            out.push(format!("`{}` has {} particles per cell: noise will be strong; 16 or more are usual", s.name, load.per_cell));
        }
        out.extend(cherenkov(config, model, load, motion));
    }
    out.extend(model.loads.iter().flat_map(of_file));
    out.extend(net_current(model, &moving));
    let end = model.steps as f64 * grid.dt * model.units.time;
    for m in config.diagnostics.mode.iter().filter(|m| m.fit.is_some_and(|f| f[0] >= end)) {
        let [from, to] = m.fit.unwrap_or_default();
        out.push(format!(
            "the mode `{}` is fitted from t = {from} to {to}, but the run ends at {}: it will have no result",
            m.name,
            digits(end, 7)
        ));
    }
    out.extend(check_laser::warnings(config));
    let step = stability::step(model);
    if step > LONG {
        let effect = if step >= 2.0 { "the plasma oscillation is unstable from 2 on" } else { "the plasma oscillation is coarse in time" };
        out.push(format!("the plasma frequency times the step is {step:.2}: {effect}; a smaller `dt` helps"));
    }
    let followed = !config.diagnostics.mode.is_empty() || config.diagnostics.spectrum.iter().any(|s| s.every.is_some());
    if config.window.is_some() && followed {
        out.push(
            "modes and spectra in time are those of the box, which the window moves: waves have other phases and frequencies there".into(),
        );
    }
    if config.smoothing.all.is_none() && config.window.is_some() && config.smoothing.x.is_none() && config.order == 1 {
        out.push("a moving window without `smoothing` shows numerical Cherenkov noise of fast particles".into());
    }
    out
}

/// A drift near the speed of light overtakes the grid's short waves, which are slower.
fn cherenkov(config: &Config, model: &Model, load: &Load, motion: &Motion) -> Option<String> {
    let dimensions = model.grid.dimensions;
    let axis = (0..dimensions).max_by(|a, b| motion.drift[*a].total_cmp(&motion.drift[*b]))?;
    let passes = (0..dimensions).map(|d| config.smoothing(d).passes).min().unwrap_or(0);
    let swift = motion.drift[axis] > SWIFT && load.species.charge != 0.0;
    (swift && passes < ENOUGH[usize::from(config.order == 2)]).then(|| {
        let (name, u, axis) = (&load.species.name, motion.drift[axis], ["x", "y"][axis]);
        format!(
            "`{name}` drifts with a momentum of {u:.3} along {axis}, faster than short waves on the grid: they grow (numerical Cherenkov radiation). {REMEDIES}"
        )
    })
}

/// A mean current in a periodic box makes the mean electric field swing: there is no boundary that it could come from.
fn net_current(model: &Model, moving: &[(&Load, Motion)]) -> Option<String> {
    let grid = &model.grid;
    if grid.fields[..grid.dimensions].iter().flatten().any(|side| *side != FieldSide::Periodic) {
        return None;
    }
    let charge = |(load, motion): &(&Load, Motion)| load.species.charge * motion.content;
    let full: f64 = moving.iter().map(|m| charge(m).abs()).sum();
    let most: f64 = moving.iter().map(|m| charge(m).abs() * m.1.speed).sum();
    let currents = [0, 1, 2].map(|c| moving.iter().map(|m| charge(m) * m.1.velocity[c]).sum::<f64>());
    let axis = (0..3).max_by(|a, b| currents[*a].abs().total_cmp(&currents[*b].abs()))?;
    (currents[axis].abs() > NET * most).then(|| {
        format!(
            "the charges of the periodic box have a mean velocity of {:.3e} c along {}: without a boundary that the current could come from, the mean electric field swings at the plasma frequency and the drift with it; species or beams whose currents cancel avoid that",
            currents[axis].abs() / full,
            ["x", "y", "z"][axis]
        )
    })
}
