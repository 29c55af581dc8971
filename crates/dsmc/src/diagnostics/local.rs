//! Local Knudsen numbers, by the lengths over which density, temperature and speed change: large far from equilibrium.
//!
//! `Kn_Q = lambda |grad Q|/Q` with the local mean free path (Boyd, Chen and Candler, Phys. Fluids 7 (1995) 210); for the speed Q is
//! the larger of it and the speed of sound, so that a stagnation point does not count as broken down. Above 0.05 the equations of
//! Navier and Stokes are not to be trusted.

use zellige_engine::parallel::{indices, items, map};

use crate::flow::Averaged;
use crate::sampling::{OF_SPECIES, VALUES, width};
use crate::walls::BOLTZMANN;

/// Name, title, values and standard errors of a field.
type Local = (&'static str, &'static str, [Vec<f64>; 2]);

/// Fields of [`knudsen`].
pub(crate) const KNUDSEN: usize = 3;

/// A quantity in a cell: its value, the scale that its gradient is taken over, and its standard error.
type State = (f64, f64, f64);
/// That of each cell.
type States<'a> = &'a (dyn Fn(usize) -> State + Sync);

/// The three fields. `values` are all of the averages, and `warm` are the cells whose temperature is known. Noise makes gradients,
/// and so the numbers: what is not well above its error says nothing.
pub(crate) fn knudsen(flow: Averaged<'_>, values: &[f64], warm: &(dyn Fn(usize) -> bool + Sync)) -> [Local; KNUDSEN] {
    let (model, samples, width) = (flow.model, flow.samples, width(flow.model));
    let of = |c: usize| &values[c * width..][..width];
    let density = |c: usize| (of(c)[0], of(c)[0], samples.error(model, c, 0));
    let temperature = |c: usize| (of(c)[4], of(c)[4], samples.error(model, c, 4));
    let speed = |c: usize| {
        let (v, error) = (&of(c)[1..4], [1, 2, 3].map(|q| samples.error(model, c, q)));
        let u = v.iter().map(|v| v * v).sum::<f64>().sqrt();
        let along = |i: usize| if u > 0.0 { v[i] / u } else { 0.0 };
        let error = (0..3).map(|i| (along(i) * error[i]).powi(2)).sum::<f64>().sqrt();
        (u, u.max(sound(flow, of(c))), error)
    };
    let all: [(_, _, States<'_>); 3] = [
        ("knudsen_density", "local Knudsen number of the density", &density),
        ("knudsen_temperature", "local Knudsen number of the temperature", &temperature),
        ("knudsen_speed", "local Knudsen number of the speed", &speed),
    ];
    all.map(|(name, title, state)| {
        let found = map(indices(model.grid.len()), |c, _| at(flow, c, of(c)[14], warm, state));
        (name, title, apart(&found))
    })
}

/// The Mach number by the speed of sound of the gas in each cell. Not a number where nothing is known of the temperature
/// ([`crate::sampling::Samples::warm`]), or the density is less than twice its error.
pub(crate) fn mach(flow: Averaged<'_>, values: &[f64], warm: &(dyn Fn(usize) -> bool + Sync)) -> Local {
    let (model, samples, width) = (flow.model, flow.samples, width(flow.model));
    let at = |c: usize| {
        let v = &values[c * width..][..width];
        let noise = |q: usize| v[q] <= 0.0 || 2.0 * samples.error(model, c, q) > v[q];
        if !warm(c) || noise(0) || noise(4) {
            return [f64::NAN; 2];
        }
        let u = v[1..4].iter().map(|v| v * v).sum::<f64>().sqrt();
        let sound = sound(flow, v);
        let along = |i: usize| if u > 0.0 { v[i] / u } else { 1.0 };
        let speed = (1..4).map(|i| (along(i) * samples.error(model, c, i)).powi(2)).sum::<f64>();
        // The speed of sound goes with the root of the temperature.
        let warmth = 0.5 * u * samples.error(model, c, 4) / v[4];
        [u / sound, speed.sqrt().hypot(warmth) / sound]
    };
    let found: Vec<[f64; 2]> = map(indices(flow.model.grid.len()), |c, _| at(c));
    ("mach", "Mach number", apart(&found))
}

/// Values and errors of all cells, each by themselves.
fn apart(found: &[[f64; 2]]) -> [Vec<f64>; 2] {
    [0, 1].map(|e| map(items(found), |_, f| f[e]))
}

/// Speed of sound of a gas whose rotation keeps up, m/s; `v` are the values of a cell with those of its species.
fn sound(flow: Averaged<'_>, v: &[f64]) -> f64 {
    let mut mass = 0.0;
    let mut freedom = flow.model.components as f64;
    // Behind the values of a pure gas stand those of modes and along z.
    let known = flow.model.species.len() > 1 && v[0] > 0.0;
    let part = |s: usize| if known { v[VALUES + s * OF_SPECIES.len()] / v[0] } else { flow.model.fractions[s] };
    for (s, f) in flow.model.species.iter().enumerate().map(|(k, s)| (s, part(k))) {
        mass += f * s.mass;
        freedom += f * f64::from(if flow.model.collisions.rotation { s.rotation } else { 0 });
    }
    ((freedom + 2.0) / freedom * BOLTZMANN * v[4].max(0.0) / mass).sqrt()
}

/// `lambda |grad Q|/Q` in a cell, and its standard error: central differences, one-sided beside walls and bodies and never across
/// one. Not a number where nothing is known, nor where a cell mixes the gas of two sides of a thin body.
fn at(flow: Averaged<'_>, cell: usize, free_path: f64, known: impl Fn(usize) -> bool, state: States<'_>) -> [f64; 2] {
    let (grid, geometry) = (&flow.model.grid, &flow.model.geometry);
    let known = |c: usize| known(c) && geometry.fraction(c) > 0.0 && !geometry.mixes(c);
    if !known(cell) {
        return [f64::NAN; 2];
    }
    let (_, scale, _) = state(cell);
    let (mut square, mut error) = (0.0_f64, 0.0_f64);
    for axis in (0..grid.dimensions).filter(|a| grid.cells[*a] > 1) {
        let here = grid.cell(cell);
        let beside = |up: bool| {
            let mut position = here;
            position[axis] = if up { here[axis] + 1 } else { here[axis].checked_sub(1)? };
            let lower = if up { here } else { position };
            (position[axis] < grid.cells[axis] && geometry.open_between(lower, axis)).then(|| grid.index(position)).filter(|c| known(*c))
        };
        let (low, high) = (beside(false), beside(true));
        let cells = f64::from(u8::from(low.is_some()) + u8::from(high.is_some()));
        if cells == 0.0 {
            continue;
        }
        let ((a, _, ea), (b, _, eb)) = (state(low.unwrap_or(cell)), state(high.unwrap_or(cell)));
        let slope = (b - a) / (cells * grid.h[axis]);
        square += slope * slope;
        error += slope.powi(2) * (ea * ea + eb * eb) / (cells * grid.h[axis]).powi(2);
    }
    let gradient = square.sqrt();
    // Of |grad Q|, by the errors of the differences; where it vanishes they do not matter.
    let error = if gradient > 0.0 { error.sqrt() / gradient } else { 0.0 };
    [free_path * gradient / scale, free_path * error / scale]
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;
    use zellige_engine::device::{Cpu, Device};
    use zellige_engine::profile::Profiler;

    use super::*;
    use crate::flow::Flow;

    /// The speed of sound of a gas of one species, whatever values of modes and along z stand behind those of the gas.
    #[test]
    fn the_mach_number_of_a_pure_gas_is_that_of_its_temperature() {
        for (name, freedom, velocity) in [("Ar", 3.0, [300.0, 0.0, 0.0]), ("Ar", 3.0, [0.0, 0.0, 300.0]), ("CO2", 5.0, [300.0, 0.0, 0.0])] {
            let table = json!({ "dt": 1e-7, "steps": 40, "particles_per_cell": 200, "species": [{ "name": name }],
                "grid": { "cells": [4, 1], "size": [0.004, 0.001] }, "sampling": { "start": 0, "batches": 4 },
                "gas": { "density": 1e21, "temperature": 900.0, "velocity": velocity } });
            let config = serde_json::from_value(table).unwrap();
            let mut flow = Flow::new(&config, Path::new(""), 1, &Device::Cpu(Cpu::new(1).unwrap())).unwrap();
            (0..40).for_each(|_| flow.advance(&mut Profiler::off()).unwrap());
            let (model, values) = (flow.model.clone(), flow.samples.values());
            let (_, _, [found, _]) = mach(Averaged::from(&flow), values, &|_| true);
            for (v, found) in values.chunks_exact(width(&model)).zip(found) {
                let speed = v[1..4].iter().map(|u| u * u).sum::<f64>().sqrt();
                let expected = speed / ((freedom + 2.0) / freedom * BOLTZMANN * v[4] / model.species[0].mass).sqrt();
                assert!((found - expected).abs() < 1e-12 * expected, "{name} {velocity:?}: {found} for {expected}");
            }
        }
    }
}
