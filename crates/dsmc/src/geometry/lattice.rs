//! Exact arithmetic: positions as whole numbers, so that the side of a line on which a point lies is never in doubt.
//!
//! Two lattices. Outlines are rounded to 2^-40 of a cell, as near as double precision holds them in a domain of thousands of
//! cells, and everything that is checked or measured of them is exact from there on (products of differences fit 128 bits).
//! Particles and the pieces of outline that they hit are on a lattice of 2^-24 of a cell, the last bit of a single-precision
//! offset; there products fit 64 bits for paths of up to [`LONGEST`] cells.

/// Bits below the cell of the lattice of outlines.
pub(super) const FINE: u32 = 40;
/// Bits below the cell of the lattice of particles.
pub(super) const BITS: u32 = 24;
/// A cell on the lattice of particles.
pub(super) const ONE: i64 = 1 << BITS;
/// Longest path, in cells, that one exact search takes; longer ones are flown in parts.
pub(super) const LONGEST: f64 = 16.0;
/// Most cells along an axis with bodies: 60 bits on the finer lattice.
pub(super) const MOST_CELLS: usize = 1 << 20;

/// A position on one of the lattices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Point {
    pub(super) x: i64,
    pub(super) y: i64,
}

impl Point {
    pub(super) const fn new(x: i64, y: i64) -> Self {
        Self { x, y }
    }

    pub(super) const fn minus(self, other: Self) -> Self {
        Self { x: self.x - other.x, y: self.y - other.y }
    }

    pub(super) const fn plus(self, other: Self) -> Self {
        Self { x: self.x + other.x, y: self.y + other.y }
    }

    /// From the lattice of outlines to the nearest position on that of particles.
    pub(super) const fn coarse(self) -> Self {
        const SHIFT: u32 = FINE - BITS;
        const HALF: i64 = 1 << (SHIFT - 1);
        Self { x: (self.x + HALF) >> SHIFT, y: (self.y + HALF) >> SHIFT }
    }

    /// True if it is in the closed box with two opposite corners.
    pub(super) fn within(self, a: Self, b: Self) -> bool {
        self.x >= a.x.min(b.x) && self.x <= a.x.max(b.x) && self.y >= a.y.min(b.y) && self.y <= a.y.max(b.y)
    }
}

/// Twice the area of the triangle, positive where `c` is to the left of `a -> b`: exact on the lattice of particles, for
/// differences below 2^30.
pub(super) const fn orient(a: Point, b: Point, c: Point) -> i64 {
    (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x)
}

/// Twice the area of the triangle, on the lattice of outlines.
pub(super) const fn orient_fine(a: Point, b: Point, c: Point) -> i128 {
    (b.x - a.x) as i128 * (c.y - a.y) as i128 - (b.y - a.y) as i128 * (c.x - a.x) as i128
}

/// True if `c` is on the closed segment `a b`, on the lattice of outlines.
pub(super) fn on_fine(a: Point, b: Point, c: Point) -> bool {
    c.within(a, b) && orient_fine(a, b, c) == 0
}

/// `n / d` to the nearest whole number, halves up, for `d > 0`.
pub(super) const fn rounded(n: i128, d: i128) -> i64 {
    (2 * n + d).div_euclid(2 * d) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_difference_has_a_sign() {
        let far = 1_i64 << 60;
        let (a, b) = (Point::new(0, 0), Point::new(far, far - 1));
        assert!(orient_fine(a, b, Point::new(far - 1, far - 2)) < 0);
        assert!(orient_fine(a, b, Point::new(1, 1)) > 0);
        assert_eq!(orient_fine(a, b, b), 0);
        let far = 1_i64 << 29;
        assert_eq!(orient(Point::new(0, 0), Point::new(far, far - 1), Point::new(far - 1, far - 2)), -1);
    }

    #[test]
    fn halves_are_rounded_up() {
        assert_eq!([-3, -1, 1, 3, 4].map(|n| rounded(n, 2)), [-1, 0, 1, 2, 2]);
        assert_eq!(Point::new(1 << 15, (1 << 15) - 1).coarse(), Point::new(1, 0));
    }
}
