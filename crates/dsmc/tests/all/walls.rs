//! Walls and inflow against closed forms; free-molecular drag of bodies, by particles that come from the sides of a box, fly past
//! the outline and leave.

use std::f64::consts::PI;

use zellige_engine::expr::{Expr, erf, erfc};
use zellige_engine::parallel::{indices, map};
use zellige_engine::rng::{Philox, open_f64};

use zellige_dsmc::gas::vibration::Vibration;
use zellige_dsmc::geometry::{Curve, Flight, FlightEnd, Form, Gas, Geometry, Outlines, Shape};
use zellige_dsmc::grid::{Grid, Side};
use zellige_dsmc::walls::formulae::{rotation_three, vibration_level};
use zellige_dsmc::walls::inflow::{Stream, flux, normal_speed};
use zellige_dsmc::walls::tally::{BodyLoad, Flux, Load, Reference};
use zellige_dsmc::walls::{BOLTZMANN, Model, Molecule, Motion, Wall, temperatures};

const ARGON: Molecule = Molecule { mass: 66.3e-27, rotation: 0, vibration: Vibration::NONE };

/// Uniform numbers of one purpose.
fn dice(seed: u64) -> impl FnMut() -> f64 {
    let philox = Philox::new(0xfff1, seed);
    let mut count = 0;
    move || {
        count += 1;
        let [a, b, ..] = philox.draw(0, count);
        open_f64(a, b)
    }
}

/// Means of some quantities over `n` draws, with their standard errors.
fn means<const N: usize>(n: u32, mut draw: impl FnMut() -> [f64; N]) -> [(f64, f64); N] {
    let mut sums = [(0.0, 0.0); N];
    for _ in 0..n {
        for (sum, x) in sums.iter_mut().zip(draw()) {
            *sum = (sum.0 + x, sum.1 + x * x);
        }
    }
    let n = f64::from(n);
    sums.map(|(a, b)| (a / n, ((b / n - (a / n).powi(2)).max(0.0) / n).sqrt()))
}

/// Within five standard errors and the round-off of a sum of all draws: of some hundred comparisons with fixed seeds none should
/// fail by chance.
fn agrees(found: (f64, f64), expected: f64, what: &str) {
    assert!((found.0 - expected).abs() <= 5.0 * found.1 + 1e-10 * expected.abs(), "{what}: {found:?}, expected {expected}");
}

#[test]
fn the_flux_of_a_drifting_gas() {
    assert!((flux(0.0) - 0.5 / PI.sqrt()).abs() < 1e-16);
    for s in [0.1, 0.7, 2.0, 6.0] {
        assert!((flux(s) - flux(-s) - s).abs() < 1e-15 * (1.0 + s), "what passes one way less the other way is the drift");
    }
    // Asymptotically exp(-s^2) / (4 sqrt(pi) s^2) (1 - 3 / s^2) against the flow.
    let s = 5.0_f64;
    let far = (-s * s).exp() / (4.0 * PI.sqrt() * s * s);
    assert!((flux(-s) / far - 1.0).abs() < 3.5 / (s * s), "{}", flux(-s) / far);
}

#[test]
fn speeds_of_what_flows_in_have_the_moments_of_the_flux() {
    for (k, s) in [-6.0, -1.5, -0.7, -0.3, 0.0, 0.4, 1.0, 3.0, 20.0].into_iter().enumerate() {
        // I_k = integral of x^k exp(-(x - s)^2) over x > 0, by its recurrence.
        let below = if s < 0.0 { erfc(-s) } else { 1.0 + erf(s) };
        let i0 = 0.5 * PI.sqrt() * below;
        let i1 = PI.sqrt() * flux(s);
        let (i2, mut u) = (s * i1 + 0.5 * i0, dice(k as u64));
        let i3 = s * i2 + i1;
        let found = means(200_000, || {
            let x = normal_speed(s, &mut u);
            assert!(x > 0.0);
            [x, x * x]
        });
        agrees(found[0], i2 / i1, &format!("mean at {s}"));
        agrees(found[1], i3 / i1, &format!("mean square at {s}"));
    }
    // At rest the mean energy of what comes is 2 kT, half of it along the normal.
    let gas = Stream { density: 1e20, temperature: 300.0, velocity: [0.0; 3], mass: ARGON.mass };
    let mut u = dice(99);
    let kt = BOLTZMANN * 300.0;
    let found = means(200_000, || {
        let v = gas.draw([0.6, -0.8], &mut u);
        let n = 0.6 * v[0] - 0.8 * v[1];
        [0.5 * ARGON.mass * n * n / kt, 0.5 * ARGON.mass * v.iter().map(|x| x * x).sum::<f64>() / kt]
    });
    agrees(found[0], 1.0, "normal energy");
    agrees(found[1], 2.0, "energy");
    assert!((gas.flux([1.0, 0.0]) / (0.25e20 * (8.0 * kt / (PI * ARGON.mass)).sqrt()) - 1.0).abs() < 1e-14, "n cbar / 4");
}

#[test]
fn mirrors_keep_energy_and_speed_along_the_wall() {
    let wall = Wall { model: Model::Specular, temperature: 300.0, velocity: [50.0, 0.0, 3.0] };
    let before = Motion { velocity: [-300.0, 200.0, 77.0], rotation: 12.0, level: 3 };
    let after = wall.reflect(&ARGON, [1.0, 0.0], &before, &mut || panic!("no chance in a mirror"));
    assert_eq!(after, Motion { velocity: [300.0, 200.0, 77.0], ..before });
    // The limits of the others are mirrors to round-off.
    for model in [Model::Diffuse { accommodation: 0.0 }, Model::Cll { normal: 0.0, tangential: 0.0 }] {
        let after = Wall { model, velocity: [0.0; 3], ..wall }.reflect(&ARGON, [1.0, 0.0], &before, &mut dice(1));
        assert_eq!(after, Motion { velocity: [300.0, 200.0, 77.0], ..before }, "{model:?}");
    }
    // Accommodation 2 of the tangential momentum sends it back.
    let back = Wall { model: Model::Cll { normal: 0.0, tangential: 2.0 }, velocity: [0.0; 3], ..wall };
    let after = back.reflect(&ARGON, [1.0, 0.0], &before, &mut dice(1)).velocity;
    assert!((after[0] - 300.0).abs() < 1e-9 && (after[1] + 200.0).abs() < 1e-9 && (after[2] + 77.0).abs() < 1e-9, "{after:?}");
}

#[test]
fn a_diffuse_wall_gives_its_temperature_and_its_motion() {
    let nitrogen = Molecule { mass: 46.5e-27, rotation: 2, vibration: Vibration::single(3371.0) };
    let rotor = Molecule { rotation: 3, ..nitrogen };
    let (t, n) = (2000.0, [0.8, 0.6]);
    let kt = BOLTZMANN * t;
    let theta = 3371.0 / t;
    for (k, molecule) in [nitrogen, rotor].into_iter().enumerate() {
        // A full Cercignani-Lampis wall is a diffuse one.
        for (j, model) in [Model::Diffuse { accommodation: 1.0 }, Model::Cll { normal: 1.0, tangential: 1.0 }].into_iter().enumerate() {
            let wall = Wall { model, temperature: t, velocity: [-60.0, 80.0, 30.0] };
            let mut u = dice(10 + 2 * k as u64 + j as u64);
            let before = Motion { velocity: [-900.0, 100.0, 400.0], rotation: 50.0, level: 7 };
            let found = means(200_000, || {
                let after = wall.reflect(&molecule, n, &before, &mut u);
                let [x, y, z] = after.velocity;
                let (away, along) = (x * n[0] + y * n[1], y * n[0] - x * n[1]);
                assert!(away > 0.0);
                let c = |v: f64| 0.5 * molecule.mass * v * v / kt;
                [c(away), along, c(along - 100.0), z, c(z - 30.0), after.rotation / t, (after.rotation / t).powi(2), f64::from(after.level)]
            });
            let dof = f64::from(molecule.rotation);
            let level = 1.0 / (theta.exp() - 1.0);
            let expected = [1.0, 100.0, 0.5, 30.0, 0.5, 0.5 * dof, 0.25 * dof * (dof + 2.0), level];
            for (f, e) in found.into_iter().zip(expected) {
                agrees(f, e, &format!("{model:?} {dof}: {expected:?}"));
            }
        }
    }
}

#[test]
fn partial_accommodation_has_its_moments() {
    let t = 300.0;
    let kt = BOLTZMANN * t;
    let c = (2.0 * kt / ARGON.mass).sqrt();
    let before = Motion { velocity: [-1.5 * c, 0.8 * c, 0.6 * c], rotation: 0.0, level: 0 };
    for (k, (normal, tangential)) in [(0.3, 0.6), (0.9, 1.4), (0.0, 1.0), (1.0, 0.0)].into_iter().enumerate() {
        let wall = Wall { model: Model::Cll { normal, tangential }, temperature: t, velocity: [0.0; 3] };
        let mut u = dice(30 + k as u64);
        let found = means(200_000, || {
            let [x, y, z] = wall.reflect(&ARGON, [1.0, 0.0], &before, &mut u).velocity.map(|v| v / c);
            [x * x, y, z, y * y + z * z]
        });
        // alpha_n of the energy of the normal, sigma_t of the momentum along the wall, sigma_t (2 - sigma_t) of that energy.
        let kept = 1.0 - tangential;
        let expected = [normal + (1.0 - normal) * 2.25, 0.8 * kept, 0.6 * kept, tangential * (2.0 - tangential) + kept * kept];
        for (f, e) in found.into_iter().zip(expected) {
            agrees(f, e, &format!("{normal} {tangential}"));
        }
    }
    let wall = Wall { model: Model::Diffuse { accommodation: 0.4 }, temperature: t, velocity: [0.0; 3] };
    let mut u = dice(40);
    let found = means(200_000, || {
        let [x, y, _] = wall.reflect(&ARGON, [1.0, 0.0], &before, &mut u).velocity.map(|v| v / c);
        [x * x, y]
    });
    agrees(found[0], 0.4 + 0.6 * 2.25, "diffuse in part: energy");
    agrees(found[1], 0.6 * 0.8, "diffuse in part: momentum");
}

/// A Cercignani-Lampis wall that moves takes a part of the difference to its own velocity; so does the velocity of gas that drifts
/// along a side all come in.
#[test]
fn partial_accommodation_is_to_the_motion_of_the_wall_and_drifts_come_in() {
    let (n, tangential) = ([0.8, 0.6], 0.4);
    // Along (-0.6, 0.8) at 100 m/s, and along z.
    let wall = Wall { model: Model::Cll { normal: 0.7, tangential }, temperature: 300.0, velocity: [-60.0, 80.0, 30.0] };
    let before = Motion { velocity: [-500.0 * 0.8 + 240.0 * -0.6, -500.0 * 0.6 + 240.0 * 0.8, -150.0], rotation: 0.0, level: 0 };
    let mut u = dice(45);
    let found = means(200_000, || {
        let [x, y, z] = wall.reflect(&ARGON, n, &before, &mut u).velocity;
        [y * n[0] - x * n[1], z]
    });
    for (found, [wall, before]) in found.into_iter().zip([[100.0, 240.0], [30.0, -150.0]]) {
        agrees(found, wall + (1.0 - tangential) * (before - wall), "along the wall");
    }
    let gas = Stream { density: 1e20, temperature: 300.0, velocity: [-60.0 + 160.0, 80.0 + 120.0, -70.0], mass: ARGON.mass };
    let found = means(200_000, || {
        let [x, y, z] = gas.draw(n, &mut u);
        [y * n[0] - x * n[1], z]
    });
    agrees(found[0], 100.0, "drift along the side");
    agrees(found[1], -70.0, "drift along z");
}

#[test]
fn gas_at_the_walls_temperature_stays_as_it_is_and_collisions_are_reciprocal() {
    let molecule = Molecule { mass: 46.5e-27, rotation: 3, vibration: Vibration::single(500.0) };
    let t = 400.0;
    let c = (2.0 * BOLTZMANN * t / molecule.mass).sqrt();
    let gas = Stream { density: 1.0, temperature: t, velocity: [0.0; 3], mass: molecule.mass };
    let models =
        [Model::Cll { normal: 0.4, tangential: 0.7 }, Model::Cll { normal: 0.8, tangential: 1.6 }, Model::Diffuse { accommodation: 0.5 }];
    for (k, model) in models.into_iter().enumerate() {
        for dof in [2, 3] {
            let molecule = Molecule { rotation: dof, ..molecule };
            let wall = Wall { model, temperature: t, velocity: [0.0; 3] };
            let mut u = dice(50 + 2 * k as u64 + u64::from(dof));
            let found = means(100_000, || {
                // Molecules that come to a wall have the distribution of a flux, with the sign turned.
                let v = gas.draw([-1.0, 0.0], &mut u);
                let r = if dof == 2 { -u().ln() } else { rotation_three(1.0, 0.0, u(), u(), u()) };
                let before = Motion { velocity: v, rotation: r * t, level: vibration_level(500.0 / t, u()) as u32 };
                let after = wall.reflect(&molecule, [1.0, 0.0], &before, &mut u);
                let (a, b) = (before.velocity.map(|x| x / c), after.velocity.map(|x| x / c));
                let e = after.rotation / t;
                [
                    b[0] * b[0],
                    b[0].powi(4),
                    b[1] * b[1],
                    b[2].powi(4),
                    e,
                    e * e,
                    f64::from(after.level),
                    // Detailed balance: exchanging before and after changes no correlation.
                    -a[0] * b[0].powi(3) + b[0] * a[0].powi(3),
                    r * e * e - e * r * r,
                    // Odd moments turn their sign with time.
                    a[1] * b[1].powi(3) - b[1] * a[1].powi(3),
                ]
            });
            let half = 0.5 * f64::from(dof);
            let level = 1.0 / ((500.0 / t).exp() - 1.0);
            let expected = [1.0, 2.0, 0.5, 0.75, half, half * (half + 1.0), level, 0.0, 0.0, 0.0];
            for (j, (f, e)) in found.into_iter().zip(expected).enumerate() {
                agrees(f, e, &format!("{model:?} {dof}: moment {j}"));
            }
        }
    }
}

/// Reference by which loads of a stream at an angle are made coefficients.
fn reference(gas: &Stream, angle: f64) -> Reference {
    let rho = gas.density * gas.mass;
    let speed = gas.velocity[0].hypot(gas.velocity[1]);
    Reference { rho, speed, pressure: gas.density * BOLTZMANN * gas.temperature, direction: [angle.cos(), angle.sin()] }
}

/// Argon past bodies without collisions, `count` particles from the sides of the box: what each segment gets per area and time, and
/// the number of particles that it got.
fn free_molecular(grid: &Grid, curves: &[Curve], wall: &Wall, gas: &Stream, count: u64) -> (Geometry, Vec<Flux>, Vec<f64>) {
    let geometry = Geometry::new(grid, [false; 2], &Outlines::new(curves, grid).unwrap());
    let rates = Side::ALL.map(|side| gas.flux(side.normal()) * grid.length(1 - side.axis));
    let total: f64 = rates.iter().sum();
    let chunk = 10_000;
    let felt = map(indices((count / chunk) as usize), |_, task| {
        let mut u = dice(1000 + task as u64);
        let mut felt = vec![Flux::default(); geometry.segments().len()];
        for _ in 0..chunk {
            let mut pick = u() * total;
            let side = Side::ALL.into_iter().find(|s| {
                pick -= rates[s.index()];
                pick < 0.0
            });
            let side = side.unwrap_or(Side::ALL[0]);
            let (other, mut v) = (1 - side.axis, gas.draw(side.normal(), &mut u));
            let position = u() * grid.cells[other] as f64;
            let mut flight = Flight { cell: [0; 2], offset: [0.0; 2], path: [0.0; 2], left: None };
            flight.cell[side.axis] = if side.upper { grid.cells[side.axis] - 1 } else { 0 };
            flight.offset[side.axis] = if side.upper { 1.0 } else { 0.0 };
            (flight.cell[other], flight.offset[other]) = (position as usize, position.fract());
            loop {
                // Far enough to leave the box.
                let speed = v[0].hypot(v[1]);
                flight.path = [0, 1].map(|d| v[d] / speed * 4.0 * grid.length(0).hypot(grid.length(1)) / grid.h[d]);
                match geometry.advance(&mut flight) {
                    FlightEnd::Segment { segment, normal, .. } => {
                        let before = Motion { velocity: v, rotation: 0.0, level: 0 };
                        let after = wall.reflect(&ARGON, normal, &before, &mut u);
                        let energy = before.energy(&ARGON) - after.energy(&ARGON);
                        let [px, py, pz] = [0, 1, 2].map(|k| ARGON.mass * (v[k] - after.velocity[k]));
                        let s = &geometry.segments()[segment as usize];
                        let (middle, per_metre) = (s.middle(), s.per_metre());
                        let position = |d: usize| grid.origin[d] + (flight.cell[d] as f64 + flight.offset[d]) * grid.h[d] - middle[d];
                        let along = position(0) * per_metre[0] + position(1) * per_metre[1];
                        let got = [1.0, px, py, pz, energy, -along * (px * s.normal[0] + py * s.normal[1])];
                        felt[segment as usize].iter_mut().zip(got).for_each(|(sum, x)| *sum += x);
                        v = after.velocity;
                    }
                    FlightEnd::Edge { .. } => break,
                    FlightEnd::Nothing => panic!("a path that leaves the box ends inside"),
                }
            }
        }
        felt
    });
    let mut sum = vec![Flux::default(); geometry.segments().len()];
    for part in &felt {
        sum.iter_mut().flatten().zip(part.iter().flatten()).for_each(|(s, p)| *s += p);
    }
    let counts = sum.iter().map(|f| f[0]).collect();
    for (flux, segment) in sum.iter_mut().zip(geometry.segments()) {
        *flux = flux.map(|f| f * total / count as f64 / segment.length());
    }
    (geometry, sum, counts)
}

/// A stream of argon with a speed ratio, at an angle.
fn stream(s: f64, angle: f64) -> Stream {
    let mut gas = Stream { density: 1e20, temperature: 200.0, velocity: [0.0; 3], mass: ARGON.mass };
    let u = s * gas.thermal_speed();
    gas.velocity = [u * angle.cos(), u * angle.sin(), 0.0];
    gas
}

#[test]
fn free_molecular_drag_of_a_cylinder() {
    let grid = Grid { cells: [24, 23], h: [0.0125, 0.013], origin: [-0.15, -0.1495], dimensions: 2 };
    let circle = Shape::Circle { centre: [0.0; 2], radius: 0.12, segments: 240 }.curve("c", "c", Gas::Outside, 0).unwrap();
    // Speed ratio, wall over gas temperature, Cd, stagnation Ch: the integrals of the local coefficients (Bird 1994, section 7.6).
    for (s, ratio, drag, heat) in
        [(0.5, 1.0, 8.4271, 2.720), (2.0, 1.0, 3.0583, 1.125), (5.0, 1.0, 2.3381, 1.0200), (9.1287, 2.5, 2.2591, 0.970)]
    {
        let gas = stream(s, 0.3);
        let wall = Wall { model: Model::Diffuse { accommodation: 1.0 }, temperature: ratio * gas.temperature, velocity: [0.0; 3] };
        let (geometry, flux, counts) = free_molecular(&grid, std::slice::from_ref(&circle), &wall, &gas, 150_000);
        let u = s * gas.thermal_speed();
        let reference = reference(&gas, 0.3);
        let (dynamic, body) = (reference.dynamic(), &geometry.bodies()[0]);
        let load = BodyLoad::new(geometry.segments(), |k| flux[k], body, body.centre());
        let [cd, cl] = reference.drag(load.force, 0.24);
        // Every particle that comes brings of the order of its own momentum: the error of N of them is 1 / sqrt N, of slow ones
        // times the ratio of their momentum to the drag's.
        let hits: f64 = counts.iter().sum();
        let sigma = (1.0 + 1.0 / s) / hits.sqrt();
        assert!((cd / drag - 1.0).abs() < 4.0 * sigma + 2e-4, "Cd at {s}: {cd}, {drag}, sigma {sigma}");
        assert!(cl.abs() < 4.0 * sigma * drag, "lift at {s}: {cl}");
        assert!((load.moment / (dynamic * 0.24 * 0.12)).abs() < 4.0 * sigma * drag, "moment at {s}");
        // Heat about the stagnation point, within 9 degrees of the stream: the cosine there is 1 - 0.004 on average.
        let front = geometry.segments().iter().zip(flux.iter().zip(&counts)).filter(|(g, _)| {
            let towards = -(g.normal[0] * 0.3_f64.cos() + g.normal[1] * 0.3_f64.sin());
            towards > 0.9877
        });
        let (q, area, n) = front.fold((0.0, 0.0, 0.0), |(q, a, n), (g, (f, c))| (q + f[4] * g.length(), a + g.length(), n + c));
        let ch = q / area / (dynamic * u);
        assert!((ch / heat - 1.0).abs() < 0.006 + 4.0 * (1.0 + 1.0 / s) / n.sqrt(), "Ch at {s}: {ch}, {heat}, {n}");
    }
}

#[test]
fn free_molecular_loads_of_a_plate() {
    let grid = Grid { cells: [16, 16], h: [0.02, 0.02], origin: [-0.16, -0.16], dimensions: 2 };
    let plate = |a: [f64; 2], b: [f64; 2]| {
        let c = Curve {
            name: "p".into(),
            origin: "p".into(),
            vertices: vec![a, b],
            form: Form::Plate,
            gas: Gas::Outside,
            wall: 0,
            numbers: vec![],
            walls: Vec::new(),
        };
        vec![c]
    };
    let diffuse = |t: f64| Wall { model: Model::Diffuse { accommodation: 1.0 }, temperature: t, velocity: [0.0; 3] };
    for (s, drag) in [(0.5, 8.4255), (1.0, 4.7157), (2.0, 3.1360), (8.0, 2.2372)] {
        let gas = stream(s, 0.0);
        // Across the stream: along a line of the grid.
        let (geometry, flux, counts) = free_molecular(&grid, &plate([0.0, -0.12], [0.0, 0.12]), &diffuse(200.0), &gas, 80_000);
        let body = &geometry.bodies()[0];
        let load = BodyLoad::new(geometry.segments(), |k| flux[k], body, body.centre());
        let hits: f64 = counts.iter().sum();
        let sigma = (1.0 + 1.0 / s) / hits.sqrt();
        let [cd, _] = reference(&gas, 0.0).drag(load.force, body.width([1.0, 0.0]));
        assert!((cd / drag - 1.0).abs() < 4.0 * sigma, "Cd at {s}: {cd}, {drag}");
        // Both sides see the flux of their own direction.
        for ((segment, flux), count) in geometry.segments().iter().zip(&flux).zip(&counts) {
            let exact = gas.flux(segment.normal.map(|x| -x));
            let one = gas.flux([1.0, 0.0]) / hits;
            assert!((flux[0] - exact).abs() < 5.0 * exact / count.max(1.0).sqrt() + 5.0 * one, "{flux:?} {exact}");
        }
        // Along it: Cf = 1 / (sqrt(pi) S) on each side, and the pressure of a gas at rest, n k T.
        let (geometry, flux, counts) = free_molecular(&grid, &plate([-0.12, 0.005], [0.12, 0.005]), &diffuse(200.0), &gas, 80_000);
        for ((segment, flux), count) in geometry.segments().iter().zip(&flux).zip(&counts) {
            let [cp, cf, ch] = reference(&gas, 0.0).coefficients(&Load::new(flux, segment));
            let along = cf * (segment.ends[1][0] - segment.ends[0][0]).signum();
            let sigma = (1.0 + 1.0 / s) / count.sqrt();
            assert!((along * PI.sqrt() * s - 1.0).abs() < 4.0 * sigma, "Cf at {s}: {along}");
            // The pressure's unit is n k T, 1 / S^2 of the dynamic pressure's.
            assert!((cp * s * s).abs() < 4.0 * sigma, "Cp at {s}: {cp}");
            // S_n = 0: Ch = (S^2 + 5/2 - 2 Tw/T - 1/2) / (2 sqrt(pi) S^3).
            let heat = s * s / (2.0 * PI.sqrt() * s.powi(3));
            assert!((ch / heat - 1.0).abs() < 4.0 * sigma * (1.0 + 2.0 / s), "Ch at {s}: {ch}, {heat}");
        }
    }
}

#[test]
fn temperatures_follow_their_expression() {
    let grid = Grid { cells: [10, 10], h: [0.1, 0.1], origin: [0.0; 2], dimensions: 2 };
    let square = Shape::Polygon { vertices: vec![[0.2, 0.2], [0.6, 0.2], [0.6, 0.6], [0.2, 0.6]] };
    let curve = square.curve("b", "b", Gas::Outside, 1).unwrap();
    let geometry = Geometry::new(&grid, [false; 2], &Outlines::new(&[curve], &grid).unwrap());
    let parse = |t: &str| Expr::parse(t, &["x", "y", "s"]).unwrap();
    let found = temperatures(&geometry, 0, &parse("300 + 100*s + 1000*x")).unwrap();
    for (t, e) in found.iter().zip([300.0 + 20.0 + 400.0, 300.0 + 60.0 + 600.0, 300.0 + 100.0 + 400.0, 300.0 + 140.0 + 200.0]) {
        assert!((t - e).abs() < 1e-9, "{found:?}");
    }
    let problem = temperatures(&geometry, 0, &parse("300 - 500*y")).unwrap_err();
    assert!(problem.message.contains("the wall's temperature is 0 at (0.4, 0.6), segment 3 of `b`"), "{problem}");
}
