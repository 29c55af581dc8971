//! A Fourier mode of a component over time, and the growth rate or the frequency of a stretch of it.

use std::f64::consts::{PI, TAU};

use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::error::Result;
use zellige_engine::record::{Check, Curve, Record};

use crate::config::diagnostics::{Measure, ModeConfig};
use crate::config::{Config, Units, Value};
use crate::plasma::Plasma;
use crate::setup::{absolute, input};

/// Tolerance where none is given.
const TOLERANCE: f64 = 0.02;

/// A mode under observation.
#[derive(Debug, Clone)]
pub struct Mode {
    /// As in the input.
    pub config: ModeConfig,
    /// The figure that theory gives.
    pub expected: Option<f64>,
    units: Units,
    fit: [f64; 2],
    time: Vec<f64>,
    amplitude: [Vec<f64>; 2],
}

impl Mode {
    /// Nothing seen yet.
    pub fn new(config: &Config, i: usize, mode: &ModeConfig) -> Result<Self> {
        let path = format!("diagnostics.mode[{i}].expected");
        let expected = match &mode.expected {
            None => None,
            Some(Value::Number(x)) => Some(*x),
            Some(Value::Expression(text)) => Some(config.expression(&path, text, &[]).map_err(|p| input(&absolute(&path), p))?.eval(&[])),
        };
        let units = config.scales();
        let end = config.step_count() as f64 * config.domain().dt * units.time;
        let fit = mode.fit.unwrap_or([0.5 * end, end]);
        Ok(Self { config: mode.clone(), expected, units, fit, time: Vec::new(), amplitude: Default::default() })
    }

    /// Takes the mode as it stands.
    pub fn sample(&mut self, plasma: &mut Plasma) -> Result<()> {
        let values = plasma.stages.component(self.config.component)?;
        let grid = &plasma.setup.grid;
        let [nx, ny] = grid.cells;
        let table = |n: usize, m: i64| -> Vec<(f64, f64)> {
            (0..n).map(|i| (-TAU * ((i as i64 * m).rem_euclid(n as i64)) as f64 / n as f64).sin_cos()).collect()
        };
        let (along, across) = (table(nx, self.config.mode[0]), table(ny, self.config.mode.get(1).copied().unwrap_or(0)));
        let mut sum = [0.0; 2];
        for (j, (sj, cj)) in across.iter().enumerate() {
            let row = &values[grid.row(j as isize)];
            let (mut re, mut im) = (0.0, 0.0);
            for (v, (s, c)) in row.iter().zip(&along) {
                re += v * c;
                im += v * s;
            }
            sum[0] += re * cj - im * sj;
            sum[1] += re * sj + im * cj;
        }
        let unit = if (self.config.component as usize) < 3 { self.units.electric } else { self.units.magnetic };
        let scale = unit * 2.0 / (nx * ny) as f64;
        self.time.push(plasma.time() * self.units.time);
        self.amplitude[0].push(sum[0] * scale);
        self.amplitude[1].push(sum[1] * scale);
        Ok(())
    }

    /// Times, real and imaginary parts in the stretch that is fitted.
    fn stretch(&self) -> impl Iterator<Item = (f64, f64, f64)> + '_ {
        let [from, to] = self.fit;
        let all = self.time.iter().zip(&self.amplitude[0]).zip(&self.amplitude[1]);
        all.map(|((t, re), im)| (*t, *re, *im)).filter(move |(t, ..)| (from..=to).contains(t))
    }

    /// Rate or frequency, if the stretch has enough to tell.
    pub fn figure(&self) -> Option<f64> {
        let points: Vec<(f64, f64, f64)> = self.stretch().collect();
        match self.config.measure {
            Measure::Growth => growth(&points.iter().map(|(t, re, im)| (*t, re.hypot(*im))).collect::<Vec<_>>()),
            Measure::Frequency => frequency(&points),
        }
    }

    /// What is measured, in words.
    pub fn what(&self) -> &'static str {
        if self.config.measure == Measure::Growth { "growth rate" } else { "frequency" }
    }

    /// A sentence about the figure.
    pub fn message(&self) -> String {
        let [from, to] = self.fit;
        let (name, what) = (&self.config.name, self.what());
        match (self.figure(), self.expected) {
            (Some(found), Some(theory)) => {
                let off = 100.0 * (found / theory - 1.0);
                format!("{what} of {name} {found:.5}, theory {theory:.5} ({off:+.2} %), fitted from t = {from} to {to}")
            }
            (Some(found), None) => format!("{what} of {name} {found:.5}, fitted from t = {from} to {to}"),
            (None, _) => format!("{what} of {name}: nothing to fit from t = {from} to {to}"),
        }
    }

    /// The figure against theory.
    pub fn check(&self) -> Option<Check> {
        let theory = self.expected?;
        let found = self.figure().unwrap_or(f64::NAN);
        let name = format!("{} of {}: {found:.5}, theory {theory:.5}, relative difference", self.what(), self.config.name);
        Some(Check::at_most(name, (found / theory - 1.0).abs(), self.config.tolerance.unwrap_or(TOLERANCE)))
    }

    /// The amplitude over time, with the line that was fitted to its growth.
    pub fn record(&self) -> Record {
        let size: Vec<f64> = self.amplitude[0].iter().zip(&self.amplitude[1]).map(|(re, im)| re.hypot(*im)).collect();
        let growing = self.config.measure == Measure::Growth;
        let mut lines =
            if growing { vec![("amplitude".to_owned(), size.clone())] } else { vec![("real part".to_owned(), self.amplitude[0].clone())] };
        let title = match self.figure() {
            Some(figure) => format!("{}: {} {figure:.4}", self.config.name, self.what()),
            None => self.config.name.clone(),
        };
        if let (Some(rate), true) = (self.figure(), growing) {
            // Through the middle of the stretch.
            let [from, to] = self.fit;
            let inside: Vec<usize> = (0..size.len()).filter(|k| (from..=to).contains(&self.time[*k])).collect();
            let n = inside.len().max(1) as f64;
            let (t, a) = inside.iter().fold((0.0, 0.0), |(t, a), k| (t + self.time[*k] / n, a + size[*k].ln() / n));
            let line = self.time.iter().map(|time| if (from..=to).contains(time) { (a + rate * (time - t)).exp() } else { f64::NAN });
            lines.push((format!("exp({rate:.4} t)"), line.collect()));
        } else {
            lines.push(("imaginary part".to_owned(), self.amplitude[1].clone()));
        }
        Record::Curve(Curve {
            name: self.config.name.clone(),
            title,
            x_label: format!("time [{}]", self.units.label("s", "1/w_n")),
            y_label: format!("{} of mode {:?}", super::symbol(self.config.component.name()), self.config.mode),
            x: self.time.clone(),
            lines,
            log_y: growing,
        })
    }

    /// For a checkpoint.
    pub fn save(&self, writer: &mut Writer, k: usize) -> Result<()> {
        writer.f64s(&format!("mode{k}.time"), &self.time)?;
        writer.f64s(&format!("mode{k}.re"), &self.amplitude[0])?;
        writer.f64s(&format!("mode{k}.im"), &self.amplitude[1])
    }

    /// From a checkpoint.
    pub fn restore(&mut self, reader: &Reader, k: usize) -> Result<()> {
        self.time = reader.f64s(&format!("mode{k}.time"))?;
        self.amplitude = [reader.f64s(&format!("mode{k}.re"))?, reader.f64s(&format!("mode{k}.im"))?];
        if self.amplitude.iter().any(|a| a.len() != self.time.len()) {
            return Err(reader.wrong(format!("the columns of mode {k} differ in length")));
        }
        Ok(())
    }
}

/// Slope of the logarithm by least squares.
pub fn growth(points: &[(f64, f64)]) -> Option<f64> {
    let points: Vec<(f64, f64)> = points.iter().filter(|(_, a)| *a > 0.0).map(|(t, a)| (*t, a.ln())).collect();
    let n = points.len() as f64;
    let (t, a) = points.iter().fold((0.0, 0.0), |(t, a), p| (t + p.0 / n, a + p.1 / n));
    let (upper, lower) = points.iter().fold((0.0, 0.0), |(u, l), p| (u + (p.0 - t) * (p.1 - a), l + (p.0 - t).powi(2)));
    (points.len() >= 3 && lower > 0.0).then(|| upper / lower)
}

/// Angular frequency from the zeros of the mode along the direction in which it swings most: half a period lies between two, and
/// the first and the last one count.
pub fn frequency(points: &[(f64, f64, f64)]) -> Option<f64> {
    // The direction is the larger axis of the points' second moments.
    let (xx, xy, yy) = points.iter().fold((0.0, 0.0, 0.0), |(a, b, c), (_, x, y)| (a + x * x, b + x * y, c + y * y));
    let (sin, cos) = (0.5 * f64::atan2(2.0 * xy, xx - yy)).sin_cos();
    let swing: Vec<(f64, f64)> = points.iter().map(|(t, x, y)| (*t, x * cos + y * sin)).collect();
    let zeros: Vec<f64> = swing
        .windows(2)
        .filter(|w| (w[0].1 < 0.0) != (w[1].1 < 0.0))
        .map(|w| w[0].0 + (w[1].0 - w[0].0) * w[0].1 / (w[0].1 - w[1].1))
        .collect();
    match zeros[..] {
        [first, .., last] if zeros.len() >= 3 => Some(PI * (zeros.len() - 1) as f64 / (last - first)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_and_frequency_of_closed_forms() {
        let times = (0..400).map(|k| 0.05 * f64::from(k));
        let growing: Vec<_> = times.clone().map(|t| (t, 3e-4 * (0.35 * t).exp())).collect();
        assert!((growth(&growing).unwrap() - 0.35).abs() < 1e-12);
        assert_eq!(growth(&growing[..2]), None);
        // A straight line between samples misses a zero by (w dt)^2 w dt / 12 of a period at most.
        let swinging: Vec<_> = times.map(|t| (t, 0.6 * (1.7 * t + 0.3).cos(), -0.8 * (1.7 * t + 0.3).cos())).collect();
        assert!((frequency(&swinging).unwrap() - 1.7).abs() < 1e-4, "{:?}", frequency(&swinging));
        assert_eq!(frequency(&swinging[..10]), None);
    }
}
