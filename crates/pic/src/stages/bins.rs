//! Bins of histograms of particles, and their sums on the way from a device.

use zellige_engine::cuda::Coming;
use zellige_engine::error::Result;

/// Bins of a histogram along a column of particles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bins {
    /// Number of the column in [`crate::config::diagnostics::PARTICLE`].
    pub column: usize,
    /// Lower edge of the first bin.
    pub from: f64,
    /// Width of a bin.
    pub spacing: f64,
    /// Number of bins.
    pub count: usize,
    /// A position is the first plus the second times its distance from the corner of the box in cells.
    pub position: [f64; 2],
}

impl Bins {
    /// Lets the bins cover a range.
    pub fn goes_over(&mut self, [from, to]: [f64; 2]) {
        (self.from, self.spacing) = (from, (to - from) / self.count as f64);
    }

    /// The bin of a value. The upper edge belongs to the last one; a value that is not a number belongs to none.
    #[inline]
    pub fn of(&self, value: f64) -> Option<usize> {
        let bin = (value - self.from) / self.spacing;
        // Cut off towards zero: what is not a number, or below it, has no place that could be cut.
        let whole = bin as usize;
        if bin.is_nan() || bin < 0.0 {
            None
        } else if whole == self.count && value <= self.from + self.spacing * self.count as f64 {
            whole.checked_sub(1)
        } else {
            (whole < self.count).then_some(whole)
        }
    }
}

/// From the least to the greatest value with a little air.
pub fn padded_range([low, high]: [f64; 2]) -> [f64; 2] {
    let air = 0.05 * (high - low);
    match high - low {
        w if w > 0.0 => [low - air, high + air],
        // All alike: a window about the value.
        0.0 => [low - low.abs().max(1e-6), low + low.abs().max(1e-6)],
        _ => [0.0, 1.0],
    }
}

/// Sums of weights in bins, on their way from a device: two words each, whole weights and the rest in units of 2^-64; behind them
/// the edges of both axes.
#[derive(Debug)]
pub struct BinsToCome(Coming<u64>);

impl BinsToCome {
    pub(crate) fn new(copy: Coming<u64>) -> Self {
        Self(copy)
    }

    /// The words of the sums. Waits for them.
    pub(crate) fn words(&self) -> Result<&[u64]> {
        let all = self.0.wait()?;
        Ok(&all[..all.len() - 4])
    }

    /// A weight by its words.
    pub(crate) fn weight([whole, rest]: &[u64; 2]) -> f64 {
        *whole as f64 + *rest as f64 * (-64.0_f64).exp2()
    }

    /// Lower edge and width of the first bin of each axis, and the sums. Waits for them.
    pub(crate) fn wait(&self) -> Result<([[f64; 2]; 2], Vec<f64>)> {
        let (sums, all) = (self.words()?, self.0.wait()?);
        let edges = all[sums.len()..].as_chunks::<2>().0;
        let of = |k: usize| edges.get(k).map_or([0.0; 2], |words| words.map(f64::from_bits));
        Ok(([of(0), of(1)], sums.as_chunks::<2>().0.iter().map(Self::weight).collect()))
    }
}
