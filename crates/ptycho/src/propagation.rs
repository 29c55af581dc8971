//! Propagation from the sample to the detector, and the frequencies kept out of it.
//!
//! Far field: `F(w) = post FFT(pre w)`. All that happens at the detector are moduli, and `post` is a phase: it cancels. The
//! quadratic phase `pre = exp(i pi (x^2 + y^2) / (lambda z))` of the sample plane is multiplied into probe and exit waves when they
//! are loaded and taken out when they go out: every update is the same with and without it, since sums over views hold
//! `conj(pre) pre = 1` or go with `pre` themselves. What is left is a unitary transform.
//!
//! Where a counted pixel is a bin of `b` pixels of the wave, bin 0 begins at pixel 0 of the transform, and its middle is
//! `(b - 1)/2` pixels beside it. A tilt of the sample plane, `exp(2 pi i x (b - 1)/(2 N))`, shifts the far field by that: it is
//! multiplied into `pre`. In the near field the shift is one of the whole sample by less than a counted pixel, and left alone.
//!
//! Near field: `F(w) = FFT^-1(kernel FFT(w))` with Fresnel's `kernel = exp(-i pi lambda z (qx^2 + qy^2))` (Goodman, Introduction to
//! Fourier Optics, ch. 4).

use num_complex::Complex;
use zellige_engine::parallel::{indices, map};

use crate::model::Transfer;
use crate::scan::{Beam, Propagation};

type C = Complex<f64>;

/// Frequency number of index `i` of `n`, signed.
pub fn signed(i: usize, n: usize) -> f64 {
    if i < n.div_ceil(2) { i as f64 } else { i as f64 - n as f64 }
}

/// Squared distance of pixel `i` of `[ny][nx]` from the middle one, for pixels of this size.
fn square([ny, nx]: [usize; 2], pixel: [f64; 2], i: usize) -> f64 {
    let at = |i: usize, n: usize, d: f64| ((i as f64 - (n / 2) as f64) * d).powi(2);
    at(i / nx, ny, pixel[0]) + at(i % nx, nx, pixel[1])
}

/// The phase of the sample plane, with the tilt that `bin` rows and columns of the wave to a counted pixel take; 1 in the near
/// field.
pub fn filter(beam: &Beam, shape: [usize; 2], bin: [usize; 2]) -> Vec<C> {
    let [_, nx] = shape;
    match beam.propagation {
        Propagation::Far if bin != [1, 1] => {
            let turns = |i: usize, d: usize| (bin[d] - 1) as f64 / 2.0 * (i as f64 - (shape[d] / 2) as f64) / shape[d] as f64;
            let tilt = |i: usize| C::cis(std::f64::consts::TAU * (turns(i / nx, 0) + turns(i % nx, 1)));
            let plain = filter(beam, shape, [1, 1]);
            map(indices(plain.len()), |_, i| plain[i] * tilt(i))
        }
        Propagation::Near => vec![C::new(1.0, 0.0); shape[0] * shape[1]],
        Propagation::Far => {
            let over = std::f64::consts::PI / (beam.wavelength * beam.distance);
            let pixel = beam.resolution(shape);
            map(indices(shape[0] * nx), |_, i| C::cis(over * square(shape, pixel, i)))
        }
    }
}

/// Fresnel's kernel over a distance, in the order of the transform.
pub fn fresnel(wavelength: f64, distance: f64, [ny, nx]: [usize; 2], pixel: [f64; 2]) -> Vec<C> {
    let q = |i: usize, n: usize, d: f64| signed(i, n) / (n as f64 * d);
    let square = |i: usize| q(i / nx, ny, pixel[0]).powi(2) + q(i % nx, nx, pixel[1]).powi(2);
    map(indices(ny * nx), |_, i| C::cis(-std::f64::consts::PI * wavelength * distance * square(i)))
}

/// Propagation of a beam's waves to the detector.
pub fn transfer(beam: &Beam, shape: [usize; 2]) -> Transfer {
    match beam.propagation {
        Propagation::Far => Transfer::Far,
        Propagation::Near => Transfer::Near(fresnel(beam.wavelength, beam.distance, shape, beam.pixel)),
    }
}
