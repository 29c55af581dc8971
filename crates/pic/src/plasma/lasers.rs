//! Fields of the start, and the pulses and antennas of the input in normalised units.

use zellige_engine::error::{Error, Problem, Result};

use crate::config::laser::{LaserConfig, LaserDirection, LaserSource, PolarisationConfig, PolarisationName};
use crate::config::{Config, Units};
use crate::grid::{FieldSide, Grid};
use crate::laser::{Antenna, Envelope, Polarisation, Pulse};
use crate::setup::Model;

/// The fields at the start: expressions, and pulses in the box.
pub(super) fn initial_fields(config: &Config, model: &Model) -> Result<[Vec<f64>; 6]> {
    let mut fields: [Vec<f64>; 6] = match &config.initial.fields {
        Some(values) => model.fields(config, "initial.fields", values)?,
        None => Default::default(),
    };
    let pulses: Vec<_> = config.laser.iter().filter(|l| l.source == LaserSource::Box).collect();
    if !pulses.is_empty() {
        for values in &mut fields {
            values.resize(model.grid.len(), 0.0);
        }
        for laser in pulses {
            pulse(config, laser, &model.units, &model.grid, None).add(&model.grid, 0.0, &mut fields);
        }
    }
    Ok(fields)
}

/// A pulse in normalised units; one from an antenna at `line` passes it at its time.
fn pulse(config: &Config, laser: &LaserConfig, units: &Units, grid: &Grid, line: Option<f64>) -> Pulse {
    // Light goes a unit of length in a unit of time.
    let scale = if line.is_some() { units.time } else { units.length };
    let part = |v: Option<f64>| v.unwrap_or(0.0) / scale;
    let envelope = match laser.fwhm {
        Some(fwhm) => Envelope::Gaussian { fwhm: fwhm / scale },
        None => Envelope::Ramps { rise: part(laser.rise), flat: part(laser.flat), fall: part(laser.fall) },
    };
    let position = laser.position.unwrap_or(0.0) / units.length;
    let own = line.unwrap_or(position);
    let middle = grid.origin[1] + if grid.dimensions == 2 { 0.5 * grid.cells[1] as f64 * grid.h[1] } else { 0.0 };
    let polarisation = match laser.polarisation {
        PolarisationConfig::Angle(degrees) => Polarisation::Linear(degrees.to_radians()),
        PolarisationConfig::Word(PolarisationName::Y) => Polarisation::Linear(0.0),
        PolarisationConfig::Word(PolarisationName::Z) => Polarisation::Linear(std::f64::consts::FRAC_PI_2),
        PolarisationConfig::Word(PolarisationName::Left) => Polarisation::Circular(false),
        PolarisationConfig::Word(PolarisationName::Right) => Polarisation::Circular(true),
    };
    let omega = laser
        .omega
        .map_or_else(|| std::f64::consts::TAU / (laser.wavelength.unwrap_or(f64::INFINITY) / units.length), |omega| omega * units.time);
    let (direction, sign) = match laser.direction {
        LaserDirection::Right => (0.0, 1.0),
        LaserDirection::Left => (std::f64::consts::PI, -1.0),
    };
    let mut pulse = Pulse {
        a0: laser.a0,
        omega,
        phase: laser.phase.to_radians(),
        polarisation,
        envelope,
        waist: laser.waist.filter(|_| config.dimensions() == 2).map(|w| w / units.length),
        direction,
        focus: laser.focus.map_or([own, middle], |f| f.map(|x| x / units.length)),
        arrival: 0.0,
    };
    pulse.arrival = match line {
        Some(line) => laser.delay.unwrap_or(0.0) / units.time + pulse.arrival_from(sign * (pulse.focus[0] - line), grid),
        None => pulse.arrival_from(sign * (pulse.focus[0] - position), grid),
    };
    pulse
}

/// The antennas of the input, each with its number among the lasers.
pub(super) fn antennas(config: &Config, model: &Model) -> Result<Vec<(usize, Antenna)>> {
    let lasers = config.laser.iter().enumerate().filter(|(_, l)| l.source == LaserSource::Antenna);
    lasers.map(|(i, l)| Ok((i, antenna(config, i, l, &model.units, &model.grid)?))).collect()
}

/// Cells from a side in x to where an antenna may stand: a layer and one more.
pub(super) fn margin(grid: &Grid, layer: usize, end: usize) -> usize {
    1 + if grid.fields[0][end] == FieldSide::Absorbing { layer } else { 0 }
}

fn antenna(config: &Config, i: usize, laser: &LaserConfig, units: &Units, grid: &Grid) -> Result<Antenna> {
    let first = margin(grid, config.boundary.layer, 0) as f64;
    let last = grid.cells[0] as f64 - margin(grid, config.boundary.layer, 1) as f64;
    let node = match (laser.antenna, laser.direction) {
        (Some(x), _) => ((x / units.length - grid.origin[0]) / grid.h[0]).round(),
        (None, LaserDirection::Right) => first + 1.0,
        (None, LaserDirection::Left) => last - 1.0,
    };
    if !(first..=last).contains(&node) {
        let h = grid.h[0] * units.length;
        let from = grid.origin[0] * units.length;
        let problem = Problem::new(format!("pic.laser[{i}].antenna"), "the sheet of current stands outside the box or in its layer");
        return Err(Error::input("the input", problem.allowed(format!("{:.6} to {:.6}", from + first * h, from + last * h))));
    }
    let line = grid.origin[0] + node * grid.h[0];
    Ok(Antenna { pulse: pulse(config, laser, units, grid, Some(line)), axis: 0, node: node as usize })
}
