//! Aberrations of a lens by Zernike's polynomials, normalised to a root mean square of 1 over the pupil (R. J. Noll,
//! J. Opt. Soc. Am. 66 (1976) 207).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zellige_engine::error::Problem;

/// One aberration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AberrationConfig {
    /// Type of aberration.
    pub kind: AberrationKind,
    /// Root mean square over the pupil, wavelengths.
    pub waves: f64,
}

/// Zernike's polynomials of the third to the fifteenth order in Noll's count, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AberrationKind {
    /// Defocus.
    Defocus,
    /// Oblique astigmatism.
    Astigmatism45,
    /// Vertical astigmatism.
    Astigmatism,
    /// Vertical coma.
    ComaY,
    /// Horizontal coma.
    ComaX,
    /// Vertical trefoil.
    TrefoilY,
    /// Horizontal trefoil.
    TrefoilX,
    /// Spherical aberration.
    Spherical,
}

impl AberrationConfig {
    /// A problem of the entry.
    pub(super) fn check(&self) -> Option<Problem> {
        let sound = self.waves.abs() <= 100.0;
        (!sound).then(|| Problem::new("waves", format!("the value is {:e}", self.waves)).allowed("-100 to 100"))
    }

    /// The value at a point of the pupil whose radius is 1, times the root mean square. Outside it continues as the polynomial
    /// does; the pupil is dark there.
    pub(super) fn at(&self, x: f64, y: f64) -> f64 {
        let (r2, sixth, eighth) = (x * x + y * y, 6f64.sqrt(), 8f64.sqrt());
        let value = match self.kind {
            AberrationKind::Defocus => 3f64.sqrt() * (2.0 * r2 - 1.0),
            AberrationKind::Astigmatism45 => sixth * 2.0 * x * y,
            AberrationKind::Astigmatism => sixth * (x * x - y * y),
            AberrationKind::ComaY => eighth * (3.0 * r2 - 2.0) * y,
            AberrationKind::ComaX => eighth * (3.0 * r2 - 2.0) * x,
            AberrationKind::TrefoilY => eighth * (3.0 * x * x - y * y) * y,
            AberrationKind::TrefoilX => eighth * (x * x - 3.0 * y * y) * x,
            AberrationKind::Spherical => 5f64.sqrt() * (6.0 * r2 * r2 - 6.0 * r2 + 1.0),
        };
        self.waves * value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Midpoint sums over a raster of 400^2 points: the rim of the disc leaves an error of about 1e-3.
    #[test]
    fn polynomials_are_orthonormal_over_the_pupil() {
        use AberrationKind::{Astigmatism, Astigmatism45, ComaX, ComaY, Defocus, Spherical, TrefoilX, TrefoilY};
        let kinds = [Defocus, Astigmatism45, Astigmatism, ComaY, ComaX, TrefoilY, TrefoilX, Spherical];
        let n = 400;
        let position = |i: usize| 2.0 * (i as f64 + 0.5) / f64::from(n) - 1.0;
        for (i, a) in kinds.into_iter().enumerate() {
            for (j, b) in kinds.into_iter().enumerate() {
                let [a, b] = [a, b].map(|kind| AberrationConfig { kind, waves: 1.0 });
                let (mut sum, mut area) = (0.0, 0.0);
                for (y, x) in (0..n as usize).flat_map(|r| (0..n as usize).map(move |c| (position(r), position(c)))) {
                    if x * x + y * y <= 1.0 {
                        sum += a.at(x, y) * b.at(x, y);
                        area += 1.0;
                    }
                }
                let expected = f64::from(u8::from(i == j));
                assert!((sum / area - expected).abs() < 1e-2, "{a:?} {b:?}: {}", sum / area);
            }
        }
    }
}
