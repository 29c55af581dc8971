//! From values to colours: range, logarithm, map.

use zellige_engine::record::{Field, Palette};

use super::Options;
use super::canvas::Rgb;
use super::colour::Map;

/// Shown where a value is not a number, or not positive on a logarithmic scale.
const MISSING: Rgb = [176, 176, 176];

/// Orders of magnitude that a logarithmic scale spans at most unless a range is given.
const DECADES: i32 = 12;

/// The colour scale of a picture.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) log: bool,
    pub(super) map: Map,
}

impl Scale {
    /// Covers the finite values that are shown. Diverging scales are symmetric about zero, angles run from -π to π.
    pub(super) fn new(field: &Field, shown: &[&[f64]], options: &Options) -> Self {
        let map = options.map.unwrap_or_else(|| field.palette.into());
        let usable = |v: &f64| v.is_finite() && (!options.log || *v > 0.0);
        let values = || shown.iter().flat_map(|part| part.iter().copied()).filter(usable);
        let (mut low, mut high) = values().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        if low > high {
            (low, high) = if options.log { (0.1, 1.0) } else { (0.0, 1.0) };
        }
        let pi = std::f64::consts::PI;
        if options.log {
            low = low.max(high * 10f64.powi(-DECADES));
        } else if map == Map::Balance {
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
        Self { low, high, log: options.log, map }
    }

    /// The place of a value on the scale, 0 to 1 from low to high; not clamped.
    pub(super) fn place(&self, value: f64) -> f64 {
        if self.log { (value / self.low).ln() / (self.high / self.low).ln() } else { (value - self.low) / (self.high - self.low) }
    }

    pub(super) fn colour(&self, value: f64) -> Rgb {
        let t = self.place(value);
        if t.is_nan() || (self.log && value <= 0.0) { MISSING } else { self.map.colour(t) }
    }
}
