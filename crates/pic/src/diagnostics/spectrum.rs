//! Fourier spectra of a component along x, averaged over y: of the end, or over space and time.

use std::f64::consts::TAU;

use zellige_engine::error::Result;
use zellige_engine::record::{Axis, Centring, Curve, Field, Palette, Record, Values};

use crate::config::Config;
use crate::config::diagnostics::SpectrumConfig;
use crate::plasma::Plasma;

/// A spectrum under way.
#[derive(Debug, Clone)]
pub struct Spectrum {
    /// As in the input.
    pub config: SpectrumConfig,
    /// Lines along x, one after the other in time.
    pub samples: Vec<f64>,
}

/// Real and imaginary parts of `sum_n v_n exp(-i 2 pi m n / of)` for `m = 0..count`.
fn transform(re: &[f64], im: &[f64], count: usize) -> Vec<(f64, f64)> {
    let n = re.len();
    let table: Vec<(f64, f64)> = (0..n).map(|k| (-TAU * k as f64 / n as f64).sin_cos()).collect();
    (0..count)
        .map(|m| {
            let mut sum = (0.0, 0.0);
            let mut at = 0;
            for k in 0..n {
                let (s, c) = table[at];
                sum.0 += re[k] * c - im[k] * s;
                sum.1 += re[k] * s + im[k] * c;
                at = (at + m) % n;
            }
            sum
        })
        .collect()
}

impl Spectrum {
    /// Nothing sampled yet.
    pub fn new(config: SpectrumConfig) -> Self {
        Self { config, samples: Vec::new() }
    }

    /// The component along x, averaged over y.
    fn line(&self, plasma: &mut Plasma) -> Result<Vec<f64>> {
        let values = plasma.stages.component(self.config.component)?;
        let grid = &plasma.setup.grid;
        let mut line = vec![0.0; grid.cells[0]];
        for j in 0..grid.cells[1] as isize {
            for (sum, v) in line.iter_mut().zip(&values[grid.row(j)]) {
                *sum += v / grid.cells[1] as f64;
            }
        }
        Ok(line)
    }

    /// Takes a line.
    pub fn sample(&mut self, plasma: &mut Plasma) -> Result<()> {
        let line = self.line(plasma)?;
        self.samples.extend(line);
        Ok(())
    }

    /// The spectrum; nothing where too little was sampled.
    pub fn record(&self, config: &Config, plasma: &mut Plasma) -> Result<Option<Record>> {
        let n = plasma.setup.grid.cells[0];
        let units = plasma.model.units;
        let dk = TAU / config.grid.size[0];
        let component = self.config.component.name();
        let modes = (self.config.k_max.map_or(n / 2 + 1, |k| (k / dk) as usize + 1)).clamp(1, n / 2 + 1);
        let k_label = format!("k [{}]", units.label("1/m", "w_n/c"));
        let Some(every) = self.config.every else {
            let line = self.line(plasma)?;
            let power = transform(&line, &vec![0.0; n], modes).into_iter().map(|(re, im)| (re * re + im * im) / (n * n) as f64);
            return Ok(Some(Record::Curve(Curve {
                name: format!("spectrum_{component}"),
                title: format!("spectrum of {}", super::symbol(component)),
                x_label: k_label,
                y_label: format!("|{}(k)|^2", super::symbol(component)),
                x: (0..modes).map(|m| m as f64 * dk).collect(),
                lines: vec![(component.into(), power.collect())],
                log_y: true,
            })));
        };
        let times = self.samples.len() / n;
        if times < 8 {
            return Ok(None);
        }
        let dt = every as f64 * plasma.setup.grid.dt * units.time;
        let dw = TAU / (times as f64 * dt);
        let frequencies = (self.config.omega_max.map_or(times / 2 + 1, |w| (w / dw) as usize + 1)).clamp(2, times / 2 + 1);
        // In space at each time, then in time under Hann's window.
        let space: Vec<Vec<(f64, f64)>> = self.samples.chunks_exact(n).map(|line| transform(line, &vec![0.0; n], modes)).collect();
        let mut power = vec![0.0; modes * frequencies];
        for m in 0..modes {
            let window = |t: usize| 0.5 - 0.5 * (TAU * (t as f64 + 0.5) / times as f64).cos();
            let re: Vec<f64> = (0..times).map(|t| space[t][m].0 * window(t)).collect();
            let im: Vec<f64> = (0..times).map(|t| space[t][m].1 * window(t)).collect();
            // Waves of both directions at their frequency: the mean of w and -w.
            let turned: Vec<f64> = im.iter().map(|v| -v).collect();
            let (up, down) = (transform(&re, &im, frequencies), transform(&re, &turned, frequencies));
            for w in 0..frequencies {
                let square = |(a, b): (f64, f64)| a * a + b * b;
                power[w * modes + m] = 0.5 * (square(up[w]) + square(down[w]));
            }
        }
        let peak = power.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        // Decades below the strongest wave; six are enough to see by.
        for p in &mut power {
            *p = (*p / peak).max(1e-6).log10();
        }
        let axis =
            |name: &str, unit: &str, spacing: f64, len: usize| Axis { name: name.into(), unit: unit.into(), origin: 0.0, spacing, len };
        Ok(Some(Record::Field(Field {
            name: format!("dispersion_{component}"),
            title: format!("spectrum of {}: log10(P/P_max)", super::symbol(component)),
            unit: String::new(),
            dimension: [0.0; 7],
            axes: vec![axis("k", units.label("1/m", "w_n/c"), dk, modes), axis("w", units.label("1/s", "w_n"), dw, frequencies)],
            centring: Centring::Node,
            values: Values::F64(power),
            palette: Palette::Sequential,
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transform_finds_its_mode() {
        let n = 24;
        let wave: Vec<f64> = (0..n).map(|k| (TAU * 5.0 * f64::from(k) / f64::from(n)).cos()).collect();
        let found = transform(&wave, &vec![0.0; n as usize], 13);
        for (m, (re, im)) in found.into_iter().enumerate() {
            assert!((re - if m == 5 { 12.0 } else { 0.0 }).abs() + im.abs() < 1e-12, "{m}: {re} {im}");
        }
    }
}
