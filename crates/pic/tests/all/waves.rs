//! Waves: dispersion, absorption, pulses in the box and from antennas. V3 and V10 of the verification list. Long forms:
//! `cargo test --test pic waves -- --ignored`.

use std::f64::consts::{FRAC_PI_2, PI};

use crate::field_setups::{PERIODIC, alone, divergence, grid, largest, setup};
use zellige_engine::real::RealScalar;
use zellige_pic::grid::{FieldSide, Grid};
use zellige_pic::laser::{Antenna, Envelope, Polarisation, Pulse};
use zellige_pic::stages::Component;
use zellige_pic::stages::cpu::fields::FieldSet;

const ABSORBING: [FieldSide; 2] = [FieldSide::Absorbing; 2];

/// The frequency of a wave on the lattice.
fn frequency(g: &Grid, k: [f64; 2]) -> f64 {
    let squares = (0..2).map(|a| ((0.5 * k[a] * g.h[a]).sin() / g.h[a]).powi(2)).sum::<f64>();
    2.0 / g.dt * (g.dt * squares.sqrt()).asin()
}

/// Sets E and B from `A` at t = -dt/2, dt/2 (out of the plane) and `F` at -dt, 0, dt (in it), as functions of (x, y, t).
fn set<T: RealScalar>(fields: &mut FieldSet<T>, a: impl Fn(f64, f64, f64) -> f64, f: impl Fn(f64, f64, f64) -> f64) {
    let g = fields.grid.clone();
    let mut values: [Vec<f64>; 6] = std::array::from_fn(|_| vec![0.0; g.len()]);
    let dt = g.dt;
    for j in 0..g.nodes(1) as isize {
        for i in 0..g.nodes(0) as isize {
            let at = |di: f64, dj: f64| ((i as f64 + di) * g.h[0], (j as f64 + dj) * g.h[1]);
            let a_at = |di, dj, t| {
                let (x, y) = at(di, dj);
                a(x, y, t)
            };
            let f_at = |di, dj, t| {
                let (x, y) = at(di, dj);
                f(x, y, t)
            };
            let mean = |di, dj| 0.5 * (a_at(di, dj, -0.5 * dt) + a_at(di, dj, 0.5 * dt));
            let position = g.index(i, j);
            values[0][position] = (f_at(0.5, 0.5, 0.0) - f_at(0.5, -0.5, 0.0)) / g.h[1];
            values[1][position] = -(f_at(0.5, 0.5, 0.0) - f_at(-0.5, 0.5, 0.0)) / g.h[0];
            values[2][position] = -(a_at(0.0, 0.0, 0.5 * dt) - a_at(0.0, 0.0, -0.5 * dt)) / dt;
            values[3][position] = (mean(0.0, 1.0) - mean(0.0, 0.0)) / g.h[1];
            values[4][position] = -(mean(1.0, 0.0) - mean(0.0, 0.0)) / g.h[0];
            values[5][position] = (f_at(0.5, 0.5, dt) - f_at(0.5, 0.5, -dt)) / (2.0 * dt);
        }
    }
    for (c, values) in values.iter().enumerate() {
        fields.set(Component::ALL[c], values);
    }
}

/// V3: a sum of waves runs 1000 steps; each one's phase is that of the lattice's dispersion relation.
fn phases_after_1000_steps<T: RealScalar>(tolerance: f64) {
    let g = grid([32, 24], [PERIODIC; 2], [0.2, 0.3], 0.97);
    let modes = [(1, 0), (0, 1), (3, 2), (-5, 4), (7, -1), (12, 3), (16, 5), (2, 11)];
    let k_of = |(mx, my): (i32, i32)| [2.0 * PI * f64::from(mx) / 6.4, 2.0 * PI * f64::from(my) / 7.2];
    let mut fields: FieldSet<T> = FieldSet::new(&setup(&g));
    let sum = |x: f64, y: f64, t: f64| {
        modes
            .iter()
            .map(|m| {
                let k = k_of(*m);
                (k[0] * x + k[1] * y - frequency(&g, k) * t).sin() / frequency(&g, k)
            })
            .sum::<f64>()
    };
    set(&mut fields, sum, |x, y, t| -sum(x, y, t));
    (0..1000).for_each(|_| fields.field().unwrap());
    for (component, shift) in [(Component::Ez, 0.0), (Component::Bz, 0.5)] {
        let values = fields.get(component).unwrap();
        for mode in modes {
            let k = k_of(mode);
            let (mut cosine, mut sine) = (0.0, 0.0);
            for j in 0..24 {
                for i in 0..32 {
                    let phase = k[0] * g.h[0] * (i as f64 + shift) + k[1] * g.h[1] * (j as f64 + shift);
                    cosine += values[g.index(i, j)] * phase.cos();
                    sine += values[g.index(i, j)] * phase.sin();
                }
            }
            let expected = frequency(&g, k) * 1000.0 * g.dt;
            let error = (sine.atan2(cosine) - expected + PI).rem_euclid(2.0 * PI) - PI;
            assert!(error.abs() < tolerance, "{component:?} {mode:?}: phase is off by {error}");
        }
    }
}

#[test]
fn waves_keep_the_phase_of_the_lattice_f64() {
    // 1000 steps of roundings of 1e-16 of the sum of eight waves.
    phases_after_1000_steps::<f64>(1e-11);
}

#[test]
fn waves_keep_the_phase_of_the_lattice_f32() {
    // The case's tolerance: 1000 steps, each off by at most 1e-7.
    phases_after_1000_steps::<f32>(1e-4);
}

/// V10: what is left of a packet of `omega` that meets the layer at `angle`, over what it was. Both polarisations at once.
fn residue(angle: f64, omega: f64) -> [f64; 2] {
    let h = 0.1;
    let across = omega * angle.sin();
    // A period of the wave along y in four rows; nothing along y at normal incidence. Differences along y make of such a wave
    // `2 sin(ky hy/2)/hy` times itself, so that these rows, with the wave number that they have, do what many would do with `across`.
    let (rows, hy) = if angle == 0.0 { (4, 1.0) } else { (4, 2.0 * (0.25 * PI).sin() / across) };
    let ky = if angle == 0.0 { 0.0 } else { 0.5 * PI / hy };
    // So long that waves along the wall are 4e-5 of it: the angle is an angle.
    let sigma = 4.5 / (omega * angle.cos());
    let kx = omega * angle.cos();
    let columns = (10.0 * sigma / h) as usize + 40;
    let centre = 0.5 * columns as f64 * h;
    // Reference in the first half of a domain in which nothing comes back in time: the packet ends in the middle of the other half.
    let [small, large] = [(columns, ABSORBING), (2 * columns, PERIODIC)].map(|(columns, x)| {
        let g = grid([columns, rows], [x, PERIODIC], [h, hy], 0.95);
        let w = frequency(&g, [kx, ky]);
        let velocity = (frequency(&g, [kx + 1e-4, ky]) - frequency(&g, [kx - 1e-4, ky])) / 2e-4;
        let packet =
            |x: f64, y: f64, t: f64| (-0.5 * ((x - centre - velocity * t) / sigma).powi(2)).exp() * (kx * x + ky * y - w * t).sin() / w;
        let mut fields: FieldSet<f64> = FieldSet::new(&setup(&g));
        set(&mut fields, packet, packet);
        let most = [2, 5].map(|c| largest(&g, &fields.get(Component::ALL[c]).unwrap()));
        // Until what comes back is in the middle.
        let steps = (2.0 * centre / velocity / g.dt) as usize;
        (0..steps).for_each(|_| fields.field().unwrap());
        (most, fields)
    });
    let mut left = [0.0_f64; 2];
    for (k, c) in [2, 5].into_iter().enumerate() {
        let (own, free) = (small.1.get(Component::ALL[c]).unwrap(), large.1.get(Component::ALL[c]).unwrap());
        for j in 0..rows as isize {
            for i in 10..columns as isize - 10 {
                let there = free[large.1.grid.index(i, j)];
                left[k] = left[k].max((own[small.1.grid.index(i, j)] - there).abs() / small.0[k]);
            }
        }
    }
    left
}

fn absorbs(omega: f64, angles: &[f64]) {
    for degrees in angles {
        let left = alone(|| residue(degrees.to_radians(), omega));
        println!("omega {omega}, {degrees} degrees: {:.1e} and {:.1e} of the amplitude are left", left[0], left[1]);
        let limit = if *degrees < 60.0 { 1e-3 } else { 1e-2 };
        assert!(left.iter().all(|r| *r < limit), "omega {omega}, {degrees} degrees: {left:?}");
    }
}

#[test]
fn layers_absorb() {
    // A packet is as long as its waves, and the more so the more it slants: at the lowest frequency only the shortest ones.
    for (omega, angles) in [(1.0, &[0.0, 30.0][..]), (3.0, &[0.0, 30.0, 45.0, 60.0]), (8.0, &[0.0, 30.0, 45.0, 60.0])] {
        absorbs(omega, angles);
    }
}

#[test]
#[ignore = "ten seconds"]
fn layers_absorb_long_waves_at_any_angle() {
    absorbs(1.0, &[45.0, 60.0]);
}

fn pulse(g: &Grid) -> Pulse {
    let mut pulse = Pulse {
        a0: 1.0,
        omega: 10.0,
        phase: 0.4,
        polarisation: Polarisation::Linear(0.6),
        envelope: Envelope::Gaussian { fwhm: 3.0 },
        waist: Some(4.0),
        direction: 0.0,
        focus: [10.0, 16.0],
        arrival: 0.0,
    };
    pulse.arrival = pulse.arrival_from(0.0, g);
    pulse
}

fn launched<T: RealScalar>(g: &Grid, pulse: &Pulse) -> FieldSet<T> {
    let mut fields: FieldSet<T> = FieldSet::new(&setup(g));
    let mut values: [Vec<f64>; 6] = std::array::from_fn(|_| vec![0.0; g.len()]);
    pulse.add(g, 0.0, &mut values);
    for (c, values) in values.iter().enumerate() {
        fields.set(Component::ALL[c], values);
    }
    fields
}

/// A beam at any angle has neither charge nor magnetic charge, and strength a0.
#[test]
fn pulses_in_the_box_are_free_of_divergence() {
    let g = grid([400, 320], [PERIODIC; 2], [0.05, 0.05], 0.95);
    for direction in [0.0, 0.5, FRAC_PI_2, PI, -2.0] {
        let pulse = Pulse { direction, focus: [10.0, 8.0], ..pulse(&g) };
        let fields: FieldSet<f64> = launched(&g, &pulse);
        let get = |c| fields.get(c).unwrap();
        for (x, y, corner) in [(Component::Ex, Component::Ey, true), (Component::Bx, Component::By, false)] {
            let divergence = divergence(&g, &get(x), &get(y), corner);
            for j in 2..318 {
                for i in 2..398 {
                    // Roundings of fields of order 10 over h = 0.05.
                    assert!(divergence[g.index(i, j)].abs() < 1e-11, "{direction} ({i}, {j})");
                }
            }
        }
        // Of a sine `e0^2 - e+ e-` is its amplitude times `sin (k h)`, wherever it is met, squared; k is that of the grid.
        let (e, [x, y]) = (get(Component::Ez), [direction.cos(), direction.sin()].map(f64::abs));
        let k = (0..60).fold(10.0, |k, _| k * 10.0 / frequency(&g, [k * x, k * y]));
        let ([di, dj], kh): ([isize; 2], f64) = if x > y { ([1, 0], 0.05 * k * x) } else { ([0, 1], 0.05 * k * y) };
        let squares = (2..318).flat_map(|j| (2..398).map(move |i| (i, j)));
        let squares = squares.map(|(i, j)| e[g.index(i, j)].powi(2) - e[g.index(i + di, j + dj)] * e[g.index(i - di, j - dj)]);
        let out = squares.fold(0.0, f64::max).sqrt() / kh.sin() / (10.0 * 0.6_f64.sin());
        // The Gaussian's curvature adds `1/(2 k^2 s^2)` of it; the focus, whose corrections are 1/(k W0)^2 or 6e-4, is the tolerance.
        let s = 3.0 / (8.0 * 2.0_f64.ln()).sqrt();
        let expected = 1.0 + 0.5 / (10.0 * s).powi(2);
        assert!((out - expected).abs() < 1e-3, "{direction}: {out}, expected {expected}");
    }
}

/// V10: a focused pulse of a0 = 1 in vacuum: energy, group velocity, and the waist after it has passed the focus.
#[test]
fn a_focused_pulse_spreads_as_it_should() {
    alone(spreads);
}

fn spreads() {
    // Four radii of the widest beam to each side: what is beyond is 1e-15 of it.
    let (length, height, waist) = (42.0, 24.0, 2.0);
    let (columns, rows) = (840, 80);
    let g = grid([columns, rows], [PERIODIC; 2], [length / columns as f64, height / rows as f64], 0.98);
    let mut pulse = Pulse { envelope: Envelope::Gaussian { fwhm: 4.0 }, waist: Some(waist), focus: [10.0, 0.5 * height], ..pulse(&g) };
    pulse.arrival = 0.0;
    let mut fields: FieldSet<f64> = launched(&g, &pulse);
    let energy = |f: &mut FieldSet<f64>| {
        f.begin(true).unwrap();
        (f.electric().iter().sum::<f64>(), f.magnetic().iter().sum::<f64>())
    };
    // Centre along x, and the radius from the second moment across: 2 sigma of the intensity.
    let shape = |f: &FieldSet<f64>| {
        let (e, mut sums) = (f.get(Component::Ez).unwrap(), [0.0; 3]);
        for j in 0..rows as isize {
            for i in 0..columns as isize {
                let (x, y) = (i as f64 * g.h[0], j as f64 * g.h[1] - 0.5 * height);
                let w = e[g.index(i, j)].powi(2);
                sums = [sums[0] + w, sums[1] + w * x, sums[2] + w * y * y];
            }
        }
        (sums[1] / sums[0], 2.0 * (sums[2] / sums[0]).sqrt())
    };
    let (first, start) = (energy(&mut fields), shape(&fields));
    // To the Rayleigh length, where it is wider by the root of 2.
    let time = 20.0;
    let steps = (time / g.dt) as usize;
    (0..steps).for_each(|_| fields.field().unwrap());
    let (last, end) = (energy(&mut fields), shape(&fields));
    let total = |e: (f64, f64)| e.0 + e.1;
    assert!((total(last) / total(first) - 1.0).abs() < 1e-3, "energy {first:?} {last:?}");
    // B at whole times is the mean of two half times.
    assert!((first.0 / first.1 * (5.0 * g.dt).cos().powi(2) - 1.0).abs() < 1e-2);
    let k = (0..60).fold(10.0, |k, _| k * 10.0 / frequency(&g, [k, 0.0]));
    let group = (frequency(&g, [k + 1e-4, 0.0]) - frequency(&g, [k - 1e-4, 0.0])) / 2e-4;
    // A beam's centre is slower by the mean of ky^2/2k^2 = 1/(2 k^2 W0^2) = 1.25e-3.
    let group = group * (1.0 - 0.5 / (10.0 * waist).powi(2));
    let speed = (end.0 - start.0) / (steps as f64 * g.dt);
    assert!((speed / group - 1.0).abs() < 1e-3, "{speed} {group}");
    let rayleigh = 10.0 * waist * waist / 2.0;
    let expected = waist * (1.0 + ((end.0 - 10.0) / rayleigh).powi(2)).sqrt();
    assert!((start.1 / waist - 1.0).abs() < 3e-2 && (end.1 / expected - 1.0).abs() < 3e-2, "{start:?} {end:?} {expected}");
}

/// A pulse goes one way: what runs backwards after the start is far below it.
#[test]
fn a_pulse_starts_without_a_backward_wave() {
    let g = grid([1200, 1], [ABSORBING, PERIODIC], [0.05, 0.05], 0.95);
    let mut pulse = Pulse { waist: None, focus: [35.0, 0.0], polarisation: Polarisation::Circular(true), ..pulse(&g) };
    pulse.envelope = Envelope::Gaussian { fwhm: 5.0 };
    let mut fields: FieldSet<f64> = launched(&g, &pulse);
    (0..(20.0 / g.dt) as usize).for_each(|_| fields.field().unwrap());
    for c in [Component::Ey, Component::Ez] {
        let e = fields.get(c).unwrap();
        let backward = (0..500).map(|i| e[g.index(i, 0)].abs()).fold(0.0, f64::max);
        // The envelope is wide beside a period: (1/(w0 fwhm))^2 of the strength 10 at most.
        assert!(backward < 4e-3, "{c:?}: {backward}");
    }
}

/// Antennas radiate a0 at any angle, both polarisations, into the box only (the rest is absorbed), and leave no charge.
#[test]
fn antennas_radiate_the_strength_that_is_asked_for() {
    for (node, direction) in [(14, 0.0), (14, 0.5), (266, PI)] {
        alone(|| radiates(node, direction));
    }
}

fn radiates(node: usize, direction: f64) {
    let h = 0.06;
    let ky = 10.0 * f64::sin(direction);
    let flat = direction != 0.5;
    let (rows, hy) = if flat { (4, h) } else { (20, 2.0 * PI / ky.abs() / 20.0) };
    let g = grid([280, rows], [ABSORBING, PERIODIC], [h, hy], 0.95);
    let mut pulse = Pulse { waist: None, direction, polarisation: Polarisation::Circular(false), ..pulse(&g) };
    pulse.envelope = Envelope::Ramps { rise: 25.0, flat: 14.0, fall: 25.0 };
    pulse.focus = [node as f64 * h, 0.0];
    if !flat {
        // The wave number on the lattice differs a little from w0 sin(angle): the period is that of the lattice.
        pulse.direction = periodic_direction(&g, ky);
    }
    let antenna = Antenna { pulse, axis: 0, node };
    let mut fields: FieldSet<f64> = FieldSet::new(&setup(&g));
    let mut strengths = Vec::new();
    let steps = (94.0 / g.dt) as u64;
    for n in 0..steps {
        fields.begin(false).unwrap();
        fields.current(&antenna.sheets(&g, n)).unwrap();
        fields.field().unwrap();
        let t = n as f64 * g.dt;
        if t > 36.0 && t < 42.0 {
            // The wave of that ky along one column, so that other waves of the start do not count; at normal
            // incidence both components at one corner, a quarter period apart.
            let wave = |c: Component, shift: f64| {
                let (values, n) = (fields.get(c).unwrap(), rows as f64);
                let (mut cosine, mut sine) = (0.0, 0.0);
                for j in 0..rows {
                    let phase = ky * g.h[1] * (j as f64 + shift);
                    cosine += values[g.index(140, j as isize)] * phase.cos() / n;
                    sine += values[g.index(140, j as isize)] * phase.sin() / n;
                }
                cosine.hypot(sine)
            };
            if flat {
                strengths.push(wave(Component::Ey, 0.5).hypot(wave(Component::Ez, 0.0)) / 10.0);
            } else {
                // B at whole times is the mean of two half times.
                strengths.extend([2.0 * wave(Component::Bz, 0.5) / (5.0 * g.dt).cos() / 10.0, 2.0 * wave(Component::Ez, 0.0) / 10.0]);
            }
        }
    }
    // A layer returns less than 1e-3, and so much at most stands on the wave.
    assert!(strengths.len() > 100 && strengths.iter().all(|s| (s - 1.0).abs() < 2e-3), "{direction}: {strengths:?}");
    let left: Vec<f64> = (0..6).map(|c| largest(&g, &fields.get(Component::ALL[c]).unwrap())).collect();
    // A slanted front in a periodic box also excites waves along the wall, which stay.
    assert!(!flat || left.iter().all(|v| *v < 0.02), "{direction}: {left:?}");
    let charge = divergence(&g, &fields.get(Component::Ex).unwrap(), &fields.get(Component::Ey).unwrap(), true);
    for j in 0..rows as isize {
        assert!(charge[g.index(node as isize, j)].abs() < 1e-9, "{direction}: charge on the sheet");
    }
}

/// The angle at which a wave of frequency 10 has the wave number `ky` on the lattice.
fn periodic_direction(g: &Grid, ky: f64) -> f64 {
    let (mut low, mut high) = (0.0, 20.0);
    for _ in 0..100 {
        let kx = 0.5 * (low + high);
        if frequency(g, [kx, ky]) > 10.0 { high = kx } else { low = kx }
    }
    ky.atan2(low)
}
