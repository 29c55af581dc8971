//! The formulae of a pixel: numbers in, numbers out, no memory. Moduli in square roots of counts.
//!
//! Sources: Thibault et al., Ultramicroscopy 109 (2009) 338 (difference map, bound); Thibault and Guizar-Sicairos, New J. Phys. 14
//! (2012) 063004 (likelihoods); Maiden, Johnson and Li, Optica 4 (2017) 736 (rPIE).

use zellige_device_macro::{device, device_source};
use zellige_engine::real::{Real, RealScalar, select};

/// Factor on the waves of all modes at a pixel: the measured modulus `mag` (negative where masked) over the present one `af`, with
/// the deviation reduced to the part `relax`.
#[device]
#[inline(always)]
pub fn modulus_factor<R: Real>(mag: R, af: R, relax: R, guard: R) -> R {
    let factor = (mag + (af - mag) * relax) / (af + guard);
    select(mag.lt(R::ZERO), R::ONE, factor)
}

/// Squared deviation of the modulus; nothing where masked.
#[device]
#[inline(always)]
pub fn deviation<R: Real>(mag: R, af: R) -> R {
    let d = af - mag;
    select(mag.lt(R::ZERO), R::ZERO, d * d)
}

/// Squared deviation of the intensity over the variance of the counts plus one; nothing where masked.
#[device]
#[inline(always)]
pub fn photon_error<R: Real>(mag: R, intensity: R) -> R {
    let counts = mag * mag;
    let d = intensity - counts;
    select(mag.lt(R::ZERO), R::ZERO, d * d / (counts + R::ONE))
}

/// The part of the deviation that stays where its mean square is `error` and `bound` is let through; 1 changes nothing.
#[device]
#[inline(always)]
pub fn relaxation<R: RealScalar>(error: R, bound: R) -> R {
    if error > bound { (bound / error).sqrt() } else { R::ONE }
}

/// Step of an update view by view over the norm: `step / ((1 - local) largest + local here)`.
#[device]
#[inline(always)]
pub fn pie_weight<R: Real>(step: R, local: R, largest: R, here: R) -> R {
    step / ((R::ONE - local) * largest + local * here)
}

/// Weight of a Gaussian pixel: one over the variance of the counts plus one; 0 where masked.
#[device]
#[inline(always)]
pub fn gaussian_weight<R: Real>(mag: R) -> R {
    select(mag.lt(R::ZERO), R::ZERO, R::ONE / (R::ONE + mag * mag))
}

/// Parts of this module that kernels use.
pub const PHYSICS: &[&str] = &device_source![modulus_factor, deviation, photon_error, relaxation, pie_weight, gaussian_weight];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_masked_pixel_is_left_alone_and_a_fitting_one_stays() {
        assert_eq!(modulus_factor(-1.0, 3.0, 0.0, 1e-10), 1.0);
        assert_eq!(deviation(-1.0, 3.0), 0.0);
        assert_eq!(photon_error(-1.0, 3.0), 0.0);
        assert_eq!(gaussian_weight(-1.0), 0.0);
        assert_eq!(modulus_factor(2.0_f64, 4.0, 0.0, 0.0), 0.5);
        assert_eq!(modulus_factor(2.0_f64, 4.0, 1.0, 0.0), 1.0);
        assert_eq!(modulus_factor(2.0_f64, 4.0, 0.5, 0.0), 0.75);
    }

    #[test]
    fn the_bound_lets_a_part_through() {
        assert_eq!(relaxation(0.0, 0.0), 1.0);
        assert_eq!(relaxation(4.0, 0.0), 0.0);
        assert_eq!(relaxation(4.0, 1.0), 0.5);
        assert_eq!(relaxation(1.0, 4.0), 1.0);
    }
}
