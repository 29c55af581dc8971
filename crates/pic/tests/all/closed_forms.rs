//! Figures of single species, waves and starts against closed forms, from the input table on, with charges, masses, temperatures
//! and units other than 1.

use std::f64::consts::{PI, TAU};

use serde_json::{Value, json};
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Record, Values};
use zellige_engine::sim::Solver;
use zellige_pic::Pic;
use zellige_pic::config::units::{C, E, EPS_0, M_E};
use zellige_pic::particles::Particles;
use zellige_pic::stages::Component;

use crate::physics::{finished, start};

fn step(pic: &mut Pic, profiler: &mut Profiler) {
    pic.step(profiler).unwrap();
}

/// A species so thin that its fields are nothing.
fn lone(thin: &Value) -> Value {
    let mut species = json!({ "name": "ions", "particles_per_cell": 1, "density": 1e-12 });
    species.as_object_mut().unwrap().extend(thin.as_object().unwrap().clone());
    json!({ "dt": 0.06, "steps": 100, "grid": { "cells": [8, 8], "size": [0.8, 0.8] }, "precision": "f64", "species": [species] })
}

/// The real and the imaginary part of mode `m` along x of a component, over steps.
fn amplitudes(table: Value, component: Component, m: f64) -> (f64, Vec<[f64; 2]>) {
    let mut pic = start(table, 1);
    let (steps, dt) = (pic.plasma().model.steps, pic.plasma().setup.grid.dt);
    let mut found = Vec::new();
    for _ in 0..steps {
        step(&mut pic, &mut Profiler::off());
        let grid = pic.plasma().setup.grid.clone();
        let values = pic.plasma().stages.component(component).unwrap();
        let mut sum = [0.0; 2];
        for j in 0..grid.cells[1] as isize {
            for (i, v) in values[grid.row(j)].iter().enumerate() {
                let phase = TAU * m * i as f64 / grid.cells[0] as f64;
                sum = [sum[0] + v * phase.cos(), sum[1] - v * phase.sin()];
            }
        }
        found.push(sum);
    }
    (dt, found)
}

/// Size of the Fourier component of `values` at the frequency `w` (of either sign), under Hann's window.
fn power(values: &[[f64; 2]], dt: f64, w: f64) -> f64 {
    let n = values.len() as f64;
    let (re, im) = values.iter().enumerate().fold((0.0, 0.0), |(re, im), (k, [x, y])| {
        let window = 0.5 - 0.5 * (TAU * (k as f64 + 0.5) / n).cos();
        let (s, c) = (w * k as f64 * dt).sin_cos();
        (re + window * (x * c + y * s), im + window * (y * c - x * s))
    });
    re.hypot(im)
}

/// The frequency of the strongest wave within a tenth of `near`.
fn peak(values: &[[f64; 2]], dt: f64, near: f64) -> f64 {
    let grid = (0..=2000).map(|k| near * (0.9 + 0.2 * f64::from(k) / 2000.0));
    grid.max_by(|a, b| power(values, dt, *a).total_cmp(&power(values, dt, *b))).unwrap()
}

/// Ions of charge 2 and mass 100 turn by `2 atan(q B dt/(2 m gamma))` a step, the other way round than electrons.
#[test]
fn heavy_ions_gyrate_at_their_frequency() {
    let mut table = lone(&json!({ "charge": 2, "mass": 100, "momentum": { "drift": [0.5, 0, 0] } }));
    table["external"] = json!({ "bz": 20.0 });
    let mut pic = start(table, 1);
    let angle = |p: &Particles| p.u[1][7].atan2(p.u[0][7]);
    let first = angle(&pic.plasma().stages.particles(0).unwrap());
    // The start is half a step earlier, where the momentum of the input had not turned as far: a start of second order.
    let half = 2.0 * (0.25 * 0.06 * 20.0 * 2.0 / 100.0 / f64::hypot(1.0, 0.5)).atan();
    assert!((first - half).abs() < 1e-9, "{first}, expected {half}");
    (0..50).for_each(|_| step(&mut pic, &mut Profiler::off()));
    let turned = angle(&pic.plasma().stages.particles(0).unwrap()) - first;
    let expected = -50.0 * 2.0 * (0.5 * 0.06 * 20.0 * 2.0 / 100.0 / f64::hypot(1.0, 0.5)).atan();
    assert!((turned - expected).abs() < 1e-9, "{turned}, expected {expected}");
}

/// Kinetic energy `m n V (gamma - 1)` and momentum `m n V u` of a drifting heavy species.
#[test]
fn a_heavy_species_has_the_energy_and_momentum_of_its_mass() {
    let pic = finished(lone(&json!({ "charge": 0, "mass": 1836, "density": 0.25, "momentum": { "drift": [0.3, 0, 0.4] } })));
    let (series, content) = (&pic.diagnostics().series, 1836.0 * 0.25 * 0.64);
    let (kinetic, momentum) = (series.last("kinetic"), series.last("momentum_z"));
    assert!((kinetic / (content * (1.25_f64.sqrt() - 1.0)) - 1.0).abs() < 1e-12, "{kinetic}");
    assert!((momentum / (content * 0.4) - 1.0).abs() < 1e-12, "{momentum}");
}

/// Two cold species swing at `w^2 = sum n q^2/m`, here 1 + 4/4 * 0.5.
#[test]
fn ions_take_part_in_the_plasma_oscillation() {
    let species = |name: &str, charge: f64, mass: f64, density: f64, drift: &str| json!({ "name": name, "charge": charge, "mass": mass, "density": density, "particles_per_cell": 8, "momentum": { "drift": [drift, 0, 0] } });
    let (dt, found) = amplitudes(
        json!({
            "dt": 0.05, "steps": 1000, "precision": "f64", "grid": { "cells": [64], "size": [6.4] },
            "species": [species("electrons", -1.0, 1.0, 1.0, "1e-4*sin(2*pi*x/lx)"), species("ions", 2.0, 4.0, 0.5, "0")]
        }),
        Component::Ex,
        1.0,
    );
    // The lattice takes off (k h)^2/16 = 6e-4; a Hann window of nine periods finds a lone line to 1e-3 of its width.
    let (found, expected) = (peak(&found, dt, 1.22), 1.5_f64.sqrt());
    assert!((found / expected - 1.0).abs() < 3e-3, "{found}, expected {expected}");
}

/// Lower and upper hybrid resonance of a cold plasma across a magnetic field: the roots of `1 = sum w_p^2/(w^2 - w_c^2)`, to which
/// the extraordinary wave tends for `k >> 1`.
#[test]
fn hybrid_waves_have_their_frequencies() {
    let (mass, b) = (25.0_f64, 1.0_f64);
    // With y = w^2: y^2 - y (wce^2 + wci^2 + wpe^2 + wpi^2) + wce^2 wci^2 + wpe^2 wci^2 + wpi^2 wce^2 = 0.
    let (ce, ci, pi) = (b * b, (b / mass).powi(2), 1.0 / mass);
    let (sum, product) = (ce + ci + 1.0 + pi, ce * ci + ci + pi * ce);
    let root = |sign: f64| (0.5 * (sum + sign * (sum * sum - 4.0 * product).sqrt())).sqrt();
    let species = |name: &str, charge: f64, mass: f64, drift: &str| json!({ "name": name, "charge": charge, "mass": mass, "particles_per_cell": 8, "momentum": { "drift": [drift, 0, 0] } });
    let (dt, found) = amplitudes(
        json!({
            "courant": 0.95, "t_end": 220.0, "precision": "f64", "grid": { "cells": [24], "size": [0.4] }, "external": { "bz": b },
            "species": [species("electrons", -1.0, 1.0, "1e-6*sin(2*pi*x/lx)"), species("ions", 1.0, mass, "1e-5*sin(2*pi*x/lx)")]
        }),
        Component::Ex,
        1.0,
    );
    // The shape of the particles lowers w_p by (k h)^2/16 = 4e-3 and k = 15.7 is not infinite: 1/k^2 = 4e-3.
    for expected in [root(-1.0), root(1.0)] {
        let found = peak(&found, dt, expected);
        assert!((found / expected - 1.0).abs() < 1e-2, "{found}, expected {expected}");
    }
}

/// Waves along a magnetic field: all four branches of `w^2 - k^2 = w/(w -+ w_c)`, right-handed (whistler and upper) and
/// left-handed.
#[test]
fn waves_along_a_magnetic_field_have_their_frequencies() {
    let (k, c) = (TAU / 6.4, 0.5);
    let (dt, found) = amplitudes(
        json!({
            "dt": 0.05, "t_end": 250.0, "precision": "f64", "grid": { "cells": [96], "size": [6.4] }, "external": { "bx": c },
            "species": [{ "name": "electrons", "particles_per_cell": 4, "momentum": { "drift": [0, "1e-3*sin(2*pi*x/lx)", 0] } }]
        }),
        Component::Ey,
        1.0,
    );
    for (sign, low, high) in [(-1.0, 0.01, c - 1e-6), (-1.0, c + 1e-6, 5.0), (1.0, 0.01, 5.0)] {
        // Rises from one end of the branch to the other.
        let f = |w: f64| w * w - k * k - w / (w + sign * c);
        let (mut a, mut b) = (low, high);
        for _ in 0..100 {
            let middle = 0.5 * (a + b);
            if f(middle) * f(a) > 0.0 { a = middle } else { b = middle }
        }
        let found = peak(&found, dt, a);
        assert!((found / a - 1.0).abs() < 1e-2, "{found}, expected {a}");
    }
}

/// Frequency and rate of the one damped wave in `values`, by least squares (Gauss-Newton) from a guess.
fn damped(values: &[[f64; 2]], dt: f64, guess: [f64; 2]) -> (f64, f64) {
    // The wave stands: all values lie on one line of the plane.
    let (xx, xy, yy) = values.iter().fold((0.0, 0.0, 0.0), |(a, b, c), [x, y]| (a + x * x, b + x * y, c + y * y));
    let (sin, cos) = (0.5 * f64::atan2(2.0 * xy, xx - yy)).sin_cos();
    let [mut w, mut rate] = guess;
    let mut parts = [0.0; 2];
    for _ in 0..30 {
        // Derivatives by cosine, sine, rate and frequency; the first turn finds amplitudes alone.
        let (mut matrix, mut right) = ([[0.0; 4]; 4], [0.0; 4]);
        for (k, [x, y]) in values.iter().enumerate() {
            let t = k as f64 * dt;
            let (c, s) = ((rate * t).exp() * (w * t).cos(), (rate * t).exp() * (w * t).sin());
            let row = [c, s, t * (parts[0] * c + parts[1] * s), t * (parts[1] * c - parts[0] * s)];
            let left = x * cos + y * sin - parts[0] * c - parts[1] * s;
            for a in 0..4 {
                right[a] += row[a] * left;
                (0..4).for_each(|b| matrix[a][b] += row[a] * row[b]);
            }
        }
        let n = if parts == [0.0; 2] { 2 } else { 4 };
        let step = solved(matrix, right, n);
        parts = [parts[0] + step[0], parts[1] + step[1]];
        (rate, w) = (rate + step[2], w + step[3]);
    }
    (w, rate)
}

/// The first `n` equations by elimination; they are positive definite.
fn solved(mut a: [[f64; 4]; 4], mut b: [f64; 4], n: usize) -> [f64; 4] {
    for k in 0..n {
        for r in k + 1..n {
            let f = a[r][k] / a[k][k];
            for c in k..n {
                a[r][c] -= f * a[k][c];
            }
            b[r] -= f * b[k];
        }
    }
    let mut x = [0.0; 4];
    for k in (0..n).rev() {
        x[k] = (b[k] - (k + 1..n).map(|c| a[k][c] * x[c]).sum::<f64>()) / a[k][k];
    }
    x
}

/// Landau's damping of a wave of `k lambda_D` = 0.3 from a quiet start: `w` = 1.1598, `-0.0126` (the root of the plasma dispersion
/// function; Canosa, J. Comput. Phys. 13 (1973) 158). The same momenta in every cell would let it grow.
/// Momenta may be quiet where positions lie on a lattice, too.
#[test]
fn a_quiet_start_is_damped_as_landau_says() {
    let (line, plane) = (json!([0.628_318_53]), json!([0.628_318_53, 0.314_159_27]));
    for (cells, size, positions, per_cell) in [
        (json!([32]), &line, "quiet", json!(8192)),
        (json!([32, 16]), &plane, "quiet", json!(512)),
        (json!([32]), &line, "lattice", json!(8192)),
        (json!([32, 16]), &plane, "lattice", json!([32, 16])),
    ] {
        let (dt, found) = amplitudes(
            json!({
                "courant": 0.9, "t_end": 32.0, "grid": { "cells": cells, "size": size },
                "species": [{ "name": "electrons", "particles_per_cell": per_cell, "positions": positions,
                    "momentum": { "drift": ["3e-4*sin(2*pi*x/lx)", 0, 0], "thermal": 0.03, "quiet": true } }]
            }),
            Component::Ex,
            1.0,
        );
        let (w, rate) = damped(&found[(12.0 / dt) as usize..], dt, [1.16, -0.0126]);
        println!("{cells} {positions}: rate {rate:.5}, frequency {w:.4}");
        // From t = 12 on, when the wave of the start that is none of its own is gone, to 32, before trapping (at w_b = 0.05).
        assert!((rate + 0.0126).abs() < 0.003, "{cells} {positions}: rate {rate}");
        assert!((w / 1.1598 - 1.0).abs() < 5e-3, "{cells} {positions}: frequency {w}");
    }
}

/// The mean of `f(u)` of a species.
fn mean(pic: &mut Pic, f: impl Fn([f64; 3]) -> f64) -> f64 {
    let p = pic.plasma().stages.particles(0).unwrap();
    (0..p.len()).map(|k| f([p.u[0][k], p.u[1][k], p.u[2][k]])).sum::<f64>() / p.len() as f64
}

/// Temperatures in eV: `<u_x^2> = T/(m c^2)` of a Gaussian, `<u_x v_x>` likewise of a relativistic gas.
#[test]
fn temperatures_are_in_electronvolts_and_per_mass() {
    for (key, relativistic) in [("temperature", false), ("maxwell_juttner", true)] {
        let length = 5.314e-6 * 0.8;
        let mut pic = start(
            json!({
                "steps": 1, "units": { "density": 1e24 }, "grid": { "cells": [8, 8], "size": [length, length] },
                "species": [{ "name": "ions", "mass": 10, "charge": 2, "density": 1e10, "particles_per_cell": 256,
                    "positions": "random", "momentum": { key: 510_998.95 } }]
            }),
            1,
        );
        let gamma = |u: [f64; 3]| (1.0 + u.iter().map(|c| c * c).sum::<f64>()).sqrt();
        let found = mean(&mut pic, |u| u.iter().map(|c| c * c).sum::<f64>() / 3.0 / if relativistic { gamma(u) } else { 1.0 });
        // 49 152 squares of normal numbers: 0.64 % is a standard deviation; four of them. (Tails of the gas are longer by a fifth.)
        assert!((found / 0.1 - 1.0).abs() < 0.03, "{key}: {found}, expected 0.1");
    }
}

/// Thermal sides are as warm as the gas where nothing else is said, whatever its mass and however its warmth is given.
#[test]
fn thermal_walls_are_as_warm_as_the_gas() {
    for momentum in [json!({ "thermal": 0.2 }), json!({ "temperature": 4.0 }), json!({ "maxwell_juttner": 4.0 })] {
        let mut table = lone(&json!({ "mass": 100, "particles_per_cell": 64, "positions": "random", "momentum": momentum }));
        table["boundary"] = json!({ "all": { "fields": "pec", "particles": "thermal" } });
        table["steps"] = json!(400);
        table["dt"] = json!(0.07);
        let mut pic = start(table, 1);
        let energy = |pic: &mut Pic| mean(pic, |u| u.iter().map(|c| c * c).sum::<f64>());
        let first = energy(&mut pic);
        // Seven times through the box at the thermal speed: nearly all have met walls, most of them often.
        (0..400).for_each(|_| step(&mut pic, &mut Profiler::off()));
        let ratio = energy(&mut pic) / first;
        // 4096 particles: 1.3 % is a standard deviation, and the start has as much.
        assert!((ratio - 1.0).abs() < 0.08, "{momentum}: {ratio}");
    }
}

/// The charge of a ramp is the density that was asked for, with weights and without, in SI units too.
#[test]
fn a_ramp_has_its_density() {
    for (weighting, si) in [("variable", false), ("variable", true), ("equal", false)] {
        let (length, density) = if si { (5.314_095e-6, 1e24) } else { (1.0, 1.0) };
        let mut table = json!({
            "steps": 1, "grid": { "cells": [40], "size": [4.0 * length] }, "boundary": { "x": "reflecting" },
            "species": [{ "name": "ions", "charge": 2, "mass": 50, "particles_per_cell": 400, "positions": "random", "weighting": weighting,
                "density": { "ramp": { "start": 0.2 * density, "end": 1.0 * density, "from": 0.0, "to": 4.0 * length } } }]
        });
        if si {
            table["units"] = json!({ "density": 1e24 });
        }
        let mut pic = start(table, 1);
        let grid = pic.plasma().setup.grid.clone();
        let rho = pic.plasma().stages.charge(0, false).unwrap();
        for i in 2..39 {
            let expected = 2.0 * (0.2 + 0.8 * f64::from(i) / 40.0);
            let found = rho[grid.index(i as isize, 0)];
            // Places are random: sqrt(2/3/400 n_0/n) is a standard deviation of 400 particles, four of them.
            let sigma = if weighting == "equal" { (2.0 / 3.0 / 400.0 * 2.0 / expected).sqrt() } else { (2.0 / 3.0 / 400.0_f64).sqrt() };
            assert!((found / expected - 1.0).abs() < 4.0 * sigma, "{weighting} {si} {i}: {found}, expected {expected}");
        }
        let whole: f64 = (1..40).map(|i| rho[grid.index(i, 0)]).sum();
        let expected: f64 = (1..40).map(|i| 2.0 * (0.2 + 0.8 * f64::from(i) / 40.0)).sum();
        assert!((whole / expected - 1.0).abs() < 0.02, "{weighting} {si}: {whole}, expected {expected}");
    }
}

/// E of a pulse at a place over some steps: the angle by which it turns in a unit of time, from y towards z, the largest E, and the
/// full width of its square at half maximum (of a Gaussian, by its integral).
fn turning(mut table: Value, laser: &Value, at: f64, until: f64, strength: f64) -> [f64; 3] {
    table["laser"] = json!([laser]);
    let mut pic = start(table, 1);
    let grid = pic.plasma().setup.grid.clone();
    let place = grid.index((at / grid.h[0]) as isize, 0);
    let (mut angle, mut last, mut count, mut most, mut whole) = (0.0, None::<f64>, 0, 0.0_f64, 0.0);
    while pic.plasma().time() < until {
        step(&mut pic, &mut Profiler::off());
        let (y, z) = (pic.plasma().stages.component(Component::Ey).unwrap(), pic.plasma().stages.component(Component::Ez).unwrap());
        most = most.max(y[place].hypot(z[place]));
        whole += (y[place] * y[place] + z[place] * z[place]) * grid.dt;
        if y[place].hypot(z[place]) > 0.5 * strength {
            let now = z[place].atan2(y[place]);
            if let Some(last) = last {
                angle += (now - last + PI).rem_euclid(TAU) - PI;
                count += 1;
            }
            last = Some(now);
        } else {
            last = None;
        }
    }
    [angle / (f64::from(count) * grid.dt), most, whole / (most * most) / (PI / 4.0 / 2.0_f64.ln()).sqrt()]
}

/// The schema's words: an observer whom the pulse approaches sees E of `left` turn anticlockwise. Who looks along -x, z upwards,
/// has y to the right: anticlockwise is from y to z; who looks along +x sees it from y to -z. The frequency is that of the
/// wavelength, the strength `a0 w` at all times.
#[test]
fn circular_pulses_turn_as_they_are_called_at_the_frequency_of_their_wavelength() {
    let table = json!({
        "courant": 0.95, "t_end": 40.0, "grid": { "cells": [400], "size": [40.0] }, "boundary": { "x": "absorbing" }, "species": []
    });
    for source in ["box", "antenna"] {
        for (direction, toward) in [("right", 1.0), ("left", -1.0)] {
            for (word, sense) in [("left", 1.0), ("right", -1.0)] {
                let mut laser = json!({
                    "a0": 0.3, "wavelength": 2.0, "source": source, "direction": direction, "fwhm": 5.0, "polarisation": word
                });
                laser[if source == "box" { "position" } else { "delay" }] = json!(if source == "box" { 20.0 - 8.0 * toward } else { 10.0 });
                let [rate, most, fwhm] = turning(table.clone(), &laser, 20.0, 40.0, 0.3 * PI);
                // Mean over the pulse; its bandwidth averages out. The lattice: 20 cells a wave.
                let expected = toward * sense * PI;
                assert!((rate / expected - 1.0).abs() < 0.02, "{source} {direction} {word}: {rate}, expected {expected}");
                assert!((most / (0.3 * PI) - 1.0).abs() < 0.02, "{source} {direction} {word}: {most}");
                // The group is slower than c by a tenth of (k h)^2.
                assert!((fwhm / 5.0 - 1.0).abs() < 0.03, "{source} {direction} {word}: {fwhm}");
            }
        }
    }
}

/// In SI units: a wavelength of 0.8 um has 2.354e15 rad/s, `a0 = 1` is 4.01e12 V/m.
#[test]
fn a_wavelength_in_metres_has_its_frequency() {
    let (critical, wave) = (1.7e27, 0.8e-6);
    let omega_n = (critical * E * E / (EPS_0 * M_E)).sqrt();
    let table = json!({
        "courant": 0.95, "t_end": 40e-15, "units": { "density": critical },
        "grid": { "cells": [400], "size": [20.0 * wave] }, "boundary": { "x": "absorbing" }, "species": []
    });
    let laser = json!({ "a0": 1.0, "wavelength": wave, "position": 6.0 * wave, "fwhm": 3.0 * wave, "polarisation": "left" });
    // In units of the plasma of that density, as the stages have them.
    let expected = TAU * C / wave / omega_n;
    let [rate, most, _] = turning(table, &laser, 10.0 * wave * omega_n / C, 40e-15 * omega_n, expected);
    assert!((rate / expected - 1.0).abs() < 0.02, "{rate}, expected {expected}");
    assert!((most / expected - 1.0).abs() < 0.02, "{most}");
}

/// `phase` is the phase at the focus: a beam that starts one and a half Rayleigh lengths before it has gone through Gouy's
/// `atan(1.5)/2` = 0.49 by then (in two dimensions), and `E_z = a0 w cos(phase)` there as the centre passes.
#[test]
fn the_phase_of_a_beam_is_that_at_its_focus() {
    for phase in [0.0_f64, 60.0] {
        let mut pic = start(
            json!({
                "courant": 0.9, "t_end": 18.8, "precision": "f64", "grid": { "cells": [360, 48], "size": [36.0, 24.0] },
                "laser": [{ "a0": 0.1, "omega": 6.0, "position": 8.0, "fwhm": 5.0, "waist": 2.0, "focus": [26.0, 12.0],
                    "polarisation": "z", "phase": phase }]
            }),
            1,
        );
        let grid = pic.plasma().setup.grid.clone();
        let place = grid.index(260, 24);
        let mut course = Vec::new();
        while pic.outcome().is_none() {
            step(&mut pic, &mut Profiler::off());
            course.push((pic.plasma().time(), pic.plasma().stages.component(Component::Ez).unwrap()[place]));
        }
        // The lattice's group velocity says when the centre is there.
        let sine = |h: f64, k: f64| (0.5 * k * h).sin() / h;
        let k = (0..60).fold(6.0, |k, _| k * sine(grid.dt, 6.0) / sine(grid.h[0], k));
        let group = (k * grid.h[0]).sin() / grid.h[0] / ((6.0 * grid.dt).sin() / grid.dt);
        let arrival = 18.0 / group;
        // E(t) about the arrival is cos(phase - w (t - arrival)).
        let (mut re, mut im) = (0.0, 0.0);
        for (t, e) in course.iter().filter(|(t, _)| (t - arrival).abs() < TAU / 12.0) {
            re += e * (6.0 * (t - arrival)).cos();
            im += e * (6.0 * (t - arrival)).sin();
        }
        let found = im.atan2(re).to_degrees();
        let off = (found - phase + 180.0).rem_euclid(360.0) - 180.0;
        // Beyond the paraxial beam: z/(k^3 W0^4) is 0.3 degrees; the window of half a wave's worth of samples makes 2.
        assert!(off.abs() < 6.0, "phase {phase}: found {found} degrees; Gouy's phase is 28");
    }
}

/// Modes and spectra of any component are in the units of the run: those of J in A/m^2, squares of E in V^2/m^2; and a spectrum
/// over time has its line at the plasma frequency.
#[test]
fn modes_and_spectra_are_in_the_units_of_the_run() {
    let length = 5.314_095e-6 * 6.4;
    let mut pic = start(
        json!({
            "courant": 0.5, "steps": 1000, "units": { "density": 1e24 }, "grid": { "cells": [64], "size": [length] },
            "species": [{ "name": "electrons", "particles_per_cell": 8, "momentum": { "drift": ["1e-3*sin(2*pi*x/lx)", 0, 0] } }],
            "diagnostics": {
                "mode": [{ "name": "current", "component": "jx", "mode": [1] }, { "name": "field", "component": "ex", "mode": [1], "measure": "frequency" }],
                "spectrum": [{ "component": "ex" }, { "component": "ex", "every": 2 }]
            }
        }),
        1,
    );
    (0..1000).for_each(|_| step(&mut pic, &mut Profiler::off()));
    // E^2 of a wave of amplitude E is E^2/4 at each of its two wave numbers.
    let mut size = |component: Component, unit: f64| {
        let values = pic.plasma().stages.component(component).unwrap();
        let row = pic.plasma().setup.grid.row(0);
        let (c, s) = values[row].iter().enumerate().fold((0.0, 0.0), |(c, s), (i, v)| {
            let phase = TAU * i as f64 / 64.0;
            (c + v * phase.cos() / 32.0, s + v * phase.sin() / 32.0)
        });
        c.hypot(s) * unit
    };
    // e n_0 c and m_e c w_n/e (NRL formulary).
    let (current, field) = (size(Component::Jx, 4.803_2e13), size(Component::Ex, 9.615_9e10));
    let message = pic.outcome().unwrap().message;
    assert!(message.contains("e13 +- ") && !message.contains("0.00000") && message.len() < 400, "{message}");
    let records = pic.records().unwrap();
    let curve = |name: &str| {
        records.iter().find_map(|r| if let Record::Curve(c) = r { (c.name == name).then(|| c.lines[0].1.clone()) } else { None }).unwrap()
    };
    assert!((curve("current").last().unwrap() / current - 1.0).abs() < 1e-4, "{:?}, expected {current}", curve("current").last());
    assert!(
        (curve("spectrum_ex")[1] / (field * field / 4.0) - 1.0).abs() < 1e-3,
        "{}, expected {}",
        curve("spectrum_ex")[1],
        field * field / 4.0
    );
    let Some(Record::Field(map)) = records.iter().find(|r| r.name() == "dispersion_ex") else { panic!("there is a spectrum over time") };
    let zellige_engine::record::Values::F64(power) = &map.values else { panic!("in double precision") };
    let [modes, frequencies] = [0, 1].map(|d| map.axes[d].len);
    let line = (0..frequencies).max_by(|a, b| power[a * modes + 1].total_cmp(&power[b * modes + 1])).unwrap();
    let found = line as f64 * map.axes[1].spacing;
    assert!((found - 5.641_46e13).abs() < map.axes[1].spacing, "{found}, in steps of {}", map.axes[1].spacing);
}

/// A wave has its line in the spectrum over time whichever way it goes: one to the right and a shorter one to the left.
#[test]
fn waves_of_both_directions_are_in_the_spectrum() {
    let mut pic = start(
        json!({
            "courant": 0.5, "steps": 512, "grid": { "cells": [32], "size": [TAU] },
            "initial": { "fields": { "ey": "sin(x) + sin(2*x)", "bz": "sin(x) - sin(2*x)" } },
            "diagnostics": { "spectrum": [{ "component": "ey", "every": 1 }] }
        }),
        1,
    );
    (0..512).for_each(|_| step(&mut pic, &mut Profiler::off()));
    let records = pic.records().unwrap();
    let field = records.iter().find_map(|r| if let Record::Field(f) = r { (f.name == "dispersion_ey").then_some(f) } else { None });
    let field = field.unwrap();
    let Values::F64(power) = &field.values else { panic!("{:?}", field.values) };
    for k in [1, 2] {
        let course: Vec<f64> = power.iter().skip(k).step_by(field.axes[0].len).copied().collect();
        let line = (0..course.len()).max_by(|a, b| course[*a].total_cmp(&course[*b])).unwrap();
        // c k, less what the lattice takes of it (1 %), to the nearest of the frequencies.
        assert!((line as f64 * field.axes[1].spacing - k as f64).abs() < field.axes[1].spacing, "{k}: {line}");
        // As strong as the other but for Hann's window, which has 1.4 dB less between two frequencies.
        assert!(course[line] > -0.15, "{k}: 10^{}", course[line]);
    }
}
