//! Sub-volumes: division by thin bodies, joining to a neighbour, and gas at rest filling all of them evenly.

use std::collections::BTreeMap;

use super::geometry::{Dice, curve, fly, grid, plate, torture};
use zellige_dsmc::geometry::{BELOW_ONE, Curve, Gas, Geometry, Outlines, SMALLEST};
use zellige_dsmc::grid::Grid;

/// Sub-volumes of a cell with their shares, by random positions.
fn shares(geometry: &Geometry, cell: [usize; 2], dice: &mut Dice) -> BTreeMap<usize, f64> {
    let n = 4000;
    let mut shares = BTreeMap::new();
    for _ in 0..n {
        let offset = [dice.next(), dice.next()];
        if geometry.in_gas(cell, offset) {
            *shares.entry(geometry.sub_volume(cell, offset)).or_insert(0.0) += 1.0 / f64::from(n);
        }
    }
    shares
}

#[test]
fn thin_bodies_part_cells() {
    let g = Grid { cells: [6, 5], h: [1.0, 1.0], origin: [0.0; 2], dimensions: 2 };
    let make = |curves: &[Curve]| Geometry::new(&g, [false; 2], &Outlines::new(curves, &g).unwrap());
    let mut dice = Dice::new(5);
    // A plate through the cells (1, 2) and (2, 2) that ends in (3, 2): two parts, two parts, one.
    let geometry = make(&[plate("p", vec![[1.0, 2.25], [3.5, 2.25]])]);
    assert_eq!(geometry.sub_volumes(), 32);
    for i in [1, 2] {
        let (cell, parts) = (g.index([i, 2]), shares(&geometry, [i, 2], &mut dice));
        assert_eq!(parts.len(), 2);
        assert_eq!(geometry.sub_volume_fraction(cell), 0.75);
        assert!(parts.contains_key(&cell) && parts.iter().all(|(p, s)| (geometry.sub_volume_fraction(*p) - s).abs() < 0.04), "{parts:?}");
        assert_ne!(geometry.sub_volume([i, 2], [0.5, 0.2]), geometry.sub_volume([i, 2], [0.5, 0.3]));
    }
    assert!(geometry.is_undivided(g.index([3, 2])) && !geometry.sub_volumes_are_cells());
    // A thin wedge across, its tip in the last cell; a body standing free in a cell; a cell quartered by two plates.
    let wedge = curve("w", vec![[0.5, 0.4], [5.5, 0.5], [0.5, 0.6]], Gas::Outside);
    let mote = curve("m", vec![[2.4, 2.4], [2.6, 2.4], [2.5, 2.6]], Gas::Outside);
    let cross = [plate("h", vec![[4.0, 3.5], [4.5, 3.5], [5.0, 3.5]]), plate("v", vec![[4.5, 3.0], [4.5, 3.5]])];
    let geometry = make(&[wedge, mote, cross[0].clone(), cross[1].clone()]);
    assert_eq!(geometry.unresolved(), 0);
    for (cell, expected) in [([0, 0], 1), ([1, 0], 2), ([3, 0], 2), ([5, 0], 1), ([2, 2], 1), ([4, 3], 3)] {
        let parts = shares(&geometry, cell, &mut dice);
        assert_eq!(parts.len(), expected, "{cell:?}: {parts:?}");
        // Five sigma of counts of 4000.
        assert!(parts.iter().all(|(p, s)| (geometry.sub_volume_fraction(*p) - s).abs() < 0.04), "{cell:?}: {parts:?}");
        assert!((parts.keys().map(|p| geometry.sub_volume_fraction(*p)).sum::<f64>() - geometry.fraction(g.index(cell))).abs() < 1e-15);
    }
}

#[test]
fn cells_cut_to_nothing_join_a_neighbour() {
    let g = Grid { cells: [6, 5], h: [1.0, 1.0], origin: [0.0; 2], dimensions: 2 };
    // A block whose left and upper sides are just inside cells (1, ..) and (.., 3).
    let block = curve("b", vec![[1.0 + 1e-5, 1.0], [4.0, 1.0], [4.0, 4.0 - 1e-5], [1.0 + 1e-5, 4.0 - 1e-5]], Gas::Outside);
    let geometry = Geometry::new(&g, [false; 2], &Outlines::new(&[block], &g).unwrap());
    for (cell, offset, into) in [([1, 2], [5e-6, 0.5], [0, 2]), ([2, 3], [0.5, 1.0 - 5e-6], [2, 4])] {
        assert!(geometry.in_gas(cell, offset) && !geometry.is_undivided(g.index(cell)));
        assert_eq!(geometry.sub_volume(cell, offset), g.index(into));
        assert_eq!(geometry.sub_volume_fraction(g.index(cell)), 0.0);
        assert!((geometry.sub_volume_fraction(g.index(into)) - 1.0 - 1e-5).abs() < 1e-9);
    }
    let all: f64 = (0..geometry.sub_volumes()).map(|p| geometry.sub_volume_fraction(p)).sum();
    assert!((all - (30.0 - (3.0_f64 - 1e-5).powi(2))).abs() < 1e-11, "{all}");
}

#[test]
fn sub_volumes_of_random_bodies_hold_all_of_the_gas() {
    let mut dice = Dice::new(6);
    for round in 0..32 {
        let g = grid(12, 12);
        let Ok(outlines) = Outlines::new(&torture(&mut dice, round, &g), &g) else { continue };
        let geometry = Geometry::new(&g, [false; 2], &outlines);
        let volumes: f64 = (0..geometry.sub_volumes()).map(|p| geometry.sub_volume_fraction(p)).sum();
        let cells: f64 = (0..g.len()).map(|c| geometry.fraction(c)).sum();
        assert!((volumes - cells).abs() < 1e-12 * cells, "{round}: {volumes} {cells}");
        for c in 0..g.len() {
            if geometry.fraction(c) >= SMALLEST && geometry.pieces(c).len() > 1 && geometry.unresolved() == 0 {
                for (volume, share) in shares(&geometry, g.cell(c), &mut dice) {
                    // Slivers may have joined a sub-volume of a neighbour.
                    if volume == c || volume >= g.len() && share > 10.0 * SMALLEST {
                        let own = geometry.sub_volume_fraction(volume);
                        // Five sigma of counts of 4000, and slivers that joined.
                        assert!((own - share).abs() < 0.04 + 5.0 * SMALLEST, "{round} {c} {volume}: {own} {share}");
                    }
                }
            }
        }
    }
}

#[test]
fn gas_at_rest_fills_all_sub_volumes_evenly() {
    // A wedge and plates that divide cells, a body cut by faces and sides of the domain; mirrors keep a uniform gas uniform.
    let g = Grid { cells: [8, 6], h: [1.0, 0.8], origin: [0.0; 2], dimensions: 2 };
    let bodies = [
        curve("wedge", vec![[0.5, 0.9], [5.5, 1.1], [0.5, 1.2]], Gas::Outside),
        curve("side", vec![[8.0, 2.0], [8.0, 4.1], [6.3, 3.3]], Gas::Outside),
        plate("plate", vec![[1.3, 4.2], [3.0, 2.6], [4.7, 2.6]]),
    ];
    let geometry = Geometry::new(&g, [false; 2], &Outlines::new(&bodies, &g).unwrap());
    assert!(geometry.sub_volumes() > g.len() + 3);
    let mut dice = Dice::new(7);
    let mut counts = vec![0.0; geometry.sub_volumes()];
    let (particles, rounds) = (2000, 100);
    for _ in 0..particles {
        let (mut cell, mut offset) = loop {
            let position = ([dice.below(8), dice.below(6)], [dice.next() as f32, dice.next() as f32].map(|x| x.min(BELOW_ONE)));
            if geometry.in_gas(position.0, position.1.map(f64::from)) {
                break position;
            }
        };
        let angle = std::f64::consts::TAU * dice.next();
        let mut v = [4.0 * angle.cos(), 4.0 * angle.sin() * g.h[0] / g.h[1]];
        for _ in 0..rounds {
            // Across the box, so that one look knows little of the one before.
            for _ in 0..3 {
                fly(&geometry, &g, [false; 2], &mut cell, &mut offset, &mut v);
            }
            counts[geometry.sub_volume(cell, offset.map(f64::from))] += 1.0;
        }
    }
    let all: f64 = (0..geometry.sub_volumes()).map(|p| geometry.sub_volume_fraction(p)).sum();
    let mut square = 0.0;
    let mut volumes = 0.0;
    for (volume, count) in counts.iter().enumerate() {
        let mean = f64::from(particles * rounds) * geometry.sub_volume_fraction(volume) / all;
        // Looks of one particle are not quite independent: five sigma rather than four.
        assert!(
            (count - mean).abs() <= 5.0 * mean.sqrt(),
            "volume {volume} of {}: {count} times, expected {mean}",
            geometry.sub_volume_fraction(volume)
        );
        if mean > 0.0 {
            square += (count - mean).powi(2) / mean;
            volumes += 1.0;
        }
    }
    // The sum of squares of independent counts has the mean of their number, and the deviation sqrt(2 n).
    assert!((square - volumes).abs() < 5.0 * (2.0_f64 * volumes).sqrt(), "{square} of {volumes}");
}
