//! Mapping from values to colours: range, logarithm, colour map.

use zellige_engine::record::{Field, Palette};

use super::Options;
use super::canvas::Rgb;
use super::colour::ColourMap;
use super::heat::PAPER;

/// Shown where a value is not a number, or not positive on a logarithmic scale.
const MISSING: Rgb = [176, 176, 176];

/// Orders of magnitude that a logarithmic scale spans at most unless a range is given; less for densities, whose tails are noise.
const DECADES: i32 = 12;
const DENSITY_DECADES: i32 = 6;

/// The colour scale of a picture.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) log: bool,
    pub(super) map: ColourMap,
    missing: Rgb,
}

impl Scale {
    /// Covers the finite values that are shown. Diverging scales are symmetric about zero, angles run from -π to π. A quantity of
    /// both signs that happens to have one only, without zero (the charge of one species), is shown from its least to its largest
    /// value.
    pub(super) fn new(field: &Field, shown: &[&[f64]], options: &Options) -> Self {
        let mut map = options.map.unwrap_or_else(|| field.palette.into());
        let density = field.palette == Palette::Density;
        let log = options.log || density;
        let usable = |v: &f64| v.is_finite() && (!log || *v > 0.0);
        let values = || shown.iter().flat_map(|part| part.iter().copied()).filter(usable);
        let (mut low, mut high) = values().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        if low > high {
            (low, high) = if log { (0.1, 1.0) } else { (0.0, 1.0) };
        }
        let pi = std::f64::consts::PI;
        if options.map.is_none() && map == ColourMap::Balance && low * high > 0.0 {
            map = ColourMap::Viridis;
        }
        if log {
            low = low.max(high * 10f64.powi(if density { -DENSITY_DECADES } else { -DECADES }));
        } else if map == ColourMap::Balance {
            high = high.abs().max(low.abs());
            low = -high;
        } else if field.palette == Palette::Cyclic && low >= -pi * 1.001 && high <= pi * 1.001 {
            (low, high) = (-pi, pi);
        }
        if let Some(range) = options.range {
            (low, high) = range;
        }
        if low >= high {
            // One value everywhere: it takes the middle of the scale.
            let pad = if low == 0.0 { 1.0 } else { low.abs() / 2.0 };
            (low, high) = (low - pad, low + pad);
        }
        Self { low, high, log, map, missing: if density { PAPER } else { MISSING } }
    }

    /// The place of a value on the scale, 0 to 1 from low to high; not clamped.
    pub(super) fn place(&self, value: f64) -> f64 {
        if self.log { (value / self.low).ln() / (self.high / self.low).ln() } else { (value - self.low) / (self.high - self.low) }
    }

    pub(super) fn colour(&self, value: f64) -> Rgb {
        if !value.is_finite() {
            return MISSING;
        }
        // A density of zero means nothing is there; an unknown density means something else.
        if self.log && value <= 0.0 { self.missing } else { self.map.colour(self.place(value)) }
    }
}

#[cfg(test)]
mod tests {
    use zellige_engine::record::{Axis, Centring, Values};

    use super::*;

    fn scale(palette: Palette, values: &[f64], options: &Options) -> Scale {
        let axes = vec![Axis::bare(0, 0.0, 1.0, values.len())];
        let mut field = Field::bare("f", axes, Centring::Cell, Values::F64(values.to_vec()));
        field.palette = palette;
        Scale::new(&field, &[values], options)
    }

    #[test]
    fn one_sign_without_zero_needs_no_middle() {
        let options = Options::default();
        let charge = scale(Palette::Diverging, &[-1.2, -0.9, -1.0], &options);
        assert_eq!((charge.low, charge.high, charge.map), (-1.2, -0.9, ColourMap::Viridis));
        for values in [[-1.2, 0.3, 0.1], [-1.2, -0.3, 0.0]] {
            let both = scale(Palette::Diverging, &values, &options);
            assert_eq!((both.low, both.high, both.map), (-1.2, 1.2, ColourMap::Balance));
        }
        // Requested limits stay.
        let asked = scale(Palette::Diverging, &[1.0, 2.0], &Options { map: Some(ColourMap::Balance), ..options });
        assert_eq!((asked.low, asked.high), (-2.0, 2.0));
    }

    #[test]
    fn densities_are_logarithmic_on_white() {
        let density = scale(Palette::Density, &[0.0, 1e-9, 1.0, 100.0], &Options::default());
        assert!(density.log && (density.low / 1e-4 - 1.0).abs() < 1e-12 && density.high == 100.0);
        assert!(density.colour(0.0) == PAPER && density.colour(100.0) != PAPER);
        let count = scale(Palette::Sequential, &[0.0, 1.0], &Options { log: true, ..Options::default() });
        assert!(count.colour(0.0) == MISSING);
    }
}
