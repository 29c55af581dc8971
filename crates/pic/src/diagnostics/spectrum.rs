//! Fourier spectra of a component along x, averaged over y: of the end, or over space and time.

use std::f64::consts::TAU;

use num_complex::Complex;
use zellige_engine::error::Result;
use zellige_engine::record::{Axis, Centring, Curve, Field, Palette, Record, Values};
use zellige_fft::{FftDirection, Planned};

use crate::config::Config;
use crate::config::diagnostics::SpectrumConfig;
use crate::grid::Grid;
use crate::plasma::Plasma;
use crate::stages::Component;

/// A spectrum under way.
#[derive(Debug, Clone)]
pub struct Spectrum {
    /// As in the input.
    pub config: SpectrumConfig,
    /// Lines along x, one after the other in time.
    pub samples: Vec<f64>,
}

/// `sum_n v_n exp(-i 2 pi m n / of)` for all `m`.
fn transform(mut values: Vec<Complex<f64>>) -> Vec<Complex<f64>> {
    <f64 as Planned>::line(values.len(), FftDirection::Forward).process(&mut values);
    values
}

/// A line of real values.
fn complex(values: &[f64]) -> Vec<Complex<f64>> {
    values.iter().map(|v| Complex::new(*v, 0.0)).collect()
}

impl Spectrum {
    /// Nothing sampled yet.
    pub fn new(config: SpectrumConfig) -> Self {
        Self { config, samples: Vec::new() }
    }

    /// The component.
    pub fn component(&self) -> Component {
        self.config.component
    }

    /// A component along x, averaged over y.
    fn line(grid: &Grid, values: &[f64]) -> Vec<f64> {
        let mut line = vec![0.0; grid.cells[0]];
        for j in 0..grid.cells[1] as isize {
            for (sum, v) in line.iter_mut().zip(&values[grid.row(j)]) {
                *sum += v / grid.cells[1] as f64;
            }
        }
        line
    }

    /// Takes a line; it may come with a later one, or with [`Spectrum::settle`]. `list`: where it may be put aside.
    pub fn sample(&mut self, plasma: &mut Plasma, list: usize) -> Result<()> {
        super::sampled(plasma, self.config.component, list, |grid, values| self.samples.extend(Self::line(grid, values)))
    }

    /// Takes all lines that are still to come.
    pub fn settle(&mut self, plasma: &mut Plasma, list: usize) -> Result<()> {
        super::settled(plasma, list, |grid, values| self.samples.extend(Self::line(grid, values)))
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
            let values = plasma.after_steps(|plasma| plasma.stages.component(self.config.component))?;
            let line = Self::line(&plasma.setup.grid, &values);
            let unit = units.of(self.config.component) / n as f64;
            let power = transform(complex(&line)).into_iter().take(modes).map(|v| v.norm_sqr() * unit * unit);
            let squared = match self.config.component as usize {
                0..3 => units.label(" [V^2/m^2]", ""),
                3..6 => units.label(" [T^2]", ""),
                _ => units.label(" [A^2/m^4]", ""),
            };
            return Ok(Some(Record::Curve(Curve {
                name: format!("spectrum_{component}"),
                title: format!("spectrum of {}", super::symbol(component)),
                x_label: k_label,
                y_label: format!("|{}(k)|^2{squared}", super::symbol(component)),
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
        let space: Vec<Vec<Complex<f64>>> = self.samples.chunks_exact(n).map(|line| transform(complex(line))).collect();
        let window = |t: usize| 0.5 - 0.5 * (TAU * (t as f64 + 0.5) / times as f64).cos();
        let mut power = vec![0.0; modes * frequencies];
        for m in 0..modes {
            let course = transform(space.iter().enumerate().map(|(t, line)| line[m] * window(t)).collect());
            for w in 0..frequencies {
                // Waves of both directions at their frequency: the mean of w and -w.
                power[w * modes + m] = 0.5 * (course[w].norm_sqr() + course[(times - w) % times].norm_sqr());
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
            share: None,
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
        for (m, v) in transform(complex(&wave)).into_iter().enumerate() {
            assert!((v.re - if m == 5 || m == 19 { 12.0 } else { 0.0 }).abs() + v.im.abs() < 1e-12, "{m}: {v}");
        }
    }
}
