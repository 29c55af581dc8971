//! The formulae of the method: numbers in, numbers out, no memory. Written once over [`Real`], so that a scalar test,
//! the lanes of the CPU and the GPU compute the same thing.
//!
//! Sums are written as differences to the centre, `w (u_W - u_C) + e (u_E - u_C)`: near the solution the neighbours
//! nearly cancel, and a difference of close numbers is exact, where `w u_W + e u_E - d u_C` would round at the size of
//! `d u_C`.

use zellige_device_macro::{device, device_source};
use zellige_engine::real::Real;

use crate::grid::{Axis, Bc, Grid};
use crate::spectrum::seam_omega;

/// Second difference of one axis: `west (u_W - u_C) + east (u_E - u_C)`. Written with a difference, which rounds the same: a
/// compiler that may swap operands lane by lane does so, at the price of four instructions.
#[device]
#[inline(always)]
pub fn second_difference<R: Real>(centre: R, lower: R, upper: R, west: R, east: R) -> R {
    west * (lower - centre) - east * (centre - upper)
}

/// `r = f - A u`, with `A u` the sum of the axes' second differences.
#[device]
#[inline(always)]
pub fn residual<R: Real>(rhs: R, operator: R) -> R {
    rhs - operator
}

/// Relaxation at a node: `u + (omega / d) (A u - f)`, with `d` the sum of the weights; `step = omega / d`, or 0 on
/// nodes of the other colour and on nodes that are no unknowns.
#[device]
#[inline(always)]
pub fn relax<R: Real>(centre: R, residual: R, step: R) -> R {
    centre - step * residual
}

/// One step of a three-term recurrence: a relaxation plus `momentum` times the last change.
#[device]
#[inline(always)]
pub fn relax_with_momentum<R: Real>(centre: R, residual: R, step: R, momentum: R, before: R) -> R {
    relax(centre + momentum * (centre - before), residual, step)
}

/// Linear interpolation and restriction between two rows.
#[device]
#[inline(always)]
pub fn between<R: Real>(west: R, a: R, east: R, b: R) -> R {
    west * a + east * b
}

/// Weighted sum of three values, the restriction of one axis.
#[device]
#[inline(always)]
pub fn three<R: Real>(a: R, x: R, b: R, y: R, c: R, z: R) -> R {
    (a * x + c * z) + b * y
}

/// The formulae above as CUDA C++.
pub const PHYSICS: &[&str] = &device_source![second_difference, residual, relax, relax_with_momentum, between, three];

/// The recurrence of a Chebyshev iteration, which after any number of sweeps has applied the optimal polynomial of that degree.
///
/// Saad, Iterative Methods for Sparse Linear Systems (2003), algorithm 12.1, with the direction written as a momentum.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Chebyshev {
    rho: Option<f64>,
}

impl Chebyshev {
    /// `(step, momentum)` of the next sweep, where eigenvalues `[lambda / ratio, lambda]` of `D^-1 A` are damped.
    pub fn next(&mut self, lambda: f64, ratio: f64) -> (f64, f64) {
        let (upper, lower) = (lambda, lambda / ratio);
        let (theta, delta) = (0.5 * (upper + lower), 0.5 * (upper - lower));
        let sigma = theta / delta;
        let Some(before) = self.rho else {
            self.rho = Some(1.0 / sigma);
            return (1.0 / theta, 0.0);
        };
        let rho = 1.0 / (2.0 * sigma - before);
        self.rho = Some(rho);
        (2.0 * rho / delta, rho * before)
    }

    /// The state after `sweeps` sweeps.
    #[must_use]
    pub fn after(sweeps: u64, lambda: f64, ratio: f64) -> Self {
        let mut recurrence = Self::default();
        for _ in 0..sweeps {
            let before = recurrence;
            recurrence.next(lambda, ratio);
            if recurrence == before {
                // It has settled.
                break;
            }
        }
        recurrence
    }
}

/// Smallest angle `theta` whose mode fits the axis, `1 - cos theta` being its eigenvalue over twice the weight; and
/// the next one.
fn angles(axis: &Axis) -> (f64, f64) {
    let n = axis.intervals() as f64 - 1.0 + axis.theta;
    let pi = std::f64::consts::PI;
    match (axis.lo, axis.hi) {
        (Bc::Dirichlet, Bc::Dirichlet) => (pi / n, 2.0 * pi / n),
        (Bc::Neumann, Bc::Neumann) => (0.0, pi / n),
        (Bc::Periodic, _) => (0.0, 2.0 * pi / n),
        _ => (0.5 * pi / n, 1.5 * pi / n),
    }
}

/// The relaxation factor with which red-black SOR converges fastest, `2 / (1 + sqrt(1 - rho^2))`, `rho` the spectral
/// radius of Jacobi's method (Young 1954); on a singular problem that of the complement of the constants.
pub fn optimal_omega(grid: &Grid) -> f64 {
    let axes: Vec<_> = grid.axes.iter().filter(|a| !a.is_flat()).collect();
    let weights: f64 = axes.iter().map(|a| 1.0 / (a.h * a.h)).sum();
    let part = |a: &Axis, angle: f64| (1.0 - angle.cos()) / (a.h * a.h * weights);
    let lowest: f64 = if grid.singular() {
        axes.iter().map(|a| part(a, angles(a).1)).fold(f64::INFINITY, f64::min)
    } else {
        axes.iter().map(|a| part(a, angles(a).0)).sum()
    };
    // 1 - rho^2 = lowest (2 - lowest), without the cancellation.
    let optimal = 2.0 / (1.0 + (lowest * (2.0 - lowest)).max(0.0).sqrt());
    seam_omega(grid).map_or(optimal, |most| optimal.min(most))
}
