//! The wave at the sample: what an optic makes of a beam, also as a start for the reconstruction.
//!
//! A lens (a zone plate) puts the image of its pupil on the detector; the wave at its focus is the transform of the pupil,
//! and `defocus` away from it, downstream, that wave propagated by Fresnel's kernel `exp(-i pi lambda z k^2)`. A pinhole stands
//! upstream of the sample. A diffuser is a speckled beam for the near field.
//!
//! Partial coherence: an incoherent source blurs the focus by its image, a Gaussian of `blur`. Its mutual intensity is summed
//! over shifted probes (Gauss-Hermite points) and split into orthogonal modes (Wolf, J. Opt. Soc. Am. 72 (1982) 343).

use num_complex::Complex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zellige_engine::error::Problem;
use zellige_engine::ops::fft::{Direction, Plan, Shape};
use zellige_engine::parallel::{each, indices, items_mut, map};

use super::check::within;
use super::coherence;
use super::config::Pair;
use super::zernike::AberrationConfig;
use crate::scan::{Beam, Image};

type C = Complex<f64>;

/// The wave at the sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IlluminationConfig {
    /// Optic that shapes the wave.
    pub optic: Optic,
    /// Shape of pupil, pinhole or beam.
    pub aperture: Aperture,
    /// Lens: pupil diameter over the detector's shorter side.
    #[schemars(range(min = 0.01, max = 1.0))]
    pub pupil: f64,
    /// Pinhole, diffuser: diameter, m; default 0.35, 0.75 of the field of view.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diameter: Option<f64>,
    /// Annular: stop over whole diameter.
    #[schemars(range(min = 0.0, max = 0.95))]
    pub inner: f64,
    /// Soft edge over diameter.
    #[schemars(range(min = 0.0, max = 0.5))]
    pub edge: f64,
    /// Distance of the sample behind focus or pinhole, m; default 0 for a pinhole, for a lens one that spreads the probe over
    /// 0.35 of the field of view.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defocus: Option<f64>,
    /// Aberrations of the lens.
    pub aberrations: Vec<AberrationConfig>,
    /// Diffuser: size of the speckles, m; default 1/24 of the field of view.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grain: Option<f64>,
    /// Diffuser: r.m.s. phase, rad.
    pub roughness: f64,
    /// R.m.s. size of the source's image at the sample (y, x), m: above 0 light is partially coherent.
    pub blur: Pair<f64>,
    /// Modes kept, brightest first.
    #[schemars(range(min = 1, max = 64))]
    pub modes: usize,
}

impl Default for IlluminationConfig {
    fn default() -> Self {
        Self {
            optic: Optic::Lens,
            aperture: Aperture::Round,
            pupil: 0.4,
            diameter: None,
            inner: 0.0,
            edge: 0.04,
            defocus: None,
            aberrations: Vec::new(),
            grain: None,
            roughness: 1.5,
            blur: Pair::Same(0.0),
            modes: 1,
        }
    }
}

/// Optic that shapes the wave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Optic {
    /// Focusing optic.
    Lens,
    /// Aperture close by.
    Pinhole,
    /// A wide beam behind a rough plate.
    Diffuser,
}

/// Shape of an aperture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Aperture {
    /// A disc.
    Round,
    /// A square.
    Square,
    /// With central stop.
    Annular,
    /// Its diameter is the intensity's full width at half maximum.
    Gaussian,
}

impl IlluminationConfig {
    /// Finds every problem of the table, paths relative to it.
    pub fn check(&self) -> Vec<Problem> {
        let mut faults = Vec::new();
        within("roughness", self.roughness, 0.0, 20.0, &mut faults);
        for (path, value) in [("diameter", self.diameter), ("grain", self.grain)] {
            if let Some(v) = value {
                within(path, v, 1e-12, 1.0, &mut faults);
            }
        }
        if let Some(z) = self.defocus {
            within("defocus", z, -10.0, 10.0, &mut faults);
        }
        for width in self.blur.both() {
            within("blur", width, 0.0, 1e-2, &mut faults);
        }
        if self.modes > 1 && self.blur.both() == [0.0; 2] {
            let hint = "give the size of the source's image: `blur = 5e-8`";
            faults.push(Problem::new("modes", "coherent light has one mode").hint(hint));
        }
        if self.optic != Optic::Lens && !self.aberrations.is_empty() {
            faults.push(Problem::new("aberrations", "only a lens has aberrations").hint("`optic = \"lens\"`"));
        }
        for (i, aberration) in self.aberrations.iter().enumerate() {
            faults.extend(aberration.check().map(|p| Problem { path: format!("aberrations[{i}].{}", p.path), ..p }));
        }
        faults
    }

    /// The modes at the sample, the one of the most light first, orthogonal; together they hold `photons`. `seed` is for diffusers.
    pub fn modes(&self, beam: &Beam, shape: [usize; 2], photons: f64, seed: u64) -> Image {
        let spacing = beam.resolution(shape);
        let mut spectrum = self.spectrum(beam, shape, spacing, seed);
        let norm: f64 = spectrum.iter().map(Complex::norm_sqr).sum();
        // The transform back is scaled by 1/n: Parseval.
        let scale = (photons * spectrum.len() as f64 / norm.max(f64::MIN_POSITIVE)).sqrt();
        for v in &mut spectrum {
            *v *= scale;
        }
        let waves = coherence::modes(&spectrum, shape, spacing, self.blur.both(), self.modes, photons);
        let origin = [0, 1].map(|d| -((shape[d] / 2) as f64) * spacing[d]);
        let values = waves.iter().flatten().map(|v| Complex::new(v.re as f32, v.im as f32)).collect();
        Image { shape: [waves.len(), shape[0], shape[1]], values, origin, spacing }
    }

    /// The wave that whoever built the optics expects: without aberrations, roughness and a blurring source. Lengths that were left
    /// out are those of the frames that were made, `made`, whatever was cut out of these.
    pub(crate) fn nominal(&self, made: (&Beam, [usize; 2]), beam: &Beam, shape: [usize; 2]) -> Vec<C> {
        let (before, now) = (made.0.resolution(made.1), beam.resolution(shape));
        let shorter = (0..2).map(|d| made.1[d] as f64 * before[d]).fold(f64::INFINITY, f64::min);
        let part = if self.optic == Optic::Diffuser { 0.75 } else { 0.35 };
        let mut plain = Self { aberrations: Vec::new(), roughness: 0.0, blur: Pair::Same(0.0), modes: 1, ..self.clone() };
        if self.optic == Optic::Lens {
            let coarser = |pixel: [f64; 2]| pixel[0].max(pixel[1]);
            let diameter = self.pupil / coarser(before);
            plain.defocus = Some(self.defocus.unwrap_or(0.35 * shorter / (made.0.wavelength * diameter)));
            plain.pupil = diameter * coarser(now);
        } else {
            plain.diameter = Some(self.diameter.unwrap_or(part * shorter));
        }
        let wave = plain.modes(beam, shape, 1.0, 0).values;
        wave.iter().map(|v| C::new(f64::from(v.re), f64::from(v.im))).collect()
    }

    /// Spectrum of the wave at the sample in FFT order, of any scale; the wave's middle is pixel `[0, 0]` of its transform.
    fn spectrum(&self, beam: &Beam, shape: [usize; 2], spacing: [f64; 2], seed: u64) -> Vec<C> {
        let field = [0, 1].map(|d| shape[d] as f64 * spacing[d]);
        let shorter = field[0].min(field[1]);
        // Spatial frequencies, 1/m.
        let frequency = |d: usize, i: usize| signed(i, shape[d]) / field[d];
        let at = |i: usize| (i / shape[1], i % shape[1]);
        let pixels = shape[0] * shape[1];
        let (mut wave, z) = match self.optic {
            Optic::Lens => {
                // The detector's shorter side spans 1 / spacing of the coarser axis.
                let diameter = self.pupil / spacing[0].max(spacing[1]);
                let z = self.defocus.unwrap_or(0.35 * shorter / (beam.wavelength * diameter));
                let pupil = |_, i: usize| {
                    let (r, c) = at(i);
                    let (ky, kx) = (frequency(0, r), frequency(1, c));
                    let waves: f64 = self.aberrations.iter().map(|a| a.at(2.0 * kx / diameter, 2.0 * ky / diameter)).sum();
                    C::from_polar(self.transmission(ky, kx, diameter, 1.0 / field[0].max(field[1])), std::f64::consts::TAU * waves)
                };
                (map(indices(pixels), pupil), z)
            }
            Optic::Pinhole | Optic::Diffuser => {
                let part = if self.optic == Optic::Pinhole { 0.35 } else { 0.75 };
                let diameter = self.diameter.unwrap_or(part * shorter);
                let position = |d: usize, i: usize| signed(i, shape[d]) * spacing[d];
                let grid = spacing[0].max(spacing[1]);
                let open = |_, i: usize| {
                    let (r, c) = at(i);
                    C::from(self.transmission(position(0, r), position(1, c), diameter, grid))
                };
                let mut plane: Vec<C> = map(indices(pixels), open);
                if self.optic == Optic::Diffuser {
                    let grain = self.grain.unwrap_or(shorter / 24.0);
                    let rough = super::noise::smooth(shape, [0, 1].map(|d| grain / spacing[d]), seed, super::noise::DIFFUSER);
                    each(items_mut(&mut plane), |i, v| *v *= C::from_polar(1.0, self.roughness * rough[i]));
                }
                Plan::new(Shape::frames(shape[0], shape[1], 1)).run(&mut plane, Direction::Forward);
                (plane, self.defocus.unwrap_or(0.0))
            }
        };
        let turn = -std::f64::consts::PI * beam.wavelength * z;
        each(items_mut(&mut wave), |i, v| {
            let (r, c) = at(i);
            *v *= C::from_polar(1.0, turn * (frequency(0, r).powi(2) + frequency(1, c).powi(2)));
        });
        wave
    }

    /// Transmission of the aperture at a point, in any unit of length; edges are at least `grid` wide.
    fn transmission(&self, y: f64, x: f64, diameter: f64, grid: f64) -> f64 {
        let width = (self.edge * diameter).max(grid);
        // 1 within, 0 outside, half of a cosine across the edge.
        let inside = |distance: f64, radius: f64| {
            let t = ((radius - distance) / width + 0.5).clamp(0.0, 1.0);
            0.5 - 0.5 * (std::f64::consts::PI * t).cos()
        };
        let radius = 0.5 * diameter;
        match self.aperture {
            Aperture::Round => inside(x.hypot(y), radius),
            Aperture::Square => inside(x.abs(), radius) * inside(y.abs(), radius),
            Aperture::Annular => inside(x.hypot(y), radius) * (1.0 - inside(x.hypot(y), radius * self.inner)),
            // Amplitude: the intensity is a half at the radius.
            Aperture::Gaussian => (-0.5 * std::f64::consts::LN_2 * (x * x + y * y) / (radius * radius)).exp(),
        }
    }
}

/// Index `i` of an axis of `n` in FFT order, as a signed number.
pub(super) fn signed(i: usize, n: usize) -> f64 {
    if i < n.div_ceil(2) { i as f64 } else { i as f64 - n as f64 }
}
