//! Outlines, cells and flights together.

use std::f64::consts::TAU;

use zellige_engine::parallel::{indices, map};
use zellige_engine::rng::{Philox, uniform_f64};

use zellige_dsmc::geometry::{BELOW_ONE, Curve, Flight, FlightEnd, Form, Gas, Geometry, Outlines};
use zellige_dsmc::grid::{Grid, Side};

/// Numbers in [0, 1).
pub(crate) struct Dice {
    philox: Philox,
    count: u64,
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self { philox: Philox::new(0xfff0, seed), count: 0 }
    }

    pub(crate) fn next(&mut self) -> f64 {
        self.count += 1;
        let [a, b, ..] = self.philox.draw(0, self.count);
        uniform_f64(a, b)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() * n as f64) as usize
    }
}

pub(crate) fn grid(nx: usize, ny: usize) -> Grid {
    Grid { cells: [nx, ny], h: [0.1, 0.07], origin: [-0.3, 0.2], dimensions: 2 }
}

pub(crate) fn curve(name: &str, vertices: Vec<[f64; 2]>, gas: Gas) -> Curve {
    Curve {
        name: name.into(),
        origin: "surfaces".into(),
        vertices,
        form: Form::Closed,
        gas,
        wall: 0,
        numbers: Vec::new(),
        walls: Vec::new(),
    }
}

pub(crate) fn plate(name: &str, vertices: Vec<[f64; 2]>) -> Curve {
    Curve { form: Form::Plate, ..curve(name, vertices, Gas::Outside) }
}

/// A star-shaped polygon about a centre, in cells; some corners on faces or corners of cells.
fn star(dice: &mut Dice, centre: [f64; 2], radius: f64, n: usize, g: &Grid) -> Vec<[f64; 2]> {
    (0..n)
        .map(|k| {
            let angle = TAU * (k as f64 + 0.8 * dice.next()) / n as f64;
            let r = radius * (0.3 + 0.7 * dice.next());
            let mut p = [centre[0] + r * angle.cos(), centre[1] + r * angle.sin()];
            match dice.below(8) {
                0 => p[0] = p[0].round(),
                1 => p[1] = p[1].round(),
                2 => p = p.map(f64::round),
                _ => {}
            }
            [0, 1].map(|d| g.origin[d] + p[d].clamp(0.0, g.cells[d] as f64) * g.h[d])
        })
        .collect()
}

fn doubled_area(v: &[[f64; 2]]) -> f64 {
    (0..v.len()).map(|k| (v[k], v[(k + 1) % v.len()])).map(|(a, b)| a[0] * b[1] - a[1] * b[0]).sum()
}

#[test]
fn volumes_add_up_to_the_domain_less_the_bodies() {
    let mut dice = Dice::new(1);
    let mut tried = 0;
    for round in 0..200 {
        let g = grid(3 + dice.below(40), 3 + dice.below(40));
        let centre = g.cells.map(|n| n as f64 * (0.3 + 0.4 * dice.next()));
        let (radius, corners) = (dice.next() * 12.0, 3 + dice.below(40));
        let v = star(&mut dice, centre, radius, corners, &g);
        let gas = if round % 3 == 0 { Gas::Inside } else { Gas::Outside };
        // Rounding to faces folds some of them.
        let Ok(outlines) = Outlines::new(&[curve("star", v.clone(), gas)], &g) else { continue };
        tried += 1;
        let geometry = Geometry::new(&g, [false; 2], &outlines);
        let gas_volume: f64 = (0..g.len()).map(|c| geometry.fraction(c)).sum::<f64>() * g.volume();
        let domain = g.length(0) * g.length(1);
        let body = 0.5 * doubled_area(&v).abs();
        let expected = if gas == Gas::Inside { body } else { domain - body };
        assert!((gas_volume - expected).abs() < 1e-12 * domain, "{round}: {gas_volume} {expected}");
        assert!((geometry.bodies()[0].area.abs() - body).abs() < 1e-12 * domain);
    }
    assert!(tried > 100, "{tried}");
}

#[test]
fn cells_and_places_agree_on_what_is_solid() {
    let mut dice = Dice::new(2);
    for round in 0..60 {
        let g = grid(12, 15);
        let v = star(&mut dice, [6.0, 7.0], 6.5, 5 + round, &g);
        let gas = if round % 2 == 0 { Gas::Inside } else { Gas::Outside };
        let Ok(outlines) = Outlines::new(&[curve("star", v, gas)], &g) else { continue };
        let geometry = Geometry::new(&g, [false; 2], &outlines);
        let n = 400;
        for c in 0..g.len() {
            let hits = (0..n).filter(|_| geometry.in_gas(g.cell(c), [dice.next(), dice.next()])).count() as f64;
            let f = geometry.fraction(c);
            // Five sigma of a binomial count.
            assert!((hits / n as f64 - f).abs() <= 5.0 * (f * (1.0 - f) / n as f64).sqrt() + 1e-9, "{round} cell {c}: {hits} of {n}, {f}");
        }
    }
}

#[test]
fn reach_is_the_kings_distance() {
    let g = grid(20, 9);
    let outlines = Outlines::new(&[plate("p", vec![[-0.25, 0.25], [-0.22, 0.26]])], &g).unwrap();
    for periodic in [[false, false], [true, false], [true, true]] {
        let geometry = Geometry::new(&g, periodic, &outlines);
        for c in 0..g.len() {
            let [i, j] = g.cell(c);
            let along = |x: usize, n: usize, wrap: bool| if wrap { x.min(n - x) } else { x };
            assert_eq!(usize::from(geometry.reach(c)), along(i, 20, periodic[0]).max(along(j, 9, periodic[1])), "{i} {j}");
        }
    }
}

/// Flies a particle for one step, specular at walls; domain sides by `periodic`, else specular. Velocity in cells per step.
/// Returns the number of hits.
pub(crate) fn fly(
    geometry: &Geometry,
    g: &Grid,
    periodic: [bool; 2],
    cell: &mut [usize; 2],
    offset: &mut [f32; 2],
    v: &mut [f64; 2],
) -> u64 {
    let mut flight = Flight { cell: *cell, offset: offset.map(f64::from), path: *v, left: None };
    let mut walls = 0;
    loop {
        match geometry.advance(&mut flight) {
            FlightEnd::Nothing => break,
            FlightEnd::Segment { normal, done, segment: _ } => {
                assert!((0.0..=1.0).contains(&done));
                walls += 1;
                assert!(walls < 10_000, "a particle is caught");
                let mut w = [v[0] * g.h[0], v[1] * g.h[1]];
                let along = w[0] * normal[0] + w[1] * normal[1];
                assert!(along < 0.0, "the normal is towards the particle");
                w = [w[0] - 2.0 * along * normal[0], w[1] - 2.0 * along * normal[1]];
                let rest = if v[0].abs() > v[1].abs() { flight.path[0] / v[0] } else { flight.path[1] / v[1] };
                *v = [w[0] / g.h[0], w[1] / g.h[1]];
                flight.path = v.map(|x| x * rest);
            }
            FlightEnd::Edge { side, .. } => {
                let d = side.axis;
                if periodic[d] {
                    flight.cell[d] = if side.upper { 0 } else { g.cells[d] - 1 };
                    flight.offset[d] = if side.upper { 0.0 } else { 1.0 };
                } else {
                    flight.path[d] = -flight.path[d];
                    v[d] = -v[d];
                }
            }
        }
    }
    *cell = flight.cell;
    *offset = geometry.stored_offset(&flight);
    assert!(offset.iter().all(|x| (0.0..1.0).contains(x)));
    walls
}

/// Bodies of every unpleasant kind.
pub(crate) fn torture(dice: &mut Dice, round: usize, g: &Grid) -> Vec<Curve> {
    let at = |x: f64, y: f64| [g.origin[0] + x * g.h[0], g.origin[1] + y * g.h[1]];
    match round % 8 {
        // Along faces, corners in corners of cells, touching sides of the domain.
        0 => vec![
            curve("box", vec![at(2.0, 2.0), at(5.0, 2.0), at(5.0, 4.0), at(2.0, 4.0)], Gas::Outside),
            curve("side", vec![at(0.0, 6.0), at(2.0, 7.0), at(0.0, 9.0)], Gas::Outside),
            curve("corner", vec![at(12.0, 12.0), at(9.0, 12.0), at(12.0, 9.0)], Gas::Outside),
        ],
        // Bodies that touch along a side and at a corner, and a fin.
        1 => vec![
            curve("a", vec![at(3.0, 3.0), at(6.0, 3.0), at(6.0, 6.0), at(3.0, 6.0)], Gas::Outside),
            curve("b", vec![at(6.0, 4.0), at(8.0, 4.5), at(6.0, 5.0)], Gas::Outside),
            curve("c", vec![at(6.0, 6.0), at(9.0, 6.1), at(7.0, 9.0)], Gas::Outside),
            plate("fin", vec![at(3.0, 4.0), at(0.0, 4.0)]),
        ],
        // Needles and slits thinner than the lattice of single precision elsewhere in the domain.
        2 => vec![
            curve("needle", vec![at(1.0, 1.0), at(11.0, 6.0), at(1.0, 1.0 + 1e-9)], Gas::Outside),
            curve("wedge", vec![at(1.0, 8.0), at(11.0, 8.0), at(1.0, 8.0 + 1e-5)], Gas::Outside),
            curve("roof", vec![at(1.0, 9.0), at(11.0, 8.0 + 1e-7), at(11.0, 9.0)], Gas::Outside),
        ],
        // A gear with many teeth in a cell.
        3 => {
            let n = 240;
            let tooth = |k: usize| {
                let r = if k.is_multiple_of(2) { 1.4 } else { 0.7 };
                let (s, c) = (TAU * k as f64 / n as f64).sin_cos();
                at(6.5 + r * c, 6.5 + r * s)
            };
            vec![curve("gear", (0..n).map(tooth).collect(), Gas::Outside)]
        }
        // A plate that bends, along and across faces and ending on sides.
        4 => vec![
            plate("zigzag", vec![at(0.0, 6.0), at(3.0, 6.0), at(4.5, 7.5), at(6.0, 6.0), at(9.0, 6.0), at(9.0, 3.0), at(12.0, 3.0)]),
            plate("diagonal", vec![at(1.0, 8.0), at(4.0, 11.0)]),
        ],
        // A chamber with a body in it.
        5 => vec![
            curve("chamber", vec![at(0.5, 0.5), at(11.5, 1.0), at(11.0, 11.0), at(6.0, 4.0), at(1.0, 11.0)], Gas::Inside),
            curve("pin", vec![at(5.9, 2.0), at(6.1, 2.0), at(6.0, 4.0)], Gas::Outside),
        ],
        // Tiny bodies inside a cell and on a corner of four.
        6 => vec![
            curve("mote", vec![at(4.5, 4.5), at(4.5 + 1e-6, 4.5), at(4.5, 4.5 + 1e-6)], Gas::Outside),
            curve("cross", vec![at(6.0, 5.99), at(6.01, 6.0), at(6.0, 6.01), at(5.99, 6.0)], Gas::Outside),
        ],
        _ => {
            let corners = 3 + dice.below(30);
            vec![curve("star", star(dice, [6.0, 6.0], 6.0, corners, g), Gas::Outside)]
        }
    }
}

/// Flies particles for `moves` steps in all, about the worst bodies, and looks for every one of them afterwards.
fn no_leaks(moves: u64, seed: u64) {
    let (rounds, steps) = (64, 50);
    let particles = moves / (rounds * steps);
    let counts = map(indices(rounds as usize), |_, round| {
        let mut dice = Dice::new(seed * rounds + round as u64);
        let (mut walls, mut done) = (0_u64, 0_u64);
        let g = grid(12, 12);
        let periodic = [round / 8 % 2 == 1, round / 16 % 2 == 1];
        let Ok(outlines) = Outlines::new(&torture(&mut dice, round, &g), &g) else {
            assert_eq!(round % 8, 7, "{:?}", Outlines::new(&torture(&mut dice, round, &g), &g));
            return (0, 0);
        };
        let geometry = Geometry::new(&g, periodic, &outlines);
        for _ in 0..particles {
            let (mut cell, mut offset) = loop {
                let cell = [dice.below(12), dice.below(12)];
                // Many of them on lines of the lattice that corners of bodies share.
                let offset = [dice.next() as f32, dice.next() as f32].map(|x| if x < 0.05 { 0.0 } else { x.min(BELOW_ONE) });
                if geometry.in_gas(cell, offset.map(f64::from)) {
                    break (cell, offset);
                }
            };
            let speed = [0.01, 0.3, 1.0, 20.0][dice.below(4)];
            let angle = if dice.below(4) == 0 { dice.below(8) as f64 / 8.0 } else { dice.next() } * TAU;
            let mut v = [speed * angle.cos(), speed * angle.sin()];
            let energy = |v: [f64; 2]| (v[0] * g.h[0]).powi(2) + (v[1] * g.h[1]).powi(2);
            let before = energy(v);
            let mut hits = 0;
            for _ in 0..steps {
                hits += fly(&geometry, &g, periodic, &mut cell, &mut offset, &mut v);
                assert!(geometry.in_gas(cell, offset.map(f64::from)), "round {round}: leaked at {cell:?} {offset:?}");
            }
            // Each reflection rounds a handful of products.
            assert!(
                (energy(v) / before - 1.0).abs() <= 8.0 * f64::EPSILON * (hits + 1) as f64,
                "{} after {hits}",
                energy(v) / before - 1.0
            );
            walls += hits;
            done += steps;
        }
        (walls, done)
    });
    let (walls, done) = counts.into_iter().fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    assert!(done > moves / 2 && walls > done / 100, "{done} {walls}");
}

#[test]
fn nothing_leaks() {
    no_leaks(1_300_000, 3);
}

#[test]
#[ignore = "minutes: a thousand million moves"]
fn nothing_leaks_in_a_thousand_million_moves() {
    for seed in 0..100 {
        no_leaks(10_000_000, 100 + seed);
    }
}

#[test]
fn a_plate_divides_a_box() {
    // Plates along a face, across corners and askew; sides of the domain are specular, so the halves never mix.
    let g = grid(8, 6);
    for (x0, x1) in [(4.0, 4.0), (3.0, 5.0), (3.3, 4.9), (4.0, 4.5)] {
        let ends = [[x0, 0.0], [x1, 6.0]].map(|p: [f64; 2]| [g.origin[0] + p[0] * g.h[0], g.origin[1] + p[1] * g.h[1]]);
        let geometry = Geometry::new(&g, [false; 2], &Outlines::new(&[plate("wall", ends.to_vec())], &g).unwrap());
        assert_eq!((0..g.len()).map(|c| geometry.fraction(c)).sum::<f64>(), g.len() as f64);
        let mut dice = Dice::new(4);
        let left = |cell: [usize; 2], offset: [f32; 2]| {
            let [x, y] = [0, 1].map(|d| cell[d] as f64 + f64::from(offset[d]));
            x - (x0 + (x1 - x0) * y / 6.0)
        };
        let mut walls = 0;
        for k in 0..400 {
            // Some begin a last bit from the plate.
            let y = if k % 3 == 0 { dice.below(6) as f64 } else { 6.0 * dice.next() };
            let x = if k % 2 == 0 { x0 + (x1 - x0) * y / 6.0 + if k % 4 == 0 { 2e-7 } else { -2e-7 } } else { 8.0 * dice.next() };
            let (mut cell, mut offset) = ([x as usize, y as usize], [x.fract() as f32, y.fract() as f32].map(|o| o.min(BELOW_ONE)));
            if !geometry.in_gas(cell, offset.map(f64::from)) {
                continue;
            }
            let side = left(cell, offset).signum();
            if left(cell, offset).abs() < 1e-7 {
                continue;
            }
            let angle = TAU * dice.next();
            let mut v = [3.0 * angle.cos(), 3.0 * angle.sin()];
            for _ in 0..500 {
                walls += fly(&geometry, &g, [false; 2], &mut cell, &mut offset, &mut v);
                // Rounding the plate's pieces moves them by a last bit.
                assert!(left(cell, offset) * side > -1e-7, "{x0} {x1}: {cell:?} {offset:?}");
            }
        }
        assert!(walls > 10_000, "{walls}");
    }
}

#[test]
fn paths_through_corners_and_along_faces_end_where_they_should() {
    let g = grid(10, 10);
    let geometry = Geometry::empty(&g);
    for (offset, path, cell, to) in [
        ([0.5, 0.5], [1.0, 1.0], [4, 4], [0.5, 0.5]),
        ([0.0, 0.0], [2.0, 0.0], [5, 3], [0.0, 0.0]),
        ([0.0, 0.0], [-1.0, 1.0], [2, 4], [0.0, 0.0]),
        ([0.25, 0.75], [0.0, -2.75], [3, 1], [0.25, 0.0]),
    ] {
        let mut flight = Flight { cell: [3, 3], offset, path, left: None };
        assert_eq!(geometry.advance(&mut flight), FlightEnd::Nothing);
        assert_eq!((flight.cell, flight.offset), (cell, to));
    }
    let mut flight = Flight { cell: [3, 3], offset: [0.5, 0.25], path: [100.0, 50.0], left: None };
    let FlightEnd::Edge { side, done } = geometry.advance(&mut flight) else { panic!("{flight:?}") };
    assert_eq!((side, flight.cell, flight.offset), (Side { axis: 0, upper: true }, [9, 6], [1.0, 0.5]));
    assert!((done - 0.065).abs() < 1e-12 && (flight.path[0] - 93.5).abs() < 1e-9, "{done} {flight:?}");
}

#[test]
fn a_path_stops_in_front_of_the_wall_and_knows_its_normal() {
    let g = Grid { cells: [10, 10], h: [1.0, 1.0], origin: [0.0; 2], dimensions: 2 };
    let v = vec![[5.0, 2.0], [8.0, 2.0], [8.0, 8.0], [5.0, 8.0]];
    let geometry = Geometry::new(&g, [false; 2], &Outlines::new(&[curve("box", v, Gas::Outside)], &g).unwrap());
    let mut flight = Flight { cell: [1, 5], offset: [0.5, 0.5], path: [7.0, 0.0], left: None };
    let FlightEnd::Segment { segment, normal, done } = geometry.advance(&mut flight) else { panic!("{flight:?}") };
    assert_eq!((segment, normal, flight.left), (3, [-1.0, 0.0], Some(3)));
    assert_eq!((done, flight.path), (0.5, [3.5, 0.0]));
    assert_eq!((flight.cell, flight.offset), ([4, 5], [1.0 - 0.5_f64.powi(24), 0.5]));
}
