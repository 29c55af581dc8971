//! Lengths of ramped pulses and numbers of particles in histograms, against closed forms.

use std::f64::consts::{FRAC_PI_2, LN_2, PI, TAU};

use serde_json::json;
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Record, Values};
use zellige_engine::sim::Solver;
use zellige_pic::stages::Component;

use crate::physics::start;

/// A circular pulse has `|E| = a0 |w g + i g'|` everywhere, `g` rising and falling as `sin^2` with a flat top between, each of its
/// own length behind the front.
#[test]
fn a_ramped_pulse_has_its_lengths() {
    let (omega, [rise, flat, fall]) = (TAU, [3.0, 5.0, 2.0]);
    for (direction, toward) in [("right", 1.0), ("left", -1.0)] {
        let front = 10.0 + 6.0 * toward;
        let mut pic = start(
            json!({
                "courant": 0.95, "steps": 1, "precision": "f64", "grid": { "cells": [800], "size": [20.0] },
                "boundary": { "x": "absorbing" }, "species": [],
                "laser": [{
                    "a0": 0.2, "omega": omega, "polarisation": "left", "direction": direction, "source": "box", "position": front,
                    "rise": rise, "flat": flat, "fall": fall
                }]
            }),
            1,
        );
        let grid = pic.plasma().setup.grid.clone();
        let [y, z] = [Component::Ey, Component::Ez].map(|c| pic.plasma().stages.component(c).unwrap());
        for i in 0..800 {
            let at = grid.index(i, 0);
            let found = y[at].hypot(z[at]) / (0.2 * omega);
            let behind = toward * (front - i as f64 * grid.h[0]);
            let (way, length) = if behind < rise { (behind, rise) } else { (rise + flat + fall - behind, fall) };
            let angle = FRAC_PI_2 * (way / length).clamp(0.0, 1.0);
            let slope = FRAC_PI_2 / length * (2.0 * angle).sin();
            let expected = angle.sin().powi(2).hypot(slope / omega);
            // The lattice, of 40 cells a wave: (k h)^2/8 = 3e-3 of the amplitude, and less of the lengths.
            assert!((found - expected).abs() < 0.01, "{direction}, {behind} behind the front: {found}, expected {expected}");
        }
    }
}

/// The integral of a histogram is the number of particles: the density times the box, in SI units per metre of what the box does
/// not have.
#[test]
fn a_histogram_holds_the_particles_of_the_box() {
    let scale = 5.314_095e-6;
    for (dimensions, si) in [(1, false), (2, false), (1, true), (2, true)] {
        let (length, density) = if si { (scale, 3e24) } else { (1.0, 3.0) };
        let size = &[1.6 * length, 0.8 * length][..dimensions];
        let mut table = json!({
            "courant": 0.9, "steps": 1, "grid": { "cells": &[16, 8][..dimensions], "size": size },
            "species": [{ "name": "electrons", "density": density, "particles_per_cell": 4, "momentum": { "thermal": 0.05 } }],
            "diagnostics": { "phase_space": [
                { "name": "place", "species": "electrons", "axes": [{ "value": "x", "bins": 10 }, { "value": "ux", "bins": 7 }] },
                { "name": "speed", "species": "electrons", "axes": [{ "value": "gamma", "bins": 9 }] }
            ] }
        });
        if si {
            table["units"] = json!({ "density": 1e24 });
        }
        let mut pic = start(table, 1);
        pic.step(&mut Profiler::off()).unwrap();
        let expected = density * size.iter().product::<f64>();
        for record in pic.records().unwrap() {
            let Record::Field(field) = &record else { continue };
            if !["place", "speed"].contains(&field.name.as_str()) {
                continue;
            }
            let Values::F64(values) = &field.values else { panic!("{:?}", field.values) };
            let found = values.iter().sum::<f64>() * field.axes.iter().map(|a| a.spacing).product::<f64>();
            assert!((found / expected - 1.0).abs() < 1e-12, "{} in {dimensions}D: {found:e}, expected {expected:e}", field.name);
        }
    }
}

/// `particles_per_cell` are those of a cell of the reference density: three quarters of them make three quarters of it, or all of
/// them with that weight.
#[test]
fn particles_per_cell_are_those_of_the_reference_density() {
    for (si, weighting) in [(false, "equal"), (false, "variable"), (true, "equal"), (true, "variable")] {
        let (length, unit) = if si { (5.314_095e-6, 1e24) } else { (1.0, 1.0) };
        let mut table = json!({
            "courant": 0.9, "steps": 1, "grid": { "cells": [16, 8], "size": [1.6 * length, 0.8 * length] },
            "species": [{
                "name": "electrons", "density": 3.0 * unit, "reference_density": 4.0 * unit, "particles_per_cell": 8,
                "weighting": weighting
            }]
        });
        if si {
            table["units"] = json!({ "density": unit });
        }
        let mut pic = start(table, 1);
        let count = pic.plasma().stages.particles(0).unwrap().len();
        assert_eq!(count, 128 * if weighting == "equal" { 6 } else { 8 }, "{weighting}, SI {si}");
        let grid = pic.plasma().setup.grid.clone();
        let charge = pic.plasma().stages.charge(0, false).unwrap();
        let sum: f64 = (0..8).flat_map(|j| charge[grid.row(j)].to_vec()).sum();
        assert!((sum / (-3.0 * 128.0) - 1.0).abs() < 1e-6, "{weighting}, SI {si}: {sum}");
    }
}

/// An antenna sends a pulse to either side. A circular one of `a0 w` has the energy `integral (a0 w g)^2`, and `g^2` of a Gaussian
/// is `fwhm sqrt(pi/(4 ln 2))` long.
#[test]
fn an_antenna_radiates_two_pulses() {
    let mut pic = start(
        json!({
            "courant": 0.95, "t_end": 20.0, "precision": "f64", "grid": { "cells": [400], "size": [10.0] },
            "boundary": { "x": "absorbing" }, "species": [],
            "laser": [{ "a0": 0.2, "omega": TAU, "polarisation": "left", "source": "antenna", "delay": 8.0, "fwhm": 3.0 }]
        }),
        1,
    );
    while pic.outcome().is_none() {
        pic.step(&mut Profiler::off()).unwrap();
    }
    let expected = 2.0 * (0.2 * TAU).powi(2) * 3.0 * (PI / (4.0 * LN_2)).sqrt();
    let found = pic.plasma().account().unwrap().radiated;
    // The sheet makes up for the lattice, of 40 cells a wave: (k h)^2/8 = 3e-3.
    assert!((found / expected - 1.0).abs() < 1e-2, "{found}, expected {expected}");
}

/// A beam in the plane carries the same power everywhere: `integral E^2 dy` over a wave is `(a0 w)^2/2 W0 sqrt(pi/2)` at the focus
/// and one and a half Rayleigh lengths before it, where it is 1.8 times as wide.
#[test]
fn a_beam_carries_its_power_along() {
    let (waist, focus) = (1.5, [18.0, 10.0]);
    let rayleigh = 0.5 * TAU * waist * waist;
    let mut pic = start(
        json!({
            "courant": 0.95, "steps": 1, "grid": { "cells": [480, 200], "size": [24.0, 20.0] },
            "boundary": { "x": "absorbing", "y": "absorbing" }, "species": [],
            "laser": [{
                "a0": 0.1, "omega": TAU, "polarisation": "z", "source": "box", "position": 23.5, "waist": waist, "focus": focus,
                "rise": 1.0, "flat": 20.5, "fall": 1.0
            }]
        }),
        1,
    );
    let grid = pic.plasma().setup.grid.clone();
    let field = pic.plasma().stages.component(Component::Ez).unwrap();
    let expected = 0.5 * (0.1 * TAU).powi(2) * waist * (0.5 * PI).sqrt();
    for x in [focus[0], focus[0] - 1.5 * rayleigh] {
        let first = ((x - 0.5) / grid.h[0]) as isize;
        let wave = (first..first + 20).flat_map(|i| (0..200).map(move |j| [i, j]));
        let found = wave.map(|[i, j]| field[grid.index(i, j)].powi(2)).sum::<f64>() * grid.h[0] * grid.h[1];
        // Beyond the paraxial beam: 1/(k W0)^2 = 1.1 %.
        assert!((found / expected - 1.0).abs() < 0.02, "at {x}: {found}, expected {expected}");
    }
}
