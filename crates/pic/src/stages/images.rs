//! Images beyond the sides: the nodes that guards take their values from, and those to which deposits on guards belong.
//!
//! A node is named by its index on an axis: at the corner `i h`, or halfway at `(i + 1/2) h`. The walls of an axis that is
//! not periodic are the corners 0 and `cells`; beyond them the grid goes on as a mirror image.
//!
//! | at a conductor (PEC) | even | odd |
//! |---|---|---|
//! | E | normal | tangential, zero on the wall |
//! | B | tangential | normal, zero on the wall |
//!
//! and the other way round at a magnetic conductor (PMC). A current of particles that turn at the wall is even along the
//! wall and odd across it, a charge density even.

use crate::grid::{ABOVE, BELOW, FieldSide, Grid, ParticleSide};
use crate::stages::Component;

/// Guard node, the node inside that it is an image of, and the factor: 1, -1, or 0 for a value held at zero.
pub type Image = (isize, isize, f64);

/// Quantity at the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// A component of E, B or J.
    Vector(Component),
    /// Charge density, at the corners.
    Charge,
}

impl Quantity {
    /// True if it sits halfway between the corners of `axis`.
    pub fn half(self, axis: usize) -> bool {
        matches!(self, Self::Vector(c) if c.stagger()[axis] == 0.5)
    }

    /// Factor of the mirror image at a side of `axis`.
    fn parity(self, axis: usize, side: FieldSide) -> f64 {
        let Self::Vector(component) = self else { return 1.0 };
        let (family, normal) = (component as usize / 3, component as usize % 3 == axis);
        let magnetic = side == FieldSide::Pmc;
        let even = match family {
            0 => normal != magnetic,
            1 => normal == magnetic,
            // A current belongs to its particles, whatever the fields' condition.
            _ => !normal,
        };
        if even { 1.0 } else { -1.0 }
    }
}

/// The guards of `axis` from the nodes inside; where the image is odd also the wall itself, as zero.
pub fn guards(grid: &Grid, axis: usize, quantity: Quantity) -> Vec<Image> {
    mirrored(grid, axis, quantity, |upper| quantity.parity(axis, grid.fields[axis][usize::from(upper)]))
}

/// The guards of `axis` as a filter of a current or a charge has them. Particles that turn at a wall have images that turn as well;
/// of those that it takes nothing comes back: the current goes on across it, and charge, and current along it, are zero on it.
/// Either way the filter commutes with the divergence.
pub fn filter_guards(grid: &Grid, axis: usize, quantity: Quantity) -> Vec<Image> {
    mirrored(grid, axis, quantity, |upper| {
        let side = usize::from(upper);
        let turned = quantity.parity(axis, grid.fields[axis][side]);
        if grid.particles[axis][side] == ParticleSide::Absorb { -turned } else { turned }
    })
}

/// The guards of `axis` where the images at its lower and upper side have a sign.
fn mirrored(grid: &Grid, axis: usize, quantity: Quantity, sign: impl Fn(bool) -> f64) -> Vec<Image> {
    let n = grid.cells[axis] as isize;
    let beyond = (-(BELOW as isize)..0).chain(n..n + ABOVE as isize);
    if grid.periodic(axis) {
        return beyond.map(|i| (i, i.rem_euclid(n), 1.0)).collect();
    }
    let half = quantity.half(axis);
    beyond
        .chain([0])
        .filter_map(|i| {
            let upper = i >= n;
            let wall = if upper { n } else { 0 };
            let image = if half { 2 * wall - 1 - i } else { 2 * wall - i };
            match (i == wall && !half, i == 0 && half) {
                // Even: the wall has a value of its own.
                (true, _) if sign(upper) > 0.0 => None,
                (true, _) => Some((i, image, 0.0)),
                (false, true) => None,
                _ => Some((i, image, sign(upper))),
            }
        })
        .collect()
}

/// Nodes to which deposits on the guards of `axis` belong, by the condition for particles: added to the other end, added to
/// the mirror image, or nowhere (the wall took it).
pub fn folds(grid: &Grid, axis: usize, quantity: Quantity) -> Vec<Image> {
    let n = grid.cells[axis] as isize;
    let half = quantity.half(axis);
    let first = if half || grid.periodic(axis) { n } else { n + 1 };
    (-(BELOW as isize)..0)
        .chain(first..n + ABOVE as isize)
        .filter_map(|i| {
            let upper = i >= n;
            match grid.particles[axis][usize::from(upper)] {
                ParticleSide::Periodic => Some((i, i.rem_euclid(n), 1.0)),
                ParticleSide::Absorb => None,
                ParticleSide::Reflect | ParticleSide::Thermal => {
                    let wall = if upper { n } else { 0 };
                    let image = if half { 2 * wall - 1 - i } else { 2 * wall - i };
                    Some((i, image, quantity.parity(axis, FieldSide::Pec)))
                }
            }
        })
        .collect()
}

/// The wall corners of `axis`, whose control volume is half a cell, so that a density there is twice the deposit; none for
/// what sits halfway.
pub fn walls(grid: &Grid, axis: usize, quantity: Quantity) -> Vec<isize> {
    if grid.periodic(axis) || quantity.half(axis) { Vec::new() } else { vec![0, grid.cells[axis] as isize] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(side: FieldSide, particles: ParticleSide) -> Grid {
        Grid {
            cells: [8, 5],
            h: [0.1; 2],
            origin: [0.0; 2],
            dt: 0.05,
            fields: [[side; 2], [FieldSide::Periodic; 2]],
            particles: [[particles; 2], [ParticleSide::Periodic; 2]],
            dimensions: 2,
            part: None,
        }
    }

    #[test]
    fn conductors_mirror_about_the_wall_corner() {
        let g = grid(FieldSide::Pec, ParticleSide::Reflect);
        let mut ez = guards(&g, 0, Quantity::Vector(Component::Ez));
        ez.sort_by_key(|image| image.0);
        assert_eq!(ez, [(-2, 2, -1.0), (-1, 1, -1.0), (0, 0, 0.0), (8, 8, 0.0), (9, 7, -1.0), (10, 6, -1.0)]);
        let mut ex = guards(&g, 0, Quantity::Vector(Component::Ex));
        ex.sort_by_key(|image| image.0);
        assert_eq!(ex, [(-2, 1, 1.0), (-1, 0, 1.0), (8, 7, 1.0), (9, 6, 1.0), (10, 5, 1.0)]);
        let g = grid(FieldSide::Pmc, ParticleSide::Reflect);
        assert!(guards(&g, 0, Quantity::Vector(Component::Ez)).iter().all(|image| image.2 == 1.0 && image.0 != 0 && image.0 != 8));
        assert!(guards(&g, 0, Quantity::Vector(Component::By)).iter().all(|image| image.2 == -1.0));
    }

    /// At walls that take particles the images of J and charge have the signs that they have not where particles turn.
    #[test]
    fn a_filter_goes_on_across_a_wall_that_takes_particles() {
        let [turns, takes] = [ParticleSide::Reflect, ParticleSide::Absorb].map(|particles| grid(FieldSide::Pec, particles));
        let [jx, jy] = [Component::Jx, Component::Jy].map(Quantity::Vector);
        for quantity in [jx, jy, Quantity::Charge] {
            assert_eq!(filter_guards(&turns, 0, quantity), guards(&turns, 0, quantity));
        }
        assert!(filter_guards(&takes, 0, jx).iter().all(|image| image.2 == 1.0));
        for quantity in [jy, Quantity::Charge] {
            let images = filter_guards(&takes, 0, quantity);
            assert!(images.iter().all(|image| image.2 == if image.0 == image.1 { 0.0 } else { -1.0 }), "{images:?}");
            assert!(images.contains(&(0, 0, 0.0)) && images.contains(&(8, 8, 0.0)), "{images:?}");
        }
    }

    #[test]
    fn folds_are_mirrored_wrapped_or_dropped() {
        let jx = Quantity::Vector(Component::Jx);
        let reflect = folds(&grid(FieldSide::Pec, ParticleSide::Reflect), 0, jx);
        assert_eq!(reflect, [(-2, 1, -1.0), (-1, 0, -1.0), (8, 7, -1.0), (9, 6, -1.0), (10, 5, -1.0)]);
        let charge = folds(&grid(FieldSide::Pec, ParticleSide::Thermal), 0, Quantity::Charge);
        assert_eq!(charge, [(-2, 2, 1.0), (-1, 1, 1.0), (9, 7, 1.0), (10, 6, 1.0)]);
        assert!(folds(&grid(FieldSide::Absorbing, ParticleSide::Absorb), 0, jx).is_empty());
        let g = grid(FieldSide::Pec, ParticleSide::Reflect);
        assert_eq!(folds(&g, 1, jx), [(-2, 3, 1.0), (-1, 4, 1.0), (5, 0, 1.0), (6, 1, 1.0), (7, 2, 1.0)]);
        assert_eq!(walls(&g, 0, Quantity::Charge), [0, 8]);
        assert!(walls(&g, 0, jx).is_empty() && walls(&g, 1, Quantity::Charge).is_empty());
    }
}
