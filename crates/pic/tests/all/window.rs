//! The moving window from the input table: antennas, fields at the start, and what the plan says of plasma that comes in.

use serde_json::{Value, json};
use zellige_engine::device::{Cpu, Device};
use zellige_engine::profile::Profiler;
use zellige_engine::sim::{Environment, Plan, Solver};
use zellige_pic::stages::Component;
use zellige_pic::{Config, Pic};

fn environment() -> Environment {
    Environment::new(Device::Cpu(Cpu::new(1).unwrap()), ".", 5)
}

fn config(table: Value) -> Config {
    let config: Config = serde_json::from_value(table).unwrap();
    assert_eq!(config.check(), []);
    config
}

fn plan(table: Value) -> Plan {
    Pic::plan(&config(table), &environment()).unwrap()
}

/// To the end; `seen` after each step.
fn run(table: Value, mut seen: impl FnMut(&mut Pic)) -> Pic {
    let mut pic = Pic::setup(&config(table), &environment()).unwrap();
    while pic.outcome().is_none() {
        pic.step(&mut Profiler::off()).unwrap();
        seen(&mut pic);
    }
    pic
}

/// A pulse that passes the antenna at x = 20 at t = 10, seen at t = 26.
fn antenna(window: Option<f64>) -> Value {
    let mut table = json!({
        "courant": 0.9, "t_end": 26.0, "precision": "f64",
        "grid": { "cells": [1200], "size": [60.0] },
        "boundary": { "x": "absorbing" },
        "laser": [{
            "a0": 0.1, "omega": 5.0, "source": "antenna", "antenna": 20.0, "delay": 10.0, "fwhm": 4.0, "polarisation": "z"
        }]
    });
    if let Some(start) = window {
        table["window"] = json!({ "start": start });
    }
    table
}

/// An antenna stands where it is in the laboratory: the window that goes past it sees the same laser, whenever it begins to move.
#[test]
fn an_antenna_stands_still_while_the_window_moves() {
    let mut fixed = run(antenna(None), |_| ());
    let grid = fixed.plasma().setup.grid.clone();
    let there = fixed.plasma().stages.component(Component::Ez).unwrap();
    let most = there.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    // a0 omega, the phase of the peak apart: 0.498 was measured.
    assert!((most / 0.5 - 1.0).abs() < 0.02, "{most}");
    for start in [0.0, 5.0, 20.0] {
        let mut moving = run(antenna(Some(start)), |_| ());
        let moved = moving.plasma().moved as isize;
        assert_eq!(moved, ((26.0 - start) / 0.05) as isize, "window from {start}");
        let here = moving.plasma().stages.component(Component::Ez).unwrap();
        // From x = 30 to 45: the pulse, peak at 36, inside of each window and out of its layers.
        for i in 600..900 {
            let (a, b) = (there[grid.index(i, 0)], here[grid.index(i - moved, 0)]);
            // Reflections of the outgoing half from the layers have not arrived here. Rounding of 600 steps.
            assert!((a - b).abs() < 1e-10, "window from {start}, x = {}: {a} and {b}", i as f64 * 0.05);
        }
    }
}

/// A window that outruns the pulse is told of in the plan, with the time; one that does not is not.
#[test]
fn a_window_that_leaves_its_antenna_behind_says_so() {
    let with = |position: f64, start: f64| {
        let mut table = antenna(Some(start));
        table["laser"][0]["antenna"] = json!(position);
        plan(table).warnings.into_iter().filter(|w| w.contains("antenna")).collect::<Vec<_>>()
    };
    // At x = 2 the sheet meets the layer of 16 cells, 0.8, when the window has gone 1.2: long before the peak.
    let told = with(2.0, 0.0);
    assert!(told.len() == 1 && told[0].contains("laser[0]") && told[0].contains("100 %"), "{told:?}");
    // At x = 11.5 it is there until t = 10.7: the Gaussian has fallen to 96 %.
    let told = with(11.5, 0.0);
    assert!(told.len() == 1 && told[0].contains("t = 1.07") && told[0].contains(" 9"), "{told:?}");
    assert_eq!(with(2.0, 20.0), Vec::<String>::new());
    assert_eq!(with(20.0, 0.0), Vec::<String>::new());
}

/// Fields of the start are ahead of a window, too: a magnetic field along x, which nothing changes in one dimension, is what the
/// input says everywhere in the box, also behind what was the conductor at its end; and particles that come in feel it from their
/// first half step on.
#[test]
fn fields_of_the_start_come_into_a_window() {
    for (hi, order) in [("absorbing", 1), ("pmc", 2)] {
        let mut first: Option<[f64; 3]> = None;
        let mut pic = run(
            json!({
                "courant": 0.9, "t_end": 9.0, "precision": "f64", "order": order,
                "grid": { "cells": [60], "size": [6.0] },
                "boundary": { "x_lo": "absorbing", "x_hi": { "fields": hi, "particles": "absorb" } },
                "window": { "start": 0.0 },
                "initial": { "fields": { "bx": "1 + 0.01*x", "by": 0.3 } },
                "species": [{ "name": "probes", "charge": 1e-9, "particles_per_cell": 2, "density": "if(x < 8, 0, 1)", "momentum": { "drift": [0, 0.1, 0] } }]
            }),
            |pic| {
                let p = pic.plasma().stages.particles(0).unwrap();
                if first.is_none() && !p.is_empty() {
                    first = Some([p.u[0][0], p.u[1][0], p.u[2][0]]);
                }
            },
        );
        let (moved, grid) = (pic.plasma().moved as isize, pic.plasma().setup.grid.clone());
        assert_eq!(moved, 90, "half as far again as the box is long");
        let bx = pic.plasma().stages.component(Component::Bx).unwrap();
        let by = pic.plasma().stages.component(Component::By).unwrap();
        for i in 1..60 {
            let x = 0.1 * (i + moved) as f64;
            assert!((bx[grid.index(i, 0)] - (1.0 + 0.01 * x)).abs() < 1e-12, "{hi}: bx = {} at {x}", bx[grid.index(i, 0)]);
        }
        // Uniform, so that nothing radiates but the wall of a magnetic conductor, at which it is held at zero.
        if hi == "absorbing" {
            assert!((20..60).all(|i| (by[grid.index(i, 0)] - 0.3).abs() < 1e-12), "{by:?}");
        }
        // Half a step back in B = (1.08, 0.3, 0), to first order in its angle: u_z = -dt/2 u x B = -(0.045 u_y B_x).
        let (u, scale) = (first.expect("the plasma has come in"), 0.5 * grid.dt * 0.1);
        // A charge of 1e-9 of an electron's mass turns by 1e-9 of that.
        assert!((u[2] / (1e-9 * scale * 1.08) - 1.0).abs() < 0.01, "{hi}: {u:?}");
    }
}

/// Plasma that is not there at first: the plan counts the most that the box will hold.
#[test]
fn the_plan_counts_the_plasma_that_comes_in() {
    let table = json!({
        "courant": 0.9, "t_end": 30.0,
        "grid": { "cells": [100, 20], "size": [10.0, 2.0] },
        "boundary": { "x": "absorbing", "y": "periodic" },
        "window": { "start": 0.0 },
        "species": [
            { "name": "electrons", "particles_per_cell": [3, 2], "density": "if(x > 12 and x < 32, 1, 0)" },
            { "name": "thin", "particles_per_cell": [3, 2], "density": { "slab": { "from": 15.0, "to": 17.0 } } }
        ]
    });
    let plan = plan(table.clone());
    let mut most = [0, 0];
    let pic = run(table, |pic| {
        let count = pic.plasma().stages.count().unwrap();
        most = [most[0].max(count[0]), most[1].max(count[1])];
    });
    drop(pic);
    // A box full of the first, 20 columns of the second.
    assert_eq!(most, [12_000, 2_400]);
    assert_eq!(plan.items, 14_400);
    let line = &plan.lines.iter().find(|(label, _)| label == "species").expect("a line of species").1;
    assert!(line.contains("0 particles at first, 12000 as the window moves"), "{line}");
}
