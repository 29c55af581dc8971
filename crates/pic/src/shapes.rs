//! The shape of a macro-particle: its weights at the nodes around it, and the current of a path through several cells.
//!
//! Order 1 spreads a particle over one cell (bilinear weights), order 2 is the quadratic spline of three nodes per axis
//! (Hockney and Eastwood 1988, section 5-3). Offsets are in units of the cell.

use zellige_device_macro::{device, device_source};
use zellige_engine::real::{Real, select};

/// Weights of a node and its two neighbours; they add up to 1.
#[device]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights<R> {
    /// The node below.
    pub below: R,
    /// The node itself.
    pub middle: R,
    /// The node above.
    pub above: R,
}

/// Order 1 on an axis where nodes are at half cells: weights of the half nodes `i - 1/2`, `i + 1/2`, `i + 3/2` for a particle
/// at offset `s` from the centre of cell `i`. One of the outer two is zero.
#[device]
#[inline(always)]
pub fn linear<R: Real>(s: R) -> Weights<R> {
    Weights::<R> { below: R::max(-s, R::ZERO), middle: R::ONE - s.abs(), above: R::max(s, R::ZERO) }
}

/// Order 2: weights of the nearest node and its neighbours for a particle at `d`, `-1/2..=1/2`, from it.
#[device]
#[inline(always)]
pub fn quadratic<R: Real>(d: R) -> Weights<R> {
    let less = R::HALF - d;
    let more = R::HALF + d;
    Weights::<R> { below: R::HALF * less * less, middle: R::from_f64(0.75) - d * d, above: R::HALF * more * more }
}

/// 1 where a particle at offset `s` is nearer to the upper corner of its cell, 0 where to the lower.
#[device]
#[inline(always)]
pub fn nearest<R: Real>(s: R) -> R {
    select(s.lt(R::ZERO), R::ZERO, R::ONE)
}

/// Number of cells between start and end of a path along one axis: -1, 0 or 1 for an end `s`, `-3/2..=3/2`, measured from the
/// centre of the first cell. A particle on the border stays.
#[device]
#[inline(always)]
pub fn crossed<R: Real>(s: R) -> R {
    select(s.gt(R::HALF), R::ONE, select(s.lt(-R::HALF), -R::ONE, R::ZERO))
}

/// The part of a path of length `d` from `s` at which it meets the border towards `side` (-1 or 1); 1 where `side` is 0.
#[device]
#[inline(always)]
pub fn border<R: Real>(s: R, d: R, side: R) -> R {
    let part = R::mul_add(R::HALF, side, -s) / select(side.abs().gt(R::ZERO), d, R::ONE);
    select(side.abs().gt(R::ZERO), R::min(part, R::ONE), R::ONE)
}

/// The decomposition of Esirkepov (Comput. Phys. Commun. 135 (2001) 144, eq. 38) in two dimensions: the share of the x current
/// for weights `x0`, `y0` before and `x1`, `y1` after. With the axes exchanged, that of the y current.
#[device]
#[inline(always)]
pub fn esirkepov_along<R: Real>(x0: R, x1: R, y0: R, y1: R) -> R {
    (x1 - x0) * (R::HALF * (y0 + y1))
}

/// The mean weight along the path, likewise: what the current in z is multiplied by.
#[device]
#[inline(always)]
pub fn esirkepov_across<R: Real>(x0: R, x1: R, y0: R, y1: R) -> R {
    let third = R::from_f64(1.0 / 3.0);
    let sixth = R::from_f64(1.0 / 6.0);
    R::mul_add(third, R::mul_add(x0, y0, x1 * y1), sixth * R::mul_add(x0, y1, x1 * y0))
}

/// [`esirkepov_across`] of one row of nodes, times `q`: what the weights `x0` and `x1` are multiplied by.
#[inline(always)]
pub fn across_row<R: Real>(y0: R, y1: R, q: R) -> [R; 2] {
    let (third, sixth) = (R::from_f64(1.0 / 3.0) * q, R::from_f64(1.0 / 6.0) * q);
    [R::mul_add(third, y0, sixth * y1), R::mul_add(third, y1, sixth * y0)]
}

/// The formulae above as CUDA C++.
pub const SHAPES: &[&str] = &device_source![Weights, linear, quadratic, nearest, crossed, border, esirkepov_along, esirkepov_across];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_add_up_and_have_the_right_centre() {
        for k in -50..=50 {
            let s = f64::from(k) / 100.0;
            for w in [linear(s), quadratic(s)] {
                assert!((w.below + w.middle + w.above - 1.0).abs() < 1e-15, "{s}: {w:?}");
                assert!((w.above - w.below - s).abs() < 1e-15, "{s}: {w:?}");
                assert!(w.below >= 0.0 && w.middle >= 0.0 && w.above >= 0.0);
            }
        }
    }

    #[test]
    fn borders_are_met_where_they_are() {
        assert_eq!((crossed(0.5), crossed(0.500001), crossed(-0.5), crossed(-0.7), crossed(0.1)), (0.0, 1.0, 0.0, -1.0, 0.0));
        assert!((border(0.2, 0.6, 1.0) - 0.5_f64).abs() < 1e-15);
        assert!((border(-0.3, -0.4, -1.0) - 0.5_f64).abs() < 1e-15);
        assert_eq!(border(0.3_f32, 0.0, 0.0), 1.0);
        // At the border already, and stepping over it by one unit in the last place.
        assert!(border(0.5_f32, f32::EPSILON, 1.0) >= 0.0);
    }
}
